"""What a plan of the prefill family makes of a case, and what is read from a drafted run."""

import pytest
import torch
from toolbox import small_case
from zoo import arriving, drafting, planted

from conformance import upstream
from conformance.drafting.assistants import assistant
from conformance.drafting.comparing import UNSOUND, matches_plain
from conformance.drafting.modes import modes
from conformance.drafting.preparations import Preparation, Preparations
from conformance.drafting.processors import EndsWith, stop_conditions
from conformance.drafting.rounds import Round, rounds
from conformance.drafting.states import aligned_gap, compare_caches, compare_states
from conformance.endings import text_of
from conformance.judge import judge
from conformance.outcome import Outcome
from conformance.plans.prefill import PrefillPlan
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference


def runs_of(rows=((3, 4, 5, 6),), architecture="llama", settings=None, **plan):
    case = small_case(architecture, family="prefill", rows=rows, plan=plan, **(settings or {}))
    return Runs(case, Installed())


@pytest.mark.parametrize(
    ("rows", "turns", "valid"),
    [
        (((3, 4, 5, 6),), (1, 3), (1, 3)),
        (((3, 4, 5, 6),), (4, 9), ()),
        (((3, 4, 5, 6), (7,)), (2, 3), ()),
        (((3, 4, 5, 6), (7, 8, 9)), (1, 2, 3), (2, 3)),
    ],
)
def test_turns_leave_every_row_something_to_hold_and_to_continue(rows, turns, valid):
    assert modes(runs_of(rows, turns=turns)).turns == valid


def test_a_whole_prompt_in_the_cache_is_given_again_with_all_its_ids():
    own = modes(runs_of(turns=(2,), whole=True, only_new=True))
    assert own.turns == (2, 4)
    assert own.left_out(4, own.width) == 0
    assert own.first_iterations == 1
    assert upstream.length_of(own.cache()) == 4


def test_a_whole_prompt_that_is_fed_again_is_seen():
    """By the rule alone: 5.24.0 does so itself, and would be blamed."""
    case = small_case(family="prefill", rows=((3, 4, 5),), plan={"whole": True})
    assert not matches_plain(Runs(case, Reference()), "turns").differences
    with arriving.whole_prompt_fed_again():
        assert matches_plain(Runs(case, Reference()), "turns").differences


def test_a_whole_prompt_that_cannot_be_taken_back_is_refused_clearly():
    checks = ["continuing-matches-from-scratch"]
    for architecture, status in (("llama", "pass"), ("mamba2", "not-applicable")):
        case = small_case(architecture, family="prefill", rows=((3, 4, 5),), plan={"whole": True})
        assert judge(case, checks, Reference()).verdicts[checks[0]].status == status


@pytest.mark.parametrize(
    ("plan", "given"),
    [
        ({}, [[0, 1, 2, 3], [0, 0, 0, 1]]),
        ({"turns": (3,)}, [[0, 1, 2, 3], [0, 0, 0, 1]]),
        ({"turns": (3,), "only_new": True}, [[3], [1]]),
        ({"turns": (3,), "only_new": True, "embeds": True}, [[0, 1, 2, 3], [0, 0, 0, 1]]),
    ],
)
def test_positions_are_those_of_what_is_given(plan, given):
    own = modes(runs_of(((3, 4, 5, 6), (7, 8)), positions=True, **plan))
    assert own.call(own.everything, own.scenario.model()).inputs["position_ids"].tolist() == given


def test_positions_are_not_given_where_a_type_takes_none():
    for architecture in ("t5", "mamba2"):
        assert not modes(runs_of(architecture=architecture, positions=True)).positions


def test_an_assistant_may_be_of_the_other_dtype():
    for dtype, other in (("float32", torch.float64), ("float64", torch.float32)):
        runs = runs_of(drafter="noisy", assistant_retyped=True, settings={"dtype": dtype})
        assert assistant(runs.scenario, runs.case.plan).dtype == other


def test_a_block_is_drafted_where_the_release_has_an_assistant_for_it():
    runs = runs_of(drafter="block", most=3, settings={"max_new_tokens": 6})
    model = assistant(runs.scenario, runs.case.plan)
    assert hasattr(model.config, "block_size") == upstream.drafts_blocks()
    for subject in (Installed(), Reference()):
        verdicts = judge(runs.case, ["assisted-matches-plain", "drafts-are-as-long-as-asked"], subject).verdicts
        assert {v.status for v in verdicts.values()} == {"pass"}


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_translated_to_another_vocabulary_changes_nothing(seed):
    runs = runs_of(drafter="translated", assistant_seed=seed, settings={"max_new_tokens": 6})
    own = modes(runs)
    call = own.call(own.everything, own.scenario.model())
    assert call.extras["assistant_model"].config.vocab_size == own.scenario.vocabulary + (7 if seed == 1 else -5)
    words = call.extras["tokenizer"].decode([3, 4])
    assert call.extras["tokenizer"](words)["input_ids"] == [3, 4]
    assert call.extras["assistant_tokenizer"](words)["input_ids"] != [3, 4]
    for subject in (Installed(), Reference()):
        assert judge(runs.case, ["assisted-matches-plain"], subject).verdicts["assisted-matches-plain"].status == "pass"


def test_parts_come_in_the_order_of_the_ladder():
    own = modes(runs_of(drafter="lookup", chunk=2, embeds=True))
    assert own.everything == ("embeds", "chunk", "draft")
    assert own.up_to("chunk") == ("embeds", "chunk")


def test_the_callers_own_limit_is_more_than_the_settings_say():
    own = modes(runs_of(drafter="lookup", beyond=2, settings={"max_new_tokens": 5}))
    assert own.everything == ("limit", "draft")
    call = own.call(("limit",), own.scenario.model())
    assert call.generation_config.max_new_tokens == 3
    assert [getattr(criterion, "max_length", None) for criterion in call.criteria] == [9, None]
    plain = own.call((), own.scenario.model())
    assert (plain.generation_config.max_new_tokens, plain.criteria) == (5, ())


@pytest.mark.parametrize(("settings", "plan"), [({"max_new_tokens": 1}, {}), ({"max_new_tokens": 5}, {"min_new": 2})])
def test_a_limit_that_something_else_is_about_is_told_by_the_settings(settings, plan):
    assert modes(runs_of(beyond=2, settings=settings, **plan)).everything == ()


def limited(subject=Installed, architecture="llama", check="callers-limit-counts", **plan):
    asked = {"rows": ((3, 4, 5, 3),), "plan": {"beyond": 2, **plan}, "max_new_tokens": 6}
    return judge(small_case(architecture, family="prefill", **asked), [check], subject()).verdicts[check]


@pytest.mark.parametrize("architecture", ["llama", "bart:seq2seq"])
def test_the_callers_own_limit_counts(architecture):
    """5.24.0 makes a static cache and the tables of a search for what the settings say, and raises."""
    assert limited(architecture=architecture).status == "pass"
    assert limited(architecture=architecture, static=True).differences[0].kind == "crash"
    assert limited(architecture=architecture, beams=2).differences[0].kind == "crash"


def test_beams_that_go_on_to_the_callers_own_limit_pass():
    with arriving.searches_know_the_callers_limit():
        assert limited(beams=2).status == "pass"
    with arriving.searches_know_the_callers_limit(less=1):
        found = limited(beams=2)
    assert (found.status, found.differences[0].kind, found.differences[0].where) == ("fail", "length", "beam search")


def test_a_loop_without_an_end_is_ended():
    """5.24.0 adds nothing in a round beyond the limit of its settings, and never asks to stop."""
    lookup = {"check": "prompt-lookup-matches-plain", "drafter": "lookup"}
    assert limited(**lookup).differences[0].got.startswith("TookTooLong: 31 rounds without a new token")
    assert limited(Reference, **lookup).status == "pass"


def test_what_is_of_no_effect_is_no_need():
    plan = PrefillPlan(
        chunk=2, schedule="heuristic", threshold=0.2, made_by="lookup", ids_too=True, beams=2, exit_layer=2
    )
    assert plan.traits() == ("chunk",)
    assert next(plan.halves()) == PrefillPlan(chunk=2)
    assert plan.replace(drafter="same").traits() == ("drafter", "schedule", "threshold", "chunk")


def test_embeddings_come_with_ids_where_the_plan_says_so():
    """On an encoder-decoder never: it refuses both."""
    for architecture, ids_too, start in (("llama", True, 4), ("llama", False, 0), ("bart:seq2seq", True, 1)):
        own = modes(runs_of(architecture=architecture, embeds=True, ids_too=ids_too))
        assert ("input_ids" in own.call(("embeds",), own.scenario.model()).inputs) == (start == 4)
        assert own.start(("embeds",)) == start


@pytest.mark.parametrize("plan", [{"embeds": True}, {"embeds": True, "ids_too": True}, {"turns": (2,)}, {}])
def test_a_least_length_leaves_as_many_new_tokens_as_a_least_number(plan):
    """Whatever the length of what is given; with an end token that would come first."""
    told = []
    for min_as_length in (False, True):
        runs = runs_of(min_new=3, min_as_length=min_as_length, **plan, settings={"eos_at": ((0, 1),)})
        outcome = modes(runs).outcome(modes(runs).everything)
        told.append(outcome.sequences[0].tolist())
    assert told[0] == told[1]
    assert len(told[0]) >= 3


def test_earlier_turns_leave_just_what_they_should():
    for made_by in ("plain", "chunked", "lookup", "assisted"):
        for static in (False, True):
            own = modes(runs_of(((3, 4, 3, 4, 3, 4, 3),), turns=(4, 5), decoded=2, made_by=made_by, static=static))
            assert upstream.length_of(own.cache()) == 5
            assert own.cache() is not own.cache()
            assert (upstream.fixed_size(own.cache()) is not None) == static


def test_a_mode_that_a_type_refuses_leaves_the_cache_of_a_plain_call():
    own = modes(runs_of(architecture="mamba2", turns=(2,), made_by="assisted"))
    assert own.made
    assert upstream.is_cache(own.cache())


def test_a_stop_condition_waits_for_what_plain_decoding_says():
    runs = runs_of(stop_at=(1,))
    assert modes(runs).stops == (runs.alone[0].tokens(0)[1],)


def test_a_mask_is_left_out_only_where_none_can_be_guessed():
    assert modes(runs_of(bare=True)).bare
    assert not modes(runs_of(((0, 3),), bare=True)).bare
    assert not modes(runs_of(((2, 3), (4,)), bare=True)).bare


@pytest.mark.parametrize("drafter", ["same", "noisy", "shallow", "other", "scripted"])
def test_assistants_are_derived_from_the_case(drafter):
    runs = runs_of(drafter=drafter, most=2, argument=drafter == "same")
    model = assistant(runs.scenario, runs.case.plan)
    assert model.config.vocab_size == runs.scenario.vocabulary
    assert model.generation_config.num_assistant_tokens == (20 if drafter == "same" else 2)
    assert model.config.num_hidden_layers == (1 if drafter == "shallow" else 2)


def test_an_assistant_may_say_more_in_its_own_config():
    said = {"least": "min_new_tokens", "most": "max_length", "penalty": "repetition_penalty"}
    for own, field in said.items():
        runs = runs_of(drafter="same", assistant_own=own)
        assert getattr(assistant(runs.scenario, runs.case.plan).generation_config, field) is not None


def test_a_stop_is_told_as_text_only_where_no_other_tokens_read_like_it():
    both = stop_conditions((30, 26, 52), 64, as_text=True)  # abe, aba, aca
    assert isinstance(both[0], EndsWith)
    assert both[0].tokens.tolist() == [26, 52]
    assert both[1].stop_strings == (text_of(30),)
    assert [type(one) for one in stop_conditions((30,), 64, as_text=False)] == [EndsWith]
    assert stop_conditions((), 64, as_text=True) == ()


def test_a_model_that_drafts_for_itself_is_told_from_the_one_that_verifies():
    runs = runs_of(drafter="early_exit", most=2, settings={"max_new_tokens": 8})
    seen = modes(runs).outcome(("draft",)).extra["preparations"]
    assert {call.who for call in seen} == {"main", "first layers"}
    checks = ("drafts-are-as-long-as-asked", "first-iteration-happens-once", "early-exit-matches-plain")
    assert {v.status for v in judge(runs.case, checks, Installed()).verdicts.values()} == {"pass"}


def test_a_run_is_not_measured_by_plain_decoding_that_is_wrong_itself(monkeypatch):
    """A plan's processors lead to tokens that the rung below has not decoded."""
    runs = runs_of(drafter="same", min_new=4, settings={"eos_at": ((0, 1),), "max_new_tokens": 6})
    right, drafted = runs.alone_under, modes(runs).outcome(("draft",))
    monkeypatch.setattr(runs, "alone_under", lambda *a: [step + 0.1 * (n > 2) for n, step in enumerate(right(*a))])
    assert matches_plain(runs, "draft").blocked_by == UNSOUND
    drafted.logits[1].add_(1.0)  # before plain decoding goes wrong
    assert "step 1" in matches_plain(runs, "draft").differences[0].where


def test_the_rung_that_is_wrong_under_other_tokens_is_to_blame(monkeypatch):
    plain = RightUnderItsOwnTokens(small_case(**STEERED), Installed())
    monkeypatch.setattr("conformance.judge.Runs", lambda *_: plain)
    verdict = judge(plain.case, ["assisted-matches-plain"], Installed()).verdicts["assisted-matches-plain"]
    assert verdict.label == f"blocked-by {UNSOUND}"
    assert verdict.differences


STEERED = {
    "family": "prefill",
    "rows": ((3, 4, 5, 6),),
    "plan": {"drafter": "same", "min_new": 4},
    "eos_at": ((0, 1),),
    "max_new_tokens": 6,
}


class RightUnderItsOwnTokens(Runs):
    """Plain decoding under any other tokens than its own is off."""

    def alone_under(self, row, tokens):
        return [step + 0.1 * (n > 2) for n, step in enumerate(super().alone_under(row, tokens))]


@pytest.mark.parametrize(
    ("static", "label"),
    [(True, "blocked-by installed static-matches-dynamic"), (False, "fail")],
    ids=["static", "dynamic"],
)
def test_only_a_rung_that_the_plan_rests_on_is_to_blame(static, label):
    case = small_case(family="prefill", plan={"drafter": "same", "static": static})
    with planted.static_layer_scales_values(), drafting.loses_the_bonus_token():
        verdict = judge(case, ["assisted-matches-plain"], Reference()).verdicts["assisted-matches-plain"]
    assert verdict.label == label


def test_a_plan_rests_on_the_rungs_of_what_it_has():
    rungs = ("static-matches-dynamic", "padded-row-matches-alone", "several-tokens-match-one-by-one")
    told = {
        PrefillPlan(embeds=True): (False, True, False),
        PrefillPlan(chunk=2, static=True): (True, True, True),
        PrefillPlan(drafter="same"): (False, False, True),
        PrefillPlan(drafter="same", assistant_static=True): (True, False, True),
        PrefillPlan(turns=(2,)): (False, True, True),
    }
    for plan, rests in told.items():
        assert tuple(map(plan.rests_on, rungs)) == rests
        assert plan.rests_on("cached-matches-recomputed")


def test_a_refusal_for_want_of_a_cache_is_one_only_where_there_is_none():
    case = small_case("minimax", family="prefill", rows=((3, 4, 3, 4),), plan={"drafter": "lookup"})
    verdict = judge(case, ["prompt-lookup-matches-plain"], Installed()).verdicts["prompt-lookup-matches-plain"]
    assert verdict.status == "fail"
    assert "said to be missing" in verdict.differences[0].expected


def test_a_row_that_the_type_documents_to_be_another_when_padded_runs_alone():
    assert modes(runs_of(((3, 4), (5, 6, 7)), "xlstm", chunk=2)).rows == [0]
    assert modes(runs_of(((3, 4), (5, 6)), "xlstm", chunk=2)).rows == [0, 1]


def test_a_type_that_feeds_other_tokens_is_not_accused_when_it_raises():
    rows = ((3, 4, 5, 6, 7, 8),)
    case = small_case("reformer", family="prefill", rows=rows, plan={"chunk": 2})
    verdicts = {s.name: judge(case, ["chunked-prefill-matches-whole"], s).verdicts for s in (Installed(), Reference())}
    assert {v.status for its in verdicts.values() for v in its.values()} == {"not-applicable"}


def test_a_script_has_its_way_position_by_position():
    runs = runs_of(drafter="scripted", script=(True, False))
    ids = torch.tensor([[3, 4]])
    mine, right = assistant(runs.scenario, runs.case.plan), runs.scenario.model()
    with torch.no_grad():
        assert torch.equal(mine(ids).logits, right(ids).logits)
        assert torch.equal(mine(ids[:, :1]).logits, right(ids[:, :1]).logits.roll(1, -1))


def test_preparations_are_seen_and_the_method_is_put_back():
    runs = runs_of()
    model = runs.scenario.model()
    outcome = runs.run(runs.call(), model=model, probes=[Preparations()])
    seen = outcome.extra["preparations"]
    assert [call.first for call in seen] == [True, False, False, False]
    assert [call.fed for call in seen] == [4, 1, 1, 1]
    assert "prepare_inputs_for_generation" not in vars(model)


def test_rounds_are_read_from_the_main_models_preparations():
    seen = [
        Preparation("main", True, (1, 2, 3, 4), 4),  # the prompt 1 2 and the draft 3 4
        Preparation("assistant", False, (1, 2, 3, 9), 1),
        Preparation("main", False, (1, 2, 3, 9, 8), 2),
        Preparation("main", False, (1, 2, 3), 1),  # feeds again what was accepted
    ]
    assert rounds(seen, 2, [1, 2, 3, 9, 7]) == [Round(2, (3, 4), (3, 9)), Round(4, (8,), (7,))]
    assert [r.accepted for r in rounds(seen, 2, [1, 2, 3, 9, 7])] == [1, 0]


def test_attention_weights_may_have_more_keys_without_weight():
    weights = torch.tensor([[0.25, 0.75]])
    assert aligned_gap(torch.tensor([[0.0, 0.25, 0.75, 0.0]]), weights) == 0
    assert aligned_gap(torch.tensor([[0.5, 0.25, 0.25]]), weights) == pytest.approx(0.5)
    assert aligned_gap(torch.ones(2, 2), torch.ones(1, 2)) is None


def test_states_are_compared_step_by_step():
    states = {
        ".hidden_states.length": 2,
        ".hidden_states.0.0": torch.ones(1, 2),
        ".hidden_states.1.0": torch.ones(1, 2),
    }
    assert not compare_states(states, states, 2).differences
    wrong = {**states, ".hidden_states.1.0": torch.zeros(1, 2)}
    assert compare_states(wrong, states, 2).differences[0].where == ".hidden_states.1.0"
    first = {path: state for path, state in wrong.items() if ".1." not in path}
    assert not compare_states(first, states, 1).differences
    assert compare_states(states, first, 2).differences[0].kind == "length"
    del wrong[".hidden_states.1.0"]
    assert compare_states(wrong, states, 2).differences[0].kind == "missing"


def test_how_a_cache_would_make_further_layers_is_no_difference():
    plain = Outcome(cache={".layers.0.record_past": False, f".{upstream.MAKES_LAYERS}": None})
    assert not compare_caches(Outcome(cache={".layers.0.record_past": False}), plain).differences
    assert compare_caches(Outcome(cache={f".{upstream.MAKES_LAYERS}": None}), plain).differences


def test_the_rung_below_feeds_as_many_at_once():
    assert PrefillPlan(chunk=3).sizes() == [3, 3]
    assert PrefillPlan(drafter="same", most=4).sizes() == [5, 5]
    assert sum(PrefillPlan(chunk=30).sizes()) == len(PrefillPlan(chunk=30).continuation)
