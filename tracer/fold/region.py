"""Regions: one structure of ops for all the ways that a function was seen to go.

Words
-----
op         a value that a pass computes, or something that it does to a memory.
block      ops in order, and what comes then: a decision, with a block for each outcome that was seen, or an end.
region     a tree of blocks with parameters: the body of a loop, the ways of a scope, a function.
scope      an op with a region of its own whose ways meet again behind it: a call, or a decision and where it joins.
results    what goes on from a loop, a scope or an invocation: one list of ops for each state that it was left in.
state      what survives a pass apart from the numbers: types, structure, None and other constants by value (bools and
           texts by value only where they have to be known, see `Loose`).
memory     a list, dict, object or exception that the run itself has made, or an array that it has made and writes
           to: loads and stores are ops.
reference  an operand that means a memory: the ops that have named it, of which each pass leaves those that still can
           be meant.
end        of a block: its kind, the state, and the operands that survive (see `End`).

An operand is an op, a `Reference`, or a constant. A constant that is meant by identity stands in a `Constant`.

A number is one of Python's or of NumPy's, or an array that nothing writes to. The type of an op with an array is a
`Kind`: arrays of one dtype and number of axes, whatever their sizes. That of an op which names an array that is written
to is the `Written` of that kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ..frames import STREAMS
from ..kinds import HEAP_TYPE, IMMUTABLE, is_one_of, static
from ..tape import Site, Target

INPUT, PARAMETER, RESULT = "input", "parameter", "result"  # ops that others give a value
LIST, DICT, OBJECT = (
    "list",
    "dict",
    "object",
)  # births: of items; of keys and values in turn; of attributes
REPEAT = "repeat"  # ``items * count``
CONTENTS = "contents"  # (a list of arrays that are written to,): a list of what is in them now
LOAD, STORE = "load", "store"  # (memory, key); (memory, key, value)
DROP = "drop"  # (dict, key), which is there no more
PACK = "pack"  # a tuple of its operands, by the state in the key: (instruction, "pack", state)
APPEND, POP, LENGTH = (
    "append",
    "pop",
    "length",
)  # (memory, value); (memory,), the last one; (memory,)
ARRAY = "array"  # the birth of an array that is written to: (what is in it at first,)
VIEW = "view"  # (array, what its index is made of...): another array in the same memory
GET, PUT = (
    "get",
    "put",
)  # (array, what its index is made of...); (array, value, what its index is made of...)
TRANSPOSED = ("T",)  # in the place of an index
CONTENT = (
    "content"  # (array,): what is in it now, an operand of ops that come before anything is written
)
ITEM = "item"  # what a loop over integers is given
LOOP, SCOPE, INVOKE = "loop", "scope", "invoke"
BIRTHS = frozenset((LIST, DICT, OBJECT, REPEAT, CONTENTS, ARRAY))
OF_ARRAYS = frozenset((VIEW, GET, PUT, CONTENT))
MEMORIES = (list, dict, set)  # and classes of the user's, and exceptions
EXHAUSTED = (
    "exhausted"  # what a loop over integers decides at each head: whether there is another one
)


class Instruction:
    """Stands for an instruction of bytecode, and knows the place of the user's program that it belongs to."""

    __slots__ = ("site",)

    def __init__(self, site: Site) -> None:
        self.site = site


class Op:
    """An op of a region.

    ``fn`` is a function or one of the words above, ``args`` the operands, ``key`` what stands for the instruction,
    ``type`` the class of the value (of a memory its own class). ``exits`` has a block for each class of exception
    that the op was seen to raise. ``home`` is the region that it belongs to, and ``now`` its value in the pass that
    goes on, as the recorder has boxed it. The key of a parameter, and of a result, is the user's variable that it
    stands for, or None.
    """

    __slots__ = ("args", "exits", "fn", "home", "key", "now", "type")

    def __init__(self, key: Any, fn: Any, args: tuple[Any, ...], kind: type, home: Any) -> None:
        self.key = key
        self.fn = fn
        self.args = args
        self.type = kind
        self.home = home
        self.exits: dict[type, Block] = {}
        self.now: Any = None

    def __repr__(self) -> str:
        return f"<{self.fn if type(self.fn) is str else self.fn.__name__} at {id(self):x}>"


def variable(op: Op) -> str | None:
    """The user's variable that an op gives the value of, as far as it is known."""
    key = op.key[0] if type(op.key) is tuple and op.key else op.key
    if type(key) is str:
        name = key if op.fn == PARAMETER or op.fn == RESULT else None
    else:
        name = key.site.name if type(key) is Instruction and type(key.site) is Target else None
    return name if name is not None and name.isidentifier() else None


class Call(Op):
    """A call of a function of arrays: ``frame`` says how the operands nest in its arguments (see `frame_of`).

    ``fn`` has a rule, or is declared to have no derivative, or draws; the frame is part of the key.
    """

    __slots__ = ("frame",)

    def __init__(
        self, key: Any, fn: Any, args: tuple[Any, ...], kind: Any, home: Any, frame: Any
    ) -> None:
        super().__init__(key, fn, args, kind, home)
        self.frame = frame


class Access(Op):
    """An op with an index: ``frame`` says how operands nest in it, or is None for all that is in the array."""

    __slots__ = ("frame",)

    def __init__(
        self, key: Any, fn: str, args: tuple[Any, ...], kind: Any, home: Any, frame: Any
    ) -> None:
        super().__init__(key, fn, args, kind, home)
        self.frame = frame


class Draw(Call):
    """A draw from a generator of random numbers outside, the first operand: it is made once, in its turn."""

    __slots__ = ()


class Several(Call):
    """A call that gives a tuple: ``results`` has ops for what is in it, under the state None."""

    __slots__ = ("results",)

    def __init__(
        self, key: Any, fn: Any, args: tuple[Any, ...], kind: Any, home: Any, frame: Any
    ) -> None:
        super().__init__(key, fn, args, kind, home, frame)
        self.results: dict[Any, list[Op]] = {}


class Pair(Several, Draw):
    """A draw by its parameters: the value, and the noise that it is a function of (see `rules.numpy_random`)."""

    __slots__ = ()


class Kind:
    """The type of arrays with this dtype and number of axes; there is one object for each."""

    __slots__ = ("__name__", "dtype", "ndim", "written")
    __flags__ = 0  # as of a class that is not the user's

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.__name__ = f"{dtype}[{', '.join(':' * ndim)}]"
        self.written = Written(self)

    def __repr__(self) -> str:
        return self.__name__


class Written:
    """The type of arrays of a kind that the run writes to; there is one object for each."""

    __slots__ = ("__name__", "kind")
    __flags__ = 0

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.__name__ = kind.__name__

    def __repr__(self) -> str:
        return f"written {self.kind}"


class Array:
    """An array that the run writes to, as the program holds it: a memory.

    ``blank`` says that nothing has been written yet into what NumPy has left empty, ``of`` of which array it is a view,
    and by which index.
    """

    __slots__ = ("blank", "of", "value", "whole")

    def __init__(self, value: Any, blank: bool = False, of: Any = None) -> None:
        self.value = value
        self.blank = blank
        self.of = of
        self.whole: Array = self if of is None else of[0].whole  # whose memory it is


class Cell:
    """A variable that functions inside write: an object, which has no ``value`` as long as the variable has none."""


kinds: dict[tuple[Any, int], Kind] = {}


def kind_of(value: Any) -> Any:
    """The type of a value as ops have it: its class, of an array its `Kind`."""
    if type(value) is Array:
        return kind_of(value.value).written
    if type(value) is not np.ndarray:
        return type(value)
    key = value.dtype, value.ndim
    return kinds.get(key) or kinds.setdefault(key, Kind(*key))


# Whether the types of operands alone say of which type a result is, whatever numbers they are (NEP 50).
BY_TYPES = np.result_type(np.float32(1), 1e300) == np.float32
FLOATS = frozenset((np.float64, np.float32) if BY_TYPES else (np.float64,))
SCALARS = FLOATS | {np.int64, np.intp, np.bool_}
DTYPES = frozenset(map(np.dtype, SCALARS))


def is_of_numpy(value: Any) -> bool:
    """Whether a value is an array or a number of NumPy's of a type that is followed."""
    kind = type(value)
    return is_one_of(kind, SCALARS) or (kind is np.ndarray and value.dtype in DTYPES)


# Generators of random numbers: what is drawn from those outside is noted (see `Recorder.draw`).


def is_stream(kind: Any) -> bool:
    """Whether a type is one of generators of random numbers."""
    return is_one_of(kind, STREAMS)


def is_number(kind: Any) -> bool:
    """Whether a type is one of numbers or of arrays."""
    return kind is float or kind is int or is_one_of(kind, SCALARS) or type(kind) is Kind


class Constant:
    """A constant operand that is meant by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Reference:
    """Which memory is meant: the ops that named the object when it was used."""

    __slots__ = ("ops",)

    def __init__(self, ops: list[Op]) -> None:
        self.ops = ops


class End(NamedTuple):
    """How a pass ends: ``kind`` is "next" (of a loop), "leave" (of a loop), "return" or "raise"."""

    kind: str
    state: Any
    outs: list[Any]


class Block:
    """Ops, and then a decision on ``subject`` with a block for each outcome, or an end; neither while it grows.

    The subject is an op whose value is True or False, `EXHAUSTED`, or an op with results, whose outcomes are their
    states.
    """

    __slots__ = ("cases", "end", "number", "ops", "subject")
    count = 0

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.subject: Any = None
        self.cases: dict[Any, Block] = {}
        self.end: End | None = None
        Block.count += 1
        self.number = Block.count

    def tree(self) -> Iterator[Block]:
        """This block and all that follow, of this region alone."""
        todo = [self]
        while todo:
            block = todo.pop()
            yield block
            for op in block.ops:
                if op.exits:
                    todo += op.exits.values()
            todo += block.cases.values()

    def ends(self) -> Iterator[End]:
        """How the passes through this region end."""
        for block in self.tree():
            if block.end is not None:
                yield block.end


class Region:
    """A tree of blocks with parameters."""

    __slots__ = ("parameters", "root")

    def __init__(self) -> None:
        self.parameters: list[Op] = []
        self.root = Block()


class Loop(Op):
    """A loop: a body for each state of the carried variables. Its operands are what the first body is given.

    ``counted`` says that it goes through integers: the last operand is the ``range``, each head decides on
    `EXHAUSTED`, and the first op of a turn is its `ITEM`. ``unsure`` is what the reverse part has found out about the
    loop: the ops that have no cotangent after some pass, which stays so as the region grows.
    """

    __slots__ = ("bodies", "counted", "results", "unsure")

    def __init__(self, key: Any, args: tuple[Any, ...], home: Any, counted: bool) -> None:
        super().__init__(key, LOOP, args, object, home)
        self.counted = counted
        self.bodies: dict[Any, Region] = {}
        self.results: dict[Any, list[Op]] = {}
        self.unsure: set[Op] = set()

    @property
    def starts(self) -> tuple[Any, ...]:
        """The operands that the first body is given."""
        return self.args[:-1] if self.counted else self.args


class Scope(Op):
    """A call, or a decision whose ways meet again; ``name`` is what it stands for. Ops inside may use those outside."""

    __slots__ = ("name", "region", "results")

    def __init__(self, key: Any, home: Any, name: Any) -> None:
        super().__init__(key, SCOPE, (), object, home)
        self.name = name
        self.region = Region()
        self.results: dict[Any, list[Op]] = {}


class Take(Op):
    """A load or a pop that may give several kinds of things: it is decided in which state what it gives is.

    ``results`` has for each state ops for the numbers and memories in it. Its own value is not used otherwise.
    """

    __slots__ = ("results",)

    def __init__(self, key: Any, fn: Any, args: tuple[Any, ...], home: Any) -> None:
        super().__init__(key, fn, args, object, home)
        self.results: dict[Any, list[Op]] = {}


class Function(Region):
    """The region of a function that is shared by all its calls: it uses nothing from outside."""

    __slots__ = ("code", "ops", "running", "size")

    def __init__(self, code: CodeType) -> None:
        super().__init__()
        self.code = code
        self.size = -1  # of all that was known when its ops were listed
        self.ops: list[Op] = []
        self.running = 0  # calls that go on


class Invoke(Op):
    """A call of a function that has a region of its own."""

    __slots__ = ("function", "results")

    def __init__(self, key: Any, args: tuple[Any, ...], home: Any, function: Function) -> None:
        super().__init__(key, INVOKE, args, object, home)
        self.function = function
        self.results: dict[Any, list[Op]] = {}


class Folded:
    """All that is known of a function's runs: its region, the inputs, and the functions that call themselves.

    The blocks of the region end in "return" with the state of the result.
    """

    def __init__(self) -> None:
        self.region = Region()  # its parameters are the inputs
        self.outside = Region()  # the home of inputs from outside, which every pass sees
        self.functions: dict[Any, Function] = {}
        self.lengths: dict[Any, list[int]] = {}  # of what is taken apart, by the instruction
        self.size = 0  # which grows with each op, block and end
        self.constants: dict[int, Constant] = {}  # by the identity of what they mean
        self.makes_streams = False  # whether runs make generators of random numbers of their own
        self.finds_streams = False  # whether they draw from some that were found in memories
        self.listed: tuple[int, list[Block], list[Op]] = -1, [], []  # at which size, and what

    def decisions(self) -> Iterator[tuple[Site, bool]]:
        """How decisions came out, as far as the place of each is known."""
        for block in self.blocks():
            key = getattr(block.subject, "key", None)
            if type(key) is Instruction:
                for outcome in tuple(block.cases):
                    if type(outcome) is bool:
                        yield key.site, outcome

    def blocks(self) -> list[Block]:
        """Every block, those of outer regions first."""
        return self.listing()[1]

    def ops(self) -> list[Op]:
        """Every op: parameters, those of blocks, and results."""
        return self.listing()[2]

    def listing(self) -> tuple[int, list[Block], list[Op]]:
        if self.listed[0] != self.size:
            blocks: list[Block] = []
            ops: list[Op] = []
            todo: list[Region] = [self.region, *self.functions.values()]
            for region in todo:  # which grows
                ops += region.parameters
                for block in region.root.tree():
                    blocks.append(block)
                    for op in block.ops:
                        ops.append(op)
                        ops += results_of(op)
                        todo += inner(op)
            self.listed = self.size, blocks, ops
        return self.listed


def inner(op: Op) -> list[Region]:
    """The regions that an op has of its own."""
    if type(op) is Loop:
        return [*op.bodies.values()]
    return [op.region] if type(op) is Scope else []


def results_of(op: Op) -> list[Op]:
    """The ops that go on from a loop, a scope or an invocation, or that are parts of what a call gives."""
    if type(op) not in WITH_RESULTS:
        return []
    return [x for row in op.results.values() for x in row]  # type: ignore[attr-defined]


WITH_RESULTS = frozenset((Loop, Scope, Invoke, Take, Several, Pair))


def is_memory(kind: type) -> bool:
    """Whether an op with this type names a memory."""
    if kind is float or kind is int:  # as mostly
        return False
    if type(kind) is Written:
        return True
    if is_stream(kind):
        return False
    return is_one_of(kind, MEMORIES) or bool(
        kind.__flags__ & (1 << 9 | 1 << 30)
    )  # the user's, exceptions


def is_looked_into(kind: type) -> bool:
    """Whether a run looks into what it finds outside: a list, dict or set, or an object that is what its class says."""
    if is_one_of(kind, MEMORIES):
        return True
    plain = type(kind) is type and static(kind, "__getattribute__") is object.__getattribute__
    return plain and all(map(is_of_users, kind.__mro__[:-1]))


def is_of_users(kind: type) -> bool:
    """Whether a class is written in Python, and not by Wengert."""
    own = kind.__flags__ & (HEAP_TYPE | IMMUTABLE) == HEAP_TYPE
    return own and not kind.__module__.startswith("wengert.")
