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
    found: dict[str, str] = {}
    for path in sorted(CHECKS.glob("*.py")):
        found.update(_checks_in(ast.parse(path.read_text(encoding="utf-8"))))
    return dict(sorted(found.items()))


def _checks_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    variables = {
        target.id: str(ast.literal_eval(statement.value.args[0]))
        for statement in tree.body
        if isinstance(statement, ast.Assign) and _calls(statement.value, "family")
        for target in statement.targets
        if isinstance(target, ast.Name) and isinstance(statement.value, ast.Call)
    }
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call) and _calls(decorator, "check"):
                    variable = decorator.args[0]
                    assert isinstance(variable, ast.Name)
                    yield statement.name.replace("_", "-"), variables[variable.id]


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
