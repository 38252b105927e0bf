"""Turns console lines that are no measurements into events: errors, scheduler words, checkpoints, resumes, overflows.

A traceback is one event: its last line with the innermost frame, at the line where it begins. Order of evidence follows
NVRx's log signatures: a *root candidate* has level ``error``; what only follows from another failure (a peer's NCCL
abort, torchrun's ChildFailedError, "broken pipe" of a heartbeat thread) and what is only supposed ("might be caused
by") is ``warning``. Kinds: start, resume, evaluation (one begins), checkpoint_saved, finished, traceback, oom, nccl,
hardware, overflow, nonfinite, scheduler, signal, rows_dropped, missing_field, warning, alive (of a file the last one counts).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parsers.console_format.line_prefix import Where

MAX_TEXT = 600


class Event(NamedTuple):
    kind: str
    level: str
    text: str
    step: int | None = None


# The first kind of which a pattern is found names the line. Case does not matter, except in (?-i:...).
_WORDS: list[tuple[str, str, list[str]]] = [
    (
        "rows_dropped",
        "warning",
        [r"steps? must be monotonically increasing", r"(?:^|\W)Step \d+ < \d+; dropping", r"less than current step"],
    ),
    (
        "overflow",
        "info",
        [
            r"OVERFLOW!",
            r"(?<!no )(?:grad(?:ient)?|loss scale|fp16)\b.{0,30}overflow",
            r"overflow (?:detected|on iteration)",
            r"(?:reducing|increasing|growing|lowering|decreasing)(?: dynamic)? loss scale",
            r"inf(?:inite)? grad\w* .{0,20}skipp",
            r"loss scale (?:reached|already at minimum)",
        ],
    ),
    (
        "oom",
        "error",
        [
            r"CUDA out of memory",
            r"OutOfMemoryError",
            r"oom[-_ ]kill",
            r"out of memory: kill",
            r"killed process \d+",
            r"DefaultCPUAllocator",
            r"(?:hip|cuda|mps|xla) ?(?:backend )?out of memory",
            r"RESOURCE_EXHAUSTED",
            r"std::bad_alloc",
            r"\bMemoryError\b",
            r"cannot allocate memory",
            r"exceeded memory limit",
            r"(?:CUDNN|CUBLAS)_STATUS_ALLOC_FAILED",
            r"\bOOMKilled\b",
            r"\btasks? [\d,-]+: Out Of Memory",
        ],
    ),
    (
        "hardware",
        "error",
        [
            r"\bNVRM: Xid",
            r"\bXid\b.{0,20}\d+",
            r"uncorrectable",
            r"double[- ]bit",
            r"\bECC\b.{0,20}error",
            r"row remap.{0,20}fail",
            r"nvlink.{0,30}error",
            r"pcie.{0,30}error",
            r"fallen off the bus",
            r"GPU is lost",
            r"unspecified launch failure",
            r"illegal memory access",
            r"misaligned address",
            r"hardware (?:error|failure)",
            r"thermal (?:shutdown|violation)",
            r"machine check",
        ],
    ),
    (
        "nccl",
        "error",
        [
            r"watchdog caught collective",
            r"collective operation timeout",
            r"collective.{0,40}timed? ?out",
            r"nccl(?:System|Internal|UnhandledCuda|Remote)Error",
            r"NCCL (?:error|timeout)",
            r"DistBackendError",
            r"NCCL WARN .{0,60}(?:error|fail|timeout)",
            r"NCCL communicator was aborted",
            r"TCPStore",
            r"mismatch between collectives",
            r"mismatched collective",
            r"failed to pass monitoredBarrier",
            r"reached monitoredBarrier",
            r"watchdog (?:got stuck|hang\b)",
            r"timeout at NCCL work",
            r"detected by watchdog at work",
            r"rank that exhausted inputs",
            r"DistStoreError",
            r"process group .{0,60}(?:abort|timed? ?out)",
            r"ibv_.{1,60}(?:fail|error)",
            r"gloo.{0,40}(?:timed? ?out|reset)",
            r"connection (?:reset|closed) by (?:remote )?peer",
        ],
    ),
    (
        "scheduler",
        "error",
        [
            r"due to (?:time limit|preempt\w*|node[ _]fail\w*)",
            r"(?-i:\bPREEMPTED\b|NODE[_ ]FAIL|\bCANCELLED\b)",
            r"slurmstepd: error",
            r"srun: (?:error|Job step aborted|Terminating)",
            r"\bscancel\b",
            r"walltime .{0,20}exceeded",
            r"=>> PBS: job killed",
            r"TERM_(?:RUNLIMIT|MEMLIMIT|OWNER)",
            r"exceeded (?:job|step) memory",
            r"spot .{0,30}(?:interrupt|terminat)",
            r"the node was low on resource",
            r"\bevicted\b",
            r"\brequeu(?:ed|ing job)",
        ],
    ),
    (
        "signal",
        "error",
        [
            r"(?-i:\bSIG(?:TERM|KILL|INT|SEGV|ABRT|BUS|HUP|FPE|USR[12])\b)",
            r"segmentation fault",
            r"bus error",
            r"core dumped",
            r"(?:received|caught|got) signal",
            r"exitcode\s*+(?::\s*+)?-\d",
            r"signal (?:9|15|11|6)\b",
            r"(?-i:line \d+:\s+\d+ (?:Killed|Aborted|Terminated|Segmentation fault)\b)",
            r"\bexit(?:ed)?\b(?: with)?(?: exit)?(?: code| status)[: ]*137\b",
            r"keyboardinterrupt",
            r"(?-i:^\s*Killed\b|^Terminated\b|^Aborted\b)",
            r"ChildFailedError",
        ],
    ),
    (
        "nonfinite",
        "error",
        [
            r"(?:nan|inf(?:inite)?)(?:s|/inf)? (?:was |were |values? )?(?:detected|encountered|found)",
            r"(?:nan|inf)s? in (?:the )?(?:loss|grad)",
            r"(?:detected|found|encountered|got) (?:an? )?(?:nan|inf\b|non-?finite)",
            r"non-?finite",
            r"\bnot finite\b",
            r"(?:loss|gradients?|grad norm|weights?) (?:is|was|are|has|became|contains?) (?:nan|inf\b|not finite)",
            r"returned nan values",
            r"contains? (?:nan|inf)\b",
            r"\bnan (?:loss|gradient)",
            r"loss (?:nan|exploded|diverged)",
            r"minimum loss scale reached",
            r"rerun.{0,30}(?:unexpected result|fault)",
        ],
    ),
    (
        "resume",
        "info",
        [
            r"\bresum(?:ed|ing|e)\b(?! token)",
            r"continuing training",
            r"load(?:ing|ed) (?:a |the )?checkpoint",
            r"checkpoint loaded",
            r"successfully loaded checkpoint",
            r"restor(?:ed|ing) (?:checkpoint|from|state)",
            r"starting from iteration [1-9]",
            r"(?:load|restor)(?:ed|ing) (?:model|weights|state|optimizer|ckpt|from).{0,60}(?:checkpoint|ckpt|step|\.pt)",
            r"training starts at step (?:[2-9]|1\d)",
            r"will skip the first",
        ],
    ),
    (
        "checkpoint_saved",
        "info",
        [
            r"sav(?:ed|ing|e) .{0,30}(?:checkpoint|ckpt)",
            r"checkpoint.{0,40}saved",
            r"finished saving",
            r"saving model",
            r"\bsaved? (?:model|optimizer|weights|state)\b",
            r"(?:saved|saving) \S*(?:checkpoint|ckpt|step_?\d)\S*",
            r"(?:wrote|written) checkpoint",
            r"saving (?:final|best)",
        ],
    ),
    (
        "finished",
        "info",
        [
            r"(?:training|train) (?:is |was )?(?:completed?|finished|done|ended|over)\b",
            r"^\s*(?:done|finished|completed)[.!]?\s*$",
            r"=== ?done ?===",
            r"done training",
            r"finished training",
            r"exiting program (?:after|at)",
            r"exit(?:s|ed) successfully",
            r"Trainer\.fit`? stopped",
            r"reached max(?:imum)? (?:steps|epochs|iterations)",
            r"training time \d",
            r"all done",
            r"\d epochs completed in",
        ],
    ),
    (
        "warning",
        "warning",
        [
            r"skipp(?:ing|ed) (?:this |the )?(?:step|batch|update|iteration|optimizer|sample)",
            r"no space left on device",
            r"dataloader worker.{0,40}(?:killed|exited|died)",
            r"disk quota exceeded",
            r"input/output error",
            r"stale file handle",
            r"too many open files",
            r"early stop",
            r"loss spike",
            r"spike detected",
            r"roll(?:ing )?back",
            r"recovering from",
            r"corrupt",
            r"truncated",
            r"checksum",
            r"lost connection",
            r"heartbeat.{0,30}(?:miss|lost|timeout)",
            r"straggler",
            r"throttl",
            r"diverg",
            r"lr_scheduler\.step\(\)",
            r"did not (?:converge|improve)",
            r"stopping_early",
            r"mismatch",
            r"learning rate .{0,40}(?:override|reset|reduc)",
            r"overriding learning rate",
            r"(?:missing|unexpected) key",
            r"blocked for more than \d+ seconds",
            r"not responding, (?:still trying|timed out)",
            r"thermal slowdown",
            r"slowdown: thermal",
            r"^\W*+rank\s*+: \d+ \(local_rank: \d+\)",
            r"bus error encountered in worker",
        ],
    ),
    (
        "evaluation",
        "info",
        [
            r"\*{3} ?running (?:evaluation|prediction|validation)",
            r"^\W*+evaluating\b(?!.*\d%)",
            r"(?:^|[\]:])\W{0,40}+(?:running|starting|begin|beginning|start|entering) (?:the )?(?:validation|evaluation|eval)\b(?! set| data)",
        ],
    ),
    (
        "alive",
        "info",
        [r"\b(?:pid|process|rank|job|worker|run|node)\b.{0,40}\balive\b", r"\bstill (?:running|alive|waiting)\b", r"^\W*+heartbeat\b"],
    ),
    (
        "start",
        "info",
        [
            r"^\W*+(?:starting|start|begin|beginning|running) (?:the )?training",
            r"\*{3} ?running training",
            r"begin training epoch",
            r"training starts at step",
            r"^\W*+training \.\.\.",
            r"launching (?:job|training|run|\d)",
            r"starting elastic_operator",
            r"spawned with command",
            r"\bcmd = ",
            r"number of (?:trainable )?parameters",
            r"model (?:size|has)\b.{0,30}param",
            r"params?:\d",
        ],
    ),
    (
        "warning",
        "error",
        [
            r"(?-i:^(?:\w+\.)*\w*(?:Error|Exception)\b(?:: |$))",
            r"\bfatal\b",
            r"assertion `.{0,200}failed",
            r"terminate called",
            r"process .{0,30}exited? with (?:code|status) [1-9]",
            r"exit ?code: ?[1-9]",
        ],
    ),
]
_RULES = [(kind, level, re.compile("(?i)" + "|".join(words))) for kind, level, words in _WORDS]
# a cheap look before the rules: none of these in the line, no event
_HINTS = (
    "overflow",
    "scale",
    "memory",
    "oom",
    "kill",
    "alloc",
    "xid",
    "ecc",
    "nvlink",
    "pcie",
    "launch",
    "access",
    "nccl",
    "timeout",
    "timed",
    "collective",
    "backend",
    "process",
    "tcpstore",
    "ibv",
    "gloo",
    "connection",
    "slurm",
    "srun",
    "cancel",
    "preempt",
    "node",
    "limit",
    "evict",
    "queu",
    "sig",
    "fault",
    "error",
    "abort",
    "terminat",
    "dump",
    "nan",
    "inf",
    "finite",
    "resum",
    "continu",
    "load",
    "restor",
    "checkpoint",
    "ckpt",
    "sav",
    "wrote",
    "written",
    "train",
    "done",
    "finish",
    "complet",
    "exit",
    "stop",
    "epochs",
    "skip",
    "worker",
    "space",
    "quota",
    "stale",
    "files",
    "spike",
    "roll",
    "recover",
    "corrupt",
    "truncat",
    "checksum",
    "lost",
    "heartbeat",
    "straggl",
    "throttl",
    "diverg",
    "converge",
    "improve",
    "mismatch",
    "key",
    "start",
    "param",
    "cmd",
    "exception",
    "fatal",
    "assert",
    "interrupt",
    "monotonic",
    "step",
    "exhausted",
    "bus",
    "uncorrectable",
    "hardware",
    "machine",
    "lr_scheduler",
    "learning",
    "walltime",
    "evaluat",
    "validat",
    "blocked",
    "responding",
    "slowdown",
    "local_rank",
    "barrier",
    "watchdog",
    "alive",
    "still",
)
_CASCADE = re.compile(
    "(?i)"
    + "|".join(
        [
            r"ChildFailedError",
            r"SignalException",
            r"broken pipe",
            r"NCCL communicator was aborted",
            r"TCPStore",
            r"heartbeat",
            r"connection (?:reset|closed) by",
            r"process group has not been destroyed",
            r"\bpeer\b",
            r"exits? with return code",
            r"terminating process",
            r"sending process \d+ closing",
            r"srun: (?:Job step aborted|Terminating)",
            r"aborting the process",
            r"taking the entire process down",
            r"previous error",
            r"failed to check the",
        ]
    )
)
_SUPPOSED = re.compile(
    "(?i)"
    + "|".join(
        [
            r"might be caused by",
            r"it is possible that",
            r"possibly due to",
            r"please (?:try|set|see)",
            r"may be due to",
            r"can be caused by",
            r"if you",
            r"consider ",
            r"deprecat",
            r"futurewarning",
            r"userwarning",
        ]
    )
)
_CHATTER = re.compile(
    "(?i)"
    + "|".join(
        [
            r"HTTP Request",
            r"downloading",
            r"tokenizer",
            r"urllib3",
            r"loading (?:dataset|data|extension)",
            r"extension module",
            r"OMP_NUM_THREADS",
            r"PG ID",
            r"warmup",
            r"building ",
            r"importing",
            r"pip ",
            r"requirement",
            r"compil",
            r"--\w+",
            r"\bdef \w+\(",
            r"dict_keys",
            r"import ",
            r"index(?:map)?",
            r"shuffle",
        ]
    )
)
_AT_STEP = re.compile(
    r"@ ?(\d+) updates|starting from iteration (\d+)"
    r"|(?:global_?step|from step|at step|at iteration|on iteration|iteration)[\s=:_]*(\d+)"
)
_IN_NAME = re.compile(
    r"(?i)(?:global_?step|steps?|iter(?:ation)?s?|updates?|checkpoint|ckpt|model|optim|epoch)"
    r"[\s=:_\-#(]*?(\d++)(?![.:]\d|%|\w{0,40}[-/]\w{0,40}\d{3})"
)
_SCALE = re.compile(
    "(?i)(?:"
    + "|".join(
        [
            r"(?:reducing|increasing)(?: dynamic)? loss scale(?: from [\d.e+]+)? to",
            r"reducing (?:it )?to",
            r"lowering (?:the )?loss scale to",
            r"loss scale (?:is )?(?:now|reduced to|to):?",
        ]
    )
    + r") ?([\d.]+(?:e[+-]?\d+)?)|Attempted loss scale: ([\d.]+(?:e[+-]?\d+)?), but"
)
_WHEN = re.compile(r"\bAT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def event_of(text: str) -> Event | None:
    """What a line reports, or None for chatter. The step is the line's own, if it names one."""
    text = text[:2000]
    low = text.lower()
    if not any(hint in low for hint in _HINTS) or low.lstrip().startswith("frame #"):
        return None
    found = next(((kind, level) for kind, level, pattern in _RULES if pattern.search(text)), None)
    if found is None:
        return None
    kind, level = found
    if level != "error" and kind not in {"overflow", "rows_dropped"} and _CHATTER.search(text[:400]):
        return None
    if level == "error" and _SUPPOSED.search(text):
        told = "warning" in low and kind in {"oom", "hardware", "nccl"}
        return Event(kind, "warning", text[:MAX_TEXT]) if told else None
    if level == "error" and _CASCADE.search(text):
        level = "warning"
    return Event(kind, level, text[:MAX_TEXT].strip(), step_in(text, kind))


def step_in(text: str, kind: str) -> int | None:
    """The step that a line names in words, or, for checkpoints and resumes, in a file's name (``step_150.pt``)."""
    if kind in {"checkpoint_saved", "resume", "overflow", "finished", "nonfinite", "warning"}:
        if (m := _AT_STEP.search(text)) is not None:
            found = next(g for g in m.groups() if g)
            return int(found) if len(found) < 16 else None
        hits = [m[1] for m in _IN_NAME.finditer(text)] if kind in {"checkpoint_saved", "resume"} else []
        return int(hits[-1]) if hits and len(hits[-1]) < 12 else None
    return None


def loss_scale(text: str) -> float | None:
    """The scale that an overflow or growth line leaves behind."""
    m = _SCALE.search(text)
    try:
        return float((m[1] or m[2]).rstrip(".")) if m else None
    except ValueError:
        return None


def when(text: str) -> str | None:
    """'... CANCELLED AT 2026-06-06T13:49:25 DUE TO TIME LIMIT' -> the time in it."""
    m = _WHEN.search(text)
    return m[1] if m else None


TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:, in (\S+))?')
# functions of evaluating, saving, loading data and waiting for others; torch's own "checkpoint" recomputes activations
_PHASE = re.compile(
    "(?i)^(?:"
    + "|".join(
        [
            r"(?>\w*?(?<![^_])(?:eval|evaluate|evaluation|validate|validation)(?![^_]))\w*",
            r"_?(?:val|valid|test|predict)(?:_(?:step|epoch|loop|model|one_epoch))?",
            r"estimate_loss",
            r"_?save",
            r"(?>\w*?(?<![^_])save_)(?>\w*?(?<=_)(?:checkpoint|ckpt|model|state|weights|pretrained|optimizer)(?![^_]))\w*",
            r"_next_data",
            r"_try_get_data",
            r"barrier",
            r"all_?reduce",
            r"all_?gather",
            r"broadcast",
        ]
    )
    + ")$"
)
_LAST = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Za-z_]\w*(?:: ?.*)?$")


class Traceback:
    """Collects one traceback; ``feed`` returns False once a line no longer belongs to it."""

    def __init__(self, where: Where, handled: bool = False) -> None:
        self.where, self.frame, self.last, self.lines = where, "", "", 0
        self.phase = ""  # the outermost frame that says what the program was doing
        self.handled = handled  # printed as a warning: the program went on

    def feed(self, text: str) -> bool:
        self.lines += 1
        if self.last or self.lines > 2000:
            return False
        if (m := _FRAME.match(text)) is not None:
            self.frame = f"{m[1]}:{m[2]}" + (f" in {m[3]}" if m[3] else "")
            if not self.phase and m[3] and _PHASE.search(m[3]):
                self.phase = self.frame
            return True
        if not text.strip() or text[:1] in " \t" or text.startswith(("[...]", "^", "~")):
            return True
        self.last = text.strip() if _LAST.match(text) else ""
        return bool(self.last)

    def event(self) -> Event:
        text = self.last or "traceback without its last line"
        inner = event_of(text) if self.last else None
        special = inner is not None and inner.kind in {"oom", "nccl", "hardware", "nonfinite", "signal"}
        kind = inner.kind if inner is not None and special and "ChildFailed" not in text else "traceback"
        level = "warning" if self.handled or _CASCADE.search(text) else "error"
        called = f", called from {self.phase}" if self.phase and self.phase != self.frame else ""
        return Event(kind, level, text[:MAX_TEXT] + (f"  [{self.frame}{called}]" if self.frame else ""))


_SURE_CODE = re.compile(
    r"^\s*+(?:"
    + "|".join(
        [
            r"def \w+\(",
            r"class \w+(?:\(.*\))?:",
            r"import [\w.]+",
            r"from [\w.]+ import ",
            r"@\w[\w.]*",
            r"return\b(?! code)",
            r"(?:el)?if .+:\s*+(?:#|$)",
            r"for \w(?>.*? in ).+:\s*+$",
            r"with .+:\s*+$",
            r"self\.\w+(?:\.\w+)* [-+*/]?= ",
            r"raise \w+\(",
            r"parser\.add_argument\(",
            r"\w+ = [A-Za-z_][\w.]*+\(.*[(,)]\s*+(?:#|$)",
        ]
    )
    + ")"
)
_CODE = re.compile(
    r"^\s*+(?:"
    + "|".join(
        [
            r"else:$",
            r"try:$",
            r"except\b.*:$",
            r"finally:$",
            r"while .+:$",
            r"assert .+",
            r"#.*",
            r"\"\"\".*",
            r"async def .*",
            r"\w[\w.\[\]\"',]*+(?: \w[\w.\[\]\"',]*+)*+ [-+*/|@%]?= [\w.]+\(.*",
            r"(?:self|torch|np|os|F|nn)\.\w.*[=(].*",
            r"[\w.]+\(.*\)$",
            r"[\w.]+: \w[\w.\[\]|]*+(?: [\w.\[\]|]++)*+ = .+",
            r"print\w*\(.*",
            r"log\w*\(f?[\"'].*",
        ]
    )
    + ")"
)


def is_code(text: str, sure: bool = False) -> bool:
    """Does the line look like Python source? Logs of modded-nanogpt and others begin with their own program."""
    return _SURE_CODE.match(text) is not None or (not sure and _CODE.match(text) is not None)
