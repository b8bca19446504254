"""A run with parts of a plan against plain decoding under its own tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import torch

from conformance import events, upstream
from conformance.compare import Noise, compare_steps, crash_difference
from conformance.drafting.modes import modes
from conformance.endings import until_end
from conformance.outcome import Crash, Outcome
from conformance.rows import OTHER_TOKENS, compare_decoded, feeds_other_tokens, forced_crash, processed_by
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

SEVERAL_AT_ONCE = frozenset({"turns", "chunk", "draft"})  # parts that feed several tokens onto a filled cache
# A tournament multiplies each chance by one less what others have together: where that is next to nothing, most of its
# digits are rounding. It is so for tokens that are far less likely than this says only.
DEPTH_OF_TOURNAMENTS = 10.0
UNSOUND = "cached-matches-recomputed"  # the rung to blame where plain decoding is not what recomputing it gives


def works(runs: Runs, outcome: Outcome, beside: str) -> Comparison | None:
    """What to say of a run that raised: refused as documented, or a difference; None where it did not."""
    if any(runs.alone[row].crash for row in modes(runs).rows):
        return Comparison(not_applicable="plain decoding raises")
    if "turns" in modes(runs).everything and not modes(runs).made:
        return Comparison(not_applicable="the call that makes the cache raises")
    return None if outcome.crash is None else raised(runs, outcome.crash, beside)


def raised(runs: Runs, crash: Crash, beside: str) -> Comparison:
    """What to say of a crash: refused as documented, or a difference."""
    name = upstream.refusal(crash.type, crash.message)
    if name is None:
        return crash_difference(crash, beside)
    if name in upstream.FOR_WANT_OF_A_CACHE and runs.alone[0].cache:
        return crash_difference(crash, f"{beside} and returns the cache that is said to be missing")
    runs.events.add(f"refused: {name}")
    return Comparison(not_applicable=f"refused as documented: {name}")


def matches_plain(runs: Runs, part: str) -> Comparison:
    """The run with the plan's parts up to `part`, row by row against plain decoding under its tokens."""
    own = modes(runs)
    parts = own.up_to(part)
    outcome = own.outcome(parts)
    result = works(runs, outcome, "plain decoding works")
    if result is None:
        runs.events |= _stops(runs, outcome, own.start(parts))
        result = _steps(runs, outcome, own.start(parts))
        for index, row in enumerate(own.rows):
            if not result.differences or result.blocked_by:
                result += _row(runs, outcome, parts, index, row)
    if result.differences and SEVERAL_AT_ONCE & set(parts) and feeds_other_tokens(runs):
        return Comparison(not_applicable=OTHER_TOKENS)
    return result


def _stops(runs: Runs, outcome: Outcome, start: int) -> set[str]:
    """How the rows stopped, where nothing but the settings says so."""
    own = modes(runs)
    assert outcome.sequences is not None
    new = zip(own.rows, outcome.sequences[:, start:].tolist(), strict=True)
    return set() if own.plan.stop_at else events.of_rows(runs.scenario, new)


def _steps(runs: Runs, outcome: Outcome, start: int) -> Comparison:
    """Every new token has its logits and scores, and decoding goes on until the last row has ended."""
    assert outcome.sequences is not None
    new = outcome.sequences[:, start:]
    for field in ("logits", "scores"):
        if len(getattr(outcome, field)) != new.shape[1]:
            got = f"{len(getattr(outcome, field))} steps"
            return Comparison.of(Difference("length", field, f"{new.shape[1]} steps, one a token", got))
    longest = max(len(until_end(row, modes(runs).ends)) for row in new.tolist())
    if new.shape[1] != longest:
        wanted = f"{longest} new tokens, the last an end token"
        return Comparison.of(Difference("length", "sequences", wanted, f"{new.shape[1]}"))
    return Comparison()


def _row(runs: Runs, outcome: Outcome, parts: Sequence[str], index: int, row: int) -> Comparison:
    own, start, settings = modes(runs), modes(runs).start(parts), runs.case.settings
    assert outcome.sequences is not None
    tokens = until_end(outcome.sequences[index, start:].tolist(), modes(runs).ends)
    where = f"row {row} " if len(own.rows) > 1 else ""
    if len(tokens) != settings.max_new_tokens and tokens[-1:] and tokens[-1] not in modes(runs).ends:
        wanted = f"{settings.max_new_tokens} tokens or an end token"
        return Comparison.of(Difference("length", "sequences", wanted, f"{len(tokens)} tokens", where))
    plain = runs.alone_under(row, tokens)
    if isinstance(plain, Crash):
        return forced_crash(plain, "the run under test works")
    expected = [step[0] for step in plain]

    def processed(logits: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        return processed_by(own.processors(parts), outcome, start, index, logits)

    def compared(steps: int) -> Comparison:
        kept = tokens[:steps]
        depth = DEPTH_OF_TOURNAMENTS if own.plan.watermark == "synthid" else inf
        found = compare_decoded(runs, outcome, index, row, kept, expected[:steps], processed, where, depth)
        return found + _possible(kept, processed(expected[:steps]), where) if settings.do_sample else found

    result = compared(len(tokens))
    sound = _sound_steps(runs, row, tokens, expected) if result.differences else len(tokens)
    if sound == len(tokens):
        return result
    before = compared(sound)
    return before if before.differences else replace(result, blocked_by=UNSOUND)


def _sound_steps(runs: Runs, row: int, tokens: Sequence[int], plain: Sequence[torch.Tensor]) -> int:
    """How many steps of plain decoding under these tokens are those of recomputing everything.

    The rung below has judged that for the tokens of plain decoding itself, but a run that is sampled, or that other
    processors steer, has others. Beyond that step plain decoding is no measure.
    """
    if "not_incremental" in runs.facts or runs.alone[row].tokens(0)[: len(tokens)] == list(tokens):
        return len(tokens)
    exact, noise = runs.oracle.logits(row, tokens), runs.noise(row, tokens)
    for step, (got, wanted) in enumerate(zip(plain, exact, strict=True)):
        here = partial(_at, noise, step)
        if compare_steps("logits", [got], [wanted], here, "", runs.bound).differences:
            return step
    return len(tokens)


def _at(noise: Noise, step: int, _: int) -> float:
    return noise(step)


def _possible(tokens: Sequence[int], scores: Sequence[torch.Tensor], where: str) -> Comparison:
    """A sampled token has a chance of its own."""
    for step, (token, vector) in enumerate(zip(tokens, scores, strict=True)):
        if not float(vector[token]) > float("-inf"):
            wanted = "a token with a score above minus infinity"
            return Comparison.of(Difference("tokens", "sequences", wanted, str(token), f"{where}step {step}"))
    return Comparison()
