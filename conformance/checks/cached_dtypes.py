"""Numbers of half the size: values are another matter, but decoding may not break."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch

from conformance.architectures import catalogue
from conformance.build import Scenario
from conformance.checks.cached import CACHED
from conformance.clock import MODEL_CODE
from conformance.compare import crash_difference
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison
from conformance.weights import fill

NO_KERNEL = "not implemented for"  # torch, of an operation that a device lacks for a dtype


@check(CACHED, stands_on=["cached-matches-recomputed", "padded-row-matches-alone"])
@applies("the plan asks for no other dtype", lambda runs: getattr(runs.case.plan, "bfloat16", False))
def bfloat16_decodes_too(runs: Runs) -> Comparison:
    """What decodes greedily in float32 raises nothing in bfloat16, made by the release for that dtype.

    Values are not compared.
    """
    call = runs.call(do_sample=False, num_return_sequences=1)
    crash = _raised(runs.scenario.model("float32"), call.arguments())
    if crash is not None:
        return Comparison(not_applicable="the same call raises in float32")
    call = runs.call(do_sample=False, num_return_sequences=1)
    inputs = {name: _halved(value) for name, value in call.inputs.items()}
    try:
        model = _in_bfloat16(runs.scenario)
    except Exception as error:  # noqa: BLE001 - the release may raise anything
        return _told(Crash.of(error), "making it")
    crash = _raised(model, call.replace(inputs=inputs).arguments())
    return Comparison() if crash is None else _told(crash, "decoding")


def _in_bfloat16(scenario: Scenario) -> Any:
    """A model as the release makes it for this dtype: what it keeps in float32 stays so."""
    kind = catalogue.auto_class(scenario.architecture.task)
    with MODEL_CODE.running(), torch.random.fork_rng(devices=[]), time_limit():
        model = kind.from_config(copy.deepcopy(scenario.config), dtype=torch.bfloat16)
    fill(model, scenario.case.model.weight_seed, scenario.case.model.init_scale)
    model.generation_config = scenario.plain_generation_config()
    return model.eval()


def _halved(value: Any) -> Any:
    return value.bfloat16() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _raised(model: Any, arguments: dict[str, Any]) -> Crash | None:
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            model.generate(**arguments)
    except Exception as error:  # noqa: BLE001 - the model under test may raise anything
        return Crash.of(error)
    return None


def _told(crash: Crash, doing: str) -> Comparison:
    if NO_KERNEL in crash.message:
        return Comparison(not_applicable=f"torch has no such operation in bfloat16 here: {crash.message}"[:200])
    found = crash_difference(crash, f"{doing} works in float32").differences[0]
    return Comparison.of(replace(found, where="in bfloat16"))
