"""Ranges that callers give to strategies, refused loudly when nothing is in them."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from hypothesis import strategies as st

from conformance.errors import BadInput

Span = tuple[int, int]
T = TypeVar("T")


def whole_numbers(name: str, span: Span, lowest: int, highest: int) -> st.SearchStrategy[int]:
    """Integers in `span`, both ends included. Raises BadInput when it is empty or leaves lowest to highest."""
    low, high = span
    if not lowest <= low <= high <= highest:
        raise BadInput(f"{name}={span!r} must be a range within {lowest} to {highest}")
    return st.integers(low, high)


# Kept: validating a strategy anew in every draw costs more than drawing from it. Typed, since True equals 1.
@lru_cache(maxsize=None, typed=True)
def rarely(value: T, otherwise: T, *, one_in: int) -> st.SearchStrategy[T]:
    """`value` once in `one_in` draws, else `otherwise`, to which it shrinks."""
    return st.integers(0, one_in - 1).map(lambda n: value if n == one_in - 1 else otherwise)
