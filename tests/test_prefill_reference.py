"""The reference prefill and assisted decoding give what plain decoding gives, and leave alone what they were given."""

import copy

import pytest
import torch
from toolbox import small_case

from conformance import upstream
from conformance.build import Scenario
from conformance.reference import assisted, prefill
from conformance.reference.assisted import decide
from conformance.reference.drafters import Lookup, only_first_layers
from conformance.reference.slices import one_of

CHUNKS = (1, 3, 20)
SOME = ("llama", "gemma2", "lfm2", "t5", "mamba2")
STEPS = 8


def made(architecture, **parts):
    settings = {"rows": ((3, 4, 5, 3, 4, 5, 3),), "max_new_tokens": STEPS, "output_hidden_states": True, **parts}
    return Scenario(small_case(architecture, **settings))


def plain(scenario, **config):
    with torch.no_grad():
        return scenario.model().generate(**scenario.call(**config).arguments())


def close(one, other):
    return all(torch.allclose(a, b, atol=2e-4) for a, b in zip(one, other, strict=True))


def run(module, scenario, *, config=None, **parts):
    with torch.no_grad():
        return module.generate(scenario.model(), scenario.call(**(config or {})).replace(**parts))


@pytest.mark.parametrize("architecture", SOME)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunks_equal_the_whole(architecture, chunk):
    scenario = made(architecture)
    expected, got = plain(scenario), run(prefill, scenario, config={"prefill_chunk_size": chunk})
    assert torch.equal(got.sequences, expected.sequences)
    assert close(got.logits, expected.logits)


@pytest.mark.parametrize("noise", [None, (1, 0.3)], ids=["same", "noisy"])
@pytest.mark.parametrize("architecture", SOME)
def test_drafts_change_nothing(architecture, noise):
    scenario = made(architecture)
    helper = scenario.model(noise=noise)
    helper.generation_config.num_assistant_tokens = 3
    before = copy.deepcopy(vars(helper.generation_config))
    expected, got = plain(scenario), run(assisted, scenario, extras={"assistant_model": helper})
    assert torch.equal(got.sequences, expected.sequences)
    assert close(got.logits, expected.logits)
    assert vars(helper.generation_config) == before
    name = "decoder_hidden_states" if scenario.encoder_decoder else "hidden_states"
    for mine, theirs in zip(got[name], expected[name], strict=True):
        assert close(mine, theirs)


@pytest.mark.parametrize(
    "asked", [{"prompt_lookup_num_tokens": 3}, {"assistant_early_exit": 1}], ids=["lookup", "exit"]
)
def test_other_drafters_change_nothing(asked):
    scenario = made("llama")
    expected, got = plain(scenario), run(assisted, scenario, config=asked)
    assert torch.equal(got.sequences, expected.sequences)
    assert close(got.logits, expected.logits)


@pytest.mark.parametrize("only_new", [False, True])
@pytest.mark.parametrize("module", [prefill, assisted])
@pytest.mark.parametrize("architecture", ["llama", "mamba2", "mistral"])
def test_a_cache_is_continued(architecture, module, only_new):
    scenario, cached = made(architecture), 4
    expected, inputs = plain(scenario), scenario.inputs()
    first = {name: tensor[:, :cached] for name, tensor in inputs.items()}
    cache = upstream.cache_of(run(prefill, scenario, config={"max_new_tokens": 1}, inputs=first))
    if only_new:
        inputs["input_ids"] = inputs["input_ids"][:, cached:]
    config = {"prompt_lookup_num_tokens": 2} if module is assisted else {"prefill_chunk_size": 2}
    parts = {"extras": {upstream.cache_argument(scenario.model()): cache}, "inputs": inputs}
    got = run(module, scenario, config=config, options={"cached": cached, "only_new": only_new}, **parts)
    assert torch.equal(got.sequences[:, -STEPS:], expected.sequences[:, -STEPS:])
    assert close(got.logits, expected.logits)
    assert upstream.cache_of(got) is cache


@pytest.mark.parametrize("config", [{}, {"prefill_chunk_size": 2}])
def test_embeddings_are_taken(config):
    scenario = made("llama", rows=((3, 4, 5), (6,)))
    inputs = scenario.inputs()
    ids = inputs.pop("input_ids")
    inputs["inputs_embeds"] = scenario.model().get_input_embeddings()(ids).detach()
    got = run(prefill, scenario, config=config, inputs=inputs)
    assert torch.equal(got.sequences, plain(scenario).sequences[:, 3:])


def test_several_rows_are_refused_as_upstream_does():
    scenario = made("llama", rows=((3, 4), (5, 6)))
    with pytest.raises(ValueError, match="batch_size = 1") as raised:
        run(assisted, scenario, config={"prompt_lookup_num_tokens": 2})
    assert upstream.refusal("ValueError", str(raised.value)) == "several rows"


@pytest.mark.parametrize("drawn", [True, False])
def test_drafted_sampling_keeps_the_distribution(drawn):
    """The share of every token over many decisions is its own chance, whoever drafts."""
    torch.manual_seed(3)
    scores, chances = torch.tensor([[0.0, 1.0, 2.0, -1.0]]), torch.tensor([0.4, 0.3, 0.1, 0.2])
    count, total = torch.zeros(4), 4000
    for _ in range(total):
        draft = int(torch.multinomial(chances, 1)) if drawn else 0
        token, accepted = decide(scores, draft, chances if drawn else None, do_sample=True)
        count[int(token)] += 1
        assert int(token) == draft or not accepted
    own = scores.softmax(-1)[0]
    assert float(((count - total * own) ** 2 / (total * own)).sum()) < 22  # chi squared, 3 degrees: 1 in 15,000


def test_greedy_decisions_follow_the_scores():
    scores = torch.tensor([[0.0, 1.0]])
    assert [bool(decide(scores, draft, None, do_sample=False)[1]) for draft in (1, 0, None)] == [True, False, False]
    assert all(int(decide(scores, draft, None, do_sample=False)[0]) == 1 for draft in (1, 0, None))


def test_lookup_takes_what_followed_the_longest_earlier_match():
    ids = torch.tensor([[1, 2, 9, 2, 7, 1, 2]])
    assert Lookup(2, 2).propose(ids, 8)[0] == [9, 2]
    assert Lookup(4, 1).propose(ids, 3)[0] == [9, 2, 7]
    assert Lookup(4, 2).propose(torch.tensor([[1]]), 3)[0] == []


def test_layers_come_back_after_an_error():
    model = made("llama").model()
    cut = only_first_layers(model, 1)
    cut.__enter__()
    assert len(model.model.layers) == 1
    cut.gen.close()
    assert len(model.model.layers) == 2


def test_what_a_model_without_keys_records_is_cut_by_its_steps_only():
    outputs = {"attentions": (torch.arange(3.0 * 4).reshape(1, 3, 4),)}
    assert one_of(outputs, 1, 3, 5, first=False)["attentions"][0].tolist() == [[[4.0, 5.0, 6.0, 7.0]]]


def test_one_of_several_has_its_own_states_and_keys():
    outputs = {"hidden_states": (torch.arange(6.0).view(1, 3, 2),), "attentions": (torch.ones(1, 1, 3, 5),)}
    got = one_of(outputs, 1, 3, 5, first=False)
    assert got["hidden_states"][0].tolist() == [[[2.0, 3.0]]]
    assert got["attentions"][0].shape == (1, 1, 1, 4)
    assert one_of(outputs, 0, 3, 5, first=True)["hidden_states"][0].shape == (1, 3, 2)


def test_streams_may_come_first():
    outputs = {"hidden_states": (torch.arange(24.0).view(4, 1, 3, 2),)}
    assert one_of(outputs, 1, 3, 5, first=False)["hidden_states"][0].flatten().tolist() == [2, 3, 8, 9, 14, 15, 20, 21]


def test_states_of_several_streams_are_cut_by_their_steps():
    outputs = {"hidden_states": (torch.arange(24.0).view(1, 3, 4, 2),)}
    assert one_of(outputs, 1, 3, 5, first=False)["hidden_states"][0].tolist() == [
        torch.arange(8.0, 16.0).view(1, 4, 2).tolist()
    ]
