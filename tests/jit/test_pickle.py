"""What keeps programs is sent to another process like what keeps none."""

import concurrent.futures
import functools
import multiprocessing
import operator
import pickle

import numpy as np
import pytest
from elsewhere import cubed
from worlds import jit

from helpers import assert_same
from wengert import grad, pullback, value_and_grad

V = np.array([0.5, -1.2, 2.0])


def sent(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("calls", [0, 1, 2, 5])
@pytest.mark.parametrize("ask", [grad, value_and_grad])
def test_gradients_that_are_warm(ask, calls):
    with jit(True):
        mine = ask(cubed)
        for i in range(calls):
            mine(1.5 + i)
        theirs = sent(mine)
        for _ in range(4):
            assert_same(theirs(2.5), mine(2.5))
        assert_same(sent(theirs)(0.5), mine(0.5))


@pytest.mark.parametrize("calls", [0, 1, 2, 5])
def test_pullbacks_that_are_warm(calls):
    def both(x, v):
        return cubed(x), v * x

    with jit(True):
        for i in range(calls):
            pullback(both, 1.5 + i, V)[1]((1.0, V))
        _, back = pullback(both, 1.5, V)
        expected = back((2.0, V))
        assert_same(sent(back)((2.0, V)), expected)
        assert_same(sent(sent(back))((2.0, V)), expected)
        assert_same(back((2.0, V)), expected)


def test_a_pullback_is_sent_as_of_its_call():
    v = V.copy()
    with jit(True):
        for _ in range(4):
            _, back = pullback(lambda v: (v * v).sum(), v)
        v *= 0.0
        assert_same(sent(back)(1.0), (2 * V,))
        assert_same(back(1.0), (2 * V,))


def test_lambdas_by_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    k = 3.0
    with jit(True):
        mine = value_and_grad(lambda v: (v * v).sum() * k)
        for _ in range(4):
            mine(V)
        theirs = pickle.loads(cloudpickle.dumps(mine))
        k = 5.0  # the other one keeps the value that it was sent with
        for _ in range(4):
            assert_same(theirs(V), ((V * V).sum() * 3.0, 2 * V * 3.0))
            assert_same(mine(V), ((V * V).sum() * 5.0, 2 * V * 5.0))


def test_in_a_pool_of_processes():
    with jit(True):
        step = value_and_grad(cubed)
        inputs = [0.5 + i / 8 for i in range(12)]
        expected = [step(x) for x in inputs]
        backs = [pullback(cubed, x)[1] for x in inputs]
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert_same(list(pool.map(step, inputs, chunksize=4)), expected)
            call = functools.partial(operator.methodcaller, "__call__")
            found = list(pool.map(call(2.0), backs))
        assert_same(found, [back(2.0) for back in backs])
