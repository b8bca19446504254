"""What a plan of the prefill family makes of a case, and what is read from a drafted run."""

import pytest
import torch
from toolbox import small_case

from conformance import upstream
from conformance.drafting.assistants import assistant
from conformance.drafting.modes import modes
from conformance.drafting.preparations import Preparation, Preparations
from conformance.drafting.rounds import Round, rounds
from conformance.drafting.states import aligned_gap, compare_states
from conformance.plans.prefill import PrefillPlan
from conformance.runs import Runs
from conformance.subjects.installed import Installed


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


def test_parts_come_in_the_order_of_the_ladder():
    own = modes(runs_of(drafter="lookup", chunk=2, embeds=True))
    assert own.everything == ("embeds", "chunk", "draft")
    assert own.up_to("chunk") == ("embeds", "chunk")


def test_earlier_turns_leave_just_what_they_should():
    for made_by in ("plain", "lookup"):
        own = modes(runs_of(((3, 4, 3, 4, 3, 4, 3),), turns=(2, 5), decoded=2, made_by=made_by))
        assert upstream.length_of(own.cache()) == 5
        assert own.cache() is not own.cache()


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
    assert not compare_states(wrong, states, 1).differences
    del wrong[".hidden_states.1.0"]
    assert compare_states(wrong, states, 2).differences[0].kind == "missing"


def test_the_rung_below_feeds_as_many_at_once():
    assert PrefillPlan(chunk=3).sizes() == [3, 3]
    assert PrefillPlan(drafter="same", most=4).sizes() == [5, 5]
    assert sum(PrefillPlan(chunk=30).sizes()) == len(PrefillPlan(chunk=30).continuation)
