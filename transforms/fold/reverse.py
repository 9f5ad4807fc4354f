"""The reverse part: the ops of a way backwards, each with its pullback.

Words
-----
frame     what is known of cotangents while code is written: of each op whether there is none (None), there may be one
          (MAYBE: the variable holds it or None), or there is one (SURE). A branch and a pass have frames of their own.
          ZERO is for what every pass of a loop adds to: the variable holds -0.0 before the first one.
shadow    of a memory: a list or dict like it, with the cotangents of what is in it.
carried   an op outside a pass whose cotangent the passes add to, or a parameter, whose cotangent one hands to the next.

There is no cotangent where none flows: a zero in its place would make NaN of an infinite slope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from ...tracer.fold.region import (
    APPEND,
    BIRTHS,
    DICT,
    LENGTH,
    LIST,
    LOAD,
    OBJECT,
    POP,
    STORE,
    Function,
    Invoke,
    Loop,
    Op,
    Scope,
    is_memory,
    results_of,
)
from .forward import Forward, Trail, goes_out
from .pulls import Pulls
from .ways import Node, Unemittable
from .writer import Code, Late, Rows, Writer

MAYBE, SURE, ZERO = "maybe", "sure", "zero"
AtEnd = Callable[["Frame", Node], None]  # writes what stands at an end


class Shadows(dict[int, Any]):
    """The shadows of memories that have several names, by identity."""

    def of(self, memory: Any) -> Any:
        found = self.get(id(memory))
        if found is None:
            found = self[id(memory)] = shadow_of(memory)
        return found


def shadow_of(memory: Any) -> Any:
    return [None] * len(memory) if type(memory) is list else dict.fromkeys(memory)


class Frame:
    """The cotangents of ``local`` ops begin here; those of the others are the parent's.

    ``unsure`` is there in the frame of a loop's passes: the ops that not every pass adds to.
    """

    def __init__(
        self, parent: Frame | None, local: Iterable[Op], unsure: set[Op] | None = None
    ) -> None:
        self.parent = parent
        self.local = set(local)
        self.unsure = unsure
        self.states: dict[Op, str | None] = {}
        self.names: dict[Op, str] = {}  # of cotangents that lie in variables that nobody else needs
        self.touched: dict[Op, None] = {}
        self.shadows: dict[Op, str] = {}  # the variables of shadows that were asked for by identity
        self.code = Code()
        self.guard: Guard | None = None  # what the last lines are

    def get(self, x: Op) -> str | None:
        if x in self.states:
            return self.states[x]
        if x in self.local or self.parent is None:
            return None
        state = self.parent.get(x)
        if self.unsure is not None and state is None:
            return MAYBE if x in self.unsure else ZERO
        return state

    def set(self, x: Op, state: str | None) -> None:
        self.states[x] = state
        if x not in self.local:
            self.touched[x] = None

    def name(self, x: Op) -> str | None:
        """The variable of a local op's cotangent, where that is not its own."""
        frame: Frame | None = self
        while frame is not None:
            if x in frame.names or x in frame.local:
                return frame.names.get(x)
            frame = frame.parent
        return None

    def shadow(self, memory: Op) -> str | None:
        """The variable of a shadow, where it was asked for before."""
        frame: Frame | None = self
        while frame is not None:
            if memory in frame.shadows:
                return frame.shadows[memory]
            frame = frame.parent
        return None

    def add(self, line: str | Late, idle: bool = False) -> None:
        self.guard = None
        self.code.add(line, idle=idle)

    def extend(self, other: Code, depth: int = 0) -> None:
        self.guard = None
        self.code.extend(other, depth)


class Guard:
    """Lines under an ``if`` that asks for a cotangent: ``fresh`` are those that are there if and only if that is.

    ``at`` is where lines before the ``if`` go.
    """

    def __init__(self, frame: Frame, x: Op, at: int) -> None:
        self.inner = Frame(frame, ())
        self.inner.states[x] = SURE
        self.fresh: set[Op] = set()
        self.at = at


class Reverse:
    """Writes the reverse part of what ``forward`` has written."""

    def __init__(self, writer: Writer, forward: Forward) -> None:
        self.writer = writer
        self.forward = forward
        self.pulls = Pulls(writer, self.value)
        self.rows: list[Rows] = []  # those that are being read, the innermost last
        self.unsure: dict[Loop, set[Op]] = {}  # what has no cotangent after some pass
        self.closed: set[Node] = set()  # ends that are not on the way that the run went
        self.shadow = ""  # the function that gives shadows by identity, once it is used

    # ------------------------------------------------------------------------------------------- operands

    def value(self, x: Any) -> str:
        """The source text of an operand's value, which its row has to keep."""
        x = self.writer.resolve(x)
        for node in self.writer.ways.home.get(x, ()) if isinstance(x, Op) else ():
            for rows in reversed(self.rows):
                if node in rows.kept:
                    rows.kept[node][x] = None
                    break
        return self.writer.name(x)

    def floats(self, x: Any) -> bool:
        """Whether an operand is a number with a derivative."""
        x = self.writer.resolve(x)
        return self.writer.active(x) and not is_memory(x.type)

    def shadow_of(self, frame: Frame, memory: Any) -> str:
        """The variable of a memory's shadow."""
        memory = self.writer.resolve(memory)
        if memory in self.writer.active.own:
            if memory not in self.writer.shadows:
                self.writer.shadows[memory] = self.writer.fresh("s")
            return self.writer.shadows[memory]
        if not self.shadow:
            self.shadow = self.writer.text.fresh("shadow")
        known = frame.shadow(memory)
        if known is None:
            known = frame.shadows[memory] = self.writer.fresh("s")
            frame.add(f"{known} = {self.shadow}({self.value(memory)})")
        return known

    def make_shadows(self, frame: Frame, ops: Iterable[Op]) -> None:
        """The shadows of births that are known by one name: a variable for each."""
        for op in ops:
            if op in self.writer.active.own:
                made = f"[None] * len({self.value(op)})"
                if op.fn in (DICT, OBJECT):
                    made = f"dict.fromkeys({self.value(op)})"
                frame.add(f"{self.shadow_of(frame, op)} = {made}")

    # ---------------------------------------------------------------------------------------- accumulation

    def cotangent(self, frame: Frame, x: Op) -> str:
        """The variable of an op's cotangent."""
        return frame.name(x) or self.writer.cotangent(x)

    def accumulate(
        self, frame: Frame, x: Any, text: str, state: str = SURE, spare: bool = False
    ) -> None:
        """Add a cotangent to that of an op; ``spare`` says that ``text`` is a variable that nobody else needs."""
        x = self.writer.resolve(x)
        if not self.floats(x):
            return
        have = frame.get(x)
        if have is None:
            if spare and x in frame.local and x not in frame.states:
                frame.names[x] = text
            elif self.cotangent(frame, x) != text:
                frame.add(f"{self.cotangent(frame, x)} = {text}")
            frame.set(x, state)
            return
        name = self.cotangent(frame, x)
        if state == SURE and have != MAYBE:
            frame.add(f"{name} = {name} + {text if text.isidentifier() else f'({text})'}")
            frame.set(x, SURE)
            return
        if not text.isidentifier():
            made = self.writer.fresh("q")
            frame.add(f"{made} = {text}")
            text = made
        total = f"{name} + {text}"
        if have == MAYBE:
            total = f"{text} if {name} is None else {total}"
        frame.add(f"{f'if {text} is not None: ' if state == MAYBE else ''}{name} = {total}")
        frame.set(x, SURE if state == SURE else have)

    def guarded(self, frame: Frame, x: Op, write: Callable[[Frame], None]) -> None:
        """Write what hands on the cotangent of an op, for where there is one."""
        state = frame.get(x)
        if state is None:
            return
        if state == SURE:
            write(frame)
            return
        guard = frame.guard
        if guard is None or x not in guard.fresh:
            guard = Guard(frame, x, len(frame.code.lines))
        inner = guard.inner
        begun, inner.code = inner.code.lines, Code()
        write(inner)
        if not inner.code.lines:
            return
        new = [y for y in inner.touched if frame.get(y) is None]
        for y in new:
            frame.code.lines.insert(guard.at, (0, f"{self.cotangent(frame, y)} = None"))
            guard.at += 1
        if not begun:
            frame.code.add(f"if {self.cotangent(frame, x)} is not None:")
        frame.extend(inner.code, 1)
        guard.fresh.update(y for y in new if inner.get(y) == SURE)
        for y in inner.touched:
            frame.set(y, MAYBE if y in new else frame.get(y))
        frame.guard = guard

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
                self.memory(frame, op)
            elif self.floats(op):
                self.guarded(frame, op, partial(self.pull, op))

    def pull(self, op: Op, frame: Frame) -> None:
        dz = self.cotangent(frame, op)
        spare = op in frame.local
        found = self.pulls.write(op, dz, frame.add)
        for x, text in sorted(found, key=lambda pair: pair[1] == dz):  # what hands it on comes last
            self.accumulate(frame, x, text, spare=spare and text == dz)
            spare &= text != dz

    def memory(self, frame: Frame, op: Op) -> None:
        """An op that makes, reads or changes a memory."""
        active, fn = self.writer.active, op.fn
        if fn in BIRTHS:
            if active(op):
                self.birth(frame, op)
        elif fn in (STORE, APPEND) and active(op.args[0]):
            shadow = self.shadow_of(frame, op.args[0])
            taken = f"{shadow}.pop()"
            if fn == STORE:
                taken = f"{shadow}[{self.value(op.args[1])}]"
            if self.floats(op.args[-1]):
                self.accumulate(frame, op.args[-1], self.taken(frame, taken), MAYBE, spare=True)
            elif fn == APPEND:
                frame.add(taken)
            if fn == STORE:
                frame.add(f"{taken} = None")
        elif fn == LOAD and self.floats(op):
            self.guarded(frame, op, partial(self.load, op))
        elif fn == POP and active(op.args[0]):
            state = frame.get(op) if self.floats(op) else None
            given = "None" if state is None else self.cotangent(frame, op)
            frame.add(f"{self.shadow_of(frame, op.args[0])}.append({given})")
        elif fn not in (STORE, APPEND, LOAD, POP, LENGTH) and self.floats(op):
            if fn not in ("input", "parameter", "result", "item"):
                raise Unemittable(f"an op that has no reverse: {fn}")

    def taken(self, frame: Frame, text: str) -> str:
        name = self.writer.fresh("q")
        frame.add(f"{name} = {text}")
        return name

    def load(self, op: Op, frame: Frame) -> None:
        cell = f"{self.shadow_of(frame, op.args[0])}[{self.value(op.args[1])}]"
        have, new = self.taken(frame, cell), self.cotangent(frame, op)
        frame.add(f"{cell} = {new} if {have} is None else {have} + {new}")

    def birth(self, frame: Frame, op: Op) -> None:
        """What a memory was made of gets the cotangents that are left in its shadow."""
        items: list[tuple[str, Any]] = []
        if op.fn == LIST:
            items = [(str(i), x) for i, x in enumerate(op.args)]
        elif op.fn in (DICT, OBJECT):
            given = op.args if op.fn == DICT else op.args[1:]
            items = [
                (self.value(k), x)
                for k, x in zip(given[::2], given[1::2], strict=True)
                if self.floats(x)
            ]
        elif self.writer.active(op.args[0]):
            self.repeat(frame, op)
        for key, x in items:
            if self.floats(x):
                self.accumulate(
                    frame, x, self.taken(frame, f"{self.shadow_of(frame, op)}[{key}]"), MAYBE, True
                )

    def repeat(self, frame: Frame, op: Op) -> None:
        """The cotangents of a repeated list go to the list that was repeated."""
        to, i, d, k = (self.writer.fresh(x) for x in "sidk")
        frame.add(f"{to} = {self.shadow_of(frame, op.args[0])}")
        frame.add(f"for {i}, {d} in enumerate({self.shadow_of(frame, op)}):")
        frame.code.add(f"if {d} is not None:", 1)
        frame.code.add(f"{k} = {i} % len({to})", 2)
        frame.code.add(f"{to}[{k}] = {d} if {to}[{k}] is None else {to}[{k}] + {d}", 2)

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
                        inner.add(f"{self.cotangent(frame, x)} = None", idle=idle)
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
            if state is not None and self.floats(target) and self.floats(source):
                given.append((source, self.cotangent(frame, target), state))
        names = [name for _, name, _ in given]
        if {self.cotangent(frame, self.writer.resolve(x)) for x, _, _ in given} & {*names[1:]}:
            names = [self.writer.fresh("i") for _ in given]
            left, right = ", ".join(names), ", ".join(name for _, name, _ in given)
            frame.add(f"{left} = {right}")
            spare = True
        for x in reset:
            frame.set(x, None)
        for (source, _, state), name in zip(given, names, strict=True):
            self.accumulate(frame, source, name, state, spare)

    def unpack(self, frame: Frame, rows: Rows, leaf: Node, row: str) -> None:
        number = self.writer.fresh("n")
        frame.add(lambda: self.writer.unpacked(rows, leaf, row, number), idle=True)
        self.make_shadows(frame, [op for node in leaf.path for op in node.ops])

    def scope(self, frame: Frame, scope: Scope) -> None:
        """A scope: its row says which way the pass went."""
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

    def settle(self, frame: Frame, inner: Frame) -> None:
        for x in inner.touched:
            frame.set(x, inner.get(x))

    def loop(self, frame: Frame, loop: Loop) -> None:
        """A loop: the pass that left it, and then the others, from the last one to the first."""
        trail = self.forward.trails[loop]
        if not trail.turns:
            return
        self.unsure.setdefault(loop, set())
        while True:
            attempt = Frame(frame, self.parameters(trail))
            unsure = self.attempt(attempt, loop, trail)
            if unsure <= self.unsure[loop]:
                break
            self.unsure[loop] |= unsure
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
            if self.floats(p) and self.writer.resolve(p) is p
        ]

    def attempt(self, frame: Frame, loop: Loop, trail: Trail) -> set[Op]:
        """Write a loop; says what was found to be without a cotangent after some pass."""
        row, name = self.writer.fresh("row"), self.writer.name(loop)
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
                lambda: "" if rows.empty else f"{self.writer.target(rows, row)} = {name}.pop()",
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
        rows, name, known = trail.next, self.writer.name(loop), self.unsure[loop]
        inner = Frame(frame, (), known)
        before = {p: frame.get(p) for p in parameters}
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
                inner.add(f"{self.cotangent(frame, p)} = None", idle=before[p] is None)
            here = inner.get(p) == SURE
            if not here or (trail.apart and before[p] != SURE):
                unsure.add(p)
        if not inner.code.busy:
            return unsure
        rows.wanted = True
        none: list[str] = []  # the variables that say -0.0 for no cotangent, if there was no pass
        for x in inner.touched:
            have, name_of_x = frame.get(x), self.cotangent(frame, x)
            if x in parameters:
                if have is None and x in known:
                    frame.add(f"{name_of_x} = None")
                frame.set(x, MAYBE if x in known else SURE)
                continue
            now = inner.get(x)
            if have is None:
                frame.add(f"{name_of_x} = {'None' if x in known else '-0.0'}")
                if now == ZERO:
                    unsure.add(x)
                elif trail.apart and x not in known:
                    none.append(name_of_x)
            every = now == SURE and (have == SURE or x not in known) and not trail.apart
            frame.set(x, SURE if every or have == SURE else have or MAYBE)
        frame.add(lambda: f"for {self.writer.target(rows, row)} in reversed({name}):")
        frame.extend(inner.code, 1)
        if none:
            frame.add(f"if not {name}: {' = '.join(none)} = None")
        return unsure

    # ----------------------------------------------------------------------------------------- invocations

    def invoke(self, frame: Frame, op: Invoke) -> None:
        """A call of the function's reverse half, with the cotangents of the results."""
        function = op.function
        sure = any(frame.get(x) for x in results_of(op) if self.floats(x))
        if not sure and not any(is_memory(x.type) and self.writer.active(x) for x in memories(op)):
            return
        self.forward.rows[function].wanted = True
        wide = max((len(end.outs) for end in function.root.ends()), default=0)
        given = [self.result(frame, op, i) for i in range(wide)]
        call = f"{self.forward.halves[function]}({', '.join([self.value(op), *given])})"
        taking = [
            (p, x) for p, x in zip(function.parameters, op.args, strict=False) if self.floats(p)
        ]
        names = [self.writer.fresh("q") for _ in taking]
        frame.add(f"{', '.join(names)} = {call}" if names else call)
        for name, (_, x) in zip(names, taking, strict=True):
            self.accumulate(frame, x, name, MAYBE, spare=True)

    def result(self, frame: Frame, op: Invoke, i: int) -> str:
        """The cotangent of the result at a place: of those of several states at most one has any."""
        options = [row[i] for row in op.results.values() if i < len(row)]
        options = [self.writer.resolve(x) for x in options]
        names = [self.cotangent(frame, x) for x in options if self.floats(x) and frame.get(x)]
        if not names:
            return "None"
        return chain(names)

    def define(self, function: Function) -> Code:
        """The reverse half: it returns what the parameters get."""
        rows = self.forward.rows[function]
        wide = max((len(end.outs) for end in function.root.ends()), default=0)
        given = [self.writer.fresh("d") for _ in range(wide)]
        row, trail = self.writer.fresh("row"), self.writer.fresh("row")
        parameters = [p for p in function.parameters if self.floats(p)]
        frame = Frame(None, ())

        def at_end(frame: Frame, leaf: Node) -> None:
            assert leaf.end is not None
            self.unpack(frame, rows, leaf, row)
            for name, x in zip(given, leaf.end.outs, strict=False):
                self.accumulate(frame, x, name, MAYBE, spare=True)

        self.rows.append(rows)
        self.branch(frame, rows.roots, rows, row, at_end)
        self.rows.pop()
        code = Code()
        code.add(f"def {self.forward.halves[function]}({', '.join([trail, *given])}):")
        code.add(lambda: "" if rows.empty else f"{self.writer.target(rows, row)} = {trail}", 1)
        code.extend(frame.code, 1)
        outs = [self.cotangent(frame, p) if frame.get(p) else "None" for p in parameters]
        code.add(f"return {', '.join(outs) or None}", 1)
        return code

    # ------------------------------------------------------------------------------------------------ whole

    def sweep(self, leaf: Node) -> Frame:
        """The reverse part of one way to the end, with the cotangent 1 of the result."""
        assert leaf.end is not None
        path = leaf.path
        frame = Frame(None, local_ops(op for node in path for op in node.ops))
        self.closed = {x for a, b in pairwise(path) for x in self.elsewhere(a, b)}
        self.make_shadows(frame, [op for node in path for op in node.ops])
        self.accumulate(frame, leaf.end.outs[0], "1.0")
        for node in reversed(path):
            self.back(frame, node)
        self.closed = set()
        return frame

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
