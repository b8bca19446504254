"""Threads that share one generation config, each with models of its own."""

import threading

import pytest
import torch
from toolbox import small_case

from conformance.architectures.shrink import tiny_config
from conformance.build import Scenario
from conformance.snapshots import changes, snapshot
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

THREADS = 4
SMALL = {**tiny_config("llama"), "num_hidden_layers": 1}


def together(scenario, subject, assisted, rounds):
    """The sequences that each thread got, round by round, and what became of the config."""
    call = scenario.call(output_scores=False, output_logits=False).replace(mechanism="special_tokens")
    calls = [call.replace(extras={"assistant_model": scenario.model()} if assisted else {}) for _ in range(THREADS)]
    models, got = [scenario.model() for _ in calls], [[] for _ in calls]
    before = snapshot(vars(call.generation_config)) | {"json": call.generation_config.to_json_string()}

    def work(number):
        with torch.no_grad():
            for _ in range(rounds):
                got[number].append(subject.generate(models[number], calls[number]).sequences.tolist())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = snapshot(vars(call.generation_config)) | {"json": call.generation_config.to_json_string()}
    return got, changes(before, after)


def alike(subject, assisted, rounds):
    scenario = Scenario(small_case(config=SMALL, max_new_tokens=3, eos=(7, 9), pad=None))
    with torch.no_grad():
        alone = subject.generate(scenario.model(), scenario.call()).sequences.tolist()
    got, changed = together(scenario, subject, assisted, rounds)
    assert changed == {}
    assert got == [[alone] * rounds] * THREADS


@pytest.mark.parametrize("assisted", [False, True])
@pytest.mark.parametrize("subject", [Installed(), Reference()], ids=lambda subject: subject.name)
def test_threads_that_share_a_config(subject, assisted):
    alike(subject, assisted, rounds=5)


@pytest.mark.slow
@pytest.mark.parametrize("assisted", [False, True])
def test_threads_that_share_a_config_for_a_thousand_rounds(assisted):
    alike(Reference(), assisted, rounds=1000)
