"""Functions that give tuples: of arrays, and of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.comparing import compare, followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


def matrix(x: float, n: int) -> Any:
    t = np.arange(1.0, n + 1.0)
    return x * np.diag(t) + 0.1 * np.sqrt(t[:, None] * t) + np.sin(t[:, None] + 2.0 * t) * 0.05


def symmetric(x: float, n: int) -> Any:
    a = matrix(x, n)
    return a + a.T


def eigenvalues_and_vectors(x: float, n: int) -> float:
    w, v = np.linalg.eigh(symmetric(x, n))
    return float(w[0] + np.sum(w**2) + np.abs(v[0, -1]) * x)


def vectors_alone(x: float, n: int) -> float:
    _, v = np.linalg.eigh(symmetric(x, n))
    return float(np.abs(v[0]) @ np.arange(1.0, n + 1.0))


def orthogonal_and_triangular(x: float, n: int) -> float:
    total = 0.0
    for k in range(1, n):
        q, r = np.linalg.qr(matrix(x + k, k))
        total += float(np.sum(r[0] * q[:, 0])) if k % 2 else float(q[0, 0] * x)
    return total + x


def determinants(x: float, n: int) -> float:
    total = x
    for k in range(1, n):
        sign, log = np.linalg.slogdet(matrix(x, k))
        if sign > 0:
            total = total + log
        else:
            total = total * float(sign)
    return float(total)


def singular_values(x: float, n: int) -> float:
    parts = np.linalg.svd(matrix(x, n), full_matrices=False)
    return float(parts[1] @ parts[1] + np.sum(np.abs(parts[0] @ np.diag(parts[1]) @ parts[2])))


def without_a_derivative(x: float, n: int) -> float:
    a = np.sin(x * np.arange(1.0, n + 2.0))
    (where,) = np.nonzero(a > 0.0)
    m, e = np.modf(3.0 * a)
    whole = np.divmod(a, 0.3)
    return float(np.sum(a[where]) + np.sum(m * e) + np.sum(whole[0] * whole[1]))


def parts_of_numbers(x: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        q, r = divmod(x * k, 0.7)
        m, e = math.frexp(x * k + 1.0)
        fraction, whole = math.modf(x * k * 1.3)
        total += q * r + m * e + fraction * (whole if k % 2 else 1.0)
        i, j = divmod(k, 3)
        total += x * i - j
    return total


def one_part_on_some_ways(x: float, n: int) -> float:
    total = x
    for k in range(n):
        fraction, whole = np.modf(np.float64(x * k))
        if whole > 2.0:
            total = total + float(fraction) * x
        elif k % 2:
            total = total * 1.1
    return total


@pytest.mark.parametrize(
    "f",
    [
        eigenvalues_and_vectors, vectors_alone, orthogonal_and_triangular, determinants, singular_values,
        without_a_derivative, parts_of_numbers, one_part_on_some_ways,
    ],
)  # fmt: skip
def test_is_followed(f: Callable[..., float]) -> None:
    followed(f)


def divided_by_zero(x: float, n: int) -> float:
    try:
        q, r = divmod(x, n % 3 - 1)
    except ZeroDivisionError:
        return x * x
    return q + r * x


def singular(x: float, n: int) -> float:
    a = np.eye(2) * np.array([x, 0.0 if n % 2 else x])
    sign, log = np.linalg.slogdet(a)
    return float(log) if sign else x


def named_parts(x: float, n: int) -> float:
    return float(np.linalg.eigh(symmetric(x, n)).eigenvalues[0])


def complex_ones(x: float, n: int) -> float:
    a = np.array([[0.0, x], [-x if n % 2 else x, 0.0]])
    w, _ = np.linalg.eig(a)
    return float(np.abs(w[0]))


@pytest.mark.parametrize("f", [divided_by_zero, singular, named_parts, complex_ones])
@pytest.mark.filterwarnings("ignore")
def test_is_right(f: Callable[..., float]) -> None:
    compare(f)
