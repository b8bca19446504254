"""What the strategies draw, in figures: every path often enough, models tiny, hardly anything thrown away."""

import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, seed
from toolbox import EVERY_PROFILE, explored

from conformance import events
from conformance.architectures import catalogue
from conformance.build import Scenario
from conformance.compare import BOUND
from conformance.profiles import exploring
from conformance.signature import switches
from conformance.strategies.cases import cases
from conformance.subjects.installed import Installed

pytestmark = pytest.mark.quality
HERE = Path(__file__).parent
DRAWS = 400


def drawn(family, architecture, count=DRAWS):
    """`count` drawn cases."""
    found = []

    @seed(3)
    @exploring(count)
    @given(cases(family, architecture))
    def draw(case):
        found.append(case)

    draw()
    return found


def share(cases_, holds):
    return sum(map(holds, cases_)) / len(cases_)


def told_ends(settings):
    """End tokens, as themselves or by the places at which they are said."""
    return bool(settings.eos or settings.eos_at or settings.eos_unused)


def pad_ends(settings):
    """No pad token means the first end token."""
    return settings.pad is None or settings.pad in settings.eos


SHARES = {
    "several rows": (0.4, lambda case: len(case.prompt.rows) > 1),
    "padded": (0.1, lambda case: case.prompt.padded),
    "sampling": (0.05, lambda case: case.settings.do_sample),
    "end tokens": (0.3, lambda case: told_ends(case.settings)),
    "pad is an end token": (0.1, lambda case: told_ends(case.settings) and pad_ends(case.settings)),
    "float64": (0.04, lambda case: case.model.dtype == "float64"),
    "sdpa": (0.3, lambda case: case.model.attention == "sdpa"),
    "penalty": (0.04, lambda case: case.settings.repetition_penalty != 1.0),
    "hidden states": (0.05, lambda case: case.settings.output_hidden_states),
    "attentions": (0.02, lambda case: case.settings.output_attentions),
    "long enough to decode": (0.5, lambda case: case.settings.max_new_tokens >= 3),
}


@pytest.fixture(scope="module")
def llamas():
    return drawn("cached", "llama")


@pytest.mark.parametrize(("least", "holds"), SHARES.values(), ids=SHARES)
def test_every_setting_is_drawn_often_enough(llamas, least, holds):
    assert share(llamas, holds) >= least


def test_groups_of_several_tokens_are_fed_often_enough(llamas):
    assert share(llamas, lambda case: any(size > 1 for size in case.plan.sizes())) >= 0.25


def test_hardly_any_case_is_drawn_twice(llamas):
    assert len(set(llamas)) >= 0.9 * len(llamas)


def test_weight_seeds_differ(llamas):
    assert len({case.model.weight_seed for case in llamas}) >= 0.5 * len(llamas)


def test_windows_are_met_below_at_and_above():
    found = Counter(event for case in drawn("cached", "mistral", 200) for event in events.of_case(case, Scenario(case)))
    for place in ("above", "at", "below"):
        assert found[f"window: {place} the prompt"] >= 10, found


@pytest.mark.parametrize("architecture", ["qwen2", "phi3", "mixtral", "starcoder2"])
def test_what_default_configs_hide_is_asked_for(architecture):
    with_window = share(
        drawn("cached", architecture, 100),
        lambda case: bool(switches(case)) or any("window" in key and value for key, value in case.model.config.items()),
    )
    assert with_window >= 0.1


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "deepseek_v3", "t5", "bamba"])
def test_models_are_tiny_and_valid(architecture):
    sizes = [sum(p.numel() for p in Scenario(case).pristine.parameters()) for case in drawn("cached", architecture, 40)]
    assert statistics.median(sizes) < 100_000
    assert max(sizes) < 500_000


@pytest.mark.parametrize("architecture", ["llama", "mistral", "lfm2", "t5"])
def test_hardly_any_draw_is_thrown_away(architecture):
    counts = Counter()

    @exploring(200)
    @given(cases("cached", architecture).map(lambda case: counts.update(drawn=1) or case))
    def draw(_):
        counts.update(used=1)

    draw()
    assert counts["used"] >= 0.99 * counts["drawn"]


# Families that tell no ways of stopping, and why.
TELL_NO_STOPS = {
    "rollback": "nothing but the limit ends a row",
    "placement": "a decoding is compared as a whole, and is a few tokens long",
    "special_tokens": "end tokens are given in ways of its own; the floor `ids: end token met` is about them",
}


@pytest.mark.parametrize("family", [family for family in EVERY_PROFILE if family not in TELL_NO_STOPS])
def test_every_way_of_stopping_is_reached(family, folder):
    found = Counter()
    for record in _records(folder, family, 200):
        found.update(record["events"])
    total = 200
    assert found["stop: length"] >= 0.1 * total
    assert found["stop: eos middle"] >= 0.05 * total
    assert found["stop: eos first"] >= 1
    assert found["stop: eos last"] >= 1
    assert found["stop: rows differ"] >= 0.05 * total


def _records(folder, family, examples):
    from conformance.records import read

    explored(folder, Installed(), family=family, examples=examples)
    return [record for record in read(folder) if record["record"] == "case"]


def test_equal_computations_stay_far_within_the_bound():
    """Row alone, cached, against recomputed: nine in ten use less than half of the bound."""
    from conformance.compare import scale_of
    from conformance.runs import Runs

    used = []
    for case in drawn("cached", "llama"):
        runs = Runs(case, Installed())
        tokens = runs.alone[0].tokens(0)
        expected = runs.oracle.logits(0, tokens)
        gaps = [float((got[0] - right).abs().max()) for got, right in zip(runs.alone[0].logits, expected, strict=True)]
        used.append(max(gaps) / scale_of(list(expected)) / BOUND)
    assert statistics.quantiles(used, n=10)[-1] < 0.5


@pytest.mark.parametrize("architecture", catalogue.core_names())
def test_every_architecture_can_be_drawn(architecture):
    for case in drawn("cached", architecture, 10):
        Scenario(case)


DIGEST = """
import hashlib, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {quality!r}]
from conformance import upstream; upstream.quiet()
{more}
from test_draws import drawn
print(hashlib.sha256("".join(case.to_json() for case in drawn("cached", "llama")).encode()).hexdigest())
"""


# What Hypothesis does for code in site-packages: it takes no constants from it.
AS_INSTALLED = (
    "from hypothesis.internal.conjecture import providers as p; p._get_local_constants = lambda: p._local_constants"
)


def test_draws_are_the_same_from_a_checkout_and_from_a_wheel(tmp_path):
    """One seed gives the same cases wherever this project is installed, and whatever else is loaded."""
    found = set()
    for more in ("", AS_INSTALLED):
        script = DIGEST.format(tests=str(HERE.parent), quality=str(HERE), more=more)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
        found.add(done.stdout)
    assert len(found) == 1
