"""The engine with a model made by hand: packs of texts, order, memory that runs out, errors, several
devices, texts taken as needed.
"""

import logging
import threading

import numpy as np
import pytest

from pipeline.embedding.device import HostVectors
from pipeline.embedding.engine import Engine, PackBudget
from pipeline.embedding.packing import (
    TokenRows,
    Window,
    distinct_terms,
    group_by_length,
    packs,
    positions,
    runs,
)
from pipeline.errors import SettingError

DEVICE = "card"


def window_of(texts):
    """A window whose tokens are the characters of the texts; z is no term."""
    ids = np.array([ord(sign) for text in texts for sign in text], dtype=np.int32)
    rows = TokenRows(ids, np.cumsum([0, *map(len, texts)], dtype=np.int64))
    terms = distinct_terms(rows, {ord("z")})
    return Window(rows, positions(rows, None), terms, np.zeros(len(texts), np.bool_))


class FakeModel:
    """Gives a text's length and first sign as its dense vector, and every term its own id as its
    weight.

    fits: tokens of a pack that fit into its memory.
    """

    def __init__(self, fits=1_000_000, error=None):
        self.fits, self.error = fits, error
        self.sizes = []
        self.released = 0
        self.threads = set()

    def launch(self, pack):
        import torch

        self.threads.add(threading.current_thread().name)
        if self.error:
            raise self.error
        if pack.tokens > self.fits:
            raise torch.cuda.OutOfMemoryError(f"{pack.tokens} tokens")
        self.sizes.append(pack.tokens)
        lengths = np.diff(pack.starts)
        assert pack.longest == max(lengths)
        dense = np.stack([lengths, pack.ids[pack.starts[:-1]]], axis=1).astype(np.float32)
        sparse = np.zeros(pack.terms + 1, dtype=np.float32)
        np.maximum.at(sparse, pack.slots, pack.ids.astype(np.float32))
        return lambda: HostVectors(dense, sparse[: pack.terms])

    def release(self):
        self.released += 1


def _engine(*models, tokens=50):
    return Engine([(DEVICE, model) for model in models], PackBudget(tokens))


def _stream(engine, texts, window=7):
    """What every text got, as (length, first sign, terms)."""
    for batch in engine.stream(texts, window_of, window_texts=window):
        for text, (length, first) in enumerate(batch.dense.tolist()):
            terms = batch.sparse.row(text)
            assert terms.weights.tolist() == terms.ids.tolist()
            yield length, chr(int(first)), "".join(map(chr, terms.ids))


def _expected(text):
    return len(text), text[0], "".join(sorted({*text} - {"z"}))


TEXTS = ["hello world", "a", "banana", "zz", "the quick brown fox", "mississippi"]
TEXTS = [*TEXTS, "b" * 40] * 11 + ["last"]


@pytest.mark.parametrize("tokens", [1, 12, 50, 10_000])
@pytest.mark.parametrize("window", [1, 7, 1000])
def test_every_text_gets_its_vectors_in_order(tokens, window):
    found = list(_stream(_engine(FakeModel(), tokens=tokens), TEXTS, window))
    assert found == [_expected(text) for text in TEXTS]


def test_packs_stay_within_the_budget_and_several_devices_take_from_one_queue():
    models = [FakeModel(), FakeModel(), FakeModel()]
    assert list(_stream(_engine(*models, tokens=30), TEXTS)) == [_expected(text) for text in TEXTS]
    sizes = [size for model in models for size in model.sizes]
    assert sum(sizes) == sum(map(len, TEXTS))
    assert {size for size in sizes if size > 30} == {40}, "only one text that is longer"


def test_a_device_or_a_tokenizer_that_fails_stops_the_stream_with_its_own_error():
    error = RuntimeError("device-side assert triggered")

    def broken(texts):
        raise error

    for model, tokenize in ((FakeModel(error=error), window_of), (FakeModel(), broken)):
        with pytest.raises(RuntimeError) as caught:
            list(_engine(model).stream(TEXTS, tokenize))
        assert caught.value is error


def test_memory_that_runs_out_halves_the_budget_is_said_once_and_ends_at_a_single_text(caplog):
    # All packs of 50 tokens fit and no whole one of 100 does, so that it ends alike whichever
    # thread is ahead.
    model = FakeModel(fits=51)
    engine = _engine(model, tokens=200)
    with caplog.at_level(logging.WARNING):
        assert list(_stream(engine, TEXTS, window=20)) == [_expected(text) for text in TEXTS]
    assert len(caplog.records) == 1
    assert "card ran out of memory" in caplog.text
    assert model.released >= 2
    list(_stream(engine, TEXTS))
    learnt = (engine.budget.halved, engine.budget.tokens)
    assert learnt == (2, 50), "what was learnt holds for the next stream"
    with pytest.raises(SettingError, match="one text of 40 tokens"):
        list(_stream(_engine(FakeModel(fits=39)), TEXTS))


def test_equal_lengths_keep_their_order_and_are_runs_of_a_pack():
    lengths = np.array([5, 50, 7, 50, 5], dtype=np.int64)
    for budget, expected in ((57, [[1], [3, 2], [0, 4]]), (56, [[1], [3], [2, 0, 4]])):
        assert [group.tolist() for group in group_by_length(lengths, budget)] == expected
    starts = np.array([0, 5, 7, 9, 10], np.int32)
    assert runs(starts) == [(0, 1, 5), (5, 2, 2), (9, 1, 1)]


def test_another_workers_halving_is_not_repeated():
    budget = PackBudget(100)
    (pack,) = packs(window_of(["a" * 90, "b" * 10]), 100)
    budget.too_large(pack, DEVICE)
    budget.too_large(pack, "another card")
    assert (budget.tokens, budget.halved) == (50, 1)


def test_texts_are_taken_as_they_are_needed_and_a_stream_that_is_given_up_leaves_no_threads():
    texts, model = iter(["word"] * 1_000), FakeModel()
    stream = _engine(model).stream(texts, window_of, window_texts=10)
    next(stream)
    assert model.threads <= {"encode_0", "encode_1"}
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name in model.threads]
    assert len(list(texts)) >= 950


def test_a_window_also_ends_at_a_number_of_characters():
    batches = list(_engine(FakeModel()).stream(["word"] * 10, window_of, window_chars=12))
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert list(_engine(FakeModel()).stream([], window_of)) == []
