"""What scores must be where they are steered, on plain numbers."""

import random

import pytest
import torch
from transformers.generation import logits_process as process

from conformance.plans.steering import Steering
from conformance.steering import warpers
from conformance.steering.rules import Row, scores
from conformance.steering.telling import allowed, config_fields, keywords

NEVER = float("-inf")
LOGITS = torch.tensor([1.0, -2.0, 3.0, 0.5, -1.0])


def row(*ids, new=0, number=0, sampled=False, prompt=None):
    prompt = ids if prompt is None else prompt
    return Row(tuple(ids), tuple(prompt), tuple(prompt), number, new, sampled)


def values(how, at):
    return scores(how, LOGITS, at).values.tolist()


def test_nothing_is_changed_where_nothing_steers():
    assert values(Steering(), row(1, 2)) == LOGITS.tolist()


def test_what_was_said_is_penalised_towards_less():
    assert values(Steering(repetition=2.0), row(1, 2)) == [1.0, -4.0, 1.5, 0.5, -1.0]


def test_what_the_prompt_holds_is_favoured_by_its_own_penalty():
    assert values(Steering(encoder_repetition=2.0), row(4, 2, prompt=(2,))) == [1.0, -2.0, 6.0, 0.5, -1.0]


@pytest.mark.parametrize(
    ("size", "ids", "banned"), [(1, (1, 2), {1, 2}), (2, (1, 2, 1), {2}), (3, (1, 2, 1, 2), {1}), (3, (1,), set())]
)
def test_no_sequence_of_a_size_is_said_twice(size, ids, banned):
    found = values(Steering(ngrams=size), row(*ids))
    assert {token for token, value in enumerate(found) if value == NEVER} == banned


def test_a_word_that_is_the_whole_prompt_and_one_token_counts():
    assert values(Steering(bias=((2, 0),), weight=4.0), row(3, 4))[0] == 5.0
    assert values(Steering(bad_words=((2, 0),)), row(3, 4))[0] == NEVER
    assert values(Steering(bad_words=((2, 0),)), row(3, 4, 1, prompt=(3, 4)))[0] == 1.0


def test_each_row_has_tokens_of_its_own():
    assert allowed(Steering(allowed=(1, 4)), 1, 5) == [0, 2]
    assert values(Steering(allowed=(1, 4)), row(3, number=1)) == [1.0, NEVER, 3.0, NEVER, NEVER]


def test_what_is_allowed_holds_where_all_of_it_is_forbidden():
    assert values(Steering(allowed=(1,), ngrams=1), row(1)) == [NEVER, 0.0, NEVER, NEVER, NEVER]


def test_an_end_that_may_not_be_said_yet_grows_no_likelier():
    how = Steering(eos=(1, 2), min_new=2, decay_after=0, decay=2.0)
    assert values(how, row(3, new=1))[1:3] == [NEVER, NEVER]
    assert values(how, row(3, new=2))[1:3] == [4.0, 12.0]


def test_tokens_are_suppressed_for_ever_or_at_first():
    how = Steering(suppress=(0,), suppress_first=(1,))
    assert values(how, row(3))[:2] == [NEVER, NEVER]
    assert values(how, row(3, new=1))[:2] == [NEVER, -2.0]


def test_warpers_count_only_where_it_is_sampled():
    how = Steering(temperature=0.5, top_k=2)
    assert values(how, row(3)) == LOGITS.tolist()
    assert values(how, row(3, sampled=True)) == [2.0, NEVER, 6.0, NEVER, NEVER]


def test_the_likeliest_tokens_are_kept_up_to_a_mass_or_a_share():
    assert values(Steering(top_p=0.5), row(3, sampled=True))[2] == 3.0
    assert values(Steering(top_p=0.5), row(3, sampled=True)).count(NEVER) == 4
    assert values(Steering(min_p=0.1), row(3, sampled=True)).count(NEVER) == 3


def left(how):
    return {token for token, value in enumerate(values(how, row(3, sampled=True))) if value != NEVER}


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        (Steering(top_h=0.05), {2}),  # the likeliest is kept, whatever its part of the entropy
        (Steering(top_h=0.6), {2}),
        (Steering(top_h=0.8), {2, 0}),
        (Steering(typical_p=0.3), {2}),
        (Steering(typical_p=0.9), {2, 0}),
        (Steering(epsilon_cutoff=0.05), {2, 0, 3}),
        (Steering(epsilon_cutoff=0.99), {2}),
        (Steering(eta_cutoff=0.05), {2, 0, 3}),
        (Steering(eta_cutoff=0.9), {2}),
    ],
)
def test_what_sampling_leaves(how, kept):
    """Probabilities 0.109, 0.005, 0.805, 0.066 and 0.015; surprises 2.22, 5.22, 0.22, 2.72 and 4.22; entropy 0.69."""
    assert left(how) == kept


def installed(name, limit):
    """The release's own processor for one rule."""
    made = {
        "top_h": process.TopHLogitsWarper,
        "top_k": lambda count: process.TopKLogitsWarper(int(count)),
        "top_p": process.TopPLogitsWarper,
        "min_p": process.MinPLogitsWarper,
        "typical_p": process.TypicalLogitsWarper,
        "epsilon_cutoff": process.EpsilonLogitsWarper,
        "eta_cutoff": process.EtaLogitsWarper,
    }
    return made[name](limit)


@pytest.mark.parametrize("seed", range(200))
def test_the_rules_leave_what_the_installed_processors_leave(seed):
    """Two rules on random logits, flat and peaked."""
    torch.manual_seed(seed)
    limits = {name: (3 if name == "top_k" else 0.3) for name in warpers.RULES}
    told = [name for name in limits if name in random.Random(seed).sample(sorted(limits), 2)]
    given = torch.randn(64) * 10 ** (seed % 3 - 1)
    expected = given[None]
    for name in told:
        expected = installed(name, limits[name])(None, expected)
    found = scores(Steering(**{name: limits[name] for name in told}), given, row(3, sampled=True))
    assert bool((found.open | (found.values.isfinite() == expected[0].isfinite())).all())


def test_where_one_rule_is_open_what_a_further_one_makes_of_it_is_too():
    alone = Steering(min_p=float(LOGITS.softmax(-1)[0] / LOGITS.softmax(-1)[2]))
    assert scores(alone, LOGITS, row(3, sampled=True)).open.tolist() == [True, False, False, False, False]
    both = alone.replace(epsilon_cutoff=0.02)
    assert scores(both, LOGITS, row(3, sampled=True)).open.all()
    assert scores(alone.replace(renormalize=True), LOGITS, row(3, sampled=True)).open.all()


def test_what_is_told():
    how = Steering(bias=((1, 3), (0, 3), (1, 3)), eos=(2,), decay=1.5, watermark=True, allowed=(1,))
    told = config_fields(how, (7, 8))
    assert told == {"sequence_bias": [[[8, 3], 4.0], [[3], 4.0]], "exponential_decay_length_penalty": (0, 1.5)}
    assert keywords(how, 5)["prefix_allowed_tokens_fn"](4, None) == [0]


def test_its_tokens_fit_another_vocabulary():
    assert Steering(bias=((1, 9),), suppress=(7,)).within(5).tokens() == (4, 2)
