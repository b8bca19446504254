"""Weights that are tied, by names or by patterns, are one weight for good; patterns that cannot tie are refused."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from conformance import upstream
from conformance.build import Scenario
from conformance.building.models import weight_shapes
from conformance.clock import MODEL_CODE
from conformance.compare import compare_steps, crash_difference
from conformance.limits import time_limit
from conformance.outcome import Crash, Outcome
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.sharing import are_one, beyond, place_of, shared
from conformance.snapshots import same
from conformance.tying import Group, subclass
from conformance.verdicts import BEGINS_ALIKE, Comparison, Difference

TIED = family(
    "tied",
    floors={
        "tie: pattern": 0.2,
        "tie: patterns on both sides": 0.1,
        "tie: plain names": 0.05,
        "tie: several targets": 0.05,
    },
    reachable=(
        "tie: a module by its name",
        "tie: embeddings",
        "tie: encoder and decoder",
        "tie: overlapping patterns",
        "wrong pair: source",
        "wrong pair: target",
        "wrong pair: two sources",
    ),
)
NOWHERE = r"no_such_part\.\d+\.weight"
LOADING = "saving and loading"
Tensors = dict[str, torch.Tensor]


@check(TIED)
@applies("the case ties nothing", lambda runs: bool(runs.case.model.tied))
def tied_groups_stay_tied(runs: Runs) -> Comparison:
    """Every group of tied weights is one tensor: as made, copied, in another dtype, and after saving and loading.

    No weight is tied that no pair names. The checkpoint holds each weight once, loading gives the same values, and
    decoding gives what the same model gives with a copy of its own for every name.
    """
    for stage, make in _stages(runs.scenario):
        made = _attempt(make)
        if isinstance(made, Crash):
            return _crashed(runs, stage, made)
        groups = runs.scenario.tied_groups
        apart = next((group for group in groups if not are_one(group.names, made)), None)
        if apart is not None:
            return Comparison.of(Difference("untied", stage, "one tensor under every name", _names(apart), stage))
        if more := _more_than_said(runs.scenario, made):
            got = f"{' and '.join(more)} are one, and no pair says so"
            field = BEGINS_ALIKE if _begin_alike(runs.scenario, more) else "more than said"
            return Comparison.of(Difference("tied", field, "a tensor each", got, stage))
    for rule in (_checkpoint, _reloaded_values, _decoding):
        found = rule(runs)
        if found.differences:
            return found
    return Comparison()


def _more_than_said(scenario: Scenario, made: Any) -> tuple[str, ...]:
    """Weights that are one tensor by none of the case's pairs, and not because a part of the model ties them itself."""
    said = [group.names for group in scenario.tied_groups]
    if not beyond(said, made):
        return ()
    by_itself = shared(subclass(scenario.tied_class.__mro__[1], ())(scenario.tying_config()))
    return beyond([*said, *by_itself], made)


def _begin_alike(scenario: Scenario, names: tuple[str, ...]) -> bool:
    """Whether a pair names a module whose name only begins that of one that has such a weight: `attn`, `attn_norm`."""
    said = {one for pair in scenario.case.model.tied for one in pair if not one.endswith(r"\.")}
    return any(
        re.match(rf"(?:{one})(?=\w)", name) and not re.match(rf"(?:{one})\.", name) for one in said for name in names
    )


def _crashed(runs: Runs, stage: str, crash: Crash) -> Comparison:
    """The crash of a stage; one that the same model without ties has too when it is loaded says so."""
    if stage == LOADING and isinstance(twin := _loaded_without_ties(runs), Crash) and twin.raised_in == crash.raised_in:
        found = crash_difference(crash, "saving works").differences[0]
        return Comparison.of(replace(found, field="loading, tied or not"))
    return crash_difference(crash, f"{stage} works for the same weights untied")


def _loaded_without_ties(runs: Runs) -> Any:
    """The case's model without the case's ties, and as it is after saving and loading; or the crash."""

    def make() -> Any:
        plain = Scenario(runs.case.replace(model=runs.case.model.replace(tied=())))
        model = plain.model()
        return model, reloaded(plain, type(model))[0]

    return runs.once("loaded without ties", lambda: _attempt(make))


@check(TIED, bitwise=True)
@applies("the case ties nothing", lambda runs: bool(runs.case.model.tied))
@applies("the plan has no wrong pair", lambda runs: bool(getattr(runs.case.plan, "wrong", "")))
@applies("no weight is left for a second source", lambda runs: _wrong_pair(runs.scenario) is not None)
def wrong_ties_are_refused(runs: Runs) -> Comparison:
    """A pattern that matches nothing, or a weight tied to two different sources, is an error when the model is made.

    Staying silent would leave weights apart that the author of the patterns believes to be one, or the other way.
    """
    scenario, pair = runs.scenario, _wrong_pair(runs.scenario)
    assert pair is not None
    model_class = subclass(scenario.tied_class.__mro__[1], [*scenario.case.model.tied, pair])
    if isinstance(_attempt(lambda: model_class(scenario.tying_config())), Crash):
        return Comparison()
    what = {
        "target": "an error: the target matches nothing",
        "source": "an error: the source matches nothing",
        "two sources": "an error: one weight has two sources",
    }[runs.case.plan.wrong]
    return Comparison.of(Difference("silent", runs.case.plan.wrong, what, f"a model, with {pair[0]}: {pair[1]}"))


def _wrong_pair(scenario: Scenario) -> tuple[str, str] | None:
    """The wrong pair of the case's plan, made of its weights; None where no second source has the shape."""
    group = scenario.tied_groups[0]
    wrong = scenario.case.plan.wrong
    if wrong == "target":
        return NOWHERE, re.escape(group.source)
    if wrong == "source":
        return re.escape(group.targets[0]), NOWHERE
    shapes = weight_shapes(scenario.architecture.name, scenario.config)
    taken = {name for other in scenario.tied_groups for name in other.names}
    free = [n for n, shape in sorted(shapes.items()) if shape == shapes[group.source] and n not in taken]
    return (re.escape(group.targets[0]), re.escape(free[0])) if free else None


def _stages(scenario: Scenario) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a model goes through, each with how to get it there."""
    yield "making", lambda: scenario.pristine
    yield "copying", scenario.model
    yield "changing the dtype", lambda: scenario.model().to(torch.float64).to(torch.float32)
    yield "tying again", lambda: _tied_again(scenario.model())
    yield LOADING, lambda: reloaded(scenario)[0]


def _tied_again(model: Any) -> Any:
    model.tie_weights()
    return model


def reloaded(scenario: Scenario, loaded: Any = None) -> tuple[Any, Tensors]:
    """The model after `save_pretrained` and `from_pretrained` (of the class that ties), and its stored tensors."""
    from safetensors.torch import load_file

    with tempfile.TemporaryDirectory() as folder:
        upstream.no_progress_bars()
        scenario.model().save_pretrained(folder)
        stored: Tensors = {}
        for file in sorted(Path(folder).glob("*.safetensors")):
            stored |= load_file(file)
        loaded = loaded or scenario.tied_class
        kernel = scenario.case.model.attention
        return loaded.from_pretrained(folder, attn_implementation=kernel, dtype=scenario.pristine.dtype), stored


def _attempt(make: Callable[[], Any]) -> Any:
    """What `make` gives, or the crash."""
    try:
        with MODEL_CODE.running(), time_limit():
            return make()
    except Exception as error:  # noqa: BLE001 - the release under test may raise anything
        return Crash.of(error)


def _names(group: Group) -> str:
    return f"{' and '.join(group.names)} are not"


def _checkpoint(runs: Runs) -> Comparison:
    """As many numbers are stored as the model has different ones: names may change on the way, counts may not."""
    made = runs.once("reloaded", lambda: reloaded(runs.scenario))
    model = runs.scenario.pristine
    kept = {place_of(tensor): tensor.numel() for tensor in model.state_dict(keep_vars=True).values()}
    wanted, got = sum(kept.values()), sum(tensor.numel() for tensor in made[1].values())
    if wanted == got:
        return Comparison()
    return Comparison.of(Difference("length", "checkpoint", f"{wanted} numbers, each weight once", f"{got} numbers"))


def _reloaded_values(runs: Runs) -> Comparison:
    changed = _changed(runs.scenario.pristine, runs.once("reloaded", lambda: reloaded(runs.scenario))[0])
    if not changed:
        return Comparison()
    twin = _loaded_without_ties(runs)
    anyway = [] if isinstance(twin, Crash) else _changed(*twin)
    by_ties = [name for name in changed if name not in anyway]
    field = "loaded weights" if by_ties else "loaded weights, tied or not"
    return Comparison.of(Difference("changed", field, "as they were saved", f"{(by_ties or changed)[0]} differs"))


def _changed(model: Any, loaded: Any) -> list[str]:
    """The weights that are other ones after loading."""
    before, after = model.state_dict(), loaded.state_dict()
    return [name for name in sorted(before.keys() | after.keys()) if not same(before.get(name), after.get(name))]


def _decoding(runs: Runs) -> Comparison:
    """Within the bound: copies lie elsewhere in memory, where a kernel may add in another order."""
    untied = runs.run(runs.call(), model=runs.scenario.model(untied=True))
    if untied.crash or runs.batch.crash:
        if untied.crash or runs.batch.crash is None:
            return Comparison()  # a fault of decoding, which other checks are about
        return crash_difference(runs.batch.crash, "the untied copy decodes")
    return sum((_decoded_row(runs, untied, row) for row in runs.rows), Comparison())


def _decoded_row(runs: Runs, untied: Outcome, row: int) -> Comparison:
    """One row's logits, up to the step after which the two sides go different ways."""
    tokens, others = runs.batch.tokens(row), untied.tokens(row)
    alike = next((n for n, (a, b) in enumerate(zip(tokens, others, strict=False), 1) if a != b), len(tokens))
    got, expected = ([step[row] for step in side.logits[:alike]] for side in (runs.batch, untied))
    return compare_steps("logits", got, expected, runs.noise(row, tokens), f"row {row} ", runs.bound)
