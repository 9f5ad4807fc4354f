"""Pictures: immutable copies of anything, to the bit, in which one can see what is one and the same object.

A picture is made of tuples, strings and numbers. It shows types, dtypes, shapes, signs of zeros, which array looks at
whose memory, the cells of closures, the members of the program's own classes.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import random
import re
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

MODULE = "program"  # the name of the module of every program
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
ATOMS = (bytes, int, range, type(None), type(...), slice, type(NotImplemented))
SILENT = (
    types.BuiltinFunctionType,
    types.GeneratorType,
    types.ModuleType,
    types.WrapperDescriptorType,
)
SILENT += (
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
SILENT += (
    np.ufunc,
    re.Pattern,
    types.TracebackType,
    types.FrameType,
    itertools.chain,
    map,
    filter,
    zip,
)


def without_addresses(text: str) -> str:
    """Text in which objects without a `__repr__` of their own look alike."""
    return ADDRESS.sub("0x…", text) if "0x" in text else text


class Leak(AssertionError):
    """Something of the engine's has got out."""


class Number(int):
    """Stands in a picture for which object it is."""


class Memory(Number):
    """Stands for which memory an array looks at: one that owns it, or whose base nobody has, are the same."""


class Album:
    """Takes the pictures of one play of a program, and so knows which objects it has met before."""

    def __init__(self) -> None:
        self.numbers: dict[int, Number] = {}
        self.memories: dict[int, tuple[Memory, int]] = {}
        self.kept: list[Any] = []  # so that no id is used twice

    def number(self, x: Any) -> Number:
        if id(x) not in self.numbers:
            self.numbers[id(x)] = Number(len(self.numbers))
            self.kept.append(x)
        return self.numbers[id(x)]

    def take(self, x: Any) -> Any:
        """The picture of a thing, and of what it refers to."""
        return self.picture(x, set())

    def picture(self, x: Any, seen: set[int]) -> Any:
        kind = type(x)
        if isinstance(x, np.generic) and kind.__module__ == "numpy":
            return kind.__name__, x.dtype.str, precise(np.asarray(x))
        if kind is float or kind is complex:
            return kind.__name__, precise(np.asarray(x))
        if kind is str:
            return "str", without_addresses(x)
        if kind is int:
            return "int", hex(x)  # which, unlike the decimal digits of a long one, has no limit
        if kind in ATOMS:
            return kind.__name__, repr(x)
        if is_ours(kind):
            raise Leak(f"an object of the engine's class {kind.__qualname__}")
        if isinstance(x, SILENT):
            return kind.__name__, getattr(x, "__qualname__", "")
        if kind is types.CodeType:
            return "code", x.co_qualname, x.co_code, x.co_names
        if kind is tuple:
            return "tuple", *[self.picture(item, seen) for item in x]
        if id(x) in seen:
            return "again", self.number(x)
        seen.add(id(x))
        return name_of(kind), self.number(x), *self.contents(x, seen)

    def contents(self, x: Any, seen: set[int]) -> Iterator[Any]:
        def take(y: Any) -> Any:
            return self.picture(y, seen)

        if isinstance(x, np.ndarray):
            yield from (
                self.memory(x),
                x.dtype.str,
                x.shape,
                x.flags.c_contiguous,
                x.flags.writeable,
            )
            yield from map(take, x.ravel().tolist()) if x.dtype == object else [precise(x)]
        elif isinstance(x, np.random.Generator | np.random.RandomState | random.Random):
            yield state_of(x)
        elif isinstance(x, types.FunctionType):
            if x.__module__ is not None and x.__module__ != MODULE:
                yield f"{x.__module__}.{x.__qualname__}"
                return
            yield from (
                x.__qualname__,
                take(x.__code__),
                take(x.__defaults__),
                take(x.__kwdefaults__),
            )
            yield take(vars(x))
            for cell in x.__closure__ or ():
                yield "cell", self.number(cell), *cell_contents(cell, take)
        elif isinstance(x, types.MethodType):
            yield from (take(x.__self__), take(x.__func__))
        elif isinstance(x, functools.partial):
            yield from (take(x.func), take(x.args), take(x.keywords))
        elif isinstance(x, type):
            if x.__module__ == MODULE:
                yield [name_of(base) for base in x.__mro__]
                yield from (
                    (key, take(value)) for key, value in vars(x).items() if key not in HIDDEN
                )
            else:
                yield x.__qualname__
        elif isinstance(x, property):
            yield from (take(x.fget), take(x.fset))
        elif isinstance(x, staticmethod | classmethod):
            yield take(x.__func__)
        elif isinstance(x, functools.cached_property):
            yield take(x.func)
        elif isinstance(x, weakref.ref):
            yield take(x())
        elif isinstance(x, io.StringIO):
            yield from (take(x.getvalue()), x.tell())
        elif isinstance(x, functools._lru_cache_wrapper):
            yield x.cache_info()
        elif isinstance(x, itertools.count | itertools.repeat):
            yield repr(x)
        elif isinstance(x, BaseException):
            yield from (take(x.args), take(x.__dict__), take(x.__cause__), take(x.__context__))
            yield from (
                getattr(x, "__notes__", None),
                [take(e) for e in getattr(x, "exceptions", ())],
            )
        else:
            if isinstance(x, collections.defaultdict):
                yield take(x.default_factory)
            if isinstance(x, dict):  # not as its class sees itself
                base = collections.OrderedDict if isinstance(x, collections.OrderedDict) else dict
                yield from ((take(key), take(value)) for key, value in base.items(x))
            elif isinstance(x, types.MappingProxyType):
                yield from ((key, take(value)) for key, value in x.items())
            elif isinstance(x, list | tuple):
                items = list if isinstance(x, list) else tuple
                yield from map(take, items.__iter__(x))
            elif isinstance(x, collections.deque):
                yield from (x.maxlen, *map(take, x))
            elif isinstance(x, set | frozenset):
                yield sorted((take(item) for item in x), key=unnumbered)
            elif isinstance(x, float | int | str):
                yield base_repr(x)
            yield from ((key, take(value)) for key, value in attributes(x).items())

    def memory(self, x: np.ndarray[Any, Any]) -> tuple[Memory, int]:
        """The memory that an array looks at, and where in it: from the first array that was met there."""
        start = x.__array_interface__["data"][0]
        while isinstance(x.base, np.ndarray):
            x = x.base
        if x.size == 0:
            return Memory(-1), 0
        if id(x) not in self.memories:
            self.memories[id(x)] = Memory(len(self.memories)), start
            self.kept.append(x)
        memory, first = self.memories[id(x)]
        return memory, start - first


HIDDEN = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__ "
    "__abstractmethods__ _abc_impl __annotations__ __annotate__ __annotate_func__ __annotations_cache__".split()
)


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "wengert"


def name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def precise(array: np.ndarray[Any, Any]) -> Any:
    """Every bit, except that all NaNs are one."""
    if array.dtype.kind in "fc" and np.isnan(array).any():
        return repr(array.tolist())
    return array.tobytes() if array.dtype.kind != "O" else repr(array)


def state_of(x: Any) -> str:
    if isinstance(x, random.Random):
        return str(hash(x.getstate()))
    return str(x.bit_generator.state if hasattr(x, "bit_generator") else x.get_state())


def base_repr(x: Any) -> str:
    base = next(kind for kind in (float, int, str) if isinstance(x, kind))
    return base.__repr__(x)


def unnumbered(picture: Any) -> str:
    """What to sort by: everything but the numbers."""
    return re.sub(r"\b\d+\b", "", repr(picture))


def cell_contents(cell: types.CellType, take: Any) -> list[Any]:
    try:
        return [take(cell.cell_contents)]
    except ValueError:
        return ["empty"]


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object, slots included, whatever its class makes of them."""
    try:
        found = dict(object.__getattribute__(x, "__dict__"))
    except AttributeError:
        found = {}
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(slot)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found.setdefault(slot, member.__get__(x, kind))
                except AttributeError:
                    pass
    return found


ANOTHER = "the same object as before instead of another, or another instead of the same"


class Comparison:
    """Compares the pictures of two plays, in which the same objects may have different numbers."""

    def __init__(self) -> None:
        self.theirs: dict[tuple[type, int], Number] = {}
        self.mine: dict[tuple[type, int], Number] = {}

    def where(self, a: Any, b: Any, path: str = "") -> str | None:
        """The first place at which two pictures differ, in words."""
        kind = type(a)
        if isinstance(a, Number) and kind is type(b):
            if (
                self.theirs.setdefault((kind, a), b) == b
                and self.mine.setdefault((kind, b), a) == a
            ):
                return None
            return f"{path}: {ANOTHER}"
        if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
            name = a[0] if a and isinstance(a[0], str) and len(a[0]) < 30 else ""
            for i, (x, y) in enumerate(zip(a, b)):
                if x is y:
                    continue
                found = self.where(x, y, f"{path}/{name or i}")
                if found:
                    return found
            return None
        return None if a == b else f"{path}: {readable(a)} instead of {readable(b)}"


def readable(x: Any) -> str:
    if isinstance(x, bytes) and x and len(x) % 8 == 0 and len(x) <= 64:
        return str(np.frombuffer(x).tolist())
    if isinstance(x, tuple):
        text = "(" + ", ".join(map(readable, x)) + ")"
    else:
        text = repr(x)
    return text if len(text) < 200 else text[:200] + "…"
