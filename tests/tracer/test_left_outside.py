"""What code that is not traced leaves in containers and attributes outside, which the run has put values into."""

import csv
import ctypes
import itertools
import sqlite3

import pytest

from wengert import NoRuleError, grad, jit, nondiff, value_and_grad

STATE = {"w": 0.0}
OTHER = {"v": 0.0}
ITEMS = [0.0]
WEIGHT = 0.0


class Thing:
    w = 0.0


class Slotted:
    __slots__ = ("w",)


SOMETHING = Thing()
THING, SLOTTED = Thing(), Slotted()


@pytest.fixture(params=[True, False])
def mode(request):
    with jit(request.param):
        yield


def step(n):
    global WEIGHT
    STATE["w"] = STATE["w"] * 1.5
    OTHER["v"] = STATE["w"]
    ITEMS[0] = ITEMS[0] * 1.5
    THING.w = THING.w * 1.5
    SOMETHING.w = STATE["w"]
    SLOTTED.w = SLOTTED.w * 1.5
    WEIGHT = WEIGHT * 1.5
    return n


def generator():
    for n in itertools.count():
        yield step(n)


class File:
    def write(self, text):
        step(0)


CONNECTION = sqlite3.connect(":memory:")
CONNECTION.create_function("step", 1, step)
IN_C = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(step)
STEPS = map(step, itertools.count())
FILTERED = filter(step, itertools.count())
SUMS = itertools.accumulate(itertools.count(), lambda a, b: step(b))
CALLED = iter(lambda: step(1), 0)
ITEMS_OF_A_GENERATOR = generator()
WRITER = csv.writer(File())

DOORS = {
    "map": lambda: next(STEPS),
    "filter": lambda: next(FILTERED),
    "accumulate": lambda: (next(SUMS), next(SUMS)) and None,
    "iter": lambda: next(CALLED),
    "generator": lambda: next(ITEMS_OF_A_GENERATOR),
    "csv": lambda: WRITER.writerow([1]),
    "sqlite3": lambda: CONNECTION.execute("select step(1)").fetchone(),
    "ctypes": lambda: IN_C(1),
}


def read_dict():
    return STATE["w"]


def read_another_dict():
    return OTHER["v"]


def read_list():
    return ITEMS[0]


def read_attribute():
    return THING.w


def read_another_attribute():
    return SOMETHING.w


def read_slot():
    return SLOTTED.w


def read_global():
    return WEIGHT


READS = (
    read_dict,
    read_another_dict,
    read_list,
    read_attribute,
    read_another_attribute,
    read_slot,
    read_global,
)


def put(x):
    global WEIGHT
    STATE["w"] = x
    OTHER["v"] = 0.0
    ITEMS[0] = x
    THING.w = x
    SOMETHING.w = 0.0
    SLOTTED.w = x
    WEIGHT = x


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("read", READS)
def test_a_derivative_that_would_be_lost(door, read, mode):
    def f(x):
        put(x)
        DOORS[door]()
        return read() * x

    for call in range(5):
        with pytest.raises(NoRuleError, match="code that is not traced has changed"):
            grad(f)(1.0 + call)


def test_what_it_does_not_touch_is_followed(mode):
    def f(x):
        put(x)
        STATE["kept"] = x * x
        next(STEPS)
        return STATE["kept"]

    assert value_and_grad(f)(3.0) == (9.0, 6.0)


def test_what_has_no_derivative_may_be_changed(mode):
    def f(x):
        put(2.0)
        next(STEPS)
        return STATE["w"] * THING.w * WEIGHT * x

    for call in range(5):
        assert value_and_grad(f)(1.0 + call) == (27.0 * (1.0 + call), 27.0)


@nondiff
def changes():
    step(0)


def test_what_is_declared_to_have_none(mode):
    def f(x):
        put(x)
        changes()
        return STATE["w"] * THING.w * WEIGHT * x

    for call in range(5):
        x = 1.0 + call
        assert value_and_grad(f)(x) == (3.375 * x**4, 3.375 * x**3)


def test_what_is_put_into_a_set_may_have_a_derivative(mode):
    seen = set()
    items = map(lambda _: seen.add(STATE["w"]), itertools.count())

    def f(x):
        seen.clear()
        STATE["w"] = x * 1.0
        next(items)
        return sum(seen) * x

    for x in (2.0, 3.0, 2.0, 3.0):
        with pytest.raises(NoRuleError, match="has changed a container outside"):
            value_and_grad(f)(x)


def test_what_is_put_into_a_set_may_be_constant(mode):
    seen = {1.0}
    items = map(lambda i: seen.add(3.0 * i), itertools.count(1))

    def f(x):
        seen.discard(9.0)
        next(items)
        return sum(seen) * x

    assert [value_and_grad(f)(2.0)[1] for _ in range(5)] == [4.0, 10.0, 19.0, 22.0, 37.0]


MOVES = {
    "attribute": lambda holder: setattr(holder, "found", STATE["w"]),
    "list": lambda holder: setattr(holder, "found", [STATE["w"]]),
    "dict": lambda holder: setattr(holder, "found", {"w": STATE["w"]}),
    "global": lambda holder: globals().update(FOUND=STATE["w"]),
}


@pytest.mark.parametrize("move", MOVES)
def test_what_is_moved_to_where_nobody_has_looked_before(move, mode):
    holder = Thing()
    moves = map(lambda _: MOVES[move](holder), itertools.count())

    def found():
        if move == "global":
            return FOUND  # noqa: F821
        if move == "attribute":
            return holder.found
        return holder.found[0] if move == "list" else holder.found["w"]

    def f(x):
        STATE["w"] = x * 1.0
        next(moves)
        return found() * x

    def beside(x):
        STATE["w"] = x * 1.0
        next(moves)
        return holder.w * x

    for x in (2.0, 3.0, 2.0, 3.0):
        with pytest.raises(NoRuleError, match="code that is not traced has changed"):
            value_and_grad(f)(x)
        assert value_and_grad(beside)(x) == (0.0, 0.0)
