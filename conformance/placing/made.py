"""The models of a placement case, made once: as a loader gives it without a placement, and as the subject places it.

Simulated devices are present only while something of the case runs.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from conformance import interruption, upstream
from conformance.building.copying import Copier
from conformance.clock import MODEL_CODE
from conformance.errors import NotOffered
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.placing import checkpoints, devices, models
from conformance.placing.comparing import configs_of
from conformance.placing.given import a_model, a_recipe
from conformance.placing.leaving import Left, State, contents
from conformance.placing.loaded import in_dtypes, other_dtypes, unsaved_buffers
from conformance.placing.loaders import load_installed
from conformance.placing.on_planned_map import wrong_plan
from conformance.placing.placed import Placed, Planned
from conformance.placing.recipe import Recipe, loaded_dtype, recipe_of
from conformance.placing.refusing import refused_clearly
from conformance.placing.whereabouts import whereabouts
from conformance.plans.placement import PlacementPlan
from conformance.reference.tying import named_tensors
from conformance.runs import Runs
from conformance.simulation.ledger import LEDGER


class Made:
    """The models of a case. Raises NotBuildable where the type has no such model."""

    def __init__(self, runs: Runs) -> None:
        upstream.no_advice_on_loading()
        self.runs = runs
        self.plan: PlacementPlan = runs.case.plan
        self.folder = Path(tempfile.mkdtemp(prefix="placement-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)  # as long as what is offloaded there
        self.base = models.planned(runs.scenario, self.plan)
        self.copied = Copier(self.base).copy
        self.left = Left()
        self.stored: State = {}

    @contextmanager
    def present(self) -> Iterator[None]:
        """The case's devices are there inside."""
        with devices.present(self.plan):
            yield

    @cached_property
    def checkpoint(self) -> Path | Crash:
        """Where the unplaced model was saved, or why it could not be."""
        folder = self.folder / "saved"
        try:
            with MODEL_CODE.running():
                checkpoints.save_as(self.plan, self.copied(), folder)
        except Exception as error:  # noqa: BLE001 - saving is the release's, too
            return Crash.of(error)
        self.stored = contents(folder)
        return folder

    @cached_property
    def unplaced(self) -> Placed:
        """The model as the same loader gives it without a placement."""
        if self.plan.loader != "from_pretrained":
            return self.described(self.copied())
        if isinstance(self.checkpoint, Crash):
            return Placed(crash=self.checkpoint)
        config = self.base.config
        try:
            with time_limit(), MODEL_CODE.running(), self.left.loading():
                kept = {"attn_implementation": config._attn_implementation, "dtype": self.dtype}
                # A subject may have a loader of its own, which the checks of a placement then take for right.
                load = getattr(self.runs.subject, "load", load_installed)
                model = a_model(load(type(self.base), self.checkpoint, **kept), "load")
        except BaseException as error:  # noqa: BLE001 - told by checkpoint-loads-as-saved
            return Placed(crash=self._crash(error))
        return self.described(model)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the loader is asked for."""
        return loaded_dtype(self.plan, self.base)

    @cached_property
    def dtypes(self) -> dict[str, torch.dtype]:
        """What the loader gives another dtype than the model has here."""
        loaded = self.unplaced.model
        return {} if loaded is None else other_dtypes(self.base, loaded)

    @cached_property
    def weighed(self) -> Any:
        """The unplaced model in the dtypes that the loader gives it: what a map takes, is told on it."""
        return in_dtypes(self.copied(), self.dtypes)

    @cached_property
    def recipe(self) -> Recipe:
        """What the subject is asked to do."""
        return self.asked("offloaded")

    def asked(self, folder: str) -> Recipe:
        """The same for another copy of the model, with a folder of its own for what goes to the disk."""
        checkpoint = self.checkpoint if isinstance(self.checkpoint, Path) else self.folder
        offload = self.folder / folder
        offload.mkdir(exist_ok=True)
        recipe = recipe_of(self.plan, self.copied(), checkpoint, offload)
        return replace(recipe, model=in_dtypes(recipe.model, self.dtypes))

    def placed_by(self, recipe: Recipe) -> Any:
        """The model that the subject makes of a recipe, the case's devices there. Raises whatever placing raises."""
        with self.present():
            return self._place(recipe)

    def _place(self, recipe: Recipe) -> Any:
        with time_limit(), torch.no_grad(), MODEL_CODE.running(), self.left.watching(recipe) as handed:
            return a_model(self.runs.subject.place(handed), "place")  # type: ignore[attr-defined]

    def placed_anew(self, folder: str) -> Any:
        """Another model, placed as the first is, that nothing else looks at. Raises whatever placing raises."""
        return self._place(self.asked(folder))

    @cached_property
    def placed(self) -> Placed:
        """The model as the subject placed it."""
        recipe = self.recipe
        with self.present():
            try:
                placed = self.described(self._place(recipe))
            except NotOffered:
                raise
            except BaseException as error:  # noqa: BLE001 - whatever placing raises is its outcome
                placed = Placed(crash=self._crash(error), refused=refused_clearly(error, recipe))
            placed.peaks = dict(LEDGER.peak) if self.plan.simulated else {}
            _ = placed.report  # made while the devices are there
        if placed.refused and self._planned_wrong():
            placed.refused = False
        self.runs.events |= {f"held: {place.split(':')[0]}" for place in placed.holding}
        self.runs.events |= {"held: two places"} if len(placed.holding) > 1 else set()
        return placed

    @cached_property
    def planned(self) -> Planned:
        """What the subject plans by itself, where the case asks for a map."""
        plan = getattr(self.runs.subject, "planned", None)
        if plan is None or not self.plan.planned:
            return Planned()
        asked = self.asked("planned")  # the recipe's own model may be half placed
        try:
            with self.present(), time_limit(), self.left.watching(asked) as handed:
                return Planned(a_recipe(plan(handed), "planned"))
        except NotOffered:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever planning raises is its outcome
            return Planned(crash=self._crash(error), refused=refused_clearly(error, asked))

    def _planned_wrong(self) -> bool:
        """Whether the subject planned a map that is wrong: then nothing that the caller gave is refused."""
        planned = self.planned.recipe
        return planned is not None and wrong_plan(self.asked("planned"), planned) is not None

    def _crash(self, error: BaseException) -> Crash:
        """The crash, its words the same whatever the folder is called. Raises what asks for the end of the run."""
        interruption.let_through(error)
        crash = Crash.of(error)
        return replace(crash, message=crash.message.replace(str(self.folder), "FOLDER"))

    def described(self, model: Any) -> Placed:
        """Beside the model, its config as it was placed; its generation config becomes the case's plain one."""
        config = configs_of(model)
        upstream.one_kind_of_experts(model)
        if not self.plan.own_generate:
            model.generation_config = self.runs.scenario.plain_generation_config()
        saved = model.state_dict()  # constants that are not saved are no weights, and may be anywhere
        held = {str(tensor.device) for name, tensor in named_tensors(model).items() if name in saved}
        places = tuple(sorted("offloaded" if place == "meta" else place for place in held))
        return Placed(model, holding=places, config=config, where=whereabouts(model), buffers=unsaved_buffers(model))
