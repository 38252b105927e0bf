"""torch files are read as torch.load(weights_only=True) reads them, value by value, without torch."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parsers import checkpoints
from parsers.checkpoints.contents import Contents, Tensor, chunks
from parsers.checkpoints.statistics import values

torch = pytest.importorskip("torch")

SHARED = Path(__file__).parents[2].parent / "shared" / "open"


def whole(t: Tensor) -> np.ndarray:
    """All values, as floats or as they are, in the order of rows."""
    assert not t.why, t.why
    parts = [values(b, t.dtype) for b in chunks(t)]
    flat = np.concatenate(parts) if parts else np.empty(0, np.float32)
    if t.layout:
        order = sorted(range(len(t.shape)), key=lambda i: (-t.layout[i], i))
        return flat.reshape([t.shape[i] for i in order]).transpose(np.argsort(order))
    return flat.reshape(t.shape)


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """The tensors of a loaded file by name, as parsers.checkpoints.tree names them."""
    if isinstance(tree, torch.Tensor):
        return {path: tree}
    if isinstance(tree, dict):
        items = [(str(k), v) for k, v in tree.items()]
    elif isinstance(tree, (list, tuple)):
        items = [(str(i), v) for i, v in enumerate(tree)]
    else:
        return {}
    found: dict[str, Any] = {}
    for k, v in items:
        found |= flat(v, f"{path}.{k}" if path else k)
    return found


def agree(found: Contents, expected: Any) -> int:
    ours = {t.name: t for t in found.tensors}
    theirs = flat(expected)
    if isinstance(expected, torch.Tensor):
        theirs = {found.path.stem: expected}
    for name, value in theirs.items():
        t = ours[name]
        assert t.dtype == str(value.dtype).removeprefix("torch."), name
        assert t.shape == tuple(value.shape), name
        value = value.detach()
        want = value.float() if t.dtype in ("bfloat16", "float16") or t.dtype.startswith("float8") else value
        np.testing.assert_array_equal(whole(t), want.numpy(), err_msg=name)
    return len(theirs)


def everything() -> dict[str, Any]:
    """One of each type and shape that torch.save can put into a file."""
    g = torch.Generator().manual_seed(1)
    base = torch.randn(6, 8, generator=g)
    found: dict[str, Any] = {str(d): base.to(d) for d in (torch.float64, torch.float32, torch.float16, torch.bfloat16)}
    found |= {str(d): base.to(d) for d in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)}
    found |= {str(d): (base * 100).to(d) for d in (torch.int64, torch.int32, torch.int16, torch.int8)}
    found |= {str(d): (base * 100).abs().to(d) for d in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)}
    found |= {"bool": base > 0, "complex": torch.complex(base, -base), "empty": torch.empty(0, 3), "number": torch.tensor(7.0)}
    found |= {
        "transposed": base.T,
        "column": base[:, 3],
        "block": base[1:4, 2:7],
        "every other": base[::2, ::3],
        "expanded": base[:1].expand(5, 8),
    }
    found |= {
        "channels last": torch.randn(2, 3, 4, 5, generator=g).to(memory_format=torch.channels_last),
        "tied": base,
        "nan": torch.tensor([1.0, float("nan"), -0.0]),
    }
    parameter = torch.nn.Parameter(base.clone())
    found |= {"parameter": parameter, "nested": {"list": [base[0], {"deep": base[1]}], "tuple": (base[2],), 5: base[3]}}
    return found


@pytest.mark.parametrize("zipped", [True, False])
def test_every_type_and_shape(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "model.pt"
    saved = everything()
    if not zipped:  # the old format has no types without a storage class of their own
        saved = {k: v for k, v in saved.items() if "float8" not in k and "uint16" not in k and "uint32" not in k and "uint64" not in k}
    torch.save(saved, path, _use_new_zipfile_serialization=zipped)
    found = checkpoints.read(path)
    assert not found.refused and not found.gaps and found.complete
    assert agree(found, torch.load(path, weights_only=True)) == len(flat(saved))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(tmp_path: Path, protocol: int) -> None:
    saved = everything()  # torch's own weights_only reader knows no protocol above 3
    torch.save(saved, tmp_path / "a.pt", pickle_protocol=protocol)
    assert agree(checkpoints.read(tmp_path / "a.pt"), saved) > 20


def trained(optimizer: str = "AdamW", steps: int = 3) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4))
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(made, 100)
    for _ in range(steps):
        made.zero_grad()
        model(torch.randn(5, 8)).square().sum().backward()
        made.step()
        schedule.step()
    return model, made, schedule


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD", "Adagrad", "Adafactor", "RMSprop", "NAdam"])
def test_a_usual_training_checkpoint(tmp_path: Path, optimizer: str) -> None:
    model, made, schedule = trained(optimizer)
    state = {"model": model.state_dict(), "optimizer": made.state_dict(), "scheduler": schedule.state_dict(), "step": 3,
             "rng": torch.get_rng_state(), "args": {"lr": 0.01, "api_key": "sk-abcdefghijklmnopqrstuvw"}}  # fmt: skip
    torch.save(state, tmp_path / "step_3.pt")
    found = checkpoints.read(tmp_path / "step_3.pt")
    agree(found, torch.load(tmp_path / "step_3.pt", weights_only=True))
    assert found.values["step"] == 3 and found.values["scheduler.last_epoch"] == 3
    assert found.values["args.api_key"] == "***"
    roles = {t.name: t.role for t in found.tensors}
    assert roles["model.0.weight"] == "weight" and roles["model.1.running_mean"] == "buffer" and roles["rng"] == "other"
    if optimizer == "AdamW":
        assert roles["optimizer.state.0.exp_avg"] == "exp_avg" and roles["optimizer.state.0.exp_avg_sq"] == "exp_avg_sq"
        assert found.values["optimizer.state.0.step"] == 3.0


def test_a_pickled_module_gives_its_state_dict(tmp_path: Path) -> None:
    model, _, _ = trained()
    torch.save(model, tmp_path / "model.pth")
    found = checkpoints.read(tmp_path / "model.pth")
    ours = {t.name: t for t in found.tensors}
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(whole(ours[name]), value.numpy())


def test_torchscript_gives_its_parameters_and_names_its_code(tmp_path: Path) -> None:
    model, _, _ = trained()
    torch.jit.trace(model.eval(), torch.randn(2, 8)).save(str(tmp_path / "model.pt"))
    found = checkpoints.read(tmp_path / "model.pt")
    ours = {t.name: t for t in found.tensors}
    for name, value in model.state_dict().items():
        if name in ours:
            np.testing.assert_array_equal(whole(ours[name]), value.numpy())
    assert {"0.weight", "2.bias"} <= set(ours)
    assert any("TorchScript code" in r["what"] for r in found.refused)


def test_plain_pickles_of_tensors_and_arrays(tmp_path: Path) -> None:
    """torch tensors outside torch.save hold a whole file in the pickle; numpy arrays hold their bytes."""
    model, _, _ = trained()
    state = {"weights": model.state_dict(), "array": np.arange(12.0).reshape(3, 4), "scalar": np.float64(2.5), "big": np.arange(5, dtype=">i4"),
             "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3))}  # fmt: skip
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(state))
    found = checkpoints.read(tmp_path / "model.pkl")
    assert not found.refused
    ours = {t.name: t for t in found.tensors}
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(whole(ours[f"weights.{name}"]), value.numpy())
    assert found.values["scalar"] == 2.5
    np.testing.assert_array_equal(whole(ours["array"]), state["array"])
    np.testing.assert_array_equal(whole(ours["big"]), state["big"])
    assert sorted(whole(ours["fortran"]).ravel()) == [0, 1, 2, 3, 4, 5]


def test_unknown_classes_stay_names(tmp_path: Path) -> None:
    import argparse
    import datetime
    import pathlib

    state = OrderedDict(args=argparse.Namespace(lr=0.1, out=pathlib.Path("x"), when=datetime.timedelta(1)), w=torch.ones(3))
    torch.save(state, tmp_path / "a.pt")
    found = checkpoints.read(tmp_path / "a.pt")
    assert not found.refused and found.values["args.lr"] == 0.1
    assert [t.name for t in found.tensors] == ["w"]


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("zipped", [True, False])
def test_what_is_whole_of_a_file_cut_off_is_kept(tmp_path: Path, cut: float, zipped: bool) -> None:
    saved = {f"w{i}": torch.full((500,), float(i)) for i in range(20)}
    torch.save(saved, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    content = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "b.pt").write_bytes(content[: int(len(content) * cut)])
    found = checkpoints.read(tmp_path / "b.pt")
    assert found.complete is False and found.gaps
    good = [t for t in found.tensors if not t.why]
    assert len(found.tensors) == 20
    assert len(good) >= int(20 * cut) - 4
    for t in good:
        assert set(whole(t)) == {float(t.name[1:])}


def test_flipped_bytes_never_raise_anything_else(tmp_path: Path) -> None:
    model, made, _ = trained()
    torch.save({"model": model.state_dict(), "optimizer": made.state_dict()}, tmp_path / "a.pt")
    content = (tmp_path / "a.pt").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 8):
            damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "b.pt").write_bytes(damaged)
        try:
            found = checkpoints.read(tmp_path / "b.pt")
            for t in found.tensors:
                if not t.why:
                    for _ in chunks(t):
                        pass
        except checkpoints.Unreadable:
            pass


def test_torch_is_not_imported(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    code = "import sys; from forensics.checkpoints import sick_document as c; c.report(__import__('pathlib').Path(sys.argv[1])); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.pt")], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared runs are not here")
def test_agreement_on_real_files() -> None:
    """Files that Hugging Face, Lightning, accelerate, Composer and plain scripts wrote."""
    files = [p for p in sorted(SHARED.rglob("*")) if p.suffix in (".pt", ".pth", ".bin", ".ckpt") and p.is_file()]
    compared = tensors = 0
    for path in files[:: max(len(files) // 60, 1)]:
        try:
            expected = torch.load(path, weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
            continue
        tensors += agree(checkpoints.read(path), expected)
        compared += 1
    assert compared > 20 and tensors > 100


def test_json_of_names_is_whole(tmp_path: Path) -> None:
    torch.save({"ключ\x00": torch.ones(1)}, tmp_path / "a.pt")
    (t,) = checkpoints.read(tmp_path / "a.pt").tensors
    assert t.name == "ключ\\x00" and json.dumps(t.name)
