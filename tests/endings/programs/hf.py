"""A Hugging Face Trainer over the toy task; its ending is chosen by the environment."""

import os
import sys
import time

import torch
import tqdm.std
from lib import CLOCK, make_model, prefetch, toy_batch

tqdm.std.time = time.time = lambda: CLOCK.now
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed  # noqa: E402

TOTAL = 600


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = make_model()

    def forward(self, x, labels):
        logits = self.body(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, seed):
        self.x, self.y = toy_batch(rows, torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


class Tick(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        CLOCK.tick()
        sys.stderr.flush()
        prefetch(state.global_step, int(os.environ.get("AT", "-1")))


def accuracy(predictions):
    best = predictions.predictions.argmax(-1)
    return {"accuracy": float((best == predictions.label_ids).mean())}


def main():
    set_seed(int(os.environ.get("SEED", "0")))
    arguments = TrainingArguments(
        output_dir="out", max_steps=TOTAL, per_device_train_batch_size=64, learning_rate=3e-3, warmup_steps=30,
        lr_scheduler_type="cosine", logging_steps=10, eval_strategy="steps", eval_steps=150, save_steps=150,
        report_to=[], seed=int(os.environ.get("SEED", "0")),
    )  # fmt: skip
    trainer = Trainer(
        model=Classifier(),
        args=arguments,
        train_dataset=Rows(12800, 2),
        eval_dataset=Rows(512, 3),
        compute_metrics=accuracy,
        callbacks=[Tick()],
    )
    trainer.train(resume_from_checkpoint=None)
    trainer.save_model("out")


if __name__ == "__main__":
    main()
