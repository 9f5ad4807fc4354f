"""The rules for Fourier transforms."""

import numpy as np
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import pullback

case = Table()

X = np.array([0.7, -1.3, 2.1, 0.4, 0.9])
M = np.arange(12.0).reshape(3, 4) * 0.13 % 0.9 - 0.41
Z = np.array([0.3 + 1.2j, -0.7 - 0.4j, 1.1 + 0.2j, 0.6 - 0.8j])
C = M + 1j * M[::-1] ** 2
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41

for f in (np.fft.fft, np.fft.ifft):
    for x in (X, Z, M, C):
        case(f, x)
        for norm in ("ortho", "forward", "backward"):
            case(f, x, norm=norm)
        for n in (1, 2, 3, 7, 8):
            case(f, x, n)
    case(f, C, axis=0)
    case(f, M, 5, 0, "ortho")
    case(f, X.tolist())
    case(f, T, axis=-2)
for f in (np.fft.rfft, np.fft.ihfft):
    for x in (X, X[:4], M, T):
        case(f, x)
        for norm in ("ortho", "forward", "backward"):
            case(f, x, norm=norm)
        for n in (1, 2, 3, 7, 8):
            case(f, x, n)
    case(f, M, axis=0)
    case(f, M, 5, 0, "ortho")
for f in (np.fft.irfft, np.fft.hfft):
    for x in (X, Z, M, C):
        case(f, x)
        for norm in ("ortho", "forward", "backward"):
            case(f, x, norm=norm)
        for n in (1, 2, 3, 7, 8, 12):
            case(f, x, n)
    case(f, C, axis=0)
    case(f, M, 5, 0, "ortho")
for f in (np.fft.fft2, np.fft.ifft2, np.fft.irfft2, np.fft.fftn, np.fft.ifftn, np.fft.irfftn):
    case(f, M)
    case(f, C)
    case(f, T)
    case(f, C, norm="ortho")
    case(f, M, (4, 3), axes=(0, 1))
    case(f, C, axes=(1, 0))
    case(f, T, (5, 2), (-1, 0), "forward")
for f in (np.fft.rfft2, np.fft.rfftn):
    case(f, M)
    case(f, T)
    case(f, M, norm="ortho")
    case(f, M, (4, 3), axes=(0, 1))
    case(f, T, (5, 2), (-1, 0), "forward")
for f in (np.fft.fftshift, np.fft.ifftshift):
    case(f, X)
    case(f, C)
    case(f, M, axes=0)
    case(f, T, (0, 2))
# NumPy's integers, one after the other in the same places.
for n in (4, 5, 3):
    case(np.fft.fft, X, np.int64(n))
    case(np.fft.rfft, M, np.int64(n), np.int64(1))
    case(np.fft.irfftn, C, np.array([2, n]), np.array([0, 1]))
case(lambda x, d: x * np.fft.fftfreq(5, d), X, 0.3)
case(lambda x, d: x[:3] * np.fft.rfftfreq(5, d), X, 0.3)
case(lambda x: np.fft.irfft(np.fft.rfft(x) * np.exp(-np.arange(3))), X[:4])
case(lambda x, y: np.abs(np.fft.fft(x) * np.fft.fft(y)) ** 2, X, X[::-1])


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


def test_sizes_of_numpys_after_the_size_that_there_is():
    """What a transform to its own size has found out does not hold for a NumPy integer that is another one."""
    for n in np.array([5, 5, 5, 4, 3, 7, 5]):
        z, back = pullback(lambda x, n=n: np.fft.rfft(x, n, np.int64(-1)), X)
        np.testing.assert_allclose(back(z)[0], np.real(z @ np.fft.rfft(np.eye(5), n, 0)))
