"""Subjects with one fault each, usable as `--subject zoo.subjects:NAME`."""

# ruff: noqa: ARG002 - a place for a fault is given all that some fault needs

from __future__ import annotations

import os
import weakref

import torch
from transformers.cache_utils import DynamicLayer

from conformance.subjects.installed import Installed
from zoo.loop import Decoder


class DropsOldest(Decoder):
    """Loses the oldest cache entry of every growing layer before every decode step."""

    name = "drops-oldest"

    def cache(self, cache):
        for layer in cache.layers:
            if isinstance(layer, DynamicLayer) and layer.keys.shape[-2] > 1:
                layer.keys, layer.values = layer.keys[..., 1:, :], layer.values[..., 1:, :]


class RepeatsPosition(Decoder):
    """Does not advance the position of the second decode step."""

    name = "repeats-position"

    def inputs(self, inputs, step):
        return {**inputs, "position_ids": inputs["position_ids"] - 1} if step == 1 else inputs


class RoundsCache(Decoder):
    """Keeps the cache in half precision."""

    name = "rounds-cache"

    def cache(self, cache):
        for layer in cache.layers:
            layer.values = layer.values.half().to(layer.values.dtype)


class SwapsRows(Decoder):
    """Gives the rows of a batch each other's cache entries."""

    name = "swaps-rows"

    def cache(self, cache):
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys.flip(0), layer.values.flip(0)


class CrashesOnBatches(Installed):
    """Takes one row only."""

    name = "crashes-on-batches"

    def generate(self, model, call):
        if call.inputs["input_ids"].shape[0] > 1:
            raise ValueError("one row at a time")
        return super().generate(model, call)


class KeepsEmitting(Decoder):
    """Goes on with the tokens of a finished row in place of padding."""

    name = "keeps-emitting"

    def filled(self, tokens, finished, pad):
        return tokens


class StopsEarly(Decoder):
    """Stops one token before the limit."""

    name = "stops-early"

    def stopped(self, stopped, input_ids, generation_config):
        return stopped | (input_ids.shape[1] >= generation_config.max_length - 1)


class IgnoresEnd(Decoder):
    """Never stops before the limit."""

    name = "ignores-end"

    def stopped(self, stopped, input_ids, generation_config):
        return torch.full_like(stopped, input_ids.shape[1] >= generation_config.max_length)


class AltersScore(Decoder):
    """Returns one score of the first step a little off."""

    name = "alters-score"

    def scores(self, scores, step):
        if step > 0:
            return scores
        altered = scores.clone()
        altered[:, 3] += 0.01 * scores.abs().max()
        return altered


class MasksScore(Decoder):
    """Returns minus infinity for a token that is allowed."""

    name = "masks-score"

    def scores(self, scores, step):
        return scores.index_fill(1, torch.tensor([int(scores[0].argmin())]), float("-inf"))


class LosesLogit(Decoder):
    """Returns a NaN in the logits of the last token of the vocabulary, which it never chooses for it."""

    name = "loses-logit"

    def scores(self, scores, step):
        return scores.index_fill(1, torch.tensor([int(scores[0].argmin())]), float("nan"))


class ChoosesSecond(Decoder):
    """Takes the second best token at the third step."""

    name = "chooses-second"

    def logits(self, logits, step):
        if step != 2:
            return logits
        return logits.scatter(1, logits.argmax(dim=1, keepdim=True), float(logits.min()))


class KeepsState(Decoder):
    """Shifts the logits of every call on a model but its first."""

    name = "keeps-state"

    def __init__(self):
        self.seen, self.again = weakref.WeakSet(), False

    def begin(self, model, generation_config):
        self.again = model in self.seen
        self.seen.add(model)

    def logits(self, logits, step):
        return logits * 1.001 if self.again else logits


class LeavesStateOnModel(Decoder):
    """Leaves an attribute on the model."""

    name = "leaves-state-on-model"

    def begin(self, model, generation_config):
        model.last_limit = generation_config.max_length


class FailsOnce(Installed):
    """Fails on its first call of a process and never again."""

    name = "fails-once"

    def __init__(self):
        self.calls = 0

    def generate(self, model, call):
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("once")
        return super().generate(model, call)


class EndsTheProcess(Installed):
    """Ends the process, as a crash in compiled code does."""

    name = "ends-the-process"

    def generate(self, model, call):
        os._exit(7)


class Interrupts(Installed):
    """Raises what asks for the end of a run, though nobody does."""

    name = "interrupts"

    def generate(self, model, call):
        raise KeyboardInterrupt("of its own")
