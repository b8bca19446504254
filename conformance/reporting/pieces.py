"""The bodies of reproducer scripts, read from `scripts/` and made plain: no project, no annotations.

A body is a module with a `main`. It imports what the frame defines from `scripts.frame`, and functions that
several bodies share from the other modules there; both imports are for the linter, a script holds the functions
themselves. Nothing here is ever imported or run.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

HERE = "conformance.reporting.scripts."
FRAME = "frame"
NOT_COPIED = ("__future__", "typing")


@dataclass(frozen=True)
class Piece:
    """One module of `scripts/`: the source of its functions, what it imports, and what it needs of the others."""

    name: str
    functions: str
    imports: tuple[str, ...]
    frame: tuple[str, ...]
    pieces: tuple[str, ...]


def names() -> tuple[str, ...]:
    """The bodies: the modules of `scripts/` that have a `main`."""
    files = (f.name for f in resources.files("conformance.reporting").joinpath("scripts").iterdir())
    found = (name.removesuffix(".py") for name in files if name.endswith(".py"))
    return tuple(sorted(name for name in found if "\ndef main(" in _text(name)))


def _text(name: str) -> str:
    return resources.files("conformance.reporting").joinpath("scripts", f"{name}.py").read_text(encoding="utf-8")


@lru_cache(maxsize=None)
def piece(name: str) -> Piece:
    """The module of that name. Raises FileNotFoundError when `scripts/` has none."""
    source = _text(name)
    imports, frame, pieces = [], [], []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(HERE):
            module = (statement.module or "").removeprefix(HERE)
            if module == FRAME:
                frame += [alias.name for alias in statement.names]
            else:
                pieces.append(module)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(statement))
    return Piece(name, functions_of(source), tuple(imports), tuple(frame), tuple(pieces))


def gather(name: str, instead: Mapping[str, str] | None = None) -> tuple[Piece, ...]:
    """A body after all that it needs, each once. `instead` puts one module in another's place."""
    chosen = piece((instead or {}).get(name, name))
    found = [lower for other in chosen.pieces for lower in gather(other, instead)]
    return tuple(dict.fromkeys([*found, chosen]))


def functions_of(source: str, documented: bool = True) -> str:
    """The functions and classes of a module, two lines apart, without comments, blank lines and annotations."""
    tree = ast.parse(source)
    lines = _without_annotations(tree, source.splitlines())
    wanted = [s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)]
    dropped = set() if documented else _docstring_lines(tree)
    blocks = []
    for statement in wanted:
        first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        numbers = range(first, (statement.end_lineno or first) + 1)
        blocks.append([lines[n - 1] for n in numbers if n not in dropped and lines[n - 1].strip()])
    return "\n\n\n".join("\n".join(block) for block in blocks)


def _docstring_lines(tree: ast.Module) -> set[int]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    documents = [f.body[0] for f in functions if ast.get_docstring(f) is not None and len(f.body) > 1]
    return {number for d in documents for number in range(d.lineno, (d.end_lineno or d.lineno) + 1)}


def _without_annotations(tree: ast.Module, lines: list[str]) -> list[str]:
    """The lines with annotations cut out; one is always within a line."""
    cuts: list[tuple[int, int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            cuts.append((node.lineno, node.col_offset + len(node.arg), node.annotation.end_col_offset or 0))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            cuts.append((node.lineno, node.target.end_col_offset or 0, node.annotation.end_col_offset or 0))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            start = lines[node.returns.lineno - 1].rindex(" ->", 0, node.returns.col_offset)
            cuts.append((node.returns.lineno, start, node.returns.end_col_offset or 0))
    plain = list(lines)
    for number, start, end in sorted(cuts, reverse=True):
        plain[number - 1] = plain[number - 1][:start] + plain[number - 1][end:]
    return plain


def import_block(statements: Iterable[str], code: str) -> list[str]:
    """The import lines that the code uses, sorted: the standard library, a blank line, the rest."""
    used = {token.string for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type == tokenize.NAME}
    modules: set[str] = set()
    parts: dict[str, set[str]] = {}
    for node in (n for text in statements for n in ast.parse(text).body):
        if isinstance(node, ast.Import):
            modules |= {ast.unparse(node) for alias in node.names if (alias.asname or alias.name) in used}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module not in NOT_COPIED:
            parts.setdefault(node.module, set()).update(a.name for a in node.names if a.name in used)
    lines = sorted(modules)
    lines += [f"from {module} import {', '.join(sorted(wanted))}" for module, wanted in sorted(parts.items()) if wanted]
    foreign = re.compile(r"(import|from) (numpy|torch|transformers)\b")
    ours, theirs = [x for x in lines if not foreign.match(x)], [x for x in lines if foreign.match(x)]
    return [*ours, "", *theirs]
