"""The constants of scripts of the `placement` family: the model, the placement and the call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance import upstream
from conformance.build import Scenario
from conformance.placing import checkpoints, models
from conformance.placing.calls import CHUNK, DENOISING, DRAFT, GREEDY, OFFLOADED_CACHE
from conformance.placing.models import CANVAS, SPECIAL
from conformance.placing.recipe import Recipe, recipe_of
from conformance.plans.placement import MECHANISMS, PlacementPlan

SETTINGS: dict[str, dict[str, Any]] = {
    "static": upstream.static_cache_settings(),
    "lookup": {**GREEDY, "prompt_lookup_num_tokens": DRAFT},
    "beams": {**GREEDY, "num_beams": 2},
    "assisted": GREEDY,
    "offloaded cache": OFFLOADED_CACHE,
    "chunked": {"prefill_chunk_size": CHUNK},
    **dict.fromkeys(MECHANISMS, GREEDY),
}
FOR_ONE_ROW = ("lookup", "assisted")  # which several rows in a batch are refused


def constants(scenario: Scenario) -> dict[str, str]:
    """NAME → source, of each that `scripts/frame.py` tells of this family."""
    plan = scenario.case.plan
    assert isinstance(plan, PlacementPlan)
    model = models.make(scenario, plan.model)
    recipe = recipe_of(plan, model, Path("saved"), Path("offloaded"))
    files = {"max_shard_size": checkpoints.most_bytes(model)}
    return {
        "WEIGHT_SEED": repr(scenario.case.model.weight_seed),
        "SCALE": repr(scenario.case.model.init_scale),
        "REMAKE": _remake(plan, scenario),
        "PLACE": _place(recipe),
        "LOAD": _load(recipe),
        "SHARDS": _text(files if plan.shards else {}),
        "CALL": _call(plan),
    }


def _text(value: Any) -> str:
    """The value as source, in double quotes as everything else is."""
    return repr(value).replace("'", '"')


def _remake(plan: PlacementPlan, scenario: Scenario) -> str:
    if plan.model == "own":
        return "lambda model: model"
    if plan.model == "diffusion gemma":
        config = _text(models.gemma_config(models.gemma_layers(scenario)))
        kind = "transformers.DiffusionGemmaForBlockDiffusion"
        return (
            f'lambda _: {kind}._from_config(transformers.DiffusionGemmaConfig(**{config}), attn_implementation="eager")'
        )
    patterns = models.patterns_of(scenario, plan.model)
    return (
        "lambda model: type(type(model).__name__, (type(model),), "
        f'{{"_tied_weights_keys": {{**(model._tied_weights_keys or {{}}), **{_text(patterns)}}}}})._from_config('
        'type(model.config).from_dict({**model.config.to_dict(), "tie_word_embeddings": True}), '
        "attn_implementation=model.config._attn_implementation).to(model.dtype)"
    )


def _place(recipe: Recipe) -> str:
    buffers = ", offload_buffers=True" if recipe.offload_buffers else ""
    if recipe.loader == "from_pretrained":
        memory = f", max_memory={_text(recipe.max_memory)}" if recipe.max_memory else ""
        how = f"device_map={_map(recipe)}{memory}, offload_folder={_folder(recipe)}{buffers}, {_kept(recipe)}"
        return f"lambda model, folder, off: type(model).from_pretrained(folder, {how}).eval()"
    if recipe.loader == "dispatch_model":
        how = f"{_map(recipe)}, offload_dir={_folder(recipe)}{buffers}, skip_keys=model._skip_keys_device_placement"
        return f"lambda model, folder, off: accelerate.dispatch_model(model, {how})"
    given = "model, off" if recipe.loader == "disk_offload" else "model"
    how = f'execution_device=torch.device("cpu"){buffers}'
    return f"lambda model, folder, off: accelerate.{recipe.loader}({given}, {how})"


def _folder(recipe: Recipe) -> str:
    return "None" if recipe.offload_folder is None else "off"


def _load(recipe: Recipe) -> str:
    """The same without a placement; a loader that reads no checkpoint is given the model itself."""
    if recipe.loader != "from_pretrained":
        return "lambda model, folder: model"
    return f"lambda model, folder: type(model).from_pretrained(folder, {_kept(recipe)}).eval()"


def _map(recipe: Recipe) -> str:
    """The device map as the loader is told it."""
    if isinstance(recipe.device_map, str) or not recipe.as_devices:
        return _text(recipe.device_map)
    told = {
        name: '"disk"' if place == "disk" else f'torch.device("{place}")' for name, place in recipe.device_map.items()
    }
    return f"{{{', '.join(f'{_text(name)}: {place}' for name, place in told.items())}}}"


def _kept(recipe: Recipe) -> str:
    """What is asked of the loader whether or not it places."""
    other = recipe.dtype is not None and recipe.dtype != recipe.model.dtype
    dtype = str(recipe.dtype) if other else "model.dtype"
    return f"dtype={dtype}, attn_implementation=model.config._attn_implementation"


def _call(plan: PlacementPlan) -> str:
    place = "model.device" if plan.ids == "model.device" else '"cpu"'
    if plan.model == "diffusion gemma":
        few = f"max_new_tokens={CANVAS}, max_denoising_steps={DENOISING}"
        return f'lambda model, base: model.generate(INPUTS["input_ids"].clamp(max={SPECIAL - 1}).to({place}), {few})'
    row = "[:1]" if plan.mode in FOR_ONE_ROW else ""
    inputs = f"**{{name: tensor{row}.to({place}) for name, tensor in INPUTS.items()}}, "
    if plan.mode == "no inputs":
        inputs = ""
    elif plan.mode == "embeddings":
        embedded = f'base.get_input_embeddings()(INPUTS["input_ids"]).detach().to({place})'
        inputs = f'attention_mask=INPUTS["attention_mask"].to({place}), inputs_embeds={embedded}, '
    elif plan.mode == "assisted":
        inputs += "assistant_model=base, "
    more = f"**{_text({**SETTINGS[plan.mode]})}" if plan.mode in SETTINGS else ""
    settings = f"GenerationConfig(**{{**SETTINGS, {more}}})" if more else "GenerationConfig(**SETTINGS)"
    return f"lambda model, base: model.generate({inputs}generation_config={settings})"
