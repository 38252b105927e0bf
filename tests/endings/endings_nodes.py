"""Several ranks: torchrun with a log for each rank, and several nodes with a log for each."""

from endings_kit import FOLDERS, SITES, megatron_lines, points, staged, stamp, start_of, trace, write
from endings_words import CUDA_HINT, cancelled, child_failed, cuda_memory, kernel_xid, watchdog

RANKS = "torchrun rank logs"
NODES = "several nodes"
ELASTIC = "torch/distributed/elastic/multiprocessing/api.py:"
REMOTE = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, remote process exited or there was "
    "a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    "Last error:\nNET/IB : Got completion from peer 10.4.{}.{}<41872> with error 12, opcode 0, len 0, vendor err 129"
)


def rank_lines(rng, rank, rows, total):
    return [f"[rank{rank}] {stamp(t)} step {s}/{total} loss {loss * rng.uniform(0.99, 1.01):.4f} lr {lr:.3e}" for s, t, loss, lr, _ in rows]


def rank_file(rank, stream):
    return f"logs/none_7k2d1x9q/attempt_0/{rank}/{stream}.log"


def ranks(folder, rng, world, share=0.45, total=8000):
    """Every rank's stdout up to `share` of the plan; returns the time of the last line."""
    rows = points(rng, int(total * share) // 20 * 20, 20, 0.9, start_of(rng))
    for rank in range(world):
        write(
            folder,
            rank_file(rank, "stdout"),
            [f"[rank{rank}] {stamp(rows[0][1] - 20)} init done, world size {world}", *rank_lines(rng, rank, rows, total)],
        )
    return rows[-1][1]


def agent(rng, host, time, failed, code, others):
    """The launcher's own lines when a worker fails."""
    prefix = stamp(time, "W%m%d %H:%M:%S") + f".{rng.randrange(10**6):06d} {rng.randrange(1000, 60000)} "
    pids = {rank: 41000 + 7 * rank for rank in [failed, *others]}
    lines = [f"{prefix}{ELASTIC}897] Sending process {pids[rank]} closing signal SIGTERM" for rank in others]
    binary = "binary: /opt/conda/bin/python"
    lines.append(
        f"{prefix.replace('W', 'E', 1)}{ELASTIC}869] failed (exitcode: {code}) local_rank: {failed % 8} (pid: {pids[failed]}) of {binary}"
    )
    calls = [("/opt/conda/bin/torchrun", 8, "<module>", "sys.exit(main())")]
    calls.append((f"{SITES[0]}/torch/distributed/launcher/api.py", 264, "launch_agent", "raise ChildFailedError("))
    first, *rest = child_failed(failed, host, pids[failed], code, time)
    return lines + trace(calls, first) + rest


def step_calls(source):
    root = FOLDERS[2]
    return [(f"{root}/train.py", 268, "<module>", "main()"), (f"{root}/train.py", 214, "main", source)]


@staged(RANKS)
def torchrun_nccl_watchdog(folder, rng):
    """A collective never comes back; the watchdog of every rank gives up after ten minutes."""
    last, number = ranks(folder, rng, 8), rng.randrange(20000, 90000)
    for rank in range(8):
        lines = watchdog(rng, rank, last + 603 + rank * 0.1, number)
        what = lines[4].split("] ", 1)[1]
        write(
            folder,
            rank_file(rank, "stderr"),
            [*lines, "terminate called after throwing an instance of 'c10::DistBackendError'", f"  what():  {what}"],
        )
    write(folder, "torchrun.log", agent(rng, "gpu-021", last + 607, 0, -6, [1, 2, 3, 4, 5, 6, 7]))
    return last + 607


@staged(RANKS)
def torchrun_cuda_oom_rank2(folder, rng):
    last = ranks(folder, rng, 4, share=0.31)
    calls = step_calls("loss.backward()")
    oom = trace(calls, cuda_memory(rng, other=False, device=2), "[rank2]: ")
    write(folder, rank_file(2, "stderr"), oom)
    write(folder, "train.log", agent(rng, "gpu-007", last + 5, 2, 1, [0, 1, 3]))
    return last + 5


def node_logs(folder, rng, nodes, share=0.4, total=50000, every=10):
    """node_<n>.log: the last node prints the iterations (as Megatron does), the others their start."""
    rows = points(rng, int(total * share) // every * every, every, 3.1, start_of(rng))
    begin = rows[0][1] - 90
    texts = {}
    for node in range(nodes):
        texts[node] = [
            f"> initializing torch distributed on node {node} of {nodes}: ranks {node * 8}-{node * 8 + 7} ...",
            f"[{stamp(begin)}] process group ready",
        ]
    texts[nodes - 1] += megatron_lines(rows, total, 3.1)
    texts[0] += [f"[{stamp(t)}] saved checkpoint at iteration {s}" for s, t, *_ in rows if s % 2000 == 0]
    return rows[-1][1], texts


def write_nodes(folder, texts):
    for node, lines in texts.items():
        write(folder, f"node_{node}.log", lines)


@staged(NODES)
def nodes_first_error_rank5(folder, rng):
    """One rank raises; the ranks of the other node only time out ten minutes later."""
    last, texts = node_logs(folder, rng, 2, share=0.05)
    number = rng.randrange(20000, 90000)
    calls = step_calls("batch = next(batches)") + [
        ("/scratch/kh41/lmpre/data.py", 91, "decode", "raise ValueError(f'shard {name}: {n} tokens, expected {m}')")
    ]
    texts[0] += [f"[{stamp(last + 1)}] rank 5: reading shard 00412"] + trace(
        calls, "ValueError: shard 00412: 8190 tokens, expected 8192", "[rank5]: "
    )
    for rank in (8, 9, 10, 11, 12, 13, 14, 15):
        texts[1] += watchdog(rng, rank, last + 604 + rank * 0.1, number)
    write_nodes(folder, texts)
    return last + 606


@staged(NODES + " + slurm")
def nodes_node_down(folder, rng):
    last, texts = node_logs(folder, rng, 4, share=0.08)
    job = rng.randrange(10**5, 10**6)
    remote = REMOTE.format(rng.randrange(1, 250), rng.randrange(1, 250))
    for node in (0, 1, 3):
        texts[node] += trace(step_calls("dist.all_reduce(bucket)"), remote, f"[rank{node * 8}]: ")
    write_nodes(folder, texts)
    err = ["srun: error: Node failure on gpu-013", "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."]
    write(folder, f"slurm-{job}.err", [*err, cancelled("STEP", f"{job}.0", "gpu-011", last + 95, "NODE FAILURE")])
    return last + 96


@staged(NODES + " + dmesg")
def nodes_xid(folder, rng):
    last, texts = node_logs(folder, rng, 2, share=0.06)
    error = "RuntimeError: CUDA error: unspecified launch failure\n" + CUDA_HINT
    texts[1] += trace(step_calls("optimizer.step()"), error, "[rank11]: ")
    for rank in range(8):
        texts[0] += watchdog(rng, rank, last + 604 + rank * 0.1, 71234)
    write_nodes(folder, texts)
    write(folder, "dmesg_node_1.txt", kernel_xid(rng, 79, last))
    return last + 606


@staged(NODES)
def nodes_rendezvous_timeout(folder, rng):
    """The second node never comes; the first one gives up before any step."""
    start = start_of(rng)
    calls = [
        ("/workspace/recsys/train.py", 40, "<module>", "main()"), ("/workspace/recsys/train.py", 17, "main", "dist.init_process_group('nccl')"),
        (f"{SITES[0]}/torch/distributed/distributed_c10d.py", 1724, "init_process_group", "store, rank, world_size = next(rendezvous_iterator)"),
        (f"{SITES[0]}/torch/distributed/rendezvous.py", 189, "_create_c10d_store", "return TCPStore("),
    ]  # fmt: skip
    error = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined."
    begin = [
        f"{stamp(start)} | launching on 2 nodes: gpu-031,gpu-032",
        f"{stamp(start + 8)} | args: max_steps=20000 batch_size=64",
        f"{stamp(start + 9)} | init_process_group ...",
    ]
    write(folder, "node_0.log", begin + trace(calls, error))
    write(folder, "node_1.log", [f"{stamp(start)} | launching on 2 nodes: gpu-031,gpu-032", "NCCL version 2.21.5+cuda12.4"])
    return start + 612


@staged(NODES + " + slurm")
def nodes_init_hang_scancel(folder, rng):
    """Nothing comes after NCCL's first words; hours later somebody cancels the job."""
    start, job = start_of(rng), rng.randrange(10**5, 10**6)
    for node in range(2):
        host = f"gpu-{31 + node:03d}"
        info = [f"{host}:{812 + n}:{812 + n} [{n}] NCCL INFO Bootstrap : Using bond0:10.4.7.{11 + node}<0>" for n in range(4)]
        more = [
            f"{host}:812:1190 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB bond0:10.4.7.{11 + node}<0>",
            f"{host}:812:1190 [0] NCCL INFO Connected all rings",
        ]
        begin = [
            f"{stamp(start)} | config: max_steps=40000 global_batch=1024 nodes=2",
            f"{stamp(start + 15)} | building the data loader",
            *info,
        ]
        write(folder, f"node_{node}.log", begin + more[: 2 - node])
    end = start + 7 * 3600
    write(folder, f"slurm-{job}.err", [cancelled("STEP", f"{job}.0", "gpu-031", end), cancelled("JOB", job, "gpu-031", end)])
    return end


@staged(NODES + " + slurm")
def nodes_silent_hang_time_limit(folder, rng):
    """No rank writes a line for nine hours, then the time limit comes."""
    last, texts = node_logs(folder, rng, 2, share=0.07)
    job, end = rng.randrange(10**5, 10**6), last + 9.2 * 3600
    write_nodes(folder, texts)
    lines = [
        cancelled("JOB", job, "gpu-004", end, "TIME LIMIT"),
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    ]
    write(folder, f"slurm-{job}.err", [*lines, cancelled("STEP", f"{job}.0", "gpu-004", end, "TIME LIMIT")])
    return end


@staged(NODES)
def nodes_finished(folder, rng):
    last, texts = node_logs(folder, rng, 2, share=1.0, total=6000)
    for node in range(2):
        texts[node].append(f"[after training is done] datetime: {stamp(last + 2)} ")
    texts[0].append("  successfully saved checkpoint from iteration    6000 to /scratch/kh41/lmpre/ckpt")
    write_nodes(folder, texts)
    return last + 12
