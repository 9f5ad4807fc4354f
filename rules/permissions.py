"""What functions of NumPy and SciPy leave in arguments that they may destroy: ``overwrite_a=True`` and the like."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .registry import rrule

# The parameter that a permission is about; that of NumPy's is about the first one.
SUBJECTS = {f"overwrite_{x}": x for x in ("a", "b", "ab", "x", "data")} | {"overwrite_input": ""}

FLAGS = (bool, int, np.bool_)


@functools.lru_cache(maxsize=512)
def signature(fn: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function, if it has such a permission."""
    try:
        found = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    return None if SUBJECTS.keys().isdisjoint(found.parameters) else found


def permissions(fn: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """The permissions among the arguments of a call, by their parameters."""
    named = kwargs and not SUBJECTS.keys().isdisjoint(kwargs)
    if not (named or any(type(x) in FLAGS for x in args[1:])) or (found := signature(fn)) is None:
        return {}
    try:
        given = found.bind(*args, **kwargs).arguments
    except TypeError:
        return {}  # which is for the function to say
    return {x: given[x] for x in SUBJECTS if x in given}


def subject(found: inspect.Signature, permission: str) -> str:
    """The parameter that a permission is about."""
    return SUBJECTS[permission] or next(iter(found.parameters))


def overwritten(
    fn: Callable[..., Any],
    place: int | str,
    granted: tuple[str, ...],
    places: tuple[int | str, ...],
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """What stands in an argument after a call with the permissions that are ``granted``, which are about ``places``."""
    given: Any = dict(enumerate(args)) | kwargs
    for x in places:
        given[x] = twin(given[x])
    named = {x: given[x] for x in kwargs}
    # Whatever the call itself has to tell has been told where the result was computed.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fn(*[given[i] for i in range(len(args))], **named, **dict.fromkeys(granted, True))
        except Exception:
            pass
    return given[place]


def twin(array: Any) -> Any:
    """A copy that lies in memory like the array, by which functions tell whether they can compute in its place."""
    if not isinstance(array, np.ndarray):
        return array
    if array.flags.forc:
        copy = array.copy(order="K")
    else:
        copy = np.stack([array, array], axis=-1)[..., 0]
    copy.flags.writeable = array.flags.writeable
    return copy


@rrule(overwritten)
def _overwritten(fn, place, granted, places, *args, **kwargs):
    name, wanted = getattr(fn, "__name__", fn), SUBJECTS[granted[places.index(place)]]
    flags = ", ".join([f"{x}=True" for x in granted])
    raise NotImplementedError(
        f"{wanted or 'an argument'} was read after {name}(…, {flags}), which may have destroyed it"
    )


def left_by(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What somebody's primitive has written into an argument; nobody but the run itself knows."""
    raise TypeError(f"what {getattr(fn, '__name__', fn)} leaves in an argument is known by the run")


@rrule(left_by)
def _left_by(fn, *args, **kwargs):
    raise NotImplementedError(
        f"an array was read after {getattr(fn, '__name__', fn)}, which has written to it, and whose rule tells of the "
        "value alone"
    )
