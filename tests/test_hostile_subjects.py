"""Subjects, findings and files of strangers: whatever they do is told, and nothing is lost."""

import json
import os
import sys

import pytest
from toolbox import search_in, small_case
from zoo import subjects

from conformance.case import read_case
from conformance.cli.replay import found_with
from conformance.errors import BadInput, CaseRefused
from conformance.findings import Findings
from conformance.judge import judge
from conformance.plans.special_tokens import Id, SpecialTokensPlan
from conformance.records import orphans, read
from conformance.reference.special_tokens import FIELDS
from conformance.subjects import load, place_of
from conformance.subjects.installed import Installed

CACHED = "cached-matches-recomputed"


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("not to be told")


class Raising(Installed):
    name = "raising"

    def __init__(self, error):
        self.error = error

    def generate(self, *_):
        self.fail()

    def fail(self):
        """Elsewhere than others raise: two that raise one type in one function are alike."""
        raise self.error


ERRORS = {
    type(error).__name__: error for error in (SystemExit(0), GeneratorExit(), Unspeakable(), ValueError("\ud800"))
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_whatever_a_subject_raises_is_a_failure(error):
    verdict = judge(small_case(), [CACHED], Raising(error)).verdicts[CACHED]
    assert verdict.status == "fail"
    assert verdict.differences[0].got.startswith(type(error).__name__)
    verdict.differences[0].got.encode()


class CannotRecord(Installed):
    """A release that raises, and for another reason where attentions are asked for."""

    told = "alike"

    def generate(self, _, call):
        raise AttributeError("no attentions") if call.generation_config.output_attentions else ValueError(self.told)


@pytest.mark.parametrize(("told", "status"), [("alike", "blocked-by"), ("otherwise", "fail")])
def test_a_release_that_cannot_record_is_asked_without_records(told, status, monkeypatch):
    monkeypatch.setattr("conformance.judge.Installed", CannotRecord)
    monkeypatch.setattr(CannotRecord, "told", told)
    case = small_case(output_attentions=True)
    assert judge(case, [CACHED], Raising(ValueError("alike"))).verdicts[CACHED].status == status


class Returning(Installed):
    name = "returning"

    def __init__(self, change):
        self.change = change

    def generate(self, model, call):
        output = super().generate(model, call)
        self.change(output)
        return output


NONSENSE = {
    "fractions": lambda out: setattr(out, "sequences", out.sequences.float()),
    "one row without a batch": lambda out: setattr(out, "sequences", out.sequences[0]),
    "no rows": lambda out: setattr(out, "sequences", out.sequences[:0]),
    "on meta": lambda out: setattr(out, "sequences", out.sequences.to("meta")),
    "a list": lambda out: setattr(out, "sequences", out.sequences.tolist()),
    "logits of text": lambda out: setattr(out, "logits", ("abc",) * len(out.logits)),
    "logits without rows": lambda out: setattr(out, "logits", tuple(step[0] for step in out.logits)),
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_that_is_returned_is_a_failure(change):
    verdict = judge(small_case(), [CACHED], Returning(change)).verdicts[CACHED]
    assert verdict.status == "fail"
    assert "generate returned" in verdict.differences[0].got


GENERATES = "def generate(self, model, call): ..."
MODULES = {
    "exits": "import sys; sys.exit(0)",
    "wrong": "def Mine(:",
    "raises": "raise RuntimeError('no')",
    "wants_arguments": f"class Mine:\n    name = 'mine'\n    def __init__(self, size): ...\n    {GENERATES}",
    "no_method": "class Mine:\n    name, generate = 'mine', 5",
    "impostor": f"class Mine:\n    name = 'installed'\n    {GENERATES}",
}


@pytest.mark.parametrize("name", MODULES)
def test_a_subject_that_cannot_be_loaded_is_bad_input(name, tmp_path, monkeypatch):
    (tmp_path / f"subject_{name}.py").write_text(MODULES[name])
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match=f"subject_{name}:Mine"):
        load(f"subject_{name}:Mine")
    sys.modules.pop(f"subject_{name}", None)


def test_an_object_is_loaded_elsewhere_as_it_was_here(tmp_path, monkeypatch):
    source = "class Mine:\n    name = 'mine'\n    def __init__(self, size): self.size = size\n"
    source += "    def generate(self, model, call): ...\nmade = Mine(3)\n"
    (tmp_path / "subject_made.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert place_of(load("subject_made:made")) == "subject_made:made"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_plain_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "case.json")
    with pytest.raises(CaseRefused, match="no plain file"):
        read_case(tmp_path / "case.json")


def test_the_code_of_a_strangers_subject_runs_only_when_asked_for(tmp_path):
    (tmp_path / "finding.json").write_text(json.dumps({"subject": "evil:Subject"}))
    with pytest.raises(BadInput, match="--subject evil:Subject"):
        found_with(tmp_path)


def test_a_worker_that_died_while_it_wrote_is_no_orphans_loss(tmp_path):
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "gw0.current.json").write_text("")
    assert orphans(tmp_path) == []


def test_an_interrupt_while_shrinking_keeps_what_was_found(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    search = search_in(folder, subjects.DropsOldest(), examples=12, checks=[CACHED])
    monkeypatch.setattr(search, "_new_finding", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    kept = list(Findings(folder))
    assert {finding.signature.check for finding in kept} == {CACHED}
    search.recorder.close()
    failing = [record for record in read(folder) if "failing" in record]
    assert len(failing) == len({failure.index for failure in search.failures})


class Preparing(Installed):
    """Prepares special tokens as `prepare` does."""

    name = "preparing"

    def __init__(self, prepare):
        self.prepare = prepare

    def special_tokens(self, *_, **__):
        return self.prepare()


def quits():
    raise SystemExit(0)


@pytest.mark.parametrize("prepare", [quits, list, dict, lambda: dict.fromkeys(FIELDS, 2)])
def test_a_preparation_that_quits_or_returns_no_tensors_fails(prepare):
    check = "special-tokens-match-on-cpu"
    case = small_case(family="special_tokens", plan=SpecialTokensPlan(eos=Id(form="number", values=(2,))))
    assert judge(case, [check], Preparing(prepare)).verdicts[check].status == "fail"
