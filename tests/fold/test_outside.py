"""What folded functions read from outside: lists, dicts and objects, of globals, cells, defaults and arguments."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fold.comparing import followed
from helpers import assert_same
from wengert import explain, grad, jit, value_and_grad
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")

CALLS = 20
TABLE: dict[Any, Any] = {
    "a": 0.5,
    "b": 1.5,
    3: 2.0,
    "deep": {"k": 0.7, "rows": [[0.5, 1.0], [2.0]]},
}
WEIGHTS = [0.2, 0.4, 0.6]
ODD = {1, 3, 5}
RATE, STEPS = 0.5, 3
NOTHING = object()


class Node:
    def __init__(self, value: float, left: Any = None, right: Any = None) -> None:
        self.value, self.left, self.right = value, left, right


@dataclass
class Config:
    rate: float = 0.5
    names: list[str] = field(default_factory=lambda: ["a", "b"])
    bias: Any = None

    def scaled(self, x: float) -> float:
        return x * self.rate if self.bias is None else x + self.bias


class Layer:
    __slots__ = ("weights",)

    def __init__(self, *weights: float) -> None:
        self.weights = weights

    def __call__(self, x: float) -> float:
        return sum([w * x for w in self.weights])


config = Config()
tree = Node(1.0, Node(2.0), Node(0.5, Node(0.2)))
layers = [Layer(0.5, 0.7), Layer(1.2)]


def table(x: float, n: int) -> float:
    total = x
    for i in range(n):
        if i in TABLE:
            total += TABLE[i] * x
        elif total < 2.0:
            total = total * TABLE["a" if i % 2 else "b"]
        for row in TABLE["deep"]["rows"]:
            total += sum(row) * x * 0.1
    return total * TABLE["deep"]["k"]


def items(x: float, n: int) -> float:
    total = x
    for key, value in TABLE["deep"].items():
        if key == "k" and n > 3:
            total = total * value
        else:
            total = total + len(key) * 0.1
    return total


def weights(x: float, n: int) -> float:
    total = 0.0
    for i, w in enumerate(WEIGHTS):
        total += w * x if x > 1.0 or i in ODD else w * n * x * x
    return total + WEIGHTS[n % 3] * x


def configured(x: float, n: int) -> float:
    for _ in range(n):
        x = config.scaled(x) if x > 0.3 else x + config.rate
    return x * len(config.names)


def called(x: float, n: int) -> float:
    for i in range(n):
        x = layers[i % 2](x) if x < 2.0 else x - 0.5
    return x


def summed(x: float, n: int) -> float:
    def go(node: Any, depth: int) -> float:
        if node is None:
            return 0.0
        return node.value * x * RATE + go(node.left, depth + 1) * n + go(node.right, depth + 1)

    return go(tree, 0)


def deepest(x: float, n: int) -> float:
    best, todo = tree, [tree]
    while todo:
        node = todo.pop()
        if node.value * x < best.value:
            best = node
        todo += [kid for kid in [node.left, node.right] if kid is not None]
    return best.value * x + (1.0 if best is tree else x) * n


def cells() -> Callable[..., float]:
    rows, names, c = [[1.0, 2.0], [0.5]], {"x": 0.3}, Config(0.8)

    def f(x: float, n: int, more: list[float] = [0.5, 0.25]) -> float:  # noqa: B006
        for row in rows:
            for w in row:
                x = x * w + names["x"] if x < 1.0 else x - more[n % 2] * c.rate
        return x

    return f


def without(x: float, n: int, given: Any = NOTHING) -> float:
    if given is NOTHING:
        given = 2.0
    for _ in range(n):
        x = x * given if x < 3.0 else x - 1.0
    return x


@pytest.mark.parametrize(
    "f",
    [table, items, weights, configured, called, summed, deepest, cells(), without],
    ids=lambda f: f.__name__,
)
def test_what_is_read_from_outside_is_folded(f: Callable[..., float]) -> None:
    followed(f)


def check(
    f: Callable[..., float], draw: Callable[[random.Random], tuple[Any, ...]], argnums: Any = 0
) -> cache.Entry:
    """Calls with ever other arguments, in an outside that ``draw`` may change."""
    both, rng = value_and_grad(f, argnums=argnums), random.Random(1)
    for _ in range(CALLS):
        args = draw(rng)
        value, gradient = both(*args)
        assert_same(value, f(*args))
        with jit(False):
            expected = both(*args)[1]
        assert np.allclose(np.array(gradient, float), np.array(expected, float), rtol=1e-12)
    (entry,) = cache.entries.values()
    return entry


def folded(entry: cache.Entry, hits: int = 8) -> None:
    assert entry.folding.why is None
    assert entry.folding.programs
    assert entry.hits >= hits, entry.hits


def grown(rng: random.Random, depth: int = 0) -> Any:
    if depth > 4 or rng.random() < 0.3:
        return None
    return Node(rng.uniform(0.1, 2.0), grown(rng, depth + 1), grown(rng, depth + 1))


def over(x: float, node: Any) -> float:
    if node is None:
        return 0.1 * x
    return node.value * x + over(x, node.left) * over(x * 0.5, node.right)


def test_trees_as_arguments() -> None:
    folded(check(over, lambda rng: (rng.uniform(0.2, 1.5), grown(rng))), hits=4)


def test_dicts_with_any_keys_as_arguments() -> None:
    def f(x: float, prices: dict[int, float], n: int) -> float:
        for i in range(n):
            x = x * prices[i] if i in prices else x + 0.1
        for i, p in prices.items():
            x = x + p * i
        return x

    def draw(rng: random.Random) -> tuple[Any, ...]:
        return rng.uniform(0.2, 1.5), {rng.randint(0, 6): rng.random() for _ in range(4)}, 5

    folded(check(f, draw))


def test_objects_and_lists_of_them_as_arguments() -> None:
    def f(x: float, given: Config, nodes: list[Any]) -> float:
        for node in nodes:
            x = given.scaled(x) + node.value if x < node.value else x - node["step"]["by"]
        return x

    class Step(Node):
        def __getitem__(self, key: str) -> dict[str, float]:
            return {"by": self.value * 0.1}

    def draw(rng: random.Random) -> tuple[Any, ...]:
        nodes = [Step(rng.uniform(0.1, 2.0)) for _ in range(rng.randint(1, 6))]
        bias = None if rng.random() < 0.5 else rng.random()
        return rng.uniform(0.2, 1.5), Config(rng.random(), bias=bias), nodes

    folded(check(f, draw), hits=6)


def test_numbers_outside_may_be_others_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: float, n: int) -> float:
        for i in range(STEPS):
            x = x * RATE + WEIGHTS[i % len(WEIGHTS)] if x < n else x - config.rate
        return x + TABLE["deep"]["k"]

    def draw(rng: random.Random) -> tuple[Any, ...]:
        scope = globals()
        scope["RATE"], scope["STEPS"] = rng.random(), rng.randint(2, 5)
        scope["WEIGHTS"] = [rng.random() for _ in range(rng.randint(1, 4))]
        scope["config"] = Config(rng.choice([rng.random(), 2]))
        scope["TABLE"] = {"deep": {"k": rng.random()}}
        return rng.uniform(0.2, 1.5), rng.randint(1, 3)

    with monkeypatch.context() as patch:
        for name in ("RATE", "STEPS", "WEIGHTS", "config", "TABLE"):
            patch.setitem(globals(), name, globals()[name])
        folded(check(f, draw))


def test_an_argument_that_is_also_outside_is_no_argument_there() -> None:
    """As in a traced run: what is read from outside is a constant."""
    own = [0.5, 2.0, 1.5]

    def f(xs: list[float], n: int) -> float:
        total = 0.0
        for i in range(n):
            total += xs[i % 3] * own[0] if xs[0] > 0.4 else own[i % 3] * xs[1]
        return total

    def draw(rng: random.Random) -> tuple[Any, ...]:
        own[0] = rng.random()
        return rng.choice([own, [rng.random() for _ in range(3)]]), rng.randint(1, 5)

    check(f, draw)


def test_what_may_be_from_outside_is_not_written_to() -> None:
    """No run that was seen does so, but the ways that they have gone can be put together to one that does."""

    def f(x: float, xs: list[float], n: int) -> float:
        held = xs
        for i in range(n):
            if x > 1.0:
                held = [0.5]
            if x > 0.5:
                held.append(x)
            if i > 3:
                x = x * x
        return sum(held) * x

    both = value_and_grad(f)
    for x, n in [(0.3, 2), (1.5, 2), (0.2, 1), (1.7, 3), (0.4, 2), (1.2, 1), (0.7, 2), (0.8, 6)]:
        xs, ys = [1.0], [1.0]
        assert both(x, xs, n)[0] == f(x, ys, n)
        assert xs == ys


def test_objects_outside_are_not_written_to() -> None:
    def f(x: float, n: int, counted: Any) -> float:
        for _ in range(n):
            counted.value += 1.0
            x = x * 0.5 if x > counted.value else x + 1.0
        return x

    both = value_and_grad(f)
    for x, n in [(0.3, 2), (1.5, 2), (5.2, 1), (1.7, 3), (9.4, 2), (1.2, 5), (0.7, 2)]:
        a, b = Node(1.0), Node(1.0)
        assert both(x, n, a)[0] == f(x, n, b)
        assert a.value == b.value


def test_own_objects_and_those_from_outside_are_one_class() -> None:
    def f(x: float, n: int) -> float:
        at = tree
        for i in range(n):
            if x > 1.0:
                at = Node(x * i, tree)
            x = x * 0.5 + at.value if at.left is not None and x < 3.0 else x - 0.3
            at = at if at.left is None else at.left
        return x + at.value

    followed(f)


def test_cells_of_functions_outside_keep_what_they_hold() -> None:
    """Also where a run is refused in the middle of a recursion."""

    def outer(k: float) -> tuple[Any, Any]:
        def g(x: float) -> float:
            return x * k

        def f(x: float, n: int) -> float:
            if n <= 0:
                return x
            if n == 2:
                print(end="")
            return f(g(x), n - 1)

        return f, g

    f, g = outer(3.0)
    for i in range(6):
        value, _ = value_and_grad(f)(1.5 + i, 3 + i % 2)
        assert value == f(1.5 + i, 3 + i % 2)
        assert g.__closure__[0].cell_contents == 3.0


def test_arguments_die_with_their_call() -> None:
    both, kept = value_and_grad(over), []
    for i in range(6):
        node = Node(0.5, Node(0.1 * i) if i % 2 else None)
        kept.append(weakref.ref(node))
        both(0.5, node)
        del node
    gc.collect()
    assert not any(ref() for ref in kept)


class Model:
    def __init__(self, rng: random.Random) -> None:
        self.weights, self.rate = [rng.random() for _ in range(rng.randint(1, 4))], rng.random()

    def loss(self, x: float, n: int) -> float:
        for i in range(n):
            x = x * self.rate if x > 1.0 else x + self.weights[i % len(self.weights)]
        return x * x


def test_methods_of_ever_other_objects() -> None:
    rng = random.Random(4)
    for _ in range(CALLS):
        model = Model(rng)
        for _ in range(2):
            x, n = rng.uniform(0.1, 1.5), rng.randint(1, 6)
            value, slope = value_and_grad(model.loss)(x, n)
            assert_same(value, model.loss(x, n))
            with jit(False):
                assert slope == pytest.approx(value_and_grad(model.loss)(x, n)[1], rel=1e-12)
            model.rate = rng.choice([rng.random(), 1])
    (entry,) = cache.entries.values()
    folded(entry, hits=2 * CALLS - 12)


def test_an_object_that_c_code_has_laid_out_is_refused():
    class Own(random.Random):
        """With methods of its own, perhaps."""

    def f(x, rng):
        k = rng.random()
        return x * k if k > 0.5 else x * x * k

    ours, plain = Own(3), Own(3)
    g = value_and_grad(f)
    for _ in range(12):
        got = g(2.0, ours)
        with jit(False):
            assert got == value_and_grad(f)(2.0, plain)
        assert ours.getstate() == plain.getstate()
    told = str(explain(g))
    assert "error of Wengert's own" not in told
    assert "comes from outside" in told or "another decision at" in told  # if not tried


def test_no_array_of_a_call_lives_on_in_the_region():
    def f(v):
        w = v * v
        return w.sum() if v[0] > 0 else (w * v).sum()

    g = grad(f)
    held = []
    for sign in (1.0, -1.0, 1.0, -1.0):
        v = np.full(100, sign)
        held.append(weakref.ref(v))
        g(v)
    assert "for all ways" in str(explain(g))
    del v
    gc.collect()
    assert not any(ref() is not None for ref in held)
