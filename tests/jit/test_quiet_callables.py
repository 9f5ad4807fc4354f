"""A callable of the user's is called, and nothing else about it is asked that runs code of the user's."""

import contextlib
import functools
import io

import pytest

from helpers import assert_close
from wengert import value_and_grad


class Asked:
    """Says so whenever it is asked for anything."""

    def __getattr__(self, name):
        print("asked for", name)
        raise AttributeError(name)

    def __hash__(self):
        print("hash")
        return 1

    def __eq__(self, other):
        print("equal")
        return self is other


class Calls(Asked):
    def __call__(self, x):
        print("called")
        return x * x


class Static(Asked):
    @staticmethod
    def __call__(x):
        return x * x


class OfClass(Asked):
    @classmethod
    def __call__(cls, x):
        return x * x


class Getter:
    def __get__(self, instance, owner=None):
        print("got")
        return lambda x: x * x


class ByGetter(Asked):
    __call__ = Getter()


class ByObject(Asked):
    __call__ = Calls()


class Unhashable:
    __hash__ = None

    @staticmethod
    def __call__(x):
        return x * x


class Named:
    @property
    def __name__(self):
        print("name")
        return "named"

    __signature__ = __wrapped__ = __name__

    def __call__(self, x):
        return x * x


class WithKey:
    def cache_key(self, n):
        print("key")

    def method(self, x):
        return x * x


def wrapper(x):
    return x * x


wrapper.__wrapped__ = Calls()


@pytest.mark.parametrize(
    "f",
    [
        *(Calls(), Static(), OfClass(), ByGetter(), ByObject(), Unhashable(), Named()),
        *(WithKey().method, wrapper, functools.partial(Calls()), Calls().__call__),
    ],
    ids=lambda f: type(f).__name__,
)
def test_a_callable_is_only_called(f):
    assert_quiet(f)


def assert_quiet(f):
    """A call says what it says in plain Python, whether it is traced or a program answers."""
    h = value_and_grad(f)
    for x in (1.5, 1.5, 2.5, 0.5, 1.5):
        with contextlib.redirect_stdout(io.StringIO()) as expected:
            value = f(x)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            found, slope = h(x)
        assert (found, printed.getvalue()) == (value, expected.getvalue())
        with contextlib.redirect_stdout(io.StringIO()):
            assert_close(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, 1e-6)
