"""Which of NumPy's functions are linear, and so their own rule in forward mode.

Elementwise functions have theirs from their partials, linear algebra is in ``tangents_linalg``; for everything else
the forward mode transposes the pullback.
"""

from __future__ import annotations

import operator

import numpy as np

from .broadcasting import cast, expand
from .linear import linear, multilinear
from .mutation import of_places, scatter, scatter_add, setitem
from .numpy_ufuncs import methods
from .registry import lookup

linear(operator.getitem, cast, expand, scatter, of_places)
linear(setitem, scatter_add, wrt=(0, 2))

linear(np.sum, np.add.reduce, np.add.reduceat, np.mean, np.cumsum, np.add.accumulate, np.trace)
linear(np.gradient)
linear(np.reshape, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to, np.transpose)
linear(np.swapaxes, np.moveaxis, np.flip, np.roll, np.repeat, np.tile, np.delete, np.take)
linear(np.tril, np.triu, np.diag, np.diagonal, np.diagflat)
linear(np.real, np.imag, np.conjugate)
linear(np.concatenate, np.stack, np.vstack, np.hstack, np.array, np.asarray)
linear(np.where, wrt=(1, 2))
linear(np.add.outer, np.subtract.outer, wrt=(0, 1))

for name in (
    "sum mean cumsum trace reshape ravel flatten squeeze transpose swapaxes repeat take diagonal "
    "astype item conjugate conj"
).split():
    linear(*[fn for fn in methods(name) if lookup(fn) is not None])

multilinear(np.matmul, operator.matmul, operator.imatmul, np.dot, *methods("dot"))
multilinear(np.inner, np.outer, np.vdot, np.tensordot, np.einsum, np.multiply.outer)
multilinear(np.cross, np.convolve, np.correlate)
multilinear(*[getattr(np, name) for name in ("vecdot", "matvec", "vecmat") if hasattr(np, name)])
