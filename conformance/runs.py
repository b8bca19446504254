"""The runs of one case, each made once and only when a check asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch

from conformance import events, upstream
from conformance.architectures.capabilities import Capabilities, capabilities, facts
from conformance.build import Scenario
from conformance.case import Case
from conformance.clock import MODEL_CODE
from conformance.compare import BOUND, NOISY_BOUND, WIDE_BOUND, Noise
from conformance.limits import time_limit
from conformance.observe import observe
from conformance.oracle import Oracle
from conformance.outcome import Crash, Outcome
from conformance.reference.decode import forced_loop
from conformance.selection_ties import SelectionTies
from conformance.statefulness import keeps_state
from conformance.subjects import BUILT_IN, Subject

NOISE_SEEDS, NOISE_SIZE = (1, 2, 3), 1e-6
Forced = list[torch.Tensor] | Crash


class Runs:
    """What has been run of a case so far. Runs share a model only where none can leave a trace in it."""

    def __init__(self, case: Case, subject: Subject) -> None:
        """Raises CaseRefused or NotBuildable; builds no model yet."""
        self.case, self.subject = case, subject
        self.scenario = Scenario(case)
        self.events: set[str] = events.of_case(case, self.scenario)
        self._forced: dict[Any, Forced] = {}

    @property
    def rows(self) -> range:
        """The row numbers of the prompt."""
        return range(len(self.case.prompt.rows))

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

    def _model(self) -> Any:
        """The model of a lower rung's run: shared where neither the type nor the subject leaves a trace in it."""
        if self.subject.name not in BUILT_IN or keeps_state(self.case.model.architecture):
            return self.scenario.model()
        return self._shared

    @cached_property
    def _shared(self) -> Any:
        return self.scenario.model()

    def generate(self, rows: Sequence[int] | None = None, model: Any = None, **options: Any) -> Outcome:
        """One run of the subject; `options` are of `observe`, but for `config`: changes to the generation config."""
        config = self.scenario.generation_config(**options.pop("config", {}))
        return observe(
            options.pop("subject", self.subject),
            self._model() if model is None else model,
            options.pop("inputs", None) or self.scenario.inputs(rows),
            config,
            seed=self.case.settings.sample_seed,
            **options,
        )

    @cached_property
    def batch(self) -> Outcome:
        """The baseline: all rows at once, dynamic cache."""
        outcome = self.generate(model=self.scenario.model())
        self.events |= events.of_outcome(self.case, outcome)
        return outcome

    @cached_property
    def _kept(self) -> tuple[Any, dict[str, torch.Tensor], Any]:
        """One model, one set of inputs and one generation config, for calls on the same objects."""
        return self.scenario.model(), self.scenario.inputs(), self.scenario.generation_config()

    @cached_property
    def watched(self) -> Outcome:
        """The baseline call with a streamer, and with a look at everything that it could change."""
        return observe(self.subject, *self._kept, seed=self.case.settings.sample_seed, stream=True, watch=True)

    @cached_property
    def watched_again(self) -> Outcome:
        """The same call a second time on the same objects, after one with other inputs."""
        _ = self.watched
        model, inputs, _ = self._kept
        other = {name: tensor[:1].flip(1) for name, tensor in inputs.items()}
        observe(self.subject, model, other, self.scenario.generation_config(max_new_tokens=1))
        return observe(self.subject, *self._kept, seed=self.case.settings.sample_seed, stream=True)

    @cached_property
    def alone(self) -> list[Outcome]:
        """Each row by itself, unpadded."""
        return [self.batch] if len(self.rows) == 1 else [self.generate([row]) for row in self.rows]

    @cached_property
    def oracle(self) -> Oracle:
        """The oracle in the case's own dtype."""
        return Oracle(self.scenario)

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
            if self._selects_among_equals(row, tokens[: step + 1]):
                return float("inf")
            exact = self.oracle.logits(row, tokens)[step]
            finite = exact.isfinite()
            moved = [(o.logits(row, tokens)[step] - exact)[finite].abs() for o in self._perturbed]
            return max((float(m.max()) for m in moved if m.numel() and m.isfinite().all()), default=0.0)

        return at

    def _selects_among_equals(self, row: int, tokens: Sequence[int]) -> bool:
        with SelectionTies() as ties:
            Oracle(self.scenario).logits(row, tokens)
        return ties.count > 0

    def alone_under(self, row: int, tokens: Sequence[int]) -> Forced:
        """Logits of one row by itself under given tokens, one (1, vocabulary) tensor for each of them."""
        own = self.alone[row]
        if own.crash is None and own.tokens(0)[: len(tokens)] == list(tokens):
            return list(own.logits[: len(tokens)])
        return self.forced([row], torch.tensor([tokens[:-1]], dtype=torch.long), [1] * (len(tokens) - 1))

    def batch_under(self, tokens: list[list[int]]) -> Forced:
        """Logits of the whole batch under given tokens, one (rows, vocabulary) tensor for each step."""
        if self.batch.crash is None and all(self.batch.tokens(row) == tokens[row] for row in self.rows):
            return list(self.batch.logits)
        steps = torch.tensor([row[:-1] for row in tokens], dtype=torch.long)
        return self.forced(None, steps, [1] * steps.shape[1])

    def forced(self, rows: Sequence[int] | None, tokens: torch.Tensor, groups: Sequence[int], **config: Any) -> Forced:
        """Logits under given tokens, fed in groups after the prompt; see `reference.decode.forced_loop`.

        tokens: (rows, steps). A list of steps + 1 tensors of shape (rows, vocabulary), or the crash.
        """
        key = (tuple(rows or ()), tuple(tokens.flatten().tolist()), tuple(groups), tuple(sorted(config.items())))
        if key not in self._forced:
            self._forced[key] = self._run_forced(rows, tokens, groups, config)
        return self._forced[key]

    def _run_forced(
        self, rows: Sequence[int] | None, tokens: torch.Tensor, groups: Sequence[int], config: Any
    ) -> Forced:
        logits: list[torch.Tensor] = []
        model = self._model()
        room = {"max_new_tokens": tokens.shape[1] + 1, "eos_token_id": None, "do_sample": False}
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
        """The installed logits processors for these rows, built fresh by `generate` itself."""
        caught: list[Any] = []

        def catch(_: Any, input_ids: torch.Tensor, logits_processor: Any, **__: Any) -> torch.Tensor:
            caught.append(logits_processor)
            return input_ids

        with torch.no_grad():
            self.scenario.pristine.generate(  # prepares everything and runs nothing
                **self.scenario.inputs(rows), generation_config=self.scenario.generation_config(), custom_generate=catch
            )
        return caught[0]
