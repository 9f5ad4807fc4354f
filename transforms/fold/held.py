"""What memories hold, and how a program tells apart what it takes out of them.

Words
-----
state    of what is in a memory: as `Recorder.flat` says, a class, a constant, or a tuple of states.
place    where it can lie: under a text that is known, or among all that lies elsewhere.
tagged   of a program that has to tell the classes of objects apart: they are dicts there, and hold their class.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Any

from ...tracer.fold.region import (
    APPEND,
    DICT,
    LIST,
    LOAD,
    OBJECT,
    PACK,
    POP,
    STORE,
    Constant,
    Folded,
    Op,
    Reference,
    Take,
    is_memory,
)

ELSEWHERE = object()  # the place of list items, and of what has a key that is no known text
TAG = "None"  # the source text of the key under which an object has its class
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


class Held:
    """The states that a region puts into memories, by place."""

    def __init__(self, folded: Folded) -> None:
        self.constants = folded.constants
        self.states: dict[Any, set[Any]] = {}
        taken: set[Any] = set()
        keys: list[Any] = []
        copied = False  # whether the keys of a dict become items of a list
        for block in folded.blocks():
            for op in block.ops:
                if type(op) is Take:
                    taken.update(op.results, block.cases if block.subject is op else ())
                copied |= op.fn is builtins.list
                if op.fn in (DICT, OBJECT, STORE):
                    given = op.args if op.fn == DICT else op.args[1:]
                    keys += given[::2]
                for key, x in put(op):
                    if isinstance(key, Op) and key.type is str:
                        self.enter(None, x)
                    self.enter(place_of(key), x)
        for key in keys if copied else ():
            self.enter(ELSEWHERE, key)
        every = taken.union(*self.states.values())
        self.tuples = any(map(is_tuple, every))
        named = {c for state in every for c in classes(state) if is_memory(c) and c is not list}
        self.tagged = len(named) > 1

    def enter(self, place: Any, x: Any) -> None:
        self.states.setdefault(place, set()).add(state_of(x))

    def is_sure(self, op: Op) -> bool:
        """Whether what a load or a pop gives is of its type, whatever way the run goes."""
        memory = op.args[0]
        if type(memory) is str or (isinstance(memory, Op) and memory.type is str):
            return True
        key = op.args[1] if op.fn == LOAD else 0
        if isinstance(key, Op) and key.type is str:
            found = set().union(*self.states.values())
        else:
            found = self.states.get(place_of(key), set()) | self.states.get(None, set())
        return found <= {op.type}


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
        elif type(state[1]) is str and state[0] == "value":
            yield f"type({text}) is str"
            yield f"{text} == {self.name(state[1])}"
        else:
            yield f"{text} is {self.constant(state)}"

    def of_class(self, kind: type, text: str) -> Iterator[str]:
        if not is_memory(kind) or kind is list:
            yield f"type({text}) is {kind.__name__}"
            return
        yield f"type({text}) is dict"
        if self.held.tagged:
            tag = f"{text}.get({TAG})"
            yield (
                f"type({tag}) is not type"
                if kind is dict
                else f"{tag} is {self.name(Constant(kind))}"
            )

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
