"""Values under a second name or with lazy bits: soft links of HDF5, torch's negated and conjugated views; complex spreads; an index for its folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forensics.checkpoints import describe
from forensics.checkpoints.sick_values import foreign_code
from parsers import checkpoints


def test_soft_links_name_arrays_again_and_lead_nowhere_else(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "m.h5", "w") as f:
        f["layer/kernel"] = np.arange(6.0).reshape(2, 3)
        f["layer/beside"], f["tied"] = h5py.SoftLink("kernel"), h5py.SoftLink("/layer/kernel")
        f["loop"], f["nothing"] = h5py.SoftLink("/"), h5py.SoftLink("/gone")
    found = describe.read(tmp_path / "m.h5")
    assert {n: s.norm for n, s in found.stats.items()} == dict.fromkeys(("layer/kernel", "layer/beside", "tied"), pytest.approx(55**0.5))
    assert not foreign_code(found)
    with h5py.File(tmp_path / "out.h5", "w") as f:
        f["far"], f["through"] = h5py.ExternalLink(str(tmp_path / "m.h5"), "/layer"), h5py.SoftLink("/far/kernel")
    found = describe.read(tmp_path / "out.h5")
    assert not found.contents.tensors and foreign_code(found)[0]["severity"] == "critical"


def test_lazy_bits_of_torch_and_complex_spreads(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    z = torch.complex(torch.randn(5, 7) + 1, torch.randn(5, 7) - 2)
    for name, x in {"neg": z.conj().imag, "conj": z.conj(), "plain": z}.items():
        torch.save({"x": x}, tmp_path / f"{name}.pt")
        stats, expected = describe.read(tmp_path / f"{name}.pt").stats["x"], x.resolve_conj().resolve_neg().numpy()
        assert stats.mean == pytest.approx(expected.mean().real, rel=1e-5)
        assert stats.std == pytest.approx(expected.std(), rel=1e-5) and stats.norm == pytest.approx(np.linalg.norm(expected), rel=1e-5)


def test_traced_and_scripted_modules_ask_for_nothing_foreign(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.sizes, self.rates, self.tables, self.flags = [1, 2], [0.5], [torch.ones(2)], [True]
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.linear(x) + self.sizes[0] + self.rates[0] + self.tables[0]

    torch.jit.trace(Net(), torch.ones(1, 2)).save(tmp_path / "traced.pt")
    torch.jit.script(Net()).save(tmp_path / "scripted.pt")
    for name in ("traced", "scripted"):
        found = describe.read(tmp_path / f"{name}.pt")
        assert "linear.weight" in found.stats and all(f["severity"] == "info" for f in foreign_code(found))


@pytest.mark.parametrize("library", ["model.safetensors", "pytorch_model.bin"])
def test_an_index_stands_for_its_folder(tmp_path: Path, library: str) -> None:
    shard = "model-00001-of-00001.safetensors"
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (tmp_path / shard).write_bytes(len(header).to_bytes(8, "little") + header + np.ones(2, "f4").tobytes())
    index = tmp_path / f"{library}.index.json"
    index.write_text(json.dumps({"weight_map": {"w": shard}}))
    assert [t.name for t in checkpoints.read(index).tensors] == ["w"]


@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_the_state_of_an_optimizer_is_no_weight_whatever_a_program_calls_it(optimizer: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(5, 3)
    o = torch.optim.Adam(model.parameters()) if optimizer == "Adam" else torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(2, 5)).sum().backward()
    o.step()
    torch.save({"m": model.state_dict(), "o": o.state_dict()}, tmp_path / "ckpt.pt")
    roles = {t.name: t.role for t in checkpoints.read(tmp_path / "ckpt.pt").tensors}
    assert sorted(n for n, role in roles.items() if role == "weight") == ["m.bias", "m.weight"]
