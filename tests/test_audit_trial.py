"""An audit that runs the model on trial: weights that no hook can bring, since another module reads them."""

from __future__ import annotations

import pytest
import torch
from test_reference_placement import offloaded
from torch import nn

from conformance.reference.placement import audit_placement


class Reaches(nn.Module):
    """Reads the weight of a child without running it, as it is, as a view or in another dtype."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.inner, self.table = how, nn.Linear(4, 4, bias=False), nn.Embedding(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.inner.weight
        given = {"as it is": weight, "a view": weight[1:].t(), "cast": weight.double().float()}[self.how]
        return torch.mm(x, given)


@pytest.mark.parametrize("how", ["as it is", "a view", "cast"])
def test_a_weight_that_another_module_reads_is_named_after_a_trial(how):
    model = Reaches(how)
    offloaded(model.inner)
    model.hf_device_map = {"": "disk"}
    assert audit_placement(model).ok
    report = audit_placement(model, trial=lambda: model(torch.ones(1, 4)))
    assert list(report.stranded) == ["inner.weight"]


def test_a_trial_names_a_weight_also_where_it_raises_at_it():
    model = Reaches("as it is")
    offloaded(model.inner)
    trial = lambda: nn.functional.embedding(torch.zeros(1, dtype=torch.long), model.inner.weight) + torch.ones(4)  # noqa: E731
    assert list(audit_placement(model, trial=trial).stranded) == ["inner.weight"]


def test_what_a_trial_raises_by_itself_passes_through():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        audit_placement(Reaches("as it is"), trial=lambda: torch.ones(2, 3) @ torch.ones(2, 3))


def test_a_model_that_is_right_passes_its_trial():
    model = Reaches("as it is")
    assert audit_placement(model, trial=lambda: model(torch.ones(1, 4))).ok


def test_ids_would_be_lost_where_the_model_says_that_it_is_on_meta():
    model = nn.Sequential(nn.Linear(4, 4, bias=False))
    offloaded(model[0])
    model.hf_device_map = {"": "disk"}
    report = audit_placement(model)
    assert report.ok
    assert "put token ids on cpu" in str(report)
