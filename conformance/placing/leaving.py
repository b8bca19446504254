"""What placing has to leave as it was: what the caller gave, the files of the checkpoint, and the state of torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from conformance.outcome import rng_digest
from conformance.placing.recipe import Recipe
from conformance.process_state import process_state, switches_put_back
from conformance.seeding import seed_everything

SEED = 0x5EED0DD  # from which nobody else begins: who seeds anew is seen
DRAWN, SEEDED = "generator", "seed of the generator"
State = dict[str, str]


def with_own_dicts(recipe: Recipe) -> Recipe:
    """The same recipe, its map and its limits copies: whoever gets it may change them, and nobody is misled."""
    limits = None if recipe.max_memory is None else dict(recipe.max_memory)
    device_map = recipe.device_map if isinstance(recipe.device_map, str) else dict(recipe.device_map)
    return replace(recipe, device_map=device_map, max_memory=limits)


def changed_arguments(given: Recipe, handed: Recipe) -> State:
    """Which of the dicts that were handed over are no longer what was given, entries and their order, and how."""
    found = {}
    for name in ("device_map", "max_memory"):
        before, after = getattr(given, name), getattr(handed, name)
        if isinstance(before, Mapping) and list(before.items()) != list(after.items()):
            found[name] = f"{before} became {after}"
    return found


def torch_state() -> State:
    """What any code of the process finds in torch: its switches, and the generator of the CPU."""
    return {**process_state(), SEEDED: str(torch.initial_seed()), DRAWN: rng_digest()}


@contextmanager
def put_back(after: State) -> Iterator[State]:
    """torch's state put back at the end, whoever changed it; `after` gets what it was then. Begins from a seed."""
    with torch.random.fork_rng(devices=[]), switches_put_back():
        seed_everything(SEED)
        try:
            yield torch_state()
        finally:
            after |= torch_state()


@dataclass
class Left:
    """What was changed by the calls that were watched, by name: of what was given, and of torch.

    draws: loading without a placement draws numbers, where that was watched: a loader makes what a checkpoint lacks,
    such as a tied weight that it has under another name. On a device it draws from the generator of that.
    """

    given: State = field(default_factory=dict)
    torch: State = field(default_factory=dict)
    draws: bool = False

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Watches a loader that places nothing."""
        after: State = {}
        with put_back(after) as before:
            yield
        self.draws = before[DRAWN] != after[DRAWN]

    @contextmanager
    def watching(self, recipe: Recipe) -> Iterator[Recipe]:
        """Watches a planner or a placer, which is to be given this recipe's copy."""
        handed, after = with_own_dicts(recipe), State()
        before: State = {}
        try:
            with put_back(after) as before:
                yield handed
        finally:
            self.given |= changed_arguments(recipe, handed)
            self.torch |= {
                name: how for name, how in _changes(before, after).items() if name != DRAWN or not self.draws
            }


def _changes(before: State, after: State) -> State:
    """What is otherwise now, and how; of a generator that was seeded anew only that."""
    names = [name for name in before if name in after and before[name] != after[name]]
    return {name: "was drawn from" if name == DRAWN else f"{before[name]} became {after[name]}" for name in names}


def contents(folder: Path) -> State:
    """The files in a folder, by name, with a digest of what they hold."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def changed_files(before: State, after: State) -> State:
    """Which files are no longer what they were, and how."""
    found = dict.fromkeys(before.keys() - after.keys(), "was removed")
    found |= dict.fromkeys(after.keys() - before.keys(), "was added")
    found |= {name: "has other contents" for name in before.keys() & after.keys() if before[name] != after[name]}
    return dict(sorted(found.items()))
