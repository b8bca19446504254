"""Which architectures the installed transformers release can make generate, read without importing it.

The source is the text of `transformers/models/auto/modeling_auto.py`: its ordered mappings from model type to
class name are plain literals in every 5.x release, so a syntax tree is enough and a listing costs no torch import.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from conformance.architectures.core import CORE
from conformance.errors import BadInput, NotBuildable

__all__ = ["Architecture", "Task", "UnknownArchitecture", "auto_class", "core", "core_names", "get", "names"]

core = CORE  # the default selection, name → what it stands for
Task = Literal["causal", "seq2seq", "image-text"]
MAPPINGS: dict[str, Task] = {
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES": "causal",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES": "seq2seq",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES": "image-text",
}
# Of the third mapping, which holds a hundred types: those that decode text as the causal ones do, and for which
# `media.json` says what an image is. Types of the first two mappings are not listed a second time.
IMAGE_TEXT = ("internvl", "llava", "paligemma", "qwen2_5_vl", "qwen2_vl", "qwen3_vl")
AUTO_CLASSES: dict[Task, str] = {
    "causal": "AutoModelForCausalLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "image-text": "AutoModelForImageTextToText",
}


class UnknownArchitecture(BadInput):
    """A name that the installed release does not have; the message lists the closest ones it has."""


@dataclass(frozen=True)
class Architecture:
    """One model type under one task: `name` is the type, with `:seq2seq` where the type also has a causal class."""

    name: str
    model_type: str
    task: Task
    class_name: str


def _source() -> str:
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise NotBuildable("transformers is not installed")
    path = Path(spec.origin).parent / "models" / "auto" / "modeling_auto.py"
    return path.read_text(encoding="utf-8")


def _pairs(tree: ast.Module, mapping: str) -> Iterator[tuple[str, str]]:
    """The (model type, class name) pairs of one `NAME = OrderedDict([...])` statement."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        if any(isinstance(target, ast.Name) and target.id == mapping for target in statement.targets):
            for model_type, class_name in ast.literal_eval(statement.value.args[0]):
                # A few types list several classes; the first is the one that the auto class makes.
                yield model_type, class_name if isinstance(class_name, str) else class_name[0]


@cache
def _catalogue() -> dict[str, Architecture]:
    tree = ast.parse(_source())
    found: dict[str, Architecture] = {}
    for mapping, task in MAPPINGS.items():
        for model_type, class_name in _pairs(tree, mapping):
            if task == "image-text" and (model_type not in IMAGE_TEXT or model_type in found):
                continue
            name = f"{model_type}:{task}" if model_type in found else model_type
            found[name] = Architecture(name, model_type, task, class_name)
    if not found:
        raise NotBuildable("the installed transformers lists no models in models/auto/modeling_auto.py")
    return found


@cache
def names() -> tuple[str, ...]:
    """Every architecture of the installed release, sorted."""
    return tuple(sorted(_catalogue()))


def core_names() -> tuple[str, ...]:
    """The architectures selected by default that the installed release has, sorted."""
    return tuple(name for name in names() if name in core)


def get(name: str) -> Architecture:
    """The architecture of this name. Raises `UnknownArchitecture` with the closest valid names."""
    found = _catalogue().get(name)
    if found is not None:
        return found
    close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else f"{len(names())} are known: conformance list architectures"
    raise UnknownArchitecture(f"unknown architecture {name!r}; {hint}")


def auto_class(task: Task) -> Any:
    """The auto class that makes models of a task."""
    return getattr(importlib.import_module("transformers"), AUTO_CLASSES[task])
