"""What once ended the whole process is tried in one of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

# On CPython 3.13.0, to list the variables of a frame crashes inside a comprehension whose variable is a cell.
BFGS = """
    import random
    from wengert import jit, value_and_grad

    def rosenbrock(x):
        return (1.0 - x[0]) ** 2 + 5.0 * (x[1] - x[0] ** 2) ** 2

    def slope(x):
        return [
            -2.0 * (1.0 - x[0]) - 20.0 * x[0] * (x[1] - x[0] ** 2),
            10.0 * (x[1] - x[0] ** 2),
        ]

    def bfgs(a, b):
        x, H = [a, b], [[1.0, 0.0], [0.0, 1.0]]
        g, k = slope(x), 0
        while k < 6 and sum(v * v for v in g) > 1e-8:
            p = [-sum(H[i][j] * g[j] for j in range(2)) for i in range(2)]
            t = 1.0
            while rosenbrock([x[i] + t * p[i] for i in range(2)]) > rosenbrock(x) and t > 1e-4:
                t *= 0.5
            new = [x[i] + t * p[i] for i in range(2)]
            gn = slope(new)
            s = [new[i] - x[i] for i in range(2)]
            y = [gn[i] - g[i] for i in range(2)]
            sy = sum(s[i] * y[i] for i in range(2))
            if sy > 1e-10:
                Hy = [sum(H[i][j] * y[j] for j in range(2)) for i in range(2)]
                yHy = sum(y[i] * Hy[i] for i in range(2))
                H = [
                    [
                        H[i][j]
                        + (1 + yHy / sy) * s[i] * s[j] / sy
                        - (Hy[i] * s[j] + s[i] * Hy[j]) / sy
                        for j in range(2)
                    ]
                    for i in range(2)
                ]
            x, g, k = new, gn, k + 1
        return rosenbrock(x)

    random.seed(1)
    fg = value_and_grad(bfgs, argnums=(0, 1))
    for _ in range(30):
        a, b = random.uniform(-1, 1), random.uniform(-1, 1)
        value, slopes = fg(a, b)
        assert value == bfgs(a, b)
        with jit(False):
            assert fg(a, b) == (value, slopes)
    """

CELLS = """
    from wengert import value_and_grad

    def variables(x):
        total = 0.0
        for k in range(3):
            total += sum([len(locals()) > 0 and sum(x * j * i for j in range(2)) for i in range(2)])
            rows = [[(lambda: x * i + j)() for j in range(2)] for i in range(k + 1)]
            total += sum(map(sum, rows))
        return total

    class Named:
        def __lt__(self, other):
            return [self is other and (lambda: i)() for i in range(2)][0]

    def compared(x):
        found = 0.0
        for i in range(2):
            found += sum([(lambda: i * x)() + (sorted([Named(), Named()]) == []) for i in range(2)])
        return found

    def built(x):
        for k in range(2):
            class Table:
                scale = 2.0
                values = [(lambda: i * x)() for i in range(3)]
            x = x + Table.values[2] * Table.scale
        return x

    scope = {"k": 0.5}

    def evaluated(x):
        functions = [lambda: i * x for i in range(2)]
        total = sum([eval("k * 2.0", scope) for i in range(3)])
        i = 0
        while i < 3:
            i += 1
        return total * x + functions[1]()

    for f in (variables, compared, built, evaluated):
        for x in (1.5, 2.5, 3.5, -1.0):
            value, slope = value_and_grad(f)(x)
            assert value == f(x), f
            assert abs(slope - (f(x + 1e-5) - f(x - 1e-5)) / 2e-5) < 1e-6 * max(1.0, abs(slope)), f
    """

# The tuple that zip_longest keeps its iterators in has empty places when some have come to an end.
EMPTY_PLACES = """
    import itertools
    from wengert import TraceError, pullback

    def rows(x, left):
        rows = itertools.zip_longest([x], [x, x, x])
        next(rows), next(rows)
        if left:
            return rows
        raise ValueError(x)

    for left, error in ((False, ValueError), (True, TraceError)):
        try:
            pullback(rows, 2.0, left)
        except error:
            continue
        raise AssertionError
    """


@pytest.mark.parametrize(
    "program", [BFGS, CELLS, EMPTY_PLACES], ids=["bfgs", "cells", "empty_places"]
)
def test_programs_end_well(program):
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
