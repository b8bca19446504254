"""Fixtures of all tests."""

import pytest

from conformance import upstream


@pytest.fixture(scope="session", autouse=True)
def _quiet():
    upstream.quiet()


@pytest.fixture
def folder(tmp_path):
    """A report folder."""
    path = tmp_path / "report"
    path.mkdir()
    return path
