"""Faults of plain decoding and of what a call leaves behind, and the check meant for each."""

from __future__ import annotations

from conformance.plans.beam_search import BeamSearch
from conformance.plans.steering import Steering
from zoo import editing, planted, streaming, subjects
from zoo.fault import Fault
from zoo.fault import seen as _seen
from zoo.fault import steered as _steered

CACHED, SEVERAL = "cached-matches-recomputed", "several-tokens-match-one-by-one"
PADDED, STATIC, REFERENCE = "padded-row-matches-alone", "static-matches-dynamic", "reference-matches-installed"
FORWARD = "forward-counts-from-the-cache"
REPEATABLE, UNCHANGED, STREAM = "repeatable", "nothing-of-the-callers-changed", "streamer-sees-the-sequence"
TOLD, RETURNED = "told-otherwise-is-the-same", "returned-stays-as-it-was"
STARTS, STATIC_STARTS = "decoder-starts-with-several-tokens", "static-decoder-starts-with-several-tokens"
BEAMS, CACHED_BEAMS = "beams-score-their-sequences", "cached-beams-score-their-sequences"
LOGITS, SCORES = ("values", "logits"), ("values", "scores")

FAULTS = (
    Fault(CACHED, _seen(LOGITS), subjects.DropsOldest),
    Fault(CACHED, _seen(LOGITS), subjects.RepeatsPosition),
    Fault(CACHED, _seen(LOGITS), subjects.RoundsCache),
    Fault(CACHED, _seen(("length", "sequences")), subjects.StopsEarly),
    Fault(CACHED, _seen(SCORES), subjects.AltersScore),
    Fault(CACHED, _seen(("infinity", "scores")), subjects.MasksScore),
    Fault(CACHED, _seen(("nan", "scores")), subjects.LosesLogit),
    Fault(CACHED, _seen(LOGITS), subjects.ChoosesSecond),
    Fault("uncached-matches-recomputed", _seen(LOGITS), planted=planted.uncached_steps_see_one_token),
    Fault("kernels-agree", _seen(LOGITS), planted=planted.sdpa_scales_less),
    Fault(SEVERAL, _seen(LOGITS), planted=planted.several_tokens_in_another_order),
    Fault(FORWARD, _seen(LOGITS), planted=planted.positions_start_anew),
    Fault(
        "forward-matches-generate",
        _seen(LOGITS),
        planted=planted.untold_positions_begin_with_one,
        architecture="gpt2",
    ),
    Fault(PADDED, _seen(LOGITS), subjects.SwapsRows),
    Fault(PADDED, _seen(("tokens", "padding")), subjects.KeepsEmitting),
    Fault(CACHED, _seen(("length", "sequences")), subjects.IgnoresEnd),
    Fault(PADDED, _seen(("crash", "crash")), subjects.CrashesOnBatches),
    Fault(STATIC, _seen(LOGITS), planted=planted.static_layer_scales_values),
    Fault(STATIC, _seen(("crash", "crash")), planted=planted.static_layer_refuses),
    Fault(
        STATIC,
        _seen(LOGITS),
        planted=planted.static_layer_of_an_earlier_length_scales_values,
        also={REPEATABLE: "the same call again finds the length of the first"},
    ),
    Fault(STARTS, _seen(LOGITS), editing.AltersTheStart, architecture="t5"),
    Fault(STATIC_STARTS, _seen(LOGITS), planted=planted.static_layer_scales_several, architecture="t5"),
    Fault(
        "bfloat16-decodes-too",
        _seen(("crash", "crash")),
        planted=planted.a_step_stays_in_float32,
        rare=True,
        steered=_steered({"bfloat16": True}),
    ),
    Fault(
        "scores-follow-from-logits",
        _seen(("infinity", "scores")),
        planted=planted.pairs_count_as_repeated_late,
        rare=True,
        steered=_steered({"steering": Steering(ngrams=1)}),
    ),
    Fault(
        BEAMS,
        _seen(("values", "sequences_scores")),
        planted=planted.beams_count_a_token_more,
        rare=True,
        steered=_steered({"beams": 2, "search": BeamSearch(length_penalty=1.0)}),
    ),
    Fault(
        CACHED_BEAMS,
        _seen(("values", "sequences_scores")),
        planted=planted.reorder_forgets_the_values,
        rare=True,
        steered=_steered({"beams": 3}),
    ),
    Fault(REFERENCE, _seen(("changed", "scores")), planted=planted.reference_scores_one_ulp_off),
    Fault(REFERENCE, _seen(("changed", "cache_length")), planted=planted.installed_returns_shorter_cache),
    Fault(REFERENCE, _seen(("changed", "rng")), planted=planted.installed_draws_once_more),
    Fault(
        REPEATABLE,
        _seen(("changed", "logits"), ("changed", "sequences")),
        subjects.KeepsState,
        also={STATIC: "an earlier call may have asked for a longer cache"},
    ),
    Fault(TOLD, _seen(("changed", "sequences"), ("length", "sequences")), editing.IgnoresTheModelsLimit),
    Fault(
        TOLD,
        _seen(("changed", "sequences")),
        planted=planted.callers_criterion_is_dropped,
        rare=True,
        steered=_steered({"criterion": True, "by_itself": "", "raises": 0}, eos_at=((0, 2),)),
    ),
    Fault(RETURNED, _seen(("changed", "returned.cache.layers.keys")), editing.TakesBackTheCache),
    Fault(UNCHANGED, _seen(("changed", "generation_config.low_memory")), editing.EditsGenerationConfig),
    Fault(UNCHANGED, _seen(("changed", "generation_config.low_memory")), editing.EditsAfterAnError),
    Fault(UNCHANGED, _seen(("changed", "keywords.cache_config.backend")), editing.EditsKeywords),
    Fault(UNCHANGED, _seen(("changed", "model.config.bos_token_id")), editing.EditsModelConfig),
    Fault(
        UNCHANGED,
        _seen(("changed", "process.deterministic algorithms")),
        planted=planted.a_switch_of_torch_is_turned,
    ),
    Fault(UNCHANGED, _seen(("changed", "model.generation_config.bos_token_id")), editing.EditsModelsGenerationConfig),
    Fault(UNCHANGED, _seen(("changed", "module attribute last_limit")), subjects.LeavesStateOnModel),
    Fault(
        UNCHANGED,
        _seen(("changed", "inputs.input_ids")),
        editing.EditsInputs,
        also={
            REPEATABLE: "the second call is given the edited prompt",
            STREAM: "what the streamer was given is the caller's tensor",
        },
    ),
    Fault(STREAM, _seen(("length", "streamed")), streaming.StreamsTwice),
    Fault(STREAM, _seen(("length", "streamed")), streaming.StreamsLate),
    Fault(STREAM, _seen(("tokens", "streamed")), streaming.StreamsAnother),
    Fault(STREAM, _seen(("length", "stream end")), streaming.NeverEndsStream),
    Fault(STREAM, _seen(("crash", "crash")), streaming.CrashesWhenStreaming),
)
