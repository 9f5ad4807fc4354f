"""Room for the frames of a traced run in one piece of CPython's stack.

CPython keeps the frames of Python functions in chunks of 16 KB. Where a chunk is full the next call asks the system for
another one, and gives it back when that call returns: a loop that calls functions just there asks and gives back each
time. So tracing took up to twice as long at some depths of the stack (BFGS of SciPy 22 to 54 ms, 29 in the median;
23 with room). A frame that is larger than a chunk gets one of its own, twice as large as needed at most, and what is
called from there fits behind it. That costs 5 to 16 µs, too much for functions that are traced in less than a
millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter as clock
from types import FunctionType
from typing import Any

from ..tracer.places import passed_over

SLOTS = 33_000  # of 8 bytes: the chunk has 512 KB, half of them for others
SHORT = 1e-3  # seconds
MOST = 10_000

short: set[int] = set()  # what was traced in less, by the identity of its code


@passed_over
def given(f: Any, run: Callable[..., Any], *args: Any) -> Any:
    """What ``run`` gives, which traces ``f``: with room, where that takes long or nobody knows."""
    key = id(f.__code__ if type(f) is FunctionType else f)
    start = clock()
    answer = run(*args) if key in short else roomy(run, *args)
    if clock() - start > SHORT:
        short.discard(key)
    elif len(short) < MOST:
        short.add(key)
    return answer


@passed_over
def roomy(run: Callable[..., Any], *args: Any) -> Any:
    """What ``run`` gives, called with room for its frames."""
    return run(*args)


roomy.__code__ = roomy.__code__.replace(co_stacksize=SLOTS)
