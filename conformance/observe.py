"""Run a subject once and write down everything that anyone could observe."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.clock import MODEL_CODE
from conformance.limits import time_limit
from conformance.outcome import Crash, Outcome, rng_digest
from conformance.snapshots import changes, module_state, snapshot
from conformance.subjects import Subject

STATES = (
    "attentions",
    "hidden_states",
    "decoder_attentions",
    "decoder_hidden_states",
    "cross_attentions",
    "encoder_attentions",
    "encoder_hidden_states",
)


class KeepingStreamer:
    """Keeps what it is given, in order, as it was given: a copy would hide a tensor that changes later."""

    def __init__(self) -> None:
        self.received: list[torch.Tensor] = []
        self.ends = 0

    def put(self, value: torch.Tensor) -> None:
        """Called by `generate` with the prompt, then with each step's tokens."""
        self.received.append(value)

    def end(self) -> None:
        """Called by `generate` once, at the end."""
        self.ends += 1


def observe(
    subject: Subject,
    model: Any,
    inputs: dict[str, Any],
    generation_config: Any,
    *,
    seed: int = 0,
    stream: bool = False,
    watch: bool = False,
) -> Outcome:
    """One run of `subject`. `watch` also tells what of the caller's and of the model's was changed.

    An exception of the subject is part of the outcome; only KeyboardInterrupt passes through.
    """
    streamer = KeepingStreamer() if stream else None
    before = _belongings(model, inputs, generation_config) if watch else {}
    modules = module_state(model) if watch else {}
    outcome = Outcome(prompt_length=inputs["input_ids"].shape[1])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        try:
            with time_limit(), MODEL_CODE.running():
                output = subject.generate(model, inputs, generation_config, streamer)
            _read(output, outcome, model)
        except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
            outcome.crash = Crash.of(error)
        outcome.rng_after = rng_digest()
    if streamer is not None:
        outcome.streamed, outcome.stream_ends = streamer.received, streamer.ends
    if watch:
        outcome.changed = changes(before, _belongings(model, inputs, generation_config))
        outcome.module_changes = changes(modules, module_state(model))
    return outcome


def _belongings(model: Any, inputs: dict[str, Any], generation_config: Any) -> dict[str, Any]:
    owned = snapshot(inputs, "inputs") | snapshot(vars(generation_config), "generation_config")
    owned |= snapshot(vars(model.config), "model.config")
    return owned | snapshot(vars(model.generation_config), "model.generation_config")


def _read(output: Any, outcome: Outcome, model: Any) -> None:
    if isinstance(output, torch.Tensor):
        outcome.sequences = output
    else:
        outcome.sequences = output.sequences
        outcome.scores = tuple(output.scores or ())
        outcome.logits = tuple(output.logits or ())
        states = {name: getattr(output, name, None) for name in STATES}
        outcome.states = snapshot({name: value for name, value in states.items() if value is not None})
        cache = upstream.cache_of(output)
        outcome.cache = snapshot(cache)
        outcome.cache_length = _length(cache)
    if model.config.is_encoder_decoder:
        outcome.prompt_length = 1


def _length(cache: Any) -> int | None:
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):  # caches of their own kind have no length to tell
        return None
