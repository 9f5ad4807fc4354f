"""Gradients by objects, dicts and records in folded programs, whose structure is that of each call."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import TraceError, clear_cache, explain, grad, jit, pullback, value_and_grad
from wengert.transforms import cache

rng = random.Random()


@pytest.fixture(autouse=True)
def seeded() -> None:
    rng.seed(3)
    clear_cache()


@dataclasses.dataclass
class Parameters:
    rate: float
    count: int
    weights: list[float]
    pair: tuple[Any, ...]
    table: dict[str, float]
    array: Any
    inner: Any
    flag: bool = False
    name: str = "p"
    unread: float = 2.5


class Node:
    __slots__ = ("kids", "tag", "value")

    def __init__(self, value: float, kids: Any = ()) -> None:
        self.value, self.kids, self.tag = value, [*kids], rng.choice("ab")


class Half:
    def __init__(self, whole: float) -> None:
        self._whole, self.count = whole, 3

    @property
    def half(self) -> float:
        return self._whole / 2


def by_parameters(p: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        if total < 3:
            total += p.rate * p.weights[i % len(p.weights)]
        else:
            total += p.table["u"] * p.pair[1][0]
        if p.flag:
            total -= p.count * p.inner.half
        if p.array is not None:
            total += p.array.sum() * float(p.count)
    return total


def by_tree(node: Any, n: int) -> float:
    total = node.value * n
    for kid in node.kids:
        total += by_tree(kid, n + 1) * 0.5 if kid.tag == "a" else kid.value
    return total


def by_nodes(nodes: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        node = nodes[i % len(nodes)]
        total += node.value * node.value if node.tag == "a" else node.value
    return total


def by_numbered(table: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += table[i % 3] * i if total < 2 else table[0]
    return total


def by_records(records: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        name, weight, flag, (_, inner) = records[i % len(records)]
        if flag:
            total += weight * 1.5
        elif name == "a":
            total += weight * weight
        else:
            total -= weight * inner
    return total


def by_counted(records: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        late, seen, pair, weight = records[i % len(records)]
        total += weight * pair[1 if late else 0] if seen > 1 else weight * 0.5
    return total


def by_arrays(records: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        points, weight, (others, scale) = records[i % len(records)]
        total += np.sum(np.tanh(points)) * weight + np.mean(scale * points * others)
    return total


def by_some_arrays(records: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        name, value = records[i % len(records)]
        if name == "a":
            total += np.sum(value * value)
        else:
            total += value * i
    return total


def by_mixed(model: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        part, by = model["parts"][i % len(model["parts"])], model["by"]
        total += part.value * by["k"] if total < by["most"] else part.value
    return total


def parameters() -> Parameters:
    weights = [*[rng.random() for _ in range(rng.randint(1, 4))], 2]
    array = rng.choice([None, np.array([1.0, 2.0])])
    table = {"u": rng.random(), "z": 1}
    inner = Half(rng.random())
    pair = ("s", (rng.random(), True))
    return Parameters(
        rng.random(), rng.randint(1, 4), weights, pair, table, array, inner, rng.random() < 0.4
    )


def tree(depth: int = 0) -> Node:
    return Node(rng.random(), [tree(depth + 1) for _ in range(rng.randint(0, 2) * (depth < 3))])


def record() -> tuple[Any, ...]:
    return rng.choice("ab"), rng.random(), rng.random() < 0.3, (rng.choice("xy"), rng.random())


def counted() -> tuple[Any, ...]:
    return rng.random() < 0.5, rng.randint(1, 3), [0.5, 1.5], rng.random()


def arrays() -> tuple[Any, ...]:
    points = np.array([rng.random() for _ in range(rng.randint(1, 4))])
    return points, rng.random(), (points + 0.5, np.float64(rng.random()))


def some_array() -> tuple[Any, ...]:
    return rng.choice([("a", np.array([rng.random(), 2.0])), ("b", rng.random())])


def several(make: Callable[[], Any]) -> list[Any]:
    return [make() for _ in range(rng.randint(1, 4))]


CASES: list[tuple[Any, Callable[[], Any]]] = [
    (by_parameters, parameters),
    (by_tree, tree),
    (by_nodes, lambda: several(tree)),
    (by_numbered, lambda: {0: rng.random(), 1: rng.random(), 2: rng.choice([1, 0.5])}),
    (by_records, lambda: several(record)),
    (by_counted, lambda: several(counted)),
    (by_arrays, lambda: several(arrays)),
    (by_some_arrays, lambda: several(some_array)),
    (by_mixed, lambda: {"parts": several(tree), "by": {"k": rng.random(), "most": 1.5}}),
]


def assert_close(a: Any, b: Any) -> None:
    """Assert that two gradients are of one structure, with equal numbers up to the order of sums."""
    assert type(a) is type(b)
    if dataclasses.is_dataclass(a):
        a, b = vars(a), vars(b)
    if isinstance(a, dict):
        assert [*a] == [*b]
        a, b = [*a.values()], [*b.values()]
    if isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)
    elif a is not None:
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("f", "make"), CASES)
def test_gradients_are_those_of_a_traced_call(f: Any, make: Callable[[], Any]) -> None:
    both = value_and_grad(f)
    for _ in range(30):
        x, n = make(), rng.randint(1, 6)
        value, gradient = both(x, n)
        same, back = pullback(f, x, n)
        assert value == f(x, n) == same
        with jit(False):
            assert_close(gradient, both(x, n)[1])
            other = pullback(f, x, n)[1]
        for dy in (2.0, 3):
            assert_close(back(dy), other(dy))
    for entry in cache.entries.values():
        assert entry.folding.why is None
        assert sum(program.hits for program in entry.programs if program.growth) > 0


def test_by_differences() -> None:
    both = value_and_grad(by_records)
    for _ in range(12):
        records, n, step = several(record), rng.randint(1, 6), 1e-6
        gradient = both(records, n)[1]
        for i, (name, weight, *rest) in enumerate(records):
            ends = []
            for sign in (1, -1):
                other = [*records]
                other[i] = (name, weight + sign * step, *rest)
                ends.append(by_records(other, n))
            assert gradient[i][1] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def by_two(node: Any, other: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += node.value * other.value if total < 1 else other.value * i
    return total


def by_own(node: Any, n: int) -> float:
    return by_two(node, own, n)


def by_listed(node: Any, n: int) -> float:
    return by_two(node, table["nodes"][0], n)


own = Node(0.5)
table = {"nodes": [own]}


@pytest.mark.parametrize("f", [by_own, by_listed, by_two])
def test_an_object_that_is_met_elsewhere_as_well(f: Any) -> None:
    """It is one object, and has one derivative, whichever way it is read."""
    both = value_and_grad(f)
    for n in range(1, 14):
        x = own if n % 3 else Node(0.5)
        args = (x, own, n) if f is by_two else (x, n)
        value, gradient = both(*args)
        assert value == f(*args)
        with jit(False):
            assert_close(gradient, both(*args)[1])


def test_one_object_at_two_places() -> None:
    def f(nodes: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += nodes[i % len(nodes)].value * i
        return total

    both = value_and_grad(f)
    for n in range(1, 14):
        nodes = several(tree)
        if n % 3 == 0:
            nodes.append(nodes[0])
        with jit(False):
            expected = both(nodes, n)
        value, gradient = both(nodes, n)
        assert value == expected[0]
        assert_close(gradient, expected[1])


def test_what_has_no_number_is_refused_as_in_a_traced_call() -> None:
    def f(node: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += i
        return total if node.tag == "c" else total * node.value

    both = grad(f)
    for n in range(1, 9):
        both(Node(0.5), n)
        empty = Node(None)  # type: ignore[arg-type]
        empty.tag = "c"
        with pytest.raises(TraceError, match="a Node without a derivative"):
            both(empty, n)


def test_explain_says_which_argument_does_not_fold() -> None:
    def f(node: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += node.value * i
        return total

    node = Node(0.5)
    node.kids.append(frozenset((1.5,)))
    for n in range(3, 11):
        value_and_grad(f)(node, n)
    assert "a gradient by a frozenset is asked for" in str(explain(f, node, 3))


def test_a_late_pullback_has_the_object_as_it_was() -> None:
    for n in range(1, 12):
        node = Node(0.5, [Node(1.5)])
        node.tag = node.kids[0].tag = "a"
        _, back = pullback(by_tree, node, n)
        node.value, node.kids[0].value = 7.0, 8.0
        with jit(False):
            old = Node(0.5, [Node(1.5)])
            old.tag = old.kids[0].tag = "a"
            expected = pullback(by_tree, old, n)[1](3)
        assert_close(back(3), expected)


def test_a_late_pullback_has_the_arrays_as_they_were() -> None:
    for n in range(1, 12):
        records = several(arrays)
        with jit(False):
            old = [(x.copy(), *rest) for x, *rest in records]
            expected = pullback(by_arrays, old, n)[1](3)
        _, back = pullback(by_arrays, records, n)
        for points, *_ in records:
            points[:] = 7.0
        assert_close(back(3), expected)


def test_an_array_that_is_written_to_is_not_read_only_for_it() -> None:
    def f(records: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            points, weight, _ = records[i % len(records)]
            points *= 0.5
            total += np.sum(points) * weight
        return total

    for n in range(1, 12):
        records = several(arrays)
        other, given = ([(x.copy(), *rest) for x, *rest in records] for _ in range(2))
        value, gradient = value_and_grad(f)(records, n)
        assert value == f(other, n)
        np.testing.assert_equal([x[0] for x in records], [x[0] for x in other])
        with jit(False):
            assert_close(gradient, value_and_grad(f)(given, n)[1])


def test_an_object_that_says_when_it_dies_is_not_copied() -> None:
    died = []

    class Last(Node):
        def __del__(self) -> None:
            died.append(self.value)

    def f(node: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += node.value * i
        return total

    node = Last(0.5)
    for n in range(1, 12):
        _, back = pullback(f, node, n)
        back(3)
        value_and_grad(f)(node, n)
    del back
    assert died == []
