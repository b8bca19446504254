"""What a check says of a case: differences, ties, and the one verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["pass", "fail", "tie", "known", "blocked-by", "allowed", "not-applicable"]
STATUSES: tuple[Status, ...] = ("pass", "fail", "tie", "known", "blocked-by", "allowed", "not-applicable")
# Of a difference: what it is, in a word.
KINDS = frozenset(
    {"values", "tokens", "length", "shape", "nan", "infinity", "missing", "changed", "added", "removed", "crash"}
    | {"hang", "tied", "untied", "silent", "unclear", "accused"}
)
STEP_TOO_MANY = "step too many"  # the field of an exception that only a step beyond what fits raises
BEGINS_ALIKE = "names that begin alike"  # the field of weights that are one as their names begin as others'
OF_ANOTHER = "weights of another model"  # the field of weights that another model's have taken the place of
WITHOUT_A_COPY = "copies of hooks"  # the field of weights that a hook is to bring and has not got


@dataclass(frozen=True)
class Difference:
    """Where two runs that should agree do not.

    kind: one of `KINDS`; field: the outcome's field, without step or row numbers; raised_in: the raising function of
    a crash. These three make a signature; `where`, `expected` and `got` are for the reader. Raises ValueError.
    """

    kind: str
    field: str
    expected: str
    got: str
    where: str = ""
    raised_in: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of difference: {self.kind!r}; there are {', '.join(sorted(KINDS))}")

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        return f"{in_words(self.field, self.kind)}{place}: expected {self.expected}, got {self.got}"


def in_words(field: str, kind: str) -> str:
    """The field and the kind of a difference in words; a crash is both."""
    return field if field == kind else f"{field} ({kind})"


@dataclass
class Comparison:
    """Everything that one comparison of two runs found.

    blocked_by: a rung below that these differences belong to, though it may pass on the case's own tokens.
    """

    differences: list[Difference] = field(default_factory=list)
    ties: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    not_applicable: str = ""  # a reason that only running could tell
    blocked_by: str = ""

    def __iadd__(self, other: Comparison) -> Comparison:
        if self.differences and other.differences and bool(self.blocked_by) != bool(other.blocked_by):
            own = other if self.blocked_by else self  # what no rung below explains is to be told
            self.differences, self.blocked_by = list(own.differences), ""
            other = replace(other, differences=[], blocked_by="")
        self.differences += other.differences
        self.ties += other.ties
        self.allowed += other.allowed
        self.not_applicable = self.not_applicable or other.not_applicable
        self.blocked_by = self.blocked_by or other.blocked_by
        return self

    def __add__(self, other: Comparison) -> Comparison:
        total = Comparison()
        total += self
        total += other
        return total

    @classmethod
    def of(cls, *differences: Difference) -> Comparison:
        """A comparison with these differences and nothing else."""
        return cls(differences=list(differences))


@dataclass(frozen=True)
class Verdict:
    """Exactly one per case and check. `reason` says why for all but pass and fail."""

    status: Status
    reason: str = ""
    differences: tuple[Difference, ...] = ()

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Verdict:
        """fail before not-applicable before tie before allowed before pass; a failure may be a rung's below."""
        if comparison.differences and comparison.blocked_by:
            return cls("blocked-by", comparison.blocked_by, tuple(comparison.differences))
        if comparison.differences:
            return cls("fail", differences=tuple(comparison.differences))
        if comparison.not_applicable:
            return cls("not-applicable", comparison.not_applicable)
        if comparison.ties:
            return cls("tie", comparison.ties[0])
        if comparison.allowed:
            return cls("allowed", comparison.allowed[0])
        return cls("pass")

    @property
    def label(self) -> str:
        """The status as counted: a blocked verdict names the check that blocks it."""
        return f"blocked-by {self.reason}" if self.status == "blocked-by" else self.status

    def to_dict(self) -> dict[str, Any]:
        """The verdict as records hold it."""
        return {"status": self.status, "reason": self.reason}
