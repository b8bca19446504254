"""A cache under test and what is true of it, compared.

What is true is the plain list of tokens that each row has seen. The cache to compare with is filled with just
those, without recording, cropping or moving anything, by forwards of the same sizes as far as they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from conformance.compare import crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.programs import contents
from conformance.programs.machine import Machine, Prepared
from conformance.programs.truths import LOWER, PROBE, Groups, Truths
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

CONTENTS_BOUND = 1e-3  # relative to the largest of a tensor: rounding is far below, another token's states far above


@dataclass
class Watched:
    """One cache in use. groups: the tokens of each forward that are left; filled: whether the prompt is in it."""

    runs: Runs
    model: Any
    prepared: Prepared
    groups: Groups = ()
    filled: bool = False

    def __post_init__(self) -> None:
        self.machine = Machine.empty(self.model, self.prepared, range(self.prepared.input_ids.shape[0]))
        self.truths = Truths(self.runs, self.model, self.prepared)

    @property
    def sources(self) -> tuple[int, ...]:
        """Which row of the prompt each row of the batch is."""
        return tuple(self.machine.sources)

    def truth(self) -> Machine:
        """A cache that saw only what is left."""
        return self.truths.of(self.groups, self.sources)[0]

    def look(self, before: Groups) -> Comparison:
        """Compare lengths, masks, visible contents and the logits of one more token with the truth.

        `before`: the groups before what was done, which have to be right as well.
        """
        result = self.compare_lengths() if self.filled else self._compare_emptiness()
        if not result.differences:
            result += self._compare_next()
        if not result.differences and self.filled:
            result += self._compare_contents()
        if result.differences and not result.not_applicable:
            trusted = self.truths.trusted(self.sources, self.groups, before)
            return result if trusted else Comparison(not_applicable=LOWER)
        return result

    def compare_lengths(self) -> Comparison:
        """Compare lengths and mask sizes of every layer with the truth."""
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

    def growth(self) -> str:
        """States that are stored beyond what a cache needs that never recorded."""
        needed = contents.stored(self.truth().cache)
        for path, count in contents.stored(self.machine.cache).items():
            if path in needed and count > needed[path]:
                return f"{unnumbered(path)}: {count} numbers a row where {needed[path]} are needed"
        return ""
