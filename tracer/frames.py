"""Frames: how the values of a class nest, and how one of them is put together from its parts.

Words
-----
native   a container class of Python's own, which a class is or extends.
part     what a value holds under a key: an item, or an attribute. Nobody's own methods are asked for it.
own      an attribute of something that has items as well (a list of a class of its own, say).
blank    an instance that nothing was put into yet; the class's ``__init__`` has not run.

All that walks through structures (arguments, results, gradients, templates of programs) goes by this module, so that
what is followed in one place is followed everywhere.
"""

from __future__ import annotations

import dataclasses
import gc
import random
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .errors import TraceError
from .kinds import (
    HEAP_TYPE,
    HELD,
    MISSING,
    QUIET,
    are_quiet,
    flags_of,
    has,
    is_one_of,
    isinstance,
    mro_of,
    own_dict,
    static,
)

SEQUENCES = frozenset((list, tuple, deque))
MAPPINGS = frozenset((dict, OrderedDict, defaultdict))
SETS = frozenset((set, frozenset))
NATIVE = SEQUENCES | MAPPINGS | SETS
MUTABLE = NATIVE - {tuple, frozenset}

# Whose instances are no more than their items and attributes.
MAKERS = NATIVE | {object, types.SimpleNamespace}


class Own(NamedTuple):
    """The key of an attribute of something that has items as well."""

    name: str

    def __repr__(self) -> str:
        return f".{self.name}"


# Keys of which nobody else makes text.
SHOWN = QUIET | {tuple, Own}


def shown(key: Any) -> str:
    """A key as a name or a message shows it; nothing of the user's runs for that, as a ``__repr__`` would."""
    kind = type(key)
    if kind is tuple and not are_quiet((key,)):
        return f"({', '.join(map(shown, key))})"
    native = is_one_of(kind, SHOWN) or (
        issubclass(kind, np.generic) and not flags_of(kind) & HEAP_TYPE
    )
    return repr(key) if native else f"<{kind.__name__}>"


NAMESPACE = Own("__dict__")  # of a dict whose items are its attributes as well


def native(kind: type) -> Any:
    """The container class that a class is or extends; None for any other."""
    if is_one_of(kind, NATIVE):
        return kind
    return next((base for base in mro_of(kind) if is_one_of(base, NATIVE)), None)


def maker(kind: type) -> Any:
    """The class, written in C, whose ``__new__`` makes the bare instances of a class."""
    for base in mro_of(kind):
        if type(vars(base).get("__new__")) is types.BuiltinFunctionType:
            return base
    return object


def can_be_made(kind: type) -> bool:
    """Whether an instance can be put together from items and attributes alone."""
    return maker(kind) in MAKERS


ACCESS = frozenset("__getitem__ __iter__ __len__ __contains__ keys values items get index".split())


def is_read_by_key(kind: type) -> bool:
    """Whether a container of a class gives its items as its native class does, so that it can hold others as well."""
    base = native(kind)
    return all(static(kind, name) is static(base, name) for name in ACCESS)


def blank(kind: type, items: Any = ()) -> Any:
    """A bare instance; one that cannot be changed later holds ``items`` from the start."""
    base = maker(kind)
    return base.__new__(kind, items) if base is tuple or base is frozenset else base.__new__(kind)


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and has(kind, "_make") and has(kind, "_fields")


def items_of(value: Any, base: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a container by key or index, as its native class tells them.

    They are those of one moment, whatever another thread does to it in the next one: nothing comes between its being
    asked for an iterator and the last item, where C code does both. It would ask a derived class for its length.
    """
    if base in MAPPINGS:
        return iter(list(base.items(value)))
    return enumerate(list(value if type(value) is base else base.__iter__(value)))


# Generators of random numbers.
STREAMS = frozenset((random.Random, np.random.Generator, np.random.RandomState))


def attributes(instance: Any) -> dict[str, Any]:
    """The instance attributes of an object: those of its ``__dict__`` and of its slots."""
    own = own_dict(instance)
    found = dict(own) if own and own is not instance else {}
    for cls in mro_of(type(instance)):
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                if name.startswith("__") and not name.endswith("__"):
                    name = f"_{cls.__name__.lstrip('_')}{name}"
                try:
                    held = cls.__dict__[name].__get__(instance)
                except (AttributeError, KeyError):  # nothing is in it, or the slot was overwritten
                    continue
                found.setdefault(name, held)
    return found


def parts_of(value: Any) -> dict[Any, Any]:
    """The parts of a container or an object by key; attributes beside items have keys of their own kind."""
    kind = type(value)
    base = native(kind)
    if base is None:
        return attributes(value)
    # by C code alone, which takes the hashes over with the keys
    own_way = kind is OrderedDict or base not in MAPPINGS or static(kind, "__iter__") is not ITERATE
    parts = dict(items_of(value, base)) if own_way else all_of(dict.copy(value), value)
    if kind is not base or base is OrderedDict:  # which has a dict of its own
        parts.update({Own(name): x for name, x in attributes(value).items()})
        if is_namespace(value):
            parts[NAMESPACE] = value
    return parts


def referents(value: Any) -> list[Any]:
    """What an object written in C refers to. A tuple of its own may have empty places, which nobody may look at
    (``zip_longest`` makes them): it is opened here, by the collector's walk.
    """
    found: list[Any] = []
    for x in gc.get_referents(value):
        found += gc.get_referents(x) if type(x) is tuple else (x,)
    return found


ITERATE = dict.__iter__


def valued(keys: dict[Any, Any], values: list[Any]) -> dict[Any, Any]:
    """A dict with the keys of another one, in their order, and with other values."""
    new: dict[Any, Any] = {}
    assign(new, keys, values)
    return new


def assign(new: Any, keys: dict[Any, Any], values: Iterable[Any]) -> None:
    """Let a mapping of Python's own hold these values under the keys of a dict; MISSING stands for none.

    No key is asked for its hash, which may be code of the user's: the dict has it, and C code takes it over from
    there. Only an `OrderedDict` asks, as it does whenever somebody looks at its values; and keys that have the same
    hash are compared.
    """
    base = native(type(new))
    if base is OrderedDict or are_quiet(keys):
        for key, x in zip(keys, values, strict=True):
            if x is not MISSING:
                base.__setitem__(new, key, x)
        return
    alone = {id(key): one for one in apart(set(all_of(dict.copy(keys), keys))) for key in one}
    if len(alone) != len(keys):
        raise become_equal()
    for key, x in zip(keys, values, strict=True):
        if x is not MISSING:
            dict.update(new, dict.fromkeys(alone[id(key)], x))


def all_of(copy: dict[Any, Any], keys: dict[Any, Any]) -> dict[Any, Any]:
    """A copy of a dict, which C code makes key by key, comparing them, where the dict had others once."""
    if len(copy) != dict.__len__(keys) and not are_quiet([*dict.__iter__(keys)]):
        raise become_equal()
    return copy


def become_equal() -> TraceError:
    return TraceError(
        "a dict holds keys that have become equal since they were put there\n"
        "let the hash and == of a key be what they were, or make the dict anew of other keys"
    )


def apart(keys: set[Any]) -> Iterator[set[Any]]:
    """The sets of one key each that a set is made of."""
    todo = [keys]
    while todo:
        some = todo.pop()
        if len(some) > 1:
            half = some.copy()
            for _ in range(len(some) // 2):
                half.pop()
            todo += (half, some - half)
        elif some:
            yield some


def items_in(parts: dict[Any, Any]) -> dict[Any, Any]:
    """The parts that are items, and no attributes beside them."""
    if any(type(key) is Own for key in parts):
        return valued(parts, [MISSING if type(key) is Own else x for key, x in parts.items()])
    return parts


def is_namespace(value: Any) -> bool:
    """Whether a dict's items are its attributes as well (``self.__dict__ = self``)."""
    return isinstance(value, dict) and own_dict(value) is value


def option_of(value: Any) -> Any:
    """What a container is made with beside its items: the longest length of a deque, the factory of a defaultdict."""
    base = native(type(value))
    if base is deque:
        return value.maxlen
    return value.default_factory if base is defaultdict else None


def put(instance: Any, name: str, value: Any) -> None:
    """Set an attribute of an object where it stands, in a slot or in its dict, without asking the class."""
    own = own_dict(instance)
    if own is None or is_one_of(type(static(type(instance), name)), HELD):
        object.__setattr__(instance, name, value)
    else:
        own[name] = value


def made(kind: type, parts: dict[Any, Any], option: Any = None) -> Any:
    """A value of a class, put together from its parts; its ``__init__`` does not run."""
    base = native(kind)
    if base is None:
        new = blank(kind)
        for name, part in parts.items():
            put(new, name, part)
        return new
    items = items_in(parts)
    new = blank(kind, items.values())
    if base is list:
        list.extend(new, items.values())
    elif base is deque:
        deque.__init__(new, items.values(), option)
    elif base is set:
        set.update(new, items.values())
    elif base in MAPPINGS:
        assign(new, items, items.values())
        if base is defaultdict:
            new.default_factory = option
    for key, x in parts.items():
        if type(key) is Own:
            put(new, key.name, new if key is NAMESPACE else x)
    return new


def gradient(kind: type, parts: dict[Any, Any], differentiable: Iterable[bool]) -> Any:
    """The gradient by a value of a class, from those by its parts; ``differentiable`` tells which have one.

    It is of the class of the value where that is a container or a dataclass, and a dict of its differentiable
    attributes else (None where it has none). By a set there is a dict: the gradient by each of its elements.
    """
    base = native(kind)
    if kind is defaultdict or kind is types.MappingProxyType:
        return items_in(parts)
    if base in SETS:
        return items_in(parts) if any(differentiable) else None
    if base is not None and can_be_made(kind):
        return made(kind, parts)
    if dataclasses.is_dataclass(kind) and can_be_made(kind):
        fields: dict[Any, Any] = {f.name: None for f in dataclasses.fields(kind)}
        return made(kind, {**fields, **parts})
    moving = zip(parts.items(), differentiable, strict=True)
    return {key: part for (key, part), has_one in moving if has_one} or None


def laid_out(kind: type, parts: dict[Any, Any], differentiable: Iterable[bool]) -> Any:
    """The same in lists, tuples and dicts, into which a tape looks: an object is the dict of its attributes."""
    base = native(kind)
    if base is None:
        moving = zip(parts.items(), differentiable, strict=True)
        return {key: part for (key, part), has_one in moving if has_one} or None
    if base in SETS or is_one_of(kind, (list, tuple, dict)) or is_namedtuple(kind):
        return gradient(kind, parts, differentiable)
    items = items_in(parts)
    return items if issubclass(base, dict) else [*items.values()]


# Weak proxies, which pass on what they are asked for.
PROXIES = frozenset((weakref.ProxyType, weakref.CallableProxyType))
