"""Ops on the simulated accelerator beside the CPU: same values, and the wrapper tells the shape of its value.

In a process of its own, as registering the device changes the whole process.
"""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from toolbox import in_a_process

from conformance.simulation import accelerator

pytestmark = pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))

SCRIPT = dedent("""
    import copy, gc, io, json, pickle, warnings
    from conformance import upstream
    upstream.quiet()
    warnings.simplefilter("ignore")
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    from conformance.simulation.accelerator import devices
    from conformance.simulation.ledger import LEDGER

    def refused(call):
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "not refused"

    def saved(what, **how):
        file = io.BytesIO()
        torch.save(what, file)
        return torch.load(io.BytesIO(file.getvalue()), **how)

    def packed(kind, one):
        given = pack_padded_sequence(one.expand(2, 4, 6), torch.tensor([4, 2]), batch_first=True)
        return pad_packed_sequence(on(kind, one)(given)[0], batch_first=True)[0]

    def on(module, one):
        return copy.deepcopy(module).to(one.device)

    def flat(value):
        found = value if isinstance(value, (tuple, list)) else [value]
        return [tensor for item in found for tensor in ([item] if isinstance(item, torch.Tensor) else flat(item))]

    def plain(tensor):
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        return torch.view_as_real(tensor) if tensor.is_complex() else tensor

    def learned(kind, given):  # a backward is for the first device only
        one = (given.to("sim:0") if given.device.type == "sim" else given.clone()).requires_grad_()
        module = on(kind, one)
        sum(out.exp().sum() for out in flat(module(one))).backward()
        return [tensor.grad.to(given.device) for tensor in (one, *module.parameters())]

    def counted(numbers):  # as on an accelerator
        return numbers.histc(3, 0, 2) if numbers.device.type == "sim" else numbers.flatten().bincount(minlength=3)

    def squared(matrix):
        return matrix.mH @ matrix

    def holds(tensor, call):
        call(tensor)
        return tensor

    torch.manual_seed(0)
    values, complex_values = torch.randn(4, 6), torch.randn(3, 3, dtype=torch.complex64)
    lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
    projected, gru = nn.LSTM(6, 5, proj_size=3), nn.GRU(6, 5, batch_first=True)
    lstm_step, gru_step, linear = nn.LSTMCell(6, 5), nn.GRUCell(6, 5, bias=False), nn.Linear(6, 3)
    told = torch.zeros(5, 1, 3).log_softmax(-1)
    targets, lengths = torch.tensor([[1, 2]]), (torch.tensor([5]), torch.tensor([2]))
    OPS = {
        "lstm": lambda x: on(lstm, x)(x[None]), "projected": lambda x: on(projected, x)(x[None]),
        "gru": lambda x: on(gru, x)(x[None]), "lstm cell": lambda x: on(lstm_step, x)(x),
        "gru cell": lambda x: on(gru_step, x)(x),
        "lstm packed": lambda x: packed(lstm, x[:1]), "gru packed": lambda x: packed(gru, x[:1]),
        "lstm learns": lambda x: learned(lstm, x[None]), "gru learns": lambda x: learned(gru, x[None]),
        "lstm cell learns": lambda x: learned(lstm_step, x), "gru cell learns": lambda x: learned(gru_step, x),
        "ctc": lambda x: F.ctc_loss(told.to(x.device), targets.to(x.device), *lengths),
        "ctc by name": lambda x: F.ctc_loss(told.to(x.device), targets.to(x.device), input_lengths=lengths[0],
                                            target_lengths=lengths[1].to(x.device), reduction="sum"),
        "old weight norm": lambda x: torch.nn.utils.weight_norm(copy.deepcopy(linear)).to(x.device)(x),
        "data": lambda x: holds(nn.Parameter(x.clone()), lambda p: setattr(p, "data", x * 2)),
        "data of another size": lambda x: holds(x.clone(), lambda p: setattr(p, "data", x[:2] * 2)),
        "set_": lambda x: torch.empty(0, device=x.device).set_(x), "t_": lambda x: x.clone().t_() + 0,
        "resize_": lambda x: x.clone().resize_(2, 3), "resize_as_": lambda x: x.clone().resize_as_(x[:2]),
        "transpose_": lambda x: x.clone().transpose_(0, 1), "swapaxes_": lambda x: x.clone().swapaxes_(0, 1),
        "squeeze_": lambda x: x[:1].clone().squeeze_(), "unsqueeze_": lambda x: x.clone().unsqueeze_(1),
        "as_strided_": lambda x: x.clone().as_strided_((2, 2), (6, 1), 3),
        "out": lambda x: torch.add(x, 1, out=torch.empty(0, device=x.device)),
        "two out": lambda x: torch.max(x, 1, out=(torch.empty(0, device=x.device),
                                                  torch.empty(0, dtype=torch.long, device=x.device))),
        "quantile": lambda x: x.quantile(0.3), "nanquantile": lambda x: x.nanquantile(0.5, dim=1, keepdim=True),
        "stft": lambda x: torch.stft(x.flatten(), 8, window=torch.ones(8, device=x.device), return_complex=True),
        "conj": lambda x: complex_values.to(x.device).conj() * 1, "mH": lambda x: squared(complex_values.to(x.device)),
        "conj alone": lambda x: complex_values.to(x.device).conj(),
        "imag": lambda x: complex_values.to(x.device).conj().imag,
        "histogram": lambda x: counted(x.long().clamp(0, 2)),
        "new_tensor": lambda x: x.new_tensor([1, 2]), "new": lambda x: x.new([1.0, 2.0]),
        "saved": saved, "saved by name": lambda x: saved({"a": x})["a"],
        "saved elsewhere": lambda x: saved(x, map_location="cpu").to(x.device),
        "loaded there": lambda x: saved(values, map_location=x.device),
        "loaded there by name": lambda x: saved({"a": values[1]}, map_location=str(x.device))["a"],
        "saved parameter": lambda x: saved(nn.Parameter(x)), "pickled": lambda x: pickle.loads(pickle.dumps(x)),
    }
    beside = {}
    for name, op in OPS.items():
        with devices(2):
            expected, got = flat(op(values)), flat(op(values.to("sim:1")))
            beside[name] = [
                [str(one.device) for one in got], [list(one.shape) == list(two.shape) == list(two.cpu().shape)
                and one.stride() == two.stride() and one.storage_offset() == two.storage_offset()
                for one, two in zip(expected, got, strict=True)],
                [torch.allclose(plain(one), plain(two), rtol=1e-5, atol=1e-6) for one, two in zip(expected, got)],
            ]
    said = {"beside": beside}
    with devices(2, {0: 1000}):
        there = values.to("sim:0")
        said["autocast"] = refused(lambda: torch.autocast("sim", dtype=torch.bfloat16))
        with torch.autocast("sim", enabled=False):
            said["autocast off"] = str((there @ there.T).dtype)
        said["generator"] = refused(lambda: torch.Generator(device="sim:0"))
        given = torch.Generator()
        said["of the cpu"] = [refused(lambda: torch.randn(3, device="sim:0", generator=given)),
                              refused(lambda: torch.multinomial(there.softmax(-1), 1, generator=given))]
        said["load absent"] = refused(lambda: saved(values, map_location="sim:2"))
        shared = torch.empty(0, device="sim:0").set_(there)
        before = LEDGER.held[0]
        shared.resize_(40)
        said["booked"] = [before, LEDGER.held[0], refused(lambda: there.resize_(1000))]
        del there, shared
        said["given back"] = LEDGER.held[0]
        with torch.inference_mode():
            moved = copy.deepcopy(linear).to("sim:0")
            said["inference"] = [str(moved.weight.device), str(moved(values.to("sim:0")).device)]
        module, tied = copy.deepcopy(lstm), copy.deepcopy(linear)
        parameter, recorded = tied.weight, tied(values).sum()
        graph = module(values[None])[0].sum()
        module.to("sim:1"), tied.to("sim:1")
        said["a live graph"] = [str(module.weight_ih_l0.device), tied.weight is parameter, refused(recorded.backward)]
        module.to("cpu")
        module(values[None])[0].sum().backward()
        said["back again"] = module.weight_ih_l0.grad is not None
        try:
            torch.zeros(1000, device="sim:0")
        except RuntimeError:
            pass
        refused(lambda: torch.zeros(3, device="sim:7"))
        refused(lambda: saved(torch.zeros(1000), map_location="sim:0"))
        gc.collect()
        kept = values.to("sim:0")
    with devices(1, {0: 50}):
        said["new books"] = list(torch.sim.mem_get_info(0))
        del kept
        said["freed elsewhere"] = list(torch.sim.mem_get_info(0))
    print(json.dumps(said))
""")
NAMES = [
    "lstm", "projected", "gru", "lstm cell", "gru cell", "lstm packed", "gru packed",
    "lstm learns", "gru learns", "lstm cell learns", "gru cell learns", "ctc", "ctc by name",
    "old weight norm", "data", "data of another size", "set_", "t_", "resize_", "resize_as_", "transpose_", "swapaxes_",
    "squeeze_", "unsqueeze_", "as_strided_", "out", "two out", "quantile", "nanquantile", "stft", "conj", "mH",
    "conj alone", "imag", "histogram", "new_tensor", "new", "saved", "saved by name", "saved elsewhere", "loaded there",
    "loaded there by name", "saved parameter", "pickled",
]  # fmt: skip


@pytest.fixture(scope="module")
def process():
    return in_a_process(SCRIPT)


@pytest.fixture(scope="module")
def said(process):
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_an_op_gives_what_the_cpu_gives_and_says_its_shape(said, name):
    where, shapes, same = said["beside"][name]
    assert set(where) == {"sim:1"}
    assert all(shapes)
    assert all(same)


def test_all_of_them_are_looked_at(said):
    assert sorted(said["beside"]) == sorted(NAMES)


def test_autocast_is_refused_and_off_is_no_matter(said):
    assert said["autocast"].startswith("NotImplementedError: simulated devices have no autocast")
    assert said["autocast off"] == "torch.float32"


def test_a_generator_of_the_cpu_is_refused(said):
    assert "getNewGenerator" in said["generator"]
    assert all("Expected a 'sim' device type for generator but found 'cpu'" in each for each in said["of the cpu"])


def test_a_file_cannot_be_loaded_to_a_device_that_is_not_there(said):
    assert "invalid device ordinal" in said["load absent"]


def test_a_storage_that_grows_is_booked(said):
    before, after, refusal = said["booked"]
    assert (before, after) == (96, 160)
    assert "sim out of memory" in refusal
    assert said["given back"] == 0


def test_a_module_moves_in_inference_mode(said):
    assert said["inference"] == ["sim:0", "sim:0"]


def test_a_module_moves_though_a_graph_is_alive(said):
    device, same, refusal = said["a live graph"]
    assert (device, same) == ("sim:1", True)
    assert "a graph that is older than a move of a parameter in it" in refusal
    assert said["back again"]


def test_refusals_leave_nothing_on_stderr(process):
    assert "Exception ignored" not in process.stderr


def test_devices_start_with_all_their_memory(said):
    assert said["new books"] == [50, 50]
    assert said["freed elsewhere"] == [50, 50]
