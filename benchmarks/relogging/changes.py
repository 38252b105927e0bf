"""What each transformation does to the rows of a run; how they are written then is another matter (`writers`)."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import replace

from relogging.original import NotSound, Original, Row, Stream

AS = {
    "as_csv": "csv_log",
    "as_jsonl": "jsonl",
    "as_console": "console",
    "as_tensorboard": "tensorboard",
    "as_trainer_state": "trainer_state",
}
EVALUATED = re.compile(r"(?:^|[/_ .-])(?:val|valid|validation|eval|test)(?=$|[/_ .-])", re.I)
WINDOW = 5  # logged values in the running mean
LEAST = 20  # logged values: of fewer there is no half, and no mean of five
BEHIND = 0.1  # of the run: what stays after the event's end
NOT_ROUNDED = ("epoch", "step", "axis/", "time.total", "tokens.seen", "samples.seen")
WARNED = ("traceback", "error", "hardware", "nccl", "scheduler")  # kinds of events that tell how a run ended

# Lightning's tags, or those of Keras' and Hugging Face's TensorBoard files where the run has Lightning's: none of them says more of a
# metric than its own name does (no unit, no smoothing), so that the run stays what it was.
LIGHTNING = {
    "loss.train": "train_loss",
    "loss.eval": "val_loss",
    "acc.train": "train_acc",
    "acc.eval": "val_acc",
    "ppl.train": "train_perplexity",
    "ppl.eval": "val_perplexity",
    "lr": "lr-AdamW",
    "grad.norm": "grad_2.0_norm_total",
}
SLASHED = {
    "loss.train": "train/loss",
    "loss.eval": "eval/loss",
    "acc.train": "train/accuracy",
    "acc.eval": "eval/accuracy",
    "ppl.train": "train/perplexity",
    "ppl.eval": "eval/perplexity",
    "lr": "train/learning_rate",
    "grad.norm": "train/grad_norm",
}


def is_eval(stream: Stream, tag: str) -> bool:
    return stream.names[tag].endswith(".eval") or bool(EVALUATED.search(tag))


def changed(original: Original, transformation: str, step: int | None = None) -> list[Stream]:
    """The streams after the transformation; raises NotSound where it cannot be done, or would change nothing."""
    streams = original.streams
    if not any(s.rows for s in streams):
        raise NotSound("no metric was logged by step")
    if transformation in AS:
        return _in_format(streams, AS[transformation])
    if transformation == "cut_after":
        return _cut(original, step)
    if transformation == "offset":
        return _offset(streams)
    if transformation in ("again", "no_config"):
        return streams
    found = [_CHANGES[transformation](s) for s in streams]
    if transformation == "two_files":
        return [part for s in found for part in _parted(s)]
    if transformation != "key_order" and all(a.rows == b.rows and a.names == b.names for a, b in zip(streams, found, strict=True)):
        raise NotSound("it would change nothing")
    return found


def _in_format(streams: list[Stream], format: str) -> list[Stream]:
    """Consoles beside a table stay what they are: only where nothing else was logged are their lines the metrics."""
    beside = {s.path for s in streams if s.lines is not None} if any(s.lines is None for s in streams) else set()
    moved = [s for s in streams if s.path not in beside]
    if all(s.format == format for s in moved):
        raise NotSound("it is logged so already")
    if beside and format == "console":
        raise NotSound("it has a console log already")
    if any(s.epochs for s in moved) and format in ("tensorboard", "trainer_state"):
        raise NotSound("rows have epochs and no steps, which this format cannot say")
    if format in ("tensorboard", "trainer_state") and len({r.rank for s in moved for r in s.rows}) > 1:
        raise NotSound("there are several ranks, which this format cannot say")
    return [replace(s, stays=s.path in beside) for s in streams]


def _values(stream: Stream, keep: Callable[[Row, str, float], float | None]) -> Stream:
    """Each value through ``keep``, None leaves it out; rows without values go."""
    rows = []
    for row in stream.rows:
        values = {tag: new for tag, v in row.values.items() if (new := keep(row, tag, v)) is not None}
        if values:
            rows.append(replace(row, values=values))
    return replace(stream, rows=rows)


def _dropped(*names: str) -> Callable[[Stream], Stream]:
    return lambda s: _values(s, lambda row, tag, v: None if s.names[tag] in names else v)


def _no_eval(s: Stream) -> Stream:
    return _values(s, lambda row, tag, v: None if is_eval(s, tag) else v)


def _renamed(s: Stream) -> Stream:
    tags = s.tags()
    table = SLASHED if any(LIGHTNING.get(s.names[t]) == t for t in tags) else LIGHTNING
    alone = [t for t in tags if [s.names[u] for u in tags].count(s.names[t]) == 1]  # of two tags of one name neither can have the other's
    new = {t: table[s.names[t]] for t in alone if s.names[t] in table and table[s.names[t]] not in tags}
    rows = [replace(r, values={new.get(t, t): v for t, v in r.values.items()}) for r in s.rows]
    return replace(s, rows=rows, names={new.get(t, t): n for t, n in s.names.items()})


def _every_second(s: Stream) -> Stream:
    """By tag and step, so that what was logged together stays together; evaluations stay."""
    steps = {t: sorted({r.step for r in s.rows if t in r.values and r.step is not None}) for t in s.tags() if not is_eval(s, t)}
    if max(map(len, steps.values()), default=0) < LEAST:
        return s
    kept = {t: set(found[::2]) for t, found in steps.items()}
    return _values(s, lambda row, tag, v: v if tag not in kept or row.step is None or row.step in kept[tag] else None)


def _smoothed(s: Stream) -> Stream:
    window: dict[tuple[str, int | None], list[float]] = {}
    last: dict[tuple[str, int | None], int] = {}
    if sum(s.names[t] == "loss.train" for r in s.rows for t in r.values) < LEAST:
        return s

    def mean(row: Row, tag: str, v: float) -> float:
        key = (tag, row.rank)
        if s.names[tag] != "loss.train" or row.step is None:
            return v
        if row.step <= last.get(key, -1):
            window.pop(key, None)  # a resume begins its mean anew
        last[key] = row.step
        window[key] = [*window.get(key, []), v][-WINDOW:]
        return math.fsum(window[key]) / len(window[key]) if all(map(math.isfinite, window[key])) else sum(window[key])

    return _values(s, mean)


def _rounded(s: Stream) -> Stream:
    """Four digits of losses, three of the rest; whole numbers, clocks and counters stay."""

    def short(row: Row, tag: str, v: float) -> float:
        name = s.names[tag]
        if not math.isfinite(v) or v == int(v) or name.startswith(NOT_ROUNDED):
            return v
        return float(f"{v:.{4 if name.startswith('loss') else 3}g}")

    return _values(s, short)


def _offset(streams: list[Stream]) -> list[Stream]:
    if any(s.format == "trainer_state" for s in streams):
        raise NotSound("the Trainer counts from 1 only")
    by = shift(streams)
    return [replace(s, rows=[replace(r, step=None if r.step is None else r.step + by) for r in s.rows]) for s in streams]


def shift(streams: list[Stream]) -> int:
    """+1 where the run counts from 0, else -1."""
    return 1 if min((r.step for s in streams for r in s.rows if r.step is not None), default=1) == 0 else -1


def _no_clock(s: Stream) -> Stream:
    if s.lines is not None and any(r.time is not None for r in s.rows):
        raise NotSound("lines that stay have clocks")
    bare = _dropped("time.total")(s)
    return replace(bare, rows=[replace(r, time=None) for r in bare.rows])


def _two_files(s: Stream) -> Stream:
    if s.lines is not None or s.format == "trainer_state":
        raise NotSound("this format has one file")
    if not any(is_eval(s, t) for t in s.tags()) or all(is_eval(s, t) for t in s.tags()):
        raise NotSound("training or evaluation was not logged in it")
    return s


def _parted(s: Stream) -> list[Stream]:
    train = _values(s, lambda row, tag, v: None if is_eval(s, tag) else v)
    evaluated = _values(s, lambda row, tag, v: v if is_eval(s, tag) or (s.epochs and s.names[tag] == "epoch") else None)
    return [replace(train, suffix="train"), replace(evaluated, suffix="eval", settings={})]


def _key_order(s: Stream) -> Stream:
    draw = random.Random(0)
    rows = [replace(r, values=dict(draw.sample(sorted(r.values.items()), len(r.values)))) for r in s.rows]
    return replace(s, rows=rows, shuffled=True)


def _cut(original: Original, end: int | None) -> list[Stream]:
    steps = [r.step for s in original.streams for r in s.rows if r.step is not None]
    if not end or end <= min(steps):
        raise NotSound("the truth names no step at which something happened")
    if len(original.runs) > 1:
        raise NotSound("there are several runs")
    last = end + math.ceil(BEHIND * (max(steps) - min(steps)))
    if last >= max(steps):
        raise NotSound("the run ends there anyway")
    if any(e["kind"] in WARNED for r in original.runs for e in r.tables["events"].to_pylist()):
        raise NotSound("lines tell how it ended")
    if any(sum((b.step or 0) < (a.step or 0) for a, b in zip(s.rows, s.rows[1:], strict=False)) for s in original.streams):
        raise NotSound("steps were done again after a resume")
    return [replace(s, rows=[r for r in s.rows if r.step is None or r.step <= last]) for s in original.streams]


def last_step(streams: list[Stream]) -> int:
    return max((r.step for s in streams for r in s.rows if r.step is not None), default=0)


_CHANGES: dict[str, Callable[[Stream], Stream]] = {
    "renamed": _renamed,
    "every_second": _every_second,
    "smoothed": _smoothed,
    "rounded": _rounded,
    "no_clock": _no_clock,
    "no_grad_norm": _dropped("grad.norm", "grad.norm_layer"),
    "no_lr": _dropped("lr", "lr.mult"),
    "no_eval": _no_eval,
    "two_files": _two_files,
    "key_order": _key_order,
}
TRANSFORMATIONS = ("again", *AS, *_CHANGES, "offset", "no_config", "cut_after")
