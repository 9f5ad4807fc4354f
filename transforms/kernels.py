"""The cheapest equivalent of each operation, and what is known about the memory of its result.

Words
-----
kernel   how an op is written when there is a cheaper way than to call its function: ``add_reduce(x, None)`` for
         ``np.sum(x)``. A kernel gives the same result to the bit, or it is not used.
fresh    an op whose result is a new array, in memory of its own.
view     an op whose result lies in the memory of its first operand.
steady   an op whose value has the same type and shape whenever its operands have.
straight an array that lies in memory row by row without gaps (C-contiguous), as a program can be sure: it has made it
         so, or a guard looks at it.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Collection
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ..rules import broadcasting, mutation, operators, zeros
from ..rules.linear import variable
from ..rules.registry import is_typed_by_operands, lookup, varies
from ..tracer.kinds import attribute, is_one_of, isinstance
from ..tracer.source import INFIX, PREFIX
from ..tracer.tape import ATOMS, Op, element, ops_in

Assembly = Any  # the assemble.Assembly that a kernel is written to
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
NUMBERS = (float, int)


def is_array(x: Any) -> bool:
    """Is ``x`` a variable that holds a plain array of numbers?"""
    return isinstance(x, Op) and type(x.value) is np.ndarray and x.value.dtype.kind in "fcibu"


def value_of(x: Any) -> Any:
    return x.value if isinstance(x, Op) else x


def hashable(fn: Any) -> bool:
    """Whether a callable can be looked up; a weak reference would ask what it refers to, which may be gone."""
    kind = type(fn)
    return getattr(kind, "__hash__", None) is not None and not issubclass(kind, weakref.ref)


def shared_layout(x: Any, y: Any) -> bool:
    """Could one of two arrays take the place of the other?"""
    return bool(
        type(x) is np.ndarray
        and x.shape == y.shape
        and x.dtype == y.dtype
        and x.strides == y.strides
        and x.dtype.kind in "fcibu"
    )


# ------------------------------------------------------------------------------------------------- memory

FRESH = frozenset(
    (
        *(np.sum, np.prod, np.mean, np.max, np.min, np.amax, np.amin, np.var, np.std),
        *(np.cumsum, np.cumprod, np.argmax, np.argmin),
        *(np.dot, np.outer, np.inner, np.vdot, np.tensordot, np.kron),
        *(np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.full_like),
        *(np.copy, np.concatenate, np.stack, np.where, np.sort, np.arange, np.linspace, np.eye),
        *(mutation.setitem, mutation.scatter, mutation.scatter_add, mutation.multiply_at),
        *(zeros.product, zeros.quotient, zeros.ratio),
    )
)
VIEWS = frozenset((np.transpose, np.swapaxes, np.expand_dims, np.squeeze, np.reshape, np.ravel))


def is_fresh(op: Op) -> bool:
    """Is the value of an op an array in memory of its own?"""
    fn = op.fn
    if type(op.value) is not np.ndarray or "out" in op.kwargs or not hashable(fn):
        return False
    if isinstance(fn, np.ufunc):
        return fn.nout == 1 and len(op.args) == fn.nin
    if fn in INFIX or fn in PREFIX:
        return fn is not operator.pos
    owner = attribute(fn, "__self__")
    return fn in FRESH or isinstance(owner, np.ufunc)


def is_view(op: Op) -> bool:
    """Does the value of an op lie in the memory of its first operand, and of no other?"""
    fn = op.fn
    if not hashable(fn) or not op.args or not is_array(op.args[0]):
        return False
    return fn in VIEWS or fn is operator.getitem or fn is broadcasting.expand


def is_native(fn: Any) -> bool:
    """Is a function, as it is called in a program, C code, so that NumPy's warnings come from the program itself?"""
    if isinstance(fn, np.ufunc) or isinstance(attribute(fn, "__self__"), np.ufunc):
        return True
    inner = getattr(fn, "_implementation", fn)
    return isinstance(inner, BuiltinFunctionType) or (hashable(fn) and fn in (*INFIX, *PREFIX))


# ------------------------------------------------------------------------------------------------- steady

varies(np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.compress, np.extract, np.repeat)
varies(np.trim_zeros, np.setdiff1d, np.union1d, np.intersect1d, np.setxor1d, np.bincount)
varies(np.delete, np.insert, np.arange, np.linspace, np.ndarray.nonzero, np.ndarray.compress)
varies(np.ndarray.repeat)


# These cannot fail on plain floats.
SAFE = frozenset((operator.add, operator.sub, operator.mul, operator.neg, operator.pos))

POWERS = frozenset((operator.pow, operator.ipow, pow))

# Further functions whose values are of one type for operands of one type.
STEADY: set[Any] = {zeros.product, zeros.quotient, zeros.ratio}


def is_steady(op: Op) -> bool:
    """Does the type of the value follow from the types of the operands?"""
    fn, args, value = op.fn, op.args, op.value
    if not hashable(fn):
        return False
    if fn in STEADY:
        return True
    if fn in POWERS:
        return is_steady_power(*args)
    if fn in INFIX or fn in PREFIX or getattr(fn, "steady", False) is True:
        return True
    if fn is element:
        return isinstance(args[0], Op) and is_steady(args[0])
    if fn is mutation.setitem or fn is mutation.scatter_add:
        return is_array(args[0])
    if fn is operator.getitem or fn is mutation.others_at or fn is mutation.divides:
        return steady_index(args[0], args[1])
    if isinstance(fn, np.ufunc):  # to which an integer of more than 64 bits is an object
        return type(value) is np.ndarray or not any(type(x.value) is int for x in op.operands())
    if getattr(math, attribute(fn, "__name__", ""), None) is fn:
        return True
    if fn is max or fn is min:  # which give one of several things, as it is
        given = args if len(args) > 1 else args[0]
        return is_one_of(type(given), (tuple, list)) and len({type(value_of(x)) for x in given}) < 2
    if any(map(is_count, op.operands())):
        return False
    if isinstance(attribute(fn, "__self__"), np.ufunc):
        return True
    if fn is np.array or fn is np.asarray:
        return all(is_array(x) or isinstance(x.value, (float, np.inexact)) for x in op.operands())
    rule = lookup(fn)
    if rule is None or rule.recorded or not is_typed_by_operands(fn):
        return False
    if fn is np.where:
        return len(args) == 3
    return isinstance(value, (np.ndarray, np.inexact, float, tuple))


def is_steady_power(x: Any, p: Any, *modulus: Any) -> bool:
    """Is a power of one type: a negative number to a fraction is complex, an integer to a negative one a float."""
    base, exponent = type(value_of(x)), type(value_of(p))
    if modulus or not all(is_one_of(kind, (float, int, bool)) for kind in (base, exponent)):
        return True
    if exponent is float:
        return not isinstance(x, Op) and x > 0
    return base is float


def may_raise(op: Op) -> bool:
    """Whether Python might raise an exception: for a number outside of what a function takes, or of an array."""
    if op.fn is operator.getitem:
        return any(True for _ in ops_in(op.args[1]))
    return is_one_of(type(op.value), (float, int, complex)) and op.fn not in SAFE


def is_count(op: Op) -> bool:
    """Whether a value may be a shape: an integer, or an array of them."""
    kind = type(op.value)
    if kind is np.ndarray:
        return op.value.dtype.kind in "iu" and op.value.ndim < 2
    return kind is int or issubclass(kind, np.integer)


def steady_index(x: Any, index: Any) -> bool:
    """Does ``x[index]`` have the same type and shape for other values of the variables in it?"""
    if not is_array(x):
        return False
    for part in index if type(index) is tuple else (index,):
        if isinstance(part, Op):
            if np.asarray(part.value).dtype.kind == "b":
                return False
        elif any(True for _ in ops_in(part)):
            return False
    return True


# ------------------------------------------------------------------------------------------------ kernels

Kernel = Callable[[Assembly, Op], str | None]
KERNELS: dict[Any, Kernel] = {}


def kernel(*fns: Any) -> Callable[[Kernel], Kernel]:
    def enter(write: Kernel) -> Kernel:
        for fn in fns:
            KERNELS[fn] = write
        return write

    return enter


def static(tree: Any) -> bool:
    """Does an argument hold no variable?"""
    return issubclass(type(tree), ATOMS) or not any(True for _ in ops_in(tree))


def given(op: Op, *names: str) -> dict[str, Any] | None:
    """The arguments after the first by name, if they are plain and nothing else was given."""
    found = dict(zip(names, op.args[1:], strict=False)) | op.kwargs
    if len(op.args) > len(names) + 1 or not found.keys() <= set(names) or not static(found):
        return None
    return found if is_array(op.args[0]) else None


def reduction(ufunc: np.ufunc, *fns: Any) -> None:
    """``np.sum`` is ``np.add.reduce`` with Python around it."""

    def write(to: Assembly, op: Op) -> str | None:
        options = given(op, "axis", "dtype", "out", "keepdims")
        if options is None or options.get("dtype") is not None or options.get("out") is not None:
            return None
        axis = options.get("axis", 0 if op.fn == ufunc.reduce else None)
        keep = options.get("keepdims", False)
        if keep is np._NoValue:
            keep = False
        if type(keep) is not bool or not isinstance(axis, (int, tuple, type(None))):
            return None
        if type(axis) is tuple and len(axis) == 1:
            axis = axis[0]
        elif axis is None and op.args[0].value.ndim == 1:
            axis = 0
        rest = "".join([", None, None, True" if keep else ""])
        where = "" if axis == 0 and not keep else f", {axis!r}"
        return f"{to.function(ufunc.reduce)}({to.argument(op.args[0])}{where}{rest})"

    for fn in (ufunc.reduce, *fns):
        KERNELS[fn] = write
        REDUCTIONS.add(fn)


REDUCTIONS: set[Any] = set()  # whose kernels hold for operands of any sizes that are `unsized`
reduction(np.add, np.sum, np.ndarray.sum)
reduction(np.multiply, np.prod, np.ndarray.prod)
reduction(np.maximum, np.max, np.amax, np.ndarray.max)
reduction(np.minimum, np.min, np.amin, np.ndarray.min)


@kernel(np.mean, np.ndarray.mean)
def mean(to: Assembly, op: Op) -> str | None:
    """The sum over the count, which is what `np.mean` computes for double precision."""
    options = given(op, "axis", "dtype", "out", "keepdims")
    x = op.args[0]
    if options is None or options.keys() & {"dtype", "out", "keepdims"}:
        return None
    axis = options.get("axis")
    if x.value.dtype != FLOATS[0] or not x.value.size or not isinstance(axis, (int, type(None))):
        return None
    if axis is None and x.value.ndim == 1:
        axis = 0
    where = "" if axis == 0 else f", {axis!r}"
    if x in to.unsized:
        count = f"{to.argument(x)}.{'size' if axis is None else f'shape[{axis}]'}"
    else:
        count = to.scalar(x.value.size if axis is None else x.value.shape[axis], op)
    return f"{to.function(np.add.reduce)}({to.argument(x)}{where}) / {count}"


REDUCTIONS.update((np.mean, np.ndarray.mean))


def method(name: str, *fns: Any, parameters: tuple[str, ...] = ()) -> None:
    """The method is what the function calls."""

    def write(to: Assembly, op: Op) -> str | None:
        if op.kwargs or len(op.args) > len(parameters) + 1 or not is_array(op.args[0]):
            return None
        rest = ", ".join(map(to.argument, op.args[1:]))
        return f"{to.argument(op.args[0])}.{name}({rest})"

    for fn in fns:
        KERNELS[fn] = write


method("reshape", np.reshape, parameters=("shape",))
method("squeeze", np.squeeze, parameters=("axis",))
method("swapaxes", np.swapaxes, parameters=("axis1", "axis2"))
method("ravel", np.ravel)
method("trace", np.trace)
method("diagonal", np.diagonal)
method("astype", broadcasting.cast, parameters=("dtype",))


@kernel(np.transpose, np.ndarray.transpose)
def transpose(to: Assembly, op: Op) -> str | None:
    if op.kwargs or not is_array(op.args[0]):
        return None
    x = to.argument(op.args[0])
    return f"{x}.T" if op.args[1:] in ((), (None,)) else f"{x}.transpose({to.argument(op.args[1])})"


@kernel(np.copy)
def copy(to: Assembly, op: Op) -> str | None:
    return (
        f"{to.argument(op.args[0])}.copy('K')"
        if len(op.args) == 1 and is_array(op.args[0])
        else None
    )


@kernel(np.dot)
def dot(to: Assembly, op: Op) -> str | None:
    if op.kwargs or len(op.args) != 2 or not all(map(is_array, op.args)):
        return None
    return f"{to.argument(op.args[0])}.dot({to.argument(op.args[1])})"


@kernel(operator.matmul, np.matmul)
def matmul(to: Assembly, op: Op) -> str | None:
    """``x.dot(y)`` where both call the same routine of the BLAS, which is faster to reach from there."""
    if op.kwargs or len(op.args) != 2 or not all(map(is_array, op.args)):
        return None
    x, y = (to.argument(x) for x in op.args)
    a, b = (x.value for x in op.args)
    same = all(v.ndim == 2 and min(v.shape) > 1 and v.dtype == a.dtype in FLOATS for v in (a, b))
    same = same and all(v.flags.c_contiguous or v.flags.f_contiguous for v in (a, b))
    same = same or (is_plain_product(op) and all(is_straight(x, to.straight) for x in op.args))
    return f"{x}.dot({y})" if same else f"{x} @ {y}"


def is_plain_product(op: Op) -> bool:
    """Is an op a product of vectors or matrices that the BLAS computes, if both are straight?"""
    if op.fn not in (operator.matmul, np.matmul) or op.kwargs or len(op.args) != 2:
        return False
    a, b = map(value_of, op.args)
    return all(
        is_array(x) and v.ndim in (1, 2) and min(v.shape) > 0 and v.dtype == a.dtype in FLOATS
        for x, v in zip(op.args, (a, b), strict=True)
    )


def is_straight(x: Any, known: Collection[Op]) -> bool:
    """Is an array straight, if those that are known are?"""
    while isinstance(x, Op) and x.fn is operator.getitem and is_whole(x.args[1]):
        x = x.args[0]  # a row of it is, too
    if x in known:
        return True
    return isinstance(x, Op) and is_fresh(x) and (x.value.ndim == 1 or is_plain_product(x))


def is_whole(index: Any) -> bool:
    return type(value_of(index)) is int


def number(to: Assembly, op: Op) -> str | None:
    """A number beside an array as an array without axes: the conversion costs as much as a small multiplication."""
    if op.kwargs or len(op.args) != 2 or type(op.value) is not np.ndarray:
        return None
    x, y = op.args
    if not isinstance(x, Op):
        texts = to.scalar(x, op), to.operand(y)
    elif not isinstance(y, Op):
        texts = to.operand(x), to.scalar(y, op)
    else:
        return None
    return f"{texts[0]} {INFIX[op.fn]} {texts[1]}"


for fn in (operator.add, operator.sub, operator.mul, operator.truediv):
    KERNELS[fn] = number


@kernel(variable)
def itself(to: Assembly, op: Op) -> str | None:
    return to.argument(op.args[0])


@kernel(operators.finite_power)
def finite_power(to: Assembly, op: Op) -> str | None:
    """Between Python's numbers without a call."""
    x, p, y = op.args
    if (
        op.kwargs
        or type(op.value) is not float
        or type(value_of(x)) is not float
        or not isinstance(x, Op)
    ):
        return None
    if not is_one_of(type(p), (int, float)) or not is_one_of(type(y), (int, float)):
        return None
    if p < 0 == y:
        return "0.0"  # any number will do: ``y`` is a factor of the slope
    if p < 0 <= y == round(y):  # what is not finite is zero there, at any base
        return None
    power = f"{to.argument(x)} ** {to.operand(p)}"
    return f"0.0 if {to.argument(x)} == 0 else {power}" if p < 0 < y else power
