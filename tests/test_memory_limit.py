"""Where memory is limited a command ends with a result or with one sentence, never with an abort, a signal or a traceback."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forensics import memory_limit

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
WATCHED = "import os, sys, time; from forensics import memory_limit; memory_limit.watched(['analyze']); "


def limited(megabytes: int, *words: str) -> subprocess.Popen[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    command = [sys.executable, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)


@pytest.mark.parametrize(("verb", "megabytes"), [("analyze", 400), ("analyze", 760), ("analyze", 1500), ("audit", 400), ("audit", 760)])
def test_every_ceiling_gives_a_result_or_a_sentence(verb: str, megabytes: int, tmp_path: Path) -> None:
    run, out = SAMPLES / "bad_batch_jsonl", tmp_path / "out.html"
    done = limited(megabytes, "-m", "forensics", "-q", verb, str(run), "--out", str(out))
    _, errors = done.communicate()
    if done.returncode == 0:
        assert out.exists() and not errors
    else:
        assert done.returncode == 1
        assert errors.count("\n") == 1 and f"memory is limited to {megabytes} MB" in errors
    assert megabytes < memory_limit.LEAST >> 20 or done.returncode == 0


@pytest.mark.parametrize("death", ["os.abort()", "os._exit(1)", "os.kill(os.getpid(), 9)", "raise BaseException", "bytearray(1 << 30)"])
def test_the_death_of_a_library_is_told_in_a_sentence(death: str) -> None:
    done = limited(900, "-c", WATCHED + f"os.write(2, b'noise of a library'); {death}")
    out, errors = done.communicate()
    assert (done.returncode, out) == (1, "")
    assert errors.count("\n") == 1 and errors.startswith("forensics: memory is limited to 900 MB")


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_exit_codes_and_both_streams_pass(code: int) -> None:
    done = limited(900, "-c", WATCHED + f"print('result'); print('message', file=sys.stderr); sys.exit({code})")
    assert (*done.communicate(), done.returncode) == ("result\n", "message\n", code)


def test_a_signal_reaches_the_child() -> None:
    done = limited(900, "-c", WATCHED + "print(os.getpid(), flush=True); time.sleep(60)")
    assert done.stdout is not None
    worker = int(done.stdout.readline())
    done.send_signal(signal.SIGTERM)
    done.communicate(timeout=30)
    assert done.returncode == 128 + signal.SIGTERM
    assert worker != done.pid and not Path(f"/proc/{worker}").exists()


def test_without_a_limit_the_process_itself_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "limit", lambda: None)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a child was started"))
    memory_limit.watched(["analyze"])
    monkeypatch.setattr(memory_limit, "limit", lambda: memory_limit.LEAST)
    memory_limit.watched(["analyze", "--help"])
