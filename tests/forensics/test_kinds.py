"""Findings go by the ids that other programs look for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runs import case, every, write

import forensics
from forensics.case_parts import sign_findings
from forensics.case_parts.finding_kinds import OF_DETECTOR
from forensics.rules import detectors, id_of
from forensics.signs.sign import effects, looks


def test_every_sign_goes_by_a_detector_that_there_is() -> None:
    assert set(OF_DETECTOR.values()) <= {id_of(d) for d in detectors()}
    assert OF_DETECTOR.keys() <= looks().keys()
    assert len(OF_DETECTOR.keys() & effects().keys()) > 20


def test_a_sign_alone_is_found_under_the_id_of_its_detector(tmp_path: Path) -> None:
    found = case(write(tmp_path / "r", 400, val_f1=every(50, lambda i: 0.0)))["findings"]
    assert ("plateau", "eval_at_chance_throughout") in {(f["kind"], f["id"].rpartition("-")[0]) for f in found}


def test_the_check_of_a_detector_has_fired_where_a_sign_alone_saw_it(tmp_path: Path) -> None:
    seen = forensics.analyze(write(tmp_path / "r", 400, val_f1=every(50, lambda i: 0.0)))
    fell = replace(seen.findings[0], id="reward_fell-7", kind="reward_fell")
    before, after = ({c.id: c for c in checks}["rl_collapse"] for checks in (seen.checks, sign_findings.answered(seen.checks, [fell])))
    assert before.status != "fired"
    assert (after.status, after.note) == ("fired", "seen by reward_fell-7")


def test_what_a_sign_sees_from_a_step_on_goes_on_to_the_end(tmp_path: Path) -> None:
    found = case(write(tmp_path / "r", 400, loss_D=lambda i: 0.6 if i < 200 else 0.0, loss_G=lambda i: 0.9 if i < 200 else 9.0))["findings"]
    assert [200, 400] in [f["steps"] for f in found if f["kind"] == "gan_trouble"]
