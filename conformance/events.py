"""The paths that a case took: counted, so that a run that exercised nothing cannot pass for one that did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.architectures.cells import kinds
from conformance.architectures.ropes import rope_of
from conformance.case import Case, Settings
from conformance.endings import Ending
from conformance.outcome import Outcome
from conformance.tying import traits_of

SETTINGS = ("rows: one", "rows: several", "rows: padded", "sampling: on", "dtype: float64", "attention: sdpa")
TOLD = (
    "limit: max_length",
    "limit: both",
    "limit: neither",
    "least: min_length",
    "least: min_new_tokens",
    "least: holds back an end token",
    "eos: several",
    "eos: forced",
    "eos: suppressed",
    "eos: suppressed at first",
    "eos: a bad word",
    "pad: not given",
    "pad: an end token",
    "pad: beyond the vocabulary",
    "criterion: of rows",
    "criterion: strings",
    "criterion: strings by keyword",
    "criterion: time",
    "sequences: several for a row",
)
AGAINST = {"suppress": "eos: suppressed", "begin suppress": "eos: suppressed at first", "bad words": "eos: a bad word"}
WINDOWS = ("window: none", "window: above the prompt", "window: at the prompt", "window: below the prompt")

ASKED_AGAIN = "process: ended without a verdict, another one gave it"
KIND = "kind: "  # of layers in the cache: with the architecture, the unit of coverage


def of_case(case: Case, scenario: Any) -> set[str]:
    """What the case itself says."""
    found = {"rows: one" if len(case.prompt.rows) == 1 else "rows: several"}
    found |= {"rows: padded"} if case.prompt.padded else set()
    found |= {"sampling: on"} if case.settings.do_sample else set()
    found |= told(case.settings, scenario.vocabulary)
    found |= traits_of(case.model.tied, scenario.tied_groups) if case.model.tied else set()
    found |= {"images: in the prompt"} if case.prompt.images else set()
    found |= {f"{KIND}{kind}" for kind in kinds(scenario.config)}
    found |= {f"rope: {rope}"} if (rope := rope_of(case.model.config)) else set()
    found |= {f"dtype: {case.model.dtype}", f"attention: {case.model.attention}"}
    found |= set() if case.plan is None else case.plan.events(case, scenario.config)
    return found | {_window(scenario.rows, scenario.config)}


def told(settings: Settings, vocabulary: int) -> set[str]:
    """What `generate` is told about stopping: some of TOLD. End tokens told by place have been looked up."""
    least, eos, pad = settings.min_new_tokens, settings.eos, settings.pad
    name = "least: min_length" if settings.min_as_length else "least: min_new_tokens"
    against = AGAINST.get(settings.against_eos, "")
    holds = {
        f"limit: {settings.limit}": settings.limit != "max_new_tokens",
        name: least > 0,
        "least: holds back an end token": any(step < least for _, step in settings.eos_at),
        "eos: several": len(eos) > 1,
        "eos: forced": bool(eos) and settings.forced_eos and not against,
        against: bool(eos) and bool(against),
        "pad: not given": pad is None,
        "pad: an end token": pad in eos,
        "pad: beyond the vocabulary": pad is not None and pad >= vocabulary,
        "criterion: of rows": bool(settings.row_stops),
        "criterion: strings": bool(settings.stop) and not settings.stop_by_keyword,
        "criterion: strings by keyword": bool(settings.stop) and settings.stop_by_keyword,
        "criterion: time": settings.max_time,
        "sequences: several for a row": settings.copies > 1,
    }
    return {event for event, is_so in holds.items() if is_so}


def _window(rows: Sequence[Sequence[int]], config: Any) -> str:
    text = config.get_text_config(decoder=True)
    sizes = [getattr(text, name, None) for name in ("sliding_window", "sliding_window_size", "attention_window_size")]
    window = next((size for size in sizes if isinstance(size, int) and size > 0), None)
    if window is None:
        return "window: none"
    longest = max(len(row) for row in rows)
    if longest == window:
        return "window: at the prompt"
    return "window: above the prompt" if longest < window else "window: below the prompt"


def of_outcome(scenario: Any, outcome: Outcome) -> set[str]:
    """How the decoding of all rows stopped, row by row; `scenario` is that of the case."""
    if outcome.crash is not None or outcome.sequences is None:
        return {"crashed"}
    count = outcome.sequences.shape[0]
    copies = max(1, count // len(scenario.case.prompt.rows))  # sequences that each row became
    return of_rows(scenario, ((index // copies, outcome.tokens(index)) for index in range(count)))


def of_rows(scenario: Any, rows: Iterable[tuple[int, Sequence[int]]]) -> set[str]:
    """How rows of the prompt stopped that got these new tokens, padding after an end included."""
    settings = scenario.case.settings
    ends = [scenario.ending(row, tokens) for row, tokens in rows]
    found = {_stop(end, settings) for end in ends}
    found |= {"stop: rows differ"} if len({end and end.step for end in ends}) > 1 else set()
    return found | ({"stop: eos given, never met"} if settings.eos and "stop: length" in found else set())


def _stop(end: Ending | None, settings: Settings) -> str:
    if end is None or end.by != "eos":
        return "stop: criterion" if end is not None and end.by == "criterion" else "stop: length"
    if end.step == 0:
        return "stop: eos first"
    return "stop: eos last" if end.step == settings.max_new_tokens - 1 else "stop: eos middle"
