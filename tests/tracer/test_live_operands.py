"""Operands that may be written to later, though they hold no traced number: the gradient is by what they held then."""

import array
import collections
import math
import sys

import numpy as np
import pytest

from wengert import jit, value_and_grad

KINDS = {
    "deque": lambda: collections.deque([2.0, 3.0]),
    "deque of ints": lambda: collections.deque([2, 3]),
    "array": lambda: array.array("d", [2.0, 3.0]),
    "memoryview": lambda: memoryview(array.array("d", [2.0, 3.0])),
    "bytearray": lambda: bytearray([2, 3]),
}
USES = {
    "dot": lambda x, w: np.dot(np.array([x, x * x]), w),
    "interp": lambda x, w: np.interp(x, [0.0, 9.0], w),
    "dist": lambda x, w: math.dist([x, x * x], w),
    "convolve": lambda x, w: np.convolve([x, x * x], w)[1],
    "solve": lambda x, w: np.linalg.solve(np.array([[x, 1.0], [0.5, 3.0]]), w).sum(),
}
if sys.version_info >= (3, 12):
    USES["sumprod"] = lambda x, w: math.sumprod([x, x * x], w)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
def test_it_is_written_to_after_its_use(use, kind, on):
    make, how = KINDS[kind], USES[use]

    def f(x):
        held = make()
        y = how(x, held)
        held[0] = 9
        return y

    with jit(on):
        for x in (1.5, 2.5, 1.5, 0.75):
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
def test_it_lies_outside_and_is_written_to_between_calls(use, kind, on):
    held, how = KINDS[kind](), USES[use]

    def f(x):
        return how(x, held)

    with jit(on):
        for i, x in enumerate((1.5, 2.5, 1.5, 0.75, 0.75)):
            held[0] = i
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("on", [True, False])
def test_arithmetic_with_memory(on):
    held = array.array("d", [2.0, 3.0])

    def f(x):
        return (np.array([x, x * x]) * held).sum() + (held - np.array([x, 1.0]))[0]

    with jit(on):
        for i, x in enumerate((1.5, 2.5, 1.5, 0.75, 0.75)):
            held[0] = i
            assert value_and_grad(f)(x) == (f(x), pytest.approx(i - 1 + 6 * x))
