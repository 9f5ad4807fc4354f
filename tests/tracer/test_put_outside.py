"""What a run puts outside is plain there, while the run goes on to know its traced values."""

import copy
import dataclasses
import functools
import os
import types
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import wengert
from wengert import jit, value_and_grad

KEPT = []


class Kept:
    pass


class Bad(Exception):
    def __init__(self, value):
        super().__init__("bad")
        self.value = value


def judged(f, shown, refused=False):
    """Against plain Python and differences, over several calls, with what is left outside; or each is refused."""

    def plain(x):
        KEPT.clear()
        return f(x)

    for on in (False, True):
        with wengert.jit(on):
            for x in (1.3, 1.3, 1.3, 2.1, 0.7):
                expected, left = plain(x), [shown(one) for one in KEPT]
                KEPT.clear()
                if refused:
                    with pytest.raises(wengert.WengertError, match=os.path.basename(__file__)):
                        wengert.value_and_grad(f)(x)
                    continue
                value, slope = wengert.value_and_grad(f)(x)
                assert value == expected
                assert [shown(one) for one in KEPT] == left
                assert slope == pytest.approx((plain(x + 1e-6) - plain(x - 1e-6)) / 2e-6, rel=1e-6)


def raised(x):
    try:
        raise ValueError(x * 2)
    except ValueError as e:
        KEPT.append(e)
        return e.args[0] * x


def with_a_cause(x):
    try:
        try:
            raise KeyError(x * 3)
        except KeyError as e:
            raise ValueError(x * 2) from e
    except ValueError as e:
        KEPT.append(e)
        return e.__cause__.args[0] * e.args[0]


def raised_again(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    try:
        raise e
    except ValueError as again:
        return again.args[0] * x


def of_a_class(x):
    Kept.error = KeyError(x * 2)
    KEPT.append(Kept.error)
    return Kept.error.args[0] * x


def value_of_stop_iteration(x):
    e = StopIteration(x * 2)
    KEPT.append(e)
    return e.value * x


def code_of_exit(x):
    e = SystemExit(x * 2)
    KEPT.append(e)
    return e.code * x


def object_of_an_attribute_error(x):
    e = AttributeError("n", name="n", obj=[x * 2])
    KEPT.append(e)
    return e.obj[0] * x


def group(x):
    e = ExceptionGroup("several", [ValueError(x * 2), KeyError(x)])
    KEPT.append(e)
    one, other = e.split(ValueError)
    return one.exceptions[0].args[0] * other.exceptions[0].args[0]


def attribute(x):
    e = Bad(x * 2)
    KEPT.append(e)
    return e.value * x


def list_in_args(x):
    e = ValueError([x * 2, 1.0])
    KEPT.append(e)
    return e.args[0][0] * x


def array_in_args(x):
    e = ValueError(np.array([x, 2 * x]))
    KEPT.append(e)
    return e.args[0].sum() * x


def new_args(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    e.args = (x * 3,)
    return e.args[0] * x


def text(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return float(str(e)) * x


def reduced(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return e.__reduce__()[1][0] * x


def copied(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return copy.copy(e).args[0] * x


REFUSED = {text, reduced, copied}


@pytest.mark.parametrize(
    "f",
    [raised, with_a_cause, raised_again, of_a_class, value_of_stop_iteration, code_of_exit, group]
    + [
        object_of_an_attribute_error,
        attribute,
        list_in_args,
        array_in_args,
        new_args,
        text,
        reduced,
        copied,
    ],
)
def test_exceptions(f):
    judged(f, lambda e: (repr(e), repr(vars(e)), repr(e.__cause__)), f in REFUSED)


def instance(x):
    class Q:
        k = x

        def m(self):
            return x

    q = Q()
    KEPT.append(q)
    return q.k * q.m() * x


def own_class(x):
    class Q:
        k = x

        def m(self):
            return self.k

    KEPT.append(Q)
    return Q().m() * x * Q.k


def bound_method(x):
    class Q:
        def m(self):
            return x

    KEPT.append(Q().m)
    return x * x


def descriptors(x):
    class Q:
        @property
        def p(self):
            return x

        @staticmethod
        def s():
            return x

        @classmethod
        def c(cls):
            return x

        @functools.cached_property
        def once(self):
            return x

        held = [x]

    KEPT.append(Q())
    return x * x


def derived(x):
    class P:
        k = x

        def m(self):
            return x

    class Q(P):
        pass

    Kept.q = Q()
    KEPT.append(Kept.q)
    return Kept.q.m() * Kept.q.k * x


def made_by_type(x):
    Q = type("Q", (), {"k": x, "m": lambda self: x})
    KEPT.append(Q())
    return Q().m() * x


def in_a_dict(x):
    class Q:
        k = x

    d = {"q": Q()}
    Kept.d = d
    KEPT.append(d["q"])
    return d["q"].k * x


def of_dataclass(x):
    @dataclasses.dataclass
    class Q:
        k: float = x

        def m(self):
            return x

    KEPT.append(Q())
    return KEPT[-1].k * x


def set_later(x):
    class Q:
        k = x

        def m(self):
            return x

    KEPT.append(Q())
    Q.k = x * x
    return KEPT[-1].k * x


def exception_class(x):
    class Q(Exception):
        k = x

    KEPT.append(Q(x))
    return KEPT[-1].k * KEPT[-1].args[0]


def dict_class(x):
    class Q(dict):
        k = x

    KEPT.append(Q(a=x))
    return KEPT[-1].k * KEPT[-1]["a"]


def metaclass(x):
    class M(type):
        k = x

        def m(cls, *_):
            return x

    class Q(metaclass=M):
        pass

    KEPT.append(Q)
    return x * x


def in_a_closure(x):
    class Q:
        k = x

    KEPT.append(lambda: Q().k)
    return x * x


def numbers_of(thing):
    """All that can be read of what was put outside, by its names."""
    if isinstance(thing, (types.MethodType, types.FunctionType)):
        return type(thing()), thing()
    found = {}
    for name in ("k", "p", "held", "once"):
        value = getattr(thing, name, None)
        found[name] = type(value), repr(value) if isinstance(value, (float, list)) else None
    for name in ("m", "s", "c"):
        if hasattr(thing, name):
            method = getattr(thing, name)
            value = method(thing()) if isinstance(thing, type) else method()
            found[name] = type(value), value
    return found


@pytest.mark.parametrize(
    "f",
    [instance, own_class, bound_method, descriptors, derived, made_by_type, in_a_dict, of_dataclass]
    + [set_later, exception_class, dict_class, metaclass, in_a_closure],
)
def test_classes(f):
    judged(f, numbers_of)


def test_a_class_of_an_inner_run_leaves_the_outer_one_its_variables():
    def f(x):
        def inner(y):
            class Q:
                def m(self):
                    return x * y * y

            return Q().m()

        return wengert.grad(inner)(x) * x

    assert wengert.value_and_grad(f)(1.5) == (f(1.5), pytest.approx(6 * 1.5**2))


class Cache(OrderedDict):
    pass


class Table(dict):
    pass


class Lists(defaultdict):
    pass


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "made",
    [Counter, Cache, Table, lambda: Lists(float)],
    ids=["Counter", "Cache", "Table", "Lists"],
)
def test_tuples_of_numbers_are_keys_of_dicts_of_other_classes(made, on):
    def f(x, table, a, b):
        table[a, "k"] = table.get((a, "k"), 0) + 1
        table[a, (b, a)] = x
        return x * table[a, "k"]

    with jit(on):
        table, expected = made(), made()
        for i in range(6):
            x, a, b = 1.0 + i, i % 2, 0.5
            value = f(x, expected, a, b)
            assert value_and_grad(f)(x, table, a, b) == (value, value / x)
            assert list(table.items()) == list(expected.items())
            assert [type(key[0]) for key in table] == [int] * len(table)
            assert all(type(key[1]) is str or type(key[1][0]) is float for key in table)


@pytest.mark.parametrize("on", [False, True])
def test_an_order_of_its_own_stays_when_a_number_becomes_a_key(on):
    with jit(on):
        for k in (3, 4, 5, 6):
            cache = Cache(a=1.0, b=2.0)
            cache.move_to_end("a")

            def f(x, k, cache=cache):
                cache[k] = 1.5
                return x

            assert value_and_grad(f)(1.0, k) == (1.0, 1.0)
            assert list(OrderedDict.keys(cache)) == ["b", "a", k]
