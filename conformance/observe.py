"""Run a subject once and write down everything that anyone could observe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

import torch

from conformance import upstream
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.limits import time_limit
from conformance.outcome import Crash, Outcome, rng_digest
from conformance.process_state import process_state
from conformance.seeding import seed_everything
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
ROW_AND_PLACE = 2  # dimensions of sequences, and of a step's scores


class KeepingStreamer:
    """Keeps what it is given, in order, as it was given: a copy would hide a tensor that changes later."""

    def __init__(self) -> None:
        self.received: list[torch.Tensor] = []
        self.ends = self.after_the_end = 0

    def put(self, value: torch.Tensor) -> None:
        """Called by `generate` with the prompt, then with each step's tokens."""
        self.received.append(value)
        self.after_the_end += self.ends > 0

    def end(self) -> None:
        """Called by `generate` once, at the end."""
        self.ends += 1


class Probe(Protocol):
    """Something that watches a run from outside: syncs, forwards, transfers, calls of hooks."""

    name: str

    def around(self, model: Any, call: Call) -> AbstractContextManager[Callable[[], Any]]:
        """Watches while the block runs; what the function it gives returns afterwards is `outcome.extra[name]`."""
        ...


def observe(
    subject: Subject,
    model: Any,
    call: Call,
    *,
    seed: int = 0,
    stream: bool = False,
    watch: bool = False,
    probes: Iterable[Probe] = (),
) -> Outcome:
    """One run of `subject`. `watch` also tells what of the caller's and of the model's was changed.

    An exception of the subject is part of the outcome; only KeyboardInterrupt passes through.
    """
    streamer = KeepingStreamer() if stream else None
    call = call if streamer is None else call.replace(streamer=streamer)
    before = _belongings(model, call) if watch else {}
    modules = module_state(model) if watch else {}
    outcome = Outcome(prompt_length=call.prompt_length)
    with torch.random.fork_rng(devices=[]), torch.no_grad(), ExitStack() as around:
        readings = {probe.name: around.enter_context(probe.around(model, call)) for probe in probes}
        seed_everything(seed)
        switches = process_state()
        try:
            with time_limit(), MODEL_CODE.running():
                output = subject.generate(model, call)
            outcome.returned = output
            _read(output, outcome)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a subject raises is its outcome, SystemExit too
            outcome.crash = Crash.of(error)
        outcome.rng_after, left = rng_digest(), process_state()
        outcome.extra = {name: reading() for name, reading in readings.items()}
    if streamer is not None:
        outcome.streamed, outcome.stream_ends = streamer.received, streamer.ends
        outcome.streamed_after_end = streamer.after_the_end
    if watch:
        outcome.changed = changes(before, _belongings(model, call)) | changes(switches, left)
        outcome.module_changes = changes(modules, module_state(model))
    return outcome


def _belongings(model: Any, call: Call) -> dict[str, Any]:
    owned = snapshot(call.inputs, "inputs") | snapshot(vars(model.config), "model.config")
    owned |= {} if call.generation_config is None else snapshot(vars(call.generation_config), "generation_config")
    cache = upstream.cache_argument(model)  # which a call fills on purpose
    owned |= snapshot({name: value for name, value in call.extras.items() if name != cache}, "keywords")
    return owned | snapshot(vars(model.generation_config), "model.generation_config")


def _read(output: Any, outcome: Outcome) -> None:
    if isinstance(output, torch.Tensor):
        outcome.sequences = _sequences(output)
    else:
        outcome.sequences = _sequences(output.sequences)
        outcome.scores = _steps("scores", output.scores)
        outcome.logits = _steps("logits", output.logits)
        states = {name: getattr(output, name, None) for name in STATES}
        outcome.states = snapshot({name: value for name, value in states.items() if value is not None})
        cache = upstream.cache_of(output)
        outcome.cache = snapshot(cache)
        outcome.cache_length = upstream.length_of(cache)


def _sequences(given: Any) -> torch.Tensor:
    """What a call has to return. Raises TypeError for anything else, which is the subject's fault."""
    if not isinstance(given, torch.Tensor) or given.dim() != ROW_AND_PLACE or given.is_floating_point():
        raise TypeError(f"generate returned {_told(given)} as sequences, not whole numbers of shape (rows, tokens)")
    if given.shape[0] == 0 or given.device.type == "meta":
        raise TypeError(f"generate returned {_told(given)} as sequences, which holds no row")
    return given


def _steps(name: str, given: Any) -> tuple[torch.Tensor, ...]:
    steps = tuple(given or ())
    for step in steps:
        if not isinstance(step, torch.Tensor) or step.dim() != ROW_AND_PLACE:
            raise TypeError(f"generate returned {_told(step)} among {name}, not tensors of shape (rows, vocabulary)")
    return steps


def _told(given: Any) -> str:
    if isinstance(given, torch.Tensor):
        return f"a {given.dtype} tensor of shape {list(given.shape)} on {given.device}"
    return f"a {type(given).__name__}"
