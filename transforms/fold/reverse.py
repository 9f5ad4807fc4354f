"""The reverse part: the ops of a way backwards, each with its pullback.

Of a loop the passes come backwards out of its trail, the one that left it first. Cotangents of parameters go from a
pass to the one before it. What each pass does to cotangents is found by writing it: first as if every pass handed on
or added one, and again without those of which that turned out to be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...tracer.fold.region import (
    CONTENT,
    Constant,
    Function,
    Invoke,
    Kind,
    Loop,
    Op,
    Reference,
    Scope,
    Several,
    Written,
    is_memory,
    results_of,
)
from .arrays import (
    fitted,
    is_certain,
    is_elementwise,
    is_narrow,
    is_of_floats,
    part,
    paths,
    rule_of,
    slopes,
)
from .forward import Forward, Trail, goes_out
from .frames import MAYBE, SURE, ZERO, Cotangents, Frame
from .lowered import axes_of
from .memories import Memories
from .plain import is_transparent
from .pulls import ITSELF, Pulls
from .ways import Node, Unemittable
from .writer import Code, Late, Rows, Writer, joined

AtEnd = Callable[["Frame", Node], None]  # writes what stands at an end


class Reverse:
    """Writes the reverse part of what ``forward`` has written."""

    def __init__(self, writer: Writer, forward: Forward) -> None:
        self.writer = writer
        self.forward = forward
        self.cotangents = Cotangents(writer)
        self.memories = Memories(
            writer, self.cotangents, self.value, self.like, self.level, forward.held
        )
        self.pulls = Pulls(writer, self.value, self.like)
        self.lowered = forward.lowered
        self.rows: list[Rows] = []  # those that are being read, the innermost last
        self.holding: dict[Op, bool] = {}  # whether there are memories with derivatives in an op
        self.closed: set[Node] = set()  # ends that are not on the way that the run went

    # ------------------------------------------------------------------------------------------- operands

    def value(self, x: Any) -> str:
        """The source text of an operand's value, which its row has to keep."""
        x = self.writer.resolve(x)
        if isinstance(x, Op) and x.fn == CONTENT:
            self.writer.snapshots.add(x)
        for node in self.writer.ways.home.get(x, ()) if isinstance(x, Op) else ():
            for rows in reversed(self.rows):
                if node in rows.kept:
                    rows.kept[node][x] = None
                    break
        return self.writer.name(x)

    def level(self, x: Op) -> int:
        """How many rows are read, from the outermost one to that which has an operand's value."""
        homes = self.writer.ways.home.get(self.writer.resolve(x), ())
        return max(
            (i for i, rows in enumerate(self.rows, 1) if any(node in rows.kept for node in homes)),
            default=0,
        )

    def like(self, x: Any) -> str:
        """The source text of something that has the shape of an operand."""
        x = self.writer.resolve(x)
        return self.value(x.args[0] if isinstance(x, Op) and x.fn == CONTENT else x)

    # ------------------------------------------------------------------------------------------------ nodes

    def back(self, frame: Frame, node: Node) -> None:
        """The ops of a node backwards."""
        for op in reversed(node.ops):
            if isinstance(op, Loop):
                self.loop(frame, op)
            elif isinstance(op, Scope):
                self.scope(frame, op)
            elif isinstance(op, Invoke):
                self.invoke(frame, op)
            elif not callable(op.fn):
                self.memories.back(frame, op)
            elif isinstance(op, Several):
                self.several(frame, op)
            elif self.cotangents.floats(op):
                whole = any(isinstance(x, Reference) for x in op.args)
                write = (
                    self.call
                    if op in self.writer.called
                    else self.memories.total
                    if whole
                    else self.pull
                )
                self.cotangents.guarded(frame, op, partial(write, op))

    def pull(self, op: Op, frame: Frame) -> None:
        dz = self.cotangents.name(frame, op)
        spare = op in frame.local
        found = self.pulls.write(op, dz, frame.add)
        for x, text in sorted(found, key=lambda pair: pair[1] == dz):  # what hands it on comes last
            self.cotangents.add(frame, x, text, spare=spare and text == dz)
            spare &= text != dz

    def several(self, frame: Frame, op: Several) -> None:
        """A call that has given a tuple, whose cotangent is one of those of its parts."""
        states = [frame.get(x) if self.cotangents.floats(x) else None for x in results_of(op)]
        names = [
            "None" if state is None else self.cotangents.name(frame, x)
            for x, state in zip(results_of(op), states, strict=True)
        ]
        if not any(states):
            return
        text = f"({joined(names)})"
        if SURE not in states:
            asked = " or ".join(f"{x} is not None" for x in names if x != "None")
            text = f"{text} if {asked} else None"
        frame.add(f"{self.cotangents.name(frame, op)} = {text}")
        frame.set(op, SURE if SURE in states else MAYBE)
        self.cotangents.guarded(frame, op, partial(self.call, op))

    def call(self, op: Op, frame: Frame) -> None:
        """The pullback that the forward part has kept."""
        active = [*map(self.writer.active, op.args)]
        if not any(active):
            return
        rule = rule_of(op, active)
        if is_elementwise(op, rule):
            self.elementwise(op, rule, frame)
            return
        form = self.lowered.form(op, rule, active)
        if form is not None:
            for x in self.pulls.filled(form, op, self.cotangents.name(frame, op), frame.add):
                self.cotangents.take(frame, op.args[x.position], x)
            return
        found = []
        for x, path, here in zip(op.args, paths(op, rule), active, strict=True):
            if here and path is not None:
                found.append((x, path))
            elif here and (
                isinstance(x, Reference)
                or (self.cotangents.floats(x) and is_of_floats(self.writer.resolve(x).type))
            ):
                raise Unemittable(f"a derivative by an option of {op.fn.__name__}")
        self.writer.opaque |= not is_transparent(op.fn)
        given = self.writer.fresh("q")
        back, dz = self.value(self.writer.back(op)), self.cotangents.name(frame, op)
        if len(found) == 1 and len(found[0][1]) == 1:
            ((x, path),) = found
            frame.add(f"{given} = {back}({dz})[{path[0]}]")
            self.given(frame, op, rule, x, path, given)
            return
        frame.add(f"{given} = {back}({dz})")
        for x, path in found:
            name = self.writer.fresh("q")
            taken = f"{self.writer.text.named(part, 'part')}({given}, {path})"
            frame.add(f"{name} = {f'{given}[{path[0]}]' if len(path) == 1 else taken}")
            self.given(frame, op, rule, x, path, name)

    def elementwise(self, op: Op, rule: Any, frame: Frame) -> None:
        """What the partial derivatives of a call make of its cotangent."""
        named = self.writer.text.named
        dz = self.number(op, rule, frame) or self.cotangents.name(frame, op)
        known: dict[tuple[Op, str], str] = {}  # what an operand gets that stands there twice
        for i, (x, slope) in enumerate(zip(op.args, rule.partials, strict=True)):
            if self.writer.active(x) and slope is not None:
                form = self.lowered.form(op, rule, [k == i for k in range(len(op.args))])
                if form is not None:
                    (found,) = self.pulls.filled(form, op, dz, frame.add)
                    key = (self.writer.resolve(x), found.text)
                    if key in known:
                        self.cotangents.add(frame, x, known[key])
                        continue
                    name = known[key] = self.writer.fresh("q")
                    frame.add(f"{name} = {found.text}")
                    arrays = {y for y in map(self.writer.resolve, op.args) if axes_of(y)}
                    if axes_of(self.writer.resolve(x)) and len(arrays) > 1:
                        like = self.like(x)
                        whole = f"{named(fitted, 'unbroadcast')}({name}, {like})"
                        frame.add(f"if {name}.shape != {like}.shape: {name} = {whole}")
                    self.cotangents.add(frame, x, name, SURE, spare=True, fresh=found.fresh)
                    continue
                name = self.writer.fresh("q")
                frame.add(f"{name} = {slopes(op, rule, i, dz, self.value, self.like, named)}")
                spread = axes_of(op) > axes_of(self.writer.resolve(x)) > 0  # which is summed up
                self.given(frame, op, rule, x, (i,), name, spread)

    def number(self, op: Op, rule: Any, frame: Frame) -> str | None:
        """The number that is an op's cotangent all over, where what its operands get takes its shape from others."""
        made = frame.spread.get(op)
        if made is None:
            return None
        args = [*map(self.writer.resolve, op.args)]
        whole = [i for i, x in enumerate(args) if axes_of(x)]
        if len({args[i] for i in whole}) != 1:
            return None
        for i, (x, slope) in enumerate(zip(args, rule.partials, strict=True)):
            if self.writer.active(x) and slope is not None:
                form = self.lowered.form(op, rule, [k == i for k in range(len(args))])
                if form is None or i not in whole or not {ITSELF, *whole} & {*form.reads}:
                    return None
        del frame.spread[op]
        if made.number.isidentifier():
            return made.number
        name = self.writer.fresh("d")
        frame.add(f"{name} = {made.number}")
        return name

    def given(
        self, frame: Frame, op: Op, rule: Any, x: Any, path: Any, name: str, fresh: bool = False
    ) -> None:
        """An operand gets the cotangent that lies in the variable ``name``."""
        if isinstance(x, Reference):
            self.memories.each(x, name, frame)
            return
        sure = is_certain(rule, path) and is_of_floats(self.writer.resolve(x).type)
        self.cotangents.add(frame, x, name, SURE if sure else MAYBE, spare=True, fresh=fresh)

    def tree(self, frame: Frame, node: Node, rows: Rows, row: str, at_end: AtEnd) -> None:
        """A node backwards: what is particular to each way first, then what they share."""
        if node.end is not None:
            at_end(frame, node)
        else:
            self.branch(frame, [*node.kids.values()], rows, row, at_end)
        self.back(frame, node)

    def branch(
        self, frame: Frame, nodes: Sequence[Node], rows: Rows, row: str, at_end: AtEnd
    ) -> None:
        """The ways that a pass can have gone, told apart by the number in its row."""
        found: list[tuple[list[Node], Frame]] = []
        for node in nodes:
            leaves = [x for x in node.leaves() if x in rows.number and x not in self.closed]
            if leaves:
                inner = Frame(frame, local_ops(node.ops))
                self.tree(inner, node, rows, row, at_end)
                found.append((leaves, inner))
        for x in {x: None for _, inner in found for x in inner.touched}:
            states = [inner.get(x) for _, inner in found]
            if any(states):
                for _, inner in found:
                    if inner.get(x) is None:
                        idle = frame.get(x) is None
                        inner.add(f"{self.cotangents.name(frame, x)} = None", idle=idle)
            same = states[0] if len({*states}) == 1 else MAYBE
            frame.set(x, ZERO if ZERO in states else same)
        if all(not inner.code.lines for _, inner in found):
            return
        word = "if"
        for i, (leaves, inner) in enumerate(found):
            if len(found) == 1:
                frame.extend(inner.code)
                continue
            last = i == len(found) - 1
            frame.add("else:" if last else self.test(word, rows, row, leaves), idle=True)
            frame.extend(inner.code, 1)
            word = "elif"

    def test(self, word: str, rows: Rows, row: str, leaves: list[Node]) -> Late:
        numbers = {rows.number[leaf] for leaf in leaves}
        test = f"== {min(numbers)}" if len(numbers) == 1 else f"in {numbers}"
        return lambda: f"{word} {row if rows.bare else f'{row}[0]'} {test}:"

    # -------------------------------------------------------------------------------------- loops and scopes

    def outs(
        self, frame: Frame, targets: Sequence[Op], sources: Sequence[Any], reset: Iterable[Op] = ()
    ) -> None:
        """The cotangents of ``targets`` go to the operands that they were given; those of ``reset`` begin anew."""
        reset = [*reset]
        spare = not reset  # results, which are asked for once
        given: list[tuple[Any, str, str]] = []
        for target, source in zip(targets, sources, strict=False):
            state = frame.get(target) if self.writer.resolve(target) is target else None
            if (
                state is not None
                and self.cotangents.floats(target)
                and self.cotangents.floats(source)
            ):
                given.append((source, self.cotangents.name(frame, target), state))
        names = [name for _, name, _ in given]
        if {self.cotangents.name(frame, self.writer.resolve(x)) for x, _, _ in given} & {
            *names[1:]
        }:
            names = [self.writer.fresh("i") for _ in given]
            left, right = ", ".join(names), ", ".join(name for _, name, _ in given)
            frame.add(f"{left} = {right}")
            spare = True
        for x in reset:
            frame.set(x, None)
        for (source, _, state), name in zip(given, names, strict=True):
            self.cotangents.add(frame, source, name, state, spare)

    def unpack(self, frame: Frame, rows: Rows, leaf: Node, row: str) -> None:
        number = self.writer.fresh("n")
        frame.add(lambda: self.writer.unpacked(rows, leaf, row, number), idle=True)
        self.memories.make(frame, [op for node in leaf.path for op in node.ops])

    def scope(self, frame: Frame, scope: Scope) -> None:
        """A scope: its row says which way the pass went."""
        if not self.is_reached(frame, scope):
            return
        rows = self.forward.rows[scope]
        row = self.writer.fresh("row")
        inner = Frame(frame, ())

        def at_end(frame: Frame, leaf: Node) -> None:
            assert leaf.end is not None
            self.unpack(frame, rows, leaf, row)
            self.outs(frame, scope.results.get(leaf.end.state, []), leaf.end.outs)

        self.rows.append(rows)
        self.branch(inner, rows.roots, rows, row, at_end)
        self.rows.pop()
        self.settle(frame, inner)
        if inner.code.busy:
            rows.wanted = True
            trail = self.value(scope)
            frame.add(lambda: "" if rows.empty else f"{self.writer.target(rows, row)} = {trail}")
            frame.extend(inner.code)

    def is_reached(self, frame: Frame, op: Loop | Scope) -> bool:
        """Whether a cotangent comes into an op: of a result, or out of a memory."""
        if any(frame.get(x) for x in results_of(op) if self.cotangents.floats(x)):
            return True
        if op not in self.holding:
            active = self.writer.active
            self.holding[op] = any(
                active(y) and not self.cotangents.floats(y)
                for region in self.writer.aliases.inside(op)
                for block in region.root.tree()
                for x in (*region.parameters, *local_ops(block.ops))
                for y in (x, *x.args)
            )
        return self.holding[op]

    def settle(self, frame: Frame, inner: Frame) -> None:
        for x in inner.touched:
            frame.set(x, inner.get(x))

    def loop(self, frame: Frame, loop: Loop) -> None:
        """A loop: the pass that left it, and then the others, from the last one to the first."""
        trail = self.forward.trails[loop]
        if not trail.turns or not self.is_reached(frame, loop):
            return
        while True:
            attempt = Frame(frame, self.parameters(trail))
            unsure = self.attempt(attempt, loop, trail)
            if unsure <= loop.unsure:
                break
            loop.unsure |= unsure
        self.settle(frame, attempt)
        if attempt.code.busy:
            trail.last.wanted = True
            self.value(loop)
            frame.extend(attempt.code)

    def parameters(self, trail: Trail) -> list[Op]:
        """The parameters that have cotangents, of all bodies."""
        return [
            p
            for turn in trail.turns
            for p in turn.region.parameters
            if self.cotangents.floats(p) and self.writer.resolve(p) is p
        ]

    def attempt(self, frame: Frame, loop: Loop, trail: Trail) -> set[Op]:
        """Write a loop; says what was found to be without a cotangent after some pass."""
        row, name = self.writer.fresh("row"), partial(self.writer.name, loop)
        parameters = self.parameters(trail)
        unsure: set[Op] = set()

        def at_end(frame: Frame, leaf: Node) -> None:
            end = leaf.end
            assert end is not None
            rows = trail.rows(leaf)
            self.unpack(frame, rows, leaf, row)
            targets: list[Op] = loop.results.get(end.state, [])
            if end.kind == "next":
                body = loop.bodies.get(end.state)
                targets = [] if body is None else body.parameters
            home = [x for x in trail.home[leaf].region.parameters if x in parameters]
            self.outs(frame, targets, end.outs, home)

        if trail.apart and trail.last.leaves:
            rows = trail.last
            frame.add(
                lambda: "" if rows.empty else f"{self.writer.target(rows, row)} = {name()}[-1]",
                idle=True,
            )
            self.rows.append(rows)
            self.branch(frame, rows.roots, rows, row, at_end)
            self.rows.pop()
        if trail.next.leaves:
            unsure = self.passes(frame, loop, trail, row, parameters, at_end)
        self.outs(frame, trail.turns[0].region.parameters, loop.starts)
        return unsure

    def passes(
        self,
        frame: Frame,
        loop: Loop,
        trail: Trail,
        row: str,
        parameters: list[Op],
        at_end: AtEnd,
    ) -> set[Op]:
        """The passes that lead to a next one, or all."""
        rows, name, known = trail.next, partial(self.writer.name, loop), loop.unsure
        before = {p: frame.get(p) for p in parameters}
        if trail.apart:
            known.update(p for p in parameters if before[p] != SURE)
        if 2 * len(known.intersection(parameters)) >= len(parameters):
            known.update(
                parameters
            )  # mostly so; to find out which are not would take another attempt
        inner = Frame(frame, (), known, len(self.rows))
        for p in parameters:
            inner.states[p] = MAYBE if p in known else SURE
        for x in results_of(loop):  # which no pass adds to
            inner.states[x] = frame.get(x)
        self.rows.append(rows)
        self.branch(inner, rows.roots, rows, row, at_end)
        self.rows.pop()
        unsure = set()
        for p in parameters:
            if inner.get(p) is None:
                inner.add(f"{self.cotangents.name(frame, p)} = None", idle=before[p] is None)
            if inner.get(p) != SURE:
                unsure.add(p)
        if not inner.code.busy:
            return unsure
        rows.wanted = True
        for p in parameters:
            if before[p] is None and p in known:
                frame.add(f"{self.cotangents.name(frame, p)} = None")
        none: list[str] = []  # the variables that say -0.0 for no cotangent, if there was no pass
        for x in inner.touched:
            have, name_of_x = frame.get(x), self.cotangents.name(frame, x)
            if x in parameters:
                frame.set(x, MAYBE if x in known else SURE)
                continue
            now = inner.get(x)
            if have is None:
                array = type(x.type) is Kind
                frame.add(f"{name_of_x} = {'None' if x in known or array else '-0.0'}")
                if now == ZERO:
                    unsure.add(x)
                elif trail.apart and x not in known and not array:
                    none.append(name_of_x)
            every = now == SURE and (have == SURE or x not in known) and not trail.apart
            frame.set(x, SURE if every or have == SURE else have or MAYBE)

        def others() -> str:
            """The rows but that of the pass that left the loop."""
            return f"{name()}[-2::-1]" if trail.is_last_kept else f"reversed({name()})"

        frame.add(lambda: f"for {self.writer.target(rows, row)} in {others()}:")
        frame.extend(inner.code, 1)
        if none:
            idle = f"{' = '.join(none)} = None"
            frame.add(
                lambda: (
                    f"if {f'len({name()}) < 2' if trail.is_last_kept else f'not {name()}'}: {idle}"
                )
            )
        return unsure

    # ----------------------------------------------------------------------------------------- invocations

    def invoke(self, frame: Frame, op: Invoke) -> None:
        """A call of the function's reverse half, with the cotangents of the results."""
        function = op.function
        sure = any(frame.get(x) for x in results_of(op) if self.cotangents.floats(x))
        if not sure and not any(is_memory(x.type) and self.writer.active(x) for x in memories(op)):
            return
        self.forward.rows[function].wanted = True
        wide = max((len(end.outs) for end in function.root.ends()), default=0)
        given = [self.result(frame, op, i) for i in range(wide)]
        call = f"{self.forward.halves[function]}({', '.join([self.value(op), *given])})"
        taking = [
            (p, x)
            for p, x in zip(function.parameters, op.args, strict=False)
            if self.cotangents.floats(p)
        ]
        names = [self.writer.fresh("q") for _ in taking]
        frame.add(f"{', '.join(names)} = {call}" if names else call)
        for name, (_, x) in zip(names, taking, strict=True):
            self.cotangents.add(frame, x, name, MAYBE, spare=True)

    def result(self, frame: Frame, op: Invoke, i: int) -> str:
        """The cotangent of the result at a place: of those of several states at most one has any."""
        options = [row[i] for row in op.results.values() if i < len(row)]
        options = [self.writer.resolve(x) for x in options]
        names = [
            self.cotangents.name(frame, x)
            for x in options
            if self.cotangents.floats(x) and frame.get(x)
        ]
        if not names:
            return "None"
        return chain(names)

    def define(self, function: Function) -> Code:
        """The reverse half: it returns what the parameters get."""
        rows = self.forward.rows[function]
        wide = max((len(end.outs) for end in function.root.ends()), default=0)
        given = [self.writer.fresh("d") for _ in range(wide)]
        row, trail = self.writer.fresh("row"), self.writer.fresh("row")
        parameters = [p for p in function.parameters if self.cotangents.floats(p)]
        frame = Frame(None, ())

        def at_end(frame: Frame, leaf: Node) -> None:
            assert leaf.end is not None
            self.unpack(frame, rows, leaf, row)
            for name, x in zip(given, leaf.end.outs, strict=False):
                self.cotangents.add(frame, x, name, MAYBE, spare=True)

        self.rows.append(rows)
        self.branch(frame, rows.roots, rows, row, at_end)
        self.rows.pop()
        code = Code()
        code.add(f"def {self.forward.halves[function]}({', '.join([trail, *given])}):")
        code.add(lambda: "" if rows.empty else f"{self.writer.target(rows, row)} = {trail}", 1)
        code.extend(frame.code, 1)
        outs = [self.cotangents.name(frame, p) if frame.get(p) else "None" for p in parameters]
        code.add(f"return {', '.join(outs) or None}", 1)
        return code

    # ------------------------------------------------------------------------------------------------ whole

    def sweep(self, leaf: Node, seeds: Sequence[tuple[Any, str]] | None = None) -> Frame:
        """The reverse part of one way to the end, with these cotangents of results, or 1 of the only one."""
        assert leaf.end is not None
        path = leaf.path
        frame = Frame(None, local_ops(op for node in path for op in node.ops))
        self.closed = {x for a, b in pairwise(path) for x in self.elsewhere(a, b)}
        self.memories.make(frame, [op for node in path for op in node.ops])
        if seeds is None:
            result = self.writer.resolve(leaf.end.outs[0])
            narrow = isinstance(result, Op) and is_narrow(result)
            one = self.writer.name(Constant(result.type(1))) if narrow else "1.0"
            self.cotangents.add(frame, result, one)
        for x, text in seeds or ():
            self.seed(frame, self.writer.resolve(x), text)
        for node in reversed(path):
            self.back(frame, node)
        self.closed = set()
        return frame

    def seed(self, frame: Frame, x: Any, text: str) -> None:
        """One of several results has the cotangent in the variable ``text``."""
        if not isinstance(x, Op) or not self.writer.active(x):
            return
        if type(x.type) is Written:
            shadow = self.memories.of(frame, x)
            frame.add(f"{self.writer.text.named(np.add, 'add')}({shadow}, {text}, {shadow})")
        elif is_memory(x.type):
            self.memories.each(x, text, frame)
        else:
            self.cotangents.add(frame, x, text)

    def elsewhere(self, node: Node, kid: Node) -> list[Node]:
        """The ends of what a node decides on that do not lead to this outcome."""
        subject = node.subject
        if isinstance(subject, Loop):
            trail = self.forward.trails[subject]
            found = [*trail.next.leaves, *trail.last.leaves]
        elif isinstance(subject, Scope):
            found = self.forward.rows[subject].leaves
        else:
            return []
        state = next(outcome for outcome, x in node.kids.items() if x is kid)
        return [x for x in found if goes_out(x) and x.end is not None and x.end.state != state]


def chain(names: Sequence[str]) -> str:
    """The first of some cotangents that is there."""
    *others, last = names
    return "".join(f"{name} if {name} is not None else " for name in others) + last


def local_ops(ops: Iterable[Op]) -> list[Op]:
    """The ops and their results."""
    return [x for op in ops for x in (op, *results_of(op))]


def memories(op: Invoke) -> list[Op]:
    """The memories that a function is given, or hands back."""
    return [x for x in (*op.function.parameters, *results_of(op)) if is_memory(x.type)]
