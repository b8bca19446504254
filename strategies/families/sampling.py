"""What the `sampling` family draws: one sampled row of a few tokens, and who drafts for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import strategies as st

from conformance.case import Case, Settings
from conformance.plans.sampling import SamplingPlan
from conformance.strategies.cases import landmarks_of, models, vocabulary_of
from conformance.strategies.families.prefill import FEW_TOKENS, shares_states, takes_blocks
from conformance.strategies.prompts import prompts

DRAFTERS = ("noisy", "other", "noisy", "lookup", "shallow", "other", "same")


@st.composite
def cases(draw: st.DrawFn, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A case of the family on one type; shrinks to a prompt of one token and drafts of one.

    A loop may decode the first token plainly and the last one always is, so that few tokens show little.
    """
    model, plan = draw(models(architecture)), draw(plans(drafters=drafters_of(architecture)))
    vocabulary = FEW_TOKENS if plan.drafter == "lookup" else vocabulary_of(model)
    prompt = draw(prompts(vocabulary=vocabulary, rows=(1, 1), length=(1, 12), landmarks=landmarks_of(model)))
    settings = Settings(
        max_new_tokens=draw(st.integers(6, 8)), do_sample=True, sample_seed=draw(st.integers(0, 2**32 - 1))
    )
    return Case(family="sampling", model=model, prompt=prompt, settings=settings, plan=plan)


def drafters_of(architecture: str) -> tuple[str, ...]:
    """Who may draft for a type: of the kinds that are for some types only, those that it has."""
    some = {"sharing": shares_states(architecture), "block": takes_blocks(architecture)}
    return (*DRAFTERS, *(name for name, has in some.items() for _ in range(2) if has))


@st.composite
def plans(draw: st.DrawFn, drafters: Sequence[str] = DRAFTERS) -> SamplingPlan:
    """Who drafts, one of `drafters`, how good and how much, and the number of runs."""
    return SamplingPlan(
        drafter=draw(st.sampled_from(drafters)),
        noise=draw(st.sampled_from((0.6, 0.3, 0.1))),
        assistant_seed=draw(st.integers(1, 2**15)),
        most=draw(st.sampled_from((3, 2, 4, 1))),
        ngram=draw(st.integers(1, 2)),
        draws=draw(st.sampled_from((200, 150, 250))),
    )
