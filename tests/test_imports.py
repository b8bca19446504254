"""What may import what: collecting a suite must not cost an import of torch."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import conformance
import conformance.strategies

HEAVY = ("torch", "transformers", "accelerate", "numpy")
ROOT = Path(__file__).parents[1]
ROOMS = ("conformance", "strategies")  # the folders that are installed; Python 3.10 reads no TOML
PACKAGE = Path(conformance.__file__).parent
STRATEGIES = sorted(Path(conformance.strategies.__file__).parent.rglob("*.py"))
REFERENCE = sorted((PACKAGE / "reference").glob("*.py"))

SHOW = "import sys; print('heavy:', [name for name in {heavy} if name in sys.modules])"


def heavy_after(code, tmp_path):
    """The heavy modules that a fresh process holds after running `code`."""
    script = f"{code}\n{SHOW.format(heavy=HEAVY)}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rsplit("heavy:", 1)[1].strip(), done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import conformance.plugin",
        "import conformance.cli",
        "from conformance.cli import doctor, explain, listing, replay, run",
        "import conformance.options, conformance.planning, conformance.selection, conformance.listing",
        "import conformance.case",
    ],
)
def test_importing_needs_nothing_heavy(code, tmp_path):
    assert heavy_after(code, tmp_path)[0] == "[]"


def test_collecting_the_suite_needs_nothing_heavy(tmp_path):
    report = tmp_path / "report"
    arguments = [
        "--pyargs",
        "conformance.suite",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--conformance-report={report}",
    ]
    heavy, output = heavy_after(f"import pytest; assert pytest.main({arguments!r}) == 0", tmp_path)
    assert heavy == "[]"
    ids = [line for line in output.splitlines() if "test_conformance[" in line]
    assert len(ids) > 100
    assert any("[r0001-cached-llama]" in line for line in ids)
    assert len(set(ids)) == len(ids)


def imported(path):
    """The names of everything that a module imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def starts(names, *roots):
    return sorted(name for name in names if any(name == root or name.startswith(f"{root}.") for root in roots))


@pytest.mark.parametrize("path", STRATEGIES, ids=lambda path: path.stem)
def test_strategies_know_no_pytest_and_no_check(path):
    forbidden = (
        "pytest",
        "_pytest",
        *(f"conformance.{room}" for room in ("checks", "registry", "runs", "subjects", "plugin", "cli", "reporting")),
    )
    assert starts(imported(path), *forbidden) == []


@pytest.mark.parametrize("path", REFERENCE, ids=lambda path: path.stem)
def test_references_know_nothing_of_checks(path):
    forbidden = tuple(
        f"conformance.{room}" for room in ("checks", "registry", "runs", "strategies", "plugin", "cli", "reporting")
    )
    assert starts(imported(path), "pytest", "hypothesis", *forbidden) == []


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_imports_the_strategies_by_their_folders_name(path):
    """A bare `import strategies` would meet a user's own module of that name."""
    assert starts(imported(path), "strategies", "tests") == []


def test_every_package_on_disk_is_installed():
    declared = re.search(r"^packages = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    found = [file.parent.relative_to(ROOT) for room in ROOMS for file in (ROOT / room).rglob("__init__.py")]
    names = [".".join(folder.parts) for folder in found]
    names = [f"conformance.{name}" if name.split(".")[0] == "strategies" else name for name in names]
    assert re.findall(r'"(.+?)"', declared[1]) == sorted(names)


def test_test_modules_have_names_of_their_own():
    """Folders of tests are no packages: a second module of a name stops the collection of all."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]


def test_the_source_tree_alone_holds_the_whole_package():
    """With the tree on PYTHONPATH, as somebody's own subject beside it may have it."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import conformance.strategies; print(conformance.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert Path(done.stdout.strip()).parent == ROOT / "conformance"
