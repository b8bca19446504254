"""The call of a placement case: its mode of decoding, with the inputs where the case puts them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

from conformance import upstream
from conformance.architectures.own_generate import recipes
from conformance.building.own_generate import arguments
from conformance.call import Call
from conformance.placing.models import CANVAS, SPECIAL
from conformance.plans.placement import MECHANISMS, PlacementPlan
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.subjects.own_generate import OwnGenerate

if TYPE_CHECKING:
    from conformance.placing.placed import Placed

DENOISING = 3  # steps of DiffusionGemma over one canvas; from the second on it reads its own last answer
DRAFT = 3  # tokens that lookup and an assistant suggest at once
CHUNK = 2  # tokens of the prompt that are prefilled at once
OFFLOADED_CACHE: dict[str, Any] = {"cache_implementation": "offloaded"}
GREEDY: dict[str, Any] = {"do_sample": False, "num_return_sequences": 1}


def make(runs: Runs, plan: PlacementPlan, base: Any, placed: Placed) -> tuple[Any, Call]:
    """Who decodes (None: the case's subject), and what it is asked."""
    device = placed.report.input_device if plan.ids == "embeddings" else placed.model.device
    if plan.by_itself:
        recipe, seed = recipes()[plan.by_itself], runs.case.settings.sample_seed
        tensors = arguments(plan.by_itself, runs.case.prompt.rows[0], seed, base.dtype)
        moved = {name: tensor.to(device) for name, tensor in tensors.items()}
        return OwnGenerate(), Call(moved, None, extras=recipe.keywords)
    if plan.model == "diffusion gemma":
        ids = torch.tensor([runs.case.prompt.rows[0]]).clamp(max=SPECIAL - 1)
        few = {"max_new_tokens": CANVAS, "max_denoising_steps": DENOISING}
        return OwnGenerate(), Call({"input_ids": ids.to(device)}, None, extras=few)
    call = MODES[plan.mode](runs, base)
    moved = {name: tensor.to(device) for name, tensor in call.inputs.items()}
    by_subject = plan.mode in ("plain", *MECHANISMS) and plan.model == "own"
    return (None if by_subject else Installed()), call.replace(inputs=moved)


def _plain(runs: Runs, _: Any) -> Call:
    return runs.call()


def _static(runs: Runs, _: Any) -> Call:
    return runs.call(**upstream.static_cache_settings())


def _chunked(runs: Runs, _: Any) -> Call:
    return runs.call(prefill_chunk_size=CHUNK)


def _offloaded_cache(runs: Runs, _: Any) -> Call:
    return runs.call(**OFFLOADED_CACHE)


def _greedy(runs: Runs, _: Any) -> Call:
    """A mechanism beside which nothing is drawn by chance."""
    return runs.call(**GREEDY)


def _lookup(runs: Runs, _: Any) -> Call:
    return runs.call([0], **GREEDY, prompt_lookup_num_tokens=DRAFT)


def _beams(runs: Runs, _: Any) -> Call:
    return runs.call(**GREEDY, num_beams=2)


def _embeddings(runs: Runs, base: Any) -> Call:
    """The prompt's embeddings in place of its ids (those of the decoder stay ids)."""
    call = runs.call()
    inputs = dict(call.inputs)
    with torch.no_grad():
        inputs["inputs_embeds"] = base.get_input_embeddings()(inputs.pop("input_ids"))
    return call.replace(inputs=inputs)


def _no_inputs(runs: Runs, _: Any) -> Call:
    """No prompt at all: `generate` begins with the first token of the model's config."""
    return runs.call([0]).replace(inputs={})


def _assisted(runs: Runs, base: Any) -> Call:
    """The same model, unplaced, suggests the tokens."""
    assistant = copy.deepcopy(base)
    assistant.generation_config.num_assistant_tokens = DRAFT
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    return runs.call([0], **GREEDY).replace(extras={"assistant_model": assistant})


MODES = {
    "plain": _plain,
    "static": _static,
    "lookup": _lookup,
    "beams": _beams,
    "embeddings": _embeddings,
    "no inputs": _no_inputs,
    "assisted": _assisted,
    "chunked": _chunked,
    "offloaded cache": _offloaded_cache,
    **dict.fromkeys(MECHANISMS, _greedy),
}
