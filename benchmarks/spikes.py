"""Spikes found and classed on annotated real curves: `python benchmarks/spikes.py [--set DIR] [--fit] [--peers]`.

Prints the score of DIR/score.py for the detector's own judgement with run families left out in turn: the
classifier that judges a family was fitted without it. --peers adds published rules on the same series. --fit
writes the numbers that ship (forensics/spikes/class_model.py) and the table they were fitted on
(benchmarks/spikes_training.csv); without DIR it fits from that table.
"""

from __future__ import annotations

import argparse
import collections
import csv
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from spike_curves import curve  # noqa: E402
from spike_rules import RULES, events  # noqa: E402

from forensics.spikes import class_model, classes, excursions  # noqa: E402
from forensics.spikes.features import NAMES, features  # noqa: E402

TABLE, MODEL = HERE / "spikes_training.csv", HERE.parent / "forensics" / "spikes" / "class_model.py"
SIMULATED, THRESHOLD, PENALTY = 500, 0.35, 0.5
SOURCES = {
    "MEAN": "benchmarks/spikes.py --fit, logistic regression on candidates of annotated and simulated curves; docs/spikes.md has the scores.",
    "SCALE": "the standard deviations beside these means",
    "WEIGHT": "the weights of the standardized features",
}
GROUP_SIZE = 20  # rows of one label that a run family counts for in full
Row = dict[str, Any]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--set", type=Path, default=HERE.parents[1] / "shared" / "open" / "spikes")
    ap.add_argument("--fit", action="store_true")
    ap.add_argument("--peers", action="store_true")
    a = ap.parse_args()
    if not a.set.is_dir():
        print(f"{a.set} is not there: only the committed table can be fitted")
        write_model(fit(read_table())) if a.fit else None
        return
    data = Data(a.set)
    rows = data.rows() + simulated()
    report("this detector, families left out in turn", data, crossed(data, rows))
    if a.peers:
        for name, rule in RULES.items():
            report(name, data, {sid: events(rule, data.step[sid], data.value[sid], data.length(sid)) for sid in data.annotated})
    if a.fit:
        write_table(rows)
        write_model(fit(rows))
    x = np.exp(np.log(2 + 3 * np.arange(1, 100_001) ** -0.3) + 0.02 * np.random.default_rng(0).standard_t(4, 100_000))
    classes.judge(np.arange(1000), x[:1000], 1000)  # imports and threads are not the detector's
    begin = time.process_time()
    classes.judge(np.arange(len(x)), x, len(x))
    print(f"100 000 points: {time.process_time() - begin:.2f} s of CPU")


class Data:
    """The annotated set: series, annotations, and its own scorer."""

    def __init__(self, folder: Path) -> None:
        self.meta = {m["series_id"]: m for m in _jsonl(folder / "MANIFEST.jsonl")}
        self.annotated: dict[str, list[Row]] = collections.defaultdict(list)
        for x in _jsonl(folder / "annotations.jsonl"):
            self.annotated[x["series_id"]].append(x)
        self.step, self.value = {}, {}
        for sid in self.annotated:
            with (folder / self.meta[sid]["file"]).open() as f:
                lines = list(csv.DictReader(f))
            self.step[sid] = np.array([int(float(r["step"])) for r in lines])
            self.value[sid] = np.array([float(r["loss"]) if r["loss"] else np.nan for r in lines])
        spec = importlib.util.spec_from_file_location("score", folder / "score.py")
        assert spec is not None and spec.loader is not None
        self.score = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.score)

    def length(self, sid: str) -> float:
        return float(self.meta[sid].get("run_length_steps") or self.step[sid].max() - self.step[sid].min())

    def rows(self) -> list[Row]:
        """One row a candidate: spike, none, or '' (do not care: fragments, traps, annotations of low confidence)."""
        out: list[Row] = []
        for sid, notes in self.annotated.items():
            y, _ = excursions.scaled(self.value[sid])
            found = excursions.candidates(y)
            labels = self._labels(sid, notes, found)
            out += [
                {"group": self.meta[sid]["group"], "label": label, "features": f}
                for label, f in zip(labels, features(y, found), strict=True)
            ]
        return out

    def _labels(self, sid: str, notes: list[Row], found: list[excursions.Excursion]) -> list[str]:
        x, m = self.step[sid], self.meta[sid]
        tolerance = max(2 * m["interval"], 0.001 * m["span"])
        labels = ["none"] * len(found)
        for note in (n for n in notes if n["class"] != "healthy"):
            first, peak = note["start"], max(note["peak"], note["start"])
            last = note["end"] if note["end"] is not None else (x[-1] if note["class"] != "not_a_spike" else peak)
            near = [i for i, e in enumerate(found) if x[e.start] <= peak + tolerance and x[e.peak] >= first - tolerance]
            within = [i for i, e in enumerate(found) if x[e.start] <= last + tolerance and x[e.peak] >= first - tolerance]
            for i in within:
                labels[i] = "" if labels[i] == "none" else labels[i]
            if near and note["class"] != "not_a_spike" and note["confidence"] >= 0.5:
                best = min(
                    near,
                    key=lambda i: (
                        not (x[found[i].start] <= peak and x[found[i].peak] >= first),
                        abs(x[found[i].peak] - note["peak"]),
                        found[i].depth,
                    ),
                )
                labels[best] = "spike"
        return labels


def simulated() -> list[Row]:
    """Candidates of simulated curves: clearly visible ones are spikes, hardly visible ones not judged."""
    rng = np.random.default_rng(20260101)
    out: list[Row] = []
    for _ in range(SIMULATED):
        c = curve(rng)
        y, _ = excursions.scaled(c.value)
        found = excursions.candidates(y)
        for e, f in zip(found, features(y, found), strict=True):
            near = [p for p in c.planted if e.start - 3 <= p[1] and p[0] <= e.peak + 3]
            clear = [p for p in near if p[2] >= 8 and p[3] >= 0.015 and abs(p[1] - e.peak) <= 3]
            tail = [p for p in c.planted if p[1] <= e.start and e.start - p[1] < 200 and p[2] >= 4]
            label = "spike" if clear else "" if near or tail else "none"
            out.append({"group": "simulated", "label": label, "features": f})
    return out


def fit(rows: list[Row], without: str | None = None) -> Row:
    """Logistic regression on standardized features; a family with many candidates counts for less than it has."""
    from sklearn.linear_model import LogisticRegression

    used = [r for r in rows if r["label"] and r["group"] != without]
    x = np.array([r["features"] for r in used])
    spike = np.array([r["label"] == "spike" for r in used])
    count = collections.Counter((r["group"], r["label"]) for r in used)
    most = {"simulated": 4 * GROUP_SIZE}
    weight = np.array(
        [
            min(1.0, (most.get(r["group"], GROUP_SIZE) / count[r["group"], r["label"]]) ** 0.5)
            if r["group"] != "simulated"
            else min(1.0, 2 * GROUP_SIZE / count[r["group"], r["label"]])
            for r in used
        ]
    )
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    model = LogisticRegression(C=PENALTY, max_iter=2000).fit((x - mean) / scale, spike, sample_weight=weight)
    return {"MEAN": mean, "SCALE": scale, "WEIGHT": model.coef_[0], "INTERCEPT": float(model.intercept_[0]), "THRESHOLD": THRESHOLD}


def crossed(data: Data, rows: list[Row]) -> dict[str, list[Row]]:
    """Predictions for every series by a model that never saw its family."""
    shipped = {k: getattr(class_model, k) for k in ("MEAN", "SCALE", "WEIGHT", "INTERCEPT", "THRESHOLD")}
    models: dict[str, Row] = {}
    out: dict[str, list[Row]] = {}
    for sid in data.annotated:
        group = data.meta[sid]["group"]
        models.setdefault(group, fit(rows, group))
        for k, v in models[group].items():
            setattr(class_model, k, v)
        x = data.step[sid]
        out[sid] = [
            {
                "start": x[s.at.start],
                "peak": x[s.at.peak],
                "end": x[s.at.end] if s.at.end is not None and s.at.end < len(x) else None,
                "class": s.kind,
            }
            for s in classes.judge(x, data.value[sid], data.length(sid))
        ]
    for k, v in shipped.items():
        setattr(class_model, k, v)
    return out


def report(name: str, data: Data, predictions: dict[str, list[Row]]) -> None:
    healthy = {sid for sid, notes in data.annotated.items() if any(n["class"] == "healthy" for n in notes)}
    notes = {sid: n for sid, n in data.annotated.items() if sid not in healthy}
    s = data.score.summarise(data.score.evaluate(notes, healthy, predictions, data.meta))
    kinds = " ".join(f"{s['f1_' + k]:.2f}" for k in data.score.CLASSES)
    print(
        f"{name:42s} precision {s['precision']:.3f} recall {s['recall']:.3f} macro-F1 {s['macro_f1']:.3f} ({kinds}) "
        f"traps called a spike {s['trap_hits']}/{s['traps']} "
        f"false alarms a healthy series {s['false_alarms_per_healthy']:.2f}"
    )


def write_table(rows: list[Row]) -> None:
    with TABLE.open("w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["group", "label", *NAMES])
        out.writerows([r["group"], r["label"], *(f"{v:.5g}" for v in r["features"])] for r in rows if r["label"])


def read_table() -> list[Row]:
    with TABLE.open() as f:
        return [{"group": r["group"], "label": r["label"], "features": [float(r[n]) for n in NAMES]} for r in csv.DictReader(f)]


def write_model(model: Row) -> None:
    lines = [
        '"""Numbers of the logistic regression in classes, in the order of features.NAMES.',
        "",
        "Written by `python benchmarks/spikes.py --fit`; not to be edited by hand.",
        '"""',
        "",
    ]
    for name, source in SOURCES.items():
        lines += [
            f"# fitted: {source}",
            f"{name} = [",
            *(f"    {float(v):.6g},  # {n}" for v, n in zip(model[name], NAMES, strict=True)),
            "]",
        ]
    lines += [f"INTERCEPT = {model['INTERCEPT']:.6g}  # fitted: together with the weights"]
    lines += [f"THRESHOLD = {model['THRESHOLD']}  # of the odds; measured: docs/thresholds.md", ""]
    MODEL.write_text("\n".join(lines))


def _jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


if __name__ == "__main__":
    main()
