"""Numbers of classes of the user's: their operators and conversions are methods, wherever they come from."""

import cmath
import math

import numpy as np
import pytest

from helpers import assert_same
from wengert import NoRuleError, jit, value_and_grad


class Count(int):
    def __mul__(self, other):
        return int(self) * other * 2

    def __rmul__(self, other):
        return int(self) * other * 3

    def __add__(self, other):
        return other * 10

    def __lt__(self, other):
        return True

    def __call__(self):
        return 9

    def __iter__(self):
        return iter([1.0, 2.0])


class Metres(float):
    def __add__(self, other):
        return 5.5

    __radd__ = __add__

    def __mul__(self, other):
        return other * other

    def __float__(self):
        return 8.25


class Phase(complex):
    def __complex__(self):
        return 3j


class Named(int):
    def __float__(self):
        return 8.25

    def __int__(self):
        return 5


class Spoken(Named):
    def __complex__(self):
        return 3j


class Shown(float):
    def __array__(self, dtype=None, copy=None):
        return np.array(42.0)


def filled(x, number):
    a = np.zeros(2)
    a[0] = number
    return a.sum() * x


OPERATIONS = {
    "count * x": lambda x, n: Count(n) * x,
    "x * count": lambda x, n: x * Count(n),
    "count + x": lambda x, n: Count(n) + x,
    "count.__add__": lambda x, n: Count(n).__add__(x),
    "count < 0": lambda x, n: x if Count(n) < 0 else 2 * x,
    "count()": lambda x, n: Count(n)() * x,
    "sum of count": lambda x, n: sum(Count(n)) * x,
    "metres + x": lambda x, n: Metres(n) + x,
    "x + metres": lambda x, n: x + Metres(n),
    "metres * x": lambda x, n: Metres(n) * x,
    "sum of metres": lambda x, n: sum([x, Metres(n)]) * x,
    "float": lambda x, n: float(Metres(n)) * x,
    "sqrt": lambda x, n: math.sqrt(Metres(n)) * x,
    "hypot": lambda x, n: math.hypot(Metres(n), x),
    "fsum": lambda x, n: math.fsum([Metres(n), x]),
    "ldexp": lambda x, n: math.ldexp(x, Named(n)),
    "sqrt of complex": lambda x, n: abs(cmath.sqrt(Phase(n))) * x,
    "imaginary part": lambda x, n: complex(x, Phase(n)).imag * x,
    "float64 of complex": lambda x, n: np.sqrt(Phase(n)).real * x,
    "float64 of an integer": lambda x, n: np.float64(Named(n)) * x,
    "an element": lambda x, n: filled(x, Named(n)),
    "in a list": lambda x, n: np.array([x, Named(n)]).sum(),
    "in a list of constants": lambda x, n: np.array([1.0, Named(n)]).sum() * x,
    "in nested lists": lambda x, n: np.array([[1, x], (Named(n), True)]).sum(),
    "beside an array": lambda x, n: np.array([np.array([x, 1.0]), [Named(n), 2]]).sum(),
    "among integers": lambda x, n: np.array([1, Named(n)]).sum() * x,
    "among complex numbers": lambda x, n: abs(np.array([1j * x, Named(n), Spoken(n)]).sum()),
    "summed": lambda x, n: np.sum([x, Named(n)]),
    "added to a list": lambda x, n: np.add([x, Named(n)], 1).sum(),
    "stacked": lambda x, n: np.stack([x, Named(n)]).sum(),
    "not asked for an array": lambda x, n: np.asarray(Shown(n)) * x,
    "nor by a ufunc": lambda x, n: np.add(Shown(n), x) * x,
}
ORIGINS = {
    "an argument": lambda n: n,
    "outside": lambda n: 3,
    "a number without a derivative": lambda n: round(n * 1.0),
}


@pytest.mark.filterwarnings("ignore:complex.. argument:DeprecationWarning")  # from 3.14 on
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operators_and_conversions(operation, origin):
    def f(x, n):
        return OPERATIONS[operation](x, ORIGINS[origin](n))

    for on in (True, False):
        with jit(on):
            for x, n in [(1.5, 3), (2.5, 3), (1.5, 2), (0.5, 3), (3.5, 4), (1.25, 3)]:
                value, slope = value_and_grad(f)(x, n)
                assert_same(value, f(x, n))
                h = 1e-6
                assert abs(slope - (f(x + h, n) - f(x - h, n)) / (2 * h)) < 1e-6


@pytest.mark.parametrize("cls", [Metres, Phase])
def test_one_of_a_number_with_a_derivative_is_refused(cls):
    def f(x):
        return (cls(x) * 2.0).real

    for on in (True, False):
        with jit(on):
            for x in (1.5, 2.5, 0.5, 3.5):
                with pytest.raises(NoRuleError, match=cls.__name__):
                    value_and_grad(f)(x)
