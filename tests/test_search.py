"""The search of one item: what it counts, what it finds, how small, and what it keeps."""

import time
from types import SimpleNamespace

import pytest
from toolbox import CHECKS_OF, explored, search_in, searched, small_case
from zoo import streaming, subjects
from zoo.loop import Decoder

from conformance import plainer as plainer_module
from conformance import search as search_module
from conformance.case import parse_case
from conformance.failures import Failure, same_failure
from conformance.findings import Finding, Findings
from conformance.judge import judge
from conformance.options import FEWEST_IN_A_ROUND, Options
from conformance.planning import Item
from conformance.records import read
from conformance.signature import Key, Signature, traits
from conformance.store import Store
from conformance.subjects.installed import Installed
from conformance.verdicts import Difference

NOTHING = Difference("missing", "", "", "")
CACHED, STREAM = "cached-matches-recomputed", "streamer-sees-the-sequence"


@pytest.fixture
def hurried(monkeypatch):
    """Hardly any time to shrink: enough for most, and tests stay fast."""
    monkeypatch.setattr(search_module, "SHRINK_SECONDS", (0.5, 0.5))
    monkeypatch.setattr(search_module, "LAST_MOMENT", 0.5)


@pytest.fixture
def counted(monkeypatch):
    """Time to shrink for so many judgements, whatever each takes: the clock of shrinking stands still but for them."""
    now = [0.0]

    def judged(*told):
        now[0] += 1.0
        return same_failure(*told)

    for module in (search_module, plainer_module):
        monkeypatch.setattr(module, "same_failure", judged)
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0], perf_counter=time.perf_counter))
    monkeypatch.setattr(search_module, "SHRINK_SECONDS", (400.0, 400.0))
    monkeypatch.setattr(search_module, "LAST_MOMENT", 200.0)


def case_records(folder):
    return [record for record in read(folder) if record["record"] == "case"]


@pytest.mark.parametrize("examples", [1, 7])
def test_exactly_as_many_examples_as_asked_for_are_counted(examples, folder):
    search = explored(folder, Installed(), family="purity", examples=examples)
    records = case_records(folder)
    assert search.result.cases == examples
    assert sum(record["counted"] for record in records) == examples
    assert len(records) == examples + 1
    assert not records[0]["counted"]


def test_failures_do_not_change_the_count(folder):
    search = explored(folder, streaming.StreamsTwice(), family="purity", examples=9)
    assert search.result.cases == 9
    assert search.result.verdicts["fail"] >= 6  # nothing streams several sequences


def test_the_first_example_is_the_simplest_case(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(search_module, "judge_where_it_belongs", lambda c, *rest: seen.append(c) or judge(c, *rest))
    explored(folder, Installed(), family="purity", examples=1)
    assert traits(seen[0]) == ()
    assert seen[0].prompt.rows == ((1,),)


def digests(folder):
    return [(record["case"], tuple(sorted(record["verdicts"].items()))) for record in case_records(folder)]


@pytest.mark.parametrize("subject", [Installed, subjects.DropsOldest])
def test_the_same_seed_gives_the_same_cases_and_verdicts(subject, tmp_path):
    found = []
    for name in ("one", "two"):
        place = tmp_path / name
        place.mkdir()
        explored(place, subject(), examples=8)
        found.append(digests(place))
    assert found[0] == found[1]
    assert len({case for case, _ in found[0]}) == 9


def test_another_seed_gives_other_cases(tmp_path):
    found = []
    for seed in (1, 2):
        place = tmp_path / str(seed)
        place.mkdir()
        explored(place, Installed(), family="purity", examples=6, seed=seed)
        found.append({record["case"] for record in case_records(place)[1:]})
    assert not found[0] & found[1]


def test_every_item_has_a_seed_of_its_own():
    options = Options(checks=(CACHED,), architectures=("llama", "gpt2"), seed=1)
    items = [Item(family, name, number) for family in CHECKS_OF for name in ("llama", "gpt2") for number in (1, 2)]
    seeds = {options.item_seed(item.id) for item in items}
    assert len(seeds) == len(items)
    assert options.item_seed(items[0].id) == options.item_seed(items[0].id)
    assert options.replace(seed=2).item_seed(items[0].id) not in seeds


def test_a_healthy_subject_leaves_no_finding(folder):
    search = searched(folder, Decoder(), examples=6)
    assert (search.result.findings, search.result.new, list(Findings(folder))) == ([], [], [])


@pytest.mark.usefixtures("counted")
def test_a_dropped_entry_shrinks_to_the_smallest_case_that_shows_it(folder):
    """One row; two tokens in all before the step that needs both; every setting and size at its plainest."""
    search = searched(folder, subjects.DropsOldest(), examples=12, checks=[CACHED])
    (finding,) = [f for f in search.result.new if f.signature.field == "logits"]
    assert traits(finding.case) == ()
    assert len(finding.case.prompt.rows) == 1
    assert len(finding.case.prompt.rows[0]) + finding.case.settings.max_new_tokens <= 4
    assert finding.case.settings.eos == ()
    assert (finding.kind, finding.first_seen, finding.signature.scope) == ("difference", "random", "any")
    assert finding.case.fingerprint


@pytest.mark.usefixtures("hurried")
def test_a_finding_fails_again_on_its_own_case(folder):
    search = searched(folder, subjects.StopsEarly(), examples=12)
    finding = search.result.new[0]
    stored = parse_case((folder / "findings" / finding.id / "case.json").read_text())
    assert stored == finding.case
    assert same_failure(finding.signature.key, stored, subjects.StopsEarly())
    assert same_failure(finding.signature.key, stored, Installed()) is None


@pytest.mark.usefixtures("hurried")
def test_two_faults_of_one_check_are_two_findings(folder):
    """Hypothesis counts failures that are raised on one line as one, and would hide the second."""
    search = searched(folder, streaming.StreamsWronglyTwoWays(), family="purity", examples=12)
    found = {(finding.signature.check, finding.signature.field) for finding in search.result.new}
    assert found == {(STREAM, "streamed"), (STREAM, "stream end")}


@pytest.mark.usefixtures("hurried")
def test_many_failures_of_one_cause_are_one_finding(folder):
    search = searched(folder, streaming.StreamsTwice(), family="purity", examples=12)
    assert len(search.failures) >= 8
    assert len(search.result.findings) == len(search.result.new) == 1


def streamed(needs, **parts):
    signature = Signature(STREAM, "values", "streamed", "", ("full",), needs, "any")
    return Finding(signature, small_case(family="purity", **parts), "", "")


@pytest.fixture
def settled(folder, monkeypatch):
    """Accounts for a failure that is settled as the given finding, while others are known; names what is left."""

    def account(*known, as_finding):
        search = search_in(folder, Installed(), family="purity")
        search.recorder.close()
        monkeypatch.setattr(search.recorder, "line", lambda *_, **__: None)
        monkeypatch.setattr(search, "_shrink", lambda failure, _: (failure, False))
        monkeypatch.setattr(search_module, "settle", lambda *_, **__: as_finding)
        monkeypatch.setattr(search_module, "same_failure", lambda key, case, _: Failure(key, case, NOTHING))
        for finding in known:
            search.findings.add(finding)
        search._account_for(Failure(as_finding.signature.key, small_case(family="purity", eos=(1,)), NOTHING, 1))
        search.findings.merge()
        return search.result.findings, {finding.id for finding in search.findings}

    return account


def test_a_failure_that_is_explained_once_it_is_small_is_counted_there(settled):
    known = streamed(("do_sample",), do_sample=True)
    small = streamed(("do_sample", "eos"), do_sample=True, eos=(1,))
    assert settled(known, as_finding=small) == ([known.id], {known.id})


def test_a_finding_takes_in_those_that_were_not_small_enough_yet(settled):
    whole = streamed(("eos",), eos=(1,))
    part = streamed(("do_sample", "eos"), architecture="gpt2", do_sample=True, eos=(1,))
    other = streamed(("dtype",), dtype="float64")
    assert settled(part, other, as_finding=whole) == ([whole.id], {whole.id, other.id})


def test_what_fails_once_and_never_again_is_a_finding_of_its_own_kind(folder):
    search = searched(folder, subjects.FailsOnce(), examples=3)
    (finding,) = search.result.new
    assert (finding.kind, finding.signature.kind) == ("not-repeatable", "not-repeatable")
    assert finding.signature.field == "crash"
    assert len(Findings(folder)) == 1


@pytest.mark.usefixtures("hurried")
def test_a_finding_met_again_in_another_item_is_not_shrunk_again(folder):
    first = searched(folder, streaming.StreamsTwice(), family="purity", examples=3)
    second = searched(folder, streaming.StreamsTwice(), family="purity", architecture="gpt2", examples=3, name="other")
    assert second.result.new == []
    assert second.result.findings == first.result.findings


@pytest.mark.usefixtures("hurried")
def test_failing_cases_are_kept_replayed_and_healed(tmp_path):
    places = [tmp_path / name for name in ("broken", "again", "healed", "after")]
    for place in places:
        place.mkdir()
    broken, again, healed, after = places
    store = tmp_path / "database"
    options = {"family": "purity", "examples": 2, "store": store}
    search = searched(broken, streaming.StreamsTwice(), **options)
    kept = list(Store(store).cases("purity", "llama"))
    assert kept == [("database", search.result.new[0].case)]

    explored_sources = []
    for place, subject in ((again, streaming.StreamsTwice()), (healed, Installed()), (after, Installed())):
        searched(place, subject, **options)
        explored_sources.append([record["source"] for record in case_records(place) if record["source"] != "random"])
    assert explored_sources == [["database"], ["database"], []]
    assert not list(Store(store).cases("purity", "llama"))
    assert not any(record["counted"] for record in case_records(again) if record["source"] == "database")


def test_a_stored_case_that_fails_is_first_seen_in_the_database(tmp_path, folder):
    store = tmp_path / "database"
    Store(store).save(STREAM, small_case(family="purity"))
    search = search_in(folder, streaming.StreamsTwice(), family="purity", examples=1, store=store)
    search._stored()
    search._account_for(search.failures[0])
    search.recorder.close()
    assert search.result.new[0].first_seen == "database"


def test_an_unreadable_stored_case_is_left_alone(tmp_path):
    store = Store(tmp_path)
    store.save("repeatable", small_case(family="purity"))
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.read_bytes().startswith(b"{"):
            path.write_bytes(b'{"schema_version": 99}')
    assert not list(store.cases("purity", "llama"))


@pytest.mark.parametrize("drawn", [0, 1, 2, 5])
def test_the_time_of_a_run_ends_its_drawing_wherever_it_is(drawn, folder, monkeypatch):
    search = search_in(folder, Installed(), family="purity", examples=50)
    monkeypatch.setattr(search_module.Search, "out_of_time", property(lambda _: len(case_records(folder)) >= drawn))
    search.run()
    search.recorder.close()
    assert len(case_records(folder)) == drawn
    assert search.result.cases == max(0, drawn - 1)


def test_an_item_that_has_had_its_share_of_time_ends_after_its_fewest_cases(folder):
    search = search_in(folder, Installed(), examples=40, checks=[CACHED])
    search.options = search.options.replace(share=1e-6)
    cases = search.run().cases
    search.recorder.close()
    assert cases == FEWEST_IN_A_ROUND


def test_a_budget_gives_less_time_to_what_was_met_before(folder, monkeypatch):
    monkeypatch.setattr(search_module, "time", SimpleNamespace(time=lambda: 0.0))
    search = search_in(folder, Installed(), family="purity", examples=1)
    search.recorder.close()
    key, other = Key(STREAM, "values", "sequences", ""), Key(CACHED, "values", "logits", "")
    met = [SimpleNamespace(signature=SimpleNamespace(key=key))] * 2

    def limits(**options):
        search.options = search.options.replace(**options)
        found = []
        for search.findings in ([], met[:1], met):
            found.append(search._shrink_deadline(key))
        assert search._shrink_deadline(other) == found[0]
        return found

    assert limits(examples=None, budget=900.0, workers=2) == [12.0, 6.0, 4.0]
    assert limits(examples=5, budget=None) == [12.0, 12.0, 12.0]
