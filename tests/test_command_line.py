"""What commands print, without a process of their own."""

import io

import pytest
from rich.console import Console
from toolbox import CHECKS_OF, small_case
from typer.testing import CliRunner

from conformance import __version__, registry
from conformance.cli import app, listing
from conformance.cli.replay import replay_case, verdict_lines
from conformance.errors import unknown
from conformance.judge import judge
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
    assert [line.split()[0] for line in lines[1:]] == list(registry.checks())
    assert all(line.endswith(row[-1]) for line, row in zip(lines[1:], rows, strict=True))


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
    print_side_by_side(Console(file=file, width=200), judged)
    heads, *lines = file.getvalue().splitlines()[-5:]
    assert right in heads
    assert [line.split()[1] for line in lines] == ["0", "1", "2", "3"]
    assert all(line.split()[2] == line.split()[3] for line in lines)


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
