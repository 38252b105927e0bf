"""Logs that trackers write: mlflow, accelerate and DLLogger lines."""

import datetime
import json
import logging
import time
from typing import ClassVar

import numpy as np
from tool_logs import Log, stamp


class MLflow(Log):
    imports: ClassVar = ["mlflow", "mlflow.store.tracking.file_store"]

    def setup(self):
        import mlflow

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        self.m = mlflow
        mlflow.set_tracking_uri("file:./mlruns")
        mlflow.set_experiment("tabular-baseline")
        mlflow.start_run(run_name=f"mlp-{self.launch + 1}")
        mlflow.log_params(self.c)
        self.buf = []

    def train(self, s, d):
        if s % self.c["log"] == 0:
            self.m.log_metrics({"train_loss": d["loss"], "train_acc": d["acc"], "lr": d["lr"]}, step=s)

    def eval(self, s, d):
        self.m.log_metrics({"val_loss": d["loss"], "val_acc": d["acc"]}, step=s)

    def end(self):
        self.m.end_run()


class Accel(Log):
    """accelerate with its TensorBoard tracker, plus a few lines on the console; no gradient norm."""

    imports: ClassVar = ["accelerate", "torch.utils.tensorboard"]

    def setup(self):
        from accelerate import Accelerator

        self.accel = Accelerator(cpu=True, log_with="tensorboard", project_dir=".")
        self.accel.init_trackers("regression_mlp", config={k: v for k, v in self.c.items() if isinstance(v, (int, float, str))})

    def train(self, s, d):
        self.win.append(d)
        if s % self.c["log"] == 0:
            self.accel.log(
                {
                    "train_loss": self.mean(clear=False),
                    "lr": d["lr"],
                    "samples_per_second": self.c["bs"] / np.mean([w["dt"] for w in self.win]),
                },
                step=s,
            )
            self.win = []

    def eval(self, s, d):
        self.accel.log({"eval_loss": d["loss"], "eval_mae": d["mae"]}, step=s)
        print(f"{stamp()} - INFO - __main__ - step {s}: eval_loss {d['loss']:.5f} eval_mae {d['mae']:.5f}", flush=True)

    def flush(self):
        [t.writer.flush() for t in self.accel.trackers]

    def end(self):
        self.accel.end_training()


class DLLogger(Log):
    def setup(self):
        self.h = open("dllogger.json", "a")
        self.p("PARAMETER", "PARAMETER", self.c)

    def p(self, kind, step, data):
        (
            self.h.write(
                "DLLL "
                + json.dumps(
                    {
                        "timestamp": f"{time.time():.6f}",
                        "datetime": f"{datetime.datetime.now()}",
                        "elapsedtime": f"{time.time() - self.t0:.6f}",
                        "type": kind,
                        "step": step,
                        "data": data,
                    }
                )
                + "\n"
            ),
            self.h.flush(),
        )

    def train(self, s, d):
        self.win.append(d)
        if s % self.c["log"] == 0:
            r = self.mean(clear=False)
            self.p(
                "LOG",
                [(s - 1) // self.per, s],
                {
                    "train_nll": r,
                    "lrate": d["lr"],
                    "grad_norm": d["gnorm"],
                    "points_per_s": self.c["bs"] / np.mean([w["dt"] for w in self.win]),
                },
            )
            self.win = []

    def eval(self, s, d):
        self.p("LOG", [(s - 1) // self.per, s], {"val_nll": d["loss"]})
