"""What commands print, without a process of their own."""

import io
import json

import pytest
from rich.console import Console
from toolbox import CHECKS_OF, small_case
from typer.testing import CliRunner

from conformance import __version__, registry
from conformance.cli import app, explain, listing
from conformance.cli.replay import replay_case, verdict_lines
from conformance.errors import BadInput, unknown
from conformance.judge import Judgement, judge
from conformance.plans.prefill import PrefillPlan
from conformance.reporting.columns import print_table
from conformance.reporting.side_by_side import print_side_by_side, title
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.verdicts import STATUSES, Difference, Verdict


def printed(rows, **console):
    file = io.StringIO()
    print_table(Console(file=file, **console), rows)
    return file.getvalue().splitlines()


def test_the_version_is_told():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"conformance {__version__}\n")


def test_a_list_through_a_pipe_has_one_whole_line_an_entry():
    entries = listing.checks()
    rows = [listing.row(entry) for entry in entries]
    lines = printed([tuple(entries[0]), *rows], width=80)
    known = sorted((check.family, check.name) for check in registry.checks().values())
    assert [(line.split()[1], line.split()[0]) for line in lines[1:]] == known
    assert all(line.endswith(row[-1]) for line, row in zip(lines[1:], rows, strict=True))


def told(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_list_of_checks_keeps_what_is_long_for_json_and_can_be_cut():
    lines = told("list", "checks").splitlines()
    assert lines[0].split() == ["name", "family", "profile", "rule"]
    assert max(map(len, lines)) < 240
    assert len(told("list", "checks", "family:tied").splitlines()) == 3
    (entry,) = json.loads(told("list", "checks", "tied-groups*", "--json"))
    assert (entry["name"], entry["stands_on"]) == ("tied-groups-stay-tied", [])
    with pytest.raises(BadInput, match="unknown check 'family:tide'; did you mean family:tied"):
        CliRunner().invoke(app, ["list", "checks", "family:tide"], catch_exceptions=False)
    with pytest.raises(BadInput, match="selects checks; subjects are listed whole"):
        CliRunner().invoke(app, ["list", "subjects", "family:tied"], catch_exceptions=False)


def test_a_family_is_explained_check_by_check():
    assert explain.explain.__doc__  # importing it makes it a command
    page = told("explain", "family:tied")
    assert [line for line in page.splitlines() if line.endswith("(family tied)")] == [
        "tied-groups-stay-tied (family tied)",
        "wrong-ties-are-refused (family tied)",
    ]


def test_a_list_on_a_narrow_terminal_cuts_no_name():
    name = "n" * 50
    lines = printed([("name", "stands_on", "rule"), (name, "", "of many words " * 10)], width=80, force_terminal=True)
    assert lines[0] == name
    assert lines[1].startswith("    rule: of many words")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("value", "said"), [(True, "yes"), (False, "no"), (None, ""), (1, "1"), ((), ""), (["a", "b"], "a, b")]
)
def test_values_in_words(value, said):
    assert listing.row({"name": value}) == (said,)


@pytest.mark.parametrize(
    ("what", "ending"),
    [
        ("check", "n39, ... and 15 more: conformance list checks"),
        ("check of the family cached", "n39, ... and 15 more: conformance list checks"),
        ("architecture", "n39, ... and 15 more: conformance list architectures"),
        ("family", "n39, ... and 15 more"),
    ],
)
def test_an_unknown_name_says_how_many_valid_ones_it_leaves_out(what, ending):
    names = [f"n{number:02}" for number in range(55)]
    assert str(unknown(what, "zzzzz", names)).endswith(ending)
    assert str(unknown(what, "zzzzz", names[:40])).endswith("n38, n39")


def test_failures_come_first_and_what_does_not_apply_last():
    verdicts = {status: Verdict(status) for status in reversed(STATUSES)}
    told = [line.split()[-1] for line in verdict_lines(verdicts)]
    assert told == ["fail", "known", "blocked-by", "tie", "allowed", "pass", "not-applicable"]


def test_a_replay_through_a_pipe_is_not_wrapped():
    file = io.StringIO()
    replay_case(small_case(rows=((3, 4), (5,))), None, "installed", True, Console(file=file, width=40))
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("Case(")
    assert lines[0].endswith(" new)")
    assert "Shown: plain decoding by installed, and the oracle under the same tokens." in lines


@pytest.mark.parametrize(
    ("family", "plan", "right"),
    [("prefill", PrefillPlan(chunk=2), "plain decoding"), ("stopping", None, "at once"), ("cached", None, "oracle")],
)
def test_both_sides_are_those_that_the_family_compares(family, plan, right):
    judged = judge(small_case(family=family, plan=plan), CHECKS_OF[family], Installed())
    file = io.StringIO()
    print_side_by_side(Console(file=file, width=200), judged, judged.runs)
    heads, *lines = file.getvalue().splitlines()[-5:]
    assert right in heads
    assert [line.split()[1] for line in lines] == ["0", "1", "2", "3"]
    assert all(line.split()[2] == line.split()[3] for line in lines)


@pytest.mark.parametrize(
    ("plan", "told", "rows"),
    [
        (
            {"map": "parts", "places": ("cpu", "disk")},
            ("loader: from_pretrained, dtype float32", "    model.layers.0: disk", "    model.layers.0: offloaded"),
            4,
        ),
        ({"map": "auto", "budget": (60,)}, ("map asked for: auto, within bytes of cpu: 17414", "hf_device_map:"), 4),
        ({"stranded": 0}, ("left on meta on purpose, with nothing that brings it: model.embed_tokens.weight",), 0),
        ({"loader": "cpu_offload"}, ("hf_device_map: none", "    model.layers: offloaded"), 4),
    ],
    ids=["parts", "planned", "stranded", "offloaded"],
)
def test_of_a_placement_the_recipe_and_where_the_parts_are_is_shown(plan, told, rows):
    runs, file = Runs(small_case(family="placement", plan=plan), Installed()), io.StringIO()
    print_side_by_side(Console(file=file, width=200), Judgement(runs.case, {}), runs)
    lines = file.getvalue().splitlines()
    assert lines[1] == "Shown: the model as installed places it, and undispatched."
    assert [line for line in told if line not in lines] == []
    shown = [line.split() for line in lines if line.split()[:1] == ["0"]]
    assert [cells[2] == cells[3] for cells in shown] == [True] * rows


def test_a_placement_that_raises_is_shown_and_nothing_beside_it():
    class Raises(Installed):
        def place(self, recipe):
            raise KeyError(recipe.loader)

    runs, file = Runs(small_case(family="placement"), Raises()), io.StringIO()
    print_side_by_side(Console(file=file, width=200), Judgement(runs.case, {}), runs)
    assert file.getvalue().splitlines()[-1].startswith("placing it raised: KeyError: 'from_pretrained'")


def test_what_is_shown_and_what_a_failed_check_is_about():
    runs = Runs(small_case(family="prefill"), Installed())
    lines = list(
        title(runs, {"assisted-matches-plain": Verdict("fail", differences=(Difference("values", "b", "", ""),))})
    )
    assert lines[1].startswith(
        "assisted-matches-plain failed, whose rule is: What an assistant model or layers ahead draft"
    )
    assert lines[2] == "Where a rule is about other runs than those shown, these may agree."
    assert len(list(title(runs, {}))) == 1
