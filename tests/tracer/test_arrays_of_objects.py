"""Arrays of objects: what the run has put into one stays what it is, however it is read, and whoever changes it."""

import collections
import operator

import numpy as np
import pytest

from wengert import NoRuleError, jit, value_and_grad

WAYS = {  # to read the first element of an array of objects
    "item": lambda d: d[0],
    "tolist": lambda d: d.tolist()[0],
    "item()": lambda d: d.item(0),
    "next": lambda d: next(iter(d)),
    "for": lambda d: [x for x in d][0],  # noqa: C416
    "unpacked": lambda d: (lambda first, *rest: first)(*d),
    "list": lambda d: list(d)[0],
    "enumerate": lambda d: dict(enumerate(d))[0],
    "map": lambda d: next(map(lambda x: x, d)),
    "zip": lambda d: next(zip(d, d, strict=True))[1],
    "deque": lambda d: collections.deque(d)[0],
    "copy": lambda d: d.copy()[0],
    "take": lambda d: np.take(d, 0),
    "flat": lambda d: d.flat[0],
    "reshape": lambda d: d.reshape(1, 2)[0, 0],
    "slice": lambda d: d[:1][0],
    "itemgetter": lambda d: operator.itemgetter(0)(d),
    "ndenumerate": lambda d: dict(np.ndenumerate(d))[(0,)],
    "__getitem__": lambda d: np.ndarray.__getitem__(d, 0),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_list_that_changes_later(way, on):
    read = WAYS[way]

    def f(x):
        first = [1.0]
        held = np.empty(2, object)
        held[0] = first
        first.append(x)
        read(held).append(x * x)
        return sum(first) * x + (read(held) is first)

    with jit(on):
        for x in (2.5, 3.0, 0.5, 2.5):
            value, slope = value_and_grad(f)(x)
            assert value == f(x)
            assert slope == pytest.approx(1 + 2 * x + 3 * x * x)


@pytest.mark.parametrize("on", [True, False])
def test_in_a_tuple_and_in_a_dict(on):
    def f(x):
        first, second = [1.0], {}
        held = np.empty(2, object)
        held[0], held[1] = (first, 2.0), second
        first[0] = x
        second["a"] = x * x
        return held[0][0][0] * held[1]["a"]

    with jit(on):
        for x in (2.5, 3.0, 0.5):
            assert value_and_grad(f)(x) == (f(x), pytest.approx(3 * x * x))


def inserted(x, given):
    """What ``lil_insert`` does, a function in Cython: it puts a number into a list in an array of objects."""
    tools = pytest.importorskip("scipy.sparse._csparsetools")
    rows, data = np.empty(2, object), np.empty(2, object)
    for i in range(2):
        rows[i], data[i] = [], []
    known = data[0]
    tools.lil_insert(2, 2, rows, data, 0, 1, given)
    return known, data, x


@pytest.mark.parametrize("on", [True, False])
def test_c_code_changes_a_list_in_an_array(on):
    def f(x):
        known, data, x = inserted(x, 4.0)
        return (known[0] + sum(data[0])) * x + len(list(data)[0])

    with jit(on):
        for x in (2.5, 3.0, 0.5):
            assert value_and_grad(f)(x) == (f(x), 8.0)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("read", [lambda known, data: known[0], lambda known, data: data[0][0]])
def test_what_c_code_puts_into_a_list_in_an_array_is_not_lost(read, on):
    def f(x):
        known, data, x = inserted(x, x)
        return read(known, data) * 2.0

    with jit(on):
        for x in (2.5, 3.0, 0.5):
            with pytest.raises(NoRuleError, match="lil_insert"):
                value_and_grad(f)(x)


@pytest.mark.parametrize("on", [True, False])
def test_sparse_matrices_of_lists(on):
    sparse = pytest.importorskip("scipy.sparse")

    def f(x):
        matrix = sparse.lil_array((2, 2))
        matrix[0, 1] = 3.0
        matrix[1, 0] = 2.0
        return float(matrix.toarray()[0, 1]) * x + float((matrix @ np.array([1.0, 2.0]))[0])

    with jit(on):
        for x in (2.5, 3.0, 0.5):
            assert value_and_grad(f)(x) == (f(x), 3.0)


@pytest.mark.parametrize("on", [True, False])
def test_vectorize_of_lists(on):
    def f(x):
        items = [1.0]
        made = np.vectorize(lambda i: items, otypes=[object])([0, 1])
        items.append(x)
        return made[0][1] * x + (made[1] is items)

    def wrong(x):
        return np.vectorize(lambda i: [1.0, 2.0])([0, 1])[0] * x

    with jit(on):
        for x in (2.5, 3.0, 0.5):
            assert value_and_grad(f)(x) == (f(x), 2 * x)
            with pytest.raises(ValueError, match="setting an array element with a sequence"):
                value_and_grad(wrong)(x)
