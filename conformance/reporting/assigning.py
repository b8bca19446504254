"""The constants of a script: what its body takes from the frame, assigned."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Mapping
from typing import Any

from conformance.build import Scenario
from conformance.findings import Finding
from conformance.oracle import Oracle
from conformance.reporting import constants, pieces
from conformance.reporting.case_source import set_fields, tensors
from conformance.reporting.source import assigned, fitted, literal
from conformance.snapshots import KEPT_ON_PURPOSE, TORCH_INTERNALS

NO_STATE = (*sorted(TORCH_INTERNALS), "config", "generation_config")


def assignments(finding: Finding, body: str, used: set[str]) -> list[str]:
    """The assignments of what the body takes from the frame."""
    case, scenario, says = finding.case, Scenario(finding.case), pieces.piece(body).says
    planned = constants_of(scenario)
    rows = says.get("ROWS", "finding")
    if rows == "running":
        rows = "first" if case.plan.drafts else "all"
    owners = ("*", scenario.architecture.model_type)
    kept = [*NO_STATE, *(name.rsplit(".", 1)[-1] for owner, name in KEPT_ON_PURPOSE if owner in owners)]
    row = 0 if rows == "first" else row_of(finding)
    width = 1 if rows == "none" else scenario.width(None if rows == "all" else [row])
    fields = _of_use(set_fields(scenario.generation_config(width, **_room(says, planned))), body)
    sources = {
        "INPUTS": assigned("INPUTS", tensors(scenario, None if rows == "all" else [row])),
        "ALONE": assigned("ALONE", tensors(scenario, [row])),
        "ROW": f"ROW = {row}",
        "SETTINGS": assigned("SETTINGS", {name: literal(value) for name, value in fields.items()}),
        "KEPT": "\n".join(fitted(f"KEPT = {literal(kept)}")),
        "SEED": f"SEED = {case.settings.sample_seed}" if case.settings.do_sample else "",
        "OWN_POSITIONS": f"OWN_POSITIONS = {literal([] if Oracle(scenario).counts_positions else ['position_ids'])}",
        "TYPE": f"TYPE = {scenario.media.recipe.generated_type if scenario.media else 0}",
        "CHANGES": "CHANGES = {}",
        **{name: "\n".join(fitted(f"{name} = {value}")) for name, value in planned.items()},
    }
    return [source for name, source in sources.items() if name in used and source]


def constants_of(scenario: Scenario) -> dict[str, str]:
    """What the family adds to the frame: told by its module in `reporting.constants`, else by the plan itself."""
    case = scenario.case
    if case.plan is None:
        return {}
    name = f"{constants.__name__}.{case.family}"
    if importlib.util.find_spec(name):
        told: dict[str, str] = importlib.import_module(name).constants(scenario)
        return told
    return case.plan.constants(scenario)


def _room(says: Mapping[str, Any], planned: Mapping[str, str]) -> dict[str, Any]:
    if "ROOM_FOR" not in says:
        return {}
    count = len(ast.literal_eval(planned[says["ROOM_FOR"]]))
    return {"max_new_tokens": count + 1, "eos_token_id": None, "do_sample": False}


def _of_use(fields: dict[str, Any], body: str) -> dict[str, Any]:
    """The fields without the outputs that the body does not look at."""
    source = "".join(part.functions[f] for part in pieces.gather(body) for f in part.functions)
    idle = {f"output_{name}" for name in ("logits", "scores") if f"out.{name}" not in source}
    whole = pieces.piece(body).says.get("WHOLE_OUTCOME", False)
    return fields if whole else {name: value for name, value in fields.items() if name not in idle}


def row_of(finding: Finding) -> int:
    """The prompt row that a finding is about: the one it names, else the first. A program may repeat rows."""
    named = re.match(r"row (\d+)", finding.where)
    row = int(named[1]) if named else 0
    return row if row < len(finding.case.prompt.rows) else 0
