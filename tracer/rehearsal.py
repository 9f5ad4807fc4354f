"""Rehearsals: what a rule runs once more, for a derivative, leaves nothing behind outside.

A function that C code calls back has its effects in the forward run, as often as C code calls it. Its derivative asks
for it again, at other places perhaps; such a run computes with what it finds outside, and all that it writes there is
taken back when it ends. What cannot be taken back is refused: a draw from a random generator.
"""

from __future__ import annotations

from typing import Any

from .errors import TraceError
from .kinds import MISSING, own_dict
from .places import blame
from .session import Tracer
from .tape import Site


def take_back(tracer: Tracer) -> None:
    """Undo what was written, the last thing first."""
    while tracer.tape.undo:
        tracer.tape.undo.pop()()


def will_write(tracer: Tracer, obj: Any, name: str, own: bool) -> None:
    """An attribute outside is about to be set or deleted."""
    if tracer.tape.undo is None:
        return
    held = own_dict(obj)
    own = own or type(held) is dict
    if own:
        remember(tracer, held, name)
        return
    before = vars(obj).get(name, MISSING) if isinstance(obj, type) else getattr(obj, name, MISSING)

    def restore() -> None:
        if before is not MISSING:
            setattr(obj, name, before)
        else:
            delattr(obj, name)

    tracer.tape.undo.append(restore)


def remember(tracer: Tracer, space: Any, name: str) -> None:
    """An item of a namespace is about to be set or deleted."""
    if tracer.tape.undo is None:
        return
    before = space.get(name, MISSING)

    def restore() -> None:
        if before is not MISSING:
            space[name] = before
        else:
            space.pop(name, None)

    tracer.tape.undo.append(restore)


def must_be_certain(tracer: Tracer, site: Site, name: str) -> None:
    """Raise where a rehearsal would draw at random."""
    if tracer.tape.undo is not None:
        raise TraceError(
            f"{blame(site)}: {name} is asked again for a derivative, where it would give something else\ndraw before "
            "the call, and hand over what was drawn"
        )
