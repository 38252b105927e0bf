"""Error records of PowerShell, broken at the width of its window."""

from __future__ import annotations

from pathlib import Path

from tests.parsers.test_console import log

WIDTH = 24
SAID = ["At line:1 char:1", "+ python train.py > log.txt 2>&1", "+ " + 50 * "~", "    + CategoryInfo", ""]
TRACE = ["Traceback (most recent call last):", '  File "train.py", line 58, in forward', "    y = torch.cat([a, b])"]
ERROR = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.53 GiB."


def broken(lines: list[str]) -> list[str]:
    return [line[i : i + WIDTH] for line in lines for i in range(0, max(len(line), 1), WIDTH)]


def test_an_error_is_read_whole(tmp_path: Path) -> None:
    own = ["step 1 loss 2.5 and a line of the program itself, which nobody breaks", "python.exe : Traceback"]
    tables, _, _ = log(tmp_path, "".join(f"{line}\r\n" for line in [*own, *broken([*SAID, *TRACE, ERROR])]).encode("utf-16"))
    (oom,) = (e for e in tables["events"] if e["kind"] == "oom")
    assert (oom["at"], " ".join(str(oom["text"]).split())) == (11, f"{ERROR} [train.py:58 in forward]")


def test_a_log_of_another_shell_is_left_as_it_is(tmp_path: Path) -> None:
    """Lines of equal length are broken by nobody where no record says so."""
    lines = "step 1 loss 2.50\nstep 2 loss 2.25\nstep 3 loss 2.00\n"
    tables, _, _ = log(tmp_path, f"At line:1 char:1\n\n{lines}")
    assert len(tables["metrics"]) == 3
