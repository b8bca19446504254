"""From records to figures: `summary.json`, and the exit code that follows. Nothing is counted anywhere else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from conformance import registry, upstream
from conformance.architectures.cells import ENOUGH
from conformance.architectures.core import CORE
from conformance.events import KIND
from conformance.files import write_atomically
from conformance.findings import Finding, Findings
from conformance.options import Options
from conformance.records import count_verdicts, figures, orphans, read
from conformance.reporting.columns import counted, first_few
from conformance.reporting.wording import in_short

MOST_TIES = 0.01  # of the verdicts that compared something within a bound
FEWEST_COMPARED = 200  # below, one tie would be more than that
MOST_ALLOWED_ALONE = 20  # cases of one check: fewer may be chance, as in a short run
Json = dict[str, Any]


def summarise(options: Options, *, seconds: float, interrupted: bool = False) -> Json:
    """The summary of a run: documented in docs/reference/summary.md, written to `summary.json`."""
    folder = Path(options.report or ".")
    records = list(read(folder))
    cases = [r for r in records if r["record"] == "case" and r["counted"]]
    items = [r for r in records if r["record"] == "item"]
    broken = [r for r in records if r["record"] == "broke"]
    verdicts = count_verdicts(records)
    findings = [_brief(finding) for finding in Findings(folder)]
    summary: Json = {
        "versions": upstream.versions(),
        "subject": options.subject,
        "profile": options.profile,
        "seed": options.seed,
        "fresh": options.fresh,
        "examples": options.examples,
        "budget": options.budget,
        "checks": list(options.checks),
        "architectures": list(options.architectures),
        "cases": len(cases),
        "verdicts": verdicts,
        "reasons": _reasons(cases),
        "items": _items(items, broken),
        "events": _events(cases),
        "cells": cells(items, cases),
        "core_not_run": core_not_run(items),
        "not_reached": not_reached(options, cases),
        "below_floor": below_floor(options, cases),
        "only_allowed": only_allowed(verdicts),
        "figures": figures(records),
        "compared_within_a_bound": compared_within_a_bound(verdicts),
        "share_of_ties": round(share_of_ties(verdicts), 5),
        "seconds": round(seconds, 1),
        "cases_per_s": round(len(cases) / seconds, 2) if seconds else 0.0,
        "share_of_time_in_model_code": _model_share(items),
        "findings": findings,
        "died": [orphan["item"] for orphan in orphans(folder)] if not interrupted else [],
        "broken": [{"item": r["item"], "error": r["error"]} for r in broken],
        "interrupted": interrupted,
    }
    summary["exit_code"], summary["exit_reason"] = exit_code(summary)
    write_atomically(folder / "summary.json", json.dumps(summary, indent=1) + "\n")
    return summary


def exit_code(summary: Json) -> tuple[int, str]:
    """130, then 3, then 1, then 4, as they apply; with the reason in words."""
    if summary["interrupted"]:
        return 130, "interrupted; what was found is kept"
    if summary["broken"] or summary["died"]:
        return 3, f"the harness broke on {_left_unfinished(summary)}"
    if summary["findings"]:
        return 1, counted(len(summary["findings"]), "finding")
    if summary["share_of_ties"] > MOST_TIES and summary["compared_within_a_bound"] >= FEWEST_COMPARED:
        return 4, f"{summary['share_of_ties']:.1%} ties, more than {MOST_TIES:.0%}"
    if summary["core_not_run"]:
        name, reason = next(iter(summary["core_not_run"].items()))
        return 4, f"{name} is selected by default and does not run: {reason}"
    if summary["below_floor"]:
        return 4, "not enough was exercised: " + first_few(summary["below_floor"])
    if often := [f"{check} in {n} cases" for check, n in summary["only_allowed"].items() if n > MOST_ALLOWED_ALONE]:
        return 4, f"not enough was exercised: never a pass or a failure, only what is allowed, of {first_few(often)}"
    if not summary["cases"]:
        return 4, "not one case was run"
    if summary["checks"] and all(f"{check}: compared nothing" in summary["not_reached"] for check in summary["checks"]):
        return 4, "not one check compared anything"
    return 0, "nothing found"


def _left_unfinished(summary: Json) -> str:
    """How many items were not finished, and which: of a worker that died, the one that it was on."""
    names = [broken["item"] for broken in summary["broken"]] + [f"{item} (its worker died)" for item in summary["died"]]
    return f"{counted(len(names), 'item')}: {first_few(names)}"


def _brief(finding: Finding) -> Json:
    document = finding.to_dict()
    signature = document["signature"]
    return {
        "id": finding.id,
        "check": signature["check"],
        "architecture": finding.case.model.architecture,
        "model": finding.case.model_name,
        "signature": signature,
        "in_short": in_short(finding),
        "confirmed": finding.confirmed,
        "first_seen": finding.first_seen,
        "expected": finding.expected,
        "got": finding.got,
    }


def _items(items: list[Json], broken: list[Json]) -> dict[str, int]:
    counts = Counter("ran" if r["outcome"] == "ran" else f"{r['outcome']}: {r['reason']}" for r in items)
    counts["with findings"] = sum(bool(r["findings"]) for r in items)
    counts["broken"] = len(broken)
    return dict(sorted(counts.items()))


def _reasons(cases: list[Json]) -> dict[str, dict[str, int]]:
    """check → "verdict: reason" → count, for every verdict that has a reason."""
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        for check, reason in case["reasons"].items():
            label = case["verdicts"][check]
            # A tie's reason holds numbers of its case; they are in the records.
            counts.setdefault(check, Counter())[label if label == "tie" else f"{label}: {reason}"] += 1
    return {check: dict(counter.most_common()) for check, counter in sorted(counts.items())}


def _events(cases: list[Json]) -> dict[str, int]:
    counts = Counter(f"{case['family']}: {event}" for case in cases for event in case["events"])
    return dict(sorted(counts.items()))


def cells(items: list[Json], cases: list[Json]) -> Json:
    """How far architecture × cache kind was covered, over all families: the cells that the items' types reach."""
    known = {(r["architecture"], kind) for r in items for kind in r.get("kinds", ())}
    met = Counter((c["architecture"], e.removeprefix(KIND)) for c in cases for e in c["events"] if e.startswith(KIND))
    few = sorted(cell for cell in known if met[cell] < ENOUGH)
    return {
        "reachable": len(known),
        "reached": sum(met[cell] > 0 for cell in known),
        "reached_often": len(known) - len(few),
        "often": ENOUGH,
        "fewer": {f"{architecture} × {kind}": met[architecture, kind] for architecture, kind in few},
    }


def not_reached(options: Options, cases: list[Json]) -> list[str]:
    """The events that a family could reach and that no case reached."""
    seen = _events(cases)
    names = (f"{name}: {event}" for name in options.families() for event in registry.families()[name].reachable)
    return sorted([*(name for name in names if name not in seen), *vacuous(options, cases)])


def vacuous(options: Options, cases: list[Json]) -> list[str]:
    """The selected checks that compared nothing."""
    compared = {
        check
        for case in cases
        for check, label in case["verdicts"].items()
        if label != "not-applicable" and not label.startswith("blocked-by")
    }
    return [f"{check}: compared nothing" for check in options.checks if check not in compared]


def only_allowed(verdicts: dict[str, dict[str, int]]) -> dict[str, int]:
    """The checks whose every verdict with something to say was `allowed`: check → how often.

    What is allowed is neither right nor wrong, so that such a check has shown nothing of the subject.
    """
    said = ("pass", "fail", "tie", "known")
    alone = {check: counts["allowed"] for check, counts in verdicts.items() if counts.get("allowed")}
    return {check: count for check, count in alone.items() if not any(verdicts[check].get(label) for label in said)}


def core_not_run(items: list[Json]) -> dict[str, str]:
    """The types of the default selection that this release has and cannot run: type → why.

    They need no further package, so that a release in which one of them does not run is at fault.
    """
    return {
        r["architecture"]: r["reason"] for r in items if r["outcome"] == "not-applicable" and r["architecture"] in CORE
    }


def below_floor(options: Options, cases: list[Json]) -> list[str]:
    """The events that fewer cases reached than the family's floor.

    In force from a number of cases on, and where the whole family is selected: a part of it runs less.
    """
    found, seen = [], _events(cases)
    totals = Counter(case["family"] for case in cases)
    for name in options.families():
        whole = all(c.name in options.checks for c in registry.checks().values() if c.family == name)
        if totals[name] < registry.FLOOR_CASES or not whole:
            continue
        for event, floor in registry.families()[name].floors.items():
            share = seen.get(f"{name}: {event}", 0) / totals[name]
            if share < floor:
                found.append(f"{name}: {event} in {share:.1%} of {totals[name]} cases, floor {floor:.1%}")
    return found + promised_but_not_met(options, seen)


def promised_but_not_met(options: Options, seen: dict[str, int]) -> list[str]:
    """The events that no case met, though enough of them met the event by which a family promises it."""
    return [
        f"{name}: {event} in none of {cases} cases with {given!r}"
        for name in options.families()
        for event, given in registry.families()[name].promised.items()
        if (cases := seen.get(f"{name}: {given}", 0)) >= registry.PROMISED_CASES and not seen.get(f"{name}: {event}", 0)
    ]


def share_of_ties(verdicts: dict[str, dict[str, int]]) -> float:
    """Ties among the verdicts that compared something within a bound; bitwise checks cannot tie."""
    ties = sum(counts.get("tie", 0) for counts in _bounded(verdicts))
    return ties / (compared_within_a_bound(verdicts) or 1)


def compared_within_a_bound(verdicts: dict[str, dict[str, int]]) -> int:
    """How many verdicts could have been ties."""
    return sum(n for counts in _bounded(verdicts) for label, n in counts.items() if label != "not-applicable")


def _bounded(verdicts: dict[str, dict[str, int]]) -> list[dict[str, int]]:
    return [counts for check, counts in verdicts.items() if not registry.get(check).bitwise]


def _model_share(items: list[Json]) -> float:
    total = sum(r.get("seconds", 0.0) for r in items)
    return round(sum(r.get("model_seconds", 0.0) for r in items) / total, 3) if total else 0.0
