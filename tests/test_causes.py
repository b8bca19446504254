"""Findings that show one cause in several circumstances are one; those that may have other causes stay apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_findings import finding, kept_after_merging
from toolbox import small_case

from conformance.plans.placement import PlacementPlan
from conformance.verdicts import BEGINS_ALIKE, OF_ANOTHER

DEVICES = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
VALUES = (
    "RuntimeError: Tensor.item() cannot be called on meta tensors",
    "NotImplementedError: Cannot copy out of meta tensor; no data!",
)
EQUAL = "RuntimeError in sharding_utils._tied_params_are_equal"


def crash(message, *needs, architecture="llama", scope="any", raised_in=EQUAL, cache=("full",)):
    case = small_case(architecture, family="placement", plan=PlacementPlan())
    shown = {"kind": "crash", "field": "crash", "raised_in": raised_in, "needs": tuple(sorted(needs))}
    return replace(finding(case, scope=scope, cache=cache, **shown), got=message)


def needs_of(kept):
    return sorted(one.signature.needs for one in kept)


def test_where_parts_are_and_how_they_were_stored_makes_no_two_causes(folder):
    (kept,) = kept_after_merging(
        folder,
        crash(DEVICES.format("sim:0", "sim:1"), "accelerators", "split tied", "stored: bin"),
        crash(DEVICES.format("sim:0", "meta"), "accelerators", "offloaded", "split tied", "stored: under targets"),
        crash(DEVICES.format("cpu", "sim:2"), "accelerators", "model: tied parts", "split tied"),
    )
    assert kept.signature.needs == ("accelerators", "split tied", "stored: bin")
    assert kept.notes == ("met with model: tied parts, offloaded, stored: under targets as well",)


def test_what_needs_something_else_has_another_cause(folder):
    said = DEVICES.format("sim:0", "sim:1")
    kept = kept_after_merging(folder, crash(said, "mode: lookup"), crash(said, "mode: static"))
    assert needs_of(kept) == [("mode: lookup",), ("mode: static",)]


def test_whoever_asks_first_for_values_that_are_not_there_shows_one_cause(folder):
    ids, lookup = ("ids: model.device", "offloaded"), ("mode: lookup", "offloaded")
    kept = kept_after_merging(
        folder,
        crash(VALUES[0], *ids, raised_in="RuntimeError in utils.generate"),
        crash(VALUES[0], *ids, "eos", raised_in="RuntimeError in utils._prepare_special_tokens"),
        crash(VALUES[1], *ids, raised_in="NotImplementedError in operations.send_to_device"),
        crash(VALUES[1], *lookup, raised_in="NotImplementedError in operations.send_to_device"),
    )
    assert needs_of(kept) == [ids, lookup]


def test_a_type_of_which_a_weight_is_never_there_tells_nothing_of_any_other(folder):
    of = {"raised_in": "NotImplementedError in operations.send_to_device"}
    kept = kept_after_merging(
        folder,
        crash(VALUES[1], "offloaded", architecture="gpt2", scope="gpt2", **of),
        crash(VALUES[1], "mode: lookup", "offloaded", **of),
    )
    assert needs_of(kept) == [("mode: lookup", "offloaded"), ("offloaded",)]


@pytest.mark.parametrize(("raised_in", "count"), [(EQUAL, 1), ("RuntimeError in modeling_gpt2.forward", 2)])
def test_what_shared_code_raises_on_any_type_is_so_on_each(raised_in, count, folder):
    said = DEVICES.format("sim:0", "sim:1")
    own = crash(said, "accelerators", "in shards", architecture="gpt2", scope="gpt2", raised_in=raised_in)
    assert len(kept_after_merging(folder, crash(said, "accelerators", raised_in=raised_in), own)) == count


@pytest.mark.parametrize(("needs", "count"), [(("accelerators", "split tied"), 1), (("accelerators",), 2)])
def test_tensors_that_meet_for_a_reason_do_so_in_the_code_of_any_type(needs, count, folder):
    """Without a reason it may be any: the code of a type that reads a weight of another module, for one."""
    said, hooks = DEVICES.format("sim:0", "sim:1"), "RuntimeError in hooks.new_forward"
    own = {"architecture": "gpt2", "scope": "gpt2", "raised_in": "RuntimeError in modeling_gpt2.forward"}
    made = (crash(said, *needs, raised_in=hooks), crash(said, *needs, "model: tied blocks", **own))
    kept = kept_after_merging(folder, *made)
    assert len(kept) == count
    if count == 1:
        assert kept[0].notes == ("met with model: tied blocks as well; the same on gpt2",)


def test_names_that_begin_alike_are_one_cause_whatever_they_are(folder):
    made = [
        replace(finding(small_case(name), kind="tied", field=BEGINS_ALIKE, scope=name), got=got)
        for name, got in {"bart": "self_attn and self_attn_norm", "gpt2": "mlp and mlp_gate"}.items()
    ]
    assert len(kept_after_merging(folder, *made)) == 1
    assert len(kept_after_merging(folder / "other", *(_more(one) for one in made))) == 2


def test_weights_that_another_models_replace_are_one_cause_whatever_they_are(folder):
    made = [
        finding(small_case(name), kind="changed", field=OF_ANOTHER, scope=scope, needs=(need,))
        for name, scope, need in (("llama", "any", "stored: bin"), ("gpt2", "gpt2", "offloaded"))
    ]
    assert len(kept_after_merging(folder, *made)) == 1


def _more(one):
    return replace(one, signature=replace(one.signature, field="more than said"))
