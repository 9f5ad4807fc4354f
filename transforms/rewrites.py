"""The rewrite rules of reverse tapes, each with the form in which somebody would write it by hand.

A rule is a function of the algebra and of an op of the literal tape. It looks at the sums that stand for the operands
and gives the sum that stands for the op, or None where the op is to be taken as it is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any

import numpy as np

from ..rules import numpy_shapes
from ..rules.broadcasting import expand
from ..rules.mutation import scatter, scatter_add, setitem
from ..rules.operators import finite_power
from ..rules.zeros import product, quotient
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.tape import Op, Tape, substitute
from .algebra import SPANS, TERMS, Algebra, Pile, Sum, rule, unlifted
from .equal import axes_of, dropped, is_factor, is_real, key_of, ones_at, plain, sum_key
from .kernels import static
from .simplify import pruned


def rewritten(tape: Tape, keep: Collection[Op]) -> Tape:
    """The tape with the rules below applied to every op that is not in ``keep``."""
    return Algebra(tape, keep).run()


def optimised(tape: Tape, keep: Collection[Op], stay: Collection[Op] = ()) -> Tape:
    """The tape with algebra applied to every op that is not in ``keep``, and without what nobody needs.

    The ops ``stay`` are kept all the same, for what they do beside giving a value.
    """
    return pruned(rewritten(tape, keep), keep_guards=True, stay=stay)


def rewritten_part(tape: Tape, keep: Collection[Op], handed: Collection[Op] = ()) -> Tape | None:
    """The same for a part of a program, with plain products: whoever runs it must look whether its results are finite.

    None if what is handed to the part, which another run of it has given, could be lost in it where it is not finite.
    """
    algebra = Algebra(tape, keep, part=True)
    return None if not algebra.lost.isdisjoint(handed) else algebra.run()


@rule(operator.mul, np.multiply, product)
def multiply(a: Algebra, op: Op) -> Sum | None:
    """Numbers are folded, a broadcast is left to the multiplication, and x/y*y is x."""
    if len(op.args) != 2 or op.kwargs or not all(map(is_factor, op.args)):
        return None
    shape = np.shape(op.value)
    (c, p), (k, q) = a.single(op.args[0]), a.single(op.args[1])
    if op.fn is product and op in a.lost and p is not None:
        return None
    if c and k and not c * k:
        return None  # too small for a number
    if not (c and k) and (p or q) is not None and not may_win(op):
        return None  # of an infinity it would be NaN
    if p is not None and q is not None:
        p, q = a.core(p, len(shape)), a.core(q, len(shape))
        for x, y in ((p, q), (q, p)):
            if is_column(x) and np.shape(y.value) == (1, shape[1]) and c * k == 1:
                return Sum({Pile(x, y, op.site, a.out): 1.0}, shape)
        n, core = times(a, p, q)
        n *= c * k
        if core is not None and core.fn is operator.mul and n != 1 and (n != -1 or a.uses[op] > 1):
            small, large = sorted((p, q), key=lambda x: np.size(x.value))
            if np.size(small.value) * 4 <= np.size(op.value):
                n, core = 1.0, a.plain(operator.mul, a.scaled(small, n), large)
        return Sum({core: n}, shape)
    only = p or q
    if only is None:
        return Sum({None: c * k}, shape)
    if not is_real(only.value):  # a mask: the number makes it an array of numbers
        only, c, k = a.apply(operator.mul, only, element_of(op, c * k)), 1.0, 1.0
    return Sum({a.core(only, len(shape)): c * k}, shape)


def may_win(op: Op) -> bool:
    """May the zero in a product be one that wins, against infinity too?

    That is a cotangent of an array; zeros which rules and programs have written, and Python's own numbers, do not.
    """
    factors = op.args[1:] if op.fn is product else op.args
    return type(op.value) is not float and all(isinstance(x, Op) or x for x in factors)


def is_column(x: Op) -> bool:
    """Is this a vector that was made a column?"""
    return np.ndim(x.value) == 2 and x.value.shape[1] == 1 < len(x.value) and unlifted(x) is not x


def element_of(op: Op, c: float) -> Any:
    """A number of the type of an op's elements."""
    return c if type(op.value) is float else op.value.dtype.type(c)


def times(a: Algebra, p: Op, q: Op) -> tuple[float, Op | None]:
    """The product of two cores, as a number and a core."""
    for whole, part in ((p, q), (q, p)) if not a.part else ():
        c, inner = a.multiples.get(whole, (1.0, whole))
        above, below = unshaped(inner), unshaped(part)
        if (
            isinstance(above, Op)  # and not a number
            and above.fn in QUOTIENTS
            and above.args[1] is below
            and np.shape(whole.value) == np.shape(part.value)
        ):
            rest = above.args[0]
            if not isinstance(rest, Op):
                a.watch(whole, part)
                return c * rest, None
            if np.shape(rest.value) == np.shape(above.value):
                a.watch(whole, part)
                return c, a.reshaped(rest, np.shape(whole.value)) if np.ndim(rest.value) else rest
    return 1.0, a.plain(operator.mul, p, q)


QUOTIENTS = (operator.truediv, np.divide, quotient)


def unshaped(x: Op) -> Op:
    return x.args[0] if x.fn is np.reshape else x


@rule(operator.truediv, np.divide, quotient)
def divide(a: Algebra, op: Op) -> Sum | None:
    """A number goes into the numerator."""
    if len(op.args) != 2 or op.kwargs or not all(map(is_factor, op.args)):
        return None
    shape = np.shape(op.value)
    (c, p), (k, q) = a.single(op.args[0], np.size(op.value)), a.single(op.args[1])
    if op.fn is quotient and op in a.lost and q is not None:
        return None
    if k == 0 or (c and not c / k):
        return None
    if q is None:
        return Sum({p: c / k}, shape) if p is None else Sum({a.core(p, len(shape)): c / k}, shape)
    q = a.core(q, len(shape))
    fn = operator.truediv if any(type(plain(x)) is not float for x in (p, q) if x) else op.fn
    if p is None:
        return Sum({a.plain(fn, c / k, q): 1.0} if c else {}, shape)
    return Sum({a.plain(fn, a.core(p, len(shape)), q): c / k}, shape)


@rule(operator.add, np.add)
def add(a: Algebra, op: Op) -> Sum | None:
    """Terms are collected: what is there twice is doubled, and what cancels is gone."""
    return collected(a, op, 1.0)


def collected(a: Algebra, op: Op, sign: float) -> Sum | None:
    if len(op.args) != 2 or op.kwargs or not all(map(is_factor, op.args)):
        return None
    shape = np.shape(op.value)
    sums = [a.sum(x) for x in op.args]
    count = sum(len(s.terms) for s in sums)
    for i, x in enumerate(op.args):
        if len(sums[i].terms) > 1 and (count > TERMS or a.uses[x] > 1):
            c, core = a.single(x)
            sums[i] = Sum({core: c}, sums[i].shape)
    terms: dict[Op | None, float] = {}
    for s, factor in zip(sums, (1.0, sign), strict=True):
        for core, c in s.terms.items():
            if core is not None:
                if not is_real(core.value):
                    return None
                core = a.core(core, len(shape))
            before = terms.get(core, 0.0)
            terms[core] = before + factor * c
            if core is not None and before * factor * c < 0:  # of an infinity it would be NaN
                if terms[core] == 0 or op in a.lost:
                    return None
                a.risky.add(core)
    piles = [core for core in terms if type(core) is Pile]
    if (
        len(piles) == 2
        and terms[piles[0]] == terms[piles[1]]
        and all(a.load[x] == 1 for x in piles)
    ):
        piles.sort(
            key=lambda pile: -len(pile.rows)
        )  # the short one onto the long one: linear in all
        piles[0].columns += piles[1].columns
        piles[0].rows += piles[1].rows
        del terms[piles[1]]
    return Sum(terms, shape)


@rule(operator.sub, np.subtract)
def subtract(a: Algebra, op: Op) -> Sum | None:
    return collected(a, op, -1.0)


@rule(operator.neg, np.negative)
def negate(a: Algebra, op: Op) -> Sum | None:
    """A sign is carried along until an addition becomes a subtraction."""
    if not is_factor(op.args[0]):
        return None
    s = a.sum(op.args[0])
    if not all(core is None or is_real(core.value) for core in s.terms):
        return None
    return Sum({core: -c for core, c in s.terms.items()}, s.shape)


@rule(expand)
def spread(a: Algebra, op: Op) -> Sum | None:
    """A broadcast is left to the operation that needs it."""
    d, shape, *rest = op.args
    if op.kwargs or not static((shape, rest)) or not is_factor(d):
        return None
    s = a.sum(d)
    if s.is_number:
        return Sum(s.terms, shape)
    c, core = a.single(d)
    assert core is not None
    if np.ndim(core.value) and len(s.shape) < len(shape):
        axes = axes_of(rest[0] if rest else None, len(shape))
        inner = iter(core.value.shape)
        core = a.reshaped(core, tuple(1 if i in axes else next(inner) for i in range(len(shape))))
    return Sum({core: c}, shape)


@rule(np.add.reduce)
def reduce(a: Algebra, op: Op) -> Sum | None:
    """The sum of an array that was spread is a multiple; of a sum it is taken in parts if all but one are known."""
    x = op.args[0]
    key = sum_key(op.fn, op.args, op.kwargs)
    if key is None or not is_factor(x):
        return None
    s = a.sum(x)
    _, _, axes, keep = key
    terms, unknown = parts(a, s, axes)
    if len(unknown) > 1:
        c, core = a.single(x)
        terms, unknown = parts(a, Sum({core: c}, s.shape), axes)
    for core, c in unknown:
        if len(s.terms) == 1:  # the number too, where others need it as well
            c, scaled = a.single(x)
            core = scaled or core
        rest = tuple(i for i in axes if core.value.shape[i] != 1)
        n = math.prod(s.shape[i] for i in axes if i not in rest)
        total = a.apply(np.add.reduce, core, axis=rest)
        if np.ndim(total.value):
            total = a.reshaped(total, ones_at(core.value.shape, axes))
        terms[total] = terms.get(total, 0.0) + c * n
    if keep:
        return Sum(terms, np.shape(op.value))
    left: dict[Op | None, float] = {}
    for found, c in terms.items():
        if found is not None and np.ndim(found.value):
            found = a.reshaped(found, dropped(found.value.shape, axes))
        left[found] = left.get(found, 0.0) + c
    return Sum(left, np.shape(op.value))


def parts(
    a: Algebra, s: Sum, axes: tuple[int, ...]
) -> tuple[dict[Op | None, float], list[tuple[Op, float]]]:
    """The sums over ``axes`` of the cores of ``s`` that cost next to nothing, with ones at the axes, and the rest."""
    terms: dict[Op | None, float] = {}
    unknown: list[tuple[Op, float]] = []
    for core, c in s.terms.items():
        core = core and a.computed(core)
        if core is None or not np.ndim(core.value):
            n, found = float(math.prod(s.shape[i] for i in axes)), core
        else:
            rest = tuple(i for i in axes if core.value.shape[i] != 1)
            n = float(math.prod(s.shape[i] for i in axes if i not in rest))
            factor, found = known_sum(a, core, rest)
            if factor == 0:
                unknown.append((core, c))
                continue
            n *= factor
        terms[found] = terms.get(found, 0.0) + c * n
    return terms, unknown


def known_sum(a: Algebra, core: Op, axes: tuple[int, ...]) -> tuple[float, Op | None]:
    """The sum of a core as a number and a core with ones at the axes, if it costs next to nothing; else 0."""
    if not axes:
        return 1.0, core
    shape = core.value.shape
    for keep in (True, False):
        known = a.known.get((np.sum, core, axes, keep))
        if known is not None:
            return 1.0, a.reshaped(known, ones_at(shape, axes)) if np.ndim(known.value) else known
    if core.fn is operator.mul:
        for p, q in (core.args, core.args[::-1]):
            # What is the same all along the axes can be multiplied in afterwards.
            if isinstance(p, Op) and isinstance(q, Op) and np.shape(q.value) == shape:
                if not np.ndim(p.value) or all(p.value.shape[i] == 1 for i in axes):
                    return times(a, p, summed(a, q, axes))
        x, y = core.args
        found = None
        if isinstance(x, Op) and isinstance(y, Op):
            found = a.products.get((x, y, axes)) or a.products.get((y, x, axes))
        if (
            found is not None
        ):  # the product of two matrices has the sums of products on its diagonal
            diagonal = a.apply(np.diagonal, found, 0, len(shape) - 2, len(shape) - 1)
            return 1.0, a.reshaped(diagonal, ones_at(shape, axes))
    elif (
        core.fn in MATMULS
        and axes == (len(shape) - 2,)
        and np.ndim(core.args[0].value) == len(shape)
    ):
        x, y = core.args
        return 1.0, a.apply(core.fn, summed(a, x, axes), y)
    return 0.0, None


def summed(a: Algebra, x: Op, axes: tuple[int, ...]) -> Op:
    """The sum of ``x`` over axes, with ones in their place."""
    known = a.known.get((np.sum, x, axes, True))
    if known is None:
        known = a.apply(np.add.reduce, x, axis=axes)
        if np.ndim(known.value):
            known = a.reshaped(known, ones_at(x.value.shape, axes))
    return known


MATMULS = (operator.matmul, np.matmul, np.dot)


# ------------------------------------------------------------------------------- what is linear in one operand


@rule(scatter)
def place(a: Algebra, op: Op) -> Sum | None:
    """What fills the whole array needs no zeros around it."""
    d, index, shape, _ = op.args
    if not isinstance(d, Op) or not is_real(d.value) or not static(shape):
        return None
    if np.size(d.value) == np.size(op.value) and covers(index):
        s = a.sum(d)
        if s.is_number:
            return Sum(s.terms, shape)
        c, core = a.full(d)
        return Sum({a.reshaped(core, shape): c}, shape)
    c, core = a.full(d, np.size(op.value))
    core = a.apply(scatter, core, substitute(index, a.value), *op.args[2:])
    span = span_of(index, shape)
    if span is not None:
        a.spans[core] = [span]
    return Sum({core: c}, shape)


def covers(index: Any) -> bool:
    """Does a basic index that leaves as many elements as there are keep their order? It does without steps."""
    for part in index if type(index) is tuple else (index,):
        if not (
            part is None
            or part is Ellipsis
            or type(part) is int
            or (type(part) is slice and static(part))
        ):
            return False
        if type(part) is slice and part.step not in (None, 1):
            return False
    return True


def span_of(index: Any, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The part of the first axis that an index keeps to: ``x[2]``, ``x[1:3]``, ``x[:, 1:3]`` of the last one."""
    if len(shape) != 1 or not isinstance(index, (int, slice)) or not static(index):
        return None
    if isinstance(index, slice):
        start, stop, step = index.indices(shape[0])
        return (start, stop) if step == 1 else None
    return index % shape[0], index % shape[0] + 1


PLAIN_AXES = ((), (None,))


@rule(np.transpose)
def transpose(a: Algebra, op: Op) -> Sum | None:
    """The transpose of a transpose is the matrix, and a number has none."""
    x = op.args[0]
    if op.kwargs or not isinstance(x, Op) or not static(op.args[1:]):
        return None
    s = a.sum(x)
    if s.is_number:
        return Sum(s.terms, np.shape(op.value))
    c, core = a.single(x)
    assert core is not None
    if not np.ndim(core.value):
        return Sum({core: c}, np.shape(op.value))
    if core.fn is np.transpose and core.args[1:] in PLAIN_AXES and op.args[1:] in PLAIN_AXES:
        return Sum({core.args[0]: c}, np.shape(op.value))
    return Sum({a.apply(np.transpose, core, *op.args[1:]): c}, np.shape(op.value))


@rule(np.reshape)
def reshape(a: Algebra, op: Op) -> Sum | None:
    x = op.args[0]
    shape = np.shape(op.value)
    if op.kwargs or len(op.args) != 2 or not is_factor(x) or not static(op.args[1]):
        return None
    s = a.sum(x)
    if s.is_number:
        return Sum(s.terms, shape)
    c, core = a.single(x)
    assert core is not None
    if not np.ndim(core.value):
        return Sum({core: c}, shape)
    if core.value.shape != s.shape:
        core = a.typed(core, s.shape, plain(x))
    return Sum({a.reshaped(core, shape) if shape else a.apply(np.reshape, core, ()): c}, shape)


@rule(float, np.float64)
def number(a: Algebra, op: Op) -> Sum | None:
    """What kind of a number it is matters in the end only, if none has fewer bits than a float."""
    x = op.args[0]
    if len(op.args) != 1 or not isinstance(x, Op) or not is_real(x.value) or np.ndim(x.value):
        return None
    return a.sum(x) if np.result_type(x.value).itemsize >= 8 else None


@rule(operator.matmul, np.matmul, np.dot)
def matmul(a: Algebra, op: Op) -> Sum | None:
    """Numbers are carried through, and a product with the unit matrix is the other matrix."""
    if (
        len(op.args) != 2
        or op.kwargs
        or not all(isinstance(x, Op) and is_real(x.value) for x in op.args)
    ):
        return None
    shape = np.shape(op.value)
    size = np.size(op.value)
    (c, p), (k, q) = a.full(op.args[0], size), a.full(op.args[1], size)
    if p.fn is np.eye or q.fn is np.eye:
        return Sum({q if p.fn is np.eye else p: c * k}, shape)
    small = np.ndim(p.value) in (1, 2) and np.ndim(q.value) in (1, 2)
    core = a.apply(np.dot if small else op.fn, p, q)
    if is_swap(p) and np.ndim(p.value) == np.ndim(q.value):
        a.products[p.args[0], q, (np.ndim(q.value) - 2,)] = core
    return Sum({core: c * k}, shape)


def is_swap(x: Op) -> bool:
    """Is this a matrix, or a stack of them, transposed?"""
    n = np.ndim(x.value)
    if x.fn is np.transpose and n == 2:
        return x.args[1:] in PLAIN_AXES
    return x.fn is np.swapaxes and {i % n for i in x.args[1:]} == {n - 1, n - 2}


@rule(numpy_shapes.on_diagonal)
def on_diagonal(a: Algebra, op: Op) -> Sum | None:
    """A number on the diagonal is a multiple of the unit matrix."""
    d, shape, *rest = op.args
    if op.kwargs or rest[:1] != [0] or len(shape) != 2 or shape[0] != shape[1] or not is_factor(d):
        return None
    s = a.sum(d)
    return Sum({a.apply(np.eye, shape[0]): s.number}, shape) if s.is_number else None


@rule(scatter_add)
def accumulate(a: Algebra, op: Op) -> Sum | None:
    """Where an array is zero still, an element is written, not added."""
    x, index, d = op.args
    shape = np.shape(op.value)
    if not (isinstance(x, Op) and isinstance(d, Op) and is_real(x.value) and is_real(d.value)):
        return None
    if np.size(d.value) == np.size(op.value) and covers(index):
        (c, p), (k, q) = a.full(x), a.full(d)
        q = a.reshaped(q, shape) if isinstance(q, Op) else a.typed(q, shape, op.value)
        return Sum({p: c, q: k} if p is not q else {p: c + k}, shape)
    (c, p), (k, q) = a.full(x), a.full(d)
    if c != k:
        c, p, q = 1.0, a.scaled(p, c), a.scaled(q, k)
    span, spans = span_of(index, shape), a.spans.get(p)
    if span is not None and spans is not None and len(spans) < SPANS:
        free = all(span[1] <= start or stop <= span[0] for start, stop in spans)
        core = a.apply(setitem if free else scatter_add, p, index, q)
        a.spans[core] = [*spans, span]
    else:
        core = a.apply(scatter_add, p, substitute(index, a.value), q)
    return Sum({core: c}, shape)


@rule(operator.pow, finite_power)
def power(a: Algebra, op: Op) -> Sum | None:
    """x**(y-1) is x**y/x; with a negative y the quotient is as exact, and a forward op has the power."""
    x, y, *_ = op.args
    if (
        op.kwargs
        or not isinstance(x, Op)
        or type(x.value) is not float
        or not is_one_of(type(y), (int, float))
        or y >= -1
    ):
        return None
    known = a.known.get(key_of(operator.pow, (x, y + 1), {}))
    return None if known is None else Sum({a.apply(operator.truediv, known, x): 1.0}, ())
