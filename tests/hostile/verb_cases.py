"""Every verb on hostile input: `audit`, `compare`, `checkpoint`, `batch`, `note`, `render`, and `--batches`, `--data`, `--known`, `--since`."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile_pickles

from hostile.case import CANARY, Case, value, write, writes
from hostile.odd_files import MARKUP
from hostile.secret_files import PASSWORD, URL, VALUES

SECRET = VALUES["hugging_face"]
SPIKED = "".join(
    json.dumps({"step": s, "loss": 2.5 - s / 200 + ((s * 7919) % 13 - 6) / 600 + (9.0 if s == 150 else 0.0), "lr": 1e-3}) + "\n"
    for s in range(300)
)
SAVED = "{out}/../saved.case.json"
AUDIT = ("audit", "{run}", "--out", "{out}/a", "--jobs", "1")
Files = dict[str, bytes | str]


def cases() -> Iterator[Case]:
    yield from _two_runs()
    yield from _checkpoints()
    yield from _batches()
    yield from _loaders()
    yield from _data()
    yield from _saved()
    yield from _audits()


def _two_runs() -> Iterator[Case]:
    """A run that wants to be more than text, beside a plain one, in all that takes several."""
    everything: Files = {}
    for name, text in MARKUP.items():
        part = text.replace("/", "\u2215")[:60].replace("\0", "") or "x"
        config = json.dumps({"lr": 0.1, text: text, "seed": 1, "nested": {"note": text}, "optimizer": text})
        one: Files = {
            f"{part}/log.jsonl": SPIKED,
            f"{part}/config.json": config,
            f"{part}/train.log": f"step 1 loss 2.0\nRuntimeError: {text}\n",
        }
        other: Files = {"plain/log.jsonl": SPIKED.replace("0.001", "0.002"), "plain/config.json": '{"lr": 0.2, "seed": 2}'}
        yield Case(f"verbs/compare_{name}", writes(one | other), verbs=(("compare", f"{{run}}/{part}", "{run}/plain", "--out", "{out}/c.html", "--json", "{out}/c.json"),
                   ("compare", "{run}/plain", f"{{run}}/{part}", "--out", "{out}/d.html")))  # fmt: skip
        everything |= one
        yield Case(
            f"verbs/own_names_{name}",
            writes(one | other),
            exits=(0, 1),
            verbs=(
                _elsewhere,
                ("analyze", f"{{run}}/{part}"),
                ("compare", f"{{run}}/{part}", "{run}/plain"),
                ("batch", f"{{run}}/{part}", "--step", "5"),
                ("batch", f"{{run}}/{part}", "--step", "5", "--json"),
            ),
        )
    yield Case("verbs/audit_markup", writes(everything), verbs=(AUDIT, (*AUDIT, "--resume")), seconds=120)
    secret: Files = {
        f"{SECRET}/log.jsonl": SPIKED, f"{SECRET}/config.json": json.dumps({"lr": 0.1, "api_key": PASSWORD, "note": SECRET, "url": URL}),
        f"{SECRET}/train.log": f"step 1 loss 2.0\nRuntimeError: {URL} {SECRET} --password {PASSWORD}\n",
        "plain/log.jsonl": SPIKED.replace("0.001", "0.002"), "plain/config.json": json.dumps({"lr": 0.2, "api_key": PASSWORD + "2", "note": "x", "url": URL + "2"}),
    }  # fmt: skip
    hidden = (SECRET, PASSWORD)
    yield Case(
        "verbs/compare_secrets",
        writes(secret),
        absent=hidden,
        verbs=(("compare", f"{{run}}/{SECRET}", "{run}/plain", "--out", "{out}/c.html", "--json", "{out}/c.json"),),
    )
    yield Case("verbs/audit_secrets", writes(secret), absent=hidden, verbs=(AUDIT,))
    oddities: Files = {}
    for name, files in _odd_runs():
        both = {f"odd/{k}": v for k, v in files.items()} | {"plain/log.jsonl": SPIKED}
        yield Case(
            f"verbs/compare_{name}",
            writes(both),
            exits=(0, 1),
            verbs=(
                ("compare", "{run}/odd", "{run}/plain", "--out", "{out}/c.html"),
                ("compare", "{run}/plain", "{run}/odd", "--out", "{out}/d.html"),
                ("compare", "{run}/odd", "{run}/odd", "--out", "{out}/e.html"),
            ),
        )
        oddities |= {f"{name}/{k}": v for k, v in files.items()}
        yield Case(
            f"verbs/batch_{name}",
            writes(both),
            exits=(0, 1),
            verbs=tuple(("batch", "{run}/odd", "--step", s) for s in ("5", "150", "-1", "9223372036854775807", "99999999999999999999999")),
        )
    yield Case("verbs/audit_oddities", writes(oddities), verbs=(AUDIT,), seconds=120)
    yield Case("verbs/a_fifo", lambda run: os.mkfifo(run / "x.jsonl"), exits=(1,), verbs=tuple((*v, "--out", "{out}/o") for v in (
        ("compare", "{run}", "{run}"), ("compare", "{run}/x.jsonl", "{run}"), ("analyze", "{run}/x.jsonl"), ("tables", "{run}/x.jsonl"), ("audit", "{run}/nowhere"))))  # fmt: skip


def _elsewhere(out: Path) -> None:
    os.chdir(out)  # where names are our own choice, made from the run's


def _odd_runs() -> Iterator[tuple[str, Files]]:
    extremes = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1]
    yield (
        "extreme_steps",
        {"log.jsonl": "".join(json.dumps({"step": s, "loss": value(i), "time": 1.7e9 + i}) + "\n" for i, s in enumerate(extremes * 9))},
    )
    yield (
        "extreme_values",
        {
            "log.jsonl": "".join(
                f'{{"step": {s}, "loss": {v}, "lr": {v}, "grad_norm": {v}, "time": {v}}}\n'
                for s, v in enumerate(("1e308", "-1e308", "NaN", "Infinity", "-Infinity", "1e-320", "0", "-0.0") * 20)
            )
        },
    )
    yield "one_row", {"log.jsonl": '{"step": 0, "loss": 1}\n'}
    yield "no_steps", {"log.jsonl": "".join(json.dumps({"loss": value(i)}) + "\n" for i in range(50))}
    yield "only_config", {"config.json": '{"lr": 0.1}'}
    yield "nothing", {"x.bin": b"\0\1\2"}
    yield "constant", {"log.jsonl": "".join(json.dumps({"step": i, "loss": 1.0, "time": 5.0}) + "\n" for i in range(300))}
    yield (
        "damaged",
        {
            "log.jsonl": SPIKED[:9000] + "\0" * 5000 + SPIKED[9000:14000],
            "run.wandb": b":W&B" + bytes(range(256)) * 20,
            "config.yaml": "a: [\n",
        },
    )


def _checkpoints() -> Iterator[Case]:
    """Every hostile archive, a part of the pickles, and two of them set against each other."""
    archives = sorted(hostile_pickles.others(Path("x")))
    pickles = sorted(hostile_pickles.pickles(Path("x")))
    for i, name in enumerate([*archives, *pickles[::7]]):
        make = hostile_pickles.others if name in archives else hostile_pickles.pickles
        file = Path(name).name if name in archives else "model.pt"

        def build(run: Path, make: Callable[[Path], dict[str, bytes]] = make, name: str = name, file: str = file) -> None:
            (run / "same").mkdir()
            content = make(run.parent / CANARY)[name]
            for path in (run / file, run / "same" / file):
                path.write_bytes(content)

        yield Case(f"verbs/checkpoint_{i:03}_{name.replace('/', '_')}", build, exits=(0, 1), verbs=(
            ("checkpoint", f"{{run}}/{file}"), ("checkpoint", f"{{run}}/{file}", "--json"), ("checkpoint", f"{{run}}/{file}", f"{{run}}/same/{file}"), ("checkpoint", "{run}")))  # fmt: skip

    def special(run: Path) -> None:
        os.mkfifo(run / "model.safetensors")
        (run / "d").mkdir()
        os.mkfifo(run / "d" / ".metadata")
        (run / "e").mkdir()
        (run / "e" / "model.pt").symlink_to("model.pt")
        (run / "f").mkdir()
        os.mkfifo(run / "f" / "model.safetensors.index.json")

    yield Case(
        "verbs/checkpoint_special",
        special,
        exits=(1,),
        verbs=tuple(("checkpoint", f"{{run}}/{p}") for p in ("model.safetensors", "d", "e", "e/model.pt", "f", "nowhere", "")),
    )
    for name, text in {**MARKUP, "secret": SECRET}.items():
        header = json.dumps(
            {text[:5000]: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {text[:5000]: text, "api_key": PASSWORD}}
        ).encode()
        yield Case(f"verbs/checkpoint_named_{name}", write("model.safetensors", len(header).to_bytes(8, "little") + header + b"\0" * 8), absent=(SECRET, PASSWORD), exits=(0,),
                   verbs=(("checkpoint", "{run}/model.safetensors"), ("checkpoint", "{run}/model.safetensors", "--json"), ("checkpoint", "{run}/model.safetensors", "{run}/model.safetensors")))  # fmt: skip


def _batches() -> Iterator[Case]:
    big = 10**18
    manifests: dict[str, bytes | str] = {
        "ranges": "".join(json.dumps({"step": s, "first_sample": 0, "last_sample": 999_999}) + "\n" for s in range(400)),
        "huge_numbers": "".join(json.dumps({"step": 10**400, "samples": [big, -big]}) + "\n" for _ in range(9)) + '{"step": 1e999, "samples": [1]}\n{"step": NaN, "samples": NaN}\n',
        "extreme_steps": "".join(json.dumps({"step": s, "samples": [1, 2**70]}) + "\n" for s in (2**62, -(2**62), 2**63, -(2**63), 0)),
        "extreme_ranks": '{"step": 150, "rank": 99999999999, "samples": [1]}\n{"step": 150, "rank": -5, "samples": [2]}\n',
        "deep": '{"step": 150, "samples": ' + "[" * 900 + "1" + "]" * 900 + "}\n",
        "deeper": '{"step": 150, "samples": ' + "[" * 100_000 + "1" + "]" * 100_000 + "}\n",
        "long_line": '{"step": 150, "samples": [1], "note": "' + "x" * 30_000_000 + '"}\n',
        "long_cell": "step,samples\n150," + "x" * 8_000 + "\n",
        "long_field": 'step,samples\n150,"' + "x,\n" * 1_000,
        "zeros": b"\0" * 100_000,
        "empty": b"",
        "noise": random.Random(5).randbytes(50_000),
        "parquet_noise": b"PAR1" + random.Random(5).randbytes(5000) + b"PAR1",
        "arrow_noise": b"ARROW1\0\0" + random.Random(5).randbytes(5000) + b"ARROW1",
        "markup": "".join(json.dumps({"step": s, "sample_ids": [MARKUP["escapes"] + str(s), MARKUP["script"]], "shard": MARKUP["image"]}) + "\n" for s in range(300)),
        "secrets": "".join(json.dumps({"step": s, "sample_ids": [f"{SECRET}{s}"], "shard": URL}) + "\n" for s in range(300)),
        "keys": json.dumps({"a" * 100_000: [1], "150": {"b" * 100_000: 2, "samples": {"c": 1}}}),
        "utf16": '{"step": 150, "samples": [1]}\n'.encode("utf-16"),
    }  # fmt: skip
    for name, content in manifests.items():
        ends = (
            ".csv"
            if "long_" in name and "line" not in name
            else ".parquet"
            if "parquet" in name
            else ".arrow"
            if "arrow" in name
            else ".jsonl"
        )
        files: Files = {"log.jsonl": SPIKED}

        def build(run: Path, files: Files = files, name: str = "b" + ends, content: bytes | str = content) -> None:
            writes(files)(run)
            write(name, content)(run.parent)

        yield Case(f"verbs/batches_{name}", build, exits=(0, 1), absent=(SECRET, PASSWORD), verbs=(
            ("analyze", "{run}", "--batches", f"{{in}}/b{ends}", "--out", "{out}/r.html", "--md", "{out}/r.md"), ("batch", "{run}", "--step", "150", "--batches", f"{{in}}/b{ends}"),
            ("batch", "{run}", "--step", "150", "--batches", f"{{in}}/b{ends}", "--json")))  # fmt: skip
    yield Case("verbs/batches_fifo", lambda run: (write("log.jsonl", SPIKED)(run), os.mkfifo(run.parent / "b")), exits=(1,),
               verbs=(("analyze", "{run}", "--batches", "{in}/b", "--out", "{out}/r.html"), ("batch", "{run}", "--step", "150", "--batches", "{in}/b")))  # fmt: skip


def _loaders() -> Iterator[Case]:
    """Settings from which a loader would be rebuilt, so large that its order would fill the memory, or no numbers at all."""
    logged = "".join(
        f" [2024-01-01 00:00:{s % 60:02}] iteration {s:8d}/     300 | consumed samples: {s * 8:12d} | elapsed time per iteration (ms): 100.0 | learning rate: 1.000E-03 | "
        f"global batch size:     8 | lm loss: {2.5 - s / 200 + (9.0 if s == 150 else 0):.6E} | loss scale: 1.0 | grad norm: 0.5 |\n" for s in range(1, 300))  # fmt: skip
    big = 10**15
    cyclic = {"dataloader_type": "cyclic", "micro_batch_size": 1, "data_parallel_size": 1, "global_batch_size": 8, "num_samples": 4000}
    odd: dict[str, tuple[Files, dict[str, Any]]] = {
        "megatron_size": ({"train.log": logged}, cyclic | {"dataloader_type": "single", "global_batch_size": big}),
        "megatron_samples": ({"train.log": logged}, cyclic | {"num_samples": big}),
        "megatron_processes": ({"train.log": logged}, cyclic | {"num_samples": big, "data_parallel_size": big}),
        "megatron_ramp": ({"train.log": logged}, cyclic | {"dataloader_type": "single", "rampup_batch_size": f"1 1 {big * 1000}"}),
        "olmo_instances": ({"log.jsonl": SPIKED}, {"global_train_batch_size": 8, "device_train_microbatch_size": 1, "num_instances": big, "seed": 1}),
        "torch_samples": ({"log.jsonl": SPIKED}, {"batch_size": 8, "dataset_size": 4 * 10**9, "seed": 10**18, "shuffle": True}),
        "infinite": ({"log.jsonl": SPIKED}, {"train_batch_size": 1e999, "seed": float("nan"), "max_steps": 1e999, "world_size": 1e999, "clip_grad": 1e999, "vocab_size": -1e999, "warmup_steps": 1e999}),
        "huge": ({"log.jsonl": SPIKED}, dict.fromkeys(("global_batch_size", "seed", "max_steps", "world_size", "warmup_steps", "hidden_size", "learning_rate", "block_size"), 10**400)),
        "negative": ({"log.jsonl": SPIKED}, dict.fromkeys(("global_batch_size", "batch_size", "seed", "max_steps", "world_size", "warmup_steps", "gradient_accumulation_steps", "dataset_size"), -1)),
        "zero": ({"log.jsonl": SPIKED}, dict.fromkeys(("global_batch_size", "batch_size", "seed", "max_steps", "world_size", "warmup_steps", "gradient_accumulation_steps", "dataset_size"), 0)),
        "no_numbers": ({"log.jsonl": SPIKED}, {key: [1, {"a": None}] for key in ("global_batch_size", "batch_size", "seed", "max_steps", "world_size", "lr", "optimizer")}),
    }  # fmt: skip
    for name, (files, config) in odd.items():
        yield Case(f"verbs/loader_{name}", writes(files | {"config.json": json.dumps(config)}), exits=(0, 1),
                   verbs=(("analyze", "{run}", "--out", "{out}/r.html"), *(("batch", "{run}", "--step", s) for s in ("150", "9223372036854775807"))))  # fmt: skip


def _data() -> Iterator[Case]:
    """`--data`: the spike's samples are known (150 is in the manifest), so that rows are really looked up."""
    from hostile.table_files import arrow_stream

    known = "".join(json.dumps({"step": s, "sample_ids": [s * 2, s * 2 + 1]}) + "\n" for s in range(300))
    plain = [json.dumps({"text": f"a plain row {i}"}) for i in range(700)]
    odd = {"deep": '{"text": ' + "[" * 900 + "]" * 900 + "}", "deeper": "[" * 100_000, "number": "1" * 5000, "huge": json.dumps({"x": [10**400, 1.5]}), "nan": '{"input_ids": [NaN, 1e999], "labels": [1e308]}',
           "long": json.dumps({"text": "x" * 3_000_000}), "nulls": '{"text": null, "input_ids": null, "labels": {}}', "markup": json.dumps({"text": MARKUP["escapes"] + MARKUP["script"], SECRET: SECRET}),
           "ragged": '{"input_ids": [[1], [2, 3], "x", {}]}', "bytes": "\udcff\udcfe", "ids": json.dumps({"id": {"a": [1]}, "input_ids": [-(2**63), 2**63 - 1, 2**64]})}  # fmt: skip
    data: Files = {
        f"{name}.jsonl": "\n".join([*plain[:290], *[row] * 20, *plain[310:]]).encode("utf-8", "surrogateescape")
        for name, row in odd.items()
    }
    rng = random.Random(7)
    good = arrow_stream({"id": [str(i) for i in range(700)], "text": [f"row {i}" for i in range(700)]})
    for i in range(12):
        torn = bytearray(good)
        for _ in range(8):
            torn[rng.randrange(300, len(torn))] ^= 1 << rng.randrange(8)
        data[f"torn{i}.arrow"] = bytes(torn)
    offsets = good.find((0).to_bytes(4, "little") + (1).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    data["offsets.arrow"] = good[: offsets + 1200] + b"\xff\xff\xff\x7f" * 300 + good[offsets + 2400 :]
    npy = b"\x93NUMPY\x01\x00"
    for name, header in {"shape": "{'descr': '<u2', 'fortran_order': False, 'shape': (9999999999999, 999999), }", "object": "{'descr': '|O', 'fortran_order': False, 'shape': (5,), }",
                         "code": "__import__('os').mkdir('EXECUTED')", "open": "{'descr': '<u2', (", "negative": "{'descr': '<u2', 'fortran_order': False, 'shape': (-5, 2), }", "deep": "(" * 5000}.items():  # fmt: skip
        data[f"{name}.npy"] = npy + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 5000
    data |= {
        "empty.npy": b"",
        "pk.npy": b"PK\x03\x04" + b"\0" * 99,
        "pickle.npy": b"\x80\x04cos\nsystem\n.",
        "one.bin": b"\1",
        "flat.bin": b"\1\2" * 5000,
        "noise.parquet": b"PAR1" + rng.randbytes(3000) + b"PAR1",
    }
    for name, content in data.items():
        ending = name.rpartition(".")[2]

        def build(run: Path, ending: str = ending, content: bytes | str = content) -> None:
            writes({"log.jsonl": SPIKED, "batches.jsonl": known, "config.json": '{"block_size": 8, "vocab_size": 100}'})(run)
            write(f"d.{ending}", content)(run.parent)

        yield Case(
            f"verbs/data_{name.replace('.', '_')}",
            build,
            exits=(0, 1),
            absent=(SECRET,),
            verbs=(
                ("analyze", "{run}", "--data", f"{{in}}/d.{ending}", "--out", "{out}/r.html", "--md", "{out}/r.md"),
                ("analyze", "{run}", "--data", f"{{in}}/d.{ending}", "--show-data", "--out", "{out}/s.html"),
                ("batch", "{run}", "--step", "150", "--data", f"{{in}}/d.{ending}", "--show-data"),
            ),
        )

    def folder(run: Path) -> None:
        writes({"log.jsonl": SPIKED, "batches.jsonl": known})(run)
        writes({"d/state.json": '["_data_files"]', "d/x.arrow": good, "e/state.json": '{"_data_files": [{"filename": "../../etc/passwd"}]}', "e/x.arrow": good,
                "f/x.jsonl": "\n".join(plain), "g/state.json": '{"_data_files": [1]}', "g/x.arrow": good, "h/tokenizer.json": "[" * 100_000, "h/x.jsonl": "\n".join(plain)})(run.parent)  # fmt: skip
        os.mkfifo(run.parent / "f" / "tokenizer.json")
        os.mkfifo(run.parent / "pipe.jsonl")

    yield Case(
        "verbs/data_folders",
        folder,
        exits=(0, 1),
        verbs=tuple(
            ("analyze", "{run}", "--data", f"{{in}}/{d}", *show, "--out", f"{{out}}/{d}{len(show)}.html")
            for d in ("d", "e", "f", "g", "h", "pipe.jsonl", "nowhere")
            for show in ((), ("--show-data",))
        ),
    )


def _saved() -> Iterator[Case]:
    """Saved cases that somebody damaged or edited: `render` and `note` draw them or say why not."""
    analyze = ("analyze", "{run}", "--out", "{out}/r.html")
    again = (("render", SAVED, "--out", "{out}/again.html", "--md", "{out}/again.md", "--force"), ("note", SAVED, "--add", "x", "--out", "{out}/noted.html", "--force"),
             ("note", SAVED, "--rule-out", "lr_too_high", "--because", "x", "--out", "{out}/noted.html", "--force"), ("render", SAVED, "--out", "{out}/redacted.html", "--redact", "--force"))  # fmt: skip
    texts: dict[str, bytes | str] = {"empty": b"", "zeros": b"\0" * 1000, "list": "[]", "null": "null", "string": '"x"', "deep": "[" * 100_000, "deep_object": '{"schema": 1, "tool": ' + '{"a":' * 900 + "1" + "}" * 902,
                                     "schema_only": '{"schema": 1}', "schema_text": '{"schema": "1"}', "schema_list": '{"schema": [1]}', "noise": random.Random(3).randbytes(3000), "nan": '{"schema": 1, "verdict": NaN}', "utf16": '{"schema": 1}'.encode("utf-16")}  # fmt: skip
    for name, content in texts.items():
        yield Case(f"verbs/saved_{name}", write("log.jsonl", SPIKED), exits=(0, 1), verbs=(analyze, _replaces(content), *again))
    values: dict[str, Any] = {
        "script": MARKUP["script"],
        "image": MARKUP["image"],
        "attribute": MARKUP["attribute"],
        "escapes": MARKUP["escapes"],
        "template": MARKUP["template"],
        "none": None,
        "number": -1e308,
        "list": [[[]]],
        "object": {"x": {"y": 1}},
        "huge": 10**300,
        "empty": "",
        "true": True,
    }
    for name, odd in values.items():
        for part in range(4):
            yield Case(
                f"verbs/saved_{name}_{part}",
                write("log.jsonl", SPIKED),
                exits=(0, 1),
                verbs=tuple(
                    step
                    for round in range(5)
                    for step in (*([analyze] if not round else []), _changes(odd, part * 5 + round), *again[:2], again[3])
                ),
            )
    yield Case(
        "verbs/saved_fifo",
        lambda run: os.mkfifo(run.parent / "x.case.json"),
        exits=(1, 2),
        verbs=(
            ("render", "{in}/x.case.json", "--out", "{out}/a.html"),
            ("note", "{in}/x.case.json", "--add", "x", "--out", "{out}/a.html"),
        ),
    )


def _replaces(content: bytes | str) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        write("saved.case.json", content)(out.parent)

    return change


def _changes(odd: Any, seed: int) -> Callable[[Path], None]:
    """Some of the values of the case, at any depth, become `odd`; others stay."""

    def change(out: Path) -> None:
        document = json.loads((out / "r.case.json").read_text())
        rng = random.Random(seed)
        for _ in range(rng.choice((1, 3, 20))):
            where: Any = document
            while True:
                keys = list(where) if isinstance(where, dict) else list(range(len(where)))
                if not keys or keys == ["schema"]:
                    break
                key = rng.choice([k for k in keys if k != "schema"])
                if not isinstance(where[key], (dict, list)) or not where[key] or rng.random() < 0.1:
                    where[key] = copy.deepcopy(odd)
                    break
                where = where[key]
        (out.parent / "saved.case.json").write_text(json.dumps(document))

    return change


def _audits() -> Iterator[Case]:
    runs: Files = {f"r{i}/log.jsonl": SPIKED.replace("2.5", f"{i}.5") for i in range(3)}
    first = AUDIT
    odd: dict[str, bytes | str] = {"empty": b"", "noise": random.Random(4).randbytes(5000), "deep": "[" * 100_000, "list": "[1, 2]", "null": "null", "wrong": '{"schema": 1, "runs": 5, "findings": {"a": 1}}',
                                   "markup": json.dumps({"schema": 1, "runs": [MARKUP["script"]] * 5, "root": MARKUP["escapes"]}), "text": f"r0 loss_spike {SECRET}\n{MARKUP['escapes']} {MARKUP['script']} x\nr1\n\n\0\n"}  # fmt: skip
    for name, content in odd.items():
        yield Case(
            f"verbs/audit_known_{name}",
            _with(runs, "known.txt", content),
            exits=(0, 1),
            absent=(SECRET,),
            verbs=((*first, "--known", "{in}/known.txt"),),
        )
        yield Case(
            f"verbs/audit_since_{name}",
            _with(runs, "before/audit.json", content),
            exits=(0, 1),
            verbs=((*first, "--since", "{in}/before"),),
        )
    yield Case("verbs/audit_fifos", lambda run: (writes(runs)(run), os.mkfifo(run.parent / "k"), os.mkdir(run.parent / "b"), os.mkfifo(run.parent / "b" / "audit.json"), os.mkdir(run / "p"), os.mkfifo(run / "p" / "log.jsonl")), exits=(0, 1),
               verbs=(first, (*first, "--force", "--known", "{in}/k"), (*first, "--force", "--since", "{in}/b")))  # fmt: skip

    def torn(out: Path) -> None:
        """What --resume goes on from; outputs are written whole or not at all, and one that is torn is nobody's."""
        for path in sorted((out / ".audit").rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2] + b"\0\xff")

    yield Case("verbs/audit_resumes_torn", writes(runs), exits=(0, 1), verbs=(first, torn, (*first, "--resume")))


def _with(files: Files, name: str, content: bytes | str) -> Callable[[Path], None]:
    def build(run: Path) -> None:
        writes(files)(run)
        write(name, content)(run.parent)

    return build
