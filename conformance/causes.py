"""Which findings of a run show one cause, though on several types of models or in several circumstances."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from conformance.signature import in_any_copy
from conformance.verdicts import BEGINS_ALIKE, OF_ANOTHER, STEP_TOO_MANY, WITHOUT_A_COPY

if TYPE_CHECKING:
    from conformance.findings import Finding

FED_A_STRANGE_PAD = "plan pad_beyond"  # the need by which a token that no embedding has is told from a full table
# What is said of tensors on several devices by whoever is the first to meet them.
SEVERAL_DEVICES = re.compile(r"Expected all tensors to be on the same device")
# What is said of a tensor on `meta` by whoever is the first to ask it for values.
WITHOUT_VALUES = re.compile(
    r"cannot be called on meta tensors|Cannot copy out of meta tensor|is on the meta device|Tensor on device meta"
)


def of_several_types(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The findings of several types that differ in nothing but the type, where what they show is not of its own.

    Which weights are written anew, and take the place of another model's, is a type's own, and how they do it is not.
    """
    alike: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        cause = _cause(finding)
        own = finding.signature.scope != "any" or finding.signature.field == OF_ANOTHER
        if own and cause is not None:
            alike.setdefault(cause, []).append(finding)
    return [group for group in alike.values() if len(group) > 1]


def _cause(finding: Finding) -> tuple[Any, ...] | None:
    """What names the cause, whatever the type: the message of an exception of code that types share, but for numbers
    and quoted names; why a hook has no copy of a weight; what the weights are called that came apart; that weights are
    one whose names begin as those that are tied, or have taken the place of another model's; or that a step more was
    taken than there is room for, in the cache or in a table of the model's own, or was fed a pad id that no embedding
    has. None where there is nothing: other values may have any cause.
    """
    signature = finding.signature
    if signature.field == STEP_TOO_MANY:
        return signature.check, signature.field, signature.raised_in_own_code, FED_A_STRANGE_PAD in signature.needs
    if signature.raised_by_shared_code:
        return signature.key, signature.needs, _without_names(in_any_copy(finding.got))
    if signature.field == OF_ANOTHER:
        return (signature.key,)
    if signature.field == BEGINS_ALIKE:
        return signature.key, signature.needs
    if signature.field == WITHOUT_A_COPY:
        return signature.key, signature.needs, re.sub(r"^[^:]*:|\(\d+ in all\)", "", finding.got)
    if signature.kind == "untied":
        weights = frozenset(re.findall(r"\.(\w+)(?= |$)", finding.got))
        return (signature.key, signature.needs, weights) if weights else None
    return None


def in_other_circumstances(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The exceptions of one check that are told alike, the one that needs the least first in its group.

    Each of the others needs the same or more, but for what a plan says are only circumstances, and is of the same type;
    or the first is of any type.
    """
    groups: list[list[Finding]] = []
    for finding in sorted(findings, key=_by_needs):
        if finding.signature.kind != "crash":
            continue
        group = next((group for group in groups if _is_told_by(group[0], finding)), None)
        if group is None:
            groups.append([finding])
        else:
            group.append(finding)
    return [group for group in groups if len(group) > 1]


def _by_needs(finding: Finding) -> tuple[int, bool, int, str]:
    signature = finding.signature
    return len(_core(finding)), signature.scope != "any", len(signature.needs), finding.id


def _is_told_by(one: Finding, other: Finding) -> bool:
    """Whether another exception is one that needs no more. What shared code raises on any type is so on each.

    Where tensors on several devices meet in any type for something that is needed, as a map that splits what is tied,
    they do for that in each, in whatever code of it.
    """
    if not _core(one) <= _core(other):
        return False
    anywhere, everywhere = one.signature.scope == "any", one.signature.raised_by_shared_code and not _asks_in_vain(one)
    if _told(one) == _told(other) and (one.signature.scope == other.signature.scope or (anywhere and everywhere)):
        return True
    meet = one.signature.check == other.signature.check and all(SEVERAL_DEVICES.search(f.got) for f in (one, other))
    return anywhere and meet and bool(_core(one))


def _asks_in_vain(finding: Finding) -> bool:
    return finding.signature.raised_by_shared_code and bool(WITHOUT_VALUES.search(finding.got))


def _core(finding: Finding) -> frozenset[str]:
    """What a finding needs, without the circumstances."""
    plan = finding.case.plan
    needs = finding.signature.needs
    return frozenset(needs if plan is None else (need for need in needs if not plan.is_circumstance(need)))


def _told(finding: Finding) -> tuple[Any, ...]:
    """What names an exception of one check: where it was raised and what it says, but for numbers, names and devices;
    of one that shared code raises at a tensor without values neither, for anybody may be the first to ask.
    """
    signature = finding.signature
    if _asks_in_vain(finding):
        return signature.check, signature.cache
    devices = re.sub(r"\b(?:sim|cuda|xpu|mps):\d+|\b(?:cpu|meta|sim)\b", "DEVICE", in_any_copy(finding.got))
    return signature.key, _without_names(devices)


def _without_names(message: str) -> str:
    """A message without numbers and quoted names, however many there are of them in a row."""
    return re.sub(r"#(\W+#)+", "#", re.sub(r"'[^']*'|`[^`]*`|\d+", "#", message))
