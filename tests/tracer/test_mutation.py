"""Writing in place: arrays and their views, lists, dicts and objects, arguments and captured values."""

import copy
import operator
import warnings

import numpy as np
import pytest

from helpers import Cases, assert_close, assert_same, check, numeric_grad
from wengert import TraceError, grad, jit, jvp, linearize, pullback, trace, value_and_grad

case = Cases()

V = np.array([0.5, -1.2, 2.0, 0.7])
W = np.array([1.5, 0.3, -0.4, 2.2])
M = np.array([[0.5, -1.2, 2.0], [0.7, 0.1, -0.6]])


@case.each
def test_like_python(f, args, options):
    check(f, *args, **options)


@case.each
def test_value_of_grad_is_not_disturbed(f, args, options):
    """`grad` runs the function once and leaves the arguments as plain Python leaves them."""
    expected = copy.deepcopy(args)
    f(*expected)
    mine = copy.deepcopy(args)

    def total(*args):
        return sum(np.sum(np.real(leaf)) for leaf in leaves(f(*args)))

    grad(total)(*mine)
    assert_same(mine, expected)


def leaves(x):
    if isinstance(x, list | tuple):
        for item in x:
            yield from leaves(item)
    elif isinstance(x, dict):
        yield from leaves(list(x.values()))
    elif isinstance(x, float | np.ndarray):
        yield x


# ------------------------------------------------------------------------------------------ item by item


@case(V, 1.3)
def set_item(v, x):
    a = v * 2
    a[1] = x
    a[-1] = a[0] * a[1]
    return a


@case(V, 1.3)
def set_slice(v, x):
    a = np.zeros(6)
    a[1:5] = v
    a[::2] = x
    a[3:] = v[:3] * x
    return a * a


@case(M, V)
def set_rows_and_columns(m, v):
    a = np.empty((3, 3))
    a[:2] = m
    a[2] = v[1:]
    a[:, 1] = a[:, 0] * a[:, 2]
    a[1, ::2] = v[:2]
    a[...] += 1
    return a @ a


@case(V, W)
def set_by_mask(v, w):
    a = v.copy()
    a[a < 0.6] = 0.0
    a[a > 1] *= w[0]
    a[np.array([True, False, False, True])] = w[1:3]
    return a


@case(V, W)
def set_by_index_array(v, w):
    a = v * 1.0
    a[[0, 2]] = w[[3, 1]]
    a[np.array([3, 3])] = w[:2]
    a[[1, 1, 0]] += 1.0
    return a * v


@case(M, V)
def set_by_mixed_index(m, v):
    a = m.copy()
    a[[1, 0], [2, 1]] = v[:2]
    a[1, [0, 1]] = v[2:]
    a[:, np.newaxis, 0] = v[0]
    return a * a


@case(V, 1.3)
def broadcast_into(v, x):
    a = np.ones((2, 4))
    a[:] = v
    a[0] = x
    a[:, 1:3] = a[:, :1]
    return a


@case(V, W)
def augmented_whole(v, w):
    a = v.copy()
    a += w
    a *= a
    a -= 0.5
    a /= w
    a **= 2
    return a


@case(V, W)
def augmented_parts(v, w):
    a = v.copy()
    a[0] += w[0]
    a[1:3] *= w[2:]
    a[a > 0] -= 0.25
    a[[0, 3]] /= a[1]
    a[2] **= 2
    return a


@case(np.abs(V) + 1, 2)
def augmented_with_operators(v, n):
    a = v.copy()
    a = operator.iadd(a, v)
    a = operator.imul(a, n)
    operator.setitem(a, 1, a[0] * v[1])
    a.__setitem__(2, a[1])
    a.__iadd__(v)
    return a


@case(V)
def integer_array(v):
    n = np.zeros(4, dtype=int)
    n[1] = 2
    n[2:] += 3
    return n * v, n


@case(V)
def assigned_to_integers_truncates(v):
    n = np.zeros(4, dtype=int)
    n[0] = 3.7
    return n[0] * v


@case(V.astype(np.float32), 0.1, tol=1e-3)
def single_precision(v, x):
    a = np.zeros(4, dtype=np.float32)
    a[:2] = x
    a[2:] = v[:2] * x
    a += v
    return a


@case(V + 1j * W, 0.7)
def complex_parts(z, x):
    a = z.copy()
    a[0] = x
    a.real[1] = 2 * x
    a.imag[2:] += x
    a *= 1j
    return a, a.real * x


# -------------------------------------------------------------------------------------- functions that write


@case(V, W)
def out_arguments(v, w):
    a = np.empty(4)
    np.multiply(v, w, out=a)
    b = np.add(a, v, a)
    np.sin(a, out=a)
    np.exp(a, a)
    return a, b, b is a


@case(V, W)
def out_of_reductions(v, w):
    a = np.zeros(3)
    np.sum(np.stack([v[:3], w[:3]]), axis=0, out=a)
    total = np.zeros(())
    np.add.reduce(v * a[0], out=total)
    np.cumsum(w[:3] * v[:3], out=a)
    return a, total


@case(M, M + 1)
def out_of_matmul(m, n):
    a = np.zeros((2, 2))
    np.matmul(m, n.T, out=a)
    b = np.empty((2, 2))
    np.dot(a, a, out=b)
    return a + b


@case(V, W)
def ufunc_at(v, w):
    a = v.copy()
    np.add.at(a, [0, 0, 3], w[:3])
    np.subtract.at(a, 1, w[3])
    return a * a


@case(V, W)
def writers_of_numpy(v, w):
    a = v * w
    a.fill(0.5)
    b = v.copy()
    np.copyto(b[1:], w[1:])
    c = v.copy()
    np.put(c, [0, 2], w[:2])
    d = v.copy()
    np.putmask(d, w > 1, w * 2)
    e = np.zeros((4, 4))
    np.fill_diagonal(e, v)
    return a, b, c, d, e


@case(V, W)
def sorts_in_place(v, w):
    a = v * w
    a.sort()
    b = np.array([[1.0, v[0]], [v[1], v[2]]])
    b.sort(axis=0)
    return a * w, b


@case(V, W)
def where_arguments(v, w):
    a = v.copy()
    np.multiply(v, w, out=a, where=np.array([True, False, True, False]))
    return a


@case(V, W)
def where_of_several_results(v, w):
    a, b = w.copy(), v.copy()
    np.divmod(v + 0.05, w, out=(a, b), where=np.array([True, False, True, False]))
    c, d = np.divmod(v + 0.05, w, out=(None, v * w))
    np.modf(v * w, a[1:2] * np.ones(4))
    return a, b, c, d


@case(V, W)
def where_of_clip(v, w):
    a, b = w.copy(), v * 2
    np.clip(v, 0.5, w + 0.1, out=a, where=np.array([True, False, True, False]))
    v.clip(0.5, 1.0, out=b, where=w > 1)
    return a, b


# -------------------------------------------------------------------------------------------------- views


@case(V, 1.3)
def write_to_view_read_parent(v, x):
    a = v.copy()
    b = a[1:3]
    b[0] = x
    b *= 2
    return a * a, b


@case(V, 1.3)
def write_to_parent_read_view(v, x):
    a = v.copy()
    b = a[1:3]
    c = b * 1.0
    a[1] = x
    a *= 2
    return b * a[0], c


@case(V, 1.3)
def both_ways(v, x):
    a = v.copy()
    b = a[::2]
    b += a[1]
    a[0] *= x
    b[1] = b[0] + a[0]
    a[2] -= 1
    return a, b, b.sum() * a.sum()


@case(M, 1.3)
def views_of_views(m, x):
    a = m.copy()
    row = a[1]
    middle = row[1:]
    last = middle[1:]
    last[0] = x
    middle *= row[0]
    a[1, 1] += 10
    b = row[::-1]
    b[0] = b[2] * x
    return a, row, middle, last, b


@case(V, 1.3)
def overlapping_views(v, x):
    a = v.copy()
    left, right = a[:3], a[1:]
    left[1] = x
    right *= left[2]
    left += right[0]
    return a, left, right


@case(M, 1.3)
def reshaped_and_transposed(m, x):
    a = m.copy()
    flat = a.reshape(-1)
    t = a.T
    r = np.ravel(a)
    flat[2] = x
    t[0, 1] *= flat[2]
    r[5] = t[1, 1]
    a[0] += 1
    s = np.swapaxes(a.reshape(2, 3, 1), 0, 1)
    s[0, 0, 0] = x * x
    u = a[:, None, :].squeeze()
    u[1, 0] -= flat[0]
    return a, flat, t, r, s, u


@case(M, 1.3)
def reshape_that_copies(m, x):
    a = m.copy()
    b = a.T.reshape(-1)
    b[0] = x
    c = a.flatten()
    c[1] = x * x
    d = a[[0, 1]]
    d[0] = 0.0
    e = np.array(a)
    e += x
    f = a[a > 0]
    f *= 2
    return a, b, c, d, e, f


@case(M)
def more_views(m):
    a = m.copy()
    d = np.diagonal(a @ a.T) * 1.0
    b = np.atleast_2d(a[0])
    b[0, 0] = d[1]
    c = np.asarray(a)
    c[1, 1] = d[0]
    e = a[..., 0]
    e += 1
    f = np.moveaxis(a, 0, 1)
    f[2, 1] = 5 * d[0]
    g = np.broadcast_to(a[0], (2, 3)) * a
    h, i = np.split(a, [1], axis=1)
    h *= 3
    j = np.expand_dims(i, 0)
    j[0, 0, 0] = 1.0
    k = np.flip(a, 1)
    k[0, 0] *= d[0]
    return a, b, c, e, f, g, h, i, j, k


@case(M)
def rows_from_iteration(m):
    a = m.copy()
    for row in a:
        row *= row[0]
        row[1] = 2.0
    first, second = a
    first += second
    return a


@case(V)
def view_outlives_name(v):
    def tail():
        a = v.copy()
        return a[1:]

    b = tail()
    b[0] = 3.0
    c = b
    c += v[0]
    return b


@case(V)
def view_of_argument(v):
    b = v[1:]
    b *= 2
    v[0] = b[0] * b[1]
    return v * v


@case(V, W)
def write_through_flat(v, w):
    a = v.reshape(2, 2).copy()
    a.flat[3] = w[0]
    a.ravel()[0] = w[1]
    a.T[0, 1] = w[2] * a[0, 0]
    return a


@case(V, W)
def self_overlap(v, w):
    a = v.copy()
    a[1:] = a[:-1]
    b = v.copy()
    b[1:] += b[:-1]
    c = v.copy()
    c[:] = c[::-1]
    d = v.copy()
    d += d
    d *= d[::-1]
    return a * w, b * w, c * w, d


# --------------------------------------------------------------------------------- captured, then changed


@case(V, W)
def captured_then_changed(v, w):
    a = v.copy()
    b = a * w
    a[:] = 100.0
    c = np.sin(a)
    a += w
    d = a @ a
    a[0] = 0.0
    return b, c, d, a


@case(V)
def in_place_recurrence(v):
    a = np.zeros(6)
    a[0] = v[0]
    for i in range(1, 6):
        a[i] = a[i - 1] * 0.9 + np.sin(v[i % 4]) * a[i - 1] ** 2
    return a


@case(V)
def cumulative_through_views(v):
    a = v.copy()
    for i in range(1, len(a)):
        here = a[i:]
        here += a[i - 1] * 0.5
    return a


@case(V, W)
def swaps(v, w):
    a = v.copy()
    a[0], a[3] = a[3], a[0]
    a[1:3] = a[2:0:-1]
    i, j = 1, 2
    a[i], a[j] = a[j] * w[0], a[i] * w[1]
    return a * w


@case(M)
def swapped_rows_by_views(m):
    a = m.copy()
    a[0], a[1] = a[1], a[0]  # both rows are views: plain Python ends with two equal rows
    return a


@case(M)
def swapped_rows_by_copies(m):
    a = m.copy()
    a[[0, 1]] = a[[1, 0]]
    a[0], a[1] = a[1].copy(), a[0].copy()
    return a * m


@case(V, 7)
def bubble_sort(v, n):
    a = v.copy()
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a * np.arange(4) * n


@case(V)
def same_array_twice(v):
    a = v.copy()
    b = a
    b[0] = 2.0 * a[1]
    a += 1
    return [a, b], a is b


@case(V)
def overwritten_by_constant(v):
    a = v.copy()
    a[:] = 0.0
    a[1] = v[2]
    return a


@case(V, 1.3)
def through_a_function(v, x):
    def scale(a, by):
        a *= by
        return a[:2]

    a = v.copy()
    head = scale(a, x)
    scale(a[1:], x)
    return a, head


@case(np.float64(1.5), np.array(0.5))
def zero_dimensional(x, y):
    a = np.array(x)
    a += y
    a[()] = a * x
    b = np.zeros(())
    b[...] = y
    y *= 2
    return a * b, y * x


# ------------------------------------------------------------------------------------ arguments mutated


@case(V, W)
def writes_to_argument(v, w):
    v[0] = w[1]
    v *= w
    return v[1:] @ w[1:]


@case(V)
def returns_mutated_argument(v):
    v[1] = v[0] * v[2]
    return v


@case({"a": V, "b": [W, 2.0]}, 1.3)
def writes_to_nested_argument(params, x):
    params["a"][0] = x
    params["b"][0] *= params["a"]
    params["b"][1] += x
    params["c"] = x * 2
    return params["b"][0], params["b"][1] * params["c"]


@case([1.5, 2.5, 3.5])
def writes_to_list_argument(items):
    items[0] = items[1] * items[2]
    items.append(items[0] + 1)
    items += [items[-1] * 2]
    del items[1]
    items.sort()
    return sum(items) * items[0]


class Model:
    def __init__(self, w, b):
        self.w = w
        self.b = b
        self.steps = 0

    def step(self, rate):
        self.w -= rate * self.b
        self.b = self.b * 2 + self.w[0]
        self.steps += 1


@case(Model(V, 0.5), 0.1)
def writes_to_object_argument(model, rate):
    for _ in range(3):
        model.step(rate)
    model.w[1:3] *= model.b
    return model.w @ model.w


def rebinds(v):
    v = v * 2
    v += 1
    v[0] = 0.0
    return v


def test_rebinding_leaves_the_argument():
    v = V.copy()
    check(rebinds, v)
    pullback(rebinds, v)
    assert_same(v, V)


def test_caller_sees_the_same_array_object():
    v = V.copy()
    value, back = pullback(returns_mutated_argument, v)
    assert value is v
    assert v[1] == V[0] * V[2]
    assert_close(back(np.ones(4)), (np.array([1 + V[2], 0.0, 1 + V[0], 1.0]),))


def both_names(a, b):
    a[0] = 3.0
    b[1] *= a[0]
    return a.sum() * b.sum()


def test_one_array_under_two_names():
    v, mine = V.copy(), V.copy()
    assert pullback(both_names, mine, mine)[0] == both_names(v, v)
    assert_same(mine, v)


def view_and_parent(a, b):
    b[0] = 3.0
    a[1] = a[2] * 2
    return a.sum() * b.sum()


def test_argument_and_its_view():
    v, mine = V.copy(), V.copy()
    assert pullback(view_and_parent, mine, mine[1:])[0] == view_and_parent(v, v[1:])
    assert_same(mine, v)


# -------------------------------------------------------------------------- lists, dicts, objects of arrays


@case(V, W)
def list_of_arrays(v, w):
    layers = [v.copy(), w.copy()]
    layers[0] += layers[1]
    layers[1][0] = layers[0][3]
    layers.append(layers[0] * 2)
    layers[0], layers[1] = layers[1], layers[0]
    for layer in layers:
        layer *= 0.5
    return layers


@case(V, W)
def dict_of_arrays(v, w):
    state = {"x": v.copy(), "y": w.copy()}
    state["x"] -= 0.1 * state["y"]
    state["y"][1:] += state["x"][:-1]
    for key in state:
        state[key][0] *= 2
    alias = state["x"]
    alias += 1
    state["z"] = alias
    return state


@case(V, 0.5)
def object_of_arrays(v, x):
    model = Model(v.copy(), x)
    model.w[0] = model.b
    model.w += v
    model.step(x)
    part = model.w[1:]
    part *= model.b
    return model.w, model.b, model.steps


@case(0.5, 1.5)
def nested_lists(x, y):
    grid = [[0.0] * 3 for _ in range(2)]
    shared = [[x]] * 2
    shared[0].append(y)
    for i in range(2):
        for j in range(3):
            grid[i][j] += x * i + y**j
            grid[i][j - 1] *= 0.5
    grid[0], grid[1] = grid[1], grid[0]
    grid[0][1:] = [row[0] for row in grid]
    return grid, shared


@case(0.5, 1.5)
def order_of_evaluation(x, y):
    log = []

    def note(item):
        log.append(item)
        return item

    a = [0.0, 0.0]
    a[note(0)] = note(x)
    a[note(1)] += note(y)
    i = 0
    i, a[i] = 1, y
    return a, log


@case(V)
def array_of_list_of_list(v):
    rows = [[v[0], 1.0], [v[1], v[2]]]
    a = np.array(rows)
    rows[0][0] = 0.0
    a[0, 0] *= 2
    b = np.array([v, v * 2])
    b[0, 0] = 7.0
    return a, b, v * 1


# ------------------------------------------------------------------------ what `back` answers for, later


def square_sum(v):
    return v @ v


def test_argument_changed_between_call_and_back():
    v = V.copy()
    _, back = pullback(square_sum, v)
    v[:] = 100.0
    assert_close(back(1.0), (2 * V,))


def test_nested_argument_changed_between_call_and_back():
    params = {"w": [V.copy(), 3.0]}
    _, back = pullback(lambda p: p["w"][0] @ p["w"][0] * p["w"][1], params)
    params["w"][0] *= 0
    params["w"][1] = 0.0
    params.clear()
    assert_close(back(1.0), ({"w": [6 * V, float(V @ V)]},))


def test_result_changed_between_call_and_back():
    value, back = pullback(np.exp, V.copy())
    value[:] = 0.0
    assert_close(back(np.ones(4)), (np.exp(V),))


def test_cotangent_changed_after_back():
    _, back = pullback(lambda v: (v * 1.0, v), V.copy())
    dy = np.ones(4)
    (first,) = back((dy, dy))
    dy[:] = 9.0
    assert_close(first, np.full(4, 2.0))


def test_gradient_does_not_share_the_cotangent():
    _, back = pullback(lambda v: v, V.copy())
    dy = np.ones(4)
    (first,) = back(dy)
    first += 1
    assert_same(dy, np.ones(4))


def test_gradients_changed_between_two_backs():
    _, back = pullback(lambda v, w: (v * w).sum() + v.sum(), V.copy(), W.copy())
    first = back(1.0)
    for g in first:
        g[:] = 9.0
    assert_close(back(1.0), (W + 1, V))


def test_gradients_of_two_arguments_do_not_share_memory():
    _, back = pullback(lambda v, w: (v + w).sum(), V.copy(), W.copy())
    dv, dw = back(1.0)
    dv[0] = 9.0
    assert_close(dw, np.ones(4))


def test_outside_array_changed_between_call_and_back():
    weights = W.copy()
    _, back = pullback(lambda v: v @ weights, V.copy())
    weights[:] = 0.0
    assert_close(back(1.0), (W,))


# --------------------------------------------------------------------------------------- whole algorithms


@case(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), V[:3])
def gaussian_elimination(a, b):
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@case(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]))
def cholesky_in_place(a):
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, len(a)):
            a[j:, j] -= a[j, k] * a[j:, k]
    return np.log(np.diag(a)).sum()


def test_cholesky_against_the_inverse():
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    gradient = grad(cholesky_in_place)(a.copy())  # only the lower triangle is read
    inverse = np.linalg.inv(a)
    expected = np.tril(inverse) - np.diag(np.diag(inverse)) / 2
    assert gradient == pytest.approx(expected, abs=1e-12)
    assert gradient == pytest.approx(numeric_grad(cholesky_in_place, a), abs=1e-8)


@case(np.linspace(0.1, 1.0, 8), 0.1)
def heat_equation(u, rate):
    u = u.copy()
    for _ in range(5):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[1]
        u[-1] = 0.0
    return u


@case(np.array([0.3, 0.8, 0.5, 0.1]))
def prefix_sums_in_place(v):
    n, step = len(v), 1
    while step < n:
        v[step:] += v[:-step].copy()
        step *= 2
    return v * v


def test_what_numpy_says_of_an_array_that_is_not_to_be_written_to():
    fixed = np.array([0.5, 2.0])
    fixed.flags.writeable = False

    def f(x, write):
        try:
            write(fixed)
        except ValueError as error:
            return x * len(str(error))

    for write in (
        *([lambda a: np.add.at(a, 0, 3.0)] if np.__version__ >= "2.5" else []),  # older ones write
        lambda a: a.fill(1.0),
        lambda a: np.put(a, [0], 1.0),
        lambda a: a.sort(),
        lambda a: np.copyto(a, 1.0),
    ):
        assert value_and_grad(f)(2.0, write)[0] == f(2.0, write)


def eigen(a):
    w, v = np.linalg.eigh(a)
    w[0] = 0.5
    v[0] *= 2.0
    return w * np.abs(v)


def orthogonal(a):
    q, r = np.linalg.qr(a)
    q *= 2.0
    return q @ r + np.abs(q)


def singular(a):
    u, s, vh = np.linalg.svd(a)
    s[0] *= 3.0
    vh[1] = 0.1
    return np.abs(u * s) @ np.abs(vh)


def in_a_loop(a):
    total = 0.0
    for i in range(3):
        w, v = np.linalg.eigh(a * (i + 1.0))
        np.multiply(v, 0.5, out=v)
        total = total + (w * np.abs(v)).sum()
    return total


SQUARE = np.array([[4.0, 0.5, -1.0], [0.5, 3.0, 0.3], [-1.0, 0.3, 6.0]])


@pytest.mark.parametrize("f", [eigen, orthogonal, singular, in_a_loop])
def test_writing_to_one_of_several_arrays_that_an_operation_gave(f):
    """The rule asks for them as they were."""
    symmetric = lambda a: f(a + a.T)
    expected = numeric_grad(lambda a: symmetric(a).sum(), SQUARE)
    for _ in range(4):
        assert_close(grad(lambda a: symmetric(a).sum())(SQUARE), expected, tol=1e-6)
    slope = grad(lambda a: symmetric(a).sum())
    for _ in range(4):
        assert_close(slope(SQUARE), expected, tol=1e-6)
    dv = np.ones((3, 3))
    along = jvp(lambda a: symmetric(a).sum(), (SQUARE,), (dv,))[1]
    assert float(along) == pytest.approx(float((expected * dv).sum()), rel=1e-6)


def test_the_caller_may_write_to_several_arrays_that_came_back():
    dy = (np.ones(3), np.ones((3, 3)))
    for _ in range(4):
        value, back = pullback(np.linalg.eigh, SQUARE)
        (before,) = back(dy)
        at, along = linearize(np.linalg.eigh, SQUARE)
        first = along(np.ones((3, 3)))
        for array in (*value, *at):
            array[...] = 7.0
        assert_close(back(dy), (before,))
        assert_close([*along(np.ones((3, 3)))], [*first])


def test_no_array_to_write_to():
    """None in the place of ``out``, which NumPy's own functions give by position."""
    x = np.array([0.5, 1.5])
    for f, slope in [
        (lambda x: np.multiply(x, x, None).sum(), 2 * x),
        (lambda x: np.sin(x, None).sum(), np.cos(x)),
        (lambda x: np.divmod(x, 0.4, None, np.zeros(2))[1].sum(), np.ones(2)),
        (lambda x: np.modf(x * x, None, np.zeros(2))[0].sum(), 2 * x),
        (lambda x: np.modf(x * x, np.zeros(2), None)[0].sum(), 2 * x),
    ]:
        value, d = value_and_grad(f)(x)
        assert value == f(x)
        np.testing.assert_allclose(d, slope, rtol=1e-15)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("on", [True, False])
def test_powers_in_place_of_complex_arrays(on, flat, monkeypatch):
    """NumPy rounds them otherwise than those that are not in place."""
    if flat:
        monkeypatch.setenv("WENGERT_FOLD", "0")

    def of_one(x, z):
        a = np.array(z * x)
        a **= 2
        return a

    def of_a_part(x, z):
        a = np.array([z * x, z, x])
        a[:2] **= 2
        return a

    def repeated(x, z):
        a = np.array([z * x, z])
        for _ in range(3):
            a **= 2
        return a

    def by_a_number(x, z):
        a = np.array([z * x, z])
        a **= x
        return a

    with jit(on):
        for re, im in np.random.default_rng(0).normal(size=(8, 2)):
            z = complex(re, im)
            for f in (of_one, of_a_part, repeated, by_a_number):
                assert_same(pullback(lambda x, f=f, z=z: f(x, z), 1.3)[0], f(1.3, z))

                def real(x, f=f, z=z):
                    return (f(x, z) * (1 + 0.5j)).real.sum()

                slope = (real(1.3 + 1e-6) - real(1.3 - 1e-6)) / 2e-6
                assert grad(real)(1.3) == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("on", [True, False])
def test_an_array_without_axes_that_is_written_to_stays_an_array(on, flat, monkeypatch):
    """What NumPy makes of such arrays is a number, which may not stand for what was written to."""
    if flat:
        monkeypatch.setenv("WENGERT_FOLD", "0")

    def added(x):
        y = np.array(1.0)
        y += x
        return y

    def by_method(x):
        y = x.copy()
        y.__imul__(x)
        return y, y * 2

    def repeated(x):
        y = np.zeros((), np.float32)
        for _ in range(3):
            y += x
            y *= x
        return y

    with jit(on):
        for f in (added, by_method, repeated):
            for at in (2.0, 0.5, 1.5, 3.0, 0.25, 2.5):
                x = np.array(at)
                value, back = pullback(f, x)
                assert_same(value, f(x))
                if f is added:
                    assert_same(back(1.0), (np.array(1.0),))
                tape = trace(f, x)
                assert_same(tape(x), f(x))


@pytest.mark.filterwarnings("ignore")  # NumPy says that this will end
@pytest.mark.parametrize("on", [True, False])
def test_broadcast_arrays_may_be_written_to(on):
    """Unlike what ``np.broadcast_to`` gives."""
    scale = np.array([1.0, 2.0])

    def an_element(x):
        y, z = np.broadcast_arrays(x[:, :1], x)
        y[0, 1] = 7.0  # x[0, 0] as well
        return y * z

    def a_row(x):
        y, z = np.broadcast_arrays(x[:, :1], x)
        row = y[1]
        row[0] = 4.0
        return y * z + x

    def of_another(x):
        y, z = np.broadcast_arrays(x, scale * 1.0)
        z[0] = 7.0
        return y * z

    def asked(x):
        y, z = np.broadcast_arrays(x[:, :1], scale)
        return y * z if y.flags.writeable and z.flags.writeable else x

    with jit(on):
        for f in (an_element, a_row, of_another, asked):
            for at in range(5):
                x = np.array([[0.5, 1.5], [2.0, 3.0]]) + at
                plain, mine = x.copy(), x.copy()
                value, back = pullback(f, mine)
                assert_same(value, f(plain))
                assert_same(mine, plain)
                expected = numeric_grad(lambda x, f=f: f(x.copy()).sum(), x)
                assert_close(back(np.ones((2, 2)))[0], expected, tol=1e-6)


def masked_log(x):
    out = np.ones(4)
    np.log(x, where=np.array([True, False, True, False]), out=out)
    return out.sum()


def masked_divmod(x):
    a, b = np.ones(4), np.ones(4)
    np.divmod(x, np.array([0.0, 0.0, 1.0, 0.0]), where=x > -2.0, out=(a, b))
    return a[2] + b[2]


def masked_clip(x):
    out = np.ones(4)
    np.clip(x * 1e308, 0.5, 1.0, out, where=np.array([False, True, True, False]))
    return out.sum()


def masked_and_caught(x):
    out = np.ones(4)
    try:
        with np.errstate(all="raise"):
            np.reciprocal(x, where=x < 2.0, out=out)
    except FloatingPointError:
        return x.sum() * 5.0
    return (out * out).sum()


@pytest.mark.parametrize("f", [masked_log, masked_divmod, masked_clip, masked_and_caught])
@pytest.mark.parametrize("on", [True, False])
def test_a_mask_with_out_lets_numpy_complain_of_the_chosen_elements_alone(f, on):
    def told(f, x):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            return repr(f(x)), [(str(w.message), w.lineno) for w in heard]

    points = [
        [-1.0, 2.0, 3.0, 0.5],
        [1.0, 0.0, 3.0, -3.0],
        [0.0, 5.0, 3.0, 1.0],
        [9.0, 2.0, 3.0, 4.0],
    ]
    for x in map(np.array, points * 3):
        with jit(on):
            assert told(lambda x: value_and_grad(f)(x)[0], x) == told(f, x)  # noqa: B023
    for x in map(np.array, [[0.4, 2.5, 3.5, 0.5], [9.0, 2.5, 3.5, 4.0]] * 3):
        with jit(on), np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.testing.assert_allclose(grad(f)(x), numeric_grad(f, x), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("on", [True, False])
def test_a_row_that_numpy_writes_over_itself_is_refused(on):
    """NumPy reads what it has just written there: kept programs gave another value, and the gradient was of a copy."""

    def spread(x):
        u = x.copy()
        u[::2] = u[:4]
        return (u * np.arange(8.0)).sum()

    def right(x):
        u = x.copy()
        u[:4] = u[::2]
        u[1:] = u[:-1]
        u[::2] = u[:4].copy()
        u[:4] = u[3::-1]
        return (u * np.arange(8.0)).sum()

    x = np.arange(8.0) + 1.0
    with jit(on):
        for _ in range(4):
            with pytest.raises(TraceError, match="still to read"):
                value_and_grad(spread)(x)
            value, slope = value_and_grad(right)(x)
            assert value == right(x)
            assert slope == pytest.approx([right(e) for e in np.eye(8)])


@pytest.mark.parametrize("on", [True, False])
def test_an_array_that_is_written_to_itself_in_another_order_is_seen_by_what_overlaps(on):
    """What had come to another place of the array counted as left where it was: its neighbour's gradient was old."""

    def turned(x, z):
        z[[2, 0, 1]] = z
        return (x * np.arange(1.0, 6.0)).sum()

    def flipped(x, z):
        z[::-1] = z
        return (x * np.arange(1.0, 6.0)).sum()

    def chosen(x, z):
        z[[1, 0, 2]] = np.where([True, False, True], z, 2.0 * z)
        return (x * np.arange(1.0, 6.0)).sum()

    with jit(on):
        for f in (turned, flipped, chosen):
            for k in range(4):
                d = np.arange(6.0) + k
                expected = numeric_grad(lambda d, f=f: f((d := d.copy())[1:], d[:3]), d)
                value, (dx, dz) = value_and_grad(f, argnums=(0, 1))(d[1:], d[:3])
                assert value == f((e := np.arange(6.0) + k)[1:], e[:3])
                assert_close(np.append(dz, [0.0] * 3) + np.append(0.0, dx), expected, tol=1e-6)


@pytest.mark.parametrize("on", [True, False])
def test_what_numpy_writes_one_by_one_to_what_it_reads_is_refused(on):
    """The value and the gradient were those of a copy, where NumPy had read what it had just written."""

    def masked(u):
        u[np.arange(6) % 2 == 1] = u[:3]

    def placed(u):
        np.place(u, np.arange(6) > 0, u[:4])

    def by_flat(u):
        u.flat[1:4] = u[:3]

    def to_flat(u):
        u[1:].flat = u[:-1]

    def copied(u):
        np.copyto(u[::2], u[:3])

    def joined(u):
        np.concatenate([u[3:], u[:3]], out=u)

    def stacked(u):
        m = u.reshape(2, 3)
        np.stack([m[1], m[0]], out=m)

    def diagonal(u):
        np.fill_diagonal(u[:4].reshape(2, 2), u[:2])

    def right(u):
        u[np.arange(6) % 2 == 1] = u[:3].copy()
        u[u > 1.0] = u[0]
        np.place(u, np.arange(6) > 0, u[:4] * 1.0)
        u.flat[1:4] = 2.0 * u[:3]
        np.copyto(u[1:], u[:-1])
        np.copyto(u, u[::-1])
        np.concatenate([u[3:] + 1.0, u[:3] * 2.0], out=u)
        m = u.reshape(2, 3)
        m[np.array([False, True])] = m[0]

    def summed(write):
        def f(x):
            u = x.copy()
            write(u)
            return (u * np.arange(6.0)).sum()

        return f

    x = np.arange(6.0) + 0.5
    with jit(on):
        for write in (masked, placed, by_flat, to_flat, copied, joined, stacked, diagonal):
            for _ in range(3):
                with pytest.raises(TraceError, match="still to read"):
                    value_and_grad(summed(write))(x)
        for k in range(4):
            value, slope = value_and_grad(summed(right))(x + k)
            assert value == summed(right)(x + k)
            assert_close(slope, numeric_grad(summed(right), x + k), tol=1e-6)


def test_programs_do_not_take_over_where_an_array_was_written_to_that_overlaps_another():
    """The neighbour saw the elements of the traced run's mask, whatever the mask was: another value and gradient."""

    def copied(x, w):
        np.copyto(x, np.sin(x), where=x > 0.4)
        return (x * x).sum() + 1.5 * w.sum()

    def masked(x, w):
        x[x > 0.4] *= 2.0
        return (x * x).sum() + 1.5 * w.sum()

    def chosen(x, w):
        x[...] = np.where(x > 0.4, 3.0 * x, x)
        return (x * x).sum() + 1.5 * w.sum()

    rng = np.random.default_rng(0)
    for f in (copied, masked, chosen):
        both = value_and_grad(f, argnums=(0, 1))
        for _ in range(12):
            d = rng.normal(size=6)
            expected = numeric_grad(lambda d, f=f: f((d := d.copy()), d[1:2]), d)
            value, (dx, dw) = both((e := d.copy()), e[1:2])
            assert value == f((e := d.copy()), e[1:2])
            dx[1:2] += dw
            assert_close(dx, expected, tol=1e-6)
