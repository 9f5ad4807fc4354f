"""Writing to containers, by statements and by functions written in C.

Words
-----
writer      a function written in C that changes a container: ``list.append``, ``heapq.heappush``, ``operator.iadd``.
consumed    of an argument: the writer iterates over it. Of an iterator the tape keeps what was taken from it.

A container outside is changed in its shadow; the tape keeps what was done, never what came out of it. Where a writer
calls back (``key=``, ``__lt__``), to repeat it would repeat that as well, and the run is not kept.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import heapq
import operator
import reprlib
import types
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

from ..rules.words import with_article
from . import dying, escape, meaning, memos, protocols, stand_ins
from .border import COLLECTIONS, empty_like, is_constant, siblings
from .box import BOXES, ArrayBox
from .effects import effect, external
from .errors import TraceError
from .frames import MUTABLE, valued
from .kinds import are_quiet, attribute, is_one_of, mro_of
from .places import blame, outer, user_frame
from .plain_calls import plain_call
from .record import has_box, raised, stored
from .session import Tracer
from .structure import is_container
from .tape import AS_ARGUMENT, External, Op, Site, substitute
from .through import carry_over, mirror_of, write_through

METHODS = frozenset(
    (
        "append appendleft extend extendleft insert pop popleft popitem remove clear sort reverse update setdefault "
        "add discard rotate move_to_end difference_update intersection_update symmetric_difference_update "
        "__init__ __setitem__ __delitem__ __missing__ __setstate__ "
        "__iadd__ __imul__ __iand__ __ior__ __isub__ __ixor__"
    ).split()
)
FUNCTIONS = frozenset(
    x
    for x in (
        *vars(heapq).values(),
        *(bisect.insort_left, bisect.insort_right, getattr(collections, "_count_elements", None)),
        *(operator.setitem, operator.delitem, operator.iconcat),
        *(operator.iadd, operator.imul, operator.iand, operator.ior, operator.isub, operator.ixor),
    )
    if type(x) is types.BuiltinFunctionType
)
CONSUMERS = frozenset(
    (
        "extend extendleft update init iadd iconcat ior iand isub ixor count_elements difference_update "
        "intersection_update symmetric_difference_update"
    ).split()
)
WHOLE = frozenset((list, tuple, dict, set, frozenset, str, bytes, range))  # kept as they are


# What these note, they take back, or it is a cache of theirs: nobody's business.
PRIVATE = frozenset((reprlib.__file__, functools.__file__, dataclasses.__file__))


def is_private(site: Site) -> bool:
    """Whether a line writes to what no program looks at; it may do so by a mapping with weak references."""
    if site.filename != weakref.__file__:
        return site.filename in PRIVATE
    frame = user_frame()
    while frame is not None and frame.f_code.co_filename == weakref.__file__:
        frame = outer(frame)
    return frame is not None and frame.f_code.co_filename in PRIVATE


def is_home(owner: Any) -> bool:
    """Whether the ``__self__`` of a C function is where it stands, and not what it works on."""
    return isinstance(owner, (types.ModuleType, type))


def writes_to(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]] | None:
    """What a C function changes, if that is a container: the function, the container, and the other arguments."""
    owner = getattr(fn, "__self__", None)
    if owner is not None and not is_home(owner):
        if fn.__name__ not in METHODS or not isinstance(owner, COLLECTIONS):
            return None
        home = next(
            cls
            for cls in mro_of(type(owner))
            if fn.__name__ in vars(cls) and type(vars(cls)[fn.__name__]) is not types.FunctionType
        )
        return getattr(home, fn.__name__), owner, args, kwargs
    if fn not in FUNCTIONS and not (hasattr(fn, "__objclass__") and fn.__name__ in METHODS):
        return None
    if args:
        container, args = args[0], args[1:]
    elif "a" in kwargs:  # as `bisect` calls it
        container, kwargs = kwargs["a"], {k: x for k, x in kwargs.items() if k != "a"}
    else:
        return None
    return (fn, container, args, kwargs) if isinstance(container, COLLECTIONS) else None


def write_container(
    tracer: Tracer | None, site: Site, fn: Any, container: Any, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """Write to a container: an effect if it is the shadow of one outside, seen by all shadows of that one."""
    if tracer is None:
        return plain_call(fn, (container, *args), kwargs)
    if tracer.loops is not None:
        tracer.loops.store(container) if type(container) is list else tracer.loops.write()
    known = tracer.originals.get(id(container))
    reads = tracer.reads
    others = siblings(tracer, container) if known is not None or tracer.joined else []
    if isinstance(container, dict) and (known is not None or id(container) in tracer.outside):
        memos.put(tracer, site, fn, container, args)
    if known is None and id(container) in tracer.outside:
        tracer.tape.untold = (
            f"{with_article(type(container).__name__)} from outside is changed ({site})",
            AS_ARGUMENT,
        )
    if known is None and reads is None and not others:
        return escape.watched(fn, (container, *args), kwargs, site)
    shared = known is not None and is_one_of(type(container), MUTABLE)
    outside = shared and not is_private(site)
    if not shared and not others:
        if reads is not None and id(container) in tracer.outside:
            reads.problem(f"{with_article(type(container).__name__)} from outside is changed", site)
        return escape.watched(fn, (container, *args), kwargs, site)
    if outside:
        out = dying.leaving(container, attribute(fn, "__name__", ""), args)
        dying.let_go(tracer, site, out, with_article(type(container).__name__))
        del out
    given, taken = consumed(tracer, site, fn, container, args)
    if known is not None and type(container) is set:
        if known[1] is container:
            given, args = [tuple([plain_for(tracer, site, x) for x in xs]) for xs in (given, args)]
        if fn is set.pop and not args and not kwargs and id(known[1]) not in tracer.behind:
            return pop(tracer, site, container, known[1])
    start, called_back = len(tracer.tape.ops), tracer.called_back
    held = contents(container) if others else []
    try:
        with shown_empty(others if fn is list.sort else []):
            result = escape.watched(fn, (container, *given), kwargs, site)
    except Exception as error:
        for sibling in others:
            follow(container, held, sibling)
        if shared:
            carry_over(tracer, container)  # a part of it may have been done
        raised(tracer, site, error)
        raise
    if taken:
        given = tuple([taken.get(i, x) for i, x in enumerate(given)])
        if isinstance(container, dict):
            memos.put(tracer, site, fn, container, given)
    again = tracer.called_back == called_back and not any(map(callable, kwargs.values()))
    for sibling in others:
        if not again:
            follow(container, held, sibling)
            continue
        try:
            plain_call(fn, (sibling, *given), kwargs)
        except Exception:  # which the container itself has not raised
            pass
    if not outside:
        write_through(tracer, container, fn, given, kwargs, again)
        return result
    target = external(tracer, container)
    if reads is not None:
        if not again:
            reads.problem(f"what changes {with_article(type(container).__name__)} calls back", site)
        if any(op.kind == "effect" or op in reads.impure for op in tracer.tape.ops[start:]):
            reads.problem(
                f"something else is done while {with_article(type(container).__name__)} is changed",
                site,
            )
    if result is not NotImplemented:
        effect(tracer, site, fn, (target, *given), kwargs)
    write_through(tracer, container, fn, given, kwargs, again)
    return result


class shown_empty:
    """For a list that is being sorted, which CPython shows as empty: by its other names as well."""

    __slots__ = ("held", "lists")

    def __init__(self, lists: list[list[Any]]) -> None:
        self.lists = lists

    def __enter__(self) -> None:
        self.held = [[*x] for x in self.lists]
        for x in self.lists:
            x.clear()

    def __exit__(self, *error: object) -> None:
        for x, before in zip(self.lists, self.held, strict=True):
            x[:] = before


def contents(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)


def follow(container: Any, held: list[Any], sibling: Any) -> None:
    """Let a sibling hold what a container holds now, which once held ``held``: of that, what the sibling has of it."""
    own = {id(x): y for x, y in zip(held, contents(sibling), strict=False)}
    now = [own.get(id(x), x) for x in contents(container)]
    sibling.clear()
    if isinstance(container, dict):
        sibling.update(valued(container, now))
    elif isinstance(container, set):  # from a set, which knows the hashes
        sibling.update(container if all(map(operator.is_, now, container)) else now)
    else:
        sibling.extend(now)


def plain_for(tracer: Tracer, site: Site, value: Any) -> Any:
    """What goes into a set outside that is seen as it is."""
    if has_box(value) and not is_constant(tracer, stored(value, []), {}):
        raise TraceError(
            f"{blame(site)}: a traced value goes into a set outside from which elements have been removed\nmake a "
            "new set of it first, or keep the value in a list or a dict"
        )
    return meaning.unboxing.lower(tracer, value)


def pop(tracer: Tracer, site: Site, container: Any, original: Any) -> Any:
    """``set.pop`` of a set outside: which element that is depends on all that was ever done to the set."""
    if tracer.reads is not None:
        tracer.reads.problem("an element is popped from a set", site)
    taken = original.pop()
    if original is container:
        return taken
    mirror = mirror_of(tracer, original)
    if mirror is not None:
        drop(mirror, taken, original)
    result = taken
    for shadow in (*siblings(tracer, container), container):
        result = next((x for x in shadow if meaning.unboxing.lower(tracer, x) is taken), taken)
        drop(shadow, result, original)
    tracer.changed.add(id(original))
    return result


def drop(held: set[Any], x: Any, others: set[Any]) -> None:
    """Remove what is not among others from a set, without asking for its hash if that is code of the user's."""
    held.discard(x) if are_quiet((x,)) else held.difference_update(held - others)


def lies_outside(tracer: Tracer, container: Any) -> bool:
    """Whether a container is the shadow of one outside, or lies there itself."""
    return id(container) in tracer.originals or id(container) in tracer.outside


def is_shared(tracer: Tracer, container: Any) -> bool:
    """Whether a write to a container is seen by another one as well: outside, or what it is one with."""
    return lies_outside(tracer, container) or id(container) in tracer.joined


def consumed(
    tracer: Tracer, site: Site, fn: Any, container: Any, args: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[int, list[Any]]]:
    """Arguments for a writer, and by their places the lists that fill with what it takes from iterators."""
    name = fn.__name__.strip("_")
    if name in CONSUMERS:
        first = 0
    elif name == "setitem" and len(args) == 2 and type(args[0]) is slice:
        first = 1
    else:
        return args, {}
    given = list(args)
    taken: dict[int, list[Any]] = {}
    for i, x in enumerate(args[first:], first):
        if (
            is_one_of(type(x), WHOLE)
            or id(x) in tracer.originals
            or is_one_of(type(x), BOXES - {ArrayBox})
        ):
            continue
        if is_container(x):
            given[i] = dict(x) if isinstance(x, dict) else set(x) if isinstance(x, set) else list(x)
        elif isinstance(x, stand_ins.Mapping):
            taken[i] = []
            given[i] = keeping(((key, x[key]) for key in x.keys()), taken[i])
        elif isinstance(container, dict) and hasattr(type(x), "keys"):
            continue  # which calls back
        elif protocols.is_iterable(x) or hasattr(type(x), "__iter__"):
            taken[i] = []
            given[i] = keeping(iter(protocols.iterate_object(tracer, site, x)), taken[i])
    return tuple(given), taken


def keeping(iterator: Iterator[Any], items: list[Any]) -> Iterator[Any]:
    """An iterator that keeps what is taken from it."""
    for x in iterator:
        items.append(x)
        yield x


# ------------------------------------------------------------------------------------------------- the check


def check_effects(tracer: Tracer) -> None:
    """Note a problem where the effects on the tape would not do what the run has done to a container."""
    reads = tracer.reads
    if reads is None or reads.problems:
        return
    noted: dict[int, list[Op]] = {}
    for op in tracer.tape.ops:
        if op.kind == "effect" and op.args and type(op.args[0]) is External:
            noted.setdefault(id(op.args[0].value), []).append(op)
    for shadow, original in [*tracer.originals.values()]:
        found = tracer.found.get(id(shadow))
        if found is None or not (id(original) in noted or id(original) in tracer.changed):
            continue
        held = repeated(original, found, noted.get(id(original), []))
        if held is None or not agree(held, tracer.before[id(shadow)]):
            name = tracer.names.get(id(shadow), "")
            reads.problem(f"{name} was changed in a way that cannot be repeated")


def repeated(original: Any, found: Any, effects: list[Op]) -> Any:
    """A container like one outside, with what it held when it was found, after these effects; None if they fail."""
    held = empty_like(original)
    held.extend(found) if isinstance(held, (list, deque)) else held.update(found)
    try:
        for op in effects:
            op.fn(held, *plain(op.args[1:]), **plain(op.kwargs))
    except Exception:
        return None
    return held


def plain(tree: Any) -> Any:
    """What an effect was given."""
    if type(tree) is External:
        return tree.value
    if is_one_of(type(tree), (tuple, list)):
        return type(tree)([plain(x) for x in tree])
    if type(tree) is dict:
        return {k: plain(x) for k, x in tree.items()}
    return substitute(tree, lambda op: op.value)


def agree(a: Any, b: Any) -> bool:
    """Whether two containers hold the same, in the same order; arrays are looked at by their kind alone."""
    if isinstance(a, dict):
        return list(a) == list(b) and agree(list(a.values()), list(b.values()))
    if isinstance(a, set):
        return bool(a == b)
    return len(a) == len(b) and all(map(is_alike, a, b))


def is_alike(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if is_one_of(type(x), (list, tuple, dict, set, deque)):
        return agree(x, y)
    if is_one_of(type(x), (int, float, complex, str, bytes)):
        return bool(x == y or (x != x and y != y))
    return True
