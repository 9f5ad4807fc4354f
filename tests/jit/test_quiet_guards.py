"""What a program looks at before it answers runs no code of the user's that would not have run there."""

import contextlib
import functools
import io
import types

import pytest

from wengert import grad


def stands_in(name):
    if name.startswith("__"):
        raise AttributeError(name)
    print("asked for", name)
    return 3.0


class Plain:
    def __init__(self):
        self.k = 2.0


class StandsIn(Plain):
    def __getattr__(self, name):
        return stands_in(name)


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


class SlottedStandsIn(Slotted):
    __slots__ = ()

    def __getattr__(self, name):
        return stands_in(name)


class Finds(StandsIn):
    def __getattribute__(self, name):
        if name == "k":
            print("finds it")
        return object.__getattribute__(self, name)


class Cached:
    @functools.cached_property
    def k(self):
        print("computed")
        return 3.0


class Lazy:
    def __get__(self, instance, owner=None):
        print("made")
        instance.__dict__["k"] = 5.0
        return 5.0


class WithLazy:
    k = Lazy()


class Meta(type):
    def __getattr__(cls, name):
        return stands_in(name)


class Base:
    pass


def inheriting_class():
    Base.k = 2.0
    return Meta("Made", (Base,), {})


def module():
    made = types.ModuleType("made")
    made.k, made.__getattr__ = 2.0, stands_in
    return made


def take_away(obj):
    """The attribute is there no more; or, where it never was, the object is as new."""
    try:
        del obj.k
    except AttributeError:
        if hasattr(Base, "k"):
            del Base.k


MAKERS = [
    *(Plain, StandsIn, Slotted, SlottedStandsIn, Finds, Cached, WithLazy),
    *(inheriting_class, lambda: Meta("Made", (), {"k": 2.0}), module),
]
obj = None


def by_name(x):
    print("begin")
    return x * obj.k


def with_a_fallback(x):
    print("begin")
    try:
        return x * obj.k
    except AttributeError:
        return x * 9.0


def asked_before(x):
    print("begin")
    return x * obj.k if hasattr(obj, "k") else x * 9.0


def calls(make, f, ask):
    """What is returned and printed, call by call."""
    global obj
    obj, seen = make(), []
    for step in range(10):
        if step in (4, 8):
            take_away(obj)
        if step == 6:
            obj = make()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                found = ask(f, 1.5)
            except AttributeError as error:
                found = str(error)
        seen.append((found, printed.getvalue()))
    return seen


@pytest.mark.parametrize("f", [by_name, with_a_fallback, asked_before])
@pytest.mark.parametrize("make", MAKERS)
def test_an_attribute_comes_and_goes(make, f):
    assert calls(make, f, lambda f, x: x * grad(f)(x)) == calls(make, f, lambda f, x: f(x))


def of_an_argument(owner, x):
    print("begin")
    return x * owner.k


@pytest.mark.parametrize("make", MAKERS)
def test_an_attribute_of_an_argument_comes_and_goes(make):
    def f(x):
        return of_an_argument(obj, x)

    assert calls(make, f, lambda f, x: x * grad(f)(x)) == calls(make, f, lambda f, x: f(x))
