"""What is put to the test. A subject is anything with a name and a `generate`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from conformance.call import Call
from conformance.errors import BadInput, unknown


@runtime_checkable
class Subject(Protocol):
    """The one call that a subject has to answer. What else it can do, checks find out by asking for the method."""

    name: str

    def generate(self, model: Any, call: Call) -> Any:
        """Decode as `model.generate(**call.arguments())` would, and return what that returns."""
        ...


BUILT_IN = {
    "installed": "conformance.subjects.installed:Installed",
    "reference": "conformance.subjects.reference:Reference",
}


_places: dict[int, tuple[Subject, str]] = {}  # by identity, the subject kept so that no other takes its place


def load(name: str) -> Subject:
    """A built-in subject by name, or a user's own by `module:object`. Raises BadInput."""
    if name not in BUILT_IN and ":" not in name:
        raise BadInput(f"{unknown('subject', name, BUILT_IN)}; a subject of your own is named module:object")
    if name not in BUILT_IN and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # one's own module, as `python -m` would find it
    module, _, attribute = BUILT_IN.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
        subject = found() if isinstance(found, type) else found
        whole = isinstance(subject, Subject) and isinstance(subject.name, str) and callable(subject.generate)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - somebody else's code, which may even end the process
        raise BadInput(f"cannot load the subject {name!r}: {type(error).__name__}: {error}") from None
    if not whole:
        raise BadInput(f"the subject {name!r} needs an attribute `name`, a text, and a method `generate`")
    if name not in BUILT_IN and subject.name in BUILT_IN:
        raise BadInput(f"the subject {name!r} calls itself {subject.name!r}, as one of the built-in ones is called")
    _places[id(subject)] = (subject, name)
    return subject


def place_of(subject: Subject) -> str:
    """The name by which another process can `load` this subject: as it was loaded here, else that of its class."""
    if subject.name in BUILT_IN:
        return subject.name
    kind = type(subject)
    loaded = _places.get(id(subject))
    return loaded[1] if loaded else f"{kind.__module__}:{kind.__qualname__}"
