"""Random draws whose parameters are traced: the draw is an input, and its value a function of the parameters.

See `rules.numpy_random`. A draw without traced parameters, or from another distribution, is like any other call of
which nothing is known: an input, drawn anew at each call.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..rules.numpy_random import DRAWS, REQUIRED, Family, cut, reparameterised
from .calls import call
from .handlers import handles
from .opaque import opaque
from .record import has_box
from .session import Tracer
from .tape import Site


def parameters_of(
    family: Family, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The parameters of a draw and its options; None where one is missing, which NumPy complains about itself."""
    options = dict(kwargs)
    found = list(args[: len(family.parameters)])
    for name, default in list(family.parameters.items())[len(found) :]:
        found.append(options.pop(name, default))
    if len(args) > len(found):
        options["size"] = args[len(found)]
    known = all(x is not REQUIRED for x in found) and len(args) <= len(found) + 1
    return (found, options) if known and not options.keys() & family.parameters.keys() else None


def sample(fn: Any, name: str, tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """A draw from a family."""
    family = DRAWS[name].family
    bound = parameters_of(family, args[1:], kwargs)
    if bound is None or not has_box(bound[0]):
        return opaque(tracer, site, fn, args, kwargs)
    parameters, options = bound
    given = [
        call(tracer, site, cut, (x,), {}) if partial is not None and has_box(x) else x
        for partial, x in zip(family.partials, parameters, strict=True)
    ]
    value, noise = opaque(tracer, site, DRAWS[name], (args[0], *given), options)
    return call(tracer, site, reparameterised, (value, noise, *parameters), {"family": name})


for _cls in (np.random.Generator, np.random.RandomState):
    for _name in DRAWS:
        _fn = getattr(_cls, _name)
        handles(_fn)(functools.partial(sample, _fn, _name))
