"""The reference for placement: what patterns tie, maps that keep ties together, and audits that name what is lost."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from conformance.reference.placement import DoesNotFit, PlacementError, audit_placement, plan_device_map
from conformance.reference.planner import make_units
from conformance.reference.tying import TyingError, expand, matching, merged, tied_groups

SIZE = 4 * 4 * 4  # bytes of one 4 × 4 float32 matrix


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)


class Small(nn.Module):
    """Embeddings, twelve blocks, a head; the head is tied, and block 1 to block 0 by a pattern."""

    _tied_weights_keys = {"head.weight": "embed.weight", r"blocks\.1": r"blocks\.0"}
    _no_split_modules = ("Block",)

    def __init__(self, *, tie: bool = True) -> None:
        super().__init__()
        self.config = SimpleNamespace(tie_word_embeddings=tie)
        self.embed, self.head = nn.Embedding(4, 4), nn.Linear(4, 4, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(12))
        if tie:
            self.head.weight = self.embed.weight
            for part in ("first", "second"):
                getattr(self.blocks[1], part).weight = getattr(self.blocks[0], part).weight


def hook(**parts):
    plain = {"offload": True, "weights_map": {}, "offload_buffers": False, "place_submodules": False}
    return SimpleNamespace(**{**plain, "execution_device": "cpu", **parts})


def offloaded(module, name="weight", **parts):
    """The module with this tensor on meta, and a hook that brings it."""
    tensor = getattr(module, name)
    module._hf_hook = hook(weights_map={name: tensor}, **parts)
    module._parameters[name] = nn.Parameter(torch.empty_like(tensor, device="meta"), requires_grad=False)
    return module


def test_a_pattern_ends_at_a_dot():
    names = ["layers.1.weight", "layers.10.weight", "layers.1"]
    assert matching(r"layers\.1", names) == ["layers.1", "layers.1.weight"]
    assert matching(r"layers\.1\.", names) == ["layers.1.weight"]


def test_targets_take_the_sources_in_turn():
    names = ["a.0.w", "a.1.w", "b.0.w", "b.1.w", "b.2.w", "b.3.w"]
    pairs = expand({r"b\.\d": r"a\.\d"}, names)
    assert pairs == {"b.0.w": "a.0.w", "b.1.w": "a.1.w", "b.2.w": "a.0.w", "b.3.w": "a.1.w"}


@pytest.mark.parametrize("declared", [{"nothing": r"a\.0"}, {r"a\.0": "nothing"}, {r"a\.0": r"b\.\d"}])
def test_a_pattern_that_ties_nothing_or_too_much_is_refused_by_name(declared):
    with pytest.raises(TyingError, match=re.escape(repr(next(iter(declared))))):
        expand(declared, ["a.0.w", "b.0.w", "b.1.w"])


def test_chains_and_several_targets_are_one_group():
    assert merged([("c", "b"), ("b", "a"), ("x", "y"), ("d", "a")]) == [("a", "b", "c", "d"), ("x", "y")]


def test_groups_of_a_model_are_what_it_declares_and_what_it_shares():
    assert tied_groups(Small()) == [
        ("blocks.0.first.weight", "blocks.1.first.weight"),
        ("blocks.0.second.weight", "blocks.1.second.weight"),
        ("embed.weight", "head.weight"),
    ]
    assert tied_groups(Small(tie=False)) == []


def test_units_are_uncut_blocks_and_tied_ones_together():
    units = {unit.names: unit.size for unit in make_units(Small(), {"Block"})}
    assert units["embed", "head"] == SIZE
    assert units["blocks.0", "blocks.1"] == 2 * SIZE
    assert units["blocks.10",] == 2 * SIZE


def test_a_module_without_an_uncut_class_in_it_goes_whole():
    model = Small()
    model.side = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    assert ("side",) in [unit.names for unit in make_units(model, {"Block"})]


@pytest.mark.parametrize("room", range(3, 26, 2))
def test_a_planned_map_keeps_groups_together_and_fits(room):
    model = Small()
    plan = plan_device_map(model, {"sim:0": room * SIZE, "cpu": 5 * SIZE})
    assert plan.device_map["embed"] == plan.device_map["head"]
    assert plan.device_map["blocks.0"] == plan.device_map["blocks.1"]
    assert set(plan.device_map) == {"embed", "head", *(f"blocks.{n}" for n in range(12))}
    assert plan.used["sim:0"] <= room * SIZE
    assert plan.used.get("cpu", 0) <= 5 * SIZE


def test_what_does_not_fit_says_by_how_much():
    with pytest.raises(DoesNotFit) as caught:
        plan_device_map(Small(), {"cpu": 22 * SIZE}, disk=False)
    assert caught.value.short == SIZE
    assert f"{SIZE} bytes" in str(caught.value)
    assert "blocks.11" in str(caught.value) or "embed" in str(caught.value)


def test_the_largest_go_first_where_the_order_does_not_fit():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 12, bias=False), nn.Linear(4, 8, bias=False))
    plan = plan_device_map(model, {"cpu": 3 * SIZE, "sim:0": 3 * SIZE}, disk=False)
    assert plan.device_map == {"0": "sim:0", "1": "cpu", "2": "sim:0"}


def test_a_whole_model_is_in_order():
    report = audit_placement(Small())
    assert report.ok
    report.raise_if_wrong()


def test_a_weight_on_meta_without_a_hook_is_named():
    model = Small(tie=False)
    offloaded(model.blocks[3].first)
    del model.blocks[3].first._hf_hook
    report = audit_placement(model)
    assert list(report.stranded) == ["blocks.3.first.weight"]
    assert report.mapless
    with pytest.raises(PlacementError, match=r"blocks\.3\.first\.weight"):
        report.raise_if_wrong()


@pytest.mark.parametrize("depth", ["own", "above"])
def test_a_hook_with_a_copy_brings_a_weight(depth):
    model = Small(tie=False)
    tensor = model.blocks[3].first.weight
    offloaded(model.blocks[3].first)
    if depth == "above":
        del model.blocks[3].first._hf_hook
        model.blocks[3]._hf_hook = hook(weights_map={"first.weight": tensor}, place_submodules=True)
    model.hf_device_map = {"": "disk"}
    assert audit_placement(model).ok


def test_a_hook_without_a_copy_is_told_even_where_the_weight_is_there():
    model = Small(tie=False)
    model.head._hf_hook = hook()
    assert "KeyError" in audit_placement(model).stranded["head.weight"]


def test_a_buffer_that_its_hook_does_not_bring_is_stranded():
    model = Small(tie=False)
    model.embed.register_buffer("scale", torch.empty(1, device="meta"))
    model.embed._hf_hook = hook(weights_map={"scale": torch.ones(1), "weight": torch.ones(4, 4)})
    assert "buffer" in audit_placement(model).stranded["embed.scale"]


def test_ties_that_came_apart_are_named():
    model = Small()
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    assert list(audit_placement(model).split) == [("embed.weight", "head.weight")]
    model = Small()
    offloaded(model.head)
    assert "offloaded" in audit_placement(model).split["embed.weight", "head.weight"]


def test_offloaded_ties_are_one_by_value():
    model = Small()
    for module in (model.head, model.embed):
        offloaded(module)
    model.hf_device_map = {"": "disk"}
    assert audit_placement(model).ok
    model.head._hf_hook.weights_map["weight"] = torch.ones(4, 4)
    assert "values" in audit_placement(model).split["embed.weight", "head.weight"]


def test_tied_copies_with_a_nan_are_one():
    model = Small()
    with torch.no_grad():
        model.head.weight[0, 0] = float("nan")
    for module in (model.head, model.embed):
        offloaded(module)
    model.hf_device_map = {"": "disk"}
    assert audit_placement(model).ok
    model.head._hf_hook.weights_map["weight"] = torch.full((4, 4), float("nan"))
    assert "values" in audit_placement(model).split["embed.weight", "head.weight"]


def test_a_head_that_is_not_made_yet_is_not_tied():
    model = Small()
    model.head = nn.LazyLinear(4, bias=False)
    report = audit_placement(model)
    assert report.split == {("embed.weight", "head.weight"): "head.weight is not made yet"}
    assert "not made yet" in str(report)
    model.head._hf_hook = hook(offload=False, execution_device="cuda:1")
    assert audit_placement(model).elsewhere == {}


def test_sparse_weights_are_one_where_they_are():
    made = torch.eye(4).to_sparse()
    model = Small()
    model.embed.weight = model.head.weight = nn.Parameter(made, requires_grad=False)
    assert audit_placement(model).ok
    model.head.weight = nn.Parameter(made.clone(), requires_grad=False)
    assert list(audit_placement(model).split) == [("embed.weight", "head.weight")]


def test_a_copy_of_another_shape_cannot_be_brought():
    model = Small(tie=False)
    offloaded(model.head)
    model.hf_device_map = {"": "disk"}
    assert audit_placement(model).ok
    model.head._hf_hook.weights_map["weight"] = torch.ones(1)
    assert audit_placement(model).stranded["head.weight"] == "its hook's copy is of shape (1,), and it is of (4, 4)"


class Scaled(nn.Module):
    """Keeps a tensor that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 4), torch.ones(4, 4, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(self.inner(x), self.scale)


def test_a_plain_attribute_on_meta_is_unknown_until_a_trial_reads_it():
    model = Scaled()
    report = audit_placement(model)
    assert report.ok
    assert "unknown: whether scale, which is on meta and neither parameter nor buffer, is read" in str(report)
    assert "neither parameter" in audit_placement(model, trial=lambda: model(torch.ones(1, 4))).stranded["scale"]
    unread = audit_placement(model, trial=lambda: model.inner(torch.ones(1, 4)))
    assert (unread.ok, unread.unknown) == (True, ())


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"cpu": None}, "max_memory['cpu'] is None; valid: bytes, a number from 0 on, or float('inf')"),
        ({"cpu": float("nan")}, "max_memory['cpu'] is nan; valid: bytes"),
        ({0: "20kB", "cpu": 1}, "max_memory[0] is '20kB'; valid: bytes"),
        ({"cpu": -5}, "max_memory['cpu'] is -5; valid: bytes"),
        ({"cpu": True}, "max_memory['cpu'] is True; valid: bytes"),
        ({1.5: 20}, "max_memory names 1.5; valid: 'cpu', or the number of an accelerator"),
        ({"disk": 20}, "max_memory names no device that can run a forward; valid: 'cpu', or numbers of accelerators"),
        ([1], "max_memory is [1]; valid: device → bytes"),
    ],
)
def test_memory_that_is_no_number_of_bytes_is_refused_in_a_line(memory, said):
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        plan_device_map(Small(), memory)
    assert "\n" not in str(refusal.value)


def test_a_module_that_the_map_forgets_is_named():
    model = Small()
    model.hf_device_map = {"embed": "cpu", "head": "cpu", **{f"blocks.{n}": "cpu" for n in range(1, 12)}}
    assert audit_placement(model).unmapped == ("blocks.0.first", "blocks.0.second")


def test_ids_belong_where_the_embeddings_run():
    model = Small(tie=False)
    model.get_input_embeddings = lambda: model.embed
    offloaded(model.embed, execution_device="cpu")
    assert audit_placement(model).input_device == torch.device("cpu")
