"""A case: one random situation as plain values.

Models are built *from* a case and never stored in it, so the same JSON shrinks, replays, reports and
reproduces. Every field is bounded, so that a case from a stranger cannot exhaust a machine, and every
default is the simplest value, so that whatever differs from it is what a failure needs.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)
from typing_extensions import Self

from conformance.errors import CaseRefused, unknown

SCHEMA_VERSION: Literal[1] = 1
LARGEST_CASE_FILE = 256 * 1024  # bytes
MAX_CONFIG_NUMBER = 4096
MAX_LIST = 64
DEFAULT_FAMILY = "cached"


class FrozenDict(dict[str, Any]):
    """A mapping that cannot be changed and can be hashed, copied and pickled."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the values of a case cannot be changed; make another case with `replace`")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items(), key=lambda item: item[0])))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


class Record(BaseModel):
    """A frozen record that refuses fields it does not know and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def replace(self, **parts: Any) -> Self:
        """A validated copy with other parts (`model_copy` would not validate)."""
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**kept, **parts})


def _bounded(value: Any, where: str, depth: int = 0) -> Any:
    """The same value with lists as tuples and mappings read-only; ValueError names what is out of bounds."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        largest = 1e7 if isinstance(value, float) else MAX_CONFIG_NUMBER
        if not abs(value) <= largest:  # so written that NaN is refused too
            raise ValueError(f"{where} is {value}, larger than {largest:g}")
        return value
    if isinstance(value, str):
        if len(value) > 64:
            raise ValueError(f"{where} is a text of {len(value)} characters, longer than 64")
        return value
    if depth < 3 and isinstance(value, list | tuple) and len(value) <= MAX_LIST:
        return tuple(_bounded(item, where, depth + 1) for item in value)
    if depth < 3 and isinstance(value, Mapping) and len(value) <= 256:
        return FrozenDict({str(k): _bounded(v, f"{where}.{k}", depth + 1) for k, v in value.items()})
    raise ValueError(f"{where} is nested too deeply, too long, or of type {type(value).__name__}")


def plain(value: Any) -> Any:
    """`value` as JSON has it: read-only mappings and tuples become dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def _bounded_mapping(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of dotted config attribute: value")
    return _bounded(value, "config")


ConfigSettings = Annotated[Any, BeforeValidator(_bounded_mapping), PlainSerializer(plain)]
TokenId = Annotated[int, Field(ge=0, lt=MAX_CONFIG_NUMBER)]
RowAndStep = Annotated[
    tuple[Annotated[int, Field(ge=0, lt=8)], Annotated[int, Field(ge=0, lt=64)]], Field(strict=False)
]
Pattern = Annotated[str, Field(min_length=1, max_length=256)]
StopString = Annotated[str, Field(min_length=1, max_length=16)]
Row = Annotated[tuple[TokenId, ...], Field(min_length=1, max_length=64, strict=False)]


class ModelSpec(Record):
    """What the model is: a type, the attributes of its tiny config, and how its weights are drawn.

    `tied` holds pairs (target, source) of names or patterns of weights that are one; see `conformance.tying`.
    """

    architecture: Annotated[str, Field(max_length=64)] = "llama"
    config: ConfigSettings = FrozenDict()
    weight_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    init_scale: Annotated[float, Field(ge=0.01, le=2.0)] = 0.3
    dtype: Literal["float32", "float64"] = "float32"
    attention: Literal["eager", "sdpa"] = "eager"
    tied: Annotated[
        tuple[Annotated[tuple[Pattern, Pattern], Field(strict=False)], ...], Field(max_length=8, strict=False)
    ] = ()


class Prompt(Record):
    """Token ids of each row without padding; a shorter row is padded on the left when batched.

    For an encoder-decoder model these are the encoder's inputs. `images` are put into each row after its first
    tokens, one after another, as `conformance.media` says; for a type that hears instead of sees, clips of sound.
    """

    rows: Annotated[tuple[Row, ...], Field(min_length=1, max_length=8, strict=False)] = ((1,),)
    images: Annotated[int, Field(ge=0, le=2)] = 0
    image_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    @property
    def padded(self) -> bool:
        """Whether batching these rows needs padding."""
        return len({len(row) for row in self.rows}) > 1


class Settings(Record):
    """How to generate: what reaches `generate` as its `GenerationConfig`.

    eos_at: end tokens told by place, as (row, step): the token that this row's own decoding gives at that step. Where
    `eos` is empty they are looked up when the case is judged (`runs.resolved`), and the case goes on with both.
    eos_unused: how many end tokens that no row says are added to them. pad: None is not given at all.
    limit: how `generate` is told `max_new_tokens`; `neither` holds where that is what it takes anyway.
    min_new_tokens: told as `min_length` if `min_as_length`. stop: strings in the texts of tokens (`endings.text_of`);
    stop_at tells them by place as eos_at does. row_stops: a criterion of the caller's ends this row at this step.
    max_time: a time limit that is never reached. against_eos: what forbids the end tokens. returned: sequences for
    each row where it is sampled.
    """

    max_new_tokens: Annotated[int, Field(ge=1, le=64)] = 1
    limit: Literal["max_new_tokens", "max_length", "both", "neither"] = "max_new_tokens"
    min_new_tokens: Annotated[int, Field(ge=0, le=64)] = 0
    min_as_length: bool = False
    eos: Annotated[tuple[TokenId, ...], Field(max_length=16, strict=False)] = ()
    eos_at: Annotated[tuple[RowAndStep, ...], Field(max_length=8, strict=False)] = ()
    eos_unused: Annotated[int, Field(ge=0, le=3)] = 0
    forced_eos: bool = False
    against_eos: Literal["nothing", "suppress", "begin suppress", "bad words"] = "nothing"
    pad: TokenId | None = 0
    stop: Annotated[tuple[StopString, ...], Field(max_length=4, strict=False)] = ()
    stop_at: Annotated[tuple[RowAndStep, ...], Field(max_length=4, strict=False)] = ()
    row_stops: Annotated[tuple[RowAndStep, ...], Field(max_length=8, strict=False)] = ()
    max_time: bool = False
    returned: Annotated[int, Field(ge=1, le=3)] = 1
    do_sample: bool = False
    sample_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    repetition_penalty: Annotated[float, Field(gt=0.1, lt=10.0)] = 1.0
    output_attentions: bool = False
    output_hidden_states: bool = False

    @property
    def filler(self) -> int:
        """The token that fills up a finished row: where none is given, `generate` takes the first end token."""
        return self.pad if self.pad is not None else next(iter(self.eos), 0)

    @property
    def copies(self) -> int:
        """How many sequences each row of the prompt becomes; more than one only where they are sampled."""
        return self.returned if self.do_sample else 1


class Plan(Record):
    """What a check family adds to a case (a draft plan, a crop program); one subclass a family."""

    family: ClassVar[str]
    known: ClassVar[dict[str, type[Plan]]] = {}

    def tokens(self) -> tuple[int, ...]:
        """The token ids in the plan, all of which must be in the model's vocabulary."""
        return ()

    def within(self, vocabulary: int) -> Self:  # noqa: ARG002
        """The same plan with its tokens wrapped around to fit another vocabulary."""
        return self

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """The paths that the plan makes a case take, by name; `config` is the model's."""
        return set()

    def traits(self) -> tuple[str, ...]:
        """What a failure on a case with this plan may need, by name: the fields that are not at their default."""
        plainest = type(self)()
        return tuple(n for n in type(self).model_fields if getattr(self, n) != getattr(plainest, n))

    def plainer(self) -> Iterator[Self]:
        """Plans with one part plainer than here: each field back at its default."""
        plainest = type(self)()
        for name in type(self).model_fields:
            if getattr(self, name) != getattr(plainest, name):
                yield self.replace(**{name: getattr(plainest, name)})

    def constants(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """What the bodies of the family's reproducers take from the plan: name → Python source of its value."""
        return {}

    def forms(self, scenario: Any) -> dict[str, str]:  # noqa: ARG002
        """Modules of `reporting/scripts` that stand in the place of those which the family's bodies name."""
        return {}

    def stands_alone(self) -> bool:
        """Whether a script without this project can show a failure of a case with this plan."""
        return True

    def __init_subclass__(cls, family: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if family in Plan.known:
            raise TypeError(f"the family {family!r} has a plan already: {Plan.known[family].__name__}")
        cls.family = family
        Plan.known[family] = cls


def known_plans() -> dict[str, type[Plan]]:
    """The plan class of every family."""
    importlib.import_module("conformance.plans")  # each of its modules registers one
    return Plan.known


class Case(Record):
    """One situation. `plan` belongs to `family`; `fingerprint` is of the model that was built from it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    family: Annotated[str, Field(max_length=64)] = DEFAULT_FAMILY
    model: ModelSpec = ModelSpec()
    prompt: Prompt = Prompt()
    settings: Settings = Settings()
    plan: Any = None
    fingerprint: Annotated[str, Field(max_length=64)] | None = None

    @model_validator(mode="after")
    def _plan_of_the_family(self) -> Case:
        kind = known_plans().get(self.family)
        if kind is None and self.plan is not None:
            raise ValueError(f"plan: the family {self.family!r} takes none")
        if kind is not None and not isinstance(self.plan, kind):
            object.__setattr__(self, "plan", kind.model_validate({} if self.plan is None else self.plan))
        return self

    def to_dict(self) -> dict[str, Any]:
        """The case as JSON holds it."""
        document = self.model_dump(mode="json", exclude={"plan"})
        if self.plan is not None:
            document["plan"] = self.plan.model_dump(mode="json")
        return document

    def to_json(self) -> str:
        """One line of JSON with sorted keys: equal cases give equal text."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def __repr__(self) -> str:
        rows = "+".join(str(len(row)) for row in self.prompt.rows)
        return (
            f"Case({self.family}: {self.model.architecture} {self.model.dtype} {self.model.attention} "
            f"seed={self.model.weight_seed} scale={self.model.init_scale:g}, prompt {rows}, "
            f"{self.settings.max_new_tokens} new)"
        )

    __str__ = __repr__


def parse_case(text: str, source: str = "case") -> Case:
    """A case from JSON text. Raises CaseRefused with one line naming the field that is wrong."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of too many digits
        raise CaseRefused(f"{source} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise CaseRefused(f"{source} holds a {type(document).__name__}, not a case (a JSON object)")
    return case_from_dict(document, source)


def case_from_dict(document: dict[str, Any], source: str = "case") -> Case:
    """A case from a parsed document; see `parse_case`."""
    version = document.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise CaseRefused(
            f"{source}: schema_version is {version}, written by a newer release; this one reads {SCHEMA_VERSION}"
        )
    family = document.get("family", DEFAULT_FAMILY)
    if isinstance(family, str) and family not in known_plans():
        raise CaseRefused(f"{source}: {unknown('family', family, known_plans())}")
    try:
        return Case.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "case"
        raise CaseRefused(f"{source}: {field}: {first['msg']}") from None


def read_case(path: Path) -> Case:
    """The case in a file. Raises CaseRefused when it cannot be read, is too long or is not valid."""
    try:
        if path.stat().st_size > LARGEST_CASE_FILE:
            raise CaseRefused(f"{path} is larger than {LARGEST_CASE_FILE} bytes; a case is a few kilobytes")
        return parse_case(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise CaseRefused(f"cannot read {path}: {error}") from None
