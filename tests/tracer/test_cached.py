"""Functions under ``lru_cache`` over a partial, a method or an object: the cache is asked as in plain Python."""

import dataclasses
import functools
import operator

import numpy as np
import pytest

from wengert import TraceError, jit, value_and_grad


def product(a, b, scale=1.0):
    return a * b * scale


class Multiplier:
    def __init__(self, a):
        self.a = a

    def times(self, b):
        return self.a * b

    __call__ = times


BODIES = {
    "function": lambda a: lambda b: product(a, b),
    "partial": lambda a: functools.partial(product, a),
    "keyword": lambda a: functools.partial(product, a, scale=2.0),
    "partial of a partial": lambda a: functools.partial(functools.partial(product, a), scale=2.0),
    "method": lambda a: Multiplier(a).times,
    "object": Multiplier,
    "partial of a method": lambda a: functools.partial(Multiplier.times, Multiplier(a)),
    "C": lambda a: functools.partial(operator.mul, a),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", BODIES)
def test_the_cache_counts_its_hits(name, on):
    """Made inside, and outside; asked for plain numbers, and for traced ones."""

    def inside(x):
        cached = functools.lru_cache(BODIES[name](x))
        y = cached(3.0) + cached(3.0) + cached(4.0)
        return y * cached.cache_info().hits + x * cached.cache_info().currsize

    def outside(cached, x):
        y = cached(3.0) + cached(x) + cached(3.0) * x
        return y * 1.0, cached.cache_info()[:2], cached.cache_info().currsize

    with jit(on):
        for x in (2.0, 5.0, 2.0, 7.0):
            expected = inside(x)
            value, slope = value_and_grad(inside)(x)
            assert value == expected and slope == pytest.approx(expected / x)

            plain, traced = (functools.lru_cache(BODIES[name](1.5)) for _ in range(2))
            for y in (x, x, 3.0, x):
                expected = outside(plain, y)
                f = lambda y: outside(traced, y)[0]  # noqa: E731
                value, slope = value_and_grad(f)(y)
                assert value == expected[0] and traced.cache_info() == plain.cache_info()
                unit = plain(1.0)
                traced(1.0)
                assert slope == pytest.approx(unit + 3 * unit)


@pytest.mark.parametrize("on", [True, False])
def test_a_body_that_runs_again_for_its_derivative_asks_no_cache_for_traced_values(on):
    """In plain Python the outer cache answers, and the inner calls are not there."""

    def made():
        @functools.lru_cache(2)
        def square(x):
            return x * x

        @functools.lru_cache(None)
        def fibonacci(n, x):
            return x if n < 2 else fibonacci(n - 1, x) + square(fibonacci(n - 2, x))

        return square, fibonacci

    plain, traced = made(), made()
    with jit(on):
        for x in (0.5, 0.5, 0.25, 0.5, 0.5):
            value, slope = value_and_grad(lambda x: traced[1](4, x) * x)(x)
            assert value == plain[1](4, x) * x
            assert [c.cache_info() for c in traced] == [c.cache_info() for c in plain]
            h = 1e-6
            pure = [made()[1](4, y) * y for y in (x + h, x - h)]
            assert slope == pytest.approx((pure[0] - pure[1]) / (2 * h), rel=1e-6)


MAKES = {
    "list": lambda y: [y, y * y],
    "dict": lambda y: {0: y, 1: y * y},
    "list in a list": lambda y: [[y, y], [y * y]],
    "list in a dict": lambda y: {"a": [y, y * y]},
    "array": lambda y: np.array([y, y * y]),
}
FIRST = {"list in a list": lambda c: c[0], "list in a dict": lambda c: c["a"]}


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("name", MAKES)
def test_what_the_caller_changes_is_that_in_the_cache(name, on):
    """The next call finds it changed, as in plain Python, or is refused: its derivative is not known."""
    first = FIRST.get(name, lambda c: c)

    def world():
        made = functools.lru_cache(MAKES[name])

        def f(x, add):
            c = first(made(x))
            total = c[0] * x
            if add:
                c[0] = c[0] + 1.0
            return total

        return made, f

    (made, f), (plain, same) = world(), world()
    g = value_and_grad(f)
    with jit(on):
        for add in (False, False, True):
            assert g(2.0, add) == (same(2.0, add), 4.0)
            assert np.array_equal(first(made(2.0))[0], first(plain(2.0))[0])
        try:
            value, _ = g(2.0, False)
        except TraceError as error:
            assert "gives something else than the" in str(error)
        else:
            assert value == same(2.0, False) == 6.0
        assert first(made(2.0))[0] == 3.0


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_what_the_caller_has_added_is_a_constant(on):
    def world():
        @functools.lru_cache
        def made(y):
            return [y * y]

        def f(x):
            c = made(x)
            if len(c) == 1:
                c.append([x, 2.0])
            c[1][1] += 1.0
            return c[0] * x + c[1][0] + c[1][1]

        return made, f

    (made, f), (plain, same) = world(), world()
    g = value_and_grad(f)
    with jit(on):
        for i in range(6):
            value, slope = g(2.0)
            assert value == same(2.0)
            assert slope == (12.0 if i else 13.0)
            assert made(2.0) == plain(2.0)


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash(self.v)

    def __eq__(self, other):
        return self.v == other.v

    def square(self):
        return self.v * self.v


class Row(list):
    def __hash__(self):
        return hash(tuple(self))


@dataclasses.dataclass(frozen=True)
class Holder:
    v: object


KEYS = {
    "frozenset": (lambda x: frozenset([x]), lambda k: sum(v * v for v in k)),
    "pairs in a frozenset": (lambda x: frozenset([(x, 1)]), lambda k: sum(v * v for v, _ in k)),
    "slots": (Slotted, lambda k: k.v * k.v),
    "slots in a tuple": (lambda x: (Slotted(x),), lambda k: k[0].v * k[0].v),
    "slots in a frozenset": (
        lambda x: frozenset([Slotted(x)]),
        lambda k: sum(s.v * s.v for s in k),
    ),
    "method": (lambda x: Slotted(x).square, lambda k: k()),
    "frozenset in an object": (
        lambda x: Holder(frozenset([x])),
        lambda k: sum(v * v for v in k.v),
    ),
    "list of a class in an object": (lambda x: Holder(Row([x])), lambda k: k.v[0] * k.v[0]),
}


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("key", KEYS)
def test_what_keys_hold_is_not_taken_for_a_constant(key, on):
    make, body = KEYS[key]
    cached = functools.lru_cache(body)
    named = functools.lru_cache(lambda *, k: body(k))
    g = value_and_grad(lambda x: cached(make(x)) * x + named(k=make(x)))
    with jit(on):
        for _ in range(5):
            assert g(2.0) == (12.0, 16.0)
