"""NumPy's warnings, switched off for a while: what overflows in a reverse sweep says nothing about the user's program.

Words
-----
silence     switch them off: a function of the arguments ``silent`` that gives what `unsilence` needs.
unsilence   switch them on again.

``np.errstate`` takes 1.7 µs, as much as three operations on small arrays; the context variable behind it takes 0.1 µs.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import numpy as np

silence: Callable[..., Any]
unsilence: Callable[[Any], Any]
silent: tuple[Any, ...]
Silence: type
try:
    from numpy._core._multiarray_umath import _extobj_contextvar, _make_extobj

    silence, unsilence = _extobj_contextvar.set, _extobj_contextvar.reset
    silent, Silence = (_make_extobj(all="ignore"),), contextvars.Token
except ImportError:  # a NumPy that does not have it, or no longer

    def silence() -> np.errstate:
        quiet = np.errstate(all="ignore")
        quiet.__enter__()
        return quiet

    def unsilence(quiet: np.errstate) -> None:
        quiet.__exit__(None, None, None)

    silent, Silence = (), np.errstate
