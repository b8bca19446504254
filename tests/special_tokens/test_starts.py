"""What a decoding starts with: told as ids, and passed as tokens."""

import pytest
import torch
from toolbox import small_case

from conformance.checks.special_tokens_starting import special_tokens_start_a_decoding
from conformance.plans.special_tokens import Id, SpecialTokensPlan
from conformance.runs import Runs
from conformance.special_tokens.starts import left_out, passed, starting
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

ROWS = ((3, 4, 5), (6, 7))


def runs_of(architecture, subject=None, **plan):
    case = small_case(architecture, family="special_tokens", rows=ROWS, plan=SpecialTokensPlan(**plan))
    return Runs(case, subject or Installed())


@pytest.mark.parametrize(
    ("one", "tokens"),
    [
        (Id(form="list", values=(3, 4)), (3, 4)),
        (Id(form="tuple", values=(3,)), (3, 3)),
        (Id(form="tensor", values=(3, 4, 5), dtype="int8"), (3, 4)),
        (Id(form="scalar", values=(3,), device="meta"), (3, 3)),
        (Id(form="number", values=(-3,)), (3, 3)),
        (Id(), (9, 9)),
    ],
)
def test_a_decoder_starts_with_a_token_for_each_row(one, tokens):
    runs = runs_of("t5", decoder_start=one, bos=Id(form="list", values=(9, 8)))
    ids, found = starting(runs)
    assert found == tokens
    assert all(one.device == "cpu" and one.dtype in ("int64", "int32") for one in ids.values())
    assert passed(runs).inputs["decoder_input_ids"].tolist() == [[token] for token in tokens]
    assert not any(name.startswith("decoder_") for name in left_out(runs).inputs)


@pytest.mark.parametrize("keywords", [False, True])
def test_ids_are_told_by_config_or_by_keyword(keywords):
    call = left_out(runs_of("llama", keywords=keywords, bos=Id(form="number", values=(5,))))
    assert call.inputs == {}
    assert call.generation_config.bos_token_id == (None if keywords else 5)
    assert call.extras == ({"bos_token_id": 5} if keywords else {})


@pytest.mark.parametrize("subject", [Installed(), Reference()], ids=lambda subject: subject.name)
@pytest.mark.parametrize("mode", ["greedy", "beams"])
@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_both_start_alike_and_are_refused_without_a_token(architecture, mode, subject):
    start = Id(form="list", values=(3, 4))
    for ids, event in (({"bos": start, "decoder_start": start}, "start: bos"), ({}, "start: no token")):
        runs = runs_of(architecture, subject, mode=mode, **ids)
        with torch.no_grad():
            result = special_tokens_start_a_decoding(runs)
        assert not result.differences
        assert not result.not_applicable
        assert event in runs.events
