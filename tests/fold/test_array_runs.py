"""Functions of arrays that are recorded: as in plain Python, one region for all sizes, and nothing done outside."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.test_programs import count_of_work
from wengert import clear_cache, grad, jit, value_and_grad
from wengert.tracer.fold.recorder import Passing, Unfolded
from wengert.tracer.fold.run import Known, kinds_of
from wengert.tracer.run import argument_names

Draw = Callable[[np.random.Generator], tuple[Any, ...]]


def size(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


def logistic(w, x, y):
    return np.mean(np.log1p(np.exp(-y * (x @ w)))) + 0.1 * (w @ w)


def draw_logistic(rng):
    n = size(rng, 1, 40)
    return rng.normal(size=3), rng.normal(size=(n, 3)), np.sign(rng.normal(size=n))


def ridge(x, y, weight):
    n, d = x.shape
    w = np.linalg.solve(x.T @ x + weight * np.eye(d), x.T @ y)
    r = y - x @ w
    return float(r @ r) / n


def draw_ridge(rng):
    n = size(rng, 3, 30)
    return rng.normal(size=(n, size(rng, 1, 3))), rng.normal(size=n), 0.5


def process(x, y, scale):
    k = np.exp(-0.5 * ((x[:, None] - x[None, :]) / scale) ** 2) + 0.1 * np.eye(len(y))
    factor = np.linalg.cholesky(k)
    return 0.5 * y @ np.linalg.solve(k, y) + np.sum(np.log(np.diag(factor)))


def process_by_slogdet(x, y, scale):
    k = np.exp(-0.5 * ((x[:, None] - x[None, :]) / scale) ** 2) + 0.1 * np.eye(len(y))
    sign, logdet = np.linalg.slogdet(k)
    return 0.5 * y @ np.linalg.solve(k, y) + 0.5 * sign * logdet


def draw_process(rng):
    n = size(rng, 5, 30)
    return rng.normal(size=n), rng.normal(size=n), 0.7


def descent(a, b):
    x = np.zeros(len(b))
    g = a @ x - b
    while np.linalg.norm(g) > 1e-2:
        x = x - 0.2 * g
        g = a @ x - b
    return x @ x


def draw_descent(rng):
    n = size(rng, 2, 8)
    return definite(rng, n), rng.normal(size=n)


def power(a):
    v, old, value, steps = np.ones(a.shape[0]), 0.0, 1.0, 0
    while abs(value - old) > 1e-9 and steps < 60:
        w = a @ v
        old, value = value, np.sqrt(w @ w)
        v = w / value
        steps += 1
    return value


def draw_power(rng):
    return (definite(rng, size(rng, 2, 8)),)


def clusters(points, centres):
    labels = None
    for _ in range(20):
        d = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        new = d.argmin(axis=1)
        if labels is not None and (new == labels).all():
            break
        labels = new
        rows = []
        for k in range(len(centres)):
            mask = labels == k
            if mask.any():
                rows.append(points[mask].mean(axis=0))
            else:
                rows.append(centres[k])
        centres = np.stack([rows[0], rows[1]])
    return np.sum(d.min(axis=1))


def draw_clusters(rng):
    return rng.normal(size=(size(rng, 4, 20), 2)), rng.normal(size=(2, 2))


def recurrent(xs, w, u, b):
    h = np.zeros(b.shape)
    for x in xs:
        h = np.tanh(w @ h + u @ x + b)
    return h.sum()


def draw_recurrent(rng):
    shapes = (size(rng, 1, 20), 3), (2, 2), (2, 3), (2,)
    return tuple(rng.normal(size=shape) for shape in shapes)


def ragged(rows):
    total = 0.0
    for x in rows:
        e = np.exp(x - x.max())
        total = total + np.log(e.sum())
    return total


def draw_ragged(rng):
    return ([rng.normal(size=size(rng, 1, 6)) for _ in range(size(rng, 1, 8))],)


def parts(x, counts):
    total, start = 0.0, 0
    for i, n in enumerate(counts):
        part = x[start : start + n]
        total += np.log(np.exp(part - part.max()).sum()) / (i + 1)
        start += n
    return total


def draw_parts(rng):
    counts = [size(rng, 1, 5) for _ in range(size(rng, 1, 8))]
    return rng.normal(size=sum(counts)), counts


def runge_kutta(y, tol):
    def f(y):
        return np.stack([y[1], -np.sin(y[0])])

    t, h = 0.0, 0.1
    while t < 1.0:
        if h > 1.0 - t:
            h = 1.0 - t
        k1 = f(y)
        k2 = f(y + h * k1)
        error = np.max(np.abs(k2 - k1)) * h / 2
        if error < tol:
            t += h
            y = y + h * (k1 + k2) / 2
            h *= 1.5
        else:
            h *= 0.5
    return y[0]


def draw_runge_kutta(rng):
    return rng.normal(size=2), 1e-3


SCALE = np.array([1.0, 2.0, 3.0])


def from_outside(x):
    return (x * SCALE + SCALE).sum()


def draw_from_outside(rng):
    return (rng.normal(size=3),)


def picked(x, i, mask):
    a, b = x[i], x[mask]
    total = a[0] * 2.0
    for y, z in zip(a, b):
        total = total + y * z
    return total + x[..., -1] + x[::2].sum() + len(b)


def draw_picked(rng):
    n = size(rng, 1, 9)
    return rng.normal(size=n), rng.integers(0, n, size=n), np.arange(n) % 2 == 0


def listed(x):
    squares = np.array([v * v for v in x[:3]])
    total = sum([v * w for v, w in zip(x, np.ones(len(x)))])
    return total + squares @ np.array([1.0, 2.0, 3.0]) + np.stack([x, 2.0 * x]).max()


def draw_listed(rng):
    return (rng.normal(size=size(rng, 3, 9)),)


PROGRAMS = [
    (listed, draw_listed),
    (logistic, draw_logistic), (ridge, draw_ridge), (process, draw_process),
    (process_by_slogdet, draw_process), (descent, draw_descent), (power, draw_power),
    (clusters, draw_clusters), (recurrent, draw_recurrent), (ragged, draw_ragged), (parts, draw_parts),
    (runge_kutta, draw_runge_kutta), (from_outside, draw_from_outside), (picked, draw_picked),
]  # fmt: skip


def same(x: Any, y: Any) -> bool:
    return type(x) is type(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()


def recorded(known: Known, f: Any, args: Any) -> tuple[Any, int]:
    return known.run(f, argument_names(f, len(args)), args)


@pytest.mark.parametrize(("f", "draw"), PROGRAMS)
def test_one_region_for_all_sizes(f, draw):
    rng, known = np.random.default_rng(1), Known()
    for i in range(60):
        args = draw(rng)
        assert kinds_of(args) is not None
        value, grown = recorded(known, f, args)
        assert same(value, f(*args))
        assert i < 40 or not grown


@pytest.mark.parametrize(("f", "draw"), PROGRAMS)
def test_kept_over_sizes(f, draw):
    """Values to the bit and gradients as traced, and few calls that are followed."""
    clear_cache()
    rng = np.random.default_rng(2)
    followed = 0
    for i in range(50):
        args = draw(rng)
        wanted = [k for k, x in enumerate(args) if not is_discrete(x)]
        with jit(True), count_of_work() as seen:
            value, gradient = value_and_grad(f, wanted)(*args)
        followed += i >= 20 and bool(seen)
        assert same(value, f(*args))
        with jit(False):
            expected = value_and_grad(f, wanted)(*args)[1]
        for d, e in zip(leaves(gradient), leaves(expected), strict=True):
            assert type(d) is type(e)
            np.testing.assert_allclose(d, e, rtol=1e-9, atol=1e-11)
    clear_cache()
    assert followed <= 4


def is_discrete(x: Any) -> bool:
    return np.asarray(x[0] if type(x) is list else x).dtype.kind != "f"


def leaves(x: Any) -> list[Any]:
    return [z for y in x for z in leaves(y)] if type(x) in (list, tuple) else [x]


# ------------------------------------------------------------------------------------------- refused


def added_in_place(x):
    x += 1.0
    return x.sum()


def item_set(x):
    x[0] = 1.0
    return x.sum()


def out_by_keyword(x):
    np.exp(x, out=x)
    return x.sum()


def out_by_position(x):
    np.exp(x, x)
    return x.sum()


def out_of_a_function(x):
    np.clip(x, 0.0, 0.5, x)
    return x.sum()


def sorted_in_place(x):
    x.sort()
    return x.sum()


def filled(x):
    x.fill(0.0)
    return x.sum()


def shuffled(x):
    np.random.shuffle(x)
    return x.sum()


def uninitialised(x):
    return (x * 0.0 * np.empty(3)).sum()


@pytest.mark.parametrize(
    "f",
    [
        added_in_place, item_set, out_by_keyword, out_by_position, out_of_a_function, sorted_in_place,
        filled, shuffled, uninitialised,
    ],
)  # fmt: skip
def test_refused_before_anything_is_done(f):
    x, state = np.array([3.0, 1.0, 2.0]), np.random.get_state()[2]
    with pytest.raises(Unfolded):
        recorded(Known(), f, (x,))
    assert x.tolist() == [3.0, 1.0, 2.0] and x.flags.writeable
    assert np.random.get_state()[2] == state


@pytest.mark.parametrize(
    "x",
    [
        np.ones(2, np.float16), np.ones(2, complex), np.ones(2, object), np.ma.ones(2), np.ones(2, ">f8"),
        np.float16(1.0), np.array(["a"]),
    ],
)  # fmt: skip
def test_arguments_of_other_types(x):
    assert kinds_of((x,)) is None


def test_types_are_kept_apart_and_sizes_are_not():
    kinds = [
        np.ones(2),
        np.ones(3),
        np.ones((2, 1)),
        np.ones(2, int),
        np.ones(2, bool),
        np.float64(1),
    ]
    assert len({kinds_of((x,)) for x in kinds}) == 5


# ------------------------------------------------------------------------ what NumPy warns of or raises


def exponential(x):
    return np.exp(x).sum()


def quotient(x):
    return (1.0 / x).sum()


def of_numbers(x):
    return 1.0 / (x.sum() - x.sum())


@pytest.mark.parametrize("f", [exponential, quotient, of_numbers])
def test_an_event_is_left_to_the_trace(f):
    known, x = Known(), np.array([0.0, 1e4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Passing):
            recorded(known, f, (x,))
        with pytest.warns(RuntimeWarning):
            value_and_grad(f)(x)
    if f is not of_numbers:
        assert same(recorded(known, f, (np.ones(2),))[0], f(np.ones(2)))


def test_underflow_is_none():
    assert recorded(Known(), exponential, (np.array([-1e4]),))[0] == 0.0


def test_another_state_of_errors():
    with np.errstate(over="ignore"), pytest.raises(Passing):
        recorded(Known(), exponential, (np.ones(2),))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.cholesky(-np.eye(len(x))).sum() + x.sum(),
        lambda x: (x + np.ones(len(x) + 1)).sum(),
        lambda x: x[len(x)],
        lambda x: 1.0 * x[0] if x else 0.0,
    ],
)
def test_what_raises_is_left_to_the_trace(f):
    with pytest.raises(Passing):
        recorded(Known(), f, (np.ones(2),))


# ------------------------------------------------------------------------------------------- outside


def test_an_array_from_outside_is_read_anew():
    table = {"w": np.ones(2)}
    w = table["w"]

    def f(x):
        return (x * w).sum()

    known = Known()
    assert recorded(known, f, (np.ones(2),))[0] == 2.0
    w[:] = 3.0
    assert recorded(known, f, (np.ones(2),)) == (6.0, 0)
    w = np.full(5, 2.0)
    assert recorded(known, f, (np.ones(5),)) == (10.0, 0)


def test_a_program_reads_it_anew():
    clear_cache()
    w = np.ones(3)

    def f(x):
        total = 0.0
        for y in x * w:
            total = total + y
        return total

    for n in [*range(1, 12)] * 4:
        w = np.full(n, float(n))
        assert grad(f)(np.ones(n)).tolist() == [float(n)] * n
        w[:] = 7.0
        assert grad(f)(np.ones(n)).tolist() == [7.0] * n


def test_no_array_is_kept():
    known, x, rows = Known(), np.ones(3), [np.ones(2)]
    recorded(known, lambda x, rows: (x * x).sum() + rows[0].sum(), (x, rows))
    held = [weakref.ref(x), weakref.ref(rows[0])]
    for op in known.folded.ops():
        op.now = None
    del x, rows
    gc.collect()
    assert [ref() for ref in held] == [None, None]


def test_none_is_no_array():
    def f(x, b):
        if b is None:
            return x.sum()
        return (x + b).sum()

    assert recorded(Known(), f, (np.ones(2), np.ones(2)))[0] == 4.0
    assert recorded(Known(), f, (np.ones(2), None))[0] == 2.0
