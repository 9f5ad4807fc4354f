"""Named tuples that the run makes: objects whose attributes nobody changes, and tuples wherever one is asked for."""

from __future__ import annotations

import types
from typing import Any

from ...rules.words import with_article
from ..kinds import static
from .basics import loaded, refuse
from .functions import twin_of
from .recorder import Recorder
from .region import OBJECT

# What is asked of a named tuple as of any tuple.
OF_TUPLES = tuple(
    """__len__ __getitem__ __iter__ __contains__ __bool__ __hash__ __getattribute__ __eq__ __ne__ __lt__ __le__ __gt__
    __ge__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__
    __mod__ __rmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __neg__ __pos__""".split()
)


def is_named(recorder: Recorder, x: Any) -> bool:
    return issubclass(type(x), tuple) and type(x) is not tuple and id(x) in recorder.memories


def is_class_of_named(cls: type) -> bool:
    """Whether a class makes its objects as ``collections.namedtuple`` has laid down."""
    new = static(cls, "__new__")
    new = new.__func__ if type(new) is staticmethod else new
    if not issubclass(cls, tuple) or type(new) is not types.FunctionType:
        return False
    plain = type(cls) is type and static(cls, "__init__") is object.__init__
    return plain and new.__code__.co_names == ("_tuple_new",) and is_unchanged(new)


def is_unchanged(new: types.FunctionType) -> bool:
    return str(new.__globals__.get("__name__", "")).startswith("namedtuple_")


def fields_of(cls: Any) -> tuple[str, ...]:
    fields: tuple[str, ...] = cls._fields
    return fields


def parts(recorder: Recorder, key: Any, x: Any) -> tuple[Any, ...]:
    """What is in a named tuple."""
    return tuple([part(recorder, (key, name), x, name) for name in fields_of(type(x))])


def part(recorder: Recorder, key: Any, x: Any, name: str) -> Any:
    return loaded(recorder, key, x, name, x[fields_of(type(x)).index(name)])


def opened(recorder: Recorder, key: Any, x: Any) -> Any:
    """A named tuple as a tuple; anything else as it is."""
    return parts(recorder, (key, "parts"), x) if is_named(recorder, x) else x


def made(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """``cls(*args, **kwargs)``."""
    outside = recorder.outside
    new = outside.of_class(cls, "__new__")
    outside.of_class(cls, "_fields")
    for name in OF_TUPLES:
        if outside.of_class(cls, name) is not static(tuple, name):
            return refuse(
                f"{with_article(cls.__name__)} has {with_article(name)} of its own, and is a tuple"
            )
    new = new.__func__ if type(new) is staticmethod else new
    fields, defaults = fields_of(cls), twin_of(recorder, new).__defaults__ or ()
    known = {**dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))}
    known |= {**dict(zip(fields, args, strict=False)), **kwargs}
    wrong = len(args) > len(fields) or {*kwargs} & {*fields[: len(args)]}
    if wrong or {*known} != {*fields}:
        return refuse(f"{with_article(cls.__name__)} is given too much or too little")
    values = [known[name] for name in fields]
    given = [recorder.packed((key, name), known[name]) for name in fields]
    pairs = [y for pair in zip(fields, given, strict=True) for y in pair]
    return recorder.born((key, "new"), OBJECT, (cls, *pairs), tuple.__new__(cls, values))


def method(recorder: Recorder, fn: Any, args: tuple[Any, ...]) -> str | None:
    """Which method of named tuples is called, if it is one of those that ``collections`` has made."""
    if (
        not args
        or not is_named(recorder, args[0])
        or fn.__globals__.get("__name__") != "collections"
    ):
        return None
    return fn.__name__ if len(args) == 1 and fn.__name__ in ("_replace", "_asdict") else None


def replaced(recorder: Recorder, key: Any, x: Any, kwargs: dict[str, Any]) -> Any:
    """``x._replace(**kwargs)``."""
    names = fields_of(type(x))
    if not {*kwargs} <= {*names}:
        return refuse(f"{with_article(type(x).__name__)} has no such field")
    values = [
        kwargs[name] if name in kwargs else part(recorder, (key, name), x, name) for name in names
    ]
    return made(recorder, (key, "made"), type(x), values, {})
