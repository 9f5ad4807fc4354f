"""Loops: where the iterations of a traced program begin and end, and what they carry on.

Words
-----
loop       a loop of the bytecode, found before the program runs (see ``cycles``).
head       where an iteration begins: the twin calls a hook there, with the variables that the loop carries.
passage    one run through a loop: where on the tape each of its iterations begins, and where the last one ends.
item       what a loop gets from what it iterates over; where the body looks at it, its numbers are followed as well.
fixed      what was computed from items that are plain numbers, and nothing else: the same whenever the loop runs.
state      what the carried variables hold at a head, apart from the numbers: types, structure, bools and strings.
rigid      why a passage may only be rolled as it went: with the count of iterations and the decisions it had.

At a head each number in a carried variable gets an op ``carry(%n)``, an identity: so it is plain which variable an
iteration reads, even where two of them hold the same value, and a plain number that a loop counts with is followed.
"""

from __future__ import annotations

import bisect
import builtins
import itertools
import operator
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..rules.registry import MUTATOR, rrule
from ..rules.words import with_article
from .arrays import current
from .box import BOXES, ArrayBox, Box
from .cycles import Loop
from .errors import TraceError
from .kinds import are_one_of, has, is_one_of, isinstance
from .places import blame
from .session import Tracer
from .source import INFIX, PREFIX
from .tape import NOWHERE, Op, Site
from .text import TEXTS
from .tracebacks import steps

FRESH = frozenset((zip, enumerate, reversed))
SIZED = frozenset((range, list, tuple, dict, str))
# What the latest iterator was made from, which is not kept alive: its type, and its length or the range itself.
NO_SOURCE: tuple[Any, Any] = (None, None)
FOLLOWED = frozenset((range, list, tuple, *FRESH))  # whose items are followed
HARMLESS = frozenset(
    (
        range, len, abs, builtins.isinstance, issubclass, callable, type, id, bool, int, float, complex, str,
        repr, hash, format, min, max, sum, tuple, list, dict, set, frozenset, slice, zip, enumerate, reversed, any,
        all, sorted, iter, round, divmod, pow, getattr, hasattr, super, operator.not_, operator.truth, operator.getitem,
    )
)  # fmt: skip
STORING = frozenset(
    ("append", "pop", "insert", "clear", "reverse")
)  # methods of lists, which do nothing else
NUMBERS = frozenset((Box, int, float))
# Whose deaths nobody sees: no weak reference can be made to them, and they have no ``__del__``.
UNSEEN = NUMBERS | TEXTS | {bool, complex, str, bytes, type(None), np.float64, np.int64, np.bool_}
LATEST_LISTS = 8  # which are looked at for those that only the picks hold
MOST_TUPLES = 4096  # of which is known what they stand for
LATEST_TUPLES = 8  # of these, which are looked at in each iteration: most go soon
LONGEST_STATE = 64  # elements of a list or tuple that is carried
DEEPEST_STATE = 4  # lists and tuples in one another


class Carry:
    """The identity: what a variable holds when an iteration begins, or what an iteration is given."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, value: Any) -> Any:
        return value

    def __reduce__(self) -> str:
        return self.__name__


# ``drawn`` marks where an iteration looked at its item in a way that is not followed.
carry, item, drawn = Carry("carry"), Carry("item"), Carry("drawn")


class Pick(Carry):
    """An element of a list or tuple, at an index that is fixed: ``pick(element, index)`` is the element.

    ``items`` are the numbers that stood there when the passage looked at it first, None where it was something else;
    ``writes`` tells whether it was written to since.
    """

    def __init__(self, items: list[Any], writes: Any, passage: Any) -> None:
        super().__init__("pick")
        self.items = items
        self.writes = writes
        self.passage = passage

    def __call__(self, value: Any, index: Any = None) -> Any:
        return value

    def __reduce__(self) -> Any:
        return Pick, ([], 0, None)


class Put(Carry):
    """What an iteration appends to a list."""

    def __init__(self) -> None:
        super().__init__("put")

    def __reduce__(self) -> Any:
        return Put, ()


def is_held_once(values: tuple[Any, ...], i: int) -> bool:
    """Whether nothing but one variable, and the tuple, refers to a value."""
    probe: list[Any] = []
    return references(values, i) == references((probe,), 0)


def references(values: tuple[Any, ...], i: int) -> int:
    return sys.getrefcount(values[i])


@rrule(carry, item)
def _carry(value):  # type: ignore[no-untyped-def]
    def pullback(dz):  # type: ignore[no-untyped-def]
        return (dz,)

    return carry(value), pullback


class Passage:
    """One run through a loop, or a part of one.

    Iteration ``numbers[k]`` lies from ``heads[k]`` on; the last head begins what left the loop. Where iterations were
    dropped while the loop ran, since they were like others that are kept, there is a gap in the numbers; ``columns``
    holds what differed in them, by the place of the operand and the number of the iteration.
    """

    __slots__ = (
        "array", "before", "columns", "drawn", "dropped", "folded", "follows", "frame", "given", "growing", "grown",
        "heads", "inner", "items",
        "length", "loop", "next_look", "numbers", "puts", "range", "rigid", "saved", "start", "states", "stop", "watch",
        "writes", "written",
    )  # fmt: skip

    def __init__(self, loop: Loop, frame: FrameType | None, writes: int) -> None:
        self.loop = loop
        self.frame = frame
        self.heads: list[int] = []
        self.states: list[Any] = []
        self.numbers: list[int] = []
        self.given = 0  # ops that the latest head made
        self.length: int | None = None  # of what is iterated over
        self.stop = -1
        self.rigid = loop.rigid
        self.writes = writes
        self.written = (
            0  # how often arrays were written to: before it, and when it has ended, in it
        )
        self.inner = False  # whether other loops run inside
        self.dropped = 0
        self.columns: dict[tuple[int, int], dict[int, Any]] = {}
        self.start = 0  # the first head from which iterations may be rolled
        self.watch: Any = None  # what drops iterations while the loop runs
        self.array = (
            False  # whether it goes through the rows of a traced array, which are ops like others
        )
        self.saved: set[Op] = set()  # arrays from before it whose values survive later writes
        self.range: range | None = None  # what it goes through
        self.items = False  # whether what it goes through may be followed
        self.follows = False  # whether the numbers that an iteration is given are followed
        self.drawn = False  # whether an item was looked at otherwise
        self.growing: dict[
            int, Put
        ] = {}  # lists to which it does nothing but append, and nobody else can
        self.grown = False  # whether it did
        self.puts = False  # whether what is appended to them is followed
        self.folded = False  # whether ops of its iterations were folded into one
        self.before = 0  # iterations that were not marked
        self.next_look = 0  # at which iteration to see whether any may be dropped


# Given the loops and a passage that is running: something to call at each further head, or None.
Watch = Callable[["Loops", Passage], Any]
FIRST_LOOK = 4096  # shorter loops are no burden
MARKED = 34  # iterations to learn from, where marks begin so late


def held(entry: tuple[Any, Any]) -> int:
    """How many hold the first part of an entry."""
    return sys.getrefcount(entry[0])


UNHELD = held((tuple("-"), None))  # but for the entry


def release(entries: dict[int, Any], keys: Iterable[int]) -> list[int]:
    """Forget those that nobody else holds: their ops are to leave the tape when they can. Gives their keys."""
    gone = [key for key in keys if held(entries[key]) == UNHELD]
    for key in gone:
        del entries[key]
    return gone


def is_unseen(items: Any, depth: int = DEEPEST_STATE) -> bool:
    """Whether it is plain to see that nobody sees when a list or tuple dies, and what is in it."""
    return are_one_of(items, UNSEEN) or (
        depth > 0
        and all(
            is_one_of(type(x), UNSEEN) or (type(x) is tuple and is_unseen(x, depth - 1))
            for x in items
        )
    )


def may_be_one(x: Any, y: Any) -> bool:
    """Whether two tuples may stand for the same one, of which nobody knows it: they differ in numbers alone."""
    return not is_unseen(x) and len(x) == len(y) and all(map(may_be_same, x, y))


def may_be_same(x: Any, y: Any) -> bool:
    if type(x) is tuple is type(y):
        return x is y or may_be_one(x, y)
    return x is y or (is_one_of(type(x), NUMBERS) and is_one_of(type(y), NUMBERS))


class Loops:
    """The loops that a trace is running through (``open``) and those that it has left (``done``)."""

    def __init__(self, tracer: Tracer, watch: Watch | None = None, patience: int = 0) -> None:
        self.tracer = tracer
        self.patience = patience  # iterations of a passage that are not marked
        self.tape = tracer.tape
        self.watch = watch
        self.open: list[Passage] = []
        self.done: list[Passage] = []
        self.traced: set[Loop] = set()  # loops that work on traced values
        self.source: tuple[Any, Any] = NO_SOURCE
        self.items: Any = None  # a weak reference to that iterator
        self.picks: dict[int, Pick] = {}  # by the list
        self.lists: dict[int, tuple[Any]] = {}  # lists of which a pick is as they are now
        self.tainted = False  # whether iterators were made from iterators
        self.writes = 0  # how often something other than a variable or an array was written to
        self.elsewhere = 0  # how often that was not a list that is known
        self.tuples: dict[
            int, tuple[Any, Any]
        ] = {}  # by id: a tuple that was carried on, and the one that it stands for
        self.loose = False  # whether others were, of which nobody knows what they stand for
        # By id, how often a list was written to, or others that were there before it.
        self.stores: dict[int, int] = {}

    def close(self) -> None:
        """The run has ended: the passages no longer refer to what the loops went through."""
        self.quit(self.open)
        for passage in self.done:
            passage.frame = passage.watch = None
            passage.growing = {}
        vars(self).clear()

    def head(self, loop: Loop, frame: FrameType, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """An iteration begins: gives the carried variables ops of their own. ``values`` are all that it looks at."""
        count = len(loop.carried)
        open = self.open
        passage = open[-1] if open else None
        if passage is None or passage.loop is not loop or passage.frame is not frame:
            passage = self.enter(loop, frame, values)
        heads = passage.heads
        if passage.before < self.patience:
            passage.before += 1
            return values[:count]
        begin = len(self.tape.ops)
        if loop not in self.traced and heads and heads[-1] + passage.given < begin:
            self.traced.add(loop)
        heads.append(begin)
        passage.numbers.append(passage.numbers[-1] + 1 if passage.numbers else passage.before)
        refusal = self.tracer.refusal
        if passage.watch is not None:
            passage.watch(passage)
        elif self.watch is not None and len(heads) == passage.next_look and not passage.inner:
            passage.next_look *= 2
            passage.watch = self.watch(self, passage)
        self.tracer.refusal = refusal  # not that of an attempt which was given up
        if len(heads) == 1 and loop.growing:
            passage.growing = self.growing(values, count - loop.growing, count)
        begin = len(self.tape.ops)
        state: list[Any] = []
        carrying = Carrying(self, state, loop in self.traced, count - loop.growing > loop.stored)
        carried = [carrying.value(x) for x in values[: loop.stored]]
        rest = values[loop.stored : count]
        carried += [carrying.value(x) if type(x) is ArrayBox else x for x in rest]
        passage.puts = loop in self.traced
        if carrying.rigid is not None:
            passage.rigid = passage.rigid or carrying.rigid
        passage.given = len(self.tape.ops) - begin
        passage.follows = passage.items and loop in self.traced
        passage.states.append((passage.given, passage.follows, passage.puts, *state))
        return tuple(carried)

    def growing(self, values: tuple[Any, ...], start: int, stop: int) -> dict[int, Put]:
        """The lists among these values to which nobody but the loop can append."""
        found = {}
        for i in range(start, stop):
            own = type(values[i]) is list and id(values[i]) not in self.tracer.originals
            if own and is_held_once(values, i):
                found[id(values[i])] = Put()
        return found

    def item(self, x: Any) -> Any:
        """What an iteration is given: its numbers get ops of their own."""
        kind = type(x)
        if kind is tuple:
            return self.carried_on(x, tuple([self.item(y) for y in x]))
        if kind is Box or kind is int or kind is float:
            value = x.value if kind is Box else x
            op = Op(item, (x.op if kind is Box else x,), value, NOWHERE, self.tape)
            self.tape.ops.append(op)
            return Box(value, op)
        self.draw()
        return x

    def carried_on(self, old: Any, new: Any) -> Any:
        """A tuple goes on as another one, whose numbers have ops of their own."""
        if all(map(operator.is_, old, new)):
            return old
        if not is_unseen(old):  # if it were held, so would be what is in it
            self.loose = True
            return new
        release(self.tuples, itertools.islice(reversed(self.tuples), LATEST_TUPLES))
        if len(self.tuples) == MOST_TUPLES:
            release(self.tuples, self.tuples)
        if len(self.tuples) < MOST_TUPLES:
            self.tuples[id(new)] = new, self.same(old)
        return new

    def same(self, x: Any) -> Any:
        """The tuple that the program made, for one that may have been carried on."""
        known = self.tuples.get(id(x))
        return x if known is None else known[1]

    def are_same(self, x: Any, y: Any, site: Site) -> bool:
        """Whether two tuples are one and the same in the program."""
        if len(self.tuples) >= MOST_TUPLES and x is not y:
            raise TraceError(
                f"{blame(site)}: `is` compares tuples in a function whose loops carry thousands of them on, and "
                "cannot be followed\ncompare them with ==, or give them numbers"
            )
        if self.loose and x is not y and may_be_one(x, y):
            raise TraceError(
                f"{blame(site)}: `is` compares tuples that hold objects in a function whose loops carry such tuples "
                "on, and cannot be followed\ncompare them with ==, or give them numbers"
            )
        return self.same(x) is self.same(y)

    def pick(self, items: Any, index: Box) -> Any:
        """The element of a list or tuple at an index that is fixed."""
        x = items[index.value]
        kind = type(x)
        if kind is not Box and kind is not int and kind is not float:
            self.draw()
            return x
        pick = self.picks.get(id(items))
        writes = self.elsewhere, self.stores.get(id(items), 0)
        if pick is None or pick.writes != writes:
            passage = self.open[-1] if self.open else None
            if pick is not None and pick.passage is passage and pick.writes[0] == writes[0]:
                self.draw()  # the loop writes to the list itself
                return x
            numbers = [*items]
            if not is_unseen(items):
                if id(items) not in self.tracer.originals:
                    self.draw()  # if it were held, so would be what is in it
                    return x
                numbers = [x if is_one_of(type(x), NUMBERS) else None for x in items]
            for key in release(self.lists, itertools.islice(reversed(self.lists), LATEST_LISTS)):
                del self.picks[key]
            self.lists[id(items)] = (items,)
            pick = self.picks[id(items)] = Pick(numbers, writes, passage)
        value = x.value if kind is Box else x
        op = Op(pick, (x.op if kind is Box else x, index.op), value, NOWHERE, self.tape)
        self.tape.ops.append(op)
        return Box(value, op)

    def write(self) -> None:
        """Something is written to, other than a variable or an array."""
        self.writes += 1
        self.elsewhere += 1
        self.lists.clear()

    def store(self, items: Any) -> None:
        """A list is written to, and nothing else."""
        self.writes += 1
        key = id(items)
        self.stores[key] = self.stores.get(key, 0) + 1
        self.lists.pop(key, None)

    def draw(self) -> None:
        """What the running iterations do depends on their items in a way that is not followed."""
        for passage in self.open:
            passage.drawn = True
        ops = self.tape.ops
        if self.open and not (ops and ops[-1].fn is drawn):
            ops.append(Op(drawn, (), None, NOWHERE, self.tape))

    def look(self) -> None:
        """The running iterations look at all variables, also at those that nobody knows to be carried."""
        for passage in self.open:
            passage.rigid = passage.rigid or "it looks at all variables"
            self.keep(passage)

    def split(self, passage: Passage, at: int) -> None:
        """End a passage at one of its heads, by its index: what follows is a passage of its own."""
        part = Passage(passage.loop, None, passage.writes)
        part.heads, passage.heads = passage.heads[: at + 1], passage.heads[at:]
        part.states, passage.states = passage.states[: at + 1], passage.states[at:]
        part.numbers, passage.numbers = passage.numbers[: at + 1], passage.numbers[at:]
        part.stop, part.rigid = part.heads[-1], passage.rigid or "its iterations differ"
        part.dropped, passage.dropped = passage.dropped, 0
        part.columns, passage.columns = passage.columns, {}
        part.start, passage.start = passage.start, 0
        part.array, part.range, part.drawn = passage.array, passage.range, passage.drawn
        part.folded, part.grown = passage.folded, passage.grown
        part.saved, passage.saved = passage.saved, set()
        part.written = self.tape.written - passage.written
        passage.watch = None
        bisect.insort(self.done, part, key=attrgetter("stop"))  # it may be long over

    def hold(self) -> None:
        """From now on, all ops are kept."""
        self.watch = None
        for passage in self.open:
            self.keep(passage)

    def pin(self, start: int, why: str) -> None:
        """Another count of iterations is another path, for passages that began at ``start`` or later."""
        for passage in reversed(self.done):
            if passage.stop < start:
                break
            if passage.heads[0] >= start:
                passage.rigid = passage.rigid or why

    def keep(self, passage: Passage) -> None:
        """From now on, all iterations of a passage are kept."""
        passage.watch = None
        if passage.dropped:
            self.split(passage, len(passage.heads) - 1)

    def quit(self, passages: list[Passage]) -> None:
        """An exception has left the loops of these: what was dropped of their iterations is to be rolled."""
        for passage in passages[::-1]:
            self.keep(passage)
            passage.frame = None
            self.open.remove(passage)

    def caught(self, error: BaseException) -> None:
        """An exception has left all frames of its traceback but the first."""
        if self.open and error.__traceback__ is not None:
            left = {step.tb_frame for step in steps(error.__traceback__.tb_next)}
            self.quit([x for x in self.open if x.frame in left])

    def forget(self, start: int) -> None:
        """Ops from ``start`` on are about to be folded into one: loops among them are gone."""
        self.done[:] = [passage for passage in self.done if passage.stop <= start]
        self.open[:] = [x for x in self.open if not x.heads or x.heads[0] <= start]
        for passage in self.open:
            passage.folded = True
            self.keep(passage)

    def moved(self, gone: list[bool]) -> None:
        """Ops have been taken off the tape."""
        before = [0, *itertools.accumulate(gone)]
        for passage in self.done:
            passage.heads = [i - before[i] for i in passage.heads]
            passage.stop -= before[passage.stop]

    def enter(self, loop: Loop, frame: FrameType, seen: tuple[Any, ...]) -> Passage:
        for i in range(len(self.open) - 1, -1, -1):
            if self.open[i].loop is loop and self.open[i].frame is frame:
                self.quit(self.open[i + 1 :])
                if self.items is not None:
                    self.goes_through(self.open[i])
                return self.open[i]
        passage = Passage(loop, frame, self.writes)
        passage.written = self.tape.written
        passage.next_look = MARKED if self.patience else FIRST_LOOK
        for outer in self.open:
            outer.inner = True
            self.keep(outer)
        if loop not in self.traced and any(map(is_traced, seen)):
            self.traced.add(loop)
        if loop.counted:
            (kind, length), self.source = self.source, NO_SOURCE
            if self.items is not None and self.goes_through(passage):
                passage.items = loop.followed
            if kind is range:
                passage.range, passage.length = length, len(length)
            elif length is not None:
                passage.length, passage.array = length, kind is ArrayBox
            elif not is_one_of(kind, (zip, enumerate, reversed)) or self.tainted:
                passage.rigid = passage.rigid or "what it iterates over may depend on what it does"
        self.open.append(passage)
        return passage

    def goes_through(self, passage: Passage) -> bool:
        """Tell the latest iterator, if it is still there, which passage it belongs to."""
        items = self.items()
        self.items = None
        if items is not None:
            items.passage = passage
        return items is not None

    def iterate(self, source: Any, iterator: Iterator[Any]) -> Iterator[Any]:
        """An iterator is made from an object: the one to take instead."""
        kind = type(source)
        length = None
        if is_one_of(kind, SIZED):
            length = source if kind is range else len(source)
        elif kind is ArrayBox and source.value.ndim:
            length = len(source.value)
        self.source, self.items = (kind, length), None
        if (
            is_one_of(type(source), FOLLOWED) and sys.gettrace() is None
        ):  # a debugger would see how it ends
            items = Items(iterator, self, source if is_one_of(kind, STEPPED) else iterator)
            self.items = weakref.ref(items)
            return items
        if has(type(source), "__next__") and not is_one_of(type(source), FRESH):
            self.write()
        return iterator

    def call(self, fn: Any, rule: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Note calls that may write to something, or step an iterator; gives the arguments to call with."""
        kind = type(fn)
        if rule is not None and rule.kind != MUTATOR:
            return args
        if kind is FunctionType or kind is MethodType:
            return args
        stepping = any(
            has(kind, "__next__") and not is_one_of(kind, FRESH)
            for kind in map(type, args)
            if not is_one_of(kind, BOXES)
        )
        if stepping and kind is type and fn in FRESH:
            self.tainted = True
        if kind is BuiltinFunctionType and type(fn.__self__) is list and not stepping:
            if fn.__name__ in STORING:
                put = self.open[-1].growing.get(id(fn.__self__)) if self.open else None
                if put is not None and len(args) == 1 and fn.__name__ == "append":
                    return (self.put(put, fn.__self__, args[0]),)
                self.store(fn.__self__)
                return args
        if stepping or not ((kind is type or kind is BuiltinFunctionType) and fn in HARMLESS):
            self.write()
        return args

    def put(self, put: Put, items: list[Any], x: Any) -> Any:
        """What is appended to a list of which nothing is known but that it grows."""
        passage = self.open[-1]
        kind = type(x)
        passage.grown = True
        for outer in self.open[:-1]:
            outer.rigid = outer.rigid or "it writes to lists in loops inside it"
        if not passage.puts or (kind is not Box and kind is not float and kind is not ArrayBox):
            self.store(items)
            return x
        self.lists.pop(id(items), None)
        traced = kind is not float
        value = x.value if traced else x
        what = current(x) if kind is ArrayBox else x.op if traced else x
        op = Op(put, (what,), value, NOWHERE, self.tape)
        self.tape.ops.append(op)
        return x if kind is ArrayBox else Box(value, op)

    def leave(self, loops: Iterable[Loop], frame: FrameType) -> None:
        """Loops are left, if they were running at all: the inner ones first."""
        for loop in loops:
            for i in range(len(self.open) - 1, -1, -1):
                passage = self.open[i]
                if passage.frame is frame and passage.loop is loop:
                    if passage is not self.open[-1]:
                        self.quit(self.open[i + 1 :])
                    self.open.pop()
                    passage.stop = len(self.tape.ops)
                    passage.written = self.tape.written - passage.written
                    passage.frame = None
                    if self.writes != passage.writes:
                        passage.rigid = passage.rigid or "it writes to lists, dicts or objects"
                    if passage.heads:
                        self.done.append(passage)
                    break


# Since 3.15 CPython steps through these without an iterator.
STEPPED: frozenset[type] = frozenset((list, tuple)) if sys.version_info >= (3, 15) else frozenset()


class Items:
    """The items of a loop, followed where the loop works on traced values."""

    __slots__ = ("__weakref__", "iterator", "loops", "passage", "shown")

    def __init__(self, iterator: Iterator[Any], loops: Loops, shown: Any) -> None:
        self.iterator = iterator
        self.shown = shown  # what plain Python would have in its place
        self.loops = loops
        self.passage: Passage | None = None

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        x = next(self.iterator)
        return self.loops.item(x) if self.passage is not None and self.passage.follows else x

    def __getattr__(self, name: str) -> Any:
        """``yield from`` asks for ``send``, ``throw`` and ``close``: an iterator that has none says so itself."""
        return getattr(self.shown, name)


def handed_on(op: Op) -> Op:
    """What an op stands for that may only have been carried from one iteration to the next."""
    while isinstance(op.fn, Carry) and isinstance(op.args[0], Op):
        op = op.args[0]
    return op


def is_fixed(op: Op) -> bool:
    """Whether a value is the same whenever the loops run through the iterations that it belongs to."""
    fn = op.fn
    if fn is not item and fn not in INFIX and fn not in PREFIX and type(fn) is not Pick:
        return False
    return all(not isinstance(x, Op) or is_fixed(x) for x in op.args)


def is_traced(value: Any) -> bool:
    """Whether a value is a box, or begins with one."""
    for _ in range(DEEPEST_STATE):
        if not is_one_of(type(value), (list, tuple)) or not value:
            break
        value = value[0]
    return is_one_of(type(value), BOXES)


class Carrying:
    """Gives the numbers in the values of carried variables ops of their own."""

    __slots__ = ("loops", "numbers", "rigid", "seen", "state", "written")

    def __init__(self, loops: Loops, state: list[Any], numbers: bool, written: bool) -> None:
        self.loops = loops
        self.written = written  # whether the loop may write to arrays
        self.numbers = numbers  # whether plain numbers are followed: not before something is traced
        self.state = state
        self.seen: set[int] | None = None
        self.rigid: str | None = None

    def value(self, x: Any, depth: int = 0) -> Any:
        kind = type(x)
        tape = self.loops.tape
        if kind is Box:
            op = Op(carry, (x.op,), x.value, NOWHERE, tape)
            tape.ops.append(op)
            self.state.append(type(x.value))
            return Box(x.value, op)
        if kind is float or kind is int:
            if not self.numbers:
                self.state.append((kind,))
                return x
            op = Op(carry, (x,), x, NOWHERE, tape)
            tape.ops.append(op)
            self.state.append(kind)
            return Box(x, op)
        if kind is ArrayBox:
            memory = x.memory
            self.once(x)
            # An array from outside is carried only where it may be written to, with all the variables that hold it.
            outside = any(other is not x or not self.written for other in memory.boxes)
            if x.derivation is not None or outside or not x.value.dtype.isnative:
                self.state.append(("shared array", x.value.dtype, x.value.shape))
                return x
            op = Op(carry, (current(x),), x.value, NOWHERE, tape)
            tape.ops.append(op)
            x.op = op
            self.state.append((x.value.dtype, x.value.shape))
            return x
        if kind is tuple and len(x) <= LONGEST_STATE and depth < DEEPEST_STATE:
            self.state.append(("tuple", len(x)))
            return self.loops.carried_on(x, tuple([self.value(y, depth + 1) for y in x]))
        if (
            kind is list
            and len(x) <= LONGEST_STATE
            and depth < DEEPEST_STATE
            and id(x) not in self.loops.tracer.originals
        ):
            self.once(x)
            self.state.append(("list", len(x)))
            x[:] = [self.value(y, depth + 1) for y in x]
            return x
        if x is None or kind is bool or kind is str:
            self.state.append(x)
        elif is_one_of(kind, TEXTS):
            self.state.append(x.value)
        else:
            self.state.append(kind)
            self.rigid = f"it carries {with_article(kind.__name__)} from one iteration to the next"
        return x

    def once(self, x: Any) -> None:
        """Note that two variables hold the same list or array."""
        if self.seen is None:
            self.seen = set()
        if id(x) in self.seen:
            self.rigid = "two variables hold the same list or array"
        self.seen.add(id(x))
