"""What a folded function reads from outside: it is noted as for any program (see `tracer.reads`), and must not change.

Words
-----
constant   a number or text from outside: it stands in the program as it is, under a guard on its value.
changed    what was read is not what earlier runs have read: what is known of the function holds no more.
"""

from __future__ import annotations

import types
from enum import Enum, EnumMeta
from random import Random
from typing import Any

import numpy as np

from ...rules.words import with_article
from .. import rewrite
from ..attributes import CONSTANT_MODULES
from ..hooks import global_place, note_missing
from ..joins import UNBOUND
from ..kinds import MISSING, flags_of, is_one_of, isinstance, keyword_defaults, static
from ..reads import HEAP_TYPE, Place, Reads
from . import arrays
from .recorder import WHOLE, Box, Recorder, Unfolded, active
from .region import INPUT, MEMORIES, Op, is_looked_into, is_number, is_of_numpy, is_stream, kind_of

ATOMS = frozenset((int, float, bool, str, bytes, type(None)))
METHODS = (types.MethodType, types.BuiltinFunctionType)
OF_C = (
    Random.__base__
)  # where the methods of generators of Python's are found that are written in C
THEMSELVES: tuple[type, ...] = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc, np.dtype, arrays.DISPATCHED,
    arrays.CACHE,
)  # fmt: skip


class Changed(Unfolded):
    """The world has changed since earlier runs."""


class Varying(Changed):
    """An integer has changed, which is an input from now on."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"{place} has changed")
        self.path = place.path


def running() -> Recorder:
    """The recording that goes on."""
    assert active.recorder is not None
    return active.recorder


def is_of_stream(value: Any) -> bool:
    """Whether a value is a method of a generator of random numbers."""
    return is_one_of(type(value), METHODS) and is_stream(type(value.__self__))


def blank(kind: Any) -> Any:
    """An object of a class, with nothing in it."""
    if static(kind, "__del__") is not MISSING:  # which would run when the region is dropped
        raise Unfolded(f"{with_article(kind.__name__)} has __del__")
    try:
        return kind.__new__(kind) if is_stream(kind) else object.__new__(kind)
    except TypeError:  # what C code has laid out
        raise Unfolded(f"{with_article(kind.__name__)} comes from outside") from None


class Outside:
    """The reads of all runs of a function."""

    def __init__(self, varying: frozenset[Any] = frozenset()) -> None:
        self.reads = Reads()
        self.varying = varying  # paths of integers that have changed
        self.inputs: list[tuple[Place, Op]] = []  # those of arguments, and then what was read
        self.read: dict[Place, Op] = {}
        # The function that runs: its cells may be others than before, with what they held.
        self.root: Any = None
        self.classes: dict[tuple[type, str], Any] = {}  # what a run has found in classes

    def note(self, parent: Place, step: str, key: Any, value: Any) -> Any:
        """A value was read at a step from somewhere: gives it, or refuses."""
        return self.seen(self.reads.note(parent, step, key, value), value)

    def seen(self, place: Place, value: Any) -> Any:
        """The value of a place, which must be what it was; what is followed of it is guarded."""
        kind = type(value)
        if is_of_numpy(value):
            return self.number(place, value)
        if is_stream(kind):
            return self.stream(place, value)
        if is_of_stream(value):
            return self.draws(place, value)
        if is_looked_into(kind):
            return self.memory(place, value)
        if kind is float or (kind is int and place.path in self.varying):
            return self.number(place, value)
        if is_one_of(kind, ATOMS):
            return self.constant(place, value)
        if place.value is not value:
            raise Changed(f"{place} has changed")
        if value is np.random.default_rng:
            place.check = "is"
            return value
        if value is MISSING or issubclass(kind, THEMSELVES):
            first = place.origin or place  # where the same function was read before
            if kind is types.FunctionType and first.code is not value.__code__:
                raise Changed(f"{place} has changed")
            if kind is types.BuiltinFunctionType and not isinstance(
                value.__self__, (types.ModuleType, type(None))
            ):
                raise Unfolded(f"{place} is a method of something outside")
            return value
        if isinstance(value, Enum):
            place.check = "is"
            return value
        if kind is tuple:
            place.check, place.size = "length", len(value)
            running().tuples.add(len(value))
            return tuple([self.note(place, "item", i, x) for i, x in enumerate(value)])
        raise Unfolded(f"{place}, {with_article(kind.__name__)} from outside, is read")

    def constant(self, place: Place, value: Any) -> Any:
        """A number or text that is guarded by its value."""
        if type(place.value) is not type(value) or repr(place.value) != repr(value):
            raise Varying(place) if type(value) is int else Changed(f"{place} has changed")
        if type(value) is float:
            place.check = "value"
        return value

    def input(self, recorder: Recorder, place: Place, value: Any) -> Op:
        """The op of what is read anew at each call."""
        op = self.read.get(place)
        if op is None:
            op = self.read[place] = Op(None, INPUT, (), kind_of(value), recorder.folded.outside)
            recorder.folded.region.parameters.append(op)
            self.inputs.append((place, op))
            self.reads.anew.add(place)
            recorder.folded.size += 1
            self.let_go(place, value)
        if op.type is not kind_of(value):
            raise Changed(f"{place} has changed")
        return op

    def number(self, place: Place, value: Any) -> Box:
        """A number or an array from outside."""
        recorder = running()
        op = self.input(recorder, place, value)
        known = recorder.inputs.get(op)
        if known is None:
            if is_of_numpy(value):
                known = recorder.read_only(value, op, WHOLE)
            else:
                known = Box(value, op, WHOLE)
            op.now = recorder.inputs[op] = known
        return known

    def stream(self, place: Place, value: Any) -> Box:
        """A generator of random numbers from outside."""
        recorder = running()
        op = self.input(recorder, place, value)
        if op not in recorder.inputs:
            op.now = recorder.inputs[op] = Box(value, op, WHOLE)
        return recorder.inputs[op]

    def draws(self, place: Place, method: Any) -> types.MethodType:
        """A method of such a generator, bound to it, as ``random.random``."""
        if place.value is not method and place.value != method:
            raise Changed(f"{place} has changed")
        place.check = "is"
        owner = self.note(place, "attribute", "__self__", method.__self__)
        if type(method) is types.MethodType:
            return types.MethodType(method.__func__, owner)
        return types.MethodType(getattr(OF_C, method.__name__), owner)

    def memory(self, place: Place, value: Any) -> Any:
        """A list, dict, set or object from outside."""
        recorder = running()
        op = self.input(recorder, place, value)
        recorder.admit(value, False)
        if (op, WHOLE) not in recorder.memories[id(value)][0]:
            recorder.name(value, op, WHOLE)
        return value

    def let_go(self, place: Place, value: Any) -> None:
        """Keep the type of something for the guards, and not the thing itself."""
        kind = type(value)
        self.reads.places.pop(id(place.value), None)
        place.check, place.value = "type", None  # whatever comes: it may die in this very call
        if kind is np.ndarray:
            place.value, place.check = np.empty((0,) * value.ndim, value.dtype), "kind"
        elif is_number(kind):
            place.value = kind(0)
        else:
            place.value = kind() if is_one_of(kind, MEMORIES) else blank(kind)

    def of_globals(self, scope: dict[str, Any], name: str, value: Any) -> Any:
        return self.seen(global_place(self.reads, scope, name, value), value)

    def of_module(self, module: types.ModuleType, name: str) -> Any:
        if type(module) is not types.ModuleType or name not in vars(module):
            raise Unfolded(f"{module.__name__}.{name} is made when it is asked for")
        place = self.reads.of(module) or self.reads.constant(module)
        value = vars(module)[name]
        if is_one_of(type(value), ATOMS) and module.__name__.partition(".")[0] in CONSTANT_MODULES:
            return self.constant(self.reads.note(place, "attribute", name, value), value)
        return self.note(place, "attribute", name, value)

    def of_class(self, cls: type, name: str) -> Any:
        """What a class holds under a name, or MISSING; a run that is followed changes none."""
        key = cls, name
        if key not in self.classes:
            self.classes[key] = self.found_in(cls, name)
        return self.classes[key]

    def found_in(self, cls: type, name: str) -> Any:
        if type(cls) is not type and type(cls) is not EnumMeta:
            raise Unfolded(f"{cls.__name__} has a metaclass")
        found = static(cls, name)
        if flags_of(cls) & HEAP_TYPE:
            return self.held(
                self.reads.note(self.reads.constant(cls), "static", name, found), found
            )
        return found

    def held(self, place: Place, found: Any) -> Any:
        """What a class holds at a place."""
        if is_one_of(type(found), ATOMS):
            return self.constant(place, found)
        if type(found) is tuple or is_of_numpy(found):
            return self.seen(place, found)
        if place.value is not found:
            raise Changed(f"{place} has changed")
        return found

    def member(self, cls: type, name: str) -> Any:
        """A member of an enumeration."""
        found = static(cls, name)
        if not isinstance(found, Enum) or type(found) is not cls:
            raise Unfolded(f"{cls.__name__}.{name} is no member of the enumeration")
        place = self.reads.note(self.reads.constant(cls), "static", name, found)
        place.check = "is"
        if place.value is not found:
            raise Changed(f"{place} has changed")
        return found

    def above(self, kind: type, cls: type, name: str) -> Any:
        """What the classes of an object of the class ``kind`` hold under a name that come behind ``cls``."""
        if type(kind) is not type:
            raise Unfolded(f"{kind.__name__} has a metaclass")
        note, order = self.reads.note, kind.__mro__
        known = note(self.reads.constant(kind), "attribute", "__mro__", order)
        known.check = "is"
        if known.value is not order:
            raise Changed(f"the bases of {kind.__name__} have changed")
        for base in order[order.index(cls) + 1 :]:
            found = vars(base).get(name, MISSING)
            if flags_of(base) & HEAP_TYPE:
                found = self.held(note(self.reads.constant(base), "own", name, found), found)
            if found is not MISSING:
                return found
        return MISSING

    def function(self, fn: types.FunctionType, hooks: Any) -> types.FunctionType:
        """The instrumented copy of a function, with what it has captured."""
        code = fn.__code__
        if rewrite.is_twin(code):
            return fn
        place = self.reads.function if fn is self.root else self.reads.of(fn)
        if place is None:
            place = self.reads.constant(fn)
            place.check, place.code = "function", code
            self.reads.places[id(fn)] = place
        if place.code is not code:
            raise Changed(f"{fn.__name__} has changed")
        try:
            twin = rewrite.instrument(code, hooks)
        except rewrite.UnsupportedCode as error:
            raise Unfolded(str(error)) from None
        note_missing(self.reads, fn.__globals__, rewrite.global_names(twin))
        cells = tuple(
            [
                self.cell(place, i, name, cell)
                for i, (name, cell) in enumerate(
                    zip(code.co_freevars, fn.__closure__ or (), strict=True)
                )
            ]
        )
        copy = types.FunctionType(twin, fn.__globals__, fn.__name__, None, cells)
        copy.__qualname__ = fn.__qualname__
        copy.__module__ = fn.__module__
        if fn.__defaults__:
            self.note(place, "defaults", None, len(fn.__defaults__))
            copy.__defaults__ = tuple(
                [self.note(place, "default", i, x) for i, x in enumerate(fn.__defaults__)]
            )
        if given := keyword_defaults(fn):
            self.reads.note(place, "kwdefaults", None, tuple(given))
            copy.__kwdefaults__ = {k: self.note(place, "kwdefault", k, x) for k, x in given.items()}
        return copy

    def cell(self, place: Place, index: int, name: str, cell: Any) -> types.CellType:
        """A cell of the run's own, with what a cell outside holds."""
        own = types.CellType()
        held = self.reads.note(place, "closure", index, cell)
        if held.value is not cell and place is not self.reads.function:
            raise Changed(f"the cell of {name} has changed")
        try:
            value = cell.cell_contents
        except ValueError:
            held.check, own.cell_contents = "empty", UNBOUND
            return own
        own.cell_contents = self.note(held, "cell", name, value)
        return own
