"""Reads text logs of training: console output, nohup.out, scheduler ``.out`` and ``.err`` files of some 34 frameworks.

Odd about the format: there is none. In `console_format`, `line_numbers` reads a line by its words, `blocks` what spans lines,
`event_lines` errors and scheduler lines, `printed_settings` and `settings_dicts` argument dumps, dictionaries and options of commands,
`plan_lines` the planned length; `reader` remembers where a log is:

- A line's step is the most specific it names: global step, then step or iteration, then (epoch - first) * n + i for
  ``Epoch 3 [120/500]`` (laid end to end where ``[3,  2000]`` names no total), then epoch. A line without one takes the step just before it (validation lines, timing lines,
  blocks under ``[step=600/1000]:``, rows under a line that only names its place); summaries ("final", "best", "minimum") have none.
- Steps made of epoch and iteration are told in epochs.
- transformers prints ``{'loss': ...}`` without a step (`dicts`); a `Note` says how it was found.
- Carriage returns separate updates of progress bars; of updates with the same step the last one counts.
- A container's runtime, a cluster, a cloud or the journal keeps each line in a record of its own (`envelopes`, `unwrapped`): the line is read as
  ever, and the record's clock counts.
- The text of a terminal has long lines broken at its width, which are put together (`terminal_width`).
- Source code that a program printed of itself gives no metrics; nor does a number that the file's end may have cut.
- Clocks without zone are read as UTC; `parsers.clocks` finds the year or date that a clock leaves out.

Facts: Megatron-LM training.py, transformers trainer_callback.py, tqdm std.py, keras progbar.py, fairseq
progress_bar.py, NVRx log signatures; lines of each form are in the tests.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.console_format import envelopes, terminal_width, unwrapped
from parsers.console_format.event_lines import is_code
from parsers.console_format.feed import ANSI, LOOKED_AT, feed, flush, is_console, says_steps
from parsers.console_format.reader import LABEL, Reader
from parsers.formats import device_monitor, plain_table, stack_dump, yolo_results
from parsers.lazy_regex import lazy_re
from parsers.records import bare_tables, delimited
from parsers.records.counted import counted
from parsers.records.line_blocks import odd_characters
from parsers.tables import FLUSH_ROWS, HEAD_BYTES, Gap, Note

AT = "line"
GROWS = "lines"
BLOCK, MAX_LINE = 1 << 22, 1 << 20

_OTHERS = lazy_re(
    r"\.(?:jsonl?|ndjson|[ct]sv|ya?ml|toml|ini|cfg|md|rst|html|xml|py|sh|ipynb|c|cc|cpp|cu|h|js|ts|css|tex|patch|diff|sbatch|slurm"
    r"|lock|pbtxt)"
)
_LOG_SUFFIX = lazy_re(
    r"(?i)\.(?:log|out|err|stdout|stderr|console|[oe]\d*|log\.\d+|logs|(?:log\.)?(?:info|warning|error|fatal)(?:\.[\d-]+)*)$"
)
_LOG_NAME = lazy_re(
    r"(?i)(?:^|[\W_\d])(?:logs?|out|err|stdout|stderr|console|outputs?|nohup|slurm)(?:[\W_\d]|$)|日志|日誌|训练|訓練|ログ|로그"
)
_NOT_LOGS = lazy_re(
    r"(?i)^(?:readme|license|licence|notice|authors|changelog|contributing|makefile|dockerfile"
    r"|requirements|constraints|citation|debug(?:-internal|-core)?\.log)"
)
_HIGH = lazy_re(rb"[\x81-\xfe]+")
# notes, unless most of their lines are those of a training loop, a third are stamped, or a batch system wrote them
_DOCUMENTS = {".md", ".rst"}
_TABLES = {".csv", ".tsv"}  # where a console's output was sent to a file of that name
_STAMP = lazy_re(
    r"[\[|\s]*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b"
    r"|[IWE]\d{4} )"
)
_ASSIGNMENTS = lazy_re(r"\s*[\w.]+[:=]\S+(?:\s+[\w.]+[:=]\S+)*\s*")
_KERNEL = lazy_re(r"\[(?: *\d+\.\d{6}|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4})\] ")
_SACCT = lazy_re(r"[ |]*JobID\b.*\bState\b")


def claims(path: Path, head: bytes) -> bool:
    """Text that is a log by name (``.log``, ``.out``, ``nohup.out``) or, for ``.txt`` and no suffix, by what it says.

    Not: JSON lines, tables (a header of names, then numbers), settings, source, documents: others read those.
    """
    name, suffix = path.name, path.suffix.lower()
    if envelopes.kind_of(path, head):
        return True
    if any(other.claims(path, head) for other in (stack_dump, device_monitor, plain_table, yolo_results)):
        return False
    if (_OTHERS.fullmatch(suffix) and suffix not in _DOCUMENTS | _TABLES) or _NOT_LOGS.match(name) or not head.strip(b"\0 \r\n\t"):
        return False
    if 0 in head[:12] and ("tfevents" in name or _is_framed(head)):
        return False  # an event file, though all that can be seen of it is the text of a long tag
    text = _decoded(head)
    if text is None:
        return False
    lines = ANSI.sub("", text).splitlines()
    lines = [s for s in (lines if len(head) < HEAD_BYTES else lines[:-1] or lines) if s.strip()]
    if not lines or _is_json(lines) or delimited.looks_like_table(lines) or bare_tables.is_measured(path, lines):
        return False
    if suffix in _TABLES:
        return is_console(lines)
    if suffix in _DOCUMENTS:
        return _is_stamped(lines) or "# LSBATCH: User input" in lines or says_steps(lines) * 2 > len(lines[:LOOKED_AT])
    if _LOG_SUFFIX.search(name) or _LOG_NAME.search(name):
        return True
    unnamed = suffix in {"", ".txt"} or suffix[1:].isdigit()  # a launcher numbers the logs of its workers
    return _of_the_machine(lines) or (unnamed and _reads_like_a_log(lines))


def _of_the_machine(lines: list[str]) -> bool:
    """What lies beside a training's log and tells how it ended: the kernel's messages (dmesg), Slurm's accounting (sacct)."""
    return _SACCT.match(lines[0]) is not None or sum(_KERNEL.match(s) is not None for s in lines[:100]) * 2 > len(lines[:100])


def _is_framed(head: bytes) -> bool:
    from parsers.tensorboard_format.tfrecord_chain import sound_header

    return sound_header(head)


def _decoded(head: bytes) -> str | None:
    """The head as text, or None where it is binary."""
    text = codecs.decode(head, _encoding(head), "replace")
    body = text.replace("\0", "")
    odd = odd_characters(body, usual=b"\x1b\x08\x07\f")
    return text if body.strip() and odd <= len(body) // 20 else None


def _encoding(head: bytes) -> str:
    """UTF-16 by its mark; GBK where the text is no UTF-8 and all its other bytes come in pairs, as those of common Chinese characters do; else UTF-8."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head.isascii() or _is(head, "utf-8-sig"):
        return "utf-8-sig"
    paired = all(len(b) % 2 == 0 for b in _HIGH.findall(head)[:-1])  # the last may be cut within a character
    return "gb18030" if paired and _is(head, "gb18030") else "utf-8-sig"


def _is(head: bytes, encoding: str) -> bool:
    """Can a text's beginning be read so? It may end within a character."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _is_json(lines: list[str]) -> bool:
    first = [s.strip() for s in lines[:3]]
    objects = all(s.startswith("{") and re.match(r'\{\s*(?:"|\}|$)', s) for s in first)
    return objects or first[0] in {"[", "{"} or re.match(r"\[\s*[\[{\"](?!\])", first[0]) is not None


def _is_stamped(lines: list[str]) -> bool:
    """A third of the first lines begin with a time or a level of logging."""
    return sum(_STAMP.match(s) is not None for s in lines[:100]) * 3 >= len(lines[:100])


def _reads_like_a_log(lines: list[str]) -> bool:
    source = sum(is_code(s, sure=True) for s in lines)
    if _is_stamped(lines) or any("Traceback (most recent call last)" in s for s in lines) or source > 5:
        return True
    return says_steps(lines) > 0 or (len(lines) > 3 and sum(_ASSIGNMENTS.fullmatch(s) is not None for s in lines) * 2 >= len(lines))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics, events, settings and printed batches of a log, in the order of the file."""
    yield from counted(_parsed(path))


def _parsed(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if kind := envelopes.kind_of(path, _head(path)):
        yield from unwrapped.parse(path, kind)
        return
    reader: Reader | None = None
    n, columns = 1, 0  # number of the line that begins here; of the terminal that the text was copied from
    for text, ended, gap in _blocks(path):
        if gap:
            yield Gap(f"line {n}", gap)
        if reader is None:
            reader, columns = Reader(_srun(text)), terminal_width.width(text)
        text = terminal_width.joined(text, columns) if columns else text
        n = feed(reader, text, n, ended)
        if reader.rows.full() or reader.measured.size() > FLUSH_ROWS:
            yield from flush(reader)
    if reader is not None:
        for at, event in reader.opening.unstarted(reader.measured.size()):
            reader.words.event(at, event, None)
        reader.finish(whole=True)
        yield from flush(reader)
        yield from (Note(s) for s in reader.measured.notes)
        if reader.zoneless:
            yield Note("clock without zone, read as UTC", clock="local")


def _head(path: Path) -> bytes:
    with path.open("rb") as f:
        return f.read(HEAD_BYTES)


def _srun(text: str) -> bool:
    """Did ``srun -l`` write this log: ``3: `` before nearly every line, the same few numbers again and again?"""
    lines = [s for s in text[:200_000].split("\n")[:400] if s.strip()]
    ranks = [int(m[1]) for s in lines if (m := LABEL.match(s))]
    return len(ranks) > 0.9 * len(lines) > 2 and len(set(ranks)) <= max(1, len(ranks) // 2)


def _blocks(path: Path) -> Iterator[tuple[str, bool, str]]:
    """The text in pieces that end with a line: (text, its last line is whole, what is missing before it).

    A line longer than MAX_LINE is cut where a bar was redrawn; without such a place its rest is left out.
    """
    with path.open("rb") as f:
        raw = f.read(BLOCK)
        decoder = codecs.getincrementaldecoder(_encoding(raw))("replace")
        carry, skipping = "", False
        while raw:
            text = carry + decoder.decode(raw)
            raw = f.read(BLOCK)
            gap = ""
            if skipping:
                start = text.find("\n")
                if start < 0:
                    carry = ""
                    continue
                text, skipping = text[start:], False
            cut = text.rfind("\n") + 1
            if cut == 0 and len(text) > MAX_LINE:
                cut = text.rfind("\r") + 1
                if cut == 0:
                    gap = f"longer than {MAX_LINE:,} characters; only its beginning was read"
                    skipping, text, cut = True, text[:MAX_LINE], MAX_LINE
            carry = "" if skipping else text[cut:]
            if cut:
                yield text[:cut], text[cut - 1] == "\n", gap
        carry += decoder.decode(b"", True)
        if carry:
            yield carry, False, ""
