"""CPython 3.13: NULL lies above the callable, TO_BOOL tests for truth, CALL_KW takes keywords."""

from __future__ import annotations

from typing import Any

from ..assembly import Instr
from . import py311, py312
from .py312 import Handler, attribute

__all__ = ["attribute"]

NULL_BELOW = False
IMPORT_SHIFT = 0
CALL = ("CALL",)


def compare_op(rewriter: Any, instr: Instr) -> None:
    """Bit 16 asks for a bool, for the jump or the UNARY_NOT that follows."""
    # The patterns of a match go by a length without asking for the truth of the comparison.
    at_once = py311.is_decision(rewriter.following())
    rewriter.compare(instr.arg >> 5, at_once or bool(instr.arg & 16))


def convert_value(rewriter: Any, instr: Instr) -> None:
    """``!r``, ``!s`` and ``!a`` come before the specification, if there is one."""
    rewriter.formatted(spec=False, to_ascii=instr.arg == 3)
    rewriter.keep(instr)


def format_simple(rewriter: Any, instr: Instr) -> None:
    previous = rewriter.previous()
    if previous is None or previous.name != "CONVERT_VALUE":
        rewriter.formatted(spec=False)
    rewriter.keep(instr)


def format_with_spec(rewriter: Any, instr: Instr) -> None:
    rewriter.formatted(spec=True)
    rewriter.keep(instr)


# TO_BOOL comes before each jump on truth and before UNARY_NOT, which then find a bool.
TESTED_BEFORE = frozenset({"UNARY_NOT", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE"})
GONE = frozenset({"FORMAT_VALUE", "KW_NAMES"})

HANDLED: dict[str, Handler] = {
    **{
        name: handler for name, handler in py312.HANDLED.items() if name not in TESTED_BEFORE | GONE
    },
    "COMPARE_OP": compare_op,
    "GET_ITER": "get_iter",
    "TO_BOOL": "to_bool",
    "CONVERT_VALUE": convert_value,
    "FORMAT_SIMPLE": format_simple,
    "FORMAT_WITH_SPEC": format_with_spec,
    "CALL_KW": "call_with_names",
}

HARMLESS = (
    (py312.HARMLESS - GONE)
    | TESTED_BEFORE
    | frozenset(
        """
        SET_FUNCTION_ATTRIBUTE
        LOAD_FAST_LOAD_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST
        """.split()
    )
)

ASYNCHRONOUS = py312.ASYNCHRONOUS

INTERNAL = py312.INTERNAL | frozenset({"ENTER_EXECUTOR", "EXIT_INIT_CHECK", "INSTRUMENTED_CALL_KW"})

REFUSED = ASYNCHRONOUS | INTERNAL
