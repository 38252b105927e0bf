"""Shared parts: how a case is described, run in its own process, checked against its twin, and written to truth.json."""

import hashlib
import importlib
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field

import numpy as np
from checks import judge

for v in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(v, "1")
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass
class Case:
    cause: str | None  # None: healthy
    check: object  # name of a check below, or a function (rec, twin) -> bool
    why: str  # what in the folder shows it
    first: int | None = None  # first step with the fault
    ident: str = "yes"
    accept: tuple = ()
    f: dict = field(default_factory=dict)  # code or data changes; never written to the run folder
    cfg: dict = field(default_factory=dict)  # honest settings, which the run may write down
    kill_after: float = 0  # the parent stops the run after so many seconds
    kill_signal: int = signal.SIGTERM
    launcher: str = ""  # last words of the job launcher in the console log
    plain: bool = False
    twin_no: int = 0  # which plain twin (seed) it belongs to


def plain():
    return Case(None, "fine", "trains well; nothing odd", plain=True)


def ok(why, cfg=None, f=None, check="fine", **k):
    return Case(None, check, why, cfg=cfg or {}, f=f or {}, **k)


def bad(cause, check, why, first=None, ident="yes", accept=(), f=None, cfg=None, **k):
    return Case(cause, check, why, first, ident, tuple(accept), f or {}, cfg or {}, **k)


def launches_of(f):
    """The faults of each launch: of the one, or of the two."""
    return [{**f, **f["launch1"]}, {**f, **f["launch2"]}] if "launch1" in f else [f]


def limit_memory(mb):
    """So many MiB above what is taken now; None for no limit."""
    if mb:
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + mb * 2**20,) * 2)


# ---- one run in a forked child, so that a crash, a kill or a memory limit stays there
TB_HIDE = ("common.py", "make.py")


def print_traceback(e):
    """The usual traceback without the frames of this generator's runner."""
    te = traceback.TracebackException.from_exception(e)
    seen = te
    while seen is not None:

        def own(fr):
            return fr.filename.startswith(HERE) and not fr.filename.endswith("proj.py")

        seen.stack = traceback.StackSummary.from_list(
            [
                fr
                for fr in seen.stack
                if os.path.basename(fr.filename) not in TB_HIDE
                and not (own(fr) and any(w in (fr.line or "") for w in ("f[", "f.get", "lambda", "case")))
            ]
        )
        for i, fr in enumerate(seen.stack):
            if fr.filename.startswith(HERE):
                seen.stack[i] = traceback.FrameSummary(
                    "/workspace/project/" + ("utils.py" if fr.filename.endswith("proj.py") else "train.py"),
                    fr.lineno,
                    fr.name.replace("fault", "step"),
                    line=fr.line,
                )
        seen = seen.__cause__ or seen.__context__
    sys.stdout.flush()
    sys.stderr.write("".join(te.format()))
    sys.stderr.flush()


PATHS = [
    (re.compile(rb"/[\w./-]*/lib/python3\.\d+/site-packages"), b"/opt/conda/lib/python3.11/site-packages"),
    (re.compile(rb"/[\w./-]*/lib/python3\.(\d+)/(?!site-packages)"), rb"/opt/conda/lib/python3.\1/"),
]


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed % 2**31)
    if "torch" in sys.modules:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)


def run_case(fam, case, out, seed):
    os.makedirs(out)
    res = tempfile.mktemp()
    t0 = time.time()
    pid = os.fork()
    if pid == 0:
        rc = 0
        rec = {"train": [], "evals": [], "dts": [], "seed": seed}
        try:
            os.chdir(out)
            fd = os.open(fam.get("console") or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(fd, 1), os.dup2(fd, 2)
            sys.stdout = os.fdopen(1, "w", buffering=1)
            sys.stderr = os.fdopen(2, "w", buffering=1)
            sys.argv = ["train.py"]
            seed_all(seed)
            fam["run"](case, rec)
        except SystemExit as e:
            rc = e.code if isinstance(e.code, int) else 1
        except BaseException as e:
            rec["error"] = repr(e)
            rec["tb"] = traceback.format_exc()
            print_traceback(e)
            rc = 1
        rec["rc"] = rc
        with open(res, "wb") as h:
            pickle.dump(rec, h)
        sys.stdout.flush()
        os._exit(rc)
    limit = case.kill_after or 120
    stopped = False
    while True:
        p, st = os.waitpid(pid, os.WNOHANG)
        if p:
            break
        if time.time() - t0 > limit:
            os.kill(pid, signal.SIGKILL if stopped else case.kill_signal)
            limit, stopped = limit + 5, True
        time.sleep(0.02)
    rec = {"train": [], "evals": [], "dts": []}
    if os.path.exists(res):
        rec = pickle.load(open(res, "rb"))
        os.unlink(res)
    rec["rc"] = os.waitstatus_to_exitcode(st)
    rec["secs"] = time.time() - t0
    if case.launcher and fam.get("console"):
        with open(os.path.join(out, fam["console"]), "a") as h:
            h.write(case.launcher.rstrip() + "\n")
    for d, _, names in os.walk(out):  # no machine paths in text files
        for n in names:
            p = os.path.join(d, n)
            if os.path.islink(p) and os.readlink(p).startswith("/"):  # points out of the folder
                full = os.readlink(p) == "/dev/full"
                os.unlink(p)
                if full:  # a write onto a full device leaves an empty file
                    open(p, "w").close()
            if n.endswith((".txt", ".log", ".out", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".err")) and os.path.isfile(p):
                b = open(p, "rb").read()
                c = b.replace(os.path.abspath(out).encode(), b"/workspace/run")
                for rx, to in PATHS:
                    c = rx.sub(to, c)
                c = c.replace(HERE.encode(), b"/workspace/project/")
                if c != b:
                    mt = os.stat(p)
                    open(p, "wb").write(c)
                    os.utime(p, (mt.st_atime, mt.st_mtime))
    return rec


def run_family(name, fam, out, seed, verbose=True):
    """Makes all runs of a family; drops those that did not do what was planned. Returns (truth entries, dropped)."""
    for m in fam.get("imports", ()):  # once here instead of in each child
        importlib.import_module(m)
    base = int(hashlib.sha1(f"{name}/{seed}".encode()).hexdigest()[:8], 16)
    rng = random.Random(base)
    cases = fam["cases"](rng)
    order = sorted(range(len(cases)), key=lambda i: not cases[i].plain)
    twins, truth, dropped = [], [], []
    for i in order:
        c = cases[i]
        rid = "r" + hashlib.sha1(f"{name}/{seed}/{i}".encode()).hexdigest()[:6]
        path = os.path.join(out, "runs", rid)
        shutil.rmtree(path, ignore_errors=True)
        n = len(twins) if c.plain else c.twin_no if c.twin_no else i % max(1, len(twins))
        n = min(n, len(twins)) if c.plain else n % max(1, len(twins))
        try:
            r = run_case(fam, c, path, base % 10**6 + n)
            t = r if c.plain else twins[n][1]
            good, note = judge(c.check, r, t)
            if c.plain:
                good = r["rc"] == 0 and r["final"] < r["init"] - fam.get("gain", 0.1) * abs(r["init"])
                note = f"init {r.get('init')} final {r.get('final')} {r.get('tb', '')[-1500:] if r['rc'] else ''}"
        except Exception as e:
            good, note, r = False, "generator: " + "".join(traceback.format_exception(e))[-400:], {}
        if c.plain and good:
            twins.append((rid, r))
        if verbose:
            print(
                f"{'ok  ' if good else 'DROP'} {name} {rid} {c.cause or 'healthy':24s} {r.get('secs', 0):5.1f}s {note} {'' if good or c.plain else '| ' + c.why[:60]}{'' if good or 'tb' not in r or c.plain else r['tb'][-900:]}",
                flush=True,
            )
        if not good:
            shutil.rmtree(path, ignore_errors=True)
            dropped.append({"family": name, "cause": c.cause or "healthy", "note": note, "why": c.why})
            if c.plain and not twins:
                return truth, dropped
            continue
        truth.append(
            {
                "id": rid,
                "family": name,
                "kind": "faulty" if c.cause else "healthy",
                "cause": c.cause,
                "accept": list(c.accept),
                "identifiable": c.ident,
                "from_what": c.why,
                "first_fault_step": c.first,
                "twin": None if c.plain or not twins else twins[n][0],
            }
        )
    return truth, dropped
