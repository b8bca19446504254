"""What a config can hold and a case says elsewhere, or not at all: it would be built as another than it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.architectures.overrides import Json
from conformance.errors import CaseRefused

FIELDS = {
    "model.architecture": ("model_type", "architectures"),
    "model.dtype": ("dtype", "torch_dtype", "_dtype"),
    "model.attention": ("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    "settings.output_attentions": ("output_attentions", "_output_attentions"),
    "settings.output_hidden_states": ("output_hidden_states",),
}
# Kernels, kinds of output, code and numbers from elsewhere: no case is about them.
NOWHERE: tuple[str, ...] = (
    "return_dict",
    "use_return_dict",
    "torchscript",
    "quantization_config",
    "auto_map",
    "trust_remote_code",
)
NOWHERE += ("experts_implementation", "_experts_implementation", "_experts_implementation_internal")
NOWHERE += ("name_or_path", "_name_or_path", "_commit_hash", "transformers_version", "transformers_weights")
SAID = {name: f"{field} says it" for field, names in FIELDS.items() for name in names}
SAID |= dict.fromkeys(NOWHERE, "no case says it")


def refuse(settings: Mapping[str, Json]) -> None:
    """Raise CaseRefused for settings of a config, at any depth, that take the place of a field of the case."""
    for path in _paths(settings):
        name = path.rsplit(".", 1)[-1]
        if name in SAID:
            raise CaseRefused(f"model.config may not hold {path!r}: {SAID[name]}")


def _paths(settings: Mapping[str, Json], before: str = "") -> Iterator[str]:
    for attribute, value in settings.items():
        parts = attribute.split(".")
        yield from (before + ".".join(parts[: end + 1]) for end in range(len(parts)))
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{attribute}.")
