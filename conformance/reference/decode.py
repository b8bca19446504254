"""The reference decoding loops: cached, immediate stop, greedy or sampling; and one with forced tokens.

They run inside the real `generate` as `custom_generate=callable`, so that all of its preparation stays
real. `generate` never hands such a loop the streamer, the tokenizer or the assistant, so a streamer
reaches it by closure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance import upstream
from conformance.call import Call

Loop = Callable[..., Any]
RECORDED = ("attentions", "hidden_states", "decoder_attentions", "decoder_hidden_states", "cross_attentions")


class Recorder:
    """Collects per step what the caller asked to have returned."""

    def __init__(self, model: Any, generation_config: Any) -> None:
        self.config = generation_config
        self.encoder_decoder = bool(model.config.is_encoder_decoder)
        self.scores: tuple[torch.Tensor, ...] = ()
        self.logits: tuple[torch.Tensor, ...] = ()
        self.states: dict[str, tuple[Any, ...]] = {}

    def add(self, outputs: Any, logits: torch.Tensor, scores: torch.Tensor) -> None:
        """One step: the model's outputs, float32 logits and processed scores of shape (batch, vocabulary)."""
        self.scores += (scores,)
        self.logits += (logits,)
        for name in self._wanted():
            self.states[name] = (*self.states.get(name, ()), outputs.get(name))

    @property
    def steps(self) -> int:
        """Steps recorded."""
        return len(self.scores)

    def undo(self, steps: int) -> None:
        """Forget the last `steps` steps; none at all for 0, where `[:-0]` would forget everything."""
        kept = self.steps - steps
        self.scores, self.logits = self.scores[:kept], self.logits[:kept]
        self.states = {name: states[:kept] for name, states in self.states.items()}

    def _wanted(self) -> list[str]:
        asked = {"attentions": self.config.output_attentions, "hidden_states": self.config.output_hidden_states}
        mine = [n for n in RECORDED if n.startswith(("decoder_", "cross_")) == self.encoder_decoder]
        return [name for name in mine if asked["attentions" if name.endswith("attentions") else "hidden_states"]]

    def output(self, sequences: torch.Tensor, kwargs: dict[str, Any]) -> Any:
        """What `generate` returns: a tensor, or the output class of the release with all that was asked for."""
        if not self.config.return_dict_in_generate:
            return sequences
        from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

        kind = GenerateEncoderDecoderOutput if self.encoder_decoder else GenerateDecoderOnlyOutput
        fields: dict[str, Any] = dict(self.states)
        if self.encoder_decoder:
            encoder = kwargs["encoder_outputs"]
            fields["encoder_attentions"] = encoder.get("attentions") if self.config.output_attentions else None
            fields["encoder_hidden_states"] = encoder.get("hidden_states") if self.config.output_hidden_states else None
        name = upstream.cache_name(kwargs)
        fields[upstream.output_cache_name(kind)] = kwargs[name] if name else None
        return kind(
            sequences=sequences,
            scores=self.scores if self.config.output_scores else None,
            logits=self.logits if self.config.output_logits else None,
            **fields,
        )


def choose(scores: torch.Tensor, do_sample: bool) -> torch.Tensor:
    """The next token of each row, shape (batch,), from processed scores of shape (batch, vocabulary)."""
    if do_sample:
        return torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1).squeeze(1)
    return scores.argmax(dim=-1)


def filled(tokens: torch.Tensor, finished: torch.Tensor, criteria: Any, generation_config: Any) -> torch.Tensor:
    """The tokens of a step, shape (batch,), with padding where a row is finished.

    As in the installed loop, nothing is filled up where no criterion knows an end token: a row that something else
    ended goes on until all have ended. No value is asked for: on an accelerator the host would have to wait for it.
    """
    if not any(hasattr(criterion, "eos_token_id") for criterion in criteria):
        return tokens
    return torch.where(finished, generation_config._pad_token_tensor.to(tokens.device), tokens)


def generate(model: Any, call: Call) -> Any:
    """The call with the plain loop in the installed one's place."""
    return model.generate(**call.replace(streamer=None).arguments(), custom_generate=plain_loop(call.streamer))


def plain_loop(streamer: Any = None, prefill: Callable[..., Any] = upstream.prefill) -> Loop:
    """Cached decoding that stops immediately: greedy, or sampling from the global generator.

    `prefill` takes the model, the ids, the generation config and the loop's arguments, and gives the outputs.
    """

    def decode(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **kwargs: Any,
    ) -> Any:
        record, encoder_decoder = Recorder(model, generation_config), bool(model.config.is_encoder_decoder)
        finished = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        if streamer is not None:
            streamer.put(input_ids.cpu())
        outputs = prefill(model, input_ids, generation_config, kwargs)
        while True:
            kwargs = model._update_model_kwargs_for_generation(outputs, kwargs, is_encoder_decoder=encoder_decoder)
            logits = outputs.logits[:, -1].to(copy=True, dtype=torch.float32, device=input_ids.device)
            scores = logits_processor(input_ids, logits)
            record.add(outputs, logits, scores)
            tokens = choose(scores, generation_config.do_sample)
            tokens = filled(tokens, finished, stopping_criteria, generation_config)
            input_ids = torch.cat([input_ids, tokens[:, None]], dim=-1)
            finished = finished | stopping_criteria(input_ids, record.scores)
            if streamer is not None:
                streamer.put(tokens.cpu())
            if bool(finished.all()):
                break
            outputs = model(**upstream.next_inputs(model, input_ids, kwargs, 1), return_dict=True)
        if streamer is not None:
            streamer.end()
        return record.output(input_ids, kwargs)

    return decode


class OtherTokensFed(RuntimeError):
    """A model's own preparation feeds other tokens than those that it was asked to feed."""


def forced_loop(tokens: torch.Tensor, groups: Sequence[int], logits: list[torch.Tensor]) -> Loop:
    """Feed given tokens after the prefill, `groups[i]` of them in forward i, and collect the logits.

    `tokens` has shape (batch, steps) and the groups sum to `steps`. `logits` receives, for the prompt's last
    position and for every fed token, float32 logits of shape (batch, vocabulary), in order. Raises OtherTokensFed.
    """

    def decode(
        model: Any, input_ids: torch.Tensor, logits_processor: Any, generation_config: Any, **kwargs: Any
    ) -> torch.Tensor:
        start = 0
        kwargs.pop("stopping_criteria", None)
        outputs = upstream.prefill(model, input_ids, generation_config, kwargs)
        logits.append(outputs.logits[:, -1].float())
        for size in groups:
            input_ids = torch.cat([input_ids, tokens[:, start : start + size]], dim=-1)
            kwargs = upstream.advance(model, outputs, kwargs, input_ids, size)
            inputs = upstream.next_inputs(model, input_ids, kwargs, size)
            upstream.ask_for_logits(inputs, size)
            if fed_tokens(inputs) != size:
                raise OtherTokensFed(f"asked for {size} tokens, its preparation feeds {fed_tokens(inputs)}")
            outputs = model(**inputs, return_dict=True)
            logits.extend(outputs.logits[:, -size:].float().unbind(dim=1))
            start += size
        return input_ids

    return decode


def fed_tokens(inputs: dict[str, Any]) -> int:
    """How many tokens a row prepared inputs hold."""
    ids = inputs.get("decoder_input_ids", inputs.get("input_ids"))
    assert ids is not None
    return int(ids.shape[1])
