"""How a type takes images or audio: its tensors, and the placeholder tokens that stand for them in the prompt.

`media.json` holds an entry per type, in the words of `Recipe`; the config sizes it counts on are set by
`overrides.json`. Sources: the forward and the processor of each type in transformers 5.24.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from conformance.errors import BadInput

CHANNELS, FRAMES = 3, 2  # of a picture; that one patch of the Qwen types spans in time
# Grids of patches (time, height, width), one of which an image takes by its seed.
GRIDS = ((1, 2, 2), (1, 4, 4), (1, 2, 4))
RESERVED = 4  # the highest token ids of a type with placeholders: no prompt and no end token draws them


@dataclass(frozen=True)
class Recipe:
    """What one type is given for an image.

    layout: `pixels` (images, 3, size, size); `patches`, one row a patch, with the grid of each image; `audio`,
    (clips, bins, 2 * size) with its mask. token: the config attribute that holds the placeholder's id. count:
    placeholders per image, where it does not follow from the tensor. most: images in a row. prefix: the image precedes
    the text without a placeholder. types: the input that tells images from text by token, with the values for text,
    image and generated tokens. derives_positions: explicit positions would hide the grid.
    """

    layout: Literal["pixels", "patches", "audio"]
    size: int = 0
    token: str = ""
    count: int = 0
    most: int = 2
    prefix: bool = False
    patch: int = 0
    merge: int = 1
    bins: int = 0
    types: str = ""
    prompt_type: int = 0
    media_type: int = 1
    generated_type: int = 0
    derives_positions: bool = False

    def grid(self, seed: int) -> tuple[int, int, int]:
        """The grid of patches (time, height, width) of the image with this seed."""
        return GRIDS[seed % len(GRIDS)]

    def frames(self, seed: int) -> int:
        """How many of the `2 * size` frames of the clip with this seed hold sound."""
        return 2 * self.size - 4 * (seed % 2)

    def placeholders(self, seed: int) -> int:
        """How many placeholder tokens the image with this seed needs."""
        if self.layout == "patches":
            time, height, width = self.grid(seed)
            return time * height * width // self.merge**2
        if self.layout == "audio":
            # Two strided steps, as the encoder's `_get_feat_extract_output_lengths` counts them.
            return ((self.frames(seed) - 1) // 2 + 1 - 2) // 2 + 1
        return self.count

    def positions(self, seeds: Iterable[int]) -> int:
        """How many positions of a row the images with these seeds take, each between a start and an end token."""
        return sum(self.placeholders(seed) + 2 for seed in seeds) if self.token else 0


def image_seeds(row: int, images: int, seed: int) -> list[int]:
    """The seeds of the images of a row, of which each has as many; `seed` is that of the first row's first."""
    return [seed + row * images + number for number in range(images)]


@cache
def _all() -> Mapping[str, Recipe]:
    text = resources.files("conformance.architectures").joinpath("media.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return {name: Recipe(**entry) for name, entry in entries.items()}


def takes_media(name: str) -> bool:
    """Whether prompts of this architecture can hold images (or audio)."""
    return name in _all()


def media_names() -> tuple[str, ...]:
    """The architectures whose prompts can hold images or audio, sorted; some releases lack some of them."""
    return tuple(sorted(_all()))


def recipe(name: str) -> Recipe:
    """The recipe of an architecture. Raises BadInput where it takes neither images nor audio."""
    if name not in _all():
        raise BadInput(f"prompts of {name} hold no images; those of {', '.join(media_names())} can")
    return _all()[name]


def reserved_tokens(name: str) -> int:
    """How many of the highest token ids a prompt of this architecture must not use."""
    return RESERVED if name in _all() and _all()[name].token else 0
