"""Weights to tie: pairs of names and patterns, as `_tied_weights_keys` holds them, that fit a tiny model."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from hypothesis import assume
from hypothesis import strategies as st

from conformance.architectures.overrides import Json
from conformance.architectures.shrink import make_config
from conformance.case import plain
from conformance.errors import BadInput, unknown
from conformance.strategies.alike import WEIGHTS, across, alike, embeddings, fewest, fits, modules, stems
from conformance.tying import Pairs, Shapes, Weights, WrongTies, resolve, weights_to_tie

KINDS = (
    "name",
    "pattern",
    "block",
    "module",
    "both",
    "nested",
    "overlapping",
    "chain",
    "encoder-decoder",
    "embeddings",
)
WHOLE = ("block", "module", "both", "nested", "encoder-decoder")  # the kinds that tie all that a part holds


def tied_weights(
    *, architecture: str, config: Mapping[str, Json], kinds: Collection[str] | None = None, running: bool = True
) -> st.SearchStrategy[Pairs]:
    """Pairs (target, source) that tie weights of an architecture with these settings.

    The kinds: `name`, one weight to another of its shape; `pattern`, the same weight of several blocks to that of one;
    `block`, all of a block to another; `module`, a module to that of another block, both by their bare names; `both`,
    patterns on both sides; `nested`, a block and a part of it; `overlapping`, two patterns that share a target;
    `chain`, a source that is a target of another pair, in either order; `encoder-decoder`, a part of every encoder
    block to the decoder's; `embeddings`, the head to the embedding. Those that the model has no room for are left out.

    running: without the ties with which the release's model cannot run. It makes the bias of a tied module as long as
    its weight's first dimension, which is right only where the weight does not lie the other way round (`Conv1D`).

    Shrinks towards one name tied to another. Raises BadInput for an unknown kind, and where none of the kinds asked for
    fits the model.
    """
    for kind in kinds or ():
        if kind not in KINDS:
            raise unknown("kind of tie", kind, KINDS)
    if kinds is not None and not kinds:
        raise BadInput("kinds=() leaves nothing to draw")
    possible = [k for k in room(architecture, config, running=running) if kinds is None or k in kinds]
    if not possible:
        raise BadInput(f"{architecture} with these settings has no weights for {', '.join(kinds or KINDS)}")
    weights = _weights(architecture, config)
    shapes = _usable(weights, running)
    return st.sampled_from(possible).flatmap(lambda kind: pairs_of(kind, shapes, weights.everything))


def room(architecture: str, config: Mapping[str, Json], *, running: bool = True) -> tuple[str, ...]:
    """The kinds of tie that an architecture with these settings has weights for; `running` as in `tied_weights`."""
    weights = _weights(architecture, config)
    shapes = _usable(weights, running)
    left_out = WHOLE if running and weights.turned else ()
    return tuple(kind for kind in KINDS if kind not in left_out and fits(kind, shapes))


def shapes_of(architecture: str, config: Mapping[str, Json]) -> Shapes:
    """Shape by name of the weights of an architecture with these settings that no part of it ties by itself."""
    return _weights(architecture, config).free


def _usable(weights: Weights, running: bool) -> Shapes:
    return {n: shape for n, shape in weights.free.items() if not (running and n in weights.turned)}


def _weights(architecture: str, config: Mapping[str, Json]) -> Weights:
    return _weights_with(architecture, json.dumps(plain(config), sort_keys=True))


@lru_cache(maxsize=256)
def _weights_with(architecture: str, settings: str) -> Weights:
    return weights_to_tie(architecture, make_config(architecture, json.loads(settings)))


@st.composite
def pairs_of(draw: st.DrawFn, kind: str, shapes: Shapes, everything: Shapes) -> Pairs:
    """Pairs of one kind, which has to fit the shapes, and whose patterns fit all that they are matched with."""
    made = _made(draw, kind, shapes)
    try:
        resolve(made, everything)
    except WrongTies:  # parts of a block, or buffers, that differ from layer to layer
        assume(False)
    return made


def _made(draw: st.DrawFn, kind: str, shapes: Shapes) -> Pairs:
    if kind == "name":
        source, target = draw(st.sampled_from(alike(shapes)))
        return ((target, source),)
    if kind == "embeddings":
        pair = embeddings(shapes)
        assert pair is not None
        return (pair,)
    if kind == "encoder-decoder":
        encoder, decoder, part = draw(st.sampled_from(across(shapes)))
        pattern = rf"\d+\.{re.escape(part)}\.{WEIGHTS}"
        ends = [re.escape(encoder) + pattern, re.escape(decoder) + pattern]
        return (tuple(reversed(ends)) if draw(st.booleans()) else tuple(ends),)  # type: ignore[return-value]
    stem, indices, part = draw(st.sampled_from(modules(shapes) if kind == "module" else stems(shapes, fewest(kind))))
    chosen = draw(st.permutations(indices))
    if kind == "module":
        target, source = (f"{stem}{block}.{part}".rstrip(".") for block in chosen[1::-1])
        return ((target, source),)
    return _between_blocks(draw, kind, stem, chosen, part)


def _between_blocks(draw: st.DrawFn, kind: str, stem: str, blocks: list[int], part: str) -> Pairs:
    """Pairs between blocks of one stem, the first of them the source, by a part (`mlp.up_proj.weight`) of theirs."""
    first, second = blocks[0], blocks[1]
    root, rest = re.escape(stem), re.escape(part)
    module = part.rpartition(".")[0] or part

    def weight(block: int) -> str:
        return rf"{root}{block}\.{rest}"

    if kind == "pattern":
        others = rf"(?!{first}\.)\d+" if draw(st.booleans()) else f"[{''.join(map(str, sorted(blocks[1:])))}]"
        return ((rf"{root}{others}\.{rest}", f"{stem}{first}.{part}"),)
    if kind == "block":
        return ((rf"{root}{second}\.", rf"{root}{first}\."),)
    if kind == "both":
        return ((rf"{root}{second}\.{WEIGHTS}", rf"{root}{first}\.{WEIGHTS}"),)
    if kind == "nested":
        pairs = [
            (rf"{root}{second}\.", rf"{root}{first}\."),
            (rf"{root}{second}\.{re.escape(module)}", rf"{root}{first}\.{re.escape(module)}"),
        ]
    elif kind == "overlapping":
        third = blocks[2]
        pairs = [(rf"{root}[{second}{third}]\.{rest}", weight(first)), (weight(third), weight(first))]
    else:
        third = blocks[2]
        pairs = [(weight(second), weight(first)), (weight(third), weight(second))]
    return tuple(reversed(pairs)) if draw(st.booleans()) else tuple(pairs)
