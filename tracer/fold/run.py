"""A recorded run: arguments in, the value out, and the region grown by what was new."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from types import CodeType, MethodType
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..active import active as traced
from ..kinds import is_one_of
from ..reads import Place
from ..run import surroundings
from . import arrays, hooks
from .basics import is_constant, plain
from .functions import call_function
from .generators import settled
from .iteration import ITERATORS
from .outside import Outside
from .recorder import TEXTS, Box, Passing, Recorder, Rewritten, Unfolded, active
from .region import (
    DICT,
    FLOATS,
    INPUT,
    Array,
    Block,
    Folded,
    Op,
    is_looked_into,
    is_of_numpy,
    is_stream,
)
from .region import kind_of as type_of

lock = threading.Lock()
LONGEST = 10_000  # numbers in the arguments
PLACES = 100  # where a run makes arrays that it writes to
LARGEST = 20_000  # ops, blocks and ends of a region


class Known:
    """What is known of the runs of a function for arguments of one kind.

    ``inputs`` are the numbers of the arguments with their places, then arrays from outside. ``trees`` say of each
    argument where its numbers stand in it: an op, None for what is no number, or a list, tuple or dict of these.
    ``growth`` has the runs, counted from 1 on, at which the region grew, each with by how much and the number of
    its last block; ``written`` is the size of the region that the latest program was written of. ``arrays`` has the
    keys under which arrays are made that some run writes to, ``limits`` how much generators give before they are
    stopped, and ``loose`` says what makes no state of its own (see `recorder.Loose`). With ``aux`` a call gives a
    pair, of what is differentiated and of what there is beside it. That is one number, or up to ``several`` in an
    array, a list or a tuple.
    """

    def __init__(
        self, varying: frozenset[Any] = frozenset(), aux: bool = False, several: float = 0
    ) -> None:
        self.varying = varying
        self.aux = aux
        self.several = several
        self.numbers = 1  # that the latest call has given
        self.arrays: set[Any] = set()
        self.limits: dict[CodeType, int] = {}
        self.loose = TEXTS
        self.tuples: set[int] = set()  # how long those are that runs have met outside
        self.given_back: set[int] = set()  # and those that they give
        self.begin()

    def begin(self) -> None:
        """Nothing is known but which arrays are written to."""
        self.folded = Folded()
        self.outside = Outside(self.varying)
        self.inputs = self.outside.inputs
        self.trees: list[Any] = []
        self.runs = 0
        self.written = -1
        self.growth: list[tuple[int, int, int]] = []

    def run(
        self,
        f: Callable[..., Any],
        names: Sequence[str],
        args: Sequence[Any],
        drawn: list[Any] | None = None,
        most: float = math.inf,
    ) -> tuple[Any, int]:
        """The value of a call, and how much the region has grown; raises `Unfolded`. Who calls it holds the `lock`.

        ``drawn`` is what the call has drawn before (see `streams`); what it draws now is added, whatever comes of it.
        After ``most`` seconds of work it is given up.
        """
        until = time.thread_time() + most
        if traced.tracer is not None:
            raise Passing("it is called while another function is traced")
        drawn = [] if drawn is None else drawn
        for _ in range(PLACES):
            try:
                return self.attempt(f, names, args, drawn, until)
            except Rewritten:
                self.begin()
        raise Unfolded("it writes to arrays that it makes at too many places")

    def attempt(
        self,
        f: Callable[..., Any],
        names: Sequence[str],
        args: Sequence[Any],
        drawn: list[Any],
        until: float,
    ) -> tuple[Any, int]:
        """One pass."""
        recorder = Recorder(self.folded, self.outside, hooks, self.arrays)
        recorder.served = [*drawn]
        recorder.until = until
        try:
            recorder.limits = self.limits
            recorder.iterators = ITERATORS
            recorder.loose = self.loose
            recorder.tuples = self.tuples
            active.recorder = recorder
            recorder.watched = np.geterr() == arrays.ERRORS
            raised = arrays.RAISED if recorder.watched else {}
            with np.errstate(**raised), surroundings.recording(self.outside.reads):
                try:
                    value = self.recorded(recorder, f, names, args)
                except Unfolded as why:
                    self.check_kept(recorder)
                    if recorder.met and not isinstance(why, Passing):
                        self.loose = recorder.met - 1
                        raise Rewritten("what a bool or a text is has to be known") from None
                    raise
            self.check_kept(recorder)
            self.runs += 1
            if recorder.grown:
                self.growth.append((self.runs, recorder.grown, Block.count))
            return value, recorder.grown
        finally:
            active.recorder = recorder.refusal = (
                None  # or its traceback would keep alive what it saw
            )
            drawn[:] = [*recorder.log, *recorder.served]
            recorder.close()
            self.let_go()

    def check_kept(self, recorder: Recorder) -> None:
        """Where arrays are written to, those that lie in memories must be such as well, whatever became of the pass."""
        if self.arrays and recorder.kept:
            self.arrays |= recorder.kept
            raise Rewritten("an array is written to") from None

    def let_go(self) -> None:
        """A call has ended, perhaps in the middle of a function."""
        self.outside.root = None
        self.outside.classes.clear()
        for function in self.folded.functions.values():
            function.running = 0
        for op in (*self.folded.ops(), *[op for _, op in self.inputs]):
            op.now = None  # or an array would live on

    def callee(self, f: Any, args: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """The function that is called, and with what: a method with the object that it belongs to."""
        place = self.outside.reads.function
        if type(f) is not MethodType or place is None:
            return f, tuple(args)
        fn, owner = [
            self.outside.note(place, "attribute", name, getattr(f, name))
            for name in ("__func__", "__self__")
        ]
        return fn, (owner, *args)

    def recorded(self, recorder: Recorder, f: Any, names: Sequence[str], args: Any) -> Any:
        if not apart(args, set()):
            raise Passing("one list stands at two places of the arguments")
        reads = self.outside.reads
        if reads.function is None:
            reads.function = reads.root(f.__name__, f)
            reads.arguments = [reads.root(name, x) for name, x in zip(names, args, strict=True)]
        self.outside.root = f
        given = Arguments(self, recorder)
        boxed, trees = [], []
        for place, x in zip(reads.arguments, args, strict=True):
            inside, tree = given.admit(place, x)
            boxed.append(inside)
            trees.append(tree)
        self.trees = trees
        try:
            result = call_function(recorder, "function", *self.callee(f, boxed), {})
        except Exception as error:
            raise Passing(f"it ends in {with_article(type(error).__name__)}") from None
        if recorder.refusal is not None:
            raise recorder.refusal
        settled(recorder)
        if reads.problems:
            raise Unfolded(reads.problems.pop())
        if self.folded.size > LARGEST:
            raise Unfolded("its calls have gone too many ways")
        made = self.parts(recorder, result)
        value = plain(made[0])
        if not is_one_of(type(value), {float} | FLOATS):
            self.check_several(recorder, made[0])
        found: list[Any] = []
        recorder.finish("return", tuple([recorder.flat(x, found) for x in made]), found)
        return value

    def check_several(self, recorder: Recorder, x: Any) -> None:
        """Let what is no number be several of them, if that is asked for."""
        if not self.several or not are_floats(recorder, x):
            raise Unfolded(f"it gives {with_article(type(plain(x)).__name__)}, not a float")
        self.numbers = count(x)
        if self.numbers > self.several:
            raise Unfolded("it gives many numbers, and a row of the Jacobian is computed for each")

    def parts(self, recorder: Recorder, result: Any) -> tuple[Any, ...]:
        """The number that a call gives, and what there is beside it."""
        if self.aux and (type(result) is not tuple or len(result) != 2):
            raise Unfolded("it gives no pair")
        made = result if self.aux else (result,)
        todo, seen = [*made], set()
        while todo:
            x = todo.pop()
            if type(x) is tuple and x:
                if is_constant(x):
                    raise Unfolded("it gives back a tuple of constants")
                self.given_back.add(len(x))
            if id(x) in recorder.copied or self.given_back & self.tuples:
                raise Unfolded("it gives back a dict or a tuple that it was given")
            if type(x) in (tuple, list, dict) and id(x) not in seen:
                seen.add(id(x))
                todo += x.values() if type(x) is dict else x
        return made


def content(x: Any) -> Any:
    """What a box has in it, or an array that is written to."""
    return x.value if type(x) is Array else plain(x)


def are_floats(recorder: Recorder, x: Any) -> bool:
    """Whether what a call gives is an array, a list or a tuple of floats, or a float among others."""
    value = content(x)
    kind = type(value)
    if kind is tuple:
        return bool(value) and all(are_floats(recorder, y) for y in value)
    if kind is list:
        return id(x) in recorder.memories and all(type(plain(y)) is float for y in x)
    if arrays.is_array(x):
        return bool(value.dtype == float)
    return kind is float or kind is np.float64


def count(x: Any) -> int:
    """How many numbers are in what `are_floats`."""
    value = content(x)
    if type(value) is tuple:
        return sum(map(count, value))
    return len(value) if type(value) is list else int(np.size(value))


class Arguments:
    """Boxes the numbers of arguments, in their order."""

    def __init__(self, known: Known, recorder: Recorder) -> None:
        self.known = known
        self.recorder = recorder
        self.count = 0

    def admit(self, place: Place, x: Any) -> tuple[Any, Any]:
        """An argument as the run sees it, and where its numbers stand. Of containers no place keeps hold."""
        kind = type(x)
        if kind is tuple or kind is dict:
            self.known.outside.reads.places.pop(id(place.value), None)
            place.value = kind()
        if kind is float or kind is int or kind is str or is_stream(kind):
            op = self.input(place, kind)
            if place.value is x and is_stream(kind):
                self.known.outside.let_go(place, x)
            box = op.now = Box(x, op, 0)
            return box, op
        if is_of_numpy(x):
            op = self.input(place, type_of(x))
            if place.value is x:
                self.known.outside.let_go(place, x)
            box = op.now = self.recorder.read_only(x, op, 0)
            return box, op
        if kind is tuple:
            pairs = self.parts(place, list(enumerate(x)))
            given = tuple([inside for inside, _ in pairs])
            self.recorder.copied.add(id(given))
            self.recorder.tuples.add(len(x))
            return given, tuple([tree for _, tree in pairs])
        if is_whole(x):
            op = self.input(place, kind)
            if place.value is x:
                self.known.outside.let_go(place, x)
            self.recorder.admit(x, True)
            return self.recorder.name(x, op), op
        if kind is dict:
            pairs = self.parts(place, list(x.items()))
            made = dict(zip(x, [inside for inside, _ in pairs], strict=True))
            packed = [self.recorder.packed((place, key), part) for key, part in made.items()]
            flat = [y for pair in zip(made, packed, strict=True) for y in pair]
            self.recorder.given.add(id(made))
            self.recorder.copied.add(id(made))
            self.recorder.copies.append((x, x.copy()))
            self.recorder.of_arguments.add(id(made))
            trees = dict(zip(x, [tree for _, tree in pairs], strict=True))
            return self.recorder.born(place, DICT, flat, made), trees
        return self.known.outside.seen(place, x), None

    def parts(self, place: Place, items: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        place.check = "keys" if type(place.value) is dict else "length"
        place.size, place.key_list = len(items), [key for key, _ in items]
        note, known = self.known.outside.reads.note, [*place.children.values()]
        children = known or [note(place, "item", key, x) for key, x in items]
        return [self.admit(child, x) for child, (_, x) in zip(children, items, strict=True)]

    def input(self, place: Place, kind: Any) -> Op:
        """The op of the next number."""
        inputs = self.known.inputs
        if self.count == len(inputs):
            place.check = "type"
            op = Op(None, INPUT, (), kind, self.known.folded.region)
            self.known.folded.region.parameters.append(op)
            inputs.append((place, op))
        op = inputs[self.count][1]
        self.count += 1
        return op


def apart(x: Any, seen: set[int]) -> bool:
    """Whether no list stands twice in lists, tuples and dicts."""
    kind = type(x)
    if kind is list:
        if id(x) in seen:
            return False
        seen.add(id(x))
    if kind is dict:
        x = x.values()
    elif kind is not list and kind is not tuple:
        return True
    return all(apart(y, seen) for y in x)


def is_whole(x: Any) -> bool:
    """Whether an argument is no tree of numbers, but an input as it is: what is in it may be another at each call."""
    kind = type(x)
    if kind is dict:
        return len(x) > LONGEST or not all(type(key) is str for key in x)
    return is_looked_into(kind)


def kinds_of(args: Sequence[Any]) -> Any:
    """What arguments must have in common to be runs of one region: a hashable, or None where they are not followed."""
    found = tuple([kind_of(x, 0) for x in args])
    return None if any(x is None for x in found) else found


def kind_of(x: Any, depth: int) -> Any:
    kind = type(x)
    if kind is float or kind is int or kind is str or is_stream(kind):
        return kind
    if is_of_numpy(x):
        return type_of(x)
    if kind is bool or x is None:
        return ("is", x)
    if type(kind) is not type:  # whose hash may be the user's
        return None
    if is_whole(x):
        return kind
    if depth > 3 or (kind is not tuple and kind is not dict) or len(x) > LONGEST:
        return None
    inner = [kind_of(y, depth + 1) for y in (x.values() if kind is dict else x)]
    return (
        None if any(y is None for y in inner) else (kind, *([*x] if kind is dict else ()), *inner)
    )
