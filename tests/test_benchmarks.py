"""The gradients written by hand in `benchmarks/` are right: finite differences say so, and so does Wengert."""

import sys
from pathlib import Path

import numpy as np
import pytest

from wengert import value_and_grad

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import extras, gradbench, large, rules, scalars, small
from benchmarks.program import Program, disagreement, leaves, mapped, rebound

PROGRAMS = [
    *(p for family in (scalars, small, large, gradbench) for p in family.PROGRAMS),
    Program(
        "guards",
        extras.six_products,
        extras.six_products_by_hand,
        extras.six_arrays,
        {},
        0,
        1.0,
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_written_by_hand(program):
    arguments = program.arguments(**program.tiny)
    value, gradients = program.hand(*arguments)
    np.testing.assert_allclose(value, program.function(*arguments), rtol=1e-13)
    single = isinstance(program.argnums, int)
    wrt = (program.argnums,) if single else program.argnums
    draw = np.random.default_rng(3)
    for k, gradient in zip(wrt, (gradients,) if single else gradients, strict=True):
        for _ in range(3):
            direction = mapped(lambda leaf: leaf * draw.normal(size=np.shape(leaf)), arguments[k])
            products = zip(leaves(direction), leaves(gradient), strict=True)
            expected = sum(np.sum(d * g) for d, g in products)
            found = difference_quotient(program.function, arguments, k, direction)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * (1 + abs(value)))
    ours = value_and_grad(program.function, argnums=program.argnums)(*arguments)
    assert disagreement(ours, (value, gradients), 1e-10) is None


def difference_quotient(f, arguments, k, direction):
    """The derivative along a direction, by central differences of the fourth order."""

    def along(t):
        steps = iter(leaves(direction))
        moved = mapped(lambda leaf: leaf + t * next(steps), arguments[k])
        return f(*arguments[:k], moved, *arguments[k + 1 :])

    h = 1e-3
    return (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)


def test_gradients_that_differ_are_found():
    found = (1.0, [np.ones(2), 3.0])
    assert disagreement(found, (1.0, (np.ones(2), 3.0))) is None
    assert "leaf 2" in disagreement(found, (1.0, [np.ones(2), 3.1]))
    assert "leaf 1" in disagreement(found, (1.0, [np.ones(3), 3.0]))
    assert "2 leaves" in disagreement((1.0, 2.0), found)
    assert "leaf 0" in disagreement((np.nan,), (1.0,))


def test_rebound_functions_call_each_other():
    class Loud:
        sin = staticmethod(lambda x: 10.0)

    assert rebound(scalars.tree, math=Loud)(0.3, 2) == 10.0**4
    assert scalars.tree(0.3, 0) == np.sin(0.3)


@pytest.mark.parametrize("case", rules.CASES, ids=lambda case: case[0])
def test_rules_can_be_timed(case):
    _, make, _ = case
    function, back, size = rules.timed(make, 8 if case[0] != "mean over an axis" else 200, 0.0)
    assert function > 0 and back > 0 and size > 0
