"""The engine has a look at values without a word to them: nothing of the user's runs that plain Python does not run."""

import copy
import math
import random
import unittest.mock
import weakref
from collections import UserList

import numpy as np
import pytest

from wengert import jit, pullback, value_and_grad

log = []


class Talking:
    """Logs each attribute that it is asked for."""

    def __init__(self, z):
        self.z = z

    def __getattribute__(self, name):
        log.append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        return self.z == other.z

    def __lt__(self, other):
        return self.z < other.z

    def __bool__(self):
        return True

    def __add__(self, other):
        return self.z + other

    def __radd__(self, other):
        return other + self.z

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return self.z * i

    def __iter__(self):
        return iter([self.z])

    def __contains__(self, x):
        return x == self.z

    def __hash__(self):
        return 1

    def __call__(self, x):
        return self.z * x

    def __enter__(self):
        return self.z

    def __exit__(self, *error):
        pass

    def __float__(self):
        return self.z

    def __str__(self):
        return "talking"


class Table(dict):
    def __getattribute__(self, name):
        log.append(name)
        return dict.__getattribute__(self, name)


class Items(list):
    def __getattribute__(self, name):
        log.append(name)
        return list.__getattribute__(self, name)


class Pretending:
    """Says that it is a float, and logs that it was asked."""

    @property
    def __class__(self):
        log.append("__class__")
        return float


class Refusing:
    @property
    def __class__(self):
        raise RuntimeError("not to be asked")


class Hooked:
    def __getattr__(self, name):
        log.append(name)
        raise AttributeError(name)


class Hidden:
    """What it holds is none of its ``__dict__``."""

    @property
    def __dict__(self):
        log.append("__dict__")
        return {"z": 5.0}


thing, table, items = Talking(1.5), Table(a=1.0), Items([0.5])
hooked = Hooked()
silent = [Pretending(), Refusing(), Hidden()]  # whom pytest must not find
cell = None


def operators(x):
    return (thing + x) * 1.0 + (x + thing)


def comparison(x):
    return x if thing == thing else 0.0


def truth(x):
    return x if thing and not silent[1] == x and silent[0] else 0.0


def length(x):
    return x * len(thing)


def item(x):
    return x * thing[1] + items[0] + table["a"]


def iteration(x):
    return sum([*thing]) * x + sum(thing) + (1.5 in thing)


def call(x):
    return thing(x)


def context(x):
    with thing as z:
        return z * x


def result(x):
    return [thing, x, table, items, hooked, *silent][1]


def kept(x):
    found = [thing, silent[0], hooked]
    found.append(thing)
    found.extend(silent)
    return x * len(found) + len({thing: 1, "b": silent[0]})


def classes(x):
    return x * (isinstance(thing, Talking) + isinstance(thing, dict) + isinstance(hooked, int))


def claimed(x):
    return x * (
        isinstance(silent[0], float) + isinstance(silent[0], int) + (type(thing) is Talking)
    )


def made(x):
    own = Talking(x)
    return own.z * x


def builtins(x):
    return max([thing.z, x]) * abs(x) + float(thing) * len(str(thing)) + hash(thing)


def in_global(x):
    global cell
    cell = thing
    return x


def ordered(x):
    return sorted([thing, thing], key=lambda t: t.z)[0].z * x + sorted([thing, thing])[0].z


def to_numpy(x):
    return np.sin(x) * math.sin(thing) * x


def missing(x):
    return x * getattr(hooked, "z", 2.0) * hasattr(hooked, "y")


def caught(x):
    try:
        return isinstance(silent[1], bool)
    except RuntimeError as error:
        return str(error), x


PROGRAMS = [
    operators, comparison, truth, length, item, iteration, call, context, result, kept, classes, claimed, made,
    builtins, in_global, ordered, to_numpy, missing, caught,
]  # fmt: skip


def heard(f, *args):
    """What a function gives, and what was asked of the user's objects meanwhile."""
    log.clear()
    try:
        value = f(*args)
    except AttributeError as error:
        value = str(error)
    return value, list(log)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_objects_are_asked_as_often_as_in_plain_python(f):
    plain = heard(f, 2.0)
    with jit(False):
        assert heard(lambda x: pullback(f, x)[0], 2.0) == plain
    for _ in range(4):
        assert heard(lambda x: pullback(f, x)[0], 2.0) == plain


def test_an_argument_is_not_asked():
    def f(it, x):
        return it.z * x

    for _ in range(4):
        log.clear()
        _, back = pullback(f, Talking(1.5), 2.0)
        assert log == ["z"]
        back(1.0)
        assert log == ["z"]


@pytest.mark.parametrize("kind", [Pretending, Refusing, Hooked, Hidden, Talking, Table, Items])
def test_arguments_that_are_not_looked_at(kind):
    argument = kind(1.0) if kind is Talking else kind()

    def f(it, x):
        return x * x

    for _ in range(4):
        log.clear()
        value, back = pullback(f, argument, 3.0)
        assert (value, back(1.0)[1], log) == (9.0, 6.0, [])


def test_classes_whose_members_make_things():
    """A descriptor in a class is asked by a look at the class, too."""

    class Made:
        def __get__(self, instance, owner=None):
            log.append("made")
            return self

        def __call__(self, *args):
            return 0

    class Holder:
        __next__ = __array__ = keys = _make = _obj = Made()

        def __init__(self, z):
            self.z = z

    holder = Holder(2.0)

    def f(x):
        found = [holder, Holder(x)]
        return found[1].z * found[0].z * len(found)

    for _ in range(4):
        log.clear()
        assert value_and_grad(f)(3.0) == (12.0, 4.0)
        assert log == []


def test_a_weak_proxy_answers_for_nothing():
    class Kept(UserList):
        pass

    kept = Kept([1.0, 2.0])
    alive = weakref.proxy(kept)
    dead = weakref.proxy(Kept())

    def f(x):
        found = [alive, dead]
        try:
            len(found[1])
        except ReferenceError:
            found.append(x)
        return len(found) * x + len(alive) + sum(alive) + bool(alive) + alive[0]

    for _ in range(4):
        assert value_and_grad(f)(2.0) == (f(2.0), 3.0)


def test_mocks():
    def f(x):
        mock = unittest.mock.MagicMock()
        mock(1, 2)
        mock.a.b(3)
        return x * mock.call_count + len(mock.mock_calls)

    with jit(False):
        assert pullback(f, 2.0)[0] == f(2.0)


def random_class(rng, names):
    """A class whose methods log, some of them hooks."""

    def logged(name, how):
        def method(self, *args):
            log.append((name, *[x for x in args if type(x) is str]))
            return how(self, *args)

        return method

    members = {
        "__getattribute__": logged("__getattribute__", object.__getattribute__),
        "__setattr__": logged("__setattr__", object.__setattr__),
        "__delattr__": logged("__delattr__", object.__delattr__),
        "__dir__": logged("__dir__", object.__dir__),
        "__class__": property(logged("__class__", lambda self: int)),
        "__dict__": property(logged("__dict__", lambda self: {})),
        "__eq__": logged("__eq__", lambda self, other: self is other),
        "__hash__": logged("__hash__", lambda self: 7),
        "__len__": logged("__len__", lambda self: 3),
        "__iter__": logged("__iter__", lambda self: iter((1.0, 2.0))),
        "__bool__": logged("__bool__", lambda self: True),
        "__reduce_ex__": logged("__reduce_ex__", lambda self, protocol: (float, ())),
        "__index__": logged("__index__", lambda self: 2),
        "__float__": logged("__float__", lambda self: 2.5),
        "__call__": logged("__call__", lambda self, *args: 1.0),
        "__contains__": logged("__contains__", lambda self, x: False),
    }
    chosen = {name: members[name] for name in rng.sample(sorted(members), names)}
    chosen["__slots__"] = ("z", "__weakref__") if rng.random() < 0.3 else ("z", "y")
    if "__dict__" in chosen or rng.random() < 0.5:
        del chosen["__slots__"]
    base = rng.choice([object, object, list, dict])
    if base is not object:
        chosen.pop("__slots__", None)
    return type("Random", (base,), chosen)


USES = [
    lambda it, x: (it, x)[1],
    lambda it, x: x * len([it, it]),
    lambda it, x: x if it is not None else 0.0,
    lambda it, x: x * isinstance(it, str),
    lambda it, x: [y for y in [it, x] if type(y) is float][0] * x,
    lambda it, x: x * bool(it),
    lambda it, x: x if it == it else -x,
    lambda it, x: x * hasattr(it, "nothing"),
    lambda it, x: (lambda *args, **named: args[-1])(it, x, also=it),
    lambda it, x: copy.copy([it, x])[1] * x,
    lambda it, x: x * (it in [1, None]),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_classes(seed):
    rng = random.Random(seed)
    kind = random_class(rng, rng.randrange(1, 6))
    it = kind()
    for use in rng.sample(USES, 4):

        def f(x, use=use):
            return use(it, x)

        plain = heard(f, 2.0)
        with jit(False):
            assert heard(lambda x: pullback(f, x)[0], 2.0) == plain
        for _ in range(3):
            assert heard(lambda x: pullback(f, x)[0], 2.0) == plain
