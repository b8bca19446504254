"""Traces that deferral may leave beside the outcome: each broken copy is found on one case made for it."""

from functools import wraps
from unittest.mock import patch

import pytest
import torch
from toolbox import CHECKS_OF, small_case
from zoo import late_marks, late_traces

from conformance import upstream
from conformance.judge import judge
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

MATCHES, STREAMS = "deferred-stop-matches-immediate", "deferred-stop-streams-each-token-once"
CONTINUES, WAITS = "deferred-cache-continues-like-immediate", "deferral-never-waits-for-its-own-step"
REFUSES, ERROR = "deferral-refuses-when-it-must", "no-trace-after-an-error"
EARLY = {"rows": ((3, 4, 5, 6), (7, 8)), "max_new_tokens": 8, "eos_at": ((0, 2), (1, 3))}
SAMPLED = {"do_sample": True, "sample_seed": 5, "eos": tuple(range(2, 18)), "eos_at": ()}
LONG = {"rows": (tuple(range(3, 15)),), "eos_at": ()}
STREAMED = {"streamed": True, "lag": 2}
PROCESSOR = {"cache": "fresh", "raises": "processor", "raises_at": 2}
TOO_MANY = {"raises_at": 0}
STREAMER = {"raises": "streamer", "raises_at": 2}


def case_of(plan, architecture="llama", **settings):
    return small_case(architecture, family="stopping", plan=plan, **{**EARLY, **settings})


TRACES = (
    (late_traces.all_is_streamed_at_the_end, STREAMS, "held back", case_of(STREAMED)),
    (late_traces.the_end_comes_before_the_last_token, STREAMS, "streamed after the end", case_of(STREAMED, eos_at=())),
    (late_traces.tokens_are_streamed_as_floats, STREAMS, "type of what is streamed", case_of(STREAMED)),
    (late_traces.cache_loses_a_token_after_an_error, ERROR, "left.layers.keys", case_of(PROCESSOR)),
    (late_traces.generator_is_another_after_an_error, ERROR, "rng", case_of(PROCESSOR, **SAMPLED)),
    (late_traces.stream_is_ended_after_an_error, ERROR, "ends of the RaisingStreamer", case_of(STREAMER)),
    (late_traces.stream_goes_on_after_an_error, ERROR, "calls of the RaisingStreamer", case_of(STREAMER)),
    (late_traces.model_keeps_a_mark, MATCHES, "model.config.late", case_of({})),
    (late_traces.a_module_stays_in_training_mode, MATCHES, "model.model.embed_tokens.training", case_of({})),
    (late_traces.a_module_keeps_an_attribute, MATCHES, "model.model.embed_tokens.seen", case_of({})),
    (late_traces.a_hook_stays_registered, MATCHES, "model._forward_hooks", case_of({})),
    (late_traces.a_weight_moves, MATCHES, "model.model.embed_tokens._parameters.weight", case_of({})),
    (late_traces.a_module_is_marked_after_an_error, ERROR, "model.deferring", case_of(PROCESSOR)),
    (late_traces.stop_check_is_kept_for_the_next_call, MATCHES, "sequences", case_of({"again": True})),
    (late_traces.stop_check_is_kept_after_an_error, ERROR, "sequences", case_of({**PROCESSOR, "again": True})),
    (
        late_traces.error_of_the_step_too_many_comes_out,
        ERROR,
        "step too many",
        case_of({"raises": "processor", **TOO_MANY}),
    ),
    (
        late_traces.error_of_the_step_too_many_comes_out,
        ERROR,
        "step too many",
        case_of({"raises": "criterion", "cache": "fresh", **TOO_MANY}),
    ),
    (late_traces.flag_is_copied_to_plain_memory_as_well, WAITS, "values read by the host", case_of({"lag": 2})),
    (late_traces.own_step_is_polled, WAITS, "waits", case_of({"lag": 2, "polls": 3})),
    (late_traces.rows_are_counted_at_every_step, WAITS, "values read by the host", case_of({})),
    (late_traces.deferred_without_a_copy, WAITS, "values read by the host", case_of({})),
    (late_traces.deferred_without_a_copy, REFUSES, "deferral", case_of({"assistant": True})),
    (late_marks.flag_is_assigned_to_the_hosts, WAITS, "values read by the host", case_of({})),
    (late_marks.finished_rows_are_looked_for, WAITS, "values read by the host", case_of({})),
    (late_marks.another_cache_is_returned, CONTINUES, "cache", case_of({"cache": "fresh"})),
    (late_marks.a_switch_of_torch_stays_on, MATCHES, "process.deterministic algorithms", case_of({})),
    (
        late_traces.pad_beyond_the_vocabulary_is_fed,
        MATCHES,
        "step too many",
        case_of({"pad_beyond": True}, rows=((3, 4, 5), (6, 7)), eos_at=((0, 1), (1, 2))),
    ),
)


def fields(case, subject=Reference):
    """check → the field of its first difference."""
    return {n: v.differences[0].field for n, v in judge(case, CHECKS_OF["stopping"], subject()).failures().items()}


@pytest.mark.parametrize(("planted", "check", "field", "case"), TRACES, ids=lambda part: getattr(part, "__name__", ""))
def test_a_planted_trace_is_found_by_its_check(planted, check, field, case):
    with planted():
        assert fields(case).get(check) == field


@pytest.mark.parametrize("lag", [1, 2])
def test_a_loop_that_polls_the_step_before_comes_to_an_end_and_is_right(lag):
    with late_traces.event_is_polled():
        assert fields(case_of({**STREAMED, "lag": lag, "polls": 4})) == {}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="this release has none")
@pytest.mark.parametrize("hook", ["processor", "criterion"])
def test_the_release_lets_the_error_of_a_hook_in_the_step_too_many_out(hook):
    assert fields(case_of({"raises": hook, **TOO_MANY}), Installed) == {ERROR: "step too many"}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="caches of this release record in other ways")
def test_recording_that_is_cropped_at_the_end_only_is_found():
    with late_traces.recording_is_cropped_at_the_end_only():
        assert fields(case_of({"cache": "fresh"}, "mistral", **LONG)) == {CONTINUES: "recording"}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="caches of this release cannot say")
def test_a_fault_is_seen_where_the_release_has_one_of_its_own():
    """The release asks such a cache for a word that it does not have, and raises: no excuse for another subject."""
    with late_traces.a_cache_without_the_word_is_not_refused():
        assert fields(case_of({"cache": "fresh", "words": "none"})) == {REFUSES: "deferral"}


class DrawsTwice(Installed):
    """The installed release, which takes one random number more than the undone step has."""

    def generate(self, model, call):
        output = super().generate(model, call)
        if call.mechanism == "stopping":
            torch.rand(1)
        return output


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="this release has none")
def test_one_draw_of_the_undone_step_is_allowed_and_no_other():
    case = case_of({}, **SAMPLED)
    verdict = judge(case, [MATCHES], Installed()).verdicts[MATCHES]
    assert verdict.status == "allowed"
    assert "has drawn one" in verdict.reason
    assert fields(case, DrawsTwice) == {MATCHES: "rng"}


class DrawsInForward(Installed):
    """The installed release with a model that draws in each forward, as some routers do."""

    def generate(self, model, call):
        forward = model.forward

        @wraps(forward)
        def drawing(*args, **kwargs):
            torch.rand(1)
            return forward(*args, **kwargs)

        with patch.object(model, "forward", drawing):
            return super().generate(model, call)


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="this release has none")
def test_a_model_that_draws_itself_may_have_drawn_in_the_undone_step_too():
    verdict = judge(case_of({}), [MATCHES], DrawsInForward()).verdicts[MATCHES]
    assert verdict.status == "allowed"
    assert "random numbers" in verdict.reason
