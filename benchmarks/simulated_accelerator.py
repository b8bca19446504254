"""Every type on one simulated device beside the CPU: what it gives, which ops it lacks, and what it costs.

    python benchmarks/simulated_accelerator.py [--architectures NAME,NAME…] [--repeats N] [--write FOLDER]

One tiny model and one greedy call of eight tokens for each type, on the CPU and then on `sim:0`. Its logits are bitwise
those of the CPU, or within the bound of comparison, or they are not; a type that raises there and not on the CPU meets
an op that the device lacks. The cost is the processor time of a `generate` there over that on the CPU, the median of
`--repeats` calls after one that is not counted. `--write` also puts the table into FOLDER, as Markdown and as JSON.

Prints a line for each type as it goes and a summary at the end; asserts nothing. The aims: no op lacking, nothing
beyond the bound, at most eight times the CPU's time in the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from conformance import upstream
from conformance.architectures import catalogue
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.call import Call
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, NotBuildable
from conformance.placing.comparing import compare_calls
from conformance.runs import Runs
from conformance.simulation import accelerator
from conformance.subjects.installed import Installed

TOKENS = 8
BITWISE, WITHIN, BEYOND, LACKS, NONE = "bitwise", "within the bound", "beyond the bound", "lacks an op", "not run"
ABOUT = (
    "One greedy `generate` of eight tokens on one simulated device, beside the same on the CPU. Cost: processor time "
    "there over that on the CPU."
)


@dataclass(frozen=True)
class Row:
    """What one type did; cost: times the CPU's time; said: the error, where there was one."""

    architecture: str
    result: str
    cost: float | None = None
    said: str = ""


def case_of(architecture: str) -> Case:
    """The same small case for every type."""
    spec = ModelSpec(architecture=architecture, config=tiny_config(architecture))
    return Case(family="cached", model=spec, prompt=Prompt(rows=((3, 4, 5),)), settings=Settings(max_new_tokens=TOKENS))


def measured(architecture: str, repeats: int) -> Row:
    """One type on the CPU and on the device."""
    try:
        runs = Runs(case_of(architecture), Installed())
        model = model_of(runs.scenario)
    except (BadInput, NotBuildable) as error:
        return Row(architecture, NONE, said=f"not buildable: {error}")
    expected = runs.run(runs.call(), model=model)
    if expected.crash is not None:
        return Row(architecture, NONE, said=f"the CPU raises {expected.crash}")
    on_cpu = seconds(model, runs.call(), repeats)
    with accelerator.devices(1):
        try:
            there = model_of(runs.scenario).to("sim:0")
        except Exception as error:  # noqa: BLE001 - whatever moving a model raises is what the table tells
            return Row(architecture, LACKS, said=f"moving raises {error!r}")
        moved = {name: tensor.to("sim:0") for name, tensor in runs.call().inputs.items()}
        got = runs.run(runs.call().replace(inputs=moved), model=there)
        if got.crash is not None:
            return Row(architecture, LACKS, said=str(got.crash))
        cost = seconds(there, runs.call().replace(inputs=moved), repeats) / on_cpu
        got.sequences = got.sequences.cpu()
        got.logits, got.scores = (tuple(step.cpu() for step in steps) for steps in (got.logits, got.scores))
    return Row(architecture, likeness(got, expected, runs.bound), cost)


def model_of(scenario: Scenario) -> Any:
    """A new model, its experts computed in the same way on every device."""
    model = scenario.model()
    upstream.one_kind_of_experts(model)
    return model


def seconds(model: Any, call: Call, repeats: int) -> float:
    """The median processor time of a call, after runs that warmed everything up."""
    took = []
    for _ in range(repeats):
        start = time.process_time()
        model.generate(**call.arguments())
        took.append(time.process_time() - start)
    return statistics.median(took)


def likeness(got: Any, expected: Any, bound: float) -> str:
    """How close two outcomes are."""
    same = torch.equal(got.sequences, expected.sequences)
    if same and all(map(torch.equal, got.logits, expected.logits)):
        return BITWISE
    return BEYOND if compare_calls(got, expected, bound).differences else WITHIN


def told(rows: list[Row]) -> str:
    """The table as Markdown."""
    versions = f"transformers {'.'.join(map(str, upstream.release()))}, torch {torch.__version__}"
    counts = ", ".join(f"{count} {result}" for result, count in Counter(row.result for row in rows).most_common())
    costs = [row.cost for row in rows if row.cost is not None]
    cost = f"Cost: median {statistics.median(costs):.1f}, largest {max(costs):.1f}." if costs else ""
    lines = ["# The simulated accelerator beside the CPU", "", ABOUT, "", f"{versions}. {counts}. {cost}", ""]
    lines += ["| architecture | result | cost | said |", "|---|---|---|---|"]
    for row in rows:
        said = row.said.replace("|", "/").replace("\n", " ")[:160]
        lines.append(
            f"| {row.architecture} | {row.result} | {'' if row.cost is None else f'{row.cost:.1f}'} | {said} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """One row for each type asked for, or for all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--architectures", default="")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--write", type=Path)
    asked = options.parse_args()
    upstream.quiet()
    rows = []
    for name in asked.architectures.split(",") if asked.architectures else catalogue.names():
        rows.append(measured(name, asked.repeats))
        cost = rows[-1].cost
        print(
            f"{name:<28}{rows[-1].result:<18}{'' if cost is None else f'{cost:5.1f}'}  {rows[-1].said[:80]}", flush=True
        )
    if asked.write:
        asked.write.mkdir(parents=True, exist_ok=True)
        (asked.write / "simulated_accelerator.md").write_text(told(rows))
        kept = json.dumps([asdict(row) for row in rows], indent=1)
        (asked.write / "simulated_accelerator.json").write_text(kept + "\n")
    print(told(rows).splitlines()[4])


if __name__ == "__main__":
    main()
