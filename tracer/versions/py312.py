"""CPython 3.12: inlined comprehensions, opcodes for slices, method loads a flag of LOAD_ATTR."""

from __future__ import annotations

import operator
from dis import opmap
from typing import Any

from ..assembly import Instr
from . import py311
from .py311 import Handler

NULL_BELOW = True
IMPORT_SHIFT = 0
CALL = ("CALL",)


# Arguments of CALL_INTRINSIC_1
PRINT, IMPORT_STAR, ASYNC_GEN_WRAP, UNARY_POSITIVE = 1, 2, 4, 5


def attribute(instr: Instr) -> tuple[int, bool]:
    """The index of the name that is loaded, and whether it is the callee of a call."""
    return instr.arg >> 1, bool(instr.arg & 1)


def compare_op(rewriter: Any, instr: Instr) -> None:
    rewriter.compare(instr.arg >> 4, py311.is_decision(rewriter.following()))


def load_super_attr(rewriter: Any, instr: Instr) -> None:
    """``super().name``: no frame is inspected. A method load becomes plain."""
    rewriter.super_attr(instr.arg >> 2, bool(instr.arg & 2))
    if instr.arg & 1:
        rewriter.call_hook(on_top_of_callable=True)


def call_intrinsic_1(rewriter: Any, instr: Instr) -> None:
    if instr.arg == UNARY_POSITIVE:
        rewriter.unary(operator.pos)
    elif instr.arg == PRINT:
        rewriter.show(instr)
    elif instr.arg == IMPORT_STAR:
        rewriter.import_star(instr)
    elif instr.arg == ASYNC_GEN_WRAP:
        rewriter.refused(instr)
    else:
        rewriter.keep(instr)


def get_iter(rewriter: Any, instr: Instr) -> None:
    """CPython 3.12 tells trace functions of a line twice if a loop begins where a Python function has returned."""
    rewriter.get_iter(instr)
    rewriter.emit(opmap["NOP"])


def binary_slice(rewriter: Any, instr: Instr) -> None:
    rewriter.emit(opmap["BUILD_SLICE"], 2)
    rewriter.binary_subscr(instr)


def store_slice(rewriter: Any, instr: Instr) -> None:
    rewriter.emit(opmap["BUILD_SLICE"], 2)
    rewriter.store_subscr(instr)


GONE = frozenset(
    """
    PRECALL LOAD_METHOD UNARY_POSITIVE JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    CALL LIST_TO_TUPLE LOAD_CLASSDEREF IMPORT_STAR PREP_RERAISE_STAR PRINT_EXPR ASYNC_GEN_WRAP
    """.split()
)

HANDLED: dict[str, Handler] = {
    **{name: handler for name, handler in py311.HANDLED.items() if name not in GONE},
    "CALL": "call_instruction",
    "COMPARE_OP": compare_op,
    "LOAD_SUPER_ATTR": load_super_attr,
    "CALL_INTRINSIC_1": call_intrinsic_1,
    "BINARY_SLICE": binary_slice,
    "STORE_SLICE": store_slice,
    "GET_ITER": get_iter,
    "POP_JUMP_IF_FALSE": "jump_on_truth",
    "POP_JUMP_IF_TRUE": "jump_on_truth",
}

HARMLESS = (py311.HARMLESS - GONE) | frozenset(
    """
    END_FOR END_SEND CLEANUP_THROW INTERPRETER_EXIT RESERVED RETURN_CONST
    CALL_INTRINSIC_2
    LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_LOCALS
    LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS
    POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    """.split()
)

ASYNCHRONOUS = py311.ASYNCHRONOUS - GONE

# What the compiler and the interpreter use among themselves and a code object never shows.
INTERNAL = frozenset(
    """
    JUMP JUMP_NO_INTERRUPT POP_BLOCK SETUP_CLEANUP SETUP_FINALLY SETUP_WITH STORE_FAST_MAYBE_NULL
    LOAD_METHOD LOAD_SUPER_METHOD LOAD_ZERO_SUPER_ATTR LOAD_ZERO_SUPER_METHOD
    INSTRUMENTED_CALL INSTRUMENTED_CALL_FUNCTION_EX INSTRUMENTED_END_FOR INSTRUMENTED_END_SEND
    INSTRUMENTED_FOR_ITER INSTRUMENTED_INSTRUCTION INSTRUMENTED_JUMP_BACKWARD
    INSTRUMENTED_JUMP_FORWARD INSTRUMENTED_LINE INSTRUMENTED_LOAD_SUPER_ATTR
    INSTRUMENTED_POP_JUMP_IF_FALSE
    INSTRUMENTED_POP_JUMP_IF_NONE INSTRUMENTED_POP_JUMP_IF_NOT_NONE INSTRUMENTED_POP_JUMP_IF_TRUE
    INSTRUMENTED_RESUME INSTRUMENTED_RETURN_CONST INSTRUMENTED_RETURN_VALUE INSTRUMENTED_YIELD_VALUE
    """.split()
)

REFUSED = ASYNCHRONOUS | INTERNAL
