"""Model classes that decode by a `generate` of their own, read from the source of the installed release.

The oracle of theirs is the same seeded call, not the plain decoder: `purity` and `placement` draw those for which
`own_generate.json` has a recipe, a tiny config and what they are called with. The others are listed with a reason, so
that none disappears silently.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from conformance.errors import NotBuildable

DERIVED = re.compile(r"^class (\w+)\(([^)]*)\):", re.MULTILINE)
CLASS, GENERATE = re.compile(r"^class (\w+)"), re.compile(r"^    def generate\(")
DRAWN = "in some cases of `purity` and `placement`"
FIRST_PLACEHOLDER = 40  # tokens from here on may stand for something else than text in these models


@dataclass(frozen=True)
class Recipe:
    """How a class with a `generate` of its own is made tiny and called.

    set: what the rules over names do not know, by dotted attribute; config: the whole config instead, where they know
    too little; inputs: tensor by keyword, as (kind, sizes) of `building.own_generate`; keywords: the other arguments.
    """

    set: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, list[Any]] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)


@cache
def recipes() -> dict[str, Recipe]:
    """Class → its recipe, sorted."""
    return {name: Recipe(**entry) for name, entry in sorted(_data()["recipes"].items())}


def why_not(class_name: str) -> str:
    """Why there is no recipe for a class; "" where there is one."""
    if class_name in recipes():
        return ""
    reasons: dict[str, str] = _data()["left out"]
    return reasons.get(class_name, "nobody has looked yet at what it is called with")


@cache
def _data() -> dict[str, Any]:
    text = resources.files("conformance.architectures").joinpath("own_generate.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def own_generate() -> dict[str, tuple[str, ...]]:
    """Folder of the model → its classes with a `generate` of their own, both sorted.

    Raises NotBuildable where transformers is not installed.
    """
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise NotBuildable("transformers is not installed")
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted((Path(spec.origin).parent / "models").glob("*/*modeling_*.py")):
        classes = _classes(path.read_text(encoding="utf-8"))
        if classes:
            found[path.parent.name] = tuple(sorted({*found.get(path.parent.name, ()), *classes}))
    generation = sorted((Path(spec.origin).parent / "models").glob("*/generation_*.py"))
    for path in generation:
        mixins = _classes(path.read_text(encoding="utf-8"))
        if mixins:
            found[path.parent.name] = tuple(
                sorted({*found.get(path.parent.name, ()), *_made_with(path.parent, mixins)})
            )
    return dict(sorted(found.items()))


def _made_with(folder: Path, mixins: list[str]) -> list[str]:
    """The classes of a model that take its `generate` from one of these."""
    sources = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("modeling_*.py")))
    derived = [match for source in sources for match in DERIVED.finditer(source)]
    return [match[1] for match in derived if set(re.findall(r"\w+", match[2])) & set(mixins)]


def _classes(source: str) -> list[str]:
    if "def generate(" not in source:
        return []
    classes, current = [], ""
    for line in source.splitlines():
        begins = CLASS.match(line)
        current = begins[1] if begins else current
        if GENERATE.match(line) and current not in classes:
            classes.append(current)
    return classes
