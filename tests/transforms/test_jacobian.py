"""jacobian, hessian and hvp: in both modes, on structures, and with all columns computed as one."""

import itertools
import math
import pickle

import numpy as np
import pytest

from helpers import assert_same
from wengert import (
    CotangentError,
    TraceError,
    clear_cache,
    explain,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    pullback,
)
from wengert.tracer.errors import NoRuleError
from wengert.transforms import batch

X = np.array([0.7, -1.3, 2.1])
W = np.array([[1.9, -0.4, 0.3], [0.2, 1.3, -0.7], [-0.5, 0.8, 2.2], [0.4, 0.1, 1.2]])
K = np.array([0.7, -0.2])
A = W[:3]
MODES = ("forward", "reverse")


@pytest.fixture(params=["traced", "kept"], autouse=True)
def jit_mode(request):
    """Each test runs with every call traced, and with programs."""
    with jit(request.param == "kept"):
        yield


@pytest.fixture
def loops(monkeypatch):
    """The functions of the ops that were carried out column by column."""
    seen = []
    one_by_one = batch.Batch.one_by_one

    def note(self, op):
        seen.append(op.fn)
        return one_by_one(self, op)

    monkeypatch.setattr(batch.Batch, "one_by_one", note)
    return seen


def differences(f, x, h=1e-5):
    """The Jacobian by central differences."""
    columns = []
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = h
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * h))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*np.shape(f(x)), *x.shape)


def both(f, *args, argnums=0, **options):
    """The Jacobian in both modes, which agree, from calls that are traced and kept."""
    found = []
    for mode in MODES:
        j = jacobian(f, argnums, mode, **options)
        found += [j(*args), j(*args), j(*args)]
    for other in found[1:]:
        assert_near(other, found[0])
    return found[0]


def assert_near(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_near(x, y)
    elif a is not None:
        assert np.shape(a) == np.shape(b)
        assert np.result_type(a) == np.result_type(b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


# ----------------------------------------------------------------------------------------------- values


FUNCTIONS = {
    "layers": lambda x: np.tanh(W @ np.tanh(A @ x)) * np.sum(x),
    "outer": lambda x: np.outer(x, np.exp(x)),
    "number": lambda x: np.sum(np.sin(x) ** 2),
    "elements": lambda x: np.stack([x[0] * x[1], x[2] ** 2, x[0]]),
    "slices": lambda x: np.concatenate([x[1:] * x[:-1], x[::-1]]),
    "repeated": lambda x: x[[2, 0, 2, 2]] * np.arange(4.0),
    "mask": lambda x: x[x > 0] ** 2,
    "where": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0),
    "moments": lambda x: np.array([np.mean(x), np.var(x), np.std(x)]),
    "shapes": lambda x: np.broadcast_to(x[:, None] * A, (2, 3, 3)).transpose(1, 0, 2).reshape(6, 3),
    "einsum": lambda x: np.einsum("ij,j,kj->ik", A, x, W * x),
    "solve": lambda x: np.linalg.solve(A + np.outer(x, x), x),
    "inverse": lambda x: np.linalg.inv(A + np.diag(x)),
    "determinant": lambda x: np.linalg.det(A * x),
    "sorted": lambda x: np.sort(x * x),
    "cumulative": lambda x: np.cumsum(x) * np.cumprod(x),
    "convolution": lambda x: np.convolve(x, x * x),
    "norm": lambda x: x / np.linalg.norm(x),
    "smoothed": lambda x: np.convolve(x * x, W[0]) + np.convolve(A[0], x**3),
    "smoothed inside": lambda x: (
        np.convolve(x * x, W[:, 0], "same")[1:] * np.convolve(K, x * x, "same")
    ),
    "smoothed where full": lambda x: (
        np.convolve(x * x, K, "valid") * np.convolve(x[:2], x, "valid")
    ),
    "correlated": lambda x: (
        np.correlate(x * x, W[:, 0], "full") + np.correlate(W[:, 1], x**3, "full")
    ),
    "correlated inside": lambda x: (
        np.correlate(x, W[:, 0], "same")[1:] + np.correlate(K, x * x, "same")
    ),
    "correlated where full": lambda x: np.correlate(x * x, K) * np.correlate(W[:, 2], x)[1],
    "cross": lambda x: np.cross(x * x, W) + np.cross(np.outer(K, x)[:, None], A[1:]).reshape(4, 3),
    "taken": lambda x: np.take(x * x, [[2, 0], [2, 1]]) * np.take(W * x, [0, 2], axis=-1)[:2],
    "repeated twice": lambda x: np.repeat(x * x, 2) * np.repeat(W * x, [1, 0, 1], axis=1)[0, 0],
    "tiled": lambda x: np.tile(x * x, (2, 2)) * np.tile(np.outer(x, x)[:2], 2),
    "implicit einsum": lambda x: np.einsum("ij,j", A, x * x) + np.einsum("ji,j", A, np.exp(x)),
    "einsum with dots": lambda x: np.einsum("...j,j...", A, np.outer(x, x)),
    "einsum by numbers": lambda x: np.einsum(W, [0, 1], x * x, [1]) * np.einsum(x, [2], [2])[0],
    "inner": lambda x: np.inner(W, np.outer(x, x)) * np.inner(np.outer(x, x), A)[0, 0],
    "outer of ufuncs": lambda x: np.multiply.outer(x * x, W) + np.add.outer(x * x, np.ones((4, 3))),
    "transformed": lambda x: (
        np.real(np.fft.fft(x * x)) * np.abs(np.fft.rfft(np.outer(x, x), 4, 0)[1])
    ),
    "stacks solved": lambda x: np.linalg.solve(x[0] * np.stack([A, A.T]), np.stack([A, A * x])),
    "constant": lambda x: np.ones(2),
    "list": lambda x: np.array([float(v) * math.sin(v) for v in x]),
}


def written(x):
    y = np.zeros((2, 3))
    y[0] = x * x
    y[1, 1:] += x[0]
    np.add.at(y, ([0, 0, 1], [0, 0, 2]), x)
    y[:, 0] *= x[1]
    return y


FUNCTIONS["written"] = written


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_differences(name):
    f = FUNCTIONS[name]
    j = both(f, X)
    assert j.shape == np.shape(f(X)) + X.shape
    np.testing.assert_allclose(j, differences(f, X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrices(name):
    f = FUNCTIONS[name]

    def g(a):
        return f(a @ np.array([1.0, 0.4]) * a[0, 0])

    a = W[:3, :2]
    j = both(g, a)
    assert j.shape == np.shape(g(a)) + a.shape
    np.testing.assert_allclose(j, differences(g, a), rtol=1e-5, atol=1e-7)


def test_numbers():
    assert both(lambda x: x * x * x, 2.0) == 12.0
    assert type(both(lambda x: x * x * x, 2.0)) is float
    assert both(lambda x: [x * x, {"s": math.sin(x)}], 2.0) == [4.0, {"s": math.cos(2.0)}]
    assert_same(both(lambda x: X * x, 2.0), X)
    assert type(both(lambda x: np.sin(x), np.float64(1.0))) is np.float64


def test_trees_and_argnums():
    def f(p, y, label):
        return {"r": p["a"] * y, "s": [np.sum(p["b"]) * y, label]}

    p = {"a": X, "b": W}
    found = both(f, p, 2.0, "x", argnums=(0, 1))
    da, db = found["r"][0]["a"], found["r"][0]["b"]
    np.testing.assert_array_equal(da, 2.0 * np.eye(3))
    np.testing.assert_array_equal(db, np.zeros((3, 4, 3)))
    np.testing.assert_array_equal(found["r"][1], X)
    np.testing.assert_array_equal(found["s"][0][0]["b"], np.full((4, 3), 2.0))
    assert found["s"][0][1] == pytest.approx(np.sum(W))
    assert found["s"][1] is None
    assert_near(both(f, p, 2.0, "x", argnums=-2)["r"], X)


def test_float32_is_kept():
    j = both(lambda x: np.sin(x) * 2.0, X.astype(np.float32))
    assert j.dtype == np.float32


def test_complex_numbers():
    z = np.array([1.0 + 2.0j, 0.3 - 0.7j])
    real = both(lambda z: np.abs(z) ** 2, z)
    np.testing.assert_allclose(real, np.diag(2 * np.conjugate(z)), rtol=1e-14)
    np.testing.assert_allclose(real[0], grad(lambda z: np.abs(z[0]) ** 2)(z), rtol=1e-14)
    np.testing.assert_allclose(
        both(lambda x: np.exp(1j * x), X), np.diag(1j * np.exp(1j * X)), rtol=1e-14
    )
    np.testing.assert_allclose(
        both(lambda z: np.sin(z) * z[0], z, holomorphic=True),
        np.diag(np.cos(z) * z[0]) + np.outer(np.sin(z), [1, 0]),
        rtol=1e-14,
    )
    with pytest.raises(TraceError, match="holomorphic=True"):
        jacobian(np.sin)(z)
    with pytest.raises(TraceError, match="from complex numbers to complex"):
        jacobian(np.sin, holomorphic=True)(X)


def test_the_mode_follows_from_the_shape(monkeypatch):
    from wengert.transforms import jacobians

    modes = []
    swept = jacobians.Blocks.swept
    monkeypatch.setattr(
        jacobians.Blocks, "swept", lambda self, *a: modes.append(self.forward) or swept(self, *a)
    )
    jacobian(lambda x: np.outer(x, x))(X)
    jacobian(lambda x: np.sum(x))(X)
    jacobian(lambda x: x * x)(X)
    jacobian(lambda x: np.outer(x, x), mode="reverse")(X)
    assert modes == [True, False, True, False]


def test_what_cannot_be_asked():
    with pytest.raises(TraceError, match="mode must be"):
        jacobian(np.sin, mode="sideways")
    with pytest.raises(TraceError, match="argnums must be"):
        jacobian(np.sin, argnums=0.5)
    with pytest.raises(TraceError, match="argnums is 1, but 1 positional"):
        jacobian(np.sin, argnums=1)(X)
    with pytest.raises(TraceError, match="without a derivative"):
        jacobian(lambda s: 1.0)("text")
    with pytest.raises(TraceError, match="function or another callable"):
        jacobian(3.0)


def test_empty_arrays():
    assert both(lambda x: x * 2.0, np.zeros((0,))).shape == (0, 0)
    assert both(lambda x: x * 2.0, np.zeros((2, 0))).shape == (2, 0, 2, 0)
    assert both(lambda x: np.sum(x), np.zeros(0)).shape == (0,)


# ----------------------------------------------------------------------------------------------- columns


BATCHED = [
    x for x in FUNCTIONS if x not in ("determinant", "sorted", "cumulative", "list", "written")
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BATCHED)
def test_common_operations_are_carried_out_for_all_columns_at_once(name, mode, loops, request):
    clear_cache()
    found = jacobian(FUNCTIONS[name], mode=mode)
    for _ in range(3):
        found(X)
    assert loops == []
    if request.node.callspec.params["jit_mode"] == "kept" and name != "constant":
        assert "1 hit," in str(explain(found))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(axis=()) * x,
        lambda x: x.cumsum()[0] * x,
        lambda x: x.reshape(()).cumsum()[0] * np.sum(x),
        lambda x: np.sum(x.ravel()) * x.T,
    ],
)
def test_methods_of_arrays_without_axes(f, mode):
    """Their tangents are such arrays as well, and no numbers."""
    assert jacobian(f, mode=mode)(np.array(3.0)) == 6.0


@pytest.mark.parametrize("mode", MODES)
def test_complex_columns(mode, loops):
    k, z = np.array([1.0 - 0.3j, 0.4 + 2.0j]), np.array([1.0 + 2.0j, 0.3 - 0.7j, -1.1 + 0.2j])

    def f(z):
        return np.convolve(z * z, k) + np.correlate(z, k, "full") * np.fft.fft(z, 4)

    found = jacobian(f, mode=mode, holomorphic=True)(z)
    assert loops == []
    for i, e in enumerate(np.eye(3, dtype=complex)):
        np.testing.assert_allclose(found[:, i], jvp(f, (z,), (e,))[1], rtol=1e-12)


def test_the_function_runs_once_and_the_tape_does_not_grow_with_the_columns():
    from wengert import trace

    runs = []

    def f(x):
        runs.append(1)
        return np.tanh(np.cumsum(x)) * x

    lengths = []
    for n in (3, 30):
        for mode in MODES:
            runs.clear()
            lengths.append(len(trace(jacobian(f, mode=mode), np.linspace(0.1, 1.0, n))))
            assert runs == [1]
    assert lengths[:2] == lengths[2:]


def test_a_rule_that_decides_by_the_values_of_cotangents():
    from wengert import rrule
    from wengert.rules.registry import rules

    def odd(x):
        return 3.0 * x

    @rrule(odd)
    def rule(x):
        def back(dz):
            return (3.0 * dz if np.sum(dz) > 0.5 else 3.0 * dz + 0.0 * x,)

        return odd(x), back

    try:
        for _ in range(3):
            np.testing.assert_array_equal(jacrev(odd)(X), 3.0 * np.eye(3))
            # Nobody sees that all ways come to the same.
            with pytest.raises(NoRuleError, match="not linear in its cotangent"):
                jacfwd(odd)(X)
    finally:
        del rules[odd]


# ------------------------------------------------------------------------------------- second and third order


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_hessian():
    h = hessian(rosenbrock)
    for x in (X, X, X + 0.1, X - 0.2):
        np.testing.assert_allclose(h(x), differences(grad(rosenbrock), x), rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(h(x), h(x).T, rtol=1e-12)


def test_hessian_of_numbers_trees_and_vectors():
    assert hessian(lambda x: x**4)(2.0) == 48.0
    found = hessian(lambda p: p["a"] ** 2 * p["b"])({"a": 2.0, "b": 3.0})
    assert found == {"a": {"a": 6.0, "b": 4.0}, "b": {"a": 4.0, "b": 0.0}}
    h = hessian(lambda x, y: np.sum(x) * y * y, argnums=(0, 1))(X, 2.0)
    np.testing.assert_array_equal(h[0][0], np.zeros((3, 3)))
    np.testing.assert_array_equal(h[0][1], np.full(3, 4.0))
    np.testing.assert_array_equal(h[1][0], np.full(3, 4.0))
    assert h[1][1] == pytest.approx(2 * np.sum(X))
    vector = hessian(lambda x: x * x * x)(X)
    assert vector.shape == (3, 3, 3)
    np.testing.assert_allclose(vector[1, 1, 1], 6 * X[1])


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)))
def test_third_order_in_every_order_of_modes(modes):
    a, b, c = modes

    def f(x):
        return np.sum(np.exp(x) * x[::-1] ** 2) * x[0]

    third = jacobian(jacobian(jacobian(f, mode=c), mode=b), mode=a)(X)
    assert third.shape == (3, 3, 3)
    np.testing.assert_allclose(third, differences(hessian(f), X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(third, np.transpose(third, (2, 0, 1)), rtol=1e-9, atol=1e-10)


def test_hvp():
    v = np.array([0.4, 0.9, -0.2])
    for x in (X, X, X + 0.3):
        np.testing.assert_allclose(
            hvp(rosenbrock, (x,), (v,)), hessian(rosenbrock)(x) @ v, rtol=1e-12
        )
    dx, dy = hvp(lambda x, y: np.sum(x * x) * y, (X, 2.0), (v, 1.0))
    np.testing.assert_allclose(dx, 4 * v + 2 * X)
    assert dy == pytest.approx(2 * np.sum(X * v))
    with pytest.raises(CotangentError, match="must return a real number"):
        hvp(lambda x: x * x, (X,), (v,))


def test_hvp_is_differentiated_in_turn():
    def f(x):
        return x**5

    assert grad(lambda x: hvp(f, (x,), (1.0,)))(2.0) == pytest.approx(60 * 4.0)
    assert jvp(lambda x: hvp(f, (x,), (1.0,)), (2.0,), (1.0,))[1] == pytest.approx(60 * 4.0)


def test_a_loss_with_a_jacobian_in_it():
    """The gradient of the squared entries of a Jacobian, as in contractive autoencoders."""

    def penalty(w):
        j = jacobian(lambda x: np.tanh(w @ x))(X)
        return np.sum(j**2)

    def by_hand(w):
        return np.sum(((1 - np.tanh(w @ X) ** 2)[:, None] * w) ** 2)

    assert penalty(A) == pytest.approx(by_hand(A), rel=1e-13)
    for _ in range(3):
        np.testing.assert_allclose(grad(penalty)(A), grad(by_hand)(A), rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------------------------------------- programs


def test_repeated_calls_are_never_stale():
    world = {"scale": 2.0}

    def f(x):
        return world["scale"] * x * x if x[0] > 0 else x

    j = jacobian(f)
    for _ in range(3):
        np.testing.assert_array_equal(j(X), np.diag(4.0 * X))
    world["scale"] = 3.0
    np.testing.assert_array_equal(j(X), np.diag(6.0 * X))
    np.testing.assert_array_equal(j(-X), np.eye(3))
    np.testing.assert_array_equal(j(X[:2]), np.diag(6.0 * X[:2]))
    world["scale"] = None
    with pytest.raises(TypeError):
        j(X)


def test_an_option_that_is_an_argument_may_change():
    j = jacobian(lambda x, axis: np.sum(x, axis))
    for axis in (0, 0, 0, 1, 0, 1, 1, 0):
        expected = jacobian(lambda x: np.sum(x, axis))(A)  # noqa: B023
        np.testing.assert_array_equal(j(A, axis), expected)
        np.testing.assert_array_equal(expected, differences(lambda x: np.sum(x, axis), A).round(6))  # noqa: B023


def test_pickled():
    for f in (jacobian(np.sin, mode="reverse"), hessian(rosenbrock)):
        other = pickle.loads(pickle.dumps(f))
        for _ in range(3):
            np.testing.assert_array_equal(other(X), f(X))
        assert explain(other, X).source == explain(f, X).source


def test_explain_names_the_function():
    j = jacobian(rosenbrock, mode="reverse")
    with jit(True):
        j(X)
        assert str(explain(j, X)).startswith("jacobian(rosenbrock, mode='reverse')")


def test_rows_are_those_of_pullbacks():
    f = FUNCTIONS["layers"]
    _, back = pullback(f, X)
    rows = np.stack([back(e)[0] for e in np.eye(4)])
    np.testing.assert_allclose(both(f, X), rows, rtol=1e-12, atol=1e-14)


def test_a_hessian_is_called_so():
    second = hessian(rosenbrock)
    assert second.__name__ == "hessian(rosenbrock)"
    assert "hessian(rosenbrock)  # " in explain(second, X)
    assert "hessian(rosenbrock, argnums=(0,))" in repr(hessian(rosenbrock, argnums=(0,)))
    assert hessian(second).__name__ == "hessian(hessian(rosenbrock))"
