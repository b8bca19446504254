"""Caches with one fault each, planted in the installed library for the length of a block."""

# ruff: noqa: ARG001, ARG005 - a fault takes the place of something with its own arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionCacheLayerMixin,
    QuantizedLayer,
)
from transformers.generation.utils import GenerationMixin


@contextmanager
def instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """`make` gets what `owner.name` is and gives what takes its place."""
    with patch.object(owner, name, make(vars(owner)[name])):
        yield


def window_off_by_one() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            right(self, count)
            if self.cumulative_length >= self.sliding_window and self.keys.shape[-2] > 1:
                self.keys, self.values = self.keys[:, :, 1:], self.values[:, :, 1:]

        return crop

    return instead(DynamicSlidingWindowLayer, "crop", make)


def values_are_not_cropped() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            values = self.values
            right(self, count)
            if count and values is not None and self.keys.shape[-2]:
                self.values = values[..., -self.keys.shape[-2] :, :]

        return crop

    return instead(DynamicLayer, "crop", make)


def length_is_not_restored() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            length = self.cumulative_length
            right(self, count)
            self.cumulative_length = length

        return crop

    return instead(DynamicSlidingWindowLayer, "crop", make)


def recording_returns_all_states() -> AbstractContextManager[None]:
    def make(right):
        def update(self, keys, values, *args, **kwargs):
            seen = right(self, keys, values, *args, **kwargs)
            return (self.keys, self.values) if self.record_past else seen

        return update

    return instead(DynamicSlidingWindowLayer, "update", make)


def convolution_tail_one_short() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            right(self, count)
            self.conv_states[0] = self.conv_states[0].clone()
            self.conv_states[0][..., 0] = 0

        return crop

    return instead(LinearAttentionCacheLayerMixin, "crop", make)


def reorder_forgets_the_convolution() -> AbstractContextManager[None]:
    def make(right):
        def reorder_cache(self, beams):
            kept = dict(self.conv_states)
            right(self, beams)
            self.conv_states = kept

        return reorder_cache

    return instead(LinearAttentionCacheLayerMixin, "reorder_cache", make)


def reorder_forgets_what_is_recorded() -> AbstractContextManager[None]:
    """The states that only a crop brings back into the window keep the rows' old order."""

    def reorder_cache(self, beams):
        surplus, before = self.keys.shape[-2] - self.sliding_window + 1, (self.keys, self.values)
        CacheLayerMixin.reorder_cache(self, beams)
        if surplus > 0:
            both = zip(before, (self.keys, self.values), strict=True)
            self.keys, self.values = (torch.cat([o[..., :surplus, :], n[..., surplus:, :]], -2) for o, n in both)

    return patch.object(DynamicSlidingWindowLayer, "reorder_cache", reorder_cache)


def reorder_loses_what_waits() -> AbstractContextManager[None]:
    """Tokens that wait until a block of them is compressed are dropped: no forward before that reads them."""
    from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4HCACache

    def make(right):
        def reorder_cache(self, beams):
            right(self, beams)
            self.buffer_kv, self.buffer_gate = dict.fromkeys(self.buffer_kv), dict.fromkeys(self.buffer_gate)

        return reorder_cache

    return instead(DeepseekV4HCACache, "reorder_cache", make)


def reset_zeroes_without_emptying() -> AbstractContextManager[None]:
    def make(right):
        def reset(self):
            if self.is_initialized:
                self.keys.zero_()
                self.values.zero_()

        return reset

    return instead(DynamicLayer, "reset", make)


def reset_keeps_the_batch() -> AbstractContextManager[None]:
    """Nothing of the tokens is left, but a layer of no tokens for so many rows."""

    def make(right):
        def reset(self):
            if self.is_initialized:
                self.keys, self.values = self.keys[..., :0, :], self.values[..., :0, :]

        return reset

    return instead(DynamicLayer, "reset", make)


def is_croppable_always() -> AbstractContextManager[None]:
    return instead(Cache, "is_croppable", lambda right: property(lambda self: True))


def is_croppable_never() -> AbstractContextManager[None]:
    return instead(Cache, "is_croppable", lambda right: property(lambda self: False))


def cross_attention_is_cropped_too() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            right(self, count)
            self.cross_attention_cache.crop(count)

        return crop

    return instead(EncoderDecoderCache, "crop", make)


def batch_size_is_asked_of_the_first_layer() -> AbstractContextManager[None]:
    """Which has none until something is fed."""
    return instead(Cache, "batch_size", lambda right: property(lambda self: self.layers[0].batch_size))


def crop_of_nothing_takes_a_token() -> AbstractContextManager[None]:
    return instead(DynamicLayer, "crop", lambda right: lambda self, count: right(self, count or -1))


def refuses_after_cropping() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            right(self, count)
            if count < -1:
                raise ValueError("only one token at a time")

        return crop

    return instead(Cache, "crop", make)


def select_forgets_the_values() -> AbstractContextManager[None]:
    def make(right):
        def batch_select_indices(self, indices):
            self.keys, self.values = self.keys[indices], self.values[: len(indices)]

        return batch_select_indices

    return instead(DynamicLayer, "batch_select_indices", make)


def recorded_states_are_kept() -> AbstractContextManager[None]:
    def make(right):
        def crop(self, count):
            if self.cumulative_length >= self.sliding_window and self.record_past and count == 0:
                return
            right(self, count)

        return crop

    return instead(DynamicSlidingWindowLayer, "crop", make)


def recurrent_state_is_cropped_blindly() -> AbstractContextManager[None]:
    """Says that a recurrent layer can be cropped, and leaves its recurrent state as it is."""
    return instead(LinearAttentionCacheLayerMixin, "is_croppable", lambda right: property(lambda self: True))


def length_below_zero() -> AbstractContextManager[None]:
    def make(right):
        def get_seq_length(self):
            return right(self) - getattr(self, "overdrawn", 0)

        return get_seq_length

    @contextmanager
    def both() -> Iterator[None]:
        crop = DynamicLayer.crop

        def overdraw(self, count):
            if self.is_initialized and -count > self.keys.shape[-2]:
                self.overdrawn = -count - self.keys.shape[-2]
            crop(self, count)

        with instead(DynamicLayer, "get_seq_length", make), patch.object(DynamicLayer, "crop", overdraw):
            yield

    return both()


def quantised_loses_the_first_token() -> AbstractContextManager[None]:
    def make(right):
        def update(self, keys, values, *args, **kwargs):
            filled, seen = self.is_initialized, right(self, keys, values, *args, **kwargs)
            return (
                tuple(torch.cat([states[..., :1, :] * 0, states[..., 1:, :]], -2) for states in seen)
                if filled
                else seen
            )

        return update

    return instead(QuantizedLayer, "update", make)


def residual_is_never_quantised() -> AbstractContextManager[None]:
    def make(right):
        def update(self, *args, **kwargs):
            most, self.residual_length = self.residual_length, 1000
            try:
                return right(self, *args, **kwargs)
            finally:
                self.residual_length = most

        return update

    return instead(QuantizedLayer, "update", make)


def beams_keep_the_worst_that_end() -> AbstractContextManager[None]:
    """Candidates are handed on in the wrong order, so that of those which end the worst are kept."""

    def make(right):
        def candidates(self, *args, **kwargs):
            return tuple(part.flip(1) for part in right(self, *args, **kwargs))

        return candidates

    return instead(GenerationMixin, "_get_top_k_continuations", make)
