"""Calls that read what is behind seals (see ``seals``).

Words
-----
read         of a callable written in C: it is given something sealed, and what it returns depends on that.
conversion   makes a plain array of a sealed one of another class: by the whole of that there is a derivative.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from ..rules import registry
from . import meaning
from .border import is_iterator
from .box import BOXES
from .foreign import CONSUMERS, is_structural
from .handed import is_known
from .handlers import handlers
from .held import Held
from .kinds import (
    HEAP_TYPE,
    attribute,
    flags_of,
    has_dict,
    is_one_of,
    isinstance,
    own_dict,
)
from .protocols import hashable
from .reads import static
from .seals import as_array, seals_of, through
from .session import Tracer
from .sights import is_window
from .slots import python_special
from .structure import Sealed
from .tape import Site
from .writers import FUNCTIONS


def read_by(tracer: Tracer, fn: Any, args: Any, kwargs: Any) -> list[Sealed]:
    """The seals behind which a call reads: those of a callable written in C. Python code is followed into."""
    kind = type(fn)
    owner = attribute(fn, "__self__")
    if is_one_of(kind, FOLLOWED) and registry.lookup(fn) is None:
        if not (kind is types.FunctionType and runs_as_it_is(fn)):
            return []
        given = (*args, *kwargs.values())
        return seals_of(tracer, given) or held_by(tracer, fn, given)
    if id(fn) in tracer.readable:
        return seals_of(tracer, (fn, *args, *kwargs.values()))
    if hashable(fn) and fn not in (float, complex):
        if fn in handlers:
            if fn is next:
                return [x for x in seals_of(tracer, args[:1]) if type(x) is Sealed or of_window(x)]
            if attribute(fn, "__objclass__") is not np.ndarray:
                return []
        elif (
            is_structural(fn) and fn is not bytes
        ):  # which moves references about, but gives out what a container holds
            if found := [x for x in seals_of(tracer, (owner, *args)) if of_window(x)]:
                return found
            own = args if isinstance(fn, type) else (owner,)
            if fn in CONSUMERS:  # which are given the elements as they are drawn
                own = [x for x in own if not is_iterator(x)]
            unbound = owner is None and hasattr(fn, "__objclass__")
            own = args[:1] if unbound or fn in FUNCTIONS else own
            return seals_of(tracer, own)
        elif isinstance(fn, type):
            if type(static(fn, "__init__")) is types.FunctionType:
                return []
        elif type(python_special(fn, "__call__")) is types.FunctionType:
            return []
    given = (fn, owner, *args, *kwargs.values())
    return seals_of(tracer, given) or held_by(tracer, fn, given)


def held_by(tracer: Tracer, fn: Any, given: Any) -> list[Any]:
    """What C code of which nothing is known may read of objects in Python, which have it for an attribute."""
    if is_known(fn):
        return []
    owned = [own_dict(x) for x in given if flags_of(type(x)) & HEAP_TYPE and has_dict(x)]
    seals = seals_of(tracer, [y for own in owned if own for y in list(own.values())], 0)
    return [x for x in seals if isinstance(x, Held)]


def runs_as_it_is(fn: Any) -> bool:
    """Whether a Python function is run as it is, and may look for numbers in what it is given."""
    return meaning.calls.is_untraced(fn) and not is_known(fn)


def of_window(seal: Any) -> bool:
    """Whether a seal is on an iterator or the like, from which a structural function may take items."""
    return isinstance(seal, Held) and is_window(seal.thing)


FOLLOWED = frozenset((types.FunctionType, types.MethodType, functools.partial)) | BOXES


def call(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, seals: list[Sealed]) -> Any:
    """Call something that reads behind seals."""
    conversion = converted(tracer, fn, args, kwargs)
    if conversion is not None:
        (array, *rest), options = conversion
        if id(array) in tracer.readable and isinstance(array, np.ndarray):
            plain = as_array(tracer, array, tracer.readable[id(array)])
            if plain is not None:
                own = array is attribute(fn, "__self__")
                return (
                    plain if own else meaning.calls.call(tracer, site, fn, (plain, *rest), options)
                )
    return through(tracer, site, seals, meaning.calls.call, site, fn, args, kwargs)


CONVERSIONS = frozenset((np.asarray, np.array, np.ascontiguousarray, np.asfortranarray, np.copy))


def converted(tracer: Tracer, fn: Any, args: Any, kwargs: Any) -> Any:
    """The arguments of a conversion to a plain array, where it converts a sealed one; else None."""
    owner = attribute(fn, "__self__")
    if isinstance(owner, np.ndarray) and fn.__name__ in ("view", "__array__"):
        plain = args == (np.ndarray,) or fn.__name__ == "__array__"
        return ((owner,), {}) if plain and not kwargs else None
    if hashable(fn) and fn in CONVERSIONS and args and not kwargs.get("subok"):
        return args, kwargs
    return None
