"""The way in: values from outside become inputs of the tape, in boxes, and containers get shadows."""

from __future__ import annotations

import functools
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import attributes as of_objects
from . import dying, frames, meaning, places, scopes, seals, shown, sights, stand_ins, thrown
from .arrays import is_followed, is_traced_array
from .border import (
    ATOMS,
    COLLECTIONS,
    OUTSIDE,
    SEALABLE,
    base_of,
    callable_only,
    changed_shadow,
    contents,
    is_held,
    is_method,
    items_of,
    put_items,
    reaches,
    remember,
    stay_outside,
    works_on,
)
from .box import BOXES, ArrayBox, Box
from .depth import room
from .detours import compares
from .frames import Own
from .intrinsic import Intrinsic, Made, behind
from .kinds import MISSING, are_quiet, attribute, flags_of, is_one_of, isinstance, mro_of, own_dict
from .reads import HEAP_TYPE, Place
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
from .tails import grown, untouched
from .tape import NOWHERE, Input, Op
from .text import PRIVATE, TEXTS


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
        if kind is types.MethodType and seal is None:
            enter_owner(tracer, value)
        elif kind is types.GeneratorType and seal is None:
            sights.watch(tracer, value, name)
        elif kind is slice and seal is None:
            enter_fixed(tracer, (value,), name)
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
            return up_to_date(tracer, shadow[1])
        if id(value) in tracer.originals:
            return value
        with room:
            return admit(tracer, value, name, "outside", place, seal)[0]
    return admit(tracer, value, name, "outside", place, seal)[0]


def up_to_date(tracer: Tracer, shadow: Any) -> Any:
    """A shadow, of whose original code that runs as it is may have changed something meanwhile."""
    if tracer.unseen and shadow is not None:
        meaning.renewal.renew(tracer)
    return shadow


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
    if kind is Made:
        inner = behind(value)
        found = captures(
            tracer, inner, name, None if tracer.reads is None else tracer.reads.of(inner)
        )
        return value, FIXED if found is None else found[1]
    if kind is types.MethodType:
        owner, fn = value.__self__, value.__func__
        tree: Tree = FIXED
        if not isinstance(owner, (type, types.ModuleType)):
            inner = None if tracer.reads is None else tracer.reads.of(owner)
            tree = admit(tracer, owner, type(owner).__name__, "captured", inner)[1]
        if is_of_class(owner, fn):
            return value, tree
        captured = admit(tracer, fn, "__func__", "captured")[1]
        return value, Branch(kind, {"__self__": tree, "__func__": captured})
    if is_one_of(kind, (types.FunctionType, functools.partial)) or isinstance(value, type):
        return value, held_by(tracer, value)
    return None


def is_of_class(owner: Any, fn: Any) -> bool:
    """Whether the function of a method is one of a class, which all its instances share."""
    kind = owner if isinstance(owner, type) else type(owner)
    return any(
        attribute(x, "__func__", x) is fn
        for base in mro_of(kind)
        for x in list(vars(base).values())
    )


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
            known = up_to_date(tracer, tracer.shadows.get(id(value), (None, None))[1])
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
    if isinstance(value, BaseException):
        thrown.note(tracer, value)
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
        elif kind is types.MethodType:
            enter_owner(tracer, value)
        else:
            sights.note_code(tracer, value)
    elif found := captures(tracer, value, name, place) or seals.sealed(tracer, value, name):
        return found
    if role == "outside" and isinstance(value, shown.SHOWING):
        shown.enters(tracer, value)
        if type(value) is np.ndarray and value.dtype.kind == "O":
            for x in filter(is_traced_array, value.flat):  # which C code may take out of it
                enter(tracer, x, f"an element of {name}")
    if role == "outside" and isinstance(value, BaseException):
        tracer.outside[id(value)] = value
        return value, FIXED
    if kind is slice:
        enter_fixed(tracer, (value,), name, role)
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
        proxy = types.MappingProxyType(inside)
        tracer.viewed[id(proxy)] = (proxy, value)
        return proxy, tree
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


def seal_factory(tracer: Tracer, value: Any, name: str) -> dict[Any, Tree]:
    """What makes the items that are missing in an argument that is a defaultdict: its gradient has no place for it."""
    factory = value.default_factory
    if factory is None or isinstance(factory, type):
        return {}
    what = f"{name}.default_factory, {with_article(type(factory).__name__)}"
    seal = Sealed(what, "pass what it holds as arguments", [])
    seals.put_on(tracer, factory, seal)
    return {Own("default_factory"): seal}


def note_access(tracer: Tracer, kind: type) -> None:
    """Note how a container of a class of the user's gives its items, which decides what its tree is."""
    if tracer.reads is not None and flags_of(kind) & HEAP_TYPE and frames.native(kind) is not None:
        for name in frames.ACCESS:
            of_objects.note_member(tracer, kind, name)


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
        return of_objects.namespace(tracer, dying.owner_of(tracer, value)), FIXED
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
    if isinstance(value, dict):
        enter_fixed(tracer, now, f"a key of {name}", role)
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
            made_by = {} if role == "outside" else seal_factory(tracer, value, name)
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
    if kind is defaultdict:
        parts.update(made_by)
    if tracer.tails:
        grown(tracer, value, copy)
    return copy, Branch(kind, parts)


def enter_fixed(tracer: Tracer, values: Any, name: str, role: str = "outside") -> None:
    """Let in what guards say is the very same at each call, as keys are: where it is met again, it must be that.

    A key of an argument may be an argument itself, and is not let in as something outside.
    """
    if are_quiet(values):
        return
    for x in values:
        kind = type(x)
        if is_one_of(kind, BOXES) or isinstance(x, (float, complex, np.generic)):
            continue
        if tracer.reads is not None:
            tracer.reads.fix(x)
        tracer.comparing = tracer.comparing or compares(kind)
        if isinstance(x, tuple):
            enter_fixed(tracer, [*tuple.__iter__(x)], name, role)
        elif isinstance(x, frozenset):
            enter_fixed(tracer, [*frozenset.__iter__(x)], name, role)
        elif kind is slice:
            enter_fixed(tracer, (x.start, x.stop, x.step), name, role)
        elif role in OUTSIDE and id(x) not in tracer.outside:
            enter(tracer, x, name)


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
    """The shadow of a set, and its tree, which has the elements of an argument by themselves."""
    kind = type(value)
    role = "attribute" if role == "argument" else role  # ints in a set are none
    parts: dict[Any, Tree] = {}
    if role != "outside" or seal is not None:
        pairs = [admit(tracer, x, f"an element of {name}", role, None, seal) for x in now]
        parts = frames.valued(dict.fromkeys(now), [part for _, part in pairs])
        enter_fixed(tracer, now, name, role)
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
                return remember(tracer, value, copy, name, role, now), Branch(kind, parts)
            seal = Sealed(
                f"{name}, {with_article(kind.__name__)}",
                "pass a list",
                sources(Branch(kind, parts)),
            )
            shadow = remember(
                tracer, value, frames.made(kind, dict(enumerate(now))), name, role, now
            )
            tracer.readable[id(shadow)] = seal
            return shadow, seal
    tree = FIXED if all(x is FIXED for x in parts.values()) else Branch(kind, parts)
    enter_fixed(tracer, now, name, role)
    if isinstance(value, frozenset):
        return value, tree
    if list(now) != list(value):
        if not tracer.tails and not is_held(latest := contents(value), list(now)):
            return admit_set(tracer, value, latest, name, role, seal)  # another thread was here
        # it has a past, which no copy has
        return remember(tracer, value, value, name, role), tree
    shadow = remember(tracer, value, set(now), name, role, now)
    if role not in OUTSIDE:
        tracer.admitted[id(shadow)] = now
    return shadow, tree


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
    if base_of(held) in frames.MAPPINGS:
        enter_fixed(tracer, [key for key, _ in items], f"a key of {name}", role)
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
    if base_of(held) is defaultdict:
        parts.update(seal_factory(tracer, held, name))
    tree = tracer.trees[id(held)] = Branch(kind, parts)
    return held, tree
