"""Broken loaders, dispatchers and audits, and the check meant for each."""

from __future__ import annotations

from typing import Any

from zoo import audits, placed_mechanisms, placements, planners
from zoo.fault import Fault, steered
from zoo.fault import seen as _seen

LOGITS = ("values", "logits")
PLAIN: dict[str, Any] = {
    "model": "own", "by_itself": "", "loader": "from_pretrained", "map": "whole", "places": ("cpu",), "accelerators": 0,
    "hardware": "sim", "split_tied": False, "ids": "embeddings", "mode": "plain", "stranded": None, "damage": "weights",
    "stored": "once", "shards": False, "loaded_as": "", "spelled": "words", "saved_over": "", "limits": "bytes",
    "folder": "its own", "mistake": "",
}  # fmt: skip
ON_THE_DISK = steered({**PLAIN, "places": ("disk",)})
PLANNED = steered({**PLAIN, "map": "auto", "budget": (60,)})
CPU_AND_DISK: dict[str, Any] = {**PLAIN, "map": "parts", "places": ("cpu", "disk", "cpu", "disk", "disk")}
OVER_TWO: dict[str, Any] = {**PLAIN, "map": "auto", "accelerators": 2, "budget": (60, 60, 100)}
BLIND: tuple[tuple[type[audits.Auditor], dict[str, Any]], ...] = (
    (audits.BlindToBuffers, {"damage": "buffer"}),
    (audits.BlindToTies, {"damage": "untied", "model": "tied embeddings"}),
    (audits.BlindToTheMap, {"damage": "unmapped", "map": "parts", "places": ("cpu", "disk")}),
    (audits.BlindToPlaces, {"damage": "moved", "map": "parts", "places": ("sim:0", "sim:1"), "accelerators": 2}),
    (audits.BlindToCopies, {"damage": "no copy", "places": ("disk",)}),
)

FROZEN = {"placement-changes-no-config": "what takes the place of a weight needs no gradient"}

FAULTS = (
    Fault("nothing-stranded-on-meta", _seen(("missing", "weights")), placements.ForgetsAPart, also=FROZEN),
    Fault("placed-groups-stay-tied", _seen(("changed", "tied group")), placements.BreaksTies, also=FROZEN),
    Fault(
        "map-covers-the-model",
        _seen(("missing", "hf_device_map")),
        placements.ForgetsTheMap,
        also={"save-and-reload-keeps-ties": "what saves an offloaded model looks for its map"},
    ),
    Fault("no-op-reads-meta", _seen(("values", "meta input")), placements.ReadsMeta),
    Fault("placed-weights-are-the-same", _seen(("changed", "buffers")), placements.RotaryLeftBehind),
    Fault(
        "placed-weights-are-the-same",
        _seen(("changed", "buffers")),
        placements.RotaryLostInFewDigits,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "loaded_as": "bfloat16"}),
    ),
    Fault(
        "placed-matches-unplaced",
        _seen(LOGITS, ("tokens", "sequences")),
        placements.ChangesWhatItPasses,
        also={"placed-matches-in-few-digits": "the head is given half in any dtype"},
    ),
    Fault(
        "placed-matches-in-few-digits",
        _seen(LOGITS, ("tokens", "sequences")),
        placements.ChangesItInFewDigits,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "loaded_as": "bfloat16"}),
    ),
    Fault(
        "parts-are-where-the-map-says",
        _seen(("changed", "places")),
        placements.IgnoresTheMap,
        examples=200,
        rare=True,
        steered=steered(CPU_AND_DISK),
    ),
    Fault(
        "parts-are-where-the-map-says",
        _seen(("changed", "hf_device_map")),
        placements.PutsAPartElsewhere,
        examples=200,
        rare=True,
        steered=steered(CPU_AND_DISK),
    ),
    Fault("placement-changes-no-config", _seen(("changed", "training")), placements.TrainsWhatItPlaces),
    Fault(
        "placement-changes-no-config",
        _seen(("changed", "attention.llama")),
        placements.AttendsOtherwise,
        also={"placed-matches-in-few-digits": "another kernel rounds otherwise"},
        examples=200,
        rare=True,
        steered=steered(PLAIN),
    ),
    Fault("planning-never-crashes", _seen(("crash", "crash")), placements.PlansByIndex),
    Fault("save-and-reload-keeps-ties", _seen(("changed", "weights")), placements.SavesAnother),
    Fault("save-and-reload-keeps-ties", _seen(("changed", "weights")), placements.SavesAnotherLater),
    Fault(
        "placement-changes-no-config",
        _seen(("changed", "config.bos_token_id")),
        placements.EditsConfigWhilePlacing,
        also={"placed-matches-unplaced": "without a prompt, decoding starts with the first token of the config"},
    ),
    Fault(
        "placed-late-stop-matches-immediate",
        _seen(("changed", "sequences"), ("removed", "logits"), ("crash", "crash")),
        placed_mechanisms.WaitsForAnotherDevice,
        examples=200,
        rare=True,
    ),
    Fault(
        "placed-crop-round-trip",
        _seen(LOGITS, ("crash", "crash")),
        placed_mechanisms.CropsOneDevice,
        examples=200,
        rare=True,
    ),
    Fault(
        "placed-special-tokens-match-plain",
        _seen(("crash", "crash")),
        placed_mechanisms.ComparesWhereTheTokenIs,
        examples=200,
        rare=True,
    ),
    Fault(
        "stranded-weight-is-named",
        _seen(("unclear", "audit"), ("unclear", "error"), ("values", "meta input")),
        placements.AuditsVaguely,
        also={"audit-accuses-nothing-right": "it takes a weight that a hook brings for missing, too"},
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "stranded": 0}),
    ),
    *(
        Fault(
            "stranded-weight-is-named",
            _seen(("unclear", "audit"), ("unclear", "error"), ("values", "meta input")),
            audit,
            examples=200,
            rare=True,
            steered=steered({**PLAIN, "stranded": 0, **plan}),
        )
        for audit, plan in BLIND
    ),
    Fault(
        "audit-accuses-nothing-right",
        _seen(("accused", "audit")),
        placements.AuditsByDevice,
        examples=200,
        rare=True,
        steered=ON_THE_DISK,
    ),
    Fault(
        "planned-map-keeps-within-memory",
        _seen(("values", "max_memory")),
        planners.Overfills,
        examples=200,
        rare=True,
        steered=PLANNED,
    ),
    Fault(
        "placed-matches-unplaced",
        _seen(("crash", "crash")),
        planners.SplitsABlock,
        also={"planned-map-keeps-within-memory": "it puts a part where there was room for another only"},
        examples=200,
        rare=True,
        steered=steered(OVER_TWO),
    ),
    Fault(
        "placed-matches-unplaced",
        _seen(("crash", "crash")),
        planners.SplitsATiedGroup,
        examples=200,
        rare=True,
        steered=steered({**OVER_TWO, "model": "tied embeddings"}),
        also={
            "planning-never-crashes": "the loader meets one half of the group on meta",
            "placed-groups-stay-tied": "the halves are left where the map has them",
            "save-and-reload-keeps-ties": "saving meets two weights where there was one",
        },
    ),
    Fault(
        "planning-never-crashes",
        _seen(("crash", "crash")),
        planners.ForgetsAModule,
        examples=200,
        rare=True,
        steered=PLANNED,
    ),
    Fault(
        "planning-never-crashes",
        _seen(("crash", "crash")),
        planners.TakesEntriesForPrefixes,
        architecture="bloom",
        examples=200,
        rare=True,
        steered=PLANNED,
    ),
    Fault(
        "placed-matches-unplaced",
        _seen(("crash", "crash"), ("tokens", "sequences"), LOGITS),
        placements.MovesIdsToMeta,
        examples=200,
        rare=True,
        steered=ON_THE_DISK,
        also={"no-op-reads-meta": "an op gives values of ids that have none"},
    ),
    Fault(
        "checkpoint-loads-as-saved",
        _seen(("changed", "loaded weights")),
        placements.LosesTheLastFile,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "shards": True}),
    ),
    Fault(
        "placed-weights-are-the-same",
        _seen(("changed", "weights")),
        placements.RoundsWeights,
        examples=200,
        rare=True,
        steered=steered(PLAIN),
    ),
    Fault(
        "saving-over-keeps-the-checkpoint",
        _seen(("changed", "weights")),
        placements.KeepsTheOldFile,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "saved_over": "whole"}),
    ),
    Fault(
        "planned-map-fills-accelerators-first",
        _seen(("values", "hf_device_map")),
        planners.OffloadsWhatFits,
        examples=200,
        rare=True,
        steered=steered({**OVER_TWO, "budget": (300, 300, 50)}),
    ),
    Fault(
        "placed-matches-unplaced",
        _seen(("values", "devices")),
        placed_mechanisms.LetsDevicesMix,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "map": "parts", "places": ("sim:0", "sim:1"), "accelerators": 2}),
    ),
    Fault(
        "memory-is-as-mapped",
        _seen(("changed", "memory")),
        placements.LoadsOnOneDevice,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "map": "parts", "places": ("sim:0", "sim:1"), "accelerators": 2}),
    ),
)
