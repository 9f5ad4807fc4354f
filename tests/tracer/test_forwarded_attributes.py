"""Attributes that an object has from another one, as a method from its function, and those that C code keeps."""

import decimal
import functools
import types
import typing

import pytest

from wengert import jit, value_and_grad


def remember(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        wrapper.last = fn(*args)
        return wrapper.last

    return wrapper


class Remembering:
    rate = 1.0

    @remember
    def energy(self, x):
        return x * x

    def plain(self):
        pass


Listed = type("Listed", (list,), {})
T = typing.TypeVar("T")


class Parametrized(typing.Generic[T]):
    pass


def by_wrapper(x):
    model = Remembering()
    model.energy(x)
    return model.energy.last


def by_method(x):
    method = Remembering().plain
    Remembering.plain.total = x * x
    return method.total


def by_getattr(x):
    Remembering.plain.total = x * x
    return getattr(Remembering().plain, "total")  # noqa: B009


def by_alias(x):
    Listed.total = x * x
    return types.GenericAlias(Listed, int).total


def by_typing(x):
    Parametrized.total = x * x
    return Parametrized[int].total


def by_writing(x):
    Parametrized[int].total = x * x
    return Parametrized.total


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("f", [by_wrapper, by_method, by_getattr, by_alias, by_typing, by_writing])
def test_methods_and_aliases_ask_another_for_attributes(f, on):
    with jit(on):
        g = value_and_grad(f)
        for x in (3.0, 4.0, 5.0, 6.0):
            assert g(x) == (x * x, 2 * x)


def test_an_attribute_by_way_of_a_method_is_read_at_each_call():
    class Holder:
        def method(self):
            pass

    holder = Holder()
    Holder.method.rate = 2.0
    g = value_and_grad(lambda x: holder.method.rate * x)
    h = value_and_grad(lambda x: x * x if hasattr(holder.method, "hot") else x)
    for _ in range(4):
        assert (g(1.0), h(2.0)) == ((2.0, 2.0), (2.0, 1.0))
    Holder.method.rate, Holder.method.hot = 3.0, True
    assert (g(1.0), h(2.0)) == ((3.0, 3.0), (4.0, 4.0))


def by_context(x):
    decimal.getcontext().prec = 5 + int(x)
    return x * float(decimal.Decimal(1) / 3)


CONTEXT = decimal.Context()


def by_own_context(x):
    CONTEXT.Emax = 1000 + int(x)
    return x * CONTEXT.Emax


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("f", [by_context, by_own_context])
def test_integers_of_attributes_in_c_are_decisions(f, on):
    with jit(on), decimal.localcontext():
        g = value_and_grad(f)
        for k in range(7):
            x = 1.5 + k
            assert g(x) == (f(x), pytest.approx(f(x) / x))
