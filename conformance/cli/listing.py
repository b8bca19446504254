"""`conformance list`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from conformance.architectures.own_generate import DRAWN, why_not
from conformance.cli import app
from conformance.errors import BadInput, unknown
from conformance.globs import select_checks
from conformance.reporting.columns import print_table

Entry = dict[str, Any]
ONLY_JSON = ("stands_on",)  # too long for a line


@app.command(name="list")
def list_things(
    what: Annotated[str, typer.Argument(help="checks, architectures or subjects")],
    only: Annotated[str | None, typer.Argument(help="Of checks: names by globs, or family:NAME, by commas.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """What there is to choose from."""
    if what not in LISTINGS:
        raise unknown("listing", what, LISTINGS)
    if only is not None and what != "checks":
        raise BadInput(f"{only!r} selects checks; {what} are listed whole")
    entries = LISTINGS[what]()
    if only is not None:
        chosen = select_checks(only, {entry["name"]: entry["family"] for entry in entries})
        entries = [entry for entry in entries if entry["name"] in chosen]
    if as_json:
        typer.echo(json.dumps(entries, indent=1))
        return
    shown = [{name: value for name, value in entry.items() if name not in ONLY_JSON} for entry in entries]
    print_table(Console(), [tuple(shown[0]), *map(row, shown)])


def row(entry: Entry) -> tuple[str, ...]:
    """The values of an entry in words."""
    return tuple(map(_cell, entry.values()))


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def checks() -> list[Entry]:
    """Every check, by family, with the profile that runs it unnamed, its lower rungs and its rule in a line."""
    from conformance import registry

    families = registry.families()
    return [
        {
            "name": c.name,
            "family": c.family,
            "profile": "nightly" if families[c.family].nightly else "every",
            "stands_on": list(c.stands_on),
            "rule": c.document.strip().splitlines()[0],
        }
        for c in sorted(registry.checks().values(), key=lambda check: (check.family, check.name))
    ]


def subjects() -> list[Entry]:
    """The built-in subjects, and how to name one's own."""
    from conformance.subjects import BUILT_IN

    own = {"name": "module:object", "what": "your own: an attribute `name` and a method `generate`"}
    return [{"name": name, "what": place} for name, place in BUILT_IN.items()] + [own]


def architectures() -> list[Entry]:
    """Every type of the installed release: whether it builds, the cache kinds it reaches and its size, or why not."""
    from conformance import upstream
    from conformance.architectures import catalogue
    from conformance.architectures.own_generate import own_generate

    upstream.quiet()
    typer.echo("trying each type once: about a minute", err=True)
    listed = [architecture(name) for name in catalogue.names()]
    known = {catalogue.get(name).class_name for name in catalogue.names()}
    own = {folder: [c for c in classes if c not in known] for folder, classes in own_generate().items()}
    return listed + [by_itself(folder, classes) for folder, classes in own.items() if classes]


def by_itself(folder: str, classes: list[str]) -> Entry:
    """The entry of a model's classes that are in no mapping and decode by a `generate` of their own."""
    told = [f"{name}: {why_not(name) or DRAWN}" for name in classes]
    reason = "a `generate` of their own; " + "; ".join(told)
    return {"name": f"{folder}:own", "buildable": False, "cache_kinds": [], "parameters": None, "reason": reason}


def architecture(name: str) -> Entry:
    """One type's entry: name, buildable, cache_kinds, parameters, reason."""
    from conformance.architectures.capabilities import build_model, capabilities
    from conformance.architectures.cells import reachable
    from conformance.architectures.shrink import tiny_config

    can = capabilities(name)
    entry: Entry = {
        "name": name,
        "buildable": can.buildable,
        "cache_kinds": [],
        "parameters": None,
        "reason": can.reason,
    }
    if can.buildable:
        settings = tiny_config(name)
        entry["cache_kinds"] = [*reachable(name), *(["static"] if can.static_cache else [])]
        entry["parameters"] = sum(p.numel() for p in build_model(name, settings).parameters())
    return entry


LISTINGS: dict[str, Callable[[], list[Entry]]] = {
    "checks": checks,
    "architectures": architectures,
    "subjects": subjects,
}
