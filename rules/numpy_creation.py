"""Arrays made from numbers: ranges and constants."""

from __future__ import annotations

import numpy as np

from .broadcasting import unbroadcast
from .elementwise import elementwise
from .registry import nondiff, rrule
from .zeros import plus


@rrule(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    z = np.linspace(start, stop, num, endpoint, retstep, dtype, axis=axis)

    def pullback(dz):
        values, step = dz if retstep else (dz, None)
        steps = num - 1 if endpoint else num
        dstart = dstop = None
        if values is not None and num > 0:
            d = np.moveaxis(values, axis, 0)
            t = np.reshape(np.arange(num) / max(steps, 1), (num,) + (1,) * (np.ndim(d) - 1))
            dstart = np.add.reduce(d * (1 - t), axis=0)
            dstop = np.add.reduce(d * t, axis=0)
        if step is not None and steps > 0:
            dstart, dstop = plus(dstart, -step / steps), plus(dstop, step / steps)
        return unbroadcast(dstart, start), unbroadcast(dstop, stop)

    return z, pullback


@rrule(np.arange)
def arange(*args, **options):
    z = np.arange(*args, **options)

    def pullback(dz):
        # Element i is start + i*step, with start = 0 and step = 1 where they are left out.
        if len(args) == 1:
            return (None,)
        dstart = unbroadcast(np.add.reduce(dz), args[0])
        if len(args) == 2:
            return dstart, None
        return dstart, None, unbroadcast(np.add.reduce(dz * np.arange(len(z))), args[2])

    return z, pullback


@rrule(np.full)
def full(shape, fill_value, dtype=None, order="C", **options):
    def pullback(dz):
        return None, unbroadcast(dz, fill_value)

    return np.full(shape, fill_value, dtype, order, **options), pullback


@rrule(np.full_like)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    def pullback(dz):
        return None, unbroadcast(dz, fill_value)

    return np.full_like(a, fill_value, dtype, order, subok, shape, **options), pullback


for kind in (np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64):
    elementwise(kind, 1)

nondiff(np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like)
nondiff(np.bool_, np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)
nondiff(np.eye, np.identity, np.tri, np.indices)
nondiff(np.bartlett, np.blackman, np.hamming, np.hanning)  # of a number of points
nondiff(np.diag_indices, np.diag_indices_from, np.mask_indices)
nondiff(np.tril_indices, np.tril_indices_from, np.triu_indices, np.triu_indices_from)
nondiff(np.packbits, np.unpackbits)
