"""What the `purity` family adds to a case: how the caller tells what is asked for."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.architectures.cells import decoder_only, reachable
from conformance.architectures.own_generate import recipes
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.purity import PurityPlan
from conformance.strategies.ranges import rarely


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> PurityPlan:
    """Settings as keywords in a third of the draws; a quantised cache where all layers are of full attention.

    Once in twelve draws a model that decodes by itself, in the place of the case's.
    """
    if draw(rarely(True, False, one_in=12)):
        return PurityPlan(by_itself=draw(st.sampled_from(sorted(recipes()))))
    alone = decoder_only(model.architecture)
    full = alone and set(reachable(model.architecture)) == {"full"}
    return PurityPlan(
        keywords=draw(rarely(True, False, one_in=3)),
        encoded=not alone and draw(rarely(True, False, one_in=3)),
        quantized=full and draw(rarely(True, False, one_in=6)),
        raises=draw(st.integers(1, min(4, settings.max_new_tokens))) if draw(rarely(True, False, one_in=3)) else 0,
    )
