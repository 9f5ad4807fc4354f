"""The rules for shapes, axes, joining, repeating, copying, diagonals, and for arrays made from numbers."""

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import jit, pullback, value_and_grad

case = Table()

X = np.array([0.7, -1.3, 2.1])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
Z = np.array([[0.3 + 1.2j, -0.7 - 0.4j], [1.1 + 0.2j, 0.4 - 0.9j]])
F = np.asfortranarray(M)

# Shapes
case(np.reshape, M, (3, 2))
case(np.reshape, M, -1)
case(np.reshape, M, (3, 2), order="F")
case(np.reshape, F, (3, 2), order="A")
case(np.reshape, M, (3, 2), order="A")
case(np.reshape, [0.6, 1.7], (2, 1))
case(np.ndarray.reshape, M, 3, 2)
case(np.ndarray.reshape, M, (3, -1))
case(np.ndarray.reshape, M, -1, order="F")
for order in "CFAK":
    case(np.ravel, M, order)
    case(np.ravel, F, order=order)
    case(np.ndarray.flatten, F, order)
    case(np.ndarray.ravel, T.transpose(1, 0, 2), order)
case(np.reshape, M.ravel(), (2, 3), order="F")
case(np.ndarray.reshape, T.ravel(), 2, 3, 4, order="F")
case(np.reshape, M[0], (3, 1), order="A")
LAYOUTS = {
    "repeated": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "repeated inside": lambda x: np.broadcast_to(x[:, None], (2, 4, 3)),
    "backwards": lambda x: x[::-1, ::-1],
    "turned": lambda x: x[:, ::2].T,
    "turned backwards": lambda x: x.T[::-1],
    "cut": lambda x: x[:, 1:],
}
for layout in LAYOUTS.values():
    for order in "CFAK":
        case(lambda x, layout=layout, order=order: layout(x).ravel(order), M)
        case(lambda x, layout=layout, order=order: layout(x).flatten(order), M)
    for order in "CFA":
        case(lambda x, layout=layout, order=order: layout(x).reshape(2, -1, order=order), M)
    case(lambda x, layout=layout: np.linalg.norm(layout(x)), M)
for number in (0.6, np.array(0.6)):
    for axis in (0, -1):
        for reduce in (np.sum, np.prod, np.max, np.min, np.nansum, np.add.reduce):
            case(reduce, number, axis=axis)
        case(np.sum, number, axis=axis, keepdims=True)
        case(np.repeat, number, 3, axis=axis)
        case(np.take, number, 0, axis=axis)
case(np.squeeze, M[None, :, None])
case(np.squeeze, M[None, :, None], axis=0)
case(np.ndarray.squeeze, M[None])
case(np.expand_dims, M, 1)
case(np.expand_dims, M, (0, -1))
case(np.broadcast_to, X, (2, 3))
case(np.broadcast_to, 0.6, (2, 3))
case(np.broadcast_arrays, X, M)
case(np.atleast_1d, 0.6)
case(np.atleast_2d, X)
case(np.atleast_3d, M)
case(np.atleast_2d, X, M)

# Axes
case(np.transpose, M)
case(np.transpose, T, (1, 2, 0))
case(np.transpose, T, (-1, 0, 1))
case(np.ndarray.transpose, T)
case(np.ndarray.transpose, T, 1, 2, 0)
case(np.ndarray.transpose, T, (2, 0, 1))
case(np.ndarray.transpose, T, None)
case(lambda x: x.T @ x, M)
case(np.swapaxes, T, 0, 2)
case(np.ndarray.swapaxes, T, 1, -1)
case(np.moveaxis, T, 0, -1)
case(np.moveaxis, T, (0, 1), (2, 0))
case(np.rollaxis, T, 2)
if hasattr(np, "matrix_transpose"):
    case(np.matrix_transpose, T)
    case(lambda x: x.mT * 2, T)
case(np.flip, M)
case(np.flip, M, 1)
case(np.flip, T, axis=(0, 2))
case(np.fliplr, M)
case(np.flipud, M)
case(np.rot90, M)
case(np.rot90, M, 2)
case(np.roll, X, 1)
case(np.roll, M, 2)
case(np.roll, M, -1, axis=1)
case(np.roll, M, (1, 2), axis=(0, 1))

# Joining and splitting
case(np.concatenate, [X, X[:2]])
case(np.concatenate, (M, X[None]), axis=0)
case(np.concatenate, [M, M[:, :1]], axis=-1)
case(np.concatenate, [M, X], axis=None)
case(np.concatenate, T)
case(np.concatenate, [[0.6, 1.7], X])
case(np.concatenate, [X, np.arange(3)])
case(np.stack, [X, X[::-1]])
case(np.stack, (M, M), axis=1)
case(np.stack, [X, X], axis=-1)
case(np.stack, [0.6, 1.7])
case(np.vstack, [X, M])
case(np.vstack, [0.6, 1.7])
case(np.hstack, [X, X[:1]])
case(np.hstack, [M, M])
case(np.hstack, [0.6, X])
case(np.dstack, [M, M])
case(np.column_stack, [X, X])
case(np.append, X, [0.6, 1.7])
case(np.append, M, X[None], axis=0)
case(np.block, [[M, M], [M, M]])
case(np.split, X, 3)
case(np.split, M, [1], axis=1)
case(np.array_split, X, 2)
case(np.hsplit, M, 3)
case(np.vsplit, M, 2)
if hasattr(np, "unstack"):
    case(np.unstack, M)
case(np.insert, X, 1, 0.6)
case(np.insert, X, [0, 2], [0.6, 1.7])
case(np.insert, M, 1, X[:2], axis=1)
case(np.delete, X, 1)
case(np.delete, M, [0, 2], axis=1)
case(np.delete, M, slice(1, 4))

# Repeating
case(np.repeat, X, 2)
case(np.repeat, M, 3, axis=1)
case(np.repeat, M, [2, 0, 1], axis=1)
case(np.repeat, X, [2, 0, 1])
case(np.ndarray.repeat, M, 2, 0)
case(np.tile, X, 2)
case(np.tile, M, (2, 1))
case(np.tile, M, (2, 1, 3))
case(np.tile, T, 2)
case(np.resize, X, (2, 4))
case(np.meshgrid, X, X[:2])
case(np.meshgrid, X, X[:2], 0.6, indexing="ij")
case(np.meshgrid, X, X[:2], sparse=True)
case(np.meshgrid, X)
case(np.kron, M, X[:2])
case(np.pad, X, 2)
case(np.pad, M, ((1, 0), (0, 2)), mode="constant", constant_values=0.5)
for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "linear_ramp", "maximum"):
    case(np.pad, M, 1, mode=mode)

# Copying
for f in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy, np.ndarray.copy):
    case(f, M)
case(np.asfortranarray, M)
case(np.array, [0.6, 1.7])
case(np.array, [[0.6, 1.7], [0.2, -0.4]])
case(np.array, [X, X[::-1]])
case(np.array, (0.6, np.float64(1.7), 3))
case(np.array, [0.6, 1.7 + 0.2j])
case(np.array, X, ndmin=2)
case(np.array, X, np.complex128)
case(np.asarray, [0.6, 1.7], np.float64)
case(lambda x: x.astype(np.float32), X, case={"second": False, "tol": 1e-3})
case(lambda x: x.astype(complex) * 1j, X)
case(lambda x: x.item() * x, np.array([1.7]))
case(lambda x: x.item(4) * x.item(1, 2), M)
case(lambda x: x.tolist(), M)
case(lambda x: x.copy() * x, M)
case(lambda x: x.view() * x, M)
case(lambda x: x.view(np.float64) * 2, Z, case={"single": False})
case(lambda x: x.view(np.complex128) * 2j, M[:, :2].copy(), case={"single": False})
case(lambda x: [row * 2 for row in x], M)

# Diagonals
for k in (-1, 0, 1, 2):
    case(np.diag, X, k)
    case(np.diag, M, k)
    case(np.diagonal, M, k)
    case(np.trace, M, k)
    case(np.tril, M, k)
    case(np.triu, M, k)
    case(np.diagflat, M, k)
case(np.diagonal, T, 0, 1, 2)
case(np.diagonal, T, 1, axis1=2, axis2=0)
case(np.ndarray.diagonal, T, -1, 0, 2)
case(np.trace, T, axis1=0, axis2=2)
case(np.ndarray.trace, M)
case(np.diag, Z)

# Arrays made from numbers
case(np.linspace, 0.6, 1.7, 5)
case(np.linspace, 0.6, 1.7, num=4, endpoint=False)
case(np.linspace, X, 1.7, 4)
case(np.linspace, X, X[::-1], 4, axis=1)
case(np.linspace, 0.6, 1.7, 5, retstep=True)
case(np.linspace, X, 1.7, 4, retstep=True)
case(np.linspace, 0.6, X, 4, retstep=True)
case(np.linspace, 0.6, X.tolist(), 4, retstep=True)
case(lambda x: np.linspace(x, 1.7, 4, retstep=True)[1], X)
case(np.linspace, 0.6, 1.7, 1)
case(np.linspace, 0.6 + 0.2j, 1.7, 3)
case(np.logspace, 0.6, 1.7, 4)
case(np.geomspace, 0.6, 1.7, 4)
case(np.arange, 0.6, 4.1, 1.3)
case(np.arange, 0.6, 4.1)
case(np.full, 3, 0.6)
case(np.full, (2, 3), X)
case(np.full_like, M, 0.6)
case(lambda x: np.zeros_like(x) + np.ones_like(x) * x + np.eye(3) * x, X)
case(lambda x: np.vander(x, 3), X)
case(np.polyval, [0.6, 1.7, -0.2], X)
case(np.convolve, X, X[:2])


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_are_read_as_they_lie_when_the_pullback_runs_later(name, order):
    """The array may have changed by then, and what is kept of it lies as it did."""

    def f(x):
        return LAYOUTS[name](x).ravel(order)

    numbers = np.arange(1.0, 7.0).reshape(2, 3)
    whence = f(numbers).astype(int) - 1
    cotangent = np.sin(np.arange(len(whence)))
    expected = np.bincount(whence, cotangent, 6).reshape(2, 3)
    for on in (False, True):
        with jit(on):
            for _ in range(5):
                x = numbers.copy()
                _, back = pullback(f, x)
                x[:] = 0
                np.testing.assert_allclose(back(cotangent)[0], expected, rtol=1e-14)


windows = np.lib.stride_tricks.sliding_window_view
case(windows, np.sin(np.arange(6.0)), 3)
case(windows, np.sin(np.arange(12.0)).reshape(3, 4), (2, 3))
case(windows, np.sin(np.arange(12.0)).reshape(3, 4), 2, axis=0)


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


BY_NAME = {
    "copy": (lambda x: np.copy(a=x) * x, lambda x: np.copy(x) * x),
    "sinc": (lambda x: np.sinc(x=x), lambda x: np.sinc(x)),
    "stop": (lambda x: np.arange(x[0], stop=5.0), lambda x: np.arange(x[0], 5.0)),
    "step": (lambda x: np.arange(9.0, step=x[0]), lambda x: np.arange(0.0, 9.0, x[0])),
    "all": (
        lambda x: np.arange(step=x[0], start=x[1], stop=9.0),
        lambda x: np.arange(x[1], 9.0, x[0]),
    ),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_an_argument_by_its_name_is_that_at_its_position(name):
    named, placed = [value_and_grad(lambda x, f=f: np.sum(f(x) ** 2)) for f in BY_NAME[name]]
    for call in range(6):
        x = np.array([0.8, 1.3, 2.1]) + 0.01 * call
        (value, slope), (wanted, other) = named(x), placed(x)
        assert value == wanted
        assert np.array_equal(slope, other)
        assert np.any(slope)
