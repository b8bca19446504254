"""Broken loaders, dispatchers and audits, and the check meant for each."""

from __future__ import annotations

from zoo import placements
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
    Fault("stranded-weight-is-named", _seen(("unclear", "audit")), placements.AuditsVaguely),
)
