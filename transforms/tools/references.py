"""References in a folded tape: what the operands of a line are in each of its passes, and what loops carry.

Words
-----
slot        an operand of a line (or what a loop begins with), in each pass: an op or a constant.
reference   how a slot reads from where it stands: ``line`` (an op of the same passes, of the last ones of an inner
            loop, or of those with these numbers), ``carried``, ``constant``, or, as a source alone, ``begun``: what
            another carried value of the same loop was when the pass began (``a, b = b, a + b``).
carried     a loop-carried value: what a pass of a loop begins with, and the next one gets from it. Each pass has
            been gone through for it: it begins with ``first``, and from then on is what its ``sources`` give.
sometimes   of a carried value: the outcome of a decision, or the way of a branch, on which it changes; in all other
            passes it stays as it was (``if y > best: best = y``).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from ...tracer.kinds import isinstance
from ...tracer.tape import Guard, Op, variable
from ..patterns import alike, operands
from .folding import Block, Branch, Call, Item, Line, Loop

UNKNOWN = object()
MANY = 3  # passes of a loop, from which on what is as another one was a pass ago is no accident
UNSEEN = object()  # what a run of a loop begins with, if nobody looks before there is another value


class Reference(NamedTuple):
    """``kind`` says what ``of`` is; ``passes`` numbers those of the loops that it is inside of (None: the last)."""

    kind: str  # "line", "carried", "begun", "constant" or "gone"
    of: Any
    passes: tuple[int | None, ...] = ()
    past: bool = False  # of an earlier pass of a loop that the slot is in as well

    @property
    def key(self) -> Hashable:
        return self.kind, id(self.of), self.passes, self.past


class Slot:
    """What stands in one place, by pass of ``block``; ``carried`` is what it is, if a loop carries it.

    In the passes of ``own`` it is not that, but what the same pass has computed already.
    """

    __slots__ = ("block", "carried", "own", "values")

    def __init__(self, block: Block, values: list[Any]) -> None:
        self.block = block
        self.values = values
        self.carried: Carried | None = None
        self.own: set[int] = set()


class Carried:
    """A value that a loop carries from pass to pass."""

    def __init__(self, loop: Loop, sources: list[Reference]) -> None:
        self.loop = loop
        self.sources = sources
        self.first: Slot | None = None  # None if nobody looks at what it begins with
        self.final: list[Any] = []  # by run of the loop
        self.begins: list[Any] = []  # by pass
        self.sometimes: tuple[Line | Branch, Any] | None = None
        self.changes: list[bool] | None = None  # by pass, if it does not change in each

    @property
    def follows(self) -> Carried | None:
        """What it was a pass ago, if it is nothing else."""
        (source, *others) = self.sources
        return source.of if source.kind == "begun" and not others else None

    def ends(self) -> list[Any]:
        """What it is behind each pass."""
        found = [*self.begins[1:], UNKNOWN]
        for run, stop in enumerate(self.loop.starts[1:]):
            if self.loop.counts[run]:
                found[stop - 1] = self.final[run]
        return found


# A slot, what it is in the passes that take it from earlier ones, and where it comes from in these.
Candidate = tuple[Slot, dict[int, Any], dict[Hashable, Reference]]


class References:
    """The slots of a folded tape and what they refer to."""

    def __init__(self, root: Block, result: Any) -> None:
        self.root = root
        self.where: dict[Op, tuple[Line, int]] = {}
        self.slots: dict[Any, list[Slot]] = {}  # by line
        self.carried: dict[Loop, list[Carried]] = {}
        self.exits: dict[tuple[Loop, int, Op], Carried] = {}
        self.order: dict[Item, int] = {}
        loops: list[Loop] = []
        self.collect(root, loops)
        for loop in reversed(loops):  # inner ones first
            self.carry(loop)

    def collect(self, block: Block, loops: list[Loop]) -> None:
        for item in block.items:
            if isinstance(item, Line):
                for p, op in enumerate(item.ops):
                    self.where[op] = item, p
                leaves = [operands(op) for op in item.ops]
                if isinstance(item.ops[0], Guard):
                    leaves = [[*x, op.value] for x, op in zip(leaves, item.ops, strict=True)]
                self.slots[item] = [Slot(block, list(x)) for x in zip(*leaves, strict=True)]
            else:
                if isinstance(item, Loop):
                    loops.append(item)
                for inner in blocks_of(item):
                    self.collect(inner, loops)
            self.order[item] = len(self.order)

    # ----------------------------------------------------------------------------------------- references

    def reference(self, value: Any, block: Block, p: int) -> Reference:
        """What a value is called in a pass of a block."""
        if not isinstance(value, Op):
            return Reference("constant", value)
        found = self.where.get(value)
        if found is None:
            return Reference("gone", value)
        line, q = found
        around = dict(chain(block, p))
        inner: list[tuple[Loop, int]] = []
        past = False
        at: Block | None = line.block
        while at is not None and around.get(at) != q:
            past |= at in around
            inside = at.inside
            if isinstance(inside, Loop):
                inner.append((inside, q))
            q = at.outer(q)
            at = None if inside is None else inside.block
        if inner:  # the outermost loop that it has left
            loop, last = inner[-1]
            run = loop.outer[last]
            known = self.exits.get((loop, run, value))
            if known is not None and not past:
                return Reference("carried", known)
        numbers = []
        for loop, number in reversed(inner):
            run = loop.outer[number]
            is_last = number == loop.starts[run + 1] - 1
            numbers.append(None if is_last and not past else number - loop.starts[run])
        index = () if all(x is None for x in numbers) else tuple(numbers)
        return Reference("line", line, index, past)

    def referred(self, slot: Slot) -> list[Reference]:
        """What a slot is called in each pass."""
        carried = None if slot.carried is None else Reference("carried", slot.carried)
        return [
            self.reference(x, slot.block, p) if carried is None or p in slot.own else carried
            for p, x in enumerate(slot.values)
        ]

    def series(self, values: list[Any]) -> tuple[Any, list[int]] | None:
        """What a line gives, or a loop carries, in these passes of it, one value each; None if that is not so."""
        place = self.where.get(values[0]) if isinstance(values[0], Op) else None
        if place is not None and all(
            isinstance(x, Op) and self.where.get(x, (None,))[0] is place[0] for x in values
        ):
            return place[0], [self.where[x][1] for x in values]
        for carried in itertools.chain(*self.carried.values()):
            passes = {x: b for b, x in enumerate(carried.begins) if isinstance(x, Op)}
            if all(isinstance(x, Op) and x in passes for x in values):
                return carried, [passes[x] for x in values]
        return None

    def values_of(self, source: Reference, block: Block) -> dict[int, Any]:
        """What a source is in each pass of a block where there is such."""
        found: dict[int, Any] = {}
        if source.kind == "begun":
            return dict(enumerate(source.of.begins))
        if source.kind == "carried":
            loop: Loop = source.of.loop
            for run, value in enumerate(source.of.final):
                if value is not UNKNOWN:
                    found[pass_in(loop.block, run, block)] = value
            return found
        line: Line = source.of
        for q, op in enumerate(line.ops):
            b = pass_in(line.block, q, block)
            if self.reference(op, block, b).key == source.key:
                found[b] = op
        return found

    # -------------------------------------------------------------------------------------------- carrying

    def carry(self, loop: Loop) -> None:
        """Find out what a loop carries: for all slots in it that are not the same in each of its passes."""
        body = loop.body
        candidates: list[Candidate] = []
        for slot in list(self.slots_in(body)):
            if slot.carried is None:
                seen = self.by_pass(slot, body)
                if seen is not None:
                    past = {b: x for b, x in seen.items() if not self.is_own(loop, x, b)}
                    sources = self.sources(loop, past)
                    if sources:
                        candidates.append((slot, past, sources))
        for groups in self.linked(joined(candidates)):
            if len(groups) > 1 and self.fit(loop, [x for group in groups for x in group]):
                continue
            for group in groups:
                self.fit_apart(loop, group)
        while any(self.follow(loop, *x[:2]) for x in candidates if x[0].carried is None):
            pass  # until nothing follows what follows another one

    def follow(self, loop: Loop, slot: Slot, seen: dict[int, Any]) -> bool:
        """Let a slot be what another value that the loop carries was a pass ago, if it is."""
        own = len(seen) < len(self.by_pass(slot, loop.body) or ())
        if own or max(loop.counts) < MANY or not min(loop.counts):
            return False
        starts = {*loop.starts}
        later = next((b for b in seen if b not in starts), None)
        for other in self.carried.get(loop, ()):
            if later is None or not same(seen[later], other.begins[later - 1]):
                continue
            if other.first is None:  # it has no value in some passes
                continue
            begins = [UNSEEN, *other.begins[:-1]]
            for b in loop.starts[:-1]:
                begins[b] = seen.get(b, UNSEEN)
            firsts = [begins[b] for b in loop.starts[:-1]]
            if len({x is UNSEEN for x in firsts}) > 1:
                continue
            if any(self.begins_within(loop, x, run) for run, x in enumerate(firsts)):
                continue
            if all(same(x, begins[b]) for b, x in seen.items()):
                slot.carried = self.following(loop, other, begins)
                return True
        return False

    def followers(self, carried: Carried) -> list[Carried]:
        """What takes over, at the end of each pass, what this was when that began."""
        return [x for x in self.carried[carried.loop] if x.follows is carried]

    def following(self, loop: Loop, other: Carried, begins: list[Any]) -> Carried:
        """What follows another carried value, and began with these."""
        for known in self.carried[loop]:
            if known.follows is other and all(map(same, known.begins, begins)):
                return known
        carried = Carried(loop, [Reference("begun", other)])
        carried.begins = begins
        firsts = [begins[b] for b in loop.starts[:-1]]
        if firsts[0] is not UNSEEN:
            carried.first = Slot(loop.block, firsts)
        carried.final = [other.begins[b - 1] for b in loop.starts[1:]]
        for run, value in enumerate(carried.final):
            if isinstance(value, Op):
                self.exits.setdefault((loop, run, value), carried)
        self.carried[loop].insert(0, carried)  # it is handed on before what it follows
        return carried

    def fit_apart(self, loop: Loop, group: list[Candidate]) -> None:
        """The slots of a group as one value that a loop carries, or else as several."""
        if self.fit(loop, group):
            return
        whole = [x for x in group if len(x[1]) == len(self.by_pass(x[0], loop.body) or ())]
        if 1 < len(whole) < len(group):
            self.fit(loop, whole)
        for one in group:
            if one[0].carried is None and (len(group) == 1 or not self.fit(loop, [one])):
                self.fit_sometimes(loop, *one)

    def linked(self, groups: list[list[Candidate]]) -> list[list[list[Candidate]]]:
        """Groups that may be of one variable: each comes from lines that take another one, round in a circle.

        Where two ways take turns, each begins with what the other one has left (``s += x`` and ``s -= x``).
        What they come from is stored in the same variable of the user's, as far as that is known.
        """
        takers = {id(slot): line for line, slots in self.slots.items() for slot in slots}
        taken: dict[Any, set[int]] = {}  # by line: the groups of which it takes a slot
        for i, group in enumerate(groups):
            for slot, _, _ in group:
                taken.setdefault(takers.get(id(slot)), set()).add(i)
        ahead = [
            set().union(*[taken.get(x.of, ()) for _, _, found in group for x in found.values()])
            for group in groups
        ]
        reached = [reachable(i, ahead) for i in range(len(groups))]
        found: dict[Hashable, list[list[Candidate]]] = {}
        for i, group in enumerate(groups):
            circle = frozenset(k for k in reached[i] | {i} if k == i or i in reached[k])
            stored = set().union(*[stored_in(x) for _, _, back in group for x in back.values()])
            found.setdefault((circle, frozenset(stored)), []).append(group)
        return list(found.values())

    def slots_in(self, block: Block) -> Iterator[Slot]:
        """The slots of a block, what inner loops begin with included."""
        for item in block.items:
            if isinstance(item, Line):
                yield from self.slots[item]
            else:
                if isinstance(item, Loop):
                    yield from (x.first for x in self.carried.get(item, ()) if x.first is not None)
                for inner in blocks_of(item):
                    yield from self.slots_in(inner)

    def by_pass(self, slot: Slot, body: Block) -> dict[int, Any] | None:
        """What a slot is in each pass of a loop, if it is the same throughout each."""
        seen: dict[int, Any] = {}
        for p, value in enumerate(slot.values):
            b = pass_in(slot.block, p, body)
            known = seen.setdefault(b, value)
            if known is not value and not alike(known, value):
                return None
        return seen

    def is_own(self, loop: Loop, value: Any, b: int) -> bool:
        """Whether a value has been computed in this pass of a loop already, and is not what that begins with."""
        place = self.where.get(value) if isinstance(value, Op) else None
        return place is not None and pass_within(place[0].block, place[1], loop.body) == b

    def sources(self, loop: Loop, seen: dict[int, Any]) -> dict[Hashable, Reference]:
        """Where a slot comes from, as far as that is computed in earlier passes of the same run of a loop."""
        found: dict[Hashable, Reference] = {}
        for b, value in seen.items():
            place = self.where.get(value) if isinstance(value, Op) else None
            if place is not None:
                made = pass_within(place[0].block, place[1], loop.body)
                if made is not None and made < b and loop.outer[made] == loop.outer[b]:
                    source = self.reference(value, loop.body, made)
                    found[source.key] = source
        return found

    def fit(self, loop: Loop, group: list[Candidate]) -> bool:
        """Let these slots be one value that a loop carries, if going through all of its passes bears that out."""
        sources = list({k: x for _, _, found in group for k, x in found.items()}.values())
        sources.sort(key=lambda x: self.order[x.of.loop if x.kind == "carried" else x.of])
        given = [self.values_of(x, loop.body) for x in sources]
        first: list[Any] = []
        final: list[Any] = []
        begins: list[Any] = []
        for run in range(len(loop.counts)):
            now: Any = UNKNOWN
            begin: Any = UNKNOWN
            for b in range(loop.starts[run], loop.starts[run + 1]):
                for _, seen, _ in group:
                    value = seen.get(b, UNKNOWN)
                    if value is UNKNOWN:
                        continue
                    if begin is UNKNOWN:
                        if self.begins_within(loop, value, run):
                            return False
                        now = begin = value
                    elif value is not now and not alike(value, now):
                        return False
                begins.append(now)
                updates = [x[b] for x in given if b in x]
                if updates:
                    now = updates[-1]  # the latest, as it is shown
                    if begin is UNKNOWN:
                        begin = UNSEEN
            if now is UNKNOWN:
                return False
            first.append(begin)
            final.append(now)
        carried = Carried(loop, sources)
        if not any(x is UNSEEN for x in first):
            carried.first = Slot(loop.block, first)
        elif any(x is not UNSEEN for x in first):
            return False  # some of its runs look at what they begin with, and others do not
        carried.final, carried.begins = final, begins
        self.carried.setdefault(loop, []).append(carried)
        for run, value in enumerate(final):
            if isinstance(value, Op):
                self.exits.setdefault((loop, run, value), carried)
        for slot, seen, _ in group:
            slot.carried = carried
            passes = range(slot.block.passes)
            slot.own = {p for p in passes if pass_in(slot.block, p, loop.body) not in seen}
        return True

    def fit_sometimes(
        self, loop: Loop, slot: Slot, seen: dict[int, Any], sources: dict[Hashable, Reference]
    ) -> None:
        """The same for one slot whose value changes in some passes alone, if a decision says in which."""
        body = loop.body
        if len(sources) > 1 or len(seen) < body.passes:
            return
        (source,) = sources.values()
        given = self.values_of(source, body)
        known: dict[
            int, bool
        ] = {}  # by pass that has one behind it: whether it has changed the value
        for run in range(len(loop.counts)):
            if self.begins_within(loop, seen.get(loop.starts[run]), run):
                return
            for b in range(loop.starts[run], loop.starts[run + 1] - 1):
                known[b] = not same(seen[b], seen[b + 1])
                if known[b] and not (b in given and same(given[b], seen[b + 1])):
                    return
        fitting = (x for x in outcomes(body) if all(x[2][b] == new for b, new in known.items()))
        item, outcome, found = next(fitting, (None, None, []))
        if item is None or any(b not in given for b in range(body.passes) if found[b]):
            return
        begins = [seen[b] for b in range(body.passes)]
        for known_as in self.carried.get(loop, ()):
            if known_as.sometimes is not None and all(map(same, known_as.begins, begins)):
                slot.carried = known_as
                return
        carried = Carried(loop, [source])
        carried.sometimes, carried.changes = (item, outcome), found
        carried.first = Slot(loop.block, [seen[b] for b in loop.starts[:-1]])
        carried.begins = begins
        for run in range(len(loop.counts)):
            last = loop.starts[run + 1] - 1
            value = given[last] if found[last] else seen[last]
            carried.final.append(value)
            if isinstance(value, Op):
                self.exits.setdefault((loop, run, value), carried)
        self.carried.setdefault(loop, []).append(carried)
        slot.carried = carried

    def begins_within(self, loop: Loop, value: Any, run: int) -> bool:
        """Whether something is computed by the run of the loop that is said to begin with it."""
        place = self.where.get(value) if isinstance(value, Op) else None
        made = None if place is None else pass_within(place[0].block, place[1], loop.body)
        return made is not None and loop.outer[made] == run


def stored_in(source: Reference) -> set[str | None]:
    """The user's variables that a source is stored in, as far as the ops say so."""
    if source.kind == "begun":
        return set()
    if source.kind == "carried":
        return set().union(*map(stored_in, source.of.sources))
    return {variable(source.of.ops[0])}


def reachable(start: int, ahead: list[set[int]]) -> set[int]:
    """All that one comes to by going ahead at least once."""
    found: set[int] = set()
    rest = [*ahead[start]]
    while rest:
        i = rest.pop()
        if i not in found:
            found.add(i)
            rest += ahead[i]
    return found


def same(x: Any, y: Any) -> bool:
    return x is y or alike(x, y)


def outcomes(body: Block) -> Iterator[tuple[Line | Branch, Any, list[bool]]]:
    """The decisions in the body of a loop, each outcome with the passes in which it was that."""
    for item in body.items:
        if isinstance(item, Line) and isinstance(item.ops[0], Guard):
            values = [x.value for x in item.ops]
            for outcome in (True, False):
                yield item, outcome, [x == outcome for x in values]
        elif isinstance(item, Branch):
            for i in range(len(item.ways)):
                yield item, i, [x == i for x in item.taken]


def blocks_of(item: Item) -> list[Block]:
    """The blocks inside of an item."""
    if isinstance(item, Branch):
        return item.ways
    return [item.body] if isinstance(item, (Loop, Call)) else []


def chain(block: Block, p: int) -> Iterator[tuple[Block, int]]:
    """A pass of a block, and those around it, from the inside."""
    at: Block | None = block
    while at is not None:
        yield at, p
        p = at.outer(p)
        at = None if at.inside is None else at.inside.block


def pass_within(block: Block, p: int, around: Block) -> int | None:
    """The pass of an outer block in which a pass happens; None if it is not inside of that."""
    return next((q for x, q in chain(block, p) if x is around), None)


def pass_in(block: Block, p: int, around: Block) -> int:
    found = pass_within(block, p, around)
    assert found is not None
    return found


def joined(candidates: list[Candidate]) -> list[list[Candidate]]:
    """Those that share a source belong together."""
    groups: list[tuple[set[Hashable], list[Candidate]]] = []
    for one in candidates:
        keys, members = set(one[2]), [one]
        rest = []
        for known, group in groups:
            if known & keys:
                keys |= known
                members = group + members
            else:
                rest.append((known, group))
        groups = [*rest, (keys, members)]
    return [group for _, group in groups]
