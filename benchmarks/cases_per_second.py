"""How many cases a second one process judges, and how much of that time is spent in model code.

    python benchmarks/cases_per_second.py [--cases N] [--architectures NAME,NAME…] [--families NAME,NAME…] [--totals]

A fixed set of types, one for each cache kind, the same cases in every run (`SEED`). Each case is drawn, built, run and
judged by every check of its family, as in a run, without shrinking or records. A warm-up case of each kind is not
measured: it imports the type's module. Prints a table and asserts nothing: compare on the same idle machine, with one
thread, before and after a change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import hypothesis
from hypothesis import strategies as st

from conformance import registry, upstream
from conformance.case import Case
from conformance.clock import MODEL_CODE
from conformance.judge import judge
from conformance.profiles import exploring
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

ARCHITECTURES = ("llama", "gpt2", "mistral", "gemma2", "deepseek_v3", "mamba2", "lfm2", "bamba", "t5")
SEED, CASES, FEW = 1, 40, 4


@dataclass
class Timing:
    """Seconds of one set of cases: in all, for drawing, and inside model code."""

    cases: int = 0
    total: float = 0.0
    drawing: float = 0.0
    model: float = 0.0

    def __add__(self, other: Timing) -> Timing:
        return Timing(
            self.cases + other.cases,
            self.total + other.total,
            self.drawing + other.drawing,
            self.model + other.model,
        )

    def row(self, name: str) -> str:
        """One line of the table."""
        return (
            f"{name:<24}{self.cases:>7}{self.cases / self.total:>10.1f}{1000 * self.total / self.cases:>10.1f}"
            f"{self.drawing / self.total:>10.0%}{self.model / self.total:>12.0%}"
        )


def measure(family: str, architecture: str, count: int) -> Timing:
    """Draw and judge `count` cases, after two that are not measured."""
    checks = [check.name for check in registry.checks().values() if check.family == family]
    timing, met = Timing(), 0

    def one(data: st.DataObject) -> None:
        nonlocal met, timing
        met += 1
        start, model_start = time.perf_counter(), MODEL_CODE.seconds
        case: Case = data.draw(cases(family, architecture))
        drawn = time.perf_counter()
        judge(case, checks, Installed())
        if met > 2:
            end = time.perf_counter()
            timing += Timing(1, end - start, drawn - start, MODEL_CODE.seconds - model_start)

    run: Callable[[], None] = hypothesis.seed(SEED)(exploring(count + 2)(hypothesis.given(st.data())(one)))
    run()
    return timing


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES, help=f"cases per family and type (default {CASES})")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES), help="comma-separated names")
    parser.add_argument("--families", default=",".join(registry.families()), help="comma-separated names")
    parser.add_argument("--totals", action="store_true", help="one line for each family, fewer cases of each type")
    options = parser.parse_args()
    count = FEW if options.totals and options.cases == CASES else options.cases
    upstream.quiet()
    print(", ".join(f"{name} {version}" for name, version in upstream.versions().items()))
    print(f"{'':<24}{'cases':>7}{'cases/s':>10}{'ms/case':>10}{'drawing':>10}{'model code':>12}")
    for family in options.families.split(","):
        whole = Timing()
        for architecture in options.architectures.split(","):
            timing = measure(family, architecture, count)
            whole += timing
            if not options.totals:
                print(timing.row(f"{family} {architecture}"), flush=True)
        print(whole.row(f"{family}, all"), flush=True)


if __name__ == "__main__":
    main()
