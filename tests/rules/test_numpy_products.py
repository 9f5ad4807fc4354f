"""The rules for products of vectors, matrices and tensors, and for convolution."""

import operator as op

import numpy as np
from checker import Table, check_first, check_forward, check_second, check_single

case = Table()

X = np.array([0.7, -1.3, 2.1])
Y = np.array([0.2, 1.1, -0.6])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
S = np.sin(np.arange(20.0)).reshape(5, 4)
Z = np.array([[0.3 + 1.2j, -0.7 - 0.4j, 0.2], [1.1 + 0.2j, 0.4 - 0.9j, 0.6j]])
C = np.array([0.2 - 0.7j, 1.4 + 0.3j, -0.5j])

for f in (np.matmul, op.matmul, np.dot):
    case(f, X, Y)
    case(f, M, X)
    case(f, X, M.T)
    case(f, M, M.T)
    case(f, M.T.tolist(), M) if f is not op.matmul else None
    case(f, T, S.T)
    case(f, T, S[0])
    case(f, X, T)
    case(f, Z, C)
    case(f, Z, Z.T)
    case(f, M, C)
    case(f, np.zeros((2, 0)), np.zeros((0, 3)))
Q = np.sin(np.arange(9.0) * 1.3).reshape(3, 3)
case(np.matmul, Q, Q.T + 1, axes=[(0, 1), (1, 0), (0, 1)])
case(np.matmul, Q, Q + 1j * Q.T, axes=[(1, 0), (0, 1), (-1, -2)])
case(np.matmul, Q, X, axes=[(1, 0), (0,), (0,)])
case(np.matmul, T, T[0] + 1, axes=[(1, 2), (1, 0), (0, 2)])
for f in (np.matmul, op.matmul):
    case(f, T, np.swapaxes(T, 1, 2))
    case(f, T[:1], np.swapaxes(T, 1, 2))
    case(f, T[:, None], S.T)
case(np.dot, T, np.sin(np.arange(40.0)).reshape(2, 4, 5))
case(np.dot, 0.6, M)
case(np.dot, M, np.array(0.6))
case(np.dot, 0.6, 1.7)
case(np.ndarray.dot, M, X)
case(lambda x, y: x.T.dot(y), M, M)

case(np.vdot, X, Y)
case(np.vdot, M, M[::-1])
case(np.vdot, C, C[::-1])
case(np.vdot, X, C)
case(np.inner, X, Y)
case(np.inner, M, X)
case(np.inner, M, M)
case(np.inner, T, S)
case(np.inner, Z, C)
case(np.inner, 0.6, X)
case(np.outer, X, Y)
case(np.outer, M, Y)
case(np.outer, C, Y)
case(np.outer, [0.6, 1.7], X)
case(np.tensordot, M, M, 2)
case(np.tensordot, M, M.T, 1)
case(np.tensordot, X, Y, 0)
case(np.tensordot, T, S, axes=(2, 1))
case(np.tensordot, T, np.swapaxes(T, 0, 1), axes=([0, 1], [1, 0]))
case(np.tensordot, T, np.swapaxes(T, 0, 2), axes=([2, 0], [0, 2]))
case(np.tensordot, Z, Z, axes=([0], [0]))
if hasattr(np, "vecdot"):
    case(np.vecdot, M, X)
    case(np.vecdot, Z, C)
    case(np.vecdot, M, M, axis=0)
    case(np.vecdot, Q, X, axis=0)
    case(np.vecdot, Q.tolist(), X)
    case(np.vecdot, T, T[0].T + 1, axis=1)
    case(np.vecdot, Q, Q.T + 1, keepdims=True)
    case(np.vecdot, T, T + 1j, axis=1, keepdims=True)
    case(np.vecdot, Q, Q.T + 1, axes=[0, 1])
    case(np.vecdot, Q, Q.T + 1, axes=[(1,), (0,), (0,)], keepdims=True)
    case(np.linalg.vecdot, Z, Z)
if hasattr(np, "matvec"):
    case(np.matvec, M, X)
    case(np.matvec, Z, C)
    case(np.vecmat, X, M.T)
    case(np.vecmat, C, Z.T)
    case(np.matvec, T, T[:, 0])
    case(np.matvec, Q, Q.T + 1, axes=[(1, 0), 0, 0])
    case(np.vecmat, Q, Q.T + 1j, axes=[0, (1, 0), (0,)])
    case(np.vecmat, T[..., 0], T)

# einsum
case(np.einsum, "i,i", X, Y)
case(np.einsum, "i,j->ij", X, Y)
case(np.einsum, "ij,j", M, X)
case(np.einsum, "ij,jk->ik", M, M.T)
case(np.einsum, "ij, kj -> ki", M, M)
case(np.einsum, "ij->ji", M)
case(np.einsum, "ij->", M)
case(np.einsum, "ij->j", M)
case(np.einsum, "ii", M @ M.T)
case(np.einsum, "ii->i", M @ M.T)
case(np.einsum, "iij->j", np.stack([M[:, :2], M[:, 1:]]))
case(np.einsum, "ii,i->i", M @ M.T, X[:2])
case(np.einsum, "ij,ij,j->i", M, M, X)
case(np.einsum, "ij,k->k", M, X)
case(np.einsum, "...i,i->...", T, S[0])
case(np.einsum, "...ij,...jk", T, np.swapaxes(T, 1, 2))
case(np.einsum, "...ij->...ji", T)
case(np.einsum, "i...,i...->...", T, T)
case(np.einsum, "i...", M)
case(np.einsum, "ij,jk,kl->il", M, M.T, M, optimize=True)
case(np.einsum, "ij,jk", Z, Z.T)
case(np.einsum, "ij,j", Z, X)
case(np.einsum, "ij,ij->ij", M, M[:1])
case(np.einsum, "a,a,a", X, X, Y)
case(np.einsum, "i,->i", X, 0.6)
case(lambda x, y: np.einsum(x, [0, 1], y, [1]), M, X)
case(lambda x, y: np.einsum(x, [0, 1], y, [2, 1], [2, 0]), M, M)
case(lambda x, y: np.einsum(x, [0, 30], y, [30, 27]), M, M.T)
case(lambda x, y: np.einsum(x, [27, 30], y, [30, 0]), M, M.T)
case(lambda x: np.einsum(x, [..., 26, 25]), T)
case(lambda x, y: np.einsum(x, [Ellipsis, 0], y, [0], [Ellipsis]), T, S[0])

case(np.einsum, "iijj->ij", np.multiply.outer(M, M)[:, :2, :, :2] + 0.1)
case(np.einsum, "...ii->...i", np.stack([M[:, :2], M[:, 1:]]))
case(np.einsum, "ij,jk->ik", M, M.T, order="F", casting="safe")
case(np.einsum, "ij,jk,kl->il", M, M.T, M, optimize="optimal")
case(
    lambda x, y: np.einsum("ij,jk,kl->il", x, y, x, optimize=["einsum_path", (0, 1), (0, 1)]),
    M,
    M.T,
)

# NumPy's own Python code, and the rest
case(np.kron, M, M)
case(np.linalg.multi_dot, [M, M.T, M])
case(np.linalg.matrix_power, M[:, :2], 3)
case(np.linalg.matrix_power, M[:, :2], -2)
case(np.cross, X, Y)
case(np.cross, M, X)
case(np.cross, M, M[::-1])
case(np.cross, M.T, M.T, axis=0)
case(np.cross, M.T, M, axisa=0, axisc=0)
case(np.cross, np.broadcast_to(X, (2, 1, 3)).copy(), M)
for mode in ("full", "same", "valid"):
    for n, m in ((5, 3), (5, 2), (4, 3), (4, 2), (2, 4), (3, 5)):
        case(np.convolve, S.ravel()[:n], S.ravel()[-m:], mode, case={"second": n > m})
        case(np.correlate, S.ravel()[:n], S.ravel()[-m:], mode, case={"second": n > m})
case(np.convolve, C, Z[0])
case(np.correlate, C, Z[0], "full")


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
