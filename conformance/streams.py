"""What a streamer has to receive: the prompt, every new token once and in order, and `end` once, after all of them."""

from __future__ import annotations

from conformance.outcome import Outcome
from conformance.verdicts import Comparison, Difference


def ended_once(outcome: Outcome) -> Comparison:
    """`end` is called once, and nothing is put after it."""
    if outcome.stream_ends != 1:
        return Comparison.of(Difference("length", "stream end", "end() once", f"{outcome.stream_ends} times"))
    if outcome.streamed_after_end:
        late = f"{outcome.streamed_after_end} calls"
        return Comparison.of(Difference("length", "streamed after the end", "no call of put", late))
    return Comparison()


def streamed_step_by_step(outcome: Outcome) -> Comparison:
    """The prompt in one call, then the tokens of all rows, one step a call, then the end."""
    ended = ended_once(outcome)
    if ended.differences:
        return ended
    assert outcome.sequences is not None
    start = outcome.prompt_length
    expected = [outcome.sequences[:, :start], *outcome.sequences[:, start:].unbind(dim=1)]
    if len(outcome.streamed) != len(expected):
        wanted, got = f"the prompt and {len(expected) - 1} tokens", f"{len(outcome.streamed)} calls of put"
        return Comparison.of(Difference("length", "streamed", wanted, got))
    for call, (mine, theirs) in enumerate(zip(outcome.streamed, expected, strict=True)):
        if mine.tolist() != theirs.tolist():
            values = (str(theirs.tolist()), str(mine.tolist()))
            return Comparison.of(Difference("tokens", "streamed", *values, where=f"call {call}"))
    return Comparison()
