"""End tokens and stop strings told by place, looked up: what is drawn blindly is almost never generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance import upstream
from conformance.build import Scenario
from conformance.case import Settings
from conformance.endings import text_of
from conformance.limits import time_limit
from conformance.oracle import Oracle, OracleRaised
from conformance.outcome import Crash


def resolved(scenario: Scenario, oracle: Oracle | None = None) -> Scenario:
    """The scenario with the tokens of `eos_at` as its `eos`, and those of `stop_at` as its `stop` strings.

    Itself where there are such already, or no places. The tokens are those of the oracle's greedy decoding under the
    case's own processors, without what forbids or delays end tokens that are not known yet.
    """
    settings, said = scenario.case.settings, Said(scenario, oracle or Oracle(scenario))
    try:
        eos = settings.eos or _end_tokens(settings, said)
        stop = settings.stop or tuple(
            dict.fromkeys(said.string(row, step) for row, step in said.places(settings.stop_at))
        )
    except OracleRaised:  # nothing to look up; the checks say why
        return scenario
    if (eos, stop) == (settings.eos, settings.stop):
        return scenario
    return scenario.of(scenario.case.replace(settings=settings.replace(eos=eos, stop=stop)))


def _end_tokens(settings: Settings, said: Said) -> tuple[int, ...]:
    """The tokens at the places of `eos_at`, and after them as many that no row says as are asked for."""
    found = tuple(dict.fromkeys(said.by(row, step + 1)[step] for row, step in said.places(settings.eos_at)))
    if not settings.eos_unused:
        return found
    heard = {token for row in said.rows for token in said.by(row, settings.max_new_tokens)}
    unheard = [token for token in range(said.scenario.vocabulary - 1, 0, -1) if token not in heard]
    return (*found, *unheard[: settings.eos_unused])


class Said:
    """What each row says by itself, decoded as far as somebody asks."""

    def __init__(self, scenario: Scenario, oracle: Oracle) -> None:
        self.scenario, self.rows = scenario, range(len(scenario.case.prompt.rows))
        self._oracle, self._tokens = oracle, dict[int, list[int]]()

    def places(self, told: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those that are rows of the prompt."""
        return [(row, step) for row, step in told if row in self.rows]

    def by(self, row: int, count: int) -> list[int]:
        """The row's first `count` greedy tokens."""
        if len(self._tokens.get(row, [])) < count:
            self._tokens[row] = self._oracle.greedy(row, count, (), built_processors(self.scenario, [row], copies=1))
        return self._tokens[row][:count]

    def string(self, row: int, step: int) -> str:
        """The text of the row's token at that step; for an odd step only its first letter, after the last before it."""
        tokens = [text_of(token) for token in self.by(row, step + 1)]
        return tokens[step - 1][-1] + tokens[step][0] if step % 2 else tokens[step]


def built_processors(scenario: Scenario, rows: Sequence[int] | None = None, copies: int | None = None) -> Any:
    """The installed logits processors for these rows (all of them: None), built fresh by `generate` itself.

    They are for as many sequences a row as the case returns, or for `copies` of them. Raises OracleRaised where
    `generate` refuses to prepare them.
    """
    changes = {} if copies is None else {"num_return_sequences": copies}
    try:
        with torch.no_grad(), time_limit():
            call = scenario.call(rows, **changes)
            return upstream.handed_to_loop(scenario.pristine, call.arguments()).logits_processor
    except Exception as error:
        raise OracleRaised(str(Crash.of(error))) from error
