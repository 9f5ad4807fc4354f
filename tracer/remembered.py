"""What a function that is asked once more may read: whether it is what it was at the call.

Of the objects, classes and modules that the function can reach, those attributes count that it, or a method or helper
that it may call, has a name for. What it has written itself does not: it is a count, or a memory of earlier calls.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from .detours import code_of
from .frames import MAPPINGS, NATIVE, attributes, items_of
from .kinds import MISSING, flags_of, is_one_of, isinstance, mro_of
from .places import LIBRARY, OURS
from .reads import HEAP_TYPE
from .rewrite import is_twin, original

NUMBERS = (int, float, complex)
PLAIN = {*NUMBERS, bool, str, bytes, type(None)}
BY_ANY_NAME = {"getattr", "hasattr", "attrgetter", "vars", "__dict__", "__getattribute__"}
NAMES_OF_MODULES = {"__builtins__", "__name__"}


class Read:
    """What may be read of some things, by functions with the given codes, and what it was when this was made."""

    def __init__(
        self, things: Iterable[Any], codes: Iterable[types.CodeType], written: set[Any]
    ) -> None:
        self.written = written
        self.attributes: dict[int, tuple[Any, dict[str, Any]]] = {}  # of each thing, by name
        self.inside: dict[int, tuple[Any, Any]] = {}  # containers and arrays, and what is in them
        self.known: dict[int, Any] = {}  # what has attributes
        self.names: set[str] = {name for code in codes for name in names_in(code)}
        for x in things:
            self.meet(x)
        while True:  # until there are no more names and things
            size = len(self.names), len(self.known)
            for thing in [*self.known.values()]:
                self.look(thing)
            if size == (len(self.names), len(self.known)):
                break

    def meet(self, value: Any) -> None:
        """Something that may be looked into, asked for attributes, or called."""
        kind = type(value)
        if is_one_of(kind, PLAIN) or id(value) in self.known or id(value) in self.inside:
            return
        if is_one_of(kind, NATIVE) or kind is np.ndarray:
            self.inside[id(value)] = value, contents(value)
            for x in elements(value):
                self.meet(x)
        elif kind is types.FunctionType:
            if not is_foreign(value.__code__.co_filename):
                self.known[id(value)] = value
                self.known[id(value.__globals__)] = value.__globals__
                self.names.update(names_in(own_code(value)))
        elif may_change(value):
            self.known[id(value)] = value
        for x in parts_of_callable(value):
            self.meet(x)

    def look(self, thing: Any) -> None:
        """Note what a thing holds, or does not hold, under the names, and meet that, and its class."""
        space = space_of(thing)
        any_name = self.names & BY_ANY_NAME and not isinstance(thing, (dict, types.ModuleType))
        names = self.names | {*space} if any_name else {*self.names}
        found = self.attributes.setdefault(id(thing), (thing, {}))[1]
        for name in names if type(thing) is not dict else names & {*space}:
            if name not in found and name not in NAMES_OF_MODULES:
                found[name] = value = space.get(name, MISSING)
                self.meet(value)
        for cls in mro_of(thing if isinstance(thing, type) else type(thing)):
            self.meet(cls)
            if may_change(cls):  # its special methods run without being named
                for name in filter(is_special, [*vars(cls)]):
                    self.meet(vars(cls)[name])

    def changed(self) -> str | None:
        """What is something else now."""
        for thing, found in [*self.attributes.values()]:
            space = space_of(thing)
            for name, before in found.items():
                if space.get(name, MISSING) is not before and (id(thing), name) not in self.written:
                    return named(thing, name)
        for thing, before in [*self.inside.values()]:
            if id(thing) not in self.written and not same_contents(before, contents(thing)):
                return self.holder(thing)
        return None

    def holder(self, container: Any) -> str:
        """Where a container is found."""
        for thing, found in [*self.attributes.values()]:
            for name, value in found.items():
                if value is container:
                    return named(thing, name)
        return f"{with_article(type(container).__name__)}"

    def objects(self) -> Iterator[Any]:
        """The objects among the things."""
        return (x for x, _ in self.attributes.values() if not isinstance(x, SPACES))


SPACES = (type, types.ModuleType, types.FunctionType, dict)


def named(thing: Any, name: str) -> str:
    if isinstance(thing, dict):
        return f"the global {name!r}"
    if isinstance(thing, (type, types.ModuleType, types.FunctionType)):
        return f"{name!r} of {thing.__name__}"
    return f"{name!r} of {with_article(type(thing).__name__)}"


def space_of(thing: Any) -> Any:
    """What a thing itself holds, without its class: by name."""
    if type(thing) is dict:
        return thing
    return vars(thing) if isinstance(thing, (type, types.ModuleType)) else attributes(thing)


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_foreign(path: str | None) -> bool:
    """Whether code or a module is a library's, or ours."""
    return path is None or path.startswith((*LIBRARY, *OURS))


def may_change(value: Any) -> bool:
    """Whether a value is an object, a class or a module of the user's, whose attributes may be set."""
    if isinstance(value, types.ModuleType):
        return not is_foreign(getattr(value, "__file__", None))
    kind = value if isinstance(value, type) else type(value)
    return bool(flags_of(kind) & HEAP_TYPE) and not isinstance(value, (np.generic, BaseException))


def elements(value: Any) -> Any:
    """What a container holds, but for keys."""
    kind = type(value)
    return (
        ()
        if not is_one_of(kind, NATIVE)
        else value.values()
        if is_one_of(kind, MAPPINGS)
        else value
    )


def contents(value: Any) -> Any:
    """What can be seen of a container or an array when something else is put there."""
    kind = type(value)
    if kind is np.ndarray:
        return value.tobytes() if value.dtype.kind != "O" else value.tolist()
    return [x for pair in items_of(value, kind) for x in pair] if is_one_of(kind, NATIVE) else None


def same_contents(a: Any, b: Any) -> bool:
    if type(a) is not list or type(b) is not list:
        return bool(a == b)
    return len(a) == len(b) and all(
        x is y or (is_one_of(type(x), NUMBERS) and type(x) is type(y) and x == y)
        for x, y in zip(a, b, strict=True)
    )


def parts_of_callable(value: Any) -> Iterator[Any]:
    """What may be called, or read, where a value is called, or stands in a class."""
    if isinstance(value, types.FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if filled(cell))
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
    for name in ("__wrapped__", "__func__", "__self__", "fget", "func", "args", "keywords"):
        if isinstance(value, CALLABLE) and hasattr(value, name):
            yield getattr(value, name)


CALLABLE = (
    *(staticmethod, classmethod, property, types.MethodType),
    *(functools.partial, functools.partialmethod, functools.cached_property),
    type(functools.lru_cache(abs)),
)


def filled(cell: types.CellType) -> bool:
    """Whether anything is in a cell."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def own_code(fn: types.FunctionType) -> types.CodeType:
    """The code that a user has written for a function."""
    code = code_of(fn)
    return original(code) if is_twin(code) else code


@functools.cache
def names_in(code: types.CodeType) -> tuple[str, ...]:
    """The names by which a function, and those in it, may ask for globals and attributes."""
    names = [
        x.argval for x in dis.get_instructions(code) if x.opcode in dis.hasname and not stores(x)
    ]
    for x in code.co_consts:
        names += names_in(x) if isinstance(x, types.CodeType) else ()
        names += (x,) if type(x) is str and x.isidentifier() else ()  # for getattr
    return ("__builtins__", "__name__", *dict.fromkeys(names))


def stores(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith(("STORE_", "DELETE_"))
