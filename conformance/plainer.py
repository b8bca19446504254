"""Reset, one by one, the settings that a shrunk failure does not need; what is left makes its signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, NotBuildable
from conformance.failures import Failure, same_failure
from conformance.subjects import Subject


def plainer(failure: Failure, subject: Subject) -> Failure:
    """The same failure with every setting at its plainest value that it does without."""
    best, changed = failure, True
    while changed:
        changed = False
        for case in plainer_cases(best.case):
            found = same_failure(failure.key, case, subject)
            if found is not None:
                best, changed = replace(found, index=failure.index, source=failure.source), True
                break
    return best


def plainer_cases(case: Case) -> Iterator[Case]:
    """The case with one part at its plainest, for every part that is not."""
    plain_model, plain_settings = ModelSpec(), Settings()
    for name in ("dtype", "attention", "init_scale", "weight_seed"):
        if getattr(case.model, name) != getattr(plain_model, name):
            yield case.replace(model=case.model.replace(**{name: getattr(plain_model, name)}))
    for name in Settings.model_fields:
        if name != "max_new_tokens" and getattr(case.settings, name) != getattr(plain_settings, name):
            yield case.replace(settings=case.settings.replace(**{name: getattr(plain_settings, name)}))
    if len(case.prompt.rows) > 1:
        for row in case.prompt.rows:
            yield case.replace(prompt=Prompt(rows=(row,)))
    if case.prompt.padded:
        shortest = min(map(len, case.prompt.rows))
        yield case.replace(prompt=Prompt(rows=tuple(row[:shortest] for row in case.prompt.rows)))
    yield from _plainest_config(case)


def _plainest_config(case: Case) -> Iterator[Case]:
    try:
        config = tiny_config(case.model.architecture)
        highest = max(max(row) for row in case.prompt.rows)
        if dict(case.model.config) != config and highest < int(str(config.get("vocab_size", 64))):
            plainest = case.replace(model=case.model.replace(config=config))
            if plainest != case:
                yield plainest
    except (BadInput, NotBuildable):
        return
