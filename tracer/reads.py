"""What a run reads from outside itself, and how to find it again at the next call.

Words
-----
place     where a value was found: a root (an argument, the callable, a constant object such as a module) and steps.
step      how one place is reached from another: ``global``, ``attribute``, ``item``, ``cell``, ``method`` …
check     what must hold of a place for the run to be valid again: the same object, an equal value, the same type.
problem   a reason why the run cannot stand for another call: it must be traced each time.

A place is noted once in a run, with the value that it had then. What the run itself wrote is not read from outside.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.registry import lookup
from ..rules.words import with_article
from . import arrays
from .detours import code_of
from .frames import items_of, native, shown
from .intrinsic import Made, is_made
from .kinds import HEAP_TYPE as HEAP_TYPE
from .kinds import IMMUTABLE, PROXIES, attribute, flags_of, hashed, is_one_of, isinstance, mro_of
from .kinds import MISSING as MISSING
from .kinds import static as static
from .places import called_from
from .structure import CONTAINERS, is_container
from .tape import Site

BY_VALUE = frozenset((int, str, bytes, range, slice))
# Immutable values written in C, by module and name: what holds of one holds as long as it is the very same.
FROZEN = frozenset(
    [("re", "Pattern"), ("decimal", "Decimal")]
    + [("datetime", x) for x in "date datetime time timedelta timezone".split()]
)
VALUES = (
    int,
    float,
    complex,
    str,
    bytes,
    tuple,
    frozenset,
)  # classes of which immutable values are made
BY_IDENTITY = frozenset(
    (type(None), bool, type(Ellipsis), type(NotImplemented), np.ufunc, np.dtype)
    + (types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType)
    + (types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.CodeType)
    + (property, staticmethod, classmethod, types.GetSetDescriptorType, types.MemberDescriptorType)
)


BOUND = frozenset((types.BuiltinFunctionType, types.MethodWrapperType))  # methods written in C
# What holds other values and is written in C: it is guarded, does not change, or answers for another object.
SEEN = frozenset(
    (*CONTAINERS, str, bytes, range, slice, np.ndarray, np.generic, re.Match, *PROXIES)
)


FIXED_OBJECTS = (
    type,
    np.dtype,
    functools._lru_cache_wrapper,
    types.UnionType,
    types.GenericAlias,
) + (
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
)


def is_frozen(value: Any) -> bool:
    """Whether a value is immutable, written in C or derived from such a one, and none of Python's or NumPy's own."""
    kind = type(value)
    if (kind.__module__, kind.__name__) in FROZEN:
        return True
    return isinstance(value, VALUES) and not is_one_of(kind, VALUES) and not is_container(value)


def is_unseen(value: Any) -> bool:
    """Whether a value written in C holds others that may change, and that no guard looks at: a view, a buffer."""
    for base in mro_of(type(value)):
        if is_one_of(base, SEEN):
            return False
        if flags_of(base) & (HEAP_TYPE | IMMUTABLE) != HEAP_TYPE:  # written in C
            own = base.__dict__
            if "__iter__" in own or ("__getitem__" in own and "__len__" in own):
                return True
    return False


WRITTEN = frozenset(
    "item attribute method static own".split()
)  # steps that stand behind what they begin at
SHOWN = 100  # of these steps; what lies deeper is not named from its root


class Place:
    """A value outside and the way to it; ``check`` is None where the steps that follow say all."""

    __slots__ = (
        "check",
        "children",
        "code",
        "key",
        "key_list",
        "origin",
        "parent",
        "pinned",
        "size",
        "step",
        "value",
    )

    def __init__(self, parent: Place | None, step: str, key: Any, value: Any) -> None:
        self.parent = parent
        self.step = step
        self.key = key
        self.value = value
        self.check: str | None = None
        self.pinned = False  # whether it must be the very same object, whatever else must hold
        self.children: dict[Any, Place] = {}
        self.origin: Place | None = None  # of the check `same`
        self.key_list: list[Any] | None = None  # of the check `keys`
        self.size = 0  # of a container, when it was read
        self.code: types.CodeType | None = None  # of a function, when it was read

    def __str__(self) -> str:
        """How a person would write it."""
        place, way = self, ""
        for _ in range(SHOWN):
            if place.parent is None or place.step not in WRITTEN:
                return f"{place.name()}{way}"
            way = (f"[{shown(place.key)}]" if place.step == "item" else f".{place.key}") + way
            place = place.parent
        return f"…{way}"

    def name(self) -> str:
        """The same, of what is not written behind something else."""
        if self.step in ("root", "global", "cell"):
            return str(self.key)
        if self.step == "constant":
            return attribute(self.value, "__name__", type(self.value).__name__)
        of = "" if self.parent is None else f" of {self.parent}"
        return f"the {self.step}{of}" if self.key is None else f"the {self.step} {self.key}{of}"

    @property
    def path(self) -> tuple[Any, ...]:
        """The steps from the root, which say of two runs whether they read the same place."""
        above = () if self.parent is None else self.parent.path
        key = id(self.value) if self.step == "constant" else hashed(self.key)
        return (*above, (self.step, key))


class Reads:
    """All that one run has read from outside."""

    def __init__(self, dynamic: frozenset[Any] = frozenset()) -> None:
        self.function: Place | None = None
        self.arguments: list[Place] = []
        self.keywords: dict[str, Place] = {}
        self.constants: dict[int, Place] = {}
        self.places: dict[int, Place] = {}  # by the id of the value, which the place keeps alive
        self.written: set[tuple[int, Any]] = set()
        self.dynamic = dynamic  # paths of integers that have changed too often to be guarded
        self.problems: list[str] = []
        self.looks = False  # whether the run has looked at the frames that were calling
        self.importing = 0  # imports that have begun, and not succeeded
        self.calls = 0  # of Python functions
        self.in_rows = False  # whether arrays must lie row by row, as they do (see ``arrays``)
        self.impure: dict[Any, None] = {}  # ops that must be carried out at each call, in order
        self.stored: dict[
            int, tuple[Any, list[Any]]
        ] = {}  # by id: a container handed to the outside, and what it held
        self.handed_out: list[
            tuple[Any, int]
        ] = []  # arrays handed to the outside, and the writes to them before
        # What had been written to arrays and variables outside where something was first done that may fail, and last.
        self.uncertain: list[list[tuple[Any, Any]]] = []
        self.anew: set[Place] = set()  # whose values may be others at each run that is noted here
        self.noted: dict[tuple[int, str], Any] = {}  # globals, by the id of their module's and name

    def problem(self, why: str, site: Site | None = None) -> None:
        """Note that the run cannot stand for other calls."""
        if len(self.problems) < 8:
            place = ""
            if site is not None and site.filename:
                caller = called_from(site)
                led = f" (called from {caller.place})" if caller is not None else ""
                place = f"{site.place}{led}: "
            self.problems.append(place + why)

    @property
    def roots(self) -> list[Place]:
        """The places where everything begins: the callable itself, and the arguments."""
        own = [self.function] if self.function is not None else []
        return [*self.arguments, *self.keywords.values(), *own]

    def root(self, name: str, value: Any) -> Place:
        """A new root."""
        place = Place(None, "root", name, value)
        self.settle(place)
        return place

    def constant(self, value: Any) -> Place:
        """An object that stands for itself: a module, a class, the globals of a module."""
        place = self.constants.get(id(value))
        if place is None:
            place = self.constants[id(value)] = Place(None, "constant", id(value), value)
        return place

    def of(self, value: Any) -> Place | None:
        """The place where an object was found."""
        return self.places.get(id(value))

    def note(self, parent: Place, step: str, key: Any, value: Any) -> Place:
        """A value was read: from here on the run depends on it."""
        name = (step, type(key), key) if type(key) is str else (step, id(type(key)), hashed(key))
        place = parent.children.get(name)
        if place is None:
            place = parent.children[name] = Place(parent, step, key, value)
            self.settle(place)
        elif type(place.value) is not type(value) or (
            place.value is not value
            and is_one_of(type(value), BY_VALUE)
            and place.value != value
            and place not in self.anew
        ):
            self.problem(f"{place} changed while the function ran")
        return place

    def settle(self, place: Place) -> None:
        """Decide what must hold of the value of a place."""
        value = place.value
        kind = type(value)
        if value is MISSING:
            place.check = "missing"
        elif is_one_of(kind, BOUND) and is_unseen(value.__self__):
            place.check = "is"
            self.problem(
                f"{place} is a method of {with_article(type(value.__self__).__name__)} from outside"
            )
        elif is_one_of(kind, BY_IDENTITY) or isinstance(value, FIXED_OBJECTS):
            place.check = "is"
        elif is_one_of(kind, BY_VALUE) or step_of_names(place) or is_whole_scalar(value):
            place.check = "value"
        elif id(value) in self.places:
            place.check, place.origin = "same", self.places[id(value)]
        elif kind is types.CellType:
            self.places[id(value)] = place
        elif kind is types.FunctionType:
            # A primitive is what it is by itself: others that were decorated alike have the same code.
            place.check = "function" if lookup(value) is None else "is"
            place.code = code_of(value)
            self.places[id(value)] = place
        elif is_made(value):
            if kind is Made:  # which has attributes
                self.places[id(value)] = place
            own = self.note(place, "attribute", "__self__", value.__self__)
            self.note(own, "attribute", "f", value.__self__.f)
            self.note(own, "attribute", "options", value.__self__.options).check = "value"
        elif kind is types.MethodType:
            place.check = "type"
            self.note(place, "attribute", "__func__", value.__func__)
            self.note(place, "attribute", "__self__", value.__self__)
        elif is_moving(value):
            place.check = "type"
            self.problem(
                f"{place} is {with_article(kind.__name__)} from outside, which each run consumes"
            )
        elif is_unseen(value):
            place.check = "type"
            self.places[id(value)] = place
            self.problem(
                f"{place} is {with_article(kind.__name__)} from outside, into which no guard looks"
            )
        elif isinstance(value, np.ndarray):
            place.check = "array"
            self.places[id(value)] = place
            if not arrays.is_followed(value):
                self.problem(
                    f"{place} is {with_article(kind.__name__)} of dtype {arrays.dtype_of(value)}"
                )
        elif is_one_of(kind, (float, complex)) or isinstance(value, np.generic):
            place.check = "type"
        elif is_frozen(value):
            place.check = "is"
            self.places[id(value)] = place
        elif callable(value) and not flags_of(kind) & HEAP_TYPE:
            place.check = "is"  # a function written in C
        else:
            place.check = "type"
            self.places[id(value)] = place

    def pin(self, value: Any) -> None:
        """The identity of an object was looked at: another one in its place will not do."""
        place = self.places.get(id(value))
        if place is not None:
            place.pinned = True
        elif is_one_of(type(value), BY_VALUE):
            for place in self.all():
                place.pinned |= place.value is value

    def fix(self, value: Any) -> None:
        """A guard says that this very object is there, as a key: whatever else it is found at must hold the same."""
        kind = type(value)
        if (place := self.of(value)) is not None:
            place.pinned |= place.step != "constant"
        elif not is_one_of(kind, (tuple, *BY_VALUE, *BY_IDENTITY)) and not isinstance(
            value, FIXED_OBJECTS
        ):
            self.settle(self.constant(value))

    def derives(self, kind: type) -> None:
        """It was looked at what a class derives from: its ``__bases__`` can be set."""
        if flags_of(kind) & (HEAP_TYPE | IMMUTABLE) == HEAP_TYPE:
            self.note(self.constant(kind), "attribute", "__mro__", mro_of(kind)).check = "is"

    def all(self) -> Iterator[Place]:
        """Every place, parents before children."""
        todo = [*self.roots, *self.constants.values()][::-1]
        while todo:
            place = todo.pop()
            yield place
            todo.extend(list(place.children.values())[::-1])

    def looked_into(self, value: Any, site: Site | None = None) -> None:
        """C code looks into an object from outside, and nothing says what it sees there."""
        place = self.places.get(id(value))
        if place is not None and not isinstance(
            value, (types.FunctionType, types.MethodType, Made, *VALUES)
        ):
            if is_frozen(value):
                return
            self.problem(f"C code looks into {place}, {with_article(type(value).__name__)}", site)

    def look_into(self, values: Iterable[Any], site: Site | None = None, depth: int = 3) -> None:
        """C code looks into objects from outside, or into tuples, lists and dicts of them."""
        for x in values:
            self.looked_into(x, site)
            if depth and is_one_of(type(x), (tuple, list, dict)):
                self.look_into(x.values() if type(x) is dict else x, site, depth - 1)

    def shown(self, values: Iterable[Any], site: Site | None = None, depth: int = 3) -> None:
        """C code makes text of values, or of lists and the like of them: how, is for their classes in C to say."""
        for x in values:
            base = native(type(x))
            if isinstance(x, np.generic):
                mode = self.note(self.constant(np), "print mode", None, print_mode())
                mode.check = "setting"
            elif base is None:
                shows = static(type(x), "__repr__")
                if type(shows) is types.WrapperDescriptorType and shows is not object.__repr__:
                    self.looked_into(x, site)
            elif depth:
                items = [item for _, item in items_of(x, base)]
                self.shown(items, site, depth - 1)
        self.rounded(values, site)

    def rounded(self, values: Iterable[Any], site: Site | None = None) -> None:
        """C code computes with values: with decimal numbers as the context of the moment says."""
        for x in values:
            if is_decimal(type(x)):
                self.problem("decimal numbers are rounded as the context says", site)

    def computes(self, fn: Any, args: tuple[Any, ...], site: Site | None = None) -> None:
        """Constants are computed with: what an overflow or a division by zero does, NumPy's error state says."""
        own = attribute(fn, "__self__")
        parts = [x for arg in args for x in (arg if type(arg) in (list, tuple) else (arg,))]
        if not all(isinstance(x, (np.number, int, float, complex, np.dtype, type)) for x in parts):
            return
        if isinstance(fn, type) or any(isinstance(x, np.number) for x in (own, *parts)):
            try:
                with np.errstate(all="raise"):
                    fn(*args)
            except FloatingPointError:
                self.problem(
                    "a floating-point event of constants is what the error state says", site
                )
            except Exception:  # which the run itself will raise
                return

    def close(self) -> None:
        """Nobody will make a program of the run: what it has read is held no longer, nor on a cycle."""
        for place in [*self.all()]:
            place.children, place.origin = {}, None
        vars(self).clear()

    def let_go(self, values: list[Any]) -> None:
        """Hold these no longer, as no program will be made of the run."""
        for value in values:
            place = self.places.pop(id(value), None)
            if place is not None:
                place.value = None

    def wrote(self, owner: int, name: Any) -> None:
        """The run itself has written here; what it reads from now on is its own."""
        self.written.add((owner, name))


def step_of_names(place: Place) -> bool:
    return place.step in ("names", "kwdefaults", "keywords")


def is_decimal(kind: type) -> bool:
    """Whether a class is that of decimal numbers, or derives from it."""
    return any(base.__module__ == "decimal" and base.__name__ == "Decimal" for base in mro_of(kind))


def print_mode() -> Any:
    """How NumPy makes text of its numbers."""
    return np.get_printoptions()["legacy"]


def stream_kind() -> type:
    """The class of the stream to which ``print`` prints; that of None where there is none."""
    return type(getattr(sys, "stdout", MISSING))


def is_whole_scalar(value: Any) -> bool:
    """Whether a value is one of NumPy's integers, bools, dates or strings, which are no inputs."""
    return isinstance(value, np.generic) and not isinstance(value, np.inexact)


def is_moving(value: Any) -> bool:
    """Whether a value is an iterator written in C, which is not the same after it was looked at."""
    step = static(type(value), "__next__")
    return step is not MISSING and type(step) is not types.FunctionType
