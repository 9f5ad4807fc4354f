"""Writing through: a container outside holds at every moment what plain Python would have put there by then.

Words
-----
through   what the run does to a shadow is done to its original at once, so that code behind the tracer's back (C code
          that comes upon it, a callback, another thread) sees it.
mirror    what the run knows an original to hold: changed with it, and so unlike it where somebody else has changed it.
behind    of an original that waits for the end of the run: something was put there that cannot be made plain before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import border, meaning
from .box import Box
from .errors import TraceError
from .frames import MUTABLE
from .kinds import MISSING, are_one_of, is_one_of
from .places import blame, user_site
from .plain_calls import plain_call
from .record import has_box, stored
from .session import Tracer


def write_through(
    tracer: Tracer, shadow: Any, fn: Callable[..., Any], args: Any, kwargs: Any, again: bool
) -> None:
    """Do to an original what was done to its shadow; ``again`` says whether ``fn`` may be called once more."""
    known = tracer.originals.get(id(shadow)) if tracer.tape.undo is None else None
    if known is None or known[1] is shadow or not is_one_of(type(shadow), MUTABLE):
        return
    original = known[1]
    if id(original) in tracer.behind:
        return
    if not again:
        marked = id(original) in tracer.changed
        if in_time(tracer, original, lambda: carry_over(tracer, shadow)) and not marked:
            tracer.changed.discard(id(original))
        return
    plain = [x.value if type(x) is Box else x for x in args]
    if kwargs or not are_one_of(plain, SIMPLE):
        memo = {id(x): (x, original) for x in tracer.shadows_of.get(id(original), [shadow])}

        def make_plain() -> None:
            nonlocal kwargs
            plain[:] = [meaning.unboxing.lower(tracer, x, memo) for x in args]
            kwargs = {key: meaning.unboxing.lower(tracer, x, memo) for key, x in kwargs.items()}

        if not in_time(tracer, original, make_plain):
            return
    mirror = mirror_of(tracer, original)
    try:
        if mirror is not None:  # first, for the original may be among the arguments
            plain_call(fn, (mirror, *plain), kwargs)
        plain_call(fn, (original, *plain), kwargs)
    except Exception:  # which the shadow has not raised: somebody else has changed it
        tracer.behind.add(id(original))


SIMPLE = frozenset((float, int, bool, complex, str, type(None)))


def in_time(tracer: Tracer, original: Any, lower: Callable[[], None]) -> bool:
    """Make what goes to an original plain; False where that cannot be done yet, and the original falls behind."""
    refusal = tracer.refusal
    try:
        lower()
    except TraceError:
        tracer.refusal = refusal  # it may be gone when the run ends
        tracer.behind.add(id(original))
        return False
    return True


def carry_over(tracer: Tracer, shadow: Any) -> None:
    """Let an original hold what its shadow holds."""
    if tracer.tape.undo is not None:
        return
    original = tracer.originals[id(shadow)][1]
    if original is not shadow and id(original) not in tracer.behind:
        meaning.unboxing.sync(tracer, original, shadow, {id(shadow): (shadow, original)}, False)


def mirror_of(tracer: Tracer, original: Any) -> Any:
    """The mirror of an original; None for what lies outside only since the run has put it there."""
    mirror = tracer.mirrors.get(id(original))
    if mirror is not None:
        return mirror
    shadows = [x for x in tracer.shadows_of[id(original)] if id(x) in tracer.before]
    if shadows:
        before = tracer.before[id(shadows[0])]
        mirror = tracer.mirrors[id(original)] = border.empty_like(original)
        mirror.update(before) if isinstance(mirror, (dict, set)) else mirror.extend(before)
        for x in shadows:
            tracer.before[id(x)] = mirror
    return mirror


def write_cells(tracer: Tracer) -> None:
    """Let variables of enclosing functions hold the numbers that the run has set them to: C code may call who looks."""
    for cell, shadow in [*tracer.cells.values()] if tracer.tape.undo is None else ():
        if id(cell) not in tracer.cells_known:
            continue
        held = contents(shadow)
        if held is contents(cell) or held is tracer.cells_held.get(id(cell)):
            continue
        plain = held.value if type(held) is Box else held
        if is_one_of(type(plain), SIMPLE):  # others wait for the end of the run
            cell.cell_contents = tracer.cells_known[id(cell)] = plain


def read_cells(tracer: Tracer) -> None:
    """See what code behind the tracer's back has put into variables of enclosing functions."""
    for cell, shadow in list(tracer.cells.values()):
        now = contents(cell)
        if now is MISSING or now is tracer.cells_known.get(id(cell), now):
            continue
        held = contents(shadow)
        if has_box(held) and not border.is_constant(tracer, stored(held, []), {}):
            raise TraceError(
                f"{blame(user_site())}: code that cannot be traced changes a variable of an enclosing function that "
                "holds a traced value, so its gradient would be lost\npass the value to it and take what it returns"
            )
        tracer.cells_known[id(cell)] = now
        shadow.cell_contents = tracer.cells_held[id(cell)] = meaning.boxing.enter(
            tracer, now, "made"
        )
        if tracer.reads is not None:
            tracer.reads.problem(
                "a variable of an enclosing function changed while the function ran"
            )


def contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return MISSING
