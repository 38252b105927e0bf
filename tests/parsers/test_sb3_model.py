"""Settings in the zip of a model that Stable-Baselines3 saved."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import parsers
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
