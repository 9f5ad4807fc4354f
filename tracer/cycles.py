"""Loops in bytecode: where they begin, where they are left, and which variables they carry from turn to turn.

Words
-----
head       the instruction that every iteration passes first.
body       the instructions from which the head is reached again.
carried    a variable that the loop stores and that may be read before it is stored again.
rigid      why an iteration may depend on more than the variables that are carried.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

from .assembly import BACKWARD, Instr, Region
from .tape import Site
from .versions import current

ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
ALWAYS_JUMP = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
# The interpreter itself steps over these when an iterator is exhausted.
AFTER_ITERATION = {"END_FOR", "POP_ITER"}
COLLECTING = {"LIST_APPEND", "SET_ADD", "MAP_ADD"}
ATTRIBUTE_LOADS = {"LOAD_ATTR", "LOAD_METHOD"}
WRITING = {"STORE_SUBSCR", "STORE_SLICE"}


class Loop:
    """A loop of a code object.

    ``carried`` are the variables that the head's hook takes and gives back, by number: the first ``stored`` of them
    change from turn to turn, the last ``growing`` are used for nothing but to call their ``append``, and those between
    may hold arrays that are written to. ``looked`` are the other variables that it looks at, which the hook is shown.
    ``exits`` are the instructions
    to which the loop is left, and ``rigid`` says why its iterations may depend on more than these variables.
    ``counted`` tells whether it is a ``for`` loop, ``indexed`` whether its body looks at what is iterated over, and
    ``followed`` whether that may be traced: what is looked at after the loop must be carried. For a recorder of regions
    (``joins``), ``left`` are the variables that it hands over at each exit, and ``unsure`` those that it cannot, at its
    head and at each exit, as they may have no value there.
    """

    __slots__ = (
        "body", "carried", "counted", "exits", "followed", "growing", "head", "indexed", "left", "looked",
        "rigid", "site", "stored", "unsure",
    )  # fmt: skip

    def __init__(self, head: int, body: set[int], site: Site) -> None:
        self.head = head
        self.body = body
        self.site = site
        self.exits: set[int] = set()
        self.carried: tuple[int, ...] = ()
        self.looked: tuple[int, ...] = ()
        self.stored = 0
        self.growing = 0
        self.rigid: str | None = None
        self.counted = False
        self.indexed = False
        self.followed = False
        self.left: dict[int, tuple[int, ...]] = {}
        self.unsure: dict[int, tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"<loop at {self.site}>"


def find_loops(
    code: CodeType, source: list[Instr], regions: list[Region], flow: Flow | None = None
) -> list[Loop]:
    """The loops of a code object, outer ones first; ``flow``: if it is known."""
    edges = [
        (i, instr.jump)
        for i, instr in enumerate(source)
        if instr.jump is not None
        and instr.op in BACKWARD
        and instr.jump <= i
        and instr.name != "JUMP_BACKWARD_NO_INTERRUPT"
    ]
    if not edges or code.co_flags & 0x20:  # the variables of a generator live on between its steps
        return []
    flow = flow or Flow(code, source, regions)
    bodies: dict[int, set[int]] = {}
    for tail, head in edges:
        body = bodies.setdefault(head, {head})
        todo = [tail]
        while todo:
            i = todo.pop()
            if i not in body:
                body.add(i)
                todo += flow.before[i]
    loops = []
    for head, body in sorted(bodies.items(), key=lambda pair: -len(pair[1])):
        line = source[head].position.lineno or code.co_firstlineno
        loop = Loop(head, body, Site(code.co_filename, line, code.co_name))
        describe(loop, source, flow)
        loops.append(loop)
    return loops


def describe(loop: Loop, source: list[Instr], flow: Flow) -> None:
    """Find out what a loop carries and where it is left."""
    loop.counted = source[loop.head].name == "FOR_ITER"
    stored = loaded = grown = 0
    writes = False
    for i in loop.body:
        stored |= flow.stores[i]
        if flow.loads[i]:
            grows = flow.grows(source, i)
            grown |= grows
            loaded |= flow.loads[i] & ~grows
        name = source[i].name
        writes |= name in WRITING
        if name in COLLECTING:
            loop.rigid = "it builds a list, set or dict"
        elif name == "STORE_DEREF" or name == "DELETE_FAST":
            loop.rigid = "it stores a variable that an inner function shares"
        for j in flow.after[i]:
            if j not in loop.body:
                while source[j].name in AFTER_ITERATION or source[j].name == "NOT_TAKEN":
                    j += 1
                if source[j].name == "POP_TOP" and source[j - 1].name == "END_FOR":
                    j += 1
                if (
                    source[j].name == "POP_TOP"
                    and source[i].name == "CALL"
                    and not source[j].target
                ):
                    j += 1  # the exit of a `with` statement was called, perhaps with a result below
                loop.exits.add(j)
    bound = flow.bound()[loop.head]
    live = flow.live()[loop.head]
    known = bound & ~flow.cleared
    carried = flow.numbers(live & stored & known)
    loop.stored = len(carried)
    growing = flow.numbers(grown & ~loaded & ~stored & known)
    loop.growing = len(growing)
    loop.carried = (*carried, *flow.numbers(loaded & ~stored & known if writes else 0), *growing)
    loop.looked = tuple(i for i in flow.numbers(loaded & known) if i not in loop.carried)
    unknown = live & stored & ~known
    if unknown:  # what is alive by ways in the loop is alive
        unknown &= flow.live(loop.body)[loop.head]
    loop.unsure[loop.head] = flow.numbers(unknown)
    if unknown:
        name = flow.name(flow.numbers(unknown)[0])
        loop.rigid = f"the variable {name!r} may not have a value yet when it begins"
    if loop.counted:
        first = loop.head + 1
        target = flow.stores[first]
        after = flow.live()[first + 1] if first + 1 < len(source) else 0
        loop.indexed = not target or bool(target & (after | flow.loads[first]))
        left = 0
        for j in loop.exits:
            left |= flow.live()[j]
        loop.followed = loop.indexed and not stored & left & ~known


def bits(number: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


class Flow:
    """What each instruction may be followed by, and which variables it loads and stores (as bits)."""

    def __init__(self, code: CodeType, source: list[Instr], regions: list[Region]) -> None:
        self.code = code
        count = len(source)
        self.after: list[list[int]] = [[] for _ in range(count)]
        self.before: list[list[int]] = [[] for _ in range(count)]
        self.caught: list[list[int]] = [[] for _ in range(count)]  # the handlers of an instruction
        self.loads = [0] * count
        self.stores = [0] * count
        self.unbinds = [
            0
        ] * count  # of those that it stores, the ones that have no value afterwards
        self.cleared = 0
        self.first = 0  # what has a value before the first instruction, besides the parameters
        self._bound: list[int] | None = None
        self._live: list[int] | None = None
        for i, instr in enumerate(source):
            name = instr.name
            if instr.jump is not None:
                self.after[i].append(instr.jump)
            if name not in ENDS and name not in ALWAYS_JUMP and i + 1 < count:
                self.after[i].append(i + 1)
            self.loads[i], self.stores[i] = self.variables(name, instr.arg)
            if name == "LOAD_FAST_AND_CLEAR" or name == "DELETE_FAST":
                self.cleared |= 1 << instr.arg
        for region in regions:
            for i in range(region.start, region.stop):
                self.caught[i].append(region.handler)
        for i in range(count):
            for j in (*self.after[i], *self.caught[i]):
                self.before[j].append(i)

    def grows(self, source: list[Instr], i: int) -> int:
        """The variable, of those that an instruction loads, whose ``append`` is called next (as a bit)."""
        if i + 1 == len(source) or source[i + 1].name not in ATTRIBUTE_LOADS:
            return 0
        attr, method = current.attribute(source[i + 1])
        if not method or self.code.co_names[attr] != "append" or source[i + 1].target:
            return 0
        name, arg = source[i].name, source[i].arg
        last = arg & 15 if name.count("_FAST") > 1 else arg
        return self.loads[i] & 1 << last

    @staticmethod
    def variables(name: str, arg: int) -> tuple[int, int]:
        """The variables that an instruction loads before it stores any, and those that it stores."""
        if "_FAST" not in name:
            return 0, 0
        if name in ("STORE_FAST", "DELETE_FAST"):
            return 0, 1 << arg
        if name == "STORE_FAST_STORE_FAST":
            return 0, 1 << (arg >> 4) | 1 << (arg & 15)
        if name == "STORE_FAST_LOAD_FAST":
            stored = 1 << (arg >> 4)
            return 1 << (arg & 15) & ~stored, stored
        if name.count("LOAD_FAST") == 2:
            return 1 << (arg >> 4) | 1 << (arg & 15), 0
        return 1 << arg, 0

    def bound(self) -> list[int]:
        """The variables that have a value before each instruction, whatever the way to it."""
        if self._bound is None:
            code = self.code
            given = code.co_argcount + code.co_kwonlyargcount
            given += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
            known = [-1] * len(self.after)
            known[0] = (1 << given) - 1 | self.first
            todo = list(range(len(known) - 1, -1, -1))
            while todo:
                i = todo.pop()
                out = (known[i] | self.stores[i]) & ~self.unbinds[i]
                for j in self.after[i]:
                    if known[j] & ~out:
                        known[j] &= out
                        todo.append(j)
                for j in self.caught[i]:
                    if known[j] & ~known[i]:
                        known[j] &= known[i]
                        todo.append(j)
            self._bound = known
        return self._bound

    def name(self, variable: int) -> str:
        return self.code.co_varnames[variable]

    def numbers(self, variables: int) -> tuple[int, ...]:
        """The numbers of variables."""
        return (*bits(variables),)

    def live(self, within: set[int] | None = None) -> list[int]:
        """The variables that may be loaded before they are stored, from each instruction on (``within`` a loop)."""
        if within is None and self._live is not None:
            return self._live
        live = [0] * len(self.after)
        todo = list(range(len(live))) if within is None else sorted(within)
        while todo:
            i = todo.pop()
            out = 0
            for j in self.after[i]:
                if within is None or j in within:
                    out |= live[j]
            now = self.loads[i] | out & ~self.stores[i]
            for j in self.caught[i]:
                if within is None or j in within:
                    now |= live[j]
            if now != live[i]:
                live[i] = now
                todo += (
                    self.before[i] if within is None else [j for j in self.before[i] if j in within]
                )
        if within is None:
            self._live = live
        return live
