"""Sorts of numbers in folded programs: C code says in which order they come."""

import math
import random
import statistics

import pytest

from helpers import assert_close
from wengert import jit, value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")
CALLS = 20


def weighted(xs):
    return sum(x * (k + 1) for k, x in enumerate(xs))


def by_value(xs):
    return weighted(sorted(xs))


def backwards(xs):
    ys = [2.0 * x for x in xs]
    ys.sort(reverse=True)
    return weighted(ys)


def by_key(xs):
    return weighted(sorted(xs, key=lambda x: abs(x - 0.5)))


def by_key_backwards_with_ties(xs):
    return weighted(sorted(xs, key=lambda x: math.floor(x), reverse=True))


def by_a_function_in_c(xs):
    return weighted(sorted(xs, key=abs))


def places(xs):
    return weighted([xs[i] for i in sorted(range(len(xs)), key=lambda i: xs[i])])


def few_or_none(xs):
    ys = [x for x in xs if x > 1.0]
    ys.sort()
    return ys[0] + 2.0 * ys[-1] if ys else xs[0]


def integers_among_them(xs):
    return weighted(sorted([math.floor(3.0 * x) if k % 2 else x for k, x in enumerate(xs)]))


def with_nan(xs):
    ys = sorted([x if x < 1.0 else math.nan for x in xs])
    return weighted([y for y in ys if y == y])


def tuples(xs):
    return weighted([p[0] for p in sorted([(x * x, k) for k, x in enumerate(xs)])])


def twice(xs):
    ys = sorted(xs)
    ys[0] = ys[0] + 10.0
    ys.sort()
    return weighted(ys) + statistics.median(xs)


PROGRAMS = (
    by_value, backwards, by_key, by_key_backwards_with_ties, by_a_function_in_c, places, few_or_none,
    integers_among_them, with_nan, tuples, twice,
)  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_like_traced(f):
    rng = random.Random(3)
    slope = value_and_grad(f)
    for _ in range(CALLS):
        xs = [rng.gauss(0.0, 1.0) for _ in range(rng.randint(2, 30))]
        with jit(True):
            value, gradient = slope(xs)
        with jit(False):
            expected, traced = slope(xs)
        assert repr(value) == repr(expected) == repr(f(xs))
        assert_close(gradient, traced)


@pytest.fixture
def count():
    """How many calls of a function no program answers."""
    from wengert.transforms.fold import keep

    def counted(f):
        rng, passes = random.Random(5), []
        run = keep.Known.run
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keep.Known, "run", lambda *a: passes.append(1) or run(*a))
            slope = value_and_grad(f)
            for _ in range(CALLS):
                slope([rng.random() for _ in range(rng.randint(2, 30))])
        assert passes
        return len(passes) + 2

    return counted


@pytest.mark.parametrize("f", PROGRAMS)
def test_one_program_for_all_orders(f, count):
    """However many orders there are, few calls are followed."""
    assert count(f) <= 8
