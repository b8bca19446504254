"""One placement case made real: its models, and what is run on them, saved of them and loaded again, all once."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from conformance import interruption
from conformance.call import Call
from conformance.clock import MODEL_CODE
from conformance.errors import NotOffered
from conformance.limits import time_limit
from conformance.observe import Probe
from conformance.outcome import Crash, Outcome
from conformance.placing import calls, checkpoints, devices
from conformance.placing.comparing import configs_left
from conformance.placing.loaded import Weights, change_one_weight, in_dtypes, running_weights
from conformance.placing.made import Made
from conformance.placing.placed import Placed, SavedOver
from conformance.placing.whereabouts import whereabouts
from conformance.simulation.ledger import LEDGER
from conformance.simulation.meta_reads import MetaReadsProbe
from conformance.simulation.tensors import NAME


class World(Made):
    """What the checks of the family look at. Raises NotBuildable where the type has no such model."""

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
                placed = self.described(self._place(self.asked("offloaded again")))
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
                placed = self.described(self._place(replace(self.asked("offloaded over"), checkpoint=own)))
                change_one_weight(placed.model)
                weights = running_weights(placed.model)
        except BaseException as error:  # noqa: BLE001 - the same was placed before, so this is an outcome, too
            return SavedOver({}, Placed(crash=self._crash(error)), Outcome(), Outcome())
        before = self.outcome(placed)
        again = self._saved_and_loaded(placed, own.name, shards=self.plan.saved_over == "shards")
        return SavedOver(weights, again, before, self.outcome(placed))

    @cached_property
    def beside_another(self) -> tuple[Weights, Weights, Weights] | Crash:
        """A placed model's weights, before and after another of its class was placed with the same folder for the disk,
        and that one's; or why that cannot be saved or placed: there may be no room for both.
        """
        asked, saved = self.asked("offloaded beside another"), self.folder / "another"
        other = in_dtypes(self.copied(), self.dtypes)
        with torch.no_grad():
            for weight in other.parameters():
                weight.mul_(0.5)
        try:
            with self.present():
                model = self._place(asked)
                before = running_weights(model)
                checkpoints.save_as(self.plan, other, saved)
                beside = self._place(replace(asked, model=other, checkpoint=saved))
                return before, running_weights(model), running_weights(beside)
        except BaseException as error:  # noqa: BLE001 - the same was placed before: of that another check tells
            return self._crash(error)

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
