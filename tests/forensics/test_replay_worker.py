"""The worker and the command: a planted fault found, and every way an adapter can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from forensics.cli import main
from forensics.replays.client import ReplayFailed, Worker

torch = pytest.importorskip("torch")

from replays import PLAIN, train  # noqa: E402 - needs torch


def adapter(folder: Path, extra: str = "", name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(PLAIN + textwrap.dedent(extra))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("planted")).parent


def replay(run: Path, adapter: Path, out: Path, *options: str) -> tuple[int, str, dict[str, object]]:
    arguments = [
        "replay",
        str(run),
        "--adapter",
        str(adapter),
        "--device",
        "cpu",
        "--out",
        str(out / "r.html"),
        "--json",
        str(out / "r.json"),
        *options,
    ]
    result = CliRunner().invoke(main, arguments)
    case = json.loads((out / "r.json").read_text()) if (out / "r.json").exists() else {}
    return result.exit_code, result.output, case


def test_the_planted_samples_are_found_and_shown(run: Path, tmp_path: Path) -> None:
    code, _, case = replay(run, adapter(tmp_path), tmp_path)
    assert code == 0
    told = case["replay"]
    assert isinstance(told, dict)
    assert told["verdict"] == "data"
    assert [(c["step"], c["samples"], c["how"]) for c in case["culprits"]] == [(60, [482, 485], "bisected")]  # type: ignore[index]
    assert told["noise_floor"] == 0.0
    assert told["steps_replayed"] <= told["bound"]
    assert told["agreed"] > 20
    assert told["parts"] is None
    assert {a["outcome"] for a in told["arms"]} >= {"spike", "no spike"}
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Skip list for the next attempt" in page
    assert "482, 485" in page
    assert "armcurve" in page
    top = case["hypotheses"][0]  # type: ignore[index]
    assert top["id"] == "bad_data_batch"
    assert any(c["part"] == "replay" for c in top["clues"])


def test_an_adapter_that_prints_and_reads_does_not_break_the_protocol(run: Path, tmp_path: Path) -> None:
    path = adapter(tmp_path, """
        import os, sys
        print('{"id": 1, "done": {}}', flush=True)
        os.system("echo from a child")
        _batch = batch
        def batch(step):
            print("step", step, file=sys.stdout)
            assert sys.stdin.read() == ""
            return _batch(step)
    """)  # fmt: skip
    with Worker(sys.executable, path, timeout=100) as worker:
        assert worker.open("cpu", 1)["parameters"] == 129
        seen: list[dict[str, object]] = []
        worker.ask("run", seen.append, state="built", plan=[{"batch": 0}, {"batch": 1}])
        assert [s["i"] for s in seen] == [0, 1]
        assert worker.steps == 2
        first = [s["loss"] for s in seen]
        seen.clear()
        worker.ask("run", seen.append, state="built", plan=[{"batch": 0}, {"batch": 1}])
        assert [s["loss"] for s in seen] == first  # a state is put back exactly
        found = worker.ask("gradients", state="built", batch=60)
        assert found["how"] == "torch.func"
        assert sorted(range(8), key=lambda i: -found["norms"][i])[:2] in ([2, 5], [5, 2])
        group = os.getpgid(worker._processes[0].pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ("def loss(model, batch, reduction='mean'): return model(batch['x'])", "must return a scalar; it returned shape (8, 1)"),
        ("def build(): return 3", "build() must return (model, optimizer)"),
        ("def batch(step): return open('/nowhere/data.bin')", "needs something that is not there"),
        ("def batch(step): raise ValueError('no such shard')", "ValueError: no such shard"),
        ("def batch(step): raise MemoryError()", "ran out of memory"),
        ("def batch(step): import os; os.kill(os.getpid(), 9)", "killed the worker"),
        ("raise SystemExit(4)", "SystemExit"),
    ],
)
def test_a_failing_adapter_costs_only_the_replay(extra: str, sentence: str, run: Path, tmp_path: Path) -> None:
    code, output, case = replay(run, adapter(tmp_path, extra), tmp_path)
    assert code == 1
    assert sentence in output
    assert "Traceback" not in output
    assert case["replay"]["verdict"] == "undecided"  # type: ignore[index]
    assert sentence in case["replay"]["trouble"]  # type: ignore[index]
    assert case["verdict"] == "unhealthy"
    assert case["hypotheses"]
    if "kill" not in extra:
        assert "Traceback" in (tmp_path / "r.traceback.txt").read_text()


def test_a_nondeterministic_adapter_convicts_nobody(run: Path, tmp_path: Path) -> None:
    extra = """
        import itertools
        _calls, _clean = itertools.count(), batch
        def batch(step):
            b = _clean(step)
            if step == 60 and next(_calls) % 2:
                b["y"] = torch.tanh(b["x"].sum(1))
            b["x"] = b["x"] + 0.01 * torch.rand(())
            return b
        def train_step(model, optimizer, scheduler, b):
            optimizer.zero_grad()
            value = loss(model, {**b, "x": b["x"] + 0.3 * torch.rand(8, 1).new_tensor([[__import__("os").urandom(1)[0] / 255.0]])})
            value.backward()
            optimizer.step()
            return value
    """
    code, _, case = replay(run, adapter(tmp_path, extra), tmp_path)
    assert code == 0
    assert case["replay"]["verdict"] == "cannot reproduce"  # type: ignore[index]
    assert "gives another batch when it is asked for once more" in case["replay"]["why"]  # type: ignore[index]
    assert case["culprits"] == []


def test_silence_is_ended_by_the_timeout(tmp_path: Path) -> None:
    path = adapter(tmp_path, "def build():\n    import time; time.sleep(600)")
    begun = time.monotonic()
    with pytest.raises(ReplayFailed, match="said nothing for"), Worker(sys.executable, path, timeout=15) as worker:
        worker.open("cpu", 1)
    assert worker._processes[0].poll() is not None
    assert time.monotonic() - begun < 300


def test_an_interpreter_without_torch_gives_one_sentence(run: Path, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    code, output, case = replay(run, adapter(tmp_path), tmp_path, "--python", str(bare))
    assert code == 1
    assert "has no usable torch" in output
    assert case["replay"]["verdict"] == "undecided"  # type: ignore[index]


def test_a_missing_adapter_or_interpreter_is_named(run: Path, tmp_path: Path) -> None:
    code, output, _ = replay(run, tmp_path / "none.py", tmp_path)
    assert code == 1
    assert "there is no adapter" in output
    code, output, _ = replay(run, adapter(tmp_path), tmp_path, "--python", "no-such-python")
    assert code == 1
    assert "there is no interpreter" in output


def test_init_writes_an_adapter_that_works(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", "--init", "--adapter", str(tmp_path / "a.py")])
    assert result.exit_code == 0
    assert CliRunner().invoke(main, ["replay", "--init", "--adapter", str(tmp_path / "a.py")]).exit_code == 1
    with Worker(sys.executable, tmp_path / "a.py", timeout=100) as worker:
        worker.open("cpu", 1)
        seen: list[dict[str, object]] = []
        worker.ask("run", seen.append, state="built", plan=[{"batch": 0}, {"batch": 1, "rows": [0, 1, 2]}])
        assert len(seen) == 2
        assert worker.ask("ids", batches=[2])["ids"][0][0] == 64


def test_precision_and_guards_reach_what_the_adapter_casts_itself(tmp_path: Path) -> None:
    extra = """
        def loss(model, batch, reduction="mean"):
            x = (model(batch["x"])[:, 0].half() * 0 + 6e4).float()
            kind = batch["y"].half().dtype
            rows = x + (batch["y"].half() * 0 + 6e4 + 6e4).float()
            return rows if reduction == "none" else rows.mean()
    """
    with Worker(sys.executable, adapter(tmp_path, extra), timeout=100) as worker:
        worker.open("cpu", 1)
        outcome = {}
        for name, changes in (("plain", {}), ("fp32", {"precision": "fp32"}), ("fp64", {"precision": "fp64"}), ("guard", {"guard": True})):
            seen: list[dict[str, float]] = []
            worker.ask("run", seen.append, state="built", plan=[{"batch": 0}], changes=changes)
            outcome[name] = float(seen[0]["loss"])
        assert outcome["plain"] == float("inf")
        assert outcome["fp32"] == outcome["fp64"] == 180000.0
        assert outcome["guard"] == 70000.0
        first = worker.ask("frames", state="built", batch=0)["first"]
        assert first["operation"] in ("add", "mul")


def test_the_worker_ends_with_its_parent(tmp_path: Path) -> None:
    code = f"""
        import sys
        from pathlib import Path
        from forensics.replays.client import Worker
        w = Worker(sys.executable, Path({str(adapter(tmp_path))!r}), timeout=100)
        w.open("cpu", 1)
        print(w._processes[0].pid, flush=True)
        import os; os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the worker outlived its parent")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_same_verdict_on_a_gpu(run: Path, tmp_path: Path) -> None:
    code, _, case = replay(run, adapter(tmp_path), tmp_path, "--device", "cuda")
    assert code == 0
    assert case["replay"]["verdict"] == "data"  # type: ignore[index]
    assert case["culprits"][0]["samples"] == [482, 485]  # type: ignore[index]


def test_arms_on_several_workers_say_what_one_says(run: Path, tmp_path: Path) -> None:
    """A rate that jumps, replayed with one worker and with three: the same outcomes, in whatever order."""
    from forensics import at_path
    from forensics.replays import into_case
    from forensics.replays.session import Options

    jump = """
        def build():
            torch.manual_seed(3)
            model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 200.0 if 60 <= k < 64 else 1.0)
        def batch(step):
            x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
            return {"x": x, "y": torch.tanh(x.sum(1))}
    """
    path = adapter(tmp_path, jump)
    space: dict[str, object] = {}
    exec(compile(path.read_text(), "train.py", "exec"), space)
    model, optimizer, scheduler = space["build"]()  # type: ignore[operator]
    with (tmp_path / "metrics.jsonl").open("w") as f:
        for step in range(90):
            optimizer.zero_grad()
            loss = space["loss"](model, space["batch"](step))  # type: ignore[operator]
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            lr = optimizer.param_groups[0]["lr"]
            optimizer.step()
            scheduler.step()
            f.write(json.dumps({"step": step, "loss": float(loss.detach()), "grad_norm": float(norm), "lr": lr}) + "\n")
    told = []
    for more in (0, 2):
        options = Options(path, sys.executable, "cpu", threads=1, more_workers=more)
        case, result = into_case.replayed(at_path.read(str(tmp_path)), options, None)
        assert not result.failed, result.traceback
        told.append(result.document)
        assert case.culprits == ()
    assert [d["verdict"] for d in told] == ["optimizer-hyperparameter"] * 2
    assert {a["name"]: a["outcome"] for a in told[0]["arms"]} == {a["name"]: a["outcome"] for a in told[1]["arms"]}
