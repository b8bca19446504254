"""Which check is meant for which fault, how it must name it, and which other checks may see it for a right reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from conformance.subjects.installed import Installed
from zoo import placements, planted, subjects


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


CACHED, SEVERAL = "cached-matches-recomputed", "several-tokens-match-one-by-one"
PADDED, STATIC, REFERENCE = "padded-row-matches-alone", "static-matches-dynamic", "reference-matches-installed"
REPEATABLE, UNCHANGED, STREAM = "repeatable", "nothing-of-the-callers-changed", "streamer-sees-the-sequence"
TIED, WRONG = "tied-groups-stay-tied", "wrong-ties-are-refused"
LOGITS, SCORES = ("values", "logits"), ("values", "scores")


def _seen(*pairs: tuple[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(pairs)


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
    Fault("nothing-stranded-on-meta", _seen(("missing", "weights")), placements.ForgetsAPart),
    Fault("placed-groups-stay-tied", _seen(("changed", "tied group")), placements.BreaksTies),
    Fault("map-covers-the-model", _seen(("missing", "hf_device_map")), placements.ForgetsTheMap),
    Fault("no-op-reads-meta", _seen(("values", "meta input")), placements.ReadsMeta),
    Fault(
        "placed-matches-unplaced",
        _seen(LOGITS, ("tokens", "sequences")),
        placements.RotaryLeftBehind,
    ),
    Fault("planning-never-crashes", _seen(("crash", "crash")), placements.PlansByIndex),
    Fault("save-and-reload-keeps-ties", _seen(("changed", "weights")), placements.SavesAnother),
    Fault(
        "placement-changes-no-config",
        _seen(("changed", "config.bos_token_id")),
        placements.EditsConfigWhilePlacing,
        also={"placed-matches-unplaced": "without a prompt, decoding starts with the first token of the config"},
    ),
    Fault("stranded-weight-is-named", _seen(("unclear", "error")), placements.AuditsVaguely),
)
