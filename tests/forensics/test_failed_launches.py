"""Launches that ended before their first step, in a log in which another one trained."""

from pathlib import Path

import pytest

import forensics

SCRIPT = 'Traceback (most recent call last):\n  File "/x/train.py", line 13, in <module>\n    main()\n{frame}ValueError: no such library\n'
DIED = SCRIPT.format(frame="")
LOOP = "".join(f"step {i} | loss {3 - i / 50:.4f}\n" for i in range(1, 60))
TOP = "Log file: /data/run{n}/train.log\nUsing device: cuda:{n}\nModel: U-Net\nParameters: 4,748,8{n}0\n"


def _told(folder: Path, text: str) -> list[str]:
    path = folder / "nohup.out"
    path.write_text(text)
    found = forensics.analyze(path).to_json()["findings"]
    assert all(f["steps"] == [None, None] for f in found if "ended before" in f["title"])  # they are of no step of the run
    return [f["title"] for f in found if f["kind"] == "restart" and f["severity"] == "info" and "ended before" in f["title"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DIED + DIED.replace("no such library", "no such file") + LOOP, "2 launches in this log ended before their first step: ValueError: no such library; "),
        (TOP.format(n=1) + LOOP + "Killed\n" + TOP.format(n=2) + "Killed\n", "1 launch in this log ended before its first step: Killed"),
        (DIED, ""),  # the run itself, whose ending is told
        ("--- Logging error ---\n" + DIED + LOOP, ""),  # caught
        (DIED.replace("<module>", "load") + LOOP, ""),  # caught where it was printed
        (DIED.replace("/x/train.py", "<string>") + LOOP, ""),  # a child's
        (LOOP + DIED, ""),
        (TOP.format(n=1) + LOOP + "Killed\n" + TOP.format(n=2) + LOOP + "Killed\n", ""),  # it trained
    ],
)  # fmt: skip
def test_launches_that_trained_nothing_are_told(tmp_path: Path, text: str, expected: str) -> None:
    told = _told(tmp_path, text)
    assert len(told) == bool(expected)
    assert not expected or told[0].startswith(expected)
