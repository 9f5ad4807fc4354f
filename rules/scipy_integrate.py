"""Integrals and ordinary differential equations of functions that C code calls back.

The derivative of an integral is the integral of the derivative, and the integrand at the limits. An ODE has the
adjoint ODE, which runs backward in time (L. S. Pontryagin and others, 1962; as in R. T. Q. Chen and others,
"Neural Ordinary Differential Equations", 2018), from one of the times that were asked for to the one before.
Both are written in the primitives themselves, so that there are derivatives of every order.

That the derivative of an integral is the integral of the derivative takes an integrand without jumps at places that
depend on the parameter: the integral of ``1.0 if t < a else 0.0`` over t has the derivative 1 in a, but that of the
integrand is 0 on both sides. Put such a place into the limits of two integrals. Where comparisons or roundings of the
integrand depend on both, and come out differently at two of the places where it was evaluated, the jump is looked for
between these, and is an error. (A bend, as in ``max(t - a, 0)``, is none, and a jump at a fixed place does no harm.)
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import integrate

from . import equivalents
from .broadcasting import is_sequence, unbroadcast
from .registry import NONDIFF, caller, lookup, query, rrule


def flat(parts: Any) -> Any:
    """Numbers and arrays one after the other in one vector."""
    return np.concatenate([np.zeros(0), *[np.reshape(x, -1) for x in parts]])


def unflat(d: Any, like: Any) -> list[Any]:
    """The vector taken apart again."""
    parts, at = [], 0
    for x in like:
        size = np.size(x)
        parts.append(unbroadcast(np.reshape(d[at : at + size], np.shape(x)), x))
        at += size
    return parts


class Derived:
    """A function made of another one, which is closed: its captures are further arguments."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, f: Any) -> None:
        self.f = f
        self.__name__ = f.__name__

    def value(self, *given: Any) -> Any:
        return equivalents.value(self, *given)


# ------------------------------------------------------------------------------------------- quadrature


class Against(Derived):
    """The derivatives of an integrand in its captures, along a cotangent: a function of t, cotangent, captures."""

    def __init__(self, f: Any) -> None:
        super().__init__(f)
        self.steps: dict[float, Any] = {}  # by place

    def __call__(self, t: Any, dy: Any, *captures: Any) -> Any:
        return self.pulled(equivalents.pulled_back(self.f, t, *captures)[1], dy, captures)

    def pulled(self, back: Any, dy: Any, captures: Any) -> Any:
        return flat([np.zeros_like(c) if d is None else d for c, d in zip(captures, back(dy)[1:])])

    def value(self, t: Any, *given: Any) -> Any:
        found, self.steps[t] = equivalents.value(self.with_steps, t, *given)
        return found

    def with_steps(self, t: Any, dy: Any, *captures: Any) -> Any:
        back = equivalents.pulled_back(self.f, t, *captures)[1]
        return self.pulled(back, dy, captures), steps(back.done.tape)

    def refuse_jumps(self, captures: Any) -> None:
        """An error for an integrand that jumps at a place which depends on the captures."""
        places = sorted(self.steps)
        changes = [p for p in itertools.pairwise(places) if self.differ(*p)]
        if not changes or len(changes) > MANY:
            return
        some = places[:: 1 + len(places) // 16]
        scale = max([np.max(np.abs(self.integrand(t, captures))) for t in some])
        for low, high in changes:
            while low < (middle := 0.5 * (low + high)) < high:
                self.value(middle, *captures)
                low, high = (low, middle) if self.differ(low, middle) else (middle, high)
            jump = self.integrand(high, captures) - self.integrand(low, captures)
            if np.max(np.abs(jump)) > 1e-6 * scale:
                raise NotImplementedError(
                    f"the integrand jumps at {low}, a place that depends on a parameter; "
                    "split the integral there"
                )

    def differ(self, low: float, high: float) -> bool:
        return bool(self.steps[low] != self.steps[high])

    def integrand(self, t: float, captures: Any) -> Any:
        return equivalents.value(self.f, t, *captures[1:])


MANY = 8  # changes: more come from iterations inside, whose number is no jump


def steps(tape: Any) -> list[Any]:
    """What came of the comparisons and roundings on a tape that depend on the first argument and on others."""
    first, *others = [x for x in tape.inputs if x.role == "argument"]
    by_first, by_others = {first}, set(others)
    found = []
    for op in tape.ops:
        if op.kind == "call":
            for known in (by_first, by_others):
                if not known.isdisjoint(op.operands()):
                    known.add(op)
            if op in by_first and op in by_others and is_step(op):
                found.append(np.asarray(op.value).tobytes())
    return found


def is_step(op: Any) -> bool:
    """Whether the value of an operation is constant but for jumps."""
    rule = lookup(op.fn)
    nondiff = rule is not None and rule.kind == NONDIFF
    return nondiff or op.fn in STEPS or np.asarray(op.value).dtype.kind in "biu"


STEPS = (np.sign, np.heaviside)


class Quadrature:
    """How the first integral is computed; remembers what it was, for which limits and captures."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.found: Any = None
        self.given: tuple[Any, ...] = ()

    def __call__(self, f: Any, a: Any, b: Any, captures: tuple[Any, ...]) -> Any:
        given = (a, b, *captures)
        if not self.given or not all(map(np.array_equal, self.given, given)):
            self.keep(integrate.quad(lambda t: f.value(t, *captures), a, b, **self.options), given)
        return self.found

    def keep(self, whole: Any, given: tuple[Any, ...]) -> None:
        """Remember what quad returned for these limits and captures."""
        self.found, self.given = whole[0], given


class Componentwise:
    """How the integral of a vector is computed: each component by itself, of values that are computed once."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = {k: x for k, x in options.items() if k in ("points", "limit")}

    def __call__(self, f: Any, a: Any, b: Any, captures: tuple[Any, ...]) -> Any:
        known: dict[float, Any] = {}

        def component(t: float, i: int, part: Any) -> Any:
            if t not in known:
                known[t] = f.value(t, *captures)
            return part(known[t][i])

        def integrals(part: Any) -> Any:
            given = [(i, part) for i in range(np.size(example))]
            return np.array([integrate.quad(component, a, b, args=x, **options)[0] for x in given])

        example = f.value(somewhere(a, b), *captures)
        options = {"epsabs": 1e-11, "epsrel": 1e-10, **self.options}
        found = integrals(np.real)
        if np.iscomplexobj(example):  # QUADPACK knows real numbers alone
            found = found + 1j * integrals(np.imag)
        if isinstance(f, Against):
            f.refuse_jumps(captures)
        return found


@query
def componentwise(how: Any) -> Componentwise:
    """How the derivative of an integral is computed."""
    return Componentwise(how.options)


def somewhere(a: float, b: float) -> float:
    """A number between two limits."""
    if np.isfinite(a + b):
        return 0.5 * (a + b)
    return a + 1.0 if np.isfinite(a) else b - 1.0 if np.isfinite(b) else 0.0


def integral(f: Any, how: Any, a: Any, b: Any, *captures: Any) -> Any:
    """The integral of ``f(t, *captures)`` over t from ``a`` to ``b``."""
    return how(f, a, b, captures)


def at_limit(f: Any, t: Any, dy: Any, captures: Any, way: int) -> Any:
    """The cotangent of a limit of an integral; an infinite one has no derivative."""
    if np.isinf(t):
        return None
    return unbroadcast(way * np.sum(dy * f(t, *captures)), t)


@rrule(integral)
def _integral(f, how, a, b, *captures):
    def pullback(dy):
        da, db = at_limit(f, a, dy, captures, -1), at_limit(f, b, dy, captures, 1)
        if not captures:
            return None, None, da, db
        d = integral(Against(f), componentwise(how), a, b, dy, *captures)
        return None, None, da, db, *unflat(d, captures)

    return integral(f, how, a, b, *captures), pullback


@caller(integrate.quad)
def quad(engine, func, a, b, args=(), full_output=0, weight=None, complex_func=False, **options):
    if weight is not None or complex_func:
        raise NotImplementedError("the derivative of quad is for real integrands without weight=")
    options["full_output"] = full_output
    whole = engine.call(integrate.quad, func, args, (a, b), options)
    closed, captures = engine.close(func, args)
    how = Quadrature(engine.plain(options))
    how.keep(whole, tuple(engine.plain(x) for x in (a, b, *captures)))
    return (engine.record(integral, closed, how, a, b, *captures), *whole[1:])


# ------------------------------------------------------------------------------ differential equations


class Adjoint(Derived):
    """The right-hand side for [y, cotangent of y, cotangent of the captures]: a function of state, t, captures."""

    def __call__(self, state: Any, t: Any, *captures: Any) -> Any:
        n = (np.size(state) - sum([np.size(c) for c in captures])) // 2
        y, back = equivalents.pulled_back(self.f, state[:n], t, *captures)
        dy, _, *rest = back(state[n : 2 * n])
        return flat(
            [y, -dy, *[np.zeros_like(c) if d is None else -d for c, d in zip(captures, rest)]]
        )


class Field(Derived):
    """The right-hand side as a function of y and t that returns an array."""

    def __init__(self, f: Any, tfirst: bool) -> None:
        super().__init__(f)
        self.tfirst = tfirst

    def __call__(self, y: Any, t: Any, *captures: Any) -> Any:
        z = self.f(t, y, *captures) if self.tfirst else self.f(y, t, *captures)
        return np.reshape(np.asarray(z) if is_sequence(z) else z, -1)


class Solver:
    """How an equation is solved; remembers the solution, for which conditions, times and captures."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.found: Any = None
        self.given: tuple[Any, ...] = ()

    def __call__(self, f: Any, y0: Any, t: Any, captures: tuple[Any, ...]) -> Any:
        given = (y0, t, *captures)
        if not self.given or not all(map(np.array_equal, self.given, given)):
            rate = lambda y, t: f.value(y, t, *captures)
            return integrate.odeint(rate, y0, t, **self.options)
        return self.found

    def keep(self, found: Any, given: tuple[Any, ...]) -> None:
        """Remember the solution for these conditions, times and captures."""
        self.found, self.given = found, given


@query
def plainly(how: Solver) -> Solver:
    """The same for another equation: only what holds for it as well."""
    kept = ("rtol", "atol", "mxstep", "hmax")
    return Solver({k: x for k, x in how.options.items() if k in kept})


def ode(f: Any, how: Any, y0: Any, t: Any, *captures: Any) -> Any:
    """The solution of y' = f(y, t, *captures) at the times ``t``, the first of which is where y is ``y0``."""
    return how(f, y0, t, captures)


@rrule(ode)
def _ode(f, how, y0, t, *captures):
    z = ode(f, how, y0, t, *captures)

    def pullback(dz):
        n = np.shape(z)[1]
        d = dz[-1]
        rest = np.zeros(sum([np.size(c) for c in captures]))
        dt = [0.0] * len(t)
        adjoint = Adjoint(f)
        for i in range(len(t) - 1, 0, -1):
            dt[i] = np.sum(dz[i] * f(z[i], t[i], *captures))
            state = np.concatenate([z[i], d, rest])
            times = np.stack([t[i], t[i - 1]])
            before = ode(adjoint, plainly(how), state, times, *captures)[1]
            inner, rest = before[n : 2 * n], before[2 * n :]
            d = inner + dz[i - 1]
        dt[0] = -np.sum(inner * f(z[0], t[0], *captures)) if len(t) > 1 else 0.0
        dy0 = unbroadcast(np.reshape(d, np.shape(y0)), y0)
        return None, None, dy0, unbroadcast(np.stack(dt), t), *unflat(rest, captures)

    return z, pullback


@caller(integrate.odeint)
def odeint(engine, func, y0, t, args=(), Dfun=None, full_output=0, tfirst=False, **options):
    if Dfun is not None:
        raise NotImplementedError("leave out Dfun= where odeint is differentiated")
    more = {"full_output": full_output, "tfirst": tfirst}
    whole = engine.call(integrate.odeint, func, args, (y0, t), {**options, **more})
    closed, captures = engine.close(func, args)
    z, *rest = whole if full_output else (whole,)
    how = Solver(engine.plain(options))
    how.keep(z, tuple(engine.plain(x) for x in (y0, t, *captures)))
    z = engine.record(ode, Field(closed, bool(tfirst)), how, y0, t, *captures)
    return (z, *rest) if full_output else z
