"""Special tokens in any form, on any device: prepared rightly, or refused clearly, and never at the config's cost.

How they serve in decoding is checked in `special_tokens_decoding`, what they start in `special_tokens_starting`.
"""

from __future__ import annotations

import builtins
from typing import Any

from conformance.call import Call
from conformance.compare import unnumbered
from conformance.model_state import configs_and_methods, traces, without_hooks
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.snapshots import Flat, changes, snapshot
from conformance.special_tokens.calls import in_threads, model_without_pad, spoken_call
from conformance.special_tokens.comparing import as_expected
from conformance.special_tokens.expected import Expected, expected_ids
from conformance.special_tokens.preparing import prepared
from conformance.statefulness import keeps_state
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
        "told: by keyword",
        "start: bos",
        "start: a token for each row",
        "start: no token",
    ),
)

NO_PREPARATION = "the subject has no preparation of its own"


def _prepares(runs: Runs) -> bool:
    return hasattr(runs.subject, "special_tokens")


def _on_meta(runs: Runs) -> bool:
    return any(one.on_meta for one in runs.case.plan.ids.values())


def _fractional(runs: Runs) -> bool:
    return any(one.fractional for one in runs.case.plan.ids.values())


def _expected(runs: Runs) -> Expected:
    return expected_ids(runs.case.plan, runs.scenario.encoder_decoder)


@check(SPECIAL, script="special_ids", bitwise=True)
@applies("some id is a tensor on meta", lambda runs: not _on_meta(runs))
@applies(NO_PREPARATION, _prepares)
def special_tokens_match_on_cpu(runs: Runs) -> Comparison:
    """Prepared on the CPU, the ids have the values, shapes, dtype and device of the rule, and the warnings it gives.

    A fraction is refused or warned of, never cut off; no end token is none, in whatever form it is written.
    """
    return as_expected(prepared(runs, "cpu"), _expected(runs), runs.case.plan, "cpu")


@check(SPECIAL, stands_on=["special-tokens-match-on-cpu"], script="special_ids_on_meta", bitwise=True)
@applies("the ids are refused on every device", lambda runs: not _expected(runs).refusal)
@applies("some id is a tensor on meta", lambda runs: not _on_meta(runs))
@applies(NO_PREPARATION, _prepares)
def special_tokens_work_on_meta(runs: Runs) -> Comparison:
    """Prepared for `meta`, the ids are tensors there, of the same shapes; no value of a `meta` tensor is ever read."""
    got = prepared(runs, "meta")
    result = as_expected(got, _expected(runs), runs.case.plan, "meta")
    if got.reads and not result.differences:
        result += Comparison.of(Difference("changed", "reads", "no value of a meta tensor", ", ".join(got.reads)))
    return result


@check(SPECIAL, script="special_ids_refused", bitwise=True)
@applies("no id is a tensor on meta", _on_meta)
@applies("another id is a fraction, and may be refused first", lambda runs: not _fractional(runs))
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


@check(SPECIAL, script="special_configs", bitwise=True)
def special_tokens_change_no_config(runs: Runs) -> Comparison:
    """The generation config that the caller passes is as before, JSON included, also where threads share it.

    Each thread then gets what the call gives by itself. Nor is anything left in the model, or in the assistant: no
    config of theirs is changed, and no method stays put on them, which the next call would decode with.
    """
    preparations = [prepared(runs, device) for device in (("cpu", "meta") if _prepares(runs) else ())]
    for path, how in [change for one in preparations for change in one.changed.items()]:
        return Comparison.of(Difference("changed", "generation_config", "as before", f"{path}: {how}", path))
    call, model = spoken_call(runs), model_without_pad(runs)
    before = snapshot(vars(call.generation_config)) | {"json": _json(call.generation_config)}
    held = _held(runs, model, call)
    alone = runs.run(call, model=model)
    for path, how in traces(_held(runs, model, call), held, runs.scenario.architecture.model_type).items():
        return Comparison.of(Difference("changed", unnumbered(path), "as before", f"{path}: {how}", path))
    if runs.case.plan.threads > 1 and not alone.crash and alone.sequences is not None:
        for got in in_threads(runs, call, runs.case.plan.threads):
            if got != alone.sequences.tolist():
                values = (str(alone.sequences.tolist()), str(got))
                return Comparison.of(Difference("tokens", "sequences of a thread", *values))
    after = snapshot(vars(call.generation_config)) | {"json": _json(call.generation_config)}
    for path, how in changes(before, after).items():
        return Comparison.of(Difference("changed", "generation_config", "as before", f"{path}: {how}", path))
    if alone.crash and all(one.crash for one in preparations):
        return Comparison(not_applicable=f"the call raises: {alone.crash}"[:200])
    return Comparison()


def _held(runs: Runs, model: Any, call: Call) -> Flat:
    """What the model holds, and the assistant's under its own name; of types that keep state, not their modules'."""
    tell = configs_and_methods if keeps_state(runs.case.model) else without_hooks
    assistant = call.extras.get("assistant_model")
    drafts = {} if assistant is None else tell(assistant)
    return tell(model) | {f"assistant {path}": leaf for path, leaf in drafts.items()}


def _json(config: Any) -> str:
    try:
        return str(config.to_json_string())
    except TypeError as error:  # ids that are tensors cannot be written
        return type(error).__name__
