"""Prefill once, and every way of decoding equals plain decoding.

plain decoding of the same prompt → from embeddings → from a cache that earlier calls left → prefilled in chunks → with
drafts. Each check runs its own part of the plan on top of the lower ones, and compares with plain decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance import upstream
from conformance.checks.cached import forced_crash
from conformance.compare import compare_exactly, compare_steps, compare_tokens, crash_difference, scale_of, unnumbered
from conformance.drafting.modes import Modes
from conformance.drafting.processors import Raises
from conformance.drafting.rounds import rounds
from conformance.drafting.states import compare_caches, compare_states
from conformance.endings import until_end
from conformance.outcome import Crash, Outcome
from conformance.registry import applies, check, family
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference

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
        "refused: several rows",
    ),
)
BELOW = (
    "cached-matches-recomputed",
    "several-tokens-match-one-by-one",
    "padded-row-matches-alone",
    "static-matches-dynamic",
)


def modes(runs: Runs) -> Modes:
    """The runs of the case with parts of its plan."""
    found: Modes = runs.once("modes", lambda: Modes(runs))
    return found


def has(part: str) -> Callable[[Runs], bool]:
    """A guard's condition: the plan has this part."""
    return lambda runs: modes(runs).has(part)


def drafts_with(*drafters: str) -> Callable[[Runs], bool]:
    """A guard's condition: one of these drafts."""
    return lambda runs: runs.case.plan.drafter in drafters


def works(runs: Runs, outcome: Outcome, beside: str) -> Comparison | None:
    """What to say of a run that raised: refused as documented, or a difference; None where it did not."""
    if any(runs.alone[row].crash for row in modes(runs).rows):
        return Comparison(not_applicable="plain decoding raises")
    if "turns" in modes(runs).everything and not modes(runs).made:
        return Comparison(not_applicable="the call that makes the cache raises")
    if outcome.crash is None:
        return None
    name = upstream.refusal(outcome.crash.type, outcome.crash.message)
    if name is None:
        return crash_difference(outcome.crash, beside)
    runs.events.add(f"refused: {name}")
    return Comparison(not_applicable=f"refused as documented: {name}")


def matches_plain(runs: Runs, part: str) -> Comparison:
    """The run with the plan's parts up to `part`, row by row against plain decoding under its tokens."""
    own = modes(runs)
    parts = own.up_to(part)
    outcome = own.outcome(parts)
    said = works(runs, outcome, "plain decoding works")
    if said is not None:
        return said
    result = _steps(runs, outcome, own.start(parts))
    for index, row in enumerate(own.rows):
        if not result.differences:
            result += _row(runs, outcome, parts, index, row)
    return result


def _steps(runs: Runs, outcome: Outcome, start: int) -> Comparison:
    """Every new token has its logits and scores, and decoding goes on until the last row has ended."""
    assert outcome.sequences is not None
    new = outcome.sequences[:, start:]
    for field in ("logits", "scores"):
        if len(getattr(outcome, field)) != new.shape[1]:
            got = f"{len(getattr(outcome, field))} steps"
            return Comparison.of(Difference("length", field, f"{new.shape[1]} steps, one a token", got))
    longest = max(len(until_end(row, modes(runs).ends)) for row in new.tolist())
    if new.shape[1] != longest:
        wanted = f"{longest} new tokens, the last an end token"
        return Comparison.of(Difference("length", "sequences", wanted, f"{new.shape[1]}"))
    return Comparison()


def _row(runs: Runs, outcome: Outcome, parts: Sequence[str], index: int, row: int) -> Comparison:
    own, start, settings = modes(runs), modes(runs).start(parts), runs.case.settings
    assert outcome.sequences is not None
    tokens = until_end(outcome.sequences[index, start:].tolist(), modes(runs).ends)
    where = f"row {row} " if len(own.rows) > 1 else ""
    if len(tokens) != settings.max_new_tokens and tokens[-1:] and tokens[-1] not in modes(runs).ends:
        wanted = f"{settings.max_new_tokens} tokens or an end token"
        return Comparison.of(Difference("length", "sequences", wanted, f"{len(tokens)} tokens", where))
    plain = runs.alone_under(row, tokens)
    if isinstance(plain, Crash):
        return forced_crash(plain, "the run under test works")
    expected = [step[0] for step in plain]
    noise = runs.noise(row, tokens)
    got = {field: [step[index] for step in getattr(outcome, field)[: len(tokens)]] for field in ("logits", "scores")}
    result = compare_steps("logits", got["logits"], expected, noise, where, runs.bound)
    scores = _processed(runs, outcome, parts, index, expected)
    result += compare_steps("scores", got["scores"], scores, noise, where, runs.bound)
    if settings.do_sample:
        return result + _possible(tokens, scores, where)

    def margin(step: int, best: int, token: int) -> float:
        wide = _processed(runs, outcome, parts, index, list(runs.wide_oracle.logits(row, tokens)))[step]
        return abs(float(wide[best] - wide[token]))

    return result + compare_tokens(tokens, scores, margin, noise, where, runs.bound)


def _processed(runs: Runs, outcome: Outcome, parts: Sequence[str], index: int, expected: Sequence[Any]) -> list[Any]:
    """The expected scores: the installed processors, built fresh, applied one step after the other."""
    own = modes(runs)
    processors = own.processors(parts)
    if not processors:
        return list(expected)
    assert outcome.sequences is not None
    ids = outcome.sequences
    with torch.no_grad():  # one that guides runs the model
        return [
            processors(ids[:, : own.start(parts) + step], logits.repeat(len(ids), 1))[index]
            for step, logits in enumerate(expected)
        ]


def _possible(tokens: Sequence[int], scores: Sequence[Any], where: str) -> Comparison:
    """A sampled token has a chance of its own."""
    for step, (token, vector) in enumerate(zip(tokens, scores, strict=True)):
        if not float(vector[token]) > float("-inf"):
            wanted = "a token with a score above minus infinity"
            return Comparison.of(Difference("tokens", "sequences", wanted, str(token), f"{where}step {step}"))
    return Comparison()


@check(PREFILL, stands_on=BELOW, script="arrived")
@applies("the forward of the type takes no embeddings", lambda runs: takes_embeddings(runs))
@applies("the prompt is not given as embeddings", has("embeds"))
def embeddings_match_ids(runs: Runs) -> Comparison:
    """A prompt given as the embeddings of its tokens decodes as the tokens do.

    Processors see the ids that `generate` returns, which are then the new ones only.
    """
    return matches_plain(runs, "embeds")


def takes_embeddings(runs: Runs) -> bool:
    """Whether the model's forward has a parameter for embeddings."""
    return "inputs_embeds" in upstream.forward_parameters(runs.scenario.model_class)


@check(PREFILL, stands_on=[*BELOW, "embeddings-match-ids"], script="arrived")
@applies("no earlier call has left a cache", has("turns"))
def continuing_matches_from_scratch(runs: Runs) -> Comparison:
    """A prompt of which earlier calls have left a part in the cache decodes as it does from scratch.

    Given all ids, or only the new ones; with a mask over all positions, or with none where nothing is padded.
    """
    _count_turns(runs)
    return matches_plain(runs, "turns")


def _count_turns(runs: Runs) -> None:
    own = modes(runs)
    runs.events |= {"turns: one" if len(own.turns) == 1 else "turns: several"}
    runs.events |= {f"turns: {'only new ids' if runs.case.plan.only_new else 'all ids'}"}
    runs.events |= {"turns: no mask"} if own.bare else set()


@check(PREFILL, stands_on=[*BELOW, "embeddings-match-ids", "continuing-matches-from-scratch"], script="arrived")
@applies("the prompt is not prefilled in chunks", has("chunk"))
def chunked_prefill_matches_whole(runs: Runs) -> Comparison:
    """A prompt prefilled in chunks, of a size from one to more than there is, decodes as one prefilled at once."""
    return matches_plain(runs, "chunk")


UNDRAFTED = [*BELOW, "embeddings-match-ids", "continuing-matches-from-scratch", "chunked-prefill-matches-whole"]


def drafted_matches_plain(runs: Runs) -> Comparison:
    """The rule of all kinds of drafting."""
    result = matches_plain(runs, "draft")
    count_drafts(runs, modes(runs).outcome(modes(runs).everything))
    return result


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies("no assistant model drafts", drafts_with("same", "noisy", "shallow", "other", "scripted"))
def assisted_matches_plain(runs: Runs) -> Comparison:
    """What an assistant model drafts changes nothing: sequence, logits and scores are those of plain decoding.

    However good or bad the drafts are, wherever an end token, a custom stop condition or the limit falls inside one.
    For sampling, logits and scores are compared under the tokens that came.
    """
    return drafted_matches_plain(runs)


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies("nothing is looked up", drafts_with("lookup"))
def prompt_lookup_matches_plain(runs: Runs) -> Comparison:
    """Drafts that are looked up in the prompt change nothing: the outcome is that of plain decoding."""
    return drafted_matches_plain(runs)


@check(PREFILL, stands_on=UNDRAFTED, script="drafted")
@applies(
    "the first layers of an encoder-decoder model are not exited early", lambda runs: not runs.scenario.encoder_decoder
)
@applies("the model's own first layers do not draft", drafts_with("early_exit"))
def early_exit_matches_plain(runs: Runs) -> Comparison:
    """Drafts of the model's own first layers change nothing: the outcome is that of plain decoding."""
    return drafted_matches_plain(runs)


def count_drafts(runs: Runs, outcome: Outcome) -> None:
    """The events of a drafted run: what was accepted, and where it ended."""
    if outcome.crash or outcome.sequences is None:
        return
    own = modes(runs)
    start, sequence = own.start(own.everything), outcome.sequences[0].tolist()
    seen = outcome.extra.get("preparations", [])
    drafted = [r for r in rounds(seen, start, sequence) if r.draft]
    if not drafted:
        return
    runs.events.add("drafted")
    for r in drafted:
        share = "none" if r.accepted == 0 else "all" if r.accepted == len(r.draft) else "some"
        runs.events.add(f"draft: {share} accepted")
        runs.events |= {"draft: crosses the window"} if _crosses(runs, r.length, len(r.draft)) else set()
        runs.events |= (
            {"draft: ends in a rejected one"} if set(r.draft[r.accepted :]) & set(modes(runs).ends) else set()
        )
    runs.events |= {"draft: several rounds"} if len(drafted) > 1 else set()
    last = drafted[-1]
    if last.length + len(last.tokens) < len(sequence):
        return
    if sequence[-1] in modes(runs).ends:
        inside = last.accepted == len(last.tokens) < len(last.draft)
        runs.events |= {"draft: ends inside"} if inside else set()
        runs.events |= (
            {"draft: ends at its last token"} if last.accepted == len(last.tokens) == len(last.draft) else set()
        )
    elif len(sequence) - start == runs.case.settings.max_new_tokens:
        runs.events.add("draft: length reached")


def _crosses(runs: Runs, length: int, drafted: int) -> bool:
    window = getattr(runs.scenario.config.get_text_config(decoder=True), "sliding_window", None)
    return isinstance(window, int) and length <= window < length + drafted


DRAFTED = ["assisted-matches-plain", "prompt-lookup-matches-plain", "early-exit-matches-plain"]


def everything(runs: Runs) -> Outcome:
    """The run with the whole plan."""
    own = modes(runs)
    return own.outcome(own.everything)


def runs_at_all(runs: Runs) -> bool:
    """A guard's condition: the run with the whole plan does not raise, and plain decoding neither."""
    return everything(runs).crash is None and not any(runs.alone[row].crash for row in modes(runs).rows)


@check(PREFILL, stands_on=UNDRAFTED, bitwise=True)
@applies(
    "the release does not tell preparation of the first iteration",
    lambda runs: upstream.tells_first(runs.scenario.model_class),
)
@applies("the run raises", runs_at_all)
def first_iteration_happens_once(runs: Runs) -> Comparison:
    """Preparation is told of the first iteration once per model and generation: once a chunk, before all else.

    An assistant generates many times within one generation: it may be told at its very first preparation, never after.
    An empty cache is something else: a call that continues one has a first iteration too.
    """
    own, seen = modes(runs), everything(runs).extra["preparations"]
    main = [call.first for call in seen if call.who == "main"]
    width = own.start(()) - (own.turns[-1] if own.turns else 0)
    most = -(-width // runs.case.plan.chunk) if own.has("chunk") and not runs.scenario.encoder_decoder else 1
    if not 1 <= sum(main) <= most:
        kind = "missing" if not any(main) else "changed"
        return Comparison.of(Difference(kind, "is_first_iteration", f"1 to {most} times", f"{sum(main)} times"))
    late = [n for n, first in enumerate(main) if first and n >= sum(main)]
    if late and runs.case.plan.drafter != "early_exit":  # there the model prepares as its own assistant first
        return Comparison.of(Difference("changed", "is_first_iteration", "before all else", f"at call {late[0]}"))
    drafting = [call.first for call in seen if call.who == "assistant"]
    again = [n for n, first in enumerate(drafting) if first and n]
    if again:
        wanted = "never after the assistant's first preparation"
        return Comparison.of(Difference("changed", "assistant is_first_iteration", wanted, f"at its call {again[0]}"))
    return Comparison()


@check(PREFILL, stands_on=[*UNDRAFTED, *DRAFTED], script="recorded")
@applies(
    "no states are asked for",
    lambda runs: runs.case.settings.output_hidden_states or runs.case.settings.output_attentions,
)
@applies(
    "the prompt arrives in parts, and its own states with it",
    lambda runs: not {"turns", "chunk"} & set(modes(runs).everything),
)
@applies("nothing is drafted", has("draft"))
@applies("the run raises", runs_at_all)
def assisted_records_match_plain(runs: Runs) -> Comparison:
    """Every entry of hidden states, attentions and cross attentions is that of plain decoding under the same tokens.

    One entry a token, the first with the prompt's; nothing of a rejected draft, no position taken for another.
    """
    outcome = everything(runs)
    plain = modes(runs).plain_under(outcome)
    if plain.crash:
        return Comparison(not_applicable="plain decoding under the same tokens raises")
    return _unless_tied(runs, compare_states(outcome.states, plain.states, outcome.steps))


def _unless_tied(runs: Runs, result: Comparison) -> Comparison:
    """A difference that comes after a choice between equals inside the model is a tie."""
    ties = matches_plain(runs, "draft").ties
    return Comparison(ties=ties[:1]) if result.differences and ties else result


@check(PREFILL, script="configs")
@applies("nothing is drafted", has("draft"))
def assisted_leaves_configs_alone(runs: Runs) -> Comparison:
    """Inputs and configs of both models are afterwards what they were, also after an error in a user's processor.

    A heuristic schedule that goes on with the draft length of the last call is documented, and allowed.
    """
    own = modes(runs)
    ended, result = everything(runs), Comparison()
    failed = own.run(own.everything, own.model(own.everything), processors=(Raises(runs.case.plan.raises),))
    for outcome, when in ((ended, "after the call"), (failed, "after an error")):
        for path, how in {**outcome.changed, **outcome.extra.get("assistant", {})}.items():
            if path.endswith(".num_assistant_tokens") and runs.case.plan.schedule == "heuristic":
                result.allowed.append("a heuristic schedule is kept in the assistant's generation config")
            else:
                result += Comparison.of(Difference("changed", unnumbered(path), "as before", f"{path}: {how}", when))
    return result


@check(PREFILL, stands_on=[*UNDRAFTED, *DRAFTED], script="left")
@applies(
    "a drafting call has made the cache already",
    lambda runs: runs.case.plan.made_by != "lookup" or not modes(runs).turns,
)
@applies("no cache is returned", lambda runs: bool(everything(runs).cache))
@applies("nothing is drafted", has("draft"))
@applies("the run raises", runs_at_all)
def assisted_leaves_the_cache_ordinary(runs: Runs) -> Comparison:
    """The cache that comes back has the length, the size and the modes of the one that plain decoding gives.

    Its contents too, within a bound, but for the rows of a static cache beyond its length.
    """
    outcome = everything(runs)
    plain = modes(runs).plain_under(outcome)
    if plain.crash or not plain.cache:
        return Comparison(not_applicable="plain decoding under the same tokens gives no cache")
    return _unless_tied(runs, compare_caches(outcome, plain, contents=not runs.case.plan.static))


@check(PREFILL)
@applies(
    "the draft may grow or shrink",
    lambda runs: runs.case.plan.schedule == "constant" or runs.case.plan.drafter == "lookup",
)
@applies("nothing is drafted", has("draft"))
@applies("the run raises", runs_at_all)
def drafts_are_as_long_as_asked(runs: Runs) -> Comparison:
    """No draft holds more tokens than the call asks for, or where it does not ask, the assistant's own config."""
    own, outcome = modes(runs), everything(runs)
    assert outcome.sequences is not None
    drafted = rounds(outcome.extra["preparations"], own.start(own.everything), outcome.sequences[0].tolist())
    longest = max((len(r.draft) for r in drafted), default=0)
    if longest > runs.case.plan.most:
        asked = "the call" if runs.case.plan.argument else "the config"
        return Comparison.of(
            Difference("length", "draft", f"at most {runs.case.plan.most}, as {asked} says", f"{longest} tokens")
        )
    return Comparison()


@check(PREFILL, bitwise=True)
@applies(
    "an assistant that goes on where the last call ended drafts otherwise",
    lambda runs: runs.case.plan.schedule != "heuristic",
)
@applies("the run raises", runs_at_all)
def mode_is_repeatable(runs: Runs) -> Comparison:
    """The same call again on the same model gives bitwise the same outcome, whatever it drafts or continues."""
    own, first = modes(runs), everything(runs)
    again = own.run(own.everything)
    if again.crash:
        return crash_difference(again.crash, "the first call works")
    return compare_exactly(again.fields(), first.fields(), unnumbered)


def unprocessed(runs: Runs) -> bool:
    """A guard's condition: greedy decoding without any processor."""
    plan, settings = runs.case.plan, runs.case.settings
    steered = plan.ngrams or plan.min_new or plan.guidance != 1.0 or settings.repetition_penalty != 1.0
    return not steered and not settings.do_sample


@check(PREFILL, stands_on=[*UNDRAFTED, *DRAFTED, "multimodal-inputs-are-used-once"])
@applies("scores are processed or sampled from", unprocessed)
@applies(
    "the assistant has not seen the whole prompt", lambda runs: not {"turns", "embeds"} & set(modes(runs).everything)
)
@applies("the assistant is another model", drafts_with("same", "scripted"))
@applies("the run raises", runs_at_all)
def same_model_is_believed(runs: Runs) -> Comparison:
    """An assistant that is the model itself is believed as long as it says what the model says.

    It does so after every round if its own state is rolled back to the accepted prefix: one that is not costs nothing
    but the drafts. A scripted assistant says another token where its script has it so.
    """
    own, outcome, result = modes(runs), everything(runs), Comparison()
    assert outcome.sequences is not None
    start = own.start(own.everything)
    for r in rounds(outcome.extra["preparations"], start, outcome.sequences[0].tolist()):
        right = says(runs, r.length, len(r.draft))
        if r.accepted < min(right, len(r.tokens)):
            scores = outcome.scores[r.length + r.accepted - start][0]
            gap = float(scores.max() - scores[r.draft[r.accepted]])
            where = f"position {r.length + r.accepted}"
            if gap <= 2 * runs.bound * scale_of([scores]):
                result.ties.append(f"{where}: the drafted token is {gap:.1e} below")
            else:
                wanted = f"{right} of {len(r.draft)} drafted tokens accepted"
                return Comparison.of(Difference("tokens", "draft", wanted, f"{r.accepted}", where))
    return result


def says(runs: Runs, length: int, drafted: int) -> int:
    """How many tokens of a draft at this length the assistant says as the model does."""
    script = runs.case.plan.script if runs.case.plan.drafter == "scripted" else (True,)
    return next((n for n in range(drafted) if not script[(length + n) % len(script)]), drafted)


@check(PREFILL, stands_on=UNDRAFTED, bitwise=True)
@applies("the prompt holds no images", lambda runs: runs.scenario.media is not None)
@applies("the run raises", runs_at_all)
def multimodal_inputs_are_used_once(runs: Runs) -> Comparison:
    """Each model gets the images or the sound of a call exactly once, an assistant that drafts as well.

    However many chunks and rounds there are: whoever sees an image twice has taken it for another one, and an assistant
    that never sees it drafts for another prompt.
    """
    outcome = everything(runs)
    used, ran = outcome.extra["media"], {call.who for call in outcome.extra["preparations"]}
    for who in sorted(ran, reverse=True):
        counts = {name: times for name, times in used.items() if name.startswith(f"{who} ")}
        name, most = max(counts.items(), key=lambda item: item[1], default=("no module", 0))
        if most != 1:
            kind = "missing" if most == 0 else "changed"
            return Comparison.of(Difference(kind, f"{who} media", "once", f"{most} times", name))
    return Comparison()
