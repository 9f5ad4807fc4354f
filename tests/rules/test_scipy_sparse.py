"""Products and solutions with sparse matrices."""

import numpy as np
import pytest
from checker import Table, check_first, check_second

from wengert import grad

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")

case = Table()

A = np.array(
    [[1.9, 0.0, 0.3, 0.0], [0.2, 1.3, 0.0, 0.5], [0.0, 0.8, 2.2, 0.0], [0.0, 0.0, -0.4, 1.1]]
)
X = np.array([0.7, -1.3, 2.1, 0.4])
M = np.array([[0.7, 1.0], [-1.3, 0.2], [2.1, 0.5], [0.4, -0.6]])

for kind in (
    sparse.csr_array,
    sparse.csc_array,
    sparse.csr_matrix,
    sparse.coo_array,
    sparse.dia_array,
):
    S = kind(A)
    for x in (X, M, X + 0.2j):
        case(lambda x, S=S: S @ x, x)
        case(lambda x, S=S: S.dot(x), x)
        case(lambda x, S=S: x.T @ S, x)
        case(lambda x, S=S: S.T @ x, x)
for kind in (sparse.csr_array, sparse.csc_array):
    S = kind(A)
    for b in (X, X[:, None], M):
        case(lambda b, S=S: linalg.spsolve(S, b), b)

        def solved(data, b, kind=kind, S=S):
            return linalg.spsolve(kind((data, S.indices, S.indptr), shape=(4, 4)), b)

        def multiplied(data, b, kind=kind, S=S):
            return kind((data, S.indices, S.indptr), shape=(4, 4)) @ b

        case(solved, S.data, b, case={"single": False})
        case(solved, S.data, X[:, None], case={"single": False})
        case(multiplied, S.data, b)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


def test_a_matrix_that_changes():
    S = sparse.csr_array(A)
    g = grad(lambda x: (S @ x).sum())
    for _ in range(4):
        np.testing.assert_allclose(g(X), S.toarray().sum(0))
        S = S * 2.0
        S.data[0] = 7.0
