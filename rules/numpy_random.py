"""Random draws that are differentiable in their parameters: those whose parameters can be taken out of the randomness.

A normal draw is loc + scale*e with a noise e that does not depend on loc and scale, so that d/dloc = 1 and d/dscale = e
(D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", 2014). The value is the one that NumPy draws; the noise
is read off it, or drawn again from a copy of the generator where the value does not tell it (scale 0, say).

Words
-----
family     a distribution with parameters that can be taken out: how its values change with each of them.
refused    a parameter that is inseparable from the randomness (the shape of gamma): a gradient to it is an error.
noise      what is drawn, apart from location and scale.
place      location and scale of a family, as functions of its parameters.
reordering a method that moves or picks elements by chance, whatever they are: a gather, whose indices are drawn.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .broadcasting import unbroadcast
from .registry import nondiff, rrule
from .zeros import ratio

STEEP = (
    1e3  # where the location is so many scales away from zero, the noise is not read off the value
)


@dataclass(frozen=True)
class Family:
    """How the values of a distribution change with its parameters.

    ``parameters`` maps their names to their defaults. There is a partial derivative for each, a function of the
    value, the noise and the parameters, or None if it is refused. ``standard`` are the parameters that draw the noise,
    and ``inner`` is applied to what is drawn before location and scale are taken out.
    """

    parameters: dict[str, Any]
    partials: tuple[Callable[..., Any] | None, ...]
    place: Callable[..., tuple[Any, Any]] | None = None
    standard: Callable[..., tuple[Any, ...]] = lambda *parameters: (0.0, 1.0)
    inner: Callable[[Any], Any] = lambda value: value


REQUIRED = object()
STREAMS = (np.random.Generator, np.random.RandomState)


def _one(v: Any, *rest: Any) -> Any:
    return np.ones_like(v)


def _noise(v: Any, e: Any, *rest: Any) -> Any:
    return e


def _triangular(v: Any, left: Any, mode: Any, right: Any) -> tuple[Any, Any, Any]:
    """The derivatives by left, mode and right: below the mode (v - left)^2 is u (mode - left) (right - left)."""
    below = np.less_equal(v, mode)
    a = 0.5 * np.where(below, v - left, 0.0)
    b = 0.5 * np.where(below, 0.0, right - v)
    width, rise, fall = right - left, mode - left, right - mode
    a_rise, a_width = ratio(a, rise), a / width
    b_fall, b_width = ratio(b, fall), b / width
    dleft = np.where(below, 1 - a_rise - a_width, b_width)
    dright = np.where(below, a_width, 1 - b_fall - b_width)
    return dleft, a_rise + b_fall, dright


LOCATED = Family({"loc": 0.0, "scale": 1.0}, (_one, _noise), lambda loc, scale: (loc, scale))
SCALED = Family({"scale": 1.0}, (_noise,), lambda scale: (0.0, scale), lambda scale: (1.0,))

FAMILIES: dict[str, Family] = {
    "normal": LOCATED,
    "laplace": LOCATED,
    "logistic": LOCATED,
    "gumbel": LOCATED,
    "exponential": SCALED,
    "rayleigh": SCALED,
    "uniform": Family(
        {"low": 0.0, "high": 1.0},
        (lambda v, e, low, high: 1 - e, _noise),
        lambda low, high: (low, np.subtract(high, low)),
    ),
    "lognormal": Family(
        {"mean": 0.0, "sigma": 1.0},
        (lambda v, e, mean, sigma: v, lambda v, e, mean, sigma: v * e),
        lambda mean, sigma: (mean, sigma),
        inner=np.log,
    ),
    "gamma": Family(
        {"shape": REQUIRED, "scale": 1.0},
        (None, _noise),
        lambda shape, scale: (0.0, scale),
        lambda shape, scale: (shape, 1.0),
    ),
    # These are powers of a noise: v = e**(1/a), or e**(1/a) - 1.
    "weibull": Family({"a": REQUIRED}, (lambda v, e, a: -v * np.log(v) / a,)),
    "power": Family({"a": REQUIRED}, (lambda v, e, a: -v * np.log(v) / a,)),
    "pareto": Family({"a": REQUIRED}, (lambda v, e, a: -(1 + v) * np.log1p(v) / a,)),
    "triangular": Family(
        {"left": REQUIRED, "mode": REQUIRED, "right": REQUIRED},
        (
            lambda v, e, left, mode, right: _triangular(v, left, mode, right)[0],
            lambda v, e, left, mode, right: _triangular(v, left, mode, right)[1],
            lambda v, e, left, mode, right: _triangular(v, left, mode, right)[2],
        ),
    ),
    "vonmises": Family({"mu": REQUIRED, "kappa": REQUIRED}, (_one, None)),
    "multivariate_normal": Family({"mean": REQUIRED, "cov": REQUIRED}, (_one, None)),
}


class Draw:
    """A draw from a family, as a function ``draw(generator, *parameters, **options)`` of value and noise."""

    __module__ = "numpy.random"  # what it looks at is the state of a generator, and nothing else

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.family = FAMILIES[name]

    def __call__(self, generator: Any, *parameters: Any, **options: Any) -> tuple[Any, Any]:
        family = self.family
        if family.place is None:
            return getattr(generator, self.__name__)(*parameters, **options), 0.0
        twin = copy.deepcopy(generator) if self.is_steep(parameters) else None
        value = getattr(generator, self.__name__)(*parameters, **options)
        if twin is None:
            return value, self.noise(value, parameters)
        with np.errstate(all="ignore"):
            size = value.shape if isinstance(value, np.ndarray) else None
            noise = family.inner(
                getattr(twin, self.__name__)(*family.standard(*parameters), size=size)
            )
        return value, noise if isinstance(value, np.ndarray) else float(noise)

    def is_steep(self, parameters: Sequence[Any]) -> bool:
        """Whether the noise cannot be told from the value."""
        if self.family.place is None:
            return False
        loc, scale = self.family.place(*parameters)
        return bool(np.any(np.abs(loc) >= STEEP * np.abs(scale)))

    def noise(self, value: Any, parameters: Sequence[Any]) -> Any:
        """The noise that a value was made of."""
        if self.family.place is None:
            return 0.0
        loc, scale = self.family.place(*parameters)
        with np.errstate(all="ignore"):
            noise = (self.family.inner(value) - loc) / scale
        return noise if isinstance(value, np.ndarray) else float(noise)


DRAWS = {name: Draw(name) for name in FAMILIES}


class Reordering:
    """What a method of a generator does to the elements of an array, done to their numbers (see `numbered`).

    Of a list, which is shuffled as no array is, it is given the length.
    """

    __module__ = "numpy.random"  # as of `Draw`

    def __init__(self, method: Any) -> None:
        self.method, self.__name__ = method, method.__name__

    def __call__(self, generator: Any, numbers: Any, *args: Any, **options: Any) -> Any:
        if isinstance(numbers, int):
            places = list(range(numbers))
            self.method(generator, places)
            return tuple(places)
        numbers = numbers.copy(order="K")
        found = self.method(generator, numbers, *args, **options)
        return numbers if found is None else found  # None from what writes in place


REORDERINGS = {
    method: Reordering(method)
    for cls in STREAMS
    for name in ("permutation", "permuted", "shuffle", "choice")
    if (method := getattr(cls, name, None)) is not None
}


def numbered(x: Any) -> Any:
    """The numbers of the elements of ``x``, counted along the rows, in an array that lies in memory as ``x`` does."""
    numbers = np.empty_like(x, np.intp)
    numbers[...] = np.arange(numbers.size).reshape(numbers.shape)
    return numbers


nondiff(numbered)


def served(known: tuple[Any, Any], fn: Any, args: Sequence[Any] | None) -> tuple[Any, ...]:
    """What ``fn(*args)`` gave, in a tuple, if that is the draw that was noted as ``known``, with its noise or without.

    Without ``args`` a noise that was not noted is not made up for.
    """
    asked, value = known
    if asked == fn:
        return (value,)
    if type(asked) is Draw and any(fn is getattr(cls, asked.__name__, None) for cls in STREAMS):
        return (value[0],)
    if args is None or type(fn) is not Draw or fn.is_steep(args[1:]):
        return ()
    bare = getattr(type(args[0]), fn.__name__, None)
    return ((value, fn.noise(value, args[1:])),) if asked is bare else ()


def cut(x: Any) -> Any:
    """``x``, with no derivative."""
    return x.copy() if isinstance(x, np.ndarray) else x


nondiff(cut)


def reparameterised(value: Any, noise: Any, *parameters: Any, family: str) -> Any:
    """The value of a draw as a function of its parameters, by the noise that was drawn."""
    return value.copy() if isinstance(value, np.ndarray) else value


@rrule(reparameterised)
def _reparameterised(value, noise, *parameters, family="normal"):
    z = reparameterised(value, noise, *parameters, family=family)

    def pullback(dz):
        # The cotangent of the value finds its way to the parameters that are refused, where it is an error.
        return (
            dz,
            None,
            *(
                None if partial is None else unbroadcast(dz * partial(z, noise, *parameters), x)
                for partial, x in zip(FAMILIES[family].partials, parameters, strict=True)
            ),
        )

    return z, pullback
