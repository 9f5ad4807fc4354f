"""Convolutions and linear filters of scipy.signal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal

from .broadcasting import settled, unbroadcast
from .equivalents import like, rule_of
from .registry import Operand, rrule
from .zeros import conj


def to_full(d: Any, n: tuple[int, ...], m: tuple[int, ...], mode: str) -> Any:
    """The cotangent of a part of a convolution as that of the whole, zero elsewhere."""
    if mode == "full":
        return d
    for axis in range(len(n)):
        size = n[axis] + m[axis] - 1
        start = (size - n[axis]) // 2 if mode == "same" else min(n[axis], m[axis]) - 1
        before = np.zeros((*np.shape(d)[:axis], start, *np.shape(d)[axis + 1 :]))
        rest = size - start - np.shape(d)[axis]
        after = np.zeros((*np.shape(d)[:axis], rest, *np.shape(d)[axis + 1 :]))
        d = np.concatenate((before, d, after), axis=axis)
    return d


def convolution(primitive: Any, in1: Any, in2: Any, mode: str, **options: Any) -> Any:
    """The value and the pullback of a convolution, however it is computed."""

    def pullback(dz):
        d = to_full(dz, np.shape(in1), np.shape(in2), mode)
        d1 = signal.convolve(d, np.flip(in2), mode="valid")
        d2 = signal.convolve(d, np.flip(in1), mode="valid")
        return unbroadcast(d1, in1), unbroadcast(d2, in2)

    return primitive(in1, in2, mode=mode, **options), pullback


@rrule(signal.convolve)
def convolve(in1, in2, mode="full", method="auto"):
    return convolution(signal.convolve, in1, in2, mode, method=method)


@like(signal.fftconvolve, signal.oaconvolve)
def fftconvolve(in1, in2, mode="full", axes=None):
    if axes is not None:
        raise NotImplementedError("the derivative is not known for a convolution along some axes")
    return signal.convolve(in1, in2, mode)


@like(signal.correlate)
def correlate(in1, in2, mode="full", method="auto"):
    return signal.convolve(in1, conj(np.flip(in2)), mode)


def zeros_outside(boundary: Any, fillvalue: Any) -> None:
    if boundary not in ("fill", 0) or fillvalue != 0:
        raise NotImplementedError("the derivative is for zeros outside of the arrays")


@like(signal.convolve2d)
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    zeros_outside(boundary, fillvalue)
    return signal.convolve(in1, in2, mode)


@like(signal.correlate2d)
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    zeros_outside(boundary, fillvalue)
    z = signal.convolve(in1, conj(np.flip(in2)), "full" if mode == "same" else mode)
    if mode != "same":
        return z
    (n, m), (k, l) = np.shape(in1), np.shape(in2)
    return z[k // 2 : k // 2 + n, l // 2 : l // 2 + m]  # where the middle is, for even sizes


def from_state(b, a, x, axis=-1, zi: Operand = None):
    """`signal.lfilter` with initial conditions, by filters that start from rest.

    The state of a filter is added to its first outputs before they are fed back; and what it leaves behind is what
    it would go on to give, were nothing fed back. Both are in terms of a first coefficient of one.
    """
    x, zi, a, one = np.asarray(x), np.asarray(zi), np.reshape(a, -1), np.ones(1)
    along, q = settled(axis) % np.ndim(x), a / a[0]
    n, count, across = np.shape(x)[along], np.shape(zi)[along], list(np.shape(x))
    shape = lambda size: [*across[:along], size, *across[along + 1 :]]
    fed = signal.lfilter(b, a[:1], np.concatenate((x, np.zeros(shape(count))), along), axis=along)
    state = np.concatenate((np.broadcast_to(zi, shape(count)), np.zeros(shape(n))), along)
    y = np.moveaxis(signal.lfilter(one, q, fed + state, axis=along), along, -1)
    zf = signal.lfilter(q, one, y[..., n:])
    return np.moveaxis(y[..., :n], -1, along), np.moveaxis(zf, -1, along)


started = rule_of(signal.lfilter, from_state, ["b", "a", "x", "zi"], False)


@rrule(signal.lfilter)
def lfilter(b, a, x, axis=-1, zi: Operand = None):
    if zi is not None:
        return started(b, a, x, axis=axis, zi=zi)
    y = signal.lfilter(b, a, x, axis)

    def pullback(dy):
        along = settled(axis)
        p, q = np.atleast_1d(b), np.atleast_1d(a)
        backward = lambda p, d: np.flip(signal.lfilter(p, q, np.flip(d, along), axis=along), along)
        dx = backward(p, dy)
        # y = b/a x: along b it changes by x/a, along a by -y/a, both delayed.
        by_b, by_a = signal.lfilter(1.0, q, x, axis=along), signal.lfilter(1.0, q, y, axis=along)
        db = delayed_products(dy, by_b, np.size(b), along)
        da = -delayed_products(dy, by_a, np.size(a), along)
        shaped = lambda d, like: unbroadcast(np.reshape(d, np.shape(like)), like)
        return shaped(db, b), shaped(da, a), unbroadcast(dx, x)

    return y, pullback


@like(signal.sosfilt)
def sosfilt(sos, x, axis=-1, zi: Operand = None):
    """One section after the other, each of which has a first coefficient of one."""
    left, sos = [], np.asarray(sos)
    for k in range(np.shape(sos)[0]):
        if zi is None:
            x = signal.lfilter(sos[k, :3], sos[k, 3:], x, axis)
        else:
            x, zf = signal.lfilter(sos[k, :3], sos[k, 3:], x, axis, np.asarray(zi)[k])
            left.append(zf)
    return x if zi is None else (x, np.stack(left))


@like(signal.medfilt)
def medfilt(volume, kernel_size=None):
    volume = np.atleast_1d(volume)
    axes = tuple(range(-np.ndim(volume), 0))
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, np.shape(axes))
    padded = np.pad(volume, [(half, half) for half in [int(n) // 2 for n in sizes]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(map(int, sizes)))
    return np.median(windows, axis=axes)


def delayed_products(d: Any, u: Any, count: int, axis: int) -> Any:
    """The inner products of ``d`` with ``u``, delayed by 0, 1, ... steps."""
    d, u = np.moveaxis(d, axis, -1), np.moveaxis(u, axis, -1)
    n = np.shape(u)[-1]
    return np.stack([np.sum(d[..., k:] * u[..., : max(n - k, 0)]) for k in range(count)])


# --------------------------------------------------------------------------------- the state of a filter
#
# SciPy divides by a first coefficient that is not one. Here it is always divided by: the derivative by it is asked for
# where it is one, too.


@like(signal.lfilter_zi)
def lfilter_zi(b, a):
    b, a = np.reshape(b, -1), np.reshape(a, -1)
    size = max(np.size(b), np.size(a))
    rest = ended(b, size) - np.sum(b) / np.sum(a) * ended(a, size)
    return np.flip(np.cumsum(np.flip(rest)))[1:] / a[0]


@like(signal.lfiltic)
def lfiltic(b, a, y, x: Operand = None):
    b, a, y = np.reshape(b, -1), np.reshape(a, -1), np.reshape(y, -1)
    size = max(np.size(b), np.size(a)) - 1
    fed = 0.0 if x is None else ended(from_past(b, np.reshape(x, -1)), size)
    return (fed - ended(from_past(a, y), size)) / a[0]


def from_past(c: Any, past: Any) -> Any:
    """What values of the past, the last one first, add to the next outputs by the coefficients ``c``."""
    size = np.size(c) - 1
    return np.convolve(c[1:], np.flip(ended(past, size)))[size - 1 :] if size else np.zeros(0)


def ended(x: Any, size: int) -> Any:
    """The first ``size`` elements, with zeros where there are fewer."""
    more = size - np.size(x)
    return np.concatenate((x, np.zeros(more, x.dtype))) if more > 0 else x[:size]
