"""Where logs and settings say the names of users and hosts: setting names, shell prompts, schedulers, NCCL, syslog, event files.

What is found here is hidden wherever it stands, so each pattern asks for a place that holds a name and little else.
All are linear: repeats are bounded, or begin where the character before cannot be part of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.redact.plain_words import is_count, is_file, words
from parsers.lazy_regex import lazy_re

Found = tuple[str, str]  # kind ("host", "user"), name
_WORDS = lazy_re(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HOST_KEYS = words("""host hosts hostname hostnames hostfile nodename nodenames nodelist nodelists node nodes machine machines fqdn master_addr master_address
    main_process_ip head_node headnode endpoint server servers computer computername computer_name workstation o_host submit_host
    exec_host exec_vhost submit_node cluster_name node_name node_names node_list host_name domain addr address peer slurmd_nodename""")
_USER_KEYS = words("""user users username usernames user_name user_id whoami logname login owner owners author authors submitter submitted_by created_by entity account
    organization committer maintainer uname run_as loginname operator sender o_logname full_name""")
_SERIAL_KEYS = words("serial serial_number serialnumber serial_no board_serial chassis_serial service_tag asset_tag machine_id")

_HOST = r"[A-Za-z0-9](?:[\w.\-]{0,250}[A-Za-z0-9])?"
_USER = r"[^\W\d][\w.\-]{0,62}"
_NODES = r"[A-Za-z][\w.\-]{0,60}\[\d[\d,\-]{0,250}\][\w.\-]{0,60}"
# Words that are hardly ever anything but a node of a cluster: node042, nid001234, dgx-03, gpu17 (gpu0 to gpu9 are devices).
_NODE = r"(?:node|nid|cn|gn|wn|dgx|hgx|gpu|login|compute-|gpunode|cpunode)-?[a-z]{0,3}-?\d{2,}(?:[.\-][a-z0-9]+){0,6}"
_LIST = rf"(?:{_NODES}|{_HOST})(?::\d{{1,4}})?(?:,(?:{_NODES}|{_HOST})(?::\d{{1,4}})?){{0,100}}"  # gpu1:8,gpu2:8 counts slots
_AT = rf"(?<![\w.@+\-/<])(?P<user>{_USER})@(?P<host>{_HOST})"
_PLACES = tuple(
    lazy_re(pattern, re.MULTILINE)
    for pattern in (
        rf"{_AT}(?=:[~/])",  # alice@gpu17:~/x$
        rf"{_AT}(?=:[\w./\-]{{0,200}} ?[$#%>](?:\s|$))",
        rf"{_AT}(?= ?[$#%>\u276f\u279c](?:\s|$)| [~/\w.][\w./~\-]{{0,200}}\]?[ ]?[$#%>\u276f\u279c](?:\s|$))",  # [alice@login-2 proj]$
        rf"\b(?:ssh|scp|sftp|rsync|mosh|sshfs|autossh)\b[^\n|;&]{{0,160}}?[\s=]{_AT}",
        r"\b(?:ssh|mosh|ping|pdsh -w|ssh-keyscan)\s+(?:-[A-Za-z]\s+\S{1,80}\s+|-\w+\s+){0,6}(?P<host>(?=[\w.]*[\d.\-])[A-Za-z][\w.\-]{1,250})(?=\s|$)",
        rf"(?<![\w.@+\-/<])(?P<user>{_USER})@(?!(?:v|top|k|step|iter|epoch|ep|rank|sha)[-_]?\d)(?P<host>[A-Za-z][\w.\-]{{1,250}}\d)(?![\w.@])",  # by alice@gpu17
        rf"(?<![\w.\-])(?P<host>{_HOST}): ?\d{{1,9}}: ?\d{{1,9}} \[\S{{1,12}}\] [^\n]{{0,80}}?(?:NCCL|RCCL)\b",
        rf"\((?P<user>{_USER})\u327f(?P<host>{_HOST})\)",  # Kali's prompt
        rf"\bslurmstepd-(?P<host>{_HOST}): ",
        rf"\bPermanently added ['\"](?P<host>{_HOST})",
        rf"\b(?:publickey|password|session \w{{1,10}}|keyboard\S{{0,20}}) for (?:invalid )?(?:user )?(?P<user>{_USER})\b",
        rf"(?:^|[\s\[(|'\"=,:])(?P<host>{_NODE})(?![\w/\[]|\.\w{{1,12}}\()",
        r"\b(?:[Rr]unning|[Ee]xecuting|[Ll]aunch(?:ed|ing)|[Ss]tart(?:ed|ing)|[Hh]osted|[Cc]rashed|[Dd]ied|[Kk]illed|[Ff]ailed|rank \d{1,6}|job \d{1,12}) on (?P<host>(?=[a-z\-]*\d)[a-z][\w.\-]{1,80})",
        r"\b(?:[Oo]wner|[Aa]uthor|[Uu]ser|[Ss]ubmitter|[Mm]aintainer|[Cc]ontact|[Oo]perator)\s{0,8}[:=]\s{0,4}['\"]?(?P<user>[^\W\d_a-z][\w'\-]{1,30}(?: (?:[a-z]{2,4} )?[^\W\d_a-z][\w'\-]{1,30}){1,2})['\"]?[,;]?$",
        rf"(?:^|[\s\]>])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d (?P<host>{_HOST}) [\w.()/\-]{{1,40}}(?:\[\d+\])?:",
        rf"\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+\-]\d\d:?\d\d) (?P<host>{_HOST}) (?:kernel|[\w./\-]{{1,40}}\[\d+\]):",
        rf"\b(?:srun|salloc|slurmstepd|sbatch|mpirun|mpiexec|prte|pdsh|clush)(?:[:@]\S{{0,60}})? ?(?:error|info|warning)?: (?P<nodes>{_LIST}): (?:tasks?|step|task|ssh|error|rank)",
        rf"\b(?:JOB|STEP|Job|Step|job|step) [\d.+_]{{1,30}} ON (?P<nodes>{_LIST})",
        rf"\b(?:[Oo]n|[Ff]rom|[Ff]or|to|by) (?:nodes?|hosts?|hostname|machines?|servers?|workers?) (?P<nodes>{_LIST})",
        rf"(?<![\w.])(?:[Nn]odes?|[Hh]ost|[Hh]ostname|[Mm]achine|[Ss]erver) ['\"]?(?P<nodes>{_NODES}|[A-Za-z][\w.\-]{{0,60}}[\d.\-][\w.\-]{{0,60}})(?![\w/])",
        rf"(?:^|\s)(?:-w|--nodelist|--exclude|--host|--hosts|-H)[ =](?P<nodes>{_LIST})",
        rf"^\s*\d[\d_\[\]\-]{{0,30}}\s+\S{{1,60}}\s+\S{{1,60}}\s+(?P<user>{_USER})\s+(?:R|PD|CG|CD|CA|F|TO|NF|OOM|S|ST|[A-Z]{{5,12}})\s+[\d:\-]{{1,20}}\s+\d{{1,6}}\s+(?P<nodes>{_LIST}|\()",
        rf"\b(?:idle|alloc|allocated|mix|mixed|down|drain|drained|draining|resv|maint|comp)[*~#!%$@^\-]?\s+(?P<nodes>{_NODES})",
        rf"\b(?:squeue|sacct|scancel|sshare|qstat|bjobs|pkill|top|sudo|su|id|finger|loginctl|crontab)\b(?: -\S{{1,20}}){{0,3}} (?:-u|-U|--user[ =]|-|--uid[ =]) ?(?P<user>{_USER})",
        rf"\bLinux (?P<host>{_HOST}) \d{{1,2}}\.\d{{1,3}}[.\-]",
        rf"^(?P<host>{_HOST})\s{{1,8}}(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d \d{{4}}",  # gpustat
        rf"\d+ ?/ ?\d+ MB \|(?:[^\n]{{0,80}}?)\b(?P<user>{_USER})(?::\S{{1,60}})?\(\d+M\)",
        rf"^(?P<host>{_HOST}): (?=\[?20\d\d-|\[?\d\d:\d\d:)",  # pdsh, DeepSpeed
        rf"\[(?P<host>{_HOST})\]:\d{{2,5}}\b",
        r"\((?P<host>(?=[\w.\-]*[A-Za-z])[A-Za-z0-9][\w.\-]{1,250}), ?\d{3,5}\)",
        r"\bconnect(?:ed|ing|ion)? to (?:host |server )?['\"]?(?P<host>(?=[\w.]*[\d.\-])[A-Za-z][\w.\-]{1,250}?)(?=:\d|\s+port\b|['\"])",
        r"\b(?:port \d+ on|listening on|bound to|resolve(?: host| hostname)?:?|lookup|unreachable:|refused by|closed by|reset by) ['\"]?(?P<host>(?=[\w.]*[\d.\-])[A-Za-z][\w.\-]{1,250}?)(?=[:\s'\",)]|\.?$)",
        r"\[(?P<host>(?=[\w.]*\d)[A-Za-z][\w.\-]{1,250}):\d{3,8}\]",  # Open MPI
        r"(?<![\w.\-/:@])(?P<host>(?=[\w.]*[\d\-])[A-Za-z][\w.\-]{1,250}[A-Za-z0-9]):\d{4,5}(?![\w.:,])",  # host:port
        r"(?<![\w.\-/])(?P<host>(?=[\w.]*\d)[A-Za-z][\w.\-]{1,80})/\d{1,4}(?:\*\d{1,4})?(?=\+|$|\s)(?<=\*\d|\d\d)",  # PBS: gpu17/0*8
        r"['\"](?P<host>(?=[\w.]*\d)[A-Za-z][\w.\-]{1,80})['\"]: \[\d{1,4}(?:, \d{1,4}){0,64}\]",  # DeepSpeed's world
        r"tfevents\.\d{6,12}\.(?P<host>[A-Za-z0-9][\w.\-]{0,250}?)(?:\.\d{1,10}){0,3}(?:\.v2|\.profile-empty)?(?![\w\-]|\.\w)",
        rf"(?i)(?<![\w.])(?:[A-Z]:)?[\\/]{{1,2}}(?:home|homes|users|usr/home|export/home|u)[\\/]{{1,2}}(?P<user>{_USER})",
        rf"(?i)[\\/](?:scratch|work|projects?|gpfs|lustre|fsx|data|mnt|nfs|storage|efs)\d{{0,3}}[\\/](?:users?|homes?|u|people)[\\/](?P<user>{_USER})",
        rf"(?<![\w/.])~(?P<user>{_USER})(?=/)",
        r"(?i)%2F(?:home|users)%2F(?P<user>[A-Za-z_][\w.\-]{0,62})",
        rf"(?:^|\s)[\-dlbcps][\-rwxsStT]{{9}}[.+@]?\s{{1,8}}\d{{1,6}}\s{{1,8}}(?P<user>{_USER})\s{{1,20}}(?P<user2>{_USER})\s{{1,20}}\d",  # ls -l
        rf"(?i)\blogged in (?:as|to \S{{1,60}} as):? ['\"]?(?P<user>{_USER})(?: \((?P<user2>[\w.\-]{{1,60}})\))?",
        r"(?i)\b(?:author|committer|signed-off-by|co-authored-by|reviewed-by|from):? +(?P<user>[^\W\d_][\w.'\-]{0,40}(?: [^\W\d_][\w.'\-]{0,40}){0,3}) <[^>\s]{1,200}@",
        rf"(?i)\b(?:started|launched|submitted|created|owned|trained|written|run) by (?:user )?['\"]?(?P<user>{_USER})(?=['\",.;)]|\s+(?:on|at|from|@)\s|$)",
        rf"\buser(?:name)? ['\"](?P<user>{_USER})['\"]|\b[Uu]ser (?P<user2>[a-z][a-z0-9_\-]{{2,31}})\((?:uid=)?\d+\)|uid=\d+\((?P<user3>{_USER})\)",
    )
)
_NODE_LIST = lazy_re(rf"(?<![\w./\-])(?P<nodes>{_NODES})(?![\w(/\[])")
_ASSIGNED = lazy_re(
    r"(?<![\w.])(?P<key>[A-Za-z_][\w.\-]{0,60})(?P<quote>['\"]?)\]?[ \t]{0,20}(?P<sign>[:=])[ \t]{0,4}(?:[ubr](?=['\"]))?(?P<open>['\"]?)"
    r"(?P<value>(?:\[[^\]\s]{0,250}\]|[^\s'\",;)}\]]){1,255}(?:,(?:\[[^\]\s]{0,250}\]|[^\s'\",;)}\]=:])+){0,100})(?P<end>['\"]?[ \t]*(?:$|[,;)}\]|]))?",
    re.MULTILINE,
)
_LISTED = lazy_re(r"(?:[^,;\s+\[]|\[[^\[\];\s+]*+\]|\[)++")  # a comma between brackets is a part of the name
_FLAG = lazy_re(r"(?<![\w\-])--?(?P<key>[A-Za-z][\w\-]{1,60})[ \t]+(?P<value>[^\s'\"\-][^\s'\",;]{0,250})")


def kind_of(key: str) -> str:
    """What the value of a setting names: "host", "user", "serial" or nothing; by the last words of its name."""
    parts = [w.casefold() for w in _WORDS.findall(re.split(r"[./:]", key.rstrip("./:"))[-1])]
    ends = {"_".join(parts[-n:]) for n in (1, 2, 3) if len(parts) >= n}
    for kind, keys in (("host", _HOST_KEYS), ("user", _USER_KEYS), ("serial", _SERIAL_KEYS)):
        if ends & keys or "".join(parts) in keys:
            return kind
    return ""


def in_setting(kind: str, value: str) -> Iterator[Found]:
    """The names that the value of such a setting holds: one, or a list of them."""
    text = value.strip().strip("\"'")
    if kind == "user":
        text = text.partition("(")[0]  # alice(1001)
        yield kind, text.partition("@")[0] if "@" in text and " " not in text else text
        if re.fullmatch(r"[^\W\d_][\w.'\-]*(?: [^\W\d_][\w.'\-]*){1,3}", text):  # Jane van Doe
            yield from ((kind, part) for part in text.split() if len(part) > 2)
    elif kind == "host" and "://" not in text:
        for part in _split(text):
            yield from _nodes(re.sub(r"(?:/\d+)?(?:\*\d+)?(?::\d{1,5}){0,2}$", "", part.strip("'\"[]" if "[" not in part[1:] else "'\"")))
    elif kind == "serial":
        yield kind, text


def in_text(text: str) -> Iterator[Found]:
    """The names that a running text gives away, in the order of the patterns."""
    for place in _PLACES:
        for m in place.finditer(text):
            for group, name in m.groupdict().items():
                if name and group == "nodes":
                    yield from (n for n in _nodes(*_split(name)) if not is_count(n[1]))
                elif name and not (group == "host" and (is_count(name) or is_file(name))):
                    yield group.rstrip("23"), name.rstrip(".")
    for m in _NODE_LIST.finditer(text):
        if _is_node_list(m["nodes"]):
            yield from _nodes(m["nodes"])
    for m in _ASSIGNED.finditer(text):
        kind = kind_of(m["key"])
        loose = m["sign"] == ":" and not m["quote"] and m["end"] is None  # "User: hello there" is talk
        if kind and (not loose or (kind == "host" and re.search(r"[\d\-]", m["value"]))):
            yield from in_setting(kind, m["value"])
    for m in _FLAG.finditer(text):
        if kind := kind_of(m["key"]):
            yield from in_setting(kind, m["value"])


def accounts(text: str) -> Iterator[str]:
    """`alice@gpu17` as prompts and ssh have them: a user at a host, no mail address."""
    for place in _PLACES[:4]:
        for m in place.finditer(text):
            yield f"{m['user']}@{m['host']}".casefold()


def _split(names: str) -> list[str]:
    return [re.sub(r":\d{1,4}$", "", name) for name in _LISTED.findall(names)]


def _nodes(*names: str) -> Iterator[Found]:
    """Names of hosts; of a list like `node[001-128]` the list itself and each that it stands for; of a full name also the first part."""
    for name in names:
        if "[" in name:
            yield "nodes", name
            yield from (("host", n) for n in _expanded(name))
        elif name:
            yield "host", name
            first = name.partition(".")[0]
            if first != name and re.search(r"[\d\-]", first) and re.search(r"[A-Za-z]", first):
                yield "host", first


MOST = 4096  # hosts of one list: larger machines exist, but no log of one run speaks of more


def _expanded(name: str) -> Iterator[str]:
    head, _, rest = name.partition("[")
    inside, _, tail = rest.partition("]")
    room = MOST
    for part in inside.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            continue
        for n in range(int(first), min(int(last or first), int(first) + room - 1) + 1):
            room -= 1
            yield f"{head}{n:0{len(first)}}{tail}"


def _is_node_list(name: str) -> bool:
    """`gpu-a-[01,03-07]` and `node[001-128]` are lists of hosts, `x[1,2]`, `layers[0-11]` and `part-[0-9].bin` are none."""
    head, _, rest = name.partition("[")
    inside, _, tail = rest.partition("]")
    word = head.rstrip("-_.0123456789").casefold()
    padded = re.search(r"(?<!\d)0\d", inside) is not None
    if ("-" not in inside.strip("-") and "," not in inside) or is_file(tail) or is_count(f"{head}0") or is_count(f"{head.rstrip('s')}0"):
        return False
    if word in {"gpu", "gpus", "cpu", "cpus", "cuda", "core", "cores", "ranks", "layers", "experts", "tokens", "samples", "files", "part"}:
        return padded and not word.endswith("s") and word != "part"
    return padded or "-" in inside or head.endswith("-")
