"""Two outcomes beside each other, for `conformance replay --show`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from rich.console import Console

from conformance.compare import deviation
from conformance.errors import NotOffered
from conformance.judge import Judgement
from conformance.outcome import Crash
from conformance.reporting.columns import print_table, say
from conformance.reporting.wording import rule_of
from conformance.runs import Runs

if TYPE_CHECKING:
    from conformance.placing.world import World

Cells = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Pair:
    """What is shown: in words, the heads of both columns, a line for each row and step, and what is told before."""

    what: str
    left: str
    right: str
    cells: Iterable[Cells]
    before: Iterable[str] = ()


def print_side_by_side(console: Console, judgement: Judgement, runs: Runs) -> None:
    """The runs that the family's checks compare, made here where they were another process's."""
    shown = pair_of(runs)
    for line in (*title(runs, judgement.failures()), *shown.before):
        say(console)(line)
    if cells := list(shown.cells):
        print_table(console, [("row", "step", shown.left, shown.right, "largest gap of logits"), *cells])


def title(runs: Runs, failed: Iterable[str]) -> Iterator[str]:
    """Which two runs are shown, and what the checks that failed are about, which may be other runs."""
    yield f"\nShown: {pair_of(runs).what}."
    names = list(failed)
    for name in names:
        yield f"{name} failed, whose rule is: {rule_of(name)}"
    if names:
        yield "Where a rule is about other runs than those shown, these may agree."


def pair_of(runs: Runs) -> Pair:
    """The two runs that the checks of the case's family compare; plain decoding and the oracle where it has none."""
    return PAIRS.get(runs.case.family, _plain)(runs)


def _plain(runs: Runs) -> Pair:
    name = runs.subject.name
    return Pair(f"plain decoding by {name}, and the oracle under the same tokens", name, "oracle", _rows(runs))


def _rows(runs: Runs) -> Iterator[Cells]:
    """Per row and step: the subject's token, the oracle's under the same tokens, the largest gap of their logits."""
    if runs.batch.crash:
        yield _ended("all", runs.batch.crash)
        return
    for row in runs.rows:
        index = runs.sequences(row)[0]
        tokens = runs.kept(row, runs.batch.tokens(index))
        for step, (token, expected) in enumerate(zip(tokens, runs.oracle.logits(row, tokens), strict=True)):
            gap = _gap(runs.batch.logits[step][index], expected)
            yield str(row), str(step), str(token), str(int(expected.argmax())), gap


def _gap(got: torch.Tensor, expected: torch.Tensor) -> str:
    """The largest difference of two vectors, or how else they differ."""
    found = deviation(got, expected)
    if found is None:
        return "0"
    return f"{found.size:.1e}" if found.kind == "values" else found.kind


def _ended(row: str, left: Crash | None, right: Crash | None = None) -> Cells:
    return row, "", "" if left is None else str(left), "" if right is None else str(right), ""


def _prefilled(runs: Runs) -> Pair:
    """The call with all that the plan adds, and plain decoding of each row under its tokens."""
    from conformance.drafting.modes import modes

    parts = {"embeds": "embeddings", "turns": "a cache of earlier turns", "chunk": "chunks", "draft": "drafts"}
    asked = ", ".join(parts[part] for part in modes(runs).everything) or "nothing more"
    name = runs.subject.name
    what = f"the call with {asked} by {name}, and plain decoding of each row under the same tokens"
    return Pair(what, name, "plain decoding", _beside_plain(runs))


def _beside_plain(runs: Runs) -> Iterator[Cells]:
    from conformance.drafting.modes import modes
    from conformance.endings import until_end

    own = modes(runs)
    outcome = own.outcome(own.everything)
    if outcome.crash or outcome.sequences is None:
        yield _ended("all", outcome.crash)
        return
    for index, row in enumerate(own.rows):
        tokens = until_end(outcome.sequences[index, own.start(own.everything) :].tolist(), own.ends)
        plain = runs.alone_under(row, tokens)
        if isinstance(plain, Crash):
            yield _ended(str(row), None, plain)
            continue
        for step, (token, its, logits) in enumerate(zip(tokens, plain, outcome.logits, strict=False)):
            yield str(row), str(step), str(token), str(int(its[0].argmax())), _gap(logits[index], its[0])


def _stopped(runs: Runs) -> Pair:
    """The same call one step late and at once."""
    from conformance.stopping.pairs import lacks

    if lacks(runs) is not None:
        return _plain(runs)
    name = runs.subject.name
    what = f"the call by {name} stopped one step late, and the same call stopped at once"
    return Pair(what, "one step late", "at once", _late_and_at_once(runs))


def _late_and_at_once(runs: Runs) -> Iterator[Cells]:
    from conformance.stopping.pairs import runs_of

    both = runs_of(runs)
    late, once = both.deferred, both.immediate
    if late.crash or once.crash or late.sequences is None:
        yield _ended("all", late.crash, once.crash)
        return
    for index in range(late.sequences.shape[0]):
        for step, (token, its) in enumerate(zip(late.tokens(index), once.tokens(index), strict=False)):
            gap = _gap(late.logits[step][index], once.logits[step][index]) if late.logits and once.logits else ""
            yield str(index), str(step), str(token), str(its), gap


def _placed(runs: Runs) -> Pair:
    """The call on the placed model and on the same model undispatched, and where its parts are."""
    from conformance.placing.guards import described
    from conformance.placing.showing import placed_lines, recipe_lines

    world = described(runs)
    if isinstance(world, str):
        return Pair(f"nothing: {world}", "", "", ())
    what = f"the model as {runs.subject.name} places it, and undispatched"
    before = (*recipe_lines(world.recipe), *placed_lines(world))
    return Pair(what, "placed", "undispatched", _placed_and_not(world), before)


def _placed_and_not(world: World) -> Iterator[Cells]:
    if world.unplaced.crash:
        yield _ended("all", None, world.unplaced.crash)
        return
    plain = world.unplaced_outcome
    if world.plan.stranded is not None or _crash_of_placing(world) is not None:
        return  # told before
    own = world.placed_outcome
    if own.crash or plain.crash or own.sequences is None or plain.sequences is None:
        yield _ended("all", own.crash, plain.crash)
        return
    # A model that decodes by itself gives codes, without a batch.
    rows = (s.reshape(-1, s.shape[-1])[:, plain.prompt_length :] for s in (own.sequences, plain.sequences))
    for row, (left, right) in enumerate(zip(*rows, strict=False)):
        for step, (token, its) in enumerate(zip(left.tolist(), right.tolist(), strict=False)):
            known = step < min(len(own.logits), len(plain.logits))
            gap = _gap(own.logits[step][row], plain.logits[step][row]) if known else ""
            yield str(row), str(step), str(token), str(its), gap


def _crash_of_placing(world: World) -> Crash | str | None:
    try:
        return world.placed.crash
    except NotOffered as error:
        return str(error)


PAIRS: Mapping[str, Callable[[Runs], Pair]] = MappingProxyType(
    {"prefill": _prefilled, "stopping": _stopped, "placement": _placed}
)
