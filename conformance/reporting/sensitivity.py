"""The sensitivity table, kept as `sensitivity.json` and `sensitivity.md`; measured anew type by type."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conformance import upstream
from conformance.architectures.scales import SCALES
from conformance.files import write_atomically
from conformance.sensitivity.cells import FAULTS, Cell

VISIBLE = 0.99  # of the cases of a cell, or it needs a reason
HEAD = """# Sensitivity

Whether a fault that is planted in a cache reaches the next token's logits by more than the bound of comparison: share
of drawn cases, at least {cases} a cell where the kind was drawn as often. {versions}.

| architecture | cache kind | {faults} |
|---|---|{dashes}|
"""


def read(folder: Path) -> dict[str, Any]:
    """The table kept in a folder: architecture → its cells. Empty where there is none yet."""
    path = folder / "sensitivity.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["architectures"]) if path.exists() else {}


def write(folder: Path, measured: Iterable[tuple[str, list[Cell]]], cases: int) -> Path:
    """Write down the cells of each architecture as they come, in the place of its earlier ones; gives the page."""
    folder.mkdir(parents=True, exist_ok=True)
    table = read(folder)
    for name, cells in measured:
        table[name] = [asdict(cell) for cell in cells]
        document = {"versions": upstream.versions(), "cases": cases, "architectures": dict(sorted(table.items()))}
        write_atomically(folder / "sensitivity.json", _one_line_a_cell(document))
    page = folder / "sensitivity.md"
    write_atomically(page, render(table, cases))
    return page


def _one_line_a_cell(document: dict[str, Any]) -> str:
    """The document as JSON with each cell on a line of its own, so that what changed can be read."""
    cells = ",\n".join(
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(cell)}" for cell in table) + "\n  ]"
        for name, table in document["architectures"].items()
    )
    head = json.dumps({key: value for key, value in document.items() if key != "architectures"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "architectures": {{\n{cells}\n }}\n}}\n'


def unexplained(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells below what is asked for that give no reason."""
    cells = [cell for name in sorted(table) for cell in table[name]]
    return [c for c in cells if not c["reason"] and c["cases"] and c["seen"] / c["cases"] < VISIBLE]


def scales_that_see(cells: list[dict[str, Any]], fewest: int = 5) -> list[float]:
    """The scales of an architecture's weights at which every case of every cell that gives no reason was seen.

    A scale with fewer than `fewest` cases in a cell says nothing, and is kept.
    """
    blind = {
        scale
        for cell in cells
        if not cell["reason"]
        for scale, (seen, cases) in cell["by_scale"].items()
        if cases >= fewest and seen < cases
    }
    return [scale for scale in SCALES if f"{scale:g}" not in blind]


def render(table: dict[str, Any], cases: int) -> str:
    """The table as a page: a row per architecture and kind, reasons below it by number."""
    versions = ", ".join(f"{name} {upstream.versions()[name]}" for name in ("transformers", "torch"))
    reasons: dict[str, int] = {}
    lines = []
    for name in sorted(table):
        for kind in sorted({cell["kind"] for cell in table[name]}):
            by_fault = {cell["fault"]: cell for cell in table[name] if cell["kind"] == kind}
            lines.append(f"| {name} | {kind} | {' | '.join(_entry(by_fault[fault], reasons) for fault in FAULTS)} |")
    head = HEAD.format(cases=cases, versions=versions, faults=" | ".join(FAULTS), dashes="---|" * len(FAULTS))
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return head.replace("||", "|") + "\n".join(lines) + "\n\n" + "\n".join(notes) + "\n"


def _entry(cell: dict[str, Any], reasons: dict[str, int]) -> str:
    share = f"{cell['seen'] / cell['cases']:.1%} of {cell['cases']}" if cell["cases"] else "-"
    if not cell["reason"]:
        return share
    return f"{share} ({reasons.setdefault(cell['reason'], len(reasons) + 1)})"
