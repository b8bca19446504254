"""Preparations of special tokens alone, on the plan's devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.outcome import Crash
from conformance.plans.special_tokens import Id
from conformance.reference.special_tokens import FIELDS
from conformance.runs import Runs
from conformance.simulation.meta_reads import MetaReads
from conformance.snapshots import changes, snapshot


@dataclass
class Prepared:
    """One preparation: tensors by name or a crash, kinds of warnings, reads of `meta` values, changes of the config."""

    tokens: dict[str, torch.Tensor | None] = field(default_factory=dict)
    crash: Crash | None = None
    warnings: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)


def prepared(runs: Runs, device: str) -> Prepared:
    """The subject's preparation of the plan's ids on a device, which is named, or that of the model."""
    return runs.once(("prepared", device), lambda: _prepare(runs, device))


def _prepare(runs: Runs, device: str) -> Prepared:
    plan, result, config = runs.case.plan, Prepared(), with_ids(upstream.bare_generation_config(), runs.case.plan.ids)
    before = snapshot(vars(config))
    with upstream.special_token_warnings() as kinds, MetaReads() as reads:
        try:
            tokens = runs.subject.special_tokens(  # type: ignore[attr-defined]
                _model_on(runs, device),
                config,
                has_mask=plan.has_mask,
                device=device if plan.explicit_device else None,
                batch_size=plan.batch_size,
            )
            result.tokens = _read(tokens)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a subject raises is what is judged, SystemExit too
            result.crash = Crash.of(error)
    result.warnings, result.reads = tuple(kinds), tuple(reads.seen)
    result.changed = changes(before, snapshot(vars(config)))
    return result


def _read(tokens: Any) -> dict[str, torch.Tensor | None]:
    """What a subject returned. Raises TypeError where that is not a tensor or None for each of the four."""
    if not isinstance(tokens, dict) or set(tokens) != set(FIELDS):
        raise TypeError(f"special_tokens must return a dictionary of {', '.join(FIELDS)}, not {tokens!r:.200}")
    for name, token in tokens.items():
        if token is not None and not isinstance(token, torch.Tensor):
            raise TypeError(f"special_tokens must return a tensor or None for {name}, not {token!r:.200}")
    return tokens


def _model_on(runs: Runs, device: str) -> Any:
    """A model that never runs: on the device if it has to tell it, else on the CPU."""
    if device == "cpu" or runs.case.plan.explicit_device:
        return runs.scenario.pristine
    return runs.once("on meta", lambda: runs.scenario.model().to(device))


def with_ids(generation_config: Any, ids: dict[str, Id]) -> Any:
    """The config with ids as given; set afterwards, since the constructor refuses some forms."""
    for name, one in ids.items():
        setattr(generation_config, f"{name}_token_id", one.value())
    return generation_config
