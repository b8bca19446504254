"""What is true: caches that saw only the tokens that are left, and whether they can be relied on themselves."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.compare import Noise, compare_steps
from conformance.outcome import Crash
from conformance.programs import contents
from conformance.programs.machine import Group, Groups, Machine
from conformance.programs.steps import refuses
from conformance.runs import Runs
from conformance.statefulness import keeps_state
from conformance.upstream import Handed
from conformance.verdicts import Comparison

PROBE = 1  # the token that is fed to look ahead
LOWER = "the cache says something else without any of this: see given-cache-matches-recomputed and the cached family"


class Unusable(RuntimeError):
    """The same tokens raise without any operation on the cache. refused: by name, in the code that was called."""

    def __init__(self, error: BaseException, before: str = "") -> None:
        self.crash, self.refused = Crash.of(error), refuses(error)
        super().__init__(f"{before}{self.crash}")


class Truths:
    """Caches of one class, each filled by the prompt's rows and groups of tokens, and by nothing else.

    strict: what is more than the bound apart is different, were it but rounding: to know what is surely the same.
    lossy: the layers keep few bits of a number, by a scale of all rows of their first forward, so that what they make
    of other rows or forwards is not to be compared.
    """

    def __init__(self, runs: Runs, model: Any, prepared: Handed) -> None:
        self.runs, self.model, self.prepared, self.strict = runs, model, prepared, False
        self.lossy = plan_of_cache(runs) == "fp8"
        self._told: dict[Any, Mapping[str, Any]] = {}
        self._shown: dict[Any, Mapping[str, tuple[torch.Tensor, bool]]] = {}
        self._made: dict[Any, tuple[Machine, torch.Tensor]] = {}

    def strictly(self) -> Truths:
        """The same caches, to be compared with strictly."""
        other = copy.copy(self)
        other.strict = True
        return other

    def empty(self, sources: Sequence[int] | None = None) -> Machine:
        """A machine with an empty cache of the class, for these rows of the prompt (None: all)."""
        rows = range(self.prepared.input_ids.shape[0]) if sources is None else sources
        owns = keeps_state(self.runs.case.model)
        return Machine.empty(self.model, self.prepared, rows, owns_model=owns)

    def of(self, groups: Groups, sources: Sequence[int]) -> tuple[Machine, torch.Tensor]:
        """The cache that these rows of the prompt and these groups fill, and the logits of its last forward.

        Raises Unusable.
        """
        key = (tuple(sources), groups)
        if key not in self._made:
            try:
                self._made[key] = self._new(groups, sources)
            except Unusable:
                raise
            except Exception as error:
                raise Unusable(error) from error
        return self._made[key]

    def _new(self, groups: Groups, sources: Sequence[int]) -> tuple[Machine, torch.Tensor]:
        if not groups:
            machine = self.empty(sources)
            return machine, machine.prefill()
        machine = self.of(groups[:-1], sources)[0].copy()
        return machine, machine.feed(torch.tensor(groups[-1]))

    def told(self, groups: Groups, sources: Sequence[int]) -> Mapping[str, Any]:
        """The lengths and mask sizes that the layers of such a cache tell."""
        key = (tuple(sources), groups)
        if key not in self._told:
            self._told[key] = contents.told(self.of(groups, sources)[0].cache)
        return self._told[key]

    def shown(self, groups: Groups, sources: Sequence[int]) -> Mapping[str, tuple[torch.Tensor, bool]]:
        """The visible contents of such a cache."""
        key = (tuple(sources), groups)
        if key not in self._shown:
            self._shown[key] = contents.visible(self.of(groups, sources)[0].cache)
        return self._shown[key]

    def compare(self, got: torch.Tensor, groups: Groups, sources: Sequence[int]) -> Comparison:
        """Logits of shape (rows, n, vocabulary), last n after these groups, with the true ones."""
        return self._judged(got, self.of(groups, sources)[1], groups, sources)

    def _judged(self, got: torch.Tensor, expected: torch.Tensor, groups: Groups, sources: Sequence[int]) -> Comparison:
        result = Comparison()
        if self.lossy and got.shape == expected.shape:
            return result
        if got.dtype == expected.dtype and torch.equal(got, expected):  # the usual case, told in one step
            return result
        for row in range(len(sources)):
            noise = self._noise(groups, sources, row, got.shape[1])
            where = f"row {row} " if len(sources) > 1 else ""
            result += compare_steps("logits", list(got[row]), list(expected[row]), noise, where, self.runs.bound)
        return result

    def fed_next(self, groups: Groups, before: Groups, sources: Sequence[int]) -> tuple[Group, torch.Tensor] | None:
        """What followed these groups when there were more, and the true logits after it; None where nothing did.

        group: one token a row; logits: shape (rows, 1, vocabulary), of the forward that fed it with its neighbours.
        """
        kept, seen = sum(len(group[0]) for group in groups), 0
        for number, group in enumerate(before):
            size = len(group[0])
            if kept < seen + size:
                at = kept - seen
                logits = self.of(before[: number + 1], sources)[1][:, at : at + 1]
                return tuple(row[at : at + 1] for row in group), logits
            seen += size
        return None

    def same(self, got: torch.Tensor, expected: torch.Tensor, groups: Groups, sources: Sequence[int]) -> bool:
        """Whether logits after these groups are expected ones without a doubt."""
        found = self._judged(got, expected, groups, sources)
        return not found.differences and not found.ties

    def trusted(self, sources: Sequence[int], groups: Groups) -> bool:
        """Whether such a cache says of one more token what recomputing everything says."""
        return self.strict or self.lossy or self._as_recomputed(groups, sources)

    def _as_recomputed(self, groups: Groups, sources: Sequence[int]) -> bool:
        found = self.recomputed((*groups, ((PROBE,),) * len(sources)), sources)
        return not found.differences and not found.ties

    def recomputed(self, groups: Groups, sources: Sequence[int]) -> Comparison:
        """The logits of the last token that these caches were fed with those of recomputing everything."""
        said, result = self.of(groups, sources)[1], Comparison()
        for row, source in enumerate(sources):
            expected = self.runs.oracle.logits(source, [*history(groups, row), 0])[-1]
            noise = self._noise(groups, sources, row, 1)
            where = f"row {row} " if len(sources) > 1 else ""
            result += compare_steps("logits", [said[row, -1]], [expected], noise, where, self.runs.bound)
            if result.differences:
                break
        return result

    def _noise(self, groups: Groups, sources: Sequence[int], row: int, count: int) -> Noise:
        """The model's response to rounding at the last `count` positions of a row."""
        if self.strict:
            return lambda _: 0.0
        tokens = history(groups, row)

        def at(step: int) -> float:
            return self.runs.noise(sources[row], [*tokens, 0])(len(tokens) + 1 - count + step)

        return at


def plan_of_cache(runs: Runs) -> str:
    """The class of cache that the case's plan names."""
    return str(getattr(runs.case.plan, "cache", "default"))


def history(groups: Groups, row: int) -> list[int]:
    """All that a row was fed after its prompt."""
    return [token for group in groups for token in group[row]]
