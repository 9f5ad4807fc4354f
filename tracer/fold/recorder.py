"""The recorder: a run of a function is a pass over its region.

The first pass writes; a later one is compared op by op while it goes on, and where it decides otherwise than before, a
block grows there. An iteration of a loop and a call are passes of their own.

Words
-----
pass       one way through a region, from its parameters to an end.
turn       the number of a pass that goes on. A value belongs to the turn that it was made in.
stale      a value of a turn that has ended: whatever survives a pass is given another op by those who hand it on.
diverged   a pass that does other things than the region says at a place where no decision stands.
memory     a list, dict or object that the run has made (see `region`); which ops name it is kept by its identity.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ...rules import registry
from ...rules.numpy_random import served
from ...rules.words import with_article
from ..border import is_held
from ..cycles import Loop as Cycle
from ..joins import UNBOUND, names_of
from ..kinds import is_one_of
from ..places import user_site
from ..rewrite import is_twin, loose_names, original
from .region import (
    APPEND,
    DROP,
    INVOKE,
    LOOP,
    PACK,
    PARAMETER,
    POP,
    PUT,
    RESULT,
    SCOPE,
    STORE,
    Array,
    Block,
    Cell,
    Constant,
    End,
    Folded,
    Function,
    Invoke,
    Loop,
    Op,
    Reference,
    Region,
    Scope,
    Take,
    inner,
    is_looked_into,
    is_number,
    is_of_numpy,
    is_stream,
    kind_of,
    results_of,
)

WHOLE = -1  # the turn of what has its value before the first pass begins, which never ends
MOST_NAMES = 8  # of one memory, before those of turns that have ended are dropped
# What a state has by identity.
FIXED = (
    FunctionType,
    BuiltinFunctionType,
    ModuleType,
    type,
    np.ufunc,
    np.dtype,
    type(np.dot),
    Enum,
)
WRITES = frozenset((STORE, APPEND, POP, PUT, DROP))
ARRAY = np.ndarray  # whose type says more than its class
PLAIN = frozenset((bool, str, bytes, type(None), type(...)))  # which a state has by value
# What makes no state of its own, but is a value of the run: bools in variables and memories, and texts in tuples there.
BOOLS, TEXTS = 1, 2
HEADS = 256  # of loops, and calls, after which a run looks whether it may go on
METHOD = object()  # what the state of a method begins with, which is to others a tuple
UNKNOWN: type = type("Unknown", (), {})  # the type of an op that has only raised
Variables = tuple[CodeType, Sequence[int]]  # of a code object by number; -1 for what is none
CAUGHT = (ArithmeticError, ValueError, LookupError)  # of ops, at which a pass may go on elsewhere


class Unfolded(BaseException):
    """Why a run is not folded; remembered, whatever the program makes of it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        if active.recorder is not None:
            active.recorder.refusal = active.recorder.refusal or self


class Passing(Unfolded):
    """Why this very run is not folded; the next one may be."""


class Rewritten(Passing):
    """What was followed as a value is more than that (an array is written to): the run has to be recorded anew."""


class Active:
    """The recording that goes on: one at a time, under a lock."""

    recorder: Recorder | None = None


active = Active()


class Box:
    """A number of the run: its value, the op that stands for it, and the turn that it belongs to."""

    __slots__ = ("op", "turn", "value")

    def __init__(self, value: Any, op: Op, turn: int) -> None:
        self.value = value
        self.op = op
        self.turn = turn

    def __bool__(self, *_: Any) -> bool:
        raise Unfolded("a number is looked at where that is not followed")

    __float__ = __int__ = __index__ = __iter__ = __eq__ = __hash__ = __bool__  # type: ignore[assignment]


class Loose:
    """A bool or a text on the way from one pass to another, that makes no state of its own: only its class does."""

    __slots__ = ("value",)

    def __init__(self, value: bool | str) -> None:
        self.value = value


class Packed:
    """A tuple that is put into a memory, by the op that makes it."""

    __slots__ = ("op",)

    def __init__(self, op: Op) -> None:
        self.op = op


class Pass:
    """A pass that goes on: of which loop, scope or call, in which frame, and what it came from."""

    __slots__ = ("around", "at", "node", "of", "owner", "turn")

    def __init__(
        self, node: Any, of: Any, owner: Any, at: tuple[Block, int], around: Region, turn: int
    ) -> None:
        self.node = node
        self.of = of  # a loop of the bytecode, a fork, or the code of a function
        self.owner = owner  # the frame, of a loop
        self.at = at  # where the op stands: what follows is recorded behind it
        self.around = around  # the region that it stands in
        self.turn = turn  # of the pass around it


class Recorder:
    """One run over what is known of a function.

    ``grown`` counts what this run has added.
    """

    def __init__(self, folded: Folded, outside: Any, hooks: Any, written: set[Any]) -> None:
        self.folded = folded
        self.written = written  # under which keys arrays are made that some run writes to
        self.made: dict[int, tuple[Any, Any]] = {}  # arrays of this run with the keys, by identity
        self.kept: set[Any] = set()  # the keys of those that were put into memories as values
        self.outside = outside  # see `outside.Outside`
        self.hooks = hooks  # with which functions are instrumented
        self.twins: dict[int, tuple[Any, Any]] = {}  # of functions, by their identity
        self.noted: dict[tuple[int, str], Any] = {}  # globals, by the id of their module's and name
        self.block = folded.region.root
        self.ops = self.block.ops
        self.i = 0
        self.region: Region = folded.region
        self.visible = {folded.region, folded.outside}
        self.open: list[Pass] = []
        self.memories: dict[int, tuple[list[tuple[Op, int]], Any]] = {}
        self.given: set[int] = set()  # memories from outside, among them arguments
        self.of_arguments: set[int] = set()  # those that are arguments, or lie in them
        self.copied: set[int] = set()  # those that stand for others
        # Dicts that were copied, and what they held: others may change them while the run waits for that in a loop.
        self.copies: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        self.tuples: set[int] = set()  # see `Known`
        self.heads = 0
        self.until = math.inf  # seconds of this thread's work, at which the run is given up
        self.sealed: set[int] = set()  # those that a generator may not look at (see `generators`)
        self.untouched: frozenset[int] | None = None  # those that nobody may write to just now
        self.outer: dict[int, frozenset[int] | None] = {}  # what those were, by who collects now
        self.lazy: set[CodeType] = set()  # generator expressions of which items may be left
        self.yielded: set[int] = set()  # lists of what generators have given
        # Of the generators that run: what they have given, and how much that may be.
        self.giving: list[tuple[list[Any], int]] = []
        self.generators: list[tuple[Any, bool]] = []  # see `generators.settled`
        self.iterators: frozenset[type] = frozenset()  # the classes of what is gone through once
        self.entered: list[
            tuple[Any, FrameType]
        ] = []  # managers, in the frames that will leave them
        self.limits: dict[CodeType, int] = {}  # how much generators give
        self.inputs: dict[Op, Box] = {}  # numbers and arrays that were read from outside
        self.looked_into: dict[type, bool] = {}  # classes that were met in memories
        self.usual: set[tuple[type, str]] = set()  # see `attributes.check_access`
        self.turn = 0
        self.turns = {0, WHOLE}
        self.suspended: set[int] = set()  # turns of callers of a function that calls itself
        self.latest = 0
        self.floor = 0  # how many passes go on around the function that runs
        self.codes: list[CodeType] = []  # of the functions that go on
        self.iterable: Box | None = None  # what the next counted loop goes through
        self.began = folded.size
        self.moved: dict[Block, list[tuple[int, Block]]] = {}  # see `split`
        self.error: Exception | None = None  # in which the latest call has ended
        self.importing = False  # whether something is imported right now
        self.loose = TEXTS  # what makes no state of its own
        self.met = 0  # which of these were met
        self.watched = False  # whether a floating-point event raises (see `arrays`)
        self.streams: dict[int, Any] = {}  # those of the run's own, by identity (see `streams`)
        self.log: list[tuple[Any, Any]] = []  # of each draw what was called, and what it gave
        self.served: list[tuple[Any, Any]] = []  # what the call has drawn before this pass
        self.refusal: Unfolded | None = None  # whatever the program makes of it

    @property
    def grown(self) -> int:
        return self.folded.size - self.began

    def is_within(self, turn: int) -> bool:
        """Whether a turn goes on, and no loop has begun in it that goes on."""
        here = self.turn
        for around in reversed(self.open):
            if here == turn or isinstance(around.of, Cycle):
                break
            here = around.turn
        return here == turn

    # Operands

    def operand(self, x: Any) -> Any:
        """A value as an operand of an op that is about to be written."""
        if type(x) is Box:
            if x.turn not in self.turns or x.op.now is not x or x.op.home not in self.visible:
                raise Unfolded("a value is used behind the pass that made it")
            return x.op
        if type(x) is Packed:
            return x.op
        known = self.memories.get(id(x))
        if known is not None:
            ops = [op for op, turn in reversed(known[0]) if turn in self.turns]
            ops = [op for op in ops if op.home in self.visible]
            if not ops:
                raise Unfolded("a container is used behind the pass that knew it")
            return Reference([*dict.fromkeys(ops)])
        return x if type(x) in NUMBERS or type(x) in PLAIN else self.constant(x)

    def constant(self, x: Any) -> Constant:
        known = self.folded.constants.get(id(x))
        if known is None:
            known = self.folded.constants[id(x)] = Constant(x)
        return known

    def same(self, known: Any, x: Any) -> bool:
        """Whether a value is what an operand says."""
        kind = type(x)
        if kind is Box:
            return x.op is known and known.now is x
        if kind in NUMBERS or kind in PLAIN:
            return (
                type(known) is kind and known == x and (kind is not float or same_float(known, x))
            )
        if kind is Packed:
            return known is x.op
        names = self.memories.get(id(x))
        if names is None:
            return type(known) is Constant and known.value is x
        if type(known) is not Reference:
            return False
        turns = self.turns
        if len(known.ops) == 1:
            (op,) = known.ops
            for other, turn in reversed(names[0]):
                if other is op and turn in turns:
                    return True
            return False
        found = {op for op, turn in names[0] if turn in turns and op.home in self.visible}
        ops = [op for op in known.ops if op in found]
        if ops and len(ops) < len(known.ops):
            known.ops = ops
            self.folded.size += 1  # a program that asks for more is to be written anew
        return bool(ops)

    def name(self, memory: Any, op: Op, turn: int | None = None) -> Any:
        """From here on in this turn the memory is known by this op as well."""
        names, _ = self.memories.setdefault(id(memory), ([], memory))
        if len(names) > MOST_NAMES:
            names[:] = [x for x in names if x[1] in self.turns or x[1] in self.suspended]
        names.append((op, self.turn if turn is None else turn))
        return memory

    def admit(self, x: Any, of_argument: bool) -> None:
        """A memory from outside is met; it is known whether they are arguments, or lie in those."""
        if id(x) not in self.memories:
            self.memories[id(x)] = [], x
            self.given.add(id(x))
            if of_argument:
                self.of_arguments.add(id(x))
        elif of_argument is not (id(x) in self.of_arguments):
            what = with_article(type(x).__name__)
            raise Passing(f"{what} that is an argument is read from outside as well")

    def admit_inside(self, x: Any, owner: Any) -> None:
        """The same of what lies in a memory, if that is from outside, or a copy of such a one."""
        if type(x) is tuple:
            if id(owner) in self.given:
                self.tuples.add(len(x))
            for y in x:
                self.admit_inside(y, owner)
        elif id(x) not in self.memories or id(owner) in self.given:
            kind = type(x)
            if issubclass(kind, BaseException) and id(x) not in self.memories:
                raise Unfolded(f"{with_article(kind.__name__)} from outside is read")
            if kind not in self.looked_into:
                self.looked_into[kind] = is_looked_into(kind)
            if self.looked_into[kind] and (kind is not list or id(owner) in self.given):
                self.admit(x, id(owner) in self.of_arguments)

    # Ops

    def add(
        self,
        key: Any,
        fn: Any,
        args: Sequence[Any],
        kind: type,
        make: Callable[[tuple[Any, ...]], Op] | None = None,
    ) -> Any:
        """The op at this place: compared, or written."""
        if self.sealed and any(id(x) in self.sealed for x in args):
            raise Unfolded("what a generator or a key of a sort reads may be changed meanwhile")
        if self.untouched is not None and type(fn) is str and fn in WRITES:
            if fn == PUT or id(args[0]) in self.untouched:
                raise Unfolded("a generator writes what it may not be asked for")
        i = self.i
        if i < len(self.ops):
            op = self.ops[i]
            if (
                op.key == key
                and op.fn is fn
                and (op.type is kind or kind is UNKNOWN or op.type is UNKNOWN)
                and len(op.args) == len(args)
            ):
                same = self.same
                for known, x in zip(op.args, args, strict=True):
                    if (x.op is known and known.now is x) if type(x) is Box else same(known, x):
                        continue
                    raise self.differs(op, fn, kind, known, x)
                self.i = i + 1
                if op.type is UNKNOWN:
                    op.type = kind
                return op
            raise self.differs(op, fn, kind)
        if self.block.subject is not None or self.block.end is not None:
            raise Unfolded("it goes on where it ended")
        if type(fn) is not str and registry.is_users(fn):
            raise Unfolded(f"{called(fn)} has a rule of the user's")
        operands = tuple([self.operand(x) for x in args])
        op = make(operands) if make is not None else Op(key, fn, operands, kind, self.region)
        self.ops.append(op)
        self.i = i + 1
        self.folded.size += 1
        return op

    def differs(self, op: Op, fn: Any, kind: Any, known: Any = None, x: Any = None) -> Unfolded:
        """What to say where an op is not the one that stands there; of an operand, which one was ``known``."""
        if op.fn is not fn:
            what = f"{called(fn)} where it was {called(op.fn)}"
        elif op.type is not kind and UNKNOWN not in (op.type, kind):
            what = f"{called(fn)} gives {with_article(kind.__name__)} where it gave {with_article(op.type.__name__)}"
        elif known is None:
            what = f"{called(fn)} is done by another instruction, or of another number of operands"
        else:
            what = f"{called(fn)} of {shown(x)} where it was of {shown(known)}"
        return Unfolded(
            f"it does other things where it decided alike ({user_site().place}): {what}"
        )

    def value(self, key: Any, fn: Any, args: Sequence[Any], value: Any) -> Box:
        """The value of an op, boxed."""
        kind = type(value)
        op = self.add(key, fn, args, kind if kind is not ARRAY else kind_of(value))
        box = op.now = Box(value, op, self.turn)
        return box

    def read_only(self, x: Any, op: Any = None, turn: int | None = None) -> Box:
        """An array or a number of NumPy's in a box, which has nobody write to it.

        Such a call is traced where NumPy is told to do otherwise about floating-point events than by itself.
        """
        if not self.watched:
            raise Passing("NumPy's handling of floating-point errors was changed")
        if type(x) is np.ndarray:
            x = x.view()
            x.flags.writeable = False
        return Box(x, op, self.turn if turn is None else turn)

    def drawn(self, fn: Any, args: Any, kwargs: Any) -> Any:
        """What a draw gives: it is made once in a call, however often the call is begun anew."""
        if self.served:
            known = served(self.served[0], fn, args)
            if not known:
                raise Passing("it has drawn something else before")
            self.served.pop(0)
            self.log.append((fn, known[0]))
        else:
            self.log.append((fn, self.plainly(fn, args, kwargs)))
        return self.log[-1][1]

    def plainly(self, fn: Any, args: Any, kwargs: Any) -> Any:
        """What a function in C gives; what it raises is left to the trace."""
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            raise Passing(f"{fn.__name__} raises {with_article(type(error).__name__)}") from None

    def as_memory(self, box: Box) -> None:
        """An array that this run has made, or a view of one, has to be a memory: it is recorded anew."""
        key = self.made_at(box)
        if key is not None:
            self.written.add(key)
            raise Rewritten("an array is written to")

    def made_at(self, box: Box) -> Any:
        """The key under which this run has made an array, or that of which it is a view; None if it has not."""
        memory = getattr(box.value, "base", None)
        key, made = self.made.get(id(memory), (None, None))
        return key if made is not None and made() is memory else None

    def packed(self, key: Any, x: Any) -> Any:
        """A value as a memory holds it: of a tuple, an op that makes it.

        Where some arrays are written to, all that the run makes and puts into memories are taken for such: it is
        recorded anew when it has come to its end (see `run`).
        """
        if type(x) is Box and type(x.value) is ARRAY and (at := self.made_at(x)) is not None:
            self.kept.add(at)
        if type(x) is not tuple:
            if type(x) is Box or type(x) in NUMBERS or type(x) in PLAIN or id(x) in self.memories:
                return x
            if not is_made(x) and type(x) is not MethodType:
                if issubclass(type(x), FIXED):  # which is one object in all passes
                    return x
                raise Unfolded(f"{with_article(type(x).__name__)} is put into a container")
        found: list[Any] = []
        state = self.flat(self.held(x), found)
        return Packed(self.add((key, "pack", state), PACK, found, tuple))

    def taken(self, key: Any, fn: str, args: Sequence[Any], x: Any) -> Any:
        """What a load or a pop gives: a number or a memory, mostly of one type."""
        if len(args) > 1 and id(args[0]) in self.given and issubclass(type(args[0]), dict):
            if is_of_numbers(args[1]):
                raise Unfolded("a dict outside is asked by a number")  # see `tracer.memos`
        if type(x) is not Box and is_of_numpy(x):  # in an argument
            x = self.read_only(x)
        kind = kind_of(x.value if type(x) is Box else x)
        if kind not in NUMBERS and kind not in PLAIN:
            self.admit_inside(x, args[0])
        here = self.ops[self.i] if self.i < len(self.ops) else None
        value = kind is str or is_stream(kind) or (kind is bool and self.loose >= BOOLS)
        plain = is_number(kind) or value or id(x) in self.memories
        if value and type(x) is not Box:
            self.met = max(self.met, BOOLS * (kind is bool))
            x = Box(x, None, self.turn)  # type: ignore[arg-type]  # which is rebuilt
        if type(here) is not Take and plain and (here is None or here.type is kind):
            op = self.add(key, fn, args, kind)
            return self.rebuilt(x, iter((op,)))
        if here is not None and type(here) is not Take and here.key == key and here.fn == fn:
            self.split(here)
        node = self.add(key, fn, args, object, lambda given: Take(key, fn, given, self.region))
        found: list[Any] = []
        x = self.held(x)
        state = self.flat(x, found)
        return self.results(node, state, [x], found)[0]

    def split(self, op: Op) -> None:
        """Something else is taken than before: what it was then is one of several states."""
        block, i = self.block, self.i
        rest = Block()
        rest.ops, rest.subject, rest.cases, rest.end = (
            block.ops[i + 1 :],
            block.subject,
            block.cases,
            block.end,
        )
        node = Take(op.key, op.fn, op.args, op.home)
        node.exits, op.exits = op.exits, {}
        node.results[op.type] = [op]
        op.key, op.fn, op.args = None, RESULT, ()
        block.ops = self.ops = [*block.ops[:i], node]
        block.subject, block.cases, block.end = node, {op.type: rest}, None
        self.moved.setdefault(block, []).append((i, rest))
        self.folded.size += 1

    def born(self, key: Any, fn: Any, args: Sequence[Any], memory: Any) -> Any:
        """A memory that an op has made, or that a load has given."""
        return self.name(memory, self.add(key, fn, args, kind_of(memory)))

    def failed(self, key: Any, fn: Any, args: Sequence[Any], error: Exception) -> None:
        """An op has raised: this pass goes on beside it. What NumPy raises is left to the trace."""
        if any(type(x) is Box and is_of_numpy(x.value) for x in args):
            raise Passing(f"NumPy raises {with_article(type(error).__name__)}")
        if not isinstance(error, CAUGHT):
            raise Unfolded(f"{with_article(type(error).__name__)} is raised")
        op = self.add(key, fn, args, UNKNOWN)
        op.now = None
        self.go(op.exits, type(error))

    # Decisions

    def go(self, cases: dict[Any, Block], outcome: Any) -> None:
        """On to the block that stands for an outcome."""
        block = cases.get(outcome)
        if block is None:
            block = cases[outcome] = Block()
            self.folded.size += 1
        self.at(block)

    def at(self, block: Block, i: int = 0) -> None:
        self.block, self.ops, self.i = block, block.ops, i

    def back_to(self, block: Block, i: int) -> None:
        """Where it stood before: what was split since then has moved what follows."""
        todo = [*self.moved.get(block, ())] if self.moved else []
        while todo:
            at, rest = todo.pop(0)
            if i > at:
                block, i = rest, i - at - 1
                todo = [*self.moved.get(block, ())]
        self.at(block, i)

    def decide(self, subject: Any, outcome: Any) -> Any:
        """The way that this pass goes depends on the outcome."""
        block = self.block
        if self.i != len(self.ops) or block.end is not None:
            raise Unfolded("it decides where it did something")
        if block.subject is not subject:
            if block.subject is not None:
                raise Unfolded("it decides on something else")
            block.subject = subject
        following = block.cases.get(outcome)
        if following is None:
            self.go(block.cases, outcome)
        else:
            self.block, self.ops, self.i = following, following.ops, 0
        return outcome

    def close(self) -> None:
        """The pass is over, perhaps in the middle: what it has met is held no longer."""
        for going in self.open:
            going.owner = None
        vars(self).clear()

    def finish(self, kind: str, state: Any, values: Sequence[Any]) -> None:
        """The pass ends; ``values`` survive it."""
        block = self.block
        if self.i != len(self.ops) or block.subject is not None:
            raise Unfolded("it ends where it went on")
        if block.end is None:
            block.end = End(kind, state, [self.operand(x) for x in values])
            self.folded.size += 1
            return
        if (block.end.kind, block.end.state) != (kind, state):
            raise Unfolded("it ends otherwise")
        if not all(map(self.same, block.end.outs, values)):
            raise Unfolded("something else survives")

    # What survives

    def flat(self, x: Any, found: list[Any]) -> Any:
        """The state of a value; its numbers and memories are added to ``found``."""
        kind = type(x)
        if kind is Box:
            found.append(x)
            kind = type(x.value)
            return kind if kind is not ARRAY else kind_of(x.value)
        if kind is Loose:
            found.append(x.value)
            return type(x.value)
        if kind is int or kind is float:
            found.append(x)
            return kind
        if kind is tuple:
            return ("tuple", *[self.flat(y, found) for y in x])
        if id(x) in self.memories:
            found.append(x)
            return kind if kind is not Array else kind_of(x)
        if kind in PLAIN:
            return ("value", x)
        if is_made(x):
            code = ("object", id(self.constant(x.__code__).value))
            return ("tuple", code, *[self.flat(y, found) for y in held_in(x)])
        if kind is MethodType:
            parts = [("object", id(self.constant(y).value)) for y in (METHOD, x.__func__)]
            return ("tuple", *parts, self.flat(x.__self__, found))
        if issubclass(type(x), BaseException):  # of which nothing is known but its class
            return ("error", kind)
        if issubclass(type(x), FIXED) or x is UNBOUND:
            return ("object", id(self.constant(x).value))
        raise Unfolded(f"{with_article(kind.__name__)} is kept in a variable")

    def rebuilt(self, x: Any, ops: Iterator[Op]) -> Any:
        """The same value, with these ops for what was found in it."""
        kind = type(x)
        if kind is Box or kind is int or kind is float or kind is Loose:
            op = next(ops)
            value = x.value if kind is Box or kind is Loose else x
            box = op.now = Box(value, op, self.turn)
            return box
        if kind is tuple:
            return tuple([self.rebuilt(y, ops) for y in x])
        if id(x) in self.memories:
            self.name(x, next(ops))
        elif is_made(x):
            return made_again(x, [self.rebuilt(y, ops) for y in held_in(x)])
        elif kind is MethodType:
            return MethodType(x.__func__, self.rebuilt(x.__self__, ops))
        return x

    def loosened(self, x: Any) -> Any:
        """The value of a variable as it is handed on where ways meet."""
        if type(x) is not bool or self.loose < BOOLS:
            return x
        self.met = max(self.met, BOOLS)
        return Loose(x)

    def held(self, x: Any) -> Any:
        """A tuple as a memory holds it."""
        if type(x) is tuple:
            return tuple(map(self.held, x))
        if type(x) is not Box and is_of_numpy(x):  # in an argument
            return self.read_only(x)
        if type(x) is not str or self.loose < TEXTS:
            return self.loosened(x)
        self.met = TEXTS
        return Loose(x)

    def fresh(
        self, fn: str, values: Sequence[Any], home: Any, names: Sequence[str | None] = ()
    ) -> list[Op]:
        """An op for each of the values, in a region; ``names`` are the user's variables."""
        kinds = [kind_of(x.value if type(x) is Box else x) for x in values]
        names = names or [None] * len(kinds)
        return [Op(name, fn, (), kind, home) for name, kind in zip(names, kinds, strict=True)]

    def named(self, values: Sequence[Any], variables: Variables | None) -> list[str | None]:
        """For each number and memory in the values of variables the name, or None where it is a part of one."""
        if variables is None:
            return []
        code, numbers = variables
        known = names_of(original(code))
        out: list[str | None] = []
        for x, number in zip(values, numbers, strict=True):
            found: list[Any] = []
            self.flat(x, found)
            whole = len(found) == 1 and 0 <= number < len(known)
            out += [known[number]] if whole else [None] * len(found)
        return out

    # Passes

    def push(self) -> int:
        """A turn begins; gives the one around it."""
        before = self.turn
        self.latest += 1
        self.turn = self.latest
        self.turns.add(self.turn)
        return before

    def pop(self, before: int) -> None:
        self.turns.discard(self.turn)
        self.turn = before

    def begin(self, node: Any, of: Any, owner: Any = None) -> Pass:
        """A loop or a scope begins at the op that was just added."""
        here = Pass(node, of, owner, (self.block, self.i), self.region, self.push())
        self.open.append(here)
        return here

    def enter(self, region: Region) -> None:
        """Into a region of the pass that has just begun."""
        self.region = region
        self.visible.add(region)
        self.at(region.root)

    def end(self, kind: str, state: Any, values: Sequence[Any]) -> Any:
        """The innermost loop or scope is left; gives its op."""
        self.finish(kind, state, values)
        here = self.open.pop()
        self.pop(here.turn)
        self.visible.discard(self.region)
        self.region = here.around
        self.back_to(*here.at)
        return here.node

    def results(
        self,
        node: Any,
        state: Any,
        values: Sequence[Any],
        found: list[Any],
        variables: Variables | None = None,
    ) -> list[Any]:
        """What goes on behind a loop, scope or call: ops for each state."""
        self.decide(node, state)
        ops = node.results.get(state)
        if ops is None:
            names = self.named(values, variables)
            ops = node.results[state] = self.fresh(RESULT, found, self.region, names)
        following = iter(ops)
        return [self.rebuilt(x, following) for x in values]

    def closed(
        self,
        values: Sequence[Any],
        kind: str = "return",
        what: Any = 0,
        variables: Variables | None = None,
    ) -> list[Any]:
        """The innermost scope ends with these values: they go on as its results."""
        found: list[Any] = []
        state = (what, *[self.flat(x, found) for x in values])
        node = self.end(kind, state, found)
        return self.results(node, state, values, found, variables)

    # Loops

    def head(
        self, cycle: Cycle, frame: FrameType, values: tuple[Any, ...], key: Any
    ) -> tuple[Any, ...]:
        """An iteration begins: gives the carried variables ops of their own."""
        self.heads += 1
        if not self.heads % HEADS:
            self.must_go_on()
        count = cycle.stored
        carried, found = [*map(self.loosened, values[:count])], []  # type: ignore[var-annotated]
        state = tuple([self.flat(x, found) for x in carried])
        here = self.open[-1] if self.open else None
        if here is not None and here.of is cycle and here.owner is frame:
            self.finish("next", state, found)
            self.visible.discard(self.region)
            self.pop(here.turn)
            self.push()
        else:
            source, self.iterable = self.iterable, None
            counted = cycle.counted
            given = [*found, source] if counted else found
            if counted and source is None:
                raise Unfolded("it loops over something that is not followed")
            node = self.add(
                key, LOOP, given, object, lambda args: Loop(key, args, self.region, counted)
            )
            here = self.begin(node, cycle, frame)
        body = here.node.bodies.get(state)
        if body is None:
            body = here.node.bodies[state] = Region()
            names = self.named(carried, (frame.f_code, cycle.carried[:count]))
            body.parameters = self.fresh(PARAMETER, found, body, names)
        self.enter(body)
        ops = iter(body.parameters)
        return (*[self.rebuilt(x, ops) for x in carried], *values[count:])

    def must_go_on(self) -> None:
        """Raise where there is no sense in going on."""
        if not all(itertools.starmap(is_held, self.copies)):
            raise Passing("an argument is changed behind the run")
        if time.thread_time() > self.until:
            raise Unfolded("recording it takes far longer than tracing it")

    def begins(self) -> bool:
        """Whether an iteration of a counted loop has just begun."""
        here = self.open[-1] if self.open else None
        at_root = self.i == 0 and self.block is self.region.root
        return at_root and here is not None and type(here.node) is Loop and here.node.counted

    def leave(
        self,
        cycles: Sequence[Cycle],
        frame: FrameType,
        names: tuple[int, ...],
        values: Sequence[Any],
        exit: int,
        pushed: int,
    ) -> list[Any]:
        """Loops are left, if they were running: the inner ones first. What is ``pushed`` comes before others."""
        out = list(values)
        for cycle in cycles:
            here = self.open[-1] if self.open else None
            if here is None or here.of is not cycle or here.owner is not frame:
                continue
            left = cycle.left.get(exit, ())
            own = [*range(pushed), *[k for k, v in enumerate(names, pushed) if v in left]]
            given = [self.loosened(out[k]) for k in own]
            given += [x for x, of in self.entered if of is frame]
            found: list[Any] = []
            state = (exit, *[self.flat(x, found) for x in given])
            node = self.end("leave", state, found)
            numbers = [names[k - pushed] if k >= pushed else -1 for k in own]
            variables = frame.f_code, numbers + [-1] * (len(given) - len(own))
            kept = self.results(node, state, given, found, variables)
            for k, x in zip(own, kept, strict=False):
                out[k] = x
        return out

    # Scopes

    def scope(self, key: Any, of: Any, frame: FrameType | None = None) -> None:
        """A call begins, or a decision whose ways meet again."""
        node = self.add(key, SCOPE, (), object, lambda _: Scope(key, self.region, of))
        if node.name is not of:
            raise Unfolded("another function is called")
        self.begin(node, of, frame)
        self.enter(node.region)

    def join(
        self, forks: Any, names: tuple[int, ...], pushed: int, values: Any, frame: FrameType
    ) -> list[Any]:
        """The ways of decisions meet here: gives the variables ops of their own."""
        out = list(values)
        while self.open and self.open[-1].of in forks and self.open[-1].owner is frame:
            stored = self.open[-1].of.stored
            own = [*range(pushed), *[k + pushed for k, v in enumerate(names) if v in stored]]
            variables = frame.f_code, [names[k - pushed] if k >= pushed else -1 for k in own]
            left = self.closed([self.loosened(out[k]) for k in own], variables=variables)
            for k, x in zip(own, left, strict=True):
                out[k] = x
        return out

    def unwind(
        self,
        depth: int,
        error: BaseException,
        values: Sequence[Any] = (),
        frame: FrameType | None = None,
        handler: int = -1,
    ) -> list[Any]:
        """Leave the passes that an exception has left: those of other frames, and that are not around the handler."""
        if self.importing:
            raise Unfolded("an import fails")
        out = [error, *values]
        while len(self.open) > depth:
            here = self.open[-1]
            if here.owner is frame is not None and handler in around(here.of):
                break
            if here.owner is not None and here.owner.f_code in self.lazy:
                raise Passing(
                    f"a generator raises {with_article(type(error).__name__)}, perhaps unasked"
                )
            found: list[Any] = []
            own = tuple([k for k, x in enumerate(out) if not self.outlives(x)])
            state = (type(error), own, *[self.flat(out[k], found) for k in own])
            node = self.end("leave" if type(here.node) is Loop else "raise", state, found)
            kept = self.results(node, state, [out[k] for k in own], found)
            for k, x in zip(own, kept, strict=True):
                out[k] = x
        return out[1:]

    def outlives(self, x: Any) -> bool:
        """Whether a value consists of numbers of passes around the one that is left."""
        if type(x) is tuple:
            return bool(x) and all(map(self.outlives, x))
        return type(x) is Box and x.turn != self.turn

    # Calls

    def call(
        self,
        key: Any,
        fn: FunctionType,
        run: Callable[..., Any],
        args: tuple[Any, ...],
        shared: bool = False,
    ) -> Any:
        """Run the instrumented copy ``fn`` of a function as a pass of its own.

        It has one region for all its calls if it calls itself, or is ``shared``.
        """
        self.heads += 1
        if not self.heads % HEADS:
            self.must_go_on()
        code = fn.__code__
        if shared or code in self.codes:
            return self.invoke(key, fn, run, args)
        self.scope(key, code)
        self.codes.append(code)
        try:
            kind, state, out = self.ran(run, args)
        finally:
            self.codes.pop()
        found: list[Any] = []
        state = (state, *[self.flat(x, found) for x in out])
        node = self.end(kind, state, found)
        return self.answer(self.results(node, state, out, found))

    def ran(self, run: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any, list[Any]]:
        """Run a function to its end: how it ended, in what, and with which result."""
        self.error, floor = None, self.floor
        depth = self.floor = len(self.open)
        try:
            result = run(*args)
        except Exception as error:
            if isinstance(error, (RecursionError, MemoryError)):
                raise Unfolded(f"{with_article(type(error).__name__)} is raised") from None
            self.unwind(depth, error)
            self.error, self.floor = error, floor
            return "raise", type(error), [error]
        if len(self.open) != depth:
            raise Unfolded("a function is left within a loop")
        self.floor = floor
        return "return", 0, [self.loosened(result)]

    def answer(self, out: list[Any]) -> Any:
        """The result of the call that has just ended, or what it has raised."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        return out[0]

    def everything(self, function: Function) -> list[Op]:
        """Every op of a function's region, and of the regions inside it."""
        if function.size != self.folded.size:
            function.size = self.folded.size
            function.ops = []
            todo: list[Region] = [function]
            while todo:
                one = todo.pop()
                function.ops += one.parameters
                for block in one.root.tree():
                    for op in block.ops:
                        function.ops += (op, *results_of(op))
                        todo += inner(op)
        return function.ops

    def captured(self, fn: FunctionType, cells: dict[int, CellType], seen: set[Any]) -> Any:
        """The constants that a function finds in its cells and defaults, and those that functions in them find.

        ``cells`` gets those that hold what is followed: numbers, and what the run has made.
        """
        defaults = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        found: list[Any] = [self.described(x, cells, seen) for x in defaults]
        for cell in fn.__closure__ or ():
            try:
                x = cell.cell_contents
            except ValueError:
                found.append(CellType)
                continue
            if type(x) is Box or type(x) in NUMBERS or type(x) is tuple or id(x) in self.memories:
                cells[id(cell)] = cell
                found.append(("cell", [*cells].index(id(cell))))
            else:
                found.append(self.described(x, cells, seen))
        return tuple(found)

    def described(self, x: Any, cells: dict[int, CellType], seen: set[Any]) -> Any:
        """A constant, to the bit; of numbers and memories, which a function may not use from outside, the class."""
        kind = type(x)
        if kind in NUMBERS or kind in PLAIN:
            return kind, repr(x)
        if kind is tuple:
            return kind, *[self.described(y, cells, seen) for y in x]
        if kind is FunctionType and is_twin(x.__code__):  # others have cells that are the user's
            if x in seen:
                return kind, x.__code__
            seen.add(x)
            return kind, x.__code__, self.captured(x, cells, seen)
        if kind is Box or id(x) in self.memories:
            return kind
        return id(self.constant(x).value)

    def invoke(
        self, key: Any, fn: FunctionType, run: Callable[..., Any], args: tuple[Any, ...]
    ) -> Any:
        """A function with a region of its own, which uses nothing from outside but constants, for all its calls.

        What it has captured is given to it like its arguments.
        """
        code = fn.__code__
        found: list[Any] = []
        cells: dict[int, CellType] = {}
        constants = self.captured(fn, cells, {fn})
        held = [cell.cell_contents for cell in cells.values()]
        state = (constants, *[self.flat(x, found) for x in (*args, *held)])
        known = self.folded.functions.get((code, state))
        if known is None:
            known = self.folded.functions[code, state] = Function(code)
            numbers = [*range(len(args)), *[-1] * len(held)]
            names = self.named((*args, *held), (code, numbers))
            known.parameters = self.fresh(PARAMETER, found, known, names)
        function = known
        node = self.add(
            key, INVOKE, found, object, lambda given: Invoke(key, given, self.region, function)
        )
        if node.function is not function:
            raise Unfolded("another function is called")
        saved = [(op, op.now) for op in self.everything(function)] if function.running else []
        around = self.block, self.i, self.region, self.visible, self.turns, self.turn
        self.suspended |= self.turns
        self.latest += 1
        self.turn, self.turns = self.latest, {self.latest, WHOLE}
        self.visible = {self.folded.outside}
        function.running += 1
        self.enter(function)
        ops = iter(function.parameters)
        given = tuple([self.rebuilt(x, ops) for x in args])
        for cell, x in zip(cells.values(), held, strict=True):
            cell.cell_contents = self.rebuilt(x, ops)
        kind, how, out = self.ran(run, given)
        for cell, x in zip(cells.values(), held, strict=True):
            cell.cell_contents = x
        found = []
        state = (how, *[self.flat(x, found) for x in out])
        self.finish(kind, state, found)
        function.running -= 1
        for op, now in saved:
            op.now = now
        block, i, self.region, self.visible, self.turns, self.turn = around
        self.suspended -= self.turns
        self.back_to(block, i)
        return self.answer(self.results(node, state, out, found))


NUMBERS = frozenset((int, float))


def is_of_numbers(key: Any) -> bool:
    """Whether a key of a dict is, or holds, a number of the run that is no integer, or what is made of one."""
    if type(key) is not Box and type(key) is not Packed:
        return False
    ops = [key.op] if type(key) is Box else [x for x in key.op.args if isinstance(x, Op)]
    return any(is_other(op) or any(map(is_other, op.args)) for op in ops)


DISCRETE = frozenset((int, str, bool))


def is_other(x: Any) -> bool:
    return isinstance(x, Op) and not is_one_of(x.type, DISCRETE)


def is_made(x: Any) -> bool:
    """Whether something is a function that the run has made: to others a tuple of its code and what it holds."""
    return type(x) is FunctionType and is_twin(x.__code__)


def held_in(fn: FunctionType) -> list[Any]:
    """What a function holds that the run has made: its defaults, and what is in its cells, which must stay as it is."""
    found = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
    loose = loose_names(fn.__code__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            x = cell.cell_contents
        except ValueError:
            x = UNBOUND
        if x is UNBOUND or (name in loose and type(x) is not Cell):
            raise Unfolded(f"{fn.__name__} is kept, which reads {name}, and that may change")
        found.append(x)
    return found


def made_again(fn: FunctionType, held: list[Any]) -> FunctionType:
    """The same function, holding the same by other names."""
    count, names = len(fn.__defaults__ or ()), [*(fn.__kwdefaults__ or {})]
    cells = tuple([CellType(x) for x in held[count + len(names) :]])
    copy = FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, tuple(held[:count]) or None, cells
    )
    copy.__kwdefaults__ = dict(zip(names, held[count:], strict=False)) or None
    copy.__qualname__, copy.__module__ = fn.__qualname__, fn.__module__
    return copy


def called(fn: Any) -> str:
    """The name of what an op does."""
    return fn if type(fn) is str else getattr(fn, "__name__", type(fn).__name__)


def shown(x: Any) -> str:
    """An operand in words."""
    if type(x) is Op or isinstance(x, Op):
        return f"{with_article(x.type.__name__)} from {called(x.fn)}"
    if type(x) is Box:
        return shown(x.op)
    if type(x) is Reference:
        return shown(x.ops[0])
    value = x.value if type(x) is Constant else x
    return (
        repr(value)
        if type(value) in NUMBERS or type(value) in PLAIN
        else f"{with_article(type(value).__name__)}"
    )


def same_float(a: float, b: float) -> bool:
    """Whether two equal floats are the same to the bit."""
    return a != 0.0 or str(a) == str(b)


def around(of: Any) -> Any:
    """The instructions of a loop of the bytecode, or of a fork."""
    return of.body if type(of) is Cycle else of.region
