"""Random draws whose parameters are traced: the draw is an input, and its value a function of the parameters.

So is what moves or picks traced elements by chance: the indices are drawn as NumPy draws them, and the elements
gathered by them.

See `rules.numpy_random`. A draw without traced parameters, or from another distribution, is like any other call of
which nothing is known: an input, drawn anew at each call.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ..rules.mutation import at_places
from ..rules.numpy_random import (
    DRAWS,
    REORDERINGS,
    REQUIRED,
    Family,
    cut,
    numbered,
    reparameterised,
)
from .box import ArrayBox
from .calls import call
from .handlers import handles
from .kinds import is_one_of
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


def reorder(fn: Any, tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """Elements of an array, or of a list, are moved or picked by chance."""
    generator, *given = args
    options = dict(kwargs)
    named = "a" if fn.__name__ == "choice" else "x"
    elements = given.pop(0) if given else options.pop(named, None)
    in_place = fn.__name__ == "shuffle"
    if in_place and type(elements) is list and has_box(elements) and not given and not options:
        order = opaque(tracer, site, REORDERINGS[fn], (generator, len(elements)), {})
        items = [call(tracer, site, operator.getitem, (elements, i), {}) for i in order]
        return call(tracer, site, operator.setitem, (elements, slice(None), items), {})
    if is_one_of(type(elements), (list, tuple)) and not in_place and has_box(elements):
        elements = call(tracer, site, np.asarray, (elements,), {})
    if options.get("out") is not None or not is_gathered(elements, in_place):
        return opaque(tracer, site, fn, args, kwargs)
    numbers = call(tracer, site, numbered, (elements,), {})
    found = opaque(tracer, site, REORDERINGS[fn], (generator, numbers, *given), options)
    result = call(tracer, site, at_places, (elements, found), {})
    if in_place:
        return call(tracer, site, np.ndarray.__setitem__, (elements, ..., result), {})
    return result


def is_gathered(elements: Any, in_place: bool) -> bool:
    """Whether an array has elements with derivatives; those of integers are drawn like anything else."""
    if type(elements) is not ArrayBox or elements.value.dtype.kind not in "fc":
        return False
    return not in_place or elements.value.flags.writeable


for _fn in REORDERINGS:
    handles(_fn)(functools.partial(reorder, _fn))
