"""From a shrunk failure to a finding: what it needs, and whether it is one model type's own."""

from __future__ import annotations

from dataclasses import replace

from conformance.architectures.media import takes_media
from conformance.architectures.ropes import rope_of, stretched
from conformance.architectures.shrink import tiny_config
from conformance.architectures.sizes import Sizes
from conformance.build import Scenario
from conformance.case import Case, ModelSpec, Plan
from conformance.failures import Failure, same_failure
from conformance.findings import Finding
from conformance.signature import PLAINEST, PLAINEST_LEARNED, Signature, kinds_of, traits
from conformance.subjects import Subject
from conformance.tying import elsewhere

# Weights of one shape in the plainest model of a type: where a fault of tying is tried on it.
ALIKE = {"llama": tuple(f"model.layers.{n}.mlp.{part}_proj.weight" for n in (0, 1) for part in ("gate", "up"))}


def settle(failure: Failure, subject: Subject, repeatable: bool) -> Finding:
    """The finding of a shrunk failure. A fault that shows on a plainest type is told of that type.

    The plainest type of all is tried first, then those with the same cache kinds.
    """
    own, kinds = failure.case.model_name, kinds_of(failure.case)
    plainest = (
        dict.fromkeys((PLAINEST["full",], PLAINEST.get(kinds), PLAINEST_LEARNED.get(kinds))) if repeatable else {}
    )
    for architecture in filter(None, plainest):
        plain = (
            failure
            if architecture == own
            else same_failure(failure.key, on_plainest(failure.case, architecture), subject)
        )
        if plain is not None:
            return _finding(
                replace(plain, index=failure.index, source=failure.source), "any", subject.name, "difference"
            )
    if repeatable and own != failure.case.model.architecture:  # a class, for which the type stands idle: the plainest
        alike = same_failure(failure.key, on_plainest(failure.case, PLAINEST["full",], own_class=True), subject)
        failure = replace(alike, index=failure.index, source=failure.source) if alike else failure
    return _finding(failure, own, subject.name, "difference" if repeatable else "not-repeatable")


def as_drawn(failure: Failure, subject: str) -> Finding:
    """The finding of a failure that there was no time to shrink, nor to see whether it is one type's own."""
    return _finding(failure, failure.case.model_name, subject, "difference")


def on_plainest(case: Case, architecture: str, *, own_class: bool = False) -> Case:
    """The case with the plainest model of another type in its model's place; a scaling of its positions stays.

    own_class: a class that decodes by itself stays what runs; else that type's model takes its place as well.
    """
    sizes, rope = Sizes(), rope_of(case.model.config)
    config = tiny_config(architecture, sizes)
    model = case.model.replace(
        architecture=architecture,
        config={**config, **(stretched(architecture, rope, config) if rope else {})},
        tied=elsewhere(case.model.tied, ALIKE.get(architecture, ())),
    )
    return _moved(case, model, sizes.vocabulary, case.plan if own_class else None)


def on_model_of(case: Case, other: Case) -> Case:
    """The case with another's model in its model's place."""
    return _moved(case, other.model, Scenario(other).vocabulary, other.plan)


def _moved(case: Case, model: ModelSpec, vocabulary: int, other: Plan | None) -> Case:
    """The case with this model: tokens wrap around, and what is told by place is looked up again, since it is another
    token there. A class that decodes by itself is the one of the other plan.
    """
    rows = tuple(tuple(token % vocabulary for token in row) for row in case.prompt.rows)
    settings = case.settings
    if settings.eos_at or settings.eos_unused:
        settings = settings.replace(eos=())
    if settings.stop_at:
        settings = settings.replace(stop=())
    plan = None if case.plan is None else case.plan.on_model_of(other).within(vocabulary)
    images = case.prompt.images if takes_media(model.architecture) else 0
    prompt = case.prompt.replace(rows=rows, images=images)
    return case.replace(model=model, prompt=prompt, settings=settings, plan=plan, fingerprint=None)


def _finding(failure: Failure, scope: str, subject: str, kind: str) -> Finding:
    key, case, difference = failure.key, failure.case, failure.difference
    signature = Signature(
        check=key.check,
        kind=key.kind if kind == "difference" else kind,
        field=key.field,
        raised_in=key.raised_in,
        cache=kinds_of(case),
        needs=traits(case),
        scope=scope,
    )
    return Finding(
        signature=signature,
        case=case.replace(fingerprint=Scenario(case).fingerprint),
        expected=difference.expected,
        got=difference.got,
        where=difference.where,
        first_seen=failure.source,
        kind=kind,
        subject=subject,
    )
