"""Make small real training runs with known faults: python make.py OUT [--family F]... [--seed N] [--healthy N] [--faulty N]"""

import argparse
import collections
import fcntl
import importlib
import json
import os
import pathlib
import shutil
import time
import traceback

for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(v, "1")
import check  # noqa: E402
import core  # noqa: E402
import torch  # noqa: E402
import truths  # noqa: E402

torch.set_num_threads(1)


MODULES = [
    "chars",
    "words",
    "sentences",
    "digits",
    "unsupervised",
    "tables",
    "recommender",
    "graph_numpy",
    "density",
    "speech",
    "rl",
    "half",
    "ranks",
    "loader",
]


def families():
    return [family for name in MODULES for family in importlib.import_module(name).FAMILIES]


def some(idx, n):
    return idx if n is None or n >= len(idx) else [idx[k * len(idx) // n] for k in range(n)]


def make_family(fam, out, seed, report, save, healthy=None, faulty=None, keep=()):
    good = [i for i, s in enumerate(fam.plan) if s.cause is None]
    order = good[:2] + some(good[2:], healthy and healthy - 2) + some([i for i, s in enumerate(fam.plan) if s.cause], faulty)
    order = [
        i for i in order if fam.plan[i].words == "plain" or fam.plan[i].tag or core.run_id(fam, i, seed) not in {r["id"] for r in keep}
    ]
    again = {core.run_id(fam, i, seed) for i in order}
    done, rows = {}, [r for r in keep if r["id"] not in again]
    for i in order:
        spec = fam.plan[i]
        try:
            rid, m = core.run_one(fam, spec, i, out, seed)
        except Exception:
            traceback.print_exc()
            report["failed"].append([fam.name, i, spec.cause])
            continue
        plain = [
            j for j in done if fam.plan[j].cause is None and (fam.plan[j].tag == spec.twin if spec.twin else fam.plan[j].words == "plain")
        ]
        same = [j for j in plain if j % 2 == i % 2] or plain
        twin = same[0] if same and not (spec.cause is None and spec.words == "plain") else None
        ref = done[twin][1] if twin is not None else m
        try:
            ok, why = check.judge(m, ref, spec, fam.tol)
        except Exception as e:
            ok, why = False, f"check failed: {e!r}"
        print(f"{'ok  ' if ok else 'DROP'} {fam.name:32} {i:2} {rid} {spec.cause or 'healthy/' + spec.words:36} {why}", flush=True)
        if not ok:
            shutil.rmtree(out / "runs" / rid)
            report["dropped"].append([fam.name, i, spec.cause or "healthy: " + spec.words, why])
            continue
        done[i] = (rid, m)
        accept, ident, what = truths.describe(fam, spec)
        rows.append(
            {
                "id": rid,
                "family": fam.name,
                "kind": "faulty" if spec.cause else "healthy",
                "cause": spec.cause,
                "accept": accept,
                "identifiable": ident,
                "from_what": what,
                "first_fault_step": spec.step if spec.cause else None,
                "twin": done[twin][0] if twin is not None else None,
            }
        )
        save(rows)
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--family", action="append")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--missing", action="store_true", help="only runs that truth.json lacks, and the plain twins")
    ap.add_argument("--healthy", type=int, help="at most so many healthy runs a family")
    ap.add_argument("--faulty", type=int, help="at most so many faulty runs a family, spread over its plan")
    a = ap.parse_args()
    (a.out / "runs").mkdir(parents=True, exist_ok=True)
    path = a.out / "truth.json"
    for fam in families():
        if a.family and fam.name not in a.family:
            continue
        t0, c0, report = time.time(), os.times(), {"failed": [], "dropped": []}

        def save(rows):
            with open(a.out / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                old = json.loads(path.read_text()) if path.exists() else []
                path.write_text(json.dumps([r for r in old if r["family"] != fam.name] + rows, indent=1))

        keep = [r for r in json.loads(path.read_text()) if r["family"] == fam.name] if a.missing and path.exists() else []
        rows = make_family(fam, a.out, a.seed, report, save, a.healthy, a.faulty, keep)
        c1 = os.times()
        log = a.out / "report.json"
        rep = json.loads(log.read_text()) if log.exists() else {}
        rep[fam.name] = {**report, "made": len(rows), "wall_s": round(time.time() - t0, 1), "cpu_s": round(sum(c1[:4]) - sum(c0[:4]), 1)}
        log.write_text(json.dumps(rep, indent=1))
        n = collections.Counter(r["kind"] for r in rows)
        print(f"== {fam.name}: {dict(n)} in {rep[fam.name]['wall_s']} s", flush=True)


if __name__ == "__main__":
    main()
