"""A model that was damaged on purpose, as a loader does that forgets a part; and what is then said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance import interruption
from conformance.outcome import Crash
from conformance.placing.damaging import damage, of_a_placed
from conformance.placing.refusing import is_telling, words
from conformance.plans.placement_told import LEFT_ON_META
from conformance.runs import Runs
from conformance.simulation.meta_reads import MetaReadsProbe
from conformance.verdicts import Comparison, Difference

if TYPE_CHECKING:
    from conformance.placing.world import World


def stranded_outcome(runs: Runs, world: World) -> Comparison:
    """Damage a model and audit it where the subject can; what is left on `meta` is looked at in a decoding, too."""
    left_on_meta = runs.case.plan.damage in LEFT_ON_META
    if not left_on_meta and not hasattr(runs.subject, "audit"):
        return Comparison(not_applicable="the subject audits nothing, and a decoding is not to tell of this damage")
    if reason := _nothing_right_to_damage(world):
        return Comparison(not_applicable=reason)
    with world.present():
        model = world.placed_anew("offloaded, damaged") if of_a_placed(world.plan) else world.copied()
        lost = damage(world.plan, model)
        if isinstance(lost, str):
            return Comparison(not_applicable=lost)
        runs.events.add("stranded")
        error = _raised_by_audit(runs.subject, model)
    if error is not None:
        return Comparison() if _names_one(str(error), lost) else _unclear("audit", str(Crash.of(error)), lost)
    return _decoded(world, model, lost) if left_on_meta else _unclear("audit", "none", lost)


def _nothing_right_to_damage(world: World) -> str | None:
    """Why there is no placed model that is right but for what is damaged, where there has to be one."""
    if not of_a_placed(world.plan):
        return None
    if world.placed.crash is not None:
        return "the model could not be placed"
    return None if world.placed.report.ok else "the model is placed wrong already"


def _raised_by_audit(subject: Any, model: Any) -> BaseException | None:
    try:
        getattr(subject, "audit", lambda _: None)(model)
    except BaseException as error:  # noqa: BLE001 - its words are what is looked at
        interruption.let_through(error)
        return error
    return None


def _decoded(world: World, model: Any, lost: list[str]) -> Comparison:
    """The case's call on a model with something on `meta`, where an audit has said nothing."""
    from conformance.placing.placed import Placed

    outcome = world.outcome(Placed(model), probes=[MetaReadsProbe()])
    if outcome.crash is None and outcome.extra["meta_reads"].reads:
        ops = ", ".join(sorted(outcome.extra["meta_reads"].reads))
        return Comparison.of(Difference("values", "meta input", f"an error naming {lost[0]}", f"none; {ops} read it"))
    if outcome.crash is None:
        return Comparison(not_applicable="the decoding does not use the part that was left on meta")
    return Comparison() if _names_one(outcome.crash.message, lost) else _unclear("error", str(outcome.crash), lost)


def _unclear(field: str, got: str, lost: list[str]) -> Comparison:
    return Comparison.of(Difference("unclear", field, f"an error naming {lost[0]}", got))


def _names_one(message: str, lost: list[str]) -> bool:
    """Whether a message names a lost weight, or the module that holds it: as a whole word, and not as any word."""
    holders = {name.rpartition(".")[0] for name in lost}
    return bool(words(message) & {*lost, *filter(is_telling, holders)})
