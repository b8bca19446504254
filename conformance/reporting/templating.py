"""The templates of this folder, filled."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jinja2


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("conformance.reporting", "templates")
    return jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
    )


def render(template: str, **values: Any) -> str:
    """A template with these values. Raises `jinja2.UndefinedError` for a value that it needs and does not get."""
    return _environment().get_template(template).render(**values)
