"""What a ``match`` statement asks of its subject."""

from __future__ import annotations

from collections import abc
from typing import Any

from . import attributes, builtin_calls, calls, protocols
from .kinds import isinstance
from .reads import MISSING
from .session import Tracer
from .slots import flags_of, kind_of
from .tape import Site

# Flags of classes: their objects match ``[a, b]``, ``{"a": x}``, and ``C(x)`` by themselves.
SEQUENCE, MAPPING, SELF = 1 << 5, 1 << 6, 1 << 22


def load(tracer: Tracer | None, site: Site, subject: Any, name: str) -> Any:
    return (
        getattr(subject, name) if tracer is None else attributes.load(tracer, site, subject, name)
    )


def is_a(tracer: Tracer | None, site: Site, subject: Any, flag: int) -> bool:
    """Whether a subject matches ``[a, b]``, or ``{"a": x}``: its class may be registered as such at any time."""
    kind = kind_of(subject)
    if tracer is not None and tracer.reads is not None:
        abstract = abc.Sequence if flag == SEQUENCE else abc.Mapping
        builtin_calls.note_subclass(tracer, site, kind, (abstract,))
    return bool(flags_of(kind) & flag)


def match_class(
    tracer: Tracer | None, site: Site, subject: Any, cls: Any, count: int, names: tuple[str, ...]
) -> Any:
    """The attributes of a subject that ``cls(x, y, name=z)`` goes on to match; None if it is no such object."""
    if not isinstance(cls, type):
        refuse_class(cls)
    if tracer is None:
        matches = isinstance(subject, cls)
    else:
        matches = builtin_calls.is_instance(tracer, site, subject, cls)
    if not matches:
        return None
    found = []
    fields: tuple[Any, ...] = ()
    if count:
        fields, itself = positional(tracer, site, cls)
        allowed = 1 if itself else len(fields)
        if count > allowed:
            raise TypeError(
                f"{cls.__name__}() accepts {allowed} positional sub-pattern{'s' * (allowed != 1)} ({count} given)"
            )
        if itself:
            found.append(subject)
    seen: set[str] = set()
    for name in (*fields[:count], *names):
        if type(name) is not str:
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
        if name in seen:
            raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
        seen.add(name)
        try:
            found.append(load(tracer, site, subject, name))
        except AttributeError:
            return None
    return tuple(found)


def positional(tracer: Tracer | None, site: Site, cls: type) -> tuple[tuple[Any, ...], bool]:
    """The attributes that stand by position in a pattern of a class, and whether the subject itself does."""
    try:
        fields = load(tracer, site, cls, "__match_args__")
    except AttributeError:
        return (), bool(flags_of(cls) & SELF)
    if type(fields) is not tuple:
        raise TypeError(
            f"{cls.__name__}.__match_args__ must be a tuple (got {type(fields).__name__})"
        )
    return fields, False


def refuse_class(cls: Any) -> None:
    """Raise what CPython raises where the pattern's class is none."""
    match cls:
        case cls():
            pass


def match_keys(tracer: Tracer | None, site: Site, subject: Any, keys: tuple[Any, ...]) -> Any:
    """The items of a subject under the keys of a pattern; None where one is missing."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
    if not keys:
        return ()
    found = []
    get = load(tracer, site, subject, "get")
    for key in keys:
        given = (key, MISSING)
        item = get(*given) if tracer is None else calls.call(tracer, site, get, given, {})
        if item is MISSING:
            return None
        found.append(item)
    return tuple(found)


def length(tracer: Tracer | None, site: Site, subject: Any) -> Any:
    return len(subject) if tracer is None else protocols.length(tracer, site, subject)
