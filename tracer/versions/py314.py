"""CPython 3.14: subscripts are BINARY_OP, ``with`` uses LOAD_SPECIAL, f(*a) has a keyword slot."""

from __future__ import annotations

from typing import Any

from ..assembly import Instr
from . import py313
from .py313 import Handler, attribute

__all__ = ["attribute"]

NULL_BELOW = False
IMPORT_SHIFT = 0
CALL = ("CALL",)


def push_null(rewriter: Any, instr: Instr) -> None:
    """The NULL of a call, or the empty keyword slot of CALL_FUNCTION_EX, which is left out."""
    if rewriter.following().name != "CALL_FUNCTION_EX":
        rewriter.push_null(instr)


def call_function_ex(rewriter: Any, instr: Instr) -> None:
    previous = rewriter.previous()
    fused = previous is not None and previous.name == "LOAD_GLOBAL" and previous.arg & 1
    rewriter.call_unpacked(keywords=not (fused or (previous and previous.name == "PUSH_NULL")))


def load_global(rewriter: Any, instr: Instr) -> None:
    """The NULL that comes with a global may be the empty keyword slot, which is left out as well."""
    if instr.arg & 1 and rewriter.following().name == "CALL_FUNCTION_EX":
        instr = Instr(instr.op, instr.arg & ~1, instr.position)
    rewriter.load_global(instr)


def copy(rewriter: Any, instr: Instr) -> None:
    """``with`` begins with COPY 1, LOAD_SPECIAL __exit__."""
    if rewriter.following().name == "LOAD_SPECIAL":
        rewriter.before_with(instr)
    else:
        rewriter.keep(instr)


GONE = frozenset(
    """
    BINARY_SUBSCR BEFORE_WITH BEFORE_ASYNC_WITH
    LOAD_ASSERTION_ERROR RETURN_CONST BUILD_CONST_KEY_MAP INSTRUMENTED_RETURN_CONST
    LOAD_METHOD LOAD_SUPER_METHOD LOAD_ZERO_SUPER_ATTR LOAD_ZERO_SUPER_METHOD
    """.split()
)

HANDLED: dict[str, Handler] = {
    **{name: handler for name, handler in py313.HANDLED.items() if name not in GONE},
    "PUSH_NULL": push_null,
    "CALL_FUNCTION_EX": call_function_ex,
    "LOAD_GLOBAL": load_global,
    "COPY": copy,
}

HARMLESS = (py313.HARMLESS - GONE - {"COPY"}) | frozenset(
    """
    NOT_TAKEN POP_ITER LOAD_SPECIAL LOAD_COMMON_CONSTANT LOAD_SMALL_INT
    LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    BUILD_INTERPOLATION BUILD_TEMPLATE
    """.split()
)

ASYNCHRONOUS = py313.ASYNCHRONOUS - GONE

INTERNAL = (py313.INTERNAL - GONE) | frozenset(
    """
    ANNOTATIONS_PLACEHOLDER JUMP_IF_FALSE JUMP_IF_TRUE
    INSTRUMENTED_END_ASYNC_FOR INSTRUMENTED_NOT_TAKEN INSTRUMENTED_POP_ITER
    """.split()
)

REFUSED = ASYNCHRONOUS | INTERNAL
