"""NumPy's error state, where the traced function changes it by ``with np.errstate(...)``.

Words
-----
state    how NumPy treats floating-point errors, in this thread: a capsule in a context variable.
modes    what a statement asks for, by the kind of error; what it does not name stays as it is.
enter    to set a state; ``leave`` puts back the one before.

The run itself really enters and leaves. A program repeats it around the same operations, but strictly: an error that
is not ignored is an exception there, and the call is traced, which warns, raises or calls as it would without Wengert.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .filters import hands_on
from .handlers import handles
from .session import Tracer
from .tape import Op, Site, append

try:
    from numpy._core._multiarray_umath import _extobj_contextvar as variable  # type: ignore[import-not-found]
    from numpy._core._multiarray_umath import _make_extobj as make
except ImportError:  # a NumPy that does not have it, or no longer: such a run is not kept
    variable = None


def enter(**modes: str) -> Any:
    """Set the state for the statements that follow; returns what puts the one before back."""
    return variable.set(make(**modes))


def leave(token: Any) -> bool:
    """Put the state before back."""
    variable.reset(token)
    return True


CHANGES = frozenset((enter, leave))
LONGEST = 64  # iterations of a loop which may do so: it is not rolled
KINDS = frozenset(("all", "divide", "over", "under", "invalid"))


def is_balanced(ops: list[Op]) -> bool:
    """Whether every state that was entered was left as well."""
    left = {op.args[0] for op in ops if op.fn is leave}
    return all(op in left for op in ops if op.fn is enter)


def _made(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> np.errstate:
    made = np.errstate(*args, **kwargs)
    if tracer.reads is not None and hands_on(kwargs[k] for k in kwargs if k in KINDS):
        tracer.reads.problem("a function is told of floating-point events", site)
    modes = {k: v if v == "ignore" else "raise" for k, v in kwargs.items() if v and k in KINDS}
    tracer.states[id(made)] = (made, modes, None)
    return made


def _entered(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    (manager,) = args
    manager.__enter__()
    if tracer.reads is not None:
        known = tracer.states.get(id(manager))
        if known is None:
            tracer.reads.problem("an errstate from outside is entered", site)
        elif tracer.loops is not None and any(len(x.heads) > LONGEST for x in tracer.loops.open):
            tracer.reads.problem("an errstate is entered over and over in a loop", site)
        else:
            op = append(tracer.tape, enter, (), known[1], True, site)
            tracer.states[id(manager)] = (*known[:2], op)


def _left(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    manager, *raised = args
    manager.__exit__(*raised)
    known = tracer.states.get(id(manager))
    if known is not None and known[2] is not None:
        append(tracer.tape, leave, (known[2],), {}, True, site)


if variable is not None:
    handles(np.errstate)(_made)
    handles(np.errstate.__enter__)(_entered)
    handles(np.errstate.__exit__)(_left)
