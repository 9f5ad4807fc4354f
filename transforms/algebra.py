"""Algebra on reverse tapes: what the rules wrote down literally, as somebody would write it by hand.

Words
-----
sum     what stands for a cotangent until somebody needs its value: ``c1*core1 + c2*core2 + …``, spread over a shape.
core    an op in such a sum. It has as many axes as the shape, of length 1 where it is to be spread, or none at all;
        ``None`` in its place is the number 1.
known   found among the ops that are on the tape already, those of the forward run included.

Each rule is a line of the table ``RULES``: it takes the op apart into sums, and gives a sum, or None where it does
not apply. A number is carried along until it meets another one, or the result; a number times a sum of cores is one
multiplication; a broadcast happens in the operation that needs it, or not at all. Nothing here looks further than at
the operands of an op, so all of it is linear in the length of the tape.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from ..rules import numpy_shapes
from ..rules.broadcasting import cast, expand
from ..rules.mutation import scatter, scatter_add, setitem
from ..rules.operators import finite_power
from ..rules.zeros import product, quotient
from ..tracer.tape import (
    NOWHERE,
    FloatOp,
    Op,
    Signature,
    Site,
    Tape,
    append,
    ops_in,
    primal,
    substitute,
)
from .kernels import hashable, is_array, is_fresh, static
from .rescue import rescued, swallowed
from .simplify import pruned

TERMS = 4  # a sum of more cores is computed: each of them keeps an array alive
SPANS = 16  # so many pieces of an array are remembered


class Sum:
    """``c1*core1 + c2*core2 + …`` spread over ``shape``."""

    __slots__ = ("shape", "terms")

    def __init__(self, terms: dict[Op | None, float], shape: tuple[int, ...]) -> None:
        self.terms = {core: c for core, c in terms.items() if c != 0}
        self.shape = shape

    @property
    def is_number(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and None in self.terms)

    @property
    def number(self) -> float:
        return self.terms.get(None, 0.0)


class Pile(Op):
    """A core that is not computed yet: the sum of the outer products of columns and rows.

    The gradient of a matrix that meets a vector at each step of a loop is such a sum. Three and more of them are one
    product of two matrices.
    """

    __slots__ = ("columns", "rows")

    def __init__(self, column: Op, row: Op, site: Site, tape: Tape) -> None:
        shape = len(column.value), row.value.size
        value = np.broadcast_to(np.zeros((), row.value.dtype), shape)
        super().__init__(np.outer, (), value, site, tape)
        self.columns = [column]
        self.rows = [row]


class Algebra:
    """One pass over a tape; ``out`` is the tape that it makes."""

    def __init__(self, tape: Tape, keep: Collection[Op]) -> None:
        self.tape = tape
        self.out = Tape(tape.name, tape.site)
        self.fixed = set(keep)
        self.sums: dict[Op, Sum] = {}
        self.made: dict[
            Op, Any
        ] = {}  # what has the value of an op of the old tape: an op or a number
        self.known: dict[Hashable, Op] = {}
        self.multiples: dict[Op, tuple[float, Op]] = {}  # by a number, of which op
        self.risky: set[Op] = set()  # computed plainly where the rules ask for more
        self.load: Counter[Op] = Counter()  # by how many ops a core will be needed
        self.lost = swallowed(tape.ops, self.fixed)
        self.spans: dict[
            Op, list[tuple[int, int]]
        ] = {}  # the parts of vectors of zeros that are written
        self.products: dict[Hashable, Op] = {}  # A.T @ B, by A, B and the axis that is summed over
        self.given: set[Op] = set()  # arrays that are part of the result
        self.site = NOWHERE
        self.uses: dict[Op, int] = defaultdict(int)
        for x in ops_in(tape.result):
            self.uses[x] += 1
        for op in tape.ops:
            if op not in self.fixed:
                for x in op.operands():
                    self.uses[x] += 1
        self.pairs: dict[Op, tuple[float, Op | None]] = {}  # of Python's numbers: a sum of one core

    def run(self) -> Tape:
        with np.errstate(all="ignore"):
            for op in self.tape.ops:
                if op.kind != "call" or op in self.fixed:
                    self.out.ops.append(op)
                    key = None
                    if type(op) is FloatOp:
                        key = float_key(op.fn, *op.args)
                    elif op.kind == "call":
                        key = key_of(op.fn, op.args, op.kwargs)
                    if key is not None:
                        self.known.setdefault(key, op)
                else:
                    self.step(op)
            self.finish()
        return self.out

    def number_step(self, op: Op) -> bool:
        """The rules for arithmetic between Python's numbers, of which there may be very many, in short."""
        fn, args = op.fn, op.args
        if fn is operator.neg:
            first = self.pair(args[0])
            if first is None:
                return False
            self.pairs[op] = -first[0], first[1]
            return True
        if len(args) != 2 or fn not in ARITHMETIC:
            return False
        first, second = self.pair(args[0]), self.pair(args[1])
        if first is None or second is None:
            return False
        (c, p), (k, q) = first, second
        core: Op | None
        if fn is operator.mul:
            n = c * k
            if n == 0 and c and k:
                return False
            core = self.float_op(fn, p, q) if p is not None and q is not None else p or q
        elif fn is operator.truediv:
            if k == 0 or (c and not c / k):
                return False
            n = c / k
            if q is None:
                core = p
            else:
                core, n = (
                    (self.float_op(fn, n, q), 1.0) if p is None else (self.float_op(fn, p, q), n)
                )
        else:
            if fn is operator.sub:
                k = -k
            if p is q:
                core, n = p, c + k
            elif not c or not k:
                (n, core) = (c, p) if c else (k, q)
            else:
                if abs(c) != abs(k) or p is None or q is None:
                    p, c = self.float_scaled(p, abs(c)), math.copysign(1.0, c)
                    q, k = self.float_scaled(q, abs(k)), math.copysign(1.0, k)
                if c == k:
                    core, n = self.float_op(operator.add, p, q), c
                elif c > 0:
                    core, n = self.float_op(operator.sub, p, q), c
                else:
                    core, n = self.float_op(operator.sub, q, p), k
        if not math.isfinite(n):
            return False
        if core is not None and n not in (1.0, -1.0, 0.0) and (abs(n) < 1 or self.uses[op] > 1):
            # A small number is not put off: the product of the others might overflow.
            core, n = self.float_op(operator.mul, core, n), 1.0
        self.pairs[op] = (n, core) if n else (0.0, None)
        return True

    def pair(self, x: Any) -> tuple[float, Op | None] | None:
        """A Python number as a number and a core."""
        if not isinstance(x, Op):
            return (float(x), None) if is_factor(x) and math.isfinite(x) else None
        found = self.pairs.get(x)
        if found is not None:
            return found
        if type(x.value) is not float or x in self.sums:
            return None
        new = self.made.get(x, x)
        return (1.0, new) if isinstance(new, Op) else None

    def float_scaled(self, x: Op | None, c: float) -> Any:
        return c if x is None else x if c == 1 else self.float_op(operator.mul, x, c)

    def float_op(self, fn: Any, x: Any, y: Any) -> Op:
        """`apply` for arithmetic between Python's numbers."""
        key = float_key(fn, x, y)
        found = self.known.get(key)
        if found is None:
            a, b = x.value if isinstance(x, Op) else x, y.value if isinstance(y, Op) else y
            kinds = fn, Op if a is not x else float, Op if b is not y else float
            signature = signatures.get(kinds)
            if signature is None:
                signature = signatures[kinds] = Signature.of(fn, *kinds[1:])
            found = self.known[key] = FloatOp(fn, (x, y), fn(a, b), self.site, self.out, signature)
            self.out.ops.append(found)
        return found

    def register(self, op: Op, found: Sum) -> None:
        """Let a sum stand for an op of the old tape, and count how many ops will need each core."""
        self.sums[op] = found
        load, uses = self.load, self.uses[op]
        for core in found.terms:
            if core is not None:
                load[core] += uses
        for x in op.args:
            if isinstance(x, Op) and x in self.sums:
                for core in self.sums[x].terms:
                    if core in found.terms and core is not None:
                        load[core] -= 1  # handed on

    def finish(self) -> None:
        """Put the results on the new tape, checked if there is something to check."""
        old = [
            op
            for op in dict.fromkeys(ops_in(self.tape.result))
            if op not in self.fixed and op.kind == "call"
        ]
        new: dict[Op, Any] = {op: self.finished(op) for op in old}
        old = [op for op in old if isinstance(new[op], Op) and new[op].kind == "call"]
        if self.risky and old:
            careful = Tape(self.tape.name, self.tape.site)
            careful.ops, careful.result = self.tape.ops, tuple(old)
            found = rescued(
                self.out, self.risky, [new[op] for op in old], pruned(careful), self.spans
            )
            new.update(zip(old, found, strict=True))
        self.out.result = substitute(self.tape.result, lambda op: new.get(op, op))

    def step(self, op: Op) -> None:
        """Take over one op: as a sum if a rule knows it, else as it is."""
        self.site = op.site
        if type(op.value) is float and self.number_step(op):
            return
        rule = RULES.get(op.fn) if hashable(op.fn) else None
        if rule is not None and is_real(op.value):
            found = rule(self, op)
            if found is not None and all(map(math.isfinite, found.terms.values())):
                self.register(op, found)
                return
        args, kwargs = substitute(op.args, self.value), substitute(op.kwargs, self.value)
        self.made[op] = self.apply(op.fn, *args, **kwargs)

    def finished(self, op: Op) -> Any:
        """A leaf of the result that the sweep has computed; if it is an array, it is nobody else's."""
        x = self.value(op)
        if not isinstance(op.value, np.ndarray):
            return x
        s = self.sums.get(op)
        if s is not None and s.is_number:
            return self.apply(np.full, s.shape, s.number, op.value.dtype)
        owner = x
        while owner.fn in (np.reshape, np.transpose) and owner not in self.fixed:
            owner = owner.args[0]
        if (
            owner in self.fixed
            or owner in self.given
            or owner.kind != "call"
            or not is_fresh(owner)
        ):
            x = owner = self.apply(np.copy, x)
        self.given.add(owner)
        return x

    # ------------------------------------------------------------------------------------ ops on the new tape

    def apply(self, fn: Any, *args: Any, **kwargs: Any) -> Op:
        """The op that computes ``fn(*args, **kwargs)``: a known one, or a new one."""
        key = key_of(fn, args, kwargs)
        known = self.known.get(key) if key is not None else None
        if known is None:
            known = append(
                self.out, fn, args, kwargs, fn(*primal(args), **primal(kwargs)), self.site
            )
            if key is not None:
                self.known[key] = known
        return known

    def reshaped(self, x: Op, shape: tuple[int, ...]) -> Op:
        """``x`` in another shape; a reshape of a reshape is one."""
        if x.value.shape == shape:
            return x
        base = x.args[0] if x.fn is np.reshape and x not in self.fixed else x
        return base if base.value.shape == shape else self.apply(np.reshape, base, shape)

    def core(self, x: Op, ndim: int) -> Op:
        """``x`` with as many axes as a core must have in a sum of ``ndim`` axes."""
        shape = np.shape(x.value)
        return self.reshaped(x, (1,) * (ndim - len(shape)) + shape) if 0 < len(shape) < ndim else x

    def computed(self, core: Op) -> Op:
        """A core as an op on the tape."""
        if type(core) is not Pile:
            return core
        if len(core.columns) < 3:
            products = [
                self.plain(operator.mul, x, y) for x, y in zip(core.columns, core.rows, strict=True)
            ]
            return self.apply(operator.add, *products) if len(products) == 2 else products[0]
        columns = self.apply(np.array, [unlifted(x) for x in core.columns])
        rows = self.apply(np.array, [unlifted(x) for x in core.rows])
        product = self.apply(np.dot, self.apply(np.transpose, columns), rows)
        self.risky.add(product)
        return product

    # ------------------------------------------------------------------------------------------ from and to sums

    def sum(self, x: Any) -> Sum:
        """An operand as a sum."""
        if not isinstance(x, Op):
            return Sum({None: float(x)}, ())
        found = self.sums.get(x)
        if found is not None:
            return found
        pair = self.pairs.get(x)
        if pair is not None:
            return Sum({pair[1]: pair[0]}, ())
        new = self.made.get(x, x)
        if new.fn is operator.neg and is_array(new.args[0]) and is_real(new.args[0].value):
            return Sum({new.args[0]: -1.0}, np.shape(x.value))
        return Sum({new: 1.0}, np.shape(x.value))

    def value(self, x: Op) -> Any:
        """The op or number that has the value of ``x``, of its type, dtype and shape."""
        found = self.made.get(x)
        if found is None:
            pair = self.pairs.get(x)
            if pair is not None:
                c, core = pair
                found = self.made[x] = (
                    c if core is None else core if c == 1 else self.scaled(core, c)
                )
                return found
            s = self.sums.get(x)
            if s is None:
                return x
            found = self.made[x] = self.typed(self.total(s), s.shape, x.value)
        return found

    def typed(self, x: Any, shape: tuple[int, ...], like: Any) -> Any:
        """``x`` spread over a shape, and of the type or dtype of ``like``."""
        if not isinstance(x, Op):
            x = like.dtype.type(x) if hasattr(like, "dtype") else x
            return self.apply(expand, x, shape, None) if isinstance(like, np.ndarray) else x
        if np.shape(x.value) != shape:
            axes = tuple(
                i for i, n in enumerate(shape) if not np.ndim(x.value) or x.value.shape[i] != n
            )
            x = self.apply(expand, x, shape, axes)
        if isinstance(like, np.ndarray):
            kind = x.value.dtype if hasattr(x.value, "dtype") else None
            if type(x.value) is not np.ndarray:
                x = self.apply(np.asarray, x)
            return x if kind == like.dtype else self.apply(cast, x, like.dtype)
        return x if type(x.value) is type(like) else self.apply(type(like), x)

    def total(self, s: Sum) -> Any:
        """The value of a sum, not yet spread: an op, or a number."""
        groups: dict[float, list[tuple[Op, bool]]] = {}
        for core, c in s.terms.items():
            if core is not None:
                groups.setdefault(abs(c), []).append((self.computed(core), c > 0))
        acc: Any = s.number
        for c in sorted(groups, key=lambda c: c != 1):
            members = sorted(groups[c], key=lambda member: not member[1])
            part, plus = members[0]
            for core, sign in members[1:]:
                part = self.joined(operator.add if sign == plus else operator.sub, part, core)
            if acc == 0 and not isinstance(acc, Op):
                acc = self.scaled(part, c if plus else -c)
            else:
                acc = self.apply(operator.add if plus else operator.sub, acc, self.scaled(part, c))
        return acc

    def joined(self, fn: Any, x: Op, y: Op) -> Op:
        """``x + y`` or ``x - y``; of two products with a common factor, that of the other factors."""
        if x.fn is y.fn is operator.mul and self.load[x] == self.load[y] == 1:
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
                (p, u), (q, v) = (x.args[i], x.args[1 - i]), (y.args[j], y.args[1 - j])
                if p is q and np.shape(plain(u)) == np.shape(plain(v)) == x.value.shape:
                    return self.plain(operator.mul, self.apply(fn, u, v), p)
        return self.apply(fn, x, y)

    def scaled(self, x: Op, c: float) -> Op:
        if c == 1:
            return x
        if c == -1:
            y = self.apply(operator.neg, x)
        else:
            y = (
                self.apply(operator.mul, x, c)
                if x in self.fixed
                else self.plain(operator.mul, x, c)
            )
        self.multiples[y] = c, x
        return y

    def plain(self, fn: Any, x: Any, y: Any) -> Op:
        """A product or quotient in plain arithmetic, which is looked at in the end."""
        op = self.apply(fn, x, y)
        if op not in self.fixed and type(op.value) is not float:
            self.risky.add(op)
        return op

    def single(self, x: Any, size: float = math.inf) -> tuple[float, Op | None]:
        """An operand as a number and one core.

        The number is multiplied in at once where the cotangent is needed several times over, or where what will
        be computed of it has many more elements (``size``).
        """
        pair = self.pairs.get(x) if self.pairs else None
        if pair is not None:
            return pair
        s = self.sum(x)
        if not s.terms:
            return 0.0, None
        if len(s.terms) > 1:
            total = self.total(s)
            if self.uses[x] > 1:
                self.sums[x] = Sum({total: 1.0}, s.shape)
            return 1.0, total
        ((core, c),) = s.terms.items()
        if type(core) is Pile:
            core = self.computed(core)
            self.sums[x] = Sum({core: c}, s.shape)
        if core is None or c == 1:
            return c, core
        several = self.uses[x] > 1 and (c != -1 or np.ndim(core.value) > 0)
        if several or np.size(core.value) * 4 <= size < math.inf:
            return 1.0, self.scaled(core, c)
        return c, core

    def full(self, x: Any, size: float = math.inf) -> tuple[float, Op]:
        """An operand as a number and one core in its full shape."""
        c, core = self.single(x, size)
        shape = np.shape(plain(x))
        if core is None:
            return c, self.typed(1.0, shape, plain(x))
        return c, core if np.shape(core.value) == shape else self.typed(core, shape, plain(x))


def plain(x: Any) -> Any:
    return x.value if isinstance(x, Op) else x


def is_real(value: Any) -> bool:
    """Is this a real number, or an array of them? The rules are for these only."""
    if type(value) is np.ndarray or isinstance(value, np.floating):
        return bool(value.dtype.kind == "f")
    return type(value) is float


def is_factor(x: Any) -> bool:
    """Can ``x`` stand in a sum, or be multiplied with one?"""
    if isinstance(x, Op):
        value = x.value
        return is_real(value) or (type(value) is np.ndarray and value.dtype.kind in "biu")
    return type(x) in (float, int, bool) and abs(x) < 2**53


# ------------------------------------------------------------------------------------------- equal computations


def float_key(fn: Any, x: Any, y: Any) -> Hashable:
    """`key_of` for arithmetic on two Python numbers."""
    parts = id(x) if isinstance(x, Op) else part_key(x), id(y) if isinstance(y, Op) else part_key(y)
    return fn, frozenset(parts) if fn in COMMUTES else parts


def key_of(fn: Any, args: Any, kwargs: Any) -> Hashable | None:
    """A key that equal computations share."""
    if not hashable(fn):
        return None
    if fn in SUMS:
        return sum_key(fn, args, kwargs)
    fn = SAME.get(fn, fn)
    if fn not in SHARED or kwargs:
        return None
    try:
        parts = tuple([id(x) if isinstance(x, Op) else part_key(x) for x in args])
        hash(parts)
    except TypeError:
        return None
    return fn, frozenset(parts) if fn in COMMUTES else parts


def part_key(x: Any) -> Hashable:
    if type(x) is slice:
        return slice, part_key((x.start, x.stop, x.step))
    if type(x) is tuple or type(x) is list:
        return type(x), tuple([id(y) if isinstance(y, Op) else part_key(y) for y in x])
    return type(x), repr(x) if type(x) is float else x


def sum_key(fn: Any, args: Any, kwargs: Any) -> Any:
    """The key of a sum over axes of an array: that array, the axes, and whether these are kept."""
    if not isinstance(args[0], Op) or len(args) > 2 or not kwargs.keys() <= {"axis", "keepdims"}:
        return None
    axis = args[1] if len(args) == 2 else kwargs.get("axis", 0 if fn is np.add.reduce else None)
    if not isinstance(axis, (int, tuple, type(None))) or not is_real(args[0].value):
        return None
    return (
        np.sum,
        id(args[0]),
        axes_of(axis, np.ndim(args[0].value)),
        kwargs.get("keepdims") is True,
    )


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,))))


def dropped(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


SUMS = frozenset((np.sum, np.add.reduce, np.ndarray.sum))
SAME = {
    np.multiply: operator.mul, np.add: operator.add, np.subtract: operator.sub, np.negative: operator.neg,
    np.divide: operator.truediv, np.matmul: operator.matmul, product: operator.mul, quotient: operator.truediv,
}  # fmt: skip
ARITHMETIC = frozenset((operator.add, operator.sub, operator.mul, operator.truediv))
signatures: dict[Any, Signature] = {}
COMMUTES = frozenset((operator.add, operator.mul))
SHARED = frozenset(
    (
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
        *(
            operator.getitem,
            operator.matmul,
            np.array,
            np.dot,
            np.transpose,
            np.reshape,
            expand,
            np.eye,
        ),
        *(np.sin, np.cos, np.exp, np.log, np.sqrt, np.square, np.tanh, np.log1p, np.cosh, np.sinh),
        *(
            np.equal,
            np.greater,
            np.less,
            operator.gt,
            operator.lt,
            operator.ge,
            operator.le,
            np.abs,
        ),
        *(math.sin, math.cos, math.exp, math.log, math.sqrt, float, np.float64, cast),
    )
)

# ------------------------------------------------------------------------------------------------- the rules

Rule = Callable[[Algebra, Op], Sum | None]
RULES: dict[Any, Rule] = {}


def rule(*fns: Any) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for fn in fns:
            RULES[fn] = function
        return function

    return enter


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
    x = p or q
    if x is None:
        return Sum({None: c * k}, shape)
    if not is_real(x.value):  # a mask: the number makes it an array of numbers
        return Sum(
            {a.core(a.apply(operator.mul, x, element_of(op, c * k)), len(shape)): 1.0}, shape
        )
    return Sum({a.core(x, len(shape)): c * k}, shape)


def is_column(x: Op) -> bool:
    """Is this a vector that was made a column?"""
    return np.ndim(x.value) == 2 and x.value.shape[1] == 1 < len(x.value) and unlifted(x) is not x


def unlifted(x: Op) -> Op:
    """The vector of which a column or a row was made."""
    if x.fn is np.reshape or (x.fn is operator.getitem and x.args[1] == (slice(None), None)):
        return x.args[0] if np.ndim(x.args[0].value) == 1 else x
    return x


def element_of(op: Op, c: float) -> Any:
    """A number of the type of an op's elements."""
    return c if type(op.value) is float else op.value.dtype.type(c)


def times(a: Algebra, p: Op, q: Op) -> tuple[float, Op | None]:
    """The product of two cores, as a number and a core."""
    for whole, part in ((p, q), (q, p)):
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
                return c * rest, None
            if np.shape(rest.value) == np.shape(above.value):
                return c, a.reshaped(rest, whole.value.shape) if np.ndim(rest.value) else rest
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
            terms[core] = terms.get(core, 0.0) + factor * c
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
    s = a.sum(op.args[0])
    if not all(core is None or is_real(core.value) for core in s.terms):
        return None
    return Sum({core: -c for core, c in s.terms.items()}, s.shape)


@rule(expand)
def spread(a: Algebra, op: Op) -> Sum | None:
    """A broadcast is left to the operation that needs it."""
    d, shape, *rest = op.args
    if op.kwargs or any(True for _ in ops_in((shape, rest))) or not is_factor(d):
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
        known = a.known.get((np.sum, id(core), axes, keep))
        if known is not None:
            return 1.0, a.reshaped(known, ones_at(shape, axes)) if np.ndim(known.value) else known
    if core.fn is operator.mul:
        for p, q in (core.args, core.args[::-1]):
            # What is the same all along the axes can be multiplied in afterwards.
            if isinstance(p, Op) and isinstance(q, Op) and np.shape(q.value) == shape:
                if not np.ndim(p.value) or all(p.value.shape[i] == 1 for i in axes):
                    return times(a, p, summed(a, q, axes))
        found = a.products.get((*map(id, core.args), axes)) or a.products.get(
            (*map(id, core.args[::-1]), axes)
        )
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
    known = a.known.get((np.sum, id(x), axes, True))
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
    if not isinstance(d, Op) or not is_real(d.value) or any(True for _ in ops_in(shape)):
        return None
    if d.value.size == op.value.size and covers(index):
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
    if op.kwargs or not isinstance(x, Op) or any(True for _ in ops_in(op.args[1:])):
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
    if op.kwargs or len(op.args) != 2 or not is_factor(x) or any(True for _ in ops_in(op.args[1])):
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
    """What kind of a number it is matters in the end only."""
    x = op.args[0]
    return (
        a.sum(x)
        if len(op.args) == 1 and isinstance(x, Op) and is_real(x.value) and not np.ndim(x.value)
        else None
    )


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
        a.products[id(p.args[0]), id(q), (np.ndim(q.value) - 2,)] = core
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
    if d.value.size == op.value.size and covers(index):
        (c, p), (k, q) = a.full(x), a.full(d)
        q = a.reshaped(q, shape)
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
    x, y = op.args
    if (
        op.kwargs
        or not isinstance(x, Op)
        or type(x.value) is not float
        or type(y) not in (int, float)
        or y >= -1
    ):
        return None
    known = a.known.get(key_of(operator.pow, (x, y + 1), {}))
    return None if known is None else Sum({a.apply(operator.truediv, known, x): 1.0}, ())
