"""Which weights of a tiny model are alike, so that they can be tied: by shape, by block, across encoder and decoder."""

from __future__ import annotations

import json
import re
from itertools import combinations

from conformance.tying import Shapes

INDEXED = re.compile(r"(.*?\.)(\d+)\.(.+)")
WEIGHTS = r"(?:[^.]+\.)*weight"  # every weight of a part, as DiffusionGemma ties its encoder to its decoder
MOST = 64  # pairs of single weights, of the many that there are
Parts = dict[str, tuple[int, ...]]
Blocks = dict[str, dict[int, Parts]]
Stem = tuple[str, tuple[int, ...], str]


def fits(kind: str, shapes: Shapes) -> bool:
    """Whether a model with these weights has room for a kind of tie."""
    if kind == "name":
        return bool(alike(shapes))
    if kind == "embeddings":
        return embeddings(shapes) is not None
    if kind == "encoder-decoder":
        return bool(across(shapes))
    return bool(modules(shapes) if kind == "module" else stems(shapes, fewest(kind)))


def fewest(kind: str) -> int:
    """How many blocks a kind of tie needs."""
    return 3 if kind in ("overlapping", "chain") else 2


def alike(shapes: Shapes) -> list[tuple[str, str]]:
    """Pairs of different weights of one shape, a limited number of them."""
    names = sorted(name for name in shapes if name.endswith(("weight", "bias")))
    return [(a, b) for a, b in combinations(names, 2) if shapes[a] == shapes[b]][:MOST]


def _blocks(shapes: Shapes) -> Blocks:
    """stem → block number → the block's weights, of everything that is numbered."""
    found: Blocks = {}
    for name, shape in shapes.items():
        match = INDEXED.fullmatch(name)
        if match:
            stem, number, part = match.groups()
            found.setdefault(stem, {}).setdefault(int(number), {})[part] = shape
    return found


def _equal_blocks(shapes: Shapes, least: int) -> list[tuple[str, tuple[int, ...], Parts]]:
    """(stem, block numbers, parts): at least so many blocks with the same parts of the same shapes."""
    found = []
    for stem, blocks in sorted(_blocks(shapes).items()):
        same: dict[str, list[int]] = {}
        for number, parts in sorted(blocks.items()):
            if number < 10:  # character classes hold single digits
                same.setdefault(json.dumps(sorted(parts.items())), []).append(number)
        found += [(stem, tuple(numbers), blocks[numbers[0]]) for numbers in same.values() if len(numbers) >= least]
    return found


def stems(shapes: Shapes, least: int) -> list[Stem]:
    """(stem, block numbers, part): a weight that at least so many equal blocks have."""
    return [(stem, numbers, part) for stem, numbers, parts in _equal_blocks(shapes, least) for part in sorted(parts)]


def modules(shapes: Shapes) -> list[Stem]:
    """(stem, block numbers, module): a module that at least two equal blocks have; "" is the whole block.

    Where there are any, only those with a name that the name of something beside them begins with, as `self_attn` and
    `self_attn_layer_norm`: a careless match takes both.
    """
    every, close = [], []
    for stem, numbers, parts in _equal_blocks(shapes, 2):
        for module in sorted({part[: dot.start()] for part in parts for dot in re.finditer(r"\.", part)} | {""}):
            every.append((stem, numbers, module))
            if module and any(re.match(rf"{re.escape(module)}[^.]", part) for part in parts):
                close.append((stem, numbers, module))
    return close or every


def across(shapes: Shapes) -> list[tuple[str, str, str]]:
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


def _weights_under(module: str, blocks: list[Parts]) -> list[tuple[str, tuple[int, ...]]]:
    pattern = re.compile(rf"{re.escape(module)}\.{WEIGHTS}")
    return sorted((part, shape) for parts in blocks for part, shape in parts.items() if pattern.match(part))


def embeddings(shapes: Shapes) -> tuple[str, str] | None:
    """(head, embedding): the output weights and the one embedding of tokens of their shape."""
    heads = [name for name in shapes if re.search(r"(^|\.)(lm_head|output|head|embed_out)\.weight$", name)]
    tokens = r"(embed_tokens|wte|word_embeddings|embeddings|shared|embed_in|tok_embeddings)\.weight$"
    pairs = [(h, n) for h in heads for n in shapes if re.search(tokens, n) and shapes[n] == shapes[h]]
    return pairs[0] if pairs else None
