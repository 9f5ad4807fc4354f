"""The rules for SciPy's linear algebra."""

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import (
    NoRuleError,
    check_grads,
    forward,
    grad,
    hvp,
    jvp,
    pullback,
    reverse,
    rrule,
    trace,
)
from wengert.rules import registry

linalg = pytest.importorskip("scipy.linalg")

case = Table()

A = np.array([[1.9, -0.4, 0.3], [0.2, 1.3, -0.7], [-0.5, 0.8, 2.2]])
B = np.array([[0.52, -1.23], [0.71, 0.44], [1.1, -0.63]])
X = np.array([0.7, -1.3, 2.1])
Z = A + 1j * np.array([[0.3, 0.1, -0.2], [0.5, -0.4, 0.1], [0.2, 0.6, 0.1]])
TALL = np.array([[0.9, -0.4], [0.2, 1.3], [-0.5, 0.8], [1.4, 0.1]])
WIDE = TALL.T.copy()
CTALL = TALL + 1j * np.array([[0.3, 0.6], [-0.1, 0.2], [0.25, -0.7], [0.5, 0.35]])
LOOSE = {"tol": 1e-5}
FIRST = {"second": False}
ROUGH = {"tol": 1e-5, "second": False, "single": False}
BAND = np.array([[0.0, 0.4, -0.3, 0.2], [2.1, 1.9, 2.6, 2.2], [0.6, -0.5, 0.1, 0.0]])


def spd(x):
    return x @ np.conjugate(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1])


def scaled(factors):
    """Factors that are not those of a matrix on the tape."""
    return 1.5 * factors[0], factors[1]


def twice_solved(factors, b):
    """One factorisation for two systems and a determinant."""
    x = linalg.lu_solve(factors, b)
    return linalg.lu_solve(factors, x * x, 1) + np.log(np.abs(np.diag(factors[0]))).sum()


def symmetric(x):
    return x + np.conjugate(np.swapaxes(x, -1, -2))


for a in (A, Z):
    for b in (X, B):
        case(linalg.solve, a, b)
        case(lambda a, b: linalg.solve(spd(a), b, assume_a="pos"), a, b)
        case(lambda a, b: linalg.solve(spd(a), b, assume_a="her", lower=True), a, b)
        case(lambda a, b: linalg.solve(a + a.T, b, assume_a="sym"), a, b)
        for trans in (0, 1, "C"):
            for lower in (False, True):
                case(linalg.solve_triangular, a, b, trans=trans, lower=lower)
        for trans in (0, 1, 2):
            case(lambda a, b, trans=trans: linalg.lu_solve(linalg.lu_factor(a), b, trans), a, b)
            case(
                lambda a, b, trans=trans: linalg.lu_solve(
                    scaled(linalg.lu_factor(a)), b, trans=trans
                ),
                a,
                b,
            )
        case(lambda a, b: twice_solved(linalg.lu_factor(a), b), a, b)
        case(linalg.solve_triangular, a, b, unit_diagonal=True)
        for lower in (False, True):
            case(
                lambda a, b, lower=lower: linalg.cho_solve(
                    linalg.cho_factor(spd(a), lower=lower), b
                ),
                a,
                b,
            )
            case(
                lambda a, b, lower=lower: linalg.cho_solve(
                    scaled(linalg.cho_factor(spd(a), lower=lower)), b
                ),
                a,
                b,
            )
    case(linalg.inv, a)
    case(linalg.det, a)
    case(linalg.pinv, a, case=LOOSE)
    case(linalg.expm, a)
    case(linalg.sqrtm, spd(a), case=LOOSE)
    case(linalg.logm, spd(a), case=ROUGH)
    case(linalg.fractional_matrix_power, spd(a), 0.4, case=ROUGH)
    case(linalg.solve_sylvester, a, a @ a, a - 1.0, case=LOOSE)
    case(linalg.solve_continuous_lyapunov, a, a - 1.0, case=LOOSE)
    case(linalg.eigvalsh, symmetric(a))
    case(lambda a: linalg.eigvalsh(symmetric(a), lower=False), a)
    case(lambda a: np.abs(linalg.eigh(symmetric(a))[1]), a, case=LOOSE)
    case(
        lambda a: linalg.eigh(symmetric(a), subset_by_index=[0, 1], eigvals_only=True),
        a,
        case=FIRST,
    )
    case(lambda a, b: linalg.eigvalsh(symmetric(a), spd(b)), a, a[::-1].copy(), case=LOOSE)
    case(lambda a, b: np.abs(linalg.eigh(symmetric(a), spd(b))[1]), a, a[::-1].copy(), case=LOOSE)
    case(linalg.eigvals, a, case=LOOSE)
    case(linalg.cholesky, spd(a), case=LOOSE)
    case(lambda a: linalg.cholesky(spd(a)), a)
    case(lambda a: linalg.cholesky(spd(a), lower=True), a)
    case(lambda a: linalg.cho_factor(spd(a))[0], a)
    case(lambda a: linalg.cho_factor(spd(a), lower=True)[0], a)
    case(linalg.toeplitz, a[0], a[1])
    case(linalg.toeplitz, a[0])
    case(linalg.hankel, a[0], a[1])
    case(linalg.circulant, a[0])
    case(linalg.block_diag, a, a[:2])
    case(linalg.norm, a)
    case(linalg.norm, a[0])
    case(linalg.solve_banded, (1, 1), BAND * a[0, 0], np.arange(4.0) + a[1, 1])
    case(linalg.solve_banded, (1, 1), BAND * a[0, 0], np.ones((4, 2)) + a[1, 1])
case(linalg.solve, A, B, transposed=True)
case(linalg.solve, A.tolist(), X)
case(lambda a: linalg.eig(a), Z, case={"tol": 1e-5, "single": False})
case(lambda a: linalg.eig(a), np.array([[1.0, 2.0], [0.3, -1.2]]), case=LOOSE)
case(lambda a: linalg.eig(a, right=False).real, np.array([[1.0, 2.0], [0.3, -1.2]]), case=LOOSE)
for a in (A, Z, TALL, WIDE, CTALL, CTALL.T.copy()):
    case(lambda a: linalg.lu(a)[1:], a, case=LOOSE)
    case(lambda a: linalg.lu(a, permute_l=True), a, case=LOOSE)
    case(lambda a: linalg.lu_factor(a)[0], a, case=LOOSE)
    case(lambda a: linalg.qr(a, mode="economic"), a, case=LOOSE)
    case(lambda a: linalg.qr(a, mode="r"), a, case=LOOSE)
    case(lambda a: linalg.qr(a, mode="economic", pivoting=True)[:2], a, case=LOOSE)
    case(
        lambda a: (lambda u, s, vh: (u * s**2) @ vh)(*linalg.svd(a, full_matrices=False)),
        a,
        case=LOOSE,
    )
    case(linalg.svdvals, a, case=LOOSE)
    case(lambda a: linalg.svd(a, full_matrices=False)[1], a, case=LOOSE)
    case(linalg.pinv, a, case=LOOSE)
for a in (A, TALL, CTALL):  # with a cut between their singular values
    case(linalg.pinv, a, rtol=0.9, case=LOOSE)
case(linalg.pinv, TALL, atol=1.6, case=LOOSE)
case(lambda a, b: linalg.lstsq(a, b)[0], TALL, TALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: linalg.lstsq(a, b)[:2], TALL, TALL**2, case=LOOSE)
case(linalg.solve_circulant, np.array([2.1, 0.4, -0.3]), np.array([0.7, -1.2, 0.5]))
case(linalg.solve_circulant, np.array([2.1, 0.4j, -0.3]), np.array([0.7, -1.2, 0.5]))
case(linalg.solve_circulant, np.array([2.1, 0.4, -0.3]), np.arange(6.0).reshape(3, 2))
case(linalg.solve_toeplitz, A[0] + 2, X)
case(lambda c, r, b: linalg.solve_toeplitz((c, r), b), A[0] + 2, A[1], B)
case(linalg.solveh_banded, np.array([[0.0, 0.4, -0.3, 0.2], [2.1, 1.9, 2.6, 2.2]]), np.arange(4.0))
case(
    lambda ab, b: linalg.solveh_banded(ab, b, lower=True),
    np.array([[2.1, 1.9, 2.6, 2.2], [0.4, -0.3, 0.2, 0.0]]) + 0j,
    np.ones((4, 2)),
)
for order in (None, 2, 1, 3, np.inf, -np.inf):
    case(linalg.norm, X, ord=order)
for order in ("fro", "nuc", 1, -1, 2, np.inf):
    case(linalg.norm, B, ord=order, case=LOOSE)
case(linalg.norm, B, axis=1, keepdims=True)
case(linalg.khatri_rao, A, B.T @ B @ B.T)
case(linalg.solve_discrete_lyapunov, A * 0.3, A, case=LOOSE)
case(linalg.companion, X)


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


def test_only_the_triangle_that_is_read_has_a_gradient():
    for lower in (False, True):
        g = grad(lambda a: linalg.solve(a, X, assume_a="pos", lower=lower).sum())(spd(A))
        np.testing.assert_array_equal((np.triu if lower else np.tril)(g, 1 if lower else -1), 0)


def test_what_has_no_derivative_is_refused():
    _, back = pullback(lambda a: linalg.qr(a)[0], TALL)
    with pytest.raises((NoRuleError, NotImplementedError), match="have no derivative"):
        back(np.ones((4, 4)))
    with pytest.raises(NoRuleError, match="part of the eigenvectors"):
        grad(lambda a: linalg.eigh(a, subset_by_index=[0, 1])[1].sum())(symmetric(A))
    for driver in (None, "gelsy"):
        with pytest.raises(NoRuleError, match="without full rank"):
            grad(lambda a: linalg.lstsq(a, X, cond=0.7, lapack_driver=driver)[0].sum())(A)


def test_powers_of_diagonal_and_singular_matrices():
    power = linalg.fractional_matrix_power
    f, a, d = lambda a: power(a, 0.4)[0, 1] ** 2, np.diag([2.0, 3.0]), np.array([[0.3, 1], [1, 2]])
    check_grads(f, (a + 0.1 * d,), order=1)
    differences = (grad(f)(a + 1e-5 * d) - grad(f)(a - 1e-5 * d)) / 2e-5
    np.testing.assert_allclose(hvp(f, (a,), (d,)), differences, atol=1e-8)
    check_grads(lambda a: power(a, -1.5)[0, 1], (np.eye(2),), order=1)
    near = np.array([[-1.0, 0.2], [0.3, 1.0]]) + 1j
    check_grads(lambda t: power(near, t)[0, 1], (0.4,), order=1)
    with pytest.raises(NoRuleError, match="negative eigenvalues"):
        grad(lambda a: power(a, 0.5)[0, 0].real)(np.diag([-1.0, 2.0]))
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    check_grads(lambda a: power(a, 2)[0, 1], (singular,), order=1)
    with pytest.raises(NoRuleError, match="singular"):
        grad(lambda a: power(a, 0.5)[0, 0])(singular)


def test_singular_values_beside_whole_bases():
    _, back = pullback(lambda a: linalg.svd(a)[1], TALL)
    u, _, vh = np.linalg.svd(TALL, full_matrices=False)
    np.testing.assert_allclose(back(np.ones(2))[0], u @ vh)


def test_the_derivative_of_a_logarithm_draws_nothing():
    def f(m):
        return linalg.logm(m @ m.T + np.eye(2))[0, 0]

    m = np.array([[2.0, 1.0], [0.5, 3.0]])
    np.random.seed(0)
    f(m)
    expected = np.random.rand()
    for ask in (lambda: grad(f)(m), lambda: jvp(f, (m,), (m,)), lambda: hvp(f, (m,), (m,))):
        np.random.seed(0)
        ask()
        assert np.random.rand() == expected


SOLVERS = {
    "lu": lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
    "lu, transposed": lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=1),
    "cholesky": lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
    "lower": lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower=True), b),
}


@pytest.mark.parametrize("f", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("transform", [reverse, forward])
def test_one_factorisation_and_nothing_but_solves_with_it(f, transform):
    """Not the derivative of the factors, which costs as much as ten factorisations."""
    tape = transform(trace(f, spd(A), X))
    names = [op.fn.__name__ for op in tape if op.kind == "call"]
    assert sum("factor" in name for name in names) == 1
    assert sum("solve" in name for name in names) == 2
    assert "solve_triangular" not in names
    assert (tape.result[0].value == f(spd(A), X)).all()


def test_factors_that_were_written_to_are_others():
    def f(a, b):
        lu, piv = linalg.lu_factor(a)
        lu[0, 0] *= 2.0
        return linalg.lu_solve((lu, piv), b).sum()

    check_grads(f, (spd(A), X), order=1)


def test_a_rule_of_the_users_own_for_the_factors_counts():
    """A function that factors, with the rule of a user: its derivative is what that says."""
    known = registry.rules[linalg.lu_factor]
    try:

        @rrule(linalg.lu_factor, pure=True)
        def rule(a, overwrite_a=False, check_finite=True):
            return linalg.lu_factor(a), lambda dz: (np.full(np.shape(a), 7.0),)

        found = grad(lambda a: linalg.lu_solve(linalg.lu_factor(a), X).sum())(spd(A))
    finally:
        registry.rules[linalg.lu_factor] = known
    assert (found == 7.0).all()


def test_a_power_of_one_has_a_derivative_by_the_exponent():
    """SciPy returns the very matrix then."""
    m = np.array([[2.0, 0.3], [0.1, 1.0]])
    f = lambda a: linalg.fractional_matrix_power(m, a)[0, 1]
    for a in (1.0, 1.0, 0.5, 1.0, 2.0, 1.0):
        assert grad(f)(a) == pytest.approx((f(a + 1e-6) - f(a - 1e-6)) / 2e-6, rel=1e-6)
    g = lambda m, a: linalg.fractional_matrix_power(m, a)[0, 1]
    np.testing.assert_allclose(grad(g)(m, 1.0), [[0.0, 1.0], [0.0, 0.0]], atol=1e-12)
