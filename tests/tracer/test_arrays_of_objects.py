"""Arrays of objects: what the run has put into one stays what it is, however it is read, and whoever changes it."""

import collections
import operator

import numpy as np
import pytest

from wengert import GuardError, NoRuleError, jit, trace, value_and_grad

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


WORDS = np.array(["a", "bb", "ccc", "dddd"], dtype=object)
INDICES = {
    "mask": lambda w: w * np.arange(4.0) > 2.0,
    "inverted": lambda w: ~np.array([True, False, True, False]),
    "order": lambda w: np.argsort(-w * np.array([1.0, 3.0, 2.0, 0.0]))[:2],
    "tuple": lambda w: (np.argsort(w * np.array([2.0, 1.0])),),
    "number": lambda w: np.argmax(w * np.array([2.0, 1.0])),
    "slice": lambda w: slice(np.argmax(w * np.array([2.0, 1.0])), 3),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("words", [WORDS, WORDS.astype(str)], ids=["objects", "text"])
def test_an_array_of_words_is_indexed_by_what_was_computed(words, index, on):
    chosen = INDICES[index]

    def f(w):
        picked = words[chosen(w)]
        return w * w * sum(len(x) * (i + 1) for i, x in enumerate(picked))

    with jit(on):
        for w in (2.5, -3.0, 0.5, 2.5, 2.5, -1.0, 2.5):
            value, slope = value_and_grad(f)(w)
            assert value == f(w)
            assert slope == pytest.approx(2 * f(w) / w)


def test_which_words_an_array_chose_is_a_decision_on_the_tape():
    def f(w):
        return w * len(WORDS[np.argsort(w * np.arange(4.0))][0])

    tape = trace(f, 2.0)
    assert tape(3.0) == 3.0
    with pytest.raises(GuardError):
        tape(-3.0)


def test_what_is_wrong_with_an_index_is_what_numpy_says():
    def f(w):
        try:
            WORDS[w * np.arange(4.0)]
        except IndexError as error:
            return w * len(str(error))

    assert value_and_grad(f)(2.0) == (f(2.0), f(1.0))


def test_groups_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 4.0], "g": ["a", "b", "a"]})

    def f(w):
        loss = 0.0
        for _, part in frame.groupby("g"):
            loss += np.sum((part["y"].to_numpy() - w * part["t"].to_numpy()) ** 2)
        return loss

    for w in (2.0, 3.0, 2.0):
        value, slope = value_and_grad(f)(w)
        assert value == f(w)
        assert slope == pytest.approx(10 * w - 18)


asked = []


class Vector:
    """Makes an array of itself, and adds in a way of its own."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        asked.append("array")
        return np.array(self.value)

    def __add__(self, other):
        asked.append("add")
        return self


RAGGED = {
    "beside a number": lambda: np.array([Vector([1.0, 1.0]), 2], dtype=object),
    "beside a longer list": lambda: np.array([Vector([1.0, 1.0]), [1, 2, 3]], dtype=object),
    "beside a list as long": lambda: np.array([Vector([1.0, 1.0]), [1, 2]], dtype=object),
    "in a list": lambda: np.array([[Vector([1.0]), 2], 3.0], dtype=object),
    "in a tuple": lambda: np.asarray((Vector([1.0]), None), "O"),
    "in a table": lambda: np.array([[Vector([1.0]), 2], [3, 4]], dtype=object),
    "without a dimension": lambda: np.array([Vector(1.0), 2], dtype=object),
    "added": lambda: np.array([Vector([1.0, 1.0]), 2], dtype=object) + 1,
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", RAGGED)
def test_what_agrees_on_no_shape_is_kept_as_it_is(name, on):
    def f(x):
        asked.clear()
        made = RAGGED[name]()
        asked.append([type(v) for v in made.flat])
        vectors = sum(isinstance(v, Vector) for v in made.flat)
        return x * (1.0 + vectors + 10 * len(made.shape))

    with jit(on):
        for x in (2.5, 3.0, 0.5, 2.5):
            expected, before = f(x), [*asked]
            assert value_and_grad(f)(x) == (expected, expected / x)
            assert asked == before
