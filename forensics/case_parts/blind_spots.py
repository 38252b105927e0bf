"""What could not be seen in a run: what was not logged, and what it would have told. What speaks to the causes in play comes first.

A blind spot is told where its answer would matter: those of ``ASKED`` hang on what kind of run it is, and on what was found in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from forensics.case import Finding, Hypothesis
from forensics.causes.files import causes
from forensics.detectors import eval_jump, stall, throughput, utilization
from forensics.errors import CannotTell
from forensics.findings import findings_of
from forensics.published import recipes
from forensics.run import endings, settings, usual_rate
from forensics.run.recipe import LANGUAGE
from forensics.run.series import names, parts, series
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

WOULD_TELL = {
    "loss.train": "whether and where the training went wrong at all",
    "loss.eval": "overfitting, leakage, and whether a spike did lasting harm",
    "grad.norm": "whether an explosion announced itself before a spike or NaN, or a single sample made it",
    "lr": "a jump, a reset or a wrong unit of the learning-rate schedule",
    "loss_scale": "overflows and skipped steps of half precision",
    "tput.tokens": "a slow loader, a throttled node, the cost of an incident",
    "mem.alloc": "a leak, or how near the limit the run was",
    "param.norm": "weights that grow before a divergence, or that decay eats",
    "grad.norm_layer": "the layer in which an explosion begins, or that learns nothing",
}
SPEED = ("tput.tokens", "tput.tokens_dev", "tput.samples", "tput.steps", "time.step")
MEMORY = ("mem.alloc", "mem.reserved", "gpu.mem")
TEXT = ("tput.tokens", "tokens.seen", "ppl.train", "ppl.eval", "bpb.eval", "pref.margin", "rl.trunc")
_TEXT_KEYS = lazy_re(
    r"(?i)(^|[./_])(tokenizer(_name|_path|_type|_file|_model)?|chat_template|max_seq_len(gth)?|completion_only_loss|train_on_inputs)$"
)
_PACKED = lazy_re(r"(?i)(^|[./_])((sample_|sequence_|eval_)?packing|pack(ed)?(_sequences|_tokens|_dataset)?|group_by_length|padding_free)$")
_ENGINE = lazy_re(r"(?i)(^|[./_])((eval|inference|generation|rollout)[./_]?(engine|backend)|use_vllm|vllm\w*|sglang\w*|lm_eval\w*|engine)$")
_CACHED = lazy_re(r"(?i)(^|[./_])(data_?cache(_dir|_path)?|dataset_prepared_path|cached_?(data|dataset|features)(_dir|_path|_file)?)$")


def blind_spots(r: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding[Any]] = ()) -> tuple[dict[str, str], ...]:
    """What was not logged, with what it would have told; first what speaks to the causes that are in play."""
    found = [_spot(n, "not logged", t) for n, t in WOULD_TELL.items() if not _logged(r, n)]
    for told, alike in (("tput.tokens", SPEED), ("mem.alloc", MEMORY)):
        if any(_logged(r, n) for n in alike):
            found = [x for x in found if x["what"] != told]
    if not r.tables["batches"].num_rows:
        found.append(_spot("batch ids", "no file maps steps to samples", "which samples were in the batch of a spike"))
    if not r.tables["checkpoints"].num_rows:
        found.append(_spot("checkpoints", "none in the folder", "the last healthy state to go back to"))
    clocked = r.tables["metrics"]["time"]
    if not len(clocked) or clocked.null_count == len(clocked):
        found.append(_spot("wall clock", "no row has a time", "stalls, slow-downs, and when it happened"))
    found += _asked(r, findings)

    def in_play(spot: dict[str, str]) -> float:
        return round(sum(h.probability for h in hypotheses if h.id in causes() and spot["what"] in causes()[h.id].needs), 2)

    return tuple(sorted(found, key=in_play, reverse=True))


def _spot(what: str, why: str, would_tell: str) -> dict[str, str]:
    return {"what": what, "why": why, "would_tell": would_tell}


def _logged(r: Run, name: str) -> bool:
    return series(r, name) is not None or bool(parts(r, name))


def _asked(r: Run, findings: Sequence[Finding[Any]]) -> Iterator[dict[str, str]]:
    for what, (asked, would_tell) in ASKED.items():
        why = asked(r, findings)
        if why:
            yield _spot(what, why, would_tell)


def _is_text(r: Run) -> bool:
    told = settings.setting(r, "vocab_size") is not None or any(series(r, n) is not None for n in TEXT)
    return told or "language" in (recipes.kind_of(r) or "") or any(_TEXT_KEYS.search(s.key) for s in settings.every(r))


def _set(r: Run, key: re.Pattern[str]) -> settings.Setting | None:
    return next((s for s in settings.every(r) if key.search(s.key)), None)


def _seed(r: Run, findings: Sequence[Finding[Any]]) -> str:
    return "neither config nor log says it" if settings.setting(r, "seed") is None else ""


def _samples(r: Run, findings: Sequence[Finding[Any]]) -> str:
    return "no file with the text of training samples was read" if _is_text(r) else ""


def _answers(r: Run, findings: Sequence[Finding[Any]]) -> str:
    return "no file with the model's answers was read" if any(n.endswith(".eval") for n in names(r)) else ""


def _mfu(r: Run, findings: Sequence[Finding[Any]]) -> str:
    if not any(series(r, n) is not None for n in SPEED):
        return ""
    try:
        utilization.mfu(r)
    except CannotTell as e:
        return str(e)
    return ""


def _padding(r: Run, findings: Sequence[Finding[Any]]) -> str:
    if not _is_text(r) or series(r, "pad.share") is not None or r.framework in LANGUAGE or _set(r, _PACKED) is not None:
        return ""
    return "no share of padding was logged, and config does not say that samples are packed"


def _trace(r: Run, findings: Sequence[Finding[Any]]) -> str:
    slow = findings_of(findings, throughput.Facts, stall.Facts, utilization.Facts)
    return "no trace of a profiler was read, and the run is slow or waits" if slow and not endings.events(r, "profile") else ""


def _bytes(r: Run, findings: Sequence[Finding[Any]]) -> str:
    moved = _is_text(r) and findings_of(findings, eval_jump.Facts) and series(r, "bpb.eval") is None
    return "the evaluation moved at once, and its loss is one a token" if moved else ""


def _ranks(r: Run, findings: Sequence[Finding[Any]]) -> str:
    devices = settings.number(r, "world_size")
    told = {x for name in ("metrics", "events") for x in arrow.distinct(r.tables[name]["rank"])}
    if devices is None or devices < 2 or len(told) > 1:
        return ""
    return f"config names {devices:g} devices, and {f'rank {min(told)} alone' if told else 'one process'} wrote the logs that were read"


def _engine(r: Run, findings: Sequence[Finding[Any]]) -> str:
    scored = _is_text(r) and series(r, "acc.eval") is not None
    return "scores were logged, and config does not say which engine gave the answers" if scored and _set(r, _ENGINE) is None else ""


def _cache(r: Run, findings: Sequence[Finding[Any]]) -> str:
    said = next(iter(endings.events(r, "cache")), None)
    if said is not None:
        return f"the data came prepared from a cache ({r.where(said['source'], said['at'])}), and nothing says of which data and settings"
    told = _set(r, _CACHED)
    if told is None or not usual_rate.is_set(told):
        return ""
    return f"config reads prepared data from a cache ({told.key}), and nothing says of which data and settings"


ASKED: dict[str, tuple[Callable[[Run, Sequence[Finding[Any]]], str], str]] = {
    "seed": (_seed, "whether the same settings would do the same again"),
    "decoded samples": (
        _samples,
        "a BOS that is missing or there twice, prompts that are trained on, shifted labels, a chat template other than the model's",
    ),
    "evaluation samples": (_answers, "whether a score moved by the answers or by how they are read"),
    "mfu": (_mfu, "which share of the peak arithmetic of the devices is used, and so how much faster they could train this model"),
    "share of padding": (_padding, "how many of the tokens a second are padding, which packing or batches of like length would save"),
    "profiler trace": (
        _trace,
        "which gaps on the device are waits for the host (`.item()`, prints), for data, or for the network (ZeRO stage, NVLink)",
    ),
    "bits per byte": (_bytes, "whether the model got better, or fewer or other tokens are counted (a BOS, another tokenizer)"),
    "logs of the other ranks": (_ranks, "overflows, skipped steps, NaN or a slow device on one rank alone, and settings that differ there"),
    "engine of the evaluation": (
        _engine,
        "whether scores moved by the inference engine, its precision or hardware: those of one checkpoint differ by them",
    ),
    "fingerprint of the cached data": (
        _cache,
        "whether a change of the data, or of how they are prepared, reached this run: clear the cache to be sure",
    ),
}
