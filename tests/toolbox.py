"""What several tests need: searches in a folder of their own, and small cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from conformance.architectures.shrink import tiny_config
from conformance.case import Case, ModelSpec, Prompt, Settings
from conformance.findings import Findings
from conformance.listing import families_of_checks, nightly_families
from conformance.options import PR_SEED, Options
from conformance.planning import Item
from conformance.records import Recorder
from conformance.search import Enough, Search
from conformance.store import Store
from conformance.strategies.cases import cases

CHECKS_OF = {
    family: tuple(name for name, its in families_of_checks().items() if its == family)
    for family in sorted(set(families_of_checks().values()))
}

# Families of which a case takes milliseconds; `test_sampling` is about the others.
EVERY_PROFILE = tuple(family for family in CHECKS_OF if family not in nightly_families())

# Families that the installed release fails by itself on the plainest type: family → why.
FAILS_ITSELF = {
    "tied": "pairs are resolved in one order only, and a second source of a weight is accepted",
    "stopping": "the step too many has no place in what fits exactly, and a cache without the word for it is asked",
    "placement": "a model on the disk takes no ids on model.device, and a stranded weight is not named",
    "prefill": "drafts onto a filled cache, chunks of embeddings, and stop conditions inside a draft",
    "special_tokens": "end tokens on `meta`, an empty list of them, and parameters without values",
    "rollback": "static and quantised layers of 5.24.0 lack batch operations, on every type",
}


def small_case(
    architecture: str = "llama", *, rows: Any = ((3, 4, 5),), family: str = "cached", plan: Any = None, **parts: Any
) -> Case:
    """A tiny valid case: `parts` are fields of the settings, or of the model."""
    model = {name: parts.pop(name) for name in set(parts) & set(ModelSpec.model_fields)}
    return Case(
        family=family,
        model=ModelSpec(**{"architecture": architecture, "config": tiny_config(architecture), **model}),
        prompt=Prompt(rows=rows),
        settings=Settings(**{"max_new_tokens": 4, **parts}),
        plan=plan,
    )


class UntilFound(Search):
    """A search that stops drawing as soon as one of the wanted checks fails."""

    wanted: frozenset[str] = frozenset()

    def _judge(self, *args: Any, **kwargs: Any) -> Any:
        judgement = super()._judge(*args, **kwargs)
        if self.wanted & set(judgement.failures()):
            raise Enough
        return judgement


def search_in(
    folder: Path,
    subject: Any,
    *,
    family: str = "cached",
    architecture: str = "llama",
    examples: int = 20,
    seed: int = PR_SEED,
    checks: Iterable[str] | None = None,
    store: Path | None = None,
    until: Iterable[str] = (),
    steered: Callable[[Case], Case] | None = None,
    name: str = "test",
) -> Search:
    """A search of one item that leaves its records and findings in `folder`; `until`: stop at their first failure.

    steered: what becomes of every drawn case.
    """
    chosen = CHECKS_OF[family] if checks is None else tuple(checks)
    options = Options(checks=chosen, architectures=(architecture,), examples=examples, report=str(folder), seed=seed)
    item = Item(family, architecture, 1)
    kind = UntilFound if until else Search
    made = kind(
        item,
        chosen,
        options,
        subject,
        Recorder(folder, name),
        Findings(folder),
        Store(store),
        lambda: cases(family, architecture).map(steered or (lambda case: case)),
    )
    if isinstance(made, UntilFound):
        made.wanted = frozenset(until)
    return made


def explored(*args: Any, **kwargs: Any) -> Search:
    """A search that drew and judged, and shrank nothing; its shard is closed."""
    search = search_in(*args, **kwargs)
    try:
        search._explore()
    finally:
        search.recorder.close()
    return search


def searched(*args: Any, **kwargs: Any) -> Search:
    """A whole search, findings included; its shard is closed."""
    search = search_in(*args, **kwargs)
    try:
        search.run()
    finally:
        search.recorder.close()
    return search


def in_a_process(script: str) -> subprocess.CompletedProcess[str]:
    """What a script printed, run in a process of its own that finds the modules of the tests."""
    process = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process
