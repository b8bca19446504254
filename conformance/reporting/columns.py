"""Tables and lists as text, for a terminal or for a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

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


def print_table(console: Console, rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table whose first row is its header. Its first column is never cut; through a pipe each row is one line."""
    if title:
        say(console)(title)
    if not console.is_terminal:
        for line in columns(rows):
            say(console)(line)
        return
    header, *body = rows
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(header):
        least = max(len(row[0]) for row in rows) if place == 0 else None
        table.add_column(name, no_wrap=place == 0, min_width=least, overflow="fold")
    for row in body:
        table.add_row(*row)
    console.print(table, markup=False, highlight=False)


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun: 1 finding, 2 findings."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_few(things: Sequence[str], rest_in: str = "") -> str:
    """The first of a list, how many more there are, and where the rest is."""
    shown, more = "; ".join(things[:FIRST_FEW]), len(things) - FIRST_FEW
    return f"{shown}; and {more} more{f' in {rest_in}' if rest_in else ''}" if more > 0 else shown
