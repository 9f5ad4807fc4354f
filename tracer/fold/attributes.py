"""Attributes: of objects that the run has made, of classes and modules, and the methods of what is built in."""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import EnumMeta
from functools import cached_property
from typing import Any

from ...rules.words import with_article
from ..kinds import MISSING, flags_of, isinstance, own_dict, static
from ..reads import HEAP_TYPE
from . import arrays, equivalents, streams, substitutes
from .basics import CONTAINERS, NUMBERS, decided, is_constant, is_object, loaded, now, plain, refuse
from .functions import call_function
from .iteration import Iterator
from .memories import must_be_own, stored
from .memories import put as store_item
from .methods import OF_NUMBERS_ALONE, OF_TEXT
from .named import fields_of, is_named, part
from .recorder import Box, Recorder
from .region import is_stream
from .substitutes import KINDS, OF_DICT, Defaults

# The files of code of ours that is followed as the user's is.
OURS = frozenset((equivalents.__file__, substitutes.__file__))

# What an attribute that an object has of its own goes before.
HIDDEN = (types.FunctionType, staticmethod, classmethod, cached_property)


def get(key: Any, obj: Any, name: str) -> Any:
    """``obj.name``."""
    recorder = now()
    kind = type(obj)
    if kind is types.ModuleType:
        return recorder.outside.of_module(obj, name)
    if arrays.is_array(obj):
        return arrays.attribute(recorder, key, obj, name)
    if id(obj) in recorder.memories:
        if kind in CONTAINERS:
            return getattr(obj, name)
        return attribute(recorder, key, obj, name)
    if kind is super:
        return above(recorder, key, obj, name)
    if obj is dict and name == "fromkeys":
        return dict.fromkeys
    if obj is object and name == "__setattr__":
        return object.__setattr__
    if kind is type and name not in ("__dict__", "__class__"):
        if flags_of(obj) & HEAP_TYPE:
            return of_class(recorder, obj, recorder.outside.of_class(obj, name), name)
    if isinstance(obj, EnumMeta):
        return recorder.outside.member(obj, name)
    if kind is str:
        return getattr(obj, name)
    if kind is Box and type(obj.value) is str and name in OF_TEXT:
        return types.MethodType(getattr(str, name), obj)
    if (of := type(plain(obj))) in NUMBERS and getattr(of, name, None) in OF_NUMBERS_ALONE:
        return types.MethodType(getattr(of, name), obj)
    if kind is Box and is_stream(type(obj.value)):
        return streams.method(recorder, obj, name)
    return refuse(f"the attribute {name} of {with_article(kind.__name__)} is read")


def attribute(recorder: Recorder, key: Any, obj: Any, name: str) -> Any:
    """An attribute of an object that the run has made."""
    kind: Any = type(obj)
    if issubclass(kind, Defaults) and name in OF_DICT:
        return getattr(loaded(recorder, (key, "held"), obj, "_held", obj._held), name)
    check_access(recorder, kind, "__getattribute__")
    found = recorder.outside.of_class(kind, name)
    if type(found) is property:
        if type(found.fget) is not types.FunctionType:
            return refuse(f"{name} is a property in C")
        return call_function(recorder, (key, "call"), found.fget, (obj,), {})
    if name == "args" and found is static(BaseException, name):
        return loaded(recorder, key, obj, name, obj.args)
    if is_named(recorder, obj) and name in fields_of(kind):
        return part(recorder, key, obj, name)
    if is_named(recorder, obj) and is_constant(found):
        return found
    own = attributes_of(obj, found, name)
    there = name in own
    if is_slot(kind, found, name) and there:
        return loaded(recorder, key, obj, name, own[name])
    hidden = (
        is_constant(found) or type(found) is Box
    )  # which stands for an attribute that an object may have
    if id(obj) in recorder.given:
        hidden |= isinstance(found, HIDDEN)
    if hidden:
        decided(recorder, (key, "own"), equivalents.has_own, (obj, name), there)
    if there and (found is MISSING or hidden):
        return loaded(recorder, key, obj, name, own[name])
    if found is MISSING and issubclass(kind, dict):  # which has no attributes of its own
        method = recorder.outside.of_class(kind, "__getattr__")
        if type(method) is types.FunctionType:
            return call_function(recorder, (key, "call"), method, (obj, name), {})
    if found is MISSING:
        return refuse(f"{with_article(kind.__name__)} has no attribute {name}")
    if type(found) is types.FunctionType:
        return types.MethodType(found, obj)
    return of_class(recorder, kind, found, name)


def of_users(obj: Any, name: str) -> Any:
    """An object of which code of the user's asks for an attribute: not for what only our stand-ins have."""
    kind = type(obj)
    if kind is Iterator or (kind in KINDS and name[0] == "_" != name[1:2]):
        refuse(f"{with_article(kind.__name__)} has no attribute {name}")
    return obj


def seen_from(filename: str) -> Callable[[Any, str], Any]:
    """What code of a file may ask for."""
    return (lambda obj, name: obj) if filename in OURS else of_users


def above(recorder: Recorder, key: Any, bound: Any, name: str) -> Any:
    """``super().name``."""
    obj, kind = bound.__self__, bound.__self_class__
    if obj is kind or not is_object(recorder, obj):
        return refuse("super is asked by a class")
    found = recorder.outside.above(kind, bound.__thisclass__, name)
    if type(found) is property and type(found.fget) is types.FunctionType:
        return call_function(recorder, (key, "call"), found.fget, (obj,), {})
    if type(found) in (types.FunctionType, types.WrapperDescriptorType):
        return types.MethodType(found, obj)
    return of_class(recorder, kind, found, name)


def of_class(recorder: Recorder, cls: type, found: Any, name: str) -> Any:
    """What is found in a class, asked of the class."""
    if type(found) is staticmethod or type(found) is classmethod:
        inner = found.__func__
        if type(inner) is not types.FunctionType:
            return refuse(f"{name} is no Python function")
        return inner if type(found) is staticmethod else types.MethodType(inner, cls)
    if type(found) in (types.FunctionType, Box) or is_constant(found):
        return found
    return refuse(f"{cls.__name__}.{name}, {with_article(type(found).__name__)}, is read")


def check_access(recorder: Recorder, kind: type, name: str) -> None:
    """Refuse classes whose objects have attributes in a way of their own."""
    if (kind, name) in recorder.usual:
        return
    base = next((x for x in (BaseException, dict, tuple) if issubclass(kind, x)), object)
    # Noted, so that a program makes sure of it (see `Held.attribute`).
    recorder.outside.of_class(kind, "__getattr__")
    if recorder.outside.of_class(kind, name) is not static(base, name):
        refuse(f"{with_article(kind.__name__)} has {name} of its own")
    recorder.usual.add((kind, name))


def is_slot(kind: type, found: Any, name: str) -> bool:
    """Whether what a class holds is the slot of this name of a class of the user's."""
    if type(found) is not types.MemberDescriptorType:
        return False
    owner = found.__objclass__
    return found.__name__ == name and issubclass(kind, owner) and bool(flags_of(owner) & HEAP_TYPE)


def attributes_of(obj: Any, found: Any, name: str) -> dict[str, Any]:
    """What an object has of its own: its attributes, or what lies in the slot that was found for a name."""
    if not is_slot(type(obj), found, name):
        return own_dict(obj) or {}
    try:
        return {name: found.__get__(obj)}
    except AttributeError:
        return {}


def put(recorder: Recorder, key: Any, obj: Any, name: str, x: Any) -> None:
    """An attribute of an object that the run has made gets another value."""
    if not is_object(recorder, obj):
        refuse(f"an attribute of {with_article(type(obj).__name__)} is written")
    if issubclass(type(obj), dict):
        if recorder.outside.of_class(type(obj), "__setattr__") is dict.__setitem__:
            return store_item(key, obj, name, x)
        refuse(f"an attribute of {with_article(type(obj).__name__)} is written")
    check_access(recorder, type(obj), "__setattr__")
    assigned(recorder, key, obj, name, x)


def assigned(recorder: Recorder, key: Any, obj: Any, name: str, x: Any) -> None:
    """``object.__setattr__(obj, name, x)``."""
    kind = type(obj)
    must_be_own(recorder, obj)
    found = recorder.outside.of_class(kind, name)
    if is_slot(kind, found, name):
        stored(recorder, key, obj, name, x)
        found.__set__(obj, x)
        return
    if found is not MISSING and type(found) is not Box and not is_constant(found):
        refuse(f"{kind.__name__}.{name} is a method or a descriptor")
    if static(kind, "__dict__") is MISSING:
        refuse(f"{with_article(kind.__name__)} has no slot {name}")
    stored(recorder, key, obj, name, x)
    own_dict(obj)[name] = x
