"""What a streamer receives."""

from __future__ import annotations

import torch

from conformance.checks.purity import PURITY, afresh, cannot_be_had, plan_of, watched
from conformance.compare import crash_difference
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PURITY, script="streamer", bitwise=True)
@guarded(cannot_be_had)
@applies("a model that decodes by itself streams in a way of its own", lambda runs: not plan_of(runs).by_itself)
@applies("the call raises without a streamer too", lambda runs: afresh(runs).crash is None)
def streamer_sees_the_sequence(runs: Runs) -> Comparison:
    """A streamer receives the prompt, then every step's tokens once and in order, then `end` once."""
    outcome = watched(runs)
    if outcome.crash:
        return crash_difference(outcome.crash, "the call without a streamer works")
    if outcome.stream_ends != 1:
        return Comparison.of(Difference("length", "stream end", "end() once", f"{outcome.stream_ends} times"))
    assert outcome.sequences is not None
    return _compare_stream(outcome.streamed, outcome.sequences, outcome.prompt_length)


def _compare_stream(streamed: list[torch.Tensor], sequences: torch.Tensor, prompt_length: int) -> Comparison:
    expected = [sequences[:, :prompt_length], *sequences[:, prompt_length:].unbind(dim=1)]
    if len(streamed) != len(expected):
        wanted = f"the prompt and {len(expected) - 1} tokens"
        return Comparison.of(Difference("length", "streamed", wanted, f"{len(streamed)} calls of put"))
    for call, (got, wanted_tokens) in enumerate(zip(streamed, expected, strict=True)):
        if got.tolist() != wanted_tokens.tolist():
            values = (str(wanted_tokens.tolist()), str(got.tolist()))
            return Comparison.of(Difference("tokens", "streamed", *values, where=f"call {call}"))
    return Comparison()
