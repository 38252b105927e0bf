"""Secrets by key and by value, in every format and every place of it; and words that only look like secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hostile.case import Case, lines, points, value, writes
from hostile.event_files import NAME as EVENTS
from hostile.wire import config, events, field, frame, framed, history, output, summary

KEPT = {"loss": points(0, 99)}
RUN = {"log.jsonl": lines(0, 99)}
# made up, of the shapes that the issuers give; joined so that no scanner takes this file for a leak
VALUES = {
    "hugging_face": "hf" + "_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "openai": "sk" + "-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34",
    "github": "ghp" + "_0123456789abcdefABCDEF0123456789abcd",
    "github_new": "github" + "_pat_11ABCDEFG0abcdefghijkl_0123456789abcdef",
    "aws_id": "AKIA" + "IOSFODNN7EXAMPLE",
    "slack": "xoxb" + "-123456789012-abcdefABCDEF",
    "gitlab": "glpat" + "-AbCdEfGhIjKlMnOpQrSt",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuvw",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAsecretbody12345\nq9w8e7r6t5y4\n-----END RSA PRIVATE KEY-----"
PASSWORD = "hunter2correcthorse"
URL = f"https://jane:{PASSWORD}@git.example.com/repo.git"


def cases() -> Iterator[Case]:
    def case(name: str, files: dict[str, bytes | str], *absent: str, **more: Any) -> Case:
        return Case(f"secrets/{name}", writes(RUN | files), more.pop("kept", KEPT), absent=absent, **more)

    for name, secret in VALUES.items():
        files: dict[str, bytes | str] = {
            "config.yaml": f"lr: 0.1\nnote: uses {secret} here\nlist: [a, {secret}]\nnested: {{deep: {{x: '{secret}'}}}}\n",
            "args.json": json.dumps({"cmd": ["train", secret], "about": f"({secret})"}),
            "train.log": f"step 1 acc 2.0\nINFO using {secret}\nRuntimeError: CUDA out of memory with {secret}\nstep 2 acc 1.9\n",
            "events.jsonl": json.dumps({"step": 5, "message": f"login {secret}", "level": "error"}) + "\n",
        }
        yield case(f"value_{name}", files, secret)
    some = VALUES["hugging_face"]
    tags = "".join(json.dumps({"step": s, f"loss/{some}": v, "loss": v}) + "\n" for s, v in points(0, 99))
    yield case("in_a_tag", {"log.jsonl": tags}, some)
    yield case("in_an_event_tag", {EVENTS: b"".join(events(points(0, 99), f"x/{some}".encode()))}, some)
    yield case("in_a_column", {"log.csv": f"step,loss2,{some}\n" + "".join(f"{s},{v},1\n" for s, v in points(0, 50))}, some)
    yield case("in_a_config_key", {"config.yaml": f"{some}: 1\nlr: 0.1\n"}, some)
    yield case("in_a_file_name", {f"notes-{some}.csv": "step,acc\n1,2\n2,3\n", f"{some}/x.bin": b"\0\1\2"}, some)
    yield case("in_a_damaged_line", {"more.jsonl": lines(0, 9) + '{"x": "' + some + "\n" + some + "\n"}, some)
    yield case("in_damaged_yaml", {"config.yaml": f"lr: 0.1\n  bad {some}: [\n{some}\n"}, some)
    shards = "".join(
        json.dumps({"step": i, "sample_ids": [i, f"{some}-{i}"], "shard": f"https://u:{PASSWORD}@h/s{i}"}) + "\n" for i in range(50)
    )
    yield case("in_batches", {"batches.jsonl": shards}, some, PASSWORD)
    text = summary(
        1, field(1, b"note/text_summary") + field(9, field(1, field(1, b"text"))) + field(8, field(1, 7) + field(8, f"key {some}".encode()))
    )
    yield case("in_event_text", {EVENTS: b"".join(events(points(0, 9), b"x")) + frame(text)}, some)
    yield case(
        "in_wandb",
        {
            "run-a.wandb": framed(
                [
                    config({"api_key": PASSWORD, "note": some}),
                    output(f"export HF_TOKEN={some}\n"),
                    *(history(s, {"x": value(s)}) for s in range(20)),
                ]
            )[0]
        },
        some,
        PASSWORD,
    )
    meta = {"args": ["--hf-token", PASSWORD, "--lr", "1"], "env": {"WANDB_API_KEY": PASSWORD}, "git": {"remote": URL}}
    yield case(
        "in_wandb_metadata",
        {
            "run-20240101_000000-abc/files/wandb-metadata.json": json.dumps(meta),
            "run-20240101_000000-abc/files/config.yaml": f"db_password:\n  value: {PASSWORD}\n",
        },
        PASSWORD,
    )
    store = "0123456789abcdef0123456789abcdef"
    mlflow: dict[str, bytes | str] = {
        f"{store}/metrics/acc": "".join(f"{1700000000000 + s} {value(s)} {s}\n" for s in range(20)), f"{store}/params/api_key": PASSWORD, f"{store}/params/note": f"with {some}",
        f"{store}/tags/mlflow.source.git.repoURL": URL, f"{store}/tags/env": f"{{'HF_TOKEN': '{PASSWORD}'}}", f"{store}/metrics/{some}": "1700000000000 1 0\n",
        f"{store}/meta.yaml": f"artifact_uri: s3://x\nlifecycle_stage: active\nrun_id: {store}\nrun_name: {some}\nstatus: 4\nstart_time: 1700000000000\n",
    }  # fmt: skip
    yield Case("secrets/in_mlflow", writes(mlflow), absent=(some, PASSWORD))
    state = {
        "global_step": 3,
        "log_history": [{"step": s, "loss": value(s), f"note_{some}": 1.0} for s in range(4)],
        "trial_params": {"hub_token": PASSWORD},
        "best_model_checkpoint": URL,
        "best_metric": None,
    }
    yield case("in_a_trainer_state", {"trainer_state.json": json.dumps(state)}, some, PASSWORD, kept={})
    hung = f'step 1 acc 2.0\nTraceback (most recent call last):\n  File "/x/{some}.py", line 5, in f\n    login(token="{some}", password="{PASSWORD}")\nrequests.exceptions.HTTPError: 401 for url: {URL}\nstep 2 acc 1.9\n'
    yield case("in_a_traceback", {"train.log": hung, "nohup.out": hung.replace("1 acc", "3 acc")}, some, PASSWORD)
    yield case(
        "in_a_checkpoint_name", {f"checkpoint-{some}/model.safetensors": b"\2\0\0\0\0\0\0\0{}", f"ckpt-5-{some}.pt": b"\x80\x02}."}, some
    )
    keys = ("password", "db_password", "PASSWD", "secret", "client_secret", "api_key", "apiKey", "API-KEY", "openai.api_key", "access_key", "secretAccessKey",
            "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "private_key", "HF_TOKEN", "hub_token", "auth_token", "token", "bearer", "authorization", "credentials",
            "wandb_api_key", "WANDB_API_KEY", "ssh_key", "cookie", "passphrase", "redis_pwd", "account_key", "SLACK_WEBHOOK_SECRET", "refresh_token", "push_to_hub_token")  # fmt: skip
    yield case("by_key_yaml", {"config.yaml": "".join(f"{k}: {PASSWORD}{i:02}\n" for i, k in enumerate(keys))}, PASSWORD)
    yield case(
        "by_key_nested",
        {
            "config.yaml": "".join(f"a{i}:\n  b:\n    {k}: {PASSWORD}\n" for i, k in enumerate(keys))
            + f"tokens_file: x\nenv:\n  - name: HF_TOKEN\n    value: {PASSWORD}\n"
        },
        PASSWORD,
    )
    yield case(
        "by_key_under_secret",
        {"config.json": json.dumps({"secrets": {"one": PASSWORD, "two": [PASSWORD]}, "auth": {"user": "x", "pass": PASSWORD}})},
        PASSWORD,
    )
    yield case("by_key_json", {"config.json": json.dumps(dict.fromkeys(keys, PASSWORD))}, PASSWORD)
    yield case("by_key_toml", {"config.toml": "".join(f'"{k}" = "{PASSWORD}"\n' for k in keys)}, PASSWORD)
    yield case("by_key_ini", {"config.ini": "[a]\n" + "".join(f"{k} = {PASSWORD}\n" for k in keys)}, PASSWORD)
    yield case(
        "by_key_args",
        {"args.txt": "Namespace(lr=0.1, " + ", ".join(f"{k.replace('-', '_').replace('.', '_')}='{PASSWORD}'" for k in keys) + ")\n"},
        PASSWORD,
    )
    yield case(
        "by_key_flags",
        {
            "train.log": "step 1 acc 2.0\n$ python train.py --hf_token "
            + PASSWORD
            + " --api-key="
            + PASSWORD
            + " --wandb-key '"
            + PASSWORD
            + "'\nstep 2 acc 2.0\nRuntimeError: --password "
            + PASSWORD
            + "\n"
        },
        PASSWORD,
    )
    yield case(
        "by_key_jsonl",
        {"header.jsonl": json.dumps({"type": "config", "args": dict.fromkeys(keys, PASSWORD)}) + "\n" + lines(0, 9, "x")},
        PASSWORD,
    )
    yield case("by_key_csv", {"table.csv": "step,loss2,api_key\n" + "".join(f"{i},{value(i)},{PASSWORD}\n" for i in range(20))}, PASSWORD)
    environment = {
        "HOME": "/root",
        "HF_TOKEN": PASSWORD,
        "AWS_SECRET_ACCESS_KEY": PASSWORD + "/+x",
        "MY_PASSWORD": PASSWORD,
        "PATH": "/bin",
    }
    dumped = (
        f"environ({environment})\nRuntimeError: env is {environment}\n"
        + "".join(f"{k}={v}\n" for k, v in environment.items())
        + "".join(f"export {k}='{v}'\n" for k, v in environment.items())
    )
    dumped += "".join(f'ERROR declare -x {k}="{v}"\n' for k, v in environment.items()) + f"ERROR: {json.dumps(environment)}\n"
    yield case("dumped_environment", {"train.log": "step 1 acc 2.0\n" + dumped + "step 2 acc 2.0\n"}, PASSWORD)
    yield case(
        "dumped_environment_settings",
        {"config.yaml": "env:\n" + "".join(f"  {k}: '{v}'\n" for k, v in environment.items()) + f'dump: "{environment}"\n'},
        PASSWORD,
    )
    yield case(
        "private_key",
        {
            "config.json": json.dumps({"pem": PEM, "lr": 1}),
            "train.log": "step 1 acc 2\n" + PEM + "\nstep 2 acc 2\n",
            "config2.yaml": "k: |\n" + "".join(f"  {s}\n" for s in PEM.split("\n")),
        },
        "MIIEpAIBAAKCAQEAsecretbody12345",
        "q9w8e7r6t5y4",
    )
    yield case(
        "url",
        {
            "config.yaml": f"remote: {URL}\ndb: postgresql://jane:{PASSWORD}@db:5432/x\nredis: redis://:{PASSWORD}@h:6379\n",
            "train.log": f"step 1 acc 2\nERROR cannot reach {URL}\nstep 2 acc 2\n",
        },
        PASSWORD,
    )
    signed = "https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAXXXX%2F2024&X-Amz-Signature=" + PASSWORD + "&sv=2020&sig=" + PASSWORD
    yield case("signed_url", {"config.yaml": f"data: {signed}\n", "train.log": f"step 1 acc 2\nERROR GET {signed}\n"}, PASSWORD)
    yield case(
        "header",
        {
            "train.log": f"step 1 acc 2\nERROR curl -H 'Authorization: Bearer {PASSWORD}' -H \"X-Api-Key: {PASSWORD}\"\nRuntimeError: {{'authorization': 'Basic {PASSWORD}'}}\n"
        },
        PASSWORD,
    )
    beside = (f"ValueError: DB_PASSWORD={PASSWORD}", f"$ curl -u jane:{PASSWORD} https://x.org", f"sshpass -p {PASSWORD} ssh h", f"PGPASSWORD={PASSWORD} psql",
              f"GET https://x.org/a?key={PASSWORD}", f"machine h login jane password {PASSWORD}", f"{{\"auth\": {{\"value\": \"{PASSWORD}\"}}}}", f"X_PASS='{PASSWORD}'",
              f"https://hooks.{'slack'}.com/services/T0/B0/{PASSWORD}", f"Cookie: sid={PASSWORD}", f"[('HF_TOKEN', '{PASSWORD}')]")  # fmt: skip
    for i, text in enumerate(beside):
        meta: dict[str, bytes | str] = {
            "train.log": f"step 1 acc 2.0\nRuntimeError: {text}\nstep 2 acc 1.9\n", "config.yaml": f"note: |\n  {text}\n", "args.json": json.dumps({"cmd": [text], "x": text}),
            "events.jsonl": json.dumps({"step": 5, "message": text, "level": "error"}) + "\n", "log2.csv": 'step,acc2,note\n1,2,"' + text.replace('"', '""') + '"\n2,3,x\n',
            "run-20240101_000000-abc/files/wandb-metadata.json": json.dumps({"args": [text], "program": text}),
        }  # fmt: skip
        yield case(f"beside_{i:02}", meta, PASSWORD)
    two = VALUES["openai"], VALUES["google"]
    files = {
        f"{secret}/{name}": body
        for secret in two
        for name, body in (("notes.csv", "step,acc\n1,2\n2,3\n"), ("checkpoint-5/model.safetensors", b"\2\0\0\0\0\0\0\0{}"))
    }
    yield case("in_two_folders", files, *two)
    kept = {"num_key_value_heads": 8123, "tokenizer": "KEEPMEtok", "max_tokens": 40961, "pad_token_id": 32107, "eos_token": "<KEEPMEeos>", "key_dim": 12811, "tokens_per_batch": 52428,
            "monkey": "KEEPMEmonkey", "passes": 31337, "token_type_ids": "KEEPMEtypes", "secretary": "KEEPMEsec", "author": "KEEPMEauthor", "num_tokens": 77071, "keyboard": "KEEPMEkb",
            "tokenizer_name": "KEEPMEname", "use_auth": False, "sort_key": "KEEPMEsort", "max_new_tokens": 51213, "image_token_index": 32123, "compass": "KEEPMEcompass"}  # fmt: skip
    yield case("no_secrets", {"config.json": json.dumps(kept)}, present=tuple(str(v) for v in kept.values() if v is not False))
    people = {
        "config.yaml": "email: jane.doe@example.com\nhostname: gpu-node-17\nuser: janedoe\ndata: /home/janedoe/corpus/train.bin\noutput_dir: /mnt/scratch/teamx/secretproject/out\nip: 10.1.2.3\nnodes: [gpu-node-17, gpu-node-18]\nmaster_addr: gpu-node-17.cluster.local\n",
        "train.log": "step 1 acc 2.0\nERROR on gpu-node-17 by janedoe: cannot open file:///home/janedoe/x/y.bin (mail jane.doe@example.com, 10.1.2.3)\nRuntimeError: saved to:/mnt/scratch/teamx/secretproject/model.pt\n"
        '  File "/home/janedoe/miniconda3/lib/python3.11/site-packages/torch/nn/x.py", line 5, in f\nRuntimeError: C:\\Users\\janedoe\\runs\\model.pt is gone\nstep 2 acc 1.9\n',
        "events.out.tfevents.1700000000.gpu-node-17.4242.0": b"".join(events(points(0, 20), b"acc")),
    }  # fmt: skip
    hidden = ("jane.doe@example.com", "gpu-node-17", "gpu-node-18", "janedoe", "/mnt/scratch/teamx", "10.1.2.3", "secretproject")
    yield Case("secrets/redact_hides", writes(RUN | people), absent=tuple("page:" + h for h in hidden), options=("--redact",))
