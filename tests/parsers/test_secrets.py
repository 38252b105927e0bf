"""What is a secret and what only looks like one."""

from __future__ import annotations

import pytest

from parsers import secrets


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "HF_TOKEN",
        "password",
        "wandb_api_key",
        "AWS_SECRET_ACCESS_KEY",
        "authToken",
        "db-password",
        "hub_token",
        "clientSecret",
        "OPENAI_API_KEY",
        "token",
        "private_key",
        "env/GITHUB_TOKEN",
    ],
)
def test_keys_of_secrets(key: str) -> None:
    assert secrets.is_secret_key(key)
    assert "hunter2" not in secrets.mask_config(key, "hunter2hunter2")


@pytest.mark.parametrize(
    "key",
    [
        "num_key_value_heads",
        "tokenizer",
        "max_tokens",
        "eos_token_id",
        "pad_token",
        "tokens_per_second",
        "keyboard",
        "key",
        "mask_token",
        "num_tokens",
        "max_new_tokens",
        "monkey",
        "author",
        "key_dim",
        "token_type_ids",
    ],
)
def test_keys_that_are_none(key: str) -> None:
    assert not secrets.is_secret_key(key)
    assert "plain" in secrets.mask_config(key, "plain")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("login with hf_abcdefghijklmnopqrstuv now", "hf_abcdefghijklmnopqrstuv"),
        ("key sk-proj-abcdefghijklmnop123456", "sk-proj-abcdefghijklmnop123456"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("aws AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
        ("clone https://jane:pa55word@git.example.org/x.git", "pa55word"),
        ("WANDB_API_KEY=0123456789abcdef", "0123456789abcdef"),
        ("{'HF_TOKEN': 'abcdefgh', 'HOME': '/root'}", "abcdefgh"),
        ("curl -H 'Authorization: Bearer abcdef.ghijkl'", "abcdef.ghijkl"),
        ("python train.py --hub_token abcdefgh --lr 0.1", "abcdefgh"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
    ],
)
def test_secrets_in_running_text(text: str, secret: str) -> None:
    masked = secrets.mask_text(text)
    assert secret not in masked and secrets.MASK in masked


def test_ordinary_text_is_left_alone() -> None:
    text = "step 10 | loss 2.345 | tokens/s 12000 | num_key_value_heads=8 max_tokens=512 tokenizer: gpt2"
    assert secrets.mask_text(text) == text


def test_values_inside_structures() -> None:
    masked = secrets.mask_config("env", {"HF_TOKEN": "abcdef", "list": [{"password": "x1y2z3"}], "lr": 0.1, "nan": float("nan")})
    assert "abcdef" not in masked and "x1y2z3" not in masked
    assert '"lr": 0.1' in masked and '"nan": "NaN"' in masked


SHAPED = [
    "hf_" + "a1" * 10, "sk-" + "a1" * 10, *(f"gh{kind}_" + "a1" * 12 for kind in "pousr"), "github_pat_" + "a1" * 12,
    "AKIA" + "A1" * 8, "ASIA" + "A1" * 8, "xoxb-" + "a1" * 8, "glpat-" + "a1" * 10, "AIza" + "a1" * 18,
    "wandb_v1_" + "a1" * 12, "nvapi-" + "a1" * 12, "ya29." + "a1" * 12, "eyJ" + ".".join(["a1" * 6] * 3),
    "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----", "s3://jane:pa55word@bucket",
    *(f"https://x.org/?{key}=0123456789" for key in (
        "sig", "Signature", "access_token", "api_key", "TOKEN", "X-Amz-Credential", "X-Amz-Security-Token", "X-Amz-Signature")),
]  # fmt: skip


@pytest.mark.parametrize("secret", SHAPED)
def test_secrets_are_known_by_their_shape_alone(secret: str) -> None:
    text = f"loss/{secret} rest"
    assert secrets.has_shapes(text.encode()) and secrets.has_shapes(memoryview(text.encode()))
    assert secrets.MASK in secrets.mask_shapes(text) and secret not in secrets.mask_shapes(text)
    assert not secrets.has_shapes(text[: len("loss/") + 3].encode())
