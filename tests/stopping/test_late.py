"""The late device: what is read too early is wrong, and every wait is counted."""

import numpy as np
import pytest
import torch

from conformance.simulation.late import LateDevice


def sent(source, event=True):
    """A slot into which `source` is on its way, and the event recorded after the copy."""
    slot, mark = torch.zeros_like(source), torch.Event(device="cpu")
    slot.copy_(source, non_blocking=True)
    if event:
        mark.record()
    return slot, mark


@pytest.mark.parametrize("source", [torch.tensor(True), torch.tensor([3, 4]), torch.tensor([0.5])], ids=str)
def test_a_slot_is_poisoned_until_its_event_is_synchronised(source):
    with LateDevice():
        slot, event = sent(source)
        assert not torch.equal(slot, source)
        assert not event.query()
        event.synchronize()
        assert event.query()
        assert torch.equal(slot, source)


def test_an_event_recorded_before_the_copy_does_not_stand_for_it():
    with LateDevice():
        event = torch.Event(device="cpu")
        event.record()
        slot, _ = sent(torch.tensor(True), event=False)
        event.synchronize()
        assert not slot


def test_what_is_copied_is_the_source_as_it_was():
    with LateDevice():
        source = torch.tensor([1, 2])
        slot, event = sent(source)
        source += 5
        event.synchronize()
        assert slot.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("lag", "landed"), [(0, [True, True, True]), (1, [False, True, True]), (2, [False, False, True])]
)
def test_a_copy_lands_by_itself_after_as_many_forwards_as_the_lag(lag, landed):
    with LateDevice(lag) as device:
        slot, _ = sent(torch.tensor(True))
        seen = [bool(slot)]
        for _ in range(2):
            device.begin_forward()
            seen.append(bool(slot))
    assert seen == landed


def test_without_a_lag_nothing_lands_by_itself():
    with LateDevice() as device:
        slot, _ = sent(torch.tensor(True))
        for _ in range(5):
            device.begin_forward()
        assert not slot


@pytest.mark.parametrize(
    "told", [{"kwargs": {"non_blocking": True}}, {"args": (None, True)}], ids=["named", "in place"]
)
def test_a_copy_by_to_is_late_as_well(told):
    with LateDevice() as device:
        host = torch.tensor([7]).to("cpu", *told.get("args", ()), **told.get("kwargs", {}))
        event = torch.Event(device="cpu")
        event.record()
        assert host.tolist() != [7]
        event.synchronize()
        assert host.tolist() == [7]
    assert device.copies == 1


def test_a_later_copy_into_the_same_slot_lands_last():
    with LateDevice():
        slot = torch.zeros((), dtype=torch.long)
        slot.copy_(torch.tensor(1), non_blocking=True)
        slot.copy_(torch.tensor(2), non_blocking=True)
        event = torch.Event(device="cpu")
        event.record()
        event.synchronize()
        assert int(slot) == 2


READS = {
    "item": lambda tensor: tensor.sum().item(),
    "bool": lambda tensor: bool(tensor.any()),
    "int": lambda tensor: int(tensor.sum()),
    "float": lambda tensor: float(tensor.sum()),
    "tolist": lambda tensor: tensor.tolist(),
    "if": lambda tensor: 1 if tensor.sum() == 3 else 0,
    "in": lambda tensor: 3 in tensor,
    "cpu": lambda tensor: tensor.cpu().tolist(),
    "to": lambda tensor: tensor.to("cpu").tolist(),
    "equal": lambda tensor: torch.equal(tensor, tensor),
    "numpy": lambda tensor: tensor.numpy(),
    "asarray": lambda tensor: np.asarray(tensor),
    "str": lambda tensor: str(tensor),
    "format": lambda tensor: f"{tensor.sum()}",
    "slice": lambda tensor: tensor[: (tensor == 1).sum()],
    "where": lambda tensor: torch.where(tensor == 1),
    "nonzero": lambda tensor: tensor.nonzero(),
    "unique": lambda tensor: tensor.unique(),
    "unique_consecutive": lambda tensor: torch.unique_consecutive(tensor),
    "bincount": lambda tensor: tensor.bincount(),
    "repeat_interleave": lambda tensor: tensor.repeat_interleave(tensor),
    "repeat_interleave of counts": lambda tensor: torch.repeat_interleave(tensor),
    "masked_select": lambda tensor: tensor.masked_select(tensor == 1),
    "index of booleans": lambda tensor: tensor[tensor == 1],
    "write by booleans": lambda tensor: tensor.__setitem__(tensor > 0, torch.ones(2, dtype=torch.int64)),
    "write into the host's": lambda tensor: torch.zeros(2, dtype=torch.int64, device="cpu").__setitem__(
        0, tensor.sum()
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_of_reading_the_device_counts_once(read):
    tensor = torch.tensor([1, 2])
    with LateDevice() as device:
        read(tensor)
    assert device.reads == 1


def test_reading_what_is_on_the_host_counts_nothing():
    with LateDevice() as device:
        slot, event = sent(torch.tensor([3, 4]))
        event.synchronize()
        slot.tolist()
        slot.clone()[0].item()
        host = torch.tensor([5]).cpu()
        before = device.reads
        host.tolist()
    assert device.reads == before == 1


def test_work_on_the_device_counts_nothing():
    with LateDevice() as device:
        tensor = torch.arange(6).view(2, 3)
        torch.cat([tensor, tensor]).sum().to(torch.float32)
        torch.where(tensor > 1, tensor, 0)
        tensor.repeat_interleave(2, dim=0)
        tensor[tensor > 1] = 7
        tensor[:, 1:3] = torch.ones_like(tensor[:, :2])
    assert device.reads == 0


def test_waiting_for_the_step_just_issued_counts_where_another_step_follows():
    with LateDevice() as device:
        device.begin_forward()
        _, event = sent(torch.tensor(True))
        device.begin_forward()
        event.synchronize()  # of the step before
        _, own = sent(torch.tensor(True))
        device.begin_forward()
        assert device.own_step_waits == 0
        own.synchronize()
        _, last = sent(torch.tensor(True))
        last.synchronize()
        assert device.own_step_waits == 0  # nothing has followed so far
        device.begin_forward()
    assert device.own_step_waits == 1


def test_nothing_is_late_or_replaced_outside():
    event = torch.Event
    with LateDevice():
        assert torch.Event is not event
    assert torch.Event is event
    slot = torch.zeros(2)
    assert slot.copy_(torch.ones(2), non_blocking=True).tolist() == [1, 1]


def test_it_is_put_back_after_an_error():
    event = torch.Event
    with pytest.raises(RuntimeError, match="inside"), LateDevice():
        raise RuntimeError("inside")
    assert torch.Event is event


def test_reading_a_part_of_a_buffer_of_slots_waits_for_nothing():
    with LateDevice() as device:
        flags, event = torch.zeros(2, dtype=torch.bool), torch.Event(device="cpu")
        flags[1].copy_(torch.tensor(True), non_blocking=True)
        event.record()
        event.synchronize()
        assert bool(flags[1])
    assert device.reads == 0


def test_what_a_slot_is_taken_apart_into_is_on_the_host_too():
    with LateDevice() as device:
        slot, event = sent(torch.tensor([3, 4]))
        event.synchronize()
        assert [part.item() for part in slot.split(1)] == [part.item() for part in slot.unbind()] == [3, 4]
    assert device.reads == 0


def test_a_copy_to_the_host_that_blocks_is_waited_for():
    with LateDevice() as device:
        torch.zeros(2, device="cpu").copy_(torch.ones(2))
        assert device.reads == 1
        torch.zeros(2, device="cpu").copy_(torch.ones(2, device="cpu"))
    assert device.reads == 1


def test_a_copy_that_blocks_counts_whatever_made_the_destination():
    with LateDevice() as device:
        there = torch.ones(2, device=torch.device("cpu"))
        torch.zeros(2).copy_(there)
        assert device.reads == 1
        torch.zeros(4)[1:3].copy_(there)
        assert device.reads == 2
        torch.zeros(2).copy_(torch.tensor([1.0, 2.0]) + 1)  # from the host to the host
        torch.empty_like(there).copy_(there)
        torch.zeros(2).to(there.device).copy_(there)  # to the device, and there
        device.begin_forward()
        torch.zeros(2).copy_(there)  # the model's own
    assert device.reads == 2


def test_what_was_made_without_naming_a_device_is_read_as_the_devices():
    """A loop that was written for a CPU makes its flags so; on an accelerator it would raise."""
    with LateDevice() as device:
        assert torch.zeros(2).sum().item() == 0
    assert device.reads == 1


@pytest.mark.parametrize("lag", [1, None])
@pytest.mark.parametrize("polls", [1, 3])
def test_an_event_that_is_asked_again_and_again_is_over_in_the_end(lag, polls):
    with LateDevice(lag, polls) as device:
        slot, event = sent(torch.tensor(True))
        assert [event.query() for _ in range(polls + 1)] == [False] * polls + [True]
        assert slot
        device.begin_forward()
    assert device.own_step_waits == 1


def test_asking_for_the_step_before_once_a_step_is_no_wait():
    with LateDevice(None, 1) as device:
        _, event = sent(torch.tensor(True))
        assert not event.query()
        device.begin_forward()
        assert event.query()
        device.begin_forward()
    assert device.own_step_waits == 0
