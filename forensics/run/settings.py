"""What the run was told to do: looks settings up in the config table under the names that frameworks give them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

PACKAGE = "package."  # before the names of those that a tracker listed
# what a launch goes on from: a run, or the whole model of another one
RESUMED = "resume resume_from resume_path resume_ckpt resume_checkpoint resume_from_checkpoint load_checkpoint restore restore_from"
_NAMES = {
    "max_steps": "total_optimization_steps max_steps total_steps train_iters num_steps max_iters max_iter total_iters total_iter "
    "train_iterations training_steps num_train_steps num_training_steps total_training_steps total_iterations max_iterations iterations "
    "num_iterations max_step train_steps total_num_steps max_train_steps max_update max_updates total_updates updates after_batches steps niter",
    "environment_steps": "total_timesteps n_timesteps num_timesteps max_timesteps total_env_steps",
    "rollout_steps": "timesteps",  # of a diffusion process, too: only a run that logs rewards is planned by it
    "epochs": "num_train_epochs num_epochs max_epochs n_epochs total_epochs epochs max_epoch nepochs train_epochs num_train_epoch after_epochs num_epoch n_epoch epoch",
    "lr": "lr learn_rate eta0 learning_rate_init learning_rate base_lr peak_lr max_lr lr_max adam_lr lr0",
    "min_lr": "min_lr lr_min end_lr final_lr eta_min",
    "warmup_steps": "warmup_steps num_warmup_steps warmup_iters lr_warmup_iters warmup lr_warmup lr_warmup_steps warmup_updates warmup_iterations",
    "schedule": "schedule lr_scheduler_type lr_decay_style scheduler lr_scheduler lr_schedule sched decay_type",
    "clip": "grad_clip max_grad_norm clip_grad gradient_clip_val clip_grad_norm clip_norm gradient_clipping clip max_norm",
    "precision": "precision dtype mixed_precision fp16 bf16 amp mixed_precision_param use_fp16 use_bf16",
    "optimizer": "optimizer optim optimizer_name opt",
    "beta2": "beta2 adam_beta2 b2",
    "eps": "eps epsilon adam_epsilon adam_eps",
    "batch_size": "batch_size mini_batch global_batch_size train_batch_size per_device_train_batch_size local_batch_size bsz",
    "accumulation": "gradient_accumulation_steps accum_steps accum accumulation grad_accum accumulate_grad_batches update_freq optimizer_delay",
    "seed": "seed manual_seed random_seed",
    "weight_decay": "weight_decay wd adam_weight_decay l2 l2_reg",
    "label_smoothing": "label_smoothing label_smoothing_factor label_smooth",
    "vocab_size": "vocab_size n_vocab vocab vocabulary_size nvocab padded_vocab_size",
    "classes": "num_classes n_classes num_labels n_labels nb_classes nc",
    "qk_norm": "qk_norm qk_layernorm use_qk_norm query_key_norm",
    "inputs_scaled": "standardize standardise normalize normalise normalize_inputs normalise_inputs normalize_input standardize_inputs standardise_inputs scale_inputs "
    "input_norm input_normalization normalize_data normalize_features feature_scaling scale_features scale_data scale_input cmvn apply_cmvn use_cmvn",
    "dropout": "dropout dropout_rate dropout_prob dropout_p p_dropout drop_rate hidden_dropout_prob hidden_dropout resid_pdrop",
    "width": "d_model hidden_size n_embd model_dim embed_dim embedding_dim dim hidden_dim hidden",
    "heads": "n_head n_heads num_heads num_attention_heads attention_heads heads nhead nheads encoder_attention_heads",
    "init_std": "init_std initializer_range init_method_std initializer_std init_scale kernel_init_std weight_init_std init_stddev std_init",
    "world_size": "world_size num_gpus n_gpu gpus devices num_processes",
    "dataset_size": "num_samples num_examples dataset_size train_dataset_size dataset_length dataset_len num_train_examples n_train "
    "train_size n_samples",
    "data_seed": "data_seed dataloader_seed sampler_seed shuffle_seed",
    "drop_last": "dataloader_drop_last drop_last",
    "shuffle": "shuffle shuffle_data shuffle_train train_shuffle",
    "rampup": "rampup_batch_size",
}

_BETAS, _NUMBER = lazy_re(r"(adamw?_|optim(izer)?_)?betas"), lazy_re(r"[\d.]+(?:e-?\d+)?")  # PyTorch's pair, as a list or as text


@dataclass(frozen=True)
class Setting:
    """A config value with the place it was read from and the attempt it was read for (None: all)."""

    key: str
    value: Any
    where: str
    attempt: int | None = None


def setting(run: Run, what: str) -> Setting | None:
    """The setting by its meaning ('clip'), the last one where a run was launched several times; None where unknown."""
    found = settings(run, what)
    return found[-1] if found else None


def settings(run: Run, what: str) -> list[Setting]:
    """All values of a setting, in the order of the files; exact names first choice, shallow keys before nested ones; a null before nothing alone."""
    by_name = _config(run)
    found = [by_name[name] for name in names_of(what) if name in by_name]
    return next((told for told in found if any(t.value is not None for t in told)), found[0] if found else [])


def names_of(what: str) -> list[str]:
    """The names that frameworks give a setting, best first."""
    return _NAMES[what].split()


def named(run: Run, names: str) -> list[Setting]:
    """All settings under any of the names, given as one text with blanks between: for what only one place asks."""
    by_name = _config(run)
    return [s for name in names.split() for s in by_name.get(name, ())]


def number(run: Run, what: str) -> float | None:
    """The setting as a number, None where it is not one (`warmup: auto`)."""
    found = setting(run, what)
    return as_number(found.value) if found else None


def as_number(value: Any) -> float | None:
    """None for what is no finite number: `clip: inf` clips nothing, and no count is infinite."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def precision(run: Run) -> str | None:
    """'fp16', 'bf16', 'fp32' or None where config does not say."""
    for found in settings(run, "precision"):
        value = str(found.value).lower()
        if found.key.endswith("fp16") and value == "true":
            return "fp16"
        if found.key.endswith("bf16") and value == "true":
            return "bf16"
        for known, words in (
            ("bf16", ("bf16", "bfloat16")),
            ("fp16", ("fp16", "float16", "half", "16-mixed", "16")),
            ("fp32", ("fp32", "float32", "32", "no", "32-true")),
        ):
            if value in words:
                return known
    return None


@once
def last_values(run: Run) -> dict[str, str]:
    """Key -> JSON text of the last launch that names it."""
    table = run.tables["config"]
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


@once
def every(run: Run) -> list[Setting]:
    """All settings by their whole keys, in the order of the files. Versions of installed packages are none: they say what could be used."""
    table = run.tables["config"]
    rows = zip(*(table[c].to_pylist() for c in ("key", "value", "source", "at", "attempt")), strict=True)
    return [
        Setting(key, plain(value), run.where(source, at), attempt)
        for key, value, source, at, attempt in rows
        if not key.startswith(PACKAGE)
    ]


@once
def _config(run: Run) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = {}
    for s in every(run):
        last = re.split(r"[./]", s.key)[-1].lower().replace("-", "_").replace(" ", "_").lstrip("_")
        found.setdefault(last, []).append(s)
        if _BETAS.fullmatch(last) and len(both := _NUMBER.findall(str(s.value))) == 2:
            found.setdefault("beta2", []).append(Setting(s.key, float(both[1]), s.where, s.attempt))
    return found


def plain(text: str | None) -> Any:
    """What the JSON text of a config stands for; None for none, the text itself where it is no JSON."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
