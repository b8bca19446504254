"""An audit of models that others have wrapped, changed or hooked: what it cannot know it does not accuse."""

from __future__ import annotations

import pytest
import torch
from test_reference_placement import Small, hook, offloaded
from torch import nn

from conformance.reference.placement import audit_placement

HEAD = ("embed.weight", "head.weight")


class Wrapper(nn.Module):
    """Keeps a model as one of its own modules, as DataParallel and adapters do."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.module, self.adapter = inner, nn.Linear(4, 4)

    def __getattr__(self, name):
        """Answers for what it wraps, as adapters do."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


class Lora(nn.Module):
    def __init__(self, base_layer: nn.Module) -> None:
        super().__init__()
        self.base_layer, self.lora_a = base_layer, nn.Linear(4, 2, bias=False)


def on_the_disk(**parts):
    model = Small(tie=False)
    offloaded(model.blocks[3].first, **parts)
    model.hf_device_map = {"": "disk"}
    return model


def test_a_wrapper_leaves_the_map_where_it_is():
    model = on_the_disk()
    assert audit_placement(Wrapper(model)).ok
    model.hf_device_map = {"embed": "cpu", "head": "cpu", **{f"blocks.{n}": "disk" for n in range(11)}}
    found = audit_placement(Wrapper(model))
    assert found.unmapped == ("module.blocks.11.first", "module.blocks.11.second")


def test_what_is_stranded_inside_a_wrapper_is_named():
    model = on_the_disk()
    del model.blocks[3].first._hf_hook
    assert list(audit_placement(Wrapper(model)).stranded) == ["module.blocks.3.first.weight"]


def test_ids_belong_where_the_embeddings_inside_a_wrapper_run():
    model = Small(tie=False)
    model.get_input_embeddings = lambda: model.embed
    model.embed._hf_hook = hook(offload=False, execution_device="cuda:1")
    assert audit_placement(Wrapper(model)).input_device == torch.device("cuda:1")


def change(kind):
    model = Small()
    if kind == "identity":
        model.head = nn.Identity()
    elif kind == "lora":
        model.head = Lora(model.head)
    else:
        nn.utils.parametrizations.weight_norm(model.head)
    return model


@pytest.mark.parametrize("kind", ["identity", "lora", "weight norm"])
def test_a_head_that_was_replaced_is_not_accused(kind):
    report = audit_placement(change(kind))
    assert report.ok
    assert "'head.weight' is to be tied to 'embed.weight'" in str(report)


def test_a_wrapped_head_that_shares_its_weight_is_still_one_group():
    model = change("lora")
    offloaded(model.embed)
    model.head.base_layer._hf_hook = hook(weights_map={"weight": torch.ones(4, 4)})
    assert list(audit_placement(model).split) == []
    model.head.base_layer.weight = model.embed.weight
    assert list(audit_placement(model).split) == [("embed.weight", "head.base_layer.weight")]


def test_ties_that_a_model_takes_back_are_none():
    model = Small(tie=False)
    model.config.tie_word_embeddings = True
    assert HEAD in audit_placement(model).split
    model._tied_weights_keys = None
    assert audit_placement(model).ok


@pytest.mark.parametrize("above", [False, True])
def test_what_a_hook_of_torch_may_bring_is_unknown(above):
    model = on_the_disk()
    del model.blocks[3].first._hf_hook
    (model.blocks[3] if above else model.blocks[3].first).register_forward_pre_hook(lambda *_: None)
    report = audit_placement(model)
    assert report.ok
    assert "unknown: whether blocks.3.first.weight, which is on meta, is brought by a hook" in str(report)
    report = audit_placement(model, trial=lambda: model.blocks[3].first(torch.ones(1, 4)))
    assert list(report.stranded) == ["blocks.3.first.weight"]


def test_a_trial_says_that_a_hook_of_torch_brings_a_weight():
    model = Small(tie=False)
    value = model.head.weight.data.clone()
    model.head.weight = nn.Parameter(torch.empty(4, 4, device="meta"))
    model.head.register_forward_pre_hook(lambda one, _: setattr(one, "weight", nn.Parameter(value)))
    report = audit_placement(model, trial=lambda: model.head(torch.ones(1, 4)))
    assert (report.ok, report.unknown) == (True, ())


def test_hooks_that_compute_a_weight_bring_nothing():
    layer = nn.utils.spectral_norm(nn.Linear(4, 4))
    layer.weight_orig = nn.Parameter(torch.empty(4, 4, device="meta"))
    assert list(audit_placement(nn.Sequential(layer)).stranded) == ["0.weight_orig"]


@pytest.mark.parametrize("depth", ["own", "above"])
def test_a_weight_elsewhere_than_its_module_runs_is_named(depth):
    model = Small(tie=False)
    parts = {"offload": False, "execution_device": "cuda:1"}
    if depth == "own":
        model.blocks[3].first._hf_hook = hook(**parts)
    else:
        model.blocks[3]._hf_hook = hook(**parts, place_submodules=True)
        model.blocks[3].second._hf_hook = hook(offload=False, execution_device="cpu")
    report = audit_placement(model)
    assert report.elsewhere == {"blocks.3.first.weight": "cpu and its module runs on cuda:1"}
    assert "blocks.3.first.weight cannot be used where it is" in str(report)


def test_a_number_on_the_cpu_serves_anywhere():
    model = nn.Linear(4, 4, bias=False, device="meta")
    model.weight = nn.Parameter(torch.ones(()))
    model._hf_hook = hook(offload=False, execution_device="cuda:1")
    assert audit_placement(model).ok
