"""safetensors, torch.distributed.checkpoint, npz, Keras and folders: agreement with the libraries, damage, bounds."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_checkpoints_torch import agree, everything, trained, whole

from parsers import checkpoints

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]], metadata: dict[str, str] | None = None) -> None:
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    content = b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def test_safetensors_agree_with_the_library(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    saved = {k: v.contiguous().clone() for k, v in everything().items() if isinstance(v, torch.Tensor) and k != "complex"}
    library.save_file(saved, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = checkpoints.read(tmp_path / "model.safetensors")
    assert not found.gaps and found.complete
    assert agree(found, library.load_file(tmp_path / "model.safetensors")) == len(saved)
    assert found.values["metadata.format"] == "pt"


def test_safetensors_cut_off_keeps_what_is_whole(tmp_path: Path) -> None:
    data = {f"w{i}": ("F32", [100], np.full(100, i, np.float32).tobytes()) for i in range(10)}
    write_safetensors(tmp_path / "a.safetensors", data)
    content = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "a.safetensors").write_bytes(content[:-1000])
    found = checkpoints.read(tmp_path / "a.safetensors")
    assert found.complete is False and "1000 bytes are missing" in found.gaps[0].what
    assert [t.name for t in found.tensors if not t.why] == [f"w{i}" for i in range(7)]


def test_safetensors_at_odd_offsets(tmp_path: Path) -> None:
    """Older writers did not align: a bfloat16 may begin at an odd byte."""
    x = np.arange(1001, dtype=np.uint16)
    write_safetensors(tmp_path / "a.safetensors", {"byte": ("U8", [1], b"x"), "w": ("BF16", [1001], x.tobytes())}, {"pad": "x"})
    found = checkpoints.read(tmp_path / "a.safetensors")
    want = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(whole(found.tensors[1]), want)


def test_a_sharded_model_and_a_shard_that_is_missing(tmp_path: Path) -> None:
    weights = {}
    for i in range(3):
        name = f"model-0000{i + 1}-of-00003.safetensors"
        write_safetensors(tmp_path / name, {f"w{i}": ("F32", [2], np.ones(2, np.float32).tobytes())})
        weights[f"w{i}"] = name
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    assert sorted(t.name for t in checkpoints.read(tmp_path).tensors) == ["w0", "w1", "w2"]
    assert checkpoints.read(tmp_path).complete
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    found = checkpoints.read(tmp_path)
    assert found.complete is False and "model-00002-of-00003.safetensors, which is missing" in found.gaps[0].what
    weights["evil"] = "../../secret.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    assert "outside the folder" in checkpoints.read(tmp_path).refused[0]["what"]


def test_sharded_checkpoints_in_bounded_memory(tmp_path: Path) -> None:
    """Eight sparse shards of 512 MB each, in a process that may have 700 MB of its own."""
    size = 512 << 20
    for i in range(8):
        header = json.dumps({f"w{i}": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
        with (tmp_path / f"model-{i:05}-of-00008.safetensors").open("wb") as f:
            f.write(struct.pack("<Q", len(header)) + header)
            f.truncate(8 + len(header) + size)
    code = (
        "import sys, pathlib; from forensics.checkpoints import sick_document as c\n"
        "ticks = []\n"
        "d = c.report(pathlib.Path(sys.argv[1]), progress=lambda *a: ticks.append(a))\n"
        "memory = {k: int(v.split()[0]) for k, v in (x.split(':') for x in open('/proc/self/status')) if k in ('RssAnon', 'VmHWM')}\n"
        "print(len(d['tensors']), sum(t['zeros'] for t in d['tensors']), len(ticks), memory['RssAnon'], memory['VmHWM'])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT)
    tensors, zeros, ticks, private, peak = (int(x) for x in done.stdout.split())
    assert (tensors, zeros, ticks) == (8, 8 * size // 2, 8)
    assert private < 400_000, "kilobytes of private memory"
    assert peak < 1_000_000, "kilobytes at the most, mapped files counted"


def test_a_checkpoint_of_a_terabyte_is_listed_at_once(tmp_path: Path) -> None:
    """Two hundred sparse shards of five gigabytes, ten tensors each: names, shapes and completeness, without their values."""
    size = 512 << 20
    for i in range(200):
        header = {f"h.{i}.w{j}": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [j * size, (j + 1) * size]} for j in range(10)}
        text = json.dumps(header).encode()
        with (tmp_path / f"model-{i + 1:05}-of-00200.safetensors").open("wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + 10 * size)
    code = (
        "import sys, pathlib; from forensics.checkpoints import describe as c\n"
        "d = c.open_checkpoint(pathlib.Path(sys.argv[1])).contents\n"
        "c.measure(c.Checkpoint(d, None, 'weights'), only=lambda t: t.name == 'h.150.w9')\n"
        "private = int(next(x for x in open('/proc/self/status') if x.startswith('RssAnon')).split()[1])\n"
        "print(len(d.tensors), d.bytes, d.complete, private)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT)
    tensors, total, complete, private = done.stdout.split()
    assert (tensors, complete) == ("2000", "True") and int(total) > 10**12
    assert int(private) < 200_000, "kilobytes of private memory"


def test_distributed_checkpoint(tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    model, optimizer, _ = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}
    dcp.save(state, checkpoint_id=tmp_path / "step-3")
    found = checkpoints.read(tmp_path / "step-3")
    assert found.format == "dcp" and found.complete and not found.refused
    assert agree(found, {k: state[k] for k in ("model", "optimizer")}) > 20
    assert {v for k, v in found.values.items() if k.endswith(":step")} == {3}
    assert next(t for t in found.tensors if t.name.endswith("state.0.exp_avg")).role == "exp_avg"
    shard = next((tmp_path / "step-3").glob("*.distcp"))
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])
    half = checkpoints.read(tmp_path / "step-3")
    assert half.complete is False
    good = [t for t in half.tensors if not t.why]
    assert 0 < len(good) < len(half.tensors)
    shard.unlink()
    assert all("missing" in t.why for t in checkpoints.read(tmp_path / "step-3").tensors)


def test_a_hugging_face_folder(tmp_path: Path) -> None:
    model, optimizer, schedule = trained()
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")
    torch.save(schedule.state_dict(), folder / "scheduler.pt")
    torch.save({"cpu": torch.get_rng_state()}, folder / "rng_state.pth")
    found = checkpoints.read(folder)
    roles = {t.name: t.role for t in found.tensors}
    assert roles["0.weight"] == "weight" and roles["state.0.exp_avg"] == "exp_avg" and roles["cpu"] == "other"
    assert found.values["scheduler.pt:last_epoch"] == 3
    assert [f.name for f in found.files] == ["optimizer.pt", "pytorch_model.bin", "rng_state.pth", "scheduler.pt"]


def test_ranks_are_told_apart(tmp_path: Path) -> None:
    """Megatron and DeepSpeed: a file for each rank, the same names in all."""
    for rank in range(2):
        folder = tmp_path / "iter_0000010" / f"mp_rank_0{rank}"
        folder.mkdir(parents=True)
        torch.save({"iteration": 10, "model": {"w": torch.full((4,), float(rank))}}, folder / "model_optim_rng.pt")
    zero = {
        "optimizer_state_dict": {
            "single_partition_of_fp32_groups": [torch.ones(8)],
            "base_optimizer_state": {"state": {0: {"exp_avg": torch.ones(8)}}},
        }
    }
    torch.save(zero, tmp_path / "iter_0000010" / "zero_pp_rank_0_mp_rank_00_optim_states.pt")
    found = checkpoints.read(tmp_path / "iter_0000010")
    weights = {t.name: whole(t)[0] for t in found.tensors if t.role == "weight"}
    assert weights == {"mp_rank_00/model_optim_rng.pt:model.w": 0.0, "mp_rank_01/model_optim_rng.pt:model.w": 1.0}
    assert {t.role for t in found.tensors} == {"weight", "master", "exp_avg"}


def zero_checkpoint(folder: Path, stage: int, world: int) -> dict[str, Any]:
    """What DeepSpeed writes for two groups of parameters, cut up for `world` ranks; the whole parameters are returned."""
    torch.manual_seed(0)
    groups = [{"h.weight": (5, 3), "out.weight": (4, 5)}, {"h.bias": (5,), "scale": (), "out.bias": (4,)}]
    kinds = ("fp32", "exp_avg", "exp_avg_sq")
    whole = {f"{n}.{k}": torch.randn(shape) for group in groups for n, shape in group.items() for k in kinds}
    cut: dict[str, list[list[Any]]] = {}  # kind -> rank -> group
    for k in kinds:
        cut[k] = [[] for _ in range(world)]
        for group in groups:
            if stage == 3:
                parts = [[] for _ in range(world)]
                for n in group:
                    flat = whole[f"{n}.{k}"].reshape(-1)
                    size = -(-len(flat) // world)
                    flat = torch.nn.functional.pad(flat, (0, size * world - len(flat)), value=99.0)
                    for rank in range(world):
                        parts[rank].append(flat[rank * size : (rank + 1) * size])
                for rank in range(world):
                    cut[k][rank].append(torch.cat(parts[rank]))
            else:
                flat = torch.cat([whole[f"{n}.{k}"].reshape(-1) for n in group])
                flat = torch.nn.functional.pad(flat, (0, -len(flat) % (2 * world)), value=99.0)
                for rank, part in enumerate(flat.chunk(world)):
                    cut[k][rank].append(part.clone())
    shapes = [OrderedDict((n, torch.Size(shape)) for n, shape in group.items()) for group in groups]
    model = {"module": {"h.weight": torch.ones(5, 3)} if stage < 3 else {}, "param_shapes": shapes, "global_steps": 7}
    folder.mkdir(parents=True)
    torch.save(model, folder / ("zero_pp_rank_0_" * (stage == 3) + "mp_rank_00_model_states.pt"))
    for rank in range(world):
        state = {i: {"step": 7, "exp_avg": cut["exp_avg"][rank][i], "exp_avg_sq": cut["exp_avg_sq"][rank][i]} for i in range(2)}
        inner = {"state": state, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0]}]}
        flat_name, inner_name = (
            ("fp32_flat_groups", "optimizer_state_dict") if stage == 3 else ("single_partition_of_fp32_groups", "base_optimizer_state")
        )
        saved = {"zero_stage": stage, "partition_count": world, flat_name: cut["fp32"][rank], inner_name: inner}
        torch.save({"optimizer_state_dict": saved}, folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    return whole


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_shards_of_zero_are_joined_to_parameters(tmp_path: Path, stage: int, world: int) -> None:
    want = zero_checkpoint(tmp_path / "global_step7", stage, world)
    found = checkpoints.read(tmp_path / "global_step7")
    ours = {t.name.rpartition(":")[2]: t for t in found.tensors if t.role in ("master", "exp_avg", "exp_avg_sq")}
    assert ours.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_array_equal(whole(ours[name]), value.numpy(), err_msg=name)
        assert ours[name].role == {"fp32": "master"}.get(name.rpartition(".")[2], name.rpartition(".")[2])


def test_shards_of_zero_stay_where_a_rank_is_missing(tmp_path: Path) -> None:
    zero_checkpoint(tmp_path / "global_step7", 2, 3)
    (tmp_path / "global_step7" / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    found = checkpoints.read(tmp_path / "global_step7")
    assert not any(t.name.endswith("h.weight.fp32") for t in found.tensors)
    assert sum("single_partition_of_fp32_groups" in t.name for t in found.tensors) == 4


@pytest.mark.parametrize("packed", [True, False])
def test_npz(tmp_path: Path, packed: bool) -> None:
    arrays = {"a": np.random.default_rng(0).normal(size=(300, 40)), "b": np.arange(7, dtype=">i4"), "f": np.asfortranarray(np.ones((3, 2), np.float32)),
              "n": np.float64(3.0), "e": np.empty((0, 4)), "flag": np.array([True, False])}  # fmt: skip
    (np.savez_compressed if packed else np.savez)(tmp_path / "model.npz", **arrays)
    found = checkpoints.read(tmp_path / "model.npz")
    assert not found.gaps and not found.refused
    ours = {t.name: t for t in found.tensors}
    for name in ("a", "b", "n", "e", "flag"):
        np.testing.assert_array_equal(whole(ours[name]), arrays[name])
    np.save(tmp_path / "one.npy", arrays["a"])
    np.testing.assert_array_equal(whole(checkpoints.read(tmp_path / "one.npy").tensors[0]), arrays["a"])


def test_keras(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    kernel = np.random.default_rng(0).normal(size=(30, 20)).astype(np.float32)
    with h5py.File(tmp_path / "model.weights.h5", "w") as f:
        f.create_dataset("layers/dense/vars/0", data=kernel, compression="gzip")
        f.create_dataset("optimizer/iteration", data=np.int64(12))
        f["out"] = h5py.ExternalLink("/etc/passwd", "/")
    found = checkpoints.read(tmp_path / "model.weights.h5")
    ours = {t.name: t for t in found.tensors}
    np.testing.assert_array_equal(whole(ours["layers/dense/vars/0"]), kernel)
    assert found.values["optimizer.iteration"] == 12
    assert "a link named 'out'" in found.refused[0]["what"]


def test_without_h5py_a_keras_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000))
    found = checkpoints.read(tmp_path / "model.h5")
    assert found.format == "keras" and "needs h5py" in found.gaps[0].what


@pytest.mark.parametrize(("name", "content", "what"), [
    ("flax_model.msgpack", b"\x81\xa1a\x01", "Flax"), ("model.gguf", b"GGUF" + bytes(20), "GGUF"), ("model.onnx", b"\x08\x07" + bytes(20), "ONNX"),
    ("model.pdparams", b"abc" + bytes(9), "Paddle"), ("model.distcp", b"PK\x03\x04", "give the folder"),
])  # fmt: skip
def test_other_formats_are_named(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(checkpoints.Unreadable, match=what):
        checkpoints.read(tmp_path / name)


def test_orbax_is_named(tmp_path: Path) -> None:
    (tmp_path / "_CHECKPOINT_METADATA").write_text("{}")
    with pytest.raises(checkpoints.Unreadable, match="Orbax"):
        checkpoints.read(tmp_path)


def test_a_file_that_shrinks_meanwhile(tmp_path: Path) -> None:
    """A map of a file that was cut would end the process with a signal; the length is looked at before each block."""
    from parsers.checkpoints.contents import chunks

    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"w": ("F32", [1 << 20], bytes(4 << 20))})
    (tensor,) = checkpoints.read(path).tensors
    blocks = chunks(tensor)
    next(blocks)
    os.truncate(path, 1000)
    with pytest.raises(checkpoints.Unreadable, match="cut while it was read"):
        next(blocks)


@pytest.mark.parametrize("called", ["opt_state", "opt", "tx_state"])
def test_moments_by_their_place_in_a_pickled_state_of_optax(called: str, tmp_path: Path) -> None:
    """A named tuple is a tuple to a reader that imports nothing: count, first and second moments."""
    made = {"w": np.ones((3, 2), np.float32), "b": np.zeros(2, np.float32)}
    adam = (np.int32(7), made, {k: v + 1 for k, v in made.items()})
    (tmp_path / "last.pkl").write_bytes(pickle.dumps({"params": made, called: ((adam, ()), ((made, made),))}))
    roles = {t.name: t.role for t in checkpoints.read(tmp_path / "last.pkl").tensors}
    assert roles["params.w"] == "weight" and roles[f"{called}.0.0.1.w"] == "exp_avg" and roles[f"{called}.0.0.2.b"] == "exp_avg_sq"
    assert roles[f"{called}.1.0.0.w"] == roles[f"{called}.1.0.1.w"] == "other"


@pytest.mark.parametrize(("weights", "role"), [("p", "exp_avg"), (None, "weight")])
def test_moments_under_any_name_where_the_weights_stand_elsewhere(weights: str | None, role: str, tmp_path: Path) -> None:
    """Two parts of a model that have the same names are no moments."""
    made = {"Dense_0": {"kernel": np.ones((3, 2), np.float32), "bias": np.zeros(2, np.float32)}}
    saved = {"o": (((np.int32(7), made, {"Dense_0": {k: v + 1 for k, v in made["Dense_0"].items()}}),),)} | (
        {weights: made} if weights else {}
    )
    (tmp_path / "last.pkl").write_bytes(pickle.dumps(saved))
    roles = {t.name: t.role for t in checkpoints.read(tmp_path / "last.pkl").tensors}
    assert roles["o.0.0.1.Dense_0.kernel"] == role
