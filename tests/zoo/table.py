"""Which check is meant for which fault, how it must name it, and which other checks may see it for a right reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from conformance.subjects.installed import Installed
from zoo import planted, special, subjects


@dataclass(frozen=True)
class Fault:
    """`seen_as`: the (kind, field) that the difference may have; `also`: other check → why it may fail too."""

    found_by: str
    seen_as: frozenset[tuple[str, str]]
    subject: Callable[[], Any] = Installed
    planted: Callable[[], AbstractContextManager[None]] = nullcontext
    also: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "llama"

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
)
