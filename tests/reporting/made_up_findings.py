"""Findings made up for the tests of reports."""

from __future__ import annotations

from typing import Any

from conformance import registry
from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Plan, Prompt, Settings
from conformance.findings import Finding
from conformance.plans.cached import CachedPlan
from conformance.plans.placement import PlacementPlan
from conformance.plans.prefill import PrefillPlan
from conformance.plans.purity import PurityPlan
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.plans.stopping import StoppingPlan
from conformance.signature import Signature

# Each body of a script, by a check, the place and where it is not the logits the field of a difference that lead to it.
BODIES = {
    "cached": ("cached-matches-recomputed", "row 0 step 1"),
    "continued": ("cached-matches-recomputed", "continuation step 1"),
    "groups": ("several-tokens-match-one-by-one", "continuation step 1"),
    "padded": ("padded-row-matches-alone", "row 1 step 1"),
    "static": ("static-matches-dynamic", "row 1 step 1"),
    "decoder_starts": ("decoder-starts-with-several-tokens", "row 1 step 1"),
    "decoder_starts_static": ("static-decoder-starts-with-several-tokens", "row 1 step 1"),
    "reference": ("reference-matches-installed", ""),
    "repeatable": ("repeatable", ""),
    "purity": ("nothing-of-the-callers-changed", ""),
    "told_otherwise": ("told-otherwise-is-the-same", "sequences", "sequences"),
    "told_row": ("told-otherwise-is-the-same", "row 1 step 1"),
    "returned": ("returned-stays-as-it-was", "after another call", "returned.cache.layers.keys"),
    "streamer": ("streamer-sees-the-sequence", ""),
    "placing_crashes": ("planning-never-crashes", ""),
    "stranded": ("nothing-stranded-on-meta", ""),
    "placed": ("placed-matches-unplaced", ""),
    "reloaded": ("save-and-reload-keeps-ties", ""),
    "grouped": ("placed-groups-stay-tied", ""),
    "mapped": ("map-covers-the-model", ""),
    "configured": ("placement-changes-no-config", ""),
    "loaded": ("checkpoint-loads-as-saved", ""),
    "weighed": ("placed-weights-are-the-same", ""),
    "rollback": ("crop-round-trip", ""),
    "rollback_told": ("crop-round-trip", "", "mask sizes"),
    "rollback_stored": ("window-returns-to-its-size", "", "stored states"),
    "rollback_negative": ("length-never-negative", "crop(1)", "length"),
    "rollback_croppable": ("is-croppable-is-true", "row 0, after a longer call", "is_croppable"),
    "beams": ("beams-reorder-every-state", "beam 0 step 1"),
    "assisted_cache": ("window-returns-to-its-size", "assisted run"),
    "deferred": ("deferred-stop-matches-immediate", ""),
    "deferred_streamed": ("deferred-stop-streams-each-token-once", "call 2"),
    "deferred_left": ("deferred-cache-continues-like-immediate", ".layers.0.keys"),
    "deferred_second": ("deferred-cache-continues-like-immediate", "second call, logits.0"),
    "deferred_waits": ("deferral-never-waits-for-its-own-step", ""),
    "deferred_refused": ("deferral-refuses-when-it-must", ""),
    "deferred_error": ("no-trace-after-an-error", ""),
    "deferred_again": ("deferred-stop-matches-immediate", "second call, logits.0"),
    "deferred_hooked": ("no-trace-after-an-error", "", "step too many"),
    "deferred_after_error": ("no-trace-after-an-error", "next call, logits.0"),
    "arrived": ("chunked-prefill-matches-whole", "row 1 step 1"),
    "limited": ("callers-limit-counts", "row 1 step 1"),
    "drafted": ("assisted-matches-plain", "step 1"),
    "drafted_streamed": ("drafts-are-streamed", ""),
    "recorded": ("assisted-records-match-plain", ".hidden_states.1.0"),
    "first": ("first-iteration-happens-once", ""),
    "as_long": ("drafts-are-as-long-as-asked", ""),
    "believed": ("same-model-is-believed", "position 9"),
    "again": ("mode-is-repeatable", ""),
    "used_once": ("multimodal-inputs-are-used-once", "main itself"),
    "left": ("assisted-leaves-the-cache-ordinary", ""),
    "configs": ("assisted-leaves-configs-alone", "after the call"),
    "configs_after_error": ("assisted-leaves-configs-alone", "after an error"),
    "special_ids": ("special-tokens-match-on-cpu", ""),
    "special_ids_on_meta": ("special-tokens-work-on-meta", ""),
    "special_ids_refused": ("meta-ids-are-refused-clearly", ""),
    "special_misplaced": ("misplaced-fails-early-and-clearly", ""),
    "special_modes": ("special-tokens-serve-every-mode", ""),
    "special_starts": ("special-tokens-start-a-decoding", ""),
    "special_configs": ("special-tokens-change-no-config", ""),
    "special_defaults": ("assisted-survives-special-tokens-on-meta-defaults", ""),
}


# What a plan may ask for besides, by a word for it: the body, and the plan of a case of one row.
ASKED = {
    "scripted": ("drafted", PrefillPlan(drafter="scripted", script=(False, True, True), most=4)),
    "own": ("recorded", PrefillPlan(drafter="noisy", assistant_own="penalty")),
    "own length": ("as_long", PrefillPlan(drafter="same", assistant_own="most")),
    "static assistant": ("drafted", PrefillPlan(drafter="same", assistant_static=True)),
    "stop strings": ("drafted", PrefillPlan(drafter="same", most=4, stop_at=(1, 3), stop_strings=True)),
    "stop strings again": ("again", PrefillPlan(drafter="lookup", stop_at=(0,), stop_strings=True)),
    "embeddings and ids": ("arrived", PrefillPlan(embeds=True, ids_too=True)),
    "static turns": ("arrived", PrefillPlan(turns=(3, 4), static=True, chunk=2)),
    "told by keywords": ("told_otherwise", PurityPlan(keywords=True)),
    "told without a mask": ("told_otherwise", PurityPlan(unmasked=True)),
    "told with positions": ("repeatable", PurityPlan(by_model=True, positions=True)),
    "static with room": ("static", CachedPlan(room=3)),
    "static, changed": ("purity", PurityPlan(static=True, by_model=True)),
    "static, returned": ("returned", PurityPlan(static=True)),
    "static, streamed": ("streamer", PurityPlan(static=True, keywords=True)),
    "positions in turns": ("arrived", PrefillPlan(turns=(3,), only_new=True, positions=True)),
    "positions": ("drafted", PrefillPlan(drafter="lookup", positions=True)),
    "torch's own format": ("loaded", PlacementPlan(stored="bin", loaded_as="bfloat16")),
    "devices as objects": ("weighed", PlacementPlan(map="parts", places=("cpu",), spelled="devices")),
    "assisted turns": ("arrived", PrefillPlan(turns=(3, 4), made_by="assisted", decoded=2, chunk=1)),
}
# Prompts with images or sound, by type: what shows that their bodies take them.
SEEN = {
    "gemma3": ("cached", "continued", "groups", "padded", "static", "reference", "told_row"),
    "paligemma": ("cached",),
    "qwen2_vl": ("continued", "groups", "padded", "repeatable", "streamer", "returned"),
    "qwen2_audio": ("cached", "padded"),
    "git": ("cached",),
}
# Modules that stand in the place of those that a body names: the body, its type ("" for the usual one), and the plan.
FORMS: dict[str, tuple[str, str, Plan | None]] = {
    "arriving_embedded": ("arrived", "", PrefillPlan(embeds=True)),
    "stored": ("loaded", "", PlacementPlan(shards=True)),
    "stored_bin": ("loaded", "", PlacementPlan(stored="bin")),
    "begun": ("arrived", "", PrefillPlan(turns=(3,))),
    "helped_alone": ("drafted", "", PrefillPlan(drafter="early_exit")),
    "helped_other": ("drafted", "", PrefillPlan(drafter="other")),
    "caller": ("deferred", "", StoppingPlan()),
    "prepared": ("deferred", "", StoppingPlan(cache="fresh", recording=True)),
    "prepared_quantised": ("deferred", "", StoppingPlan(cache="fresh", quantised=True)),
    "shown_static": ("deferred_left", "", StoppingPlan(cache="fresh", static=True)),
    "following_encoded": ("deferred_second", "t5", None),
    "fed_encoded": ("rollback", "t5", None),
    "given_encoded": ("repeatable", "t5", PurityPlan(encoded=True)),
    "recompute_encoded": ("cached", "t5", None),
    "recompute_prepared": ("cached", "reformer", None),
}
# What runs on a decoder apart only.
ENCODED = {"decoder_starts": "t5", "decoder_starts_static": "t5"}
# By family, or by check.
PLANS = {
    "told-otherwise-is-the-same": PurityPlan(by_model=True),
    "stopping": StoppingPlan(cache="fresh"),
    "deferral-refuses-when-it-must": StoppingPlan(cache="fresh", words="cannot"),
    "no-trace-after-an-error": StoppingPlan(cache="fresh", raises="processor", raises_at=2),
    "prefill": PrefillPlan(drafter="same"),
    "prefill, in chunks": PrefillPlan(chunk=2),
    "callers-limit-counts": PrefillPlan(beyond=2),
    "cached": CachedPlan(continuation=(5, 6, 7, 8), groups=(3, 1)),
    "rollback": RollbackPlan(
        program=(Op(op="prefill"), Op(op="feed", tokens=(5, 6)), Op(op="crop", count=1)), beams=2, draft=2
    ),
}
# Of later steps the release records other states.
SETTINGS = {"assisted-records-match-plain": Settings(output_hidden_states=True)}
ROWS = ((1, 2, 3, 4, 5), (6, 7, 8))


def case_of(
    check: str,
    architecture: str = "llama",
    *,
    without: str = "",
    settings: Settings | None = None,
    rows: tuple[tuple[int, ...], ...] = ROWS,
    plan: Plan | None = None,
    images: int = 0,
    **model: Any,
) -> Case:
    """A small case of the check's family, with two rows of different lengths."""
    config = {name: value for name, value in tiny_config(architecture).items() if name != without}
    family = registry.get(check).family
    plan = plan or PLANS.get("prefill, in chunks" if check.startswith("chunked") else check, PLANS.get(family))
    return Case(
        family=family,
        model=ModelSpec(architecture=architecture, config=config, weight_seed=3, **model),
        prompt=Prompt(rows=rows, images=images, image_seed=3 if images else 0),
        settings=settings or SETTINGS.get(check, Settings(max_new_tokens=4, eos=(9,))),
        plan=plan,
    )


def finding_of(body: str, architecture: str = "", **parts: Any) -> Finding:
    """A finding of which the script has this body."""
    check, where, *field = BODIES[body]
    names = ("without", "settings", "rows", "plan", "dtype", "attention", "images")
    architecture = architecture or ENCODED.get(body, "llama")
    case = case_of(check, architecture, **{name: parts.pop(name) for name in names if name in parts})
    signature = {
        "kind": "values",
        "field": field[0] if field else "logits",
        "raised_in": "",
        "cache": ("full",),
        "needs": (body,),
    }
    signature |= {name: parts.pop(name) for name in tuple(signature) if name in parts}
    facts = {"expected": "1.5 within 1e-04 at index 3", "got": "2.5", "where": where, **parts}
    return Finding(Signature(check=check, scope=architecture, **signature), case, **facts)
