"""A torch training loop for families whose logs have the form of well-known tool kits, accelerate or mlflow."""

import math
import os
import signal
import sys
import time

os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_ALLOW_FILE_STORE="true", GIT_PYTHON_REFRESH="quiet")
import proj
import torch
from cases import chosen
from common import launches_of, limit_memory
from data import stream
from nets import NETS, clean_loss, final_loss


def lr_at(c, s):
    w, n, k = c.get("warmup", 10), c["steps"], c.get("schedule", "cosine")
    if k == "onecycle":
        w = int(0.3 * n)
    if s < w:
        return c["lr"] * (s + 1) / w
    p = min(1.0, (s - w) / max(1, n - w))
    m = {
        "const": 1.0,
        "linear": 1 - p,
        "cosine": 0.5 * (1 + math.cos(math.pi * p)),
        "onecycle": 0.5 * (1 + math.cos(math.pi * p)),
        "restarts": 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (p * 3 % 1 if p < 1 else 1))),
        "wsd": 1.0 if p < 0.75 else (1 - p) / 0.25,
        "step": 0.1 ** (int(p * 3)),
    }[k]
    return c["lr"] * m


def optimizer(c, params):
    if c.get("opt") == "sgd":
        return torch.optim.SGD(params, lr=c["lr"], momentum=c.get("momentum", 0.0), weight_decay=c.get("wd", 0.0))
    return torch.optim.AdamW(params, lr=c["lr"], betas=(0.9, 0.999), eps=c.get("eps", 1e-8), weight_decay=c.get("wd", 0.0))


def flip_bit(net, bit, which=2):
    p = [q for q in net.parameters() if q.dim() > 1][-which if sum(q.dim() > 1 for q in net.parameters()) >= which else -1]
    with torch.no_grad():
        v = p.data.view(-1)[3:4].view(torch.int32)
        v ^= 1 << bit


def save(path, net, opt, step, f):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if "disk_full" in f and step >= f["disk_full"]:
        os.symlink("/dev/full", path)
        proj.write_file(path, "x" * 10**6)
    torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "step": step}, path)


def one_launch(task, c, f, rec, net, opt, log, accel=None):
    x, y, xe, ye = stream(task, c, f, rec["seed"])
    acc, bs = c.get("accum", 1), c["bs"]
    start, n = f.get("start", 0), c["steps"]
    micro = bs // acc
    cache = proj.SampleCache()
    opt.zero_grad()
    if f.get("frozen"):
        for p in list(net.parameters())[:-2]:
            p.requires_grad_(False)
    net.train()
    end = time.time()
    for s in range(start, n):
        if s == f.get("stop"):
            break
        lr = lr_at(c, (s - start if f.get("sched_reset") else s) * f.get("sched_mult", 1))
        if "lr_mult" in f and f["lr_mult"][0] <= s < f["lr_mult"][2]:
            lr *= f["lr_mult"][1]
        for g in opt.param_groups:
            g["lr"] = lr
        if "slow" in f and s >= f["slow"][0]:
            time.sleep(f["slow"][1])
        if f.get("first_sleep") and s == start:
            time.sleep(f["first_sleep"])
        if s == f.get("stall"):
            import threading

            proj.wait_for_shard(threading.Event())
        if f.get("leak_mb"):
            cache.decode(s, int(f["leak_mb"] * 2**20))
        if s == f.get("code_error"):
            proj.read_meta(s)
        data_t = time.time() - end
        tot, extra = 0.0, {}
        i0 = s * bs
        for k in range(acc):
            xb, yb = torch.from_numpy(x[i0 + k * micro : i0 + (k + 1) * micro]), torch.from_numpy(y[i0 + k * micro : i0 + (k + 1) * micro])
            if s in f.get("odd", ()) and xb.is_floating_point():
                xb = xb.clone()
                xb[0] *= 12
            loss, extra = net.loss(xb, yb, f)
            accel.backward(loss / acc) if accel else (loss / acc).backward()
            tot += loss.item() / acc
        ps = [p for p in net.parameters() if p.grad is not None]
        clip = c.get("clip", 1.0) or float("inf")
        gn = torch.nn.utils.clip_grad_norm_(ps, clip).item() if ps else 0.0
        opt.step()
        if not f.get("no_zero"):
            opt.zero_grad()
        if s == f.get("flip"):
            flip_bit(net, f["bit"])
        now = time.time()
        rec["train"].append((s, tot))
        rec["dts"].append(now - end)
        log.train(s + 1, dict(loss=tot, lr=lr, gnorm=gn, dt=now - end, data=data_t, **extra))
        end = now
        if s == f.get("kill"):
            sys.stdout.flush()
            log.flush()
            os.kill(os.getpid(), f.get("sig", signal.SIGTERM))
            time.sleep(5)
        ev = c.get("eval", 50)
        if (s + 1) % ev == 0 or s + 1 == n:
            if f.get("eval_sleep"):
                time.sleep(f["eval_sleep"])
            if "eval_to" in f and s >= f["eval_to"]:  # evaluation on another file from here on
                xq, yq = f["eval_set"](xe, ye)
            else:
                xq, yq = xe, ye
            net.eval()
            with torch.no_grad():
                le, d = net.loss(torch.from_numpy(xq), torch.from_numpy(yq), {k: v for k, v in f.items() if k in ("raw", "double_softmax")})
            net.train()
            rec["evals"].append((s + 1, le.item()))
            log.eval(s + 1, dict(loss=le.item(), **d))
            end = time.time()
        if (c.get("save") and (s + 1) % c["save"] == 0) or s + 1 == c.get("ckpt"):
            save(log.ckpt(s + 1), net, opt, s + 1, f)
            end = time.time()
    return xe, ye


def run(task, base, logger, case, rec):
    c, f = {**base, **case.cfg}, case.f
    limit_memory(f.get("rlimit_mb"))
    launches = launches_of(f)
    first_log = None
    for i, g in enumerate(launches):
        ci = {**c, **g.get("cfg", {})}
        torch.manual_seed(rec["seed"])
        net = NETS[task](ci, g)
        opt = optimizer(ci, net.parameters())
        if i == 0:
            xe, ye = stream(task, {**base, "steps": 1}, {}, rec["seed"])[2:]
            rec["init"] = clean_loss(net, xe, ye)
        public = {k: v for k, v in ci.items() if k not in ("hot", "wild_init", "mild_pool", "ckpt")}
        if i:
            st = torch.load(first_log.ckpt(ci["ckpt"]))
            net.load_state_dict(st["model"])
            if not g.get("lost"):
                opt.load_state_dict(st["optimizer"])
        if i == 0 and len(launches) == 2 and g.get("kill"):
            pid = os.fork()
            if pid == 0:
                one_launch(task, ci, g, rec, net, opt, logger(public, i, g))
                os._exit(0)
            os.waitpid(pid, 0)
            first_log = logger.__new__(logger)
            continue
        lg = logger(public, i, g)
        if i == 0:
            first_log = lg
        one_launch(task, ci, g, rec, net, opt, lg, getattr(lg, "accel", None))
        lg.end()
    rec["final"] = final_loss(net, xe, ye, f)


def family(task, cfg, logger, names, console=None, more=None):
    return {
        "cases": lambda rng: chosen(rng, cfg, names, more),
        "console": console,
        "imports": logger.imports + ["sklearn.datasets"],
        "run": lambda c, r: run(task, cfg, logger, c, r),
    }
