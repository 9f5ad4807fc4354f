"""Imports inside of functions."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


def of_a_module(x: float, n: int) -> float:
    import math as m

    return sum([m.sin(x * k) for k in range(n)])


def of_names(x: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        from math import cos, pi

        total += cos(x * k) * pi
    return total


def of_submodules(x: float, n: int) -> float:
    import numpy.linalg
    import numpy.linalg as la
    from numpy import diag, linalg

    a = diag(numpy.arange(1.0, n + 1.0)) * x
    return float(la.det(a) + linalg.norm(a.ravel()) + numpy.linalg.det(a))


def on_one_way(x: float, n: int) -> float:
    if n > 3:
        from math import exp as f
    else:
        f = math.sin
    return f(x) * n


@pytest.mark.parametrize("f", [of_a_module, of_names, of_submodules, on_one_way])
def test_is_followed(f: Callable[..., float]) -> None:
    followed(f)


def of_nothing(x: float, n: int) -> float:
    try:
        import no_such_module_at_all  # type: ignore[import-not-found]
    except ImportError:
        return x * n
    return float(no_such_module_at_all.x)


def of_no_name(x: float, n: int) -> float:
    try:
        from math import no_such_name  # type: ignore[attr-defined]
    except ImportError:
        return x * n
    return float(no_such_name)


@pytest.mark.parametrize("f", [of_nothing, of_no_name])
def test_is_right(f: Callable[..., float]) -> None:
    compare(f)


def scaled(x: float, n: int) -> float:
    import module_of_a_test  # type: ignore[import-not-found]

    for _ in range(n):
        x = module_of_a_test.scale(x)
    return x


def test_another_module_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    both = value_and_grad(scaled)
    for k in range(12):
        module = types.ModuleType("module_of_a_test")
        factor = 2.0 if k < 6 else 3.0
        exec(f"def scale(x): return {factor} * x", vars(module))
        if k in (0, 6):
            monkeypatch.setitem(sys.modules, "module_of_a_test", module)
        assert_same(both(0.5, k % 3), (0.5 * factor ** (k % 3), factor ** (k % 3)))


def test_a_module_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported by the very call that is recorded, or refused."""
    count: list[int] = []
    monkeypatch.setattr(sys, "counted_by_a_test", count, raising=False)
    text = "import sys\nsys.counted_by_a_test.append(1)\ndef scale(x): return 2.0 * x\n"
    (tmp_path / "module_of_a_test.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "module_of_a_test", raising=False)
    both = value_and_grad(scaled)
    for k in range(8):
        assert_same(both(0.5, k % 3), (0.5 * 2.0 ** (k % 3), 2.0 ** (k % 3)))
    assert count == [1]
    monkeypatch.delitem(sys.modules, "module_of_a_test")
