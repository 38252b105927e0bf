"""What a stranger installs: the wheel and the sdist hold all that is needed, and a typed program passes against them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from forensics.version import VERSION

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = ("forensics", "parsers", "reports")
SAMPLE = ROOT / "samples" / "bad_batch_jsonl"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
TYPED = """
from pathlib import Path

import forensics


def worst(folder: Path) -> str:
    case: forensics.Case = forensics.analyze(folder, metrics={"loss.train": "my/loss"})
    run = forensics.read(folder, run="a")
    rows: int = len(run.metrics) + run.metrics.to_polars().height
    both = forensics.compare(folder / "a", str(folder))
    many = forensics.audit([folder], folder / "audit", pages=3, jobs=2, force=True)
    guarded = forensics.guard(folder)
    again = forensics.replay(folder, "train.py", steps=(1, 2), max_time=10.0)
    forensics.record(3, [1, 2], folder, loss=0.5)
    try:
        return f"{case.answer} {rows} {both.answer} {many.verdicts['healthy']} {guarded.says()} {again.verdict}"
    except forensics.ForensicsError as e:
        return e.message + e.hint
"""
WRONG = {
    'forensics.analyze(3)': "arg-type",
    'forensics.audit("runs", "out", jbs=2)': "call-arg",
    'forensics.replay("run", "train.py", steps="1:2")': "arg-type",
    'forensics.analyse("run")': "attr-defined",
    'forensics.read("run").metrics.to_arrow()': "attr-defined",
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT, folder / "checkout", ignore=LEFT_OUT)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(folder / "checkout")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def installed(built: Path) -> Path:
    """The Python of a fresh environment with the wheel; its dependencies are those of this environment."""
    home = built / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    wheel = next(built.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True)
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    own = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    beside = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    (own / "beside.pth").write_text("\n".join(beside))  # behind its own packages; the .pth files in them are not followed
    return python


def test_the_wheel_holds_the_packages_and_nothing_else(built: Path) -> None:
    names = set(zipfile.ZipFile(next(built.glob("*.whl"))).namelist())
    files = [p.relative_to(ROOT) for package in PACKAGES for p in (ROOT / package).rglob("*") if p.is_file()]
    ours = {p.as_posix() for p in files if "__pycache__" not in p.parts}
    assert ours <= names and {f"{package}/py.typed" for package in PACKAGES} <= ours
    info = f"run_forensics-{VERSION}.dist-info/"
    assert {n for n in names - ours if not n.startswith(info)} == set()
    assert {f"{info}licenses/{path}" for path in ("LICENSE", "reports/vendor/uplot-1.6.32/LICENSE")} <= names


def test_the_sdist_is_the_checkout(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {n.partition("/")[2] for n in sdist.getnames()}
    kept = [p for p in (built / "checkout").rglob("*") if p.is_file() and "egg-info" not in str(p)]
    ours = {p.relative_to(built / "checkout").as_posix() for p in kept}
    ours = {n for n in ours if "/" in n or not n.endswith((".html", ".case.json"))}  # reports that somebody made here, as `make demo` does
    assert {n for n in ours - names if not n.startswith((".ci/", ".github/", ".gitignore", ".dockerignore"))} == set()


def test_the_metadata(built: Path) -> None:
    wheel = zipfile.ZipFile(next(built.glob("*.whl")))
    told = wheel.read(f"run_forensics-{VERSION}.dist-info/METADATA").decode()
    assert f"Version: {VERSION}\n" in told and "License-Expression: Apache-2.0 AND MIT\n" in told
    assert all(f"Classifier: {c}\n" in told for c in PROJECT["classifiers"]) and "Typing :: Typed" in PROJECT["classifiers"]
    assert "Home-page" not in told and "Project-URL" not in told  # there is no public home to name yet


def test_the_changelog_tells_of_this_version() -> None:
    first = next(line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## "))
    assert first.split(",")[0] == f"## {VERSION}"


def case_of(python: Path, tmp_path: Path, **env: str) -> tuple[dict[str, Any], str]:
    """The case of the sample, made in a folder far from the checkout, and where the program lies."""
    tmp_path.mkdir()
    run = [str(python), "-P", "-c", "import forensics, sys; from forensics.cli import main; print(forensics.__file__); main(sys.argv[1:])"]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | env
    command = [*run, "analyze", str(SAMPLE), "--json", "case.json", "--out", "page.html"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    case: dict[str, Any] = json.loads((tmp_path / "case.json").read_text("utf-8"))
    del case["tool"]["command"]
    return case | {"page": len((tmp_path / "page.html").read_bytes())}, done.stdout.splitlines()[0]


def test_the_installed_wheel_says_what_the_checkout_says(installed: Path, tmp_path: Path) -> None:
    here, at = case_of(Path(sys.executable), tmp_path / "checkout", PYTHONPATH=str(ROOT))
    there, elsewhere = case_of(installed, tmp_path / "wheel")
    assert Path(at).is_relative_to(ROOT) and Path(elsewhere).is_relative_to(installed.parent.parent)
    assert here == there


def test_the_installed_command(installed: Path, tmp_path: Path) -> None:
    command = [str(installed.parent / "forensics"), "analyze", str(SAMPLE), "--fail-on", "unhealthy"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "bad data batch" in done.stdout and (tmp_path / "bad_batch_jsonl.html").is_file()


@pytest.fixture(scope="module")
def checked(installed: Path) -> dict[str, str]:
    """What `mypy --strict` says of the typed program, and of each wrong line, line by line."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = installed.parent.parent.parent
    (folder / "typed.py").write_text(TYPED)
    for i, line in enumerate(WRONG):
        (folder / f"wrong_{i}.py").write_text(f"import forensics\n\n{line}\n")
    files = ["typed.py", *(f"wrong_{i}.py" for i in range(len(WRONG)))]
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed), "--cache-dir", "cache", *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return {f: "".join(line for line in done.stdout.splitlines() if line.startswith(f"{f}:")) for f in files} | {"all": done.stdout}


def test_a_typed_program_passes_mypy_strict(checked: dict[str, str]) -> None:
    assert checked["typed.py"] == "" and f"Found {len(WRONG)} errors in {len(WRONG)} files" in checked["all"], checked["all"]


def test_mypy_finds_wrong_calls(checked: dict[str, str]) -> None:
    for i, (line, error) in enumerate(WRONG.items()):
        assert f"[{error}]" in checked[f"wrong_{i}.py"], line
