"""Which checks there are, read from source text, so that collecting a suite imports no torch.

A test holds this against the registry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

CHECKS = Path(__file__).parent / "checks"


@lru_cache(maxsize=1)
def families_of_checks() -> dict[str, str]:
    """Check name → family name, sorted, of every file in `conformance/checks`."""
    found = {check: family for tree in _trees() for check, family in _checks_in(tree)}
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def architectures_of_families() -> dict[str, tuple[str, ...] | None]:
    """Family name → the only types that it runs on, or None where it runs on all."""
    calls = (call for tree in _trees() for call in _family_calls(tree).values())
    return {str(ast.literal_eval(call.args[0])): _architectures(call) for call in calls}


def _trees() -> Iterator[ast.Module]:
    for path in sorted(CHECKS.glob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def _architectures(call: ast.Call) -> tuple[str, ...] | None:
    given = next((k.value for k in call.keywords if k.arg == "architectures"), None)
    value = None if given is None else ast.literal_eval(given)
    return None if value is None else tuple(value)


def _family_calls(tree: ast.Module) -> dict[str, ast.Call]:
    """The variables of a module to which a family is assigned, and the calls that make it."""
    return {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and _calls(statement.value, "family")
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _checks_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    variables = {name: str(ast.literal_eval(call.args[0])) for name, call in _family_calls(tree).items()}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call) and _calls(decorator, "check"):
                    variable = decorator.args[0]
                    assert isinstance(variable, ast.Name)
                    yield statement.name.replace("_", "-"), variables[variable.id]


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
