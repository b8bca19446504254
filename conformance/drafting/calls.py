"""The calls of `generate` with some parts of a plan."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from conformance import upstream
from conformance.call import Call
from conformance.drafting.assistants import assistant, drafts_blocks, say, shares_states
from conformance.drafting.parts import Parts
from conformance.drafting.processors import Patience, stop_conditions
from conformance.drafting.translated import tokenizers
from conformance.plans.drafters import MODELS
from conformance.stopping_settings import length_criterion

MOST_AHEAD = 3  # layers that come after a model's own
FIRST = 2  # a token of every vocabulary, to be forced


def watermark(kind: str) -> Any:
    """A new config of a watermark of this kind: of green tokens, or of tournaments, whose processor keeps a state."""
    from transformers import SynthIDTextWatermarkingConfig, WatermarkingConfig

    if kind == "green":
        return WatermarkingConfig(bias=2.0)
    return SynthIDTextWatermarkingConfig(ngram_len=2, keys=[11, 5, 7], context_history_size=16)


class Calls(Parts):
    """The calls of one case with parts of its plan, and the models for them."""

    def model(self, parts: Sequence[str]) -> Any:
        """A new main model; where it is its own assistant it carries an assistant's settings."""
        model = self.begun() if "turns" in parts else self.scenario.model()
        if "draft" in parts and self.plan.drafter == "early_exit":
            own = model.generation_config
            own.num_assistant_tokens, own.num_assistant_tokens_schedule = self.plan.most, self.plan.schedule
            own.assistant_confidence_threshold = self.plan.threshold
        if "draft" in parts and self.ahead:
            upstream.tell_of_layers_ahead(model, min(self.plan.most, MOST_AHEAD))
        return model

    @property
    def ahead(self) -> bool:
        """Whether layers draft that come after the model's own: of a type whose checkpoints have some, for text."""
        known = upstream.drafts_ahead() and upstream.knows_layers_ahead(self.scenario.config)
        return self.plan.drafter == "ahead" and known and not self.scenario.media

    def begun(self) -> Any:
        """A new model that has had the earlier turns.

        A conversation about images goes on with the model that began it, which keeps how far they move positions.
        """
        return copy.deepcopy(self.turns_model) if self.scenario.media else self.scenario.model()

    @cached_property
    def turns_model(self) -> Any:
        """The one model of all earlier turns about images."""
        return self.scenario.model()

    def call(self, parts: Sequence[str], model: Any, cache: Any = None) -> Call:
        """The call with these parts; `cache` holds what the earlier turns left."""
        cached = self.turns[-1] if "turns" in parts else 0
        inputs = self._inputs(parts, model, cached)
        extras: dict[str, Any] = {} if cache is None else {upstream.cache_argument(model): cache}
        if "draft" in parts and self.plan.drafter in MODELS:
            extras["assistant_model"] = assistant(self.scenario, self.plan)
            if shares_states(self.scenario, self.plan):
                say(extras["assistant_model"], self.plan.script, self.runs.alone[0].tokens(0), self.start(parts))
            extras |= self.words() if self.plan.drafter == "translated" else {}
        start = {"cached": cached, "only_new": "embeds" not in parts and self.left_out(cached, self.width) > 0}
        return Call(
            inputs=inputs,
            generation_config=self.scenario.generation_config(**self.config(parts)),
            mechanism="assisted" if "draft" in parts else "prefill",
            criteria=self._criteria(parts),
            extras=extras,
            options={**(start if cached else {}), **self.media_options(inputs, cached)},
        )

    def _criteria(self, parts: Sequence[str]) -> tuple[Any, ...]:
        """The caller's own: stop conditions, and where the settings say less the limit."""
        stops = stop_conditions(self.stops, self.scenario.vocabulary, self.plan.stop_strings)
        if "limit" not in parts:
            return stops
        limit = length_criterion(self.start(parts) + self.runs.case.settings.max_new_tokens)
        return (*stops, limit, Patience())

    def words(self) -> dict[str, Any]:
        """The keywords for both tokenizers: new ones, or where the plan says so those of the case."""
        return dict(self._kept_words) if self.plan.words_again else tokenizers(self.scenario, self.plan)

    @cached_property
    def _kept_words(self) -> dict[str, Any]:
        return tokenizers(self.scenario, self.plan)

    def media_options(self, inputs: dict[str, Any], cached: int) -> dict[str, Any]:
        """For the reference: which inputs are no text, and where in the new part the last of them ends."""
        names = self.media_names(inputs)
        return {"media": names, "media_end": max(self.media_span[1] - cached, 0)} if names else {}

    def media_names(self, inputs: dict[str, Any]) -> tuple[str, ...]:
        """Which of these inputs are no text."""
        media = self.scenario.media
        text = ("input_ids", "attention_mask", media.recipe.types if media else "")
        return tuple(name for name in inputs if name not in text) if media else ()

    def whole_inputs(self, cached: int, until: int) -> dict[str, Any]:
        """All that a call which goes on from `cached` positions could be given, with images only if they are new."""
        inputs = dict(self.scenario.inputs(self.rows))
        old = () if self.brings_images(cached, until) else self.media_names(inputs)
        return {name: value for name, value in inputs.items() if name not in old}

    def config(self, parts: Sequence[str]) -> dict[str, Any]:
        """Changes to the case's generation config."""
        plan = self.plan
        changes: dict[str, Any] = {"no_repeat_ngram_size": plan.ngrams} if plan.ngrams else {}
        changes |= self._least(parts) if plan.min_new else {}
        changes |= {"guidance_scale": self.guidance} if self.guidance != 1.0 else {}
        changes |= {"forced_bos_token_id": FIRST} if plan.forced_first else {}
        changes |= self._sampling_config()
        changes |= {"watermarking_config": watermark(plan.watermark)} if plan.watermark else {}
        changes |= upstream.static_cache_settings() if plan.static else {}
        if "turns" in parts:  # whose cache is given
            changes.pop("cache_implementation", None)
        changes |= {"prefill_chunk_size": plan.chunk} if "chunk" in parts else {}
        if "limit" in parts:
            changes["max_new_tokens"] = self.runs.case.settings.max_new_tokens - self.beyond
        if "draft" in parts:
            changes |= self._drafting_config()
        return changes

    def _sampling_config(self) -> dict[str, Any]:
        """Where tokens are sampled, which of them may be, and how warmly."""
        if not self.runs.case.settings.do_sample:
            return {}
        asked = {
            "temperature": (self.plan.temperature, 1.0),
            "top_k": (self.plan.top_k, 0),
            "top_p": (self.plan.top_p, 1.0),
        }
        return {name: value for name, (value, plain) in asked.items() if value != plain}

    def _least(self, parts: Sequence[str]) -> dict[str, int]:
        """How long a row is at least; a length counts embeddings too, but not the ids that are left out."""
        if not self.plan.min_as_length:
            return {"min_new_tokens": self.plan.min_new}
        return {"min_length": (self.width if "embeds" in parts else self.start(parts)) + self.plan.min_new}

    def _drafting_config(self) -> dict[str, Any]:
        plan = self.plan
        if plan.drafter == "lookup":
            return {"prompt_lookup_num_tokens": plan.most, "max_matching_ngram_size": plan.ngram}
        if plan.drafter == "early_exit":
            # No later than the last layer there is; `num_assistant_tokens` is the model's own config's.
            layers = getattr(self.scenario.config.get_text_config(decoder=True), "num_hidden_layers", plan.exit_layer)
            return {"assistant_early_exit": min(plan.exit_layer, layers)}
        if drafts_blocks(self.scenario, plan):
            return dict(upstream.FLASH)
        if self.plan.drafter == "ahead":
            return dict(upstream.AHEAD) if self.ahead else {"prompt_lookup_num_tokens": plan.most}
        return {"num_assistant_tokens": plan.most} if plan.argument else {}

    def _inputs(self, parts: Sequence[str], model: Any, cached: int) -> dict[str, Any]:
        inputs = self.whole_inputs(cached, self.width)
        if "embeds" in parts:
            inputs = {"inputs_embeds": self.embeddings(model, inputs["input_ids"]), **inputs}
            if self.scenario.encoder_decoder or not self.plan.ids_too:  # an encoder takes one of the two
                inputs.pop("input_ids")
        else:
            inputs["input_ids"] = inputs["input_ids"][:, self.left_out(cached, self.width) :]
        if self.positions:
            given = inputs["inputs_embeds" if "embeds" in parts else "input_ids"].shape[1]
            inputs["position_ids"] = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)[:, -given:]
        if self.bare:
            inputs.pop("attention_mask")
        return inputs

    def embeddings(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """The embeddings of ids, shape (batch, length, size)."""
        with torch.no_grad():
            found: torch.Tensor = model.get_input_embeddings()(ids).detach()
        return found

    def processors(self, parts: Sequence[str]) -> Any:
        """The installed logits processors of the run with these parts, built fresh by `generate` itself."""
        model = self.scenario.model() if self.guidance != 1.0 else self.scenario.pristine
        parts = [part for part in parts if part not in ("limit", "draft")]
        # Older releases keep a static cache that nothing was written to, and cannot use it again.
        plain = {
            name: value for name, value in self.config(parts).items() if name not in upstream.static_cache_settings()
        }
        call = self.call(parts, model).replace(generation_config=self.scenario.generation_config(**plain))
        with torch.no_grad():
            return upstream.handed_to_loop(model, call.arguments()).logits_processor
