"""What is no regular file is never opened, whichever way it is named: a named pipe, a socket, a device, a link to one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from forensics import output
from forensics.audits import suppressions
from forensics.checkpoints import tokenizer_files
from forensics.cli import main
from forensics.errors import ForensicsError
from forensics.replays import into_case
from parsers.records import data_sets, manifest
from parsers.walk import is_regular

SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "bad_batch_jsonl"
KINDS = ("fifo", "socket", "zero", "link_to_fifo", "link_to_zero", "loop")


def odd(path: Path, kind: str) -> Path:
    """Something odd at a path. Opening it waits, never ends, or fails."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # an address has 108 bytes
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
        os.chdir(here)
    elif kind == "zero":
        return Path("/dev/zero")
    elif kind == "link_to_fifo":
        path.symlink_to(odd(path.with_name("pipe"), "fifo"))
    else:
        path.symlink_to(path if kind == "loop" else "/dev/zero")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_odd_files_are_not_regular(kind: str, tmp_path: Path) -> None:
    assert not is_regular(odd(tmp_path / "x", kind))
    assert not is_regular(odd(tmp_path / "y", kind) if kind != "link_to_fifo" else tmp_path / "x", links=False)


def test_links_are_followed_as_far_as_they_are_asked_for(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out.txt"
    inside.mkdir()
    outside.write_text("x")
    (inside / "a").write_text("x")
    (inside / "near").symlink_to("a")
    (inside / "far").symlink_to(outside)
    (inside / "around").symlink_to(tmp_path)
    assert all(is_regular(inside / name) for name in ("a", "near", "far"))
    assert [is_regular(inside / name, links=False) for name in ("a", "near")] == [True, False]
    found = [is_regular(inside / name, below=inside) for name in ("a", "near", "far", "around/out.txt")]
    assert found == [True, True, False, False]
    assert not is_regular(inside) and not is_regular(inside / "nothing") and not is_regular(Path("a\0b"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "opens",
    [
        manifest.read,
        data_sets.open_data,
        output.saved_case,
        lambda p: suppressions.read_known(str(p)),
        lambda p: into_case.adapter_file(str(p)),
    ],
)
def test_what_is_named_is_refused_in_a_sentence(opens: Callable[[Path], object], kind: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError, ForensicsError, data_sets.Unreadable), match=r"(?s).") as raised:
        opens(odd(tmp_path / "odd.jsonl", kind))
    assert str(raised.value).strip()


@pytest.mark.parametrize("name", ["train.jsonl", "state.json"])
def test_a_link_out_of_a_data_set_is_not_followed(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"text": "mine", "_data_files": [{"filename": "a.jsonl"}]}\n')
    data = tmp_path / "data"
    data.mkdir()
    (data / name).symlink_to(tmp_path / "secret")
    with pytest.raises(data_sets.Unreadable):
        data_sets.open_data(data)
    (tmp_path / "named.jsonl").symlink_to(tmp_path / "secret")  # but a link that the user names is
    assert data_sets.open_data(tmp_path / "named.jsonl").rows == 1


def test_tokenizers_behind_links_out_of_a_checkpoint_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("{}")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x").symlink_to(tmp_path / "outside")
    (tmp_path / "b" / "x").write_text("[]")
    assert tokenizer_files._both(tmp_path / "a" / "x", tmp_path / "b" / "x") == (None, None)
    (tmp_path / "a" / "x").unlink()
    (tmp_path / "a" / "x").write_text("{}")
    assert tokenizer_files._both(tmp_path / "a" / "x", tmp_path / "b" / "x") == ({}, [])


@pytest.mark.parametrize("kind", ["fifo", "zero", "loop"])
@pytest.mark.parametrize(
    "words", [("batch", "{run}", "--step", "5", "--batches"), ("audit", "{run}", "--known"), ("audit", "{run}", "--since")]
)
def test_the_command_refuses_odd_files(words: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    named = str(odd(tmp_path / "odd", kind))
    out = ["--out", str(tmp_path / "out")] if words[0] == "audit" else []
    done = CliRunner().invoke(main, [w.replace("{run}", str(SAMPLE)) for w in words] + [named, *out])
    assert done.exit_code in (1, 2), done.output
    assert "bug in forensics" not in done.output and done.output.strip()
