"""A Trainer folder of a LoRA: the adapter's weights go over the base model that lies on disk, and the steps meet the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")
peft = pytest.importorskip("peft")

from forensics.replays import into_case  # noqa: E402
from forensics.replays.training import commands, layouts  # noqa: E402


def test_a_lora_is_replayed_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, base = tmp_path / "run", tmp_path / "base"
    x = torch.randint(16, (64, 12), generator=torch.Generator().manual_seed(0)).tolist()
    rows = datasets.Dataset.from_dict({"input_ids": x, "labels": x})
    rows.save_to_disk(str(run / "data"))
    transformers.set_seed(5)
    config = transformers.GPT2Config(vocab_size=16, n_positions=12, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(str(base))
    lora = peft.LoraConfig(
        task_type="CAUSAL_LM", r=4, target_modules=["c_attn"], fan_in_fan_out=True, lora_dropout=0.0, modules_to_save=["ln_f"]
    )
    model = peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(str(base)), lora)
    args = transformers.TrainingArguments(output_dir=str(run), per_device_train_batch_size=8, max_steps=14, logging_steps=1, save_steps=5,
                                          learning_rate=1e-2, report_to=[], seed=7, use_cpu=True, disable_tqdm=True)  # fmt: skip
    trainer = transformers.Trainer(model=model, args=args, train_dataset=rows)
    trainer.train()
    logged = {r["step"]: r["loss"] for r in trainer.state.log_history if "loss" in r}
    monkeypatch.setenv("FORENSICS_RUN", str(run))
    session = commands.Session()
    commands.open_(session, None, str(into_case.adapter_file("hf")), "cpu", 0, 1 << 30)
    begun = commands.start(session, None, str(run / "checkpoint-5"), "start")
    assert begun["parts"] == ["weights of a PEFT adapter", "optimizer", "scheduler", "random numbers"]
    steps: list[dict[str, Any]] = []
    commands.run(session, steps.append, "start", [{"batch": s} for s in range(5, 14)])
    assert [r["loss"] for r in steps] == pytest.approx([logged[s + 1] for s in range(5, 14)], abs=1e-5)


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({}))
    torch.save({}, tmp_path / "optimizer.pt")
    from safetensors.torch import save_file

    save_file({"base_model.model.other.lora_A.weight": torch.zeros(2, 2)}, str(tmp_path / "adapter_model.safetensors"))
    model = torch.nn.Linear(2, 2)
    with pytest.raises(layouts.Unusable, match=r"no place for base_model\.model\.other\.lora_A\.weight"):
        layouts.load_checkpoint(str(tmp_path), model, torch.optim.SGD(model.parameters(), 0.1), None)
