"""The scales of weights: within the bounds of a case, and narrowed only for types that exist, in words why."""

import json
from importlib import resources

from conformance.architectures import catalogue
from conformance.architectures.scales import SCALES, scales_of


def test_the_general_scales_hold_where_nothing_was_measured():
    assert scales_of("llama") == SCALES
    assert all(0.01 <= scale <= 2.0 for scale in SCALES)


def test_measured_scales_are_some_of_the_general_ones_with_what_was_seen():
    entries = json.loads(resources.files("conformance.architectures").joinpath("scales.json").read_text())
    assert list(entries) == sorted(entries)
    for name, entry in entries.items():
        assert name in catalogue.names()
        assert set(entry["scales"]) < set(SCALES)
        assert entry["measured"].strip()
        assert scales_of(name) == tuple(entry["scales"])
