"""Attributes: of objects that the run has made, of classes and modules, and the methods of what is built in."""

from __future__ import annotations

import operator
import types
from random import Random
from typing import Any

from ..kinds import MISSING, flags_of, static
from ..reads import HEAP_TYPE
from . import arrays
from .basics import CONTAINERS, decided, is_constant, is_object, loaded, now, refuse
from .functions import call_function
from .memories import stored
from .methods import DRAWS, OF_TEXT
from .recorder import Box, Recorder


def get(key: Any, obj: Any, name: str) -> Any:
    """``obj.name``."""
    recorder = now()
    kind = type(obj)
    if kind is types.ModuleType:
        return recorder.outside.of_module(obj, name)
    if id(obj) in recorder.memories:
        if kind in CONTAINERS:
            return getattr(obj, name)
        return attribute(recorder, key, obj, name)
    if obj is dict and name == "fromkeys":
        return dict.fromkeys
    if kind is type and name not in ("__dict__", "__class__"):
        if flags_of(obj) & HEAP_TYPE:
            return of_class(recorder, obj, recorder.outside.of_class(obj, name), name)
    if arrays.is_boxed(obj):
        return arrays.attribute(recorder, key, obj, name)
    if kind is str:
        return getattr(obj, name)
    if kind is Box and type(obj.value) is str and name in OF_TEXT:
        return types.MethodType(getattr(str, name), obj)
    if kind is Box and type(obj.value) is Random and name in DRAWS:
        recorder.outside.of_class(Random, name)
        return types.MethodType(getattr(Random, name), obj)
    return refuse(f"the attribute {name} of a {kind.__name__} is read")


def attribute(recorder: Recorder, key: Any, obj: Any, name: str) -> Any:
    """An attribute of an object that the run has made."""
    kind: Any = type(obj)
    check_access(recorder, kind, "__getattribute__")
    found = recorder.outside.of_class(kind, name)
    if type(found) is property:
        if type(found.fget) is not types.FunctionType:
            return refuse(f"{name} is a property in C")
        return call_function(recorder, (key, "call"), found.fget, (obj,), {})
    if name == "args" and found is static(BaseException, name):
        return loaded(recorder, key, obj, name, obj.args)
    own = obj.__dict__
    there = name in own
    if is_constant(found):  # of the class, which stands for an attribute that an object may have
        decided(recorder, (key, "own"), operator.contains, (obj, name), there)
    if there and (found is MISSING or is_constant(found)):
        return loaded(recorder, key, obj, name, own[name])
    if found is MISSING:
        return refuse(f"a {kind.__name__} has no attribute {name}")
    if type(found) is types.FunctionType:
        return types.MethodType(found, obj)
    return of_class(recorder, kind, found, name)


def of_class(recorder: Recorder, cls: type, found: Any, name: str) -> Any:
    """What is found in a class, asked of the class."""
    if type(found) is staticmethod or type(found) is classmethod:
        inner = found.__func__
        if type(inner) is not types.FunctionType:
            return refuse(f"{name} is no Python function")
        return inner if type(found) is staticmethod else types.MethodType(inner, cls)
    if type(found) is types.FunctionType or is_constant(found):
        return found
    return refuse(f"{cls.__name__}.{name}, a {type(found).__name__}, is read")


def check_access(recorder: Recorder, kind: type, name: str) -> None:
    """Refuse classes whose objects have attributes in a way of their own."""
    if (kind, name) in recorder.usual:
        return
    base = BaseException if issubclass(kind, BaseException) else object
    if recorder.outside.of_class(kind, name) is not static(base, name):
        refuse(f"a {kind.__name__} has {name} of its own")
    if static(kind, "__dict__") is MISSING or static(kind, "__slots__") is not MISSING:
        refuse(f"a {kind.__name__} has slots")
    recorder.usual.add((kind, name))


def put(recorder: Recorder, key: Any, obj: Any, name: str, x: Any) -> None:
    """An attribute of an object that the run has made gets another value."""
    if not is_object(recorder, obj):
        refuse(f"an attribute of a {type(obj).__name__} is written")
    check_access(recorder, type(obj), "__setattr__")
    found = recorder.outside.of_class(type(obj), name)
    if found is not MISSING and not is_constant(found):
        refuse(f"{type(obj).__name__}.{name} is a method or a descriptor")
    stored(recorder, key, obj, name, x)
    obj.__dict__[name] = x
