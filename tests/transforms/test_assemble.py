"""Assembled tapes: Python source that computes what the tape computed, to the bit, and never for another path."""

import gc
import linecache
import math
import operator
import re
import traceback

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import assert_same
from wengert import explain, jit, reverse, trace, value_and_grad
from wengert.tracer.tape import NOWHERE, Guard, Input, Tape, append, ops_in, primal
from wengert.transforms.assemble import Assembly, assembled, same, source_of

V = np.array([0.5, -1.2, 2.0])
M = np.arange(6.0).reshape(2, 3) - 2.5


def agrees(tape):
    """The assembled tape gives the tape's own values, and leaves its inputs alone."""
    values = [np.copy(x.value) if isinstance(x.value, np.ndarray) else x.value for x in tape.inputs]
    before = [np.copy(x) if isinstance(x, np.ndarray) else x for x in values]
    assert_same(assembled(tape)(*values), primal(tape.result))
    assert_same(values, before)


def written(f, *args):
    return source_of(trace(f, *args), "f", {})


# ---------------------------------------------------------------------------------------------- programs


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def writes(v):
    w = v * 2.0
    w[0] = v[1]
    w[1:] += v[:-1]
    u = w[::-1]
    u[0] = 3.0
    return w.dot(w) + u[1]


def gathers(v):
    return np.sum(v[[0, 0, 2]] * v[[1, 2, 2]])


def structure(d):
    return d["a"] * 2.0 + sum(d["b"])


def decisions(x):
    y = x if x > 0 else -x
    while y < 100.0:
        y = y * 3.0
    return math.log(y)


def pieces(m):
    q, r = np.linalg.qr(m.T)
    return np.sum(q * q) + np.trace(r) + np.einsum("ij,ij->", m, m)


def stacks(x, y):
    return np.array([x, y, x * y]) @ np.array([[1.0, x, 2.0]] * 3) @ np.ones(3)


PROGRAMS = [
    (lambda a, b: a / (a + b * b), 2.0, 3.0),
    (lambda x: -((x**-1.8) ** 2) % 0.7, 1.3),
    (lambda x: (-2.0) ** 3 * x + (-0.0) * x, 1.3),
    (lambda x: np.float32(3.0) * x, np.float32(0.1)),
    (lambda x: np.sum(np.where(x > 0, np.log(np.abs(x)), 0.0)), V),
    (lambda x: np.mean(x, axis=0, keepdims=True) @ x.T @ x, M),
    (lambda x: abs(x) + x.conjugate(), 1 + 2j),
    (lambda x: x * float("inf") + 1j * x, 2.0),
    (rosenbrock, V),
    (writes, V),
    (gathers, V),
    (structure, {"a": 1.0, "b": [2.0, 3.0]}),
    (decisions, 2.0),
    (pieces, M),
    (stacks, 2.0, 3.0),
]


REDUCTIONS = [
    *(
        np.sum,
        np.prod,
        np.max,
        np.amax,
        np.min,
        np.amin,
        np.mean,
        np.add.reduce,
        np.multiply.reduce,
    ),
    *(np.maximum.reduce, np.minimum.reduce, np.ndarray.sum, np.ndarray.max, np.ndarray.mean),
]


@pytest.mark.parametrize("f", REDUCTIONS, ids=range(len(REDUCTIONS)))
@pytest.mark.parametrize(
    "options", [{}, {"axis": 1}, {"axis": (0, -1)}, {"axis": None}, {"keepdims": True}], ids=str
)
def test_reductions(f, options):
    """Each by its own defaults: the axis is 0 for a ufunc's method, and all of them for a function."""
    if f in (np.maximum.reduce, np.minimum.reduce, np.add.reduce, np.multiply.reduce):
        g = lambda m: f(m, **options) * 2.0
    else:
        g = lambda m: f(m, **options) + 1.0
    for m in (
        M,
        M.astype(np.float32),
        M.T,
        np.abs(M).astype(int) * 1.0,
        np.arange(24.0).reshape(2, 3, 4),
    ):
        agrees(trace(g, m))


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_values_are_those_of_the_tape(program):
    tape = trace(*program)
    agrees(tape)
    agrees(reverse(tape, seed=False))


def test_special_values_survive():
    f = lambda x, v: (x * 0.0, v * 0.0, np.maximum(v, 0.0), v / v, np.sum(v[:0]), v[0] - v[0])
    with np.errstate(all="ignore"):
        agrees(trace(f, -1.0, np.array([-0.0, 1.0, -1.0])))
        agrees(trace(f, math.inf, np.array([math.nan, -math.inf, -0.0])))


# ------------------------------------------------------------------------- programs made up by hypothesis

SCALARS = [operator.add, operator.sub, operator.mul, np.maximum, np.hypot]
UNARY = [operator.neg, np.tanh, np.sin, np.square, np.abs, np.exp]
VIEWS = [
    lambda a: a[::-1],
    lambda a: a[1:],
    lambda a: a.T,
    lambda a: a.reshape(-1),
    lambda a: a[None],
]
STEPS = st.lists(st.tuples(*[st.integers(0, 10**6)] * 4), min_size=1, max_size=30)


def made_up(steps):
    """A program of arithmetic, views and writes on arrays, as the numbers in ``steps`` say."""

    def program(x, v, m):
        pool = [v, m, v * x, m * x, v + 1.0]
        for kind, i, j, k in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind % 5 == 0:
                pool.append(UNARY[k % len(UNARY)](np.tanh(a)))
            elif kind % 5 == 1 and (a.shape == b.shape or a.shape == () or b.shape == ()):
                pool.append(SCALARS[k % len(SCALARS)](np.tanh(a), b))
            elif kind % 5 == 2 and a.size:
                pool.append(VIEWS[k % len(VIEWS)](a))
            elif kind % 5 == 3 and i % len(pool) > 1 and a.size and a.ndim:
                a[0] = k % 7 if a.ndim > 1 else b.sum()
            elif kind % 5 == 4 and i % len(pool) > 1 and a.shape == b.shape:
                a *= b + x
            if len(pool) > 8:
                pool.pop(3)
        return [np.sum(a) for a in pool], pool[2:]

    return program


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_made_up_programs(steps):
    with np.errstate(all="ignore"):
        tape = trace(made_up(steps), 0.5, V.copy(), M.copy())
        agrees(tape)
        agrees(reverse(tape, seed=False))


# ------------------------------------------------------------------------------------------------- names


def longest(n):
    def f(x):
        for _ in range(n):
            x = x * 3.7 * (1.0 - x)
        return x

    return f


def test_names_are_reused_at_last_use():
    source = written(longest(500), 0.4)
    assert len(source.splitlines()) == 502
    assert len(set(re.findall(r"\bt\d+\b", source))) <= 2
    source = written(lambda v: np.sin(np.cos(np.sin(np.cos(v))) + v), V)
    assert len(set(re.findall(r"\bt\d+\b", source))) == 1


def test_a_name_in_use_is_not_reused():
    f = lambda t1, t3: ((t1 * t3 + t1) * (t1 - t3), t1 * t3)
    agrees(trace(f, 2.0, 3.0))
    source = written(f, 2.0, 3.0)
    assert "def f(t1, t3)" in source and "t1 = " not in source and "t3 = " not in source


def test_large_arrays_are_freed_at_last_use():
    source = written(lambda v: np.outer(v, v) @ np.outer(v, v + 1.0) @ v, np.ones(200))
    assert re.search(r"(t\d+) = (t\d+)\.dot\(\1\)\n    del \2", source)


def test_arithmetic_with_one_user_stands_inside_it():
    assert "t1 = (x * y) - ((x + 1.0) / y)" in written(lambda x, y: x * y - (x + 1.0) / y, 2.0, 3.0)
    agrees(trace(lambda x, y: x - (y - (x - (y - (x - (y - (x - (y - x))))))), 0.1, 0.7))
    shared = written(lambda x, y: (x + y) * (x + y) + math.sin(x + y), 2.0, 3.0)
    assert shared.count("x + y") == 3  # three operations on the tape


def test_what_is_cheap_is_computed_again_rather_than_kept():
    def f(x):
        early = x + 1.0
        y = early * x
        for _ in range(40):
            y = math.sin(y) * 1.5
        return y * early

    agrees(trace(f, 0.3))
    assert written(f, 0.3).count("(x + 1.0)") == 2

    def g(x):  # what it is made of is gone by then
        z = math.cos(x)
        early = z + 1.0
        y = early * x
        for _ in range(40):
            y = math.sin(y) * 1.5
        return y * early

    agrees(trace(g, 0.3))
    assert written(g, 0.3).count(" + 1.0") == 1


def test_names_stay_until_what_is_nested_has_used_them():
    def f(a, b):
        p = math.sin(a)
        q = p * b
        r = math.sin(b) * math.cos(b)
        s = math.exp(r)
        return q - s * r

    agrees(trace(f, 0.3, 0.7))
    agrees(reverse(trace(f, 0.3, 0.7)))


FLOATS = st.lists(
    st.tuples(st.integers(0, 6), *[st.integers(0, 10**6)] * 2), min_size=1, max_size=120
)


@settings(max_examples=80, deadline=None)
@given(FLOATS)
def test_made_up_arithmetic(steps):
    def f(x, y):
        pool = [x, y, x + y]
        for kind, i, j in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind > 4:
                pool.append(math.sin(a))
            else:
                c = (a + b, a - b, a * b, a / (b * b + 1.0), 0.5 - a)[kind]
                pool.append(c if abs(c) < 1e3 else math.cos(c))
            if j % 3 == 0 and len(pool) > 6:
                pool.pop(i % 4)
        return pool

    tape = trace(f, 0.3, 0.7)
    agrees(tape)
    agrees(reverse(tape, seed=False))


def test_linear_in_length():
    """No recursion over the tape, and twenty thousand operations are written at once."""
    agrees(trace(longest(7000), 0.4))


# ------------------------------------------------------------------------------------------------ guards


def test_guards_stand_where_the_decision_is_made():
    tape = trace(lambda x: math.log(x) if x > 1.0 else x * 2.0, 3.0)
    assert source_of(tape, "f", {}).splitlines() == [
        "def f(x):",
        "    if not (x > 1.0): return None",
        "    t1 = log(x)",
        "    return t1",
    ]
    f = assembled(tape)
    assert f(3.0) == math.log(3.0)
    assert f(0.5) is None
    assert f(math.nan) is None


def guarded(value, other=None):
    """A function that says whether the guard on ``value`` holds for its argument."""
    tape = Tape()
    x = Input("x", value, tape)
    tape.ops = [x, Guard(operator.eq, (x,), value, NOWHERE, tape)]
    tape.result = True
    return assembled(tape)


class Label(str):
    pass


@pytest.mark.parametrize(
    "value, others",
    [
        (True, [False]),
        (False, [True]),
        (None, [0, False]),
        (3, [4, 10**30]),
        (2.5, [2.5000000000000004, math.nan, math.inf]),
        (0.0, [-0.0, 1.0]),
        (-0.0, [0.0]),
        (math.inf, [-math.inf, 1.0]),
        ("a", ["b", ""]),
        (b"a", [b"b"]),
        ((1, -0.0), [(1, 0.0), (1.0, -0.0), (1,)]),
        (1 - 2j, [1 + 2j, 1.0]),
        (np.int64(3), [np.int64(4), np.int32(3)]),
        (np.array([1.0, -0.0]), [np.array([1.0, 0.0]), np.array([1, 0]), np.array([[1.0, -0.0]])]),
    ],
    ids=repr,
)
def test_guards_are_exact(value, others):
    f = guarded(value)
    assert f(value)
    for other in others:
        assert f(other) is None, other


def test_a_guard_on_nan_never_holds():
    assert guarded(math.nan)(math.nan) is None
    assert not same(math.nan, math.nan)
    assert not same(np.array([math.nan]), np.array([math.nan]))


def test_a_value_of_another_type_is_a_miss():
    """What follows was traced for a float; a negative number to a fractional power is none."""
    f = assembled(trace(lambda x: x**0.5 * 2.0, 4.0))
    assert f(9.0) == 6.0
    assert f(-9.0) is None
    assert assembled(trace(lambda x: x**2 * 2.0, 4.0))(-9.0) == 162.0


def test_a_shape_that_hangs_on_values_is_checked():
    f = assembled(trace(lambda v: v[v > 0] * 2.0, V))
    assert_same(f(-V[::-1]) is None, True)
    assert_same(f(np.array([3.0, 1.0, -1.0])), np.array([6.0, 2.0]))
    assert assembled(trace(lambda v: np.unique(v), V))(np.ones(3)) is None
    assert assembled(trace(lambda v: np.repeat(v, np.argmax(v)), V))(-V) is None


# ------------------------------------------------------------------------------------- pieces of a program


def test_effects_and_inputs_are_left_to_the_caller():
    printed = []
    tape = trace(lambda x: printed.append(x * 2.0) or x + 1.0, 2.0)
    assert printed == [4.0]
    effects = [op for op in tape.ops if op.kind == "effect"]
    assembly = Assembly({})
    for op in tape.inputs:
        assembly.bind(op, op.name)
    lines = assembly.emit(tape.ops, set(ops_in(tape.result)), "raise LookupError")
    assert len(effects) == 1 and len(lines) == 2
    assert (
        assembly.expression(tuple(effects[0].operands())) == "(t1,)"
    )  # its operand is still there


def test_fork_is_a_state_of_its_own():
    tape = Tape()
    x = Input("x", 2.0, tape)
    a = append(tape, operator.add, (x, 1.0), {}, 3.0, NOWHERE)
    v = append(tape, np.full, (3, a), {}, np.full(3, 3.0), NOWHERE)
    w = append(tape, np.exp, (v,), {}, np.exp(v.value), NOWHERE)
    assembly = Assembly({})
    assembly.bind(x, "x")
    lines = assembly.emit([a, v], {v}, "miss")
    branch = assembly.fork()
    assert branch.emit([w], {w, v}, "miss") == ["    t2 = exp(t1)"]  # v lives on
    assert assembly.emit([w], {w}, "miss") == ["    exp(t1, t1)"]
    assert lines == ["    t1 = x + 1.0", "    t1 = full(3, t1)"]
    assert branch.expression([v, w]) == "[t1, t2]"


def test_expression_of_a_structure():
    tape = trace(lambda x: {"a": [x * 2.0, (x,)], 3: None}, 2.0)
    agrees(tape)
    assert "return {'a': [t1, (x,)], 3: None}" in source_of(tape, "f", {})


def test_opaque_calls_keep_their_hands_off():
    """An unknown function may keep what it is given: its arrays are never written into."""
    kept = []

    def stash(a):
        kept.append(a)
        return a

    tape = Tape()
    x = Input("x", V, tape)
    a = append(tape, np.exp, (x,), {}, np.exp(V), NOWHERE)
    b = append(tape, stash, (a,), {}, a.value, NOWHERE)
    tape.ops = [x, a, b, append(Tape(), np.exp, (b,), {}, np.exp(b.value), NOWHERE)]
    tape.result = tape.ops[-1]
    agrees(tape)
    assert_same(kept[-1], np.exp(V))


# ----------------------------------------------------------------------------------------- the function


def test_tracebacks_show_the_statement():
    f = assembled(trace(lambda x: 1.0 / (x - 1.0), 2.0), "reciprocal")
    with pytest.raises(ZeroDivisionError) as error:
        f(1.0)
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert last.filename.startswith("<wengert ")
    assert last.line == "t1 = 1.0 / (x - 1.0)"


def test_source_is_forgotten_with_its_function():
    f = assembled(trace(lambda x: x * 2.0, 2.0))
    filename = f.__code__.co_filename
    assert filename in linecache.cache
    del f
    gc.collect()
    assert filename not in linecache.cache


def test_shares_of_an_extreme_value_lie_in_an_array_that_nobody_needs():
    def nearest(x):
        distances = x * 2.0 - 1.0
        return np.sum(np.min(distances, axis=1))

    def of_the_argument(x):
        return np.sum(np.min(x, axis=1))

    rng = np.random.default_rng(0)
    for f, shared in ((nearest, True), (of_the_argument, False)):
        cached = value_and_grad(f)
        for number in range(4):
            x = rng.normal(size=(5, 7))
            if number == 3:
                x[2, 1:4] = -9.0  # a tie
            before = x.copy()
            value, gradient = cached(x)
            assert value == f(x)
            np.testing.assert_array_equal(x, before)
            with jit(False):
                np.testing.assert_array_equal(gradient, cached(x)[1])
        assert (", out=t" in explain(cached, x).source) == shared
