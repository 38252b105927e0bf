"""Which of the names that a pickle reaches for would run, fetch, load or write something, if a loader followed it.

A name is one of three: known data (parsers.checkpoints.allowed lists them), dangerous (accused), or unknown (listed, neither
built nor accused: a class of the user's own project). Of the standard library every function is dangerous unless its module
only computes; a class is where its module runs or fetches things. Python 2's names are looked at under their names of today.
The lists are those of fickling, picklescan and modelscan, and what was found to pass them.
"""

from __future__ import annotations

import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from functools import lru_cache

from parsers.lazy_regex import lazy_re

_RUNNING = {  # modules of the standard library in which a class is as dangerous as a function
    "os", "posix", "nt", "subprocess", "sys", "runpy", "importlib", "imp", "pickle", "_pickle", "socket", "_socket", "shutil", "ctypes", "_ctypes",
    "code", "codeop", "pty", "webbrowser", "urllib", "http", "asyncio", "multiprocessing", "concurrent", "threading", "_thread", "operator", "_operator",
    "bdb", "pdb", "cmd", "timeit", "cProfile", "profile", "_lsprof", "pydoc", "smtplib", "ftplib", "telnetlib", "xmlrpc", "marshal", "inspect", "tempfile",
    "distutils", "ensurepip", "venv", "lib2to3", "idlelib", "doctest", "posixpath", "ntpath", "pkgutil", "zipimport", "linecache", "trace", "test", "unittest",
    "_osx_support", "_aix_support", "_pyrepl", "io", "_io", "fileinput", "gc", "weakref", "site", "imaplib", "poplib", "nntplib", "socketserver", "wsgiref",
    "shelve", "dbm", "sqlite3", "zipfile", "tarfile", "mmap", "tkinter", "_posixsubprocess", "_frozen_importlib", "_frozen_importlib_external", "ssl",
    "selectors", "cgitb", "atexit", "tracemalloc", "faulthandler", "modulefinder", "pyclbr", "rlcompleter",
}  # fmt: skip
_COMPUTING = {  # modules of it whose functions only compute: what ordinary objects are pickled through
    "collections", "_collections", "datetime", "zoneinfo", "decimal", "_decimal", "fractions", "numbers", "random", "_random", "itertools", "array", "re", "_sre",
    "math", "cmath", "statistics", "enum", "uuid", "typing", "string", "time", "abc", "copy", "heapq", "bisect", "dataclasses", "ipaddress", "struct", "hashlib",
    "copyreg", "pathlib", "argparse", "types", "functools", "_functools", "textwrap", "warnings", "calendar", "colorsys", "difflib", "binascii", "base64", "_codecs",
}  # fmt: skip
_IN_COMPUTING = {  # in modules that otherwise only compute
    "functools.reduce", "_functools.reduce", "types.FunctionType", "types.LambdaType", "types.CodeType", "types.MethodType", "types.ModuleType", "types.new_class",
    "types.DynamicClassAttribute", "types.coroutine", "types.CellType", "copyreg.add_extension", "copyreg.constructor", "copyreg.pickle", "dataclasses.make_dataclass",
}  # fmt: skip
_BUILTINS = {  # of builtins, what is not dangerous: types, exceptions, arithmetic
    "int", "float", "str", "bool", "bytes", "bytearray", "complex", "list", "tuple", "dict", "set", "frozenset", "object", "slice", "range", "property", "super",
    "staticmethod", "classmethod", "abs", "len", "max", "min", "sum", "round", "sorted", "reversed", "enumerate", "zip", "iter", "next", "id", "hash", "repr", "ascii",
    "chr", "ord", "hex", "oct", "bin", "pow", "divmod", "any", "all", "isinstance", "issubclass", "callable", "print", "format", "NoneType", "NotImplemented", "Ellipsis",
    "ellipsis", "NotImplementedType", "mappingproxy", "type", "basestring", "generator", "memoryview",
}  # fmt: skip
_OTHERS = {  # of other packages: loaders of pickles, shells, clients
    "cPickle", "dill", "cloudpickle", "joblib", "urllib2", "urllib3", "requests", "httplib", "httpx", "aiohttp", "pip", "setuptools", "pkg_resources", "commands",
    "popen2", "yaml", "jinja2", "mako", "cffi", "IPython", "ipykernel", "fabric", "paramiko", "pexpect", "ptyprocess", "sh", "plumbum", "psutil", "execnet", "fsspec",
    "huggingface_hub", "boto3", "botocore", "git", "docker", "win32com", "pytest", "_pytest", "nose", "py", "invoke", "sympy", "numexpr", "jsonpickle",
    "__builtins__", "antigravity", "multiprocess", "pathos", "keras", "tensorflow",
}  # fmt: skip
_WRAPPERS = lazy_re(
    r"(joblib|sklearn\.externals\.joblib)\.numpy_pickle\.(NumpyArrayWrapper|NDArrayWrapper|ZNDArrayWrapper)|keras\.(src\.)?\w+\.(\w*+\.)*+[^\WA-Z]*+[A-Z]\w*+"
)
_WITHIN = lazy_re(  # parts of the usual libraries that run, build, load or fetch
    r"(^|[._])(subproc\w*|subprocess\w*|rpc|launch\w*|elastic|hub|jit|_inductor|_dynamo|dynamo|f2py|distutils|ctypeslib|cpp_extension|codecache|collect_env|"
    r"bottleneck|_config_module|package|multiprocessing|import_utils|testing|fx|datapipes|_pytree|read_pickle|gfile)(\.|$)"
    r"|^(torch|numpy|pandas|scipy)\.([\w.]*\.)?(load\w*|save\w*|fromfile|memmap|DataSource|open\w*|eval|exec\w*|query|read_\w+|to_\w+|run\w*|compile\w*)$"
    r"|^torch\.(ops|classes|compat|_C\._jit)\w*\.|^numpy\.(lib|compat)\."
)
_ANYWHERE = {"os", "posix", "subprocess", "sys", "builtins", "importlib", "runpy", "ctypes", "eval", "exec", "execfile", "__import__", "popen", "system", "Popen",
             "__reduce__", "__globals__", "__builtins__", "__subclasses__", "__class__", "__code__", "__getattribute__", "__mro__", "__dict__"}  # fmt: skip


@lru_cache(4096)
def modern(module: str, name: str) -> str:
    """The dotted name as Python 3 and numpy 2 have it: protocol 2 and older write ``int`` as ``__builtin__ long``."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    return f"{module}.{name}".replace("numpy.core.", "numpy._core.", 1)


def dangerous(name: str) -> bool:
    """Of a dotted name that is not known data."""
    module, _, last = name.rpartition(".")
    name = modern(module, last)
    parts = name.split(".")
    top, last = parts[0], parts[-1].lstrip("_")
    if _ANYWHERE & set(parts[1:]) or name in _IN_COMPUTING:
        return True
    if top == "builtins":
        harmless = last in _BUILTINS or last.endswith(("Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration"))
        return not (len(parts) == 2 and harmless)
    if top in sys.stdlib_module_names or top in _RUNNING:
        return _of_standard_library(top, parts)
    if top in _OTHERS:
        return _WRAPPERS.fullmatch(name) is None
    return _WITHIN.search(name) is not None


def _of_standard_library(top: str, parts: list[str]) -> bool:
    last = parts[-1]
    if top in ("operator", "_operator"):
        return last not in ("itemgetter", "add", "mul", "sub", "truediv", "neg", "eq", "lt", "gt")
    if last == "getLogger" or (top == "functools" and last == "partial"):  # how a logger is pickled; its function is a name of its own
        return False
    if top in _COMPUTING:
        return (len(parts) > 2 and last[:1].islower() and top == "pathlib") or last.startswith("_get_command")
    if (top, last) in (("io", "BytesIO"), ("_io", "BytesIO"), ("io", "StringIO"), ("_io", "StringIO")):
        return False
    return top in _RUNNING or not last.lstrip("_")[:1].isupper()
