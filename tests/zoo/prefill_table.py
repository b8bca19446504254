"""The faults of the `prefill` family's zoo, as `zoo.table` lists those of the others."""

from __future__ import annotations

from conformance.subjects.reference import Reference
from zoo import arriving, drafting
from zoo.fault import Fault, seen, steered

ASSISTED, LOOKUP, EXIT = "assisted-matches-plain", "prompt-lookup-matches-plain", "early-exit-matches-plain"
CHUNKED, TURNS, EMBEDS = "chunked-prefill-matches-whole", "continuing-matches-from-scratch", "embeddings-match-ids"
FIRST, RECORDS, CONFIGS = (
    "first-iteration-happens-once",
    "assisted-records-match-plain",
    "assisted-leaves-configs-alone",
)
CACHE, LENGTH = "assisted-leaves-the-cache-ordinary", "drafts-are-as-long-as-asked"
IMAGES = "multimodal-inputs-are-used-once"
BELIEVED, AGAIN = "same-model-is-believed", "mode-is-repeatable"
STREAMED = "drafts-are-streamed"
LIMIT = "callers-limit-counts"
LOGITS = ("values", "logits")
EVERY_DRAFT = {LOOKUP: "the same loop verifies it", EXIT: "the same loop verifies it"}
LOST = {**EVERY_DRAFT, STREAMED: "what is missing from the sequence was streamed before"}
ALSO_EARLIER = {**EVERY_DRAFT, TURNS: "an earlier turn that looks up is verified by the same loop"}


DRAFTING = {
    "embeds": False,
    "turns": (),
    "chunk": 0,
    "static": False,
    "threshold": 0.0,
    "stop_at": (),
    "most": 4,
    "stop_strings": False,
    "forced_first": False,
    "assistant_static": False,
    "assistant_own": "nothing",
    "whole": False,
    "positions": False,
    "assistant_retyped": False,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "watermark": "",
    "words_again": False,
    "beyond": 0,
    "beams": 1,
}
UNDRAFTED = {**DRAFTING, "drafter": "none", "bare": False, "made_by": "plain"}
ASSISTED_BY_ITSELF = {**DRAFTING, "drafter": "same", "schedule": "constant", "ngrams": 0, "min_new": 0, "guidance": 1.0}
SCRIPTED = {**ASSISTED_BY_ITSELF, "drafter": "scripted"}


def _planted(found_by, planted, *pairs, also=(), **parts):
    rare = {"rare": True, "examples": 300} if "steered" in parts else {}
    return Fault(found_by, seen(*pairs), Reference, planted, also=dict(also), **{**rare, **parts})


FAULTS = (
    _planted(ASSISTED, drafting.accepts_one_too_many, ("tokens", "sequences"), also=ALSO_EARLIER),
    _planted(ASSISTED, drafting.loses_an_accepted_token, ("length", "logits"), also=LOST),
    _planted(ASSISTED, drafting.loses_the_bonus_token, ("length", "logits"), also=LOST),
    _planted(
        ASSISTED,
        drafting.ends_inside_drafts_ignored,
        ("length", "sequences"),
        ("length", "logits"),
        also=EVERY_DRAFT,
        steered=steered(ASSISTED_BY_ITSELF, eos_at=((0, 2),)),
    ),
    _planted(
        ASSISTED,
        drafting.drafts_end_at_the_settings_limit,
        ("length", "sequences"),
        also=EVERY_DRAFT,
        steered=steered({**ASSISTED_BY_ITSELF, "beyond": 2}),
    ),
    Fault(
        LIMIT,
        seen(("length", "sequences")),
        planted=arriving.callers_limit_is_dropped,
        rare=True,
        steered=steered({**UNDRAFTED, "beyond": 2, "min_new": 0}),
    ),
    _planted(ASSISTED, drafting.scores_of_rejected_tokens_kept, ("length", "logits"), also=EVERY_DRAFT),
    _planted(
        LOOKUP,
        drafting.lookup_needs_an_occurrence,
        ("crash", "crash"),
        steered=steered({**DRAFTING, "drafter": "lookup"}),
    ),
    _planted(
        EXIT,
        drafting.layers_stay_cut,
        LOGITS,
        ("crash", "crash"),
        steered=steered({**DRAFTING, "drafter": "early_exit"}),
    ),
    _planted(
        RECORDS,
        drafting.states_of_the_first_token,
        ("values", "hidden_states"),
        ("values", "attentions"),
        # The first round accepts nothing: where it does, 5.24.0 has a fault of the same kind.
        steered=steered({**SCRIPTED, "script": (False, True, True, True)}, output_hidden_states=True),
    ),
    _planted(
        BELIEVED,
        drafting.assistant_keeps_rejected_tokens,
        ("tokens", "draft"),
        steered=steered(ASSISTED_BY_ITSELF),
    ),
    _planted(
        CONFIGS,
        drafting.schedule_written_into_the_config,
        ("changed", "assistant.generation_config.num_assistant_tokens"),
    ),
    _planted(LENGTH, drafting.drafts_too_much, ("length", "draft"), steered=steered(ASSISTED_BY_ITSELF)),
    _planted(CACHE, drafting.cache_keeps_a_mode, ("added", "cache record_past"), ("changed", "cache record_past")),
    _planted(FIRST, drafting.never_first, ("missing", "is_first_iteration"), also={EMBEDS: "only then they are used"}),
    _planted(
        FIRST,
        drafting.always_first,
        ("changed", "is_first_iteration"),
        ("changed", "assistant is_first_iteration"),
        also={
            EMBEDS: "they are used again in every iteration that is a first one",
            LENGTH: "what was drafted is told from the first iteration on",
        },
    ),
    _planted(
        IMAGES,
        drafting.prefills_twice,
        ("changed", "main media"),
        also={FIRST: "the second prefill is a first iteration too"},
        architecture="llava",
    ),
    _planted(
        CHUNKED,
        drafting.chunk_positions_off_by_one,
        LOGITS,
        also={TURNS: "an earlier call is made in chunks"},
    ),
    _planted(
        CHUNKED,
        drafting.last_partial_chunk_dropped,
        LOGITS,
        also={TURNS: "an earlier call is made in chunks"},
        steered=steered({**UNDRAFTED, "chunk": 3}),
    ),
    _planted(
        TURNS, drafting.prompt_fed_twice, LOGITS, ("crash", "crash"), steered=steered({**UNDRAFTED, "turns": (1,)})
    ),
    _planted(
        TURNS,
        arriving.given_positions_start_over,
        LOGITS,
        steered=steered({**UNDRAFTED, "turns": (1,), "only_new": True, "positions": True}),
    ),
    _planted(
        STREAMED,
        arriving.drafts_streamed_before_they_are_accepted,
        ("length", "streamed"),
        steered=steered({**ASSISTED_BY_ITSELF, "streamed": True}),
    ),
    _planted(
        ASSISTED,
        arriving.drafts_verified_without_temperature,
        ("values", "scores"),
        steered=steered({**ASSISTED_BY_ITSELF, "temperature": 0.7}, do_sample=True),
    ),
    _planted(EMBEDS, drafting.embeddings_scaled, LOGITS, steered=steered({**UNDRAFTED, "embeds": True})),
    _planted(
        AGAIN, drafting.second_prefill_differs, ("changed", "logits"), ("changed", "sequences"), ("changed", "scores")
    ),
)
