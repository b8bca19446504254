"""Deferred stopping: "is every row finished?" is read one step late, so that the host never waits for the device.

The flag is read on the following step. By then the loop has taken one step too many, which is undone as if it had
never been: tokens, records, cache, random numbers, stream. Only hooks of the caller's have seen it.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.reference.cache_state import CacheState, snapshot
from conformance.reference.decode import Loop, Recorder, choose, filled
from conformance.reference.deferrable import longest, may_defer
from conformance.reference.stop_checks import DeferredStopCheck, StopCheck


def generate(model: Any, call: Call) -> Any:
    """`model.generate` of this call with the deferred loop in place of its own."""
    loop = deferred_loop(call.streamer, passed_in=upstream.cache_name(call.extras) is not None)
    return model.generate(**call.replace(streamer=None).arguments(), custom_generate=loop)


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
