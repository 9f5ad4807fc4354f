"""Memory that arrays share with one another and with other things, and what C code writes into it."""

import array
import collections
import copy
import ctypes
import functools
import io
import itertools
import math
import operator
import os
import random
import statistics
import struct
import tempfile
import types
import warnings

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.lib.stride_tricks import sliding_window_view as swv

import wengert
from helpers import Verdicts

sp = pytest.importorskip("scipy.sparse")
spsolve = pytest.importorskip("scipy.sparse.linalg").spsolve

pytestmark = pytest.mark.filterwarnings("ignore")  # of what NumPy wants to do without

FOLDER = tempfile.TemporaryDirectory()
FILE = os.path.join(FOLDER.name, "numbers")

programs = Verdicts(
    os.path.basename(__file__),
    [(0.5, -1.2, 2.0), (1.5, 0.2, 1.0), (0.5, -1.2, 2.0), (0.1, 0.3, 0.7)],
)

REFUSED = {
    "array_array_append",
    "array_array_extend",
    "array_array_item",
    "array_array_of_array",
    "array_array_set",
    "array_array_sum",
    "array_interface",
    "array_opsetitem",
    "array_set_between",
    "as_array_ptr",
    "asarray_memoryview",
    "bsr_matrix dense",
    "bytearray_bytes",
    "bytearray_set_between",
    "bytearray_struct",
    "byteswap",
    "c_double",
    "csc_array coo",
    "csc_array dense",
    "csc_matrix dense",
    "csr_array dense",
    "csr_matrix coo",
    "csr_matrix dense",
    "ctypes_array_init",
    "ctypes_array_item",
    "ctypes_array_set",
    "ctypes_set_between",
    "data_frombuffer",
    "dia_mul_sum",
    "dia_spsolve",
    "dia_toarray",
    "diags_csr",
    "dok_set",
    "dtype",
    "einsum_view_write",
    "from_address",
    "from_buffer",
    "from_buffer_write",
    "frombuffer_memoryview_ndarray",
    "kron_diags",
    "libm_sqrt",
    "lil_matrix dense",
    "lil_set",
    "masked",
    "memcpy",
    "memcpy_equal",
    "memmap_fromfile",
    "memmap_twice",
    "memmap_write",
    "memmove_equal",
    "memmove_equal_zeros",
    "memoryview_read",
    "memoryview_write",
    "memset",
    "modf",
    "mv_set_between",
    "nditer",
    "object_arr",
    "pointer_read",
    "pointer_write",
    "rec_copy",
    "rec_item",
    "rec_iter",
    "rec_tolist",
    "resize",
    "save_load",
    "save_load_bytesio",
    "setfield",
    "shape_on_argument of an argument",
    "through bytes of plain array",
    "through bytes of plain ctypes",
    "tobytes_frombuffer",
    "view_bytes_back",
    "view_f32",
    "view_int64",
    "view_int64_write",
    "write_bytes_of",
}


def of_array(f, name=None):
    """A program on an array that is an argument, and on one that was computed."""
    name = name or f.__name__
    refused = name in REFUSED
    of_argument = f"{name} of an argument"
    programs.argument(
        of_argument, lambda *xs: np.array(xs), f, refused=refused or of_argument in REFUSED
    )
    programs.numbers(f"{name}", lambda x: f(np.array([x * x, x, 3 * x])), size=1, refused=refused)
    return f


@of_array
def dlpack_read(v):
    w = np.from_dlpack(v)
    return float((w * v).sum())


@of_array
def dlpack_after_write(v):
    w = np.from_dlpack(v)
    v[0] = v[1] * v[2]
    return float((w * w).sum())


@of_array
def dlpack_of_computed_write(v):
    y = v * 2
    w = np.from_dlpack(y)
    y[1] = y[0] * y[2]
    return float(w.sum() + (w * w)[1])


@of_array
def dlpack_write_through(v):
    y = v * 2
    w = np.from_dlpack(y)
    try:
        w[0] = y[1] * 5.0
    except ValueError:
        w = w.copy()
        w[0] = 3.0 * y[1]
    return float((y * y).sum() + w[0])


@of_array
def swv_write(v):
    y = v * 1.0
    w = swv(y, 2, writeable=True)
    w[0] = y[1] * y[2]
    return float((y * y * y).sum())


@of_array
def swv_iwrite(v):
    y = v * 1.0
    w = swv(y, 2, writeable=True)
    w[1, 0] *= y[2]
    return float((y * y).sum() + (w * w).sum())


@of_array
def swv_row_iwrite(v):
    y = v * 1.0
    w = swv(y, 2, writeable=True)[0]
    w *= y[2]
    return float((y * y).sum())


@of_array
def swv_read_after(v):
    y = v * 1.0
    w = swv(y, 2)
    y[1] = y[0] * y[2]
    return float((w * w).sum())


@of_array
def as_strided_read(v):
    y = v * 1.0
    w = as_strided(y, (2, 2), (8, 8))
    y[1] = y[0] * y[2]
    return float((w * w).sum())


@of_array
def as_strided_write(v):
    y = v * 1.0
    w = as_strided(y, (2,), (16,))
    w[1] = y[0] * y[1]
    return float((y * y).sum())


@of_array
def as_strided_overlap_write(v):
    y = v * 1.0
    w = as_strided(y, (2, 2), (8, 8))
    w[0, 1] = y[0] * y[1]
    return float((y * y).sum() + w[1, 0])


@of_array
def bytearray_two_views(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    c = np.frombuffer(b)
    a[:] = v * v
    return float((c * v).sum())


@of_array
def bytearray_later_view(v):
    b = bytearray(24)
    a = np.frombuffer(b, dtype=float)
    a[:] = v * v
    return float(np.frombuffer(b)[1])


@of_array
def bytearray_bytes(v):
    b = bytearray(24)
    a = np.frombuffer(b, dtype=float)
    a[:] = v * v
    return float(np.frombuffer(bytes(b))[1])


@of_array
def bytearray_struct(v):
    b = bytearray(24)
    a = np.frombuffer(b, dtype=float)
    a[:] = v * v
    return struct.unpack_from("d", b, 8)[0]


@of_array
def array_array_sum(v):
    b = array.array("d", [0.0] * 3)
    a = np.frombuffer(b)
    a[:] = v * v
    return float(sum(b))


@of_array
def array_array_item(v):
    b = array.array("d", [0.0] * 3)
    a = np.frombuffer(b)
    a[:] = v * v
    return b[1] * 2


@of_array
def array_array_of_array(v):
    b = array.array("d", v * v)
    return b[1] * 2


@of_array
def array_array_set(v):
    b = array.array("d", [0.0] * 3)
    b[0] = v[1] * v[2]
    return float(np.frombuffer(b)[0])


@of_array
def array_array_append(v):
    b = array.array("d")
    b.append(v[0] * v[1])
    return b[0]


@of_array
def array_array_extend(v):
    b = array.array("d")
    b.extend(v * v)
    return b[0] * b[1]


@of_array
def memoryview_read(v):
    y = v * v
    m = memoryview(y)
    return m[1] * 2


@of_array
def memoryview_write(v):
    y = np.zeros(3)
    m = memoryview(y)
    m[1] = float(v[0] * v[1])
    return float((y * y).sum())


@of_array
def frombuffer_memoryview_ndarray(v):
    y = np.zeros(3)
    m = memoryview(y)
    z = np.frombuffer(m)
    z[1] = v[0] * v[1]
    return float((y * y).sum())


@of_array
def asarray_memoryview(v):
    y = np.zeros(3)
    z = np.asarray(memoryview(y))
    z[1] = v[0] * v[1]
    return float((y * y).sum())


@of_array
def frombuffer_ndarray(v):
    y = np.zeros(3)
    z = np.frombuffer(y)
    z[1] = v[0] * v[1]
    return float((y * y).sum())


@of_array
def frombuffer_of_traced(v):
    y = v * v
    z = np.frombuffer(y)
    return float((z * z).sum())


@of_array
def tobytes_frombuffer(v):
    y = v * v
    z = np.frombuffer(y.tobytes())
    return float((z * z).sum())


@of_array
def data_frombuffer(v):
    y = v * v
    z = np.frombuffer(y.data)
    return float((z * z).sum())


@of_array
def complex_view_write(v):
    a = np.zeros(4)
    a.view(complex)[0] = complex(v[0], v[0] * v[1])
    return float(a[1])


@of_array
def complex_view_both(v):
    a = np.zeros(4)
    c = a.view(complex)
    c[0] = v[0] * 1j + v[1]
    a[0] = v[2] * a[1]
    return float((c * c).real.sum())


@of_array
def real_view_of_complex_write(v):
    a = np.zeros(2, complex)
    a.view(float)[1] = v[0] * v[1]
    return float(a[0].imag * v[2])


@of_array
def real_imag_write(v):
    a = np.zeros(2, complex)
    a.real[:] = v[:2] * v[2]
    a.imag[0] = v[0]
    return float((a * a).real.sum())


@of_array
def view_float_of_complex(v):
    a = (v[:2] * v[2]).astype(complex)
    return float((a.view(float) ** 2).sum())


@of_array
def view_int64(v):
    y = v * v
    return float(y.view(np.int64).sum() % 7)


@of_array
def view_bytes_back(v):
    y = v * v
    return float(y.view(np.uint8).view(float)[1])


@of_array
def view_int64_write(v):
    y = v * v
    i = y.view(np.int64)
    i[0] = y.view(np.int64)[1]
    return float(y[0])


@of_array
def view_f32(v):
    y = (v * v).view(np.float32)
    return float(y[0])


@of_array
def write_bytes_of(v):
    y = np.zeros(3)
    y.view(np.uint8)[:] = (v * v).view(np.uint8)
    return float(y.sum())


@of_array
def shape(v):
    y = v * v
    y.shape = (3, 1)
    return float((y @ y.T).sum())


@of_array
def shape_write(v):
    y = v * v
    y.shape = (3, 1)
    y[0, 0] = v[1]
    return float((y * v).sum())


@of_array
def shape_9(v):
    y = np.outer(v, v)
    y.shape = (9,)
    return float((y * np.arange(9)).sum())


@of_array
def shape_with_view(v):
    y = np.outer(v, v * v)
    z = y[1]
    y.shape = 9
    z[0] = v[0]
    return float((y * np.arange(9)).sum())


@of_array
def shape_with_view2(v):
    y = np.outer(v, v * v)
    z = y.T
    y.shape = 9
    y[1] = v[0]
    return float((z[1] * np.arange(3)).sum())


@of_array
def shape_twice(v):
    y = np.outer(v, v * v)
    y.shape = 9
    y.shape = (3, 3)
    return float((y[0] * np.arange(3)).sum())


@of_array
def shape_on_argument(v):
    v.shape = (3, 1)
    r = float((v * v.T)[0, 1])
    v.shape = (3,)
    return r


@of_array
def strides(v):
    y = np.outer(v, v * v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.strides = (8, 24)
    return float((y[0] * np.arange(3)).sum())


@of_array
def dtype(v):
    y = v * v
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.dtype = np.int64
    return float(y[0] % 7)


@of_array
def dtype_complex(v):
    y = np.r_[v * v, v[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.dtype = complex
    return float(y[0].imag * y[1].imag)


@of_array
def resize(v):
    y = v.copy()
    y.resize(2)
    return float(y[0] * y[1])


@of_array
def flat(v):
    y = np.zeros(3)
    y.flat[1] = v[0] * v[1]
    y.flat = v * y
    return float((y * y).sum())


@of_array
def setfield(v):
    y = np.zeros(3)
    y.setfield(v * v, float)
    return float((y * y).sum())


@of_array
def byteswap(v):
    y = v * v
    y.byteswap(inplace=True)
    y.byteswap(inplace=True)
    return float((y * y).sum())


@of_array
def real(v):
    y = np.zeros(3)
    y.real = v * v
    return float((y * y).sum())


@of_array
def imag(v):
    y = np.zeros(3, complex)
    y.imag = v * v
    return float((y * y).real.sum())


# sparse
@of_array
def diags(v):
    return float((sp.diags([v], [0]) @ np.ones(3)).sum())


@of_array
def diags_plain(v):
    return float((sp.diags(v) @ v).sum())


@of_array
def diags_2(v):
    return float((sp.diags([v[:2], v], [-1, 0]) @ v).sum())


@of_array
def diags_csr(v):
    return float((sp.diags([v[:2], v], [-1, 0], format="csr") @ v).sum())


@of_array
def diags_array(v):
    return float((sp.diags_array([v], offsets=[0]) @ v).sum())


@of_array
def spdiags(v):
    return float((sp.spdiags(v[None], [0], 3, 3) @ v).sum())


@of_array
def dia_matrix(v):
    return float((sp.dia_matrix((v[None], [0]), shape=(3, 3)) @ v).sum())


@of_array
def dia_toarray(v):
    return float((sp.dia_array((v[None], [0]), shape=(3, 3)).toarray() @ v).sum())


for kind in (
    "csr_matrix",
    "csc_matrix",
    "coo_matrix",
    "csr_array",
    "coo_array",
    "csc_array",
    "bsr_matrix",
    "lil_matrix",
    "dok_matrix",
    "dia_array",
):

    @functools.partial(of_array, name=f"{kind} dense")
    def made(v, kind=kind):
        return float((getattr(sp, kind)(np.outer(v, v)) @ v).sum())


for kind in ("csr_matrix", "csc_array", "coo_array"):

    @functools.partial(of_array, name=f"{kind} coo")
    def made_of_parts(v, kind=kind):
        return float((getattr(sp, kind)((v, ([0, 1, 2], [2, 1, 0])), shape=(3, 3)) @ v).sum())


@of_array
def lil_set(v):
    m = sp.lil_matrix((3, 3))
    m[0, 1] = v[0] * v[1]
    return float((m @ np.ones(3))[0])


@of_array
def dok_set(v):
    m = sp.dok_array((3, 3))
    m[0, 1] = v[0] * v[1]
    return float((m.tocsr() @ np.ones(3))[0])


@of_array
def csr_data_set(v):
    m = sp.csr_matrix(np.eye(3))
    m.data[:] = v * v
    return float((m @ v).sum())


@of_array
def csr_data(v):
    m = sp.csr_matrix(np.eye(3))
    m.data = v * v
    return float((m @ v).sum())


@of_array
def setdiag(v):
    m = sp.csr_matrix(np.eye(3))
    m.setdiag(v * v)
    return float((m @ v).sum())


@of_array
def kron_diags(v):
    return float((sp.kron(sp.diags(v), sp.eye(2)) @ np.ones(6)).sum())


@of_array
def block_diag(v):
    return float((sp.block_diag([v[None], v[None]]) @ np.ones(6)).sum())


@of_array
def dia_trace(v):
    return float(sp.diags(v).trace())


@of_array
def dia_diagonal(v):
    return float((sp.diags(v).diagonal() ** 2).sum())


@of_array
def dia_mul_sum(v):
    return float((sp.diags(v) * 2.0).sum())


@of_array
def dia_data_set(v):
    m = sp.diags(v)
    m.data[0, 0] = v[1] * v[2]
    return float((m @ v).sum())


@of_array
def dia_spsolve(v):
    return float(spsolve(sp.diags(v).tocsc(), np.ones(3)).sum())


# ctypes
libc = ctypes.CDLL(None)


@of_array
def memcpy(v):
    y = v * v
    z = np.zeros(3)
    libc.memcpy(
        z.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(24)
    )
    return float((z * z).sum())


@of_array
def memcpy_equal(v):
    y = v * v
    z = y.copy()
    libc.memcpy(
        z.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(24)
    )
    return float((z * z).sum())


@of_array
def memmove_equal(v):
    y = v * v
    z = v * v
    ctypes.memmove(z.ctypes.data, y.ctypes.data, 24)
    return float((z * z).sum())


@of_array
def memset(v):
    y = v * v
    ctypes.memset(y.ctypes.data, 0, 8)
    return float((y * y).sum())


@of_array
def memmove_equal_zeros(v):
    y = np.zeros(3)
    z = v * 0.0
    ctypes.memmove(y.ctypes.data, z.ctypes.data, 24)
    return float(y.sum())


@of_array
def ctypes_array_item(v):
    b = (ctypes.c_double * 3)()
    a = np.ctypeslib.as_array(b)
    a[:] = v * v
    return b[1] * 2


@of_array
def ctypes_array_set(v):
    b = (ctypes.c_double * 3)()
    b[1] = v[0] * v[1]
    a = np.ctypeslib.as_array(b)
    return float(a[1] * 2)


@of_array
def ctypes_array_init(v):
    b = (ctypes.c_double * 3)(*v)
    return b[1] * 2


@of_array
def c_double(v):
    return ctypes.c_double(v[0] * v[1]).value


@of_array
def pointer_read(v):
    p = v.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    return p[0] * p[1]


@of_array
def pointer_write(v):
    y = v * v
    p = y.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    p[0] = float(y[1] * y[2])
    return float((y * y).sum())


libm = ctypes.CDLL("libm.so.6")
libm.sqrt.restype = ctypes.c_double
libm.sqrt.argtypes = [ctypes.c_double]


@of_array
def libm_sqrt(v):
    return libm.sqrt(abs(v[2]))


libm.modf.restype = ctypes.c_double
libm.modf.argtypes = [ctypes.c_double, ctypes.POINTER(ctypes.c_double)]


@of_array
def modf(v):
    out = ctypes.c_double()
    f = libm.modf(float(v[2] * v[0]), ctypes.byref(out))
    return out.value + f


@of_array
def memmap_write(v):
    m = np.memmap(FILE, dtype=float, mode="w+", shape=(3,))
    m[:] = v * v
    return float((m * v).sum())


@of_array
def memmap_fromfile(v):
    m = np.memmap(FILE, dtype=float, mode="w+", shape=(3,))
    m[:] = v * v
    m.flush()
    return float(np.fromfile(FILE)[1])


@of_array
def memmap_twice(v):
    m = np.memmap(FILE, dtype=float, mode="w+", shape=(3,))
    m[:] = v * v
    m.flush()
    n = np.memmap(FILE, dtype=float, mode="r", shape=(3,))
    return float(n[1])


@of_array
def save_load(v):
    np.save(FILE + ".npy", v * v)
    return float(np.load(FILE + ".npy").sum())


@of_array
def save_load_bytesio(v):
    b = io.BytesIO()
    np.save(b, v * v)
    b.seek(0)
    return float(np.load(b).sum())


@of_array
def rec(v):
    r = np.rec.fromarrays([v * v], names="a")
    return float(r.a.sum())


@of_array
def structured_set(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    r["a"] = v * v
    return float(r["a"].sum())


@of_array
def structured_set2(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    r["a"][0] = v[0] * v[1]
    return float(r["a"].sum())


@of_array
def object_arr(v):
    r = np.zeros(3, dtype=object)
    r[0] = v[0] * v[1]
    return float(r[0] * 2)


@of_array
def masked(v):
    m = np.ma.masked_array(v * v, [0, 1, 0])
    return float(m.sum())


@of_array
def broadcast_to(v):
    a = np.broadcast_to(v, (2, 3))
    return float((a * a).sum())


@of_array
def copyto(v):
    y = v * 1
    np.copyto(y[1:], y[:-1].copy())
    return float((y * y).sum())


@of_array
def strided_diag(v):
    y = v * 1
    d = np.lib.stride_tricks.as_strided(np.outer(y, y), (3,), (32,))
    return float((d * d).sum())


@of_array
def einsum_view_write(v):
    y = np.outer(v, v)
    d = np.einsum("ii->i", y)
    d *= v
    return float((y * y).sum())


@of_array
def diagonal_view(v):
    y = np.outer(v, v)
    d = y.diagonal()
    y[0, 0] = v[1]
    return float((d * d).sum())


@of_array
def nditer(v):
    y = v * 1.0
    for x in np.nditer(y, op_flags=["readwrite"]):
        x[...] = x * v[0]
    return float((y * y).sum())


@of_array
def dunder_array(v):
    y = v * 1.0
    z = y.__array__()
    z[0] = v[1] * v[2]
    return float((y * y).sum())


@of_array
def ndarray_buffer(v):
    y = v * 1.0
    z = np.ndarray((2,), float, y, 8)
    z[0] = v[0] * v[2]
    return float((y * y).sum())


@of_array
def asarray(v):
    y = v * 1.0
    z = np.asarray(y)
    z[0] = v[1] * v[2]
    return float((y * y).sum())


@of_array
def array_interface(v):
    class H:
        pass

    h = H()
    y = v * 1.0
    h.__array_interface__ = y.__array_interface__
    z = np.asarray(h)
    z[0] = v[1] * v[2]
    return float((y * y).sum())


@of_array
def from_address(v):
    y = v * 1.0
    a = y.ctypes.data
    z = np.ctypeslib.as_array((ctypes.c_double * 3).from_address(a))
    z[0] = v[1] * v[2]
    return float((y * y).sum())


@of_array
def as_array_ptr(v):
    y = v * 1.0
    z = np.ctypeslib.as_array(y.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), (3,))
    z[0] = v[1] * v[2]
    return float((y * y).sum())


@of_array
def from_buffer(v):
    b = (ctypes.c_double * 3).from_buffer(v * 1.0)
    return b[1] * 2


@of_array
def from_buffer_write(v):
    y = v * 1.0
    b = (ctypes.c_double * 3).from_buffer(y)
    b[1] = float(y[0] * y[2])
    return float((y * y).sum())


@of_array
def fromstring_plain(v):
    return float(np.fromstring(",".join(["1", "2"]), sep=",")[0] * v[0])


@of_array
def rec_item(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    r["a"][0] = v[0] * v[1]
    return float(r[0]["a"])


@of_array
def rec_overwritten(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[0] = v[0] * v[1]
    y = a * v
    r["a"] = 3.0
    return float(y.sum()) + float(r["a"].sum())


@of_array
def rec_two(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    y = a * v
    a[0] = v[2]
    return float((y + r["a"]).sum())


@of_array
def rec_iter(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    return float(sum(x["a"] for x in r))


@of_array
def rec_tolist(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    return float(sum(x[0] for x in r.tolist()))


@of_array
def rec_copy(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    return float(r.copy()["a"].sum())


@of_array
def rec_view(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    return float(r.view(float).sum())


@of_array
def rec_rev(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    a = r["a"]
    a[:] = v * v
    return float(r[::-1]["a"][0])


@of_array
def rec_sub(v):
    r = np.zeros(3, dtype=[("a", float, (2,))])
    r["a"][:, 0] = v * v
    return float(r["a"].sum())


@of_array
def recarray(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)]).view(np.recarray)
    r.a[:] = v * v
    return float(r.a.sum())


@of_array
def rec_iadd(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    r["a"] += v * v
    return float(r["a"].sum())


@of_array
def rec_out(v):
    r = np.zeros(3, dtype=[("a", float), ("b", float)])
    np.multiply(v, v, out=r["a"])
    return float(r["a"].sum())


@of_array
def bytearray_set_between(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    y = a * v
    b[8:16] = struct.pack("d", 2.0)
    z = a * v
    return float((y + z).sum())


@of_array
def pack_into_between(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    y = a * v
    struct.pack_into("d", b, 8, 2.0)
    z = a * v
    return float((y + z).sum())


@of_array
def array_set_between(v):
    b = array.array("d", [1.0, 2, 3])
    a = np.frombuffer(b)
    y = a * v
    b[1] = 5.0
    z = a * v
    return float((y + z).sum())


@of_array
def ctypes_set_between(v):
    b = (ctypes.c_double * 3)(1, 2, 3)
    a = np.frombuffer(b)
    y = a * v
    b[1] = 5.0
    z = a * v
    return float((y + z).sum())


@of_array
def mv_set_between(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    y = a * v
    memoryview(b).cast("d")[1] = 2.0
    z = a * v
    return float((y + z).sum())


@of_array
def array_reverse(v):
    b = array.array("d", [1.0, 2, 3])
    a = np.frombuffer(b)
    y = a * v
    b.reverse()
    z = a * v
    return float((y + z * z).sum())


@of_array
def array_opsetitem(v):
    b = array.array("d", [1.0, 2, 3])
    a = np.frombuffer(b)
    y = a * v
    b.byteswap()
    b.byteswap()
    operator.setitem(b, 0, 9.0)
    z = a * v
    return float((y + z * z).sum())


@of_array
def dunder_set(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    y = a * v
    b.__setitem__(slice(8, 16), struct.pack("d", 2.0))
    z = a * v
    return float((y + z).sum())


@of_array
def readinto(v):
    b = bytearray(24)
    a = np.frombuffer(b)
    y = a * v
    io.BytesIO(struct.pack("ddd", 1, 2, 3)).readinto(b)
    z = a * v
    return float((y + z).sum())


@of_array
def memset_ctypes(v):
    b = (ctypes.c_double * 3)(1, 2, 3)
    a = np.frombuffer(b)
    y = a * v
    ctypes.memset(b, 0, 8)
    z = a * v
    return float((y + z).sum())


# What is read from something in whose memory a traced array lies.


def gen(b):
    for x in b:
        yield x


def star(a, b, c):
    return b


def unpack(b):
    a, q, c = b
    return q


def unpack2(b):
    a, *q = b
    return q[0]


def ext(b):
    l = []
    l.extend(b)
    return l[1]


def iadd(b):
    l = []
    l += b
    return l[1]


def slset(b):
    l = [1, 2, 3]
    l[:] = b
    return l[1]


def loop(b):
    for i, x in enumerate(b):
        if i == 1:
            return x


def through_bytes(b):
    z = bytearray(24)
    memoryview(z)[:] = memoryview(b).cast("B")
    return struct.unpack_from("d", z, 8)[0]


USES = {
    "list": lambda b: list(b)[1],
    "tuple": lambda b: tuple(b)[1],
    "zip": lambda b: list(zip(b, b))[1][0],
    "zip for": lambda b: [p for p, q in zip(b, b)][1],
    "enum": loop,
    "map": lambda b: list(map(float, b))[1],
    "map C": lambda b: list(map(abs, b))[1],
    "iter": lambda b: (lambda i: (next(i), next(i))[1])(iter(b)),
    "star": lambda b: [*b][1],
    "stararg": lambda b: star(*b),
    "unpack": unpack,
    "unpack2": unpack2,
    "reversed": lambda b: list(reversed(b))[1],
    "sorted": lambda b: sorted(b)[1],
    "slice": lambda b: b[0:2][1],
    "tolist": lambda b: b.tolist()[1] if hasattr(b, "tolist") else b[1],
    "max": lambda b: max(b),
    "reduce": lambda b: functools.reduce(operator.add, b),
    "chain": lambda b: list(itertools.chain(b))[1],
    "islice": lambda b: list(itertools.islice(b, 1, 2))[0],
    "deque": lambda b: collections.deque(b)[1],
    "set": lambda b: max(set(b)),
    "setstar": lambda b: max({*b}),
    "ext": ext,
    "iadd": iadd,
    "slset": slset,
    "in": lambda b: 1.0 * (b[1] in b),
    "getitem": lambda b: operator.getitem(b, 1),
    "itemgetter": lambda b: operator.itemgetter(1)(b),
    "mv": lambda b: memoryview(b).cast("B").cast("d")[1],
    "bytes": lambda b: struct.unpack_from("d", bytes(b), 8)[0],
    "unpack_from": lambda b: struct.unpack_from("d", b, 8)[0],
    "tobytes": lambda b: struct.unpack_from("d", memoryview(b).tobytes(), 8)[0],
    "through bytes": through_bytes,
    "copy": lambda b: copy.copy(b)[1],
    "gen": lambda b: list(gen(b))[1],
    "listcomp": lambda b: [x for x in b][1],
    "sum": lambda b: sum(b),
    "fsum": lambda b: math.fsum(b),
    "dictfrom": lambda b: list({i: x for i, x in enumerate(b)}.values())[1],
    "index": lambda b: b[1],
    "neg": lambda b: b[-2],
    "dunder": lambda b: b.__getitem__(1),
    "np.sum": lambda b: float(np.sum(b)),
    "np.array": lambda b: float(np.array(b)[1]),
    "statistics": lambda b: statistics.fmean(b),
    "math.dist": lambda b: math.dist(list(b), [1.0, 2.0, 3.0]),
    "star tuple": lambda b: (*b,)[1],
    "filter": lambda b: list(filter(lambda z: True, b))[1],
    "accumulate": lambda b: list(itertools.accumulate(b))[1],
    "random": lambda b: random.Random(1).choice(b),
    "attr": lambda b: (lambda o: list(o.b)[1])(types.SimpleNamespace(b=b)),
    "np.float64": lambda b: float(np.float64(b[1])),
    "cmp": lambda b: float(b[1] > 0.1),
    "isinstance": lambda b: float(len(b)),
}


MADE = {"ctypes": lambda: (ctypes.c_double * 3)(), "array": lambda: array.array("d", [0.0] * 3)}
COUNTED = {"in", "cmp", "isinstance"}  # of which there is no derivative


def reading(use, make, traced):
    def f(v):
        b = make()
        a = np.frombuffer(b)
        a[:] = v * v if traced else np.array([1.0, 2.0, 3.0])
        return float(use(b)) * v[0]

    return f


for kind in MADE:
    for use in USES:
        f = reading(USES[use], MADE[kind], True)
        programs.numbers(
            f"{use} of {kind}",
            lambda x, f=f: f(np.array([x * x, x, 3 * x])),
            size=1,
            refused=use not in COUNTED,
        )
        f = reading(USES[use], MADE[kind], False)
        programs.numbers(
            f"{use} of plain {kind}",
            lambda x, f=f: f(np.array([x * x, x, 3 * x])),
            size=1,
        )


@programs.each
def test_like_python_or_refused(run, points, refused):
    programs.check(run, points, refused)


def test_constant_arrays_may_share_memory_in_any_way():
    class Keeper:
        """Stands for an object of C code, which hands out what it was given."""

        def __init__(self, array):
            self.buffer = memoryview(array)

    def f(x, k):
        a = np.array([1.0, 2.0]) * scale[0]
        kept = Keeper(a)
        a[0] = 5.0
        return x * np.asarray(kept.buffer).sum() * k

    scale = [1.0]
    for on in (False, True):
        with wengert.jit(on):
            for scale[0] in (1.0, 1.0, 1.0, 2.0, 3.0):
                assert wengert.value_and_grad(f)(1.5, 2.0) == (f(1.5, 2.0), f(1.0, 2.0))


def test_queries_see_how_arrays_lie_in_memory():
    block = np.linspace(1.0, 2.0, 12)
    sheet = block.reshape(3, 4)
    row = sheet[0]

    def f(x):
        row[row > 1.05] = x
        row[0] = x * x
        told = (
            np.shares_memory(row, sheet),
            np.may_share_memory(sheet[1], block),
            np.shares_memory(row, sheet[1]),
        )
        return (row * sheet).sum() * (told == (True, True, False))

    for on in (False, True):
        with wengert.jit(on):
            for _ in range(3):
                block[:] = np.linspace(1.0, 2.0, 12)
                value = wengert.value_and_grad(f)(1.5)[0]
                block[:] = np.linspace(1.0, 2.0, 12)
                assert value == f(1.5) != 0.0


# ------------------------------------------------------------------- memory that somebody else shows


class Other(np.ndarray):
    pass


class Lending:
    """An object with an array of its own, which NumPy makes arrays of."""

    def __init__(self, way):
        self.own = np.zeros(2)
        if way:
            setattr(self, way, getattr(self.own, way))


class Buffer:
    def __init__(self):
        self.own = np.zeros(2)

    def __buffer__(self, flags):
        return memoryview(self.own)


SHOWN = {
    "memoryview": (memoryview, lambda m: m[0]),
    "sum of a memoryview": (memoryview, sum),
    "slice of a memoryview": (memoryview, lambda m: m[::-1].tolist()[1]),
    "struct": (memoryview, lambda m: struct.unpack_from("d", m)[0]),
    "bytes": (memoryview, lambda m: struct.unpack_from("d", bytes(m))[0]),
    "nditer": (np.nditer, lambda it: sum([float(e) for e in it])),
    "nditer of two": (
        lambda a: np.nditer([a, np.ones(2)]),
        lambda it: sum(float(u) for u, v in it),
    ),
    "broadcast": (lambda a: np.broadcast(a, 2.0), lambda b: sum(u * v for u, v in b)),
    "a class of its own": (lambda a: a.view(Other), lambda m: float(m[0])),
    "asmatrix": (np.asmatrix, lambda m: float(m[0, 0])),
    "matrix": (lambda a: np.matrix(a, copy=False), lambda m: float(m[0, 0])),
    "recarray": (lambda a: a.view(np.recarray), lambda m: float(m[0])),
    "ctypes of an array": (lambda a: (ctypes.c_double * 2).from_buffer(a), lambda c: c[0]),
}


def judged(f, refused, before=lambda: None):
    """Against plain Python and differences, over several calls; or each of them is refused."""
    for on in (False, True):
        with wengert.jit(on):
            for x in (1.3, 1.3, 1.3, 0.7):
                before()
                if refused:
                    with pytest.raises(wengert.WengertError, match=os.path.basename(__file__)):
                        wengert.value_and_grad(f)(x)
                    continue
                value, slope = wengert.value_and_grad(f)(x)
                before()
                high = f(x + 1e-6)
                before()
                low = f(x - 1e-6)
                before()
                assert value == f(x)
                assert slope == pytest.approx((high - low) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_an_array_is_read_after_a_write(name):
    show, read = SHOWN[name]

    def traced(x):
        a = np.zeros(2)
        shown = show(a)
        a[0] = x
        return read(shown) * x

    def plain(x):
        a = np.zeros(2)
        shown = show(a)
        a[0] = 3.0
        return read(shown) * x * x

    def other(x):
        a = np.ones(2)
        known = read(show(a))
        a[0] = x
        return known * a[0] * x

    judged(traced, True)
    judged(plain, False)
    judged(other, False)


def test_what_shows_an_array_outside_is_read_after_a_write():
    array = np.zeros(2)
    shown = memoryview(array), memoryview(array).cast("B").cast("d"), array.view(Other)
    packed = bytearray(16)
    numbers = np.frombuffer(packed)

    def clear():
        array[:] = numbers[:] = 0.0

    for one in shown:

        def traced(x, one=one):
            array[0] = x
            return float(one[0]) * x

        def plain(x, one=one):
            return float(one[0] + 2.0) * x * x

        judged(traced, True, clear)
        judged(plain, False, clear)

    def packs(x):
        numbers[0] = x
        return struct.unpack_from("d", packed)[0] * x

    judged(packs, True, clear)


@pytest.mark.parametrize("operands", [1, 2])
def test_writes_by_way_of_an_iterator_of_numpys(operands):
    def walk(a):
        if operands == 1:
            return np.nditer(a, op_flags=[["readwrite"]])
        pairs = np.nditer([a, np.ones(2)], op_flags=[["readwrite"], ["readonly"]])
        return (u for u, v in pairs)

    def traced(x):
        a = np.zeros(2)
        for e in walk(a):
            e[...] = x
        return a.sum() * x

    def plain(x):
        a = np.zeros(2)
        for e in walk(a):
            e[...] = 2.0
        return a.sum() * x * x

    judged(traced, True)
    judged(plain, False)


@pytest.mark.parametrize("way", ["__array_interface__", "__array_struct__", None])
def test_objects_that_lend_numpy_their_array(way):
    if way is None and not hasattr(memoryview, "__buffer__"):
        pytest.skip("new in Python 3.12")
    make = functools.partial(Lending, way) if way else Buffer
    known = make()

    def clear():
        known.own[:] = 0.0

    def through_array(x):
        own = known.own
        a = np.asarray(known)
        a[0] = x
        return own[0] * x

    def through_own(x):
        a = np.asarray(known)
        known.own[0] = x
        return a[0] * x

    def local(x):
        mine = Buffer()
        a = np.asarray(mine)
        a[0] = x
        return mine.own[0] * x

    def local_view(x):
        mine = Buffer()
        shown = memoryview(mine)
        mine.own[0] = x
        return shown[0] * x

    judged(through_array, False, clear)
    if way:
        judged(through_own, False, clear)
    else:
        judged(local, True)
        judged(local_view, True)


class Marked(np.ndarray):
    pass


class Keeper:
    def __init__(self):
        self.values = np.arange(1.0, 4.0)


KEEPER = Keeper()
OTHERS = {
    "subclass": (np.arange(1.0, 4.0).view(Marked), np.asarray),
    "view": (np.arange(1.0, 4.0).view(Marked), lambda a: a.view(np.ndarray)[::-1]),
    "matrix": (np.array([[1.0, 2.0, 3.0]]).view(np.matrix), lambda a: np.asarray(a)[0]),
    "flat": (np.array([[1.0, 2.0, 3.0]]).view(np.matrix), lambda a: a.A1),
    "masked": (np.ma.array([1.0, 2.0, 3.0]), lambda a: a.data),
    "getdata": (np.ma.array([1.0, 2.0, 3.0]), np.ma.getdata),
    "attribute": (KEEPER.values, lambda a: operator.attrgetter("values")(KEEPER)),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("way", ["pullback", "linearize"])
@pytest.mark.parametrize("kind", OTHERS)
def test_a_derivative_that_is_asked_for_later_has_the_values_of_the_run(kind, way, on):
    """An array in the memory of an object outside, of another class, was read again when that had been written to."""
    outside, plain = OTHERS[kind]

    def f(x):
        return (plain(outside) * x).sum()

    x = np.ones(3)
    with wengert.jit(on):
        for _ in range(4):
            _, later = getattr(wengert, way)(f, x)
            before = np.array(later(1.0 if way == "pullback" else x))
            outside[...] = outside + 1.0
            after = np.array(later(1.0 if way == "pullback" else x))
            outside[...] = outside - 1.0
            np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "views", [lambda y: (y.reshape(2, 3), y.reshape(2, 3)), lambda y: (y, y[::-1])]
)
def test_what_is_written_over_its_own_source_is_not_what_was_there(views, on):
    def f(x):
        y = x.copy()
        source, target = views(y)
        np.random.default_rng(5).permuted(source, out=target)
        return y

    x = np.arange(6.0)
    for _ in range(3):
        with wengert.jit(on):
            np.testing.assert_array_equal(wengert.jit(f)(x), f(x))
            with pytest.raises(wengert.NoRuleError, match="permuted"):
                wengert.jacobian(f)(x)
