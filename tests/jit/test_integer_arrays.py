"""Arrays of integers that are computed from integers have derivatives as if they were real, in every way of running."""

import numpy as np
import pytest

from wengert import grad, jit, jvp

# Each is of ``w``, an array that is made of an argument; the same with a float is the independent way.
OF_AN_ARRAY = """
w[1]
w[1:][0]
w[[0, 1, 1]].sum()
w[w > 3].sum()
w[..., 1]
w.item(1)
w.item((0,))
w.tolist()[2]
w.flat[1]
w.real[1]
w.reshape(3, 1).T[0, 1]
[x for x in w][1]
sum([x * 0.5 for x in w.tolist()])
np.take(w, 1)
np.take(w, [1, 1])[0]
np.compress([True, False, True], w)[1]
np.compress([True, True], w, axis=0)[1]
np.interp(0.5, [0, 1, 2], w)
np.interp(3.5, w, [0.0, 1.0, 2.0])
np.sort(w)[0]
np.max(w)
np.cumsum(w)[1]
np.cumprod(w)[2]
np.dot(w, w)
np.outer(w, w)[0, 1]
np.einsum("i,i->", w, w)
np.where(w > 2, w, 3 * w)[0]
np.stack([w, w])[1, 1]
np.repeat(w, 2)[3]
np.pad(w, 1)[1]
np.diff(w)[0]
np.linspace(w[0], w[1], 5)[2]
np.array([[w[0], w[1]], [w[1], w[2]]])[1, 1]
np.lib.stride_tricks.sliding_window_view(w, 2)[1, 0]
np.vectorize(lambda x: x * 0.5)(w)[1]
np.fromiter((x * 0.5 for x in w), float)[1]
np.piecewise(w, [w > 3], [lambda t: t * 2, lambda t: t])[1]
""".strip().splitlines()


@pytest.mark.parametrize("text", OF_AN_ARRAY)
def test_slopes_are_not_cut_to_integers(text):
    scope = {"np": np}
    exec(f"def f(a):\n    w = np.array([a, 2 * a, a * a + 1])\n    return ({text}) * 0.5", scope)
    f = scope["f"]
    with jit(False):
        expected = grad(f)(3.0)
        assert grad(f)(3) == pytest.approx(expected)
    for _ in range(5):
        assert grad(f)(3) == pytest.approx(expected)
        assert float(jvp(f, (3,), (1.0,))[1]) == pytest.approx(expected)


def stored(a):
    v = np.zeros(3, int)
    v[1] = 2 * a
    return v[1] * 0.5


def shifted(a):
    v = np.arange(6).reshape(2, 3)
    v[1] = np.array([a, 2 * a, 4])
    v[:, 0] *= a
    return v[1, 0] * 0.5


def looped(a):
    v = np.zeros(20, int)
    for i in range(20):
        v[i] = 2 * a + i
    return v[7] * 0.5 + v.sum() * 0.25


@pytest.mark.parametrize(("f", "slope"), [(stored, 1.0), (shifted, 3.0), (looped, 11.0)])
def test_what_is_written_into_integers(
    f, slope
):  # slopes by hand: of floats, such a write would cut them
    with jit(False):
        assert grad(f)(3) == pytest.approx(slope)
    for _ in range(5):
        assert grad(f)(3) == pytest.approx(slope)
        assert float(jvp(f, (3,), (1.0,))[1]) == pytest.approx(slope)


OF_SCIPY = """
fft.fft(w)[1].real
fft.dct(w)[1]
linalg.norm(w)
linalg.det(np.diag(w))
linalg.solve(np.diag(w), w)[1]
linalg.toeplitz(w)[1, 0]
signal.convolve(w, w)[1]
signal.fftconvolve(w, w)[1]
signal.correlate(w, w)[1]
integrate.simpson(w)
interpolate.CubicSpline([0, 1, 2], w)(0.5)
integrate.quad(lambda t: (w * t).sum(), 0.0, 1.0)[0]
integrate.odeint(lambda y, t: -y * w[0] * 0.1, [1.0], [0.0, 1.0])[-1, 0]
optimize.brentq(lambda x: x * x - w[1], 0.0, 10.0)
optimize.fsolve(lambda x: x * x - w, [1.0, 1.0, 1.0])[1]
""".strip().splitlines()


@pytest.mark.parametrize("text", OF_SCIPY)
def test_slopes_of_scipy_are_not_cut_to_integers(text):
    scipy = pytest.importorskip("scipy")
    scope = {"np": np}
    for name in "fft linalg signal integrate interpolate optimize".split():
        scope[name] = getattr(scipy, name)
    exec(f"def f(a):\n    w = np.array([a, 2 * a, a * a + 1])\n    return ({text}) * 0.5", scope)
    f = scope["f"]
    with jit(False):
        expected = grad(f)(3.0)
    for _ in range(5):
        assert grad(f)(3) == pytest.approx(expected, rel=1e-5)
    if "odeint" not in text:  # whose tangents take seconds
        assert float(jvp(f, (3,), (1.0,))[1]) == pytest.approx(expected, rel=1e-5)


def test_an_array_of_integers_that_a_solver_meets_is_an_index_too():
    integrate = pytest.importorskip("scipy.integrate")

    def f(a):
        w, v = np.array([a, 2 * a]), np.arange(10.0) * a
        return integrate.quad(lambda t: v[w[0]] * t, 0.0, 1.0)[0]

    for _ in range(4):
        assert grad(f)(3) == pytest.approx(1.5)
