"""The simulated accelerator, in a process of its own: registering it changes the whole process."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from toolbox import in_a_process

from conformance.simulation import accelerator

pytestmark = pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))

SCRIPT = dedent("""
    import copy, json
    from conformance import upstream
    upstream.quiet()
    import torch
    from conformance.simulation.accelerator import devices, register
    from conformance.simulation.late import LateDevice
    from conformance.simulation.ledger import LEDGER, OutOfMemory
    from conformance.simulation.meta_reads import MetaReads
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    from toolbox import small_case
    from conformance.build import Scenario

    said = {}
    def refused(call):
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "not refused"

    register()
    said["absent outside"] = [torch.sim.is_available(), torch.sim.device_count()]
    plain = torch.arange(12.0).view(3, 4)
    with devices(2, {1: 1000}):
        said["present inside"] = [torch.sim.is_available(), torch.sim.device_count(), str(torch.device(1))]
        there = plain.to("sim:0")
        said["transfers"] = LEDGER.transfers["cpu", "sim:0"]
        said["same values"] = torch.equal((there @ there.T).cpu(), plain @ plain.T)
        said["made there"] = [str(torch.zeros(2, device="sim:1").device), torch.tensor([1, 2], device="sim:0").tolist()]
        said["a view shares"] = (there[0].fill_(7.0), there.cpu()[0].tolist())[1]
        said["two devices"] = refused(lambda: there + plain.to("sim:1"))
        said["cpu"] = refused(lambda: there + plain)
        said["meta"] = refused(lambda: there @ torch.empty(4, 4, device="meta"))
        said["a number"] = refused(lambda: there + torch.tensor(1.0))
        said["an index on the cpu"] = refused(lambda: there[torch.tensor([0])])
        absent = {
            "to": lambda: plain.to("sim:2"), "from another": lambda: there.to("sim:2"),
            "no such": lambda: there.to("sim:9"),
            "made": lambda: torch.zeros(2, device="sim:2"), "like": lambda: torch.zeros_like(there, device="sim:2"),
            "current": lambda: torch.sim.set_device(2), "memory": lambda: torch.sim.mem_get_info(2),
        }
        said["absent devices"] = {name: refused(call) for name, call in absent.items()}
        made = {f"{kind}_like": getattr(torch, f"{kind}_like") for kind in ("empty", "zeros", "ones", "rand", "randn")}
        made |= {f"new_{kind}": lambda one, device, make=f"new_{kind}": getattr(one, make)((2,), device=device)
                 for kind in ("empty", "zeros", "ones")}
        made["full_like"] = lambda one, device: torch.full_like(one, 2.0, device=device)
        made["randint_like"] = lambda one, device: torch.randint_like(one, 3, device=device)
        made["new_full"] = lambda one, device: one.new_full((2,), 2.0, device=device)
        made["new_empty_strided"] = lambda one, device: one.new_empty_strided((2,), (1,), device=device)
        made["to"] = lambda one, device: one.to(device)
        places = ("meta", "cpu", "sim:1", "sim:0")
        said["made elsewhere"] = {name: [str(make(there, device=place).device) for place in places]
                                  for name, make in made.items()}
        moves = sum(LEDGER.transfers.values())
        there.to("meta")
        said["moves to meta"] = sum(LEDGER.transfers.values()) - moves
        padded, lengths = torch.rand(2, 4, 3), torch.tensor([4, 2])
        packed = pack_padded_sequence(padded.to("sim:0"), lengths, batch_first=True)
        again, back = pad_packed_sequence(packed, batch_first=True)
        right = pad_packed_sequence(pack_padded_sequence(padded, lengths, batch_first=True), batch_first=True)[0]
        said["packed"] = [str(one.device) for one in (packed.data, packed.batch_sizes, again, back)]
        said["packed values"] = torch.equal(again.cpu(), right)
        said["lengths there"] = refused(
            lambda: torch._VF._pack_padded_sequence(padded.to("sim:0"), lengths.to("sim:0"), True))
        with MetaReads() as watch:
            pack_padded_sequence(padded.to("sim:0"), lengths, batch_first=True)
        said["packed mixes"] = dict(watch.mixed)
        before = torch.sim.mem_get_info(1)
        some = torch.zeros(100, device="sim:1")
        said["memory"] = [before, torch.sim.mem_get_info(1), refused(lambda: torch.zeros(200, device="sim:1"))]
        del some
        said["freed"] = torch.sim.mem_get_info(1)[0]
        torch.manual_seed(3)
        one = torch.rand(4, device="sim:0").tolist()
        torch.manual_seed(3)
        said["seeded"] = one == torch.rand(4).tolist()
        before = torch.get_rng_state()
        for draw in (lambda device: torch.randint(9, (8,), device=device), lambda device: torch.rand(4, device=device)):
            torch.sim.manual_seed(3)
            one, two = draw("sim:0").tolist(), draw("sim:1").tolist()
            said["draws of its own"] = one == two and torch.equal(torch.get_rng_state(), before)
        said["addresses of its own"] = there.data_ptr() != there.to("sim:1").data_ptr() != there.cpu().data_ptr()
        said["copied deeply"] = str(copy.deepcopy([there])[0].device)
        with LateDevice():
            flags = [torch.zeros(()), torch.zeros(())]
            events = [torch.Event(device="sim:0"), torch.sim.Event(device="sim:1")]
            for index in (0, 1):
                flags[index].copy_(torch.ones((), device=f"sim:{index}"), non_blocking=True)
            for event in events:
                event.record()
            events[1].synchronize()
            said["its own copies"] = [flag.isnan().item() for flag in flags]
            torch.sim.synchronize()
            said["all copies"] = [flag.isnan().item() for flag in flags]
        syncs = LEDGER.syncs
        there.sum().item()
        said["synchronised"] = LEDGER.syncs - syncs
        model = Scenario(small_case(max_new_tokens=5)).model()
        model.lm_head.weight = model.model.embed_tokens.weight
        moved = copy.deepcopy(model).to("sim:0")
        said["ties"] = moved.lm_head.weight is moved.model.embed_tokens.weight
        call = Scenario(small_case(max_new_tokens=5)).call()
        expected = model.generate(**call.arguments())
        inputs = {name: tensor.to("sim:0") for name, tensor in call.inputs.items()}
        got = moved.generate(**call.replace(inputs=inputs).arguments())
        said["generates"] = torch.equal(expected.sequences, got.sequences.cpu())
        said["bitwise"] = all(torch.equal(a, b.cpu()) for a, b in zip(expected.logits, got.logits))
    with MetaReads() as watch:
        torch.mm(torch.ones(2, 2), torch.empty(2, 2, device="meta"))
        torch.empty(2, device="meta") + 1
        torch.ones(2).to("meta")
        on_meta = torch.empty(2, device="meta")
        on_meta.is_pinned(), on_meta.is_same_size(torch.ones(2)), torch.randint_like(on_meta, 3, device="cpu")
    said["meta reads"] = [dict(watch.reads), dict(watch.mixed)]
    print(json.dumps(said))
""")


@pytest.fixture(scope="module")
def said():
    return json.loads(in_a_process(SCRIPT).stdout.splitlines()[-1])


def test_devices_are_there_only_inside(said):
    assert said["absent outside"] == [False, 0]
    assert said["present inside"] == [True, 2, "sim:1"]


def test_it_computes_what_the_cpu_computes(said):
    assert said["same values"]
    assert said["made there"] == ["sim:1", [1, 2]]
    assert said["a view shares"] == [7.0] * 4


def test_a_model_generates_on_it_bitwise_the_same(said):
    assert said["generates"]
    assert said["bitwise"]
    assert said["ties"]


@pytest.mark.parametrize("other", ["two devices", "cpu", "meta"])
def test_an_op_across_devices_is_refused(said, other):
    assert said[other].startswith("RuntimeError: Expected all tensors to be on the same device")


@pytest.mark.parametrize("other", ["a number", "an index on the cpu"])
def test_numbers_and_indices_may_be_on_the_cpu(said, other):
    assert said[other] == "not refused"


def test_memory_has_a_limit(said):
    before, after, refusal = said["memory"]
    assert before == [1000, 1000]
    assert after == [600, 1000]
    assert "sim out of memory" in refusal
    assert said["freed"] == 1000


def test_transfers_and_synchronisations_are_counted(said):
    assert said["transfers"] == 1
    assert said["synchronised"] == 1


def test_the_same_seed_draws_the_same(said):
    assert said["seeded"]


def test_each_device_draws_from_a_generator_of_its_own(said):
    assert said["draws of its own"]


def test_each_device_has_addresses_of_its_own(said):
    assert said["addresses of its own"]
    assert said["copied deeply"] == "sim:0"


def test_an_event_stands_for_the_copies_from_its_device(said):
    assert said["its own copies"] == [True, False]
    assert said["all copies"] == [False, False]


def test_only_what_reads_meta_is_counted(said):
    assert said["meta reads"] == [{"aten::mm": 1}, {}]


def test_a_device_that_is_not_there_is_refused(said):
    assert len(said["absent devices"]) == 7
    assert all("invalid device ordinal" in refusal for refusal in said["absent devices"].values())


def test_what_is_made_elsewhere_is_there(said):
    assert len(said["made elsewhere"]) == 13
    assert all(found == ["meta", "cpu", "sim:1", "sim:0"] for found in said["made elsewhere"].values())
    assert said["moves to meta"] == 0


def test_lengths_of_packed_sequences_are_on_the_cpu(said):
    assert said["packed"] == ["sim:0", "cpu", "sim:0", "cpu"]
    assert said["packed values"]
    assert said["lengths there"].startswith("RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor")
    assert said["packed mixes"] == {}
