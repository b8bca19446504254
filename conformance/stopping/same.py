"""Whether a call that stopped one step late gave what one that stopped at once gave."""

from __future__ import annotations

import torch

from conformance.cache_contents import without_garbage
from conformance.compare import compare_exactly, unnumbered
from conformance.outcome import Outcome, rng_digest
from conformance.runs import Runs
from conformance.stopping.pairs import seen_of
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison, Difference


def same_outcome(runs: Runs, at_once: Outcome, late: Outcome, marks: dict[str, str] | None = None) -> Comparison:
    """Every field of both outcomes, bitwise, and what the late one alone has changed (`marks`).

    The installed release may have drawn one random number more, which is allowed and named.
    """
    result = Comparison()
    wanted, got = without_garbage(at_once.fields()), without_garbage(late.fields())
    if wanted["rng"] != got["rng"] and _one_draw_more(runs, at_once, late):
        result.allowed.append("random numbers: the undone step has drawn one")
        wanted.pop("rng"), got.pop("rng")
    found = compare_exactly(got, wanted, unnumbered)
    return result + (found if found.differences else left_alone(marks or {}))


def left_alone(marks: dict[str, str]) -> Comparison:
    """The first thing that the late call alone has changed, path → how; nothing where there is none."""
    for path, how in sorted(marks.items()):
        kind = how if how in ("added", "removed") else "changed"
        return Comparison.of(Difference(kind, unnumbered(path), "as after stopping at once", f"{path}: {how}", path))
    return Comparison()


def _one_draw_more(runs: Runs, at_once: Outcome, late: Outcome) -> bool:
    """Whether the generator's state is the one other that the release is allowed to leave.

    It is that after one more choice of a token for every row, except where the model itself draws: it has then drawn
    more, which is not known.
    """
    seen, before = seen_of(late), seen_of(at_once)
    drawing = runs.case.settings.do_sample or seen.draws_itself
    if runs.subject.name != Installed.name or not drawing or seen.forwards - before.forwards != 1:
        return False
    assert before.random is not None
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(before.random)
        torch.multinomial(torch.ones(seen.chosen_from), num_samples=1)
        return seen.draws_itself or rng_digest() == late.rng_after
