"""Names in a TensorBoard file: what many of them cost."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from parsers.protobuf_wire import Words
from parsers.span_codes import Spans
from parsers.tensorboard_format.tag_names import Names

MANY = 60_000


def _spans(texts: list[bytes]) -> tuple[Any, Words, Any, Any]:
    raw = b"".join(texts) + bytes(16)
    size = np.array([len(t) for t in texts])
    at = np.concatenate([[0], np.cumsum(size)[:-1]])
    return np.frombuffer(raw, np.uint8), np.ndarray((len(raw) - 7,), "<u8", raw, 0, (1,)), at, size


def test_codes_are_given_in_order_and_remembered() -> None:
    texts = [b"layer_%d/norm" % n for n in range(MANY)]
    spans = Spans()
    assert spans.codes(*_spans(texts)).tolist() == list(range(MANY))
    assert spans.values == texts
    assert spans.codes(*_spans([texts[7], b"new", texts[-1]])).tolist() == [7, MANY, MANY - 1]
    assert len(spans._hashes) <= 3 * MANY


def test_many_tags_with_a_plugin_each_take_no_table_of_both() -> None:
    names = Names()
    both = np.arange(MANY, dtype=np.int32)
    names.tags.values = names.metadata.values = [b""] * MANY  # a table of both would have 3.6 billion cells
    names.metadata.values = [b"\x0a\x06\x0a\x04text"] + [b""] * (MANY - 1)
    tracemalloc.start()
    names.learn(both, both)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 << 20
    assert names.are(("text",)).nonzero()[0].tolist() == [0]
