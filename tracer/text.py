"""Text: strings and bytes that were drawn from traced values, and what was made of them.

Text is followed by where it comes from, not by what it says. It may be printed, compared, stored and handed to
anybody; what is refused is to turn it back into a number, whose gradient would be lost (see ``marks``).

A `Text` is to a string what a box is to a number: instrumented code, and C code that calls back, see its type as
``str``, and the outside sees the string itself, its ``value``. Operations run on strings, and what they make is marked
again. A mark cannot be kept by identity, for CPython shares short strings among all who use them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Any

from . import meaning
from .active import active
from .box import BOXES
from .intrinsic import intrinsic
from .kinds import is_one_of
from .origins import Origin, joined
from .places import blame, user_site
from .tape import Op, Site


class Text(str):
    """A string with its origin. Its methods are for C code, and for opcodes without hooks."""

    __slots__ = ("origin", "value")
    value: str
    origin: Origin

    def __new__(cls, value: str, origin: Origin) -> Text:
        self = super().__new__(cls, value)
        self.value, self.origin = value, origin
        return self

    def __iter__(self) -> Iterator[Text]:  # type: ignore[override]
        return (Text(x, self.origin) for x in self.value)


class Data(bytes):
    """Bytes with their origin."""

    value: bytes
    origin: Origin

    def __new__(cls, value: bytes, origin: Origin) -> Data:
        self = super().__new__(cls, value)
        self.value, self.origin = value, origin
        return self

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(len(self.value)))  # which are numbers, and refused


TEXTS = frozenset((Text, Data))
PRIVATE = BOXES | TEXTS  # what the outside never sees
STRINGS = TEXTS | {str, bytes}

GIVING_WAY = frozenset(("__add__", "__mul__", "__mod__"))  # to what the other operand can do
SHOWN = frozenset(("__str__", "__repr__", "__format__"))


def _marked(base: Any, name: str) -> Callable[..., Any]:
    """A method of strings or bytes whose results are marked."""
    plain = getattr(base, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any) -> Any:
        try:
            value = plain(self.value, *args)
        except TypeError:
            if name in GIVING_WAY:
                return NotImplemented
            raise
        tracer = active.tracer
        if tracer is None or value is NotImplemented:
            return value
        if name in SHOWN:
            tracer.texts.drawn.append(self.origin)
        origin = joined([self.origin, *(x.origin for x in args if is_one_of(type(x), TEXTS))])
        return meaning.marks.follow(tracer, user_site(), plain, value, origin)

    return method


def _added(base: Any) -> Callable[..., Any]:
    """``other + text``, where the other is no text."""

    def method(self: Any, other: Any) -> Any:
        return wrapped(other + self.value, self.origin) if type(other) is base else NotImplemented

    return method


for _cls, _base in ((Text, str), (Data, bytes)):
    for _name in ("__getitem__", *GIVING_WAY, *SHOWN):
        setattr(_cls, _name, _marked(_base, _name))
    setattr(_cls, "__radd__", _added(_base))  # noqa: B010  (mypy takes the plain form for an error)
    # What error messages say of a string.
    _cls.__name__, _cls.__qualname__, _cls.__module__ = _base.__name__, _base.__name__, "builtins"


def drawn(tracer: Any, op: Op, value: Any, site: Site) -> Any:
    """Text that is drawn from an op."""
    origin = Origin(op, blame(site))
    tracer.texts.drawn.append(origin)
    return wrapped(value, origin)


def wrapped(value: Any, origin: Origin) -> Any:
    """A string or bytes with an origin."""
    return Text(value, origin) if type(value) is str else Data(value, origin)


@intrinsic
def bare(value: Any) -> Any:
    """The string or the bytes of text; any other value itself."""
    return value.value if is_one_of(type(value), TEXTS) else value


def bare_all(value: Any) -> Any:
    """A value without text in it: lists, tuples and dicts that hold some are copied."""
    kind = type(value)
    if kind is list or kind is tuple:
        held = tuple(value)  # at one moment: another thread may write to it
        parts = [bare_all(x) for x in held]
        return value if all(a is b for a, b in zip(parts, held, strict=True)) else kind(parts)
    if kind is dict:
        items = list(value.items())
        pairs = [(bare_all(k), bare_all(x)) for k, x in items]
        same = all(a is k and b is x for (a, b), (k, x) in zip(pairs, items, strict=True))
        return value if same else dict(pairs)
    return bare(value)


def bare_names(value: Any) -> Any:
    """The names of members, with their values or without: the names are plain, and the values text if they were."""
    kind = type(value)
    if kind is dict:
        return {bare(k): x for k, x in value.items()}
    if kind is list or kind is tuple:
        return kind(
            [(bare(x[0]), *x[1:]) if type(x) in (list, tuple) and x else bare(x) for x in value]
        )
    return bare(value)


# ---------------------------------------------------------------------------------------------- codecs

OWN_HANDLERS = frozenset(
    "strict ignore replace xmlcharrefreplace backslashreplace namereplace surrogateescape surrogatepass".split()
)
OWN_ENCODINGS = frozenset(aliases) | frozenset(aliases.values())


def by_users_codec(name: str, method: bool, args: Any, kwargs: Any) -> bool:
    """Whether a conversion between strings and bytes asks a codec, or a handler of errors, that a user registered.

    Such a function may do anything; `name` is the callable's, and a ``method`` that comes unbound has its object first.
    """
    if name in ("encode", "decode"):
        given = args[method:]
    elif name in ("str", "bytes", "bytearray"):
        given = args[1:]
    else:
        return False
    encoding, errors = [*given, None, None][:2]
    encoding, errors = kwargs.get("encoding", encoding), kwargs.get("errors", errors)
    if isinstance(errors, str) and errors not in OWN_HANDLERS:
        return True
    return isinstance(encoding, str) and normalize_encoding(encoding).lower() not in OWN_ENCODINGS


# Of strings: these convert what is to be shown by a format.
FORMATTING = frozenset(("mod", "imod", "__mod__", "__rmod__"))
