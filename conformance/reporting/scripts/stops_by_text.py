# ruff: noqa: INP001
"""Stop strings, for a tokenizer of which every token reads as three letters."""

from __future__ import annotations

from itertools import islice, product
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, StopStringCriteria

from conformance.reporting.scripts.frame import STOPPING, STRINGS, VOCABULARY


def stops() -> dict[str, Any]:
    """The keyword of `generate` for them, and for a custom stop condition."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*("".join(three) for three in islice(product(letters, repeat=3), VOCABULARY)), *letters]
    made = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token="a"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    told = [StopStringCriteria(PreTrainedTokenizerFast(tokenizer_object=made), string) for string in STRINGS]
    return {"stopping_criteria": [*STOPPING.get("stopping_criteria", []), *told]}
