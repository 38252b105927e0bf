"""transformers.Trainer families: GPT-2, BERT, T5 and ViT made from scratch, with four ways to log."""

import os

os.environ.update(
    HF_HUB_OFFLINE="1",
    WANDB_MODE="offline",
    WANDB_SILENT="true",
    WANDB_DISABLE_CODE="true",
    WANDB_DISABLE_GIT="true",
    WANDB_X_DISABLE_META="true",
    TOKENIZERS_PARALLELISM="false",
)
from common import bad, ok, plain
from hf_cases import base_cases
from hf_train import train


def family(task, cfg, names, console, report=(), extra=None, more=None):
    def cases(rng):
        d = base_cases(rng, cfg, task)
        if more:
            d.update(more(rng, cfg))
        if task == "digits":  # console only: the arguments are nowhere on disk
            for k in ("eps", "smooth", "init"):
                d[k].ident, d[k].why = ("no" if k == "eps" else "partly"), d[k].why + " (the arguments themselves are not kept)"
        return [plain(), plain()] + [d[n] for n in names]

    return {
        "cases": cases,
        "console": console,
        "imports": ["sklearn.datasets", "torch.utils.tensorboard"] + (["wandb"] if "wandb" in report else []),
        "run": lambda c, r: train(task, cfg, c, r, list(report) or "none", extra or {}),
    }


GPT = {"task": "lm", "steps": 200, "bs": 16, "lr": 3e-3, "log": 10, "eval": 50, "save": 100}
BERT = {"steps": 240, "bs": 16, "lr": 2e-3, "log": 5, "eval": 40}
T5 = {"steps": 260, "bs": 32, "lr": 5e-3, "log": 5, "eval": 65}
VIT = {"steps": 240, "bs": 32, "lr": 2e-3, "log": 12, "eval": 48, "tqdm": True}

FAMILIES = {
    "hf-gpt2-charlm-trainerstate": family(
        "lm",
        GPT,
        [
            "lr_high",
            "lr_low",
            "wd",
            "jump",
            "units",
            "pocket",
            "shift",
            "masked",
            "eps",
            "flip",
            "init",
            "smooth",
            "over",
            "lostopt",
            "schedreset",
            "crash",
            "term",
            "disk",
            "oom",
            "clean",
            "h_cos",
            "h_small",
            "h_drop",
            "h_const",
            "twice",
        ],
        "train.log",
        more=lambda rng, cfg: {
            "twice": bad(
                "labels_wrong",
                "worse:.1",
                "eval loss far above train loss from the start on",
                0,
                "partly",
                f={"shifted_twice": 1},
                accept=("loss_scaled_wrong",),
            )
        },
    ),
    "hf-bert-seqcls-tensorboard": family(
        "seqcls",
        BERT,
        [
            "lr_high",
            "lr_low",
            "wd",
            "jump",
            "batch",
            "pocket",
            "labels",
            "nozero",
            "flip",
            "slow",
            "over",
            "short",
            "double",
            "frozen",
            "h_cos",
            "h_small",
            "h_drop",
            "h_accum",
            "h_slowev",
            "vocab",
        ],
        "stdout.txt",
        ("tensorboard",),
        more=lambda rng, cfg: {
            "short": bad("code_error", "crash", "traceback in the collator: a record without labels", 90, f={"short": 90}),
            "double": bad(
                "double_softmax",
                "bump:.2",
                "loss never gets below the floor that softmax of probabilities gives",
                0,
                "partly",
                f={"double_softmax": 1},
            ),
            "vocab": bad(
                "code_error",
                "crash",
                "traceback: index out of range in the embedding",
                0,
                cfg={"model": {"vocab_size": 24}},
                accept=("tokenizer_mismatch",),
            ),
            "frozen": bad(
                "frozen_parameters",
                "worse:.2",
                "loss falls a bit, then stays: only the head learns; grad norm small",
                0,
                "no",
                f={"freeze": ("encoder", "embeddings")},
            ),
        },
    ),
    "hf-t5-reverse-wandb": family(
        "reverse",
        T5,
        [
            "lr_high",
            "lr_low",
            "jump",
            "pocket",
            "labels",
            "masked",
            "sumloss",
            "nozero",
            "slow",
            "init_f",
            "h_cos",
            "h_small",
            "h_const",
            "h_drop",
            "units",
        ],
        "output.log",
        ("wandb",),
        {"run_name": "t5-reverse"},
        more=lambda rng, cfg: {
            "init_f": bad(
                "init_too_large",
                "worse:.15",
                "first loss far above that of guessing (log 12)",
                0,
                cfg={"model": {"initializer_factor": rng.choice([8.0, 12.0])}},
            )
        },
    ),
    "hf-vit-digits-progressbar": family(
        "digits",
        VIT,
        [
            "lr_high",
            "lr_low",
            "wd",
            "units",
            "batch",
            "pocket",
            "labels",
            "raw",
            "nan",
            "eps",
            "flip",
            "term",
            "over",
            "smooth",
            "init",
            "h_cos",
            "h_small",
            "h_accum",
            "h_const",
            "short2",
        ],
        "nohup.out",
        more=lambda rng, cfg: {
            "raw": bad("inputs_not_normalized", "worse:.03", "slow, unsteady start; nothing else in the log", 0, "no", f={"raw": 1}),
            "nan": bad(
                "nan_from_sample",
                "nan",
                "loss NaN at one step and for ever, healthy before",
                110,
                f={"nan_at": 110},
                accept=("nan_from_layer",),
            ),
            "short2": ok("short run", {"steps": 180}, check="fine:.25"),
        },
    ),
}
