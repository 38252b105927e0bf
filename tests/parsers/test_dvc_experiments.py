"""Experiments of DVC in git: those that the workspace has forgotten are runs of their own, read without git."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest

import parsers
from parsers.records import git_objects


def put(git: Path, kind: str, data: bytes) -> str:
    """A loose object, as git writes it."""
    whole = f"{kind} {len(data)}\0".encode() + data
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = git / "objects" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def tree(git: Path, entries: dict[str, tuple[str, str]]) -> str:
    return put(git, "tree", b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(of) for name, (mode, of) in entries.items()))


def experiment(root: Path, name: str, lr: float) -> dict[str, str]:
    """A commit with a dvclive folder and its ref; -> the folder's files."""
    git = root / ".git"
    files = {
        "plots/metrics/train/loss.tsv": "step\tloss\n" + "".join(f"{i}\t{3 - i * lr}\n" for i in range(20)),
        "params.yaml": f"lr: {lr}\n",
    }
    loss, params = (put(git, "blob", text.encode()) for text in files.values())
    inner = tree(git, {"metrics": ("40000", tree(git, {"train": ("40000", tree(git, {"loss.tsv": ("100644", loss)}))}))})
    live = tree(git, {"params.yaml": ("100644", params), "plots": ("40000", inner), "../evil.tsv": ("100644", loss)})
    top = tree(git, {"dvclive": ("40000", live)})
    commit = put(git, "commit", f"tree {top}\nauthor a <a@b.c> 1 +0000\n\n{name}".encode())
    ref = git / "refs" / "exps" / "a3" / ("f" * 38) / name
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit + "\n")
    return files


def test_every_experiment_is_a_run_and_the_workspace_is_the_last(tmp_path: Path) -> None:
    experiment(tmp_path, "old-one", 0.01)
    for name, text in experiment(tmp_path, "new-one", 0.02).items():
        (tmp_path / "dvclive" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dvclive" / name).write_text(text)
    runs = parsers.read_all(tmp_path)
    found = {
        json.loads(next(c["value"] for c in r.tables["config"].to_pylist() if c["key"] == "lr")): [
            m["value"] for m in r.tables["metrics"].to_pylist()
        ]
        for r in runs
    }
    assert found == {lr: [3 - i * lr for i in range(20)] for lr in (0.01, 0.02)}
    assert {t for r in runs for t in r.tables["metrics"]["tag"].to_pylist()} == {"train/loss"}
    assert not list(tmp_path.rglob("evil.tsv"))


def test_a_packed_experiment_is_told_with_what_unpacks_it(tmp_path: Path) -> None:
    experiment(tmp_path, "old-one", 0.01)
    for path in (tmp_path / ".git" / "objects").glob("*/*"):
        path.unlink()
    (gap,) = parsers.read(tmp_path).gaps
    assert "git archive" in gap.what and gap.path.endswith("old-one")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 40, ""])
def test_names_that_are_no_object(tmp_path: Path, name: str) -> None:
    with pytest.raises(git_objects.Missing):
        git_objects.content(tmp_path, name, "blob")


def test_other_files_of_git_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text("a" * 40)
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.5}\n')
    assert [s.path for s in parsers.read(tmp_path).sources] == ["log.jsonl", ".git"]
