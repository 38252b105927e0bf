"""python make.py OUT [--family F]... [--seed N]: makes the runs and OUT/truth.json. Without --family: all of them."""

import argparse
import importlib
import json
import os
import time
import warnings

import common

MODULES = ["hf", "pl", "scripts", "keras_fam", "classic", "gbm", "rl"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--family", action="append")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    os.makedirs(os.path.join(a.out, "runs"), exist_ok=True)
    out = os.path.abspath(a.out)
    tp, dp = os.path.join(out, "truth.json"), os.path.join(out, "..", "dropped.json")
    for m in MODULES:
        src = open(os.path.join(common.HERE, m + ".py")).read()
        if a.family and not any(f'"{f}"' in src for f in a.family):  # do not pay for imports of other modules
            continue
        fams = importlib.import_module(m).FAMILIES
        for name, fam in fams.items():
            if a.family and name not in a.family:
                continue
            t0 = time.process_time(), time.time(), os.times()
            truth, dropped = common.run_family(name, fam, out, a.seed)
            for path, new in ((tp, truth), (dp, dropped)):
                old = json.load(open(path)) if os.path.exists(path) else []
                json.dump([x for x in old if x["family"] != name] + new, open(path, "w"), indent=1)
            t1 = os.times()
            cpu = t1.user + t1.system + t1.children_user + t1.children_system - sum(t0[2][:4])
            print(f"== {name}: {len(truth)} runs, {len(dropped)} dropped, cpu {cpu:.0f} s, wall {time.time() - t0[1]:.0f} s", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*fork.*")
    main()
