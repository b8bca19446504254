"""Weights to tie: pairs of names and patterns, as `_tied_weights_keys` holds them, that fit a tiny model."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import combinations

from hypothesis import assume
from hypothesis import strategies as st

from conformance.architectures.overrides import Json
from conformance.architectures.shrink import make_config
from conformance.case import plain
from conformance.errors import BadInput, unknown
from conformance.tying import Pairs, Shapes, WrongTies, free_weights, resolve

KINDS = ("name", "pattern", "block", "both", "nested", "overlapping", "chain", "encoder-decoder", "embeddings")
INDEXED = re.compile(r"(.*?\.)(\d+)\.(.+)")
WEIGHTS = r"(?:[^.]+\.)*weight"  # every weight of a part, as DiffusionGemma ties its encoder to its decoder
Blocks = dict[str, dict[int, dict[str, tuple[int, ...]]]]


def tied_weights(
    *, architecture: str, config: Mapping[str, Json], kinds: Collection[str] | None = None
) -> st.SearchStrategy[Pairs]:
    """Pairs (target, source) that tie weights of an architecture with these settings.

    The kinds: `name`, one weight to another of its shape; `pattern`, the same weight of several blocks to that of one;
    `block`, all of a block to another; `both`, patterns on both sides; `nested`, a block and a part of it;
    `overlapping`, two patterns that share a target; `chain`, a source that is a target of another pair, in either
    order; `encoder-decoder`, a part of every encoder block to the decoder's; `embeddings`, the head to the embedding.
    Those that the model has no room for are left out. Shrinks towards one name tied to another. Raises BadInput for an
    unknown kind, and where none of the kinds asked for fits the model.
    """
    for kind in kinds or ():
        if kind not in KINDS:
            raise unknown("kind of tie", kind, KINDS)
    if kinds is not None and not kinds:
        raise BadInput("kinds=() leaves nothing to draw")
    shapes, everything = _weights(architecture, config)
    possible = [kind for kind in KINDS if (kinds is None or kind in kinds) and fits(kind, shapes)]
    if not possible:
        raise BadInput(f"{architecture} with these settings has no weights for {', '.join(kinds or KINDS)}")
    return st.sampled_from(possible).flatmap(lambda kind: pairs_of(kind, shapes, everything))


def shapes_of(architecture: str, config: Mapping[str, Json]) -> Shapes:
    """Shape by name of the weights of an architecture with these settings that no part of it ties by itself."""
    return _weights(architecture, config)[0]


def _weights(architecture: str, config: Mapping[str, Json]) -> tuple[Shapes, Shapes]:
    return _weights_with(architecture, json.dumps(plain(config), sort_keys=True))


@lru_cache(maxsize=256)
def _weights_with(architecture: str, settings: str) -> tuple[Shapes, Shapes]:
    return free_weights(architecture, make_config(architecture, json.loads(settings)))


def fits(kind: str, shapes: Shapes) -> bool:
    """Whether a model with these weights has room for a kind of tie."""
    if kind == "name":
        return bool(_alike(shapes))
    if kind == "embeddings":
        return _embeddings(shapes) is not None
    if kind == "encoder-decoder":
        return bool(_across(shapes))
    fewest = 3 if kind in ("overlapping", "chain") else 2
    return bool(_stems(shapes, fewest))


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
        source, target = draw(st.sampled_from(_alike(shapes)))
        return ((target, source),)
    if kind == "embeddings":
        pair = _embeddings(shapes)
        assert pair is not None
        return (pair,)
    if kind == "encoder-decoder":
        encoder, decoder, part = draw(st.sampled_from(_across(shapes)))
        pattern = rf"\d+\.{re.escape(part)}\.{WEIGHTS}"
        ends = [re.escape(encoder) + pattern, re.escape(decoder) + pattern]
        return (tuple(reversed(ends)) if draw(st.booleans()) else tuple(ends),)  # type: ignore[return-value]
    stem, indices, part = draw(st.sampled_from(_stems(shapes, 3 if kind in ("overlapping", "chain") else 2)))
    chosen = draw(st.permutations(indices))
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


def _alike(shapes: Shapes) -> list[tuple[str, str]]:
    """Pairs of different weights of one shape, at most 64 of them."""
    names = sorted(name for name in shapes if name.endswith(("weight", "bias")))
    return [(a, b) for a, b in combinations(names, 2) if shapes[a] == shapes[b]][:64]


def _blocks(shapes: Shapes) -> Blocks:
    """stem → block number → the block's weights, of everything that is numbered."""
    found: Blocks = {}
    for name, shape in shapes.items():
        match = INDEXED.fullmatch(name)
        if match:
            stem, number, part = match.groups()
            found.setdefault(stem, {}).setdefault(int(number), {})[part] = shape
    return found


def _stems(shapes: Shapes, fewest: int) -> list[tuple[str, tuple[int, ...], str]]:
    """(stem, block numbers, part): at least so many blocks with the same parts of the same shapes, and a part."""
    found = []
    for stem, blocks in sorted(_blocks(shapes).items()):
        alike: dict[str, list[int]] = {}
        for number, parts in sorted(blocks.items()):
            if number < 10:  # character classes hold single digits
                alike.setdefault(json.dumps(sorted(parts.items())), []).append(number)
        for numbers in alike.values():
            if len(numbers) >= fewest:
                found += [(stem, tuple(numbers), part) for part in sorted(blocks[numbers[0]])]
    return found


def _across(shapes: Shapes) -> list[tuple[str, str, str]]:
    """(encoder stem, decoder stem, module) of parts that every encoder block and decoder block have alike."""
    blocks, found = _blocks(shapes), []
    for stem in sorted(stem for stem in blocks if "encoder." in stem):
        other = stem.replace("encoder.", "decoder.")
        if other not in blocks or blocks[stem].keys() != blocks[other].keys():
            continue
        ours, theirs = [[*side.values()] for side in (blocks[stem], blocks[other])]
        modules = {part.rpartition(".")[0].partition(".")[0] for part in ours[0]} - {""}
        for module in sorted(modules):
            one, two = (_weights_under(module, side) for side in (ours, theirs))
            found += [(stem, other, module)] if one and one == two else []
    return found


def _weights_under(module: str, blocks: list[dict[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    pattern = re.compile(rf"{re.escape(module)}\.{WEIGHTS}")
    return sorted((part, shape) for parts in blocks for part, shape in parts.items() if pattern.match(part))


def _embeddings(shapes: Shapes) -> tuple[str, str] | None:
    """(head, embedding): the output weights and the one embedding of tokens of their shape."""
    heads = [name for name in shapes if re.search(r"(^|\.)(lm_head|output|head|embed_out)\.weight$", name)]
    tokens = r"(embed_tokens|wte|word_embeddings|embeddings|shared|embed_in|tok_embeddings)\.weight$"
    pairs = [(h, n) for h in heads for n in shapes if re.search(tokens, n) and shapes[n] == shapes[h]]
    return pairs[0] if pairs else None
