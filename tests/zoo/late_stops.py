"""Broken copies of the reference's deferred stopping: one fault each, planted for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from conformance import upstream
from conformance.reference import cache_state, decode, stopping
from conformance.reference.stop_checks import DeferredStopCheck
from conformance.reference.stopping import Mark


@contextmanager
def undo_omits_the_scores() -> Iterator[None]:
    """The scores of the undone step are returned."""
    right = decode.Recorder.undo

    def undo(self, steps):
        scores = self.scores
        right(self, steps)
        self.scores = scores

    with patch.object(decode.Recorder, "undo", undo):
        yield


@contextmanager
def undo_of_nothing_empties() -> Iterator[None]:
    """`[:-0]`."""

    def undo(self, steps):
        self.scores, self.logits = self.scores[:-steps], self.logits[:-steps]
        self.states = {name: states[:-steps] for name, states in self.states.items()}

    with patch.object(decode.Recorder, "undo", undo):
        yield


@contextmanager
def cache_is_not_put_back() -> Iterator[None]:
    """The undone step stays in the cache."""
    with patch.object(cache_state.CacheState, "restore", lambda _: None):
        yield


@contextmanager
def cache_is_cropped_twice() -> Iterator[None]:
    """The step before the undone one is gone from the cache too."""
    right, begin = Mark.restore, Mark.__init__

    def init(self, decoding, cache):
        begin(self, decoding, cache)
        self.live = cache

    def restore(self):
        right(self)
        if hasattr(self.live, "crop"):
            self.live.crop(-1)

    with patch.object(Mark, "__init__", init), patch.object(Mark, "restore", restore):
        yield


@contextmanager
def slot_is_read_before_its_event() -> Iterator[None]:
    """Nobody waits for the copy."""

    def read(self):
        slot = self.slots[self.read % 2]
        self.read += 1
        self.stopped = bool(slot.flag)
        if self.streamer is not None:
            self.streamer.put(slot.tokens.clone())

    with patch.object(DeferredStopCheck, "_read", read):
        yield


@contextmanager
def slots_are_not_rotated() -> Iterator[None]:
    """Both steps use one slot."""
    right = DeferredStopCheck.__init__

    def init(self, *args, **kwargs):
        right(self, *args, **kwargs)
        self.slots = (self.slots[0], self.slots[0])

    with patch.object(DeferredStopCheck, "__init__", init):
        yield


@contextmanager
def extra_token_is_streamed() -> Iterator[None]:
    """What was in flight when the loop ended is handed out, whatever it is."""
    right = DeferredStopCheck.finish

    def finish(self):
        steps = right(self)
        if steps and self.streamer is not None:
            self.streamer.put(self.slots[self.read % 2].tokens.clone())
        return steps

    with patch.object(DeferredStopCheck, "finish", finish):
        yield


@contextmanager
def last_token_is_not_streamed() -> Iterator[None]:
    """What is one step behind at the end stays there."""

    def finish(self):
        return self.issued - self.read if self.stopped else 0

    with patch.object(DeferredStopCheck, "finish", finish):
        yield


@contextmanager
def slot_itself_is_streamed() -> Iterator[None]:
    """The streamer is given memory that is filled again."""

    def read(self):
        slot = self.slots[self.read % 2]
        slot.event.synchronize()
        self.read += 1
        self.stopped = bool(slot.flag)
        if self.streamer is not None:
            self.streamer.put(slot.tokens)

    with patch.object(DeferredStopCheck, "_read", read):
        yield


def _record(cache, on):
    for layer in upstream.layers_of(cache):
        if hasattr(layer, "record_past"):
            layer.record_past = on


@contextmanager
def recording_is_on_during_the_prefill() -> Iterator[None]:
    """Past states are recorded from the start, and no longer after the prefill."""
    longest, may_defer = stopping.longest, stopping.may_defer

    def before(model, cache, length):
        _record(cache, True)
        return longest(model, cache, length)

    def after(outputs, *args):
        cache = upstream.cache_of(outputs)
        if upstream.records(cache):
            cache.crop(0)
        _record(cache, False)
        return may_defer(outputs, *args)

    with patch.object(stopping, "longest", before), patch.object(stopping, "may_defer", after):
        yield


@contextmanager
def recording_stays_on() -> Iterator[None]:
    """Past states are recorded after the prefill and for ever."""
    right = stopping.may_defer

    def may_defer(outputs, *args):
        _record(upstream.cache_of(outputs), True)
        return right(outputs, *args)

    with patch.object(stopping, "may_defer", may_defer):
        yield


@contextmanager
def recording_is_switched_off_for_the_caller() -> Iterator[None]:
    """Past states are no longer recorded, though the caller had it so."""
    right = stopping.run

    def run(decoding, outputs, stop, cache, room):
        right(decoding, outputs, stop, cache, room)
        _record(cache, False)

    with patch.object(stopping, "run", run):
        yield


@contextmanager
def recording_stays_on_after_an_error() -> Iterator[None]:
    """What was switched on after the prefill is switched off at the end only."""
    right = stopping.run

    def run(decoding, outputs, stop, cache, room):
        switched = not upstream.records(cache)
        if switched:
            _record(cache, True)
        right(decoding, outputs, stop, cache, room)
        if switched and upstream.records(cache):
            cache.crop(0)
            _record(cache, False)

    with patch.object(stopping, "run", run):
        yield


@contextmanager
def random_numbers_are_not_put_back() -> Iterator[None]:
    """The undone step has drawn one."""

    def restore(self):
        if self._cache is not None:
            self._cache.restore()

    with patch.object(Mark, "restore", restore):
        yield


@contextmanager
def length_is_off_by_one() -> Iterator[None]:
    """The step after the last one by length is taken too."""
    right = DeferredStopCheck.__init__

    def init(self, input_ids, max_length, streamer=None):
        right(self, input_ids, None if max_length is None else max_length + 1, streamer)

    with patch.object(DeferredStopCheck, "__init__", init):
        yield


@contextmanager
def deferral_is_never_refused() -> Iterator[None]:
    """Whatever the cache says of itself."""
    with patch.object(stopping, "may_defer", lambda *_: True):
        yield


@contextmanager
def own_step_is_waited_for() -> Iterator[None]:
    """The flag just sent off is read at once."""
    right = DeferredStopCheck.__call__

    def call(self, finished, tokens, length, **_):
        return right(self, finished, tokens, length, fits=False)

    with patch.object(DeferredStopCheck, "__call__", call):
        yield


@contextmanager
def flag_is_read_as_well() -> Iterator[None]:
    """Deferral copies the flag, and the loop asks the device for it too."""
    right = DeferredStopCheck.__call__

    def call(self, finished, tokens, length, fits=True):
        stopped = right(self, finished, tokens, length, fits)
        return stopped or bool(finished.all() & False)

    with patch.object(DeferredStopCheck, "__call__", call):
        yield
