"""Special tokens as callers give them: numbers, lists, tensors; none, empty, negative, beyond the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from conformance.case import ModelSpec, Prompt, Settings
from conformance.plans.special_tokens import Id, SpecialTokensPlan
from conformance.strategies.cases import vocabulary_of
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings as general_settings

SEVERAL = ("list", "tuple", "tensor")
FORMS = ("none", "none", "number", "scalar", *SEVERAL)
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
MODES = get_args(Literal["greedy", "beams", "lookup", "assisted"])


@st.composite
def settings(draw: st.DrawFn, /, *, rows: int = 1, **shared: Any) -> Settings:
    """As every family draws them, but half of the time with two to four end tokens that rows say."""
    chosen = draw(general_settings(rows=rows, **shared))
    place = st.tuples(st.integers(0, rows - 1), st.integers(0, chosen.max_new_tokens - 1))
    if rows * chosen.max_new_tokens == 1 or draw(st.booleans()):
        return chosen
    return chosen.replace(eos=(), eos_at=tuple(draw(st.lists(place, min_size=2, max_size=4, unique=True))))


@st.composite
def numbers(draw: st.DrawFn, vocabulary: int, whole: bool = False) -> Any:
    """A token of the vocabulary; now and then zero, negative, beyond it, or, unless `whole`, a bool or a float."""
    token = st.integers(1, vocabulary - 1)
    odd: list[st.SearchStrategy[Any]] = [st.just(0), st.integers(-5, -1), st.integers(vocabulary, vocabulary + 40)]
    if not whole:
        odd += [st.booleans(), token.map(float), token.map(lambda n: n + 0.5)]
    return draw(st.one_of(odd)) if draw(rarely(True, False, one_in=6)) else draw(token)


@st.composite
def ids(draw: st.DrawFn, *, vocabulary: int, meta: bool = False, forms: Sequence[str] = FORMS) -> Id:
    """An id in one of the forms; shrinks to the first. `meta` allows tensors on that device."""
    form: Any = draw(st.sampled_from(forms))
    if form == "none":
        return Id()
    tensor, single = form in ("scalar", "tensor"), form in ("number", "scalar")
    dtype: Any = draw(rarely("float32", None, one_in=12)) or draw(st.sampled_from(INTEGERS)) if tensor else "int64"
    empty = not single and draw(rarely(True, False, one_in=6))
    count = 0 if empty else 1 if single else draw(st.integers(1, 4))
    values = [_held_by(dtype, draw(numbers(vocabulary, whole=tensor and dtype != "float32"))) for _ in range(count)]
    values += values[:1] if count > 1 and draw(rarely(True, False, one_in=4)) else []
    return Id(form=form, values=tuple(values), dtype=dtype, device=draw(_devices) if tensor and meta else "cpu")


def _held_by(dtype: str, number: Any) -> Any:
    """The number, or one that a tensor of this dtype can hold."""
    held = abs(number) if dtype == "uint8" else number
    return held % 100 if dtype == "int8" and held > 100 else held


_devices: st.SearchStrategy[Literal["cpu", "meta"]] = st.sampled_from(("cpu", "meta"))


@st.composite
def plans(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, settings: Settings) -> SpecialTokensPlan:
    """Four ids and how they are used; in one case of five some tensors among them are on `meta`."""
    shared: Any = {"vocabulary": vocabulary_of(model), "meta": draw(rarely(True, False, one_in=5))}
    one, several = ids(**shared), len(settings.eos_at) + len(settings.eos) > 1
    eos, pad = draw(ids(**shared, forms=FORMS + SEVERAL if several else FORMS)), draw(one)
    instead = draw(st.sampled_from(("as drawn",) * 4 + ("equal to an eos", "zero")))
    if eos.form in SEVERAL and not eos.given and draw(st.booleans()):
        pad = Id()  # there is nothing to take it from
    if instead == "zero":
        pad = Id(form=draw(st.sampled_from(("number", "scalar"))), values=(0,))
    if instead == "equal to an eos" and eos.given and not eos.on_meta:
        pad = eos.replace(form="number", values=eos.values[-1:], dtype="int64")
    return SpecialTokensPlan(
        eos=eos,
        pad=pad,
        bos=draw(one),
        decoder_start=draw(one),
        keywords=draw(rarely(True, False, one_in=4)),
        explicit_device=draw(st.sampled_from((True, True, False))),
        has_mask=draw(st.sampled_from((True, False, None))),
        batch_size=draw(st.sampled_from((1, 2, None, 3))),
        mode=draw(st.sampled_from(MODES)),
        draft=draw(st.integers(1, 5)),
        threads=draw(rarely(4, 1, one_in=8)),
        misplaced=draw(st.lists(st.integers(0, 99), min_size=0, max_size=2).map(tuple)),
    )
