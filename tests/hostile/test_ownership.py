"""Files that are not ours stay, and a report, a case and a note belong to one run."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "forensics"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def forensics(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr and "bug in forensics" not in done.stderr, done.stderr
    return done


def spiked(seed: int) -> str:
    rng = random.Random(seed)
    rows = [{"step": s, "loss": 2.5 - s / 300 + rng.gauss(0, 0.01) + (5.0 if s in (150, 151) else 0.0)} for s in range(300)]
    return "".join(json.dumps(r) + "\n" for r in rows)


def run(folder: Path, seed: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text(spiked(seed))
    (folder / "config.json").write_text('{"lr": 0.1}')
    return folder


def seen(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def case(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_a_report_is_never_replaced_by_that_of_another_run(tmp_path: Path) -> None:
    run(tmp_path / "a" / "exp", 1), run(tmp_path / "b" / "exp", 2)
    assert forensics("analyze", "a/exp", cwd=tmp_path).returncode == 0
    assert forensics("note", "exp.case.json", "--add", "about a", cwd=tmp_path).returncode == 0
    first = (tmp_path / "exp.case.json").read_bytes(), (tmp_path / "exp.html").read_bytes()
    for _ in range(2):  # the second time it replaces its own
        done = forensics("analyze", "b/exp", cwd=tmp_path)
        assert done.returncode == 0 and "another run" in done.stderr and "exp-2.html" in done.stdout
    assert ((tmp_path / "exp.case.json").read_bytes(), (tmp_path / "exp.html").read_bytes()) == first
    assert "notes" not in case(tmp_path / "exp-2.case.json")
    assert forensics("analyze", "a/exp", cwd=tmp_path).returncode == 0
    assert case(tmp_path / "exp.case.json")["notes"] == [{"text": "about a"}]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["exp-2.case.json", "exp-2.html", "exp.case.json", "exp.html"]


def test_a_folder_used_again_is_another_run_and_one_that_grows_the_same(tmp_path: Path) -> None:
    run(tmp_path / "exp", 1)
    assert forensics("analyze", "exp", cwd=tmp_path).returncode == 0
    assert forensics("note", "exp.case.json", "--add", "first attempt", cwd=tmp_path).returncode == 0
    with (tmp_path / "exp" / "log.jsonl").open("a") as f:
        f.write('{"step": 300, "loss": 1.5}\n')
    (tmp_path / "exp" / "a_new.log").write_text("step 301 loss 1.4\n")
    assert forensics("analyze", "exp", cwd=tmp_path).returncode == 0
    assert "notes" in case(tmp_path / "exp.case.json")
    (tmp_path / "exp" / "a_new.log").unlink()
    (tmp_path / "exp" / "log.jsonl").write_text(spiked(2))
    assert "another run" in forensics("analyze", "exp", cwd=tmp_path).stderr
    assert "notes" in case(tmp_path / "exp.case.json") and "notes" not in case(tmp_path / "exp-2.case.json")


def test_a_young_run_stays_the_same_while_it_grows(tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    log = tmp_path / "exp" / "m.jsonl"
    for steps in (3, 9, 40, 300):
        log.write_text("".join(json.dumps({"step": s, "loss": 2 - s / 400}) + "\n" for s in range(steps)))
        done = forensics("analyze", "exp", cwd=tmp_path)
        assert done.returncode == 0 and "another run" not in done.stderr
        assert forensics("note", "exp.case.json", "--add", f"at {steps}", cwd=tmp_path).returncode == 0
    assert len(case(tmp_path / "exp.case.json")["notes"]) == 4  # type: ignore[arg-type]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["exp", "exp.case.json", "exp.html"]


def test_given_names_with_force_take_no_notes_of_another_run(tmp_path: Path) -> None:
    run(tmp_path / "a" / "exp", 1), run(tmp_path / "b" / "exp", 2)
    assert forensics("analyze", "a/exp", "--out", "r.html", cwd=tmp_path).returncode == 0
    assert forensics("note", "r.case.json", "--add", "about a", cwd=tmp_path).returncode == 0
    assert forensics("analyze", "b/exp", "--out", "r.html", cwd=tmp_path).returncode == 1
    assert forensics("analyze", "b/exp", "--out", "r.html", "--force", cwd=tmp_path).returncode == 0
    assert "notes" not in case(tmp_path / "r.case.json")


def test_render_and_compare_keep_to_their_runs(tmp_path: Path) -> None:
    for where, seed in (("a", 1), ("b", 2)):
        run(tmp_path / where / "exp", seed)
        assert forensics("analyze", "exp", cwd=tmp_path / where).returncode == 0
    for _ in range(2):
        assert forensics("render", "a/exp.case.json", cwd=tmp_path).stdout.strip() == "exp.html"
        assert forensics("render", "b/exp.case.json", cwd=tmp_path).stdout.strip() == "exp-2.html"
    run(tmp_path / "c" / "exp", 3)
    assert "report: exp-exp.html" in forensics("compare", "a/exp", "b/exp", cwd=tmp_path).stdout
    assert "report: exp-exp-2.html" in forensics("compare", "a/exp", "c/exp", cwd=tmp_path).stdout
    assert "report: exp-exp.html" in forensics("compare", "a/exp", "b/exp", cwd=tmp_path).stdout
    assert forensics("render", "a/exp.case.json", "--out", "a/exp.case.json", "--force", cwd=tmp_path).returncode == 1


def test_four_notes_at_once_are_all_kept(tmp_path: Path) -> None:
    run(tmp_path / "exp")
    assert forensics("analyze", "exp", cwd=tmp_path).returncode == 0
    commands = [[*COMMAND, "note", "exp.case.json", "--add", f"word {n}"] for n in range(4)]
    children = [subprocess.Popen(c, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL) for c in commands]
    assert [c.wait(120) for c in children] == [0, 0, 0, 0]
    notes = case(tmp_path / "exp.case.json")["notes"]
    assert sorted(n["text"] for n in notes) == [f"word {n}" for n in range(4)]  # type: ignore[attr-defined]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["exp", "exp.case.json", "exp.html"]


@pytest.mark.parametrize("arguments", [
    ("--out", "x", "--md", "x"), ("--out", "x", "--json", "x"), ("--json", "x", "--md", "x"), ("--out", "x", "--md", "./x"), ("--out", "x.html", "--md", "x.case.json"),
    ("--out", "d/../x", "--json", "x"), ("--out", "x", "--md", "link"),
])  # fmt: skip
def test_two_outputs_of_one_name(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run(tmp_path / "exp")
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("x")
    done = forensics("analyze", "exp", *arguments, "--force", cwd=tmp_path)
    assert done.returncode in (1, 2) and not (tmp_path / "x").exists() and done.stderr.strip()


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "log.jsonl"), ("--json", "config.json"), ("--md", "note.html"), ("--out", "sub/weights.bin")]
)
def test_an_output_is_never_a_file_of_the_run(tmp_path: Path, option: str, name: str) -> None:
    run(tmp_path / "exp")
    (tmp_path / "exp" / "note.html").write_text("<p>mine</p>")
    (tmp_path / "exp" / "sub").mkdir()
    (tmp_path / "exp" / "sub" / "weights.bin").write_bytes(b"\1" * 99)
    before = seen(tmp_path)
    assert forensics("analyze", "exp", option, f"exp/../exp/{name}", "--force", cwd=tmp_path).returncode == 1
    assert forensics("compare", "exp", "exp", "--out", f"exp/{name}", "--force", cwd=tmp_path).returncode == 1
    assert seen(tmp_path) == before


def test_tables_never_replace_what_they_were_read_from(tmp_path: Path) -> None:
    run(tmp_path / "exp")
    assert forensics("tables", "exp", "--out", "other", cwd=tmp_path).returncode == 0
    before = seen(tmp_path)
    assert forensics("tables", "other", "--out", "other", "--force", cwd=tmp_path).returncode == 1
    assert seen(tmp_path) == before


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder", "device"])
def test_only_regular_files_are_replaced(tmp_path: Path, kind: str) -> None:
    run(tmp_path / "exp")
    place = tmp_path / "r.html"
    (tmp_path / "precious").write_text("mine")
    if kind == "device":
        try:
            os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null
        except PermissionError:
            pytest.skip("needs root")
    else:
        {
            "link": lambda: place.symlink_to("precious"),
            "dangling": lambda: place.symlink_to("nowhere"),
            "fifo": lambda: os.mkfifo(place),
            "folder": place.mkdir,
        }[kind]()
    before = (place.lstat().st_mode, place.lstat().st_ino, place.lstat().st_mtime_ns)
    for option in ("--out", "--json", "--md"):
        done = forensics("analyze", "exp", option, "r.html", "--force", cwd=tmp_path)
        assert done.returncode == 1 and "r.html" in done.stderr
    assert (
        (place.lstat().st_mode, place.lstat().st_ino, place.lstat().st_mtime_ns) == before
        and (tmp_path / "precious").read_text() == "mine"
        and not (tmp_path / "nowhere").exists()
    )


def test_a_report_in_the_folder_is_not_read_as_a_log(tmp_path: Path) -> None:
    folder = run(tmp_path / "exp")
    told = []
    for _ in range(3):
        assert forensics("analyze", ".", "--md", "exp.md", "--force", cwd=folder).returncode == 0
        told.append(case(folder / "exp.case.json"))
    assert told[0]["run"]["records"] == told[2]["run"]["records"] and told[0]["hypotheses"] == told[2]["hypotheses"]  # type: ignore[index]
    assert forensics("audit", ".", "--out", "audit", cwd=folder).returncode == 0
    assert forensics("analyze", ".", "--force", cwd=folder).returncode == 0
    again = case(folder / "exp.case.json")
    assert again["run"]["records"] == told[0]["run"]["records"] and not [
        s for s in again["sources"] if s["records"] and s["path"] not in ("log.jsonl", "config.json")
    ]  # type: ignore[index,attr-defined]


def test_an_audit_removes_and_replaces_only_what_it_wrote(tmp_path: Path) -> None:
    for n in range(3):
        run(tmp_path / "data" / f"r{n}", n)
    mine = {
        "runs/paper.html": "<p>mine</p>",
        "runs/thesis.case.json": "{}",
        "runs/r1.html": "my notes on r1",
        "notes.md": "x",
        ".audit/rows/keep.jsonl": "{}",
        ".audit/own.txt": "y",
    }
    for name, text in mine.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for options in ((), ("--force",), ("--resume",), ("--force", "--limit", "1")):
        done = forensics("audit", "data", "--out", ".", "--jobs", "1", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "r1" in done.stderr or "--limit" in options
        assert {n: (tmp_path / n).read_text() for n in mine} == mine
    assert (tmp_path / "runs" / "r0.html").exists() and not (tmp_path / "runs" / "r2.html").exists()


@pytest.mark.parametrize("name", ["index.html", "audit.json", "audit.parquet", "summary.md"])
def test_an_audit_does_not_replace_a_page_of_the_user(tmp_path: Path, name: str) -> None:
    run(tmp_path / "data" / "r0")
    (tmp_path / name).write_text("mine")
    for options in (("--force",), ("--resume",)):
        assert forensics("audit", "data", "--out", ".", "--jobs", "1", *options, cwd=tmp_path).returncode == 1
    assert (tmp_path / name).read_text() == "mine" and sorted(p.name for p in tmp_path.iterdir()) == sorted(["data", name])


def test_notes_in_an_audit_stay_with_their_run(tmp_path: Path) -> None:
    for n in range(2):
        run(tmp_path / "data" / f"r{n}", n)
    assert forensics("audit", "data", "--out", "a", cwd=tmp_path).returncode == 0
    assert forensics("note", "a/runs/r0.case.json", "--add", "seen", cwd=tmp_path).returncode == 0
    assert forensics("audit", "data", "--out", "a", "--force", cwd=tmp_path).returncode == 0
    assert case(tmp_path / "a" / "runs" / "r0.case.json")["notes"] == [{"text": "seen"}]
    assert forensics("audit", "data/r1", "--out", "a", "--force", cwd=tmp_path).returncode == 0
    assert case(tmp_path / "a" / "runs" / "r0.case.json")["notes"] == [{"text": "seen"}]
    assert forensics("audit", "data", "--out", "a", "--force", "--redact", cwd=tmp_path).returncode == 1


def test_an_output_is_none_of_the_other_inputs(tmp_path: Path) -> None:
    run(tmp_path / "exp", 1), run(tmp_path / "good", 2)
    assert forensics("analyze", "exp", "--out", "r.html", cwd=tmp_path).returncode == 0
    (tmp_path / "batches.jsonl").write_text("".join(json.dumps({"step": s, "sample_ids": [s]}) + "\n" for s in range(300)))
    (tmp_path / "adapter.py").write_text("raise SystemExit\n")
    before = seen(tmp_path)
    for arguments in (
        ("note", "r.case.json", "--add", "x", "--out", "r.case.json"), ("note", "r.case.json", "--add", "x", "--out", "./r.case.json"),
        ("render", "r.case.json", "--md", "r.case.json"), ("analyze", "exp", "--batches", "batches.jsonl", "--out", "batches.jsonl"),
        ("analyze", "exp", "--baseline", "good", "--md", "good/log.jsonl"), ("replay", "exp", "--adapter", "adapter.py", "--out", "adapter.py"),
    ):  # fmt: skip
        assert forensics(*arguments, "--force", cwd=tmp_path).returncode == 1, arguments
        assert seen(tmp_path) == before, arguments


@pytest.mark.parametrize(("option", "length"), [("--out", 251), ("--out", 256), ("--json", 256), ("--md", 5000)])
def test_a_name_that_is_too_long_leaves_nothing(tmp_path: Path, option: str, length: int) -> None:
    run(tmp_path / "exp")
    done = forensics("analyze", "exp", option, "n" * length, cwd=tmp_path)
    left = [p.name for p in tmp_path.iterdir() if p.name != "exp"]
    assert left == [] if done.returncode else len(left) >= 2
    assert length < 256 or done.returncode == 1


def test_links_in_a_circle_are_no_reason_to_stop(tmp_path: Path) -> None:
    run(tmp_path / "exp")
    for name in (".metadata", "model.safetensors.index.json", "trainer_state.json", "latest", "train.py", "forensics.toml"):
        (tmp_path / "exp" / name).symlink_to(name)
    assert forensics("analyze", "exp", cwd=tmp_path).returncode == 0


def test_of_two_reports_at_once_under_one_name_one_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a", 1), run(tmp_path / "b", 2)
    children = [
        subprocess.Popen(
            [*COMMAND, "analyze", r, "--out", "r.html"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for r in "ab"
    ]
    assert sorted(c.wait(120) for c in children) == [0, 1]


def test_an_audit_writes_through_no_link(tmp_path: Path) -> None:
    run(tmp_path / "data")
    (tmp_path / "mine").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "runs").symlink_to("../mine")
    assert forensics("audit", "data", "--out", "out", "--force", cwd=tmp_path).returncode == 1
    assert list((tmp_path / "mine").iterdir()) == []
