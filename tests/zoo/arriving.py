"""Faults planted in the reference for what a call is given besides ids and a mask, for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from transformers import GenerationMixin, LogitsProcessorList, MaxLengthCriteria, TemperatureLogitsWarper

from conformance.reference import assisted, prefill


@contextmanager
def whole_prompt_fed_again() -> Iterator[None]:
    """Where nothing is new, all ids are fed on top of the cache."""
    right = prefill.Start._new_part

    def new_part(self, model, input_ids, kwargs):
        new, name = right(self, model, input_ids, kwargs)
        return (new if new.shape[1] else input_ids), name

    with patch.object(prefill.Start, "_new_part", new_part):
        yield


@contextmanager
def given_positions_start_over() -> Iterator[None]:
    """The positions of new ids are counted from the first of them, whatever the cache holds."""
    right = prefill._complete

    def complete(model, kwargs, total):
        given = kwargs.get("position_ids")
        right(model, kwargs, total)
        if given is not None and given.shape[-1] < total:
            kwargs["position_ids"] = (kwargs["position_ids"] - (total - given.shape[-1])).clamp(min=0)

    with patch.object(prefill, "_complete", complete):
        yield


@contextmanager
def drafts_streamed_before_they_are_accepted() -> Iterator[None]:
    """A streamer is given each draft, then the tokens that came of it."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        if self.streamer is not None and draft[0]:
            self.streamer.put(input_ids.new_tensor(draft[0]))
        return right(self, input_ids, draft, logits, first)

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def drafts_verified_without_temperature() -> Iterator[None]:
    """Drafts are verified by scores that no temperature was applied to."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        kept = [processor for processor in self.processors if not isinstance(processor, TemperatureLogitsWarper)]
        self.processors = LogitsProcessorList(kept)
        return right(self, input_ids, draft, logits, first)

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def callers_limit_is_dropped() -> Iterator[None]:
    """A criterion for lengths of the caller's is not asked: the settings tell the limit."""
    right = GenerationMixin._merge_criteria_processor_list

    def merge(self, default_list, custom_list):
        kept = [custom for custom in custom_list if not isinstance(custom, MaxLengthCriteria)]
        return right(self, default_list, kept)

    with patch.object(GenerationMixin, "_merge_criteria_processor_list", merge):
        yield


@contextmanager
def searches_know_the_callers_limit(less: int = 0) -> Iterator[None]:
    """A beam search has room for what the caller's own criterion says, or for some tokens less, where it ends."""
    right = GenerationMixin._beam_search

    def search(self, input_ids, logits_processor, stopping_criteria, generation_config, **kwargs):
        for limit in [one for one in stopping_criteria if isinstance(one, MaxLengthCriteria)]:
            generation_config.max_length = limit.max_length = limit.max_length - less
        return right(self, input_ids, logits_processor, stopping_criteria, generation_config, **kwargs)

    with patch.object(GenerationMixin, "_beam_search", search):
        yield
