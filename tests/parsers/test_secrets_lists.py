"""Many secrets and many innocents, from the lists beside this file: each alone, and each where it may stand."""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path

import pytest

from parsers import secrets

_ALPHABETS = {"": string.ascii_letters + string.digits, "h": "0123456789abcdef", "U": string.ascii_uppercase + string.digits}
_ALPHABETS["l"] = string.ascii_lowercase + string.digits
MADE_UP = "Zq7" + "kLm92Xw" + "TuV4bN8"


def lines(name: str) -> list[str]:
    text = Path(__file__).with_name(name).read_text("utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("# ")]


def token(template: str) -> str:
    """The same each time: {h32} becomes 32 hex digits."""
    chosen = random.Random(template)
    pieces = re.sub(r"\{([hUl]?)(\d+)\}", lambda m: "".join(chosen.choices(_ALPHABETS[m[1]], k=int(m[2]))), template)
    return pieces.replace("¦", "")


SHAPES = dict(line.split("\t") for line in lines("secrets_shapes.txt"))
CONTEXTS = lines("secrets_contexts.txt")
INNOCENT = lines("secrets_innocent.txt")
KEYS = [line.split("\t") for line in INNOCENT if "\t" in line]
TEXTS = [line for line in INNOCENT if "\t" not in line]


def test_the_lists_are_long() -> None:
    assert len(SHAPES) + len(CONTEXTS) >= 250
    assert len(INNOCENT) >= 480


@pytest.mark.parametrize("kind", SHAPES)
def test_a_token_is_known_by_its_shape_wherever_it_stands(kind: str) -> None:
    secret = token(SHAPES[kind])
    for around in (
        "{}",
        "loss/{}",
        "got '{}' there",
        "({}),",
        "note_{} rest",
        '{{"x": "a\\n{}\\n"}}',
        "{}: 1",
        "/runs/{}/x",
        "\x1b[31m{}\x1b[0m",
    ):
        text = around.format(secret)
        masked = secrets.mask_text(text)
        assert masked == secrets.mask_shapes(text) and secret not in masked
        assert 0 <= len(around.format(secrets.MASK)) - len(masked) <= 3  # base64 may take a / and what follows
        assert secrets.has_shapes(text.encode())


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_secret_is_known_by_what_stands_beside_it(context: str) -> None:
    text = context.replace("\\\\n", "\0").replace("\\n", "\n").replace("\0", "\\n")
    at = text.rindex("@@") if "@@" in text else text.index("@")
    text = text[:at] + MADE_UP + text[at + 1 :]
    masked = secrets.mask_text(text)
    assert MADE_UP not in masked and secrets.MASK in masked
    assert secrets.mask_text(masked) == masked
    assert MADE_UP not in secrets.mask_config("note", {"a": [text]})


@pytest.mark.parametrize(("key", "value"), KEYS)
def test_what_an_innocent_key_says_stays(key: str, value: str) -> None:
    assert secrets.mask_config(key, value) == json.dumps(value, ensure_ascii=False)
    for text in (f"{key}={value}", f"{key}: {value}", json.dumps({key: value}), f"x {key}='{value}'"):
        assert secrets.mask_text(text) == text


@pytest.mark.parametrize("text", TEXTS)
def test_innocent_texts_and_names_stay(text: str) -> None:
    assert secrets.mask_text(text) == text
    assert secrets.mask_shapes(text) == text
    assert secrets.names([text]) == {}


@pytest.mark.parametrize("key", ["max_tokens", "hub_token", "api_key", "auth", "use_auth_token", "secret", "token"])
@pytest.mark.parametrize("value", [0, 1, 512, 0.1, True, False, None, "", [], {}])
def test_numbers_and_nothing_are_no_secrets(key: str, value: object) -> None:
    assert secrets.mask_config(key, value) == json.dumps(value)


def test_a_number_is_a_password_only_where_it_is_a_long_text() -> None:
    assert secrets.mask_config("db_password", 12345678) == "12345678"
    assert secrets.mask_config("db_password", "12345678") == '"***"'
    assert secrets.mask_text("password=12345678 pin='12345678'") == "password=12345678 pin='12345678'"
    assert secrets.mask_text("password='12345678'") == "password='***'"
    assert secrets.mask_config("hub_token", 12345678) == "12345678"
    assert secrets.mask_config("password", 1) == "1"


def test_values_below_a_secret_key_and_behind_a_flag() -> None:
    value = {
        "auth": {"value": MADE_UP, "retry": 3},
        "args": ["--hf-token", MADE_UP, "--lr", "0.1"],
        "run": ["sshpass", "-p", MADE_UP, "ssh"],
    }
    value |= {"secrets": {"a": [{"b": MADE_UP}]}, "env": [{"name": "HF_TOKEN", "value": MADE_UP}, {"name": "LR", "value": "0.1"}]}
    masked = json.loads(secrets.mask_config("config", value))
    assert MADE_UP not in str(masked)
    assert masked["auth"]["retry"] == 3 and masked["args"][2:] == ["--lr", "0.1"] and masked["run"][3] == "ssh"
    assert masked["env"][1] == {"name": "LR", "value": "0.1"}


def test_a_private_key_that_comes_line_by_line() -> None:
    key = [
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA" * 4,
        "[rank0]: q9w8e7r6t5y4u3i2",
        "ab==",
        "-----END RSA " + "PRIVATE KEY-----",
    ]
    masked = secrets.mask_texts(["loss went up", *key, "training goes on"])
    assert masked[0] == "loss went up" and masked[-1] == "training goes on"
    assert not any(word in " ".join(masked) for word in ("MIIE", "q9w8", "ab=="))


def test_names_that_differ_only_in_a_secret_stay_apart() -> None:
    one, two = token(SHAPES["hugging face"]), token(SHAPES["replicate"])
    raw = [f"a/{one}", f"a/{two}", f"b/{one}", "a/***", "plain", f"{one}/{two}", f"{two}/{one}", f"a/{one}2/x"]
    shown = secrets.names(raw)
    told = [shown.get(name, name) for name in raw]
    assert len(set(told)) == len(raw) and "plain" not in shown
    assert not any(secret in name for name in told for secret in (one, two))
    assert told[0].split("/")[1] == told[2].split("/")[1]  # what lies in one folder stays in one


def test_keys_that_differ_only_in_a_secret_lose_no_entry() -> None:
    keys = [token(SHAPES[kind]) for kind in ("hugging face", "replicate", "groq")]
    assert len(json.loads(secrets.mask_config("x", dict.fromkeys(keys, 1)))) == 3
