"""Broken loaders, dispatchers and audits, and the check meant for each."""

from __future__ import annotations

from zoo import placed_mechanisms, placements
from zoo.fault import Fault
from zoo.fault import seen as _seen

LOGITS = ("values", "logits")

FAULTS = (
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
    Fault("stranded-weight-is-named", _seen(("unclear", "audit"), ("unclear", "error")), placements.AuditsVaguely),
)
