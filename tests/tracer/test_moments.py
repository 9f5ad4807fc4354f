"""A container is looked at as it is at one moment, whatever another thread does to it in the next one."""

import copy
import sys
import threading
from collections import OrderedDict, deque

import pytest

from wengert import jit, value_and_grad
from wengert.tracer.border import are_held
from wengert.tracer.escape import same_members
from wengert.tracer.frames import items_of

KINDS = {
    set: (set.add, set.clear),
    dict: (lambda x, i: x.__setitem__(i, i), dict.clear),
    OrderedDict: (lambda x, i: x.__setitem__(i, i), OrderedDict.clear),
    deque: (deque.append, deque.clear),
    list: (list.append, list.clear),
}


@pytest.mark.parametrize("look", ("items", "held"))
@pytest.mark.parametrize("kind", KINDS)
def test_another_thread_writes_to_it(kind, look):
    add, clear = KINDS[kind]
    container, failures, ended = kind(), [], threading.Event()
    items = [(i, i) for i in range(3)] if issubclass(kind, dict) else [0, 1, 2]

    def write():
        i = 0
        while not ended.is_set():
            add(container, i % 40)
            i += 1
            if i % 40 == 0:
                clear(container)

    def read():
        try:
            for _ in range(8000):
                items_of(container, kind) if look == "items" else are_held(container, items)
        except RuntimeError as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer, readers = (
            threading.Thread(target=write),
            [threading.Thread(target=read) for _ in range(2)],
        )
        for thread in (writer, *readers):
            thread.start()
        for thread in readers:
            thread.join()
        ended.set()
        writer.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures


class Model:
    def __init__(self):
        self.w = 2.0
        vars(self).update((f"one{i}", i) for i in range(200))  # to look at which takes some time


def by_dict(model, x):
    return x * len([k for k in list(model.__dict__) if k == "w"])


def by_vars(model, x):
    return x * vars(model)["w"] / 2.0


def by_copy(model, x):
    return x * copy.copy(model).w / 2.0


def by_class(model, x):
    return x * len([k for k in list(vars(type(model))) if k == "__init__"])


def by_globals(model, x):
    return x * globals()["scale"]


scale, CALLS = 1.0, 12


@pytest.mark.parametrize("on", (True, False), ids=("kept", "traced"))
@pytest.mark.parametrize("f", (by_dict, by_vars, by_copy, by_class, by_globals))
def test_another_thread_writes_attributes(f, on):
    model, ended, failures = Model(), threading.Event(), []
    homes = [vars(model), globals()]

    def write():
        i = 0
        while not ended.is_set():
            for home in homes:
                home[f"other{i % 40}"] = i
            setattr(Model, f"other{i % 40}", i)
            i += 1
            if i % 40 == 0:
                for key in [f"other{k}" for k in range(40)]:
                    [home.pop(key) for home in homes]
                    delattr(Model, key)
        for key in [f"other{k}" for k in range(i % 40)]:
            globals().pop(key)
            delattr(Model, key)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer = threading.Thread(target=write)
    try:
        writer.start()
        with jit(on):
            found = {value_and_grad(f, 1)(model, 3.0) for _ in range(CALLS)}
    except RuntimeError as error:
        failures.append(error)
    finally:
        ended.set()
        writer.join()
        sys.setswitchinterval(before)
    assert not failures
    assert found == {(3.0, 1.0)}


def test_another_thread_adds_to_a_class_that_is_compared():
    class Changed:
        x = 1

    class Members(dict):
        def __iter__(self):
            for key in dict.__iter__(self):
                setattr(Changed, f"other{key}", None)
                yield key

    assert same_members(Changed, Members(vars(Changed)))
