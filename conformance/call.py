"""One call of `generate`: what a subject is asked to do, as a plain record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Call:
    """Everything that reaches `generate`, and by which mechanism the decoding is to be done.

    inputs: tensors by keyword (`input_ids`, `attention_mask`, `inputs_embeds`, `pixel_values`, ...); mechanism: the
    module of `conformance.reference` with its loop, which the installed subject switches on by `upstream.mechanism`;
    processors, criteria: the user's own; extras: any other keyword of `generate` (`assistant_model`, a cache);
    options: for the mechanism's loop alone, never passed to `generate`.
    """

    inputs: dict[str, Any]
    generation_config: Any
    mechanism: str = "decode"
    streamer: Any = None
    processors: tuple[Any, ...] = ()
    criteria: tuple[Any, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self, *, own_loop: bool = False) -> dict[str, Any]:
        """The keywords of `model.generate`.

        own_loop: it decodes by a loop of its own, so that a criterion with `generate_keywords` is told by those; it
        hands no tokenizer on to a `custom_generate`.
        """
        keywords = [getattr(criterion, "generate_keywords", {}) if own_loop else {} for criterion in self.criteria]
        criteria = [criterion for criterion, told in zip(self.criteria, keywords, strict=True) if not told]
        arguments = {**self.inputs, "generation_config": self.generation_config, **self.extras}
        if self.streamer is not None:
            arguments["streamer"] = self.streamer
        if self.processors:
            arguments["logits_processor"] = list(self.processors)
        if criteria:
            arguments["stopping_criteria"] = criteria
        for told in keywords:
            arguments |= told
        return arguments

    def replace(self, **parts: Any) -> Call:
        """A copy with other parts."""
        return replace(self, **parts)

    @property
    def prompt_length(self) -> int:
        """Tokens of the prompt that the returned sequences begin with; 0 when only embeddings are given."""
        ids = self.inputs.get("decoder_input_ids", self.inputs.get("input_ids"))
        return 0 if ids is None else int(ids.shape[1])
