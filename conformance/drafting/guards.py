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


def unprocessed(runs: Runs) -> bool:
    """A guard's condition: greedy decoding without any processor, on either side."""
    plan, settings = runs.case.plan, runs.case.settings
    steered = plan.ngrams or plan.min_new or plan.guidance != 1.0 or plan.forced_first
    about_ends = settings.forced_eos or settings.against_eos != "nothing"
    penalised = settings.repetition_penalty != 1.0 or plan.assistant_own != "nothing"
    return not (steered or about_ends or penalised or settings.do_sample)
