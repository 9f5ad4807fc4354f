"""What is in a list, dict or object may be of several kinds: folded programs against plain Python and flat tapes."""

from __future__ import annotations

import bisect
import heapq
import math
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import jit, value_and_grad
from wengert.tracer.fold.equivalents import sort
from wengert.tracer.fold.run import Known
from wengert.transforms import cache

CALLS = 12


pytestmark = pytest.mark.usefixtures("folding_at_once")


def entry_of(f: Callable[..., Any]) -> Any:
    return next(e for e in [*cache.entries.values()][::-1] if e.name == f.__name__)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(abs(a - b) <= 1e-12 * max(1.0, abs(b)))


def check(
    f: Callable[..., float], draw: Callable[[random.Random], tuple[Any, ...]], argnums: Any = 0
) -> None:
    """Every call gives the value of plain Python to the bit, and the gradient of the flat tape; it is folded."""
    both = value_and_grad(f, argnums=argnums)
    rng = random.Random(1)
    for _ in range(CALLS):
        args = draw(rng)
        value, gradient = both(*args)
        assert repr(value) == repr(f(*args))
        with jit(False):
            _, expected = both(*args)
        assert close(gradient, expected), (args, gradient, expected)
    entry = entry_of(f)
    assert entry.folding.why is None
    assert entry.folding.programs
    assert entry.hits > 0


def two(rng: random.Random) -> tuple[float, int]:
    return rng.uniform(0.5, 2.0), rng.randint(1, 6)


def memo(x: float, n: int) -> float:
    table = [None] * (n + 2)

    def f(x, table, i):  # type: ignore[no-untyped-def]
        if i < 2:
            return x * (i + 1)
        if table[i] is not None:
            return table[i]
        r = math.sin(f(x, table, i - 1)) + x * f(x, table, i - 2)
        table[i] = r
        return r

    return f(x, table, n + 1) * 1.0


def memo_in_loop(x: float, n: int) -> float:
    table = [None] * 4
    total = 0.0
    for i in range(n):
        k = i % 3
        known = table[k]
        if known is None:
            known = math.exp(x / (k + 1))
            table[k] = known
        total = total + known * x
    return total


def heap_of_pairs(x: float, n: int) -> float:
    heap = []
    for i in range(n):
        heapq.heappush(heap, (math.cos(x * (i + 1)), i))
    total = 0.0
    while heap:
        priority, item = heapq.heappop(heap)
        total = total * 0.5 + priority * (item + x)
    return total


def tuples_in_list(x: float, n: int) -> float:
    points = []
    for i in range(n):
        points.append((x * i, x + i, "up" if i % 2 else "down"))
    total = 0.0
    for a, b, way in points:
        total = total + a * b if way == "up" else total - a * b
    return total


class Node:
    def __init__(self, value, left, right):  # type: ignore[no-untyped-def]
        self.value = value
        self.left = left
        self.right = right


def tree(x: float, n: int) -> float:
    def insert(node, value):  # type: ignore[no-untyped-def]
        if node is None:
            return Node(value, None, None)
        if value < node.value:
            node.left = insert(node.left, value)
        else:
            node.right = insert(node.right, value)
        return node

    def total(node, depth):  # type: ignore[no-untyped-def]
        if node is None:
            return 0.0
        here = node.value * depth
        return here + total(node.left, depth + 1) + total(node.right, depth + 1)

    root = None
    for i in range(n):
        root = insert(root, math.sin(x * (i + 1) * 1.7))
    return total(root, 1)


def dict_of_pairs(x: float, n: int) -> float:
    held = {}
    for i in range(n):
        held[i] = (x * i, (x, i))
    total = 0.0
    for i in range(n):
        a, (b, c) = held[i]
        held[i] = (a * b, (b, c + 1))
        total += held[i][0] * held[i][1][1]
    return total


def texts_and_numbers(x: float, n: int) -> float:
    stack = []
    words = [1.5, x, "+"]
    for i in range(n):
        words.append(x * i)
        words.append("*" if i % 3 == 0 else "+")
    for word in words:
        if word == "+":
            b = stack.pop()
            a = stack.pop()
            stack.append(a + b)
        elif word == "*":
            b = stack.pop()
            a = stack.pop()
            stack.append(a * b)
        else:
            stack.append(word)
    return stack.pop()


def sums(x: float, n: int) -> float:
    values = []
    for i in range(n):
        values.append(math.sin(x + i))
    first = sum(values)
    values[0] = x * x
    return first * math.fsum(values)


def ints_and_floats(x: float, n: int) -> float:
    values = []
    for i in range(n):
        if i % 2:
            values.append(i)
        else:
            values.append(x * i + 1.0)
    total = x
    for v in values:
        total = total * 0.5 + v * x
    return total


def popped(x: float, n: int) -> float:
    values = [x, None]
    for i in range(n):
        values.append(x * i if i % 2 else None)
    total = 0.0
    while values:
        v = values.pop()
        if v is None:
            total += 1.0
        else:
            total += v * v
    return total * x


def keys(x: float, n: int) -> float:
    held = {"a": x}
    for i in range(n):
        held[i] = x * (i + 1)
    total = 0.0
    for k in held:
        total = total * 0.9 + held[k]
    return total if n in held else total * 2.0


class Circle:
    def __init__(self, r):  # type: ignore[no-untyped-def]
        self.r = r

    def area(self):  # type: ignore[no-untyped-def]
        return math.pi * self.r * self.r


class Square:
    def __init__(self, a):  # type: ignore[no-untyped-def]
        self.a = a

    def area(self):  # type: ignore[no-untyped-def]
        return self.a * self.a


def shapes(x: float, n: int) -> float:
    found = []
    for i in range(n):
        found.append(Circle(x * i) if i % 2 else Square(x + i))
    total = 0.0
    for shape in found:
        total += shape.area()
    return total


def chained(x: float, n: int) -> float:
    first = None
    for i in range(n):
        first = (x + i, first) if i < 0 else Node(x + i, first, None)
    total = 0.0
    while first is not None:
        total = total * 0.5 + first.value
        first = first.left
    return total


def lists_in_tuples(x: float, n: int) -> float:
    pairs = []
    for i in range(n):
        pairs.append(([x * i], i))
    for items, i in pairs:
        items.append(items[0] * i)
    total = 0.0
    for items, _ in pairs:
        total += items[0] * items[1]
    return total + x


def repeated(x: float, n: int) -> float:
    pairs = [(x, x * x)] * n
    total = 0.0
    for a, b in pairs:
        total += a * b
    return total


def sort_pairs(x: float, n: int) -> float:
    pairs = []
    for i in range(n):
        pairs.append((math.sin(x * (i % 2)), i, x * i))
    pairs.sort()
    t = 0.0
    for a, i, b in pairs:
        t = t * 0.5 + a * b + i
    return t + x


def grid(x: float, n: int) -> float:
    held = {}
    for i in range(n):
        for j in range(2):
            held[i, j] = x * (i + j)
    t = 0.0
    for i in range(n):
        if (i + 1, 1) in held:
            t = t + held[i + 1, 1] * held[i, 0]
    return t + x


def grid_keys(x: float, n: int) -> float:
    held = {}
    for i in range(n):
        held[i, i * 2] = x * i
    t = x
    for k in held:
        t = t * 0.5 + held[k] * k[1]
    return t


def rows_with_none(x: float, n: int) -> float:
    rows = []
    for i in range(n):
        row = []
        for j in range(i):
            row.append(None if j == 1 else x * j)
        rows.append(row)
    t = x
    for row in rows:
        for v in row:
            if v is not None:
                t = t + v * t * 0.1
    return t


def heaps(x: float, n: int) -> float:
    """Two heaps that are pushed to and popped from at several places, as one kind of items and as another."""
    numbers, named = [x, x * 0.5], [(x * 3.0, "last")]
    heapq.heapify(numbers)
    total = 0.0
    for i in range(n):
        heapq.heappush(numbers, x * math.cos(3.0 * i + x))
        heapq.heappush(named, (math.sin(x * (i + 2)), "odd" if i % 2 else "even"))
        if i % 3 == 2:
            first, name = heapq.heappop(named)
            heapq.heappush(numbers, first * x)
            total = total + (first if name == "odd" else first * first)
    while len(numbers) > 1:
        total = total * 0.7 + heapq.heappop(numbers)
    while named:
        key, name = heapq.heappop(named)
        total = total + key * len(name)
        if key > 0.5:
            total = total + heapq.heappushpop(numbers, key * x) * x
    return total


def insorted(x: float, n: int) -> float:
    """`bisect` at several places, of lists of numbers and of pairs."""
    numbers, pairs = [x], [(x, 0)]
    for i in range(n):
        bisect.insort(numbers, x * math.sin(5.0 * i + x))
        bisect.insort_left(pairs, (math.cos(x + i * i), i))
    at = bisect.bisect(numbers, 0.5 * x)
    bisect.insort(numbers, x * x)
    return (
        sum(y * (k - at) for k, y in enumerate(numbers)) + pairs[0][0] * pairs[-1][0] + pairs[0][1]
    )


def two_sums(x: float, n: int) -> float:
    a = [i for i in range(n)]
    b = [x, 1, 2.0]
    for i in range(n):
        b[i % 3] = b[(i + 1) % 3] * x
    return sum(a) * x + sum(b) * sum(b)


def equal(x: float, n: int) -> float:
    last = (0.0, 0)
    t = x
    for i in range(n):
        now = (x * (i // 2), i // 2)
        if now == last:
            t = t * x
        elif now >= last:
            t = t + x * i
        last = now
    return t


def stackobj(x: float, n: int) -> float:
    s = [Circle(x), Square(x * x), None, "t", 2]
    for i in range(n):
        s.append(s[i % 5])
    t = 0.0
    while s:
        v = s.pop()
        if v is None:
            t = t * 0.5
        elif isinstance(v, str):
            t = t + x
        elif isinstance(v, int):
            t = t + v * x
        else:
            t = t + v.area()
    return t


@pytest.mark.parametrize(
    "f",
    [
        memo, memo_in_loop, heap_of_pairs, tuples_in_list, tree, dict_of_pairs, texts_and_numbers, sums,
        ints_and_floats, popped, keys, shapes, chained, lists_in_tuples, repeated, sort_pairs, grid, grid_keys,
        rows_with_none, two_sums, equal, stackobj, heaps, insorted,
    ],
)  # fmt: skip
def test_what_is_taken_out_may_be_one_of_several_things(f: Callable[..., float]) -> None:
    check(f, two)


def changed_keys(x: float, n: int) -> float:
    held = {x: 1.0, x * 2.0: 2.0}
    total = 0.0
    for k in held:
        total = total + k * held[k]
    return total * n


def test_keys_with_derivatives_are_left_to_the_flat_tape() -> None:
    both = value_and_grad(changed_keys)
    rng = random.Random(1)
    for _ in range(CALLS):
        x, n = two(rng)
        value, gradient = both(x, n)
        assert value == changed_keys(x, n)
        assert close(gradient, 5.0 * n)


def letters(a: str, b: str, x: float) -> float:
    row = [0.0]
    for j in range(len(b)):
        row.append(row[j] + x)
    for i in range(len(a)):
        new = [row[0] + x]
        for j in range(len(b)):
            if a[i] == b[j]:
                new.append(row[j] * x)
            elif row[j] < new[j]:
                new.append(row[j] + x * x)
            else:
                new.append(new[j] + math.sin(x))
        row = new
    return row[-1]


def vowels(a: str, b: str, x: float) -> float:
    total = x
    for letter in a:
        if letter in "aeiou" or letter == b:
            total = total * x
        else:
            total = total + x
    return total


def texts(rng: random.Random) -> tuple[str, str, float]:
    a, b = ("".join(rng.choices("aeb", k=rng.randint(1, 5))) for _ in "ab")
    return a, b, rng.uniform(0.5, 2.0)


@pytest.mark.parametrize("f", [letters, vowels])
def test_texts_are_arguments(f: Callable[..., float]) -> None:
    check(f, texts, argnums=2)


def powers(n: int, x: float) -> float:
    total = 0.0
    for j in range(n):
        total = total + x ** (n - j) * (n - j) / (j + 1)
    return total + n * x


def conversions(n: int, x: float) -> float:
    m = n * 2 + 1
    half = m // 2
    rest = m % 3
    return float(m) * x + half * x + rest + int(x * 3.0) * x - n / (1 + abs(-n))


def counted(n: int, x: float) -> float:
    held = [n, n * n, x]
    count = n
    total = 0.0
    while count > 0:
        total = total + count * held[0] * x
        count = count - 1
        held[0] = held[0] + count
    return total + sum(held) + len(held) * n


def number_first(rng: random.Random) -> tuple[int, float]:
    return two(rng)[::-1]  # type: ignore[return-value]


@pytest.mark.parametrize("f", [powers, conversions, counted])
def test_gradients_by_ints_are_those_of_the_flat_tape(f: Callable[..., float]) -> None:
    check(f, number_first, argnums=(0, 1))
    check(f, number_first, argnums=1)


@pytest.mark.parametrize(
    "f", [heap_of_pairs, heaps, insorted, sort_pairs, texts_and_numbers, tree, dict_of_pairs]
)
def test_gradients_are_those_of_differences(f: Callable[..., float]) -> None:
    both = value_and_grad(f)
    rng = random.Random(2)
    for _ in range(CALLS):
        x, n = two(rng)
        value, gradient = both(x, n)
        h = 1e-6
        slope = (f(x + h, n) - f(x - h, n)) / (2.0 * h)
        assert value == f(x, n)
        assert abs(gradient - slope) < 1e-6 * max(1.0, abs(slope))
    assert entry_of(f).folding.programs


def test_a_dict_that_a_deep_recursion_shares_is_known_in_every_call_of_it() -> None:
    def memo_of_cells(x: float, n: int) -> float:
        known: dict[int, float] = {}

        def f(k):  # type: ignore[no-untyped-def]
            if k < 2:
                return x + k
            if k not in known:
                known[k] = math.sin(f(k - 1)) + 0.5 * f(k - 2) * x
            return known[k]

        return f(n) * 1.0

    check(memo_of_cells, lambda rng: (rng.uniform(0.5, 1.5), rng.randint(2, 40)))


def spread(items, n):  # type: ignore[no-untyped-def]
    pairs = []
    for i, w in enumerate(items):
        pairs.append((w * 1.5, i % n, w))
    totals: dict[int, float] = {}
    for w, i, _ in pairs:
        totals[i] = w * w if i not in totals else totals[i] * w
    return sum(totals.values()) * 1.0


def by_item(items, n):  # type: ignore[no-untyped-def]
    totals: dict[int, float] = {}
    for k in items:
        totals[k] = k * 0.5 if k not in totals else totals[k] * k
    return sum([k * totals[k] for k in totals]) * 1.0


def test_keys_that_lie_beside_floats_have_no_derivative() -> None:
    def draw(rng: random.Random) -> tuple[Any, ...]:
        return [rng.uniform(0.5, 2.0) for _ in range(rng.randint(3, 9))], rng.randint(1, 4)

    check(spread, draw)


def test_keys_that_have_a_derivative_are_told_from_others() -> None:
    both, rng = value_and_grad(by_item), random.Random(3)
    for _ in range(CALLS):
        items = [rng.randint(1, 5) for _ in range(rng.randint(3, 9))]
        value, gradient = both(items, 1)
        assert repr(value) == repr(by_item(items, 1))
        with jit(False):
            assert close(gradient, both(items, 1)[1])


@pytest.mark.parametrize("held", [np.exp, math.sin, abs, iter([1.0]), types.SimpleNamespace(), {}])
def test_a_list_that_holds_something_without_a_gradient(held):
    """The program may leave at its very end, when NumPy's error state is as it was."""

    def f(items, n):
        total = 0.0
        for i in range(n):
            total = total + np.exp(items[1]) * i
        return total * items[1]

    for x, n in [(1.5, 3), (0.5, 2), (1.5, 4), (2.5, 3), (0.25, 1)]:
        before = np.geterr()
        value, (_, slope) = value_and_grad(f)([held, x], n)
        assert value == f([held, x], n)
        assert np.geterr() == before
        h = 1e-6
        assert abs(slope - (f([held, x + h], n) - f([held, x - h], n)) / (2 * h)) < 1e-4


def pushed(x: float) -> float:
    heap = [x, 2.0]
    heapq.heappush(heap, x * x)
    return heapq.heappop(heap) + heap[0]


def pushed_twice(x: float) -> float:
    heap = [x, 2.0]
    heapq.heappush(heap, x * x)
    heapq.heappush(heap, x * x)
    return heapq.heappop(heap) + heap[0]


def test_a_heap_is_pushed_to_by_one_function_wherever_that_is_called() -> None:
    sizes = []
    for f in (pushed, pushed_twice):
        known = Known()
        for x in (0.5, 1.5, 2.5):
            known.run(f, ["x"], (x,))
        sizes.append(known.folded.size)
        assert {"_siftdown", "heappush"} <= {
            x.code.co_name for x in known.folded.functions.values()
        }
    assert sizes[1] < 1.2 * sizes[0]


def test_a_sort_compares_no_more_than_it_must() -> None:
    class Counted(float):
        count = 0

        def __lt__(self, other: float) -> bool:
            Counted.count += 1
            return float(self) < other

    rng = random.Random(3)
    for n in (0, 1, 2, 3, 64, 300):
        items = [Counted(rng.random()) for _ in range(n)]
        expected = sorted(items)
        Counted.count = 0
        sort(items, None, False)
        assert items == expected
        assert Counted.count <= n * math.log2(max(n, 1)) + 1


@pytest.mark.parametrize("backwards", [False, True])
def test_a_sort_leaves_what_is_equal_in_its_order(backwards: bool) -> None:
    rng = random.Random(4)
    for n in range(20):
        items = [(rng.randrange(4), i) for i in range(n)]
        expected = sorted(items, key=lambda pair: pair[0], reverse=backwards)
        sort(items, [pair[0] for pair in items], backwards)
        assert items == expected
