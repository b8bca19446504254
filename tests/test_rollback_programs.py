"""Random programs on the reference's caches, as a state machine: what shrinks is a short program, plain data."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from toolbox import small_case

from conformance.judge import judge
from conformance.plans.rollback import RollbackPlan
from conformance.plans.rollback_programs import Op
from conformance.programs.prepared import interpreter, run
from conformance.runs import Runs
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

ROOM = 16  # tokens that a static cache has beyond what is fed


class CacheMachine(RuleBasedStateMachine):
    """One model and cache; the truth is a cache that saw only what is left."""

    architecture, subject, cache = "llama", Reference, "default"

    def __init__(self):
        super().__init__()
        plan = RollbackPlan(
            cache=self.cache, program=(Op(op="prefill"), *(Op(op="feed", tokens=(1,) * 8),) * 3), slack=ROOM
        )
        case = small_case(self.architecture, rows=((3, 4, 5, 6), (7, 8)), family="rollback", plan=plan)
        self.found = interpreter(Runs(case, self.subject()))
        self.program, self.fed = [], 0

    def do(self, **op):
        self.program.append(Op(**op))
        run(self.found, self.program[-1:])

    @precondition(lambda self: not self.found.filled)
    @rule()
    def prefill(self):
        self.do(op="prefill")

    @precondition(lambda self: self.found.filled and self.fed < ROOM)
    @rule(tokens=st.lists(st.integers(1, 39), min_size=1, max_size=4))
    def feed(self, tokens):
        self.fed += len(tokens)
        self.do(op="feed", tokens=tuple(tokens))

    @rule()
    def record(self):
        self.do(op="record")

    @rule(count=st.integers(0, 6))
    def crop(self, count):
        fed = sum(len(group[0]) for group in self.found.groups)
        self.do(op="crop", count=min(count, fed))

    @rule(rows=st.lists(st.integers(0, 3), min_size=1, max_size=3))
    def reorder(self, rows):
        self.do(op="reorder", rows=tuple(rows))

    @rule(rows=st.lists(st.integers(0, 3), min_size=1, max_size=3))
    def select(self, rows):
        self.do(op="select", rows=tuple(rows))

    @rule()
    def repeat(self):
        self.do(op="repeat", count=2)

    @rule()
    def reset(self):
        self.fed = 0
        self.do(op="reset")

    @invariant()
    def nothing_differs(self):
        for step in self.found.steps[-1:]:
            told = [*step.crash.differences, *step.wrong.differences, *step.changed.differences]
            assert not told, (told[0], [str(op) for op in self.program])


def machine(architecture, subject, cache="default"):
    """The machine of one type, class of cache and subject."""
    return type("Machine", (CacheMachine,), {"architecture": architecture, "subject": subject, "cache": cache})


def check(kind, examples):
    phases = (Phase.generate, Phase.shrink)
    health = list(HealthCheck)
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=phases,
            suppress_health_check=health,
        ),
    )


@pytest.mark.parametrize("architecture", ["llama", "mistral", "lfm2", "mamba"])
def test_the_reference_rolls_every_kind_back(architecture):
    check(machine(architecture, Reference), 4)


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["default", "static", "early"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3_text", "lfm2", "mamba", "jamba", "qwen3_next"])
def test_the_reference_rolls_every_kind_back_for_longer(architecture, cache):
    check(machine(architecture, Reference, cache), 60)


def test_a_fault_of_the_installed_caches_shrinks_to_a_short_program():
    """A sliding window gives back more than it recorded: it says nothing and keeps too little."""
    with pytest.raises(AssertionError) as caught:
        check(machine("mistral", Installed), 200)
    program = caught.value.args[0][1] if isinstance(caught.value.args[0], tuple) else str(caught.value)
    assert str(program).count("(") <= 12


def test_what_else_ends_or_steers_a_row_plays_no_part():
    """A beam that a stop string ends is filled up, and a forced end token scores 0: neither tells of a cache."""
    plan = RollbackPlan(beams=2)
    plainest = small_case("lfm2", rows=((1, 3, 1, 1, 1, 9),), family="rollback", plan=plan, attention="sdpa")
    for parts in ({"stop": ("abg",)}, {"eos": (7,), "forced_eos": True}, {"row_stops": ((0, 1),)}):
        case = plainest.replace(settings=plainest.settings.replace(**parts))
        judged = judge(case, ("beams-reorder-every-state",), Reference())
        assert judged.verdicts["beams-reorder-every-state"].status == "pass"
