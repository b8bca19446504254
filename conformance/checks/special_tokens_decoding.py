"""Ids in any form, in every mode of decoding; and a model whose parameters have no values."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.special_tokens import SPECIAL
from conformance.compare import crash_difference
from conformance.outcome import Crash, Outcome
from conformance.plans.special_tokens import plainly
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.special_tokens.calls import (
    call_with,
    misplaced_model,
    model_without_pad,
    spoken_call,
    spoken_ids,
)
from conformance.special_tokens.comparing import same_sequences
from conformance.special_tokens.probes import MetaDefaults, ModuleCalls
from conformance.verdicts import Comparison, Difference


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
    result = same_sequences(got, plain)
    return result if result.differences else _padding_of_beams(runs, got)


def _with_spoken_ids(runs: Runs) -> Outcome:
    def make() -> Outcome:
        ids = spoken_ids(runs)
        outcome = runs.run(spoken_call(runs), model=model_without_pad(runs))
        rows = range(0 if outcome.sequences is None else outcome.sequences.shape[0])
        met = any(set(outcome.tokens(row)) & set(ids["eos"].numbers) for row in rows)
        runs.events |= {"ids: end token met"} if met else set()
        return outcome

    return runs.once("spoken ids", make)


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


@check(SPECIAL, stands_on=["special-tokens-serve-every-mode"], script="special_defaults", bitwise=True)
@applies("the case verifies no draft", lambda runs: runs.case.plan.mode in ("lookup", "assisted"))
def assisted_survives_special_tokens_on_meta_defaults(runs: Runs) -> Comparison:
    """Where plain decoding works with `meta` as the default device, so do assisted decoding and prompt lookup.

    Inputs and model are on the CPU: the default device may reach nothing that is made without naming one.
    """
    base = _with_spoken_ids(runs)
    if base.crash:
        return Comparison(not_applicable="it does not run with the CPU as the default device either")
    plain_runs: list[Callable[[], Outcome]] = [
        lambda: runs.run(spoken_call(runs, "greedy"), model=model_without_pad(runs)),
        lambda: _run_on_meta_defaults(runs, "greedy"),
    ]
    plain, on_meta = (run() for run in plain_runs)
    if plain.crash or on_meta.crash or same_sequences(on_meta, plain).differences:
        return Comparison(not_applicable="plain decoding of this type does not survive it either")
    got = _run_on_meta_defaults(runs, runs.case.plan.mode)
    return crash_difference(got.crash, "plain decoding works so") if got.crash else same_sequences(got, base)


def _run_on_meta_defaults(runs: Runs, mode: str) -> Outcome:
    return runs.run(spoken_call(runs, mode), model=model_without_pad(runs), probes=[MetaDefaults()])


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
