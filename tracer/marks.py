"""Marks: what C code makes of text is text again, and no number.

Words
-----
text     a string, or bytes, drawn from a traced value, or made of such text (see ``text``).
mark     the origin that text, and what holds text, has (see ``origins``, ``holders``).
behind   a value: what can be reached from it, by items and attributes.
bearer   an object with text in its attributes.

Instrumented code only moves text about. Strings are read and made by C code, which is given the plain strings; what it
gives back is marked here: a string is text, an object holds some (see ``holders``), and a number is refused, unless it
is known to be a count, a position or the like. Python code that takes strings apart ends in such a call.
"""

from __future__ import annotations

import functools
import io
import mmap
import pathlib
import queue
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import meaning
from .arrays import current, dtype_of
from .box import BOXES, ArrayBox, Box
from .errors import TraceError
from .frames import items_of, native, referents
from .holders import (
    SILENT,
    belong,
    file_named,
    gives_nothing,
    held,
    hold,
    hold_all,
    in_file,
    is_known,
    is_naming,
    is_reader,
    may_hold,
)
from .kinds import are_one_of, attribute, has, imported, is_number_class, is_one_of, isinstance
from .origins import File, Origin, Texts, dependent, dependents, is_around, joined
from .places import blame
from .seals import Unfollowed
from .structure import attributes, is_container, is_namedtuple
from .tape import Site, append, fn_name
from .text import FORMATTING, PRIVATE, STRINGS, TEXTS, bare, wrapped

QUIET = SILENT | BOXES
BOUND = frozenset((types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType))
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
COMPARING = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
MOST = 10_000  # objects to look into for text
MOST_REACHED = 300  # and for files


# ---------------------------------------------------------------------------------------------- finding


def found(tracer: Any, *values: Any) -> Origin | None:
    """The origin of the text in values and in containers of them; None where there is none."""
    if not tracer.texts.drawn or all(map(is_quiet, values)):
        return None
    origins, _ = search(tracer, values, deep=False)
    return joined(origins) if origins else None


def behind(tracer: Any, site: Site, *values: Any) -> Origin | None:
    """The origin of text that C code makes of values: of the numbers and the text in them, and in objects."""
    origins, boxes = search(tracer, values, deep=True)
    if boxes:
        place = blame(site)
        origins += [Origin(current(x) if type(x) is ArrayBox else x.op, place) for x in boxes]
        tracer.texts.drawn.append(origins[-1])
    return joined(origins) if origins else None


def in_files(tracer: Any, fn: Any, args: Any) -> Origin | None:
    """The origin of the text in files that a function in C is given the names of, to read them."""
    names = [*names_in(args), *[x for x in args[:1] if fn is mmap.mmap]]  # which has a descriptor
    origins = [x for name in names if (x := in_file(tracer.texts, name)) is not None]
    return joined(origins) if origins else None


def names_in(values: Any) -> list[Any]:
    """What may be the name of a file among values."""
    return [x for x in values if isinstance(x, (*STRINGS, pathlib.PurePath))]


def files_named(values: Any) -> list[File]:
    """The files that are named among values."""
    return [x for x in map(file_named, names_in(values)) if x is not None]


def is_bearer(tracer: Any, value: Any) -> bool:
    """Whether an object that the run has made has text, and no traced numbers, in its attributes."""
    kind = type(value)
    if is_one_of(kind, SILENT) or kind.__dictoffset__ == 0 or id(value) in tracer.outside:
        return False
    origins, boxes = search(tracer, value, deep=True)
    return bool(origins) and not boxes


def is_quiet(value: Any) -> bool:
    """Whether a value, or a tuple or dict of values, is seen at a glance not to hold text."""
    kind = type(value)
    if kind is tuple:
        return are_one_of(value, QUIET)
    if kind is dict:
        return are_one_of(value, QUIET) and are_one_of(value.values(), QUIET)
    return is_one_of(kind, QUIET)


def search(tracer: Any, value: Any, deep: bool) -> tuple[list[Origin], list[Any]]:
    """The origins of the text behind a value, and the boxes; objects are looked into where the search is deep."""
    origins: list[Origin] = []
    boxes: list[Any] = []
    seen: dict[int, Any] = {}
    todo = [value]
    while todo and len(seen) < MOST:
        x = todo.pop()
        kind = type(x)
        if is_one_of(kind, TEXTS):
            origins.append(x.origin)
        elif is_one_of(kind, BOXES):
            boxes.append(x)
        elif not is_one_of(kind, SILENT) and id(x) not in seen:
            seen[id(x)] = x
            if (origin := held(tracer, x)) is not None:
                origins.append(origin)
            todo += reversed(list(inside(tracer, x, kind, deep)))
    return origins, boxes


def inside(tracer: Any, value: Any, kind: Any, deep: bool) -> Any:
    """What to look for text in, one step behind a value."""
    if isinstance(value, dict):
        return (*dict.keys(value), *dict.values(value))
    if isinstance(value, VIEWS):
        return value
    if (base := native(kind)) is not None:  # a derived class may have an ``__iter__`` of its own
        return [x for _, x in items_of(value, base)]
    if is_one_of(kind, BOUND):
        return () if isinstance(value.__self__, (types.ModuleType, type)) else (value.__self__,)
    if kind is functools.partial:
        return (value.func, value.args, value.keywords)
    if kind is slice:
        return (value.start, value.stop, value.step)
    if has(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
        return referents(value)
    if not (deep or isinstance(value, (str, bytes))):  # which is itself text, if it has some
        return ()
    if isinstance(value, (type, np.ndarray, np.generic)):
        return ()
    parts: list[Any] = []
    members = {"args": value.args} if isinstance(value, BaseException) else {}
    for name, x in {**attributes(value), **members}.items():
        entry = tracer.overlay.get((id(value), name))
        parts.append(x if entry is None or entry[1] is not x else entry[2])
    return parts


# -------------------------------------------------------------------------------------------- following


def made(tracer: Any, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, before: int) -> Any:
    """What the traced function sees of a value that C code made of arguments, some of which may be text.

    ``before`` is how many texts had been drawn when it began: it may have drawn some itself.
    """
    texts = tracer.texts
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        without_text(texts, value)
    deep = is_text(value) or (is_reader(fn) and may_hold(value))
    if not texts.drawn and not deep:
        return value
    asked = (fn, args, kwargs)
    origin = behind(tracer, site, *asked) if deep else found(tracer, *asked)
    if origin is not None and is_looked_up(tracer, fn, args):
        return number(tracer, site, fn, value, origin)
    return traced(tracer, site, fn, value, origin, before)


POSITIONS = frozenset("find rfind index rindex".split())


def is_looked_up(tracer: Any, fn: Any, args: Any) -> bool:
    """Whether a function says where text stands in what is none, as in a table of digits: that makes a number of it.

    A position in text only says how that is laid out; and to look text up among others in a list or a dict is to
    compare it.
    """
    if attribute(fn, "__name__", "") not in POSITIONS:
        return False
    owner = attribute(fn, "__self__")
    bound = owner is not None and not isinstance(owner, (type, types.ModuleType))
    table, *rest = (owner, *args) if bound else (*args, None)
    return found(tracer, table) is None and found(tracer, *rest[:1]) is not None


def run(tracer: Any, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Call a C function that makes text of what it is given, or reads it."""
    if tracer.reads is not None:
        tracer.reads.shown((*args, *kwargs.values()), site)
    before = len(tracer.texts.drawn)
    value = meaning.escape.watched(fn, args, kwargs, site)
    return made(tracer, site, fn, args, kwargs, value, before)


def traced(tracer: Any, site: Site, fn: Any, value: Any, origin: Origin | None, before: int) -> Any:
    """A value made of text of this origin, and of what was drawn since ``before``.

    A number that a callback has drawn text on the way to is not made of it.
    """
    meanwhile = tracer.texts.drawn[before:]
    if meanwhile and is_text(value):
        origin = joined(meanwhile if origin is None else [origin, *meanwhile])
    return value if origin is None else follow(tracer, site, fn, value, origin)


def follow(
    tracer: Any, site: Site, fn: Any, value: Any, origin: Origin, within: tuple[int, ...] = ()
) -> Any:
    """What ``fn`` made of text: text again, a holder, or a number, which is refused; it may stand in itself."""
    kind = type(value)
    if id(value) in within:
        return value
    if is_naming(fn):
        return value
    if kind is str or kind is bytes:
        return wrapped(value, origin)
    if is_number(value):
        about = type(value) is int or (type(value) is float and value != value)  # a missing one
        about = about and is_around(origin)
        return value if about or is_known(fn) else number(tracer, site, fn, value, origin)
    if (
        is_one_of(kind, SILENT)
        or is_one_of(kind, PRIVATE)
        or is_one_of(kind, BOUND)
        or isinstance(value, (type, np.bool_))
    ):
        return value
    if is_reading(fn, value):
        return follow(tracer, site, fn, value[0], origin), value[1]
    inside = (*within, id(value))
    mark = functools.partial(follow, tracer, site, fn, origin=origin, within=inside)
    if isinstance(value, (tuple, frozenset)):
        parts = [mark(x) for x in value]
        if all(a is b for a, b in zip(parts, value, strict=True)):
            return value
        return kind._make(parts) if is_namedtuple(kind) else kind(parts)  # type: ignore[attr-defined,call-arg]
    if is_container(value):  # which may be the shadow of somebody's own
        if isinstance(value, dict):
            pairs = [(mark(k), mark(x)) for k, x in value.items()]
            value.clear()
            value.update(pairs)
        else:
            parts = [mark(x) for x in value]
            value.clear()
            value.update(parts) if isinstance(value, set) else value.extend(parts)
        return value
    if not (type(fn) is types.FunctionType and is_known(fn)):
        hold(tracer.texts, value, origin)
    return value


def is_reading(fn: Any, value: Any) -> bool:
    """Whether a value is what the ``json`` scanner has read, and the position up to which."""
    if type(value) is not tuple or len(value) != 2 or type(value[1]) is not int:
        return False
    return attribute(fn, "__module__") == "_json"


def is_text(value: Any, within: tuple[int, ...] = ()) -> bool:
    """Whether a value is a string or bytes, or a container of nothing else; it may stand in itself."""
    if isinstance(value, (str, bytes)):
        return True
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        if id(value) in within:
            return True
        inside = (*within, id(value))
        parts = dict.values(value) if isinstance(value, dict) else value
        return len(value) > 0 and all(x is None or is_text(x, inside) for x in parts)
    return isinstance(value, np.ndarray) and dtype_of(value).kind in "SU"


def is_number(value: Any) -> bool:
    """Whether a value is a number, or an array of numbers; what is true or false is none."""
    value = value.value if is_one_of(type(value), BOXES) else value
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iufcV"
    return is_number_class(type(value))


def number(tracer: Any, site: Site, fn: Any, value: Any, origin: Origin) -> Any:
    """A number that ``fn`` read off text: refused, if that was drawn from a value that has a derivative.

    What a rule computes is not differentiated with the program, so there it is refused only where somebody asks for the
    derivative of that.
    """
    if (
        is_one_of(type(value), BOXES) and type(value.op.fn) is Unfollowed
    ):  # which was seen to already
        return value
    parts = list(dependents(tracer.texts, origin))
    in_rule = tracer.bodies or tracer.pulling or tracer.expanding
    if parts and in_rule and isinstance(value, PLAIN_NUMBERS):
        ops = [one.op for one in parts if one.op is not None]
        if all(op.tape is tracer.tape for op in ops):
            lost = Unfollowed(fn_name(fn), reason(site, fn, value, parts[0]))
            return Box(value, append(tracer.tape, lost, (value, *ops), {}, value, site))
    refuse(tracer, site, fn, value, origin)
    return value


PLAIN_NUMBERS = (int, float, complex, np.number)


def refuse(tracer: Any, site: Site, fn: Any, value: Any, origin: Origin) -> None:
    """Raise where text of a value that has a derivative has become a number."""
    one = dependent(tracer.texts, origin)
    if one is not None:
        raise TraceError(reason(site, fn, value, one))


def reason(site: Site, fn: Any, value: Any, origin: Origin) -> str:
    kind = type(value.value if is_one_of(type(value), BOXES) else value).__name__
    return (
        f"{blame(site)}: {fn_name(fn)} makes {with_article(kind)} of text that was drawn from a traced value "
        f"({origin.place}), so its gradient would be lost\n"
        "compute with the value itself in the place of its text; if it is meant to be a constant, draw the text from "
        "wengert.stop_gradient of it (docs/errors.md#text)"
    )


def without_text(texts: Texts, array: Any) -> None:
    """Put strings in the place of text in an array of objects, which holds it from now on."""
    marked = [(i, x) for i, x in np.ndenumerate(array) if is_one_of(type(x), TEXTS)]
    for i, x in marked:
        array[i] = x.value
    if marked:
        hold(texts, array, joined([x.origin for _, x in marked]))


class Reading:
    """Stands for what reads an attribute of a holder, or a file."""

    def __init__(self, what: Any) -> None:
        self.__name__ = what if isinstance(what, str) else what.__name__


# --------------------------------------------------------------------------------------------- C code


ORDERING = frozenset(("shuffle",))  # generators draw positions, whatever lies there


def keep(
    tracer: Any, fn: Any, args: Any, kwargs: Any, value: Any, origin: Origin, known: bool = True
) -> None:
    """A C function was given text, or numbers to make text of: what it may have put it into holds it.

    One that gives something has put it nowhere, where it is ``known``; another one into what it works on.
    """
    if isinstance(fn, type) or is_naming(fn) or attribute(fn, "__name__") in ORDERING:
        return
    owner = attribute(fn, "__self__")
    if owner is None and args and hasattr(fn, "__objclass__"):
        owner, args = args[0], args[1:]
    if is_one_of(type(owner), BOXES):  # an array, which writes itself to a file of this name
        tracer.texts.files |= dict.fromkeys(files_named(args), origin)
    given = (owner, *args, *kwargs.values())
    if not (gives_nothing(fn, value) or value is owner):
        if known:
            return
        given = given[:2] if owner is None or isinstance(owner, types.ModuleType) else given[:1]
    in_python = type(fn) is types.FunctionType and is_known(fn)
    own = () if in_python and known else given
    for x in (*own, *files(tracer, fn, given)) if in_python else given:
        if may_hold(x):
            hold_all(tracer.texts, x, origin)


def files(tracer: Any, fn: types.FunctionType, given: tuple[Any, ...]) -> list[Any]:
    """What a Python function that is not traced may write to: files and queues behind its arguments, as a logger's."""
    return [
        x for x in reachable(tracer, fn, given) if isinstance(x, (io.IOBase, queue.SimpleQueue))
    ]


def reachable(tracer: Any, fn: types.FunctionType, given: tuple[Any, ...]) -> Iterator[Any]:
    """What is behind the arguments of a function; one of ``logging`` also finds what its globals hold."""
    loggers = [fn.__globals__.get(name) for name in ("root", "lastResort", "_logRecordFactory")]
    reached = {id(x): x for x in (given, *loggers, sys.stderr)}
    todo = list(reached.values())
    while todo and len(reached) < MOST_REACHED:
        x = todo.pop(0)
        kind = type(x)
        if not (
            is_one_of(kind, SILENT)
            or is_one_of(kind, PRIVATE)
            or isinstance(x, imported("logging", "Manager"))
        ):
            new = [y for y in inside(tracer, x, type(x), True) if id(y) not in reached]
            reached |= {id(y): y for y in new}
            todo += new
    yield from reached.values()


def failed(tracer: Any, site: Site, fn: Any, asked: Any, error: BaseException) -> None:
    """A C function raised an exception, whose message may tell of text and numbers that it was given."""
    if not is_naming(fn) and (origin := behind(tracer, site, asked)) is not None:
        hold(tracer.texts, error, origin)


def read(tracer: Any, site: Site, fn: Any, source: Any, value: Any) -> Any:
    """What was read from an object, which may be a holder."""
    if is_one_of(type(value), SILENT):
        if not tracer.texts.holders:
            return value
    else:
        belong(tracer.texts, source, value)
    origin = held(tracer, source)
    return value if origin is None else follow(tracer, site, fn, value, origin)


def iterator(tracer: Any, value: Any) -> Any:
    """``iter(value)``: the iterator of a holder is one."""
    found = iter(value)
    origin = held(tracer, value) if found is not value else None
    if origin is not None:
        hold(tracer.texts, found, origin)
    return found


def iterated(tracer: Any, site: Site, value: Any) -> Any:
    """What to iterate over in the place of a value: the items of a holder are marked."""
    origin = held(tracer, value)
    return value if origin is None else (follow(tracer, site, iter, x, origin) for x in value)


def passed(values: Iterator[Any], parts: list[Origin]) -> Iterator[Any]:
    """A generator for C code, which sees strings in the place of text; the origins become ``parts`` of another."""
    for x in values:
        if is_one_of(type(x), TEXTS):
            parts.append(x.origin)
        yield bare(x)


def operate(tracer: Any, site: Site, op: Any, args: tuple[Any, ...], operands: Any = None) -> Any:
    """An operator on strings, bytes and what else C code knows, of which some may be text.

    ``operands`` are what C code is given in the place of the arguments.
    """
    before = len(tracer.texts.drawn)
    formats = op.__name__ in FORMATTING and isinstance(args[0], (str, bytes))
    if tracer.reads is not None and formats:
        tracer.reads.shown(operands or args, site)
    elif tracer.reads is not None and not are_one_of(args, SILENT):
        if op.__name__.strip("_") not in COMPARING:
            tracer.reads.rounded(args, site)
    origin = behind(tracer, site, *args) if formats else found(tracer, *args)
    given = [bare(x) for x in operands or args]
    sights = meaning.sights
    value = sights.unseen(
        tracer, site, op, sights.closed(given), lambda: meaning.escape.watched(op, given, {}, site)
    )
    if is_container(value):  # of the very items of lists and tuples
        return value
    value = traced(tracer, site, op, value, origin, before)
    if origin is not None and value is args[0] and may_hold(value):  # written to in place
        hold_all(tracer.texts, value, origin)
    return value
