"""The pytest plugin: options, items, records. Imports no torch until an item runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import BadInput
from conformance.options import DATABASE, PR_SEED, PROFILES, Options
from conformance.planning import Item, plan

if TYPE_CHECKING:
    from conformance.worker import Worker

OPTIONS = pytest.StashKey[Options]()
WORKER = pytest.StashKey["Worker"]()
SUMMARY = pytest.StashKey[dict[str, Any]]()
STARTED = pytest.StashKey[float]()


class Told:
    """What the plugin tells others."""

    def pytest_conformance_confirming(self, number: int, total: int) -> None:
        """The script of one more finding is executed, in a thread of the controller."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """The hooks that are this plugin's own."""
    pluginmanager.add_hookspecs(Told)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, all with the prefix `--conformance-`."""
    group = parser.getgroup("conformance", "conformance of transformers generation")
    several: dict[str, Any] = {"action": "append", "metavar": "GLOBS"}
    group.addoption("--conformance-checks", **several, help="checks to run: globs, or family:NAME, by commas")
    group.addoption("--conformance-architectures", **several, help="architectures to draw, comma-separated globs")
    group.addoption("--conformance-subject", default="installed", help="installed, reference or module:object")
    group.addoption("--conformance-examples", type=int, metavar="N", help="counted examples per item; one round")
    group.addoption("--conformance-budget", type=float, metavar="SECONDS", help="go on until this time is spent")
    group.addoption("--conformance-seed", type=int, help=f"seed of the run (profile pr: {PR_SEED})")
    group.addoption(
        "--conformance-profile",
        choices=PROFILES,
        default="pr",
        help="pr: fixed seed; nightly: random, and what takes long",
    )
    group.addoption("--conformance-fresh", action="store_true", help="no corpus, no database, no known issues")
    group.addoption("--conformance-max-findings", type=int, metavar="N", help="start no further item after N findings")
    group.addoption("--conformance-report", metavar="DIR", help="where to leave what the run found")
    group.addoption("--conformance-options", help="all options of a run as JSON; for the command line and workers")


def pytest_configure(config: pytest.Config) -> None:
    """Workers take the options that the controller made up its mind about."""
    config.stash[STARTED] = time.time()
    handed = getattr(config, "workerinput", {}).get("conformance")
    if handed is not None:
        config.stash[OPTIONS] = Options.from_json(handed)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the options of the run to an xdist worker."""
    node.workerinput["conformance"] = options_of(node.config).to_json()


def options_of(config: pytest.Config) -> Options:
    """The options of this run, made once. pytest.UsageError for what is wrong with them."""
    if OPTIONS not in config.stash:
        try:
            config.stash[OPTIONS] = _parse(config)
        except BadInput as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[OPTIONS]


def _parse(config: pytest.Config) -> Options:
    from conformance.globs import joined
    from conformance.selection import make_options

    handed = config.getoption("--conformance-options")
    if handed:
        return Options.from_json(handed)
    given = {name: config.getoption(f"--conformance-{name.replace('_', '-')}") for name in GIVEN}
    given |= {name: joined(given[name]) for name in ("checks", "architectures")}
    return make_options(**given, workers=_processes(config))


GIVEN = (
    "checks",
    "architectures",
    "subject",
    "examples",
    "budget",
    "seed",
    "profile",
    "fresh",
    "max_findings",
    "report",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One parameter per family, architecture and round, rounds first."""
    if "conformance_item" in metafunc.fixturenames:
        items = plan(options_of(metafunc.config))
        metafunc.parametrize("conformance_item", items, ids=[item.id for item in items])


def _processes(config: pytest.Config) -> int:
    asked = getattr(config.option, "numprocesses", None)
    return asked if isinstance(asked, int) and asked > 0 else 1


@pytest.fixture
def conformance_item(request: pytest.FixtureRequest) -> Item:
    """The item of this test."""
    item: Item = request.param
    return item


@pytest.fixture(scope="session")
def conformance_worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """What one process keeps from item to item: the subject, the recorder, the store."""
    worker = worker_of(request.config)
    yield worker
    worker.close()


def worker_of(config: pytest.Config) -> Worker:
    """The worker of this process, made when the first item runs."""
    from conformance.worker import Worker

    if WORKER not in config.stash:
        options = options_of(config)
        name = getattr(config, "workerinput", {}).get("workerid", "main")
        config.stash[WORKER] = Worker(options, name, None if options.fresh else DATABASE)
        config.stash[OPTIONS] = config.stash[WORKER].options
    return config.stash[WORKER]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave out, and count, the items that are left when the budget or the number of findings is used up."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "conformance_item" not in callspec.params:
        return None
    reason = stop_reason(options_of(item.config))
    if reason is None:
        return None
    worker_of(item.config).deselect(callspec.params["conformance_item"], reason)
    item.config.hook.pytest_deselected(items=[item])
    return True


def stop_reason(options: Options) -> str | None:
    """Why no further item should start, or None."""
    if options.deadline is not None and time.time() >= options.deadline:
        return "budget"
    if options.max_findings is not None and options.report is not None:
        found = len(list(Path(options.report).glob("findings/*/finding.json")))
        return "max-findings" if found >= options.max_findings else None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Close this process's shard; the controller then merges all shards into the report."""
    config = session.config
    if WORKER in config.stash:
        config.stash[WORKER].close()
    if hasattr(config, "workerinput") or OPTIONS not in config.stash:
        return
    if not _any_records(options_of(config)):
        _let_go(options_of(config))
        return
    from conformance.reporting.finish import finish

    summary = finish(
        options_of(config),
        started=config.stash[STARTED],
        interrupted=exitstatus == pytest.ExitCode.INTERRUPTED,
        tell=lambda number, total: config.hook.pytest_conformance_confirming(number=number, total=total),
    )
    config.stash[SUMMARY] = summary
    session.exitstatus = summary["exit_code"]


def _any_records(options: Options) -> bool:
    return options.report is not None and any(Path(options.report).glob("records/*.ndjson"))


def _let_go(options: Options) -> None:
    from conformance.selection import give_up

    if options.report is not None:
        give_up(options.report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Where the report is, when pytest itself writes to the terminal."""
    if SUMMARY in config.stash:
        from conformance.reporting.columns import counted

        summary = config.stash[SUMMARY]
        found = counted(len(summary["findings"]), "finding")
        terminalreporter.write_line(
            f"conformance: {counted(summary['cases'], 'case')}, {found}, exit {summary['exit_code']}: "
            f"{summary['exit_reason']}; report {options_of(config).report}"
        )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Versions, and the options if the suite is going to run."""
    from conformance.upstream import versions

    header = ["conformance: " + ", ".join(f"{name} {version}" for name, version in versions().items())]
    if OPTIONS in config.stash:
        header.append(
            f"conformance: {json.dumps({'seed': options_of(config).seed, 'report': options_of(config).report})}"
        )
    return header
