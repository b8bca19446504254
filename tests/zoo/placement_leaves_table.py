"""Planners and placers that change what is not theirs, and the check meant for each."""

from __future__ import annotations

from zoo import placed_leaves
from zoo.fault import Fault, seen, steered
from zoo.placement_table import CPU_AND_DISK, ON_THE_DISK, PLAIN, PLANNED

GIVEN, TORCH = "placing-changes-nothing-given", "placing-leaves-torch-alone"

FAULTS = (
    Fault(
        GIVEN,
        seen(("changed", "max_memory")),
        placed_leaves.RaisesTheLimits,
        also={"planned-map-keeps-within-memory": "it fills the limits that it has made"},
        examples=200,
        rare=True,
        steered=PLANNED,
    ),
    Fault(
        GIVEN,
        seen(("changed", "device_map")),
        placed_leaves.UsesUpTheMap,
        examples=200,
        rare=True,
        steered=steered(CPU_AND_DISK),
    ),
    Fault(GIVEN, seen(("changed", "checkpoint")), placed_leaves.NotesInTheCheckpoint),
    Fault(TORCH, seen(("changed", "seed of the generator")), placed_leaves.SeedsAnew),
    Fault(
        TORCH,
        seen(("changed", "process.default dtype")),
        placed_leaves.LeavesTheDtype,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "loaded_as": "bfloat16"}),
    ),
    Fault(
        TORCH,
        seen(("changed", "process.default device")),
        placed_leaves.LeavesTheDevice,
        examples=200,
        rare=True,
        steered=ON_THE_DISK,
    ),
    Fault(TORCH, seen(("changed", "process.threads")), placed_leaves.LeavesMoreThreads),
    Fault(
        "placing-another-leaves-the-first",
        seen(("changed", "weights of another model")),
        placed_leaves.WritesWhereItWasTold,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "places": ("disk",), "folder": "shared"}),
    ),
    Fault(
        "wrong-map-is-refused",
        seen(("silent", "map: no entry"), ("silent", "map: no such device")),
        placed_leaves.TakesAnyMap,
        examples=200,
        rare=True,
        steered=steered({**CPU_AND_DISK, "mistake": "misspelt"}),
    ),
    Fault("placement-changes-no-config", seen(("changed", "frozen")), placed_leaves.Freezes),
    Fault("placement-changes-no-config", seen(("changed", "config.pad_token_id")), placed_leaves.EditsConfigWhenItRuns),
    Fault(
        "decoding-moves-no-weight",
        seen(("changed", "places")),
        placed_leaves.KeepsWhatItBrings,
        examples=200,
        rare=True,
        steered=ON_THE_DISK,
    ),
    Fault(
        "cache-is-where-its-layer-runs",
        seen(("changed", "cache")),
        placed_leaves.KeepsTheCacheOnTheCpu,
        examples=200,
        rare=True,
        steered=steered({**PLAIN, "places": ("sim:0",), "accelerators": 1}),
    ),
)
