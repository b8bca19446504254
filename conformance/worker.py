"""What one process keeps from item to item: the subject, the recorder, the findings and the store."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import interruption, registry
from conformance.architectures.capabilities import capabilities
from conformance.architectures.cells import ENOUGH, reachable
from conformance.events import KIND
from conformance.findings import Finding, Findings
from conformance.options import Options
from conformance.planning import Item
from conformance.records import Recorder
from conformance.reporting.page import write_finding
from conformance.reporting.replay_line import replay_line
from conformance.search import ItemResult, Search
from conformance.store import Store
from conformance.strategies.cases import cases
from conformance.subjects import load
from conformance.warming import warm_up


class Worker:
    """Runs items."""

    def __init__(self, options: Options, name: str, database: Path | None) -> None:
        warm_up(options.families())
        interruption.watch()
        assert options.report is not None
        folder = Path(options.report)
        self.options, self.folder, self.subject = options.begun(), folder, load(options.subject)
        self.recorder, self.findings, self.store = (
            Recorder(folder, name),
            Findings(folder),
            Store(database, options.subject),
        )
        # What is loaded by now stays: collecting it again and again would take a tenth of the time.
        gc.collect()
        gc.freeze()
        self.closed = False
        self.reached: dict[str, set[str]] = {}
        self.cells: dict[str, Counter[str]] = {}

    def run(self, item: Item, record_property: Callable[[str, object], None]) -> None:
        """Search one item; fails the test with a message for each of its findings."""
        reason = capabilities(item.architecture).reason
        if reason:
            facts = {"outcome": "not-applicable", "reason": reason, "architecture": item.architecture}
            self.recorder.item(item.id, **facts, cases=0, findings=[])
            return
        checks = tuple(c for c in self.options.checks if registry.get(c).family == item.family)
        towards = self._not_reached(item)
        search = Search(
            item,
            checks,
            self.options,
            self.subject,
            self.recorder,
            self.findings,
            self.store,
            lambda: cases(item.family, item.architecture, towards=towards),
        )
        try:
            result = search.run()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever ends an item early is told of
            self.recorder.line("broke", item=item.id, error=f"{type(error).__name__}: {error}"[:1000])
            raise
        self.reached.setdefault(item.family, set()).update(result.events)
        self.cells.setdefault(item.architecture, Counter()).update(result.kinds)
        self._record(item, result, record_property)
        for finding in result.new:
            write_finding(self.folder, finding)
        if result.findings:
            pytest.fail(self._message(result), pytrace=False)

    def _not_reached(self, item: Item) -> frozenset[str]:
        """What later rounds lean towards: the events that this process has not met, and the type's cache kinds of
        which it has met too few. None in the first round, which is the only one of the reproducible mode.
        """
        if item.round == 1:
            return frozenset()
        met = self.cells.get(item.architecture, Counter())
        kinds = {f"{KIND}{kind}" for kind in reachable(item.architecture)}
        few = {kind for kind in kinds if met[kind] < ENOUGH}
        return frozenset(few) | frozenset(registry.families()[item.family].reachable) - self.reached.get(
            item.family, set()
        )

    def _record(self, item: Item, result: ItemResult, record_property: Callable[[str, object], None]) -> None:
        facts = {"seconds": round(result.seconds, 4), "model_seconds": round(result.model_seconds, 4)}
        cells = {"architecture": item.architecture, "kinds": sorted(reachable(item.architecture))}
        self.recorder.item(item.id, outcome="ran", cases=result.cases, findings=result.findings, **facts, **cells)
        record_property(
            "conformance", {"cases": result.cases, "verdicts": result.verdicts, "findings": result.findings}
        )

    def _message(self, result: ItemResult) -> str:
        new = {finding.id: finding for finding in result.new}
        blocks = [self._block(new[name]) if name in new else f"{name}: met again" for name in result.findings]
        return "\n\n".join(blocks)

    def _block(self, finding: Finding) -> str:
        folder = self.folder / "findings" / finding.id
        return (
            f"{finding.signature.check} on {finding.case.model_name}\n"
            f"  expected  {finding.expected}\n  got       {finding.got}\n"
            f"  case      {finding.case}\n"
            f"  Reproduce with: {replay_line(folder, self.options.subject)}"
        )

    def deselect(self, item: Item, reason: str) -> None:
        """Write down that an item did not run."""
        self.recorder.item(item.id, outcome="deselected", reason=reason, cases=0, findings=[])

    def close(self) -> None:
        """End the shard; safe to call twice."""
        if not self.closed:
            self.closed = True
            self.recorder.close()
