"""The rules for NumPy's linear algebra."""

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import grad, jacobian, jvp, pullback
from wengert.tracer.errors import NoRuleError

case = Table()

A = np.array([[1.9, -0.4, 0.3], [0.2, 1.3, -0.7], [-0.5, 0.8, 2.2]])
B = np.array([[0.52, -1.23], [0.71, 0.44], [1.1, -0.63]])
X = np.array([0.7, -1.3, 2.1])
STACK = np.stack([A, A.T + np.diag([0.1, 0.4, 0.3])])
Z = A + 1j * np.array([[0.3, 0.1, -0.2], [0.5, -0.4, 0.1], [0.2, 0.6, 0.1]])
TALL = np.array([[0.9, -0.4], [0.2, 1.3], [-0.5, 0.8], [1.4, 0.1]])
WIDE = TALL.T.copy()
CTALL = TALL + 1j * TALL[::-1]
LOOSE = {"tol": 1e-5}


def spd(x):
    return x @ np.conjugate(np.swapaxes(x, -1, -2)) + np.eye(3)


def symmetric(x):
    return x + np.conjugate(np.swapaxes(x, -1, -2))


for x in (A, STACK, Z):
    case(np.linalg.inv, x)
    case(np.linalg.det, x)
    case(lambda a: np.linalg.slogdet(a)[1], x)
    case(np.linalg.solve, x, x)
    case(np.linalg.solve, x, B)
    case(lambda a: np.linalg.cholesky(spd(a)), x)
    case(lambda a: np.linalg.eigvalsh(symmetric(a)), x)
    case(lambda a: np.linalg.eigvalsh(symmetric(a), "U"), x)
    case(lambda a: np.abs(np.linalg.eigh(symmetric(a))[1]), x, case=LOOSE)
    case(lambda a: np.linalg.svd(a, compute_uv=False), x, case=LOOSE)
    case(lambda a: np.abs(np.linalg.svd(a)[0]), x, case=LOOSE)
    case(lambda a: np.abs(np.linalg.svd(a)[2]), x, case=LOOSE)
    case(np.linalg.pinv, x, case=LOOSE)
case(lambda a: np.linalg.slogdet(a)[0], Z)
case(np.linalg.slogdet, A)
case(np.linalg.solve, A, X)
case(np.linalg.solve, STACK, X)
case(np.linalg.solve, A, np.stack([B, 2 * B]))
case(np.linalg.solve, A, X + 0.3j)
case(np.linalg.solve, A.tolist(), X)
case(np.linalg.det, np.array([[0.6]]))
case(np.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]]), case={"second": False})
case(
    np.linalg.det,
    np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]]),
    case={"second": False},
)
case(np.linalg.cholesky, spd(A), case=LOOSE)
case(np.linalg.eigvalsh, symmetric(A))
case(lambda a: (lambda w, v: (v * np.exp(w)) @ v.T)(*np.linalg.eigh(symmetric(a))), A, case=LOOSE)
case(lambda a: np.linalg.eigvals(a).real, np.array([[1.0, 2.0], [0.3, -1.2]]))
case(lambda a: np.abs(np.linalg.eigvals(a)), np.array([[1.0, 2.0], [-0.9, -1.2]]))
case(np.linalg.eigvals, Z, case=LOOSE)
case(np.linalg.eig, np.array([[1.0, 2.0], [0.3, -1.2]]), case=LOOSE)
case(np.linalg.eig, Z, case={"tol": 1e-5, "single": False})
case(
    np.linalg.eig,
    np.array([[1.0, 2.0, 0.3], [-0.9, -1.2, 0.4], [0.2, 0.1, 0.8]]),
    case={"tol": 1e-5, "single": False},
)
case(np.roots, np.array([1.3, -0.4, -2.1]), case=LOOSE)
case(np.roots, np.array([1.0, 0.4, 2.1, 0.7]), case=LOOSE)
case(np.roots, [1.0, -3.0, 2.0], case=LOOSE)
case(np.roots, np.array([1.0, -3.0, 2.0, 0.0]), case={"name": "roots with zero", **LOOSE})
case(np.roots, np.array([1.0 + 0.2j, -0.4, 0.7j]), case=LOOSE)
for x in (TALL, WIDE, CTALL):
    case(
        lambda a: (lambda u, s, vh: (np.abs(u), s, np.abs(vh)))(
            *np.linalg.svd(a, full_matrices=False)
        ),
        x,
        case=LOOSE,
    )
    case(
        lambda a: (lambda u, s, vh: (u * s**2) @ vh)(*np.linalg.svd(a, full_matrices=False)),
        x,
        case=LOOSE,
    )
    case(lambda a: np.linalg.svd(a)[1], x, case=LOOSE)
    case(np.linalg.pinv, x, case=LOOSE)
for x in (A, TALL, Z, CTALL, np.stack([TALL, 2 * TALL[::-1]])):
    case(np.linalg.qr, x, case=LOOSE)
    case(np.linalg.qr, x, "r", case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], TALL, TALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], TALL, TALL**2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[1], TALL, TALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], WIDE, X[:2], case=LOOSE)
for x in (A, TALL, WIDE, STACK, Z, CTALL):  # with a cut between their singular values
    case(np.linalg.pinv, x, rcond=0.6 if 3 in x.shape else 0.9, case=LOOSE)
case(np.linalg.pinv, STACK, rcond=np.array([0.6, 1e-9]), case={"name": "pinv, two cuts", **LOOSE})
case(np.linalg.pinv, A, rcond=2.0)
case(lambda a: np.linalg.pinv(symmetric(a), rcond=0.6, hermitian=True), A, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=0.9)[0], TALL, TALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=0.9)[0], WIDE, X[:2], case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=0.9)[0], CTALL, TALL, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=2.0)[0], TALL, TALL, case=LOOSE)
case(
    lambda x, y: np.polyfit(x, y, 2),
    np.arange(5.0),
    np.sin(np.arange(5.0)),
    case={"second": False, "tol": 1e-5},
)

# NumPy's own Python code
for order in (None, 2, 1, 3, 0.5, np.inf, -np.inf):
    case(np.linalg.norm, X, order)
    case(np.linalg.norm, B, order, axis=1)
for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    case(np.linalg.norm, B, order, case=LOOSE)
case(np.linalg.norm, B)
case(np.linalg.norm, STACK, axis=(1, 2))
case(np.linalg.norm, B, axis=0, keepdims=True)
case(np.linalg.norm, Z)
case(np.linalg.cond, A, case=LOOSE)
case(np.linalg.cond, A, 1, case=LOOSE)
case(np.linalg.tensorsolve, A, X)
if hasattr(np.linalg, "svdvals"):
    case(np.linalg.svdvals, TALL)
    case(np.linalg.vector_norm, B, axis=0)
    case(np.linalg.matrix_norm, STACK)
    case(np.linalg.trace, STACK)
    case(np.linalg.diagonal, STACK)
    case(np.linalg.outer, X, X)
    case(np.linalg.cross, X, X[::-1])
    case(np.linalg.matmul, A, B)
    case(np.linalg.tensordot, A, B, axes=1)
    case(np.linalg.vecdot, A, X)
    case(np.linalg.matrix_transpose, A)
    case(lambda a: np.linalg.cholesky(spd(a), upper=True), A)

# Other forms
CWIDE = CTALL.T.copy()
for x in (WIDE, CWIDE, np.stack([WIDE, WIDE[::-1]])):
    case(np.linalg.qr, x, case=LOOSE)
    case(np.linalg.qr, x, "r", case=LOOSE)
    case(np.linalg.qr, x, "complete", case=LOOSE)
for x in (A, Z):
    case(np.linalg.qr, x, "complete", case=LOOSE)
case(lambda a: np.linalg.qr(a, "complete")[1], TALL, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], CTALL, CTALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[1], CTALL, CTALL, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[3], TALL, TALL[:, 0] ** 2, case=LOOSE)
case(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], TALL[:2], TALL[:2, 0] ** 2, case=LOOSE)
case(np.linalg.cond, STACK, case=LOOSE)
case(np.linalg.cond, TALL, 2, case=LOOSE)
SKEW = np.stack([A, A.T + np.diag([0.1, 0.4, 0.7]) + 0.05])
for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    case(np.linalg.norm, Z, order, case=LOOSE)
    case(np.linalg.norm, SKEW, order, (1, 2), case=LOOSE)
    case(np.linalg.norm, SKEW, order, (-1, 0), True, case=LOOSE)
for order in (None, 0, 1, 2, 3, -1, -2, 2.5, np.inf, -np.inf):
    case(np.linalg.norm, Z[0], order, case=LOOSE)
    case(np.linalg.norm, STACK, order, -1)
    case(np.linalg.norm, B, order, 0, True)
    if hasattr(np.linalg, "vector_norm") and order is not None:
        case(np.linalg.vector_norm, B, ord=order)
        case(lambda x, order=order: np.linalg.vector_norm(x, axis=(0, 2), ord=order), SKEW)
for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    if hasattr(np.linalg, "matrix_norm"):
        case(np.linalg.matrix_norm, SKEW, ord=order, case=LOOSE)
EMPTY = np.zeros((0, 3, 3))
for f in (
    np.linalg.inv,
    np.linalg.det,
    np.linalg.slogdet,
    np.linalg.cholesky,
    np.linalg.qr,
    np.linalg.eigh,
):
    case(f, EMPTY)
case(np.linalg.solve, EMPTY, EMPTY)
case(np.linalg.eigvals, EMPTY + 0j)
case(np.linalg.svd, np.zeros((0, 2, 3)), False)
case(np.linalg.pinv, np.zeros((0, 3, 2)))
case(np.linalg.inv, np.zeros((0, 0)))
case(np.linalg.det, np.zeros((0, 0)))
case(np.linalg.solve, A, Z)
case(np.linalg.solve, Z, A)
case(np.linalg.solve, STACK[:, None], B)
case(np.linalg.eigvals, np.array([[1.0, 2.0], [-0.9, -1.2]]))
case(np.linalg.pinv, CWIDE, case=LOOSE)
for f in (np.linalg.pinv, lambda a, hermitian: np.linalg.svd(a, hermitian=hermitian)[1]):
    case(lambda a, f=f: f(a, hermitian=True), symmetric(A), case=LOOSE)
    case(lambda a, f=f: f(symmetric(a), hermitian=True), Z, case=LOOSE)
case(np.linalg.svd, symmetric(A), False, False, True, case=LOOSE)
case(np.linalg.slogdet, -A)
case(np.linalg.slogdet, STACK)
case(np.linalg.matrix_power, Z, 3)
case(np.linalg.multi_dot, [A, B, B.T, X])


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
    g = grad(lambda a: np.sum(np.linalg.cholesky(a)))(spd(A))
    np.testing.assert_array_equal(np.triu(g, 1), 0)
    g = grad(lambda a: np.sum(np.linalg.eigvalsh(a, "U") ** 3))(symmetric(A))
    np.testing.assert_array_equal(np.tril(g, -1), 0)


def test_singular_vectors_without_derivative_are_refused():
    _, back = pullback(np.linalg.svd, TALL)
    u, s, vh = np.linalg.svd(TALL)
    assert np.all(np.isfinite(back((None, np.ones_like(s), None))[0]))
    with pytest.raises(NoRuleError, match="full_matrices"):
        back((np.ones_like(u), None, None))


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.sum(np.linalg.eig(a)[1].real),  # a Jordan block has one eigenvector only
        lambda a: np.sum(np.linalg.eigvals(a).real),
        lambda a: np.linalg.slogdet(np.ones((2, 2)) * a[0, 0])[1],
        lambda a: np.sum(np.linalg.qr(np.ones((2, 2)) * a[1, 1])[1]),
    ],
)
def test_degenerate_matrices_are_an_error_that_names_the_line(f):
    with pytest.raises(NoRuleError, match=r"test_numpy_linalg\.py:\d+"):
        grad(f)(np.array([[2.0, 1.0], [0.0, 2.0]]))


def test_columns_that_depend_on_one_another():
    # What is zero but for rounding is cut by lstsq in one place, and by pinv in another.
    def fit(w):
        return np.linalg.lstsq(columns, w * target, rcond=None)[0].sum()

    for seed in range(20):
        rng = np.random.default_rng(seed)
        group, target = rng.integers(0, 3, 500), rng.normal(size=500)
        dummies = group[:, None] == np.arange(3)
        columns = np.c_[np.ones(500), dummies, target, 2 * target + 1.7 * (group == 1)] * 0.77
        assert grad(fit)(1.3) == pytest.approx(fit(2.0) - fit(1.0), rel=1e-6)


def test_a_cut_between_small_singular_values():
    # P = V/s U^T: with A = U S V^T and dA = U e_2 e_3^T V^T, of which the third value is cut.
    rng = np.random.default_rng(3)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (5, 4))
    for scale in (1.0, 1e30, 1e-30):
        s = scale * np.array([1.0, 1e-8, 4e-9, 1e-12])
        f = lambda a: np.linalg.pinv(a, rcond=7e-9)
        tangent = jvp(f, ((u[:, :4] * s) @ v.T,), (scale * np.outer(u[:, 1], v[:, 2]),))[1]
        gap = scale / ((s[1] - s[2]) * (s[1] + s[2]))
        expected = gap * (np.outer(v[:, 2], u[:, 1]) + s[2] / s[1] * np.outer(v[:, 1], u[:, 2]))
        np.testing.assert_allclose(tangent, expected, atol=1e-6 * gap)


def test_a_cut_between_equal_singular_values_is_refused():
    # Either of them might be kept, and neither is when one of them changes.
    a, least = np.diag([1.0, 1 - 2.0**-52]), 1 - 2.0**-53
    f = lambda a: np.sum(np.linalg.pinv(a, rcond=least))
    np.testing.assert_array_equal(np.linalg.pinv(a, rcond=least), np.diag([1.0, 0.0]))
    with pytest.raises(NoRuleError, match="are equal"):
        grad(f)(a)


def test_roots_by_a_leading_zero():
    """The roots that are there change by it; where one occurs twice, there is no derivative."""
    r, slope = np.array([2.0, 1.0]), np.array([1.0, -1.0])
    found = jacobian(np.roots)(np.array([0.0, 1.0, -3.0, 2.0]))
    np.testing.assert_allclose(found, -(np.vander(r, 4) / slope[:, None]), rtol=1e-12)
    for twice in ([1.0, -2.0, 1.0], [1.0, 0.0, 0.0]):
        with pytest.raises(NoRuleError, match="more than once"):
            grad(lambda c: np.roots(c)[0])(np.array(twice))


def test_norm_at_zero():
    np.testing.assert_array_equal(grad(np.linalg.norm)(np.zeros(3)), 0)
