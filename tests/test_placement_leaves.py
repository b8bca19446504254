"""What placing leaves alone: told by what was handed over, by torch's state, and by where weights are afterwards."""

from __future__ import annotations

import pytest
import torch
from toolbox import small_case
from transformers import DynamicCache, EncoderDecoderCache
from zoo import placed_leaves
from zoo.placements import Placer

from conformance.judge import judge
from conformance.placing.caches import lies_on
from conformance.placing.leaving import Left, changed_files, contents, with_own_dicts
from conformance.placing.recipe import Recipe
from conformance.placing.whereabouts import Where, moved
from conformance.plans.placement import PlacementPlan
from conformance.simulation import accelerator
from conformance.subjects.installed import Installed
from conformance.subjects.reference import Reference

GIVEN, TORCH, MOVES = "placing-changes-nothing-given", "placing-leaves-torch-alone", "decoding-moves-no-weight"
WRONG, BESIDE = "wrong-map-is-refused", "placing-another-leaves-the-first"
CACHE = "cache-is-where-its-layer-runs"
CONFIG, WITHIN, AUDITED = (
    "placement-changes-no-config", "planned-map-keeps-within-memory", "audit-accuses-nothing-right"
)  # fmt: skip
CPU, SIM = torch.device("cpu"), torch.device("cuda:0")
simulated = pytest.mark.skipif(accelerator.why_not() is not None, reason=str(accelerator.why_not()))


def judged(check, subject, architecture="llama", **plan):
    case = small_case(architecture, family="placement", plan=PlacementPlan(**plan))
    verdict = judge(case, [check], subject).verdicts[check]
    return verdict.label, [found.field for found in verdict.differences]


@pytest.mark.parametrize(
    ("check", "subject", "plan", "field"),
    [
        (GIVEN, placed_leaves.RaisesTheLimits(), {"map": "auto", "budget": (60,)}, "max_memory"),
        (WITHIN, placed_leaves.RaisesTheLimits(), {"map": "auto", "budget": (60,)}, "max_memory"),
        (GIVEN, placed_leaves.UsesUpTheMap(), {"map": "parts", "places": ("cpu", "disk")}, "device_map"),
        (GIVEN, placed_leaves.NotesInTheCheckpoint(), {}, "checkpoint"),
        (TORCH, placed_leaves.SeedsAnew(), {}, "seed of the generator"),
        (TORCH, placed_leaves.LeavesTheDtype(), {"loaded_as": "bfloat16"}, "process.default dtype"),
        (TORCH, placed_leaves.LeavesTheDevice(), {"places": ("disk",)}, "process.default device"),
        (TORCH, placed_leaves.LeavesMoreThreads(), {}, "process.threads"),
        (CONFIG, placed_leaves.Freezes(), {"places": ("cpu",)}, "frozen"),
        (CONFIG, placed_leaves.EditsConfigWhenItRuns(), {"loaded_as": "bfloat16"}, "config.pad_token_id"),
        (MOVES, placed_leaves.KeepsWhatItBrings(), {"loader": "cpu_offload"}, "places"),
    ],
)
def test_what_was_changed_is_named_and_nothing_where_nothing_was(check, subject, plan, field):
    assert judged(check, subject, **plan) == ("fail", [field])
    for right in (Installed(), Reference()):
        assert judged(check, right, **plan) == ("pass", [])
    assert (torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()) == (torch.float32, CPU, 1)


SIMS = {"accelerators": 2, "map": "parts"}
CPU_AND_DISK = {"map": "parts", "places": ("cpu", "disk")}


@pytest.mark.parametrize("mistake", ["left out", "misspelt", "no such device"])
def test_a_wrong_map_is_refused_or_does_no_harm(mistake):
    assert judged(WRONG, placed_leaves.TakesAnyMap(), **CPU_AND_DISK, mistake=mistake)[0] == "fail"
    for right in (Installed(), Reference()):
        assert judged(WRONG, right, **CPU_AND_DISK, mistake=mistake) == ("pass", [])
    taken = {"map": "parts", "places": ("cpu",), "mistake": mistake}
    assert judged(WRONG, Installed(), **taken)[0] == ("pass" if mistake == "no such device" else "allowed")


class RefusesVaguely(Placer):
    """Sees that a map is wrong, and does not say where."""

    def place(self, recipe):
        try:
            return super().place(recipe)
        except (ValueError, RuntimeError) as error:
            raise ValueError("the device_map is wrong") from error


@pytest.mark.parametrize("mistake", ["left out", "no such device"])
def test_a_refusal_that_names_nothing_is_not_enough(mistake):
    field = "map: no entry" if mistake == "left out" else "map: no such device"
    assert judged(WRONG, RefusesVaguely(), **CPU_AND_DISK, mistake=mistake) == ("fail", [field])


def test_what_a_class_never_saves_is_made_anew():
    assert judged("save-and-reload-keeps-ties", Installed(), "marian:seq2seq", loader="dispatch_model") == ("pass", [])


def test_two_models_share_a_folder():
    plan = {"places": ("disk",), "folder": "shared"}
    assert judged(BESIDE, placed_leaves.WritesWhereItWasTold(), **plan) == ("fail", ["weights of another model"])
    for right in (Installed(), Reference()):
        assert judged(BESIDE, right, **plan) == ("pass", [])
        assert judged(BESIDE, right, places=("cpu",), folder="shared") == ("not-applicable", [])


@pytest.mark.parametrize("stored", ["once", "bin"])
def test_without_a_folder_a_model_is_placed_or_refused(stored):
    wanted = "pass" if stored == "once" else "allowed"
    assert judged("planning-never-crashes", Installed(), places=("disk",), folder="none", stored=stored) == (wanted, [])


@simulated
@pytest.mark.parametrize(
    ("subject", "plan", "label"),
    [
        (placed_leaves.KeepsTheCacheOnTheCpu(), {**SIMS, "places": ("sim:0",)}, "fail"),
        (placed_leaves.KeepsTheCacheInOnePlace(), {**SIMS, "places": ("sim:0", "sim:1")}, "fail"),
        (placed_leaves.KeepsTheCacheInOnePlace(), {**SIMS, "places": ("sim:1",)}, "pass"),
        (placed_leaves.KeepsTheCacheInOnePlace(), {**SIMS, "places": ("cpu", "disk")}, "not-applicable"),
    ],
)
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_a_cache_belongs_where_its_layers_run(subject, plan, label, architecture):
    assert judged(CACHE, subject, architecture, **plan)[0] == label
    wanted = "not-applicable" if label == "not-applicable" else "pass"
    assert judged(CACHE, Reference(), architecture, **plan)[0] == wanted


@simulated
def test_what_a_decoder_keeps_of_an_encoder_is_looked_at_too():
    """T5 reads what it keeps of the encoding from the cache itself, so that it cannot be kept elsewhere."""
    assert judged(CACHE, Reference(), "t5", **SIMS, places=("sim:0", "sim:1")) == ("pass", [])
    found = EncoderDecoderCache(*(DynamicCache() for _ in range(2)))
    for cache in (found.self_attention_cache, found.cross_attention_cache):
        cache.update(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1), 0)
    assert list(lies_on(found)) == [(0, "keys", CPU), (0, "values", CPU)] * 2


class TakesItsHooksAway(Reference):
    """Audits right, and removes what brings the weights once they have been read."""

    name = "takes-its-hooks-away"

    def generate(self, model, call):
        from accelerate.hooks import remove_hook_from_submodules

        try:
            return Installed().generate(model, call)
        finally:
            for module in model.modules():
                for hook in getattr(getattr(module, "_hf_hook", None), "hooks", [getattr(module, "_hf_hook", None)]):
                    if hook is not None:
                        hook.detach_hook = lambda module: module
            remove_hook_from_submodules(model)


def test_an_audit_is_not_blamed_for_hooks_that_a_decoding_takes_away():
    assert judged(AUDITED, TakesItsHooksAway(), places=("disk",)) == ("pass", [])
    assert judged(MOVES, TakesItsHooksAway(), places=("disk",)) == ("fail", ["places"])


class Draws(Placer):
    """Draws a number on the way."""

    def spoil(self, model):  # noqa: ARG002
        torch.rand(1)


def test_who_makes_what_a_checkpoint_lacks_may_draw_for_it():
    assert judged(TORCH, Draws()) == ("allowed", [])
    lacking = {"model": "tied embeddings", "stored": "under targets"}
    assert judged(TORCH, Draws(), **lacking) == ("pass", [])
    assert judged(TORCH, placed_leaves.SeedsAnew(), **lacking) == ("fail", ["seed of the generator"])


def test_what_is_handed_over_has_dicts_of_its_own(tmp_path):
    given = Recipe(None, tmp_path, tmp_path, "from_pretrained", {"a": "cpu", "b": 0}, {0: 5})
    left = Left()
    with left.watching(given) as handed:
        handed.max_memory[0] = 6
        handed.device_map["a"] = handed.device_map.pop("a")  # the order of a map tells its main device
    assert given == with_own_dicts(given)
    assert set(left.given) == {"max_memory", "device_map"}


def test_files_are_told_by_name(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    before = contents(tmp_path)
    (tmp_path / "a").write_text("c")
    (tmp_path / "b").rename(tmp_path / "d")
    told = {"a": "has other contents", "b": "was removed", "d": "was added"}
    assert changed_files(before, contents(tmp_path)) == told


@pytest.mark.parametrize(
    ("before", "after", "stayed"),
    [
        ((CPU, None), (CPU, None), True),
        ((CPU, None), (SIM, None), False),
        ((None, CPU), (CPU, CPU), False),
        ((None, CPU), (None, None), False),
        ((None, CPU), (None, SIM), False),
        ((SIM, SIM), (None, SIM), True),  # a hook's copy takes the place of what was there
        ((CPU, None), (None, None), False),
    ],
)
def test_a_weight_stays_or_is_away_where_it_is_brought(before, after, stayed):
    found = moved({"w": Where(*before, False, True)}, {"w": Where(*after, False, True)})
    assert ("w" not in found) == stayed
    assert not moved({"w": Where(*before, True, False)}, {"w": Where(*after, True, False)})
    assert list(moved({"w": Where(*before, False, True)}, {})) == ["w"]
