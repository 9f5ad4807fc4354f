"""Arrays that code may write to of which the run sees nothing: iterators from outside, and functions with rules.

Words
-----
aside     of the values of an array: what was computed with them has copies, while such code may write to the array.
          Before the array is used again it is looked at, and either all is as it was, or it has a new version.
awake     an array that was used since such code has run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..rules.mutation import setitem
from . import places
from .arrays import Memory, kept_copy, lies_in, save
from .box import ArrayBox
from .errors import TraceError
from .record import operand
from .seals import Unfollowed
from .session import Tracer
from .tape import Op, Site, append, fn_name, ops_in


class Call:
    """One call of such code, and the ops that it may have computed from what it writes."""

    __slots__ = ("name", "site", "sources")

    def __init__(self, name: str, site: Site, sources: list[Op]) -> None:
        self.name, self.site, self.sources = name, site, sources


class Asides:
    """The arrays of a run that somebody outside may write to, and the calls of code that may do so."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.known: dict[int, Aside] = {}  # by id of a memory
        self.awake: dict[int, Aside] = {}
        self.boxes: dict[int, ArrayBox] = {}  # by id of an array that was handed out
        self.inputs = self.exposed = 0  # how many of them have been looked through
        self.again = False  # whether a sweep may run such code once more

    def meet(self, tracer: Tracer) -> None:
        """Find the arrays that came in, or were handed out, since the last such call."""
        new = [*itertools.islice(tracer.memories.values(), self.inputs, None)]
        self.inputs = len(tracer.memories)
        for memory in new:
            self.add(tracer, memory)
        for box in tracer.exposed[self.exposed :]:
            root = box
            while root.derivation is not None:
                root = root.derivation[0]
            roots = self.add(tracer, box.memory).roots
            if not any(x is root for x in roots):
                roots.append(root)
                self.boxes[id(root.value)] = root
        self.exposed = len(tracer.exposed)

    def add(self, tracer: Tracer, memory: Memory) -> Aside:
        """Know of a memory from now on."""
        if id(memory) not in self.known:
            self.known[id(memory)] = self.awake[id(memory)] = Aside(tracer, self, memory)
        return self.known[id(memory)]


class Aside:
    """One memory, and what it held when such code has begun to run."""

    def __init__(self, tracer: Tracer, asides: Asides, memory: Memory) -> None:
        self.tracer, self.asides, self.memory = tracer, asides, memory
        self.roots: list[ArrayBox] = []  # of what was made inside, and handed out
        self.since = 0  # the first call since it was used
        self.writes = -1  # at which the copies were made
        self.copies: dict[Op, tuple[Any, Any]] = {}  # what an op had for its value, and a copy
        self.moved: list[Op] = []
        self.before: list[tuple[ArrayBox, Any]] = []

    def all_roots(self) -> Iterator[ArrayBox]:
        known = {id(x): x for x in (*self.memory.boxes, *self.roots)}
        return (x for x in known.values() if x.derivation is None and x.seen == self.memory.writes)

    def step(self) -> None:
        """Let values that are still needed step aside."""
        memory = self.memory
        if self.writes != memory.writes:
            self.copies.clear()
            self.writes = memory.writes
        roots = [*self.all_roots()]
        if not any(is_writeable(x.value) for x in roots):
            return
        again = [x for x in self.tracer.tape.again if lies_in(x.value, memory)]
        self.moved = [*dict.fromkeys((*memory.saved, *again))]
        for op in dict.fromkeys((*self.moved, *[x.op for x in roots])):
            if op not in self.copies or self.copies[op][0] is not op.value:
                self.copies[op] = op.value, kept_copy(op.value)
            op.value = self.copies[op][1]
        self.before = [(x, x.op.value) for x in roots]
        memory.saved.clear()
        memory.aside = self
        self.since = len(self.asides.calls)

    def step_again(self) -> None:
        """Let the values step aside that did so for the call which has just been made, and used them itself."""
        memory = self.memory
        if memory.aside is not None or self.writes != memory.writes or not self.before:
            return
        for op, (value, copy) in self.copies.items():
            if op.value is value:
                op.value = copy
        memory.saved[:] = [op for op in memory.saved if op not in self.copies]
        memory.aside = self
        self.asides.awake.pop(id(memory), None)

    def settle(self) -> None:
        """An array is used again: see what has become of it."""
        memory = self.memory
        memory.aside = None
        self.asides.awake[id(memory)] = self
        found = [(x, differing(x.value, before)) for x, before in self.before]
        if any(index is not None for _, index in found):
            self.written(found)
            return
        for op, (value, copy) in self.copies.items():
            if op.value is copy:
                op.value = value
        memory.saved += [op for op in self.moved if op not in self.tracer.tape.again]

    def written(self, found: list[tuple[ArrayBox, Any]]) -> None:
        """Such code has written to these arrays, at these places: they have new versions."""
        memory, tracer = self.memory, self.tracer
        tape, calls = tracer.tape, self.asides.calls[self.since :]
        site = calls[-1].site
        sources = [op for call in calls for op in call.sources if tracer.dependence.has(op)]
        memory.writes += 1
        tape.written += 1
        for x, index in found:
            x.seen = memory.writes
            if index is None:
                continue
            part: Any = x.value[index].copy()
            if sources:
                unknown = Unfollowed(calls[-1].name, reason(calls[-1], site))
                part = append(tape, unknown, (part, *dict.fromkeys(sources)), {}, part, site)
            if tape.overwritten is not None:
                tape.overwritten.append(x.op)
            memory.version = append(tape, setitem, (x.op, index, part), {}, x.value, site)
            x.op = memory.version
        if tracer.reads is not None:
            tracer.reads.problem(f"{calls[-1].name} writes into an array behind the run", site)


def may_write(
    tracer: Tracer, site: Site, code: Any, sources: Iterable[Op], arrays: Iterable[ArrayBox] = ()
) -> None:
    """Code is about to run of which the run sees nothing: values that are still needed step aside.

    What it writes may have been computed from the ``sources``; it is handed the ``arrays``, and may keep them.
    """
    tracer.exposed += arrays
    if tracer.asides is None:
        tracer.asides = Asides()
    asides = tracer.asides
    asides.meet(tracer)
    awake = [*asides.awake.values()]
    for aside in awake:
        aside.step()
    asides.awake = {
        key: aside for key, aside in asides.awake.items() if aside.memory.aside is not aside
    }
    asides.calls.append(Call(fn_name(code), site, [*sources]))


class Unseen:
    """A call of a function with a rule of the user's, which is ``declared`` to give nothing with a derivative."""

    def __init__(
        self, tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, declared: bool = False
    ) -> None:
        self.tracer, self.declared = tracer, declared
        self.arrays: list[ArrayBox] = []
        sources = [*ops_in(operand((args, kwargs), self.arrays))]
        save(self.arrays)
        may_write(tracer, site, fn, () if declared else sources, self.arrays)
        tracer.asides.again = True

    def __enter__(self) -> Unseen:
        return self

    def __exit__(self, *error: Any) -> None:
        """What it was handed was used by the call itself: it is to be looked at all the same."""
        asides = self.tracer.asides
        for memory in {id(box.memory): box.memory for box in self.arrays}.values():
            asides.known[id(memory)].step_again()

    def given(self, result: Any) -> Any:
        """A result, which somebody outside may hold: of an array that is known, its box."""
        arrays: list[ArrayBox] = []
        operand(result, arrays)
        known = self.tracer.asides.boxes.get(id(result.value)) if type(result) is ArrayBox else None
        if known is not None and self.declared:
            self.tracer.tape.memories[id(known.memory.owner)] = known.memory
            return known
        self.tracer.exposed += arrays
        return result


def settle(tracer: Tracer) -> None:
    """The run ends: what such code has written is known, whether or not it was used again."""
    for aside in [*tracer.asides.known.values()] if tracer.asides is not None else ():
        if aside.memory.aside is aside:
            aside.settle()


def is_writeable(array: Any) -> bool:
    """Whether somebody may write to an array, through it or through what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None


def differing(now: Any, before: Any) -> Any:
    """The index of the elements of an array that are not as they were; None where all are."""
    if now.shape != before.shape or now.dtype != before.dtype:
        changed_form()
    a, b = bits(now), bits(before)
    if np.array_equal(a, b):
        return None
    different = (a != b) & ~((a != a) & (b != b))
    if different.all():
        return ...
    return np.nonzero(different) if different.any() else None


def bits(array: Any) -> Any:
    """The numbers of an array, so that each is equal to itself alone."""
    plain = np.asarray(array)
    return plain.view(f"u{plain.itemsize}") if plain.itemsize <= 8 else plain


def changed_form() -> NoReturn:
    raise TraceError(
        f"{places.blame(places.user_site())}: code that is not traced has given an array another shape or type\n"
        "make a new array there"
    )


def reason(call: Call, site: Site) -> str:
    """What to tell who asks for a derivative by what such code may have written."""
    return (
        f"{places.blame(site)}: {call.name}, which is not traced, has written into an array, and may have computed "
        "that from traced values, whose derivative would be lost\n"
        "write to the array in the traced function, or write constants to it before the function is called"
    )
