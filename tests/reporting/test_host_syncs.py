"""The table of host synchronisations."""

from conformance.reporting.reports.host_syncs import AT_ONCE, LATE, write


def case(architecture, **figures):
    return {"record": "case", "counted": True, "architecture": architecture, "figures": figures}


def test_a_row_for_each_type_and_one_for_all(folder):
    records = [case("gpt2", **{AT_ONCE: 1.0, LATE: 0.0}), case("llama", **{AT_ONCE: 2.0, LATE: 0.5})]
    records += [case("llama", **{AT_ONCE: 3.0, LATE: 0.5}), case("bamba", **{AT_ONCE: 9.0}), {"record": "item"}]
    text = write(folder, {"subject": "installed", "versions": {"transformers": "5.24.0"}}, records).read_text(
        encoding="utf-8"
    )
    assert "Subject: installed, with transformers 5.24.0." in text
    assert "| gpt2 | 1 | 1.00 | 0.00 |" in text
    assert "| llama | 2 | 2.50 | 0.50 |" in text
    assert "| **all** | 3 | 2.00 | 0.33 |" in text
    assert "bamba" not in text


def test_nothing_is_written_where_nothing_deferred(folder):
    assert write(folder, {}, [case("bamba", **{AT_ONCE: 9.0})]) is None
    assert not list(folder.iterdir())
