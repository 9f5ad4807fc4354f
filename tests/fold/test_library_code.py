"""What libraries that are written in Python do: followed, among them solvers of SciPy's."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import jit, value_and_grad
from wengert.tracer.fold.recorder import Unfolded
from wengert.tracer.fold.run import Known
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Method:
    WEIGHTS: Any = NotImplemented
    order = 2


class Halves(Method):
    WEIGHTS = np.array([0.5, 0.5])


class Thirds(Method):
    WEIGHTS = np.array([0.2, 0.3, 0.5])
    order = 3

    def __init__(self, own: bool) -> None:
        if own:
            self.WEIGHTS = np.array([1.0, 2.0])


def arrays_of_classes(x: float, n: int) -> float:
    method: Any = Halves() if n > 3 else Thirds(n == 2)
    total = 0.0
    for k in range(n):
        total += np.sum(method.WEIGHTS * x) * k + method.order + Thirds.WEIGHTS[0] * x
    return total


class Result(dict[str, Any]):
    """Items that are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error

    __setattr__ = dict.__setitem__  # type: ignore[assignment]


def records(x: float, n: int) -> float:
    found = Result(value=x, rows=[x, 2.0], message="ok")
    for k in range(n):
        found.value = found.value * x + k
        found["rows"].append(found.value)
        if k == 2:
            found["extra"] = k * x
            found.value += found.extra
    return found["value"] + found.rows[-1] * x + len(found.message)


def largest_numbers_of_arrays(x: float, n: int) -> float:
    u = np.linspace(x, 2.0, n + 1)
    total: Any = 0.0
    for k in range(n):
        total += min(1, u[k]) * x + max(u[k], u[-1 - k], 0.7) * (2 if min(3, u[0] * 2) == 3 else x)
    return total + max(x, u[1], min(n, 2))


def kinds(x: float, n: int) -> float:
    handler: Any = (lambda y: y * x) if n > 2 else None
    u = np.full(3, x)
    total = u.sum() if np.issubdtype(u.dtype, np.floating) else 0.0
    for _ in range(n):
        total += handler(x) if callable(handler) else x
    return total * (2.0 if callable(total) or callable(Method) else 3.0)


@pytest.mark.parametrize("f", [arrays_of_classes, records, largest_numbers_of_arrays, kinds])
def test_followed(f: Callable[..., float]) -> None:
    followed(f)


def counted_items(x: float, n: int) -> float:
    found = Result(a=x, b=n * x)
    return sum([found[key] for key in found]) * len(found)


def test_a_record_is_not_gone_through() -> None:
    assert compare(counted_items).folding.why is not None


def test_an_array_of_a_class_is_read_anew(monkeypatch: Any) -> None:
    both = value_and_grad(arrays_of_classes)
    for k in range(12):
        both(0.3 + 0.1 * k, k % 5 + 1)
    for weights in (np.array([2.0, 0.25]), np.array([1.0, 2.0, 3.0]), 1.5):
        monkeypatch.setattr(Halves, "WEIGHTS", weights)
        for n in (2, 4, 6):
            found = both(0.7, n)
            assert_same(found[0], arrays_of_classes(0.7, n))
            with jit(False):
                assert found[1] == pytest.approx(both(0.7, n)[1], rel=1e-9)


def pendulum(t: float, y: Any, a: float, b: float) -> Any:
    return np.array([y[1], -a * np.sin(y[0]) - b * y[1]])


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
def test_solvers_of_differential_equations_are_followed(method: str) -> None:
    integrate = pytest.importorskip("scipy.integrate")

    def solved(a: float, b: float) -> float:
        start = np.array([1.0, 0.0])
        found = integrate.solve_ivp(pendulum, (0.0, 1.0), start, method, args=(a, b), rtol=1e-3)
        return found.y[0, -1]  # type: ignore[no-any-return]

    both, rng = value_and_grad(solved, argnums=(0, 1)), random.Random(3)
    for _ in range(12):
        args = rng.uniform(0.5, 4.0), rng.uniform(0.0, 0.5)
        value, slopes = both(*args)
        assert_same(value, solved(*args))
        with jit(False):
            assert slopes == pytest.approx(both(*args)[1], rel=1e-8)
    (entry,) = cache.entries.values()
    assert entry.folding.why is None
    assert entry.folding.programs
    assert entry.hits >= 6


class Wrapped:
    """A function that is called with a copy, whose method is kept."""

    def __init__(self, fn: Any, task: bytes) -> None:
        self.fn, self.task, self.calls = fn, task, 0
        self.method = self.value
        self.dummy = np.atleast_2d(np.asarray(None))

    def value(self, u: Any) -> float:
        self.calls += 1
        return self.fn(np.copy(u))  # type: ignore[no-any-return]


def kept_methods(x: float, n: int) -> float:
    wrapped = Wrapped(lambda u: np.sum(u * u) * x, b"START")
    pair, total = (wrapped.method, wrapped.value), 0.0
    for k in range(n):
        total += wrapped.method(np.full(2, x + k)) + pair[k % 2](np.ones(3))
        if total > 3.0:
            wrapped.task = b"WARN: high"
        elif wrapped.task[:4] == b"STAR":
            wrapped.task = b"FG"
    return total * wrapped.calls if wrapped.task[:4] == b"WARN" else total


def questions(x: float, n: int) -> float:
    work, total = (lambda y: y * x) if n > 3 else None, 0.0
    work = work or math.sin
    if isinstance(work, Mapping) or work in ("2-point", "3-point"):
        return x
    for k in range(n):
        total += work(x + k) if isinstance(total, Real) else 0.0
    u = np.atleast_1d(np.atleast_2d(np.full(2, total)))
    return u[0, 1] * (2.0 if np.can_cast(u.dtype, "float64") else x)


@pytest.mark.parametrize("f", [kept_methods, questions])
def test_what_an_optimizer_keeps_and_asks_is_followed(f: Callable[..., float]) -> None:
    followed(f)


def of_objects(x: float, n: int) -> float:
    u = np.asarray([None, x])
    return u[1] * n  # type: ignore[no-any-return]


def test_numbers_in_an_array_of_objects_are_not_followed() -> None:
    with pytest.raises(Unfolded, match="gives an object"):
        Known().run(of_objects, ["x", "n"], (0.5, 2))


def test_bfgs_is_followed() -> None:
    optimize = pytest.importorskip("scipy.optimize._optimize")

    def found(c: float) -> float:
        def f(u: Any) -> Any:
            return (1.0 - u[0]) ** 2 + c * (u[1] - u[0] ** 2) ** 2

        def slope(u: Any) -> Any:
            inner = u[1] - u[0] ** 2
            return np.array([-2.0 * (1.0 - u[0]) - 4.0 * c * u[0] * inner, 2.0 * c * inner])

        start = np.array([-0.5, 0.7])
        return optimize._minimize_bfgs(f, start, jac=slope, maxiter=2).fun  # type: ignore[no-any-return]

    both, rng = value_and_grad(found), random.Random(5)
    for _ in range(6):
        c = rng.uniform(0.9, 1.1)
        value, slope = both(c)
        assert_same(value, found(c))
        with jit(False):
            assert slope == pytest.approx(both(c)[1], rel=1e-8)
    (entry,) = cache.entries.values()
    assert entry.folding.why is None
    assert entry.folding.programs


class Stepper:
    """Holds an array that is written to, and a function with one that is not."""

    def __init__(self, f: Any, y: Any) -> None:
        self.f = f
        self.y = y
        self.k = np.zeros((2, 2))

    def step(self, h: float) -> None:
        self.k[0] = self.f(self.y)
        self.k[1] = self.f(self.y + h * self.k[0])
        self.y = self.y + 0.5 * h * (self.k[0] + self.k[1])


def test_arrays_apart_by_the_names_of_attributes() -> None:
    def swung(p: Any, n: int) -> float:
        stepper = Stepper(lambda y: np.array([y[1], -p[0] * y[0] - p[1] * y[1]]), np.zeros(2) + 1.0)
        for _ in range(n):
            stepper.step(0.1 if stepper.y[0] > 0.5 else 0.2)
        return float(stepper.y[0])

    rng = np.random.default_rng(0)
    both = value_and_grad(swung)
    for i in range(14):
        p = rng.uniform(0.5, 2.0, 2)
        value, slope = both(p, 3 + i % 7)
        assert_same(value, swung(p, 3 + i % 7))
        with jit(False):
            np.testing.assert_allclose(slope, both(p, 3 + i % 7)[1], rtol=1e-9)
    (entry,) = cache.entries.values()
    assert entry.folding.why is None and entry.hits > 5, entry.folding.why


def test_a_solver_that_is_asked_at_times() -> None:
    """As data are fitted: ``t_eval`` is an array, from outside or made by the function."""
    integrate = pytest.importorskip("scipy.integrate")
    times = np.linspace(0.0, 1.0, 5)

    def solved(a: float, b: float, own: int) -> float:
        asked = np.linspace(0.0, 1.0, 6) if own else times
        found = integrate.solve_ivp(
            pendulum, (0.0, 1.0), np.array([1.0, 0.0]), args=(a, b), rtol=1e-3, t_eval=asked
        )
        return float((found.y[0] * np.cos(found.t)).sum())

    both, rng = value_and_grad(solved, argnums=(0, 1)), random.Random(4)
    for i in range(12):
        args = rng.uniform(0.5, 4.0), rng.uniform(0.0, 0.5), i % 2
        value, slopes = both(*args)
        assert_same(value, solved(*args))
        with jit(False):
            assert slopes == pytest.approx(both(*args)[1], rel=1e-8)
    (entry,) = cache.entries.values()
    assert entry.folding.why is None and entry.hits >= 6, entry.folding.why


def test_differences_of_arrays() -> None:
    def f(x: Any, n: int) -> float:
        for _ in range(n):
            x = np.diff(x) if len(x) % 2 else np.diff(x) * 0.5
        return float(np.sum(x * x))

    both, rng = value_and_grad(f), np.random.default_rng(5)
    for i in range(14):
        x = rng.normal(size=(3, 9)) if i % 3 == 0 else rng.normal(size=9)
        value, slope = both(x, i % 4)
        assert_same(value, f(x, i % 4))
        with jit(False):
            np.testing.assert_allclose(slope, both(x, i % 4)[1], rtol=1e-9, atol=1e-12)
    assert any(entry.folding.programs for entry in cache.entries.values())
