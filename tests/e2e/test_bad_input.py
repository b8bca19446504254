"""What is wrong is one line on stderr and exit 2, and nothing ran."""

import json

import pytest
from command import PYTEST, call
from toolbox import small_case

from conformance.case import Case

RUN = ("run", "--examples", "1", "-n", "0")


def refused(done, *said):
    assert done.returncode == 2, done.stdout + done.stderr
    for words in said:
        assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


OPTIONS = {
    "check": (("--checks", "repeatible"), "unknown check 'repeatible'; did you mean repeatable"),
    "architecture": (("--architectures", "lama"), "unknown architecture 'lama'; did you mean"),
    "glob of nothing": (("--architectures", "llama,zz*"), "unknown architecture 'zz*'"),
    "subject": (("--subject", "referense"), "unknown subject 'referense'; did you mean reference?"),
    "profile": (("--profile", "weekly"), "unknown profile 'weekly'; valid: pr, nightly"),
    "processes": (("-n", "many"), "-n is 'many', must be auto or a number from 0 to 256"),
    "too many processes": (("-n", "9999"), "-n is '9999'"),
    "examples": (("--examples", "0"), "--examples is 0, must be more than zero"),
    "both": (("--budget", "3"), "give --examples or --budget, not both"),
    "findings": (("--max-findings", "-1"), "--max-findings is -1"),
}


@pytest.mark.parametrize(("options", "said"), OPTIONS.values(), ids=OPTIONS)
def test_wrong_options(options, said, tmp_path):
    refused(call(tmp_path, *RUN, *options), said)
    assert list(tmp_path.iterdir()) == []


SUBJECTS = {
    "no such module": ("nowhere:Thing", "cannot load the subject 'nowhere:Thing'"),
    "no such object": ("zoo.subjects:Nothing", "cannot load the subject 'zoo.subjects:Nothing'"),
    "not a subject": ("json:JSONDecoder", "needs an attribute `name` and a method `generate`"),
}


@pytest.mark.e2e
@pytest.mark.parametrize(("subject", "said"), SUBJECTS.values(), ids=SUBJECTS)
def test_a_subject_that_cannot_be_used(subject, said, tmp_path):
    refused(call(tmp_path, *RUN, "--architectures", "llama", "--subject", subject, "--report", tmp_path / "r"), said)


def test_a_report_folder_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.touch()
    refused(call(tmp_path, *RUN, "--report", file / "report"), "cannot write the report folder")


def test_a_report_folder_that_holds_another_run(tmp_path):
    (tmp_path / "r" / "records").mkdir(parents=True)
    refused(call(tmp_path, *RUN, "--report", tmp_path / "r"), "holds an earlier run")


def broken_case(**changes):
    document = small_case().to_dict()
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        place[last] = value
    return json.dumps(document)


CASES = {
    "not JSON": ("{", "is not JSON"),
    "not a case": ("[1]", "holds a list"),
    "newer schema": (broken_case(schema_version=2), "schema_version is 2, written by a newer release"),
    "unknown field": (broken_case(settings__colour=1), "settings.colour"),
    "oversized value": (broken_case(settings__max_new_tokens=10**6), "settings.max_new_tokens"),
    "oversized size": (broken_case(model__config__hidden_size=4096), "hidden_size is 4096"),
    "no layers": (broken_case(model__config__num_hidden_layers=-1), "num_hidden_layers is -1, must be at least 1"),
    "size left at the release's default": (Case().to_json(), "vocab_size is 32000"),
    "oversized model": (
        broken_case(
            model__config__hidden_size=512, model__config__num_hidden_layers=16, model__config__intermediate_size=512
        ),
        "model.config makes a model of",
    ),
    "token beyond the vocabulary": (broken_case(prompt__rows=[[64]]), "prompt.rows holds token 64"),
    "unknown architecture": (broken_case(model__architecture="lama"), "unknown architecture 'lama'; did you mean"),
    "huge file": (" " * 300_000, "larger than"),
}


@pytest.mark.e2e
@pytest.mark.parametrize(("text", "said"), CASES.values(), ids=CASES)
def test_a_case_that_cannot_be_replayed(text, said, tmp_path):
    path = tmp_path / "case.json"
    path.write_text(text)
    refused(call(tmp_path, "replay", path), said)


def test_a_case_that_is_not_there(tmp_path):
    refused(call(tmp_path, "replay", tmp_path / "none"), "neither a case file nor the folder of a finding")


@pytest.mark.e2e
def test_a_check_that_the_case_does_not_know(tmp_path):
    path = tmp_path / "case.json"
    path.write_text(small_case().to_json())
    refused(call(tmp_path, "replay", path, "--checks", "repeatable"), "unknown check of the family cached 'repeatable'")


@pytest.mark.e2e
def test_explaining_what_is_not_there(tmp_path):
    refused(call(tmp_path, "explain", "repeatible"), "did you mean repeatable")
    refused(call(tmp_path, "explain", tmp_path), "holds no finding.md")


def test_listing_what_is_not_there(tmp_path):
    refused(call(tmp_path, "list", "check"), "unknown listing 'check'; did you mean checks?")


@pytest.mark.e2e
def test_pytest_says_it_too(tmp_path):
    done = call(
        tmp_path,
        "--pyargs",
        "conformance.suite",
        "-p",
        "no:cacheprovider",
        "--conformance-checks",
        "repeatible",
        entry=PYTEST,
    )
    assert done.returncode in (2, 4)  # pytest's own codes for an error while collecting, and for wrong use
    assert "unknown check 'repeatible'; did you mean repeatable" in done.stdout + done.stderr
