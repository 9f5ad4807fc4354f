"""Numbers and arrays of float32, alone and beside those of float64, of ever other sizes: as they are traced."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.random_arrays import Maker
from wengert import jit, pullback, value_and_grad
from wengert.tracer.fold.region import BY_TYPES
from wengert.transforms import cache

pytestmark = [
    pytest.mark.usefixtures("folding_at_once"),
    pytest.mark.skipif(not BY_TYPES, reason="types depend on values here"),
]

CALLS = 16
MIXES = [(np.float32,), (np.float32, np.float64), (np.float64, np.float32, np.float32)]
PROGRAMS = 20


class Layer:
    def __init__(self, w: Any, b: Any) -> None:
        self.w = w
        self.b = b


def regression(m, v, u, s, a):
    return np.mean((m @ u + s - v) ** 2) + a * np.sum(u * u)


def by_rows(m, v, u, s, a):
    total = 0.0
    for i in range(len(v)):
        total += (m[i] @ u + s - v[i]) ** 2 * a
    return total / len(v)


def softmax(m, v, u, s, a):
    z = m - np.max(m, axis=1, keepdims=True)
    p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)
    return -np.mean(np.log(p[np.arange(len(v)), 0])) * a


def norms(m, v, u, s, a):
    return np.linalg.norm(v) + np.sqrt(np.sum(u**2)) * s + np.abs(m).max() ** a


def convolution(m, v, u, s, a):
    out = np.zeros((len(m), len(u)), dtype=m.dtype)
    for i in range(len(m)):
        for j in range(len(u)):
            out[i, j] = np.sum(m[max(0, i - 1) : i + 1, : j + 1] * a) * s
    return np.sum(out**2)


def of_both(m, v, u, s, a):
    wide = np.asarray(v, np.float64)
    return np.sum(v[:, None] * np.cos(m.astype(np.float64))) + np.sum(m * wide[:, None]) * s


def spread_into_doubles(m, v, u, s, a):
    doubles = np.array([[1e8], [1.0], [-1e8]])  # of which a sum in single precision is zero
    return np.sum(v * doubles) + np.sum(v[None, :] * doubles) * s + np.sum(s * doubles) * a


def written_to(m, v, u, s, a):
    narrow, wide = np.zeros(len(v) + 2, np.float32), np.zeros(len(v) + 2)
    narrow[2:] = np.asarray(v, np.float64) * 0.1 * a * 0.3
    narrow[0], narrow[1] = np.float64(a) * 0.1 * a, s * 0.7
    wide[2:] = v * a * 0.1
    wide[0], wide[1] = s * a * 0.3, s
    narrow *= a
    narrow += 1
    wide[1:] += narrow[:-1]
    return np.sum(narrow * wide)


def scalars(m, v, u, s, a):
    h = np.float32(0)
    for x in v:
        h = np.tanh(s * h * a + x) * 0.9 + math.sqrt(abs(x)) * s
        a = a * 0.9 + float(h) * s
    return h * a


def scalars_in_math(m, v, u, s, a):
    h = 0.0
    for x in v:
        h = math.tanh(a * h + x) + math.exp(-x * s) * 0.1
    return h


def rounded(m, v, u, s, a):
    return np.sum(a / (v * v + 1)) + np.sum(v / a) + np.sum(np.abs(v) ** a) * a


def of_doubles(m, v, u, s, a):
    c = np.float64(a) * 0.3
    return c * s + s / c + a / s + s**a + a**s + np.hypot(s, a) + np.arctan2(c, s) * v[0]


def in_containers(m, v, u, s, a):
    rows = [row * a for row in m]
    layer, known = Layer(u * 2.0, s), {"s": s * 0.1, "a": a}
    for row in rows:
        layer.b = layer.b + row[0] * known["s"]
        layer.w = layer.w * 0.9 + row
        known["a"] = known["a"] * 0.9 + float(row[-1])
    return np.sum(layer.w) * layer.b + known["a"] * known["s"] + sum(x * x for x in v)


def ways(m, v, u, s, a):
    total = a
    for x in v:
        total = total * x if x > 0.1 else total + s * 0.1
    return total * s if s > a else max(total, 0.1) * s


def kinds_of_it(m, v, u, s, a):
    return s * 2.0 if isinstance(s, float) else s * a * np.sum(v, dtype=np.float64)


def ties(m, v, u, s, a):
    return max(s, s * s, 0.1) * a + max([s * s, s]) + min([s, s * s * s])


FUNCTIONS = [
    regression, by_rows, softmax, norms, convolution, of_both, spread_into_doubles, written_to, scalars,
    scalars_in_math, rounded, of_doubles, in_containers, ways, kinds_of_it,
]  # fmt: skip


def difference(found: Any, traced: Any) -> str | None:
    """How gradients differ by type or dtype, or in value; None if they do not."""
    if type(found) is not type(traced):
        return f"{type(found)} for {type(traced)}"
    if isinstance(found, (tuple, list)):
        pairs = zip(found, traced, strict=True)
        return next((d for pair in pairs if (d := difference(*pair))), None)
    a, b = np.asarray(found), np.asarray(traced)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
    # What is rounded on the way is so alike; only sums may be added up in another order.
    rel = 1e-5 if a.dtype == np.float32 else 1e-11
    near = np.allclose(a, b, rtol=rel, atol=rel * max(1.0, np.max(np.abs(b), initial=0)))
    return None if near else f"{found} for {traced}"


def drawn(rng: np.random.Generator, kind: Any) -> tuple[Any, ...]:
    n, k = rng.integers(1, 6, size=2)
    arrays = [rng.normal(size=shape).astype(kind) for shape in ((n, k), n, k)]
    return *arrays, kind(rng.uniform(0.5, 2.0)), float(rng.uniform(0.5, 2.0))


def compared(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    both = value_and_grad(f, tuple(range(len(args))))
    value, found = both(*args)
    with jit(False):
        expected, traced = both(*args)
    assert repr(value) == repr(expected)
    assert (wrong := difference(found, traced)) is None, wrong


@pytest.mark.parametrize("mix", MIXES, ids=["single", "both", "mostly"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_program_for_all_sizes(f, mix):
    rng = np.random.default_rng(1)
    for i in range(CALLS):
        compared(f, drawn(rng, mix[i % len(mix)]))
    (entry,) = cache.entries.values()
    assert entry.folding.why is None and entry.folding.failures == 0, entry.folding.why
    assert len(entry.folding.programs) == len({*mix})
    assert entry.hits >= CALLS - 8, entry.hits


def test_equal_numbers_share_the_slope():
    rng = np.random.default_rng(1)
    for i in range(6):
        kind = MIXES[1][i % 2]
        m, v, u, _, a = drawn(rng, kind)
        compared(ties, (m, v, u, kind(1), a))


@pytest.mark.parametrize("first", range(0, PROGRAMS, 10))
def test_random_programs(first):
    for seed in range(first, first + 10):
        scope = {"np": np, "math": math}
        exec(compile(Maker(seed).program()[0], f"<random {seed}>", "exec"), scope)
        f, rng = scope["f"], np.random.default_rng(seed)
        both = value_and_grad(f, (0, 1, 2, 3))
        for i in range(8):
            n, kinds = int(rng.integers(1, 5)), rng.permuted([np.float32, np.float32, np.float64])
            kinds = kinds if i % 2 else [np.float32] * 3
            shapes = zip((n, n, (n, n)), kinds, strict=True)
            args = [rng.normal(size=shape).astype(kind) for shape, kind in shapes]
            args += [float(rng.normal()), int(rng.integers(0, 4))]
            value, found = both(*args)
            with jit(False):
                expected, traced = both(*args)
            assert repr(value) == repr(expected)
            for d, wanted in zip(found, traced, strict=True):
                assert type(d) is type(wanted)
                assert getattr(d, "dtype", None) == getattr(wanted, "dtype", None)
                np.testing.assert_allclose(d, wanted, rtol=2e-4, atol=2e-4)
    assert any(entry.folding.programs for entry in cache.entries.values())


def test_the_cotangent_of_a_float32_is_rounded_as_one():
    def f(x, a):
        return np.sum(x) * a

    for i, dy in enumerate([1.0, 0.1, -2.5, 1e30, -0.3, 1e-3, 1024.0]):
        x = np.ones(i % 2 + 1, np.float32) if dy < 1e9 else np.float32([1e20])
        back = pullback(f, x, 0.5)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = back(dy)
            with jit(False):
                traced = pullback(f, x, 0.5)[1](dy)
        assert [type(d) for d in found] == [np.ndarray, float] and found[0].dtype == np.float32
        assert found[0].tolist() == traced[0].tolist() and found[1] == traced[1]


def test_an_overflow_warns_as_it_does_in_plain_python():
    def f(x):
        return np.sum(x * 1e30)

    both = value_and_grad(f)
    for i in range(5):
        both(np.ones(i + 1, np.float32))
    with pytest.warns(RuntimeWarning, match="overflow encountered in multiply"):
        assert both(np.full(3, 1e30, np.float32))[0] == math.inf


def test_a_number_from_outside_that_becomes_a_double():
    scale = np.float32(0.5)

    def f(x):
        return np.sum(x) * scale

    for i in range(8):
        scale = (np.float32, np.float64, np.float32, float)[i % 4](0.1 * i)
        compared(f, (np.ones(i % 3 + 1, np.float32),))


def test_half_precision_is_traced():
    def f(x):
        return np.sum(x * x)

    for i in range(4):
        compared(f, (np.ones(i + 1, np.float16),))
    (entry,) = cache.entries.values()
    assert not entry.folding.programs
