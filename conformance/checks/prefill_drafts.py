"""Drafts change nothing, and are as they were asked for."""

from __future__ import annotations

from conformance.checks.prefill import DRAFTED, PREFILL, UNDRAFTED
from conformance.compare import scale_of
from conformance.drafting.comparing import matches_plain
from conformance.drafting.counting import count_drafts
from conformance.drafting.guards import drafts_with, everything, has, runs_at_all, script_keeps_its_place, steered_alike
from conformance.drafting.modes import modes
from conformance.drafting.rounds import rounds
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


def drafted_matches_plain(runs: Runs) -> Comparison:
    """The rule of all kinds of drafting."""
    result = matches_plain(runs, "draft")
    count_drafts(runs, modes(runs).outcome(modes(runs).everything))
    return result


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies(
    "no assistant model drafts, and no layers ahead",
    drafts_with("same", "noisy", "shallow", "other", "scripted", "block", "translated", "ahead", "sharing"),
)
def assisted_matches_plain(runs: Runs) -> Comparison:
    """What an assistant model or layers ahead draft changes nothing: sequence, logits and scores are plain decoding's.

    However good or bad the drafts are, wherever an end token, a custom stop condition or the limit falls inside one.
    For sampling, logits and scores are compared under the tokens that came.
    """
    return drafted_matches_plain(runs)


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies("nothing is looked up", drafts_with("lookup"))
def prompt_lookup_matches_plain(runs: Runs) -> Comparison:
    """Drafts that are looked up in the prompt change nothing: the outcome is that of plain decoding."""
    return drafted_matches_plain(runs)


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies(
    "the first layers of an encoder-decoder model are not exited early", lambda runs: not runs.scenario.encoder_decoder
)
@applies("the model's own first layers do not draft", drafts_with("early_exit"))
def early_exit_matches_plain(runs: Runs) -> Comparison:
    """Drafts of the model's own first layers change nothing: the outcome is that of plain decoding."""
    return drafted_matches_plain(runs)


@check(PREFILL, script="as_long")
@applies("a draft that is translated may have another length", lambda runs: runs.case.plan.drafter != "translated")
@applies(
    "the draft may grow or shrink",
    lambda runs: runs.case.plan.schedule == "constant" or runs.case.plan.drafter == "lookup",
)
@applies("nothing is drafted", has("draft"))
@applies("the run raises", runs_at_all)
def drafts_are_as_long_as_asked(runs: Runs) -> Comparison:
    """No draft holds more tokens than the call asks for, or where it does not ask, the assistant's own config."""
    own, outcome = modes(runs), everything(runs)
    assert outcome.sequences is not None
    drafted = rounds(outcome.extra["preparations"], own.start(own.everything), outcome.sequences[0].tolist())
    longest = max((len(r.draft) for r in drafted), default=0)
    if longest > runs.case.plan.most:
        asked = "the call" if runs.case.plan.argument else "the config"
        return Comparison.of(
            Difference("length", "draft", f"at most {runs.case.plan.most}, as {asked} says", f"{longest} tokens")
        )
    return Comparison()


@check(PREFILL, stands_on=[*UNDRAFTED, *DRAFTED, "multimodal-inputs-are-used-once"], script="believed")
@applies("an assistant's scores are steered otherwise, or sampled from", steered_alike)
@applies(
    "the assistant has not seen the whole prompt", lambda runs: not {"turns", "embeds"} & set(modes(runs).everything)
)
@applies("a script loses its place in the cache", script_keeps_its_place)
@applies("the assistant is another model", drafts_with("same", "scripted"))
@applies("the run raises", runs_at_all)
def same_model_is_believed(runs: Runs) -> Comparison:
    """An assistant that is the model itself is believed as long as it says what the model says.

    It does so after every round if its own state is rolled back to the accepted prefix: one that is not costs nothing
    but the drafts. A scripted assistant says another token where its script has it so.
    """
    own, outcome, result = modes(runs), everything(runs), Comparison()
    assert outcome.sequences is not None
    start = own.start(own.everything)
    for r in rounds(outcome.extra["preparations"], start, outcome.sequences[0].tolist()):
        right = says(runs, r.length, len(r.draft))
        if r.accepted < min(right, len(r.tokens)):
            scores = outcome.scores[r.length + r.accepted - start][0]
            gap = float(scores.max() - scores[r.draft[r.accepted]])
            where = f"position {r.length + r.accepted}"
            if gap <= 2 * runs.bound * scale_of([scores]):
                result.ties.append(f"{where}: the drafted token is {gap:.1e} below")
            else:
                wanted = f"{right} of {len(r.draft)} drafted tokens accepted"
                return Comparison.of(Difference("tokens", "draft", wanted, f"{r.accepted}", where))
    return result


def says(runs: Runs, length: int, drafted: int) -> int:
    """How many tokens of a draft at this length the assistant says as the model does."""
    script = runs.case.plan.script if runs.case.plan.drafter == "scripted" else (True,)
    return next((n for n in range(drafted) if not script[(length + n) % len(script)]), drafted)
