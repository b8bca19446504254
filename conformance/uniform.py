"""Uniform draws for the exploring stage, as a backend of Hypothesis; shrinking stays its own.

Hypothesis' own generator leans towards simple and repeated values: of 400 cases, half had one new token and
an eighth the same weight seed. It also takes constants from whatever modules are loaded, so that the same
seed drew other cases in a process that had imported more.
"""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

NAME = "conformance-uniform"


class UniformProvider(HypothesisProvider):
    """Every value of a bounded range is as likely as any other; the generator is the one that the seed set."""

    def draw_boolean(self, p: float = 0.5) -> bool:
        """True with probability `p`."""
        assert self._cd is not None
        assert self._cd._random is not None
        return self._cd._random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """Uniform within bounds, whatever the weights; Hypothesis' own draw where a bound is missing."""
        if min_value is None or max_value is None:
            return super().draw_integer(min_value, max_value, weights=weights, shrink_towards=shrink_towards)
        assert self._cd is not None
        assert self._cd._random is not None
        return self._cd._random.randint(min_value, max_value)


AVAILABLE_PROVIDERS[NAME] = f"{__name__}.UniformProvider"
