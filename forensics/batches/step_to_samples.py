"""The batch of a step, read from a file of the run or worked out from its loader, with how that is known and how sure it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.batches import match_loader, recorded
from forensics.batches.loader import Loader
from forensics.batches.torch_random import Ids, TooLarge
from forensics.case import jsonable
from parsers.records import index_files
from parsers.tables import Run

SURE = {"recorded": 0.99, "recurrence": 0.8}  # whatever the loader is; else it depends on how it was found
EPOCHS_AGREE, ASSUMED, SHARED = 1.05, 0.9, 0.8  # factors: the log's epochs agree; per assumption; several loaders share the samples
SHOWN = 6  # choices that are listed
IN_CASE = 256  # samples of a rebuilt batch that the case holds; `forensics batch` prints all
UNKNOWN: dict[str, Any] = {"samples": [], "shard": None, "how": "unknown", "confidence": 0.0}


def answer(run: Run, step: int) -> dict[str, Any]:
    """What ``forensics batch`` prints: ``{"step", "samples", "shard", "how", "confidence", "why", "rests_on", ...}``, JSON types only.

    Of a step that was done in several attempts it is the last one's.
    """
    attempts = [a["index"] for a in run.attempts if a["steps"][0] <= step <= a["steps"][1]]
    attempts = attempts or _around(run, step)
    listed = recorded.attempts_with(run, step)
    found = recorded.batch(run, step, max(listed)) if listed else None
    if found is not None:
        twice = f", in {len(listed)} attempts; this is the last one's" if len(listed) > 1 else ""
        return _plain(found | {"why": f"a file of the run lists it{twice}", "rests_on": _sources(run, step)})
    if not attempts:
        steps = [s for a in run.attempts for s in a["steps"]]
        return {"step": step, **UNKNOWN, "why": f"the run has steps {min(steps)} to {max(steps)}" if steps else "the run has no steps"}
    return _plain(rebuilt(run, step, max(attempts), match_loader.THOROUGH))


def batch(run: Run, step: int, attempt: int = 0) -> dict[str, Any] | None:
    """The batch of a step in one attempt for the case: recorded, else rebuilt; None where it is unknown."""
    found = recorded.batch(run, step, attempt)
    if found is None:
        found = rebuilt(run, step, attempt)
        found = {k: found[k] for k in ("step", "samples", "shard", "how", "confidence", "why")}
        if len(found["samples"]) > IN_CASE:
            found |= {"samples": found["samples"][:IN_CASE], "samples_in_all": len(found["samples"])}
    return None if found["how"] == "unknown" else found


def rebuilt(run: Run, step: int, attempt: int, work: int = match_loader.QUICK) -> dict[str, Any]:
    """From the loaders that fit; where they differ, the samples they have in common, and what each would give."""
    found = match_loader.fit(run, attempt, work)
    partly = recorded.recorded(run)
    known = sorted(s for _, s in partly)
    some = f"the files of the run list batches of steps {known[0]} to {known[-1]}, this one is not among them; " if known else ""
    if not found.loaders:
        why = some or "no file of the run maps steps to samples; "
        return {"step": step, **UNKNOWN, "why": f"{why}it cannot be rebuilt: {found.missing}"}
    try:
        given = [(x, ranks) for x in found.loaders if (ranks := x.step(match_loader.index(run, step)))]
    except TooLarge as e:
        return {"step": step, **UNKNOWN, "why": f"{some}{e}"}
    if not given:
        why = f"{some}{found.loaders[0].what} gives this step no samples, or its place in the order is not logged"
        return {"step": step, **UNKNOWN, "why": why}
    return {"step": step, **_agreed(run, given, found, some)}


def _agreed(run: Run, given: list[tuple[Loader, list[Ids]]], found: match_loader.Fit, some: str) -> dict[str, Any]:
    """What the loaders that give samples (of each rank) have in common; `some` is the sentence on steps that files list."""
    different: dict[tuple[int, ...], list[Loader]] = {}
    for x, ranks in given:
        different.setdefault(tuple(sorted(np.concatenate(ranks).tolist())), []).append(x)
    common = set.intersection(*(set(samples) for samples in different))
    first, ranks = given[0]
    samples = [s for s in np.concatenate(ranks).tolist() if s in common]
    confidence = SURE.get(found.by, max(_trust(x, found) for x, _ in given))
    told = "; ".join(found.evidence)
    if len(different) == 1:
        why = f"{some}rebuilt from {first.what}" + (f"; {told}" if told else "")
        extra: dict[str, Any] = {"ranks": [r.tolist() for r in ranks]} if len(ranks) > 1 else {}
    else:
        named = "; ".join(x[0].what for x in list(different.values())[:3])
        why = f"{some}{len(different)} choices fit ({named}{' ...' if len(different) > 3 else ''}): "
        why += f"{len(common)} samples are common to all of them" if common else "they have no sample in common"
        confidence *= SHARED
        extra = {"choices": [{"what": x[0].what, "samples": list(s)} for s, x in list(different.items())[:SHOWN]]}
    if not common:
        return {**UNKNOWN, "why": why, **extra}
    shards = recorded.shards_of(run, samples)
    return {
        "samples": samples, "shard": ", ".join(shards[:8]) or None, "how": "rebuilt", "confidence": round(min(confidence, 0.99), 2), "why": why,
        "ids": first.ids, "rests_on": list(first.rests_on), "assumed": _assumed(first, found), **_documents(run, samples, first), **extra,
    }  # fmt: skip


def _assumed(x: Loader, found: match_loader.Fit) -> list[str]:
    """What no file says, without what the log has settled: ids settle all, epochs how many processes there were."""
    if found.by == "recorded":
        return []
    settled = found.by == "epochs" and len(found.loaders) == 1
    return [a for a in x.assumed if not (settled and "process" in a)]


def _trust(x: Loader, found: match_loader.Fit) -> float:
    return x.trust * ASSUMED ** len(_assumed(x, found)) * (EPOCHS_AGREE if found.by == "epochs" else 1.0)


def _documents(run: Run, samples: list[int], x: Loader) -> dict[str, Any]:
    """The documents behind Megatron's sample numbers, where its index files lie in the run."""
    index = index_files.megatron(run) if "Megatron" in x.ids else {}
    if not index:
        return {}
    from forensics.batches.megatron import documents_of

    count = len(index["shuffle"])
    read = [documents_of(s, index["document"], index["sample"], index["shuffle"]) for s in samples if s < count]
    return {"documents": read} if len(read) == len(samples) else {}


def _around(run: Run, step: int) -> list[int]:
    """Attempts whose logged steps reach to within an interval of a step that the log skipped."""
    before = [-1, *(a["steps"][1] for a in run.attempts)]
    return [a["index"] for a, end in zip(run.attempts, before, strict=False) if end < step <= a["steps"][1]]


def _sources(run: Run, step: int) -> list[str]:
    table = run.tables["batches"]
    rows = zip(*(table[c].to_pylist() for c in ("step", "source", "at")), strict=True)
    return list(dict.fromkeys(run.where(source, at) for s, source, at in rows if s == step))[:4]


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = jsonable(found)
    return plain
