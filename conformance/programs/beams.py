"""Beam search: the calls, and the scores of what it returns against scoring every sequence again without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance.clock import MODEL_CODE
from conformance.compare import compare_steps, compare_sum, crash_difference
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.plans.beam_search import BeamSearch
from conformance.programs.prepared import Raised, generated, plain_call
from conformance.runs import Runs
from conformance.seeding import seed_everything
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison, Difference

UNCACHED = {"use_cache": False}
# torch: fewer tokens have any probability than are to be drawn, or the model gives no numbers.
IMPOSSIBLE = ("invalid multinomial distribution", "probability tensor contains either")


@dataclass(frozen=True)
class Search:
    """The beam search that a case's plan asks for.

    rows: the rows of the prompt that are searched; start: how many tokens their sequences begin with.
    """

    runs: Runs
    beams: int
    how: BeamSearch
    rows: list[int]
    start: int

    @classmethod
    def of(cls, runs: Runs) -> Search:
        """Of one row alone where the type ignores padding and rows have several lengths."""
        rows = [0] if runs.ignores_padding and runs.case.prompt.padded else list(runs.rows)
        plan, start = runs.case.plan, runs.scenario.width(rows)
        return cls(runs, getattr(plan, "beams", 1), getattr(plan, "search", BeamSearch()), rows, start)

    @property
    def returned(self) -> int:
        """How many sequences come back of each row."""
        return min(self.how.returned, self.beams)

    @property
    def chosen(self) -> list[int] | None:
        """The rows as calls are told them."""
        return None if len(self.rows) == len(self.runs.rows) else self.rows

    def output(self, **config: Any) -> Any:
        """What the search gives, run once, with these changes to the generation config; or what it raised."""
        asked = {**self.how.asked_for(self.beams), **config}
        return self.runs.once(("beams", str(sorted(config.items()))), lambda: self._run(asked))

    def greedy(self, **config: Any) -> Any:
        """The same batch decoded greedily."""
        return self.runs.once(("no beams", str(sorted(config.items()))), lambda: self._run(config))

    def model_draws(self) -> bool:
        """Whether the model itself draws random numbers, where it decodes greedily."""
        with torch.random.fork_rng(devices=[]):
            seed_everything(0)
            before = torch.get_rng_state()
            self._cached({})
            return not torch.equal(before, torch.get_rng_state())

    def _run(self, config: dict[str, Any]) -> Any:
        with torch.random.fork_rng(devices=[]):
            seed_everything(0)
            return self._uncached(config) if config.get("use_cache") is False else self._cached(config)

    def _cached(self, config: dict[str, Any]) -> Any:
        return generated(self.runs, self.chosen, config, {})

    def _uncached(self, config: dict[str, Any]) -> Any:
        try:
            with torch.no_grad(), MODEL_CODE.running(), time_limit():
                return Installed().generate(self.runs.scenario.model(), plain_call(self.runs, self.chosen, **config))
        except Exception as error:  # noqa: BLE001 - whatever is raised is the outcome
            return Raised(Crash.of(error), refusal=False)


GREEDILY_WRONG = "decoding this batch greedily in the same way is wrong already"


def beams_against_rescoring(runs: Runs, **config: Any) -> Comparison:
    """Every returned beam's score is that of its tokens when everything is recomputed; `config`: how it is run."""
    search = Search.of(runs)
    if search.beams < 2:
        return Comparison(not_applicable="the plan has no beams")
    if config != UNCACHED and getattr(runs.case.plan, "cache", "") == "fp8":
        return Comparison(not_applicable="a layer of eight bits gives other scores")
    output = search.output(**config)
    if isinstance(output, Raised):
        return _raised(search, output, config)
    if not hasattr(output, "sequences_scores"):
        return Comparison(not_applicable="this type's own generate returns no scores of beams")
    result = _all_rescored(search, output)
    if result.differences and not _greedily_right(search, config):
        return Comparison(not_applicable=GREEDILY_WRONG)
    return result


def _raised(search: Search, raised: Raised, config: dict[str, Any]) -> Comparison:
    if raised.refusal:
        return Comparison(allowed=[f"generate refuses beams here: {raised.crash.message}"[:200]])
    if search.how.sampled and any(words in raised.crash.message for words in IMPOSSIBLE):
        return Comparison(not_applicable="fewer tokens have any probability than beams have to draw")
    if isinstance(search.greedy(**config), Raised):
        return Comparison(not_applicable="the same batch raises without beams")
    if not _greedily_right(search, config):
        return Comparison(not_applicable=GREEDILY_WRONG)
    crashed = crash_difference(raised.crash, "the same batch works without beams").differences[0]
    return Comparison.of(replace(crashed, where="beam search"))


def _all_rescored(search: Search, output: Any) -> Comparison:
    """Every beam of every row against its own rescoring, until one differs."""
    result = Comparison()
    for index, (sequence, score) in enumerate(zip(output.sequences, output.sequences_scores, strict=True)):
        row, tokens = search.rows[index // search.returned], sequence[search.start :].tolist()
        place = f"beam {index % search.returned}"
        result += _rescored(search, row, search.how.kept(tokens), float(score), place)
        if result.differences:
            break
    return result


def _rescored(search: Search, row: int, tokens: list[int], score: float, where: str) -> Comparison:
    runs = search.runs
    logits = list(runs.oracle.logits(row, tokens))
    each = [float(step.double().log_softmax(-1)[token]) for step, token in zip(logits, tokens, strict=True)]
    share: float = len(tokens) ** search.how.length_penalty
    return compare_sum("sequences_scores", score * share, each, logits, runs.noise(row, tokens), where, runs.bound)


def _greedily_right(search: Search, config: dict[str, Any]) -> bool:
    """Whether the logits of greedy decoding in the same way are those of recomputing everything."""
    output, runs = search.greedy(**config), search.runs
    if isinstance(output, Raised):
        return False
    for index, row in enumerate(search.rows):
        tokens = output.sequences[index, search.start :].tolist()
        expected, got = list(runs.oracle.logits(row, tokens)), [step[index] for step in output.logits]
        found = compare_steps("logits", got, expected, runs.noise(row, tokens), "", runs.bound)
        if found.differences or found.ties:
            return False
    return True


def order_of_beams(runs: Runs, **config: Any) -> Comparison:
    """The sequences of a row come best first, and no two of them are the same."""
    search = Search.of(runs)
    output = search.output(**config)
    if isinstance(output, Raised) or getattr(output, "sequences_scores", None) is None:
        return Comparison()  # the scores' own rule tells
    scores = output.sequences_scores.view(-1, search.returned).tolist()
    for row, told in zip(search.rows, scores, strict=True):
        if told != sorted(told, reverse=True):
            return _differs("values", "order of scores", "the best first", str(told), row)
    kept = [tuple(search.how.kept(sequence[search.start :].tolist())) for sequence in output.sequences]
    for row, of_row in zip(search.rows, _in_parts(kept, search.returned), strict=True):
        if len(set(of_row)) < len(of_row):
            return _differs("tokens", "sequences", "sequences that all differ", str(of_row), row)
    return Comparison()


def _differs(kind: str, field: str, wanted: str, got: str, row: int) -> Comparison:
    return Comparison.of(Difference(kind, field, wanted, got, f"row {row}"))


def _in_parts(things: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [things[at : at + size] for at in range(0, len(things), size)]
