"""What an audit keeps of its runs, and what it leaves out: nothing is lost, doubled or passed over in silence."""

from __future__ import annotations

import json
import os
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest

from forensics import audits
from forensics.audits import discover, kept, listing, skipped, storage
from forensics.audits.discover import Place
from forensics.errors import ForensicsError

TEXT = audits.Outputs(str, str, str)
LOG = "".join(json.dumps({"step": i, "loss": 2.0 - i / 50}) + "\n" for i in range(40))


def places(count: int, stamp: str = "a") -> list[Place]:
    return [Place("/runs", "", f"r{i}", f"r{i}", (f"r{i}/log",), stamp) for i in range(count)]


def records(name: str) -> list[dict[str, Any]]:
    return [{"row": {"id": name}}]


@pytest.mark.parametrize("out", ["here", "memory://kept"])
def test_parts_that_are_many_or_old_are_put_together_and_nothing_is_lost(out: str, tmp_path: Path) -> None:
    out = str(tmp_path / out) if "://" not in out else f"{out}/{tmp_path.name}"
    asked, others = places(40), [Place("/runs", "", "gone", "gone", ("gone/log",), "a")]
    for stamp in ("old", "older", "a"):
        for i, place in enumerate([*places(40, stamp), *others]):
            (mirror := tmp_path / f"{stamp}{i}").mkdir()
            held = kept.Kept(out, mirror)
            held.add(kept.line(place, records(f"{place.name} {place.stamp}")))
            held.flush()
    (tmp_path / "last").mkdir()
    held = kept.Kept(out, tmp_path / "last")
    assert all(map(held.has, asked)) and len(held.parts) == 123
    held.tidy()
    assert len(storage.names(out, kept.ROWS)) == 1
    (tmp_path / "again").mkdir()
    again = kept.Kept(out, tmp_path / "again")
    assert [again.of(p) for p in asked] == [records(f"r{i} a") for i in range(40)]
    assert again.of(others[0]) == records("gone a"), "a place of a larger audit stays"
    assert [again.of(p) for p in places(40, "old")] == [None] * 40


def test_a_line_that_was_cut_or_edited_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    held = kept.Kept(str(tmp_path), tmp_path)
    for place in places(3):
        held.add(kept.line(place, records(place.name)))
    held.flush()
    (part,) = (tmp_path / kept.ROWS).iterdir()
    lines = part.read_text().splitlines(keepends=True)
    part.write_text(lines[0] + lines[1].replace('"records"', '"record"') + lines[2][:-5])
    again = kept.Kept(str(tmp_path), tmp_path)
    assert [again.of(p) for p in places(3)] == [records("r0"), None, None]
    assert [again.has(p) for p in places(3)] == [True, False, False], "they are analyzed again"


@pytest.mark.parametrize("url", ["file://{}", "memory://race/{}"])
def test_many_writers_of_one_file_leave_one_whole_file(url: str, tmp_path: Path) -> None:
    out = url.format(tmp_path).replace("///", "//" if "memory" in url else "///")
    texts = [str(i) * 1000 for i in range(50)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda text: storage.write(out, "x/one", text), texts))
    assert (storage.read(out, "x/one") or b"").decode() in texts
    assert storage.names(out, "x") == ["one"]
    fs, base = fsspec.core.url_to_fs(out)
    assert [n.rsplit("/", 1)[-1] for n in fs.ls(f"{base}/x", detail=False)] == ["one"], "no part stays behind"


def test_a_store_that_does_not_answer_is_asked_again_and_one_that_refuses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    whole, errors, waited = MemoryFileSystem.pipe_file, [OSError("slow down"), OSError("slow down")], []
    monkeypatch.setattr("time.sleep", waited.append)

    def flaky(self: Any, path: str, value: bytes, **options: Any) -> Any:
        if errors:
            raise errors.pop()
        return whole(self, path, value, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", flaky)
    storage.write("memory://flaky", "x", "text")
    assert storage.read("memory://flaky", "x") == b"text" and waited == list(storage.WAITS[:2])
    errors.append(PermissionError("no"))
    with pytest.raises(ForensicsError, match="cannot write"):
        storage.write("memory://flaky", "x", "text")
    assert waited == list(storage.WAITS[:2])


def test_what_has_not_changed_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        (tmp_path / f"runs/r{i}").mkdir(parents=True)
        (tmp_path / f"runs/r{i}/log.jsonl").write_text(LOG)
    audits.audit([str(tmp_path / "runs")], str(tmp_path / "o"), TEXT, audits.Options(engine="here"))
    (tmp_path / "runs/r1/log.jsonl").write_text(LOG + LOG)
    opened: list[str] = []
    monkeypatch.setattr(listing, "_head", lambda path, plain=listing._head: opened.append(path.parent.name) or plain(path))
    audits.audit([str(tmp_path / "runs")], str(tmp_path / "o"), TEXT, audits.Options(engine="here", resume=True))
    assert opened == ["r1"]
    (tmp_path / "o" / listing.SEEN).write_bytes(b"damaged")
    assert listing.remembered(str(tmp_path / "o")) == {}


def grow(folder: Path, rng: random.Random, depth: int = 0) -> None:
    """Files, pipes, sockets, links and folders of all kinds."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds: list[tuple[str, str | None]] = [
        ("log.jsonl", LOG), ("metrics.csv", "step,loss\n" + "".join(f"{i},{2 - i / 50}\n" for i in range(40))), ("config.yaml", "lr: 0.1\n"),
        ("data.csv", "name,age\nx,1\ny,2\n"), ("notes.txt", "hello"), ("empty.log", ""), ("all.zip", "PK\3\4 no archive"), ("img.png", "\x89PNG"),
        ("pipe", None), ("socket", None), ("broken", None), ("out", None), ("__pycache__", None), ("big.yaml", "a: 1\n" * 300_000),
    ]  # fmt: skip
    for name, text in rng.sample(kinds, rng.randrange(5)):
        path = folder / name
        if text is not None:
            path.write_text(text)
        elif name == "pipe":
            os.mkfifo(path)
        elif name == "socket":
            here = Path.cwd()
            os.chdir(folder)  # the path of a socket may have a hundred bytes
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(name)
            os.chdir(here)
        elif name == "__pycache__":
            path.mkdir()
            (path / "x.pyc").write_text("x")
        else:
            path.symlink_to("/etc/hosts" if name == "out" else "nowhere")
    for i in range(rng.randrange(4) if depth < 3 else 0):
        grow(folder / f"d{i}", rng, depth + 1)


@pytest.mark.parametrize("seed", range(12))
def test_every_path_is_in_a_row_or_skipped_with_a_reason(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    grow(root, random.Random(seed))
    (root / "sure").mkdir()
    (root / "sure" / "log.jsonl").write_text(LOG)
    (root / "images").mkdir()
    for i in range(20):
        (root / "images" / f"{i}.png").write_text("x")
    told = audits.audit([str(root)], str(tmp_path / "o"), TEXT, audits.Options(engine="here"))["skipped"]
    rows = {r["path"] for r in audits.audit([str(root)], str(tmp_path / "o"), TEXT, audits.Options(engine="here", resume=True))["rows"]}
    assert {"path": f"{root}/images/", "reason": "no log that can be read, and no run beside it", "files": 20} in told or str(root) in rows
    in_rows = {f"{root}/{f}" for p in discover.find([str(root)], "/nowhere") if f"{root}/{p.name}".rstrip("/") in rows for f in p.files}
    left = {t["path"] for t in told}
    assert all(t["reason"] and t["files"] for t in told)
    for folder, _, files in os.walk(root):
        for name in files:
            path = f"{folder}/{name}"
            above = {f"{p}/" for p in Path(path).parents} | set(map(str, Path(path).parents))
            assert path in in_rows or path in left or above & left, path
            assert not (path in in_rows and path in left), path


def test_folders_left_out_for_one_reason_are_one_entry() -> None:
    left = [skipped.Skipped("/r", f"data/a/{i}.png", "x") for i in range(12)] + [skipped.Skipped("/r", "data/b.txt", "y")]
    assert skipped.listed(left, []) == [
        {"path": "/r/data/a/", "reason": "x", "files": 12}, {"path": "/r/data/b.txt", "reason": "y", "files": 1}
    ]  # fmt: skip
    assert len(skipped.listed(left, [("/r", "data/a/run.log")])) == 13
    assert skipped.listed(left[:12], [("/r", "data/a/3.png")])[0]["path"] == "/r/data/a/0.png"


def test_a_run_in_the_folder_of_an_audit_is_audited_again(tmp_path: Path) -> None:
    (tmp_path / "a/run").mkdir(parents=True)
    (tmp_path / "a/run/log.jsonl").write_text("".join(f'{{"step": {i}, "loss": {3 - i / 100}}}\n' for i in range(60)))
    for _ in range(2):
        made = audits.audit([str(tmp_path)], str(tmp_path / "a"), TEXT, audits.Options(engine="here"))
        assert [r["path"].rpartition("/")[2] for r in made["rows"]] == ["run"] and made["skipped"] == []
