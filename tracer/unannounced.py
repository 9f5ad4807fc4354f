"""Arrays that code may write to of which the run sees nothing: iterators from outside, and functions with rules.

Words
-----
aside     of the values of an array: what was computed with them has copies, while such code may write to the array.
          Before the array is used again it is looked at, and either all is as it was, or it has a new version.
awake     an array that was used since such code has run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
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
    """One call of such code, and the ops that what it writes may be computed from: None, where it has no derivative."""

    __slots__ = ("name", "site", "sources")

    def __init__(self, name: str, site: Site, sources: list[Op] | None) -> None:
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
            root = root_of(box)
            aside = self.add(tracer, box.memory)
            if not any(x is root for x in aside.roots):
                aside.roots.append(root)
                self.boxes[id(root.value)] = root
                self.awake[id(box.memory)] = aside
        self.exposed = len(tracer.exposed)

    def add(self, tracer: Tracer, memory: Memory) -> Aside:
        """Know of a memory from now on."""
        if id(memory) not in self.known:
            self.known[id(memory)] = self.awake[id(memory)] = Aside(tracer, self, memory)
        return self.known[id(memory)]


class Aside:
    """One memory, and what the arrays in it held that are aside: each is looked at when it is used again itself."""

    def __init__(self, tracer: Tracer, asides: Asides, memory: Memory) -> None:
        self.tracer, self.asides, self.memory = tracer, asides, memory
        self.roots: list[ArrayBox] = []  # of what was made inside, and handed out
        self.writes = -1  # at which the copies were made
        self.copies: dict[Op, tuple[Any, Any]] = {}  # what an op had for its value, and a copy
        # The ops that are aside: what they had for their values, and whether these are still needed.
        self.moved: dict[Op, tuple[Any, bool]] = {}
        # By id of an array that is aside: it, what it held, and the first call since then.
        self.before: dict[int, tuple[ArrayBox, Any, int]] = {}

    def all_roots(self) -> list[ArrayBox]:
        known = {id(x): x for x in (*self.memory.boxes, *self.roots)}
        return [x for x in known.values() if x.derivation is None and x.seen == self.memory.writes]

    def step(self) -> None:
        """Let values that are still needed step aside."""
        memory, again = self.memory, self.tracer.tape.again
        if self.writes != memory.writes:
            self.copies.clear()
            self.writes = memory.writes
        roots = self.all_roots()
        if not any(is_writeable(x.value) for x in roots):
            return
        for op in (*memory.saved, *[x for x in again if lies_in(x.value, memory)]):
            self.move(op, op not in again)
        memory.saved.clear()
        for x in roots:
            if id(x) not in self.before:
                self.move(x.op, False)
                self.before[id(x)] = x, x.op.value, len(self.asides.calls)
        memory.aside = self

    def move(self, op: Op, needed: bool) -> None:
        """Give an op a copy for its value."""
        value = op.value
        if op in self.moved:
            value, known = self.moved[op]
            self.moved[op] = value, needed or known
            return
        if op not in self.copies or self.copies[op][0] is not value:
            self.copies[op] = value, kept_copy(value)
        op.value = self.copies[op][1]
        self.moved[op] = value, needed

    def step_again(self, call: int) -> None:
        """Let the values step aside that did so for the call which has just been made, and used them itself."""
        memory = self.memory
        if self.writes != memory.writes:
            return
        for op, (value, _) in self.copies.items():
            if op.value is value:
                self.move(op, op in memory.saved)
        memory.saved[:] = [op for op in memory.saved if op not in self.moved]
        for x in self.all_roots():
            if id(x) not in self.before and x.op in self.moved:
                self.before[id(x)] = x, x.op.value, call
        if self.before:
            memory.aside = self

    def settle(self, box: ArrayBox | None = None) -> None:
        """An array is used again, or any in the memory: see what has become of it."""
        memory = self.memory
        self.asides.awake[id(memory)] = self
        root = None if box is None else root_of(box)
        alone = root is not None and (id(root) in self.before or root.op not in self.moved)
        keys = [id(root)] if alone else [*self.before]
        looked = [self.before.pop(key) for key in keys if key in self.before]
        if not self.before:
            memory.aside = None
        if not looked:
            return
        found = [(x, differing(x.value, was), since) for x, was, since in looked]
        same = [x for x, index, _ in found if index is None]
        written = [x for x in found if x[1] is not None]
        if not self.move_back(same, [x for x, _, _ in written]) or written:
            self.moved_on()
        for x in same:
            if x.op.value is not x.value:
                x.op.value = x.value
                memory.saved.append(x.op)
        if written:
            self.written(written)

    def move_back(self, same: list[ArrayBox], written: list[ArrayBox]) -> bool:
        """Give ops back what is as it was; False, if some keep copies of it, for more lies there as well."""
        aside = [x for x, _, _ in self.before.values()]
        all_back = True
        for op, (value, needed) in [*self.moved.items()]:
            if isinstance(value, (tuple, list)):  # of arrays, each of which is an op as well
                continue
            if overlaps(value, written):
                del self.moved[op]
            elif overlaps(value, same):
                if overlaps(value, aside):
                    all_back = False
                    continue
                op.value = value
                del self.moved[op]
                self.memory.saved += [op] if needed else []
        return all_back

    def moved_on(self) -> None:
        """Let views be derived again."""
        roots = self.all_roots()
        self.memory.writes += 1
        self.writes = self.memory.writes
        for x in roots:
            x.seen = self.writes

    def written(self, found: list[tuple[ArrayBox, Any, int]]) -> None:
        """Such code has written to these arrays, at these places: they have new versions."""
        memory, tracer = self.memory, self.tracer
        tape, calls = tracer.tape, self.asides.calls[min([since for *_, since in found]) :]
        site = calls[-1].site
        unknown = [call for call in calls if call.sources is not None]
        given = [op for call in unknown for op in call.sources or ()]
        tape.written += 1
        for x, index, _ in found:
            part: Any = x.value[index].copy()
            sources = [*filter(tracer.dependence.has, dict.fromkeys((*given, x.op)))]
            if unknown and sources:
                fn = Unfollowed(unknown[-1].name, reason(unknown[-1]))
                part = append(tape, fn, (part, *sources), {}, part, site)
            if tape.overwritten is not None:
                tape.overwritten.append(x.op)
            memory.version = append(tape, setitem, (x.op, index, part), {}, x.value, site)
            x.op = memory.version
        if tracer.reads is not None:
            tracer.reads.problem(f"{calls[-1].name} writes into an array behind the run", site)


def overlaps(value: Any, arrays: list[ArrayBox]) -> bool:
    """Whether an array may lie where others lie."""
    return any(np.may_share_memory(value, x.value) for x in arrays)


def root_of(box: ArrayBox) -> ArrayBox:
    """The array that another one is a view of, by whatever steps."""
    while box.derivation is not None:
        box = box.derivation[0]
    return box


def may_write(
    tracer: Tracer,
    site: Site,
    code: Any,
    sources: Iterable[Op] | None,
    arrays: Iterable[ArrayBox] = (),
) -> None:
    """Code is about to run of which the run sees nothing: values that are still needed step aside.

    What it writes may be computed from the ``sources`` and what was there; where these are None, it has no
    derivative. It is handed the ``arrays``, and may keep them.
    """
    tracer.exposed += arrays
    if tracer.asides is None:
        tracer.asides = Asides()
    asides = tracer.asides
    asides.meet(tracer)
    for aside in [*asides.awake.values()]:
        aside.step()
    asides.awake = {
        key: aside for key, aside in asides.awake.items() if aside.memory.aside is not aside
    }
    asides.calls.append(Call(fn_name(code), site, None if sources is None else [*sources]))


class Unseen:
    """A call of a function with a rule of the user's, which is ``declared`` to give nothing with a derivative."""

    def __init__(
        self, tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, declared: bool = False
    ) -> None:
        self.tracer, self.declared = tracer, declared
        self.arrays: list[ArrayBox] = []
        sources = [*ops_in(operand((args, kwargs), self.arrays))]
        save(self.arrays)
        may_write(tracer, site, fn, None if declared else sources, self.arrays)
        self.call = len(tracer.asides.calls) - 1
        tracer.asides.again |= not declared

    def __enter__(self) -> Unseen:
        return self

    def __exit__(self, *error: Any) -> None:
        """What it was handed was used by the call itself: it is to be looked at all the same."""
        asides = self.tracer.asides
        for memory in {id(box.memory): box.memory for box in self.arrays}.values():
            asides.known[id(memory)].step_again(self.call)

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
    """The run ends: where it is recorded, it is known what such code has written, whether or not it was used again."""
    for aside in [*tracer.asides.known.values()] if tracer.asides is not None else ():
        if tracer.reads is not None:
            aside.settle()
        aside.memory.aside = None


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


def reason(call: Call) -> str:
    """What to tell who asks for a derivative by what such code may have written."""
    return (
        f"{places.blame(call.site)}: {call.name}, which is not traced, has written into an array, and may have "
        "computed that from traced values, whose derivative would be lost\n"
        "write to the array in the traced function, or let that code write to an array of its own"
    )
