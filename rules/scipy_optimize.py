"""Roots, fixed points and fits, by the implicit function theorem.

Where f(x, p) = 0, dx = -(df/dx)^-1 (df/dp) dp: the way in which the root was found does not matter, nor where
the search began. What is differentiated is the function at the root, with respect to ``args`` and to what it
has captured in its closure.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from scipy import optimize

from . import equivalents
from .broadcasting import is_sequence
from .registry import caller, rrule


class Search:
    """How a root is looked for, given a function of one argument; remembers what it found for which captures.

    The solver returns a report, where it has one, whether the user asks for it or not: see `converged`.
    """

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, solver: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.solver, self.args, self.options = solver, args, options
        self.found: Any = None
        self.captures: tuple[Any, ...] = ()
        self.whole: Any = None  # what the solver returned

    def __call__(self, closed: Any, captures: tuple[Any, ...]) -> Any:
        if self.found is None or not all(map(np.array_equal, self.captures, captures)):
            f = lambda x: closed.value(x, *captures)
            self.keep(self.solver(f, *self.args, **self.options), captures)
        return self.found

    def keep(self, whole: Any, captures: tuple[Any, ...]) -> None:
        """Remember what the solver returned for these captures."""
        found = whole.x if hasattr(whole, "x") else whole[0] if isinstance(whole, tuple) else whole
        self.whole, self.found, self.captures = whole, found, captures

    def converged(self) -> None:
        """Raise an error where there is no root to differentiate."""
        report = self.whole[1] if type(self.whole) is tuple else self.whole
        good = getattr(report, "success", getattr(report, "converged", True))
        if not np.all(good) or (
            type(self.whole) is tuple and len(self.whole) == 4 and self.whole[2] != 1
        ):
            raise NotImplementedError(
                f"{self.solver.__name__} found no root, so that there is no derivative of it"
            )


def root(closed: Any, search: Search, *captures: Any) -> Any:
    """The root that a search finds."""
    return search(closed, captures)


class Residuals:
    """A function of which a root is looked for; what it returns as a list is an array."""

    def __init__(self, closed: Any) -> None:
        self.closed = closed
        self.__name__ = closed.__name__

    def __call__(self, x: Any, *captures: Any) -> Any:
        y = self.closed(x, *captures)
        return np.asarray(y) if is_sequence(y) else y


class Displacement(Residuals):
    """f(x) - x, of which a fixed point is a root."""

    def __call__(self, x: Any, *captures: Any) -> Any:
        return self.closed(x, *captures) - x


def fixed(closed: Any, search: Search, *captures: Any) -> Any:
    """The fixed point that a search finds."""
    return search(closed, captures)


def implicit(kind: Any, closed: Any, search: Search, x: Any, captures: Any) -> Any:
    """The pullback of what makes ``kind(closed)`` zero."""

    def pullback(dx):
        search.converged()
        y, back = equivalents.pulled_back(kind(closed), x, *captures)
        if np.ndim(y) == 0:
            slope = back(1.0)[0]
            if np.ndim(slope):
                slope = np.sum(slope)
            seed = -dx / slope if np.ndim(dx) == 0 else np.sum(-dx / slope)
        else:
            rows = []
            n = np.size(y)
            for i in range(n):
                unit = np.zeros(n)
                unit[i] = 1.0
                rows.append(np.reshape(back(np.reshape(unit, np.shape(y)))[0], -1))
            solution = np.linalg.solve(np.transpose(np.stack(rows)), np.reshape(dx, -1))
            seed = -np.reshape(solution, np.shape(y))
        return (None, None, *back(seed)[1:])

    return pullback


def zero_of(primitive: Any, kind: Any) -> None:
    """Enter a primitive that finds what makes ``kind(closed)`` zero."""

    @rrule(primitive)
    def rule(closed, search, *captures):
        x = primitive(closed, search, *captures)
        return x, implicit(kind, closed, search, x, captures)


zero_of(root, Residuals)
zero_of(fixed, Displacement)


def solved(
    engine: Any,
    solver: Any,
    f: Any,
    start: Any,
    args: Any,
    options: dict[str, Any],
    primitive: Any = root,
) -> Any:
    """The root of ``f`` as a traced value, and what the solver returned."""
    whole = engine.call(solver, f, args, start, options)
    closed, captures = engine.close(f, args)
    plain = {k: engine.plain(x) for k, x in options.items()}
    search = Search(solver, tuple(engine.plain(x) for x in start), plain)
    search.keep(whole, tuple(engine.plain(x) for x in captures))
    return engine.record(primitive, closed, search, *captures), search.whole


def scalar(solver: Any, fixed: int) -> None:
    """Enter a root finder of one variable, which has ``fixed`` positional arguments before its options."""

    @caller(solver)
    def rule(engine, f, *given, args=(), full_output=False, disp=True, **options):
        start, rest = given[:fixed], given[fixed:]
        if rest:
            raise NotImplementedError(f"give the options of {solver.__name__} by name")
        x, whole = solved(
            engine, solver, f, start, args, {**options, "full_output": True, "disp": disp}
        )
        return reported(x, whole) if full_output else x


def reported(x: Any, whole: Any) -> Any:
    """What a solver returned, with ``x`` for the root in it."""
    if type(whole) is not tuple:  # of several roots at once
        return whole._replace(root=x)
    whole[1].root = x
    return (x, *whole[1:])


for solver in (
    optimize.brentq,
    optimize.brenth,
    optimize.bisect,
    optimize.ridder,
    optimize.toms748,
):
    scalar(solver, 2)


@caller(optimize.newton)
def newton(
    engine,
    func,
    x0,
    fprime=None,
    args=(),
    tol=1.48e-8,
    maxiter=50,
    fprime2=None,
    x1=None,
    rtol=0.0,
    full_output=False,
    disp=True,
):
    args = (*args,)  # any iterable, as SciPy's own call takes it
    options = {
        "fprime": None if fprime is None else with_args(fprime, args),
        "tol": tol,
        "maxiter": maxiter,
    }
    options |= {
        "fprime2": None if fprime2 is None else with_args(fprime2, args),
        "x1": x1,
        "rtol": rtol,
    }
    x, whole = solved(
        engine,
        optimize.newton,
        func,
        (x0,),
        args,
        {**options, "full_output": True, "disp": disp},
    )
    return reported(x, whole) if full_output else x


def with_args(f: Any, args: Any) -> Any:
    """``f(x, *args)`` as a function of ``x``."""
    args = args if isinstance(args, tuple) else (args,)
    return f if not args or not callable(f) else lambda x: f(x, *args)


@caller(optimize.fixed_point)
def fixed_point(engine, func, x0, args=(), xtol=1e-8, maxiter=500, method="del2"):
    args = (*args,)
    options = {"xtol": xtol, "maxiter": maxiter, "method": method}
    return solved(engine, optimize.fixed_point, func, (x0,), args, options, fixed)[0]


@caller(optimize.root)
def root_(engine, fun, x0, args=(), method="hybr", jac=None, **options):
    if callable(jac):
        jac = with_args(jac, args)
    elif jac:
        raise NotImplementedError("give root() the Jacobian as a function of its own")
    x, whole = solved(
        engine, optimize.root, fun, (x0,), args, {"method": method, "jac": jac, **options}
    )
    whole.x = x
    return whole


def warned(func: Any, x0: Any, **options: Any) -> Any:
    """What `fsolve` reports, with the warnings that it gives where no report is asked for."""
    whole = optimize.fsolve(func, x0, full_output=True, **options)
    status, message = whole[2:]
    if status in (2, 3, 4, 5):
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    elif status != 1:
        raise TypeError(message)
    return whole


warned.__name__ = "fsolve"


@caller(optimize.fsolve)
def fsolve(engine, func, x0, args=(), fprime=None, full_output=0, **options):
    given = {"fprime": None if fprime is None else with_args(fprime, args), **options}
    if full_output:
        given["full_output"] = full_output
    solver = optimize.fsolve if full_output else warned
    x, whole = solved(engine, solver, func, (x0,), args, given)
    return (x, *whole[1:]) if full_output else x


class Stationary(Residuals):
    """The slope of half the sum of squares, which is zero at the best fit."""

    def __call__(self, p: Any, *captures: Any) -> Any:
        r, back = equivalents.pulled_back(self.closed, p, *captures)
        return back(r)[0]


def fitted(closed: Any, search: Search, *captures: Any) -> Any:
    """The parameters of the best fit that a search finds."""
    return search(closed, captures)


def covariance(closed: Any, search: Search, *captures: Any) -> Any:
    """The covariance of the parameters, as SciPy estimates it."""
    search(closed, captures)
    return search.whole[1]


zero_of(fitted, Stationary)


@rrule(covariance)
def _covariance(closed, search, *captures):
    def pullback(dy):
        raise NotImplementedError(
            "the covariance that curve_fit estimates has no formula for its derivative"
        )

    return covariance(closed, search, *captures), pullback


def distances(p: Any, f: Any, xdata: Any, ydata: Any, sigma: Any) -> Any:
    """The residuals of a fit, as SciPy computes them."""
    r = f(np.asarray(xdata) if is_sequence(xdata) else xdata, *p) - np.asarray(ydata)
    return r if sigma is None else 1.0 / np.asarray(sigma) * r


def least_squares(residuals: Any, p0: Any, n: int, **options: Any) -> Any:
    """What ``curve_fit`` gives, given residuals as a function of the parameters."""
    nowhere = np.zeros(n)
    return optimize.curve_fit(lambda _, *p: residuals(np.array(p)), nowhere, nowhere, p0, **options)


@caller(optimize.curve_fit)
def curve_fit(engine, f, xdata, ydata, p0=None, sigma=None, absolute_sigma=False, **options):
    if {"bounds", "jac", "full_output"} & {*options} or np.ndim(engine.plain(sigma)) > 1:
        return NotImplemented
    given = {"absolute_sigma": absolute_sigma, **options}
    closed, captures = engine.close(distances, (f, xdata, ydata, sigma))
    if p0 is None:  # SciPy's choice, by how many parameters the function of the user's has
        known = [x.kind for x in inspect.signature(f).parameters.values()]
        count = sum(x is inspect.Parameter.POSITIONAL_OR_KEYWORD for x in known) - 1
        p0 = None if inspect.Parameter.VAR_POSITIONAL in known else np.ones(count)
    start = {"p0": p0, "sigma": sigma, **given}
    whole = engine.call(optimize.curve_fit, f, (), (xdata, ydata), start)
    search = Search(
        least_squares,
        (engine.plain(p0), np.size(engine.plain(ydata))),
        {k: engine.plain(x) for k, x in given.items()},
    )
    search.keep(whole, tuple(engine.plain(x) for x in captures))
    return tuple([engine.record(x, closed, search, *captures) for x in (fitted, covariance)])
