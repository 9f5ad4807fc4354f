"""Roll: iterations that record the same operations become one loop on the tape.

Words
-----
passage    one run through a loop, as the tracer has marked it (see ``tracer.loops``).
segment    the ops of one iteration.
pattern    what the iterations of a loop have in common: a tree, which branches where decisions differ.
spot       a place for an operand in a pattern: an op of the same iteration, or something from before the loop.
rigid      a passage that is rolled with its count of iterations and its decisions fixed, since the iterations may
           depend on more than the variables that are carried; other decisions are then a `Miss`.

Soundness: nothing is rolled unless every op of every iteration was compared with the pattern. What leaves the loop
is what is carried at its last head; the ops of the part of an iteration that led out of it stay on the tape as they
are, guards included. A loop is left as it is where in doubt.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.registry import lookup
from ..tracer.cycles import Loop
from ..tracer.errors import TraceError, WengertError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.loops import Carry, Passage, Pick, Put, carry, drawn, item
from ..tracer.tape import (
    FloatOp,
    Input,
    KeywordOp,
    Op,
    Signature,
    Tape,
    become_element,
    element,
    fn_name,
    ops_in,
    substitute,
)
from .bodies import Builder
from .columns import Column
from .kernels import is_array
from .loop_reverse import reverse_of
from .loops import (
    COUNT,
    WHILE,
    Family,
    LoopFunction,
    Unrolled,
    is_smooth,
)
from .patterns import (
    Numbers,
    Pattern,
    Reached,
    Spot,
    Step,
    alike,
    frame,
    is_constant,
    kind_of,
    operands,
    patterns,
    spots,
    walk,
)
from .reverse import dependents

SHORTEST_COUNT, SHORTEST_WHILE = 8, 2  # iterations that are worth a loop
MOST_VARIANTS = 32
FARTHEST = 8  # iterations that an iteration may look back
MOST_LEFT_OUT = 2  # iterations at the ends of a loop, rather than to collect what they compute


def roll(
    tape: Tape,
    reasons: dict[str, str] | None = None,
    keep: Iterable[Op] = (),
    shortest: int = 0,
    needed_only: bool = False,
) -> Tape:
    """Roll the loops of a tape, inner ones first, and return it; maybe only those of which iterations were dropped.

    The tape must have been recorded with marks (``run(..., marks=True)``). Ops in ``keep`` and in the tape's result
    stay on the tape: whoever refers to other ops of the tape from elsewhere must name them. Why a loop was left as
    it is, is noted in ``reasons`` by its place. Loops that are counted stay if they are shorter than ``shortest``.
    """
    roller = Roller(tape, {} if reasons is None else reasons, {*keep, *ops_in(tape.result)})
    roller.shortest, roller.needed_only = shortest, needed_only
    roller.roll()
    return tape


MISSING = object()


class Roller:
    """One walk over the loops of a tape."""

    def __init__(self, tape: Tape, reasons: dict[str, str], keep: set[Op]) -> None:
        self.tape = tape
        self.shortest = 0
        self.needed_only = False
        self.keep = keep
        self.reasons = reasons
        self.ops = tape.ops
        self.spans: dict[int, tuple[int, list[Op]]] = {}  # start -> stop, and what stands there now
        self.index: dict[Op, int] = {}
        self.last: list[int] = []
        self.handed: dict[int, list[int]] = {}  # an op -> the ops that carry it to a next iteration

    def roll(self) -> None:
        groups: dict[Loop, list[Passage]] = {}
        for passage in self.tape.passages:
            groups.setdefault(passage.loop, []).append(passage)
        long = {p.loop for p in self.tape.passages if len(p.heads) > SHORTEST_WHILE}
        groups = {loop: passages for loop, passages in groups.items() if loop in long}
        if groups:
            self.look()
        for loop, passages in groups.items():
            stretches = [self.stretch(passage) for passage in innermost(passages)]
            if self.needed_only:
                stretches = [x for x in stretches if x.dropped]
            thinned = [x for x in stretches if x.dropped]
            try:
                self.roll_group(stretches)
            except (Unrolled, WengertError) as why:
                self.reasons[str(loop.site)] = str(why)
                for stretch in thinned:
                    self.roll_thinned(stretch)
        self.finish()

    def stretch(self, passage: Passage) -> Stretch:
        """The iterations of a passage of which nothing is used after the last of them."""
        heads = passage.heads
        given = passage.states[-1][0]
        used = {
            k
            for k in range(len(heads) - 1)
            if any(True for _ in self.used(heads[k], heads[k + 1], heads[-1], given))
        }
        start, end = last = passage.start, len(heads) - 1
        gap = next(
            (k for k in range(end) if passage.numbers[k] + 1 != passage.numbers[k + 1]), None
        )
        if gap is None:
            while start in used:
                start += 1
            while end - 1 in used and end > start:
                end -= 1
            if start - passage.start + last[1] - end > MOST_LEFT_OUT:
                start, end = last  # what they compute is collected
        else:
            start = max([start, *[k + 1 for k in used if k <= gap]])
            end = min([end, *[k for k in used if k > gap]])
        return Stretch(passage, start, end)

    def roll_thinned(self, stretch: Stretch) -> None:
        """Roll a passage of which iterations were dropped: it cannot be left as it is."""
        if stretch.heads[0] in self.spans:
            return
        try:
            try:
                self.roll_alike([stretch])
            except Unrolled:
                whole = stretch.passage
                self.roll_alike([Stretch(whole, whole.start, len(whole.heads) - 2)])
        except Unrolled as why:
            raise TraceError(
                f"{stretch.loop.site}: iterations of a loop were dropped that cannot be rolled ({why})\n"
                "with wengert.jit(False): keeps all of them"
            ) from why

    def look(self) -> None:
        """Find where each op stands, and where it is used last."""
        ops = self.ops
        index = self.index = {op: i for i, op in enumerate(ops)}
        last = self.last = [-1] * len(ops)
        handed: dict[int, int] = {}  # an op that carries on -> where the iteration before it begins
        for passage in self.tape.passages:
            before = passage.heads[0]
            for head, state in zip(passage.heads[1:], passage.states[1:], strict=True):
                for i in range(head, head + state[0]):
                    handed[i] = before
                before = head
        for j, op in enumerate(ops):
            if type(op) is FloatOp:
                for x in op.args:
                    if issubclass(type(x), Op):
                        last[index[x]] = j
            else:
                for x in op.operands():
                    i = index[x]
                    if i < handed.get(j, j):
                        last[i] = j
                    else:
                        self.handed.setdefault(i, []).append(j)
        for x in self.keep:
            last[index[x]] = len(ops)

    @functools.cached_property
    def active(self) -> set[Op]:
        """The ops through which derivatives may flow."""
        inputs: list[Op] = [x for x in self.ops if isinstance(x, Input) and is_smooth(x.value)]
        return dependents(self.ops, inputs)[1]

    def used(self, start: int, stop: int, head: int, given: int) -> Iterator[Op]:
        """The ops that are used after an iteration's head, other than by being carried into that iteration."""
        ops, last, handed = self.ops, self.last, self.handed
        for i in range(start, stop):
            if last[i] >= head:
                if ops[i].kind != "input":
                    yield ops[i]
            elif i in handed and any(j >= head + given for j in handed[i]):
                yield ops[i]

    def looks_back(self, start: int, stop: int) -> bool:
        """Whether what an iteration was given is used behind the decision that ended the loop in it.

        On the tape it stands there as the number that it was, which another count of iterations would change.
        """
        if not self.last:
            return False
        given: set[Op] = set()
        decision = next(i for i in range(start, stop) if self.ops[i].kind == "guard")
        for i in range(start, stop):
            op = self.ops[i]
            if op.fn is item or not given.isdisjoint(op.operands()):
                given.add(op)
                if self.last[i] > decision:
                    return True
        return False

    def segment(self, start: int, stop: int) -> list[Op]:
        """The ops from ``start`` to ``stop`` as they are now, without inputs."""
        ops, spans = self.ops, self.spans
        if not spans:
            return [op for op in ops[start:stop] if op.kind != "input"]
        found: list[Op] = []
        i = start
        while i < stop:
            span = spans.get(i)
            if span is not None:
                found += span[1]
            if span is not None and span[0] > i:
                i = span[0]
            else:  # a loop without iterations stands in the place of nothing
                if ops[i].kind != "input":
                    found.append(ops[i])
                i += 1
        return found

    def roll_group(self, passages: list[Stretch]) -> None:
        """Roll the passages through one loop, by a function for all of them."""
        by_state: dict[Any, list[Stretch]] = {}
        for passage in passages:
            by_state.setdefault(passage.states[-1], []).append(passage)
        for same in by_state.values():
            self.roll_alike(same)

    def roll_alike(self, passages: list[Stretch], later: int = 0) -> None:
        """Roll passages that begin alike, ``later`` iterations after where they could."""
        group = Group(self, passages)
        try:
            group.compare()
        except Early as why:
            later += why.ago
            self.roll_alike([x.later(why.ago, later) for x in passages], later)
            return
        except Unrolled:  # the first iteration is often unlike the others
            if later:
                raise
            self.roll_alike([x.later(1) for x in passages], 1)
            return
        group.fill_in()
        # What is iterated over is untraced: where it is looked at, another count of iterations is another path.
        indexed = passages[0].loop.counted and passages[0].loop.indexed
        free = [
            r
            for r, passage in enumerate(passages)
            if group.exits[r]
            and group.rigid[r] is None
            and not group.used[r]
            and not passage.passage.grown
            and not (indexed and not group.is_known(r, passage.counter))
            and not (indexed and self.looks_back(passage.heads[-1], passage.stop))
        ]
        fixed = [r for r in range(len(passages)) if r not in free]
        if free and fixed:
            self.roll_alike([passages[r] for r in free])
            self.roll_alike([passages[r] for r in fixed])
            return
        group.build(WHILE if free else COUNT)

    # ------------------------------------------------------------------------------------------- the new tape

    def finish(self) -> None:
        """Rid the tape of identities, and of arithmetic on constants that they had made to be followed."""
        known: dict[Op, Any] = {}

        def now(op: Op) -> Any:
            return known.get(op, op)

        ops: list[Op] = []
        for op in self.final() if self.spans else self.ops:
            if type(op) is FloatOp and known.keys().isdisjoint(op.args):
                ops.append(op)
                continue
            if op.fn is drawn:
                continue
            if isinstance(op.fn, Carry) and op not in self.keep:
                known[op] = now(op.args[0]) if isinstance(op.args[0], Op) else op.args[0]
                continue
            if known and not known.keys().isdisjoint(op.operands()):
                args = substitute(op.args, now)
                if op.kind == "guard" and not isinstance(args[0], Op):
                    continue
                if (
                    is_one_of(type(op.value), (int, float, bool))
                    and is_constant(op.fn, args)
                    and op not in self.keep
                ):
                    known[op] = op.value
                    continue
                if type(op) is FloatOp:
                    kinds = [Op if isinstance(x, Op) else type(x) for x in args]
                    op.signature = Signature.of(op.fn, *kinds)
                op.args = args
                if isinstance(op, KeywordOp):
                    op.kwargs = substitute(op.kwargs, now)  # type: ignore[misc]
            ops.append(op)
        self.tape.ops = ops
        self.tape.passages = []

    def final(self) -> Iterator[Op]:
        i, count = 0, len(self.ops)
        while i < count:
            span = self.spans.get(i)
            if span is not None:
                for op in self.ops[i : span[0]]:
                    if op.kind == "input":
                        yield op
                yield from span[1]
            if span is not None and span[0] > i:
                i = span[0]
            else:
                yield self.ops[i]
                i += 1


def innermost(passages: list[Passage]) -> list[Passage]:
    """Passages in which the loop is not run through again, by recursion."""
    found: list[Passage] = []
    for passage in passages:  # an inner one is done before its outer one
        if not found or found[-1].heads[0] < passage.heads[0]:
            found.append(passage)
    return found


class Early(Unrolled):
    """What earlier iterations computed is of another type in the first ones, of which there are ``ago``."""

    def __init__(self, ago: int) -> None:
        super().__init__("what an earlier iteration computed changes its type")
        self.ago = ago


class Stretch:
    """Iterations of a passage that may be rolled: from one of its heads to another."""

    __slots__ = (
        "columns", "dropped", "end", "heads", "length", "loop", "numbers", "passage", "rigid", "start", "states",
        "stop",
    )  # fmt: skip

    def __init__(self, passage: Passage, start: int, end: int) -> None:
        self.passage = passage
        self.start, self.end = start, end
        self.loop = passage.loop
        self.length = passage.length
        self.columns = passage.columns
        self.dropped = passage.dropped
        whole = end == len(passage.heads) - 1
        self.rigid = (
            passage.rigid if whole else passage.rigid or "what it computes is used after it"
        )
        self.heads = passage.heads[start : end + 1]
        self.states = passage.states[start : end + 1]
        self.numbers = passage.numbers[start : end + 1]
        self.stop = passage.stop if whole else self.heads[-1]

    def later(self, by: int, of: int = 0) -> Stretch:
        """The same without its first iterations; ``of`` are left out in all."""
        if self.dropped or self.end - self.start <= by or of > FARTHEST:
            raise Unrolled("its first iterations are unlike the others")
        return Stretch(self.passage, self.start + by, self.end)

    @property
    def given(self) -> range | None:
        """What the iterations are given, if that are numbers which are followed."""
        return self.passage.range if self.states[-1][1] else None

    @property
    def counter(self) -> range | None:
        """The same, if iterations depend on it in no other way than that which is followed."""
        return None if self.passage.drawn else self.given

    @property
    def numbered(self) -> bool:
        """Whether iterations may do something else because of what they are given, not only because of decisions."""
        passage = self.passage
        if passage.array or not self.loop.indexed:
            return False
        return passage.drawn or not self.states[-1][1]


class Group:
    """Passages through one loop whose iterations are compared with one pattern."""

    def __init__(self, roller: Roller, passages: list[Stretch]) -> None:
        self.roller = roller
        self.passages = passages
        self.index = roller.index
        self.given = passages[0].states[-1][0]
        self.root = Pattern(0)
        self.first: list[int] = []  # the head of the first iteration that is like the last
        self.begin: list[int] = []  # the number of that iteration
        self.exits: list[bool] = []  # whether a decision ended the passage
        self.rigid: list[str | None] = []
        self.paths: list[list[Pattern]] = []
        self.ends: list[Pattern] = []
        self.recent: deque[dict[Op, int]] = deque(
            maxlen=FARTHEST
        )  # the ops of the latest iterations
        # What iterations compute that is used after the loop: by the end of the pattern, the number of the op.
        self.outputs: list[dict[Pattern, int]] = []
        self.used: list[
            list[tuple[int, Pattern, int, Op]]
        ] = []  # by passage: iteration, its end, number and op

    def compare(self) -> None:
        """Compare the iterations of all passages."""
        for r, passage in enumerate(self.passages):
            states, heads = passage.states, passage.heads
            k = len(states) - 1
            while k > 0 and states[k - 1] == states[-1]:
                k -= 1
            self.first.append(k)
            self.begin.append(passage.numbers[k])
            self.rigid.append(passage.rigid)
            self.used.append([])
            path = []
            for i in range(k, len(heads) - 1):
                following = self.roller.ops[heads[i + 1] : heads[i + 1] + self.given]
                number = passage.numbers[i]
                segment = self.roller.segment(heads[i], heads[i + 1])
                path.append(self.visit(segment, r, number, following))
                self.note_uses(passage, i, segment, path[-1])
            self.paths.append(path)
        for r, passage in enumerate(self.passages):
            last = self.roller.segment(passage.heads[-1], passage.stop)
            self.exits.append(self.leave(last, r, passage.numbers[-1]))
            self.take_columns(r, passage.columns)
        self.find_outputs()

    def note_uses(self, passage: Stretch, i: int, segment: list[Op], end: Pattern) -> None:
        """Note what an iteration computes that is used after the loop, though no variable holds it."""
        roller, heads = self.roller, passage.heads
        if not roller.last:  # while the loop runs
            return
        found = list(roller.used(heads[i], heads[i + 1], heads[-1], self.given))
        if not found:
            return
        at = {op: j for j, op in enumerate(segment)}
        if passage.dropped or any(op not in at for op in found):
            raise Unrolled(
                f"what an iteration computes ({found[0].site}) is used after the loop, but no variable holds it"
            )
        for op in found:
            self.used[-1].append((i, end, at[op], op))

    def find_outputs(self) -> None:
        """Find out what is to be collected: with decisions, what iterations append to lists, whichever way they go."""
        numbers = dict.fromkeys([(end, number) for row in self.used for _, end, number, _ in row])
        if len(self.ends) > 1:
            self.check_behind()
        if len(self.ends) < 2:
            self.outputs = [{end: number} for end, number in numbers]
            return
        if not any(x.passage.grown for x in self.passages):
            if numbers:
                raise Unrolled("what it computes is used after it, and it takes decisions")
            return
        steps = {at.pattern: at.steps for at in walk(self.root) if at.pattern.end is not None}
        if len({len(end.puts) for end in self.ends}) > 1:
            raise Unrolled("only some of its iterations append to a list")
        for row in zip(*[end.puts for end in self.ends], strict=True):
            appended = [steps[end][number] for end, number in zip(self.ends, row, strict=True)]
            if not all(same_puts(step, appended[0]) for step in appended):
                raise Unrolled("its iterations append to different lists")
            # An array in a list is the one that a variable may hold: after each iteration, or after none.
            sources = [step.spots[0].local if step is not None else -1 for step in appended]
            held = [
                [j for j, spot in enumerate(end.end or ()) if spot.local == source >= 0]
                for end, source in zip(self.ends, sources, strict=True)
            ]
            if any(step is not None and is_array(step.op) for step in appended):
                if any(x != held[0] for x in held) or -1 in sources:
                    raise Unrolled("its iterations append arrays that only some of them hand on")
            self.outputs.append(dict(zip(self.ends, row, strict=True)))
        for number in range(self.given):  # arrays that are carried
            if any(n == number for _, n in numbers):
                self.outputs.append(dict.fromkeys(self.ends, number))

    def check_behind(self) -> None:
        """Make sure that earlier iterations computed what they are asked for whichever way they went."""
        common = len(self.root.steps)
        for pattern in patterns(self.root):
            for spot in spots(pattern):
                if spot.behind is not None and (
                    pattern is not self.root or spot.behind[1] >= common
                ):
                    raise Unrolled(
                        "an iteration uses what an earlier one computed after a decision"
                    )

    def output(self, end: Pattern, number: int) -> int:
        """The number of the output that an op of an iteration is collected in."""
        for i, output in enumerate(self.outputs):
            if output.get(end) == number:
                return i
        steps = next(at.steps for at in walk(self.root) if at.pattern is end)
        for i, output in enumerate(self.outputs):
            step = steps[output[end]] if end in output else None
            if step is not None and type(step.op.fn) is Put and step.spots[0].local == number:
                return i
        raise Unrolled("what only some of its iterations compute is used after it")

    def take_columns(self, r: int, columns: dict[tuple[int, int], dict[int, Any]]) -> None:
        """Add what differed in iterations that were dropped."""
        for pattern in patterns(self.root):
            for i, step in enumerate(pattern.steps, pattern.start):
                for j, spot in enumerate(step.spots):
                    for k, x in columns.get((i, j), {}).items():
                        if spot.changing is None:
                            spot.changing = {}
                        spot.changing[r, k] = x

    def visit(self, segment: list[Op], r: int, k: int, following: list[Op]) -> Pattern:
        """Compare one iteration with the pattern, and let the pattern grow where it takes a new decision."""
        at = {op: i for i, op in enumerate(segment)}
        if self.begin[r] == k:
            self.recent.clear()
        pattern = self.walk(at, segment, r, k, following)
        self.recent.append(at)
        return pattern

    def walk(
        self, at: dict[Op, int], segment: list[Op], r: int, k: int, following: list[Op]
    ) -> Pattern:
        pattern = self.root
        count = len(segment)
        fresh = not self.ends
        i = 0
        while True:
            pattern.visits.append((r, k))
            if fresh:
                while i < count and segment[i].kind == "call":
                    pattern.steps.append(self.new_step(segment[i], at, r, k))
                    i += 1
            else:
                for step in pattern.steps:
                    if i == count:
                        raise Unrolled("an iteration ends early without a decision")
                    self.check(step, segment[i], at, r, k)
                    i += 1
            if i == count:
                if fresh:
                    pattern.end = [self.new_spot(x.args[0], at, r, k) for x in following]
                    pattern.puts = [i for i, x in enumerate(segment) if type(x.fn) is Put]
                    self.ends.append(pattern)
                    if len(self.ends) > MOST_VARIANTS:
                        raise Unrolled("its iterations take too many different ways")
                elif pattern.end is None:
                    raise Unrolled("an iteration ends early without a decision")
                else:
                    for spot, x in zip(pattern.end, following, strict=True):
                        self.fill(spot, x.args[0], at, r, k)
                return pattern
            guard = segment[i]
            if guard.kind != "guard":
                raise Unrolled(
                    f"it writes to the outside ({guard.site})"
                    if guard.kind == "effect"
                    else "its iterations record different operations"
                )
            if fresh:
                pattern.guard = self.new_step(guard, at, r, k)
            elif pattern.guard is None:
                raise Unrolled("its iterations record different operations")
            else:
                self.check(pattern.guard, guard, at, r, k)
            i += 1
            for value, branch in pattern.branches:
                if alike(value, guard.value):
                    pattern = branch
                    break
            else:
                branch = Pattern(i)
                pattern.branches.append((guard.value, branch))
                pattern, fresh = branch, True

    def leave(self, segment: list[Op], r: int, k: int) -> bool:
        """Compare the way out with the pattern; false if it is no decision that parts it from an iteration."""
        at = {op: i for i, op in enumerate(segment)}
        pattern, i = self.root, 0
        try:
            while True:
                pattern.left.append((r, k))
                for step in pattern.steps:
                    if i == len(segment):
                        return False
                    self.check(step, segment[i], at, r, k)
                    i += 1
                if i == len(segment) or pattern.guard is None or segment[i].kind != "guard":
                    return False
                self.check(pattern.guard, segment[i], at, r, k)
                for value, branch in pattern.branches:
                    if alike(value, segment[i].value):
                        pattern = branch
                        break
                else:
                    if not any(alike(value, segment[i].value) for value in pattern.exits):
                        pattern.exits.append(segment[i].value)
                    return True
                i += 1
        except Unrolled:
            return False

    def new_step(self, op: Op, at: dict[Op, int], r: int, k: int) -> Step:
        if op.fn is carry and at[op] < self.given:
            return Step(op, [], kind_of(op.value), r)
        if op.kind == "call" and type(op) is not FloatOp and not is_known(op.fn):
            raise Unrolled(f"nothing is known of {fn_name(op.fn)} ({op.site})")
        return Step(op, [self.new_spot(x, at, r, k) for x in operands(op)], kind_of(op.value), r)

    def new_spot(self, x: Any, at: dict[Op, int], r: int, k: int) -> Spot:
        if isinstance(x, Op):
            local = at.get(x, -1)
            if local >= 0:
                return Spot(local)
            self.check_outside(x, r)
        spot = Spot(-1)
        spot.same[r] = x
        return spot

    def earlier(self, x: Op) -> tuple[int, int] | None:
        """How many iterations ago an op was computed, and its number in that; None for one from before the loop."""
        for ago, at in enumerate(reversed(self.recent), 1):
            if x in at:
                return ago, at[x]
        return None

    def fill_behind(self, spot: Spot, x: Any, r: int, k: int) -> None:
        """Compare an operand with a spot that holds an op of an earlier iteration, or is about to."""
        found = self.earlier(x) if isinstance(x, Op) else None
        count = k - self.begin[r]
        if spot.behind is None:
            assert found is not None
            known = len(spot.same) + len(spot.changing or ())
            if count != found[0] or len(self.ends) != 1 or (r > 0 and known > count):
                raise Unrolled(
                    f"an iteration uses what an earlier one computed ({x.site}), but not from the first one on"
                )
            spot.look_behind(*found, r, self.begin[r])
            for y in spot.first[r]:
                if kind_of(y.value if isinstance(y, Op) else y) != kind_of(x.value):
                    raise Early(found[0])
        elif count < spot.behind[0] and found is None:
            if isinstance(x, Op):
                self.check_outside(x, r)
            spot.first.setdefault(r, []).append(x)
        elif found != spot.behind:
            raise Unrolled("its iterations use different values of earlier ones")
        if isinstance(x, Op) and isinstance(x.value, np.ndarray):
            if self.passages[r].passage.written:
                raise Unrolled("arrays are written to")

    def check_outside(self, op: Op, r: int) -> None:
        """Make sure that an op comes from before the loop."""
        passage = self.passages[r]
        if op.kind != "input" and self.index.get(op, -1) >= passage.heads[self.first[r]]:
            raise Unrolled(
                f"an iteration uses what an earlier one computed ({op.site}), but no variable holds it"
            )
        if isinstance(op.value, np.ndarray) and passage.passage.written:
            raise Unrolled("arrays are written to")
        if isinstance(op.value, np.ndarray) and passage.dropped and self.roller.tape.written:
            if op.kind != "input" and op not in passage.passage.saved:
                raise Unrolled("arrays are written to")

    def check(self, step: Step, op: Op, at: dict[Op, int], r: int, k: int) -> None:
        """Compare an op with a step."""
        proto = step.op
        same = op.fn is proto.fn
        if type(op.fn) is type(proto.fn) and is_one_of(type(op.fn), (Pick, Put)):
            same = step.picks.setdefault(r, op.fn) is op.fn
        if not same or type(op) is not type(proto):
            raise Unrolled(f"its iterations record different operations ({proto.site}, {op.site})")
        if type(op) is FloatOp:
            a, b = op.args
            x, y = step.spots
            if x.local < 0 or not issubclass(type(a), Op) or at.get(a, -1) != x.local:
                self.fill(x, a, at, r, k)
            if y.local < 0 or not issubclass(type(b), Op) or at.get(b, -1) != y.local:
                self.fill(y, b, at, r, k)
            return
        if op.kind == "call" and kind_of(op.value) != step.kind:
            raise Unrolled(f"values change their type or shape ({op.site})")
        if op.fn is carry and not step.spots:
            return
        found = operands(op)
        if len(found) != len(step.spots) or frame(op) != frame(proto):
            raise Unrolled(f"its iterations record different operations ({proto.site}, {op.site})")
        for spot, x in zip(step.spots, found, strict=True):
            self.fill(spot, x, at, r, k)

    def fill(self, spot: Spot, x: Any, at: dict[Op, int], r: int, k: int) -> None:
        """Compare an operand with a spot."""
        if isinstance(x, Op) and x in at:
            if at[x] != spot.local:
                raise Unrolled(f"its iterations use different values ({x.site})")
            return
        if spot.local >= 0:
            raise Unrolled("its iterations use different values")
        if spot.behind is not None or (
            isinstance(x, Op) and x is not spot.same.get(r) and self.earlier(x) is not None
        ):
            self.fill_behind(spot, x, r, k)
            return
        if spot.changing is not None:
            if isinstance(x, Op):
                self.check_outside(x, r)
            spot.changing[r, k] = x
            return
        known = spot.same.get(r, MISSING)
        if known is x:
            return
        if isinstance(x, Op):
            self.check_outside(x, r)
        if known is MISSING:
            spot.same[r] = x
        elif not alike(known, x):
            spot.changing = {(r, k): x}

    # --------------------------------------------------------------------------------------------- building

    def build(self, form: str) -> None:
        """Make the loop function and put it on the tape."""
        thinned = any(p.dropped for p in self.passages)
        rigid = next((x for x in self.rigid if x is not None), None)
        if len(self.ends) > 1 and rigid is not None:
            if not thinned:
                raise Unrolled(rigid)
            self.roller.tape.once = rigid
        counts = [p.numbers[-1] - k for p, k in zip(self.passages, self.begin, strict=True)]
        branches = (
            len(self.ends) > 1
        )  # of which there would be any number of ways through all iterations
        longest = max(map(len, self.paths))
        size = longest and longest * self.root.weight
        short = form != WHILE and size < self.roller.shortest and not (thinned or branches)
        if short or max(counts) < (SHORTEST_WHILE if form == WHILE else SHORTEST_COUNT):
            raise Unrolled("it is short")
        numbered = any(x.numbered for x in self.passages)
        if len(self.ends) > 1 and numbered and self.partial():
            why = "what its iterations do depends on their number, and on decisions"
            if not thinned:
                raise Unrolled(why)
            self.roller.tape.once = why
        if not self.is_complete():
            raise Unrolled("what its iterations use changes, and not all of them use it")
        builder = Builder(self, form)
        family = builder.family()
        for r in range(len(self.passages)):
            self.place(builder, family, r, form)

    def example(self, number: int) -> Any:
        """The value of an op of an iteration."""
        r = next(r for r, path in enumerate(self.paths) if path)
        heads = self.passages[r].heads
        return self.roller.segment(heads[-2], heads[-1])[number].value

    def numbers(self) -> Iterator[tuple[int, int]]:
        """All iterations: passages and numbers, with those that are known to follow where others could."""
        for r, passage in enumerate(self.passages):
            last = max(passage.numbers[-1], len(passage.counter or ()))
            yield from ((r, k) for k in range(self.begin[r], last))

    def is_known(self, r: int, counter: range | None) -> bool:
        """Whether it is known of all that changes what it would be at further iterations, those of ``counter``."""
        return counter is not None and all(
            (r, k) in spot.changing and not isinstance(spot.changing[r, k], Op)
            for pattern in patterns(self.root)
            for spot in spots(pattern)
            if spot.changing is not None and type(spot.changing) is not Numbers
            for k in range(self.begin[r], len(counter))
        )

    def fill_in(self) -> None:
        """Give spots that change a value for each iteration, as far as it is known.

        That is what stood there before it changed for the first time; what a loop is given by number, and what it picks
        by that; and anything for an iteration that does not come there for certain.
        """
        ranges = [x.given for x in self.passages if x.given is not None]
        numbered = len(ranges) == len(self.passages)
        for at in walk(self.root):
            for step in at.pattern.steps:
                if step.op.fn is item and step is at.first(self.given) and numbered:
                    if step.spots[0].changing is not None:
                        step.spots[0].changing = Numbers(ranges)
                elif type(step.op.fn) is Pick:
                    self.fill_pick(at, step)
            changing = [x for x in spots(at.pattern) if type(x.changing) is dict]
            visits: Iterable[tuple[int, int]] = [*at.pattern.visits, *at.pattern.left]
            if at.pattern is self.root and changing:
                visits = [
                    (r, k)
                    for r, x in enumerate(self.passages)
                    for k in range(self.begin[r], x.numbers[-1] + 1)
                ]
            missing = [x for x in self.numbers() if at.misses(*x)] if changing else []
            for spot in changing:
                for r, k in visits:
                    if r in spot.same:
                        spot.changing.setdefault((r, k), spot.same[r])
                anything = next(iter(spot.changing.values()), None)
                for r, k in missing:
                    spot.changing.setdefault((r, k), anything)

    def fill_pick(self, at: Reached, step: Step) -> None:
        """Find out what the iterations would pick that have not picked anything."""
        spot = step.spots[0]
        visits = {*at.pattern.visits, *at.pattern.left}
        others = {x: at.picked(step, *x) for x in self.numbers() if x not in visits}
        if spot.changing is None:
            if all(x is not None and alike(spot.same.get(r), x) for (r, _), x in others.items()):
                return
            spot.changing = {}
        for place, x in others.items():
            if x is not None:
                spot.changing.setdefault(place, x)

    def partial(self) -> bool:
        """Whether what some iterations do may depend on their number, and others might do it at another time."""
        every = len(self.root.visits)
        return any(
            not all(x in visits or at.misses(*x) for x in self.numbers())
            for at in walk(self.root)
            if len(visits := set(at.pattern.visits)) < every and self.is_numbered(at)
        )

    def is_numbered(self, at: Reached) -> bool:
        """Whether what iterations do at a node of the pattern may depend on their number."""
        for x in self.passages:
            if x.numbered and (x.passage.folded or not x.states[-1][1]):
                return True
        fns = [step.op.fn for step in at.steps if step is not None]
        return any(fn is drawn or type(fn) is LoopFunction for fn in fns)

    def is_complete(self) -> bool:
        """Whether it is known of all that changes what it would be in each iteration."""
        every = len(self.root.visits)
        return all(
            (r, k) in spot.changing
            for pattern in patterns(self.root)
            if len(pattern.visits) < every
            for spot in spots(pattern)
            if spot.changing is not None
            for r, x in enumerate(self.passages)
            for k in range(self.begin[r], x.numbers[-1])
        )

    def place(self, builder: Builder, family: Family, r: int, form: str) -> None:
        """Put the loop on the tape in the place of one passage."""
        roller, passage = self.roller, self.passages[r]
        start, stop = passage.heads[self.first[r]], passage.heads[-1]
        begin = roller.ops[start : start + self.given]
        end = roller.ops[stop : stop + self.given]
        if start == stop:  # without iterations in this run
            begin = [Op(carry, x.args, x.value, x.site, roller.tape) for x in begin]
            roller.index.update(dict.fromkeys(begin, start))
            roller.active.update(
                new for new, x in zip(begin, end, strict=True) if x in roller.active
            )
        count = passage.numbers[-1] - self.begin[r]
        steps: Any = count
        if form == WHILE:
            steps = None
            if passage.loop.counted:
                steps = count + 1
                if passage.length is not None:
                    steps = passage.length - self.begin[r]
        # What it begins with stays: it may be what another part of the same run has handed on.
        args = builder.arguments(r, steps, begin, count, form)
        value = tuple([end[j].value for j in builder.slots])
        value += tuple([delay.value for delay in builder.delays])
        columns = self.collected(r)
        value += tuple([x.value for x in columns])
        made = Op(family.member(len(columns)), args, value, passage.loop.site, roller.tape)
        active = roller.active
        if not active.isdisjoint(made.operands()):
            active.add(made)
        results = {place for place, j in enumerate(builder.slots) if end[j] in active}
        count_of_carried = len(builder.slots) + len(builder.delays)
        for place, column in enumerate(columns, count_of_carried):
            column.args = (made, place)
            roller.index[column] = start
        outputs = [(i, self.output(end, number), op) for i, end, number, op in self.used[r]]
        for _, output, op in outputs:
            if op in active:
                active.add(columns[output])
                results.add(count_of_carried + output)
        self.check_reverse(made, results)
        used = [x for x in outputs if x[2] not in begin]  # which stays, to begin with
        for i, output, op in used:
            become_element(op, columns[output], passage.numbers[i] - self.begin[r])
        for place, j in enumerate(builder.slots):
            end[j].fn, end[j].args = element, (made, place)
            end[j].site = passage.loop.site
        for j, x in builder.steady.items():
            del x
            end[j].args = (begin[j],)
        roller.index[made] = start
        placed = [*begin, made, *columns, *[op for _, _, op in used]]
        roller.spans[start] = (stop, placed)
        if roller.tape.outline is not None:
            roller.tape.outline.roll(passage.loop.site, roller.ops[start], [*placed, *end])

    def collected(self, r: int) -> list[Op]:
        """An op for each column that the loop collects in one passage."""
        found: list[list[Any]] = [[] for _ in self.outputs]
        if found:
            heads = self.passages[r].heads
            for i in range(self.first[r], len(heads) - 1):
                segment = self.roller.segment(heads[i], heads[i + 1])
                end = self.paths[r][i - self.first[r]]
                for values, output in zip(found, self.outputs, strict=True):
                    values.append(segment[output[end]].value)
        site, tape = self.passages[r].loop.site, self.roller.tape
        return [Op(element, (), Column(values), site, tape) for values in found]

    def check_reverse(self, made: Op, results: set[int]) -> None:
        """Make sure that the loop can be differentiated, for what the tape wants."""
        active = self.roller.active
        loop: LoopFunction = made.fn
        _, carried, invariants, columns = loop.split(made.args)
        if not results:
            return
        reverse_of(
            loop.family,
            {j for j, x in enumerate(carried) if isinstance(x, Op) and x in active},
            {i for i, x in enumerate(invariants) if isinstance(x, Op) and x in active},
            {c for c, x in enumerate(columns) if not active.isdisjoint(ops_in(x))},
            results,
        )


def same_puts(one: Step | None, other: Step | None) -> bool:
    """Whether two steps append to the same list, in each passage."""
    if one is None or other is None:
        return False
    return all(one.picks[r] is other.picks[r] for r in one.picks.keys() & other.picks.keys())


def is_known(fn: Any) -> bool:
    """Whether a callable gives the same result for the same arguments."""
    if isinstance(fn, Carry) or fn is element or type(fn) is LoopFunction:
        return True
    rule = lookup(fn)
    return rule is not None and not rule.recorded
