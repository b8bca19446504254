"""A finding as a script: `repro.py` needs torch, numpy and transformers, and nothing of this project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conformance import registry, upstream
from conformance.architectures import catalogue
from conformance.architectures.capabilities import facts
from conformance.build import Scenario
from conformance.case import Case
from conformance.compare import BOUND
from conformance.findings import Finding
from conformance.limits import CALL_SECONDS, TookTooLong
from conformance.reporting import pieces
from conformance.reporting.assigning import assignments
from conformance.reporting.case_source import constructor_arguments, set_fields
from conformance.reporting.replay_line import path_of
from conformance.reporting.source import WIDTH, arguments, broken, literal, wrapped
from conformance.reporting.templating import render
from conformance.reporting.weights_source import weights_source
from conformance.reporting.wording import document

MAX_LINES = 80
OWN_IMPORTS = (
    "import hashlib",
    "import sys",
    "import signal",
    "import traceback",
    "import numpy as np",
    "import torch",
)


def render_script(finding: Finding, versions: dict[str, str] | None = None) -> str:
    """The script of a finding: exits with 1 where the fault is there, 0 where not, 2 where it cannot run.

    It stands alone, unless what is tested is not transformers itself or the check has no body in `scripts/`. Raises
    NotBuildable or BadInput when the installed release cannot make the config of the finding's case.
    """
    versions = upstream.versions() if versions is None else versions
    name = body_name(finding)
    if finding.subject != "installed":
        path = path_of(finding.subject).strip()
        where = f", found with {path}" if path else ""
        return _replaying(finding, versions, f"what is tested is not transformers but `{finding.subject}`{where}")
    if name is None:
        what = "what this case asks for" if registry.get(finding.signature.check).script else "this check"
        return _replaying(finding, versions, f"{what} has no form that stands alone")
    script = _short_enough(_standing_alone(finding, versions, name), MAX_LINES + uncounted(name))
    return script or _replaying(finding, versions, f"on its own this script would be longer than {MAX_LINES} lines")


def uncounted(name: str) -> int:
    """Lines of the fixed blocks of a body that do not count: what stands for a device that is not there."""
    free = [part for part in pieces.gather(name) if part.says.get("UNCOUNTED")]
    return sum(len(text.splitlines()) + 1 for part in free for text in part.functions.values())


def _short_enough(script: str, most: int) -> str | None:
    """The script; if it has to be, with fewer blank lines, then without the docstrings of functions; or None."""
    while len(script.splitlines()) > most and "\n\n" in script:
        script = script.replace("\n\n", "\n", 1)
    bare = re.sub(r'(?m)^    """.*"""\n', "", script)
    return next((text for text in (script, bare) if len(text.splitlines()) <= most), None)


def body_name(finding: Finding) -> str | None:
    """The body in `scripts/` that shows the finding, or None where none does."""
    check, field = finding.signature.check, finding.signature.field
    script, case = registry.get(check).script, finding.case
    criteria = case.settings.row_stops or case.settings.stop or case.settings.stop_at  # objects of the harness
    # Turns bring images one after the other, and a preparation of a type's own takes none.
    turns = bool(getattr(case.plan, "turns", None))
    seen = bool(case.prompt.images) and (turns or recompute_of(case) == "recompute_prepared")
    replayed = criteria or seen or case.model.tied or (case.plan and not case.plan.stands_alone())
    if script not in pieces.names() or replayed:
        return None
    instead = pieces.piece(script).says.get("INSTEAD", {})
    script = next((body for word, body in instead.items() if finding.where.startswith(word) or field == word), script)
    says = pieces.piece(script).says
    unseen = field.startswith(tuple(says.get("UNSEEN", ()))) or not _shows(
        says, finding.case.plan, finding.signature.check
    )
    return None if unseen else script


def _shows(says: Mapping[str, Any], plan: Any, check: str) -> bool:
    """Whether a body shows all that a plan asks for."""
    if plan is None:
        return True
    plainest, beyond = type(plan)(), says.get("BEYOND", ())
    asked = {name for name in type(plan).model_fields if getattr(plan, name) != getattr(plainest, name)}
    unseen = beyond[check] if isinstance(beyond, dict) else beyond
    return not asked & set(unseen)


def _standing_alone(finding: Finding, versions: dict[str, str], name: str) -> str:
    case, key = finding.case, finding.signature
    scenario, parts = Scenario(case), pieces.gather(name, _forms(finding))
    auto = catalogue.auto_class(scenario.architecture.task).__name__
    raises, _, place = key.raised_in.partition(" in ") if key.kind == "crash" else ("", "", "")
    made_from = f"{literal(scenario.architecture.model_type)}, {arguments(constructor_arguments(case))})"
    values: dict[str, Any] = {
        "document": document(finding, versions),
        "constants": assignments(finding, name, {used for part in parts for used in part.frame}),
        "weights": weights_source(scenario.pristine),
        "config": wrapped(made_from, 8),
        "auto_class": auto,
        **{field: getattr(case.model, field) for field in ("attention", "dtype", "weight_seed", "init_scale")},
        "own_settings": arguments(set_fields(scenario.plain_generation_config())),
        "functions": [text for part in parts for f, text in part.functions.items() if f not in pieces.KINDS],
        "body": parts[-1].sides,
        "kind": parts[-1].kind,
        "bound": BOUND,
        "raises": raises,
        "raising": place.rpartition(".")[2],
        "sized": key.kind in ("length", "shape"),
        "hang": int(CALL_SECONDS) if raises == TookTooLong.__name__ else 0,
    }
    if not case.settings.do_sample:
        values["body"], *values["functions"] = (
            re.sub(r"(?m)^ *torch\.manual_seed\(SEED\)\n", "", text) for text in (values["body"], *values["functions"])
        )
    code = render("script.py.j2", **values, imports=[])
    statements = [*OWN_IMPORTS, f"from transformers import AutoConfig, {auto}, GenerationConfig"]
    statements += [statement for part in parts for statement in part.imports]
    return render("script.py.j2", **values, imports=pieces.import_block(statements, code))


def _forms(finding: Finding) -> dict[str, str]:
    """Modules of `scripts/` in the place of those that a body names."""
    case = finding.case
    planned = {} if case.plan is None else case.plan.forms(Scenario(case))
    crashed = {"compared": "uncompared"} if finding.signature.kind == "crash" else {}
    return {"recompute": recompute_of(case), **planned, **crashed}


def recompute_of(case: Case) -> str:
    """The form of `scripts/recompute.py` that the case's type needs, as the oracle does."""
    if Scenario(case).encoder_decoder:
        return "recompute_encoded"
    known = facts(case.model.architecture)
    if "prepared_oracle" in known:
        return "recompute_prepared"
    return "recompute_seen" if case.prompt.images or "no_position_ids" in known else "recompute"


def _replaying(finding: Finding, versions: dict[str, str], reason: str) -> str:
    return render(
        "replay.py.j2",
        document=document(finding, versions).rstrip(),
        reason=reason,
        case=broken(finding.case.to_json(), WIDTH).replace("\\", "\\\\"),
        check=finding.signature.check,
        subject=finding.subject,
    )
