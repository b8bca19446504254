"""Run a program on one cache and compare it, after every operation, with a cache that saw only what is left.

What is true is the plain list of tokens that each row has seen. The cache to compare with is filled with just
those, without recording, cropping or moving anything, by forwards of the same sizes as far as they are kept.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.plans.rollback import Op, cut, fed, picked, repeats
from conformance.programs import contents
from conformance.programs.machine import Machine, Prepared
from conformance.programs.truths import LOWER, PROBE, Groups, Truths
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

CONTENTS_BOUND = 1e-3  # relative to the largest of a tensor: rounding is far below, another token's states far above
REFUSALS = ("ValueError", "RuntimeError", "NotImplementedError", "TypeError")


@dataclass
class Step:
    """What one operation did.

    declared: what `is_croppable` said before it; filled, recording: whether the cache held
    tokens before it, and kept what it need not; after: of a forward, the last operation that moved states; covered: a
    crop of no more than was recorded, on a filled cache; beyond: a crop of more than was fed;
    refusal: how it was refused, if it was; changed: what that changed all the same; wrong: how the cache differs
    from one that saw only what is left; grown: states that are stored and not needed.
    """

    op: Op
    declared: bool | None = None
    filled: bool = True
    recording: bool = False
    after: str = ""
    covered: bool = False
    beyond: bool = False
    crash: Comparison = field(default_factory=Comparison)
    refusal: Crash | None = None
    changed: Comparison = field(default_factory=Comparison)
    wrong: Comparison = field(default_factory=Comparison)
    lengths: list[int | None] = field(default_factory=list)
    grown: str = ""

    @property
    def broken(self) -> bool:
        """Whether nothing after it can be judged."""
        found = (self.crash, self.changed, self.wrong)
        return self.beyond or any(part.differences or part.not_applicable for part in found)


@dataclass
class Interpreter:
    """Runs a program; `steps` holds what was done. Raises Unusable when the prompt alone cannot be run."""

    runs: Runs
    model: Any
    prepared: Prepared
    steps: list[Step] = field(default_factory=list)
    recording: bool = False
    recorded: int = 0
    groups: Groups = ()
    filled: bool = False
    moved: str = ""

    def __post_init__(self) -> None:
        self.machine = Machine.empty(self.model, self.prepared, range(self.prepared.input_ids.shape[0]))
        self.truths = Truths(self.runs, self.model, self.prepared)

    def run(self, program: Iterable[Op]) -> list[Step]:
        """Do every operation, until one leaves a cache that is not to be relied on."""
        for op in program:
            act: Callable[[Op], Step | None] = getattr(self, f"_{op.op}")
            step = act(op)
            if step is not None:
                self.steps.append(step)
                if step.broken:
                    break
        return self.steps

    @property
    def sources(self) -> tuple[int, ...]:
        """Which row of the prompt each row of the batch is."""
        return tuple(self.machine.sources)

    def truth(self) -> Machine:
        """A cache that saw only what is left."""
        return self.truths.of(self.groups, self.sources)[0]

    # Operations.

    def _prefill(self, op: Op) -> Step | None:
        if self.filled:
            return None
        return self._forward(op, self.machine.prefill, ())

    def _feed(self, op: Op) -> Step | None:
        if not self.filled or not op.tokens:
            return None
        rows = _frozen(fed(op.tokens, len(self.sources), self.runs.scenario.vocabulary))
        return self._forward(op, lambda: self.machine.feed(torch.tensor(rows)), (rows,))

    def _forward(self, op: Op, forward: Callable[[], torch.Tensor], group: Groups) -> Step:
        step, groups = Step(op, recording=self.recording, after=self.moved), (*self.groups, *group)
        self.truths.of(groups, self.sources)  # raises where the tokens alone do
        try:
            logits = forward()
        except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
            step.crash = crash_difference(Crash.of(error), "the same tokens work on a cache that only saw them")
            return step
        self.groups, self.filled = groups, True
        self.recorded += (len(group[0][0]) if group else self._prompt) if self.recording else 0
        step.wrong = self.truths.compare(logits, groups, self.sources)
        step.declared = upstream.says_croppable(self.model, self.machine.cache)
        if step.wrong.differences and not self.truths.trusted(self.sources, groups):
            step.wrong = Comparison(not_applicable=LOWER)
        elif not step.wrong.differences and self.recording:
            self._look(step, groups)  # what only recording spoils is blamed on nothing else
        elif not step.wrong.differences:
            step.wrong += self._compare_lengths()
        return step

    @property
    def _prompt(self) -> int:
        return int(self.prepared.input_ids.shape[1])

    def _record(self, op: Op) -> Step | None:
        activate = getattr(self.machine.cache, "activate_past_recording", None)
        if activate is None:
            return None
        self.recorded = self.recorded if self.recording else 0
        return self._act(op, activate, look=False, then=self._note_recording)

    def _note_recording(self) -> None:
        self.recording = True

    def _crop(self, op: Op) -> Step | None:
        cache = self.machine.cache
        crop = getattr(cache, "crop", None)
        if crop is None or (op.count == 0 and not upstream.crop_takes_a_count()):
            return None
        declared = upstream.says_croppable(self.model, cache)
        fed = sum(len(group[0]) for group in self.groups)
        covered = self.filled and self.recording and op.count <= min(self.recorded, fed)
        before = self.groups
        step = self._act(op, lambda: crop(-op.count), look=False)
        step.declared, step.filled, step.covered = declared, self.filled, covered
        if step.crash.differences or step.refusal:
            return step
        self.recorded = 0
        step.lengths = contents.lengths(self.machine.cache)
        if not self.filled or op.count > fed:  # of an empty cache, into the prompt, or of more than there is
            step.beyond = self.filled or any(step.lengths)
            if not step.beyond:
                self._look(step, before)
            return step
        self.groups = tuple(_frozen(group) for group in cut([[list(row) for row in g] for g in self.groups], op.count))
        self.machine.take_back(op.count)
        self._look(step, before)
        step.grown = self._growth()
        return step

    def _reorder(self, op: Op) -> Step | None:
        return self._move(op, "reorder_cache", picked(op, len(self.sources)))

    def _select(self, op: Op) -> Step | None:
        return self._move(op, "batch_select_indices", picked(op, len(self.sources)))

    def _repeat(self, op: Op) -> Step | None:
        if not repeats(op, len(self.sources)):
            return None
        rows = [row for row in range(len(self.sources)) for _ in range(op.count)]
        return self._move(op, "batch_repeat_interleave", rows, op.count)

    def _move(self, op: Op, method: str, rows: list[int], argument: Any = None) -> Step | None:
        cache = self.machine.cache
        if not self.filled or not rows or not hasattr(cache, method):
            return None
        given = torch.tensor(rows) if argument is None else argument

        def then() -> None:
            self.machine.pick(rows)
            self.groups = tuple(tuple(group[row] for row in rows) for group in self.groups)

        return self._act(op, lambda: getattr(cache, method)(given), look=True, then=then)

    def _reset(self, op: Op) -> Step | None:
        cache = self.machine.cache
        if not self.filled or not upstream.is_cache(cache):  # other classes cannot be handed to another prefill
            return None

        def then() -> None:
            self.groups, self.filled, self.recorded = (), False, 0
            self.machine.forget()
            order = list(self.machine.sources)
            self.machine.sources = order[1:] + order[:1]  # other rows than before, so that nothing old fits

        return self._act(op, cache.reset, look=True, then=then)

    def _act(self, op: Op, act: Callable[[], Any], *, look: bool, then: Callable[[], None] = lambda: None) -> Step:
        step, before = Step(op), contents.everything(self.machine.cache)
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
            crash = Crash.of(error)
            if refuses(error):
                step.refusal = crash
                step.changed = compare_exactly(contents.everything(self.machine.cache), before, unnumbered)
            else:
                step.crash = crash_difference(crash, f"`{op.op}` is there to be called")
            return step
        then()
        self.moved = op.op
        if look:
            self._look(step, self.groups)
        return step

    # Comparing.

    def _look(self, step: Step, before: Groups) -> None:
        """Compare lengths, masks, visible contents and the logits of one more token with the truth."""
        result = self._compare_lengths() if self.filled else self._compare_emptiness()
        if not result.differences:
            result += self._compare_next()
        if not result.differences and self.filled:
            result += self._compare_contents()
        if (
            result.differences
            and not result.not_applicable
            and not self.truths.trusted(self.sources, self.groups, before)
        ):
            result = Comparison(not_applicable=LOWER)
        step.wrong = result

    def _compare_lengths(self) -> Comparison:
        truth = self.truth()
        for name, tell in (("length", contents.lengths), ("mask sizes", contents.masks)):
            expected, got = tell(truth.cache), tell(self.machine.cache)
            if expected != got:
                return Comparison.of(Difference("length", name, str(expected), str(got)))
        return Comparison()

    def _compare_emptiness(self) -> Comparison:
        told = contents.lengths(self.machine.cache)
        if any(told):
            return Comparison.of(Difference("length", "length", "0 in every layer", str(told)))
        return Comparison()

    def _compare_contents(self) -> Comparison:
        got, expected = contents.visible(self.machine.cache), contents.visible(self.truth().cache)
        gap, place = contents.apart(got, expected)
        if gap > CONTENTS_BOUND:
            return Comparison.of(
                Difference("values", "contents", f"{unnumbered(place)} as after only these tokens", f"off by {gap:.1e}")
            )
        return Comparison()

    def _compare_next(self) -> Comparison:
        ahead = self.machine.copy()
        probe: Groups = ((((PROBE,),) * len(self.sources)),) if self.filled else ()
        groups = (*self.groups, *probe)
        self.truths.of(groups, self.sources)
        try:
            logits = ahead.feed(torch.tensor(probe[0])) if self.filled else ahead.prefill()
        except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
            return crash_difference(Crash.of(error), "the next token works on a cache that saw only these")
        return self.truths.compare(logits, groups, self.sources)

    def _growth(self) -> str:
        """States that are stored beyond what a cache needs that never recorded."""
        needed = contents.stored(self.truth().cache)
        for path, count in contents.stored(self.machine.cache).items():
            if path in needed and count > needed[path]:
                return f"{unnumbered(path)}: {count} numbers a row where {needed[path]} are needed"
        return ""


def _frozen(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def refuses(error: BaseException) -> bool:
    """Whether an exception is a refusal: raised by name in the code that was called, not by a line that broke."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or type(error).__name__ not in REFUSALS:
        return False
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return line.strip().startswith("raise")
