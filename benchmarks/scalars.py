"""Programs over plain floats: formulas, scalar loops, recursion."""

import math

import numpy as np

from .program import Program

# ------------------------------------------------------------------------------------- straight lines


def quotient(a, b):
    return a / (a + b * b)


def quotient_by_hand(a, b):
    s = a + b * b
    value = a / s
    ds = -value / s
    return value, (1 / s + ds, 2 * b * ds)


def haaland(reynolds, roughness):
    """The friction factor of a pipe, by Haaland's formula."""
    return (-1.8 * math.log10((roughness / 3.7) ** 1.11 + 6.9 / reynolds)) ** -2


def haaland_by_hand(reynolds, roughness):
    r = roughness / 3.7
    p = r**1.11
    q = 6.9 / reynolds
    s = p + q
    t = -1.8 * math.log10(s)
    value = t**-2
    ds = 2 * value / t * (1.8 / math.log(10)) / s
    return value, (-ds * q / reynolds, ds * 1.11 * p / roughness)


# --------------------------------------------------------------------------------------------- loops


def newton(a):
    """The square root by Newton's method; how many steps it takes depends on `a`."""
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def newton_by_hand(a):
    x = a
    seen = []
    while abs(x * x - a) > 1e-12 * a:
        seen.append(x)
        x = 0.5 * (x + a / x)
    dx, da = 1.0, 0.0
    for before in reversed(seen):
        dx *= 0.5
        d = dx / before
        da += d
        dx -= d * a / before
    return x, da + dx


def logistic(x, r, steps):
    """The logistic map, a chaotic population."""
    for _ in range(steps):
        x = r * x * (1 - x)
    return x


def logistic_by_hand(x, r, steps):
    seen = []
    for _ in range(steps):
        seen.append(x)
        x = r * x * (1 - x)
    dx, dr = 1.0, 0.0
    for before in reversed(seen):
        dr += dx * before * (1 - before)
        dx *= r * (1 - 2 * before)
    return x, (dx, dr)


def logistic_in_jax(x, r, steps):
    """The loop as `lax.scan`: unrolled, a thousand steps take tens of seconds to compile."""
    import jax

    def step(x, _):
        return r * x * (1 - x), None

    return jax.lax.scan(step, x, None, length=steps)[0]


def horner(coefficients, points):
    """The sum of a polynomial's values at some points."""
    total = 0.0
    for x in points:
        s = 0.0
        for c in coefficients:
            s = s * x + c
        total = total + s
    return total


def horner_by_hand(coefficients, points):
    total = 0.0
    n = len(coefficients)
    gradient = [0.0] * n
    backwards = range(n - 1, -1, -1)
    for x in points:
        s = 0.0
        for c in coefficients:
            s = s * x + c
        total += s
        d = 1.0
        for k in backwards:
            gradient[k] += d
            d *= x
    return total, gradient


def horner_for_tangent(coefficients, points):
    """Indices instead of elements: tangent gives a list gone through by `for` the gradient zero."""
    total = 0.0
    for i in range(len(points)):
        s = 0.0
        for k in range(len(coefficients)):
            s = s * points[i] + coefficients[k]
        total = total + s
    return total


def polynomial(degree=20, points=50):
    return (
        [(-0.9) ** k + 0.1 * k for k in range(degree + 1)],
        [(k + 0.5) / points for k in range(points)],
    )


# ----------------------------------------------------------------------------------------- recursion


def tree(x, depth):
    """A product over a binary tree, by calls of itself."""
    if depth == 0:
        return math.sin(x)
    return tree(0.5 * x, depth - 1) * tree(x + 0.25, depth - 1)


def tree_by_hand(x, depth):
    if depth == 0:
        return math.sin(x), math.cos(x)
    left, dleft = tree_by_hand(0.5 * x, depth - 1)
    right, dright = tree_by_hand(x + 0.25, depth - 1)
    return left * right, 0.5 * dleft * right + left * dright


def determinant(rows):
    """By expansion along the first row, the minors by recursion."""
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c
    total = 0.0
    sign = 1.0
    for j in range(len(rows)):
        minor = [row[:j] + row[j + 1 :] for row in rows[1:]]
        total = total + sign * rows[0][j] * determinant(minor)
        sign = -sign
    return total


def determinant_by_hand(rows):
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c, [[d, -c], [-b, a]]
    total, sign = 0.0, 1.0
    first = []
    rest = [[0.0] * len(rows) for _ in rows[1:]]
    for j, x in enumerate(rows[0]):
        value, gradient = determinant_by_hand([row[:j] + row[j + 1 :] for row in rows[1:]])
        first.append(sign * value)
        x *= sign
        total += x * value
        for row, drow in zip(rest, gradient):
            for k, d in enumerate(drow[:j]):
                row[k] += x * d
            for k, d in enumerate(drow[j:], j + 1):
                row[k] += x * d
        sign = -sign
    return total, [first, *rest]


def matrix(size=6):
    return (np.random.default_rng(1).normal(size=(size, size)).tolist(),)


PROGRAMS = [
    Program("quotient", quotient, quotient_by_hand, lambda: (2.0, 3.0), {}, (0, 1), 1.5),
    Program("haaland", haaland, haaland_by_hand, lambda: (1e5, 1e-4), {}, (0, 1), 1.5),
    Program("newton", newton, newton_by_hand, lambda: (1234.5,), {}, 0, 1.0),
    Program(
        "logistic",
        logistic,
        logistic_by_hand,
        lambda steps=1000: (0.4, 3.7, steps),
        {"steps": 4},
        (0, 1),
        1.0,
        {"jax.jit": logistic_in_jax},
    ),
    Program(
        "horner",
        horner,
        horner_by_hand,
        polynomial,
        {"degree": 4, "points": 3},
        0,
        1.0,
        {"tangent": horner_for_tangent},
    ),
    Program("recursion", tree, tree_by_hand, lambda depth=6: (0.7, depth), {"depth": 3}, 0, 1.0),
    Program("determinant", determinant, determinant_by_hand, matrix, {"size": 4}, 0, 1.0),
]
