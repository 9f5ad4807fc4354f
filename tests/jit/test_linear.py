"""A repeated `linearize` is answered by a program: what plain calls give, in a world that changes between them."""

import copy
import math
import random
import warnings
from collections import namedtuple

import numpy as np
import pytest

from helpers import assert_close, assert_same, state
from wengert import TangentError, clear_cache, grad, jit, jvp, linearize
from wengert.transforms import cache

Pair = namedtuple("Pair", "first second")
RNG = np.random.default_rng(7)
A = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
LOG: list = []


class Body:
    def __init__(self, mass, place):
        self.mass, self.place = mass, place


def numbers(rng):
    return rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0)


def arrays(rng):
    return np.array([rng.uniform(-1, 2) for _ in range(3)]), rng.uniform(0.5, 2.0)


def quotient(x, y):
    return (x * y + 1.0) / (x + y)


def decides(x, y):
    return math.sin(x) * y if x > y else x * x - y


def loops(x, y):
    for i in range(100):
        x = math.sin(x) * y + i * 0.01
    return x


def rounds(x, y):
    while x < 20.0:
        x = x * x + y
    return x / y


def several(x, y):
    return {"a": x * y, "b": [x, (y, 2.0)], "c": "text", "d": None, "e": Pair(x - y, 1)}


def unused(x, y):
    return x * x


def constant(x, y):
    return 3.0


def writes(x, y):
    x[1] = y * y
    return x * x


def appends(x, y):
    LOG.append(x * y)
    return x / y


def draws(x, y):
    return x * random.random() + y


def shares(x, y):
    z = np.tanh(x) * y
    return z, z, z[1:]


def product(x, y):
    return np.linalg.solve(A + np.diag(x * x), np.cos(x)) * y


def reads(x, y):
    return SCALE["of"] * x * y


def silent(x, y):
    return np.sqrt(np.abs(x - x) + 0.0) + x * y


def raises(x, y):
    if y > 1.6:
        raise ValueError(f"y is {y}")
    return x * y


def nested(x, y):
    return grad(lambda z: math.sin(z) * y)(x) * y


def complexes(x, y):
    return np.exp(1j * x) * y


SCALE = {"of": 2.0}
FUNCTIONS = [
    *[(f, numbers) for f in (quotient, decides, loops, rounds, several, unused, constant)],
    *[(f, numbers) for f in (appends, draws, reads, raises, nested)],
    *[(f, arrays) for f in (writes, shares, product, silent, complexes, several)],
]


def tangents_for(args, rng):
    return tuple([rng.uniform(-1, 1) * (np.arange(1.0, 4.0) if np.ndim(x) else 1.0) for x in args])


def asked(ask):
    """What a call gives, or raises, and what it leaves behind."""
    random.seed(11)
    try:
        found = ask()
    except ValueError as error:
        return repr(error), state(LOG)
    return found, state(LOG)


@pytest.mark.parametrize("f, draw", FUNCTIONS, ids=lambda x: getattr(x, "__name__", None))
def test_what_is_kept_is_what_is_traced(f, draw):
    clear_cache()
    LOG.clear()
    rng = random.Random(3)
    for k in range(12):
        SCALE["of"] = 2.0 if k < 8 else 3.0
        args = draw(rng)
        directions = [tangents_for(args, rng), (None, tangents_for(args, rng)[1]), (None, None)]

        def kept(args, directions=directions):
            value, f_jvp = linearize(f, *args)
            return value, [f_jvp(*d) for d in (*directions, directions[0])]

        def traced(args, directions=directions):
            with jit(False):
                value, _ = jvp(f, copy.deepcopy(args), (None, None))
                del LOG[-1:]
                found = [jvp(f, copy.deepcopy(args), d)[1] for d in (*directions, directions[0])]
                del LOG[-4:]
                plain = f(*args)
            assert_same(value, plain)
            return value, found

        mine, others = copy.deepcopy(args), copy.deepcopy(args)
        length = len(LOG)
        a = asked(lambda mine=mine: kept(mine))
        del LOG[length:]
        random.seed(11)
        if f is draws:  # each call draws anew
            (value, found), left = a
            assert value == args[0] * random.random() + args[1]
            continue
        b = asked(lambda others=others: traced(others))
        if isinstance(b[0], str):
            assert a[0] == b[0]
        else:
            assert_same(a[0][0], b[0][0])
            assert_close(a[0][1], b[0][1], tol=1e-11)
        assert_same(mine, others)
        assert a[1] == b[1]
    (entry,) = [e for e in cache.entries.values() if e.title.startswith("linearize")]
    assert entry.unfit is None and entry.hits > 3


def test_it_answers_for_the_moment_of_its_call():
    def f(x):
        return SCALE["of"] * (A @ x) * x

    for k in range(6):
        x, v = np.arange(1.0, 4.0) + k, np.array([1.0, -1.0, 0.5])
        expected = SCALE["of"] * ((A @ v) * x + (A @ x) * v)
        value, f_jvp = linearize(f, x)
        before = A.copy()
        x[:] = value[:] = A[:] = 100.0
        SCALE["of"] = 9.0
        first = f_jvp(v)
        np.testing.assert_allclose(first, expected, rtol=1e-13)
        first[:] = 0.0
        np.testing.assert_allclose(f_jvp(v), expected, rtol=1e-13)
        assert not f_jvp(None).any()
        A[:] = before
        SCALE["of"] = 2.0


def test_a_large_matrix_is_factorised_once_for_each_point(monkeypatch):
    linalg = pytest.importorskip("scipy.linalg")
    counted, lu_factor = [], linalg.lu_factor
    monkeypatch.setattr(
        linalg, "lu_factor", lambda *a, **k: counted.append(1) or lu_factor(*a, **k)
    )
    rng = np.random.default_rng(3)
    for k in range(1, 7):
        a, b = rng.normal(size=(60, 60)) + 20 * np.eye(60), rng.normal(size=60)
        x, f_jvp = linearize(np.linalg.solve, a, b)
        for _ in range(3):
            da, db = rng.normal(size=a.shape), rng.normal(size=b.shape)
            np.testing.assert_allclose(a @ f_jvp(da, db), db - da @ x, rtol=1e-9, atol=1e-10)
        assert len(counted) == k


def test_tangents_are_checked_and_differentiated_in_turn():
    for k in range(6):
        _, f_jvp = linearize(quotient, 1.5 + k, 2.0)
        with pytest.raises(TangentError, match=r"jvp\(quotient\).*2 primals, but 1 tangents"):
            f_jvp(1.0)
        with pytest.raises(TangentError, match="tangent 0 must be"):
            f_jvp("text", 1.0)
        with pytest.raises(TangentError, match="complex"):
            f_jvp(1j, 1.0)
        slope = f_jvp(1.0, 0.0)
        assert grad(lambda t, f=f_jvp: f(t, t) * t)(2.0) == pytest.approx(4 * f_jvp(1.0, 1.0))
        found = jvp(lambda t, f=f_jvp: f(t, 0.0), (1.0,), (3.0,))
        assert found == pytest.approx((slope, 3 * slope), rel=1e-14)
        assert f_jvp(1, np.float64(0.0)) == slope  # numbers of other kinds


def test_what_is_infinite_is_so_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            value, f_jvp = linearize(np.cbrt, np.array([0.0, 8.0]))
            np.testing.assert_allclose(value, [0.0, 2.0])
            np.testing.assert_allclose(f_jvp(np.array([1.0, 1.0])), [np.inf, 1 / 12])
