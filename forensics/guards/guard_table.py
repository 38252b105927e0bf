"""The table of guards: what each looks at, how it decides, and where its threshold comes from.

`least` values must have been seen (in the process: a restart begins anew), the statistic looks back over `window` values, and
`patience` values in a row must be over the threshold. `catches` are the symptoms (detectors) that the guard is there for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forensics.guards import live

LOSS = ("divergence", "loss_spike", "nonfinite", "level_shift", "resume_break", "grad_spike", "zero_loss")
OLMO = "OLMo-core stability_monitor.py and skip_step_optimizer.py: 6 deviations over 128 values"
PEER_MAD = "the spike rule of docs/spikes.md: 6 robust deviations and 3 %"


@dataclass(frozen=True)
class GuardRule:
    name: str
    metric: str
    statistic: Any  # a class of ``live``
    threshold: float
    says: str  # the rule as a sentence
    source: str  # of the threshold
    catches: tuple[str, ...] = LOSS
    window: int = 128  # values; OLMo-core
    least: int = 20  # values; bound: six deviations by twenty normal values come once in 100,000
    patience: int = 1


GUARDS = (
    GuardRule("loss_nonfinite", "loss.train", live.NotFinite, 1, "the training loss is NaN or infinite", "Composer NaNMonitor", least=0),
    GuardRule(
        "grad_nonfinite", "grad.norm", live.NotFinite, 1, "the gradient norm is NaN or infinite, after the search of the loss scaler",
        "torchtitan's assertion; 20 values: a scaler that halves from 2^24 has found its scale",
    ),
    GuardRule("loss_z", "loss.train", live.Deviations, 6, "the loss is 6 standard deviations above its mean over 128 values", OLMO),
    GuardRule(
        "grad_z", "grad.norm", live.Deviations, 8, "the gradient norm is 8 standard deviations above its mean over 128 values",
        "OLMo-core has 6, which 24 of 137 healthy runs pass (benchmarks/guards.py), 8 half as many",
    ),
    GuardRule(
        "loss_mad", "loss.train", live.RobustDeviations, 6,
        "the loss is 6 robust deviations above its median over 128 values, twice in a row", PEER_MAD, patience=2,
    ),
    GuardRule(
        "grad_mad", "grad.norm", live.RobustDeviations, 10,
        "the gradient norm is 10 robust deviations above its median over 128 values, 3 times in a row",
        "measured (benchmarks/guards.py): 1 of 137 healthy runs passes it, of 6 deviations 6 do", patience=3,
    ),
    GuardRule(
        "loss_twice", "loss.train", live.TimesMedian, 2, "the loss is twice its median over 128 values, 5 times in a row",
        "LLM-Foundry KillLossSpike: 2 times, more than 4 in a row", patience=5,
    ),
    GuardRule(
        "scaler_floor", "loss_scale", live.Below, -1, "the loss scale is 1 or less", "min_loss_scale of DeepSpeed and Megatron",
        (*LOSS, "loss_scale"), least=0,
    ),
    GuardRule(
        "attention_logits", "attn.max_logit", live.Above, 100, "the largest attention logit is above 100, 3 times in a row",
        "ViT-22B (arXiv 2302.05442): training fails where logits pass the hundreds", (*LOSS, "attention_logits"), least=0, patience=3,
    ),
    GuardRule(
        "step_time", "time.step", live.TimesMedian, 2, "steps take twice the median of the 128 before, 5 times in a row",
        "measured (benchmarks/guards.py): 1 of 127 healthy runs passes it", ("throughput", "stall"), patience=5,
    ),
    GuardRule(
        "eval_drift", "loss.eval", live.TimesLowest, 1.2, "the evaluation loss is 20 % above its lowest, 3 times in a row",
        "measured (benchmarks/guards.py): 7 of 252 healthy runs pass it, at 10 % (SageMaker Debugger, Overfit) more than twice as many", (*LOSS, "train_eval_gap", "eval_jump"), least=1, patience=3,
    ),
    GuardRule("kl_runaway", "rl.kl", live.Above, 2, "the KL divergence is above 2, 3 times in a row",
              "Axolotl, training_stability: above 2", (*LOSS, "policy_kl_ran_away"), patience=3),
    GuardRule(
        "update_ratio", "upd.ratio", live.TimesMedian, 4, "updates over weights are 4 times their median over 128 values, 3 times in a row",
        "a linear warmup doubles it at most; no run of the corpora logged it, so that its false alarms are not measured", patience=3,
    ),
)  # fmt: skip
