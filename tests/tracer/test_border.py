"""What a function reads from outside itself, and that an answer is never given for a world that has changed."""

import bisect
import builtins
import collections
import contextlib
import copy
import functools
import gc
import heapq
import json
import math
import operator
import os
import pickle
import pprint
import random
import sys
import threading
import time
import types
import warnings
import weakref

import numpy as np
import pytest

from helpers import (
    assert_close,
    assert_plain,
    assert_same,
    check,
    check_raises,
    derivative,
    inner,
    numeric_grad,
)
from wengert import (
    EscapeError,
    TraceError,
    WengertError,
    grad,
    jit,
    pullback,
    trace,
    value_and_grad,
)

RATE = 2.0
COUNT = 3
NAME = "sin"
FLAG = True
WEIGHTS = np.array([0.5, -1.2, 2.0])
TABLE = {"a": 1.5, "b": [2.5, np.array([1.0, 2.0])], "n": 2}
PAIRS = [(1.0, 2.0), (3.0, 4.0)]
THIS = sys.modules[__name__]


class Config:
    scale = 3.0
    table = {"x": 0.5}

    def __init__(self):
        self.gain = 1.5
        self.memory = np.array([1.0, 2.0, 3.0])
        self.steps = 2


CONFIG = Config()


def helper(x):
    return x * RATE


# --------------------------------------------------------------------------------- reading, once


def reads_globals(x):
    return x * RATE**2 + COUNT * x + (WEIGHTS * x).sum()


def reads_containers(x):
    first, second = PAIRS[1]
    return TABLE["a"] * x + TABLE["b"][0] * second + TABLE["b"][1] @ TABLE["b"][1] * x + TABLE["n"]


def reads_attributes(x):
    total = CONFIG.gain * x + Config.scale * CONFIG.scale
    for _ in range(CONFIG.steps):
        total *= CONFIG.memory[1] + Config.table["x"]
    return total


def reads_modules(x):
    return math.pi * x + np.pi + THIS.RATE * x + math.tau + sys.float_info.max * 0


def reads_by_name(x):
    return getattr(math, NAME)(x) * globals()["RATE"] + vars(CONFIG)["gain"]


def reads_defaults(x, weights=WEIGHTS, table=TABLE):
    return (weights * x).sum() * table["a"]


def reads_environment(x):
    return x * len(os.environ.get("WENGERT_MISSING", "abc")) + x * len(sys.argv) * 0


@pytest.mark.parametrize(
    "f",
    [
        reads_globals,
        reads_containers,
        reads_attributes,
        reads_modules,
        reads_by_name,
        reads_defaults,
        reads_environment,
    ],
)
def test_reading(f):
    check(f, 0.7)
    assert_plain(RATE, WEIGHTS, TABLE, PAIRS, CONFIG, vars(Config))


def test_a_global_that_is_also_an_argument():
    v = WEIGHTS
    value, back = pullback(lambda w: w @ WEIGHTS, v)
    assert_close(
        back(1.0), (WEIGHTS,)
    )  # the argument's own partial derivative, not the global's as well


def test_outside_floats_are_inputs_of_the_tape():
    tape = trace(reads_globals, 0.7)
    values = [op.value for op in tape.ops if op.kind == "input"]
    assert any(value is WEIGHTS or np.array_equal(value, WEIGHTS) for value in values)
    assert 2.0 in [value for value in values if isinstance(value, float)]


# ------------------------------------------------------------------------- reading again, another world


def again(f, x):
    """Value and gradient in plain Python and by the engine."""
    value, gradient = value_and_grad(f)(x)
    assert_same(value, f(x))
    return gradient


def test_rebound_global(monkeypatch):
    f = lambda x: x * x * RATE
    assert [again(f, 1.5), again(f, 1.5)] == [6.0, 6.0]
    monkeypatch.setattr(THIS, "RATE", 5.0)
    assert again(f, 1.5) == 15.0
    monkeypatch.setattr(THIS, "RATE", 3)
    assert again(f, 1.5) == 9.0


def test_rebound_decisions(monkeypatch):
    def f(x):
        y = x
        for _ in range(COUNT):
            y = y * x if FLAG else y + getattr(math, NAME)(x)
        return y

    assert again(f, 2.0) == again(f, 2.0) == 32.0
    monkeypatch.setattr(THIS, "COUNT", 1)
    assert again(f, 2.0) == 4.0
    monkeypatch.setattr(THIS, "FLAG", False)
    assert again(f, 2.0) == pytest.approx(1 + math.cos(2.0))
    monkeypatch.setattr(THIS, "NAME", "exp")
    assert again(f, 2.0) == pytest.approx(1 + math.exp(2.0))


def test_redefined_helper(monkeypatch):
    f = lambda x: helper(x) * x
    assert again(f, 1.5) == again(f, 1.5) == 6.0
    monkeypatch.setattr(THIS, "helper", lambda x: x * x)
    assert again(f, 1.5) == pytest.approx(3 * 1.5**2)
    monkeypatch.setattr(THIS, "helper", math.sin)
    assert again(f, 1.5) == pytest.approx(math.sin(1.5) + 1.5 * math.cos(1.5))


def test_patched_function_of_a_module(monkeypatch):
    f = lambda x: math.sin(x) * np.cos(x)
    again(f, 0.5)
    expected = 2 * 0.5 * math.cos(0.5) - 0.25 * math.sin(0.5)
    monkeypatch.setattr(math, "sin", lambda x: x * x)
    assert again(f, 0.5) == pytest.approx(expected)


def test_shadowed_builtin(monkeypatch):
    f = lambda x: abs(x) * 2
    assert again(f, -1.5) == -2.0
    monkeypatch.setattr(THIS, "abs", lambda x: x * x, raising=False)
    assert again(f, -1.5) == -6.0


def test_changed_closure():
    rate = 2.0

    def f(x):
        return x * x * rate

    assert again(f, 1.5) == again(f, 1.5) == 6.0
    rate = 4.0
    assert again(f, 1.5) == 12.0


def test_changed_attribute_and_method(monkeypatch):
    config = Config()
    f = lambda x: x * config.gain * config.scale + twice(config, x)
    monkeypatch.setattr(Config, "twice", lambda self, x: self.gain * 2 * x, raising=False)
    twice = lambda c, x: c.twice(x)
    assert again(f, 1.0) == again(f, 1.0) == 1.5 * 3 + 3.0
    config.gain = 1.0
    assert again(f, 1.0) == 5.0
    config.scale = 10.0  # now on the instance, before it on the class
    assert again(f, 1.0) == 12.0
    monkeypatch.setattr(Config, "twice", lambda self, x: x * x)
    assert again(f, 1.0) == 12.0
    config.twice = lambda x: 0.0
    assert again(f, 1.0) == 10.0


def test_changed_array_and_shape(monkeypatch):
    f = lambda x: (WEIGHTS * x).sum()
    monkeypatch.setattr(THIS, "WEIGHTS", np.array([1.0, 2.0]))
    assert again(f, 1.5) == again(f, 1.5) == 3.0
    WEIGHTS[0] = 5.0
    assert again(f, 1.5) == 7.0
    monkeypatch.setattr(THIS, "WEIGHTS", np.ones((2, 2)))
    assert again(f, 1.5) == 4.0
    monkeypatch.setattr(THIS, "WEIGHTS", 3.0)
    with pytest.raises(AttributeError):
        again(f, 1.5)


def test_changed_containers():
    items, table = [1.0, 2.0], {"a": 1.0}

    def f(x):
        return sum(item * x for item in items) + sum(table.values()) * x + len(table) * x

    assert again(f, 1.0) == again(f, 1.0) == 5.0
    items[0] = 4.0
    assert again(f, 1.0) == 8.0
    items.append(10.0)
    assert again(f, 1.0) == 18.0
    table["b"] = 1.0
    assert again(f, 1.0) == 20.0
    items.clear()
    assert again(f, 1.0) == 4.0


def test_another_branch_another_type():
    f = lambda x: x * x if x > 1 else -x
    gradient = grad(f)
    assert [gradient(x) for x in (2.0, 0.5, 3.0, -1.0, 2)] == [4.0, -1.0, 6.0, -1.0, 4.0]
    assert type(gradient(2)) is float
    g = grad(lambda x: np.sum(x * x))
    for x in (2.0, np.ones(3), np.ones((2, 2), np.float32), 3, np.ones(3)):
        assert_close(g(x), 2 * x if not isinstance(x, int) else 6.0)


def test_same_code_different_cells():
    def power(n):
        return lambda x: x**n

    assert [grad(power(n))(2.0) for n in (1, 2, 3)] == [1.0, 4.0, 12.0]
    assert [grad(lambda x: x * n)(2.0) for n in (1.0, 2.0)] == [1.0, 2.0]


def test_same_code_different_defaults():
    made = [lambda x, n=n: x * n for n in (1.0, 2.0, 3.0)]
    assert [grad(f)(5.0) for f in made] == [1.0, 2.0, 3.0]


def test_code_replaced():
    def f(x):
        return x * x

    assert again(f, 3.0) == 6.0
    f.__code__ = (lambda x: x * 5).__code__
    assert again(f, 3.0) == 5.0
    f.__defaults__ = (1.0,)
    assert again(f, 3.0) == 5.0


# ------------------------------------------------------------------------------ writing outside names


total = 0.0


def writes_global(x):
    global total
    total += x * x
    return total * x


def test_global_statement(monkeypatch):
    monkeypatch.setattr(THIS, "total", 1.0)
    value, gradient = value_and_grad(writes_global)(2.0)
    assert_same((value, total), (10.0, 5.0))
    assert_close(gradient, 3 * 4.0 + 1.0)
    assert value_and_grad(writes_global)(2.0)[0] == 18.0
    assert_same(total, 9.0)
    assert_plain(total)


def test_nonlocal_of_the_outside():
    total, items = 1.0, [1.0]

    def f(x):
        nonlocal total
        total *= x
        items.append(total)
        return total * items[-2]

    value, back = pullback(f, 3.0)
    assert_same((value, total, items), (3.0, 3.0, [1.0, 3.0]))
    value, back = pullback(f, 3.0)
    assert_same((value, total, items), (27.0, 9.0, [1.0, 3.0, 9.0]))
    assert_close(back(1.0), (9.0,))
    assert_plain(total, items, f)


def test_global_array_written():
    memory = np.zeros(3)

    def f(x):
        memory[0] += x
        memory[1:] = memory[0] * x
        return memory.sum()

    value, back = pullback(f, 2.0)
    assert_same((value, memory), (np.float64(10.0), np.array([2.0, 4.0, 4.0])))
    assert_close(back(1.0), (1.0 + 2 * 4.0,))
    value, back = pullback(f, 2.0)
    assert_same((value, memory), (np.float64(20.0), np.array([4.0, 8.0, 8.0])))
    assert_close(back(1.0), (1.0 + 2 * (4.0 + 2.0),))


def test_attributes_written_through_the_dict():
    config = Config()

    def f(x, how):
        if how == 0:
            config.__dict__["gain"] = x
        elif how == 1:
            vars(config)["gain"] = x
        elif how == 2:
            config.__dict__.update(gain=x, other=x)
        else:
            del config.__dict__["gain"]
            config.gain = x
        return config.gain * 2 + vars(config)["gain"]

    for how in range(4):
        config.gain = 1.5
        value, back = pullback(f, 2.0, how)
        assert_same((value, config.gain), (6.0, 2.0))
        assert_close(back(1.0)[0], 3.0)
    assert_plain(config)


def test_globals_written_through_the_dict(monkeypatch):
    monkeypatch.setattr(THIS, "RATE", 2.0)
    monkeypatch.setattr(THIS, "TABLE", {"a": 1.0})

    def f(x):
        globals()["RATE"] = x * 2
        globals()["TABLE"]["b"] = x * 3
        TABLE["c"] = x
        return RATE + TABLE["b"] + globals()["TABLE"]["c"] + getattr(THIS, "RATE") + THIS.TABLE["a"]

    value, back = pullback(f, 2.0)
    assert_same((value, RATE, TABLE), (17.0, 4.0, {"a": 1.0, "b": 6.0, "c": 2.0}))
    assert_close(back(1.0), (8.0,))


def test_globals_written_through_the_dict_are_plain(monkeypatch):
    monkeypatch.setattr(THIS, "RATE", 2.0)
    monkeypatch.setattr(THIS, "CONFIG", None)

    def f(x):
        globals()["RATE"] = x * 2
        globals()["RATE"] += x
        globals()["CONFIG"] = [x, {"v": WEIGHTS * x}, Config()]
        CONFIG[2].gain = x
        return RATE * CONFIG[0]

    value, back = pullback(f, 2.0)
    assert_plain(RATE, CONFIG)
    assert_same((value, RATE, CONFIG[:2]), (12.0, 6.0, [2.0, {"v": WEIGHTS * 2.0}]))
    assert_close(back(1.0), (12.0,))


# ---------------------------------------------------------------------- one object of the outside, two ways


def two_ways():
    shared = [1.0, 2.0]
    holder = Config()
    holder.items = shared
    return shared, {"a": shared, "b": [shared, holder]}, holder


def test_one_list_by_two_ways():
    shared, table, holder = two_ways()

    def f(x):
        table["a"][0] = x
        shared.append(x * 2)
        holder.items[1] += x
        table["b"][0].insert(0, x * 3)
        table["b"][1].items.reverse()
        return [shared is table["a"], table["b"][0] is holder.items, sum(shared) * table["a"][-1]]

    value, back = pullback(f, 3.0)
    state = list(shared)
    shared, table, holder = two_ways()
    assert_same(value, f(3.0))
    assert_same(state, shared)
    # [3x, x, 2 + x, 2x] reversed: sum = 7x + 2, last = 3x
    assert_close(back([None, None, 1.0]), (6 * 3 * 7.0 + 6.0,))
    assert_plain(shared, table, holder)


def test_one_list_twice_among_the_arguments():
    def f(a, table):
        a[0] *= 2
        table["a"].append(a[0])
        table["b"] = a
        return [a is table["a"], len(a), sum(table["b"]) * a[-1]]

    shared, mine = [1.0, 3.0], [1.0, 3.0]
    expected = f(shared, {"a": shared})
    value, back = pullback(f, mine, {"a": mine})
    assert_same(value, expected)
    assert_same(mine, shared)


def test_argument_that_is_also_a_global(monkeypatch):
    monkeypatch.setattr(THIS, "PAIRS", [1.0, 2.0])

    def f(pairs, x):
        pairs[0] = x
        PAIRS.append(x * pairs[1])
        return sum(pairs) * len(PAIRS), pairs is PAIRS

    value, back = pullback(f, PAIRS, 3.0)
    assert_same(value, ((3.0 + 2.0 + 6.0) * 3, True))
    assert_same(PAIRS, [3.0, 2.0, 6.0])


def test_one_array_by_two_ways(monkeypatch):
    array = np.array([1.0, 2.0, 3.0])
    monkeypatch.setattr(THIS, "WEIGHTS", array)
    table, items = {"a": 2.0, "v": array}, [array, array[1:]]

    def f(x):
        WEIGHTS[:] = x
        table["a"] += x
        table["v"][1] *= x
        items[1][1] += x
        items.append(x)
        globals()["RATE"] = x
        return [WEIGHTS is table["v"], items[0] is WEIGHTS, sum(table["v"]) * table["a"]]

    monkeypatch.setattr(THIS, "RATE", 2.0)
    value, back = pullback(f, 3.0)
    assert_same((value[:2], list(table)), ([True, True], ["a", "v"]))
    assert value[2] == 18.0 * 5.0
    assert_same((items[0], items[1], items[2]), (array, array[1:], 3.0))
    assert_same(array, np.array([3.0, 9.0, 6.0]))
    assert table["v"] is items[0] is array
    assert_close(back([None, None, 1.0]), (18.0 + 5.0 * (1 + 6 + 2),))


def test_reading_what_was_written_in_every_position(monkeypatch):
    monkeypatch.setattr(THIS, "PAIRS", [1.0, 2.0])
    monkeypatch.setattr(THIS, "TABLE", {"f": helper, "x": 1.0})

    def f(x):
        PAIRS[1] = x
        TABLE["x"] = x * 2
        TABLE["f"] = lambda y=TABLE["x"]: y * PAIRS[1]

        class Local:
            first = PAIRS[1]
            table = {"x": TABLE["x"]}

        def inner(y=PAIRS[1], *, z=TABLE["x"]):
            return y + z

        return [
            (lambda y=PAIRS[1] * x: y + x)(),
            (lambda: PAIRS[1] * x)(),
            TABLE["f"](),
            (TABLE["f"] if PAIRS[1] > 0 else helper)(3.0),
            Local.first + Local.table["x"],
            inner(),
            sum(y * PAIRS[1] for y in PAIRS),
            [PAIRS[1] * y for y in [TABLE["x"]]],
            f"{PAIRS[1]} {TABLE['x']:.1f}",
            math.hypot(PAIRS[1], TABLE["x"]),
            helper(*PAIRS[1:]),
            {**TABLE, "f": 0}["x"],
            [*PAIRS][1:],
        ]

    value, back = pullback(f, 3.0)
    assert_same(value, f(3.0))
    dy = [1.0] * 7 + [[1.0], None, 1.0, 1.0, 1.0, [1.0]]
    slope = numeric_grad(lambda x: inner(dy, f(x)), 3.0)
    assert back(dy)[0] == pytest.approx(slope)
    assert_plain(PAIRS, TABLE)


def test_class_bodies_see_globals(monkeypatch):
    monkeypatch.setattr(THIS, "RATE", 2.0)

    def f(x):
        global RATE
        RATE = x * x

        class Local:
            rate = RATE

            class Inner:
                double = RATE * 2

        return Local.rate + Local.Inner.double + (lambda: RATE)()

    value, back = pullback(f, 3.0)
    assert_same((value, RATE), (36.0, 9.0))
    assert_close(back(1.0), (24.0,))


def test_targets_of_every_kind(monkeypatch):
    monkeypatch.setattr(THIS, "PAIRS", [1.0, 2.0])
    monkeypatch.setattr(THIS, "TABLE", {"x": 1.0})
    config = Config()

    @contextlib.contextmanager
    def given(y):
        yield y

    def f(x):
        for PAIRS[0] in [x, x * 2]:
            pass
        with given(x * 3) as TABLE["x"], given(x * 4) as config.gain:
            pass
        [PAIRS[1], *config.rest] = [x * 5, x * 6, x * 7]
        (TABLE["y"], config.memory[0]), config.steps = (x * 8, x * 9), 3
        total = sum(PAIRS) + sum(TABLE.values()) + config.gain + sum(config.rest)
        return total + config.memory[0] * config.steps

    value, back = pullback(f, 2.0)
    assert value == 2.0 * (2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 * 3)
    assert_close(back(1.0), (62.0,))
    assert_same((PAIRS, TABLE, config.rest), ([4.0, 10.0], {"x": 6.0, "y": 16.0}, [12.0, 14.0]))
    assert_plain(PAIRS, TABLE, config)


def test_iterators_follow_what_is_written(monkeypatch):
    monkeypatch.setattr(THIS, "PAIRS", [1.0, 2.0])

    def f(x):
        pairs, counted = zip(PAIRS, PAIRS), enumerate(PAIRS)
        doubled, turned = map(lambda y: y * 2, PAIRS), reversed(PAIRS)
        PAIRS[0], PAIRS[1] = x, x * 2
        return [
            sum(a * b for a, b in pairs),
            sum(i * y for i, y in counted),
            sum(doubled),
            next(turned),
        ]

    value, back = pullback(f, 3.0)
    assert_same((value, PAIRS), ([45.0, 6.0, 18.0, 6.0], [3.0, 6.0]))
    assert_close(back([1.0] * 4), (30.0 + 2.0 + 6.0 + 2.0,))


def test_methods_of_containers_by_every_name(monkeypatch):
    monkeypatch.setattr(THIS, "PAIRS", [1.0, 2.0])
    monkeypatch.setattr(THIS, "TABLE", {"x": 1.0})

    def f(x):
        push, put = PAIRS.append, TABLE.__setitem__
        push(x)
        put("x", x)
        list.append(PAIRS, x * 2)
        dict.__setitem__(TABLE, "y", x * 2)
        operator.setitem(PAIRS, 0, x * 3)
        operator.iadd(PAIRS, [x * 4])
        operator.delitem(PAIRS, 1)
        PAIRS.__iadd__([x])
        bisect.insort(PAIRS, x * 100)
        heapq.heappush(PAIRS, x * 101)
        collections.ChainMap(TABLE)["z"] = x * 5
        return sum(PAIRS) * 2 + sum(TABLE.values())

    value, back = pullback(f, 1.0)
    state = (list(PAIRS), dict(TABLE))
    PAIRS[:] = [1.0, 2.0]
    TABLE.clear()
    TABLE["x"] = 1.0
    assert_same((value, state), (f(1.0), (PAIRS, TABLE)))
    assert_close(back(1.0), (2 * (3 + 1 + 2 + 4 + 1 + 100 + 101) + 1.0 + 2.0 + 5.0,))
    assert_plain(state)


def test_lists_that_contain_themselves():
    def total(x, seen):
        if id(x) in seen:
            return 0.0
        seen.append(id(x))
        numbers = [item for item in x if not isinstance(item, dict)]
        return sum([total(item, seen) if isinstance(item, list) else item for item in numbers])

    def whole(x):
        items.append(items)
        items[0] = x
        return items[1][0] * items[-1][-1][0]

    def through_another(x):
        shared.extend([items[:2], x])
        items[1] = list(items)
        return total([items, shared], [])

    def for_a_while(x):
        items.append(items)
        shared.append(list(items))
        items[-1] = {"p": x}
        return total([items[:-1], shared], []) * items[-1]["p"]

    for f in (whole, through_another, for_a_while):
        shared = [1.0, 2.0]
        items = [0.25, shared] if f is not whole else [0.25]
        expected, plain = f(1.5), repr((items, shared))
        shared = [1.0, 2.0]
        items = [0.25, shared] if f is not whole else [0.25]
        try:
            value, back = pullback(f, 1.5)
        except WengertError as error:
            assert "itself" in str(error)  # refused with a reason
            continue
        assert_same(value, expected)
        assert repr((items, shared)) == plain
        assert_plain(items, shared)


def test_objects_copied_from_the_outside_hold_no_boxes():
    config = Config()
    config.other = Config()
    table = {}

    def f(x):
        table["config"] = config
        table["copy"] = copy.copy(table["config"])
        config.deep = copy.deepcopy(table["config"])
        config.deep.other.gain *= x
        return config.deep.other.gain * table["copy"].gain

    value, back = pullback(f, 2.0)
    assert_plain(config, table)
    assert_same((value, config.deep.other.gain, config.other.gain), (4.5, 3.0, 1.5))
    assert_close(back(1.0), (1.5 * 1.5,))


def test_views_given_to_the_outside_stay_views(monkeypatch):
    monkeypatch.setattr(THIS, "WEIGHTS", np.array([1.0, 2.0, 3.0]))
    log = []

    def f(x):
        log.append(WEIGHTS[1:])
        np.multiply(WEIGHTS, x, out=WEIGHTS)
        log.append(WEIGHTS[::-1])
        WEIGHTS[0] = x
        return sum(log[0]) * log[1][2]

    value, back = pullback(f, 2.0)
    assert value == 20.0
    assert_same(log, [np.array([4.0, 6.0]), np.array([6.0, 4.0, 2.0])])
    assert all(np.shares_memory(view, WEIGHTS) for view in log)
    assert_close(back(1.0), (20.0,))  # 5 x * x


# ------------------------------------------------------------------------------ what changes every call


def test_random_numbers_are_drawn_as_in_plain_python():
    def f(x, rng):
        noise = rng.normal(size=3)
        return (noise * x).sum() + rng.random() * x, noise

    plain, mine = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(3):
        expected = f(1.5, plain)
        value, back = pullback(f, 1.5, mine)
        assert_same(value, expected)
        assert back((1.0, None))[0] == pytest.approx(value[0] / 1.5)
    assert plain.random() == mine.random()


def test_random_module_and_global_state():
    def f(x):
        return x * random.random() + np.random.standard_normal() * x + random.gauss(0.0, 1.0)

    def run(f):
        random.seed(3)
        np.random.seed(3)
        return [f(2.0) for _ in range(3)], random.random()

    assert run(f) == run(lambda x: pullback(f, x)[0])


def test_random_rejection_loop():
    def f(x, rng):
        while True:
            a, b = rng.random(2) * x
            if a * a + b * b < x * x:
                return a / b

    for seed in range(5):
        expected = f(2.0, np.random.default_rng(seed))
        value, back = pullback(f, 2.0, np.random.default_rng(seed))
        assert_same(value, expected)
        assert back(1.0)[0] == pytest.approx(0.0, abs=1e-12)


def test_clock():
    def f(x):
        return (time.time() - time.time() + 1) * x + time.perf_counter() * 0

    start = time.time()
    value, back = pullback(f, 2.0)
    assert type(value) is float
    assert 1.0 - (time.time() - start) <= back(1.0)[0] <= 1.0


def test_iterators_and_files_from_outside(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1.5\n2.5\n")
    rows = iter([1.0, 2.0, 3.0])

    def f(x):
        with open(path) as file:
            numbers = [float(line) for line in file]
        return x * next(rows) * numbers[0] + numbers[1]

    assert grad(f)(2.0) == 1.5
    assert grad(f)(2.0) == 3.0
    assert next(rows) == 3.0


def test_generator_from_outside():
    def numbers():
        n = 1.0
        while True:
            yield n
            n *= 2

    source = numbers()

    def f(x):
        return x * next(source) + next(source)

    assert_same(pullback(f, 3.0)[0], 3.0 + 2.0)
    assert_same(pullback(f, 3.0)[0], 12.0 + 8.0)
    assert next(source) == 16.0
    assert_plain(source)


# --------------------------------------------------------------------------------------- what is left alone


@functools.lru_cache(maxsize=None)
def remembered(x):
    return x * x


def test_caches_of_the_outside_hold_no_boxes():
    assert grad(lambda x: remembered(x) * x)(3.0) == 27.0
    assert_same(remembered(3.0), 9.0)
    assert (
        grad(lambda x: remembered(x) * x)(3.0) == 27.0
    )  # and a plain value kept there is not a constant


MEMO = {}


def fibonacci(n, x):
    if n < 2:
        return x
    if n not in MEMO:
        MEMO[n] = fibonacci(n - 1, x) + fibonacci(n - 2, x) * x
    return MEMO[n]


def test_memo_in_a_global_dict():
    MEMO.clear()
    value, back = pullback(lambda x: fibonacci(5, x), 0.5)
    assert_plain(MEMO)
    MEMO.clear()
    assert_same(value, fibonacci(5, 0.5))
    assert back(1.0)[0] == pytest.approx(1 + 8 * 0.5 + 9 * 0.25, abs=1e-12)


def test_functions_of_the_outside_are_not_changed():
    before = (helper.__code__, helper.__closure__, helper.__defaults__, dict(helper.__dict__))
    assert grad(lambda x: helper(x))(1.0) == RATE
    assert (
        helper.__code__,
        helper.__closure__,
        helper.__defaults__,
        dict(helper.__dict__),
    ) == before
    assert type(helper) is types.FunctionType
    assert helper(2.0) == 2 * RATE


def test_function_knows_itself():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        assert f is keep[0]
        assert f.__name__ == "f"
        return x * f.calls

    keep = [f]
    assert pullback(f, 2.0)[0] == 2.0
    assert_same(f.calls, 1)
    assert pullback(f, 2.0)[0] == 4.0


def test_methods_are_called_on_the_real_object():
    class Counter:
        def __init__(self):
            self.seen = []

        def add(self, x):
            self.seen.append(x)
            assert self is counter
            return x * len(self.seen)

    counter = Counter()
    assert pullback(counter.add, 2.0)[0] == 2.0
    assert pullback(lambda x: counter.add(x * 2), 2.0)[0] == 8.0
    assert_same(counter.seen, [2.0, 4.0])


def test_locals_and_frames():
    def f(x):
        y = x * 2
        names = sorted(k for k in locals() if not k.startswith("__"))
        return locals()["y"] * len(names), names

    check(f, 1.5)


# ---------------------------------------------------------------------------- the interpreter is left alone


def interpreter():
    """What a tracer might be tempted to change."""
    monitoring = getattr(sys, "monitoring", None)
    return {
        "profile": sys.getprofile(),
        "trace": sys.gettrace(),
        "tools": [monitoring.get_tool(i) for i in range(6)] if monitoring else None,
        "recursion": sys.getrecursionlimit(),
        "builtins": {name: id(value) for name, value in vars(builtins).items()},
        "math": {name: id(value) for name, value in vars(math).items()},
        "errors": np.geterr(),
        "filters": list(warnings.filters),
        "collecting": (gc.isenabled(), gc.get_threshold()),
        "random": (random.getstate(), repr(np.random.get_state())),
        "hooks": (sys.excepthook, sys.displayhook, builtins.__import__, builtins.__build_class__),
        "path": list(sys.path),
    }


def busy(x):
    class Local:
        y = x

    total = sum(sorted([x, 2.0], key=lambda v: -v)) * Local().y
    return total + np.sin(np.array([x, x])).sum() + remembered(x)


def fails(x):
    raise ValueError(sorted([x], key=lambda v: -v))


def test_interpreter_is_left_as_it_was():
    grad(busy)(1.5)  # so that lazy imports are done
    before, threads = interpreter(), {*threading.enumerate()}
    value, back = pullback(busy, 1.5)
    assert interpreter() == before
    back(1.0)
    str(trace(busy, 1.5))
    with pytest.raises(ValueError):
        grad(fails)(1.5)
    with pytest.raises(WengertError):
        grad(lambda x: (y for y in [x]))(1.5)
    assert interpreter() == before
    assert {*threading.enumerate()} <= threads  # those of other tests may end meanwhile


def test_under_a_profiler_of_the_users():
    seen = []
    old = sys.getprofile()
    sys.setprofile(mine := lambda frame, event, arg: seen.append(event))
    try:
        gradient = grad(busy)(1.5)
        now = sys.getprofile()
    finally:
        sys.setprofile(old)
    assert now is mine
    assert gradient == pytest.approx(grad(busy)(1.5))
    assert seen


def test_under_a_debugger_of_the_users():
    lines = []

    def tracer(frame, event, arg):
        if event == "line" and frame.f_code.co_name == "busy":
            lines.append(frame.f_lineno)
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        gradient = grad(busy)(1.5)
    finally:
        sys.settrace(old)
    assert gradient == pytest.approx(grad(busy)(1.5))
    first = busy.__code__.co_firstlineno
    assert {line - first for line in lines} >= {1, 4, 5}


def test_functions_know_where_they_are():
    def f(x):
        frame = sys._getframe()
        here = (frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno)
        names = sorted(frame.f_code.co_varnames)
        return x * len(names), here, names, f.__name__, f.__code__.co_argcount

    check(f, 1.5)


def test_weak_references_die_in_time():
    """What a traced function made is freed when the gradient is: the tracer keeps nothing."""
    kept = []

    class Thing:
        def __init__(self, x):
            self.x = x

    def f(x):
        thing = Thing(x)
        kept.append(weakref.ref(thing))
        return thing.x * 2

    assert grad(f)(1.5) == 2.0
    gc.collect()
    assert kept[0]() is None


def test_repeated_calls_do_not_fill_the_memory():
    def f(v):
        helper = lambda w: np.sum(w * v)
        return helper(v) * sum(x for x in v)

    v = np.ones(100)
    for _ in range(20):
        grad(f)(v)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        grad(f)(v)
    gc.collect()
    assert len(gc.get_objects()) - before < 500


def test_one_object_at_two_positions_shows_its_whole_gradient_at_each():
    class Weight:
        def __init__(self, w):
            self.w = w

    shared = Weight(3.0)
    assert pullback(lambda a, b: a.w * b.w * b.w, shared, shared)[1](1.0) == (
        {"w": 27.0},
        {"w": 27.0},
    )
    assert pullback(lambda a, b: a.w * b.w * b.w, Weight(3.0), Weight(3.0))[1](1.0) == (
        {"w": 9.0},
        {"w": 18.0},
    )
    assert pullback(lambda a, b: a[0] * b[0] * b[0], *[[3.0]] * 2)[1](1.0) == ([9.0], [18.0])


class Sink(list):
    pass


def test_collections_of_other_classes_keep_derivatives_and_plain_values():
    total, kept = collections.Counter(), types.SimpleNamespace()

    def f(x):
        kept.sink = sink = Sink([x])
        total["a"] += x
        return sink[0] * kept.sink[0] * total["a"]

    for k in range(1, 4):
        value, back = pullback(f, 3.0)
        assert_same((value, dict(total), list(kept.sink)), (27.0 * k, {"a": 3.0 * k}, [3.0]))
        assert_close(back(1.0), (9.0 + 6.0 * 3.0 * k,))
        assert_plain(dict(total), list(kept.sink))


@pytest.mark.parametrize("put", (lambda s: s, lambda s: [s], lambda s: {"a": (s,)}))
def test_a_collection_of_another_class_is_not_handed_to_c_code_with_traced_values(put):
    def f(x):
        sink = Sink([x])
        pickle.dumps(put(sink))
        return sink[0] * x

    with pytest.raises(EscapeError, match=r"test_border\.py:\d+, in f"):
        pullback(f, 3.0)


class Doubled:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        yield self.x * 2
        yield self.x * 3


class Counting:
    """An iterator in Python."""

    def __init__(self, x):
        self.x, self.left = x, 3

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.x * self.left


class Indexed:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        if i > 1:
            raise IndexError
        return self.x * (i + 2)


@pytest.mark.parametrize("kind", [Doubled, Counting, Indexed])
def test_unpacking_an_object_runs_its_methods(kind):
    def in_order(p):
        a, b, *rest = p
        return a * b + sum(rest)

    def displays(p):
        return len({*p}) * max(*p, *kind(p.x)) + sum([1.0, *p]) + len((0, *p))

    for f in (in_order, displays):
        expected = derivative(lambda t: f(kind(2.5 + t)))
        for on in (True, True, True, False):
            with jit(on):
                value, gradient = value_and_grad(f)(kind(2.5))
            assert value == f(kind(2.5))
            assert gradient["x"] == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [2.5, None, [1.0], {1.0: 2.0}, "abc"], ids=repr)
def test_unpacking_what_does_not_fit(wrong):
    def f(x):
        a, b = wrong if not isinstance(wrong, float) else x
        return x

    def g(x):
        return x if [1.0, *(wrong if not isinstance(wrong, float) else x)] else x

    check_raises(f, 2.5)
    if wrong is None or isinstance(wrong, float):
        check_raises(g, 2.5)


counted = 0


@pytest.mark.parametrize("way", ["statement", "module"])
def test_an_integer_that_becomes_a_global(way):
    def f(n):
        global counted
        counted = n
        return counted * 2.0 + counted

    def g(n):
        sys.modules[__name__].counted = n
        return sys.modules[__name__].counted * 2.0 + counted

    for on in (True, True, True, False):
        with jit(on):
            assert value_and_grad({"statement": f, "module": g}[way])(3) == (9.0, 3.0)
    assert type(counted) is int


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "make, first, second",
    [
        (lambda x, y: [x, y], lambda d: d[0], lambda d: d[1]),
        (lambda x, y: [(x,), (y,)], lambda d: d[0][0], lambda d: d[1][0]),
        (lambda x, y: {"p": (x, 1.0), "q": (y,)}, lambda d: d["p"][0], lambda d: d["q"][0]),
        (lambda x, y: [{"p": ((x,), y)}], lambda d: d[0]["p"][0][0], lambda d: d[0]["p"][1]),
    ],
)
def test_containers_that_c_code_has_looked_at_hold_what_they_held(on, make, first, second):
    def f(x, y):
        held = make(x, y)
        json.dumps(held)
        return first(held) * 2.0 + second(held) * y

    value = 1.5  # one and the same
    with jit(on):
        for _ in range(3):
            assert value_and_grad(f, (0, 1))(value, value) == (5.25, (2.0, 3.0))


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
@pytest.mark.filterwarnings("ignore:Pickle, copy:DeprecationWarning")
def test_copies_of_iterators_of_lists_outside(on, copied):
    held = [1.0, 2.0, 3.0]

    def f(x):
        found = iter(held)
        next(found)
        again = copied(found)
        return x * next(found) + next(again)

    with jit(on):
        for _ in range(3):
            assert value_and_grad(f)(1.5) == (5.0, 2.0)
        held[1] = 4.0
        assert value_and_grad(f)(1.5) == (10.0, 4.0)


def worn(scale):
    """A set with a past: its elements are not in the order of a copy."""
    made = {i * scale for i in range(20)}
    for i in range(10):
        made.discard(i * scale)
    made.add(2 * scale)
    assert list(made) != list(set(made))
    return made


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("scale", [8, 8.0])
@pytest.mark.parametrize("came_in", ["global", "argument"])
def test_sets_with_a_past_are_seen_in_their_order(on, scale, came_in):
    def run(ask):
        outside = worn(scale)

        def f(x, seen):
            seen = outside if seen is None else seen
            total = x * 0.0
            for element in seen:
                total = total * 0.5 + element
            first = seen.pop()
            seen.add(first)
            second = seen.pop()
            seen |= {1000.0, first}
            return (total * x, first, second), list(seen)

        found = []
        for i in range(4):
            found.append(ask(f, 1.5 + i, worn(scale) if came_in == "argument" else None))
            found.append(list(outside))
            if i == 2:
                outside.discard(1000.0)
        return found

    with jit(on):
        if came_in == "argument" and type(scale) is float:
            return  # whose elements are parts of it
        assert run(lambda f, x, seen: wengert_value(f, x, seen)) == run(
            lambda f, x, seen: f(x, seen)
        )


def wengert_value(f, *args):
    return pullback(f, *args)[0]


@pytest.mark.parametrize("on", [True, False])
def test_traced_values_in_sets_with_a_past_are_refused(on):
    outside = worn(8)

    def f(x):
        outside.add(x * 2.0)
        return x * len(outside)

    with jit(on):
        for _ in range(3):
            with pytest.raises(TraceError, match="goes into a set outside"):
                grad(f)(1.5)
    assert all(type(x) is int for x in outside)


@pytest.mark.parametrize("on", [True, False])
def test_an_element_is_popped_that_plain_python_pops(on):
    def run(ask):
        outside = {1, 2, 3, 17, 9}

        def f(x):
            taken = outside.pop()
            outside.add(taken)
            return x * taken

        return [ask(f, 2.0) for _ in range(7)]

    with jit(on):
        assert run(wengert_value) == run(lambda f, x: f(x))


def test_a_tuple_that_c_code_is_given_twice_is_one():
    def f(x):
        t = (1.0, x, [x])
        r = ([],)
        r[0].append(r)
        a, b = pickle.loads(pickle.dumps(((2, [3]), (2, [3]))))
        u = (2, [3])
        c, d = pickle.loads(pickle.dumps((u, u)))
        p, q = copy.deepcopy(r), pickle.loads(pickle.dumps(r))
        same = operator.is_(t, t), operator.is_([t, t][0], t), operator.is_(r, r), a is b, c is d
        return x * x, same, p[0][0] is p, q[0][0] is q, operator.is_not(t, (1.0, x, [x]))

    for on in (False, True):
        with jit(on):
            for x in (2.0, 3.0, 4.0):
                value, back = pullback(f, x)
                assert value == f(x)
                assert back((1.0, *[None] * 4)) == (2 * x,)


def test_a_list_outside_that_an_array_is_added_to():
    held, queue = [1.0, 2.0], collections.deque([1.0, 2.0])
    table = {"a": held}

    def array(x):
        mine = held
        mine += np.array([1.0, -1.0]) * x
        return mine

    def item(x):
        table["a"] += np.array([1.0, -1.0]) * x
        return table["a"]

    def scalar(x):
        mine = held
        mine += np.float64(2.0) * x
        return mine

    def product(x):
        mine = held
        mine *= np.array([x, 2.0])
        return mine

    def of_a_deque(x):
        mine = queue
        mine += np.array([x, 2.0])
        return mine

    def repeated(x):
        mine = held
        mine *= np.int64(2)
        return np.array(mine) * x

    expected = {array: 0.0, item: 0.0, scalar: 4.0, product: 1.0, of_a_deque: 1.0, repeated: 6.0}
    for f, slope in expected.items():
        for on in (False, True):
            with jit(on):
                for x in (2.0, 3.0, 4.0):
                    results = []
                    for call in (f, lambda x, f=f: pullback(f, x)):
                        held[:], table["a"] = [1.0, 2.0], held
                        queue.clear()
                        queue.extend([1.0, 2.0])
                        answer = call(x)
                        value = answer if call is f else answer[0]
                        results.append(
                            (type(value), [*value], list(held), list(queue), type(table["a"]))
                        )
                    assert results[0] == results[1], f.__name__
                    (d,) = answer[1](np.ones(len(value)))
                    assert d == slope


def uses_of_containers_within_themselves():
    held = [1.0]
    held.append(held)
    table = {"a": 1.0}
    table["t"] = table
    queue = collections.deque([2.0])
    queue.append(queue)
    ordered = collections.OrderedDict(a=1.0)
    ordered["o"] = ordered

    def json_of(x):
        try:
            return json.dumps(held)
        except ValueError as error:
            return str(error)

    def of_its_own(x):
        mine, named = [x], {"x": x}
        mine.append(mine)
        named["n"] = named
        print(mine, named)
        return mine[1][1][0] * named["n"]["x"]

    return {
        "print": lambda x: print(held, table, queue, ordered, x),
        "repr": lambda x: (repr(held), str(table), f"{queue!r} {ordered}"),
        "pickle": lambda x: pickle.loads(pickle.dumps(held))[1][1][0] * x,
        "deepcopy": lambda x: copy.deepcopy(table)["t"]["t"]["a"] * x,
        "json": json_of,
        "pprint": lambda x: pprint.pformat(held).count("Recursion") * x,
        "append": lambda x: (held.append(held), print(held, len(held)))[1],
        "update": lambda x: (table.update(u=table), print(table))[1],
        "of its own": of_its_own,
    }


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", uses_of_containers_within_themselves())
def test_containers_within_themselves(name, on, capsys):
    plain, traced = uses_of_containers_within_themselves(), uses_of_containers_within_themselves()
    for x in (1.5, 2.5, 3.5, 4.5):
        wanted = plain[name](x), capsys.readouterr()
        with jit(on):
            value, _ = pullback(traced[name], x)
        assert (value, capsys.readouterr()) == wanted
