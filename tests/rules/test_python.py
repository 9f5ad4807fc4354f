"""The rules for Python's operators, its built-in functions, math and cmath."""

import cmath
import math
import operator as op

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import grad, pullback, value_and_grad

case = Table()

X = np.array([0.7, -1.3, 2.1])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
Z = np.array([0.3 + 1.2j, -0.7 - 0.4j, 1.1 + 0.2j])
POSITIVE = np.array([0.83, 1.57, 0.46])

# Operators on Python's numbers
for f in (op.add, op.sub, op.mul, op.truediv, op.pow, op.mod):
    case(f, 1.7, 0.6)
    case(f, 3, 0.7)
    case(f, 1.7, 2)
    case(f, 1.7, np.float64(0.6))
for f in (op.add, op.sub, op.mul, op.truediv, op.pow):
    case(f, 1.7 + 0.3j, 0.6 - 0.2j)
    case(f, 1.7, 0.6 - 0.2j)
    case(f, 1.7 + 0.3j, 0.6)
for f in (op.neg, op.pos, op.abs):
    case(f, -1.7)
    case(f, 0.4 - 0.3j)
    case(f, np.float64(-1.7))
for f in (op.iadd, op.isub, op.imul, op.itruediv, op.ipow, op.imod):
    case(f, 1.7, 0.6)
case(op.pow, -1.7, 3)
case(op.pow, -1.7, -2)
case(op.pow, 0.0, 0)
case(op.pow, 0.0, 1)
case(op.pow, 0.0, 2)
case(op.pow, -8.0 + 0.5j, 1 / 3)
case(op.mod, -1.7, 0.6)
case(op.mod, 1.7, -0.6)
case(op.floordiv, 1.7, 0.6)

# Operators on arrays, with broadcasting
for f in (op.add, op.sub, op.mul, op.truediv, op.mod):
    case(f, X, POSITIVE)
    case(f, M, X)
    case(f, X, 0.6)
    case(f, 1.7, POSITIVE)
    case(f, M[:, :1], POSITIVE)
    case(f, M, np.array(0.57))
    case(f, np.array(1.7), np.array(0.6))
    case(f, np.zeros((0, 3)), POSITIVE)
    case(f, np.arange(1, 4), POSITIVE)
    case(f, X, 3)
    case(f, M[:, None], 1.1 * np.abs(M)[None])
for f in (op.add, op.sub, op.mul, op.truediv, op.pow):
    case(f, Z, X)
    case(f, POSITIVE, Z)
    case(f, Z, Z[::-1])
case(op.pow, POSITIVE, X)
case(op.pow, M, 2)
case(op.pow, M, 3)
case(op.pow, M, 0)
case(op.pow, M, -1)
case(op.pow, POSITIVE, 0.5)
case(op.pow, POSITIVE, np.array([2, 0, 3]))
case(op.pow, 1.7, X)
case(op.pow, np.array([[0.4], [1.1]]), X)
case(op.neg, M)
case(op.pos, M)
case(op.abs, M)
case(op.abs, Z)
case(op.matmul, M, X)
case(op.matmul, X, M.T)
case(op.matmul, M, M.T)

# Built-in functions
case(abs, -1.7)
case(abs, 0.4 - 0.3j)
case(abs, M)
case(pow, 1.7, 0.6)
case(pow, 1.7, 3)
case(divmod, 1.7, 0.6)
case(divmod, -1.7, 0.6)
case(float, 1.7)
case(float, np.float32(1.5), case={"tol": 1e-2})
case(float, np.array(1.7))
case(complex, 1.7, 0.6)
case(complex, 1.7)
case(complex, 1.7 + 0.3j)
case(complex.conjugate, 1.7 + 0.3j)
case(float.conjugate, 1.7)
case(round, 1.7)
case(round, 1.76, 1)
case(sum, [1.7, 0.6, -0.2])
case(sum, [X, POSITIVE], 0.5)
case(sum, (X, 2.0))
case(sum, [1.7, 0.6j])
case(lambda z: z.real * z.imag, 1.7 + 0.3j)
case(lambda x: x.real + x.imag, 1.7)

# math, one argument
for f in (
    math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh,
    math.asinh, math.atanh, math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p,
    math.sqrt, math.cbrt, math.fabs, math.degrees, math.radians, math.erf, math.erfc, math.gamma, math.lgamma,
    math.floor, math.ceil, math.trunc,
):  # fmt: skip
    case(f, 0.6)
    case(f, np.float64(0.3))
for f in (
    math.tan,
    math.atan,
    math.sinh,
    math.tanh,
    math.asinh,
    math.exp,
    math.expm1,
    math.cbrt,
    math.fabs,
):
    case(f, -1.7)
for f in (math.gamma, math.lgamma):
    for x in (1.0, 3.7, 0.2, -0.4, -2.6):
        case(f, x)
case(math.lgamma, 31.5)
case(math.acosh, 1.7)
case(math.modf, -2.3)
case(math.modf, 2.3)
case(math.frexp, 5.3)
case(math.sin, 2)
case(math.sqrt, np.array(1.7))

# math, several arguments
case(math.log, 1.7, 0.6)
case(math.log, 1.7, 10)
for y, x in ((1.7, 0.6), (-1.7, 0.6), (1.7, -0.6), (-1.7, -0.6), (0.0, 1.0)):
    case(math.atan2, y, x)
case(math.pow, 1.7, 0.6)
case(math.pow, -1.7, 2)
case(math.pow, 1.7, 3)
case(math.fmod, 7.3, 2.1)
case(math.fmod, -7.3, 2.1)
case(math.remainder, 7.3, 2.1)
case(math.remainder, 6.1, 2.1)
case(math.copysign, 1.7, -0.6)
case(math.copysign, -1.7, -0.6)
case(math.ldexp, 1.7, 3)
case(math.nextafter, 1.7, 2.0, case={"name": "nextafter"})
case(math.hypot, 1.7, 0.6)
case(math.hypot, 1.7, -0.6, 0.2)
case(math.hypot, 1.7)
case(math.dist, [1.7, 0.6], [0.2, -0.4])
case(math.dist, (1.7, 0.6), [0.2, -0.4])
case(math.dist, X.tolist(), X[::-1].tolist())
case(math.fsum, [1.7, 0.6, -0.2])
case(math.fsum, X)
case(math.prod, [1.7, 0.6, -0.2])
case(math.prod, [1.7, 0.0, -0.2])
case(math.prod, [0.0, 0.0, -0.2])
case(math.prod, (1.7, 0.6), start=0.5)
case(math.prod, X)
if hasattr(math, "sumprod"):
    case(math.sumprod, [1.7, 0.6], [0.2, -0.4])
    case(math.sumprod, (1.7, 0.6), (2, 3))
if hasattr(math, "fma"):
    case(math.fma, 1.7, 0.6, -0.2)
if hasattr(math, "fmax"):
    case(math.fmax, 1.7, 0.6)
    case(math.fmin, 1.7, 0.6)

# cmath
for f in (
    cmath.sin, cmath.cos, cmath.tan, cmath.asin, cmath.acos, cmath.atan, cmath.sinh, cmath.cosh, cmath.tanh,
    cmath.asinh, cmath.acosh, cmath.atanh, cmath.exp, cmath.log, cmath.log10, cmath.sqrt, cmath.phase, cmath.polar,
):  # fmt: skip
    case(f, 0.6 - 0.4j)
case(cmath.exp, 0.6)
case(cmath.log, 0.6 + 0.2j, 1.7 - 0.3j)
case(cmath.rect, 1.7, 0.6)


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


# ------------------------------------------------------------------------- the extremum of a long list


def test_the_gradient_of_an_extremum_is_linear_in_the_items():
    def count(n):
        xs = [float(i * 7 % n) for i in range(n)]
        _, back = pullback(max, xs)
        assert back(2.5) == ([2.5 if x == n - 1 else 0.0 for x in xs],)
        return sum(len(list(op.operands())) for op in back.tape)

    assert count(400) < 2.2 * count(200)


def test_ties_share_in_every_derivative():
    def f(x, y):
        return max([x * y, y, x * x * y, 0.3]) ** 3

    def by_x(x, y):
        return grad(f)(x, y)

    assert value_and_grad(f, (0, 1))(1.0, 2.0) == (8.0, (12 * (1 + 0 + 2) * 2 / 3, 12.0))
    assert grad(by_x, 1)(2.0, 1.5) == pytest.approx(18 * 2.0**5 * 1.5**2, rel=1e-14)
    assert grad(lambda x: grad(lambda y: min(y * y, x * y))(x))(2.0) == 1.5


def test_what_is_not_chosen_gets_zero_though_the_cotangent_is_infinite():
    assert pullback(max, [1.0, 2.0])[1](math.inf) == ([0.0, math.inf],)
