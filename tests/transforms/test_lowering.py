"""Rules of ours are lowered: they run once on boxes, without instrumented bytecode."""

import math
import subprocess
import sys

import numpy as np
import pytest

from wengert import clear_cache, grad, jit, jvp, rrule, value_and_grad
from wengert.rules.registry import rules
from wengert.tracer import rewrite
from wengert.transforms import lowering


@pytest.fixture
def instrumented(monkeypatch):
    """The files and names of the code that is instrumented."""
    clear_cache()
    seen = []
    before = rewrite.instrument

    def instrument(code, hooks, **options):
        seen.append((code.co_filename, code.co_name))
        return before(code, hooks, **options)

    monkeypatch.setattr(rewrite, "instrument", instrument)
    return seen


def scalars(x):
    return math.sin(x) * x + math.hypot(x, 2.0) ** 1.5


def arrays(x):
    a = np.outer(x, x) + 3.0 * np.eye(3)
    b = np.linalg.solve(a, np.tanh(x)) @ np.cumsum(x)
    return b + np.linalg.norm(a, axis=0).sum() + np.sum(np.einsum("ij,j->i", a, x)[::2])


@pytest.mark.parametrize(
    ("f", "x"), [(scalars, 0.7), (arrays, np.array([0.5, 1.5, 2.0]))], ids=["scalars", "arrays"]
)
def test_rules_are_not_instrumented(f, x, instrumented):
    with jit(False):
        value_and_grad(f)(x)
        jvp(f, (x,), (x,))
        grad(lambda y: np.sum(grad(f)(y)))(x)
    assert any(name == f.__name__ for _, name in instrumented)
    assert not [where for where in instrumented if "rules" in where[0].split("wengert")[-1]]


def test_rules_of_the_users_are_traced_all_the_same(instrumented):
    def cube(x):
        return x**3

    @rrule(cube, pure=True)
    def of_cube(x):
        return cube(x), lambda dy: (dy * 3.0 * x * x,)

    try:
        assert grad(lambda x: cube(x))(2.0) == 12.0
        assert "of_cube" in [name for _, name in instrumented]
    finally:
        del rules[cube]


def test_what_is_replaced_in_a_library_is_not_replaced_in_rules():
    """For they stand on what it was, for as long as the process lives."""
    code = (
        "import math, numpy as np\n"
        "from wengert import grad\n"
        "before = np.sin, math.log\n"
        "np.sin, math.log = np.tan, None\n"
        "found = grad(np.cos)(0.7), grad(np.exp2)(1.5)\n"
        "np.sin, math.log = before\n"
        "again = grad(np.cos)(0.7), grad(np.exp2)(1.5)\n"
        "expected = -math.sin(0.7), 2**1.5 * math.log(2)\n"
        "for got in (found, again):\n"
        "    for a, b in zip(got, expected):\n"
        "        np.testing.assert_allclose(a, b)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_lowered_is_lowered_once():
    def run():
        clear_cache()
        with jit(False):
            value_and_grad(lambda x: arrays(x))(np.array([0.5, 1.5, 2.0]))

    run()
    before = len(lowering.known), len(lowering.scopes)
    for _ in range(3):
        run()
    assert (len(lowering.known), len(lowering.scopes)) == before


def test_numbers_that_a_rule_makes_of_its_own_are_new_at_each_call():
    """An array is an operation of the tape, so that no program hands out the same one twice."""

    def f(x):
        return np.repeat(x, 2)[1:] * x[0]

    from wengert import pullback

    x = np.array([1.0, 2.0])
    for _ in range(4):
        _, back = pullback(f, x)
        first, second = back(np.ones(3))[0], back(np.ones(3))[0]
        first += 1.0
        assert np.array_equal(second, [1.0 + 5.0, 2.0])
