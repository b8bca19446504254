"""The state of a cache, kept and put back in place."""

from collections import namedtuple

import pytest
import torch
from toolbox import small_case

from conformance import upstream
from conformance.compare import compare_exactly
from conformance.reference.cache_state import snapshot
from conformance.runs import Runs
from conformance.snapshots import snapshot as flat
from conformance.subjects.installed import Installed

KINDS = ("llama", "mistral", "gemma2", "lfm2", "mamba2", "bamba", "t5", "deepseek_v4", "minimax", "rwkv", "xlnet")
STATIC = ("llama", "mistral", "gemma2", "lfm2", "t5")


class Layer:
    def __init__(self):
        self.keys, self.grown, self.count = torch.zeros(2, 3), torch.ones(1), 0
        self.states = {0: torch.arange(4.0), 1: None}
        self.rows = [torch.ones(2)]


def test_everything_is_put_back_into_the_same_objects():
    layer = Layer()
    before, keys, states, rows = flat(layer), layer.keys, layer.states, layer.rows
    state = snapshot(layer)
    layer.keys.add_(1)
    layer.grown = torch.cat([layer.grown, layer.grown])
    layer.count, layer.new = 5, "added"
    layer.states[0].zero_()
    layer.states[1] = torch.ones(1)
    layer.rows.append(torch.zeros(1))
    state.restore()
    assert not compare_exactly(flat(layer), before).differences
    assert (layer.keys, layer.states, layer.rows) == (keys, states, rows) or layer.keys is keys
    assert layer.states is states
    assert layer.rows is rows
    assert not hasattr(layer, "new")


def test_it_is_put_back_as_often_as_wanted():
    tensors = [torch.zeros(2)]
    state = snapshot(tensors)
    for _ in range(2):
        tensors[0].add_(1)
        state.restore()
        assert tensors[0].tolist() == [0, 0]


def test_an_expanded_tensor_is_put_back():
    kept = {"mask": torch.ones(1, 3).expand(4, 3)}
    state = snapshot(kept)
    kept["mask"][0:1].mul_(5)
    state.restore()
    assert kept["mask"].tolist() == [[1.0] * 3] * 4


def test_tuples_and_what_they_hold():
    pair = namedtuple("pair", "one other")(torch.zeros(1), [torch.ones(1)])
    state = snapshot(pair)
    pair.one.add_(1)
    pair.other.clear()
    state.restore()
    assert pair.one.item() == 0
    assert pair.other[0].item() == 1


def test_cycles_end():
    layer = Layer()
    layer.own = [layer]
    state = snapshot(layer)
    layer.own = None
    state.restore()
    assert layer.own[0] is layer


@pytest.mark.parametrize(("architecture", "static"), [(a, False) for a in KINDS] + [(a, True) for a in STATIC])
def test_a_cache_of_any_kind_goes_on_as_if_nothing_had_been_fed(architecture, static):
    """State and logits after a restore are bitwise those of a cache that was never fed the step between."""
    runs = Runs(small_case(architecture, rows=((3, 4, 5, 6, 7),), max_new_tokens=6), Installed())
    changes = upstream.static_cache_settings() if static else {}
    fed = [_fed(runs, changes, detour) for detour in (False, True)]
    assert not compare_exactly(*fed).differences


def _fed(runs, changes, detour):
    """State and logits of a cache fed a prompt and a token, with a restored step between them or not."""
    model, found = runs.scenario.model(), {}

    def decode(model, input_ids, generation_config, **kwargs):
        for unwanted in ("logits_processor", "stopping_criteria"):
            kwargs.pop(unwanted, None)
        outputs = upstream.prefill(model, input_ids, generation_config, kwargs)
        kwargs = upstream.advance(model, outputs, kwargs, input_ids, 1)
        name = upstream.cache_name(kwargs)
        state, before = snapshot(kwargs[name]), dict(kwargs)
        if detour:
            _step(model, input_ids, kwargs, 9)
            state.restore()
        logits = _step(model, input_ids, before, 5)
        found.update(flat(kwargs[name], "cache") | flat(logits, "logits"))
        return input_ids

    with torch.no_grad():
        model.generate(**runs.call(**changes).arguments(), custom_generate=decode)
    return found


def _step(model, input_ids, kwargs, token):
    ids = torch.cat([input_ids, torch.tensor([[token]])], dim=1)
    return model(**upstream.next_inputs(model, ids, kwargs, 1), return_dict=True).logits
