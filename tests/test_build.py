"""The same case is bitwise the same model, whatever was done before."""

import pytest
import torch
from toolbox import small_case
from transformers import PreTrainedConfig

from conformance.architectures.apply import build
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.building.models import MAX_PARAMETERS
from conformance.case import Case, ModelSpec
from conformance.errors import BadInput, CaseRefused, NotBuildable
from conformance.snapshots import same
from conformance.weights import tensors, uniform, values

SOME = ("llama", "gemma2", "mixtral", "mamba2", "lfm2", "t5")
every_type = pytest.mark.parametrize("architecture", SOME)


def weights(case, **options):
    return dict(tensors(Scenario(case).model(**options)))


def differing(one, other):
    assert one.keys() == other.keys()
    return {name for name in one if not same(one[name], other[name])}


@every_type
def test_built_twice_is_bitwise_the_same(architecture):
    case = small_case(architecture)
    assert not differing(weights(case), weights(case))


@every_type
def test_weights_depend_on_nothing_but_the_case(architecture):
    case = small_case(architecture, weight_seed=7)
    torch.manual_seed(1)
    first = weights(case)
    torch.manual_seed(2)
    torch.rand(5)
    Scenario(small_case("gpt2")).model()
    assert not differing(first, weights(case))


@every_type
def test_building_leaves_the_global_generator_alone(architecture):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    Scenario(small_case(architecture)).model(noise=(1, 1e-6))
    assert torch.equal(before, torch.get_rng_state())


@every_type
def test_every_parameter_is_filled_with_numbers_of_its_own(architecture):
    """No parameter of one dimension or more is constant, and another seed changes them all."""
    one, other = (weights(small_case(architecture, weight_seed=seed)) for seed in (1, 2))
    parameters = dict(Scenario(small_case(architecture)).model().named_parameters())
    assert differing(one, other) >= parameters.keys()
    assert all(tensor.unique().numel() > 1 for name, tensor in one.items() if name in parameters and tensor.numel() > 1)


def test_models_of_a_scenario_share_no_tensor():
    scenario = Scenario(small_case())
    one, other = scenario.model(), scenario.model()
    next(one.parameters()).data.fill_(0.0)
    assert not differing(dict(tensors(other)), weights(small_case()))


def test_numbers_are_a_function_of_seed_and_name_alone():
    """Stated values: they must be the same on every release, machine and version of this project."""
    assert uniform(0, "a", (2,)).tolist() == uniform(0, "a", (3,)).tolist()[:2]
    assert uniform(0, "a", (2, 2)).flatten().tolist() == uniform(0, "a", (4,)).tolist()
    assert uniform(0, "a", (1,)).tolist() != uniform(0, "b", (1,)).tolist()
    assert uniform(0, "model.embed_tokens.weight", (2,)).tolist() == STATED


STATED = [0.8004073526868252, 0.6354370869371992]


@pytest.mark.parametrize(
    ("name", "shape", "low", "high"),
    [
        ("layers.0.mlp.up_proj.weight", (40, 40), -0.52, 0.52),
        ("layers.0.norm.weight", (400,), 0.75, 1.25),
        ("layers.0.mixer.A_log", (400,), 0.0, 1.5),
        ("layers.0.mixer.dt_bias", (400,), -2.0, 0.0),
        ("layers.0.q_proj.bias", (400,), -0.52, 0.52),
    ],
)
def test_numbers_fit_the_role_of_the_tensor(name, shape, low, high):
    drawn = values(0, name, shape, 0.3)
    assert drawn.min() >= low
    assert drawn.max() <= high
    assert drawn.std() > 0.1 * (high - low)


def test_a_scalar_gets_one_number():
    assert values(0, "skip_scale", (), 0.3).shape == ()


def test_dtype_and_scale_are_the_cases():
    assert {t.dtype for t in weights(small_case(dtype="float64")).values()} == {torch.float64}
    narrow, wide = (weights(small_case(init_scale=scale))["lm_head.weight"] for scale in (0.1, 0.6))
    assert torch.allclose(narrow * 6, wide, rtol=1e-6)


def test_noise_moves_every_weight_by_about_as_much_as_rounding():
    exact, moved = weights(small_case()), weights(small_case(), noise=(1, 1e-6))
    assert differing(exact, moved) == exact.keys()
    for name, tensor in exact.items():
        assert ((moved[name] - tensor).abs() <= 1.1e-6 * tensor.abs() + 1e-12).all()


def test_the_fingerprint_is_stable_and_follows_the_config():
    config = tiny_config("llama")
    base = small_case()
    assert Scenario(base).fingerprint == Scenario(base.replace(fingerprint="kept")).fingerprint
    assert Scenario(base).fingerprint == Scenario(small_case(weight_seed=9, eos=(3,), rows=((1, 2),))).fingerprint
    for name, value in (
        ("intermediate_size", 48),
        ("vocab_size", 48),
        ("rms_norm_eps", 1e-3),
        ("num_hidden_layers", 1),
    ):
        assert Scenario(small_case(config={**config, name: value})).fingerprint != Scenario(base).fingerprint


@pytest.fixture
def building_fails(monkeypatch):
    def build(_):
        raise AssertionError("it was built")

    monkeypatch.setattr(Scenario, "_bare_model", build)


@pytest.mark.usefixtures("building_fails")
def test_the_default_config_of_a_release_is_refused_by_name():
    """It has billions of parameters."""
    with pytest.raises(CaseRefused, match="vocab_size is 32000, at most 4096"):
        Scenario(Case())


@pytest.mark.usefixtures("building_fails")
def test_a_large_model_is_refused_before_it_is_allocated():
    """Even where each of its sizes is allowed."""
    largest = {
        "hidden_size": 512,
        "intermediate_size": 512,
        "num_attention_heads": 4,
        "head_dim": 128,
        "num_hidden_layers": 16,
    }
    scenario = Scenario(
        small_case(config={**tiny_config("llama"), **largest, "num_key_value_heads": 4, "vocab_size": 4096})
    )
    with pytest.raises(CaseRefused, match=f"model.config makes a model of .* parameters; at most {MAX_PARAMETERS}"):
        scenario.refuse_large_model()


NO_SIZES = {
    "fewer than no layers": ("llama", {"num_hidden_layers": -1}, "num_hidden_layers is -1, must be at least 1"),
    "a window of nothing": ("mistral", {"sliding_window": 0}, "sliding_window is 0, must be at least 1"),
    "a negative group": ("deepseek_v3", {"n_group": -2}, "n_group is -2, must be at least 0"),
    "a chunk that a scan is padded to": ("mamba2", {"chunk_size": 4096}, "chunk_size is 4096, at most 512"),
}


@pytest.mark.usefixtures("building_fails")
@pytest.mark.parametrize(("architecture", "given", "said"), NO_SIZES.values(), ids=NO_SIZES)
def test_a_size_that_is_none_is_refused(architecture, given, said):
    with pytest.raises(CaseRefused, match=said):
        Scenario(small_case(architecture, config={**tiny_config(architecture), **given}))


SAID_ELSEWHERE = {
    "another type": ("llama", {"model_type": "gpt2"}, r"'model_type': model\.architecture says it"),
    "another class": ("llama", {"architectures": ["Gpt2Model"]}, r"'architectures': model\.architecture says it"),
    "another dtype": ("llama", {"dtype": "float64"}, r"'dtype': model\.dtype says it"),
    "another dtype, as it was called": ("llama", {"torch_dtype": "float16"}, r"'torch_dtype': model\.dtype says it"),
    "a kernel": ("llama", {"attn_implementation": "sdpa"}, r"'attn_implementation': model\.attention says it"),
    "a kernel, below": ("llama", {"_attn_implementation": "sdpa"}, r"'_attn_implementation': model\.attention says it"),
    "a part's": ("gemma3", {"text_config.model_type": "gpt2"}, r"'text_config\.model_type': model\.architecture"),
    "a part's, nested": ("gemma3", {"text_config": {"dtype": "float64"}}, r"'text_config\.dtype': model\.dtype"),
    "outputs": ("llama", {"output_attentions": True}, r"'output_attentions': settings\.output_attentions says it"),
    "code": ("llama", {"auto_map": {"AutoModel": "a.B"}}, r"'auto_map': no case says it"),
    "other numbers": ("llama", {"quantization_config": {}}, r"'quantization_config': no case says it"),
}


@pytest.mark.usefixtures("building_fails")
@pytest.mark.parametrize(("architecture", "given", "said"), SAID_ELSEWHERE.values(), ids=SAID_ELSEWHERE)
def test_a_config_that_says_what_the_case_says_is_refused(architecture, given, said):
    with pytest.raises(CaseRefused, match=rf"^model\.config may not hold {said}"):
        Scenario(small_case(architecture, config={**tiny_config("llama"), **given}))


class SwitchedOff(PreTrainedConfig):
    model_type = "switched_off"

    def __init__(self, num_experts=0, **kwargs):
        super().__init__(**kwargs)
        self.num_experts = num_experts


def test_a_size_that_the_default_switches_off_may_be_as_it_is():
    assert build(SwitchedOff, {"num_experts": 0}).num_experts == 0
    with pytest.raises(CaseRefused, match="num_experts is -1, must be at least 1"):
        build(SwitchedOff, {"num_experts": -1})


@every_type
def test_a_tiny_model_is_not_refused(architecture):
    Scenario(small_case(architecture)).refuse_large_model()


def test_a_token_beyond_the_vocabulary_is_refused():
    with pytest.raises(CaseRefused, match=r"prompt\.rows holds token 64, beyond the vocabulary of 64"):
        Scenario(small_case(rows=((1, 64),)))


def test_an_unknown_architecture_is_refused_with_suggestions():
    with pytest.raises(BadInput, match=r"unknown architecture 'lama'; did you mean .*llama"):
        Scenario(Case(model=ModelSpec(architecture="lama")))


def test_a_config_that_the_release_refuses_is_not_buildable_or_refused():
    with pytest.raises((NotBuildable, CaseRefused)) as refusal:
        _ = Scenario(small_case(config={**tiny_config("llama"), "hidden_size": 15, "num_attention_heads": 4})).pristine
    assert "\n" not in str(refusal.value)


def test_inputs_are_padded_on_the_left_and_masked():
    inputs = Scenario(small_case(rows=((5,), (6, 7, 8)), pad=9, eos=(2,))).inputs()
    assert inputs["input_ids"].tolist() == [[9, 9, 5], [6, 7, 8]]
    assert inputs["attention_mask"].tolist() == [[0, 0, 1], [1, 1, 1]]


def test_the_encoder_is_padded_on_the_right_and_the_decoder_gets_its_start():
    inputs = Scenario(small_case("t5", rows=((5,), (6, 7)))).inputs()
    assert inputs["input_ids"].tolist() == [[5, 0], [6, 7]]
    assert inputs["attention_mask"].tolist() == [[1, 0], [1, 1]]
    assert inputs["decoder_input_ids"].shape == (2, 1)


def test_rows_can_be_had_alone_without_padding():
    assert Scenario(small_case(rows=((5,), (6, 7, 8)))).inputs([0])["input_ids"].tolist() == [[5]]


def test_nothing_of_the_models_generation_config_can_reach_a_run():
    scenario = Scenario(small_case(max_new_tokens=3, eos=(4, 5), repetition_penalty=1.5))
    given, carried = scenario.generation_config(), scenario.model().generation_config
    assert (given.max_new_tokens, given.eos_token_id, given.repetition_penalty) == (3, [4, 5], 1.5)
    assert carried.eos_token_id is None
    assert not carried.do_sample
    assert scenario.generation_config(max_new_tokens=9).max_new_tokens == 9
