"""What the `tied` family draws: models of several layers that share weights, and wrong pairs beside right ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st

from conformance.case import Case
from conformance.plans.tied import TiedPlan
from conformance.strategies.cases import models, vocabulary_of
from conformance.strategies.prompts import prompts
from conformance.strategies.settings import settings
from conformance.strategies.tying import room, tied_weights

# The events that one kind of tie leads to.
LEADS_TO = {
    "tie: encoder and decoder": ("encoder-decoder",),
    "tie: embeddings": ("embeddings",),
    "tie: a module by its name": ("module",),
    "tie: overlapping patterns": ("overlapping", "nested"),
    "tie: several targets": ("pattern", "chain"),
}


@st.composite
def cases(draw: st.DrawFn, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A model with tied weights, a short prompt, and a wrong pair once in four draws; shrinks to two names tied."""
    model = draw(models(architecture, towards=towards, tied=False))
    wanted = [kind for event, kinds in LEADS_TO.items() if event in towards for kind in kinds]
    possible = room(architecture, model.config, running=False)
    kinds = [kind for kind in wanted if kind in possible] or possible
    # No kind is possible where a config refuses tied weights: the checks say that the case ties nothing.
    ties = {"architecture": architecture, "config": model.config, "kinds": kinds, "running": False}
    tied = draw(tied_weights(**ties)) if kinds else ()
    wrong: Any = draw(st.sampled_from(("", "", "", "target", "", "", "source", "two sources")))
    prompt = draw(prompts(vocabulary=vocabulary_of(model), rows=(1, 2), length=(1, 8)))
    chosen = draw(settings(vocabulary=vocabulary_of(model), rows=len(prompt.rows), new_tokens=(1, 4), sampling=False))
    plan = TiedPlan(wrong=wrong)
    return Case(family="tied", model=model.replace(tied=tied), prompt=prompt, settings=chosen, plan=plan)
