"""``min`` and ``max`` of what comes one by one: all that happens, happens in the order of plain Python."""

import collections
import operator

import numpy as np
import pytest

from wengert import jit, value_and_grad
from wengert.transforms.budget import Budget

log = []


class Ranked:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        log.append("lt")
        return self.v < other.v

    def __gt__(self, other):
        log.append("gt")
        return self.v > other.v


class Source:
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        log.append("iter")
        return one_by_one(self.values)


def one_by_one(values):
    for x in values:
        log.append("draw")
        yield x
    log.append("end")


def negative(v):
    log.append("key")
    return -v


CASES = {
    "numbers": lambda x: max(one_by_one([x, 1.0, x * x])),
    "a key": lambda x: max(one_by_one([x, 1.0, x * x]), key=negative),
    "a key, of an object": lambda x: min(Source(x, 1.0, x * x), key=negative),
    "objects": lambda x: min(one_by_one([Ranked(x), Ranked(1.0), Ranked(x * x)])).v,
    "a list": lambda x: max([x, 1.0, x * x], key=negative),
    "one, and a default": lambda x: min(one_by_one([x]), default=3.0),
    "none, and a default": lambda x: max(one_by_one([]), default=x),
    "iterators of C code": lambda x: max(iter([x, 2.0])) * min(map(negative, one_by_one([x, 1.0]))),
    "lists": lambda x: max(one_by_one([[x], [1.0, 2.0], [x, x]]))[0],
    "mixed": lambda x: max(one_by_one([x, np.float64(1.0), 1])) * x,
    "nothing": lambda x: max(one_by_one([])) * x,
    "no order": lambda x: max(one_by_one([x, None, x])) * x,
    "no order of complex numbers": lambda x: max(one_by_one([1j, x, x])),
}


def outcome(f, *args):
    log.clear()
    try:
        return f(*args), [*log]
    except (TypeError, ValueError) as error:
        return (type(error), str(error)), [*log]


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_draws_keys_and_comparisons(name, enabled, limited, monkeypatch):
    monkeypatch.setattr(Budget, "limited", limited)
    f = CASES[name]
    with jit(enabled):
        for x in (0.7, 1.3, 0.6, 1.4, 1.5):
            expected, order = outcome(f, x)
            found, seen = outcome(value_and_grad(f), x)
            assert seen == order
            if isinstance(expected, tuple):
                assert found == expected
                continue
            slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            assert found[0] == expected
            assert found[1] == pytest.approx(slope, rel=1e-6, abs=1e-6)


class Named:
    def __init__(self, x, name):
        self.x, self.name = x, name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name


@pytest.mark.parametrize("how", ["items", "most_common"])
def test_a_key_in_c_leaves_the_methods_of_classes_as_they_are(how):
    """The key was asked by code of ours as if that were the user's, which left every method of the class detoured."""

    def f(x):
        values = [Named(x, name) for name in "aba"]
        if how == "items":
            most = max(iter({v: v.x for v in values}.items()), key=operator.itemgetter(1))
            return most[1] * x
        ((value, count),) = collections.Counter(values).most_common(1)
        return value.x * x * count

    own = Named.__hash__.__code__
    count = 1 if how == "items" else 2
    for x in (1.0, 2.0, 3.0, 4.0):
        assert value_and_grad(f)(x) == (count * x * x, 2 * count * x)
        assert Named.__hash__.__code__ is own
