"""One check for every rule, run through the public engine.

A test module fills a `Table` with one line a case, ``case(fn, *args, **kwargs)``, and hands each case to
`check_first`, `check_second`, `check_single` and `check_forward`; `test_tapes` hands all of them to `check_tape`:

first     the value is that of the plain call to the bit, the arguments are not touched, the gradient has the
          structure, dtype and shape of the arguments, and for random cotangents and directions it agrees
          with finite differences;
second    the gradient of a random projection of the gradient agrees with finite differences of it;
single    in single precision the gradient is float32 and agrees with the one in double precision;
forward   the tangent of the value has its structure, dtype and shape, and for random directions and cotangents the
          forward mode says what the reverse mode says, and agrees with finite differences; for every fourth case both
          modes find the same Jacobian;
tape      the reverse tape does nothing in vain: see `needless`.

Floats, complex numbers and arrays of them are differentiated, in nested lists and tuples too; ints are
constants of the case. Of complex numbers, JAX's convention is asked for: Re(sum(dz * df(v))) equals
Re(sum(dx * v)).
"""

import copy
import functools
import operator
import os
import sys
import zlib

import numpy as np
import pytest

from helpers import assert_same
from wengert import jacobian, jvp, pullback
from wengert.rules.zeros import product
from wengert.tracer.outline import Memos
from wengert.tracer.tape import Op, fn_name, ops_in

FLOATS = (float, complex, np.inexact)
# The rules are the same Python on every CPython: one of them goes through the whole of each table, and each of the
# others through a third, not all through the same one. Second order and single precision are looked at for every
# other case.
VERSION = sys.version_info[1]
WHOLE = VERSION == 13 or "WENGERT_WORLDS" in os.environ
HALF = 1 if "WENGERT_WORLDS" in os.environ else 2


class Case:
    """A call, and what is to be left out: ``second`` and ``single`` order off, another tolerance ``tol``."""

    def __init__(self, fn, args, kwargs, name=None, second=True, single=True, tol=2e-6):
        self.call = functools.partial(fn, **kwargs) if kwargs else fn
        self.args = args
        self.second, self.single, self.tol = second, single, tol
        label = name or getattr(fn, "__name__", type(fn).__name__)
        shown = ", ".join([*map(brief, args), *(f"{k}={brief(v)}" for k, v in kwargs.items())])
        self.name = f"{label}({shown})"[:90]
        self.seed = zlib.crc32(self.name.encode())


class Table:
    """The cases of a test module; ``table.each`` runs a test once for each of them."""

    def __init__(self):
        self.cases = []

    def __call__(self, fn, *args, case=None, **kwargs):
        self.cases.append(Case(fn, args, kwargs, **(case or {})))

    @property
    def each(self):
        return self._parametrize(self.cases)

    @property
    def second(self):
        return self._parametrize([c for c in self.cases if c.second][::HALF])

    @property
    def single(self):
        cases = [c for c in self.cases if c.single and has_arrays(c.args)]
        return self._parametrize(cases[::HALF])

    def _parametrize(self, cases):
        cases = cases if WHOLE else cases[VERSION % 3 :: 3]
        return pytest.mark.parametrize("case", cases, ids=[c.name for c in cases])


def brief(x):
    if isinstance(x, np.ndarray):
        return f"{x.dtype.char}{list(x.shape)}".replace(" ", "")
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(map(brief, x)) + "]"
    return getattr(x, "__name__", None) or repr(x)


def has_arrays(tree):
    if isinstance(tree, (list, tuple)):
        return any(map(has_arrays, tree))
    return isinstance(tree, np.ndarray) and tree.dtype in (np.float64, np.complex128)


# ------------------------------------------------------------------------------- nested numbers and arrays


def is_leaf(x):
    return isinstance(x, FLOATS) or (isinstance(x, np.ndarray) and x.dtype.kind in "fc")


def tree_map(fn, x, *others):
    """``fn`` on each differentiable leaf; None in the place of everything else."""
    if isinstance(x, (list, tuple)):
        parts = [
            tree_map(fn, *xs)
            for xs in zip(x, *(o if o is not None else [None] * len(x) for o in others))
        ]
        return tuple(parts) if isinstance(x, tuple) else parts
    return fn(x, *others) if is_leaf(x) else None


def leaves(x):
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    return [x] if is_leaf(x) else []


def random_like(x, rng):
    """Random numbers of the kind, shape and dtype of ``x``."""

    def one(leaf):
        r = rng.normal(size=np.shape(leaf))
        if np.iscomplexobj(leaf):
            r = r + 1j * rng.normal(size=np.shape(leaf))
        if isinstance(leaf, np.ndarray):
            return np.asarray(r, leaf.dtype)
        return type(leaf)(r)

    return tree_map(one, x)


def shifted(x, v, h):
    """``x + h v`` on the differentiable leaves, everything else as it is."""
    if isinstance(x, (list, tuple)):
        parts = [shifted(a, b, h) for a, b in zip(x, v)]
        return tuple(parts) if isinstance(x, tuple) else parts
    if not is_leaf(x):
        return x
    if not isinstance(x, np.ndarray):
        return x + h * v
    y = x.copy(order="K")  # what reads elements in the order of memory must find the same order
    y += h * v
    return y


def inner(d, v):
    """Re(sum(d * v)) over the leaves of ``v``."""
    if isinstance(v, (list, tuple)):
        return sum(inner(*pair) for pair in zip(d, v, strict=True))
    return 0.0 if v is None else float(np.sum(np.real(np.multiply(d, v))))


def derivative(f, h=1e-3):
    """f'(0) of a function of one number, by central differences of the fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


# -------------------------------------------------------------------------------------------- the checks


def check_first(case):
    rng = np.random.default_rng(case.seed)
    args = copy.deepcopy(case.args)
    expected = case.call(*copy.deepcopy(case.args))
    value, back = pullback(case.call, *args)
    assert_same(value, expected)
    assert_same(args, case.args)
    for dz in (random_like(expected, rng), *alone(random_like(expected, rng))):
        dx = back(dz)
        assert_kind(dx, case.args)
        assert_same(args, case.args)
        v = random_like(case.args, rng)
        numeric = derivative(lambda h: inner(case.call(*shifted(case.args, v, h)), dz))
        assert_near(inner(dx, v), numeric, case.tol, norm(dx) * norm(v))


def alone(dz):
    """A cotangent as it is, or each part of a tuple without the others."""
    if not isinstance(dz, (tuple, list)) or len(leaves(dz)) < 2:
        return [dz]
    return [
        type(dz)(d if i == j else None for j, d in enumerate(dz))
        for i in range(len(dz))
        if leaves(dz[i])
    ]


def check_forward(case):
    rng = np.random.default_rng(case.seed)
    args = copy.deepcopy(case.args)
    expected = case.call(*copy.deepcopy(case.args))
    v = random_like(case.args, rng)
    value, dv = jvp(case.call, args, v)
    assert_same(value, expected)
    assert_same(args, case.args)
    assert_kind(dv, expected)
    dz = random_like(expected, rng)
    forward = inner(dv, dz)
    back = pullback(case.call, *args)[1](dz)
    size = norm(dv) * norm(dz)
    exact = all(np.asarray(x).dtype in (np.float64, np.complex128) for x in leaves([*args, value]))
    assert_near(forward, inner(back, v), 1e-9 if exact else case.tol, size)
    numeric = derivative(lambda h: inner(case.call(*shifted(case.args, v, h)), dz))
    assert_near(forward, numeric, case.tol, size)
    columns = exact and leaves(value) and case.seed % 4 == 0  # of bools there are none
    if columns and not any(map(np.iscomplexobj, leaves([*args, value]))):
        check_columns(case, dv, v)


def check_columns(case, dv, v):
    """Both modes find the same Jacobian, all columns at once, and its product with ``v`` is the tangent."""
    argnums = tuple(i for i, x in enumerate(case.args) if leaves(x))
    found = [jacobian(case.call, argnums, mode)(*case.args) for mode in ("forward", "reverse")]
    for a, b in zip(leaves(found[0]), leaves(found[1]), strict=True):
        assert type(a) is type(b) and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    for blocks, d in zip(rows(found[0], dv), leaves(dv), strict=True):
        parts = zip(blocks, leaves(v), strict=True)
        product = sum(np.tensordot(j, x, np.ndim(x)) for j, x in parts)
        np.testing.assert_allclose(product, d, rtol=1e-6, atol=1e-8)


def rows(found, dv):
    """For each leaf of a result the blocks of its derivatives by all leaves of the arguments."""
    if isinstance(dv, (list, tuple)):
        return [row for part, d in zip(found, dv, strict=True) for row in rows(part, d)]
    return [leaves(found)] if is_leaf(dv) else []


def check_second(case):
    rng = np.random.default_rng(case.seed)
    dz = random_like(case.call(*copy.deepcopy(case.args)), rng)
    w = random_like(case.args, rng)

    def projected(*args):
        _, back = pullback(case.call, *args)
        return project(back(dz), w)

    _, back = pullback(projected, *copy.deepcopy(case.args))
    dx = back(1.0)
    assert_kind(dx, case.args)
    v = random_like(case.args, rng)
    numeric = derivative(lambda h: projected(*shifted(case.args, v, h)))
    assert_near(inner(dx, v), numeric, 20 * case.tol, norm(dx) * norm(v))


def project(dx, w):
    """Re(sum(dx * w)) over the leaves, as a Python number, by operations that the engine can follow."""
    if isinstance(w, (list, tuple)):
        return sum([project(d, part) for d, part in zip(dx, w)], 0.0)
    if w is None or dx is None:
        return 0.0
    return np.sum(np.real(dx * w))


def check_single(case):
    rng = np.random.default_rng(case.seed)
    dz = random_like(case.call(*case.args), rng)
    double = pullback(case.call, *case.args)[1](dz)
    args = halved(case.args)
    value, back = pullback(case.call, *args)
    single = back(as_kind(dz, value))
    assert_kind(single, args)
    for a, b in zip(leaves(single), leaves(double), strict=True):
        np.testing.assert_allclose(
            a, b, rtol=2e-3, atol=2e-3 * max(1.0, np.max(np.abs(b), initial=0))
        )


def check_tape(case):
    """The tape from arguments and cotangents to gradients does nothing in vain; and that of each part of the value."""
    value = case.call(*copy.deepcopy(case.args))
    for call in (case.call, *parts_of(case.call, value)):
        _, back = pullback(call, *copy.deepcopy(case.args))
        tape = back.tape
        found = list(needless(tape, set(back.done.tape.ops)))
        assert not found, f"{case.name}: {', '.join(found)}\n{tape}"


def parts_of(call, value):
    """The functions that compute one number or array of a tuple each."""
    if isinstance(value, tuple) and len(value) > 1:
        for i in [i for i, part in enumerate(value) if is_leaf(part)]:
            yield lambda *args, i=i: call(*args)[i]


SUMS = (operator.add, np.add, operator.sub, np.subtract)
PRODUCTS = (operator.mul, np.multiply, product, operator.matmul, np.matmul)
QUOTIENTS = (operator.truediv, np.divide, operator.pow, np.power)
EMPTY = (np.zeros, np.zeros_like)
INVOLUTIONS = (np.conjugate, np.swapaxes, operator.neg, np.negative)


def needless(tape, forward):
    """Work on a tape that could be left out, in words; ``forward`` are the ops of the function itself."""
    needed = set(ops_in(tape.result))
    for op in reversed(tape.ops):
        if op in needed:
            needed.update(op.operands())
    theirs = {(op.site, x) for op in forward for x in op.args if type(x) in (int, float)}
    memos = Memos(tape.outline)
    for op in tape.ops:
        if op.kind != "call":
            continue
        seen = memos.at(op)  # each pass of a loop does its own part
        key = (op.fn, picture(op.args), picture(op.kwargs))
        if op not in forward:
            name = fn_name(op.fn)
            if op not in needed:
                yield f"nobody needs {name}"
            if key in seen and op.fn not in (*EMPTY, np.ones):  # which may each be written to
                yield f"{name} is done twice"
            for i, x in enumerate(op.args):
                if type(x) in (int, float) and (op.site, x) in theirs:
                    continue  # a number that the function itself multiplies by, say
                zero = is_zero(x) and not (isinstance(x, Op) and x in forward)
                if op.fn in SUMS and zero and (i == 1 or op.fn in (operator.add, np.add)):
                    yield f"{name} of 0"
                if op.fn in PRODUCTS and (zero or is_one(x)):
                    yield f"{name} by {'zeros' if isinstance(x, (Op, np.ndarray)) else x}"
            inner = op.args[0] if op.fn in INVOLUTIONS else None
            if isinstance(inner, Op) and inner.fn is op.fn and inner.args[1:] == op.args[1:]:
                yield f"{name} is undone"
            if op.fn in QUOTIENTS and is_one(op.args[1]):
                yield f"{name} by 1"
        seen[key] = op


def is_zero(x):
    """Whether an operand is the number 0, or an array of zeros."""
    if isinstance(x, Op):
        return x.fn in EMPTY
    if isinstance(x, np.ndarray):
        return not x.any()
    return type(x) in (int, float) and x == 0


def is_one(x):
    return type(x) in (int, float) and x == 1


def picture(tree):
    """Something hashable that equal arguments of ops have in common."""
    if isinstance(tree, Op):
        return id(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree), tuple(map(picture, tree))
    if isinstance(tree, dict):
        return tuple((key, picture(x)) for key, x in tree.items())
    if isinstance(tree, slice):
        return slice, picture((tree.start, tree.stop, tree.step))
    if isinstance(tree, np.ndarray):
        return tree.dtype, tree.shape, tree.tobytes()
    return type(tree), repr(tree)


def halved(x):
    """The same in single precision."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(halved, x))
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        return x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    return x


def as_kind(dz, value):
    """A cotangent with the dtypes of ``value``."""
    if isinstance(value, (list, tuple)):
        return type(dz)(as_kind(d, v) for d, v in zip(dz, value))
    if dz is None or not isinstance(value, (np.ndarray, np.generic)):
        return dz
    return (
        np.asarray(dz).astype(value.dtype)
        if isinstance(value, np.ndarray)
        else value.dtype.type(dz)
    )


def assert_kind(dx, x):
    """A gradient has the structure of the argument, and its leaves the shape and the dtype."""
    if isinstance(x, (list, tuple)):
        assert type(dx) is type(x), (dx, x)
        assert len(dx) == len(x)
        for d, part in zip(dx, x):
            assert_kind(d, part)
    elif is_leaf(x):
        assert type(dx) is type(x), (type(dx), type(x))
        if isinstance(x, np.ndarray):
            assert dx.dtype == x.dtype and dx.shape == x.shape
    elif isinstance(x, np.integer):
        assert (
            dx is None or type(dx) is float
        )  # of an index; of an integer that depends on a Python int
    elif not isinstance(x, int):
        assert dx is None


def norm(tree):
    return float(np.sqrt(sum(np.sum(np.abs(x) ** 2) for x in leaves(tree))))


def assert_near(analytic, numeric, tol, size=1.0):
    assert abs(analytic - numeric) <= tol * max(1.0, size, abs(numeric)), (analytic, numeric)
