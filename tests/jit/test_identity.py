"""Objects that are told apart by nothing but which they are: a kept program asks for the very same ones."""

import collections
import copy
import enum
import functools
import gc
import operator
import weakref

import numpy as np
import pytest

from wengert import clear_cache, explain, jit, jvp, linearize, pullback, value_and_grad
from wengert.transforms.budget import Budget


class Color(enum.Enum):
    RED = 0.5
    BLUE = 1.5


class Thing:
    pass


def one():
    pass


def two():
    pass


PAIRS = {
    "members": (Color.RED, Color.BLUE),
    "objects": (Thing(), Thing()),
    "plain objects": (object(), object()),
    "functions": (one, two),
    "classes": (Thing, Color),
    "partials": (functools.partial(one), functools.partial(two)),
}
ASKED = {
    "value_and_grad": lambda f: value_and_grad(f)(1.0)[0],
    "pullback": lambda f: pullback(f, 1.0)[0],
    "jvp": lambda f: jvp(f, (1.0,), (1.0,))[0],
    "linearize": lambda f: linearize(f, 1.0)[0],
}
DECISIONS = {
    "==": lambda c, b: c == b,
    "!=": lambda c, b: c != b,
    "is": lambda c, b: c is b,
    "operator.eq": lambda c, b: operator.eq(c, b),
    "in a tuple": lambda c, b: (c, 1) == (b, 1),
    "in a list": lambda c, b: [c] != [b],
    "in a dict": lambda c, b: {1: c} == {1: b},
    "in a set": lambda c, b: {c} == {b},
    "nested": lambda c, b: ((c,), [c]) == ((b,), [b]),
    "tuple in": lambda c, b: (c, 1) in [(b, 1)],
    "in": lambda c, b: c in [b],
    "in a deque": lambda c, b: c in collections.deque([b]),
    "key": lambda c, b: c in {b: 1},
    "tuple as key": lambda c, b: (c, 1) in {(b, 1): 1},
    "count": lambda c, b: [b, b].count(c),
    "index": lambda c, b: [b, c].index(c),
    "countOf": lambda c, b: operator.countOf([b], c),
    "get": lambda c, b: {b: 2.0}.get(c, 3.0),
    "get of a tuple": lambda c, b: {(b, 1): 2.0}.get((c, 1), 3.0),
    "setdefault": lambda c, b: {b: 2.0}.setdefault(c, 3.0),
    "pop": lambda c, b: {b: 2.0}.pop(c, 3.0),
    "set": lambda c, b: len({c, b}),
    "set of": lambda c, b: len(set([c, b])),
    "frozenset": lambda c, b: len(frozenset([c, b])),
    "dict": lambda c, b: len({c: 1, b: 2}),
    "dict of": lambda c, b: len(dict([(b, 1), (c, 2)])),
    "fromkeys": lambda c, b: len(dict.fromkeys([b, c])),
    "Counter": lambda c, b: len(collections.Counter([c, b])),
    "set display": lambda c, b: len({y for y in (c, b)}),
    "dict display": lambda c, b: len({y: 1 for y in (c, b)}),
    "&": lambda c, b: len({c} & {b}),
    "|": lambda c, b: len({c} | {b}),
    "union": lambda c, b: len({b}.union([c])),
    "issubset": lambda c, b: {c}.issubset({b}),
    "isdisjoint": lambda c, b: {b}.isdisjoint([c]),
    "dicts": lambda c, b: len({b: 1} | {c: 2}),
    "keys": lambda c, b: {b: 1}.keys() == {c: 1}.keys(),
    "any": lambda c, b: any(x == y for x, y in zip([c], [b])),
}
CURRENT = None


@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_an_object_in_the_place_of_another(pair, ask, decide):
    global CURRENT
    other = pair[1]

    def f(x):
        return x * (2.0 + decide(CURRENT, other))

    for first, then in (pair, pair[::-1]):
        for k in range(7):
            CURRENT = first if k < 5 else then
            assert ask(f) == f(1.0), k


PAIR = (1.0, 2.0)


class HasPair:
    pair = (1.0, 2.0)


def with_a_global(x):
    t = (1.0, 2.0)
    return x * 2 if t is PAIR else x * 3


def with_is_not(x):
    t = (1.0, 2.0)
    return x * 2 if PAIR is not t else x * 3


def with_an_attribute(x):
    t = (1.0, 2.0)
    return x * 2 if t is HasPair.pair else x * 3


def with_a_default(x, k=(1.0, 2.0)):
    t = (1.0, 2.0)
    return x * 2 if t is k else x * 3


def with_an_argument(x, t=(1.0, 2.0)):
    return x * 2 if t is PAIR else x * 3


def with_another(x):
    t = (x, 2.0)
    return x * 2 if t is PAIR else x * 3


def in_a_loop(x):
    for _ in range(6):
        t = (1.0, 2.0)
        x = x * 2 if t is PAIR else x * 3
    return x


TUPLES = (
    with_a_global,
    with_is_not,
    with_an_attribute,
    with_a_default,
    with_an_argument,
    with_another,
    in_a_loop,
)


@pytest.mark.parametrize("f", TUPLES)
def test_constant_tuples_are_shared_by_a_module(f):
    for x in (1.0, 1.5, 2.0, 2.5):
        value = f(x)
        assert value_and_grad(f)(x) == (value, value / x)
        assert jvp(f, (x,), (1.0,)) == (value, value / x)


def test_a_tuple_that_is_an_argument_and_a_global():
    for x in (1.0, 1.5, 2.0, 2.5):
        assert value_and_grad(with_an_argument)(x, PAIR) == (2 * x, 2.0)
        assert value_and_grad(with_an_argument)(x, (x, 2.0)) == (3 * x, 3.0)


SAME, SHIFTED, BACKWARDS, BESIDE, WOVEN = (
    lambda m: (m[:3], m[:3]),
    lambda m: (m[:3], m[1:4]),
    lambda m: (m[:3], m[2::-1]),
    lambda m: (m[0:6:2], m[1:7:2]),
    lambda m: (m[0:6:2], m[2:8:2]),
)


@pytest.mark.parametrize(
    ("first", "then"), [(SAME, SHIFTED), (SAME, BACKWARDS), (BESIDE, WOVEN), (SHIFTED, SAME)]
)
def test_arrays_that_overlap_otherwise_are_another_program(first, then):
    """That two arrays share memory says nothing of the elements that they share."""

    def f(a, b):
        a *= 2.0
        return (b**3).sum()

    both = value_and_grad(f, (0, 1))
    for cut in [first] * 5 + [then] * 3 + [first] * 2:
        value, found = both(*cut(np.arange(1.0, 9.0)))
        assert value == f(*cut(np.arange(1.0, 9.0)))
        with jit(False):
            _, expected = both(*cut(np.arange(1.0, 9.0)))
        for d, right in zip(found, expected, strict=True):
            assert d.tolist() == right.tolist()


class Node:
    def __init__(self, weight):
        self.weight = weight


FIXED = {
    "keys": lambda a, b: {a: 1.0, b: 2.0},
    "elements": lambda a, b: {a, b},
    "frozen": lambda a, b: frozenset((a, b)),
    "tuples": lambda a, b: {(a, b): 1.0},
    "slice": lambda a, b: [slice(a, 3, b)],
}


def first(held):
    x = next(iter(held))
    return x[0] if isinstance(x, tuple) else x.start if isinstance(x, slice) else x


@pytest.mark.parametrize("kind", FIXED)
def test_what_is_a_key_and_has_a_name_is_one_object(kind):
    """Guards on keys say which objects these are: the name must be that of the same."""
    a, b = Node(2.0), Node(3.0)
    held = FIXED[kind](a, b)
    start = first(held)

    def f(x):
        return start.weight * x + first(held).weight * x * x

    g = value_and_grad(f)
    for x in (1.0, 2.0, 3.0, 4.0):
        assert g(x)[0] == f(x)
    start = b if start is a else a
    for x in (1.0, 2.0):
        assert g(x)[0] == f(x)
    a.weight, b.weight = 7.0, 11.0
    for x in (1.0, 2.0):
        assert g(x)[0] == f(x)


def test_attributes_of_keys_are_read_anew():
    a, b = Node(2.0), Node(3.0)
    held = {a: 1.0, b: 2.0}

    def f(x):
        return sum(n.weight * c for n, c in held.items()) * x * x

    g = value_and_grad(f)
    for x in (1.0, 2.0, 3.0, 4.0):
        assert g(x)[0] == f(x)
    b.weight = 7.0
    assert g(2.0) == (64.0, 64.0)


def test_a_key_may_be_an_argument_too():
    a, b = Node(2.0), Node(3.0)

    def f(held, node):
        return node.weight**2 * sum(held.values())

    g = value_and_grad(f, (0, 1))
    for _ in range(4):
        value, (_, node) = g({a: 1.0, b: 2.0}, a)
        assert (value, node) == (12.0, {"weight": 12.0})


SOUGHT = {
    "in": lambda x, y: x in [y],
    "in the user's container": lambda x, y: x in Given(y),
    "lists": lambda x, y: [x] == [y],
    "tuples": lambda x, y: (x, 1) == (y, 1),
    "index": lambda x, y: [y, x].index(x) == 0,
    "count": lambda x, y: [x, y, x].count(x) == 3,
    "a global": lambda x, y: [x, NAN].count(NAN) == 2,
}
NAN = float("nan")


class Given:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("sought", SOUGHT.values(), ids=SOUGHT)
def test_a_nan_is_found_where_it_is_the_very_same(sought):
    """A program that was kept for numbers is given one NaN twice, and two of them."""

    def f(x, y):
        return 2 * x if sought(x, y) else 1.0

    g = value_and_grad(f)
    with jit(True):
        for x, y in [(1.5, 2.5)] * 5 + [(2.5, 1.5)] * 2:
            assert g(x, y) == (f(x, y), 0.0)
        for x, y in [(NAN, NAN), (float("nan"), float("nan")), (1.5, 2.5)]:
            assert g(x, y)[1] == (2.0 if sought(x, y) else 0.0)


class Watched:
    def __init__(self, number):
        self.number = number


MARKS, THINGS = weakref.WeakKeyDictionary(), [Watched(1.0), Watched(2.0)]


def marking(x):
    s = 0.0
    for thing in THINGS:
        mark = MARKS.setdefault(thing, {"hits": 0})
        mark["hits"] += 1
        s += x * mark["hits"]
    return s + len(MARKS)


def test_what_a_pass_that_was_given_up_has_met_is_held_no_longer(monkeypatch):
    monkeypatch.setattr(Budget, "limited", True)
    clear_cache()
    transformed = value_and_grad(marking)
    gc.disable()
    try:
        for _ in range(10):
            transformed(1.0)
        del THINGS[0]
        assert len(MARKS) == 1
    finally:
        gc.enable()


class Copied:
    def __init__(self, k):
        self.k = k


def test_a_copy_has_the_attributes_that_stand_in_the_dict():
    thing = Copied(2.0)

    def f(x):
        return x, copy.copy(thing)

    transformed = value_and_grad(f, has_aux=True)
    try:
        for i in range(8):
            if i == 4:
                Copied.k = property(lambda self: -1.0, lambda self, value: None)
            (_, made), _ = transformed(2.0)
            assert vars(made) == {"k": 2.0}
    finally:
        del Copied.k


PAIR = (5, 6)
TUPLES = {
    "in the code": lambda k: (1, "a"),
    "made": lambda k: (k, "a"),
    "made, of what is in the code": lambda k: (k, (1, 2)),
    "made within another": lambda k: (1, (k, 2)),
    "in a list": lambda k: [(k, 2), (1, 2)],
    "chosen": lambda k: (1, 2) if k else (3, 4),
    "by C code": lambda k: tuple([k, 1]),
    "empty": lambda k: (),
    "of a module": lambda k: PAIR,
    "a default": lambda k, pair=PAIR: (k, pair),
}


def tuples_in(value):
    inner = [x for part in value for x in tuples_in(part)] if type(value) in (tuple, list) else []
    return [value, *inner] if type(value) is tuple else inner


def pattern(values):
    """Which tuples in a list are the very same."""
    first = {}
    return [first.setdefault(id(x), i) for i, x in enumerate(tuples_in(values))]


@pytest.mark.parametrize("make", TUPLES.values(), ids=TUPLES)
def test_a_tuple_put_outside_is_the_same_at_each_call_where_it_is_in_plain_python(make):
    def f(x, k=3):
        value = make(k)
        put.append(value)
        if type(value) is tuple:
            put.append(value)
        return x * x

    clear_cache()
    cached = value_and_grad(f)
    put = plain = []
    for _ in range(8):
        f(3.0)
    put = []
    for _ in range(8):
        assert cached(3.0) == (9.0, 6.0)
    assert "1 program, " in str(explain(cached))
    assert put == plain
    assert pattern(put) == pattern(plain)
    assert TUPLES["in the code"] is not make or put[-1] is plain[-1]


@pytest.mark.parametrize("make", TUPLES.values(), ids=TUPLES)
def test_a_tuple_returned_is_the_same_at_each_call_where_it_is_in_plain_python(make):
    def f(x, k=3):
        return x * x, make(k)

    clear_cache()
    cached = value_and_grad(f, has_aux=True)
    plain = [f(3.0)[1] for _ in range(8)]
    found = [cached(3.0)[0][1] for _ in range(8)]
    assert "1 program, " in str(explain(cached))
    assert found == plain
    assert pattern(found) == pattern(plain)
