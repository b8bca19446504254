"""What the `stopping` family draws: ends that are met before the limit, and a caller with a device that is late."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from conformance.architectures.cells import reachable
from conformance.architectures.roles import formula_of
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.plans.stopping import FILLED, StoppingPlan
from conformance.strategies.cases import landmarks_of, models, vocabulary_of
from conformance.strategies.prompts import prompts
from conformance.strategies.ranges import rarely
from conformance.strategies.settings import settings

LONGEST = 9  # new tokens
CACHES: dict[bool, tuple[Literal["made", "fresh", "filled"], ...]] = {
    False: ("made", "made", "fresh", "filled"),
    True: ("made", "fresh", "fresh", "filled"),  # where a hook raises: what it leaves shows in the caller's own
}
RAISES: tuple[Literal["", "streamer", "processor", "criterion"], ...] = (
    "",
    "",
    "",
    "",
    "streamer",
    "processor",
    "criterion",
)
CALLS = (1, 2, 3)  # in which a hook raises
WORDS: tuple[Literal["its own", "cannot", "none"], ...] = (*("its own",) * 14, "cannot", "none")
MET = {"min_new_tokens": 0, "against_eos": "nothing"}  # what else would keep an end token from being met
WHERE = (*("early",) * 10, "last", "mixed", "drawn")


@st.composite
def cases(draw: st.DrawFn, architecture: str, *, towards: Collection[str] = ()) -> Case:
    """A case in which, most often, every row meets an end token before the limit, so that a step is undone."""
    model = draw(models(architecture))
    several = "rows: several" in towards or "stop: rows differ" in towards
    rows = draw(st.sampled_from((2, 3) if several else (1, 1, 2, 2, 3)))
    vocabulary = vocabulary_of(model)
    prompt = draw(prompts(vocabulary=vocabulary, rows=(rows, rows), length=(1, 16), landmarks=landmarks_of(model)))
    chosen = draw(ended(model=model, rows=rows))
    if draw(rarely(True, False, one_in=10)):
        model = draw(tight(model=model, prompt=prompt, chosen=chosen))
    mixed = len(reachable(architecture)) > 1
    plan = draw(plans(settings=chosen, unpadded=not pads_before_the_end(chosen, rows), mixed=mixed))
    chosen = beyond_the_filled(chosen) if plan.cache == "filled" else chosen
    return Case(family="stopping", model=model, prompt=prompt, settings=chosen, plan=plan)


def pads_before_the_end(chosen: Settings, rows: int) -> bool:
    """Whether a row may be filled up with the pad id, and that be fed, before all have ended.

    Where the rows end in the same step or in one after the other, the pad id is a last token at most, which only a
    step too many is fed.
    """
    if rows * chosen.returned == 1:
        return False
    steps = [step for _, step in chosen.eos_at]
    return len({row for row, _ in chosen.eos_at}) < rows or chosen.returned > 1 or max(steps) - min(steps) > 1


def beyond_the_filled(chosen: Settings) -> Settings:
    """The settings with their places after the tokens that a filled cache holds: in them no end is looked for."""
    return chosen.replace(
        eos_at=tuple((row, step + FILLED) for row, step in chosen.eos_at),
        stop_at=tuple((row, step + FILLED) for row, step in chosen.stop_at),
    )


@st.composite
def ended(draw: st.DrawFn, *, model: ModelSpec, rows: int) -> Settings:
    """Settings with end tokens that are met: by place for every row, since one drawn blindly hardly ever is."""
    vocabulary = vocabulary_of(model)
    plainly = draw(settings(vocabulary=vocabulary, new_tokens=(1, LONGEST), rows=rows, sampling=False))
    chosen = plainly.replace(**draw(_chosen_and_returned(plainly, vocabulary, eager=model.attention == "eager")))
    where = draw(st.sampled_from(WHERE))
    if where == "drawn":
        return chosen
    limit = max(2, chosen.max_new_tokens)
    first, last = {"early": (0, limit - 2), "last": (limit - 1, limit - 1), "mixed": (0, limit - 1)}[where]
    places = tuple((row, draw(st.integers(first, last))) for row in range(rows))
    ends = _sampled_ends(vocabulary, places) if chosen.do_sample else st.just({"eos": (), "eos_at": places})
    fields = draw(ends) | (MET if where == "early" else {})
    return chosen.replace(max_new_tokens=limit, pad=draw(st.sampled_from((0, None))), **fields)


@st.composite
def _chosen_and_returned(draw: st.DrawFn, plainly: Settings, vocabulary: int, *, eager: bool) -> dict[str, Any]:
    """How tokens are chosen, and what is returned with them: what an undone step has touched and may forget.

    More often than elsewhere: a third is sampled, half of that into several sequences a row, and a quarter of what has
    attentions returns them. A pad id that cannot be fed is for one sequence alone.
    """
    sampled = draw(rarely(True, False, one_in=3))
    alone = plainly.pad is not None and plainly.pad >= vocabulary
    return {
        "do_sample": sampled,
        "sample_seed": draw(st.integers(0, 2**16)) if sampled else 0,
        "returned": draw(rarely(2, 1, one_in=2)) if sampled and not alone else 1,
        "output_attentions": eager and draw(rarely(True, False, one_in=4)),
    }


def _sampled_ends(vocabulary: int, places: Sequence[tuple[int, int]]) -> st.SearchStrategy[dict[str, Any]]:
    """What sampling will say is not known: so many end tokens that one is met, mostly with a criterion as well."""
    tokens = st.lists(st.integers(1, vocabulary - 1), min_size=8, max_size=16, unique=True).map(tuple)
    stops = rarely((), tuple(places), one_in=3)
    return st.fixed_dictionaries({"eos": tokens, "eos_at": st.just(()), "row_stops": stops})


@st.composite
def tight(draw: st.DrawFn, *, model: ModelSpec, prompt: Prompt, chosen: Settings) -> ModelSpec:
    """The model with a table of positions that may end where the decoding does; as it is where it has no table."""
    exactly = max((step for _, step in chosen.eos_at), default=1)  # the last new token, which is never fed
    fed = draw(st.sampled_from((exactly, 1 + draw(st.integers(0, chosen.max_new_tokens)))))
    size = max(len(row) for row in prompt.rows) + fed
    paths = [path for path in model.config if formula_of(path.rsplit(".", 1)[-1]) == "positions"]
    return model.replace(config={**model.config, **dict.fromkeys(paths, size)})


@st.composite
def plans(draw: st.DrawFn, *, settings: Settings, unpadded: bool, mixed: bool) -> StoppingPlan:
    """A device that is late, what the caller passes and asks for, and hooks; shrinks to none of it.

    `unpadded`: stopping at once feeds no pad id, which need not be one that can be fed then. `mixed`: the cache has
    layers of several kinds, of which one of fixed size is the rarer and the more delicate; every second is one then.
    """
    raises = draw(st.sampled_from(RAISES))
    # One that is filled holds the rows of a prompt, and not so many times as many as are returned.
    caches = CACHES[bool(raises)]
    cache = draw(st.sampled_from(caches if settings.returned == 1 else caches[:-1]))
    passed, lag = cache != "made", draw(st.sampled_from((0, 1, 2, 2)))
    static = draw(rarely(True, False, one_in=2 if mixed else 6))
    return StoppingPlan(
        lag=lag,
        streamed=draw(st.booleans()),
        cache=cache,
        static=static,
        room=draw(st.sampled_from((None, 0, 1))) if passed and static else None,
        quantised=passed and draw(rarely(True, False, one_in=6)),
        words=draw(st.sampled_from(WORDS)) if passed else "its own",
        recording=passed and draw(rarely(True, False, one_in=6)),
        tensor_only=draw(rarely(True, False, one_in=8)),
        uncached=not (passed or static) and draw(rarely(True, False, one_in=9)),
        pad_beyond=unpadded and draw(rarely(True, False, one_in=10)),
        assistant=draw(rarely(True, False, one_in=24)),
        processor=draw(rarely(True, False, one_in=5)),
        stop_after=draw(st.integers(1, LONGEST - 1)) if draw(rarely(True, False, one_in=8)) else 0,
        raises=raises,
        raises_at=draw(st.sampled_from(CALLS if raises == "streamer" else (*CALLS, 0, 0))) if raises else 1,
        again=draw(rarely(True, False, one_in=4)),
        polls=draw(st.integers(1, 4)) if lag else 1,
    )
