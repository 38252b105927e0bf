"""`--redact` and hidden characters through the real commands: everything that is written and printed."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "forensics"]
SECRETS = ("benedikta", "marmot-17", "10.66.7.8", "fd77:1::42", "orcalab", "/lustre", "3c:ec:ef:aa", "5f60-7182", "b.kranz")
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
UNSEEN = "\x1b]52;c;eHg=\x07\x1b[31m\x9b2J\u202egnp\u2066\u200b\u00ad\u034f\u115f\u3164\u180e\ufeff\ufff9\U000e0041\U000e0101\u2028"


def private(folder: Path, name: str = "benedikta-run7", bump: int = 0) -> Path:
    """A run that tells its host, its user and its places in every kind of file, and spikes at step 150."""
    run, rng = folder / name, random.Random(7 + bump)
    run.mkdir(parents=True)
    rows = [{"step": s, "loss": (9.0 if 150 <= s < 160 else 2.5 - s / 400) + rng.gauss(0, 0.02), "lr": 1e-3} for s in range(300)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (run / "config.json").write_text(
        json.dumps(
            {"hostname": "marmot-17", "user": "benedikta", "data": "/lustre/orcalab/corpus.bin", "lr": 1e-3, "hosts": {"marmot-17": 8}}
        )
    )
    (run / "train.log").write_text(
        "benedikta@marmot-17:/lustre/orcalab$ torchrun train.py\nmarmot-17:4242:4242 [0] NCCL WARN Connect to 10.66.7.8<4> failed\n"
        "ERROR: marmot-17 fd77:1::42 mac 3c:ec:ef:aa:bb:cc GPU-4fc1f9d8-1b2c-3d4e-5f60-718293a4b5c6 mail b.kranz@orcalab.example\n"
        'Traceback (most recent call last):\n  File "/lustre/orcalab/x/train.py", line 5, in main\nRuntimeError: benedikta cannot reach https://git.orcalab.example/benedikta/x\n'
    )
    return run


def forensics(*args: object, cwd: Path, code: int = 0) -> str:
    p = subprocess.run(
        [*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "200"}
    )
    assert p.returncode == code, p.stdout + p.stderr
    return p.stdout + p.stderr


def told(folder: Path) -> str:
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return "\n".join([*(p.relative_to(folder).as_posix() for p in files), *(p.read_bytes().decode("utf-8", "replace") for p in files)])


def held(text: str, folder: Path, but: tuple[str, ...] = ()) -> None:
    for secret in {*SECRETS, str(folder)} - {*but}:
        at = text.casefold().find(secret.casefold())
        assert at < 0, text[max(at - 100, 0) : at + 60]


def test_analyze_note_and_render_hide_names_in_all_they_write_and_print(tmp_path: Path) -> None:
    run, out = private(tmp_path / "in"), tmp_path / "out"
    out.mkdir()
    plain = forensics("analyze", run, "--out", "../plain.html", "--md", "../plain.md", cwd=out)
    before = json.loads((tmp_path / "plain.case.json").read_text())
    printed = forensics("analyze", run, "--redact", "--md", "x.md", cwd=out)
    held(printed + told(out), tmp_path)
    assert "report: user-1-run7.html" in printed and "report: " in plain
    case = json.loads((out / "user-1-run7.case.json").read_text())
    assert (case["verdict"], case["timeline"]["series"]) == (before["verdict"], before["timeline"]["series"])
    assert [(h["id"], h["probability"]) for h in case["hypotheses"]] == [(h["id"], h["probability"]) for h in before["hypotheses"]]
    page, markdown = (out / "user-1-run7.html").read_text(), (out / "x.md").read_text()
    for text in (page, markdown):
        assert "free text may still name" in text and "host-1" in text
    assert "&lt;host-1&gt;" in page
    assert "free text may still name" not in (tmp_path / "plain.html").read_text()
    forensics("note", "user-1-run7.case.json", "--add", "seen at /lustre/orcalab/x.py by b.kranz@orcalab.example", cwd=out)
    held(told(out), tmp_path)
    forensics("render", "../plain.case.json", "--redact", "--out", "again.html", "--md", "again.md", cwd=out)
    held(told(out), tmp_path, but=("benedikta",))  # only the run's own files say that this part of its name is a user
    # again: its own earlier report may be replaced, and keeps the author's word
    held(forensics("analyze", run, "--redact", cwd=out), tmp_path)
    assert "x.py by" in (out / "user-1-run7.html").read_text()


def test_what_an_error_says_is_hidden_too(tmp_path: Path) -> None:
    held(forensics("--debug", "analyze", "/lustre/orcalab/nowhere", "--redact", cwd=tmp_path, code=1), tmp_path)
    run = private(tmp_path / "home" / "benedikta")
    (tmp_path / "taken.html").write_text("mine")
    held(forensics("analyze", run, "--redact", "--out", tmp_path / "taken.html", cwd=tmp_path, code=1), tmp_path)


def test_compare_hides_names_of_both_runs(tmp_path: Path) -> None:
    a, b = private(tmp_path / "in"), private(tmp_path / "in", "of-marmot-17", 1)
    out = tmp_path / "out"
    out.mkdir()
    held(forensics("compare", a, b, "--redact", "--json", "c.json", cwd=out) + told(out), tmp_path)
    assert "free text may still name" in (out / "user-1-run7-of-host-1.html").read_text()


def test_audit_hides_names_in_ids_files_pages_and_tables(tmp_path: Path) -> None:
    for i in range(3):
        private(tmp_path / "in" / "benedikta" / f"marmot-17-{i}", bump=i)
    out = tmp_path / "out"
    out.mkdir()
    held(forensics("audit", tmp_path / "in", "--out", "a", "--redact", "--jobs", 1, cwd=out) + told(out), tmp_path)
    assert len(list((out / "a" / "runs").glob("*.html"))) == 3
    for name in ("index.html", "summary.md", "audit.json"):
        assert "free text may still name" in (out / "a" / name).read_text()
    pages = [json.loads(p.read_text()) for p in (out / "a" / "runs").glob("*.case.json")]
    assert {"<host-1>"} == {h for c in pages for h in re.findall(r"<host-\S+?>", json.dumps(c)) if "WARN" not in h and "-1>" in h}


def test_nothing_of_a_run_steers_a_page_a_terminal_or_its_own_json(tmp_path: Path) -> None:
    run = private(tmp_path, "r" + UNSEEN.replace("\x9b", "").replace("/", ""))
    (run / "train.log").write_text(f"ERROR: {UNSEEN} step 3\nRuntimeError: CUDA error: {UNSEEN}\n")
    printed = forensics("--debug", "analyze", run, "--out", "x.html", "--md", "x.md", cwd=tmp_path)
    printed += forensics("--debug", "audit", run, "--out", "a", "--jobs", 1, cwd=tmp_path)
    printed += forensics("--debug", "compare", run, run, "--out", "c.html", cwd=tmp_path)
    printed += forensics("--debug", "batch", run, "--step", 3, "--json", cwd=tmp_path) + forensics("batch", run, "--step", 3, cwd=tmp_path)
    printed += forensics("--debug", "analyze", run / ("no" + UNSEEN), cwd=tmp_path, code=1) + forensics(
        "note", run / "no\x1b[1m", "--add", "x", cwd=tmp_path, code=2
    )
    printed += forensics("--debug", "checkpoint", run / "metrics.jsonl", cwd=tmp_path, code=1)
    assert not STEERS.search(printed), ascii(printed[STEERS.search(printed).start() - 80 :][:200])  # type: ignore[union-attr]
    assert not STEERS.search((tmp_path / "x.md").read_text())
    for page in ("x.html", "c.html", "a/index.html", "a/summary.md"):
        body = re.sub(r"(?s)<(script|style).*?</\1>", "", (tmp_path / page).read_text())
        assert not STEERS.search(body), page


def test_a_file_name_does_not_steer_the_terminal_through_the_progress_bar() -> None:
    code = (
        "import time\nfrom forensics import progress\nfrom forensics.verbs.options import steady\nprogress.PATIENCE = 0.0\n"
        f"with progress.bar(shown_as=steady) as tick:\n    tick('a', 0, 3)\n    tick({UNSEEN[:9]!r}, 1, 3)\n    time.sleep(0.3)\n    tick({UNSEEN[20:24]!r}, 2, 3)\n    time.sleep(0.3)\n"
    )
    leader, follower = pty.openpty()
    p = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(follower)
    seen = b""
    while select.select([leader], [], [], 20)[0]:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        seen += data
    p.wait(20)
    text = seen.decode("utf-8", "replace")
    assert p.returncode == 0 and "\\x1b]52" in text and "\\u202e" in text
    own = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|[\r\n]", "", text)  # colours and movements of the bar itself
    assert not STEERS.search(own), ascii(own)


def test_the_word_of_visible_covers_what_unicode_draws_as_nothing() -> None:
    from reports.text_format import visible, visible_json

    for c in UNSEEN + "\u17b4\u180b\u2061\u206f\uffa0\ufe01\U0001d173\udc80":
        assert visible(f"a{c}b") != f"a{c}b" or c.isprintable(), ascii(c)
    assert json.loads(visible_json(json.dumps(UNSEEN + "\x7f", ensure_ascii=False))) == UNSEEN + "\x7f"
    assert visible("caf\u00e9 \u6f22\u5b57 \u2764\ufe0f \u2212 \t\n") == "caf\u00e9 \u6f22\u5b57 \u2764\ufe0f \u2212 \t\n"
    assert visible("a\ufe0f") == "a\\ufe0f"


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1.7e308, -5e-324])
def test_numbers_at_the_ends_of_a_float_cost_nothing(tmp_path: Path, value: float) -> None:
    run = tmp_path / "r"
    run.mkdir()
    rows = [
        {"step": s, "loss": value if s % 50 == 7 else 2.0 + s % 3, "lr": value, "val_loss": value, "grad_norm": value} for s in range(200)
    ]
    (run / "m.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    forensics("analyze", run, "--out", "x.html", cwd=tmp_path)
    assert [c["id"] for c in json.loads((tmp_path / "x.case.json").read_text())["checks"] if c["status"] == "error"] == []


def test_an_empty_output_is_a_sentence(tmp_path: Path) -> None:
    run = private(tmp_path)
    for verb in (("analyze", run), ("compare", run, run), ("audit", run)):
        said = forensics(*verb, "--out", "", cwd=tmp_path, code=2)
        assert "--out" in said and "bug in forensics" not in said
