"""Model classes that decode by a `generate` of their own, read from the source of the installed release.

They are no subject of the families that exist: the oracle of theirs is the same seeded call, not the plain decoder.
Listed, so that none disappears silently.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

from conformance.errors import NotBuildable

CLASS, GENERATE = re.compile(r"^class (\w+)"), re.compile(r"^    def generate\(")
REASON = "decodes by a `generate` of its own, not by GenerationMixin's: no family draws it"


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
    for path in generation:  # mixins of one model
        if _classes(path.read_text(encoding="utf-8")):
            found.setdefault(path.parent.name, (path.stem,))
    return dict(sorted(found.items()))


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
