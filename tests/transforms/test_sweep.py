"""The reverse sweep: linear cost, no recursion, symbolic zeros, pruning and simplification."""

import math
import operator
import sys

import numpy as np
import pytest

from helpers import assert_close, assert_same, calls, names
from wengert import (
    WengertError,
    explain,
    grad,
    hessian,
    jit,
    pullback,
    reverse,
    rrule,
    trace,
    value_and_grad,
)
from wengert.rules.registry import rules


def body(tape):
    """The functions that a reverse tape calls, as text."""
    return " ".join(names(tape))


# ------------------------------------------------------------------------------------------ linear cost


def doubled(x, y, n=60):
    s = x * y
    for _ in range(n):
        s = s + s
    return s


def test_sixty_doublings_are_sixty_additions():
    value, (dx, dy) = value_and_grad(doubled, argnums=(0, 1))(2.0, 3.0)
    assert value == 6.0 * 2.0**60
    assert (dx, dy) == (3.0 * 2.0**60, 2.0 * 2.0**60)
    tape = reverse(trace(doubled, 2.0, 3.0))
    assert 61 <= len(calls(tape)) <= 61 + 62


def logistic(x, r, n):
    for _ in range(n):
        x = r * x * (1.0 - x)
    return x


def test_reverse_tape_grows_linearly():
    sizes = [len(reverse(trace(logistic, 0.3, 3.1, n)).ops) for n in (100, 200, 400)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert sizes[0] < 100 * 15


def shared(x, n):
    """Every value is used by all the later ones' sum."""
    total, terms = 0.0, []
    for _ in range(n):
        x = math.sin(x)
        terms.append(x)
        total = total + x * terms[0]
    return total


def test_fan_out_is_linear():
    sizes = [len(reverse(trace(shared, 0.3, n)).ops) for n in (100, 200, 400)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def fills(n):
    def f(v):
        a = np.zeros(n)
        for i in range(n):
            a[i] = v[i % 3] * i
        return a.sum()

    return f


def test_writing_an_array_item_by_item():
    v = np.array([1.0, 2.0, 3.0])
    sizes = [len(reverse(trace(fills(n), v)).ops) for n in (50, 100, 200)]
    assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.02)
    assert_close(grad(fills(6))(v), np.array([3.0, 5.0, 7.0]))


def drifting(x, y, n):
    for _ in range(n):
        x = x + 1e-6 * (y * x)
    return x


def test_three_hundred_thousand_operations():
    n = 100_000
    tape = trace(drifting, 2.0, 3.0, n)
    assert len(calls(tape)) == 3 * n
    assert sys.getrecursionlimit() < 20_000
    value, (dx, dy) = value_and_grad(drifting, argnums=(0, 1))(2.0, 3.0, n)
    growth = 1 + 3e-6
    assert value == drifting(2.0, 3.0, n)
    assert dx == pytest.approx(growth**n, rel=1e-9)
    assert dy == pytest.approx(2.0 * n * 1e-6 * growth ** (n - 1), rel=1e-9)


def test_long_tapes_are_freed_without_recursion():
    value, back = pullback(drifting, 2.0, 3.0, 10_000)
    tape = reverse(trace(drifting, 2.0, 3.0, 10_000))
    assert tape.format(flat=True).count("\n") > 20_000
    assert str(tape).count("\n") < 30
    del value, back, tape


def deep(x, n):
    nested = x
    for _ in range(n):
        nested = (nested, x)
    while isinstance(nested, tuple):
        nested, y = nested
    return nested * y


def test_deep_structures_inside():
    assert grad(deep)(3.0, 5_000) == 6.0


# ----------------------------------------------------------------- symbolic zeros, pruning, simplification


def line(m, x, b):
    return m * x + b


def test_line_prints_as_its_slope():
    tape = reverse(trace(line, 3.0, 2.0, 1.0), value=False)
    assert calls(tape) == []
    m, x, b = tape.inputs
    assert tape.result == (x, m, 1.0)
    statements = [text.strip() for text in tape.source().splitlines()]
    assert statements[2:] == ["return (x, m, 1.0)"]


def test_slope_of_a_line_of_the_outside():
    tape = reverse(trace(lambda x: SLOPE * x + SHIFT, 2.0), value=False)
    assert calls(tape) == []
    (slope,) = tape.result
    assert slope.kind == "input"
    assert slope.value == SLOPE


SLOPE, SHIFT = 3.0, 1.0


def test_forward_is_kept_for_the_value():
    tape = reverse(trace(line, 3.0, 2.0, 1.0))
    assert calls(tape) == [operator.mul, operator.add]
    value, gradients = tape.result
    assert value.value == 7.0
    assert len(gradients) == 3


def test_what_does_not_matter_is_not_swept():
    def f(x, y):
        unused = math.exp(x) * math.cos(y)
        logged = [math.tan(unused), x - y]
        return x * y if logged else unused

    text = body(reverse(trace(f, 2.0, 3.0)))
    assert "sub" not in text
    # What may raise is done, as the function does it, and not swept.
    assert [text.count(name) for name in ("exp", "cos", "tan", "sin")] == [1, 1, 1, 0]


def test_constants_are_not_swept():
    def f(x):
        scale = math.cos(math.sqrt(2.0)) * np.ones(3)
        return (scale * x).sum()

    assert "sqrt" not in body(trace(f, 2.0))
    assert "cos" not in body(trace(f, 2.0))


def test_only_active_values_are_swept():
    """Nothing is computed for the gradient of a value that depends on no argument that has one."""

    def f(n, x):
        y = np.sin(n * 2.0)  # n is an integer array
        return (y * x).sum()

    text = body(reverse(trace(f, np.arange(3), 2.0)))
    assert "cos" not in text


def test_no_zero_arrays_and_no_multiplication_by_one():
    def f(v, w):
        a, b = v * w, v + w
        return a[0] + b.sum() * 0 + a.sum()

    tape = reverse(trace(f, np.ones(3), np.ones(3)))
    for op in tape.ops:
        if op.kind == "call":
            assert not (
                op.fn is operator.mul and 1.0 in [arg for arg in op.args if type(arg) is float]
            )


def test_common_parts_are_computed_once():
    def f(x):
        return math.exp(x) * math.sin(x) + math.exp(x)

    text = body(reverse(trace(f, 0.5)))
    assert text.count("exp") <= 2
    assert text.count("cos") == 1


def test_elementwise_functions_are_computed_once():
    special = pytest.importorskip("scipy.special")
    tape = reverse(trace(special.betaln, 2.3, 1.4))
    assert names(tape).count("psi") == 3


def test_zeros_are_told_apart():
    """By their sign: copysign(x, 0.0) and copysign(x, -0.0) are not the same."""

    def f(x):
        return x

    @rrule(f)
    def _(x):
        return x, lambda dy: (np.copysign(dy, 0.0) + 2 * np.copysign(dy, -0.0),)

    try:
        assert grad(f)(1.0) == -1.0
        assert [value_and_grad(lambda x: f(x) * 3)(1.0)[1] for _ in range(3)] == [-3.0] * 3
    finally:
        del rules[f]


def pair(x, y):
    return x * y, x + y


def test_outputs_that_nobody_uses():
    """They cost nothing; but the rules of others, which need not know that None is a zero, are given zeros."""
    a = np.array([[2.0, 0.3], [0.3, 1.0]])
    text = body(reverse(trace(lambda a: np.linalg.eigh(a)[0][0], a)))
    assert "zeros" not in text and "ratio" not in text

    @rrule(pair)
    def _(x, y):
        return pair(x, y), lambda dz: (dz[0] * y + dz[1], dz[0] * x + dz[1])

    try:
        assert grad(lambda x, y: pair(x, y)[1] ** 2, (0, 1))(2.0, 3.0) == (10.0, 10.0)
        assert grad(lambda x, y: pair(x, y)[0] ** 2, (0, 1))(2.0, 3.0) == (36.0, 24.0)
    finally:
        del rules[pair]


def test_rule_uses_the_value_it_has():
    """The derivative of exp is exp: it is not computed again."""
    assert body(reverse(trace(lambda x: math.exp(x), 0.5))).count("exp") == 1
    assert body(reverse(trace(lambda v: np.tanh(v).sum(), np.ones(3)))).count("tanh") == 1


def test_effects_and_guards_stay(capsys):
    def f(x):
        print("once")
        if x > 0:
            return x * x
        return x

    tape = reverse(trace(f, 2.0))
    kinds = [op.kind for op in tape.ops]
    assert "effect" in kinds
    assert "guard" in kinds


def test_scalar_results_of_numpy_are_seeded():
    tape = reverse(trace(lambda v: v @ v, np.array([1.0, 2.0])))
    value, (gradient,) = tape.result
    assert_close(gradient.value, np.array([2.0, 4.0]))
    assert len(tape.inputs) == 1


def test_result_of_an_array_has_a_cotangent_as_input():
    tape = reverse(trace(lambda v: v * 2.0, np.array([1.0, 2.0])))
    assert len(tape.inputs) == 2
    assert tape.inputs[-1].name == "dy"


def test_accumulation_does_not_disturb_shared_cotangents():
    """One cotangent goes two ways, and is added to on one of them."""

    def f(v):
        a = v + v
        b = a + v
        c = a - b
        return (a * b).sum() + c.sum() + b[0] + a[1]

    v = np.array([1.0, 2.0])
    # a = 2v, b = 3v, c = -v: f = 6 v.v - sum(v) + 3 v0 + 2 v1
    assert_close(grad(f)(v), 12 * v - 1 + np.array([3.0, 2.0]))


def test_accumulation_into_slices():
    def f(v):
        return (
            sum(v[i] * v[i + 1 :].sum() for i in range(3))
            + (v[:2] * v[2:]).sum()
            + v[[0, 0, 1]].sum()
        )

    v = np.array([0.5, 1.5, -1.0, 2.0])
    total = v.sum()
    assert_close(grad(f)(v), total - v + v[[2, 3, 0, 1]] + np.array([2.0, 1.0, 0.0, 0.0]))


def test_single_and_double_precision_accumulate():
    def f(v):
        return (v * v).sum() + (v.astype(np.float64) * 2.0).sum()

    v = np.array([1.0, 2.0], dtype=np.float32)
    (gradient,) = pullback(f, v)[1](1.0)
    assert gradient.dtype == np.float32
    assert gradient.tolist() == [4.0, 6.0]


def test_broadcasting_is_summed():
    def f(x, v, m):
        return (m * v + x * m[:1] - v[:, None] * x).sum()

    x, v, m = 2.0, np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3)
    dx, dv, dm = grad(f, argnums=(0, 1, 2))(x, v, m)
    assert dx == pytest.approx(3 * m[0].sum() - 3 * v.sum())
    assert_close(dv, m.sum(0) - 3 * x)
    assert_close(dm, v * np.ones((3, 3)) + np.array([[3 * x] * 3, [0.0] * 3, [0.0] * 3]))


def test_derivative_of_a_line_is_its_slope():
    tape = trace(lambda m, x, b: m * x + b, 2.0, 3.0, 1.0)
    slope = reverse(tape, wrt="x", value=False)
    assert [op.kind for op in slope.ops] == ["input"] * 3
    lines = slope.source("slope").splitlines()
    assert [lines[0], *lines[2:]] == ["def slope(m, x, b):", "    return m"]
    with pytest.raises(WengertError, match="no input named 'y'"):
        reverse(tape, wrt="y")


def test_an_element_of_an_array_without_axes_that_is_used_as_a_whole_too():
    """The cotangent is a scalar where that of the element is added to it."""

    def f(y):
        return y[()] * 2.0 + y * y

    y = np.array(1.5)
    for _ in range(4):  # traced, built, and kept
        value, back = pullback(f, y)
        assert value == 5.25
        assert_same(back(1.0)[0], np.array(5.0))
    assert "could not be kept" not in explain(f)


def in_place(a):
    a *= a


def through_a_view(a):
    row = a.reshape(1)
    row[0] = row[0] ** 2


def through_the_transpose(a):
    turned = a.T
    turned *= a


WRITES = {
    "dots": lambda a: a.__setitem__(..., a * a),
    "nothing": lambda a: a.__setitem__((), a * a),
    "a mask": lambda a: a.__setitem__(a > 0.0, a * a),
    "fill": lambda a: a.fill(a * a),
    "copyto": lambda a: np.copyto(a, a * a),
    "out": lambda a: np.multiply(a, a, out=a),
    "flat": lambda a: setattr(a, "flat", a * a),
    "at": lambda a: np.add.at(a, (), a * a - a),
    "in place": in_place,
    "a view": through_a_view,
    "transpose": through_the_transpose,
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("case", WRITES)
def test_an_array_without_axes_that_was_written_to_and_leaves_as_a_float(case, on):
    """Its cotangent is that of a float, where the pullback of the write indexes, copies and reshapes."""
    write = WRITES[case]

    def f(x):
        a = np.array(x)
        write(a)
        return float(a) * x

    with jit(on):
        for x in (1.5, 2.0, 2.5, 3.0):
            assert_close(value_and_grad(f)(x), (x**3, 3.0 * x**2))
            assert_close(hessian(f)(x), 6.0 * x)
            assert_close(grad(grad(f))(x), 6.0 * x)


# -------------------------------------------------------------------------- cotangents that are not finite


def zero_times(x):
    return 0.0 * x + x


def nothing_but_zero(x):
    return np.sin(x) * 0.0 + x * 0.0


def cancelling(x):
    return x - x + 2.0 * x - x * 2.0


def zero_of_arrays(x):
    return x * np.array([0.0, 1.0]) + (x - x)


def in_a_loop(x):
    y = x
    for _ in range(12):
        y = y * 0.0 + x
    return y


def several(x):
    return x, 0.0 * x, [x * 2.0]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (zero_times, 2.0),
        (nothing_but_zero, 2.0),
        (cancelling, 2.0),
        (in_a_loop, 1.5),
        (several, 1.5),
        (zero_of_arrays, np.array([2.0, 1.0])),
    ],
)
def test_a_program_leaves_out_nothing_that_an_infinite_cotangent_meets(f, x, flat, monkeypatch):
    if flat:
        monkeypatch.setenv("WENGERT_FOLD", "0")
    for d in (math.inf, -math.inf, math.nan, 1.5):
        dys = [d]
        if f is several:
            dys = [(1.0, d, [0.0]), (d, 1.0, [None])]
        elif f is zero_of_arrays:
            dys = [np.array([d, 1.0]), np.array([1.0, d]), np.full(2, d)]
        for dy in dys:
            with np.errstate(invalid="ignore"):
                with jit(False):
                    expected = pullback(f, x)[1](dy)
                for _ in range(6):
                    np.testing.assert_equal(pullback(f, x)[1](dy), expected)


def test_a_factorisation_of_several_parts_is_computed_once():
    """Rules that compute again what they were given, and those that are content with it."""
    linalg = pytest.importorskip("scipy.linalg")
    for f in (
        lambda a: linalg.lu(a)[1:],
        lambda a: linalg.qr(a, mode="economic"),
        lambda a: np.linalg.qr(a, mode="reduced"),
        lambda a: np.linalg.svd(a, full_matrices=False)[1],
        np.linalg.eigh,
    ):
        tape = trace(f, np.array([[2.0, 1.0, 0.3], [1.0, 3.0, 1.0], [0.3, 1.0, 4.0]]))
        for value in (True, False):
            text = str(reverse(tape, value=value))
            names = ("lu", "qr", "svd", "eigh")
            assert sum(text.count(f" {name}(") for name in names) == 1, text
