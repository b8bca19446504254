"""What else the config of a type can say: yes where its default says no, and fewer positions than there are tokens.

A default config hides all of these, and a fault in what they lead to with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from conformance.architectures.capabilities import gives_logits
from conformance.architectures.defaults import Level, default_config, levels
from conformance.architectures.hidden import known
from conformance.architectures.overrides import Json
from conformance.architectures.roles import SWITCHED_OFF, formula_of
from conformance.architectures.shrink import tiny_config
from conformance.errors import NotBuildable

Option = Mapping[str, Json]  # settings that go over those of a tiny config

FEW_POSITIONS = 8
TOKENS = 24  # of the forward that shows whether a model runs: more than there are positions then
# Parts of a config that say nothing about the decoder.
ELSEWHERE = re.compile(r"\w*(vision|audio|speech|image|video|vq|qformer|projector|backbone|codec|encoder)\w*\.")
# Answers that are no part of what the model computes, that make another kind of model, or that something else draws.
LEFT_ALONE = re.compile(
    # what is returned, kept or made at the beginning
    r"output_\w+|return_\w+|use_cache|use_mems_\w+|tie_\w+|share_encoder_decoder_\w+|rescale_prenorm_residual"
    # encoders, heads for other tasks, losses
    r"|is_(encoder_)?decoder|is_encoder|add_cross_attention|summary_\w+|\w*classifi\w+|disable_ngram_loss"
    r"|apply_spec_augment|use_weighted_layer_sum|add_adapter|early_stopping|slow_but_exact"
    # attention in both directions, or over what belongs together: a prompt in parts is another one
    r"|\w*bidirectional\w*|(is_)?causal|prefix_lm|asm|bi_data|same_length|attn_uses_sequence_id|patch_in_forward"
    # experts of one row chosen by what the others say
    r"|batch_prioritized_routing|router_ignore_padding_tokens"
    # windows, which the switch `window_on` turns on
    r"|use_sliding_window"
)


@cache
def options(name: str) -> tuple[Option, ...]:
    """What a tiny config of this type can have, each by itself: settings with which a model runs.

    Fewer positions than tokens are no limit to rotary models, nor to those that compute a longer table when they need
    one. For some types the answer to another question decides on which they are.
    """
    try:
        answers, few = _running(name, list(_answers(name))), _few_positions(name)
    except NotBuildable:
        return ()
    if not few or "rope_parameters" in vars(default_config(name)):
        return tuple(answers)
    unlimited = _running(name, [few])
    return tuple(answers + (unlimited or _running(name, [{**answer, **few} for answer in answers])))


def _running(name: str, possible: list[Option]) -> list[Option]:
    settings = tiny_config(name)
    return [option for option in possible if gives_logits(name, {**settings, **option}, TOKENS)]


def chosen_options(name: str, config: Mapping[str, object]) -> list[Option]:
    """The options of a type that these settings hold."""
    return [option for option in options(name) if all(config.get(path) == value for path, value in option.items())]


def _few_positions(name: str) -> Option:
    found = [a for a in tiny_config(name) if formula_of(a.rsplit(".", 1)[-1]) == "positions" and not ELSEWHERE.match(a)]
    return dict.fromkeys(found, FEW_POSITIONS)


def _answers(name: str) -> Iterator[Option]:
    by_hand = known(name)
    taken = {attribute for change in (by_hand.always, *by_hand.switches.values()) for attribute in change.set}
    for level in levels(default_config(name)):
        if not ELSEWHERE.match(level.prefix):
            yield from ({a: v} for a, v in _at(level) if a not in taken)


def _at(level: Level) -> Iterator[tuple[str, bool]]:
    for attribute, value in level.values.items():
        if isinstance(value, bool) and not LEFT_ALONE.fullmatch(attribute) and attribute not in SWITCHED_OFF:
            yield level.prefix + attribute, not value
