"""Which computations count as equal, and what becomes of them in one pass over a tape."""

import math
import operator

import numpy as np
import pytest

from wengert import grad
from wengert.rules.zeros import product
from wengert.tracer.tape import NOWHERE, Input, Tape, append
from wengert.transforms.equal import EXACT, SAME, key_of
from wengert.transforms.reverse import Recorded
from wengert.transforms.simplify import simplified


def tape_of(*values):
    tape = Tape()
    tape.ops = [Input(f"x{i}", v, tape) for i, v in enumerate(values)]
    return tape, tape.ops.copy()


def call(tape, fn, *args):
    with np.errstate(all="ignore"):
        value = fn(*[x.value if hasattr(x, "value") else x for x in args])
    return append(tape, fn, args, {}, value, NOWHERE)


def test_sums_and_products_of_numbers_commute():
    _, (x, y) = tape_of(2.0, 3.0)
    for fn in (operator.add, operator.mul, np.multiply):
        assert key_of(fn, (x, y), {}) == key_of(fn, (y, x), {})
        assert key_of(fn, (x, 2.0), {}) == key_of(fn, (2.0, x), {})
    assert key_of(operator.sub, (x, y), {}) != key_of(operator.sub, (y, x), {})
    assert key_of(operator.pow, (x, 2.0), {}) != key_of(operator.pow, (2.0, x), {})


def test_sums_of_rows_do_not_commute():
    _, (x, y) = tape_of((1.0,), (2.0,))
    assert key_of(operator.add, (x, y), {}) != key_of(operator.add, (y, x), {})


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (1, 1.0), (1, True)])
def test_constants_that_are_equal_but_not_the_same(one, other):
    _, (x,) = tape_of(2.0)
    assert key_of(operator.mul, (x, one), {}) != key_of(operator.mul, (x, other), {})


def test_what_is_equal_where_all_is_finite_is_not_equal_to_the_bit():
    tape, (x, y) = tape_of(0.0, np.float64(np.inf))
    assert key_of(product, (x, y), {}, SAME) == key_of(operator.mul, (x, y), {}, SAME)
    assert key_of(product, (x, y), {}, EXACT) != key_of(operator.mul, (x, y), {}, EXACT)
    plain, careful = call(tape, operator.mul, x, y), call(tape, product, x, y)
    tape.result = (plain, careful)
    found = simplified(tape).result
    assert math.isnan(found[0].value) and found[1].value == 0.0


def test_a_function_of_numpy_gives_another_type_than_the_operator():
    tape, (x, y) = tape_of(2.0, 3.0)
    tape.result = (call(tape, operator.mul, x, y), call(tape, np.multiply, x, y))
    found = simplified(tape).result
    assert [type(op.value) for op in found] == [float, np.float64]


def test_identities_and_equals_in_one_pass():
    tape, (x, y) = tape_of(np.ones(3), np.ones(3))
    once = call(tape, operator.mul, x, y)
    again = call(tape, np.multiply, call(tape, operator.mul, y, 1), x)
    tape.result = (once, call(tape, operator.neg, call(tape, operator.neg, again)))
    found = simplified(tape).result
    assert found[0] is found[1]


def test_a_sweep_does_no_arithmetic_twice():
    tape, (x, y) = tape_of(2.0, 3.0)
    machine = Recorded(tape, NOWHERE)
    first = machine.arithmetic(operator.mul, (x, y), NOWHERE)
    assert machine.arithmetic(operator.mul, (x, y), NOWHERE) is first
    zeros = [machine.arithmetic(operator.mul, (x, z), NOWHERE) for z in (0.0, -0.0)]
    assert [math.copysign(1.0, op.value) for op in zeros] == [1.0, -1.0]
    assert machine.arithmetic(operator.sub, (-2, 1), NOWHERE) == -3  # a number needs no op


def test_an_array_that_is_its_own_factor():
    tape, (x,) = tape_of(np.arange(3.0))
    np.testing.assert_array_equal(grad(lambda v: (v * v).sum())(x.value), 2 * x.value)
