"""Python source made from plain values, in lines that are not too long."""

from __future__ import annotations

import json
import re
import textwrap
from itertools import accumulate
from typing import Any

WIDTH = 120
STRING = re.compile(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"")


def literal(value: Any) -> str:
    """A plain value as Python source. Raises TypeError for any other."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k)}: {literal(v)}' for k, v in value.items())}}}"
    raise TypeError(f"a case holds plain values only, not a {type(value).__name__}")


def arguments(values: dict[str, Any]) -> str:
    """The values as keyword arguments."""
    return ", ".join(f"{name}={literal(value)}" for name, value in values.items())


def assigned(name: str, values: dict[str, str]) -> str:
    """An assignment of a dictionary, given the source of its values, on as few lines as hold its pairs whole."""
    lines = [f"{name} = {{"]
    for number, (key, text) in enumerate(values.items(), 1):
        pair = f'"{key}": {text}{"," if number < len(values) else "}"}'
        if len(lines[-1]) + len(pair) + 1 > WIDTH:
            lines.append("   ")
        lines[-1] += pair if lines[-1].endswith("{") else f" {pair}"
    return "\n".join(text for line in lines for text in fitted(line.rstrip()) if text)


def wrapped(text: str, indent: int) -> str:
    """Source between brackets, broken where it may be: at spaces, not at those inside texts."""
    return textwrap.indent(broken(text, WIDTH - indent), " " * indent)


def broken(text: str, width: int = WIDTH) -> str:
    """Text in lines, broken at spaces that are not inside texts between quotes."""
    kept = STRING.sub(lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def fitted(line: str, depth: int = 0) -> list[str]:
    """A line of source, broken at the last space inside brackets where it is too long; `depth` are open before it."""
    if len(line) <= WIDTH:
        return [line]
    outside = STRING.sub(lambda match: "." * len(match[0]), line)[:WIDTH]
    steps = [(char in "([{") - (char in ")]}") for char in outside]
    depths = list(accumulate(steps, initial=depth))
    breaks = [n for n, char in enumerate(outside) if char == " " and depths[n] > 0 and line[:n].strip()]
    if not breaks:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + (8 if depth == 0 else 0))
    return [line[: breaks[-1]], *fitted(indent + line[breaks[-1] :].strip(), depths[breaks[-1]])]
