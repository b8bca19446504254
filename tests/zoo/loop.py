"""The reference loop with a place for every way of going wrong."""

# ruff: noqa: ARG002 - a place for a fault is given all that some fault needs

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.reference.decode import Recorder, choose


class Decoder:
    """A subject that decodes rightly. A broken one overrides one of its methods, and nothing else."""

    name = "healthy"

    def generate(self, model: Any, call: Call) -> Any:
        return model.generate(**call.replace(streamer=None).arguments(), custom_generate=self.loop(call.streamer))

    def loop(self, streamer: Any) -> Any:
        def decode(model, input_ids, logits_processor, stopping_criteria, generation_config, **kwargs):
            record, encoder_decoder = Recorder(model, generation_config), model.config.is_encoder_decoder
            finished = torch.zeros(input_ids.shape[0], dtype=torch.bool)
            self.begin(model, generation_config)
            self.stream(streamer, input_ids, step=-1, last=False)
            outputs, step = upstream.prefill(model, input_ids, generation_config, kwargs), 0
            while True:
                kwargs = model._update_model_kwargs_for_generation(outputs, kwargs, is_encoder_decoder=encoder_decoder)
                logits = self.logits(outputs.logits[:, -1].to(copy=True, dtype=torch.float32), step)
                scores = logits_processor(input_ids, logits)
                record.add(outputs, logits, self.scores(scores, step))
                tokens = choose(scores, generation_config.do_sample)
                if finished.any() and any(hasattr(criterion, "eos_token_id") for criterion in stopping_criteria):
                    tokens = self.filled(tokens, finished, generation_config._pad_token_tensor)
                input_ids = torch.cat([input_ids, tokens[:, None]], dim=-1)
                finished = finished | self.stopped(
                    stopping_criteria(input_ids, record.scores), input_ids, generation_config
                )
                self.stream(streamer, tokens, step=step, last=bool(finished.all()))
                if finished.all():
                    break
                if upstream.cache_name(kwargs):
                    self.cache(kwargs[upstream.cache_name(kwargs)])
                outputs = model(
                    **self.inputs(upstream.next_inputs(model, input_ids, kwargs, 1), step), return_dict=True
                )
                step += 1
            self.end(streamer)
            return record.output(input_ids, kwargs)

        return decode

    def begin(self, model, generation_config) -> None:
        """Before the first forward."""

    def logits(self, logits, step):
        return logits

    def scores(self, scores, step):
        """The scores as returned; the tokens are chosen from the right ones."""
        return scores

    def filled(self, tokens, finished, pad):
        return torch.where(finished, pad, tokens)

    def stopped(self, stopped, input_ids, generation_config):
        return stopped

    def stream(self, streamer, tokens, step, last) -> None:
        if streamer is not None:
            streamer.put(tokens)

    def end(self, streamer) -> None:
        if streamer is not None:
            streamer.end()

    def cache(self, cache) -> None:
        """Before every decode step, in place."""

    def inputs(self, inputs, step):
        return inputs
