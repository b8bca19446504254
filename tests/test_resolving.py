"""End tokens told by place."""

from toolbox import small_case

from conformance.case import parse_case
from conformance.judge import judge
from conformance.plainer import plainer_cases
from conformance.runs import Runs
from conformance.subjects.installed import Installed

ROWS = ((3, 4, 5), (6, 7))


def test_a_row_ends_at_the_step_that_its_end_token_was_told_by():
    case = small_case(rows=ROWS, max_new_tokens=8, eos_at=((1, 2),))
    runs = Runs(case, Installed())
    assert len(runs.case.settings.eos) == 1
    assert runs.case.settings.eos_at == ((1, 2),)
    tokens = runs.alone[1].tokens(0)
    assert tokens.index(runs.case.settings.eos[0]) <= 2


def test_what_is_looked_up_is_kept_so_that_a_replay_looks_nothing_up():
    found = judge(small_case(rows=ROWS, max_new_tokens=8, eos_at=((0, 3), (1, 1))), [], Installed()).case
    assert parse_case(found.to_json()) == found
    assert Runs(found, Installed()).case == found


def test_places_beyond_the_rows_are_left_out():
    assert Runs(small_case(rows=((3,),), eos_at=((2, 0),)), Installed()).case.settings.eos == ()


def test_processors_of_the_case_take_part():
    plain, penalised = (
        Runs(small_case(rows=ROWS, max_new_tokens=8, eos_at=((0, 5),), repetition_penalty=p), Installed())
        for p in (1.0, 9.0)
    )
    for runs in (plain, penalised):
        assert runs.alone[0].tokens(0)[-1] == runs.case.settings.eos[0]


def test_without_its_ids_a_plainer_case_has_no_places_either():
    found = judge(small_case(rows=ROWS, eos_at=((0, 0),)), [], Installed()).case
    assert all(not case.settings.eos_at for case in plainer_cases(found) if not case.settings.eos)
