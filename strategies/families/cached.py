"""What the `cached` family adds to a case: tokens after the first row's prompt, and how they are grouped."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.cached import CachedPlan
from conformance.strategies.cases import vocabulary_of

IMAGES = True  # prompts hold images or sound where the type takes some


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> CachedPlan:
    """Up to seven tokens in groups of one to five; shrinks to none."""
    token = st.integers(1, vocabulary_of(model) - 1)
    continuation = tuple(draw(st.lists(token, max_size=7)))
    groups = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))) if len(continuation) > 1 else ()
    return CachedPlan(continuation=continuation, groups=groups)
