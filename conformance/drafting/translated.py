"""An assistant with a vocabulary and a tokenizer of its own: what it drafts is text to the main model."""

from __future__ import annotations

from typing import Any

from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.prefill import PrefillPlan

FIRST_LETTER = 0x4E00  # there are twenty thousand in a row from here on: more than a tiny model has tokens


def letters(vocabulary: int, backwards: bool = False) -> Any:
    """A new tokenizer of which every token is one letter, the first ones or, `backwards`, the same from last to first.

    New for each call: releases keep what they know of two tokenizers, and of the models that came with them.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {chr(FIRST_LETTER + n): vocabulary - 1 - n if backwards else n for n in range(vocabulary)}
    made = Tokenizer(models.WordLevel(words, unk_token=chr(FIRST_LETTER)))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=made)


def other_vocabulary(scenario: Scenario, plan: PrefillPlan) -> int:
    """The size of the assistant's vocabulary: some letters more than the main model's, or some fewer."""
    return scenario.vocabulary + (7 if plan.assistant_seed % 2 else -5)


def tokenizers(scenario: Scenario, plan: PrefillPlan) -> dict[str, Any]:
    """The keywords of `generate` for both tokenizers."""
    own = letters(other_vocabulary(scenario, plan), backwards=True)
    return {"tokenizer": letters(scenario.vocabulary), "assistant_tokenizer": own}


def foreign(scenario: Scenario, plan: PrefillPlan) -> Scenario:
    """The scenario of an assistant with the other vocabulary: Llama."""
    config = {**tiny_config("llama"), "vocab_size": other_vocabulary(scenario, plan)}
    spec = ModelSpec(config=config, weight_seed=plan.assistant_seed, dtype=scenario.case.model.dtype)
    alone = {"prompt": Prompt(rows=((1,),)), "settings": Settings(), "fingerprint": None}
    return Scenario(scenario.case.replace(model=spec, **alone))
