"""Deferred stopping: "is every row finished?" is read one step late, so that the host never waits for the device.

The flag is copied asynchronously into one of two host slots and read on the following step. By then the loop has
taken one step too many, which is undone as if it had never been: tokens, records, cache, random numbers, stream.
Only hooks of the caller's have seen it.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.reference.cache_state import CacheState, snapshot
from conformance.reference.decode import Loop, Recorder, choose, filled

# The attributes that say how long a table of positions is. Rotary positions have no table, but waiting costs little.
POSITIONS = ("max_position_embeddings", "max_target_positions", "n_positions", "max_seq_len", "context_length")


def generate(model: Any, call: Call) -> Any:
    """`model.generate` of this call with the deferred loop in place of its own."""
    loop = deferred_loop(call.streamer, passed_in=upstream.cache_name(call.extras) is not None)
    return model.generate(**call.replace(streamer=None).arguments(), custom_generate=loop)


class StopCheck:
    """Says after every token whether to stop, and hands the tokens to a streamer. This one waits for the device."""

    defers = False

    def __init__(self, streamer: Any = None) -> None:
        self.streamer = streamer

    def __call__(
        self,
        finished: torch.Tensor,
        tokens: torch.Tensor,
        length: int,  # noqa: ARG002
        fits: bool = True,  # noqa: ARG002
    ) -> bool:
        """Whether to stop after this step.

        finished: (batch,) bool, the rows that have ended; tokens: (batch,), the step's; length: tokens in each row
        with them; fits: whether another step has a place in the cache and among the positions.
        """
        if self.streamer is not None:
            self.streamer.put(tokens.cpu())
        return bool(finished.all())

    def overdue(self) -> bool:
        """Whether the step under way should not have been begun."""
        return False

    def finish(self) -> int:
        """Hand out what is held back, and say how many steps have to be undone."""
        return 0


class Slot:
    """Host memory for one step's flag and tokens, and the event that says when they are there."""

    def __init__(self, input_ids: torch.Tensor) -> None:
        pinned = input_ids.device.type == "cuda"
        self.flag = torch.zeros((), dtype=torch.bool, pin_memory=pinned)
        self.tokens = torch.zeros(input_ids.shape[0], dtype=torch.long, pin_memory=pinned)
        self.event = event_of(input_ids.device)

    def fill(self, finished: torch.Tensor, tokens: torch.Tensor | None) -> None:
        """Begin to copy; returns before anything has arrived. The event comes after the copies it stands for."""
        self.flag.copy_(finished.all(), non_blocking=True)
        if tokens is not None:
            self.tokens.copy_(tokens, non_blocking=True)
        self.event.record()


class DeferredStopCheck(StopCheck):
    """Says it one step late, without ever waiting for the step that it was called for."""

    defers = True

    def __init__(self, input_ids: torch.Tensor, max_length: int | None, streamer: Any = None) -> None:
        super().__init__(streamer)
        self.max_length = max_length
        self.slots = (Slot(input_ids), Slot(input_ids))
        self.issued = self.read = 0  # steps whose flag was sent off, and those whose flag was read
        self.stopped = False  # what the flag read last says

    def __call__(self, finished: torch.Tensor, tokens: torch.Tensor, length: int, fits: bool = True) -> bool:
        """Whether the step *before* was the last one; or this one, where the host knows that by itself.

        The length is known to the host, so the last step by length is never late. Nor is one after which another
        step has no place: then its own flag is waited for.
        """
        self._issue(finished, tokens)
        if self.issued - self.read > 1:
            self._read()
        if self.stopped or (self.max_length is not None and length >= self.max_length):
            return True
        if not fits:
            self._read()
        return self.stopped

    def overdue(self) -> bool:
        """Whether a step before had said stop already; waits for its flag."""
        if self.read < self.issued:
            self._read()
        return self.stopped

    def finish(self) -> int:
        """0 or 1. The tokens of an undone step are never handed out; those of the last step are here."""
        for slot in self.slots:
            slot.event.synchronize()  # nothing may land in a slot that is gone
        if self.stopped:
            return self.issued - self.read
        while self.read < self.issued:
            self._read()
        return 0

    def _issue(self, finished: torch.Tensor, tokens: torch.Tensor) -> None:
        self.slots[self.issued % 2].fill(finished, tokens if self.streamer is not None else None)
        self.issued += 1

    def _read(self) -> None:
        """The oldest step that was not read yet. A clone is streamed, since the slot is filled again."""
        slot = self.slots[self.read % 2]
        slot.event.synchronize()
        self.read += 1
        self.stopped = bool(slot.flag)
        if self.streamer is not None:
            self.streamer.put(slot.tokens.clone())


class Arrived:
    """The event of a device without any: its copies have arrived when the call returns."""

    def record(self) -> None:
        """Nothing to wait for."""

    synchronize = record


def event_of(device: torch.device) -> Any:
    """An event of the device, or one that waits for nothing where the device has none (a CPU)."""
    event = torch.Event(device=device, blocking=True)
    try:
        event.record()
    except RuntimeError:
        return Arrived()
    return event


def may_defer(outputs: Any, kwargs: dict[str, Any], config: Any, outlives: bool, vocabulary: int) -> bool:
    """Whether one step more can be taken and undone. Asked after the prefill: only then do some caches know.

    Not in the loop of an assistant, whose tokens the other model waits for. Not with a pad id that no embedding
    has: the step too many would feed it. And where the cache outlives the call, only if it can be put back, says
    so, and shows in the model's outputs.
    """
    if getattr(config, "is_assistant", False) or not pads_within(config, vocabulary):
        return False
    cache = upstream.cache_of(outputs)
    if not outlives:
        return True
    if cache is None:
        return upstream.cache_name(kwargs) is None
    return upstream.can_be_put_back(cache)


def pads_within(config: Any, vocabulary: int) -> bool:
    """Whether the pad id is one that the model can be fed, or there is none. Asks no tensor."""
    pad = config.pad_token_id
    return pad is None or 0 <= int(pad) < vocabulary


class Decoding:
    """What has been decoded: `ids` (batch, length), `finished` (batch,), the records, the next forward's arguments."""

    def __init__(self, model: Any, ids: torch.Tensor, processors: Any, criteria: Any, config: Any, kwargs: Any) -> None:
        self.model, self.ids, self.kwargs = model, ids, kwargs
        self.processors, self.criteria, self.config = processors, criteria, config
        self.record = Recorder(model, config)
        self.finished = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)

    def forward(self) -> Any:
        """The forward over the last token."""
        return self.model(**upstream.next_inputs(self.model, self.ids, self.kwargs, 1), return_dict=True)

    def take(self, outputs: Any) -> torch.Tensor:
        """One step from the model's outputs to the next token of each row, (batch,); nothing waits for a value."""
        encoder_decoder = bool(self.model.config.is_encoder_decoder)
        self.kwargs = self.model._update_model_kwargs_for_generation(
            outputs, self.kwargs, is_encoder_decoder=encoder_decoder
        )
        logits = outputs.logits[:, -1].to(copy=True, dtype=torch.float32, device=self.ids.device)
        scores = self.processors(self.ids, logits)
        self.record.add(outputs, logits, scores)
        tokens = filled(choose(scores, self.config.do_sample), self.finished, self.criteria, self.config)
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=-1)
        self.finished = self.finished | self.criteria(self.ids, self.record.scores)
        return tokens

    def undo(self, steps: int, mark: Mark | None) -> None:
        """Undo the last `steps` steps, 0 or 1, taken since the mark, and with them what they did to the cache."""
        self.record.undo(steps)
        if mark is not None and steps:
            self._go_back(mark)

    def abandon(self, mark: Mark) -> None:
        """Undo a step that was begun after the mark and failed, whether it was recorded or not."""
        self.record.undo(self.record.steps - mark.steps)
        self._go_back(mark)

    def _go_back(self, mark: Mark) -> None:
        self.ids, self.kwargs = mark.ids, mark.kwargs
        mark.restore()


class Mark:
    """A moment of a decoding to go back to. `cache` is what outlives the call, or None where nothing does."""

    def __init__(self, decoding: Decoding, cache: Any) -> None:
        self.ids, self.kwargs, self.steps = decoding.ids, dict(decoding.kwargs), decoding.record.steps
        self._device = decoding.ids.device
        self._random = random_states(self._device)
        self._cache: CacheState | None = None if cache is None else snapshot(cache)

    def restore(self) -> None:
        """Put back the cache, in place, and the random generators."""
        if self._cache is not None:
            self._cache.restore()
        torch.set_rng_state(self._random[0])
        if len(self._random) > 1:
            torch.get_device_module(self._device).set_rng_state(self._random[1], self._device)


def random_states(device: torch.device) -> list[torch.Tensor]:
    """The states of the generators that a step may draw from: the host's, then the device's if it is another."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def longest(model: Any, cache: Any, length: int) -> int:
    """How many tokens a row may have when its last one is fed: by the static cache, and by the table of positions.

    Asked before the prefill over `length` tokens, when a cache that is passed in may hold some of them already; where
    it holds more, those come before the first of these.
    """
    config = model.config.get_text_config(decoder=True)
    sizes = [getattr(config, name, None) for name in POSITIONS]
    limits = [size for size in sizes if isinstance(size, int) and size > 0]
    fixed = upstream.fixed_size(cache)
    if fixed is not None:
        held = upstream.length_of(cache) or 0
        limits.append(fixed if held < length else fixed - held)
    return min(limits, default=2**62)


def deferred_loop(streamer: Any = None, passed_in: bool = False) -> Loop:
    """Decoding that stops one step late where that leaves no trace, else at once. `passed_in`: the caller's cache."""

    def decode(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **kwargs: Any,
    ) -> Any:
        decoding = Decoding(model, input_ids, logits_processor, stopping_criteria, generation_config, kwargs)
        if streamer is not None:
            streamer.put(input_ids.cpu())
        name = upstream.cache_name(kwargs)
        room = longest(model, kwargs[name] if name else None, input_ids.shape[1])
        outputs = upstream.prefill(model, input_ids, generation_config, kwargs)
        cache, outlives = upstream.cache_of(outputs), passed_in or bool(generation_config.return_dict_in_generate)
        vocabulary = int(model.config.get_text_config(decoder=True).vocab_size)
        stop = StopCheck(streamer)
        if may_defer(outputs, kwargs, generation_config, outlives, vocabulary):
            stop = DeferredStopCheck(input_ids, getattr(stopping_criteria, "max_length", None), streamer)
        run(decoding, outputs, stop, cache if outlives else None, room)
        if streamer is not None:
            streamer.end()
        return decoding.record.output(decoding.ids, decoding.kwargs)

    return decode


def run(decoding: Decoding, outputs: Any, stop: StopCheck, cache: Any, room: int) -> None:
    """Decode to the end and undo what was one step too many. `cache` is what has to be put back, if anything."""
    tokens = decoding.take(outputs)
    del outputs  # the prefill's logits may be large
    mark: Mark | None = None
    while not stop(decoding.finished, tokens, decoding.ids.shape[1], fits=decoding.ids.shape[1] <= room):
        mark = Mark(decoding, cache) if stop.defers else None
        try:
            tokens = decoding.take(decoding.forward())
        except Exception:
            # A step that stopping at once would not have taken must not be the one that fails.
            if mark is None or not stop.overdue():
                raise
            decoding.abandon(mark)
            break
    decoding.undo(stop.finish(), mark)
