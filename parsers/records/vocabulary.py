"""The names of columns and keys that say where a row belongs, for every format: data, and how names are compared.

One list for each role, the best name first. CSV, Parquet, JSON, console lines, W&B's declared axes, manifests and checkpoints look here, so
that the same rows give the same steps whatever wrote them.

The names are those of the writers: Hugging Face, LLaMA-Factory, ms-swift, Lightning and Keras loggers, Ultralytics, MMCV and MMEngine,
Detectron2, fairseq, LeRobot, Megatron-LM, nanoGPT, Stable-Baselines3, Ray, AlgoPerf, DVCLive, MLflow, W&B, ClearML, Comet; and what people write by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from parsers.lazy_regex import lazy_re
from parsers.other_languages import named_in_english

# Optimizer steps come before environment steps, and those before Ray's training_iteration, as Ray's own TensorBoard logger has it
# (ray/tune/logger/tensorboardx.py: ``result.get(TIMESTEPS_TOTAL) or result[TRAINING_ITERATION]``).
_UPDATES = ("n_updates", "updates", "update", "upd")
BATCH_NUMBER = ("batch", "batch_idx", "batch_index", "batch_nb", "batch_num", "minibatch", "mini_batch", "batch_id")
STEP = (
    "trainer/global_step", "global_step", "train/global_step", "training/global_step", "global_step/max_steps", "global_steps",
    "step", "_step", "train/step", "steps", "current_steps", "current_step", "train_step", "training_step",
    "optimizer_step", "opt_step", "update_step", "global_iter", "global_iteration", "iteration", "iterations", "learning_iteration", "iter", "iters",
    "iter_num", "train_iter", "num_updates", *_UPDATES,
    "total_timesteps", "time/total_timesteps", "timesteps_total", "num_timesteps", "total_env_steps", "env_steps", "env_step", "t_env",
    "num_env_steps_sampled", "timesteps", "training_iteration", "n_iter", "it", "itr", "timestep", "last_step", *BATCH_NUMBER,
)  # fmt: skip

# Often something else (a size, a rate): the values must be whole, must grow or stand beside an epoch, and must not be all the same.
# A single number, as a checkpoint has it, is not believed.
WEAK_STEP = frozenset({*_UPDATES, "n_iter", "it", "itr", "timestep", "last_step", *BATCH_NUMBER})
# So called by some who mean the steps so far and by others who mean the plan, which is all the same.
TOTAL_STEP = frozenset({"total_timesteps", "timesteps_total", "total_env_steps"})
SEVERAL = 8  # bound: rows of which a quarter going back are no restarts: what goes up and down is no step, whatever its name
SURE_STEP = tuple(name for name in STEP if name not in WEAK_STEP)

# Counted through the whole run: these never start again with an epoch, and of two names on one console line they win.
THROUGH_THE_RUN = frozenset(
    {"trainer/global_step", "global_step", "train/global_step", "training/global_step", "global_step/max_steps", "global_steps",
     "current_steps", "optimizer_step", "opt_step", "num_updates", "learning_iteration"}
)  # fmt: skip

# In a table without any other axis, where it grows in whole numbers.
FRAMES = ("frame", "frames", "env_frames", "num_frames", "total_frames")  # of an environment, as Atari's steps are called
LAST_RESORT = ("episode", "episodes", "game", "rollout", "round", "generation", "gen", "tick", "st", "gs", *FRAMES, "t", "x", "i", "n", "k", "s", "u", "index", "idx", "", "unnamed:_0")  # fmt: skip
# In a console line that names no other step, where it rises from line to line.
COUNTED = frozenset({*BATCH_NUMBER, *_UPDATES, *LAST_RESORT[:10], "sample", "samples"})

EPOCH = ("epoch", "current_epoch", "train/epoch", "epochs", "epoch_num", "_epoch", "epch", "ep")
TIME = (
    "@timestamp", "local_timestamp", "asctime", "_timestamp", "timestamp", "wall_time", "time", "ts", "unix_time", "epoch_time",
    "timestamp_ms", "time_stamp", "created_at", "datetime", "date",
)  # fmt: skip  # wall clock, if the values lie between 1980 and 2100; else a duration
RANK = ("rank", "global_rank", "process_rank", "dp_rank", "process_index", "rank_id", "world_rank", "local_rank")
EVALUATION = (
    "val", "vali", "valid", "validation", "eval", "evaluation", "evaluate", "test", "testing", "dev", "holdout", "heldout", "hold", "oof",
    "backtest", "oos", "oob", "oot", "unseen",
)  # fmt: skip
# Events of the kind "plan": where a progress bar without a name stands in a log that measures nothing, and in one that does, and its total.
BAR_AT, BAR_HERE, BAR_OF = "bar_at", "bar_here", "bar_of"
BESIDE = "beside_steps"  # a total without a word: of the run, where no epoch is named and the steps never fall back
# What a source's note says of its steps where they are no steps of the optimizer that it names.
EPOCH_STEPS = "steps are epochs"
WHOLE_HISTORY = "a history that was written as a whole"
EPISODE_STEPS = "steps are those of 'episode'"
MONITOR_STEPS = "rows are episodes, steps the timesteps up to their end"
COMPOSED_STEPS = "steps are made of epoch and iteration, for no line names one through the run"

AXES = frozenset({*STEP, *EPOCH, *TIME, *RANK})

# Long tables: a row for each value.
TAG = ("metric", "tag", "metric_name", "name", "key", "variable", "scalar", "metricname")
VALUE = ("value", "val", "metric_value", "values", "scalar_value", "metricvalue")
RUN = ("run", "run_name", "dir_name", "run_id", "run_uuid")

# Which samples were in a batch. The first seven shard names tell a batch even where no sample is named.
SHARD = (
    "shards", "shard", "shard_ids", "shard_id", "shard_name", "files", "data_files", "file", "data_file", "sources", "source",
    "filename", "dataset", "tar", "urls", "url", "data_source",
)  # fmt: skip
SHARD_ALONE = SHARD[:7]
SAMPLE_LIST = lazy_re(
    r"(?:(?:global|sample|example|data|dataset|row|batch|instance|doc|document|item|record|train|image|seq|sequence)s?[_\-]?)*"
    r"(?:ids?|idxs?|indices|indexes|index|samples|examples|uids?|uuids?|guids?)|batch"
)  # names of lists of ids
SAMPLE_ONE = lazy_re(r"(?:sample|example|doc|document|instance|record|item|row|image)(?:_?(?:id|idx|index|uid|key))?")
POSITION = ("position", "pos", "slot", "index_in_batch", "pos_in_batch", "row_in_batch")
BATCH_NAME = ("batch_id", "batch_uid", "batch_hash")  # where nothing finer is known, they stand for the batch's samples

STEP_ORDER = {name: i for i, name in enumerate(STEP)}


@lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """A name as the lists above spell it: ``Global Step`` -> ``global_step``."""
    return named_in_english(name.strip().lower()).replace(" ", "_").replace("-", "_")


_MEASURES = lazy_re(r"(?i)rew|return|score|loss|acc|time|sec|^[rlt]$|elapsed|cost|error")


def may_count(name: str) -> bool:
    """May a column count the rows of a table, of which nothing says the step? Not one whose name says what it measures."""
    return _MEASURES.search(name) is None


def last(key: str) -> str:
    """The last component of a key, in lower case: ``data/sample_ids`` -> ``sample_ids``."""
    return key[max(key.rfind("/"), key.rfind(".")) + 1 :].lower()


def step_names(names: Iterable[str]) -> list[str]:
    """Those of the plain ``names`` that are steps, best first."""
    return sorted((n for n in names if n in STEP_ORDER), key=STEP_ORDER.__getitem__)
