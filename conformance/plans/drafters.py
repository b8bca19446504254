"""Who may draft, and what of a plan of the `prefill` family is of no effect beside the rest."""

from __future__ import annotations

from typing import Any, Literal

Drafter = Literal[
    "none",
    "same",
    "noisy",
    "shallow",
    "other",
    "scripted",
    "lookup",
    "early_exit",
    "block",
    "translated",
    "ahead",
    "sharing",
]
MODELS = (
    "same",
    "noisy",
    "shallow",
    "other",
    "scripted",
    "block",
    "translated",
    "sharing",
)  # the drafters that are an assistant model
SINGULAR = ("block", "translated", "ahead", "sharing")  # what a script on its own cannot make


def idle_fields(plan: Any) -> set[str]:
    """The fields of a plan that are of no effect, whatever they say, beside what the others say."""
    effective = {
        ("decoded", "made_by", "only_new"): plan.continues,
        ("ids_too",): plan.embeds,
        ("stop_strings",): bool(plan.stop_at),
        ("min_as_length",): plan.min_new > 0,
        ("beams",): plan.beyond > 0,
        ("streamed",): plan.drafts,
        ("argument", "assistant_static", "assistant_own", "assistant_retyped"): plan.drafter in MODELS,
        ("schedule", "threshold"): plan.drafter in (*MODELS, "early_exit"),
        ("exit_layer",): plan.drafter == "early_exit",
        ("words_again",): plan.drafter == "translated",
    }
    return {name for names, there in effective.items() for name in names if not there}
