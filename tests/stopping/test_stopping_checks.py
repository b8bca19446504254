"""The checks of deferred stopping: where they apply, what they allow, what is drawn for them."""

import re

import pytest
import torch
from hypothesis import given, seed
from hypothesis import strategies as st
from toolbox import CHECKS_OF, explored, small_case

from conformance import upstream
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.case import Case
from conformance.errors import CaseRefused
from conformance.judge import judge
from conformance.options import Options
from conformance.plainer import plainer_cases
from conformance.plans.stopping import FILLED, StoppingPlan
from conformance.profiles import exploring
from conformance.records import read
from conformance.reporting.summary import summarise
from conformance.runs import Runs
from conformance.simulation.deferral import Deferral
from conformance.stopping.pairs import runs_of
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

MATCHES, REFUSES = "deferred-stop-matches-immediate", "deferral-refuses-when-it-must"
WAITS, ERROR = "deferral-never-waits-for-its-own-step", "no-trace-after-an-error"
EARLY = {"rows": ((3, 4, 5, 6), (7, 8)), "max_new_tokens": 8, "eos_at": ((0, 2), (1, 3))}


def judged(plan=None, architecture="llama", subject=Reference, **settings):
    case = small_case(architecture, family="stopping", plan=plan or {}, **{**EARLY, **settings})
    judgement = judge(case, CHECKS_OF["stopping"], subject())
    assert not judgement.failures()
    return judgement


def test_a_step_is_undone_with_the_cache_outliving_the_call():
    judgement = judged()
    assert {"deferred", "undone: 1, the cache outlives"} <= judgement.events
    assert judgement.verdicts[MATCHES].status == "pass"
    assert judgement.figures["host_syncs_per_token, immediate"] > judgement.figures["host_syncs_per_token, deferred"]


def test_a_stop_by_length_undoes_nothing():
    assert "undone: 0" in judged(eos_at=()).events


HOOKS = {"processor": {"processor": True}, "criterion": {"stop_after": 3}}


@pytest.mark.parametrize(("name", "plan"), HOOKS.items(), ids=HOOKS)
def test_one_more_call_of_a_hook_is_allowed_and_named(name, plan):
    verdict = judged(plan).verdicts[MATCHES]
    assert verdict.status == "allowed"
    assert f"the caller's {name} has seen the undone step" in verdict.reason


REFUSED = {
    "an assistant": ("llama", {"assistant": True}),
    "a cache that cannot": ("llama", {"cache": "fresh", "words": "cannot"}),
    "a cache without the word": ("llama", {"cache": "fresh", "words": "none"}),
    "a recurrent cache": ("mamba2", {}),
    "a state that is a list": ("rwkv", {}),
}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="caches of this release cannot say")
@pytest.mark.parametrize(("architecture", "plan"), REFUSED.values(), ids=REFUSED)
def test_deferral_is_refused_and_the_check_applies(architecture, plan):
    judgement = judged(plan, architecture)
    assert judgement.verdicts[REFUSES].status == "pass"
    assert "not deferred" in judgement.events


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="the installed release does not defer")
def test_a_cache_in_which_the_model_keeps_nothing_forbids_nothing():
    judgement = judged({}, "openai-gpt", Installed)
    assert judgement.verdicts[REFUSES].status == "not-applicable"
    assert judgement.verdicts[MATCHES].status in {"pass", "allowed"}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="the installed release does not defer")
@pytest.mark.parametrize(("tensor_only", "status"), [(True, "allowed"), (False, "fail")])
def test_states_on_modules_are_allowed_where_no_cache_outlives_the_call(tensor_only, status):
    early = {"rows": ((3, 4, 5),), "max_new_tokens": 8, "eos_at": ((0, 1),)}
    case = small_case("recurrent_gemma", family="stopping", plan={"tensor_only": tensor_only}, **early)
    verdict = judge(case, [MATCHES], Installed()).verdicts[MATCHES]
    assert verdict.status == status
    assert ("states: " in verdict.reason) == tensor_only


def test_what_watches_a_run_reads_nothing_that_is_counted():
    class Rests:
        name = "rests"

        def generate(self, model, call):
            model(input_ids=call.inputs["input_ids"])
            return torch.cat([call.inputs["input_ids"]] * 2, dim=-1)

    runs = Runs(small_case("llama", family="stopping", plan={}), Rests())
    outcome = runs.run(runs.call(), model=runs.scenario.model(), watch=True, stream=True, probes=[Deferral(None)])
    seen = outcome.extra[Deferral.name]
    assert (seen.forwards, seen.reads) == (1, 0)


def test_numbers_that_every_forward_writes_anew_are_such_states():
    """nllb-moe keeps how many places its experts had for the tokens of the last forward."""
    early = {"rows": ((3,),), "max_new_tokens": 2, "eos_at": ((0, 0),)}
    sparse = tiny_config("nllb-moe") | {"decoder_layers": 4, "encoder_layers": 4}  # every fourth layer has experts
    case = small_case("nllb-moe", family="stopping", plan={"uncached": True}, config=sparse, **early)
    verdict = judge(case, [MATCHES], Reference()).verdicts[MATCHES]
    assert verdict.status == "allowed"
    assert "states: " in verdict.reason


CALLERS = {
    "fresh": {"cache": "fresh"},
    "filled": {"cache": "filled"},
    "exactly fitting": {"cache": "fresh", "static": True, "room": 0},
    "exactly fitting, filled": {"cache": "filled", "static": True, "room": 0},
    "quantised": {"cache": "fresh", "quantised": True},
    "recording": {"cache": "fresh", "recording": True},
    "tensor only": {"cache": "fresh", "tensor_only": True},
    "uncached": {"uncached": True},
}


@pytest.mark.parametrize("lag", [0, 2])
@pytest.mark.parametrize("plan", CALLERS.values(), ids=CALLERS)
def test_the_reference_leaves_no_trace_in_what_the_caller_passes(plan, lag):
    judgement = judged({**plan, "lag": lag, "streamed": True}, "mistral")
    assert judgement.verdicts[MATCHES].status == "pass"


def test_a_pad_id_outside_the_vocabulary_is_not_fed():
    judgement = judged({"pad_beyond": True}, rows=((3, 4, 5), (6, 7)), max_new_tokens=6, eos_at=((0, 1), (1, 2)))
    assert judgement.verdicts[MATCHES].status == "pass"


@pytest.mark.parametrize("hook", ["streamer", "processor", "criterion"])
def test_an_error_of_a_hook_leaves_no_trace(hook):
    judgement = judged({"cache": "fresh", "raises": hook, "raises_at": 2}, "mistral", eos_at=())
    assert judgement.verdicts[ERROR].status == "pass"


@pytest.mark.parametrize("plan", [{}, {"cache": "fresh", "recording": True}, {"cache": "fresh", "again": True}])
@pytest.mark.parametrize("hook", ["processor", "criterion"])
def test_an_error_of_a_hook_in_the_step_too_many_does_not_show(hook, plan):
    judgement = judged({"raises": hook, "raises_at": 0, **plan}, "mistral")
    verdict = judgement.verdicts[ERROR]
    assert verdict.status == "allowed"
    assert "has raised in the undone step" in verdict.reason
    assert "raises: in the step too many" in judgement.events


def test_states_on_modules_are_of_one_step_more_where_a_streamer_raises():
    plan = {"raises": "streamer", "raises_at": 3}
    case = small_case("recurrent_gemma", family="stopping", plan=plan, rows=((3,),), max_new_tokens=3)
    verdict = judge(case, [ERROR], Installed()).verdicts[ERROR]
    assert verdict.status in ("pass", "allowed", "not-applicable"), verdict


def test_a_hook_may_be_told_the_number_of_the_call_in_the_step_too_many():
    assert judged({"raises": "processor", "raises_at": 4}).verdicts[ERROR].status == "allowed"


def test_a_hook_that_is_never_called_so_often_says_nothing():
    verdict = judged({"raises": "processor", "raises_at": 6}).verdicts[ERROR]
    assert (verdict.status, verdict.reason) == ("not-applicable", "the hook is not called so often")


@pytest.mark.parametrize("architecture", ["llama", "rwkv", "qwen2_vl", "gemma3n_text"])
@pytest.mark.parametrize("plan", [{}, {"cache": "fresh", "static": True}], ids=["made", "static"])
def test_a_second_call_of_the_same_gives_the_same(architecture, plan):
    assert judged({"again": True, **plan}, architecture).verdicts[MATCHES].status == "pass"


class NeverDefers(Reference):
    """Takes every call for one that stops at once."""

    def generate(self, model, call):
        return super().generate(model, call.replace(mechanism="decode"))


def test_a_subject_that_never_defers_has_not_been_tested(folder):
    plainly = {"steered": lambda case: case.replace(plan=StoppingPlan()), "examples": 8}
    explored(folder, NeverDefers(), family="stopping", checks=[MATCHES], **plainly)
    options = Options(checks=(MATCHES,), architectures=("llama",), report=str(folder))
    made = summarise(options, seconds=1.0)
    assert made["exit_code"] == 4
    assert made["exit_reason"].startswith("not enough was exercised: stopping: deferred in none of")


def test_a_step_that_cannot_be_taken_is_waited_for():
    verdict = judged({"cache": "fresh", "static": True, "room": 0}).verdicts[WAITS]
    assert (verdict.status, "no place" in verdict.reason) == ("not-applicable", True)


@pytest.mark.skipif(upstream.lacks("stopping") is None, reason="this release has it")
def test_a_release_without_it_is_not_applicable():
    case = small_case(family="stopping", **EARLY)
    verdicts = judge(case, CHECKS_OF["stopping"], Installed()).verdicts
    assert {verdict.status for verdict in verdicts.values()} == {"not-applicable"}
    assert "no deferred stop check" in verdicts[MATCHES].reason


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="this release has none")
def test_the_installed_release_is_made_to_defer_on_this_device():
    case = small_case(family="stopping", **EARLY)
    judgement = judge(case, [MATCHES], Installed())
    assert runs_of(judgement.runs).seen.deferred
    assert judgement.verdicts[MATCHES].status == "pass"


def drawn(count=60):
    seen: list[Case] = []

    @seed(3)
    @exploring(count)
    @given(st.one_of(cases("stopping", "llama"), cases("stopping", "t5")))
    def draw(case):
        seen.append(case)

    draw()
    return seen


def test_what_is_drawn_fits_the_plan():
    plans = [case.plan for case in drawn()]
    assert {plan.cache for plan in plans} == {"made", "fresh", "filled"}
    assert {plan.lag for plan in plans} == {0, 1, 2}
    assert all(plan.passed_in or not (plan.recording or plan.quantised) or plan.uncached for plan in plans)


def test_nothing_that_is_drawn_or_made_plainer_contradicts_itself():
    for case in drawn():
        Scenario(case)
    for case in drawn()[::10]:
        for plan in case.plan.plainer():
            Scenario(case.replace(plan=plan))
        for plainer in plainer_cases(case):
            assert all(row < len(plainer.prompt.rows) for row, _ in plainer.settings.eos_at)


CONTRADICTIONS = {
    "room": ({"room": 0, "cache": "fresh"}, {}, "plan.room is of no effect without a static cache"),
    "words": ({"words": "none"}, {}, "plan.words is of no effect without a cache that the caller passes"),
    "uncached": ({"uncached": True, "cache": "fresh"}, {}, "plan.cache is of no effect without a cache"),
    "raises at": ({"raises_at": 2}, {}, "plan.raises_at is of no effect without a hook that raises"),
    "streamer": (
        {"raises": "streamer", "raises_at": 0},
        {},
        "plan.raises_at is 0, and a streamer is told nothing of the step too many",
    ),
    "polls": ({"polls": 2}, {}, "plan.polls is of no effect without a device that is late"),
    "row": ({}, {"eos_at": ((2, 0),)}, "settings.eos_at tells of row 2, and the prompt has 2"),
    "criterion": ({}, {"row_stops": ((3, 0),)}, "settings.row_stops tells of row 3, and the prompt has 2"),
    "token": ({}, {"eos": (64,)}, "settings.eos holds token 64, beyond the vocabulary of 64"),
}


@pytest.mark.parametrize(("plan", "settings", "why"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_stored_case_that_contradicts_itself_is_refused_in_a_line(plan, settings, why):
    case = small_case(family="stopping", plan=plan, **{**EARLY, **settings})
    with pytest.raises(CaseRefused, match=f"^{re.escape(why)}$"):
        Scenario(case)


def test_every_way_of_stopping_is_drawn():
    settings = [case.settings for case in drawn(300)]
    for field in ("eos", "eos_at", "eos_unused", "stop_at", "row_stops", "min_new_tokens", "do_sample"):
        assert any(getattr(one, field) for one in settings), field
    assert {one.copies for one in settings} == {1, 2}
    assert {one.limit for one in settings} >= {"max_new_tokens", "max_length"}


def test_ends_are_looked_for_after_what_a_filled_cache_holds():
    filled = [case for case in drawn(120) if case.plan.cache == "filled" and case.settings.eos_at]
    assert filled
    assert all(step >= FILLED for case in filled for _, step in case.settings.eos_at)


@pytest.mark.quality
@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_most_cases_undo_a_step_with_the_cache_outliving_the_call(architecture, folder):
    """Far above the floor of the family, which is for all types together: recurrent caches cannot be put back."""
    explored(folder, Reference(), family="stopping", architecture=architecture, checks=[MATCHES], examples=60)
    undone = [r for r in read(folder) if "undone: 1, the cache outlives" in r.get("events", ())]
    assert len(undone) >= 24
