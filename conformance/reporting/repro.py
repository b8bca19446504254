"""A finding as a script: `repro.py` needs torch, numpy and transformers, and nothing of this project."""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.util
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from conformance import registry, upstream
from conformance.architectures import catalogue
from conformance.architectures.apply import build
from conformance.architectures.capabilities import facts
from conformance.architectures.defaults import config_class_of, default_config
from conformance.architectures.overrides import override
from conformance.build import Scenario
from conformance.case import Case, plain
from conformance.compare import BOUND
from conformance.findings import Finding
from conformance.limits import CALL_SECONDS, TookTooLong
from conformance.reporting import constants, pieces
from conformance.reporting.source import WIDTH, arguments, assigned, broken, fitted, literal, wrapped
from conformance.reporting.templating import render
from conformance.reporting.weights_source import weights_source
from conformance.snapshots import KEPT_ON_PURPOSE, TORCH_INTERNALS

NO_STATE = (*sorted(TORCH_INTERNALS), "config", "generation_config")
MAX_LINES = 80
# What `generate` takes for a field that nobody set, in every 5.x release.
DEFAULTS = {"num_beams": 1, "use_cache": True, "temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0}
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
        return _replaying(finding, versions, f"what is tested is not transformers but `{finding.subject}`")
    if name is None:
        return _replaying(finding, versions, "this check has no form that stands alone")
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
    replayed = criteria or case.prompt.images or case.model.tied or (case.plan and not case.plan.stands_alone())
    if script not in pieces.names() or replayed:
        return None
    instead = pieces.piece(script).says.get("INSTEAD", {})
    script = next((body for word, body in instead.items() if finding.where.startswith(word)), script)
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
    return asked <= set(says.get("PLAN", asked)) and not asked & set(unseen)


def _standing_alone(finding: Finding, versions: dict[str, str], name: str) -> str:
    case, key = finding.case, finding.signature
    scenario, parts = Scenario(case), pieces.gather(name, _forms(finding))
    auto = catalogue.auto_class(scenario.architecture.task).__name__
    raises, _, place = key.raised_in.partition(" in ") if key.kind == "crash" else ("", "", "")
    made_from = f"{literal(scenario.architecture.model_type)}, {arguments(constructor_arguments(case))})"
    values: dict[str, Any] = {
        "document": document(finding, versions),
        "constants": _constants(finding, name, {used for part in parts for used in part.frame}),
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
    return "recompute_prepared" if "prepared_oracle" in facts(case.model.architecture) else "recompute"


def constructor_arguments(case: Case) -> dict[str, Any]:
    """What the config class of the case's architecture is called with to make the case's config.

    Raises NotBuildable or BadInput when the installed release refuses them.
    """
    name, caught = case.model.architecture, {}
    config_class = config_class_of(name)

    def caught_by(**arguments: Any) -> Any:
        caught.update(copy.deepcopy(arguments))
        return config_class(**arguments)

    build(caught_by, plain(case.model.config), case.model.attention, override(name).arguments, default_config(name))  # type: ignore[arg-type]
    return caught


def set_fields(generation_config: Any) -> dict[str, Any]:
    """The fields of a `GenerationConfig` that are not what `generate` takes anyway."""
    fields = {k: v for k, v in vars(generation_config).items() if not k.startswith("_") and k != "transformers_version"}
    return {k: v for k, v in fields.items() if v is not None and v is not False and v != DEFAULTS.get(k)}


def _constants(finding: Finding, body: str, used: set[str]) -> list[str]:
    """The assignments of what the body takes from the frame."""
    case, scenario, says = finding.case, Scenario(finding.case), pieces.piece(body).says
    planned = constants_of(scenario)
    rows = says.get("ROWS", "finding")
    owners = ("*", scenario.architecture.model_type)
    kept = [*NO_STATE, *(name for owner, name in KEPT_ON_PURPOSE if owner in owners)]
    row = 0 if rows == "first" else row_of(finding)
    width = scenario.width(None if rows == "all" else [row])
    fields = _of_use(set_fields(scenario.generation_config(width, **_room(says, planned))), body)
    sources = {
        "INPUTS": assigned("INPUTS", _tensors(scenario.inputs(None if rows == "all" else [row]))),
        "ALONE": assigned("ALONE", _tensors(scenario.inputs([row]))),
        "ROW": f"ROW = {row}",
        "SETTINGS": assigned("SETTINGS", {name: literal(value) for name, value in fields.items()}),
        "KEPT": "\n".join(fitted(f"KEPT = {literal(kept)}")),
        "SEED": f"SEED = {case.settings.sample_seed}" if case.settings.do_sample else "",
        **{name: "\n".join(fitted(f"{name} = {value}")) for name, value in planned.items()},
    }
    return [source for name, source in sources.items() if name in used and source]


def constants_of(scenario: Scenario) -> dict[str, str]:
    """What the family adds to the frame: told by its module in `reporting.constants`, else by the plan itself."""
    case = scenario.case
    name = f"{constants.__name__}.{case.family}"
    if importlib.util.find_spec(name):
        told: dict[str, str] = importlib.import_module(name).constants(scenario)
        return told
    return {} if case.plan is None else case.plan.constants(scenario)


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
    """The prompt row that a finding is about: the one it names, else the first."""
    named = re.match(r"row (\d+)", finding.where)
    return int(named[1]) if named else 0


def _tensors(inputs: dict[str, Any]) -> dict[str, str]:
    return {name: f"torch.tensor({literal(tensor.tolist())})" for name, tensor in inputs.items()}


def document(finding: Finding, versions: dict[str, str]) -> str:
    """What is wrong, as the text of a docstring: the rule, what was expected and got, and where."""
    place = f" at {finding.where.strip()}" if finding.where.strip() else ""
    what = f"{finding.signature.field}{place}: expected {_cut(finding.expected)}, got {_cut(finding.got)}."
    found = f"Found with transformers {versions['transformers']}, torch {versions['torch']}."
    exits = "Exits with 1 where the fault is there, else 0 (2: cannot run)."
    lines = [f"{finding.case.model.architecture} breaks the rule: {rule(finding)}", what, f"{found} {exits}"]
    text = "\n".join(textwrap.fill(line, WIDTH - 6) for line in lines)
    return text.replace("\\", "\\\\").replace('"""', "'''")


def rule(finding: Finding) -> str:
    """The first paragraph of the check's docstring, as one line."""
    return " ".join(registry.get(finding.signature.check).document.strip().split("\n\n")[0].split())


def _cut(text: str, length: int = 200) -> str:
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return line if len(line) <= length else f"{line[: length - 3]}..."


def _replaying(finding: Finding, versions: dict[str, str], reason: str) -> str:
    return render(
        "replay.py.j2",
        document=document(finding, versions).rstrip(),
        reason=reason,
        case=broken(finding.case.to_json(), WIDTH).replace("\\", "\\\\"),
        check=finding.signature.check,
        subject=finding.subject,
    )
