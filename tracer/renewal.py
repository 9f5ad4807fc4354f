"""What the run sees of containers that code behind its back has changed: their shadows are brought up to date."""

from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from ..rules.words import with_article
from . import attributes, meaning, places, seals
from .border import STAND_INS, is_held
from .boxing import enter
from .frames import MUTABLE
from .held import Held
from .kinds import is_one_of, isinstance
from .session import Tracer
from .structure import is_container
from .tape import Op
from .text import PRIVATE
from .through import read_cells

# A loop may wait for what another thread, or a handler of signals, is to change: at so many heads it looks again.
HEADS = 256


def refresh(
    tracer: Tracer, args: Any, made: Callable[[Any], Any], seen: dict[int, Any] | None = None
) -> None:
    """Bring shadows up to date with containers that a C function may have changed.

    ``made(x)`` is what the traced function sees of a value that the C function put there.
    """
    seen = {} if seen is None else seen
    for shadow in args:
        if not is_container(shadow) or id(shadow) in seen:
            continue
        seen[id(shadow)] = shadow
        known = tracer.originals.get(id(shadow))
        elements = list(shadow.values() if isinstance(shadow, dict) else shadow)
        if known is not None and is_one_of(
            type(shadow), (list, dict, deque, defaultdict, OrderedDict)
        ):
            original = known[1].copy()  # as of one moment, whatever other threads do to it
            traced = {id(plain_element(tracer, x)): x for x in elements}
            tuples = [x for x in elements if isinstance(x, (tuple, frozenset))]

            def seen_of(x: Any, here: Any, traced: Any = traced, tuples: Any = tuples) -> Any:
                if stands_for(tracer, here, x):  # first, for others may be the very same
                    return here
                if id(x) in traced:
                    return traced[id(x)]
                moved = next((y for y in tuples if stands_for(tracer, y, x)), None)
                return made(x) if moved is None else moved

            if isinstance(shadow, dict):
                now = {k: seen_of(x, shadow.get(k)) for k, x in original.items()}
                if list(now) != list(shadow) or any(now[k] is not shadow[k] for k in now):
                    shadow.clear()
                    shadow.update(now)
                    changed(tracer, shadow, dict(original))
            else:
                places = itertools.zip_longest(original, elements[: len(original)])
                new = [seen_of(x, here) for x, here in places]
                if len(new) != len(shadow) or any(
                    x is not y for x, y in zip(new, shadow, strict=True)
                ):
                    shadow.clear()
                    shadow.extend(new)
                    changed(tracer, shadow, list(original))
        refresh(tracer, elements, made, seen)


class Left:
    """Makes what the run sees of what code behind its back has left somewhere outside.

    It may have been computed from what the run has put outside before: the ``sources``, which are all if not told.
    """

    def __init__(self, tracer: Tracer, sources: Iterable[Op] | None = None) -> None:
        self.tracer, self.sources = tracer, sources
        self.held: Held | None = None

    def __call__(self, x: Any) -> Any:
        if self.held is None:  # before the first is brought up to date
            tracer = self.tracer
            put = meaning.sights.put_outside(tracer) if self.sources is None else self.sources
            ops = [op for op in put if tracer.dependence.has(op)]
            self.held = Held("untraced code", lambda: ops, self, reason=lost("a container"))
        if not self.held.current():
            return enter(self.tracer, x, "made")
        return seals.behind(self.tracer, x, "made", self.held)


def left(x: Any, made: Callable[[Any], Any]) -> Any:
    """What the traced function sees of an element that was put into a set, of which only numbers may be computed."""
    return made(x) if isinstance(x, (float, complex)) else x


def lost(what: str) -> str:
    """What to tell who asks for a derivative by what code behind the run's back has left somewhere."""
    return (
        f"{places.blame(places.user_site())}: code that is not traced has changed {what} outside, and may have "
        "computed that from traced values, whose derivative would be lost\n"
        "change it in the traced function, or let that code work on what the traced function does not write to"
    )


def declared(tracer: Tracer) -> None:
    """The same after code of which it is declared that nothing has a derivative that it computes."""
    renew(tracer, lambda x: enter(tracer, x, "made"))
    attributes.forget_changed(tracer)


def renew(tracer: Tracer, made: Callable[[Any], Any] | None = None) -> None:
    """Bring shadows up to date with containers that code behind the tracer's back has changed.

    ``made(x)`` is what the traced function sees of a value that was put there.
    """
    tracer.others_ran = True
    made = Left(tracer) if made is None else made
    for shadow, original in list(tracer.originals.values()):
        before = tracer.before.get(id(shadow))
        if before is None or original is shadow or id(original) in tracer.behind:
            continue
        if is_one_of(type(shadow), MUTABLE) and not is_held(original, before):
            if type(shadow) is set:
                known = {id(plain_element(tracer, x)): x for x in shadow}
                now = [known[id(x)] if id(x) in known else left(x, made) for x in original]
                shadow.clear()
                shadow.update(now)
                changed(tracer, shadow, set(original))
            else:
                refresh(tracer, [shadow], made)
    for owner, _ in list(tracer.namespaces.values()):
        attributes.namespace(tracer, owner)
    if tracer.cells_known:
        read_cells(tracer)


def changed(tracer: Tracer, shadow: Any, now: Any) -> None:
    """A C function has changed the container behind a shadow."""
    tracer.before[id(shadow)] = now
    tracer.mirrors.pop(id(tracer.originals[id(shadow)][1]), None)
    if tracer.reads is not None:
        tracer.reads.problem(f"C code changes {with_article(type(shadow).__name__)}")


def plain_element(tracer: Tracer, value: Any) -> Any:
    """What the plain copy of a container holds in the place of an element."""
    if is_one_of(type(value), PRIVATE):
        return value.value
    if is_one_of(type(value), STAND_INS):
        return STAND_INS[type(value)](value)
    known = tracer.originals.get(id(value))
    return value if known is None else known[1]


def stands_for(tracer: Tracer, value: Any, plain: Any) -> bool:
    """Whether a value of the run is, or as a tuple holds, what was lowered to a plain one."""
    if isinstance(value, (tuple, frozenset)) and type(value) is type(plain):
        parts = zip(value, plain, strict=False)
        return len(value) == len(plain) and all(stands_for(tracer, x, y) for x, y in parts)
    return plain_element(tracer, value) is plain
