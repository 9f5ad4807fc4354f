"""``check_grads``: are the derivatives that the engine gives those that finite differences give?

Words
-----
spot        a differentiable number or array in an argument or a value, with the path to it.
element     one number of a spot: ``params['w'][2, 3]``.
projection  a real number made of a value by a random cotangent; its slopes are what is compared.
derived     the function that gives the projection's gradient, or the value's tangent: what the next order checks.
"""

from __future__ import annotations

import copy
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..rules.words import with_article
from ..tracer import frames
from ..tracer.entrances import entrance
from ..tracer.errors import TraceError, WengertError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.run import argument_names, in_full
from ..tracer.structure import attributes, is_namedtuple
from .differences import derivative
from .pullbacks import pullback
from .tangents import jvp

MODES = ("forward", "reverse")
SHOWN = 5  # elements in a message
OUTSIDE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)


class GradientError(WengertError, AssertionError):
    """A derivative and finite differences disagree; see `check_grads`."""


@entrance
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    elements: int = 200,
    exact: bool = False,
) -> None:
    """Compare the derivatives of ``f`` at ``args``, up to ``order``, with finite differences.

    ``args`` is the tuple of the arguments; these and the value may be numbers, arrays and structures of them. Each
    order is checked in each of ``modes``, and each higher order over each of the lower ones: reverse over forward, and
    so on. Of a value that is not one number a random projection is differentiated, the same at every call.

    Each float of each argument is moved on its own. In arguments with more than ``elements`` floats so many are chosen
    at random, and a random direction stands for all of them. A slope fits if it is within ``rtol`` of the differences
    (1e-6, and 2e-3 in single precision), or within what those are in doubt by. So check a function where it is smooth.

    With ``exact`` the differences are taken of the program's own run in 40 digits, for which the package ``mpmath`` is
    needed: they are in no doubt, so that ``rtol`` is 1e-9 (1e-5 in single precision). The decisions must be those of
    the run, and the functions that it calls must be known to mpmath (see `Tape.compile`); numbers must be real.

    Raises `GradientError`, an AssertionError, that says which elements disagree and by how much.

    >>> import numpy as np
    >>> from wengert import custom_rule
    >>> @custom_rule
    ... def cube(x):
    ...     def pullback(dy):
    ...         return (dy * np.array([3.0, 2.0]) * x * x,)
    ...     return x**3, pullback
    >>> check_grads(np.tanh, (np.array([1.0, 2.0]),))
    >>> check_grads(cube, (np.array([1.0, 2.0]),))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    wengert.transforms.check.GradientError: ... forward mode, order 1: 1 of 2 elements ...
      x[1]: gradient ..., differences ..., relative error 0.333
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"args must be the tuple of the arguments, not {with_article(type(args).__name__)}\n"
            "write check_grads(f, (x,)), or check_grads(f, (x, y))"
        )
    if type(order) is not int or order < 1:
        raise ValueError(f"order is 1, 2, …, not {order!r}\nof order 0 there is nothing to check")
    if not modes:
        raise ValueError("modes is empty\nwithout it forward and reverse mode are checked")
    for mode in modes:
        if mode not in MODES:
            raise ValueError(
                f"a mode is 'forward' or 'reverse', not {mode!r}\nmodes has several: modes=('reverse',)"
            )
    check = Check(f, tuple(args), tuple(modes), rtol, elements, exact)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of overflow, say, where a step is long
        check.run(f, order, ())


class Check:
    """One call of `check_grads`."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        modes: tuple[str, ...],
        rtol: float | None,
        elements: int,
        exact: bool,
    ) -> None:
        self.exact = exact
        self.programs: dict[Any, Any] = {}  # of functions, in 40 digits
        self.name = in_full(f)
        self.args = args
        self.modes = modes
        self.rtol = rtol
        self.elements = elements
        self.rng = np.random.default_rng(0)
        names = argument_names(f, len(args))
        self.spots = [list(spots(x, names[i], ((ITEM, i),))) for i, x in enumerate(args)]
        if not any(self.spots):
            raise TraceError(
                f"{self.name} has no argument with a derivative: nothing to check\n"
                "pass floats, or arrays of floats (docs/errors.md#no-derivative)"
            )

    def run(self, f: Callable[..., Any], order: int, chain: tuple[str, ...]) -> None:
        """Check the derivative of ``f``, which is itself that of the modes ``chain``, and those above it."""
        for mode in self.modes:
            slopes, derived = self.reverse(f) if mode == "reverse" else self.forward(f)
            self.compare(f, slopes, (mode, *chain))
            if order > 1:
                self.run(derived, order - 1, (mode, *chain))

    def plain(self, f: Callable[..., Any]) -> Any:
        value = f(*copy.deepcopy(self.args))
        if not any(True for _ in spots(value)):
            raise TraceError(
                f"the value of {self.name} has no derivative: nothing to check\n"
                "return a number or an array of floats (docs/errors.md#not-a-number)"
            )
        return value

    def random(self, x: Any) -> Any:
        """A random cotangent or tangent of the structure of ``x``; None where it has no derivative."""

        def one(leaf: Any) -> Any:
            r = self.rng.normal(size=np.shape(leaf))
            if np.iscomplexobj(leaf):
                r = r + 1j * self.rng.normal(size=np.shape(leaf))
            return np.asarray(r, leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)(r)

        return mapped(x, one)

    def reverse(self, f: Callable[..., Any]) -> tuple[Slopes, Callable[..., Any]]:
        """The slopes of a projection of ``f`` by its pullback, and the pullback as a function of the arguments."""
        dy = self.random(self.plain(f))

        def gradient(*args: Any) -> Any:
            return pullback(f, *args)[1](dy)

        gradients = gradient(*copy.deepcopy(self.args))
        return Slopes(dy, lambda steps, v: inner(at(gradients, steps), v)), gradient

    def forward(self, f: Callable[..., Any]) -> tuple[Slopes, Callable[..., Any]]:
        """The slopes of a projection of ``f`` by its tangents, and a tangent as a function of the arguments."""
        dy, tangents = self.random(self.plain(f)), self.random(self.args)

        def slope(steps: Steps, v: Any) -> float:
            blank = mapped(self.args, lambda leaf: None)
            return inner(dy, jvp(f, copy.deepcopy(self.args), put(blank, steps, v))[1])

        return Slopes(dy, slope), lambda *args: jvp(f, args, tangents)[1]

    def compare(self, f: Callable[..., Any], slopes: Slopes, chain: tuple[str, ...]) -> None:
        """Raise where slopes and differences disagree."""
        wrong: list[Mismatch] = []
        count = 0
        for own in self.spots:
            elements = [(spot, index) for spot in own for index in np.ndindex(np.shape(spot.value))]
            chosen = elements
            if len(elements) > self.elements:
                picks = self.rng.choice(len(elements), self.elements, replace=False)
                chosen = [elements[i] for i in sorted(picks)]
                if self.together(f, slopes, own) is not None:
                    chosen = elements  # one of them is wrong: look at all
            for spot, index in chosen:
                found = self.element(f, slopes, spot, index)
                count += 1
                wrong += [found] if found is not None else []
        if wrong:
            raise GradientError(self.message(wrong, count, chain))

    def element(
        self, f: Callable[..., Any], slopes: Slopes, spot: Spot, index: tuple[int, ...]
    ) -> Mismatch | None:
        """The gradient by one element, if it is wrong; of a complex one, by its real and its imaginary part."""
        name = spot.path + (f"[{', '.join(map(str, index))}]" if index else "")
        x = np.asarray(spot.value)[index]
        real = self.along(f, slopes, [(spot, unit(spot.value, index, 1.0))], float(x.real))
        if not np.iscomplexobj(x):
            return self.judged(name, spot.value, *real)
        imag = self.along(f, slopes, [(spot, unit(spot.value, index, 1j))], float(x.imag))
        both = [complex(u, -v) for u, v in zip(real[:2], imag[:2], strict=True)]
        return self.judged(name, spot.value, both[0], both[1], max(real[2], imag[2]))

    def together(self, f: Callable[..., Any], slopes: Slopes, own: list[Spot]) -> Mismatch | None:
        """The slope along a random direction of an argument, if it is wrong."""
        directions = [(spot, self.random(spot.value)) for spot in own]
        coarsest = max((spot.value for spot in own), key=eps_of)
        return self.judged("", coarsest, *self.along(f, slopes, directions, 0.0))

    def along(
        self, f: Callable[..., Any], slopes: Slopes, directions: list[tuple[Spot, Any]], x: float
    ) -> tuple[float, float, float]:
        """The slope along a direction, that by differences, and what these are in doubt by."""
        slope = sum(slopes.along(spot.steps, v) for spot, v in directions)
        if self.exact:
            return slope, *self.exactly(f, slopes, directions, x)

        def projected(t: float) -> float:
            args = copy.deepcopy(self.args)
            for spot, v in directions:
                args = put(args, spot.steps, shifted(spot.value, t, v))
            return inner(slopes.dy, f(*args))

        eps = max(eps_of(v) for v in [spot.value for spot, _ in directions] + numbers(slopes.dy))
        found = derivative(projected, x, eps)
        return slope, found.value, found.doubt

    def exactly(
        self, f: Callable[..., Any], slopes: Slopes, directions: list[tuple[Spot, Any]], x: float
    ) -> tuple[float, float]:
        """The slope along a direction by differences in 40 digits, and what it is in doubt by."""
        from .tools import exact

        program = self.programs.get(f)
        if program is None:
            program = self.programs[f] = exact.Program(f, self.args)

        def moved(t: Any) -> Any:
            args = copy.deepcopy(self.args)
            for spot, v in directions:
                args = put(args, spot.steps, exact.shifted(program, spot.value, t, v))
            return args

        def projected(value: Any) -> Any:
            found = spots(slopes.dy)
            return sum(exact.inner(spot.value, at(value, spot.steps)) for spot in found)

        return program.slope(projected, moved, x)  # type: ignore[no-any-return]

    def judged(
        self, path: str, like: Any, slope: complex, numeric: complex, doubt: float
    ) -> Mismatch | None:
        """A mismatch, unless a slope and the differences agree."""
        double, single = (1e-9, 1e-5) if self.exact else (1e-6, 2e-3)
        rtol = self.rtol if self.rtol is not None else double if eps_of(like) < 1e-10 else single
        size = max(abs(slope), abs(numeric))
        near = abs(slope - numeric) <= rtol * size + 10 * doubt
        sure = doubt <= 1e-3 * max(1.0, size)
        return None if near and sure else Mismatch(path, slope, numeric, doubt)

    def message(self, wrong: list[Mismatch], count: int, chain: tuple[str, ...]) -> str:
        lines = [
            f"{self.name}, {' over '.join(chain)} mode, order {len(chain)}: "
            f"{len(wrong)} of {count} elements disagree with finite differences; "
            "look there for a kink, a wrong rule, or single precision (docs/errors.md#gradienterror)"
        ]
        wrong = sorted(wrong, key=lambda found: -found.error)
        lines += [f"  {found}" for found in wrong[:SHOWN]]
        if len(wrong) > SHOWN:
            lines[-1] += ", …"
        return "\n".join(lines)


class Slopes(NamedTuple):
    """The projection by ``dy`` of a value, and its slope ``along`` a vector in the place of some spot."""

    dy: Any
    along: Callable[[Steps, Any], float]


class Mismatch(NamedTuple):
    """An element of which the engine and the differences give different slopes."""

    path: str
    slope: complex
    numeric: complex
    doubt: float

    @property
    def error(self) -> float:
        """The relative error."""
        size = max(abs(self.slope), abs(self.numeric))
        error = abs(self.slope - self.numeric) / size if size else 0.0
        return error if error == error else float("inf")

    def __str__(self) -> str:
        text = (
            f"{self.path}: gradient {self.slope}, differences {self.numeric}, "
            f"relative error {self.error:.3g}"
        )
        unsure = self.doubt > 0.1 * abs(self.slope - self.numeric)
        return text + (f" (the differences are in doubt by {self.doubt:.2g})" if unsure else "")


# ---------------------------------------------------------------------------------- numbers in structures

ITEM, ATTRIBUTE = "item", "attribute"
Steps = tuple[tuple[str, Any], ...]


class Spot(NamedTuple):
    """A number or an array: what it is called, and the steps to it."""

    path: str
    steps: Steps
    value: Any


def parts_of(x: Any) -> Iterator[tuple[str, tuple[str, Any], Any]]:
    """What a structure is made of: how each part is written, the step to it, and the part."""
    if isinstance(x, dict):
        for key, part in x.items():
            yield f"[{key!r}]", (ITEM, key), part
    elif isinstance(x, (list, tuple, deque)):
        for i, part in enumerate(x):
            yield f"[{i}]", (ITEM, i), part
    elif not isinstance(x, OUTSIDE):
        for name, part in attributes(x).items():
            yield f".{name}", (ATTRIBUTE, name), part


def is_number(x: Any) -> bool:
    """Whether ``x`` is a floating-point or complex number, or an array of them."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind in "fc"
    return is_one_of(type(x), (float, complex))


def spots(x: Any, path: str = "", steps: Steps = (), above: tuple[int, ...] = ()) -> Iterator[Spot]:
    """The spots of a structure, in order."""
    if is_number(x):
        yield Spot(path, steps, x)
    elif id(x) not in above:  # an object may hold itself
        for text, step, part in parts_of(x):
            yield from spots(part, path + text, (*steps, step), (*above, id(x)))


def numbers(x: Any) -> list[Any]:
    return [spot.value for spot in spots(x)]


def mapped(x: Any, fn: Callable[[Any], Any], above: tuple[int, ...] = ()) -> Any:
    """``fn`` of each spot, in a structure like ``x``; objects become dicts, and what is no number None."""
    if is_number(x):
        return fn(x)
    if id(x) in above:
        return None
    parts = {step[1]: mapped(part, fn, (*above, id(x))) for _, step, part in parts_of(x)}
    if is_namedtuple(type(x)):
        return x._make(parts.values())
    if isinstance(x, (list, tuple, deque)):
        return type(x)(parts.values())
    return parts or None


def at(x: Any, steps: Steps) -> Any:
    """What lies at the end of the steps; an object may be given by a dict, and None stands for all that is in it."""
    for kind, key in steps:
        if x is None:
            return None
        x = x[key] if kind == ITEM or isinstance(x, dict) else getattr(x, key)
    return x


def put(x: Any, steps: Steps, value: Any) -> Any:
    """Put something else at the end of the steps, in place as far as may be. Returns the structure."""
    if not steps:
        return value
    kind, key = steps[0]
    part = put(at(x, steps[:1]), steps[1:], value)
    if isinstance(x, tuple):
        parts = [part if i == key else other for i, other in enumerate(x)]
        return type(x)._make(parts) if is_namedtuple(type(x)) else type(x)(parts)  # type: ignore[attr-defined]
    if kind == ITEM or isinstance(x, dict):
        x[key] = part
    else:
        frames.put(x, key, part)
    return x


def inner(d: Any, x: Any) -> float:
    """Re(sum(d * x)) over the spots of ``x`` that have a part in ``d``."""
    pairs = [(at(d, spot.steps), spot.value) for spot in spots(x)]
    return sum(float(np.sum(np.real(np.multiply(c, v)))) for c, v in pairs if c is not None)


def unit(x: Any, index: tuple[int, ...], one: complex) -> Any:
    """``one`` at an index, zero elsewhere, in the form of ``x``."""
    if not isinstance(x, np.ndarray):
        return type(x)(one)
    v = np.zeros_like(x)
    v[index] = one
    return v


def shifted(x: Any, t: float, v: Any) -> Any:
    """``x + t * v``, of the type of ``x``."""
    moved = x + t * v
    return np.asarray(moved, x.dtype) if isinstance(x, np.ndarray) else type(x)(moved)


def eps_of(x: Any) -> float:
    return float(np.finfo(np.asarray(x).dtype).eps)
