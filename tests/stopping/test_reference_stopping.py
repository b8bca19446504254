"""The reference's deferred stopping: what it waits for, what it undoes, where it refuses."""

from types import SimpleNamespace

import pytest
import torch
from toolbox import small_case

from conformance import upstream
from conformance.compare import compare_exactly
from conformance.reference.decode import Recorder
from conformance.reference.deferrable import longest, may_defer
from conformance.reference.stop_checks import DeferredStopCheck, StopCheck
from conformance.runs import Runs
from conformance.simulation.deferral import Deferral
from conformance.simulation.late import LateDevice
from conformance.subjects.reference import Reference

IDS = torch.ones(2, 3, dtype=torch.long)
GOING, ENDED = torch.tensor([False, True]), torch.tensor([True, True])
lags = pytest.mark.parametrize("lag", [0, 1, None])


class Keeping:
    def __init__(self):
        self.received, self.ends = [], 0

    def put(self, value):
        self.received.append(value)

    def end(self):
        self.ends += 1


def asked(check, device, *flags, limit=10):
    """What the check answers to these flags, one a step, until it says to stop."""
    answers = []
    for step, flag in enumerate(flags):
        device.begin_forward()
        answers.append(check(flag, torch.full((2,), step), length=4 + step, fits=4 + step < limit))
        if answers[-1]:
            break
    return answers


@lags
def test_it_stops_one_step_late_and_undoes_it(lag):
    with LateDevice(lag) as device:
        streamer = Keeping()
        check = DeferredStopCheck(IDS, max_length=20, streamer=streamer)
        assert asked(check, device, GOING, ENDED, ENDED, ENDED) == [False, False, True]
        assert check.finish() == 1
        assert [tokens.tolist() for tokens in streamer.received] == [[0, 0], [1, 1]]
    assert device.own_step_waits == 0
    assert device.reads == 0


@lags
def test_the_last_step_by_length_is_never_late(lag):
    with LateDevice(lag) as device:
        streamer = Keeping()
        check = DeferredStopCheck(IDS, max_length=6, streamer=streamer)
        assert asked(check, device, GOING, GOING, GOING, GOING) == [False, False, True]
        assert check.finish() == 0
        assert [tokens.tolist() for tokens in streamer.received] == [[0, 0], [1, 1], [2, 2]]


@lags
def test_an_end_in_the_last_step_by_length_is_not_late_either(lag):
    with LateDevice(lag) as device:
        check = DeferredStopCheck(IDS, max_length=5)
        assert asked(check, device, GOING, ENDED, ENDED) == [False, True]
        assert check.finish() == 0


@lags
def test_where_another_step_has_no_place_its_own_flag_is_waited_for(lag):
    with LateDevice(lag) as device:
        check = DeferredStopCheck(IDS, max_length=20)
        assert asked(check, device, GOING, ENDED, ENDED, limit=5) == [False, True]
        assert check.finish() == 0


def test_two_slots_are_filled_in_turn():
    with LateDevice(None) as device:
        check = DeferredStopCheck(IDS, max_length=20, streamer=Keeping())
        asked(check, device, GOING, GOING, GOING)
        assert [slot.tokens.tolist() for slot in check.slots] != [[0, 0], [1, 1]]
        check.finish()
        assert sorted(slot.tokens.tolist() for slot in check.slots) == [[1, 1], [2, 2]]


def test_the_immediate_check_waits_and_undoes_nothing():
    with LateDevice(None) as device:
        streamer = Keeping()
        check = StopCheck(streamer)
        assert asked(check, device, GOING, ENDED, ENDED) == [False, True]
        assert check.finish() == 0
        assert len(streamer.received) == 2
    assert device.reads == 4


def recorded(steps):
    config = SimpleNamespace(output_attentions=False, output_hidden_states=True)
    record = Recorder(SimpleNamespace(config=SimpleNamespace(is_encoder_decoder=False)), config)
    for step in range(steps):
        record.add({"hidden_states": (torch.ones(1),)}, torch.full((1, 2), step), torch.full((1, 2), step))
    return record


@pytest.mark.parametrize(("steps", "left"), [(0, 3), (1, 2), (3, 0)])
def test_undo_forgets_so_many_steps_and_none_for_zero(steps, left):
    record = recorded(3)
    record.undo(steps)
    assert (record.steps, len(record.logits), len(record.states["hidden_states"])) == (left, left, left)


CACHES = {
    "nothing outlives": (SimpleNamespace(is_croppable=False), False, True),
    "can be put back": (SimpleNamespace(is_croppable=True), True, True),
    "cannot": (SimpleNamespace(is_croppable=False), True, False),
    "cannot say": (SimpleNamespace(), True, False),
    "does not show": (None, True, False),
}


@pytest.mark.skipif(upstream.lacks("stopping") is not None, reason="caches of this release cannot say")
@pytest.mark.parametrize(("cache", "outlives", "defers"), CACHES.values(), ids=CACHES)
def test_refused_unless_the_cache_can_be_put_back(cache, outlives, defers):
    config = SimpleNamespace(is_assistant=False, pad_token_id=0)
    outputs, kwargs = {"past_key_values": cache}, {"past_key_values": SimpleNamespace()}
    assert may_defer(outputs, kwargs, config, outlives, 10) is defers


def test_refused_for_an_assistant_and_for_a_pad_id_that_cannot_be_fed():
    for config in (
        SimpleNamespace(is_assistant=True, pad_token_id=0),
        SimpleNamespace(is_assistant=False, pad_token_id=10),
    ):
        assert not may_defer({}, {}, config, False, 10)


def test_room_is_the_smaller_of_static_cache_and_positions():
    runs = Runs(small_case("gpt2"), Reference())
    model = runs.scenario.pristine
    positions = model.config.max_position_embeddings
    assert longest(model, None, 3) == positions
    cache = upstream.handed_to_loop(
        runs.scenario.model(), runs.call(**upstream.static_cache_settings()).arguments()
    ).cache
    assert longest(model, cache, 3) == upstream.fixed_size(cache) == 3 + 4 - 1


SOME = ("llama", "mistral", "lfm2", "t5", "gpt2", "mamba2", "rwkv")


@lags
@pytest.mark.parametrize("architecture", SOME)
def test_equals_stopping_at_once_in_every_field(architecture, lag):
    case = small_case(architecture, rows=((3, 4, 5, 6), (7, 8)), max_new_tokens=8, eos_at=((0, 2), (1, 3)))
    runs = Runs(case, Reference())
    at_once = runs.run(runs.call(), stream=True)
    late = runs.run(runs.call().replace(mechanism="stopping"), stream=True, probes=[Deferral(lag)])
    assert late.crash is None
    assert not compare_exactly(late.fields(stream=True), at_once.fields(stream=True)).differences


def test_it_works_on_a_device_without_events():
    runs = Runs(small_case(max_new_tokens=6, eos_at=((0, 2),)), Reference())
    late = runs.run(runs.call().replace(mechanism="stopping"))
    assert not compare_exactly(late.fields(), runs.run(runs.call()).fields()).differences


def test_sampling_leaves_the_generator_as_stopping_at_once_does():
    case = small_case(max_new_tokens=8, do_sample=True, sample_seed=5, eos=tuple(range(2, 18)))
    runs = Runs(case, Reference())
    late = runs.run(runs.call().replace(mechanism="stopping"), probes=[Deferral(None)])
    at_once = runs.run(runs.call(), probes=[Deferral(None)])
    assert late.extra["deferral"].forwards == at_once.extra["deferral"].forwards + 1
    assert late.rng_after == at_once.rng_after
