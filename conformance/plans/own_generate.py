"""The class of a model with a `generate` of its own, as a value of a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from conformance.architectures.own_generate import recipes
from conformance.errors import unknown


def _known(name: str) -> str:
    if name and name not in recipes():
        raise ValueError(str(unknown("class with a generate of its own", name, recipes())))
    return name


OwnGenerateClass = Annotated[str, AfterValidator(_known)]  # "": none
