"""What the ranks of one job logged beside each other: equal numbers that part, one rank that leaves, weights that differ.

Ranks that average their gradients log equal gradient norms and hold equal weights (PyTorch DDP, arXiv:2006.15704); losses of a
rank's own batch scatter around a common curve.
"""

from __future__ import annotations

import re

import numpy as np

from forensics.case import Finding
from forensics.detectors import rank_disagreement
from forensics.detectors.rank_disagreement import Apart
from forensics.findings import GRAVE
from forensics.run import rank_shapes, ranks, settings, weights_split
from forensics.run.robust import median
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers import arrow
from parsers.lazy_regex import lazy_re

_SHARED = ("loss.train", "grad.norm", "param.norm", "loss.eval")  # what tells of weights and gradients; times do not
_CHECKSUM = lazy_re(
    r"(?:^|[/_. ])(?:check_?sum|(?:param\w{0,20}|weights?|theta|w|model)[_ ]?(?:hash|crc|digest|md5|sha|sum|norm|mean|std|l[12]|abs\w{0,5})"
    r"|p_?(?:sum|norm)|param\.norm)(?:$|[/_. ])",
    re.I,
)

EFFECTS = {"weights_checksum_differs": "ranks"}  # symptoms of their own, for which there is no detector
_NORM = lazy_re(r"norm|l[12]\b", re.I)
SHARED = 0.9  # unit: nine of ten; a line of one rank may be torn, or a step behind
REPLICAS = 0.05  # unit: a twentieth; shards hold different layers, whose norms lie further apart


def ranks_part(s: Symptoms) -> Sign:
    """Numbers that were equal on all ranks, as an all-reduce leaves them, differ between them from some step on."""
    return _pattern(s, "parts")


def ranks_drift(s: Symptoms) -> Sign:
    """The spread between the ranks grows through the run, to three times what it was."""
    return _pattern(s, "drift")


def one_rank_jumps_alone(s: Symptoms) -> Sign:
    """One rank leaves the level of the others from one step to the next, and stays off it."""
    found = [f for f in _apart(s, "jump", "parts") if f.facts.rank is not None]
    return _seen(found) if found else _together(s)


def one_rank_apart_throughout(s: Symptoms) -> Sign:
    """One rank stands apart from the others from the first step on."""
    return _pattern(s, "apart")


def one_rank_spikes_alone(s: Symptoms) -> Sign:
    """One rank of three or more spikes for a few steps, and no other does."""
    return _pattern(s, "spike")


def all_ranks_apart_at_once(s: Symptoms) -> Sign:
    """Three ranks or more, equal until then, all go their own ways from the same step on."""
    found = _apart(s, "parts")
    if not found:
        return does_not_arise("no number that was equal on all ranks came to differ between them.") if _rows(s) else _together(s)
    if found[0].facts.ranks < 3:
        return does_not_arise("only two ranks log, so which of them left cannot be told.")
    together = [f for f in found if f.facts.rank is None]
    if not together:
        return absent(f"Rank {found[0].facts.rank} left alone; the other {found[0].facts.ranks - 1} ranks stay equal.", found)
    text = f"All {together[0].facts.ranks} ranks, equal before, log different numbers from step {together[0].facts.step} on."
    return seen(text, together, first=together[0].facts.step, last=together[0].last_step)


def weights_checksum_differs(s: Symptoms) -> Sign:
    """A checksum or norm of the weights that each rank logged differs between ranks at most steps, from some step on.

    Norms that differ from the first value on may be those of shards, which nobody expects to be equal. They are not where they lie close
    together, nothing speaks of weights that are split, and losses of own batches or equal gradient norms say that all ranks train one model.
    """
    named = [name for name in ranks.columns(s.run) if _CHECKSUM.search(name)]
    matrices = [m for name in named if (m := ranks.matrix(s.run, name)) is not None and len(m.ranks) > 1 and len(m.step)]
    if not matrices:
        return _alone(s, "a checksum or norm of its weights")
    for m in matrices:
        scale = np.abs(m.value).max(axis=1)
        gap = np.ptp(m.value, axis=1)
        differs = np.flatnonzero(gap > rank_shapes.EQUAL * scale)
        if not len(differs) or len(differs) <= (len(m.step) - differs[0]) / 2:
            continue
        at = int(differs[0])
        step = int(m.step[at])
        if at == 0 and _NORM.search(m.tag) and (why := _may_be_shards(s, m)):
            return cannot_tell(f"{m.tag} differs between ranks from the first value on, which may be those of shards: {why}.")
        told = ", ".join(f"{v:.6g} on rank {r}" for r, v in list(zip(m.ranks, m.value[at].tolist(), strict=True))[:4])
        text = f"{m.tag} differs between {len(m.ranks)} ranks at {len(differs)} of {len(m.step)} steps, from step {step} on: {told}."
        return seen(text, where=_line(s, m.tag, step), first=step, last=int(m.step[-1]))
    m = matrices[0]
    equal = round(rank_shapes.equal_share(m.value) * len(m.step))
    return absent(f"{m.tag} is equal on {len(m.ranks)} ranks at {equal} of the {len(m.step)} steps that they share.")


def ranks_share_weights(s: Symptoms) -> Sign:
    """Gradient norm or weights are the same number on all ranks at nine of ten steps: they train one model, and what differs is what each of them reads."""
    logged = [m for name in ("param.norm", "grad.norm") if (m := ranks.matrix(s.run, name)) is not None and len(m.step) >= rank_shapes.SIDE]
    if not logged:
        return _alone(s, "a norm of the gradients or the weights")
    m = max(logged, key=lambda m: -rank_shapes.equal_share(m.value))  # the one that is equal least often
    share = rank_shapes.equal_share(m.value)
    text = f"{m.tag} is equal on {len(m.ranks)} ranks at {share:.0%} of {len(m.step)} steps."
    return (
        seen(text, where=_line(s, m.tag, int(m.step[0])), first=int(m.step[0]), last=int(m.step[-1])) if share >= SHARED else absent(text)
    )


def _may_be_shards(s: Symptoms, m: ranks.Matrix) -> str:
    """Why norms that differ throughout need not be those of replicas; empty where they are."""
    gap = float(np.median(np.ptp(m.value, axis=1) / np.abs(m.value).max(axis=1)))
    if not gap <= REPLICAS:
        return f"they differ by {gap:.0%}"
    if word := weights_split.told(s.run):
        return word
    losses, norms = ranks.matrix(s.run, "loss.train"), ranks.matrix(s.run, "grad.norm")
    own = losses is not None and rank_shapes.equal_share(losses.value) < 0.5 and bool((losses.value != 0).all())
    reduced = norms is not None and rank_shapes.equal_share(norms.value) > 0.5
    return "" if own or reduced else "neither losses of own batches nor equal gradient norms say that the ranks train one model"


def _pattern(s: Symptoms, pattern: str) -> Sign:
    found = _apart(s, pattern)
    return _seen(found) if found else _together(s)


def _seen(found: list[Finding[Apart]]) -> Sign:
    best = max(found, key=lambda f: (f.severity in GRAVE, f.facts.noises))
    facts = best.facts
    return seen(
        f"{best.title}.", [best], first=facts.step, last=best.last_step, rank=facts.rank, metric=facts.metric, relative=facts.relative
    )


def _apart(s: Symptoms, *patterns: str) -> list[Finding[Apart]]:
    return [f for f in s.of(Apart) if f.facts.pattern in patterns and not f.facts.metric.startswith("time.")]


def _rows(s: Symptoms) -> dict[str, ranks.Matrix]:
    """What could be judged: metrics that several ranks logged at thirty common steps or more."""
    known = {name: ranks.matrix(s.run, name) for name in _SHARED if name in rank_disagreement.FLOORS}
    return {name: m for name, m in known.items() if m is not None and len(m.step) >= rank_shapes.LEAST}


def _together(s: Symptoms) -> Sign:
    """Absent, with how far the ranks differ; cannot tell where one rank logs, or a few steps."""
    judged = _rows(s)
    if not judged:
        few = [len(m.step) for name in _SHARED if (m := ranks.matrix(s.run, name)) is not None]
        return cannot_tell(f"the ranks share only {max(few)} logged steps.") if few else _alone(s, "its numbers")
    told = []
    for name, m in judged.items():
        middle = np.abs(np.median(m.value, axis=1))
        gap = np.ptp(m.value, axis=1)
        ok = np.isfinite(gap) & (middle > 0)
        tag = m.tag if series(s.run, name) is not None else name
        told += [f"{tag} differs by {median(gap[ok] / middle[ok]):.1%}"] if ok.any() else []
    other = [f for f in s.of(Apart) if not f.facts.metric.startswith("time.")]
    if other:
        return absent(f"The ranks differ otherwise: {other[0].title}.", other[:1])
    if not told:
        return cannot_tell("no finite number was logged by several ranks at the same step.")
    return absent(
        f"Between ranks {' and '.join(told)}, with no change of it beyond their scatter (medians over {len(next(iter(judged.values())).step)} steps)."
    )


def _alone(s: Symptoms, what: str) -> Sign:
    """Cannot tell, where more than one process is known; else the question does not arise."""
    if (settings.number(s.run, "world_size") or 1) > 1 or ranks.columns(s.run):
        return cannot_tell(f"only one rank logs {what}, or none.")
    return does_not_arise("only one process is known.")


def _line(s: Symptoms, tag: str, step: int) -> str:
    """File and line of a value of this tag at this step."""
    for table in ranks.columns(s.run).values():
        for row in table.select(["tag", "step", "source", "at"]).to_pylist() if tag in arrow.distinct(table["tag"]) else []:
            if row["tag"] == tag and row["step"] == step:
                return s.run.where(row["source"], row["at"])
    return ""
