"""What is hidden by its shape alone, wherever it stands: mail and IP addresses, MACs, UUIDs of GPUs, hosts of URLs, absolute paths.

Every function takes a text and `put`, which lays a pseudonym away so that no later one changes it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from forensics.redact.plain_words import words
from forensics.redact.pseudonyms import Pseudonyms
from parsers.lazy_regex import lazy_re

Put = Callable[[str], str]
KEPT_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"})
# Hosts that hold documentation only: their addresses stand in the messages of libraries, and tell nobody's name.
DOCUMENTATION = words("""pytorch.org docs.pytorch.org discuss.pytorch.org docs.nvidia.com developer.nvidia.com docs.python.org numpy.org scikit-learn.org
    www.tensorflow.org keras.io arxiv.org docs.wandb.ai lightning.ai jax.readthedocs.io www.deepspeed.ai docs.ray.io""")
_SERVICES = words("github.com gitlab.com bitbucket.org huggingface.co hf.co wandb.ai api.wandb.ai pypi.org conda.anaconda.org")

_MAIL = lazy_re(r"(?<![\w.+\-])[\w.+\-]{1,64}@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w\-])")
_MAC = lazy_re(
    r"(?i)(?<![\w:.\-])(?:[0-9a-f]{2}([:\-])(?:[0-9a-f]{2}\1){4,18}[0-9a-f]{2}|(?=[\d.]*[a-f])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})(?![\w:\-])"
)
_GUID = lazy_re(r"(?i)(guid\W{1,3})(0x[0-9a-f]{12,16})\b")  # of a network card, as ibstat has it
_GPU = lazy_re(r"(?i)(?<![\w\-])(?:MIG-)?(?:GPU|MIG|TPU|HPU)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/\d{1,3}/\d{1,3})?(?!\w)")
_SERIAL = lazy_re(
    r"(?i)\b(serial(?: ?(?:number|no\.?|#))?|s/n|service tag|asset tag|chassis id)(\s{0,30}[:=#]\s{0,4}|\s+)['\"]?((?=[\w\-]*\d)[A-Z0-9][A-Z0-9\-]{4,40})\b"
)
_IP4 = lazy_re(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?!\w|\.\d|-\d{1,3}\+)"
)  # 10.2.1.3-1+cuda12.4 is a package
_IP6 = lazy_re(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,8}(?:[0-9A-Fa-f]{0,4}|\d{1,3}(?:\.\d{1,3}){3})(?:%[\w.\-]{1,20})?(?![\w:])")
_NUMBERED = lazy_re(
    r"(?i)(?:version|torch|vision|tensorflow|jax|python|numpy|release|driver|firmware|build|revision|rev|cudnn|cublas|cuda|nccl|tensorrt|toolkit|ver\.?|\bv)['\"]?\s{0,3}[:=]?\s{0,3}['\"]?$|[=<>~!]=\s{0,2}$"
)
_URL = lazy_re(r"(?<![A-Za-z0-9])(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,20}):(?P<slashes>//+)(?P<rest>[^\s\"'<>`|\\^{}]{0,2000})")
_ARN = lazy_re(r"\barn:(aws[\w\-]{0,12}:[\w\-]{1,40}:[\w\-]{0,30}):\d{0,12}:([^\s\"'<>]{1,400})")
_ENCODED = lazy_re(r"(?i)(?:%2F(?:[\w.+~\-]|%(?!2F)[0-9A-F]{2}){1,255}){1,40}(?P<last>%2F[\w.+~\-]{0,255})")
_REMOTE = lazy_re(
    r"(?<![\w.@/\-])(?P<user>[\w.\-]{1,64})@(?P<host>[A-Za-z][\w.\-]{0,250}|(?:\d{1,3}\.){3}\d{1,3}):(?P<path>[\w~][\w.~\-]{0,100}(?:/[\w.~\-]{1,100}){0,12})"
)
_FULL_NAME = lazy_re(
    r"(?<![\w@./\-])(?:"
    r"(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}\.){1,8}(?:com|org|edu|gov|net|mil|lan|corp|localdomain|intranet)"
    r"|(?=[a-z.]*[\d\-])(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}\.){1,8}(?:local|internal|cluster|hpc|intra|private|svc|ai|io|cloud|dev)"
    r"|(?=[a-z.]*[\d\-])(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}\.){2,8}(?:de|ch|at|fr|uk|eu|jp|cn|kr|tw|au|ca|nl|se|fi|dk|pl|cz|es|sg|il|ru)"
    r"|ip(?:-\d{1,3}){4})(?![\w\-(]|\.\w)"
)
_PART = r"[^\s/\\\"'<>|:*?,;(){}`\U000f0000-\U000ffffd]"
_SPACED = rf"{_PART}{{1,255}}(?: [A-Z0-9(]{_PART}{{0,60}}\)?){{0,3}}"  # "Program Files (x86)"
_BEFORE = r"(?:(?<![\w.)\]/~>\\\-\U000f0000-\U000ffffd])|(?<=\s-[A-Za-z])|(?<=^-[A-Za-z]))"
_PATH = lazy_re(
    rf"{_BEFORE}(?:[A-Za-z]:(?=[\\/])|~{_PART}{{0,60}}(?=/)|(?=/(?!/))|(?=\\\\)|(?=//\w))[\\/]{{1,4}}(?:{_SPACED}[\\/]{{1,2}}){{0,60}}(?P<last>{_PART}{{0,255}})"
)
_WHOLE = lazy_re(r"(?:[A-Za-z]:[\\/]|~?/|\\\\)[^\n\"'<>|*?:;,]{1,4000}")


def mails(text: str, known: Pseudonyms, put: Put) -> str:
    return _MAIL.sub(lambda m: m[0] if m[0].casefold() in known.accounts or m[0].startswith("git@") else put(known.of("mail", m[0])), text)


def hardware(text: str, known: Pseudonyms, put: Put) -> str:
    """UUIDs of GPUs, MACs and longer addresses of network cards, serial numbers; a PCI bus id says nothing of whose it is."""
    text = _GPU.sub(lambda m: put(known.of("gpu", m[0])), text)
    text = _GUID.sub(lambda m: m[1] + put(known.of("mac", m[2])), text)
    text = _MAC.sub(lambda m: put(known.of("mac", m[0])), text)
    return _SERIAL.sub(lambda m: m[1] + m[2] + put(known.of("serial", m[3])), text)


def addresses(text: str, known: Pseudonyms, put: Put) -> str:
    """IP addresses; not times, versions of four parts, `std::vector`, masks and those that every machine has."""
    if text.count(":") > 1:
        text = _IP6.sub(lambda m: put(known.of("ip", m[0])) if _is_ip6(m[0]) else m[0], text)
    return _IP4.sub(lambda m: put(known.of("ip", m[0])) if _is_ip4(m[0], text[max(0, m.start() - 24) : m.start()]) else m[0], text)


def _is_ip4(found: str, before: str) -> bool:
    if found in KEPT_HOSTS or found.startswith(("127.", "255.")) or _NUMBERED.search(before):
        return False
    return not re.search(r"[A-Za-z0-9]-$", before) or ipaddress.ip_address(found).is_private  # cudnn-8.9.7.29 is a package


def _is_ip6(found: str) -> bool:
    try:
        address = ipaddress.IPv6Address(found)
    except ValueError:
        return False
    if address.ipv4_mapped is not None:
        return not address.ipv4_mapped.is_loopback
    few = re.fullmatch(r"\d+::\d*", found) is not None  # a slice of an array
    groups = int(address) >> 112  # of the ranges that are given out: global, unique local, link local, multicast
    return not few and (0x2000 <= groups <= 0x3FFF or 0xFC00 <= groups <= 0xFDFF or 0xFE80 <= groups <= 0xFEBF or groups >= 0xFF00)


def urls(text: str, known: Pseudonyms, put: Put) -> str:
    """The host or bucket and the user of a URL; of its path the last part stays, of what is asked nothing."""

    def hidden(m: re.Match[str]) -> str:
        rest = m["rest"]
        body = rest.rstrip(").,;:]!?'")
        tail = rest[len(body) :]
        if m["scheme"].casefold() == "file":
            last = body.rstrip("/").rpartition("/")[2]
            return put("<path>") + (f"/{last}" if last else "") + tail
        authority, slash, path = body.partition("/")
        if len(m["slashes"]) > 2:  # sqlite:////home/x.db
            authority, path, slash = "", f"{authority}{slash}{path}", "/"
        user, at, host = authority.rpartition("@")
        if host.casefold() in DOCUMENTATION and not at:
            return put(m[0])
        name, _, port = host.partition("]") if host.startswith("[") else host.partition(":")
        told = _host(name.strip("["), known, put) + (f":{port.lstrip(':')}" if port else "") if name else ""
        login = ""
        if at:
            login = _login(user, known, put) + "@"
        parts = [p for p in re.split(r"[?#]", path, maxsplit=1)[0].split("/") if p]
        model = len(parts) == 1 and name.casefold() in ("huggingface.co", "hf.co")  # one of no account: gpt2
        told_nothing = (name.casefold() in _SERVICES and not model) or (
            parts and parts[-1].endswith(".git")
        )  # an account and its repository
        last = "" if told_nothing or not parts else f"/{parts[-1]}"
        where = f"/{put('<path>')}" if len(parts) > 1 or (parts and (told_nothing or not name)) else ""
        where += last or ("" if where else slash)
        return f"{m['scheme']}://{login}{told}{where}{tail}"

    return _URL.sub(hidden, text)


def encoded(text: str, put: Put) -> str:
    """Places that are written as one word: names of cloud resources, and paths in a query."""
    text = _ARN.sub(lambda m: f"arn:{m[1]}::{put('<path>')}", text) if "arn:" in text else text
    return _ENCODED.sub(lambda m: put("<path>") + m["last"], text) if "%2" in text else text


def _host(name: str, known: Pseudonyms, put: Put) -> str:
    if name.casefold() in KEPT_HOSTS | _SERVICES:
        return put(name)
    return put(known.of("ip" if re.fullmatch(r"[\d.]+|[\da-fA-F:.%]*:[\da-fA-F:.%\w]*", name) else "host", name))


def _login(user: str, known: Pseudonyms, put: Put) -> str:
    name, colon, _ = user.partition(":")
    return (put(known.of("user", name)) if name and name not in ("git", "root") else name) + (":***" if colon else "")


def url_names(text: str) -> list[tuple[str, str]]:
    """(kind, name) of hosts and accounts in URLs and git remotes, to hide them where they stand alone, too."""
    found = []
    for m in _URL.finditer(text):
        user, _, host = m["rest"].partition("/")[0].rpartition("@")
        host = host.partition(":")[0]
        parts = m["rest"].split("/")[1:]
        if m["scheme"].casefold() != "file" and len(m["slashes"]) == 2 and host.casefold() not in DOCUMENTATION | _SERVICES:
            found.append(("host", host))
        found += [("user", user.partition(":")[0])] if user else []
        found += [("user", parts[0])] if host.casefold() in _SERVICES and len(parts) > 1 and parts[0] else []
    for m in _REMOTE.finditer(text):
        if "/" in m["path"]:
            found += [] if m["host"].casefold() in _SERVICES else [("host", m["host"])]
            found += [("user", m["user"])] + ([("user", m["path"].partition("/")[0])] if m["user"] == "git" else [])
    return found


def remotes(text: str, known: Pseudonyms, put: Put) -> str:
    """git@host:org/repo, and user@host:path of scp."""

    def hidden(m: re.Match[str]) -> str:
        if "/" not in m["path"] and "." not in m["path"]:
            return m[0]
        user = m["user"] if m["user"] in ("git", "root") else put(known.of("user", m["user"]))
        last = "" if m["user"] == "git" else "/" + m["path"].rpartition("/")[2]
        return f"{user}@{_host(m['host'], known, put)}:{put('<path>')}{last}"

    return _REMOTE.sub(hidden, text)


def full_names(text: str, known: Pseudonyms, put: Put) -> str:
    """Names with a domain, such as gpu17.hpc.example.edu; not of the services and documentation that everybody uses."""
    if "." not in text and "ip-" not in text:
        return text
    return _FULL_NAME.sub(lambda m: m[0] if m[0].casefold() in DOCUMENTATION | _SERVICES else put(known.of("host", m[0])), text)


def paths(text: str, put: Put) -> str:
    """Absolute paths of POSIX, Windows and UNC, and those below a home: the last part stays. Relative ones tell no place."""

    def hidden(m: re.Match[str]) -> str:
        inside = m[0][: len(m[0]) - len(m["last"])]
        if len(re.findall(r"[^\\/]+", inside)) == 0 and not inside.startswith("\\\\"):
            return m[0]  # "/data" is its own last part
        return put("<path>") + (f"/{m['last']}" if m["last"] else "")

    if _WHOLE.fullmatch(text) and " " in text and not re.search(r" [-/~]|[^\\/ ] ?= ?", text):  # one path, spaces and all
        last = re.split(r"[\\/]+", text.rstrip("\\/"))[-1]
        return put("<path>") + f"/{last}" if re.search(r"[\\/][^\\/]+[\\/]", text.rstrip("\\/")) else text
    return _PATH.sub(hidden, text)
