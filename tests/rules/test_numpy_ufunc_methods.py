"""The rules for the methods of ufuncs: reduce, accumulate, reduceat, outer, at."""

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import NoRuleError, grad, pullback

case = Table()

X = np.array([0.7, 1.3, 2.1, 0.4])
Y = np.array([0.57, 1.19])
M = np.array([[0.52, 1.23, 2.06], [0.71, 0.44, 0.63]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 + 0.21
MASK = np.array([[True, False, True], [False, True, False]])
BINARY = (
    "add subtract multiply divide remainder fmod power float_power hypot arctan2 maximum minimum fmax fmin "
    "logaddexp logaddexp2 copysign"
).split()
SYMMETRIC = "add multiply hypot maximum minimum fmax fmin logaddexp logaddexp2".split()


def method(ufunc, name, *args, **kwargs):
    fn = getattr(getattr(np, ufunc), name)
    case(fn, *args, case={"name": f"{ufunc}.{name}"}, **kwargs)


def reduces(ufunc):
    """Does NumPy reduce more than two elements rightly? Its AVX-512 loops of power and arctan2 do not."""
    return np.allclose(ufunc.reduce(X), ufunc.accumulate(X)[-1])


for u in BINARY:
    method(u, "reduce", M)
    method(u, "reduce", X[:1])
    method(u, "reduce", X[:2].tolist())
    if reduces(getattr(np, u)):
        method(u, "reduce", X)
        method(u, "reduce", M, axis=1, keepdims=True)
        method(u, "reduceat", X, [0, 3, 1, 1])
    method(u, "accumulate", X)
    method(u, "accumulate", M, 1)
    method(u, "accumulate", T, axis=-2)
    method(u, "reduceat", X, [0, 2])
    method(u, "reduceat", M, [0, 1], axis=1)
    method(u, "outer", X, M)
    method(u, "outer", 0.63, X)
    method(u, "outer", X, 0.63)
    method(u, "outer", X.tolist(), Y)
for u in SYMMETRIC:
    method(u, "reduce", T, axis=(0, 2))
    method(u, "reduce", T, axis=None)
    method(u, "reduce", M, axis=1, initial=0.9)
    method(u, "reduce", M, axis=1, initial=0.9, where=MASK)
for u in ("add", "multiply", "hypot", "logaddexp", "logaddexp2"):
    method(u, "reduce", M, axis=0, where=MASK)
for u in ("subtract", "divide", "remainder"):
    case(lambda x, s, f=getattr(np, u): f.reduce(x, axis=1, initial=s), M, 0.8)
    case(lambda x, s, f=getattr(np, u): f.reduce(x, 0, initial=s, where=MASK), M, 0.8)
case(lambda x, y: np.divmod.outer(x, y)[1], X, Y)
case(lambda x, y: np.floor_divide.outer(x, y) * x[:, None], X, Y)
case(lambda x: np.less.outer(x, x) * x, X)


PAIRS = np.arange(8).reshape(4, 2) % 3 > 0
for u in ("multiply", "hypot", "maximum"):
    outer = getattr(np, u).outer
    case(lambda x, y, o=outer: o(x, y, where=PAIRS, out=np.ones((4, 2))), X, Y)
    case(lambda x, y, o=outer: o(x, y, where=PAIRS, out=y * np.ones((4, 2))), X, Y)


def at(ufunc, *index):
    def changed(x, *others):
        y = x * 1.0
        ufunc.at(y, index if len(index) > 1 else index[0], *others)
        return y

    changed.__name__ = f"{ufunc.__name__}.at"
    return changed


for u in BINARY:
    case(at(getattr(np, u), [0, 2]), X, X[:2] + 0.3)
    case(at(getattr(np, u), [1, 1, 3, 1]), X, X[::-1] + 0.3)
    case(at(getattr(np, u), [1, 1]), M, 0.8)
    case(at(getattr(np, u), [0, 0], [1, 1]), M, X[:2])
    case(at(getattr(np, u), slice(1, 3)), X, X[:2] + 0.3)
for u in ("negative", "sqrt", "exp", "sin", "square", "absolute", "floor"):
    case(at(getattr(np, u), [0, 2]), X)
    case(at(getattr(np, u), [1, 1, 3, 1]), X * 0.3)


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


@pytest.mark.parametrize("name", ["reduce", "accumulate"])
def test_nothing_reduces_to_the_identity(name):
    value, back = pullback(getattr(np.hypot, name), np.zeros(0))
    assert np.all(value == 0)
    assert back(np.zeros_like(value) + 1.0)[0].shape == (0,)


def test_equal_elements_share_the_cotangent_of_their_hypotenuse():
    _, back = pullback(np.hypot.reduce, np.zeros(3))
    np.testing.assert_array_equal(back(1.0)[0], 0.0)


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.hypot])
def test_a_reduction_that_is_no_fold_has_no_gradient(ufunc):
    """Some versions of NumPy leave elements out, and that is not what the rule differentiates."""
    x = np.array([1.1, 1.2, 1.3, 1.4])
    fold = ufunc(ufunc(ufunc(x[0], x[1]), x[2]), x[3])
    if np.isclose(ufunc.reduce(x), fold, rtol=1e-12):
        steps = 1e-6 * np.eye(4)
        slopes = [(ufunc.reduce(x + e) - ufunc.reduce(x - e)) / 2e-6 for e in steps]
        assert grad(ufunc.reduce)(x) == pytest.approx(slopes, rel=1e-6)
    else:
        with pytest.raises(NoRuleError, match="leaves elements out"):
            grad(ufunc.reduce)(x)


@pytest.mark.parametrize("exponent", [2, 0.5, 3.0, -1.0, np.array(2.0)])
def test_at_is_told_one_number_as_numpy_is(exponent):
    """NumPy squares and takes roots for one exponent: to the bit."""
    for x in np.random.default_rng(1).uniform(0.5, 2.0, (40, 2)):
        y = x.copy()
        np.power.at(y, [1, 1], exponent)

        def f(x):
            z = x.copy()
            np.power.at(z, [1, 1], exponent)
            return z

        assert pullback(f, x)[0].tobytes() == y.tobytes()
