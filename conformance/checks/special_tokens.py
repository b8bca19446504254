"""Special tokens in any form, on any device: prepared rightly, or refused clearly, and never at the config's cost."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import torch

from conformance.compare import crash_difference
from conformance.outcome import Crash, Outcome
from conformance.plans.special_tokens import plainly
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.snapshots import changes, snapshot
from conformance.special_tokens.calls import call_with, in_threads, misplaced_model, model_without_pad, spoken_ids
from conformance.special_tokens.expected import Expected, expected_ids
from conformance.special_tokens.preparing import Prepared, prepared
from conformance.special_tokens.probes import MetaDefaults, ModuleCalls
from conformance.verdicts import Comparison, Difference

SPECIAL = family(
    "special_tokens",
    floors={
        "eos as list": 0.05,
        "eos as tensor": 0.05,
        "ids: on meta": 0.05,
        "ids: empty": 0.05,
        "ids: negative": 0.05,
        "pad: taken from eos": 0.1,
        "mode: assisted": 0.1,
        "mode: beams": 0.1,
        "mode: lookup": 0.1,
        "ids: end token met": 0.15,
    },
    reachable=(
        "ids: beyond the vocabulary",
        "ids: bool",
        "ids: duplicate",
        "ids: fraction",
        "device: the model's",
        "threads: several",
    ),
)

NO_PREPARATION = "the subject has no preparation of its own"


def _prepares(runs: Runs) -> bool:
    return hasattr(runs.subject, "special_tokens")


def _on_meta(runs: Runs) -> bool:
    return any(one.on_meta for one in runs.case.plan.ids.values())


def _expected(runs: Runs) -> Expected:
    return expected_ids(runs.case.plan, runs.scenario.encoder_decoder)


@check(SPECIAL, script="special_ids", bitwise=True)
@applies("some id is a tensor on meta", lambda runs: not _on_meta(runs))
@applies(NO_PREPARATION, _prepares)
def special_tokens_match_on_cpu(runs: Runs) -> Comparison:
    """Prepared on the CPU, the ids have the values, shapes, dtype and device of the rule, and the warnings it gives.

    A fraction is refused or warned of, never cut off; no end token is none, in whatever form it is written.
    """
    return _as_expected(runs, prepared(runs, "cpu"), "cpu")


@check(SPECIAL, stands_on=["special-tokens-match-on-cpu"], script="special_ids_on_meta", bitwise=True)
@applies("the ids are refused on every device", lambda runs: not _expected(runs).refusal)
@applies("some id is a tensor on meta", lambda runs: not _on_meta(runs))
@applies(NO_PREPARATION, _prepares)
def special_tokens_work_on_meta(runs: Runs) -> Comparison:
    """Prepared for `meta`, the ids are tensors there, of the same shapes; no value of a `meta` tensor is ever read."""
    got = prepared(runs, "meta")
    result = _as_expected(runs, got, "meta")
    if got.reads and not result.differences:
        result += Comparison.of(Difference("changed", "reads", "no value of a meta tensor", ", ".join(got.reads)))
    return result


def _as_expected(runs: Runs, got: Prepared, device: str) -> Comparison:
    expected, plan = _expected(runs), runs.case.plan
    if expected.refusal:
        return _refused(got, expected.refusal)
    if got.crash:
        return crash_difference(got.crash, "the ids are plain numbers")
    result, empty = Comparison(), {n for n, one in plan.ids.items() if one.form != "none" and not one.given}
    skipped = empty | ({"pad"} if "eos" in empty and not plan.pad.given else set())
    skipped |= {"decoder_start"} if "bos" in empty and not plan.decoder_start.given else set()
    if any(got.tokens[name] is not None for name in skipped):
        result.allowed.append("an empty list is kept as an empty tensor")
    for name in set(plan.ids) - skipped:
        result += _same_token(name, got.tokens[name], expected.values[name], device, plan)
    if not result.differences and device == "cpu" and got.warnings != expected.warnings and not empty:
        result += Comparison.of(Difference("changed", "warnings", str(expected.warnings), str(got.warnings)))
    return result


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


@check(SPECIAL, script="special_ids_refused", bitwise=True)
@applies("no id is a tensor on meta", _on_meta)
@applies(NO_PREPARATION, _prepares)
def meta_ids_are_refused_clearly(runs: Runs) -> Comparison:
    """An id that is a tensor on `meta` has no value: whatever the device, one dedicated error names the field."""
    for device in ("cpu", "meta"):
        got = prepared(runs, device)
        names = [f"{name}_token_id" for name, one in runs.case.plan.ids.items() if one.on_meta]
        wanted = f"an error of its own that names {names[0]}"
        if got.crash is None:
            return Comparison.of(Difference("missing", "refusal", wanted, "no error", f"device {device}"))
        clear = any(name in got.crash.message for name in names)
        if not clear or hasattr(builtins, got.crash.type):
            said = "type of the refusal" if clear else "message of the refusal"
            return Comparison.of(Difference("changed", said, wanted, str(got.crash), f"device {device}"))
    return Comparison()


@check(SPECIAL, bitwise=True)
def special_tokens_change_no_config(runs: Runs) -> Comparison:
    """The generation config that the caller passes is as before, JSON included, also where threads share it.

    Each thread then gets what the call gives by itself.
    """
    for device in ("cpu", "meta") if _prepares(runs) else ():
        for path, how in prepared(runs, device).changed.items():
            return Comparison.of(Difference("changed", "generation_config", "as before", f"{path}: {how}", path))
    call = call_with(runs, spoken_ids(runs))
    before = snapshot(vars(call.generation_config)) | {"json": _json(call.generation_config)}
    alone = runs.run(call, model=model_without_pad(runs))
    if runs.case.plan.threads > 1 and not alone.crash and alone.sequences is not None:
        for got in in_threads(runs, call, runs.case.plan.threads):
            if got != alone.sequences.tolist():
                values = (str(alone.sequences.tolist()), str(got))
                return Comparison.of(Difference("tokens", "sequences of a thread", *values))
    after = snapshot(vars(call.generation_config)) | {"json": _json(call.generation_config)}
    for path, how in changes(before, after).items():
        return Comparison.of(Difference("changed", "generation_config", "as before", f"{path}: {how}", path))
    return Comparison()


def _json(config: Any) -> str:
    try:
        return str(config.to_json_string())
    except TypeError as error:  # ids that are tensors cannot be written
        return type(error).__name__


@check(SPECIAL, stands_on=["special-tokens-match-on-cpu"], script="special_modes", bitwise=True)
def special_tokens_serve_every_mode(runs: Runs) -> Comparison:
    """Greedy, beams, prompt lookup and assisted decoding give for ids in any form what they give for plain numbers.

    No end token, in whatever form, is like one that is never said. After its end token a beam holds padding only.
    """
    ids = spoken_ids(runs)
    plain = runs.run(call_with(runs, plainly(ids)), model=model_without_pad(runs))
    if plain.crash:
        return Comparison(not_applicable=f"{runs.case.plan.mode} does not run with plain numbers")
    got = _with_spoken_ids(runs)
    if got.crash:
        return crash_difference(got.crash, "the same ids as plain numbers work")
    result = _same_sequences(got, plain)
    return result if result.differences else _padding_of_beams(runs, got)


def _with_spoken_ids(runs: Runs) -> Outcome:
    def make() -> Outcome:
        ids = spoken_ids(runs)
        outcome = runs.run(call_with(runs, ids), model=model_without_pad(runs))
        rows = range(0 if outcome.sequences is None else outcome.sequences.shape[0])
        met = any(set(outcome.tokens(row)) & set(ids["eos"].numbers) for row in rows)
        runs.events |= {"ids: end token met"} if met else set()
        return outcome

    return runs.once("spoken ids", make)


def _same_sequences(got: Outcome, expected: Outcome) -> Comparison:
    assert got.sequences is not None
    assert expected.sequences is not None
    mine, theirs = got.sequences.tolist(), expected.sequences.tolist()
    return Comparison() if mine == theirs else Comparison.of(Difference("tokens", "sequences", str(theirs), str(mine)))


def _padding_of_beams(runs: Runs, outcome: Outcome) -> Comparison:
    ids = plainly(spoken_ids(runs))
    eos, pad = set(ids["eos"].numbers), ids["pad"].numbers[0]
    if runs.case.plan.mode != "beams" or outcome.sequences is None:
        return Comparison()
    for row in range(outcome.sequences.shape[0]):
        tokens = outcome.tokens(row)
        end = next((step for step, token in enumerate(tokens) if token in eos), len(tokens))
        if any(token != pad for token in tokens[end + 1 :]):
            return Comparison.of(Difference("tokens", "padding", f"only {pad}", str(tokens[end + 1 :]), f"row {row}"))
    return Comparison()


@check(SPECIAL, stands_on=["special-tokens-serve-every-mode"], bitwise=True)
@applies("the case verifies no draft", lambda runs: runs.case.plan.mode in ("lookup", "assisted"))
def assisted_survives_special_tokens_on_meta_defaults(runs: Runs) -> Comparison:
    """Where plain decoding works with `meta` as the default device, so do assisted decoding and prompt lookup.

    Inputs and model are on the CPU: the default device may reach nothing that is made without naming one.
    """
    base = _with_spoken_ids(runs)
    if base.crash:
        return Comparison(not_applicable="it does not run with the CPU as the default device either")
    plain_runs: list[Callable[[], Outcome]] = [
        lambda: runs.run(call_with(runs, spoken_ids(runs), "greedy"), model=model_without_pad(runs)),
        lambda: _run_on_meta_defaults(runs, "greedy"),
    ]
    plain, on_meta = (run() for run in plain_runs)
    if plain.crash or on_meta.crash or _same_sequences(on_meta, plain).differences:
        return Comparison(not_applicable="plain decoding of this type does not survive it either")
    got = _run_on_meta_defaults(runs, runs.case.plan.mode)
    return crash_difference(got.crash, "plain decoding works so") if got.crash else _same_sequences(got, base)


def _run_on_meta_defaults(runs: Runs, mode: str) -> Outcome:
    call = call_with(runs, spoken_ids(runs), mode)
    return runs.run(call, model=model_without_pad(runs), probes=[MetaDefaults()])


@check(SPECIAL, script="special_misplaced", bitwise=True)
def misplaced_fails_early_and_clearly(runs: Runs) -> Comparison:
    """A model with parameters on `meta` and nothing to load them is refused before any module runs, naming one.

    Going on gives tokens out of memory that nobody wrote; an error from deep inside tells nobody what to do.
    """
    model, names = misplaced_model(runs)
    outcome = runs.run(call_with(runs, {}, "greedy"), model=model, probes=[ModuleCalls()])
    wanted = f"an error that names a parameter, as {names[0]}, before anything runs"
    if outcome.crash is None:
        return Comparison.of(Difference("missing", "refusal", wanted, "tokens", "silent"))
    return _clear_and_early(outcome.crash, names, int(outcome.extra["module calls"]), wanted)


def _clear_and_early(crash: Crash, names: list[str], calls: int, wanted: str) -> Comparison:
    if not any(name in crash.message for name in names):
        return Comparison.of(Difference("changed", "refusal", wanted, str(crash), "vague"))
    if calls:
        return Comparison.of(Difference("length", "refusal", wanted, f"{crash.type} after {calls} modules ran", "late"))
    return Comparison()
