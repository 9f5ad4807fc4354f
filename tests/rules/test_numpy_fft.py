"""The rules for Fourier transforms."""

import numpy as np
from checker import Table, check_first, check_forward, check_second, check_single

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
