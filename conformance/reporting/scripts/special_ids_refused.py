# ruff: noqa: INP001
"""Special tokens that are tensors on `meta`."""

from __future__ import annotations

from transformers import GenerationConfig

from conformance.reporting.scripts.frame import HAS_MASK, IDS, make_model


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """On each device, an error of a type of its own that names the field; and what happens."""
    got = {}
    for device in ("cpu", "meta"):
        model, config = make_model(), GenerationConfig()
        for name, value in IDS.items():
            setattr(config, name, value)
        try:
            model._prepare_special_tokens(config, HAS_MASK, device=device)
            got[device] = "no error"
        except Exception as error:  # noqa: BLE001
            clear = "_token_id" in str(error) and type(error).__module__ != "builtins"
            got[device] = "refused clearly" if clear else f"{type(error).__name__}: {error}"
    return dict.fromkeys(got, "refused clearly"), got
