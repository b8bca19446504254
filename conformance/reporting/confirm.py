"""Execute the script of every finding in a process that has nothing of the run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

from conformance.findings import Findings
from conformance.reporting import forking
from conformance.reporting.page import write_page

FAULT = 1  # the exit code of a script that met the fault
LOST = -1  # the helper itself ended
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
WORDS = {
    0: "the script did not meet the fault",
    FAULT: "the script met the fault",
    2: "the script could not run",
    forking.RAISED: "the script raised",
    forking.TIMED_OUT: "the script took too long and was killed",
    LOST: "the process that should run the script ended",
}


Tell = Callable[[int, int], None]


def untold(number: int, total: int) -> None:
    """For who does not want to know how far it is, or a script's number and code."""


def confirm(folder: Path, processes: int = 2, timeout: float = 120.0, tell: Tell = untold) -> dict[str, bool]:
    """Run the script of every finding of the run in `folder`; finding → whether the fault showed again.

    What a script printed is left in `repro.txt` beside it, and the answer in the finding and on its page. A script
    that took longer than `timeout` seconds, could not run or is missing confirms nothing. `tell` is called, in whatever
    thread, with the number of a script and how many there are, before it runs. Each answer is written down when it is
    there, so that an interrupt loses none.
    """
    findings = Findings(folder)
    known = list(findings)

    def answer(number: int, code: int) -> None:
        finding = replace(known[number], confirmed=code == FAULT)
        findings.update(finding)
        write_page(folder, finding)

    scripts = [(findings.folder / finding.id / "repro.py").resolve() for finding in known]
    codes = run_scripts(scripts, processes, timeout, tell, answer)
    return {finding.id: code == FAULT for finding, code in zip(known, codes, strict=True)}


def run_scripts(
    scripts: list[Path], processes: int, timeout: float, tell: Tell = untold, answer: Tell = untold
) -> list[int]:
    """The exit codes of scripts, in their order; what each printed goes to a text file beside it.

    `answer` is called, in whatever thread, with the place of a script and its code, but of none that an interrupt ends.
    """
    interrupted = Event()
    waiting, codes = iter(enumerate(scripts)), [LOST] * len(scripts)
    with ThreadPoolExecutor(max(1, processes)) as pool, ExitStack() as helpers:

        def work() -> None:
            process: subprocess.Popen[str] | None = None
            while (turn := next(waiting, None)) is not None:
                number, script = turn
                tell(number + 1, len(scripts))
                process = process or helpers.enter_context(helper())
                codes[number] = run_one(process, script, timeout)
                process = None if codes[number] == LOST else process
                if not interrupted.is_set():
                    answer(number, codes[number])

        try:
            for done in [pool.submit(work) for _ in range(min(max(1, processes), len(scripts)))]:
                done.result()
        except KeyboardInterrupt:
            interrupted.set()
            list(waiting)  # no further one is begun
            raise
    return codes


def run_one(process: subprocess.Popen[str], script: Path, timeout: float) -> int:
    """The exit code of a script, run by a `helper`; what it printed goes to a text file beside it."""
    output = script.with_suffix(".txt")
    output.write_text("", encoding="utf-8")
    request = {"script": str(script), "output": str(output), "limit": timeout}
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
    except (OSError, ValueError):
        code = LOST
    with output.open("a", encoding="utf-8") as printed:
        printed.write(f"exit code {code}: {WORDS.get(code, 'the script ended otherwise')}\n")
    return code


@contextmanager
def helper() -> Iterator[subprocess.Popen[str]]:
    """A fresh interpreter that runs scripts in children of its own; ended with the block."""
    command = [sys.executable, str(Path(forking.__file__))]
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
