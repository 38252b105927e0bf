"""Pickles of a few hundred bytes to a few megabytes that unfold without end where somebody asks for all of them."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from parsers import checkpoints

SECONDS = 20  # of CPU, on a slow machine, too; whole files take a tenth of one, what unfolds would take years


def doubled(times: int = 60) -> bytes:
    """A tuple of twice the tuple before, and so on; the last one is in memo 59."""
    return b"K\x01" + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(times))


LIST = b"]q\x00(" + b"K\x01" * 1_000_000 + b"e0"
BOMBS = {
    "value": b"}X\x01\x00\x00\x00a" + doubled() + b"s.",
    "key": b"}" + doubled() + b"K\x01s.",
    "device": b"ctorch\ndevice\n" + doubled() + b"R.",
    "class": b"ccopyreg\n_reconstructor\n" + doubled() + b"h\x3bK\x01\x87R.",
    "type": b"ctorch._tensor\n_rebuild_from_type_v2\n(" + doubled() + b"h\x3bh\x3bK\x01tR.",
    "storage": b"(X\x07\x00\x00\x00storage" + doubled() + b"h\x3bh\x3bK\x01tQ.",
    "item": b"cfoo\nbar\n)R(" + doubled() + b"h\x3be.",
    "state": b"cfoo\nbar\n)R" + doubled() + b"b.",
    "copies_of_a_list": LIST + b"(" + b"cbuiltins\nlist\nh\x00\x85R" * 5000 + b"l.",
    "arguments": LIST + b"(cfoo\nbar\nq\x01" + b"h\x01h\x00R" * 20_000 + b"l.",
    "a_list_met_often": LIST + b"(" + b"h\x00" * 600_000 + b"l.",
    "a_long_key_met_often": b"]q\x00(}X" + (1_000_000).to_bytes(4, "little") + b"k" * 1_000_000 + b"K\x01sq\x01" + b"h\x01" * 300_000 + b"e.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_listed_in_seconds(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"\x80\x04" + BOMBS[name])
    pid = os.fork()
    if pid == 0:  # a repr that unfolds heeds no signal but the last one
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            checkpoints.read(path)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
