"""Healthy cases that several engines share, half of them ugly to look at."""

from common import ok


def healthy(cfg, odd):
    s, lr = cfg["steps"], cfg["lr"]
    return {
        "h_rough": ok("noisy loss: small batch", cfg={"bs": max(4, cfg["bs"] // 4), "lr": lr * 0.6}, check="fine:.2"),
        "h_drop": ok("dropout keeps the train loss above the eval loss", cfg={"dropout": 0.25}, check="fine:.2"),
        "h_restarts": ok("rate with warm restarts as configured", cfg={"schedule": "restarts"}),
        "h_onecycle": ok("one-cycle rate as configured", cfg={"schedule": "onecycle", "lr": lr * 1.5}),
        "h_wsd": ok("warmup, stable, decay as configured", cfg={"schedule": "wsd"}),
        "h_sgd": ok("large SGD rate that works", cfg={"opt": "sgd", "lr": 0.3}, check="fine:.25"),
        "h_accum": ok("accumulation done right", cfg={"accum": 2}),
        "h_outlier": ok(
            "single outliers of the loss from odd samples, no lasting effect", f={"odd": (odd, odd - s // 9)}, check="fine:.15"
        ),
        "h_pause": ok("pauses are evaluations and saves", f={"eval_sleep": 0.12}),
        "h_first": ok("slow first step (compilation, cache)", f={"first_sleep": 1.2}),
        "h_short": ok("short run", cfg={"steps": int(s * 0.7)}, check="fine:.25"),
        "h_clipped": ok("tight clipping that works", cfg={"clip": 0.3}),
        "h_mild": ok(
            "mild gap between train and eval at the end, normal for a small set", cfg={"pool": cfg.get("mild_pool", 1200)}, check="fine:.2"
        ),
        "h_noise": ok("task with a noise floor: loss plateaus where it must", check="fine"),
    }
