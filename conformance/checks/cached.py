"""The lower rungs of the ladder: a cache must not change what a model says.

row alone, recomputed (oracle) → row alone, cached → several tokens at once → padded batch → static cache.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance import events, upstream
from conformance.compare import compare_exactly, compare_steps, crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.registry import applies, check, family
from conformance.rows import compare_lengths, compare_row, forced_crash, group_sizes
from conformance.runs import Runs
from conformance.stopping_settings import RowStops
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference
from conformance.verdicts import Comparison

CACHED = family(
    "cached",
    floors={
        "rows: several": 0.2,
        "rows: padded": 0.1,
        "stop: length": 0.1,
        "stop: eos first": 0.05,
        "stop: eos middle": 0.1,
        "stop: eos last": 0.04,
        "stop: eos given, never met": 0.05,
        "stop: criterion": 0.05,
        "stop: rows differ": 0.1,
        "group: several tokens": 0.2,
    },
    reachable=(
        "attention: sdpa",
        "images: in the prompt",
        "group: crosses the window",
        "static: with room",
        "sampling: on",
        "dtype: bfloat16",
        "beams: several",
        "beams: sampled",
        "scores: steered",
        *events.TOLD,
    ),
)


@check(CACHED, script="cached")
def cached_matches_recomputed(runs: Runs) -> Comparison:
    """Each row alone, decoded with the cache, gives what recomputing everything gives.

    Sequences must follow the arg max of the recomputed scores and end where the rule says; logits and scores
    of every step, and of the plan's continuation fed one token at a time, must agree within the bound.
    """
    crash = next((outcome.crash for outcome in runs.alone if outcome.crash), None)
    if crash is not None:
        for row in runs.rows:
            runs.oracle.logits(row, [0])  # only where recomputing works is a crash a difference
        return crash_difference(crash, "recomputing the row works")
    if "not_incremental" in runs.facts:
        return Comparison(not_applicable="cached decoding of this type is another function by design")
    result = Comparison()
    for row, outcome in zip(runs.rows, runs.alone, strict=True):
        result += compare_lengths(runs, outcome, [row])
        for index in range(runs.case.settings.copies):
            tokens = runs.kept(row, outcome.tokens(index))
            result += compare_row(runs, outcome, index, row, [row], list(runs.oracle.logits(row, tokens)))
    result += _continuation_against_oracle(runs)
    return result


def _continuation_against_oracle(runs: Runs) -> Comparison:
    tokens = list(getattr(runs.case.plan, "continuation", ()))
    if not tokens:
        return Comparison()
    one_by_one = runs.forced([0], torch.tensor([tokens]), [1] * len(tokens))
    if isinstance(one_by_one, Crash):
        return forced_crash(one_by_one, "recomputing the row works")
    expected = list(runs.oracle.logits(0, [*tokens, 0]))
    got = [step[0] for step in one_by_one]
    return _under_forced_tokens(runs, got, expected, 0, [*tokens, 0])


def _under_forced_tokens(
    runs: Runs, got: list[torch.Tensor], expected: list[torch.Tensor], row: int, tokens: list[int]
) -> Comparison:
    return compare_steps("logits", got, expected, runs.noise(row, tokens), "continuation ", runs.bound)


@check(CACHED, stands_on=["cached-matches-recomputed"], script="groups")
@applies("the plan feeds no two tokens at once", lambda runs: any(size > 1 for size in group_sizes(runs)))
def several_tokens_match_one_by_one(runs: Runs) -> Comparison:
    """Tokens fed several at a time onto a filled cache give the logits of feeding them one by one.

    This is what verifying a draft, continuing a conversation and chunked prefill rest on.
    """
    tokens, sizes = list(runs.case.plan.continuation), group_sizes(runs)
    grouped = runs.forced([0], torch.tensor([tokens]), sizes)
    one_by_one = runs.forced([0], torch.tensor([tokens]), [1] * len(tokens))
    if isinstance(one_by_one, Crash):
        runs.oracle.logits(0, [*tokens, 0])
        return forced_crash(one_by_one, "recomputing the row works")
    if isinstance(grouped, Crash):
        return forced_crash(grouped, "one token at a time works")
    return _under_forced_tokens(runs, [s[0] for s in grouped], [s[0] for s in one_by_one], 0, [*tokens, 0])


@check(CACHED, stands_on=["cached-matches-recomputed"], script="padded")
@applies(
    "the type documents that it ignores padding",
    lambda runs: not (runs.case.prompt.padded and "ignores_padding" in runs.facts),
)
@applies("the prompt has one row", lambda runs: len(runs.rows) > 1)
def padded_row_matches_alone(runs: Runs) -> Comparison:
    """A row of a batch, padded on the left or not, decodes as it does alone.

    Logits are compared under the batch's own tokens, so that one flip does not hide what follows; after its
    end a row holds padding only, and decoding goes on until the last row has ended.
    """
    if any(outcome.crash for outcome in runs.alone):
        return Comparison(not_applicable="a row alone raises already")
    if runs.batch.crash:
        return crash_difference(runs.batch.crash, "each row alone works")
    result = compare_lengths(runs, runs.batch)
    for row in runs.rows:
        for index in runs.sequences(row):
            alone = runs.alone_under(row, runs.kept(row, runs.batch.tokens(index)))
            if isinstance(alone, Crash):
                return result + forced_crash(alone, "the batch works")
            result += compare_row(runs, runs.batch, index, row, None, [step[0] for step in alone])
    return result


def _with_room(runs: Runs) -> Any:
    """The case's model, after a call that asked for a longer static cache where the plan has it so.

    It ends at its first token: no step goes beyond what the model has positions for.
    """
    model, room = runs.scenario.model(), getattr(runs.case.plan, "room", 0)
    if room:
        asked = {"max_new_tokens": runs.case.settings.max_new_tokens + room, **upstream.static_cache_settings()}
        at_once = RowStops([0] * len(runs.rows), runs.scenario.width())
        runs.run(runs.call(**asked).replace(criteria=(at_once,)), model=model)
    return model


@check(CACHED, stands_on=["cached-matches-recomputed", "padded-row-matches-alone"], script="static")
@applies("generate does not choose the cache of this type", lambda runs: runs.has_default_cache)
def static_matches_dynamic(runs: Runs) -> Comparison:
    """A static cache gives what the dynamic cache gives, logits compared under the static run's tokens.

    Types that do not declare support are tested too: `generate` takes a static cache for every type whose
    cache it makes, so it has to work or to be refused clearly.
    """
    if runs.batch.crash:
        return Comparison(not_applicable="the dynamic cache raises: the rungs below tell of it")
    static = runs.run(runs.call(**upstream.static_cache_settings()), model=_with_room(runs))
    if static.crash:
        return crash_difference(static.crash, "the dynamic cache works")
    result = compare_lengths(runs, static)
    everyone = [(row, index) for row in runs.rows for index in runs.sequences(row)]
    dynamic = runs.batch_under([static.tokens(index) for _, index in everyone])
    if isinstance(dynamic, Crash):
        return result + forced_crash(dynamic, "the static cache works")
    for row, index in everyone:
        kept = runs.kept(row, static.tokens(index))
        result += compare_row(runs, static, index, row, None, [step[index] for step in dynamic[: len(kept)]])
    return result


@check(
    CACHED,
    stands_on=["cached-matches-recomputed", "padded-row-matches-alone"],
    script="reference",
    compares="pair",
    bitwise=True,
)
def reference_matches_installed(runs: Runs) -> Comparison:
    """The reference loop and the installed `generate` give bitwise the same outcome, field by field.

    Both run the same operations on the same shapes: sequences, scores, logits, attentions, hidden states,
    returned cache and generator state are compared without a tolerance. Another subject of a user's own takes
    the reference's place.
    """
    own = runs.subject.name == Installed.name
    installed = runs.batch if own else runs.run(runs.call(), subject=Installed())
    other = runs.run(runs.call(), subject=Reference()) if own else runs.batch
    if installed.crash and other.crash:
        return Comparison(not_applicable="neither loop works: the rungs below tell of it")
    if installed.crash:
        return crash_difference(installed.crash, "the reference loop works")
    if other.crash:
        return crash_difference(other.crash, "the installed loop works")
    return compare_exactly(installed.fields(), other.fields(), unnumbered)
