"""Copies of models are independent, and the same in all that can be seen."""

import copy

import pytest
import torch
from toolbox import small_case

from conformance.build import Scenario
from conformance.building.copying import Copier
from conformance.snapshots import changes, module_state

SOME = ("llama", "t5", "mamba", "recurrent_gemma", "gemma3n_text", "xlnet")


@pytest.mark.parametrize("architecture", SOME)
def test_a_copy_is_what_a_deep_copy_is(architecture):
    model = Scenario(small_case(architecture)).pristine
    one, other = Copier(model).copy(), copy.deepcopy(model)
    assert not changes(module_state(other), module_state(one))
    assert one.config.to_dict() == other.config.to_dict()
    assert one.config is not model.config
    assert {id(p) for p in one.parameters()}.isdisjoint({id(p) for p in model.parameters()})


def test_parameters_shared_by_modules_are_shared_in_a_copy():
    model = torch.nn.ModuleDict({"one": torch.nn.Linear(2, 2), "two": torch.nn.Linear(2, 2)})
    model["two"].weight = model["one"].weight
    found = Copier(model).copy()
    assert found["two"].weight is found["one"].weight
    assert isinstance(found["one"].weight, torch.nn.Parameter)


def test_classes_and_functions_made_on_the_spot_are_referred_to():
    class Local(torch.nn.Linear):
        pass

    model = Local(2, 2)
    model.rule = lambda: 1
    copier = Copier(model)
    found = copier.copy()
    assert copier.pickles
    assert (type(found), found.rule) == (Local, model.rule)
    assert found.weight is not model.weight


def test_views_are_copied_deeply_and_what_cannot_be_pickled_is_told():
    locked, views = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    locked.lines = (line for line in "ab")
    assert not Copier(locked).pickles
    views.register_buffer("first", views.weight.data[0])
    views.register_buffer("whole", views.weight.data)
    assert not Copier(views).pickles
    found = Copier(views).copy()
    found.whole.zero_()
    assert not found.first.any()
