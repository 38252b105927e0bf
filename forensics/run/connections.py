"""Connections that failed: ranks that never met at the start, and a network that broke later, from the words of torch, NCCL and the system."""

from __future__ import annotations

import re

from forensics.run import endings
from forensics.run.kinds import Kind
from forensics.run.once import once
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_JOINED = lazy_re(r"(?<!\d)(\d{1,9})/(\d{1,9}) clients joined")
_TAKEN = lazy_re(r"EADDRINUSE|Address already in use|failed to bind", re.I)
_NAMELESS = lazy_re(r"Name or service not known|could not (?:be )?resolve|gaierror|nodename nor servname", re.I)
_MEETING = lazy_re(
    r"DistStoreError|Rendezvous\w{0,40}(?:Error|Timeout)|(?:client|server) socket has (?:timed out|failed)|TCPStore|c10d store|init_process_group"
    r"|ncclUniqueId|bootstrap|MASTER_(?:ADDR|PORT)",
    re.I,
)
_BROKE = lazy_re(
    r"NET/(?:IB|Socket|OFI)|ibv_\w+|vendor err|ncclRemoteError|network error|Connection (?:reset|refused|closed) by|No route to host|EHOSTUNREACH"
    r"|Broken pipe|NCCL WARN .{0,80}?\b(?:socket|connect)",
    re.I,
)
_LOOK = "Try the same two nodes with an all-reduce of a few bytes (torch-distributed-gpu-test), and NCCL_DEBUG=INFO: it names interface and peer."


@once
def meeting(run: Run) -> Kind | None:
    """Why the ranks never met, where a line of a rendezvous says it."""
    for e in endings.events(run, "nccl", "traceback", "warning"):
        text, where = str(e["text"]), run.where(e["source"], e["at"])
        if e["level"] != "error" or not (_MEETING.search(text) or _JOINED.search(text)):
            continue
        do: tuple[str, ...] = (
            "Check that every rank has the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and can reach that port.",
            _LOOK,
        )
        if (m := _JOINED.search(text)) is not None:
            why = f"{where} says that {m[1]} of {m[2]} ranks came."
            do = ("Find the rank that did not come: its log is empty, or ends before the others begin.", *do)
            return Kind("rendezvous", f"{int(m[2]) - int(m[1])} of {m[2]} ranks never came to the start", why, do)
        if _TAKEN.search(text):
            do = ("End the earlier job that still holds the port, or choose another MASTER_PORT.", *do)
            return Kind("rendezvous", "the port of the start is taken", f"{where} says that the port is in use.", do)
        if _NAMELESS.search(text):
            do = ("Check the host name in MASTER_ADDR.", *do)
            return Kind("rendezvous", "the host of the start has no address", f"{where} says that the name is not known.", do)
        return Kind("rendezvous", "the ranks never met", f"{where} speaks of the rendezvous at the start.", do)
    return None


@once
def broke(run: Run) -> Kind | None:
    """A network that broke, where NCCL or the system names it: not the echo of a rank that died, which the callers ask for first."""
    for e in endings.events(run, "nccl", "traceback", "warning"):
        if _BROKE.search(str(e["text"])) and not _MEETING.search(str(e["text"])):
            why = f"{run.where(e['source'], e['at'])} speaks of the network."
            do = (
                "Look at the link of the host that the line names (ibstat, ethtool -S, dmesg), and at what the other jobs on it say.",
                _LOOK,
                "Pin the interface (NCCL_SOCKET_IFNAME, NCCL_IB_HCA), and raise NCCL_IB_TIMEOUT where links flap.",
            )
            return Kind("network", "the network between ranks broke", why, do)
    return None
