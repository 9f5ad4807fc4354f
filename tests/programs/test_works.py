"""The worked examples of the five texts that Wengert stands on, with every figure that their authors print.

``docs/works.md`` shows the same with its listings; here each figure is an assertion, and what the texts compute by hand
is computed by hand.
"""

import math
import operator
import re

import numpy as np
import pytest

from wengert import (
    forward,
    grad,
    interpret,
    jacobian,
    jvp,
    linearize,
    pullback,
    reverse,
    rrule,
    trace,
    value_and_grad,
)


def defined(tape):
    """The variables that the lines of a tape define, as they are printed."""
    lines = str(tape).splitlines()[1:-1]
    return [name for line in lines for name in line.partition(" = ")[0].strip().split(", ")]


def functions(tape):
    return [op.fn for op in tape if op.kind == "call"]


# ----------------------------------------------------------- dual numbers, and programs that run backward


def friction(x1, x2):
    y1 = x1 / 3.7
    y2 = y1**1.11
    y3 = 6.9 / x2
    y4 = y2 + y3
    y5 = math.log(y4)
    y6 = -1.8 * y5
    y7 = y6**-2
    return y7


def friction_forward(x1, x2, dx1, dx2):
    """The variations, one assignment after the other, by hand."""
    y1 = x1 / 3.7
    y4 = y1**1.11 + 6.9 / x2
    y6 = -1.8 * math.log(y4)
    dy4 = 1.11 * y1**0.11 * (dx1 / 3.7) - 6.9 / x2**2 * dx2
    return -2 * y6**-3 * -1.8 * (dy4 / y4)


def test_friction_along_the_reynolds_number():
    def haaland(e, d, re):
        return 1.0 / (-1.8 * math.log((e / d / 3.7) ** 1.11 + 6.9 / re)) ** 2

    slope = jvp(lambda re: haaland(0.01, 1.0, re), (3000.0,), (1.0,))[1]
    h = 1e-3
    difference = (haaland(0.01, 1.0, 3000 + h) - haaland(0.01, 1.0, 3000 - h)) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-6)
    assert slope == pytest.approx(friction_forward(0.01, 3000.0, 0.0, 1.0), rel=1e-14)


def test_friction_three_times():
    at, directions = (0.01, 3000.0), [(1.0, 0.0), (0.0, 1.0)]
    by_hand = [friction_forward(*at, *v) for v in directions]
    by_duals = [jvp(friction, at, v) for v in directions]
    value, along = linearize(friction, *at)
    again, back = pullback(friction, *at)
    assert {value, again, *[y for y, _ in by_duals]} == {friction(*at)}
    for found in ([dy for _, dy in by_duals], [along(*v) for v in directions], back(1.0)):
        assert found == pytest.approx(by_hand, rel=1e-14)


def test_friction_has_the_lines_of_the_chapter():
    tape = trace(friction, 0.01, 3000.0)
    assert defined(tape)[2:] == [f"y{i}" for i in range(1, 8)]
    variations = [x for x in defined(forward(tape)) if x.startswith("dy")]
    assert variations == [f"dy{i}" for i in range(1, 8)]
    duals = [x for x in defined(reverse(tape, form="naive")) if x.startswith("d")]
    assert duals == ["dy6", "dy5", "dy4", "dx2", "dy1", "dx1"]  # those of y2 and y3 are that of y4


def test_a_variation_of_a_matrix():
    a, da, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.diag([1.0, 0.0]), np.array([3.0, 4.0])

    def eliminated(a):
        factor = a[1, 0] / a[0, 0]
        x1 = (b[1] - factor * b[0]) / (a[1, 1] - factor * a[0, 1])
        return np.array([(b[0] - a[0, 1] * x1) / a[0, 0], x1])

    inverse = np.array([[-2.0, 1.0], [1.5, -0.5]])  # by hand
    for solve in (eliminated, lambda a: np.linalg.solve(a, b)):
        x, dx = jvp(solve, (a,), (da,))
        assert x == pytest.approx(inverse @ b)
        assert dx == pytest.approx(-inverse @ da @ inverse @ b)


def test_a_hole_in_a_formula():
    spline = lambda r: 0.0 if r == 0 else r * r * math.log(abs(r))
    assert [value_and_grad(spline)(r) for r in (0.0, 1.0)] == [(0.0, 0.0), (0.0, 1.0)]


def test_two_operands_at_a_time():
    tape = trace(lambda a, b, c: a * b * c + 2 + 3, 2.0, 3.0, 5.0)
    assert functions(tape) == [operator.mul, operator.mul, operator.add, operator.add]
    a, b, c, ab, abc, more, all_of_it = tape
    assert (ab.args, abc.args) == ((a, b), (ab, c))
    assert (more.args, all_of_it.args) == ((abc, 2), (more, 3))


def test_single_assignment():
    def assigned(x):
        x = 10 + x + 1
        y = x * x
        return y

    tape = trace(assigned, 10)
    assert functions(tape) == [operator.add, operator.add, operator.mul]
    assert tape.result.value == 441
    assert len({op for op in tape}) == 4


def test_from_a_line_to_its_slope():
    tape = trace(lambda m, x, b: m * x + b, 3.0, 2.0, 1.0)
    m = tape[0]
    raw = forward(tape)
    assert functions(raw).count(operator.mul) == 3 and functions(raw).count(operator.add) == 3
    assert raw(3.0, 2.0, 1.0, 0.0, 1.0, 0.0) == (7.0, 3.0)
    for short in (forward(tape, wrt="x"), reverse(tape, wrt="x")):
        assert functions(short) == [operator.mul, operator.add]
        assert short.result[1] is m
    assert reverse(tape, wrt="x", value=False).source().rstrip().endswith("    return m")


def test_a_formula_that_is_tedious_by_hand():
    f = lambda x: -math.log(x**2 + 2 * math.exp(x) + (x + 1) / x)
    x = 2.3
    slope = -(2 * x + 2 * math.exp(x) - 1 / x**2) / (x**2 + 2 * math.exp(x) + (x + 1) / x)
    assert grad(f)(x) == pytest.approx(slope, rel=1e-14)
    assert jvp(f, (x,), (1.0,)) == pytest.approx((f(x), slope), rel=1e-14)


# ------------------------------------------------------------------------------- every call becomes a pair


def test_trace_of_a_product_in_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 30)), rng.normal(size=(30, 30))
    product = lambda a, b: np.trace(a @ b)
    pairs = reverse(trace(product, a, b), form="pairs")
    assert defined(pairs) == ["a", "b", "%3", "back3", "%4", "back4", "%5,", "da", "db"]
    value, gradients = pairs(a, b)
    assert value == product(a, b)
    for found in (gradients, grad(product, argnums=(0, 1))(a, b)):
        assert np.allclose(found[0], b.T, rtol=1e-14) and np.allclose(found[1], a.T, rtol=1e-14)


def test_the_rule_of_a_product_written_by_hand():
    def times(a, b):
        return a * b

    @rrule(times, pure=True)
    def times_rule(a, b):
        return a * b, lambda d: (d * b, a * d)

    value, back = pullback(times, 2.0, 3.0)
    assert (value, back(1.0), back(10.0)) == (6.0, (3.0, 2.0), (30.0, 20.0))
    assert "pair(times)(a, b)" in str(
        reverse(trace(lambda a, b: times(a, b), 2.0, 3.0), form="pairs")
    )


def test_a_statement_before_and_one_after():
    tape = trace(lambda x: math.sin(x) * x, 0.5)
    before = tape.insert(1, abs, tape[0])
    both = before.insert(3, abs, before[0])
    assert functions(both) == [abs, math.sin, abs, operator.mul]
    assert both(0.5) == tape(0.5) == math.sin(0.5) * 0.5


def test_the_gradient_of_the_function_itself():
    def scaled(k):
        return lambda x: k * x * x

    assert pullback(scaled(3.0), 2.0, wrt_self=True)[1](1.0) == ({"k": 4.0}, 12.0)


def test_what_depends_on_what():
    class Known(float):
        inputs: frozenset

    def depends(fn, args, kwargs, site):
        new = Known(fn(*args, **kwargs))
        new.inputs = {
            y for x in args for y in (x.inputs if type(x) is Known else {names.get(x)}) if y
        }
        return new

    names = {0.5: "x", 1.5: "y", 2.5: "z"}
    f = lambda x, y, z: (x * y, math.sin(y), z + 1.0)
    found = [out.inputs for out in interpret(f, *names, call=depends)]
    assert found == [{"x", "y"}, {"y"}, {"z"}]
    back = pullback(f, *names)[1]
    rows = [back(dy) for dy in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    assert [{n for n, d in zip("xyz", row, strict=True) if d} for row in rows] == found


def test_branches_and_loops():
    foo = lambda x: x * x if x > 0 else -x
    assert [grad(foo)(x) for x in (3.0, -3.0, 2.0, -1.0)] == [6.0, -1.0, 4.0, -1.0]

    def summed(x):
        total = 0.0
        for _ in range(5):
            total = total + x * x
        return total

    assert re.search(r"loop 5 times, carrying total", str(trace(summed, 3.0)))
    assert value_and_grad(summed)(3.0) == (45.0, 30.0)


# ------------------------------------------------------------------------------------- a tape, and rules


def g(a, b):
    return a * b


def h(a):
    return math.sin(a)


def two_deep(x1, x2):
    return g(x1, x2) + h(x1)


def test_two_deep():
    value, back = pullback(two_deep, 2.0, 3.0)
    assert value == 6.909297426825682
    assert back(1.0) == (2.5838531634528574, 2.0)
    assert back(1.0) == pytest.approx((2.583853163452614, 2.0000000000001696), rel=1e-12)
    tape = trace(two_deep, 2.0, 3.0)
    assert [str(op.type) for op in tape] == 5 * ["float"]
    assert functions(tape) == [operator.mul, math.sin, operator.add]
    pairs = reverse(tape, form="pairs")
    assert defined(pairs)[2:8] == ["%3", "back3", "%4", "back4", "%5", "back5"]
    assert pairs(2.0, 3.0) == (value, back(1.0))


def test_the_five_variables_that_have_a_derivative():
    tape = trace(two_deep, 2.0, 3.0)
    found = tape.cotangents()
    assert [found[op] for op in tape] == [2.5838531634528574, 2.0, 1.0, 1.0, 1.0]
    assert tape.cotangents(dy=10.0)[tape[1]] == 20.0


def test_what_is_primitive_is_decided_by_function_and_arguments():
    tape = trace(two_deep, 2.0, 3.0, primitives=lambda fn, args: fn is g and args == (2.0, 3.0))
    assert functions(tape) == [g, math.sin, operator.add]
    tape = trace(two_deep, 2.5, 3.0, primitives=lambda fn, args: fn is g and args == (2.0, 3.0))
    assert functions(tape) == [operator.mul, math.sin, operator.add]


def test_what_the_small_version_leaves_out():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    def covered(x1, *, x2):
        p = Point(x1, round(x2))
        return p.x * x2 + p.y

    value, back = pullback(covered, 2.0, x2=3.2)
    assert (value, back(1.0), back(10.0)) == (9.4, (3.2, {"x2": 2.0}), (32.0, {"x2": 20.0}))


# ---------------------------------------------------------------------- from forward to reverse in small steps


def polynomial(t):
    return t**2 + t + 1.0


def test_symbolic_numeric_automatic():
    h = 0.000001
    assert grad(polynomial)(5.0) == jvp(polynomial, (5.0,), (1.0,))[1] == 2.0 * 5.0 + 1.0 == 11.0
    assert (polynomial(5.0 + h) - polynomial(5.0)) / h == 11.000001002514637


def test_primals_and_tangents():
    assert jvp(polynomial, (3.0,), (1.0,)) == (13.0, 7.0)
    tape = forward(trace(polynomial, 3.0))
    assert [op.value for op in tape] == [3.0, 1.0, 9.0, 12.0, 13.0, 6.0, 6.0, 7.0]


def test_an_investment():
    worth = lambda rate: 1000.0 * math.exp(100.0 * (rate - 0.01))
    value, change = jvp(worth, (0.01,), (0.0001,))
    assert (value, change, value + change) == (1000.0, 10.0, 1010.0)


def test_a_sweep_is_as_long_for_a_million_numbers_as_for_ten():
    energy = lambda x: (x * x).sum()
    lengths = {len(reverse(trace(energy, np.ones(n)))) for n in (10, 1_000_000)}
    assert lengths == {6}
    days_in_a_year = 365.25
    assert round(1e6 / days_in_a_year) == 2738  # what a day of one sweep is by a million runs


def test_two_outputs_and_two_inputs():
    def two_results(x):
        y = math.sin(x) * math.sin(x)
        return y + x * 10.0, x + y * 20.0

    found = jvp(two_results, (1.0,), (1.0,))[1]
    assert found == pytest.approx((math.sin(2.0) + 10.0, 1.0 + 20.0 * math.sin(2.0)), rel=1e-15)
    runs = []

    def area(x, y):
        runs.append(1)
        return x * y

    assert [jvp(area, (3.0, 2.0), v)[1] for v in ((1.0, 0.0), (0.0, 1.0))] == [2.0, 3.0]
    assert len(runs) == 2
    assert jacobian(area, argnums=(0, 1), mode="forward")(3.0, 2.0) == (2.0, 3.0)
    assert len(runs) == 3
    assert grad(area, argnums=(0, 1))(3.0, 2.0) == (2.0, 3.0)
    terms = reverse(trace(lambda x, y: x * y, 3.0, 2.0), form="naive").result[1]
    assert [(op.value, op.args[1].name) for op in terms] == [(2.0, "y"), (3.0, "x")]


def test_what_is_shared_costs_nothing():
    def sharing(x, y):
        s = x * y
        return s + s

    tape = trace(sharing, 3.0, 2.0)
    assert functions(tape) == [operator.mul, operator.add]
    assert [tape.cotangents()[op] for op in tape] == [4.0, 6.0, 2.0, 1.0]
    assert functions(reverse(tape)) == [operator.mul, operator.add, operator.mul, operator.mul]
    assert grad(sharing, argnums=(0, 1))(3.0, 2.0) == (4.0, 6.0)

    def doubled(x):
        for _ in range(60):
            x = x + x
        return x

    assert value_and_grad(doubled)(1.0) == (2.0**60, 2.0**60)
    assert len(trace(doubled, 1.0)) == 61


# ------------------------------------------------------------------------------- automation by expressions


def quotient(a, b):
    return a / (a + b * b)


def test_quotient():
    value, back = pullback(quotient, 2.0, 3.0)
    da, db = back(1.0)
    assert (round(value, 4), round(da, 4)) == (0.1818, 0.0744)
    assert math.trunc(db * 1e4) / 1e4 == -0.0991 and round(db, 3) == -0.099  # the post has both
    a, b = 2.0, 3.0
    rolled_up = (b**2 / (a + b**2) ** 2, -2 * a * b / (a + b**2) ** 2)
    for d in (1.0, -2.5):
        assert back(d) == pytest.approx([d * x for x in rolled_up], rel=1e-15)
    assert pullback(quotient, 1.0, 2.0)[0] == 0.2
    assert pullback(quotient, 2.0, 3.0, wrt_self=True)[1](1.0)[0] == {}  # of the function: nothing


def test_quotient_has_the_lines_of_the_post():
    tape = trace(quotient, 2.0, 3.0)
    assert functions(tape) == [operator.mul, operator.add, operator.truediv]
    pairs = reverse(tape, form="pairs")
    backward = ["%6", "%7", "%8", "%9", "da", "%11", "%12", "db"]
    assert defined(pairs)[2:8] == ["%3", "back3", "%4", "back4", "%5", "back5"]
    assert defined(pairs)[8:] == backward
    assert re.findall(r"= (back\d)", str(pairs)) == ["back5", "back4", "back3"]


def test_first_calls():
    assert pullback(operator.add, 1.0, 2.0)[0] == 3.0
    value, back = pullback(lambda x: math.sin(math.cos(x)), 0.9)
    assert (round(value, 4), [round(d, 4) for d in back(1.0)]) == (0.5823, [-0.6368])


def test_accumulation():
    four = lambda p: (1.0 * p["a"], 2.0 * p["a"], 5.0 * p["a"], 3.0 * p["a"])
    assert pullback(four, {"a": 1.0})[1]((1.0, 1.0, None, 1.0)) == ({"a": 6.0},)
    named = lambda p: (3.0 * p["a"] + 2.0 * p["b"], 1.0 * p["a"])
    assert pullback(named, {"a": 1.0, "b": 1.0})[1]((1.0, 1.0)) == ({"a": 4.0, "b": 2.0},)
    paired = lambda t: (1.0 * t[0] + 2.0 * t[1], 3.0 * t[0] + 4.0 * t[1])
    assert pullback(paired, (1.0, 1.0))[1]((1.0, 1.0)) == ((4.0, 6.0),)


class Polynomial:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        total = 0.0
        for w in reversed(self.weights):
            total = total * x + w
        return total


def test_the_model_that_the_post_cannot_differentiate():
    model, xs = Polynomial([3.0, 2.0, -3.0, 1.0]), [1.0, 2.0, 3.0, 4.0]
    value, back = pullback(lambda model, xs: list(map(model, xs)), model, xs)
    assert value == [3.0, 3.0, 9.0, 27.0]
    weights, slopes = back([1.0, 1.0, 1.0, 1.0])
    assert weights == {"weights": [sum(x**i for x in xs) for i in range(4)]}
    assert slopes == [2 - 6 * x + 3 * x * x for x in xs]
    (each,) = pullback(model, np.array(xs))[1](np.ones(4))
    assert each.tolist() == slopes
