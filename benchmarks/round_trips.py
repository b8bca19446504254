"""How many round trips a second one core makes: tokens fed to a cache that records, cropped, and compared.

    python benchmarks/round_trips.py [--cases N] [--architectures NAME,NAME…]

For a fixed set of types, one for each cache kind, the same drawn models, prompts and classes of cache in every run
(`SEED`). On each, the same round trips: on a new cache the prompt, recording switched on, one to four tokens in one
forward, and a crop of some of them, compared with a cache that saw only what is left. A crop that is refused is none.
Prints how many of them a second of processor time has room for, and how many cases of the family as they are drawn,
with other operations than crops, several caches a case, drawing, building and every check. Asserts nothing. Compare on
the same idle machine, with one thread, before and after a change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import hypothesis
from hypothesis import strategies as st

from conformance import registry, upstream
from conformance.judge import judge
from conformance.plans.rollback_programs import Op
from conformance.profiles import exploring
from conformance.programs.prepared import interpreter, run
from conformance.programs.truths import Unusable
from conformance.runs import Runs
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

ARCHITECTURES = ("llama", "mistral", "gemma2", "deepseek_v3", "mamba2", "lfm2", "falcon_h1", "bart:seq2seq")
SEED, CASES, WARMING = 1, 20, 2  # the first cases of a type load its modules, and are not counted
FED = ((1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 1), (4, 3), (4, 4))  # (tokens fed in one forward, taken back)
MOST_FED = max(fed for fed, _ in FED)


@dataclass
class Measured:
    """What was done, and the seconds of processor time that it took."""

    trips: int = 0
    trip_seconds: float = 0.0
    cases: int = 0
    case_seconds: float = 0.0

    def __add__(self, other: Measured) -> Measured:
        return Measured(*(mine + more for mine, more in zip(vars(self).values(), vars(other).values(), strict=True)))

    def row(self, name: str) -> str:
        """One line of the table."""
        trips, cases_ = self.trips / (self.trip_seconds or 1), self.cases / (self.case_seconds or 1)
        return f"{name:<16}{self.trips:>8}{trips:>12.1f}{self.cases:>8}{cases_:>12.1f}"


def round_trips() -> tuple[Op, ...]:
    """A program of round trips, each on a new cache."""
    program: list[Op] = []
    for number, (fed, back) in enumerate(FED):
        tokens = tuple(2 + (5 * number + token) % 29 for token in range(fed))
        ops = (Op(op="prefill"), Op(op="record"), Op(op="feed", tokens=tokens), Op(op="crop", count=back))
        program += [*([Op(op="fresh")] if number else []), *ops]
    return tuple(program)


def trips_on(runs: Runs) -> int:
    """Make the round trips on the case's model and class of cache; how many were not refused."""
    try:
        steps = run(interpreter(runs, more=MOST_FED), round_trips())
    except Unusable:
        return 0
    return sum(step.op.op == "crop" and step.refusal is None for step in steps)


def measure(architecture: str, count: int) -> Measured:
    """So many cases of this type."""
    checks = [check.name for check in registry.checks().values() if check.family == "rollback"]
    met, found = 0, Measured()

    def one(data: st.DataObject) -> None:
        nonlocal met
        met += 1
        start = time.process_time()
        case = data.draw(cases("rollback", architecture))
        judge(case, checks, Installed())
        judged = time.process_time()
        runs = Runs(case, Installed())
        runs.shareable_model()
        built = time.process_time()
        trips = trips_on(runs)
        if met > WARMING:
            found.trips, found.trip_seconds = found.trips + trips, found.trip_seconds + time.process_time() - built
            found.cases, found.case_seconds = found.cases + 1, found.case_seconds + judged - start

    search: Callable[[], None] = hypothesis.seed(SEED)(exploring(count + WARMING)(hypothesis.given(st.data())(one)))
    search()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES, help=f"cases of each type (default {CASES})")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES), help="comma-separated names")
    options = parser.parse_args()
    upstream.quiet()
    print(", ".join(f"{name} {version}" for name, version in upstream.versions().items()))
    print(f"{'':<16}{'trips':>8}{'a second':>12}{'cases':>8}{'a second':>12}   of one core")
    total = Measured()
    for architecture in options.architectures.split(","):
        found = measure(architecture, options.cases)
        total += found
        print(found.row(architecture), flush=True)
    print(total.row("all"))


if __name__ == "__main__":
    main()
