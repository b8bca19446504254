"""Which releases are installed, and which are supported; nothing is imported to find out."""

from __future__ import annotations

from importlib import metadata

PACKAGES = ("transformers", "torch", "accelerate", "hypothesis", "pytest", "numpy")
OLDEST, NEWEST_TESTED = "5.0.0", "5.24.0"


def versions() -> dict[str, str]:
    """Installed versions, without importing anything: package → version or 'absent'."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def as_numbers(version: str) -> tuple[int, ...]:
    """A version's release as numbers; a development build counts as its release."""
    parts = (part for part in version.split("+")[0].split(".")[:3] if part[:1].isdigit())
    return tuple(int("".join(c for c in part if c.isdigit())) for part in parts)


def release(package: str = "transformers") -> tuple[int, ...]:
    """The installed release of a package as numbers."""
    return as_numbers(versions()[package])
