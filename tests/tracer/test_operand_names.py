"""C code that cannot compare or add a traced number names its class as in plain Python."""

import bisect
import collections
import functools
import heapq
import operator

import numpy as np
import pytest

from wengert import jit, pullback


def by_key(a):
    values = [[a], a]
    values.sort(key=lambda z: z)


def in_tuples(a):
    values = [(a, 1), ([a], 2)]
    values.sort(key=lambda z: z)


def in_lists(a):
    values = [[a, 1], [[a], 2]]
    values.sort()


def by_values(a):
    values = {1: a, 2: [a]}
    return sorted(values, key=values.get)


def of_three_types(a):
    return sorted([np.float64(2.0) * a, 1, [1], a])


def key_that_computes(a):
    return sorted([3, "x"], key=lambda z: a if z == 3 else z)


def pushed(a):
    heap = []
    heapq.heappush(heap, [1])
    heapq.heappush(heap, a)
    heapq.heappush(heap, "x")


def bisected(a):
    return bisect.bisect([[1], [a]], a)


def reduced(a):
    return functools.reduce(operator.add, [a, 1, [a]])


def mapped(a):
    return list(map(operator.lt, [a], [[1]]))


PROGRAMS = [by_key, in_tuples, in_lists, by_values, of_three_types, key_that_computes]
PROGRAMS += [pushed, bisected, reduced, mapped]


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("on", [True, False])
def test_names(f, on):
    with pytest.raises(TypeError) as expected:
        f(0.5)
    for _ in range(3):
        with jit(on), pytest.raises(TypeError) as caught:
            pullback(f, 0.5)
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("make", [collections.OrderedDict, collections.Counter])
def test_one_error_alone(make):
    """The class of a container is found by trying again; that leaves no second error behind."""

    def f(a):
        return make(p=0, q=a) * a

    with pytest.raises(TypeError) as expected:
        f(0.5)
    with pytest.raises(TypeError) as caught:
        pullback(f, 0.5)
    assert str(caught.value) == str(expected.value)
    assert caught.value.__context__ is None is expected.value.__context__

    def handling(a):
        try:
            raise KeyError("k")
        except KeyError:
            return f(a)

    with pytest.raises(TypeError) as caught:
        pullback(handling, 0.5)
    assert type(caught.value.__context__) is KeyError
