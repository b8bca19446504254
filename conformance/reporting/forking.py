"""Runs scripts for `confirm`, each in a child of a process that has imported torch and transformers already.

Started by its path, as a process of its own that knows nothing of this project. It reads one request a line, JSON
with the script, the file for its output and a limit in seconds, and answers each with a line: the exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
import traceback
from types import FrameType
from typing import NoReturn

RAISED, TIMED_OUT = 70, 124  # not 1, which says that the fault is there
PAUSE = 0.005


def warm_up() -> None:
    """Import what every script needs."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    # One model's module brings what those of the others share.
    _ = AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig, LlamaForCausalLM


def run(script: str, output: str, limit: float) -> int:
    """Run a script in a child and return its exit code, negative for a signal; one that takes too long is killed."""
    pid, end = os.fork(), time.monotonic() + limit
    if pid == 0:
        _become(script, output)
    ended, status = 0, 0
    try:
        while not ended and time.monotonic() < end:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                time.sleep(PAUSE)
    finally:
        if not ended:
            _kill(pid)
    return os.waitstatus_to_exitcode(status) if ended else TIMED_OUT


def _kill(pid: int) -> None:
    """End a child and all that it started: it leads a group of its own, unless it has not come so far."""
    for end in (os.killpg, os.kill):
        try:
            end(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(pid, 0)


def _become(script: str, output: str) -> NoReturn:
    """Be the script: its own process group, its folder, its output, its exit code."""
    code: object = 0
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(target, 1)
        os.dup2(target, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        os.chdir(os.path.dirname(script))  # noqa: PTH120 - scripts come by their absolute path
        sys.argv = [script]
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        code = stop.code
        if not isinstance(code, int | None):
            print(code, file=sys.stderr)  # noqa: T201 - as the interpreter does
    except BaseException:  # noqa: BLE001 - as the interpreter: whatever a script raises is printed and ends it
        traceback.print_exc()
        code = RAISED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Answer requests until there are no more."""

    def stop(_: int, __: FrameType | None) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, stop)
    # What libraries print while they are imported must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warm_up()
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(f"{run(request['script'], request['output'], request['limit'])}\n")
        answers.flush()


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules would come before those of the same name elsewhere
    main()
