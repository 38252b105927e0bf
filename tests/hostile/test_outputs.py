"""Outputs are whole or absent: killed at any moment, disk full, places that cannot be written."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forensics import output
from forensics.errors import ForensicsError
from hostile.case import lines

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "forensics"]


def command(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=env, **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log.jsonl").write_text(lines(0, 300))
    return folder


@pytest.mark.parametrize("limit", [0, 1, 1000, 20_000, 100_000])
def test_a_full_disk_leaves_nothing(run: Path, tmp_path: Path, limit: int) -> None:
    """A limit on the size of files fails writes as a full disk does (Python turns the signal into an error)."""
    out = tmp_path / "out"
    done = command("analyze", run, "--out", out / "r.html", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1 and "cannot write" in done.stderr and "Traceback" not in done.stderr
    assert list(out.glob("**/*")) == [] if out.exists() else True
    done = command("tables", run, "--out", out / "t", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (min(limit, 1000),) * 2))
    assert done.returncode == 1 and "cannot write" in done.stderr
    assert [p for p in out.glob("**/*") if p.is_file()] == []


@pytest.mark.parametrize("failing", ["write", "fchmod", "link", "replace", "mkstemp"])
@pytest.mark.parametrize("existing", [False, True])
def test_an_error_in_any_call_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, existing: bool) -> None:
    places = [tmp_path / "a.html", tmp_path / "b.json"]
    for place in places if existing else []:
        place.write_text("old")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    if failing in ("mkstemp", "write"):
        monkeypatch.setattr(output, "_unnamed", lambda folder: None)
    if failing == "mkstemp":
        monkeypatch.setattr("tempfile.mkstemp", refuse)
    elif failing == "write":
        monkeypatch.setattr(os, "fdopen", refuse)
    else:
        monkeypatch.setattr(os, failing, refuse)
        if failing == "replace" and not existing:
            monkeypatch.setattr(output, "_unnamed", lambda folder: None)
    with pytest.raises(ForensicsError, match="No space left"):
        output.write_all([(place, "new" * 1000) for place in places])
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == (["a.html", "b.json"] if existing else [])
    assert all(place.read_text() == "old" for place in places if existing)


@pytest.mark.parametrize("unnamed", [True, False])
def test_both_ways_of_writing_replace_and_create(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    if not unnamed:
        monkeypatch.setattr(output, "_unnamed", lambda folder: None)
    place = tmp_path / "deep" / ("n" * 200)
    for text in ("one", "two \udcff \U0001f4a5"):
        output.write(place, text)
        assert place.read_bytes() == text.encode("utf-8", "backslashreplace")
    assert [p.name for p in place.parent.iterdir()] == [place.name]
    umask = os.umask(0)
    os.umask(umask)
    assert place.stat().st_mode & 0o777 == 0o666 & ~umask


def test_killed_at_any_moment(run: Path, tmp_path: Path) -> None:
    """SIGKILL at twelve moments over the time that the command takes: each output is there and whole, or not there."""
    began = time.monotonic()
    assert command("analyze", run, "--out", tmp_path / "whole" / "r.html").returncode == 0
    takes = time.monotonic() - began
    rng = random.Random(1)
    for n in range(12):
        out = tmp_path / f"out{n}"
        child = subprocess.Popen([*COMMAND, "analyze", str(run), "--out", str(out / "r.html")], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        try:
            child.wait(takes * (0.7 + 0.5 * rng.random()))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
        for path in out.glob("*") if out.exists() else ():
            text = path.read_text()
            assert path.name in ("r.html", "r.case.json"), path.name
            assert text.rstrip().endswith("</html>") if path.suffix == ".html" else json.loads(text)["schema"] == 1


def test_killed_while_writing(tmp_path: Path) -> None:
    """A child that writes the same megabytes over and over is killed again and again: the file is always one of its own."""
    place = tmp_path / "x.html"
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom pathlib import Path\nfrom forensics import output\n"
        f"i = 0\nwhile True:\n    i += 1\n    output.write(Path({str(place)!r}), (str(i % 10) * 3_000_000) + 'end')\n    print(i, flush=True)\n"
    )
    rng = random.Random(2)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert child.stdout and child.stdout.readline()
        time.sleep(rng.random() * 0.05)
        child.kill()
        child.wait()
        child.stdout.close()
        text = place.read_text()
        assert len(text) == 3_000_003 and text.endswith("end") and len(set(text[:-3])) == 1
        assert len([p for p in tmp_path.iterdir() if p != place]) <= 8  # at most the name of a moment, never a part under its own


@pytest.mark.parametrize("place", ["folder", "below_a_file", "missing/deep/r.html", "long", "null_device"])
def test_places_that_cannot_be_written(run: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    paths = {"below_a_file": "file/x/r.html", "long": "x" * 300 + ".html", "null_device": "/dev/null/r.html"}
    done = command("analyze", run, "--out", paths.get(place, place), cwd=tmp_path)
    assert done.returncode == (0 if place.startswith("missing") else 1)
    assert "Traceback" not in done.stderr and "bug in forensics" not in done.stderr
    assert done.returncode == 0 or done.stderr.count("\n") <= 3
    done = command("analyze", run, "--out", "folder", "--force", cwd=tmp_path)
    assert done.returncode == 1 and "bug in forensics" not in done.stderr and list((tmp_path / "folder").iterdir()) == []


def test_output_that_nobody_takes(run: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "analyze", str(run), "--out", str(tmp_path / "r.html")], stdout=full, stderr=subprocess.PIPE,
                              text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert "Traceback" not in done.stderr and done.returncode in (1, 120)
    assert (tmp_path / "r.html").read_text().rstrip().endswith("</html>")


def test_the_current_folder_is_never_imported(tmp_path: Path) -> None:
    """`python -m` puts it first on the path; a run folder may hold modules of any name."""
    (tmp_path / "log.jsonl").write_text(lines(0, 50))
    for name in ("click", "json", "pyarrow", "numpy", "jinja2", "yaml", "sitecustomize", "tomllib", "pandas", "orjson", "platform"):
        (tmp_path / f"{name}.py").write_text("open('EXECUTED', 'w')\nraise SystemExit('imported')\n")
    done = command("analyze", ".", "--out", "r.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "EXECUTED").exists()


@pytest.mark.parametrize("verb", [("--help",), ("--version",), ("explain",), ("analyze", "--help")])
def test_words_that_nobody_takes(verb: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *verb], stdout=full, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert "Traceback" not in done.stderr and done.returncode in (1, 120)


def test_streams_that_are_closed(run: Path, tmp_path: Path) -> None:
    for number, streams in enumerate((">&-", "2>&-", ">&- 2>&-", "<&-")):
        line = f"{sys.executable} -m forensics analyze {run} --out {tmp_path}/{number}.html {streams}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0 and done.stderr == "" and (tmp_path / f"{number}.html").exists()
