"""However a prompt is decoded: what is done once, what is recorded, and what a call leaves behind."""

from __future__ import annotations

from conformance import upstream
from conformance.checks.prefill import DRAFTED, PREFILL, UNDRAFTED
from conformance.compare import compare_exactly, crash_difference, unnumbered
from conformance.drafting.comparing import matches_plain
from conformance.drafting.guards import everything, has, runs_at_all
from conformance.drafting.modes import modes
from conformance.drafting.processors import Raises
from conformance.drafting.states import compare_caches, compare_states
from conformance.registry import applies, check
from conformance.runs import Runs
from conformance.verdicts import Comparison, Difference


@check(PREFILL, stands_on=UNDRAFTED, script="first", bitwise=True)
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
    most = own.first_iterations
    if not 1 <= sum(main) <= most:
        kind = "missing" if not any(main) else "changed"
        return Comparison.of(Difference(kind, "is_first_iteration", f"1 to {most} times", f"{sum(main)} times"))
    late = [n for n, first in enumerate(main) if first and n >= sum(main)]
    if late:
        return Comparison.of(Difference("changed", "is_first_iteration", "before all else", f"at call {late[0]}"))
    drafting = [call.first for call in seen if call.who != "main"]
    again = [n for n, first in enumerate(drafting) if first and n]
    if again:
        wanted = "never after the assistant's first preparation"
        return Comparison.of(Difference("changed", "assistant is_first_iteration", wanted, f"at its call {again[0]}"))
    return Comparison()


@check(PREFILL, stands_on=UNDRAFTED, script="used_once", bitwise=True)
@applies("the images came with an earlier call", lambda runs: modes(runs).brings_images_itself)
@applies("the prompt holds no images", lambda runs: runs.scenario.media is not None)
@applies("the run raises", runs_at_all)
def multimodal_inputs_are_used_once(runs: Runs) -> Comparison:
    """Each model gets the images or the sound of a call exactly once, an assistant that drafts as well.

    However many chunks and rounds there are: whoever sees an image twice has taken it for another one, and an assistant
    that never sees it drafts for another prompt.
    """
    outcome, own = everything(runs), modes(runs)
    ran = {call.who for call in outcome.extra["preparations"]}
    for who in sorted(outcome.extra["media"].keys() & ran, reverse=True):
        name, times = outcome.extra["media"][who].times(own.placeholders)
        if times != 1:
            kind = "missing" if times == 0 else "changed"
            return Comparison.of(Difference(kind, f"{who} media", "once", f"{times} times", f"{who} {name}"))
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
    return _unless_explained(runs, compare_states(outcome.states, plain.states, outcome.steps))


def _unless_explained(runs: Runs, result: Comparison) -> Comparison:
    """Other values after a choice between equals inside the model are a tie; a type that feeds others is not judged."""
    if not result.differences:
        return result
    decoded = matches_plain(runs, "draft")
    if decoded.not_applicable:
        return Comparison(not_applicable=decoded.not_applicable)
    tied = decoded.ties and all(difference.kind == "values" for difference in result.differences)
    return Comparison(ties=decoded.ties[:1]) if tied else result


@check(PREFILL, script="configs")
@applies("nothing is drafted", has("draft"))
def assisted_leaves_configs_alone(runs: Runs) -> Comparison:
    """Inputs and configs of both models are afterwards what they were, also after an error in a user's processor.

    Which modules the model that drafts is made of counts too.
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
    return _unless_explained(runs, compare_caches(outcome, plain))


@check(PREFILL, stands_on=["repeatable"], script="again", bitwise=True)
@applies(
    "a tokenizer lists its vocabulary in no fixed order, and what is sampled by place in it differs",
    lambda runs: runs.case.plan.drafter != "translated" or not runs.case.settings.do_sample,
)
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
