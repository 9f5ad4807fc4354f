"""Functions of the same code, made anew: one region for all that have captured the same."""

import pytest

import wengert.transforms.cache as cache
from helpers import assert_same
from wengert import jit, value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


def made(scale, inner):
    def f(x, n):
        total = 0.0
        for i in range(n):
            total = total + inner(x) * scale if i % 2 else total * 0.5 + x
        return total

    return f


def square(x):
    return x * x


def cube(x):
    return x * x * x


def folding():
    (entry,) = cache.entries.values()
    return entry


@pytest.mark.parametrize("n", [0, 1, 4])
def test_closures_that_have_captured_the_same_share_a_program(n):
    for k in range(2, 10):
        assert_same(value_and_grad(made(0.5, square))(0.3, k)[0], made(0.5, square)(0.3, k))
    assert folding().folding.why is None
    before = folding().hits
    f = made(0.5, square)
    found = value_and_grad(f)(0.7, n)
    with jit(False):
        assert_same(found, value_and_grad(f)(0.7, n))
    assert n < 2 or folding().hits > before


def test_what_a_closure_has_captured_is_guarded():
    for k in range(3, 24):
        scale, inner = (0.5, 0.25, 2)[k % 3], (square, cube)[k % 2]
        f = made(scale, inner)
        found = value_and_grad(f)(0.3 + k * 0.1, k % 7)
        assert_same(found[0], f(0.3 + k * 0.1, k % 7))
        with jit(False):
            assert_same(found, value_and_grad(f)(0.3 + k * 0.1, k % 7))
