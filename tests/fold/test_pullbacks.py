"""`pullback` of functions whose calls go different ways: folded, against flat tapes."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

from helpers import assert_same
from wengert import CotangentError, TraceError, clear_cache, explain, grad, jit, pullback
from wengert.transforms import cache
from wengert.transforms.fold.multiplied import Multiplied

pytestmark = pytest.mark.usefixtures("folding_at_once")

SCALE = [0.5]


def f(a: float, xs: list[float], d: dict[str, float], n: int, name: str, w: Any) -> float:
    t = a
    for _ in range(n):
        for x in xs:
            t = t * SCALE[0] + x * d["k"] if t < 1.0 else t - math.sin(x) * n
    return t * float(w.sum()) if name == "u" else t


def drawn(rng: random.Random) -> tuple[Any, ...]:
    xs = [rng.random() for _ in range(rng.randint(1, 4))]
    d = {"k": rng.random(), "unused": 2.0}
    return rng.random(), xs, d, rng.randint(1, 4), rng.choice("uv"), np.full(2, rng.random())


def plainly(back: Any, dy: Any) -> Any:
    with jit(False):
        return back(dy)


def close(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            close(x, y)
    elif isinstance(a, dict):
        assert [*a] == [*b]
        close([*a.values()], [*b.values()])
    elif a is None:
        assert b is None
    else:
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def both(*args: Any) -> tuple[Any, Any]:
    """A pullback that a folded program gives, and one that is traced."""
    with jit(False):
        expected, flat = pullback(f, *args)
    value, back = pullback(f, *args)
    assert_same(value, expected)
    return back, flat


def test_all_cotangents() -> None:
    rng, found = random.Random(1), []
    for i in range(20):
        back, flat = both(*drawn(rng))
        found.append(type(back))
        for dy in (1.0, -2.5, 0.0, 1e-300, *((2, None, np.float64(3.0)) if i > 15 else ())):
            close(back(dy), flat(dy))
    assert found.count(Multiplied) > 15
    (entry,) = (e for e in cache.entries.values() if e.hits)
    assert entry.hits > 10
    assert "for all ways" in explain(f)


def warmed() -> random.Random:
    rng = random.Random(2)
    for _ in range(12):
        both(*drawn(rng))
    return rng


def test_a_cotangent_that_is_not_finite() -> None:
    back, flat = both(*drawn(warmed()))
    for dy in (math.inf, math.nan):
        np.testing.assert_array_equal(back(dy)[1], flat(dy)[1])


def test_it_answers_for_the_moment_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    args = drawn(warmed())
    back, flat = both(*args)
    args[1].append(3.0)
    args[2]["k"] = 7.0
    args[5][:] = 0.0
    monkeypatch.setitem(globals(), "SCALE", [0.125])
    close(back(2.0), flat(2.0))
    close(back(2.0), flat(2.0))


def test_gradients_are_the_callers() -> None:
    args = drawn(warmed())
    back, flat = both(*args)
    back(1.0)[1][:] = [None] * len(args[1])
    back(1.0)[5][:] = 5.0
    close(back(1.0), flat(1.0))


def test_its_tape() -> None:
    back, flat = both(*drawn(warmed()))
    assert back.source() == flat.source()
    assert repr(back) == repr(flat)
    close(pickle.loads(pickle.dumps(back))(2.0), flat(2.0))


def test_its_tape_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    back, flat = both(*drawn(warmed()))
    SCALE[0] = 0.25
    try:
        with pytest.raises(TraceError, match="has changed since"):
            back.source()
        close(back(2.0), flat(2.0))
    finally:
        SCALE[0] = 0.5


SWITCH, LOG = [False], [0.0]


def test_its_tape_is_asked_for_when_the_function_would_do_something() -> None:
    def g(x: float, n: int) -> float:
        for _ in range(n):
            x = x * x if x < 1.0 else x - 0.5
        if SWITCH[0]:
            LOG.append(x)
        return x

    for i in range(12):
        _, back = pullback(g, 0.3 + 0.2 * i, i % 5)
    assert type(back) is Multiplied
    SWITCH[0] = True
    try:
        with pytest.raises(TraceError, match="has changed since"):
            back(np.float64(1.0))
    finally:
        SWITCH[0] = False
    assert LOG == [0.0]
    close(back(np.float64(1.0)), back(1.0))


def test_its_tape_after_a_change_of_the_slope_alone() -> None:
    tiny = [1e-8]

    def g(x: float, n: int) -> float:
        t = 1e10
        for _ in range(n):
            t = t + tiny[0] * x if x > 1.0 else t - tiny[0] * x
        return t

    for i in range(12):
        _, back = pullback(g, 0.3 + 0.2 * i, 1 + i % 5)
    assert type(back) is Multiplied
    tiny[0] = 5e-8  # too little to be seen in the value
    with pytest.raises(TraceError, match="has changed since"):
        back(np.float64(1.0))


def test_wrong_cotangents() -> None:
    back, flat = both(*drawn(warmed()))
    for dy in ([1.0], "1.0", 1j, np.ones(2)):
        with pytest.raises(CotangentError) as mine:
            back(dy)
        with pytest.raises(CotangentError) as theirs:
            flat(dy)
        assert str(mine.value) == str(theirs.value)


def test_inside_other_functions() -> None:
    back, flat = both(*drawn(warmed()))
    slope = grad(lambda dy: back(dy)[0] * dy)(1.5)
    assert slope == pytest.approx(grad(lambda dy: flat(dy)[0] * dy)(1.5))

    def outer(a: float) -> float:
        value, inner = pullback(f, a, [0.5], {"k": 1.0}, 2, "v", np.ones(1))
        return value * inner(1.0)[0]

    h = 1e-6
    for a in (0.1, 0.4, 0.7, 1.3):
        expected = (outer(a + h) - outer(a - h)) / (2 * h)
        assert grad(outer)(a) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_keywords_have_gradients_of_their_own() -> None:
    def g(x: float, n: int) -> float:
        for _ in range(n):
            x = x * x if x < 1.0 else x - 0.5
        return x

    for i in range(12):
        pullback(g, 0.3 + 0.2 * i, i % 5)
    assert type(pullback(g, 0.5, 3)[1]) is Multiplied
    assert pullback(g, x=0.5, n=1)[1](1.0) == ({"x": 1.0, "n": 0.0},)
    assert pullback(g, 0.5, n=1)[1](1.0) == (1.0, {"n": 0.0})


def test_defaults_that_are_not_given() -> None:
    def g(x: float, n: int, scale: float = 2.0) -> float:
        for _ in range(n):
            x = x * x if x < 1.0 else x - 0.5
        return x * scale

    for i in range(12):
        value, back = pullback(g, 0.3 + 0.2 * i, i % 5)
        assert value == g(0.3 + 0.2 * i, i % 5)
    assert type(back) is Multiplied
    assert len(back(1.0)) == 2
    assert "def back(x, n, dy):" in back.source()


def test_equal_integers_share_the_slope() -> None:
    def g(x: float, n: int, m: int) -> float:
        t, k = x, 0
        while k < 3:
            k += 1
            t = t + max(n, k) * min(m, n, 2) * x if t < 4.0 else max(n, x) * t
        return t

    rng = random.Random(3)
    for _ in range(30):
        args = float(rng.randint(1, 3)), rng.randint(1, 3), rng.randint(1, 3)
        with jit(False):
            value, flat = pullback(g, *args)
        mine, back = pullback(g, *args)
        assert_same(mine, value)
        close(back(1.0), flat(1.0))
    assert "for all ways" in explain(g)


def test_slopes_that_are_not_finite() -> None:
    def g(x: float, n: int) -> float:
        for i in range(n):
            x = math.sqrt(x) if i % 2 else x * x
        return x

    for x, n in [(0.5, 1), (0.3, 2), (0.7, 3), (0.2, 4), (0.9, 2), (0.0, 2), (0.0, 3), (0.4, 5)]:
        value, back = pullback(g, x, n)
        assert value == g(x, n)
        with jit(False):
            _, flat = pullback(g, x, n)
        np.testing.assert_array_equal(back(0.0)[0], flat(0.0)[0])
        np.testing.assert_allclose(back(2.0)[0], flat(2.0)[0])


def test_without_programs() -> None:
    args = drawn(warmed())
    back, flat = both(*args)
    clear_cache()
    with jit(False):
        close(back(2.0), flat(2.0))
        close(plainly(back, 1), flat(1))


@pytest.mark.usefixtures("folding_at_once")
def test_arrays_without_axes_have_gradients_that_are_arrays() -> None:
    def f(a: Any, x: float) -> Any:
        ys = [x, float(x) + 1.0]
        while len(ys) > 1:
            ys.append(ys.pop() * 0.5 + ys.pop())
            if ys[0] > 2.0:
                return ys[0] * a
        return ys[0]

    for a, x in ((1.5, 0.5), (2.5, 3.5), (0.5, 0.25), (3.5, 4.0)):
        with jit(True):
            _, back = pullback(f, np.array(a), x)
        with jit(False):
            _, traced = pullback(f, np.array(a), x)
        assert_same(back(2.0), traced(2.0))
