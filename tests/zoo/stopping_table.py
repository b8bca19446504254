"""Broken deferred stops, and the check meant for each."""

from __future__ import annotations

from typing import Any

from conformance.subjects.reference import Reference
from zoo import late_records, late_stops, late_traces
from zoo.fault import Fault
from zoo.fault import seen as _seen

LATE, LATE_STREAM = "deferred-stop-matches-immediate", "deferred-stop-streams-each-token-once"
LATE_CACHE, LATE_ERROR = "deferred-cache-continues-like-immediate", "no-trace-after-an-error"
LATE_WAITS, LATE_REFUSES = "deferral-never-waits-for-its-own-step", "deferral-refuses-when-it-must"


def _late(found_by: str, planted: Any, *pairs: tuple[str, str], **parts: Any) -> Fault:
    return Fault(found_by, _seen(*pairs), Reference, planted, **{"examples": 200, **parts})


def _cache(*names: str) -> list[tuple[str, str]]:
    """A difference of the cache, by whatever of it shows first: returned, or the caller's own."""
    kinds = ("changed", "added", "removed")
    return [(kind, f"{root}.{name}") for root in ("cache.layers", ".layers") for name in names for kind in kinds]


CONTENTS = ("keys", "values", "cumulative_length", "cumulative_length_int", "record_past", "_quantized_keys")
LEFT_BEHIND = {LATE_CACHE: "where no dict is returned, the cache is the caller's only", LATE: "it is returned too"}
LENGTHS = [("changed", "cache_length"), ("length", "sequences"), ("changed", "sequences"), *_cache(*CONTENTS)]
UNREAD = [("changed", name) for name in ("sequences", "logits", "scores", "cache_length")]
UNREAD += [("removed", name) for name in ("logits", "scores")] + [("added", name) for name in ("logits", "scores")]

_ATTENTIONS = [("changed", "states.attentions.length"), ("added", "states.attentions")]
NEXT = {LATE_ERROR: "the call after an error may be deferred, too"}

FAULTS = (
    _late(LATE, late_stops.undo_omits_the_scores, ("added", "scores"), also=NEXT),
    _late(LATE, late_stops.undo_of_nothing_empties, ("removed", "logits"), ("removed", "scores"), also=NEXT),
    _late(LATE, late_stops.cache_is_not_put_back, *LENGTHS, also=LEFT_BEHIND | NEXT),
    _late(LATE, late_stops.cache_is_cropped_twice, *LENGTHS, also=LEFT_BEHIND | NEXT),
    _late(
        LATE,
        late_stops.slot_is_read_before_its_event,
        *UNREAD,
        ("length", "forwards"),
        also=NEXT,
    ),
    _late(
        LATE,
        late_stops.slots_are_not_rotated,
        *UNREAD,
        ("length", "forwards"),
        also={LATE_STREAM: "tokens are in those slots too"} | NEXT,
    ),
    _late(LATE, late_stops.random_numbers_are_not_put_back, ("changed", "rng"), examples=20, also=NEXT),
    _late(LATE, late_records.several_sequences_are_not_undone, ("added", "scores"), examples=60, also=NEXT),
    _late(LATE, late_records.attentions_are_not_undone, *_ATTENTIONS, examples=20, also=NEXT),
    _late(LATE, late_stops.length_is_off_by_one, ("length", "forwards")),
    _late(LATE_STREAM, late_stops.extra_token_is_streamed, ("length", "streamed")),
    _late(LATE_STREAM, late_stops.last_token_is_not_streamed, ("length", "streamed")),
    _late(LATE_STREAM, late_stops.slot_itself_is_streamed, ("tokens", "streamed")),
    _late(
        LATE_CACHE,
        late_stops.recording_is_on_during_the_prefill,
        ("changed", "recording"),
        architecture="mistral",
        also={LATE: "where the caller records too, it is switched off for it", LATE_ERROR: "and after an error"},
    ),
    _late(LATE, late_stops.recording_stays_on, *_cache(*CONTENTS), architecture="mistral", also=LEFT_BEHIND),
    _late(
        LATE,
        late_stops.recording_is_switched_off_for_the_caller,
        *_cache("record_past"),
        architecture="mistral",
        also={**LEFT_BEHIND, LATE_ERROR: "whatever ends the call"},
    ),
    _late(
        LATE_ERROR,
        late_stops.recording_stays_on_after_an_error,
        ("changed", "recording"),
        architecture="mistral",
        also=LEFT_BEHIND,
    ),
    # These have a case of their own each in tests/stopping; here, how soon drawing meets them.
    _late(LATE_ERROR, late_traces.error_of_the_step_too_many_comes_out, ("crash", "step too many"), rare=True),
    _late(LATE, late_traces.a_module_keeps_an_attribute, ("added", "model.model.embed_tokens.seen"), rare=True),
    _late(
        LATE, late_traces.a_module_stays_in_training_mode, ("changed", "model.model.embed_tokens.training"), rare=True
    ),
    _late(
        LATE,
        late_traces.stop_check_is_kept_for_the_next_call,
        *UNREAD,
        ("length", "sequences"),
        *LENGTHS,
        rare=True,
    ),
    _late(LATE_WAITS, late_traces.own_step_is_polled, ("length", "waits"), rare=True),
    _late(LATE_WAITS, late_stops.own_step_is_waited_for, ("length", "waits")),
    _late(LATE_WAITS, late_stops.flag_is_read_as_well, ("length", "values read by the host")),
    _late(LATE_REFUSES, late_stops.deferral_is_never_refused, ("changed", "deferral"), architecture="mamba2"),
)
