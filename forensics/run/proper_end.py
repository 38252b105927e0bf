"""Whether the program came to its own end, and what says so: its closing line, its exit code, the plan, a countdown, a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from forensics.run import endings, plan, reach, whole_counts
from forensics.run.endings import Event
from forensics.run.once import once
from forensics.run.plan import planned_steps, unit
from forensics.run.series import Floats, series
from forensics.run.whole_counts import Finish
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL
from parsers.name_rules import words
from parsers.tables import Run

CLOSING = ("finished", "train_end")  # lines that say that all was done
SUMMED_UP = "summary"  # a line that a program writes once behind its loop
LOOP_END = "loop_end"  # a line that hooks write after the loop, however it ended
DONE = lazy_re(r"\b(?:FINISHED|COMPLETED)\b", re.I)
EARLY = lazy_re(
    r"early.?stop(?!\w*+\W?\s*+[:=]\s*+(?:\d|true|false|none|null|disabled|off))|stopping_early|signaling trainer to stop|wall.?clock|(?:time|compute) (?:budget|limit)|(?<!\w)max\w*+ \w{0,20}.?time",
    re.I,
)
# what is saved after the loop, by what it is called or where it goes ("out_final.pth"); not the last batch of a final epoch
FINAL = lazy_re(
    r"(?i)\bfinal (?:trained |fine-?tuned )?(?:model|weights|checkpoint|policy|agent|adapter|network|state)s?\b|(?<![a-z])final(?:_\w{0,40})?\.(?:pth?|ckpt|bin|zip|h5|keras|safetensors|pkl|npz|msgpack)\b|model_final\b"
)
_BEST = lazy_re(r"(?i)(?<![a-z])best(?![a-z])")  # the best one so far
NEAR_END = 50  # lines of a summary, a save or a test that may follow the closing line of a log without steps
COUNTDOWN = lazy_re(r"(?:^|[/_. ])(?:eta|remaining|time_left)(?:_?(?:time|s|sec|secs|seconds|hours))?$")
PROGRESS = lazy_re(r"(?:^|[/_. ])(?:progress|percent(?:age)?|pct)(?:[/_. ](?:done|complete|pct|percent))?$")
_ETA = lazy_re(r"(?i)\beta\b\W{0,3}(?:(\d+) days?,? *)?(\d+):(\d\d)(?::(\d\d))?")
LEFT = 60.0  # seconds; the estimate of the last line may be a logging interval old
FALLING = 0.6  # of the rows: an estimate that swings falls in more than half of them
TEST = lazy_re(r"(?:^|[\W_])test(?:$|[\W_])")
CALLED_FINAL = lazy_re(r"^\W*(?:the )?final(?![a-z])(?!\W*(?:epoch|step|iter|l(?:ea)?r\b|layer))")
EVALUATED = 3  # bound: evaluations on other data; with fewer it may be the test that the run stands in
SUMMARY = lazy_re(r"(?:^|/)train_(?:runtime|samples_per_second|steps_per_second)$")  # transformers' speed_metrics, once after the last step
RUN_DOWN, HALF_WAY, DISTINCT = 0.01, 0.3, 10  # of the peak rate; a linear or cosine decay, not an exponential or a staircase


def finished(run: Run) -> bool:
    return finish(run) is not None


@once
def finish(run: Run) -> Finish | None:
    """What says that the last attempt came to its own end; None where nothing does."""
    last = endings.of_attempt(run, len(run.attempts) - 1)
    return next(
        (
            found
            for test in (_closing_line, _exit_record, _loop_end, _final_save, _summed_up, _summary, _closing_test, _plan)
            if (found := test(run, last))
        ),
        None,
    )


@once
def likely(run: Run) -> Finish | None:
    """What lets a log that says nothing of its end look like one of a run that finished."""
    last = endings.of_attempt(run, len(run.attempts) - 1)
    if any(e["level"] != "info" and not endings.steps_after(run, e) for e in last) or any(g.lost for g in run.gaps):
        return None
    counts = (whole_counts.round_epochs, whole_counts.round_steps, whole_counts.as_long_as_others, whole_counts.evaluated_behind,
              whole_counts.whole_history, whole_counts.whole_last_epoch)  # fmt: skip
    if (saved := _saved_behind(run, last)) is not None:
        return saved
    return next((found for test in (_counted_down, _counted_up, _rate_ran_down, *counts) if (found := test(run))), None)


def closings(run: Run, events: list[Event]) -> Iterator[Event]:
    """The lines that say that all was done, and were right so far: no later step follows in their file."""
    for e in events:
        if (e["kind"] in CLOSING or (e["kind"] == "warning" and EARLY.search(e["text"]))) and endings.stands_last(run, e, NEAR_END):
            yield e


def work_left(run: Run) -> bool:
    """The plan, or the log's own estimate of the time that was left, says that the run was not through."""
    planned, last, times = planned_steps(run), reach.last(run), _countdown(run)
    if planned is not None and last is not None and not plan.reached(run) and last < planned:
        return True
    return (len(times) > 0 and not _ran_out(times)) or any(_seconds_left(e["text"]) > LEFT for e in endings.last_lines(run).values())


def _seconds_left(text: str) -> float:
    """What a line says is left: 'eta: 1 day, 17:59:33', 'eta 03:20'; 0 where it says nothing."""
    m = _ETA.search(text)
    if m is None:
        return 0.0
    a, b, c = int(m[2]), int(m[3]), m[4]
    return 86400.0 * int(m[1] or 0) + (60 * a + b if c is None else 3600 * a + 60 * b + int(c))


def _closing_line(run: Run, last: list[Event]) -> Finish | None:
    found = [*closings(run, last)]
    early = [e for e in found if EARLY.search(e["text"])]  # tells more than the "done" that follows it
    for e in (early or found)[-1:]:
        return _told(run, e, "early" if early else "said")
    return None


def _exit_record(run: Run, last: list[Event]) -> Finish | None:
    codes = [e for e in last if e["kind"] == "exit"]
    if any(e["level"] == "error" for e in codes):
        return None
    done = [e for e in last if e["kind"] == "status" and DONE.search(e["text"])]
    return next((_told(run, e) for e in (*codes, *done) if e["kind"] != "exit" or "code 0" in e["text"]), None)


def _loop_end(run: Run, last: list[Event]) -> Finish | None:
    found = [e for e in last if e["kind"] == LOOP_END and endings.stands_last(run, e, NEAR_END)]
    return _told(run, found[-1]) if found and not work_left(run) else None


def _final_save(run: Run, last: list[Event]) -> Finish | None:
    """The model that is called the final one was saved, and nothing says that work was left."""
    found = [e for e in last if e["kind"] == "checkpoint_saved" and FINAL.search(e["text"]) and endings.stands_last(run, e, NEAR_END)]
    return _told(run, found[-1]) if found and not work_left(run) else None


def _summed_up(run: Run, last: list[Event]) -> Finish | None:
    """A line that sums up, said once and behind the last step, where nothing says that work was left."""
    found = [e for e in last if e["kind"] == SUMMED_UP]
    behind = [e for e in found if endings.stands_last(run, e, NEAR_END)]
    return _told(run, found[0]) if len(found) == 1 and behind and not work_left(run) else None


def _saved_behind(run: Run, last: list[Event]) -> Finish | None:
    """The first checkpoint that a log tells of, behind its last step: what is saved as it trains is told of before."""
    found = [e for e in last if e["kind"] == "checkpoint_saved" and str(e["source"]) in endings.progress(run)]
    if (
        not found
        or any(_BEST.search(e["text"]) for e in found)
        or work_left(run)
        or any(endings.steps_after(run, e) or not endings.stands_last(run, e, NEAR_END) for e in found)
    ):
        return None
    return _told(run, found[0], "guess")


def broken_off(run: Run) -> Event | None:
    """The line that hooks wrote after a loop which was not through; None where there is none."""
    last = endings.of_attempt(run, len(run.attempts) - 1)
    found = [e for e in last if e["kind"] == LOOP_END and endings.stands_last(run, e, NEAR_END)]
    return found[0] if found and work_left(run) else None


def _plan(run: Run, last: list[Event]) -> Finish | None:
    if not plan.reached(run):
        return whole_counts.last_epoch(run)
    end, planned = reach.last(run), planned_steps(run)
    from_0 = ", counted from 0" if end is not None and end + 1 == planned and run.attempts[0]["steps"][0] == 0 else ""
    return Finish(f"{unit(run)} {end} of {planned} planned{from_0}", how="plan")


def _counted_down(run: Run) -> Finish | None:
    times = _countdown(run)
    if not len(times) or not _ran_out(times):
        return None
    return Finish(f"its own estimate of the time left ran down to {times[-1]:.3g}", how="guess")


def _counted_up(run: Run) -> Finish | None:
    """A share of the work that is done, in percent, whose next value would be past a hundred."""
    for tag, x in _tagged(run, PROGRESS):
        if len(x) >= 5 and x[0] >= 0 and 1 < x[-1] <= 100 and (np.diff(x) >= 0).all() and x[-1] + np.diff(x).mean() > 100 - 1e-6:
            return Finish(f"{tag} had come to {x[-1]:.4g} %", how="guess")
    return None


def _ran_out(times: Floats) -> bool:
    """Within a logging interval of zero."""
    return bool(times[-1] <= np.median(np.abs(np.diff(times))))


@once
def _countdown(run: Run) -> Floats:
    """The values of a clock that counts down to the end, of the last attempt; none where nothing counts down."""
    rate = series(run, "lr")  # which some call eta
    for tag, values in _tagged(run, COUNTDOWN):
        if (rate is None or tag != rate.tag) and len(values) >= 5 and (np.diff(values) <= 0).mean() > FALLING:
            return values
    return np.zeros(0)


def _summary(run: Run, last: list[Event]) -> Finish | None:
    found = [(tag, values[-1]) for tag, values in _tagged(run, SUMMARY)]
    return Finish(f"the trainer's summary after its last step: {found[0][0]} {found[0][1]:.6g}") if found else None


def _closing_test(run: Run, last: list[Event]) -> Finish | None:
    """What is called final, or the test set in a run that was evaluated on other data all along, or trained for several epochs: looked at once and behind
    everything else in its file."""
    m = run.tables["metrics"]
    code, tags = arrow.codes(m["tag"])
    source, _ = arrow.codes(m["source"])
    others = [i for i, tag in enumerate(tags) if EVAL.search(words(tag)) and not TEST.search(tag.lower())]
    epoch = series(run, "epoch")
    evaluated = (np.bincount(code, minlength=len(tags))[others] >= EVALUATED).any()
    # of several epochs none was tested by itself
    evaluated |= epoch is not None and epoch.usable.any() and np.ptp(epoch.value[epoch.usable]) >= EVALUATED
    closing = [i for i, tag in enumerate(tags) if CALLED_FINAL.search(tag.lower()) or (evaluated and TEST.search(tag.lower()))]
    tested = np.isin(code, closing)
    rows = np.flatnonzero(tested)
    if not len(rows) or np.bincount(code[rows]).max() > 1:
        return None
    at, here = arrow.filled(m["at"], -1), source == source[rows[-1]]
    kept = here & ~tested & (code != rows[-1]) & arrow.present(m["step"])
    if not kept.any() or (at[kept] > at[rows].min()).any():
        return None
    return Finish(f"looked at once and behind everything else: {tags[code[rows[0]]]} {arrow.values(m['value'])[rows[0]]:.4g}")


def _tagged(run: Run, name: re.Pattern[str]) -> Iterator[tuple[str, Floats]]:
    """Tag and finite values, in the order of the file, of the last attempt."""
    metrics = run.tables["metrics"]
    code, tags = arrow.codes(metrics["tag"])
    last = arrow.filled(metrics["attempt"], -1) == len(run.attempts) - 1  # of a log without a step none has an attempt
    last &= np.isfinite(arrow.filled(metrics["value"], np.nan))
    for i, tag in enumerate(tags):
        if name.search(tag.lower()) and (rows := last & (code == i)).any():
            yield tag, arrow.values(metrics["value"])[rows]


def _rate_ran_down(run: Run) -> Finish | None:
    s = series(run, "lr")
    rows = np.flatnonzero(s.usable & (s.attempt == s.attempt.max())) if s is not None and len(s) else np.zeros(0, np.int64)
    if s is None or len(rows) < 2 * DISTINCT:
        return None
    value, step = s.value[rows], s.step[rows]
    peak = int(value.argmax())
    after, steps = value[peak:], step[peak:]
    if len(np.unique(after)) < DISTINCT or (np.diff(after) > 0).any() or after[-1] > RUN_DOWN * after[0]:
        return None
    half = float(np.interp((steps[0] + steps[-1]) / 2, steps, after))
    said = f"its learning rate had run down from {after[0]:.3g} to {after[-1]:.3g}"
    return Finish(said, s.place(run, rows[-1]), how="guess") if half >= HALF_WAY * after[0] else None


def _told(run: Run, e: Event, how: str = "said") -> Finish:
    return Finish(str(e["text"]).strip().splitlines()[-1][:300], run.where(e["source"], e["at"]), how)
