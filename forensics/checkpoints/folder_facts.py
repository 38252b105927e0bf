"""A checkpoint beside what its folder says of it: the trainer's step, the model's config, the tokenizer, the parts that others name."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from forensics.checkpoints import tokenizer_files
from forensics.checkpoints.age import counters
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.looks import Found, finding
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.unreadable import Unreadable
from parsers.formats import checkpoint_files
from parsers.lazy_regex import lazy_re
from parsers.walk import is_regular

MOST = 64 << 20  # bytes of a JSON file; tokenizers have up to thirty
PADDED = 8  # vocabularies are filled up to a multiple of 8, 64 or 128 for the hardware
_DIGITS = lazy_re(r"\d{1,18}")
_EMBEDDING = lazy_re(r"(?:^|[.:])(?:wte|embed_tokens|tok_embeddings|word_embeddings|embed_in)\.weight$")
_ANY_EMBEDDING = lazy_re(r"(?i)(?:^|[.:_])\w*(emb|embed|embedding|embeddings|embed_tokens|wte)\.weight$")
_ANY_HEAD = lazy_re(r"(?i)(?:^|[.:_])(\w{0,40}head|output|out|proj_out|decoder|generator|fc)\.weight$")
_HEAD = lazy_re(r"(?:^|[.:])(?:lm_head|embed_out)\.weight$")


def folder(c: Checkpoint) -> Iterator[Found]:
    """All of it; for a file, what lies in it alone."""
    home = c.path if c.path.is_dir() else c.path.parent
    beside = c.path.is_dir() or ((home / "config.json").is_file() and len(list(home.glob("*.safetensors"))) == 1)
    config, state = (_json(home / "config.json"), _json(home / "trainer_state.json")) if beside else ({}, {})
    yield from _step(c, state.get("global_step"))
    yield from _vocabulary(c, config, _tokens(home) if beside else 0)
    yield from _tied(c, config)
    yield from _shards(c)
    yield from _ranks(c)


def _json(path: Path) -> dict[str, Any]:
    try:
        if not is_regular(path, links=False) or path.stat().st_size > MOST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _step(c: Checkpoint, stated: Any) -> Iterator[Found]:
    """The trainer's count against the name of the folder, the optimizer and the schedule, which a trainer steps together.

    And the step in a file's name against the one in the file, where the optimizer's count says which is wrong.
    """
    named, inside, n = checkpoint_files.step_of(c.path), c.step, counters(c)
    if type(stated) is int:
        if named is not None and named != stated:
            yield finding("step_label", "warning", f"trainer_state.json is of step {stated}, the folder of step {named}")
        late = n.scheduler is not None and n.scheduler < 0.5 * stated and (n.optimizer is None or n.optimizer > 2 * n.scheduler + 10)
        if late and stated > 20:
            title = f"The schedule is at {n.scheduler} in the checkpoint of step {stated}: it was reset"
            yield finding("schedule_behind", "warning", title)
    if not inside or not named or c.path.is_dir() or not re.search(r"(?i)step|iter", c.path.name):
        return
    whole = max(inside, named) % min(inside, named) == 0  # counts micro-batches
    if not whole and abs(named - inside) > max(2, 0.02 * named):
        by_name, by_file = (n.optimizer is not None and abs(n.optimizer - x) <= max(2, 0.02 * x) for x in (named, inside))
        counted = f", and its optimizer has counted {n.optimizer} steps" if n.optimizer else ""
        title = f"The file is named for step {named}, and says step {inside} inside{counted}"
        yield finding("step_label", "warning" if by_name != by_file else "info", title)


def _of(c: Checkpoint, rule: re.Pattern[str]) -> list[Tensor]:
    return [t for t in c.contents.tensors if t.role == "weight" and len(t.shape) == 2 and rule.search(t.name)]


def _vocabulary(c: Checkpoint, config: dict[str, Any], tokens: int) -> Iterator[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if not (tables and heads) and (resized := _formerly_tied(c)):
        yield resized
        return
    if len(tables) != 1:
        return
    rows, name, stated = tables[0].shape[0], tables[0].name, config.get("vocab_size")
    if type(stated) is int and stated > 0 and (rows < stated or (rows > stated and rows % PADDED)):
        yield finding("vocabulary", "warning", f"{name} has {rows} rows, config.json says vocab_size {stated}", [name])
    if tokens > rows:
        title = f"The tokenizer has {tokens} tokens, {name} only {rows} rows: the others have no embedding"
        yield finding("vocabulary", "warning", title, [name])
    if len(heads) == 1 and heads[0].shape[0] != rows:
        yield finding("vocabulary", "warning", f"{heads[0].name} has {heads[0].shape[0]} rows, {name} {rows}", [heads[0].name])


def _formerly_tied(c: Checkpoint) -> Found | None:
    """An embedding and a head of other names, whose first rows are equal and whose numbers of rows are not."""
    for table in _of(c, _ANY_EMBEDDING):
        for head in _of(c, _ANY_HEAD):
            (m, width), (n, other) = table.shape, head.shape
            if m != n and width == other and not (table.layout or head.layout) and _same_start(table, head, min(m, n) * width):
                title = (
                    f"{table.name} has {m} rows, {head.name} {n}, and the first {min(m, n)} are equal: they were one, and one was resized"
                )
                return finding("vocabulary", "warning", title, [table.name, head.name])
    return None


def _same_start(a: Tensor, b: Tensor, n: int) -> bool:
    try:
        x, y = next(chunks(a), None), next(chunks(b), None)
    except (Unreadable, ValueError, OSError):
        return False
    if x is None or y is None or a.dtype != b.dtype:
        return False
    k = min(len(x), len(y), n)
    return k > 0 and bool(x[:k].any()) and x[:k].tobytes() == y[:k].tobytes()


def _tokens(home: Path) -> int:
    """One more than the largest id of tokenizer.json; 0 where it is not known."""
    state = _json(home / "tokenizer.json")
    ids = [*tokenizer_files.vocabulary(state).values(), *tokenizer_files.added(state).values()]
    return 1 + max((i for i in ids if type(i) is int), default=-1)


def _tied(c: Checkpoint, config: dict[str, Any]) -> Iterator[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if config.get("tie_word_embeddings") is not True or len(tables) != 1 or len(heads) != 1 or tables[0].shape != heads[0].shape:
        return
    table, head = tables[0].name, heads[0].name
    a, b = c.stats.get(table), c.stats.get(head)
    if a is not None and b is not None and not abs(a.norm - b.norm) <= 1e-4 * a.norm:
        title = f"config.json ties the embedding to the head, yet {head} (norm {b.norm:.4g}) is not {table} (norm {a.norm:.4g})"
        yield finding("untied", "warning", title, [head])


_NUMBERED = lazy_re(r"(.*?)[-_](\d{1,5})-of-(\d{1,5})(\.\w+)")


def _shards(c: Checkpoint) -> Iterator[Found]:
    """Shards that the names of others promise."""
    series: defaultdict[tuple[Path, str, int, str], set[int]] = defaultdict(set)
    width: dict[str, int] = {}
    for path in c.contents.files if c.path.is_dir() else []:
        if m := _NUMBERED.fullmatch(path.name):
            series[path.parent, m[1], int(m[3]), m[4]].add(int(m[2]))
            width.setdefault(m[1], len(m[2]))
    for (_, name, total, suffix), numbers in series.items():
        lacking, first, digits = total - len(numbers), 0 if 0 in numbers else 1, width[name]  # some count from 1, some from 0
        absent = list(islice((k for k in range(first, first + total) if k not in numbers), 3))
        if lacking > 0 and c.contents.complete is not False:
            names = ", ".join(f"{name}-{k:0{digits}d}-of-{total:0{digits}d}{suffix}" for k in absent)
            more = ", ..." if lacking > len(absent) else ""
            yield finding("incomplete", "critical", f"The checkpoint is incomplete: {lacking} of {total} shards are missing: {names}{more}")


def _ranks(c: Checkpoint) -> Iterator[Found]:
    """Ranks that were saved at another step."""
    said: defaultdict[int, list[str]] = defaultdict(list)
    for name, value in c.contents.values.items():
        source, _, plain = name.rpartition(":")
        if source and plain in ("iteration", "global_step", "global_steps", "step") and type(value) is int:
            said[value].append(source)
    numbered = all(step in map(int, _DIGITS.findall(file)) for step, files in said.items() for file in files)
    if len(said) > 1 and not numbered:  # files that are called after their steps are saves of their own
        few, *_, most = sorted(said, key=lambda k: len(said[k]))
        title = f"{said[few][0]} is of step {few}, {said[most][-1]} of step {most}: parts of two saves"
        yield finding("step_label", "warning", title)
