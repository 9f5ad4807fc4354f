"""Lists, dicts and sets that the run has made, or that stand for arguments: they are born, read and written.

Words
-----
index     what a memory is asked for: a number, a text or a tuple of these, also a key of a dict.
own       a memory that the run has made, so that it may be written to; those of arguments are ``given``.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import MISSING, static
from . import arrays, equivalents
from .basics import (
    ATOMS,
    apart_by_length,
    computed,
    decided,
    is_object,
    length_of,
    loaded,
    now,
    plain,
    refuse,
)
from .functions import call_function
from .named import is_named, parts
from .recorder import Box, Recorder
from .region import APPEND, DICT, DROP, LENGTH, LIST, LOAD, REPEAT, STORE, Array


def must_be_own(recorder: Recorder, memory: Any) -> None:
    """Refuse to write to what the run has not made."""
    if id(memory) not in recorder.memories or id(memory) in recorder.given:
        refuse(f"{with_article(type(memory).__name__)} from outside is written to")


def indexed(recorder: Recorder, key: Any, index: Any) -> tuple[Any, Any]:
    """An index or a key: as an operand, and as it is."""
    if type(index) is Box:
        return index, index.value
    if type(index) is tuple:
        where = tuple([indexed(recorder, key, x)[1] for x in index])
        return (recorder.packed((key, "key"), index) if index else index), where
    if type(index) not in ATOMS:
        refuse(f"{with_article(type(index).__name__)} is an index")
    return index, index


def count_of(recorder: Recorder, key: Any, items: Any) -> Box:
    return recorder.value((key, "count"), LENGTH, (items,), len(items))


def born_list(recorder: Recorder, key: Any, items: list[Any]) -> Any:
    """A list that was made of these items."""
    return recorder.born(
        key, LIST, [recorder.packed((key, i), x) for i, x in enumerate(items)], items
    )


def born_dict(recorder: Recorder, key: Any, keys: list[Any], values: list[Any]) -> Any:
    """A dict that was made of these, with each key once."""
    made = {}
    for k, x in zip(keys, values, strict=True):
        if type(plain(k)) not in ATOMS:
            refuse(f"{with_article(type(k).__name__)} is a key")
        made[plain(k)] = x
    if len(made) < len(keys):
        refuse("a dict is given a key twice")
    packed = [recorder.packed((key, i), x) for i, x in enumerate(values)]
    return recorder.born(
        key, DICT, [y for pair in zip(keys, packed, strict=True) for y in pair], made
    )


def elements(recorder: Recorder, key: Any, items: tuple[Any, ...]) -> list[Any]:
    """A list of what is in a tuple."""
    made = list(items)
    return born_list(recorder, key, made)


def listed(recorder: Recorder, key: Any, x: Any) -> Any:
    """``list(x)``, of a tuple or a list."""
    if type(x) is tuple:
        return elements(recorder, key, x)
    if type(x) is not list or id(x) not in recorder.memories:
        return refuse("list is called")
    return recorder.born(key, REPEAT, (x, 1), [*x])


def stored(recorder: Recorder, key: Any, memory: Any, index: Any, x: Any) -> None:
    recorder.add(key, STORE, (memory, index, recorder.packed(key, x)), type(None))


def append(recorder: Recorder, key: Any, items: Any, x: Any) -> None:
    must_be_own(recorder, items)
    recorder.add(key, APPEND, (items, recorder.packed(key, x)), type(None))
    items.append(x)


def apart(items: list[Any], other: list[Any]) -> list[Any]:
    """Refuse a list that is put behind itself."""
    if items is other:
        refuse("a list is extended by itself")
    return other


def sliced(recorder: Recorder, key: Any, items: Any, part: slice) -> Any:
    """A slice of a list."""
    forward = part.step is None or (type(part.step) is int and part.step > 0)
    if type(items) is not list or not forward:
        return refuse("a slice with a step is taken")
    if part.start is None is part.stop and part.step is None:
        return recorder.born(key, REPEAT, (items, 1), items[:])
    given = (items, part.start, part.stop, part.step)
    return call_function(recorder, key, equivalents.part_of, given, {})


def has_items(recorder: Recorder, x: Any, method: str) -> bool:
    """Whether something is a list or a dict to this method, by its class or as one that is derived from dict."""
    kind = type(x)
    if kind is list or kind is dict:
        return True
    of_class = recorder.outside.of_class
    own = is_object(recorder, x) and issubclass(kind, dict)
    return (
        own
        and of_class(kind, method) is static(dict, method)
        and of_class(kind, "__missing__") is MISSING
    )


def item(key: Any, container: Any, index: Any) -> Any:
    """``container[index]``."""
    kind = type(container)
    recorder = now()
    if has_items(recorder, container, "__getitem__"):
        if id(container) not in recorder.memories:
            return refuse(f"{with_article(kind.__name__)} from outside is read")
        if type(index) is slice:
            return sliced(recorder, key, container, index)
        given, where = indexed(recorder, key, index)
        try:
            x = container[where]
        except (LookupError, TypeError) as error:
            recorder.failed(key, LOAD, (container, given), error)
            raise
        return loaded(recorder, key, container, given, x)
    if kind is tuple:
        if type(index) is Box:
            items = elements(recorder, (key, "items"), container)
            return item(key, items, index)
        return container[index]
    if (kind is str or kind is bytes) and type(index) is not Box:
        return container[index]
    if arrays.is_array(container):
        return arrays.item(recorder, key, container, index)
    if type(plain(container)) is str:
        return part_of_text(recorder, key, container, index)
    if is_named(recorder, container):
        return item(key, parts(recorder, (key, "parts"), container), index)
    if is_object(recorder, container):
        method = recorder.outside.of_class(kind, "__getitem__")
        if type(method) is types.FunctionType:
            return call_function(recorder, key, method, (container, index), {})
    return refuse(f"an item of {with_article(kind.__name__)} is read")


def part_of_text(recorder: Recorder, key: Any, container: Any, index: Any) -> Any:
    """A letter or a slice of a text, of which one is a value of the run."""
    text = plain(container)
    if type(index) is slice:
        ends = [index.start, index.stop, index.step]
        if any(type(plain(x)) not in (int, type(None)) for x in ends):
            return refuse("a text is sliced by something else than integers")
        operands = (container, *ends)
        value = computed(recorder, key, equivalents.part_of_text, operands)
        return recorder.value(key, equivalents.part_of_text, operands, value)
    if type(plain(index)) is not int:
        return refuse(f"an item of {with_article(type(container).__name__)} is read")
    try:
        x = text[plain(index)]
    except IndexError as error:
        recorder.failed(key, LOAD, (container, index), error)
        raise
    return loaded(recorder, key, container, index, x)


def put(key: Any, container: Any, index: Any, x: Any) -> None:
    """``container[index] = x``."""
    recorder = now()
    if type(container) is Array:
        if type(x) is tuple or type(x) is list:
            x = arrays.called(recorder, (key, "items"), np.array, (x,), {})
        return arrays.put(recorder, key, container, arrays.index_of(recorder, key, index), x)
    if arrays.is_boxed(container):
        return arrays.must_be_memory(recorder, container)  # type: ignore[no-any-return]
    must_be_own(recorder, container)
    if has_items(recorder, container, "__setitem__"):
        given, where = indexed(recorder, (key, "index"), index)
        value = recorder.packed(key, x)
        try:
            container[where] = x
        except (LookupError, TypeError) as error:
            recorder.failed(key, STORE, (container, given, value), error)
            raise
        recorder.add(key, STORE, (container, given, value), type(None))
        return
    method = recorder.outside.of_class(type(container), "__setitem__")
    if type(method) is not types.FunctionType:
        refuse(f"an item of {with_article(type(container).__name__)} is written")
    call_function(recorder, key, method, (container, index, x), {})


def delete(key: Any, container: Any, index: Any) -> None:
    """``del container[index]``."""
    recorder = now()
    if type(container) is list and type(index) is not slice:
        call_function(recorder, key, equivalents.pop, (container, index), {})
        return
    if is_object(recorder, container):
        method = recorder.outside.of_class(type(container), "__delitem__")
        if type(method) is types.FunctionType:
            call_function(recorder, key, method, (container, index), {})
            return
    if type(container) not in (dict, set):
        refuse(f"an item of {with_article(type(container).__name__)} is deleted")
    must_be_own(recorder, container)
    given, where = indexed(recorder, (key, "index"), index)
    try:
        if type(container) is set:
            container.remove(where)
        else:
            del container[where]
    except (LookupError, TypeError) as error:
        recorder.failed(key, DROP, (container, given), error)
        raise
    recorder.add(key, DROP, (container, given), type(None))


def named(key: Any, given: Any) -> dict[str, Any]:
    """The keywords that a dict has for a call: its length and its keys decide."""
    recorder = now()
    if not given:
        return {}
    if type(given) is not dict or id(given) not in recorder.memories:
        return refuse(f"keywords are spread from {with_article(type(given).__name__)}")  # type: ignore[no-any-return]
    length_of(recorder, (key, "count"), given)
    found = {}
    for name in given:
        if type(name) is not str:
            refuse("a keyword is no text")
        decided(recorder, (key, name, "there"), operator.contains, (given, name), True)
        found[name] = loaded(recorder, (key, name), given, name, given[name])
    return found


def taken_apart(key: Any, x: Any) -> tuple[Any, ...]:
    """The items of what is unpacked."""
    if type(x) is tuple:
        return x
    recorder = now()
    if is_named(recorder, x):
        return parts(recorder, (key, "parts"), x)
    if type(x) is list and id(x) in recorder.memories:
        return apart_by_length(recorder, key, x)
    if type(x) in recorder.iterators:
        items = call_function(recorder, (key, "items"), equivalents.items_of, (x,), {})
        return apart_by_length(recorder, key, items)
    if arrays.is_array(x) and np.ndim(x.value):
        n = len(x.value)
        decided(recorder, key, operator.eq, (arrays.length(recorder, key, x), n), True)
        return tuple([arrays.item(recorder, (key, i), x, i) for i in range(n)])
    return tuple(refuse(f"{with_article(type(x).__name__)} is taken apart"))
