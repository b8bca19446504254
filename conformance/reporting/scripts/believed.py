# ruff: noqa: INP001
"""How much of what the model itself drafts is accepted."""

from __future__ import annotations

import torch
from transformers import GenerationConfig

from conformance.reporting.scripts.arriving import arriving
from conformance.reporting.scripts.drafts_of import drafts_of
from conformance.reporting.scripts.frame import CHANGES, SEED, SETTINGS, make_model
from conformance.reporting.scripts.helped import helped
from conformance.reporting.scripts.stops import stops

ROWS = "first"
BEYOND = ("embeds", "turns", "script")


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """Of each draft, how many tokens have to be accepted, and are."""
    model = make_model()
    keywords = arriving(model) | helped(model) | stops()
    drafts = drafts_of(model)
    torch.manual_seed(SEED)
    out = model.generate(**keywords, generation_config=GenerationConfig(**SETTINGS | CHANGES))
    tokens = out.sequences[0].tolist()
    expected, got = {}, {}
    for length, end in zip(drafts, [*list(drafts)[1:], len(tokens)]):  # noqa: B905
        draft = drafts[length][: end - length]
        same = [drafted == token for drafted, token in zip(draft, tokens[length:])]  # noqa: B905
        expected[f"draft at position {length:3}"] = f"{len(draft)} tokens accepted"
        got[f"draft at position {length:3}"] = f"{(same + [False]).index(False)} tokens accepted"  # noqa: RUF005
    return expected, got
