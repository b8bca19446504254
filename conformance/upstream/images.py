"""Images that a caller has encoded before, in the releases that take them so."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

ENCODED_IMAGES = "mm_encoder_outputs"


def takes_encoded_images(model: Any) -> bool:
    """Whether the forward of the type takes what its tower made of images, and the type tells how to make it."""
    return ENCODED_IMAGES in inspect.signature(model.forward).parameters and hasattr(
        model.base_model, "get_image_features"
    )


def encoded_images(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What the tower makes of the images among these inputs, as the forward takes it."""
    encode = model.base_model.get_image_features
    taken = inspect.signature(encode).parameters
    own = {name: value for name, value in inputs.items() if name in taken}
    return {"image": encode(**own, return_dict=True)}
