"""What dies outside: the run lets go of an object whose death somebody sees, when its program does.

An object with ``__del__``, or one to which there is a weak reference, dies in plain Python where nothing holds it.
The run refers to what it has found outside, by what it knows of its attributes; it stops where such an object is taken
out of a container or an attribute outside. Its ``__del__`` is followed like any other code.
"""

from __future__ import annotations

import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ..rules.words import with_article
from . import meaning
from .border import ATOMS, see
from .box import BOXES
from .detours import finalized
from .frames import NATIVE, attributes
from .kinds import HEAP_TYPE, MISSING, Member, flags_of, is_one_of, isinstance, own_dict, static
from .session import Tracer
from .tape import AS_ARGUMENT, Site
from .through import contents

MOST = 100  # things that one may hold


def held_by(one: Any) -> Iterator[Any]:
    """An object, and the objects that it holds, the near ones first: those that may die with it."""
    todo, seen = deque([one]), {id(one)}
    while todo:
        x = todo.popleft()
        kind = type(x)
        if is_one_of(kind, NATIVE):
            held = [*(x.values() if isinstance(x, dict) else x)]
        else:
            yield x
            looked = flags_of(kind) & HEAP_TYPE and not isinstance(x, (type, types.ModuleType))
            held = [*attributes(x).values()] if looked else []
        for y in held[: MOST - len(seen)]:
            if id(y) not in seen and not is_one_of(type(y), QUIET):
                seen.add(id(y))
                todo.append(y)


QUIET = ATOMS | BOXES | {float, complex}


def is_seen_dying(x: Any) -> bool:
    """Whether somebody may see that an object dies: by its ``__del__`` (a file has one), or by a weak reference."""
    if static(type(x), "__del__") is not MISSING:
        return True
    return any(not is_ours(ref.__callback__) for ref in weakref.getweakrefs(x))


def does_more(x: Any) -> bool:
    """Whether somebody may see that an object dies, or what it holds."""
    return not is_one_of(type(x), QUIET) and any(map(is_seen_dying, held_by(x)))


def is_ours(callback: Any) -> bool:
    return callback is not None and str(callback.__module__).startswith("wengert.")


# What takes nothing out of a container.
GROWING = frozenset(
    "append appendleft extend insert setdefault add reverse sort rotate iconcat __iadd__ iadd heappush insort".split()
    + ["insort_left", "insort_right", "move_to_end"]
)
BY_KEY = frozenset("__setitem__ setitem __delitem__ delitem pop".split())
FIRST = frozenset("popleft heappop heapreplace heappushpop".split())  # takes out the first, or none


def leaving(container: Any, name: str, args: tuple[Any, ...]) -> list[Any]:
    """What a method of a container may take out of it."""
    if name in GROWING and getattr(container, "maxlen", None) is None:
        return []
    kind = type(container)
    if name in FIRST or (kind is deque and name == "pop"):
        return [container[0 if name in FIRST else -1]] if container else []
    by_key = name in BY_KEY and (kind is list or (kind is dict and args))
    if by_key and is_one_of(type(key := args[0] if args else -1), (int, str)):
        try:
            return [container[key]]
        except LookupError:
            return []
    return list(container.values() if isinstance(container, dict) else container)


def let_go(tracer: Tracer, site: Site, values: Iterable[Any], where: str) -> None:
    """Hold these no longer, if something happens when they die: they are about to be taken out of ``where``."""
    dying = [x for x in values if does_more(x)]
    if not dying:
        return
    reads = tracer.reads
    if reads is not None:
        reads.let_go(dying)
        reads.problem(
            f"{where} holds what has a method __del__, or is watched by a weak reference, and is changed",
            site,
        )
    ids = {*map(id, dying)}
    for held in (*tracer.found.values(), *tracer.admitted.values()):
        forget_items(held, ids)
    for op in tracer.tape.ops:
        if op.kind == "effect" and any(id(x) in ids for x in op.args):
            op.args = tuple([GONE if id(x) in ids else x for x in op.args])
            tracer.tape.untold = f"what was put outside has died ({site})", AS_ARGUMENT
    for x in dying:
        release(tracer, x)


def release(tracer: Tracer, one: Any) -> None:
    """Let an object, and what it holds, die when nobody else holds them, and follow what they do then."""
    for x in held_by(one):
        finalizer = static(type(x), "__del__")
        if type(finalizer) is types.FunctionType:
            see(tracer.outside, x)
            finalized(tracer, finalizer)
        hold_weakly(tracer, x)


def let_go_of(tracer: Tracer, site: Site, owner: Any, name: str) -> None:
    """The same for what an object outside holds under a name, without asking the class."""
    space = own_dict(owner)
    slot = static(type(owner), name)
    held = MISSING if space is None else space.get(name, MISSING)
    if type(slot) is Member:
        try:
            held = slot.__get__(owner)
        except AttributeError:  # nothing is in it
            return
    if held is not MISSING:
        let_go(tracer, site, (held,), with_article(type(owner).__name__))


def let_go_of_variables(tracer: Tracer, site: Site) -> None:
    """The same for variables of enclosing functions that were just set: others wait for the end of the run."""
    if tracer.tape.undo is not None:
        return
    for cell, shadow in [*tracer.cells.values()]:
        known, held = tracer.cells_known.get(id(cell)), contents(shadow)
        if held is MISSING or known is held or not does_more(known):
            continue
        if contents(cell) is not known:  # somebody else has set it
            continue
        let_go(tracer, site, (known,), "a variable of an enclosing function")
        if tracer.cells_held.get(id(cell)) is known:
            tracer.cells_held[id(cell)] = GONE
        tracer.tape.untold = f"a variable of an enclosing function is set ({site})", AS_ARGUMENT
        del known
        cell.cell_contents = tracer.cells_known[id(cell)] = meaning.unboxing.lower(tracer, held)


class Gone:
    """Stands in what a container has held for an object that is held no longer."""


GONE = Gone()


def forget_items(held: Any, ids: set[int]) -> None:
    """Take such objects out of what a container was found to hold."""
    if isinstance(held, dict):
        for key in [key for key, x in held.items() if id(x) in ids]:
            held[key] = GONE
    elif isinstance(held, list):
        held[:] = [GONE if id(x) in ids else x for x in held]


def hold_weakly(tracer: Tracer, owner: Any) -> None:
    """Know of the attributes of an object only as long as somebody else holds it."""
    space = own_dict(owner)
    keys = [key for key, entry in [*tracer.overlay.items()] if entry[0] is owner]

    def forget(_: Any) -> None:
        tracer.owners.pop(id_of_space, None)
        for key in keys:
            entry = tracer.overlay.pop(key, None)
            if entry is not None and does_more(entry[1]):  # which it may have been the last to hold
                release(tracer, entry[1])

    id_of_space = id(space)
    try:
        ref = weakref.ref(owner, forget)
    except TypeError:  # of a class with slots alone: it dies with the run
        return
    for key in keys:
        tracer.overlay[key] = (ref, *tracer.overlay[key][1:])
    if id_of_space in tracer.owners:
        tracer.owners[id_of_space] = ref


def owner_of(tracer: Tracer, space: dict[str, Any]) -> Any:
    """The object of which this is the ``__dict__``."""
    owner = tracer.owners[id(space)]
    return owner() if type(owner) is weakref.ReferenceType else owner
