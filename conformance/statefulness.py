"""Whether a model's modules keep anything from one call to the next, found out once per process and type."""

from __future__ import annotations

from functools import cache

from conformance.architectures.ropes import BY_LENGTH, rope_of
from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.errors import BadInput, NotBuildable

# Attributes that do not reach the next call's outcome, and change no weight.
HARMLESS = ("_output_capturing_hooks_installed",)


def keeps_state(model: ModelSpec) -> bool:
    """Whether a call changes the model's configs or an attribute of its modules; True where that is unknown.

    Runs of a stateless model may share it: a new one costs as much as a forward.
    """
    return rope_of(model.config) in BY_LENGTH or _plainly_keeps_state(model.architecture)


@cache
def _plainly_keeps_state(architecture: str) -> bool:
    """Whether that is so of a tiny model of this type, with nothing that a default config hides."""
    from conformance.build import Scenario
    from conformance.observe import observe
    from conformance.subjects.installed import Installed

    try:
        model = ModelSpec(architecture=architecture, config=tiny_config(architecture))
        case = Case(model=model, prompt=Prompt(rows=((3, 4, 5), (6,))), settings=Settings(max_new_tokens=3))
        scenario = Scenario(case)
        outcome = observe(Installed(), scenario.model(), scenario.call(output_hidden_states=True), watch=True)
    except (BadInput, NotBuildable):
        return True
    left = [path for path in outcome.module_changes if path.rsplit(".", 1)[-1] not in HARMLESS]
    return bool(outcome.crash or outcome.changed or left)
