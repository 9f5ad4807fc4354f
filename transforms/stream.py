"""Loops that are rolled while they run: iterations like those that are kept leave the tape at once.

Words
-----
watch      looks at each iteration of a passage when the next one has ended, and drops it if it can.
matcher    a function, generated from the pattern of the iterations so far, that compares a segment with it.
counts     how many references there are to each op of a segment if nothing but the segment itself, the tape and the
           next head refer to it. An iteration of which anything else holds an op is kept.

An iteration is looked at one iteration late, so that variables which are not carried hold newer values by then.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np

from ..tracer.arrays import owner_of
from ..tracer.errors import WengertError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.loops import Carry, Loops, Passage, carry
from ..tracer.tape import GONE, NOWHERE, FloatOp, Guard, Op
from .bodies import Builder
from .loop_reverse import reverse_of
from .loops import COUNT, Unrolled, is_smooth
from .patterns import Numbers, Pattern, alike, frame, kind_of, operands, patterns, spots
from .roll import Group, Roller, Stretch

MOST_VARIANTS = 8
MOST_GROWTHS = 32  # times to take an unlike iteration into the pattern


def watch(loops: Loops, passage: Passage) -> Any:
    """Begin to drop iterations of a passage, if they can be rolled."""
    if passage.rigid is not None or loops.tape.written:
        return None
    try:
        return Watcher(loops, passage)
    except (Unrolled, WengertError):
        return None


def references(segment: list[Op]) -> list[int]:
    """How often each op of a list is referred to (the list's own reference and those of this call included)."""
    return list(map(sys.getrefcount, segment))


def _base() -> int:
    ops = [Op(carry, (), None, NOWHERE, GONE)]
    return references(ops[0:1])[0]


BASE = _base()  # of an op that a list and a slice of it hold


class Watcher:
    """Drops the iterations of one passage."""

    def __init__(self, loops: Loops, passage: Passage) -> None:
        self.loops = loops
        self.ops = loops.tape.ops
        self.tape = loops.tape
        first = self.stable(passage)
        last = len(passage.heads) - 2  # the head of the latest iteration, which is not compared yet
        if last - first < 8:
            raise Unrolled("what it carries changes its type")
        roller = Roller(loops.tape, {}, set())
        roller.index = {}
        stretch = Stretch(passage, first, last)
        stretch.stop = stretch.heads[-1]
        for k in reversed(range(len(stretch.heads) - 1)):  # the latest one tells it mostly
            self.make_sure_alone(stretch.heads[k], stretch.heads[k + 1], stretch.states[-1][0])
        for i in range(stretch.heads[0], stretch.heads[-1]):
            roller.index[self.ops[i]] = i
        self.group = group = Group(roller, [stretch])
        group.compare()
        self.root = stretch.states[-1]
        self.given = self.root[0]
        if any(s.behind is not None for p in patterns(group.root) for s in spots(p)):
            raise Unrolled("an iteration uses what an earlier one computed")
        self.check()
        self.growths = 0
        self.save(passage, stretch.heads[0])
        passage.start = first
        loops.tracer.outline = None  # which knows places on the tape as it was

    def save(self, passage: Passage, start: int) -> None:
        """Let the arrays that the loop starts from survive writes to come: it will be run from there once more."""
        ops = [x for op in self.ops[start : start + self.given] for x in (op, *op.operands())]
        ops += [x for p in patterns(self.group.root) for s in spots(p) for x in s.same.values()]
        for op in ops:
            if not isinstance(op, Op) or not isinstance(op.value, np.ndarray):
                continue
            memory = self.tape.memories.get(id(owner_of(op.value)))
            if memory is not None:
                memory.saved.append(op)
                passage.saved.add(op)

    def stable(self, passage: Passage) -> int:
        """The first head from which on what is carried keeps its types, and nothing else holds the iterations."""
        states = passage.states
        k = len(states) - 1
        while k > 0 and states[k - 1] == states[-1]:
            k -= 1
        return k + 1 if k + 1 < len(states) else k

    def check(self) -> None:
        """Make sure that the pattern can be rolled and differentiated, and write the matcher."""
        group = self.group
        if len(group.ends) > MOST_VARIANTS:
            raise Unrolled("its iterations take too many different ways")
        group.rigid = [None]
        group.fill_in()
        if len(group.ends) > 1 and any(
            s.changing is not None
            for p in patterns(group.root)
            if p is not group.root
            for s in spots(p)
        ):
            raise Unrolled("what its iterations use changes, and not all of them use it")
        builder = Builder(group, COUNT)
        family = builder.family()
        first = family.variants[0]
        smooth = [
            {i for i, x in enumerate(row) if is_smooth(x.value)}
            for row in (first.carried, first.invariants)
        ]
        columns = {c for c, x in first.columns.items() if is_smooth(x.value)}
        reverse_of(family, smooth[0], smooth[1], columns, set(smooth[0]))
        self.match = Matcher(group).function()
        self.expected: dict[int, list[int]] = {}

    @staticmethod
    def counts(segment: list[Op], following: list[Op]) -> list[int]:
        """The counts of an iteration."""
        used: Counter[int] = Counter()
        for op in segment:
            for x in operands(op):
                if isinstance(x, Op):
                    used[id(x)] += 1
        for op in following:
            if isinstance(op.args[0], Op):
                used[id(op.args[0])] += 1
        return [BASE + used[id(op)] for op in segment]

    def make_sure_alone(self, start: int, stop: int, given: int) -> None:
        """Make sure that nothing but the tape refers to the ops of an iteration."""
        segment = self.ops[start:stop]
        if references(segment) != self.counts(segment, self.ops[stop : stop + given]):
            raise Unrolled("what an iteration computes is used elsewhere")

    def __call__(self, passage: Passage) -> None:
        """An iteration has ended: drop the one before it."""
        heads, states = passage.heads, passage.states
        begin, middle = heads[-3], heads[-2]
        segment = self.ops[begin:middle]
        following = self.ops[middle : middle + self.given]
        if states[-1] != self.root:
            self.loops.split(passage, len(heads) - 3)
            return
        number = passage.numbers[-3]
        try:
            end, values = self.match(segment, following)
            if end is None:
                del segment
                self.make_sure_alone(begin, middle, self.given)
                self.grow(passage, self.ops[begin:middle], following, number, begin)
                return
        except (Unrolled, WengertError):
            self.loops.split(passage, len(heads) - 3)
            return
        expected = self.expected.get(id(end))
        if expected is None:
            expected = self.expected[id(end)] = self.counts(segment, following)
        if references(segment) != expected:
            self.loops.split(passage, len(heads) - 3)
            return
        for place, x in values:
            passage.columns.setdefault(place, {})[number] = x
        size = middle - begin
        for after, before in zip(following, segment[: self.given], strict=True):
            after.args = before.args  # as if handed on by the iteration that is kept
        del segment
        del self.ops[begin:middle]
        heads[-2] = begin
        heads[-1] -= size
        del heads[-3], states[-2], passage.numbers[-3]
        passage.dropped += 1

    def grow(
        self, passage: Passage, segment: list[Op], following: list[Op], number: int, begin: int
    ) -> None:
        """An iteration that is not like the others is kept, and its like are dropped from now on."""
        self.growths += 1
        if self.growths > MOST_GROWTHS:
            passage.next_look = 0
            raise Unrolled("too many of its iterations are unlike the others")
        group = self.group
        for i, op in enumerate(segment):
            group.index[op] = begin + i
        group.visit([x for x in segment if x.kind != "input"], 0, number, following)
        group.passages[0].numbers[-1] = number + 1
        self.check()


def is_flat(args: tuple[Any, ...]) -> bool:
    """Whether the arguments of an op are ops and plain numbers, not nested."""
    return len(args) > 0 and all(
        isinstance(x, Op) or is_one_of(type(x), (int, float, bool)) for x in args
    )


class Matcher:
    """Writes the function that compares an iteration with the pattern of a group.

    It returns the pattern's end that the iteration reached (None if it is not like any) and what stood in the spots
    that change.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.namespace: dict[str, Any] = {
            "FloatOp": FloatOp, "Guard": Guard, "Op": Op, "alike": alike, "frame": frame, "kind_of": kind_of,
            "operands": operands, "carry": carry, "Carry": Carry, "NO": (None, ()),
            "NESTED": frozenset((tuple, list, dict, slice)),
        }  # fmt: skip

    def function(self) -> Any:
        lines = ["def match(segment, following):", "    values = []", "    count = len(segment)"]
        lines += self.node(self.group.root, 1, 0)
        exec(compile("\n".join(lines), "<matcher>", "exec"), self.namespace)
        return self.namespace.pop("match")

    def name(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def node(self, pattern: Pattern, depth: int, i: int) -> list[str]:
        pad = "    " * depth
        lines: list[str] = []

        def fail_if(test: str) -> None:
            lines.append(f"{pad}if {test}: return NO")

        steps = [*pattern.steps, *([pattern.guard] if pattern.guard is not None else [])]
        fail_if(f"count {'!=' if pattern.guard is None else '<'} {i + len(steps)}")
        if steps:
            names = ", ".join(f"o{i + j}" for j in range(len(steps)))
            lines.append(f"{pad}{names}, = segment[{i}:{i + len(steps)}]")
        for step in steps:
            proto, name = step.op, f"o{i}"
            if proto.fn is carry and not step.spots:
                fail_if(f"{name}.fn is not carry")
            elif type(proto) is FloatOp:
                fail_if(f"type({name}) is not FloatOp or {name}.fn is not {self.name(proto.fn)}")
                lines.append(f"{pad}a0, a1 = {name}.args")
                for j, spot in enumerate(step.spots):
                    self.spot(spot, f"a{j}", (i, j), pad, lines)
            else:
                fail_if(
                    f"type({name}) is not {self.name(type(proto))} or {name}.fn is not {self.name(proto.fn)}"
                )
                if proto.kind == "call":
                    kind = step.kind
                    if isinstance(kind, type):
                        fail_if(f"type({name}.value) is not {self.name(kind)}")
                    else:
                        fail_if(f"kind_of({name}.value) != {self.name(kind)}")
                leaves = [f"a{j}" for j in range(len(step.spots))]
                if not proto.kwargs and is_flat(proto.args):
                    fail_if(f"len({name}.args) != {len(leaves)}")
                    lines.append(f"{pad}{', '.join(leaves)}, = {name}.args")
                else:
                    fail_if(f"frame({name}) != {self.name(frame(proto))}")
                    if leaves:
                        lines.append(f"{pad}{', '.join(leaves)}, = operands({name})")
                for j, spot in enumerate(step.spots):
                    self.spot(spot, leaves[j], (i, j), pad, lines)
            i += 1
        if pattern.guard is not None:
            lines.append(f"{pad}v = o{i - 1}.value")
            for value, branch in pattern.branches:
                plain = value is True or value is False
                test = f"v is {value}" if plain else f"alike(v, {self.name(value)})"
                lines.append(f"{pad}if {test}:")
                lines += self.node(branch, depth + 1, i)
            lines.append(f"{pad}return NO")
            return lines
        if pattern.end is None:
            return [f"{pad}return NO"]
        if pattern.end:
            names = ", ".join(f"f{j}" for j in range(len(pattern.end)))
            lines.append(f"{pad}{names}, = following")
            for j, spot in enumerate(pattern.end):
                lines.append(f"{pad}a0, = f{j}.args")
                self.spot(spot, "a0", (-1, j), pad, lines)
        lines.append(f"{pad}return {self.name(pattern)}, values")
        return lines

    def spot(
        self, spot: Any, name: str, place: tuple[int, int], pad: str, lines: list[str]
    ) -> None:
        if spot.local >= 0:
            lines.append(f"{pad}if {name} is not o{spot.local}: return NO")
        elif spot.changing is not None:
            if place[0] < 0:
                lines.append(f"{pad}return NO")
            lines.append(f"{pad}if isinstance({name}, Op) and {name}.kind != 'input': return NO")
            lines.append(f"{pad}if type({name}) in NESTED: return NO")
            if type(spot.changing) is not Numbers:
                lines.append(f"{pad}values.append(({place}, {name}))")
        else:
            known = next(iter(spot.same.values()))
            text = self.name(known)
            exact = isinstance(known, Op)
            test = f"{name} is not {text}" + ("" if exact else f" and not alike({name}, {text})")
            lines.append(f"{pad}if {test}: return NO")
