"""Functions that write to arrays which they have made: followed, to the bit, and refused where it is not certain."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

from wengert import clear_cache, jit, value_and_grad
from wengert.tracer.fold.recorder import Unfolded
from wengert.tracer.fold.run import Known
from wengert.tracer.fold.written import ANEW
from wengert.tracer.run import argument_names
from wengert.transforms import cache

from .comparing import compare, followed
from .random_writes import PRELUDE, Writer, judge

PROGRAMS = int(os.environ.get("WENGERT_FOLD_PROGRAMS", "60"))
TOGETHER = 10

pytestmark = pytest.mark.usefixtures("folding_at_once")


# ------------------------------------------------------------------------------------------- followed


def item_by_item(x, n):
    u = np.empty(n + 1)
    u[0] = 1.0
    for i in range(1, n + 1):
        u[i] = x * u[i - 1] if u[i - 1] < 2 else u[i - 1] / x
    return u[n] + 0.1 * u[0]


def heat(x, n):
    u, turns = np.zeros(n + 4), 0
    u[1], u[-1] = x, 2.0 * x
    while True:
        change = 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[1:-1] += change
        turns += 1
        if np.max(np.abs(change)) < 0.02 or turns > 30:
            break
    return u @ u + u.sum()


def in_place(x, n):
    u = np.arange(n + 2.0) * x
    v = u.copy()
    for _ in range(n):
        v *= x
        v += u
        if v[-1] > 3:
            v -= 1.0
    return np.dot(v, u)


def rows(x, n):
    m = np.ones((n + 1, 3))
    for k in range(1, n + 1):
        m[k] = m[k - 1] * np.array([x, 1.0, 0.5])
        m[k, 0] += m[k - 1, 1] * x
        if m[k, 0] > 2:
            m[:, 1] = m[:, 0] * 0.5
    return np.sum(m[-1]) + m[0, 2] * m[n, 1]


def transposed(x, n):
    u = np.zeros((2, 3))
    v = u.T
    for k in range(n):
        u[0] += x
        v[k % 3, 1] = x * k
        np.transpose(u)[1] *= x
    return v[0, 0] * x + np.dot(u.T, np.array([x, 1.0])).sum() + np.sum(v[1:].T * u[:, 1:])


def stages(x, n):
    a = np.array([[0.0, 0.0], [0.5, 0.0], [0.2, 0.7]])
    y, ys, k = np.array([x, 1.0]), [], np.empty((3, 2))
    for i in range(n):
        k[0] = y * x
        for s, c in enumerate(a[1:], start=1):
            k[s] = np.sin(y + np.dot(k[:s].T, c[:s]))
        y = y + 0.1 * np.dot(k.T, np.array([0.2, 0.3, 0.5]))
        if k[-1, 0] > 0.1:
            y *= 0.9
        ys.append(y)
    rows = np.vstack(ys) if n > 3 else k
    return rows.T[0, -1] * x + rows.sum()


def collected_as_it_is(x, n):
    held, rows = np.zeros(2), []
    for k in range(n):
        held[k % 2] += x
        rows.append(held)
        rows.append(held[:1] if k > 7 else held * x)
    first = np.array(rows)
    held[0] = 5.0 * x
    ends = [r[0] * x for r in rows]
    return np.sum(first * first) + np.stack(rows)[-1, 0] + np.array(ends).sum() + held[1]


def the_same_array(x, n):
    u = np.zeros(3)
    v, w = np.asarray(u), u.astype(float, copy=False)
    for k in range(n):
        v[k % 3] += x
        np.asarray(w, dtype=np.float64)[0] *= x
        np.atleast_1d(np.asanyarray(u))[1] = x * k
    return u.sum() + v[0] * w[1]


def a_view_that_is_kept(x, n):
    u = np.zeros(n + 3)
    v = u[1:]
    v[0] = x
    u[1] *= 2.0
    s = 0.0
    for i in range(n):
        s = s + v[0] * v[i]
        v[i] = u[i] * x + 1
        if u[i] > 1:
            u[0] += 0.1 * v[i]
    return s + v.sum()


def a_view_in_a_list(x, n):
    m = np.ones((3, 4))
    parts = [m[0], m[:, 1], m[1:, 2:]]
    for i in range(n):
        parts[i % 2][1:] = x * parts[0][0]
        parts[2] *= 0.5 * x
        if m[1, 1] > 0.7:
            m[1] -= 0.1
    return np.sum(m * m) + parts[1].sum()


def swapped(x, n):
    u, v = np.zeros(n + 2), np.ones(n + 2)
    for _ in range(n):
        v[1:-1] = x * u[:-2] + 0.5 * u[2:] + v[1:-1]
        if v[1] > 1.5:
            v[0] = x
        u, v = v, u
    return u.sum() - v[0]


def computed_before_it_is_written(x, n):
    u = np.ones(4) * x
    v = u[1:]
    s = 0.0
    for i in range(n):
        c = v - x * 0.3
        u[2] = x * i
        s = s + c.sum() if i % 2 else s + c[1]
    return s + u.sum()


def by_a_mask(x, n):
    u = np.arange(-1.0, n + 1) * x
    for i in range(n):
        u[u < 0] = 0.1 * x
        u[u > 0.5] *= 0.9
        if u[0] > 0.2:
            u[i] -= x
        u[u < 0.3] = u[u < 0.3] * x
    return np.sum(u * u)


def by_a_helper(x, n):
    def step(u, a):
        u[0] = a * u[1]
        u[1] = u[0] + 1.0
        return u, u[1:]

    u = np.ones(2)
    for _ in range(n):
        u, v = step(u, x)
        if u[0] > 3:
            v[0] = 0.5
    return u[0] * u[1]


def by_recursion(x, n):
    def down(p, q, k):
        if k <= 0:
            return q * p[0]
        p[k % 3] += q
        z = np.zeros(2)
        z[0] = p[k % 3]
        z += x
        return down(p, 0.9 * q, k - 1) + z.sum() * p[1]

    return down(np.ones(3), x, n)


def in_a_list(x, n):
    us = [np.zeros(2) for _ in range(n + 1)]
    for i in range(n):
        us[i + 1][0] = us[i][0] + x
        us[i + 1][1] = us[i][1] * x + 1
        if us[i + 1][0] > 2:
            us[i][1] = x
    return sum(u[0] * u[1] for u in us)


class Optimiser:
    def __init__(self, w):
        self.w = w
        self.m = np.zeros_like(w)

    def step(self, g):
        self.m *= 0.9
        self.m += 0.1 * g
        self.w -= 0.1 * self.m


def in_an_object(x, n):
    o = Optimiser(np.array([x, 1.0, 2.0]))
    for _ in range(n):
        o.step(2 * o.w * x)
        if o.w[0] < 0.3:
            o.w[0] = 0.3 * x
    return np.sum(o.w)


def by_a_closure(x, n):
    u = np.zeros(4)
    total = x

    def note(q):
        nonlocal total, u
        u[1:] += q
        total = total + u[-1]
        if total > 4:
            u = u * 0.5

    for i in range(n):
        note(x * i)
    return total + u.sum()


def onto_itself(x, n):
    u = np.arange(1.0, n + 3) * x
    for _ in range(n):
        u[1:] = u[:-1]
        u[:] = u[::-1] * 0.9
        u[0], u[-1] = u[-1], u[0]
        if u[0] > 1:
            u += u
        u[:2] += u[-2:] * x
    return u @ np.arange(n + 2.0)


def iterated(x, n):
    m = np.zeros((n, 2))
    s = 0.0
    for i, row in enumerate(m):
        row[0] = x * i
        row[1] = s
        for z in row:
            s = s + z if z < 2 else s - z
    a, b = m[0]
    return s + a * b + len(m)


def one_way_alone(x, n):
    u = np.zeros(3)
    if n > 3:
        u[1] = x
        if x > 1.0:
            u[1:] = u[1] * x
    return u.sum() + x


def what_is_written_over(x, n):
    """The root has an infinite slope at zero, and nothing comes of it."""
    u = np.zeros(3)
    for i in range(n):
        u[i % 3] = np.sqrt(u[2] * 0.0) + x
        u[i % 3] = x * x
        if i > 2:
            u[2] = 0.0
    return u.sum()


def in_a_generator(x, n):
    u = np.zeros(3)

    def g(i):
        u[i % 3] += x * i
        return u[0] + u.sum()

    s = sum(g(i) for i in range(n))
    return s + u[1] + x


def between_exceptions(x, n):
    u = np.ones(3)
    s = 0.0
    for i in range(n):
        try:
            u[0] = u[1] * x
            s = s + 1 / (i - 2)
            u[1] = u[0] + x
        except ZeroDivisionError:
            u[2] = u[0] * 2
    return s + u.sum()


def left_early(x, n):
    u = np.zeros((3, 3))
    for i in range(n):
        for j in range(3):
            u[i % 3, j] = x * j + u[j, i % 3]
            if u[i % 3, j] > 1.5:
                break
        else:
            u[i % 3] *= 0.5
        if u.sum() > 4:
            break
    return np.sum(u * u) + x


def handed_back(x, n):
    def build(k):
        u = np.zeros(3)
        u[k % 3] = x
        if k > 0:
            w = build(k - 1)
            u += w * x
            w[0] = 3.0
            u[1:] += w[:-1]
        return u

    u = build(n)
    return u @ u


def made_in_a_loop(x, n):
    u = np.ones(3)
    for i in range(n):
        v = np.empty(3)
        v[0] = x
        v[1:] = u[:-1] * x
        u[2] = v[0] + v[1]
        if u[2] > 2:
            v[1] = u[2]
        u = v
    return u.sum()


def filled_with_a_number(x, n):
    u = np.full(n + 1, x)
    for i in range(n):
        u[i + 1] = u[i] * u[i + 1] if u[i] < 1 else u[i] * 0.5
    return u.sum() + u[0]


def of_numbers(x, n):
    u = np.array([x, 2 * x, x * x])
    for i in range(n):
        if u[i % 3] > 1:
            u[i % 3] = 0.3
        u[0] += u[1] * u[2]
    return np.prod(u)


def a_system(x, n):
    m = np.eye(3) * 3.0
    b = np.ones(3)
    for i in range(n):
        m[i % 3, (i + 1) % 3] += x
        m[:, 1] -= 0.1 * m[:, 0] * x
        m[1:, 1:] = m[1:, 1:] * 0.9 + x * 0.1
        b = np.linalg.solve(m, b)
        if b[0] > 0.1:
            b[1] = x
    return b @ m @ b


def items_of_a_list(x, n):
    us = [np.zeros(2), np.ones(2), np.ones(2) * x]
    for i in range(n):
        us[i % 3] += x
        us[0], us[2] = us[2], us[0]
        us[1][:] = us[0] * us[2]
        if us[1][0] > 2:
            us[1] *= 0.1
    return us[0] @ us[1] + us[2].sum()


def in_a_dict(x, n):
    d = {"a": np.ones(3), "b": np.zeros(3)}
    for i in range(n):
        d["a"][1:] *= x
        d["b"] += d["a"]
        if i == 2:
            d["a"] = d["b"]
        d["a"][0] -= 0.1
    return d["a"] @ d["b"]


def while_it_is_gone_through(x, n):
    u = np.ones(4) * x
    for k in range(n):
        for i, v in enumerate(u):
            u[(i + 1) % 4] = v * 0.5 + u[i] * x * 0.3
        if u[0] > 1:
            u[0] = 0.2
    return u.sum()


def views_of_views(x, n):
    u = np.zeros(6)
    v = u[1:]
    w = v[::2]
    z = w[::-1]
    for i in range(n):
        z[0] = x * i
        w += 0.5 * x
        v[1] = z[1] * u[1]
        z[1:] = w[:-1]
        if z.sum() > 3:
            v[:] = v[::-1]
    return u @ u + z[0] + w[1] * v[2]


def one_of_two(x, n):
    u = np.ones(3)
    v = np.zeros(3)
    for i in range(n):
        w = u if u[0] < v[0] + 1.2 else v
        w[i % 3] = x * w[0] + 0.3
        z = w[1:] if i % 2 else u[:2]
        z *= x
        w[0] += 0.2
    return u @ v + u.sum()


def a_view_that_changes(x, n):
    u = np.zeros(5)
    v = u[:2]
    for i in range(n):
        v[0] += x
        v[1] = v[0] * x
        if i % 2:
            v = u[2:]
        else:
            v = v[::-1]
    return u.sum() + v[0]


def without_a_derivative(x, n):
    c = np.zeros(4)
    s = x
    for i in range(n):
        c[i % 4] = i
        if c.sum() > 2:
            c[0] = 1.0
        y = np.ones(4) * x
        y[c > 1] *= 2.0
        s = s + y @ c
    return s


def in_tuples(x, n):
    u, v = np.zeros(2), np.ones(2)
    pair = (u, v)
    for i in range(n):
        a, b = pair
        a[0] += x * b[1]
        b[1] = a[0] if a[0] < 2 else x
        pair = (b, a) if i % 2 else (a, b)
    return pair[0] @ pair[1] + u[0]


def read_as_a_whole(x, n):
    u = np.ones(4) * x
    for i in range(n):
        c = np.cumsum(u)
        c[1] = 0.5
        u[:] = c / c.sum()
        if u.max() > 0.6:
            u[0] = x
        u = np.where(u > 0.3, u, 0.1)
        u[1] += np.std(u) + np.linalg.norm(u)
    return u.sum() + u.max()


def a_row_and_a_column(x, n):
    m = np.outer(np.arange(3.0), np.ones(3)) * x
    for i in range(n):
        m += np.outer(m[0], m[:, 1]) * 0.1
        m[i % 3] = m[:, i % 3] + x
        r = m[i % 3]
        r[1:] /= 1.0 + r[0] * r[0]
        if m.sum() > 3:
            m /= m.sum()
    return np.sum(m[1]) + m[2, 2]


def of_many_names(x, n):
    u = np.zeros(3)
    us = []
    for i in range(n):
        us.append(u)
        u[0] += x
        if i % 2:
            u = u.copy()
    for w in us:
        w[1] += x
    return sum(w.sum() for w in us) + u[0]


def a_view_from_a_helper(x, n):
    def part(u, k):
        return u[k:]

    u = np.zeros(4)
    for i in range(n):
        v = part(u, i % 3)
        v += x
        v[0] *= 0.5
        if v[0] > 2:
            part(v, 0)[0] = x
    return u.sum()


def until_none_is_left(x, n):
    u = np.arange(4.0) * x
    k = 0
    while np.any(u > 0.5) and k < 5 * n:
        u[u > 0.5] -= 0.25
        k += 1
    return u.sum() + len(u[u > 0.1]) * x


def three_axes(x, n):
    t = np.zeros((2, 3, 4))
    for i in range(n):
        t[i % 2, :, 1] = x
        t[:, i % 3] += t[:, (i + 1) % 3] * 0.5 + x
        t[..., 0] = t[..., 1]
        t[0] *= 0.9
        if t[1, 1, 1] > 1:
            t[1] -= t[0]
    return np.sum(t * t) + t[0, 1].sum()


def values_that_are_decided_on(x, n):
    u = np.ones(4)
    for i in range(n):
        u[1:] += x if u[0] > 1 else u[:3]
        u[0] += 0.3 * u[-1] if i % 2 else x
        u[1:] *= 0.5 if u.sum() > 5 else 1.0
    return u.sum()


def sequences_are_written(x, n):
    m = np.zeros((3, 2))
    for i in range(n):
        m[i % 3] = [x, 2.0]
        m[(i + 1) % 3] = x * i, m[0, 0]
        m[:, 0] = [m[0, 1], x, 1.0]
        if m.sum() > 9:
            m[0] = (0.0, 1.0)
    return np.sum(m * m)


def made_when_it_is_needed(x, n):
    u = None
    for i in range(n):
        if u is None:
            u = np.zeros(3)
        u[i % 3] += x
        if isinstance(u, np.ndarray) and not isinstance(u, list) and u.ndim == 1:
            u[0] += u.shape[0] * x
        if u[0] > 6:
            u = None
    return x if u is None else u.sum()


def one_array_three_times(x, n):
    u = np.zeros(2)
    us = [u] * 3
    for i in range(n):
        us[i % 3][0] += x
        us[1] = us[0].copy() if us[0][0] > 1 else us[2]
        us[1][1] += us[0][0]
    return sum(w.sum() for w in us)


def zipped(x, n):
    u, v = np.ones(3), np.zeros(3)
    for k in range(n):
        for i, (a, b) in enumerate(zip(u, v)):
            v[i] = a * x + b
            if v[i] > 2:
                u[i] = 0.5 * b
    return u @ v


def asked_for_its_identity(x, n):
    u, v = np.ones(3), np.zeros(3)
    s = x
    for k in range(n):
        w = u if k % 2 else v
        if w is u:
            u[0] += x
        else:
            v[0] += x * x
        s = s + w[0]
    return s + u @ v


def until_all_are_close(x, n):
    u = np.arange(4.0) * x
    k = 0
    while not np.allclose(u, u[0]) and k < n:
        u[:] = 0.5 * (u + np.roll(u, 1))
        k += 1
    return u @ u + np.argmax(u) * x


def empty_at_first(x, n):
    us = [np.empty(n) for _ in range(2)]
    for u in us:
        for i in range(n):
            u[i] = x + i
    m = np.empty((2, n))
    m[0], m[1] = us
    if m.sum() > 10:
        m[0] *= 0.5
    return np.sum(m * m) if n > 1 else m[0, 0]


def where_a_slope_is_infinite(x, n):
    u = np.zeros(4)
    for i in range(n):
        z = np.sqrt(u) + x  # slope infinite where u is zero
        u[1:] = z[1:] * 0.0 + x * i
        if i > 1:
            u[0] = z[0]
    return u.sum()


def a_sieve(x, n):
    prime = np.ones(n + 12, dtype=bool)
    prime[:2] = False
    for i in range(2, n + 12):
        if prime[i]:
            prime[2 * i :: i] = False
    s = 0.0
    for i in range(n + 12):
        if prime[i]:
            s = s + x**2 / i
    return s + x * np.sum(prime)


def counted(x, n):
    c = np.zeros(3, dtype=int)
    s = x
    for i in range(n):
        c[i * i % 3] += 1
        if c[1] > 1:
            c[0] = -1
        s = s + x * c[1] + c.sum() * 0.1
    c *= 2
    return s * x + c[0] + float(c[1])


def by_a_permutation(x, n):
    p = np.arange(5)
    u = np.arange(5.0) * x
    for i in range(n):
        p[0], p[i % 5] = p[i % 5], p[0]
        u[p[1]] += x
        u[:] = u[p] * 0.9
        if u[p[0]] > 1:
            p[:] = p[::-1]
    return u @ (p * 1.0) + u[p][1]


def masks_are_written(x, n):
    done = np.zeros(4, dtype=bool)
    u = np.ones(4) * x
    for i in range(n):
        done[i % 4] = u[i % 4] > 0.8
        u[done] *= 0.7
        u[~done] += 0.1 * x
        done |= u < 0.3
        if done.all():
            done[0] = False
    return u.sum() + x * np.count_nonzero(done)


def shortest_ways(x, n):
    d = np.full(5, 1e9)
    d[0] = 0.0
    seen = np.zeros(5, dtype=bool)
    prev = np.empty(5, dtype=int)
    prev[:] = -1
    w = np.arange(25.0).reshape(5, 5) % (n + 2) + x
    for _ in range(5):
        i = -1
        for j in range(5):
            if not seen[j] and (i < 0 or d[j] < d[i]):
                i = j
        seen[i] = True
        for j in range(5):
            if d[i] + w[i, j] < d[j]:
                d[j] = d[i] + w[i, j]
                prev[j] = i
    return d.sum() + x * prev[4]


def of_two_dtypes(x, n):
    us = [np.zeros(2), np.zeros(2, dtype=int)]
    for i in range(n):
        us[0][0] += x
        us[1][1] += i
        if us[1][1] > 3:
            us[0][1] = us[1][1] * x
        us[0], us[1] = us[0], us[1]
    return us[0].sum() * us[1].sum()


FOLLOWED = [
    computed_before_it_is_written,
    transposed, stages, collected_as_it_is, the_same_array,
    item_by_item, heat, in_place, rows, a_view_that_is_kept, a_view_in_a_list, swapped, by_a_mask, by_a_helper,
    by_recursion, in_a_list, in_an_object, by_a_closure, onto_itself, iterated, one_way_alone, what_is_written_over,
    in_a_generator, between_exceptions, left_early, handed_back, made_in_a_loop, filled_with_a_number, of_numbers,
    a_system, items_of_a_list, in_a_dict, while_it_is_gone_through, views_of_views, one_of_two, a_view_that_changes,
    without_a_derivative, in_tuples, read_as_a_whole, a_row_and_a_column, of_many_names, a_view_from_a_helper,
    until_none_is_left, three_axes, values_that_are_decided_on,
    sequences_are_written, made_when_it_is_needed, one_array_three_times, zipped, asked_for_its_identity,
    until_all_are_close, empty_at_first, where_a_slope_is_infinite,
    a_sieve, counted, by_a_permutation, masks_are_written, shortest_ways, of_two_dtypes,
]  # fmt: skip


@pytest.mark.parametrize("f", FOLLOWED)
def test_followed(f):
    followed(f)


@pytest.mark.parametrize("f", FOLLOWED)
def test_on_flat_tapes(f, monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", "0")
    compare(f)


def test_sums_of_what_lies_apart_are_the_same_to_the_bit():
    def f(x, n):
        m = np.empty((40, 9))
        m[:] = np.sin(np.arange(360.0)).reshape(40, 9) * x
        for i in range(n):
            m[i] += x * m[:, ::2].sum() * 1e-3
            if m[i, 0] > 0.1:
                m[::3, 1:7:2] *= np.sum(np.sin(m[1:, 2::3]))
        return np.dot(m[::2, 3], m[::2, 4]) + m[1:, 1:5].sum() + np.mean(m.copy())

    followed(f)


def test_two_names_that_need_not_mean_one_list():
    """A run in which they do not is reason to write the program anew."""

    def f(x, n):
        u, v = [0.0] * 3, [1.0] * 3
        for _ in range(n):
            v[1] = x * u[0] + 0.5 * u[2] + v[1]
            if v[1] > 1.5:
                v[0] = x
            u, v = v, u
        return sum(u) - v[0]

    followed(f)


# ------------------------------------------------------------------------------------------- refused


def a_float_in_an_array_of_integers(x, n):
    c = np.zeros(3, dtype=int)
    for i in range(n):
        c[i % 3] = 10 * x
    return x * c.sum()


def of_another_dtype(x, n):
    u = np.zeros(3, dtype=np.float16)
    u[0] = n
    return x * float(u[0])


def reshaped(x, n):
    u = np.zeros(4)
    v = u.reshape(2, 2)
    for _ in range(n):
        u[0] += x
    return v.sum()


def by_many_numbers(x, n):
    u = np.zeros(4)
    u[np.array([0, 1, 0])] = np.array([x, 2.0 * x, 3.0 * x])
    return u.sum() * n


def looked_at_when_empty(x, n):
    u = np.empty(3) * 0.0
    return x * n if len(u) else x


def scattered(x, n):
    u = np.zeros(4)
    np.add.at(u, [0, 0, 1], x)
    return u.sum() * n


def asked_for_its_truth(x, n):
    u = np.zeros(1)
    s = x
    for i in range(n):
        u[0] = i % 2
        if not u:
            s = s * 0.9
    return s


REFUSED = [
    a_float_in_an_array_of_integers,
    of_another_dtype,
    reshaped,
    by_many_numbers,
    asked_for_its_truth,
    looked_at_when_empty,
    scattered,
]


@pytest.mark.parametrize("f", REFUSED)
def test_refused(f):
    entry = compare(f)
    assert entry.folding.why is not None
    assert not entry.folding.programs


def recorded(f, *args):
    return Known().run(f, argument_names(f, len(args)), args)


def test_arguments_are_not_written_to():
    def item(x):
        x[0] = 1.0
        return x.sum()

    def in_place(x):
        y = x
        y += 1.0
        return y.sum()

    def through_a_view(x):
        y = np.asarray(x)[1:]
        y *= 2.0
        return y.sum()

    for f in (item, in_place, through_a_view):
        x = np.array([1.0, 2.0])
        with pytest.raises(Unfolded):
            recorded(f, x)
        assert x.tolist() == [1.0, 2.0]


def test_an_array_of_an_argument_is_not_taken_for_one_of_the_run():
    """Two runs go one of two decisions each; together they would write to the argument."""

    def f(x, items, own, last):
        held = items
        if own:
            held = [np.zeros(2)]
        if last:
            return x
        u = held[0]
        u[0] += x
        return u.sum()

    both = value_and_grad(f)
    for own, last in [(1, 0), (0, 1), (1, 1), (1, 0), (0, 1), (0, 0), (0, 0)]:
        items = [np.ones(2)]
        expected = f(2.0, [np.ones(2)], own, last)
        with jit(False):
            traced = both(2.0, [np.ones(2)], own, last)
        value, slope = both(2.0, items, own, last)
        assert (value, slope) == (expected, traced[1])
        assert items[0].tolist() == ([1.0, 1.0] if own or last else [3.0, 1.0])


def arguments(x):
    return [
        (x,), (x, x), (x, 1), (x, ()), ((x,),), ((x, x),), (x > 2, x, 0.5), (x, None, None), (x, 0.0, 9.0),
        (3,), (3, 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize("fn", sorted(ANEW, key=lambda fn: fn.__name__), ids=lambda fn: fn.__name__)
def test_what_is_made_anew_is_no_view(fn):
    floats = np.arange(4.0).reshape(2, 2) + np.eye(2)
    tried = 0
    tried_on = (floats, floats.astype(int), np.arange(4.0))
    for x, args in ((x, args) for x in tried_on for args in arguments(x)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = fn(*args)
            except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
                continue
        tried += 1
        assert not isinstance(value, np.ndarray) or not np.may_share_memory(value, x)
    assert tried


# ------------------------------------------------------------------------------------------- random programs


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs(first):
    compared = folded = 0
    for seed in range(first, first + TOGETHER):
        clear_cache()
        source = Writer(seed).source()
        verdict = judge(source, seed)
        assert verdict.word in ("right", "refused", "too long"), (
            f"seed {seed}: {verdict.word}: {verdict.difference}\n\n{source.removeprefix(PRELUDE)}"
        )
        compared += verdict.gradients
        folded += any(entry.folding.programs for entry in cache.entries.values())
    assert compared > TOGETHER and folded >= TOGETHER // 2


def test_arrays_that_are_kept_are_found_in_one_pass(monkeypatch):
    def f(x, n):
        u, held = np.zeros(2), []
        u[0] = x
        for k in range(n):
            held.append(u * k)
            held.append(np.ones(2) * x)
            held.append(np.full(2, x))
        held.append(u + 1.0)
        return sum([y[0] for y in held])

    passes = []
    attempt = Known.attempt
    monkeypatch.setattr(Known, "attempt", lambda *args: (passes.append(1), attempt(*args))[1])
    assert recorded(f, 0.5, 3)[0] == f(0.5, 3)
    assert len(passes) == 3  # the second knows what is written to, the third what is kept
