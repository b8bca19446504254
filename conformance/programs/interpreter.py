"""Run a program on one cache and compare it, after every operation, with a cache that saw only what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from conformance import upstream
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.plans.rollback_programs import Op, fed, picked, refilled, repeats
from conformance.programs import contents
from conformance.programs.machine import Groups, Machine, frozen
from conformance.programs.steps import Step, refuses
from conformance.programs.truths import LOWER, Truths, Unusable
from conformance.programs.watched import Seen, compare_lengths, growth, look
from conformance.verdicts import Comparison

SPOILT = "recording has spoiled it before"


class Interpreter:
    """Runs programs; `steps` holds what was done. Raises Unusable where the tokens alone raise.

    start: gives a machine with an empty cache; plain: whether such a cache is as those that the truth starts from, so
    that it has no need of forwards of its own before anything else was done with it.
    """

    def __init__(self, truths: Truths, start: Callable[[], Machine], *, plain: bool = True) -> None:
        self.truths, self._start, self._plain = truths, start, plain
        self.steps: list[Step] = []
        self._raised: Unusable | None = None
        self._renew()

    def _renew(self) -> None:
        self.machine = self._start()
        self.recording, self.recorded, self.moved = False, 0, ""
        self._untouched, self._emptied, self._broken = self._plain, False, False
        self._owed: Step | None = None  # the last forward while recording, after which nothing was looked at

    @property
    def filled(self) -> bool:
        """Whether the prompt is in the cache."""
        return self.machine.filled

    @property
    def groups(self) -> Groups:
        """The tokens of each forward after the prompt that are left."""
        return self.machine.groups

    def run(self, program: Iterable[Op]) -> list[Step]:
        """Do every operation; after one that leaves a cache that is not to be relied on, those from a new cache on.

        So, too, where the tokens alone raise: what was done before that stays told. Raises Unusable where nothing was.
        """
        for op in program:
            if op.op == "fresh":
                self._relying(self._settle)
                self._renew()
            elif not self._broken:
                self._relying(partial(self._do, op))
        self._relying(self._settle)
        if self._raised is not None and not self.steps:
            raise self._raised
        return self.steps

    def _relying(self, act: Callable[[], None]) -> None:
        """Do it, relying on the truth; where that raises, this cache cannot be judged any further."""
        try:
            act()
        except Unusable as error:
            self._raised, self._broken = self._raised or error, True

    def _do(self, op: Op) -> None:
        act: Callable[[Op], Step | None] = getattr(self, f"_{op.op}")
        step = act(op)
        self.steps += [] if step is None else [step]
        self._broken = step is not None and step.broken

    def _settle(self) -> None:
        """Look at what was recorded last."""
        if self._owed is not None and not self._broken:
            self._owed.wrong = look(self.machine, self.truths)
            self._broken = self._owed.broken
        self._owed = None

    def _prefill(self, op: Op) -> Step | None:
        if self.filled:
            return None
        if op.rows and self._emptied:
            batch, prompt = len(self.machine.sources), self.truths.prepared.input_ids.shape[0]
            keeps = contents.holds_states(self.machine.cache)
            self.machine.sources = refilled(op, prompt, batch, keeps=keeps)
        return self._forward(op, lambda machine: machine.prefill(), ())

    def _feed(self, op: Op) -> Step | None:
        if not self.filled or not op.tokens:
            return None
        rows = frozen(fed(op.tokens, len(self.machine.sources), self.truths.runs.scenario.vocabulary))
        return self._forward(op, lambda machine: machine.feed(torch.tensor(rows)), (rows,))

    def _forward(self, op: Op, forward: Callable[[Machine], torch.Tensor], group: Groups) -> Step:
        step, groups = Step(op, recording=self.recording, after=self.moved), (*self.groups, *group)
        sources = self.machine.sources
        truth, _ = self.truths.of(groups, sources)  # raises where the tokens alone do
        if self._untouched:
            self.machine = truth.copy()
        else:
            try:
                logits = forward(self.machine)
            except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
                step.crash = crash_difference(Crash.of(error), "the same tokens work on a cache that only saw them")
                return step
            step.wrong = self.truths.compare(logits, groups, sources)
        self.recorded += (len(group[0][0]) if group else self._prompt) if self.recording else 0
        step.declared = upstream.says_croppable(self.machine.cache, self.truths.model)
        step.overfull = contents.overfull(self.machine.cache)
        if step.wrong.differences:
            step.wrong = step.wrong if self.truths.trusted(sources, groups) else Comparison(not_applicable=LOWER)
        elif not self._untouched:
            step.wrong += compare_lengths(self.machine, self.truths)
        self._owed = step if self.recording and not step.broken else None
        return step

    @property
    def _prompt(self) -> int:
        return int(self.truths.prepared.input_ids.shape[1])

    def _record(self, op: Op) -> Step | None:
        cache = self.machine.cache
        if not upstream.can_record(cache):
            return None
        self.recorded = self.recorded if self.recording else 0
        return self._act(op, lambda: upstream.record_past(cache), then=self._note_recording, comparable=lambda: False)

    def _note_recording(self) -> None:
        self.recording = True

    def _crop(self, op: Op) -> Step | None:
        cache, fed = self.machine.cache, sum(len(group[0]) for group in self.groups)
        crop = getattr(cache, "crop", None)
        if crop is None or (op.count == 0 and not upstream.crop_takes_a_count()):
            return None
        filled, declared = self.filled, upstream.says_croppable(cache, self.truths.model)
        covered = filled and self.recording and op.count <= min(self.recorded, fed)
        within = filled and op.count <= fed
        then = (lambda: self.machine.take_back(op.count)) if within else None

        def comparable() -> bool:  # not after a crop into the prompt, or of more than there is
            return within or not (filled or any(contents.lengths(cache)))

        step = Step(op, declared=declared, filled=filled, covered=covered)
        self._act(op, lambda: crop(-op.count), then=then, comparable=comparable, step=step)
        if step.crash.differences or step.refusal:
            return step
        self.recorded = 0
        step.lengths, step.beyond = contents.lengths(cache), not comparable()
        if within:
            step.grown = growth(self.machine, self.truths)
        return step

    def _reorder(self, op: Op) -> Step | None:
        return self._move(op, "reorder_cache", picked(op, len(self.machine.sources)))

    def _select(self, op: Op) -> Step | None:
        return self._move(op, "batch_select_indices", picked(op, len(self.machine.sources)))

    def _repeat(self, op: Op) -> Step | None:
        count = len(self.machine.sources)
        if not repeats(op, count):
            return None
        return self._move(op, "batch_repeat_interleave", [r for r in range(count) for _ in range(op.count)], op.count)

    def _move(self, op: Op, method: str, rows: list[int], argument: Any = None) -> Step | None:
        cache = self.machine.cache
        if not self.filled or not rows or not hasattr(cache, method):
            return None
        given = torch.tensor(rows) if argument is None else argument
        return self._act(op, lambda: getattr(cache, method)(given), then=lambda: self.machine.pick(rows))

    def _reset(self, op: Op) -> Step | None:
        cache = self.machine.cache
        if not self.filled or not upstream.is_cache(cache):  # other classes cannot be handed to another prefill
            return None

        def then() -> None:
            self.recorded, self._emptied = 0, True
            self.machine.forget()
            order = list(self.machine.sources)
            self.machine.sources = order[1:] + order[:1]  # other rows than before, so that nothing old fits

        return self._act(op, cache.reset, then=then)

    def _act(
        self,
        op: Op,
        act: Callable[[], Any],
        *,
        then: Callable[[], None] | None = None,
        comparable: Callable[[], bool] = lambda: True,
        step: Step | None = None,
    ) -> Step:
        """Do it; `then`: what that does to the tokens that are left; comparable: whether anything is to compare."""
        step, before = step or Step(op), contents.everything(self.machine.cache)
        earlier = self.machine.copy() if self._owed else None
        self._untouched, seen = False, (self.groups, tuple(self.machine.sources))
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
        if then is not None:
            then()
        if comparable():
            self._look(step, seen, earlier)
        self.moved = op.op
        return step

    def _look(self, step: Step, before: Seen, earlier: Machine | None) -> None:
        """Look at what a step left; what recording has spoiled before it is blamed on the forward that recorded."""
        # what is lossy by its own word may differ: whether by rounding alone, which takes many forwards, matters not
        said = step.op.op == "crop" and step.filled and step.declared is False
        step.wrong = look(self.machine, self.truths.strictly() if said else self.truths, before)
        if step.wrong.differences and self._owed is not None and earlier is not None:
            spoilt = look(earlier, self.truths)
            if spoilt.differences:
                self._owed.wrong, step.wrong = spoilt, Comparison(not_applicable=SPOILT)
        self._owed = None
