"""What a run shows at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from conformance.events import ASKED_AGAIN
from conformance.reporting.columns import columns, counted, first_few, say
from conformance.reporting.replay_line import replay_line
from conformance.verdicts import STATUSES

HEADS = {"blocked-by": "block", "allowed": "allow", "not-applicable": "n/a"}  # short: names are long
REASONS = {"budget": "left out by the budget", "max-findings": "left out after as many findings as asked for"}
CONFIRMED = {True: "confirmed", False: "NOT confirmed", None: "not run"}
Json = dict[str, Any]


def print_summary(console: Console, summary: Json, folder: str) -> None:
    """The end of a run: verdicts per check, findings, what was left out, and where everything is."""
    table, told = verdict_lines(summary, console.width), _findings(summary, folder)
    for part in (table, told, _gaps(summary, folder), items_left_out(summary), _end(summary, folder)):
        for line in part:
            say(console)(line)


def verdict_lines(summary: Json, width: int) -> Iterator[str]:
    """The verdicts of every check that applied to a case, as a table; how many other checks there are, in a line."""
    verdicts = {check: counts for check, counts in summary["verdicts"].items() if set(counts) - {"not-applicable"}}
    shown = [s for s in STATUSES if any(_of(counts, s) for counts in verdicts.values())]
    rows = [["check", *(HEADS.get(s, s) for s in shown)]]
    rows += [[check, *(str(_of(counts, s) or "") for s in shown)] for check, counts in verdicts.items()]
    if verdicts:
        lines = columns(rows, numbers=True)
        yield from lines if max(map(len, lines)) <= width else columns(rows, gap=1, numbers=True)
        if legend := [f"{HEADS[s]}: {s}" for s in shown if s in HEADS]:
            yield f"({', '.join(legend)})"
    if idle := len({*summary["checks"], *summary["verdicts"]} - set(verdicts)):
        yield f"{counted(idle, 'check')} applied to no case and {'is' if idle == 1 else 'are'} not in the table"


def _findings(summary: Json, folder: str) -> Iterator[str]:
    for finding in summary["findings"]:
        yield f"{finding['id']}  [{CONFIRMED[finding['confirmed']]}]"
        yield f"    {finding['in_short']}"
        yield f"    expected {finding['expected']}; got {finding['got']}"
        place = f"{folder}/findings/{finding['id']}"
        yield f"    {replay_line(place, summary['subject'])}"


def _gaps(summary: Json, folder: str) -> Iterator[str]:
    for name in ("not_reached", "below_floor"):
        if found := summary[name]:
            yield f"{name.replace('_', ' ')}, {len(found)} in all: {first_few(found, f'{folder}/summary.json')}"
    if few := [f"{cell} ({count})" for cell, count in summary["cells"]["fewer"].items()]:
        of = f"{len(few)} of {summary['cells']['reachable']} architecture × cache kind"
        yield f"fewer than {summary['cells']['often']} cases, {of}: {first_few(few, f'{folder}/summary.json')}"
    if alone := [f"{check} (allowed in {counted(n, 'case')})" for check, n in summary["only_allowed"].items()]:
        yield f"never passed nor failed, {len(alone)} in all: {first_few(alone, f'{folder}/summary.json')}"
    if again := sum(count for path, count in summary["events"].items() if path.endswith(ASKED_AGAIN)):
        yield f"{counted(again, 'case')} judged by a second process, as the first had ended without a verdict"
    for broken in summary["broken"]:
        yield f"broke on {broken['item']}: {broken['error'][:300]}"


def items_left_out(summary: Json) -> Iterator[str]:
    """How many of the planned items ran, where some were left out."""
    items, start = summary["items"], "deselected: "
    left = {name.removeprefix(start): count for name, count in items.items() if name.startswith(start)}
    if left:
        planned = sum(items.values()) - items["with findings"] + len(summary["died"])  # those with findings ran as well
        why = ", ".join(f"{count} {REASONS.get(reason, reason)}" for reason, count in left.items())
        yield f"{items.get('ran', 0)} of {planned} items ran, {why}"


def _end(summary: Json, folder: str) -> Iterator[str]:
    yield (
        f"{counted(summary['cases'], 'case')} in {summary['seconds']:.0f} s ({summary['cases_per_s']:.1f}/s, "
        f"{summary['share_of_time_in_model_code']:.0%} in model code), {summary['share_of_ties']:.2%} ties, "
        f"seed {summary['seed']}, report {folder}"
    )
    yield f"exit {summary['exit_code']}: {summary['exit_reason']}"


def _of(counts: dict[str, int], status: str) -> int:
    return sum(count for label, count in counts.items() if label.split(" ")[0] == status)
