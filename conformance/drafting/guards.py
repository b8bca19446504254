"""Where the checks of the family apply: conditions of their guards."""

from __future__ import annotations

from collections.abc import Callable

from conformance import upstream
from conformance.drafting.modes import modes
from conformance.outcome import Outcome
from conformance.runs import Runs


def has(part: str) -> Callable[[Runs], bool]:
    """A guard's condition: the plan has this part."""
    return lambda runs: modes(runs).has(part)


def drafts_with(*drafters: str) -> Callable[[Runs], bool]:
    """A guard's condition: one of these drafts."""
    return lambda runs: runs.case.plan.drafter in drafters


def everything(runs: Runs) -> Outcome:
    """The run with the whole plan."""
    own = modes(runs)
    return own.outcome(own.everything)


def runs_at_all(runs: Runs) -> bool:
    """A guard's condition: the run with the whole plan does not raise, and plain decoding neither."""
    return everything(runs).crash is None and not any(runs.alone[row].crash for row in modes(runs).rows)


def takes_embeddings(runs: Runs) -> bool:
    """Whether the model's forward has a parameter for embeddings."""
    return "inputs_embeds" in upstream.forward_parameters(runs.scenario.model_class)


def steered_alike(runs: Runs) -> bool:
    """A guard's condition: greedy decoding, and what does something to the own scores does the same to an assistant's.

    Guidance and watermarks keep a state; a least length, a first token and an end are others for each draft.
    """
    plan, settings = runs.case.plan, runs.case.settings
    otherwise = (
        plan.min_new or plan.guidance != 1.0 or plan.forced_first or plan.assistant_own != "nothing" or plan.watermark
    )
    about_ends = settings.forced_eos or settings.against_eos != "nothing"
    return not (otherwise or about_ends or settings.do_sample)


def script_keeps_its_place(runs: Runs) -> bool:
    """A guard's condition: an assistant with a script knows its position, from a cache that tells how much it holds.

    Else it counts its forwards, and those that feed accepted tokens once more count again. Images without placeholders
    take places in the cache that no id has.
    """
    if runs.case.plan.drafter != "scripted":
        return True
    if runs.scenario.media and runs.scenario.media.token is None:
        return False
    return all(runs.alone[row].cache_length is not None for row in modes(runs).rows)
