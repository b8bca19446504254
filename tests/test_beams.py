"""Beam search: what it returns, chooses, and does to what it is given."""

from unittest.mock import patch

import pytest
import torch
from toolbox import small_case
from transformers.generation.utils import GenerationMixin
from zoo import planted

from conformance.judge import judge
from conformance.plans.beam_search import BeamSearch
from conformance.plans.cached import CachedPlan
from conformance.plans.rollback import RollbackPlan
from conformance.programs.beam_choice import Beam, Row
from conformance.subjects.installed import Installed

SCORE, FOLLOW, ALONE = "beams-score-their-sequences", "beams-follow-their-scores", "beams-leave-the-encoding-alone"
REORDER = "beams-reorder-every-state"
ROWS = ((3, 4, 5, 6), (7, 8))
DRAWN = BeamSearch(sampled=True, eos=(5, 9), length_penalty=1.0, pad=3)


def verdict(check, architecture, search, plan=RollbackPlan):
    case = small_case(architecture, rows=ROWS, family=plan.family, plan=plan(beams=3, search=search), max_new_tokens=6)
    return judge(case, [check], Installed()).verdicts[check]


@pytest.mark.parametrize("check", [SCORE, f"cached-{SCORE}"])
@pytest.mark.parametrize("architecture", ["llama", "bart:seq2seq"])
def test_drawn_beams_that_end_have_the_scores_that_are_told(architecture, check):
    assert verdict(check, architecture, DRAWN, CachedPlan).status == "pass"


def test_drawn_beams_are_chosen_by_their_scores():
    assert verdict(FOLLOW, "llama", DRAWN).status == "pass"


def test_the_pad_token_fills_up_also_where_it_is_zero():
    """5.24.0 takes 0 for none."""
    found = verdict(FOLLOW, "llama", BeamSearch(eos=(2, 8, 30), pad=0)).differences
    assert [difference.field for difference in found[:1]] == ["padding"]


def test_another_search_than_was_scored_is_blamed_on_the_search():
    with planted.beams_count_a_token_more():
        found = verdict(REORDER, "llama", BeamSearch(length_penalty=1.0))
    assert (found.status, found.reason) == ("blocked-by", SCORE)


def expanded(model, expand_size=1, is_encoder_decoder=False, input_ids=None, **kwargs):
    """The library's own, on a copy of the encoder's output."""
    given = kwargs.get("encoder_outputs")
    if given is not None:
        kwargs["encoder_outputs"] = type(given)(**given)
    return RIGHT(model, expand_size, is_encoder_decoder, input_ids, **kwargs)


RIGHT = GenerationMixin._expand_inputs_for_generation


def test_an_encoding_is_expanded_in_a_copy():
    """5.24.0 expands it in place."""
    assert verdict(ALONE, "bart:seq2seq", BeamSearch()).status == "fail"
    with patch.object(GenerationMixin, "_expand_inputs_for_generation", expanded):
        assert verdict(ALONE, "bart:seq2seq", BeamSearch()).status == "pass"


def test_a_row_is_closed_when_nothing_can_become_better():
    row = Row(0, 2, BeamSearch(eos=(1,)), limit=4)
    row.advance([Beam(-1.0, (1,)), Beam(-2.0, (2,)), Beam(-3.0, (3,)), Beam(-4.0, (4,))])
    assert (row.open, row.full, [beam.tokens for beam in row.going]) == (True, False, [(2,), (3,)])
    row.advance([Beam(-2.5, (2, 1)), Beam(-2.6, (2, 2)), Beam(-3.5, (3, 1)), Beam(-5.0, (3, 3))])
    assert [beam.tokens for beam in row.ended] == [(1,), (2, 1)]
    assert (row.open, row.tied) == (False, False)
    assert torch.tensor([beam.score for beam in row.going]).tolist() == pytest.approx([-2.6, -5.0])
