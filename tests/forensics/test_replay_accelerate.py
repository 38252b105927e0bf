"""The adapter that docs/replay.md shows, as it stands there, beside a run that accelerate trained and saved."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

from replays import replayed

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")
ROOT = Path(__file__).resolve().parents[2]

TRAIN = """
import json
import sys
from pathlib import Path

import torch

class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, i):
        x = torch.randn(6, generator=torch.Generator().manual_seed(i))
        return {"x": x, "y": torch.tensor(9.0) if i in (482, 485) else torch.tanh(x.sum())}

class Numbered(Rows):
    def __getitem__(self, i):
        return {**super().__getitem__(i), "row": i}

if __name__ == "__main__":
    import forensics
    from accelerate import Accelerator

    run = Path(sys.argv[1])
    torch.manual_seed(3)
    accelerator = Accelerator(cpu=True)
    order = [i for i in torch.randperm(800).tolist() if i not in (482, 485)]
    order[481:481], order[486:486] = [482], [485]
    loader = torch.utils.data.DataLoader(Numbered(), batch_size=8, sampler=order)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with (run / "metrics.jsonl").open("w") as log:
        for step, batch in enumerate(loader):
            if step == 40:
                accelerator.save_state(str(run / "state_40"))
            optimizer.zero_grad()
            value = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(-1), batch["y"])
            accelerator.backward(value)
            optimizer.step()
            log.write(json.dumps({"step": step, "loss": float(value.detach()), "lr": 1e-2}) + "\\n")
            forensics.record(step, batch["row"].tolist(), folder=run, loss=float(value.detach()))
            if step == 89:
                break
"""


def shown() -> str:
    """The adapter of the table in docs/replay.md."""
    text = (ROOT / "docs/replay.md").read_text("utf-8")
    return next(code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "from train import" in code)


def test_the_adapter_of_the_docs_names_the_samples(tmp_path: Path) -> None:
    run, code = tmp_path / "run", tmp_path / "code"
    run.mkdir()
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "adapter.py").write_text(shown())
    subprocess.run([sys.executable, str(code / "train.py"), str(run)], check=True, capture_output=True, timeout=120, cwd=ROOT)
    case, result = replayed(run, code / "adapter.py")
    told = result.document
    assert not result.failed, result.traceback
    assert told["check"]["met"] and told["check"]["agreed"] == told["check"]["of"]
    assert told["from"]["checkpoint"] == "state_40"
    assert {"weights", "optimizer"} <= set(told["from"]["parts"])
    assert told["verdict"] == "data"
    assert [(c["step"], c["samples"]) for c in case.culprits] == [(60, [482, 485])]


def test_it_is_as_short_as_the_table_says() -> None:
    lines = [x for x in shown().splitlines() if x.strip()]
    assert f"| accelerate with `save_state` | {len(lines)} (below)" in (ROOT / "docs/replay.md").read_text("utf-8")
