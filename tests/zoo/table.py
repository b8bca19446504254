"""Which check is meant for which fault, how it must name it, and which other checks may see it for a right reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference
from zoo import late_stops, planted, special, subjects


@dataclass(frozen=True)
class Fault:
    """`seen_as`: the (kind, field) that the difference may have; `also`: other check → why it may fail too.

    `examples`: it is found within so many counted examples of one item.
    """

    found_by: str
    seen_as: frozenset[tuple[str, str]]
    subject: Callable[[], Any] = Installed
    planted: Callable[[], AbstractContextManager[None]] = nullcontext
    also: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "llama"
    examples: int = 50

    @property
    def name(self) -> str:
        return self.subject().name if self.planted is nullcontext else self.planted.__name__.replace("_", "-")


from zoo.fault import Fault
from zoo.fault import seen as _seen
from zoo.prefill_table import PREFILL_FAULTS

CACHED, SEVERAL = "cached-matches-recomputed", "several-tokens-match-one-by-one"
PADDED, STATIC, REFERENCE = "padded-row-matches-alone", "static-matches-dynamic", "reference-matches-installed"
REPEATABLE, UNCHANGED, STREAM = "repeatable", "nothing-of-the-callers-changed", "streamer-sees-the-sequence"
TIED, WRONG = "tied-groups-stay-tied", "wrong-ties-are-refused"
MATCH, ON_META, REFUSED = "special-tokens-match-on-cpu", "special-tokens-work-on-meta", "meta-ids-are-refused-clearly"
CONFIG, MODES = "special-tokens-change-no-config", "special-tokens-serve-every-mode"
DEFAULTS, MISPLACED = "assisted-survives-special-tokens-on-meta-defaults", "misplaced-fails-early-and-clearly"
TOKENS = ("bos", "eos", "pad", "decoder_start")
LOGITS, SCORES = ("values", "logits"), ("values", "scores")


LATE, LATE_STREAM = "deferred-stop-matches-immediate", "deferred-stop-streams-each-token-once"
LATE_CACHE, LATE_ERROR = "deferred-cache-continues-like-immediate", "no-trace-after-an-error"
LATE_WAITS, LATE_REFUSES = "deferral-never-waits-for-its-own-step", "deferral-refuses-when-it-must"
LOGITS, SCORES = ("values", "logits"), ("values", "scores")


def _seen(*pairs: tuple[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(pairs)


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

LATE_STOPS = (
    _late(LATE, late_stops.undo_omits_the_scores, ("added", "scores")),
    _late(LATE, late_stops.undo_of_nothing_empties, ("removed", "logits"), ("removed", "scores")),
    _late(LATE, late_stops.cache_is_not_put_back, *LENGTHS, also=LEFT_BEHIND),
    _late(LATE, late_stops.cache_is_cropped_twice, *LENGTHS, also=LEFT_BEHIND),
    _late(LATE, late_stops.slot_is_read_before_its_event, *UNREAD, ("length", "forwards")),
    _late(LATE, late_stops.slots_are_not_rotated, *UNREAD, ("length", "forwards")),
    _late(LATE, late_stops.random_numbers_are_not_put_back, ("changed", "rng")),
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
    _late(LATE_WAITS, late_stops.own_step_is_waited_for, ("length", "waits")),
    _late(LATE_WAITS, late_stops.flag_is_read_as_well, ("length", "values read by the host")),
    _late(LATE_REFUSES, late_stops.deferral_is_never_refused, ("changed", "deferral"), architecture="mamba2"),
)

FAULTS = (
    Fault(CACHED, _seen(LOGITS), subjects.DropsOldest),
    Fault(CACHED, _seen(LOGITS), subjects.RepeatsPosition),
    Fault(CACHED, _seen(LOGITS), subjects.RoundsCache),
    Fault(CACHED, _seen(("length", "sequences")), subjects.StopsEarly),
    Fault(CACHED, _seen(SCORES), subjects.AltersScore),
    Fault(CACHED, _seen(("infinity", "scores")), subjects.MasksScore),
    Fault(CACHED, _seen(("nan", "scores")), subjects.LosesLogit),
    Fault(CACHED, _seen(LOGITS), subjects.ChoosesSecond),
    Fault(SEVERAL, _seen(LOGITS), planted=planted.several_tokens_in_another_order),
    Fault(PADDED, _seen(LOGITS), subjects.SwapsRows),
    Fault(PADDED, _seen(("tokens", "padding")), subjects.KeepsEmitting),
    Fault(CACHED, _seen(("length", "sequences")), subjects.IgnoresEnd),
    Fault(PADDED, _seen(("crash", "crash")), subjects.CrashesOnBatches),
    Fault(STATIC, _seen(LOGITS), planted=planted.static_layer_scales_values),
    Fault(STATIC, _seen(("crash", "crash")), planted=planted.static_layer_refuses),
    Fault(REFERENCE, _seen(("changed", "scores")), planted=planted.reference_scores_one_ulp_off),
    Fault(REFERENCE, _seen(("changed", "cache_length")), planted=planted.installed_returns_shorter_cache),
    Fault(REFERENCE, _seen(("changed", "rng")), planted=planted.installed_draws_once_more),
    Fault(REPEATABLE, _seen(("changed", "logits"), ("changed", "sequences")), subjects.KeepsState),
    Fault(UNCHANGED, _seen(("changed", "generation_config.low_memory")), subjects.EditsGenerationConfig),
    Fault(UNCHANGED, _seen(("changed", "model.config.bos_token_id")), subjects.EditsModelConfig),
    Fault(UNCHANGED, _seen(("changed", "model.generation_config.bos_token_id")), subjects.EditsModelsGenerationConfig),
    Fault(UNCHANGED, _seen(("changed", "module attribute last_limit")), subjects.LeavesStateOnModel),
    Fault(
        UNCHANGED,
        _seen(("changed", "inputs.input_ids")),
        subjects.EditsInputs,
        also={
            REPEATABLE: "the second call is given the edited prompt",
            STREAM: "what the streamer was given is the caller's tensor",
        },
    ),
    Fault(STREAM, _seen(("length", "streamed")), subjects.StreamsTwice),
    Fault(STREAM, _seen(("length", "streamed")), subjects.StreamsLate),
    Fault(STREAM, _seen(("tokens", "streamed")), subjects.StreamsAnother),
    Fault(STREAM, _seen(("length", "stream end")), subjects.NeverEndsStream),
    Fault(STREAM, _seen(("crash", "crash")), subjects.CrashesWhenStreaming),
    Fault(
        TIED,
        _seen(("untied", "saving and loading"), ("untied", "making"), ("length", "checkpoint")),
        planted=planted.loading_forgets_a_tie,
        also={WRONG: "the release itself accepts a second source"},
    ),
    Fault(
        WRONG,
        _seen(("silent", "target"), ("silent", "source"), ("silent", "two sources")),
        planted=planted.wrong_ties_are_ignored,
        also={TIED: "the release itself resolves pairs in one order only"},
    ),
    Fault(MATCH, _seen(("shape", "eos")), special.Eos0d),
    Fault(MATCH, _seen(("values", "pad"), ("shape", "pad")), special.PadFromLast),
    Fault(MATCH, _seen(("values", "pad")), special.ZeroIsUnset),
    Fault(MATCH, _seen(*(("changed", f"{name} dtype") for name in TOKENS)), special.Int32),
    Fault(MATCH, _seen(("changed", "warnings")), special.WarnsOfNothing),
    Fault(ON_META, _seen(*(("changed", f"{name} device") for name in TOKENS)), special.IgnoresDevice),
    Fault(ON_META, _seen(("changed", "reads"), ("crash", "crash")), special.ReadsTheirValues),
    Fault(REFUSED, _seen(("missing", "refusal")), special.MovesMetaTensors),
    Fault(REFUSED, _seen(("changed", "type of the refusal")), special.PlainRuntimeError),
    Fault(CONFIG, _seen(("changed", "generation_config")), special.PreparesInPlace),
    Fault(CONFIG, _seen(("changed", "generation_config")), special.KeepsTensors),
    Fault(MODES, _seen(("tokens", "sequences")), special.FirstEndOnly),
    Fault(DEFAULTS, _seen(("crash", "crash")), special.DraftsAnywhere),
    Fault(MISPLACED, _seen(("length", "refusal")), special.RefusesLate),
    *PREFILL_FAULTS,
    *LATE_STOPS,
)
