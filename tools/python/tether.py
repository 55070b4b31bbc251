#!/usr/bin/env python3
"""tether from Python: ctypes on libtether.so, numpy, nothing to compile.

SPDX-License-Identifier: Apache-2.0

    import tether
    tether.version()                         # '0.2.0 ... f32'
    y = tether.silu(x)                       # golden values of an operator
    print(tether.judge("silu", mine, x))     # is `mine` right; if not, why?
    print(tether.check({"silu": my_silu}))   # on all kinds of inputs
    with tether.Run(model="ref_data/demo", prompt="a red circle moves left",
                    latents=9, no_decode=True) as run:
        for x0 in run: ...                   # [frames, C, h, w], chunk by chunk
    dump = tether.load("theirs.safetensors") # name -> array
    print(tether.validate("theirs.safetensors", ["-m", "ref_data/demo", ...]))

What is right, and how far from it a result may be, is known to the library
alone: this file moves arrays. TETHER_LIB and TETHER name the library and the
program where they are not beside this file, on PATH or in build/.

An operator that came out wrong, a file that cannot be read, a setting that is
no setting: all raise tether.Error with the library's sentence."""
import contextlib
import ctypes as C
import ctypes.util
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np

I64, F64, INT, STR, PTR = C.c_int64, C.c_double, C.c_int, C.c_char_p, C.c_void_p
HERE = pathlib.Path(__file__).resolve().parent


class Error(Exception):
    """The library's or the program's sentence."""


def _bytes(text):
    """Text for C, where a zero would end it."""
    data = text if isinstance(text, bytes) else text.encode() \
        if isinstance(text, str) else os.fsencode(text)
    if b"\0" in data:
        raise Error(f"{text!r} holds a zero character (NUL), which no text or "
                    "file name may hold")
    return data


def _path(path):
    """A file name for C."""
    return _bytes(os.fsencode(path))


# ---- the structures of include/tether ------------------------------------------
# Sizes are compared with those in the library (tt_abi) when it is loaded.

MAX_RANK = 8


class Tensor(C.Structure):
    _fields_ = [("data", PTR), ("dtype", INT), ("rank", INT),
                ("dim", I64 * MAX_RANK), ("stride", I64 * MAX_RANK),
                ("scale", C.c_float), ("native", C.c_bool),
                ("row_scale", PTR), ("row", I64)]


class Abi(C.Structure):
    _fields_ = [(n, C.c_int32) for n in
                ("version", "real", "table", "context", "tensor", "args")]


class Arena(C.Structure):
    _fields_ = [("top", PTR)] + [
        (n, C.c_size_t) for n in ("used", "total", "peak")] + [
        ("spare", PTR), ("spare_bytes", C.c_size_t),
        ("fail_after", C.c_size_t), ("device", PTR), ("values", PTR),
        ("folder", C.c_char_p)]


class ProfileRow(C.Structure):
    _fields_ = [("name", STR), ("seconds", F64), ("flops", F64),
                ("calls", I64)]


TAP = C.CFUNCTYPE(None, PTR, STR, INT, INT, C.POINTER(I64), PTR)
WARN = C.CFUNCTYPE(None, PTR, STR)


class Ctx(C.Structure):
    _fields_ = [("status", INT), ("message", C.c_char * 1024), ("ops", PTR),
                ("device", PTR), ("team", PTR), ("nthreads", INT),
                ("matrix_unit", INT),
                ("scratch", Arena), ("tap", TAP), ("tap_user", PTR),
                ("tap_cache", C.c_bool), ("by_class", C.c_bool),
                ("inject", TAP), ("inject_user", PTR),
                ("path", C.c_char * 256), ("profiling", C.c_bool),
                ("profile", ProfileRow * 48), ("overwrite", C.c_bool),
                ("finishing", C.c_bool), ("interrupt", PTR), ("warn", WARN),
                ("warn_user", PTR)]


class RopeTable(C.Structure):
    _fields_ = [("cos", PTR), ("sin", PTR), ("npos", I64), ("pairs", I64 * 3)]


class OpcheckOptions(C.Structure):
    _fields_ = [("arith", PTR), ("seed", C.c_uint64), ("rounds", I64),
                ("only", STR), ("small", C.c_bool), ("one", STR)]


def _args(*fields):
    """P reals, D doubles, N a count, I an int, B a bool, R a tt_real, S a
    double."""
    kinds = {"P": PTR, "D": PTR, "N": I64, "I": INT, "B": C.c_bool, "S": F64,
             "R": None}
    return [(name, kinds[kind]) for kind, names in fields
            for name in names.split()]


# In the order of TT_OPS (backend.h); members as in ops.h. None: a tt_real.
OPS = {
    "linear": _args(("P", "y x"), ("N", "n"), ("P", "w b")),
    "attention": _args(("P", "o q k v"), ("N", "T N H D q_stride kv_stride"),
                       ("R", "scale"), ("P", "rel_bias key_mask packed"),
                       ("N", "n_packed same"), ("B", "bf16")),
    "conv": _args(("P", "y frame w b"), ("N", "Hi Wi Cin Ho Wo Cout"),
                  ("I", "kt kh kw stride pad_top pad_left up"),
                  ("B", "by_class bf16")),
    "layer_norm": _args(("P", "y x"), ("N", "n c"), ("P", "w b"), ("S", "eps")),
    "rms_norm": _args(("P", "y x"), ("N", "n c"), ("P", "w"), ("S", "eps")),
    "channel_norm": _args(("P", "y x"), ("N", "n c"), ("P", "gamma")),
    "modulate": _args(("P", "x"), ("N", "n c"), ("P", "scale shift"),
                      ("N", "stride rows")),
    "gate_add": _args(("P", "x y"), ("N", "n c"), ("P", "gate"),
                      ("N", "stride rows")),
    "add": _args(("P", "x y"), ("N", "n")),
    "mul": _args(("P", "x y"), ("N", "n")),
    "gelu_tanh": _args(("P", "x"), ("N", "n")),
    "silu": _args(("P", "x"), ("N", "n")),
    "rope": _args(("P", "y x"), ("N", "T H D"), ("P", "table pos")),
    "col_mean": _args(("D", "mean"), ("P", "x"), ("N", "n c")),
    "col_moment": _args(("D", "m2"), ("P", "x"), ("D", "mean"), ("N", "n c")),
    "col_blend": _args(("P", "x"), ("N", "n c"), ("D", "mean gain target"),
                       ("S", "tau")),
}


class Ops(C.Structure):
    _fields_ = [("abi", Abi), ("name", STR), ("summary", STR), ("cls", INT),
                ("by_class", C.c_bool), ("time32", C.c_bool), ("of_class", PTR),
                ("fused", PTR), ("self", PTR), ("open", PTR), ("close", PTR),
                ("library", PTR),
                ("packed", PTR)] + [(op, PTR) for op in OPS]


# ---- the library and the program -----------------------------------------------

def _places(what, beside):
    """Where a file of this installation, of this clone, or of the installation
    on PATH may be."""
    if HERE.parts[-3:] == ("share", "tether", "python"):
        yield from sorted((HERE.parents[2] / beside).glob(what))
    if HERE.name in ("site-packages", "dist-packages"):   # of the wheel
        yield from sorted((HERE.parents[2] / beside).glob(what))
    if HERE.parts[-2:] == ("tools", "python"):
        yield from sorted(HERE.parents[1].glob("build/*/" + what), key=lambda p: (
            "double" in p.parts[-2], -p.stat().st_mtime))
    found = shutil.which("tether")
    if found:
        yield from sorted((pathlib.Path(found).resolve().parent.parent
                           / beside).glob(what))


def library_path():
    """libtether.so: TETHER_LIB, or beside this file, or where it is known."""
    if os.environ.get("TETHER_LIB"):
        return os.environ["TETHER_LIB"]
    name = "libtether*.dylib" if sys.platform == "darwin" else "libtether.so*"
    for path in _places(name, "lib"):
        return str(path)
    found = ctypes.util.find_library("tether")
    if not found:
        raise Error("libtether.so is not found: install tether, or set "
                    "TETHER_LIB to the file (`make staged` builds it)")
    return found


def program_path():
    """The program: TETHER, or of the installation or clone, or on PATH."""
    if os.environ.get("TETHER"):
        return os.environ["TETHER"]
    for path in _places("tether", "bin"):
        if path.is_file():
            return str(path)
    raise Error("the program tether is not found: install it, or set TETHER "
                "to the file (`make` builds build/tether)")


class _Guarded:
    """Functions of C that run in the library's floating-point environment
    (fpenv.h). A host that flushes subnormal numbers, as PyTorch can be told
    to, has its own again afterwards, and in functions of its own that C calls
    (`outside`)."""

    def __init__(self, c):
        self._c, self._before = c, threading.local()
        self._begin, self._set = c.tt_fpenv_begin, c.tt_fpenv_set
        self._begin.restype = C.c_uint64
        self._begin.argtypes, self._set.argtypes = (), (C.c_uint64,)

    def inside(self, f):
        def call(*args):
            outer = getattr(self._before, "word", None)
            before = self._before.word = self._begin()
            try:
                return f(*args)
            finally:
                self._set(before)
                self._before.word = outer
        return call

    def outside(self, f):
        def call(*args):
            self._set(self._before.word)
            try:
                return f(*args)
            finally:
                self._begin()
        return call

    def __getattr__(self, name):
        call = self.inside(getattr(self._c, name))
        setattr(self, name, call)
        return call


class Library:
    """libtether.so with prototypes, and the structures of its compute type."""

    def __init__(self, path):
        try:
            self.raw = C.CDLL(path)
        except OSError as e:
            raise Error(f"{path} cannot be loaded: {e}") from None
        self.path = path
        self._prototypes()
        self.c = _Guarded(self.raw)
        name = self.c.tt_real_name().decode()
        self.real = {"f32": np.float32, "f64": np.float64}[name]
        self.creal = {"f32": C.c_float, "f64": C.c_double}[name]
        self.init = getattr(self.c, f"tt_ctx_init_{name}")
        self.args = {op: type(op, (C.Structure,), {"_fields_": [
            (n, t or self.creal) for n, t in f]}) for op, f in OPS.items()}
        self.dtypes = self._dtypes()
        self._compare_sizes()

    def _prototypes(self):
        c, ctx = self.raw, C.POINTER(Ctx)
        pp, text = C.POINTER(PTR), C.c_char_p
        for name, result, args in (
                ("version", text, ()), ("git_revision", text, ()),
                ("real_name", text, ()), ("compiler", text, ()),
                ("dtype_name", text, (INT,)),
                ("dtype_block", I64, (INT,)), ("dtype_size", C.c_size_t, (INT,)),
                ("ctx_free", None, (ctx,)), ("clear", None, (ctx,)),
                ("fail", INT, (ctx, INT, text)),
                ("schedule_init", INT, (ctx, PTR, F64, PTR, INT, C.c_bool, I64)),
                ("schedule_index", INT, (PTR, F64)),
                ("ops_default", C.POINTER(Ops), ()),
                ("ops_use", INT, (ctx, text)),
                ("ops_class", PTR, (PTR, INT)),
                ("class_find", C.c_bool, (PTR, text)),
                ("class_names", text, ()),
                ("arith_find", PTR, (text,)), ("arith_names", text, ()),
                ("rope_make", INT, (ctx, PTR, PTR, I64, I64)),
                ("arena_free", None, (PTR,)),
                ("tensor_count", I64, (PTR,)), ("tensor_bytes", I64, (PTR,)),
                ("gather", None, (PTR, PTR)),
                ("widen_at_f32", None, (PTR, PTR, I64, I64)),
                ("file_open", INT, (ctx, pp, text)), ("file_close", None, (PTR,)),
                ("file_format", text, (PTR,)), ("file_count", I64, (PTR,)),
                ("file_entry", PTR, (PTR, I64)),
                ("file_meta", text, (PTR, text)),
                ("weights_open", INT, (ctx, pp, text, INT, PTR)),
                ("weights_close", None, (PTR,)), ("weights_origin", text, (PTR,)),
                ("weights_count", I64, (PTR,)),
                ("weights_name", text, (PTR, I64)),
                ("weights_find", PTR, (PTR, text)),
                ("st_create", INT, (ctx, pp, text)),
                ("st_meta", INT, (PTR, text, text)),
                ("st_add", INT, (PTR, text, INT, INT, PTR, PTR)),
                ("st_finish", INT, (PTR,)), ("st_abort", None, (PTR,)),
                ("report_new", INT, (ctx, pp, text, PTR)),
                ("report_free", None, (PTR,)),
                ("report_text", INT, (ctx, PTR, text, C.c_bool)),
                ("report_json", INT, (ctx, PTR, text)),
                ("opcheck", INT, (ctx, PTR, PTR, PTR)),
                ("shadow_open", INT, (ctx, pp, PTR, PTR, PTR)),
                ("shadow_close", None, (ctx, PTR)),
                ("settings_set", INT, (ctx, PTR, text, text)),
                ("settings_get", text, (PTR, text, PTR, C.c_size_t)),
                ("settings_free", None, (PTR,)),
                ("run_open", INT, (ctx, pp, PTR, PTR)),
                ("run_close", None, (PTR,)), ("run_settings", PTR, (PTR,)),
                ("run_dit", PTR, (PTR,)),
                ("run_next", INT, (ctx, PTR, pp, C.POINTER(I64))),
                ("dit_get_config", C.POINTER(I64), (PTR,))):
            f = getattr(c, "tt_" + name)
            f.restype, f.argtypes = result, args

    def _dtypes(self):
        """What numpy has: number of a type -> numpy's, by the name of files."""
        name = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8",
                "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
                "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}
        found = {}
        for i in range(1, 64):
            said = self.c.tt_dtype_name(i)
            if not said or not self.c.tt_dtype_size(i):
                break
            found[i] = np.dtype(name[said.decode()]) \
                if said.decode() in name else None
        return found

    def _compare_sizes(self):
        abi = self.c.tt_ops_default().contents.abi
        mine = {"real": C.sizeof(self.creal), "table": C.sizeof(Ops),
                "context": C.sizeof(Ctx), "tensor": C.sizeof(Tensor),
                "args": sum(C.sizeof(a) for a in self.args.values())}
        for what, size in mine.items():
            if getattr(abi, what) != size:
                raise Error(f"{self.path} is of another version: {what} has "
                            f"{getattr(abi, what)} bytes, here {size}; take "
                            "the tether.py that came with it")

    def dtype_of(self, array):
        for number, dtype in self.dtypes.items():
            if dtype is not None and dtype == array.dtype:
                return number
        raise Error(f"arrays of {array.dtype} have no type in files")

    def arith(self, name):
        found = self.c.tt_arith_find(_bytes(name))
        if not found:
            raise Error(f'no arithmetic is called "{name}"; there are '
                        + self.c.tt_arith_names().decode())
        return found


_loaded = {}


def library():
    path = library_path()
    if path not in _loaded:
        _loaded[path] = Library(path)
    return _loaded[path]


def version():
    c = library().c
    return " ".join(f().decode() for f in (
        c.tt_version, c.tt_git_revision, c.tt_real_name, c.tt_compiler))


class Context:
    """A tt_ctx: one for a thread of control. `with Context() as ctx`. Calls of
    several threads take turns."""

    def __init__(self, backend=None, cls="f32", threads=None):
        self.lib = library()
        self.c = self.lib.c
        self.ctx = Ctx()
        self.lock = threading.RLock()   # C runs without Python's own
        self.thrown = None      # what a Python function raised inside
        self.kept = []          # what C points to
        self.see(self.lib.init(C.byref(self.ctx)))
        if threads:
            self.ctx.nthreads = threads
        if backend:
            self.call("ops_use", _bytes(backend))
        if cls != "f32":
            self._use_class(cls)

    def _use_class(self, cls):
        number = INT()
        if not self.c.tt_class_find(C.byref(number), _bytes(cls)):
            raise Error(f'no class is called "{cls}"; there are '
                        + self.c.tt_class_names().decode())
        self.ctx.ops = self.c.tt_ops_class(self.ctx.ops, number)
        if not self.ctx.ops:
            raise Error(f"this backend has no class {cls}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.tt_ctx_free(C.byref(self.ctx))

    def see(self, status=None):
        """Raise what failed."""
        thrown, self.thrown = self.thrown, None
        status = self.ctx.status or status
        message = self.ctx.message.decode(errors="replace")
        if self.ctx.status:
            self.c.tt_clear(C.byref(self.ctx))
        if thrown:
            raise thrown
        if status:
            raise Error(message or f"status {status}")

    def call(self, name, *args):
        with self.lock:
            status = getattr(self.c, "tt_" + name)(C.byref(self.ctx), *args)
            self.see(status if isinstance(status, int) else None)

    def operator(self, table, op, call):
        f = OPERATOR(getattr(table, op))
        self.c.inside(f)(C.byref(self.ctx), C.addressof(call.a))

    def fail(self, error):
        """An exception inside a function that C called."""
        self.thrown = self.thrown or error
        self.c.tt_fail(C.byref(self.ctx), 1, b"a Python function failed")


# ---- operators ------------------------------------------------------------------

def _address(array):
    return None if array is None else array.ctypes.data


def _read(lib, at, dtype, shape, stride=None):
    """A copy of values in memory; stride in elements."""
    if not at:
        return None
    dtype = np.dtype(dtype)
    stride = stride or [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    if 0 in shape:
        return np.zeros(shape, dtype)
    n = 1 + sum((d - 1) * s for d, s in zip(shape, stride))
    raw = np.frombuffer((C.c_char * (n * dtype.itemsize)).from_address(at),
                        dtype)
    return np.lib.stride_tricks.as_strided(
        raw, shape, [s * dtype.itemsize for s in stride]).copy()


def _tensor(array, dtype, shape, scale=0):
    """A packed tt_tensor of the values of `array`."""
    t = Tensor(array.ctypes.data, dtype, len(shape))
    t.scale, t.native = scale, True
    stride = 1
    for i in reversed(range(len(shape))):
        t.dim[i], t.stride[i] = shape[i], stride
        stride *= shape[i]
    return t


def _widened(lib, t):
    """The values of a tt_tensor with any strides, as float32 where numpy has
    no such type; their own type else."""
    shape = [t.dim[i] for i in range(t.rank)]
    dtype = lib.dtypes.get(t.dtype)
    packed = np.empty(lib.c.tt_tensor_bytes(C.byref(t)), np.uint8)
    lib.c.tt_gather(packed.ctypes.data, C.byref(t))
    if dtype is not None and not t.scale:
        return packed.view(dtype).reshape(shape)
    # what widens looks at no strides
    view = _tensor(packed, t.dtype, shape, t.scale)
    out = np.empty(shape, np.float32)
    lib.c.tt_widen_at_f32(out.ctypes.data, C.byref(view), 0, out.size)
    return out


class _Call:
    """An operator call: its struct from arrays, or arrays from its struct."""

    def __init__(self, lib, op):
        self.lib, self.op, self.kept = lib, op, []
        self.a = lib.args[op]()
        self.out = None

    # -- arrays to the struct

    def reals(self, x, dtype=None):
        if x is None:
            return None
        x = np.ascontiguousarray(x, dtype or self.lib.real)
        self.kept.append(x)
        return x

    def sized(self, name, x, n, dtype=None, needed=True):
        """Operand `name`, of which C reads n values."""
        x = self.reals(x, dtype)
        found = 0 if x is None else x.size
        if found != n and (needed or x is not None):
            raise Error(f"{self.op}: {name} has {found} values, not {n}")
        return x

    def matrix(self, x):
        """(n, c) of x [n, c]."""
        if np.ndim(x) != 2:
            raise Error(f"{self.op}: x {np.shape(x)} must be [n, c]")
        return np.shape(x)

    def put(self, result, **members):
        """Set members; `result` names the one that the result goes to."""
        for name, value in members.items():
            if isinstance(value, np.ndarray):
                value = _address(value)
            elif isinstance(value, C.Structure):
                self.kept.append(value)
                value = C.addressof(value)
            setattr(self.a, name, value)
        setattr(self.a, result, _address(self.out))
        return self

    def fresh(self, shape, dtype=None):
        self.out = np.zeros(shape, dtype or self.lib.real)

    def weight(self, w):
        w = np.ascontiguousarray(w)
        w = w if w.dtype in (np.float16, np.float32) else w.astype(
            self.lib.real)
        self.kept.append(w)
        return _tensor(w, self.lib.dtype_of(w), w.shape)

    def linear(self, x, w, b=None):
        x = self.reals(x)
        if x.ndim != 2 or np.ndim(w) != 2 or np.shape(w)[1] != x.shape[1]:
            raise Error(f"linear: x {x.shape} must be [n, i], w {np.shape(w)} "
                        "[o, i]")
        self.fresh((x.shape[0], np.shape(w)[0]))
        return self.put("y", x=x, n=x.shape[0], w=self.weight(w),
                        b=self.sized("b", b, np.shape(w)[0], needed=False))

    def attention(self, q, k, v, scale=None, rel_bias=None, key_mask=None):
        q, k, v = (self.reals(t) for t in (q, k, v))
        if q.ndim != 3 or k.shape != v.shape or q.shape[1:] != k.shape[1:]:
            raise Error(f"attention: q {q.shape} must be [T, H, D], k "
                        f"{k.shape} and v {v.shape} [N, H, D]")
        (T, H, D), N = q.shape, k.shape[0]
        if rel_bias is not None and T != N:
            raise Error(f"attention: rel_bias needs as many queries as keys, "
                        f"not {T} and {N}")
        scale = 1 / np.sqrt(np.float64(D)) if scale is None else scale
        self.fresh(q.shape)
        return self.put("o", q=q, k=k, v=v, T=T, N=N, H=H, D=D, q_stride=H * D,
                        kv_stride=H * D, scale=scale,
                        rel_bias=self.sized("rel_bias", rel_bias,
                                            H * (2 * N - 1), needed=False),
                        key_mask=self.sized("key_mask", key_mask, N, np.uint8,
                                            needed=False))

    def conv(self, frames, w, b=None, stride=1, pad_top=0, pad_left=0, up=1,
             out=None):
        """frames: kt of [Hi, Wi, Cin], oldest first, None for zeros; w [Cout,
        kt, kh, kw, Cin]; out (Ho, Wo), else what fits without padding behind."""
        size = next((np.shape(f) for f in frames if f is not None), None)
        if not size or len(size) != 3:
            raise Error(f"conv: a frame {size} must be [Hi, Wi, Cin]")
        Hi, Wi, Cin = size
        if np.ndim(w) != 5 or np.shape(w)[1::3] != (len(frames), Cin):
            raise Error(f"conv: w {np.shape(w)} must be [Cout, {len(frames)}, "
                        f"kh, kw, {Cin}]")
        Cout, kt, kh, kw = np.shape(w)[:4]
        frames = [self.sized(f"frame {i}", f, Hi * Wi * Cin, needed=False)
                  for i, f in enumerate(frames)]
        Ho, Wo = out or ((Hi * up + 2 * pad_top - kh) // stride + 1,
                         (Wi * up + 2 * pad_left - kw) // stride + 1)
        at = (PTR * kt)(*map(_address, frames))
        self.kept.append(at)
        self.fresh((Ho, Wo, Cout))
        return self.put("y", frame=C.addressof(at), w=self.weight(w),
                        b=self.sized("b", b, Cout, needed=False), Hi=Hi,
                        Wi=Wi, Cin=Cin, Ho=Ho, Wo=Wo, Cout=Cout, kt=kt,
                        kh=kh, kw=kw, stride=stride, pad_top=pad_top,
                        pad_left=pad_left, up=up)

    def _norm(self, x, given, **eps):
        """given: the factors and summands of the c columns."""
        x = self.reals(x)
        c = x.shape[-1]
        self.fresh(x.shape)
        return self.put("y", x=x, n=x.size // c, c=c, **eps, **{
            name: self.sized(name, v, c) for name, v in given.items()})

    def layer_norm(self, x, w=None, b=None, eps=1e-6):
        given = {} if w is None and b is None else {"w": w, "b": b}
        return self._norm(x, given, eps=eps)

    def rms_norm(self, x, w, eps=1e-6):
        return self._norm(x, {"w": w}, eps=eps)

    def channel_norm(self, x, gamma):
        return self._norm(x, {"gamma": gamma})

    def _in_place(self, x, **more):
        self.out = np.array(x, self.lib.real, order="C")
        return self.put("x", **more)

    def _mixed(self, x, rows, given, **more):
        """given: [g, c] each; without `rows`, as many rows go to each g."""
        n, c = np.size(x) // np.shape(x)[-1], np.shape(x)[-1]
        groups = len(np.atleast_1d(next(iter(given.values()))))
        rows = rows or max(-(-n // max(groups, 1)), 1)
        return self._in_place(x, n=n, c=c, stride=c, rows=rows, **more, **{
            name: self.sized(name, v, -(-n // rows) * c)
            for name, v in given.items()})

    def modulate(self, x, scale, shift, rows=None):
        """scale, shift [g, c]; row r uses r // rows."""
        return self._mixed(x, rows, {"scale": scale, "shift": shift})

    def gate_add(self, x, y, gate, rows=None):
        return self._mixed(x, rows, {"gate": gate},
                           y=self.sized("y", y, np.size(x)))

    def add(self, x, y):
        n = np.size(x)
        return self._in_place(x, y=self.sized("y", y, n), n=n)

    mul = add

    def gelu_tanh(self, x):
        return self._in_place(x, n=np.size(x))

    def silu(self, x):
        return self._in_place(x, n=np.size(x))

    def rope(self, x, pos, cos=None, sin=None, pairs=None):
        """pos [T, 3]: frame, row, column. cos, sin [positions, D / 2]: the
        angles; without them ours for all positions that occur. pairs: how many
        turn by each axis."""
        x, pos = self.reals(x), self.reals(pos, np.int32)
        T, H, D = x.shape
        if pos.shape != (T, 3) or D % 2:
            raise Error(f"rope: x {x.shape} must be [T, H, even], pos "
                        f"{pos.shape} [T, 3]")
        if cos is None:
            cos, sin = rope_table(D, int(pos.max(initial=0)) + 1)
        c = D // 2
        most = len(cos)
        cos, sin = (self.sized(name, v, most * c, np.float64)
                    for name, v in (("cos", cos), ("sin", sin)))
        if pos.min(initial=0) < 0 or pos.max(initial=0) >= max(most, 1):
            raise Error(f"rope: a position is not in 0 ... {most - 1}")
        pairs = pairs or (c - 2 * (c // 3), c // 3, c // 3)
        if min(pairs) < 0 or sum(pairs) != c:
            raise Error(f"rope: pairs {pairs} must add up to {c}")
        table = RopeTable(_address(cos), _address(sin), most, pairs)
        self.fresh(x.shape)
        return self.put("y", x=x, T=T, H=H, D=D, table=table, pos=pos)

    def _columns(self, x):
        n, c = self.matrix(x)
        self.fresh((c,), np.float64)
        return dict(x=self.reals(x), n=n, c=c)

    def col_mean(self, x):
        return self.put("mean", **self._columns(x))

    def col_moment(self, x, mean):
        more = self._columns(x)
        return self.put("m2", mean=self.sized("mean", mean, more["c"],
                                              np.float64), **more)

    def col_blend(self, x, mean, gain, target, tau):
        """mean and gain None: a moving average."""
        n, c = self.matrix(x)
        if (mean is None) != (gain is None):
            raise Error("col_blend: mean and gain come together")
        mean, gain, target = (
            self.sized(name, v, c, np.float64, v is target) for name, v in (
                ("mean", mean), ("gain", gain), ("target", target)))
        return self._in_place(x, n=n, c=c, mean=mean, gain=gain,
                              target=target, tau=tau)

    # -- the struct to arrays: what a candidate's function is given

    def at(self, name, *shape, dtype=None, stride=None):
        return _read(self.lib, getattr(self.a, name), dtype or self.lib.real,
                     shape, stride)

    def stored(self, name):
        return _widened(self.lib, Tensor.from_address(getattr(self.a, name)))

    def taken(self):
        """(where the result goes, its shape and type, keywords)."""
        a, real = self.a, self.lib.real
        f = getattr(self, "take_" + self.op, None)
        if f:
            return f(a)
        n, c = a.n, getattr(a, "c", None)
        if self.op in ("col_mean", "col_moment"):
            given = {"x": self.at("x", n, c)}
            if self.op == "col_moment":
                given["mean"] = self.at("mean", c, dtype=np.float64)
            first = OPS[self.op][0][0]
            return getattr(a, first), (c,), np.float64, given
        shape = (n, c) if c is not None else (n,)
        given = {"x": self.at("x", *shape)}
        for name, kind in OPS[self.op][1:]:
            if name in ("w", "b", "gamma"):
                given[name] = self.at(name, c)
            elif name in ("mean", "gain", "target"):
                given[name] = self.at(name, c, dtype=np.float64)
            elif name in ("scale", "shift", "gate"):
                given[name] = self.at(name, -(-n // a.rows), c,
                                      stride=[a.stride, 1])
            elif name == "y":
                given["y"] = self.at("y", *shape)
            elif name in ("eps", "tau", "rows"):
                given[name] = getattr(a, name)
        in_place = OPS[self.op][0][0] == "x"
        if not in_place and "y" in given:
            del given["y"]
        return (a.x if in_place else a.y), shape, real, given

    def take_linear(self, a):
        w = self.stored("w")
        o, i = w.shape
        return a.y, (a.n, o), self.lib.real, {
            "x": self.at("x", a.n, i), "w": w, "b": self.at("b", o)}

    def take_attention(self, a):
        def rows(name, n, stride):
            return self.at(name, n, a.H, a.D, stride=[stride, a.D, 1])
        return a.o, (a.T, a.H, a.D), self.lib.real, {
            "q": rows("q", a.T, a.q_stride), "k": rows("k", a.N, a.kv_stride),
            "v": rows("v", a.N, a.kv_stride), "scale": a.scale,
            "rel_bias": self.at("rel_bias", a.H, 2 * a.N - 1),
            "key_mask": self.at("key_mask", a.N, dtype=np.uint8)}

    def take_conv(self, a):
        frames = (PTR * a.kt).from_address(a.frame)
        size = (a.Hi, a.Wi, a.Cin)
        return a.y, (a.Ho, a.Wo, a.Cout), self.lib.real, {
            "frames": [_read(self.lib, f, self.lib.real, size)
                       if f else np.zeros(size, self.lib.real)
                       for f in frames],
            "w": self.stored("w").reshape(a.Cout, a.kt, a.kh, a.kw, a.Cin),
            "b": self.at("b", a.Cout), "stride": a.stride,
            "pad_top": a.pad_top, "pad_left": a.pad_left, "up": a.up,
            "out": (a.Ho, a.Wo)}

    def take_rope(self, a):
        t = RopeTable.from_address(a.table)
        c = a.D // 2
        return a.y, (a.T, a.H, a.D), self.lib.real, {
            "x": self.at("x", a.T, a.H, a.D),
            "pos": self.at("pos", a.T, 3, dtype=np.int32),
            "cos": _read(self.lib, t.cos, np.float64, (t.npos, c)),
            "sin": _read(self.lib, t.sin, np.float64, (t.npos, c))}


def rope_table(D, npos):
    """cos, sin [npos, D / 2] in double: angles of our rotary embedding."""
    with Context() as ctx:
        arena, t = Arena(), RopeTable()
        ctx.call("rope_make", C.byref(arena), C.byref(t), D, npos)
        both = [_read(ctx.lib, at, np.float64, (npos, D // 2))
                for at in (t.cos, t.sin)]
        ctx.c.tt_arena_free(C.byref(arena))
    return both


OPERATOR = C.CFUNCTYPE(None, C.POINTER(Ctx), PTR)


def _golden(op, backend, cls, args, given):
    with Context(backend, cls) as ctx:
        call = getattr(_Call(ctx.lib, op), op)(*args, **given)
        table = Ops.from_address(ctx.ctx.ops)
        ctx.operator(table, op, call)
        ctx.see()
        return call.out


def _operator(op):
    def f(*args, backend="golden", cls="f32", **given):
        return _golden(op, backend, cls, args, given)
    f.__name__ = op
    f.__doc__ = (getattr(_Call, op).__doc__ or "") + (
        f"\n    Golden values of tt_{op} (include/tether/ops.h); `cls`: a "
        "class of arithmetic.")
    return f


for _op in OPS:
    globals()[_op] = _operator(_op)


# ---- judging --------------------------------------------------------------------

class Report(dict):
    """What `tether validate --json` says (schema tether-validate/2), and its
    text: print it. True when everything passed."""

    def __init__(self, members, text=""):
        super().__init__(members)
        self.text = text

    def __bool__(self):
        return bool(self["passed"])

    def __str__(self):
        return self.text.rstrip("\n") or self["headline"]

    @property
    def headline(self):
        return self["headline"]

    @property
    def verdicts(self):
        return self["verdicts"]

    @property
    def first(self):
        """The first failure, or None."""
        return None if self["first"] is None else \
            self["verdicts"][self["first"]]


def _table(ctx, functions):
    """Our table with Python functions in it; they outlive the call in ctx."""
    table = Ops.from_buffer_copy(ctx.c.tt_ops_default().contents)
    table.name, table.summary = b"Python", b""
    table.of_class = table.self = table.open = table.close = None
    table.fused = table.packed = table.library = None
    for op, f in functions.items():
        if op not in OPS:
            raise Error(f'no operator is called "{op}"; there are '
                        + ", ".join(OPS))
        callback = OPERATOR(ctx.c.outside(_called(ctx, op, f)))
        ctx.kept.append(callback)
        setattr(table, op, C.cast(callback, PTR).value)
    ctx.kept.append(table)
    return table


def _called(ctx, op, f):
    def run(_, args):
        try:
            call = _Call(ctx.lib, op)
            call.a = ctx.lib.args[op].from_address(args)
            to, shape, dtype, given = call.taken()
            y = np.ascontiguousarray(f(**given), dtype)
            if y.size != np.prod(shape, dtype=np.int64):
                raise Error(f"{op} gave shape {y.shape}, not {shape}")
            C.memmove(to, y.ctypes.data, y.nbytes)
        except NotImplementedError as e:    # of this shape: a verdict
            ctx.c.tt_fail(C.byref(ctx.ctx), 5, _bytes(
                str(e).replace("%", "%%") or f"{op} raises NotImplementedError"))
        except BaseException as e:          # cannot pass through C
            ctx.fail(e)
    return run


@contextlib.contextmanager
def _report(ctx, title, arith):
    r = PTR()
    ctx.call("report_new", C.byref(r), _bytes(title), arith)
    try:
        yield r
    finally:
        ctx.c.tt_report_free(r)


def _said(ctx, r, every=False):
    with tempfile.TemporaryDirectory() as folder:
        text, members = (os.path.join(folder, n) for n in ("text", "json"))
        ctx.call("report_json", r, members.encode())
        ctx.call("report_text", r, text.encode(), every)
        return Report(json.loads(pathlib.Path(members).read_text()),
                      pathlib.Path(text).read_text())


def check(functions, arith="f32", seed=1, rounds=8):
    """The operator checks of `tether validate --backend` on Python functions.

    functions  {"silu": f, ...}: f takes the arguments of tether.silu by name,
               as arrays, and returns the result
    arith      what they compute with; seed, rounds: see `tether validate`"""
    with Context() as ctx:
        declared = ctx.lib.arith(arith)
        with _report(ctx, "operators of Python", declared) as r:
            for op in functions:
                table = _table(ctx, functions)
                ctx.call("opcheck", r, C.byref(table), C.byref(OpcheckOptions(
                    declared, seed, rounds, _bytes(op))))
            return _said(ctx, r)


def judge(op, result, *args, arith="f32", **given):
    """Is `result` what operator `op` makes of these arguments, as far as the
    declared arithmetic goes? The limits and hints of `tether validate`."""
    with Context() as ctx:
        declared = ctx.lib.arith(arith)
        call = getattr(_Call(ctx.lib, op), op)(*args, **given)
        result = np.asarray(result, call.out.dtype)
        if result.size != call.out.size:
            raise Error(f"{op}: the result has shape {result.shape}, not "
                        f"{call.out.shape}")
        table = _table(ctx, {op: lambda **_: result})
        with _report(ctx, op, declared) as r:
            shadow = PTR()
            ctx.call("shadow_open", C.byref(shadow), r, C.byref(table),
                     declared)
            ctx.operator(Ops.from_address(ctx.ctx.ops), op, call)
            ctx.c.tt_shadow_close(C.byref(ctx.ctx), shadow)
            ctx.see()
            return _said(ctx, r, True)


# ---- files ----------------------------------------------------------------------

class _Entry(C.Structure):
    _fields_ = [("path", PTR), ("npath", INT), ("name", STR), ("t", Tensor)]


def load(path, names="*"):
    """{name: array} of a safetensors, torch or GGUF file. Types that numpy
    lacks (bf16, 8-bit, quantised) become float32, with scales."""
    with Context() as ctx:
        f, found = PTR(), {}
        ctx.call("file_open", C.byref(f), _path(path))
        try:
            for i in range(ctx.c.tt_file_count(f)):
                e = _Entry.from_address(ctx.c.tt_file_entry(f, i))
                name = e.name.decode()
                if fnmatch.fnmatchcase(name, names):
                    found[name] = _widened(ctx.lib, e.t)
        finally:
            ctx.c.tt_file_close(f)
        return found


MODELS = {"transformer": 0, "vae": 1, "text_encoder": 2, "tiny_vae": 3}


def weights(path, kind="transformer"):
    """{Wan name: array} of a model's weights, from any file or folder that
    tether reads."""
    with Context() as ctx:
        w, found = PTR(), {}
        ctx.call("weights_open", C.byref(w), _path(path), MODELS[kind],
                 None)
        try:
            for i in range(ctx.c.tt_weights_count(w)):
                name = ctx.c.tt_weights_name(w, i)
                at = ctx.c.tt_weights_find(w, name)
                ctx.see()
                found[name.decode()] = _widened(ctx.lib,
                                                Tensor.from_address(at))
        finally:
            ctx.c.tt_weights_close(w)
        return found


def save(path, arrays, **metadata):
    """Write {name: array} as safetensors, in this order."""
    with Context() as ctx:
        w = PTR()
        ctx.ctx.overwrite = True
        ctx.call("st_create", C.byref(w), _path(path))
        try:
            for key, value in metadata.items():
                ctx.see(ctx.c.tt_st_meta(w, _bytes(key), _bytes(str(value))))
            for name, x in arrays.items():
                x = np.asarray(x, order="C")
                dim = (I64 * max(x.ndim, 1))(*x.shape)
                ctx.see(ctx.c.tt_st_add(w, _bytes(name), ctx.lib.dtype_of(x),
                                        x.ndim, C.addressof(dim),
                                        x.ctypes.data))
        except BaseException:
            ctx.c.tt_st_abort(w)
            raise
        ctx.see(ctx.c.tt_st_finish(w))


# ---- runs -----------------------------------------------------------------------

class Run:
    """A rollout: settings are the options of `tether generate`, with _ for -.
    Threads that share one get its chunks in turn.

    record  None, a pattern of names ("chunk.*/x0"), or a function of (name,
            array): keep, or show, what `--dump` writes; see .tensors
    inject  {name: array}: taken instead of what the model computed, as with
            `--inject`
    functions, arith   Python operators (see check) that are judged at every
            call of the run; .report() says how they did"""

    def __init__(self, record=None, inject=None, functions=None, arith="f32",
                 backend=None, threads=None, **settings):
        self.tensors = {}
        self._open = contextlib.ExitStack()
        try:
            self.ctx = self._open.enter_context(Context(
                backend, settings.pop("class", settings.pop("cls", "f32")),
                threads))
            self.lib, self.c = self.ctx.lib, self.ctx.c
            self._listen(record, inject)
            self._shadow(functions, arith)
            self._run(settings)
        except BaseException:
            self._open.close()
            raise

    def _listen(self, record, inject):
        if isinstance(record, str):
            self._record = self._keep(record)
        else:
            self._record = record
        self._inject = dict(inject or {})
        if record:
            self._tap = TAP(self.c.outside(self._tapped))
            self.ctx.ctx.tap = self._tap
        if inject:
            self._injected = TAP(self.c.outside(self._replace))
            self.ctx.ctx.inject = self._injected

    def _keep(self, pattern):
        def keep(name, x):
            if fnmatch.fnmatchcase(name, pattern):
                self.tensors[name] = x
        return keep

    def _tapped(self, _, path, dtype, rank, dim, data):
        try:
            self._record(path.decode(), _read(
                self.lib, data, self.lib.dtypes[dtype],
                tuple(dim[i] for i in range(rank))))
        except BaseException as e:          # cannot pass through C
            self.ctx.fail(e)

    def _replace(self, _, path, dtype, rank, dim, data):
        try:
            x = self._inject.get(path.decode())
            if x is None:
                return
            n = int(np.prod([dim[i] for i in range(rank)], dtype=np.int64))
            x = np.ascontiguousarray(x, self.lib.dtypes[dtype])
            if x.size != n:
                raise Error(f"{path.decode()}: {x.shape} was given for "
                            f"{[dim[i] for i in range(rank)]}")
            C.memmove(data, x.ctypes.data, x.nbytes)
        except BaseException as e:          # cannot pass through C
            self.ctx.fail(e)

    def _shadow(self, functions, arith):
        self._r = None
        if not functions:
            return
        declared = self.lib.arith(arith)
        self._r = self._open.enter_context(
            _report(self.ctx, "calls of Python operators", declared))
        shadow = PTR()
        self.ctx.call("shadow_open", C.byref(shadow), self._r,
                      C.byref(_table(self.ctx, functions)), declared)
        self._open.callback(self.c.tt_shadow_close, C.byref(self.ctx.ctx),
                            shadow)

    def _run(self, given):
        # The structure is returned by value into room for a far larger one:
        # its members are reached by name alone.
        room = type("Settings", (C.Structure,), {"_fields_": [
            ("room", C.c_uint64 * 8192)]})
        self.lib.raw.tt_settings_defaults.restype = room
        settings = self.c.tt_settings_defaults()
        run = PTR()
        try:
            for name, value in given.items():
                if value is None:
                    continue
                text = {True: "yes", False: "no"}.get(value, str(value)) \
                    if isinstance(value, bool) else str(value)
                self.ctx.call("settings_set", C.byref(settings),
                              _bytes(name.replace("_", "-")), _bytes(text))
            self.ctx.call("run_open", C.byref(run), C.byref(settings), None)
        finally:
            self.c.tt_settings_free(C.byref(settings))
        self.run = run
        self._open.callback(self.c.tt_run_close, run)

    def setting(self, name):
        """What became of a setting, as text; None: not set."""
        buf = C.create_string_buffer(512)
        with self.ctx.lock:
            self._check_open()
            text = self.c.tt_settings_get(self.c.tt_run_settings(self.run),
                                          _bytes(name.replace("_", "-")), buf,
                                          len(buf))
        return None if text is None else text.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with self.ctx.lock:
            self.run = None
            self._open.close()

    def _check_open(self):
        if self.run is None:
            raise Error("the run is closed")

    def __iter__(self):
        return self

    def __next__(self):
        """The next chunk's latents [frames, C, h, w]."""
        with self.ctx.lock:
            self._check_open()
            return self._next()

    def _next(self):
        x0, frames = PTR(), I64()
        status = self.c.tt_run_next(C.byref(self.ctx.ctx), self.run,
                                    C.byref(x0), C.byref(frames))
        self.ctx.see(None if status == 8 else status)      # TT_END
        if status == 8:
            raise StopIteration
        channels = self.c.tt_dit_get_config(self.c.tt_run_dit(self.run))[5]
        h, w = (int(self.setting(s)) // 8 for s in ("height", "width"))
        return _read(self.lib, x0.value, self.lib.real,
                     (frames.value, channels, h, w))

    def report(self):
        """How the Python operators did so far."""
        if self._r is None:
            raise Error("the run was made without functions to be judged")
        with self.ctx.lock:
            self._check_open()
            return _said(self.ctx, self._r)


class _Schedule(C.Structure):
    _fields_ = [("shift", F64), ("sigma", C.c_float * 1000),
                ("timestep", C.c_float * 1000), ("nsteps", INT),
                ("t", F64 * 100)]      # TT_MAX_STEPS


def schedule(steps=(1000, 750, 500, 250), shift=5.0, warp=True,
             context_noise=0):
    """(timesteps, sigmas) of a chunk: the denoising steps, then the context
    pass."""
    with Context() as ctx:
        s, given = _Schedule(), (F64 * len(steps))(*steps)
        ctx.call("schedule_init", C.byref(s), shift, C.addressof(given),
                 len(steps), warp, context_noise)
        times = [s.t[i] for i in range(s.nsteps)] + [float(context_noise)]
        return times, [s.sigma[ctx.c.tt_schedule_index(C.byref(s), t)]
                       for t in times]


def watch(module, **options):
    """Record a run of a PyTorch module: see tether_torch.py."""
    import tether_torch
    return tether_torch.watch(module, **options)


# ---- the program ----------------------------------------------------------------

def tether(*words, **more):
    """Run the program; the completed process, or Error with its sentence."""
    p = subprocess.run([program_path(), *map(str, words)], text=True,
                       capture_output=True, **more)
    if p.returncode not in (0, 1):
        raise Error(p.stderr.strip() or f"status {p.returncode}")
    return p


def validate(dump, generate=None, *options, arith="f32", against=None,
             partial=False):
    """`tether validate --dump`: a dump of another program against the run that
    `tether generate` with these words makes, or against a dump of ours."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.json")
        words = ["validate", "--dump", dump, "--arith", arith, "--json", out,
                 *options, *(["--partial"] if partial else [])]
        words += ["--against", against] if against else \
            ["--", "generate", *(generate or [])]
        p = tether(*words)
        if not os.path.exists(out):
            raise Error(p.stderr.strip() or p.stdout.strip())
        return Report(json.loads(pathlib.Path(out).read_text()), p.stdout)


def diff(a, b, *options):
    """`tether diff A B`: (equal?, what it says)."""
    p = tether("diff", a, b, *options)
    if p.returncode and not p.stdout:
        raise Error(p.stderr.strip())
    return p.returncode == 0, p.stdout



if __name__ == "__main__":
    print(version())
    print("library", library_path())
    print("program", program_path())
