"""Faults planted in the installed library, or in the reference, for the length of a block."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from transformers.cache_utils import DynamicLayer, StaticLayer
from transformers.generation.logits_process import NoRepeatNGramLogitsProcessor
from transformers.generation.utils import GenerationMixin
from transformers.modeling_utils import AttentionInterface, PreTrainedModel
from transformers.models.gpt2.modeling_gpt2 import GPT2Model
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaModel

from conformance import upstream
from conformance.reference import decode


@contextmanager
def several_tokens_in_another_order() -> Iterator[None]:
    """Entries that reach a filled cache together are stored backwards."""
    right = DynamicLayer.update

    def update(self, keys, values, *args, **kwargs):
        if self.is_initialized and keys.shape[-2] > 1:
            keys, values = keys.flip(-2), values.flip(-2)
        return right(self, keys, values, *args, **kwargs)

    with patch.object(DynamicLayer, "update", update):
        yield


@contextmanager
def uncached_steps_see_one_token() -> Iterator[None]:
    """Without a cache every step after the first is given the last token alone."""
    right = GenerationMixin.prepare_inputs_for_generation

    @functools.wraps(right)  # `generate` looks at its signature
    def prepare(self, *args, **kwargs):
        inputs = right(self, *args, **kwargs)
        if kwargs.get("use_cache") is False and not kwargs.get("is_first_iteration"):
            inputs["input_ids"] = inputs["input_ids"][:, -1:]
            inputs["position_ids"] = inputs["position_ids"][:, -1:]
            inputs["attention_mask"] = None
        return inputs

    with patch.object(GenerationMixin, "prepare_inputs_for_generation", prepare):
        yield


@contextmanager
def sdpa_scales_less() -> Iterator[None]:
    """One kernel scales the products of queries and keys a little less than the other, always."""
    right = AttentionInterface._global_mapping["sdpa"]

    def attention(module, query, *args, **kwargs):
        return right(module, query * 0.9, *args, **kwargs)

    with patch.dict(AttentionInterface._global_mapping, {"sdpa": attention}):
        yield


@contextmanager
def callers_criterion_is_dropped() -> Iterator[None]:
    """A criterion of the caller's that knows an end token is taken for one that `generate` makes itself."""
    right = GenerationMixin._merge_criteria_processor_list

    def merge(self, default_list, custom_list):
        kept = [custom for custom in custom_list if not hasattr(custom, "eos_token_id")]
        return right(self, default_list, kept)

    with patch.object(GenerationMixin, "_merge_criteria_processor_list", merge):
        yield


@contextmanager
def positions_start_anew() -> Iterator[None]:
    """A forward that is told no positions counts them from zero, whatever its cache holds."""
    right = LlamaModel.forward

    @functools.wraps(right)
    def forward(self, input_ids=None, *args, position_ids=None, **kwargs):
        if position_ids is None and input_ids is not None:
            position_ids = torch.arange(input_ids.shape[1])[None]
        return right(self, input_ids, *args, position_ids=position_ids, **kwargs)

    with patch.object(LlamaModel, "forward", forward):
        yield


@contextmanager
def untold_positions_begin_with_one() -> Iterator[None]:
    """A forward that is told no positions counts them from one on, with a cache as without."""
    right = GPT2Model.forward

    @functools.wraps(right)
    def forward(self, input_ids=None, *args, position_ids=None, **kwargs):
        if position_ids is None and input_ids is not None:
            cache = kwargs.get(upstream.cache_name(kwargs) or "")
            begin = 1 if cache is None else 1 + cache.get_seq_length()
            position_ids = torch.arange(begin, begin + input_ids.shape[1])[None]
        return right(self, input_ids, *args, position_ids=position_ids, **kwargs)

    with patch.object(GPT2Model, "forward", forward):
        yield


@contextmanager
def continued_positions_are_one_off() -> Iterator[None]:
    """What is fed onto a filled cache stands one position later than it is told."""
    right = LlamaModel.forward

    @functools.wraps(right)
    def forward(self, *args, position_ids=None, **kwargs):
        if position_ids is not None:
            position_ids = position_ids + (position_ids[:, :1] > 0)
        return right(self, *args, position_ids=position_ids, **kwargs)

    with patch.object(LlamaModel, "forward", forward):
        yield


@contextmanager
def static_layer_scales_values() -> Iterator[None]:
    """A static layer stores the values of a decode step a little too large."""
    right = StaticLayer.update

    def update(self, keys, values, *args, **kwargs):
        if keys.shape[-2] == 1:
            values = values * 1.05
        return right(self, keys, values, *args, **kwargs)

    with patch.object(StaticLayer, "update", update):
        yield


@contextmanager
def static_layer_scales_several() -> Iterator[None]:
    """A static layer stores the values of several tokens that leave room for more a little too large."""
    right = StaticLayer.update

    def update(self, keys, values, *args, **kwargs):
        if 1 < keys.shape[-2] < self.max_cache_len:
            values = values * 1.05
        return right(self, keys, values, *args, **kwargs)

    with patch.object(StaticLayer, "update", update):
        yield


@contextmanager
def static_layer_of_an_earlier_length_scales_values() -> Iterator[None]:
    """A static cache that is as long as an earlier call's stores the values of a decode step a little too large."""
    make, right = GenerationMixin._prepare_static_cache, StaticLayer.update

    def prepare(self, *args, **kwargs):
        before = getattr(self, "_previous_max_cache_length", -1)
        made = make(self, *args, **kwargs)
        for layer in getattr(made, "self_attention_cache", made).layers:
            layer.of_an_earlier_length = layer.max_cache_len == before
        return made

    def update(self, keys, values, *args, **kwargs):
        if keys.shape[-2] == 1 and self.of_an_earlier_length:
            values = values * 1.05
        return right(self, keys, values, *args, **kwargs)

    with patch.object(GenerationMixin, "_prepare_static_cache", prepare), patch.object(StaticLayer, "update", update):
        yield


@contextmanager
def a_switch_of_torch_is_turned() -> Iterator[None]:
    """Every call turns it round, for whatever comes next."""
    right, before = GenerationMixin.generate, torch.are_deterministic_algorithms_enabled()

    @functools.wraps(right)
    def generate(self, *args, **kwargs):
        output = right(self, *args, **kwargs)
        torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
        return output

    try:
        with patch.object(GenerationMixin, "generate", generate):
            yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def static_layer_refuses() -> Iterator[None]:
    """A static layer cannot be used at all."""

    def update(self, *args, **kwargs):
        raise NotImplementedError("static")

    with patch.object(StaticLayer, "update", update):
        yield


@contextmanager
def reference_scores_one_ulp_off() -> Iterator[None]:
    """The reference returns scores that are wrong in their last bit: far below every bound."""
    right = decode.Recorder.add

    def add(self, outputs, logits, scores):
        right(self, outputs, logits, scores.nextafter(scores + 1))

    with patch.object(decode.Recorder, "add", add):
        yield


@contextmanager
def installed_returns_shorter_cache() -> Iterator[None]:
    """The cache that `generate` returns lacks its last entry."""
    right = GenerationMixin._sample

    @functools.wraps(right)  # `generate` looks at its signature
    def sample(self, *args, **kwargs):
        output = right(self, *args, **kwargs)
        cache = upstream.cache_of(output)
        for layer in [] if cache is None else cache.layers:
            layer.keys, layer.values = layer.keys[..., :-1, :], layer.values[..., :-1, :]
        return output

    with patch.object(GenerationMixin, "_sample", sample):
        yield


@contextmanager
def installed_draws_once_more() -> Iterator[None]:
    """`generate` leaves the random generator one draw further than the reference does."""
    right = GenerationMixin._sample

    @functools.wraps(right)  # `generate` looks at its signature
    def sample(self, *args, **kwargs):
        output = right(self, *args, **kwargs)
        torch.rand(1)
        return output

    with patch.object(GenerationMixin, "_sample", sample):
        yield


@contextmanager
def loading_forgets_a_tie() -> Iterator[None]:
    """A model that is tied from a checkpoint leaves the last pair of its mapping apart."""
    right = PreTrainedModel.tie_weights

    def tie_weights(self, missing_keys=None, recompute_mapping=True):
        if missing_keys is not None and self.all_tied_weights_keys:
            kept = dict(list(self.all_tied_weights_keys.items())[:-1])
            lost = set(self.all_tied_weights_keys) - set(kept)
            self.all_tied_weights_keys = kept
            missing_keys -= lost
        return right(self, missing_keys, recompute_mapping)

    with patch.object(PreTrainedModel, "tie_weights", tie_weights):
        yield


@contextmanager
def tying_takes_the_neighbour() -> Iterator[None]:
    """Two norms of the first block become one as soon as anything of the model's own is tied."""
    right = PreTrainedModel.get_expanded_tied_weights_keys

    def expanded(self, all_submodels=False):
        found = right(self, all_submodels)
        block = "model.layers.0."
        known = dict(self.named_parameters(remove_duplicate=False))
        if found and f"{block}input_layernorm.weight" in known:
            found[f"{block}post_attention_layernorm.weight"] = f"{block}input_layernorm.weight"
        return found

    with patch.object(PreTrainedModel, "get_expanded_tied_weights_keys", expanded):
        yield


@contextmanager
def wrong_ties_are_ignored() -> Iterator[None]:
    """Patterns that cannot be resolved tie nothing, and nobody is told."""
    right = PreTrainedModel.get_expanded_tied_weights_keys

    def expanded(self, all_submodels=False):
        try:
            known = set(dict(self.named_parameters(remove_duplicate=False)))
            found = right(self, all_submodels)
            return {target: source for target, source in found.items() if {target, source} <= known}
        except ValueError:
            return {}

    with patch.object(PreTrainedModel, "get_expanded_tied_weights_keys", expanded):
        yield


@contextmanager
def beams_count_a_token_more() -> Iterator[None]:
    """The length penalty is taken of one token more than there are."""
    right = GenerationMixin._update_finished_beams

    def update(self, *args, cur_len, **kwargs):
        return right(self, *args, cur_len=cur_len + 1, **kwargs)

    with patch.object(GenerationMixin, "_update_finished_beams", update):
        yield


@contextmanager
def reorder_forgets_the_values() -> Iterator[None]:
    """Keys follow the beams and values do not."""
    right = DynamicLayer.reorder_cache

    def reorder_cache(self, beams):
        values = self.values
        right(self, beams)
        self.values = values

    with patch.object(DynamicLayer, "reorder_cache", reorder_cache):
        yield


@contextmanager
def a_step_stays_in_float32() -> Iterator[None]:
    """What a layer is given is not brought back to the dtype of its weights."""
    right = LlamaMLP.forward

    def forward(self, x):
        return right(self, x.float() if x.dtype == torch.bfloat16 else x)

    with patch.object(LlamaMLP, "forward", forward):
        yield


@contextmanager
def pairs_count_as_repeated_late() -> Iterator[None]:
    """What may not repeat is one token longer than is asked for."""
    right = NoRepeatNGramLogitsProcessor.__init__

    def init(self, ngram_size):
        right(self, ngram_size + 1)

    with patch.object(NoRepeatNGramLogitsProcessor, "__init__", init):
        yield
