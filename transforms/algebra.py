"""Algebra on reverse tapes: what the rules wrote down literally, as somebody would write it by hand.

Words
-----
sum     what stands for a cotangent until somebody needs its value: ``c1*core1 + c2*core2 + …``, spread over a shape.
core    an op in such a sum. It has as many axes as the shape, of length 1 where it is to be spread, or none at all;
        ``None`` in its place is the number 1.
known   found among the ops that are on the tape already, those of the forward run included.

Each rule of the table ``RULES`` (see `rewrites`) takes the sums of an op's operands and gives a sum, or None where it
does not apply. A number is carried along until it meets another one, or the result; a number times a sum of cores is
one multiplication; a broadcast happens in the operation that needs it, or not at all. Nothing here looks further than
at the operands of an op, so all of it is linear in the length of the tape.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from ..rules.broadcasting import cast, expand
from ..tracer.kinds import is_one_of, isinstance
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
from .equal import ARITHMETIC, LARGEST, is_factor, is_real, key_of, pair_key, plain
from .kernels import hashable, is_array, is_fresh
from .rescue import rescued, swallowed
from .reverse import OWN
from .simplify import Rewriting, pruned

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


class Algebra(Rewriting):
    """The rewriting that goes by the rules for sums as well.

    A ``part`` of a program leaves it to the whole to look at ``risky``, and its results are not for the user.
    """

    def __init__(self, tape: Tape, keep: Collection[Op], part: bool = False) -> None:
        super().__init__(tape, keep)
        self.part = part
        self.sums: dict[Op, Sum] = {}
        self.pairs: dict[Op, tuple[float, Op | None]] = {}  # of Python's numbers: a sum of one core
        self.multiples: dict[Op, tuple[float, Op]] = {}  # by a number, of which op
        self.risky: set[Op] = set()  # computed plainly where the rules ask for more
        # Not computed with, but looked at: finite where a quotient has cancelled.
        self.watched: list[Op] = []
        self.load: Counter[Op] = Counter()  # by how many ops a core will be needed
        # The parts of vectors of zeros that are written.
        self.spans: dict[Op, list[tuple[int, int]]] = {}
        self.products: dict[Hashable, Op] = {}  # A.T @ B, by A, B and the axis that is summed over
        self.given: set[Op] = set()  # arrays that are part of the result
        self.site = NOWHERE
        self.uses: dict[Op, int] = defaultdict(int)
        for x in ops_in(tape.result):
            self.uses[x] += 1
        for op in tape.ops:
            if op not in self.fixed:
                for x in op.args if type(op) is FloatOp else op.operands():
                    self.uses[x] += 1

    @functools.cached_property
    def lost(self) -> set[Op]:
        """What goes into something that could turn NaN or infinity into a number."""
        return swallowed(self.tape.ops, self.fixed)

    def run(self) -> Tape:
        with np.errstate(all="ignore"):
            return super().run()

    def remember(self, op: Op) -> None:
        if type(op) is FloatOp:
            self.known.setdefault(pair_key(op.fn, *op.args), op)
        else:
            super().remember(op)

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
            if n == 0 and ((c and k) or p is not None or q is not None):
                return False  # too small for a number, or NaN of an infinity
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
                if c * k < 0 and p is not None:  # of an infinity it would be NaN
                    return False
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
        if type(x) is float:
            return (x, None) if -LARGEST < x < LARGEST else None
        if not issubclass(type(x), Op):
            return (float(x), None) if is_factor(x) else None
        found = self.pairs.get(x)
        if found is not None:
            return found
        if type(x.value) is not float or x in self.sums:
            return None
        new = self.made.get(x, x)
        return (1.0, new) if issubclass(type(new), Op) else (new, None)

    def float_scaled(self, x: Op | None, c: float) -> Any:
        return c if x is None else x if c == 1 else self.float_op(operator.mul, x, c)

    def float_op(self, fn: Any, x: Any, y: Any) -> Op:
        """`apply` for arithmetic between Python's numbers."""
        key = pair_key(fn, x, y)
        found = self.known.get(key)
        if found is None:
            a, b = plain(x), plain(y)
            kinds = Op if a is not x else float, Op if b is not y else float
            found = self.known[key] = FloatOp(
                fn, (x, y), fn(a, b), self.site, self.out, Signature.of(fn, *kinds)
            )
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
        if self.part:
            self.out.result = substitute(
                self.tape.result, lambda op: self.value(op) if op in old else op
            )
            return
        new: dict[Op, Any] = {op: self.finished(op) for op in old}
        if self.watched:  # what has cancelled may have left a number, or an input
            new = {op: x if isinstance(x, Op) else self.apply(type(x), x) for op, x in new.items()}
        else:
            old = [op for op in old if isinstance(new[op], Op) and new[op].kind == "call"]
        if (self.risky or self.watched) and old:
            careful = Tape(self.tape.name, self.tape.site)
            careful.ops, careful.result = self.tape.ops, tuple(old)
            found = rescued(
                self.out,
                self.risky,
                [new[op] for op in old],
                pruned(careful),
                self.spans,
                self.watched,
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
        if is_one_of(type(op.fn), OWN):  # as good as any other value that a loop could have
            args = tuple([self.alike(new, old) for new, old in zip(args, op.args, strict=True)])
            self.made[op] = append(self.out, op.fn, args, kwargs, op.value, op.site)
        else:
            self.made[op] = self.literal(op, args, kwargs)

    def computed_by(self, op: Op, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return fn(*primal(args), **primal(kwargs))

    def alike(self, new: Any, old: Any) -> Any:
        """An operand of a loop, of the kind that it had: its results are of kinds that follow from it."""
        number = isinstance(old, Op) and type(old.value) is float
        other = isinstance(new, Op) and type(new.value) is not float
        return self.apply(float, new) if number and other else new

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
        if np.shape(x.value) == shape:
            return x
        base = x.args[0] if x.fn is np.reshape and x not in self.fixed else x
        return base if np.shape(base.value) == shape else self.apply(np.reshape, base, shape)

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
        if not isinstance(new, Op):
            return Sum({None: float(new)}, np.shape(x.value))
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
                if p is q and np.shape(plain(u)) == np.shape(plain(v)) == np.shape(x.value):
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
        if type(op.value) is not float:
            self.risky.add(op)  # also where the forward run has computed the same
        return op

    def watch(self, quotient: Op, divisor: Op) -> None:
        """Let the check look at a product that has cancelled: by zero, infinity or NaN none would have."""
        self.watched.append(self.apply(operator.mul, quotient, divisor))

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


def unlifted(x: Op) -> Op:
    """The vector of which a column or a row was made."""
    if x.fn is np.reshape or (x.fn is operator.getitem and x.args[1] == (slice(None), None)):
        return x.args[0] if np.ndim(x.args[0].value) == 1 else x
    return x


Rule = Callable[[Algebra, Op], Sum | None]
RULES: dict[Any, Rule] = {}


def rule(*fns: Any) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for fn in fns:
            RULES[fn] = function
        return function

    return enter
