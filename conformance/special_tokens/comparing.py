"""Prepared tokens compared with what they must be, and decoded ones with each other."""

from __future__ import annotations

from typing import Any

import torch

from conformance.compare import crash_difference
from conformance.outcome import Outcome
from conformance.plans.special_tokens import SpecialTokensPlan
from conformance.special_tokens.expected import Expected
from conformance.special_tokens.preparing import Prepared
from conformance.verdicts import Comparison, Difference


def as_expected(got: Prepared, expected: Expected, plan: SpecialTokensPlan, device: str) -> Comparison:
    """The tokens that were prepared for a device, and the warnings, against those of the rule."""
    if expected.refusal:
        return _refused(got, expected.refusal)
    if got.crash:
        return crash_difference(got.crash, "the ids are plain numbers")
    result, empty = Comparison(), {n for n, one in plan.ids.items() if one.form != "none" and not one.given}
    skipped = empty | ({"pad"} if "eos" in empty and not plan.pad.given else set())
    skipped |= {"decoder_start"} if "bos" in empty and not plan.decoder_start.given else set()
    if any(got.tokens[name] is not None for name in skipped):
        result.allowed.append("an empty list is kept as an empty tensor")
    for name in [one for one in plan.ids if one not in skipped]:  # in order: the first difference names the finding
        result += _same_token(name, got.tokens[name], expected.values[name], device, plan)
    if not result.differences and device == "cpu" and got.warnings != expected.warnings and not empty:
        result += Comparison.of(Difference("changed", "warnings", str(expected.warnings), str(got.warnings)))
    return result


def same_sequences(got: Outcome, expected: Outcome) -> Comparison:
    """The tokens of two runs, neither of which raised."""
    assert got.sequences is not None
    assert expected.sequences is not None
    mine, theirs = got.sequences.tolist(), expected.sequences.tolist()
    return Comparison() if mine == theirs else Comparison.of(Difference("tokens", "sequences", str(theirs), str(mine)))


def _same_token(name: str, got: Any, expected: Any, device: str, plan: Any) -> Comparison:
    if got is None or expected is None:
        alike = got is None and expected is None
        wanted = "none" if expected is None else str(expected)
        return Comparison() if alike else Comparison.of(Difference("missing", name, wanted, _brief(got)))
    shape = (len(expected),) if isinstance(expected, tuple) else ()
    if got.device.type != device:
        return Comparison.of(Difference("changed", f"{name} device", device, got.device.type))
    if tuple(got.shape) != shape:
        return Comparison.of(Difference("shape", name, str(shape), str(tuple(got.shape))))
    if device != "meta" and got.tolist() != (list(expected) if shape else expected):
        return Comparison.of(Difference("values", name, str(expected), _brief(got)))
    if got.dtype != torch.long:
        own = {getattr(torch, one.dtype) for one in plan.ids.values() if one.form in ("scalar", "tensor")}
        if got.dtype not in own:
            return Comparison.of(Difference("changed", f"{name} dtype", "torch.int64", str(got.dtype)))
        return Comparison(allowed=["a tensor of the caller's keeps its own dtype"])
    return Comparison()


def _brief(tensor: Any) -> str:
    if tensor is None or tensor.is_meta:
        return "none" if tensor is None else f"on meta, shape {tuple(tensor.shape)}"
    return str(tensor.tolist())


def _refused(got: Prepared, reason: str) -> Comparison:
    if got.crash or "eos not positive" in got.warnings:
        kept = "a fraction is kept and warned of, as documented"
        return Comparison() if got.crash else Comparison(allowed=[kept])
    said = ", ".join(f"{name} {_brief(tensor)}" for name, tensor in got.tokens.items() if tensor is not None)
    return Comparison.of(Difference("missing", "refusal", f"an error: {reason}", said))
