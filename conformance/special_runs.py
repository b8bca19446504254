"""The runs of the special tokens family: preparations alone, and calls of `generate` with ids in a caller's form."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.outcome import Crash
from conformance.plans.special_tokens import Id
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
            result.tokens = runs.subject.special_tokens(  # type: ignore[attr-defined]
                _model_on(runs, device),
                config,
                has_mask=plan.has_mask,
                device=device if plan.explicit_device else None,
                batch_size=plan.batch_size,
            )
        except Exception as error:  # noqa: BLE001 - whatever a subject raises is what is judged
            result.crash = Crash.of(error)
    result.warnings, result.reads = tuple(kinds), tuple(reads.seen)
    result.changed = changes(before, snapshot(vars(config)))
    return result


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


def spoken_ids(runs: Runs) -> dict[str, Id]:
    """The ids to decode with, in the plan's forms."""
    spoken: dict[str, Id] = runs.case.plan.spoken(runs.case.settings.eos, runs.scenario.vocabulary)
    return spoken


def call_with(runs: Runs, ids: dict[str, Id], mode: str | None = None) -> Call:
    """The case's call with these ids, greedy in the plan's mode: of its first row where drafts are verified."""
    plan, mode = runs.case.plan, mode or runs.case.plan.mode
    beams = {"num_beams": 2} if mode == "beams" else {}
    rows = [0] if mode in ("lookup", "assisted") else None
    call = runs.call(rows, do_sample=False, num_return_sequences=1, **beams)
    with_ids(call.generation_config, ids)
    extras: dict[str, Any] = {"prompt_lookup_num_tokens": plan.draft} if mode == "lookup" else {}
    if mode == "assisted":
        extras["assistant_model"] = _assistant(runs)
    return call.replace(mechanism="special_tokens", criteria=(), extras=extras)


def _assistant(runs: Runs) -> Any:
    model = runs.scenario.model(noise=(1, 0.05))
    config = model.generation_config
    config.num_assistant_tokens, config.num_assistant_tokens_schedule = runs.case.plan.draft, "constant"
    config.assistant_confidence_threshold = 0.0
    return model


def model_without_pad(runs: Runs) -> Any:
    """A new model whose own generation config has no pad token to fall back to."""
    model = runs.scenario.model()
    model.generation_config.pad_token_id = None
    return model


class MetaDefaults:
    """A probe that changes what it watches: tensors are made on `meta` unless their device is named."""

    name = "meta defaults"

    def around(self, model: Any, call: Call) -> AbstractContextManager[Callable[[], Any]]:  # noqa: ARG002
        """The default device for the length of the run."""
        return _on_meta()


@contextmanager
def _on_meta() -> Iterator[Callable[[], Any]]:
    with torch.device("meta"):
        yield lambda: None


class ModuleCalls:
    """A probe that counts the forwards of all modules."""

    name = "module calls"

    def around(self, model: Any, call: Call) -> AbstractContextManager[Callable[[], Any]]:  # noqa: ARG002
        """Hooks for the length of the run."""
        return _counted(model)


@contextmanager
def _counted(model: Any) -> Iterator[Callable[[], Any]]:
    count = [0]

    def hook(*_: Any) -> None:
        count[0] += 1

    handles = [module.register_forward_pre_hook(hook) for module in model.modules()]
    try:
        yield lambda: count[0]
    finally:
        for handle in handles:
            handle.remove()


def misplaced_model(runs: Runs) -> tuple[Any, list[str]]:
    """A new model with the plan's parameters on `meta`, and their names; all of them where the plan names none."""
    model = runs.scenario.model()
    names = [name for name, _ in model.named_parameters()]
    chosen = sorted({names[number % len(names)] for number in runs.case.plan.misplaced})
    if not chosen:
        return model.to("meta"), names
    for name in chosen:
        place, _, leaf = name.rpartition(".")
        module = model.get_submodule(place)
        module._parameters[leaf] = torch.nn.Parameter(module._parameters[leaf].to("meta"), requires_grad=False)
    return model, chosen


def in_threads(runs: Runs, call: Call, count: int) -> list[Any]:
    """Sequences of as many threads, each with models of its own, of one call with one generation config; or errors."""
    calls = [call_with(runs, {}) for _ in range(count)]
    own = [c.replace(generation_config=call.generation_config) for c in calls]
    models = [model_without_pad(runs) for _ in own]
    results: list[Any] = [None] * count

    def work(number: int) -> None:
        with torch.no_grad():
            try:
                results[number] = runs.subject.generate(models[number], own[number]).sequences.tolist()
            except Exception as error:  # noqa: BLE001 - compared with what the call gives by itself
                results[number] = f"{type(error).__name__}: {error}"[:200]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
