"""More broken copies of the reference's deferred stopping: traces beside the outcome, each planted for a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import torch

from conformance import upstream
from conformance.reference import deferrable, stopping
from conformance.reference.stop_checks import DeferredStopCheck


@contextmanager
def all_is_streamed_at_the_end() -> Iterator[None]:
    """Every token once and in order, but none before the call ends."""
    right = DeferredStopCheck.finish

    def read(self):
        slot = self.slots[self.read % 2]
        slot.event.synchronize()
        self.read += 1
        self.stopped = bool(slot.flag)
        self.kept = [*getattr(self, "kept", ()), slot.tokens.clone()]

    def finish(self):
        steps = right(self)
        for tokens in self.kept if self.streamer is not None else ():
            self.streamer.put(tokens)
        return steps

    with patch.object(DeferredStopCheck, "_read", read), patch.object(DeferredStopCheck, "finish", finish):
        yield


@contextmanager
def the_end_comes_before_the_last_token() -> Iterator[None]:
    """`end` once, but too early."""
    right = DeferredStopCheck.finish

    def finish(self):
        if self.streamer is not None:
            self.streamer.end()
        steps = right(self)
        if self.streamer is not None:
            self.streamer.end = lambda: None
        return steps

    with patch.object(DeferredStopCheck, "finish", finish):
        yield


@contextmanager
def tokens_are_streamed_as_floats() -> Iterator[None]:
    """The numbers are right, and no tokenizer takes them."""

    def read(self):
        slot = self.slots[self.read % 2]
        slot.event.synchronize()
        self.read += 1
        self.stopped = bool(slot.flag)
        if self.streamer is not None:
            self.streamer.put(slot.tokens.float())

    with patch.object(DeferredStopCheck, "_read", read):
        yield


@contextmanager
def _around_run(after: Callable[..., None], error: Callable[..., None]) -> Iterator[None]:
    right = stopping.run

    def run(decoding, outputs, stop, cache, room):
        try:
            right(decoding, outputs, stop, cache, room)
        except Exception:
            error(decoding, stop, cache)
            raise
        after(decoding, stop, cache)

    with patch.object(stopping, "run", run):
        yield


def _nothing(*_: Any) -> None:
    """Where there is no fault."""


def cache_loses_a_token_after_an_error():
    """What looks like undoing a step too many was none."""
    return _around_run(_nothing, lambda _, __, cache: cache.crop(-1))


def generator_is_another_after_an_error():
    """The generator is put back to where it never was."""
    return _around_run(_nothing, lambda *_: torch.manual_seed(1))


def stream_is_ended_after_an_error():
    """A streamer that has raised is told that all went well."""
    return _around_run(_nothing, lambda _, stop, __: stop.streamer.end())


def stream_goes_on_after_an_error():
    """A streamer that has raised is given what was in flight."""
    return _around_run(_nothing, lambda decoding, stop, _: stop.streamer.put(decoding.ids[:, -1]))


def model_keeps_a_mark():
    """A field of the model's config tells that stopping was deferred."""
    return _around_run(lambda decoding, stop, _: setattr(decoding.model.config, "late", stop.defers), _nothing)


def a_module_stays_in_training_mode():
    """Dropout is off in these models, so that nothing but the flag tells."""
    return _around_run(lambda decoding, *_: decoding.model.get_input_embeddings().train(), _nothing)


def a_module_keeps_an_attribute():
    """How far the call came."""
    return _around_run(
        lambda decoding, *_: setattr(decoding.model.get_input_embeddings(), "seen", decoding.ids.shape[1]), _nothing
    )


def a_hook_stays_registered():
    """One that counts forwards, say."""
    return _around_run(lambda decoding, *_: decoding.model.register_forward_hook(lambda *_: None), _nothing)


def a_weight_moves():
    """By as little as can be, which the next call shows at the earliest."""
    return _around_run(lambda decoding, *_: next(decoding.model.parameters()).data.mul_(1 + 2**-20), _nothing)


def a_module_is_marked_after_an_error():
    """That deferral was under way is not taken back."""
    return _around_run(_nothing, lambda decoding, *_: setattr(decoding.model, "deferring", True))


@contextmanager
def _kept_with_the_model(forgotten: Callable[[bool], bool]) -> Iterator[None]:
    """One stop check for all calls on a model, which keeps what its flag said last; `forgotten`: whether it is made
    anew after a call that has raised, or has not.
    """
    right, kept = stopping.run, WeakKeyDictionary()

    def run(decoding, outputs, stop, cache, room):
        if stop.defers:
            used = kept.setdefault(decoding.model, stop)
            used.streamer, used.max_length, used.slots = stop.streamer, stop.max_length, stop.slots
            used.issued = used.read = 0
            stop = used
        raised = True
        try:
            right(decoding, outputs, stop, cache, room)
            raised = False
        finally:
            stop.stopped |= raised
            if forgotten(raised):
                kept.pop(decoding.model, None)

    with patch.object(stopping, "run", run):
        yield


def stop_check_is_kept_for_the_next_call():
    """The next call on the model begins as one that has stopped."""
    return _kept_with_the_model(lambda _: False)


def stop_check_is_kept_after_an_error():
    """What is made anew at the end of a call is not where the call ends by an error."""
    return _kept_with_the_model(lambda raised: not raised)


@contextmanager
def recording_is_cropped_at_the_end_only() -> Iterator[None]:
    """A layer with a window keeps every state of the call until its end."""
    right = stopping.run

    def run(decoding, outputs, stop, cache, room):
        upstream.record_past(cache)
        right(decoding, outputs, stop, cache, room)
        cache.crop(0)
        for layer in upstream.layers_of(cache):
            layer.record_past = False

    with patch.object(stopping, "run", run):
        yield


@contextmanager
def rows_are_counted_at_every_step() -> Iterator[None]:
    """The rows that go on are picked out, and the host waits until it is known how many they are."""
    right = DeferredStopCheck.__call__

    def call(self, finished, tokens, length, fits=True):
        _ = tokens[~finished]
        return right(self, finished, tokens, length, fits)

    with patch.object(DeferredStopCheck, "__call__", call):
        yield


@contextmanager
def flag_is_copied_to_plain_memory_as_well() -> Iterator[None]:
    """Into a tensor that was made without naming a device, which is the host's, and not asynchronously."""
    right = DeferredStopCheck.__call__

    def call(self, finished, tokens, length, fits=True):
        torch.zeros((), dtype=torch.bool).copy_(finished.all())
        return right(self, finished, tokens, length, fits)

    with patch.object(DeferredStopCheck, "__call__", call):
        yield


def _polled(self):
    slot = self.slots[self.read % 2]
    while not slot.event.query():
        pass
    self.read += 1
    self.stopped = bool(slot.flag)
    if self.streamer is not None:
        self.streamer.put(slot.tokens.clone())


@contextmanager
def event_is_polled() -> Iterator[None]:
    """No fault: the step before is asked for again and again in the place of waiting."""
    with patch.object(DeferredStopCheck, "_read", _polled):
        yield


@contextmanager
def own_step_is_polled() -> Iterator[None]:
    """The step just issued is, which is a wait however it is called."""
    right = DeferredStopCheck.__call__

    def call(self, finished, tokens, length, **_):
        return right(self, finished, tokens, length, fits=False)

    with event_is_polled(), patch.object(DeferredStopCheck, "__call__", call):
        yield


class _Held(DeferredStopCheck):
    """One step late by tensors that are held, and without any copy."""

    def _issue(self, finished, tokens):
        self.held = [*getattr(self, "held", ()), (finished.all(), tokens)]
        self.issued += 1

    def _read(self):
        flag, tokens = self.held[self.read]
        self.read += 1
        self.stopped = bool(flag)
        if self.streamer is not None:
            self.streamer.put(tokens.cpu())


@contextmanager
def deferred_without_a_copy() -> Iterator[None]:
    """The flag of the step before is read from the device, and nothing refuses that."""
    with (
        patch.object(stopping, "DeferredStopCheck", _Held),
        patch.object(stopping, "may_defer", lambda *_: True),
    ):
        yield


@contextmanager
def pad_beyond_the_vocabulary_is_fed() -> Iterator[None]:
    """Whatever the pad id is, and what the step too many raises comes out."""
    with (
        patch.object(deferrable, "pads_within", lambda *_: True),
        patch.object(DeferredStopCheck, "overdue", lambda _: False),
    ):
        yield


@contextmanager
def error_of_the_step_too_many_comes_out() -> Iterator[None]:
    """A hook of the caller's that is asked once too often raises, and the call with it."""
    with patch.object(DeferredStopCheck, "overdue", lambda _: False):
        yield


@contextmanager
def a_cache_without_the_word_is_not_refused() -> Iterator[None]:
    """Only a cache that says no is believed."""

    def may_defer(outputs, _kwargs, _config, outlives, _vocabulary):
        return not outlives or getattr(upstream.cache_of(outputs), "is_croppable", None) is not False

    with patch.object(stopping, "may_defer", may_defer):
        yield
