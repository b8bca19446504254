"""Random special tokens, quickly: for comparisons of many thousands, where Hypothesis would take hours."""

from __future__ import annotations

import random
from typing import Any

import torch
from transformers import GenerationConfig

VOCABULARY = 40
DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def number(rng: random.Random) -> Any:
    """Mostly a token; else one that is negative, beyond the vocabulary, a bool or a float."""
    return rng.choice(
        [
            *[rng.randrange(VOCABULARY)] * 40,
            0,
            rng.randrange(-5, 0),
            VOCABULARY + rng.randrange(50),
            rng.random() < 0.5,
            float(rng.randrange(VOCABULARY)),
            rng.randrange(VOCABULARY) + 0.5,
        ]
    )


def numbers(rng: random.Random) -> list[Any]:
    """None to four of them, with duplicates."""
    drawn = [number(rng) for _ in range(rng.choice([0, *[1, 1, 2, 3, 4] * 4]))]
    return drawn + drawn[:1] if rng.random() < 0.2 else drawn[:4]


def tensor(rng: random.Random, device: str) -> torch.Tensor:
    """A tensor of no or one dimension."""
    plain = [int(abs(n)) for n in numbers(rng)]
    if rng.random() < 0.1:
        made = torch.tensor([n + rng.choice([0.0] * 9 + [0.5]) for n in plain])
    else:
        made = torch.tensor(plain, dtype=rng.choice(DTYPES))
    made = -made if rng.random() < 0.1 and made.dtype in (torch.int64, torch.int32) else made
    return (made[0] if len(made) and rng.random() < 0.4 else made).to(device)


def token(rng: random.Random, device: str = "cpu") -> Any:
    """An id in any form that a caller may give it, or None."""
    form = rng.choice(["none", "number", "number", "list", "tuple", "tensor", "tensor"])
    if form in ("none", "number"):
        return None if form == "none" else number(rng)
    return tensor(rng, device) if form == "tensor" else {"list": list, "tuple": tuple}[form](numbers(rng))


def config(rng: random.Random, device: str = "cpu") -> GenerationConfig:
    """A generation config with four such ids; set afterwards, since the constructor refuses some."""
    made = GenerationConfig()
    for name in ("bos", "eos", "pad", "decoder_start"):
        setattr(made, f"{name}_token_id", token(rng, device))
    return made
