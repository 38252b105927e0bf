"""What the words of an error tell beyond its class: an index out of range, ranks that never met, a network that broke; beside their twins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import START, case, make, write

TRACE = 'Traceback (most recent call last):\n  File "/app/train.py", line 31, in <module>\n    loss.backward()\n'
TOKENS = "../aten/src/ATen/native/cuda/Indexing.cu:1289: indexSelectLargeIndex: block: [33,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
LABELS = "/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
ASSERT = TRACE + "RuntimeError: CUDA error: device-side assert triggered\n"
OTHER = TRACE + "RuntimeError: CUDA error: an illegal memory access was encountered\n"


def steps(n: int = 60) -> str:
    return "".join(f"step {i} loss {2 + 1 / i:.4f}\n" for i in range(1, n + 1))


def all_told(told: dict[str, Any]) -> str:
    return " ".join([*(str(h["interventions"]) for h in told["hypotheses"]), *(c["text"] for h in told["hypotheses"] for c in h["clues"])])


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (TOKENS + ASSERT, "size of the embedding"),
        (LABELS + ASSERT, "ignore_index"),
        (TRACE + "IndexError: index out of range in self\n", "size of the embedding"),
        (TRACE + "IndexError: Target 10 is out of bounds.\n", "ignore_index"),
    ],
)
def test_an_index_out_of_range_is_named(log: str, words: str, tmp_path: Path) -> None:
    assert words in all_told(case(make(tmp_path / "faulty", [], log=steps() + log)))
    for k, other in enumerate((OTHER, TRACE + "KeyError: 'labels'\n")):
        assert words not in all_told(case(make(tmp_path / f"other{k}", [], log=steps() + other)))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 31/32 clients joined.",
            "Find the rank that did not come",
        ),
        ("RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).", "another MASTER_PORT"),
        (
            "torch.distributed.DistNetworkError: The client socket has timed out after 60s while trying to connect to (10.0.0.1, 29500).",
            "MASTER_ADDR",
        ),
    ],
)
def test_ranks_that_never_met(line: str, words: str, tmp_path: Path) -> None:
    assert words in all_told(case(make(tmp_path / "faulty", [], log=f"Using 32 processes\n{TRACE}{line}\n")))
    assert words not in all_told(case(make(tmp_path / "other", [], log=f"Using 32 processes\n{TRACE}KeyError: 'data'\n")))


def test_a_network_that_broke_is_told_apart_from_a_rank_that_waits(tmp_path: Path) -> None:
    wait = "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
    link = "node3:1234:1290 [2] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129\n"
    told = [all_told(case(write(tmp_path / name, log=log))) for name, log in (("link", link + wait), ("wait", wait))]
    assert "the network" in told[0] and "ibstat" in told[0] and "ibstat" not in told[1]


def test_a_warning_of_the_network_alone_accuses_nobody(tmp_path: Path) -> None:
    link = "node3:1234:1290 [2] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with status=12\n"
    assert case(write(tmp_path / "went_on", log=link, time=lambda i: START + i))["verdict"] == "healthy"


FRAMES = """Detected inf/nan during batch_number=0
Last 21 forward frames:
abs min  abs max  metadata
                  encoder.block.1.layer.1.dropout Dropout
0.00e+00 2.57e+02 input[0]
0.00e+00 2.85e+02 output
                  encoder.block.2.layer.1.wo Linear
7.45e-06 1.27e+00 weight
0.00e+00 2.68e+04 input[0]
0.00e+00      inf output
                  encoder.block.2.layer.1.dropout Dropout
0.00e+00      inf input[0]
0.00e+00      inf output
"""


def test_frames_that_were_printed_name_the_module(tmp_path: Path) -> None:
    def nan(i: int) -> float:
        return 2 + 1 / i if i < 200 else float("nan")

    told = case(write(tmp_path / "frames", log=FRAMES, loss=nan))
    shown = [e["title"] for f in told["findings"] if f["kind"] == "nonfinite" for e in f["evidence"]]
    assert any("encoder.block.2.layer.1.wo (Linear)" in t and "at most 2.68e+04" in t for t in shown)
    assert "Look at encoder.block.2.layer.1.wo first" in all_told(told)
    assert "encoder.block" not in str(case(write(tmp_path / "none", log=FRAMES.splitlines()[0] + "\n", loss=nan)))
