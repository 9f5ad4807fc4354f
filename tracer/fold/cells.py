"""Variables that functions inside write: objects with one attribute, to which loads and stores are ops."""

from __future__ import annotations

from typing import Any

from ..joins import UNBOUND, assigned_outside
from .basics import loaded, now, refuse
from .memories import stored
from .region import OBJECT, Cell

VALUE = "value"


def made(key: Any, x: Any) -> Cell:
    """The object of a variable, when its function begins."""
    recorder, cell = now(), Cell()
    given: tuple[Any, ...] = (Cell,)
    if x is not UNBOUND:
        given += VALUE, recorder.packed(key, x)
        setattr(cell, VALUE, x)
    return recorder.born(key, OBJECT, given, cell)  # type: ignore[no-any-return]


def value(key: Any, name: str, held: Any) -> Any:
    """The value of a variable of an enclosing function, or of one that has an object."""
    if type(held) is not Cell:
        return assigned_outside(name)(held)
    if not hasattr(held, VALUE):
        return refuse(f"{name} has no value")
    return loaded(now(), key, held, VALUE, vars(held)[VALUE])


def store(key: Any, held: Any, x: Any) -> None:
    """A variable gets another value."""
    if type(held) is not Cell:
        refuse("a variable of a function outside is written")
    stored(now(), key, held, VALUE, x)
    setattr(held, VALUE, x)
