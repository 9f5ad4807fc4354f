"""What writes into arrays, as pure functions that return the array which the write would leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .broadcasting import is_integral, unbroadcast
from .registry import nondiff, query, rrule


def setitem(x: Any, index: Any, value: Any) -> Any:
    """A copy of ``x`` with ``value`` written at ``index``."""
    y = x.copy(order="K")
    y[index] = value
    return y


@rrule(setitem)
def _setitem(x, index, value):
    def pullback(dz):
        dv = dz[index]
        if may_repeat(index):
            dv = np.where(last_writes(index, np.shape(x)), dv, 0)
        return setitem(dz, index, 0), None, unbroadcast(dv, value)

    return setitem(x, index, value), pullback


def scatter(d: Any, index: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros of ``shape`` and ``dtype`` with ``d`` added at ``index``: the pullback of ``x[index]``."""
    y = np.zeros(shape, dtype)
    if may_repeat(index):
        np.add.at(y, index, d)
    else:
        y[index] = d
    return y


@rrule(scatter)
def _scatter(d, index, shape, dtype):
    def pullback(dz):
        return unbroadcast(dz[index], d), None, None, None

    return scatter(d, index, shape, dtype), pullback


def scatter_add(x: Any, index: Any, d: Any) -> Any:
    """A copy of ``x`` with ``d`` added at ``index``, repeated indices counted each time."""
    y = x.copy(order="K")
    np.add.at(y, index, d)
    return y


@rrule(scatter_add)
def _scatter_add(x, index, d):
    def pullback(dz):
        return dz, None, unbroadcast(dz[index], d)

    return scatter_add(x, index, d), pullback


@query
def may_repeat(index: Any) -> bool:
    """Can ``index`` name an element twice? Only arrays of integers can."""
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, list) or (isinstance(i, np.ndarray) and i.ndim):
            if np.asarray(i).dtype.kind in "iu":
                return True
        elif isinstance(i, tuple):
            return True
    return False


def last_writes(index: Any, shape: tuple[int, ...]) -> Any:
    """Which of the elements of ``x[index]`` an assignment leaves in place: the last one where some coincide."""
    owner = np.empty(shape, np.intp)
    ids = np.arange(owner[index].size).reshape(owner[index].shape)
    owner[index] = ids
    return owner[index] == ids


nondiff(last_writes)


def write_through(
    parent: Any, view: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], new: Any
) -> Any:
    """A copy of ``parent`` after ``new`` has been written into its view ``view(parent, *args, **kwargs)``."""
    y = parent.copy(order="K")
    part = view(y, *args, **kwargs)
    if np.may_share_memory(part, y) or not y.size:
        part[...] = new
        return y
    # Where the copy is laid out in another way than the original, a reshape may have copied: find the
    # elements by their number instead.
    y = parent.copy(order="C")
    where = view(np.arange(y.size).reshape(y.shape), *args, **kwargs)
    y.reshape(-1)[where] = new
    return y


@rrule(write_through)
def _write_through(parent, view, args, kwargs, new):
    def pullback(dz):
        dnew = None if is_integral(new) else unbroadcast(view(dz, *args, **kwargs), new)
        return write_through(dz, view, args, kwargs, 0), None, None, None, dnew

    return write_through(parent, view, args, kwargs, new), pullback
