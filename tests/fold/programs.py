"""Plain Python programs of floats and ints whose path and lengths vary from call to call.

`PROGRAMS` has each of them by its name, with what draws the arguments of a call. They are what folding is for: one
kept program ought to answer for all calls, whichever way they go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Program:
    """A function; ``draw(rng)`` makes the arguments of a call, ``argnums`` are those with a gradient."""

    name: str
    function: Callable[..., Any]
    draw: Callable[[Random], tuple[Any, ...]]
    argnums: tuple[int, ...]


PROGRAMS: dict[str, Program] = {}


def program(draw: Callable[[Random], tuple[Any, ...]], argnums: tuple[int, ...] = (0, 1)) -> Any:
    """Add a function to the programs."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        assert name not in PROGRAMS
        PROGRAMS[name] = Program(name, function, draw, argnums)
        return function

    return add


# ------------------------------------------------------------------------------------------------- numerics


def flow(x, y, a, b):
    return a * x - b * x * y, b * x * y - y


@program(
    lambda r: (r.uniform(0.5, 2), r.uniform(0.5, 2), r.uniform(0.3, 2), 10 ** r.uniform(-6, -2)),
    (0, 1, 2),
)
def dormand_prince(a, b, y, tol):
    """Predators and prey, with the steps that the estimated error allows."""
    t, x, h = 0.0, 1.0, 0.5
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        p1, q1 = flow(x, y, a, b)
        p2, q2 = flow(x + h * (p1 / 5), y + h * (q1 / 5), a, b)
        p3, q3 = flow(x + h * (3 * p1 + 9 * p2) / 40, y + h * (3 * q1 + 9 * q2) / 40, a, b)
        p4, q4 = flow(
            x + h * (44 * p1 / 45 - 56 * p2 / 15 + 32 * p3 / 9),
            y + h * (44 * q1 / 45 - 56 * q2 / 15 + 32 * q3 / 9),
            a,
            b,
        )
        p5, q5 = flow(
            x + h * (19372 * p1 - 76080 * p2 + 64448 * p3 - 1908 * p4) / 6561,
            y + h * (19372 * q1 - 76080 * q2 + 64448 * q3 - 1908 * q4) / 6561,
            a,
            b,
        )
        p6, q6 = flow(
            x
            + h
            * (
                9017 * p1 / 3168
                - 355 * p2 / 33
                + 46732 * p3 / 5247
                + 49 * p4 / 176
                - 5103 * p5 / 18656
            ),
            y
            + h
            * (
                9017 * q1 / 3168
                - 355 * q2 / 33
                + 46732 * q3 / 5247
                + 49 * q4 / 176
                - 5103 * q5 / 18656
            ),
            a,
            b,
        )
        u = x + h * (
            35 * p1 / 384 + 500 * p3 / 1113 + 125 * p4 / 192 - 2187 * p5 / 6784 + 11 * p6 / 84
        )
        v = y + h * (
            35 * q1 / 384 + 500 * q3 / 1113 + 125 * q4 / 192 - 2187 * q5 / 6784 + 11 * q6 / 84
        )
        p7, q7 = flow(u, v, a, b)
        e = (
            71 * p1 / 57600
            - 71 * p3 / 16695
            + 71 * p4 / 1920
            - 17253 * p5 / 339200
            + 22 * p6 / 525
            - p7 / 40
        )
        d = (
            71 * q1 / 57600
            - 71 * q3 / 16695
            + 71 * q4 / 1920
            - 17253 * q5 / 339200
            + 22 * q6 / 525
            - q7 / 40
        )
        error = h * math.sqrt((e * e + d * d) / 2) / tol
        if error <= 1.0:
            t, x, y = t + h, u, v
        h = h * min(5.0, max(0.2, 0.9 * error**-0.2))
    return x + y


@program(
    lambda r: (r.uniform(80, 120), r.uniform(80, 120), r.uniform(0.1, 0.5), r.randint(2, 12)),
    (0, 1, 2),
)
def american_option(spot, strike, sigma, n):
    """A put on a binomial tree of `n` steps, exercised where that is worth more."""
    dt = 1.0 / n
    up = math.exp(sigma * math.sqrt(dt))
    down = 1 / up
    discount = math.exp(-0.05 * dt)
    p = (1 / discount - down) / (up - down)
    values = [max(strike - spot * up**j * down ** (n - j), 0.0) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            hold = discount * (p * values[j + 1] + (1 - p) * values[j])
            values[j] = max(hold, strike - spot * up**j * down ** (i - j))
    return values[0]


@program(lambda r: (r.uniform(0.5, 3), r.uniform(1, 4), 10 ** r.uniform(-5, -1)))
def bisection(a, high, tol):
    low = 0.0 * high
    while high - low > tol:
        mid = 0.5 * (low + high)
        if mid * mid * mid + mid > a:
            high = mid
        else:
            low = mid
    x = 0.5 * (low + high)
    return x - (x * x * x + x - a) / (3 * x * x + 1)  # the step that depends on a


@program(lambda r: (r.uniform(0.5, 2), r.uniform(2, 6)))
def brent(a, b):
    """The zero of a function by interpolation where that is safe, and by halves elsewhere."""

    def f(x):
        return x * x * x - a * x - b

    x, y = -1.0, 4.0
    fx, fy = f(x), f(y)
    if abs(fx) < abs(fy):
        x, y, fx, fy = y, x, fy, fx
    z, fz, halved = x, fx, True
    w = z
    for _ in range(60):
        if abs(fy) < 1e-9 or abs(y - x) < 1e-12:
            break
        if fx != fz and fy != fz:
            s = x * fy * fz / ((fx - fy) * (fx - fz)) + y * fx * fz / ((fy - fx) * (fy - fz))
            s = s + z * fx * fy / ((fz - fx) * (fz - fy))
        else:
            s = y - fy * (y - x) / (fy - fx)
        low, high = min((3 * x + y) / 4, y), max((3 * x + y) / 4, y)
        before = abs(y - z) if halved else abs(z - w)
        if not low < s < high or abs(s - y) >= before / 2 or before < 1e-12:
            s, halved = (x + y) / 2, True
        else:
            halved = False
        fs = f(s)
        w, z, fz = z, y, fy
        if fx * fs < 0:
            y, fy = s, fs
        else:
            x, fx = s, fs
        if abs(fx) < abs(fy):
            x, y, fx, fy = y, x, fy, fx
    return y - f(y) / (3 * y * y - a)


@program(lambda r: (r.uniform(1, 3), r.uniform(1.8, 4), r.randint(1, 8), 10 ** r.uniform(-10, -2)))
def newton_returns(a, x, n, tol):
    """Roots of a family of cubics, found by a helper that returns from inside its loop."""

    def root(c, x):
        for _ in range(50):
            step = (x * x * x - c * x - 1.0) / (3.0 * x * x - c)
            x = x - step
            if abs(step) < tol:
                return x
        return x

    total = 0.0
    for i in range(n):
        z = root(a + 0.1 * i, x)
        total = total + z * a
        if z > 2.0:
            x = z
    return total


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.5, 2), r.randint(3, 25)))
def nelder_mead(a, b, n):
    """The simplex method in the plane, of lists of lists."""

    def f(p):
        return (p[0] - a) * (p[0] - a) + b * (p[1] - p[0] * a) * (p[1] - p[0] * a)

    points = [[0.0, 0.0], [1.0, 0.2], [0.1, 1.0]]
    values = [f(p) for p in points]
    for _ in range(n):
        for i in range(1, 3):
            j = i
            while j > 0 and values[j] < values[j - 1]:
                values[j], values[j - 1] = values[j - 1], values[j]
                points[j], points[j - 1] = points[j - 1], points[j]
                j -= 1
        middle = [0.5 * (points[0][k] + points[1][k]) for k in range(2)]
        mirrored = [2 * middle[k] - points[2][k] for k in range(2)]
        value = f(mirrored)
        if value < values[0]:
            longer = [3 * middle[k] - 2 * points[2][k] for k in range(2)]
            far = f(longer)
            points[2], values[2] = (longer, far) if far < value else (mirrored, value)
        elif value < values[1]:
            points[2], values[2] = mirrored, value
        else:
            inner = [0.5 * (middle[k] + points[2][k]) for k in range(2)]
            near = f(inner)
            if near < values[2]:
                points[2], values[2] = inner, near
            else:
                for i in range(1, 3):
                    points[i] = [0.5 * (points[0][k] + points[i][k]) for k in range(2)]
                    values[i] = f(points[i])
    return values[0] + values[1] * 0.5 + values[2]


@program(lambda r: (r.uniform(0.5, 2), r.uniform(0.5, 2), 10 ** r.uniform(-5, -2)))
def bfgs(a, b, tol):
    """Quasi-Newton steps with backtracking, of lists."""

    def f(p):
        return a * p[0] * p[0] + b * (p[1] - p[0] * p[0]) * (p[1] - p[0] * p[0]) - p[0]

    def slope(p):
        c = p[1] - p[0] * p[0]
        return [2 * a * p[0] - 4 * b * p[0] * c - 1.0, 2 * b * c]

    p, g = [0.2, -0.3], []
    h = [[1.0, 0.0], [0.0, 1.0]]
    g = slope(p)
    for _ in range(12):
        if g[0] * g[0] + g[1] * g[1] < tol:
            break
        d = [-sum(h[i][j] * g[j] for j in range(2)) for i in range(2)]
        descent = d[0] * g[0] + d[1] * g[1]
        step = 1.0
        while (
            f([p[k] + step * d[k] for k in range(2)]) > f(p) + 1e-4 * step * descent and step > 1e-3
        ):
            step = step * 0.5
        s = [step * d[0], step * d[1]]
        p = [p[0] + s[0], p[1] + s[1]]
        new = slope(p)
        y = [new[0] - g[0], new[1] - g[1]]
        g = new
        ys = y[0] * s[0] + y[1] * s[1]
        if ys > 1e-8:
            hy = [h[i][0] * y[0] + h[i][1] * y[1] for i in range(2)]
            scale = (1 + (y[0] * hy[0] + y[1] * hy[1]) / ys) / ys
            for i in range(2):
                for j in range(2):
                    h[i][j] += scale * s[i] * s[j] - (hy[i] * s[j] + s[i] * hy[j]) / ys
    return f(p) + p[0] * p[1]


@program(lambda r: (r.uniform(0.2, 1.5), r.uniform(1.6, 3), 10 ** r.uniform(-4, -1)))
def golden_section(a, b, tol):
    ratio = (math.sqrt(5) - 1) / 2

    def f(x):
        return (x - a) * (x - a) + math.exp(-b * x)

    low, high = 0.0, b
    x, y = high - ratio * (high - low), low + ratio * (high - low)
    fx, fy = f(x), f(y)
    while abs(high - low) > tol:
        if fx < fy:
            high, y, fy = y, x, fx
            x = high - ratio * (high - low)
            fx = f(x)
        else:
            low, x, fx = x, y, fy
            y = low + ratio * (high - low)
            fy = f(y)
    return f(0.5 * (low + high))


def wave(x, c):
    return math.sin(c * x) / (1.0 + x * x)


def halves(a, b, fa, fm, fb, whole, tol, c):
    m = 0.5 * (a + b)
    fl, fr = wave(0.5 * (a + m), c), wave(0.5 * (m + b), c)
    left, right = (m - a) / 6 * (fa + 4 * fl + fm), (b - m) / 6 * (fm + 4 * fr + fb)
    d = left + right - whole
    if abs(d) <= 15 * tol:
        return left + right + d / 15
    return halves(a, m, fa, fl, fm, left, tol / 2, c) + halves(m, b, fm, fr, fb, right, tol / 2, c)


@program(
    lambda r: (r.uniform(-2, 0), r.uniform(0.5, 3), r.uniform(0.5, 5), 10 ** r.uniform(-6, -2)),
    (0, 1, 2),
)
def adaptive_simpson(a, b, c, tol):
    fa, fb, fm = wave(a, c), wave(b, c), wave(0.5 * (a + b), c)
    return halves(a, b, fa, fm, fb, (b - a) / 6 * (fa + 4 * fm + fb), tol, c)


@program(lambda r: ([r.uniform(-1, 1) for _ in range(r.randint(1, 9))], r.uniform(-1, 1)))
def horner(coefficients, x):
    total = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total


@program(lambda r: (r.uniform(0.1, 1), r.uniform(0.1, 1), r.randint(1, 4), r.randint(1, 4)))
def matrix_product(a, b, n, m):
    left = [[a * (i + 1) + b * j for j in range(m)] for i in range(n)]
    right = [[math.cos(a * i - b * j) for j in range(n)] for i in range(m)]
    out = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(m):
                s += left[i][k] * right[k][j]
            out[i][j] = s
    return sum([out[i][(i + 1) % n] for i in range(n)]) + out[-1][0]


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.5, 2), r.randint(1, 5)))
def lu_determinant(a, b, n):
    """The determinant by elimination with the largest pivot."""
    m = [
        [math.sin(a * (i + 1) * (j + 2)) + (b if i == j else 0.0) for j in range(n)]
        for i in range(n)
    ]
    determinant = 1.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(m[i][k]) > abs(m[p][k]):
                p = i
        if p != k:
            m[k], m[p] = m[p], m[k]
            determinant = -determinant
        determinant = determinant * m[k][k]
        for i in range(k + 1, n):
            factor = m[i][k] / m[k][k]
            for j in range(k + 1, n):
                m[i][j] -= factor * m[k][j]
    return determinant


# ------------------------------------------------------------------------------------- dynamic programming


@program(lambda r: (r.uniform(0.1, 2), r.uniform(0.1, 2), r.randint(1, 5), r.randint(1, 5)))
def edit_distance(a, b, n, m):
    previous = [b * j for j in range(m + 1)]
    for i in range(n):
        current = [a * (i + 1)]
        for j in range(m):
            d = abs(math.sin(a * i) - math.sin(b * j))
            current.append(min(min(previous[j + 1] + a, current[j] + b), previous[j] + d))
        previous = current
    return previous[m]


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.1, 2), r.randint(2, 6)))
def table_of_lists(a, b, n):
    t = [[0.0] * n for _ in range(n)]
    for i in range(n):
        t[i][i] = a * math.sin(b * i + 0.3)
    for w in range(1, n):
        for i in range(n - w):
            j = i + w
            best = t[i][j - 1] + t[j][j] * b
            for k in range(i, j):
                x = t[i][k] + t[k + 1][j]
                if x < best:
                    best = x * 1.0
            t[i][j] = best + a * w
    return t[0][n - 1]


@program(lambda r: (r.uniform(0.5, 1.5), r.uniform(-1, 1), r.randint(0, 12)))
def memoised_recursion(a, b, n):
    known = {}

    def value(k):
        if k < 2:
            return a + k * b
        if k in known:
            return known[k]
        found = 0.5 * value(k // 2) + math.sin(value(k - 2))
        known[k] = found
        return found

    return value(n) * a


# --------------------------------------------------------------------------------------------- what changes


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.1, 1), r.randint(0, 12)))
def dict_item(a, b, n):
    d = {"s": a, "n": 0}
    for i in range(n):
        if math.sin(b * i + d["s"]) > 0.1:
            d["s"] = d["s"] * 0.9 + b
            d["n"] = d["n"] + 1
    return d["s"] * d["n"] + a


class Account:
    """An amount of money."""

    fee = 0.25

    def __init__(self, amount):
        self.amount = amount
        self.moves = 0

    def move(self, x):
        if x < 0.0 and self.amount + x < 0.0:
            self.amount = self.amount - self.fee
            return 0.0
        self.amount = self.amount + x
        self.moves += 1
        return x


@program(lambda r: (r.uniform(0, 2), r.uniform(0.1, 1), r.randint(0, 12)))
def attribute(a, b, n):
    account, other = Account(a), Account(0.0)
    total = 0.0
    for i in range(n):
        x = account.move(math.sin(3.0 * b * i) * a)
        if x:
            other.amount = other.amount + 0.1 * x
        total = total + account.amount
    return total + other.amount * account.moves


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.1, 1), r.randint(0, 9)))
def swapped_names(a, b, n):
    """Two lists that change their names, and may be one."""
    u = [a, b, a * b]
    v = u
    if a > 0.3:
        v = [b, a, a - b]
    for i in range(n):
        v[i % 3] = u[(i + 1) % 3] * 0.9 + v[(i + 2) % 3] * b
        u[0] = u[0] + 0.1
        if v[1] > 0.5:
            u, v = v, u
    return u[0] + v[1] + u[2]


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.1, 1), r.randint(1, 12)))
def stack_of_numbers(a, b, n):
    """A machine whose stack grows and shrinks as the numbers decide."""
    stack = [a]
    for i in range(n):
        top = stack[-1]
        if len(stack) > 1 and math.cos(7.0 * b * i + top) < 0.0:
            x = stack.pop()
            y = stack.pop()
            stack.append(x * y + b)
        elif top > 0.4:
            stack.append(top - b)
        else:
            stack[-1] = top * top + 0.3
            stack.append(b * i)
    return sum(stack) * len(stack)


@program(lambda r: (r.uniform(0, 2), r.uniform(0.1, 2), r.randint(0, 9)))
def queue_of_events(a, b, n):
    """Times kept in order by insertion; the earliest makes two later ones."""
    queue = [a]
    clock = served = 0.0
    for i in range(n):
        if not queue:
            break
        clock = queue.pop(0)
        served = served + clock * b
        for factor in (0.7, 1.3):
            time = clock + factor * b * (1.0 + math.sin(i + a))
            if time < 4.0:
                place = 0
                while place < len(queue) and queue[place] <= time:
                    place += 1
                queue.insert(place, time)
    return served + clock * len(queue)


@program(
    lambda r: ([r.uniform(-1, 1) for _ in range(r.randint(1, 8))], r.uniform(0.5, 2), r.random())
)
def kth_smallest(xs, a, where):
    """By quick selection, with new lists for the smaller and the larger ones."""
    k = int(where * len(xs))
    while True:
        pivot = xs[len(xs) // 2]
        less, more = [], []
        same = 0
        for x in xs:
            if x < pivot:
                less.append(x)
            elif x > pivot:
                more.append(x)
            else:
                same += 1
        if k < len(less):
            xs = less
        elif k < len(less) + same:
            return pivot * a
        else:
            k -= len(less) + same
            xs = more


@program(lambda r: ([r.uniform(-1, 1) for _ in range(r.randint(2, 7))], r.uniform(0.2, 0.8)))
def gaps(xs, a):
    """`enumerate`, `zip`, `reversed`, slices of steps."""
    total = 0.0
    for i, x in enumerate(xs):
        if i % 2:
            total = total + x * a
    for x, y in zip(xs, xs[1:]):
        total = total + (x - y) * (x - y) if x > y else total * a + y
    for i in range(len(xs) - 1, 0, -2):
        total = total - xs[i] * xs[i // 2]
    for x in reversed(xs):
        if x > 0.5:
            break
        total = total * 0.9 + x
    return total


# ------------------------------------------------------------------------------------------------ the ways


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(1, 9)))
def zero_divisions(a, b, n):
    """Exceptions as control flow; the ints decide where one is divided by zero."""
    total, bad = a, 0
    for i in range(n):
        try:
            total = total + b / (i % 3)
            total = total * 0.5 + math.sqrt(total)
        except ZeroDivisionError:
            bad += 1
            total = total * 0.8 - b
        except ValueError:
            total = total + 0.3
    return total * bad + b


@program(lambda r: (r.uniform(0.5, 3), r.uniform(0.1, 1), r.randint(0, 9)))
def for_else(a, b, n):
    x = a
    for i in range(n):
        x = x * 0.8 + b * 0.1
        if x < b:
            x = x * i + 1.0
            break
    else:
        x = x + a * b
    return x * x


@program(lambda r: (r.uniform(-1, 1), r.uniform(0.1, 2), r.randint(0, 6), r.randint(0, 6)))
def continues(a, b, n, m):
    total = a
    for i in range(n):
        if math.sin(a + i) > 0.6:
            continue
        for j in range(m):
            if j == i:
                continue
            if total > 3.0:
                break
            total = total + b * math.cos(a * j)
        total = total * 0.7
    return total


@program(lambda r: (r.uniform(0.2, 3), r.uniform(0.5, 0.95)))
def while_true(a, b):
    k = 0
    while True:
        a = a * b
        k += 1
        if a < 0.1:
            return a * k
        if k > 7:
            return a + b


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(0, 9)))
def ternaries(a, b, n):
    x = a if a > b else b * 2.0
    for i in range(n):
        x = (x - 0.5 if x > 0.5 else x * x) if i % 2 == 0 else (x + b if b > 0.0 else x - a)
    return x * (1.0 if n > 4 else a)


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(0, 9)))
def ands_and_ors(a, b, n):
    x, started, last = a, False, None
    for i in range(n):
        if (x > 0.0 and b > 0.0) or (started and not i % 3):
            x = x * 0.5 - b
            last = i
        elif -0.5 < x <= 0.4 or last is None:
            x = x + 0.6
            started = True
        else:
            x = abs(x) or a
    return x + (last or 0) * b


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.uniform(-1, 1)), (0, 1, 2))
def largest_and_smallest(a, b, c):
    x = max(a, b, c) * min(a, b)
    for step in (0.5, -0.25, 0.125):
        x = max(min(x + step, abs(a)), -abs(c), b * step)
    return x + abs(a - b)


def scaled(x, y=0.5, *, power=2, mode="plain"):
    if mode == "plain":
        return x * y
    if mode == "root":
        return math.sqrt(abs(x * y) + 0.1)
    return x**power + y


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(0, 8)))
def modes(a, b, n):
    """Strings decide; defaults and keywords."""
    mode, total = "plain", a
    for i in range(n):
        total = (
            total
            + scaled(total, mode=mode) * 0.3
            + scaled(b, a, power=i % 3, mode="power" if a > b else mode)
        )
        if total > 0.8:
            mode, total = "root", total - 1.0
        elif mode == "root":
            mode = "power"
        else:
            mode = "plain"
    return total + scaled(x=b)


def damper(rate, floor):
    def damp(x):
        return x * rate if x > floor else x + rate * floor

    return damp


SLOW, FAST = damper(0.9, 0.2), damper(0.5, -0.1)


@program(lambda r: (r.uniform(-1, 2), r.uniform(0, 1), r.randint(0, 9)))
def closures(a, b, n):
    """Closures over constants, and over what the run made."""
    own = damper(b, a * 0.1)
    x = a
    for _ in range(n):
        damp = SLOW if x > b else FAST
        x = damp(x) + own(b) * 0.1
    return own(x)


class Vector:
    """A vector in space."""

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k, self.z * k)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z


@program(lambda r: (r.uniform(0.3, 1), r.uniform(-0.6, 0.6), r.randint(1, 5)))
def ray_tracer(radius, shift, n):
    """Light that comes back from two spheres, along a fan of rays."""
    spheres = [Vector(shift, 0.0, 3.0), Vector(-0.8, shift, 4.0)]
    light = Vector(0.6, 0.8, 0.0)
    total = 0.0
    for i in range(n):
        ray = Vector(0.15 * i - 0.3, 0.1, 1.0)
        ray = ray * (1.0 / math.sqrt(ray.dot(ray)))
        nearest, seen = 100.0, None
        for centre in spheres:
            b = ray.dot(centre)
            d = b * b - centre.dot(centre) + radius * radius
            if d > 0.0:
                t = b - math.sqrt(d)
                if 0.0 < t < nearest:
                    nearest, seen = t, centre
        if seen is None:
            total = total + 0.1 * radius
            continue
        normal = (ray * nearest - seen) * (1.0 / radius)
        total = total + max(normal.dot(light), 0.0) + 0.01 * nearest
    return total


@program(lambda r: (r.uniform(0.1, 1), r.uniform(-1, 1), r.randint(1, 40)))
def collatz(a, b, n):
    total = b
    while n != 1:
        if n % 2:
            n = 3 * n + 1
            total = total * 0.9 + a
        else:
            n //= 2
            total = total * a
    return total


@program(lambda r: (r.uniform(0.1, 1), r.uniform(-1, 1), r.randint(0, 10**9), r.randint(1, 20)))
def random_walk(step, start, seed, n):
    """Steps drawn by a linear congruential generator of ints of many digits."""
    state, x = seed, start
    for _ in range(n):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        if state >> 63:
            x = x + step
        elif (state >> 40) & 1:
            x = x * 0.9 - step
        else:
            x = x - step * ((state >> 11) / 2**53)
        if x < -2.0:
            break
    return x * x


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(0, 8)))
def returned_tuples(a, b, n):
    def turned(x, y, k):
        if x > y:
            return y, x - 0.1 * k, k + 1
        return x * 0.9, y + 0.2, k

    pair, k = (a, b), 0
    for _ in range(n):
        x, y, k = turned(*pair, k)
        pair = (y, x) if k % 2 else (x, y)
    (x, y), factor = pair, k
    return x * y + factor * x


@program(lambda r: (r.uniform(-1, 1), r.uniform(-1, 1), r.randint(0, 7)))
def mutual_recursion(a, b, n):
    def even(x, k):
        if k == 0:
            return x
        return odd(x * 0.8 + b, k - 1) if x < 1.0 else even(x - 1.0, k - 1) * a

    def odd(x, k):
        return x - b if k <= 0 else even(math.sin(x), k - 1)

    return even(a, n)


@program(lambda r: ([r.uniform(-2, 2) for _ in range(r.randint(1, 8))], r.uniform(0.3, 1)))
def nonlocal_state(xs, a):
    """State that a closure keeps in its cells."""
    mean, count = 0.0, 0

    def see(x):
        nonlocal mean, count
        count += 1
        mean = mean + (x - mean) / count if abs(x) > 0.2 else mean * a

    for x in xs:
        see(x)
    return mean * count + a


class Node:
    """A node of a search tree."""

    def __init__(self, key):
        self.key, self.left, self.right = key, None, None


@program(lambda r: ([r.uniform(-2, 2) for _ in range(r.randint(1, 8))], r.uniform(0.3, 1)))
def search_tree(xs, a):
    root = None
    for x in xs:
        if root is None:
            root = Node(x)
            continue
        node = root
        while True:
            if x < node.key:
                if node.left is None:
                    node.left = Node(x)
                    break
                node = node.left
            else:
                if node.right is None:
                    node.right = Node(x)
                    break
                node = node.right

    def weight(node, depth):
        if node is None:
            return 0.0
        return weight(node.left, depth + 1) * a + node.key * depth + weight(node.right, depth + 1)

    return weight(root, 1)
