"""The command that judges a finding again, as it has to be typed: from any folder, with the subject it was found on."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

from conformance.subjects import BUILT_IN


def replay_line(place: str | Path, subject: str) -> str:
    """The command that replays the case in a place on a subject, named as `--subject` names it."""
    told = "" if subject == "installed" else f" --subject {shlex.quote(subject)}"
    return f"{path_of(subject)}conformance replay {shlex.quote(str(place))}{told}"


def path_of(subject: str) -> str:
    """What stands before a command so that it finds the module of a subject; "" where it is found without, or never."""
    folder = "" if subject in BUILT_IN else _folder(subject.partition(":")[0].partition(".")[0])
    return f"PYTHONPATH={shlex.quote(folder)} " if folder else ""


@cache
def _folder(module: str) -> str:
    """The folder of a top-level module that only this process finds, as where it is that of the working directory."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    if spec is None or _found_anywhere(module):
        return ""
    if spec.submodule_search_locations:
        return str(Path(next(iter(spec.submodule_search_locations))).absolute().parent)
    return str(Path(spec.origin).absolute().parent) if spec.origin else ""


def _found_anywhere(module: str) -> bool:
    """Whether an interpreter finds a module that knows nothing of PYTHONPATH and of the working directory."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return not subprocess.run([sys.executable, "-E", "-P", "-c", code], check=False, capture_output=True).returncode
