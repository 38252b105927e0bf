"""Objectives that are no likelihood of a token: codes, experts, preferences."""

from __future__ import annotations

import math

import numpy as np

from forensics.run.loss_terms import RECONSTRUCTION, kl_term
from forensics.run.metrics_in_words import both_levels, moved_from, probability, stays_from, worded
from forensics.run.robust import median
from forensics.run.scores import scores
from forensics.run.series import Series, parts, series
from forensics.run.usable_values import nan_from
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re

GONE = 0.01  # of the first level
FELL = 0.25  # of its highest; measured: 20 collapsed autoencoders of the makers come to 15 % of it or less, three that learned nothing stay above 31 %
LITTLE = 0.1  # nats: KL bounds what a code tells of its sample, and this is less than a fifth of a bit
SHARE = 0.025  # of the reconstruction term; measured: 15 collapsed autoencoders of the makers end at 1.6 % or less, 23 healthy ones at 4.4 % or more
STANDS = 0.03  # share of a level; less is still for the plateau detector
HALF = 0.5  # bound: a coin, which no discriminator or preference beats by guessing
FEWEST_EXPERTS = 4  # bound: of three one gets half by chance
TOO_MUCH = 3.0  # bound: times a fair share; of four experts one gets half of the tokens in healthy runs of the seen sets
TWICE = 2.0  # times its lowest: the balance loss is 1 for equal loads, and the number of experts for one alone (arXiv 2101.03961, eq. 4)
RIGHT, WRONG, BEFORE, AFTER = 0.7, 0.3, 10, 5  # share of pairs in the right order, well over and under a half; values on either side
EVALUATIONS = 4  # bound: two of them at the end; of 60 pairs in any order fewer than three of ten are right once in 1,000 times
LN2, PRINTED = math.log(2), 1e-4  # as a log rounds to four digits
NO_PAIRS = "the accuracy of preferences was not logged."


EFFECTS = {
    "kl_term_vanished": "loss.part",
    "experts_unbalanced": "moe.load",
    "accuracies_reversed": "pref.acc",
    "rewards_exactly_zero_loss_ln2": "pref.margin",
    "reference_moves_along": "pref.margin",
}  # symptoms of their own, for which there is no detector
BALANCE = r"\b(balance|balancing|load balanc\w*|aux|router|moe)\b.*\bloss\b|\bloss\b.*\b(balance|balancing|load|router|moe)\b"
ROUTED = r"\b(router|routing|gate|gating|moe|experts?|load)\b.*\bentropy\b"
_LAST_NUMBER = lazy_re(r"\d+(?=\D*$)")
LARGEST_LOAD = r"\bbusiest\b|\b(max|largest|top)\b.*\bexperts?\b.*\b(load|share|frac|fraction)\b|\bmax ?load\b|\b(router|routing|experts?|moe|gate)\b.*\b(max|largest|top)\b.*\b(load|share|frac|fraction)\b|\bexperts?\b.*\b(load|share|frac|fraction)\b.*\b(max|largest|top)\b"
LOAD = r"\b(expert|experts|e)[ /]?\d+\b.*\b(load|frac|fraction|share|tokens|usage|count|util\w*)\b|\b(load|frac|fraction|share|tokens|usage|count|util\w*)\b.*\b(experts?|e)[ /]?\d+\b|^((experts?|router|moe)[ /])?loads?( l ?\d+)?[ /]\d+$|\b(experts?|router|moe)[ /](usage|util\w*|share|frac(tion)?)/\d+$"


def kl_term_vanished(s: Symptoms) -> Sign:
    """The KL term of the loss ends below 0.1 nats at 1 % of its highest level, or below one bit, 2.5 % of the reconstruction term and a quarter of
    its own highest level: codes tell nothing (arXiv 1911.02469). That of an encoder that never learned anything is as small from the start."""
    kl = kl_term(s.run)
    if kl is None:
        return cannot_tell("no KL term of a loss was logged.")
    x, (_, last) = kl.value[kl.usable], both_levels(kl)
    if not x.any():
        return cannot_tell(f"{kl.tag} is exactly 0 in all of its {len(x)} values, as a term is that was never switched on.")
    text = f"{kl.tag} is {x.max():.3g} at its highest and {last:.3g} at the end"
    rest = next((p for p in worded(s.run, RECONSTRUCTION) if p.tag != kl.tag), None)
    if rest is not None and not rest.value[rest.usable].any():
        return cannot_tell(f"{rest.tag} is exactly 0 throughout: there is nothing that codes could tell.")
    # of codes that tell less than a bit; a mean over pixels is as small as the other term
    less = rest is not None and last < min(LN2, SHARE * abs(both_levels(rest)[1]), FELL * float(x.max()))
    if not less and (last >= LITTLE or last >= GONE * float(x.max())):
        return absent(f"{text}.")
    if rest is not None:
        y = rest.value[rest.usable]
        middle, end = median(y[len(y) // 2 :][:5]), both_levels(rest)[1]
        text += f", while {rest.tag} goes from {middle:.4g} half-way to {end:.4g}"
    return seen(f"{text}.", first=stays_from(kl, LITTLE))


def experts_unbalanced(s: Symptoms) -> Sign:
    """A few experts get most of the tokens: half of them, and three times its share, go to one, half of the experts are in use (exp of the
    entropy of their loads), their number halves, or the balance loss doubles."""
    of_layer: dict[str, list[Series]] = {}
    for p in worded(s.run, LOAD):
        of_layer.setdefault(_LAST_NUMBER.sub("", p.tag), []).append(p)
    if told := [found for loads in of_layer.values() if len(loads) >= FEWEST_EXPERTS and (found := _unbalanced(loads)) is not None]:
        return max(told, key=lambda sign: (sign.state == SEEN, sign.numbers.get("share", 0.0)))
    layers = [p for p in worded(s.run, LARGEST_LOAD) if probability((p,)) is not None]
    if layers:
        largest = max(layers, key=lambda p: both_levels(p)[1])
        share = both_levels(largest)[1]
        text = f"{largest.tag} is {share:.0%} at the end."
        return seen(text, share=share) if share >= HALF else absent(text)
    for p in worded(s.run, ROUTED):
        first, last = moved_from(p)
        text = f"{p.tag} goes from {first:.3g} to {last:.3g} nats: {math.exp(min(first, 50)):.3g} experts in use become {math.exp(min(last, 50)):.3g}."
        return seen(text, first=stays_from(p, first - math.log(1 / HALF))) if first - last >= math.log(1 / HALF) else absent(text)
    for p in worded(s.run, BALANCE):
        x, (_, last) = p.value[p.usable], both_levels(p)
        low = min(float(np.percentile(x, 5)), float(x[0]))  # a router that learnt nothing yet is nearly even
        text = f"{p.tag} is {low:.3g} at its lowest and {last:.3g} at the end."
        return seen(text) if low > 0 and last >= TWICE * low else absent(text)
    return cannot_tell("neither loads, entropy nor balance loss of experts were logged.")


def _unbalanced(loads: list[Series]) -> Sign | None:
    """What the loads of one layer's experts say."""
    ends = np.array([max(both_levels(p)[1], 0.0) for p in loads])
    if not ends.sum() > 0:
        return None
    share, top = float(ends.max() / ends.sum()), loads[int(np.argmax(ends))].tag
    used = math.exp(-float(sum(p * math.log(p) for p in ends / ends.sum() if p > 0)))
    text = f"Of {len(loads)} experts the one of {top} gets {share:.0%} at the end, and {used:.2g} are in use."
    few = used <= HALF * len(loads) or share >= max(HALF, TOO_MUCH / len(loads))
    return seen(text, share=share) if few else absent(text)


def accuracies_reversed(s: Symptoms) -> Sign:
    """The share of pairs in the right order fell from above 0.7 to below 0.3 within a few values; or on held-out data (an AUC is such a share) it
    lies below 0.3 while training goes on: labels of one side are reversed."""
    if rewards_exactly_zero_loss_ln2(s).state == SEEN:
        return absent("All rewards are exactly zero: pairs are in no order, right or wrong.")
    sick = nan_from(s.run)
    for score in scores(s.run):
        if sick is not None and score.step[-1] >= sick:  # what a model of NaN answers has no order
            continue
        late = score.value[len(score.value) // 2 :][-AFTER:]
        if score.guess == HALF and len(score.value) >= EVALUATIONS and (last := float(late.max())) < WRONG:
            text = f"{score.tag} is at most {last:.3g} in the last {len(late)} evaluations, where knowing nothing gives {HALF:g}: its order is reversed."
            return seen(text, first=int(score.step[0]), last=int(score.step[-1]))
    acc = series(s.run, "pref.acc")
    if acc is None or acc.usable.sum() < BEFORE + AFTER:
        return cannot_tell(NO_PAIRS if acc is None else f"fewer than {BEFORE + AFTER} accuracies of preferences were logged.")
    x, step = acc.value[acc.usable], acc.step[acc.usable]
    for i in range(BEFORE, len(x) - AFTER + 1):
        before, after = float(x[i - BEFORE : i].mean()), float(x[i : i + AFTER].mean())
        if before > RIGHT and after < WRONG and x[i] < WRONG:
            text = f"{acc.tag} falls at step {step[i]}, from {before:.2g} in the {BEFORE} values before to {after:.2g} in the {AFTER} from there on."
            return seen(text, first=int(step[i]))
    return absent(f"{acc.tag} goes from {x[:AFTER].mean():.2g} to {x[-AFTER:].mean():.2g} and never turns round.")


def rewards_exactly_zero_loss_ln2(s: Symptoms) -> Sign:
    """The loss of preferences is ln 2 and the margins are exactly zero from the start: policy and reference are one (arXiv 2305.18290, eq. 7)."""
    margin, loss = series(s.run, "pref.margin"), series(s.run, "loss.train")
    if margin is None or loss is None or margin.usable.sum() < 5 or not loss.usable.any():
        return cannot_tell("margins between chosen and rejected answers were not logged.")
    m, x = margin.value[margin.usable], loss.value[loss.usable]
    n = int((np.cumsum(m != 0) == 0).sum())
    text = f"{n} of {len(m)} margins are exactly zero from the start, and the loss is {x[0]:.4f} at first and {x[-1]:.4f} at the end."
    return seen(text) if n >= max(5, len(m) // 2) and bool(np.median(np.abs(x[:n] - LN2)) <= PRINTED) else absent(text)


def reference_moves_along(s: Symptoms) -> Sign:
    """The margins are exactly zero while the log-probabilities of the chosen answers move: the policy trains, and what it is compared with is itself."""
    if (zero := rewards_exactly_zero_loss_ln2(s)).state != SEEN:
        return zero
    logged = [p for p in parts(s.run, "pref.chosen") if p.usable.sum() >= 5 and (p.value[p.usable] < 0).all()]
    if not logged:
        return cannot_tell("no log-probabilities of the chosen answers were logged beside their rewards.")
    first, last = moved_from(logged[0])
    text = f"The margins are exactly zero, while {logged[0].tag} goes from {first:.4g} to {last:.4g}."
    return seen(text, where=logged[0].place(s.run, 0)) if abs(last - first) > GONE * abs(first) else absent(text)
