"""The plan of the `placement` family: which model, where its parts go, by which loader, and how it decodes then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from conformance.case import Case, Plan
from conformance.plans import placement_fitting, placement_told
from conformance.plans.own_generate import OwnGenerateClass
from conformance.plans.placement_told import OFFLOADERS

Place = Literal["cpu", "disk", "sim:0", "sim:1", "sim:2", "sim:3"]
Model = Literal["own", "tied embeddings", "tied blocks", "tied parts", "diffusion gemma"]
Loader = Literal["from_pretrained", "dispatch_model", "cpu_offload", "disk_offload"]
Map = Literal["whole", "parts", "auto", "balanced", "balanced_low_0", "sequential"]
Mode = Literal[
    "plain", "static", "lookup", "beams", "embeddings", "no inputs", "assisted", "chunked",
    "offloaded cache", "late stop", "crop", "special tokens",
]  # fmt: skip
Hardware = Literal["sim", "cuda", "mps", "xpu"]
Stored = Literal["once", "under targets", "every name", "bin"]
Shards = Literal["", "whole", "shards"]
Limits = Literal["bytes", "KB", "KiB"]
Folder = Literal["its own", "none", "shared"]
Mistake = Literal["", "left out", "misspelt", "no such device"]
Damage = Literal["weights", "buffer", "untied", "moved", "unmapped", "no copy"]
MECHANISMS = ("late stop", "crop", "special tokens")
DIFFUSION_GEMMA = "DiffusionGemmaForBlockDiffusion"
PLANNED = ("auto", "balanced", "balanced_low_0", "sequential")


class PlacementPlan(Plan, family="placement"):
    """A placement as plain values.

    model: the case's own, one of its subclasses with weights tied by patterns, or DiffusionGemma; by_itself: the class
    of a model with a `generate` of its own that takes its place; places: where the parts go, in turn (`whole` takes the
    first, a planned map none); split_tied: a map of parts may put the members of a tied group in different places;
    budget: per cent of the model's size, in the dtype that it is loaded in, that each accelerator, then the CPU, may
    hold where the loader plans; limits: that is told in bytes, or in words as "40KB"; accelerators: how many are
    present, of which hardware: simulated, or real ones, for which `sim:N` in a place means the Nth of them; ids: the
    caller puts the token ids where the embeddings run, or on `model.device` as the documentation says; mode: how it
    decodes, or the mechanism that is looked at beside plain decoding; stranded: which part is damaged before an audit,
    by its number; damage: how: its `weights`, or a `buffer`, are left on `meta` with nothing that brings them, a tied
    weight is `untied`, a weight is `moved` away from where its module runs, a module is `unmapped`, or a hook that
    brings a weight has `no copy` of it.

    Of a loader that reads a checkpoint: stored: a tied weight is in it under its source's name, under the names that
    are tied to that, under all of them, or all is in a file of torch's own format; shards: it is saved in several
    files, and so is what is saved again; loaded_as: the dtype that the loader is asked for (none: the model's);
    spelled: how a map names devices: by words, or as `torch.device`; saved_over: the placed model is saved where it
    was loaded from, in one file or in several; folder: what goes to the disk has a folder of its own, or none, or one
    that it shares with another model that is placed later.

    mistake: the same map with one mistake is to be refused: an entry left out or misspelt, or one without a device.
    """

    model: Model = "own"
    by_itself: OwnGenerateClass = ""
    loader: Loader = "from_pretrained"
    map: Map = "whole"
    places: Annotated[tuple[Place, ...], Field(min_length=1, max_length=8, strict=False)] = ("cpu",)
    split_tied: bool = False
    budget: Annotated[tuple[Annotated[int, Field(ge=1, le=500)], ...], Field(max_length=5, strict=False)] = ()
    limits: Limits = "bytes"
    accelerators: Annotated[int, Field(ge=0, le=4)] = 0
    hardware: Hardware = "sim"
    offload_buffers: bool = False
    ids: Literal["embeddings", "model.device"] = "embeddings"
    mode: Mode = "plain"
    stranded: Annotated[int, Field(ge=0, le=63)] | None = None
    damage: Damage = "weights"
    stored: Stored = "once"
    shards: bool = False
    loaded_as: Literal["", "float16", "bfloat16"] = ""
    spelled: Literal["words", "devices"] = "words"
    saved_over: Shards = ""
    folder: Folder = "its own"
    mistake: Mistake = ""

    @model_validator(mode="after")
    def _some_loader_takes_it(self) -> Self:
        """A loader is asked for what it can be told: the others than `from_pretrained` plan no map."""
        if self.planned and self.loader != "from_pretrained":
            takes = "whole" if self.loader in OFFLOADERS else "whole or parts"
            raise ValueError(f"{self.loader} plans no map, and map is {self.map}; valid for it: {takes}")
        if self.loader in OFFLOADERS and self.map != "whole":
            raise ValueError(f"{self.loader} takes the whole model, and map is {self.map}; valid for it: whole")
        if self.loader in OFFLOADERS and self.places[0] == "disk":
            raise ValueError(
                f"{self.loader} runs the model on the first of places, which is disk; valid for it: cpu or sim:N"
            )
        return self

    def contradiction(self, case: Case, vocabulary: int) -> str | None:  # noqa: ARG002
        """The first field that is of no effect beside the others."""
        return next((line for _, line in placement_fitting.idle(self)), None)

    def fitting(self, rows: int) -> Self:  # noqa: ARG002
        """The same plan without the fields that are of no effect beside the others."""
        return placement_fitting.fitted(self)

    @property
    def own_generate(self) -> bool:
        """Whether the model decodes by a `generate` of its own."""
        return bool(self.by_itself) or self.model == "diffusion gemma"

    @property
    def model_class(self) -> str:
        """The class of a model that decodes by itself."""
        return self.by_itself or (DIFFUSION_GEMMA if self.model == "diffusion gemma" else "")

    def on_model_of(self, other: Plan | None) -> Self:
        """The same plan with the class that another names; ties of the case's own type stay."""
        if isinstance(other, PlacementPlan) and other.own_generate:
            return placement_fitting.fitted(self.replace(model=other.model, by_itself=other.by_itself))
        return self.replace(model="own" if self.model == "diffusion gemma" else self.model, by_itself="")

    @property
    def planned(self) -> bool:
        """Whether the loader makes the map."""
        return self.map in PLANNED

    @property
    def used(self) -> tuple[Place, ...]:
        """The places that the recipe puts anything in: none where the loader plans, the first for a whole model."""
        if self.planned:
            return ()
        return self.places[:1] if self.map == "whole" else self.places

    @property
    def accelerated(self) -> bool:
        """Whether the placement needs accelerators."""
        return self.accelerators > 0

    @property
    def simulated(self) -> bool:
        """Whether the placement needs simulated accelerators."""
        return self.accelerated and self.hardware == "sim"

    @property
    def offloads(self) -> bool:
        """Whether the recipe itself keeps weights elsewhere than where they run."""
        chosen = {*self.used}
        kept = {"disk", "cpu"} if chosen - {"disk", "cpu"} else {"disk"}  # it runs on an accelerator, if any
        return self.loader in OFFLOADERS or bool(kept & chosen)

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """What the recipe asks for."""
        return placement_told.events_of(self)

    @property
    def runs_out(self) -> bool:
        """Whether a loader that plans finds less memory where the model runs than it takes, and offloads the rest."""
        return self.planned and sum((self.budget or (100,))[: self.accelerators or 1]) < 100

    def traits(self) -> tuple[str, ...]:
        """What a failure needs: the recipe without the numbers and the names of places."""
        return placement_told.traits_of(self)

    @property
    def alike(self) -> Mapping[str, str]:
        """An entry that is misspelt is one that is left out, besides."""
        return {"mistake: misspelt": "mistake: left out"}

    def is_circumstance(self, need: str) -> bool:
        """Where parts are, and in what form they were stored."""
        return placement_told.is_circumstance(need)

    def plainer(self) -> Iterator[Self]:
        """Each field back at its default, fewer places, the first part stranded."""
        yield from super().plainer()
        if self.planned:
            yield (
                self.replace(map="auto") if self.map != "auto" else self.replace(map="parts", budget=(), limits="bytes")
            )
        if len(self.places) > 1:
            yield self.replace(places=self.places[:1])
            yield self.replace(places=self.places[: len(self.places) // 2 + 1])
        if self.stranded:
            yield self.replace(stranded=0)
        if self.accelerators > 1:
            yield self.replace(accelerators=1, budget=self.budget[:1] + self.budget[-1:])

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """How a checkpoint is written."""
        return {"stored": "stored_bin"} if self.stored == "bin" else {}

    def stands_alone(self) -> bool:
        """Only without what is this project's, or not everybody's: accelerators, recipes of models, renamed weights."""
        return not self.accelerated and not self.by_itself and self.stored in ("once", "bin")
