"""What a cache holds after an assisted run, against a plain run of the same length."""

from __future__ import annotations

from dataclasses import replace

import torch

from conformance import upstream
from conformance.compare import crash_difference, unnumbered
from conformance.plans.rollback import STATIC
from conformance.programs import contents
from conformance.programs.prepared import Raised, generated, plan_of
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

DISTURBED = 0.05  # the assistant is the model with its weights that much larger or smaller: some drafts are accepted


def grows_in_an_assisted_run(runs: Runs) -> Comparison:
    """The first row with an assistant: the returned cache stores no more than after a plain run."""
    plan = plan_of(runs)
    if not plan.draft or plan.cache not in ("default", *STATIC) or not runs.has_default_cache:
        return Comparison(not_applicable="the plan has no assisted run")
    plain = generated(runs, [0], {}, {})
    if isinstance(plain, Raised):
        return Comparison(not_applicable="the plain run raises")
    assistant = runs.scenario.model()
    with torch.no_grad():
        for number, parameter in enumerate(assistant.parameters()):
            parameter.mul_(1 + DISTURBED * (-1) ** number)
    assistant.generation_config.num_assistant_tokens = plan.draft
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    assisted = generated(runs, [0], {}, {"assistant_model": assistant})
    if isinstance(assisted, Raised):
        if assisted.refusal:
            runs.events.add("assisted: refused")
            return Comparison(allowed=[f"generate refuses an assistant here: {assisted.crash.message}"[:200]])
        crashed = crash_difference(assisted.crash, "the plain run works").differences[0]
        return Comparison.of(replace(crashed, where="assisted"))
    runs.events.add("assisted: run")
    if assisted.sequences.shape != plain.sequences.shape:
        return Comparison(not_applicable="the assisted run decodes another number of tokens")
    needed, kept = (contents.stored(contents.visible(upstream.cache_of(run))) for run in (plain, assisted))
    for path, count in kept.items():
        if path in needed and count > needed[path]:
            got = f"{unnumbered(path)}: {count} numbers a row where {needed[path]} are needed"
            return Comparison.of(Difference("length", "stored states", "as after a plain run", got, "assisted"))
    return Comparison()
