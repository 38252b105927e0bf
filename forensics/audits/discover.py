"""Where the runs lie below a root: which files are read together, so that no run is split and none is read twice.

A place is what `parsers.runs.homes` calls a home, a run's folder without its parts (``train/``, ``checkpoint-500/``,
``wandb/run-*/files``), with the homes inside it where they are few. Files that are no logs go with the log
above them; a config above several runs goes with each. Where one folder holds many log files, each stem
(``run7.log``, ``run7.yaml``) is a place. Whether a place holds one run or several is decided by what its files say, when it is read.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from forensics import remote, services
from forensics.audits import storage, written_files
from forensics.audits.listing import NO_LOG, REFUSED, SKIPPED, UNREADABLE, Found, Known, listed
from forensics.audits.skipped import Skipped, left_out
from forensics.errors import ForensicsError
from parsers import rank_names
from parsers.lazy_regex import lazy_re
from parsers.runs.homes import ONE_RUN, home
from parsers.walk import walk

TOGETHER = 4  # homes inside a home that are read with it; more are a sweep with something in its top folder
CROWD = 12  # log files of one folder that are read together; more are one run a file
SHARED, SHARED_BYTES = 20, 1 << 20  # configs above the runs: how many, how large
OTHERS = 100  # files of a place that no parser claims, for the list of sources
_MLFLOW = lazy_re(r"^((?:.*/)?[0-9a-f]{32})/(?:metrics|params|tags|artifacts)/")
Progress = services.Progress
_SUFFIX = lazy_re(r"(?i)(\.(log|out|err|stdout|stderr|txt|csv|tsv|json|jsonl|ndjson|parquet|ya?ml|toml|gz))$")


@dataclass(frozen=True)
class Place:
    """Files that are read together. ``root`` is what the user named; the others are relative to it. Of a tracker's run ``home`` names it
    alone, ``name`` is its id, and the files are those of the cache."""

    root: str
    prefix: str  # of the ids, where there are several roots
    home: str
    name: str  # the home; where a folder holds one run a file, its log file
    files: tuple[str, ...]
    stamp: str  # changes when a file does
    refused: str = ""  # why nothing of it is read
    members: tuple[remote.Member, ...] = ()  # the same files as the store named them, so that nobody has to ask again

    @cached_property
    def key(self) -> str:
        """A file name for what is kept of the place."""
        text = "\0".join([self.prefix, self.root, self.home, *self.files])
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


@dataclass
class Survey:
    """What lies below the roots: the places, what is in none of them, and what each file of a root was found to be."""

    places: list[Place] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    kinds: dict[str, Known] = field(default_factory=dict)


def find(roots: Iterable[str], out: str, limit: int | None = None, progress: Progress | None = None) -> list[Place]:
    """Every place below the roots, in a stable order, at most `limit`; the runs of a tracker are fetched, as many as that. Raises
    ForensicsError where a root is not there."""
    return survey(roots, out, limit, progress).places


def survey(
    roots: Iterable[str], out: str, limit: int | None = None, progress: Progress | None = None, known: dict[str, Known] | None = None
) -> Survey:
    """As `find`, with what is not part of a place. ``known``: the `kinds` of an earlier survey, so that what has not changed is not opened."""
    named = list(dict.fromkeys(map(remote.local, roots)))
    found = Survey()
    for root, prefix in zip(named, _prefixes(named), strict=True):
        left = None if limit is None else limit - len(found.places)
        if services.of(root):
            found.places += _of_service(root, prefix, left, progress)
            continue
        everything = list(listed(root, (known or {}).get(root, {})))
        read = _without_audits(everything, root, out)
        found.places += (places := _below(root, prefix, read))
        taken, homes = {f for p in places for f in p.files or (p.home,)}, {p.home for p in places}
        found.skipped += left_out(root, everything, taken, homes, {f.path for f in everything} - {f.path for f in read})
        found.kinds[root] = {f.path: (f.size, f.time, f.kind) for f in everything if f.kind not in (REFUSED, UNREADABLE, SKIPPED)}
    found.places = found.places[:limit]
    return found


def _of_service(root: str, prefix: str, limit: int | None, progress: Progress | None) -> list[Place]:
    """A place for each run of a tracker, with the files that are now in the cache."""
    places = []
    for run, folder in services.runs(root, limit, progress):
        if isinstance(folder, ForensicsError):
            places.append(Place(root, prefix, run.text, run.id, (), _hash(run.stamp), folder.message))
        else:
            files = sorted(p for p in walk(folder) if isinstance(p, Path))
            stamp = _hash(repr([(p.name, p.stat().st_size, p.stat().st_mtime) for p in files]))
            places.append(Place(root, prefix, run.text, run.id, tuple(map(str, files)), stamp))
    return places


def _prefixes(roots: list[str]) -> list[str]:
    """Nothing for one root; for several the shortest ends of their paths that tell them apart."""
    if len(roots) == 1:
        return [""]
    parts = [PurePosixPath(r if remote.is_url(r) or services.of(r) else Path(r).resolve().as_posix()).parts for r in roots]
    n = next((n for n in range(1, 50) if len({p[-n:] for p in parts}) == len(roots)), 50)
    return ["__".join(x.strip("/") for x in p[-n:] if x.strip("/")) or "root" for p in parts]


def _below(root: str, prefix: str, everything: list[Found]) -> list[Place]:
    outside = [Place(root, prefix, f.path, f.path, (), "", f.why) for f in everything if f.kind == REFUSED]
    homes: dict[str, list[Found]] = defaultdict(list)
    for f in (f for f in everything if f.kind not in (REFUSED, SKIPPED)):
        match = _MLFLOW.match(f.path)
        homes[match[1] if match else home(f.path)].append(f)
    logs = {h for h, fs in homes.items() if any(f.kind not in NO_LOG for f in fs)}
    held = _held(logs)
    tops = _tops(logs, held) | _checkpoints_only(homes, logs)
    members: dict[str, list[Found]] = {h: [] for h in tops}
    shared: dict[str, list[Found]] = {}
    crowded = {h for h in tops if held[h] > TOGETHER}
    for h, fs in sorted(homes.items()):
        top = h if h in tops else next((a for a in _above(h) if a in tops and a not in crowded), None)
        if top is not None:
            members[top] += fs
        if top is None or top in crowded:
            shared[h] = [f for f in fs if f.kind == "config" and f.size <= SHARED_BYTES]
    places = []
    for top in sorted(members):
        above = [f for h in reversed(_above(top)) for f in shared.get(h, ())][-SHARED:]
        parts = _split(members[top])
        places += [_place(Place(root, prefix, top, top, (), ""), part, above, alone=len(parts) > 1) for part in parts]
    return [*places, *outside]


def _without_audits(files: list[Found], root: str, out: str) -> list[Found]:
    """Without what earlier audits and analyses wrote. A run that lies in the folder of an audit stays one."""
    state = f"{storage.STATE}/"
    ours = {f.path.rpartition("/")[0] for f in files if f.path.endswith("audit.parquet")}
    if not remote.is_url(root) and not remote.is_url(out):
        target, base = Path(out).resolve(), Path(root).resolve()
        if target.is_relative_to(base):
            ours.add("" if target == base else target.relative_to(base).as_posix())
    outputs = {f"{o}/{name}".lstrip("/") for o in ours for name in written_files.OUTPUTS}

    def is_own(path: str) -> bool:
        return path.endswith((".case.json", ".html")) or path.startswith(state) or f"/{state}" in path or path in outputs

    return [f for f in files if not is_own(f.path)]


def _above(folder: str) -> list[str]:
    """The folders above, the nearest first."""
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts) - 1, -1, -1)] if folder else []


def _held(logs: set[str]) -> Counter[str]:
    """How many homes lie below each folder, at any depth."""
    return Counter(a for h in logs for a in _above(h))


def _tops(logs: set[str], held: Counter[str]) -> set[str]:
    """Homes that are no part of one above them."""
    return {h for h in logs if not any(a in logs and held[a] <= TOGETHER for a in _above(h))}


def _checkpoints_only(homes: dict[str, list[Found]], logs: set[str]) -> set[str]:
    """Folders that hold checkpoints and no log, with no log above or below: what is left of a run."""
    above = {a for h in logs for a in _above(h)}
    bare = {h for h, fs in homes.items() if h not in logs and any(f.kind == "checkpoint" for f in fs)}
    return {h for h in bare if h not in above and not any(a in logs for a in _above(h))}


def _split(files: list[Found]) -> list[list[Found]]:
    """One part; or one for each stem, where a folder holds many log files."""
    folders = defaultdict(list)
    for f in files:
        if f.kind not in NO_LOG | ONE_RUN:
            folders[f.path.rpartition("/")[0]].append(f)
    stems = {_stem(f.path) for f in max(folders.values(), key=len, default=[])}
    if len(stems) <= CROWD:
        return [files]
    parts: dict[str, list[Found]] = defaultdict(list)
    for f in files:
        stem = _stem(f.path)
        if stem in stems or f.kind in ONE_RUN:
            parts[stem if stem in stems else ""].append(f)
    common = [f for f in files if f.kind == "config" and f.size <= SHARED_BYTES and _stem(f.path) not in stems]
    return [part + common[:SHARED] for _, part in sorted(parts.items())]


def _stem(path: str) -> str:
    while found := _SUFFIX.search(path):
        path = path[: found.start()]
    return rank_names.without(path)


def _place(at: Place, files: list[Found], above: list[Found], *, alone: bool) -> Place:
    """The place with its files; where it is one of several in a folder, it is named by its log."""
    left = {id(f) for f in [f for f in files if f.kind == "other"][OTHERS:]}
    kept = sorted({f.path: f for f in [*above, *files] if id(f) not in left}.values(), key=lambda f: f.path)
    logs = sorted(f.path for f in files if f.kind not in NO_LOG)
    name = logs[0] if alone and logs else at.name
    if logs and all(f.kind == UNREADABLE for f in files if f.kind not in NO_LOG):
        return Place(at.root, at.prefix, at.home, name, (), "", f"{logs[0]} cannot be opened")
    members = tuple(remote.Member(f.key, f.path, f.size, f.time) for f in kept if f.key)
    stamp = _hash(repr([(f.path, f.size, f.time) for f in kept]))
    return Place(at.root, at.prefix, at.home, name, tuple(f.path for f in kept), stamp, members=members)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def joined(places: list[Place]) -> Place:
    """Several places of one root as one, named as the first."""
    first = places[0]
    files = sorted({f for p in places for f in p.files})
    members = tuple({m.name: m for p in places for m in p.members}.values())
    stamp = _hash("".join(p.stamp for p in places))
    return Place(first.root, first.prefix, first.home, first.name, tuple(files), stamp, members=members)
