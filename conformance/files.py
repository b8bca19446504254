"""Files that several processes write, and files of strangers."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all, whatever else writes it at the same time."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_bounded(path: Path, most: int) -> str:
    """The text of a plain file of at most so many bytes. Raises OSError or ValueError, saying why.

    What is no plain file may have no end, or wait for somebody to write.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is no plain file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path} is larger than {most} bytes")
    return content.decode("utf-8")
