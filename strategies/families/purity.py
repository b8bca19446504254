"""What the `purity` family adds to a case: how the caller tells what is asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.architectures import catalogue
from conformance.architectures.cells import decoder_only, reachable
from conformance.architectures.media import takes_media
from conformance.architectures.own_generate import recipes
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.purity import PurityPlan
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings as general_settings

IMAGES = True  # prompts hold images or sound where the type takes some
ANY_ROPE = True  # frequencies may follow the length: the next call is to begin with its own


@st.composite
def settings(draw: st.DrawFn, /, **shared: Any) -> Settings:
    """As every family draws them, but in every sixth draw two sampled sequences for a row.

    What the caller passes is then repeated for `generate`, which must not be done to the caller's own.
    """
    chosen = draw(general_settings(**shared))
    unfed = chosen.pad is not None and chosen.pad >= shared["vocabulary"]  # such a pad is for one sequence alone
    if unfed or not draw(rarely(True, False, one_in=6)):
        return chosen
    return chosen.replace(do_sample=True, sample_seed=draw(st.integers(0, 2**16)), returned=2)


def _ends_by_token(settings: Settings) -> bool:
    """Whether end tokens end rows, and nothing else that is asked for needs to know them: no pad token either."""
    about = (settings.min_new_tokens, settings.forced_eos, settings.against_eos == "bad words", settings.pad is None)
    return bool(settings.eos or settings.eos_at) and not any(about)


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> PurityPlan:
    """Settings as keywords or as the model's own in a third of the draws each; a quantised cache where all layers are
    of full attention, else now and then one of fixed size.

    Once in twelve draws a model that decodes by itself, in the place of the case's.
    """
    if draw(rarely(True, False, one_in=12)):
        return PurityPlan(by_itself=draw(st.sampled_from(sorted(recipes()))))
    alone = decoder_only(model.architecture)
    encoder = not alone and not takes_media(model.architecture)
    text = catalogue.get(model.architecture).task == "causal"  # some with images count positions in three dimensions
    full = alone and set(reachable(model.architecture)) == {"full"}
    told = draw(st.sampled_from(("", "keywords", "by_model")))
    quantized = full and draw(rarely(True, False, one_in=6))
    return PurityPlan(
        keywords=told == "keywords",
        by_model=told == "by_model",
        encoded=encoder and draw(rarely(True, False, one_in=3)),
        seen=prompt.images > 0 and draw(rarely(True, False, one_in=3)),
        unmasked=not prompt.padded and draw(rarely(True, False, one_in=3)),
        positions=text and not prompt.images and draw(rarely(True, False, one_in=4)),
        criterion=_ends_by_token(settings) and draw(rarely(True, False, one_in=4)),
        quantized=quantized,
        static=not quantized and draw(rarely(True, False, one_in=4)),
        raises=draw(st.integers(1, min(4, settings.max_new_tokens))) if draw(rarely(True, False, one_in=3)) else 0,
    )
