"""Assisted decoding: draft, verify, accept, roll back; greedy or sampling; a drafter of any kind.

Every token is chosen from the main model's own scores, one after the other, and the stop conditions are asked after
each of them, as plain decoding does: a draft saves forwards and decides nothing.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import upstream
from conformance.reference.decode import Loop, Recorder, choose
from conformance.reference.drafters import Drafter, FirstLayers, Lookup, ModelDrafter
from conformance.reference.fed import Fed
from conformance.reference.prefill import Start
from conformance.reference.slices import one_of

ONE_ROW = "assisted generate is only supported for batch_size = 1"
Draft = tuple[list[int], "torch.Tensor | None"]


def decide(
    scores: torch.Tensor, draft: int | None, chances: torch.Tensor | None, do_sample: bool
) -> tuple[torch.Tensor, bool]:
    """The next token, shape (1,), and whether it is the drafted one.

    scores: (1, vocabulary), processed; chances: the distribution, shape (vocabulary,), that the draft was drawn from;
    None where it was not drawn. Sampling follows algorithm 1 of Leviathan et al., 2023 (arXiv 2211.17192), which keeps
    the distribution of plain sampling.
    """
    if draft is None or not do_sample:
        token = choose(scores, do_sample)
        return token, int(token) == draft
    own = torch.softmax(scores, dim=-1)[0]
    if chances is None:
        chances = torch.nn.functional.one_hot(torch.tensor(draft), own.shape[0]).to(own)
    if accepts(own, chances, draft):
        return torch.tensor([draft]), True
    return torch.multinomial(left_over(own, chances), num_samples=1), False


def accepts(own: torch.Tensor, chances: torch.Tensor, draft: int) -> bool:
    """Whether a token drawn from `chances` is taken for one drawn from `own`, both of shape (vocabulary,)."""
    return float(torch.rand(())) * float(chances[draft]) < float(own[draft])


def left_over(own: torch.Tensor, chances: torch.Tensor) -> torch.Tensor:
    """What to draw from in the place of a rejected token, not normalised: the part of `own` that drafts miss."""
    rest = (own - chances).clamp(min=0)
    return rest if float(rest.sum()) > 0 else own


@dataclass
class Verifier:
    """The main model's side of a generation: chooses tokens, writes them down, and asks whether to stop."""

    fed: Fed
    processors: Any
    criteria: Any
    record: Recorder
    do_sample: bool
    streamer: Any = None
    stopped: bool = field(default=False, init=False)

    def choose(self, input_ids: torch.Tensor, draft: Draft, logits: torch.Tensor, first: bool) -> torch.Tensor:
        """`input_ids` with the tokens that follow from logits of shape (1, drafted + 1, vocabulary).

        Ends at the first token that is not the drafted one, or after which a stop condition holds.
        """
        tokens, chances = draft
        for step in range(logits.shape[1]):
            raw = logits[:, step].to(copy=True, dtype=torch.float32)
            scores = self.processors(input_ids, raw)
            self.record.add(one_of(self.fed.outputs, step, logits.shape[1], self.fed.length, first), raw, scores)
            proposed = tokens[step] if step < len(tokens) else None
            token, accepted = decide(
                scores, proposed, None if chances is None else chances[step:][:1].flatten(), self.do_sample
            )
            input_ids = torch.cat([input_ids, token[:, None]], dim=-1)
            if self.streamer is not None:
                self.streamer.put(token.cpu())
            self.stopped = bool(self.criteria(input_ids, self.record.scores).all())
            if self.stopped or not accepted:
                break
        return input_ids


def assisted_loop(drafter: Drafter, start: Start | None = None, streamer: Any = None) -> Loop:
    """Assisted decoding of one row with a drafter; raises ValueError for several rows, as upstream documents."""

    def decode(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **kwargs: Any,
    ) -> Any:
        if input_ids.shape[0] > 1:
            raise ValueError(ONE_ROW)
        record, fed = Recorder(model, generation_config), Fed(model, kwargs)
        verifier = Verifier(fed, logits_processor, stopping_criteria, record, generation_config.do_sample, streamer)
        if streamer is not None:
            streamer.put(input_ids.cpu())
        logits = fed.prefill(input_ids, generation_config, start)
        input_ids = verifier.choose(input_ids, ([], None), logits, first=True)
        while not verifier.stopped:
            input_ids = _round(verifier, drafter, input_ids, generation_config.max_length)
        if streamer is not None:
            streamer.end()
        return record.output(input_ids, fed.kwargs)

    return decode


def _round(verifier: Verifier, drafter: Drafter, input_ids: torch.Tensor, max_length: int) -> torch.Tensor:
    """Draft, verify, accept, roll back: afterwards the cache holds all of `input_ids` but the last token."""
    fed, length = verifier.fed, input_ids.shape[1]
    room = max_length - length - 1  # of which the last is the main model's own
    draft: Draft = drafter.propose(input_ids, room) if room > 0 else ([], None)
    mark = fed.mark()
    candidate = torch.cat([input_ids, torch.tensor([draft[0]], dtype=torch.long)], dim=-1)
    logits = fed.feed(candidate)
    chosen = verifier.choose(input_ids, draft, logits, first=False)
    drafter.learn(len(draft[0]), chosen.shape[1] - length - 1)
    if chosen.shape[1] <= candidate.shape[1]:
        fed.back(mark)
        fed.feed(chosen[:, :-1])
    return chosen


def generate(model: Any, call: Any) -> Any:
    """Assisted decoding of a call that asks for it as `generate` is asked: an assistant, a lookup or an early exit.

    The caller's configs and the assistant's are left as they are.
    """
    config = copy.deepcopy(call.generation_config)
    extras = dict(call.extras)
    assistant = extras.pop("assistant_model", None)
    words = [extras.pop(name, None) for name in ("tokenizer", "assistant_tokenizer")]
    for name in ("prompt_lookup_num_tokens", "assistant_early_exit", *upstream.FLASH, *upstream.AHEAD):
        if hasattr(config, name):
            setattr(config, name, None)  # `generate` would choose another loop, and prepare for that one
    drafter = _drafter(model, call, assistant, config) if words[1] is None else Lookup(3, 1)  # text says no more
    plain = call.replace(streamer=None, extras=extras, generation_config=config)
    loop = assisted_loop(drafter, Start.of(call), call.streamer)
    return model.generate(**plain.arguments(), custom_generate=loop)


def _drafter(model: Any, call: Any, assistant: Any, config: Any) -> Drafter:
    asked = call.generation_config
    if asked.assistant_early_exit is not None:
        return FirstLayers(
            model,
            asked.assistant_early_exit,
            asked.num_assistant_tokens or model.generation_config.num_assistant_tokens or 3,
        )
    if asked.prompt_lookup_num_tokens is not None:
        return Lookup(asked.prompt_lookup_num_tokens, asked.max_matching_ngram_size or 2)
    if getattr(asked, "use_mtp", None):  # nor those of layers ahead
        return Lookup(2, 1)
    own = assistant.generation_config
    if upstream.attends_to_another(assistant):  # drafts decide nothing: what would be read elsewhere is looked up here
        return Lookup(own.num_assistant_tokens, 1)
    if getattr(asked, "speculation_type", None):  # drafts decide nothing: those of a block are looked up here
        return Lookup(assistant.config.block_size - 1, 1)
    limits = {
        "tokens": asked.num_assistant_tokens or own.num_assistant_tokens or 20,
        "schedule": asked.num_assistant_tokens_schedule or own.num_assistant_tokens_schedule or "constant",
        "threshold": own.assistant_confidence_threshold
        if asked.assistant_confidence_threshold is None
        else asked.assistant_confidence_threshold,
    }
    return ModelDrafter(assistant, _prepared(assistant, call, config), limits, bool(config.do_sample))


def _prepared(assistant: Any, call: Any, config: Any) -> tuple[torch.Tensor, Any, Any, dict[str, Any]]:
    """The assistant's prompt, config, processors and arguments, as its own `generate` prepares them for a loop."""
    settings = copy.deepcopy(config)
    settings.prefill_chunk_size = None
    settings.output_attentions = settings.output_hidden_states = False
    inputs = _for_the_assistant(assistant, call.inputs)
    handed = upstream.handed_to_loop(assistant, {**inputs, "generation_config": settings})
    return handed.input_ids, handed.generation_config, handed.logits_processor, handed.with_cache()


def _for_the_assistant(assistant: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The call's inputs, each once; a mask over positions that the assistant never sees is cut."""
    given = dict(inputs)
    if not assistant.config.is_encoder_decoder and given.get("attention_mask") is not None:
        prompt = given["inputs_embeds"] if given.get("inputs_embeds") is not None else given["input_ids"]
        given["attention_mask"] = given["attention_mask"][:, -prompt.shape[1] :]
    return given
