"""`--redact` on texts and documents: what is hidden, what stays, and that the same name has the same pseudonym."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from forensics import redact

# A text as a log or setting has it, then what must not be left of it.
HIDDEN: list[tuple[str, tuple[str, ...]]] = [
    # prompts
    ("mwendt@storch04:~/llm/run$ python train.py --lr 1e-4", ("mwendt", "storch04")),
    ("[okafor@login-a2 pretrain]$ sbatch job.sh", ("okafor", "login-a2")),
    ("(base) tanaka@dgx-h08:/raid/tanaka/exp# nvidia-smi", ("tanaka", "dgx-h08", "/raid")),
    ("Mireille@MBP-von-M ~ % python x.py", ("Mireille", "MBP-von-M")),
    ("root@b7f3c2a9d011:/workspace# ls", ("b7f3c2a9d011",)),
    ("PS C:\\Users\\Oyelaran> python train.py", ("Oyelaran",)),
    # schedulers
    ("srun: error: lrz-n17: task 5: Exited with exit code 1", ("lrz-n17",)),
    ("srun: error: cn[0301-0304]: tasks 8-31: Terminated", ("cn[0301", "0304")),
    ("slurmstepd: error: *** STEP 8812.0 ON taurusi8021 CANCELLED AT 2025-03-01T10:11:12 ***", ("taurusi8021",)),
    ("SLURM_JOB_NODELIST=jwb[0012,0014-0019]", ("jwb",)),
    ("SLURM_JOB_USER=hvdberg SLURM_SUBMIT_HOST=levante3", ("hvdberg", "levante3")),
    ("  99120     boost  sft-7b   pkowal  R    1:02:03      2 lrdn[1177-1178]", ("pkowal", "lrdn")),
    ("$ squeue -u pkowal --me", ("pkowal",)),
    ("salloc: Nodes kisski-g[003,007] are ready for job", ("kisski-g",)),
    ("exec_host = bora21/0*36+bora22/0*36", ("bora21", "bora22")),
    ("mpirun noticed that process rank 3 with PID 71 on node cedar5 exited on signal 9", ("cedar5",)),
    ("--nodelist=frontier[04101-04104]", ("frontier[",)),
    # launchers, NCCL, sockets
    ("hpc-a3:91211:91300 [4] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB", ("hpc-a3",)),
    ("[rank0]:[W socket.cpp:697] [c10d] The client socket has failed to connect to [juwels07.fz.local]:29500", ("juwels07",)),
    ("The IPv6 network addresses of (snow12, 29400) cannot be retrieved", ("snow12",)),
    ("  host      : r05n11.bullx\n  rank      : 3 (local_rank: 3)", ("r05n11",)),
    ("--rdzv_endpoint=rack9-b:29400 --rdzv_id=7", ("rack9-b",)),
    ("MASTER_ADDR=ice07 MASTER_PORT=6000", ("ice07",)),
    ("mpirun -np 8 -H fennel3:4,fennel4:4 python train.py", ("fennel3", "fennel4")),
    ("-rw-rw---- 1 abergman kraftlab 812 Mar  3 11:02 last.ckpt", ("abergman", "kraftlab")),
    ("GET /files?path=%2Fhome%2Fabergman%2Fruns%2Fa", ("abergman",)),
    ("upload to arn:aws:s3:::kraftlab-weights/run3 as arn:aws:iam::210987654321:user/abergman", ("kraftlab", "210987654321", "abergman")),
    ("init_method tcp://titan3:23456 world 16", ("titan3",)),
    ("[bora3:20131] *** Process received signal ***", ("bora3",)),
    ("pdsh> storch9: [2025-02-01 10:00:00] ok\nstorch9: [2025-02-01 10:00:01] ok", ("storch9",)),
    # syslog, system
    ("Feb  3 07:08:09 nid004411 kernel: NVRM: Xid (PCI:0000:3b:00): 79", ("nid004411",)),
    ("2025-02-03T07:08:09.123+01:00 sirius5 slurmd[412]: oom", ("sirius5",)),
    ("Linux uan-7 5.14.21-150400 #1 SMP x86_64", ("uan-7",)),
    ("uid=1042(eszabo) gid=100(users)", ("eszabo",)),
    ("ssh -p 2222 eszabo@kobold", ("eszabo", "kobold")),
    ("rsync -a ckpt/ lfischer@archive-1:/vol/nas7/lf/", ("lfischer", "archive-1", "/vol/nas7")),
    ("hostname: wombat", ("wombat",)),
    ("USER=lfischer", ("lfischer",)),
    ('{"host": "quokka-3", "username": "lfischer"}', ("quokka-3", "lfischer")),
    # files and paths
    ("events.out.tfevents.1712345678.quokka-3.31337.0", ("quokka-3",)),
    ("events.out.tfevents.1712345678.quokka-3.31337.0.v2 was cut", ("quokka-3",)),
    ('  File "/u/home/gruber/nanoX/model.py", line 88, in forward', ("gruber", "nanoX")),
    ("saved to /p/project1/hai_secret/out/ck.pt", ("project1", "hai_secret")),
    ("/fsx/teams/orcas/llm and /gpfs/alpine/abc123/proj/log.txt", ("orcas", "alpine", "abc123")),
    ("cannot open ~dvogel/sets/a.bin", ("dvogel",)),
    ("cannot open '/Users/dvogel/My Models/secret lab/a.pt'", ("dvogel",)),
    ("D:\\teams\\falcon\\ckpt\\last.pt", ("falcon",)),
    ("C:\\\\Users\\\\dvogel\\\\x.py", ("dvogel",)),
    ("\\\\nas04\\models\\falcon\\a.bin", ("nas04", "falcon")),
    ("file:///export/falcon/data/x.arrow", ("falcon", "/export")),
    ("-I/opt/falcon/include -L/opt/falcon/lib", ("falcon",)),
    # addresses
    ("mail to p.kowalski+ml@uni-xyz.example.pl", ("kowalski", "uni-xyz")),
    ("from 172.31.8.44 port 51022", ("172.31.8.44",)),
    ("peer fe80::42:acff:fe11:2%eth0", ("fe80::42",)),
    ("bound to [2a02:908:1:2::77]:29500", ("2a02:908",)),
    ("2001:638:a000:4140:0:ffff:83bc:2121 refused", ("2001:638",)),
    ("HWaddr 0c:42:a1:5e:7f:10", ("0c:42:a1",)),
    ("HWaddr 0C-42-A1-5E-7F-11", ("0C-42-A1",)),
    ("UUID: GPU-9d1b7c33-0f2e-4c51-8a77-2b6f0e1d5c4a", ("9d1b7c33",)),
    ("MIG-GPU-9d1b7c33-0f2e-4c51-8a77-2b6f0e1d5c4a/7/0", ("9d1b7c33",)),
    ("Serial Number                         : 1652922013777", ("1652922013777",)),
    # URLs and remotes
    ("remote: git@gitlab.falcon.example:orca/nano.git", ("falcon", "orca", "nano")),
    ("https://gitlab.falcon.example/orca/nano/-/jobs/3", ("falcon", "orca", "nano")),
    ("https://wandb.ai/orca-team/nano-x/runs/3k2j", ("orca-team", "nano-x")),
    ("s3://falcon-ckpts/teamx/run/step.pt", ("falcon-ckpts", "teamx")),
    ("gs://falcon-b/data and hdfs://nn-2.falcon:8020/user/pkowal/x", ("falcon", "pkowal", "nn-2")),
    ("postgresql://pkowal:***@pg7.falcon.lan:5432/mlflow", ("pkowal", "pg7")),
    ("http://172.16.4.9:8080/metrics", ("172.16.4.9",)),
    # said elsewhere
    ("wandb: Currently logged in as: pkowal (orca-team). Use `wandb login`", ("pkowal", "orca-team")),
    ("Author: Piotr van Kowal <pk@falcon.example>", ("Piotr", "Kowal", "pk@")),
    ("sudo -u pkowal nice python x.py", ("pkowal",)),
    ("node gpu-c[2-4] and then gpu-c3 died", ("gpu-c",)),
    ("started by pkowal on host marmot-2", ("pkowal", "marmot-2")),
    ("ip-10-22-3-44.eu-central-1.compute.internal joined", ("10-22-3-44",)),
]
KEPT = [
    "step 1000: loss 2.31, lr 3e-4, 12.5 tokens/s on 8 GPUs, and/or 3 / 4 / 5",
    "train/loss, val/acc@5 and mAP@0.5:0.95, recall@10",
    "03:14:15 elapsed 1:02:03, at 2025-02-03T07:08:09Z",
    "std::vector<float> at::native::add c10::Error torch::autograd",
    "torch 2.1.0, cudnn 8.9.7.29, CUDA version 12.1.0.2, nvidia-nccl-cu12==2.18.3.1, v1.2.3.4",
    "listening on 127.0.0.1:6006, 0.0.0.0 and localhost:29500",
    "root@localhost:/# whoami",
    "model.layers[0].attn, x[1,2], layers[0-11], a[2:4], part-[0-9].bin",
    "ProcessGroupNCCL.cpp:1785 in checkpoint-500/model.safetensors line 12",
    "configs/base.yaml, ./logs/run.jsonl, wandb/offline-run-20250203_070809-abc",
    "GPU 0000:3b:00.0: Xid 79, 0x7f3a, sha 9f86d081884c7d65",
    "user: data host: train owner: root author: none node: 3 nodes: 4 world_size: 32",
    "https://pytorch.org/docs/stable/notes/cuda.html",
    "User: what is the capital of France? Assistant: it is",
    "num_hosts: 2, host_batch_size: 16, n_nodes=4, user_prompt: hello",
    "bf16 to fp32 on A100, H100 and cuda:0, rank0:1234 and gpu0",
    "DataLoader worker (pid 4242) exited; 5 of 10 (50%)",
    "/data is full; ratio a/b is 0.5; 7/8 done",
    "Epoch 3/10 [00:12<00:34, 5.2it/s]",
    "lr=3e-4; weight_decay = 0.1; betas=(0.9, 0.95)",
]


def said(x: Any) -> str:
    return json.dumps(redact.redacted({"x": x})["x"], ensure_ascii=False)


@pytest.mark.parametrize(("text", "secrets"), HIDDEN, ids=[t[:40] for t, _ in HIDDEN])
def test_names_and_places_are_hidden(text: str, secrets: tuple[str, ...]) -> None:
    told = said(text).casefold()
    assert [s for s in secrets if s.casefold() in told] == [], told


@pytest.mark.parametrize("text", KEPT, ids=[t[:40] for t in KEPT])
def test_what_is_no_name_stays(text: str) -> None:
    assert redact.redacted({"x": text})["x"] == text


@pytest.mark.parametrize(
    "document",
    [
        {"config": {"env": {"HOSTNAME": "yak-3"}}, "text": "yak-3 died"},
        {"rows": [{"key": "trainer.host", "a": "yak-3", "b": "emu-4"}], "text": "yak-3 and emu-4"},
        {"evidence": {"columns": ["step", "host"], "rows": [[1, "yak-3"]]}, "text": "yak-3: slow"},
        {"table": [["username", "yak-3"]], "text": "by yak-3."},
        {"hosts": {"yak-3": {"steps": 4}}, "text": "(yak-3)"},
        {"yak-3": 1, "text": "yak-3@localhost yak-3", "node_list": ["yak-3", "emu-4"]},
        {"metadata": {"program": "/x/yak-3/train.py", "host": "yak-3", "email": "a@yak-3.example"}},
        {"mlflow.user": "yak-3", "run": {"id": "run_of_yak-3", "path": "/home/yak-3/r"}},
    ],
)
def test_a_name_of_a_setting_is_hidden_everywhere_keys_included(document: dict[str, Any]) -> None:
    told = json.dumps(redact.redacted(document))
    assert "yak-3" not in told and "emu-4" not in told


def test_the_same_name_has_the_same_pseudonym_and_different_names_different_ones() -> None:
    hidden = redact.redacted({"host": "Yak-3", "text": "yak-3 and emu-4:2222", "again": ["emu-4", "YAK-3"], "user": "jo", "who": "jo"})
    assert hidden["host"] == hidden["again"][1] == "<host-1>"
    assert (hidden["text"], hidden["again"][0]) == ("<host-1> and <host-2>:2222", "<host-2>")
    assert hidden["user"] == hidden["who"] == "<user-1>"


def test_redacting_twice_changes_nothing_and_mixes_nothing_up() -> None:
    once = redact.redacted({"host": "yak-3", "text": "yak-3 at 10.1.2.3, /a/b/c.py"})
    assert redact.redacted(once) == once
    more = redact.redacted(once | {"node": "emu-4", "text": once["text"] + " 10.1.2.4"})
    assert (more["host"], more["node"]) == ("<host-1>", "<host-2>")
    assert more["text"] == "<host-1> at <ip-1>, <path>/c.py <ip-2>"


def test_below_the_run_paths_stay_readable() -> None:
    hidden = redact.redacted(
        {"run": {"path": "/mnt/x/r7"}, "text": "/mnt/x/r7/logs/a.log, /mnt/x/r70/b.log", "command": ["forensics", "/mnt/x/r7"]}
    )
    assert hidden["run"]["path"] == hidden["command"][1] == "<path>/r7"
    assert hidden["text"] == "<path>/r7/logs/a.log, <path>/b.log"


def test_numbers_and_names_of_metrics_are_left_alone() -> None:
    document = {
        "run": {"metrics": {"loss.train": {"tag": "/train/loss", "points": 3}, "other//train/x": {}}},
        "timeline": {"series": [{"metric": "loss.train", "tag": "/train/loss", "lives": [{"points": [[1, 2.5], [2, "NaN"]]}]}]},
        "user": "loss", "host": "spike", "cudnn_version": "8.9.2.26", "table": [["nccl_version", "2.18.3.1"]],
    }  # fmt: skip
    assert redact.redacted(document) == document | {"redacted": redact.COVERS}


def test_two_keys_that_differ_in_what_is_hidden_stay_two() -> None:
    hidden = redact.redacted({"x": {"/a/b/c.py": 1, "10.0.0.1": 2, "10.0.0.2": 3}})
    assert sorted(hidden["x"].values()) == [1, 2, 3]


@pytest.mark.parametrize("unit", ["a", "a.", "a@", "a/", "/", "ssh ", "1:", "://", "host ", "A ", "x=[", "'a", "\\", "ab:", "1.", "node "])
def test_time_grows_with_the_length_only(unit: str) -> None:
    def spent(n: int) -> float:
        text, began = (unit * n)[:n], time.process_time()
        redact.redacted({"x": text})
        return time.process_time() - began

    spent(100)
    assert spent(40_000) < 20 * max(spent(4_000), 0.01)  # ten times the length, twice that for noise: squared it were a hundred
