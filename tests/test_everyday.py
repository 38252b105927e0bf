"""What a person types every day: several runs, a pipe, options anywhere, names that were mistyped, defaults from a file, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from click.testing import CliRunner, Result

from forensics import cli, installation
from forensics.verbs.every_verb import first_sentence

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
COMMAND = [sys.executable, "-m", "forensics"]


def log(steps: int = 60, tag: str = "loss") -> str:
    return "".join(json.dumps({"step": s, tag: 2.0 - s / 100}) + "\n" for s in range(steps))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current and home folder, with two healthy runs of one name and a broken one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("home", "a/exp", "b/exp", "c"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a" / "exp" / "log.jsonl").write_text(log())
    (tmp_path / "b" / "exp" / "log.jsonl").write_text(log(70))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli.main, list(args), input=input)


def test_several_runs_on_one_line_get_a_page_each_and_a_bad_one_costs_itself(here: Path) -> None:
    done = run("analyze", "a/exp", "c", "b/exp")
    assert done.exit_code == 1 and "c: nothing readable" in done.stderr
    cases = [json.loads((here / name).read_text()) for name in ("exp.case.json", "exp-2.case.json")]
    assert [c["run"]["steps"] for c in cases] == [[0, 59], [0, 69]]
    for option, value in (("--out", "x"), ("--json", "x"), ("--md", "x"), ("--run", "x"), ("--format", "md")):
        refused = run("analyze", "a/exp", "b/exp", option, value)
        assert refused.exit_code == 2 and option in refused.stderr


def test_quiet_keeps_notices_back_wherever_it_stands(here: Path) -> None:
    assert run("analyze", "a/exp").exit_code == 0
    assert "exp.html and its case are of another run" in run("analyze", "b/exp").stderr
    for line in (("-q", "analyze", "b/exp"), ("analyze", "b/exp", "-q")):
        done = run(*line)
        assert (done.exit_code, done.stderr) == (0, "") and "report: exp-2.html" in done.stdout


def test_an_audit_replaces_none_by_default(here: Path) -> None:
    assert run("audit", "a", "--jobs", "1").exit_code == 0
    before = (here / "audit" / "audit.json").read_bytes()
    again = run("audit", "b", "--jobs", "1")
    assert again.exit_code == 1 and "audit holds an audit already" in again.stderr
    assert (here / "audit" / "audit.json").read_bytes() == before
    assert run("audit", "b", "--jobs", "1", "--force").exit_code == 0


def test_a_log_is_piped_in(here: Path) -> None:
    for text in (
        log(),
        "step,loss\n" + "".join(f"{s},{2 - s / 100}\n" for s in range(60)),
        "".join(f"step {s} loss {2 - s / 100:.3f}\n" for s in range(60)),
    ):
        done = run("analyze", "-", input=text)
        assert done.exit_code == 0, done.output
        case = json.loads((here / "stdin.case.json").read_text())
        assert case["run"]["path"] == "-" and case["run"]["metrics"]["loss.train"]["points"] == 60
        for old in here.glob("stdin*"):
            old.unlink()
    empty = run("analyze", "-", input="")
    assert empty.exit_code == 1 and "nothing readable" in empty.stderr


@pytest.mark.parametrize("args", [("--quiet", "analyze", "both"), ("analyze", "-q", "both"), ("analyze", "both", "--quiet")])
def test_quiet_stands_before_and_after_the_verb(here: Path, args: tuple[str, ...]) -> None:
    (here / "a").rename(here / "both")
    (here / "both" / "second").mkdir()
    (here / "both" / "second" / "log.csv").write_text(
        "step,loss,lr\n" + "".join(f"{s},{3 - s / 50 + s % 3 / 100},{s}\n" for s in range(80))
    )
    assert "second" in run("analyze", "both").stderr  # the other run, and the command that opens it
    assert run(*args).stderr == ""


def test_debug_stands_before_and_after_the_verb(here: Path) -> None:
    for args in (("--debug", "analyze", "nowhere"), ("analyze", "nowhere", "--debug")):
        assert "Traceback" in run(*args).stderr
    assert "Traceback" not in run("analyze", "nowhere").stderr


def test_the_help_shows_whole_sentences() -> None:
    text = " ".join(run("--help").output.split())
    for command in cli.main.commands.values():
        assert first_sentence(command.help) in text
    assert not re.search(r"\w\.\.\.(?= [a-z]+ {2,}|$)", run("--help").output, re.M)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("loss.trian=loss", "nearest: loss.train"),
        ("loss.train=los", "nearest: loss"),
        ("lr=zzz", "there are: loss"),
        ("zzz=loss", "zzz is not"),
    ],
)
def test_a_mistyped_metric_is_wrong_usage_and_the_nearest_is_named(here: Path, given: str, said: str) -> None:
    done = run("analyze", "a/exp", "--metric", given)
    assert done.exit_code == 2 and said in done.stderr and not (here / "exp.html").exists()


def test_a_mistyped_metric_in_a_file_is_an_error_at_home_and_a_gap_in_a_run(here: Path) -> None:
    (here / "a" / "exp" / "forensics.toml").write_text('[metrics]\n"loss.trian" = "loss"\n"grad.norm" = "los"\n')
    assert run("analyze", "a/exp").exit_code == 0
    gaps = [g["what"] for g in json.loads((here / "exp.case.json").read_text())["gaps"]]
    assert any("nearest: loss.train" in g for g in gaps) and any("nearest: loss)" in g for g in gaps)
    (here / "home" / "forensics.toml").write_text('[metrics]\n"loss.evla" = "x"\n')
    done = run("analyze", "b/exp")
    assert done.exit_code == 2 and "~/forensics.toml" in done.stderr and "nearest: loss.eval" in done.stderr
    assert run("audit", "b", "--jobs", "1", "-q").exit_code == 0  # it judges none of the runs by it, and goes on


def test_defaults_come_from_the_current_folder_and_are_told(here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.forensics]\nfail-on = "inconclusive"\n[tool.forensics.audit]\njobs = 1\n')
    (here / "a" / "exp" / "log.jsonl").write_text(log(2))
    done = run("analyze", "a/exp")
    assert done.exit_code == 3 and "pyproject.toml: --fail-on inconclusive" in done.stderr and "jobs" not in done.stderr
    assert run("--no-config", "analyze", "a/exp").exit_code == 0 == run("analyze", "a/exp", "--no-config").exit_code
    assert run("analyze", "a/exp", "--fail-on", "unhealthy").exit_code == 0  # what is typed goes before
    (here / "forensics.toml").write_text('[options]\nfail-on = "unhealthy"\nno-run-config = true\n')
    done = run("analyze", "a/exp")
    assert done.exit_code == 0 and "forensics.toml: --no-run-config" in done.stderr


@pytest.mark.parametrize(
    "line", ['out = "x.html"', "force = true", 'md = "x"', 'webhook = "http://x"', 'exec = "touch x"', "show-data = true"]
)
def test_a_file_names_no_output_no_command_and_replaces_nothing(here: Path, line: str) -> None:
    (here / "pyproject.toml").write_text(f"[tool.forensics]\n{line}\n")
    assert run("analyze", "a/exp", "-q").exit_code == 0 and run("watch", "a/exp", "--once", "-q").exit_code == 0
    assert sorted(p.name for p in here.iterdir() if p.is_file()) == ["exp.case.json", "exp.html", "pyproject.toml"]


def test_a_file_in_the_run_folder_sets_no_option(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here / "a" / "exp")
    (here / "a" / "exp" / "forensics.toml").write_text("[options]\nredact = true\n")
    done = run("analyze", ".")
    assert "its options are left out" in done.stderr and "redacted" not in json.loads(Path("exp.case.json").read_text())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.forensics\n", "not valid TOML"),
        ("[tool]\nforensics = 3\n", "is no table"),
        ("[tool.forensics]\nfial-on = 1\n", "nearest: fail-on"),
    ],
)
def test_a_damaged_file_costs_only_itself(here: Path, text: str, said: str) -> None:
    (here / "pyproject.toml").write_text(text)
    done = run("analyze", "a/exp")
    assert done.exit_code == 0 and said in done.stderr


def test_the_page_is_opened_in_the_browser(here: Path) -> None:
    (here / "browser").write_text('#!/bin/sh\necho "$1" > opened\n')
    (here / "browser").chmod(0o700)
    for args, page in (
        (("analyze", "a/exp"), "exp.html"),
        (("render", "exp.case.json", "--out", "r.html"), "r.html"),
        (("compare", "a/exp", "b/exp"), "exp-exp.html"),
    ):
        done = subprocess.run(
            [*COMMAND, *args, "--open"],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BROWSER": f"{here}/browser %s"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert (here / "opened").read_text().strip() == (here / page).as_uri()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_and_installed(here: Path, shell: str) -> None:
    printed = run("completion", shell)
    assert printed.exit_code == 0 and "_FORENSICS_COMPLETE" in printed.stdout
    place = Path(run("completion", shell, "--install").stdout.strip())
    assert place.is_relative_to(here / "home") and place.read_text().strip() == printed.stdout.strip()
    assert run("completion", shell, "--install").exit_code == 0  # a newer one of ours
    place.write_text("mine")
    assert run("completion", shell, "--install").exit_code == 1 and place.read_text() == "mine"


def test_a_shell_completes_verbs_options_and_paths(here: Path) -> None:
    def completed(words: str) -> str:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "_FORENSICS_COMPLETE": "bash_complete",
            "COMP_WORDS": f"forensics {words}",
            "COMP_CWORD": str(len(words.split())),
        }
        return subprocess.run(
            [sys.executable, "-c", "from forensics.cli import main; main(prog_name='forensics')"],
            cwd=here,
            env=env,
            capture_output=True,
            text=True,
        ).stdout

    assert completed("anal") == "plain,analyze\n"
    assert "plain,--fail-on" in completed("analyze --fail") and completed("analyze a") == "file,a\n"


def test_formats_are_listed_from_the_docstrings() -> None:
    text = " ".join(run("formats").output.split())
    assert "tensorboard TensorBoard event files (`events.out.tfevents.*`): scalars, histograms, text, hyperparameters." in text
    assert "nvidia-smi --query-gpu=timestamp,index,... --format=csv" in text


def test_audit_and_checkpoint_keep_to_their_schemas(here: Path) -> None:
    def schema(kind: str) -> jsonschema.Draft202012Validator:
        found = json.loads(run("schema", kind).stdout)
        jsonschema.Draft202012Validator.check_schema(found)
        return jsonschema.Draft202012Validator(found)

    for out, more in (("first", ("--history", "nights")), ("second", ("--since", "first", "--history", "nights"))):
        roots = [str(SAMPLES / name) for name in ("seeds_far_apart", "bad_batch_jsonl")]
        assert run("audit", *roots, "b", "--out", out, "--jobs", "2", "-q", *more).exit_code == 0
        document = json.loads((here / out / "audit.json").read_text())
        assert document["seed_groups"] and document["history"]["weeks"] and list(schema("audit").iter_errors(document)) == []
        rows = pl.read_parquet(here / out / "audit.parquet").to_dicts()
        of_a_row = schema("audit").evolve(schema=schema("audit").schema["$defs"]["row"])
        assert list(of_a_row.schema["properties"]) == list(rows[0]) and not [e for r in rows for e in of_a_row.iter_errors(r)]
    saves = sorted((SAMPLES / "bit_flip_tensorboard" / "checkpoints").iterdir())
    for paths in (saves[:1], saves[:2], saves[1:]):
        document = json.loads(run("checkpoint", *map(str, paths), "--json").stdout)
        assert document["tensors"] and list(schema("checkpoint").iter_errors(document)) == []
    assert [*schema("case").iter_errors({"schema": 2})] and [*schema("checkpoint").iter_errors(document | {"bytes": "many"})]


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "accelerator", lambda: {"torch": None, "devices": [], "says": "torch is not installed"})
    needs = ["click>=8.1", "numpy>=999", "h5py>=3; extra == 'hdf5'", 'nowhere-to-be-found; extra == "images"', "pytest>=8; extra == 'test'"]
    monkeypatch.setattr(installation.metadata, "requires", lambda name: needs)
    done = run("doctor")
    assert (
        done.exit_code == 1
        and "problem: numpy" in done.output
        and "missing: nowhere-to-be-found; pip install 'run-forensics[images]'" in done.output
    )
    found = json.loads(run("doctor", "--json").output)
    assert [p["ok"] for p in found["packages"]] == [True, False] and list(found["extras"]) == ["hdf5", "images"]
    monkeypatch.setattr(installation.metadata, "requires", lambda name: needs[:1])
    assert run("doctor").exit_code == 0


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="POSIX signals")
def test_ctrl_c_is_one_line_with_workers_too(here: Path) -> None:
    for n in range(200):
        (here / "many" / f"r{n}").mkdir(parents=True)
        (here / "many" / f"r{n}" / "log.jsonl").write_text(log(2000))
    p = subprocess.Popen(
        [*COMMAND, "audit", "many", "--jobs", "2"], cwd=here, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    rows = here / "audit" / ".audit" / "rows"
    while p.poll() is None and not (rows.exists() and any(rows.iterdir())):
        time.sleep(0.05)
    os.killpg(p.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    out, err = p.communicate(timeout=120)
    assert (p.returncode, out, err) == (130, "", "forensics: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze", "a/exp", "--out", "-"], "only what --format draws goes to standard output"),
        (["analyze", "a/exp", "--json", "-"], "only what --format draws goes to standard output"),
        (["compare", "a/exp", "b/exp", "--out", "-"], "only what --format draws goes to standard output"),
        (["analyze", "a/exp", "--out", "s3://bucket/x.html"], "give a local file"),
        (["compare", "a/exp", "b/exp", "--json", "s3://bucket/x.json"], "give a local file"),
        (["guard", "a/exp", "--out", "g.py"], "give --emit"),
    ],
)
def test_an_output_that_would_be_lost_is_refused(here: Path, arguments: list[str], said: str) -> None:
    before = sorted(here.rglob("*"))
    got = CliRunner().invoke(cli.main, arguments)
    assert got.exit_code == 2 and said in got.output
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("delay", [0.0, 0.3, 0.6])
def test_ctrl_c_in_a_terminal_is_heard_by_all_processes_and_told_once(here: Path, delay: float) -> None:
    for i in range(200):
        (here / f"many/r{i}").mkdir(parents=True)
        (here / f"many/r{i}/log.jsonl").write_text(log())
    p = subprocess.Popen([*COMMAND, "audit", "many", "--jobs", "2"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (here / "audit/.audit").exists() and p.poll() is None:  # the places are found, the workers begin
        time.sleep(0.01)
    time.sleep(delay)
    if p.poll() is None:
        os.killpg(p.pid, signal.SIGINT)
    told = p.communicate(timeout=60)[1]
    assert "Traceback" not in told and told.count("forensics: interrupted") == (p.returncode == 130)


def test_ctrl_c_in_code_that_exec_runs_ends_with_130(here: Path) -> None:
    (here / "interrupted.py").write_text(
        "from forensics import cli\n"
        "def hear(*_, **__):\n"
        "    cli.say('first')\n"  # what it imports runs code, too
        "    exec('raise KeyboardInterrupt')\n"
        "cli.main.commands['analyze'].callback = hear\n"
        "cli.main(['analyze', 'a/exp'])\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(ROOT)])}
    got = subprocess.run([sys.executable, "-m", "interrupted"], env=env, capture_output=True, text=True)
    assert (got.returncode, got.stdout, got.stderr) == (130, "", "first\nforensics: interrupted\n")
