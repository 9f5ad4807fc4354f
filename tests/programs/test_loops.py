"""Programs with loops, recursion and writing in place."""

import cmath
import math

import numpy as np
import pytest

from helpers import assert_close, check, numeric_grad
from wengert import grad, pullback, value_and_grad


def test_newtons_square_root():
    def root(a):
        x = a
        while abs(x * x - a) > 1e-14 * a:
            x = (x + a / x) / 2
        return x

    for a in (2.0, 9.0, 1e-3, 12345.678):
        value, slope = value_and_grad(root)(a)
        assert value == root(a)
        assert value == pytest.approx(math.sqrt(a))
        assert slope == pytest.approx(0.5 / math.sqrt(a), rel=1e-6)


def test_recursive_power():
    def power(x, n):
        if n == 0:
            return 1.0
        half = power(x, n // 2)
        return half * half * x if n % 2 else half * half

    for n in (0, 1, 2, 13, 64):
        assert grad(power)(1.1, n) == pytest.approx(n * 1.1 ** max(n - 1, 0))
    assert grad(grad(power))(1.1, 13) == pytest.approx(13 * 12 * 1.1**11)


def test_running_maximum():
    def running_maximum(xs):
        best, result = -math.inf, []
        for x in xs:
            if x > best:
                best = x
            result.append(best)
        return result

    xs = [0.3, 0.1, 0.9, 0.4, 1.5, 1.2]
    value, back = pullback(running_maximum, xs)
    assert value == [0.3, 0.3, 0.9, 0.9, 1.5, 1.5]
    assert back([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) == ([3.0, 0.0, 12.0, 0.0, 48.0, 0.0],)


def test_running_maximum_of_an_array():
    def running_maximum(v):
        out = v.copy()
        for i in range(1, len(v)):
            out[i] = max(out[i - 1], v[i])
        return out

    v = np.array([0.3, 0.1, 0.9, 0.4, 1.5, 1.2])
    assert_close(pullback(running_maximum, v)[1](np.ones(6)), (np.array([2.0, 0, 2, 0, 2, 0]),))
    assert_close(
        pullback(np.maximum.accumulate, v)[1](np.ones(6)), (np.array([2.0, 0, 2, 0, 2, 0]),)
    )


def test_cumulative_recurrence_through_views():
    def recurrence(v, decay):
        a = v.copy()
        for i in range(1, len(a)):
            before, here = a[i - 1 : i], a[i : i + 1]
            here += decay * before
        return a

    v, decay = np.array([1.0, 2.0, -1.0, 0.5]), 0.7
    value, back = pullback(recurrence, v, decay)
    powers = np.array([[decay ** max(i - j, 0) * (j <= i) for j in range(4)] for i in range(4)])
    assert value == pytest.approx(powers @ v)
    dv, ddecay = back(np.array([1.0, -1.0, 2.0, 3.0]))
    assert_close(dv, np.array([1.0, -1.0, 2.0, 3.0]) @ powers)
    check(recurrence, v, decay)


def test_recursive_fourier_transform():
    def fft(xs):
        n = len(xs)
        if n == 1:
            return xs
        even, odd = fft(xs[::2]), fft(xs[1::2])
        turned = [cmath.exp(-2j * cmath.pi * k / n) * odd[k] for k in range(n // 2)]
        return [e + t for e, t in zip(even, turned)] + [e - t for e, t in zip(even, turned)]

    xs = [1.0, 2.0, -0.5, 0.25, 3.0, 0.0, -1.0, 0.7]
    value, back = pullback(lambda xs: [abs(z) ** 2 for z in fft(xs)], xs)
    assert value == pytest.approx(np.abs(np.fft.fft(xs)) ** 2)
    (gradient,) = back([1.0] * 8)
    assert gradient == pytest.approx([2 * 8 * x for x in xs])  # Parseval


def test_mandelbrot():
    def escape(re, im):
        z = c = complex(re, im)
        for n in range(50):
            if abs(z) > 4:
                break
            z = z * z + c
        return n + 1 - math.log2(math.log(abs(z)))

    check(escape, 0.4, 0.5, h=2**-12)


def test_dynamic_programming():
    def soft_dtw(a, b, gamma=0.5):
        n, m = len(a), len(b)
        table = {(0, 0): 0.0}
        for i in range(n + 1):
            for j in range(m + 1):
                if (i, j) in table:
                    continue
                options = [table.get(key, 1e3) for key in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
                low = min(options)
                soft = low - gamma * math.log(sum(math.exp((low - o) / gamma) for o in options))
                cost = (a[i - 1] - b[j - 1]) ** 2 if i and j else 1e3
                table[i, j] = cost + soft
        return table[n, m]

    check(soft_dtw, [0.1, 0.8, 0.5], [0.0, 0.3, 0.9, 0.6])


def test_hidden_markov_model():
    def log_likelihood(start, move, emit, seen):
        alpha = [start[s] * emit[s][seen[0]] for s in range(2)]
        total = 0.0
        for y in seen[1:]:
            alpha = [sum(alpha[r] * move[r][s] for r in range(2)) * emit[s][y] for s in range(2)]
            scale = sum(alpha)
            alpha = [a / scale for a in alpha]
            total += math.log(scale)
        return total

    check(
        log_likelihood,
        [0.6, 0.4],
        [[0.7, 0.3], [0.2, 0.8]],
        [[0.5, 0.3, 0.2], [0.1, 0.4, 0.5]],
        (0, 2, 1, 1, 2, 0),
    )


def test_kalman_filter():
    def loss(process_noise, sensor_noise, measurements):
        x, p = np.zeros(2), np.eye(2)
        step = np.array([[1.0, 0.1], [0.0, 1.0]])
        look = np.array([[1.0, 0.0]])
        total = 0.0
        for z in measurements:
            x = step @ x
            p = step @ p @ step.T + process_noise * np.eye(2)
            s = look @ p @ look.T + sensor_noise
            gain = p @ look.T @ np.linalg.inv(s)
            surprise = z - look @ x
            x = x + gain @ surprise
            p -= gain @ look @ p
            total += (surprise @ np.linalg.solve(s, surprise)) + np.log(np.linalg.det(s))
        return total

    check(loss, 0.1, 0.5, np.array([0.1, 0.3, 0.2, 0.7]))


def test_game_of_rates():
    """PageRank by power iteration until it stands still."""

    def rank(links, damping):
        n = len(links)
        links = links / links.sum(axis=0)
        r = np.full(n, 1 / n)
        while True:
            new = damping * links @ r + (1 - damping) / n
            if np.abs(new - r).max() < 1e-13:
                return new
            r = new

    links = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.7], [0.3, 2.0, 0.0]])
    value, back = pullback(rank, links, 0.85)
    assert value.sum() == pytest.approx(1.0)
    check(rank, links, 0.85, tol=1e-6)


def test_bisection_has_no_slope_of_its_own():
    """Bisection only decides: its result moves in jumps, and the gradient says what the program says."""

    def root(a):
        low, high = 0.0, 10.0
        for _ in range(60):
            middle = (low + high) / 2
            if middle * middle < a:
                low = middle
            else:
                high = middle
        return middle

    value, slope = value_and_grad(root)(2.0)
    assert value == pytest.approx(math.sqrt(2.0))
    assert slope == 0.0


def test_ray_tracer():
    class Sphere:
        def __init__(self, centre, radius, colour):
            self.centre, self.radius, self.colour = centre, radius, colour

        def hit(self, origin, ray):
            to = [c - o for c, o in zip(self.centre, origin)]
            along = sum(a * b for a, b in zip(to, ray))
            off = sum(a * a for a in to) - along * along
            if off > self.radius**2:
                return None
            return along - math.sqrt(self.radius**2 - off)

    def pixel(scene, light, x, y):
        ray = [x, y, 1.0]
        size = math.sqrt(sum(a * a for a in ray))
        ray = [a / size for a in ray]
        hits = [
            (t, i, s) for i, s in enumerate(scene) if (t := s.hit([0.0, 0.0, 0.0], ray)) is not None
        ]
        if not hits:
            return 0.0
        t, _, sphere = min(hits)
        normal = [(t * a - c) / sphere.radius for a, c in zip(ray, sphere.centre)]
        return sphere.colour * max(0.1, sum(a * b for a, b in zip(normal, light)))

    scene = [Sphere([0.0, 0.0, 3.0], 1.0, 0.8), Sphere([0.5, 0.2, 5.0], 2.0, 0.5)]
    check(lambda scene, light, x, y: pixel(scene, light, x, y), scene, [0.3, 0.4, -0.8], 0.1, 0.05)
    check(
        lambda scene, x: [pixel(scene, [0.0, 0.6, -0.8], x * i, 0.1) for i in range(4)], scene, 0.13
    )


def test_an_interpreter_of_expressions():
    def evaluate(tree, scope):
        match tree:
            case float() | int():
                return tree
            case str(name):
                return scope[name]
            case ("let", name, value, body):
                return evaluate(body, {**scope, name: evaluate(value, scope)})
            case ("if", test, yes, no):
                return evaluate(yes if evaluate(test, scope) > 0 else no, scope)
            case ("fun", name, body):
                return lambda x: evaluate(body, {**scope, name: x})
            case ("call", function, argument):
                return evaluate(function, scope)(evaluate(argument, scope))
            case (operator, *operands):
                a, b = (evaluate(item, scope) for item in operands)
                return {"+": a + b, "-": a - b, "*": a * b}[operator]

    program = (
        "let",
        "f",
        ("fun", "y", ("*", "y", ("+", "x", "y"))),
        ("if", ("-", "x", 1.0), ("call", "f", ("*", "x", "x")), ("call", "f", 3)),
    )
    # x > 1: x^2 (x + x^2) = x^3 + x^4;  otherwise 3 (x + 3)
    for x, slope in ((2.0, 12.0 + 32.0), (0.5, 3.0)):
        assert grad(lambda x: evaluate(program, {"x": x}))(x) == slope


def test_gauss_seidel_in_place():
    def solve(a, b, sweeps=30):
        x = np.zeros_like(b)
        for _ in range(sweeps):
            for i in range(len(b)):
                x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
        return x

    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    b = np.array([1.0, -2.0, 0.5])
    value, back = pullback(solve, a, b)
    dx = np.array([1.0, 2.0, 3.0])
    da, db = back(dx)
    assert_close(db, np.linalg.solve(a.T, dx), tol=1e-9)
    assert_close(da, -np.outer(db, value), tol=1e-9)


def test_wave_equation():
    def wave(u, speed, steps=20):
        before, now = u.copy(), u.copy()
        for _ in range(steps):
            after = np.zeros_like(u)
            after[1:-1] = 2 * now[1:-1] - before[1:-1] + speed**2 * np.diff(now, 2)
            before, now = now, after
        return np.sum(now**2)

    u = np.sin(np.linspace(0, np.pi, 9)) * np.linspace(0.5, 1, 9)
    check(wave, u, 0.4)
    assert grad(wave)(u, 0.4) == pytest.approx(numeric_grad(wave, u, 0.4), abs=1e-8)


def test_longest_branch_of_random_walks():
    def walk(step, seed):
        rng = np.random.default_rng(seed)
        x, longest = 0.0, 0.0
        for _ in range(50):
            x += step * rng.choice([-1.0, 1.0]) + 0.01 * step**2
            longest = max(longest, abs(x))
        return longest

    for seed in range(3):
        check(walk, 0.7, seed)
