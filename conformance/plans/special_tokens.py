"""The plan of the `special_tokens` family: the ids, in every form in which a caller may give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, model_validator
from typing_extensions import Self

from conformance.case import MAX_CONFIG_NUMBER, Case, Plan, Record


def _number(value: Any) -> bool | int | float:
    """The value itself: what a union of types says of another one names every type that it tried."""
    if not isinstance(value, bool | int | float):
        raise ValueError(f"must be a number, not a {type(value).__name__}")
    if not -MAX_CONFIG_NUMBER < value < MAX_CONFIG_NUMBER:  # so written that NaN is refused too
        raise ValueError(f"must be a number between {-MAX_CONFIG_NUMBER} and {MAX_CONFIG_NUMBER}, not {value}")
    return value


Number = Annotated[bool | int | float, PlainValidator(_number)]
ROOM = {name: (-(2**bits), 2**bits - 1) for name, bits in {"int64": 63, "int32": 31, "int16": 15, "int8": 7}.items()}
ROOM["uint8"] = (0, 255)


def _held_by(dtype: str, values: Sequence[bool | int | float]) -> bool:
    """Whether a tensor of this dtype has room for these values; one of floats has it for all."""
    least, most = ROOM.get(dtype, (0, 0))
    return dtype == "float32" or all(number == int(number) and least <= number <= most for number in values)


class Id(Record):
    """One special token as a caller gives it.

    `number` and `scalar` (a tensor without a dimension) hold the first of `values`; dtype and device are a tensor's.
    """

    form: Literal["none", "number", "list", "tuple", "scalar", "tensor"] = "none"
    values: Annotated[tuple[Number, ...], Field(max_length=5, strict=False)] = ()
    dtype: Literal["int64", "int32", "int16", "int8", "uint8", "float32"] = "int64"
    device: Literal["cpu", "meta"] = "cpu"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """A tensor holds nothing but what its dtype has room for, and no form nothing at all."""
        if self.form == "none" and self.values:
            raise ValueError(f"values {list(self.values)} have no form: name one, as `list`")
        if self.form in ("scalar", "tensor") and not _held_by(self.dtype, self.values):
            raise ValueError(f"values {list(self.values)} are not all {self.dtype}")
        return self

    @property
    def numbers(self) -> tuple[bool | int | float, ...]:
        """The ids that are given, by value."""
        if self.form == "none":
            return ()
        return self.values[:1] if self.form in ("number", "scalar") else self.values

    @property
    def given(self) -> bool:
        """Whether there is any id."""
        return bool(self.numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that it becomes."""
        return () if self.form in ("number", "scalar") else (len(self.values),)

    @property
    def on_meta(self) -> bool:
        """Whether it is a tensor on `meta`, empty or not."""
        return self.device == "meta" and (self.form == "tensor" or (self.form == "scalar" and self.given))

    @property
    def fractional(self) -> bool:
        """Whether some number is no whole one."""
        return any(number != int(number) for number in self.numbers)

    def value(self) -> Any:
        """What the caller passes."""
        import torch

        if not self.given and self.form in ("none", "number", "scalar"):
            return None
        if self.form in ("list", "tuple"):
            return list(self.values) if self.form == "list" else self.values
        if self.form == "number":
            return self.values[0]
        numbers = self.values[0] if self.form == "scalar" else list(self.values)
        return torch.tensor(numbers, dtype=getattr(torch, self.dtype)).to(self.device)

    def of(self, values: Sequence[int]) -> Id:
        """The same form with other numbers; for none of them, no id."""
        if not values or not self.given:
            return Id()
        chosen = tuple(values)[:5]
        # Decoding with float tokens is nobody's promise.
        kept = self.dtype != "float32" and _held_by(self.dtype, chosen)
        return self.replace(values=chosen, device="cpu", dtype=self.dtype if kept else "int64")

    def single(self, vocabulary: int) -> Id:
        """Its first number brought into the vocabulary, as a number or a tensor without dimension."""
        numbers = [abs(int(number)) % vocabulary for number in self.numbers[:1]]
        form: Any = "scalar" if self.form in ("scalar", "tensor") else "number"
        return self.replace(form=form).of(numbers) if numbers else Id()

    def of_rows(self, rows: int, vocabulary: int) -> Id:
        """The same form with one token for each row, where it has room for several numbers."""
        if self.form not in ("list", "tuple", "tensor") or not self.given:
            return self.single(vocabulary)
        numbers = [abs(int(number)) % vocabulary for number in self.numbers]
        wide = self.dtype if self.dtype in ("int64", "int32") else "int64"  # an embedding takes no others
        return self.replace(dtype=wide).of([numbers[row % len(numbers)] for row in range(rows)])


NEVER = MAX_CONFIG_NUMBER - 1  # an end token that no tiny model says


def plainly(ids: dict[str, Id]) -> dict[str, Id]:
    """The same end and pad tokens as a list of numbers and a number: no end token is one that is never said."""
    eos = [int(number) for number in ids["eos"].numbers] or [NEVER]
    pad = int(ids["pad"].numbers[0]) if ids["pad"].given else 0 if eos == [NEVER] else eos[0]
    return {"eos": Id(form="list", values=tuple(eos)), "pad": Id(form="number", values=(pad,))}


class SpecialTokensPlan(Plan, family="special_tokens"):
    """Four ids, and how they are asked for.

    keywords: `generate` is told the ids by keyword, not by its config; explicit_device: whether the device is named, or
    left to be that of the model; has_mask: whether the preparation is told that there is an attention mask (None: it
    is not told); batch_size: of how many rows it is told; mode: what decodes with the ids; draft: tokens drafted at a
    time; threads: how many use one config together; misplaced: which parameters are on `meta`, by number, none for all
    of them.
    """

    bos: Id = Id()
    eos: Id = Id()
    pad: Id = Id()
    decoder_start: Id = Id()
    keywords: bool = False
    explicit_device: bool = True
    has_mask: bool | None = True
    batch_size: Annotated[int, Field(ge=1, le=8)] | None = 1
    mode: Literal["greedy", "beams", "lookup", "assisted"] = "greedy"
    draft: Annotated[int, Field(ge=1, le=6)] = 2
    threads: Annotated[int, Field(ge=1, le=4)] = 1
    misplaced: Annotated[tuple[Annotated[int, Field(ge=0, le=999)], ...], Field(max_length=3, strict=False)] = (0,)

    @property
    def drafts(self) -> bool:
        """Whether anything is drafted."""
        return self.mode in ("lookup", "assisted")

    @property
    def ids(self) -> dict[str, Id]:
        """The four of them by name."""
        return {"bos": self.bos, "eos": self.eos, "pad": self.pad, "decoder_start": self.decoder_start}

    def spoken(self, eos: Sequence[int], vocabulary: int) -> dict[str, Id]:
        """The ids to decode with: in these forms, with these end tokens where there are some.

        pad is a number or a tensor without dimension, in the vocabulary: nothing else can fill up a row.
        """
        pad = self.pad.single(vocabulary)
        if not self.eos.given:
            return {"eos": self.eos.replace(device="cpu"), "pad": pad}
        return {"eos": self.eos.of(eos or [abs(int(number)) for number in self.eos.numbers]), "pad": pad}

    def starting(self, rows: int, vocabulary: int, encoder_decoder: bool) -> tuple[dict[str, Id], tuple[int, ...]]:
        """The ids that start a decoding, in these forms, and the token that each row starts with; none without ids.

        A prompt that is left out is one bos token. Decoders may start with a token for each row.
        """
        bos = self.bos.single(vocabulary)
        if not encoder_decoder:
            return {"bos": bos}, tuple(int(number) for number in bos.numbers)
        start = self.decoder_start.of_rows(rows, vocabulary)
        tokens = [int(number) for number in (start.numbers or bos.numbers)]
        return {"bos": bos, "decoder_start": start}, tuple(tokens * rows if len(tokens) == 1 else tokens)

    def events(self, case: Case, config: Any) -> set[str]:  # noqa: ARG002
        """Forms, odd values, devices and the way of decoding."""
        found = {f"{name} as {one.form}" for name, one in self.ids.items()} | {f"mode: {self.mode}"}
        return found | self._odd(int(config.get_text_config(decoder=True).vocab_size))

    def traits(self) -> tuple[str, ...]:
        """What may matter to a failure: what is odd about some id, whichever it is, and how it is decoded."""
        kinds = self._odd(MAX_CONFIG_NUMBER) - {"device: the model's", "pad: taken from eos"}
        return tuple(sorted(kinds | ({f"mode: {self.mode}"} if self.mode != "greedy" else set())))

    def _odd(self, vocabulary: int) -> set[str]:
        numbers = [number for one in self.ids.values() for number in one.numbers]
        odd = {
            "ids: on meta": any(one.on_meta for one in self.ids.values()),
            "ids: empty": any(one.form in ("list", "tuple", "tensor") and not one.given for one in self.ids.values()),
            "ids: negative": any(number < 0 for number in numbers),
            "ids: beyond the vocabulary": any(number >= vocabulary for number in numbers),
            "ids: fraction": any(one.fractional for one in self.ids.values()),
            "ids: bool": any(isinstance(number, bool) for number in numbers),
            "ids: duplicate": len(set(self.eos.numbers)) < len(self.eos.numbers),
            "pad: taken from eos": self.eos.given and not self.pad.given,
            "device: the model's": not self.explicit_device,
            "threads: several": self.threads > 1,
            "told: by keyword": self.keywords,
        }
        return {name for name, holds in odd.items() if holds}
