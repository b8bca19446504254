"""A cache under test and what is true of it, compared.

What is true is the plain list of tokens that each row has seen. The cache to compare with is filled with just
those, without recording, cropping or moving anything, by forwards of the same sizes as far as they are kept.
"""

from __future__ import annotations

import torch

from conformance import upstream
from conformance.compare import crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.programs import contents
from conformance.programs.machine import Groups, Machine
from conformance.programs.truths import LOWER, PROBE, Truths
from conformance.verdicts import Comparison, Difference

CONTENTS_BOUND = 1e-3  # relative to the largest of a tensor: rounding is far below, another token's states far above
# With three bits of mantissa a number is off by a sixteenth at most, and the one that it is compared with, too.
LOSSY_BOUND = 1 / 8

Seen = tuple[Groups, tuple[int, ...]]  # the tokens of each forward, and the rows of the prompt that were fed them


def look(machine: Machine, truths: Truths, before: Seen | None = None) -> Comparison:
    """Compare lengths, masks, visible contents and the logits of one more token with the truth.

    `before`: what the cache had seen before what was done; it has to be right as well.
    """
    result = compare_lengths(machine, truths) if machine.filled else _compare_emptiness(machine)
    if not result.differences and not (before and _goes_on_as_before(machine, truths, before[0])):
        result += _compare_next(machine, truths)
    if not result.differences and machine.filled:
        result += _compare_contents(machine, truths)
    seen = {(machine.groups, tuple(machine.sources)), *([before] if before else [])}
    if result.differences and not all(truths.trusted(sources, groups) for groups, sources in seen):
        return Comparison(not_applicable=LOWER)
    return result


def compare_lengths(machine: Machine, truths: Truths) -> Comparison:
    """Compare lengths and mask sizes of every layer, and what the cache tells as a whole, with the truth."""
    expected, got = truths.told(machine.groups, machine.sources), contents.told(machine.cache)
    for name, wanted in expected.items():
        if wanted != got[name]:
            return Comparison.of(Difference("length", name, str(wanted), str(got[name])))
    return Comparison()


def _compare_emptiness(machine: Machine) -> Comparison:
    told = contents.lengths(machine.cache)
    if any(told):
        return Comparison.of(Difference("length", "length", "0 in every layer", str(told)))
    if upstream.told_of(machine.cache).get("has_previous_state") == 1:
        return Comparison.of(Difference("length", "has_previous_state", "none, as after a reset", "there is one"))
    return Comparison()


def _compare_contents(machine: Machine, truths: Truths) -> Comparison:
    gap, place = contents.apart(contents.visible(machine.cache), truths.shown(machine.groups, machine.sources))
    if truths.lossy and set(machine.sources) != set(truths.empty().sources):
        return Comparison()  # without one of the rows the scale is another
    if gap > (LOSSY_BOUND if truths.lossy else CONTENTS_BOUND):
        return Comparison.of(
            Difference("values", "contents", f"{unnumbered(place)} as after only these tokens", f"off by {gap:.1e}")
        )
    return Comparison()


def _goes_on_as_before(machine: Machine, truths: Truths, before: Groups) -> bool:
    """Whether the token that came next when there were more gives the logits that were true of it then.

    They are known already. Where they differ, were it by rounding, or nothing came next, a cache that saw only what is
    left tells.
    """
    known = truths.fed_next(machine.groups, before, machine.sources) if machine.filled else None
    if known is None:
        return False
    group, expected = known
    try:
        logits = machine.copy().feed(torch.tensor(group))
    except Exception:  # noqa: BLE001 - the cache under test may raise anything; the whole comparison says what
        return False
    return truths.strictly().same(logits, expected, (*machine.groups, group), machine.sources)


def _compare_next(machine: Machine, truths: Truths) -> Comparison:
    ahead, sources = machine.copy(), machine.sources
    probe: Groups = (((PROBE,),) * len(sources),) if machine.filled else ()
    groups = (*machine.groups, *probe)
    truths.of(groups, sources)
    try:
        logits = ahead.feed(torch.tensor(probe[0])) if machine.filled else ahead.prefill()
    except Exception as error:  # noqa: BLE001 - the cache under test may raise anything
        return crash_difference(Crash.of(error), "the next token works on a cache that saw only these")
    return truths.compare(logits, groups, sources)


def growth(machine: Machine, truths: Truths) -> str:
    """States that are stored beyond what a cache needs that never recorded."""
    needed = contents.stored(truths.shown(machine.groups, machine.sources))
    for path, count in contents.stored(contents.visible(machine.cache)).items():
        if path in needed and count > needed[path]:
            return f"{unnumbered(path)}: {count} numbers a row where {needed[path]} are needed"
    return ""
