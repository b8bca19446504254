"""Everything a run produced that anyone could observe."""

from __future__ import annotations

import hashlib
import traceback
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch

from conformance.snapshots import Flat


@dataclass(frozen=True)
class Crash:
    """An exception of the subject: its type, first line, and the function of the library that raised it."""

    type: str
    message: str
    raised_in: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Crash:
        """The crash as a plain record."""
        lines = printable(error).strip().splitlines()
        text = "".join(traceback.format_exception(error)[-6:]).encode("utf-8", "backslashreplace").decode()
        return cls(type(error).__name__, (lines or [""])[0][:300], raising_function(error.__traceback__), text[-2000:])

    def __str__(self) -> str:
        return f"{self.type}: {self.message} (in {self.raised_in})"


def printable(error: BaseException) -> str:
    """The exception's message, in what every file can hold; a stranger's may raise when it is asked for."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # noqa: BLE001 - its own fault, but not what is told here
        return "a message that cannot be read"


def raising_function(trace: TracebackType | None) -> str:
    """`module.function` of the innermost frame in transformers or accelerate, else of the innermost frame."""
    frames = list(traceback.walk_tb(trace))
    names = [(frame.f_globals.get("__name__", "?"), frame.f_code.co_name) for frame, _ in frames]
    library = [n for n in names if n[0].split(".")[0] in ("transformers", "accelerate")]
    module, function = (library or names or [("?", "?")])[-1]
    return f"{module.rsplit('.', 1)[-1]}.{function}"


@dataclass
class Outcome:
    """One run of a subject.

    sequences: (batch, prompt + new) token ids; scores, logits: one (batch, vocabulary) float32 tensor a step;
    states: attentions and hidden states as the library nests them; streamed: what the streamer received, in
    order; cache: flat copy of the returned cache; changed: what of the caller's was changed, path → how;
    module_changes: the same for attributes of the model's modules; extra: what probes saw, by their name; returned: the
    very object that the caller got; streamed_after_end: calls of the streamer's `put` after `end`.
    """

    prompt_length: int = 0
    sequences: torch.Tensor | None = None
    scores: tuple[torch.Tensor, ...] = ()
    logits: tuple[torch.Tensor, ...] = ()
    states: dict[str, Any] = field(default_factory=dict)
    streamed: list[torch.Tensor] = field(default_factory=list)
    stream_ends: int = 0
    streamed_after_end: int = 0
    cache: Flat = field(default_factory=dict)
    cache_length: int | None = None
    rng_after: str = ""
    changed: dict[str, str] = field(default_factory=dict)
    module_changes: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    crash: Crash | None = None
    returned: Any = field(default=None, repr=False)

    @property
    def steps(self) -> int:
        """Decoding steps taken."""
        return 0 if self.sequences is None else self.sequences.shape[1] - self.prompt_length

    def tokens(self, row: int) -> list[int]:
        """The new tokens of a row, padding after its end included."""
        return [] if self.sequences is None else self.sequences[row, self.prompt_length :].tolist()

    def fields(self, stream: bool = False) -> Flat:
        """Every observable field as flat leaves, for a bitwise comparison; what was streamed only if asked for."""
        leaves: Flat = {"sequences": self.sequences, "rng": self.rng_after, "cache_length": self.cache_length}
        for name, steps in (("scores", self.scores), ("logits", self.logits)):
            leaves |= {f"{name}.{step}": tensor for step, tensor in enumerate(steps)}
        if stream:
            leaves |= {f"streamed.{call}": tensor for call, tensor in enumerate(self.streamed)}
            leaves["streamed.ends"] = self.stream_ends
        leaves |= {f"states{path}": leaf for path, leaf in self.states.items()}
        leaves |= {f"cache{path}": leaf for path, leaf in self.cache.items()}
        return leaves


def rng_digest() -> str:
    """A short digest of torch's global generator, unseen by modes, which would count it as a read of a tensor."""
    with torch._C.DisableTorchFunction():
        return hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()[:16]
