"""Settings in the zip of a model that Stable-Baselines3 saved."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import parsers
from forensics.checkpoints import run_saves
from forensics.detectors import frozen_weights
from parsers.formats import sb3_model
from parsers.tables import Run

DATA = {
    "policy_class": {":type:": "<class 'abc.ABCMeta'>", ":serialized:": "gASVLg=="},
    "num_timesteps": 512,
    "_total_timesteps": 1024,
    "seed": None,
    "learning_rate": 0.0003,
    "ent_coef": -0.4,
    "use_sde": False,
    "start_time": 1780000000000000000,
}


def saved(path: Path, data: str) -> Path:
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("data", data)
        z.writestr("policy.pth", b"\x80\x02}.")
    return path


def settings(run: Run) -> dict[str, str]:
    return dict(zip(*(run.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True))


def test_plain_settings_are_read_and_counters_are_not(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip", json.dumps(DATA))
    run = parsers.read(tmp_path)
    assert settings(run) == {"learning_rate": "0.0003", "ent_coef": "-0.4", "use_sde": "false"}
    assert run.where("model.zip", 6) == "model.zip entry 6" and run.tables["config"]["at"].to_pylist() == [5, 6, 7]


def test_a_damaged_zip_costs_itself(tmp_path: Path) -> None:
    whole = saved(tmp_path / "model.zip", json.dumps(DATA)).read_bytes()
    (tmp_path / "model.zip").write_bytes(whole[:-40])
    assert ["damaged zip" in g.what for g in parsers.read(tmp_path).gaps] == [True]
    saved(tmp_path / "model.zip", json.dumps(DATA)[:-30])
    assert [g.what for g in parsers.read(tmp_path).gaps] == ["the settings in the zip are no JSON object"]
    saved(tmp_path / "model.zip", "[]")
    assert [g.what for g in parsers.read(tmp_path).gaps] == ["the settings in the zip are no JSON object"]


def test_other_zips_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("data/train.log", "")
    assert not sb3_model.claims(path, path.read_bytes())


def test_it_is_a_checkpoint_of_the_steps_that_were_trained(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for step, value in ((512, 1.0), (1024, 2.0)):
        weights = {"policy_net.0.weight": torch.full((8, 8), 0.5), "value_net.0.weight": torch.full((8, 8), value)}
        with zipfile.ZipFile(tmp_path / f"rl_model_{step}_steps.zip", "w") as z:
            z.writestr("data", json.dumps(DATA | {"num_timesteps": step}))
            for name, state in (
                ("policy.pth", weights),
                ("policy.optimizer.pth", {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}),
            ):
                with z.open(name, "w", force_zip64=True) as f:
                    torch.save(state, f)
    (tmp_path / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n" + "".join(f"{64 * i},{i}\n" for i in range(1, 17)))
    run = parsers.read(tmp_path)
    found = run_saves.of_run(run)
    assert [c.step for c in found] == [512, 1024]
    assert {t.name for t in found[0].contents.tensors} == {"policy.policy_net.0.weight", "policy.value_net.0.weight"}
    (told,) = frozen_weights.detect(run)
    assert told.title.startswith("1 of 2 weights are bit for bit the same at step 512 and at step 1024")
