"""Subjects that get special tokens wrong in one way each, usable as `--subject zoo.special:NAME`."""

from __future__ import annotations

import copy
from types import MethodType

import torch

from conformance import upstream
from conformance.reference.misplaced import MisplacedParameterError, misplaced
from conformance.reference.special_tokens import MetaSafeSpecialTokens, MetaSafeTensorError
from conformance.subjects.reference import Reference


class Eos0d(Reference):
    """Leaves a single end token without a dimension."""

    name = "eos-0d"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        single = made["eos"] is not None and len(made["eos"]) == 1
        return {**made, "eos": made["eos"][0]} if single else made


class PadFromLast(Reference):
    """Takes the pad token from the last end token instead of the first."""

    name = "pad-from-last"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        taken = generation_config.pad_token_id is None and made["eos"] is not None
        return {**made, "pad": made["eos"][-1]} if taken else made


class ZeroIsUnset(Reference):
    """Takes a pad token of zero for none at all."""

    name = "zero-is-unset"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        unset = (
            made["pad"] is not None and not made["pad"].is_meta and not made["pad"].any() and made["eos"] is not None
        )
        return {**made, "pad": made["eos"][0]} if unset else made


class PreparesInPlace(Reference):
    """Puts the tensors into the caller's config."""

    name = "prepares-in-place"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        generation_config._eos_token_tensor = made["eos"]
        return made


class Int32(Reference):
    """Makes tensors of 32-bit integers."""

    name = "int32"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        return {name: None if tensor is None else tensor.int() for name, tensor in made.items()}


class IgnoresDevice(Reference):
    """Makes tensors on the CPU whatever the device."""

    name = "ignores-device"

    def special_tokens(self, model, generation_config, **asked):
        return super().special_tokens(model, generation_config, **{**asked, "device": "cpu"})


class MovesMetaTensors(Reference):
    """Hands on a tensor that has no values, moved to the device where that is possible."""

    name = "moves-meta-tensors"

    def special_tokens(self, model, generation_config, **asked):
        try:
            return super().special_tokens(model, generation_config, **asked)
        except MetaSafeTensorError:
            names = ("bos", "eos", "pad", "decoder_start")
            given = {name: getattr(generation_config, f"{name}_token_id") for name in names}
            return {
                name: value.to("meta") if isinstance(value, torch.Tensor) else None for name, value in given.items()
            }


class PlainRuntimeError(Reference):
    """Refuses a tensor without values with an error that could mean anything."""

    name = "plain-runtime-error"

    def special_tokens(self, model, generation_config, **asked):
        try:
            return super().special_tokens(model, generation_config, **asked)
        except MetaSafeTensorError as error:
            raise RuntimeError(str(error)) from None


class ReadsTheirValues(Reference):
    """Looks at the values of the tensors that it made."""

    name = "reads-their-values"

    def special_tokens(self, model, generation_config, **asked):
        made = super().special_tokens(model, generation_config, **asked)
        if made["pad"] is not None:
            torch.equal(made["pad"], made["pad"].clone())
        return made


class WarnsOfNothing(Reference):
    """Says nothing about negative end tokens."""

    name = "warns-of-nothing"

    def special_tokens(self, model, generation_config, **asked):
        logger = upstream.generation_logger()
        disabled, logger.disabled = logger.disabled, True
        try:
            return super().special_tokens(model, generation_config, **asked)
        finally:
            logger.disabled = disabled


class FirstEndOnly(Reference):
    """Decodes with the first of several end tokens only, where they come as a tensor or a tuple."""

    name = "first-end-only"

    def generate(self, model, call):
        eos = call.extras.get("eos_token_id", call.generation_config.eos_token_id)
        several = isinstance(eos, tuple) or (isinstance(eos, torch.Tensor) and eos.ndim == 1)
        if call.mechanism != "special_tokens" or not several:
            return super().generate(model, call)
        config = copy.deepcopy(call.generation_config)
        config.eos_token_id = [int(eos[0])] if len(eos) else None
        extras = {name: value for name, value in call.extras.items() if name != "eos_token_id"}
        return super().generate(model, call.replace(generation_config=config, extras=extras))


class StartsAllAlike(Reference):
    """Starts the decoders of all rows with the first row's token."""

    name = "starts-all-alike"

    def generate(self, model, call):
        start = call.extras.get("decoder_start_token_id", call.generation_config.decoder_start_token_id)
        one_each = isinstance(start, list | tuple) or (isinstance(start, torch.Tensor) and start.ndim)
        if call.mechanism != "special_tokens" or not one_each:
            return super().generate(model, call)
        config = copy.deepcopy(call.generation_config)
        config.decoder_start_token_id = int(start[0])
        extras = {name: value for name, value in call.extras.items() if name != "decoder_start_token_id"}
        return super().generate(model, call.replace(generation_config=config, extras=extras))


class IgnoresKeywords(Reference):
    """Does not hear of end tokens that are told by keyword."""

    name = "ignores-keywords"

    def generate(self, model, call):
        if call.mechanism != "special_tokens":
            return super().generate(model, call)
        return super().generate(model, call.replace(extras={**call.extras, "eos_token_id": None}))


class KeepsTensors(Reference):
    """Leaves the tensor of an end token in the caller's config."""

    name = "keeps-tensors"

    def generate(self, model, call):
        output = super().generate(model, call)
        if call.mechanism == "special_tokens":
            call.generation_config._eos_token_tensor = torch.tensor([1])
        return output


class StaysOnTheModel(Reference):
    """Puts its preparation on the model and does not take it off."""

    name = "stays-on-the-model"

    def generate(self, model, call):
        output = super().generate(model, call)
        if call.mechanism == "special_tokens":
            patch = MethodType(MetaSafeSpecialTokens._prepare_special_tokens, model)
            object.__setattr__(model, "_prepare_special_tokens", patch)
        return output


class StaysOnTheAssistant(Reference):
    """Leaves an end token in the generation config of the assistant."""

    name = "stays-on-the-assistant"

    def generate(self, model, call):
        output, assistant = super().generate(model, call), call.extras.get("assistant_model")
        if call.mechanism == "special_tokens" and assistant is not None:
            assistant.generation_config.eos_token_id = [1, 2, 3]
        return output


class DraftsAnywhere(Reference):
    """Makes a tensor for drafts without naming its device."""

    name = "drafts-anywhere"

    def generate(self, model, call):
        if call.extras and call.mechanism == "special_tokens":
            int(torch.zeros(1).sum())
        return super().generate(model, call)


class RefusesLate(Reference):
    """Notices parameters without values only after something ran."""

    name = "refuses-late"

    def generate(self, model, call):
        found = [name for name, _ in misplaced(model)]
        if found:
            next(module for name, module in model.named_modules() if name.endswith("act_fn"))(torch.zeros(1))
            raise MisplacedParameterError(found[0], (1,), 0)
        return super().generate(model, call)
