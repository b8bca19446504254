"""What the `cached` family adds to a case: tokens after the first row's prompt, and how they are grouped."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.architectures.cells import decoder_only
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.cached import CachedPlan
from conformance.strategies.beam_searches import beam_searches
from conformance.strategies.cases import vocabulary_of
from conformance.strategies.ranges import rarely
from conformance.strategies.steering import steerings

IMAGES = True  # prompts hold images or sound where the type takes some


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> CachedPlan:
    """Up to seven tokens in groups of one to five, and now and then beams or another dtype; shrinks to none.

    In every third draw one to three things steer the scores of one more run; in every fourth a static cache has room.
    """
    token = st.integers(1, vocabulary_of(model) - 1)
    continuation = tuple(draw(st.lists(token, max_size=7)))
    groups = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))) if len(continuation) > 1 else ()
    plan = CachedPlan(continuation=continuation, groups=groups, bfloat16=draw(rarely(True, False, one_in=8)))
    plan = plan.fitting(len(prompt.rows))
    if draw(rarely(True, False, one_in=4)):
        plan = plan.replace(room=draw(st.integers(1, 8)))
    if draw(rarely(True, False, one_in=3)):
        steering = steerings(
            vocabulary=vocabulary_of(model),
            length=len(prompt.rows[0]),
            sampled=settings.do_sample,
            encoder=not decoder_only(model.architecture),
        )
        plan = plan.replace(steering=draw(steering))
    if not draw(rarely(True, False, one_in=5)):
        return plan
    search = draw(beam_searches(vocabulary=vocabulary_of(model), chunks=True))
    return plan.replace(beams=draw(st.integers(2, 3)), search=search)
