"""What the `prefill` family draws: who drafts, how the prompt arrives, and prompts and limits in which that matters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance import upstream
from conformance.architectures import catalogue
from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import decoder_only
from conformance.architectures.shrink import make_config, tiny_config
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.plans.prefill import PrefillPlan
from conformance.strategies.cases import landmarks_of, models, vocabulary_of
from conformance.strategies.prompts import media_span, prompts, whole_parts
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import for_and_against, settings

DRAFTERS = (
    *("same", "scripted", "noisy", "lookup", "scripted", "noisy", "lookup", "same", "lookup"),
    *("shallow", "other", "early_exit", "scripted", "early_exit", "scripted", "block", "translated", "translated"),
    *("ahead", "ahead", "sharing", "sharing", "sharing", "sharing"),
)
FEW_TOKENS = 5  # a prompt of so few different ones repeats itself, so that a lookup finds something


@st.composite
def cases(draw: st.DrawFn, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A case of the family on one type; shrinks to a plain prompt of one row."""
    model = draw(models(architecture))
    drafter = draw(
        drafters(
            early_exit=decoder_only(architecture),
            blocks=takes_blocks(architecture),
            translated=decoder_only(architecture) and catalogue.get(architecture).task == "causal",
            ahead=_has_layers_ahead(architecture),
            sharing=shares_states(architecture),
            always=any(event.startswith("draft") for event in towards),
        )
    )
    prompt = draw(prompts_for(model, drafter))
    chosen = draw(settings_for(model, prompt, drafter))
    plan = draw(plans(model=model, prompt=prompt, settings=chosen, drafter=drafter))
    return Case(family="prefill", model=model, prompt=prompt, settings=chosen, plan=plan)


def takes_blocks(architecture: str) -> bool:
    """Whether blocks can be drafted for the type: a decoder of text that takes positions."""
    text = decoder_only(architecture) and catalogue.get(architecture).task == "causal"
    return text and upstream.drafts_blocks() and capabilities(architecture).accepts_position_ids


@cache
def _has_layers_ahead(architecture: str) -> bool:
    """Whether checkpoints of the type, a decoder of text, may have layers that draft."""
    text = decoder_only(architecture) and catalogue.get(architecture).task == "causal"
    if not text or not upstream.drafts_ahead():
        return False
    return upstream.knows_layers_ahead(make_config(architecture, tiny_config(architecture), "eager"))


@cache
def shares_states(architecture: str) -> bool:
    """Whether the release says that the type hands its keys and values to an assistant."""
    return upstream.shares_states(catalogue.get(architecture).class_name)


def drafters(
    *,
    early_exit: bool,
    blocks: bool = False,
    translated: bool = False,
    ahead: bool = False,
    sharing: bool = False,
    always: bool = False,
) -> st.SearchStrategy[str]:
    """Who drafts: nobody in two of five draws, unless `always`; some of them for some types only."""
    some_types = {
        "early_exit": early_exit,
        "block": blocks,
        "translated": translated,
        "ahead": ahead,
        "sharing": sharing,
    }
    known = [drafter for drafter in DRAFTERS if some_types.get(drafter, True)]
    some = st.sampled_from(known)
    return some if always else st.integers(0, 4).flatmap(lambda n: st.just("none") if n < 2 else some)


@st.composite
def prompts_for(draw: st.DrawFn, model: ModelSpec, drafter: str) -> Prompt:
    """One row where something is drafted, but for one draw in twelve, which is then refused; else one to three."""
    vocabulary = vocabulary_of(model)
    drawn = draw(st.sampled_from((1, 2, 2, 2, 3)) if drafter == "none" else rarely(2, 1, one_in=12))
    few = drafter != "none" and draw(st.booleans())
    return draw(
        prompts(
            vocabulary=FEW_TOKENS if few else vocabulary,
            rows=(drawn, drawn),
            length=draw(rarely((1, 1), (1, 18), one_in=12)),  # a single position is a prefill like no other
            landmarks=landmarks_of(model),
            images=media_span(model.architecture),
        )
    )


@st.composite
def settings_for(draw: st.DrawFn, model: ModelSpec, prompt: Prompt, drafter: str) -> Settings:
    """Room for several rounds where something is drafted, and states to look at more often than elsewhere."""
    drafts, eager = drafter != "none", model.attention == "eager"
    chosen = draw(
        settings(
            vocabulary=vocabulary_of(model),
            new_tokens=draw(rarely((1, 3), (4, 16), one_in=6)) if drafts else (1, 6),
            rows=len(prompt.rows),
            attentions=eager and not drafts,
            by_tokens=True,
        )
    )
    if drafter == "translated":
        chosen = chosen.replace(
            repetition_penalty=1.0, forced_eos=False, against_eos="nothing", do_sample=draw(st.booleans())
        )
    elif drafts:
        chosen = chosen.replace(
            **draw(for_and_against(chosen.model_dump())),
            output_hidden_states=draw(rarely(True, False, one_in=3)),
            output_attentions=eager and draw(rarely(True, False, one_in=4)),
        )
    return chosen


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings, drafter: str) -> PrefillPlan:
    """Drafting as `drafter` says; earlier turns, chunks and embeddings in about a third of the draws each."""
    fields: dict[str, Any] = {"drafter": drafter}
    width = max(len(row) for row in prompt.rows)
    if drafter != "none":
        fields |= draw(drafting(settings.max_new_tokens))
        # A script is about what is accepted: under steered scores nobody can say what that has to be, and a threshold
        # leaves little of a tiny model's drafts.
        # What speaks of tokens by number says nothing to an assistant that has others.
        if drafter == "translated":
            fields |= {
                "ngrams": 0,
                "assistant_static": False,
                "assistant_own": draw(rarely("penalty", "nothing", one_in=3)),
                "words_again": draw(rarely(True, False, one_in=3)),
            }
        elif drafter != "scripted" or draw(rarely(True, False, one_in=4)):
            fields |= draw(steering())
    # States that are looked at are compared where the prompt arrives whole.
    looked_at = settings.output_hidden_states or settings.output_attentions
    seldom = 3 if drafter == "none" else 15 if looked_at else 5
    parts = whole_parts(model.architecture, prompt)
    if decoder_only(model.architecture) and parts and draw(rarely(True, False, one_in=seldom)):
        fields |= draw(arriving(parts))
    if drafter != "translated" and draw(rarely(True, False, one_in=2 if width == 1 else seldom)):
        # What guides is taken from the prompt's last id.
        fields |= {"embeds": True, "ids_too": draw(rarely(True, False, one_in=3)), "guidance": 1.0}
    alone = drafter == "none" and not fields.get("turns") and not fields.get("embeds")
    if alone or draw(rarely(True, False, one_in=2 if fields.get("turns") else seldom)):
        fields["chunk"] = draw(st.integers(1, width + 2))
    filled = fields.get("turns") or fields.get("assistant_static")
    fields["static"] = draw(rarely(True, False, one_in=4 if filled else 8))
    # Only what has parts is given positions here: the plain call with them is another family's.
    positions = rarely(True, False, one_in=3 if fields.get("turns") else 6)
    fields["positions"] = decoder_only(model.architecture) and draw(positions)
    if drafter != "none":
        fields["streamed"] = draw(rarely(True, False, one_in=5))
        either = drafter not in ("block", "ahead", "sharing") and _two_dtypes(model)
        fields["assistant_retyped"] = either and draw(rarely(True, False, one_in=12))
    fields["watermark"] = draw(_watermarks) if drafter != "translated" else ""
    if settings.do_sample:
        fields["temperature"] = draw(st.sampled_from((1.0, 0.7, 1.3)))
        fields["top_k"] = draw(rarely(4, 0, one_in=4))
        fields["top_p"] = draw(rarely(0.8, 1.0, one_in=4))
    told_otherwise = settings.forced_eos or fields.get("min_new")
    if not told_otherwise and draw(rarely(True, False, one_in=16 if drafter != "none" else 8)):
        fields |= draw(limited(drafts=drafter != "none"))
    return PrefillPlan(**fields)


@st.composite
def limited(draw: st.DrawFn, drafts: bool) -> dict[str, Any]:
    """A limit of the caller's own; a static cache or beams with it where nothing is drafted, which is enough alone."""
    besides = "nothing" if drafts else draw(st.sampled_from(("nothing", "static", "beams", "static")))
    return {"beyond": draw(st.integers(1, 3)), "static": besides == "static", "beams": 2 if besides == "beams" else 1}


_watermarks = rarely(True, False, one_in=14).flatmap(
    lambda put: st.sampled_from(("synthid", "synthid", "green")) if put else st.just("")
)


def _two_dtypes(model: ModelSpec) -> bool:
    """Whether the type runs in either dtype, so that its assistant may have the other."""
    return capabilities(model.architecture).float64


@st.composite
def drafting(draw: st.DrawFn, limit: int) -> dict[str, Any]:
    """How much is drafted, how good, and what stops or steers the decoding meanwhile."""
    fields: dict[str, Any] = {
        "most": draw(st.integers(1, 8)),
        "noise": draw(st.sampled_from((0.1, 0.02, 0.3, 0.6))),
        "assistant_seed": draw(st.integers(1, 2**15)),
        "script": tuple(draw(st.lists(st.booleans(), min_size=3, max_size=8))),
        "argument": draw(rarely(True, False, one_in=4)),
        "schedule": draw(st.sampled_from(("constant", "constant", "heuristic", "heuristic_transient"))),
        "assistant_static": draw(rarely(True, False, one_in=12)),
        "ngram": draw(st.integers(1, 3)),
        "exit_layer": draw(rarely(2, 1, one_in=4)),
    }
    if draw(rarely(True, False, one_in=3)):
        fields["stop_at"] = tuple(draw(st.lists(st.integers(0, limit - 1), min_size=1, max_size=2, unique=True)))
        fields["stop_strings"] = draw(rarely(True, False, one_in=4))
    fields["raises"] = draw(st.integers(0, 6))
    fields["ngrams"] = draw(rarely(2, 0, one_in=10))
    return fields


@st.composite
def steering(draw: st.DrawFn) -> dict[str, Any]:
    """What is done to the scores of the main model and not to an assistant's, or the other way round."""
    return {
        "threshold": draw(st.sampled_from((0.0, 0.0, 0.0, 0.2, 0.4))),
        "assistant_own": draw(st.sampled_from(("nothing",) * 13 + ("least", "most", "penalty"))),
        "min_new": draw(rarely(3, 0, one_in=10)),
        "min_as_length": draw(st.booleans()),
        "guidance": draw(rarely(1.5, 1.0, one_in=5)),
        "forced_first": draw(rarely(True, False, one_in=16)),
    }


@st.composite
def arriving(draw: st.DrawFn, parts: Sequence[int]) -> dict[str, Any]:
    """Earlier calls that leave one to three growing parts of the prompt in the cache."""
    turn = st.sampled_from(parts)
    return {
        "turns": tuple(sorted(draw(st.sets(turn, min_size=1, max_size=3)))),
        "whole": draw(rarely(True, False, one_in=5)),
        "decoded": draw(st.integers(0, 3)),
        "made_by": draw(st.sampled_from(("plain", "plain", "chunked", "lookup", "assisted"))),
        "only_new": draw(st.booleans()),
        "bare": draw(rarely(True, False, one_in=3)),
    }
