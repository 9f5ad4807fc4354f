"""``jit``: a function whose values are answered by kept programs; and the switch for all programs.

Words
-----
plain   a call of the user's function as it is, without Wengert.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from typing import Any, overload

from ..rules.words import with_article
from ..tracer import calls, places
from ..tracer.errors import TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import isinstance
from ..tracer.places import passed_over
from ..tracer.reads import Reads
from ..tracer.run import Run, in_full
from ..tracer.session import Tracer
from .argnums import refusing
from .cache import Entry, switched
from .tangents import Transform, Whole
from .typed import F

LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class Same(Transform):
    """The transform that changes nothing."""

    __slots__ = ()
    name = "jit"

    def inside(self, tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return calls.call(tracer, places.user_site(), self.f, args, kwargs)


class Valued(Whole):
    """The state behind ``jit(f)``: a call that no program answers, and of which none is made, is a plain one."""

    __slots__ = ("looks",)

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform)
        self.looks = False  # whether what it does depends on who has called it

    def learn(self, entry: Entry, done: Run) -> None:
        self.looks |= done.reads is not None and done.reads.looks
        super().learn(entry, done)

    def may_build(self, entry: Entry) -> bool:
        allowed = entry.may_build()
        return allowed or not entry.budget.calls  # the first call was asked for

    @passed_over
    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run | None]:
        if reads is None and not drawn and not self.looks:
            return self.transform.f(*args, **kwargs), None
        return super().traced(args, kwargs, reads, drawn)


@overload
def jit(enabled: bool = True) -> AbstractContextManager[None]: ...
@overload
def jit(enabled: F) -> F: ...
@intrinsic
@refusing
def jit(enabled: Any = True) -> Any:
    """A function with kept values, or with a bool the switch for all programs.

    ``jit(f)``, and ``@jit`` above a function, give a function that returns what ``f`` returns, to the bit, and does
    what ``f`` does. Its first call is traced and kept as a program: the operations of ``f`` in one Python function,
    without the calls, objects and look-ups between them, under guards. What no program answers is a plain call of
    ``f``, and from time to time another program. It pays for functions that spend their time in calls and objects of
    Python; one of a few operations is slower kept than plain, and one that spends its time in NumPy as fast. A function
    that cannot be traced raises in its first call what `grad` would raise. Nothing needs it to have its gradient kept:
    `grad` and its like keep programs of their own.

    ``with jit(False):`` switches the JIT off, ``with jit(True):`` on again, for the statements of the block. Switched
    off, each call is traced, no program is used and none is made; those that are there are kept for later. It
    holds for the whole process, other threads included. What held before is put back at the end, also after an
    exception. The environment variable ``WENGERT_JIT=0`` (or ``off``, ``false``, ``no``) switches the JIT off from
    the start of Python.

    Raises `TraceError` for what is neither callable nor a bool, and for generator and async functions.

    >>> from wengert import grad, jit
    >>> with jit(False):
    ...     grad(lambda x: x * x)(3.0)
    6.0
    >>> @jit
    ... def root(a):
    ...     x = a
    ...     while abs(x * x - a) > 1e-12:
    ...         x = (x + a / x) / 2
    ...     return x
    >>> root(2.0), grad(root)(2.0)
    (1.414213562373095, 0.35355339059327373)
    """
    if isinstance(enabled, bool):
        return switched(enabled)
    if not callable(enabled):
        raise TraceError(
            f"jit takes a function, or True or False for a with block, not {with_article(type(enabled).__name__)}\n"
            "write jit(f), @jit above a function, or: with jit(False): ..."
        )
    if any(is_kind(enabled) for is_kind in LATER):
        raise TraceError(
            f"{in_full(enabled)} is a generator or an async function, whose values do not exist yet when it returns\n"
            "put jit on the function that computes a value"
        )
    return Valued(Same(enabled)).made()
