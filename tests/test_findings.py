"""Findings: one for each signature, with its smallest case, shared through the disk."""

import json
import time
from dataclasses import replace

import pytest
from toolbox import small_case
from zoo.subjects import IgnoresEnd

from conformance import plainer
from conformance.build import Scenario
from conformance.failures import Failure, same_failure
from conformance.files import write_atomically
from conformance.findings import Finding, Findings, size_of
from conformance.plainer import plainer_cases
from conformance.plans.placement import PlacementPlan
from conformance.scope import on_model_of, on_plainest, settle
from conformance.signature import PLAINEST, Key, Signature, kinds_of, switches, traits
from conformance.verdicts import WITHOUT_A_COPY, Difference

CHECK = "cached-matches-recomputed"
DIFFERENCE = Difference("values", "logits", "1", "2")


def signature(**parts):
    fields = {
        "check": CHECK,
        "kind": "values",
        "field": "logits",
        "raised_in": "",
        "cache": ("full",),
        "needs": (),
        "scope": "any",
    }
    return Signature(**{**fields, **parts})


def finding(case=None, **parts):
    return Finding(signature(**parts), case or small_case(), expected="1", got="2")


LARGE, SMALL = small_case(rows=((3, 4, 5, 6),)), small_case(rows=((3,),))


@pytest.mark.parametrize("order", [(LARGE, SMALL), (SMALL, LARGE)])
def test_one_signature_keeps_its_smallest_case(order, folder):
    findings = Findings(folder)
    assert [findings.add(finding(case)) for case in order] == [True, order[1] is SMALL]
    (kept,) = findings
    assert kept.case == SMALL
    stored = json.loads((folder / "findings" / kept.id / "case.json").read_text())
    assert stored == SMALL.to_dict()


def test_other_signatures_are_other_findings(folder):
    findings = Findings(folder)
    for parts in (
        {},
        {"field": "scores"},
        {"scope": "llama"},
        {"needs": ("padding",)},
        {"cache": ("sliding",)},
        {"kind": "nan"},
    ):
        assert findings.add(finding(**parts))
    assert len(findings) == len({found.id for found in findings}) == 6


def test_a_finding_survives_its_file(folder):
    findings = Findings(folder)
    made = finding(needs=("padding", "dtype"))
    findings.add(made)
    assert list(findings) == [made]
    findings.update(Finding.from_dict({**made.to_dict(), "confirmed": True}))
    assert next(iter(findings)).confirmed is True


def test_an_id_is_a_readable_folder_name():
    made = finding(scope="gemma3_text")
    assert made.id.startswith(f"{CHECK}-gemma3_text-")
    assert set(made.id) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")


def test_values_are_no_part_of_a_signature():
    one, other = Difference("values", "logits", "1", "2", "step 3"), Difference("values", "logits", "8", "9", "step 1")
    assert Key.of(CHECK, one) == Key.of(CHECK, other)


@pytest.mark.parametrize(
    ("parts", "case", "explained"),
    [
        ({}, small_case(), True),
        ({}, small_case("gpt2"), True),
        ({"needs": ("padding",)}, small_case(), False),
        ({"needs": ("padding",)}, small_case(rows=((1,), (2, 3)), do_sample=True), True),
        ({"field": "scores"}, small_case(), False),
    ],
)
def test_a_finding_could_explain_what_shows_the_same_and_has_what_it_needs(parts, case, explained, folder):
    findings = Findings(folder)
    findings.add(finding(**parts))
    assert bool(findings.that_could_explain(signature().key, case)) == explained


def test_traits_are_the_settings_that_are_not_the_plainest():
    assert traits(small_case()) == ()
    assert traits(small_case(rows=((1,), (2, 3)), dtype="float64", attention="sdpa", eos=(3,), do_sample=True)) == (
        "attention kernel",
        "do_sample",
        "dtype",
        "eos",
        "padding",
        "several rows",
    )
    assert traits(small_case(max_new_tokens=9, weight_seed=3, init_scale=0.5)) == ()
    assert switches(small_case(config={"use_sliding_window": True, "tie": True, "use_cache": False})) == [
        "config use_sliding_window"
    ]


def test_smaller_is_fewer_traits_then_fewer_tokens():
    small, longer, sampled = (
        small_case(rows=((3,),)),
        small_case(rows=((3, 4),)),
        small_case(rows=((3,),), do_sample=True),
    )
    assert sorted([sampled, longer, small], key=size_of) == [small, longer, sampled]


def test_plainer_cases_change_one_part_each_and_end():
    case = small_case(rows=((1,), (2, 3)), dtype="float64", attention="sdpa", eos=(3,), init_scale=0.5)
    tried = list(plainer_cases(case))
    assert case not in tried
    assert len(set(tried)) >= 8
    assert all(len(traits(one)) <= len(traits(case)) for one in tried)
    assert list(plainer_cases(small_case(rows=((1,),), max_new_tokens=1))) == []


def test_what_is_not_needed_goes_in_few_tries_where_each_takes_long(monkeypatch):
    """A failure that needs one field of a plan: what else is set goes in halves, not one by one."""
    plan = PlacementPlan(map="auto", budget=(69,), ids="model.device", mode="beams", stored="bin", shards=True)
    told = {"eos": (63,), "do_sample": True, "limit": "both", "max_new_tokens": 1, "dtype": "float64"}
    case, tried = small_case(rows=((1, 2, 3), (4, 5)), family="placement", plan=plan, **told), []

    def same(key, case, _):
        tried.append(case)
        return Failure(key, case, DIFFERENCE) if case.plan.map == "auto" else None

    monkeypatch.setattr(plainer, "same_failure", same)
    found = plainer.plainer(Failure(Key.of(CHECK, DIFFERENCE), case, DIFFERENCE), None, time.time() + 60)
    assert traits(found.case) == ("map of parts", "planned")
    assert len(tried) < len(traits(case)) + 4


@pytest.mark.parametrize(("kinds", "architecture"), PLAINEST.items(), ids=PLAINEST.values())
def test_the_plainest_type_of_a_kind_is_of_that_kind(kinds, architecture):
    assert kinds_of(small_case(architecture)) == kinds


@pytest.mark.parametrize("architecture", ["mistral", "t5", "lfm2"])
def test_a_case_moves_to_the_plainest_type_with_its_prompt(architecture):
    moved = on_plainest(small_case("qwen3", rows=((3, 4), (5, 60))), architecture)
    assert moved.model.architecture == architecture
    assert [len(row) for row in moved.prompt.rows] == [2, 2]
    assert moved.settings == small_case().settings


def test_a_case_on_the_plainest_type_looks_end_tokens_up_again():
    case = small_case("qwen3", rows=((3, 60),), eos=(50,), eos_at=((0, 1),), stop=("ab",), stop_at=((0, 2),))
    moved = on_plainest(case, "llama")
    assert (moved.settings.eos, moved.settings.eos_at) == ((), ((0, 1),))
    assert (moved.settings.stop, moved.settings.stop_at) == ((), ((0, 2),))
    assert on_plainest(small_case("qwen3", eos=(5,)), "llama").settings.eos == (5,)


def test_a_fault_that_needs_an_end_token_is_told_of_any_type():
    """The end token is one that the plainest type does not say by itself."""
    case = small_case("qwen3", eos_at=((0, 1),), max_new_tokens=4, weight_seed=5)
    failure = same_failure(Key(CHECK, "length", "sequences", ""), case, IgnoresEnd())
    assert failure is not None
    assert failure.case.settings.eos
    assert settle(failure, IgnoresEnd(), repeatable=True).signature.scope == "any"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "finding.json"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["finding.json"]


def test_a_finding_that_needs_more_than_another_is_merged_into_it(folder):
    findings = Findings(folder)
    for needs in (("padding",), ("dtype", "padding"), ("dtype",)):
        findings.add(finding(needs=needs))
    findings.merge()
    assert sorted(kept.signature.needs for kept in findings) == [("dtype",), ("padding",)]


@pytest.mark.parametrize(
    ("marks", "kept"),
    [
        ({"bart": "llama"}, {"gpt2", "llama"}),
        ({"bart": "gpt2", "gpt2": "llama"}, {"llama"}),
        ({"gpt2": "llama", "llama": "gpt2"}, {"bart", "llama"}),  # each is of the other: one of them stays
        ({"bart": "opt"}, {"bart", "gpt2", "llama"}),  # of one that is not there
    ],
)
def test_what_is_marked_as_part_of_another_is_dropped_once_the_run_is_over(marks, kept, folder):
    findings, made = Findings(folder), {name: finding(scope=name) for name in ("bart", "gpt2", "llama", "opt")}
    for name in ("bart", "gpt2", "llama"):
        findings.add(made[name])
    for name, whole in marks.items():
        findings.mark_as_part(made[name], made[whole])
    assert len(findings) == 3
    findings.merge()
    assert {one.signature.scope for one in findings} == kept


def test_a_findings_case_on_another_model_looks_end_tokens_up_again():
    case = small_case(rows=((3, 60),), eos=(50,), eos_at=((0, 1),))
    other = small_case("gpt2")
    moved = on_model_of(case, other)
    vocabulary = Scenario(other).vocabulary
    assert moved.model == other.model
    assert moved.prompt.rows == ((3, 60 % vocabulary),)
    assert (moved.settings.eos, moved.settings.eos_at) == ((), ((0, 1),))
    assert on_model_of(small_case(eos=(5,)), other).settings.eos == (5,)


SHARED = "TypeError in utils._prefill"


def crash(architecture, raised_in=SHARED, message="TypeError: 'BartX' takes 3 more", **parts):
    shown = {"kind": "crash", "field": "crash", "scope": architecture, **parts}
    made = finding(small_case(architecture), raised_in=raised_in, **shown)
    return replace(made, got=message)


def kept_after_merging(folder, *made):
    findings = Findings(folder)
    for one in made:
        findings.add(one)
    findings.merge()
    return list(findings)


def test_one_exception_of_shared_code_is_one_finding_that_names_the_types(folder):
    (kept,) = kept_after_merging(
        folder,
        crash("bart"),
        crash("gpt2", message="TypeError: 'GPT2X' takes 4 more"),
        crash("opt", cache=("sliding",)),
    )
    named = {kept.case.model.architecture, *kept.notes[0].removeprefix("the same on ").split(", ")}
    assert named == {"bart", "gpt2", "opt"}


def test_names_in_a_row_and_what_a_hook_has_no_copy_of_do_not_tell_causes_apart(folder):
    shared = [
        f"RuntimeError: Some tensors share memory: [{{{names}}}]" for names in ("'a', 'b'", "'a.w', 'b.w', 'c.w'")
    ]
    copies = [f"{name}: its hook has no copy of it (KeyError) ({n} in all)" for n, name in enumerate(("a.w", "b.w"))]
    missing = {"kind": "missing", "field": WITHOUT_A_COPY, "raised_in": ""}
    kept = kept_after_merging(
        folder,
        *(crash(name, message=said) for name, said in zip(("bart", "opt"), shared, strict=True)),
        *(crash(name, message=said, **missing) for name, said in zip(("bart", "opt"), copies, strict=True)),
        crash("gpt2", message=copies[0].replace("KeyError", "SafetensorError"), **missing),
    )
    assert len(kept) == 3


def test_a_step_more_than_fits_is_one_finding_whatever_the_model_says_of_it(folder):
    table = {"field": "step too many", "needs": ("eos",)}
    made = kept_after_merging(
        folder,
        crash("bart", "IndexError in modeling_bart.forward", "IndexError: index out of range", **table),
        crash("opt", "RuntimeError in modeling_opt.forward", "RuntimeError: no position 9", **table),
        crash("gpt2", "IndexError in cache_utils.update", "IndexError: no room", **table),
    )
    assert sorted(bool(kept.notes) for kept in made) == [False, True]


def test_a_step_that_is_fed_a_pad_id_beyond_the_vocabulary_is_another_cause_than_one_that_does_not_fit(folder):
    needs = {"bart": ("eos",), "opt": ("eos", "plan pad_beyond"), "mpt": ("plan pad_beyond", "tied weights")}
    kept = kept_after_merging(
        folder,
        *(crash(of, f"IndexError in modeling_{of}.forward", field="step too many", needs=needs[of]) for of in needs),
    )
    assert sorted("plan pad_beyond" in one.signature.needs for one in kept) == [False, True]


@pytest.mark.parametrize(
    "other",
    [
        {"message": "TypeError: it needs a mask"},
        {"needs": ("padding",)},
        {"raised_in": "ValueError in utils._prefill"},
        {"raised_in": "TypeError in modeling_gpt2.forward"},
    ],
    ids=["another message", "another need", "another exception", "a file of its own"],
)
def test_exceptions_that_may_have_other_causes_stay_apart(other, folder):
    assert len(kept_after_merging(folder, crash("bart"), crash("gpt2", **other))) == 2


def test_differences_of_several_types_stay_apart(folder):
    assert len(kept_after_merging(folder, finding(scope="bart"), finding(small_case("gpt2"), scope="gpt2"))) == 2


def untied(architecture, weight):
    made = finding(small_case(architecture), kind="untied", field="making", scope=architecture)
    return replace(made, got=f"model.layers.0.{weight} and model.layers.1.{weight} are not")


def test_one_weight_that_comes_apart_on_several_types_is_one_finding(folder):
    made = [untied("deepseek_v3", "gate.bias"), untied("dots1", "router.bias"), untied("bart", "fc.weight")]
    assert len(kept_after_merging(folder, *made)) == 2


FILES = {
    SHARED: True,
    "TypeError in modeling_bart.forward": False,
    "TypeError in modeling_*.eager_attention_forward": True,
    "TypeError in modeling_utils.tie_weights": True,
    "KeyError in generation_csm.f": False,
    "KeyError in modeling_rope_utils.f": True,
    "KeyError in hooks.pre_forward": True,
}


def test_what_raises_in_a_function_that_model_files_copy_is_the_same_in_each(folder):
    def failed(architecture, function):
        place = f"modeling_{architecture}.{function}"
        got = f"RuntimeError: size {len(architecture)} (in {place})"
        return Difference("crash", "crash", "no exception", got, raised_in=f"RuntimeError in {place}")

    kernel, own = [[failed(name, of) for name in ("opt", "bart")] for of in ("eager_attention_forward", "forward")]
    assert len({Key.of("any", one) for one in kernel}) == 1 < len({Key.of("any", one) for one in own})
    told = zip(("opt", "bart"), kernel, strict=True)
    assert (
        len(kept_after_merging(folder, *(crash(type_, Key.of("any", one).raised_in, one.got) for type_, one in told)))
        == 1
    )


@pytest.mark.parametrize(("raised_in", "shared"), FILES.items())
def test_the_files_of_one_model_are_told_from_those_that_types_share(raised_in, shared):
    assert signature(kind="crash", raised_in=raised_in).raised_by_shared_code == shared


@pytest.mark.parametrize(
    "end", [{"eos_at": ((0, 1),), "eos": (3,)}, {"row_stops": ((0, 1),)}, {"stop": ("aab",)}], ids=str
)
def test_whatever_ends_a_row_is_one_need_of_deferral(end):
    assert traits(small_case(family="stopping", plan={}, **end)) == ("an end before the length",)
    assert traits(small_case(family="purity", plan={}, **end)) != ("an end before the length",)
