"""scipy.fft: Fourier transforms as NumPy's, and the real transforms made of cosines and sines.

All are linear, so that each is its own rule in forward mode. The matrices of the orthogonalised transforms of types 1
and 4 are symmetric, and those of types 2 and 3 the transposes of each other, whatever the norm. The plain ones differ
by factors of sqrt(2) at one end or both, as the documentation of ``scipy.fft.dct`` and ``dst`` has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import fft

from .broadcasting import is_complex, is_sequence, settled, unbroadcast
from .equivalents import like
from .linear import linear
from .numpy_fft import fitted, opposite
from .registry import query, rrule


def into_new(overwrite_x: Any) -> None:
    if overwrite_x:
        raise NotImplementedError(
            "the derivative is for transforms that leave their argument as it is"
        )


# ------------------------------------------------------------------------------------------------ Fourier


def one_axis(name: str) -> None:
    """The rule of a transform along one axis."""
    equivalent = getattr(np.fft, name)

    @like(getattr(fft, name))
    def rule(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
        into_new(overwrite_x)
        return equivalent(x, n, axis, norm)


def several_axes(name: str) -> None:
    """The rule of a transform along several axes."""
    equivalent = getattr(np.fft, name)

    @like(getattr(fft, name))
    def rule(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
        into_new(overwrite_x)
        return equivalent(x, *planned(s, axes), norm)

    @like(getattr(fft, name.replace("n", "2")))
    def plane(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
        into_new(overwrite_x)
        return equivalent(x, *planned(s, axes), norm)


def planned(s: Any, axes: Any) -> tuple[Any, Any]:
    """Sizes and axes as tuples: the last axes, as many as there are sizes, where none are given."""
    sizes, places = numbers(settled(s)), numbers(settled(axes))
    if places is None and sizes is not None:
        places = tuple(range(-len(sizes), 0))
    return sizes, places


@query
def numbers(given: Any) -> tuple[int, ...] | None:
    """One integer or several, in any sequence or array."""
    return None if given is None else tuple(np.ravel(given).tolist())


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    one_axis(_name)
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    several_axes(_name)


@like(fft.hfftn)
def hfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    into_new(overwrite_x)
    return np.fft.irfftn(np.conjugate(x), *planned(s, axes), opposite(norm))


@like(fft.ihfftn)
def ihfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    into_new(overwrite_x)
    return np.conjugate(np.fft.rfftn(x, *planned(s, axes), opposite(norm)))


@like(fft.hfft2)
def hfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    return hfftn(x, s, axes, norm, overwrite_x)


@like(fft.ihfft2)
def ihfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    return ihfftn(x, s, axes, norm, overwrite_x)


# ------------------------------------------------------------------------------------- cosines and sines

TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


def orthogonalised(x: Any, name: str, kind: int, axis: int, norm: Any) -> Any:
    """The transform ``dct`` or ``dst`` of which the transpose is one as well."""
    if np.iscomplexobj(x):  # of which SciPy takes no option on to the parts
        parts = [orthogonalised(part, name, kind, axis, norm) for part in (x.real, x.imag)]
        return parts[0] + 1j * parts[1]
    return getattr(fft, name)(x, kind, None, axis, norm, orthogonalize=True)


@rrule(orthogonalised)
def _orthogonalised(x, name="dct", kind=2, axis=-1, norm=None):
    def pullback(dz):
        return (unbroadcast(orthogonalised(dz, name, TRANSPOSED[kind], axis, norm), x),)

    return orthogonalised(x, name, kind, axis, norm), pullback


@query
def ends(name: str, kind: int, factor: float, n: int, ndim: int, axis: int) -> Any:
    """Ones along an axis, but for ``factor`` where the plain transform differs from the orthogonalised one."""
    w = np.ones(n)
    if name == "dct":
        w[0] = factor
    if name == "dst" or kind == 1:
        w[-1] = factor
    return w.reshape([n if i == axis % ndim else 1 for i in range(ndim)])


def along(x: Any, name: str, kind: int, n: Any, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """The transform ``dct`` or ``dst`` along one axis."""
    x = np.asarray(x) if is_sequence(x) else x
    if orthogonalize is not None and is_complex(x):
        raise NotImplementedError(
            "the derivative is for real numbers where orthogonalize= is given"
        )
    x = x if n is None else fitted(x, n, axis)
    plain = not (norm == "ortho" if orthogonalize is None else orthogonalize)
    scaled = plain and kind < 4 and (name, kind) != ("dst", 1)
    if scaled and kind != 2:
        x = x * ends(name, kind, math.sqrt(0.5), np.shape(x)[axis], np.ndim(x), axis)
    z = orthogonalised(x, name, kind, axis, norm)
    if scaled and kind != 3:
        z = z * ends(name, kind, math.sqrt(2), np.shape(z)[axis], np.ndim(z), axis)
    return z


def trigonometric(name: str, inverse: bool) -> None:
    """The rules of a transform and of that along several axes. The inverse is the transposed one, but for the norm."""
    kinds = TRANSPOSED if inverse else {kind: kind for kind in TRANSPOSED}
    turned = opposite if inverse else lambda norm: norm
    prefix = "i" if inverse else ""

    @like(getattr(fft, prefix + name))
    def rule(
        x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None
    ):
        into_new(overwrite_x)
        axis = settled(axis)
        return along(x, name, kinds[settled(type)], settled(n), axis, turned(norm), orthogonalize)

    @like(getattr(fft, f"{prefix}{name}n"))
    def several(
        x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, orthogonalize=None
    ):
        into_new(overwrite_x)
        sizes, places = planned(s, axes)
        places = range(np.ndim(x)) if places is None else places
        sizes = [-1] * len(places) if sizes is None else sizes
        for axis, n in zip(places, sizes, strict=True):
            size = None if n == -1 else n
            x = along(x, name, kinds[settled(type)], size, axis, turned(norm), orthogonalize)
        return x


for _name in ("dct", "dst"):
    trigonometric(_name, inverse=False)
    trigonometric(_name, inverse=True)

for _name in "fft ifft rfft irfft hfft ihfft".split():
    linear(*[getattr(fft, stem) for stem in (_name, _name + "2", _name + "n")])
for _name in "dct idct dst idst".split():
    linear(getattr(fft, _name), getattr(fft, _name + "n"))
linear(orthogonalised)
