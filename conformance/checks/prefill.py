"""Prefill once, and every way of decoding equals plain decoding.

plain decoding of the same prompt → from embeddings → from a cache that earlier calls left → prefilled in chunks → with
drafts. Each check runs its own part of the plan on top of the lower ones, and compares with plain decoding. Those of
drafts are in `prefill_drafts`, what a call leaves behind and how often it uses what it is given in `prefill_traces`.
"""

from __future__ import annotations

from conformance.drafting.comparing import matches_plain
from conformance.drafting.counting import count_turns
from conformance.drafting.guards import has, takes_embeddings
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.verdicts import Comparison

PREFILL = family(
    "prefill",
    floors={
        "drafted": 0.25,
        "draft: none accepted": 0.05,
        "draft: some accepted": 0.05,
        "draft: all accepted": 0.05,
        "draft: several rounds": 0.1,
        "draft: ends inside": 0.01,
        "draft: length reached": 0.03,
        "chunks: several": 0.1,
        "turns: one": 0.05,
        "turns: several": 0.02,
        "prompt: embeddings": 0.03,
    },
    reachable=(
        "cache: static",
        "draft: crosses the window",
        "draft: ends at its last token",
        "draft: ends in a rejected one",
        "drafter: of another dtype",
        "drafts: guided",
        "prompt: embeddings and ids",
        "beams: several",
        "refused: several rows",
        "told: beyond",
        "told: positions",
        "told: temperature",
        "told: top_k",
        "told: top_p",
        "told: watermark",
        "told: words_again",
        "turns: images come later",
        "turns: images in the cache",
        "turns: nothing new",
    ),
    media=True,
)
BELOW = (
    "cached-matches-recomputed",
    "several-tokens-match-one-by-one",
    "padded-row-matches-alone",
    "static-matches-dynamic",
)
LIMIT = "callers-limit-counts"
UNDRAFTED = [*BELOW, LIMIT, "embeddings-match-ids", "continuing-matches-from-scratch", "chunked-prefill-matches-whole"]
DRAFTED = ["assisted-matches-plain", "prompt-lookup-matches-plain", "early-exit-matches-plain"]


@check(PREFILL, stands_on=[*BELOW, LIMIT], script="arrived")
@applies("the forward of the type takes no embeddings", takes_embeddings)
@applies("the prompt is not given as embeddings", has("embeds"))
def embeddings_match_ids(runs: Runs) -> Comparison:
    """A prompt given as the embeddings of its tokens decodes as the tokens do, with the ids given besides or without.

    Processors see the ids that `generate` returns, which are the new ones only where no ids are given.
    """
    return matches_plain(runs, "embeds")


@check(PREFILL, stands_on=[*BELOW, LIMIT, "embeddings-match-ids"], script="arrived")
@applies("a prompt that comes in turns is another one to this type", lambda runs: "whole_prompt" not in runs.facts)
@applies("no earlier call has left a cache", has("turns"))
def continuing_matches_from_scratch(runs: Runs) -> Comparison:
    """A prompt of which earlier calls have left a part in the cache decodes as it does from scratch.

    Given all ids, or only the new ones; with a mask over all positions, or with none where nothing is padded.
    """
    count_turns(runs)
    return matches_plain(runs, "turns")


@check(PREFILL, stands_on=[*BELOW, LIMIT, "embeddings-match-ids", "continuing-matches-from-scratch"], script="arrived")
@applies("the prompt is not prefilled in chunks", has("chunk"))
def chunked_prefill_matches_whole(runs: Runs) -> Comparison:
    """A prompt prefilled in chunks, of a size from one to more than there is, decodes as one prefilled at once."""
    return matches_plain(runs, "chunk")
