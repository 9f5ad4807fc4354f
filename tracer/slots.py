"""Special methods: what a class holds under their names, and how CPython calls them.

Words
-----
special    what a class holds under the name of a special method: a function, None, any descriptor.
python     of a special method: not written in C, so that CPython would run it behind our back. Its twin is called.
native     of a class, or of what it does: written in C.
double     an object of an empty class of the same name: CPython is asked what it would say to the real one.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from . import meaning
from .active import active
from .kinds import IMMUTABLE as IMMUTABLE
from .kinds import flags_of, is_one_of, mro_of
from .reads import HEAP_TYPE, MISSING, static
from .session import Tracer
from .tape import Site
from .text import PRIVATE

FunctionType = types.FunctionType
NATIVE_METHODS = frozenset(
    (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
)


def plain_of(value: Any) -> Any:
    """The value in a box, the string of text, or the value itself."""
    kind = type(value)
    return value.value if type(kind) is type and kind in PRIVATE else value


def shown(value: Any) -> Any:
    """The same, to be looked at: a method of a box is one of what is in it, which is written in C."""
    owner: Any = value.__self__ if type(value) is types.MethodType else None
    if not is_one_of(type(owner), PRIVATE):
        return plain_of(value)
    return getattr(owner.value, value.__name__)


def kind_of(value: Any) -> type:
    """The type that the program believes a value to have."""
    kind = type(value)
    if kind is types.MethodType:
        return type(shown(value))
    return type(value.value) if type(kind) is type and kind in PRIVATE else kind


def is_object(value: Any) -> bool:
    """Whether the class of a value was made by a class statement, and may have methods in Python."""
    kind = type(value)
    return bool(flags_of(kind) & HEAP_TYPE) and not (type(kind) is type and kind in PRIVATE)


def is_subtype(kind: type, base: type) -> bool:
    """Whether a class is another or derives from it; nobody's ``__subclasscheck__`` is asked."""
    return kind is base or any(x is base for x in mro_of(kind))


def is_users_exception(error: Any) -> bool:
    """Whether something is a class of exceptions that a class statement has made."""
    made = issubclass(type(error), type) and bool(flags_of(error) & HEAP_TYPE)
    return made and is_subtype(error, BaseException)


def is_native(kind: type) -> bool:
    """Whether a class is written in C."""
    return not flags_of(kind) & HEAP_TYPE or bool(flags_of(kind) & IMMUTABLE)


def native_base(kind: type) -> type:
    """The class written in C that a class derives from, itself if it is one."""
    return next(x for x in mro_of(kind) if is_native(x))


def special(value: Any, name: str) -> Any:
    """What the class of a value holds under the name of a special method, or MISSING."""
    kind = type(value)
    if type(kind) is type and kind in PRIVATE:
        kind = type(value.value)
    found = static(kind, name)
    if flags_of(kind) & HEAP_TYPE and (tracer := active.tracer) is not None:
        reads = tracer.reads
        if reads is not None:
            reads.note(reads.constant(kind), "static", name, found)
    return found


def is_python(found: Any) -> bool:
    """Whether what a class holds under the name of a special method is there, and not written in C."""
    return found is not MISSING and not is_one_of(type(found), NATIVE_METHODS)


def python_special(value: Any, name: str) -> Any:
    """The special method of a value's class, or MISSING where there is none that is not written in C."""
    kind = type(value)
    if not flags_of(kind) & HEAP_TYPE or is_one_of(kind, PRIVATE):
        return MISSING
    found = special(value, name)
    return found if type(found) is FunctionType or is_python(found) else MISSING


def invoke(tracer: Tracer, site: Site, found: Any, value: Any, *args: Any) -> Any:
    """Call the special method that was found in the class of ``value``."""
    if type(found) is FunctionType:
        return meaning.calls.call(tracer, site, found, (value, *args), {})
    return meaning.calls.call(tracer, site, bound(tracer, site, found, value), args, {})


def bound(tracer: Tracer, site: Site, found: Any, value: Any) -> Any:
    """What an attribute of a class becomes where it is read from an instance."""
    if (getter := accessor(found, "fget")) is not MISSING:
        return meaning.calls.call(tracer, site, getter, (value,), {})
    getter = special(found, "__get__")
    if getter is MISSING:
        return found
    if is_python(getter):
        return invoke(tracer, site, getter, found, value, kind_of(value))
    return getter(found, value, kind_of(value))


WAYS = {"fget": "__get__", "fset": "__set__", "fdel": "__delete__"}


def accessor(found: Any, name: str) -> Any:
    """What a property calls to get, set or delete; MISSING for any other, one with ways of its own, and C functions."""
    kind, way = type(found), WAYS[name]
    if kind is not property:
        if not issubclass(kind, property) or static(kind, way) is not vars(property)[way]:
            return MISSING
    fn = vars(property)[name].__get__(found)
    return MISSING if fn is None or type(fn) is types.BuiltinFunctionType else fn


def double(kind: type, members: dict[str, Any]) -> Any:
    """An object of a class with the name of another and these members alone."""
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (), {**names, **members})()


def verdict(value: Any, name: str, result: Any, how: Callable[[Any], Any]) -> Any:
    """What CPython makes of an object whose special method gave ``result``: a value, or its error."""
    plain = plain_of(result)
    return how(double(kind_of(value), {name: lambda *_: plain}))


def blank(value: Any) -> Any:
    """A value of a native class as it is; for any other an object of such a name without special methods.

    CPython says to it what it would say to the value when all its methods have declined.
    """
    kind = kind_of(value)
    return shown(value) if is_native(kind) else double(kind, {"__array_ufunc__": None})
