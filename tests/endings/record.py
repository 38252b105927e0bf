"""Records the endings that really run: starts small trainings, lets them end or ends them, keeps what they wrote under recorded/.

    python tests/endings/record.py [NAME...]

make.py copies from there; this is run again only to renew the texts. It needs torch, transformers, lightning and wandb. The children see
an environment of neutral paths (a link ROOT/venv to this one), so that no path of this machine comes into a recording."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = Path("/opt/train")
PYTHON = ROOT / "venv/bin/python"
KEEP = {".log", ".out", ".err", ".jsonl", ".json", ".csv", ".yaml", ".wandb", ".txt"}
TORCHRUN = [
    "-m",
    "torch.distributed.run",
    "--nproc-per-node=4",
    "--redirects=3",
    "--log-dir=logs",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=localhost:0",
]

# name: program, then what differs from "python train.py > train.log 2>&1": env, streams (how output is split), stop (a signal once ready)
CASES = {
    "keyerror": {}, "shape": {}, "nomodule": {}, "worker_json": {}, "worker_killed": {}, "compiled": {"env": {"CXX": "/usr/bin/no-such-compiler"}},
    "save_attr": {}, "caught": {}, "leaked": {}, "segfault": {"streams": "shell"}, "disk_full": {}, "disk_full_zip": {}, "host_memory": {}, "nan_raise": {},
    "index_error": {"streams": "tee"}, "broken_pipe": {"streams": "closed", "env": {"LOGGER": "jsonl"}},
    "ctrl_c": {"program": "wait_tqdm", "stop": signal.SIGINT, "env": {"AT": "1130"}},
    "tqdm_killed": {"program": "wait_tqdm", "stop": signal.SIGKILL, "env": {"AT": "820"}},
    "silent": {"program": "wait_plain", "stop": signal.SIGKILL, "env": {"AT": "1340"}},
    "terminated": {"program": "wait_plain", "stop": signal.SIGTERM, "streams": "shell", "env": {"AT": "965", "SEED": "2"}},
    "killed": {"program": "wait_plain", "stop": signal.SIGKILL, "streams": "shell", "env": {"AT": "1105", "SEED": "5"}},
    "jsonl_keyerror": {"program": "keyerror", "streams": "split", "env": {"LOGGER": "jsonl", "SEED": "4"}},
    "jsonl_setting": {"program": "bad_setting", "streams": "split", "env": {"LOGGER": "jsonl"}},
    "jsonl_handler": {"program": "handler", "streams": "split", "stop": signal.SIGTERM, "env": {"LOGGER": "jsonl"}},
    "jsonl_finished": {"program": "leaked", "streams": "split", "env": {"LOGGER": "jsonl", "SEED": "6"}},
    "jsonl_worker": {"program": "worker_killed", "streams": "split", "env": {"LOGGER": "jsonl", "SEED": "8"}},
    "jsonl_nan": {"program": "nan_raise", "streams": "split", "env": {"LOGGER": "jsonl", "SEED": "9"}},
    "hf_finished": {"program": "hf", "streams": "split"},
    "hf_killed": {"program": "hf", "streams": "split", "stop": signal.SIGKILL, "env": {"AT": "431", "SEED": "3", "PYTHONUNBUFFERED": "1"}},
    "hf_interrupt": {"program": "hf", "streams": "split", "stop": signal.SIGINT, "env": {"AT": "287", "SEED": "5"}},
    "hf_metric": {"program": "hf_metric", "streams": "split"},
    "lit_finished": {"program": "lit"}, "lit_early": {"program": "lit", "env": {"ENDING": "early"}},
    "lit_step": {"program": "lit", "env": {"ENDING": "step"}}, "lit_sanity": {"program": "lit", "env": {"ENDING": "sanity"}},
    "lit_interrupt": {"program": "lit", "stop": signal.SIGINT, "env": {"AT": "390"}},
    "lit_terminated": {"program": "lit", "stop": signal.SIGTERM, "env": {"AT": "330"}},
    "wb_finished": {"program": "wb"}, "wb_exception": {"program": "wb", "env": {"ENDING": "exception"}},
    "wb_zero": {"program": "wb", "env": {"ENDING": "zero"}}, "wb_noise": {"program": "wb", "env": {"ENDING": "noise"}},
    "wb_killed": {"program": "wb", "stop": signal.SIGKILL, "env": {"AT": "133"}},
    "wb_interrupt": {"program": "wb", "stop": signal.SIGINT, "env": {"AT": "170"}},
    "ranks_finished": {"program": "ranks", "run": TORCHRUN}, "ranks_key": {"program": "ranks", "run": TORCHRUN, "env": {"ENDING": "key"}},
    "ranks_killed": {"program": "ranks", "run": TORCHRUN, "env": {"ENDING": "kill"}, "stop": (".ready1", signal.SIGKILL)},
    "ranks_terminated": {"program": "ranks", "run": TORCHRUN, "env": {"ENDING": "term"}, "stop": ("agent", signal.SIGTERM)},
    "ranks_alone": {"program": "ranks", "run": [], "env": {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29512"}},
}  # fmt: skip


def prepare(case, name):
    """A project folder with the program as train.py."""
    proj = ROOT / "proj"
    shutil.rmtree(proj, ignore_errors=True)
    proj.mkdir(parents=True)
    for helper in ("lib.py", "hf.py"):
        shutil.copy(HERE / "programs" / helper, proj)
    shutil.copy(HERE / "programs" / f"{case.get('program', name)}.py", proj / "train.py")
    return proj


def environment(case):
    kept = {key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ}
    fixed = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin", "PYTHONUNBUFFERED": "", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **fixed, **case.get("env", {})}


def command(case):
    """The shell line that starts the run, and the file descriptors of its two streams."""
    python = " ".join(["python", *case.get("run", []), "train.py"])
    match case.get("streams"):
        case "tee":
            return f'{python} 2>&1 | tee train.log; echo "exit code: $?" >> train.log; echo 0 > exit_code.txt'
        case "shell":  # the shell that started it tells of its death
            Path(ROOT / "proj/run.sh").write_text(f"{python}\n", encoding="utf-8")
            return "bash run.sh > train.log 2>&1"
        case "split":
            return f"exec {python} > stdout.log 2> stderr.log"
        case "closed":
            return f"{python} 2> train.log | sleep 0"
    return f"exec {python} > train.log 2>&1"


def wait_for(path, process, seconds=240):
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text(encoding="utf-8")):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{path.name} never came")
        time.sleep(0.1)
    time.sleep(0.6)
    return int(path.read_text(encoding="utf-8"))


def end(case, process, proj):
    """Sends the signal once the run says that it is ready for it."""
    stop = case.get("stop")
    if isinstance(stop, tuple):
        target, stop = stop
        pids = [wait_for(proj / f".ready{rank}", process) for rank in range(4)]
        os.kill(process.pid if target == "agent" else pids[1], stop)
    elif stop:
        os.kill(wait_for(proj / ".ready", process), stop)
    if stop:
        time.sleep(1.5)
        (proj / ".shard").touch()


def hear_interrupts():
    """A shell that starts jobs in the background makes them deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def record(name):
    case = CASES[name]
    proj = prepare(case, name)
    process = subprocess.Popen(["bash", "-c", command(case)], cwd=proj, env=environment(case), preexec_fn=hear_interrupts)
    end(case, process, proj)
    process.wait(timeout=300)
    target = HERE / "recorded" / name
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(proj.rglob("*")):
        inside = path.relative_to(proj)
        if path.is_file() and not path.is_symlink() and path.suffix in KEEP and path.stat().st_size:
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)
            neutral(target / inside)
    print(name, process.returncode, flush=True)


def neutral(path):
    """Base interpreter and host name; the rest is neutral because of where the run stood."""
    if path.suffix == ".wandb":
        return
    text = path.read_bytes().decode()
    base = re.escape(str(Path(os.__file__).parent))
    text = re.sub(base, "/opt/train/python/lib/python3.11", text)
    text = text.replace(str(Path(sys.prefix).resolve()), "/opt/train/venv")  # torch's own log lines follow the link
    text = re.sub(r"run-forensics==.*\n", "", text)
    path.write_bytes(text.replace(os.uname().nodename + ":", "gpu-node-3:").encode())


def main():
    ROOT.mkdir(parents=True)  # removed at the end: it must not be there before
    (ROOT / "venv").symlink_to(sys.prefix)
    try:
        for name in sys.argv[1:] or CASES:
            record(name)
    finally:
        shutil.rmtree(ROOT)


if __name__ == "__main__":
    main()
