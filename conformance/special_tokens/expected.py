"""What preparing special tokens must give, worked out from the plain values of a plan: no tensor is involved."""

from __future__ import annotations

from dataclasses import dataclass

from conformance import upstream
from conformance.plans.special_tokens import Id, SpecialTokensPlan

Ids = int | tuple[int, ...] | None


@dataclass(frozen=True)
class Expected:
    """values: by name, a number for a tensor without dimension, a tuple for one with one; warnings: their kinds in
    order; refusal: why the preparation must raise, or nothing.
    """

    values: dict[str, Ids]
    warnings: tuple[str, ...] = ()
    refusal: str = ""


def expected_ids(plan: SpecialTokensPlan, encoder_decoder: bool) -> Expected:
    """The rule: eos is one-dimensional, pad falls back to the first eos, a decoder starts with bos else.

    A fraction is no id. An empty list is no id either.
    """
    values = {name: _plain(one) for name, one in plan.ids.items()}
    if any(one.fractional for one in plan.ids.values()):
        return Expected(values, refusal="a fraction is no token id")
    eos = (values["eos"],) if isinstance(values["eos"], int) else values["eos"]
    values["eos"] = eos
    if encoder_decoder and values["decoder_start"] is None:
        values["decoder_start"] = values["bos"]
    if values["pad"] is None and eos:
        values["pad"] = eos[0]
    if encoder_decoder and values["decoder_start"] is None:
        return Expected(values, refusal="nothing starts the decoder")
    return Expected(values, tuple(_warnings(plan, values["pad"], eos)) if eos else ())


def _plain(one: Id) -> Ids:
    numbers = tuple(int(number) for number in one.numbers)
    if not numbers:
        return None
    return numbers if one.shape else numbers[0]


def _warnings(plan: SpecialTokensPlan, pad: Ids, eos: tuple[int, ...]) -> list[str]:
    several = plan.batch_size is None or plan.batch_size > 1 or not upstream.special_tokens_know_the_batch()
    unmasked, kinds = plan.has_mask is False and several, []
    if not plan.pad.given:
        kinds += ["mask and pad not set"] if unmasked else []
        kinds += ["pad taken from eos"] if upstream.announces_pad_token() else []
    pads = pad if isinstance(pad, tuple) else (pad,)
    kinds += ["pad is an eos"] if unmasked and set(pads) & set(eos) else []
    floating = plan.eos.form in ("scalar", "tensor") and plan.eos.dtype == "float32"
    return kinds + (["eos not positive"] if floating or min(eos) < 0 else [])
