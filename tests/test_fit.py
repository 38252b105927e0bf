"""The weights of the causes are what the committed table gives, and the model behind them is an estimator as scikit-learn wants it."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from fit import fit as fitting  # noqa: E402
from fit import source_prior  # noqa: E402
from fit import table as training  # noqa: E402
from fit.model import AdditiveCauses, Structure  # noqa: E402

from forensics.causes.files import UNKNOWN  # noqa: E402


def test_the_model_keeps_the_contract_of_estimators() -> None:
    check_estimator(AdditiveCauses())


def test_the_committed_weights_are_learned_from_the_committed_table() -> None:
    table = training.read()
    model = AdditiveCauses(training.structure(table), UNKNOWN, fitting.SHRINK)
    again = csv.DictReader(fitting.weights(fitting.learned(model, table), table))
    found = {(r["cause"], r["sign"]): float(r["seen"]) for r in again}
    kept = {(r["cause"], r["sign"]): float(r["seen"]) for r in csv.DictReader(fitting.WEIGHTS.read_text("utf-8").splitlines())}
    apart = {k: (kept.get(k, 0.0), found.get(k, 0.0)) for k in kept.keys() | found.keys()}
    assert {k: v for k, v in apart.items() if abs(v[0] - v[1]) > 0.3} == {}  # another BLAS rounds otherwise


def test_the_table_names_no_run_and_no_path() -> None:
    for row in training.read().rows:
        assert row["run"].isdigit() and row["family"].count("/") == 1
        assert row["family"].startswith(f"{row['corpus']}/")
        assert not row["corpus"].startswith("real") or row["family"].rpartition("/")[2].isdigit()
        assert "/" not in "".join(value for column, value in row.items() if column != "family")


def test_a_sign_weighs_no_more_than_its_families_support() -> None:
    """One family of ten runs is one observation, ten families are ten."""
    X = np.array([[1.0]] * 10 + [[-1.0]] * 30)
    y = np.array(["cause"] * 10 + [UNKNOWN] * 30)
    model = AdditiveCauses({"cause": Structure((0,), ()), UNKNOWN: Structure((), ())}, UNKNOWN, 0.01)
    one = model.fit(X, y, groups=np.array([0] * 10 + list(range(1, 31)))).seen_[0, 0]
    ten = model.fit(X, y, groups=np.arange(40)).seen_[0, 0]
    assert 0 < one < ten


def test_a_cause_competes_only_where_its_effect_was_seen() -> None:
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    y = np.array(["cause", UNKNOWN, UNKNOWN, "cause"])
    model = AdditiveCauses({"cause": Structure((0,), (), (((1,), ()),)), UNKNOWN: Structure((), ())}, UNKNOWN).fit(X, y)
    assert model.predict_proba([[1.0, -1.0]])[0].tolist() == pytest.approx([0.0, 1.0])
    assert model.predict([[1.0, 1.0]])[0] == "cause"


def test_an_effect_does_not_count_where_a_sign_shows_that_the_cause_could_not_make_it() -> None:
    X = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, 0.0]])
    y = np.array(["cause", UNKNOWN, UNKNOWN, "cause"])
    model = AdditiveCauses({"cause": Structure((), (), (((0,), (1,)),)), UNKNOWN: Structure((), ())}, UNKNOWN).fit(X, y)
    assert model.predict_proba([[1.0, 1.0]])[0].tolist() == pytest.approx([0.0, 1.0])
    assert model.predict([[1.0, 0.0]])[0] == "cause", "what could not be told speaks against nothing"


def test_a_sign_of_source_weighs_by_how_few_scripts_have_the_slip() -> None:
    """Many repositories without the slip weigh more than a few; what is absent weighs little against."""
    many, few = (float(source_prior.of(f"source_{look}").split(",")[0]) for look in ("keeps_gradients", "squashes_twice"))
    assert many > few >= 0
    assert all(-3.1 < float(source_prior.of(f"source_{look}").split(",")[1]) <= 0 for look in ("keeps_gradients", "squashes_twice"))
    assert source_prior.of("loss_swings") == source_prior.of("source_seeds_workers_alike") == ""
