"""A tape in other number systems: 40 digits, intervals, symbols, or many inputs at once.

Words
-----
system   a module with functions of the names that ``math`` and NumPy have, and how its numbers are made.
scalar   a number of the system; an array is a NumPy array of such, as objects.
lifted   a float of the tape as a number of the system: the very same number, since each float is a rational one.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...rules import broadcasting, mutation, numpy_linalg, numpy_shapes, operators, zeros
from ...tracer.entrances import entrance
from ...tracer.errors import GuardError, TraceError
from ...tracer.kinds import attribute, isinstance
from ...tracer.pairs import Pair, severed
from ...tracer.record import extent
from ...tracer.tape import Input, Op, Tape, element, fn_name, primal, substitute
from .editing import with_primitives
from .playing import decision, holds, must_be_given, must_be_traced, must_fit, play
from .signature import bound

# Other names for a function, in ``math``, NumPy, mpmath and SymPy.
SYNONYMS = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "gammaln": "loggamma", "lgamma": "loggamma", "psi": "digamma",
    "ceil": "ceiling", "deg2rad": "radians", "rad2deg": "degrees",
}  # fmt: skip
SYNONYMS |= {b: a for a, b in SYNONYMS.items()}
# Functions by name that a module may lack, in terms of those that it has.
COMPOSED: dict[str, Callable[..., Any]] = {
    "expm1": lambda m, x: m.exp(x) - 1, "log1p": lambda m, x: m.log(1 + x), "exp2": lambda m, x: 2**x,
    "log2": lambda m, x: m.log(x) / m.log(2), "log10": lambda m, x: m.log(x) / m.log(10),
    "hypot": lambda m, x, y: m.sqrt(x * x + y * y),
    "logaddexp": lambda m, x, y: m.log(m.exp(x) + m.exp(y)), "expit": lambda m, x: 1 / (1 + m.exp(-x)),
    "logaddexp2": lambda m, x, y: m.log(2**x + 2**y) / m.log(2),
    "radians": lambda m, x: x * m.pi / 180, "deg2rad": lambda m, x: x * m.pi / 180,
    "degrees": lambda m, x: x * 180 / m.pi, "rad2deg": lambda m, x: x * 180 / m.pi,
    "trunc": lambda m, x: m.floor(x) if x >= 0 else -m.floor(-x), "rint": lambda m, x: m.nint(x),
    "round": lambda m, x, digits=None: m.nint(x * 10 ** (digits or 0)) / 10 ** (digits or 0),
    "floordiv": lambda m, x, y: m.floor(x / y), "floor_divide": lambda m, x, y: m.floor(x / y),
    "remainder": lambda m, x, y: x - y * m.floor(x / y), "fma": lambda m, x, y, z: x * y + z,
}  # fmt: skip
# What is arithmetic, and follows from that of the numbers.
ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.negative: operator.neg,
    np.divide: operator.truediv, np.power: operator.pow, np.positive: operator.pos, math.pow: operator.pow,
    np.absolute: abs, math.fabs: abs, np.fabs: abs, abs: abs,
    np.greater: lambda x, y: compared(operator.gt, x, y), np.less: lambda x, y: compared(operator.lt, x, y),
    np.greater_equal: lambda x, y: compared(operator.ge, x, y),
    np.less_equal: lambda x, y: compared(operator.le, x, y),
    zeros.product: operator.mul, zeros.quotient: operator.truediv,
    np.square: lambda x: x * x, np.reciprocal: lambda x: 1 / x,
    np.sign: lambda x: sign_of(x), operators.sign: lambda x: sign_of(x),
    math.copysign: lambda x, y: signed(x, y), np.copysign: lambda x, y: signed(x, y),
    np.heaviside: lambda x, y: y if x == 0 else (sign_of(x) + 1) // 2, np.float_power: operator.pow,
    np.logical_not: operator.not_,
    np.isnan: lambda x: x != x, np.isinf: lambda x: abs(x) == math.inf, np.isneginf: lambda x: x == -math.inf,
    np.isfinite: lambda x: abs(x) < math.inf, np.isposinf: lambda x: x == math.inf,
    np.float64: lambda x: x, float: lambda x: x, severed: lambda x: x,
}  # fmt: skip
# Parts of complex numbers: of one that is real in the traced run they are itself, or zero.
PARTS = {
    np.real: "real", np.imag: "imag", np.conjugate: "conjugate", np.ndarray.conj: "conjugate",
    np.ndarray.conjugate: "conjugate", complex.conjugate: "conjugate", zeros.conj: "conjugate",
}  # fmt: skip
# What moves numbers about, or adds and multiplies them, whatever they are.
AS_IT_IS = frozenset(
    (
        *(x for x in vars(operator).values() if callable(x)),
        *(np.sum, np.prod, np.dot, np.matmul, np.outer, np.inner, np.trace, np.cumsum, np.tensordot, np.mean),
        *(np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel, np.array),
        *(np.concatenate, np.stack, np.vstack, np.hstack, np.tril, np.triu, np.diag, np.diagonal, np.einsum),
        *(np.broadcast_to, np.repeat, np.tile, np.roll, np.flip, np.take, np.arange, np.asarray, np.asanyarray),
        *(np.copy, np.ndim, np.shape, np.size, np.count_nonzero, numpy_shapes.inverse),
        *(np.add.reduce, np.multiply.reduce, np.multiply.outer, sum, len, int, bool, element, extent, math.prod),
        *([math.sumprod] if sys.version_info >= (3, 12) else []),
    )
)  # fmt: skip
COMPARISONS = frozenset(
    (operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne)
)
TYPED = frozenset(
    (np.zeros, np.ones, np.eye, np.full, np.zeros_like, np.ones_like, np.full_like, np.identity)
)


# What goes by how an array lies in memory, as it did in the traced run.
LAID_OUT = {numpy_shapes.axes_read}


def compared(how: Callable[..., Any], x: Any, y: Any) -> Any:
    """The outcome of a comparison, None where there is none. Symbols raise TypeError when that is used."""
    try:
        return how(x, y)
    except ValueError:  # as newer mpmath has it of intervals that overlap
        return None


def sign_of(x: Any) -> int:
    if compared(operator.gt, x, 0) or compared(operator.lt, x, 0):
        return 1 if x > 0 else -1
    if x == 0:
        return 0
    raise Undecided


def signed(x: Any, y: Any) -> Any:
    """``abs(x)`` with the sign of ``y``, which a zero does not have in other numbers."""
    if y == 0:
        raise ValueError("a zero has no sign there")
    return sign_of(y) * abs(x)


class Undecided(Exception):
    """A comparison has no outcome, such as that of intervals that overlap."""


def is_undecided(x: Any) -> bool:
    """Whether a value is, or holds, the outcome of a comparison that has none."""
    return x is None or (isinstance(x, np.ndarray) and x.dtype == object and None in [*x.flat])


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
                found[op] = system.taken(given.get(op, op.value))
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
# Functions by the names of which a module is asked: they go number by number.
OF_NUMBERS = frozenset(("math", "cmath", "builtins", "_operator"))


def is_of_numbers(fn: Any) -> bool:
    """Whether a function is known by its name, and is a function of single numbers.

    One of the user's, or ours, may have the name of another; and `np.linalg.svd` is no function of numbers.
    """
    module = str(attribute(fn, "__module__"))
    return (
        isinstance(fn, np.ufunc)
        or module in OF_NUMBERS
        or module.startswith("scipy.special")
        or fn in ELEMENTWISE
    )


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
        if isinstance(x, complex):
            return self.scalar(x.real) + self.unit * self.scalar(x.imag)
        if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
            return objects([self.lifted(y) for y in x.ravel().tolist()], x.shape)
        if isinstance(x, (float, np.floating)):
            return self.scalar(float(x))
        if type(x) is list or type(x) is tuple:
            return type(x)([self.lifted(y) for y in x])
        return x

    def taken(self, x: Any) -> Any:
        """An argument as the system has it, and as no other: the same may have been given twice."""
        x = self.lifted(x)
        if isinstance(x, np.ndarray):
            return objects([self.taken(y) for y in x.flat], x.shape) if x.dtype == object else x
        return copy.copy(x)

    def scalar(self, x: float) -> Any:
        return self.number(x) if self.number is not None and math.isfinite(x) else x

    @functools.cached_property
    def unit(self) -> Any:
        """The imaginary unit."""
        if hasattr(self.module, "mpc"):
            return self.module.mpc(0, 1)
        if hasattr(self.module, "I"):
            return self.module.I
        raise TraceError(
            f"complex numbers of a tape have no form in {self.name}\n"
            "compute with their real and imaginary parts"
        )

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
        how = self.means(op)
        if how is None:
            place = f"{op.site}: " if op.site.filename else ""
            raise TraceError(
                f"{place}{self.name} has no {fn_name(op.fn)}, which this tape calls\n"
                "put another call in its place (tape.replace), or look into it (tape.with_primitives)"
            )
        args = [self.lifted(substitute(x, found.__getitem__)) for x in op.args]
        kwargs = {key: substitute(x, found.__getitem__) for key, x in op.kwargs.items()}
        try:
            if any(is_undecided(found[x]) and x.value is not None for x in op.operands()):
                raise Undecided
            return how(*args, **kwargs)
        except Undecided:
            raise GuardError(
                f"{op.site}: `{op.site.text}` goes by a comparison that is undecided for what is given\n"
                "split it, so that each part is on one side"
            ) from None
        except (ArithmeticError, TraceError):
            raise
        except Exception as error:
            if op.fn in COMPARISONS:
                return None  # of intervals that overlap: it cannot be told
            place = f"{op.site}: " if op.site.filename else ""
            raise TraceError(
                f"{place}{fn_name(op.fn)} cannot be computed with numbers of {self.name}: {error}\n"
                "put another call in its place: tape.replace"
            ) from error

    def means(self, op: Op) -> Callable[..., Any] | None:
        """What the system has in the place of a call."""
        try:
            name = PARTS.get(op.fn)
        except TypeError:
            return None
        if name is not None:
            x = primal(op.args[0])
            return self.spread(functools.partial(self.part, name, np.iscomplexobj(x)))
        return (lambda *args: op.value) if op.fn in LAID_OUT else self.function(op.fn)

    def part(self, name: str, is_complex: bool, x: Any) -> Any:
        """The real or imaginary part of a number, or its conjugate."""
        if not is_complex:
            return 0 * x if name == "imag" else x
        found = getattr(x, name, None)
        if found is None:
            found = getattr(self.module, {"real": "re", "imag": "im"}[name])(x)
        return found() if callable(found) else found

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
        if fn in PARTS or fn in LAID_OUT:
            return lambda *args: args  # see `means`
        own = getattr(self, OWN.get(fn, ""), None)
        if own is not None:
            return own if hasattr(self.module, MATRICES.get(fn, "") or "__dict__") else None
        if fn in ARITHMETIC:
            return self.spread(ARITHMETIC[fn])
        if fn is operator.floordiv:
            return self.spread(functools.partial(COMPOSED["floordiv"], self.module))
        if fn in AS_IT_IS:
            return fn  # type: ignore[no-any-return]
        if fn in TYPED:
            return lambda *args, **kwargs: self.lifted(fn(*args, **kwargs))
        if attribute(fn, "__objclass__") in (np.ndarray, np.generic):
            return self.method(fn)
        name = attribute(fn, "__name__", "")
        if fn in NAMESAKES or name == "yn" or not is_of_numbers(fn):  # SymPy's yn is spherical
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
        found = getattr(np, fn.__name__, fn)
        own = getattr(self, OWN.get(found, ""), None)
        return found if own is None else own  # type: ignore[no-any-return]

    def spread(self, fn: Any) -> Callable[..., Any]:
        """A function of numbers as one of arrays of them; what a ufunc takes beside these is let go."""

        def spread(*args: Any, **kwargs: Any) -> Any:
            if any(x is not None for key, x in kwargs.items() if key not in WITHOUT_MEANING):
                raise TypeError(f"it is not known with {', '.join(kwargs)}")
            while len(args) > 1 and args[-1] is None:
                args = args[:-1]
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

    def complex_of(self, x: Any, y: Any = 0) -> Any:
        return x + self.unit * y

    def equal(self, x: Any, y: Any) -> Any:
        """Whether two numbers are the same; of intervals that overlap, nobody knows."""
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            return self.spread(self.equal)(x, y)
        if x is y:  # one number: the larger of two is one of them
            return bool(x == x)
        try:
            if any(compared(how, x, y) is None for how in (operator.lt, operator.gt)):
                return None
        except TypeError:
            pass  # there is no order
        return x == y

    def unequal(self, x: Any, y: Any) -> Any:
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            return self.spread(self.unequal)(x, y)
        return None if self.equal(x, y) is None else x != y

    def larger(self, x: Any, y: Any, sign: int = 1) -> Any:
        """The larger of two numbers, or with the sign -1 the smaller; of intervals, of all that may be in them."""
        try:
            if x != x or y != y:
                return x if x != x else y
            first = compared(operator.ge, x, y)
            if first is not None:
                return x if bool(first) == (sign > 0) else y
        except TypeError:  # a symbol has no truth
            of_symbols = getattr(self.module, "Max" if sign > 0 else "Min", None)
            if of_symbols is None:
                raise
            return of_symbols(x, y)
        x, y = (z if hasattr(z, "a") or self.number is None else self.number(z) for z in (x, y))
        if hasattr(x, "a") and self.number is not None:  # the ends
            return self.number([self.larger(x.a, y.a, sign), self.larger(x.b, y.b, sign)])
        return (x + y + sign * abs(x - y)) / 2

    def smaller(self, x: Any, y: Any) -> Any:
        return self.larger(x, y, -1)

    def maximum(self, x: Any, y: Any, *rest: Any, **options: Any) -> Any:
        return self.spread(self.larger)(x, y, *rest, **options)

    def minimum(self, x: Any, y: Any, *rest: Any, **options: Any) -> Any:
        return self.spread(self.smaller)(x, y, *rest, **options)

    def largest(self, *xs: Any) -> Any:
        return functools.reduce(self.larger, xs if len(xs) > 1 else xs[0])

    def smallest(self, *xs: Any) -> Any:
        return functools.reduce(self.smaller, xs if len(xs) > 1 else xs[0])

    def extreme(self, pick: Any, x: Any, axis: Any, keepdims: Any, rest: dict[str, Any]) -> Any:
        """``pick`` of the numbers along axes of an array."""
        if any(value is not None and value is not np._NoValue for value in rest.values()):
            raise TypeError(f"it is not known with {', '.join(rest)}")
        x = np.asarray(x, object)
        axes = broadcasting.normal_axes(axis, x.ndim)
        kept = [n for i, n in enumerate(x.shape) if i not in axes]
        flat = np.moveaxis(x, axes, [*range(len(axes))]).reshape(-1, *kept)
        found = np.frompyfunc(pick, 2, 1).reduce(flat, axis=0)
        if keepdims is True:
            return objects(
                [*np.asarray(found, object).flat], broadcasting.kept_shape(x.shape, axis)
            )
        return found

    def max_of(
        self, x: Any, axis: Any = None, out: Any = None, keepdims: Any = None, **rest: Any
    ) -> Any:
        return self.extreme(self.larger, x, axis, keepdims, {"out": out, **rest})

    def min_of(
        self, x: Any, axis: Any = None, out: Any = None, keepdims: Any = None, **rest: Any
    ) -> Any:
        return self.extreme(self.smaller, x, axis, keepdims, {"out": out, **rest})

    def max_along(
        self, x: Any, axis: Any = 0, dtype: Any = None, *rest: Any, **options: Any
    ) -> Any:
        return self.max_of(x, axis, *rest, **options)

    def min_along(
        self, x: Any, axis: Any = 0, dtype: Any = None, *rest: Any, **options: Any
    ) -> Any:
        return self.min_of(x, axis, *rest, **options)

    def place_of_max(self, x: Any, axis: Any = None, **rest: Any) -> Any:
        return self.place(operator.gt, x, axis, rest)

    def place_of_min(self, x: Any, axis: Any = None, **rest: Any) -> Any:
        return self.place(operator.lt, x, axis, rest)

    def place(self, before: Any, x: Any, axis: Any, rest: dict[str, Any]) -> Any:
        """Where the number is that comes before all others."""

        def first(row: Any) -> int:
            best = 0
            for i in range(1, len(row)):
                if (found := compared(before, row[i], row[best])) is None:
                    raise Undecided
                best = i if found else best
            return best

        if any(value is not None and value is not np._NoValue for value in rest.values()):
            raise TypeError(f"it is not known with {', '.join(rest)}")
        x = np.asarray(x, object)
        return first([*x.flat]) if axis is None else np.apply_along_axis(first, axis, x)

    def cholesky(self, a: Any) -> Any:
        return self.array(self.module.cholesky(self.matrix(a)), np.shape(a))

    def log_determinant(self, a: Any) -> Any:
        found = self.determinant(a)
        return sign_of(found), self.module.log(abs(found))

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
    math.hypot: "norm", math.dist: "distance", math.fsum: "total", complex: "complex_of",
    max: "largest", min: "smallest", np.maximum: "maximum", np.minimum: "minimum",
    np.max: "max_of", np.min: "min_of", np.maximum.reduce: "max_along", np.minimum.reduce: "min_along",
    np.argmax: "place_of_max", np.argmin: "place_of_min", np.fmax: "maximum", np.fmin: "minimum",
    np.linalg.cholesky: "cholesky", np.linalg.slogdet: "log_determinant",
    operator.eq: "equal", operator.ne: "unequal", np.equal: "equal", np.not_equal: "unequal",
}  # fmt: skip
WITHOUT_MEANING = ("dtype", "casting", "order", "subok", "signature")
MATRICES = {  # what a module must have for these
    np.linalg.cholesky: "cholesky", np.linalg.slogdet: "det",
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

    unit = 1j

    def taken(self, x: Any) -> Any:
        return x

    def means(self, op: Op) -> Callable[..., Any] | None:
        return self.function(op.fn)

    def function(self, fn: Any) -> Callable[..., Any] | None:
        if fn in IN_BULK:
            return IN_BULK[fn]
        if isinstance(fn, np.ufunc):
            return self.spread(fn)
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


IN_BULK: dict[Any, Callable[..., Any]] = {
    **{fn: getattr(np, name) for fn, name in PARTS.items()},
    max: np.maximum, min: np.minimum, math.copysign: np.copysign, operators.sign: np.sign,
    operator.floordiv: operator.floordiv, operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip
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
