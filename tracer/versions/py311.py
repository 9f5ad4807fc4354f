"""CPython 3.11: the first with inline caches, PUSH_NULL, PRECALL and exception tables."""

from __future__ import annotations

from collections.abc import Callable
from dis import opmap
from typing import Any

from ..assembly import Instr

Handler = str | Callable[[Any, Instr], None]

NULL_BELOW = True
IMPORT_SHIFT = 0
CALL = ("PRECALL", "CALL")


def attribute(instr: Instr) -> tuple[int, bool]:
    """The index of the name that is loaded, and whether it is the callee of a call."""
    return instr.arg, instr.name == "LOAD_METHOD"


def is_decision(instr: Instr) -> bool:
    """Whether an instruction tests the value on top, and takes it away."""
    return instr.name.startswith("POP_JUMP") and instr.name.endswith(("TRUE", "FALSE"))


def compare_op(rewriter: Any, instr: Instr) -> None:
    rewriter.compare(instr.arg, is_decision(rewriter.following()))


def jump_or_pop(rewriter: Any, instr: Instr) -> None:
    """JUMP_IF_FALSE_OR_POP tests and keeps the value: let the hook test a copy, jump on that."""
    if rewriter.follows_bool():
        rewriter.keep(instr)
        return
    rewriter.emit(opmap["COPY"], 1)
    rewriter.apply(rewriter.hooks.truth(rewriter.site()), 1)
    jump = instr.name.replace("JUMP", "POP_JUMP_FORWARD").removesuffix("_OR_POP")
    rewriter.emit(opmap[jump], jump=instr.jump)
    rewriter.emit(opmap["POP_TOP"])


def call_function_ex(rewriter: Any, instr: Instr) -> None:
    rewriter.call_unpacked(keywords=bool(instr.arg & 1))


def format_value(rewriter: Any, instr: Instr) -> None:
    """FORMAT_VALUE converts and formats in one; bit 4: a specification lies above the value."""
    rewriter.formatted(spec=bool(instr.arg & 4), to_ascii=instr.arg & 3 == 3)
    rewriter.keep(instr)


HANDLED: dict[str, Handler] = {
    "PUSH_NULL": "push_null",
    "LOAD_GLOBAL": "load_global",
    "LOAD_NAME": "load_name",
    "LOAD_ATTR": "load_attr",
    "LOAD_METHOD": "load_attr",
    "PRECALL": "call_instruction",
    "KW_NAMES": "call_with_names",
    "LOAD_BUILD_CLASS": "load_build_class",
    "CALL_FUNCTION_EX": call_function_ex,
    "BINARY_OP": "binary_op",
    "BINARY_SUBSCR": "binary_subscr",
    "UNARY_NEGATIVE": "unary_op",
    "UNARY_INVERT": "unary_op",
    "UNARY_POSITIVE": "unary_op",
    "UNARY_NOT": "unary_op",
    "COMPARE_OP": compare_op,
    "CONTAINS_OP": "contains_op",
    "IS_OP": "is_op",
    "POP_JUMP_FORWARD_IF_FALSE": "jump_on_truth",
    "POP_JUMP_FORWARD_IF_TRUE": "jump_on_truth",
    "POP_JUMP_BACKWARD_IF_FALSE": "jump_on_truth",
    "POP_JUMP_BACKWARD_IF_TRUE": "jump_on_truth",
    "JUMP_IF_FALSE_OR_POP": jump_or_pop,
    "JUMP_IF_TRUE_OR_POP": jump_or_pop,
    "STORE_ATTR": "store_attr",
    "DELETE_ATTR": "delete_attr",
    "STORE_SUBSCR": "store_subscr",
    "DELETE_SUBSCR": "delete_subscr",
    "STORE_GLOBAL": "store_global",
    "DELETE_GLOBAL": "delete_global",
    "IMPORT_NAME": "import_name",
    "IMPORT_FROM": "import_from",
    "IMPORT_STAR": "import_star",
    "STORE_NAME": "store_name",
    "DELETE_NAME": "delete_name",
    "PRINT_EXPR": "show",
    "GET_ITER": "get_iter",
    "GET_YIELD_FROM_ITER": "get_iter",
    "BEFORE_WITH": "before_with",
    "PUSH_EXC_INFO": "begin_handler",
    "POP_EXCEPT": "end_handler",
    "RAISE_VARARGS": "raise_varargs",
    "UNPACK_SEQUENCE": "unpack",
    "UNPACK_EX": "unpack_rest",
    "LIST_EXTEND": "spread",
    "SET_UPDATE": "spread",
    "DICT_UPDATE": "merge",
    "DICT_MERGE": "merge_keywords",
    "BUILD_SET": "build_set",
    "BUILD_MAP": "build_map",
    "SET_ADD": "set_add",
    "MAP_ADD": "map_add",
    "MATCH_CLASS": "match_class",
    "MATCH_KEYS": "match_keys",
    "MATCH_SEQUENCE": "match_kind",
    "MATCH_MAPPING": "match_kind",
    "GET_LEN": "get_len",
    "FORMAT_VALUE": format_value,
    "BUILD_STRING": "build_string",
}

HARMLESS = frozenset(
    """
    NOP CACHE RESUME EXTENDED_ARG POP_TOP COPY SWAP
    LOAD_CONST LOAD_FAST STORE_FAST DELETE_FAST
    MAKE_CELL COPY_FREE_VARS LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF LOAD_CLASSDEREF
    BUILD_CONST_KEY_MAP BUILD_LIST BUILD_SLICE BUILD_TUPLE
    LIST_APPEND LIST_TO_TUPLE
    CALL MAKE_FUNCTION SETUP_ANNOTATIONS
    FOR_ITER JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    RETURN_VALUE RETURN_GENERATOR YIELD_VALUE SEND
    LOAD_ASSERTION_ERROR RERAISE PREP_RERAISE_STAR
    CHECK_EXC_MATCH CHECK_EG_MATCH WITH_EXCEPT_START
    """.split()
)

ASYNCHRONOUS = frozenset(
    """
    ASYNC_GEN_WRAP BEFORE_ASYNC_WITH END_ASYNC_FOR GET_AITER GET_ANEXT GET_AWAITABLE
    """.split()
)

REFUSED = ASYNCHRONOUS
