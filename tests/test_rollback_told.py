"""What a cache tells of itself as a whole, and layers of eight bits, of which only some things can be compared."""

from unittest.mock import patch

import pytest
from toolbox import small_case
from transformers import cache_utils
from transformers.cache_utils import LinearAttentionCacheLayerMixin, StaticLayer
from zoo.rollback import instead

from conformance import upstream
from conformance.judge import judge
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.subjects.installed import Installed

PREFILL, FEED = Op(op="prefill"), Op(op="feed", tokens=(5, 6))
REORDER = Op(op="reorder", rows=(1, 0))
BEAMS, RESET, TELLS = "beams-reorder-every-state", "reset-is-fresh", "cache-tells-of-itself"
ROWS = ((3, 4, 5, 6), (7, 8, 9, 10))


def verdict(check, architecture, *program, cache="default"):
    plan = RollbackPlan(cache=cache, program=program, slack=4)
    case = small_case(architecture, rows=ROWS, family="rollback", plan=plan)
    return judge(case, [check], Installed()).verdicts[check]


def test_a_reset_leaves_no_previous_state():
    def make(right):
        def reset(self):
            right(self)
            self.has_previous_state = dict.fromkeys(self.has_previous_state, True)

        return reset

    program = (PREFILL, FEED, Op(op="reset"))
    assert verdict(RESET, "mamba2", *program).status == "pass"
    with instead(LinearAttentionCacheLayerMixin, "reset", make):
        assert [d.field for d in verdict(RESET, "mamba2", *program).differences] == ["has_previous_state"]


def test_the_batch_size_that_is_told_is_that_of_a_fresh_cache():
    def make(right):
        def reorder_cache(self, beams):
            right(self, beams)
            self.batch_size += 1

        return reorder_cache

    assert verdict(BEAMS, "llama", PREFILL, FEED, REORDER, cache="static").status == "pass"
    with patch.object(StaticLayer, "reorder_cache", make(StaticLayer.reorder_cache)):
        found = verdict(BEAMS, "llama", PREFILL, FEED, REORDER, cache="static")
    assert [difference.field for difference in found.differences] == ["batch size"]


def test_a_cache_of_two_answers_as_its_own_part_does():
    found = verdict(TELLS, "bart:seq2seq", PREFILL, cache="early")
    assert {d.field for d in found.differences} >= {"crash", "batch size", "is_initialized"}
    layers = property(lambda self: self.self_attention_cache.layers)
    with patch.object(cache_utils.EncoderDecoderCache, "layers", layers, create=True):
        assert verdict(TELLS, "bart:seq2seq", PREFILL, cache="early").status == "pass"


def test_a_cache_without_layers_has_a_longest():
    found = verdict(TELLS, "llama", PREFILL, cache="bare")
    assert [d.field for d in found.differences] == ["longest"]
    with patch.object(cache_utils.Cache, "get_max_length", lambda *_: -1):
        assert verdict(TELLS, "llama", PREFILL, cache="bare").status == "pass"


@pytest.mark.skipif(upstream.fp8_layer() is None, reason="the release has no layer of eight bits")
def test_eight_bits_follow_their_rows():
    assert verdict(BEAMS, "llama", PREFILL, FEED, REORDER, FEED, cache="fp8").status == "pass"
    with patch.object(cache_utils.Fp8QuantizedLayer, "reorder_cache", lambda *_: None):
        found = verdict(BEAMS, "llama", PREFILL, FEED, REORDER, cache="fp8")
    assert [difference.field for difference in found.differences] == ["contents"]


@pytest.mark.skipif(upstream.fp8_layer() is None, reason="the release has no layer of eight bits")
def test_other_rows_have_another_scale():
    """One row twice: what it becomes in eight bits is not what it was."""
    assert verdict(BEAMS, "llama", PREFILL, FEED, Op(op="reorder", rows=(1, 1)), cache="fp8").status == "pass"
