"""Assistants that draft from the main model's own keys and values."""

import pytest
from toolbox import small_case

from conformance import upstream
from conformance.drafting.assistants import assistant, shares_states
from conformance.drafting.guards import everything
from conformance.drafting.modes import modes
from conformance.drafting.rounds import rounds
from conformance.judge import judge
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

SCRIPT = (True, True, False, True)
pytestmark = pytest.mark.skipif(not upstream.shares_states("Gemma4ForCausalLM"), reason="the release has none")


def sharing(architecture="gemma4_text", **plan):
    chosen = {"drafter": "sharing", "most": 3, "script": SCRIPT, **plan}
    return small_case(architecture, family="prefill", rows=((3, 4, 5, 6, 7, 8),), max_new_tokens=10, plan=chosen)


@pytest.mark.parametrize("architecture", ["gemma4_text", "gemma4", "gemma4_unified_text", "gemma4_unified"])
def test_what_is_drafted_from_the_models_own_states_changes_nothing(architecture):
    case = sharing(architecture)
    for subject in (Installed(), Reference()):
        verdicts = judge(case, ["assisted-matches-plain", "drafts-are-as-long-as-asked"], subject).verdicts
        assert {verdict.status for verdict in verdicts.values()} == {"pass"}


def test_how_much_is_accepted_is_as_the_script_says():
    runs = Runs(sharing(), Installed())
    outcome = everything(runs)
    start, sequence = modes(runs).start(("draft",)), outcome.sequences[0].tolist()
    found = [r for r in rounds(outcome.extra["preparations"], start, sequence) if r.draft]
    assert {r.accepted for r in found} >= {1, 3}
    for r in found:
        right = next((n for n in range(len(r.draft)) if not SCRIPT[(r.length - start + n) % 4]), len(r.draft))
        assert r.accepted >= right


def test_a_type_that_is_said_to_share_its_states_and_does_not_is_found():
    """5.24.0 lets Gemma 3n pass for one, and raises once the first token is there."""
    case = sharing("gemma3n_text")
    found = judge(case, ["assisted-matches-plain"], Installed()).verdicts["assisted-matches-plain"]
    assert (found.status, found.differences[0].kind) == ("fail", "crash")
    assert judge(case, ["assisted-matches-plain"], Reference()).verdicts["assisted-matches-plain"].status == "pass"


def test_other_types_draft_with_the_model_itself():
    runs = Runs(sharing("llama"), Installed())
    assert not shares_states(runs.scenario, runs.case.plan)
    assert not upstream.attends_to_another(assistant(runs.scenario, runs.case.plan))
