"""A case: one random situation as plain values.

Models are built *from* a case and never stored in it, so the same JSON shrinks, replays, reports and
reproduces. Every field is bounded, so that a case from a stranger cannot exhaust a machine, and every
default is the simplest value, so that whatever differs from it is what a failure needs.
"""

from __future__ import annotations

from conformance.case.case import DEFAULT_FAMILY, SCHEMA_VERSION, Case
from conformance.case.model import ModelSpec, Prompt
from conformance.case.plan import Plan, known_plans
from conformance.case.reading import LARGEST_CASE_FILE, case_from_dict, parse_case, read_case
from conformance.case.settings import Settings
from conformance.case.values import MAX_CONFIG_NUMBER, FrozenDict, Record, TokenId, plain

__all__ = [
    "DEFAULT_FAMILY",
    "LARGEST_CASE_FILE",
    "MAX_CONFIG_NUMBER",
    "SCHEMA_VERSION",
    "Case",
    "FrozenDict",
    "ModelSpec",
    "Plan",
    "Prompt",
    "Record",
    "Settings",
    "TokenId",
    "case_from_dict",
    "known_plans",
    "parse_case",
    "plain",
    "read_case",
]
