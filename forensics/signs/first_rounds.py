"""What is known of held-out data after the first few updates, or trees: more than so little training can teach."""

from __future__ import annotations

from forensics.run import plan
from forensics.run.scores import scores
from forensics.run.usual_rate import tuned
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "held_out"  # another half of it
EFFECTS = {"held_out_known_at_once": "score.eval"}  # a symptom of its own, for which there is no detector

FEW = 10  # bound: updates or trees; ten small trees rank by a few thresholds of a few features
# measured: of 1,284 made and 287 real runs three begin so high, all three trees with a feature that holds the target, or with rows in both sets; of
# nine makers' sound runs that rank the best has 0.93 by then, and of those with such a feature the worst 0.983
SURE = 0.98
_RANKING = lazy_re(r"\b(auc|auroc|roc auc|auprc|average precision|ndcg|c index|concordance)\b")


def held_out_known_at_once(s: Symptoms) -> Sign:
    """A model that was not trained before ranks held-out samples nearly perfectly after ten updates or trees at most: a feature tells the answer, or
    the samples are in the training set, too."""
    ranked = [c for c in scores(s.run) if c.rises and _RANKING.search(words(c.tag)) and c.value.min() >= 0 and c.value.max() <= 1]
    if not ranked:
        return cannot_tell("no score of held-out data was logged that says how well they are ranked.")
    if len(s.run.attempts) > 1 or tuned(s.run):
        return does_not_arise("the run goes on from a trained model.")
    early = [c for c in ranked if c.step[0] <= FEW]
    if plan.unit(s.run) == "epoch" or plan.counts_epochs(s.run) or not early:
        return does_not_arise(f"the first evaluation came after more than {FEW} updates.")
    value, step, c = max(
        ((float(x), int(at), c) for c in early for x, at in zip(c.value, c.step, strict=True) if at <= FEW), key=lambda e: e[0]
    )
    text, where = f"{c.tag} is {value:.4g} by step {step}", c.logged.place(s.run, 0)
    if value < SURE:
        return absent(f"{text}, the best of the first {FEW}.", where=where)
    return seen(f"{text}, which is more than so little training can teach.", where=where, first=step)
