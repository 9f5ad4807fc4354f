"""NumPy's floating-point errors inside programs.

Words
-----
watched     the state in which a program runs: NumPy calls `look` where it would warn, raise, or call otherwise.
look        in forward operations it raises: the program is left, and the traced run warns at the user's own line. In
            a reverse sweep it does nothing: what overflows there says nothing about the user's program.
quiet       the local variable of a program that tells the two apart.
restore     what was before.
trust       to leave NumPy's state as it is. Where NumPy warns, a filter of Python's warnings makes that an exception
            inside programs, and only there (`guarded`). If one comes out of a reverse sweep, the call is done again,
            and that program watches from then on.

``np.errstate`` takes 1.7 µs, as much as three operations on small arrays, and each change of the context variable
behind it a third of one: setting it and setting it back is a twentieth of a small program. That is what trust saves.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .loops import Miss

MOST_KEPT = 100
QUIET = "quiet"
PROGRAMS = "<wengert "  # how the filenames of what is assembled begin
watched: Callable[[], Any]
ignoring: Callable[[], Any]  # begins to ignore all errors, until what it gives goes to ``restore``
restore: Callable[[Any], Any]
# How programs write ``watched()`` where nobody has changed the state that was there at first: what asks for the state,
# that state, what sets one, and the watched one.
usual: tuple[Callable[[], Any], Any, Callable[[Any], Any], Any] | None


def silent() -> None:
    """The mark on a tape between the forward operations and the reverse sweep."""


def in_reverse() -> bool:
    """Whether the program that is running, if there is one, is in its reverse sweep."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(PROGRAMS):
            names = frame.f_locals
            if "errors" in names:
                return QUIET in names
        frame = frame.f_back  # type: ignore[assignment]
    return False


try:
    from numpy._core._multiarray_umath import _extobj_contextvar as variable  # type: ignore[import-not-found]
    from numpy._core._multiarray_umath import _make_extobj as make  # type: ignore[import-not-found]

    NOTHING = make(all="ignore")
    restore = variable.reset
    known: dict[int, tuple[Any, Any]] = {}  # by the id of a state: it, and the watched one

    def look(kind: str, flag: int) -> None:
        if not in_reverse():
            raise FloatingPointError(f"{kind} encountered")
        variable.set(NOTHING)  # until the program puts back what was before

    def ignoring() -> contextvars.Token[Any]:
        return variable.set(NOTHING)

    def watched() -> contextvars.Token[Any]:
        now = variable.get()
        found = known.get(id(now))
        if found is None:
            modes = {k: v if v == "ignore" else "call" for k, v in np.geterr().items()}
            while len(known) >= MOST_KEPT:
                known.pop(next(iter([*known])), None)  # other threads add to it
            found = known[id(now)] = (now, make(**modes, call=look))
        return variable.set(found[1])

    variable.reset(watched())
    usual = variable.get, variable.get(), variable.set, known[id(variable.get())][1]

except ImportError:  # a NumPy that does not have it, or no longer
    usual = None

    def look(kind: str, flag: int) -> None:
        if not in_reverse():
            raise FloatingPointError(f"{kind} encountered")

    def ignoring() -> np.errstate:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def watched() -> np.errstate:
        modes = {k: v if v == "ignore" else "call" for k, v in np.geterr().items()}
        state = np.errstate(**modes, call=look)  # type: ignore[arg-type]
        state.__enter__()
        return state

    def restore(state: np.errstate) -> None:
        state.__exit__(None, None, None)


# ------------------------------------------------------------------------------------------------- trust

MODULE = "wengert program"  # under which name Python's warnings know a program


def put_first() -> None:
    """Let the filter that turns NumPy's warnings inside programs into exceptions come before all others."""
    if guarded is not None and [*warnings.filters[:1]] != [guarded]:
        enter()
        warnings.filters[0] = guarded  # type: ignore[index]


def enter() -> None:
    warnings.filterwarnings("error", ".* encountered in ", RuntimeWarning, f"{MODULE}$")


def entered() -> Any:
    """The filter, or None where it does not do: each context has its own, or NumPy does not only warn."""
    if usual is None or getattr(sys.flags, "context_aware_warnings", False):
        return None
    if not {*np.geterr().values()} <= {"ignore", "warn", "raise"} or np.geterr()["over"] != "warn":
        return None
    enter()
    try:
        exec("exp(x)", {"__name__": MODULE, "exp": np.exp, "x": np.array(1e9)})
    except RuntimeWarning:
        return warnings.filters[0]
    return None


guarded: Any = entered()


def is_from_reverse(error: BaseException) -> bool:
    """Whether a program was left in its reverse sweep while it left NumPy's state as it was."""
    trace = error.__traceback__
    names = {} if trace is None else trace.tb_frame.f_locals
    return QUIET in names and names.get("errors") is None


# ------------------------------------------------------------------------- warnings of no floating-point event


@functools.cache
def leaving(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` for programs, which are left before it warns of a slice that is all NaN: traced, it warns at its line."""

    @functools.wraps(fn)
    def watching(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if np.isnan(a).all(axis=axis).any():
            raise Miss
        return fn(a, axis, *args, **kwargs)

    return watching


def whole(x: Any, *base: Any) -> int:
    """``int`` for programs, which are left where a float is so large that nothing is rounded (see ``must_round``)."""
    n = int(x, *base)
    if (n >= LARGEST or n <= -LARGEST) and isinstance(x, (float, np.floating)):
        raise Miss
    return n


LARGEST = 2**52
OF_NAN = (np.nanmax, np.nanmin, np.nanmedian)
LEAVING: dict[Any, Callable[..., Any]] = {int: whole, **{fn: leaving(fn) for fn in OF_NAN}}
