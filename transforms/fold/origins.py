"""Where the memories that ops name may come from.

Words
-----
origin    a birth, or `OUTSIDE`: an argument, what was read from outside, or what lies in such a memory.
content   of an origin: the origins of the memories in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any

from ...tracer.fold.generators import is_generator
from ...tracer.fold.iteration import Iterator as Iterator_
from ...tracer.fold.region import (
    APPEND,
    BIRTHS,
    DROP,
    LOAD,
    PACK,
    POP,
    REPEAT,
    STORE,
    Folded,
    Invoke,
    Op,
    Reference,
    Region,
    Scope,
    Take,
    inner,
    is_memory,
    results_of,
)
from .activity import Aliases
from .held import put
from .ways import Unemittable

OUTSIDE = "outside"
Origin = Op | str


class Origins:
    """The origins of ops that name memories, and of what lies in them, whatever way a run goes.

    ``real`` are the types of memories that may be from outside, ``made`` those of births.
    """

    def __init__(self, folded: Folded, aliases: Aliases) -> None:
        given = [op for op in folded.region.parameters if is_memory(op.type)]
        generators = [*generators_of(folded)]
        self.of: dict[Op, set[Origin]] = {op: {OUTSIDE} for op in given}
        self.content: dict[Origin, set[Origin]] = {OUTSIDE: {OUTSIDE}}
        self.real: set[type] = set()
        self.made: set[type] = set()
        if not given and not generators:  # then there is nothing to be told apart
            return
        ops = [op for block in folded.blocks() for op in block.ops]
        for op in ops:
            if is_memory(op.type) and op.fn not in (LOAD, POP):
                self.of[op] = {op}
                self.made.add(op.type)
        grown = -1
        while grown != (grown := self.size()):
            for op in ops:
                self.follow(op, aliases)
        self.real.update(op.type for op, found in self.of.items() if OUTSIDE in found)
        for op in ops:
            if op.fn in (STORE, APPEND, POP, DROP) and OUTSIDE in self.origins(op.args[0]):
                raise Unemittable("a container that may be from outside is written to")
        for generator in generators:
            self.must_be_sealed(within(generator))

    def must_be_sealed(self, inside: set[Op]) -> None:
        """A generator has run to its end: nobody can have changed meanwhile what it looks at, on whatever way."""
        for op in inside:
            for x in op.args:
                if any(
                    type(y) is Op and y not in inside and not is_given(y) for y in self.origins(x)
                ):
                    raise Unemittable("a generator may read what is changed between its items")

    def size(self) -> int:
        return sum(map(len, self.of.values())) + sum(map(len, self.content.values()))

    def origins(self, x: Any) -> set[Origin]:
        """The origins of the memories that an operand may mean, or that are in the tuple which it is."""
        if isinstance(x, Reference):
            return set().union(*map(self.origins, x.ops))
        if not isinstance(x, Op):
            return set()
        if x.fn == PACK:
            return set().union(*map(self.origins, x.args))
        return self.of.get(x, set())

    def inside(self, memory: Any) -> set[Origin]:
        return set().union(*(self.content.get(x, set()) for x in self.origins(memory)))

    def follow(self, op: Op, aliases: Aliases) -> None:
        """What one op hands on."""
        for target, source in aliases.flow(op):
            if is_memory(target.type):
                self.of.setdefault(target, set()).update(self.origins(source))
        for _, x in put(op):
            if found := self.origins(x):
                for memory in [op] if op.fn in BIRTHS else self.origins(op.args[0]):
                    self.content.setdefault(memory, set()).update(found)
        if op.fn == REPEAT and (found := self.inside(op.args[0])):
            self.content.setdefault(op, set()).update(found)
        if op.fn in (LOAD, POP):
            for x in results_of(op) if type(op) is Take else [op]:
                if is_memory(x.type):
                    self.of.setdefault(x, set()).update(self.inside(op.args[0]))


def generators_of(folded: Folded) -> Iterator[Region]:
    """The regions of generators (see `tracer.fold.generators`)."""
    for op in (op for block in folded.blocks() for op in block.ops):
        if type(op) is Scope and type(op.name) is CodeType and is_generator(op.name):
            yield op.region
    for function in folded.functions.values():
        if is_generator(function.code):
            yield function


def is_given(birth: Op) -> bool:
    """Whether a list is what a generator has given, to which nobody writes any more, or an iterator, which is taken."""
    return birth.type is Iterator_ or (type(birth.key) is tuple and type(birth.key[0]) is CodeType)


def within(region: Region) -> set[Op]:
    """The ops in a region, and in all regions that are run by it."""
    found: set[Op] = set()
    todo, met = [region], {region}
    while todo:
        one = todo.pop()
        found.update(one.parameters)
        for op in (op for block in one.root.tree() for op in block.ops):
            found.update((op, *results_of(op)))
            more = [*inner(op), *([op.function] if type(op) is Invoke else [])]
            todo += [x for x in more if x not in met]
            met.update(more)
    return found
