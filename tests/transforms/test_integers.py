"""Which integers have a derivative: those that are arguments, or stand in a list, tuple or dict that is one."""

import collections
import dataclasses
import functools
import signal
import types

import numpy as np
import pytest

from helpers import assert_same, is_ours
from wengert import grad, jit, jvp, pullback

Ns = types.SimpleNamespace
NT = collections.namedtuple("NT", "n w")


class Model:
    def __init__(self):
        self.n, self.seed, self.w, self.flag = 3, 7, 0.5, True
        self.layers, self.shape, self.table = [2, 3], (2, 3), {"n": 2, "x": 1.5}
        self.count, self.ints = np.int64(4), np.arange(3)


UNUSED = {"table": {"n": None, "x": 0.0}}


@dataclasses.dataclass
class Config:
    n: int = 3
    lr: float = 0.5
    sizes: tuple = (2, 3)


class Slots:
    __slots__ = ("n", "w")

    def __init__(self):
        self.n, self.w = 3, 0.5


class L(list):
    pass


class Named(list):
    def __init__(self):
        super().__init__([2, 1.5])
        self.n = 3


class I(int):  # noqa: E742
    pass


def times(x, n=3):
    return x * n


def captured():
    n, w = 3, 0.5
    return lambda x: x * n * w


first_two = lambda x: x[0] * x[1]
named = lambda x: x["n"] * x["w"]
N = {"n": 3, "w": 0.5}

CASES = {
    "an argument": (lambda: 3, lambda n: n * n * 1.0, 6.0),
    "in a list": (lambda: [3, 1.5], first_two, [1.5, 3.0]),
    "in a tuple": (lambda: (3, 1.5), first_two, (1.5, 3.0)),
    "in a dict": (lambda: dict(N), named, {"n": 0.5, "w": 3.0}),
    "in a namedtuple": (lambda: NT(3, 0.5), lambda x: x.n * x.w, NT(0.5, 3.0)),
    "in lists of tuples": (
        lambda: {"n": [3, (2, 1.5)]},
        lambda x: x["n"][0] * x["n"][1][0] * x["n"][1][1],
        {"n": [3.0, (4.5, 6.0)]},
    ),
    "in an OrderedDict": (
        lambda: collections.OrderedDict(N),
        named,
        collections.OrderedDict(n=0.5, w=3.0),
    ),
    "in a defaultdict": (lambda: collections.defaultdict(int, N), named, {"n": 0.5, "w": 3.0}),
    "in a deque": (lambda: collections.deque([3, 0.5]), first_two, collections.deque([0.5, 3.0])),
    "in a Counter": (
        lambda: collections.Counter(n=3),
        lambda x: x["n"] * 1.0,
        collections.Counter(n=1.0),
    ),
    "in a list of a class": (lambda: L([3, 0.5]), first_two, L([0.5, 3.0])),
    "a big one": (lambda: [10**30, 0.5], first_two, [0.5, 1e30]),
    "attribute": (Model, lambda m: m.w * m.n, {"w": 3.0, **UNUSED}),
    "attribute that counts": (
        Model,
        lambda m: sum(m.w for _ in range(m.n)) + m.seed,
        {"w": 3.0, **UNUSED},
    ),
    "list in an attribute": (Model, lambda m: m.w * sum(m.layers), {"w": 5.0, **UNUSED}),
    "tuple in an attribute": (Model, lambda m: m.w * sum(m.shape), {"w": 5.0, **UNUSED}),
    "dict in an attribute": (
        Model,
        lambda m: m.w * m.table["n"] * m.table["x"],
        {"w": 3.0, "table": {"n": None, "x": 1.0}},
    ),
    "NumPy's in an attribute": (Model, lambda m: float(m.w * m.count), {"w": 4.0, **UNUSED}),
    "array in an attribute": (Model, lambda m: float((m.w * m.ints).sum()), {"w": 3.0, **UNUSED}),
    "in a dataclass": (
        Config,
        lambda c: c.lr * c.n * sum(c.sizes),
        Config(None, 15.0, (None, None)),
    ),
    "in a slot": (Slots, lambda c: c.w * c.n, {"w": 3.0}),
    "attribute of a list": (Named, lambda x: x[0] * x[1] * x.n, "list"),
    "object in a list": (
        lambda: [Ns(n=3, w=0.5), 2],
        lambda x: x[0].n * x[0].w * x[1],
        [{"w": 6.0}, 1.5],
    ),
    "list in an object": (
        lambda: Ns(l=[3, 0.5]),
        lambda x: x.l[0] * x.l[1],
        {"l": [None, 3.0]},
    ),
    "object in an object": (
        lambda: Ns(m=Ns(n=3, w=0.5)),
        lambda x: x.m.n * x.m.w,
        {"m": {"w": 3.0}},
    ),
    "a bool": (lambda: [True, 0.5], first_two, [None, 1.0]),
    "an array": (lambda: [np.arange(3), 0.5], lambda x: float((x[0] * x[1]).sum()), [None, 3.0]),
    "NumPy's": (lambda: [np.int64(3), 0.5], lambda x: float(x[0] * x[1]), [None, 3.0]),
    "an enum": (lambda: [signal.SIGINT, 0.5], first_two, [None, 2.0]),
    "of a class of its own": (lambda: [I(3), 0.5], first_two, [None, 3.0]),
    "in a closure": (captured, lambda g: g(2.0), {"w": 6.0}),
    "a default": (lambda: times, lambda g: g(2.0), None),
    "in a partial": (lambda: functools.partial(times, 2.0, n=3), lambda g: g(), {0: 3.0}),
    "a range": (lambda: range(3), lambda r: float(sum(r)), None),
    "in a set": (lambda: {1, 2.5}, lambda s: sum(s) * 1.0, {1: None, 2.5: 1.0}),
}


@pytest.mark.parametrize(("make", "f", "expected"), CASES.values(), ids=CASES)
def test_integers_as_decided(make, f, expected):
    for mode in (False, True, True, True):
        with jit(mode):
            value, back = pullback(f, make())
            assert_same(value, f(make()))
            (gradient,) = back(1.0)
            if expected == "list":
                assert (list(gradient), vars(gradient)) == ([4.5, 6.0], {"n": None})
            else:
                assert gradient == expected
                assert_same(type(gradient), type(expected))


def test_an_optimiser_leaves_the_integers_of_an_object_alone():
    model = Model()
    for _ in range(4):
        slope = grad(lambda m: (m.w * m.n - 1.0) ** 2)(model)
        for name, d in slope.items():
            if isinstance(d, float):
                setattr(model, name, getattr(model, name) - 0.01 * d)
    assert (model.n, model.seed, model.layers) == (3, 7, [2, 3])
    assert type(model.n) is int


def test_floats_appended_outside_are_plain_constants_for_later_calls():
    log = []

    def f(x):
        log.append(x * 2)
        return x * sum(log)

    total = 0.0
    for x in (0.5, 1.5, 0.5, 2.0, 3.0):
        total += 2 * x
        assert grad(f)(x) == total + 2 * x
        assert not any(is_ours(type(y)) for y in log)
        assert type(log[-1]) is float
    assert log == [1.0, 3.0, 1.0, 4.0, 6.0]


# ------------------------------------------------------------------------ arguments that are handed back


def test_tangents_and_identity_of_an_argument_that_is_returned():
    for mode in (False, True, True, True):
        with jit(mode):
            thing = Ns(k=1.5)
            value, tangent = jvp(lambda it: it, (thing,), ({"k": 1.0},))
            assert value is thing
            assert tangent == {"k": 1.0}
            xs = [1.0]
            value, tangent = jvp(lambda xs: xs, (xs,), ([2.0],))
            assert value is xs
            assert tangent == [2.0]
            table = {"a": [1.0]}
            value, tangent = jvp(lambda t: (t, t["a"]), (table,), ({"a": [3.0]},))
            assert value[0] is table
            assert value[1] is table["a"]
            assert tangent == ({"a": [3.0]}, [3.0])


def test_a_shorter_cycle_is_another_structure():
    left, right = Ns(z=0.5), Ns(z=0.5)
    left.peer, right.peer = right, left
    f = lambda it: it.z * 2
    for _ in range(4):
        assert pullback(f, left)[1](1.0) == ({"z": 2.0, "peer": {"z": 0.0}},)
    left.peer = left
    for _ in range(3):
        assert pullback(f, left)[1](1.0) == ({"z": 2.0},)
