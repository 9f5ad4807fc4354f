"""``array.flat`` is an iterator over the elements, and can be read and written to as an array of one axis."""

import numpy as np
import pytest

from wengert import jit, value_and_grad

X = np.array([[2.0, 1.0], [1.0, 3.0]])
USES = {
    "pairs": lambda x, flat: sum(a * b for a, b in zip(flat, flat, strict=False)),
    "next": lambda x, flat: next(flat) * next(flat) + next(flat, 0.0),
    "twice": lambda x, flat: sum(v * v for v in flat) + len(list(flat)),
    "in part": lambda x, flat: next(flat) + 3 * sum(flat),
    "after its end": lambda x, flat: sum(flat) + next(flat, 5.0),
    "by number": lambda x, flat: flat[1] * flat[3] + next(flat) * flat[0],
    "each of its own": lambda x, flat: sum(a * b for a, b in zip(flat, x.flat, strict=True)),
    "its kind": lambda x, flat: x.sum() * (2 if isinstance(flat, np.flatiter) else 3),
    "the largest": lambda x, flat: max(flat),
}


@pytest.mark.parametrize("on", (True, False))
@pytest.mark.parametrize("name", USES)
def test_uses(name, on):
    def f(x):
        return USES[name](x, x.flat)

    expected = np.zeros_like(X)
    for i in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[i] = 1e-6
        expected[i] = (f(X + step) - f(X - step)) / 2e-6
    with jit(on):
        for _ in range(5):
            value, slope = value_and_grad(f)(X)
            assert value == f(X)
            np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-8)
