"""A finding as a page: what the rule is, what happened, the smallest case, and how to see it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance import upstream
from conformance.case import Case, Plan, plain
from conformance.errors import BadInput, NotBuildable
from conformance.files import write_atomically
from conformance.findings import Finding
from conformance.reporting.replay_line import path_of, replay_line
from conformance.reporting.repro import body_name, render_script
from conformance.reporting.templating import render
from conformance.reporting.wording import about, in_short, rule
from conformance.verdicts import in_words

SHOWN = ("transformers", "torch", "accelerate")


def render_page(finding: Finding, versions: dict[str, str]) -> str:
    """The page of a finding, in Markdown. `versions` are those that it was found with."""
    signature = finding.signature
    return render(
        "finding.md.j2",
        finding=finding,
        title=f"{signature.check} on {_about(finding)}: {in_words(signature.field, signature.kind)}",
        rule=rule(finding),
        in_short=in_short(finding),
        expected=" ".join(finding.expected.split()),
        got=" ".join(finding.got.split()),
        facts=facts(finding, versions),
        lines=case_lines(finding.case),
        replayed=replay_line(f"findings/{finding.id}", finding.subject),
        path=path_of(finding.subject),
        other_value=names_another_value(finding),
    )


def names_another_value(finding: Finding) -> bool:
    """Whether the script of a finding looks for a difference itself, so that it may come upon another one."""
    return finding.subject == "installed" and finding.signature.kind != "crash" and body_name(finding) is not None


def _about(finding: Finding) -> str:
    shown = f"any model with this cache (shown on {finding.case.model.architecture})"
    return shown if finding.signature.scope == "any" else finding.signature.scope


def facts(finding: Finding, versions: dict[str, str]) -> dict[str, str]:
    """What is known of a finding beside its case, by name; what there is nothing to say about is left out."""
    signature = finding.signature
    states = {True: "yes, in a fresh process", False: "no: its script did not meet it", None: "not tried"}
    known = {
        "Where": finding.where.strip(),
        "Raised in": signature.raised_in,
        "Scope": about(finding),
        "Cache": ", ".join(signature.cache),
        "Needs": ", ".join(signature.needs) or "nothing beyond the plainest settings",
        "Found with": ", ".join(f"{name} {versions[name]}" for name in SHOWN if name in versions),
        "Subject": finding.subject,
        "First seen": finding.first_seen,
        "Confirmed": states[finding.confirmed],
        "Kind": "" if finding.kind == "difference" else finding.kind,
        "Notes": "; ".join(finding.notes),
    }
    return {name: text for name, text in known.items() if text}


def case_lines(case: Case) -> list[tuple[str, str]]:
    """A case in lines for a reader: (what, value). Settings that are the plainest are left out."""
    model, settings = case.model, case.settings
    lines = [
        *_model_lines(case),
        ("weights", f"seed {model.weight_seed}, scale {model.init_scale:g}"),
        *((f"row {number}", f"{list(row)}") for number, row in enumerate(case.prompt.rows)),
        ("generate", _pairs({"max_new_tokens": settings.max_new_tokens, **_changed(settings)})),
    ]
    if isinstance(case.plan, Plan) and (planned := _changed(case.plan)):
        lines.append((case.family, _pairs(planned)))
    return lines


def _model_lines(case: Case) -> list[tuple[str, str]]:
    model, config = case.model, _pairs(plain(case.model.config))
    if case.model_name == model.architecture:
        return [("model", f"{model.architecture}, {model.dtype}, {model.attention} attention"), ("config", config)]
    own = f"a tiny one of its own; the type of the case ({model.architecture}) and its config are not used"
    return [("model", f"{case.model_name}, which decodes by itself, {model.dtype}"), ("config", own)]


def _changed(record: Any) -> dict[str, Any]:
    """The fields of a record that do not have their default."""
    fields = type(record).model_fields
    return {name: getattr(record, name) for name, field in fields.items() if getattr(record, name) != field.default}


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={list(value) if isinstance(value, tuple) else value}" for name, value in values.items())


def write_finding(folder: Path, finding: Finding) -> None:
    """Write `case.json`, `repro.py` and `finding.md` of a finding of the run in `folder`, under findings/<its id>.

    Where the installed release cannot make the case's config there is no script, and `repro.txt` says so; and where it
    cannot be written by a fault of ours, which must not lose what a run has found.
    """
    place = folder / "findings" / finding.id
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(place / "case.json", json.dumps(finding.case.to_dict(), indent=1, sort_keys=True) + "\n")
    write_page(folder, finding)
    try:
        write_atomically(place / "repro.py", render_script(finding))
    except Exception as error:  # noqa: BLE001 - the finding is there, whatever its script lacks
        why = str(error) if isinstance(error, BadInput | NotBuildable) else f"writing it failed: {error!r}"
        (place / "repro.py").unlink(missing_ok=True)
        write_atomically(place / "repro.txt", f"no script: {why}\n")


def write_page(folder: Path, finding: Finding) -> None:
    """Write `finding.md` of a finding of the run in `folder`; its folder has to exist."""
    page = render_page(finding, upstream.versions())
    write_atomically(folder / "findings" / finding.id / "finding.md", page)
