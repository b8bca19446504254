"""Placement cases on accelerators, judged as in a run: in a process of their own, which registers simulated ones."""

from __future__ import annotations

import pytest
from toolbox import CHECKS_OF, small_case
from zoo.placed_mechanisms import ComparesWhereTheTokenIs, CropsOneDevice, WaitsForAnotherDevice

from conformance.errors import BadInput
from conformance.isolation import Child
from conformance.plans.placement import PlacementPlan
from conformance.simulation import accelerator
from conformance.subjects import place_of

MATCHES, SAVED = "placed-matches-unplaced", "save-and-reload-keeps-ties"
LATE, CROP, TOKENS = (
    "placed-late-stop-matches-immediate",
    "placed-crop-round-trip",
    "placed-special-tokens-match-plain",
)
TWO = {"map": "parts", "places": ("sim:0", "sim:1"), "accelerators": 2}
simulated = pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))


@pytest.fixture(scope="module")
def child():
    process = Child(seconds=300)
    yield process
    process.close()


def judged(child, subject="reference", **plan):
    """The judgement of a case whose rows end at different steps."""
    plan = PlacementPlan(**plan)
    rows, eos_at = ((3, 4, 5), (6, 7)), ((0, 2), (1, 1))
    case = small_case(family="placement", plan=plan, rows=rows, max_new_tokens=5, eos_at=eos_at)
    return child.judge(case, CHECKS_OF["placement"], subject)


@simulated
@pytest.mark.parametrize("subject", ["installed", "reference"])
@pytest.mark.parametrize(
    ("mode", "check"), [("late stop", LATE), ("crop", CROP), ("special tokens", TOKENS), ("chunked", MATCHES)]
)
def test_mechanisms_work_on_layers_on_several_devices(child, subject, mode, check):
    made = judged(child, subject, **TWO, mode=mode)
    verdict = made.verdicts[check]
    if verdict.reason.startswith("the release has no deferred"):
        pytest.skip(verdict.reason)
    assert verdict.status == "pass"
    assert mode == "chunked" or f"mechanism: {mode}" in made.events
    assert mode != "late stop" or "mechanism: late stop, a step undone" in made.events


@simulated
@pytest.mark.parametrize(
    ("mode", "check", "subject"),
    [
        ("late stop", LATE, WaitsForAnotherDevice()),
        ("crop", CROP, CropsOneDevice()),
        ("special tokens", TOKENS, ComparesWhereTheTokenIs()),
    ],
)
def test_a_mechanism_that_is_right_on_one_device_only_is_found(child, mode, check, subject):
    verdicts = judged(child, place_of(subject), **TWO, mode=mode).verdicts
    assert [name for name, verdict in verdicts.items() if verdict.status == "fail"] == [check]


@simulated
@pytest.mark.parametrize("mode", ["late stop", "crop", "special tokens"])
def test_one_device_says_nothing_of_a_mechanism_on_several(child, mode):
    verdicts = judged(child, places=("sim:0",), accelerators=1, mode=mode).verdicts
    assert {verdicts[name].status for name in (LATE, CROP, TOKENS)} == {"not-applicable"}


@simulated
@pytest.mark.parametrize(
    "plan",
    [
        {**TWO, "mode": "assisted"},
        {"model": "diffusion gemma", "places": ("sim:0",), "accelerators": 1},
        {**TWO, "model": "tied embeddings"},
        {**TWO, "model": "tied embeddings", "loader": "dispatch_model", "places": ("sim:0", "disk", "cpu")},
    ],
)
def test_what_is_right_on_accelerators_passes(child, plan):
    verdicts = judged(child, **plan).verdicts
    assert (verdicts[MATCHES].status, verdicts[SAVED].status) == ("pass", "pass")


@simulated
def test_accelerators_that_are_not_in_the_recipe_are_refused(child):
    with pytest.raises(BadInput, match=r"plan\.places names sim:1, and plan\.accelerators is 1"):
        judged(child, places=("sim:1",), accelerators=1)


@pytest.mark.parametrize("hardware", ["cuda", "mps", "xpu"])
def test_real_accelerators_that_are_absent_are_not_applicable(child, hardware):
    verdicts = judged(child, places=("sim:3",), accelerators=4, hardware=hardware).verdicts
    assert {verdict.status for verdict in verdicts.values()} == {"not-applicable"}
    assert verdicts[MATCHES].reason.endswith(f"of the {hardware} devices it asks for")
