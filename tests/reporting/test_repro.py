"""Scripts: what they look like, and that they build what the project builds."""

from __future__ import annotations

import ast
import hashlib
from typing import Any

import pytest
import torch
from made_up_findings import ASKED, BODIES, ROWS, SEEN, case_of, finding_of

from conformance import registry
from conformance.build import Scenario
from conformance.case import Case, Settings
from conformance.findings import Finding
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.reporting import pieces
from conformance.reporting.case_source import constructor_arguments
from conformance.reporting.repro import body_name, render_script, uncounted
from conformance.reporting.source import broken, fitted

STANDARD = {
    "functools",
    "hashlib",
    "sys",
    "inspect",
    "itertools",
    "json",
    "pathlib",
    "re",
    "tokenizers",  # which transformers brings with it
    "collections",
    "contextlib",
    "copy",
    "tempfile",
    "traceback",
    "unittest",
}
VERSIONS = {"transformers": "5.24.0", "torch": "2.13.0"}


def imported(script: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def digest(model: torch.nn.Module) -> str:
    state = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return state.hexdigest()


def made_by(script: str) -> Any:
    """The model that a script makes, without running what it does with it."""
    functions = [s for s in ast.parse(script).body if not isinstance(s, ast.Try)]
    end = next(n for n, s in enumerate(functions) if isinstance(s, ast.FunctionDef) and s.name == "make_model")
    names: dict[str, Any] = {}
    exec(compile(ast.Module(functions[: end + 1], []), "script", "exec"), names)
    return names["make_model"]()


def test_every_body_is_covered_here_and_every_check_has_one() -> None:
    assert set(BODIES) == set(pieces.names())
    with_script = {check.script for check in registry.checks().values() if check.script}
    instead = {body for name in with_script for body in pieces.piece(name).says.get("INSTEAD", {}).values()}
    assert set(BODIES) == with_script | instead


def test_a_row_that_only_a_program_has_is_no_row_of_the_prompt() -> None:
    program = (Op(op="prefill"), Op(op="repeat", count=2), Op(op="feed", tokens=(3,)))
    finding = finding_of("rollback", plan=RollbackPlan(program=program), rows=ROWS[:1], where="row 1 step 0")
    is_short_and_stands_alone(finding, "rollback")


@pytest.mark.parametrize("body", sorted(BODIES))
@pytest.mark.parametrize("architecture", ["llama", "gemma2", "jamba"])
def test_a_script_is_short_and_stands_alone(body: str, architecture: str) -> None:
    is_short_and_stands_alone(finding_of(body, architecture), body)


def is_short_and_stands_alone(finding: Finding, body: str) -> None:
    assert body_name(finding) == body
    script = render_script(finding, VERSIONS)
    lines = script.splitlines()
    assert len(lines) <= 80 + uncounted(body)
    assert max(map(len, lines)) <= 120
    allowed = STANDARD | (
        {"accelerate", "safetensors"} if registry.get(finding.signature.check).family == "placement" else set()
    )
    assert {"torch", "transformers"} <= imported(script) - STANDARD <= {"numpy", "torch", "transformers"} | allowed
    assert "5.24.0" in (ast.get_docstring(ast.parse(script)) or "")


@pytest.mark.parametrize("asked", sorted(ASKED))
def test_what_a_plan_asks_for_is_in_a_short_script_that_stands_alone(asked: str) -> None:
    body, plan = ASKED[asked]
    for architecture in ("llama", "gemma2"):
        is_short_and_stands_alone(finding_of(body, architecture, plan=plan, rows=ROWS[:1], where=""), body)


@pytest.mark.parametrize("architecture", sorted(SEEN))
def test_a_script_of_a_prompt_with_images_is_short_and_stands_alone(architecture: str) -> None:
    for body in SEEN[architecture]:
        is_short_and_stands_alone(finding_of(body, architecture, images=1), body)


@pytest.mark.parametrize("architecture", ["llama", "jamba", "t5gemma"])
def test_a_script_has_the_weights_of_the_project(architecture: str) -> None:
    finding = finding_of("cached" if architecture == "t5gemma" else "groups", architecture, dtype="float32")
    made, ours = made_by(render_script(finding, VERSIONS)), Scenario(finding.case).model()
    assert digest(made) == digest(ours)
    assert type(made) is type(ours)
    assert made.config.to_dict() == ours.config.to_dict()
    assert made.generation_config.to_dict() == ours.generation_config.to_dict()


def test_a_script_seeds_only_what_is_sampled() -> None:
    assert "SEED" not in render_script(finding_of("cached"), VERSIONS)
    sampling = Settings(max_new_tokens=4, do_sample=True, sample_seed=17)
    script = render_script(finding_of("cached", settings=sampling), VERSIONS)
    assert "SEED = 17\n" in script
    assert "    torch.manual_seed(SEED)\n" in script


def test_a_crash_is_looked_for_by_its_type() -> None:
    script = render_script(finding_of("groups", kind="crash", field="crash", raised_in="KeyError in a.b"), VERSIONS)
    assert 'type(error).__name__ == "KeyError"' in script
    assert "isclose" not in script
    hang = render_script(finding_of("groups", kind="crash", field="crash", raised_in="TookTooLong in a.b"), VERSIONS)
    assert "signal.alarm(60)" in hang
    assert "signal" in imported(hang)


@pytest.mark.parametrize(
    "finding",
    [
        finding_of("groups", subject="reference"),
        finding_of("cached", field="sequences"),
        finding_of("padded", field="padding"),
        finding_of("reference", field="cache.layers.keys"),
    ],
    ids=["subject", "sequences", "padding", "cache"],
)
def test_what_no_body_can_show_is_replayed(finding: Any) -> None:
    script = render_script(finding, VERSIONS)
    assert "conformance" in imported(script)
    assert "Needs the project" in (ast.get_docstring(ast.parse(script)) or "")
    assert max(map(len, script.splitlines())) <= 120
    case = next(s for s in ast.parse(script).body if isinstance(s, ast.Assign))
    assert isinstance(case.value, ast.Constant)
    from conformance.case import parse_case

    assert parse_case(case.value.value) == finding.case


def test_what_was_got_cannot_break_the_script() -> None:
    nasty = 'a """ and \\N{x} \n\n and \x00 \\'
    document = ast.get_docstring(ast.parse(render_script(finding_of("groups", got=nasty), VERSIONS)))
    assert document is not None
    assert "a ''' and \\N{x} and ? \\" in document


def test_constructor_arguments_make_the_config() -> None:
    case = case_of("repeatable", "t5gemma")
    made = Scenario(case).config
    arguments = constructor_arguments(case)
    assert type(made)(**arguments).to_dict() == made.to_dict()
    assert arguments["decoder"]["hidden_size"] == made.decoder.hidden_size
    assert isinstance(case, Case)


def test_source_is_broken_where_it_may_be() -> None:
    text = "f(" + ", ".join(f'"a b{n}"' for n in range(40)) + ")"
    for lines in (fitted(text), broken(text, 60).splitlines()):
        assert max(map(len, lines)) <= 120
        assert ast.dump(ast.parse("\n".join(lines))) == ast.dump(ast.parse(text))


def test_functions_become_plain() -> None:
    source = (
        "def f(\n    a: int, *, b: str = 'x'\n) -> list[str]:\n    '''Doc.'''\n    # why\n    c: list[str] = []\n\n"
        "    if a:\n        return c  # noqa: X\n    return [b]\n"
    )
    assert pieces.plain_functions(source) == {
        "f": "def f(a, *, b='x'):\n    c = []\n    if a: return c\n    return [b]",
    }
