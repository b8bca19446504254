"""Where the checks of a placement apply: each gives the reason why one does not, or None."""

from __future__ import annotations

import torch

from conformance.errors import NotBuildable
from conformance.outcome import Crash
from conformance.placing import devices
from conformance.placing.world import World
from conformance.registry import Guard
from conformance.runs import Runs
from conformance.simulation.meta_reads import MetaReads, MetaReadsProbe


def described(runs: Runs) -> World | str:
    """What the case is about, whether or not it loads without a placement; or why it cannot be had here."""

    def make() -> World | str:
        if not hasattr(runs.subject, "place"):
            return "the subject places no models"
        if reason := devices.why_not(runs.case.plan):
            return reason
        if runs.case.plan.accelerated and runs.case.plan.by_itself:
            return "models that decode by themselves are placed without accelerators only"
        try:
            return World(runs)
        except NotBuildable as error:
            return str(error)

    return runs.once("placement world", make)


def world(runs: Runs) -> World | str:
    """What the case is about, or why it cannot be had here."""
    made = described(runs)
    crash = None if isinstance(made, str) else made.unplaced.crash
    return made if crash is None else f"the same without a placement raises {crash.type}"


def loads_a_checkpoint(runs: Runs) -> str | None:
    """Why nothing is read from a checkpoint that was saved."""
    made = described(runs)
    if isinstance(made, str):
        return made
    if runs.case.plan.loader != "from_pretrained":
        return "the loader reads no checkpoint"
    return f"the model cannot be saved: {made.checkpoint}" if isinstance(made.checkpoint, Crash) else None


def of(runs: Runs) -> World:
    """What the case is about; it can be had."""
    made = world(runs)
    assert isinstance(made, World)
    return made


def cannot_be_had(runs: Runs) -> str | None:
    """Why the case cannot be had here."""
    made = world(runs)
    return made if isinstance(made, str) else None


def was_placed(runs: Runs) -> str | None:
    """Why there is no placed model to look at."""
    if reason := cannot_be_had(runs):
        return reason
    if runs.case.plan.stranded is not None:
        return "it is damaged on purpose"
    return "the model could not be placed" if of(runs).placed.crash else None


def is_whole(runs: Runs) -> str | None:
    """Why no run of the placed model says anything."""
    if reason := was_placed(runs):
        return reason
    return "a weight is stranded already, which is another check's" if of(runs).placed.report.stranded else None


def came_apart(runs: Runs) -> bool:
    """Whether a tied group did that the map keeps together."""
    return bool(of(runs).placed.report.split) and not runs.case.plan.split_tied


def can_run(runs: Runs) -> str | None:
    """Why the placed and the undispatched model cannot be compared within a bound."""
    if reason := is_whole(runs):
        return reason
    if of(runs).dtype != of(runs).base.dtype:
        return "it is loaded in a dtype of few digits, where rounding decides: its weights are compared"
    return _works_undispatched(runs)


def can_run_in_few_digits(runs: Runs) -> str | None:
    """Why they cannot be compared in a dtype of few digits."""
    if reason := is_whole(runs):
        return reason
    if of(runs).dtype == of(runs).base.dtype:
        return "it is loaded in the dtype that it has"
    if runs.case.plan.accelerated and not runs.case.plan.simulated:
        return "a real device has kernels of its own, and rounding decides"
    return _works_undispatched(runs)


def _works_undispatched(runs: Runs) -> str | None:
    if runs.case.plan.mode == "offloaded cache" and not torch.cuda.is_available():
        return "an offloaded cache needs CUDA"
    crash = of(runs).unplaced_outcome.crash
    return f"the undispatched model raises {crash.type} in this mode" if crash is not None else None


def has_decoded(runs: Runs) -> str | None:
    """Why there is no placed model that has decoded, in whatever dtype, as the undispatched one has."""
    if reason := is_whole(runs) or _works_undispatched(runs):
        return reason
    return "the placed model does not decode" if of(runs).placed_outcome.crash else None


def watched(runs: Runs) -> MetaReads:
    """What ops of the placed model read on `meta`, and across devices."""
    watch: MetaReads = of(runs).placed_outcome.extra[MetaReadsProbe.name]
    return watch


def reads_nothing_on_meta(runs: Runs) -> str | None:
    """Why what a placed model says is garbage, which differs from run to run."""
    return "an op reads meta already, which is another check's" if watched(runs).reads else None


def draws_apart(runs: Runs) -> str | None:
    """Why two runs with the same seed draw other numbers, where they draw any."""
    drew = of(runs).placed_outcome.extra["drew on"] | of(runs).unplaced_outcome.extra["drew on"]
    if len(of(runs).placed_outcome.extra["drew on"]) > 1:
        return "it draws on several devices, and each has random numbers of its own"
    return "a real device draws other numbers" if drew and not devices.draws_like_the_cpu(runs.case.plan) else None


def beside_plain(mode: str) -> Guard:
    """A guard for a mechanism: the case looks at it, on layers on several devices where plain decoding works."""

    def guard(runs: Runs) -> str | None:
        if runs.case.plan.mode != mode:
            return "the case looks at another mode"
        if runs.case.plan.own_generate:
            return "it decodes in a way of its own, without such a mechanism"
        if runs.case.plan.accelerated and not runs.case.plan.simulated:
            return "copies between devices are counted on simulated ones only"
        if reason := can_run(runs):
            return reason
        if len(set(of(runs).placed.holding) - {"offloaded"}) < 2:
            return "fewer than two devices hold weights"
        crash = of(runs).placed_outcome.crash
        return None if crash is None else f"the placed model raises {crash.type} in plain decoding already"

    return guard
