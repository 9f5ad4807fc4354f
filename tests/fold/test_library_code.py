"""What libraries that are written in Python do: followed, among them solvers of SciPy's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import jit, value_and_grad
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
