"""Guards: the first statements of a program, which make sure that it may answer for this call.

Words
-----
place   what a traced run read from outside, and how it is found again (see ``tracer.reads``).
guard   a statement that leaves the program when a place does not hold what it held in the traced run.
miss    to leave a program because a guard failed.

The text of a guard is written for speed: a call of a small function pays for nothing but its guards. Which one failed
is told by the line on which the program was left.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ..rules import registry
from ..rules.words import with_article
from ..tracer.depth import recursion_limit
from ..tracer.frames import NATIVE, native, shown
from ..tracer.kinds import (
    are_quiet,
    attribute,
    has_own,
    is_of_users,
    is_one_of,
    isinstance,
    keyword_defaults,
    own_dict,
)
from ..tracer.places import is_library
from ..tracer.reads import (
    BOUND,
    HEAP_TYPE,
    MISSING,
    Place,
    Reads,
    print_mode,
    static,
    stream_kind,
)
from ..tracer.source import BUILTINS
from ..tracer.structure import attributes
from ..tracer.tape import Site
from ..tracer.ties import lying
from .slots import CODE, DTYPE
from .stamps import stamp

UNPACKED = 64  # the longest list that is taken apart by one assignment
NAMED_KEYS = 16  # keys of a dict that are compared one by one
SHOWN = 60  # characters of a value that a message shows


class GuardWriter:
    """Writes the guards of one run. ``constant(value, hint)`` names an object in the program's namespace."""

    def __init__(
        self,
        reads: Reads,
        constant: Callable[[Any, str], str],
        fresh: Callable[[str], str],
        wanted: dict[Place, list[Any]],
        layout: bool,
    ) -> None:
        self.reads = reads
        self.constant = constant
        self.fresh = fresh
        self.wanted = wanted  # places whose values the program takes: these must have names
        self.layout = layout
        self.straight: set[Place] = set()  # arrays that must lie in memory without gaps
        self.names: dict[Place, str] = {}
        self.lines: list[tuple[str, Place | None]] = []
        self.stamps: set[Place] = set()  # classes with guards on the sorts of what they hold
        self.later: list[Any] = []  # places that must hold the same object as another one
        self.origins = {p.origin for p in reads.all() if p.origin is not None}

    def statement(self, text: str, place: Place | None = None) -> None:
        """An assignment, or with a place the condition under which the program is left."""
        self.lines.append((text, place))

    def write(self, roots: dict[Place, str]) -> list[tuple[str, Place | None]]:
        """The guards, given the expressions of the roots; those on classes, which say how to read, come first."""
        constants = list(self.reads.constants.values())
        for place in constants:
            if isinstance(place.value, type):
                self.visit_constant(place)
        for place, text in roots.items():
            self.visit(place, text)
        for place in constants:
            if not isinstance(place.value, type):
                self.visit_constant(place)
        for place in self.later:
            self.statement(f"{self.names[place]} is not {self.names[place.origin]}", place)
            for step in on_cycle(place):
                self.statement(f"{self.names[step]} is {self.names[place.origin]}", step)
        return self.lines

    def apart(self, written: list[Place], arrays: bool) -> Iterator[tuple[str, str]]:
        """Conditions under which two things are one that were two, where one of them is written to."""
        for one in written:
            for other in self.reads.all():
                mutable = other.check in ("type", "length", "keys")
                if other is not one and (mutable or type(other.value) is types.CellType):
                    if type(other.value) is type(one.value) and other.value is not one.value:
                        if other in self.names and one in self.names:
                            yield (
                                f"{self.names[other]} is {self.names[one]}",
                                f"{other} is also {one}",
                            )
        yield from self.distinct()
        if arrays:
            found = [
                p for p in self.reads.all() if p.check in ("array", "same") and p in self.names
            ]
            found = [p for p in found if isinstance(p.value, np.ndarray)]
            overlap = self.constant(np.may_share_memory, "may_share_memory")
            for i, one in enumerate(found):
                for other in found[:i]:
                    both = f"({self.names[one]}, {self.names[other]})"
                    lie = lying(one.value, other.value)
                    text = f"{overlap}{both} is not False"
                    if lie is not None:
                        text = f"{self.constant(lying, 'lying')}{both} != {lie!r}"
                    yield text, f"{one} and {other} share memory in another way"

    def distinct(self) -> Iterator[tuple[str, str]]:
        """Conditions under which an object among the arguments is one with another object that was another one."""
        kinds: dict[int, dict[int, Place]] = {}  # a class may have a hash of its own
        for place in self.reads.all():
            kind = type(place.value)
            if place.check == "type" and place in self.names and kind.__flags__ & HEAP_TYPE:
                kinds.setdefault(id(kind), {}).setdefault(id(place.value), place)
        given = {*self.reads.arguments, *self.reads.keywords.values(), self.reads.function}
        for found in kinds.values():
            places = list(found.values())
            if len(places) > 1 and any(root_of(place) in given for place in places):
                ids = ", ".join(f"id({self.names[place]})" for place in places)
                text = f"len({{{ids}}}) != {len(places)}"
                if len(places) == 2:
                    text = " is ".join(self.names[place] for place in places)
                yield text, f"two objects of {type(places[0].value).__name__} are one"

    def visit_constant(self, place: Place) -> None:
        """Guard what is read from an object that stands for itself, unless it is the engine's own."""
        if is_of_rules(place.value):
            for inner in below(place):
                self.names[inner] = self.constant(inner.value, name_hint(inner))
        elif (
            place.children
            or place.check is not None
            or place in self.wanted
            or place in self.origins
        ):
            self.names[place] = self.constant(place.value, name_hint(place))
            self.examine(place, self.names[place])

    def visit(self, place: Place, text: str, named: bool = False) -> None:
        """Guard a place that the expression ``text`` finds."""
        uses = (
            len(place.children)
            + (place.check in ("array", "kind")) * 2
            + (place.check in ("length", "keys")) * 2
            + place.pinned
            + (place.check == "function") * (1 if place is self.reads.function else 2)
        )
        if place.step == "method":  # one that the object has itself may be bound to another one
            bound = self.fresh(f"{place.key}_method")
            self.statement(f"{bound} = {text}")
            method = self.constant(types.MethodType, "method")
            owner = self.names[place.parent]  # type: ignore[index]
            self.statement(
                f"type({bound}) is not {method} or {bound}.__self__ is not {owner}", place
            )
            text = f"{bound}.__func__"
        if not named and (uses > 1 or place in self.wanted or place in self.origins):
            if not text.isidentifier():
                name = self.fresh(name_hint(place))
                self.statement(f"{name} = {text}")
                text = name
        self.names[place] = text
        self.examine(place, text)

    def examine(self, place: Place, text: str) -> None:
        if place.check == "same":
            self.later.append(place)
        for condition in self.conditions(place, text):
            self.statement(condition, place)
        if place.pinned and place.check not in ("is", "same"):
            self.statement(f"{text} is not {self.constant(place.value, 'k')}", place)
        if not self.unpacked(place, text):
            self.visit_children(place, text)

    def visit_children(self, place: Place, text: str) -> None:
        stamped = self.stamped(place)
        spots = spots_of(place)
        if spots:
            values = self.fresh("values")
            iterate = self.constant(native(type(place.value)).values, "values_of")
            self.statement(f"{values} = [*{iterate}({text})]")
        for child in place.children.values():
            if child in spots:
                self.visit(child, f"{values}[{spots[child]}]")
            elif child not in stamped:
                self.visit(child, self.step(child, text))

    def stamped(self, place: Place) -> set[Place]:
        """Guard members of a class by one look at it; gives those that are guarded by it."""
        if not isinstance(place.value, type):
            return set()
        children = [x for x in place.children.values() if self.is_member(x)]
        members = [(x.step, x.key, x.value) for x in children]
        looked_up = [x for x in place.children.values() if x not in children and is_looked_up(x)]
        members += [("sort", x.key, type(static(place.value, x.key))) for x in looked_up]
        made = stamp(place.value, members) if members else None
        if made is None:
            for x in looked_up:
                sort = self.type_name(static(place.value, x.key))
                now = self.constant(static, "static")
                self.statement(f"type({now}({self.names[place]}, {x.key!r})) is not {sort}", place)
                self.stamps.add(place)
            return set()
        names = (("tag", made.tag), ("seen", made.seen), ("held", made.held))
        tag, seen, held = (self.constant(value, hint) for hint, value in names)
        whole = Place(place, "members", ", ".join(key for _, key, _ in members), place.value)
        self.names[whole] = self.names[place]
        self.statement(f"{tag}[0] != {seen}[0] and not {held}()", whole)
        self.stamps.add(place)
        for child in children:
            if child.step != "sort":
                self.names[child] = (
                    "None" if child.value is MISSING else self.constant(child.value, "k")
                )
        return set(children)

    def is_member(self, place: Place) -> bool:
        """Whether all that matters of a place is that a class holds this very object there, or nothing."""
        if place.children or place.pinned or place in self.origins:
            return False
        if place.step == "static":
            return place.check in ("is", "missing")
        if place.step == "absent":
            return type(place.parent.value) is type  # type: ignore[union-attr]
        if place.step == "sort":
            return True
        return (place.step == "own" and place.check == "missing") or place.key == "__mro__"

    def unpacked(self, place: Place, text: str) -> bool:
        """Take a short list or tuple apart by one assignment, if all of it was read."""
        children = list(place.children.values())
        if (
            place.check not in ("length", "keys")
            or not 1 < len(children) <= UNPACKED
            or any(child.step != "item" for child in children)
            or len(children) != place.size
            or isinstance(
                place.value, (dict, set, frozenset)
            )  # a dict's keys are looked up as fast
            or not is_one_of(type(place.value), NATIVE)
        ):
            return False
        names = [self.fresh(name_hint(child)) for child in children]
        self.statement(f"{', '.join(names)} = {text}")
        for child, name in zip(children, names, strict=True):
            self.visit(child, name, named=True)
        return True

    def conditions(self, place: Place, v: str) -> Iterator[str]:
        """The conditions under which a place does not hold what it held."""
        value, check = place.value, place.check
        if check == "is" and is_made_anew(value):
            method = self.constant(type(value), "method_of_c")
            yield f"type({v}) is not {method} or {v} != {self.constant(value, 'k')}"
        elif check == "is":
            plain = value is None or value is True or value is False
            yield f"{v} is not {value if plain else self.constant(value, 'k')}"
        elif check == "value" and type(value) is tuple and not value:  # of which there is one
            yield f"{v} is not {self.constant(value, 'k')}"
        elif check == "value" and not is_one_of(type(value), (int, str, bytes)):
            yield f"not {self.constant(is_exactly, 'is_exactly')}({v}, {self.literal(value)})"
        elif check == "value":
            yield f"type({v}) is not {self.type_name(value)} or {v} != {self.literal(value)}"
        elif check == "type":
            yield f"type({v}) is not {self.type_name(value)}"
        elif check == "kind":
            dtype = self.constant(value.dtype, f"dtype_{value.dtype.name}")
            yield (
                f"type({v}) is not {self.constant(np.ndarray, 'ndarray')} or {v}.ndim != {value.ndim} "
                f"or {v}.{DTYPE} is not {dtype} and {v}.dtype != {dtype}"
            )
        elif check == "array":
            dtype = self.constant(value.dtype, f"dtype_{value.dtype.name}")
            ndarray = self.constant(type(value), type(value).__name__)
            shape = f"{v}.shape != {value.shape!r}"
            if value.ndim == 1:  # to make a tuple and compare it takes longer
                shape = f"{v}.ndim != 1 or len({v}) != {len(value)}"
            condition = (
                f"type({v}) is not {ndarray} or {shape} "
                f"or {v}.{DTYPE} is not {dtype} and {v}.dtype != {dtype}"
            )
            if place in self.straight:
                condition += f" or not {v}.flags.c_contiguous"
            if self.layout:
                condition += f" or {v}.strides != {value.strides!r}"
                condition += f" or {v}.flags.num != {value.flags.num}"
            yield condition
        elif check == "function":
            condition = f"{v}.{CODE} is not {self.constant(place.code, 'code')}"
            fixed = place.step in ("constant", "method") or place is self.reads.function
            if not fixed:  # of what came instead, this would run a ``__getattribute__``
                function = self.constant(types.FunctionType, "function")
                condition = f"type({v}) is not {function} or {condition}"
            # A program is tried for functions with these very globals only (see `cache.key_of`).
            if place.step != "constant" and place is not self.reads.function:
                scope = self.constant(value.__globals__, "globals_")
                condition += f" or {v}.__globals__ is not {scope}"
            yield condition
        elif check == "missing":
            yield self.present(place, v)
        elif check == "length":
            length = self.native(value, "__len__") or "len"
            yield f"type({v}) is not {self.type_name(value)} or {length}({v}) != {place.size}"
        elif check == "keys":
            length = self.native(value, "__len__") or "len"
            yield f"type({v}) is not {self.type_name(value)} or {length}({v}) != {place.size}"
            iterate = self.native(value, "__iter__")
            yield from self.keys(place.key_list or [], v if iterate is None else f"{iterate}({v})")
        elif check == "setting":
            yield f"{v} != {value!r}"
        elif check == "empty":
            yield f"not {self.constant(is_empty, 'is_empty')}({v})"

    def keys(self, keys: list[Any], v: str) -> Iterator[str]:
        """The conditions under which a dict or set has other keys, or others that are equal, or another order."""
        plain = all(is_one_of(type(key), (str, int, bool, NoneType)) for key in keys)
        if not plain or len(keys) > NAMED_KEYS:  # some may have an ``__eq__`` of their own
            known = self.constant(keys, "keys")
            same = (
                "" if plain else f"not {self.constant(is_exactly, 'is_exactly')}([*{v}], {known})"
            )
            types = self.constant([type(key) for key in keys], "types")
            is_same = self.constant(operator.is_, "is_same")
            alike = f"all(map({is_same}, map(type, {v}), {types}))"
            yield same or f"not {alike} or [*{v}] != {known}"
        elif keys:  # most are the very same objects
            names = [self.fresh("key") for _ in keys]
            self.statement(f"{', '.join(names)}, = {v}")
            constants = [self.constant(key, "k") for key in keys]
            for name, k, key in zip(names, constants, keys, strict=True):
                other = f"type({name}) is not {self.type_name(key)} or {name} != {k}"
                yield f"{name} is not {k} and ({other})"

    def present(self, place: Place, v: str) -> str:
        """The condition that something is there which was missing."""
        assert place.parent is not None
        owner = self.names[place.parent]
        if place.step == "global":
            return f"{place.key!r} in {owner}"
        if place.step == "static":
            found = f"{self.constant(static, 'static')}({owner}, {place.key!r})"
            return f"{found} is not {self.constant(MISSING, 'MISSING')}"
        if place.step in ("own", "in dict"):
            return f"{self.constant(has_own, 'has_own')}({owner}, {place.key!r})"
        test = is_absent if place.step == "absent" else is_unset
        return f"not {self.constant(test, test.__name__)}({owner}, {place.key!r})"

    def attribute(self, owner: str, key: str, parent: Place | None) -> str:
        """The expression of an attribute, which runs no code of the user's if there is none now."""
        held = None if parent is None else parent.value
        get = f"{self.constant(object.__getattribute__, 'get_own')}({owner}, "
        if has_own(held, key) and has_getter(static(type(held), key)):
            return f"{get}'__dict__')[{key!r}]"
        if isinstance(held, type) and has_own_way(type(held)):
            return f"{self.constant(type.__getattribute__, 'get_of_class')}({owner}, {key!r})"
        own_way = has_own_way(type(held)) or has_users_getter(held)
        return f"{get}{key!r})" if own_way else f"{owner}.{key}"

    def step(self, place: Place, owner: str) -> str:
        """The expression of a place, given that of its parent."""
        key, step = place.key, place.step
        if place.check == "missing":
            return "None"
        if step == "global":
            if place.check == "is" and key in ALWAYS_THERE and is_builtins(place.parent):
                return str(
                    key
                )  # by the same name in the program, which has none of its own like this
            return f"{owner}[{key!r}]"
        if step == "subclass":
            return f"issubclass({owner}, {self.constant(key, 'cls')})"
        if step in ("attribute", "method", "absent", "unset"):
            return self.attribute(owner, key, place.parent)
        if step == "own":
            return f"{self.constant(object.__getattribute__, 'get_own')}({owner}, {key!r})"
        if step == "in dict":
            return f"{self.attribute(owner, '__dict__', place.parent)}[{key!r}]"
        if step == "static":
            assert place.parent is not None
            if place.parent in self.stamps and is_looked_up(place):
                return f"{owner}.{key}"
            return f"{self.constant(static, 'static')}({owner}, {key!r})"
        if step == "sort":
            return f"type({self.constant(static, 'static')}({owner}, {key!r}))"
        if step == "item":
            take = (
                self.native(place.parent.value, "__getitem__") if place.parent is not None else None
            )
            return (
                f"{owner}[{self.literal(key)}]"
                if take is None
                else f"{take}({owner}, {self.literal(key)})"
            )
        if step == "limit":
            return f"{self.constant(recursion_limit, 'recursion_limit')}()"
        if step == "stream":
            return f"{self.constant(stream_kind, 'stream_kind')}()"
        if step == "print mode":
            return f"{self.constant(print_mode, 'print_mode')}()"
        if step == "closure":
            return f"{owner}.__closure__[{key}]"
        if step == "cell":
            return f"{owner}.cell_contents"
        if step == "default":
            return f"{owner}.__defaults__[{key}]"
        if step == "kwdefault":
            item = self.constant(dict.__getitem__, "dictgetitem")
            return f"{item}({owner}.__kwdefaults__, {key!r})"
        if step == "partial argument":
            return f"{owner}.args[{key}]"
        if step == "partial keyword":
            return f"{owner}.keywords[{key!r}]"
        return {
            "names": f"{self.constant(names_of, 'names_of')}({owner})",
            "defaults": f"len({owner}.__defaults__ or ())",
            "kwdefaults": f"tuple({self.constant(keyword_defaults, 'keyword_defaults')}({owner}))",
            "keywords": f"tuple({owner}.keywords)",
            "arguments": f"len({owner}.args)",
        }[step]

    def native(self, value: Any, name: str) -> str | None:
        """The name of a method of a container's native class, where its own class may have another."""
        kind = type(value)
        base = native(kind)
        if base is None or base is kind:
            return None
        return self.constant(getattr(base, name), f"{base.__name__}{name.rstrip('_')}")

    def literal(self, value: Any) -> str:
        """A value as the source shows it, for a comparison by value."""
        if value is None or value is True or value is False or is_one_of(type(value), TEXTUAL):
            return repr(value)
        return self.constant(value, "k")

    def type_name(self, value: Any) -> str:
        kind = type(value)
        return kind.__name__ if is_one_of(kind, BUILTIN) else self.constant(kind, kind.__name__)


def spots_of(place: Place) -> dict[Place, int]:
    """At which position the items of a dict stand, where its keys may have a hash of the user's.

    The guard on the keys says that these very keys are there, in this order: they need not be looked up.
    """
    if not isinstance(place.value, dict):
        return {}
    whole = place.origin if place.check == "same" and place.origin is not None else place
    keys = whole.key_list if whole.check == "keys" else None
    if keys is None or are_quiet(keys):
        return {}
    spots = {id(key): i for i, key in enumerate(keys)}
    items = [child for child in place.children.values() if child.step == "item"]
    return {child: spots[id(child.key)] for child in items if id(child.key) in spots}


def is_of_rules(value: Any) -> bool:
    """Whether something is a function of the engine's own rules, or their globals: nobody changes these."""
    scope = attribute(value, "__globals__") if type(value) is types.FunctionType else value
    return type(scope) is dict and scope.get("__package__") == registry.__package__


def below(place: Place) -> Iterator[Place]:
    """A place, and all that was read by way of it."""
    yield place
    for child in place.children.values():
        yield from below(child)


def is_builtins(place: Place | None) -> bool:
    return place is not None and place.value is BUILTINS


ALWAYS_THERE = frozenset(name for name in BUILTINS if name.isidentifier())
# What a class holds under a name and also gives for it.
PLAIN_MEMBERS = (types.FunctionType, property, types.WrapperDescriptorType)


def is_looked_up(place: Place) -> bool:
    """Whether a guard looks up in a class, as a program does, what may have become a descriptor in Python since."""
    cls = place.parent.value  # type: ignore[union-attr]
    if type(cls) is not type or place.check == "missing":
        return False
    if place.step == "static":
        return is_one_of(type(place.value), PLAIN_MEMBERS)
    return place.step == "attribute" and static(cls, place.key) is not MISSING


TEXTUAL = (int, str, bytes)  # as the source of a program shows them
BUILTIN = frozenset(
    (int, float, complex, str, bytes, bool, list, tuple, dict, set, frozenset, range, slice)
)


def name_hint(place: Place) -> str:
    """What to call the value of a place in a program."""
    keys = ""
    for _ in range(HINTED):
        if place.step != "item" or place.parent is None:
            break
        place, keys = place.parent, f"_{key_hint(place.key)}{keys}"
    if place.step == "constant":
        value = place.value
        name = attribute(value, "__name__") or ("globals_" if isinstance(value, dict) else "k")
        return f"{name}{keys}"
    return f"{place.key if isinstance(place.key, str) else place.step}{keys}"


def key_hint(key: Any) -> str:
    return key if type(key) is str else shown(key)


HINTED = 8  # items within items, after which the name of a variable says no more of them


def has_own_way(cls: type) -> bool:
    """Whether a class has code of the user's that finds attributes; it was called when the run was traced."""
    ways = cls.__getattribute__, static(cls, "__getattr__")
    return any(type(way) is types.FunctionType for way in ways)


def has_users_getter(module: Any) -> bool:
    """Whether a module has a ``__getattr__`` of the user's."""
    getter = vars(module).get("__getattr__") if isinstance(module, types.ModuleType) else None
    code = attribute(getter, "__code__")
    return code is not None and not is_library(code.co_filename)


def has_getter(found: Any) -> bool:
    """Whether what a class holds under a name has a say in what its instances hold there, if they hold nothing."""
    return static(type(found), "__get__") is not MISSING


def is_exactly(a: Any, b: Any) -> bool:
    """Whether two values are the same, or equal in all that can be asked of them; no method of the user's is called."""
    kind = type(a)
    if a is b:
        return True
    if kind is not type(b) or type(kind) is not type:
        return False
    if kind in (list, tuple):
        return len(a) == len(b) and all(map(is_exactly, a, b))
    if kind in (range, slice):
        return is_exactly((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if kind in (float, complex):
        return bool(a == b) and repr(a) == repr(b)
    if isinstance(a, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    return kind in (int, str, bytes) and bool(a == b)


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def is_asked(value: Any) -> bool:
    """Whether the class of an object has a method in Python that is asked for its attributes."""
    return type(static(type(value), "__getattribute__")) is types.FunctionType


def names_of(obj: Any) -> tuple[Any, ...] | None:
    """The names of the attributes of an object, None where a dict of the user's class has them."""
    own = own_dict(obj)
    return None if is_of_users(own) and own is not obj else tuple(attributes(obj))


def is_unset(obj: Any, name: str) -> bool:
    """Whether an object has no attribute of that name, neither of its own nor from its class."""
    found = static(type(obj), name)
    if type(found) is types.MemberDescriptorType:  # a slot
        try:
            found.__get__(obj)
        except AttributeError:
            return True
    return found is MISSING and not has_own(obj, name)


def is_absent(obj: Any, name: str) -> bool:
    """The same, and nothing stands in for an attribute that is not there."""
    if type(obj) is types.ModuleType and not has_users_getter(obj):
        return not hasattr(obj, name)
    if isinstance(obj, type) and static(obj, name) is not MISSING:
        return False
    if isinstance(obj, types.ModuleType) and has_own(obj, "__getattr__"):
        return False
    if type(static(type(obj), "__getattribute__")) is types.FunctionType:
        return False
    return is_unset(obj, name) and static(type(obj), "__getattr__") is MISSING


# ------------------------------------------------------------------------------------- telling what failed


class Guard(NamedTuple):
    """What a line of a program makes sure of, in words: ``name`` is ``held``; and how to look at it again."""

    name: str
    held: str
    check: str | None = None
    expression: str | None = None

    def __str__(self) -> str:
        return f"{self.name} is {self.held}"


def guard_of(place: Place, expression: str) -> Guard:
    """What the guard on a place makes sure of; ``expression`` finds its value in the program."""
    return Guard(named(place), held(place), place.check, expression)


def named(place: Place) -> str:
    """A place, and what kind of place it is where its name does not say so."""
    if place.step == "global":
        return f"global {place}"
    if place.step == "cell":
        return f"the closure variable {place}"
    if place.step == "default" and isinstance(place.parent, Place):
        function = place.parent.value
        code, defaults = function.__code__, function.__defaults__ or ()
        if (
            place.key >= len(defaults) or len(defaults) > code.co_argcount
        ):  # it has got others since
            return f"default {place.key + 1} of {place.parent}"
        name = code.co_varnames[code.co_argcount - len(defaults) + place.key]
        return f"the default of {name} in {place.parent}"
    if place.step == "kwdefault":
        return f"the default of {place.key} in {place.parent}"
    if place.step == "members":
        return f"the class {place.parent}"
    if place.step == "limit":
        return "the recursion limit"
    if place.step in ("defaults", "arguments"):
        return f"the number of {place.step} of {place.parent}"
    return str(place)


def held(place: Place) -> str:
    """In words, what a place must hold."""
    if place.step == "members":
        return f"as it was ({place.key})"
    if place.check == "setting":
        return f"{place.value}"
    if place.check == "same":
        return f"the same object as {place.origin}"
    if place.check == "length":  # the run itself may have changed it since
        return kind_of(place.value, place.size)
    if place.check == "keys":
        return with_keys(place.value, place.key_list or [])
    return seen(place.check, place.value)


def is_made_anew(value: Any) -> bool:
    """Whether a value is a bound method written in C, as ``dict.fromkeys``: another object at each mention.

    Two of them are equal if they are the same method of the very same object; no ``__eq__`` is asked.
    """
    return is_one_of(type(value), BOUND) and type(value.__self__) is not types.ModuleType


def root_of(place: Place) -> Place:
    """Where the way to a place begins."""
    while place.parent is not None:
        place = place.parent
    return place


def on_cycle(place: Place) -> list[Place]:
    """The places between an object and where it is met again in itself: shorter cycles are other structures."""
    origin, steps, step = place.origin, [], place.parent
    while step is not None and step is not origin:
        steps.append(step)
        step = step.parent
    return [] if step is None else [x for x in steps if type(x.value) is type(place.value)]


def seen(check: str | None, value: Any) -> str:
    """In words, as much of a value as a guard of this kind looks at."""
    if check == "missing" or value is MISSING:
        return "not defined"
    if check == "empty":
        return "empty" if is_empty(value) else "no longer empty"
    if check == "keys" and isinstance(value, dict):
        return with_keys(value, list(value))
    if check == "type" and not isinstance(value, np.ndarray):
        return with_article(type(value).__name__)
    if check == "kind":
        axes = "1 axis" if value.ndim == 1 else f"{value.ndim} axes"
        return f"{with_article(str(value.dtype))} array of {axes}"
    if check in ("type", "array", "length", "keys"):
        return kind_of(value)
    if check == "value" or value is None or isinstance(value, (bool, int, float, complex)):
        return short(value)
    if isinstance(value, types.ModuleType):
        return f"the module {attribute(value, '__name__')}"
    if isinstance(value, type):
        return f"the class {attribute(value, '__name__')}"
    if isinstance(value, types.FunctionType):
        code = value.__code__
        return f"the function {value.__name__} ({Site.of_code(code).place})"
    native = not type(value).__flags__ & HEAP_TYPE  # and runs no code of the user's
    name = attribute(value, "__name__") if native else None
    if callable(value) and isinstance(name, str):
        module = attribute(value, "__module__")
        return (
            f"the function {module}.{name}" if isinstance(module, str) else f"the function {name}"
        )
    return f"this very {type(value).__name__}"


def with_keys(value: Any, keys: list[Any]) -> str:
    """A dict by its keys."""
    text = ", ".join(map(shown, keys))
    text = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    kind = with_article(type(value).__name__)
    return f"{kind} with the keys {text}" if keys else f"{kind} without keys"


def reason(place: Place) -> str:
    """In words, what it means that the guard on a place failed."""
    name = named(place)
    if place.step == "members":
        return f"{name} was changed"
    if place.check in ("type", "array", "kind", "length", "value", "same"):
        return f"{name} is no longer {held(place)}"
    if place.check == "function":
        return f"{name} is another function, or was changed"
    if place.check == "missing":
        return f"{name} was not defined before"
    if place.check == "keys":
        return f"{name} has other keys"
    return f"{name} is another object"


def kind_of(value: Any, size: int | None = None) -> str:
    """A value by its type, dtype and shape, or the length that it had."""
    if isinstance(value, np.ndarray):
        return f"{with_article(str(value.dtype))} array of shape {value.shape}"
    if size is None and isinstance(value, (list, tuple, dict, set, frozenset)):
        size = len(value)
    return with_article(type(value).__name__) + (f" of length {size}" if size is not None else "")


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
