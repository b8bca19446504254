"""When a failure of one subject is the same as another's."""

from types import SimpleNamespace

import pytest

from conformance.judge import Verdicts, alike
from conformance.verdicts import Difference, Verdict


def crash(got, raised_in=""):
    return Difference("crash", "crash", "no exception", got, raised_in=raised_in)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (crash("KeyError: 'a' (in x.f)", "KeyError in x.f"), crash("KeyError: 'a' (in y.g)", "KeyError in y.g"), True),
        (crash("KeyError: 'a' (in x.f)", "KeyError in x.f"), crash("KeyError: 'b' (in x.f)", "KeyError in x.f"), True),
        (crash("KeyError: 'a' (in x.f)", "KeyError in x.f"), crash("KeyError: 'b' (in y.g)", "KeyError in y.g"), False),
        (crash("KeyError: 'a'"), crash("KeyError: 'b'"), False),
        (Difference("values", "logits", "1", "2"), Difference("values", "logits", "1", "3"), True),
        (Difference("values", "logits", "1", "2"), Difference("values", "scores", "1", "2"), False),
        (Difference("values", "logits", "1", "2"), crash("KeyError: 'a'"), False),
    ],
    ids=[
        "said elsewhere",
        "something else said by the same function",
        "something else said elsewhere",
        "something else said nobody knows where",
        "another value",
        "another field",
        "another kind",
    ],
)
def test_exceptions_are_alike_by_what_they_say_or_where_and_values_by_their_field(one, other, same):
    assert alike(one, other) is same


VALUES = Verdict("fail", differences=(Difference("values", "logits", "1", "2"),))
IN_MODEL = Verdict("fail", differences=(crash("RuntimeError: sizes", "RuntimeError in modeling_blt.forward"),))
IN_LOOP = Verdict("fail", differences=(crash("RuntimeError: sizes", "RuntimeError in decode.loop"),))


@pytest.mark.parametrize(
    ("subject", "below", "verdict", "explained"),
    [
        ("installed", VALUES, VALUES, True),
        ("installed", VALUES, IN_MODEL, False),
        ("installed", IN_LOOP, IN_MODEL, True),
        ("my-own", VALUES, IN_MODEL, True),
        ("my-own", VALUES, IN_LOOP, False),
    ],
)
def test_other_values_below_explain_a_crash_only_of_a_model_in_another_loop(subject, below, verdict, explained):
    judging = Verdicts(SimpleNamespace(subject=SimpleNamespace(name=subject)))
    assert judging._explains(below, verdict) is explained
