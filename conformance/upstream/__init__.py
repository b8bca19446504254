"""Every difference between releases of torch, transformers and accelerate that the harness has to know.

Nothing else in the project asks for a version or tries one name after another. Used as `upstream.NAME`.
"""

from __future__ import annotations

from conformance.upstream.caches import (
    CACHE_NAMES,
    cache_argument,
    cache_name,
    cache_of,
    fresh_cache,
    has_default_cache,
    is_cache,
    length_of,
    output_cache_name,
    quantised_exactly,
    static_cache_settings,
)
from conformance.upstream.cropping import can_be_put_back, crop_takes_a_count, says_croppable
from conformance.upstream.forwards import (
    advance,
    ask_for_logits,
    keep_cache,
    kwargs_at,
    next_inputs,
    place,
    prefill,
    tells_first,
)
from conformance.upstream.layers import fixed_size, layers_of, mask_sizes, record_past, records
from conformance.upstream.mechanisms import LACKING, MECHANISMS, lacks, mechanism
from conformance.upstream.models import forward_parameters, model_class, one_kind_of_experts
from conformance.upstream.placement import file_reader_knows, lacks_python_backend, register_python_backend
from conformance.upstream.process import no_advice_on_loading, no_progress_bars, quiet
from conformance.upstream.refusals import REFUSALS, refusal
from conformance.upstream.releases import NEWEST_TESTED, OLDEST, PACKAGES, as_numbers, release, versions
from conformance.upstream.special_tokens import (
    SPECIAL_TOKEN_WARNINGS,
    announces_pad_token,
    bare_generation_config,
    generation_logger,
    prepare_special_tokens,
    special_token_warnings,
    special_tokens_know_the_batch,
)

__all__ = [
    "CACHE_NAMES",
    "LACKING",
    "MECHANISMS",
    "NEWEST_TESTED",
    "OLDEST",
    "PACKAGES",
    "REFUSALS",
    "SPECIAL_TOKEN_WARNINGS",
    "advance",
    "announces_pad_token",
    "as_numbers",
    "ask_for_logits",
    "bare_generation_config",
    "cache_argument",
    "cache_name",
    "cache_of",
    "can_be_put_back",
    "crop_takes_a_count",
    "file_reader_knows",
    "fixed_size",
    "forward_parameters",
    "fresh_cache",
    "generation_logger",
    "has_default_cache",
    "is_cache",
    "keep_cache",
    "kwargs_at",
    "lacks",
    "lacks_python_backend",
    "layers_of",
    "length_of",
    "mask_sizes",
    "mechanism",
    "model_class",
    "next_inputs",
    "no_advice_on_loading",
    "no_progress_bars",
    "one_kind_of_experts",
    "output_cache_name",
    "place",
    "prefill",
    "prepare_special_tokens",
    "quantised_exactly",
    "quiet",
    "record_past",
    "records",
    "refusal",
    "register_python_backend",
    "release",
    "says_croppable",
    "special_token_warnings",
    "special_tokens_know_the_batch",
    "static_cache_settings",
    "tells_first",
    "versions",
]
