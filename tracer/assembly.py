"""Taking code objects apart and putting them together again, by the package `bytecode`.

An ``Assembler`` gives the instructions of a code object, with jump targets as indices. It takes those of a new one and
works out what follows from where they come to lie: the distances of jumps and the exception table. All else (names,
variables, flags, the size of the stack) stays as it was, and is not computed anew.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from bytecode import ConcreteBytecode, ConcreteInstr
from bytecode.concrete import ExceptionTableEntry
from bytecode.instr import UNSET
from bytecode.instr import InstrLocation as Position

JUMPS = {*dis.hasjrel, *getattr(dis, "hasjump", ())}
BACKWARD = {op for op in JUMPS if "BACKWARD" in dis.opname[op] or dis.opname[op] == "END_ASYNC_FOR"}
CACHE = ConcreteInstr("CACHE", 0)  # which lies where the instruction before it does
ENTRIES: Any = dis._inline_cache_entries  # type: ignore[attr-defined]
# The number of inline cache entries that follow each opcode; since 3.13 CPython lists them by name.
CACHES: list[int] = (
    ENTRIES if isinstance(ENTRIES, list) else [ENTRIES.get(name, 0) for name in dis.opname]
)
HAS_ARGUMENT = frozenset(getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256)))
NOT_KNOWN = Position(None, None, None, None)


class Instr:
    """An instruction: its opcode and argument, where it comes from, and what jumps where.

    ``jump`` is the index of the instruction that it jumps to, or None; ``target`` tells whether any
    instruction or exception handler jumps here.
    """

    __slots__ = ("arg", "jump", "name", "op", "position", "target")

    def __init__(self, op: int, arg: int, position: Position, jump: int | None = None) -> None:
        self.become(op)
        self.arg = arg
        self.position = position
        self.jump = jump
        self.target = False

    def become(self, op: int) -> None:
        self.op = op
        self.name = dis.opname[op]

    def __repr__(self) -> str:
        return f"<{self.name} {self.arg} at {self.position.lineno}>"


class Region:
    """An entry of the exception table: ``handler`` takes what ``start`` to ``stop`` raise."""

    __slots__ = ("depth", "handler", "lasti", "start", "stop")

    def __init__(self, start: int, stop: int, handler: int, depth: int, lasti: bool) -> None:
        self.start = start
        self.stop = stop
        self.handler = handler
        self.depth = depth  # of the stack
        self.lasti = lasti  # whether the place of the instruction is pushed too


class Assembler:
    """Takes a code object apart and assembles a copy of it with other instructions.

    ``source`` are the instructions, without caches and EXTENDED_ARG, and ``regions`` the exception table. Jumps and
    regions of the new instructions are given in indices of the old ones: ``mark`` is called before the replacement of
    each of them is written.
    """

    def __init__(self, code: CodeType) -> None:
        self.concrete = ConcreteBytecode.from_code(code)
        self.stacksize = code.co_stacksize
        self.consts = self.concrete.consts
        self.source: list[Instr] = []
        self.regions: list[Region] = []
        self.instrs: list[tuple[int, int, Position, int | None]] = []
        self.starts: list[int] = []  # old index -> index here
        self.disassemble()

    def disassemble(self) -> None:
        instrs = self.source
        index_at: dict[int, int] = {}  # code unit -> index of the instruction
        jumps: list[tuple[Instr, int]] = []
        unit = 0
        for found in self.concrete:
            assert isinstance(found, ConcreteInstr)
            size = found.size // 2  # with its EXTENDED_ARGs
            if found.opcode != CACHE.opcode:
                arg = 0 if found.arg is UNSET else found.arg
                instr = Instr(found.opcode, arg, found.location or NOT_KNOWN)
                if found.has_jump():
                    jumps.append((instr, found.get_jump_target(unit) or 0))
                for u in range(unit, unit + size):
                    index_at[u] = len(instrs)
                instrs.append(instr)
            unit += size
        index_at[unit] = len(instrs)
        for instr, target in jumps:
            instr.jump = index_at[target]
            instrs[instr.jump].target = True
        for entry in self.concrete.exception_table:
            # A region may end within the caches of its last instruction.
            stop = entry.stop_offset + 1
            while stop not in index_at:
                stop += 1
            start, handler = index_at[entry.start_offset], index_at[entry.target]
            self.regions.append(
                Region(start, index_at[stop], handler, entry.stack_depth, entry.push_lasti)
            )
            instrs[handler].target = True

    def mark(self) -> None:
        self.starts.append(len(self.instrs))

    def const(self, value: Any) -> int:
        """The argument with which LOAD_CONST loads ``value``."""
        self.consts.append(value)
        return len(self.consts) - 1

    def assemble(self, extra_stack: int = 0) -> CodeType:
        self.mark()  # the end
        offsets, args, prefixes = self._layout()
        instrs: list[ConcreteInstr] = []
        before: int = self.concrete.first_lineno
        for (op, _, position, _), arg, count in zip(self.instrs, args, prefixes):
            line, end = position.lineno, position.end_col_offset
            if line is not None:
                # `bytecode` has a short form for what begins one or two lines further on, and takes it for columns
                # that do not fit in there, so that CPython loses count of the lines: such an instruction has none.
                if end is not None and end > 127 and 0 < line - before < 3:
                    if line == position.end_lineno:
                        position = Position(line, line, None, None)
                before = line
            instrs.append(
                ConcreteInstr(
                    dis.opname[op],
                    arg if op in HAS_ARGUMENT else UNSET,
                    location=position,
                    extended_args=count or None,
                )
            )
            if CACHES[op]:
                instrs += [CACHE] * CACHES[op]
        new, starts = self.concrete, [offsets[i] for i in self.starts]
        new[:] = instrs
        new.exception_table = [
            ExceptionTableEntry(
                starts[x.start], starts[x.stop] - 1, starts[x.handler], x.depth, x.lasti
            )
            for x in self.regions
        ]
        return new.to_code(
            stacksize=self.stacksize + extra_stack, compute_exception_stack_depths=False
        )

    def _layout(self) -> tuple[list[int], list[int], list[int]]:
        """Where each instruction begins, its argument, and how many EXTENDED_ARGs go before it."""
        instrs, starts = self.instrs, self.starts
        args = [arg if jump is None else 0 for _, arg, _, jump in instrs]
        prefixes = [_prefixes(arg) if arg > 0xFF else 0 for arg in args]
        jumps = [
            (i, op, starts[jump]) for i, (op, _, _, jump) in enumerate(instrs) if jump is not None
        ]
        settled = False
        while not settled:
            offsets, unit = [], 0
            for (op, _, _, _), count in zip(instrs, prefixes):
                offsets.append(unit)
                unit += 1 + CACHES[op] + count
            offsets.append(unit)
            settled = True
            for i, op, target in jumps:
                # Jumps are counted from the end of the instruction. One that has grown never
                # shrinks again.
                distance = offsets[target] - offsets[i + 1]
                args[i] = -distance if op in BACKWARD else distance
                needed = _prefixes(args[i])
                if needed > prefixes[i]:
                    prefixes[i], settled = needed, False
        return offsets, args, prefixes


def _prefixes(arg: int) -> int:
    """The number of EXTENDED_ARGs that an argument needs."""
    return (arg.bit_length() - 1) // 8 if arg else 0
