"""Settings files: nothing in them is run, everything in them is kept."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parsers.formats import config_file
from parsers.tables import HEAD_BYTES, Gap, Note, table_of


def read(path: Path, text: str) -> SimpleNamespace:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert config_file.claims(path, path.read_bytes()[:HEAD_BYTES])
    found = SimpleNamespace(metrics=[], config=[], events=[], gaps=[], notes=[])
    for item in config_file.parse(path):
        if isinstance(item, Gap):
            found.gaps.append(item)
        elif isinstance(item, Note):
            found.notes.append(item.text)
        else:
            getattr(found, table_of(item)).extend(item.to_pylist())
    found.values = {c["key"]: json.loads(c["value"]) for c in found.config}
    found.lines = {c["key"]: c["at"] for c in found.config}
    return found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "train:\n  lr: 0.1\n  betas: [0.9, 0.95]\nname: null\n"),
        ("config.toml", 'name = "none"\n[train]\nlr = 0.1\nbetas = [0.9, 0.95]\n'),
        ("config.json", '{\n "train": {\n  "lr": 0.1,\n  "betas": [0.9, 0.95]\n },\n "name": null\n}'),
        ("train.ini", "name = None\n[train]\nlr = 0.1  # comment\nbetas = [0.9, 0.95]\n"),
    ],
)
def test_formats_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    found = read(tmp_path / name, text)
    assert found.values.pop("name") in (None, "none")
    assert found.values == {"train.lr": 0.1, "train.betas": [0.9, 0.95]}
    for key, word in (("train.lr", "lr"), ("train.betas", "betas")):
        assert word in text.splitlines()[found.lines[key] - 1]
    assert not found.gaps


def test_yaml_scalars(tmp_path: Path) -> None:
    found = read(tmp_path / "hparams.yaml", "a: 1e-4\nb: '1e-4'\nc: yes\nd: .nan\ne: 2024-01-01\nf: 0x10\ng: ~\nh: 1_000\n")
    assert found.values == {"a": 1e-4, "b": "1e-4", "c": True, "d": "NaN", "e": "2024-01-01", "f": 16, "g": None, "h": 1000}


def test_tags_name_no_objects(tmp_path: Path) -> None:
    marker = tmp_path / "run"
    text = f"""x: !!python/object/apply:os.system ['touch {marker}']
dtype: !!python/name:torch.float32 ''
betas: !!python/tuple
- 0.9
- 0.95
env: !env HOME
"""
    found = read(tmp_path / "config.yaml", text)
    assert not marker.exists()
    assert found.values == {"x": [f"touch {marker}"], "dtype": "torch.float32", "betas": [0.9, 0.95], "env": "HOME"}


def test_an_ordered_dict_is_a_mapping(tmp_path: Path) -> None:
    text = "!!python/object/apply:collections.OrderedDict\n- - - algo\n    - tqc\n  - - gamma\n    - 0.98\n"
    found = read(tmp_path / "args.yml", text)
    assert found.values == {"algo": "tqc", "gamma": 0.98}
    assert found.lines == {"algo": 2, "gamma": 4}


def test_merge_keys_aliases_and_several_documents(tmp_path: Path) -> None:
    found = read(tmp_path / "c.yaml", "base: &b {lr: 1, wd: 2}\nbig:\n  <<: *b\n  lr: 3\n---\nseed: 4\n")
    assert found.values == {"base.lr": 1, "base.wd": 2, "big.lr": 3, "big.wd": 2, "seed": 4}


def test_hydra_overrides_are_one_setting(tmp_path: Path) -> None:
    assert read(tmp_path / ".hydra" / "overrides.yaml", "- train.lr=0.1\n- seed=1\n").values == {"overrides": ["train.lr=0.1", "seed=1"]}


def test_wandb_wrappers_are_taken_off(tmp_path: Path) -> None:
    assert read(tmp_path / "config.yaml", "wandb_version: 1\nlr:\n  desc: null\n  value: 0.1\n").values == {"wandb_version": 1, "lr": 0.1}


def test_aliases_that_multiply_are_cut(tmp_path: Path) -> None:
    lines = ["l0: &l0 {a: x, b: x, c: x, d: x, e: x}"]
    lines += [f"l{i}: &l{i} {{a: *l{i - 1}, b: *l{i - 1}, c: *l{i - 1}, d: *l{i - 1}, e: *l{i - 1}}}" for i in range(1, 12)]
    found = read(tmp_path / "bomb.yaml", "\n".join(lines))
    assert any("multiply" in g.what or "too much" in g.what for g in found.gaps)


def test_an_alias_of_itself_ends(tmp_path: Path) -> None:
    assert read(tmp_path / "c.yaml", "a: &a {self: *a}\nb: 1\n").values["b"] == 1


@pytest.mark.parametrize("text", ["a: {b: [" * 50_000, "- " * 50_000, "[" * 100_000, "{" * 100_000])
def test_nesting_without_end_is_a_gap(tmp_path: Path, text: str) -> None:
    assert read(tmp_path / "c.yaml", text).gaps


def test_broken_yaml_keeps_the_other_keys(tmp_path: Path) -> None:
    found = read(tmp_path / "c.yaml", "a: 1\nbad: [1, 2\nnested:\n  x: 2\n  y: {z: 1\nlast: 3\n")
    assert found.values == {"a": 1, "nested.x": 2, "last": 3}
    assert found.lines["last"] == 6
    assert len(found.gaps) == 2


def test_every_cut_of_a_yaml_keeps_whole_lines(tmp_path: Path) -> None:
    text = "".join(f"key{i}: value{i}\n" for i in range(5))
    for cut in range(12, len(text)):
        found = read(tmp_path / "c.yaml", text[:cut])
        whole = text[:cut].count("\n")
        assert all(found.values.get(f"key{i}") == f"value{i}" for i in range(whole))


def test_broken_toml_keeps_the_other_lines(tmp_path: Path) -> None:
    found = read(tmp_path / "job.toml", "[train]\nlr = 0.1\nsteps = = 5\nseed = 3\n[model]\ndim = 8\n")
    assert found.values == {"train.lr": 0.1, "train.seed": 3, "model.dim": 8}
    assert [g.at for g in found.gaps] == ["line 3"]


def test_cut_json_keeps_what_came_before(tmp_path: Path) -> None:
    found = read(tmp_path / "config.json", '{"lr": 0.1, "model": {"dim": 3, "tok": 12')
    assert found.values == {"lr": 0.1, "model.dim": 3}
    assert found.gaps


def test_json_settings_keep_results_as_metrics(tmp_path: Path) -> None:
    found = read(tmp_path / "config_C4.json", '{"blend": 0.25, "val_bpb": NaN, "loss_scale": 128}')
    assert [r["tag"] for r in found.metrics] == ["val_bpb"]
    assert found.values == {"blend": 0.25, "loss_scale": 128}


def test_a_dictionary_in_quotes_is_one(tmp_path: Path) -> None:
    optimizer = "{'name': 'adam_4', 'learning_rate': 3.0, 'clipnorm': None}"
    found = read(tmp_path / "config.json", json.dumps({"optimizer": optimizer, "prompt": "{answer}", "call": "{f(1): 2}"}))
    assert found.values == {
        "optimizer.name": "adam_4", "optimizer.learning_rate": 3.0, "optimizer.clipnorm": None, "prompt": "{answer}", "call": "{f(1): 2}",
    }  # fmt: skip


def test_namespace_values_are_literals_or_text(tmp_path: Path) -> None:
    text = "Namespace(lr=1e-4, betas=(0.9, 0.95), name='a, (b)', dtype=torch.float32, fn=<function f at 0x1>, amp=True, "
    text += "token='hf_abcdefghijklmnopqrst')"
    found = read(tmp_path / "args.txt", text)
    assert found.values == {
        "lr": 1e-4,
        "betas": [0.9, 0.95],
        "name": "a, (b)",
        "dtype": "torch.float32",
        "fn": "<function f at 0x1>",
        "amp": True,
        "token": "***",
    }


def test_a_cut_namespace_keeps_whole_arguments(tmp_path: Path) -> None:
    found = read(tmp_path / "args.txt", "Namespace(lr=0.1, seed=3, name='ab")
    assert found.values == {"lr": 0.1, "seed": 3}
    assert found.gaps


def test_lines_of_arguments(tmp_path: Path) -> None:
    found = read(
        tmp_path / "hparams.txt",
        '# options\nlr: 0.001\nbatch_size = 32 ; per device\n--epochs 10\n--amp\nname: "x y"\npassword: hunter22\n',
    )
    assert found.values == {"lr": 0.001, "batch_size": 32, "epochs": 10, "amp": True, "name": "x y", "password": "***"}
    assert found.lines["epochs"] == 4


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("meta.yaml", b"artifact_uri: x\nlifecycle_stage: active\n"),
        ("wandb/run-20240101_000000-abc/files/config.yaml", b"lr: {value: 1}\n"),
        ("notes.txt", b"We tried lr: 0.1\n"),
        ("requirements.txt", b"numpy==1.0\n"),
        ("a.yaml", b""),
        ("x.cfg", b"\x93NUMPY\x01\x00"),
    ],
)
def test_what_is_not_claimed(name: str, head: bytes) -> None:
    assert not config_file.claims(Path(name), head)


@pytest.mark.parametrize("name", ["c.yaml", "c.toml", "config.json", "c.ini"])
@pytest.mark.parametrize("text", ["a: \x00 b", "{", "[", "a: 'x", 'key = "', "\ufeff", ":", "a: !!int x", "? [a, b]\n: 1"])
def test_nothing_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    items: list[Any] = list(config_file.parse(path))
    assert all(isinstance(i, (Gap, Note)) or i.num_rows >= 0 for i in items)
