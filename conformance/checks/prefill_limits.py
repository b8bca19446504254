"""A limit of the caller's own that is more than the settings say."""

from __future__ import annotations

from conformance import upstream
from conformance.checks.prefill import BELOW, PREFILL
from conformance.compare import crash_difference
from conformance.drafting.comparing import matches_plain
from conformance.drafting.guards import has
from conformance.drafting.modes import modes
from conformance.outcome import Outcome
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.verdicts import Comparison, Difference

PARTS = ("limit",)


@check(PREFILL, stands_on=BELOW, script="limited")
@applies("the settings tell the limit", has("limit"))
def callers_limit_counts(runs: Runs) -> Comparison:
    """A criterion for lengths of the caller's own counts where the settings say less, whatever cache is asked for.

    The release takes it in the place of the one that it makes itself, and says so. Decoding goes on up to it, by beams
    as well, and gives what plain decoding gives; or it is refused clearly.
    """
    result = matches_plain(runs, "limit")
    own_search = runs.subject.name == Installed.name  # a subject's loop is no search
    if result.differences or result.not_applicable or runs.case.plan.beams < 2 or not own_search:
        return result
    return result + _by_beams(runs)


def _by_beams(runs: Runs) -> Comparison:
    """How long the sequences of a search are; what they are is told of a search with any limit."""
    own, outcome = modes(runs), _searched(runs, PARTS)
    if outcome.crash and _searched(runs, ()).crash:
        return Comparison()  # with a limit in the settings a search of this type raises too
    if outcome.crash:
        refused = upstream.refusal(outcome.crash.type, outcome.crash.message)
        return Comparison() if refused else crash_difference(outcome.crash, "told by the settings the limit works")
    assert outcome.sequences is not None
    got = outcome.sequences.shape[1] - own.start(PARTS)
    wanted = runs.case.settings.max_new_tokens
    if got == wanted:
        return Comparison()
    return Comparison.of(Difference("length", "sequences", f"{wanted} new tokens", f"{got}", "beam search"))


def _searched(runs: Runs, parts: tuple[str, ...]) -> Outcome:
    """A search without end tokens: its length is the limit's."""
    own = modes(runs)
    asked = {"num_beams": runs.case.plan.beams, "do_sample": False, "eos_token_id": None, "output_attentions": False}
    config = runs.scenario.generation_config(**{**own.config(parts), **asked})
    return runs.once(("searched", *parts), lambda: own.run(parts, generation_config=config, mechanism="decode"))
