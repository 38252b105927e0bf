"""What detectors begin with: the series that they need, and its rows that count."""

from __future__ import annotations

import numpy as np

from forensics.errors import CannotTell
from forensics.run.once import once
from forensics.run.series import Ints, Series, parts, series
from parsers import loss_names
from parsers.tables import Run


def needed(run: Run, name: str) -> Series:
    """A metric that the detector's NEEDS names. Raises CannotTell where it was not logged."""
    s = series(run, name)
    if s is None:
        raise CannotTell(f"{name} was not logged")
    return s


def surviving(s: Series) -> Ints:
    """The rows with a finite value that no later attempt logged again."""
    return np.flatnonzero(s.alive & np.isfinite(s.value))


LOSSES = ("loss.train", "loss.eval", "ppl.train", "ppl.eval")  # best first; a perplexity is the exponential of the loss
ANY_LOSS = "|".join((*LOSSES, "loss.aux"))


def loss_of(run: Run) -> Series:
    """The loss to look at: the training loss, else the evaluation's, else its perplexity, else the term that stands for a sum that was
    not logged. Raises CannotTell where there is none of them."""
    s = next((s for name in LOSSES if (s := series(run, name)) is not None), None) or leading_term(run)
    if s is None:
        terms = [p.tag for p in parts(run, "loss.aux")]
        why = f"only terms of a loss were logged ({', '.join(terms[:4])}), none of which stands for the whole"
        raise CannotTell(why if terms else "no loss was logged with a step")
    return s


@once
def leading_term(run: Run) -> Series | None:
    """The term of the loss that stands for the whole, where only terms are logged."""
    terms = {p.tag: p for p in parts(run, "loss.aux")}
    tag = loss_names.lead(terms)
    return terms[tag] if tag is not None else None


def finite_loss(run: Run, least: int) -> tuple[Series, Ints]:
    """The loss to look at and its rows that count. Raises CannotTell where they are fewer than `least`."""
    s = loss_of(run)
    rows = surviving(s)
    if len(rows) < least:
        raise CannotTell(f"only {len(rows)} finite values of {s.tag}")
    return s, rows
