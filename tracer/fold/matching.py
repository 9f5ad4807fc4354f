"""The patterns of ``match`` statements: of what kind the subject is, which keys it has, and its attributes."""

from __future__ import annotations

from typing import Any

from ...rules.words import with_article
from . import attributes, memories, operators
from .basics import CONTAINERS, is_object, now, plain, refuse
from .builtin import call_builtin, is_instance
from .named import is_named
from .recorder import Box
from .substitutes import KINDS

FLAGS = {"MATCH_SEQUENCE": 1 << 5, "MATCH_MAPPING": 1 << 6}  # of types (Include/object.h)
# Classes of which a positional pattern means the subject itself.
THEMSELVES = frozenset((bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple))


def is_of_kind(name: str, x: Any) -> bool:
    """Whether the subject is a sequence, or a mapping."""
    recorder = now()
    if type(x) in KINDS:
        refuse("a deque or a dict of another kind is matched by what is in it")
    found = bool(type(plain(x)).__flags__ & FLAGS[name])
    if found and type(x) is not tuple and not is_named(recorder, x):
        if type(x) not in CONTAINERS or id(x) not in recorder.memories:
            refuse(f"{with_article(type(plain(x)).__name__)} is matched by what is in it")
    return found


def length(key: Any, x: Any) -> Any:
    return call_builtin(now(), key, len, (x,), {})


def values(key: Any, keys: tuple[Any, ...], x: Any) -> tuple[Any, ...] | None:
    """The values of these keys of a dict, if all are there."""
    found = []
    for i, k in enumerate(keys):
        if not operators.contains((key, i, "there"), x, k):
            return None
        found.append(memories.item((key, i), x, k))
    return tuple(found)


def attributes_of(key: Any, cls: Any, names: tuple[str, ...], count: int, x: Any) -> Any:
    """The attributes that a pattern asks for, if the subject is of the class."""
    recorder = now()
    if not issubclass(type(cls), type):
        return refuse("something is matched with what is no class")
    if not is_instance(recorder, (key, "is"), x, cls):
        return None
    first: tuple[Any, ...] = ()
    if cls in THEMSELVES:
        if count == 1 and not names:
            return (x,)
    elif count:
        first = recorder.outside.of_class(cls, "__match_args__")
        if type(first) is not tuple or len(first) < count or {*first[:count]} & {*names}:
            return refuse(f"{with_article(cls.__name__)} is matched with too many patterns")
    wanted = (*first[:count], *names)
    if wanted and (type(x) is Box or not is_object(recorder, x)):
        return refuse(f"attributes of {with_article(type(plain(x)).__name__)} are matched")
    return tuple([attributes.get((key, name), x, name) for name in wanted])
