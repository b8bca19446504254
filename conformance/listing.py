"""Which checks there are, read from source text, so that collecting a suite imports no torch.

A test holds this against the registry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

CHECKS = Path(__file__).parent / "checks"


@lru_cache(maxsize=1)
def families_of_checks() -> dict[str, str]:
    """Check name → family name, sorted, of every file in `conformance/checks`."""
    trees = _trees()
    families = {variable: _name(call) for tree in trees for variable, call in _family_calls(tree).items()}
    found = {check: families[variable] for tree in trees for check, variable in _checks_in(tree)}
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def architectures_of_families() -> dict[str, tuple[str, ...] | None]:
    """Family name → the only types that it runs on, or None where it runs on all."""
    calls = (call for tree in _trees() for call in _family_calls(tree).values())
    return {_name(call): _architectures(call) for call in calls}


@lru_cache(maxsize=1)
def nightly_families() -> frozenset[str]:
    """The families whose checks run in the profile `nightly` only, unless they are named."""
    calls = (call for tree in _trees() for call in _family_calls(tree).values())
    return frozenset(_name(call) for call in calls if _literal(call, "nightly"))


@lru_cache(maxsize=1)
def media_families() -> frozenset[str]:
    """The families whose prompts hold images or sound where a type takes them."""
    calls = (call for tree in _trees() for call in _family_calls(tree).values())
    return frozenset(_name(call) for call in calls if _literal(call, "media"))


def default_checks(profile: str) -> tuple[str, ...]:
    """The checks of a run for which none is named, sorted."""
    left_out = frozenset() if profile == "nightly" else nightly_families()
    return tuple(check for check, family in families_of_checks().items() if family not in left_out)


@lru_cache(maxsize=1)
def _trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in sorted(CHECKS.glob("*.py")))


def _name(call: ast.Call) -> str:
    return str(ast.literal_eval(call.args[0]))


def _architectures(call: ast.Call) -> tuple[str, ...] | None:
    value = _literal(call, "architectures")
    return None if value is None else tuple(value)


def _literal(call: ast.Call, argument: str) -> Any:
    given = next((k.value for k in call.keywords if k.arg == argument), None)
    return None if given is None else ast.literal_eval(given)


def _family_calls(tree: ast.Module) -> dict[str, ast.Call]:
    """The constants of a module to which a family is assigned, and the calls that make it.

    Modules share a family under its constant's name, so no two families have one of the same name.
    """
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
    """The checks of a module, and the constants that stand for their families."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call) and _calls(decorator, "check"):
                    variable = decorator.args[0]
                    assert isinstance(variable, ast.Name)
                    yield statement.name.replace("_", "-"), variable.id


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
