"""Functions of `statistics` that are given iterators: they go through the data once, whoever makes them."""

import random
import statistics

import pytest

from wengert import jit, value_and_grad

FUNCTIONS = [
    statistics.mean,
    statistics.fmean,
    statistics.variance,
    statistics.stdev,
    statistics.pvariance,
    statistics.pstdev,
    statistics.harmonic_mean,
]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_data_from_an_iterator(fn, on):
    def of_iterator(x):
        return fn(iter([x, 2.0, x * x]))

    def of_generator(x):
        return fn(x * v for v in (1.0, 2.0, 4.0))

    def drawn(x):
        random.seed(3)
        return x * fn(iter([random.uniform(1.0, 8.0) for _ in range(5)]))

    with jit(on):
        for f in (of_iterator, of_generator, drawn):
            both = value_and_grad(f)
            for x in (1.5, 2.5, 0.75, 1.5, 3.0):
                value, slope = both(x)
                assert value == f(x)
                h = 1e-6
                assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6, abs=1e-8)
