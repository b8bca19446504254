"""What a cache holds after an assisted run, against a plain run of the same length."""

from __future__ import annotations

from typing import Any

import torch

from conformance import upstream
from conformance.clock import MODEL_CODE
from conformance.compare import crash_difference, unnumbered
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.programs import contents
from conformance.programs.prepared import STATIC, given_cache, plan_of, settings_of
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

SEED, SIZE = 5, 0.05  # the assistant is the model with its weights disturbed, so that some drafts are accepted
REFUSING = ("utils.", "candidate_generator.", "configuration_utils.")  # where `generate` itself refuses


def grows_in_an_assisted_run(runs: Runs) -> Comparison:
    """The first row with an assistant: the returned cache stores no more than after a plain run."""
    plan = plan_of(runs)
    if not plan.draft or plan.cache not in ("default", *STATIC) or runs.scenario.vocabulary < 4:
        return Comparison(not_applicable="the plan has no assisted run")
    needed = _run(runs, {})
    if isinstance(needed, Crash):
        return Comparison(not_applicable="the plain run raises")
    assistant = runs.scenario.model(noise=(SEED, SIZE))
    assistant.generation_config.num_assistant_tokens = plan.draft
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    kept = _run(runs, {"assistant_model": assistant})
    if isinstance(kept, Crash):
        if kept.raised_in.startswith(REFUSING) and kept.type in ("ValueError", "NotImplementedError"):
            runs.events.add("assisted: refused")
            return Comparison(allowed=[f"generate refuses an assistant here: {kept.message}"[:200]])
        return crash_difference(kept, "the plain run works")
    runs.events.add("assisted: run")
    for path, count in kept.items():
        if path in needed and count > needed[path]:
            got = f"{unnumbered(path)}: {count} numbers a row where {needed[path]} are needed"
            return Comparison.of(Difference("length", "stored states", "as after a plain run", got, "assisted"))
    return Comparison()


def _run(runs: Runs, extras: dict[str, Any]) -> dict[str, int] | Crash:
    model = runs.scenario.model()
    call = runs.call([0], **settings_of(runs))
    given = given_cache(runs, model, call.generation_config)
    if given:
        call.generation_config.cache_implementation = None
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            output = runs.subject.generate(model, call.replace(extras={**call.extras, **given, **extras}))
        return contents.stored(upstream.cache_of(output))
    except Exception as error:  # noqa: BLE001 - whatever a subject raises is its outcome
        return Crash.of(error)
