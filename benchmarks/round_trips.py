"""How many round trips a second one core makes: tokens fed to a cache that records, cropped, and compared.

    python benchmarks/round_trips.py [--cases N] [--architectures NAME,NAME…]

For a fixed set of types, one for each cache kind, the same programs of round trips in every run (`SEED`), each on a new
case of its own. A round trip is a crop that was compared with a cache that saw only what is left. Prints how many of
them a second of processor time has room for in programs alone, and with drawing, building and every other check of the
family; asserts nothing. Compare on the same idle machine, with one thread, before and after a change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import hypothesis
from hypothesis import strategies as st

from conformance import registry, upstream
from conformance.judge import judge
from conformance.profiles import exploring
from conformance.programs.prepared import steps_of
from conformance.programs.truths import Unusable
from conformance.runs import Runs
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

ARCHITECTURES = ("llama", "mistral", "gemma2", "deepseek_v3", "mamba2", "lfm2", "falcon_h1", "bart:seq2seq")
SEED, CASES = 1, 20


def measure(architecture: str, count: int) -> tuple[int, float, float]:
    """Crops that were compared, and seconds of processor time in programs alone and in all, after two cases more."""
    checks = [check.name for check in registry.checks().values() if check.family == "rollback"]
    met, crops, alone, whole = 0, 0, 0.0, 0.0

    def one(data: st.DataObject) -> None:
        nonlocal met, crops, alone, whole
        met += 1
        start = time.process_time()
        case = data.draw(cases("rollback", architecture))
        judge(case, checks, Installed())
        end = time.process_time()
        runs = Runs(case, Installed())
        runs.shareable_model()
        again = time.process_time()
        try:
            steps = steps_of(runs)
        except Unusable:
            steps = []
        if met > 2:
            crops += sum(step.op.op == "crop" for step in steps)
            alone += time.process_time() - again
            whole += end - start

    run: Callable[[], None] = hypothesis.seed(SEED)(exploring(count + 2)(hypothesis.given(st.data())(one)))
    run()
    return crops, alone, whole


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES, help=f"cases of each type (default {CASES})")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES), help="comma-separated names")
    options = parser.parse_args()
    upstream.quiet()
    print(", ".join(f"{name} {version}" for name, version in upstream.versions().items()))
    print(f"{'':<16}{'crops':>8}{'programs alone':>18}{'everything':>14}   crops a second of one core")
    totals = [0.0, 0.0, 0.0]
    for architecture in options.architectures.split(","):
        found = measure(architecture, options.cases)
        totals = [total + part for total, part in zip(totals, found, strict=True)]
        print(row(architecture, *found), flush=True)
    print(row("all", *totals))


def row(name: str, crops: float, alone: float, whole: float) -> str:
    """One line of the table."""
    return f"{name:<16}{crops:>8.0f}{crops / (alone or 1):>18.1f}{crops / (whole or 1):>14.1f}"


if __name__ == "__main__":
    main()
