"""Where faults of a prefill sit: two of its parts at once. How often each pair, and each rare part, is drawn."""

import pytest
from test_draws import drawn, share

pytestmark = pytest.mark.quality


def width(case):
    return max(map(len, case.prompt.rows))


def continues(case):
    return case.plan.continues and (case.plan.whole or min(case.plan.turns) < width(case))


def chunked(case):
    return case.plan.chunk > 0


def drafts(case):
    return case.plan.drafts


def seen(case):
    return case.settings.output_hidden_states or case.settings.output_attentions


SHARES = {
    "chunks of one": (0.02, lambda case: case.plan.chunk == 1),
    "chunks inside": (0.1, lambda case: 0 < case.plan.chunk < width(case)),
    "chunks as long as the prompt": (0.01, lambda case: case.plan.chunk == width(case)),
    "chunks longer": (0.02, lambda case: case.plan.chunk > width(case)),
    "chunks, padded": (0.04, lambda case: chunked(case) and case.prompt.padded),
    "chunks, continued": (0.04, lambda case: chunked(case) and continues(case)),
    "chunks, continued, padded": (0.008, lambda case: chunked(case) and continues(case) and case.prompt.padded),
    "chunks, continued, static": (0.008, lambda case: chunked(case) and continues(case) and case.plan.static),
    "chunks, embeddings": (0.02, lambda case: chunked(case) and case.plan.embeds),
    "continued, padded": (0.02, lambda case: continues(case) and case.prompt.padded),
    "continued, static": (0.02, lambda case: continues(case) and case.plan.static),
    "continued, new ids only, positions": (0.015, lambda case: case.plan.only_new and case.plan.positions),
    "continued, new ids only, no mask": (0.01, lambda case: case.plan.only_new and case.plan.bare),
    "drafts, continued": (0.04, lambda case: drafts(case) and continues(case)),
    "drafts, continued, static": (0.005, lambda case: drafts(case) and continues(case) and case.plan.static),
    "drafts, chunks": (0.04, lambda case: drafts(case) and chunked(case)),
    "drafts, chunks, embeddings": (0.005, lambda case: drafts(case) and chunked(case) and case.plan.embeds),
    "drafts, embeddings": (0.04, lambda case: drafts(case) and case.plan.embeds),
    "drafts, one embedding": (0.005, lambda case: drafts(case) and case.plan.embeds and width(case) == 1),
    "drafts, static": (0.04, lambda case: drafts(case) and case.plan.static),
    "drafts, both static": (0.005, lambda case: drafts(case) and case.plan.static and case.plan.assistant_static),
    "drafts, told by keyword": (0.08, lambda case: drafts(case) and case.plan.argument),
    "drafts, threshold": (0.08, lambda case: drafts(case) and case.plan.threshold > 0),
    "drafts, guided": (0.03, lambda case: drafts(case) and case.plan.guidance != 1.0),
    "drafts, penalty": (0.03, lambda case: drafts(case) and case.settings.repetition_penalty != 1.0),
    "drafts, no n-gram twice": (0.03, lambda case: drafts(case) and case.plan.ngrams > 0),
    "drafts, least length": (0.02, lambda case: drafts(case) and case.plan.min_new > 0),
    "drafts, forced first": (0.01, lambda case: drafts(case) and case.plan.forced_first),
    "drafts, forced end": (0.02, lambda case: drafts(case) and case.settings.forced_eos),
    "drafts, sampled": (0.05, lambda case: drafts(case) and case.settings.do_sample),
    "drafts, stop conditions": (0.1, lambda case: drafts(case) and bool(case.plan.stop_at)),
    "drafts, a limit beyond": (0.015, lambda case: drafts(case) and case.plan.beyond > 0),
    "a limit beyond, static": (0.008, lambda case: case.plan.beyond > 0 and case.plan.static),
    "a limit beyond, beams": (0.004, lambda case: case.plan.beyond > 0 and case.plan.beams > 1),
    "drafts, states compared": (
        0.15,
        lambda case: drafts(case) and seen(case) and not continues(case) and not chunked(case),
    ),
}
MADE_BY = ("plain", "chunked", "lookup", "assisted")
SCHEDULES = ("constant", "heuristic", "heuristic_transient")


@pytest.fixture(scope="module")
def llamas():
    return drawn("prefill", "llama", 1000)


@pytest.mark.parametrize(("least", "holds"), SHARES.values(), ids=SHARES)
def test_every_combination_is_drawn_often_enough(llamas, least, holds):
    assert share(llamas, holds) >= least


def test_every_length_of_a_draft_schedule_and_maker_of_a_cache_is_drawn_often_enough(llamas):
    for most in range(1, 9):
        assert share(llamas, lambda case, most=most: drafts(case) and case.plan.most == most) >= 0.03
    for schedule in SCHEDULES:
        assert share(llamas, lambda case, its=schedule: drafts(case) and case.plan.schedule == its) >= 0.08
    for maker in MADE_BY:
        assert share(llamas, lambda case, its=maker: continues(case) and case.plan.made_by == its) >= 0.02


def test_images_are_split_by_chunks_or_come_before_a_draft_often_enough():
    found = [case for case in drawn("prefill", "llava", 300) if case.prompt.images]
    assert len(found) >= 150
    assert share(found, lambda case: 0 < case.plan.chunk < width(case)) >= 0.1
    assert share(found, continues) >= 0.05
    assert share(found, drafts) >= 0.4


def test_an_assistant_that_attends_to_the_models_own_states_is_drawn_often_enough():
    assert share(drawn("prefill", "gemma4_text", 200), lambda case: case.plan.drafter == "sharing") >= 0.05
    assert share(drawn("sampling", "gemma4_text", 200), lambda case: case.plan.drafter == "sharing") >= 0.1
