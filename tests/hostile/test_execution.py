"""Nothing is run that was only to be read: modules of the current folder, of the run, and beside the adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hostile.case import CANARY, lines

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = [
    sys.executable,
    "-c",
    f"import sys; sys.path[0] = {str(ROOT)!r}; from forensics.cli import main; sys.argv[0] = 'forensics'; main()",
]
MODULE = [sys.executable, "-m", "forensics"]
# of the standard library, of what we import, of what a worker of each engine imports, of what training code imports
NAMES = sorted({*(n for n in sys.stdlib_module_names if not n.startswith("_")), "__future__", "joblib", "cloudpickle", "numpy", "pyarrow", "polars", "orjson", "yaml", "click",
                "rich", "jinja2", "fsspec", "sklearn", "distributed", "dask", "ray", "tornado", "msgpack", "psutil", "h5py", "torch", "sympy", "triton",
                "sitecustomize", "usercustomize", "parsers", "reports", "forensics_replay_training", "replay_adapter"})  # fmt: skip


def plant(folder: Path, names: list[str] = NAMES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / CANARY)!r}, 'a').write({name!r} + ' ')\n")


def executed(folder: Path) -> str:
    return (folder / CANARY).read_text() if (folder / CANARY).exists() else ""


def run_in(folder: Path, command: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([*command, *map(str, arguments)], cwd=folder, capture_output=True, text=True, env=env)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with modules of every name in it, and three runs below it that hold some, too."""
    plant(tmp_path)
    for n in range(3):
        plant(tmp_path / "runs" / f"r{n}", ["train", "json", "logging"])
        (tmp_path / "runs" / f"r{n}" / "log.jsonl").write_text(lines(0, 50 + n))
    return tmp_path


@pytest.mark.parametrize("command", [INSTALLED, MODULE], ids=["installed", "module"])
@pytest.mark.parametrize(
    "options", [("--jobs", "1"), ("--jobs", "2"), ("--engine", "dask", "--jobs", "1"), ("--engine", "ray", "--jobs", "1")], ids=" ".join
)
def test_an_audit_imports_nothing_from_the_current_folder(project: Path, command: list[str], options: tuple[str, ...]) -> None:
    done = run_in(project, command, "audit", "runs", "--out", "out", *options)
    assert done.returncode == 0, done.stderr
    assert executed(project) == ""
    assert json.loads((project / "out" / "audit.json").read_text())["failed"] == []


@pytest.mark.parametrize("command", [INSTALLED, MODULE], ids=["installed", "module"])
def test_the_verbs_import_nothing_from_the_current_folder(project: Path, command: list[str]) -> None:
    for arguments in (
        ["analyze", "runs/r0"],
        ["compare", "runs/r0", "runs/r1"],
        ["tables", "runs/r0", "--out", "t"],
        ["batch", "runs/r0", "--step", "3"],
        ["explain", "loss_spike"],
    ):
        done = run_in(project, command, *arguments)
        assert done.returncode == 0, done.stderr
    assert executed(project) == ""
    assert all(executed(p) == "" for p in (project / "runs").iterdir())


def test_a_keras_file_is_read_without_the_current_folder(project: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(project / "w.h5", "w") as f:
        f["dense/kernel"] = [[1.0, 2.0]]
    done = run_in(project, MODULE, "checkpoint", "w.h5", "--json")
    assert done.returncode == 0 and [t["name"] for t in json.loads(done.stdout)["tensors"]] == ["dense/kernel"], done.stderr
    assert executed(project) == ""


ADAPTER = """
import torch
from model import Net
from pack.data import rows

def build():
    torch.manual_seed(0)
    net = Net()
    return net, torch.optim.SGD(net.parameters(), lr=0.1)

def batch(step):
    return rows(step)

def loss(model, batch, reduction="mean"):
    return ((model(batch) - 1) ** 2).mean()
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Training code in several files, with modules beside it that it does not import."""
    pytest.importorskip("torch")
    folder = tmp_path / "code"
    plant(folder, [n for n in NAMES if n != "pack"])
    (folder / "train.py").write_text(ADAPTER)
    (folder / "model.py").write_text("import layers\nNet = layers.Net\n")
    (folder / "layers.py").write_text("import torch\nclass Net(torch.nn.Linear):\n    def __init__(self): super().__init__(2, 1)\n")
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    (folder / "pack" / "data.py").write_text("import torch\ndef rows(step): return torch.full((4, 2), float(step))\n")
    (folder / "run").mkdir()
    (folder / "run" / "log.jsonl").write_text(lines(0, 50))
    plant(folder / "run")
    return folder


@pytest.mark.parametrize("where", ["code", "code/run", "."])
def test_replay_imports_the_adapter_and_what_it_asks_for(training: Path, where: str) -> None:
    here = training.parent / where
    done = run_in(
        here,
        MODULE,
        "replay",
        training / "run",
        "--adapter",
        training / "train.py",
        "--device",
        "cpu",
        "--steps",
        "3:5",
        "--out",
        training.parent / "r.html",
    )
    case = json.loads((training.parent / "r.case.json").read_text())
    assert "trouble" not in case["replay"], (case["replay"], done.stderr)
    assert sorted(case["replay"]["beside"]) == ["layers.py", "model.py", "pack/__init__.py"]
    assert executed(training) == "" and executed(training / "run") == "" and executed(here) == ""
    assert (
        "`layers.py`" in textwrap.dedent((training.parent / "r.html").read_text())
        or "<code>layers.py</code>" in (training.parent / "r.html").read_text()
    )


def test_an_environment_beside_the_adapter_is_not_taken_for_its_code(tmp_path: Path) -> None:
    from forensics.replays.training.beside import Beside

    plant(tmp_path, ["zzz_beside"])
    site = tmp_path / ".venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "library.py").write_text("import zzz_beside")
    sys.meta_path.insert(0, finder := Beside(str(tmp_path)))
    try:
        with pytest.raises(ModuleNotFoundError):
            exec(compile("import zzz_beside", str(site / "library.py"), "exec"), {})
        exec(compile("import zzz_beside", str(tmp_path / "train.py"), "exec"), {})
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop("zzz_beside", None)
    assert finder.found == ["zzz_beside.py"]
