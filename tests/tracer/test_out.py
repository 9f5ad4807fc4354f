"""Which arrays NumPy takes for ``out=``: what it refuses is refused, and the value is that of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import jit, value_and_grad

A = np.arange(6.0).reshape(2, 3)
B = np.arange(3.0) + 1

TARGETS: dict[str, Callable[[], Any]] = {
    "single precision": lambda: np.zeros(2, np.float32),
    "every other": lambda: np.zeros(4)[::2],
    "backwards": lambda: np.zeros(2)[::-1],
    "columns": lambda: np.zeros((2, 5))[:, 3],
    "complex": lambda: np.zeros(2, complex),
    "integers": lambda: np.zeros(2, int),
    "another shape": lambda: np.zeros(3),
    "its own": lambda: np.zeros(2),
}
FUNCTIONS: dict[str, Callable[[float, Any], Any]] = {
    "dot": lambda x, o: np.dot(A, B * x, out=o),
    "matmul": lambda x, o: np.matmul(A, B * x, out=o),
    "einsum": lambda x, o: np.einsum("ij,j->i", A, B * x, out=o),
    "sum": lambda x, o: np.sum(A * x, axis=1, out=o),
    "mean": lambda x, o: np.mean(A * x, axis=1, out=o),
    "std": lambda x, o: np.std(A * x, axis=1, out=o),
    "max": lambda x, o: np.max(A * x, axis=1, out=o),
    "cumsum": lambda x, o: np.cumsum((A * x)[0, :2], out=o),
    "take": lambda x, o: np.take(B * x, [0, 1], out=o),
    "clip": lambda x, o: np.clip((B * x)[:2], 0.0, 1.0, out=o),
    "concatenate": lambda x, o: np.concatenate([B[:1] * x, B[1:2]], out=o),
    "median": lambda x, o: np.median(A * x, axis=1, out=o),
    "exp": lambda x, o: np.exp(B[:2] * x, out=o),
    "round": lambda x, o: np.round(B[:2] * x, 1, out=o),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_what_numpy_takes(name: str, target: str) -> None:
    def f(x: float) -> Any:
        out = TARGETS[target]()
        result = FUNCTIONS[name](x, out)
        return np.real(result).sum() + np.abs(out).sum()

    def found(call: Callable[[float], Any]) -> Any:
        try:
            return call(1.5)
        except Exception as error:
            return type(error), str(error)

    both = value_and_grad(f)
    wanted = found(f)
    for on in (False, True, True, True, True):
        with jit(on):
            assert found(lambda x: both(x)[0]) == wanted
