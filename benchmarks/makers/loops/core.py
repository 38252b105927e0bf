"""Families, run specifications, process launching and configuration files."""

import hashlib
import json
import os
import pathlib
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

import numpy as np
import torch
import yaml
from loop import Ext, Measures, fit


class Spec:
    """One planned run. cause None = healthy. ext is a function (h, rng) -> dict of Ext settings."""

    def __init__(
        self,
        cause,
        words="",
        h=None,
        ext=None,
        launches=None,
        step=None,
        accept=None,
        ident=None,
        what=None,
        check=None,
        twin=None,
        tag=None,
        seed=None,
        tail=None,
        limit_mb=None,
    ):
        self.cause, self.words, self.h, self.ext = cause, words, h or {}, ext
        self.launches, self.step, self.accept, self.ident, self.what = launches, step, accept, ident, what
        self.check, self.twin, self.tag, self.seed, self.tail, self.limit_mb = check, twin, tag, seed, tail, limit_mb


def OK(words="plain", **kw):
    return Spec(None, words, **kw)


def F(cause, **kw):
    return Spec(cause, **kw)


class Family:
    def __init__(
        self,
        name,
        h,
        sink,
        plan,
        task=None,
        train=None,
        console=None,
        config=None,
        names=None,
        hide=(),
        logs=(),
        tol=0.12,
        shell="python train.py",
        keep_ckpt=False,
    ):
        self.name, self.h, self.sink, self.task, self.plan = name, h, sink, task, plan
        self.train, self.console, self.config, self.names = train or self.default_train, console, config, names or {}
        self.hide, self.logs, self.tol, self.shell, self.keep_ckpt = set(hide), set(logs), tol, shell, keep_ckpt

    def default_train(self, folder, h, ext, meas, ckpt, k):
        torch.manual_seed(h["seed"])
        task = self.task(h)
        fit(task, h, self.sink(folder, h, k), ext, meas, folder, ckpt)

    def write_config(self, folder, h, k):
        inner = {
            "log_every",
            "eval_every",
            "window",
            "pickle_save",
            "shuffle",
            "split",
            "heavy_tail",
            "raw",
            "x_scale",
            "x_shift",
        } | self.hide
        c = {self.names.get(a, a): (list(b) if isinstance(b, tuple) else b) for a, b in h.items() if a not in inner}
        if self.config == "json":
            (folder / ("config.json" if k == 0 else f"config_{k}.json")).write_text(json.dumps(c, indent=2))
        elif self.config == "yaml":
            (folder / ("config.yaml" if k == 0 else f"config_{k}.yaml")).write_text(yaml.safe_dump(c))
        elif self.config == "argv":
            print("Namespace(" + ", ".join(f"{a}={b!r}" for a, b in c.items()) + ")", flush=True)


def spawn(fn, console, limit_mb=None):
    """Run fn in a forked process whose output goes to a file; returns the wait status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid, os.waitpid(pid, 0)[1]
    code = 0
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    try:
        fd = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        sys.stdout.reconfigure(line_buffering=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        torch.set_num_threads(1)
        if limit_mb:
            now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + limit_mb * 2**20, hard))
        fn()
    except SystemExit as e:
        code = e.code or 0
    except BaseException as e:
        code = 130 if isinstance(e, KeyboardInterrupt) else 1
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        traceback.print_exception(type(e), e, e.__traceback__.tb_next)
    finally:  # the child must never go on with the caller's work
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def shell_line(fam, spec, pid, status):
    """What the calling shell or the scheduler prints when a signal ends the program."""
    if spec.tail:
        return time.strftime(spec.tail) + "\n"
    if os.WIFSIGNALED(status):
        word = {15: "Terminated", 9: "Killed"}.get(os.WTERMSIG(status), "Stopped")
        return f"run.sh: line 7: {pid} {word:<23} {fam.shell}\n"
    return ""


def run_id(fam, index, base_seed):
    return "r" + hashlib.sha1(f"{fam.name}/{index}/{base_seed}".encode()).hexdigest()[:6]


def run_one(fam, spec, index, out, base_seed):
    rid = run_id(fam, index, base_seed)
    folder = out / "runs" / rid
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    scratch = pathlib.Path(tempfile.mkdtemp())
    seed = base_seed * 1000 + (spec.seed if spec.seed is not None else index % 2) + 1
    launches = spec.launches or [{}]
    measures, statuses = [], []
    for k, part in enumerate(launches):
        h = {**fam.h, "seed": seed, **spec.h, **part.get("h", {})}
        rng = np.random.default_rng(seed * 77 + index)
        make = part.get("ext", spec.ext)
        ext = Ext(**(make(h, rng) if make else {}))
        console = scratch / "console" if not fam.console else folder / (fam.console[k] if isinstance(fam.console, tuple) else fam.console)
        ckpt = str((folder if fam.keep_ckpt else scratch) / "last.pt")
        meas = Measures(str(scratch / f"m{k}"))

        def body():
            fam.write_config(folder, h, k)
            fam.train(folder, h, ext, meas, ckpt, k)

        pid, status = spawn(body, str(console), spec.limit_mb)
        statuses.append(status)
        line = shell_line(fam, spec, pid, status) if (status and k == len(launches) - 1) or os.WIFSIGNALED(status) else ""
        if line and fam.console:
            with open(console, "a") as f:
                f.write(line)
        if (scratch / f"m{k}").exists():
            measures.append(pickle.load(open(scratch / f"m{k}", "rb")))
        if status and not fam.console and (scratch / "console").exists():
            print(f"    [{fam.name}] {spec.cause}: " + (scratch / "console").read_text()[-300:])
    for f in folder.rglob("*"):
        if f.is_symlink():
            f.unlink()
        elif f.suffix in (".log", ".txt", ".out", ".err"):
            text = f.read_text(errors="replace")
            for path, public in (
                (os.path.dirname(os.path.abspath(__file__)), "/home/user/exp"),
                (sys.prefix, "/home/user/venv"),
                (sys.base_prefix, "/usr"),
            ):
                text = text.replace(path, public)
            f.write_text(text)
    m = {"loss": [], "eval": [], "dt": [], "gn": [], "done": False}
    for x in measures:
        for key in ("loss", "eval", "dt", "gn"):
            m[key] += x[key]
        m["done"] = x["done"]
    m["status"] = statuses
    m["console"] = "".join(p.read_text(errors="replace") for p in sorted(folder.glob("*")) if p.suffix in (".log", ".txt", ".out", ".err"))
    shutil.rmtree(scratch, ignore_errors=True)
    return rid, m
