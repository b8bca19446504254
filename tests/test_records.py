"""Records: shards that survive their workers."""

import json

from toolbox import small_case

from conformance.judge import Judgement
from conformance.records import Recorder, count_verdicts, digest, orphans, read
from conformance.verdicts import Verdict


def judgement(case=None, **verdicts):
    made = {name: Verdict(*given) if isinstance(given, tuple) else Verdict(given) for name, given in verdicts.items()}
    return Judgement(case or small_case(), made, frozenset({"rows: one"}))


def recorded(folder, name="gw0"):
    recorder = Recorder(folder, name)
    recorder.start("r0001-cached-llama", small_case())
    recorder.case("r0001-cached-llama", judgement(one="pass", two=("blocked-by", "one")), counted=True, source="random")
    recorder.case("r0001-cached-llama", judgement(one="fail"), counted=False, source="database")
    return recorder


def test_a_case_is_a_line_with_its_verdicts(folder):
    recorded(folder).close()
    first, second = read(folder)
    assert first["verdicts"] == {"one": "pass", "two": "blocked-by one"}
    assert first["events"] == ["rows: one"]
    assert first["case"] == second["case"] == digest(small_case())
    assert (first["counted"], second["counted"], second["source"]) == (True, False, "database")


def test_reasons_are_kept_where_there_are_any(folder):
    recorder = Recorder(folder, "gw0")
    made = judgement(a="pass", b=("not-applicable", "why"), c=("tie", "1e-6 apart"), d=("allowed", "one more call"))
    recorder.case("i", made, counted=True, source="random")
    recorder.close()
    (record,) = read(folder)
    assert record["reasons"] == {"b": "why", "c": "1e-6 apart", "d": "one more call"}


def test_a_line_is_on_disk_as_soon_as_its_case_is_judged(folder):
    recorder = recorded(folder)
    assert len(list(read(folder))) == 2
    recorder.close()


def test_a_line_cut_short_is_left_out(folder):
    recorded(folder).close()
    shard = folder / "records" / "gw0.ndjson"
    text = shard.read_text()
    shard.write_text(text + text.splitlines()[0][:40])
    assert len(list(read(folder))) == 2
    shard.write_bytes(text.encode()[:-20])
    assert len(list(read(folder))) == 1


def test_shards_of_all_workers_are_read_in_order(folder):
    for name in ("gw1", "gw0", "main"):
        recorder = Recorder(folder, name)
        recorder.line("broke", item=name, error="")
        recorder.close()
    assert [record["item"] for record in read(folder)] == ["gw0", "gw1", "main"]


def test_a_worker_that_died_leaves_its_case(folder):
    dead, alive = recorded(folder, "gw0"), recorded(folder, "gw1")
    alive.close()
    (orphan,) = orphans(folder)
    assert orphan["item"] == "r0001-cached-llama"
    assert orphan["case"] == small_case().to_dict()
    dead.close()
    assert orphans(folder) == []


def test_only_counted_cases_are_counted(folder):
    recorded(folder).close()
    assert count_verdicts(list(read(folder))) == {"one": {"pass": 1}, "two": {"blocked-by one": 1}}


def test_records_are_plain_json(folder):
    recorded(folder).close()
    for line in (folder / "records" / "gw0.ndjson").read_text().splitlines():
        assert json.dumps(json.loads(line), sort_keys=True) == line
