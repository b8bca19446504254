"""The calls on a placed and an unplaced model side by side, and their configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from conformance.compare import compare_steps, scale_of
from conformance.outcome import Outcome
from conformance.snapshots import same
from conformance.verdicts import Comparison, Difference

# Where a config was loaded from, and by what: no part of what it says.
OF_LOADING = ("_name_or_path", "transformers_version")
FROZEN = "frozen"


def compare_calls(placed: Outcome, unplaced: Outcome, relative: float) -> Comparison:
    """Sequences exactly; logits of each step within `relative` times the largest, up to the first other token."""
    assert placed.sequences is not None
    assert unplaced.sequences is not None
    same = placed.sequences.shape == unplaced.sequences.shape and bool((placed.sequences == unplaced.sequences).all())
    if not unplaced.logits:
        return Comparison() if same else Comparison.of(_other_tokens(placed, unplaced))
    shared = _shared_steps(placed, unplaced)
    result = Comparison()
    for row in range(min(placed.logits[0].shape[0], unplaced.logits[0].shape[0])):
        got, expected = ([step[row] for step in o.logits[:shared]] for o in (placed, unplaced))
        result += compare_steps("logits", got, expected, lambda _: 0.0, f"row {row} ", relative)
    if not result.differences and not same:
        result += _first_other_token(placed, unplaced, relative)
    return result


def _shared_steps(placed: Outcome, unplaced: Outcome) -> int:
    """How many steps were decoded after the same tokens, the one that gives the first other token included."""
    assert placed.sequences is not None
    assert unplaced.sequences is not None
    most = min(len(placed.logits), len(unplaced.logits))
    start = unplaced.sequences.shape[1] - unplaced.steps
    width = min(placed.sequences.shape[1], unplaced.sequences.shape[1])
    if len(placed.sequences) != len(unplaced.sequences):
        return 1
    differ = (placed.sequences[:, :width] != unplaced.sequences[:, :width]).any(dim=0).nonzero().flatten().tolist()
    return min(most, differ[0] - start + 1) if differ else most


def _first_other_token(placed: Outcome, unplaced: Outcome, relative: float) -> Comparison:
    """A tie, where in every row the two tokens of that step are closer than rounding; else a difference."""
    step = _shared_steps(placed, unplaced) - 1
    gaps = _gaps(placed, unplaced, step)
    if gaps and max(gaps) <= 2 * relative * scale_of(list(unplaced.scores[step])):
        return Comparison(ties=[f"step {step}: the two tokens are {max(gaps):.1e} apart"])
    return Comparison.of(_other_tokens(placed, unplaced))


def _gaps(placed: Outcome, unplaced: Outcome, step: int) -> list[float]:
    """How far apart the two tokens are in each row that has others; of beams, how near the two nearest candidates."""
    assert placed.sequences is not None
    assert unplaced.sequences is not None
    scores, at = unplaced.scores[step], unplaced.sequences.shape[1] - unplaced.steps + step
    if len(scores) != len(unplaced.sequences):
        best = scores.topk(2, dim=-1).values
        return [float((best[:, 0] - best[:, 1]).min())]
    columns = (sequences[:, at : at + 1].flatten().tolist() for sequences in (unplaced.sequences, placed.sequences))
    pairs = enumerate(zip(*columns, strict=False))
    return [float(scores[row, wanted] - scores[row, got]) for row, (wanted, got) in pairs if wanted != got]


def _other_tokens(placed: Outcome, unplaced: Outcome) -> Difference:
    assert placed.sequences is not None
    assert unplaced.sequences is not None
    return Difference("tokens", "sequences", str(unplaced.sequences.tolist()), str(placed.sequences.tolist()))


def other_weights(expected: Mapping[str, torch.Tensor], got: Mapping[str, torch.Tensor]) -> str | None:
    """The first weight that has another dtype or other values, or None; one that is not there is no matter of this."""
    for name in sorted({*expected} & {*got}):
        wanted, found = expected[name], got[name]
        if wanted.dtype != found.dtype:
            return f"{name} is {found.dtype}, not {wanted.dtype}"
        if not same(wanted, found):
            return f"{name} has other values"
    return None


def configs_of(model: Any) -> dict[str, Any]:
    """What a model is, beside its weights: its configs, what trains, and how each config attends.

    What stands in the place of an offloaded weight is not trained, whoever asks.
    """
    configs = [config for module in model.modules() if (config := getattr(module, "config", None)) is not None]
    return {
        "config": model.config.to_dict(),
        "generation_config": model.generation_config.to_dict(),
        "training": sorted(name or "the model" for name, module in model.named_modules() if module.training),
        FROZEN: sorted(n for n, weight in model.named_parameters() if not weight.requires_grad and not weight.is_meta),
        "attention": {config.model_type: config._attn_implementation for config in configs if _attends(config)},
    }


def configs_left(model: Any) -> dict[str, Any]:
    """The same after a decoding, but for gradients: what is left in the place of an offloaded weight is not trained."""
    return {name: what for name, what in configs_of(model).items() if name != FROZEN}


def _attends(config: Any) -> bool:
    return hasattr(config, "model_type") and hasattr(config, "_attn_implementation")


def frozen_by_placing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The weights that are held, and need no gradient only where they were placed."""
    return sorted({*after[FROZEN]} - {*before[FROZEN]})


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """What differs between two nested configs: dotted name → how."""
    found: dict[str, str] = {}
    for name in sorted({*before, *after} - {*OF_LOADING, FROZEN}):
        here, old, new = f"{path}{name}", before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found |= config_changes(old, new, f"{here}.")
        elif old != new:
            found[here] = f"{old!r} became {new!r}"
    return found
