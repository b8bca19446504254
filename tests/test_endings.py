"""Where a row has to end, and that `generate` is told so."""

import random

import pytest
import torch
from toolbox import small_case

from conformance import events
from conformance.build import Scenario
from conformance.case import Settings
from conformance.checks.cached import CACHED
from conformance.endings import Ending, ending_of, text_of
from conformance.errors import CaseRefused
from conformance.resolving import resolved
from conformance.stopping_settings import RowStops, own_criteria
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference


def test_tokens_read_as_letters_of_their_own():
    assert [text_of(token) for token in (0, 1, 26, 27, 675)] == ["aaa", "aab", "aba", "abb", "azz"]
    assert len({text_of(token) for token in range(4096)}) == 4096


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, None),
        ({"max_new_tokens": 3}, Ending(2, "length")),
        ({"eos": (7,)}, Ending(1, "eos")),
        ({"eos": (9,), "max_new_tokens": 3}, Ending(2, "eos")),
        ({"row_stops": ((0, 1), (1, 0))}, Ending(1, "criterion")),
        ({"row_stops": ((1, 0),)}, None),
        ({"eos": (9,), "row_stops": ((0, 2),)}, Ending(2, "eos")),
        ({"stop": (text_of(7),)}, Ending(1, "criterion")),
        ({"stop": (text_of(5)[-1] + text_of(4)[0],)}, Ending(0, "criterion")),
        ({"stop": (text_of(5),)}, None),
    ],
)
def test_a_row_ends_where_the_first_reason_is(parts, expected):
    assert ending_of(Settings(**{"max_new_tokens": 8, **parts}), 0, [5], [4, 7, 9]) == expected


def test_stop_strings_end_where_the_installed_criterion_says():
    rng = random.Random(1)
    for _ in range(100):
        tokens = [rng.randrange(40) for _ in range(12)]
        text = "".join(map(text_of, tokens))
        start = rng.randrange(len(text) - 5)
        settings = Settings(max_new_tokens=64, stop=(text[start : start + rng.randint(1, 6)], "zz"))
        (criterion,) = own_criteria(settings, [0], 1, 40)
        done = [bool(criterion(torch.tensor([tokens[: n + 1]]), None)) for n in range(1, len(tokens))]
        first = done.index(True) if True in done else None
        expected = ending_of(settings, 0, tokens[:1], tokens[1:])
        assert (expected and expected.step) == first


@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_strings_told_by_keyword_end_rows_as_the_criterion_does(architecture):
    case = small_case(architecture, rows=((3, 4), (5, 6)), max_new_tokens=6, eos=(39,), stop_at=((0, 2), (1, 1)))
    case = resolved(Scenario(case)).case
    seen = []
    for told in (False, True):
        scenario = Scenario(case.replace(settings=case.settings.replace(stop_by_keyword=told)))
        arguments = scenario.call().arguments(own_loop=True)
        assert ("tokenizer" in arguments, "stopping_criteria" in arguments) == (told, not told)
        for subject in (Installed(), Reference()):
            with torch.no_grad():
                seen.append(subject.generate(scenario.model(), scenario.call()).sequences.tolist())
    assert seen == [seen[0]] * 4
    ends = [scenario.ending(row, seen[0][row][scenario.width() :]) for row in (0, 1)]
    assert "criterion" in {end.by for end in ends}


def test_a_call_is_told_once_what_ends_a_row():
    scenario = Scenario(small_case(stop=("abg",), stop_by_keyword=True, row_stops=((0, 1),)))
    arguments = scenario.call().arguments(own_loop=True)
    assert [type(criterion) for criterion in arguments["stopping_criteria"]] == [RowStops]
    assert arguments["stop_strings"] == ["abg"]
    assert len(scenario.call().arguments()["stopping_criteria"]) == 2


def test_rows_stop_at_steps_of_their_own_however_often_they_are_repeated():
    stops = RowStops([1, None, 0], start=4)
    ids = torch.zeros(6, 5, dtype=torch.long)
    assert stops(ids, None).tolist() == [False, False, False, False, True, True]
    assert stops(torch.zeros(3, 6, dtype=torch.long), None).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, {"max_new_tokens": 4, "max_length": None}),
        ({"limit": "max_length"}, {"max_new_tokens": None, "max_length": 7}),
        ({"limit": "both"}, {"max_new_tokens": 4}),
        ({"limit": "neither"}, {"max_new_tokens": 4}),
        ({"limit": "neither", "max_new_tokens": 20}, {"max_new_tokens": None, "max_length": None}),
        ({"min_new_tokens": 2}, {"min_new_tokens": 2}),
        ({"min_new_tokens": 2, "min_as_length": True}, {"min_length": 5}),
        ({"eos": (7,), "forced_eos": True}, {"forced_eos_token_id": [7]}),
        ({"forced_eos": True}, {"forced_eos_token_id": None}),
        ({"eos": (7,), "against_eos": "begin suppress"}, {"begin_suppress_tokens": [7]}),
        ({"returned": 2}, {"num_return_sequences": None}),
        ({"returned": 2, "do_sample": True}, {"num_return_sequences": 2}),
        ({"max_time": True}, {"max_time": 100_000.0}),
    ],
)
def test_generate_is_told(parts, told):
    config = Scenario(small_case(**parts)).generation_config()
    assert {name: getattr(config, name) for name in told} == told


@pytest.mark.parametrize("limit", ["max_new_tokens", "max_length", "both", "neither"])
@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_the_limit_holds_however_it_is_told(limit, architecture):
    steps = 20 if limit == "neither" else 4
    scenario = Scenario(small_case(architecture, rows=((3, 4), (5,)), limit=limit, max_new_tokens=steps))
    for rows, width in ((None, 2), ([1], 1)):
        call = scenario.call(rows)
        sequences = scenario.model().generate(**call.arguments()).sequences
        assert sequences.shape[1] == (1 if scenario.encoder_decoder else width) + steps


def test_places_become_tokens_strings_and_tokens_that_nobody_says():
    case = small_case(rows=((3, 4), (5, 6)), max_new_tokens=4, eos_at=((1, 2),), eos_unused=1, stop_at=((0, 0),))
    scenario = resolved(Scenario(case))
    settings, said = scenario.case.settings, resolved(Scenario(case.replace(settings=Settings(max_new_tokens=4))))
    rows = said.model().generate(**said.call().arguments()).sequences[:, 2:].tolist()
    assert settings.eos[0] == rows[1][2]
    assert settings.eos[1] not in {token for row in rows for token in row}
    assert settings.stop == (text_of(rows[0][0]),)


def test_a_pad_token_beyond_the_vocabulary_is_for_one_row_only():
    Scenario(small_case(pad=500, eos=(7,)))
    for parts in ({"rows": ((3,), (4,))}, {"do_sample": True, "returned": 2}):
        with pytest.raises(CaseRefused, match=r"settings\.pad"):
            Scenario(small_case(pad=500, eos=(7,), **parts))


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, set()),
        ({"limit": "both"}, {"limit: both"}),
        ({"min_new_tokens": 2, "min_as_length": True}, {"least: min_length"}),
        ({"min_new_tokens": 2, "eos_at": ((0, 1),)}, {"least: min_new_tokens", "least: holds back an end token"}),
        ({"eos": (7,), "forced_eos": True, "pad": 7}, {"eos: forced", "pad: an end token"}),
        ({"eos": (7,), "forced_eos": True, "against_eos": "bad words"}, {"eos: a bad word"}),
        ({"forced_eos": True, "against_eos": "suppress", "pad": None}, {"pad: not given"}),
        ({"eos": (7, 8), "pad": 500}, {"eos: several", "pad: beyond the vocabulary"}),
        ({"stop": ("a",), "row_stops": ((0, 1),)}, {"criterion: strings", "criterion: of rows"}),
        ({"stop": ("a",), "stop_by_keyword": True}, {"criterion: strings by keyword"}),
        ({"returned": 2, "max_time": True}, {"criterion: time"}),
        ({"returned": 2, "do_sample": True}, {"sequences: several for a row"}),
    ],
)
def test_what_is_told_is_counted(parts, told):
    assert events.told(Settings(max_new_tokens=4, **parts), 64) == told


def test_ways_of_ending_have_floors():
    assert {"stop: eos first", "stop: eos last", "stop: criterion", "stop: rows differ"} <= set(CACHED.floors)
    assert set(events.TOLD) <= set(CACHED.reachable)
