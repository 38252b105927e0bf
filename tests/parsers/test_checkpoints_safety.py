"""Hostile checkpoints are read or refused with a sentence, run nothing, and cost little."""

from __future__ import annotations

import base64
import collections
import datetime
import functools
import io
import os
import pickle
import resource
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from forensics.checkpoints import describe as checkpoints
from forensics.checkpoints import sick_document
from forensics.errors import ForensicsError
from parsers.checkpoints import danger

sys.path.insert(0, str(Path(__file__).parents[1]))
import hostile_pickles as hostile

NAMES = ["os.system", "posix.system", "builtins.eval", "runpy._run_code"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    folder = tmp_path_factory.mktemp("hostile")
    canary = tmp_path_factory.mktemp("canary") / "canary"
    return hostile.corpus(folder, canary), canary


ARMED = ["os_system", "posix_system", "eval", "exec", "subprocess", "cprofile", "stack_global", "stack_tuple", "memo_global", "nested", "inst", "obj",
         "protocol_0", "broken_after", "three_calls", "object_array", "ordered_dict_of_call", "build_slots"]  # fmt: skip


@pytest.mark.parametrize("name", ARMED)
def test_the_canary_works(tmp_path: Path, name: str) -> None:
    """The payloads would run: Python's own loader, in a process of its own, makes the file (and may stumble afterwards)."""
    canary = tmp_path / "canary"
    (tmp_path / "a.pkl").write_bytes(hostile.pickles(canary)[name])
    code = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.pkl")], capture_output=True, cwd=tmp_path, timeout=60)
    assert canary.exists()


def test_attacks_as_python_itself_writes_them(tmp_path: Path) -> None:
    """Classes with a hostile __reduce__ in every protocol, alone, in torch.save's zip, and in joblib's files."""
    canary = tmp_path / "canary"

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {canary}",)

    class Later:
        def __reduce__(self) -> tuple[object, ...]:
            return dict, (), {"x": 1}, None, None, exec  # the sixth is called with the object and its state

    for protocol in range(6):
        for i, value in enumerate([Evil(), {"model": [Evil()]}, Later()]):
            raw = pickle.dumps(value, protocol)
            for name, content in (("a.pkl", raw), ("a.pt", hostile.torch_zip(raw))):
                path = tmp_path / f"{protocol}{i}{name}"
                path.write_bytes(content)
                document = sick_document.report(path)
                assert document["findings"][0]["id"] == "foreign_code", path.name
    if joblib := pytest.importorskip("joblib"):
        import numpy as np

        joblib.dump({"w": np.arange(4.0), "evil": np.array([Evil()], dtype=object)}, tmp_path / "model.joblib")
        try:
            assert sick_document.report(tmp_path / "model.joblib")["findings"]
        except ForensicsError as e:
            assert "cannot be read" in e.message
    assert not canary.exists()


def test_every_hostile_file_is_read_or_refused_and_runs_nothing(corpus: tuple[list[Path], Path]) -> None:
    files, canary = corpus
    assert len(files) > 600
    before, outside = set(os.listdir(files[0].parent)), set(os.listdir(files[0].parents[1]))
    for path in files:
        began = time.monotonic()
        try:
            document = sick_document.report(path)
        except ForensicsError as e:
            assert len(e.message) > len(str(path)) + 10, path.name
        else:
            assert document["tensors"] or document["findings"] or document["refused"] or document["gaps"] or document["complete"], path.name
        assert time.monotonic() - began < 60, f"{path.name} does not end"
    assert not canary.exists()
    assert set(os.listdir(files[0].parent)) == before, "a file was written"
    assert set(os.listdir(files[0].parents[1])) == outside, "a file was written outside"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4_000_000, "kilobytes"


@pytest.mark.parametrize(("name", "what"), [
    ("os_system.pkl", "os.system"), ("stack_global.zip.pt", "os.system"), ("memo_global.old.pt", "os.system"), ("eval.zip.pt", "builtins.eval"),
    ("inst.pkl", "os.system"), ("newobj.pkl", "os.system"), ("embedded.pkl", "os.system"), ("dotted.zip.pt", "transformers.os.system"),
    ("from_type.pkl", "os.system"), ("jit.pt", "TorchScript code (1 files)"), ("getattr.pkl", "builtins.getattr"), ("py2_eval.pkl", "__builtin__.eval"),
    ("extension4.pkl", "extension code 2130706433"), ("add_extension.pkl", "extension code 1"), ("object_array.pkl", "os.system"), ("build_slots.pkl", "os.system"),
    ("persistent_called.pkl", "os.system"), ("joblib_arrays.joblib", "joblib.numpy_pickle.NumpyArrayWrapper"), ("broken_after.zip.pt", "os.system"), ("code_object.pkl", "types.CodeType"),
])  # fmt: skip
def test_what_was_refused_is_named_with_its_place(corpus: tuple[list[Path], Path], name: str, what: str) -> None:
    path = next(p for p in corpus[0] if p.name == name)
    document = sick_document.report(path)
    assert what in [r["what"] for r in document["refused"]]
    assert all(r["at"].startswith("byte ") for r in document["refused"])
    assert (document["findings"][0]["id"], document["findings"][0]["severity"]) == ("foreign_code", "critical")


def test_the_place_is_that_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(hostile.torch_zip(hostile.PROTO + hostile.call("posix", "system", "true") + b"."))
    (refused,) = sick_document.report(path)["refused"]
    at = int(refused["at"].removeprefix("byte "))
    assert path.read_bytes()[at:].startswith(b"cposix\nsystem\n")


def test_members_of_enumerations_as_early_python_311_writes_them(tmp_path: Path) -> None:
    """``getattr(Class, "MEMBER")`` of a usual library is a name; any other getattr is refused, and so is a call of what it gave."""

    def refused(*calls: bytes) -> list[str]:
        path = tmp_path / "a.pkl"
        path.write_bytes(hostile.PROTO + b"(" + b"".join(calls) + b"l.")
        return [x["what"] for x in sick_document.report(path)["refused"]]

    def getattr_of(owner: str, member: str) -> bytes:
        module, _, name = owner.rpartition(".")
        return b"c__builtin__\ngetattr\n(" + f"c{module}\n{name}\n".encode() + hostile.text(member) + b"tR"

    sound = getattr_of("transformers.trainer_utils.IntervalStrategy", "STEPS")
    assert refused(sound, sound) == []
    assert "os.system" in refused(sound, getattr_of("os.system", "STEPS"))
    for bad in (getattr_of("transformers.Trainer", "from_pretrained"), getattr_of("transformers.Trainer", "__init__")):
        assert refused(sound, bad) == refused(bad, sound) == ["__builtin__.getattr"]
    assert refused(b"c__builtin__\ngetattr\n") == ["__builtin__.getattr"]
    called = sound + b"(" + hostile.text("x") + b"tR"
    assert refused(called) == ["a call of transformers.trainer_utils.IntervalStrategy.STEPS"]


def test_tensors_beside_hostile_names_are_still_read(tmp_path: Path) -> None:
    """Reading goes on around what is refused."""
    bad = hostile.call("os", "system", "true")
    good = hostile.tensor_pickle((2,), (1,), 2)[:-2]
    path = tmp_path / "model.pt"
    content = good + b"s" + hostile.text("evil") + bad + b"s."
    path.write_bytes(hostile.torch_zip(content, members={"archive/data/0": b"\x00\x00\x80\x3f" * 2}))
    document = sick_document.report(path)
    assert [(t["name"], t["norm"]) for t in document["tensors"]] == [("w", pytest.approx(2**0.5))]
    assert document["refused"][0]["what"] == "os.system"


def test_names_cannot_steer_the_terminal(corpus: tuple[list[Path], Path]) -> None:
    from reports import checkpoint_text as page

    path = next(p for p in corpus[0] if p.name == "escape.zip.pt")
    assert "\x1b" not in page.render(sick_document.report(path))


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ForensicsError):
        sick_document.report(tmp_path / "model.safetensors")


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    (tmp_path / "secret.pt").write_bytes(hostile.torch_zip(hostile.tensor_pickle((1,), (1,), 1), members={"archive/data/0": b"abcd"}))
    (folder / "model.pt").symlink_to(tmp_path / "secret.pt")
    with pytest.raises(ForensicsError):
        sick_document.report(folder)


def _wrapped(kind: str, raw: bytes) -> object:
    """A pickle as other pickles may carry it."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("deep.bin", raw)
    return {"bytes": raw, "pickle": pickle.dumps([raw]), "base64": base64.b64encode(raw), "base64 text": base64.b64encode(raw).decode(),
            "latin-1": raw.decode("latin-1"), "zip": zipped.getvalue(), "zip in zip": hostile.torch_zip(zipped.getvalue())}[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["bytes", "pickle", "base64", "base64 text", "latin-1", "zip", "zip in zip"])
@pytest.mark.parametrize("inner", [0, 2, 4])
@pytest.mark.parametrize("outer", [0, 2, 5])
def test_names_are_listed_however_deep_they_lie(tmp_path: Path, kind: str, inner: int, outer: int) -> None:
    code = b"cposix\nsystem\n(S'true'\ntR." if inner == 0 else bytes((0x80, inner)) + hostile.call("posix", "system", "true") + b"."
    (tmp_path / "a.pt").write_bytes(pickle.dumps({"lr": 0.1, "extra": _wrapped(kind, code)}, outer))
    document = sick_document.report(tmp_path / "a.pt")
    assert [r["what"] for r in document["refused"]] == ["posix.system"]
    assert document["findings"][0]["id"] == "foreign_code" and not document["gaps"]


def test_names_in_arrays_of_objects_are_listed(tmp_path: Path) -> None:
    import numpy as np

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, ("true",)

    np.savez_compressed(tmp_path / "model.npz", w=np.ones(3), evil=np.array([Evil()], dtype=object))
    document = sick_document.report(tmp_path / "model.npz")
    assert f"{os.name}.system".replace("nt", "posix") in [r["what"] for r in document["refused"]]
    assert document["findings"][0]["severity"] == "critical" and document["tensors"][0]["norm"] == pytest.approx(3**0.5)


def test_a_name_that_a_pickle_works_out_is_refused_and_reading_goes_on(tmp_path: Path) -> None:
    """``"".join(["sys", "tem"])`` as the second half of a global: the call is not made, so the name is not known."""
    joined = (
        b"c__builtin__\ngetattr\n("
        + hostile.text("")
        + hostile.text("join")
        + b"tR]("
        + hostile.text("sys")
        + hostile.text("tem")
        + b"e\x85R"
    )
    raw = (
        hostile.PROTO
        + b"}"
        + hostile.text("a")
        + hostile.text("os")
        + joined
        + b"\x93s"
        + hostile.text("lr")
        + b"G?\xf0\x00\x00\x00\x00\x00\x00s."
    )
    (tmp_path / "a.pkl").write_bytes(raw)
    found = checkpoints.read(tmp_path / "a.pkl").contents
    assert "a name that the pickle works out" in [r["what"] for r in found.refused] and found.values["lr"] == 1.0


def test_ordinary_names_of_python_are_not_accused() -> None:
    """As protocol 2 writes them for Python 2, and classes of anyone's project; what runs is, under any of its names."""
    plain = "__builtin__.long copy_reg._reconstructor datetime.datetime re._compile itertools.count random.Random logging.getLogger exceptions.ValueError \
        __main__.Net joblib.numpy_pickle.NumpyArrayWrapper jax._src.array._reconstruct_array sklearn.linear_model._base.LinearRegression functools.partial"
    bad = (
        "__builtin__.file commands.getoutput urllib2.urlopen pathlib.Path.unlink zipfile.ZipFile getpass.getpass types.FunctionType concurrent.futures.ThreadPoolExecutor \
        torch._inductor.compile_worker.subproc_pool.SubprocPool pandas.read_pickle mypackage.os.system mypackage.Popen numpy.fromfile"
    )
    assert [n for n in plain.split() if danger.dangerous(n)] == []
    assert [n for n in bad.split() if not danger.dangerous(n)] == []


def test_defaultdicts_of_every_protocol_are_known_data(tmp_path: Path) -> None:
    value = {"count": collections.defaultdict(int, a=1), "float": collections.defaultdict(float), "list": collections.defaultdict(list, b=[1]),
             "when": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "path": Path("/a"), "step": functools.partial(int, base=2), "n": 5}  # fmt: skip
    for protocol in range(6):
        (tmp_path / "a.pkl").write_bytes(pickle.dumps(value, protocol))
        found = sick_document.report(tmp_path / "a.pkl")
        assert not found["refused"] and not found["findings"] and not found["gaps"], protocol
