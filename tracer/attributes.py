"""Reading and writing attributes: descriptors run as twins, outside objects keep plain values.

Words
-----
leaf      an attribute value that crosses the border: boxed, and kept in the overlay of its object.
static    what the class holds under a name, found without running any descriptor.
"""

from __future__ import annotations

import functools
import gc
import operator
import threading
import types
import warnings
from collections import OrderedDict, defaultdict
from typing import Any, NoReturn

import numpy as np

from ..rules.mutation import reused as as_many
from ..rules.words import with_article
from . import dying, frames, meaning, places, protocols, rewrite, seals, stand_ins
from .arrays import is_traced_array, turn_into
from .border import ATOMS, STAND_INS, boxes_behind, is_constant
from .box import BOXES, ArrayBox, Box
from .detours import code_of, made_inside
from .effects import effect, may_fail
from .errors import TraceError
from .held import Held
from .holders import belong, held, hold
from .intrinsic import intrinsic
from .kinds import (
    HELD,
    PROXIES,
    attribute,
    flags_of,
    has,
    has_dict,
    is_of_users,
    is_one_of,
    isinstance,
    member,
    mro_of,
    own_dict,
)
from .marks import Reading, follow, found
from .reads import HEAP_TYPE, MISSING, Place, Reads, static
from .record import has_box, operand, record, stored
from .rehearsal import will_write
from .session import Tracer
from .shown import C_DATA
from .slots import accessor
from .structure import is_container
from .tails import Tail
from .tape import Site, ops_in
from .text import PRIVATE, TEXTS, bare

PLAIN = frozenset(
    (
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        type(None),
        list,
        dict,
        tuple,
        set,
        frozenset,
        np.ufunc,
        slice,
        range,
    )
    + (
        types.BuiltinFunctionType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
    )
    + (
        types.CodeType,
        types.TracebackType,
        property,
        types.MappingProxyType,
        np.dtype,
    )
)
DISGUISES = frozenset((int, str, bytes))  # atoms that may stand for a traced value
CONSTANT_MODULES = frozenset(("math", "cmath", "numpy", "scipy", "sys", "builtins", "os", "string"))


of_thread = threading.local.__getattribute__


def owner_of(cls: type, name: str) -> type:
    """The class that an attribute of a class comes from."""
    for base in mro_of(cls) or ():  # a class whose own ``mro`` runs has none yet
        if name in base.__dict__:
            return base
    return cls


class Globals:
    """The globals of a frame, as an object whose attributes they are."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.__dict__ = scope


MODULES = (types.ModuleType, Globals)


def slot(obj: Any) -> int:
    """The identity under which the overlay keeps what belongs to an object; a module is its globals."""
    return id(own_dict(obj)) if isinstance(obj, MODULES) else id(obj)


def lies_outside(tracer: Tracer, obj: Any) -> bool:
    """Whether somebody outside may look at an object: it was there before the run."""
    if type(obj) is types.FunctionType:
        return not made_inside(obj)
    return id(obj) in tracer.outside or issubclass(type(obj), (type, types.ModuleType, Globals))


def owner_place(tracer: Tracer, obj: Any) -> Place | None:
    """The place of what an attribute is read from; None for what was made inside."""
    reads = tracer.reads
    assert reads is not None
    place = reads.of(obj)
    if place is not None:
        return place
    if isinstance(obj, (type, types.ModuleType)):
        return reads.constant(obj)
    if isinstance(obj, types.FunctionType):
        return None if made_inside(obj) else reads.constant(obj)
    if id(obj) in tracer.outside:
        reads.problem(
            f"nobody knows where {with_article(type(obj).__name__)} comes from, of which attributes are read"
        )
    return None


def noted(tracer: Tracer, obj: Any, name: Any, value: Any, step: str = "attribute") -> Place | None:
    """Note that an attribute was read, unless its owner was made inside or the run itself has set it.

    What an object made inside has from its class is read from the class.
    """
    reads = tracer.reads
    if reads is None or (slot(obj), name) in reads.written:
        return None
    place = owner_place(tracer, obj)
    if place is not None:
        return reads.note(place, step, name, value)
    if id(obj) in tracer.outside:
        return None
    if type(obj) is super:
        return noted_above(reads, obj, name)
    if step == "own" or name in (own_dict(obj) or ()):
        return None
    found = static(type(obj), name)
    if found is MISSING or flags_of(type(obj)) & HEAP_TYPE:
        reads.note(reads.constant(type(obj)), "static", name, found)
    return None


def noted_of_class(tracer: Tracer, cls: Any, name: str, value: Any) -> Place | None:
    """Note that an attribute of a class was read. A number or array is that of the base that has it, for all."""
    owner, reads = owner_of(cls, name), tracer.reads
    if reads is None or owner is cls or is_one_of(type(value), ATOMS):
        return noted(tracer, cls, name, value)
    reads.note(reads.constant(cls), "attribute", "__mro__", mro_of(cls)).check = "is"
    for base in mro_of(cls)[: mro_of(cls).index(owner)]:
        reads.note(reads.constant(base), "own", name, MISSING)
    return noted(tracer, owner, name, value)


def noted_above(reads: Reads, bound: Any, name: str) -> Place | None:
    """Note what ``super()`` finds, and that the classes before it have nothing under the name."""
    kind: Any = bound.__self_class__
    reads.note(reads.constant(kind), "attribute", "__mro__", mro_of(kind)).check = "is"
    for cls in mro_of(kind)[mro_of(kind).index(bound.__thisclass__) + 1 :]:
        if name in cls.__dict__:
            return reads.note(reads.constant(cls), "static", name, cls.__dict__[name])
        if flags_of(cls) & HEAP_TYPE:
            reads.note(reads.constant(cls), "own", name, MISSING)
    return None


def namespace(tracer: Tracer, obj: Any) -> Any:
    """The ``__dict__`` of something outside, as the traced function sees it from now on."""
    if (given := given_dict(tracer, obj)) is not None:
        return given
    own = own_dict(obj)
    if is_of_users(own) and own is not obj:
        raise TraceError(
            f"{places.blame(places.user_site())}: the __dict__ of {with_article(type(obj).__name__)} is "
            f"{with_article(type(own).__name__)}, "
            "whose methods cannot be followed there\nread its attributes by name, or give it a dict"
        )
    seen = tracer.namespaces.get(slot(obj), (obj, None))[1]
    if seen is None:
        seen = {} if isinstance(obj, type) else Namespace(tracer, obj, {})
        tracer.namespaces[slot(obj)] = obj, seen
    if id(seen) not in tracer.admitting:  # it may hold its own methods
        tracer.admitting[id(seen)] = seen
        try:
            refresh(tracer, obj, seen)
        finally:
            del tracer.admitting[id(seen)]
    return types.MappingProxyType(seen) if isinstance(obj, type) else seen


def refresh(tracer: Tracer, obj: Any, seen: dict[str, Any]) -> None:
    """Let what the run sees as a ``__dict__`` be as the ``__dict__`` is."""
    own = dict(own_dict(obj))  # at one moment: another thread may write to it
    noted(tracer, obj, None, tuple(frames.attributes(obj)), "names")
    now = {
        k: leaf(tracer, obj, k, v, True, noted(tracer, obj, k, v, "in dict"))
        for k, v in own.items()
    }
    if list(seen) != list(now) or any(seen[k] is not x for k, x in now.items()):
        dict.clear(seen)
        dict.update(seen, now)


def given_dict(tracer: Tracer, obj: Any) -> Any:
    """The dict that the run has given something outside for its ``__dict__``, or None."""
    if isinstance(obj, type):
        return None
    known = tracer.namespaces.get(slot(obj))
    if known is None and (came := tracer.shadows_of.get(id(own_dict(obj)))) is not None:
        if id(obj) in tracer.trees:
            raise TraceError(
                f"{places.blame(places.user_site())}: {with_article(type(obj).__name__)} and its __dict__ come "
                "in on their own\n"
                "pass the object alone"
            )
        if tracer.reads is not None:
            tracer.reads.problem(
                f"the __dict__ of {with_article(type(obj).__name__)} comes in on its own as well"
            )
        known = tracer.namespaces[slot(obj)] = obj, came[0]
    return known[1] if known is not None and type(known[1]) is dict else None


def show(tracer: Tracer, owner: int, name: str, value: Any) -> None:
    """Let the ``__dict__`` that the run sees have what has just been set, or MISSING for what has gone."""
    known = tracer.namespaces.get(owner)
    if known is not None:
        if value is MISSING:
            dict.pop(known[1], name, None)
        else:
            dict.__setitem__(known[1], name, value)


def renewed(tracer: Tracer, obj: Any) -> None:
    """Let the ``__dict__`` that the run sees, if any, be as it is by now."""
    if slot(obj) in tracer.namespaces:
        namespace(tracer, obj)


class Namespace(dict[str, Any]):
    """The ``__dict__`` of something outside: what is written to it is written to its owner."""

    @intrinsic
    def __init__(self, tracer: Tracer, owner: Any, seen: dict[str, Any]) -> None:
        super().__init__(seen)
        self.tracer = tracer
        self.owner = owner

    @intrinsic
    def __setitem__(self, name: str, value: Any) -> None:
        write_own(self.tracer, places.user_site(), self.owner, name, value)

    @intrinsic
    def __delitem__(self, name: str) -> None:
        self[name]  # raises what plain Python raises
        remove(self.tracer, places.user_site(), self.owner, name)

    @intrinsic
    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def refresh(self) -> None:
        """Show what the owner holds by now."""
        namespace(self.tracer, self.owner)

    @intrinsic
    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    @intrinsic
    def clear(self) -> None:
        for name in list(self):
            del self[name]

    @intrinsic
    def popitem(self) -> Any:
        if not self:
            return super().popitem()  # raises what plain Python raises
        name = next(reversed(self))
        return name, self.pop(name)

    @intrinsic
    def setdefault(self, name: str, value: Any = None) -> Any:
        if name not in self:
            self[name] = value
        return self[name]

    @intrinsic
    def pop(self, name: str, *default: Any) -> Any:
        value = self.get(name, *default) if default else self[name]
        if name in self:
            del self[name]
        return value


Namespace.__name__ = Namespace.__qualname__ = "dict"  # as errors name it

STAND_INS[Namespace] = lambda seen: own_dict(seen.owner)


def load(tracer: Tracer, site: Site, obj: Any, name: str) -> Any:
    """``obj.name``."""
    if tracer.reads is None:
        return look_up(tracer, site, obj, name)
    try:
        return look_up(tracer, site, obj, name)
    except AttributeError:
        if (
            not is_one_of(type(obj), PRIVATE)
            and not is_one_of(type(obj), PLAIN)
            and not answers(type(obj))
            and not asks_users(obj, name)
        ):
            noted(tracer, obj, name, MISSING, "absent")
        raise


def answers(kind: type) -> bool:
    """Whether a method in Python answers for what is not there: what it reads, it reads when it is called."""
    if issubclass(kind, types.ModuleType):
        return False
    custom = static(kind, "__getattr__")
    return custom is not MISSING or type(static(kind, "__getattribute__")) is types.FunctionType


def look_up(tracer: Tracer, site: Site, obj: Any, name: str) -> Any:
    kind = type(obj)
    if (
        name == "__dict__"
        and lies_outside(tracer, obj)
        and (is_one_of(kind, (type, types.ModuleType)) or has_plain_dict(tracer, kind))
    ):
        return namespace(tracer, obj)
    if type(kind) is type and kind in PRIVATE:
        return load_text(obj, name) if kind in TEXTS else load_box(tracer, site, obj, name)
    if kind is Tail:
        return obj.append if obj.shadow is None else obj.shadow.append
    if type(kind) is type and kind in PLAIN:
        return getattr(obj, name)
    if kind is types.GeneratorType:
        return load_generator(obj, name)
    if kind is types.FrameType:
        return load_frame(tracer, obj, name)
    if kind is Namespace and (name == "__class__" or static(dict, name) is MISSING):
        return getattr(own_dict(obj.owner), name)  # ours are none of the user's business
    if kind is types.FunctionType and name in OF_FUNCTIONS:
        return load_function(tracer, site, obj, name)
    if kind is types.ModuleType:
        own = tracer.modules.get(id(obj))
        if name not in obj.__dict__ and asks_users(obj, name) and (own is None or name not in own):
            return asked(tracer, site, obj, name)
        value = own[name] if own is not None and name in own else getattr(obj, name)
        place = None
        if tracer.reads is not None:
            place = noted(tracer, obj, name, value)
        sort = type(value)
        if type(sort) is type and sort in ATOMS and sort not in DISGUISES:
            return meaning.boxing.enter(tracer, value, name, place)
        if sort is str or sort is bytes:
            return leaf(tracer, obj, name, value, True, place)
        if obj.__name__.partition(".")[0] in CONSTANT_MODULES and not (
            is_container(value) or has_dict(value)
        ):
            if place is not None:
                place.check = "is"
            return value
        return leaf(tracer, obj, name, value, True, place)
    if issubclass(kind, type):
        return load_of_class(tracer, site, obj, kind, name)
    if kind is super:
        return load_above(tracer, site, obj, name)
    return load_instance(tracer, site, obj, kind, name)


def asks_users(obj: Any, name: str) -> bool:
    """Whether a module is asked for a name that it has not, for which it has a ``__getattr__`` that is no library's."""
    if not issubclass(type(obj), types.ModuleType):
        return False
    own = own_dict(obj)
    if "__getattr__" not in own or name in own or has(type(obj), name):
        return False
    getter = own["__getattr__"]
    return not (
        type(getter) is types.FunctionType and places.is_library(code_of(getter).co_filename)
    )


def asked(tracer: Tracer, site: Site, module: types.ModuleType, name: str) -> Any:
    """What the ``__getattr__`` of a module gives for a name that it has not."""
    noted(tracer, module, name, MISSING, "own")
    return meaning.calls.call(tracer, site, load(tracer, site, module, "__getattr__"), (name,), {})


def has_plain_dict(tracer: Tracer, kind: type) -> bool:
    """Whether the objects of a class have a ``__dict__`` that no code of the user's gives; it is noted."""
    if not is_one_of(type(static(kind, "__dict__")), HELD):
        return False
    return type(note_member(tracer, kind, "__getattribute__")) is not types.FunctionType


def load_of_class(tracer: Tracer, site: Site, cls: Any, meta: type, name: str) -> Any:
    """An attribute of a class, whose own class may have a say."""
    if meta is not type:
        note_member(tracer, meta, "__getattribute__")
        found = note_member(tracer, meta, name)
        custom: Any = meta.__getattribute__
        if type(custom) is types.FunctionType:
            return meaning.calls.call(tracer, site, custom, (cls, name), {})
        custom = static(meta, "__getattr__")
        if found is static(cls, name) is MISSING and type(custom) is types.FunctionType:
            noted(tracer, cls, name, MISSING, "static")
            note_member(tracer, meta, "__getattr__")
            return meaning.calls.call(tracer, site, custom, (cls, name), {})
    return find_in_class(tracer, site, cls, meta, name)


def find_in_class(tracer: Tracer, site: Site, cls: Any, meta: type, name: str) -> Any:
    """What ``type.__getattribute__`` finds: descriptors of the class's class and its own run as twins."""
    own = static(cls, name)
    if meta is not type:
        found = note_member(tracer, meta, name)
        note_descriptor(tracer, found)
        if own is MISSING:
            note_member(tracer, cls, name)
        if (fget := accessible(tracer, found, "fget")) is not MISSING:
            return meaning.calls.call(tracer, site, fget, (cls,), {})
        getter = MISSING if found is MISSING else static(type(found), "__get__")
        if type(getter) is types.FunctionType and (
            own is MISSING or is_data_descriptor(type(found))
        ):
            enter_member(tracer, name, found)
            return meaning.calls.call(tracer, site, getter, (found, cls, meta), {})
    getter = MISSING if own is MISSING else static(type(own), "__get__")
    if type(getter) is types.FunctionType and type(own).__module__ not in LIBRARY:
        noted(tracer, cls, name, own, "static")
        note_descriptor(tracer, own)
        enter_member(tracer, name, own)
        return meaning.calls.call(tracer, site, getter, (own, None, cls), {})
    if type(member(meta, "__getattribute__")) is types.FunctionType:
        value = type.__getattribute__(cls, name)
    else:
        value = getattr(cls, name)
    place = noted_of_class(tracer, cls, name, value)
    return leaf(tracer, owner_of(cls, name), name, value, True, place)


def load_above(tracer: Tracer, site: Site, bound: Any, name: str) -> Any:
    """``super().name``."""
    kind: Any = bound.__self_class__
    mro = mro_of(kind)[mro_of(kind).index(bound.__thisclass__) + 1 :]
    cls = next((cls for cls in mro if name in cls.__dict__), None)
    if cls is None:
        return getattr(bound, name)
    found, obj = cls.__dict__[name], bound.__self__
    place = noted(tracer, bound, name, found)
    getter = getattr(type(found), "__get__", None)
    if getter is None:
        return leaf(tracer, cls, name, found, True, place)
    note_descriptor(tracer, found)
    if obj is not kind and (fget := accessible(tracer, found, "fget")) is not MISSING:
        return meaning.calls.call(tracer, site, fget, (obj,), {})
    if type(getter) is types.FunctionType:
        enter_member(tracer, name, found)
        return meaning.calls.call(
            tracer, site, getter, (found, None if obj is kind else obj, kind), {}
        )
    value = getattr(bound, name)
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return leaf(
            tracer, obj, name, value, id(obj) in tracer.outside, noted(tracer, obj, name, value)
        )
    return value


LIBRARY = frozenset(("enum", "functools", "types"))  # whose descriptors give classes what they hold


def note_member(tracer: Tracer, cls: type, name: str) -> Any:
    """What a class holds under a name, if that can be set; and that all that is read depends on it."""
    found = static(cls, name)
    reads = tracer.reads
    if reads is not None and flags_of(cls) & HEAP_TYPE:
        if (slot(owner_of(cls, name)), name) not in reads.written:
            reads.note(reads.constant(cls), "static", name, found)
    return found


def note_sort(tracer: Tracer, cls: type, name: str, sort: type) -> None:
    """Note of what type a class holds something under a name: were it another, code of the user's might give it."""
    reads = tracer.reads
    if reads is not None and (slot(owner_of(cls, name)), name) not in reads.written:
        reads.note(reads.constant(cls), "sort", name, sort)


def note_descriptor(tracer: Tracer, found: Any) -> None:
    """Note what decides whether something that a class holds is a descriptor, and of which kind."""
    if tracer.reads is not None and flags_of(type(found)) & HEAP_TYPE:
        for name in ("__get__", "__set__", "__delete__"):
            note_member(tracer, type(found), name)


def load_instance(tracer: Tracer, site: Site, obj: Any, kind: type, name: str) -> Any:
    """An attribute of an object: what its class finds; where that is nothing, what its ``__getattr__`` gives."""
    known = type(kind) is type and kind in PROXIES
    if known and (meant := meaning.sights.referent(tracer, site, obj)) is not obj:
        return load(tracer, site, meant, name)
    if (step := asks_another(obj, kind, name)) is not None:
        return load(tracer, site, load(tracer, site, obj, step), name)
    try:
        return load_found(tracer, site, obj, kind, name)
    except AttributeError:
        note_member(tracer, kind, "__getattr__")
        fallback = static(kind, "__getattr__")
        if type(fallback) is not types.FunctionType:
            raise
    return meaning.calls.call(tracer, site, fallback, (obj, name), {})


# What asks another where it is read, but not where it is written to.
READ_ONLY = frozenset((types.MethodType, types.GenericAlias))


def asks_another(obj: Any, kind: type, name: str) -> str | None:
    """Where an object finds what it asks for the attributes that are not its own: a method, a generic alias."""
    if kind is types.MethodType:
        return "__func__" if static(kind, name) is MISSING else None
    if kind is not types.GenericAlias:
        if type(kind) is not type or kind.__module__ != "typing":
            return None
        own = own_dict(obj) or ()
        if "__origin__" not in own or name in own or name.startswith("__"):
            return None
    return "__origin__" if static(kind, name) is MISSING else None


def load_found(tracer: Tracer, site: Site, obj: Any, kind: type, name: str) -> Any:
    """``obj.name`` without ``__getattr__``, by the method of its class that finds attributes."""
    custom = kind.__getattribute__ if type(kind) is type else static(kind, "__getattribute__")
    if tracer.reads is not None:
        note_member(tracer, kind, "__getattribute__")
    if type(custom) is types.FunctionType:
        return meaning.calls.call(tracer, site, custom, (obj, name), {})
    return find(tracer, site, obj, name)


def find(tracer: Tracer, site: Site, obj: Any, name: str) -> Any:
    """What ``object.__getattribute__`` finds."""
    kind = type(obj)
    found = static(kind, name)
    sort = type(found)
    if issubclass(sort, property):
        note_member(tracer, kind, name)
        note_descriptor(tracer, found)
        if (fget := accessible(tracer, found, "fget")) is not MISSING:
            return meaning.calls.call(tracer, site, fget, (obj,), {})
    if (called := called_by(found)) and (
        is_data_descriptor(sort) or name not in (own_dict(obj) or ())
    ):
        note_member(tracer, kind, name)
        outside = id(obj) in tracer.outside  # where nothing of the run may stay
        how = {"callbacks" if outside else "members": called}
        get: Any = object.__getattribute__
        value = meaning.escape.watched(get, (obj, name), {}, site, **how)
        return leaf(tracer, obj, name, value, outside, noted(tracer, obj, name, value))
    if found is MISSING and asks_users(obj, name):
        return asked(tracer, site, obj, name)
    own = own_dict(obj)
    in_own = type(own) is dict and name in own
    outside = id(obj) in tracer.outside
    if sort is types.FunctionType and not in_own:
        noted(tracer, obj, name, found, "method")
        note_sort(tracer, kind, name, sort)
        return types.MethodType(found, obj)
    if tracer.reads is not None:
        note_member(tracer, kind, name)
        note_descriptor(tracer, found)
        if name == "state" and isinstance(obj, np.random.BitGenerator):
            # A run that takes up what a program has drawn would find the state after those draws.
            tracer.reads.problem("the state of a random generator is read", site)
        if isinstance(obj, threading.local):
            if found is not MISSING or name not in of_thread(obj, "__dict__"):
                tracer.reads.problem(f"what a threading.local has for {name!r} is the thread's")
    if found is not MISSING:
        if sort is functools.cached_property and own is not None and not in_own:
            noted(tracer, obj, name, MISSING, "own")
            func = load(tracer, site, found, "func")
            value = meaning.calls.call(tracer, site, func, (obj,), {})
            write_own(tracer, site, obj, name, value)
            return value
        elif type(getter := static(sort, "__get__")) is types.FunctionType and (
            not in_own or is_data_descriptor(sort)
        ):
            if not in_own and not is_data_descriptor(sort):
                noted(tracer, obj, name, MISSING, "own")
            enter_member(tracer, name, found)
            return meaning.calls.call(tracer, site, getter, (found, obj, kind), {})
    elif not in_own and has_ways_of_its_own(kind):
        try:
            value = object.__getattribute__(obj, name)
        except AttributeError:
            noted(tracer, obj, name, MISSING, "unset")
            raise
        return leaf(tracer, obj, name, value, outside, noted(tracer, obj, name, value))
    if (
        in_own
        and (tracer.namespaces or id(own) in tracer.shadows_of)
        and (given := given_dict(tracer, obj)) is not None
    ):
        return given[name]
    get = getattr
    if type(member(kind, "__getattribute__")) is types.FunctionType:
        get = object.__getattribute__
    elif found is not MISSING and static(kind, "__getattr__") is not MISSING:
        get = kind.__getattribute__  # `__getattr__` is called as a twin, if at all
    try:
        value = stand_ins.own(get(obj, name))
    except AttributeError:
        if has_ways_of_its_own(kind):  # it is asked next
            noted(tracer, obj, name, MISSING, "unset")
        raise
    if not in_own and (sort is types.GetSetDescriptorType or isinstance(obj, C_DATA)):
        belong(tracer.texts, obj, value)
    if tracer.texts.holders and (origin := held(tracer, obj)) is not None:
        if kind is np.exceptions.AxisError and name in ("axis", "ndim"):
            return value  # which are no numbers that its text was made of
        if not is_seen(tracer, obj, name, value):
            return follow(tracer, site, Reading(name), value, origin)
    if not in_own and found is not MISSING and static(type(found), "__get__") is MISSING:
        place = None
        if tracer.reads is not None:
            if is_one_of(type(value), ATOMS):  # which is looked at as it is, and shared with nobody
                place = noted(tracer, obj, name, value)
            elif own is not None:  # it is the class's, which others may read there
                noted(tracer, obj, name, MISSING, "own")
            place = noted_of_class(tracer, kind, name, value) if place is None else place
        return leaf(tracer, owner_of(kind, name), name, value, True, place)
    place = noted(tracer, obj, name, value)
    return leaf(
        tracer,
        obj,
        name,
        value,
        outside or (kind is types.FunctionType and lies_outside(tracer, obj)),
        place,
    )


def called_by(found: Any) -> list[types.FunctionType]:
    """The functions that a descriptor of a library in C holds, and calls where it is asked."""
    kind = type(found)
    if found is MISSING or kind.__module__ in PYTHONS:
        return []
    getter = static(kind, "__get__")
    if getter is MISSING or type(getter) is types.FunctionType:
        return []
    return [x for x in gc.get_referents(found) if type(x) is types.FunctionType]


PYTHONS = frozenset(("builtins", "functools", "types"))  # whose descriptors are known


def accessible(tracer: Tracer, found: Any, name: str) -> Any:
    """What a property calls; where that is an object, it is read off the property, for it may change."""
    fn = accessor(found, name)
    if fn is MISSING or type(fn) is types.FunctionType:
        return fn
    return leaf(tracer, found, name, fn, True, noted(tracer, found, name, fn))


def is_seen(tracer: Tracer, obj: Any, name: str, value: Any) -> bool:
    """Whether the run knows what traced value an object holds under a name, or an exception what other exception."""
    entry = tracer.overlay.get((id(obj), name))
    known = is_one_of(type(value), BOXES) or (entry is not None and entry[1] is value)
    others = (BaseException, types.TracebackType)
    return known or (isinstance(obj, BaseException) and isinstance(value, others))


def has_ways_of_its_own(kind: type) -> bool:
    """Whether a class has code of the user's that is asked for attributes that are not there, or for all of them."""
    functions = static(kind, "__getattribute__"), static(kind, "__getattr__")
    return any(type(x) is types.FunctionType for x in functions)


def is_data_descriptor(sort: type) -> bool:
    return static(sort, "__set__") is not MISSING or static(sort, "__delete__") is not MISSING


def enter_member(tracer: Tracer, name: str, found: Any) -> None:
    """What a class holds lies outside: its descriptors keep plain values."""
    meaning.boxing.enter(
        tracer, found, name, None if tracer.reads is None else tracer.reads.of(found)
    )


# The attributes of a function that its twin has not got from it.
OF_FUNCTIONS = frozenset(("__code__", "__globals__", "__closure__"))


def load_function(tracer: Tracer, site: Site, fn: types.FunctionType, name: str) -> Any:
    """What a function is made of: the traced function sees its own code, and the cells of its twin."""
    if name == "__globals__":
        return meaning.scopes.seen_globals(
            tracer, site, fn.__globals__, f"{fn.__name__}.__globals__"
        )
    if made_inside(fn):
        return rewrite.original(code_of(fn)) if name == "__code__" else fn.__closure__
    if name == "__closure__":
        return meaning.calls.twin_of(tracer, fn).__closure__
    return leaf(tracer, fn, name, code_of(fn), True, noted(tracer, fn, name, fn.__code__))


def load_generator(generator: types.GeneratorType[Any, Any, Any], name: str) -> Any:
    """An attribute of a generator: the traced function sees its own code, and its own iterators."""
    value = stand_ins.own(getattr(generator, name))
    return rewrite.original(value) if type(value) is types.CodeType else value


def load_frame(tracer: Tracer, frame: types.FrameType, name: str) -> Any:
    """An attribute of a frame: the traced function sees its own code, and none of our frames."""
    if name == "f_code":
        return rewrite.original(frame.f_code)
    if name == "f_back":
        return places.outer(frame)
    if name == "f_globals":
        return meaning.scopes.seen(tracer, frame.f_globals)
    return getattr(frame, name)


def leaf(
    tracer: Tracer, obj: Any, name: str, value: Any, outside: bool, place: Place | None = None
) -> Any:
    """An attribute's value as the traced function sees it."""
    outside = outside or place is not None
    kind = type(value)
    ours = type(kind) is type
    if ours and kind in PRIVATE:
        return value
    if ours and kind in ATOMS:
        seen_elsewhere = kind in DISGUISES or kind is types.GeneratorType
        entry = tracer.overlay.get((slot(obj), name)) if seen_elsewhere else None
        if entry is not None and entry[1] is value:
            return entry[2]
        return (
            meaning.boxing.enter_from(tracer, obj, name, value, name, place) if outside else value
        )
    entry = tracer.overlay.get((slot(obj), name))
    if entry is not None and entry[1] is value:
        return meaning.boxing.up_to_date(tracer, entry[2])
    if outside or tracer.holder_of(obj) is not None:
        named = isinstance(obj, (type, types.ModuleType, types.FunctionType))
        owner = attribute(obj, "__name__") if named else type(obj).__name__
        moved = entry is not None or is_moved(tracer, value)
        traced = meaning.boxing.enter_from(tracer, obj, name, value, f"{owner}.{name}", place)
        if moved:
            traced = left_by_others(tracer, name, traced)
        tracer.overlay[slot(obj), name] = (obj, value, traced)
        return traced
    if is_traced_array(value) or (is_container(value) and id(value) in tracer.shadows):
        return meaning.boxing.enter(tracer, value, name)
    return value


def is_moved(tracer: Tracer, value: Any) -> bool:
    """Whether a value that is met for the first time was put outside by the run, and moved there by other code."""
    if not tracer.others_ran:
        return False
    if id(value) in tracer.shadows or id(value) in tracer.tails:  # which the run follows already
        return False
    kind = type(value)
    if kind is dict:
        value = tuple(value.values())
    elif not is_one_of(kind, (list, tuple)):
        value = (value,) if isinstance(value, (float, complex, np.generic, np.ndarray)) else ()
    if not value:
        return False
    put = values_put(tracer)
    return any(id(x) in put for x in value)


def values_put(tracer: Tracer) -> set[int]:
    """The ids of the values that effects have put outside by now, as far as they may have a derivative."""
    ops = tracer.tape.ops
    at, latest, found = tracer.put_values
    if at and (len(ops) < at or ops[at - 1] is not latest):  # iterations have left the tape
        at = 0
    for op in ops[at:]:
        if op.kind == "effect":
            given = ops_in((op.args, op.kwargs))
            found.update(id(x.value) for x in given if tracer.dependence.has(x))
    if ops:
        tracer.put_values = len(ops), ops[-1], found
    return found


def left_by_others(tracer: Tracer, name: str, now: Any) -> Any:
    """What code behind the run's back has set an attribute or a global to: it may be made of what the run put there."""
    ops = [op for op in meaning.sights.put_outside(tracer) if tracer.dependence.has(op)]
    if not ops:
        return now
    reason = meaning.renewal.lost(f"{name!r}")
    held = Held(name, lambda: ops, None, reason=reason)
    return seals.tied_to(tracer, places.user_site(), held, now)


def forget_changed(tracer: Tracer) -> None:
    """What others have set attributes to has no derivative."""
    for (owner, name), (obj, plain, value) in [*tracer.overlay.items()]:
        held = (obj if type(obj) is dict else own_dict(obj)) or {}
        if has_box(value) and held.get(name, plain) is not plain:
            del tracer.overlay[owner, name]


def put(obj: Any, name: str, value: Any) -> None:
    """Set an attribute; a ``__setattr__`` in Python is not asked."""
    if type(member(type(obj), "__setattr__")) is not types.FunctionType:
        setattr(obj, name, value)
    elif issubclass(type(obj), type):
        type.__setattr__(obj, name, value)
    else:
        object.__setattr__(obj, name, value)


def put_own(obj: Any, name: str, value: Any) -> None:
    """Set an attribute in an object's own dict."""
    own_dict(obj)[name] = value


@functools.cache
def deprecated() -> frozenset[str]:
    """The attributes of arrays whose setting NumPy warns of."""
    found = set()
    for name in ("shape", "dtype", "strides"):
        array = np.zeros(1)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            setattr(array, name, getattr(array, name))
        if given:
            found.add(name)
    return frozenset(found)


def store(tracer: Tracer, site: Site, obj: Any, name: str, value: Any) -> None:
    """``obj.name = value``."""
    kind = type(obj)
    if kind is ArrayBox and name in ("real", "imag"):
        if name == "imag" and obj.value.dtype.kind != "c":
            setattr(obj.value, name, None)  # raises what plain Python raises
        part = load_box(tracer, site, obj, name)
        protocols.set_item(tracer, site, part, Ellipsis, value)
        return
    if kind is ArrayBox and name == "flat":
        flat = load_box(tracer, site, obj, name)
        protocols.judge_flat(flat, Ellipsis, operand(value, []), site)
        protocols.set_item(
            tracer,
            site,
            flat,
            Ellipsis,
            meaning.calls.call(tracer, site, as_many, (value, flat), {}),
        )
        return
    if kind is ArrayBox and name in ("shape", "dtype", "strides"):
        given = protocols.drawn(tracer, value)
        tracer.tape.layout = True
        if tracer.reads is not None and name in deprecated():
            # Whether it is shown or not, it may be in the next call.
            tracer.reads.problem(f"NumPy warns of setting the {name} of an array", site)
        if id(obj.value) not in tracer.arrays and turn_into(obj, name, given, site):
            return
        raise TraceError(
            f"{places.blame(site)}: {name} is set on an array that lies outside the traced function, or in the "
            f"memory of something else\nmake another array of it, by {INSTEAD[name]}"
        )
    if is_one_of(kind, PRIVATE) and not has(type(obj.value), name):
        setattr(obj.value, name, None)  # raises what plain Python raises
    if is_one_of(kind, BOXES):
        raise TraceError(
            f"{places.blame(site)}: cannot set the attribute {name!r} of a traced value\n"
            "numbers and arrays have no attributes of the user's: keep it in an object beside them"
        )
    if kind is Namespace:
        setattr(own_dict(obj.owner), name, None)  # raises what plain Python raises
    if (
        is_one_of(kind, PROXIES)
        and (meant := meaning.sights.referent(tracer, site, obj)) is not obj
    ):
        store(tracer, site, meant, name, value)
        return
    if not is_one_of(kind, READ_ONLY) and (step := asks_another(obj, kind, name)) is not None:
        store(tracer, site, load(tracer, site, obj, step), name, value)
        return
    custom = kind.__setattr__ if type(kind) is type else static(kind, "__setattr__")
    if tracer.reads is not None:
        note_member(tracer, kind, "__setattr__")
    if type(custom) is types.FunctionType:
        meaning.calls.call(tracer, site, custom, (obj, name, value), {})
        return
    assign(tracer, site, obj, name, value)


def assign(tracer: Tracer, site: Site, obj: Any, name: str, value: Any) -> None:
    """What ``object.__setattr__`` and ``type.__setattr__`` do: a descriptor in the class has a say."""
    found = static(type(obj), name)
    if tracer.reads is not None:
        note_member(tracer, type(obj), name)
        note_descriptor(tracer, found)
    if (fset := accessible(tracer, found, "fset")) is not MISSING:
        meaning.calls.call(tracer, site, fset, (obj, value), {})
        return
    in_c = type(found) is property and found.fset is not None and has_box(value)
    if in_c and is_constant(tracer, stored(value, [])):
        meaning.calls.call(tracer, site, found.fset, (obj, value), {})
        return
    setter = None if found is MISSING else static(type(found), "__set__")
    if type(setter) is types.FunctionType:
        enter_member(tracer, name, found)
        meaning.calls.call(tracer, site, setter, (found, obj, value), {})
        return
    if name == "__dict__" and type(value) is Namespace and value.owner is obj:
        if type(found) is types.MemberDescriptorType or isinstance(obj, type):
            setattr(obj, name, {})  # raises what plain Python raises: it is read-only
        return  # ``obj.__dict__ |= …`` stores what it has changed
    write(tracer, site, obj, name, value)


INSTEAD = {"shape": "reshape", "dtype": "view", "strides": "np.lib.stride_tricks.as_strided"}


def write_own(tracer: Tracer, site: Site, obj: Any, name: str, value: Any) -> None:
    """``obj.__dict__[name] = value``: the class is not asked, whatever it holds under the name."""
    write(tracer, site, obj, name, value, own=True)


def write(tracer: Tracer, site: Site, obj: Any, name: str, value: Any, own: bool = False) -> None:
    """Set an attribute without asking methods in Python: plain values for the outside, boxes for what is inside."""
    name = bare(name)
    in_c = not own and type(static(type(obj), name)) is types.GetSetDescriptorType
    if in_c and type(value) is Box and type(value.value) is int:
        value = protocols.plain_key(value)  # C code takes no box, and gives back another int
    if (in_c or isinstance(obj, C_DATA)) and tracer.texts.drawn:
        if (origin := found(tracer, value)) is not None:  # which C code keeps as it likes
            hold(tracer.texts, obj, origin)
            value = bare(value)
    if lies_outside(tracer, obj):
        if type(obj) is types.FunctionType and name in REMAKES:
            value = remade(tracer, obj, name, value)
        if name == "__dict__" and isinstance(value, dict):
            if type(value) is not dict:
                raise TraceError(
                    f"{places.blame(site)}: the __dict__ of {with_article(type(obj).__name__)} that lies "
                    "outside the traced "
                    f"function becomes {with_article(type(value).__name__)}\nclear and update the one that it has"
                )
            tracer.namespaces[slot(obj)] = obj, value
        plain = meaning.unboxing.lower(tracer, value)
        if isinstance(obj, C_DATA):  # which may point anywhere
            meaning.unannounced.may_write(tracer, site, obj, None)
        dying.let_go_of(tracer, site, obj, name)
        will_write(tracer, obj, name, own)
        (put_own if own else put)(obj, name, plain)
        if not own and not is_constant(tracer, stored(value, [])):
            must_keep(site, obj, name, plain)
            if keeps_itself(obj, name):
                seals.shut(tracer, obj, [*boxes_behind(tracer, value, set())])
        tracer.overlay[slot(obj), name] = (obj, plain, value)
        held = own_dict(obj)
        if type(held) is dict:
            tracer.owners[id(held)] = obj
            if id(held) in tracer.shadows_of:
                given_dict(tracer, obj)
        if tracer.namespaces and name in (held or ()):
            show(tracer, slot(obj), name, value)
        tracer.rebound = tracer.rebound or isinstance(obj, (types.ModuleType, Globals))
        if tracer.reads is not None:
            tracer.reads.wrote(slot(obj), name)
        done = may_fail if in_c else effect
        done(tracer, site, put_own if own else setattr, (obj, name, value), {})
    else:
        if name == "default_factory" and isinstance(obj, defaultdict):
            value = stand_ins.kept(site, value, None)
        try:
            (put_own if own else put)(obj, name, value)
        except TypeError:
            if not in_c or type(value) is not ArrayBox:  # which C code may not take
                raise
            put_plain(tracer, site, obj, name, value)
        if type(obj) is OrderedDict and id(obj) in tracer.originals and tracer.reads is not None:
            tracer.reads.problem(f"the attribute {name!r} of an OrderedDict outside is set", site)


def put_plain(tracer: Tracer, site: Site, obj: Any, name: str, box: ArrayBox) -> None:
    """Set an attribute that is written in C and takes no box: the array may have no derivative."""
    put(obj, name, box.value)  # raises what plain Python raises
    if not is_constant(tracer, operand(box, [])):
        raise TraceError(cannot_hold(site, obj, name))
    meaning.unboxing.lower(tracer, box)
    if tracer.reads is not None:
        tracer.reads.problem("an array is read by code that records nothing", site)


def keeps_itself(obj: Any, name: str) -> bool:
    """Whether an object written in C keeps an attribute where its methods may read it, as the text of an element."""
    if name == "__dict__" or isinstance(obj, (types.FunctionType, BaseException)):
        return False
    return type(static(type(obj), name)) is types.GetSetDescriptorType


def must_keep(site: Site, obj: Any, name: str, value: Any) -> None:
    """Raise where an attribute that is written in C makes something else of a traced value."""
    found = static(type(obj), name)
    setter = getattr(type(found), "__set__", None)
    if setter is None or type(setter) is types.FunctionType or getattr(obj, name) is value:
        return
    raise TraceError(cannot_hold(site, obj, name))


def cannot_hold(site: Site, obj: Any, name: str) -> str:
    return (
        f"{places.blame(site)}: the attribute {name!r} of {with_article(type(obj).__name__)} cannot hold a "
        "traced value, so its gradient would be lost\nkeep it in a list, a dict or an object of your own"
    )


# The attributes of a function that its twin was made of.
REMAKES = frozenset(("__code__", "__defaults__", "__kwdefaults__"))


def remade(tracer: Tracer, fn: types.FunctionType, name: str, value: Any) -> Any:
    """What a function outside is to be made of from now on; it gets a new twin."""
    tracer.twins.pop(id(fn), None)
    if tracer.reads is not None:
        tracer.reads.problem(f"{name} of {fn.__name__} is set")
    return rewrite.original(value) if name == "__code__" else value


def delete(tracer: Tracer, site: Site, obj: Any, name: str) -> None:
    """``del obj.name``."""
    if type(obj) is Namespace:
        delattr(own_dict(obj.owner), name)  # raises what plain Python raises
    if is_one_of(type(obj), PRIVATE):
        delattr(obj.value, name)  # the same
    if (
        is_one_of(type(obj), PROXIES)
        and (meant := meaning.sights.referent(tracer, site, obj)) is not obj
    ):
        delete(tracer, site, meant, name)
        return
    custom = member(type(obj), "__delattr__")
    note_member(tracer, type(obj), "__delattr__")
    if type(custom) is types.FunctionType:
        meaning.calls.call(tracer, site, custom, (obj, name), {})
        return
    discard(tracer, site, obj, name)


def discard(tracer: Tracer, site: Site, obj: Any, name: str) -> None:
    """What ``object.__delattr__`` and ``type.__delattr__`` do: a descriptor in the class has a say."""
    found = note_member(tracer, type(obj), name)
    note_descriptor(tracer, found)
    if (fdel := accessible(tracer, found, "fdel")) is not MISSING:
        meaning.calls.call(tracer, site, fdel, (obj,), {})
        return
    deleter = None if found is MISSING else static(type(found), "__delete__")
    if type(deleter) is types.FunctionType:
        enter_member(tracer, name, found)
        meaning.calls.call(tracer, site, deleter, (found, obj), {})
        return
    note_deletion(tracer, site, obj, name)
    if type(member(type(obj), "__delattr__")) is not types.FunctionType:
        delattr(obj, name)
    elif issubclass(type(obj), type):
        type.__delattr__(obj, name)
    else:
        object.__delattr__(obj, name)
    removed(tracer, obj, name)


def remove(tracer: Tracer, site: Site, obj: Any, name: str) -> None:
    """``del obj.__dict__[name]``."""
    note_deletion(tracer, site, obj, name)
    del own_dict(obj)[name]
    removed(tracer, obj, name)


def note_deletion(tracer: Tracer, site: Site, obj: Any, name: str) -> None:
    """Note that an attribute is to be deleted, if it is there."""
    if not lies_outside(tracer, obj):
        return
    dying.let_go_of(tracer, site, obj, name)
    will_write(tracer, obj, name, False)
    if tracer.reads is not None:
        tracer.reads.problem(f"the attribute {name!r} of an object outside is deleted", site)


def removed(tracer: Tracer, obj: Any, name: str) -> None:
    """An attribute has gone."""
    tracer.overlay.pop((slot(obj), name), None)
    show(tracer, slot(obj), name, MISSING)


def load_text(text: Any, name: str) -> Any:
    """An attribute of text: that of the string, but a method is given the text."""
    value = getattr(text.value, name)
    if attribute(value, "__self__") is text.value:
        return types.MethodType(getattr(type(text.value), name), text)
    return value


def load_box(tracer: Tracer, site: Site, box: Box, name: str) -> Any:
    """An attribute of a number or array that is being traced."""
    value = box.value
    found = static(type(value), name)
    if name in ("index", "coords") and id(box) in tracer.flats:
        return place_of_flat(tracer, box, name)
    if found is MISSING:
        return getattr(value, name)  # raises what plain Python raises
    if name in VIEWS and isinstance(value, np.ndarray | np.generic):
        return record(tracer, site, VIEWS[name], (box,), {})
    if name in ("real", "imag"):
        return record(tracer, site, np.real if name == "real" else np.imag, (box,), {})
    if name == "flat" and isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TraceError(
                f"{places.blame(site)}: .flat of an array that is not contiguous\nuse x.ravel()"
            )
        flat = record(tracer, site, np.reshape, (box, -1), {})
        tracer.flats[id(flat)] = [flat, None, None, value.shape]
        return flat
    if type(found) is types.ClassMethodDescriptorType:
        return getattr(type(value), name)
    if callable(found):
        return types.MethodType(found, box)
    if name in ("strides", "flags"):
        tracer.tape.layout = True
    if name in OF_THE_TYPE or (
        name.startswith("__") and name != "__dict__" and not name.startswith("__array")
    ):
        return getattr(value, name)
    if name == "numerator" and type(box) is Box:
        return record(tracer, site, operator.pos, (box,), {})
    if type(box) is Box and is_constant(tracer, box.op):
        return getattr(protocols.plain_key(box), name)
    if name in WAYS and tracer.lending and type(box) is ArrayBox:
        return Lent(box, name)
    raise hands_out(site, name, value)


def hands_out(site: Site, name: str, value: Any) -> TraceError:
    """The error for looks at the memory of an array."""
    return TraceError(
        f"{places.blame(site)}: the attribute {name!r} of a traced {type(value).__name__} hands out its memory, so a "
        "gradient could be lost\nindex the array itself, or hand out a copy of wengert.stop_gradient of it"
    )


WAYS = ("__array_struct__", "__array_interface__")  # in which NumPy asks an object for its memory


class Lent:
    """What an array gives to an object that lends its memory to NumPy: a view of it, into which nobody looks."""

    __slots__ = ("box", "name")

    def __init__(self, box: ArrayBox, name: str) -> None:
        self.box = box
        self.name = name

    @intrinsic
    def __getitem__(self, *args: Any) -> NoReturn:
        refused(self)

    @intrinsic
    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refused(self)

    __setitem__ = __delitem__ = __iter__ = __len__ = __contains__ = __or__ = __ror__ = __getitem__


def refused(lent: Lent) -> NoReturn:
    """Raise the error for looks at what an array lends, and for keeping it."""
    raise hands_out(places.user_site(), lent.name, lent.box.value)


STAND_INS[Lent] = refused


def place_of_flat(tracer: Tracer, box: Box, name: str) -> Any:
    """Which element ``array.flat`` will give next: its number, or its index in the array."""
    _, elements, ahead, shape = tracer.flats[id(box)]
    number = 0 if elements is None else len(box.value) - operator.length_hint(ahead)
    if name == "index":
        return number
    coords = []
    for size in shape[:0:-1]:
        number, i = divmod(number, size)
        coords.append(i)
    return (number, *coords[::-1]) if shape else ()


OF_THE_TYPE = frozenset(
    "shape dtype ndim size itemsize nbytes strides flags device denominator".split()
)


VIEWS: dict[str, Any] = {"T": np.transpose, "mT": getattr(np, "matrix_transpose", None)}
