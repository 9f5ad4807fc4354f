"""What looks at its caller's module, or warns of its caller's line, sees the user's."""

import abc
import collections
import dataclasses
import datetime
import enum
import functools
import logging
import pickle
import re
import sys
import types
import typing
import warnings
from typing import NamedTuple, NewType, ParamSpec, Protocol, TypedDict, TypeVar, runtime_checkable

import numpy as np
import pytest

from wengert import grad, jit, pullback


@runtime_checkable
class Valued(Protocol):
    v: int


class Thing:
    v = 1


def of_type_variables():
    made = [TypeVar("T"), ParamSpec("P"), NewType("N", int)]
    return [x.__module__ for x in made]


def of_functional_classes():
    return [
        NamedTuple("N", [("a", int)]).__module__,
        TypedDict("D", {"a": int}).__module__,
        collections.namedtuple("C", "a").__module__,
        dataclasses.make_dataclass("D", ["a"]).__module__,
        enum.Enum("E", "a b").__module__,
        enum.IntEnum("F", ["x"]).__module__,
        functools.partial(enum.Flag, "G")("a b").__module__,
    ]


def of_types():
    class Meta(type):
        def __new__(cls, name, bases, space):
            return super().__new__(cls, name, bases, space)

    return [
        type("X", (), {}).__module__,
        types.new_class("Y").__module__,
        Meta("A", (), {}).__module__,
        type.__new__(type, "B", (), {}).__module__,
        type.__call__(type, "D", (), {}).__module__,
        abc.ABCMeta("M", (), {}).__module__,
        type(Thing)("U", (Thing,), {}).__qualname__,
    ]


def of_protocols():
    class Method(Protocol):
        def m(self): ...

    class Own:
        def m(self): ...

    marked = runtime_checkable(Method)
    return [
        isinstance(Thing(), Valued),
        isinstance(1, Valued),
        isinstance(Own(), marked),
        issubclass(Own, marked),
        issubclass(int, marked),
        isinstance(Own(), typing.Hashable),
    ]


def of_refused_protocols():
    class Method(Protocol):
        def m(self): ...

    found = []
    for check, kind in ((isinstance, Method), (issubclass, Valued)):
        try:
            check(int, kind)
        except TypeError as error:
            found.append(str(error))
    return found


def of_warnings():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        re.compile("(?i)a").flags
        bool.__invert__(True)
        datetime.datetime.utcnow()
        warnings.warn("mine", stacklevel=1)
        re.sub("a", "b", "a", 0, 0)
    return [(x.filename, x.lineno, str(x.message)) for x in shown]


def of_warnings_once_a_line():
    with warnings.catch_warnings(record=True) as shown:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        for _ in range(2):
            bool.__invert__(True)
            bool.__invert__(True)
    return [(x.filename, x.lineno) for x in shown]


def of_filters_by_module():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=re.escape(__name__))
        bool.__invert__(True)
        re.sub("a", "b", "a", 0, 0)
    return [(x.filename, x.lineno) for x in shown]


@pytest.mark.parametrize("f", [f for name, f in list(globals().items()) if name[:3] == "of_"])
@pytest.mark.parametrize("on", [False, True])
def test_the_caller_is_the_users(f, on):
    expected = f()
    with jit(on):
        for _ in range(3):
            assert pullback(lambda x: (f(), x)[0], 1.0)[0] == expected


def test_a_class_made_inside_can_be_pickled():
    def f(x):
        kind = enum.Enum("Kind", "a b")
        setattr(sys.modules[__name__], "Kind", kind)
        return pickle.loads(pickle.dumps(kind.a)) is kind.a

    assert pullback(f, 1.0)[0] is True
    del globals()["Kind"]


def complains(x):
    warnings.warn("two", stacklevel=2)
    warnings.warn("three", stacklevel=3)
    log.warning("two", stacklevel=2)
    return x * x


def complains_of_large_ones(x):
    return complains(x) if x > 2 else x * x


def names_its_caller(x):
    found.append(sys._getframe(1).f_code.co_name)
    return x * x


found = []
log = logging.getLogger(__name__)
log.propagate = False


class Placed(logging.Handler):
    def emit(self, record):
        found.append((record.filename, record.funcName, record.lineno))


def told(g, x):
    found.clear()
    log.addHandler(handler := Placed())
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        g(x)
    log.removeHandler(handler)
    return [*found, *[(w.filename, w.lineno) for w in shown]]


@pytest.mark.parametrize("f", [complains, complains_of_large_ones, names_its_caller])
@pytest.mark.parametrize("of", [jit, grad])
def test_what_is_called_through_wengert_names_its_users_line(f, of):
    g = of(f)
    for x in (1.0, 1.5, 2.0, 3.0, 4.0, 1.0, 5.0):
        first, second = [told(h, x) for h in (f, g)]
        assert first == second


def divided(x):
    """Warned of in two lines, of which one runs more than once."""
    w = np.array([x, 1.0])
    for _ in range(2):
        w / 0.0
    w / 0.0


FILTERS = {
    "default": lambda: warnings.simplefilter("default"),
    "once": lambda: warnings.simplefilter("once"),
    "module": lambda: warnings.simplefilter("module"),
    "always": lambda: warnings.simplefilter("always"),
    "error": lambda: warnings.filterwarnings("error", module=re.escape(__name__)),
    "ignore": lambda: warnings.filterwarnings("ignore", module=re.escape(__name__)),
    "another": lambda: warnings.filterwarnings("ignore", module="wengert"),
}


def shown_by(f, choose):
    """What is shown of NumPy's warnings, what the function gives, and whether it has left the filters alone."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.resetwarnings()
        warnings.onceregistry.clear()
        globals().pop("__warningregistry__", None)
        choose()
        before = [*warnings.filters]
        found = [f(2.0), f(2.0)]
        kept = [*warnings.filters] == before
    return [(x.filename, x.lineno) for x in shown], found, kept


def caught(x):
    try:
        divided(x)
    except RuntimeWarning:
        return 3 * x
    return x


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("inside", [False, True])
def test_the_filters_of_warnings_see_the_users_module_and_line(name, inside):
    def within(x):
        with warnings.catch_warnings():
            FILTERS[name]()
            return caught(x)

    f, choose = (within, int) if inside else (caught, FILTERS[name])
    expected = shown_by(f, choose)
    assert shown_by(lambda x: pullback(f, x)[0], choose) == expected
    assert expected[2] and (expected[1] == [6.0, 6.0]) == (name == "error")
