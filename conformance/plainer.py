"""Reset, one by one, the settings that a shrunk failure does not need; what is left makes its signature."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from conformance.architectures.options import chosen_options
from conformance.architectures.ropes import rope_of, unstretched
from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, NotBuildable
from conformance.failures import Failure, same_failure
from conformance.subjects import Subject
from conformance.tying import PLAIN, Pairs

# Places stay as long as what they tell: on another model it is looked up again there. They go with it, or it would come
# back on this one.
TOLD_BY_PLACE: dict[str, dict[str, Any]] = {"eos": {"eos_at": (), "eos_unused": 0}, "stop": {"stop_at": ()}}

IN_ROWS = ("eos_at", "stop_at", "row_stops")


def plainer(failure: Failure, subject: Subject, deadline: float) -> Failure:
    """The same failure with every setting at its plainest value that it does without, as far as time allows.

    What is not to be spared is tried again only once all else was tried: it is rarely spared a moment later, and where
    a case takes seconds, most of the time went there.
    """
    best, changed = failure, True
    tried: set[Case] = set()  # two ways of making a case plainer often lead to the same one
    while changed and time.time() < deadline:
        changed, place = False, 0
        while (found := _plainer_from(place, best, subject, deadline, tried)) is not None:
            (place, best), changed = found, True
    return best


def _plainer_from(
    place: int, best: Failure, subject: Subject, deadline: float, tried: set[Case]
) -> tuple[int, Failure] | None:
    """The first of the plainer cases, from this one of them on, that fails the same, and its place among them."""
    for number, case in enumerate(plainer_cases(best.case)):
        if number < place or case in tried:
            continue
        if time.time() >= deadline:
            break
        tried.add(case)
        found = same_failure(best.key, case, subject)
        if found is not None:
            return number, replace(found, index=best.index, source=best.source)
    return None


def plainer_cases(case: Case) -> Iterator[Case]:
    """The case with one part plainer, for every part that is not at its plainest: settings first, then sizes.

    Several parts at once come before each of them: where a case takes seconds, there is no time for many tries.
    """
    yield from _several_at_once(case)
    for name in ("dtype", "attention", "init_scale", "weight_seed"):
        if getattr(case.model, name) != getattr(ModelSpec(), name):
            yield case.replace(model=case.model.replace(**{name: getattr(ModelSpec(), name)}))
    yield from (case.replace(model=case.model.replace(tied=tied)) for tied in _plainer_ties(case))
    yield from _without_an_option(case)
    places = {place for told in TOLD_BY_PLACE.values() for place in told}
    for name in Settings.model_fields:
        if name not in places and getattr(case.settings, name) != getattr(Settings(), name):
            yield case.replace(
                settings=case.settings.replace(**{name: getattr(Settings(), name), **TOLD_BY_PLACE.get(name, {})})
            )
    if case.plan is not None:
        yield from (case.replace(plan=plan.fitting(len(case.prompt.rows))) for plan in case.plan.plainer())
    yield from (_with_prompt(case, prompt) for prompt in plainer_prompts(case.prompt))
    yield from _plainest_config(case)
    steps = case.settings.max_new_tokens
    for count in {steps // 2, steps - 1} - {0, 1}:
        yield case.replace(settings=case.settings.replace(max_new_tokens=count))


def _several_at_once(case: Case) -> Iterator[Case]:
    """All settings plain, a prompt of one token, and each half of what the plan says: where that is several parts."""
    settings = Settings(max_new_tokens=case.settings.max_new_tokens)
    if sum(getattr(case.settings, name) != getattr(settings, name) for name in Settings.model_fields) > 1:
        yield case.replace(settings=settings)
    if len(case.prompt.rows) > 1 or len(case.prompt.rows[0]) > 1:
        yield _with_prompt(case, case.prompt.replace(rows=((1,),)))
    if case.plan is not None:
        yield from (case.replace(plan=plan.fitting(len(case.prompt.rows))) for plan in case.plan.halves())


def _with_prompt(case: Case, prompt: Prompt) -> Case:
    """The case with another prompt, and without the places in rows that this one does not have."""
    rows = len(prompt.rows)
    kept = {name: tuple(at for at in getattr(case.settings, name) if at[0] < rows) for name in IN_ROWS}
    plan = None if case.plan is None else case.plan.fitting(rows)
    return case.replace(prompt=prompt, settings=case.settings.replace(**kept), plan=plan)


def plainer_prompts(prompt: Prompt) -> Iterator[Prompt]:
    """One row, rows of one length, shorter rows, and the token 1 everywhere, as far as they are not so yet."""
    for images in range(prompt.images):
        yield prompt.replace(images=images)
    if prompt.images and prompt.image_seed:
        yield prompt.replace(image_seed=0)
    if len(prompt.rows) > 1:
        yield from (prompt.replace(rows=(row,)) for row in prompt.rows)
        yield from (prompt.replace(rows=prompt.rows[:n] + prompt.rows[n + 1 :]) for n in range(len(prompt.rows)))
    if prompt.padded:
        shortest = min(map(len, prompt.rows))
        yield prompt.replace(rows=tuple(row[:shortest] for row in prompt.rows))
    if max(map(len, prompt.rows)) > 1:
        yield prompt.replace(rows=tuple(row[: max(1, len(row) // 2)] for row in prompt.rows))
        yield prompt.replace(rows=tuple(row[1:] or row for row in prompt.rows))
    if any(token != 1 for row in prompt.rows for token in row):
        yield prompt.replace(rows=tuple((1,) * len(row) for row in prompt.rows))


def _without_an_option(case: Case) -> Iterator[Case]:
    model = case.model
    for option in chosen_options(model.architecture, model.config):
        plainest = tiny_config(model.architecture)
        kept = {path: value for path, value in model.config.items() if path not in option}
        kept |= {path: plainest[path] for path in option if path in plainest}
        yield case.replace(model=model.replace(config=kept))
    if rope_of(model.config):
        yield case.replace(model=model.replace(config=unstretched(model.architecture, model.config)))


def _plainest_config(case: Case) -> Iterator[Case]:
    try:
        config = tiny_config(case.model.architecture)
    except (BadInput, NotBuildable):
        return
    highest = max(max(row) for row in case.prompt.rows)
    plainest = case.replace(model=case.model.replace(config=config))
    if plainest != case and highest < int(str(config.get("vocab_size", 64))):
        yield plainest


def _plainer_ties(case: Case) -> Iterator[Pairs]:
    """No ties, fewer of them, and one name tied to another in the place of patterns."""
    tied = case.model.tied
    if not tied:
        return
    yield ()
    if len(tied) > 1:
        yield from (tied[:n] + tied[n + 1 :] for n in range(len(tied)))
    if any(not PLAIN.fullmatch(pattern) for pair in tied for pattern in pair):
        try:
            group = Scenario(case).tied_groups[0]
        except (BadInput, NotBuildable):
            return
        yield ((group.targets[0], group.source),)
