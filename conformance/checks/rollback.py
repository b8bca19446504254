"""`crop` puts a cache back or says beforehand that it cannot, and what moves a cache's state moves all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance import upstream
from conformance.architectures.cache_kinds import cache_kinds
from conformance.compare import crash_difference
from conformance.plans.rollback import KINDS_OF_KEYS
from conformance.programs.croppable import croppable_after_all, croppable_whatever_ran_before
from conformance.programs.given import given_against_recomputed
from conformance.programs.own_caches import not_the_subjects
from conformance.programs.prepared import plan_of, steps_of
from conformance.programs.steps import Step
from conformance.programs.truths import Unusable
from conformance.programs.windows import grows_in_an_assisted_run
from conformance.registry import Rule, applies, check, family, guarded
from conformance.runs import Runs
from conformance.statefulness import keeps_state
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison, Difference

ROLLBACK = family(
    "rollback",
    floors={
        "op: crop": 0.2,
        "crop: of nothing": 0.05,
        "crop: inside a forward": 0.05,
        "crop: at a boundary": 0.05,
        "op: reset": 0.05,
        "op: reorder": 0.05,
        "op: select": 0.03,
        "op: repeat": 0.03,
        "cache: static": 0.05,
    },
    reachable=(
        "crop: crosses the window",
        "cache: early",
        "cache: quantized",
        "cache: fp8",
        "cache: plain",
        "cache: bare",
        "beams: several",
        "beams: sampled",
        "scores: guided",
        "guided: several sequences",
        "reset: told rows",
    ),
)
GUARDS: tuple[tuple[str, Callable[[Runs], bool]], ...] = (
    ("an offloaded cache needs CUDA", lambda runs: plan_of(runs).cache != "offloaded"),
    (
        "generate does not choose the cache of this type",
        lambda runs: runs.has_default_cache or plan_of(runs).cache == "default",
    ),
    (
        "the layers are not all of full attention",
        lambda runs: plan_of(runs).cache not in ("quantized", "fp8") or _all_of(runs, ("full",)),
    ),
    (
        "a layer of full attention is not enough for this type",
        lambda runs: plan_of(runs).cache != "bare" or _all_of(runs, KINDS_OF_KEYS),
    ),
    (
        "the release has no layer of eight bits",
        lambda runs: plan_of(runs).cache != "fp8" or upstream.fp8_layer() is not None,
    ),
    ("cached decoding of this type is another function by design", lambda runs: "not_incremental" not in runs.facts),
    (
        "the type keeps state on its modules, where a subject's own cache cannot reach it",
        lambda runs: runs.subject.name == Installed.name or not keeps_state(runs.case.model),
    ),
)
BELOW = ("cached-matches-recomputed", "padded-row-matches-alone")
FORWARDS = ("prefill", "feed")
SAID_BEFOREHAND = "the cache says that it is not croppable, and recording or cropping it is lossy"


def of_steps(runs: Runs, tell: Callable[[Step], Comparison | None], wanted: Callable[[Step], bool]) -> Comparison:
    """What `tell` says of all wanted steps; not applicable where the program has none."""
    try:
        steps = [step for step in steps_of(runs) if wanted(step)]
    except Unusable as error:
        return Comparison(not_applicable=f"the same tokens raise on this cache without any operation: {error}"[:200])
    if not steps:
        return Comparison(not_applicable="the program has no such operation, or the cache no such method")
    result = Comparison()
    for step in steps:
        result += tell(step) or Comparison()
    return result


def _all_of(runs: Runs, kinds: Sequence[str]) -> bool:
    return set(cache_kinds(runs.scenario.config)) <= set(kinds)


def usable(rule: Rule) -> Rule:
    """The guards of every check that runs the program: where a cache of the plan's class cannot be had.

    Nor where it would be none of the subject's: beams, assistants and the rest are the release's own here.
    """
    for reason, when in GUARDS:
        rule = applies(reason, when)(rule)
    return guarded(not_the_subjects)(rule)


def together(*parts: Comparison) -> Comparison:
    """All parts; not applicable only where none of them is."""
    if any(not part.not_applicable for part in parts):
        parts = tuple(part if part.differences else replace(part, not_applicable="") for part in parts)
    result = Comparison()
    for part in parts:
        result += part
    return result


def is_op(*names: str) -> Callable[[Step], bool]:
    """Whether a step is one of these operations, or a forward after one, which may show what it did not do."""
    return lambda step: step.op.op in names or (step.op.op in FORWARDS and step.after in names)


def silently_wrong(step: Step) -> Comparison:
    """Crashes and differences of a step; lossy ones are allowed where the cache said beforehand that it cannot."""
    found = step.crash if step.crash.differences else step.wrong
    recorded = step.op.op in FORWARDS and step.recording
    if found.differences and step.declared is False and (recorded or (step.op.op == "crop" and step.filled)):
        return Comparison(allowed=[SAID_BEFOREHAND])
    return found


@check(ROLLBACK, stands_on=(*BELOW, "several-tokens-match-one-by-one"))
@usable
def given_cache_matches_recomputed(runs: Runs) -> Comparison:
    """A cache that a caller gives to `generate` decodes as recomputing everything does, or is refused.

    A quantised one that loses nothing, and to an encoder-decoder a plain dynamic one, as users make them. Where the
    cache that `generate` makes is no better, it is not to blame.
    """
    return given_against_recomputed(runs)


@check(ROLLBACK, stands_on=BELOW, script="rollback")
@usable
def crop_round_trip(runs: Runs) -> Comparison:
    """A crop that does not refuse leaves a cache that saw only the tokens that are left.

    Lengths, mask sizes, the logits of the next token and the visible contents are compared with those of a cache
    of the same class that saw only these tokens, filled without recording or cropping. That recording is on is
    not to be seen in any forward before the crop either.
    """
    forwards = is_op("record", "crop", "")
    return of_steps(runs, silently_wrong, lambda s: s.op.count > 0 if s.op.op == "crop" else forwards(s))


@check(ROLLBACK, stands_on=(*BELOW, "crop-round-trip"), script="rollback")
@usable
def crop_zero_is_invisible(runs: Runs) -> Comparison:
    """`crop(0)` may give up what was recorded beyond need, and changes nothing that a forward can see."""
    return of_steps(runs, silently_wrong, lambda s: s.op.op == "crop" and s.op.count == 0)


@check(ROLLBACK, stands_on=(*BELOW, "crop-round-trip"), script="rollback")
@usable
def is_croppable_is_true(runs: Runs) -> Comparison:
    """`is_croppable` is true exactly when crops work, whatever was generated before.

    Where a filled, recording cache says that it is croppable, a crop of no more than was recorded may not be
    refused. Where it says that it is not, some crop has to be lossy or refused: if every one that is tried near the
    present length and beyond every window puts the cache back, it could have been cropped. And the same call
    gives the same answer on a model that has made longer calls before.
    """
    before = croppable_whatever_ran_before(runs)
    if before.differences:
        return before
    refused = of_steps(runs, _refused_in_spite_of_it, lambda s: s.op.op == "crop" and s.covered)
    return together(before, refused, croppable_after_all(runs))


def _refused_in_spite_of_it(step: Step) -> Comparison | None:
    if step.refusal is None or step.declared is not True:
        return None
    return crash_difference(step.refusal, "`is_croppable` is true")


@check(ROLLBACK, script="rollback", bitwise=True)
@usable
def refused_crop_changes_nothing(runs: Runs) -> Comparison:
    """A crop, or another operation, that is refused leaves the cache bitwise as it was: in every layer."""
    return of_steps(runs, lambda step: step.changed, lambda s: s.refusal is not None)


@check(ROLLBACK, script="rollback_negative", bitwise=True)
@usable
def length_never_negative(runs: Runs) -> Comparison:
    """After a crop of more than there is no layer tells a length below zero."""
    return of_steps(runs, _negative, is_op("crop"))


def _negative(step: Step) -> Comparison | None:
    if all(length is None or length >= 0 for length in step.lengths):
        return None
    return Comparison.of(Difference("length", "length", "0 or more in every layer", str(step.lengths), str(step.op)))


@check(ROLLBACK, stands_on=(*BELOW, "crop-round-trip"), script="rollback")
@usable
def window_returns_to_its_size(runs: Runs) -> Comparison:
    """A crop gives up what was recorded beyond need, and an assisted run returns a cache that has not grown.

    Nor does a quantised layer keep more tokens as they are than the residual length that it was made with.
    """
    cropped = of_steps(runs, _grown, lambda s: s.op.op == "crop" and s.refusal is None and s.declared is not False)
    return together(cropped, of_steps(runs, _overfull, _has_residual), grows_in_an_assisted_run(runs))


def _has_residual(step: Step) -> bool:
    return step.op.op in FORWARDS and step.overfull is not None


def _overfull(step: Step) -> Comparison | None:
    if not step.overfull:
        return None
    return Comparison.of(Difference("length", "residual", "no more than its residual length", step.overfull))


def _grown(step: Step) -> Comparison | None:
    if not step.grown or step.broken:
        return None
    return Comparison.of(Difference("length", "stored states", "what the next forward needs", step.grown))


@check(ROLLBACK, stands_on=BELOW, script="rollback")
@usable
def reset_is_fresh(runs: Runs) -> Comparison:
    """After `reset` a cache is empty, and takes another prompt as a new one does."""
    return of_steps(runs, silently_wrong, is_op("reset"))


@check(ROLLBACK, stands_on=BELOW, script="rollback")
@usable
def batch_operations_move_every_state(runs: Runs) -> Comparison:
    """Selecting and repeating rows of a batch moves every state of every layer: the rows go on as they were."""
    return of_steps(runs, silently_wrong, is_op("select", "repeat"))
