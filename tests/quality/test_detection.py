"""How surely a planted fault is found, and that nothing is found where nothing is wrong."""

import pytest
from toolbox import explored
from zoo import subjects
from zoo.table import FAULTS

from conformance.subjects.reference import Reference

pytestmark = pytest.mark.quality

SUBTLE = {
    "drops-oldest": (subjects.DropsOldest, 0.65),
    "repeats-position": (subjects.RepeatsPosition, 0.45),
    "rounds-cache": (subjects.RoundsCache, 0.65),
    "swaps-rows": (subjects.SwapsRows, 0.4),
    "keeps-emitting": (subjects.KeepsEmitting, 0.15),
}


@pytest.mark.parametrize(
    ("subject", "least"),
    [pytest.param(*its, id=name) for name, its in SUBTLE.items()],
)
def test_share_of_cases_that_show_a_fault(subject, least, folder):
    """Far above what 50 examples need: a fault shown by one case in ten is missed by 0.5 % of items."""
    search = explored(folder, subject(), examples=100, seed=9)
    failing = {failure.index for failure in search.failures}
    assert len(failing) / 101 >= least


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_found_within_its_examples_whatever_the_seed(fault, folder):
    from conformance import registry

    missed = []
    for seed in range(5):
        place = folder / str(seed)
        place.mkdir()
        with fault.planted():
            family = registry.get(fault.found_by).family
            where = {"family": family, "architecture": fault.architecture, "examples": max(50, fault.examples)}
            search = explored(place, fault.subject(), **where, seed=seed, until=[fault.found_by])
        if fault.found_by not in {failure.key.check for failure in search.failures}:
            missed.append(seed)
    assert missed == []


ARCHITECTURES = ("llama", "mistral", "gemma2", "qwen3", "gpt2", "lfm2", "t5", "bamba", "mixtral", "cohere2")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["cached", "purity"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_two_thousand_cases_of_the_reference_hold_no_finding(family, architecture, folder):
    """100 cases of each item, 2,000 together."""
    search = explored(folder, Reference(), family=family, architecture=architecture, examples=100, seed=2)
    assert [str(failure.difference) for failure in search.failures] == []
    verdicts = search.result.verdicts
    assert verdicts.get("tie", 0) <= 0.01 * sum(verdicts.values())
