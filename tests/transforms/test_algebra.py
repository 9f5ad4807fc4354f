"""Optimised reverse tapes: each rewrite by what it leaves behind, and the gradients of the literal sweep."""

import copy
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import assert_same
from wengert import grad, jit, jvp, reverse, trace, value_and_grad
from wengert.tracer.tape import ops_in, primal
from wengert.transforms.assemble import assembled, source_of
from wengert.transforms.rewrites import optimised

V = np.array([0.5, -1.2, 2.0])
W = np.array([1.5, 0.2, -0.7])
M = np.arange(6.0).reshape(2, 3) - 2.5
X = np.random.default_rng(0).normal(size=(40, 5))


def both(f, *args, seed=True):
    """The reverse tape as the rules wrote it, and optimised."""
    tape = trace(f, *args)
    literal = reverse(tape, seed=seed)
    return literal, optimised(literal, set(tape.ops))


def leaves(tree):
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in leaves(part)]
    if isinstance(tree, dict):
        return [x for part in tree.values() for x in leaves(part)]
    return [tree]


def assert_agrees(f, *args, seed=True):
    """Value to the bit; gradients up to rounding, of the same type, and finite where those of the sweep are."""
    with np.errstate(all="ignore"):
        literal, better = both(f, *args, seed=seed)
        value, gradients = assembled(better)(*[copy.copy(x.value) for x in better.inputs])
        wanted_value, wanted = primal(literal.result)
    assert_same(leaves(value), leaves(wanted_value))
    for got, want in zip(leaves(gradients), leaves(wanted), strict=True):
        assert type(got) is type(want) and np.shape(got) == np.shape(want)
        assert getattr(got, "dtype", None) == getattr(want, "dtype", None)
        scale = np.max(np.abs(want), initial=0.0, where=np.isfinite(want))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13 * scale)
        if isinstance(got, np.ndarray):
            assert got.flags.writeable and not any(
                np.shares_memory(got, x.value) for x in better.inputs
            )
    return reverse_source(better)


def reverse_source(tape):
    return source_of(tape, "f", {})


def count(pattern, source):
    return len(re.findall(pattern, source))


# -------------------------------------------------------------------------------------- one rewrite, one test


def test_products_are_plain_and_looked_at_once():
    source = assert_agrees(lambda v, w: np.sum(np.tanh(v) * np.exp(w) / (1.0 + v * v)), V, W)
    assert "product" not in source and "quotient" not in source
    assert count("isfinite", source) == 1 and count("careful", source) == 1


def test_a_witness_may_be_small():
    """The gradient of the bias is a sum over the batch; where it is finite, all that it was summed from is."""
    source = assert_agrees(lambda w, b: np.sum(np.tanh(X @ w + b) ** 2), np.ones((5, 3)), W)
    assert count(r"(\w+)\.dot\(\1\)", source) == 1 and "vdot" not in source


def test_where_nothing_can_go_wrong_nothing_is_checked():
    assert "isfinite" not in assert_agrees(lambda v: np.sum(3.0 * v - v[::-1]), V)
    assert "isfinite" not in assert_agrees(lambda a, b: a / (a + b * b), 2.0, 3.0)


def test_the_gradient_of_a_sum_is_a_number():
    source = assert_agrees(lambda v: np.sum(v), V)
    assert "expand" not in source and "full((3,), 1.0" in source
    assert_agrees(lambda v: np.mean(v * 2.0), V)
    assert "expand" not in assert_agrees(lambda v, w: np.sum(v * w), V, W)


def test_numbers_are_folded():
    source = assert_agrees(lambda v: 3.0 * np.mean(0.5 * (2.0 * v) ** 2), V)
    gradient = source[source.index("add_reduce") :]
    assert count(r"[*/]=? n", gradient) <= 3


def test_signs_end_in_subtractions():
    literal, better = both(lambda x, y: x * y - (x - y) * (y - x), 2.0, 3.0)
    assert count("neg", str(better)) == 0 < count("neg", str(literal))
    assert_agrees(lambda v, w: np.sum((v - w) * (w - v) - w), V, W)


def test_what_cancels_is_gone():
    """The derivative by the peak, which is zero, costs nothing."""

    def log_sum_exp(x):
        peak = np.max(x, axis=1, keepdims=True)
        return np.sum(peak + np.log(np.sum(np.exp(x - peak), axis=1, keepdims=True)))

    source = assert_agrees(log_sum_exp, X)
    assert "ties" not in source
    assert count("add_reduce", source) == 2  # both of them in the forward run

    def cross_entropy(x, y):
        o = x - np.max(x, axis=1, keepdims=True)
        return -np.mean(np.sum(y * (o - np.log(np.sum(np.exp(o), axis=1, keepdims=True))), axis=1))

    assert "ties" not in assert_agrees(cross_entropy, X, X > 0.3)


def test_trace_of_a_product():
    source = assert_agrees(lambda a, b: np.trace(a @ b), X[:5], X[5:10])
    assert count("dot", source) == 1


def test_transposes_are_folded():
    source = assert_agrees(lambda a: np.sum((a @ X[:3]).T ** 2), M)
    assert count(r"\.T\b", source) == 2  # that of the program, and that of the other factor


def test_a_sum_over_rows_goes_before_a_product():
    """The sum of a product's rows is the product of the sum: no matrix of 40 rows is made."""
    source = assert_agrees(lambda b, u: np.sum(np.exp((X + b) @ u)), X[0], X[:5, :3])
    assert (
        count(r"add_reduce", source) == 2 and "reshape((1, 3))" in source and "copy" not in source
    )


def test_sums_of_products_lie_on_a_diagonal():
    """As in a mixture of Gaussians: the diagonal of its matrices is folded into the product."""

    def f(q, l):
        d = X - 0.5
        return np.sum(np.tanh(q * d + d @ l) ** 2)

    source = assert_agrees(f, X[0], X[:5, :5])
    assert count("diagonal", source) == 1 and count("add_reduce", source) == 1


def test_outer_products_are_one_product_of_matrices():
    def f(w):
        h = V
        for x in X[:6, :3]:
            h = np.tanh((h + x) @ w)
        return np.sum(h)

    source = assert_agrees(f, X[:3, :3])
    assert "[:, None]" not in source and count(r"array\(\[", source) == 2


def test_pieces_of_zeros_are_written_not_added():
    f = lambda v: np.sum(np.sin(v[:2])) + np.sum(np.cos(v[2:4])) * v[4]
    source = assert_agrees(f, X[0])
    assert "+=" not in source
    source = assert_agrees(lambda v: np.sum(np.sin(v[:3])) * np.sum(np.cos(v[2:])), X[0])
    assert "+=" in source


def test_a_common_factor_is_taken_out():
    source = assert_agrees(lambda v, w: np.sum(np.sin(v * v) - np.exp(w) * v * v), V, W)
    assert count(r"\*", source) <= 8


def test_what_fills_an_array_needs_no_zeros():
    assert "zeros" not in assert_agrees(lambda m: np.sum(np.tanh(m[:, None, :]) ** 2), M)
    assert "zeros" not in assert_agrees(lambda m: np.sum(np.tanh(m[:, 0])), M[:, :1])


def test_powers_of_plain_numbers():
    source = assert_agrees(lambda x: x**-2 + x**1.5, 0.7)
    assert "** (-3)" not in source and "finite_power" not in source
    assert_agrees(lambda x: x**1.5 + x**2, 0.0)
    assert_agrees(lambda x: x**0.5, 0.0)


def test_a_broadcast_is_left_to_the_operation():
    source = assert_agrees(lambda a: np.sum(np.sum(a * a, axis=1) ** 2), X)
    assert "expand" not in source


def test_the_sum_of_a_broadcast_is_a_multiple():
    source = assert_agrees(lambda v: np.sum(v + X[:, :3]), V)
    assert count("add_reduce", source) == 1


def test_cotangents_for_the_same_elements_are_shared():
    literal, better = both(lambda v: np.sum(v[1:] ** 2 * v[1:]), V)
    assert_agrees(lambda v: np.sum(v[1:] ** 2 * v[1:]), V)
    assert len(better) <= len(literal)


def test_forward_ops_are_used_again():
    source = assert_agrees(lambda v: np.sum(np.sin(v) * np.cos(v)), V)
    assert count(r"cos\(", source) == 1 and count(r"sin\(", source) == 1


# ------------------------------------------------------------------------------------------- zeros win


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)), (V,)),
        (lambda x: np.sum(np.where(x > 0, np.tanh(np.log(x)), 0.0) ** 2), (V,)),
        (lambda x: np.sum(np.where(x > 0, 1 / x, 1.0) * x), (V * 0.0,)),
        (lambda x: np.sum(np.where(x > 0, np.exp(x * 1e3) * 0.0, x)), (V,)),
        (lambda x: np.sum(x * np.array([1.0, np.inf, np.nan])), (V,)),
        (lambda x, y: np.sum((x * y) @ np.ones((3, 2))), (V, np.array([np.inf, 1.0, 2.0]))),
        (lambda x: np.sum(np.sqrt(np.where(x > 0, x, 0.0))), (V,)),
        (lambda x: np.linalg.norm(x * 0.0), (V,)),
        (lambda x: np.mean(x * x * 1e200), (V * 1e54,)),
        (lambda x: np.mean(x * 1e-200 * x), (V * 1e250,)),
        (lambda x: np.sum((x * 1e200) * 1e-300) * 1e150, (V,)),
        (lambda x: (x * 1e200) * 1e-300 * 1e150, (0.5,)),
    ],
    ids=range(12),
)
def test_what_was_finite_stays_so(f, args):
    assert_agrees(f, *args)


def test_other_inputs_than_the_traced_ones_are_rescued():
    """The program was traced where all was finite; the check is for the calls to come."""
    f = lambda x: np.sum(np.where(x > 0, np.log(np.abs(x)), 0.0))
    _, better = both(f, np.ones(3))
    program = assembled(better)
    with np.errstate(all="ignore"):
        _, (gradient,) = program(np.array([2.0, 0.0, -1.0]))
    np.testing.assert_array_equal(gradient, [0.5, 0.0, 0.0])
    _, (gradient,) = program(np.array([2.0, 4.0, 1.0]))  # and the plain way is still there
    np.testing.assert_array_equal(gradient, [0.5, 0.25, 1.0])


def test_a_cotangent_that_is_decided_on_stays_careful():
    """Where NaN could be swallowed, zero must win at once: here by ``np.fmax`` of a derivative."""

    def f(x):
        _, (g,) = primal_gradient(x)
        return np.sum(np.fmax(g, 0.5))

    def primal_gradient(x):
        from wengert import pullback

        value, back = pullback(lambda y: np.sum(np.where(y > 0, np.log(np.abs(y)), 0.0)), x)
        return value, back(1.0)

    assert_agrees(f, np.array([2.0, 0.0, 4.0]))


# ------------------------------------------------------------------------------------------- whole programs


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def network(w1, b1, w2, b2):
    h = np.tanh(X @ w1 + b1)
    return np.mean((h @ w2 + b2 - X[:, :1]) ** 2)


def logistic(x, r):
    for _ in range(20):
        x = r * x * (1.0 - x)
    return x


def recurrent(w, u, b):
    h = c = np.zeros(3)
    for x in X[:4]:
        z = x @ w + h @ u + b
        i, f, o = (1.0 / (1.0 + np.exp(-z[3 * k : 3 * k + 3])) for k in range(3))
        c = f * c + i * np.tanh(z[9:])
        h = o * np.tanh(c)
    return np.sum((h - V) ** 2)


def mixture(a, m, q):
    d = X[:, None, :] - m
    inner = a + np.sum(q, axis=1) - 0.5 * np.sum((np.exp(q) * d) ** 2, axis=2)
    peak = np.max(inner, axis=1, keepdims=True)
    return np.sum(np.squeeze(peak, 1) + np.log(np.sum(np.exp(inner - peak), axis=1)))


def clusters(c):
    return np.sum(np.min(np.sum((X[:, None] - c[None]) ** 2, axis=-1), axis=1))


R = np.random.default_rng(1).normal(size=(12, 12))
PROGRAMS = [
    (rosenbrock, V),
    (network, R[:5, :7], R[0, :7], R[:7, :1], R[0, :1]),
    (logistic, 0.4, 3.7),
    (recurrent, R[:5], R[:3], R[4]),
    (mixture, V, R[:3, :5], R[3:6, :5]),
    (clusters, R[:3, :5]),
    (lambda x: np.float32(2.0) * np.sum(x * x), V.astype(np.float32)),
    (lambda x, y: np.sum(x * y), V.astype(np.float32), W),
    (lambda x: np.sum(np.abs(x * (1 + 2j))), V),
    (lambda x: x, 2.0),
    (lambda x, y: x * 1.0, 2.0, V),
    (lambda d: d["a"] * d["b"] / d["a"], {"a": 2.0, "b": 3.0}),
    (lambda x, v: np.sum(x * v) + x, 2.0, V),
    (lambda x, v: np.sum(v[1:] * x) * v[0], np.float64(2.0), V),
    (lambda v: v[0] * v[1] / v[2], V),
    (lambda v: v[0] * 3.0, V[:1]),
    (lambda z: np.sum(np.abs(z * np.exp(z)) ** 2), V * (1 + 2j)),
    (lambda v: np.sum(np.maximum.reduce(v * v, axis=(0,))) - np.sum(-np.zeros(3)), M),
    (lambda v: float(v[0]) * float(v[0]) + v[0], V[:1]),
    (lambda v: [float(v[0]) ** 2, v[1:] * 2.0], V),
    (lambda v: np.sum(v * v * v) + v[()] * 2.0, np.array(1.5)),
    (lambda m: np.einsum("ij,kj->", m, m) + np.sum(m.T.reshape(-1)[1:]), M),
    (lambda v: np.sum(np.cumsum(v) * v) + np.prod(v), V),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_gradients_agree_with_the_literal_sweep(program):
    assert_agrees(*program)
    assert_agrees(*program, seed=False)


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (1.5 + b * b),
    lambda a, b: -a, lambda a, b: 2.0 * a - 0.5, lambda a, b: np.tanh(a), lambda a, b: a.T if a.ndim else a,
    lambda a, b: np.sum(a, axis=0) if a.ndim else a, lambda a, b: np.mean(a, axis=-1, keepdims=True) if a.ndim else a,
    lambda a, b: a @ b.T if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[1] else b,
    lambda a, b: a[::-1] if a.ndim else a, lambda a, b: a.reshape(-1), lambda a, b: np.where(a > 0, a, b),
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=1, max_size=20))
def test_made_up_programs(steps):
    def f(x, v, m):
        pool = [v, m, v * x, m + x]
        for k, i, j in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            try:
                np.broadcast_shapes(a.shape, b.shape)
            except ValueError:
                b = a
            pool.append(OPERATIONS[k % len(OPERATIONS)](a, b))
        return sum(np.sum(a) for a in pool[-4:])

    assert_agrees(f, 0.7, V.copy(), M.copy())


def test_linear_in_length():
    def f(x, r):
        for _ in range(3000):
            x = r * x * (1.0 - x)
        return x

    assert_agrees(f, 0.4, 3.1)


def test_optimising_leaves_the_literal_tape_alone():
    literal, _ = both(mixture, V, R[:3, :5], R[3:6, :5])
    before = str(literal)
    optimised(literal, [])
    assert str(literal) == before
    assert all(math.isfinite(np.sum(x.value)) for x in ops_in(literal.result))


def test_terms_that_cancel_are_nan_where_they_are_infinite():
    def inverse(x):
        return np.sum(1 / (x - x))

    def both(x):
        return np.sum(1 / (x - x) + np.log(x))

    def number(x):
        return math.inf * (x - x) + x

    with np.errstate(all="ignore"):
        for f, x in ((inverse, np.array([0.5, 0.9])), (both, np.array([0.5, 0.9])), (number, 2.0)):
            slope = grad(f)
            for _ in range(6):  # traced, and by a program
                assert np.isnan(slope(x)).all()


def there_and_back(x):
    return np.sum(np.log(np.exp(x)))


def again_and_again(x):
    for _ in range(20):
        x = np.log(np.exp(x))
    return np.sum(x)


def times_another(x):
    y = 2.0 * x
    return np.sum(np.log(np.exp(x)) * y)


def of_opposite_signs(x):
    return np.sum(np.exp((x - x) + x))


def three_less_one(x):
    return np.sum(3.0 * np.sqrt(x) - np.sqrt(x))


@pytest.mark.parametrize("of", [float, np.float64, lambda x: np.array([1.5, x])])
@pytest.mark.parametrize(
    "f", [there_and_back, again_and_again, times_another, of_opposite_signs, three_less_one]
)
def test_what_cancels_is_looked_at(f, of):
    """A quotient times its divisor, or a term less itself, is not what it would be among infinities and zeros."""
    slope = value_and_grad(f)
    with np.errstate(all="ignore"):
        for k in range(6):
            slope(of(1.0 + k))
        for x in (800.0, -800.0, 1e200, 0.0, math.inf, math.nan, 3.0):
            with jit(False):
                expected = value_and_grad(f)(of(x))
            for got, want in zip(slope(of(x)), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("kind", ["arrays", "scalars"])
def test_a_zero_cotangent_wins_where_the_forward_run_has_computed_the_same_product(kind):
    """The cotangent of x * x is y, and y * x is a value as well."""

    def f(x, y):
        both = x * y
        return np.sum((x * x) * y) + 0.0 * np.sum(both > 0)

    x, y = np.array([2.0, -np.inf]), np.array([-1.0, 0.0])
    if kind == "scalars":
        x, y = x[1], y[1]
    slope = grad(f)
    with np.errstate(all="ignore"):
        for _ in range(6):  # traced, and by a program
            np.testing.assert_array_equal(slope(x, y), [-4.0, 0.0] if kind == "arrays" else 0.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x * 0.0) * y,
        lambda x, y: x * y * 0.0,
        lambda x, y: 0.0 * x / 2.0 * y,
        lambda x, y: math.log(x * 0.0 + 1.0) * y,
        lambda x, y: x * 3.0 + (y - y * 1.0 + 0.0) * 0.0 * x,
        lambda x, y: np.sum((x * np.ones(2) * 0.0) * np.array([1.0, y])),
        lambda x, y: np.dot(x * np.ones(2) * 0.0, np.array([1.0, y])),
    ],
)
@pytest.mark.parametrize("y", [2.0, math.inf, math.nan])
def test_a_zero_that_meets_an_infinity_is_not_left_out(f, y):
    with np.errstate(all="ignore"):
        with jit(False):
            expected = value_and_grad(f)(1.5, y), jvp(f, (1.5, y), (1.0, 0.5))
        for _ in range(4):
            found = value_and_grad(f)(1.5, y), jvp(f, (1.5, y), (1.0, 0.5))
            np.testing.assert_array_equal(found, expected)
