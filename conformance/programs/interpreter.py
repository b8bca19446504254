"""Run a program on one cache and compare it, after every operation, with a cache that saw only what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.plans.rollback import Op, cut, fed, picked, repeats
from conformance.programs import contents
from conformance.programs.steps import Step, refuses
from conformance.programs.truths import LOWER, Groups
from conformance.programs.watched import Watched
from conformance.verdicts import Comparison


@dataclass
class Interpreter(Watched):
    """Runs a program; `steps` holds what was done. Raises Unusable when the prompt alone cannot be run."""

    steps: list[Step] = field(default_factory=list)
    recording: bool = False
    recorded: int = 0
    moved: str = ""

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
        step.declared = upstream.says_croppable(self.machine.cache, self.model)
        if step.wrong.differences and not self.truths.trusted(self.sources, groups):
            step.wrong = Comparison(not_applicable=LOWER)
        elif not step.wrong.differences and self.recording:
            step.wrong = self.look(groups)  # what only recording spoils is blamed on nothing else
        elif not step.wrong.differences:
            step.wrong += self.compare_lengths()
        return step

    @property
    def _prompt(self) -> int:
        return int(self.prepared.input_ids.shape[1])

    def _record(self, op: Op) -> Step | None:
        cache = self.machine.cache
        if not upstream.can_record(cache):
            return None
        self.recorded = self.recorded if self.recording else 0
        return self._act(op, lambda: upstream.record_past(cache), look=False, then=self._note_recording)

    def _note_recording(self) -> None:
        self.recording = True

    def _crop(self, op: Op) -> Step | None:
        cache = self.machine.cache
        crop = getattr(cache, "crop", None)
        if crop is None or (op.count == 0 and not upstream.crop_takes_a_count()):
            return None
        declared = upstream.says_croppable(cache, self.model)
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
                step.wrong = self.look(before)
            return step
        self.groups = tuple(_frozen(group) for group in cut([[list(row) for row in g] for g in self.groups], op.count))
        self.machine.take_back(op.count)
        step.wrong = self.look(before)
        step.grown = self.growth()
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
            step.wrong = self.look(self.groups)
        return step


def _frozen(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)
