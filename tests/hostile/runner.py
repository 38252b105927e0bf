"""Runs the command on every case under limits of time and memory, and says which promises did not hold.

``python -m hostile.runner [--jobs N] [NAME...]`` prints one JSON line a case (a NAME is the beginning of one; --exactly
reads whole names from standard input). The process imports everything once and
forks for each case: a child that is killed, hangs or eats its memory costs itself. A second child looks at what the
first one left, so that the parent never opens what a case made.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hostile import checks
from hostile.case import Case

ROOT = Path(__file__).resolve().parents[2]
ADDRESS_SPACE = 6 << 30  # bytes; Arrow and polars reserve much that they never touch


def main() -> None:
    arguments, jobs = sys.argv[1:], 1
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    from hostile import corpus

    wanted = corpus.cases()
    if arguments == ["--exactly"]:
        names = set(sys.stdin.read().splitlines())
        wanted = [c for c in wanted if c.name in names]
    elif arguments:
        wanted = [c for c in wanted if c.name.startswith(tuple(arguments))]
    prime()
    workers = []
    for i in range(jobs):
        pid = os.fork()
        if pid == 0:
            for case in wanted[i::jobs]:
                sys.stdout.write(json.dumps(held(case)) + "\n"), sys.stdout.flush()  # one write: the others print as well
            os._exit(0)
        workers.append(pid)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers))


def prime() -> None:
    """Everything that the command imports, once. Nothing runs in a thread pool yet: these do not survive a fork."""
    import polars
    import pyarrow.dataset
    import pyarrow.parquet
    import yaml

    import parsers
    from forensics import cli, output, redact, rules
    from forensics.causes.files import causes
    from forensics.causes.weigh import weights
    from forensics.signs.sign import looks
    from reports import html, markdown, terminal

    parsers.modules()
    rules.detectors(), rules.further_causes(), looks(), causes(), weights()
    html.render({})  # compiles the templates
    assert all((polars, pyarrow.dataset, pyarrow.parquet, yaml, cli, output, redact, markdown, terminal))


def held(case: Case, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What became of a case: its name, the promises broken (a sentence each), seconds and megabytes."""
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        run = work / "in" / "run"
        for folder in (run, work / "out", work / "cwd", work / "tmp", work / "home"):
            folder.mkdir(parents=True)
        case.build(run)
        target = work / "in" / case.target if case.target else run
        before = checks.snapshot(work / "in")
        status, usage = forked(lambda: _command(case, target, work), case, run)
        after = checks.snapshot(work / "in")
        broken = [] if case.grow or before == after else [f"inputs changed: {checks.difference(before, after)}"]
        if os.WIFSIGNALED(status):
            broken.append(f"killed by signal {os.WTERMSIG(status)} (after {usage.ru_utime + usage.ru_stime:.1f} s of CPU)")
        megabytes = usage.ru_maxrss // 1024
        if megabytes > case.megabytes:
            broken.append(f"{megabytes} MB resident")
        if not os.WIFSIGNALED(status):
            forked(lambda: checks.look(case, work), Case("look", lambda _: None), run)
            verdict = work / "broken.json"
            broken += json.loads(verdict.read_text()) if verdict.exists() else ["the check itself broke off"]
        return {"name": case.name, "broken": broken, "seconds": round(time.monotonic() - began, 2),
                "cpu": round(usage.ru_utime + usage.ru_stime, 2), "mb": megabytes}  # fmt: skip
    except Exception as e:
        return {"name": case.name, "broken": [f"runner: {type(e).__name__}: {e}"], "seconds": 0, "cpu": 0, "mb": 0}
    finally:
        _remove(work)


def forked(task: Any, case: Case, run: Path) -> tuple[int, resource.struct_rusage]:
    """The task in a child under the case's limits -> wait status and usage. The run grows meanwhile, where it should."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (case.seconds, case.seconds + 1))
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            code = task()
        finally:
            os._exit(code)
    end = time.monotonic() + 5 * case.seconds  # the clock is generous, for the machine may be busy; CPU is not
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > end:
            os.kill(pid, 9)
        if case.grow:
            case.grow(run)
        time.sleep(0.005)


def _command(case: Case, target: Path, work: Path) -> int:
    """The case's verbs, or ``analyze`` and ``tables``, as the command line runs them; exit codes into a file."""
    os.chdir(work / "cwd")
    os.environ |= {"HOME": str(work / "home"), "TMPDIR": str(work / "tmp"), "COLUMNS": "100"}
    tempfile.tempdir = None
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(work / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    out = work / "out"
    places = {"{in}": str(work / "in"), "{run}": str(target), "{out}": str(out)}
    codes = []
    for verb in case.verbs or _usual(case.options):
        if callable(verb):
            verb(out)
        else:
            codes.append(_verb(*(_placed(word, places) for word in verb)))
    (work / "codes").write_text(json.dumps(codes))
    return 0


def _usual(options: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return (("analyze", "{run}", "--out", "{out}/r.html", "--md", "{out}/r.md", *options), ("tables", "{run}", "--out", "{out}/tables"))


def _placed(word: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        word = word.replace(name, path)
    return word


def _verb(*arguments: str) -> int:
    if arguments[0] == "audit":  # it has workers of its own, who want a process that was started, not forked
        return subprocess.run([sys.executable, "-m", "forensics", *arguments], env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode
    from forensics.cli import main as command

    sys.argv = ["forensics", *arguments]
    try:
        command(prog_name="forensics")
    except SystemExit as e:
        return int(e.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _remove(work: Path) -> None:
    """Folders that are deeper than a path may be long need more than shutil knows."""
    subprocess.run(["chmod", "-R", "u+rwx", work], stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", work], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
