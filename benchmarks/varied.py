"""Programs whose path, lengths or shapes change from call to call: what the JIT costs there, and what it wins.

    python -m benchmarks.varied                  # all of them
    python -m benchmarks.varied --only ode heap  # some, by parts of their names

For each program, a fresh process measures in CPU time

    new     value and gradient of ever new data, JIT on over JIT off: the largest ratio of the sums of the first N
            calls at any N, the largest from N = 10 on, and that of the calls 11 to 30 alone
    again   after ten calls with new data, thirty with those same data: JIT on over JIT off
    plain   such a repeated call over the call of the function itself, without a gradient

Each program below is what somebody might write; `draw` makes the arguments of a call. Values and gradients of both
modes are compared, and the values with the plain function's.
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Varied:
    """A program that varies; ``draw(rng)`` makes the arguments of a call, and ``asks`` says what is asked of it."""

    name: str
    function: Callable[..., Any]
    draw: Callable[[random.Random], tuple[Any, ...]]
    argnums: int | tuple[int, ...] = 0
    asks: str = "value_and_grad"


PROGRAMS: list[Varied] = []


def varied(
    draw: Callable[[random.Random], tuple[Any, ...]],
    argnums: Any = 0,
    name: str = "",
    asks: str = "value_and_grad",
) -> Any:
    """Add a function to the programs."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        title = name or function.__name__.replace("_", "-")
        PROGRAMS.append(Varied(title, function, draw, argnums, asks))
        return function

    return add


def numbers(rng: random.Random, low: int, high: int, scale: float = 1.0) -> list[float]:
    """So many random numbers."""
    return [rng.gauss(0.0, scale) for _ in range(rng.randint(low, high))]


# ------------------------------------------------------------ writes behind decisions, in loops


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(40)]))
def dict_item(a, xs):
    d = {"s": 0.0, "n": 1.0}
    for x in xs:
        if x > 0:
            d["s"] = d["s"] + a * x
        else:
            d["n"] = d["n"] + 0.1 * a
    return d["s"] / d["n"]


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.fees = 0.0

    def deposit(self, x):
        self.balance += x

    def withdraw(self, x, rate):
        if x > self.balance:
            self.fees += rate * x
        else:
            self.balance -= x * (1.0 + rate)


@varied(lambda r: (r.uniform(0.01, 0.1), [r.gauss(0, 1) for _ in range(40)]))
def attribute(rate, moves):
    account = Account(2.0)
    for x in moves:
        if x > 0:
            account.deposit(x)
        else:
            account.withdraw(-x, rate)
    return account.balance - account.fees


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(40)]))
def nonlocal_variable(a, xs):
    total = 0.0

    def add(x):
        nonlocal total
        if x > 0:
            total += a * x
        elif x < -1:
            total *= 0.9

    for x in xs:
        add(x)
    return total


@varied(
    lambda r: (
        r.uniform(0.5, 1.5),
        [r.randrange(8) for _ in range(30)],
        [r.gauss(0, 1) for _ in range(30)],
    )
)
def list_slots(a, where, xs):
    bins = [1.0] * 8
    for i, x in zip(where, xs):
        if x > 0:
            bins[i] = bins[i] + a * x
        else:
            bins[i] = bins[i] * 0.95
    return sum(b * b for b in bins)


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(40)]))
def conditional_append(a, xs):
    kept = []
    for x in xs:
        if a * x > 0.2:
            kept.append(a * x)
    return sum(k * k for k in kept) / (1.0 + len(kept))


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(40)]))
def stack_pop(a, xs):
    stack = [1.0]
    for x in xs:
        if x > 0 or len(stack) < 2:
            stack.append(math.tanh(a * x))
        else:
            stack.append(stack.pop() * stack.pop() + 0.1 * x)
    total = 0.0
    while stack:
        total = 0.5 * total + stack.pop()
    return total


@varied(lambda r: (r.uniform(0.5, 1.5), [r.random() for _ in range(12)]))
def heap_merge(a, weights):
    heap = [a * w for w in weights]
    heapq.heapify(heap)
    cost = 0.0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged * merged
        heapq.heappush(heap, merged)
    return cost


@varied(lambda r: (r.uniform(0.5, 1.5), [r.random() for _ in range(20)]))
def sorted_insert(a, xs):
    kept = []
    for x in xs:
        bisect.insort(kept, math.sin(5.0 * a * x))
    middle = len(kept) // 2
    return kept[middle] * kept[-1] - kept[0]


# ------------------------------------------------------------ finance, roots, minima


def american(s, k, r, sigma, t, n):
    dt = t / n
    up = math.exp(sigma * math.sqrt(dt))
    down = 1.0 / up
    p = (math.exp(r * dt) - down) / (up - down)
    discount = math.exp(-r * dt)
    values = [max(k - s * up ** (2 * j - n), 0.0) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            held = discount * (p * values[j + 1] + (1.0 - p) * values[j])
            exercised = k - s * up ** (2 * j - i)
            values[j] = exercised if exercised > held else held
    return values[0]


def option(r: random.Random, n: int) -> tuple[Any, ...]:
    return (
        r.uniform(80, 120),
        100.0,
        r.uniform(0.01, 0.08),
        r.uniform(0.1, 0.4),
        r.uniform(0.5, 2),
        n,
    )


varied(lambda r: option(r, 24), (0, 2, 3, 4), "american-24")(american)
varied(lambda r: option(r, 200), (0, 2, 3, 4), "american-200")(american)
varied(lambda r: option(r, r.randint(10, 40)), (0, 2, 3, 4), "american-any")(american)


@varied(lambda r: (r.uniform(1.0, 20.0), r.uniform(0.1, 1.0)), (0, 1))
def bisection(a, b):
    low, high = 0.0, 10.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if middle * middle * b + middle > a:
            high = middle
        else:
            low = middle
    x = 0.5 * (low + high)
    return x - (x * x * b + x - a) / (2.0 * x * b + 1.0)


@varied(lambda r: (r.uniform(0.5, 3.0), r.uniform(0.1, 0.6)), (0, 1))
def brent(a, b):
    def f(x):
        return x * x * x - a * x - b

    left, right = 0.0, 4.0
    fl, fr = f(left), f(right)
    if abs(fl) < abs(fr):
        left, right, fl, fr = right, left, fr, fl
    c, fc, bisected, d = left, fl, True, left
    for _ in range(60):
        if fr == 0.0 or abs(right - left) < 1e-10:
            break
        if fl != fc and fr != fc:
            s = (
                left * fr * fc / ((fl - fr) * (fl - fc))
                + right * fl * fc / ((fr - fl) * (fr - fc))
                + c * fl * fr / ((fc - fl) * (fc - fr))
            )
        else:
            s = right - fr * (right - left) / (fr - fl)
        near = (3.0 * left + right) / 4.0
        outside = not (min(near, right) < s < max(near, right))
        slow = abs(s - right) >= 0.5 * abs(right - (c if bisected else d))
        if outside or slow:
            s, bisected = 0.5 * (left + right), True
        else:
            bisected = False
        fs = f(s)
        d, c, fc = c, right, fr
        if fl * fs < 0.0:
            right, fr = s, fs
        else:
            left, fl = s, fs
        if abs(fl) < abs(fr):
            left, right, fl, fr = right, left, fr, fl
    return right - f(right) / (3.0 * right * right - a)


@varied(lambda r: (r.uniform(0.5, 30.0), r.uniform(0.2, 3.0)), (0, 1))
def newton_returns(a, x):
    for _ in range(50):
        step = (x * x * x - a) / (3.0 * x * x)
        x = x - step
        if abs(step) < 1e-10:
            return x
        if x <= 0.0:
            return -x
    return 0.0 * x


@varied(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1)), (0, 1))
def nelder_mead(a, b):
    def f(p):
        return (p[0] - a) ** 2 + 2.0 * (p[1] - b * p[0]) ** 2 + 0.1 * p[0]

    simplex = sorted(([x, y] for x, y in ((0.0, 0.0), (1.0, 0.1), (0.1, 1.0))), key=f)
    for _ in range(25):
        best, good, worst = simplex
        middle = [(best[i] + good[i]) / 2.0 for i in range(2)]
        reflected = [2.0 * middle[i] - worst[i] for i in range(2)]
        if f(reflected) < f(best):
            expanded = [3.0 * middle[i] - 2.0 * worst[i] for i in range(2)]
            simplex[2] = expanded if f(expanded) < f(reflected) else reflected
        elif f(reflected) < f(good):
            simplex[2] = reflected
        else:
            contracted = [0.5 * (middle[i] + worst[i]) for i in range(2)]
            if f(contracted) < f(worst):
                simplex[2] = contracted
            else:
                simplex = [best] + [
                    [best[i] + 0.5 * (p[i] - best[i]) for i in range(2)] for p in (good, worst)
                ]
        simplex.sort(key=f)
    return f(simplex[0]) + simplex[0][0]


def rosenbrock(x):
    return (1.0 - x[0]) ** 2 + 5.0 * (x[1] - x[0] ** 2) ** 2


@varied(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1)), (0, 1))
def bfgs_lists(a, b):
    def slope(x):
        return [-2.0 * (1.0 - x[0]) - 20.0 * x[0] * (x[1] - x[0] ** 2), 10.0 * (x[1] - x[0] ** 2)]

    x, h = [a, b], [[1.0, 0.0], [0.0, 1.0]]
    g, k = slope(x), 0
    while k < 6 and sum(v * v for v in g) > 1e-8:
        p = [-sum(h[i][j] * g[j] for j in range(2)) for i in range(2)]
        t = 1.0
        while rosenbrock([x[i] + t * p[i] for i in range(2)]) > rosenbrock(x) and t > 1e-4:
            t *= 0.5
        new = [x[i] + t * p[i] for i in range(2)]
        gn = slope(new)
        s = [new[i] - x[i] for i in range(2)]
        y = [gn[i] - g[i] for i in range(2)]
        sy = sum(s[i] * y[i] for i in range(2))
        if sy > 1e-10:
            hy = [sum(h[i][j] * y[j] for j in range(2)) for i in range(2)]
            yhy = sum(y[i] * hy[i] for i in range(2))
            h = [
                [
                    h[i][j]
                    + (1.0 + yhy / sy) * s[i] * s[j] / sy
                    - (hy[i] * s[j] + s[i] * hy[j]) / sy
                    for j in range(2)
                ]
                for i in range(2)
            ]
        x, g, k = new, gn, k + 1
    return rosenbrock(x)


@varied(lambda r: (np.array([r.uniform(-1, 1), r.uniform(-1, 1)]), r.uniform(1.0, 5.0)), (0, 1))
def bfgs_scipy(x0, c):
    from scipy.optimize import _optimize

    def f(x):
        return (1.0 - x[0]) ** 2 + c * (x[1] - x[0] ** 2) ** 2

    def slope(x):
        inner = x[1] - x[0] ** 2
        return np.array([-2.0 * (1.0 - x[0]) - 4.0 * c * x[0] * inner, 2.0 * c * inner])

    found = _optimize._minimize_bfgs(f, x0, jac=slope, maxiter=3)
    return found.fun


# ------------------------------------------------------------ differential equations


def pendulum(t, y, a, b):
    return np.array([y[1], -a * np.sin(y[0]) - b * y[1]])


def solver(method: str) -> Callable[..., Any]:
    def solved(a, b):
        from scipy.integrate import solve_ivp

        found = solve_ivp(
            pendulum, (0.0, 3.0), np.array([1.0, 0.0]), method, args=(a, b), rtol=1e-4
        )
        return found.y[0, -1]

    return solved


for _method in ("RK45", "RK23", "DOP853"):
    varied(lambda r: (r.uniform(0.5, 4.0), r.uniform(0.0, 0.5)), (0, 1), f"ode-{_method}")(
        solver(_method)
    )


@varied(lambda r: (r.uniform(1.0, 3.0), r.uniform(0.1, 0.5)), (0, 1), "ode-events")
def ode_events(v, drag):
    from scipy.integrate import solve_ivp

    def fall(t, y):
        return np.array([y[1], -1.0 - drag * y[1]])

    def ground(t, y):
        return y[0]

    ground.terminal = True
    ground.direction = -1
    found = solve_ivp(fall, (0.0, 8.0), np.array([0.5, v]), events=ground, rtol=1e-4)
    return found.t[-1] + found.y[1, -1]


@varied(lambda r: (r.uniform(0.5, 3.0), r.uniform(0.0, 0.4)), (0, 1))
def dormand_prince(a, b):
    def f(t, y, v):
        return v, -a * math.sin(y) - b * v

    t, h, y, v = 0.0, 0.1, 1.0, 0.0
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        k1 = f(t, y, v)
        k2 = f(t + h / 5, y + h * k1[0] / 5, v + h * k1[1] / 5)
        k3 = f(
            t + 0.3 * h,
            y + h * (3 * k1[0] / 40 + 9 * k2[0] / 40),
            v + h * (3 * k1[1] / 40 + 9 * k2[1] / 40),
        )
        k4 = f(
            t + 0.8 * h,
            y + h * (44 * k1[0] / 45 - 56 * k2[0] / 15 + 32 * k3[0] / 9),
            v + h * (44 * k1[1] / 45 - 56 * k2[1] / 15 + 32 * k3[1] / 9),
        )
        yn = y + h * (k1[0] + 3 * k3[0] + 4 * k4[0]) / 8
        vn = v + h * (k1[1] + 3 * k3[1] + 4 * k4[1]) / 8
        error = h * abs(k1[1] - 2 * k3[1] + k4[1]) / 10 + 1e-12
        if error <= 1e-3:
            t, y, v = t + h, yn, vn
        h *= min(4.0, max(0.2, 0.9 * (1e-3 / error) ** 0.25))
    return y * y + v


# ------------------------------------------------------------ arrays that are written to


@varied(lambda r: (r.uniform(0.1, 0.4), r.uniform(0.5, 2.0), r.randint(8, 24)), (0, 1))
def heat_until_settled(rate, warm, n):
    u = np.zeros(n)
    u[0], u[-1] = warm, 0.5 * warm
    while True:
        change = rate * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[1:-1] += change
        if np.max(np.abs(change)) < 0.01:
            break
    return np.sum(u * u)


def bands(r: random.Random) -> tuple[Any, ...]:
    n = r.randint(4, 40)
    rng = np.random.default_rng(r.randrange(10**6))
    return rng.normal(size=n - 1), 4.0 + rng.random(n), rng.normal(size=n - 1), rng.normal(size=n)


@varied(bands, (0, 1, 2, 3))
def tridiagonal(a, b, c, d):
    n = len(d)
    w, g, x = np.zeros(n), np.zeros(n), np.zeros(n)
    w[0], g[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        pivot = b[i] - a[i - 1] * w[i - 1]
        if i < n - 1:
            w[i] = c[i] / pivot
        g[i] = (d[i] - a[i - 1] * g[i - 1]) / pivot
    x[n - 1] = g[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = g[i] - w[i] * x[i + 1]
    return np.sum(x * x)


def system(r: random.Random) -> tuple[Any, ...]:
    n = r.randint(3, 8)
    rng = np.random.default_rng(r.randrange(10**6))
    return rng.normal(size=(n, n)) + 3.0 * n * np.eye(n), rng.normal(size=n)


@varied(system, (0, 1))
def gauss_seidel(m, b):
    x = np.zeros(len(b))
    while True:
        change = 0.0
        for i in range(len(b)):
            new = (b[i] - m[i] @ x + m[i, i] * x[i]) / m[i, i]
            change = max(change, abs(new - x[i]))
            x[i] = new
        if change < 1e-6:
            break
    return x @ x


# ------------------------------------------------------------ dynamic programming, graphs, queues


def words(r: random.Random) -> tuple[Any, ...]:
    text = lambda: "".join(r.choice("abcd") for _ in range(r.randint(5, 10)))
    return [r.uniform(0.5, 1.5) for _ in range(3)], text(), text()


@varied(words)
def edit_distance(costs, a, b):
    insert, delete, change = costs
    table = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        table[i][0] = table[i - 1][0] + delete
    for j in range(1, len(b) + 1):
        table[0][j] = table[0][j - 1] + insert
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = 0.0 if a[i - 1] == b[j - 1] else change
            table[i][j] = min(
                table[i - 1][j] + delete, table[i][j - 1] + insert, table[i - 1][j - 1] + same
            )
    return table[-1][-1] ** 2


RULES = [("S", "A", "B"), ("S", "B", "A"), ("A", "A", "A"), ("B", "A", "S"), ("B", "B", "B")]


@varied(
    lambda r: (
        [r.uniform(0.1, 1.0) for _ in range(5)],
        "".join(r.choice("ab") for _ in range(r.randint(4, 7))),
    )
)
def parse_chart(weights, text):
    chart = {}
    n = len(text)
    for i, letter in enumerate(text):
        chart[i, i + 1, letter.upper()] = 1.0
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            for (head, left, right), w in zip(RULES, weights):
                for k in range(i + 1, i + width):
                    if (i, k, left) in chart and (k, i + width, right) in chart:
                        score = w * chart[i, k, left] * chart[k, i + width, right]
                        key = (i, i + width, head)
                        chart[key] = chart.get(key, 0.0) + score
    return chart.get((0, n, "S"), 0.0) + sum(weights)


@varied(
    lambda r: (
        np.array([[r.gauss(c, 0.7), r.gauss(-c, 0.7)] for c in (0, 3, 6) for _ in range(8)]),
    )
)
def kmeans_until_stable(points):
    centres = [points[0], points[9], points[18]]
    labels = None
    while True:
        new = [int(np.argmin([np.sum((p - c) ** 2) for c in centres])) for p in points]
        if new == labels:
            break
        labels = new
        for k in range(3):
            members = [p for p, label in zip(points, labels) if label == k]
            if members:
                centres[k] = sum(members) / len(members)
    return sum(np.sum((p - centres[label]) ** 2) for p, label in zip(points, labels))


@dataclass
class Sphere:
    centre: tuple[float, float, float]
    radius: float
    shine: float

    def hit(self, origin, direction):
        offset = [o - c for o, c in zip(origin, self.centre)]
        b = sum(o * d for o, d in zip(offset, direction))
        c = sum(o * o for o in offset) - self.radius**2
        inside = b * b - c
        if inside < 0:
            return None
        t = -b - math.sqrt(inside)
        return t if t > 1e-6 else None


@varied(lambda r: (r.uniform(0.6, 1.4), r.uniform(0.2, 0.8), r.uniform(-0.5, 0.5)), (0, 1))
def ray_tracer(radius, shine, shift):
    spheres = [
        Sphere((shift, 0.0, 5.0), radius, shine),
        Sphere((1.2, 0.3, 6.0), 0.8, 0.5),
        Sphere((-1.5, -0.2, 4.0), 0.6, 0.3),
    ]
    total = 0.0
    for i in range(6):
        for j in range(6):
            d = [(i - 2.5) / 5.0, (j - 2.5) / 5.0, 1.0]
            norm = math.sqrt(sum(x * x for x in d))
            d = [x / norm for x in d]
            nearest, who = None, None
            for sphere in spheres:
                t = sphere.hit((0.0, 0.0, 0.0), d)
                if t is not None and (nearest is None or t < nearest):
                    nearest, who = t, sphere
            if who is not None:
                normal = [(nearest * x - c) / who.radius for x, c in zip(d, who.centre)]
                light = max(0.0, -normal[2])
                total += who.shine * light + 0.1
    return total


@varied(lambda r: (r.uniform(0.5, 1.5), r.uniform(0.5, 1.5), r.randrange(10**6)), (0, 1))
def event_queue(arrival, service, seed):
    rng = random.Random(seed)
    draws = [(-math.log(rng.random()), -math.log(rng.random())) for _ in range(15)]
    events, t = [], 0.0
    for i, (gap, _) in enumerate(draws):
        t += gap * arrival
        heapq.heappush(events, (t, i, "arrives"))
    waiting, busy, total = [], False, 0.0
    while events:
        now, i, what = heapq.heappop(events)
        if what == "arrives":
            waiting.append((now, i))
        else:
            busy = False
        if waiting and not busy:
            since, i = waiting.pop(0)
            total += now - since
            busy = True
            heapq.heappush(events, (now + draws[i][1] * service, i, "leaves"))
    return total


def graph(r: random.Random) -> tuple[Any, ...]:
    n = 10
    edges = [(i, j) for i in range(n) for j in range(n) if i != j and r.random() < 0.3]
    return [r.uniform(0.1, 1.0) for _ in edges], edges, n


@varied(graph)
def dijkstra(weights, edges, n):
    neighbours = {i: [] for i in range(n)}
    for (i, j), w in zip(edges, weights):
        neighbours[i].append((j, w))
    distance = {0: 0.0}
    queue, done = [(0.0, 0)], set()
    while queue:
        d, i = heapq.heappop(queue)
        if i in done:
            continue
        done.add(i)
        for j, w in neighbours[i]:
            if j not in distance or d + w < distance[j]:
                distance[j] = d + w
                heapq.heappush(queue, (d + w, j))
    return sum(distance.values())


# ------------------------------------------------------------ recursion, trees, generators, exceptions


@varied(lambda r: (r.uniform(1.0, 8.0), r.uniform(0.5, 2.0)), (0, 1))
def simpson_recursive(a, b):
    def f(x):
        return math.exp(-x) * math.sin(a * x)

    def part(lo, hi, flo, fmid, fhi, whole, depth):
        mid = 0.5 * (lo + hi)
        fl, fr = f(0.5 * (lo + mid)), f(0.5 * (mid + hi))
        left = (mid - lo) / 6.0 * (flo + 4.0 * fl + fmid)
        right = (hi - mid) / 6.0 * (fmid + 4.0 * fr + fhi)
        if depth == 0 or abs(left + right - whole) < 1e-4:
            return left + right
        return part(lo, mid, flo, fl, fmid, left, depth - 1) + part(
            mid, hi, fmid, fr, fhi, right, depth - 1
        )

    flo, fmid, fhi = f(0.0), f(0.5 * b), f(b)
    return part(0.0, b, flo, fmid, fhi, b / 6.0 * (flo + 4.0 * fmid + fhi), 8)


class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right

    def insert(self, value):
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Node(value))
        else:
            child.insert(value)

    def energy(self, a):
        total = math.tanh(a * self.value)
        for child in (self.left, self.right):
            if child is not None:
                total = total + 0.5 * child.energy(a)
        return total


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(r.randint(5, 15))]), (0, 1))
def object_tree(a, values):
    root = Node(values[0])
    for v in values[1:]:
        root.insert(v)
    return root.energy(a)


@varied(lambda r: (r.uniform(0.5, 1.5), r.randint(6, 14)))
def memoised_recursion(a, n):
    known = {}

    def f(k):
        if k < 2:
            return a + k
        if k not in known:
            known[k] = math.sin(f(k - 1)) + 0.5 * f(k - 2) * a
        return known[k]

    return f(n)


@varied(lambda r: (r.uniform(0.5, 1.5), r.randrange(10**6)))
def hmc(scale, seed):
    rng = random.Random(seed)
    x, kept = 0.5, 0.0
    for _ in range(6):
        p = rng.gauss(0.0, 1.0)
        before = 0.5 * p * p + 0.5 * scale * x * x + 0.1 * x**4
        y = x
        for _ in range(4):
            p = p - 0.1 * (scale * y + 0.4 * y**3)
            y = y + 0.2 * p
            p = p - 0.1 * (scale * y + 0.4 * y**3)
        after = 0.5 * p * p + 0.5 * scale * y * y + 0.1 * y**4
        if math.log(rng.random()) < before - after:
            x = y
        kept = kept + x * x
    return kept


@varied(lambda r: (r.uniform(0.5, 1.5), numbers(r, 10, 30)))
def generators(a, xs):
    def positive(items):
        for x in items:
            if x > 0:
                yield a * x

    def running(items):
        total = 0.0
        for x in items:
            total = 0.9 * total + x
            yield total

    return sum(y * y for y in running(positive(xs)))


class Rejected(Exception):
    pass


@varied(lambda r: (r.uniform(0.5, 1.5), [r.gauss(0, 1) for _ in range(25)]))
def exceptions(a, xs):
    def checked(x):
        if x < -1.0:
            raise Rejected(x)
        return math.log(1.5 + x)

    total = 0.0
    for x in xs:
        try:
            total += checked(a * x)
        except Rejected as why:
            total -= 0.1 * why.args[0] ** 2
        except ValueError:
            break
    return total


@varied(
    lambda r: (
        [r.uniform(0.5, 1.5) for _ in range(3)],
        [
            r.choice(["push0", "push1", "push2", "add", "mul", "sin"])
            for _ in range(r.randint(10, 25))
        ],
    )
)
def stack_machine(values, program):
    stack = [1.0]
    for word in program:
        if word.startswith("push"):
            stack.append(values[int(word[4:])])
        elif word == "sin":
            stack.append(math.sin(stack.pop()))
        elif len(stack) > 1:
            x, y = stack.pop(), stack.pop()
            stack.append(x + y if word == "add" else x * y)
    return sum(stack)


# ------------------------------------------------------------ learning, with lengths and sizes that vary


@varied(
    lambda r: (
        {"w": r.uniform(-1, 1), "b": r.uniform(-1, 1)},
        [(r.gauss(0, 1), r.gauss(0, 1)) for _ in range(5)],
    )
)
def adam_over_a_dict(start, data):
    params = dict(start)
    m = dict.fromkeys(params, 0.0)
    v = dict.fromkeys(params, 0.0)
    for t in range(1, 8):
        for x, y in data:
            e = params["w"] * x + params["b"] - y
            for k, g in {"w": 2.0 * e * x, "b": 2.0 * e}.items():
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.99 * v[k] + 0.01 * g * g
                step = m[k] / (1.0 - 0.9**t) / (math.sqrt(v[k] / (1.0 - 0.99**t)) + 1e-8)
                params[k] = params[k] - 0.05 * step
    return sum((params["w"] * x + params["b"] - y) ** 2 for x, y in data)


@varied(lambda r: ([numbers(r, 2, 9) for _ in range(r.randint(3, 6))], r.uniform(0.5, 2.0)), (0, 1))
def ragged_softmax(rows, t):
    total = 0.0
    for row in rows:
        top = max(row)
        weights = [math.exp((x - top) / t) for x in row]
        scale = sum(weights)
        total += sum(w / scale * x for w, x in zip(weights, row))
    return total


def batch(r: random.Random) -> tuple[Any, ...]:
    g = np.random.default_rng(r.randrange(10**6))
    n = r.randint(1, 200)
    return g.normal(size=(5, 4)), g.normal(size=4), g.normal(size=(n, 5)), g.normal(size=n)


@varied(batch, (0, 1))
def mini_batches(w, v, x, y):
    hidden = np.tanh(x @ w)
    return np.mean((hidden @ v - y) ** 2)


def process(r: random.Random) -> tuple[Any, ...]:
    g = np.random.default_rng(r.randrange(10**6))
    n = r.randint(5, 60)
    x = np.sort(g.uniform(0, 5, n))
    return r.uniform(0.5, 2.0), r.uniform(0.1, 0.5), x, np.sin(x)


@varied(process, (0, 1))
def gaussian_process(length, noise, x, y):
    k = np.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2) + noise * np.eye(len(x))
    chol = np.linalg.cholesky(k)
    alpha = np.linalg.solve(chol, y)
    return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diag(chol)))


@varied(lambda r: (numbers(r, 5, 300),))
def statistics_of_lists(xs):
    mean = statistics.fmean(xs)
    return mean + statistics.stdev(xs) + statistics.median(xs)


# ------------------------------------------------------------------------ a few operations a call


@varied(lambda r: (r.uniform(0.3, 2.2), r.randint(1, 7)))
def power_series(x, terms):
    total = 0.0
    for k in range(terms):
        total = total * x + k
    return total


@varied(lambda r: (r.uniform(0.3, 2.2), r.uniform(0.3, 2.2)), (0, 1))
def hinge(x, y):
    if x < 0.5:
        return 0.5 * y
    return x * x if x > y else math.sin(y)


LINKS = None
for _k in (3.0, 2.0, 1.0):
    LINKS = (_k, LINKS)


@varied(lambda r: (r.uniform(0.3, 2.2),))
def linked_list(x):
    total, link = 0.0, LINKS
    while link is not None:
        k, link = link
        total = total * x + k if k < x * 2 else total + x
    return total


# ------------------------------------------------------------ several numbers


@varied(lambda r: (r.uniform(0.5, 4.0), r.uniform(0.0, 0.5)), (0, 1), asks="jacobian")
def ode_states(a, b):
    from scipy.integrate import solve_ivp

    found = solve_ivp(pendulum, (0.0, 3.0), np.array([1.0, 0.0]), args=(a, b), rtol=1e-4)
    return found.y[:, -1]


@varied(lambda r: (r.uniform(0.5, 3.0), r.uniform(0.0, 0.5)), (0, 1), asks="jacobian")
def residuals(k, c):
    found, x, v, t = [], 1.0, 0.0, 0.0
    for i in range(8):
        while t < 0.4 * (i + 1):
            h = 0.01 if abs(v) > 0.5 else 0.02
            x, v, t = x + h * v, v - h * (k * x + c * v), t + h
        found.append(x - math.exp(-0.4 * i))
    return found


@varied(
    lambda r: (np.array([[r.gauss(0, 1), r.gauss(0, 1)] for _ in range(r.randint(10, 40))]),),
    asks="pullback",
)
def centres(points):
    found = points[:3].copy()
    for _ in range(20):
        nearest = ((points[:, None] - found[None]) ** 2).sum(-1).argmin(1)
        new = np.array([points[nearest == k].mean(0) for k in range(3)])
        if np.allclose(new, found):
            break
        found = new
    return found


@varied(lambda r: (numbers(r, 5, 60), r.uniform(0.1, 0.9)), asks="pullback")
def smoothed(xs, a):
    level, slope, found = xs[0], 0.0, []
    for x in xs:
        before = level
        level = a * x + (1.0 - a) * (level + slope)
        slope = 0.9 * slope if level < before else 0.5 * (level - before) + 0.5 * slope
        found.append(level + slope)
    return found


# ------------------------------------------------------------ measuring

NEW, BEFORE, AGAIN = 30, 10, 30  # calls


def seconds(call: Callable[..., Any], data: list[tuple[Any, ...]]) -> tuple[list[float], list[Any]]:
    """The CPU time of each call, and the answers."""
    times, answers = [], []
    for args in data:
        start = time.process_time()
        answer = call(*args)
        times.append(time.process_time() - start)
        answers.append(answer)
    return times, answers


def asked(program: Varied) -> Callable[..., Any]:
    """A function that gives the value, or None where that is not given, and the derivatives."""
    from wengert import jacobian, pullback, value_and_grad

    if program.asks == "value_and_grad":
        return value_and_grad(program.function, argnums=program.argnums)
    if program.asks == "jacobian":
        rows = jacobian(program.function, argnums=program.argnums)
        return lambda *args: (None, rows(*args))

    def pulled(*args: Any) -> tuple[Any, Any]:
        value, back = pullback(program.function, *args)
        return value, back(ones(value))

    return pulled


def ones(value: Any) -> Any:
    """A cotangent of ones."""
    if isinstance(value, (list, tuple)):
        return type(value)([ones(x) for x in value])
    return np.ones_like(value) if isinstance(value, np.ndarray) else 1.0


def measured(program: Varied) -> dict[str, float]:
    """The figures of one program, in this process."""
    from wengert import clear_cache, jit

    rng = random.Random(7)
    data = [program.draw(rng) for _ in range(NEW)]
    other = program.draw(random.Random(8))
    slope = lambda: asked(program)
    with jit(False):
        slope()(*other)  # imports, instrumented code, rules: paid once, whatever follows
        off, expected = seconds(slope(), data)
    plain, values = seconds(program.function, data)
    clear_cache()
    on, answers = seconds(slope(), data)
    check(program, answers, expected, values)
    clear_cache()
    made = slope()
    seconds(made, data[:BEFORE])
    again = data[:BEFORE] * (AGAIN // BEFORE)
    repeated, _ = seconds(made, again)
    with jit(False):
        traced, _ = seconds(slope(), again)
    alone, _ = seconds(program.function, again)
    sums = [sum(on[:n]) / sum(off[:n]) for n in range(1, NEW + 1)]
    return {
        "worst": max(sums),
        "worst10": max(sums[9:]),
        "new": sum(on[BEFORE:]) / sum(off[BEFORE:]),
        "again": sum(repeated) / sum(traced),
        "plain": sum(repeated) / sum(alone),
        "traced": sum(off) / sum(plain),
    }


def check(program: Varied, answers: list[Any], expected: list[Any], values: list[Any]) -> None:
    """Raise where the two modes, or the plain function, do not agree."""
    from .program import disagreement

    for k, ((value, slope), (wanted, other), plain) in enumerate(
        zip(answers, expected, values, strict=True)
    ):
        found = [x for x in (value, wanted) if program.asks != "jacobian" or x is not None]
        if any(repr(x) != repr(plain) for x in found):
            raise AssertionError(f"{program.name}, call {k + 1}: {value} and {wanted}, not {plain}")
        if (wrong := disagreement(slope, other)) is not None:
            raise AssertionError(f"{program.name}, call {k + 1}: gradients disagree: {wrong}")


COLUMNS = {
    "worst": "new, worst N",
    "worst10": "worst N ≥ 10",
    "new": "new, 11-30",
    "again": "again",
    "plain": "again / plain",
    "traced": "JIT off / plain",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.varied", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        program = next(p for p in PROGRAMS if p.name == options.one)
        print(json.dumps(measured(program)))
        return 0
    chosen = [p for p in PROGRAMS if not options.only or any(x in p.name for x in options.only)]
    print("| program | " + " | ".join(COLUMNS.values()) + " |")
    print("| --- |" + " --- |" * len(COLUMNS))
    failed = 0
    for program in chosen:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.varied", "--one", program.name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            failed += 1
            print(f"| {program.name} | {(done.stderr.strip().splitlines() or ['?'])[-1][:90]} |")
            continue
        figures = json.loads(done.stdout)
        cells = [f"{figures[key]:.3g}" for key in COLUMNS]
        print(f"| {program.name} | " + " | ".join(cells) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
