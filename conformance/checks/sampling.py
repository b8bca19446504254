"""Sampling with drafts draws from the distribution of plain sampling. In the nightly profile: a case is many runs."""

from __future__ import annotations

from dataclasses import replace

from conformance.drafting.bets import bet_won
from conformance.drafting.comparing import matches_plain, raised
from conformance.drafting.counting import count_rounds
from conformance.drafting.draws import Draws, draws
from conformance.drafting.frequencies import Judged, frequency_off
from conformance.registry import applies, check, family
from conformance.rows import OTHER_TOKENS, feeds_other_tokens
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

SAMPLING = family(
    "sampling",
    nightly=True,
    floors={
        "drafted": 0.4,
        "draft: none accepted": 0.3,
        "draft: some accepted": 0.1,
        "draft: all accepted": 0.3,
    },
    reachable=("drafter: noisy", "drafter: other", "drafter: shallow", "drafter: same", "drafter: lookup"),
)


@check(SAMPLING, stands_on=["cached-matches-recomputed", "several-tokens-match-one-by-one"])
@applies("nothing is sampled", lambda runs: runs.case.settings.do_sample)
def sampling_assisted_keeps_the_distribution(runs: Runs) -> Comparison:
    """Sampled with an assistant or a lookup, tokens come from exactly the distribution that plain sampling draws from.

    The same call is run many times with other seeds. What the oracle gives after the tokens that each run drew before
    is what its next one must come from: off by more than chance can explain is a difference, in how often single
    tokens came, and in how likely all of them are together beside what wrong ways to accept drafts would give.
    """
    if runs.alone[0].crash:
        return Comparison(not_applicable="plain decoding raises")
    own = draws(runs)
    if own.outcomes[-1].crash:
        return raised(runs, own.outcomes[-1].crash, "plain decoding works")
    for outcome in own.outcomes:
        count_rounds(runs, outcome, own.start)
    result = _lengths(runs, own)
    return _unless_explained(runs, result if result.differences else _distributions(own))


def _lengths(runs: Runs, own: Draws) -> Comparison:
    """Every run goes on until its row has ended."""
    for number, tokens in enumerate(own.tokens):
        ending = runs.scenario.ending(0, tokens)
        if ending is None or ending.step + 1 != len(tokens):
            wanted = "tokens up to the row's end" if ending is None else f"{ending.step + 1} tokens"
            return Comparison.of(Difference("length", "sequences", wanted, f"{len(tokens)} tokens", f"run {number}"))
    return Comparison()


def _distributions(own: Draws) -> Comparison:
    """A difference that needs logits which rounding moves is a tie."""
    found = _departure(own, [[True] * len(tokens) for tokens in own.tokens])
    if found is None:
        return Comparison()
    sure = found if all(map(all, own.steady)) else _departure(own, own.steady)
    return Comparison.of(sure) if sure else Comparison(ties=["the model chooses between equals after some prefixes"])


def _departure(own: Draws, judged: Judged) -> Difference | None:
    """A frequency that is off, or a bet that is won."""
    off = frequency_off(own.tokens, own.chances, judged)
    return off or bet_won(own.tokens, own.chances, own.drafted, judged)


def _unless_explained(runs: Runs, result: Comparison) -> Comparison:
    """A difference is not one of sampling where the drafted run has other logits, or is of another length, already."""
    if not result.differences:
        return result
    if feeds_other_tokens(runs):
        return Comparison(not_applicable=OTHER_TOKENS)
    drafted = Runs(runs.case.replace(family="prefill", plan=runs.case.plan.drafting), runs.subject)
    decoded = matches_plain(drafted, "draft")
    if decoded.differences:
        rung = "prompt-lookup-matches-plain" if runs.case.plan.drafter == "lookup" else "assisted-matches-plain"
        return replace(result, blocked_by=decoded.blocked_by or rung)
    return result
