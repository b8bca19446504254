"""Whether the cache of a case is the subject's: else programs run on the release's, and say nothing of the subject."""

from __future__ import annotations

from conformance.plans.rollback import MADE
from conformance.programs.prepared import plain_call, plan_of, settings_of
from conformance.runs import Runs
from conformance.subjects import BUILT_IN

NO_METHOD = "the subject makes no cache of its own: it has no `new_cache`"
CALLERS = "the plan's cache is one that the caller makes, whatever the subject is"
LEFT = "the subject makes no cache of its own for this call: its `new_cache` gives None"


def not_the_subjects(runs: Runs) -> str | None:
    """Why no cache of a user's own subject is looked at; None where one is, and for the subjects that come with us."""
    if runs.subject.name in BUILT_IN:
        return None
    if not callable(getattr(runs.subject, "new_cache", None)):
        return NO_METHOD
    if plan_of(runs).cache in MADE:
        return CALLERS
    return LEFT if runs.once("the subject leaves the cache to generate", lambda: _gives_none(runs)) else None


def _gives_none(runs: Runs) -> bool:
    model, plan = runs.scenario.model(), plan_of(runs)
    try:
        made = runs.subject.new_cache(model, plain_call(runs, max_new_tokens=plan.room, **settings_of(runs)))  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - a stranger's; the checks meet it again and say what it raises
        return False
    return made is None
