"""Discrete Fourier transforms along one axis; those along several, which NumPy writes in Python, are traced.

Each is linear, so its pullback is its transpose. The matrix of `fft` is symmetric: the transpose is the
transform itself, behind which zeros are cut off or put back as ``n`` has put or cut them before. `irfft` takes
the numbers of positive frequency twice, once for each of the two that they stand for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import is_sequence, settled, unbroadcast
from .linear import linear
from .registry import query, rrule


def fitted(x: Any, n: int, axis: int) -> Any:
    """``x`` cut off or filled up with zeros to ``n`` along ``axis``: what a transform with ``n`` does first."""
    shape = np.shape(x)
    if shape[axis] == n:
        return x
    before = (slice(None),) * (axis % len(shape))
    if shape[axis] > n:
        return x[(*before, slice(n))]
    return np.concatenate([x, np.zeros(padding(shape, n, axis), x.dtype)], axis=axis)


@query
def padding(shape: tuple[int, ...], n: int, axis: int) -> tuple[int, ...]:
    """The shape of the zeros that fill up ``shape`` to ``n`` along ``axis``."""
    wanted = list(shape)
    wanted[axis] = n - shape[axis]
    return tuple(wanted)


@query
def opposite(norm: Any) -> Any:
    """The norm under which the inverse transform scales as the transform does under ``norm``."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@query
def weights(n: int, ndim: int, axis: int, dtype: Any) -> Any:
    """How often `irfft` to ``n`` numbers uses each frequency, along ``axis``."""
    w = np.full(n // 2 + 1, 2, dtype)
    w[0] = 1
    if n % 2 == 0:
        w[-1] = 1
    shape = [1] * ndim
    shape[axis] = len(w)
    return w.reshape(shape)


def _array(a: Any) -> Any:
    return np.asarray(a) if is_sequence(a) else a


def _complex(transform: Any) -> None:
    @rrule(transform)
    def rule(a, n=None, axis=-1, norm=None, out=None):
        n, axis = settled(n), settled(axis)

        def pullback(dz):
            return (
                unbroadcast(fitted(transform(dz, None, axis, norm), np.shape(a)[axis], axis), a),
            )

        return transform(a, n, axis, norm), pullback


_complex(np.fft.fft)
_complex(np.fft.ifft)


def _to_frequencies(dz: Any, a: Any, n: Any, axis: int, norm: Any) -> Any:
    """The pullback of ``rfft``: the real part of the transposed full transform."""
    x = _array(a)
    size = np.shape(x)[axis] if n is None else n
    d = np.real(np.fft.fft(dz, size, axis, norm))
    return unbroadcast(fitted(d, np.shape(x)[axis], axis), a)


@rrule(np.fft.rfft)
def rfft(a, n=None, axis=-1, norm=None, out=None):
    n, axis = settled(n), settled(axis)

    def pullback(dz):
        return (_to_frequencies(dz, a, n, axis, norm),)

    return np.fft.rfft(a, n, axis, norm), pullback


@rrule(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    n, axis = settled(n), settled(axis)

    def pullback(dz):
        # ihfft(a) is the conjugate of rfft(a) with the norm of the inverse.
        return (_to_frequencies(np.conjugate(dz), a, n, axis, opposite(norm)),)

    return np.fft.ihfft(a, n, axis, norm), pullback


def _from_frequencies(dz: Any, a: Any, axis: int, norm: Any) -> Any:
    """The pullback of ``irfft``, conjugated; ``norm`` is that of the way back."""
    x, size = _array(a), np.shape(dz)[axis]
    d = np.fft.rfft(dz, None, axis, norm)
    d = d * weights(size, np.ndim(x), axis, np.real(d).dtype)
    return fitted(d, np.shape(x)[axis], axis)


@rrule(np.fft.irfft)
def irfft(a, n=None, axis=-1, norm=None, out=None):
    n, axis = settled(n), settled(axis)

    def pullback(dz):
        d = _from_frequencies(dz, a, axis, opposite(norm))
        return (unbroadcast(np.conjugate(d), a),)

    return np.fft.irfft(a, n, axis, norm), pullback


@rrule(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    n, axis = settled(n), settled(axis)

    def pullback(dz):
        # hfft(a) is irfft of the conjugate of a with the norm of the transform.
        return (unbroadcast(_from_frequencies(dz, a, axis, norm), a),)

    return np.fft.hfft(a, n, axis, norm), pullback


linear(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)
