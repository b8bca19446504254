"""Make a case real: models, tensors and a `GenerationConfig`; bitwise the same whenever it is done."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from conformance import tying, upstream
from conformance.architectures import catalogue
from conformance.architectures.media import recipe
from conformance.architectures.shrink import make_config
from conformance.building.copying import Copier
from conformance.building.fingerprint import fingerprint_of
from conformance.building.generation import callers_fields, plain_generation_config
from conformance.building.inputs import decoder_inputs, text_inputs
from conformance.building.media import Media
from conformance.building.models import refuse_large, weight_shapes
from conformance.call import Call
from conformance.case import Case, plain
from conformance.clock import MODEL_CODE
from conformance.endings import Ending, ending_of
from conformance.errors import CaseRefused, NotBuildable
from conformance.limits import time_limit
from conformance.seeding import seed_everything
from conformance.stopping_settings import own_criteria
from conformance.weights import fill, perturb

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Scenario:
    """A case made real. Every `model()` is a new instance, so that no run can lean on another's state."""

    def __init__(self, case: Case) -> None:
        """Make the config only. Raises CaseRefused for what the case gets wrong, NotBuildable for the rest."""
        self.case = case
        self.architecture = catalogue.get(case.model.architecture)
        try:
            self.config = make_config(case.model.architecture, plain(case.model.config), case.model.attention)
        except CaseRefused:
            raise
        except Exception as error:
            raise NotBuildable(f"config of {case.model.architecture}: {type(error).__name__}: {error}") from error
        self.vocabulary = int(self.config.get_text_config(decoder=True).vocab_size)
        self.media = Media(self.config, recipe(self.architecture.name), case) if case.prompt.images else None
        self._built: dict[str, Any] = {}
        self._copiers: dict[str, Copier] = {}
        self._check_tokens()

    def _check_tokens(self) -> None:
        plan = self.case.plan.tokens() if self.case.plan is not None else ()
        rows = [token for row in self.case.prompt.rows for token in row]
        # A pad token that no row of several can ever be filled with may be anything.
        settings, alone = self.case.settings, len(self.case.prompt.rows) * self.case.settings.copies == 1
        pad = [] if alone and settings.pad is not None else [settings.filler]
        scored = settings.eos if settings.forced_eos or settings.against_eos != "nothing" else ()
        fields = {"prompt.rows": rows, "settings.eos": scored, "settings.pad": pad, "plan": plan}
        for field, tokens in fields.items():
            if max(tokens, default=0) >= self.vocabulary:
                raise CaseRefused(f"{field} holds token {max(tokens)}, beyond the vocabulary of {self.vocabulary}")
        wrong = self.case.plan.contradiction(self.case, self.vocabulary) if self.case.plan is not None else None
        if wrong is not None:
            raise CaseRefused(wrong)

    @property
    def encoder_decoder(self) -> bool:
        """Whether the prompt goes to an encoder."""
        return bool(self.config.is_encoder_decoder)

    def of(self, case: Case) -> Scenario:
        """The scenario of a case that differs in its settings only: what is built already is shared."""
        other = copy.copy(self)
        other.case = case
        other._check_tokens()
        return other

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The token ids of each row without padding, with placeholders where there are images."""
        return self.media.rows if self.media else self.case.prompt.rows

    def model(self, dtype: str | None = None, noise: tuple[int, float] | None = None, untied: bool = False) -> Any:
        """A new model in evaluation mode. `noise` (seed, relative size) perturbs its weights; `untied` gives each
        name of a tied weight a copy of its own.

        A copy of one that never runs: as good as building it again, and several times as fast.
        """
        with MODEL_CODE.running():
            model = self._copier(dtype or self.case.model.dtype).copy()
            if noise:
                perturb(model, *noise)
            if untied:
                tying.untie(model)
        return model

    @property
    def pristine(self) -> Any:
        """The model that never runs: for questions that need no forward."""
        return self._made(self.case.model.dtype)

    def _made(self, dtype: str) -> Any:
        if dtype not in self._built:
            model = self._bare_model().to(DTYPES[dtype])
            fill(model, self.case.model.weight_seed, self.case.model.init_scale)
            self._built[dtype] = model
        return self._built[dtype]

    def _copier(self, dtype: str) -> Copier:
        if dtype not in self._copiers:
            self._copiers[dtype] = Copier(self._made(dtype))
        return self._copiers[dtype]

    def _bare_model(self) -> Any:
        with torch.random.fork_rng(devices=[]):
            seed_everything(0)
            try:
                model = self._tied_model() if self.case.model.tied else self._plain_model()
            except CaseRefused:
                raise
            except Exception as error:
                raise NotBuildable(f"{self.architecture.name}: {type(error).__name__}: {error}") from error
        model.generation_config = self.plain_generation_config()
        return model.eval()

    def _plain_model(self) -> Any:
        return catalogue.auto_class(self.architecture.task).from_config(copy.deepcopy(self.config))

    def _tied_model(self) -> Any:
        """A model whose class ties the case's pairs of weights, beside what its parts tie of themselves."""
        _ = self.tied_groups  # first, so that a wrong pattern is refused with a reason
        with time_limit():
            return self.tied_class(self.tying_config())

    @cached_property
    def tied_class(self) -> Any:
        """The class of the release, with the case's pairs in place of what it ties itself."""
        return tying.subclass(upstream.model_class(self.architecture.class_name), self.case.model.tied)

    def tying_config(self) -> Any:
        """A config with which the release ties weights at all."""
        config = copy.deepcopy(upstream.config_for(self.tied_class, self.config))
        if reason := upstream.why_not_tied(config):
            raise NotBuildable(f"the config refuses tied weights: {reason}"[:200])
        config.tie_word_embeddings = True
        return config

    @cached_property
    def tied_groups(self) -> tuple[tying.Group, ...]:
        """The groups that the case's pairs mean. Raises CaseRefused for patterns that mean none."""
        if not self.case.model.tied:
            return ()
        return tying.resolve(self.case.model.tied, weight_shapes(self.architecture.name, self.config))

    def refuse_large_model(self) -> None:
        """Raise CaseRefused when the model would not be tiny; nothing of its size is allocated to find out."""
        refuse_large(self.architecture.name, self.config)

    def plain_generation_config(self) -> Any:
        """The config that the model carries: nothing in it may influence a run by accident."""
        return plain_generation_config(self.case.settings, self.decoder_start if self.encoder_decoder else None)

    def generation_config(self, width: int | None = None, **changes: Any) -> Any:
        """What the caller passes to `generate`; every field that the model could fill in is explicit.

        `width` is the number of tokens that the returned sequences begin with (None: those of all rows together).
        """
        from transformers import GenerationConfig

        width = self.width() if width is None else width
        positions = getattr(self.config, "max_position_embeddings", None)
        fields = callers_fields(self.case.settings, width, self.vocabulary, positions)
        if self.media and self.media.token is not None:
            fields["suppress_tokens"] = [self.media.token]  # a placeholder that no image stands for is an error
        if "max_new_tokens" in changes:
            fields.pop("max_length", None)
        return GenerationConfig(**{**fields, **changes})

    def call(self, rows: Sequence[int] | None = None, **changes: Any) -> Call:
        """The case's own call of `generate` on the named rows (all: None), with these changes to its config."""
        inputs = self.inputs(rows)
        start = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
        config = self.generation_config(start, **changes)
        return Call(inputs, config, criteria=self.criteria(rows))

    def criteria(self, rows: Sequence[int] | None = None) -> tuple[Any, ...]:
        """The stopping criteria that the caller adds for these rows (all of them: None), made anew."""
        chosen = range(len(self.case.prompt.rows)) if rows is None else rows
        return own_criteria(self.case.settings, chosen, self.width(rows), self.vocabulary)

    def width(self, rows: Sequence[int] | None = None) -> int:
        """How many tokens the sequences returned for these rows begin with."""
        chosen = self.rows if rows is None else [self.rows[row] for row in rows]
        return 1 if self.encoder_decoder else max(map(len, chosen))

    def ending(self, row: int, tokens: Sequence[int]) -> Ending | None:
        """Where and why this row of the prompt has to end, given its new tokens."""
        before = [self.decoder_start] if self.encoder_decoder else self.rows[row]
        return ending_of(self.case.settings, row, before, tokens)

    def inputs(self, rows: Sequence[int] | None = None) -> dict[str, torch.Tensor]:
        """What `generate` is called with for the named rows (all of them: None), dtype long.

        `input_ids` and `attention_mask`, shape (rows, longest row): padded on the left, for an encoder on the
        right, where its tokenizers pad. Masks are always given, since a missing one is guessed from pad ids.
        An encoder-decoder model also gets its decoder's first token and its mask, shape (rows, 1). With images, what
        `Media.inputs` gives.
        """
        numbers = list(range(len(self.rows)) if rows is None else rows)
        chosen = [self.rows[number] for number in numbers]
        width = max(len(row) for row in chosen)
        seen = self._media_inputs(numbers, width) if self.media else {}
        text = text_inputs(chosen, self.case.settings.filler, right=self.encoder_decoder)
        start = decoder_inputs(self.model_class, len(chosen), self.decoder_start) if self.encoder_decoder else {}
        return {**text, **start, **seen}

    def _media_inputs(self, rows: Sequence[int], width: int) -> dict[str, torch.Tensor]:
        """What `generate` takes for the images of these rows; older releases count some types by placeholders alone."""
        assert self.media is not None
        seen = self.media.inputs(rows, width, DTYPES[self.case.model.dtype])
        types, taken = self.media.recipe.types, upstream.forward_parameters(self.model_class)
        return {name: tensor for name, tensor in seen.items() if name != types or name in taken}

    @property
    def decoder_start(self) -> int:
        """The token that an encoder-decoder model's decoder starts with."""
        start = getattr(self.config, "decoder_start_token_id", None)
        return 1 if start is None else int(start)

    @cached_property
    def model_class(self) -> type:
        """The class of the models."""
        return type(self.pristine)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of parameter names, shapes and the set config attributes as the release understood them."""
        return fingerprint_of(self.pristine, self.config, self.case.model.config)
