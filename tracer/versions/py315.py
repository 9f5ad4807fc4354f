"""CPython 3.15: an iterator has two stack slots, and generator expressions call iter themselves."""

from __future__ import annotations

from dis import opmap
from typing import Any

from ..assembly import Instr
from . import py314
from .py314 import Handler, attribute

__all__ = ["attribute"]

NULL_BELOW = False
IMPORT_SHIFT = 2
CALL = ("CALL",)


def get_iter(rewriter: Any, instr: Instr) -> None:
    """GET_ITER leaves [iterator, NULL], or [list or tuple, index], also for ``yield from``."""
    if rewriter.at_once and rewriter.source[rewriter.index + 2].name == "SEND":
        rewriter.give_all(instr)
    else:
        rewriter.get_iter(instr)
    rewriter.emit(opmap["PUSH_NULL"])


def push_null(rewriter: Any, instr: Instr) -> None:
    """The second slot of a generator expression inlined into any, all, tuple; else as in 3.14."""
    if rewriter.following().name == "FOR_ITER":
        rewriter.keep(instr)
    else:
        py314.push_null(rewriter, instr)


GONE = frozenset({"GET_YIELD_FROM_ITER"})

HANDLED: dict[str, Handler] = {
    **{name: handler for name, handler in py314.HANDLED.items() if name not in GONE},
    "GET_ITER": get_iter,
    "PUSH_NULL": push_null,
}

HARMLESS = py314.HARMLESS

ASYNCHRONOUS = py314.ASYNCHRONOUS

INTERNAL = py314.INTERNAL | frozenset({"TRACE_RECORD"})

REFUSED = ASYNCHRONOUS | INTERNAL
