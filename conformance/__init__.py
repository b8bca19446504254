"""A property-based conformance harness for `transformers` generation."""

from pathlib import Path

__version__ = "0.1.0"

# In the source tree `strategies/` lies beside this package; installed, it is inside. With the tree on PYTHONPATH
# the one has to be found as the other.
_here = Path(__file__).parent
if not (_here / "strategies").is_dir() and (_here.parent / "strategies" / "cases.py").is_file():
    __path__.append(str(_here.parent))
