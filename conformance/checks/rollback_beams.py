"""Beam search: that it moves every state, which beams it chooses of those that it scored, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import torch

from conformance.call import Call
from conformance.checks.rollback import BELOW, ROLLBACK, is_op, of_steps, silently_wrong, together, usable
from conformance.clock import MODEL_CODE
from conformance.compare import compare_exactly, compare_steps, crash_difference, unnumbered
from conformance.limits import time_limit
from conformance.outcome import Crash
from conformance.programs.beam_choice import Beam, Row, chosen
from conformance.programs.beams import Search, beams_against_rescoring
from conformance.programs.own_caches import not_the_subjects
from conformance.programs.prepared import Raised, plain_call
from conformance.registry import applies, check, guarded
from conformance.runs import Runs
from conformance.seeding import seed_everything
from conformance.subjects import BUILT_IN
from conformance.verdicts import Comparison, Difference


def _has_beams(runs: Runs) -> bool:
    return getattr(runs.case.plan, "beams", 1) > 1


@check(ROLLBACK, stands_on=(*BELOW, "beams-score-their-sequences"), script="rollback")
@usable
def beams_reorder_every_state(runs: Runs) -> Comparison:
    """Reordering rows moves every state of every layer, and a beam's score is that of its tokens.

    Each sequence that beam search returns is scored again by recomputing everything without a cache.
    """
    return together(of_steps(runs, silently_wrong, is_op("reorder")), beams_against_rescoring(runs))


@check(ROLLBACK)
@guarded(not_the_subjects)
@applies("the plan has no beams", _has_beams)
def beams_follow_their_scores(runs: Runs) -> Comparison:
    """Of the candidates that it scored a search returns the best: their tokens, scores and places, filled up with pad.

    The choice is made once more from the scores that came with the sequences, one row after the other.
    """
    search, settings = Search.of(runs), runs.case.settings
    output = search.output()
    if isinstance(output, Raised):
        return Comparison(not_applicable="the search raises")
    if getattr(output, "beam_indices", None) is None:
        return Comparison(not_applicable="this type's own generate tells no places of beams")
    if getattr(output, "sequences_scores", None) is None or not output.scores:
        return Comparison(not_applicable="this type's own generate tells no scores of beams")
    if search.how.sampled and search.model_draws():
        return Comparison(not_applicable="the model draws random numbers itself, between those of the beams")
    with torch.random.fork_rng(devices=[]):
        seed_everything(0)
        rows, steps = chosen(output.scores, len(search.rows), search.beams, search.how, settings.max_new_tokens)
    if any(row.tied for row in rows):
        return Comparison(ties=["two candidates have the same score"])
    if steps != len(output.scores):
        wanted = f"{steps} steps" if steps < len(output.scores) else "to go on"
        return Comparison.of(Difference("length", "scores", wanted, f"{len(output.scores)} steps", "beam search"))
    result = Comparison()
    for row in rows:
        result += _row(search, row, output)
    return result


def _row(search: Search, row: Row, output: Any) -> Comparison:
    first = row.number * search.returned
    wanted = row.ended[: search.returned]
    told = output.sequences_scores[first : first + search.returned]
    result = compare_steps(
        "sequences_scores", [told], [torch.tensor([beam.score for beam in wanted])], lambda _: 0.0, f"row {row.number} "
    )
    for beam, index in zip(wanted, range(first, first + search.returned), strict=True):
        if not result.differences:
            tokens, path = output.sequences[index, search.start :].tolist(), output.beam_indices[index].tolist()
            result += _sequence(search, beam, tokens, path, f"row {row.number} beam {index - first}")
    return result


def _sequence(search: Search, beam: Beam, tokens: list[int], path: list[int], where: str) -> Comparison:
    length = len(beam.tokens)
    told = {
        "sequences": (list(beam.tokens), tokens[:length]),
        "beam_indices": (list(beam.path), path[:length]),
        "beam_indices after the end": ([-1] * (len(path) - length), path[length:]),
        "padding": ([search.how.pad] * (len(tokens) - length), tokens[length:]),
    }
    for name, (wanted, got) in told.items():
        if wanted != got:
            return Comparison.of(Difference("tokens", name, str(wanted), str(got), where))
    return Comparison()


@check(ROLLBACK)
@applies("the search and its cache are the release's own", lambda runs: runs.subject.name in BUILT_IN)
@applies("the plan has no beams", _has_beams)
@applies("the type has no encoder", lambda runs: runs.scenario.encoder_decoder)
def beams_leave_the_encoding_alone(runs: Runs) -> Comparison:
    """What a caller's encoder gave is not changed by a search that is given it, and means what its input means."""
    search, model = Search.of(runs), runs.scenario.model()
    call = plain_call(runs, search.chosen, **search.how.asked_for(search.beams))
    plain = _generated(runs.scenario.model(), call)
    if isinstance(plain, Crash):
        return Comparison(not_applicable=f"the search raises without it: {plain}"[:200])
    given = _encoded(model, call)
    if isinstance(given, Crash) or not hasattr(given, "items"):
        return Comparison(not_applicable=f"the encoder alone raises, or gives another kind of output: {given}"[:200])
    before = {name: value.clone() for name, value in given.items() if isinstance(value, torch.Tensor)}
    inputs = {name: value for name, value in call.inputs.items() if name != "input_ids"}
    output = _generated(model, call.replace(inputs={**inputs, "encoder_outputs": given}))
    if isinstance(output, Crash):
        return crash_difference(output, "the search works on what the encoder was given")
    after = {name: given[name] for name in before}
    changed = compare_exactly(after, before, lambda path: f"encoder_outputs.{unnumbered(path)}")
    return changed + _same_scores(plain, output, search)


def _encoded(model: Any, call: Call) -> Any:
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit():
            inputs = {name: call.inputs[name] for name in ("input_ids", "attention_mask")}
            return model.get_encoder()(**inputs, return_dict=True)
    except Exception as error:  # noqa: BLE001 - the model under test may raise anything
        return Crash.of(error)


def _generated(model: Any, call: Call) -> Any:
    try:
        with torch.no_grad(), MODEL_CODE.running(), time_limit(), torch.random.fork_rng(devices=[]):
            seed_everything(0)
            return model.generate(**call.arguments())
    except Exception as error:  # noqa: BLE001 - the model under test may raise anything
        return Crash.of(error)


def _same_scores(plain: Any, output: Any, search: Search) -> Comparison:
    """Not of drawn beams: a number that is off by rounding may be another draw."""
    if search.how.sampled or getattr(plain, "sequences_scores", None) is None:
        return Comparison()
    scores, got = ([told.sequences_scores] for told in (plain, output))
    return compare_steps("sequences_scores", got, scores, lambda _: 0.0, "given the encoding, ", search.runs.bound)
