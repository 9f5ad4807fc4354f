"""The functions that people call: pullback, vjp, grad, value_and_grad."""

import copy
import math

import numpy as np
import pytest

import wengert
from helpers import assert_close, assert_same, check, complex_step, derivative, numeric_grad
from wengert import grad, pullback, value_and_grad, vjp

V = np.array([0.5, -1.2, 2.0])


def f(x, y):
    return x * y + math.sin(x)


# ------------------------------------------------------------------------------------------ pullback


def test_pullback():
    value, back = pullback(f, 2.0, 3.0)
    assert value == f(2.0, 3.0) == 6.909297426825682
    assert back(1.0) == (2.5838531634528574, 2.0)
    assert vjp is pullback


def test_back_is_linear_and_may_be_called_often():
    value, back = pullback(f, 2.0, 3.0)
    dx, dy = back(1.0)
    for scale in (0.0, 1.0, -2.5, 1e10, 1.0):
        assert_close(back(scale), (scale * dx, scale * dy))


def test_two_pullbacks_at_once():
    _, first = pullback(f, 2.0, 3.0)
    _, second = pullback(f, 1.0, 5.0)
    _, third = pullback(np.sin, 0.5)
    assert_close(first(1.0), (3 + math.cos(2.0), 2.0))
    assert_close(second(1.0), (5 + math.cos(1.0), 1.0))
    assert_close(third(1.0), (math.cos(0.5),))
    assert_close(first(2.0), (6 + 2 * math.cos(2.0), 4.0))


def test_jacobian_row_by_row():
    def g(v):
        return np.array([v[0] * v[1], np.sin(v[2]), v @ v])

    value, back = pullback(g, V)
    jacobian = np.array([back(row)[0] for row in np.eye(3)])
    a, b, c = V
    assert_close(jacobian, np.array([[b, a, 0], [0, 0, np.cos(c)], [2 * a, 2 * b, 2 * c]]))


def test_several_outputs():
    value, back = pullback(lambda x, y: (x * y, x + y), 2.0, 3.0)
    assert value == (6.0, 5.0)
    assert back((1.0, 0.0)) == (3.0, 2.0)
    assert back((0.0, 1.0)) == (1.0, 1.0)
    assert back((None, 1.0)) == (1.0, 1.0)
    assert back((2.0, 10.0)) == (16.0, 14.0)


def test_keyword_arguments():
    def g(x, *, scale=1.0, shift=0.0):
        return x * scale + shift

    assert_close(pullback(g, 2.0)[1](1.0), (1.0,))
    assert_close(pullback(g, 2.0, scale=3.0)[1](1.0), (3.0, {"scale": 2.0}))
    both = pullback(g, 2.0, shift=1.0, scale=3.0)[1](1.0)
    assert_close(both, (3.0, {"shift": 1.0, "scale": 2.0}))
    assert_close(pullback(f, y=3.0, x=2.0)[1](1.0), ({"y": 2.0, "x": 3 + math.cos(2.0)},))


def test_keywords_that_pullback_has_itself():
    def g(f, args=2.0):
        return f * args

    assert_close(pullback(g, 3.0, args=4.0)[1](1.0), (4.0, {"args": 3.0}))


# ---------------------------------------------------------------------------- grad and value_and_grad


def test_grad():
    assert grad(f)(2.0, 3.0) == 2.5838531634528574
    assert grad(f, 1)(2.0, 3.0) == 2.0
    assert grad(f, -1)(2.0, 3.0) == 2.0
    assert grad(f, argnums=(0, 1))(2.0, 3.0) == (2.5838531634528574, 2.0)
    assert grad(f, argnums=(1,))(2.0, 3.0) == (2.0,)
    assert grad(f, argnums=(1, 0, 1))(2.0, 3.0) == (2.0, 2.5838531634528574, 2.0)
    assert grad(lambda x, y=3.0: x * y)(2.0) == 3.0
    assert grad(lambda x, *, y: x * y)(2.0, y=4.0) == 4.0


def test_value_and_grad():
    assert value_and_grad(f)(2.0, 3.0) == (6.909297426825682, 2.5838531634528574)
    assert value_and_grad(f, argnums=(0, 1))(2.0, 3.0)[1] == (2.5838531634528574, 2.0)
    value, gradient = value_and_grad(lambda p: p["w"] @ V * p["b"])({"w": V, "b": 2.0})
    assert_close(gradient, {"w": 2 * V, "b": float(V @ V)})


def test_auxiliary_results():
    def g(x):
        y = x * x
        return y * 2, {"y": y, "name": "g", "v": V * x}

    (value, aux), gradient = value_and_grad(g, has_aux=True)(3.0)
    assert_same((value, aux), g(3.0))
    assert gradient == 12.0


def test_scalars_of_every_kind():
    for x in (1.5, np.float64(1.5), np.array(1.5), np.float32(1.5), 3):
        value, gradient = value_and_grad(lambda x: x * x)(x)
        assert_same(value, x * x)
        assert gradient == 2 * x
    assert grad(lambda x: np.sum(V * x))(2.0) == V.sum()
    assert grad(lambda x: np.array(x * x))(2.0) == 4.0
    assert type(grad(lambda x: np.sum(V * x))(2.0)) is float


def test_gradient_of_an_array():
    gradient = grad(lambda v: np.sum(np.exp(v) * v))(V)
    assert_close(gradient, np.exp(V) * (V + 1))
    assert gradient == pytest.approx(numeric_grad(lambda v: np.sum(np.exp(v) * v), V))


def test_names_and_documentation():
    for function in (pullback, grad, value_and_grad, wengert.trace, wengert.reverse, wengert.rrule):
        assert function.__doc__
    for name in wengert.__all__:
        assert getattr(wengert, name) is not None


def test_arguments_stay_as_they_are():
    arguments = ({"w": [V, 1.5], "b": (2.0,)}, V, 3.0)
    before = copy.deepcopy(arguments)
    grad(lambda p, v, x: p["w"][0] @ v * x * p["b"][0])(*arguments)
    assert_same(arguments, before)


# ---------------------------------------------------------------------------------- meaning, decided once


def test_complex_arguments():
    def g(z):
        return z**3 - 2j * z + np.exp(z)

    z = 0.7 - 0.4j
    value, back = pullback(g, z)
    assert_close(back(1.0 + 0j)[0], complex(3 * z**2 - 2j + np.exp(z)), tol=1e-12)
    assert_close(back(1j)[0], complex(1j * (3 * z**2 - 2j + np.exp(z))), tol=1e-12)
    check(g, z)
    check(lambda z, x: abs(z * x) + (z.real * z.imag) * x + z.conjugate() * z, z, 1.5)


def test_gradient_of_a_real_function_of_a_complex_number():
    """JAX's convention: the gradient of |z|^2 is 2 conj(z), that of z.real is 1, that of z.imag is -1j."""
    z = 0.7 - 0.4j
    assert_close(grad(lambda z: abs(z) ** 2)(z), 2 * z.conjugate())
    assert_close(grad(lambda z: z.real)(z), 1 + 0j)
    assert_close(grad(lambda z: z.imag)(z), -1j)
    w = np.array([z, 1j, 2.0])
    assert_close(grad(lambda w: np.sum(np.abs(w) ** 2))(w), 2 * w.conj())
    assert_close(grad(lambda x: (x * z).imag)(1.5), -0.4)


def test_against_the_complex_step():
    def g(x):
        return np.exp(x) / (np.cos(x) ** 3 + np.sin(x) ** 3) * np.sqrt(x)

    assert grad(g)(1.5) == pytest.approx(complex_step(g, 1.5), rel=1e-14)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (abs, 0.0, 0.0),
        (np.abs, 0.0, 0.0),
        (math.fabs, 0.0, 0.0),
        (lambda x: max(x, 0.0), 0.0, 0.5),
        (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
        (lambda x: np.minimum(x, x), 1.0, 1.0),
        (lambda x: x if x > 0 else 0.0, 0.0, 0.0),
        (lambda x: x * (x > 0), 0.0, 0.0),
        (np.sign, 0.0, 0.0),
        (np.floor, 1.5, 0.0),
        (math.floor, 1.5, 0.0),
        (round, 1.5, 0.0),
        (int, 1.5, 0.0),
        (lambda x: x // 0.4, 1.5, 0.0),
        (np.linalg.norm, np.zeros(3), np.zeros(3)),
        (np.max, np.array([1.0, 3.0, 3.0]), np.array([0.0, 0.5, 0.5])),
        (np.min, np.ones(4), np.full(4, 0.25)),
        (lambda v: np.sort(v)[0], np.array([1.0, 1.0]), np.array([1.0, 0.0])),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**2.0, 0.0, 0.0),
        (lambda x: x**3, -2.0, 12.0),
        (lambda x: 0.0**x, 2.0, 0.0),
        (lambda v: np.sum(v**2), np.zeros(2), np.zeros(2)),
        (lambda v: np.prod(v), np.array([0.0, 2.0, 3.0]), np.array([6.0, 0.0, 0.0])),
        (lambda v: np.prod(v), np.array([0.0, 0.0, 3.0]), np.zeros(3)),
    ],
)
def test_at_kinks_and_ties(f, x, expected):
    assert_close(grad(f)(x), expected)


def test_ties_of_python_numbers():
    """Python's `min` and `max` return one of their arguments: that one, or equal shares of the tie."""
    (dx, dy) = grad(max, argnums=(0, 1))(2.0, 2.0)
    assert dx + dy == 1.0


def test_square_root_at_zero_is_finite():
    for root in (math.sqrt, np.sqrt, lambda x: x**0.5):
        with np.errstate(all="ignore"):
            assert math.isfinite(grad(lambda x, root=root: root(x * x))(0.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda v: np.where(v > 0, np.log(np.where(v > 0, v, 1.0)), 0.0).sum(),
        lambda v: np.where(v > 0, np.log(v), v).sum(),
        lambda v: np.where(v > 0, np.sqrt(v), v * 2).sum(),
        lambda v: np.where(v != 0, 1 / v, 0.0).sum(),
        lambda v: np.where(v > 0, v**-0.5, -v).sum(),
        lambda v: np.where(v > 0, v ** np.abs(v), v).sum(),
    ],
)
def test_nothing_leaks_from_the_branch_not_taken(f):
    v = np.array([0.5, 0.0, -1.0])
    with np.errstate(all="ignore"):
        gradient = grad(f)(v)
    assert np.isfinite(gradient).all()
    with np.errstate(all="ignore"):
        assert gradient[0] == pytest.approx(numeric_grad(lambda x: f(np.array([x])), 0.5))


def test_zero_is_symbolic():
    """A zero cotangent does not meet an infinite derivative."""

    def g(x, y):
        unused = math.log(x) if x > 0 else -math.inf
        items = [x * math.inf if x else 0.0, unused, y]
        return items[2] * y

    assert grad(g, argnums=(0, 1))(0.5, 3.0) == (0.0, 6.0)
    value, back = pullback(lambda x: (1 / (x - x + 1e-320) * x, x), 2.0)
    assert back((None, 1.0)) == (1.0,)


def test_infinities_and_nan_in_values():
    with np.errstate(all="ignore"):
        for x in (math.inf, -math.inf, math.nan, 1e308, -0.0):
            value, back = pullback(lambda x: [x * x, x - x, -x, np.exp(x)], x)
            assert_same(value, [x * x, x - x, -x, np.exp(x)])
    assert math.isnan(grad(lambda x: x * math.nan)(1.0))
    assert grad(lambda x: x * math.inf)(1.0) == math.inf


def test_large_and_small_derivatives():
    assert grad(lambda x: x * 1e300)(1.0) == 1e300
    assert grad(lambda x: x * 1e-300)(1.0) == 1e-300
    assert grad(lambda x: math.exp(x * 700))(1.0) == pytest.approx(700 * math.exp(700))
    assert grad(lambda x: x**50)(0.5) == pytest.approx(50 * 0.5**49)


def test_finite_differences_of_the_tests_are_right():
    """The yardstick itself, against closed formulas."""
    assert derivative(lambda t: math.exp(1 + t)) == pytest.approx(math.e, rel=1e-11)
    assert derivative(lambda t: math.sin(3 * (2 + t))) == pytest.approx(3 * math.cos(6), rel=1e-10)
    assert derivative(lambda t: (5 + t) ** 7) == pytest.approx(7 * 5**6, rel=1e-10)
