"""Guidance: scores that two decodings make together, of which the second knows no prompt, or a negative one."""

from __future__ import annotations

from typing import Any

from conformance.checks.rollback import BELOW, ROLLBACK
from conformance.compare import compare_steps, compare_sum, crash_difference
from conformance.outcome import Outcome
from conformance.programs.beams import Search
from conformance.programs.guided import Guided, guided
from conformance.registry import Rule, applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison

RUNGS = (*BELOW, "forward-matches-generate", "forward-counts-from-the-cache")
GUARDS: tuple[tuple[str, Any], ...] = (
    ("generate does not choose the cache of this type", lambda runs: runs.has_default_cache),
    ("cached decoding of this type is another function by design", lambda runs: "not_incremental" not in runs.facts),
    ("this type's own preparation is part of what it decodes with", lambda runs: not runs.oracle.prepared),
    ("an encoder's prompt is none of the decoder's", lambda runs: not runs.scenario.encoder_decoder),
    ("the plan asks for no guidance", lambda runs: getattr(runs.case.plan, "guidance", 1.0) != 1.0),
)


def guides(rule: Rule) -> Rule:
    """The guards of both checks."""
    for reason, when in GUARDS:
        rule = applies(reason, when)(rule)
    return rule


@check(ROLLBACK, stands_on=RUNGS)
@guides
@applies("the same call raises without guidance", lambda runs: _unguided(guided(runs)).crash is None)
def guidance_is_of_each_row_alone(runs: Runs) -> Comparison:
    """Guided scores are u + scale · (c - u), of log-probabilities c of a row and u of what it says without its prompt.

    The latter goes on from the last token of the prompt, or from the row's own negative prompt, whatever the other
    rows are given, and however many sequences are sampled of each.
    """
    own = guided(runs)
    outcome = own.run(**own.sampled())
    if outcome.crash:
        return crash_difference(outcome.crash, "the same call works without guidance")
    result = Comparison()
    for index in range(len(runs.rows) * own.copies):
        row, tokens = index // own.copies, outcome.tokens(index)
        expected = own.scores(row, [step[index] for step in outcome.logits], tokens)
        got = [step[index].double() for step in outcome.scores]
        where = f"row {row} " if len(runs.rows) > 1 else ""
        if not result.differences:
            result += compare_steps("scores", got, expected, own.noise(row, tokens), where, own.bound)
    return result


@check(ROLLBACK, stands_on=(*RUNGS, "guidance-is-of-each-row-alone", "beams-score-their-sequences"))
@guides
@applies("the plan has no beams", lambda runs: getattr(runs.case.plan, "beams", 1) > 1)
@applies("the same search raises without guidance", lambda runs: _plain_search(guided(runs)).crash is None)
def guided_beams_score_their_sequences(runs: Runs) -> Comparison:
    """Each sequence of a guided beam search has the score that guidance gives its tokens: both decodings go on with it.

    What a search keeps of a row is moved with the row: the second decoding's cache, its tokens and its prompt as well.
    """
    own, search = guided(runs), Search.of(runs)
    outcome = own.run(**_asked(search))
    if outcome.crash:
        return crash_difference(outcome.crash, "the same search works without guidance")
    told = getattr(outcome.returned, "sequences_scores", None)
    if told is None:
        return Comparison(not_applicable="the subject returns no scores of beams")
    result, each_row = Comparison(), len(told) // len(runs.rows)
    for index, score in enumerate(told.tolist()):
        row, tokens = index // each_row, outcome.tokens(index)
        logits = list(runs.oracle.logits(row, tokens))
        steps = zip(own.scores(row, logits, tokens), tokens, strict=True)
        each, total = [float(step[token]) for step, token in steps], score * len(tokens) ** search.how.length_penalty
        where = f"beam {index % each_row}"
        if not result.differences:
            noise = own.noise(row, tokens)
            result += compare_sum("sequences_scores", total, each, logits, noise, where, own.bound)
    return result


def _asked(search: Search) -> dict[str, Any]:
    """The plan's search, the best beams kept and no sequence ended before the limit."""
    return {**search.how.replace(eos=(), sampled=False).asked_for(search.beams), "eos_token_id": None}


def _unguided(own: Guided) -> Outcome:
    return own.plain(**own.sampled())


def _plain_search(own: Guided) -> Outcome:
    return own.plain(**_asked(Search.of(own.runs)))
