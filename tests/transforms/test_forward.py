"""Forward mode: jvp and linearize, by frules and by transposed pullbacks, nested with reverse mode in any order."""

import dataclasses
import itertools
import math
from collections import namedtuple

import numpy as np
import pytest

from helpers import assert_same
from wengert import (
    CotangentError,
    NoRuleError,
    TangentError,
    TraceError,
    explain,
    forward,
    frule,
    grad,
    jit,
    jvp,
    linearize,
    pullback,
    rrule,
    trace,
)
from wengert.rules.registry import lookup, rules
from wengert.tracer.tape import fn_name

X = np.array([0.7, -1.3, 2.1])
V = np.array([0.4, 0.9, -0.2])
A = np.array([[1.9, -0.4, 0.3], [0.2, 1.3, -0.7], [-0.5, 0.8, 2.2]])
DA = np.array([[0.1, 0.5, -0.2], [0.3, -0.4, 0.2], [0.7, 0.6, -0.1]])


def along(f):
    """d/dx by forward mode."""
    return lambda x: jvp(f, (x,), (1.0,))[1]


def numeric(f, x, v, h=1e-5):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@pytest.fixture(params=["traced", "kept"])
def mode(request):
    """Each test runs with every call traced, and with programs."""
    with jit(request.param == "kept"):
        yield request.param


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(
    "f, df",
    [
        (lambda x: x * x * x, lambda x: 3 * x * x),
        (lambda x: math.sin(x) * math.exp(x), lambda x: math.exp(x) * (math.sin(x) + math.cos(x))),
        (lambda x: 1 / x + x**2.5, lambda x: -1 / x**2 + 2.5 * x**1.5),
        (lambda x: max(x, 2.0) + abs(-x), lambda x: 1.0),
        (lambda x: 7.0, lambda x: 0.0),
        (lambda x: float(np.hypot(x, 2.0)), lambda x: x / math.hypot(x, 2.0)),
    ],
)
def test_functions_of_a_number(f, df, mode):
    for x in (1.3, 1.3, 1.7, 1.1):
        value, tangent = jvp(f, (x,), (2.0,))
        assert value == f(x)
        assert type(tangent) is float
        assert tangent == pytest.approx(2.0 * df(x), rel=1e-14)


def test_complex_step():
    def f(x):
        return np.exp(x) / (np.sin(x) ** 3 + np.cos(x) ** 3)

    tangent = jvp(f, (X,), (V,))[1]
    h = 1e-30
    np.testing.assert_allclose(tangent, f(X + 1j * h * V).imag / h, rtol=1e-13)


def test_a_solve_has_the_tangent_of_the_formula_with_one_more_factorisation():
    value, tangent = jvp(np.linalg.solve, (A, X), (DA, V))
    np.testing.assert_array_equal(value, np.linalg.solve(A, X))
    np.testing.assert_allclose(tangent, np.linalg.inv(A) @ (V - DA @ value), rtol=1e-12)
    tape = trace(lambda a, b: jvp(np.linalg.solve, (a, b), (DA, V)), A, X)
    calls = [fn_name(op.fn) for op in tape if op.kind == "call"]
    assert calls.count("solve") == 2
    assert "inv" not in calls


def test_an_inverse_has_its_tangent_without_another_inverse():
    np.testing.assert_allclose(
        jvp(np.linalg.inv, (A,), (DA,))[1], -np.linalg.inv(A) @ DA @ np.linalg.inv(A), rtol=1e-12
    )
    tape = trace(lambda a: jvp(np.linalg.inv, (a,), (DA,)), A)
    assert [fn_name(op.fn) for op in tape if op.kind == "call"].count("inv") == 1


def test_zero_tangents_are_symbolic():
    tape = trace(lambda x, y: jvp(lambda a, b: a * b, (x, y), (1.0, None)), 2.0, 3.0)
    products = [op for op in tape if op.kind == "call" and fn_name(op.fn) in ("mul", "add")]
    assert len(products) == 1 or (len(products) == 2 and "add" not in map(fn_name, products))


def test_a_branch_of_where_that_is_not_taken_leaves_no_nan():
    def f(x):
        with np.errstate(all="ignore"):
            return np.where(x > 0, np.log(x) * np.sqrt(x), 0.0)

    np.testing.assert_array_equal(jvp(f, (np.zeros(2),), (np.ones(2),))[1], [0.0, 0.0])


def test_what_the_result_does_not_need_needs_no_rule():
    opaque = np.random.default_rng(1).dirichlet

    def f(x):
        opaque(np.abs(x))
        return x * x

    np.testing.assert_array_equal(jvp(f, (X,), (V,))[1], 2 * X * V)
    with pytest.raises(NoRuleError, match=r"dirichlet"):
        jvp(lambda x: opaque(np.abs(x)), (X,), (V,))


# --------------------------------------------------------------------------------------------- structure


Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Model:
    weight: np.ndarray
    bias: float
    name: str = "model"


def test_structured_arguments_and_results(mode):
    def f(model, pair, numbers, label):
        y = model.weight * pair.left + model.bias
        return {"y": y, "all": [numbers[0] * pair.right["z"], label], "n": len(label)}

    model, direction = Model(X, 0.5), Model(V, 2.0, None)
    pair, numbers = Pair(1.5, {"z": 3.0}), [0.25, 7]
    for _ in range(3):
        value, tangent = jvp(
            f, (model, pair, numbers, "abc"), (direction, Pair(1.0, {"z": 2.0}), [4.0, None], None)
        )
        assert_same(value, f(model, pair, numbers, "abc"))
        np.testing.assert_allclose(tangent["y"], V * 1.5 + X + 2.0, rtol=1e-14)
        assert tangent["all"] == [4.0 * 3.0 + 0.25 * 2.0, None]
        assert list(tangent) == ["y", "all", "n"]


def test_kinds_are_kept(mode):
    single = X.astype(np.float32)
    for _ in range(3):
        tangent = jvp(lambda x: np.sin(x) * 2.0, (single,), (V.astype(np.float32),))[1]
        assert tangent.dtype == np.float32
        tangent = jvp(np.sin, (np.float64(0.5),), (1.0,))[1]
        assert type(tangent) is np.float64
        value, tangent = jvp(lambda z: abs(z) ** 2, (3 + 4j,), (1j,))
        assert (type(tangent), tangent) == (float, pytest.approx(8.0))
        assert jvp(lambda n: n * 2.5, (3,), (1,)) == (7.5, 2.5)
        assert jvp(lambda x, k: x[k], (X, 1), (V, None)) == (X[1], V[1])


def test_an_argument_that_is_given_twice_has_two_tangents():
    tangent = jvp(lambda a, b: a * b, (X, X), (V, 2 * V))[1]
    np.testing.assert_allclose(tangent, 3 * X * V, rtol=1e-15)


def test_integer_arrays_have_no_tangent():
    value, tangent = jvp(lambda i, x: (x[i], i + 1), (np.array([2, 0]), X), (None, V))
    np.testing.assert_array_equal(tangent[0], V[[2, 0]])
    assert tangent[1] is None
    with pytest.raises(TangentError, match="tangent 0 must be None"):
        jvp(lambda i, x: x[i], (np.array([2, 0]), X), (np.ones(2), V))


@pytest.mark.parametrize(
    "primals, tangents, message",
    [
        ((X,), (np.ones(2),), r"jvp\(f\): tangent 0 must have the shape \(3,\)"),
        ((X,), (1j * V,), "tangent 0 is complex"),
        ((X,), ("x",), "tangent 0 must be an array of shape"),
        ((X,), (np.array(["x", "y", "z"]),), "tangent 0 must be an array of shape"),
        ((X,), (np.ma.ones(3),), "tangent 0 must be an array of shape"),
        (([X, 1.0],), ((V, 1.0),), "tangent 0 must be a list of length 2, not tuple of length 2"),
        ((X, 1.0), (V,), "there are 2 primals, but 1 tangents"),
        (X, (V,), "primals must be a tuple"),
        (([X, 1.0],), ([V],), "tangent 0 must be a list of length 2"),
    ],
)
def test_tangents_that_do_not_fit(primals, tangents, message):
    def f(x, *rest):
        return x

    with pytest.raises(TangentError, match=message):
        jvp(f, primals, tangents)


def test_an_error_of_the_function_is_its_own():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jvp(f, (1.0,), (1.0,))
    with pytest.raises(KeyError, match="mine"):
        linearize(f, 1.0)


# ---------------------------------------------------------------------------------------------- mutation


def test_writes_into_arrays(mode):
    def f(x):
        y = np.zeros(4)
        y[1:] = x * x
        view = y[::2]
        view *= 3.0
        np.add.at(y, [0, 0, 3], x)
        y[2] += y[1]
        return y

    for _ in range(3):
        value, tangent = jvp(f, (X,), (V,))
        np.testing.assert_array_equal(value, f(X))
        np.testing.assert_allclose(tangent, numeric(f, X, V), rtol=1e-8)


def test_an_argument_that_is_written_to(mode):
    def f(x):
        x *= 2.0
        x[0] = x[1] * x[2]
        return x.sum()

    for _ in range(3):
        x = X.copy()
        value, tangent = jvp(f, (x,), (V,))
        plain = X.copy()
        assert value == f(plain)
        np.testing.assert_array_equal(x, plain)
        expected = 4 * (V[1] * X[2] + X[1] * V[2]) + 2 * (V[1] + V[2])
        assert tangent == pytest.approx(expected, rel=1e-13)


def test_nobody_else_holds_the_tangent(mode):
    for _ in range(3):
        v = V.copy()
        _, tangent = jvp(lambda x: x, (X,), (v,))
        tangent[:] = 0.0
        np.testing.assert_array_equal(v, V)


def test_effects_happen_once(capsys, mode):
    log = []

    def f(x):
        print("called")
        log.append(x)
        return x * x

    for i in range(4):
        jvp(f, (float(i),), (1.0,))
    assert capsys.readouterr().out == "called\n" * 4
    assert log == [0.0, 1.0, 2.0, 3.0]


def test_loops_and_branches(mode):
    def newton(a):
        x = 1.0
        while abs(x * x - a) > 1e-14:
            x = (x + a / x) / 2 if x > 0 else -x
        return x

    for a in (2.0, 3.0, 2.0, 5.0, 0.5):
        assert along(newton)(a) == pytest.approx(0.5 / math.sqrt(a), rel=1e-9)


# -------------------------------------------------------------------------------------------- tape to tape


def test_the_tape_of_a_tangent():
    def f(x, y, n):
        return {"p": np.sin(x) * y, "q": (x.sum() + n, 2)}

    tape = forward(trace(f, X, 2.0, 3))
    assert [op.name for op in tape.inputs] == ["x", "y", "n", "dx", "dy", "dn"]
    names = {"np": np}
    exec(tape.source("both"), names)
    value, tangent = names["both"](X, 2.0, 3, V, 0.5, 1.0)
    assert_same(value, f(X, 2.0, 3))
    np.testing.assert_allclose(tangent["p"], np.cos(X) * V * 2.0 + 0.5 * np.sin(X), rtol=1e-14)
    assert tangent["q"] == (pytest.approx(V.sum() + 1.0), 0.0)


def test_the_tape_of_the_derivative_by_one_number():
    tape = forward(trace(lambda x, y: math.sin(x) * y, 1.0, 2.0), wrt="x", value=False)
    names = {"math": math}
    exec(tape.source("slope"), names)
    assert names["slope"](0.3, 5.0) == math.cos(0.3) * 5.0
    assert [op.name for op in tape.inputs] == ["x", "y"]
    with pytest.raises(TraceError, match="no input named 'z'"):
        forward(trace(lambda x: x, 1.0), wrt="z")


# ------------------------------------------------------------------------------------------- perturbations


def test_perturbations_are_not_confused(mode):
    for outer, inner in itertools.product((along, grad), repeat=2):
        f = outer(lambda x: x * inner(lambda y: x + y)(1.0))
        assert [f(2.0), f(2.0), f(2.0)] == [1.0, 1.0, 1.0]
        g = outer(lambda x: x * inner(lambda y: x * y * y)(3.0))
        assert [g(2.0), g(2.0)] == [24.0, 24.0]


def test_three_levels_of_perturbations():
    for a, b, c in itertools.product((along, grad), repeat=3):
        f = a(lambda x: x * b(lambda y: y * y * c(lambda z: x * y * z * z)(x))(x))
        # c gives 2 x² y, b gives 6 x² x², so f is d/dx of 6 x⁵
        assert f(1.5) == pytest.approx(30 * 1.5**4, rel=1e-13)


@pytest.mark.parametrize("order", list(itertools.product((along, grad), repeat=3)))
def test_nesting_to_the_third_order(order, mode):
    def f(x):
        return x**4 * math.sin(x)

    a, b, c = order
    third = a(b(c(f)))
    for x in (1.3, 1.3, 0.4):
        expected = (
            24 * x * math.sin(x)
            + 36 * x**2 * math.cos(x)
            - 12 * x**3 * math.sin(x)
            - x**4 * math.cos(x)
        )
        assert third(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("f", [np.linalg.inv, np.linalg.det, lambda a: np.sort(a @ a, axis=0)])
def test_nested_modes_agree_on_matrices(f):
    def first(a):
        return jvp(f, (a,), (DA,))[1]

    w = np.cos(np.arange(np.size(first(A)))).reshape(np.shape(first(A)))
    over = pullback(first, A)[1](w if np.ndim(w) else float(w))[0]  # reverse over forward
    twice = jvp(first, (A,), (A.T,))[1]  # forward over forward
    other = jvp(lambda a: pullback(f, a)[1](w)[0], (A,), (DA,))[1]  # forward over reverse
    np.testing.assert_allclose(np.sum(over * A.T), np.sum(w * twice), rtol=1e-11)
    np.testing.assert_allclose(over, other, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------- linearize


def test_linearize_runs_the_function_once():
    calls = []

    def f(x, y):
        calls.append(1)
        return {"p": np.sin(x) * y, "q": x.sum()}

    value, f_jvp = linearize(f, X, 2.0)
    assert_same(value, {"p": np.sin(X) * 2.0, "q": X.sum()})
    for t in (V, X, 3 * V):
        tangent = f_jvp(t, 1.0)
        np.testing.assert_allclose(tangent["p"], np.cos(X) * t * 2.0 + np.sin(X), rtol=1e-14)
        assert tangent["q"] == pytest.approx(t.sum())
    assert_same(f_jvp(None, None), {"p": np.zeros(3), "q": np.float64(0.0)})
    assert calls == [1]


def test_linearize_answers_for_the_moment_of_its_call():
    x = X.copy()
    value, f_jvp = linearize(lambda x: x * x, x)
    x[:] = 100.0
    value[:] = 100.0
    np.testing.assert_array_equal(f_jvp(V), 2 * X * V)
    first = f_jvp(V)
    first[:] = 0.0
    np.testing.assert_array_equal(f_jvp(V), 2 * X * V)


@pytest.mark.parametrize("of", ["numpy", "scipy"])
@pytest.mark.parametrize("vector", [True, False])
def test_tangents_of_a_system_share_a_factorisation(of, vector, monkeypatch):
    linalg = pytest.importorskip("scipy.linalg")
    assert lookup(linalg.lu_factor)  # the rules are loaded before it is replaced
    counted, lu_factor = [], linalg.lu_factor
    monkeypatch.setattr(
        linalg, "lu_factor", lambda *a, **k: counted.append(1) or lu_factor(*a, **k)
    )
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(60, 60)) + 20 * np.eye(60), rng.normal(size=(60, 2))
    b = b[:, 0] if vector else b
    x, f_jvp = linearize(linalg.solve if of == "scipy" else np.linalg.solve, a, b)
    for _ in range(4):
        da, db = rng.normal(size=a.shape), rng.normal(size=b.shape)
        found = f_jvp(da, db)
        assert counted == [1]
        np.testing.assert_allclose(a @ found, db - da @ x, rtol=1e-10, atol=1e-11)


def test_linearize_is_differentiated_in_turn():
    assert grad(lambda x: linearize(math.sin, x)[1](2.0))(1.0) == pytest.approx(-2 * math.sin(1.0))
    _, f_jvp = linearize(math.sin, 1.0)
    assert grad(lambda t: f_jvp(t) * t)(2.0) == pytest.approx(4 * math.cos(1.0))
    assert along(lambda t: f_jvp(t) * t)(2.0) == pytest.approx(4 * math.cos(1.0))


def test_linearize_is_the_transpose_of_the_pullback():
    def f(a, b):
        return np.linalg.solve(a @ a.T + np.eye(3), np.tanh(b))

    _, f_jvp = linearize(f, A, X)
    _, back = pullback(f, A, X)
    w = np.array([0.3, 1.1, -0.7])
    da, db = back(w)
    assert np.sum(w * f_jvp(DA, V)) == pytest.approx(np.sum(da * DA) + np.sum(db * V), rel=1e-12)


def test_wrong_tangents_of_a_linear_function():
    _, f_jvp = linearize(np.sin, X)
    with pytest.raises(TangentError, match="1 primals, but 2 tangents"):
        f_jvp(V, V)
    with pytest.raises(TangentError, match="must have the shape"):
        f_jvp(1.0)


# ----------------------------------------------------------------------------------------------------- rules


@pytest.fixture
def fresh():
    """Functions whose rules are taken away again."""
    before = dict(rules)
    yield
    for key in [key for key in rules if key not in before]:
        del rules[key]


def softplus(x):
    return float(np.logaddexp(0.0, x))


def slope(x):
    return 1 / (1 + math.exp(-x))


def test_an_rrule_alone_gives_both_modes(fresh):
    @rrule(softplus)
    def rule(x):
        y = softplus(x)

        def pullback(dy):
            return (dy * math.exp(x - y),)

        return y, pullback

    assert jvp(softplus, (0.3,), (2.0,)) == (softplus(0.3), pytest.approx(2 * slope(0.3)))
    second = slope(0.3) * (1 - slope(0.3))
    assert along(along(softplus))(0.3) == pytest.approx(second)


def test_an_frule_alone_gives_both_modes(fresh):
    @frule(softplus)
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        y = softplus(x)
        return y, math.exp(x - y) * dx

    assert jvp(softplus, (0.3,), (2.0,)) == (softplus(0.3), pytest.approx(2 * slope(0.3)))
    second = slope(0.3) * (1 - slope(0.3))
    for a, b in itertools.product((along, grad), repeat=2):
        assert a(softplus)(0.3) == pytest.approx(slope(0.3))
        assert a(b(softplus))(0.3) == pytest.approx(second)


def test_an_frule_of_several_results(fresh):
    def both(x):
        return np.cos(x), np.sin(x)

    @frule(both)
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        c, s = both(x)
        return (c, s), (-s * dx, c * dx)

    np.testing.assert_allclose(jvp(both, (X,), (V,))[1], (-np.sin(X) * V, np.cos(X) * V))
    (dx,) = pullback(both, X)[1]((np.ones(3), 2 * np.ones(3)))
    np.testing.assert_allclose(dx, 2 * np.cos(X) - np.sin(X), rtol=1e-14)


def test_a_later_rrule_takes_the_place_of_an_frule(fresh):
    @frule(softplus)
    def wrong(primals, tangents):
        return softplus(primals[0]), 100.0 * tangents[0]

    assert along(softplus)(0.3) == 100.0

    @rrule(softplus)
    def right(x):
        y = softplus(x)
        return y, lambda dy: (dy * math.exp(x - y),)

    assert along(softplus)(0.3) == pytest.approx(slope(0.3))


def test_a_tangent_of_the_wrong_shape_is_an_error(fresh):
    def twice(x):
        return 2 * x

    @frule(twice)
    def wrong(primals, tangents):
        return twice(primals[0]), np.sum(tangents[0])

    with pytest.raises(NoRuleError, match=r"twice.*tangent is float64"):
        jvp(twice, (X,), (V,))


def test_singular_vectors_without_a_derivative_are_refused():
    tall = A[:, :2]
    s = jvp(lambda a: np.linalg.svd(a)[1], (tall,), (tall,))[1]
    np.testing.assert_allclose(s, np.linalg.svd(tall)[1], rtol=1e-12)
    with pytest.raises(NoRuleError, match="full_matrices=False"):
        jvp(lambda a: np.linalg.svd(a)[0], (tall,), (tall,))


def test_a_pushforward_does_not_hold_for_masks_of_other_counts():
    def scaled(a):
        y = a * 1
        np.multiply.at(y, (a[:, 0] > 1, [0]), a[1, 1])
        return np.sum(y)

    for first in (2.0, 0.5, 3.0, 0.2):
        a = np.array([[first, 2.0], [1.5, 3.0], [first, 0.0]])
        on = a[:, 0] > 1
        expected = 3 + np.sum(np.where(on, 3.0 + a[:, 0], 1.0))
        np.testing.assert_allclose(jvp(scaled, (a,), (np.ones((3, 2)),))[1], expected)


def test_a_kept_pushforward_refuses_as_a_traced_one_does():
    """The inverse that it takes fails where the pushforward is played, and not where it was made."""
    slope = grad(np.linalg.det)
    for a in (A, DA, A):
        jvp(slope, (a,), (DA,))
    for singular in (np.zeros((3, 3)), np.ones((3, 3))):
        with pytest.raises(NoRuleError, match="Singular matrix"):
            jvp(slope, (singular,), (DA,))


# ----------------------------------------------------------------------------------------------- programs


def test_repeated_calls_are_answered_by_programs_and_never_stale():
    scale = [2.0]

    def f(x):
        return x * x * scale[0] if x > 0 else -x

    d = along(f)
    assert [d(x) for x in (1.0, 2.0, 3.0, -1.0, 3.0)] == [4.0, 8.0, 12.0, -1.0, 12.0]
    scale[0] = 3.0
    assert [d(x) for x in (1.0, 2.0, -1.0)] == [6.0, 12.0, -1.0]
    scale[0] = 2
    assert d(2.0) == 8.0


def test_an_option_that_is_an_argument_may_change(mode):
    def f(x, axis):
        return np.sum(np.sum(x, axis) ** 2)

    square = A.copy()
    for axis in (0, 0, 0, 1, 0, 1, 1, 0):
        value, tangent = jvp(f, (square, axis), (DA, None))
        assert value == f(square, axis)
        assert tangent == pytest.approx(2 * np.sum(np.sum(A, axis) * np.sum(DA, axis)), rel=1e-13)


def test_the_errors_are_of_their_own():
    assert not issubclass(TangentError, CotangentError)
    assert "jvp" not in str(explain(grad(lambda x: x), 1.0))


# ------------------------------------------------------------------------- arguments that hold, share, and are written


def test_a_store_to_a_list_among_the_primals_is_done_at_each_call(mode):
    def f(a, b):
        a[0] = b
        return a[0] * 2

    same = 0.5
    for stored in (same, same, same, same, 0.7, 0.9):
        a = [same]
        assert jvp(f, (a, stored), ([1.0], 0.5)) == (stored * 2, 1.0)
        assert a == [stored]


def test_a_list_at_two_places_among_the_primals_is_one_list(mode):
    def f(v, w):
        v.append(2.0)
        w[0] = w[0] * 3
        return sum(v) * len(w) * (10 if v is w else 1)

    for _ in range(4):
        a = [1.5]
        plain = [1.5]
        value, tangent = jvp(f, (a, a), ([1.0], [0.5]))
        assert value == f(plain, plain) and a == plain
        assert (
            tangent == 0.5 * 3 * 2 * 10
        )  # what is stored by way of `w` is found there by way of `v`


@pytest.mark.parametrize("first, second", [((0, 3), (3, 6)), ((0, 6), (0, 6))])
def test_views_of_one_array_keep_their_tangents_when_another_is_written(mode, first, second):
    def f(v, w):
        v += w
        w[0] = 2.0
        return (v * w * v).sum()

    dv, dw = V, np.array([0.3, -0.7, 1.1])
    if first == second:
        dv = dw = np.arange(6.0)
    for i in range(4):
        base = np.arange(6.0) + i
        value, tangent = jvp(f, (base[slice(*first)], base[slice(*second)]), (dv, dw))
        base = np.arange(6.0) + i
        again, back = pullback(f, base[slice(*first)], base[slice(*second)])
        gv, gw = back(1.0)
        assert value == again
        assert tangent == pytest.approx(gv @ dv + gw @ dw, rel=1e-13)
        if first != second:

            def along_line(t, i=i):
                base = np.arange(6.0) + i
                return f(base[:3] + t * dv, base[3:] + t * dw)

            assert tangent == pytest.approx(numeric(along_line, 0.0, 1.0), rel=1e-6)


def test_an_inner_gradient_of_views_of_one_array(mode):
    def f(v, w):
        v *= w
        w[1] = 3.0
        return (v * w).sum()

    def outer(a):
        return grad(f, (0, 1))(a[:2], a[2:])

    for i in range(4):
        v, w = np.array([1.0 + i, 2.0]), np.array([3.0, 5.0])
        gv, gw = outer(np.concatenate([v, w]))
        assert gv == pytest.approx([w[0] ** 2, w[1] * 3.0])
        assert gw == pytest.approx([2 * v[0] * w[0], v[1] * 3.0])


def test_tangents_in_an_object_are_those_of_this_call(mode):
    @dataclasses.dataclass
    class P:
        w: float
        b: list
        c: object = None

    def f(p):
        return p.w * p.b[0] if p.c is None else p.w * p.c

    for i in range(4):
        for dw, db in ((-1.2, 0.1), (1.2, 0.3)):
            value, tangent = jvp(f, (P(1.5, [2.0 + i]),), (P(dw, [db]),))
            assert (value, tangent) == (1.5 * (2.0 + i), pytest.approx(dw * (2.0 + i) + 1.5 * db))


def test_a_number_in_a_list_is_picked_by_the_number_of_an_iteration(mode):
    def f(v):
        best, where = v[0], 0
        for i in range(1, len(v)):
            if v[i] > best:
                best, where = v[i], i
        return best * (where + 1)

    for v in ([1.0, 2.0, 0.5, 3.0], [1.0, 2.5, 0.5, 3.0], [5.0, 2.0, 0.5], [1.0, 2.0, 5.5, 3.0]):
        where = v.index(max(v))
        direction = [1.0, 10.0, 100.0, 1000.0][: len(v)]
        assert jvp(f, (v,), (direction,)) == (max(v) * (where + 1), direction[where] * (where + 1))
