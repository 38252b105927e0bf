"""Two runs side by side: where they part, why, and what it cost; and a baseline beside a run."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics import at_path
from forensics.errors import ForensicsError
from forensics.many_runs import config_diff, parting, side_by_side
from forensics.run.series import Series
from reports import compare_page

COMMAND = [sys.executable, "-c", "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"]


def series(values: Any) -> Series:
    n = len(values)
    step, nothing = np.arange(n, dtype=np.int64), np.zeros(n, np.int32)
    return Series(
        "loss.train", "loss", step, np.asarray(values, float), np.full(n, np.nan), nothing, np.ones(n, bool), ["x"], nothing, step
    )


def pair(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Two losses over the same batches: common noise of the batches, and noise of their own."""
    base = 1.5 + 3 * np.exp(-np.arange(n) / (n / 6))
    hard = rng.normal(0, 0.03, n)
    return base * np.exp(hard + rng.normal(0, 0.01, n)), base * np.exp(hard + rng.normal(0, 0.01, n))


def test_noise_is_no_divergence() -> None:
    rng = np.random.default_rng(0)
    found = [parting.find(*(series(x) for x in pair(rng, int(rng.integers(200, 2000))))) for _ in range(100)]
    assert sum(p is None or p.level is not None or p.excursion is not None for p in found) <= 1


def test_a_small_lasting_difference_is_found_where_it_begins() -> None:
    rng, off = np.random.default_rng(1), []
    for _ in range(60):
        a, b = pair(rng, 1000)
        at = int(rng.integers(250, 750))
        b[at:] *= np.exp(0.05)
        p = parting.find(series(a), series(b))
        assert p is not None and p.level is not None and p.last_difference == pytest.approx(0.05, abs=0.02)
        off.append(abs(p.level - at))
    assert np.median(off) <= 10


def test_equal_values_and_one_that_jumps_alone() -> None:
    a = 2 + np.sin(np.arange(300.0)) / 50
    b = a.copy()
    b[120] += 1.0
    p = parting.find(series(a), series(b))
    assert p is not None and (p.equal, p.last_equal, p.first_unequal, p.excursion, p.level) == (120, 119, 120, 120, None)
    assert (p.excursion_by, p.excursion_way) == ("B", "jumps")
    a[200] -= 1.0  # the difference rises there, and it is A that moved
    p = parting.find(series(np.r_[a[121:], a[:121]]), series(np.r_[b[121:], b[:121]]))
    assert p is not None and (p.excursion, p.excursion_by, p.excursion_way) == (79, "A", "drops")
    a[200] += 1.0
    same = parting.find(series(a), series(a))
    assert same is not None and same.equal == same.common == 300 and same.level is None and same.excursion is None
    assert parting.find(series(a[:10]), series(b[:10])) is None


@pytest.mark.parametrize("lag", [0, 9, -6])
def test_the_same_data_order_is_heard_in_the_noise(lag: int) -> None:
    rng = np.random.default_rng(2)
    hard = rng.normal(0, 0.03, 1100)
    a = 2 * np.exp(hard[50:1050] + rng.normal(0, 0.02, 1000))
    b = 2 * np.exp(hard[50 - lag : 1050 - lag] + rng.normal(0, 0.02, 1000))
    found = parting.shared_noise(series(a), series(b))
    assert found is not None and found[0] == lag and found[1] > 0.4
    other = parting.shared_noise(series(a), series(2 * np.exp(rng.normal(0, 0.04, 1000))))
    assert other is not None and other[1] < 0.2


def write(folder: Path, seed: int = 1, spike: int | None = None, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    rate = config.get("lr", 1e-3)
    with (folder / "metrics.jsonl").open("w") as f:
        for i in range(500):
            loss = 1 + 2.5 * 0.5 ** (i / 150) + 0.01 * rng.gauss(0, 1)
            loss += 0.0 if spike is None or i < spike else 2.5 if i < spike + 20 else 0.4
            f.write(json.dumps({"step": i, "loss": loss, "lr": rate * min(1, (i + 1) / 20), "time": 1.7e9 + 2 * i}) + "\n")
    told = {"lr": 1e-3, "warmup_steps": 20, "seed": seed, "optimizer": "adam", "max_steps": 500, "out_dir": str(folder), **config}
    (folder / "config.json").write_text(json.dumps(told))
    return folder


def runs(*folders: Path) -> list[Any]:
    return [at_path.read(str(f)) for f in folders]


def test_the_document(tmp_path: Path) -> None:
    a = write(tmp_path / "a", batch_size=4, seq_len=128)
    b = write(tmp_path / "b", spike=300, lr=8e-3, batch_size=4, seq_len=256)
    told = side_by_side.compare(*runs(a, b))
    assert told["divergence"]["loss.train"]["level"] == 300 and "step 300" in told["answer"]
    assert told["config"][0]["key"] == "lr" and told["config"][-1]["key"] == "out_dir"
    assert told["config"] == sorted(told["config"], key=lambda d: (-d["suspicion"], d["key"]))
    axes = {e["axis"]: e for e in told["learning"]}
    assert axes["steps"]["better"] == "A" and axes["seconds"]["at"] == pytest.approx(998)
    assert axes["tokens"]["at"] == pytest.approx(499 * 4 * 128)
    assert "parameters" in axes["flops"]["cannot_tell"]
    assert any("seq_len" in w for w in told["warnings"])
    assert told["throughput"][-1]["ratio"] == pytest.approx(1)
    assert told["data_order"]["order"] == "same" and told["data_order"]["shift"] == 0
    json.dumps(told, allow_nan=False)


def test_the_verdict_says_how_far_apart_the_ends_are_and_what_a_step_takes(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a"), write(tmp_path / "b", spike=300, lr=8e-3)
    for folder, seconds in ((a, 0.363), (b, 0.216)):
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(r | {"time": 1.7e9 + seconds * r["step"]}) + "\n" for r in rows))
    told = side_by_side.compare(*runs(a, b))
    assert re.search(r"part at step 300, and B ends \d+ % higher, beyond the noise\.", told["answer"])
    assert "A step takes 363 ms in A and 216 ms in B: B is 40 % faster, beyond the noise." in told["answer"]
    assert told["answer"].endswith("The most suspect difference: lr, 0.001 in A and 0.008 in B.")
    assert told["step_seconds"]["faster"] == "B"
    loss = next(c for c in told["curves"] if c["metric"] == "loss.train")["difference"]
    assert loss["parts"] == 300 and loss["level"][-1][1] > 10
    page = compare_page.render(told)
    assert "<figcaption>B less A, %</figcaption>" in page and "peak learning rate" in page
    assert " ".join(compare_page.terminal(told).split()).startswith(told["answer"])


def test_what_acts_on_the_first_step_is_excused_where_first_values_are_equal(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", hidden_size=64), write(tmp_path / "b", spike=200, hidden_size=128)
    plain, excused = (config_diff.differences(*runs(a, b), equal_at_first=e) for e in (False, True))
    width = [next(d for d in x if d["key"] == "hidden_size") for x in (plain, excused)]
    assert width[1]["suspicion"] < width[0]["suspicion"] and "equal values at first" in width[1]["why"]


def test_recorded_batches_decide_the_data_order(tmp_path: Path) -> None:
    for name, shift in (("a", 0), ("b", 0), ("c", 5)):
        write(tmp_path / name)
        rows = [json.dumps({"step": i, "sample_ids": [i + (shift if i > 99 else 0)]}) for i in range(500)]
        (tmp_path / name / "batches.jsonl").write_text("\n".join(rows) + "\n")
    a, b, c = runs(*(tmp_path / n for n in "abc"))
    assert side_by_side.data_order(a, b)["order"] == "same" and side_by_side.data_order(a, b)["how"] == "recorded"
    assert side_by_side.data_order(a, c) | {"why": ""} == {"order": "differs", "from": 100, "shift": None, "how": "recorded", "why": ""}


def test_a_spike_of_one_alone_is_told_also_between_common_steps(tmp_path: Path) -> None:
    """A logs every other step, so that what B does at step 301 is at no step of both."""
    a, b = write(tmp_path / "a"), write(tmp_path / "b")
    for folder, kept, spike in ((a, 2, None), (b, 1, 301)):
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()][::kept]
        rows = [r | {"loss": r["loss"] + 3.0 * (r["step"] == spike)} for r in rows]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    told = side_by_side.compare(*runs(a, b))
    assert told["spikes"] == [{"run": "B", "step": 301, "peak": 301, "class": "fast"}]
    assert told["answer"].startswith(
        "The losses are equal at all 250 common steps, but at step 301 B alone spikes (fast). A step takes as long"
    )
    assert side_by_side.compare(*runs(b, b))["spikes"] == []


def test_nothing_in_common(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a"), tmp_path / "b"
    b.mkdir()
    (b / "metrics.jsonl").write_text("".join(json.dumps({"step": i, "reward": 1.0 * i}) + "\n" for i in range(50)))
    with pytest.raises(ForensicsError, match="no metric in common"):
        side_by_side.compare(*runs(a, b))


def test_a_baseline_adds_a_finding_and_clues(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good"), write(tmp_path / "bad", spike=300, lr=8e-3)
    alone, beside = forensics.analyze(str(bad)), forensics.analyze(str(bad), baseline=str(good))
    (found,) = [f for f in beside.findings if f.kind == "baseline_parting"]
    assert found.first_step == 300 and found.severity == "info" and "lr" in found.title
    assert next(c.status for c in beside.checks if c.id == "baseline_parting") == "fired"
    before, after = (next(h for h in case.hypotheses if h.id == "lr_too_high") for case in (alone, beside))
    assert after.score == pytest.approx(before.score + 6)
    assert any("baseline" in c.text for c in after.clues) and alone.verdict == beside.verdict
    assert math.isclose(sum(h.probability for h in beside.hypotheses), 1)


def test_the_command(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a"), write(tmp_path / "b", spike=300, lr=8e-3)

    def run(*args: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*COMMAND, "compare", *map(str, args)], cwd=tmp_path, capture_output=True, text=True)

    p = run(a, b, "--json", "c.json")
    assert p.returncode == 0, p.stderr
    assert "step 300" in p.stdout and (tmp_path / "a-b.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "c.json").read_text())["kind"] == "comparison"
    assert run(a, b).returncode == 0
    assert run(a, b, "--json", "c.json").returncode == 1
    assert run(a, tmp_path / "nowhere").returncode == 1
    for folder, host in ((a, "gpu-node-17"), (b, "gpu-node-18")):
        told = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps(told | {"hostname": host, "owner": f"{host}@example.com", "data": f"/home/jane/{host}/x"})
        )
    for options in ((), ("--redact",)):
        assert run(a, b, "--json", "r.json", "--out", "r.html", "--force", *options).returncode == 0
        written = (tmp_path / "r.json").read_text() + (tmp_path / "r.html").read_text()
        for secret in ("gpu-node-17", "gpu-node-18", "example.com", "/home/jane", str(tmp_path)):
            assert (secret in written) == (not options), secret


@pytest.mark.parametrize(
    ("key", "kind"),
    [("num_samples", "other"), ("use_amp", "precision"), ("early_stopping.patience", "other"), ("z_loss_logits", "other"),
     ("git_sha", "environment"), ("latest_only", "other"), ("test_size", "evaluation"), ("n_head", "model"), ("tie_word_embeddings", "model")],
)  # fmt: skip
def test_settings_are_known_by_whole_words(key: str, kind: str) -> None:
    assert config_diff.kind_of(key)[0] == kind


SCRIPT = """import torch

def step(model, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def main(model, optimizer, loader):
    for x, y in loader:
        step(model, optimizer, torch.nn.functional.cross_entropy(model(x), y))
"""


def test_source_of_both_runs_is_laid_beside_each_other(tmp_path: Path) -> None:
    from runs import read, write

    def told(name: str, text: str) -> dict[str, Any]:
        sides = [write(tmp_path / name / side) for side in "ab"]
        for side, source in zip(sides, (SCRIPT, text), strict=True):
            (side / "train.py").write_text(source)
        return side_by_side.compare(*map(read, sides))

    changed = told("changed", SCRIPT.replace("    optimizer.zero_grad()\n", "    key = 'sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD'\n"))
    (file,) = changed["source"]["files"]
    assert (changed["source"]["state"], file["path"], file["names"]) == ("differs", "train.py", ["step"])
    assert file["lines"][0] == "-    optimizer.zero_grad()" and "sk-abcdef" not in str(changed)
    assert [x["look"] for x in changed["source"]["looks"]] == ["keeps_gradients"]
    assert "train.py differs in step" in compare_page.terminal(changed) and "zero_grad" in compare_page.render(changed)
    assert told("remarked", SCRIPT.replace("def step", "# the step\n\ndef step"))["source"] == {"state": "same", "files": [], "looks": []}
    assert told("broken", "def (")["source"]["state"] == "no source that parses lies with B"
