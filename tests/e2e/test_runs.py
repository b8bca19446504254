"""Whole runs, as a user starts them."""

import contextlib
import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command import PYTEST, TESTS, call, start, summary, verdicts
from toolbox import CHECKS_OF, small_case

from conformance.case import read_case

LLAMA = ("--architectures", "llama")


def test_a_run_of_the_reference_leaves_its_report(tmp_path):
    report = tmp_path / "report"
    plain = ("--checks", ",".join((*CHECKS_OF["cached"], *CHECKS_OF["purity"])))
    options = (*LLAMA, *plain, "--subject", "reference", "--examples", "3", "-n", "0", "--report", report)
    done = call(tmp_path, "run", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found" in done.stdout
    made = summary(report)
    assert (made["cases"], made["exit_code"], made["findings"], made["subject"]) == (6, 0, [], "reference")
    assert made["items"] == {"broken": 0, "ran": 2, "with findings": 0}
    assert len(verdicts(report)) == 8
    assert [path.name for path in (report / "records").iterdir()] == ["main.ndjson"]
    assert len(list(ET.parse(report / "junit.xml").iter("testcase"))) == 2


@pytest.mark.e2e
def test_a_broken_subject_is_found_and_its_finding_replays(tmp_path):
    report, subject = tmp_path / "report", "zoo.streaming:StreamsTwice"
    options = (*LLAMA, "--checks", "streamer*", "--examples", "5", "-n", "0", "--fresh", "--report", report)
    done = call(tmp_path, "run", "--subject", subject, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = summary(report)["findings"]
    assert (found["check"], found["first_seen"]) == ("streamer-sees-the-sequence", "random")
    folder = report / "findings" / found["id"]
    assert {"case.json", "finding.json", "finding.md", "repro.py"} <= {path.name for path in folder.iterdir()}
    assert found["id"] in done.stdout

    (told,) = (shlex.split(line) for line in done.stdout.splitlines() if "conformance replay" in line)
    assert told[:3] == [f"PYTHONPATH={TESTS}", "conformance", "replay"]  # the folder that is on the path of `call`
    as_found = call(tmp_path / "report", *told[2:])
    named = call(tmp_path, "replay", folder / "case.json", "--subject", subject, "--show")
    healthy = call(tmp_path, "replay", folder, "--subject", "installed")
    assert [as_found.returncode, named.returncode, healthy.returncode] == [1, 1, 0], as_found.stdout + as_found.stderr
    assert "streamed" in named.stdout
    assert read_case(folder / "case.json").model.architecture == "llama"
    explained = call(tmp_path, "explain", folder)
    assert explained.returncode == 0
    assert "streamer-sees-the-sequence" in explained.stdout


@pytest.mark.e2e
def test_the_same_seed_gives_the_same_cases_and_verdicts_for_any_number_of_processes(tmp_path):
    found = []
    for name, processes in (("none", 0), ("again", 0), ("two", 2)):
        report = tmp_path / name
        options = ("--architectures", "llama,gpt2,mistral", "--examples", "4", "--seed", "11", "--fresh")
        done = call(tmp_path, "run", *options, "--subject", "reference", "-n", processes, "--report", report)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(verdicts(report))
    assert found[0] == found[1] == found[2]
    assert len({item for item, *_ in found[0]}) == 6
    assert sum(counted for _, _, counted, _ in found[0]) == 24


BROKEN = """
import conformance.plugin
conformance.plugin.plan = lambda options: {}["no such thing"]
from conformance.cli import main
main()
"""


@pytest.mark.e2e
def test_a_suite_that_cannot_be_collected_says_why(tmp_path):
    done = call(tmp_path, "run", *LLAMA, "--examples", 1, "-n", 0, entry=[sys.executable, "-c", BROKEN])
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "  E   KeyError: 'no such thing'"


def wait_for_cases(report: Path, count: int, limit: float = 120) -> None:
    deadline = time.time() + limit
    while time.time() < deadline:
        shards = list((report / "records").glob("*.ndjson"))
        if sum(shard.read_text().count('"record": "case"') for shard in shards) >= count:
            return
        time.sleep(0.1)
    raise AssertionError(f"no {count} cases within {limit} s")


@pytest.mark.e2e
@pytest.mark.parametrize("processes", [0, 2])
def test_an_interrupted_run_keeps_what_it_has(processes, tmp_path):
    report = tmp_path / "report"
    run = start(
        tmp_path,
        "run",
        *LLAMA,
        "--subject",
        "reference",
        "--budget",
        "90",
        "-n",
        processes,
        "--fresh",
        "--report",
        report,
    )
    try:
        wait_for_cases(report, 30)  # the first items import what they need, and some imports swallow an interrupt
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=60)
    finally:
        end(run)
    assert run.returncode == 130, output
    made = summary(report)
    assert made["interrupted"]
    assert made["cases"] >= 1


def end(run) -> None:
    """Leave no process behind, whatever happened."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.communicate()


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.e2e
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
def test_a_killed_worker_takes_nothing_but_its_own_case_along(tmp_path):
    report = tmp_path / "report"
    options = (
        "--architectures",
        "llama,gpt2,mistral,qwen2",
        "--examples",
        "12",
        "-n",
        2,
        "--fresh",
        "--report",
        report,
    )
    run = start(tmp_path, "run", "--subject", "reference", *options)
    try:
        wait_for_cases(report, 10)
        before = len(verdicts(report))
        os.kill(children(run.pid)[0], signal.SIGKILL)
        output, _ = run.communicate(timeout=200)
    finally:
        end(run)
    made = summary(report)
    assert (run.returncode, made["exit_code"]) == (3, 3), output
    assert len(made["died"]) == 1
    assert len(verdicts(report)) > before
    assert made["items"]["ran"] >= 7


@pytest.mark.e2e
def test_a_budget_holds_and_leaves_the_rest_out(tmp_path):
    report = tmp_path / "report"
    started = time.time()
    done = call(tmp_path, "run", "--subject", "reference", "--budget", "8", "-n", "0", "--fresh", "--report", report)
    assert time.time() - started < 8 * 1.1 + 20  # 10 % and the start
    made = summary(report)
    assert done.returncode == made["exit_code"] == 0, done.stdout
    assert made["items"]["deselected: budget"] > 50
    assert f" items ran, {made['items']['deselected: budget']} left out by the budget" in done.stdout
    assert made["cases"] >= 1


@pytest.mark.e2e
def test_a_number_of_findings_is_enough(tmp_path):
    report = tmp_path / "report"
    options = ("--architectures", "llama,gpt2,qwen2", "--checks", "streamer*", "--max-findings", "1", "--fresh")
    done = call(
        tmp_path,
        "run",
        "--subject",
        "zoo.streaming:StreamsTwice",
        "--examples",
        "2",
        "-n",
        "0",
        *options,
        "--report",
        report,
    )
    assert done.returncode == 1
    made = summary(report)
    assert made["items"]["deselected: max-findings"] == 2


@pytest.mark.e2e
def test_failing_cases_are_met_first_by_the_next_run(tmp_path):
    options = (
        "run",
        *LLAMA,
        "--checks",
        "streamer*",
        "--examples",
        "2",
        "-n",
        "0",
        "--subject",
        "zoo.streaming:StreamsTwice",
    )
    assert call(tmp_path, *options, "--report", tmp_path / "one").returncode == 1
    assert call(tmp_path, *options, "--report", tmp_path / "two").returncode == 1
    assert [made["findings"][0]["first_seen"] for made in (summary(tmp_path / "one"), summary(tmp_path / "two"))] == [
        "random",
        "database",
    ]
    assert call(tmp_path, *options, "--fresh", "--report", tmp_path / "three").returncode == 1
    assert summary(tmp_path / "three")["findings"][0]["first_seen"] == "random"


@pytest.mark.e2e
def test_the_suite_runs_under_pytest_itself(tmp_path):
    report = tmp_path / "report"
    options = {
        "checks": "repeatable,cached*",
        "architectures": "llama,gpt2",
        "subject": "reference",
        "examples": 2,
        "report": report,
    }
    words = [f"--conformance-{name}={value}" for name, value in options.items()]
    done = call(tmp_path, "--pyargs", "conformance.suite", "-n", 2, "-p", "no:cacheprovider", *words, entry=PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert "conformance: 8 cases, 0 findings, exit 0" in done.stdout
    assert summary(report)["cases"] == 8


@pytest.mark.e2e
def test_the_suite_under_pytest_is_red_for_a_broken_subject(tmp_path):
    options = {
        "checks": "streamer*",
        "architectures": "llama",
        "subject": "zoo.streaming:StreamsTwice",
        "examples": 2,
        "report": tmp_path / "r",
    }
    words = [f"--conformance-{name}={value}" for name, value in options.items()]
    done = call(
        tmp_path, "--pyargs", "conformance.suite", "-p", "no:cacheprovider", "--conformance-fresh", *words, entry=PYTEST
    )
    assert done.returncode == 1
    assert "conformance replay" in done.stdout


@pytest.mark.e2e
@pytest.mark.parametrize("source", ["file", "folder"])
def test_a_passing_case_replays_with_zero(source, tmp_path):
    path = tmp_path / "case.json"
    path.write_text(small_case(rows=((3, 4), (5,))).to_json())
    done = call(tmp_path, "replay", path if source == "file" else tmp_path, "--show")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cached-matches-recomputed" in done.stdout


@pytest.mark.e2e
def test_another_model_under_the_same_case_is_not_applicable(tmp_path):
    path = tmp_path / "case.json"
    path.write_text(small_case().replace(fingerprint="another").to_json())
    done = call(tmp_path, "replay", path)
    assert done.returncode == 4
    assert "NOT APPLICABLE: the model differs" in done.stdout


@pytest.mark.e2e
def test_listings_are_read_by_machines(tmp_path):
    checks = json.loads(call(tmp_path, "list", "checks", "--json").stdout)
    assert {"repeatable", "cached-matches-recomputed"} <= {entry["name"] for entry in checks}
    assert {entry["family"] for entry in checks if entry["profile"] == "nightly"} == {"sampling"}
    assert {"installed", "reference"} <= {
        entry["name"] for entry in json.loads(call(tmp_path, "list", "subjects", "--json").stdout)
    }


@pytest.mark.e2e
def test_a_check_is_explained(tmp_path):
    done = call(tmp_path, "explain", "static-matches-dynamic")
    assert done.returncode == 0
    assert "Rungs below: cached-matches-recomputed, padded-row-matches-alone" in done.stdout


@pytest.mark.e2e
def test_the_doctor_names_versions_and_what_is_missing(tmp_path):
    done = call(tmp_path, "doctor")
    assert done.returncode == 0
    assert {"python", "torch", "transformers"} <= {line.split()[0] for line in done.stdout.splitlines()}
