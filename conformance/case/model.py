"""The model and the prompt of a case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from conformance.case.values import ConfigSettings, FrozenDict, Pattern, Record, Row


class ModelSpec(Record):
    """What the model is: a type, the attributes of its tiny config, and how its weights are drawn.

    `tied` holds pairs (target, source) of names or patterns of weights that are one; see `conformance.tying`.
    """

    architecture: Annotated[str, Field(max_length=64)] = "llama"
    config: ConfigSettings = FrozenDict()
    weight_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    init_scale: Annotated[float, Field(ge=0.01, le=2.0)] = 0.3
    dtype: Literal["float32", "float64"] = "float32"
    attention: Literal["eager", "sdpa"] = "eager"
    tied: Annotated[
        tuple[Annotated[tuple[Pattern, Pattern], Field(strict=False)], ...], Field(max_length=8, strict=False)
    ] = ()


class Prompt(Record):
    """Token ids of each row without padding; a shorter row is padded on the left when batched.

    For an encoder-decoder model these are the encoder's inputs. `images` are put into each row after its first
    tokens, one after another, as `conformance.building.media` says; for a type that hears instead of sees, clips of
    sound.
    """

    rows: Annotated[tuple[Row, ...], Field(min_length=1, max_length=8, strict=False)] = ((1,),)
    images: Annotated[int, Field(ge=0, le=2)] = 0
    image_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    @property
    def padded(self) -> bool:
        """Whether batching these rows needs padding."""
        return len({len(row) for row in self.rows}) > 1
