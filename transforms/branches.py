"""Branches: the paths of a function as one program, whose decisions dispatch between them.

Words
-----
path       one way through a function: what one traced run comes down to.
decision   a guard on a traced value; where paths part, their program asks for the value once and goes on by it.
lead       the first of some paths; what they have in common is written with its ops.
twin       the op of another path, or the place that it read, that corresponds to one of the lead's.
segment    what is written between two decisions: guards on what only these paths read, and operations.

A function whose branch changes from call to call would leave its program each time, which costs an exception, a trial
of the other programs and an exchange of code: ten times what a small program costs. As one program its paths share
what they have in common. Nothing is done for a path that is not taken; what only one path reads from outside is looked
at when it is clear that this path is taken. A segment has a ``try`` of its own, for effects must not be caught by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..tracer.kinds import is_one_of, isinstance
from ..tracer.lifetimes import unlink
from ..tracer.reads import Place, Reads
from ..tracer.tape import External, Guard, Input, Op
from .assemble import Assembly, same
from .guards import GuardWriter
from .loops import LoopFunction
from .programs import RESERVED, Path, Program, decided
from .same_loops import same_kind, same_loops

FROM_HERE = " from here on"  # of what is made sure of in a part of a program
MOST = 32  # paths of one program: Python indents no further than 100 levels


def joined(programs: Iterable[Program], new: Program) -> tuple[Program | None, Program]:
    """The program of ``new`` together with the paths of one of the programs that part from it.

    The first of the pair is the program that is no longer needed, all of whose paths are in the second. Where there
    would be more than ``MOST`` paths, the oldest is left out.
    """
    if new.paths and MOST > 1:
        (path,) = new.paths
        for program in programs:
            paths = [other for other in program.paths if parting(other, path) is not None]
            if paths:
                both = Tree([*paths, path][-MOST:]).program
                return program if len(paths) == len(program.paths) else None, both
    return None, new


# ------------------------------------------------------------------------------------------- correspondence


def parting(lead: Path, other: Path) -> tuple[int, dict[Place, Place]] | None:
    """The number of the op at which two paths take different decisions, and the places that both read.

    None if they are different before that, or not at all.
    """
    places = shared_places(lead.reads, other.reads)
    roots = [*lead.reads.roots, *other.reads.roots]
    if len(roots) != 2 * sum(place in places for place in lead.reads.roots):
        return None
    twins: dict[Op, Op] = {}
    if lead.drawn is not None and other.drawn is not None:
        twins[lead.drawn] = other.drawn
    for i, (a, b) in enumerate(zip(lead.forward, other.forward, strict=False)):
        if a.kind == b.kind == "guard" and alike(a.args, b.args, twins):
            if same(a.value, b.value):
                continue
            return (i, places) if same(a.value, a.value) and same(b.value, b.value) else None
        if a.kind == b.kind == "effect":
            continue  # each path has its own at its end
        if not corresponding(a, b, twins, places):
            return None
        twins[a] = b
    return None


def corresponding(a: Op, b: Op, twins: dict[Op, Op], places: dict[Place, Place]) -> bool:
    """Whether two ops compute the same, on values of the same kind."""
    if type(a) is not type(b) or a.kind not in ("input", "call") or not same_kind(a.value, b.value):
        return False
    if isinstance(a, Input) and isinstance(b, Input):
        return a.place is not None and places.get(a.place) is b.place
    return (
        alike(a.fn, b.fn, twins)
        and alike(a.args, b.args, twins)
        and alike(a.kwargs, b.kwargs, twins)
    )


def alike(a: Any, b: Any, twins: dict[Op, Op]) -> bool:
    """Whether two nested arguments are the same, but for ops that are twins."""
    if isinstance(a, Op):
        return a in twins and twins[a] is b
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(alike(x, y, twins) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return [*a] == [*b] and all(
            alike(x, y, twins) for x, y in zip(a.values(), b.values(), strict=True)
        )
    if isinstance(a, slice):
        return alike((a.start, a.stop, a.step), (b.start, b.stop, b.step), twins)
    if isinstance(a, External):
        return a.value is b.value
    if isinstance(a, LoopFunction):
        return same_loops(a, b, alike)
    if a is b:
        return True
    if isinstance(a, (bool, int, float, complex, str, bytes, range, np.generic)):
        return same(a, b)
    return is_one_of(type(a), BOUND) and a == b  # made anew each time it is asked for


BOUND: tuple[type, ...] = (
    type([].append),
    type(np.add.reduce),
    type("".join),
    type(int.from_bytes),
)


def shared_places(a: Reads, b: Reads) -> dict[Place, Place]:
    """The places of one run that another one has read too, with the same guard on them, and the other's."""
    found: dict[Place, Place] = {}

    def pair(x: Place, y: Place) -> None:
        if same_guard(x, y, found):
            found[x] = y
            for name, child in x.children.items():
                if name in y.children:
                    pair(child, y.children[name])

    if len(a.arguments) == len(b.arguments) and [*a.keywords] == [*b.keywords]:
        for x, y in zip(a.roots, b.roots, strict=True):
            pair(x, y)
        for key, x in a.constants.items():
            if key in b.constants:
                pair(x, b.constants[key])
    unlink(pair)
    return found


def same_guard(x: Place, y: Place, known: dict[Place, Place]) -> bool:
    """Whether what is guarded of two places is the same."""
    a, b, check = x.value, y.value, x.check
    if check != y.check or x.pinned != y.pinned or (x.pinned and a is not b):
        return False
    if check == "is":
        return a is b
    if check == "value":
        return same(a, b)
    if check == "function":
        return x.code is y.code and a.__globals__ is b.__globals__
    if check == "same":
        return x.origin in known and known[x.origin] is y.origin
    if check == "array":
        return same_kind(a, b) and a.flags.writeable == b.flags.writeable
    if check == "length":
        return type(a) is type(b) and x.size == y.size
    if check == "keys":
        return type(a) is type(b) and same(x.key_list, y.key_list)
    return check == "missing" or (check in (None, "type", "empty") and type(a) is type(b))


# -------------------------------------------------------------------------------------------------- writing


class SegmentGuards(GuardWriter):
    """Writes the guards of a segment: on places that are not yet ``given`` a name, and only those ``among`` others."""

    given: dict[Place, str]
    among: set[Place] | None

    def visit(self, place: Place, text: str, named: bool = False) -> None:
        if place in self.given:
            self.names[place] = self.given[place]
            self.visit_children(place, self.names[place])
        elif self.among is None or place in self.among:
            super().visit(place, text, named)

    def examine(self, place: Place, text: str) -> None:
        if place in self.given:
            self.visit(place, text)
        elif self.among is None or place in self.among:
            super().examine(place, text)

    def is_member(self, place: Place) -> bool:
        if place in self.given or not (self.among is None or place in self.among):
            return False
        return super().is_member(place)

    def unpacked(self, place: Place, text: str) -> bool:
        children = place.children.values()
        if self.among is not None and not all(child in self.among for child in children):
            return False
        return super().unpacked(place, text)


class Tree:
    """Writes several paths as one program."""

    def __init__(self, paths: list[Path]) -> None:
        first = paths[0].builder
        self.program = program = Program(first.name)
        program.paths = paths
        assembly = Assembly(program.namespace, taken={*first.used, *RESERVED})
        constants: dict[int, str] = {}
        for path in paths:
            builder = path.builder
            builder.program, builder.assembly, builder.seen_constants = program, assembly, constants
            builder.exposed, builder.names = set(path.exposed), {}
        self.layout = any(path.builder.layout for path in paths)
        self.draws = any(path.drawn is not None for path in paths)
        self.quiets = any(path.quiet is not None for path in paths)
        first.opening(self.draws, self.quiets)
        self.watching = 0  # the line from which on NumPy's errors are watched
        self.segment(paths, 0, [{} for _ in paths], [], assembly, 1)
        first.assembly = assembly
        if self.quiets and all(path.builder.may_trust for path in paths):
            first.trust(self.watching)
        first.ending(self.draws)
        program.paths = paths

    def segment(
        self,
        paths: list[Path],
        start: int,
        given: list[dict[Place, str]],
        held: list[Op],
        assembly: Assembly,
        indent: int,
    ) -> None:
        """Write ``paths`` from the op numbered ``start`` on.

        ``given`` are the names of the places that were guarded before, for each path, and ``held`` the ops of the first
        path whose values lie in variables of their own.
        """
        lead, others = paths[0], paths[1:]
        builder, lines, pad = lead.builder, self.program.lines, "    " * indent
        builder.assembly = assembly
        partings = [parting(lead, path) for path in others]
        stop = min((at for at, _ in filter(None, partings)), default=len(lead.forward))
        twins = [places for _, places in filter(None, partings)]
        assert len(twins) == len(others)
        if indent > 1:
            lines.append(f"{pad}try:")
        begun = len(lines)

        needed = self.needed(paths, start)
        over = [op for op in held if op not in needed]
        assembly.release(over, pad + "    ", lines)

        guards = SegmentGuards(
            lead.reads, builder.constant, assembly.fresh, dict(builder.wanted), self.layout
        )
        guards.given, guards.among = given[0], None
        guards.straight = set(builder.straight)
        if others:
            guards.among = {p for p in twins[0] if all(p in places for places in twins)}
            for path, places in zip(others, twins, strict=True):
                wanted = path.builder.wanted
                guards.wanted.update({p: [] for p, twin in places.items() if twin in wanted})
                straight = path.builder.straight
                guards.straight.update(p for p, twin in places.items() if twin in straight)
        builder.guard(guards, guards.write(builder.roots()), indent + 1)
        if not others:
            builder.guard_writes(guards, indent + 1)
        if self.quiets and indent == 1:
            self.watching = len(lines)
            lines.append(f"{pad}    errors = {builder.watching}")
        builder.bind(lead.drawn)

        passed = set(lead.forward[:start])
        if others:
            chosen = [
                op
                for i, op in enumerate(lead.forward[start:stop], start)
                if any(path.forward[i] in path.kept for path in paths)
            ]
            live = self.needed(paths, stop) | set(lead.forward[stop].operands())
        else:
            chosen, live = [op for op in lead.ops if op not in passed], lead.live
        self.count(lead, chosen)
        builder.operate(chosen, live, indent + 1)
        if len(lines) == begun and lines[-1].endswith("try:"):
            lines.append(f"{pad}    pass")
        builder.leave(self.quiets, indent)
        if not others:
            builder.answer(lead.answer, self.quiets, indent + 1)
            return

        names = [{p: guards.names[p] for p in guards.among or () if p in guards.names}]
        names += [{places[p]: text for p, text in names[0].items()} for places in twins]
        kept = [op for op in (*held, *chosen) if op.kind == "call" and op in live]
        self.decide(paths, stop, names, kept, assembly, indent + 1)

    def decide(
        self,
        paths: list[Path],
        stop: int,
        given: list[dict[Place, str]],
        held: list[Op],
        assembly: Assembly,
        indent: int,
    ) -> None:
        """Write the decision at which paths part, and then each group of paths that take it alike."""
        lead, lines, pad = paths[0], self.program.lines, "    " * indent
        groups: list[list[int]] = []
        for i, path in enumerate(paths):
            value = path.forward[stop].value
            for group in groups:
                if same(value, paths[group[0]].forward[stop].value):
                    group.append(i)
                    break
            else:
                groups.append([i])
        asked = lead.forward[stop]
        values = [paths[group[0]].forward[stop].value for group in groups]
        whole = len(values) == 2 and all(type(value) is bool for value in values)
        word = "if"
        for group, value in zip(groups, values, strict=True):
            guard = Guard(asked.fn, asked.args, value, asked.site, asked)
            last = whole and word == "elif"
            lines.append(pad + ("else:" if last else f"{word} {success(assembly, guard)}:"))
            self.program.guards[len(lines)] = decided(guard)._replace(held=f"{value!r}{FROM_HERE}")
            word = "elif"
            first = paths[group[0]]
            twins = dict(zip(lead.forward[:stop], first.forward[:stop], strict=True))
            self.segment(
                [paths[i] for i in group],
                stop + 1,
                [given[i] for i in group],
                [twins[op] for op in held],
                assembly.fork(twins),
                indent + 1,
            )
        if not whole:
            self.unknown(lead, asked, values, indent)

    def unknown(self, lead: Path, asked: Op, values: list[Any], indent: int) -> None:
        """Leave the program where no path knows a decision."""
        lines, pad = self.program.lines, "    " * indent
        lines += [f"{pad}else:", f"{pad}    try:", f"{pad}        {lead.builder.miss}"]
        place = f"{asked.site.place}, in {asked.site.function}"
        held = ", ".join(map(repr, values))
        self.program.reasons[len(lines)] = f"another decision at {place} (it was {held})"
        self.program.guards[len(lines)] = decided(asked)._replace(held=held)
        if type(values[0]) is int:
            self.program.integers[len(lines)] = ("decision", asked.site)
        lead.builder.leave(self.quiets, indent + 1)
        lines.pop()  # nothing is to be done otherwise

    def needed(self, paths: list[Path], start: int) -> set[Op]:
        """Which of the lead's ops before the one numbered ``start`` any of the paths needs from there on."""
        lead = paths[0]
        found: set[Op] = set()
        for path in paths:
            before = set(path.forward[:start])
            used = set(path.live)
            for op in path.ops:
                if op not in before:
                    used.update(op.operands())
            found.update(
                mine
                for mine, op in zip(lead.forward[:start], path.forward, strict=False)
                if op in used
            )
        return found

    def count(self, lead: Path, ops: list[Op]) -> None:
        own = set(lead.forward)
        calls = [op for op in ops if op.kind == "call" and op is not lead.quiet]
        forward = sum(op in own for op in calls)
        self.program.loops += sum(isinstance(op.fn, LoopFunction) and op in own for op in calls)
        self.program.forward += forward
        self.program.reverse += len(calls) - forward


def success(assembly: Assembly, guard: Op) -> str:
    """The condition under which a decision is taken as it was."""
    failure, value = assembly.failure(guard), guard.value
    if value is True:
        return failure.removeprefix("not ")
    if value is None or is_one_of(type(value), (int, str, bytes)):
        return failure.replace(" != ", " == ", 1).replace(" is not ", " is ", 1)
    return f"not ({failure})" if value is not False else f"not {failure}"
