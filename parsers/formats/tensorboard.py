"""TensorBoard event files (``events.out.tfevents.*``): scalars, histograms, text, hyperparameters.

A TFRecord file (:mod:`parsers.tensorboard_format.tfrecord`) of ``Event`` messages (TensorFlow's ``event.proto``). What is odd about it:

* A scalar is a ``simple_value`` (TF1, torch, tensorboardX) or a tensor without dimensions (TF2) of any number type, in
  ``tensor_content`` or in one of ten typed lists.
* What a tensor means is said by its plugin, and only the first record of a tag has to name it
  (tensorboard's ``data_compat`` and ``event_accumulator``).
* A restarted writer goes back in steps; TensorBoard then hides what came before ("purges"). Here everything stays, in
  file order: the abandoned branch is evidence.
* A file without records, or cut in its last one, is what a crash or a run still going leaves.

Images, audio, graphs and the data of other plugins are counted, not decoded. ``at`` is the byte where a record begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.tables import Gap, Note

AT = "byte"
GROWS = "records"
_EVENT_KEYS = frozenset(b"\x09\x10\x1a\x22\x2a\x32\x3a\x42\x4a\x52")  # the first byte of an Event's first field


def claims(path: Path, head: bytes) -> bool:
    """An event by its framing and first byte (other TFRecords hold other messages), or no text and named so."""
    if len(head) > 12 and head[12] in _EVENT_KEYS and not any(head[5:8]):
        from parsers.tensorboard_format.tfrecord_chain import sound_header

        if sound_header(head):
            return True
    return "tfevents" in path.name and (not head or 0 in head or len(head) < 12)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Tables metrics, histograms, events and config of one file."""
    from parsers.tensorboard_format import tag_names, tfrecord
    from parsers.tensorboard_format.event_reader import Reader

    reader = Reader()
    try:
        for piece in tfrecord.read(path):
            if isinstance(piece, Gap):
                yield piece
            else:
                yield from reader.window(piece)
        yield from reader.flush()
    except OSError as error:
        yield Gap("byte 0", f"cannot be read: {error.strerror or error}", None)
    if note := tag_names.counted(reader.counts):
        yield Note(note)
