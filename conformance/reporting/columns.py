"""Tables and lists as text, for a terminal or for a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

FIRST_FEW = 3


def columns(rows: Sequence[Sequence[str]], gap: int = 2, numbers: bool = False) -> list[str]:
    """One line a row, cells under each other, no trailing blanks; `numbers`: all but the first to the right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    right = [numbers and place > 0 for place in range(len(widths))]
    return [
        (" " * gap).join(map(_padded, row, widths, right)).rstrip()  # the last cell may be long: nothing comes after it
        for row in rows
    ]


def _padded(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def say(console: Console) -> Callable[[str], None]:
    """Prints a line as it is: names are no markup, and whoever reads it may break it where it likes."""
    return lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_table(console: Console, rows: Sequence[Sequence[str]]) -> None:
    """A table whose first row is its header. Through a pipe each row is one line, however long.

    On a terminal that is too narrow each row is a paragraph under its first cell, so that no name is cut.
    """
    lines = columns(rows)
    narrow = console.is_terminal and max(map(len, lines)) > console.width
    for line in paragraphs(rows, console.width) if narrow else lines:
        say(console)(line)


def paragraphs(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Each row but the header as its first cell and, indented, the others that hold something, with their heads."""
    (_, *heads), *body = rows
    for name, *cells in body:
        yield name
        told = "; ".join(f"{head.replace('_', ' ')}: {cell}" for head, cell in zip(heads, cells, strict=True) if cell)
        yield from textwrap.wrap(told, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun: 1 finding, 2 findings."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_few(things: Sequence[str], rest_in: str = "") -> str:
    """The first of a list, how many more there are, and where the rest is."""
    shown, more = "; ".join(things[:FIRST_FEW]), len(things) - FIRST_FEW
    return f"{shown}; and {more} more{f' in {rest_in}' if rest_in else ''}" if more > 0 else shown
