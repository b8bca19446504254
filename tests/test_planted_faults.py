"""Each fault of the zoo is found by the check meant for it, and by no other for the wrong reason."""

import pytest
from toolbox import EVERY_PROFILE, FAILS_ITSELF, explored
from zoo.broken_caches import BROKEN, STEERED
from zoo.loop import Decoder
from zoo.table import FAULTS

from conformance import registry
from conformance.subjects import Subject, load

QUICKLY = 8  # examples of cases that are steered to a rare fault
ELSEWHERE = 4  # examples of the other families, which must not see it

every_fault = pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=f.name, marks=[pytest.mark.quality] if f.rare else []) for f in FAULTS],
)


def family_of(fault):
    return registry.get(fault.found_by).family


def seen(fault, folder, family, **options):
    """check → (kind, field) of all its failures while the fault is planted.

    But for those of classes that decode by themselves, where no fault is planted and the release has some of its own.
    """
    with fault.planted():
        search = explored(folder, fault.subject(), family=family, architecture=fault.architecture, **options)
    found = {}
    for failure in search.failures:
        if failure.case.model_name != failure.case.model.architecture:
            continue
        found.setdefault(failure.key.check, set()).add((failure.key.kind, failure.key.field))
    return found


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=f.name, marks=[pytest.mark.quality] if f.rare and f.steered is None else []) for f in FAULTS],
)
def test_found_by_the_check_meant_for_it(fault, folder):
    examples = fault.examples if fault.steered is None else QUICKLY
    found = seen(fault, folder, family_of(fault), examples=examples, until=[fault.found_by], steered=fault.steered)
    assert fault.found_by in found
    assert found[fault.found_by] <= fault.seen_as
    assert found.keys() <= {fault.found_by, *fault.also}


@every_fault
def test_no_other_family_sees_it(fault, folder):
    for family in set(EVERY_PROFILE) - {family_of(fault), *FAILS_ITSELF}:
        assert seen(fault, folder, family, examples=ELSEWHERE).keys() <= set(fault.also)


@pytest.mark.slow
@every_fault
def test_fifty_examples_of_every_family_blame_nothing_else(fault, folder):
    found = {}
    for family in {*EVERY_PROFILE, family_of(fault)} - (set(FAILS_ITSELF) - {family_of(fault)}):
        found |= seen(fault, folder, family, examples=fault.examples if family == family_of(fault) else 50)
    assert found[fault.found_by] <= fault.seen_as
    assert found.keys() <= {fault.found_by, *fault.also}


@pytest.mark.parametrize("family", sorted(set(EVERY_PROFILE) - set(FAILS_ITSELF)))
def test_the_loop_of_the_zoo_is_right_where_nothing_is_overridden(family, folder):
    """Otherwise its subjects would be found for another fault than theirs."""
    search = explored(folder, Decoder(), family=family, examples=12)
    assert not search.failures
    assert search.result.verdicts["pass"] > 12


def test_every_check_trips_on_something():
    assert {fault.found_by for fault in (*FAULTS, *BROKEN)} | STEERED == set(registry.checks())


def test_the_table_names_real_checks_and_gives_reasons():
    for fault in FAULTS:
        assert {fault.found_by, *fault.also} <= set(registry.checks())
        assert all(fault.also.values())
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@every_fault
def test_is_a_subject(fault):
    assert isinstance(fault.subject(), Subject)


def test_loads_by_name():
    assert load("zoo.subjects:DropsOldest").name == "drops-oldest"
