"""What a folder can hold beside files that make sense, and text that wants to be more than text, everywhere."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile.case import Case, lines, points, value, writes
from hostile.event_files import NAME as EVENTS
from hostile.wire import config, events, framed, history

KEPT = {"loss": points(0, 99)}
MARKUP = {
    "script": "</script><script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "attribute": "' onmouseover='alert(1)' x='",
    "comment": "<!--<script>-->]]>",
    "template": "{{ 7*7 }}{% for x in ().__class__.__base__.__subclasses__() %}{{x}}{% endfor %}${7*7}#{7*7}<%= 7*7 %>",
    "format": "{0.__class__.__init__.__globals__} %s %(x)s %n {} {!r}",
    "entity": "&lt;script&gt; &#x3c;b&#x3e; &amp;",
    "markdown": "[x](javascript:alert(1)) ![x](http://evil/x.png) <b>b</b> # | ` ``` ***",
    "escapes": "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\x9b31m\x07\x08\r",
    "bidi": "\u202egpj.exe\u202c\u2066x\u2069\u200b\u2028\u2029\ufeff",
    "unicode": "損失 потеря خسارة 💥 \U000e0041 e\u0301\u0301\u0301\u0301",
    "newlines": "a\nb\r\nc\td\x0b\x0c",
    "json": '", "verdict": "healthy", "x": "',
    "line_of_html": "<svg/onload=alert(1)><style>*{display:none}</style><base href=//evil>",
    "path": "../../../../etc/passwd",
    "long": "x" * 100_000,
}


def cases() -> Iterator[Case]:
    yield from _markup()
    yield from _folders()
    yield from _names()


def _markup() -> Iterator[Case]:
    for name, text in MARKUP.items():
        spike = {150: 9.0}
        curve = [(s, 2.5 - s / 200 + ((s * 7919) % 13 - 6) / 600 + spike.get(s, 0.0)) for s in range(300)]
        rows = "".join(json.dumps({"step": s, "loss": v, text: v, "time": 1.7e9 + s}) + "\n" for s, v in curve)
        files: dict[str, bytes | str] = {
            "log.jsonl": rows + json.dumps({"step": 300, "message": text, "event": text, "level": text}) + "\n",
            "config.json": json.dumps({text: text, "lr": text, "optimizer": {text: [text]}}),
            "batches.jsonl": "".join(json.dumps({"step": s, "sample_ids": [text, f"{s}{text}"], "shard": text}) + "\n" for s in range(300)),
            "train.log": f"step 1 loss 2.0\nRuntimeError: {text} CUDA out of memory {text}\nERROR {text}\nstep 2 loss 2.0\n",
            "table.csv": f'step,"{text[:9000].replace(chr(34), chr(34) * 2)}"\n1,2\n2,3\n',
            EVENTS: b"".join(events(points(0, 50), text.encode())),
            "run-x.wandb": framed([config({text: text}), *(history(s, {text: value(s)}) for s in range(30))])[0],
        }
        yield Case(f"markup/{name}", writes(files))
        if len(text) < 200 and "\0" not in text and name != "path":
            part = text.replace("/", "\u2215")
            named = {f"{part}/log.jsonl": lines(0, 99), f"{part}.csv": "step,acc\n1,2\n2,3\n", f"{part}.bin": b"\0\1"}
            yield Case(f"markup/{name}_in_file_names", writes(named))
            yield Case(f"markup/{name}_as_run_name", _elsewhere(part), KEPT, target=part)
            yield Case(
                f"markup/{name}_as_several_runs",
                writes({f"a{part}/log.jsonl": lines(0, 99), f"b{part}/log.jsonl": lines(0, 99).replace("0.", "7.").replace("2.", "9.")}),
            )
            nothing: dict[str, bytes | str] = {f"{part}.bin": b"\0\1", f"2{part}": b"\x7fELF"}
            yield Case(f"markup/{name}_in_an_error", writes(nothing), exits=(1,))


def _elsewhere(name: str) -> Callable[[Path], None]:
    def build(run: Path) -> None:
        folder = run.parent / name
        folder.mkdir()
        (folder / "log.jsonl").write_text(lines(0, 99))

    return build


def _folders() -> Iterator[Case]:
    def case(name: str, make: Callable[[Path], object], **more: Any) -> Case:
        def build(run: Path) -> None:
            (run / "log.jsonl").write_text(lines(0, 99))
            make(run)

        return Case(f"folder/{name}", build, more.pop("kept", KEPT), **more)

    def sock(run: Path) -> None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.bind(os.fspath(run / "s.log")[:100])

    def secret_beside(run: Path) -> None:
        (run.parent / "outside.csv").write_text("step,stolen\n1,12345.5\n2,12346.5\n")
        (run / "link.csv").symlink_to(run.parent / "outside.csv")
        (run / "dir").symlink_to(run.parent)
        (run / "passwd.log").symlink_to("/etc/passwd")

    def loops(run: Path) -> None:
        (run / "a.log").symlink_to(run / "b.log")
        (run / "b.log").symlink_to(run / "a.log")
        (run / "self").symlink_to(run / "self")
        (run / "up").symlink_to("..")
        (run / "here").symlink_to(".")
        (run / "gone.jsonl").symlink_to(run / "nowhere")

    def deep(run: Path) -> None:
        here = os.getcwd()
        os.chdir(run)
        for _ in range(1700):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.csv").write_text("step,deep\n1,2.5\n2,3.5\n")
        os.chdir(here)

    def deeper(run: Path) -> None:
        here = os.getcwd()
        os.chdir(run)
        for _ in range(300):
            os.mkdir("x" * 200)
            os.chdir("x" * 200)
        os.chdir(here)

    def many(run: Path) -> None:
        for i in range(200):
            folder = run / f"d{i:03}"
            folder.mkdir()
            for j in range(100):
                (folder / f"f{j}.txt").write_text(f"nothing {i} {j}\n")

    def many_logs(run: Path) -> None:
        for i in range(2000):
            (run / f"part{i:04}.jsonl").write_text(json.dumps({"step": i, "other": float(i)}) + "\n")

    def folders_named_like_files(run: Path) -> None:
        for name in (
            EVENTS,
            "config.yaml",
            "run-x.wandb",
            "trainer_state.json",
            "model.safetensors",
            "log.csv",
            "x.parquet",
            "mlflow.db",
            "forensics.toml",
            "pytorch_model.bin",
        ):
            (run / name).mkdir()

    def files_named_like_folders(run: Path) -> None:
        for name in ("wandb", "checkpoints", "checkpoint-500", "tensorboard", "mlruns", "run-20240101_000000-abc", "global_step5"):
            (run / name).write_text("not a folder\n")

    def unreadable(run: Path) -> None:
        (run / "closed.csv").write_text("step,x\n1,2\n")
        (run / "closed.csv").chmod(0)
        (run / "shut").mkdir()
        (run / "shut" / "a.csv").write_text("step,x\n1,2\n")
        (run / "shut").chmod(0)

    def sparse(run: Path) -> None:
        for name in ("big.log", "big.jsonl", "big.csv", "big.json", "big.yaml", "big.wandb", "big.txt"):
            (run / name).touch()
            os.truncate(run / name, 1 << 31)

    def code(run: Path) -> None:
        evil = "open(__import__('os').path.join(__import__('os').path.dirname(__import__('os').path.abspath(__file__)), '..', 'EXECUTED'), 'w')\n"
        for name in (
            "sitecustomize.py",
            "usercustomize.py",
            "config.py",
            "conftest.py",
            "numpy.py",
            "json.py",
            "setup.py",
            "__init__.py",
            "train.py",
            "parsers.py",
        ):
            (run / name).write_text(evil)
        (run / "evil.pth").write_text("import os; open('EXECUTED', 'w')\n")
        info = run / "evil-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[run_forensics.parsers]\nevil = train\n")

    yield case("fifo", lambda run: (os.mkfifo(run / "pipe.log"), os.mkfifo(run / "pipe.jsonl"), os.mkfifo(run / EVENTS)))
    yield case("socket", sock)
    yield case("links_out", secret_beside, absent=("12345.5", "root:x"))
    yield case("link_loops", loops)
    yield case("deep", deep, kept=KEPT | {"deep": [(1, 2.5), (2, 3.5)]})
    yield case("deeper_than_a_path", deeper)
    yield case("20_000_files", many, seconds=120)
    yield case("2000_logs", many_logs, seconds=120)
    yield case("folders_named_like_files", folders_named_like_files)
    yield case("files_named_like_folders", files_named_like_folders)
    yield case("unreadable", unreadable)
    yield case("sparse_files", sparse, seconds=240)
    yield case("code", code)
    yield case("hard_links", lambda run: [os.link(run / "log.jsonl", run / f"copy{i}.jsonl") for i in range(5)], kept={})
    yield case(
        "zero_files",
        lambda run: [
            (run / n).touch()
            for n in ("a.csv", "b.json", EVENTS, "c.wandb", "d.log", "e.yaml", "f.parquet", "g.db", "h.pt", "i.safetensors")
        ],
    )
    yield Case("folder/empty", lambda run: None, exits=(1,))
    yield Case("folder/missing", lambda run: None, exits=(1,), target="nowhere")
    yield Case("folder/only_a_fifo", lambda run: os.mkfifo(run / "x.jsonl"), exits=(1,))
    yield Case("folder/run_is_a_fifo", lambda run: os.mkfifo(run.parent / "pipe"), exits=(1,), target="pipe")
    yield Case(
        "folder/run_is_a_link",
        lambda run: ((run / "log.jsonl").write_text(lines(0, 99)), (run.parent / "link").symlink_to(run)),
        KEPT,
        target="link",
    )
    yield Case("folder/run_is_a_dangling_link", lambda run: (run.parent / "link").symlink_to("/nonexistent/x"), exits=(1,), target="link")
    yield Case("folder/run_is_a_link_to_itself", lambda run: (run.parent / "link").symlink_to("link"), exits=(1,), target="link")
    yield Case("folder/run_is_a_file", lambda run: (run / "log.jsonl").write_text(lines(0, 99)), KEPT, target="run/log.jsonl")
    alike = {
        "a/b/log.jsonl": lines(0, 99),
        "a__b/log.jsonl": lines(0, 99).replace("2.", "7."),
        "a/b__c/log.jsonl": lines(0, 99).replace("2.", "9."),
        "a__b/c/log.jsonl": lines(0, 99).replace("2.", "8."),
    }
    yield Case(
        "folder/runs_with_one_id",
        writes(dict(alike)),
        {"loss": [p for text in alike.values() for p in [(r["step"], r["loss"]) for r in map(json.loads, text.splitlines())]]},
    )
    long = "/".join(c * 120 for c in "abcd")
    yield Case("folder/long_names", writes({f"{long}1/log.jsonl": lines(0, 99), f"{long}2/log.jsonl": lines(0, 99).replace("2.", "7.")}))

    def vanish(run: Path) -> None:
        for path in list(run.glob("gone*"))[:1]:
            path.unlink(missing_ok=True)

    yield case("files_vanish", lambda run: [(run / f"gone{i}.csv").write_text("step,x\n1,2\n2,3\n") for i in range(200)], grow=vanish)


def _names() -> Iterator[Case]:
    def raw(name: bytes, content: str) -> Callable[[Path], None]:
        def build(run: Path) -> None:
            with open(os.path.join(os.fsencode(run), name), "w") as f:
                f.write(content)
            (run / "log.jsonl").write_text(lines(0, 99))

        return build

    for label, name in (("not_utf8", b"caf\xe9\xff.csv"), ("newline", b"a\nb.csv"), ("dash", b"-rf.csv"), ("escape", b"\x1b[31m.csv"), ("spaces", b"  .csv"),
                        ("dots", b"...csv"), ("quote", b"'\".csv"), ("backslash", b"a\\..\\b.csv"), ("star", b"*.csv"), ("tilde", b"~root.csv"),
                        ("longest", b"x" * 251 + b".csv"), ("longest_utf8", "é".encode() * 125 + b".csv"), ("control", b"\x01\x02\x7f.csv")):  # fmt: skip
        yield Case(f"names/{label}", raw(name, "step,acc\n1,2.5\n2,3.5\n"), KEPT | {"acc": [(1, 2.5), (2, 3.5)]})

    def folder(name: bytes) -> Callable[[Path], None]:
        def build(run: Path) -> None:
            path = os.path.join(os.fsencode(run), name)
            os.mkdir(path)
            with open(path + b"/log.jsonl", "w") as f:
                f.write(lines(0, 99))

        return build

    yield Case("names/folder_not_utf8", folder(b"run\xff\xfe"), KEPT)
    yield Case("names/run_not_utf8", lambda run: folder(b"../x\xff\xfe")(run), KEPT, target="x\udcff\udcfe")
    yield Case("names/longest_run", lambda run: folder(b"../" + b"r" * 255)(run), KEPT, target="r" * 255)
