"""The bodies of reproducer scripts, read from `scripts/` and made plain: no project, no annotations.

A body is a module with a function `logits`, which returns two tensors of shape (steps, vocabulary), or `texts`, which
returns two dictionaries: what is expected and what is got. It imports what the frame defines from `scripts.frame`,
and functions that bodies share from the other modules there. Those imports are for the linter: a script holds the
functions themselves. Nothing in `scripts/` is ever imported or run. A body tells of itself, by literals:

- `ROWS`: which rows INPUTS hold: `finding` (the one that the finding is about, the default), `first`, `all`, or
  `running`: the first where the plan drafts, else all; `none` where it uses no INPUTS and its call starts with one
  token;
- `ROOM_FOR`: the constant of tokens that are fed, for which SETTINGS leave room, with nothing that stops before;
- `UNSEEN`: fields of a finding that the body does not compare: the script of such a finding replays its case;
- `WHOLE_OUTCOME`: it compares all that a call returns, so SETTINGS keep every output;
- `UNCOUNTED`: of a module that is no body: its lines do not count, since they only stand for a device;
- `PLAN`: the fields of the case's plan that it can show; where another is not at its default, the script replays its
  case;
- `BEYOND`: the fields of the plan that it cannot show; by check, where several share the body;
- `INSTEAD`: the first word of where a finding is, or its field → the body that shows those.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from conformance.reporting.source import WIDTH, fitted

HERE = "conformance.reporting.scripts."
FRAME = "frame"
KINDS = ("logits", "texts")
NOT_COPIED = ("__future__", "typing")


@dataclass(frozen=True)
class Piece:
    """One module of `scripts/`: its functions as plain source, what it imports, and what it needs of the others.

    kind: `logits`, `texts`, or "" for a module that is no body; says: the literals that a body tells of itself.
    """

    kind: str
    functions: dict[str, str]
    imports: tuple[str, ...]
    frame: tuple[str, ...]
    pieces: tuple[str, ...]
    says: Mapping[str, Any]

    @property
    def sides(self) -> str:
        """The statements of the body's function, indented, that set `expected` and `got`."""
        before, _, last = self.functions[self.kind].partition("\n")[2].rpartition("    return ")
        return f"{before}    expected, got = {last}"


def names() -> tuple[str, ...]:
    """The bodies, sorted."""
    files = [f.name for f in resources.files("conformance.reporting").joinpath("scripts").iterdir()]
    modules = [name.removesuffix(".py") for name in files if name.endswith(".py")]
    return tuple(sorted(name for name in modules if piece(name).kind))


@cache
def piece(name: str) -> Piece:
    """The module of that name. Raises FileNotFoundError when `scripts/` has none."""
    file = resources.files("conformance.reporting").joinpath("scripts", f"{name}.py")
    source = file.read_text(encoding="utf-8")
    functions = plain_functions(source, documented=("feed", "recompute"))
    imports, frame, pieces = [], [], []
    for statement in ast.parse(source).body:
        module = (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
        if module == HERE + FRAME:
            frame = [alias.name for alias in statement.names]  # type: ignore[attr-defined]
        elif module.startswith(HERE):
            pieces.append(module.removeprefix(HERE))
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(statement))
    kind = next((kind for kind in KINDS if kind in functions), "")
    return Piece(kind, functions, tuple(imports), tuple(frame), tuple(pieces), _literals(source))


def _literals(source: str) -> dict[str, Any]:
    assigned = [s for s in ast.parse(source).body if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)]
    return {s.targets[0].id: ast.literal_eval(s.value) for s in assigned}  # type: ignore[attr-defined]


def gather(name: str, instead: Mapping[str, str] | None = None) -> tuple[Piece, ...]:
    """A body after all that it needs, each once; `instead` puts a module in the place of one that the body names."""
    swaps = instead or {}
    parts = [lower for other in piece(name).pieces for lower in gather(swaps.get(other, other), swaps)]
    return tuple({id(part): part for part in [*parts, piece(name)]}.values())


def plain_functions(source: str, documented: Iterable[str] = ()) -> dict[str, str]:
    """The functions and classes of a module by name, as source without comments, blank lines and annotations.

    Docstrings are kept for `documented` only. A function of one short line is written on one.
    """
    tree = ast.parse(source)
    lines = _plain_lines(tree, source.splitlines(), set(documented))
    blocks = {}
    for statement in (s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)):
        first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        block = [lines[n] for n in range(first, (statement.end_lineno or first) + 1) if lines[n].strip()]
        blocks[statement.name] = "\n".join(line for text in block for line in fitted(text))
    return blocks


def _plain_lines(tree: ast.Module, source: list[str], documented: set[str]) -> dict[int, str]:
    """The lines by number. What is dropped is left empty."""
    lines = dict(enumerate(source, 1))
    for word in tokenize.generate_tokens(io.StringIO("\n".join(source)).readline):
        if word.type == tokenize.COMMENT:
            lines[word.start[0]] = lines[word.start[0]][: word.start[1]].rstrip()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node) is not None and node.name not in documented:
                _blank(lines, node.body[0])
            if isinstance(node, ast.FunctionDef):
                _plain_signature(lines, node)
                if node.name not in KINDS:
                    _join_function(lines, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, annotation = node.target.end_col_offset, node.annotation.end_col_offset
            lines[node.lineno] = lines[node.lineno][:target] + lines[node.lineno][annotation:]
        elif isinstance(node, ast.If):
            _join(lines, node)
    return lines


def _blank(lines: dict[int, str], node: ast.stmt) -> None:
    lines.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), ""))


def _plain_signature(lines: dict[int, str], node: ast.FunctionDef) -> None:
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    lines.update(dict.fromkeys(range(node.lineno, node.body[0].lineno), ""))
    lines[node.lineno] = f"{' ' * node.col_offset}def {node.name}({ast.unparse(arguments)}):"


def _join(lines: dict[int, str], node: ast.If) -> None:
    """The test of an `if` goes on one line, and a branch of one statement after it where that saves a line."""
    first, statement = node.lineno, node.body[0]
    test = " ".join(lines[n].strip() for n in range(first, statement.lineno))
    lines[first] = " " * node.col_offset + test.replace("( ", "(").replace(" )", ")")
    lines.update(dict.fromkeys(range(first + 1, statement.lineno), ""))
    together = f"{lines[first]} {lines[statement.lineno].strip()}"
    alone = (
        len(node.body) == 1 and not node.orelse and not isinstance(statement, ast.If | ast.For | ast.With | ast.While)
    )
    if alone and statement.lineno == statement.end_lineno and len(fitted(together)) <= len(fitted(lines[first])):
        lines[first], lines[statement.lineno] = together, ""


def _join_function(lines: dict[int, str], node: ast.FunctionDef) -> None:
    """A function of one statement is on one line where it fits."""
    left = [n for n in range(node.lineno, (node.end_lineno or node.lineno) + 1) if lines[n].strip()]
    if len(left) == 2 and not isinstance(node.body[-1], ast.If | ast.For | ast.With | ast.While):
        together = f"{lines[left[0]]} {lines[left[1]].strip()}"
        if len(together) <= WIDTH:
            lines[left[0]], lines[left[1]] = together, ""


def import_block(statements: Iterable[str], code: str) -> list[str]:
    """The import lines that the code uses, sorted: the standard library before the rest."""
    words = tokenize.generate_tokens(io.StringIO(code).readline)
    used = {word.string for word in words if word.type == tokenize.NAME}
    modules: set[str] = set()
    parts: dict[str, set[str]] = {}
    for node in (n for text in statements for n in ast.parse(text).body):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if (alias.asname or alias.name) in used}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module not in NOT_COPIED:
            parts.setdefault(node.module, set()).update(a.name for a in node.names if a.name in used)
    aliases = {"numpy": "numpy as np"}
    foreign = [f"import {aliases.get(name, name)}" for name in sorted(modules & {"numpy", "torch"})]
    lines = [f"import {', '.join(sorted(modules - {'numpy', 'torch'}))}"]
    lines += [f"from {module} import {', '.join(sorted(wanted))}" for module, wanted in sorted(parts.items()) if wanted]
    return [x for x in lines if "transformers" not in x] + foreign + [x for x in lines if "transformers" in x]
