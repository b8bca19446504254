"""The suite is green on the reference: what it finds elsewhere is not its own invention."""

import json
from collections import Counter
from pathlib import Path

import pytest
from toolbox import EVERY_PROFILE, explored

from conformance import registry, upstream
from conformance.architectures import catalogue
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

# Faults of transformers 5.24.0 that the suite meets; for these tests alone, never for a user's run.
KNOWN = json.loads((Path(__file__).parent / "known_upstream_faults.json").read_text())
FAULTY = {fault["architecture"] for fault in KNOWN}
HEALTHY = sorted(set(catalogue.core_names()) - FAULTY)

families = pytest.mark.parametrize("family", EVERY_PROFILE)
healthy = pytest.mark.parametrize("architecture", HEALTHY)


def told(search):
    """What failed, in words, for the message of a failing test."""
    return [f"{failure.key.check}: {failure.difference} on {failure.case.to_json()}" for failure in search.failures]


@families
@healthy
def test_green_on_the_reference(family, architecture, folder):
    search = explored(folder, Reference(), family=family, architecture=architecture, examples=1)
    assert told(search) == []
    # Blocked by the release: in float64 a masked row is NaN in every type's eager kernel.
    assert search.result.verdicts.keys() <= {"pass", "allowed", "not-applicable", "tie", "blocked-by"}


@pytest.mark.slow
@families
@healthy
def test_green_on_the_reference_for_longer(family, architecture, folder):
    search = explored(folder, Reference(), family=family, architecture=architecture, examples=20, seed=5)
    assert told(search) == []


@pytest.mark.slow
@families
@pytest.mark.parametrize("architecture", sorted(FAULTY))
def test_a_fault_of_the_release_is_never_blamed_on_the_reference(family, architecture, folder):
    search = explored(folder, Reference(), family=family, architecture=architecture, examples=12, seed=5)
    assert told(search) == []


@pytest.mark.slow
@pytest.mark.skipif(upstream.release() != (5, 24, 0), reason="the file tells of 5.24.0")
@pytest.mark.parametrize("architecture", sorted(FAULTY))
def test_the_installed_release_fails_only_where_the_file_says(architecture, folder):
    search = explored(folder, Installed(), architecture=architecture, examples=20, seed=5)
    known = {fault["check"] for fault in KNOWN if fault["architecture"] == architecture}
    assert {failure.key.check for failure in search.failures} <= known, told(search)


def test_the_file_names_checks_and_types_once_with_a_reason():
    for fault in KNOWN:
        assert fault.keys() == {"architecture", "check", "reason"}
        assert fault["architecture"] in catalogue.core_names()
        assert fault["check"] in registry.checks()
        assert fault["reason"]
    assert max(Counter((fault["architecture"], fault["check"]) for fault in KNOWN).values()) == 1


def test_most_types_are_healthy():
    assert len(HEALTHY) >= 30
