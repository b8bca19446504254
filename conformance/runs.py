"""The runs of one case, each made once and only when a check asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import torch

from conformance import events, upstream
from conformance.architectures.capabilities import Capabilities, capabilities, facts
from conformance.build import Scenario
from conformance.call import Call
from conformance.case import Case
from conformance.clock import MODEL_CODE
from conformance.compare import BOUND, NOISY_BOUND, WIDE_BOUND, Noise
from conformance.errors import NotOffered
from conformance.limits import time_limit
from conformance.observe import observe
from conformance.oracle import Oracle, OracleRaised
from conformance.outcome import Crash, Outcome
from conformance.reference.decode import forced_loop
from conformance.resolving import built_processors, resolved
from conformance.selection_ties import SelectionTies
from conformance.statefulness import keeps_state
from conformance.subjects import BUILT_IN, Subject

NOISE_SEEDS, NOISE_SIZE = (1, 2, 3), 1e-6
Forced = list[torch.Tensor] | Crash
T = TypeVar("T")


class Runs:
    """What has been run of a case so far. Runs share a model only where none can leave a trace in it.

    events: the paths taken; figures: numbers that the case measured, by name, summarised over a run.
    """

    def __init__(self, case: Case, subject: Subject) -> None:
        """Raises CaseRefused or NotBuildable; builds no model yet, unless end tokens are told by place."""
        self.subject = subject
        drawn = Scenario(case)
        self.oracle = Oracle(drawn)  # in the case's own dtype; it knows nothing of settings, which looking up changes
        self.scenario = resolved(drawn, self.oracle)
        self.case = self.scenario.case
        self.events: set[str] = events.of_case(self.case, self.scenario)
        self.figures: dict[str, float] = {}
        self._made: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made once for this case: how a family of checks keeps runs of its own."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    @property
    def rows(self) -> range:
        """The row numbers of the prompt."""
        return range(len(self.case.prompt.rows))

    def sequences(self, row: int) -> range:
        """The numbers of the sequences that are returned for a row of the prompt, all rows run together."""
        copies = self.case.settings.copies
        return range(row * copies, (row + 1) * copies)

    def kept(self, row: int, tokens: Sequence[int]) -> list[int]:
        """The new tokens that are the row's own decoding: up to its end, where it is filled up after that.

        Nothing is filled up where there are no end tokens: a row that a criterion ends goes on with the others.
        """
        ending = self.scenario.ending(row, tokens) if self.case.settings.eos else None
        return list(tokens if ending is None else tokens[: ending.step + 1])

    @cached_property
    def capabilities(self) -> Capabilities:
        """What this type can do in the installed release."""
        return capabilities(self.case.model.architecture)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known about running this type: name of the fact → reason."""
        return facts(self.case.model.architecture)

    @property
    def ignores_padding(self) -> bool:
        """Whether the type's documentation says that an attention mask has no effect."""
        return "ignores_padding" in self.facts

    @property
    def bound(self) -> float:
        """How far logits may be off, relative to the largest: stated per type and dtype."""
        if "noisy" in self.facts:
            return NOISY_BOUND
        return WIDE_BOUND if self.case.model.dtype == "float64" else BOUND

    @cached_property
    def has_default_cache(self) -> bool:
        """Whether `generate` makes this model's cache itself."""
        return upstream.has_default_cache(self.scenario.model_class)

    def shareable_model(self) -> Any:
        """The model of a lower rung's run: shared where neither the type nor the subject leaves a trace in it."""
        if self.subject.name not in BUILT_IN or self.case.prompt.images or keeps_state(self.case.model):
            return self.scenario.model()
        return self._shared

    @cached_property
    def _shared(self) -> Any:
        return self.scenario.model()

    def call(self, rows: Sequence[int] | None = None, **config: Any) -> Call:
        """The case's own call on these rows (all of them: None), with changes to its generation config."""
        return self.scenario.call(rows, **config)

    def run(self, call: Call, *, model: Any = None, subject: Subject | None = None, **options: Any) -> Outcome:
        """One run of the subject; `options` are those of `observe`, with the case's seed unless one is given.

        Without a model, on one that runs may share.
        Raises NotOffered where a user's subject says that it does not decode by the call's mechanism.
        """
        tested = subject or self.subject
        model = self.shareable_model() if model is None else model
        outcome = observe(tested, model, call, **{"seed": self.case.settings.sample_seed, **options})
        refused = outcome.crash is not None and outcome.crash.type == NotImplementedError.__name__
        if refused and call.mechanism != "decode" and tested.name not in BUILT_IN:
            raise NotOffered(f"{tested.name} does not offer {call.mechanism}")
        return outcome

    @cached_property
    def batch(self) -> Outcome:
        """The baseline: all rows at once, dynamic cache."""
        outcome = self.run(self.call(), model=self.scenario.model())
        self.events |= events.of_outcome(self.scenario, outcome)
        return outcome

    @cached_property
    def alone(self) -> list[Outcome]:
        """Each row by itself, unpadded."""
        return [self.batch] if len(self.rows) == 1 else [self.run(self.call([row])) for row in self.rows]

    @cached_property
    def wide_oracle(self) -> Oracle:
        """The oracle in float64 where the type allows it, to measure margins."""
        wide = self.capabilities.float64 and not self.oracle.prepared
        return Oracle(self.scenario, dtype="float64" if wide else None)

    @cached_property
    def _perturbed(self) -> list[Oracle]:
        return [Oracle(self.scenario, noise=(seed, NOISE_SIZE)) for seed in NOISE_SEEDS]

    def noise(self, row: int, tokens: Sequence[int]) -> Noise:
        """step → how far the oracle's logits move when its weights are perturbed as rounding would.

        Infinite where a selection inside the model was an exact tie, so that no computation is the right one.
        """

        def at(step: int) -> float:
            if self._selects_among_equals(row, tokens) and self._selects_among_equals(row, tokens[: step + 1]):
                return float("inf")
            exact = self.oracle.logits(row, tokens)[step]
            finite = exact.isfinite()
            moved = [(logits[step] - exact)[finite].abs() for logits in self._perturbed_logits(row, tokens)]
            return max((float(m.max()) for m in moved if m.numel() and m.isfinite().all()), default=0.0)

        return at

    def _perturbed_logits(self, row: int, tokens: Sequence[int]) -> Iterator[torch.Tensor]:
        for oracle in self._perturbed:
            with suppress(OracleRaised):  # of other weights: what was measured of the case's own stands
                yield oracle.logits(row, tokens)

    def _selects_among_equals(self, row: int, tokens: Sequence[int]) -> bool:
        def some() -> bool:
            with SelectionTies() as ties:
                Oracle(self.scenario).logits(row, tokens)
            return ties.count > 0

        return self.once(("selects among equals", row, tuple(tokens)), some)

    def alone_under(self, row: int, tokens: Sequence[int]) -> Forced:
        """Logits of one row by itself under given tokens, one (1, vocabulary) tensor for each of them."""
        own = self.alone[row]
        if own.crash is None and own.tokens(0)[: len(tokens)] == list(tokens):
            return list(own.logits[: len(tokens)])
        return self.forced([row], torch.tensor([tokens[:-1]], dtype=torch.long), [1] * (len(tokens) - 1))

    def batch_under(self, tokens: list[list[int]]) -> Forced:
        """Logits of all sequences under given tokens for each, one (sequences, vocabulary) tensor for each step."""
        if self.batch.crash is None and all(self.batch.tokens(index) == row for index, row in enumerate(tokens)):
            return list(self.batch.logits)
        steps = torch.tensor([row[:-1] for row in tokens], dtype=torch.long)
        copies = self.case.settings.copies
        rows = None if copies == 1 else [row for row in self.rows for _ in range(copies)]
        return self.forced(rows, steps, [1] * steps.shape[1])

    def forced(self, rows: Sequence[int] | None, tokens: torch.Tensor, groups: Sequence[int], **config: Any) -> Forced:
        """Logits under given tokens, fed in groups after the prompt; see `reference.decode.forced_loop`.

        tokens: (rows, steps). A list of steps + 1 tensors of shape (rows, vocabulary), or the crash.
        """
        key = (tuple(rows or ()), tuple(tokens.flatten().tolist()), tuple(groups), tuple(sorted(config.items())))
        return self.once(("forced", *key), lambda: self._run_forced(rows, tokens, groups, config))

    def _run_forced(
        self, rows: Sequence[int] | None, tokens: torch.Tensor, groups: Sequence[int], config: Any
    ) -> Forced:
        logits: list[torch.Tensor] = []
        model = self.shareable_model()
        room = {"max_new_tokens": tokens.shape[1] + 1, "eos_token_id": None, "do_sample": False}
        room |= {"num_return_sequences": 1} if self.case.settings.copies > 1 else {}
        settings = self.scenario.generation_config(**{**room, **config})
        with torch.no_grad(), MODEL_CODE.running():
            try:
                with time_limit():
                    loop = forced_loop(tokens, groups, logits)
                    model.generate(**self.scenario.inputs(rows), generation_config=settings, custom_generate=loop)
            except Exception as error:  # noqa: BLE001 - the model under test may raise anything
                return Crash.of(error)
        return logits

    def processors(self, rows: Sequence[int] | None = None) -> Any:
        """The installed logits processors for these rows, built fresh by `generate` itself unless there are none."""
        key = ("no processors", tuple(rows or ()))
        if key in self._made:
            return self._made[key]
        built = built_processors(self.scenario, rows)
        if not built:
            self._made[key] = built
        return built
