"""What Python code runs when a class is made."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from .attributes import note_member
from .detours import code_of
from .kinds import MISSING, flags_of, isinstance, mro_of, static
from .places import LIBRARY
from .reads import HEAP_TYPE
from .session import Tracer
from .tape import Site

NEW = type.__new__
# Methods of classes themselves, as ``mro``, which make no object of them.
OF_CLASSES = frozenset(vars(type))


def note_making(tracer: Tracer, site: Site, made: Any, bases: Any = ()) -> None:
    """Note that the run has made a class; where code of the user's has run for that, no program runs it again."""
    if isinstance(made, type):
        tracer.classes[id(made)] = weakref.ref(made)
    reads = tracer.reads
    if reads is None:
        return
    if runs_code(made) or not all(isinstance(x, type) for x in bases):
        reads.problem(f"making the class {getattr(made, '__name__', made)} calls Python code", site)
    elif isinstance(made, type):
        asked = [(base, "__init_subclass__") for base in made.__bases__]
        asked += [(type(x), "__set_name__") for x in [*vars(made).values()]]
        for kind, name in asked:  # which may have one at the next call
            if id(kind) not in tracer.classes:
                note_member(tracer, kind, name)


class Metaclass:
    """Stands for the metaclass of a class statement: the run calls it, with what the body has made.

    CPython asks it as it asks any callable that is given for a metaclass; whose turn it is among those of the bases is
    found out as the data model says (Python reference, 3.3.3.3).
    """

    def __init__(
        self, given: Any, call: Callable[..., Any], variables: Callable[[Any], Any]
    ) -> None:
        self.given = given
        self.call = call
        self.variables = variables  # what stands in the body for a mapping
        self.namespace = MISSING

    def __prepare__(self, name: str, bases: tuple[Any, ...], /, **kwargs: Any) -> Any:
        if self.given is MISSING:
            self.given = type(bases[0]) if bases else type
        for kind in map(type, bases) if isinstance(self.given, type) else ():
            if issubclass(kind, self.given):
                self.given = kind
            elif not issubclass(self.given, kind):
                raise TypeError(
                    "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the "
                    "metaclasses of all its bases"
                )
        prepare = getattr(self.given, "__prepare__", None)
        # That of `type` looks at nothing that it is given.
        if prepare is None or type(prepare) is types.BuiltinFunctionType:
            return {}
        self.namespace = self.call(prepare, (name, bases), kwargs)
        return self.variables(self.namespace)

    def __call__(self, name: str, bases: tuple[Any, ...], namespace: Any, /, **kwargs: Any) -> Any:
        made = namespace if self.namespace is MISSING else self.namespace
        return self.call(self.given, (name, bases, made), kwargs)


def filled(fn: Any) -> type | None:
    """The user's class of which a class method in C makes an object, as ``dict.fromkeys`` does."""
    if type(fn) is not types.BuiltinFunctionType or fn.__name__ in OF_CLASSES:
        return None
    cls = fn.__self__
    return cls if isinstance(cls, type) and flags_of(cls) & HEAP_TYPE else None


def called(fn: Any, args: tuple[Any, ...]) -> list[types.FunctionType]:
    """The Python functions that ``type`` or ``type.__new__`` call when they make a class, and class methods in C."""
    if (cls := filled(fn)) is not None:
        return [x for x in (function_of(static(cls, "__new__")),) if type(x) is types.FunctionType]
    if (fn is not type and fn is not NEW) or len(args) < 3:
        return []
    bases, namespace = args[-2:]
    if type(bases) is not tuple or not issubclass(type(namespace), dict):
        return []
    found = [static(type(x), "__set_name__") for x in dict.values(namespace)]
    for base in bases:
        if isinstance(base, type):
            found += [vars(x).get("__init_subclass__") for x in mro_of(base)]
    return [x for x in map(function_of, found) if type(x) is types.FunctionType]


def function_of(value: Any) -> Any:
    """The function of a method, or of a static or class method."""
    return getattr(value, "__func__", value)


def runs_code(made: Any) -> bool:
    """Whether what makes a class is the user's: its metaclass, its bases, or what stands in its body."""
    if not isinstance(made, type):
        return True
    found = [static(type(made), x) for x in ("__new__", "__init__", "__call__", "__prepare__")]
    found += [vars(x).get("__init_subclass__") for x in mro_of(made)[1:]]
    found += [static(type(x), "__set_name__") for x in vars(made).values()]
    return any(
        type(x) is types.FunctionType and not code_of(x).co_filename.startswith(LIBRARY)
        for x in map(function_of, found)
    )
