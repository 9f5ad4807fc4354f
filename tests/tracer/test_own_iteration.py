"""Lists, tuples and dicts with methods of their own, given to C code: some of it asks them, some does not."""

import bisect
import collections
import functools
import itertools
import math
import operator
import statistics
import sys
import types

import numpy as np
import pytest

from helpers import assert_close
from wengert import jit, value_and_grad

log = []


def classes(base):
    class Iterates(base):
        def __iter__(self):
            log.append("iter")
            for x in base.__iter__(self):
                yield x * 2.0

    class Counts(base):
        def __len__(self):
            log.append("len")
            return 3

    class Short(base):
        def __len__(self):
            log.append("len")
            return 2

    class Gets(base):
        def __getitem__(self, key):
            log.append("get")
            return base.__getitem__(self, key) * 3.0

    class Reverses(base):
        def __reversed__(self):
            log.append("reversed")
            return iter([7.0, *base.__iter__(self)])

    class Truth(base):
        def __bool__(self):
            log.append("bool")
            return False

        def __contains__(self, x):
            log.append("contains")
            return True

    methods = {
        name: found
        for cls in (Iterates, Counts, Gets, Reverses, Truth)
        for name, found in vars(cls).items()
        if callable(found)
    }
    All = type("All", (base,), methods)  # noqa: N806
    return Iterates, Counts, Short, Gets, All


def unpacked(v):
    a, b, *c = v
    return a * b + sum(c)


USES = {
    "array": lambda v: np.array(v)[1],
    "nested": lambda v: np.asarray([v, v]).sum(),
    "sum": lambda v: np.sum(v),
    "max": lambda v: np.max(v),
    "reduce": lambda v: np.multiply.reduce(v),
    "sin": lambda v: np.sin(v)[1],
    "times": lambda v: (np.array([1.0, 2.0, 3.0]) * v)[2],
    "dot": lambda v: np.dot(v, v),
    "stack": lambda v: np.stack(v)[1],
    "hstack": lambda v: np.hstack(v)[1],
    "concatenate": lambda v: np.concatenate([v, [1.0]]).sum(),
    "where": lambda v: np.where([True, False, True], v, 0.0).sum(),
    "write": lambda v: assigned(v)[2],
    "reversed": lambda v: next(reversed(v)),
    "str": lambda v: float(len(str(v)) > 3),
    "star": lambda v: max([*v]),
    "arguments": lambda v: max(*v),
    "unpacked": unpacked,
    "sets": lambda v: max(set(v)),
    "sorted": lambda v: sorted(v)[0],
    "zip": lambda v: sum(a * b for a, b in zip(v, v, strict=False)),
    "map": lambda v: max(map(math.sin, v)),
    "tuple": lambda v: tuple(v)[1],
    "chain": lambda v: max(itertools.chain(v, v)),
    "folded": lambda v: functools.reduce(lambda a, b: a * b, v),
    "fsum": lambda v: math.fsum(v),
    "prod": lambda v: math.prod(v),
    "dist": lambda v: math.dist(v, [1.0, 1.0, 1.0]),
    "truth": lambda v: 1.0 if v else 2.0,
    "contains": lambda v: float(3.0 in v),
    "slice": lambda v: v[0:1][0] if type(v).__name__ not in ("Gets", "All") else 1.0,
}


def assigned(v):
    a = np.zeros(3)
    a[:] = v
    return a


def outcome(f, x):
    log.clear()
    result = f(x)
    return result, list(log)


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(
    "kind", [*classes(list)[2:], *classes(tuple)[::4]], ids=lambda x: x.__name__
)
def test_what_c_code_asks(kind, name):
    def f(x):
        return USES[name](kind((x, x * x, x + 2.0))) * x

    with jit(True):
        answer = value_and_grad(f)
        for i in range(4):
            x = 1.3 + 0.1 * i
            expected = outcome(f, x)
            slope = float((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)
            (value, found), asked = outcome(answer, x)
            assert (float(value), asked) == (float(expected[0]), expected[1])
            assert_close(found, slope, tol=1e-4)


def test_the_number_of_elements_is_asked_for_by_a_program_too():
    kind = classes(list)[1]

    def f(x):
        return sum([*kind([x, x * x])]) + max(list(kind([x])))

    for x in (1.0, 2.0, 3.0, 4.0, 5.0):
        log.clear()
        assert value_and_grad(f)(x) == (2 * x + x * x, 2.0 + 2 * x)
        assert log == ["len", "len"]


def test_arrays_in_a_sequence_with_a_way_of_its_own():
    class Twice(list):
        def __iter__(self):
            return iter([2.0 * x for x in list.__iter__(self)])

    def f(x):
        v = Twice([x, x * x])
        return np.concatenate(Twice([x, x])).sum() + np.stack(v).sum() + np.choose([0, 1], v).sum()

    x = np.array([1.5, 2.5])
    for _ in range(4):
        value, slope = value_and_grad(f)(x)
        assert value == f(x)
        assert_close(slope, np.array([4.0, 4.0]) + 4 * x + np.array([1.0, 2 * 2.5]))


@pytest.mark.parametrize("name", ["__getitem__", "__iter__", "__len__"])
def test_a_sequence_with_a_way_of_its_own_may_be_stored_anywhere(name):
    kind = type("Own", (list,), {name: lambda self, *key: getattr(list, name)(self, *key)})
    outside, thing, log = kind([0.5, 1.5]), types.SimpleNamespace(v=None), {"k": []}

    def f(x):
        outside[0] = x
        outside.append(x * x)
        thing.v = kind([x])
        log["k"].append(kind([x * x]))
        return outside[-1] * thing.v[0] + log["k"][-1][0]

    for x in (1.5, 2.5, 3.5, 4.5):
        assert value_and_grad(f)(x) == (x**3 + x * x, 3 * x * x + 2 * x)
        assert [*outside][0] == x and [*thing.v] == [x]


class Both:
    """Called and iterated over alike: C code that is handed one, and only hands it on, must hand it on as it is."""

    def __init__(self, k):
        self.k = k

    def __len__(self):
        return 1

    def __iter__(self):
        return iter([self.k])

    def __call__(self, x):
        return x * self.k


def handed_on(x):
    folded = functools.reduce(lambda a, b: a, [1.0, 2.0], Both(x))
    by_key = dict.fromkeys("ab", Both(3.0 * x))
    (_, filled), *_ = itertools.zip_longest([1.0], [], fillvalue=Both(x))
    initial, *_ = itertools.accumulate([1.0], lambda a, b: b, initial=Both(x))
    called = operator.call(Both(x), x)
    return folded(x) + by_key["b"](x) + filled(x) + initial(x) + called


@pytest.mark.parametrize("on", [False, True])
def test_what_is_handed_on_is_handed_on_as_it_is(on):
    with jit(on):
        for x in (1.5, 2.0, 0.5, 2.5, 1.5):
            assert value_and_grad(handed_on)(x) == (7.0 * x * x, 14.0 * x)


class Counting:
    """An iterator that begins anew each time it is asked for one."""

    def __init__(self):
        self.passes = self.i = 0

    def __iter__(self):
        self.i, self.passes = 0, self.passes + 1
        return self

    def __next__(self):
        self.i += 1
        if self.i > 3:
            raise StopIteration
        return float(self.i)


class Hinting(Counting):
    def __length_hint__(self):
        return 3


def first_and_rest(x, items):
    a, *rest = items
    return x * sum(rest) + a


def rest_alone(x, items):
    [*rest] = items
    return x * sum(rest)


def rest_and_last(x, items):
    a, *rest, c = items
    return x * sum(rest) + a * c


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("kind", [Counting, Hinting])
@pytest.mark.parametrize("f", [first_and_rest, rest_alone, rest_and_last])
def test_what_is_unpacked_with_a_star_is_asked_for_an_iterator_again(f, kind, on):
    plain, seen = kind(), kind()
    with jit(on):
        for k in range(6):
            assert value_and_grad(lambda x: f(x, seen))(1.5 + k)[0] == f(1.5 + k, plain)
            assert vars(seen) == vars(plain)


class Letters(Counting):
    def __next__(self):
        return str(super().__next__())


TWICE = {
    "tee": lambda x, items: x * sum(a * b for a, b in zip(*itertools.tee(items), strict=True)),
    "tee into none": lambda x, items: x * len(itertools.tee(items, 0)),
    "tee into one": lambda x, items: x * sum(*itertools.tee(items, 1)),
    "join": lambda x, items: x * len("-".join(map(str, items))) * items.passes,
    "join letters": lambda x, items: x * len("-".join(Letters())),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", TWICE)
def test_tee_and_join_ask_for_an_iterator_again(name, on):
    f, plain, seen = TWICE[name], Counting(), Counting()
    with jit(on):
        for k in range(6):
            assert value_and_grad(lambda x: f(x, seen))(1.5 + k)[0] == f(1.5 + k, plain)
            assert vars(seen) == vars(plain)


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("join", ["-".join, lambda items: str.join("-", items)])
def test_join_asks_an_iterator_again(join, on):
    def passes(x):
        letters = Letters()
        return x * len(join(letters)) * letters.passes

    with jit(on):
        for k in range(6):
            assert value_and_grad(passes)(1.5 + k) == (passes(1.5 + k), 22.0)


class Ordered(list):
    def insert(self, place, item):
        log.append(place)
        list.insert(self, place, item * 2.0)


class Row:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def insert(self, place, item):
        log.append(place)
        self.items.insert(place, item * 2.0)


ROW = [Ordered([1.0, 30.0])]
INSERTED = {
    "of the run": lambda x: then(row := Ordered([1.0, 30.0]), bisect.insort(row, x), row[1] * x),
    "a sequence": lambda x: then(row := Row([1.0, 30.0]), bisect.insort_left(row, x), row[1] * x),
    "by a key": lambda x: then(row := Ordered([30.0, 1.0]), bisect.insort(row, x, key=lambda y: -y), row[1] * x),
    "bounds": lambda x: then(row := Ordered([1.0, 30.0]), bisect.insort(row, x, 0, 1), row[1] * x),
    "a constant": lambda x: then(bisect.insort(ROW[0], 20.0), x * len(log) * sum(ROW[0])),
}  # fmt: skip


def then(*values):
    return values[-1]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", INSERTED)
def test_insort_calls_an_insert_of_its_own(name, on):
    f = INSERTED[name]

    def calls(run):
        log.clear()
        ROW[0] = Ordered([1.0, 30.0])
        return [run(2.0 + k) for k in range(6)], [*log], [*ROW[0]]

    values, *left = calls(f)
    with jit(on):
        found, *seen = calls(value_and_grad(f))
    assert seen == left
    assert [value for value, _ in found] == values
    slope = (lambda x: 4 * x) if name != "a constant" else (lambda x: f_of(values, x) / x)
    assert_close([g for _, g in found], [slope(2.0 + k) for k in range(6)])


def f_of(values, x):
    return values[int(x) - 2]


grown = {"weight": 1.0}


class Drawn:
    def __init__(self, values):
        self.values = iter(values)

    def __iter__(self):
        return self

    def __next__(self):
        log.append("next")
        grown["weight"] = grown["weight"] * 1.5
        return next(self.values)


class GivesAnother:
    """Its iterator is an object of another class, of which C code hears when it runs."""

    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        return Drawn(self.values)


class Alike:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        log.append("equal")
        grown["weight"] = grown["weight"] * 2.0
        return self.number == other

    __hash__ = None


class GivesItems:
    def __getitem__(self, i):
        if i == 3:
            raise IndexError
        return Alike(i)


TAKING = [
    lambda: {1.0}.issubset(GivesAnother(2.0, 1.0)),
    lambda: {1.0}.issuperset(GivesAnother(1.0, 2.0)),
    lambda: {3.0}.isdisjoint(GivesAnother(1.0, 2.0)),
    lambda: len(collections.Counter(GivesAnother(1.0, 2.0))),
    lambda: operator.countOf(GivesAnother(1.0, 2.0), 2.0),
    lambda: operator.countOf(GivesItems(), 2),
    lambda: operator.indexOf(GivesItems(), 1),
]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("number", range(len(TAKING)))
def test_what_methods_give_to_c_code_has_methods_that_are_followed(number, on):
    def f(x):
        grown["weight"] = x
        return x * TAKING[number]() + grown["weight"]

    def outcome(ask, x):
        log.clear()
        return ask(x), [*log]

    with jit(on):
        for k in range(6):
            x = 1.5 + k
            expected, asked = outcome(f, x)
            (value, slope), seen = outcome(value_and_grad(f), x)
            assert value == expected
            assert seen == asked
            assert slope == pytest.approx(expected / x)


class Hints:
    def __init__(self):
        self.left = 3

    def __iter__(self):
        log.append("iter")
        return self

    def __length_hint__(self):
        log.append("hint")
        return self.left

    def __next__(self):
        log.append("next")
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left * 1.0


def star_first(values):
    *some, last = values
    return some


def star_last(values):
    first, *some = values
    return some


def star_between(values):
    first, *some, last = values
    return some


MEASURING = [list, tuple, set, frozenset, sorted, star_first, star_last, star_between]
MEASURING += [lambda v: [*v], lambda v: {*v}, lambda v: {7.0}.union(v), lambda v: {7.0} | set(v)]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("number", range(len(MEASURING)))
def test_a_hint_of_a_length_is_asked_for_where_cpython_does(number, on):
    def f(x):
        return x * len(MEASURING[number](Hints()))

    with jit(on):
        for k in range(5):
            log.clear()
            expected = f(1.5 + k)
            asked = [*log]
            log.clear()
            assert value_and_grad(f)(1.5 + k)[0] == expected
            assert log == asked


class Words:
    """Says how many words it has; its iterator does as well, and is asked elsewhere."""

    def __init__(self, *words):
        self.words = words

    def __iter__(self):
        log.append("iter")
        return HintedWords(self.words)

    def __len__(self):
        log.append("len")
        return 2


class HintedWords:
    def __init__(self, words):
        self.words = iter(words)

    def __iter__(self):
        return self

    def __length_hint__(self):
        log.append("hint")
        return 2

    def __next__(self):
        return next(self.words)


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "take", [",".join, sorted, set, list, lambda words: np.fromiter(words, "U1")]
)
def test_a_length_is_asked_for_where_cpython_does(take, on):
    def f(x):
        log.clear()
        take(Words("a", "b"))
        b",".join(Words(b"a", b"b"))
        return x * len(log)

    with jit(on):
        for k in range(5):
            expected, asked = f(1.5 + k), [*log]
            assert value_and_grad(f)(1.5 + k) == (expected, len(asked))
            assert log == asked


# ------------------------------------------------------------------------------------ filled by C code


class Filled(dict):
    def __setitem__(self, key, value):
        log.append(key)
        grown["weight"] = grown["weight"] * 1.5
        super().__setitem__(key, value)


class FilledInOrder(collections.OrderedDict):
    def __setitem__(self, key, value):
        log.append(key)
        grown["weight"] = grown["weight"] * 1.5
        super().__setitem__(key, value)


class Begun(dict):
    def __init__(self, *args):
        log.append("init")
        grown["weight"] = grown["weight"] * 2.0
        super().__init__(*args)


class Made(dict):
    def __new__(cls, *args):
        log.append("new")
        grown["weight"] = grown["weight"] * 2.0
        return super().__new__(cls, *args)


class Count(int):
    def __new__(cls, value):
        log.append("new")
        grown["weight"] = grown["weight"] * 2.0
        return super().__new__(cls, value)


class Asked(dict):
    def __getitem__(self, key):
        log.append("item")
        grown["weight"] = grown["weight"] * 2.0
        return super().__getitem__(key)

    def __iter__(self):
        return super().__iter__()

    def keys(self):
        log.append("keys")
        grown["weight"] = grown["weight"] * 1.5
        return super().keys()


def locally(x):
    class Local(dict):
        def __setitem__(self, key, value):
            log.append(key)
            grown["weight"] = grown["weight"] * x
            super().__setitem__(key, value)

    return sum(Local.fromkeys("ab", x).values())


FILLING = {
    "constants": lambda x: sum(Filled.fromkeys("ab", 1.0).values()),
    "traced values": lambda x: sum(Filled.fromkeys("ab", x).values()),
    "of an object": lambda x: sum(Filled(a=1.0).fromkeys("ab", x).values()),
    "in order": lambda x: sum(FilledInOrder.fromkeys("ab", x).values()),
    "init": lambda x: sum(Begun.fromkeys("ab", x).values()),
    "new": lambda x: sum(Made.fromkeys("ab", x).values()),
    "from_bytes": lambda x: x * Count.from_bytes(b"a", "big"),
    "a local class": locally,
    "or": lambda x: (Asked(a=x) | {})["a"],
    "or, from the right": lambda x: ({} | Asked(a=x))["a"],
    "copy": lambda x: x * len(dict.copy(Asked(a=1.0))),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", FILLING)
def test_what_a_class_does_when_c_code_fills_it_or_takes_its_items_is_followed(name, on):
    def f(x):
        log.clear()
        grown["weight"] = x
        return FILLING[name](x) * len(log) + grown["weight"]

    with jit(on):
        for k in range(5):
            x, h = 1.5 + k, 1e-6
            slope = (f(x + h) - f(x - h)) / (2 * h)
            expected, asked = f(x), [*log]
            assert value_and_grad(f)(x) == (expected, pytest.approx(slope, rel=1e-6))
            assert log == asked


# ------------------------------------------------------------------------------------ keys that compare


class Alone(int):
    """An integer that has its own way to be equal to others."""

    def __eq__(self, other):
        log.append("equal")
        grown["weight"] = grown["weight"] * 2.0
        return int(self) == int(other)

    def __hash__(self):
        return hash(int(self))


class Seven:
    def __eq__(self, other):
        log.append("seven")
        grown["weight"] = grown["weight"] * 3.0
        return other == 7

    def __hash__(self):
        return 7


TABLE = {Alone(1): 5.0, 2: 3.0}
SEVENS = {Seven(): 2.0}
ALONE = {Alone(1), 2}
LARGE = {i: 1.0 * i for i in range(500) if i != 1} | {Alone(1): 4.0}


def made_inside(x):
    table = {Alone(1): x}
    found = table[1]
    table[1] = x * x
    return found + table.pop(1) + len(table)


def changed_inside(x):
    table = {1: x, 2: 1.0}
    found = table[1]
    del table[2]
    table[Seven()] = x
    return found * table[7]


LOOKING_UP = {
    "an item": lambda x: x * TABLE[1],
    "in": lambda x: x * (1 in TABLE),
    "get": lambda x: x * TABLE.get(1),
    "in a set": lambda x: x * (1 in ALONE),
    "of another class": lambda x: x * SEVENS[7],
    "of many": lambda x: x * LARGE[1] + LARGE[3],
    "of a dict made inside": made_inside,
    "of a dict changed inside": changed_inside,
    "of an updated copy": lambda x: (dict(TABLE) | {1: x})[1],
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", LOOKING_UP)
def test_a_key_in_a_table_that_compares_in_its_own_way_is_followed(name, on):
    def f(x):
        log.clear()
        grown["weight"] = x
        return LOOKING_UP[name](x) * len(log) + grown["weight"]

    with jit(on):
        for k in range(5):
            x, h = 1.5 + k, 1e-6
            slope = (f(x + h) - f(x - h)) / (2 * h)
            expected, asked = f(x), [*log]
            assert value_and_grad(f)(x) == (expected, pytest.approx(slope, rel=1e-6))
            assert log == asked


# ------------------------------------------------------------------------------------ items by their name


class OnlyItems:
    """What an ``OrderedDict`` asks for its items, and a ``dict`` iterates over."""

    def __init__(self, x):
        self.x = x

    def items(self):
        log.append("items")
        return [("a", self.x)]

    def __iter__(self):
        log.append("iter")
        return iter([("a", 3.0 * self.x)])


class InOrder(collections.OrderedDict):
    pass


def updated(table, value):
    table.update(value)
    return table


TABLES = [
    dict,
    collections.OrderedDict,
    InOrder,
    lambda value: updated({}, value),
    lambda value: updated(collections.OrderedDict(), value),
    lambda value: operator.ior(collections.OrderedDict(), value),
    lambda value: operator.ior({}, value),
]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("number", range(len(TABLES)))
def test_an_ordered_dict_asks_for_items(number, on):
    def f(x):
        log.clear()
        return x * TABLES[number](OnlyItems(x))["a"]

    with jit(on):
        for x in (1.5, 2.5, 3.5, 4.5):
            expected, asked = f(x), [*log]
            assert value_and_grad(f)(x) == (expected, pytest.approx(2 * expected / x))
            assert log == asked


class Table:
    def __init__(self, x):
        self.x = x

    def keys(self):
        return ["rate"]

    def __getitem__(self, key):
        return self.x * self.x

    def __iter__(self):
        return iter(["rate"])


class Record(dict):
    def __init__(self, items, **more):
        super().__init__(items, **more)


class Plain(dict):
    pass


SHARED = {}
FROM_MAPPINGS = {
    "super": Record,
    "super with more": lambda m: Record(m, more=1.0),
    "inherited": Plain,
    "unbound": lambda m: dict.__init__(SHARED, m) or SHARED,
    "default": lambda m: collections.defaultdict(float, m),
    "in place": lambda m: {}.__ior__(m),
}


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("name", FROM_MAPPINGS)
def test_a_dict_is_filled_from_a_mapping_in_python(name, on):
    def f(x):
        return FROM_MAPPINGS[name](Table(x))["rate"] * x

    with jit(on):
        for x in (2.0, 3.0, 2.0):
            assert value_and_grad(f)(x) == (x**3, 3 * x * x)


# --------------------------------------------------------------- what changes between one item and the next


def growing(u, fails=False):
    """The same array again and again, changed in between."""
    for k in range(4):
        log.append(k)
        u += k
        yield u if k < 2 or not fails else "none"


def kept_going(take):
    """The log of a consumer that an item makes fail."""

    def f(x):
        log.clear()
        try:
            take(x)
        except (TypeError, ValueError) as error:
            log.append(str(error))
        return x * len(log)

    return f


class Rounded:
    """A number to whoever takes a float, and an array to whoever takes one."""

    def __init__(self, x):
        self.x = x

    def __float__(self):
        log.append("float")
        return self.x

    def __array__(self, *args, **kwargs):
        log.append("array")
        return np.array([7.0])


TAKEN_ONE_BY_ONE = {
    "sum": lambda x: float(sum(growing(np.array([x, 2.0])))[0]),
    "sum from a start": lambda x: float(sum(growing(np.array([x, 2.0])), np.ones(2))[1]) * x,
    "sum of a start that changes": lambda x: float(sum(map(len, growing(u := np.array([x, 2.0]))), u)[0]),
    "sum of a map": lambda x: float(sum(map(operator.iadd, [u := np.array(x)] * 3, [1.0, 2.0, 3.0])) + u),
    "fsum": lambda x: math.fsum(growing(np.array(x))),
    "prod": lambda x: float(math.prod(growing(np.array([x, 2.0])))[0]),
    "prod from a start": lambda x: float(math.prod(itertools.chain([2.0], growing(np.array(x))), start=3)),
    "fromiter": lambda x: np.fromiter(growing(np.array(x)), float).sum(),
    "rows of fromiter": lambda x: np.fromiter(growing(np.array([x, 2.0])), (float, 2)).sum(axis=0)[0],
    "fromiter of objects": lambda x: np.fromiter(map(Rounded, [x, x * x]), float).sum(),
    "sum of what fails": kept_going(lambda x: sum(growing(np.array(x), True))),
    "sum of what does not fit": kept_going(lambda x: sum(v[: 1 + len(log)] for v in growing(np.array([x] * 5)))),
    "fsum of what fails": kept_going(lambda x: math.fsum(growing(np.array(x), True))),
    "prod of what fails": kept_going(lambda x: math.prod(growing(np.array(x), True), start=0.5)),
    "fromiter of what fails": kept_going(lambda x: np.fromiter(growing(np.array(x), True), float)),
    "fromiter of too few": kept_going(lambda x: np.fromiter(growing(np.array(x)), float, 7)),
    "fmean of what fails": kept_going(lambda x: statistics.fmean(growing(np.array(x), True))),
    "set of what fails": kept_going(lambda x: set(map(lambda k: log.append(k) or k, [x, 2, [], 3]))),
    "frozenset of what fails": kept_going(lambda x: frozenset(v for v in growing(np.array(x)))),
    "fmean": lambda x: statistics.fmean(growing(np.array(x))),
}  # fmt: skip
if sys.version_info >= (3, 12):
    TAKEN_ONE_BY_ONE |= {
        "sumprod": lambda x: float(math.sumprod(growing(np.array(x)), [1.0, 2.0, 3.0, 4.0])),
        "sumprod of two": lambda x: float(
            math.sumprod(growing(u := np.array(x)), (float(u) * k for k in range(4)))
        ),
        "sumprod of what fails": kept_going(lambda x: math.sumprod(growing(np.array(x)), [1, 2])),
    }


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", TAKEN_ONE_BY_ONE)
def test_an_item_counts_as_it_is_when_it_is_taken(name, on):
    f = TAKEN_ONE_BY_ONE[name]
    with jit(on):
        at = value_and_grad(f)
        for x in (1.5, 2.5, 3.5):
            log.clear()
            plain, seen = f(x), [*log]
            slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            log.clear()
            value, gradient = at(x)
            assert (value, log) == (plain, seen)
            assert gradient == pytest.approx(slope, rel=1e-6)
