"""Whether code keeps to its stack: as many values before an instruction whichever way it is reached, and enough.

CPython asks nothing of that: code that takes more than there is reads and writes the variables below, and code whose
stack is larger than it says writes over what lies behind. Values are counted by ``dis.stack_effect`` along all ways and
exceptions, independently of how the tracer counts them.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"}
JUMPS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
GENERATOR = 0x20 | 0x80 | 0x200  # flags: each is begun with a value on its stack


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions in it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from codes(x)


def needed(name: str, arg: int) -> int:
    """How many values must be there, where that is more than are taken."""
    if name in ("SWAP", "COPY"):
        return arg
    if name == "PRECALL":
        return arg + 2
    if name == "CALL":
        return arg + 2 if sys.version_info >= (3, 12) else 2
    if name == "CALL_KW":
        return arg + 3
    return {"BINARY_OP": 2, "COMPARE_OP": 2, "RETURN_VALUE": 1}.get(name, 0)


def faults(code: CodeType) -> list[str]:
    """What is wrong with the stack of a code object."""
    instrs = list(dis.get_instructions(code))
    index = {x.offset: k for k, x in enumerate(instrs)}
    table: Any = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    depths: dict[int, int] = {}
    found: list[str] = []
    todo = [(0, 0)]
    while todo:
        k, depth = todo.pop()
        instr = instrs[k]
        name, where = instr.opname, f"{code.co_qualname}:{instr.offset} {instr.opname}"
        if k in depths:
            if depths[k] != depth:
                found.append(f"{where}: {depths[k]} or {depth} values")
            continue
        depths[k] = depth
        arg = (instr.arg or 0) if instr.opcode >= dis.HAVE_ARGUMENT else None
        if depth < needed(name, arg or 0):
            found.append(f"{where} {arg}: {depth} values")
        for region in table:
            if region.start <= instr.offset < region.end:
                if depth < region.depth:
                    found.append(f"{where}: {depth} values, the handler keeps {region.depth}")
                todo.append((index[region.target], region.depth + region.lasti + 1))
        if name in ENDS:
            continue
        follows = [(k + 1, False)] if name not in JUMPS else []
        if instr.opcode in (*dis.hasjrel, *dis.hasjabs):
            follows.append((index[instr.argval], True))
        for after, jump in follows:
            effect = 0 if name == "EXTENDED_ARG" else dis.stack_effect(instr.opcode, arg, jump=jump)
            effect += name == "RETURN_GENERATOR" and sys.version_info < (3, 13)
            if depth + effect < 0:
                found.append(f"{where} {arg}: {depth} values")
            else:
                todo.append((after, depth + effect))
    if max(depths.values()) > code.co_stacksize:
        found.append(f"{code.co_qualname}: {max(depths.values())} values, not {code.co_stacksize}")
    return found
