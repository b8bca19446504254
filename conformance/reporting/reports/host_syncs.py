"""`host_syncs.md`: how often the host waits for each decoded token, stopping at once and one step late."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

AT_ONCE, LATE = "host_syncs_per_token, immediate", "host_syncs_per_token, deferred"
HEAD = """# Host synchronisations per decoded token

Mean over the cases in which stopping was deferred. Subject: {subject}, with {versions}.

Counted: values that the host takes from the device, and waits for the step just issued. Those of the model itself
(masks of padded prompts, routers) and of streaming are included.

| type | cases | stopping at once | one step late |
|---|---|---|---|
"""


def write(folder: Path, summary: dict[str, Any], records: list[Any]) -> Path | None:
    """The table, one row a model type; None where no case deferred."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        figures = record.get("figures", {}) if record["record"] == "case" and record["counted"] else {}
        if AT_ONCE in figures and LATE in figures:
            pairs[record["architecture"]].append((figures[AT_ONCE], figures[LATE]))
    if not pairs:
        return None
    everything = [pair for some in pairs.values() for pair in some]
    rows = [_row(name, some) for name, some in sorted(pairs.items())] + [_row("**all**", everything)]
    found = summary.get("versions", {})
    versions = ", ".join(f"{name} {found[name]}" for name in ("transformers", "torch") if name in found)
    path = folder / "host_syncs.md"
    head = HEAD.format(versions=versions, subject=summary.get("subject", "unknown"))
    path.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def _row(name: str, pairs: list[tuple[float, float]]) -> str:
    at_once, late = (mean(values) for values in zip(*pairs, strict=True))
    return f"| {name} | {len(pairs)} | {at_once:.2f} | {late:.2f} |"
