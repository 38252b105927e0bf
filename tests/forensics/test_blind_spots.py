"""What was not logged is listed with what it would have told, and first what speaks to the causes in play."""

from __future__ import annotations

import json
from pathlib import Path

import parsers
from forensics.case import Hypothesis
from forensics.case_parts import summary


def test_the_most_useful_first(tmp_path: Path) -> None:
    rows = [json.dumps({"step": i, "loss": 3 - i / 100, "tokens_per_sec": 1000 + i % 3}) for i in range(100)]
    (tmp_path / "log.jsonl").write_text("\n".join(rows))
    run = parsers.read(tmp_path)

    def order(**probability: float) -> list[str]:
        causes = [Hypothesis(i, i, (), probability=p) for i, p in probability.items()]
        return [spot["what"] for spot in summary.blind_spots(run, causes)]

    plain = order(unknown=1.0)
    assert "tput.tokens" not in plain and "loss.train" not in plain
    assert order(out_of_memory=0.7, unknown=0.3) == ["mem.alloc", *(x for x in plain if x != "mem.alloc")]
    assert order(fp16_overflow=0.5, bad_data_batch=0.3, unknown=0.2)[:3] == ["loss_scale", "grad.norm", "batch ids"]
    assert order(hang=0.9, unknown=0.1)[0] == "wall clock"
