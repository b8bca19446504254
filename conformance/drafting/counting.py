"""The events of a run with a plan: which paths it took."""

from __future__ import annotations

from conformance.drafting.modes import modes
from conformance.drafting.rounds import Round, rounds
from conformance.outcome import Outcome
from conformance.runs import Runs


def count_turns(runs: Runs) -> None:
    """The events of a run that continues a cache."""
    own = modes(runs)
    runs.events |= {"turns: one" if len(own.turns) == 1 else "turns: several"}
    cached = own.turns[-1]
    runs.events |= {f"turns: {'only new ids' if own.left_out(cached, own.width) else 'all ids'}"}
    runs.events |= {"turns: nothing new"} if cached == own.width else set()
    if runs.scenario.media:
        runs.events |= {f"turns: images {'come later' if own.brings_images_itself else 'in the cache'}"}
    runs.events |= {"turns: no mask"} if own.bare else set()


def count_drafts(runs: Runs, outcome: Outcome) -> None:
    """The events of a drafted run: what was accepted, and where it ended."""
    if outcome.crash or outcome.sequences is None:
        return
    own = modes(runs)
    start, sequence = own.start(own.everything), outcome.sequences[0].tolist()
    drafted = count_rounds(runs, outcome, start)
    if not drafted:
        return
    for r in drafted:
        runs.events |= {"draft: ends in a rejected one"} if set(r.draft[r.accepted :]) & set(own.ends) else set()
        runs.events |= {"draft: crosses the window"} if _crosses(runs, r.length, len(r.draft)) else set()
    last = drafted[-1]
    if last.length + len(last.tokens) >= len(sequence):
        runs.events |= _end(last, sequence[-1] in own.ends, len(sequence) - start == runs.case.settings.max_new_tokens)


def count_rounds(runs: Runs, outcome: Outcome, start: int) -> list[Round]:
    """The rounds in which a run drafted anything, counted by how much was accepted; its prompt has `start` ids."""
    assert outcome.sequences is not None
    found = rounds(outcome.extra.get("preparations", []), start, outcome.sequences[0].tolist())
    drafted = [r for r in found if r.draft]
    runs.events |= {"drafted"} if drafted else set()
    runs.events |= {"draft: several rounds"} if len(drafted) > 1 else set()
    runs.events |= {_accepted(r) for r in drafted}
    return drafted


def _accepted(r: Round) -> str:
    whole = "draft: all accepted" if r.accepted == len(r.draft) else "draft: some accepted"
    return "draft: none accepted" if r.accepted == 0 else whole


def _end(last: Round, ended: bool, full: bool) -> set[str]:
    """Where in its last round a generation ended: `ended` with an end token, `full` with all that were asked for."""
    if not ended:
        return {"draft: length reached"} if full else set()
    if last.accepted != len(last.tokens):
        return set()
    return {"draft: ends inside" if len(last.tokens) < len(last.draft) else "draft: ends at its last token"}


def _crosses(runs: Runs, length: int, drafted: int) -> bool:
    window = getattr(runs.scenario.config.get_text_config(decoder=True), "sliding_window", None)
    return isinstance(window, int) and length <= window < length + drafted
