"""Numbers of SymPy and mpmath, into which no gradient can be followed: an error at the user's line, never a zero."""

import math

import numpy as np
import pytest

import wengert
from wengert import grad, jvp, stop_gradient, trace
from wengert.tracer.errors import TraceError

mpmath = pytest.importorskip("mpmath")
sympy = pytest.importorskip("sympy")

X = sympy.Symbol("X")
FORMULA = X**2 + sympy.sin(X)


def function(x):
    return float(sympy.sin(x)) * x


def result(x):
    return sympy.sin(x) * x


def made(x):
    return float(sympy.Float(x) * 2)


def put_in(x):
    return float(FORMULA.subs(X, x))


def evaluated(x):
    return float(FORMULA.evalf(subs={X: x}))


def times_a_constant(x):
    return x * sympy.pi


def digits(x):
    return float(mpmath.sin(x)) * x


def many_digits(x):
    return mpmath.mpf(x) ** 2


@pytest.mark.parametrize("x", [0.0, 0.7, 1.0, math.inf, np.float64(0.7), np.float64(0.0)])
@pytest.mark.parametrize(
    "f",
    [function, result, made, put_in, evaluated, times_a_constant, digits, many_digits],
    ids=lambda f: f.__name__,
)
def test_a_traced_number_becomes_none_of_theirs(f, x):
    for call in (lambda: grad(f)(x), lambda: jvp(f, (x,), (1.0,)), lambda: trace(f, x)):
        with pytest.raises(TraceError, match=r"compile\(math=sympy\), more digits by") as error:
            call()
        place = str(error.value).splitlines()[0]
        line = f.__code__.co_firstlineno + 1
        assert place.startswith(f"{__file__}:{line}, in {f.__name__}: a traced number becomes")


@pytest.mark.parametrize("kept", [True, False])
def test_nor_in_a_way_that_is_gone_later(kept):
    def f(x):
        return x * x if x > 1.0 else float(sympy.Float(x)) * 2.0

    slope = grad(f)
    with wengert.jit(kept):
        assert [slope(x) for x in (2.0, 3.0, 4.0, 5.0)] == [4.0, 6.0, 8.0, 10.0]
        for x in (0.0, 0.5, 0.0):
            with pytest.raises(TraceError, match="a number of SymPy or mpmath"):
                slope(x)


def test_constants_and_formulas_that_became_functions():
    wave = sympy.lambdify(X, FORMULA)
    assert grad(wave)(0.7) == 2 * 0.7 + math.cos(0.7)
    assert grad(lambda x: x * float(sympy.sin(stop_gradient(x))))(0.7) == math.sin(0.7)
    assert grad(lambda x: x * float(sympy.sqrt(2.0)) * float(mpmath.mpf(3.0)))(0.7) == (
        pytest.approx(3.0 * math.sqrt(2.0), rel=1e-15)
    )
    assert grad(lambda x: float(mpmath.fp.sin(x)))(0.7) == math.cos(0.7)
