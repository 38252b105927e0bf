"""Settings, recipe, ranking, attempts, batches and seed groups, on small runs written for the purpose."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from runs import loss, make

import forensics
from forensics import at_path, ranking, rules
from forensics.batches import step_to_samples
from forensics.case import Clue, Finding, Hypothesis, jsonable, utc
from forensics.detectors import restart, stall, zero_loss
from forensics.errors import ForensicsError
from forensics.findings import findings_of
from forensics.run import how_it_ended, recipe, seed_group, settings
from forensics.run.series import series


def rows(n: int = 300, **more: Any) -> list[dict[str, Any]]:
    extra = {k: v for k, v in more.items() if not callable(v)}
    return [{"step": i, "loss": loss(i)} | extra | {k: f(i) for k, f in more.items() if callable(f)} for i in range(n)]


# --- settings and recipe


@pytest.mark.parametrize(
    ("config", "what", "value"),
    [
        ({"optim": {"lr": 0.1}}, "lr", 0.1),
        ({"clip": None, "max_grad_norm": 1}, "clip", 1),
        ({"training": {"adam-beta2": 0.95}}, "beta2", 0.95),
    ],
)
def test_settings_are_found_under_the_names_of_frameworks(tmp_path: Path, config: dict[str, Any], what: str, value: float) -> None:
    run = forensics.read(str(make(tmp_path / "r", rows(20), config)))
    assert settings.number(run, what) == value


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({"bf16": True}, "bf16"),
        ({"fp16": True, "bf16": False}, "fp16"),
        ({"precision": "16-mixed"}, "fp16"),
        ({"dtype": "float32"}, "fp32"),
        ({"lr": 1}, None),
    ],
)
def test_precision(tmp_path: Path, config: dict[str, Any], want: str | None) -> None:
    assert settings.precision(forensics.read(str(make(tmp_path / "r", rows(20), config)))) == want


def test_recipe_judges_a_rate_by_width_and_optimizer(tmp_path: Path) -> None:
    wide = forensics.read(str(make(tmp_path / "a", rows(20), {"n_head": 32, "d_model": 4096, "lr": 3e-4, "optimizer": "adamw"})))
    assert recipe.recipe(wide).ratio == pytest.approx(0.8, rel=0.05)
    sgd = forensics.read(str(make(tmp_path / "b", rows(20), {"optimizer": "sgd", "lr": 0.1})))
    assert recipe.recipe(sgd).ratio == pytest.approx(1.0)


# --- ranking


def test_probabilities_follow_from_sums_of_decibans() -> None:
    some = Hypothesis("some_cause", "Some cause", (Clue("start", -5.0), Clue("for", 15.0), Clue("Cannot tell: x was not logged", 0.0)))
    ranked = ranking.rank([some, Hypothesis("other", "Other", (Clue("against", -10.0),))])
    assert [x.id for x in ranked] == ["some_cause", "unknown", "other"]
    assert [x.probability for x in ranked] == pytest.approx([x / 11.1 for x in (10, 1, 0.1)])


# --- verdict, status, attempts


def test_healthy_inconclusive_and_not_logged(tmp_path: Path) -> None:
    case = forensics.analyze(str(make(tmp_path / "ok", rows(), {"max_steps": 300}))).to_json()
    assert case["verdict"] == "healthy" and case["run"]["status"] == "finished"
    assert next(c for c in case["checks"] if c["id"] == "loss_spike")["smallest_effect"]
    assert "grad.norm" in {b["what"] for b in case["blind_spots"]}
    bare = forensics.analyze(str(make(tmp_path / "bare", [{"step": i, "temperature": 0.7} for i in range(50)]))).to_json()
    assert bare["verdict"] == "inconclusive"
    assert next(c for c in bare["checks"] if c["id"] == "loss_spike")["status"] == "cannot_tell"


def test_a_nan_is_found_and_the_log_before_it_weighed(tmp_path: Path) -> None:
    bad = rows(grad_norm=lambda i: 1.0 + 0.01 * (i % 5))
    for r in bad[200:]:
        r["loss"] = math.nan
    case = forensics.analyze(str(make(tmp_path / "r", bad))).to_json()
    assert case["verdict"] == "unhealthy"
    first = next(f for f in case["findings"] if f["kind"] == "nonfinite")
    assert first["steps"][0] == 200
    assert case["hypotheses"][0]["id"] in {"nan_from_sample", "nan_from_layer"}
    json.dumps(case, allow_nan=False)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n", "crashed"),
        ("slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n", "stopped"),
        ("Training completed.\n", "finished"),
        ("", "unknown"),
    ],
)
def test_status_from_the_last_lines(tmp_path: Path, line: str, status: str) -> None:
    log = "".join(f"step {i}: loss {loss(i):.4f}\n" for i in range(97)) + line
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "train.log").write_text(log)
    assert how_it_ended.status(forensics.read(str(folder))) == status


def test_a_restart_that_repeats_work_is_named_with_its_cost(tmp_path: Path) -> None:
    twice = [*rows(200), *[{"step": i, "loss": loss(i)} for i in range(150, 300)]]
    case = forensics.analyze(str(make(tmp_path / "r", twice))).to_json()
    assert [a["steps"] for a in case["run"]["attempts"]] == [[0, 199], [150, 299]]
    restart = next(f for f in case["findings"] if f["kind"] == "restart")
    assert restart["facts"]["redone"] == 50
    assert "crash_and_restart" in [h["id"] for h in case["hypotheses"][:3]]


# --- batches


def test_a_bad_batch_is_named_only_where_a_file_names_it(tmp_path: Path) -> None:
    spiky = rows()
    spiky[180]["loss"] += 3
    folder = make(tmp_path / "r", spiky, {"max_steps": 300})
    assert forensics.analyze(str(folder)).culprits == ()
    (folder / "batches.jsonl").write_text("".join(json.dumps({"step": i, "sample_ids": [2 * i, 2 * i + 1]}) + "\n" for i in range(300)))
    case = forensics.analyze(str(folder)).to_json()
    assert case["hypotheses"][0]["id"] == "bad_data_batch"
    assert [(c["step"], c["samples"], c["how"]) for c in case["culprits"]] == [(180, [360, 361], "recorded")]


def test_nobody_is_accused_on_a_healthy_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "r", rows(), {"max_steps": 300})
    (folder / "batches.jsonl").write_text("".join(json.dumps({"step": i, "sample_ids": [i]}) + "\n" for i in range(300)))
    assert forensics.analyze(str(folder)).culprits == ()
    assert step_to_samples.answer(forensics.read(str(folder)), 999)["how"] == "unknown"


# --- seeds


def test_seed_groups_are_told_from_other_siblings(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make(tmp_path / "g" / f"s{seed}", rows(100, other=lambda i, s=seed: s * i), {"seed": seed, "lr": 0.1, "batch_size": 4})
    runs = at_path.read_runs(str(tmp_path / "g"))
    assert len(runs) == 3 or len(runs) == 1
    for seed in (1, 2, 3):
        rates = [{"step": i, "loss": loss(i) * (1 + seed / 5)} for i in range(100)]
        make(tmp_path / "h" / f"s{seed}", rates, {"seed": seed, "lr": 0.1, "batch_size": 4})
    runs = at_path.read_runs(str(tmp_path / "h"))
    assert len(runs) == 3 and seed_group.are_seeds(runs)
    (tmp_path / "h" / "s2" / "config.json").write_text(json.dumps({"seed": 2, "lr": 0.2, "batch_size": 4}))
    assert not seed_group.are_seeds(at_path.read_runs(str(tmp_path / "h")))


def test_seeds_that_their_folders_and_command_lines_tell(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        rates = [{"step": i, "loss": loss(i) * (1 + seed / 5)} for i in range(100)]
        args = {"seed": seed, "lr": 0.1, "wandb": {"args": ["--seed", str(seed)]}}
        make(tmp_path / "told" / f"s{seed}", rates, args)
        make(tmp_path / "other" / f"s{seed}", rates, args | {"wandb": {"args": ["--seed", str(seed), "--wd", str(seed / 10)]}})
        make(tmp_path / "called" / f"seed_{seed}", rates, {"lr": 0.1})
        make(tmp_path / "sizes" / f"width_{seed}", rates, {"lr": 0.1})
    assert [seed_group.are_seeds(at_path.read_runs(str(tmp_path / d))) for d in ("told", "other", "called", "sizes")] == [
        True,
        False,
        True,
        False,
    ]


# --- plain data


def test_jsonable_and_utc() -> None:
    assert jsonable({"a": math.nan, "b": (math.inf, -math.inf)}) == {"a": "NaN", "b": ["Infinity", "-Infinity"]}
    assert utc(1_700_000_000) == "2023-11-14T22:13:20Z"
    assert utc(math.nan) is None and utc(1e300) is None and utc(-5) is None


# --- remote folders


def test_a_run_behind_a_url_reads_like_a_folder() -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe("/bucket/xyz/metrics.jsonl", "".join(json.dumps(r) + "\n" for r in rows(100)).encode())
    case = forensics.analyze("memory://bucket/xyz").to_json()
    assert case["run"]["id"] == "xyz" and case["run"]["path"] == "memory://bucket/xyz"
    assert case["sources"][0]["sha256"]
    with pytest.raises(ForensicsError):
        forensics.analyze("memory://bucket/nothing")


# --- facts


def test_facts_that_do_not_apply_are_left_out_and_words_of_python_keep_their_names() -> None:
    assert stall.Facts(3, False, 200.0, 1.0).to_json() == {"step": 3, "at_end": False, "seconds": 200.0, "usual": 1.0}
    assert "from" in restart.Facts(1, 2, 2, None, "", 1).to_json()
    assert {m.Facts.detector() for m in rules.detectors()} == {rules.id_of(m) for m in rules.detectors()}


def test_findings_of_a_detector_come_in_step_order() -> None:
    one = zero_loss.Facts(1, 3, True, True)
    found = [Finding(f"zero_loss-{s}", "zero_loss", "", s, s, "info", (), one) for s in (5, None, 2)]
    assert [f.first_step for f in findings_of(found, zero_loss.Facts)] == [2, 5, None]
    assert findings_of(found, stall.Facts) == [] == findings_of(found, zero_loss.Facts, severity=["critical"])


def test_a_copy_that_counts_its_lines_gives_way_to_one_with_steps(tmp_path: Path) -> None:
    """A Trainer prints its last evaluation twice, so that its console has more values than its state."""
    (tmp_path / "run").mkdir()
    history, lines = [], []
    for i in range(10, 310, 10):
        value = {"eval_loss": 2.0 - i / 300, "epoch": i / 100} if i % 50 == 0 else {"loss": 2.1 - i / 300, "epoch": i / 100}
        history.append({**value, "step": i})
        lines += [str({k: f"{v:.4f}" for k, v in value.items()})] * (3 if i == 300 else 1)
    (tmp_path / "run/console.log").write_text("\n".join(lines) + "\n")
    (tmp_path / "run/trainer_state.json").write_text(json.dumps({"log_history": history, "global_step": 300}))
    s = series(at_path.read(str(tmp_path / "run")), "loss.eval")
    assert s is not None
    assert s.step.tolist() == [50, 100, 150, 200, 250, 300]
