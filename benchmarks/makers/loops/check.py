"""Does a planted fault have its effect, is a healthy run healthy? Decided on raw values, against the healthy twin."""

import math

import numpy as np


def tail(m, n=2):
    v = [s for _, s in m["eval"][-n:]]
    return float(np.mean(v)) if v else math.nan


def train_tail(m):
    v = [s for _, s in m["loss"]]
    return float(np.mean(v[-max(5, len(v) // 10) :])) if v else math.nan


def train_head(m):
    return float(np.mean([s for _, s in m["loss"][:3]]))


def rel(m, t):
    """Loss of progress against the twin: 0 = as good, 1 = learnt nothing; the worse of evaluation and training."""
    out = []
    span = t["eval"][0][1] - tail(t) if len(t["eval"]) > 1 else 0
    start = train_head(t) - train_tail(t)
    s = tail(m)
    out.append(math.inf if not math.isfinite(s) else (s - tail(t)) / max(start * 0.5, span, 1e-6))
    s = train_tail(m)
    out.append(math.inf if not math.isfinite(s) else (s - train_tail(t)) / max(start, 1e-6))
    return out


def worse(m, t, spec, by=0.12):
    r = rel(m, t)
    return max(r) > by, f"rel eval {r[0]:.2f} train {r[1]:.2f}"


def worse_eval(m, t, spec, by=0.12):
    r = rel(m, t)
    return r[0] > by, f"rel eval {r[0]:.2f}"


def bump(m, t, spec, width=30):
    a = dict(m["loss"])
    b = dict(t["loss"])
    w = [s for s in a if spec.step <= s < spec.step + width]
    if not w:
        return False, "no steps after the fault"
    before = [a[s] for s in a if spec.step - 40 <= s < spec.step] or [1e9]
    top = max((a[s] if math.isfinite(a[s]) else math.inf) for s in w)
    k = min(6, len(w))
    runmean = max(np.convolve([a[s] if math.isfinite(a[s]) else 1e9 for s in w], np.ones(k) / k, "valid"))
    sd = float(np.std(before)) + 1e-9
    z1 = (top - np.mean(before)) / sd
    z2 = (runmean - np.mean(before)) / sd * math.sqrt(k)
    twin = [b[s] for s in w if s in b] or [0]
    ok = (z1 > 5 or z2 > 8) and top > max(twin)
    return ok, f"bump z {z1:.1f} mean-z {z2:.1f}"


def nonfinite(m, t, spec):
    bad = [s for s, v in m["loss"] if not math.isfinite(v)]
    bad_e = [s for s, v in m["eval"] if not math.isfinite(v)]
    return bool(bad or bad_e), f"first non-finite {bad[:1] or bad_e[:1]}"


def ended(m, t, spec):
    return any(m["status"]) or not m["done"], f"status {m['status']} {m['console'].strip()[-90:]!r}"


def slower(m, t, spec):
    k = spec.step - m["loss"][0][0]
    a, b = np.mean(m["dt"][5:k]), np.mean(m["dt"][k:])
    return b > 1.7 * a, f"dt {a * 1e3:.1f} -> {b * 1e3:.1f} ms"


def turned_up(m, t, spec):
    v = [s for _, s in m["eval"]]
    best, start = min(v), v[0]
    return v[-1] > best + 0.25 * max(start - best, 0.2 * best) and train_tail(m) < 0.6 * train_head(m), f"best {best:.3f} last {v[-1]:.3f}"


def better_eval(m, t, spec):
    return tail(m) < 0.8 * tail(t) or tail(m) - tail(t) < -0.12 * abs(tail(t)), f"eval {tail(m):.3f} twin {tail(t):.3f}"


def eval_jump(m, t, spec):
    a = [v for s, v in m["eval"] if s < spec.step]
    b = [v for s, v in m["eval"] if s >= spec.step]
    if len(a) < 2 or not b:
        return False, "too few"
    d = abs(b[0] - a[-1])
    return d > 3 * abs(a[-1] - a[-2]) and d > 0.08 * abs(a[-1]), f"eval {a[-1]:.3f} -> {b[0]:.3f}"


def always(m, t, spec):
    return True, "by construction"


def bump_or_worse(m, t, spec):
    a, b = bump(m, t, spec), worse(m, t, spec)
    return a[0] or b[0], a[1] + " " + b[1]


def slightly(m, t, spec):
    a, b = bump(m, t, spec), worse(m, t, spec, 0.03)
    return a[0] or b[0], a[1] + " " + b[1]


def repeated(m, t, spec):
    s = [a for a, _ in m["loss"]]
    n = len(s) - len(set(s))
    return n >= 8, f"{n} steps twice"


CHECK = {  # `worse` where a cause does not stand here
    **dict.fromkeys(["bad_data_batch", "bad_data_pocket", "data_distribution_shift"], bump),
    **dict.fromkeys(["lr_jump", "optimizer_state_lost", "silent_data_corruption", "batch_size_changed"], bump_or_worse),
    **dict.fromkeys(["tokenizer_mismatch", "eval_mode_missing"], worse_eval),
    **dict.fromkeys(["nan_from_sample", "nan_from_layer"], nonfinite),
    **dict.fromkeys(["labels_all_masked", "data_order_restarted", "logger_artefact"], always),
    **dict.fromkeys(["out_of_memory", "hang", "disk_full", "stopped_from_outside", "code_error"], ended),
    "overfitting": turned_up,
    "train_eval_leakage": better_eval,
    "eval_changed": eval_jump,
    "lr_schedule_reset": slightly,
    "throughput_collapse": slower,
    "crash_and_restart": repeated,
}


def healthy(m, t, spec, tol):
    bad = [v for _, v in m["loss"] if not math.isfinite(v)]
    if bad or not m["done"] or m["status"][-1]:
        return False, f"non-finite {len(bad)} done {m['done']} status {m['status']}"
    e = [v for _, v in m["eval"]]
    if len(e) > 3 and tail(m) > min(e) + 0.2 * max(e[0] - min(e), 1e-9) + 0.1 * abs(min(e)):
        return False, f"evaluation turned up: best {min(e):.3f} last {tail(m):.3f}"
    if m is t:
        v = [s for _, s in m["eval"]]
        drop = v[0] - tail(m) if len(v) > 1 else 0
        return train_tail(m) < train_head(
            m
        ) or drop > 0, f"train {train_head(m):.3f} -> {train_tail(m):.3f} eval {v[0]:.3f} -> {tail(m):.3f}"
    r = rel(m, t)
    return r[0] < tol, f"rel eval {r[0]:.2f} train {r[1]:.2f}"


def judge(m, t, spec, tol):
    if spec.check:
        return spec.check(m, t, spec)
    if spec.cause is None:
        return healthy(m, t, spec, tol)
    return CHECK.get(spec.cause, worse)(m, t, spec)
