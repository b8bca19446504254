"""What one operation of a program did to a cache, and when an exception is a refusal."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field

from conformance.outcome import Crash
from conformance.plans.rollback_programs import Op
from conformance.verdicts import Comparison

REFUSALS = ("ValueError", "RuntimeError", "NotImplementedError", "TypeError")


@dataclass
class Step:
    """What one operation did.

    declared: what `is_croppable` said before it; filled, recording: whether the cache held
    tokens before it, and kept what it need not; after: of a forward, the last operation that moved states; covered: a
    crop of no more than was recorded, on a filled cache; beyond: a crop of more than was fed;
    refusal: how it was refused, if it was; changed: what that changed all the same; wrong: how the cache differs
    from one that saw only what is left; grown: states that are stored and not needed; overfull: more tokens that are
    kept as they are than a layer was made for.
    """

    op: Op
    declared: bool | None = None
    filled: bool = True
    recording: bool = False
    after: str = ""
    covered: bool = False
    beyond: bool = False
    crash: Comparison = field(default_factory=Comparison)
    refusal: Crash | None = None
    changed: Comparison = field(default_factory=Comparison)
    wrong: Comparison = field(default_factory=Comparison)
    lengths: list[int | None] = field(default_factory=list)
    grown: str = ""
    overfull: str | None = None

    @property
    def broken(self) -> bool:
        """Whether nothing after it can be judged."""
        found = (self.crash, self.changed, self.wrong)
        return self.beyond or any(part.differences or part.not_applicable for part in found)


def refuses(error: BaseException) -> bool:
    """Whether an exception is a refusal: raised by name in the code that was called, not by a line that broke."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or type(error).__name__ not in REFUSALS:
        return False
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return line.strip().startswith("raise")
