"""The rules of gitleaks: each finds what it is made for, none takes long, and names of issuers alone hide nothing."""

from __future__ import annotations

import os
import random
import re
import string
import tomllib
from pathlib import Path

import pytest
from hostile.test_patterns import _limited as _limited
from hostile.test_patterns import slow

from parsers import secrets
from parsers.secrets import gitleaks

RULES = {rule.id: (number, rule) for number, rule in enumerate(gitleaks.rules())}
SHARE = 1 if os.environ.get("HOSTILE") == "all" else 8  # of the rules, and of the attacks on each
VENDORED = Path(str(gitleaks.__file__)).parent / "vendor" / "gitleaks"
# most samples are placeholders, no links, or have a word behind the name that says nothing
HARMLESS = {"snyk-api-token", "kubernetes-secret-yaml", "slack-webhook-url", "sidekiq-sensitive-url", "slack-config-access-token"}
_CLASSES = {
    "CATEGORY_NOT_SPACE": string.ascii_letters,
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": string.ascii_letters + string.digits,
    "CATEGORY_SPACE": " ",
}


def sample(parsed: object, chosen: random.Random) -> str:
    """A text that a parsed expression matches, as a token would look."""
    text = ""
    for op, what in parsed:  # type: ignore[attr-defined]
        name = str(op)
        if name == "LITERAL":
            text += chr(what)
        elif name == "IN":
            text += chosen.choice([c for part in what for c in characters(*part)])
        elif name == "MAX_REPEAT" or name == "MIN_REPEAT":
            low, high, inner = what
            text += "".join(sample(inner, chosen) for _ in range(max(low, min(int(high), 20 if int(high) > 1000 else 1))))
        elif name == "SUBPATTERN":
            text += sample(what[-1], chosen)
        elif name == "BRANCH":
            text += sample(chosen.choice(what[1]), chosen)
    return text


def characters(op: object, what: object) -> list[str]:
    if str(op) == "LITERAL":
        return [chr(what)]  # type: ignore[arg-type]
    if str(op) == "RANGE":
        return [chr(c) for c in range(what[0], what[1] + 1)]  # type: ignore[index]
    return list(_CLASSES[str(what)])


@pytest.mark.parametrize("name", sorted(RULES.keys() - HARMLESS))
def test_a_rule_hides_what_it_is_made_for(name: str) -> None:
    number, rule = RULES[name]
    parsed = re._parser.parse(rule.pattern.pattern)  # type: ignore[attr-defined]
    keyword = next(word for word, numbers in gitleaks.keywords().items() if number in numbers)
    leaked = []
    for seed in range(8):
        m = rule.pattern.fullmatch(made := sample(parsed, random.Random(seed)))
        if m is None:
            continue
        secret = m[rule.group or next((g for g in range(1, rule.pattern.groups + 1) if m[g]), 0)]
        if secret.strip("\"'") in secrets.mask_text(f"{keyword}: using {made} now"):
            leaked.append(made)
    assert len(leaked) <= 3, leaked  # some are words, or of too few different characters


def test_nearly_all_rules_are_used() -> None:
    listed = {rule["id"] for rule in tomllib.loads((VENDORED / "gitleaks.toml").read_text("utf-8"))["rules"]}
    left_out = tomllib.loads(VENDORED.parent.parent.joinpath("gitleaks.toml").read_text("utf-8"))["left_out"]
    assert left_out.keys() <= listed and listed == RULES.keys() | left_out.keys()
    assert len(RULES) >= 0.9 * len(listed)
    assert "Zachary Rice" in (VENDORED / "LICENSE").read_text("utf-8")


def test_every_rule_takes_time_in_proportion_to_the_text() -> None:
    bad = [f"{r.id}: {s}" for r in list(gitleaks.rules())[::SHARE] for s in slow(r.pattern, {"finditer"}, 40 // SHARE)]
    assert not bad, "\n".join(bad)


def test_a_flag_holds_to_the_end_of_its_group() -> None:
    assert gitleaks.translated(r"\b(p8-(?i)[a-z]{2})|x") == r"(p8-(?i:[a-z]{2}))|x"
    assert re.fullmatch(gitleaks.translated("(?i)a|b"), "B") and re.fullmatch(gitleaks.translated("(?i)a|b"), "A")
    assert not re.fullmatch(gitleaks.translated("x(?:(?i)a|b)c"), "xBC")


def test_nothing_of_the_list_is_parsed_for_texts_without_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(gitleaks, "_rule", refuse)
    monkeypatch.setattr(gitleaks, "keywords", refuse)
    texts = ["step 1 | loss 2.0", "epoch 3 done", "adamw_torch", "0.0001", "True"]
    assert [secrets.mask_text(text) for text in texts] == texts


def test_many_texts_are_masked_as_each_alone() -> None:
    token = "dop_" + "v1_" + "0a1b2c3d" * 8
    texts = [f"step {i} tokens/s {i}" for i in range(200)] + [token, "HUGGING\udcff", f"x {token}", "PASSWORD=Zq7kLm92"]
    assert secrets.mask_texts(texts) == [secrets.mask_text(t) for t in texts]
    assert secrets.mask_texts(texts)[-4:] == ["***", "HUGGING\udcff", "x ***", "PASSWORD=***"]
