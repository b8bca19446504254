"""Whether a fault in a cache would reach the logits: plant one, decode one token more, look.

Measured per architecture × cache kind × fault, over drawn models and prompts. A harness that could not see these
faults would find nothing and say that all is well.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import hypothesis
import numpy as np
import torch
from hypothesis import strategies as st

from conformance import upstream
from conformance.architectures.capabilities import capabilities, facts
from conformance.architectures.cells import kinds, reachable
from conformance.build import Scenario
from conformance.case import Case, Prompt, Settings
from conformance.compare import BOUND
from conformance.errors import BadInput, NotBuildable
from conformance.profiles import exploring
from conformance.sensitivity_cells import FAULTS, Cell
from conformance.snapshots import flatten
from conformance.strategies.cases import models, vocabulary_of

ENTRIES = re.compile(r"keys|values")
LAYER = re.compile(r"((?:\.\w+)?\.layers\.(\d+))\.")
DECODED = 3  # tokens before a fault in a decoder whose prompt is a single start token, the same in every row
MOST_TRIES = 6  # times the number of cases: a kind that one draw in so many has is still measured
Seen = dict[tuple[str, str], bool]  # (cache kind, fault) → whether it changed the logits
Absent = dict[tuple[str, str], str]  # (cache kind, fault) → why it cannot be planted
Plant = Callable[[Any], str]


def measure(name: str, cases: int, seed: int) -> list[Cell]:
    """Every cell of an architecture, at least so many cases each, as far as its kinds are drawn.

    Raises UnknownArchitecture, and NotBuildable where the installed release cannot make the type.
    """
    can = capabilities(name)
    if not can.buildable:
        raise NotBuildable(f"{name}: {can.reason}")
    cells = {(kind, fault): Cell(name, kind, fault) for kind in reachable(name) for fault in FAULTS}
    missing: dict[tuple[str, str], Counter[str]] = {}
    for model, tokens in _draws(name, cases, seed):
        wanting = {kind for kind, fault in cells if _too_few(cells, missing, kind, cases)}
        if not wanting:
            break
        try:
            seen, absent = one_case(Scenario(_case(model, tokens)), wanting, tokens[0][0])
        except (NotBuildable, BadInput):
            continue
        for key, shown in seen.items():
            cells[key].add(model.init_scale, shown)
        for key, reason in absent.items():
            missing.setdefault(key, Counter())[reason] += 1
    return [_explained(cell, missing.get((cell.kind, cell.fault))) for cell in cells.values()]


def _too_few(cells: Any, missing: Any, kind: str, cases: int) -> bool:
    return all(cells[kind, f].cases + sum(missing.get((kind, f), {}).values()) < cases for f in FAULTS)


def _explained(cell: Cell, absent: Counter[str] | None) -> Cell:
    """The cell with a reason where it was never planted, and where nothing could be seen."""
    known = facts(cell.architecture).get("insensitive")
    if not cell.cases:
        cell.reason = absent.most_common(1)[0][0] if absent else "no draw has this kind"
    elif isinstance(known, dict) and (cell.share or 0.0) < 0.99:
        cell.reason = str(known.get(f"{cell.kind}: {cell.fault}") or known.get(cell.fault) or "")
    if not cell.reason and cell.fault == "position shifted" and not cell.seen:
        cell.reason = "positions have no effect on this type: attention without them, or none at all"
    return cell


def _draws(name: str, cases: int, seed: int) -> list[tuple[Any, list[list[int]]]]:
    """Models and two rows of tokens each, as a run draws them, but for the dtype."""
    drawn: list[tuple[Any, list[list[int]]]] = []
    towards = [f"kind: {kind}" for kind in reachable(name)]
    numbers: dict[str, Any] = {"rows": st.integers(6, 12)}

    def keep(data: st.DataObject) -> None:
        model = data.draw(models(name, towards=towards, tied=False)).replace(dtype="float32")
        token, length = st.integers(1, vocabulary_of(model) - 1), data.draw(numbers["rows"])
        rows = [data.draw(st.lists(token, min_size=length, max_size=length)) for _ in range(2)]
        drawn.append((model, rows))

    hypothesis.seed(seed)(exploring(cases * MOST_TRIES)(hypothesis.given(st.data())(keep)))()
    return drawn[1:]


def _case(model: Any, tokens: list[list[int]]) -> Case:
    return Case(model=model, prompt=Prompt(rows=tuple(map(tuple, tokens))), settings=Settings(max_new_tokens=2))


def one_case(scenario: Scenario, wanted: Iterable[str], seed: int) -> tuple[Seen, Absent]:
    """Each fault planted in each wanted kind of the case's cache: whether it showed, or why it cannot be planted."""
    found: Seen = {}
    absent: Absent = {}
    random = np.random.default_rng(seed + scenario.case.model.weight_seed)

    def decode(model: Any, input_ids: torch.Tensor, generation_config: Any, **kwargs: Any) -> torch.Tensor:
        step = _prepared(model, input_ids, generation_config, kwargs, torch.tensor(scenario.rows))
        right = step.logits(_nothing)
        assert isinstance(right, torch.Tensor)
        bound = BOUND * float(right[right.isfinite()].abs().max())
        for kind, fault in product(sorted(set(kinds(scenario.config)) & set(wanted)), FAULTS):
            moved = fault == "position shifted"
            got = step.logits(_nothing if moved else _planter(kind, fault, random), moved)
            if isinstance(got, str):
                absent[kind, fault] = got
            else:
                found[kind, fault] = bool((got - right).abs().nan_to_num(0.0).max() > bound)
        return input_ids

    with torch.no_grad():
        config = scenario.generation_config()
        scenario.model().generate(**scenario.inputs(), generation_config=config, custom_generate=decode)
    return found, absent


@dataclass
class _Step:
    """A decoding that is about to make its next step, as often as one likes."""

    model: Any
    tokens: torch.Tensor
    kwargs: dict[str, Any]

    def logits(self, plant: Plant, moved: bool = False) -> torch.Tensor | str:
        """The next logits, (rows, vocabulary), after a change to a copy of the cache; or why it cannot be made."""
        ours = copy.deepcopy(self.kwargs)
        reason = plant(ours.get(upstream.cache_name(ours) or ""))
        if reason:
            return reason
        inputs = upstream.next_inputs(self.model, self.tokens, ours, 1)
        reason = _shift(inputs) if moved else ""
        if reason:
            return reason
        logits: torch.Tensor = self.model(**inputs, return_dict=True).logits
        return logits[:, -1].double()


def _prepared(
    model: Any, tokens: torch.Tensor, generation_config: Any, kwargs: dict[str, Any], more: torch.Tensor
) -> _Step:
    """The prompt, then the first of `more` (rows, length); for a decoder that starts with one token a few of them.

    They are not the model's own: two rows that say the same could be swapped unnoticed.
    """
    del kwargs["logits_processor"], kwargs["stopping_criteria"]
    outputs = upstream.prefill(model, tokens, generation_config, kwargs)
    for step in range(DECODED if model.config.is_encoder_decoder else 1):
        if step:
            outputs = model(**upstream.next_inputs(model, tokens, kwargs, 1), return_dict=True)
        tokens = torch.cat([tokens, more[:, step : step + 1]], dim=-1)
        kwargs = upstream.advance(model, outputs, kwargs, tokens, 1)
    return _Step(model, tokens, kwargs)


def _nothing(_: Any) -> str:
    return ""


def _shift(inputs: dict[str, Any]) -> str:
    """The next token stands one place further than it does; the cached ones stay."""
    names = [n for n in ("position_ids", "decoder_position_ids", "cache_position") if inputs.get(n) is not None]
    if not names:
        return "the forward is given no positions"
    inputs[names[0]] = inputs[names[0]] + 1
    return ""


def _planter(kind: str, fault: str, random: np.random.Generator) -> Plant:
    """What plants a fault in one layer of a kind; it says why where there is no place for it."""

    def plant(cache: Any) -> str:
        layers = list(_layers(cache, kind))
        entries = [layer for layer in layers if any(ENTRIES.search(name) for name in layer)]
        states = [(n, t) for layer in layers for n, t in layer.items() if not ENTRIES.search(n)]
        if not layers:
            return "nothing of this kind is in the cache: the model keeps it elsewhere, or nothing at all"
        if fault == "entry lost":
            return _lose(entries, kind, random) if entries else "it keeps no entry per token"
        if fault == "state zeroed":
            if not states:
                return "it keeps no state beside its entries"
            states[random.integers(len(states))][1].zero_()
            return ""
        for tensor in layers[random.integers(len(layers))].values():
            tensor.copy_(tensor.flip(0))
        return ""

    return plant


def _lose(layers: list[dict[str, torch.Tensor]], kind: str, random: np.random.Generator) -> str:
    """One token's entry in one layer, the last where the others may be out of reach (chunks), becomes zeros."""
    layer = {name: t for name, t in layers[random.integers(len(layers))].items() if ENTRIES.search(name)}
    length = next(tensor.shape[1 if "indexer" in name else -2] for name, tensor in layer.items())
    place = length - 1 if kind == "chunked" else int(random.integers(length))
    for name, tensor in layer.items():
        along = 1 if "indexer" in name else tensor.dim() - 2
        if tensor.shape[along] == length:
            tensor.select(along, place).zero_()
    return ""


def _layers(cache: Any, kind: str) -> Iterator[dict[str, torch.Tensor]]:
    """The tensors of each layer of one kind: name → tensor; a cache that has no layers is one of its own kind."""
    grouped: dict[str, dict[str, torch.Tensor]] = {}
    for path, leaf in flatten(cache):
        if not isinstance(leaf, torch.Tensor) or leaf.dim() < 2 or leaf.shape[0] != 2 or not leaf.numel():
            continue
        match = LAYER.match(path)
        crossed = ".cross_attention_cache" in path
        if crossed != (kind == "encoder-decoder"):
            continue
        owner = _owner(cache, match)
        if _belongs(kind, owner, path):
            grouped.setdefault(match[1] if match else "", {})[path] = leaf
    yield from grouped.values()


def _owner(cache: Any, match: re.Match[str] | None) -> str:
    """The class of the layer that holds a tensor."""
    if match is None:
        return type(cache).__name__
    holder = cache
    for part in match[1].split(".")[1:-1]:
        holder = getattr(holder, part)
    return type(holder[int(match[2])]).__name__


def _belongs(kind: str, owner: str, path: str) -> bool:
    entry, name = bool(ENTRIES.search(path)), path.rsplit(".layers.", 1)[-1]
    if kind == "recurrent":
        return "recurrent" in name
    if kind == "convolutional":
        return "conv" in name
    if kind in ("hybrid", "hybrid_sliding"):
        return "LinearAttentionAnd" in owner and ("Sliding" in owner) == (kind == "hybrid_sliding")
    if kind in ("sliding", "chunked"):
        return entry and "Sliding" in owner and "LinearAttentionAnd" not in owner
    if kind == "full":
        return entry and "Sliding" not in owner and "LinearAttentionAnd" not in owner
    if kind in ("indexed", "shared"):
        return entry
    # An own kind by its class, as `own:CLASS`; what else there is holds nothing but its cross attention.
    return not kind.startswith("own:") or owner == kind.removeprefix("own:")
