"""Values may be nested as deep as plain Python can hold them, and contain themselves."""

import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from wengert import grad, jit, pullback, value_and_grad

DEEP = 5_000
FAR = 1_200  # beyond the recursion limit


class Node:
    def __init__(self, value, rest):
        self.value, self.rest = value, rest


class Slotted:
    __slots__ = ("rest", "value")

    def __init__(self, value, rest):
        self.value, self.rest = value, rest


@dataclass
class Record:
    value: Any
    rest: Any


class Items(list):
    pass


def link(kind, value, rest):
    if kind in (dict, OrderedDict):
        return kind(value=value, rest=rest)
    if kind is defaultdict:
        return defaultdict(list, value=value, rest=rest)
    if kind in (list, tuple, deque, Items):
        return kind([value, rest])
    return kind(value, rest)


def part(x, name):
    """A part of a link, or of the gradient by one."""
    if isinstance(x, dict):
        return x[name]
    if isinstance(x, (list, tuple, deque)):
        return x[name == "rest"]
    return getattr(x, name)


KINDS = (list, tuple, dict, OrderedDict, defaultdict, deque, Items, Node, Slotted, Record)


def chain(kinds, value=0.5, count=FAR):
    x = None
    for i in range(count):
        x = link(kinds[i % len(kinds)], value, x)
    return x


def walk(x, y):
    while x is not None:
        y = y * 0.5 + part(x, "value")
        x = part(x, "rest")
    return y


def values(x):
    found = []
    while x is not None:
        found.append(part(x, "value"))
        x = x.get("rest") if isinstance(x, dict) else part(x, "rest")
    return found


def slopes(count=FAR):
    return [0.5 ** (count - 1 - k) for k in range(count)]


def calls(f, *args, count=4):
    for on in (False, True):
        with jit(on):
            for _ in range(count):
                yield f(*args)


QUICK = (list, tuple, dict, Node, Record)


@pytest.mark.parametrize(
    ("kinds", "count"),
    [((list,), DEEP), ((Node,), DEEP), (QUICK, DEEP)]
    + [((kind,), 300) for kind in KINDS if kind not in (list, Node)],
    ids=str,
)
def test_arguments(kinds, count):
    x = chain(kinds, 0.5, count)
    for value, (by_x, by_y) in calls(
        value_and_grad(lambda x, y: walk(x, y), (0, 1)), x, 1.5, count=3
    ):
        assert value == walk(x, 1.5)
        assert values(by_x) == slopes(count)
        assert by_y == 0.5**count


def test_without_numbers():
    """Where nothing has a derivative, there is none to give."""
    x = chain((Node,), "text")
    for by_x, by_y in calls(lambda x, y: pullback(count, x, y)[1](1.0), x, 1.5):
        assert by_x is None
        assert by_y == FAR


def count(x, y):
    total = 0.0
    while x is not None:
        x, total = x.rest, total + y
    return total


def test_results():
    def f(x):
        made = None
        for i in range(FAR):
            made = link(QUICK[i % len(QUICK)], x * 2.0, made)
        return made

    for on in (False, True):
        with jit(on):
            for _ in range(3):
                value, back = pullback(f, 1.5)
                assert values(value) == [3.0] * FAR
                assert back(value) == (2.0 * 3.0 * FAR,)


def test_what_is_read_from_outside():
    held = {kind: chain((kind,)) for kind in QUICK}

    def f(y):
        for x in held.values():
            y = walk(x, y)
        return y

    for value, slope in calls(value_and_grad(f), 1.5, count=3):
        assert value == f(1.5)
        assert slope == 0.0


def test_the_callable_itself():
    x = chain((list, Node))
    for _ in range(3):
        value, back = pullback(lambda y: walk(x, y), 1.5, wrt_self=True)
        assert value == walk(x, 1.5)
        own, _ = back(1.0)
        assert values(own["x"] if isinstance(own, dict) else own.x) == slopes()


@pytest.mark.parametrize("kinds", [(list,), (dict,), (Node,), (deque, Record)], ids=str)
def test_effects(kinds):
    def f(x, y):
        while part(x, "rest") is not None:
            x = part(x, "rest")
        if isinstance(x, (list, deque)):
            x[0] = x[0] + y
        elif isinstance(x, dict):
            x["value"] = x["value"] + y
        else:
            x.value = x.value + y
        return part(x, "value") * 3.0

    mine, plain = chain(kinds), chain(kinds)
    for value, slope in calls(value_and_grad(f, 1), mine, 1.5):
        assert value == f(plain, 1.5)
        assert slope == 3.0
        assert values(mine) == values(plain)


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 12),
    reason="its limit of recursion in C ends this by a RecursionError",
)
def test_what_is_left_outside():
    for kind in QUICK:
        kept = []

        def f(x, kind=kind, kept=kept):
            made = None
            for _ in range(FAR):
                made = link(kind, x * 2.0, made)
            kept.append(made)
            return x * x

        for slope in calls(grad(f), 1.5, count=2):
            assert slope == 3.0
            assert values(kept.pop()) == [3.0] * FAR
            assert not kept


def test_exceptions():
    def f(x):
        made = None
        for _ in range(FAR):
            made = [x * 2.0, made]
        raise ValueError(made)

    for on in (False, True):
        with jit(on):
            for _ in range(3):
                with pytest.raises(ValueError) as error:
                    grad(f)(1.5)
                assert values(error.value.args[0]) == [3.0] * FAR


def test_inside_a_traced_function():
    x = chain((list, Node, dict))

    def f(y):
        value, (by_x, by_y) = value_and_grad(walk, (0, 1))(x, y)
        return value * by_y + part(by_x, "value")

    for value, slope in calls(value_and_grad(f), 1.5, count=2):
        assert value == walk(x, 1.5) * 0.5**FAR + slopes()[0]
        assert slope == 0.5 ** (2 * FAR)


# ------------------------------------------------------------------------------------- containing themselves


class Tree:
    def __init__(self, value, parent):
        self.value, self.parent, self.children = value, parent, []
        if parent is not None:
            parent.children.append(self)


def test_parent_pointers():
    def make():
        nodes = [Tree(1.0, None)]
        for i in range(1, 60):
            nodes.append(Tree(1.0 + i, nodes[(i - 1) // 2]))
        return nodes[0]

    def f(tree, y):
        total, todo = 0.0, [tree]
        while todo:
            node = todo.pop()
            total = total + node.value * y
            todo += node.children
            assert node.parent is None or node in node.parent.children
        return total

    for value, (by_tree, by_y) in calls(value_and_grad(f, (0, 1)), make(), 1.5):
        assert value == f(make(), 1.5)
        assert by_y == sum(range(1, 61))
        todo, found = [by_tree], 0
        while todo:
            node = todo.pop()
            assert node["value"] == 1.5
            todo += [x for x in node.get("children", ()) if x]
            found += 1
        assert found == 60


def test_cycles():
    def ring(kind):
        if kind is list:
            x = [0.5]
            x.append(x)
        elif kind is dict:
            x = {"value": 0.5}
            x["rest"] = x
        elif kind is deque:
            x = deque([0.5])
            x.append(x)
        else:
            x = kind(0.5, None)
            x.rest = x
        return x

    def f(x, y):
        for _ in range(3):
            y = y * part(x, "value")
            assert part(x, "rest") is x
            x = part(x, "rest")
        return y

    for kind in (list, dict, deque, Node, Slotted, Record):
        for value, (by_x, by_y) in calls(value_and_grad(f, (0, 1)), ring(kind), 2.0):
            assert value == 0.25
            assert by_y == 0.125
            assert part(by_x, "value") == 1.5


def test_a_long_cycle():
    x = chain((Node, list))
    last = x
    while part(last, "rest") is not None:
        last = part(last, "rest")
    last.rest = x  # a Node, for it was made first

    def f(x, y):
        for _ in range(FAR + 3):
            y = y * 0.5 + part(x, "value")
            x = part(x, "rest")
        return y

    for value, slope in calls(value_and_grad(f, 1), x, 1.5, count=3):
        assert value == f(x, 1.5)
        assert slope == 0.5 ** (FAR + 3)


def test_arrays():
    x = chain((tuple, Node), np.array([0.5, 1.0]))
    for value, by_x in calls(value_and_grad(lambda x: walk(x, 0.0).sum()), x, count=3):
        assert value == walk(x, 0.0).sum()
        assert [list(d) for d in values(by_x)] == [[d, d] for d in slopes()]
