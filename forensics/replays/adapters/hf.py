"""Hugging Face Trainer folders: output_dir with checkpoint-N folders, and the data set it was trained on saved to disk.

The data set: `save_to_disk` in the run folder (or beside it), or where FORENSICS_DATA points; columns as the model takes them
(input_ids, labels ...), of equal length or with a padding collator saved by the tokenizer. Order, seeds and accumulation are
the Trainer's own: its sampler draws here as it drew there. A step of several processes is one batch here, of all their rows. Needs transformers and datasets in the interpreter that is named.

The model is built from the first checkpoint's configuration; its weights at step 0 are those of `_name_or_path` where that
can be loaded, else a fresh initialization that need not be the run's: begin from a checkpoint (forensics does).
"""

from __future__ import annotations

import dataclasses
import enum
import os
import tempfile
from pathlib import Path
from typing import Any

RUN = Path(os.environ.get("FORENSICS_RUN", "."))
BASES = {"CAUSAL_LM": "CausalLM", "SEQ_CLS": "SequenceClassification", "SEQ_2_SEQ_LM": "Seq2SeqLM", "TOKEN_CLS": "TokenClassification"}
_kept: dict[str, Any] = {}


def _folders() -> list[tuple[int, Path]]:
    root = RUN.parent if RUN.name.startswith("checkpoint-") else RUN
    found = [(int(p.name.rpartition("-")[2]), p) for p in root.glob("checkpoint-*") if p.name.rpartition("-")[2].isdigit()]
    if not found:
        raise FileNotFoundError(f"no checkpoint-N folder in {root}")
    return sorted(found)


def checkpoints() -> list[tuple[int, str]]:
    return [(step, str(path)) for step, path in _folders()]


def _arguments() -> Any:
    """The TrainingArguments that were saved, read without running anything but transformers' own classes."""
    if "arguments" not in _kept:
        import importlib

        import torch

        paths = [p for p in (RUN / "training_args.bin", *(f / "training_args.bin" for _, f in _folders())) if p.exists()]
        if not paths:
            raise FileNotFoundError(f"no training_args.bin in {RUN} or its checkpoints")
        allowed: list[Any] = []
        for name in torch.serialization.get_unsafe_globals_in_checkpoint(str(paths[0])):
            module, _, rest = name.rpartition(".")
            if name == "builtins.getattr":  # early releases of Python 3.11 write members of enumerations so
                allowed.append((_member, name))
                continue
            if name.split(".")[0] not in ("transformers", "accelerate", "torch"):
                raise ValueError(f"training_args.bin wants {name}, which is neither transformers nor accelerate")
            found = getattr(importlib.import_module(module), rest)
            if not _is_plain(found):
                raise ValueError(f"training_args.bin wants {name}, which is no setting")
            allowed.append(found)
        with torch.serialization.safe_globals(allowed):
            _kept["arguments"] = torch.load(paths[0], weights_only=True)
    return _kept["arguments"]


def _is_plain(found: Any) -> bool:
    """Is it what settings are made of: an enumeration, a data class, a device, a type of numbers? A function or another class of
    these libraries may load and run code."""
    import torch

    if isinstance(found, torch.dtype):
        return True
    plain = (enum.Enum, torch.device, torch.Size)
    named = isinstance(found, type) and f"{found.__module__}.{found.__qualname__}" == "accelerate.state.PartialState"
    return isinstance(found, type) and (issubclass(found, plain) or dataclasses.is_dataclass(found) or named)


def _member(owner: Any, name: str) -> Any:
    if isinstance(owner, type) and issubclass(owner, enum.Enum):
        return owner[name]
    raise ValueError(f"training_args.bin asks for {name} of something that is no enumeration")


def _data() -> Any:
    if "data" not in _kept:
        import datasets

        if named := os.environ.get("FORENSICS_DATA"):
            places = [Path(named)]
        else:
            plain = sorted([*RUN.glob("*/state.json"), *RUN.glob("*/*/state.json"), *RUN.parent.glob("*/state.json")])
            split = sorted([*RUN.glob("*/dataset_dict.json"), *RUN.parent.glob("*/dataset_dict.json")])
            places = [p.parent for p in (*plain, *split)]
        if not places:
            raise FileNotFoundError(f"no data set saved to disk in {RUN}; set FORENSICS_DATA to its folder")
        found = datasets.load_from_disk(str(places[0]))
        _kept["data"] = found["train"] if isinstance(found, datasets.DatasetDict) else found
    return _kept["data"]


def _trainer() -> Any:
    """A Trainer with the run's arguments, for its sampler and collator; it trains nothing."""
    if "trainer" not in _kept:
        import transformers

        args = _arguments()
        plain = {
            f.name: getattr(args, f.name) for f in dataclasses.fields(transformers.TrainingArguments) if f.init and hasattr(args, f.name)
        }
        plain |= {"output_dir": tempfile.mkdtemp(prefix="forensics-"), "report_to": [], "use_cpu": True, "dataloader_num_workers": 0,
                  "push_to_hub": False, "bf16": False, "fp16": False, "deepspeed": None, "fsdp": None, "eval_strategy": "no",
                  "load_best_model_at_end": False, "do_train": True, "logging_dir": None, "ddp_backend": None}  # fmt: skip
        known = {f.name for f in dataclasses.fields(transformers.TrainingArguments) if f.init}
        fresh = transformers.TrainingArguments(**{k: v for k, v in plain.items() if k in known and v is not None})
        _kept["trainer"] = transformers.Trainer(model=_model(), args=fresh, train_dataset=_data(), data_collator=_collator())
    return _kept["trainer"]


def _collator() -> Any:
    import transformers

    _, folder = _folders()[0]
    if (folder / "tokenizer_config.json").exists():
        return transformers.DataCollatorWithPadding(transformers.AutoTokenizer.from_pretrained(str(folder)))
    return transformers.default_data_collator


def _model() -> Any:
    import transformers

    _, folder = _folders()[0]
    if (folder / "adapter_config.json").exists():
        return _over_base(folder)
    config = transformers.AutoConfig.from_pretrained(str(folder))
    name = (config.architectures or ["AutoModel"])[0]
    _kept["name"] = name
    transformers.set_seed(_arguments().seed)
    return getattr(transformers, name)(config)


def _over_base(folder: Path) -> Any:
    """A PEFT adapter over its base model, which has to lie on this disk."""
    import peft
    import transformers

    config = peft.PeftConfig.from_pretrained(str(folder))
    kind = BASES.get(str(config.task_type).rpartition(".")[2])
    if kind is None:
        raise ValueError(f"the PEFT adapter in {folder} is for the task {config.task_type}, which is not replayed: write an adapter")
    base = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(config.base_model_name_or_path, local_files_only=True)
    config.inference_mode, _kept["name"] = False, type(base).__name__
    transformers.set_seed(_arguments().seed)
    return peft.get_peft_model(base, config)


def build() -> Any:
    import transformers

    args = _arguments()
    model = _model()
    model.train()
    trainer = transformers.Trainer(model=model, args=_trainer().args, train_dataset=_data(), data_collator=_collator())
    steps = args.max_steps if args.max_steps > 0 else _steps_of_epoch() * int(-(-args.num_train_epochs // 1))
    trainer.create_optimizer_and_scheduler(num_training_steps=steps)
    return model, trainer.optimizer, trainer.lr_scheduler


def _processes() -> int:
    """How many trained: a checkpoint of several holds the random numbers of each."""
    return max(len(list(_folders()[0][1].glob("rng_state_*.pth"))), 1)


def _rows_of_step() -> int:
    args = _arguments()
    return int(args.per_device_train_batch_size * args.gradient_accumulation_steps * _processes())


def _steps_of_epoch() -> int:
    args, size, n = _arguments(), _rows_of_step(), len(_data())
    return int(n // size if args.dataloader_drop_last else -(-n // size))


def _rows(step: int) -> list[int]:
    """Positions in the data set of the step-th optimizer step, as the Trainer's sampler drew them."""
    epoch, i = divmod(step, _steps_of_epoch())
    if _kept.get("epoch") != epoch:
        loader = _trainer().get_train_dataloader()
        sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
        for thing in (loader, sampler):
            if hasattr(thing, "set_epoch"):
                thing.set_epoch(epoch)
        _kept["epoch"], _kept["order"] = epoch, list(iter(sampler))
    size, order = _rows_of_step(), list(_kept["order"])
    rows = order[i * size : (i + 1) * size]
    each = _arguments().per_device_train_batch_size * _processes()
    return rows + order[: -len(rows) % each if _processes() > 1 else 0]  # accelerate gives every process as many, from the beginning


def batch(step: int) -> Any:
    rows = _rows(step)
    data = _data()
    names = set(_trainer()._signature_columns or []) if getattr(_trainer(), "_signature_columns", None) else set(data.column_names)
    keep = [c for c in data.column_names if c in names or c in ("label", "label_ids", "labels")]
    return dict(_collator()([{k: data[i][k] for k in keep} for i in rows]))


def sample_ids(step: int) -> list[int]:
    return _rows(step)


def loss(model: Any, batch: Any, reduction: str = "mean") -> Any:
    from torch.nn import functional as F

    if reduction != "none":
        counted = {}
        if getattr(_trainer(), "model_accepts_loss_kwargs", False) and "labels" in batch:
            counted["num_items_in_batch"] = (batch["labels"] != -100).sum()  # as the Trainer counts, the first token included
        return model(**batch, **counted).loss
    found = model(**{k: v for k, v in batch.items() if k not in ("labels", "label")})
    logits, labels = found.logits, batch["labels"] if "labels" in batch else batch["label"]
    if logits.dim() == 3 and labels.dim() == 2:  # tokens; a causal model predicts the next one
        if any(kind in _kept["name"] for kind in ("LMHead", "CausalLM")):
            logits, labels = logits[:, :-1], labels[:, 1:]
        each = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none", ignore_index=-100).view(labels.shape)
        return each.sum(1) / (labels != -100).sum(1)
    if labels.is_floating_point():
        return ((logits.squeeze(-1).float() - labels.float()) ** 2).reshape(len(labels), -1).mean(1)
    return F.cross_entropy(logits.float(), labels.view(-1), reduction="none")


def train_step(model: Any, optimizer: Any, scheduler: Any, batch: Any) -> tuple[float, float]:
    """One optimizer step as the Trainer does it: the mean over all of the step, clipped, then the schedule."""
    import torch

    args = _arguments()
    kind = torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None
    device = next(model.parameters()).device.type
    optimizer.zero_grad()
    with torch.autocast(device, kind, enabled=kind is not None):
        value = loss(model, batch)
    value.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm if args.max_grad_norm else float("inf"))
    optimizer.step()
    scheduler.step()
    return float(value.detach()), float(norm)


def __getattr__(name: str) -> Any:
    if name == "PRECISION":
        args = _arguments()
        return "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
    raise AttributeError(name)
