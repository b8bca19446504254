"""The hooks of a caller's count their calls, depend on them, and raise when they are told to."""

import pytest
import torch

from conformance.simulation.hooks import CountingCriterion, HookRaised, RaisingStreamer, StatefulProcessor

IDS, SCORES = torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 20)
HOOKS = {
    "processor": (StatefulProcessor, lambda hook: hook(IDS, SCORES)),
    "criterion": (CountingCriterion, lambda hook: hook(IDS, None)),
    "streamer": (RaisingStreamer, lambda hook: hook.put(IDS)),
}


@pytest.mark.parametrize(("kind", "call"), HOOKS.values(), ids=HOOKS)
def test_raises_in_the_call_that_it_is_told_and_in_no_other(kind, call):
    hook = kind(raises_at=2)
    call(hook)
    with pytest.raises(HookRaised, match="told to raise in call 2"):
        call(hook)
    call(hook)
    assert hook.calls.count == 3


def test_the_criterion_stops_every_row_from_its_call_on():
    criterion = CountingCriterion(stop_after=2)
    assert [criterion(IDS, None).tolist() for _ in range(3)] == [[False, False], [True, True], [True, True]]


def test_the_processor_does_another_thing_in_each_call_and_leaves_what_it_is_given():
    processor = StatefulProcessor()
    first, second = processor(IDS, SCORES), processor(IDS, SCORES)
    assert not torch.equal(first, second)
    assert not SCORES.any()
