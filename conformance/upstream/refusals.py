"""What the documentation says is refused, and how the refusals are worded."""

from __future__ import annotations

CRITERION_TWICE = "a criterion twice"
# What the documentation of generation, of caches and of forwards refuses: name → type, how it begins.
REFUSALS = {
    "several rows": ("ValueError", "assisted generate is only supported for batch_size = 1"),
    "stateful": ("ValueError", "assisted generation is not supported with stateful models"),
    "not croppable": ("ValueError", "Assisted decoding requires a cache that can be cropped"),
    "static cache": ("ValueError", "assisted generate is not supported with Static cache classes"),
    "no cache": ("RuntimeError", "Assisted decoding requires a cache"),
    "use_cache": ("ValueError", "assisted generate requires `use_cache=True`"),
    "chunks without a cache": ("ValueError", "Cannot use prefill chunking without a cache"),
    "images in chunks": ("ValueError", "Chunked prefill cannot split the raw multimodal inputs"),
    "nothing new": ("ValueError", "The cache holds the whole prompt already"),
    # Models of the Mamba family before 5.3.
    "positions untold": ("ValueError", "You have to specify the `cache_position` manually"),
    "kernel": ("ValueError", "`sdpa` attention does not support"),
    CRITERION_TWICE: ("ValueError", "A custom stopping criteria of type"),
    "no embeddings": ("ValueError", "You passed `inputs_embeds` to `.generate()`, but the model class"),
}

# Those that are for a call without a cache: no documentation says that they are for a model that makes its own.
FOR_WANT_OF_A_CACHE = ("no cache", "chunks without a cache")


def refusal(error_type: str, message: str) -> str | None:
    """The name of the documented refusal that an exception is, or None."""
    said = message.lower()
    known = (n for n, (kind, text) in REFUSALS.items() if kind == error_type and said.startswith(text.lower()))
    return next(known, None)
