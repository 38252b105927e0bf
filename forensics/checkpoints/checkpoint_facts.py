"""A checkpoint beside what its folder says of it: the trainer's step, the model's config, the tokenizer, the parts that others name."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from forensics.checkpoints.checkpoint import Checkpoint
from forensics.checkpoints.checkpoint_age import counters
from forensics.checkpoints.checkpoint_findings import Found, finding
from parsers import checkpoint_files
from parsers.checkpoints.contents import Tensor
from parsers.walk import is_regular

MOST = 64 << 20  # bytes of a JSON file; tokenizers have up to thirty
PADDED = 8  # vocabularies are filled up to a multiple of 8, 64 or 128 for the hardware
_EMBEDDING = re.compile(r"(?:^|[.:])(?:wte|embed_tokens|tok_embeddings|word_embeddings|embed_in)\.weight$")
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
        found.append(
            finding("step_label", "warning", f"trainer_state.json is of step {stated}, the folder of step {named}")
        )
    if (
        type(stated) is int
        and stated > 20
        and n.scheduler is not None
        and n.scheduler < 0.5 * stated
        and (n.optimizer is None or n.optimizer > 2 * n.scheduler + 10)
    ):
        found.append(
            finding(
                "schedule_behind",
                "warning",
                f"The schedule stands at {n.scheduler} in the checkpoint of step {stated}: it began anew",
            )
        )
    return found


def _of(c: Checkpoint, rule: re.Pattern[str]) -> list[Tensor]:
    return [t for t in c.contents.tensors if t.role == "weight" and len(t.shape) == 2 and rule.search(t.name)]


def _vocabulary(c: Checkpoint, config: dict[str, Any], home: Path | None) -> list[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if len(tables) != 1:
        return []
    rows, found = tables[0].shape[0], []
    stated = config.get("vocab_size")
    if type(stated) is int and stated > 0 and (rows < stated or (rows > stated and rows % PADDED)):
        found.append(
            finding(
                "vocabulary",
                "warning",
                f"{tables[0].name} has {rows} rows, config.json says vocab_size {stated}",
                [tables[0].name],
            )
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
            finding(
                "vocabulary",
                "warning",
                f"{heads[0].name} has {heads[0].shape[0]} rows, {tables[0].name} {rows}",
                [heads[0].name],
            )
        )
    return found


def _tokens(home: Path) -> int:
    """One more than the largest id of tokenizer.json; 0 where it is not known."""
    state = _json(home / "tokenizer.json")
    model = state.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids = (
        list(vocab.values()) if isinstance(vocab, dict) else list(range(len(vocab))) if isinstance(vocab, list) else []
    )
    added = state.get("added_tokens")
    ids += [x.get("id") for x in added if isinstance(x, dict)] if isinstance(added, list) else []
    return 1 + max((i for i in ids if type(i) is int), default=-1)


def _tied(c: Checkpoint, config: dict[str, Any]) -> list[Found]:
    tables, heads = _of(c, _EMBEDDING), _of(c, _HEAD)
    if (
        config.get("tie_word_embeddings") is not True
        or len(tables) != 1
        or len(heads) != 1
        or tables[0].shape != heads[0].shape
    ):
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


def _parts(c: Checkpoint) -> list[Found]:
    """Shards that the names of others promise, and ranks that were saved at another step."""
    series: defaultdict[tuple[Path, str, int, str], set[int]] = defaultdict(set)
    for path in c.contents.files if c.path.is_dir() else []:
        if m := _NUMBERED.fullmatch(path.name):
            series[path.parent, m[1], int(m[3]), m[4]].add(int(m[2]))
    found = []
    for (_, name, total, suffix), numbers in series.items():
        lacking = total - len(numbers)
        if lacking > 0 and c.contents.complete is not False:
            found.append(
                finding(
                    "incomplete",
                    "critical",
                    f"The save is not whole: {lacking} of {total} shards {name}-...{suffix} are missing",
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
            finding(
                "step_label",
                "warning",
                f"{said[few][0]} is of step {few}, {said[others][-1]} of step {others}: parts of two saves",
            )
        )
    return found
