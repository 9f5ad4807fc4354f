"""The bytecode of a function and its instrumented copy, side by side.

Words
-----
row      what one instruction of the original became: one or more instructions of the copy.
hook     one of the tracer's callables that the copy loads and calls; ``>`` stands before what is there for its sake.
"""

from __future__ import annotations

import dis
import linecache
import re
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from ...tracer import hooks
from ...tracer.entrances import entrance
from ...tracer.errors import TraceError
from ...tracer.intrinsic import behind
from ...tracer.kinds import attribute, isinstance
from ...tracer.rewrite import Rewriter, original
from ...tracer.run import unwrapped
from ...tracer.tape import Site, fn_name

WIDEST = 46  # of the left column
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


class Step(NamedTuple):
    """An instruction in words; ``hooked`` where the original has no such."""

    text: str
    hooked: bool = False


class Row(NamedTuple):
    """An instruction of the original, with its number and its line (0 where it has none), and what it became."""

    number: int
    line: int
    before: str
    after: list[Step]


class Bytecode:
    """The instructions of a code object beside those of its instrumented copy: ``rows``; ``print`` shows them.

    ``inner`` are those of the functions, classes and comprehensions that it defines.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code
        rewriter = Rewriter(code, hooks)
        twin = rewriter.rewrite()
        own, starts, known = rewriter.out.instrs, rewriter.out.starts, len(code.co_consts)
        before, after = list(instructions(code)), list(instructions(twin))
        self.rows: list[Row] = []
        for i, (instr, text) in enumerate(zip(rewriter.source, before, strict=True)):
            stop = starts[i + 1]
            steps = []
            for j in range(starts[i], stop):
                op, arg, _, jump = own[j]
                same = op == instr.op and (jump is not None or arg == instr.arg)
                steps.append(Step(described(after[j], jump, known), not same))
            line = instr.position.lineno or 0
            self.rows.append(Row(i, line, described(text, instr.jump, known), steps))
        self.inner = [Bytecode(x) for x in code.co_consts if isinstance(x, CodeType) and can(x)]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        code = self.code
        site = Site(code.co_filename, code.co_firstlineno, code.co_name)
        width = min(WIDEST, max(len(row.before) for row in self.rows))
        yield f"bytecode of {code.co_qualname}  # {site}"
        yield f"  {'original':{width + 6}}   instrumented copy"
        line = None
        for row in self.rows:
            if row.line != line and row.line:
                line = row.line
                text = linecache.getline(code.co_filename, line).strip()
                yield f"  line {line}" + (f":  {text}" if text else "")
            first = row.after[0] if row.after else Step("")
            yield f"  {row.number:4}  {row.before:{width}} {marked(first)}".rstrip()
            for step in row.after[1:]:
                yield f"  {'':4}  {'':{width}} {marked(step)}".rstrip()
        for inner in self.inner:
            yield ""
            yield from inner.lines()


def marked(step: Step) -> str:
    return f"{'>' if step.hooked else ' '} {step.text}"


def can(code: CodeType) -> bool:
    """Whether a code object can be instrumented: asynchronous code cannot."""
    return not code.co_flags & (0x80 | 0x200)


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a code object, without those that only carry on an argument or a cache."""
    for instr in dis.get_instructions(code):
        if instr.opname not in ("EXTENDED_ARG", "CACHE"):
            yield instr


def described(instr: dis.Instruction, jump: int | None, known: int) -> str:
    """An instruction in words. Jumps tell the number of the instruction of the original that they lead to."""
    if jump is not None:
        return f"{instr.opname} to {jump}"
    if instr.opname == "LOAD_CONST" and callable(instr.argval) and (instr.arg or 0) >= known:
        return f"LOAD_CONST {hook_name(instr.argval)}"
    if isinstance(instr.argval, CodeType):
        return f"{instr.opname} <code of {instr.argval.co_name}>"
    text = ADDRESS.sub("", instr.argrepr)
    if not text and instr.arg is not None and instr.opcode in HAS_ARGUMENT:
        text = str(instr.arg)
    return f"{instr.opname} {text}".rstrip()


HAS_ARGUMENT = frozenset(getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256)))


def hook_name(hook: Any) -> str:
    """What a hook is for, with the operator or the name that it stands for."""
    name = attribute(hook, "__qualname__", type(hook).__name__).partition(".")[0]
    held = attribute(hook, "__closure__") or ()
    details = [x.cell_contents for x in held]
    words = [fn_name(x) if type(x) is BuiltinFunctionType else x for x in details]
    told = dict.fromkeys(x for x in words if type(x) is str and len(x) < 20)
    return f"<hook: {' '.join([name, *told])}>"


@entrance
def bytecode(f: Any) -> Bytecode:
    """The bytecode of a Python function beside its instrumented copy, which the tracer runs in its place.

    It can be printed; ``rows`` holds the same as data. Raises `TraceError` for what is no Python function, and for
    asynchronous code.

    >>> def double(x):
    ...     return 2.0 * x
    >>> from wengert import bytecode
    >>> any("<hook: binary mul>" in step.text for row in bytecode(double).rows for step in row.after)
    True
    """
    code = f if isinstance(f, CodeType) else code_of(f)
    return Bytecode(original(code))


def code_of(given: Any) -> CodeType:
    f = unwrapped(behind(given))
    if type(f) is MethodType:
        f = f.__func__
    if type(f) is not FunctionType and not isinstance(f, type):
        f = attribute(type(f), "__call__", f)
    if type(f) is not FunctionType:
        raise TraceError(
            f"bytecode takes a Python function or method, and {attribute(given, '__name__', given)!r} is none\n"
            "what is written in C has no bytecode; give it the function that calls it"
        )
    return f.__code__
