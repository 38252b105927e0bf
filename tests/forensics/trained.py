"""A small model, trained and saved as a script would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tiny models: threads only wait for each other


def make(seed: int = 0) -> tuple[Any, Any, Any]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Embedding(30, 16), torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Linear(32, 30))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=1000)


def train(model: Any, optimizer: Any, schedule: Any, steps: int, per_step: int = 1) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randint(0, 30, (8, 4))), torch.randint(0, 30, (8,))).backward()
        optimizer.step()
        for _ in range(per_step):
            schedule.step()


def save(path: Path, step: int, model: Any, optimizer: Any = None, schedule: Any = None) -> Path:
    state = {"model": model.state_dict(), "step": step}
    state |= {"optimizer": optimizer.state_dict()} if optimizer else {}
    state |= {"scheduler": schedule.state_dict()} if schedule else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path)
    return path


def tokenizer(folder: Path, *, bos: str = "", special: int = 1, template: str = "x" * 100) -> None:
    """The files that transformers saves beside a model."""
    single = [{"SpecialToken": {"id": bos, "type_id": 0}}] * bool(bos) + [{"Sequence": {"id": "A", "type_id": 0}}]
    whole = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": special, "content": "<s>"}],
             "post_processor": {"type": "TemplateProcessing", "single": single}, "normalizer": None}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    (folder / "chat_template.jinja").write_text(template)
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": f"<{special}>"}}))
