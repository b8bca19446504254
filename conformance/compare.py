"""The rules of comparison: what counts as equal, as a tie, and as a difference.

Scores and logits that come from other shapes or another order of the same sums differ by rounding: at most
`BOUND` times the largest logit (measured: median 2e-6, worst 3.6e-5; real faults 2e-3 and more). Beyond
the bound a difference stands, unless the model itself moves as far when its weights are perturbed by a
rounding error: then it chose between equals (a router, a top-k) and the verdict is a tie, counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.snapshots import Flat, changes, same
from conformance.verdicts import Comparison, Difference

BOUND = 5e-5  # relative to the largest finite logit of the expected side
# float64 where the type computes in it throughout or in parts: measured 5e-7, and 2e-6 in recurrent scans.
WIDE_BOUND = 1e-5
MASKED = 1e6  # larger values are masks, and no scale
# For types with the fact `noisy`, whose reason says where their rounding comes from.
NOISY_BOUND = 3e-4
FEW = 8  # numbers that a message lists
ROUNDING_FACTOR = 5.0  # how many times the response to a perturbed model still counts as rounding
Noise = Callable[[int], float]


@dataclass(frozen=True)
class Deviation:
    """How one step's vector departs from what was expected: a kind, and a size for `values`."""

    kind: str
    size: float = float("inf")
    index: int = -1


def deviation(got: torch.Tensor, expected: torch.Tensor) -> Deviation | None:
    """The departure of `got` from `expected`, both of shape (vocabulary,); None when exactly equal.

    Infinities must be in the same places, and neither side may hold a NaN that the other lacks; nothing is
    subtracted where either is not finite.
    """
    if got.shape != expected.shape:
        return Deviation("shape")
    got, expected = got.double(), expected.double()
    if not torch.equal(got.isnan(), expected.isnan()):
        return Deviation("nan")
    infinite = got.isinf() | expected.isinf()
    if infinite.any() and not torch.equal(got[infinite], expected[infinite]):
        return Deviation("infinity")
    finite = ~infinite & ~got.isnan()
    if not finite.any():
        return None
    gaps = torch.where(finite, (torch.where(finite, got, 0.0) - torch.where(finite, expected, 0.0)).abs(), 0.0)
    size, index = gaps.max(dim=0)
    return Deviation("values", float(size), int(index)) if float(size) > 0 else None


def scale_of(expected: Sequence[torch.Tensor]) -> float:
    """The largest finite absolute value over all steps: what bounds are relative to."""
    sizes = [t[t.isfinite()].abs() for t in expected]
    return max((float(size[size < MASKED].max()) for size in sizes if (size < MASKED).any()), default=1.0)


def compare_steps(
    field: str,
    got: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    noise: Noise,
    where: str = "",
    relative: float = BOUND,
) -> Comparison:
    """Compare one vector a step, within `relative` times the largest logit.

    `noise(step)` is asked only where a step exceeds that bound.
    """
    result = Comparison()
    if len(got) != len(expected):
        return Comparison.of(Difference("length", field, f"{len(expected)} steps", f"{len(got)} steps", where))
    if all(same(mine, theirs) for mine, theirs in zip(got, expected, strict=True)):
        return result
    bound = relative * scale_of(expected)
    for step, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        found = deviation(mine, theirs)
        if found is None or (found.kind == "values" and found.size <= bound):
            continue
        place = f"{where}step {step}"
        if found.kind == "values" and found.size <= ROUNDING_FACTOR * noise(step):
            result.ties.append(f"{field} at {place}: {found.size:.1e} is within the model's own response to rounding")
            continue
        result.differences.append(_step_difference(field, place, found, mine, theirs, bound))
        break  # later steps follow from this one
    return result


def compare_sum(
    field: str,
    got: float,
    expected: Sequence[float],
    logits: Sequence[torch.Tensor],
    noise: Noise,
    where: str = "",
    relative: float = BOUND,
) -> Comparison:
    """A sum of log-probabilities with that of the expected ones, of which `logits` are those that they come from.

    A log-probability moves by the chosen logit and by the normaliser: twice what a logit may be off, at each step.
    """
    steps, wanted = len(expected), sum(expected)
    bound = 2 * steps * relative * max(scale_of(logits), 1.0)
    gap = abs(wanted - got)
    if gap <= bound or wanted == got or (math.isnan(wanted) and math.isnan(got)):
        return Comparison()
    if gap <= bound + 2 * ROUNDING_FACTOR * sum(noise(step) for step in range(steps)):
        return Comparison(ties=[f"{where}: {gap:.1e} is within the model's own response to rounding"])
    return Comparison.of(
        Difference("values", field, f"{wanted:.6g} within {bound:.1e}", f"{got:.6g} (off by {gap:.1e})", where)
    )


def _step_difference(
    field: str, place: str, found: Deviation, mine: torch.Tensor, theirs: torch.Tensor, bound: float
) -> Difference:
    if found.kind != "values":
        return Difference(found.kind, field, _brief(theirs), _brief(mine), place)
    at = found.index
    return Difference(
        "values",
        field,
        f"{float(theirs[at]):.6g} within {bound:.1e} at index {at}",
        f"{float(mine[at]):.6g} (off by {found.size:.1e})",
        place,
    )


def _brief(vector: torch.Tensor) -> str:
    bad = (~vector.isfinite()).nonzero().flatten().tolist()
    some = f"{str(bad[:FEW])[:-1]}, ...] ({len(bad)} in all)" if len(bad) > FEW else str(bad)
    return f"shape {list(vector.shape)}, not finite at {some}"


def compare_tokens(
    got: Sequence[int],
    expected_scores: Sequence[torch.Tensor],
    margin: Callable[[int, int, int], float],
    noise: Noise,
    where: str,
    relative: float = BOUND,
) -> Comparison:
    """Each token against the arg max of the expected processed scores of its step.

    `margin(step, expected, got)` is the gap in float64 between the two tokens' scores; below the bound, or
    within the model's own response to rounding, the choice was a tie.
    """
    result = Comparison()
    bound = relative * scale_of(expected_scores) * 2
    for step, (token, scores) in enumerate(zip(got, expected_scores, strict=True)):
        best = int(scores.argmax())
        if token == best or float(scores[token]) == float(scores[best]):
            continue
        gap = margin(step, best, token)
        if gap <= bound or gap <= 2 * ROUNDING_FACTOR * noise(step):
            result.ties.append(f"{where}step {step}: tokens {best} and {token} are {gap:.1e} apart")
            continue
        result.differences.append(
            Difference("tokens", "sequences", str(best), f"{token} ({gap:.1e} below)", f"{where}step {step}")
        )
        break
    return result


def compare_exactly(got: Flat, expected: Flat, name_of: Callable[[str], str] | None = None) -> Comparison:
    """Bitwise comparison of flat fields: the first that differs, by its name without numbers."""
    found = changes(expected, got)
    if not found:
        return Comparison()
    path, how = min(found.items(), key=lambda item: (_importance(item[0]), item[0]))
    kind = how if how in ("added", "removed") else "changed"
    return Comparison.of(Difference(kind, (name_of or unnumbered)(path), "bitwise the same", f"{path}: {how}", path))


# The field that a difference is named after: what a user sees first.
IMPORTANCE = ("sequences", "streamed", "logits", "scores", "states", "cache_length", "cache", "rng")


def _importance(path: str) -> int:
    name = path.split(".", 1)[0]
    return IMPORTANCE.index(name) if name in IMPORTANCE else len(IMPORTANCE)


def unnumbered(path: str) -> str:
    """A field's path without step, layer or row numbers: what makes two differences the same."""
    return ".".join(part for part in path.split(".") if not part.isdigit())


def crash_difference(crash: Any, beside: str) -> Comparison:
    """A crash where the run beside it works."""
    return Comparison.of(
        Difference(
            "crash", "crash", f"no exception, as {beside}", str(crash), raised_in=f"{crash.type} in {crash.raised_in}"
        )
    )
