"""The border between the traced function and the world outside it.

Words
-----
enter     let a value from outside in: numbers and arrays become inputs of the tape, containers get shadows.
shadow    a copy of an outside container in which boxes stand for the leaves.
lower     take boxes out again: the plain value that the outside is allowed to see.
settle    when the run ends: carry what was done to shadows over to the originals.

Nobody outside ever sees a box. Numbers and arrays inside an outside *container* are replaced in a copy, which is
compared with the original when the run ends. Outside *objects* stay themselves: they hold plain values, and the
tracer keeps the boxes that belong to them in an overlay, under the object and the attribute's name.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import frames, places, rewrite, seals, tracebacks
from .arrays import current, is_followed, is_traced_array
from .box import BOXES, ArrayBox, Box
from .depth import room
from .errors import TraceError
from .frames import Own
from .intrinsic import Intrinsic
from .kinds import MISSING, classes_of, has_dict, is_one_of, isinstance, own_dict
from .reads import HEAP_TYPE, Place
from .record import decide, has_box
from .seals import is_iterator as is_iterator
from .session import Tracer
from .structure import (
    FIXED,
    Branch,
    Leaf,
    Sealed,
    Tree,
    attributes,
    is_container,
    is_differentiable,
    sources,
)
from .tails import Tail, grown, settle_tails, untouched
from .tape import NOWHERE, External, Input, Op, ops_in
from .text import PRIVATE, TEXTS, bare

ATOMS = frozenset(
    (
        int,
        bool,
        str,
        bytes,
        type(None),
        type,
        np.ufunc,
        np.dtype,
        type(Ellipsis),
        type(NotImplemented),
        range,
    )
    + (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType)
    + (
        types.WrapperDescriptorType,
        types.MethodWrapperType,
        types.ClassMethodDescriptorType,
        types.MethodType,
    )
    + (types.CodeType, types.GeneratorType, slice, property, staticmethod, classmethod)
)


try:
    from string.templatelib import Template  # type: ignore[import-not-found, unused-ignore]  # 3.14
except ImportError:
    Template = None

# ------------------------------------------------------------------------------------------------ entering


def enter(
    tracer: Tracer,
    value: Any,
    name: str,
    place: Place | None = None,
    seal: Any = None,
) -> Any:
    """Let a value from outside into the trace: from a place, if it is known, and from behind a seal if there is one."""
    kind = type(value)
    if type(kind) is type and kind in ATOMS:
        if is_method(kind) and works_on(value):
            return entered_method(tracer, value, "outside", place, seal)[0]
        if kind is types.MethodType:
            enter_owner(tracer, value)
        elif kind is types.GeneratorType and seal is None:
            sights.watch(tracer, value, name)
        if seal is not None:
            seals.put_on(tracer, value, seal)
        return dynamic(tracer, value, name, place) if kind is int else value
    if is_traced_array(value):
        known = tracer.arrays.get(id(value))
        if known is not None:
            if isinstance(seal, Sealed):
                seal.ops.append(input_of(tracer, known))
                tracer.dependence.want(seal.ops[-1:])
            return known
    if is_container(value):
        shadow = tracer.shadows.get(id(value))
        if shadow is not None:
            return shadow[1]
        if id(value) in tracer.originals:
            return value
        with room:
            return admit(tracer, value, name, "outside", place, seal)[0]
    return admit(tracer, value, name, "outside", place, seal)[0]


def enter_from(
    tracer: Tracer, owner: Any, key: Any, value: Any, name: str, place: Place | None = None
) -> Any:
    """Let in what was read from something outside; if an argument has captured that, its tree tells of it."""
    holder = tracer.holder_of(owner)
    if not isinstance(holder, Branch) or is_one_of(type(value), BOXES):
        return enter(tracer, value, name, place, holder)
    known = tracer.captured.get((id(owner), key))
    if known is None or known[1] is not value:
        with room:
            traced, tree = admit(tracer, value, name, "captured", place)
        hang(holder, key, tree)
        known = tracer.captured[id(owner), key] = owner, value, traced
    return known[2]


def enter_owner(tracer: Tracer, method: types.MethodType) -> None:
    """The object that a method from outside is bound to lies outside as well."""
    owner = method.__self__
    if not isinstance(owner, (type, types.ModuleType, Intrinsic)):
        place = None if tracer.reads is None else tracer.reads.of(owner)
        enter(tracer, owner, type(owner).__name__, place)


# Methods in C: ``__getitem__`` and its like are of the one kind for some containers, of the other for some.
OF_C = frozenset((types.BuiltinFunctionType, types.MethodWrapperType))


def is_method(kind: type) -> bool:
    """Whether a class is one of bound methods; it is not compared by its own class."""
    return (
        kind is types.MethodType
        or kind is types.BuiltinFunctionType
        or kind is types.MethodWrapperType
    )


def works_on(method: Any) -> bool:
    """Whether a method is bound to a container or an array, for which the run has something else."""
    return is_container(method.__self__) or is_traced_array(method.__self__)


def entered_method(
    tracer: Tracer,
    method: Any,
    role: str,
    place: Place | None,
    seal: Sealed | None = None,
) -> tuple[Any, Tree]:
    """The method of a container or an array outside is that of what the run has for it, and always the same."""
    owner = method.__self__
    known = tracer.views.get(id(method))
    if known is not None and role == "outside" and seal is None and tracer.reads is None:
        return known[1], FIXED
    inner = None
    if tracer.reads is not None and place is not None:
        inner = tracer.reads.note(place, "attribute", "__self__", owner)
    shadow, tree = admit(tracer, owner, type(owner).__name__, role, inner, seal)
    known = tracer.views.get(id(method))  # a namespace may hold the method itself
    if shadow is owner or known is not None:
        return method if known is None else known[1], tree
    if type(method) is types.MethodType:
        own: Any = types.MethodType(method.__func__, shadow)
    elif type(shadow) is ArrayBox:
        own = types.MethodType(getattr(type(owner), method.__name__), shadow)
    else:
        own = getattr(shadow, method.__name__)
    tracer.views[id(method)] = (method, own)
    tracer.viewed[id(own)] = (own, method)
    return own, tree


def captures(tracer: Tracer, value: Any, name: str, place: Place | None) -> tuple[Any, Tree] | None:
    """An argument that is a function, and its tree: what it has captured, as far as the run will read it; else None."""
    kind = type(value)
    if is_method(kind) and works_on(value):
        return entered_method(tracer, value, "captured", place)
    if kind is types.MethodType:
        owner = value.__self__
        if isinstance(owner, (type, types.ModuleType, Intrinsic)):
            return value, FIXED
        inner = None if tracer.reads is None else tracer.reads.of(owner)
        return value, admit(tracer, owner, type(owner).__name__, "captured", inner)[1]
    if is_one_of(kind, (types.FunctionType, functools.partial)) or isinstance(value, type):
        return value, held_by(tracer, value)
    return None


def held_by(tracer: Tracer, value: Any) -> Tree:
    """The tree of something that is captured. It grows as the run reads from it."""
    known = tracer.trees.get(id(value)) or tracer.holder_of(value)
    if known is not None:
        return known
    tree = Branch(type(value), {})
    tracer.holders[id(value)] = (value, tree)
    if isinstance(value, type):
        return tree
    if type(value) is types.FunctionType:  # what was read before
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            if id(cell) in tracer.cells:
                note_captured(tracer, value, name, tracer.cells[id(cell)][1])
    for name in attributes(value):
        entry = tracer.overlay.get((id(value), name))
        if entry is not None:
            tree.parts[name] = tree_of(tracer, entry[2])
    return tree


def note_captured(tracer: Tracer, fn: Any, name: str, shadow: Any) -> None:
    """A cell that another function has brought in is captured by an argument as well."""
    holder = tracer.holder_of(fn)
    try:
        traced = shadow.cell_contents
    except ValueError:  # an empty cell
        return
    if isinstance(holder, Sealed):
        holder.ops += sources(tree_of(tracer, traced))
    elif holder is not None:
        hang(holder, name, tree_of(tracer, traced))


def hang(holder: Branch, key: Any, tree: Tree) -> None:
    """Let what was captured be a part of its holder's tree, once; on a cycle it stands once."""
    if key not in holder.parts:
        holder.parts[key] = FIXED if reaches(tree, holder) else tree


def reaches(tree: Tree, other: Tree) -> bool:
    """Whether a tree is in another one, or is it."""
    todo, seen = [tree], set()
    while todo:
        tree = todo.pop()
        if tree is other:
            return True
        if isinstance(tree, Branch) and id(tree) not in seen:
            seen.add(id(tree))
            todo += tree.parts.values()
    return False


def tree_of(tracer: Tracer, traced: Any) -> Tree:
    """The tree of something outside that has been let in before."""
    kind = type(traced)
    if is_one_of(kind, BOXES):
        op = input_of(tracer, traced)
        if not (isinstance(op, Input) and is_differentiable(op.value)) or type(op.value) is int:
            return FIXED
        tracer.dependence.want([op])
        return Leaf(op, op.value)
    if id(traced) in tracer.originals and frames.native(kind) not in (None, *frames.SETS):
        parts = frames.parts_of(traced)
        parts = frames.items_in(parts)
        return Branch(kind, frames.valued(parts, [tree_of(tracer, x) for x in parts.values()]))
    return FIXED


def input_of(tracer: Tracer, box: Box) -> Op:
    """The op of a box when it was let in."""
    if type(box) is Box:
        return box.op
    return next((op for known, op in tracer.inputs if known is box), box.op)


def dynamic(tracer: Tracer, value: int, name: str, place: Place | None) -> Any:
    """An integer from outside: itself, or an input if it has changed too often to be guarded."""
    reads = tracer.reads
    if reads is None or place is None or not reads.dynamic or place.path not in reads.dynamic:
        return value
    place.check = "type"
    return tracer.input(name, value, "outside", place)


def element_place(tracer: Tracer, place: Place | None, key: Any, value: Any) -> Place | None:
    """The place of an element of a container outside."""
    if tracer.reads is None or place is None:
        return None
    return tracer.reads.note(place, "item", key, value)


def admit(
    tracer: Tracer,
    value: Any,
    name: str,
    role: str,
    place: Place | None = None,
    seal: Sealed | None = None,
) -> tuple[Any, Tree]:
    """Box the leaves of a value. Returns the value as the traced function sees it, and its tree.

    With the role ``argument`` every position gets a variable of its own, ints are numbers too, and the attributes of
    objects are looked at now rather than when they are read. These have the role ``attribute``, in which ints are none.
    What a function among them has ``captured`` is let in as from ``outside``, when it is read, and has a tree as well.
    """
    kind = type(value)
    if is_one_of(kind, TEXTS):  # of a run around this one
        return value, FIXED
    if role in OUTSIDE:
        known: Any = tracer.arrays.get(id(value))
        if known is None:
            known = tracer.shadows.get(id(value), (None, None))[1]
        if known is None and is_container(value):
            known = value if id(value) in tracer.originals else changed_shadow(tracer, value)
        if known is not None:
            return known, tree_of(tracer, known) if role == "captured" else FIXED
    if kind is int and role != "argument":
        return dynamic(tracer, value, name, place), FIXED
    own = role == "argument" or role == "attribute"
    if (
        kind is int
        or is_one_of(kind, seals.NUMBERS)
        or (is_followed if own else is_traced_array)(value)
    ):
        if kind is int and place is not None:
            place.check = "type"
        box = tracer.input(name, value, "outside" if role in OUTSIDE else "argument", place)
        if seal is not None:
            return seals.met(tracer, box, seal), FIXED
        if not is_differentiable(value):
            return box, FIXED
        if role == "captured":
            tracer.dependence.want([box.op])
        return box, Leaf(box.op, value)
    if is_container(value):
        return admit_container(tracer, value, name, role, place, seal)
    if role != "outside":
        note_access(tracer, kind)
    if role == "outside":
        if is_method(kind) and works_on(value):
            return entered_method(tracer, value, role, place, seal)
        if is_one_of(kind, sights.SIGHTS):
            return sights.entered(tracer, value, name, seal), FIXED
        if seal is not None:
            seals.put_on(tracer, value, seal)
        elif sights.is_window(value):
            sights.watch(tracer, value, name)
    elif found := captures(tracer, value, name, place) or seals.sealed(tracer, value, name):
        return found
    if role == "outside" and isinstance(value, shown.SHOWING):
        shown.enters(tracer, value)
    if (
        is_one_of(kind, ATOMS)
        or isinstance(value, (type, BaseException, np.generic))
        or callable_only(value)
    ):
        return value, FIXED
    if role == "outside":
        stay_outside(tracer, value)
        return value, FIXED
    if isinstance(value, COLLECTIONS) and not isinstance(value, set):
        return admit_collection(tracer, value, name, role, place)
    if kind is types.MappingProxyType and isinstance(held := seals.underlying(value), dict):
        inside, tree = admit(tracer, held, name, role, place)
        return types.MappingProxyType(inside), tree
    if role == "captured":
        tree = held_by(tracer, value)
        stay_outside(tracer, value)
        return value, tree
    return value, admit_object(tracer, value, name, place)


def factory_of(tracer: Tracer, value: Any) -> Any:
    """What makes the items that are missing in the shadow of a defaultdict outside."""
    factory = stand_ins.kept(NOWHERE, enter(tracer, value.default_factory, "default_factory"), None)
    if type(factory) is stand_ins.Callback:
        factory.value = value.default_factory
    return factory


OUTSIDE = frozenset(("outside", "captured"))


def stay_outside(tracer: Tracer, value: Any) -> None:
    """An object keeps plain values; a collection of a class of its own does when the run has ended."""
    tracer.outside[id(value)] = value
    if isinstance(value, COLLECTIONS):
        tracer.contents[id(value)] = items_of(value)


def note_access(tracer: Tracer, kind: type) -> None:
    """Note how a container of a class of the user's gives its items, which decides what its tree is."""
    if tracer.reads is not None and kind.__flags__ & HEAP_TYPE and frames.native(kind) is not None:
        for name in frames.ACCESS:
            of_objects.note_member(tracer, kind, name)


def callable_only(value: Any) -> bool:
    """Whether a value is a C callable or the like, with no attributes to look into."""
    return callable(value) and not has_dict(value) and not attributes(value)


def admit_container(
    tracer: Tracer,
    value: Any,
    name: str,
    role: str,
    place: Place | None = None,
    seal: Sealed | None = None,
) -> tuple[Any, Tree]:
    """The shadow of an outside container and its tree."""
    if id(value) in tracer.owners and role != "argument":  # it is the ``__dict__`` of an object
        return of_objects.namespace(tracer, tracer.owners[id(value)]), FIXED
    kind = type(value)
    if kind is dict and role == "outside" and sights.is_globals(value):
        return scopes.seen_globals(tracer, places.user_site(), value, name), FIXED
    now: Any = value if isinstance(value, (tuple, frozenset)) else contents(value)
    if tracer.tails:
        now = untouched(tracer, value, now)
    if role not in OUTSIDE and id(value) in tracer.admitting:
        return tracer.admitting[id(value)], FIXED  # on a cycle it stands once
    if place is not None:
        note_size(place, value, now)
    if isinstance(value, (set, frozenset)):
        return admit_set(tracer, value, now, name, role, seal)
    if isinstance(value, tuple):
        pairs = [
            admit(tracer, x, f"{name}[{i}]", role, element_place(tracer, place, i, x), seal)
            for i, x in enumerate(tuple.__iter__(value))
        ]
        inner = [x for x, _ in pairs]
        parts: dict[Any, Tree] = dict(enumerate(t for _, t in pairs))
        if kind is not tuple:
            held: dict[Any, Any] = {}
            for key, x in attributes(value).items():
                held[Own(key)], parts[Own(key)] = admit_attribute(tracer, x, name, key, role, place)
        if all(a is b for a, b in zip(inner, tuple.__iter__(value), strict=True)):
            return value, Branch(kind, parts)
        copy: Any = tuple(inner)
        if kind is not tuple:
            copy = frames.made(kind, {**dict(enumerate(inner)), **held})
        return remember(tracer, value, copy, name, role), Branch(kind, parts)
    parts = {}
    if kind is list:
        copy = []
    elif kind is deque:
        copy = deque(maxlen=value.maxlen)
    else:
        copy = kind()
        if kind is defaultdict:
            copy.default_factory = factory_of(tracer, value)
    remember(tracer, value, copy, name, role, now)
    if role not in OUTSIDE:
        tracer.admitting[id(value)] = copy
    if tracer.reads is not None and place is not None and is_one_of(kind, (deque, defaultdict)):
        which = "maxlen" if kind is deque else "default_factory"
        tracer.reads.note(place, "attribute", which, getattr(value, which))
    try:
        sequence = is_one_of(kind, (list, deque))
        pairs = [
            admit(
                tracer,
                x,
                f"{name}[{frames.shown(key)}]",
                role,
                element_place(tracer, place, key, x),
                seal,
            )
            for key, x in (enumerate(now) if sequence else now.items())
        ]
        inner = [x for x, _ in pairs]
        if sequence:
            copy.extend(inner)
            parts = dict(enumerate(t for _, t in pairs))
        else:
            frames.assign(copy, now, inner)
            parts = frames.valued(now, [t for _, t in pairs])
        if kind is OrderedDict and (own := own_dict(value)):
            for key, x in own.items():
                held, parts[Own(key)] = admit_attribute(tracer, x, name, key, role, place)
                setattr(copy, key, held)
    except BaseException:
        del tracer.originals[id(copy)]  # half a shadow must never be carried over
        raise
    finally:
        tracer.admitting.pop(id(value), None)
    if role not in OUTSIDE:
        tracer.admitted[id(copy)] = contents(copy)
    if tracer.tails:
        grown(tracer, value, copy)
    return copy, Branch(kind, parts)


def note_size(place: Place, value: Any, now: Any) -> None:
    """The run looks at all that a container outside holds: at its length, or at its keys."""
    keyed = isinstance(value, (dict, set, frozenset))
    place.size = frames.native(type(now)).__len__(now)
    place.key_list = [key for key, _ in frames.items_of(now, frames.native(type(now)))]
    if isinstance(value, (set, frozenset)):
        place.key_list = list(value)
    looked_at = place
    if place.check == "same" and place.origin is not None and place.origin.check == "type":
        looked_at = place.origin  # nobody has looked at what it holds until now
        looked_at.size, looked_at.key_list = place.size, place.key_list
    if looked_at.check != "same":
        looked_at.check = "keys" if keyed else "length"


def admit_set(
    tracer: Tracer, value: Any, now: Any, name: str, role: str, seal: Sealed | None
) -> tuple[Any, Tree]:
    """The shadow of a set. The numbers in an argument are its parts by their values; others are keys, and no leaves."""
    kind = type(value)
    role = "attribute" if role == "argument" else role  # ints in a set are none
    if role != "outside" or seal is not None:
        pairs = [admit(tracer, x, f"an element of {name}", role, None, seal) for x in now]
        tree: Tree = Branch(kind, frames.valued(dict.fromkeys(now), [part for _, part in pairs]))
        inner = [x for x, _ in pairs]
        if any(a is not b for a, b in zip(inner, now, strict=True)):
            held = {Own(key): x for key, x in attributes(value).items()}
            copy = frames.made(kind, {**dict(enumerate(inner)), **held})
            plain = [
                tracer.originals.get(id(x), (x, x.value if is_one_of(type(x), PRIVATE) else x))[1]
                for x in copy
            ]
            if is_held(plain, list(now)):  # in the same order
                tracer.admitted[id(copy)] = contents(copy)
                return remember(tracer, value, copy, name, role, now), tree
            seal = Sealed(f"{name}, a {kind.__name__}", "pass a list", sources(tree))
            shadow = remember(
                tracer, value, frames.made(kind, dict(enumerate(now))), name, role, now
            )
            tracer.readable[id(shadow)] = seal
            return shadow, seal
    for x in now:
        if not isinstance(x, (float, complex, np.inexact)):
            enter(tracer, x, f"{name}[…]")
    if isinstance(value, frozenset):
        return value, FIXED
    if list(now) != list(value):
        if not tracer.tails and not is_held(latest := contents(value), list(now)):
            return admit_set(tracer, value, latest, name, role, seal)  # another thread was here
        # it has a past, which no copy has
        return remember(tracer, value, value, name, role), FIXED
    shadow = remember(tracer, value, set(now), name, role, now)
    if role not in OUTSIDE:
        tracer.admitted[id(shadow)] = now
    return shadow, FIXED


def remember(
    tracer: Tracer,
    original: Any,
    shadow: Any,
    name: str = "",
    role: str = "outside",
    now: Any = None,
) -> Any:
    """Pair a shadow with its original, which holds ``now`` what the shadow was made of.

    What is read from outside is the same object each time it is read.
    """
    if role in OUTSIDE:
        tracer.shadows.setdefault(id(original), (original, shadow))
    tracer.originals[id(shadow)] = (shadow, original)
    tracer.shadows_of.setdefault(id(original), []).append(shadow)
    tracer.names[id(shadow)] = name
    if now is not None:
        tracer.before[id(shadow)] = tracer.mirrors.get(id(original), now)
        if tracer.reads is not None:
            tracer.found[id(shadow)] = now
    return shadow


def contents(container: Any) -> Any:
    """What a container holds at this moment, whatever another thread does to it in the next one."""
    if isinstance(container, dict):
        return dict(container)
    return set(container) if isinstance(container, set) else list(container)


def admit_attribute(
    tracer: Tracer, value: Any, name: str, key: str, role: str, place: Place | None
) -> tuple[Any, Tree]:
    """The same for an attribute of an argument. An int has no derivative, and is looked at when it is read."""
    kind = type(value)
    if kind is int:
        return value, FIXED
    own = None
    if tracer.reads is not None and place is not None:
        own = tracer.reads.note(place, "attribute", key, value)
    if is_one_of(kind, ATOMS) and not is_one_of(kind, SEALABLE):
        return value, FIXED
    return admit(tracer, value, f"{name}.{key}", role if role in OUTSIDE else "attribute", own)


SEALABLE = frozenset((types.FunctionType, types.MethodType, types.GeneratorType))


def admit_object(tracer: Tracer, instance: Any, name: str, place: Place | None = None) -> Tree:
    """Box the float and array attributes of an argument that is an object, in the overlay."""
    if id(instance) in tracer.outside:
        return tracer.trees.get(
            id(instance), FIXED
        )  # on a cycle, where it is not known yet, it stands once
    stay_outside(tracer, instance)
    parts = admit_attributes(tracer, instance, name, place)
    tree = tracer.trees[id(instance)] = Branch(type(instance), dict(parts))
    return tree


def admit_attributes(
    tracer: Tracer, instance: Any, name: str, place: Place | None
) -> dict[str, Tree]:
    parts: dict[str, Tree] = {}
    own = attributes(instance)
    if type(held := own_dict(instance)) is dict:
        tracer.owners[id(held)] = instance
    if tracer.reads is not None and place is not None:
        tracer.reads.note(place, "names", None, tuple(own))
    for key, value in own.items():
        traced, parts[key] = admit_attribute(tracer, value, name, key, "attribute", place)
        if traced is not value:
            tracer.overlay[id(instance), key] = (instance, value, traced)
    return parts


def admit_collection(
    tracer: Tracer, held: Any, name: str, role: str, place: Place | None
) -> tuple[Any, Tree]:
    """An argument that is a list, dict or deque of a class of its own: it holds boxes itself while the run goes on."""
    if id(held) in tracer.outside:
        return held, tracer.trees.get(id(held), FIXED)
    stay_outside(tracer, held)
    kind = type(held)
    parts: dict[Any, Tree] = {}
    if place is not None:
        note_size(place, held, held)
    items = items_of(held)
    pairs = [
        admit(tracer, x, f"{name}[{frames.shown(key)}]", role, element_place(tracer, place, key, x))
        for key, x in items
    ]
    inner = [
        MISSING if inside is x else inside for (_, x), (inside, _) in zip(items, pairs, strict=True)
    ]
    trees = [tree for _, tree in pairs]
    put_items(held, [key for key, _ in items], inner)
    if base_of(held) in frames.MAPPINGS:
        parts = frames.valued(frames.items_in(frames.parts_of(held)), trees)
    else:
        parts = dict(enumerate(trees))
    own = admit_attributes(tracer, held, name, place)
    parts.update({Own(key): tree for key, tree in own.items()})
    if frames.is_namespace(held):
        parts[frames.NAMESPACE] = FIXED
    tree = tracer.trees[id(held)] = Branch(kind, parts)
    return held, tree


# ------------------------------------------------------------------------------------------------ lowering


def lower(
    tracer: Tracer, value: Any, memo: dict[int, Any] | None = None, final: bool = False
) -> Any:
    """The plain value behind a traced one.

    While the run goes on (``final`` is false), containers that hold boxes get a plain copy, their original from
    now on; when it has ended, what was made inside is stripped of its boxes in place.
    """
    kind = type(value)
    if is_one_of(kind, BOXES):
        if kind is ArrayBox:
            tracer.exposed.append(value)
        return value.value
    if (is_one_of(kind, ATOMS) and not is_one_of(kind, CARRIERS)) or kind is Tail:
        return value
    if is_one_of(kind, TEXTS):
        return value.value
    if memo is None:
        with room:
            return lower(tracer, value, {}, final)
    if id(value) in memo:
        return memo[id(value)][1]
    if is_one_of(kind, STAND_INS):
        return STAND_INS[kind](value)
    if is_container(value):
        return lower_container(tracer, value, memo, final)
    if kind is types.FunctionType:
        lower_function(tracer, value, memo, final)
    elif is_method(kind):
        if id(value) in tracer.viewed:
            return tracer.viewed[id(value)][1]
        if kind is types.MethodType and is_users(value):
            return lower_method(tracer, value, memo, final)
        own = is_container(value.__self__) and id(value.__self__) not in tracer.originals
        if own and not final and not has_box(value.__self__):
            return value
        if not isinstance(value.__self__, types.ModuleType):
            owner = lower(tracer, value.__self__, memo, final)
            moved = is_one_of(type(value.__self__), PRIVATE) or (
                is_one_of(kind, OF_C) and owner is not value.__self__
            )
            return getattr(owner, value.__name__) if moved else value
    elif kind is slice:
        parts = [lower(tracer, x, memo, final) for x in (value.start, value.stop, value.step)]
        return slice(*parts)
    elif is_one_of(kind, sights.SIGHTS) and id(value) in tracer.viewed:
        return tracer.viewed[id(value)][1]
    elif is_one_of(kind, seals.VIEWS) or kind is types.MappingProxyType:
        held = seals.underlying(value)
        plain = lower(tracer, held, memo, final)
        if plain is not held:
            proxy = kind is types.MappingProxyType
            return types.MappingProxyType(plain) if proxy else getattr(plain, seals.VIEWS[kind])()
    elif kind is types.GeneratorType or is_iterator(value):
        refuse_carrier(tracer, value)
    elif kind is types.CellType:
        memo[id(value)] = (value, value)
        lower_cell(tracer, value, memo, final)
    elif is_one_of(kind, WRAPPERS):
        for held in gc.get_referents(value):
            lower(tracer, held, memo, final)
    elif kind is functools.partial:
        lower_partial(tracer, value, memo, final)
    elif kind is Template:
        return Template(*[lower_part(tracer, x, memo, final) for x in value])
    elif isinstance(value, type):
        lower_class(tracer, value, memo, final)
    elif final and isinstance(value, BaseException):
        strip_exception(tracer, value, memo)
    elif id(value) not in tracer.outside:
        lower_object(tracer, value, memo, final)
    return value


def lower_part(tracer: Tracer, part: Any, memo: dict[int, Any], final: bool) -> Any:
    """A part of a template string: a string, or an interpolation."""
    if type(part) is str:
        return part
    value, spec = (lower(tracer, x, memo, final) for x in (part.value, part.format_spec))
    return type(part)(value, part.expression, part.conversion, spec)


# What stands, in variables of the traced function, for something of plain Python's; and how to get that.
STAND_INS: dict[type, Callable[[Any], Any]] = {}


WRAPPERS = frozenset((property, staticmethod, classmethod))
CARRIERS = WRAPPERS | frozenset(
    (
        types.FunctionType,
        types.MethodType,
        types.BuiltinFunctionType,
        types.MethodWrapperType,
        type,
        slice,
        types.GeneratorType,
    )
)


def refuse_carrier(tracer: Tracer, value: Any) -> None:
    """Raise if something that cannot be opened would carry a box to the outside."""
    held = frames.referents(value)
    held += [x for item in held if is_container(item) for x in gc.get_referents(item)]
    held += [y for x in held if type(x) is stand_ins.Callback for y in (x.func, *x.args)]
    cells = [c for f in held if type(f) is types.FunctionType for c in f.__closure__ or ()]
    held += [x for cell in cells for x in gc.get_referents(cell)]
    if any(is_one_of(type(x), PRIVATE) for x in held) and not emptied_of_constants(tracer, held):
        raise TraceError(
            f"{tracer.tape.name} ({tracer.tape.site}) leaves a {type(value).__name__} with traced values behind, which "
            "cannot be turned into plain ones; keep a list of the values instead"
        )


def emptied_of_constants(tracer: Tracer, held: list[Any]) -> bool:
    """Take numbers that have no derivative out of the lists that something holds which cannot be opened."""
    lists = [x for x in held if type(x) is list]
    boxes = [x for x in held if is_one_of(type(x), PRIVATE)]
    inside = {id(x) for items in lists for x in items}
    if not all(type(x) is Box and id(x) in inside for x in boxes):
        return False
    if not is_constant(tracer, [current_op(x) for x in boxes]):
        return False
    if tracer.reads is not None:
        tracer.reads.problem(
            "what cannot be opened is left behind with numbers that depend on the outside"
        )
    for items in lists:
        items[:] = [x.value if type(x) is Box else x for x in items]
    return True


def lower_container(tracer: Tracer, value: Any, memo: dict[int, Any], final: bool) -> Any:
    known = tracer.originals.get(id(value))
    kind = type(value)
    if isinstance(value, (tuple, frozenset)):
        if known is not None:
            return known[1]
        parts = frames.parts_of(value)
        plain = {key: lower(tracer, x, memo, final) for key, x in parts.items()}
        if id(value) in memo:  # by way of a list it is inside itself
            return memo[id(value)][1]
        unchanged = all(plain[key] is x for key, x in parts.items())
        made = value if unchanged else frames.made(kind, plain)
        memo[id(value)] = (value, made)
        return made
    if known is not None:
        original = known[1]
        if original is value:  # it is seen as it is
            return value
    elif final:
        original = value
    else:
        original = empty_like(value)
        remember(tracer, original, value)
    memo[id(value)] = (value, original)
    if kind is defaultdict:
        original.default_factory = lower(tracer, value.default_factory, memo, final)
    sync(tracer, original, value, memo, final)
    if kind is OrderedDict:  # which has attributes of its own
        for key, x in (own_dict(value) or {}).items():
            setattr(original, key, lower(tracer, x, memo, final))
    return original


def empty_like(value: Any) -> Any:
    if type(value) is defaultdict:
        return defaultdict(value.default_factory)
    return deque(maxlen=value.maxlen) if type(value) is deque else type(value)()


def sync(tracer: Tracer, original: Any, shadow: Any, memo: dict[int, Any], final: bool) -> bool:
    """Do to an original what was done to its shadow; says whether that was anything."""
    before = tracer.before.get(id(shadow))
    held = contents(original) if before is None else before
    if isinstance(original, dict):
        items = [
            (lower(tracer, k, memo, final), lower(tracer, v, memo, final))
            for k, v in shadow.items()
        ]
        values = list(held.values() if isinstance(held, dict) else [v for _, v in held])
        if len(items) == len(values):
            items = [(k, one_with(v, x)) for (k, v), x in zip(items, values, strict=True)]
        if are_held(held, items):  # nobody's __hash__ is asked
            return False
        keys = shadow if is_held([*shadow], [k for k, _ in items]) else dict(items)
        now: Any = frames.valued(keys, [v for _, v in items])
    else:
        shown = held if shadow is original else shadow
        now = [lower(tracer, x, memo, final) for x in shown]
        if len(now) == len(held) and not isinstance(original, set):
            now = [one_with(x, y) for x, y in zip(now, held, strict=True)]
        if are_held(held, now):
            return False
        if isinstance(original, set):  # from a set, which has the hashes of its elements
            now = set(shown if all(map(operator.is_, shown, now)) else now)
    tracer.changed.add(id(original))
    if before is None or not merge(original, before, now):
        original.clear()
        original.update(now) if isinstance(original, (dict, set)) else original.extend(now)
    for x in tracer.shadows_of.get(id(original), ()):
        tracer.before[id(x)] = now
    tracer.mirrors.pop(id(original), None)  # what the run knows it to hold is said anew
    return True


def one_with(made: Any, held: Any) -> Any:
    """What is held, in the place of a tuple that was made anew of the same things."""
    if made is held or type(made) is not tuple or type(held) is not tuple or len(made) != len(held):
        return made
    same = all(one_with(x, y) is y for x, y in zip(made, held, strict=True))
    return held if same else made


def is_held(container: Any, now: Any) -> bool:
    """Whether a container holds what another one holds, in this order."""
    return are_held(container, list(now.items() if isinstance(now, dict) else now))


def are_held(container: Any, items: list[Any]) -> bool:
    """Whether a container holds these very objects now, in this order; of a dict, pairs of key and value."""
    held = list(container.items() if isinstance(container, dict) else container)
    if len(held) != len(items):
        return False
    if isinstance(container, dict):
        pairs = zip(held, items, strict=True)
        return all(a is b and x is y for (a, x), (b, y) in pairs)
    if isinstance(container, set):
        return {*map(id, held)} == {*map(id, items)}
    return all(a is b for a, b in zip(held, items, strict=True))


def merge(original: Any, before: Any, now: Any) -> bool:
    """Add to a container what was added since ``before``: another thread may have added to it meanwhile.

    Returns False where that is not all that was done.
    """
    if isinstance(original, set):
        was, then = {*map(id, before)}, {*map(id, now)}
        if was - then and then - was and is_held(original, before):
            return False  # one may have come for another one that is equal: no ``__eq__`` is asked
        original.difference_update(before - now)
        original.update(now - before)
        return True
    size = len(before)
    if not is_held(list(before), list(now)[:size]):
        return False
    if isinstance(original, dict):
        old = [*before.values(), *[MISSING] * (len(now) - size)]
        new = [
            MISSING if a is b else b for a, b in zip(old, now.values(), strict=True)
        ]  # by position: nobody's ``__hash__`` is asked
        frames.assign(original, now, new)
        return True
    if not is_held(before, list(original)[:size]) or getattr(original, "maxlen", None) is not None:
        return False
    original.extend(now[size:])
    return True


def is_users(method: types.MethodType) -> bool:
    """Whether a method is one of the user's in Python, and not what stands for one of a number or of text."""
    fn = method.__func__
    if type(fn) is not types.FunctionType:
        return False
    return rewrite.is_twin(fn.__code__) or not is_one_of(type(method.__self__), PRIVATE)


def lower_method(
    tracer: Tracer, method: types.MethodType, memo: dict[int, Any], final: bool
) -> types.MethodType:
    """The same for a method in Python: of its function, and of the object that it is bound to."""
    lower(tracer, method.__func__, memo, final)
    owner = lower(tracer, method.__self__, memo, final)
    return method if owner is method.__self__ else types.MethodType(method.__func__, owner)


def lower_class(tracer: Tracer, cls: type, memo: dict[int, Any], final: bool) -> None:
    """Take boxes out of what a class holds; out of one that was made inside when the run has ended."""
    memo[id(cls)] = (cls, cls)
    made = [x for x in cls.__mro__ if is_made(tracer, x)]
    if made and not final:
        tracer.pending.append(cls)
        return
    for one in (*made, cls):
        memo[id(one)] = (one, one)
        for key, x in list(own_dict(one).items()):
            if (
                is_one_of(type(x), PRIVATE)
                or is_container(x)
                or (one in made and is_one_of(type(x), HOLDING))
            ):
                plain = lower(tracer, x, memo, final)
                if plain is not x:
                    type.__setattr__(one, key, plain)
    for kind in classes_of(made):
        if is_made(tracer, kind):
            lower(tracer, kind, memo, final)


HOLDING = frozenset((types.FunctionType, *WRAPPERS, functools.cached_property, functools.partial))


def is_made(tracer: Tracer, cls: type) -> bool:
    """Whether the run has made a class."""
    known = tracer.classes.get(id(cls)) if tracer.classes else None
    return known is not None and known() is cls


def lower_function(tracer: Tracer, fn: Any, memo: dict[int, Any], final: bool) -> None:
    """Take boxes out of the cells and defaults of a function that was made inside, when the run has ended."""
    if not rewrite.is_twin(fn.__code__):
        return
    if not final:
        tracer.pending.append(fn)
        return
    memo[id(fn)] = (fn, fn)
    for cell in fn.__closure__ or ():
        lower_cell(tracer, cell, memo, final)
    if fn.__defaults__:
        fn.__defaults__ = tuple(lower(tracer, x, memo, final) for x in fn.__defaults__)
    if fn.__kwdefaults__:
        fn.__kwdefaults__.update(
            {k: lower(tracer, x, memo, final) for k, x in fn.__kwdefaults__.items()}
        )
    for key, x in list(fn.__dict__.items()):
        fn.__dict__[key] = lower(tracer, x, memo, final)
    for key in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(fn, key, bare(getattr(fn, key)))
    fn.__code__ = rewrite.original(fn.__code__)


def lower_partial(tracer: Tracer, value: Any, memo: dict[int, Any], final: bool) -> None:
    """The same for a partial: while the run goes on it keeps its boxes, which whoever calls it passes on."""
    memo[id(value)] = (value, value)
    held = [value.func, *value.args, *value.keywords.values()]
    if not final:
        tracer.pending.append(value)
        for x in held:
            if not is_one_of(type(x), BOXES):
                lower(tracer, x, memo, final)
        return
    plain = [lower(tracer, x, memo, final) for x in held]
    if any(a is not b for a, b in zip(held, plain, strict=True)):
        count = 1 + len(value.args)
        keywords = dict(zip(value.keywords, plain[count:], strict=True))
        value.__setstate__((plain[0], tuple(plain[1:count]), keywords, value.__dict__))


def lower_cell(tracer: Tracer, cell: Any, memo: dict[int, Any], final: bool) -> None:
    try:
        held = cell.cell_contents
    except ValueError:  # it is empty
        return
    plain = lower(tracer, held, memo, final)
    if final:
        cell.cell_contents = plain


def lower_object(tracer: Tracer, instance: Any, memo: dict[int, Any], final: bool) -> None:
    """Take boxes out of the attributes of an object that was made inside; it belongs to the outside from now on."""
    memo[id(instance)] = (instance, instance)
    if tracer.classes and id(type(instance)) not in memo:
        if any(is_made(tracer, cls) for cls in type(instance).__mro__):
            lower_class(tracer, type(instance), memo, final)
    if isinstance(instance, BaseException):
        if not final:
            seals.shut(tracer, instance, [*boxes_behind(tracer, instance, set())])
        lower_members(tracer, instance, memo, final)
    own = own_dict(instance)
    if type(own) is dict:
        if not final and sys.getrefcount(own) > ALONE:
            if has_box(own):
                gc.collect()
            if sys.getrefcount(own) > ALONE:
                held_apart(tracer, instance, own)
        rename_keys(tracer, own, memo)
    if final and isinstance(instance, COLLECTIONS):
        empty_of_boxes(tracer, instance, memo)
    if isinstance(instance, types.ModuleType | np.ndarray | np.generic | float | complex):
        return
    for key, value in attributes(instance).items():
        plain = lower(tracer, value, memo, final)
        if plain is not value:
            frames.put(instance, key, plain)
            if not final:
                tracer.overlay[id(instance), key] = (instance, plain, value)
    if not final:
        tracer.outside[id(instance)] = instance


def held_apart(tracer: Tracer, instance: Any, own: dict[str, Any]) -> None:
    """Something else holds the dict itself of an object that is handed to the outside: a variable."""
    if has_box(own):
        raise TraceError(
            f"{places.blame(places.user_site())}: a {type(instance).__name__} is handed to the outside while a "
            "variable holds its __dict__; use the object itself, or a copy of its __dict__"
        )
    if tracer.reads is not None:
        tracer.reads.problem(f"a variable holds the __dict__ of a {type(instance).__name__}")
    tracer.loose.append(instance)


def lone() -> int:
    """The reference count, as it is seen here, of a ``__dict__`` that nothing but its object holds."""
    owner = type("Owner", (), {})()
    owner.z = 1
    own = own_dict(owner)
    return sys.getrefcount(own)


ALONE = lone()


def lower_members(tracer: Tracer, error: BaseException, memo: dict[int, Any], final: bool) -> None:
    """The same for what an exception keeps in C: ``args``, ``value``, ``obj`` … of some of them, and for its frames."""
    args = error.args
    error.args = tuple(lower(tracer, x, memo, final) for x in args)
    if not final:
        tracer.overlay[id(error), "args"] = (error, error.args, args)
    for cls in type(error).__mro__:
        for name, member in vars(cls).items():
            if type(member) is types.MemberDescriptorType and cls.__module__ == "builtins":
                value = getattr(error, name, None)
                plain = lower_member(tracer, value, memo, final)
                if plain is not value:
                    with contextlib.suppress(AttributeError, TypeError):  # it is read-only
                        setattr(error, name, plain)
                    if not final:
                        tracer.overlay[id(error), name] = (error, plain, value)
    if final:
        tracebacks.make_plain(error, lambda value: lower(tracer, value, memo, True))


# Iterators of which another can be made that stands at the same place.
REBUILT = frozenset(map(type, (iter([]), iter(()), reversed([])))) | {zip, enumerate, map, filter}


def lower_member(tracer: Tracer, value: Any, memo: dict[int, Any], final: bool) -> Any:
    """The same for one of them. An iterator, of which an attribute was asked that it has not, nobody steps."""
    if not final and (type(value) is types.GeneratorType or is_iterator(value)):
        return value
    if not is_one_of(type(value), REBUILT):
        return lower(tracer, value, memo, final)
    make, parts, *state = value.__reduce__()
    plain = [lower_member(tracer, x, memo, final) for x in parts]
    if all(a is b for a, b in zip(parts, plain, strict=True)):
        return value
    new = make(*plain)
    if state:
        new.__setstate__(*state)
    return new


COLLECTIONS = (list, dict, set, deque)
MEMBERS_OF_EXCEPTIONS = tuple(
    "name obj value object reason code strerror filename filename2 path".split()
)


def items_of(held: Any) -> list[tuple[Any, Any]]:
    """The items of a collection, with their keys or indices; none of its own methods is asked."""
    return list(frames.items_of(held, frames.native(type(held))))


def base_of(held: Any) -> Any:
    return frames.native(type(held))


def empty_of_boxes(tracer: Tracer, held: Any, memo: dict[int, Any]) -> bool:
    """Take boxes out of a collection of a class of its own; says whether it has changed since it was met.

    While the run goes on it holds them, for there is no shadow of it: C code that looks at them raises.
    """
    if isinstance(held, dict):
        rename_keys(tracer, held, memo)
    before = tracer.contents.get(id(held), [])
    known = {id(x) for _, x in before}
    new = [(key, x) for key, x in items_of(held) if id(x) not in known or has_box(x)]
    plain = [(key, lower(tracer, x, memo, True)) for key, x in new]
    if any(a is not b for (_, a), (_, b) in zip(new, plain, strict=True)):
        if isinstance(held, set):
            set.difference_update(held, [x for _, x in new])
            set.update(held, [x for _, x in plain])
        else:
            put_items(held, [key for key, _ in plain], [x for _, x in plain])
    now = items_of(held)
    if isinstance(held, set):
        return not is_held({x for _, x in before}, {x for _, x in now})
    return not is_held([y for x in before for y in x], [y for x in now for y in x])


def put_items(held: Any, keys: list[Any], values: list[Any]) -> None:
    """Let a collection hold other values under some of its keys or indices; MISSING stands for none."""
    if base_of(held) in frames.MAPPINGS:
        put = {id(key): x for key, x in zip(keys, values, strict=True)}
        own = frames.items_in(frames.parts_of(held))
        frames.assign(held, own, [put.get(id(key), MISSING) for key in own])
        return
    for i, x in zip(keys, values, strict=True):
        if x is not MISSING:
            base_of(held).__setitem__(held, i, x)


def rename_keys(tracer: Tracer, held: dict[Any, Any], memo: dict[int, Any]) -> None:
    """Put plain keys in the place of traced ones."""
    items = list(dict.items(held))
    if any(is_one_of(type(key), PRIVATE) for key, _ in items):
        base: Any = OrderedDict if isinstance(held, OrderedDict) else dict
        base.clear(held)
        for key, x in items:
            base.__setitem__(held, lower(tracer, key, memo, True), x)


def changed_shadow(tracer: Tracer, original: Any) -> Any:
    """The shadow of an argument that was written to already, if it is the same container; else None."""
    for shadow in tracer.shadows_of.get(id(original), ()):
        held = tracer.admitted.get(id(shadow))
        if held is not None and not is_held(held, shadow):
            if tracer.reads is not None:
                tracer.reads.problem(
                    f"{tracer.names[id(shadow)]} is changed, and read from outside"
                )
            return shadow
    return None


def siblings(tracer: Tracer, shadow: Any) -> list[Any]:
    """The other shadows of a container's original, which came in at several places, and what it is joined with."""
    known = tracer.originals.get(id(shadow))
    found = tracer.joined.get(id(shadow), [])
    if known is None or is_one_of(type(shadow), (tuple, frozenset)):
        return found
    return [*[x for x in tracer.shadows_of[id(known[1])] if x is not shadow], *found]


def join(tracer: Tracer, container: Any, copy: Any) -> None:
    """Let a copy be one with a container that the run sees: what is written to one is written to the other."""
    known = tracer.originals.get(id(container))
    if known is not None:
        tracer.originals[id(copy)] = (copy, known[1])
        tracer.shadows_of[id(known[1])].append(copy)
        tracer.names[id(copy)] = tracer.names.get(id(container), "")
        return
    group = [container, *tracer.joined.get(id(container), []), copy]
    for x in group:
        tracer.joined[id(x)] = [y for y in group if y is not x]


def part(tracer: Tracer, container: Any, copy: Any) -> None:
    """Undo ``join``."""
    if id(copy) in tracer.joined:
        for x in tracer.joined.pop(id(copy)):
            rest = [y for y in tracer.joined.pop(id(x)) if y is not copy]
            if rest:
                tracer.joined[id(x)] = rest
        return
    known = tracer.originals.pop(id(copy), None)
    if known is not None:
        found = tracer.shadows_of[id(known[1])]
        found[:] = [x for x in found if x is not copy]
        tracer.names.pop(id(copy), None)


@room
def settle(tracer: Tracer) -> None:
    """Carry what the run did to shadows over to their originals."""
    memo: dict[int, Any] = {}
    effects = {
        id(op.args[0].value)
        for op in tracer.tape.ops
        if op.kind == "effect" and op.args and type(op.args[0]) is External
    }
    settle_tails(tracer)
    for shadow, original in list(tracer.originals.values()):
        if isinstance(original, (tuple, frozenset)) or original is shadow:
            continue
        memo[id(shadow)] = (shadow, original)
        if sync(tracer, original, shadow, memo, True):
            for sibling in siblings(tracer, shadow):
                if sync(tracer, original, sibling, memo, True):
                    raise TraceError(
                        f"{tracer.tape.name} ({tracer.tape.site}): the same {type(original).__name__} came in by two "
                        "ways and was changed through one of them by a C function; pass a copy in one place"
                    )
    if tracer.reads is not None:
        for changed in tracer.changed - effects:
            if (place := tracer.reads.places.get(changed)) is not None:
                tracer.reads.problem(f"C code changes {place}")
    for held in tracer.loose:
        lower_object(tracer, held, memo, True)
    for held in list(tracer.outside.values()):
        if isinstance(held, COLLECTIONS) and empty_of_boxes(tracer, held, memo):
            if tracer.reads is not None:
                tracer.reads.problem(f"a {type(held).__name__} is changed")
    for cell, shadow in list(tracer.cells.values()):
        try:
            held = shadow.cell_contents
        except ValueError:
            continue
        plain = lower(tracer, held, memo, True)
        if tracer.cells_held.get(id(cell), cell) is held:
            continue  # what is in it has been carried over
        if type(plain) is Tail:  # the cell holds its list still
            continue
        try:
            changed = cell.cell_contents is not plain
        except ValueError:
            changed = True
        if changed:
            cell.cell_contents = plain
    for escaped in tracer.pending:
        lower(tracer, escaped, memo, True)
    for scope in tracer.scopes.values():
        scope.settle(tracer, memo)


@room
def strip_exception(
    tracer: Tracer, error: BaseException, memo: dict[int, Any] | None = None
) -> None:
    """Take boxes out of an exception that reaches the outside, and out of all that is shown with it."""
    memo = {} if memo is None else memo
    for one in tracebacks.shown(error):
        if id(one) not in memo:
            lower_object(tracer, one, memo, True)


def result_tree(tracer: Tracer, value: Any, memo: set[int] | None = None) -> Tree:
    """The tree of a result, read off its boxes before they are taken out."""
    kind = type(value)
    memo = set() if memo is None else memo
    if is_one_of(kind, BOXES):
        if id(value) in tracer.flats:
            raise TraceError(
                f"{tracer.tape.name} ({tracer.tape.site}) returns the flat iterator of a traced array; return the "
                "array, or its ravel()"
            )
        number = is_differentiable(value.value) or isinstance(value.value, np.integer)
        if not number and isinstance(value.value, (float, complex)):
            name = f"the result, a {type(value.value).__name__}"
            return Sealed(name, "return it as a float", [current_op(value)])
        return Leaf(current_op(value), value.value) if number else FIXED
    if is_one_of(kind, TEXTS):
        return FIXED
    if kind is types.GeneratorType or is_iterator(value):
        raise TraceError(
            f"{tracer.tape.name} ({tracer.tape.site}) returns a {kind.__name__}, whose values do not exist yet; "
            "return a list or an array of them"
        )
    if is_followed(value) or is_one_of(kind, seals.NUMBERS) or kind is int:
        return Leaf(None, value) if is_differentiable(value) else FIXED
    if kind is types.MappingProxyType:
        value = seals.underlying(value)
    elif is_one_of(kind, STAND_INS) and isinstance(
        value, dict
    ):  # the attributes of an object outside
        shown: Any = value
        shown.refresh()
        value, kind = dict(shown), dict
    base = frames.native(type(value))
    note_access(tracer, type(value))
    if base in frames.SETS:
        held = [x for _, x in items_of(value) if has_box(x)]
        tree: Tree = Branch(kind, {lower(tracer, x): result_tree(tracer, x, memo) for x in held})
        return tree if held else FIXED
    if tracer.classes and (shown := shown_by_class(tracer, value)):
        return seal_of_result(tracer, value, memo, *shown)
    if not is_structure(value) or (base is not None and not frames.is_read_by_key(type(value))):
        return seal_of_result(tracer, value, memo)
    if base is not None and id(value) in memo:
        raise TraceError(
            f"{tracer.tape.name} ({tracer.tape.site}) returns a {kind.__name__} that contains itself"
        )
    if id(value) in memo:
        return FIXED
    memo.add(id(value))
    parts = frames.parts_of(value)
    trees: list[Tree] = []
    for key, x in parts.items():
        if base is None or type(key) is Own:
            x = seen_attribute(tracer, value, key.name if type(key) is Own else key, x)
        trees.append(FIXED if key is frames.NAMESPACE else result_tree(tracer, x, memo))
    if base is not None:
        memo.discard(id(value))
        if any(is_one_of(type(key), PRIVATE) for key in parts):
            parts = {key.value if is_one_of(type(key), PRIVATE) else key: 0 for key in parts}
    return Branch(kind, frames.valued(parts, trees))


def seen_attribute(tracer: Tracer, obj: Any, name: str, value: Any) -> Any:
    """An attribute as the traced function sees it, which may have traced values behind plain ones."""
    entry = tracer.overlay.get((id(obj), name))
    return entry[2] if entry is not None and entry[1] is value else value


def is_structure(value: Any) -> bool:
    """Whether a value is a container or an object with attributes, rather than something that is one thing."""
    kind = type(value)
    return not (
        (is_one_of(kind, ATOMS))
        or isinstance(value, (type, np.generic, np.ndarray, functools.partial, BaseException))
        or callable_only(value)
        or kind is types.CellType
        or is_one_of(kind, seals.VIEWS)
    )


def shown_by_class(tracer: Tracer, value: Any) -> list[Any]:
    """What an object shows of classes that were made inside, and which hold traced values."""
    made = [cls for cls in type(value).__mro__ if is_made(tracer, cls)]
    own = attributes(value) if made else {}
    held = {
        key: x
        for cls in reversed(made)
        for key, x in own_dict(cls).items()
        if key not in own
        and (is_one_of(type(x), BOXES) or (key not in MAKING and is_one_of(type(x), HOLDING)))
    }
    return [x for x in held.values() if any(True for _ in boxes_behind(tracer, x, {id(value)}))]


# What has run when the object was made; and what tells of types.
MAKING = frozenset("__init__ __new__ __post_init__ __annotate__ __annotate_func__".split())


def seal_of_result(tracer: Tracer, value: Any, memo: set[int], *others: Any) -> Tree:
    """The tree of what is no structure: sealed, where it, or something else that it shows, holds traced values."""
    seen = set(memo)
    boxes = [box for x in (value, *others) for box in boxes_behind(tracer, x, seen)]
    ops = list(dict.fromkeys(map(current_op, boxes)))
    if not ops:
        return FIXED
    kind = type(value).__name__
    return Sealed(f"the result, a {kind}", "return the values in a list, a dict or an object", ops)


def boxes_behind(tracer: Tracer, value: Any, seen: set[int]) -> Iterator[Box]:
    """The boxes that can be reached from something that is no structure: a function, a set, a slice."""
    held: list[Any]
    todo = [value]
    while todo:
        value = todo.pop()
        kind = type(value)
        if is_one_of(kind, BOXES):
            yield value
            continue
        if id(value) in seen or isinstance(value, PLAIN_KINDS):
            continue
        seen.add(id(value))
        if isinstance(value, type):
            held = [x for x in own_dict(value).values() if is_one_of(type(x), BOXES)]
        elif isinstance(value, BaseException):
            held = [value.args, own_dict(value)]
        elif kind is types.FunctionType:
            held = [value.__defaults__, value.__kwdefaults__, value.__closure__, value.__dict__]
        elif kind is types.CellType or not is_structure(value):
            held = frames.referents(value)
        elif frames.native(kind) is not None:
            held = [y for x in frames.parts_of(value).items() for y in x]
        else:
            held = [seen_attribute(tracer, value, k, x) for k, x in attributes(value).items()]
        todo += reversed(held)


PLAIN_KINDS = (
    (int, float, complex, str, bytes, np.ndarray, np.generic, np.dtype)
    + (types.ModuleType, types.CodeType, types.FrameType, types.TracebackType)
    + (Tracer,)  # to which iterators of ours lead, that stand in generators
)  # fmt: skip


def current_op(box: Box) -> Any:
    return current(box) if isinstance(box, ArrayBox) else box.op


def draw_all(tracer: Tracer, boxes: list[Any]) -> None:
    """Guard the values of numbers that went into something that is not a number."""
    for box in boxes:
        if type(box) is Box:
            decide(tracer, box.op, box.value)


def is_constant(tracer: Tracer, *operands: Any) -> bool:
    """Whether nothing among these operands has a derivative that somebody may ask for."""
    return not any(map(tracer.dependence.has, ops_in(operands)))


from . import attributes as of_objects  # noqa: E402  (these need each other)
from . import scopes, shown, sights, stand_ins  # noqa: E402
