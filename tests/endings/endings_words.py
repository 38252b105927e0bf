"""The words of CUDA, the kernel, NCCL and slurm, with numbers of their own."""

import datetime

from endings_kit import stamp

CUDA_HINT = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


def cuda_memory(rng, other, device=0):
    """torch's message; `other`: another process holds most of the memory."""
    free, asked = rng.uniform(5, 600), rng.choice([1.0, 2.0, 2.5, 4.0])
    total = 79.15
    own = rng.uniform(14, 22) if other else total - free / 1024
    holder = f"Process {rng.randrange(10**5, 4 * 10**6)} has {total - own - free / 1024:.2f} GiB memory in use. " if other else ""
    reserved = rng.uniform(0.3, 1.6)
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked:.2f} GiB. GPU {device} has a total capacity of {total} GiB of which "
        f"{free:.2f} MiB is free. {holder}Including non-PyTorch memory, this process has {own:.2f} GiB memory in use. Of the allocated memory "
        f"{own - reserved - 0.6:.2f} GiB is allocated by PyTorch, and {reserved:.2f} GiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def human(time):
    return stamp(time, "[%a %b %e %H:%M:%S %Y] ")


def kernel_oom(rng, pid, time):
    rss = rng.randrange(190, 250) * 1024 * 1024
    mask = "gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0"
    task = f"nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user.slice/user-1042.slice/session-88.scope,task=python,pid={pid},uid=1042"
    rows = [
        (time - 86400, "eth0: Link is Up - 100Gbps/Full - flow control off"),
        (time, f"python invoked oom-killer: {mask}"),
        (time, f"CPU: 41 PID: {pid} Comm: python Tainted: P           OE      6.8.0-45-generic #45-Ubuntu"),
        (time, "Mem-Info:"),
        (time, "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name"),
        (
            time,
            f"[{pid:7d}]  1042 {pid:5d} {rss // 3:8d} {rss // 4:8d} {rss // 4:8d}      512         0 {rss // 2:12d}        0             0 python",
        ),
        (time, f"oom-kill:constraint=CONSTRAINT_NONE,{task}"),
        (
            time,
            f"Out of memory: Killed process {pid} (python) total-vm:{rss + rss // 4}kB, anon-rss:{rss}kB, file-rss:2048kB, shmem-rss:0kB, UID:1042 pgtables:{rss // 500}kB oom_score_adj:0",
        ),
        (time + 2, f"oom_reaper: reaped process {pid} (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"),
    ]
    return [human(when) + text for when, text in rows]


def kernel_xid(rng, code, time):
    bus = rng.choice(["0000:3b:00", "0000:86:00", "0000:c7:00"])
    pid = rng.randrange(20000, 99999)
    words = {
        79: [
            f"NVRM: Xid (PCI:{bus}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            f"NVRM: GPU {bus}.0: GPU has fallen off the bus.",
        ],
        48: [f"NVRM: Xid (PCI:{bus}): 48, pid={pid}, name=python, DBE (double bit error) ECC Error at FBPA 6, subpartition 0"],
        94: [f"NVRM: Xid (PCI:{bus}): 94, pid={pid}, name=python, Ch 00000008, Contained: SM (0x1). RST: No, D-RST: No"],
    }
    before = [(time - 40000, "nvidia-nvlink: Nvlink Core is being initialized, major device number 508")]
    return [human(when) + text for when, text in before + [(time + n, text) for n, text in enumerate(words[code])]]


def glog(time, micro):
    """The prefix of a c10 error line, such as E1104 03:12:44.123456789."""
    return datetime.datetime.fromtimestamp(time).strftime("E%m%d %H:%M:%S.") + f"{micro:09d}"


def watchdog(rng, rank, time, number, op="ALLREDUCE"):
    """What one rank writes when a collective does not come back in time."""
    prefix = f"[rank{rank}]:[{glog(time, rng.randrange(10**9))} ProcessGroupNCCL.cpp"
    elements = 26214400
    ran = 600000 + rng.randrange(1, 99)
    work = f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) ran for {ran} milliseconds before timing out."
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    lib = "/opt/conda/lib/python3.11/site-packages/torch/lib"
    frames = [
        f"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f{rng.randrange(16**10):010x} in {lib}/libc10.so)",
        f"frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout() + 0x282 (0x7f{rng.randrange(16**10):010x} in {lib}/libtorch_cuda.so)",
        f"frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 (0x7f{rng.randrange(16**10):010x} in {lib}/libtorch_cuda.so)",
        "frame #3: clone + 0x43 (0x7f1f2c0e9353 in /lib/x86_64-linux-gnu/libc.so.6)",
    ]
    return [
        f"{prefix}:616] [Rank {rank}] Watchdog caught collective operation timeout: {work}",
        f"{prefix}:1785] {group} Exception (either an error or timeout) detected by watchdog at work: {number}, last enqueued NCCL work: {number + 3}, "
        f"last completed NCCL work: {number - 1}.",
        f"{prefix}:630] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU "
        "operations might run on corrupted/incomplete data.",
        f"{prefix}:636] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        f"{prefix}:1595] {group} Process group watchdog thread terminated with exception: [Rank {rank}] Watchdog caught collective operation timeout: {work}",
        "Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:618 (most recent call first):",
        *frames,
        "",
    ]


def child_failed(rank, host, pid, code, time, script="train.py"):
    """torchrun's summary of the first failure."""
    signal = {-6: "Signal 6 (SIGABRT)", -9: "Signal 9 (SIGKILL)", -11: "Signal 11 (SIGSEGV)"}.get(code)
    cause = f"{signal} received by PID {pid}" if signal else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    rule = "=" * 60
    return [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", rule, f"{script} FAILED", "-" * 60, "Failures:", "  <NO_OTHER_FAILURES>", "-" * 60,
        "Root Cause (first observed failure):", "[0]:", f"  time      : {stamp(time, '%Y-%m-%d_%H:%M:%S')}", f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {rank % 8})", f"  exitcode  : {code} (pid: {pid})", "  error_file: <N/A>", f"  traceback : {cause}", rule,
    ]  # fmt: skip


def cancelled(kind, job, node, time, why=""):
    """slurmstepd's word; kind JOB or STEP, why '', 'TIME LIMIT', 'PREEMPTION', 'NODE FAILURE'."""
    reason = f" DUE TO {why}" if why else ""
    reason += ", SEE SLURMCTLD LOG FOR DETAILS" if why == "NODE FAILURE" else ""
    return f"slurmstepd: error: *** {kind} {job} ON {node} CANCELLED AT {stamp(time, '%Y-%m-%dT%H:%M:%S')}{reason} ***"
