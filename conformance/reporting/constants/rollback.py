"""What the scripts of the `rollback` family define: a program as a table of forwards and calls of a cache's methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance import upstream
from conformance.build import Scenario
from conformance.plans.rollback import SHORT, STATIC, RollbackPlan
from conformance.plans.rollback_programs import Op, Rows, cut, fed, picked, refilled, repeats, segments
from conformance.programs import contents
from conformance.programs.caches import sizes_of
from conformance.reporting.case_source import set_fields
from conformance.reporting.source import literal

# What a forward may be given, where it takes it.
GIVEN = ("input_ids", "decoder_input_ids", "attention_mask", "decoder_attention_mask", "position_ids")
IDLE = ("output_logits", "output_scores", "return_dict_in_generate")


def constants(scenario: Scenario) -> dict[str, str]:
    """The program and what it leaves as tables, how a cache is asked for, and the settings of the other runs."""
    plan, rows = scenario.case.plan, scenario.case.prompt.rows
    assert isinstance(plan, RollbackPlan)
    start = 1 if scenario.encoder_decoder else max(map(len, rows))
    refills = any(op.op == "prefill" and op.rows for op in segments(plan.program)[-1])
    keeps = refills and contents.holds_states(_reset(scenario, plan))
    table = Table(plan.program, len(rows), start, scenario.vocabulary, keeps=keeps)
    taken = upstream.forward_parameters(scenario.model_class)
    cache = upstream.static_cache_settings() if plan.cache in STATIC else {}
    allocated = _allocated(scenario, plan) if plan.cache == "early" else []
    prepared = set_fields(scenario.generation_config(max_new_tokens=plan.room, **cache))
    told = {
        "CACHE": cache,
        "PREPARED": {name: value for name, value in prepared.items() if name not in IDLE},
        "NAME": upstream.cache_argument(scenario.pristine),
        "TAKEN": [name for name in GIVEN if name in taken],
        "PROGRAM": [*allocated, *table.calls],
        "LEFT": table.left,
        "BEAMS": plan.search.asked_for(plan.beams),
        "DRAFT": plan.draft,
        "COUNTS": [SHORT + plan.earlier, SHORT],
    }
    return {name: literal(value) for name, value in told.items()}


def _allocated(scenario: Scenario, plan: RollbackPlan) -> list[tuple[Any, ...]]:
    """The entry that allocates a static cache before its first update; none where that cannot be told."""
    sizes = sizes_of(_filled(scenario, plan))
    told = upstream.allocated(len(scenario.case.prompt.rows), *sizes) if sizes else {}
    return [("early_initialization", *told.values())] if told else []


def _filled(scenario: Scenario, plan: RollbackPlan) -> Any:
    """The cache that `generate` prepares, after the prompt."""
    model, cache = scenario.model(), upstream.static_cache_settings() if plan.cache in STATIC else {}
    with torch.no_grad():
        handed = upstream.handed_to_loop(model, scenario.call(max_new_tokens=plan.room, **cache).arguments())
        filled = upstream.prefill(model, handed.input_ids, handed.generation_config, handed.with_cache())
    return upstream.cache_of(filled)


def _reset(scenario: Scenario, plan: RollbackPlan) -> Any:
    cache = _filled(scenario, plan)
    cache.reset()
    return cache


class Table:
    """A program as a table of forwards and of calls of a cache's methods, for a batch of `rows` of `start` tokens.

    calls: what is done on the last cache; an entry of a forward has the rows of the prompt, the tokens before it and
    those that it feeds (none: the prompt). left: the forwards alone that lead to what is left. keeps: whether the cache
    keeps what it allocated for a batch when it is reset.
    """

    def __init__(self, program: Sequence[Op], rows: int, start: int, vocabulary: int, *, keeps: bool = False) -> None:
        self.prompt, self.start, self.vocabulary, self.keeps = rows, start, vocabulary, keeps
        self.calls: list[tuple[Any, ...]] = []
        self.sources, self.groups, self.filled = list(range(rows)), list[Rows](), False
        for op in segments(program)[-1]:
            self._add(op)
        left = [[], *self.groups] if self.filled else []
        self.left = [self._forward(left[:number], group) for number, group in enumerate(left)]
        probe = self._forward(left, [[1]] * len(self.sources) if self.filled else [])  # one more token, or the prompt
        self.calls.append(probe)
        self.left.append(probe)

    def _forward(self, before: Sequence[Rows], group: Rows) -> tuple[Any, ...]:
        past = self.start + sum(len(rows[0]) for rows in before if rows) if before else 0
        return ("feed", list(self.sources), past, group)

    def _add(self, op: Op) -> None:
        count = len(self.sources)
        if op.op == "prefill" and not self.filled:
            if op.rows:
                self.sources = refilled(op, self.prompt, count, keeps=self.keeps)
            self.calls.append(self._forward([], []))
            self.filled = True
        elif op.op == "feed" and self.filled and op.tokens:
            group = fed(op.tokens, count, self.vocabulary)
            self.calls.append(self._forward([[], *self.groups], group))
            self.groups.append(group)
        elif op.op == "record":
            self.calls.append((upstream.RECORD,))
        elif op.op == "crop":
            self.calls.append(("crop", -op.count))
            self.groups = cut(self.groups, op.count)
        elif op.op == "reset" and self.filled:
            self.calls.append(("reset",))
            self.sources, self.groups, self.filled = self.sources[1:] + self.sources[:1], [], False
        elif op.op in ("reorder", "select") and self.filled and op.rows:
            chosen = picked(op, count)
            self._move("reorder_cache" if op.op == "reorder" else "batch_select_indices", chosen, chosen)
        elif op.op == "repeat" and self.filled and repeats(op, count):
            chosen = [row for row in range(count) for _ in range(op.count)]
            self._move("batch_repeat_interleave", op.count, chosen)

    def _move(self, method: str, argument: Any, chosen: Sequence[int]) -> None:
        self.calls.append((method, argument))
        self.sources = [self.sources[row] for row in chosen]
        self.groups = [[group[row] for row in chosen] for group in self.groups]
