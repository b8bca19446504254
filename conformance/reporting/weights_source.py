"""How a script fills its model: the functions of `conformance.weights`, without what its model has no use for."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from conformance import weights
from conformance.reporting import pieces


def weights_source(model: Any) -> list[str]:
    """The source of `uniform`, `values` and `fill`; branches that no tensor of the model takes are left out."""
    functions = pieces.plain_functions(inspect.getsource(weights))
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    fill = functions["fill"] if _has_buffers(model) else _without_buffers(functions["fill"])
    return [functions["uniform"], _without_idle_branches(functions["values"], shapes), fill]


def _without_idle_branches(source: str, shapes: dict[str, tuple[int, ...]]) -> str:
    """`values` without each `if` that holds for no parameter."""
    statements = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    taken = {_branch(statements, name, shape) for name, shape in shapes.items()}
    idle: list[ast.stmt] = [s for s in statements if isinstance(s, ast.If) and s.lineno not in taken]
    return _without(source, idle)


def _branch(statements: list[ast.stmt], name: str, shape: tuple[int, ...]) -> int:
    """The line of the `if` that a parameter's values come from, else of the last statement."""
    names: dict[str, Any] = {"name": name, "shape": shape, "uniform": lambda *_: None, "seed": 0}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            exec(compile(ast.Module([statement], []), "values", "exec"), names)
        elif isinstance(statement, ast.If) and eval(compile(ast.Expression(statement.test), "values", "eval"), names):
            return statement.lineno
    return statements[-1].lineno


def _has_buffers(model: Any) -> bool:
    """Whether any persistent buffer could be filled."""
    state = model.state_dict(keep_vars=True)
    return any(name in state and buffer.is_floating_point() for name, buffer in model.named_buffers())


def _without_buffers(source: str) -> str:
    """`fill` for parameters only: the first loop of its block."""
    block = ast.parse(source).body[0].body[0]  # type: ignore[attr-defined]
    return _without(source, block.body[1:])


def _without(source: str, statements: list[ast.stmt]) -> str:
    gone = {number for s in statements for number in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    return "\n".join(line for number, line in enumerate(source.splitlines(), 1) if number not in gone)
