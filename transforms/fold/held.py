"""What memories hold, and how a program tells apart what it takes out of them.

Words
-----
state    of what is in a memory: as `Recorder.flat` says, a class, a constant, or a tuple of states.
place    where it can lie: under a text that is known, or among all that lies elsewhere.
group    memories of which one may be another, as far as is known without looking at the order of what is done.
tagged   of a program that has to tell classes of objects apart: those that it makes are dicts, and hold their class.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from keyword import iskeyword
from typing import Any

from ...tracer.fold.equivalents import attribute_of, in_order
from ...tracer.fold.region import (
    APPEND,
    BIRTHS,
    DICT,
    LIST,
    LOAD,
    OBJECT,
    PACK,
    POP,
    REPEAT,
    STORE,
    Constant,
    Folded,
    Op,
    Reference,
    Take,
    Written,
    is_memory,
    is_stream,
    results_of,
)
from ...tracer.kinds import MISSING, static
from .activity import Aliases
from .arrays import is_numpy_type, tests
from .ways import Unemittable

ANYWHERE = object()  # the place of what has a text as its key that differs from run to run
ELSEWHERE = object()  # the place of list items, and of what has a key that is no known text
ANYTHING = ("anything",)  # the state of what the run has not put there
TAG = object()  # the key under which an object has its class
NUMBERS = (int, float)


def state_of(x: Any) -> Any:
    """The state of an operand."""
    if isinstance(x, Reference):
        return x.ops[0].type
    if isinstance(x, Op):
        return x.key[2] if x.fn == PACK else x.type
    if isinstance(x, Constant):
        return ("object", id(x.value))
    return type(x) if type(x) in (*NUMBERS, str) else ("value", x)


def place_of(key: Any) -> Any:
    return key if type(key) is str else ELSEWHERE


def parts(state: Any) -> list[Any]:
    """The states in that of a tuple."""
    return list(state[1:])


def is_tuple(state: Any) -> bool:
    return type(state) is tuple and state[0] == "tuple"


def classes(state: Any) -> Iterator[type]:
    """The classes of the numbers and memories in a state, in order."""
    if type(state) is not tuple:
        yield state
    elif is_tuple(state):
        for part in parts(state):
            yield from classes(part)


class Group:
    """Memories of which one may be another: what is put into them by place, and the group of memories in them."""

    __slots__ = ("inner", "into", "states")

    def __init__(self) -> None:
        self.into: Group | None = None  # which this one has become a part of
        self.inner: Group | None = None
        self.states: dict[Any, set[Any]] = {}

    @property
    def whole(self) -> Group:
        found = self
        while found.into is not None:
            found = found.into
        return found

    @property
    def inside(self) -> Group:
        whole = self.whole
        if whole.inner is None:
            whole.inner = Group()
        return whole.inner.whole

    def enter(self, place: Any, x: Any) -> None:
        self.whole.states.setdefault(place, set()).add(state_of(x))

    def under(self, place: Any) -> set[Any]:
        """The states of what may be found at a place, or at any."""
        states = self.whole.states
        if place is None:
            return set().union(*states.values())
        return states.get(place, set()) | states.get(ANYWHERE, set())

    def join(self, other: Group) -> None:
        """The memories of two groups may be one another."""
        todo = [(self, other)]
        while todo:
            a, b = (x.whole for x in todo.pop())
            if a is b:
                continue
            b.into = a
            for place, states in b.states.items():
                a.states.setdefault(place, set()).update(states)
            if a.inner is None:
                a.inner = b.inner
            elif b.inner is not None:
                todo.append((a.inner, b.inner))


class Held:
    """The states that a region puts into memories, by groups of memories and places in them."""

    def __init__(self, folded: Folded, aliases: Aliases, real: set[type], made: set[type]) -> None:
        self.constants = folded.constants
        self.real = real  # the types of memories that may be from outside (see `Origins`)
        self.made = made
        self.groups: dict[Op, Group] = {}
        for op in folded.region.parameters:
            if is_memory(op.type):  # an argument: what it holds is as it is, lists in it too
                group = self.group(op)
                group.states[ANYWHERE], group.inner = {ANYTHING}, group
        ops = [op for block in folded.blocks() for op in block.ops]
        keys = [key for op in ops if op.fn in (DICT, STORE) for key, _ in put(op)]
        for op in ops:
            for target, source in aliases.flow(op):
                if is_memory(target.type):
                    self.given(self.group(target), source)
            if op.fn == REPEAT:
                self.given(self.group(op), op.args[0])
            elif op.fn is builtins.list:
                for key in keys:
                    self.group(op).enter(ELSEWHERE, key)
                if self.real:
                    self.group(op).states[ANYWHERE] = {ANYTHING}
            elif op.fn is in_order:
                self.group(op).enter(ANYWHERE, 0)
            for x in op.args:
                if isinstance(x, Reference):
                    self.of(x)
            self.entered(op)
            if op.fn in (LOAD, POP) and not is_text(op.args[0]):
                for x in results_of(op) if type(op) is Take else [op]:
                    if is_memory(x.type):
                        self.group(x).join(self.of(op.args[0]).inside)
        every: set[Any] = set().union(
            *(s for g in self.groups.values() for s in g.whole.states.values())
        )
        for op in ops:
            if type(op) is Take:
                every.update(op.results)
        self.tuples = any(map(is_tuple, every))
        loads = [op for op in ops if op.fn == LOAD and not is_text(op.args[0])]
        asked = {self.of(op.args[0]) for op in loads if is_unknown(op.args[1])}
        for group in {g.whole for g in self.groups.values()}:
            for place in group.states:
                apart(group.under(None if group in asked else place))
        met = {c for state in every for c in classes(state)}
        for op in ops:
            if type(op) is Take:
                apart(op.results)
            if op.fn in (LOAD, POP) and any(type(x.type) is Written for x in (op, *results_of(op))):
                if any(ANYTHING in states for states in self.of(op.args[0]).states.values()):
                    raise Unemittable("an array that is written to may be from outside")
        named = {c for c in met if is_memory(c) and c is not list and type(c) is not Written}
        self.tagged = len(named) > 1 or bool(self.real)

    def group(self, op: Op) -> Group:
        if op not in self.groups:
            self.groups[op] = Group()
        return self.groups[op].whole

    def of(self, memory: Any) -> Group:
        """The group of an operand."""
        ops = memory.ops if isinstance(memory, Reference) else [memory]
        for other in ops[1:]:
            self.group(ops[0]).join(self.group(other))
        return self.group(ops[0])

    def given(self, group: Group, x: Any) -> None:
        """An operand may be one of the memories of a group."""
        if isinstance(x, Reference):
            group.join(self.of(x))
        elif isinstance(x, Op) and x.fn == PACK:
            for part in x.args:
                self.given(group, part)
        elif isinstance(x, Op) and is_memory(x.type):
            group.join(self.group(x))

    def entered(self, op: Op) -> None:
        """What an op puts into a memory is in there."""
        for key, x in put(op):
            group = self.group(op) if op.fn in BIRTHS else self.of(op.args[0])
            group.enter(ANYWHERE if is_unknown(key) else place_of(key), x)
            self.given(group.inside, x)

    def is_sure(self, op: Op) -> bool:
        """Whether what a load or a pop gives is of its type, whatever way the run goes."""
        if is_text(op.args[0]):
            return True
        key = op.args[1] if op.fn == LOAD else 0
        place = None if is_unknown(key) else place_of(key)
        return self.of(op.args[0]).under(place) <= {op.type}


def apart(states: Iterable[Any]) -> None:
    """Refuse arrays that are written to beside others, which a program does not tell apart."""
    met = {c for state in states for c in classes(state)}
    if any(type(c) is Written and c.kind in met for c in met):
        raise Unemittable("a container holds arrays that are written to, and others")


def is_text(x: Any) -> bool:
    return type(x) is str or (isinstance(x, Op) and x.type is str)


def is_unknown(key: Any) -> bool:
    """Whether a key is a text that differs from run to run."""
    return is_text(key) and type(key) is not str


def put(op: Op) -> Iterable[tuple[Any, Any]]:
    """What an op puts into a memory, with the keys."""
    if op.fn == LIST:
        return [(0, x) for x in op.args]
    if op.fn == APPEND:
        return [(0, op.args[1])]
    if op.fn == STORE:
        return [op.args[1:3]]  # type: ignore[list-item]
    if op.fn in (DICT, OBJECT):
        given = op.args if op.fn == DICT else op.args[1:]
        return [*zip(given[::2], given[1::2], strict=True)]
    return []


def is_taken(op: Op) -> bool:
    """Whether an op gives something out of a memory, which is of one type."""
    return op.fn in (LOAD, POP) and type(op) is not Take


class States:
    """The source text of questions about states, and of tuples."""

    def __init__(self, held: Held, name: Any) -> None:
        self.held = held
        self.name = name  # gives the source text of an operand

    def tests(self, state: Any, text: str) -> Iterator[str]:
        """The conditions under which what ``text`` means is in a state."""
        if type(state) is not tuple:
            yield from self.of_class(state, text)
        elif is_tuple(state):
            yield f"type({text}) is tuple"
            yield f"len({text}) == {len(parts(state))}"
            for i, part in enumerate(parts(state)):
                yield from self.tests(part, f"{text}[{i}]")
        elif type(state[1]) in (str, bytes) and state[0] == "value":
            yield f"type({text}) is {type(state[1]).__name__}"
            yield f"{text} == {self.name(state[1])}"
        else:
            yield f"{text} is {self.constant(state)}"

    def of_class(self, kind: type, text: str) -> Iterator[str]:
        if is_numpy_type(kind) or type(kind) is Written:
            yield from tests(getattr(kind, "kind", kind), text, self.name)
        elif is_stream(kind):
            yield f"type({text}) is {self.name(Constant(kind))}"
        elif not is_memory(kind) or kind is list:
            yield f"type({text}) is {kind.__name__}"
        elif kind is dict or kind not in self.held.real:
            yield from self.of_dict(kind, text)
        elif kind not in self.held.made:
            yield f"type({text}) is {self.name(Constant(kind))}"
        else:
            made = " and ".join(self.of_dict(kind, text))
            yield f"(type({text}) is {self.name(Constant(kind))} or {made})"

    def of_dict(self, kind: type, text: str) -> Iterator[str]:
        """The conditions of a dict, or of a set or an object that the program has made."""
        yield f"type({text}) is dict"
        if self.held.tagged:
            tag = f"{text}.get({self.tag})"
            known = self.name(Constant(kind))
            yield f"{tag} is None" if kind is dict else f"{tag} is {known}"

    @property
    def tag(self) -> str:
        """The key under which an object has its class."""
        return self.name(Constant(TAG))

    def attribute(self, kind: type, text: str, name: Any) -> str:
        """The attribute of an object, which is a dict if the program has made it."""
        key = self.name(name)
        if kind not in self.held.real:
            return f"{text}[{key}]"
        plain = name.isidentifier() and not iskeyword(name)
        if plain and kind not in self.held.made and static(kind, "__getattr__") is MISSING:
            return f"{text}.{name}"
        return f"{self.name(Constant(attribute_of))}({text}, {key})"

    def constant(self, state: Any) -> str:
        kind, value = state
        text: str = self.name(self.held.constants[value] if kind == "object" else value)
        return text

    def inside(self, state: Any, text: str) -> Iterator[str]:
        """The texts of the numbers and memories in what ``text`` means."""
        if type(state) is not tuple:
            yield text
        elif is_tuple(state):
            for i, part in enumerate(parts(state)):
                yield from self.inside(part, f"{text}[{i}]")

    def template(self, state: Any, given: Iterator[Any]) -> str:
        """The text of a tuple that is made of these operands."""
        if type(state) is not tuple:
            text: str = self.name(next(given))
            return text
        if is_tuple(state):
            inner = "".join(f"{self.template(part, given)}, " for part in parts(state))
            return f"({inner.rstrip() if len(state) == 2 else inner.rstrip(', ')})"
        return self.constant(state)
