"""What a finding says is wrong, in words."""

from __future__ import annotations

import textwrap

from conformance import registry
from conformance.findings import Finding
from conformance.reporting.source import WIDTH
from conformance.verdicts import in_words


def document(finding: Finding, versions: dict[str, str]) -> str:
    """What is wrong, as the text of a docstring: the rule, what was expected and got, and where."""
    place = f" at {finding.where.strip()}" if finding.where.strip() else ""
    what = f"{finding.signature.field}{place}: expected {_cut(finding.expected)}, got {_cut(finding.got)}."
    found = f"Found with transformers {versions['transformers']}, torch {versions['torch']}."
    exits = "Exits with 1 where the fault is there, else 0 (2: cannot run)."
    lines = [f"{finding.case.model_name} breaks the rule: {rule(finding)}", what, f"{found} {exits}"]
    text = "\n".join(textwrap.fill(line, WIDTH - 6) for line in lines)
    return text.replace("\\", "\\\\").replace('"""', "'''")


def in_short(finding: Finding) -> str:
    """What is wrong, where and when, as one line."""
    signature = finding.signature
    needs = f"with {', '.join(signature.needs)}" if signature.needs else "whatever else is asked for"
    raised = f"raises {signature.raised_in}" if signature.kind == "crash" and signature.raised_in else ""
    return f"on {about(finding)}, {needs}: {raised or in_words(signature.field, signature.kind)}"


def about(finding: Finding) -> str:
    """The models that a finding is about."""
    signature, of = finding.signature, finding.case.model_name
    if signature.scope == "any":
        kinds = f" of cache kind {' and '.join(signature.cache)}" if signature.cache else ""
        return f"any model{kinds} (shown on {of})"
    return f"{signature.scope}{'' if of == finding.case.model.architecture else ', which decodes by itself'}"


def rule(finding: Finding) -> str:
    """The rule that a finding breaks, as one line."""
    return rule_of(finding.signature.check)


def rule_of(check: str) -> str:
    """The first paragraph of the check's docstring, as one line."""
    return " ".join(registry.get(check).document.strip().split("\n\n")[0].split())


def _cut(text: str, length: int = 200) -> str:
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return line if len(line) <= length else f"{line[: length - 3]}..."
