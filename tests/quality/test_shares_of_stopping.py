"""What cases of the family `stopping` ask for beside tokens, over many draws: often enough to show what is undone."""

import pytest
from test_draws import drawn, share

pytestmark = pytest.mark.quality
ARCHITECTURES = ("llama", "gemma3_text", "t5", "lfm2")
DRAWS = 200  # of each


def test_what_an_undone_step_may_forget_is_asked_for():
    all_cases = [case for architecture in ARCHITECTURES for case in drawn("stopping", architecture, DRAWS)]
    sampled = [case for case in all_cases if case.settings.do_sample]
    eager = [case for case in all_cases if case.model.attention == "eager"]
    assert share(all_cases, lambda case: case.settings.do_sample) == pytest.approx(1 / 3, abs=0.05)
    assert share(sampled, lambda case: case.settings.returned > 1) == pytest.approx(1 / 2, abs=0.08)
    assert share(eager, lambda case: case.settings.output_attentions) == pytest.approx(1 / 4, abs=0.06)
    assert share(all_cases, lambda case: case.settings.output_hidden_states) >= 0.1
    assert not any(case.settings.output_attentions for case in all_cases if case.model.attention != "eager")
