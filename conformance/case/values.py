"""What the values of a case are made of: frozen records, and types with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from typing_extensions import Self

MAX_CONFIG_NUMBER = 4096
MAX_LIST = 64


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
StopString = Annotated[str, Field(min_length=1, max_length=16, pattern="^[a-z]+$")]  # as texts of tokens are
Row = Annotated[tuple[TokenId, ...], Field(min_length=1, max_length=64, strict=False)]
