"""What makes two failures the same finding: computed after simplifying, never from values."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from conformance.architectures.cache_kinds import cache_kinds
from conformance.architectures.options import chosen_options
from conformance.architectures.ropes import rope_of
from conformance.build import Scenario
from conformance.case import Case, Settings
from conformance.errors import BadInput, NotBuildable
from conformance.verdicts import Difference

# The plainest type of each cache kind: a fault that shows there too is not one type's own.
PLAINEST = {
    ("full",): "llama",
    ("sliding",): "mistral",
    ("full", "sliding"): "gemma2",
    ("indexed",): "deepseek_v32",
    ("convolutional", "full"): "lfm2",
    ("convolutional", "recurrent"): "mamba2",
    ("convolutional", "full", "recurrent"): "bamba",
    ("encoder-decoder", "full"): "t5",
}
# The same among types whose positions are learned: where what counts them wrongly shows.
PLAINEST_LEARNED = {("full",): "gpt2", ("encoder-decoder", "full"): "bart"}


# What raised is told as `Type in module.function`; these modules are of one model, unless their name says otherwise.
OWN_FILE = re.compile(r" in (modeling|modular|generation|configuration)_(?!\*|(\w+_)?(utils|outputs|layers)\.)")
# Functions of which hundreds of model files have the same copy: what raises there is no type's own.
COPIED = re.compile(r"\bmodeling_\w+\.(?=(eager_attention_forward|repeat_kv|apply_rotary_pos_emb|rotate_half)\b)")


def in_any_copy(told: str) -> str:
    """What names a copied function of one model's file as that of any."""
    return COPIED.sub("modeling_*.", told)


@dataclass(frozen=True)
class Key:
    """The part of a signature that shows at once: the check, the kind, the field, what raised."""

    check: str
    kind: str
    field: str
    raised_in: str

    @classmethod
    def of(cls, check: str, difference: Difference) -> Key:
        """The key of a failed check's first difference; raised in a copied function, it is so in any of the copies."""
        return cls(check, difference.kind, difference.field, in_any_copy(difference.raised_in))


@dataclass(frozen=True)
class Signature:
    """A key, the cache kinds, the settings that the failure needs, and its scope: `any`, a model type, or a
    class that decodes by itself.
    """

    check: str
    kind: str
    field: str
    raised_in: str
    cache: tuple[str, ...]
    needs: tuple[str, ...]
    scope: str

    @property
    def key(self) -> Key:
        """The part that shows before simplifying."""
        return Key(self.check, self.kind, self.field, self.raised_in)

    @property
    def raised_by_shared_code(self) -> bool:
        """Whether it is an exception that was raised outside the files of one model."""
        return self.kind == "crash" and bool(self.raised_in) and not self.raised_in_own_code

    @property
    def raised_in_own_code(self) -> bool:
        """Whether it is an exception that was raised in the files of one model."""
        return bool(OWN_FILE.search(self.raised_in))

    @property
    def id(self) -> str:
        """A readable name, unique for the signature."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        return re.sub(r"[^a-z0-9_.-]+", "-", f"{self.check}-{self.scope}-{digest}".lower())

    def could_explain(self, key: Key, case: Case) -> bool:
        """Whether a failure of this key on a case has all that this finding needs."""
        return key == self.key and set(self.needs) <= set(traits(case))

    def accounts_for(self, other: Signature) -> bool:
        """Whether another finding is this one with settings that it does without."""
        alike = (self.key, self.cache, self.scope) == (other.key, other.cache, other.scope)
        return alike and set(self.needs) < set(other.needs)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Signature:
        """The signature as JSON holds it."""
        return cls(**{**document, "cache": tuple(document["cache"]), "needs": tuple(document["needs"])})


def traits(case: Case) -> tuple[str, ...]:
    """The settings of a case that are not the plainest, by name."""
    found = [] if case.model.dtype == "float32" else ["dtype"]
    found += [] if case.model.attention == "eager" else ["attention kernel"]
    found += ["tied weights"] if case.model.tied else []
    found += ["several rows"] if len(case.prompt.rows) > 1 else []
    found += ["images"] if case.prompt.images else []
    found += ["padding"] if case.prompt.padded else []
    plainest = Settings()
    ignored = {"max_new_tokens", "sample_seed", "eos_at", "eos_unused", "stop_at", "min_as_length"}
    settings = case.settings
    found += [
        n for n in type(settings).model_fields if n not in ignored and getattr(settings, n) != getattr(plainest, n)
    ]
    planned = () if case.plan is None else case.plan.traits()
    alike = {} if case.plan is None else case.plan.alike
    return tuple(sorted({alike.get(name, name) for name in (*found, *planned, *switches(case))}))


def switches(case: Case) -> list[str]:
    """The config attributes of the case that say what a default config does not, by name."""
    config, name = case.model.config, case.model.architecture
    if case.model_name != name:  # another model runs, with a config of its own
        return []
    said = {path for path, value in config.items() if value is True and "use_" in path}
    said |= {path for option in chosen_options(name, config) for path in option}
    rope = rope_of(config)
    return sorted([*(f"config {path}" for path in said), *([f"config rope_type {rope}"] if rope else [])])


def kinds_of(case: Case) -> tuple[str, ...]:
    """The cache kinds of the case's model in the installed release; none of a class that decodes by itself."""
    if case.model_name != case.model.architecture:
        return ()
    try:
        return cache_kinds(Scenario(case).config)
    except (BadInput, NotBuildable):
        return ("unknown",)
