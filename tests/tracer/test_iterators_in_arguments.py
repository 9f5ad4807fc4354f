"""Iterators and views that are arguments, or stand in one: they are seen as they are, and stay where they stood."""

import copy
import functools
import itertools
import types

import pytest

from helpers import assert_same
from wengert import WengertError, jit, pullback, value_and_grad


def running(start):
    total = start
    while True:
        step = yield total
        total += step or 1.0


class Thing:
    def __init__(self, held):
        self.held, self.x = held, 2.0


WHERE = {
    "in a list": (lambda it: [it, 2.0], lambda a: a[0]),
    "in a dict": (lambda it: {"it": it, "x": 2.0}, lambda a: a["it"]),
    "an attribute": (Thing, lambda a: a.held),
    "itself": (lambda it: it, lambda a: a),
}
MADE = {
    "count": lambda: itertools.count(1),
    "list": lambda: iter([1, 2, 3]),
    "range": lambda: iter(range(4)),
    "map": lambda: map(abs, [-1, 2]),
    "generator": lambda: (i for i in [1, 2, 3]),
    "view": lambda: {"a": 1.5}.values(),
    "proxy": lambda: types.MappingProxyType({"a": 1.5}),
    "slice": lambda: slice(0.5, 2),
    "slice of integers": lambda: slice(0, 2),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("made", MADE)
def test_what_is_not_read_stays_where_it_stood(made, where, on):
    put, get = WHERE[where]
    with jit(on):
        for _ in range(4):
            thing = MADE[made]()
            argument = put(thing)
            pullback(lambda a, x: 3.0 * x, argument, 1.5)
            assert get(argument) is thing


LOOKS = {
    "next": lambda it: next(it) * 2,
    "type": lambda it: type(it).__name__,
    "instance": lambda it: isinstance(it, types.GeneratorType),
    "sent": lambda it: (next(it), it.send(5.0))[1] if hasattr(it, "send") else None,
    "name": lambda it: getattr(it, "__name__", None),
    "elements": lambda it: [*itertools.islice(it, 3)],
    "for": lambda it: [a * b for a, b in zip(range(2), it, strict=False)],
    "length": lambda it: len(repr(type(it))),
}
NUMBERED = {
    "running": lambda: running(1),
    "count": lambda: itertools.count(1, 2),
    "list": lambda: iter([1, 2, 3]),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("made", NUMBERED)
def test_seen_as_in_plain_python(made, look, where):
    put, get = WHERE[where]

    def f(a):
        return LOOKS[look](get(a))

    for on in (True, False):
        with jit(on):
            for _ in range(3):
                one, other = NUMBERED[made](), NUMBERED[made]()
                assert_same(pullback(f, put(one))[0], f(put(other)))
                assert_same(next(one, None), next(other, None))  # each has been drawn from as often


def draws(it):
    for v in it:
        return v


def filled(fill, made=list):
    """What a method that takes the elements of an iterator makes of them."""
    container = made()
    fill(container)
    return sum(container)


READ = {
    "chained": lambda it: sum(itertools.chain.from_iterable([it])),
    "chain of iterators": lambda it: sum(itertools.chain.from_iterable(iter([it, it]))),
    "made again": lambda it: filled(lambda c: c.__init__(it)),
    "added": lambda it: filled(lambda c: c.__iadd__(it)),
    "a slice": lambda it: filled(lambda c: c.__setitem__(slice(0, 0), it)),
    "united": lambda it: sum(set().union(it)),
    "of the set": lambda it: sum(set.symmetric_difference({0.5}, it)),
    "in common": lambda it: sum({1.5, 2.5}.intersection(it)),
    "next": next,
    "dunder": lambda it: it.__next__(),
    "for": draws,
    "sum": sum,
    "zip": lambda it: sum(a * b for a, b in zip(it, [1.0, 2.0], strict=False)),
    "islice": lambda it: sum(itertools.islice(it, 1)),
    "tee": lambda it: sum(itertools.tee(it)[1]),
    "map": lambda it: sum(map(lambda v: v * v, it)),
    "star": lambda it: max(*it),
    "reduce": lambda it: functools.reduce(lambda a, b: a * b, it),
    "text": lambda it: float([*map(str, it)][0]),
    "send": lambda it: it.send(None) if hasattr(it, "send") else next(it),
}
OF_FLOATS = {
    "list": lambda: iter([1.5, 2.5]),
    "generator": lambda: (v for v in [1.5, 2.5]),
    "repeat": lambda: itertools.repeat(1.5, 2),
    "cycle": lambda: itertools.islice(itertools.cycle([1.5, 2.5]), 2),
    "chain": lambda: itertools.chain([1.5], [2.5]),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "made",
    [
        lambda: itertools.chain([1.5], [2.5]),
        lambda: itertools.chain.from_iterable([[1.5], iter([2.5])]),
        lambda: itertools.accumulate([1.5, 2.5]),
        lambda: itertools.repeat(1.5, 2),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(not hasattr(itertools.chain, "__setstate__"), reason="not copied from 3.14 on")
def test_a_derivative_by_what_the_copy_of_an_iterator_gives_is_refused(made, on):
    def begun(a):
        next(a[0])
        return next(copy.copy(a[0])) * a[1]

    with jit(on):
        for _ in range(3):
            for f in (lambda a: sum(copy.copy(a[0])) * a[1], begun):
                with pytest.raises(WengertError, match="make a list of it"):
                    value_and_grad(f)([made(), 2.0])


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("where", ["in a list", "an attribute"])
@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("made", OF_FLOATS)
def test_a_derivative_by_what_an_iterator_gives_is_refused(made, read, where, on):
    put, get = WHERE[where]

    def f(a):
        return READ[read](get(a)) * 2.0

    with jit(on):
        for _ in range(3):
            with pytest.raises(WengertError):
                value_and_grad(f)(put(OF_FLOATS[made]()))


def test_an_endless_iterator_is_drawn_from_as_far_as_it_is_asked():
    def f(x, a):
        return sum(x * i for _, i in zip(range(3), a[0], strict=False)) + next(a[0])

    for on in (True, False):
        with jit(on):
            for x in (1.5, 2.5, 0.5, 3.5):
                argument = [itertools.count(1)]
                assert value_and_grad(f)(x, argument) == (f(x, [itertools.count(1)]), 6.0)
                assert next(argument[0]) == 5
