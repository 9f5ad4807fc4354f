"""Objects outside that code hands out which runs as it is: they hold plain values, as all that lies outside."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import sys
import threading
import types
import unittest
import weakref

import pytest

from wengert import EscapeError, NoRuleError, TraceError, clear_cache, jit, value_and_grad


@pytest.fixture(params=[False, True], ids=["off", "on"], autouse=True)
def switched(request):
    clear_cache()
    with jit(request.param):
        yield


class Account:
    def __init__(self):
        self.total = 0.0
        self.history = []


class Kind(enum.Enum):
    FIRST = 1


class Registry:
    pass


ONE = Account()
WATCHERS = weakref.WeakSet([ONE])
REGISTRY = Registry()
REGISTRY.account = ONE
Kind.FIRST.holder = ONE


def with_a_default(account=ONE):
    return account


DOORS = {
    "weak set": lambda: list(WATCHERS),
    "iterated": lambda: [x for x in WATCHERS],  # noqa: C416
    "united": lambda: list(WATCHERS | WATCHERS),
    "members": lambda: [x for name, x in inspect.getmembers(REGISTRY) if name == "account"],
    "static": lambda: [inspect.getattr_static(REGISTRY, "account")],
    "by value": lambda: [Kind(1).holder],
    "default": lambda: [inspect.signature(with_a_default).parameters["account"].default],
}


@pytest.mark.parametrize("door", DOORS)
def test_they_hold_plain_values(door):
    def f(x):
        for account in DOORS[door]():
            account.total += x
            account.history.append(x)
        return ONE.total * x

    total = 0.0
    ONE.total, ONE.history[:] = 0.0, []
    for i in range(6):
        x = 1.0 + i
        total += x
        assert value_and_grad(f)(x) == (total * x, total + x)
        assert type(ONE.total) is float and ONE.total == total
        assert ONE.history == [1.0 + k for k in range(i + 1)]


def test_those_of_the_run_are_its_own():
    def f(x):
        account = Account()
        account.total = x
        own = weakref.WeakSet()
        own.add(account)
        for one in own:
            one.total = one.total * x
        return account.total

    for i in range(6):
        x = 1.0 + i
        assert value_and_grad(f)(x) == (x * x, 2 * x)


# What objects of libraries run in this thread that they were given before.


def by_a_thread(x):
    found = []
    threading.Thread(target=lambda v: found.append(v * v), args=(x,)).run()
    return found[0]


def by_a_thread_of_its_own(x):
    class Squared(threading.Thread):
        def run(self):
            super().run()
            self.found = x * x

    squared = Squared()
    squared.run()
    return squared.found


def by_a_timer(x):
    found = {}
    threading.Timer(0.0, found.__setitem__, ("a", x)).run()
    return found["a"] * x


def by_a_clean_up(x):
    found, case = [], unittest.TestCase()
    case.addCleanup(found.append, x)
    case.addCleanup(lambda v: found.append(v), x)
    case.doCleanups()
    return found[0] * found[1]


@pytest.mark.parametrize("f", [by_a_thread, by_a_thread_of_its_own, by_a_timer, by_a_clean_up])
def test_what_is_run_here_later_is_followed(f):
    for i in range(6):
        x = 1.0 + i
        assert value_and_grad(f)(x) == (x * x, 2 * x)


PLOTS = """
import numpy as np


class Axes:
    def __init__(self):
        self.left, self.right = 0.0, 1.0

    def set_limits(self, left, right):
        self.left, self.right = left, right

    def get_limits(self):
        return self.left, self.right

    def set_title(self, title):
        self.title = title
        return self

    def get_title(self):
        return self.title

    @property
    def width(self):
        return self.right - self.left

    def __len__(self):
        return 2


class Store:
    def __init__(self):
        self.values = {"size": 2.0}

    def part(self, name):
        return Part(self.values, name)


class Part:
    def __init__(self, values, name):
        self.values, self.name = values, name

    def part(self, name):
        return Part(self.values, name)

    def write(self, x):
        self.values[self.name] = x

    def read(self):
        return self.values[self.name]


class Signal:
    def __init__(self):
        self.listeners = []

    def connect(self, listener):
        self.listeners.append(listener)

    def emit(self, x):
        for listener in self.listeners:
            listener(x)
        return True

    def show(self, axes, x):
        axes.set_limits(0.0, x)
        for listener in self.listeners:
            listener(axes)


class Solver:
    def __init__(self, slope):
        self.slope = slope

    def solve(self, steps):
        y, slope = np.ones(1), np.zeros(1)
        for _ in range(steps):
            self.slope(y, slope)
            y = y + slope
        return y


attempts = []


def attempt(function):
    attempts.append(function)
    try:
        return function()
    except Exception:
        return None


def write(manager, x):
    manager.part.write(x)


def read(manager):
    return manager.part.read()
"""


@pytest.fixture
def plots(monkeypatch):
    """A package whose Python functions are run as they are."""
    module = types.ModuleType("matplotlib")
    monkeypatch.setitem(sys.modules, "matplotlib", module)
    exec(PLOTS, vars(module))
    return module


READ = {
    "method": lambda axes: axes.get_limits()[1],
    "property": lambda axes: axes.width,
    "unbound": lambda axes: type(axes).get_limits(axes)[1],
    "attribute": lambda axes: axes.right,
}


@pytest.mark.parametrize("way", READ)
def test_what_a_function_that_is_run_as_it_is_has_kept_is_not_read_as_a_constant(way, plots):
    def f(x):
        axes = plots.Axes()
        axes.set_limits(0.0, x)
        return READ[way](axes) * x

    def beside(x):
        axes, other = plots.Axes(), plots.Axes()
        axes.set_limits(0.0, x)
        return READ[way](other) * x * len(axes)

    for x in (2.0, 3.0, 2.0):
        with pytest.raises(NoRuleError, match="depends on traced values that it was given before"):
            value_and_grad(f)(x)
        assert value_and_grad(beside)(x) == (2 * x, 2.0)


@pytest.mark.parametrize("way", ["part", "part of a part", "attribute", "other part"])
def test_text_that_is_put_into_a_part_is_read_from_the_whole(way, plots):
    def f(x):
        store = plots.Store()
        other = store.part("other")
        if way == "attribute":
            plots.write(Manager(store.part("rate")), str(x))
            return float(plots.read(Manager(store.part("rate")))) * x
        part = other.part("rate") if way == "part of a part" else store.part("rate")
        part.write(str(x))
        return float((other.part("rate") if way == "other part" else store.part("rate")).read()) * x

    def beside(x):
        store, other = plots.Store(), plots.Store()
        store.part("rate").write(str(x))
        store.part("rate").read()
        return other.part("size").read() * len(store.part("size").name) * x

    for on in (True, False):
        with jit(on):
            for x in (2.0, 3.0, 2.0, 3.0):
                with pytest.raises(TraceError, match="text that was drawn from a traced value"):
                    value_and_grad(f)(x)
                assert value_and_grad(beside)(x) == (8 * x, 8.0)


def test_a_title_is_text_where_it_is_read_again(plots):
    def f(x):
        axes = plots.Axes()
        axes.set_title(f"{x}")
        return float(axes.get_title()) * x

    def width(x):
        axes = plots.Axes()
        axes.set_title(f"{x}")
        return axes.get_limits()[1] * x

    for x in (2.0, 3.0, 2.0):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            value_and_grad(f)(x)
        assert value_and_grad(width)(x) == (x, 1.0)


class Manager:
    def __init__(self, part):
        self.part = part


@pytest.mark.parametrize("way", ["part", "part of a part", "attribute"])
def test_what_is_put_into_a_part_is_read_from_the_whole(way, plots):
    def put(store, x):
        if way == "attribute":
            plots.write(Manager(store.part("rate")), x)
        elif way == "part":
            store.part("rate").write(x)
        else:
            store.part("other").part("rate").write(x)

    def take(store):
        if way == "attribute":
            return plots.read(Manager(store.part("rate")))
        return store.part("rate").read()

    def f(x):
        store = plots.Store()
        put(store, x)
        return take(store) * x

    def beside(x):
        store, other = plots.Store(), plots.Store()
        before = store.part("size").read()
        put(store, x)
        return before * other.part("size").read() * x

    for x in (2.0, 3.0, 2.0):
        with pytest.raises(NoRuleError, match="depends on traced values that it was given before"):
            value_and_grad(f)(x)
        assert value_and_grad(beside)(x) == (4 * x, 4.0)


def test_a_part_holds_all_that_was_put_into_it(plots):
    def f(x, y):
        part = plots.Store().part("rate")
        part.write(x)
        part.name = "other"
        part.write(y)
        part.name = "rate"
        return part.read() * x

    for argnums in (0, 1):
        with pytest.raises(NoRuleError, match="depends on traced values that it was given before"):
            value_and_grad(f, argnums=argnums)(2.0, 3.0)


def by_a_function(signal, got):
    signal.connect(lambda x: got.append(x))


def by_a_method(signal, got):
    signal.connect(got.append)


@pytest.mark.parametrize("listen", [by_a_function, by_a_method])
def test_what_calls_a_function_later_gives_it_no_constant(listen, plots):
    def f(x):
        signal, got = plots.Signal(), []
        listen(signal, got)
        signal.emit(x)
        return got[0] * x

    def constant(x):
        signal, got = plots.Signal(), []
        listen(signal, got)
        signal.emit(2.0)
        return got[0] * x

    for x in (2.0, 3.0, 2.0):
        with pytest.raises(NoRuleError, match="emit gives depends on traced values"):
            value_and_grad(f)(x)
        assert value_and_grad(constant)(x) == (2 * x, 2.0)


def test_an_object_that_is_given_to_a_function_is_read_while_it_holds_what_was_given(plots):
    def f(x):
        signal, got = plots.Signal(), []
        signal.connect(lambda axes: got.append(axes.get_limits()[1]))
        signal.show(plots.Axes(), x)
        return got[0] * x

    for x in (2.0, 3.0, 2.0):
        with pytest.raises(NoRuleError, match="show gives depends on traced values"):
            value_and_grad(f)(x)


def test_what_is_written_into_an_array_of_who_calls_back_does_not_leave_by_it(plots):
    def f(x):
        def slope(y, into):
            into[0] = -x * y[0]

        return float(plots.Solver(slope).solve(3)[0])

    def constant(x):
        def slope(y, into):
            into[0] = -0.5 * y[0]

        return float(plots.Solver(slope).solve(2)[0]) * x

    for x in (0.5, 0.25, 0.5):
        with pytest.raises(EscapeError, match=r"through slope\(\)"):
            value_and_grad(f)(x)
        assert value_and_grad(constant)(x) == (0.25 * x, 0.25)


class Settings(collections.abc.MutableMapping, dict):
    """A dict with ways of its own, as matplotlib has one for its settings."""

    __getitem__, __setitem__, __delitem__ = dict.__getitem__, dict.__setitem__, dict.__delitem__
    __iter__, __len__ = dict.__iter__, dict.__len__

    def __init__(self, **items):
        dict.update(self, items)


def test_a_dict_with_values_of_its_own_is_handed_over(plots):
    settings = Settings(width=1.0, height=2.0)

    def f(x):
        height = settings["height"]
        plots.Axes().set_limits(settings, x)
        return height * x * x

    for x in (2.0, 3.0, 2.0):
        assert value_and_grad(f)(x) == (2 * x * x, 4 * x)


def test_a_refusal_that_code_catches_which_is_not_traced_ends_the_run(plots):
    def f(x):
        def refused():
            return float(str(x))

        while plots.attempt(refused) is None:  # as an event loop waits for a result
            if len(plots.attempts) > 3:
                return 0.0
        return x

    with pytest.raises(TraceError, match="text that was drawn from a traced value"):
        value_and_grad(f)(2.0)
    assert len(plots.attempts) == 1
