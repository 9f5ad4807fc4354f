"""scipy.fft: transforms of numbers, real and complex, and those made of cosines and sines."""

import pickle

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import NoRuleError, grad

fft = pytest.importorskip("scipy.fft")

case = Table()

X = np.array([0.7, -1.3, 2.1, 0.4, 0.9])
M = np.arange(12.0).reshape(3, 4) * 0.37 % 1.1 - 0.4
Z = M + 1j * M[::-1]
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
NORMS = (None, "ortho", "forward")

for norm in NORMS:
    for f in (fft.fft, fft.ifft):
        case(f, Z, norm=norm)
        case(f, X, n=7, norm=norm)
    for f in (fft.rfft, fft.ihfft):
        case(f, M, axis=0, norm=norm)
        case(f, X, n=4, norm=norm)
    for f in (fft.irfft, fft.hfft):
        case(f, Z, norm=norm)
        case(f, Z, n=5, axis=0, norm=norm)
    for f in (
        fft.fft2,
        fft.ifft2,
        fft.fftn,
        fft.ifftn,
        fft.irfft2,
        fft.irfftn,
        fft.hfft2,
        fft.hfftn,
    ):
        case(f, Z, norm=norm)
    for f in (fft.rfft2, fft.rfftn, fft.ihfft2, fft.ihfftn):
        case(f, T, norm=norm)
case(fft.fft, X)
case(fft.fft, [0.7, 1.3, -0.2])
case(fft.fftn, T, s=(2, 5))
case(fft.fftn, T, axes=(0, 2))
case(fft.rfftn, T, s=(4, 2), axes=(2, 0))
case(fft.hfftn, Z, s=(2, 6))
case(fft.fftshift, M)
case(fft.ifftshift, M, axes=1)

for f in (fft.dct, fft.idct, fft.dst, fft.idst):
    for kind in (1, 2, 3, 4):
        for norm in NORMS:
            case(f, X, type=kind, norm=norm)
        case(f, M, type=kind, axis=0, orthogonalize=True)
        case(f, M, type=kind, norm="ortho", orthogonalize=False)
    case(f, M, n=6)
    case(f, M, n=2, axis=0)
    case(f, Z)
    case(f, Z, type=3, norm="ortho")
    case(f, [0.7, 1.3, -0.2])
for f in (fft.dctn, fft.idctn, fft.dstn, fft.idstn):
    case(f, M)
    case(f, M, type=3, norm="ortho")
    case(f, T, type=1, axes=(0, 2))
    case(f, T, s=(2, 5), norm="forward")

# One axis, and one size, may stand without a tuple; -1 is the size that there is.
REAL = "dctn dstn idctn idstn rfftn ihfftn rfft2 ihfft2"
COMPLEX = "fftn ifftn irfftn hfftn fft2 ifft2 irfft2 hfft2"
ONE_AXIS = (
    *(dict(axes=1), dict(axes=-1), dict(axes=np.int64(1)), dict(axes=0, s=3), dict(axes=0, s=[6])),
    *(dict(axes=[1], s=np.int64(3)), dict(axes=np.array([0, 1]), s=np.array([2, 5]))),
    dict(axes=(0, 1), s=(2, -1)),
)
for names, x in ((REAL, M), (COMPLEX, Z)):
    for name in names.split():
        for options in ONE_AXIS:
            case(getattr(fft, name), x, **options)
for name in f"{REAL} {COMPLEX}".split():
    if "2" not in name:
        case(getattr(fft, name), M, s=3)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


@case.each
def test_forward(case):
    check_forward(case)


def test_functions_can_be_sent():
    assert pickle.loads(pickle.dumps(grad(spectrum)))(X) == pytest.approx(2 * X.size * X)


def spectrum(x):
    return np.sum(np.abs(fft.fft(x)) ** 2)


def test_an_option_that_scipy_ignores():
    with pytest.raises(NoRuleError, match="orthogonalize="):
        grad(lambda x: np.sum(np.abs(fft.dct(x + 1j, orthogonalize=True))))(X)


def test_an_argument_that_is_overwritten():
    slope = grad(lambda x: np.sum(fft.dct(x, overwrite_x=True)))(X.copy())
    assert slope == pytest.approx(grad(lambda x: np.sum(fft.dct(x)))(X))
