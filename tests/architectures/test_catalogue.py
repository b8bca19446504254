"""The listing of architectures: complete, cheap, and helpful about names."""

import subprocess
import sys

import pytest

from conformance.architectures import catalogue
from conformance.architectures.catalogue import Architecture, UnknownArchitecture

LISTING = """
import sys
from conformance.architectures import catalogue
assert len(catalogue.names()) > 100
print(sorted(set(sys.modules) & {"torch", "transformers", "hypothesis", "pytest"}))
"""


def test_listing_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_listing_agrees_with_the_installed_release():
    from transformers.models.auto import modeling_auto

    causal = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    seq2seq = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    both = {f"{name}:seq2seq" for name in seq2seq if name in causal}
    images = set(catalogue.IMAGE_TEXT) & set(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    assert not images & (set(causal) | set(seq2seq))
    assert set(catalogue.names()) == set(causal) | both | (set(seq2seq) - set(causal)) | images
    assert list(catalogue.names()) == sorted(catalogue.names())


def test_a_type_with_two_tasks_has_two_names():
    assert catalogue.get("bart") == Architecture("bart", "bart", "causal", "BartForCausalLM")
    assert catalogue.get("bart:seq2seq").class_name == "BartForConditionalGeneration"
    assert catalogue.get("t5").task == "seq2seq"


def test_a_name_slightly_wrong_gets_the_closest_names():
    with pytest.raises(UnknownArchitecture, match=r"unknown architecture 'lama'; did you mean llama"):
        catalogue.get("lama")
    with pytest.raises(ValueError, match="are known"):
        catalogue.get("§§§§")


def test_core_names_exist_and_say_what_they_stand_for():
    assert set(catalogue.core) <= set(catalogue.names()) == set(catalogue.names())
    assert set(catalogue.core_names()) == set(catalogue.core)
    assert all(reason.strip() for reason in catalogue.core.values())
