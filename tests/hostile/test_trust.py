"""What came with a run is told before it counts: its forensics.toml, its code; and no home folder is needed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forensics.run import metric_aliases

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "forensics"]


def forensics(*arguments: object, cwd: Path, home: Path | None = None, command: list[str] = COMMAND) -> subprocess.CompletedProcess[str]:
    env = (
        {k: v for k, v in os.environ.items() if k != "HOME"}
        | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        | ({"HOME": str(home)} if home else {})
    )
    done = subprocess.run([*command, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, env=env)
    assert "Traceback" not in done.stderr and "bug in forensics" not in done.stderr, done.stderr
    return done


def case(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that diverges, with a quiet metric beside the loss."""
    rng, folder = random.Random(1), tmp_path / "exp"
    folder.mkdir()
    rows = [
        {"step": s, "loss": 2.0 - s / 400 + rng.gauss(0, 0.01) + (max(0, s - 200) * 0.05), "quiet": 2.0 - s / 400 + rng.gauss(0, 0.01)}
        for s in range(300)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


def test_a_settings_file_that_came_with_the_run_is_told_first(run: Path, tmp_path: Path, home: Path) -> None:
    assert forensics("analyze", "exp", "--out", "plain.html", cwd=tmp_path, home=home).returncode == 0
    (run / "forensics.toml").write_text('[metrics]\n"loss.train" = "quiet"\n')
    done = forensics("analyze", "exp", "--out", "r.html", "--md", "r.md", cwd=tmp_path, home=home)
    told = case(tmp_path / "r.case.json")
    assert told["run"]["config_file"]["metrics"] == {"loss.train": "quiet"}
    assert sorted(told["run"]["config_file"]["changes"]) == [
        "loss is read as loss.aux, not as loss.train",
        "quiet is read as loss.train, not as a metric of its own",
    ]
    first_screen = (tmp_path / "r.html").read_text().partition('id="causes"')[0]
    for text in (first_screen.partition("<dl")[2], done.stdout, (tmp_path / "r.md").read_text().replace("\\", "").partition("## ")[0]):
        assert "forensics.toml" in text and "quiet is read as loss.train" in text and "no-run-config" in text, text
    assert forensics("analyze", "exp", "--out", "without.html", "--no-run-config", cwd=tmp_path, home=home).returncode == 0
    plain, without = case(tmp_path / "plain.case.json"), case(tmp_path / "without.case.json")
    assert plain["verdict"] == without["verdict"] != told["verdict"] and without["run"]["config_file"] is None
    assert plain["hypotheses"] == without["hypotheses"]


def test_the_options_and_the_home_file_are_the_users_own(run: Path, tmp_path: Path, home: Path) -> None:
    (home / "forensics.toml").write_text('[metrics]\n"loss.train" = "quiet"\n')
    assert forensics("analyze", "exp", "--out", "r.html", cwd=tmp_path, home=home).returncode == 0
    told = case(tmp_path / "r.case.json")
    assert told["run"]["config_file"] is None and told["run"]["metrics"]["loss.train"]["tag"] == "quiet"
    (run / "forensics.toml").write_text('[metrics]\n"loss.train" = "loss"\n')
    assert forensics("analyze", "exp", "--metric", "loss.train=quiet", "--out", "s.html", cwd=tmp_path, home=home).returncode == 0
    assert case(tmp_path / "s.case.json")["run"]["metrics"]["loss.train"]["tag"] == "quiet"


DAMAGED = {
    "no_toml": b"[metrics\n", "not_utf8": b'[metrics]\n"loss.train" = "\xff\xfe"\n', "utf16": '[metrics]\n"a" = "b"\n'.encode("utf-16"), "a_number": b"metrics = 3\n", "a_list": b"metrics = [1]\n",
    "a_wrong_value": b'[metrics]\n"grad.norm" = 3\n', "nested": b'[metrics.deep]\n"a" = "b"\n', "deep": b"x = " + b"[" * 5000, "binary": bytes(range(256)), "large": b"#" * (2 << 20), "no_tag": b'[metrics]\n"loss.train" = ""\n',
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("where", ["run", "home"])
def test_a_damaged_settings_file_costs_only_itself(run: Path, home: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str) -> None:
    monkeypatch.setenv("HOME", str(home))
    ({"run": run, "home": home}[where] / "forensics.toml").write_bytes(DAMAGED[name])
    found = metric_aliases.read(run, {"lr": "rate"})
    assert found.names == {"lr": "rate"} and found.of_run == {}
    assert [g for g in found.gaps if g.path.endswith("forensics.toml") and g.at.startswith("line ")]


def test_what_is_sound_of_a_settings_file_counts(run: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    (run / "forensics.toml").write_text('[metrics]\n"loss.train" = "quiet"\n"grad.norm" = 3\n')
    found = metric_aliases.read(run)
    assert found.of_run == {"loss.train": "quiet"} and len(found.gaps) == 1


def test_a_tag_that_was_not_logged_takes_no_name_away(run: Path, tmp_path: Path, home: Path) -> None:
    (run / "forensics.toml").write_text('[metrics]\n"loss.train" = "\\u001b[2Jnowhere"\n')
    assert forensics("analyze", "exp", "--out", "r.html", cwd=tmp_path, home=home).returncode == 0
    told = case(tmp_path / "r.case.json")
    assert told["run"]["metrics"]["loss.train"]["tag"] == "loss"
    assert any("no metric of that tag" in g["what"] for g in told["gaps"])


def test_no_verb_ends_at_a_damaged_settings_file(run: Path, tmp_path: Path, home: Path) -> None:
    assert forensics("analyze", "exp", "--out", "plain.html", cwd=tmp_path, home=home).returncode == 0
    (run / "forensics.toml").write_bytes(DAMAGED["not_utf8"])
    (home / "forensics.toml").write_bytes(DAMAGED["no_toml"])
    for verb in (["analyze", "exp", "--out", "r.html"], ["tables", "exp", "--out", "t"], ["audit", "exp", "--out", "a", "--jobs", "1"]):
        assert forensics(*verb, cwd=tmp_path, home=home).returncode == 0
    told = case(tmp_path / "r.case.json")
    assert {g["path"] for g in told["gaps"]} >= {"forensics.toml", "~/forensics.toml"}
    assert told["hypotheses"] == case(tmp_path / "plain.case.json")["hypotheses"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_a_settings_file_that_is_no_file(run: Path, tmp_path: Path, home: Path, kind: str) -> None:
    (tmp_path / "elsewhere.toml").write_text('[metrics]\n"loss.train" = "quiet"\n')
    place = run / "forensics.toml"
    {"link": lambda: place.symlink_to("../elsewhere.toml"), "fifo": lambda: os.mkfifo(place), "folder": place.mkdir}[kind]()
    assert forensics("analyze", "exp", "--out", "r.html", cwd=tmp_path, home=home).returncode == 0
    told = case(tmp_path / "r.case.json")
    assert told["run"]["metrics"]["loss.train"]["tag"] == "loss" and told["run"]["config_file"] is None


ADAPTER = "def build(): pass\ndef batch(step): pass\ndef loss(model, batch): pass\n"


def test_code_of_the_run_folder_is_called_foreign_before_it_is_offered(run: Path, tmp_path: Path, home: Path) -> None:
    (run / "train.py").write_text(ADAPTER)
    assert forensics("analyze", "exp", "--out", "r.html", "--md", "r.md", cwd=tmp_path, home=home).returncode == 0
    offered = [h["settle"] for h in case(tmp_path / "r.case.json")["hypotheses"] if "--adapter exp/train.py" in h["settle"]]
    assert offered and all("foreign code" in s.partition("`forensics")[0] for s in offered)


@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder"])
def test_code_that_is_no_file_is_not_offered(run: Path, tmp_path: Path, home: Path, kind: str) -> None:
    (tmp_path / "elsewhere.py").write_text(ADAPTER)
    place = run / "train.py"
    {
        "link": lambda: place.symlink_to("../elsewhere.py"),
        "fifo": lambda: os.mkfifo(place),
        "device": lambda: place.symlink_to("/dev/zero"),
        "folder": place.mkdir,
    }[kind]()
    assert forensics("analyze", "exp", "--out", "r.html", cwd=tmp_path, home=home).returncode == 0
    assert "train.py" not in " ".join(h["settle"] for h in case(tmp_path / "r.case.json")["hypotheses"])


NOBODY = "import os, pwd, sys\ndef unknown(*_): raise KeyError('no such user')\npwd.getpwuid = pwd.getpwnam = unknown\nsys.path[0] = {root!r}\nfrom forensics.cli import main\nsys.argv[0] = 'forensics'\nmain()"


def test_no_home_and_no_user_are_needed(run: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", NOBODY.format(root=str(ROOT))]
    for verb in (
        ["analyze", "exp"],
        ["audit", "exp", "--out", "a", "--jobs", "1"],
        ["tables", "exp", "--out", "t"],
        ["compare", "exp", "exp"],
        ["batch", "exp", "--step", "3"],
        ["explain"],
    ):
        done = forensics(*verb, cwd=tmp_path, command=command)
        assert done.returncode == 0, (verb, done.stderr)


def test_a_home_that_cannot_be_written_or_is_not_there(run: Path, tmp_path: Path, home: Path) -> None:
    home.chmod(0o500)
    for place in (home, tmp_path / "nowhere", Path("/dev/null")):
        assert forensics("analyze", "exp", "--out", "r.html", "--force", cwd=tmp_path, home=place).returncode == 0
    home.chmod(0o700)
    assert list(home.iterdir()) == []
