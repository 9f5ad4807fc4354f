"""The trace in progress: one tape, and what is known of the world outside it.

Words
-----
tracer    everything that belongs to one run of a traced function; one a thread is active.
outside   what existed before the run: arguments, globals, closures, attributes of such objects.
shadow    a copy of an outside list, dict, tuple … in which boxes stand for the leaves.
overlay   the traced values behind attributes and globals of the outside, which themselves hold plain values.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import errors
from .active import active
from .arrays import Memory, give_back, memory_of, overlaid, owner_of
from .box import ArrayBox, Box
from .errors import Refusal
from .held import lent_by
from .kinds import isinstance
from .origins import Texts
from .reads import Place, Reads
from .tape import Input, Op, Tape


class Tracer:
    """One run of a traced function."""

    def __init__(
        self,
        tape: Tape,
        primitives: Callable[[Any, tuple[Any, ...], dict[str, Any]], bool] | None = None,
        reads: Reads | None = None,
    ) -> None:
        self.tape = tape
        self.reads = reads  # what was read from outside, if somebody wants to know
        self.made: dict[int, tuple[Any, Op]] = {}  # id of what an unknown call made: it, its op
        self.drawn: list[
            Any
        ] = []  # what unknown calls gave in a run that stopped half-way, to be given again
        self.primitives = primitives
        self.twins: dict[
            int, tuple[Any, Any]
        ] = {}  # id of an outside function: a reference to it, its twin
        self.cells: dict[int, tuple[Any, Any]] = {}  # id of an outside cell: the cell, its shadow
        self.cells_known: dict[int, Any] = {}  # id of an outside cell: what it held when last seen
        self.cells_held: dict[int, Any] = {}  # id of an outside cell: what its shadow held at first
        self.arrays: dict[int, ArrayBox] = {}  # id of an outside array: its box
        self.memories: dict[int, Memory] = {}  # id of the owner of some storage
        self.shadows: dict[int, tuple[Any, Any]] = {}  # id of an outside container: it, its shadow
        self.originals: dict[
            int, tuple[Any, Any]
        ] = {}  # id of a shadow: the shadow, the outside container
        # Of methods, views and proxies outside: id of what lies there -> it, as the run sees it; and the way back.
        self.views: dict[int, tuple[Any, Any]] = {}
        self.viewed: dict[int, tuple[Any, Any]] = {}
        self.overlay: dict[
            tuple[int, Any], tuple[Any, Any, Any]
        ] = {}  # (id, name): owner, plain, traced
        self.rebound = False  # whether the run has set a global
        self.owners: dict[
            int, Any
        ] = {}  # id of a ``__dict__`` outside that was written to: its owner
        self.loose: list[Any] = []  # objects outside whose dicts themselves a variable holds
        self.namespaces: dict[
            int, tuple[Any, dict[str, Any]]
        ] = {}  # as in the overlay: an owner, what the run sees as its ``__dict__``
        # How many calls go on of library code that runs as it is, and fills containers that methods of the user's
        # see: the members of an Enum.
        self.unseen = 0
        self.outside: dict[int, Any] = {}  # id of an outside object: the object
        self.errors: dict[
            int, tuple[Any, list[Any]]
        ] = {}  # id of an outside exception: it, what a raise would change of it
        self.inside: dict[
            int, Any
        ] = {}  # id of an object that the run has made and refers to weakly: a reference to it
        self.contents: dict[
            int, list[tuple[Any, Any]]
        ] = {}  # id of an outside collection of a class of its own: the items that it held
        self.admitting: dict[int, Any] = {}  # id of a container that is being let in: its shadow
        self.calls: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = (
            weakref.WeakKeyDictionary()
        )  # a function under lru_cache: its results in this run
        # What went into dicts outside, and where (see ``memos``).
        self.memos: list[tuple[Any, Any]] = []
        self.cached = 0  # how many of them there have been
        self.repeating = 0  # how many bodies run again, for the derivative of what their caches had
        self.sealed: dict[
            int, tuple[Any, Any, Any]
        ] = {}  # id of an argument that is sealed: it, its seal, what is seen of it
        self.holders: dict[
            int, tuple[Any, Any]
        ] = {}  # id of what an argument has captured: it, and its tree, which grows as it is read
        self.captured: dict[
            tuple[int, Any], tuple[Any, Any, Any]
        ] = {}  # (id, key): what an argument has captured, what was read of it, and how that is seen
        self.readable: dict[
            int, Any
        ] = {}  # those of them that C code reads as they are: their seals
        # By id of what C code made: weakly, it and its whole, and what is known of that.
        self.parts: dict[int, tuple[Any, Any, Any]] = {}
        # By id, weakly, functions that C code was handed, and may have kept.
        self.called_later: dict[int, weakref.ReferenceType[Any]] = {}
        self.converted: dict[int, ArrayBox] = {}  # id of a sealed array: what it is as a plain one
        self.reading: list[Any] = []  # the seals behind which the call that goes on reads
        self.handed: list[
            ArrayBox
        ] = []  # arrays that functions of ctypes were handed, and may keep
        self.watches: list[Any] = []  # the calls of C functions that go on, as Watches
        self.heads = 0  # of loops, at which iterations have begun
        self.finalizers: list[Any] = []  # of objects that the run has made: their Detours
        # Up to where the tape is known, and what was put outside by then.
        self.put: tuple[int, int, list[Op]] = (0, -1, [])
        # The same by effects alone: how many ops, the latest of them, and the ids of the values.
        self.put_values: tuple[int, Any, set[int]] = (0, None, set())
        # While an import runs of which the run sees nothing: by id, the modules that were there.
        self.importing: set[int] | None = None
        self.others_ran = False  # whether code has run of which the run sees nothing
        self.resuming: dict[int, Any] = {}  # id of an iterator that runs code outside as it is: it
        self.visits: dict[int, list[Any]] = {}  # calls of their caches that go on, by their bodies
        self.trees: dict[int, Any] = {}  # id of an object that is an argument: its tree
        self.exposed: list[ArrayBox] = []  # boxes of arrays that somebody outside holds
        self.asides: Any = None  # Asides, once code has run that may have written to them
        self.before: dict[
            int, Any
        ] = {}  # id of a shadow: what its original held when they were equal
        self.mirrors: dict[int, Any] = {}  # id of an original: its mirror (see ``through``)
        self.behind: set[int] = set()  # ids of originals that are settled when the run ends
        self.found: dict[int, Any] = {}  # id of a shadow: what its original held at first
        self.shadows_of: dict[int, list[Any]] = {}  # id of an original: its shadows
        self.flats: dict[
            int, list[Any]
        ] = {}  # id of a box that stands for ``array.flat``: it, its iterator, what is ahead, the shape
        self.admitted: dict[
            int, Any
        ] = {}  # id of an argument's shadow: what it held when it was let in
        self.joined: dict[
            int, list[Any]
        ] = {}  # id of a container made inside: its copies with variables
        self.single: dict[int, Any] = {}  # id of an object like a sequence that NumPy takes for one
        self.lending = False  # whether an object is asked for memory of which NumPy makes an array
        self.names: dict[int, str] = {}  # id of a shadow: what to call its original
        self.specials: dict[
            int, Any
        ] = {}  # id of a class: it, its members, the detours of its special methods
        self.changed: set[int] = set()  # ids of originals that were brought up to date
        self.modules: dict[
            int, dict[str, Any]
        ] = {}  # by id of a module: what it holds for this run
        self.declined: type | None = (
            None  # of which class the value was that C code has last asked in vain
        )
        # Whether a key of a dict may have a way of the user's to be equal to others.
        self.comparing = False
        self.alike: dict[int, int] = {}  # by id of a dict or set without such keys: its length
        self.called_back = 0  # how often C code has called methods of the user's classes
        self.classes: dict[int, Any] = {}  # id of a class that the run has made: a reference to it
        self.passed: dict[int, tuple[Any, Any]] = {}  # by id, what a progress bar goes over
        self.generators: dict[int, Any] = {}  # by id: weak references to the latest
        self.pending: list[Any] = []  # functions and partials that escaped while the run went on
        self.inputs: list[tuple[ArrayBox, Input]] = []  # arrays of the outside, and what they were
        self.tails: dict[int, Any] = {}  # id of a list that is only appended to: its Tail
        self.states: dict[
            int, tuple[Any, Any, Any]
        ] = {}  # id of an errstate: it, its modes, and the op that entered it
        self.refusal: Refusal | None = None  # the first one, in which the run must end
        self.scopes: dict[
            int, Any
        ] = {}  # id of globals that the run itself gave to code: their Scope
        self.executing: list[Any] = []  # what `exec` and `eval` are running, as Executions
        self.variables: Any = None  # the site of a call that may look at its caller's: those
        self.loops: Any = None  # a loops.Loops, where the iterations of loops are marked
        self.outline: Any = None  # an outline.Outline, where the tape is to be printed
        outer = active.tracer  # text of the run around this one may be used in it
        self.texts: Texts = Texts() if outer is None else outer.texts
        self.dependence = self.texts.dependence
        self.expanding = (
            False  # whether it traces a rule, for all calls with arguments of its types
        )
        self.live: set[Op] = set()  # what functions have computed that solvers in C called back
        self.bodies: list[Any] = []  # primitives whose recorded rules are running
        self.pulling = 0  # how many functions of recorded rules a sweep is running
        self.pairs: list[Any] = []  # what such rules have returned in this run (see ``pairs``)
        # Whether tangents are wanted of what is computed now, and what knows them, if anything does
        self.forward: Any = False
        self.folds = True  # whether calls of checkpointed functions may be folded
        self.last = False  # whether what is computed now is not differentiated any more

    def close(self) -> None:
        """The run has ended. What it met lives no longer than in plain Python: nothing is held, nor on a cycle."""
        for memory in [*self.memories.values()]:
            memory.boxes.clear()
        give_back(self.tape)
        if self.loops is not None:
            self.loops.close()
        for known in (
            self.twins,
            self.outside,
            self.inside,
        ):  # callbacks of their references hold them
            known.clear()
        vars(self).clear()

    def holder_of(self, obj: Any) -> Any:
        """The tree of something that an argument has captured, or the seal that it is behind; else None."""
        known = self.holders.get(id(obj)) if self.holders else None
        return None if known is None else known[1]

    def input(self, name: str, value: Any, role: str, place: Place | None = None) -> Box:
        """A new input of the tape, in a box of its own."""
        op = Input(name, value, self.tape, role, place)
        self.tape.ops.append(op)
        if not isinstance(value, np.ndarray):
            return Box(value, op)
        owner = owner_of(value)
        memory = self.memories.get(id(owner))
        if memory is None:
            memory = memory_of(self.tape, value, owner) or Memory(owner)
            self.memories[id(owner)] = self.tape.memories[id(owner)] = memory
        elif memory.writes and self.reads is not None:
            self.reads.problem(f"{name} is read when the run has written into its memory")
        box = overlaid(ArrayBox(value, op, memory))
        memory.boxes.append(box)
        memory.saved.append(op)
        self.inputs.append((box, op))
        if memory.lent and value.flags.writeable:
            self.tape.lent.append(memory)
            lent_by(self, box)
        elif (
            getattr(owner, "base", None) is not None
        ):  # a capsule, behind which another array may lie
            self.tape.lent.append(memory)
        if op.role == "outside":
            self.arrays[id(value)] = box
        return box


def remember(refusal: errors.WengertError) -> None:
    """Note the first refusal of the run that is active."""
    tracer = active.tracer
    if tracer is not None and tracer.refusal is None and isinstance(refusal, Refusal):
        tracer.refusal = refusal


errors.listeners.append(remember)
