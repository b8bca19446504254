"""The broken caches of `rollback.py`: which check must find each of them, and on which type."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from zoo import rollback as broken


@dataclass(frozen=True)
class BrokenCache:
    """`found_by` must fail on some case of `architecture` where it does not without the fault."""

    found_by: str
    planted: Callable[[], AbstractContextManager[None]]
    architecture: str = "llama"
    slow: bool = False  # takes many cases

    @property
    def name(self) -> str:
        return self.planted.__name__.replace("_", "-")


ROUND_TRIP, ZERO, TRUE = "crop-round-trip", "crop-zero-is-invisible", "is-croppable-is-true"
REFUSED, SIZE, RESET = "refused-crop-changes-nothing", "window-returns-to-its-size", "reset-is-fresh"
BEAMS, BATCH, NEGATIVE = "beams-reorder-every-state", "batch-operations-move-every-state", "length-never-negative"

TELLS = "cache-tells-of-itself"
FOLLOW = "beams-follow-their-scores"
GIVEN = "given-cache-matches-recomputed"

BROKEN = (
    BrokenCache(GIVEN, broken.quantised_loses_the_first_token),
    BrokenCache(SIZE, broken.residual_is_never_quantised),
    BrokenCache(ROUND_TRIP, broken.window_off_by_one, "mistral", slow=True),
    BrokenCache(ROUND_TRIP, broken.values_are_not_cropped),
    BrokenCache(ROUND_TRIP, broken.length_is_not_restored, "mistral"),
    BrokenCache(ROUND_TRIP, broken.recording_returns_all_states, "mistral"),
    BrokenCache(ROUND_TRIP, broken.convolution_tail_one_short, "lfm2"),
    BrokenCache(ROUND_TRIP, broken.recurrent_state_is_cropped_blindly, "mamba"),
    BrokenCache(ROUND_TRIP, broken.is_croppable_always, "mamba", slow=True),
    BrokenCache(ROUND_TRIP, broken.cross_attention_is_cropped_too, "bart:seq2seq"),
    BrokenCache(TRUE, broken.is_croppable_never),
    BrokenCache(ZERO, broken.crop_of_nothing_takes_a_token),
    BrokenCache(REFUSED, broken.refuses_after_cropping),
    BrokenCache(SIZE, broken.recorded_states_are_kept, "mistral"),
    BrokenCache(RESET, broken.reset_zeroes_without_emptying),
    BrokenCache(RESET, broken.reset_keeps_the_batch),
    BrokenCache(BEAMS, broken.reorder_forgets_the_convolution, "lfm2"),
    BrokenCache(BEAMS, broken.reorder_loses_what_waits, "deepseek_v4"),
    BrokenCache(ROUND_TRIP, broken.reorder_forgets_what_is_recorded, "mistral", slow=True),
    BrokenCache(BATCH, broken.select_forgets_the_values),
    BrokenCache(TELLS, broken.batch_size_is_asked_of_the_first_layer),
    BrokenCache(FOLLOW, broken.beams_keep_the_worst_that_end),
    BrokenCache(NEGATIVE, broken.length_below_zero, slow=True),
)

# Of these no case of 5.24.0 is sound, or few are drawn: `test_beams` and `test_guidance` mend or break it instead.
STEERED = {
    "beams-leave-the-encoding-alone",
    "guidance-is-of-each-row-alone",
    "guided-beams-score-their-sequences",
}
