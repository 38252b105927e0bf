"""Source beside a run: which files are read, what becomes of it on the page, and source made to break the reader."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from runs import case, read, write

from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms, looks
from forensics.source.all_looks import looked
from forensics.source.parsed_module import Listing, Module, parse
from forensics.source.program import programs
from forensics.source.run_source import MOST_BYTES, looked_at

FAULTY = """import torch
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
RIGHT = FAULTY.replace("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")
LINE = "line 7"


def found(folder: Path) -> dict[str, Any]:
    return {f["facts"]["look"]: f for f in case(folder)["findings"] if f["kind"] == "suspect_source"}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_slip_is_information_and_the_run_stays_healthy(tmp_path: Path) -> None:
    write(tmp_path / "a")
    before = case(tmp_path / "a")
    put(tmp_path / "a" / "train.py", FAULTY)
    after = case(tmp_path / "a")
    slip = found(tmp_path / "a")["keeps_gradients"]
    assert (before["verdict"], after["verdict"], slip["severity"]) == ("healthy", "healthy", "info")
    assert slip["evidence"][0]["where"] == slip["facts"]["where"] == f"train.py {LINE}"
    assert slip["evidence"][0]["data"]["lines"] == ["optimizer.step()"]
    assert all(h["probability"] < 0.5 for h in after["hypotheses"] if h["id"] != "unknown")


def test_the_sign_has_file_and_line(tmp_path: Path) -> None:
    sign = looks()["source_keeps_gradients"]
    states = {}
    for name, text in (("faulty", FAULTY), ("right", RIGHT), ("other", "print('hello')\n")):
        put(write(tmp_path / name) / "train.py", text)
        states[name] = sign(Symptoms(read(tmp_path / name), ()))
    assert [states[n].state for n in ("faulty", "right", "other")] == [SEEN, ABSENT, CANNOT_TELL]
    assert states["faulty"].place == f"train.py {LINE}"
    assert sign(Symptoms(read(write(tmp_path / "none")), ())).state == CANNOT_TELL


@pytest.mark.parametrize("place", ["train.py", "code/train.py", "code/pkg/train.py", "_sources/train_1a2b.py", "src/train.py"])
def test_source_beside_the_log_or_in_a_snapshot_is_read(tmp_path: Path, place: str) -> None:
    put(write(tmp_path) / place, FAULTY)
    assert list(found(tmp_path)) == ["keeps_gradients"]


@pytest.mark.parametrize("place", ["lib/train.py", "venv/lib/train.py", "site-packages/train.py"])
def test_source_of_others_is_not(tmp_path: Path, place: str) -> None:
    put(write(tmp_path) / place, FAULTY)
    assert not found(tmp_path)


def test_a_helper_beside_the_script_is_followed(tmp_path: Path) -> None:
    put(
        write(tmp_path) / "train.py",
        FAULTY.replace("import torch\n", "import torch\nfrom helpers import clear\n").replace(
            "    loss.b", "    clear(optimizer)\n    loss.b"
        ),
    )
    assert not found(tmp_path)
    assert looked_at(read(tmp_path)).answers["keeps_gradients"].state == "unknown"
    put(tmp_path / "helpers.py", "def clear(optimizer):\n    optimizer.zero_grad()\n")
    assert looked_at(read(tmp_path)).answers["keeps_gradients"].state == "right"


def test_two_scripts_that_differ_tell_nothing(tmp_path: Path) -> None:
    put(write(tmp_path) / "train.py", FAULTY)
    put(tmp_path / "pretrain.py", RIGHT)
    assert not found(tmp_path)


def test_notebooks_patches_and_listings(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip list"]},
        {"cell_type": "markdown", "source": "# x"},
        {"cell_type": "code", "source": FAULTY},
    ]
    put(write(tmp_path / "notebook") / "train.ipynb", json.dumps({"cells": cells}))
    added = "".join(f"+{line}\n" for line in FAULTY.splitlines())
    patch = f"diff --git a/train.py b/train.py\nnew file mode 100644\n--- /dev/null\n+++ b/train.py\n@@ -0,0 +1,7 @@\n{added}"
    put(write(tmp_path / "patch") / "diff.patch", patch)
    steps = "".join(f"step {i}/300 loss {2.5 - i / 300:.4f}\n" for i in range(1, 301))
    put(tmp_path / "listing" / "train.log", f"{FAULTY}{'=' * 100}\n{steps}")
    for name, where in (("notebook", "train.ipynb line 9"), ("patch", f"diff.patch: train.py {LINE}"), ("listing", f"train.log {LINE}")):
        assert found(tmp_path / name)["keeps_gradients"]["facts"]["where"] == where
    changed = patch.replace("--- /dev/null", "--- a/train.py")
    put(write(tmp_path / "changed") / "diff.patch", changed)
    assert not found(tmp_path / "changed")  # what a patch changes is not whole


def test_a_secret_in_a_line_stays_out(tmp_path: Path) -> None:
    put(write(tmp_path) / "train.py", FAULTY.replace("optimizer.step()", "optimizer.step()  # token='hf_" + "aB3" * 12 + "'"))
    assert "aB3aB3" not in json.dumps(case(tmp_path))


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    put(write(tmp_path / "a") / "train.py", f"open({str(mark)!r}, 'w')\nimport forensics_no_such_module\n{FAULTY}")
    assert found(tmp_path / "a")
    assert not mark.exists()


HOSTILE = {
    "syntax": "def f(:\n",
    "python 2": "print 'loss', loss\nloss.backward()\n",
    "brackets": "x = " + "(" * 5000 + ")" * 5000,
    "braces": "{" * 3000,
    "minus": "x = " + "-" * 100_000 + "1",
    "nots": "x = " + "not " * 4000 + "1",
    "attributes": "x = (a\n" + ".b\n" * 60_000 + ")",
    "sum": "x = (1\n" + "+ 1\n" * 60_000 + ")",
    "elifs": "if a: pass\n" + "elif a: pass\n" * 20_000,
    "lambdas": "x = " + "lambda: " * 2000 + "1",
    "blocks": "\n".join(" " * i + "if a:" for i in range(90)) + "\n" + " " * 90 + "pass",
    "calls": "f()" * 1 + "()" * 4000,
    "nul": "x = 1\x00\n",
    "surrogates": "x = '\ud800'\n",
    "escapes": 'x = "\\d"\n' + FAULTY,
    "long line": "x = [" + "1," * 200_000 + "]",
    "not text": bytes(range(256)).decode("latin-1") * 100,
    "crlf": FAULTY.replace("\n", "\r\n"),
    "itself": "def f():\n    f()\n    loss.backward()\n    optimizer.step()\nf()\n",
    "names": "model = model = a = b = c\na = b\nb = a\nx = x\nloss = criterion(x, y)\nx = softmax(x)\nF.cross_entropy(x, x)\nloss.backward()\n",
    "empty": "",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_source_costs_only_itself(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    (tmp_path / "train.py").write_bytes(HOSTILE[name].encode("utf-8", "surrogatepass"))
    document = case(tmp_path)
    assert document["verdict"] == "healthy"
    assert not [c for c in document["checks"] if c["status"] == "error"]


@pytest.mark.parametrize(
    "line",
    [
        "    loss.backward()\n    optimizer.step()\n",
        "    torch.nn.utils.clip_grad_norm_(p, 1)\n    scaler.step(optimizer)\n",
        "    F.cross_entropy(model(x), y)\n    x = x.view(-1)\n",
        "    loader = DataLoader(train_set, worker_init_fn=f)\n",
        "    model.eval()\n    train_loader = DataLoader(a)\n    test_loader = DataLoader(a)\n",
        "    for p in model.parameters(): p.requires_grad = True\n    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, q))\n",
        "    with torch.no_grad():\n      for x in val_loader: model(x)\n    total += loss\n    loss.backward()\n",
        "    checkpoint = torch.load(p)\n    model.load_state_dict(checkpoint['m'])\n    start = checkpoint['epoch']\n    optimizer.step(); loss.backward()\n",
    ],
)
def test_work_grows_with_the_source(line: str) -> None:
    """Four times the lines in one loop take no more than some five times as many calls."""
    calls = []
    for size in (MOST_BYTES // 64, MOST_BYTES // 16):
        text = "import torch\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\nfor x, y in loader:\n" + line * (
            size // len(line)
        )
        count = Counter[str]()
        sys.setprofile(lambda frame, event, arg, count=count: count.update([event]))  # type: ignore[misc]
        try:
            module = parse(Listing("train.py", text))
            assert isinstance(module, Module)
            answers = looked(programs([module])[0])
        finally:
            sys.setprofile(None)
        calls.append(count["call"] + count["c_call"])
        assert not [a.text for a in answers.values() if "look failed" in a.text]
    assert calls[1] < 5 * calls[0], calls


def test_the_longest_script_is_read_to_its_end() -> None:
    """One loop with as many calls as the looks go through."""
    calls = "    loss = F.cross_entropy(model(x), y)\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(p, 1)\n    optimizer.step()\n    total += loss\n    with torch.no_grad():\n        for v in val_loader: model(v)\n"
    head = "import torch\nimport torch.nn.functional as F\nfor x, y in loader:\n"
    text = head + calls * 49
    text += "    x = x + y\n" * ((MOST_BYTES - len(text)) // 14)
    module = parse(Listing("train.py", text))
    assert isinstance(module, Module)
    answers = looked(programs([module])[0])
    assert answers["keeps_gradients"].state == "fault"


@pytest.mark.parametrize("notebook", ["[]", "{", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000])
def test_broken_notebooks(tmp_path: Path, notebook: str) -> None:
    put(write(tmp_path) / "train.ipynb", notebook)
    assert not found(tmp_path)
    assert case(tmp_path)["verdict"] == "healthy"


def test_too_much_source_is_left_out(tmp_path: Path) -> None:
    put(write(tmp_path) / "train.py", FAULTY + "# " + "x" * 100 + "\n" + "y = 1\n" * (MOST_BYTES // 6))
    assert not found(tmp_path)
