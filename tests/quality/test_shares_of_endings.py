"""How rows end, over many draws: every way often enough."""

from collections import Counter

import pytest
from hypothesis import given, seed

from conformance.events import TOLD
from conformance.outcome import Outcome
from conformance.profiles import exploring
from conformance.runs import Runs
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

pytestmark = pytest.mark.quality
ARCHITECTURES = ("llama", "gpt2", "t5", "mistral")
DRAWS = 500  # of each
LEAST = {
    "stop: eos first": 0.05,
    "stop: eos middle": 0.25,
    "stop: eos last": 0.05,
    "stop: length": 0.1,
    "stop: criterion": 0.05,
    "stop: eos given, never met": 0.1,
    **dict.fromkeys(TOLD, 0.003),  # each is told at all; the rarest is a limit that nobody names
}


def ways(architecture):
    """Events of how drawn cases end, and those of batches apart."""
    found, batches = Counter(), Counter()

    @seed(7)
    @exploring(DRAWS)
    @given(cases("cached", architecture))
    def draw(case):
        runs = Runs(case, Installed())
        assert isinstance(runs.batch, Outcome)
        found.update({*runs.events, "all"})
        if len(runs.rows) > 1:
            batches.update({*runs.events, "all"})

    draw()
    return found, batches


def test_every_way_of_ending_is_met():
    found, batches = Counter(), Counter()
    for architecture in ARCHITECTURES:
        for total, its in zip((found, batches), ways(architecture), strict=True):
            total.update(its)
    shares = {event: found[event] / found["all"] for event in LEAST}
    assert all(shares[event] >= least for event, least in LEAST.items()), shares
    assert batches["stop: rows differ"] / batches["all"] >= 0.3
