"""How folded programs are called and what they give: by keywords, as methods, with an aux beside the value."""

from __future__ import annotations

import random
from collections import deque, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import grad, jit, value_and_grad
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")

CALLS = 25
Pair = namedtuple("Pair", "a b")


def entry_of(f: Callable[..., Any]) -> Any:
    return next(e for e in [*cache.entries.values()][::-1] if e.name == f.__name__)


def drawn(rng: random.Random) -> tuple[float, list[float], Any]:
    xs = [rng.gauss(0.0, 1.0) for _ in range(rng.randint(1, 9))]
    return rng.random(), xs, np.array([rng.random() for _ in range(rng.randint(1, 4))])


def is_same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return [*a] == [*b] and is_same([*a.values()], [*b.values()])
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b if callable(a) else a == b


# Keywords


def loss(w: float, xs: list[float], scale: float = 1.0) -> float:
    s = 0.0
    for x in xs:
        s = s + (w * x - 1.0) ** 2 * scale if x > 0.0 else s - w * x * scale
    return s


class Model:
    def __init__(self) -> None:
        self.b = 0.5

    def loss(self, w: float, xs: list[float], scale: float = 1.0) -> float:
        return loss(w, xs, scale) + self.b * w


@pytest.mark.parametrize("f", [loss, Model().loss], ids=["function", "method"])
@pytest.mark.parametrize("argnums", [0, "scale", ("scale", "w")])
def test_keywords(f, argnums):
    rng = random.Random(1)
    transformed = value_and_grad(f, argnums)
    for i in range(CALLS):
        w, xs, _ = drawn(rng)
        call: Any = [
            lambda g, w=w, xs=xs: g(w, xs=xs, scale=0.5),
            lambda g, w=w, xs=xs: g(w, scale=0.75, xs=xs),
            lambda g, w=w, xs=xs: g(w, xs, 1.5),
        ][i % 3]
        value, slopes = call(transformed)
        assert value == call(f)
        with jit(False):
            _, expected = call(transformed)
        assert slopes == pytest.approx(expected, rel=1e-12)
    entry = entry_of(f)
    assert entry.folding.why is None and entry.hits >= CALLS - 6


@pytest.mark.parametrize("f", [loss, Model().loss], ids=["function", "method"])
def test_what_does_not_fit_raises_what_the_function_raises(f):
    rng = random.Random(2)
    transformed = value_and_grad(f)
    for _ in range(6):
        w, xs, _ = drawn(rng)
        transformed(w, xs=xs)
    for call in (
        lambda g: g(1.0, [2.0], c=2.0),
        lambda g: g(1.0, [2.0], w=2.0),
        lambda g: g(1.0, [2.0], 3.0, 4.0),
        lambda g: g(1.0),
    ):
        with pytest.raises(TypeError) as expected:
            call(f)
        with pytest.raises(TypeError) as raised:
            call(transformed)
        assert str(raised.value) == str(expected.value)


# An aux beside the value


def with_lists_and_dicts(w, xs, data):
    s, hist, n = 0.0, [], 0
    for x in xs:
        s = s + (w * x - 1.0) ** 2 if x > 0.0 else s - w * x
        n += x > 0.0
        hist.append(s)
    y = np.tanh(data * w)
    aux = {"hist": hist, "n": n, "y": y, "t": (s, "name", None), "data": data, "xs": xs}
    return s + float(y.sum()), aux


def with_a_tuple(w, xs, data):
    s = w
    for x in xs:
        s = s * x if x > 0.0 else s + x
    return s, (len(xs), data * s, xs, s, "a", None, True, data)


def with_a_written_array(w, xs, data):
    found, s = np.zeros(len(xs)), 0.0
    for i, x in enumerate(xs):
        found[i] = w * x
        s = s + float((found**2).sum()) if x > 0.0 else s - float(found[i])
        found[i] *= 2.0
    return s, found


def with_views(w, xs, data):
    a = np.ones(3) * w
    part, s = a[1:], 0.0
    for x in xs:
        part *= x if x > 0.0 else -1.0
        s = s + float(a.sum())
    return s, (a, part, a)


def with_itself(w, xs, data):
    s = w
    for x in xs:
        s = s * x if x > 0.0 else s + x
    return s, s


@pytest.mark.parametrize(
    "f", [with_lists_and_dicts, with_a_tuple, with_a_written_array, with_views, with_itself]
)
@pytest.mark.parametrize("with_value", [True, False])
def test_an_aux(f, with_value):
    rng = random.Random(f.__name__)
    transformed = (value_and_grad if with_value else grad)(f, has_aux=True)
    for _ in range(CALLS):
        args = drawn(rng)
        expected = f(*args)
        first, second = transformed(*args)
        (value, aux), slope = (first, second) if with_value else ((expected[0], second), first)
        assert is_same((value, aux), expected)
        if f is with_lists_and_dicts:
            assert aux["data"] is args[2] and aux["xs"] is args[1]
        if f is with_views:
            assert aux[0] is aux[2] and np.shares_memory(aux[0], aux[1])
        with jit(False):
            known = transformed(*args)[1 if with_value else 0]
        assert slope == pytest.approx(known, rel=1e-9)
    entry = entry_of(f)
    assert entry.folding.why is None and entry.hits >= CALLS - 6


def gives_an_object(w, xs, data):
    return w * len(xs), Model()


def gives_a_named_tuple(w, xs, data):
    return w * sum(xs), Pair(w, len(xs))


def gives_a_queue(w, xs, data):
    return w * len(xs), [deque(xs, maxlen=2)]


def gives_a_set(w, xs, data):
    return w * sum(xs), {len(xs)}


def gives_a_function(w, xs, data):
    return w * sum(xs), len


@pytest.mark.parametrize(
    "f", [gives_an_object, gives_a_named_tuple, gives_a_queue, gives_a_set, gives_a_function]
)
def test_what_is_laid_out_anew_in_programs_is_given_by_traced_calls(f):
    rng = random.Random(3)
    transformed = value_and_grad(f, has_aux=True)
    for _ in range(8):
        args = drawn(rng)
        (value, aux), _ = transformed(*args)
        expected = f(*args)
        assert value == expected[0] and type(aux) is type(expected[1])
        if f is not gives_an_object:
            assert is_same(aux, expected[1])


def gives_its_dict(p, xs):
    s = p["w"]
    for x in xs:
        s = s * x if x > 0.0 else s + x
    return s, {"p": p}


def gives_its_tuple(p, xs):
    s = p[0]
    for x in xs:
        s = s * x if x > 0.0 else s + x
    return s, [p]


@pytest.mark.parametrize(
    ("f", "given"), [(gives_its_dict, {"w": 0.5, "b": 2.0}), (gives_its_tuple, (0.5, 2.0))]
)
def test_an_argument_that_is_given_back_is_itself(f, given):
    rng = random.Random(4)
    transformed = value_and_grad(f, has_aux=True)
    for _ in range(8):
        (_, aux), _ = transformed(given, drawn(rng)[1])
        assert (aux["p"] if isinstance(aux, dict) else aux[0]) is given
