"""Prompts: one to three rows of one to twenty-four tokens."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from conformance.architectures.media import image_seeds, recipe, takes_media
from conformance.case import Prompt
from conformance.strategies.ranges import Span, whole_numbers


def lengths(*, span: Span = (1, 24), landmarks: Sequence[int] = ()) -> st.SearchStrategy[int]:
    """Row lengths in tokens. `landmarks` (a window's size) are met below, at and above in half of the draws."""
    anywhere = whole_numbers("length", span, 1, 64)
    around = sorted({n for mark in landmarks for n in (mark - 1, mark, mark + 1, mark + 3) if span[0] <= n <= span[1]})
    return anywhere | st.sampled_from(around) if around else anywhere


@st.composite
def prompts(
    draw: st.DrawFn,
    *,
    vocabulary: int,
    rows: Span = (1, 3),
    length: Span = (1, 24),
    landmarks: Sequence[int] = (),
    ragged: bool = False,
    images: Span = (0, 0),
) -> Prompt:
    """Prompts with token ids in 1 ... vocabulary - 1; rows differ in length half of the time, always
    when `ragged`. `images` is a range for the number of images in every row; see `media_span`.

    Shrinks to one row holding the token 1.
    """
    pictures = draw(whole_numbers("images", images, 0, 2))
    count = draw(whole_numbers("rows", rows, 1, 8))
    one_length = lengths(span=length, landmarks=landmarks)
    token = st.integers(1, vocabulary - 1)
    sizes = [draw(one_length)] * count
    if count > 1 and (ragged or draw(st.booleans())):
        sizes = [sizes[0], *(draw(one_length) for _ in sizes[1:])]
    return Prompt(
        rows=tuple(tuple(draw(st.lists(token, min_size=n, max_size=n))) for n in sizes),
        images=pictures,
        image_seed=draw(st.integers(0, 2**16)) if pictures else 0,
    )


def whole_parts(architecture: str, prompt: Prompt) -> tuple[int, ...]:
    """The lengths of parts of the longest row that split none of its images, and leave something of it."""
    length = max(map(len, prompt.rows))
    if not prompt.images:
        return tuple(range(1, length))
    kind = recipe(architecture)
    taken = max(kind.positions(image_seeds(row, prompt.images, prompt.image_seed)) for row in range(len(prompt.rows)))
    return (1, *range(1 + taken, length + taken))


def media_span(architecture: str) -> Span:
    """How many images a row of a prompt can hold: a range from none to what the type takes; (0, 0) for most."""
    return (0, recipe(architecture).most if takes_media(architecture) else 0)
