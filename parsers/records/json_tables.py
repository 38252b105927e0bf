"""Where the rows are in a JSON document: lists of objects, objects of lists, objects of steps. A helper, no parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.objectives import objective
from parsers.records.cells import as_number, seconds
from parsers.records.json_values import flat, holds_ids
from parsers.records.vocabulary import AXES, STEP_ORDER, last, plain

Leaf = tuple[str, Any, int | None]  # a key with its parents (joined by "/"), its value, its line
Found = tuple[list[dict[str, Any]], dict[str, Any]]  # rows, and what else the object held

WRAPPERS = {"history", "log_history", "logs", "log", "metrics", "results", "data", "records", "rows", "entries",
            "scalars", "steps", "batches", "values"}  # fmt: skip  # names that say nothing about the numbers in them
RESULT = lazy_re(
    r"(?i)(?:^|[_/\-. @])(?:loss|nll|acc|accuracy|acc\d?|top\d|f1|auc|auroc|map|m?iou|ppl|perplexity|bpb|bleu|rouge\w*|"
    r"wer|cer|mse|mae|rmse|r2|psnr|ssim|fid|reward|return|score|error|precision|recall|kl|entropy|runtime|samples_per_second|"
    r"steps_per_second|grad_norm)(?:$|[_/\-. @\d])"
)
SETTING = lazy_re(
    r"(?i)(?:^|[_/\-. ])(?:weight|coef|coeff|scale|alpha|beta|gamma|eps|threshold|patience|interval|every|type|fn|func|"
    r"function|smooth\w{0,30}|lambda|ratio|target|max|min|clip|norm_type|reduction|steps?|size|num|n)$"
    r"|(?:^|[/. ])target[_-]\w{1,30}$"  # target_kl, target_entropy: what is to be kept to
)
RESULT_FILE = lazy_re(r"(?i)result|metric|summary|eval|score|history|stats|final|best|report|perf|losses|state")
_OF_DATA = lazy_re(r"(?i)(?:train(?:ing)?|learn|valid(?:ation)?|val|eval(?:uation)?|test|dev)(?:[_-]?\d+)?")
_SERIES_FILE = lazy_re(r"(?i)metric|history|log|curve|loss")


def tables(value: Any, name: str, rest: list[Leaf], stem: str, depth: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Finds everything in a document that is a table of rows; the other leaves go to ``rest``."""
    if isinstance(value, list):
        rows = _list_rows(value, name or stem)
        if rows:
            yield name, rows
        elif name:
            rest.append((name, value, None))
        elif value:
            rest.append((stem, value, None))
        return
    if not isinstance(value, dict) or depth > 20 or not value:
        rest.append((name or stem, value, None))
        return
    for found in (_sacred(value), _catboost(value), _by_data_set(value), _by_step(value, name or stem), _series(value, name, stem)):
        if found is not None:
            rows, others = found
            yield name, rows
            rest += [(_join(name, k), v, None) for k, v in others.items() if not isinstance(v, (dict, list))]
            value = {k: v for k, v in others.items() if isinstance(v, (dict, list))}
            break
    for key, inner in value.items():
        yield from tables(inner, _join(name, key), rest, stem, depth + 1)


def _join(name: str, key: str) -> str:
    return f"{name}/{key}" if name else str(key)


_DATA_KEYS = {"image_id", "question", "prompt", "instruction", "messages", "bbox"}


def _list_rows(value: list[Any], name: str) -> list[dict[str, Any]]:
    """A list of metric rows or of batches as rows; [] where the list is something else (a data set, settings)."""
    if value and all(_is_point(x) for x in value):
        return [{"wall_time": w, "step": s, "": v} for w, s, v in value]
    rows = [x for x in value if isinstance(x, dict)]
    if not rows or len(rows) * 2 < len(value):
        return []
    keys = {plain(k) for r in rows[:50] for k in r}
    steps = {r["step"] if isinstance(r.get("step"), int) else -1 - i for i, r in enumerate(rows)}
    if len(steps) == 1 and len(rows) > 2 and any(isinstance(v, str) for v in rows[0].values()):
        return []  # a table that compares runs
    if any(as_number(v) is not None and RESULT.search(k) for r in rows[:50] for k, v in r.items()):
        return rows if len(keys) <= 200 and not keys & _DATA_KEYS else []
    stepped = "epoch" in keys or any(k in STEP_ORDER for k in keys - {"steps", "batch_id", "it"})
    measured = any(holds_ids(r) or any(isinstance(v, float) for _, v in flat("", r)) for r in rows[:50])
    return rows if stepped and measured else []


def _is_point(value: Any) -> bool:
    """One of TensorBoard's points: [wall time, step, value]."""
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(x, (int, float)) for x in value[:2]):
        return False
    return 1e9 < value[0] < 4.2e9 and float(value[1]).is_integer() and as_number(value[2]) is not None


def _sacred(value: dict[str, Any]) -> Found | None:
    """{name: {"steps": [...], "timestamps": [...], "values": [...]}}"""
    if not value or not all(
        isinstance(v, dict) and isinstance(v.get("values"), list) and isinstance(v.get("steps"), list) for v in value.values()
    ):
        return None
    rows = []
    for name, series in value.items():
        times = series.get("timestamps") if isinstance(series.get("timestamps"), list) else []
        for i, (step, x) in enumerate(zip(series["steps"], series["values"], strict=False)):
            rows.append({"step": step, "timestamp": seconds(times[i]) if i < len(times) else None, name: x})
    return rows, {}


def _catboost(value: dict[str, Any]) -> Found | None:
    """{"meta": {"learn_metrics": [{"name": "Logloss"}, ...], "test_metrics": [...]}, "iterations": [{"iteration": 0, "learn": [0.5, ...], "test": [...]}]}"""
    meta, rows = value.get("meta"), value.get("iterations")
    if not isinstance(meta, dict) or not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        return None
    named: dict[str, list[str]] = {}
    for key in ("learn_metrics", "test_metrics"):
        listed = meta.get(key)
        if not isinstance(listed, list) or not all(isinstance(m, dict) and isinstance(m.get("name"), str) for m in listed):
            return None
        named[key] = [m["name"] for m in listed]
    found = []
    for r in rows:
        row: dict[str, Any] = {"iteration": r.get("iteration")}
        for key, x in r.items():
            of, data = (named["learn_metrics"], "train") if key == "learn" else (named["test_metrics"], key)
            row |= {f"{data}/{n}": v for n, v in zip(of, x, strict=False)} if isinstance(x, list) else {}
        found.append(row)
    return found, {k: v for k, v in value.items() if k not in ("meta", "iterations")} | {"parameters": meta.get("parameters")}


def _by_data_set(value: dict[str, Any]) -> Found | None:
    """{"train": {"rmse": [...]}, "valid_0": {"rmse": [...]}}: what boosted trees kept of their rounds (``evals_result`` of XGBoost and LightGBM)."""
    lists = {f"{data}/{name}": x for data, of in value.items() if isinstance(of, dict) for name, x in of.items()}
    if not lists or not all(map(_OF_DATA.fullmatch, value)) or not all(isinstance(of, dict) for of in value.values()):
        return None
    if not all(isinstance(x, list) and len(x) > 1 and all(as_number(v) is not None for v in x) for x in lists.values()):
        return None
    if len({len(x) for x in lists.values()}) > 1 or not any(RESULT.search(tag) or objective(tag) for tag in lists):
        return None  # sizes and means of images are set by data set, too
    return [{"step": i, **dict(zip(lists, row, strict=True))} for i, row in enumerate(zip(*lists.values(), strict=True))], {}


def _by_step(value: dict[str, Any], name: str) -> Found | None:
    """{"100": {"loss": ...}, "200": ...}, {"0": 1.2, "1": 1.1} under a metric's name, or {"1": [ids], "2": [ids]}"""
    pattern = re.compile(r"(?:step|iter|epoch|batch|global_step)?[_\- ]?\d{1,15}")
    if len(value) < 2 or not all(pattern.fullmatch(k) for k in value):
        return None
    items = [(int(re.sub(r"\D", "", k)), v) for k, v in value.items()]
    rows = [(s, v) for s, v in items if isinstance(v, dict)]
    if len(rows) == len(items):
        told = any(holds_ids(v) or any(RESULT.search(k) for k in v) for _, v in rows)
        return ([{"step": s, **{k: x for k, x in v.items() if plain(k) != "step"}} for s, v in rows], {}) if told else None
    if all(isinstance(v, list) and v and all(isinstance(x, (int, str)) for x in v) for _, v in items):
        return [{"step": s, "sample_ids": v} for s, v in items], {}
    told = bool(RESULT.search(name) or RESULT_FILE.search(name) or "per_sec" in name)
    return ([{"step": s, "": v} for s, v in items], {}) if told and all(as_number(v) is not None for _, v in items) else None


def _series(value: dict[str, Any], name: str, stem: str) -> Found | None:
    """Lists of numbers, one for each metric (Keras history); their step: a list of steps, else the place in it, which is
    the epoch where an evaluation stands beside each value."""
    told = bool(_SERIES_FILE.search(stem)) or plain(last(name)) in WRAPPERS
    lists = {k: v for k, v in value.items() if isinstance(v, list) and v and not isinstance(v[0], (dict, list)) and
             all(x is None or as_number(x) is not None for x in v)}  # fmt: skip
    axes = {k: v for k, v in lists.items() if plain(k) in AXES}
    ids = {k: v for k, v in value.items() if isinstance(v, list) and axes and holds_ids({k: v[0] if v else None})}
    series = {k: v for k, v in lists.items() if k in axes or RESULT.search(k) or (told and not SETTING.search(k)) or (axes and len(v) > 2)}
    if not ids and not (series.keys() - axes.keys()):
        return None
    rows = []
    for length in sorted({len(v) for v in (series | ids).values()}):
        some = {k: v for k, v in (series | ids).items() if len(v) == length}
        by_epoch = any(f"val_{k}" in some for k in some)  # Keras evaluates after each epoch
        steps = {} if any(k in axes for k in some) else {"epoch": list(range(1, length + 1))} if by_epoch else {"step": list(range(length))}
        rows += [dict(zip((*steps, *some), row, strict=True)) for row in zip(*steps.values(), *some.values(), strict=True)]
    return rows, {k: v for k, v in value.items() if k not in series and k not in ids}
