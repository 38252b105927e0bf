"""The model behind the causes' weights: one additive score a cause, against each other and against no cause at all.

``AdditiveCauses`` is a penalized multinomial logistic regression (a conditional logit: McFadden 1974) in which a class has only the
signs that its file names, and competes only where one of its effects was seen. A sign for a cause never counts against it where it
is seen, and the other way round. Each weight is drawn towards the mean of its kind (seen and for, absent and for, seen and against), so that a cause
with few runs borrows what signs are usually worth, and is bounded by the likelihood ratio that its own counts of families support
(medians of two Jeffreys posteriors). It follows scikit-learn's contract for estimators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

DECIBANS = 10 / np.log(10)  # a nat in decibans
FOR_SEEN, FOR_ABSENT, AGAINST_SEEN, START = range(4)  # kinds of weights

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Structure:
    """What a class may use: columns of X for and against it, and its effects, of which one must be there: (columns that are all seen,
    columns of which none is)."""

    for_: tuple[int, ...]
    against: tuple[int, ...]
    explains: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()


class AdditiveCauses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Parameters: `structure` a class -> Structure dict (default: every column for every class, unbounded), `yardstick` the class whose
    score is zero (default: the first), `shrink` the strength with which weights are drawn to their kind's mean, in 1/nats^2.

    X: (runs, signs), above zero where a sign was seen, below where it is absent, zero where the run cannot tell.
    After ``fit``: ``classes_``, ``start_`` (classes,), ``seen_`` and ``absent_`` (classes, signs), in nats.
    """

    def __init__(self, structure: dict[str, Structure] | None = None, yardstick: str | None = None, shrink: float = 1.0) -> None:
        self.structure = structure
        self.yardstick = yardstick
        self.shrink = shrink

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> AdditiveCauses:
        """`groups`: the family of each run, by which evidence is counted; without them each run is a family of its own."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, target = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, float)
        if not weight.sum() > 0:
            raise ValueError("Sample weights must not all be zero.")
        family = np.arange(len(target)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        columns = [self._of(c, X.shape[1]) for c in self.classes_]
        allowed = self._allowed(X)
        allowed[np.arange(len(target)), target] = True
        terms = [(c, j, kind) for c, s in enumerate(columns) for kind, j in _terms(s) if c != self._zero()]
        starts = [c for c in range(len(self.classes_)) if c != self._zero()]
        design = _design(X, allowed, starts, terms)
        kinds = np.array([START] * len(starts) + [kind for _, _, kind in terms])
        bounds = [(None, None)] * len(starts) + [_bound(X, target, family, term, self.structure is None) for term in terms]
        found = _fitted(design, allowed, target, weight, kinds, bounds, self.shrink)
        self.start_ = np.zeros(len(self.classes_))
        self.seen_, self.absent_ = (np.zeros((len(self.classes_), X.shape[1])) for _ in range(2))
        self.start_[starts] = found[: len(starts)]
        for (c, j, kind), value in zip(terms, found[len(starts) :], strict=True):
            (self.absent_ if kind == FOR_ABSENT else self.seen_)[c, j] = value
        return self

    def scores(self, X: ArrayLike) -> Floats:
        """(runs, classes): scores in nats, minus infinity where no effect of the class was seen."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        scores = self.start_ + np.maximum(X, 0) @ self.seen_.T + np.maximum(-X, 0) @ self.absent_.T
        return np.where(self._allowed(X), scores, -np.inf)

    def predict_proba(self, X: ArrayLike) -> Floats:
        scores = self.scores(X)
        odds = np.exp(scores - scores.max(1, keepdims=True))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(self.classes_[self.scores(X).argmax(1)])

    def _of(self, name: Any, width: int) -> Structure:
        return Structure(tuple(range(width)), ()) if self.structure is None else self.structure[name]

    def _zero(self) -> int:
        known = [] if self.yardstick is None else np.flatnonzero(self.classes_ == self.yardstick).tolist()
        return int(known[0]) if known else 0

    def _allowed(self, X: Floats) -> NDArray[np.bool_]:
        """(runs, classes): whether an effect of the class was seen, or it needs none."""
        out = np.ones((len(X), len(self.classes_)), bool)
        for c, name in enumerate(self.classes_):
            needs = self._of(name, X.shape[1]).explains
            if needs:
                out[:, c] = np.any([(X[:, list(a)] > 0).all(1) & ~(X[:, list(b)] > 0).any(1) for a, b in needs], axis=0)
        return out


def _terms(s: Structure) -> list[tuple[int, int]]:
    """(kind, column) of the weights of a class."""
    return [*((FOR_SEEN, j) for j in s.for_), *((FOR_ABSENT, j) for j in s.for_), *((AGAINST_SEEN, j) for j in s.against)]


def _design(X: Floats, allowed: NDArray[np.bool_], starts: list[int], terms: list[tuple[int, int, int]]) -> sparse.csr_matrix:
    """(runs x classes, weights): what each weight adds to the score of a class in a run."""
    n, k = allowed.shape
    blocks = []
    for column, (c, j, kind) in enumerate([*((c, -1, START) for c in starts), *terms]):
        value = np.ones(n) if kind == START else np.maximum(-X[:, j] if kind == FOR_ABSENT else X[:, j], 0)
        rows = np.flatnonzero(value)
        blocks.append((value[rows], rows * k + c, np.full(len(rows), column)))
    data, at, columns = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return sparse.csr_matrix((data, (at, columns)), shape=(n * k, len(starts) + len(terms)))


def _bound(
    X: Floats, target: NDArray[np.int64], family: NDArray[np.int64], term: tuple[int, int, int], free: bool
) -> tuple[float | None, float | None]:
    """The range of a weight: its sign, and the likelihood ratio that its counts of families support, both cautiously. How often a sign is there
    otherwise is counted in all other runs: where an effect of the cause was seen as well they are too few (measured: the likelihood of families left out
    is higher so, by 0.02 nats a run)."""
    c, j, kind = term
    if free:
        return None, None
    hit = X[:, j] < 0 if kind == FOR_ABSENT else X[:, j] > 0
    known = X[:, j] != 0
    mine, others = (target == c) & known, (target != c) & known
    if not (mine.any() or others.any()) or not (target == c).any():
        return 0.0, 0.0
    ratio = np.log(_share(hit, mine, family) / _share(hit, others, family))
    for_it = kind == FOR_SEEN
    return (0.0, max(float(ratio), 0.0)) if for_it else (min(float(ratio), 0.0), 0.0)


def _share(hit: NDArray[np.bool_], among: NDArray[np.bool_], family: NDArray[np.int64]) -> float:
    """The share of families in which the sign is so, each family counted as one run: the median of Jeffreys' posterior.

    Of the tails 0.05, 0.2, 0.35 and 0.5 on the cautious side the median answers best where families are left out, with no more
    confident errors.
    """
    families = np.unique(family[among])
    k = sum(float(hit[among & (family == f)].mean()) for f in families)
    return float(beta.ppf(0.5, k + 0.5, len(families) - k + 0.5))


def _fitted(
    design: sparse.csr_matrix, allowed: NDArray[np.bool_], target: NDArray[np.int64], weight: Floats,
    kinds: NDArray[np.int64], bounds: list[tuple[float | None, float | None]], shrink: float,
) -> Floats:  # fmt: skip
    """The weights of highest penalized likelihood, and the means of the kinds with them."""
    n, k = allowed.shape
    closed = np.where(allowed, 0.0, -np.inf)
    one_hot = np.zeros((n, k))
    one_hot[np.arange(n), target] = 1.0

    def loss(theta: Floats) -> tuple[float, Floats]:
        values, means = theta[: len(kinds)], theta[len(kinds) :]
        scores = (design @ values).reshape(n, k) + closed
        top = scores.max(1, keepdims=True)
        odds = np.exp(scores - top)
        total = odds.sum(1, keepdims=True)
        log_p = scores[np.arange(n), target] - top[:, 0] - np.log(total[:, 0])
        off = values - means[kinds]
        slope = design.T @ (weight[:, None] * (odds / total - one_hot)).ravel() + shrink * off
        of_means = -shrink * np.bincount(kinds, off, 4) + 1e-3 * means
        return float(-(weight * log_p).sum() + 0.5 * shrink * (off**2).sum() + 5e-4 * (means**2).sum()), np.concatenate([slope, of_means])

    start = np.zeros(len(kinds) + 4)
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[*bounds, *[(None, None)] * 4], options={"maxiter": 500})
    return np.asarray(found.x[: len(kinds)])
