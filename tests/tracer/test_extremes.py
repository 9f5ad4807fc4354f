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


def alone(n):
    return max(2, n)


def of_a_list(n):
    return max([2, n, 1]) * n + min([n, 2])


def bounded(n):
    return min(5, max(2, n)) * n


def in_a_loop(n):
    total = 0.0
    for k in range(5):
        total += max(k, n) * n
    return total


def generated(n):
    return sum(max([k, n]) * n for k in range(5))


def taken_in_turn(n):
    return max(v for v in [2, n, 1]) + max(iter([n, 2])) * n


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("f", [alone, of_a_list, bounded, in_a_loop, generated, taken_in_turn])
def test_an_integer_shares_the_slope_with_a_number_that_is_equal(f, flat, monkeypatch):
    """Whichever of them is the result: half of the slope before and half of that behind."""
    if flat:
        monkeypatch.setenv("WENGERT_FOLD", "0")
    monkeypatch.setattr(Budget, "limited", False)
    slope = (f(2 + 1e-6) - f(2 - 1e-6)) / 2e-6
    for on in (True, False):
        with jit(on):
            for n in (2.0, 1.5, 2.0, 2.0, 2, 3, 2, 2, np.float64(2.0), np.float64(2.0)):
                value, found = value_and_grad(f)(n)
                assert (value, type(value)) == (f(n), type(f(n)))
                if n == 2:
                    assert found == pytest.approx(slope, rel=1e-5)
