"""Two runs side by side: where they part, what differs, and which learns more for its steps, time, tokens and FLOPs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from forensics.batches import recorded
from forensics.case import jsonable
from forensics.detectors import loss_spike
from forensics.errors import CannotTell, ForensicsError
from forensics.many_runs import config_diff, difference, learning, parting, source_diff, verdict_of_two
from forensics.run import how_it_ended, identity, metric_aliases, pace
from forensics.run.downsample import m4
from forensics.run.inputs import loss_of
from forensics.run.recipe import recipe
from forensics.run.series import Series, names, series
from forensics.version import VERSION
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SCHEMA = 1
METRICS = ("loss.train", "loss.eval", "grad.norm", "lr", "loss_scale")
THROUGHPUT = ("tput.tokens", "tput.samples", "tput.steps", "tput.tokens_dev", "time.step")
COLUMNS, BATCHES = 300, 5000
_CADENCE = lazy_re(r"(?i)every|interval|freq|period|_steps$|workers|prefetch|strategy")  # how often, not what


def compare(a: Run, b: Run, *, command: Sequence[str] = ()) -> dict[str, Any]:
    """The comparison as JSON; docs/audit.md lists the keys. Raises ForensicsError where both hold no metric in common, and WrongUsage
    where neither logged a tag that was given."""
    if a.aliases is not None:
        metric_aliases.check_tags(a.aliases, [a, b])
    common = [n for n in METRICS if series(a, n) is not None and series(b, n) is not None]
    if not common and not set(names(a)) & set(names(b)):
        raise ForensicsError(
            "the two runs have no metric in common", "`--metric NAME=TAG` or a forensics.toml says what the tags of a team mean."
        )
    parted = {n: p for n in common if (p := _parting(a, b, n)) is not None}
    main = next((n for n in ("loss.train", "loss.eval") if n in parted), None)
    equal = main is not None and parted[main].equal >= 3
    differs = config_diff.differences(a, b, equal_at_first=equal)
    told = {
        "schema": SCHEMA,
        "kind": "comparison",
        "tool": {"name": "forensics", "version": VERSION, "command": list(command)},
        "runs": [_run(r) for r in (a, b)],
        "identity": identity.of_two(a, b),
        "metric": main,
        "divergence": {n: asdict(p) for n, p in parted.items()},
        "spikes": _spikes(a, b),
        "config": [d for d in differs if d["kind"] != "environment"],
        "environment": [d for d in differs if d["kind"] == "environment"],
        "source": source_diff.differences(a, b),
        "recipe": _recipes(a, b),
        "data_order": data_order(a, b),
        "throughput": _throughput(a, b),
        "step_seconds": verdict_of_two.step_seconds(a, b),
        "learning": learning.table(a, b, main) if main else [],
        "warnings": _warnings(a, b, differs),
        "curves": [_curve(a, b, n) for n in common],
    }
    told["answer"] = verdict_of_two.answer(told)
    plain: dict[str, Any] = jsonable(told)
    return plain


def _parting(a: Run, b: Run, name: str) -> parting.Parting | None:
    one, two = series(a, name), series(b, name)
    return parting.find(one, two) if one is not None and two is not None else None


def _run(r: Run) -> dict[str, Any]:
    steps = [s for x in r.attempts for s in x["steps"]]
    return {
        "id": r.id,
        "path": r.path,
        "framework": r.framework,
        "status": how_it_ended.status(r),
        "steps": [min(steps), max(steps)] if steps else [None, None],
        "attempts": len(r.attempts),
        "scalars": r.tables["metrics"].num_rows,
    }


def _spikes(a: Run, b: Run) -> list[dict[str, Any]]:
    """``{"run", "step", "peak", "class"}`` of the loss spikes of one alone, at steps that the other came by; also between the
    steps that both logged."""
    found = [own_spikes(r) for r in (a, b)]
    alone = []
    for i, (spikes, _) in enumerate(found):
        others, other = found[1 - i]
        if other is None:
            continue
        near = 3 + 2 * other.interval
        alone += [
            {"run": "AB"[i], "step": f.start, "peak": f.peak, "class": f.class_}
            for f in spikes
            if other.step.min() <= f.start <= other.step.max() and not any(abs(f.start - o.start) <= near for o in others)
        ]
    return sorted(alone, key=lambda s: (s["step"], s["run"]))


def own_spikes(r: Run) -> tuple[list[loss_spike.Facts], Series | None]:
    """The facts of its spikes, and the loss that they are in."""
    try:
        spikes = [f.facts for f in loss_spike.detect(r) if f.facts.class_ != "not_a_spike"]
        return spikes, loss_of(r)
    except CannotTell:
        return [], None


def _recipes(a: Run, b: Run) -> list[dict[str, Any]]:
    one, two = asdict(recipe(a)), asdict(recipe(b))
    return [{"name": k, "a": one[k], "b": two[k], "differs": one[k] != two[k]} for k in one]


def data_order(a: Run, b: Run) -> dict[str, Any]:
    """``{"order": "same" | "differs" | "unknown", "from", "shift", "how", "why"}``: recorded batches decide, else the noise of the losses."""
    steps = [set(r.tables["batches"]["step"].drop_null().to_pylist()) for r in (a, b)]
    both = sorted(steps[0] & steps[1])[:BATCHES]
    pairs = [(s, recorded.batch(a, s), recorded.batch(b, s)) for s in both]
    known = [(s, x["samples"], y["samples"]) for s, x, y in pairs if x and y and x["samples"] and y["samples"]]
    if known:
        other = [s for s, x, y in known if sorted(map(str, x)) != sorted(map(str, y))]
        if not other:
            return _order("same", None, 0, "recorded", f"the files of both list the same samples at {len(known)} common steps")
        return _order(
            "differs", other[0], None, "recorded", f"other samples at {len(other)} of {len(known)} common steps, first at step {other[0]}"
        )
    one, two = series(a, "loss.train"), series(b, "loss.train")
    found = parting.shared_noise(one, two) if one is not None and two is not None else None
    if found is None:
        return _order("unknown", None, None, "", "no file lists the batches, and the loss was not logged at every step")
    lag, r, error = found
    if r >= parting.LAG_LEAST and r > parting.LAG_SIGMA * error:
        shifted = f"; B reads it {abs(lag)} steps {'later' if lag > 0 else 'earlier'}" if lag else ""
        why = f"the noise of the two losses goes together (correlation {r:.2f}{shifted})"
        return _order("same", None, lag, "inferred", why)
    if r < 5 * error:
        return _order(
            "differs",
            None,
            None,
            "inferred",
            f"the noise of the two losses has nothing in common at any shift up to {parting.MOST_LAG} steps",
        )
    return _order("unknown", None, None, "", f"the noise of the two losses goes together only weakly (correlation {r:.2f})")


def _order(order: str, first: int | None, shift: int | None, how: str, why: str) -> dict[str, Any]:
    return {"order": order, "from": first, "shift": shift, "how": how, "why": why}


def _throughput(a: Run, b: Run) -> list[dict[str, Any]]:
    found = []
    for name in THROUGHPUT:
        one, two = series(a, name), series(b, name)
        if one is not None and two is not None:
            x, y = (float(np.nanmedian(s.value)) for s in (one, two))
            found.append({"metric": name, "unit": one.unit, "a": x, "b": y, "ratio": y / x if x else None})
    speeds = [_steps_a_second(r) for r in (a, b)]
    if speeds[0] and speeds[1]:
        found.append({"metric": "steps a second by the clock", "unit": "", "a": speeds[0], "b": speeds[1], "ratio": speeds[1] / speeds[0]})
    return found


def _steps_a_second(r: Run) -> float | None:
    s = series(r, "loss.train")
    if s is None or len(s) < 10:
        return None
    a_step = pace.pauses(s).a_step
    good = a_step > 0
    return float(1 / np.median(a_step[good])) if good.sum() >= 5 else None


def _warnings(a: Run, b: Run, differs: list[dict[str, Any]]) -> list[str]:
    """Why a lower number may not be better learning."""
    found = []
    for kind, said in (
        ("tokens", "Tokenization or sequence length differs ({0}): a loss a token is not the same quantity."),
        ("evaluation", "The evaluation differs ({0}): its losses do not compare."),
        ("data", "The data differ ({0}): a lower loss may be easier data."),
    ):
        keys = [
            d["key"]
            for d in differs
            if d["kind"] == kind
            and d["suspicion"] >= verdict_of_two.SUSPECT - 15
            and None not in (d["a"], d["b"])
            and not _CADENCE.search(d["key"])
        ]
        if keys:
            found.append(said.format(", ".join(keys[:4])))
    for name in ("loss.train", "loss.eval"):
        one, two = series(a, name), series(b, name)
        if one is None or two is None:
            continue
        if one.smoothing != two.smoothing:
            found.append(f"{name} is smoothed differently: {one.smoothing} in A, {two.smoothing} in B.")
        if one.unit and two.unit and one.unit != two.unit:
            found.append(f"{name} is in other units: {one.unit} in A, {two.unit} in B.")
        starts = [_start(s) for s in (one, two)]
        if name == "loss.train" and None not in starts and abs(starts[0] - starts[1]) > 0.3 and min(starts) > 0.5:  # type: ignore[operator, type-var]
            found.append(
                f"The first losses are {starts[0]:.3g} and {starts[1]:.3g}: before any learning they should agree, unless vocabulary, "
                "head, or the log's first step differ."
            )
    return found


def _start(s: Series) -> float | None:
    first = s.value[np.isfinite(s.value)]
    return float(first[0]) if len(first) and s.step.min() <= 2 * s.interval else None


def _curve(a: Run, b: Run, name: str) -> dict[str, Any]:
    one, two = series(a, name), series(b, name)
    assert one is not None and two is not None
    points = [m4(s.step[s.alive], s.value[s.alive], COLUMNS) for s in (one, two)]
    scale = "log" if one.scale == two.scale == "log" else "linear"
    return {"metric": name, "unit": one.unit, "scale": scale, "a": points[0], "b": points[1], "difference": difference.between(one, two)}
