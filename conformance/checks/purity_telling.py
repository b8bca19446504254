"""The same request told in other ways, and what a caller keeps of a call."""

from __future__ import annotations

from conformance.checks.purity import PURITY, afresh, other_call, plainly_told, plan_of, watched
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.outcome import Crash
from conformance.registry import applies, check
from conformance.rows import compare_lengths, compare_row, forced_crash
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(
    PURITY,
    stands_on=["cached-matches-recomputed", "padded-row-matches-alone", "static-matches-dynamic"],
    script="told_otherwise",
)
@applies("the request is told plainly", lambda runs: plan_of(runs).otherwise and not plan_of(runs).by_itself)
def told_otherwise_is_the_same(runs: Runs) -> Comparison:
    """A request told in another way is the same request: by keywords, by the model's config, with what is derived.

    By the model's own generation config, with the encoder's output or that of a tower for images, with the positions
    that would be counted, without a mask where nothing is padded. Bitwise where only settings are told otherwise; else
    within the bound, compared under the tokens that it gives.
    """
    plain, got = plainly_told(runs), afresh(runs)
    if plain.crash:
        return Comparison(not_applicable="told plainly it raises, too")
    if got.crash:
        return crash_difference(got.crash, "the same request told plainly works")
    exactly = compare_exactly(got.fields(), plain.fields(), unnumbered)
    if not exactly.differences or not _computed_otherwise(runs):
        return exactly
    result = compare_lengths(runs, got)
    for row in runs.rows:
        for index in runs.sequences(row):
            alone = runs.alone_under(row, runs.kept(row, got.tokens(index)))
            if isinstance(alone, Crash):
                return result + forced_crash(alone, "the batch works")
            result += compare_row(runs, got, index, row, None, [step[0] for step in alone])
    return result


def _computed_otherwise(runs: Runs) -> bool:
    """Whether something else than settings is told, so that kernels may be given other arguments."""
    plan = plan_of(runs)
    return plan.encoded or plan.seen or plan.unmasked or plan.positions


@check(PURITY, script="returned", bitwise=True)
@applies("a model that decodes by itself returns things of its own", lambda runs: not plan_of(runs).by_itself)
@applies("the first call raises", lambda runs: watched(runs).crash is None)
def returned_stays_as_it_was(runs: Runs) -> Comparison:
    """What a call returned is the caller's: another call on the same model touches nothing of it.

    Sequences, scores, states and the cache that came back are bitwise as they were before the other call.
    """
    other, touched = other_call(runs)
    for path, how in touched.items():
        name = unnumbered(path)
        return Comparison.of(Difference("changed", name, "as it was returned", f"{path}: {how}", "after another call"))
    return Comparison(not_applicable=f"the other call raises: {other.crash}"[:200]) if other.crash else Comparison()
