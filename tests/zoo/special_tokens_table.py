"""Broken preparations of special tokens, and the check meant for each."""

from __future__ import annotations

from zoo import special
from zoo.fault import Fault
from zoo.fault import seen as _seen

MATCH, ON_META, REFUSED = "special-tokens-match-on-cpu", "special-tokens-work-on-meta", "meta-ids-are-refused-clearly"
CONFIG, MODES = "special-tokens-change-no-config", "special-tokens-serve-every-mode"
DEFAULTS, MISPLACED = "assisted-survives-special-tokens-on-meta-defaults", "misplaced-fails-early-and-clearly"
STARTS = "special-tokens-start-a-decoding"
TOLD = {"told-otherwise-is-the-same": "what is told as keywords or by the model is prepared by the same code"}
_LEFT = [("changed", f"assistant model.generation_config.{part}") for part in ("eos_token_id", "eos_token_id.length")]
TOKENS = ("bos", "eos", "pad", "decoder_start")

FAULTS = (
    Fault(MATCH, _seen(("shape", "eos")), special.Eos0d),
    Fault(MATCH, _seen(("values", "pad"), ("shape", "pad")), special.PadFromLast),
    Fault(MATCH, _seen(("values", "pad")), special.ZeroIsUnset),
    Fault(MATCH, _seen(*(("changed", f"{name} dtype") for name in TOKENS)), special.Int32),
    Fault(MATCH, _seen(("changed", "warnings")), special.WarnsOfNothing),
    Fault(ON_META, _seen(*(("changed", f"{name} device") for name in TOKENS)), special.IgnoresDevice),
    Fault(ON_META, _seen(("changed", "reads"), ("crash", "crash")), special.ReadsTheirValues),
    Fault(REFUSED, _seen(("missing", "refusal")), special.MovesMetaTensors),
    Fault(REFUSED, _seen(("changed", "type of the refusal")), special.PlainRuntimeError),
    Fault(CONFIG, _seen(("changed", "generation_config")), special.PreparesInPlace),
    Fault(CONFIG, _seen(("changed", "generation_config")), special.KeepsTensors),
    Fault(CONFIG, _seen(("changed", "model._prepare_special_tokens")), special.StaysOnTheModel),
    Fault(CONFIG, _seen(*_LEFT), special.StaysOnTheAssistant),
    Fault(MODES, _seen(("tokens", "sequences")), special.FirstEndOnly, also=TOLD),
    Fault(MODES, _seen(("tokens", "sequences"), ("tokens", "padding")), special.IgnoresKeywords),
    Fault(STARTS, _seen(("tokens", "sequences")), special.StartsAllAlike, architecture="t5", also=TOLD),
    Fault(DEFAULTS, _seen(("crash", "crash")), special.DraftsAnywhere),
    Fault(MISPLACED, _seen(("length", "refusal")), special.RefusesLate),
)
