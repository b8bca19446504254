"""What a decoding starts with, where only the generation config tells it."""

from __future__ import annotations

from conformance.checks.special_tokens import SPECIAL
from conformance.compare import crash_difference
from conformance.outcome import Outcome
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.special_tokens.comparing import same_sequences
from conformance.special_tokens.starts import left_out, model_without_starts, passed, starting
from conformance.verdicts import Comparison, Difference


@check(SPECIAL, script="special_starts", bitwise=True)
@applies("the prompt holds images", lambda runs: not runs.case.prompt.images)
def special_tokens_start_a_decoding(runs: Runs) -> Comparison:
    """Without a prompt a decoding starts with bos; an encoder-decoder model's decoder with its start token, else bos.

    In any form they give what the same tokens give when they are passed as ids. Without one it is refused by name.
    """
    tokens = starting(runs)[1]
    runs.events |= {"start: no token" if not tokens else "start: bos"}
    runs.events |= {"start: a token for each row"} if len(set(tokens)) > 1 else set()
    if not tokens:
        return _refused(runs.run(left_out(runs), model=model_without_starts(runs)))
    expected = runs.run(passed(runs), model=model_without_starts(runs))
    if expected.crash:
        return Comparison(not_applicable="it does not run with these tokens passed as ids")
    got = runs.run(left_out(runs), model=model_without_starts(runs))
    return crash_difference(got.crash, "passed as ids they work") if got.crash else same_sequences(got, expected)


def _refused(outcome: Outcome) -> Comparison:
    wanted = "an error that names bos_token_id"
    if outcome.crash is None:
        return Comparison.of(Difference("missing", "refusal", wanted, "tokens", "silent"))
    if "bos_token_id" not in outcome.crash.message:
        return Comparison.of(Difference("changed", "refusal", wanted, str(outcome.crash), "vague"))
    return Comparison()
