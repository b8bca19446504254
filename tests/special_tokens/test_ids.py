"""Our special tokens equal the installed ones on the CPU, and read nothing on `meta`."""

import copy
import logging
import random
from collections import Counter
from types import SimpleNamespace

import id_draws
import numpy as np
import pytest
import torch
from toolbox import small_case

from conformance import upstream
from conformance.build import Scenario
from conformance.reference import special_tokens
from conformance.reference.special_tokens import FIELDS, MetaSafeTensorError, as_ints, prepare
from conformance.simulation.meta_reads import MetaReads


class Installed:
    """The installed preparation on a model that is nothing but its config."""

    def __init__(self, encoder_decoder):
        from transformers.generation.utils import GenerationMixin

        self.config = SimpleNamespace(is_encoder_decoder=encoder_decoder)
        self.device = torch.device("cpu")
        self._prepare_special_tokens = GenerationMixin._prepare_special_tokens.__get__(self)


def installed(config, encoder_decoder, **asked):
    own = copy.deepcopy(config)
    upstream.prepare_special_tokens(Installed(encoder_decoder), own, **asked)
    return {name: getattr(own, f"_{name}_token_tensor") for name in FIELDS}


def ours(config, encoder_decoder, **asked):
    return vars(prepare(config, encoder_decoder=encoder_decoder, **asked))


def told(run, *args, **asked):
    """(field → values, shape, device; or the exception's type), and the warnings."""
    with upstream.special_token_warnings() as kinds:
        try:
            made = run(*args, **asked)
        except Exception as error:  # noqa: BLE001 - the exception is what is compared
            return type(error).__name__, tuple(kinds)
    plain = {n: None if t is None else (t.tolist(), tuple(t.shape), t.device.type) for n, t in made.items()}
    return plain, tuple(kinds)


def listed(config, mine):
    """Why the release is at fault where the two differ; None where nothing explains it."""
    given = [getattr(config, f"{name}_token_id") for name in FIELDS]
    if any(isinstance(g, list | tuple | torch.Tensor) and empty(g) for g in given):
        return "an empty list"
    if any(fractional(g) for g in given) and mine[0] == "ValueError":
        return "a fraction"
    return None


def empty(given):
    return given.numel() == 0 if isinstance(given, torch.Tensor) else len(given) == 0


def fractional(given):
    if isinstance(given, torch.Tensor):
        return given.is_floating_point() and bool((given != given.trunc()).any())
    return any(n != int(n) for n in (given if isinstance(given, list | tuple) else [given]) if n is not None)


def compared(rng):
    config, encoder_decoder = id_draws.config(rng), rng.random() < 0.3
    asked = {
        "has_mask": rng.choice([None, True, False]),
        "device": "cpu",
        "batch_size": rng.choice([None, 1, 2]),
    }
    theirs, mine = told(installed, config, encoder_decoder, **asked), told(ours, config, encoder_decoder, **asked)
    if theirs == mine:
        return "equal"
    given = [getattr(config, f"{name}_token_id") for name in FIELDS]
    return listed(config, mine) or f"{given} {encoder_decoder} {asked}: {theirs} {mine}"


def outcomes(count, seed):
    rng, logger = random.Random(seed), upstream.generation_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # once, which is a quarter faster than in each comparison
    try:
        return Counter(compared(rng) for _ in range(count))
    finally:
        logger.setLevel(level)


EXPLAINED = {"equal", "an empty list", "a fraction"}


def test_equals_the_installed_preparation():
    found = outcomes(1000, 1)
    assert set(found) == EXPLAINED
    assert found["equal"] > 500


@pytest.mark.slow
def test_equals_the_installed_preparation_fifty_thousand_times():
    assert set(outcomes(50_000, 2)) == EXPLAINED


def on_meta(count, seed):
    rng, whole = random.Random(seed), 0
    for _ in range(count):
        config, encoder_decoder = id_draws.config(rng, rng.choice(["cpu", "cpu", "cpu", "meta"])), rng.random() < 0.3
        with MetaReads() as reads:
            try:
                made = ours(config, encoder_decoder, device="meta", has_mask=rng.choice([None, False]))
            except (MetaSafeTensorError, ValueError):
                made = {}
        assert reads.seen == []
        assert all(tensor is None or (tensor.is_meta and tensor.dtype == torch.long) for tensor in made.values())
        whole += any(tensor is not None for tensor in made.values())
    return whole


def test_reads_no_value_on_meta():
    assert on_meta(500, 3) > 100


@pytest.mark.slow
def test_reads_no_value_on_meta_fifty_thousand_times():
    assert on_meta(50_000, 4) > 10_000


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("shape", [(), (2,), (0,)])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_meta_tensor_is_refused_by_name_and_shape(name, shape, device):
    config = id_draws.GenerationConfig()
    setattr(config, f"{name}_token_id", torch.zeros(shape, dtype=torch.long, device="meta"))
    with pytest.raises(MetaSafeTensorError, match=f"{name}_token_id.*plain integers") as told:
        ours(config, False, device=device)
    assert str(shape) in str(told.value)
    assert not hasattr(config, "_eos_token_tensor")


def test_a_meta_tensor_inside_a_list_is_refused():
    with pytest.raises(MetaSafeTensorError):
        as_ints("eos_token_id", [2, torch.tensor(3, device="meta")])


@pytest.mark.parametrize("given", [np.array([2, 3]), [np.int64(2), np.int32(3)], range(2, 4), (2.0, np.float32(3))])
def test_what_counts_as_numbers_elsewhere_does_here(given):
    assert as_ints("eos_token_id", given) == (2, 3)


@pytest.mark.parametrize(
    ("given", "error"),
    [(2.5, ValueError), (float("nan"), ValueError), ([2, None], TypeError), ("2", TypeError), ([[]], TypeError)],
)
def test_what_is_no_id_is_refused_by_name(given, error):
    with pytest.raises(error, match="eos_token_id"):
        as_ints("eos_token_id", given)


@pytest.mark.parametrize("architecture", ["llama", "t5"])
@pytest.mark.parametrize("extra", [{}, {"num_beams": 2}, {"prompt_lookup_num_tokens": 2}, {"assistant_model": None}])
def test_generate_with_them_gives_what_stock_gives(architecture, extra):
    scenario = Scenario(small_case(architecture, rows=((3, 4, 5, 3, 4),), max_new_tokens=6, eos=(7, 9)))
    call = scenario.call()
    model, extra = scenario.model(), dict(extra)
    if "assistant_model" in extra:
        extra["assistant_model"] = scenario.model(noise=(1, 0.05))
    call = call.replace(extras=extra)
    with torch.no_grad():
        expected = model.generate(**call.arguments()).sequences
        assert torch.equal(special_tokens.generate(model, call).sequences, expected)
    assert "_prepare_special_tokens" not in vars(model)


def test_the_mixin_makes_a_class_use_them():
    scenario = Scenario(small_case(eos=(7,)))
    kind = type("MetaSafeLlama", (special_tokens.MetaSafeSpecialTokens, scenario.model_class), {})
    model = scenario.model()
    model.__class__ = kind
    call = scenario.call()
    call.generation_config.eos_token_id = torch.tensor(7, device="meta")
    with pytest.raises(MetaSafeTensorError):
        model.generate(**call.arguments())
