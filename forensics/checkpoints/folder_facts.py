"""A checkpoint beside what its folder says of it: the trainer's step, the model's config, the tokenizer, the parts that others name."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

from forensics.checkpoints.age import Counters, counters
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.sick_values import Found, finding
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.unreadable import Unreadable
from parsers.formats import checkpoint_files
from parsers.walk import is_regular

MOST = 64 << 20  # bytes of a JSON file; tokenizers have up to thirty
PADDED = 8  # vocabularies are filled up to a multiple of 8, 64 or 128 for the hardware
_EMBEDDING = re.compile(r"(?:^|[.:])(?:wte|embed_tokens|tok_embeddings|word_embeddings|embed_in)\.weight$")
_ANY_EMBEDDING = re.compile(r"(?i)(?:^|[.:_])\w*(emb|embed|embedding|embeddings|embed_tokens|wte)\.weight$")
_ANY_HEAD = re.compile(r"(?i)(?:^|[.:_])(\w{0,40}head|output|out|proj_out|decoder|generator|fc)\.weight$")
_HEAD = re.compile(r"(?:^|[.:])(?:lm_head|embed_out)\.weight$")


def folder(c: Checkpoint) -> list[Found]:
    """All of it; for a file, what lies in it alone."""
    home = c.path if c.path.is_dir() else c.path.parent
    beside = c.path.is_dir() or ((home / "config.json").is_file() and len(list(home.glob("*.safetensors"))) == 1)
    config, state = (_json(home / "config.json"), _json(home / "trainer_state.json")) if beside else ({}, {})
    return [*_step(c, state), *_vocabulary(c, config, home if beside else None), *_tied(c, config), *_parts(c)]


def _json(path: Path) -> dict[str, Any]:
    try:
        if not is_regular(path, links=False) or path.stat().st_size > MOST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _step(c: Checkpoint, state: dict[str, Any]) -> list[Found]:
    """The trainer's count against the name of the folder, the optimizer and the schedule, which a trainer steps together."""
    stated, named, n = state.get("global_step"), checkpoint_files.step_of(c.path), counters(c)
    found = []
    if type(stated) is int and named is not None and named != stated:
        found.append(finding("step_label", "warning", f"trainer_state.json is of step {stated}, the folder of step {named}"))
    if (
        type(stated) is int
        and stated > 20
        and n.scheduler is not None
        and n.scheduler < 0.5 * stated
        and (n.optimizer is None or n.optimizer > 2 * n.scheduler + 10)
    ):
        found.append(
            finding("schedule_behind", "warning", f"The schedule is at {n.scheduler} in the checkpoint of step {stated}: it was reset")
        )
    return [*found, *_labels(c, named, n)]


def _labels(c: Checkpoint, named: int | None, n: Counters) -> list[Found]:
    """The step in a file's name against the one in the file; the optimizer's count says which is wrong. Whole multiples count micro-batches."""
    inside = c.step
    if (
        not inside
        or not named
        or c.path.is_dir()
        or not re.search(r"(?i)step|iter", c.path.name)
        or max(inside, named) % min(inside, named) == 0
    ):
        return []
    by_name, by_file = (n.optimizer is not None and abs(n.optimizer - x) <= max(2, 0.02 * x) for x in (named, inside))
    if abs(named - inside) <= max(2, 0.02 * named):
        return []
    counted = f", and its optimizer has counted {n.optimizer} steps" if n.optimizer else ""
    title = f"The file is named for step {named}, and says step {inside} inside{counted}"
    return [finding("step_label", "warning" if by_name != by_file else "info", title)]


def _of(c: Checkpoint, rule: re.Pattern[str]) -> list[Tensor]:
    return [t for t in c.contents.tensors if t.role == "weight" and len(t.shape) == 2 and rule.search(t.name)]


def _vocabulary(c: Checkpoint, config: dict[str, Any], home: Path | None) -> list[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if not (tables and heads) and (found := _formerly_tied(c)):
        return found
    if len(tables) != 1:
        return []
    rows, found = tables[0].shape[0], []
    stated = config.get("vocab_size")
    if type(stated) is int and stated > 0 and (rows < stated or (rows > stated and rows % PADDED)):
        found.append(
            finding("vocabulary", "warning", f"{tables[0].name} has {rows} rows, config.json says vocab_size {stated}", [tables[0].name])
        )
    tokens = _tokens(home) if home is not None else 0
    if tokens > rows:
        found.append(
            finding(
                "vocabulary",
                "warning",
                f"The tokenizer has {tokens} tokens, {tables[0].name} only {rows} rows: the others have no embedding",
                [tables[0].name],
            )
        )
    if len(heads) == 1 and heads[0].shape[0] != rows:
        found.append(
            finding("vocabulary", "warning", f"{heads[0].name} has {heads[0].shape[0]} rows, {tables[0].name} {rows}", [heads[0].name])
        )
    return found


def _formerly_tied(c: Checkpoint) -> list[Found]:
    """An embedding and a head of other names, whose first rows are equal and whose numbers of rows are not."""
    for table in _of(c, _ANY_EMBEDDING):
        for head in _of(c, _ANY_HEAD):
            (m, width), (n, other) = table.shape, head.shape
            if m != n and width == other and not (table.layout or head.layout) and _same_start(table, head, min(m, n) * width):
                title = (
                    f"{table.name} has {m} rows, {head.name} {n}, and the first {min(m, n)} are equal: they were one, and one was resized"
                )
                return [finding("vocabulary", "warning", title, [table.name, head.name])]
    return []


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
    model = state.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids = list(vocab.values()) if isinstance(vocab, dict) else list(range(len(vocab))) if isinstance(vocab, list) else []
    added = state.get("added_tokens")
    ids += [x.get("id") for x in added if isinstance(x, dict)] if isinstance(added, list) else []
    return 1 + max((i for i in ids if type(i) is int), default=-1)


def _tied(c: Checkpoint, config: dict[str, Any]) -> list[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if config.get("tie_word_embeddings") is not True or len(tables) != 1 or len(heads) != 1 or tables[0].shape != heads[0].shape:
        return []
    a, b = c.stats.get(tables[0].name), c.stats.get(heads[0].name)
    if a is None or b is None or abs(a.norm - b.norm) <= 1e-4 * a.norm:
        return []
    return [
        finding(
            "untied",
            "warning",
            f"config.json ties the embedding to the head, yet {heads[0].name} (norm {b.norm:.4g}) is not {tables[0].name} (norm {a.norm:.4g})",
            [heads[0].name],
        )
    ]


_NUMBERED = re.compile(r"(.*?)[-_](\d{1,5})-of-(\d{1,5})(\.\w+)")


def _first_absent(numbers: set[int], total: int) -> list[int]:
    """Up to three; some count from 1, some from 0."""
    first = 0 if 0 in numbers else 1
    return list(islice((k for k in range(first, first + total) if k not in numbers), 3))


def _parts(c: Checkpoint) -> list[Found]:
    """Shards that the names of others promise, and ranks that were saved at another step."""
    series: defaultdict[tuple[Path, str, int, str], set[int]] = defaultdict(set)
    for path in c.contents.files if c.path.is_dir() else []:
        if m := _NUMBERED.fullmatch(path.name):
            series[path.parent, m[1], int(m[3]), m[4]].add(int(m[2]))
    found = []
    for (_, name, total, suffix), numbers in series.items():
        lacking = total - len(numbers)
        width = next(len(m[2]) for p in c.contents.files if (m := _NUMBERED.fullmatch(p.name)) and m[1] == name)
        absent = [f"{name}-{k:0{width}d}-of-{total:0{width}d}{suffix}" for k in _first_absent(numbers, total)]
        if lacking > 0 and c.contents.complete is not False:
            found.append(
                finding(
                    "incomplete",
                    "critical",
                    f"The checkpoint is incomplete: {lacking} of {total} shards are missing: {', '.join(absent)}{', ...' if lacking > len(absent) else ''}",
                )
            )
    said: defaultdict[int, list[str]] = defaultdict(list)
    for name, value in c.contents.values.items():
        source, _, plain = name.rpartition(":")
        if source and plain in ("iteration", "global_step", "global_steps", "step") and type(value) is int:
            said[value].append(source)
    if len(said) > 1:
        few = min(said, key=lambda k: len(said[k]))
        others = max(said, key=lambda k: len(said[k]))
        found.append(
            finding("step_label", "warning", f"{said[few][0]} is of step {few}, {said[others][-1]} of step {others}: parts of two saves")
        )
    return found
