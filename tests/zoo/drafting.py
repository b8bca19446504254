"""Faults planted in the reference's prefill and assisted decoding for the length of a block."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch

from conformance import upstream
from conformance.reference import assisted, drafters, fed, prefill


@contextmanager
def accepts_one_too_many() -> Iterator[None]:
    """The first drafted token that the model would not say is taken in place of its own."""
    right = assisted.decide

    def decide(scores, draft, chances, do_sample):
        token, accepted = right(scores, draft, chances, do_sample)
        return (token if accepted or draft is None else torch.tensor([draft])), accepted

    with patch.object(assisted, "decide", decide):
        yield


@contextmanager
def loses_an_accepted_token() -> Iterator[None]:
    """Of the tokens of a round the last accepted one is missing from the sequence."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        chosen = right(self, input_ids, draft, logits, first)
        few = chosen.shape[1] - input_ids.shape[1] < 2
        return chosen if few else torch.cat([chosen[:, :-2], chosen[:, -1:]], dim=1)

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def loses_the_bonus_token() -> Iterator[None]:
    """After a draft that was accepted whole, the main model's own token is missing from the sequence."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        chosen = right(self, input_ids, draft, logits, first)
        whole = draft[0] and chosen.shape[1] == input_ids.shape[1] + len(draft[0]) + 1
        return chosen[:, :-1] if whole else chosen

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def ends_inside_drafts_ignored() -> Iterator[None]:
    """Stop conditions are asked at the end of a round only."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        criteria, self.criteria = self.criteria, lambda ids, _: torch.zeros(len(ids), dtype=torch.bool)
        chosen = right(self, input_ids, draft, logits, first)
        self.criteria = criteria
        self.stopped = bool(criteria(chosen, self.record.scores).all())
        return chosen

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def scores_of_rejected_tokens_kept() -> Iterator[None]:
    """Scores and logits of a whole draft are returned, whatever was accepted."""
    right = assisted.Verifier.choose

    def choose(self, input_ids, draft, logits, first):
        chosen = right(self, input_ids, draft, logits, first)
        for step in range(chosen.shape[1] - input_ids.shape[1], logits.shape[1]):
            self.record.scores += (logits[:, step].float(),)
            self.record.logits += (logits[:, step].float(),)
        return chosen

    with patch.object(assisted.Verifier, "choose", choose):
        yield


@contextmanager
def states_of_the_first_token() -> Iterator[None]:
    """Every token of a round is given the states of its first."""
    right = assisted.one_of

    def one_of(outputs, _, steps, length, first):
        return right(outputs, 0, steps, length, first)

    with patch.object(assisted, "one_of", one_of):
        yield


@contextmanager
def assistant_keeps_rejected_tokens() -> Iterator[None]:
    """The assistant's cache is not rolled back."""
    right = drafters.ModelDrafter._catch_up

    def catch_up(self, input_ids):
        if self._base is None:
            return right(self, input_ids)
        self.fed.length = self._base.length
        return self.fed.feed(input_ids)

    with patch.object(drafters.ModelDrafter, "_catch_up", catch_up):
        yield


@contextmanager
def schedule_written_into_the_config() -> Iterator[None]:
    """How much is drafted is kept in the assistant's own generation config."""
    right = drafters.ModelDrafter.learn

    def learn(self, drafted, accepted):
        right(self, drafted, accepted)
        self.fed.model.generation_config.num_assistant_tokens = self.tokens + 1

    with patch.object(drafters.ModelDrafter, "learn", learn):
        yield


@contextmanager
def drafts_too_much() -> Iterator[None]:
    """One token more than asked is drafted."""
    right = drafters.ModelDrafter.__init__

    def init(self, model, prepared, limits, do_sample):
        right(self, model, prepared, {**limits, "tokens": limits["tokens"] + 1}, do_sample)

    with patch.object(drafters.ModelDrafter, "__init__", init):
        yield


@contextmanager
def lookup_needs_an_occurrence() -> Iterator[None]:
    """A prompt in which nothing recurs is an error."""
    right = drafters.Lookup.propose

    def propose(self, input_ids, room):
        found = right(self, input_ids, room)
        if not found[0]:
            raise IndexError("nothing found")
        return found

    with patch.object(drafters.Lookup, "propose", propose):
        yield


@contextmanager
def layers_stay_cut() -> Iterator[None]:
    """After the first early exit the model keeps its first layers only, until it is verified with them."""
    right = drafters.FirstLayers.propose

    def propose(self, input_ids, room):
        found = right(self, input_ids, room)
        self.exited = drafters.only_first_layers(self.model, self.layers)
        self.exited.__enter__()
        return found

    def learn(self, *_):
        if getattr(self, "exited", None) is not None:
            self.exited.__exit__(None, None, None)
            self.exited = None

    with (
        patch.object(drafters.FirstLayers, "propose", propose),
        patch.object(drafters.FirstLayers, "learn", learn),
    ):
        yield


@contextmanager
def cache_keeps_a_mode() -> Iterator[None]:
    """The cache comes back with a mark of the drafting on its layers."""
    right = assisted.generate

    def generate(model, call):
        output = right(model, call)
        for layer in upstream.cache_of(output).layers:
            layer.record_past = True
        return output

    with patch.object(assisted, "generate", generate):
        yield


@contextmanager
def never_first() -> Iterator[None]:
    """Preparation is never told of the first iteration."""
    with _prepared(prefill, "_inputs", is_first_iteration=False):
        yield


@contextmanager
def always_first() -> Iterator[None]:
    """Preparation is told of the first iteration at every forward."""
    with _prepared(fed.upstream, "next_inputs", is_first_iteration=True):
        yield


class _Telling:
    """A model whose preparation is told something else."""

    def __init__(self, model, **told):
        self._model, self._told = model, told

    def __getattr__(self, name):
        return getattr(self._model, name)

    def prepare_inputs_for_generation(self, *args, **kwargs):
        return self._model.prepare_inputs_for_generation(*args, **{**kwargs, **self._told})


@contextmanager
def _prepared(module, name, **told):
    right = getattr(module, name)

    def function(model, *args, **kwargs):
        return right(_Telling(model, **told), *args, **kwargs)

    with patch.object(module, name, function):
        yield


@contextmanager
def chunk_positions_off_by_one() -> Iterator[None]:
    """Every chunk but the first is one position late."""
    right = prefill._inputs

    def inputs(model, input_ids, name, chunk, span, kwargs):
        made = right(model, input_ids, name, chunk, span, kwargs)
        return {**made, "position_ids": made["position_ids"] + 1} if span[0] else made

    with patch.object(prefill, "_inputs", inputs):
        yield


@contextmanager
def last_partial_chunk_dropped() -> Iterator[None]:
    """What is left of the prompt after the whole chunks is not fed."""
    right = prefill.Start._new_part

    def prefilled(self, model, input_ids, generation_config, kwargs):
        size = generation_config.prefill_chunk_size

        def whole_chunks(start, *args):
            prompt, name = right(start, *args)
            kept = prompt.shape[1] // size * size if size else 0
            return (prompt[:, :kept] if kept else prompt), name

        with patch.object(prefill.Start, "_new_part", whole_chunks):
            return before(self, model, input_ids, generation_config, kwargs)

    before = prefill.Start.prefill
    with patch.object(prefill.Start, "prefill", prefilled):
        yield


@contextmanager
def prompt_fed_twice() -> Iterator[None]:
    """A call that continues a cache feeds all ids that it is given on top of it."""
    right = prefill.Start._new_part

    def new_part(_, model, input_ids, kwargs):
        return right(prefill.Start(0), model, input_ids, kwargs)

    with patch.object(prefill.Start, "_new_part", new_part):
        yield


@contextmanager
def embeddings_scaled() -> Iterator[None]:
    """A prompt of embeddings reaches the model a little larger."""
    right = prefill.Start._new_part

    def new_part(self, model, input_ids, kwargs):
        prompt, name = right(self, model, input_ids, kwargs)
        return (prompt * 1.05 if name == "inputs_embeds" else prompt), name

    with patch.object(prefill.Start, "_new_part", new_part):
        yield


@contextmanager
def second_prefill_differs() -> Iterator[None]:
    """A model's second generation has other logits."""
    right, known = prefill.Start.prefill, weakref.WeakSet()

    def prefilled(self, model, *args):
        outputs = right(self, model, *args)
        if model in known:
            outputs.logits = outputs.logits * (1 + 1e-6)
        known.add(model)
        return outputs

    with patch.object(prefill.Start, "prefill", prefilled):
        yield


@contextmanager
def prefills_twice() -> Iterator[None]:
    """The prompt is fed to a cache that is thrown away, and then again."""
    right = prefill.Start.prefill

    def prefilled(self, model, input_ids, generation_config, kwargs):
        name = upstream.cache_name(kwargs)
        spare = {**kwargs, name: copy.deepcopy(kwargs[name])} if name else dict(kwargs)
        right(self, model, input_ids, generation_config, spare)
        return right(self, model, input_ids, generation_config, kwargs)

    with patch.object(prefill.Start, "prefill", prefilled):
        yield


@contextmanager
def drafts_end_at_the_settings_limit() -> Iterator[None]:
    """A round is the last one where the settings say so, whatever limit the caller's own criterion tells."""
    right = assisted._round

    def one_round(verifier, drafter, input_ids, max_length):
        chosen = right(verifier, drafter, input_ids, max_length)
        verifier.stopped = verifier.stopped or chosen.shape[1] >= max_length
        return chosen

    with patch.object(assisted, "_round", one_round):
        yield
