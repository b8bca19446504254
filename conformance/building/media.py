"""Images (or sound) in a prompt: placeholder tokens in its rows, and the tensors that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from conformance.architectures.media import CHANNELS, FRAMES, RESERVED, Recipe, image_seeds
from conformance.errors import CaseRefused
from conformance.weights import uniform

if TYPE_CHECKING:
    from conformance.case import Case


class Media:
    """The images of a case: `case.prompt.images` in every row, each of its own seed.

    Raises CaseRefused where a row has more than the type takes.
    """

    def __init__(self, config: Any, recipe: Recipe, case: Case) -> None:
        if case.prompt.images > recipe.most:
            raise CaseRefused(
                f"prompt.images is {case.prompt.images}; {case.model.architecture} takes {recipe.most} a row"
            )
        self.recipe, self._prompt, self._weight_seed = recipe, case.prompt, case.model.weight_seed
        vocabulary = int(config.get_text_config(decoder=True).vocab_size)
        self.token = int(getattr(config, recipe.token)) if recipe.token else None
        self._start, self._end = vocabulary - RESERVED + 1, vocabulary - RESERVED
        self.rows = tuple(self._with_placeholders(number) for number in range(len(case.prompt.rows)))

    def seeds(self, row: int) -> list[int]:
        """The seed of each image of a row."""
        return image_seeds(row, self._prompt.images, self._prompt.image_seed)

    def _with_placeholders(self, row: int) -> tuple[int, ...]:
        """The row with its images after its first token, each between a start and an end token, as processors do."""
        tokens = self._prompt.rows[row]
        if self.token is None:
            return tokens
        counts = [self.recipe.placeholders(seed) for seed in self.seeds(row)]
        runs = [(self._start, *[self.token] * count, self._end) for count in counts]
        return (*tokens[:1], *(token for run in runs for token in run), *tokens[1:])

    def inputs(self, rows: Sequence[int], width: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        """What the forward takes for the images of these rows, in their order, and the types of their tokens.

        Types have shape (rows, width): a row shorter than `width` is padded on the left when it is one of several, and
        continued by generated tokens on the right when it is alone.
        """
        seeds = [seed for row in rows for seed in self.seeds(row)]
        found = getattr(self, f"_{self.recipe.layout}")(seeds, dtype)
        if self.recipe.types:
            found[self.recipe.types] = torch.tensor([self._types(row, width, len(rows) == 1) for row in rows])
        return found

    def _types(self, row: int, width: int, continued: bool) -> list[int]:
        kinds = self.recipe
        own = [kinds.media_type if token == self.token else kinds.prompt_type for token in self.rows[row]]
        rest = width - len(own)
        return [*own, *[kinds.generated_type] * rest] if continued else [*[kinds.prompt_type] * rest, *own]

    def sources(self, rows: Sequence[int], dtype: str) -> dict[str, str]:
        """Name → expression of what is drawn of these inputs, for a script that has `conformance.weights.uniform`."""
        seeds = [seed for row in rows for seed in self.seeds(row)]
        drawn = ", ".join(f'uniform({self._weight_seed}, "image:{seed}", {self._shape(seed)})' for seed in seeds)
        join = "concatenate" if self.recipe.layout == "patches" else "stack"
        name = "input_features" if self.recipe.layout == "audio" else "pixel_values"
        return {name: f"torch.from_numpy(np.{join}([{drawn}])).to(torch.{dtype})"}

    def _drawn(self, seed: int) -> torch.Tensor:
        """An image's values in [-1, 1), the same everywhere for the same seed."""
        return torch.from_numpy(uniform(self._weight_seed, f"image:{seed}", self._shape(seed)))

    def _shape(self, seed: int) -> tuple[int, ...]:
        kind = self.recipe
        if kind.layout == "pixels":
            return CHANNELS, kind.size, kind.size
        if kind.layout == "audio":
            return kind.bins, 2 * kind.size
        time, height, width = kind.grid(seed)
        return time * height * width, CHANNELS * FRAMES * kind.patch**2

    def _pixels(self, seeds: Sequence[int], dtype: torch.dtype) -> dict[str, torch.Tensor]:
        return {"pixel_values": torch.stack([self._drawn(seed) for seed in seeds]).to(dtype)}

    def _patches(self, seeds: Sequence[int], dtype: torch.dtype) -> dict[str, torch.Tensor]:
        grids = torch.tensor([self.recipe.grid(seed) for seed in seeds])
        return {"pixel_values": torch.cat([self._drawn(seed) for seed in seeds]).to(dtype), "image_grid_thw": grids}

    def _audio(self, seeds: Sequence[int], dtype: torch.dtype) -> dict[str, torch.Tensor]:
        sound = torch.stack([self._drawn(seed) for seed in seeds]).to(dtype)
        places = range(2 * self.recipe.size)
        mask = torch.tensor([[int(at < self.recipe.frames(seed)) for at in places] for seed in seeds])
        return {"input_features": sound, "feature_attention_mask": mask}
