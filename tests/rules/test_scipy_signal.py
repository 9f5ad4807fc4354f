"""Convolutions and filters: scipy.signal and scipy.ndimage."""

import numpy as np
import pytest
from checker import Table, check_first, check_second, check_single

from wengert import NoRuleError, TraceError, check_grads, grad

signal = pytest.importorskip("scipy.signal")
ndimage = pytest.importorskip("scipy.ndimage")

case = Table()
composed = Table()  # of others, which each do their part of the work

V = np.array([0.5, -1.2, 2.0, 0.7, 0.3, -0.9])
W = np.array([0.4, -0.3, 1.1])
M = np.array([[0.5, -1.2, 2.0, 0.1], [0.7, 0.1, -0.6, 0.9], [1.5, 0.4, 0.9, -0.2]])
K = np.array([[0.2, 0.7], [-0.4, 0.5]])

for mode in ("full", "same", "valid"):
    for f in (signal.convolve, signal.correlate, signal.fftconvolve):
        case(f, V, W, mode=mode)
        case(f, W, V, mode=mode)
        case(f, M, K, mode=mode)
        case(f, V + 0.3j, W - 0.2j, mode=mode)
    case(signal.convolve2d, M, K, mode=mode)
    case(signal.correlate2d, M, K, mode=mode)
case(signal.convolve, V, W, method="direct")
case(signal.convolve, V, W, "same", "fft")
case(signal.lfilter, W, np.array([1.3, -0.4]), V)
case(signal.lfilter, W, np.array([1.0]), V)
case(signal.lfilter, W[:1], np.array([1.3, -0.4, 0.2]), M)
case(signal.lfilter, W, np.array([1.3, -0.4]), M, axis=0)


def started(b, a, x, zi, axis=-1):
    return signal.lfilter(b, a, x, axis, zi)


case(started, W, np.array([1.3, -0.4]), V, np.array([0.3, -0.2]))
case(started, W, np.array([1.0]), V[:1], np.array([0.3, -0.2]))
case(started, W[:1], np.array([1.3, -0.4, 0.2]), M, M[:1, :2])
case(started, W, np.array([1.3, -0.4]), M, M[:2], axis=0)
for a in (np.array([1.0, 0.3]), np.array([1.3, -0.4, 0.2, 0.1]), [1.0, 0.3]):
    case(signal.lfilter_zi, W, a)
    case(signal.lfilter_zi, 0.7, a)
    case(signal.lfiltic, W, a, V[:1])
    case(signal.lfiltic, W[:1], a, V, V[:2])
    case(signal.lfiltic, W, a, V[:2], V)
case(signal.lfiltic, W, np.array([1.0]), V, V)
case(
    signal.sosfilt_zi, np.array([[0.4, -0.3, 1.1, 1.0, 0.3, 0.2], [1.4, 0.3, 0.1, 1.0, -0.2, 0.1]])
)


def sections(b, a, x, axis=-1, zi=None):
    sos = np.concatenate((b, np.ones((len(a), 1)), a), 1)
    return signal.sosfilt(sos, x, axis, zi)


def started_sections(b, a, x, zi, axis=-1):
    return sections(b, a, x, axis, zi)


S, Q = np.array([[0.4, -0.3, 1.1], [0.9, 0.2, -0.1]]), np.array([[-0.4, 0.1], [0.3, -0.2]])
case(sections, S, Q, V)
case(sections, S[:1], Q[:1], M)
case(sections, S, Q, M, axis=0)
case(started_sections, S, Q, V, np.array([[0.3, -0.2], [0.1, 0.5]]))
case(started_sections, S, Q, M, np.reshape(np.arange(12.0) / 7, (2, 3, 2)))
case(started_sections, S, Q, M, np.reshape(np.arange(16.0) / 7, (2, 2, 4)), axis=0)
composed(lambda x: signal.sosfiltfilt(np.hstack((S, np.ones((2, 1)), Q)), x, padlen=2), V)
case(signal.medfilt, V)
case(signal.medfilt, V, 5)
case(signal.medfilt, M + np.reshape(np.arange(12.0), (3, 4)) / 100)  # without ties
case(signal.medfilt, M + np.reshape(np.arange(12.0), (3, 4)) / 100, (3, 1))

for mode in ("reflect", "mirror", "nearest", "wrap", "constant"):
    case(ndimage.correlate1d, V, W, mode=mode)
    case(ndimage.convolve1d, V, W, mode=mode, origin=1)
    case(ndimage.correlate, M, K, mode=mode, cval=0.4)
    case(ndimage.convolve, M, K, mode=mode)
    case(ndimage.gaussian_filter1d, V, 0.9, mode=mode)
    case(ndimage.uniform_filter1d, V, 3, mode=mode)
    case(ndimage.uniform_filter, M, 3, mode=mode)
    case(ndimage.gaussian_filter, M, 0.8, mode=mode)
    case(ndimage.sobel, M, mode=mode, cval=0.4)
    case(ndimage.prewitt, M, axis=0, mode=mode)
    case(ndimage.laplace, M, mode=mode, cval=0.4)
    composed(ndimage.gaussian_laplace, M, 0.8, mode=mode)
    composed(ndimage.gaussian_gradient_magnitude, M, 0.8, mode=mode)
for f, *given in (
    (ndimage.correlate, K), (ndimage.convolve, K), (ndimage.correlate1d, W), (ndimage.convolve1d, W),
    (ndimage.uniform_filter1d, 3), (ndimage.uniform_filter, 3),
    (ndimage.gaussian_filter1d, 0.9), (ndimage.gaussian_filter, 0.9), (ndimage.sobel,), (ndimage.prewitt,),
    (ndimage.laplace,),
):  # fmt: skip
    case(lambda x, c, f=f, given=given: f(x, *given, mode="constant", cval=c), M, 0.4)
for f in (ndimage.gaussian_laplace, ndimage.gaussian_gradient_magnitude):
    composed(lambda x, c, f=f: f(x, 0.9, mode="constant", cval=c), M, 0.4)
case(ndimage.correlate1d, M, W, axis=0)
case(ndimage.convolve1d, M, W[:2], axis=0)
case(ndimage.correlate, M, K, origin=(-1, 0))
case(ndimage.correlate, M, K.tolist())
for f, w in (
    (ndimage.correlate, K), (ndimage.convolve, K), (ndimage.correlate1d, W), (ndimage.convolve1d, W),
):  # fmt: skip
    for x in (M, M * (0.4 - 0.7j)):
        case(f, x, w * (1 + 0.3j) + 0.2j)
composed(ndimage.gaussian_laplace, M, (0.8, 1.1), truncate=2.0)
composed(ndimage.gaussian_gradient_magnitude, V, 0.9)
case(ndimage.laplace, V)
case(ndimage.gaussian_filter1d, V, 0.9, order=1)
case(ndimage.gaussian_filter1d, V, 0.9, order=2)
case(ndimage.gaussian_filter1d, V, 0.9, order=3)
case(ndimage.gaussian_filter, M, (0.8, 1.1), order=(0, 1))
case(ndimage.uniform_filter, M, (2, 3))


def test_a_filter_forth_and_back_by_its_first_coefficient():
    check_grads(lambda a: signal.filtfilt(W, a, np.tile(V, 3)), (np.array([1.0, 0.3]),), order=1)


@case.each
def test_gradient(case):
    check_first(case)


@composed.each
def test_gradient_of_several(case):
    check_first(case)


@composed.each
def test_second_order_of_several(case):
    check_second(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


def test_a_filter_that_is_applied_forwards_and_backwards():
    check_grads(lambda x: signal.filtfilt(W, [1.3, -0.4], x, padlen=2), (V,))
    check_grads(lambda x: signal.filtfilt(W[:2], [1.3, -0.4], x, axis=0, padtype=None), (M,))


def test_what_is_not_known_is_refused():
    with pytest.raises(NoRuleError, match="zeros outside"):
        grad(lambda m: signal.convolve2d(m, K, boundary="wrap").sum())(M)

    def f(v):
        out = np.zeros_like(v)
        ndimage.correlate1d(v, W, output=out)
        return out.sum()

    with pytest.raises(TraceError, match="output="):
        grad(f)(V)


@pytest.mark.parametrize("first", [0.1, 0.8, 2.5])
def test_how_far_a_filter_reaches_goes_by_its_width_at_each_call(first):
    f = lambda s: (ndimage.gaussian_filter1d(V, s) ** 2).sum()
    answer = grad(f)
    for s in (first, 0.8, 1.2, 0.1, 2.0, 0.8, 0.6):
        assert answer(s) == pytest.approx((f(s + 1e-6) - f(s - 1e-6)) / 2e-6, rel=1e-6, abs=1e-9)
