"""How the cost of each rule grows with the size of its arguments: ``python -m benchmarks.rules``.

For each line a function is called, and its pullback, at two sizes. An exponent of 1 means linear, 2 quadratic. The
floor is the exponent of the arguments, all of which a pullback fills. What grows faster than both function and floor,
by more than three quarters of a power, is marked: there is a better formula.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import jit, pullback

Make = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]
LINE = "{:24s} {:>8} {:>12} {:>12} {:>9} {:>9} {:>6}  {}"
TOLERANCE = 0.75


def vector(n: int) -> Any:
    return np.random.default_rng(n).normal(size=n)


def matrix(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, n))


def on_vectors(f: Callable[..., Any], count: int = 1) -> Make:
    return lambda n: (f, tuple(vector(n + i)[:n] for i in range(count)))


def on_matrices(f: Callable[..., Any]) -> Make:
    return lambda n: (f, (matrix(n),))


def read_in_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
    return total


def read_row_in_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.sum(x[i] * x[i])
    return total


def written_in_loop(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * 2.0
    return y


def gathered(x: Any) -> Any:
    return x[np.arange(len(x)) // 2]


def chain(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A chain of products that is cheap only in the right order."""
    thin = vector(2 * n).reshape(2, n)
    path = "ij,jk,kl->il"
    return lambda a, b, c: np.einsum(path, a, b, c, optimize=True), (thin, matrix(n), thin.T.copy())


BIG, MIDDLE, SMALL = (100_000, 1_600_000), (400, 3_200), (200, 800)

CASES: list[tuple[str, Make, tuple[int, int]]] = [
    ("sum", on_vectors(np.sum), BIG),
    ("mean over an axis", lambda n: (lambda x: np.mean(x, 0), (vector(n).reshape(-1, 100),)), BIG),
    ("var", on_vectors(np.var), BIG),
    ("prod", on_vectors(lambda x: np.prod(1 + x / len(x))), BIG),
    ("max", on_vectors(np.max), BIG),
    ("sort", on_vectors(np.sort), BIG),
    ("median", on_vectors(np.median), BIG),
    ("quantile", on_vectors(lambda x: np.quantile(x, 0.3)), BIG),
    ("cumsum", on_vectors(np.cumsum), BIG),
    ("cumprod", on_vectors(lambda x: np.cumprod(1 + x / len(x))), (10_000, 80_000)),
    ("maximum.accumulate", on_vectors(np.maximum.accumulate), BIG),
    ("logaddexp.reduce", on_vectors(np.logaddexp.reduce), BIG),
    ("x[index array]", on_vectors(gathered), BIG),
    ("x[1:-1]", on_vectors(lambda x: x[1:-1]), BIG),
    ("x[i] in a loop", on_vectors(read_in_loop), MIDDLE),
    ("X[i] in a loop", lambda n: (read_row_in_loop, (vector(100 * n).reshape(n, 100),)), MIDDLE),
    ("y[i] = … in a loop", on_vectors(written_in_loop), MIDDLE),
    ("interp", on_vectors(lambda x, y: np.interp(x, np.sort(y), y), 2), BIG),
    ("fft", lambda n: (np.fft.fft, (vector(n),)), (2**16, 2**20)),
    ("irfft", lambda n: (np.fft.irfft, (vector(n),)), (2**16, 2**20)),
    ("convolve, short kernel", lambda n: (np.convolve, (vector(n), vector(8))), BIG),
    ("outer", on_vectors(np.outer, 2), (400, 3_200)),
    ("A @ x", lambda n: (np.matmul, (matrix(n), vector(n))), (500, 4_000)),
    ("A @ B", on_matrices(lambda a: a @ a), SMALL),
    ("einsum of a chain", chain, (250, 2_000)),
    ("solve", lambda n: (np.linalg.solve, (matrix(n) + n * np.eye(n), vector(n))), SMALL),
    ("inv", on_matrices(lambda a: np.linalg.inv(a + len(a) * np.eye(len(a)))), SMALL),
    ("det", on_matrices(lambda a: np.linalg.det(a / len(a) ** 0.5)), SMALL),
    ("slogdet", on_matrices(lambda a: np.linalg.slogdet(a)[1]), SMALL),
    ("cholesky", on_matrices(lambda a: np.linalg.cholesky(a @ a.T + np.eye(len(a)))), SMALL),
    ("eigh", on_matrices(lambda a: np.linalg.eigh(a + a.T)[0]), SMALL),
    ("svd", on_matrices(lambda a: np.linalg.svd(a)[1]), SMALL),
    ("concatenate", on_vectors(lambda x: np.concatenate([x, x])), BIG),
    ("stack of n numbers", on_vectors(lambda x: np.stack([x[i] for i in range(len(x))])), MIDDLE),
    ("diagonal", on_matrices(np.diagonal), (100, 500)),
]


def seconds(f: Callable[[], Any], budget: float, least: int = 5) -> float:
    """The least time that a call takes."""
    best, end, calls = math.inf, time.perf_counter() + budget, 0
    while calls < least or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


def timed(make: Make, n: int, budget: float = 0.4) -> tuple[float, float, int]:
    """Seconds of the function, and of its pullback alone; and how many numbers it takes."""
    f, args = make(n)
    with jit(False):
        value, back = pullback(f, *args)
        dy = np.ones_like(value) if isinstance(value, np.ndarray) else type(value)(1.0)
        back(dy)
        size = sum(map(np.size, args))
        return seconds(lambda: f(*args), budget), seconds(lambda: back(dy), budget), size


def main(names: list[str]) -> None:
    print(LINE.format("", "n", "function", "pullback", "exponent", "exponent", "floor", ""))
    for name, make, sizes in CASES:
        if names and not any(x in name for x in names):
            continue
        small, large = (timed(make, n) for n in sizes)
        octaves = math.log(sizes[1] / sizes[0])
        function, back, floor = (
            math.log(b / a) / octaves for a, b in zip(small, large, strict=True)
        )
        mark = "<- grows faster" if back > max(function, floor) + TOLERANCE else ""
        times = [f"{x * 1e3:.3f} ms" for x in large[:2]]
        growth = [f"{x:.2f}" for x in (function, back, floor)]
        print(LINE.format(name, sizes[1], *times, *growth, mark), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
