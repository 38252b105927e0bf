"""Names in an archive or a store are data: none leads out of the folder that its files are copied to."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.case import lines

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = (
    "../up.jsonl",
    "../../../up.jsonl",
    "r0/../../up.jsonl",
    "./../up.jsonl",
    "/abs/up.jsonl",
    "r0//up.jsonl",
    "r0/./up.jsonl",
    "..",
    "r0/../up.jsonl",
    "x" * 300 + ".jsonl",
)
SOUND = ("r0/log.jsonl", "./r1/log.jsonl", "r2/a..b/log.jsonl")


def tar(path: Path, names: tuple[str, ...]) -> str:
    with tarfile.open(path, "w") as t:
        for name in names:
            info, data = tarfile.TarInfo(name), lines(0, 60).encode()
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
        for name, kind in (
            ("r0/link", tarfile.SYMTYPE),
            ("r0/hard", tarfile.LNKTYPE),
            ("r0/pipe", tarfile.FIFOTYPE),
            ("r0/zero", tarfile.CHRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            t.addfile(info)
    return f"tar://::{path}"


def zipped(path: Path, names: tuple[str, ...]) -> str:
    with zipfile.ZipFile(path, "w") as z:
        for name in names:
            z.writestr(name, lines(0, 60))
    return f"zip://::{path}"


def forensics(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(cwd / "tmp")}
    return subprocess.run([sys.executable, "-m", "forensics", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, env=env)


def everything(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


@pytest.mark.parametrize(("make", "told_of"), [(tar, 6), (zipped, 9)])  # fsspec itself drops the other names of a tar
def test_no_member_is_written_outside(tmp_path: Path, make: Callable[[Path, tuple[str, ...]], str], told_of: int) -> None:
    (tmp_path / "deep" / "cwd" / "tmp").mkdir(parents=True)
    url = make(tmp_path / "archive", (*OUTSIDE, *SOUND))
    before = everything(tmp_path)
    done = forensics("audit", url, "--out", "out", "--jobs", "1", cwd=tmp_path / "deep" / "cwd")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert [p for p in everything(tmp_path) if not p.startswith("deep/cwd/out")] == before
    told = json.loads((tmp_path / "deep" / "cwd" / "out" / "audit.json").read_text())
    assert len([f for f in told["failed"] if "leads out" in f["error"]]) >= told_of
    assert told["runs"] - len(told["failed"]) == len(SOUND)
    done = forensics("analyze", url, "--out", "r.html", cwd=tmp_path / "deep" / "cwd")
    assert done.returncode == 0, done.stderr
    case = json.loads((tmp_path / "deep" / "cwd" / "r.case.json").read_text())
    assert {g["path"] for g in case["gaps"] if "leads out" in g["what"]} <= set(OUTSIDE) and case["gaps"]
    assert case["run"]["records"]["scalars"] >= 60
    assert not list(tmp_path.rglob("up.jsonl"))


def test_a_damaged_archive_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    good = zipped(tmp_path / "a.zip", SOUND).removeprefix("zip://::")
    data = Path(good).read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])
    (tmp_path / "noise.tar").write_bytes(b"\1\2\3" * 999)
    flipped = bytearray(data)
    flipped[60] ^= 0xFF  # inside the first member
    (tmp_path / "flipped.zip").write_bytes(flipped)
    for url, code in (("zip://::cut.zip", 1), ("tar://::noise.tar", 1), ("zip://::nowhere.zip", 1), ("zip://::flipped.zip", 0)):
        done = forensics("analyze", url, "--out", f"{len(url)}.html", "--force", cwd=tmp_path)
        assert done.returncode == code and "Traceback" not in done.stderr and "mistake" not in done.stderr, (url, done.stderr)
        assert code == 0 or 1 <= done.stderr.count("\n") <= 3, done.stderr


def test_a_file_url_follows_no_link_out(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text(lines(0, 60, "stolen"))
    (tmp_path / "run").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text(lines(0, 60))
    (tmp_path / "run" / "other.jsonl").symlink_to(tmp_path / "secret.jsonl")
    done = forensics("analyze", f"file://{tmp_path}/run", "--out", "r.html", cwd=tmp_path)
    assert done.returncode == 0 and "stolen" not in (tmp_path / "r.case.json").read_text(), done.stderr
