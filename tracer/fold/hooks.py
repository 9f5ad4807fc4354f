"""The hooks of folding: what the instrumented code calls in the place of its own operations (see ``rewrite``).

They follow numbers of Python's own, text and the like by value, tuples, and the lists, dicts and objects that the run
has made. Whatever else they meet they refuse, before anything is done outside: such a call is traced.

Here are the factories that the rewriter asks for, and nothing else by a name of its own.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from ...rules.words import with_article
from ..cycles import Loop
from ..operators import INPLACE
from ..reads import MISSING
from ..slots import is_users_exception
from ..tape import Site
from . import (
    arrays,
    attributes,
    calls,
    cells,
    contexts,
    equivalents,
    generators,
    imports,
    matching,
    memories,
    methods,
    operators,
    texts,
)
from .basics import NUMBERS, is_same, now, refuse
from .iteration import Items, source_of
from .recorder import Box
from .region import DICT, Instruction, Op

Hook = Callable[..., Any]
folds = runs_generators = True


def __getattr__(name: str) -> Any:
    """The factory of a hook that is not followed: it refuses when it is called."""
    if name.startswith("__"):
        raise AttributeError(name)

    def factory(*_: Any) -> Hook:
        return lambda *_args, **_kwargs: refuse(f"{name} is not followed")

    return factory


# Operators and questions


def binary(site: Site, op: Any) -> Hook:
    if op is operator.getitem:
        return subscript(site)
    fn = INPLACE.get(op, op)
    key = Instruction(site)

    def hook(right: Any, left: Any) -> Any:
        kind, other = type(left), type(right)
        if not ((kind is Box or kind in NUMBERS) and (other is Box or other in NUMBERS)):
            return operators.binary(key, op, fn, left, right)
        if kind is not Box and other is not Box:
            return fn(left, right)
        recorder = now()
        a = left.value if kind is Box else left
        b = right.value if other is Box else right
        try:
            value = fn(a, b)
        except Exception as error:
            recorder.failed(key, fn, (left, right), error)
            raise
        i = recorder.i
        if i < len(recorder.ops):  # the usual case without ado
            node = recorder.ops[i]
            if node.key is key and type(value) is node.type:
                x, y = node.args
                if (x.now is left if type(x) is Op else is_same(x, left)) and (
                    y.now is right if type(y) is Op else is_same(y, right)
                ):
                    recorder.i = i + 1
                    box = node.now = Box(value, node, recorder.turn)
                    return box
        if type(value) not in operators.COUNTED and type(value) is not str:
            return arrays.binary(recorder, key, op, fn, left, right, value)
        return recorder.value(key, fn, (left, right), value)

    return hook


def unary(site: Site, op: Any) -> Hook:
    key = Instruction(site)
    return lambda x: operators.unary(key, op, x)


def compare(site: Site, op: Any, decides: bool = False) -> Hook:
    key = Instruction(site)

    def hook(right: Any, left: Any) -> Any:
        if type(left) is Box and type(right) is Box:  # the usual case without ado
            a, b = left.value, right.value
            if type(a) in NUMBERS and type(b) in NUMBERS:
                return operators.compared_numbers(key, op, decides, left, right, op(a, b))
        return operators.compare(key, op, decides, left, right)

    return hook


def truth(site: Site) -> Hook:
    key = Instruction(site)
    return lambda x: operators.truth(key, x)


def contains(site: Site, negate: bool) -> Hook:
    key = Instruction(site)
    return lambda container, item: operators.contains(key, container, item) is not negate


def is_(site: Site, negate: bool) -> Hook:
    key = Instruction(site)
    return lambda right, left: operators.same_object(key, left, right) is not negate


# Variables and attributes


def load_global(site: Site, name: str, depth: int = 1) -> Hook:
    def hook(value: Any) -> Any:
        recorder = now()
        scope = sys._getframe(depth).f_globals
        key = id(scope), name
        if recorder.noted.get(key, MISSING) is value:
            return value
        traced = recorder.outside.of_globals(scope, name, value)
        if traced is value:
            recorder.noted[key] = value
        return traced

    return hook


def global_attr(site: Site, name: str, attr: str) -> Hook:
    load, get = load_global(site, name, depth=2), getattr(site, attr)
    return lambda value: get(load(value))


def global_append(site: Site, name: str) -> Hook:
    return lambda value: refuse(
        f"{name}, {with_article(type(value).__name__)} from outside, is written to"
    )


def getattr(site: Site, name: str) -> Hook:
    key, seen = object(), attributes.seen_from(site.filename)
    return lambda obj: attributes.get(key, seen(obj, name), name)


def super_attr(site: Site, name: str, given: bool) -> Hook:
    key = object()

    def hook(cls: Any, obj: Any, maker: Any) -> Any:
        now().outside.of_globals(sys._getframe(1).f_globals, "super", maker)
        if maker is not super:
            return refuse("super is not what it was")
        return attributes.get(key, super(cls, obj), name)

    return hook


def setattr(site: Site, name: str) -> Hook:
    key, seen = object(), attributes.seen_from(site.filename)
    return lambda obj, x: attributes.put(now(), key, seen(obj, name), name, x)


# Imports


def importing(site: Site, name: str) -> Hook:
    return lambda names, level: imports.begin(sys._getframe(1).f_globals, name, names, level)


def import_source(site: Site, name: str) -> Hook:
    return lambda module: imports.source(module, name)


def import_name(site: Site, name: str, last: list[Any]) -> Hook:
    return lambda found: imports.module(name, found, last, sys._getframe(1).f_globals)


def import_from(site: Site, name: str, last: list[Any]) -> Hook:
    return lambda found, _: imports.name(name, found, last)


# Lists, dicts and tuples


def subscript(site: Site) -> Hook:
    key = object()
    return lambda index, container: memories.item(key, container, index)


def setitem(site: Site) -> Hook:
    key = object()
    return lambda container, index, x: memories.put(key, container, index, x)


def delitem(site: Site) -> Hook:
    key = object()
    return lambda index, container: memories.delete(key, container, index)


def make_set(site: Site) -> Hook:
    key = object()

    def hook(items: tuple[Any, ...]) -> set[Any]:
        made: set[Any] = now().born(key, DICT, (), set())
        for i, x in enumerate(items):
            methods.entered(now(), (key, i), made, x)
        return made

    return hook


def add(site: Site) -> Hook:
    key = object()
    return lambda x, held: methods.entered(now(), key, held, x)


def united(site: Site) -> Hook:
    key = object()

    def hook(items: Any, held: set[Any]) -> None:
        if type(items) is not frozenset:
            refuse(f"a set is made of {with_article(type(items).__name__)}")
        for i, x in enumerate(sorted(items, key=repr)):
            methods.entered(now(), (key, i), held, x)

    return hook


def starred(site: Site) -> Hook:
    key = object()
    return lambda items: memories.born_list(now(), key, items)


def merged(site: Site) -> Hook:
    key = object()
    return lambda other, held: methods.updated(now(), key, held, other)


def merged_keywords(site: Site) -> Hook:
    key = object()

    def hook(other: Any, held: Any) -> None:
        if type(other) is not dict or {*other} & {*held}:
            refuse("a keyword is given twice")
        methods.updated(now(), key, held, other)

    return hook


def put(site: Site) -> Hook:
    key = object()
    return lambda x, index, container: memories.put(key, container, index, x)


def born(site: Site) -> Hook:
    key = object()

    def hook(container: Any) -> Any:
        recorder = now()
        if id(container) in recorder.memories:  # `make_dict` has made it
            return container
        if type(container) is list:
            return memories.born_list(recorder, key, container)
        if type(container) is set:  # which is empty
            return recorder.born(key, DICT, (), container)
        return memories.born_dict(recorder, key, [*container], [*container.values()])

    return hook


def make_dict(site: Site) -> Hook:
    key = object()
    return lambda items: memories.born_dict(now(), key, [*items[::2]], [*items[1::2]])


def extended(site: Site) -> Hook:
    """``[*other]`` or a list of constants: the items come behind those that are there."""
    key = object()

    def hook(other: Any, items: Any) -> None:
        recorder = now()
        memories.must_be_own(recorder, items)
        if type(other) is tuple:
            for i, x in enumerate(other):
                memories.append(recorder, (key, i), items, x)
        else:
            gone_through = calls.iterated(key, other)
            calls.sized(recorder, (key, "size"), other)
            source = source_of(recorder, key, gone_through)
            calls.call((key, "extend"), equivalents.extend, (items, source), {})

    return hook


def list_append(site: Site) -> Hook:
    key = object()
    return lambda x, items: memories.append(now(), key, items, x)


yielded = list_append


def give(site: Site) -> Hook:
    key = object()
    return lambda x: generators.give(key, x)


def give_all(site: Site) -> Hook:
    key = object()
    return lambda x: generators.give_all(key, calls.iterated(key, x))


def collected(site: Site) -> Hook:
    return generators.collected


def lazily(site: Site) -> Hook:
    return lambda items: generators.lazily(now(), items, sys._getframe(1).f_code)


def unpack(site: Site, most: int | None = None) -> Hook:
    """``most`` is how many items an iterator is asked for, and then once more; None where it is for all."""
    key = object()

    def hook(x: Any) -> Any:
        found = memories.taken_apart(key, x)
        if most is not None and len(found) > most and type(x) in now().iterators:
            return refuse("an iterator is taken apart that gives more")
        return found

    return hook


def spread(site: Site) -> Hook:
    return lambda x: (
        x if type(x) is tuple else refuse(f"{with_article(type(x).__name__)} is taken apart")
    )


def context(site: Site) -> Hook:
    key = object()
    return lambda manager: contexts.entered(key, manager, sys._getframe(1), calls.call)


# Patterns


def match_kind(site: Site, name: str) -> Hook:
    return lambda x: matching.is_of_kind(name, x)


def match_length(site: Site) -> Hook:
    key = object()
    return lambda x: matching.length(key, x)


def match_keys(site: Site) -> Hook:
    key = object()
    return lambda keys, x: matching.values(key, keys, x)


def match_class(site: Site) -> Hook:
    key = object()
    return lambda cls, names, count, x: matching.attributes_of(key, cls, names, count, x)


# Texts


def text(site: Site, how: str, has_spec: bool) -> Hook:
    key = object()
    if has_spec:
        return lambda spec, x: texts.shown(now(), key, x, how, spec)
    return lambda x: texts.shown(now(), key, x, how)


def converted(site: Site, how: str) -> Hook:
    key = object()
    return lambda x: texts.shown(now(), key, x, how)


def build_string(site: Site, n: int) -> Hook:
    key = object()
    return lambda *parts: texts.joined(now(), key, (parts[-1], *parts[:-1]))


# Iteration


def iter(site: Site) -> Hook:
    key = object()

    def hook(x: Any) -> Any:
        recorder = now()
        source = source_of(recorder, key, calls.iterated(key, x))
        recorder.iterable = source.range
        return Items(key, source)

    return hook


# Loops, decisions, exceptions


def loop(site: Site, loop: Loop) -> Hook:
    key, count = object(), len(loop.carried)

    def hook(*values: Any) -> Any:
        out = now().head(loop, sys._getframe(1), values, key)[:count]
        return out[0] if count == 1 else out

    return hook


def leave(site: Site, loops: Any, names: tuple[int, ...], exit: int, pushed: int) -> Hook:
    def hook(*values: Any) -> Any:
        first = int(pushed > 0 and stays(values[0]))
        out = now().leave(loops, sys._getframe(1), names, values[first:], exit, pushed - first)
        return given([*values[:first], *out])

    return hook


def stays(x: Any) -> bool:
    """Whether a value on the stack is what leaves a ``with`` statement, or an iterator: nobody hands it over."""
    return type(x) is Items or contexts.is_exit(x)


def fork(site: Site, of: Any) -> Hook:
    key = object()
    return lambda _: now().scope(key, of, sys._getframe(1))


def join(site: Site, forks: Any, names: tuple[int, ...], pushed: int) -> Hook:
    def hook(*values: Any) -> Any:
        held = values if names or pushed else ()
        first = int(pushed > 0 and stays(values[0]))
        out = now().join(forks, names, pushed - first, held[first:], sys._getframe(1))
        return given([*held[:first], *out])

    return hook


def caught_here(site: Site, index: int, around: Any, names: tuple[int, ...]) -> Hook:
    def hook(error: BaseException, *values: Any) -> Any:
        if not isinstance(error, Exception):
            raise error
        if isinstance(error, (RecursionError, MemoryError)):
            refuse(f"{with_article(type(error).__name__)} is caught")
        recorder = now()
        return given(recorder.unwind(recorder.floor, error, values, sys._getframe(1), index))

    return hook


def exception(site: Site) -> Hook:
    key = Instruction(site)
    return lambda error: calls.call(key, error, (), {}) if is_users_exception(error) else error


def given(out: list[Any]) -> Any:
    """What goes on the stack for the values that are handed over."""
    return out[0] if len(out) == 1 else tuple(out)


def shared(site: Site) -> Hook:
    return lambda _: refuse("a variable that functions share is deleted")


def cell(site: Site) -> Hook:
    key = object()
    return lambda value: cells.made(key, value)


def load_cell(site: Site, name: str) -> Hook:
    key = object()
    return lambda held: cells.value(key, name, held)


def store_cell(site: Site) -> Hook:
    key = object()
    return lambda held, x: cells.store(key, held, x)


def unsure(site: Site) -> Hook:
    return lambda _: refuse("a variable that may have no value is left behind by a loop")


# Calls


def call(site: Site) -> Hook:
    key = object()
    return lambda fn, /, *args, **kwargs: calls.call(key, fn, args, kwargs)


def call_ex(site: Site) -> Hook:
    key = object()

    def hook(fn: Any, args: Any, kwargs: Any = None) -> Any:
        given = memories.taken_apart((key, "given"), args)
        return calls.call(key, fn, given, memories.named((key, "named"), kwargs or {}))

    return hook
