"""End tokens told by place, looked up: an end token drawn blindly is almost never generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.build import Scenario
from conformance.oracle import Oracle, OracleRaised


def resolved(scenario: Scenario) -> Scenario:
    """The scenario with the tokens of `eos_at` as its `eos`; itself where there are ids already, or no places.

    The tokens are those of the oracle's greedy decoding under the case's own processors.
    """
    settings = scenario.case.settings
    places = [(row, step) for row, step in settings.eos_at if row < len(scenario.case.prompt.rows)]
    if settings.eos or not places:
        return scenario
    oracle, found = Oracle(scenario), []
    try:
        for row in sorted({row for row, _ in places}):
            last = max(step for r, step in places if r == row)
            tokens = oracle.greedy(row, last + 1, (), built_processors(scenario, [row]))
            found += [tokens[step] for r, step in places if r == row]
    except OracleRaised:  # nothing to look up; the checks say why
        return scenario
    eos = tuple(dict.fromkeys(found))
    return scenario.of(scenario.case.replace(settings=settings.replace(eos=eos)))


def built_processors(scenario: Scenario, rows: Sequence[int] | None = None) -> Any:
    """The installed logits processors for these rows (all of them: None), built fresh by `generate` itself."""
    caught: list[Any] = []

    def catch(_: Any, input_ids: torch.Tensor, logits_processor: Any, **__: Any) -> torch.Tensor:
        caught.append(logits_processor)
        return input_ids

    with torch.no_grad():
        # It prepares everything and runs nothing.
        scenario.pristine.generate(**scenario.call(rows).arguments(), custom_generate=catch)
    return caught[0]
