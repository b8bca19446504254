"""A part of a model left on `meta` on purpose, as a loader does that forgets it; and what is then said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from conformance import interruption
from conformance.outcome import Crash
from conformance.placing.refusing import is_telling, words
from conformance.reference.planner import make_units
from conformance.runs import Runs
from conformance.simulation.meta_reads import MetaReadsProbe
from conformance.verdicts import Comparison, Difference

if TYPE_CHECKING:
    from conformance.placing.world import World


def strand(model: nn.Module, number: int) -> list[str]:
    """Put the parameters of one part on `meta`, with no hook; the names of those that are lost."""
    parts = make_units(model, set(getattr(model, "_no_split_modules", None) or ()))
    sized = [unit for unit in parts if _parameters(model, unit.names)]
    if not sized:
        return []
    lost = _parameters(model, sized[number % len(sized)].names)
    for name in lost:
        module_name, _, tensor_name = name.rpartition(".")
        owner = model.get_submodule(module_name)
        parameter = owner._parameters[tensor_name]
        assert parameter is not None
        owner._parameters[tensor_name] = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
    return lost


def _parameters(model: nn.Module, units: tuple[str, ...]) -> list[str]:
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    return [name for name in names if any(name == u or u == "" or name.startswith(f"{u}.") for u in units)]


def stranded_outcome(runs: Runs, world: World) -> Comparison:
    """Strand a part of the unplaced model, audit it where the subject can, and run the case's call on it."""
    from conformance.placing.placed import Placed

    model = world.copied()
    lost = strand(model, runs.case.plan.stranded)
    runs.events.add("stranded")
    try:
        getattr(runs.subject, "audit", lambda _: None)(model)
    except BaseException as error:  # noqa: BLE001 - its words are what is looked at
        interruption.let_through(error)
        return Comparison() if _names_one(str(error), lost) else _unclear("audit", Crash.of(error), lost)
    outcome = world.outcome(Placed(model), probes=[MetaReadsProbe()])
    if outcome.crash is None and outcome.extra["meta_reads"].reads:
        ops = ", ".join(sorted(outcome.extra["meta_reads"].reads))
        return Comparison.of(Difference("values", "meta input", f"an error naming {lost[0]}", f"none; {ops} read it"))
    if outcome.crash is None:
        return Comparison(not_applicable="the decoding does not use the part that was left on meta")
    return Comparison() if _names_one(outcome.crash.message, lost) else _unclear("error", outcome.crash, lost)


def _unclear(field: str, crash: Crash, lost: list[str]) -> Comparison:
    return Comparison.of(Difference("unclear", field, f"an error naming {lost[0]}", str(crash)))


def _names_one(message: str, lost: list[str]) -> bool:
    """Whether a message names a lost weight, or the module that holds it: as a whole word, and not as any word."""
    holders = {name.rpartition(".")[0] for name in lost}
    return bool(words(message) & {*lost, *filter(is_telling, holders)})
