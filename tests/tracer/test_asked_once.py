"""What a module, a class or an array is asked for runs code of the user's as often as in plain Python."""

import abc
import collections.abc
import numbers
import sys
import types
import weakref

import numpy as np
import pytest

from wengert import TraceError, clear_cache, grad, jit, value_and_grad

log = []


class Sub(np.ndarray):
    @property
    def shape(self):
        log.append("shape")
        return np.ndarray.shape.__get__(self)

    @property
    def dtype(self):
        log.append("dtype")
        return np.ndarray.dtype.__get__(self)


class Module(types.ModuleType):
    def __getattribute__(self, name):
        log.append(name)
        return super().__getattribute__(name)


class Shown(types.ModuleType):
    @property
    def __dict__(self):
        log.append("dict")
        return {"a": 4.0}


class Meta(type):
    def __getattribute__(cls, name):
        log.append(name)
        return super().__getattribute__(name)


class Asked(metaclass=Meta):
    a = 2.0


array = np.arange(3.0).view(Sub)
module, shown = Module("module"), Shown("shown")
module.a = shown.a = 2.0
lazy = types.ModuleType("lazy_module_of_the_test")


def made(name):
    if name.startswith("__"):
        raise AttributeError(name)
    log.append(name)
    return 3.0


lazy.__getattr__ = made


def imported(x):
    from lazy_module_of_the_test import rate

    return rate * x


ASKING = {
    "shape": lambda x: array.shape[0] * x,
    "dtype": lambda x: array.dtype.itemsize * x,
    "size": lambda x: array.size * x,
    "length": lambda x: len(array) * x,
    "handed on": lambda x: (lambda a: a.shape[0] * x)(array),
    "made inside": lambda x: np.arange(3.0).view(Sub).shape[0] * x,
    "converted": lambda x: np.asarray(array)[1] * x,
    "an attribute": lambda x: lazy.rate * x,
    "an import": imported,
    "of a module": lambda x: module.a * x,
    "vars of a module": lambda x: vars(module)["a"] * x,
    "another dict of a module": lambda x: vars(shown)["a"] * x,
    "vars of a class": lambda x: vars(Asked)["a"] * x,
    "dict of a class": lambda x: Asked.__dict__["a"] * x,
}


@pytest.mark.parametrize("name", ASKING)
def test_asked_as_often(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "lazy_module_of_the_test", lazy)
    f = ASKING[name]
    answer = value_and_grad(f)
    for x in (1.0, 2.0, 3.0, 4.0, 5.0):
        log.clear()
        expected, asked = f(x), list(log)
        log.clear()
        assert answer(x) == (expected, expected / x)
        assert log == asked


def test_an_argument_is_asked_for_what_the_function_asks():
    answer = value_and_grad(lambda x, a: x * a.shape[0])
    for x in (1.0, 2.0, 3.0, 4.0):
        log.clear()
        assert answer(x, array)[0] == 3 * x
        assert log == ["shape"]


def test_a_class_whose_class_has_another_dict():
    class Other(type):
        @property
        def __dict__(cls):
            return {"a": 4.0}

    class Has(metaclass=Other):
        a = 2.0

    for x in (1.0, 2.0, 3.0, 4.0):
        f = lambda x: vars(Has)["a"] * x + Has.__dict__["a"]  # noqa: E731
        assert value_and_grad(f)(x) == (4 * x + 4, 4.0)


class Hooked(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        log.append(other.__name__)
        return NotImplemented


class Registered:
    pass


class Unregistered:
    pass


class Derived(Hooked):
    pass


Hooked.register(Registered)

QUESTIONS = {
    "isinstance": lambda: isinstance(Registered(), Hooked),
    "isinstance of one of several": lambda: isinstance(Registered(), (int, Hooked)),
    "issubclass": lambda: issubclass(Registered, Hooked),
    "issubclass of one of several": lambda: issubclass(Registered, (Hooked, int)),
    "of one that is not registered": lambda: isinstance(Unregistered(), Hooked),
    "of the very class": lambda: isinstance(Derived(), Derived),
    "of a class made inside": lambda: isinstance(type("Inner", (), {})(), Hooked),
}


@pytest.mark.parametrize("of", [grad, jit])
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_hook_of_an_abstract_class_is_asked_as_often_as_in_plain_python(question, of):
    def asked(f):
        Hooked._abc_caches_clear()
        Derived._abc_caches_clear()
        found = []
        for x in (1.5, 2.5, 3.5, 4.5, 5.5):
            log.clear()
            f(x)
            found.append(log[:])
        return found

    def f(x):
        return x * x if question() else x

    clear_cache()
    assert asked(of(f)) == asked(f)


class Noted:
    """Which of its methods C code asks, it notes."""

    def __hash__(self):
        log.append("hash")
        return 1

    def __eq__(self, other):
        log.append("eq")
        return self is other

    def __iter__(self):
        log.append("iter")
        return iter((1.0, 2.0))

    def __len__(self):
        log.append("len")
        return 2


noted = Noted()
ASKED = {
    "what a weak reference refers to": lambda: weakref.ref(noted)(),
    "an array of items": lambda: np.fromiter(noted, float),
    "an array of one item": lambda: np.fromiter(noted, float, count=1),
}


@pytest.mark.parametrize("question", ASKED.values(), ids=ASKED)
def test_c_code_asks_methods_as_often_as_in_plain_python(question):
    def f(x):
        question()
        return x * len(log)

    def asked(f):
        found = []
        for x in (1.5, 2.5, 3.5, 4.5, 5.5):
            log.clear()
            found.append((f(x), log[:]))
        return found

    clear_cache()
    with jit(False):
        assert asked(lambda x: value_and_grad(f)(x)[0]) == asked(f)
    assert asked(lambda x: value_and_grad(f)(x)[0]) == asked(f)


weight = {"x": 1.0}


def weighed(name):
    log.append(name)
    weight["x"] = weight["x"] * 2.0


class Answering(type):
    def __instancecheck__(cls, x):
        weighed("instance")
        return weight["x"] > 0

    def __subclasscheck__(cls, x):
        weighed("subclass")
        return weight["x"] > 0


class Anything(metaclass=Answering):
    pass


class Weighing(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        weighed("hook")
        return weight["x"] > 0


class Watchful:
    def __getattribute__(self, name):
        weighed(name)
        return object.__getattribute__(self, name)


class Pretending:
    @property
    def __class__(self):
        weighed("class")
        return list

    @property
    def __dict__(self):
        weighed("dict")
        return {"a": 1.0}


def matched(x):
    match Watchful():
        case collections.abc.Sized():
            return 2.0
        case _:
            return x


WEIGHING = {
    "issubclass": lambda x: issubclass(int, Anything),
    "issubclass of one of several": lambda x: issubclass(int, (str, Anything)),
    "issubclass of a union": lambda x: issubclass(int, str | Anything),
    "isinstance of a union": lambda x: isinstance(x, str | Anything),
    "isinstance of an abstract class": lambda x: isinstance(Watchful(), collections.abc.Sized),
    "isinstance of a number": lambda x: isinstance(Watchful(), (numbers.Number, list)),
    "isinstance of a property": lambda x: isinstance(Pretending(), collections.abc.Sized),
    "a hook": lambda x: isinstance(x, Weighing),
    "a hook of a class": lambda x: issubclass(int, (str, Weighing)),
    "a hook of what is watchful": lambda x: isinstance(Watchful(), Weighing),
    "match": matched,
    "dir": lambda x: len(dir(Watchful())),
    "dir of properties": lambda x: len(dir(Pretending())),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", WEIGHING)
def test_what_is_done_to_answer_for_a_class_is_followed(name, on):
    def f(x):
        log.clear()
        Weighing._abc_caches_clear()
        weight["x"] = x
        return x * WEIGHING[name](x) * len(log) + weight["x"]

    with jit(on):
        for x in (1.5, 2.5, 3.5, 4.5, 5.5):
            slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            expected, asked = f(x), [*log]
            assert value_and_grad(f)(x) == (expected, pytest.approx(slope, rel=1e-6))
            assert log == asked


@pytest.mark.parametrize("way", ["outside", "argument"])
def test_keys_of_a_dict_have_become_equal(way):
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.n == other.n

    first, second = Key(1), Key(4)
    held = {Key(5): 0.0, Key(6): 0.0, first: 1.0, second: 2.0}
    for key in [*held][:2]:  # a dict that had other keys is copied key by key
        held.pop(key)

    def outside(x, n):
        held[first] = n
        return x * len(held)

    def given(x, table):
        return x * len(table)

    f, arg = (outside, 1.0) if way == "outside" else (given, held)
    assert value_and_grad(f)(3.0, arg) == (6.0, 2.0)
    Key.__eq__ = lambda self, other: self.n % 3 == other.n % 3
    with pytest.raises(TraceError, match="keys that have become equal"):
        value_and_grad(f)(3.0, arg)
    assert list(held) == [first, second]
