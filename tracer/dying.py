"""What dies outside: the run lets go of an object whose death does something, when its program does.

An object with ``__del__``, or one that a callback watches, dies in plain Python where nothing refers to it any more.
The run refers to what it has found outside, by what it knows of its attributes; it stops where such an object is taken
out of a container or an attribute outside. Its ``__del__`` is followed like any other code.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable
from typing import Any

from ..rules.words import with_article
from .border import ATOMS, see
from .box import BOXES
from .detours import finalized
from .kinds import MISSING, Member, is_one_of, own_dict, static
from .session import Tracer
from .tape import Site


def does_more(x: Any) -> bool:
    """Whether code of the user's runs when an object dies."""
    if is_one_of(type(x), ATOMS) or is_one_of(type(x), BOXES):
        return False
    if static(type(x), "__del__") is not MISSING:
        return True
    watching = [ref.__callback__ for ref in weakref.getweakrefs(x)]
    return any(x is not None and not str(x.__module__).startswith("wengert.") for x in watching)


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
    for x in dying:
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
    keys = [key for key, entry in tracer.overlay.items() if entry[0] is owner]

    def forget(_: Any) -> None:
        for key in keys:
            tracer.overlay.pop(key, None)
        tracer.owners.pop(id_of_space, None)

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
