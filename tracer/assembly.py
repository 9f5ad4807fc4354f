"""Taking code objects apart and putting them together again.

``disassemble`` gives the instructions of a code object, with jump targets as indices.
``Assembler`` takes the instructions of a new one and works out what follows from them: distances of
jumps, EXTENDED_ARG, inline caches, the table of positions and the exception table. All else (names,
variables, flags) stays as it was.

Why not the package ``bytecode``: it rebuilds names, variables, constants and stack sizes as well
and needs 25 to 45 microseconds an instruction for a twin where this needs 4; and it (0.19.1) cannot
put t-strings together again.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator
from types import CodeType
from typing import Any

# line, end line, column, end column; as in ``co_positions``
Position = tuple[int | None, int | None, int | None, int | None]

EXTENDED_ARG = dis.EXTENDED_ARG
JUMPS = {*dis.hasjrel, *getattr(dis, "hasjump", ())}
BACKWARD = {op for op in JUMPS if "BACKWARD" in dis.opname[op]}


def _cache_entries() -> list[int]:
    """The number of inline cache entries that follow each opcode."""
    entries: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
    if isinstance(entries, list):
        return entries
    return [entries.get(name, 0) for name in dis.opname]  # since 3.13, by name


CACHES = _cache_entries()


class Instr:
    """An instruction: its opcode and argument, where it comes from, and what jumps where.

    ``jump`` is the index of the instruction that it jumps to, or None; ``target`` tells whether any
    instruction or exception handler jumps here.
    """

    __slots__ = ("arg", "jump", "op", "position", "target")

    def __init__(self, op: int, arg: int, position: Position, jump: int | None = None) -> None:
        self.op = op
        self.arg = arg
        self.position = position
        self.jump = jump
        self.target = False

    @property
    def name(self) -> str:
        return dis.opname[self.op]

    def __repr__(self) -> str:
        return f"<{self.name} {self.arg} at {self.position[0]}>"


class Region:
    """An entry of the exception table: ``handler`` takes what ``start`` to ``stop`` raise."""

    __slots__ = ("depth", "handler", "start", "stop")

    def __init__(self, start: int, stop: int, handler: int, depth: int) -> None:
        self.start = start
        self.stop = stop
        self.handler = handler
        self.depth = (
            depth  # of the stack, times two, plus one where the last instruction is pushed too
        )


def disassemble(code: CodeType) -> tuple[list[Instr], list[Region]]:
    """The instructions of ``code``, without caches and EXTENDED_ARG, and its exception table."""
    raw = code.co_code
    positions = list(code.co_positions())
    instrs: list[Instr] = []
    index_at: dict[int, int] = {}  # code unit -> index of the instruction
    jumps: list[tuple[Instr, int]] = []
    unit, size, arg = 0, len(raw) // 2, 0
    begin = 0  # of the instruction with its EXTENDED_ARGs
    while unit < size:
        op = raw[2 * unit]
        arg |= raw[2 * unit + 1]
        if op == EXTENDED_ARG:
            arg <<= 8
            unit += 1
            continue
        instr = Instr(op, arg, positions[unit])
        for u in range(begin, unit + 1):
            index_at[u] = len(instrs)
        instrs.append(instr)
        unit += 1 + CACHES[op]
        if op in JUMPS:
            jumps.append((instr, unit - arg if op in BACKWARD else unit + arg))
        begin, arg = unit, 0
    index_at[size] = len(instrs)
    for instr, target in jumps:
        instr.jump = index_at[target]
        instrs[instr.jump].target = True
    regions = []
    numbers = _varints(code.co_exceptiontable)
    for start in numbers:
        length, handler, depth = next(numbers), next(numbers), next(numbers)
        # A region may end within the caches of its last instruction.
        stop = start + length
        while stop not in index_at:
            stop += 1
        regions.append(Region(index_at[start], index_at[stop], index_at[handler], depth))
        instrs[index_at[handler]].target = True
    return instrs, regions


def _varints(table: bytes) -> Iterator[int]:
    """The numbers of an exception table: six bits a byte, highest first."""
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0


def _varint(value: int, first: int = 0) -> bytes:
    digits = [value & 63]
    while value := value >> 6:
        digits.append(value & 63 | 64)
    digits[-1] |= first
    return bytes(reversed(digits))


class Assembler:
    """Collects instructions for a copy of ``code`` and assembles it.

    Jumps and regions are given in indices of the old instructions: ``mark`` is called before the
    replacement of each of them is written.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.consts = list(code.co_consts)
        self.instrs: list[tuple[int, int, Position, int | None]] = []
        self.starts: list[int] = []  # old index -> index here

    def mark(self) -> None:
        self.starts.append(len(self.instrs))

    def const(self, value: Any) -> int:
        """The argument with which LOAD_CONST loads ``value``."""
        self.consts.append(value)
        return len(self.consts) - 1

    def assemble(self, regions: list[Region], extra_stack: int) -> CodeType:
        self.mark()  # the end
        offsets, args, prefixes = self._layout()
        starts = self.starts
        code = bytearray()
        for (op, _, _, _), arg, count in zip(self.instrs, args, prefixes):
            while count:
                code.append(EXTENDED_ARG)
                code.append(arg >> 8 * count & 0xFF)
                count -= 1
            code.append(op)
            code.append(arg & 0xFF)
            if CACHES[op]:
                code.extend(bytes(2 * CACHES[op]))
        table = bytearray()
        for region in regions:
            start = offsets[starts[region.start]]
            table += _varint(start, first=128)
            table += _varint(offsets[starts[region.stop]] - start)
            table += _varint(offsets[starts[region.handler]])
            table += _varint(region.depth)
        return self.code.replace(
            co_code=bytes(code),
            co_consts=tuple(self.consts),
            co_linetable=self._positions(offsets),
            co_exceptiontable=bytes(table),
            co_stacksize=self.code.co_stacksize + extra_stack,
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

    def _positions(self, offsets: list[int]) -> bytes:
        """The table behind ``co_positions``; see Objects/locations.md in CPython."""
        table = bytearray()
        line = self.code.co_firstlineno
        begin, current = 0, self.instrs[0][2]
        for i, (_, _, position, _) in enumerate(self.instrs):
            if position is not current and position != current:
                line = _write_position(table, current, offsets[i] - begin, line)
                begin, current = offsets[i], position
        _write_position(table, current, offsets[-1] - begin, line)
        return bytes(table)


def _prefixes(arg: int) -> int:
    """The number of EXTENDED_ARGs that an argument needs."""
    return (arg.bit_length() - 1) // 8 if arg else 0


def _write_position(table: bytearray, position: Position, size: int, line: int) -> int:
    """Write the entries for ``size`` code units, given the line before; returns the line after."""
    start, end, column, end_column = position
    while size > 0:
        length = min(size, 8)
        size -= length
        head = 128 | length - 1
        if start is None:
            table.append(head | 15 << 3)
            continue
        delta, line = start - line, start
        if column is None or end_column is None or end is None:
            table.append(head | 13 << 3)
            table += _signed(delta)
        elif end == start and delta == 0 and column < 80 and 0 <= end_column - column < 16:
            table.append(head | column >> 3 << 3)
            table.append((column & 7) << 4 | end_column - column)
        elif end == start and 0 <= delta < 3 and column < 128 and end_column < 128:
            table.append(head | 10 + delta << 3)
            table.append(column)
            table.append(end_column)
        else:
            table.append(head | 14 << 3)
            table += _signed(delta)
            table += _little(end - start)
            table += _little(column + 1)
            table += _little(end_column + 1)
    return line


def _little(value: int) -> bytes:
    """Six bits a byte, lowest first."""
    digits = bytearray()
    while value > 63:
        digits.append(value & 63 | 64)
        value >>= 6
    digits.append(value)
    return bytes(digits)


def _signed(value: int) -> bytes:
    return _little(-value << 1 | 1 if value < 0 else value << 1)
