"""Functions that give several numbers and whose calls go different ways: folded, against flat tapes."""

from __future__ import annotations

import gc
import linecache
import math
import pickle
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.random_arrays import Maker
from fold.random_programs import Module, TooLong, Writer, draw, few_lines
from helpers import assert_same
from wengert import (
    TraceError,
    WengertError,
    clear_cache,
    explain,
    jacobian,
    jit,
    jvp,
    linearize,
    pullback,
)
from wengert.transforms import cache
from wengert.transforms.api import Pullback
from wengert.transforms.fold.deferred import Deferred

pytestmark = pytest.mark.usefixtures("folding_at_once")


def close(a: Any, b: Any, rtol: float = 1e-9) -> None:
    assert type(a) is type(b), (a, b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            close(x, y, rtol)
    elif isinstance(a, dict):
        assert [*a] == [*b]
        close([*a.values()], [*b.values()], rtol)
    elif a is None:
        assert b is None
    else:
        assert np.shape(a) == np.shape(b)
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def cotangent(value: Any, rng: random.Random) -> Any:
    """A random one, of the structure of a value."""
    if isinstance(value, (tuple, list)):
        return type(value)([cotangent(x, rng) for x in value])
    if isinstance(value, np.ndarray):
        return np.array([rng.gauss(0, 1) for _ in range(value.size)]).reshape(value.shape)
    return rng.gauss(0, 1)


def size(value: Any) -> int:
    return sum(map(size, value)) if isinstance(value, (tuple, list)) else int(np.size(value))


def fell(x: float, drag: float, h: float) -> tuple[float, float, int]:
    """Steps that are as long as the state asks for."""
    v, t, n = 0.0, 0.0, 0
    while x > 0.0 and n < 200:
        h = 0.5 * h if abs(v) > 2.0 else h
        v = v - h * (1.0 + drag * v * abs(v))
        x = x + h * v
        t, n = t + h, n + 1
    return x, t, n


def a_tuple(x: float, drag: float) -> tuple[float, float]:
    x, t, _ = fell(x, drag, 0.1)
    return x * t, math.exp(-t)


def a_list(x: float, drag: float) -> list[float]:
    x, t, n = fell(x, drag, 0.1)
    found = [x, t]
    found.append(x * n)
    return found


def an_array(x: float, drag: float) -> np.ndarray:
    x, t, n = fell(x, drag, 0.1)
    return np.array([x, t, drag * n])


def of_numpy(x: float, drag: float) -> tuple[np.ndarray, Any, float]:
    x, t, _ = fell(x, drag, 0.1)
    w = np.linspace(0.0, 1.0, 3) * t
    return np.exp(-w), w.sum(), x


def written_to(x: float, drag: float) -> np.ndarray:
    _, t, n = fell(x, drag, 0.1)
    u = np.zeros(4)
    for i in range(n % 4 + 1):
        u[i] = t * (i + 1) + u[i - 1] * x
    return u


def nested(x: float, drag: float) -> tuple[Any, ...]:
    x, t, n = fell(x, drag, 0.1)
    path = [x]
    for _ in range(n % 3):
        path.append(path[-1] * t)
    return (x, (t, path)), [t, t]


FUNCTIONS = [a_tuple, a_list, an_array, of_numpy, written_to, nested]


def drawn(rng: random.Random) -> tuple[float, float]:
    return rng.uniform(0.2, 3.0), rng.uniform(0.0, 0.6)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_pullbacks(f: Callable[..., Any]) -> None:
    rng, kinds = random.Random(1), []
    for _ in range(25):
        args = drawn(rng)
        with jit(False):
            expected, flat = pullback(f, *args)
        value, back = pullback(f, *args)
        assert_same(value, expected)
        kinds.append(type(back))
        for _ in range(2):
            dy = cotangent(value, rng)
            close(back(dy), flat(dy))
    assert kinds.count(Deferred) > 15
    assert "for all ways" in explain(f)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("argnums", [0, (1, 0)])
def test_jacobians(f: Callable[..., Any], argnums: Any) -> None:
    rng = random.Random(2)
    whole = jacobian(f, argnums)
    for _ in range(25):
        args = drawn(rng)
        with jit(False):
            expected = whole(*args)
        close(whole(*args), expected)
    (entry,) = cache.entries.values()
    assert entry.hits > 15 and entry.folding.programs


@pytest.mark.parametrize("kind", [float, np.float64, np.array, np.float32])
def test_types_of_blocks(kind: Callable[[float], Any]) -> None:
    """Of numbers of Python's and NumPy's, and arrays without axes, in the result and in the arguments."""

    def one(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x * 0.5 if x > 1.0 else x + 0.25
        return np.sin(x)

    def two(x: Any, n: int) -> Any:
        return one(x, n), np.asarray(one(x, n))

    def python(x: Any, n: int) -> Any:
        return float(one(x, n)), x * 1.0

    for f in (one, two, python):
        rows = jacobian(f)
        for i in range(14):
            x, n = kind(0.3 + 0.2 * i), i % 5
            with jit(False):
                expected = rows(x, n)
            close(rows(x, n), expected)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_along_a_direction(f: Callable[..., Any]) -> None:
    rng = random.Random(3)
    for _ in range(25):
        args, tangents = drawn(rng), (rng.gauss(0, 1), rng.gauss(0, 1))
        with jit(False):
            expected = jvp(f, args, tangents)
        found = jvp(f, args, tangents)
        assert_same(found[0], expected[0])
        close(found[1], expected[1])
        value, along = linearize(f, *args)
        assert_same(value, expected[0])
        close(along(*tangents), expected[1])
        close(along(*tangents), expected[1])
    hits = [entry.hits for entry in cache.entries.values()]
    assert len(hits) == 2 and min(hits) > 15


def test_a_tangent_that_is_not_finite_or_of_another_kind() -> None:
    rng = random.Random(10)
    for _ in range(15):
        args = drawn(rng)
        _, along = linearize(a_tuple, *args)
    assert "Several" in type(along).__name__
    with jit(False):
        _, flat = linearize(a_tuple, *args)
    for tangents in ((math.inf, 1.0), (np.float32(0.5), 2), (None, 1.0), (True, 0.0)):
        outcomes = []
        for ask in (along, flat):
            try:
                outcomes.append(ask(*tangents))
            except WengertError as error:
                outcomes.append(str(error))
        if isinstance(outcomes[1], str) or not np.isfinite(outcomes[1]).all():
            assert repr(outcomes[0]) == repr(outcomes[1])
        else:
            close(outcomes[0], outcomes[1])


def test_jacobians_by_differences() -> None:
    rng = random.Random(4)
    slope = jacobian(an_array, (0, 1))
    right = 0
    for _ in range(20):
        x, drag = drawn(rng)
        found = slope(x, drag)
        h = 1e-6
        ends = [an_array(x + h, drag), an_array(x - h, drag), an_array(x, drag + h)]
        if len({fell(y, drag, 0.1)[2] for y in (x - h, x, x + h)}) > 1:
            continue  # where another step is taken
        np.testing.assert_allclose(found[0], (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-7)
        right += 1
    assert right > 10


def test_an_aux_beside_several() -> None:
    def f(x: float, drag: float) -> tuple[Any, Any]:
        x, t, n = fell(x, drag, 0.1)
        return (x, t), {"steps": n, "half": [t / 2.0]}

    rng = random.Random(5)
    whole = jacobian(f, (0, 1), has_aux=True)
    for _ in range(20):
        args = drawn(rng)
        expected = f(*args)
        value, back, aux = pullback(f, *args, has_aux=True)
        with jit(False):
            _, flat, _ = pullback(f, *args, has_aux=True)
            slopes = whole(*args)
        assert_same((value, aux), expected)
        close(back((1.0, 0.5)), flat((1.0, 0.5)))
        found = whole(*args)
        assert_same(found[1], expected[1])
        close(found[0], slopes[0])
    assert type(back) is Deferred


# ------------------------------------------------------------------------------------ what is asked of a pullback


def weighted(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    t = x * 1.0
    while t.sum() < 20.0:
        t = t * (1.0 + w) if t.sum() < 5.0 else t + np.exp(-t) * w
    return np.exp(-t) * x


SCALE = np.array([0.5, 0.25, 1.0])


def scaled(x: np.ndarray) -> np.ndarray:
    t = x * SCALE
    while t.sum() < 20.0:
        t = t + x * SCALE
    return t * SCALE


def warmed(f: Callable[..., Any], count: int) -> tuple[Any, Any, Any, list[np.ndarray]]:
    """A value, the pullback of a folded program, a traced one, and the arguments."""
    rng = np.random.default_rng(0)
    for _ in range(15):
        args = [rng.uniform(0.1, 2.0, 3) for _ in range(count)]
        value, back = pullback(f, *args)
    assert type(back) is Deferred
    with jit(False):
        _, flat = pullback(f, *args)
    return value, back, flat, args


@pytest.mark.parametrize("which", ["argument", "value", "both"])
def test_what_is_written_to_before_it_is_asked(which: str) -> None:
    value, back, flat, args = warmed(weighted, 2)
    dy = np.array([1.0, -2.0, 0.5])
    expected = flat(dy)
    if which != "value":
        args[0][:] = 7.0
        args[1] *= 3.0
    if which != "argument":
        value -= 100.0
    close(back(dy), expected)
    close(back(dy), expected)


def test_a_view_is_given_and_its_array_written_to() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        t = np.exp(-x)
        while t.sum() < 20.0:
            t = t * 1.5 if t.sum() < 5.0 else np.exp(t * 0.5)
        return t[1:]

    value, back, flat, _ = warmed(f, 1)
    dy = np.array([1.0, -2.0])
    value.base[:] = 0.0
    close(back(dy), flat(dy))


def test_an_aux_is_written_to() -> None:
    def f(x: np.ndarray) -> tuple[Any, Any]:
        t = np.exp(-x)
        while t.sum() < 20.0:
            t = t * 1.5 if t.sum() < 5.0 else np.exp(t * 0.5)
        return np.sin(t), [{"t": t}, t[1:]]

    rng = np.random.default_rng(1)
    for _ in range(15):
        x = rng.uniform(0.1, 2.0, 3)
        value, back, aux = pullback(f, x, has_aux=True)
    assert type(back) is Deferred
    with jit(False):
        _, flat, _ = pullback(f, x, has_aux=True)
    dy = np.array([1.0, -2.0, 0.5])
    close(back(dy), flat(dy))
    aux[0]["t"][:] = 0.0
    close(back(dy), flat(dy))


def test_what_was_drawn_is_written_to() -> None:
    drawing = np.random.default_rng(2)

    def f(x: np.ndarray) -> tuple[Any, Any]:
        noise = drawing.normal(size=3)
        t = np.exp(-x)
        while t.sum() < 20.0:
            t = t * 1.5 if t.sum() < 5.0 else np.exp(t * 0.5)
        return noise, t * noise * x

    rng = np.random.default_rng(1)
    for _ in range(15):
        value, back = pullback(f, rng.uniform(0.1, 2.0, 3))
    assert type(back) is Deferred
    dy = np.zeros(3), np.array([1.0, -2.0, 0.5])
    expected = back(dy)
    value[0][:] = 100.0
    close(back(dy), expected)


def test_what_it_read_outside_is_written_to() -> None:
    value, back, flat, _ = warmed(scaled, 1)
    dy = np.ones(3)
    expected = flat(dy)
    close(back(dy), expected)
    before = SCALE.copy()
    SCALE[:] = 4.0
    try:
        with pytest.raises(TraceError, match="has changed since"):
            back(dy)
    finally:
        SCALE[:] = before
    close(back(dy), expected)


def test_lists_that_change() -> None:
    def f(xs: list[float], d: dict[str, float]) -> list[float]:
        found, t = [], d["k"]
        for x in xs:
            t = t * x if x > 0.5 else t + x * x
            found.append(t)
        return found

    rng = random.Random(6)
    for _ in range(15):
        xs, d = [rng.random() for _ in range(rng.randint(1, 6))], {"k": rng.random()}
        with jit(False):
            expected, flat = pullback(f, xs, d)
        value, back = pullback(f, xs, d)
        assert_same(value, expected)
        dy = cotangent(value, rng)
        close(back(dy), flat(dy))
        xs[0], d["k"] = 100.0, 7.0
        close(back(dy), flat(dy))
        value.append(3.0)
        close(back(dy), flat(dy))
    assert type(back) is Deferred


def test_cotangents_of_other_kinds() -> None:
    _, back, flat, _ = warmed(weighted, 2)
    for dy in (np.array([1, 2, 3]), None, np.array([math.inf, 0.0, 1.0]), np.full(3, np.nan)):
        for a, b in zip(back(dy), flat(dy), strict=True):
            np.testing.assert_allclose(a, b)
    with pytest.raises(WengertError, match="shape"):
        back(np.ones(2))
    with pytest.raises(WengertError):
        back(1.0)


def test_cotangents_of_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of NumPy's, and integers, as of any result of plain code."""
    rng = random.Random(9)
    for f, dy in (
        (a_list, [np.float64(0.5), 2, -1.0]),
        (a_tuple, (3, np.float64(0.25))),
        (nested, None),
    ):
        for _ in range(12):
            args = drawn(rng)
            value, back = pullback(f, *args)
        assert type(back) is Deferred
        with jit(False):
            _, flat = pullback(f, *args)
        close(back(dy), flat(dy))
        with monkeypatch.context() as patch:
            if dy is not None:
                patch.setattr(Deferred, "done", property(lambda _: pytest.fail("its tape")))
            back(dy)


def test_gradients_and_cotangents_are_the_callers() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        t = x
        while t.sum() < 20.0:
            t = t + 1.0
        return t

    _, back, flat, _ = warmed(f, 1)
    dy = np.array([1.0, 2.0, 3.0])
    (found,) = back(dy)
    found[:] = 0.0
    assert dy.tolist() == [1.0, 2.0, 3.0]
    close(back(dy), flat(dy))


def test_its_tape_and_its_pickle() -> None:
    _, back, flat, _ = warmed(weighted, 2)
    dy = np.array([1.0, -2.0, 0.5])
    close(pickle.loads(pickle.dumps(back))(dy), flat(dy))
    assert back.source() == flat.source()
    assert repr(back) == repr(flat)


def test_what_has_no_finite_slope_is_the_tapes() -> None:
    def f(x: float, n: int) -> tuple[float, float]:
        for _ in range(n):
            x = x * 0.5 if x > 1.0 else x
        return math.sqrt(x), x * 2.0

    for i in range(12):
        pullback(f, 1.0 + i, i % 4)
    with jit(False):
        expected, flat = pullback(f, 0.0, 2)
    value, back = pullback(f, 0.0, 2)
    assert value == expected
    for dy in ((0.0, 1.0), (0.0, 0.0)):
        assert back(dy) == flat(dy)


def test_threads_that_ask_one_pullback() -> None:
    def f(xs: list[float], k: float) -> list[float]:
        def inner(ys: list[float], depth: int) -> float:
            if depth == 0 or len(ys) < 2:
                return ys[0] * k
            return inner(ys[1:], depth - 1) * ys[0]

        return [inner(xs, 3), inner(xs, 5)]

    rng = random.Random(7)
    for _ in range(12):
        xs = [rng.random() for _ in range(rng.randint(3, 9))]
        _, back = pullback(f, xs, 0.5)
    assert type(back) is Deferred
    expected = back([1.0, 2.0])
    found: list[Any] = []

    def ask() -> None:
        for _ in range(50):
            found.append(back([1.0, 2.0]))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200 and all(x == expected for x in found)


def test_what_was_given_dies() -> None:
    warmed(weighted, 2)
    x = np.full(3, 0.5)
    value, back = pullback(weighted, x, x + 0.0)
    assert type(back) is Deferred
    dead = weakref.ref(x), weakref.ref(value)
    back(np.ones(3))
    del x, value, back
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


class Parameters:
    """An object whose copies must not be made: each would say good-bye."""

    log: list[str] = []

    def __init__(self, k: float) -> None:
        self.k = k

    def __del__(self) -> None:
        self.log.append("bye")


def test_objects_that_die_loudly_are_not_copied() -> None:
    def f(p: Parameters, n: int) -> tuple[float, float]:
        t = p.k
        for _ in range(n):
            t = t * 0.5 if t > 1.0 else t + 0.3
        return t, p.k

    objects = [Parameters(0.1 * i) for i in range(12)]
    for i, p in enumerate(objects):
        _, back = pullback(f, p, i % 5)
        back((1.0, 1.0))
        assert Parameters.log == []
    assert isinstance(back, Pullback)


# --------------------------------------------------------------------------------------------- what is given back

TABLE = [(1.0, 2.0), (3.0, 4.0)]
ONE = (5.0, 6.0)


def test_tuples_from_outside_are_themselves() -> None:
    def f(x: float, n: int, pair: tuple[float, float]) -> tuple[Any, Any]:
        t = x
        while t < 5.0:
            t = t * 1.5 + n * 0.1
        if n == 0:
            return TABLE[1]
        if n == 1:
            return ONE
        return pair if n == 2 else (t, x)

    def aux(x: float, n: int, pair: tuple[float, float]) -> tuple[float, Any]:
        return x * n, f(x, n, pair)

    def constant(x: float, n: int, pair: tuple[float, float]) -> Any:
        return (0.5, 0.25) if x * n > 1.0 else (0.5, 0.125)

    rng = random.Random(8)
    for _ in range(40):
        x, n, pair = rng.random() + 0.5, rng.randrange(4), (rng.random(), 1.0)
        wanted = {0: TABLE[1], 1: ONE, 2: pair}.get(n)
        value, _ = pullback(f, x, n, pair)
        assert value is wanted or n == 3
        _, _, value = pullback(aux, x, n, pair, has_aux=True)
        assert value is wanted or n == 3
        assert pullback(constant, x, n, pair)[0] is constant(x, n, pair)


NOT_ASKED = (
    "base byteswap dump fill partition put resize setfield setflags sort tofile itemset".split()
)


@pytest.mark.parametrize("shape", [(3,), (1, 3, 2)])
def test_in_whose_memory_results_lie(shape: tuple[int, ...]) -> None:
    """As with NumPy: copies are copies, views views, and what is the argument itself is it."""
    asked = 0
    for name in (x for x in vars(np.ndarray) if x[0] != "_" and x not in NOT_ASKED):
        start = np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)
        try:
            member = getattr(start, name)
            made = member() if callable(member) else member
        except (TypeError, ValueError):
            continue
        if type(made) is not np.ndarray or made.dtype != float:
            continue
        call = "()" if callable(member) else ""
        source = f"def f(v, n):\n h = v * v\n for i in range(n): h = h * v\n return v.{name}{call}, h, h.{name}{call}"
        scope: dict[str, Any] = {}
        exec(source, scope)
        clear_cache()
        for k in range(6):
            v = start.copy()
            wanted, h, last = scope["f"](v, k % 3)
            (found, own, other), back = pullback(scope["f"], v, k % 3)
            for x, y, mine, theirs in ((found, wanted, v, v), (other, last, own, h)):
                assert_same(x, y)
                assert (x is mine) is (y is theirs), name
                assert np.may_share_memory(x, mine) is np.may_share_memory(y, theirs), name
                assert x.flags.writeable is y.flags.writeable, name
        asked += type(back) is Deferred
    assert asked > 8


def test_constant_tuples_among_others() -> None:
    def f(x: float, n: int) -> Any:
        t, u = 1.0, 2.0
        for _ in range(n):
            t, u = (t * x, u + x) if t < 3.0 else (t - x, u)
        return [t, (1.0, 2.0)][0], ((0.5, 0.25) if n else (0.5, 0.125))

    def kept(x: float, n: int) -> Any:
        known = (3, 4)
        t = x
        for _ in range(n):
            t = t * x if t < 3.0 else t - x
        return t * x, known

    def aux(x: float, n: int) -> Any:
        value, given = kept(x, n)
        return value, {"given": given}

    def given(x: float, n: int, pair: Any) -> Any:
        for _ in range(n):
            x = x * x if x < 3.0 else x - 1.0
        return x, pair

    def handed(x: float, n: int) -> Any:
        return given(x, n, (0.5, 0.75))

    for i in range(16):
        args = 0.4 + 0.1 * i, i % 5
        assert pullback(handed, *args)[0][1] is handed(*args)[1]
        assert pullback(f, *args)[0][1] is f(*args)[1]
        assert pullback(kept, *args, has_aux=True)[2] is kept(*args)[1]
        assert pullback(aux, *args, has_aux=True)[2]["given"] is kept(*args)[1]


def test_rows_that_are_too_many_are_traced() -> None:
    def f(x: float, n: int) -> list[float]:
        found = [x]
        for _ in range(n):
            found.append(found[-1] * x if found[-1] < 1.0 else found[-1] - x)
        return found

    whole = jacobian(f)
    for i in range(12):
        x, n = 0.3 + 0.1 * i, 200 + i % 5
        with jit(False):
            expected = whole(x, n)
        close(whole(x, n), expected)
    assert "a row of the Jacobian" in explain(whole, 0.5, 205)


def test_rows_of_calls_of_functions_of_arrays() -> None:
    """They take longer each, so there may be fewer of them."""

    def f(x: np.ndarray) -> np.ndarray:
        t = np.exp(-x)
        while t.sum() < 20.0:
            t = t * 1.5 if t.sum() < 5.0 else np.exp(0.1 * np.sin(t)) * t * 1.2
        return np.cos(t)

    rng = np.random.default_rng(3)
    for size, folds in ((5, True), (17, False)):
        clear_cache()
        whole = jacobian(f)
        for _ in range(10):
            x = rng.uniform(0.1, 2.0, size)
            with jit(False):
                expected = whole(x)
            close(whole(x), expected)
        (entry,) = cache.entries.values()
        assert bool(entry.folding.programs) is folds


# --------------------------------------------------------------------------------------------------- random programs

ENDINGS = [
    "(f(x, y, n), x * f(y, x, n))",
    "[f(x, y, n), y * x]",
    "np.array([f(x, y, n), f(y, x, n)])",
    "(x, [f(x, y, n), f(x, 0.5, n)])",
    "np.array([x, y]) * f(x, y, n)",
]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    ending = f"import numpy as np\ndef several(x, y, n):\n    return {ENDINGS[seed % 5]}\n"
    source = Writer(seed).source() + ending
    plain, traced, kept = (Module(source, f"<random program {seed}>") for _ in range(3))
    rng = random.Random(seed)
    try:
        for _ in range(8):
            args = draw(rng)
            try:
                with few_lines(plain.name):
                    wanted = plain.attempt(lambda: plain.space["several"](*args), False)
            except TooLong:
                return
            dy = random.Random(1)

            def asked(module: Module, on: bool) -> Any:
                def gradients() -> tuple[Any, Any]:
                    value, back = pullback(module.space["several"], *args)
                    return value, (back(cotangent(value, random.Random(1))),)

                with jit(on):
                    return module.attempt(gradients, True)

            off, on = asked(traced, False), asked(kept, True)
            if off.refused or on.refused:
                assert off.error == on.error
                return
            assert off.plain() == wanted.plain() == on.plain()
            if off.gradient is not None and dy is not None:
                close(on.gradient, off.gradient, 1e-7)
    finally:
        linecache.cache.pop(plain.name, None)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_arrays(seed: int) -> None:
    maker = Maker(seed)
    text, _ = maker.program()
    *lines, last = text.splitlines()
    total = last.removeprefix("    return ")
    inner = total[total.index("(") + 1 : total.rindex(" * x)")]
    endings = [inner, f"({inner}, {total})", f"[float({total}), a]", f"({inner})[1:] * a"]
    lines.append(f"    return {endings[seed % 4]}")
    scope: dict[str, Any] = {"np": np, "math": math}
    exec(compile("\n".join(lines), f"<random {seed}>", "exec"), scope)
    f = scope["f"]
    rng = np.random.default_rng(seed)
    for n, k in [(2, 2), (3, 0), (4, 3), (2, 1), (3, 2)] * 2:
        x, w = rng.normal(size=(2, n))
        args = x, w, rng.normal(size=(n, n)), float(rng.normal()), k
        expected = f(*args)
        value, back = pullback(f, *args)
        assert_same(value, expected)
        with jit(False):
            _, flat = pullback(f, *args)
            slopes = jacobian(f, (0, 3))(*args)
        dy = cotangent(value, random.Random(seed))
        close(back(dy), flat(dy), 1e-8)
        close(jacobian(f, (0, 3))(*args), slopes, 1e-8)
    clear_cache()
