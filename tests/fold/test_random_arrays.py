"""Random regions with arrays of many sizes: values as plain Python gives them, gradients as the flat tape does."""

import math

import numpy as np
import pytest

from wengert import jit, pullback

from .random_arrays import Maker
from .regions import program

PROGRAMS = 60


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_region(seed):
    text, folded = Maker(seed).program()
    scope = {"np": np, "math": math}
    exec(compile(text, f"<random {seed}>", "exec"), scope)
    f, run = scope["f"], program(folded)
    rng = np.random.default_rng(seed)
    for n, k in [(1, 2), (3, 0), (4, 3)]:
        x, w = rng.normal(size=(2, n))
        args = x, w, rng.normal(size=(n, n)), float(rng.normal()), k
        value, found = run(*args)
        expected = f(*args)
        assert type(value) is type(expected) and repr(value) == repr(expected), text
        with jit(False):
            gradients = pullback(f, *args)[1](1.0)[:4]
        for d, expected, x in zip(found, gradients, args, strict=False):
            d = np.zeros(np.shape(x)) if d is None else d
            assert np.shape(d) == np.shape(x)
            np.testing.assert_allclose(d, expected, rtol=1e-10, atol=1e-12, err_msg=text)


def test_the_flat_tape_is_right_about_these():
    """By differences, for some: at points where no maximum changes its place."""
    right = 0
    for seed in range(8):
        scope = {"np": np, "math": math}
        exec(Maker(seed).program()[0], scope)
        f = scope["f"]
        rng = np.random.default_rng(seed)
        x, w = rng.normal(size=(2, 4))
        args = x, w, rng.normal(size=(4, 4)), 0.7, 2
        along = rng.normal(size=4)
        slope = (f(x + 1e-6 * along, *args[1:]) - f(x - 1e-6 * along, *args[1:])) / 2e-6
        with jit(False):
            right += abs(pullback(f, *args)[1](1.0)[0] @ along - slope) < 1e-5 * (1 + abs(slope))
    assert right >= 7
