"""Guidance: what a second decoding has to be, and how its faults look."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
from toolbox import small_case
from transformers.generation.logits_process import UnbatchedClassifierFreeGuidanceLogitsProcessor as Guides

from conformance.judge import judge
from conformance.plans.beam_search import BeamSearch
from conformance.plans.rollback import RollbackPlan
from conformance.subjects.installed import Installed

ALONE, BEAMS = "guidance-is-of-each-row-alone", "guided-beams-score-their-sequences"
ROWS = ((3, 4, 5, 6), (7, 8, 9, 5))


def verdict(check, architecture="llama", **plan):
    asked = RollbackPlan(guidance=1.5, **plan)
    case = small_case(architecture, rows=ROWS, family="rollback", plan=asked, max_new_tokens=5)
    return judge(case, [check], Installed()).verdicts[check]


@contextmanager
def second_decoding_is_recomputed():
    """The release as it would be right: of every row from its own ids, whichever beams those are."""
    started = {}

    def logits(self, input_ids):
        start = started.setdefault(self, input_ids.shape[1] - 1)
        return self.model(input_ids[:, start:], use_cache=False).logits

    with patch.object(Guides, "get_unconditional_logits", logits):
        yield


@contextmanager
def second_decoding_swaps_rows():
    """Each row is led away from what another one says without its prompt."""
    right = Guides.get_unconditional_logits

    def logits(self, input_ids):
        return right(self, input_ids).flip(0)

    with patch.object(Guides, "get_unconditional_logits", logits):
        yield


@pytest.mark.parametrize("negative", [(), (9,), (9, 10, 11)])
def test_guidance_is_right_where_positions_only_count_from_each_other(negative):
    assert verdict(ALONE, negative=negative).status == "pass"


def test_rows_that_are_swapped_are_seen():
    with second_decoding_swaps_rows():
        found = verdict(ALONE)
    assert (found.status, found.differences[0].field) == ("fail", "scores")


def test_padding_of_a_negative_prompt_counts_where_positions_do():
    """5.24.0 tells the second decoding no positions."""
    assert verdict(ALONE, "gpt2", negative=(9, 10, 11)).status == "fail"
    assert verdict(ALONE, "gpt2", negative=(9,)).status == "pass"


def test_the_second_decoding_moves_with_the_beams():
    """5.24.0 moves nothing of it."""
    search = {"beams": 3, "search": BeamSearch(length_penalty=1.0)}
    assert verdict(BEAMS, **search).differences[0].field == "sequences_scores"
    with second_decoding_is_recomputed():
        assert verdict(BEAMS, **search).status == "pass"


def test_a_negative_prompt_is_not_repeated_for_beams():
    """5.24.0 raises."""
    found = verdict(BEAMS, beams=2, negative=(9,))
    assert (found.status, found.differences[0].kind) == ("fail", "crash")


def test_each_sequence_that_is_sampled_of_a_row_is_guided_alone():
    assert verdict(ALONE, copies=2).status == "pass"
    with second_decoding_swaps_rows():
        assert verdict(ALONE, copies=2).differences[0].field == "scores"


def test_a_negative_prompt_is_not_repeated_for_sequences():
    """5.24.0 raises."""
    found = verdict(ALONE, negative=(9,), copies=2)
    assert (found.status, found.differences[0].kind) == ("fail", "crash")


def test_what_guides_nothing_is_not_judged():
    case = small_case("llama", rows=ROWS, family="rollback", plan=RollbackPlan(negative=(9,)))
    assert judge(case, [ALONE], Installed()).verdicts[ALONE].status == "not-applicable"
