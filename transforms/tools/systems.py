"""A tape in other number systems: 40 digits, intervals, symbols, or many inputs at once.

Words
-----
system   a module with functions of the names that ``math`` and NumPy have, and how its numbers are made.
scalar   a number of the system; an array is a NumPy array of such, as objects.
lifted   a float of the tape as a number of the system: the very same number, since each float is a rational one.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...rules import broadcasting, mutation, numpy_linalg, zeros
from ...tracer.entrances import entrance
from ...tracer.errors import GuardError, TraceError
from ...tracer.kinds import attribute, isinstance
from ...tracer.pairs import Pair, severed
from ...tracer.tape import Input, Op, Tape, element, fn_name, substitute
from .editing import with_primitives
from .playing import decision, holds, must_be_given, must_be_traced, must_fit, play
from .signature import bound

# Other names for a function, in ``math``, NumPy, mpmath and SymPy.
SYNONYMS = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "gammaln": "loggamma", "lgamma": "loggamma", "psi": "digamma",
    "ceil": "ceiling",
}  # fmt: skip
SYNONYMS |= {b: a for a, b in SYNONYMS.items()}
# Functions by name that a module may lack, in terms of those that it has.
COMPOSED: dict[str, Callable[..., Any]] = {
    "expm1": lambda m, x: m.exp(x) - 1, "log1p": lambda m, x: m.log(1 + x), "exp2": lambda m, x: 2**x,
    "log2": lambda m, x: m.log(x) / m.log(2), "log10": lambda m, x: m.log(x) / m.log(10),
    "hypot": lambda m, x, y: m.sqrt(x * x + y * y),
    "logaddexp": lambda m, x, y: m.log(m.exp(x) + m.exp(y)), "expit": lambda m, x: 1 / (1 + m.exp(-x)),
}  # fmt: skip
# What is arithmetic, and follows from that of the numbers.
ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.negative: operator.neg,
    np.divide: operator.truediv, np.power: operator.pow, np.positive: operator.pos, math.pow: operator.pow,
    np.absolute: abs, math.fabs: abs, np.fabs: abs, abs: abs,
    np.greater: operator.gt, np.less: operator.lt, np.greater_equal: operator.ge, np.less_equal: operator.le,
    zeros.product: operator.mul, zeros.quotient: operator.truediv,
    np.square: lambda x: x * x, np.reciprocal: lambda x: 1 / x,
    np.maximum: lambda x, y: x if x >= y else y, np.minimum: lambda x, y: x if x <= y else y,
    np.sign: lambda x: int(x > 0) - int(x < 0),
    np.equal: operator.eq, np.not_equal: operator.ne, np.logical_not: operator.not_,
    np.isnan: lambda x: x != x, np.isinf: lambda x: abs(x) == math.inf, np.isneginf: lambda x: x == -math.inf,
    np.isfinite: lambda x: abs(x) < math.inf, np.isposinf: lambda x: x == math.inf,
    np.float64: lambda x: x, float: lambda x: x, np.conjugate: lambda x: x, severed: lambda x: x, np.real: lambda x: x,
}  # fmt: skip
# What moves numbers about, or adds and multiplies them, whatever they are.
AS_IT_IS = frozenset(
    (
        *(x for x in vars(operator).values() if callable(x)),
        *(np.sum, np.prod, np.dot, np.matmul, np.outer, np.inner, np.trace, np.cumsum, np.tensordot, np.mean),
        *(np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel, np.array),
        *(np.concatenate, np.stack, np.vstack, np.hstack, np.tril, np.triu, np.diag, np.diagonal, np.einsum),
        *(np.broadcast_to, np.repeat, np.tile, np.roll, np.flip, np.take, np.arange, np.asarray, np.asanyarray),
        *(np.copy, np.ndim, np.shape, np.size, np.max, np.min, np.argmax, np.argmin, np.count_nonzero),
        *(np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce, np.multiply.outer),
        *(sum, max, min, len, int, bool, element, math.prod),
        *([math.sumprod] if sys.version_info >= (3, 12) else []),
    )
)  # fmt: skip
COMPARISONS = frozenset(
    (operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne)
)
TYPED = frozenset(
    (np.zeros, np.ones, np.eye, np.full, np.zeros_like, np.ones_like, np.full_like, np.identity)
)


def compiled(tape: Tape, module: Any = None) -> Callable[..., Any]:
    """The tape as a function, in the numbers of ``module``; see `Tape.compile`.

    Its arguments are those of the traced function: numbers of the module, arrays of them, or floats, which are
    converted without an error. With ``numpy`` a number of the tape may be an array of any shape, for as many
    evaluations at once. A decision must come out as in the traced run for all that is given; where it does not, or
    cannot be told (an interval on both sides, a symbol), that is `GuardError`. A function that the module does not
    have is `TraceError`.

    >>> from wengert import trace
    >>> import numpy as np
    >>> square = trace(lambda x: x * np.sin(x), 2.0).compile(math=np)
    >>> bool(np.all(square(np.array([0.0, 1.0])) == np.array([0.0, np.sin(1.0)])))
    True
    """
    if module is None:
        return entrance(lambda *args, **kwargs: play(tape, args, kwargs))
    system = Bulk(module) if module is np else System(module)
    if any(op.kind == "call" and not system.knows(op.fn) for op in tape.ops):
        tape = with_primitives(tape, system.stays, ours=True)

    @entrance
    def run(*args: Any, **kwargs: Any) -> Any:
        must_be_given(tape)
        given = bound(tape, args, kwargs, strict=False)
        must_be_traced(tape, given)
        found: dict[Op, Any] = {}
        for op in tape.ops:
            if isinstance(op, Input):
                found[op] = system.lifted(given.get(op, op.value))
            elif op.kind == "guard":
                system.must_hold(op, found[op.args[0]])
            elif op.kind == "call":
                found[op] = system.call(op, found)
                must_fit(op, found[op])
        return substitute(tape.result, found.__getitem__)

    run.__name__ = tape.name
    return run


def log_of_gamma(m: Any, x: Any) -> Any:
    return m.re(m.loggamma(x)) if hasattr(m, "re") else m.loggamma(x)


# Functions that modules of mathematics define otherwise than C, NumPy and SciPy do, in terms of what is the same.
AS_IN_C: dict[str, Callable[..., Any]] = {
    "cbrt": lambda m, x: m.sign(x) * m.cbrt(abs(x)),
    "fmod": lambda m, x, y: m.sign(x) * m.fmod(abs(x), abs(y)),
    "sinc": lambda m, x: m.sinc(m.pi * x),
    "gammainc": lambda m, a, x: m.gammainc(a, 0, x, regularized=True),
    "betainc": lambda m, a, b, x: m.betainc(a, b, 0, x, regularized=True),
    "lgamma": log_of_gamma,
    "gammaln": log_of_gamma,
}
# Functions that others of the same name are not.
NAMESAKES = {math.remainder, np.diff}


class System:
    """A module as a number system."""

    meant: Mapping[str, Callable[..., Any]] = AS_IN_C

    def __init__(self, module: Any) -> None:
        self.module = module
        self.name = getattr(module, "__name__", type(module).__name__)
        self.number = getattr(module, "mpf", None)
        if self.number is None and hasattr(module, "Rational"):
            self.number = lambda x: module.Rational(*x.as_integer_ratio())

    # Numbers

    def lifted(self, x: Any) -> Any:
        """A constant or an argument as the system has it."""
        if (isinstance(x, np.ndarray) and x.dtype.kind == "c") or isinstance(x, complex):
            raise TraceError(
                f"complex numbers of a tape have no form in {self.name}\n"
                "compute with their real and imaginary parts"
            )
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return objects([self.scalar(y) for y in x.ravel().tolist()], x.shape)
        if isinstance(x, (float, np.floating)):
            return self.scalar(float(x))
        if type(x) is list or type(x) is tuple:
            return type(x)([self.lifted(y) for y in x])
        return x

    def scalar(self, x: float) -> Any:
        return self.number(x) if self.number is not None and math.isfinite(x) else x

    def must_hold(self, guard: Op, value: Any) -> None:
        """Raise where a decision is not the traced one, or cannot be told."""
        try:
            if value is None:  # of an interval on both sides
                raise TypeError
            same = holds(guard, value)
        except TypeError:  # a symbol has no truth
            same = False
        if not same:
            found = "undecided" if value is None else repr(value)
            raise GuardError(
                f"{decision(guard)}, which does not follow here, where it is {found}\n"
                "trace the function for arguments where it falls so, or split what is given"
            )

    # Functions

    def call(self, op: Op, found: dict[Op, Any]) -> Any:
        how = self.function(op.fn)
        if how is None:
            place = f"{op.site}: " if op.site.filename else ""
            raise TraceError(
                f"{place}{self.name} has no {fn_name(op.fn)}, which this tape calls\n"
                "put another call in its place (tape.replace), or look into it (tape.with_primitives)"
            )
        args = [self.lifted(substitute(x, found.__getitem__)) for x in op.args]
        kwargs = {key: substitute(x, found.__getitem__) for key, x in op.kwargs.items()}
        try:
            return how(*args, **kwargs)
        except (TypeError, AttributeError, ValueError) as error:
            if op.fn in COMPARISONS:
                return None  # of intervals that overlap: it cannot be told
            place = f"{op.site}: " if op.site.filename else ""
            raise TraceError(
                f"{place}{fn_name(op.fn)} cannot be computed with numbers of {self.name}: {error}\n"
                "put another call in its place: tape.replace"
            ) from error

    def knows(self, fn: Any) -> bool:
        return self.function(fn) is not None

    def stays(self, fn: Any) -> bool:
        """Whether a call need not be looked into; the tracer knows best what methods are."""
        return self.knows(fn) and attribute(fn, "__objclass__") is None

    def function(self, fn: Any) -> Callable[..., Any] | None:
        """What the system has in the place of a function."""
        if type(fn) is Pair:
            return lambda *args: args[-1]
        try:
            hash(fn)
        except TypeError:
            return None
        own = getattr(self, OWN.get(fn, ""), None)
        if own is not None:
            return own if hasattr(self.module, MATRICES.get(fn, "") or "__dict__") else None
        if fn in ARITHMETIC:
            return self.spread(ARITHMETIC[fn])
        if fn in AS_IT_IS:
            return fn  # type: ignore[no-any-return]
        if fn in TYPED:
            return lambda *args, **kwargs: self.lifted(fn(*args, **kwargs))
        if attribute(fn, "__objclass__") in (np.ndarray, np.generic):
            return self.method(fn)
        name = attribute(fn, "__name__", "")
        if fn in NAMESAKES or name == "yn":  # that of SymPy is spherical
            return None
        if name in self.meant and hasattr(self.module, SYNONYMS.get(name, name)):
            return self.spread(functools.partial(self.meant[name], self.module))
        for known in (SYNONYMS.get(name, name), name):  # mpmath's psi is another function
            found = getattr(self.module, known, None)
            if callable(found):
                return self.spread(found)
        composed = COMPOSED.get(name)
        return None if composed is None else self.spread(functools.partial(composed, self.module))

    def method(self, fn: Any) -> Callable[..., Any] | None:
        if fn.__name__ == "astype":
            return self.cast
        return getattr(np, fn.__name__, fn)  # type: ignore[no-any-return]

    def spread(self, fn: Any) -> Callable[..., Any]:
        """A function of numbers as one of arrays of them."""

        def spread(*args: Any) -> Any:
            if any(isinstance(x, (np.ndarray, list, tuple)) for x in args):
                return np.frompyfunc(fn, len(args), 1)(*args)
            return fn(*args)

        return spread

    # What needs more than a function of numbers

    def same(self, x: Any, *rest: Any) -> Any:
        return x

    def cast(self, x: Any, dtype: Any, *rest: Any, **options: Any) -> Any:
        if np.dtype(dtype).kind not in "fO":
            raise TypeError("a number of it is not cut off")
        return x

    def like(self, x: Any, z: Any) -> Any:
        return np.broadcast_to(x, np.shape(z)) if np.shape(z) else x

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return np.where(np.asarray(condition, bool), x, y)

    def setitem(self, x: Any, index: Any, value: Any) -> Any:
        y = np.array(x, object)
        y[index] = value
        return y

    def scatter(self, d: Any, index: Any, shape: Any, dtype: Any) -> Any:
        return self.scatter_add(objects([self.scalar(0.0)] * math.prod(shape), shape), index, d)

    def scatter_add(self, x: Any, index: Any, d: Any) -> Any:
        y = np.array(x, object)
        if mutation.may_repeat(index):
            np.add.at(y, index, d)
        else:
            y[index] = y[index] + d
        return y

    def expand(self, d: Any, shape: Any, axis: Any = None) -> Any:
        return np.broadcast_to(np.reshape(d, broadcasting.kept_shape(shape, axis)), shape)

    def norm(self, *xs: Any) -> Any:
        if len(xs) == 2 and hasattr(self.module, "hypot"):
            return self.module.hypot(*xs)
        return self.module.sqrt(sum([x * x for x in xs]))

    def distance(self, p: Any, q: Any) -> Any:
        return self.norm(*[x - y for x, y in zip(p, q, strict=True)])

    def total(self, xs: Any) -> Any:
        return sum(xs)

    def variance(
        self, x: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False, **rest: Any
    ) -> Any:
        d = x - np.mean(x, axis=axis, keepdims=True)
        total = functools.partial(np.sum, d * d)(axis=axis, keepdims=keepdims)
        return total / (np.size(x) // max(np.size(total), 1) - ddof)

    def deviation(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return self.spread(self.module.sqrt)(self.variance(x, *args, **kwargs))

    def inverse(self, a: Any) -> Any:
        return self.array(self.module.inverse(self.matrix(a)), np.shape(a))

    def determinant(self, a: Any) -> Any:
        return self.module.det(self.matrix(a))

    def cofactors(self, a: Any) -> Any:
        return self.determinant(a) * self.inverse(a).T

    def solution(self, a: Any, b: Any) -> Any:
        columns = [self.module.lu_solve(self.matrix(a), self.matrix(c)) for c in np.atleast_2d(b.T)]
        found = [self.array(x, (len(a),)) for x in columns]
        return found[0] if b.ndim == 1 else np.stack(found, axis=1)

    def matrix(self, a: Any) -> Any:
        if np.ndim(a) > 2:
            raise TypeError("stacks of matrices have no form there")
        return self.module.matrix(np.asarray(a).tolist())

    def array(self, matrix: Any, shape: tuple[int, ...]) -> Any:
        return objects([x for row in matrix.tolist() for x in row], shape)


OWN: dict[Any, str] = {
    broadcasting.cast: "same", broadcasting.broadcast_like: "like", np.where: "where",
    broadcasting.expand: "expand", mutation.setitem: "setitem", mutation.scatter: "scatter",
    mutation.scatter_add: "scatter_add", np.linalg.inv: "inverse", np.linalg.det: "determinant",
    np.linalg.solve: "solution", np.var: "variance", np.std: "deviation", np.ndarray.var: "variance",
    np.ndarray.std: "deviation", numpy_linalg.cofactors: "cofactors",
    math.hypot: "norm", math.dist: "distance", math.fsum: "total",
}  # fmt: skip
MATRICES = {  # what a module must have for these
    np.linalg.inv: "inverse", np.linalg.det: "det", np.linalg.solve: "lu_solve", numpy_linalg.cofactors: "inverse",
}  # fmt: skip


def objects(items: list[Any], shape: tuple[int, ...]) -> Any:
    """An array of objects, which are looked into by nobody."""
    found = np.empty(len(items), object)
    for i, x in enumerate(items):
        found[i] = x
    return found.reshape(shape)


class Bulk(System):
    """NumPy, in bulk: where the tape has a number there may be an array of them, in any shape."""

    meant = MappingProxyType({})  # it is C

    def lifted(self, x: Any) -> Any:
        return x

    def must_hold(self, guard: Op, value: Any) -> None:
        for x in np.unique(value).tolist():
            super().must_hold(guard, x)

    def call(self, op: Op, found: dict[Op, Any]) -> Any:
        if any(np.ndim(x.value) for x in [op, *op.operands()]):
            place = f"{op.site}: " if op.site.filename else ""
            raise TraceError(
                f"{place}{fn_name(op.fn)} is of arrays already, and a bulk of these would be taken for more of their "
                "axes\ncall the function in a loop"
            )
        return super().call(op, found)

    def function(self, fn: Any) -> Callable[..., Any] | None:
        if fn is max or fn is min:
            return np.maximum if fn is max else np.minimum
        if is_numpys(fn) and not isinstance(fn, (np.ufunc, type)) and fn not in ELEMENTWISE:
            return None
        return np.where if fn is np.where else super().function(fn)

    def method(self, fn: Any) -> Callable[..., Any] | None:
        found = getattr(np, fn.__name__, None)
        return found if found in ELEMENTWISE else None

    def spread(self, fn: Any) -> Callable[..., Any]:
        """A function that gives an array of what it gives for each number: no other of its name does that."""
        if fn in ELEMENTWISE or not isinstance(fn, np.ufunc):
            return fn if fn in ELEMENTWISE or not is_numpys(fn) else refused

        def spread(*args: Any, **kwargs: Any) -> Any:
            if len(args) != fn.nin:  # the next would be written to
                raise TypeError(f"NumPy's takes {fn.nin} arguments")
            return fn(*args, **kwargs)

        return spread


# Functions of NumPy that are no ufuncs, and work number by number all the same.
ELEMENTWISE = {
    *(
        np.clip,
        np.round,
        np.around,
        np.real,
        np.imag,
        np.sinc,
        np.nan_to_num,
        np.i0,
        np.where,
        np.asarray,
        np.copy,
    )
}


def is_numpys(fn: Any) -> bool:
    owner = attribute(fn, "__self__")  # of np.add.reduce
    return (
        isinstance(owner, np.ufunc) or str(attribute(fn, "__module__")).partition(".")[0] == "numpy"
    )


def refused(*args: Any, **kwargs: Any) -> Any:
    raise TypeError("it takes the numbers of all inputs together")
