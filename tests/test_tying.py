"""What patterns of tied weights mean, the models made with them, and the strategy that draws them."""

import itertools
import re
from contextlib import nullcontext

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from toolbox import small_case
from transformers import LlamaForCausalLM, PreTrainedModel

from conformance import upstream
from conformance.architectures.apply import build
from conformance.architectures.shrink import tiny_config, tiny_config_of
from conformance.architectures.sizes import Sizes
from conformance.build import Scenario
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, CaseRefused, NotBuildable
from conformance.judge import judge
from conformance.plainer import plainer_cases
from conformance.strategies.alike import fits, modules
from conformance.strategies.cases import cases
from conformance.strategies.tying import KINDS, room, shapes_of, tied_weights
from conformance.subjects.installed import Installed
from conformance.tying import PLAIN, Group, WrongTies, elsewhere, matching, resolve, untie
from conformance.tying import shapes_of as shapes_in

SHAPES = {f"h.{n}.{part}.weight": shape for n in range(4) for part, shape in (("up", (4, 2)), ("down", (2, 4)))}
UP_OF = [f"model.layers.{n}.mlp.up_proj.weight" for n in range(3)]
UP = [f"h.{n}.up.weight" for n in range(4)]


def test_names_patterns_and_modules_mean_groups():
    assert resolve([(UP[1], UP[0])], SHAPES) == (Group(UP[0], (UP[1],)),)
    assert resolve([(r"h\.(?!0\.)\d+\.up", UP[0])], SHAPES) == (Group(UP[0], tuple(UP[1:])),)
    assert resolve([(r"h\.1\.", r"h\.0\.")], SHAPES) == (
        Group("h.0.down.weight", ("h.1.down.weight",)),
        Group(UP[0], (UP[1],)),
    )
    assert resolve([(r"h\.\d\.up", UP[0])], SHAPES) == (Group(UP[0], tuple(UP[1:])),)  # its own source among them
    assert resolve([("h.1", "h.0")], SHAPES) == resolve([(r"h\.1\.", r"h\.0\.")], SHAPES)
    assert resolve([(r"h\.[23]\.up", r"h\.[01]\.up")], SHAPES) == (Group(UP[0], (UP[2],)), Group(UP[1], (UP[3],)))


def test_the_name_of_a_module_means_that_module_only():
    norm = {f"h.{n}.up_norm.weight": (2,) for n in (0, 1, 10)}
    shapes = SHAPES | norm | {"h.10.up.weight": (4, 2)}
    assert resolve([("h.1.up", "h.0.up")], shapes) == (Group(UP[0], (UP[1],)),)
    assert resolve([("h.1.up_norm", "h.0.up_norm")], shapes) == (Group("h.0.up_norm.weight", ("h.1.up_norm.weight",)),)
    with pytest.raises(WrongTies, match="matches no weight"):
        resolve([("h.1.u", "h.0.up")], shapes)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_pairs_is_of_no_consequence(order):
    pairs = [(UP[1], UP[0]), (UP[2], UP[1]), (r"h\.[23]\.up\.weight", UP[0])]
    assert resolve([pairs[n] for n in order], SHAPES) == (Group(UP[0], tuple(UP[1:])),)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("h.9.up", UP[0])], r"the target pattern 'h.9.up' matches no weight"),
        ([(UP[1], "h.9.up")], r"the source pattern 'h.9.up' matches no weight"),
        ([(r"h\.[123]\.up", r"h\.[01]\.down")], "2 sources cannot be dealt out evenly to 3 targets"),
        ([(UP[1], "h.0.down.weight")], r"h.1.up.weight and h.0.down.weight are of shape \[4, 2\] and \[2, 4\]"),
        ([(UP[1], UP[0]), (UP[1], UP[2])], "h.1.up.weight would have two sources, h.0.up.weight and h.2.up.weight"),
        ([("h.(", UP[0])], r"'h.\(' is no regular expression"),
    ],
)
def test_patterns_that_tie_nothing_or_too_much_are_refused(pairs, message):
    with pytest.raises(WrongTies, match=message):
        resolve(pairs, SHAPES)


def scenario_with(tied, name="llama"):
    model = ModelSpec(architecture=name, config=tiny_config(name, Sizes(layers=3)), tied=tied)
    return Scenario(Case(model=model, prompt=Prompt(rows=((3, 4),)), settings=Settings(max_new_tokens=2)))


def test_a_tied_model_shares_and_its_untied_copy_does_not():
    scenario = scenario_with(((r"model\.layers\.1\.", r"model\.layers\.0\."),))
    tied, copied = scenario.model(), scenario.model(untied=True)
    mlp = [layer.mlp.up_proj.weight for layer in tied.model.layers]
    apart = [layer.mlp.up_proj.weight for layer in copied.model.layers]
    assert mlp[0] is mlp[1]
    assert mlp[0] is not mlp[2]
    assert apart[0] is not apart[1]
    assert torch.equal(apart[0], apart[1])
    assert len({p.data_ptr() for p in untie(tied).parameters()}) == len(list(tied.parameters()))


def test_a_case_with_wrong_patterns_is_refused_with_the_pattern():
    with pytest.raises(CaseRefused, match="matches no weight of the model"):
        _ = scenario_with((("model.layers.7", "model.layers.0"),)).pristine


def test_ties_move_to_another_model_where_they_are_names():
    names = ("a.weight", "b.weight", "c.weight")
    assert elsewhere(((r"h\.1\.w", "h.0.w"), ("h.2.w", r"h\.1\.w")), names) == (
        (r"a\.weight", "b.weight"),
        ("c.weight", r"a\.weight"),
    )
    assert elsewhere(((r"h\.\d\.w", "h.0.w"),), names) == ()


# The classes of dots3_note and emu3 are of the text part alone; the blocks of deepseek_v4 differ in buffers.
@pytest.mark.parametrize(
    "name", ["llama", "gpt2", "bart:seq2seq", "t5", "mixtral", "mamba2", "dots3_note", "emu3", "deepseek_v4"]
)
@settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_ties_fit_the_model(name, data):
    config = tiny_config(name, Sizes(layers=data.draw(st.integers(1, 4))))
    pairs = data.draw(tied_weights(architecture=name, config=config))
    scenario = Scenario(Case(model=ModelSpec(architecture=name, config=config, tied=pairs)))
    assert scenario.tied_groups
    with torch.no_grad():
        scenario.model().generate(**scenario.inputs(), generation_config=scenario.generation_config())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, deadline=None, database=None)
@given(st.data())
def test_each_kind_can_be_asked_for(kind, data):
    name = "bart:seq2seq" if kind == "encoder-decoder" else "llama"
    config = tiny_config(name, Sizes(layers=4))
    assert fits(kind, shapes_of(name, config))
    assert data.draw(tied_weights(architecture=name, config=config, kinds=[kind]))


def test_impossible_ties_are_refused_loudly():
    config = tiny_config("llama")
    with pytest.raises(BadInput, match=r"no weights for encoder-decoder"):
        tied_weights(architecture="llama", config=config, kinds=["encoder-decoder"])
    with pytest.raises(BadInput, match="unknown kind of tie 'blocks'; did you mean block"):
        tied_weights(architecture="llama", config=config, kinds=["blocks"])


def test_shapes_name_every_weight_by_each_of_its_names():
    scenario = scenario_with((("lm_head.weight", "model.embed_tokens.weight"),))
    assert {"lm_head.weight", "model.embed_tokens.weight"} <= shapes_in(scenario.pristine).keys()


def test_a_real_family_that_ties_by_patterns_means_what_we_make_of_them(tmp_path):
    """DiffusionGemma ties its encoder to its decoder: each group is one tensor, stored once, also when loaded."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, "DiffusionGemmaConfig"):
        pytest.skip("this release has no DiffusionGemma")
    config_class = transformers.DiffusionGemmaConfig
    more = {"num_experts": 2, "top_k_experts": 2, "moe_intermediate_size": 16, "global_head_dim": 16}
    absent = {f"text_config.{name}": value for name, value in more.items()}  # by default
    config = build(config_class, {**tiny_config_of(config_class), **absent}, arguments=tuple(absent))
    made = transformers.DiffusionGemmaForBlockDiffusion(config)
    groups = resolve(list(type(made.model)._tied_weights_keys.items()), shapes_in(made.model))
    made.save_pretrained(tmp_path)
    loaded = transformers.DiffusionGemmaForBlockDiffusion.from_pretrained(tmp_path)
    assert len(groups) > 20
    for model in (made, loaded):
        weights = dict(model.model.named_parameters(remove_duplicate=False))
        assert all(len({weights[name].data_ptr() for name in group.names if name in weights}) <= 1 for group in groups)
    stored = load_file(tmp_path / "model.safetensors")
    different = {tensor.data_ptr(): tensor.numel() for tensor in made.state_dict().values()}
    assert sum(tensor.numel() for tensor in stored.values()) == sum(different.values())


def test_what_is_tied_becomes_plainer_until_it_is_one_name_tied_to_another():
    case = scenario_with(((r"model\.layers\.[12]\.mlp", r"model\.layers\.0\.mlp"), (UP_OF[1], UP_OF[0]))).case
    offered = [plain_case.model.tied for plain_case in plainer_cases(case) if plain_case.model.tied != case.model.tied]
    assert () in offered
    assert ((UP_OF[1], UP_OF[0]),) in offered
    assert all(len(tied) <= 1 for tied in offered)
    assert any(PLAIN.fullmatch(tied[0][0]) for tied in offered if tied)


def first_difference():
    case = small_case(family="tied", tied=((UP_OF[1], UP_OF[0]),))
    return judge(case, ["tied-groups-stay-tied"], Installed()).verdicts["tied-groups-stay-tied"].differences[0]


@pytest.mark.parametrize(
    ("when", "field"),
    [
        (lambda _: True, "loaded weights, tied or not"),
        (lambda kind: kind.__name__.startswith("Tied"), "loaded weights"),
    ],
    ids=["always", "only where weights are tied"],
)
def test_loading_that_changes_weights_without_ties_too_is_not_told_of_ties(when, field, monkeypatch):
    right = LlamaForCausalLM.from_pretrained.__func__

    def from_pretrained(cls, *args, **kwargs):
        model = right(cls, *args, **kwargs)
        if when(cls):
            model.model.norm.weight.data += 1.0
        return model

    monkeypatch.setattr(LlamaForCausalLM, "from_pretrained", classmethod(from_pretrained))
    difference = first_difference()
    assert (difference.kind, difference.field) == ("changed", field)


def test_loading_that_raises_without_ties_too_is_not_told_of_ties(monkeypatch):
    def from_pretrained(*_, **__):
        raise RuntimeError("no")

    monkeypatch.setattr(LlamaForCausalLM, "from_pretrained", classmethod(from_pretrained))
    difference = first_difference()
    assert (difference.kind, difference.field) == ("crash", "loading, tied or not")


ATTENTION = tuple(f"model.decoder.layers.{n}.self_attn" for n in (1, 0))
NORM = tuple(f"{name}_layer_norm" for name in ATTENTION)


def tied_by(matching, monkeypatch):
    """The release ties what this says that its patterns mean."""
    right = PreTrainedModel.get_expanded_tied_weights_keys

    def expanded(self, all_submodels=False):
        if all_submodels or not type(self).__name__.startswith("Tied"):
            return right(self, all_submodels)
        names, pairs = shapes_in(self), self._tied_weights_keys.items()
        return {t: s for pair in pairs for t, s in zip(*(matching(pattern, names) for pattern in pair), strict=True)}

    monkeypatch.setattr(PreTrainedModel, "get_expanded_tied_weights_keys", expanded)


def carelessly(pattern, names):
    """A name as the beginning of every name that goes on in any way."""
    return sorted(name for name in names if re.match(pattern, name))


@pytest.mark.parametrize(
    ("pairs", "meaning", "seen"),
    [
        ([ATTENTION], carelessly, [("tied", "names that begin alike")]),
        ([ATTENTION], matching, []),
        ([ATTENTION, NORM], carelessly, []),
    ],
    ids=["a module beside it is tied too", "only the module", "the other by a pair of its own"],
)
def test_a_module_beside_the_one_that_is_named_keeps_its_own_weights(pairs, meaning, seen, monkeypatch):
    tied_by(meaning, monkeypatch)
    config = tiny_config("bart", Sizes(layers=2))
    case = small_case("bart", config=config, family="tied", tied=tuple(pairs))
    found = judge(case, ["tied-groups-stay-tied"], Installed()).verdicts["tied-groups-stay-tied"].differences
    assert [(difference.kind, difference.field) for difference in found] == seen


@pytest.mark.parametrize(("name", "module"), [("bart", "self_attn"), ("qwen2_moe", "mlp.shared_expert"), ("llama", "")])
def test_modules_with_a_name_that_others_begin_with_come_first(name, module):
    offered = modules(shapes_of(name, tiny_config(name, Sizes(layers=2))))
    assert module in {part for _, _, part in offered}
    if module:
        assert "" not in {part for _, _, part in offered}


def test_ties_with_which_the_model_of_the_release_cannot_run_are_left_out():
    """It makes the bias of a tied module as long as its weight is high, and a `Conv1D` is the other way round."""
    config = tiny_config("gpt2", Sizes(layers=3))
    every, running = room("gpt2", config, running=False), room("gpt2", config)
    assert {"block", "module"} <= set(every) - set(running)
    assert {"name", "pattern", "chain", "embeddings"} <= set(running)
    config = tiny_config("llama")
    assert room("llama", config) == room("llama", config, running=False)


def test_a_config_that_refuses_tied_weights_is_given_none():
    drawn = []

    @settings(max_examples=5, database=None, derandomize=True)
    @given(cases("tied", "dbrx"))
    def draw(case):
        drawn.append(case)

    draw()
    refuses = upstream.why_not_tied(Scenario(drawn[0]).config) is not None  # the first releases check no config
    assert {bool(case.model.tied) for case in drawn} == {not refuses}
    case = small_case("dbrx", tied=(("lm_head.weight", "transformer.wte.weight"),))
    with pytest.raises(NotBuildable, match="refuses tied weights") if refuses else nullcontext():
        Scenario(case).model()
