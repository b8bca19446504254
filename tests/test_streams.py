"""What a streamer has to receive."""

import pytest
import torch

from conformance.outcome import Outcome
from conformance.streams import streamed_step_by_step

PROMPT, FIRST, SECOND = torch.tensor([[1, 2]]), torch.tensor([3]), torch.tensor([4])


def outcome(*streamed, ends=1, after_the_end=0):
    sequences = torch.tensor([[1, 2, 3, 4]])
    return Outcome(
        sequences=sequences,
        prompt_length=2,
        streamed=list(streamed),
        stream_ends=ends,
        streamed_after_end=after_the_end,
    )


def test_the_prompt_then_each_step_once_then_the_end():
    assert not streamed_step_by_step(outcome(PROMPT, FIRST, SECOND)).differences


@pytest.mark.parametrize(
    ("wrong", "kind", "field"),
    [
        (outcome(PROMPT, FIRST), "length", "streamed"),
        (outcome(PROMPT, FIRST, SECOND, SECOND), "length", "streamed"),
        (outcome(PROMPT, SECOND, FIRST), "tokens", "streamed"),
        (outcome(FIRST, SECOND, PROMPT), "tokens", "streamed"),
        (outcome(PROMPT, FIRST, SECOND, ends=0), "length", "stream end"),
        (outcome(PROMPT, FIRST, SECOND, ends=2), "length", "stream end"),
        (outcome(PROMPT, FIRST, SECOND, after_the_end=1), "length", "streamed after the end"),
    ],
    ids=["one missing", "one twice", "order", "prompt last", "no end", "two ends", "after the end"],
)
def test_anything_else_is_told(wrong, kind, field):
    found = streamed_step_by_step(wrong).differences[0]
    assert (found.kind, found.field) == (kind, field)
