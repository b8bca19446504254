"""One placement case made real: the unplaced model, the placed one, and a call on each, all made once.

Simulated devices are present only while something of the case runs.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from conformance import interruption, upstream
from conformance.building.copying import Copier
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.errors import NotOffered
from conformance.limits import time_limit
from conformance.observe import Probe
from conformance.outcome import Crash, Outcome
from conformance.placing import calls, checkpoints, devices, models
from conformance.placing.comparing import configs_left, configs_of
from conformance.placing.given import a_model, a_recipe
from conformance.placing.leaving import Left, State, contents
from conformance.placing.loaded import (
    change_one_weight,
    in_dtypes,
    other_dtypes,
    running_weights,
    unsaved_buffers,
)
from conformance.placing.loaders import load_installed
from conformance.placing.on_planned_map import wrong_plan
from conformance.placing.placed import Placed, Planned, SavedOver
from conformance.placing.recipe import Recipe, loaded_dtype, recipe_of
from conformance.placing.refusing import refused_clearly
from conformance.placing.whereabouts import whereabouts
from conformance.plans.placement import PlacementPlan
from conformance.reference.tying import named_tensors
from conformance.runs import Runs
from conformance.simulation.ledger import LEDGER
from conformance.simulation.meta_reads import MetaReadsProbe
from conformance.simulation.tensors import NAME


class World:
    """What the checks of the family look at. Raises NotBuildable where the type has no such model."""

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
            return self._described(self.copied())
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
        return self._described(model)

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
                placed = self._described(self._place(recipe))
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

    def _described(self, model: Any) -> Placed:
        """Beside the model, its config as it was placed; its generation config becomes the case's plain one."""
        config = configs_of(model)
        upstream.one_kind_of_experts(model)
        if not self.plan.own_generate:
            model.generation_config = self.runs.scenario.plain_generation_config()
        saved = model.state_dict()  # constants that are not saved are no weights, and may be anywhere
        held = {str(tensor.device) for name, tensor in named_tensors(model).items() if name in saved}
        places = tuple(sorted("offloaded" if place == "meta" else place for place in held))
        return Placed(model, holding=places, config=config, where=whereabouts(model), buffers=unsaved_buffers(model))

    def call(self, placed: Placed) -> tuple[Any, Call]:
        """Who decodes (None: the case's subject), and the case's call on a model."""
        return calls.make(self.runs, self.plan, self.base, placed)

    def outcome(
        self, placed: Placed, *, change: Callable[[Call], Call] = lambda call: call, probes: Sequence[Probe] = ()
    ) -> Outcome:
        """The case's call, changed, on a model, its tensors brought to the CPU; `extra` tells of transfers, too."""
        with self.present():
            subject, call = self.call(placed)
            outcome = self.runs.run(change(call), model=placed.model, subject=subject, probes=probes)
            outcome.extra["transfers"] = sum(LEDGER.transfers.values()) if self.plan.simulated else 0
            outcome.extra["drew on"] = self._drew_on(outcome)
            outcome.sequences = None if outcome.sequences is None else outcome.sequences.cpu()
            outcome.logits = tuple(step.cpu() for step in outcome.logits)
            outcome.scores = tuple(step.cpu() for step in outcome.scores)
        return outcome

    def _drew_on(self, outcome: Outcome) -> set[str]:
        """The devices whose generators a call has drawn from."""
        found = {f"{NAME}:{device}" for device in LEDGER.draws} if self.plan.simulated else set()
        untouched = devices.rng_seeded(self.runs.case.settings.sample_seed)
        return found | (set() if outcome.rng_after == untouched else {"cpu"})

    @cached_property
    def unplaced_outcome(self) -> Outcome:
        """The call on the unplaced model; `extra` tells what its configs are afterwards."""
        outcome = self.outcome(self.unplaced)
        outcome.extra["configs"] = configs_left(self.unplaced.model)
        return outcome

    @cached_property
    def alone_outcome(self) -> Outcome:
        """The call on the undispatched model, wholly on one device of the kind that the placed one runs on.

        Devices of a kind compute alike; an accelerator takes another way through attention than the CPU, for one.
        """
        kind, found = self.plan.hardware, self.placed.where.values()
        if kind not in {device.type for where in found for device in (where.held, where.brought) if device}:
            return self.unplaced_outcome
        with self.present():
            alone = Placed(copy.deepcopy(self.unplaced.model).to(f"{kind}:0"))
        return self.outcome(alone)

    @cached_property
    def placed_outcome(self) -> Outcome:
        """The call on the placed model, what reads `meta` watched; `extra` tells of configs and places afterwards."""
        outcome = self.outcome(self.placed, probes=[MetaReadsProbe()])
        with self.present():
            outcome.extra |= {"configs": configs_left(self.placed.model), "where": whereabouts(self.placed.model)}
        self.runs.events |= {"a transfer"} if outcome.extra["transfers"] else set()
        brought = "offloaded" in self.placed.holding and outcome.crash is None
        self.runs.events |= {"brought back"} if brought else set()
        return outcome

    @cached_property
    def audited(self) -> Crash | None:
        """What an audit of the subject's raises on a model that was placed and has not decoded, if it does.

        It is a model of its own: what an audit or a decoding leaves in one, the other is not to meet. Raises NotOffered
        where the same cannot be placed again, of which saving and reloading tells.
        """
        audit: Any = self.runs.subject.audit  # type: ignore[attr-defined]
        with self.present():
            try:
                model = self._place(self.asked("offloaded for an audit"))
            except BaseException as error:
                interruption.let_through(error)
                raise NotOffered("the model cannot be placed a second time") from error
            try:
                audit(model)
            except BaseException as error:  # noqa: BLE001 - whatever an audit raises accuses the model
                return self._crash(error)
        return None

    @cached_property
    def reloaded(self) -> dict[str, Placed]:
        """A placed model that is saved at once, and after it has decoded: when → what loads without a placement.

        It is a model of its own: hooks leave traces of a forward, the more so of one that raised, and what is saved
        would depend on what else was judged. So what it saves after a decoding that raised says nothing.
        """
        try:
            with self.present():
                placed = self._described(self._place(self.asked("offloaded again")))
        except BaseException as error:  # noqa: BLE001 - the same was placed before, so this is an outcome, too
            return {"at once": Placed(crash=self._crash(error))}
        found = {"at once": self._saved_and_loaded(placed, "again", shards=self.plan.shards)}
        if found["at once"].crash is None and self.outcome(placed).crash is None:
            found["after decoding"] = self._saved_and_loaded(placed, "again after decoding", shards=self.plan.shards)
        return found

    @cached_property
    def saved_over(self) -> SavedOver:
        """A placed model that has decoded, saved where it was loaded from after one of its weights was changed."""
        own = self.folder / "saved over"
        assert isinstance(self.checkpoint, Path)
        shutil.copytree(self.checkpoint, own)
        try:
            with self.present():
                placed = self._described(self._place(replace(self.asked("offloaded over"), checkpoint=own)))
                change_one_weight(placed.model)
                weights = running_weights(placed.model)
        except BaseException as error:  # noqa: BLE001 - the same was placed before, so this is an outcome, too
            return SavedOver({}, Placed(crash=self._crash(error)), Outcome(), Outcome())
        before = self.outcome(placed)
        again = self._saved_and_loaded(placed, own.name, shards=self.plan.saved_over == "shards")
        return SavedOver(weights, again, before, self.outcome(placed))

    def _saved_and_loaded(self, placed: Placed, name: str, *, shards: bool) -> Placed:
        folder = self.folder / name
        try:
            with self.present(), time_limit(), MODEL_CODE.running():
                checkpoints.save(placed.model, folder, shards=shards)
            with time_limit(), MODEL_CODE.running():
                model = type(self.base).from_pretrained(folder, dtype=self.dtype)
        except BaseException as error:  # noqa: BLE001 - saving and loading are what is tested
            return Placed(crash=self._crash(error))
        return Placed(model)
