"""Whether a fault in a cache would reach the logits, over drawn models and prompts.

Measured per architecture × cache kind × fault. A harness that could not see these faults would find nothing and say
that all is well.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis
from hypothesis import strategies as st

from conformance.architectures.capabilities import capabilities, facts
from conformance.architectures.cells import reachable
from conformance.build import Scenario
from conformance.case import Case, Prompt, Settings
from conformance.errors import BadInput, NotBuildable
from conformance.profiles import exploring
from conformance.sensitivity.cells import FAULTS, Cell
from conformance.sensitivity.showing import one_case
from conformance.strategies.cases import models, vocabulary_of

MOST_TRIES = 6  # times the number of cases: a kind that one draw in so many has is still measured


def measure(name: str, cases: int, seed: int) -> list[Cell]:
    """Every cell of an architecture, at least so many cases each, as far as its kinds are drawn.

    Raises UnknownArchitecture, and NotBuildable where the installed release cannot make the type.
    """
    can = capabilities(name)
    if not can.buildable:
        raise NotBuildable(f"{name}: {can.reason}")
    cells = {(kind, fault): Cell(name, kind, fault) for kind in reachable(name) for fault in FAULTS}
    missing: dict[tuple[str, str], Counter[str]] = {}
    for model, tokens in _draws(name, cases, seed):
        wanting = {kind for kind, fault in cells if _too_few(cells, missing, kind, cases)}
        if not wanting:
            break
        try:
            seen, absent = one_case(Scenario(_case(model, tokens)), wanting, tokens[0][0])
        except (NotBuildable, BadInput):
            continue
        for key, shown in seen.items():
            cells[key].add(model.init_scale, shown)
        for key, reason in absent.items():
            missing.setdefault(key, Counter())[reason] += 1
    return [_explained(cell, missing.get((cell.kind, cell.fault))) for cell in cells.values()]


def _too_few(cells: Any, missing: Any, kind: str, cases: int) -> bool:
    """Whether a fault of this kind still wants cases: neither planted nor found impossible often enough."""
    absent = {fault: sum(missing.get((kind, fault), {}).values()) for fault in FAULTS}
    return any(cells[kind, fault].cases < cases and absent[fault] < cases for fault in FAULTS)


def _explained(cell: Cell, absent: Counter[str] | None) -> Cell:
    """The cell with a reason where it was never planted, and where nothing could be seen."""
    known = facts(cell.architecture).get("insensitive")
    if not cell.cases:
        cell.reason = absent.most_common(1)[0][0] if absent else "no draw has this kind"
    elif isinstance(known, dict) and (cell.share or 0.0) < 0.99:
        cell.reason = str(known.get(f"{cell.kind}: {cell.fault}") or known.get(cell.fault) or "")
    return cell


def _draws(name: str, cases: int, seed: int) -> list[tuple[Any, list[list[int]]]]:
    """Models and two rows of tokens each, as a run draws them, but for the dtype; the rows differ at every place.

    Where they said the same, to swap them would be no fault.
    """
    drawn: list[tuple[Any, list[list[int]]]] = []
    towards = [f"kind: {kind}" for kind in reachable(name)]
    numbers: dict[str, Any] = {"rows": st.integers(6, 12)}

    def keep(data: st.DataObject) -> None:
        model = data.draw(models(name, towards=towards, tied=False)).replace(dtype="float32")
        tokens, length = vocabulary_of(model) - 1, data.draw(numbers["rows"])
        one = data.draw(st.lists(st.integers(1, tokens), min_size=length, max_size=length))
        apart = data.draw(st.lists(st.integers(1, tokens - 1), min_size=length, max_size=length))
        drawn.append((model, [one, [1 + (token - 1 + gap) % tokens for token, gap in zip(one, apart, strict=True)]]))

    hypothesis.seed(seed)(exploring(cases * MOST_TRIES)(hypothesis.given(st.data())(keep)))()
    return drawn[1:]


def _case(model: Any, tokens: list[list[int]]) -> Case:
    return Case(model=model, prompt=Prompt(rows=tuple(map(tuple, tokens))), settings=Settings(max_new_tokens=2))
