"""Cases made by hand for the tests of the reports: one for each thing a page must be able to say."""

from __future__ import annotations

import math
import random
from typing import Any

from forensics.certainty import certainty

Case = dict[str, Any]
START = 1795225692  # 2026-11-21T01:48:12Z
HOSTILE = (
    "</script><!--<script><img src=x onerror=alert(1)>\"'`&{{7*7}} \u202egpj.exe \x1b[31mred\x07 \u2028 "
    "<b>bold</b> | [a](javascript:alert(1))"
)
REPLAY = "forensics replay runs/llm-124m-a --adapter train.py --steps 400:432"


def loss_at(step: int, noise: random.Random, floor: float = 1.8) -> float:
    return round((floor + 2.4 * math.exp(-step / 60)) * math.exp(noise.gauss(0, 0.03)), 5)


def series(metric: str, tag: str, unit: str, scale: str, *attempts: list[list[Any]]) -> Case:
    told = [{"attempt": i, "points": attempt} for i, attempt in enumerate(attempts)]
    return {"metric": metric, "tag": tag, "unit": unit, "scale": scale, "lives": told}


def clock(*spans: tuple[int, int, int]) -> list[Case]:
    """9 seconds a step: (first step, last step, seconds at the first) of each attempt."""
    ends = [[[first, at], [last, at + 9 * (last - first)]] for first, last, at in spans]
    return [{"attempt": i, "points": points} for i, points in enumerate(ends)]


def attempt(index: int, first: int, last: int, started: str | None, ended: str | None, why: str) -> Case:
    return {"index": index, "steps": [first, last], "started": started, "ended": ended, "why": why}


def check(id: str, status: str, note: str = "", smallest: str = "") -> Case:
    return {"id": id, "status": status, "note": note, "smallest_effect": smallest}


def blind(what: str, why: str, would_tell: str) -> Case:
    return {"what": what, "why": why, "would_tell": would_tell}


def clue(text: str, weight: float, *findings: str, part: str = "log") -> Case:
    return {"text": text, "weight": weight, "findings": list(findings), "part": part}


def cause(id: str, title: str, probability: float, clues: list[Case], steps: list[int | None], **more: Any) -> Case:
    plain = {"id": id, "title": title, "probability": probability, "steps": steps, "clues": clues, "settle": ""}
    return plain | {"interventions": [], "score": sum(c["weight"] for c in clues)} | more


def unknown(probability: float) -> Case:
    yardstick = clue("Every other cause is weighed against this one.", 0.0)
    return cause("unknown", "Something not on the list", probability, [yardstick], [None, None])


def ranked(*causes: Case) -> list[Case]:
    return [c | {"rank": i, "certainty": certainty(c["probability"], i == 1)} for i, c in enumerate(causes, 1)]


def finding(id: str, title: str, steps: list[int | None], severity: str, *evidence: Case, **more: Any) -> Case:
    plain = {"id": id, "kind": id.rpartition("-")[0], "title": title, "steps": steps, "severity": severity}
    return plain | {"times": [None, None], "facts": {}, "evidence": list(evidence)} | more


def window(title: str, where: str, first: int, last: int, *attempts: list[list[Any]], **more: Any) -> Case:
    data = series("loss.train", "", "nats/token", "log", *([p for p in attempt if first <= p[0] <= last] for attempt in attempts))
    data |= {"window": [first, last], "marks": [], "bands": []} | more
    return {"kind": "series", "title": title, "where": where, "data": data}


def spiked(start: Any, end: Any, kind: Any, sure: float, height: float, cost: int, *batches: Case) -> Case:
    plain = {"metric": "loss.train", "start": start, "peak": start, "end": end, "class": kind, "height": height}
    return plain | {"noise_sigmas": 10.0, "class_probability": {kind: sure}, "censored": False, "cost_steps": cost,
                    "batches": list(batches)}  # fmt: skip


def source(path: str, format: str, size: int, sha: str | None) -> Case:
    return {"path": path, "format": format, "bytes": size, "records": 600, "sha256": sha}


def base(id: str, verdict: str, answer: str, last: int = 599) -> Case:
    whole = attempt(0, 0, last, "2026-11-21T01:48:12Z", "2026-11-21T03:18:03Z", "finished")
    logged = {"tag": "train/loss", "points": last + 1, "unit": "nats/token", "smoothing": "none"}
    return {
        "schema": 1,
        "tool": {"name": "forensics", "version": "0.1.0", "command": ["forensics", "analyze", f"runs/{id}"]},
        "run": {
            "id": id, "path": f"runs/{id}", "step_origin": 0, "siblings": [], "framework": "hf-trainer",
            "status": "finished", "steps": [0, last], "attempts": [whole], "metrics": {"loss.train": logged},
            "records": {"scalars": 2400, "events": 3, "batches": 600, "checkpoints": 6, "lost": 0},
        },
        "verdict": verdict,
        "answer": answer,
        "hypotheses": [], "spikes": [], "findings": [], "culprits": [], "replay": None, "gaps": [],
        "checks": [
            check("loss_spike", "clear", "600 points", "a jump of 0.31 nats over one step"),
            check("nonfinite", "clear", "every value is finite", "one NaN"),
            check("divergence", "clear", "", "a rise of 0.1 nats over 100 steps"),
            check("grad_spike", "clear", "", "a norm 4 times the median"),
            check("rank_disagreement", "cannot_tell", "only rank 0 logged"),
            check("memory", "error", "ValueError in the detector: bad unit"),
        ],
        "blind_spots": [
            blind("loss_scale", "not logged", "whether fp16 skipped steps"),
            blind("sample ids", "no manifest and no seed in the config", "which samples a batch held"),
        ],
        "sources": [
            source("metrics.jsonl", "JSON lines", 69554, "c069a0775ae466d0" * 4),
            source("checkpoints/step_300.pt", "torch zip", 857313, None),
        ],
        "timeline": {"series": [], "marks": [], "bands": [], "clock": clock((0, last, START))},
    }  # fmt: skip


def spike() -> Case:
    """Two attempts over the same bad batch; the cause is clear, replay has not been run."""
    noise = random.Random(1)
    answer = "Step 418 trained on a bad batch: the loss jumped from 1.81 to 4.06 nats and was back after 13 steps."
    case = base("llm-124m-a", "unhealthy", answer)
    bump = {418: 4.06, 419: 3.3, **{420 + i: 2.8 - 0.08 * i for i in range(11)}}
    attempts = [range(452), range(300, 600)]
    loss = [[[s, bump.get(s) or loss_at(s, noise)] for s in attempt] for attempt in attempts]
    norm = [[[s, round(abs(noise.gauss(0.8, 0.1)) * (6 if s == 418 else 1), 4)] for s in attempt] for attempt in attempts]
    rate = [[[s, 6e-4 * min(1, s / 50) * (0.5 + 0.5 * math.cos(math.pi * s / 600))] for s in attempt[::5]] for attempt in attempts]
    evaluated = [[[s, 1.9 + 2.4 * math.exp(-s / 60)] for s in attempt[::100]] for attempt in attempts]
    speed = [[[s, 41000 + noise.gauss(0, 300)] for s in attempt[::3]] for attempt in attempts]
    case["run"] |= {
        "attempts": [
            attempt(0, 0, 451, "2026-11-21T01:48:12Z", "2026-11-21T02:56:00Z", "SIGTERM at step 451"),
            attempt(1, 300, 599, "2026-11-21T03:01:30Z", "2026-11-21T03:46:21Z", "finished"),
        ],
        "last_healthy_checkpoint": {"step": 400, "path": "checkpoints/step_400.pt"},
        "records": case["run"]["records"] | {"lost": 1},
    }
    saved = [{"step": s, "label": f"step_{s}.pt", "kind": "checkpoint"} for s in range(100, 600, 100)]
    case["timeline"] = {
        "series": [
            series("loss.train", "train/loss", "nats/token", "log", *loss),
            series("loss.eval", "eval/loss", "nats/token", "log", *evaluated),
            series("lr", "train/learning_rate", "", "linear", *rate),
            series("grad.norm", "train/grad_norm", "", "log", *norm),
            series("tput.tokens", "perf/tokens_per_second", "tokens/s", "linear", *speed),
            series("mem.alloc", "perf/memory", "GB", "linear", [[s, 61.2] for s in range(0, 600, 10)]),
        ],
        "marks": [{"step": 300, "label": "restart from step_300.pt", "kind": "restart"}, *saved],
        "bands": [{"from": 418, "to": 431, "kind": "fast"}, {"from": 505, "to": 506, "kind": "not_a_spike"}],
        "clock": clock((0, 451, START), (300, 599, START + 4398)),
    }
    batch = {"step": 418, "samples": [11, 52, 4566], "shard": "web-0031", "how": "recorded", "confidence": 0.9}
    case["spikes"] = [spiked(418, 431, "fast", 0.97, 2.25, 13, batch), spiked(505, 506, "not_a_spike", 0.9, 0.2, 0)]
    log = {
        "kind": "text", "title": "The log says", "where": "train.log line 912",
        "data": {"lines": ["received SIGTERM, stopping at step 451", "resumed from checkpoints/step_300.pt"]},
    }  # fmt: skip
    rows = [[52, 6.45, "R!0 ;8(*rr8"], [11, 3.1, "the cat"], *([i, 1.9, "plain"] for i in range(14))]
    samples = {
        "kind": "table", "title": "Samples of the batch, highest loss first", "where": "data_order.jsonl line 419",
        "data": {"columns": ["sample", "loss", "text"], "rows": rows},
    }  # fmt: skip
    marks, bands = [{"step": 418, "label": "4.06 at 418", "kind": "fast"}], case["timeline"]["bands"]
    near = window("Training loss, both attempts", "metrics.jsonl line 419", 380, 470, *loss, marks=marks, bands=bands)
    case["findings"] = [
        finding("restart-300", "The run went back from step 451 to 300 and did 152 steps again", [300, 451], "warning",
                log, times=["2026-11-21T03:01:30Z", "2026-11-21T03:24:09Z"], facts={"steps_again": 152}),
        finding("loss_spike-418", "The loss jumped from 1.81 to 4.06 at step 418", [418, 431], "critical",
                near, samples, times=["2026-11-21T02:50:54Z", "2026-11-21T02:52:51Z"],
                facts={"usual": 1.812, "peak": 4.06, "noise_width": 0.0937}),
        finding("grad_spike-418", "The gradient norm was 6 times its usual value at step 418", [418, 418], "warning"),
        finding("throughput-179", "Three steps took about twice as long", [179, 540], "info"),
    ]  # fmt: skip
    case["hypotheses"] = ranked(
        cause("bad_data_batch", "Bad data batch", 0.86, [
            clue("Rarer than causes that nobody has listed.", -6.0),
            clue("The loss jumps within one step and is back in 13.", 9.0, "loss_spike-418"),
            clue("Both attempts jump at the same step, on the same samples.", 17.0, "restart-300", "loss_spike-418"),
            clue("The gradient norm rose only 6 times.", -4.0, "grad_spike-418"),
        ], [418, 418], settle=REPLAY, interventions=[
            "Keep the run: the damage is over after 13 steps.", "Leave sample 52 out with `--skip-samples 52`.",
            "Look through shard web-0031 for more of the kind.", "Reject samples above 5.5 nats in the loader."]),
        unknown(0.09),
        cause("lr_too_high", "Learning rate too high", 0.0492, [
            clue("Common at this size.", 2.0), clue("One jump, at no peak of the rate.", -4.0, "loss_spike-418"),
        ], [418, 431], settle=REPLAY, interventions=["Halve the peak rate."]),
        cause("silent_data_corruption", "Silent data corruption", 0.0008, [
            clue("It came back in the second attempt.", -20.0, "restart-300")], [418, 418]),
    )  # fmt: skip
    case["culprits"] = [{"step": 418, "samples": [52], "how": "recorded", "confidence": 0.9}]
    case["gaps"] = [{"path": "metrics.jsonl", "at": "line 453", "what": "record cut off in the middle", "lost": 1}]
    case["checks"][0] = check("loss_spike", "fired", "step 418")
    return case


def nan() -> Case:
    noise = random.Random(2)
    answer = "The loss is NaN from step 331 on: the loss scale had fallen to 1 and every step was skipped."
    case = base("vit-fp16", "unhealthy", answer, 400)
    case["run"]["status"] = "crashed"
    del case["blind_spots"][0]
    loss: list[list[Any]] = [[s, loss_at(s, noise) if s < 331 else "NaN"] for s in range(401)]
    scale = [[s, 65536.0 if s < 300 else 65536.0 / 2 ** min(16, (s - 300) // 2)] for s in range(401)]
    norm = [[s, round(math.exp(s / 90), 3) if s < 320 else "Infinity"] for s in range(401)]
    case["timeline"] |= {
        "series": [series("loss.train", "loss", "nats", "log", loss), series("loss_scale", "scale", "", "log", scale),
                   series("grad.norm", "grad_norm", "", "log", norm)],
        "marks": [{"step": 331, "label": "first NaN", "kind": "nonfinite"}],
        "bands": [{"from": 300, "to": None, "kind": "non_recovering"}],
    }  # fmt: skip
    near = window("Training loss", "trainer_state.json line 3310", 300, 360, loss)
    title = "The loss is NaN from step 331 to the end"
    case["findings"] = [finding("nonfinite-331", title, [331, None], "critical", near, facts={"values": 70})]
    overflow = [clue("Rarer than causes that nobody has listed.", -5.0),
                clue("The loss scale fell to 1 within 32 steps.", 14.0, "nonfinite-331")]  # fmt: skip
    layer = [clue("Every batch gives NaN from there on.", 8.2, "nonfinite-331")]
    case["hypotheses"] = ranked(
        cause("fp16_overflow", "Overflow in fp16", 0.48, overflow, [300, None],
              settle="forensics replay runs/vit-fp16 --adapter train.py --steps 295:335",
              interventions=["Go back to step 250 and train in bf16."]),
        cause("nan_from_layer", "NaN from a layer", 0.4, layer, [331, None],
              settle="forensics checkpoint runs/vit-fp16/step_250.pt"),
        unknown(0.12),
    )  # fmt: skip
    return case


def healthy() -> Case:
    noise = random.Random(3)
    answer = "Nothing is wrong with steps 0 to 599: the loss fell from 4.2 to 1.8 without a jump, and 4 checks are clear."
    case = base("cifar-resnet", "healthy", answer)
    loss = [[s, loss_at(s, noise)] for s in range(600)]
    case["timeline"]["series"] = [series("loss.train", "loss", "nats", "log", loss)]
    case["hypotheses"] = ranked(unknown(1.0))
    return case


def inconclusive() -> Case:
    case = base("scratch-7", "inconclusive", "Only 6 loss values were logged: too few to tell a jump from noise.", 500)
    case["run"]["status"] = "unknown"
    loss = [[s, 3.0 - s / 400] for s in range(0, 501, 100)]
    case["timeline"] |= {"series": [series("loss.train", "Loss", "", "log", loss)], "clock": []}
    case["checks"] = [check("loss_spike", "cannot_tell", "6 points; 30 are needed"), check("nonfinite", "clear", "", "one NaN")]
    case["blind_spots"].insert(0, blind("loss.train", "logged every 100 steps", "spikes shorter than 200 steps"))
    return case


def sibling(id: str, verdict: str | None, answer: str = "", ended: str | None = None) -> Case:
    command = f"forensics analyze runs --run {id}"
    told = {"id": id, "path": f"runs/{id}", "verdict": verdict, "status": "finished" if verdict else None, "answer": answer}
    return told | {"ended": ended, "command": command}


def several() -> Case:
    """One of four runs, the worst."""
    case = spike()
    case["run"]["siblings"] = [
        sibling("llm-124m-b", "inconclusive", "Cannot tell whether this run is healthy: loss.train was not logged."),
        sibling("llm-124m-c", "healthy", "The run finished. No trouble in what was logged: 31 of 38 checks are clear, 7 had no data."),
        sibling("llm-124m-d", "healthy", "The run finished. No trouble in what was logged: 30 of 38 checks are clear, 8 had no data."),
    ]
    return case


def bare() -> Case:
    """Next to nothing, as a damaged or foreign case file may be."""
    return {"schema": 1, "verdict": None, "answer": None, "run": {"id": None, "steps": [None, None]}, "hypotheses": None}


def hostile() -> Case:
    """The replayed case with every text replaced by one that tries to break out."""
    keep = {"verdict", "kind", "class", "severity", "status", "scale", "metric", "part", "id", "times", "started", "ended"}

    def poison(x: Any, key: str = "") -> Any:
        if isinstance(x, dict):
            return {k: poison(v, k) for k, v in x.items()}
        if isinstance(x, list):
            return [poison(v, key) for v in x]
        return HOSTILE if isinstance(x, str) and key not in keep else x

    case: Case = poison(replayed())
    case["run"]["id"] = HOSTILE
    case["run"]["siblings"] = [HOSTILE, "\ud800 half a pair", 7, [], dict.fromkeys(sibling("", ""), HOSTILE)]
    case["findings"][0] |= {"id": HOSTILE, "kind": HOSTILE, "facts": {HOSTILE: HOSTILE}}
    case["hypotheses"][0]["clues"][0]["findings"] = [HOSTILE]
    case["timeline"]["marks"].append({"step": 200, "label": HOSTILE, "kind": '"><script>alert(1)</script>'})
    case["timeline"]["bands"].append({"from": 50, "to": 60, "kind": HOSTILE})
    case["timeline"]["series"][1]["metric"] = HOSTILE
    case["spikes"][0]["class"] = HOSTILE
    return case


def crowded() -> Case:
    """200 findings, 20 attempts, 30 causes, 40 metrics, 60 spikes, 150 other runs."""
    noise = random.Random(5)
    answer = "The learning rate is too high: 60 spikes between steps 1000 and 19900, and the last did not recover."
    case = base("pretrain-70b", "unhealthy", answer, 20000)
    starts = [i * 1000 for i in range(20)]

    def loss(step: int) -> float:
        bump = 1.5 * noise.random() if step % 330 < 10 and step > 1000 else 0
        return round(2 + math.exp(-step / 3000) + bump + noise.gauss(0, 0.02), 5)

    points = [[s, loss(s)] for s in range(0, 20000, 10)]
    attempts = [[p for p in points if s <= p[0] <= s + 1200] for s in starts]
    experts = [[[s, noise.random()] for s in range(0, 20000, 100)] for _ in range(39)]
    kinds = ["fast", "slow", "non_recovering", "not_a_spike"]
    bands = [{"from": 1000 + 315 * i, "to": 1000 + 315 * i + 60 * (i % 4), "kind": kinds[i % 4]} for i in range(60)]
    case["run"]["attempts"] = [attempt(i, s, min(s + 1200, 20000), None, None, "node failure") for i, s in enumerate(starts)]
    case["run"]["siblings"] = [sibling(f"pretrain-70b-{i}", "unhealthy", answer) for i in range(150)]
    case["timeline"] |= {
        "series": [series("loss.train", "lm loss", "nats/token", "log", *attempts),
                   *(series(f"other/expert_{i}", f"expert_{i}", "", "linear", e) for i, e in enumerate(experts))],
        "marks": [{"step": s, "label": f"restart {i}", "kind": "restart"} for i, s in enumerate(starts[1:], 1)],
        "bands": bands,
    }  # fmt: skip
    case["spikes"] = [spiked(b["from"], b["to"], b["kind"], 0.9, 0.8, 20) for b in bands]
    for i in range(200):
        kind, severity = ("loss_spike", "grad_spike", "throughput")[i % 3], ("warning", "warning", "info")[i % 3]
        shown = window("Training loss", f"log.txt line {100 * i}", 100 * i - 300, 100 * i + 300, points)
        title = f"The loss rose by {0.5 + i / 100:.2f} at step {100 * i}"
        severity = "critical" if i % 30 == 0 else severity
        case["findings"].append(finding(f"{kind}-{100 * i}", title, [100 * i, 100 * i + 20], severity, shown))
    causes = [cause("lr_too_high", "Learning rate too high", 0.7, [], [1000, 19900])]
    causes += [cause(f"cause_{i}", f"Cause number {i}", 0.3 / 29, [], [1000, 19900]) for i in range(1, 30)]
    for i, c in enumerate(causes):
        c["clues"] = [clue(f"Clue {j}.", (20.0 - 2 * i) / 8, f"loss_spike-{300 * j}") for j in range(8)]
        c |= {"score": 20.0 - 2 * i, "interventions": ["Halve the peak rate."]}
    case["hypotheses"] = ranked(*causes)
    return case


def replayed() -> Case:
    case = spike()
    arms = [("as logged", "spike", 4.06), ("batch 418 left out", "no spike", 2.08),
            ("batch 418 at step 350", "spike", 3.94),            ("rate halved", "undecided", "NaN")]  # fmt: skip
    case["replay"] = {
        "device": "cpu, fp32, deterministic", "noise_floor": 7e-07, "verdict": "data", "steps_replayed": 160,
        "arms": [{"name": name, "outcome": outcome, "peak": peak, "steps": 32} for name, outcome, peak in arms],
    }  # fmt: skip
    top = case["hypotheses"][0]
    top["clues"].append(clue("The batch makes the spike at another state too.", 8.0, "loss_spike-418", part="replay"))
    for h, p in zip(case["hypotheses"], (0.984, 0.0151, 0.0008, 0.0001), strict=True):
        h |= {"probability": p, "certainty": certainty(p, h["rank"] == 1)}
    top["score"] = 24.0
    return case


ALL = {f.__name__: f for f in (spike, nan, healthy, inconclusive, several, bare, hostile, crowded, replayed)}
