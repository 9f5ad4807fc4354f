"""Arguments and results of any structure; gradients of callables; the meaning of ints, zeros and None."""

import collections
import dataclasses
import functools
import math
import types
import typing
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import wengert
from helpers import Cases, assert_close, assert_plain, assert_same, check
from wengert import checkpoint, grad, jit, pullback
from wengert.tracer.tape import Input, Tape, ops_in

case = Cases()

V = np.array([0.5, -1.2, 2.0])


@case.each
def test_like_python(f, args, options):
    check(f, *args, **options)


# --------------------------------------------------------------------------------- nested containers


@case({"w": [V, 2.0], "b": {"c": (0.5, V * 2)}}, (1.5, [V]))
def nested_arguments(params, data):
    w, scale = params["w"]
    c, d = params["b"]["c"]
    return w @ data[1][0] * scale + c * data[0] + d.sum()


@case(1.5, V)
def nested_results(x, v):
    return {"a": [x * 2, (v * x, {"b": v})], "n": None, "s": "text", "i": 3, "t": True, "x": x}


@case((), [], {}, 1.5)
def empty_containers(a, b, c, x):
    return a, b, c, [[], {}, ()], x


@case([1.5, "text", None, True, 3, np.arange(3), V, 2.0 + 1j])
def mixed_leaves(items):
    x, _, _, flag, n, ints, v, z = items
    return x * n + (ints * v).sum() + z.real * flag


@case({1: 1.5, (2, "a"): 2.5, None: V})
def any_keys(table):
    return table[1] * table[2, "a"] + table[None]


@case(V, {"unused": V, "used": 1.5}, [2.0, 3.0])
def unused_arguments(v, table, pair):
    return table["used"] * pair[1]


@case(np.zeros((0, 3)), np.zeros(0), 1.5)
def empty_arrays(a, b, x):
    return a * x, b.sum() * x, x * 2


@case({"a": 1.0, "b": V}, key=[1.5, {"deep": V}])
def keyword_structure(table, *, key, unused=3.0):
    return table["a"] * key[0] + table["b"] @ key[1]["deep"]


@case([[1.0, 2.0], [3.0, 4.0]], [0.5, -0.5])
def lists_of_lists(m, v):
    return [sum(a * b for a, b in zip(row, v, strict=True)) for row in m]


@case([V, V * 2, V * 3])
def lists_of_arrays(layers):
    h = layers[0]
    for layer in layers[1:]:
        h = np.tanh(h * layer)
    return h


# ------------------------------------------------------------------------------- named tuples, dataclasses


Pair = namedtuple("Pair", "first second")


class State(typing.NamedTuple):
    position: np.ndarray
    speed: float
    name: str = "ball"


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: float
    name: str = "layer"
    size: int = 3

    def __call__(self, x):
        return np.tanh(self.w * x + self.b) * self.size


@dataclasses.dataclass(frozen=True)
class Net:
    layers: list
    last: Layer
    scale: float = 1.0

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x) * self.scale


@dataclasses.dataclass(slots=True)
class Slotted:
    a: float
    b: np.ndarray


@dataclasses.dataclass(kw_only=True)
class Derived(Layer):
    extra: float = dataclasses.field(default=0.5, repr=False)
    half: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.half = self.extra / 2


@case(Pair(1.5, [V, State(V, 2.0)]))
def named_tuple_arguments(pair):
    state = pair.second[1]
    return pair.first * pair.second[0] @ state.position * state[1], len(state.name)


@case(V, 1.5)
def named_tuple_results(v, x):
    return Pair(x * 2, State(position=v * x, speed=x)), State(v, x)._replace(name="moved")


@case(Net([Layer(V, 0.1), Layer(V * 2, -0.2)], Layer(V, 0.3, "last"), 1.5), V)
def dataclass_arguments(net, x):
    return net(x)


@case(V, 1.5)
def dataclass_results(v, x):
    return Net([Layer(v * x, x, size=2)], Layer(v, x * x), scale=x)


@case(Slotted(1.5, V), Derived(w=V, b=0.5, extra=2.0))
def special_dataclasses(s, d):
    return s.a * s.b * d(1.0) * d.half + d.extra


@case(Layer(V, 0.1))
def dataclass_changed(layer):
    layer.w[0] = layer.b * 2
    layer.b *= layer.w[2]
    return layer.w * layer.b


# -------------------------------------------------------------------------------------- other objects


class Ball:
    colour = "red"

    def __init__(self, position, speed):
        self.position = position
        self.speed = speed
        self.bounces = 0
        self.history = [speed]
        self.hook = math.sin

    @property
    def energy(self):
        return self.speed**2 / 2 + self.position @ self.position

    def move(self, dt):
        self.position = self.position + self.speed * dt
        self.speed *= 0.9
        self.bounces += 1
        self.history.append(self.speed)


class Pocket:
    __slots__ = ("coins", "name", "notes")

    def __init__(self, coins, notes):
        self.coins = coins
        self.notes = notes
        self.name = "mine"


class Tree:
    def __init__(self, value, *branches):
        self.value = value
        self.branches = branches

    def total(self):
        return self.value * (1 + sum(branch.total() for branch in self.branches))


@case(Ball(V, 1.5), 0.1)
def object_arguments(ball, dt):
    for _ in range(3):
        ball.move(dt)
    return ball.energy * len(ball.history) + ball.hook(ball.history[0])


@case(Pocket(0.5, V))
def slotted_arguments(pocket):
    return pocket.coins * pocket.notes


@case(Tree(1.5, Tree(2.0, Tree(0.5)), Tree(-1.0)))
def trees(tree):
    return tree.total()


@case(V, 1.5)
def object_results(v, x):
    ball = Ball(v * 2, x)
    ball.move(0.5)
    return ball


def test_gradient_of_an_object_is_a_dict_of_its_attributes():
    ball = Ball(V.copy(), 1.5)
    (gradient,) = grad_of(lambda ball: ball.energy, ball)
    assert isinstance(gradient, dict)
    assert_close(gradient["position"], 2 * V)
    assert_close(gradient["speed"], 1.5)
    assert "hook" not in gradient or gradient["hook"] is None
    assert "colour" not in gradient


def test_gradient_of_a_tree_nests():
    tree = Tree(1.5, Tree(2.0), Tree(-1.0))
    (gradient,) = grad_of(lambda tree: tree.total(), tree)
    assert_close(gradient["value"], 2.0)
    assert [branch["value"] for branch in gradient["branches"]] == [1.5, 1.5]


def grad_of(f, *args, **kwargs):
    value, back = pullback(f, *args, **kwargs)
    return back(1.0)


class Node:
    """Objects that know each other."""

    def __init__(self, x):
        self.x = x
        self.other = None


def test_cyclic_objects():
    a, b = Node(1.5), Node(2.5)
    a.other, b.other = b, a
    value, back = pullback(lambda node: node.x * node.other.x * node.other.other.x, a)
    assert value == 1.5 * 2.5 * 1.5
    (gradient,) = back(1.0)
    assert_close(gradient["x"], 2 * 1.5 * 2.5)
    assert_close(gradient["other"]["x"], 1.5**2)


def test_function_that_builds_a_cycle():
    def f(x):
        a = Node(x)
        a.other = a
        return a.other.other.x * x

    check(f, 1.5)


@case([1.5, 2.5], OrderedDict(a=1.0, b=2.0))
def subclasses_of_containers(items, ordered):
    counted = defaultdict(float, ordered)
    counted["c"] += items[0]
    ordered.move_to_end("a")
    return sum(counted.values()) * items[1] + next(iter(ordered.values()))


def test_ordered_and_default_dicts_as_arguments():
    table = defaultdict(list, a=[1.5], b=[2.5])
    (gradient,) = grad_of(lambda t: t["a"][0] * t["b"][0] + sum(t["c"]), table)
    assert isinstance(gradient, dict)
    assert gradient["a"] == [2.5]
    assert gradient["b"] == [1.5]


def test_deque_argument():
    value, back = pullback(lambda q: q[0] * q[1], collections.deque([1.5, 2.5]))
    assert value == 1.5 * 2.5
    assert list(back(1.0)[0]) == [2.5, 1.5]


def test_tied_weights_are_told_apart():
    shared = V.copy()
    (gradient,) = grad_of(lambda p: (p["in"] * 2) @ p["out"], {"in": shared, "out": shared})
    assert_close(gradient, {"in": 2 * V, "out": 2 * V})
    (gradient,) = grad_of(
        lambda p: (p["in"] * 3).sum() + p["out"][0], {"in": shared, "out": shared}
    )
    assert_close(gradient, {"in": np.full(3, 3.0), "out": np.array([1.0, 0.0, 0.0])})


def test_same_argument_twice():
    x = 1.5
    assert_close(grad_of(lambda a, b: a * a * b, x, x), (2 * 1.5 * 1.5, 2.25))
    v = V.copy()
    assert_close(grad_of(lambda a, b: (a * a * b).sum(), v, v), (2 * V * V, V * V))
    pair = [1.5, v]
    assert_close(
        grad_of(lambda a, b: a[0] * b[1].sum(), pair, pair),
        ([float(V.sum()), np.zeros(3)], [0.0, np.full(3, 1.5)]),
    )


def test_same_result_twice():
    value, back = pullback(lambda x: (x, [x, x * x], {"a": x}), 1.5)
    assert_close(back((1.0, [10.0, 100.0], {"a": 1000.0})), (1011.0 + 300.0,))


def test_argument_returned_unchanged():
    v = V.copy()
    params = {"a": [v, 2.0]}
    value, back = pullback(lambda p: p, params)
    assert value is params
    assert value["a"][0] is v
    assert_plain(value)
    assert_close(back({"a": [np.ones(3), 5.0]}), ({"a": [np.ones(3), 5.0]},))


def test_zero_for_what_does_not_matter():
    gradients = grad_of(
        lambda a, b, c, d, e, f, g, h: a * 1.0,
        1.5,
        2.5,
        V,
        [V, {"x": 1.0}],
        3,
        1j,
        np.float32(2.0),
        V.astype(np.float32),
    )
    zeros = np.zeros(3)
    assert_same(
        gradients,
        (1.0, 0.0, zeros, [zeros, {"x": 0.0}], 0.0, 0j, np.float32(0), zeros.astype(np.float32)),
    )


def test_none_for_what_has_no_gradient():
    gradients = grad_of(
        lambda x, *rest: x * 1.0,
        1.5,
        True,
        "text",
        None,
        np.arange(3),
        np.array([True]),
        np.int64(3),
        b"bytes",
        range(3),
        {1, 2},
    )
    assert_same(gradients, (1.0,) + (None,) * 9)


def test_result_that_does_not_depend_on_anything():
    value, back = pullback(lambda x, v: 3.0, 1.5, V)
    assert value == 3.0
    assert_same(back(1.0), (0.0, np.zeros(3)))
    value, back = pullback(lambda x: None, 1.5)
    assert value is None
    assert_same(back(None), (0.0,))
    value, back = pullback(lambda x: "text", 1.5)
    assert_same((value, back(None)), ("text", (0.0,)))


def test_no_arguments():
    value, back = pullback(lambda: 3.0)
    assert_same((value, back(1.0)), (3.0, ()))


def test_integers_are_numbers():
    assert_close(grad_of(lambda n, x: n * x, 3, 1.5), (1.5, 3.0))
    assert_close(grad_of(lambda n: [n, 2][0] ** 2 / 4, 3), (1.5,))
    assert_close(grad_of(lambda x, n: x**n, 2.0, 3), (12.0, 8.0 * math.log(2.0)))


def test_single_precision_stays():
    v = V.astype(np.float32)
    gradients = grad_of(lambda v, x: (v * 2.0 * x).sum(), v, np.float32(3.0))
    assert_same(gradients[0], np.full(3, 6.0, dtype=np.float32))
    assert gradients[1].dtype == np.float32
    gradients = grad_of(lambda v, w: (v * w).sum(), v, V)
    assert (gradients[0].dtype, gradients[1].dtype) == (np.float32, np.float64)


# ------------------------------------------------------------------------------- gradients of callables


class Polynomial:
    def __init__(self, weights, shift):
        self.weights = weights
        self.shift = shift
        self.name = "p"

    def __call__(self, x):
        return sum(w * (x - self.shift) ** i for i, w in enumerate(self.weights))

    def at(self, x, scale=1.0):
        return self(x) * scale


def test_callable_object_with_wrt_self():
    p = Polynomial([1.0, 2.0, 3.0], 0.5)
    value, back = pullback(p, 2.0, wrt_self=True)
    assert value == 1.0 + 2.0 * 1.5 + 3.0 * 1.5**2
    slope = 2.0 + 6.0 * 1.5
    itself, dx = back(1.0)
    assert_close(itself["weights"], [1.0, 1.5, 2.25])
    assert_close(itself["shift"], -slope)
    assert_close(dx, slope)
    assert_close(pullback(p, 2.0)[1](1.0), (slope,))


def test_bound_method_with_wrt_self():
    p = Polynomial([1.0, 2.0, 3.0], 0.5)
    value, back = pullback(p.at, 2.0, wrt_self=True, scale=2.0)
    itself, dx, kwargs = back(1.0)
    assert_close(itself["weights"], [2.0, 3.0, 4.5])
    assert_close(dx, 22.0)
    assert_close(kwargs, {"scale": value / 2})


def test_dataclass_with_wrt_self():
    layer = Layer(V.copy(), 0.5)
    value, back = pullback(layer, 2.0, wrt_self=True)
    itself, dx = back(np.ones(3))
    slope = (1 - np.tanh(V * 2 + 0.5) ** 2) * 3
    assert type(itself) is Layer
    assert_close(itself.w, 2 * slope)
    assert_close(itself.b, float(slope.sum()))
    assert itself.name is None


def test_closure_with_wrt_self():
    w, table = V.copy(), {"b": 0.5}
    unrelated = "text"

    def f(x):
        return (w * x).sum() * table["b"] + len(unrelated)

    value, back = pullback(f, 2.0, wrt_self=True)
    itself, dx = back(1.0)
    assert_close(itself["w"], np.ones(3))
    assert_close(itself["table"], {"b": float(2 * V.sum())})
    assert_close(dx, float(V.sum() * 0.5))


def test_partial_of_closure():
    w = 3.0

    def f(a, b, c):
        return a * b * c * w

    g = functools.partial(f, 2.0, c=5.0)
    assert_close(pullback(g, 7.0)[1](1.0), (30.0,))


@pytest.mark.parametrize(
    "around", [jit, grad, functools.lru_cache, checkpoint, lambda f: jit(functools.lru_cache(f))]
)
def test_what_stands_around_a_closure_is_seen_through_by_wrt_self(around):
    k = 3.0

    def f(x):
        return k * x * x

    value, back = pullback(around(f), 2.0, wrt_self=True)
    itself, dx = back(1.0)
    itself = itself.get("f", itself)  # what `checkpoint` returns is a function with a variable f
    assert itself == {"k": 4.0}  # d(k x²)/dk and d(2kx)/dk at 2
    assert dx == (6.0 if around is grad else 12.0)


def test_plain_function_with_wrt_self():
    value, back = pullback(math.sin, 0.5, wrt_self=True)
    itself, dx = back(1.0)
    assert not itself
    assert_close(dx, math.cos(0.5))


def test_object_and_argument_may_share_an_array():
    p = Polynomial(V.copy(), 0.5)
    value, back = pullback(lambda w: sum(w * p.weights), p.weights, wrt_self=True)
    itself, dw = back(1.0)
    assert_close(dw, V)
    assert_close(itself["p"]["weights"], V)


# ----------------------------------------------------------------------------------- everything that calls


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (math.sin, (0.5,), (math.cos(0.5),)),
        (np.sin, (0.5,), (math.cos(0.5),)),
        (np.multiply, (2.0, 3.0), (3.0, 2.0)),
        (pow, (2.0, 3.0), (12.0, 8 * math.log(2))),
        (functools.partial(pow, 2.0), (3.0,), (8 * math.log(2),)),
        (functools.lru_cache(lambda x: x * x), (2.0,), (4.0,)),
        (Polynomial([1.0, 2.0], 0.5), (2.0,), (2.0,)),
        (Polynomial([1.0, 2.0], 0.5).at, (2.0, 3.0), (6.0, 4.0)),
        (max, (2.0, 3.0), (0.0, 1.0)),
        (sum, ([2.0, 3.0],), ([1.0, 1.0],)),
        (float, (2,), (1.0,)),
        (str.upper, ("a",), (None,)),
    ],
    ids=lambda f: getattr(f, "__name__", "x"),
)
def test_anything_that_can_be_called(f, args, expected):
    value, back = pullback(f, *args)
    assert_same(value, f(*args))
    gradients = back(None if isinstance(value, str) else 1.0)
    for mine, theirs in zip(gradients, expected, strict=True):
        assert mine == pytest.approx(theirs)


def test_class_as_function():
    value, back = pullback(Pair, 1.5, V)
    assert value.second is V or np.array_equal(value.second, V)
    assert_close(back(Pair(2.0, np.ones(3))), (2.0, np.ones(3)))
    value, back = pullback(Layer, V, 0.5)
    assert type(value) is Layer
    assert_close(back(Layer(np.ones(3), 3.0, None, None)), (np.ones(3), 3.0))


@dataclasses.dataclass
class Methods:
    a: float

    @staticmethod
    def twice(x):
        return 2 * x

    @classmethod
    def made(cls, x):
        return cls(x).a * x


def test_static_and_class_methods():
    assert grad(Methods.twice)(1.5) == 2.0
    assert grad(Methods.made)(1.5) == 3.0
    assert grad(Methods(1.0).twice)(1.5) == 2.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_leaves_keep_their_dtype(dtype):
    v = np.array([1.0, 2.0], dtype=dtype)
    (gradient,) = pullback(lambda v: v * v, v)[1](np.ones(2, dtype=dtype))
    assert gradient.dtype == dtype
    x = dtype(3.0)
    (gradient,) = pullback(lambda x: x * x, x)[1](dtype(1.0))
    assert np.asarray(gradient).dtype == dtype
    assert gradient == 6.0


@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed", "readonly"])
def test_memory_layouts(order):
    m = np.arange(12.0).reshape(3, 4)
    if order == "F":
        m = np.asfortranarray(m)
    elif order == "strided":
        m = np.arange(48.0).reshape(6, 8)[::2, ::2]
    elif order == "reversed":
        m = m[::-1, ::-1]
    elif order == "readonly":
        m.flags.writeable = False

    def f(m):
        a = m.copy()
        a[1:] *= m[:-1]
        return a.ravel() @ m.reshape(-1)

    check(f, m)


class OfOne:
    def __init__(self, v):
        self.v = v


def of_user_dict(x):
    return collections.UserDict(a=x * x)


def of_one(x):
    return OfOne(x * x)


def of_class_attribute(x):
    class K:
        v = x * x

    return K()


def of_method(x):
    class K:
        def m(self):
            return x * x

    return K()


def of_property(x):
    class K:
        @property
        def p(self):
            return x * x

    return K()


def of_base(x):
    class P:
        v = x * x

    class K(P):
        pass

    return K()


def of_init(x):
    class K:
        def __init__(self):
            super().__init__()
            self.v = x * x

    return K()


def of_local_dataclass(x):
    @dataclasses.dataclass
    class K:
        v: float = x

    return K(x * x)


def of_bound_function(x):
    return types.MethodType(lambda self: self * x, x)


@pytest.mark.parametrize(
    ("f", "dy"),
    [
        (of_user_dict, {"a": 1.0}),
        (of_user_dict, 1.0),
        (of_one, 1.0),
        (of_one, [1.0]),
        (of_one, {"w": 1.0}),
        (lambda x: np.poly1d([x * x, x]), 1.0),
        (of_class_attribute, {"v": 1.0}),
        (of_class_attribute, 1.0),
        (of_method, {"m": 1.0}),
        (of_property, {"p": 1.0}),
        (of_base, {"v": 1.0}),
        (of_bound_function, 1.0),
    ],
)
def test_cotangents_that_lead_to_nothing(f, dy):
    with pytest.raises(wengert.CotangentError):
        wengert.pullback(f, 2.0)[1](dy)


@pytest.mark.parametrize(
    ("f", "dy"),
    [
        (of_user_dict, {"data": {"a": 1.0}}),
        (of_one, {"v": 1.0}),
        (of_one, OfOne(1.0)),
        (of_init, {"v": 1.0}),
        (of_local_dataclass, {"v": 1.0}),
    ],
)
def test_cotangents_of_objects(f, dy):
    assert wengert.pullback(f, 2.0)[1](dy) == (4.0,)
    assert wengert.pullback(f, 2.0)[1](None) == (0.0,)


def test_a_bound_function_in_the_result_is_plain():
    assert type(wengert.pullback(of_bound_function, 2.0)[0]()) is float


def test_a_flat_iterator_is_no_result():
    with pytest.raises(wengert.TraceError, match=r"test_structure.*flat iterator"):
        wengert.pullback(lambda x: np.array([x * x]).flat, 2.0)


def test_ops_are_found_in_a_dict_whose_class_says_otherwise_what_is_in_it():
    class Odd(dict):
        def values(self):
            return iter(())

        def __iter__(self):
            return iter(())

    tape = Tape()
    x, y = Input("x", 1.0, tape), Input("y", 2.0, tape)
    assert [*ops_in([Odd(a=x, b=(y, 3.0)), x])] == [x, y, x]
