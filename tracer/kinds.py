"""What a value is, and what it holds, told by its type alone.

A value of the user's may have anything to say when it is asked: ``isinstance`` and ``getattr`` run its ``__class__``,
``__getattribute__`` and ``__getattr__``, a weak proxy answers for another object or raises. Nothing of the user's
may run because the engine has a look, so whatever looks at the values of a program goes by this module.
"""

from __future__ import annotations

import functools
import numbers
import sys
import types
import weakref
from collections.abc import Collection, Container, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builtins import isinstance as isinstance
else:

    def isinstance(value: Any, kinds: Any) -> bool:
        """Whether the type of a value is, or derives from, one of these."""
        return issubclass(type(value), kinds)


HEAP_TYPE = 1 << 9  # the flag of a class that was made by a class statement
IMMUTABLE = 1 << 8  # the flag of a class whose attributes cannot be set: one written in C
flags_of = vars(type)["__flags__"].__get__  # whatever the class of a class has to say
dict_of = vars(type)["__dict__"].__get__
mro_of = vars(type)["__mro__"].__get__
GetSet, Member = types.GetSetDescriptorType, types.MemberDescriptorType
HELD = frozenset((GetSet, Member))
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()


def static(cls: type, name: str) -> Any:
    """What a class holds under a name, or MISSING."""
    if (
        type(cls) is type
    ):  # as nearly always; so is the class of its bases, and their ``__dict__`` is their own
        for base in cls.__mro__:
            found = base.__dict__.get(name, MISSING)
            if found is not MISSING:
                return found
        return MISSING
    for base in mro_of(cls) or ():  # a class whose own ``mro`` runs has none yet
        found = dict_of(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


class Nothing:
    """What no object is of."""


def imported(module: str, name: str) -> Any:
    """A class of a module that somebody has imported; importing it for its class alone would take too long."""
    return Nothing if module not in sys.modules else vars(sys.modules[module]).get(name, Nothing)


def has(cls: type, name: str) -> bool:
    """Whether a class holds something under a name."""
    return static(cls, name) is not MISSING


def member(cls: type, name: str) -> Any:
    """The same as ``static``, for a special method that every class has: no descriptor, and nobody's class is asked."""
    return getattr(cls, name) if type(cls) is type else static(cls, name)


def is_one_of(kind: type, kinds: Container[Any]) -> bool:
    """Whether a class is one of these, whose class is ``type``; the class of any other is asked for nothing.

    A class of the user's may have a class of its own, with a ``__hash__`` and an ``__eq__`` that ``kind in kinds``
    would run, or without a hash. So no class that comes from a value is looked up before its own class is known.
    """
    return type(kind) is type and kind in kinds


def are_one_of(values: Collection[Any], kinds: frozenset[Any]) -> bool:
    """Whether the classes of all values are among these."""
    for x in values:  # which is faster than `all` and `map`, even for many
        kind = type(x)
        if type(kind) is not type or kind not in kinds:
            return False
    return True


def classes_of(values: Iterable[Any]) -> list[type]:
    """The classes of values, each of them once, as ``are_one_of`` looks at them."""
    return distinct(map(type, values))


def distinct(kinds: Iterable[type]) -> list[type]:
    """These classes, each of them once; they are not compared by their own classes."""
    kinds = [*kinds]
    by_id = dict(zip(map(id, kinds), kinds, strict=True))  # four times as fast as to go over them
    return list(by_id.values())


def has_special(kind: type) -> bool:
    """Whether a class that was made by a class statement has special methods that some class statement has given it."""
    made = [
        dict_of(x) for x in mro_of(kind) if flags_of(x) & HEAP_TYPE and not flags_of(x) & IMMUTABLE
    ]
    return any(
        name.startswith("__") and name not in BOOKKEEPING for members in made for name in members
    )


BOOKKEEPING = frozenset(
    f"__{name}__"
    for name in "module qualname doc dict weakref slots firstlineno static_attributes annotations annotate_func "
    "annotations_cache annotate".split()
)


def is_compared_by_identity(kind: type) -> bool:
    """Whether the instances of a class have the hash of any object, and are equal to themselves alone."""
    return all(static(kind, name) is vars(object)[name] for name in ("__hash__", "__eq__"))


def is_number_class(kind: type) -> bool:
    """Whether a class is one of numbers, for which an abstract class takes its hash, or that of its bases."""
    known = (kind,) if is_compared_by_identity(type(kind)) else mro_of(kind)
    return any(issubclass(x, numbers.Number) for x in known if is_compared_by_identity(type(x)))


def hashes_natively(kind: type) -> bool:
    """Whether C code alone makes the hashes of the instances of a class."""
    if not flags_of(kind) & HEAP_TYPE:
        return kind is not weakref.ReferenceType  # which asks what it refers to
    return is_one_of(type(static(kind, "__hash__")), SLOTS) and not issubclass(
        kind, weakref.ReferenceType
    )


SLOTS = frozenset((types.WrapperDescriptorType, type(None)))  # None where there are no hashes


class One:
    """Stands in a key for an object whose class may have its own ways to make hashes and to compare."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is One and other.value is self.value


# Whose hashes and comparisons run nothing of the user's.
QUIET = frozenset((str, int, bool, type(None), float, complex, bytes))


def are_quiet(keys: Iterable[Any]) -> bool:
    """Whether it is known at a glance that nothing of the user's runs where these keys are looked up."""
    for key in keys:
        kind = type(key)
        if type(kind) is not type:
            return False
        if kind not in QUIET:
            if not issubclass(kind, tuple) or kind.__hash__ is not tuple.__hash__:
                return False
            if not are_one_of(tuple(tuple.__iter__(key)), QUIET):
                return False
    return True


def hashed(key: Any) -> Any:
    """What stands for a key of the user's where the engine looks something up by it."""
    return key if are_quiet((key,)) else One(key)


def own_dict(value: Any) -> Any:
    """The dict in which a value has its own attributes, or None."""
    kind = type(value)
    if (
        kind is functools.partial
    ):  # which would get one by being asked, and be taken for another partial then
        return functools.partial.__reduce__(value)[2][3]  # type: ignore[index]
    if (own := dict_of(kind)) is None:  # a class of CPython's that is not ready
        return None
    found: Any = own.get("__dict__")
    if type(found) is not GetSet and type(found) is not Member:
        for base in mro_of(kind):
            found = dict_of(base).get("__dict__")
            if type(found) is GetSet or type(found) is Member:
                break
        else:
            return None
    try:
        return found.__get__(value)
    except (AttributeError, TypeError):  # a proxy in C asks what it stands for; another is borrowed
        return None


def has_dict(value: Any) -> bool:
    """Whether a value can have attributes of its own."""
    return own_dict(value) is not None or type(value) is functools.partial


def has_own(obj: Any, name: str) -> bool:
    """Whether an object holds something under a name by itself; the class of its dict may be the user's."""
    own = own_dict(obj)
    if isinstance(own, dict):
        return dict.__contains__(own, name)
    return own is not None and name in own


def is_of_users(own: Any) -> bool:
    """Whether a dict is one of the user's classes, which may have other methods."""
    return isinstance(own, dict) and bool(flags_of(type(own)) & HEAP_TYPE)


def keyword_defaults(f: Any) -> dict[str, Any]:
    """The defaults of the keyword-only parameters of a function; the class of their dict may be the user's."""
    given = f.__kwdefaults__
    return {} if given is None else dict(dict.items(given))


def attribute(value: Any, name: str, default: Any = None) -> Any:
    """What a value holds under a name: by itself, in a slot, or by what its native class has to say."""
    if not flags_of(type(value)) & HEAP_TYPE:
        return default if is_one_of(type(value), PROXIES) else getattr(value, name, default)
    if isinstance(value, type):
        found = static(type, name)
    else:
        own = own_dict(value)
        if own is not None and name in own:
            return own[name]
        found = static(type(value), name)
    if type(found) is not GetSet and type(found) is not Member:
        return found if type(found) is str else default
    try:
        return found.__get__(value)
    except AttributeError:
        return default


PROXIES = frozenset((weakref.ProxyType, weakref.CallableProxyType))  # which ask another object
