"""Methods of what is built in: lists, sets, dicts and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import are_one_of
from . import equivalents
from .basics import decided, plain, refuse
from .functions import call_function
from .iteration import source_of_dict
from .memories import apart, append, delete, indexed, listed, must_be_own, put
from .recorder import Box, Recorder
from .region import POP, REPEAT, STORE

OF_TEXT = frozenset(
    "join upper lower strip lstrip rstrip startswith endswith isdigit isalpha isspace find count replace".split()
)

OF_NUMBERS_ALONE = (int.bit_length, int.bit_count, float.is_integer)  # with no other argument

OF_LISTS = {
    ("extend", 1): equivalents.extend, ("insert", 2): equivalents.insert, ("pop", 1): equivalents.popped,
    ("reverse", 0): equivalents.reverse, ("index", 1): equivalents.index_of, ("count", 1): equivalents.count_of,
    ("remove", 1): equivalents.remove,
}  # fmt: skip


def method_of_list(
    recorder: Recorder, key: Any, items: list[Any], name: str, args: tuple[Any, ...], kwargs: Any
) -> Any:
    if name == "sort" and not args:
        return sort(recorder, key, items, kwargs)
    if kwargs:
        return refuse(f"{name} of a list is given keywords")
    if name == "append" and len(args) == 1:
        return append(recorder, key, items, args[0])
    if name == "copy" and not args:
        return recorder.born(key, REPEAT, (items, 1), items[:])
    if name == "pop" and not args:
        must_be_own(recorder, items)
        if not items:
            try:
                items.pop()
            except IndexError as error:
                recorder.failed(key, POP, (items,), error)
                raise
        x = recorder.taken(key, POP, (items,), items[-1])
        items.pop()
        return x
    same = OF_LISTS.get((name, len(args)))
    if same is None or (name == "extend" and type(args[0]) is not list):
        return refuse(f"{name} of a list is called")
    if name == "extend":
        apart(items, args[0])
    return call_function(recorder, key, same, (items, *args), {})


def sort(recorder: Recorder, key: Any, items: list[Any], kwargs: dict[str, Any]) -> None:
    """``items.sort(**kwargs)``; while keys are asked for, Python has taken everything out of the list."""
    by, backwards = order_of(kwargs)
    keys, sealed = None, recorder.sealed
    if by is not None:
        taken_out = recorder.born((key, "taken out"), REPEAT, (items, 1), items[:])
        recorder.sealed = sealed | {id(items)}
        try:
            keys = call_function(recorder, (key, "keys"), equivalents.keys_of, (taken_out, by), {})
        finally:
            recorder.sealed = sealed
    call_function(recorder, key, equivalents.sort, (items, keys, backwards), {})


ORDERED = frozenset((float, int, np.float64))


def in_order(recorder: Recorder, key: Any, keys: list[Any], backwards: bool) -> list[int] | None:
    """At which places the first, the second number and so on stand; None of other keys, whose order is followed."""
    values = [*map(plain, keys)]
    if not are_one_of(values, ORDERED):
        return None
    order = equivalents.in_order(values, backwards)
    made: list[int] = recorder.born(key, equivalents.in_order, (keys, backwards), order)
    return made


def order_of(kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """The key and the direction of a sort."""
    key, backwards = kwargs.get("key"), kwargs.get("reverse", False)
    if not {*kwargs} <= {"key", "reverse"} or type(backwards) is not bool:
        refuse("a sort is given something else")
    return key, backwards


def ordered(recorder: Recorder, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``sorted``."""
    if len(args) != 1 or type(args[0]) not in (list, tuple):
        return refuse("something else than a list is sorted")
    made = listed(recorder, (key, "copy"), args[0])
    sort(recorder, key, made, kwargs)
    return made


def method_of_set(
    recorder: Recorder, key: Any, held: set[Any], name: str, args: tuple[Any, ...]
) -> Any:
    """A set is a dict of its listed in the program; its order is not looked at."""
    if name in ("remove", "discard") and len(args) == 1:
        if name == "discard":
            return call_function(recorder, key, equivalents.discard, (held, *args), {})
        return delete(key, held, *args)
    if name != "add" or len(args) != 1:
        return refuse(f"{name} of a set is called")
    return entered(recorder, key, held, args[0])


def entered(recorder: Recorder, key: Any, held: set[Any], x: Any) -> None:
    """``held.add(x)``."""
    must_be_own(recorder, held)
    given, where = indexed(recorder, (key, "index"), x)
    held.add(where)
    recorder.add(key, STORE, (held, given, None), type(None))


def method_of_dict(
    recorder: Recorder,
    key: Any,
    held: dict[Any, Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Any,
) -> Any:
    if name in ("keys", "values", "items") and not args:
        return source_of_dict(recorder, key, held, name)
    if name == "get" and 0 < len(args) < 3 and not kwargs:
        default = args[1] if len(args) == 2 else None
        return call_function(recorder, key, equivalents.get, (held, args[0], default), {})
    if name == "setdefault" and 0 < len(args) < 3 and not kwargs:
        default = args[1] if len(args) == 2 else None
        return call_function(recorder, key, equivalents.setdefault, (held, args[0], default), {})
    if name == "pop" and 0 < len(args) < 3 and not kwargs:
        same = equivalents.take_out if len(args) == 1 else equivalents.take_or
        return call_function(recorder, key, same, (held, *args), {})
    if name == "copy" and not args:
        return call_function(recorder, key, equivalents.copied, (held,), {})
    if name == "update" and len(args) < 2:
        for other in args:
            updated(recorder, (key, "other"), held, other)
        for i, (k, x) in enumerate(kwargs.items()):
            put((key, "keyword", i), held, k, x)
        return None
    return refuse(f"{name} of a dict is called")


def updated(recorder: Recorder, key: Any, held: dict[Any, Any], other: Any) -> None:
    """``held.update(other)``, of another dict."""
    if type(other) is not dict or other is held:
        refuse(f"a dict is updated by {with_article(type(other).__name__)}")
    call_function(recorder, key, equivalents.update, (held, other), {})


def of_text(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...]) -> Any:
    """A method of a text: what it gives is a text, a number, or a decision."""
    values = [plain(x) for x in args]
    if fn is str.join and len(args) == 2 and id(args[1]) in recorder.memories:
        parts = [plain(x) for x in args[1]] if type(args[1]) is list else [None]
        if any(type(x) is not str for x in parts):
            return refuse("something else than a list of texts is joined")
        return recorder.value(key, equivalents.joined_by, args, values[0].join(parts))
    if not all(type(x) in (str, int) for x in values):
        return refuse(f"{fn.__name__} of a text is given something else")
    value = fn(*values)
    if not any(type(x) is Box for x in args):
        return value if type(value) in (str, int, bool) else refuse(f"{fn.__name__} is called")
    if type(value) is bool:
        return decided(recorder, key, fn, args, value)
    if type(value) is not str and type(value) is not int:
        return refuse(f"{fn.__name__} gives {with_article(type(value).__name__)}")
    return recorder.value(key, fn, args, value)


def of_number(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...]) -> Any:
    """A method of a number that is given nothing else: a count, or a decision."""
    value = fn(plain(args[0]))
    if type(args[0]) is not Box:
        return value
    if type(value) is bool:
        return decided(recorder, key, fn, args, value)
    return recorder.value(key, fn, args, value)
