"""The way out: a value without the boxes in it, as the outside is allowed to see it."""

from __future__ import annotations

import functools
import gc
import operator
import sys
import types
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import frames, places, rewrite, seals, sights, stand_ins, tracebacks
from .border import (
    ATOMS,
    COLLECTIONS,
    OF_C,
    STAND_INS,
    VIEWS,
    are_held,
    boxes_behind,
    contents,
    current_op,
    empty_like,
    is_constant,
    is_held,
    is_iterator,
    is_method,
    items_of,
    leads_to_box,
    merge,
    one_with,
    put_items,
    remember,
    see,
)
from .box import BOXES, ArrayBox, Box
from .depth import room
from .detours import code_of, made_inside
from .errors import TraceError
from .kinds import classes_of, is_one_of, isinstance, mro_of, own_dict
from .record import has_box
from .session import Tracer
from .structure import attributes, is_container
from .tails import Tail
from .text import PRIVATE, TEXTS, bare

try:
    from string.templatelib import Template  # type: ignore[import-not-found, unused-ignore]  # 3.14
except ImportError:
    Template = None


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
        if not isinstance(value.__self__, types.ModuleType):
            owner = lower(tracer, value.__self__, memo, final)
            moved = is_one_of(type(value.__self__), PRIVATE) or (
                is_one_of(kind, OF_C) and owner is not value.__self__
            )
            return getattr(owner, value.__name__) if moved else value
    elif kind is slice:
        if id(value) in tracer.viewed:
            return tracer.viewed[id(value)][1]
        ends = (value.start, value.stop, value.step)
        plain_ends = [lower(tracer, x, memo, final) for x in ends]
        return value if all(map(operator.is_, ends, plain_ends)) else slice(*plain_ends)
    elif is_one_of(kind, ALIASES):
        return lower_alias(tracer, value, memo, final)
    elif is_one_of(kind, sights.SIGHTS) and id(value) in tracer.viewed:
        return tracer.viewed[id(value)][1]
    elif is_one_of(kind, VIEWS) or kind is types.MappingProxyType:
        held = seals.underlying(value)
        plain = lower(tracer, held, memo, final)
        if plain is not held:
            proxy = kind is types.MappingProxyType
            return types.MappingProxyType(plain) if proxy else getattr(plain, VIEWS[kind])()
    elif kind is types.GeneratorType or is_iterator(value):
        refuse_carrier(tracer, value)
    elif kind is types.CellType:
        memo[id(value)] = (value, value)
        lower_cell(tracer, value, memo, final)
    elif is_one_of(kind, WRAPPERS):
        for held in gc.get_referents(value):
            lower(tracer, held, memo, final)
    elif kind is functools.partial and id(value) in tracer.outside:
        pass  # it holds what it held before the run
    elif kind is functools.partial:
        lower_partial(tracer, value, memo, final)
    elif kind is Template:
        return Template(*[lower_part(tracer, x, memo, final) for x in value])
    elif isinstance(value, type):
        lower_class(tracer, value, memo, final)
    elif final and isinstance(value, BaseException):
        strip_exception(tracer, value, memo)
    elif kind is functools._lru_cache_wrapper:
        lower_cache(tracer, value, memo, final)
    elif id(value) not in tracer.outside:
        lower_object(tracer, value, memo, final)
    return value


ALIASES = frozenset((types.GenericAlias, types.UnionType))


def lower_alias(tracer: Tracer, alias: Any, memo: dict[int, Any], final: bool) -> Any:
    """The same for ``list[x]`` or ``list[x] | None``, made anew: it cannot be written to."""
    parts = alias.__args__
    plain = lower(tracer, parts, memo, final)
    if plain is parts:
        return alias
    if type(alias) is types.UnionType:
        return functools.reduce(operator.or_, plain)
    made = types.GenericAlias(alias.__origin__, plain)
    return next(iter(made)) if getattr(alias, "__unpacked__", False) else made


def lower_part(tracer: Tracer, part: Any, memo: dict[int, Any], final: bool) -> Any:
    """A part of a template string: a string, or an interpolation."""
    if type(part) is str:
        return part
    value, spec = (lower(tracer, x, memo, final) for x in (part.value, part.format_spec))
    return type(part)(value, part.expression, part.conversion, spec)


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
            f"{tracer.tape.name} ({tracer.tape.site}) leaves {with_article(type(value).__name__)} with traced "
            "values behind, which cannot be turned into plain ones\nkeep a list of the values instead"
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
        tracer.before[id(value)] = contents(original)  # C code may change it, if it is kept
    memo[id(value)] = (value, original)
    if kind is defaultdict:
        original.default_factory = lower(tracer, value.default_factory, memo, final)
    sync(tracer, original, value, memo, final)
    if kind is OrderedDict:  # which has attributes of its own
        for key, x in dict(own_dict(value) or {}).items():
            setattr(original, key, lower(tracer, x, memo, final))
    return original


def sync(tracer: Tracer, original: Any, shadow: Any, memo: dict[int, Any], final: bool) -> bool:
    """Do to an original what was done to its shadow; says whether that was anything."""
    before = tracer.before.get(id(shadow))
    held = contents(original) if before is None else before
    if isinstance(original, dict):
        items = [
            (lower(tracer, k, memo, final), lower(tracer, v, memo, final))
            for k, v in list(shadow.items())  # of one moment: another thread may write to it
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


def is_users(method: types.MethodType) -> bool:
    """Whether a method is one of the user's in Python, and not what stands for one of a number or of text."""
    fn = method.__func__
    if type(fn) is not types.FunctionType:
        return False
    return made_inside(fn) or not is_one_of(type(method.__self__), PRIVATE)


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
    made = [x for x in mro_of(cls) if is_made(tracer, x)]
    if made and not final:
        tracer.pending.append(cls)
        return
    for one in (*made, cls):
        memo[id(one)] = (one, one)
        for key, x in list(own_dict(one).items()):
            if (
                is_one_of(type(x), PRIVATE)
                or (is_container(x) and (one in made or leads_to_box(tracer, x)))
                or (one in made and may_hold_box(tracer, x))
            ):
                plain = lower(tracer, x, memo, final)
                if plain is not x:
                    type.__setattr__(one, key, plain)
    for kind in classes_of(made):
        if is_made(tracer, kind):
            lower(tracer, kind, memo, final)


def may_hold_box(tracer: Tracer, value: Any) -> bool:
    """Whether what a class that was made inside has for an attribute is to be opened."""
    if isinstance(value, type):
        return is_made(tracer, value)
    return is_one_of(type(value), HOLDING) or leads_to_box(tracer, value)


HOLDING = frozenset((types.FunctionType, *WRAPPERS, functools.cached_property, functools.partial))


def is_made(tracer: Tracer, cls: type) -> bool:
    """Whether the run has made a class."""
    known = tracer.classes.get(id(cls)) if tracer.classes else None
    return known is not None and known() is cls


def lower_function(tracer: Tracer, fn: Any, memo: dict[int, Any], final: bool) -> None:
    """Take boxes out of the cells and defaults of a function that was made inside, when the run has ended."""
    if not made_inside(fn):
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
    lower(tracer, getattr(fn, "__annotate__", None), memo, final)
    notes = annotations_of(fn)
    notes.update({key: lower(tracer, x, memo, final) for key, x in notes.items()})
    for key in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(fn, key, bare(getattr(fn, key)))
    fn.__code__ = rewrite.original(code_of(fn))


def annotations_of(fn: Any) -> dict[str, Any]:
    """The annotations that a function has; none where they are computed when they are asked for, and nobody has."""
    if not hasattr(fn, "__annotate__"):
        return fn.__annotations__
    others = (fn.__globals__, fn.__builtins__, fn.__dict__)
    held = [x for x in gc.get_referents(fn) if type(x) is dict]
    return next((x for x in held if not any(x is y for y in others)), {})


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


def lower_cache(tracer: Tracer, fn: Any, memo: dict[int, Any], final: bool) -> None:
    """The same for a function under ``lru_cache``, and for what the run has made and left in its cache."""
    if id(fn) not in tracer.outside:
        lower_object(tracer, fn, memo, final)
    wrapped = fn.__wrapped__
    if type(wrapped) is not types.FunctionType or not made_inside(wrapped):
        return
    if not final:
        tracer.pending.append(fn)
        return
    for held in gc.get_referents(fn):
        for x in dict.values(held) if type(held) is dict else (held,):
            lower(tracer, x, memo, True)


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
        if any(is_made(tracer, cls) for cls in mro_of(type(instance))):
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
    if not final and isinstance(instance, COLLECTIONS):
        tracer.outside[id(instance)] = instance
    elif not final:
        see(tracer.outside, instance)


def held_apart(tracer: Tracer, instance: Any, own: dict[str, Any]) -> None:
    """Something else holds the dict itself of an object that is handed to the outside: a variable."""
    if has_box(own):
        raise TraceError(
            f"{places.blame(places.user_site())}: {with_article(type(instance).__name__)} is handed to the "
            "outside while a variable holds its __dict__\nuse the object itself, or a copy of its __dict__"
        )
    if tracer.reads is not None:
        tracer.reads.problem(
            f"a variable holds the __dict__ of {with_article(type(instance).__name__)}"
        )
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
    for cls in mro_of(type(error)):
        for name, member in list(vars(cls).items()):
            if type(member) is types.MemberDescriptorType and cls.__module__ == "builtins":
                value = getattr(error, name, None)
                plain = lower_member(tracer, value, memo, final)
                if plain is not value:
                    try:
                        setattr(error, name, plain)
                    except (AttributeError, TypeError):  # it is read-only
                        pass
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


def rename_keys(tracer: Tracer, held: dict[Any, Any], memo: dict[int, Any]) -> None:
    """Put plain keys in the place of traced ones, and of tuples of them; the order stays what it is."""
    items = list(dict.items(held))
    base: Any = dict
    if isinstance(held, OrderedDict):  # which has an order of its own
        base, values = OrderedDict, {id(key): x for key, x in items}
        items = [(key, values[id(key)]) for key in list(OrderedDict.keys(held))]
    if any(is_one_of(type(key), PRIVATE) or leads_to_box(tracer, key) for key, _ in items):
        base.clear(held)
        for key, x in items:
            base.__setitem__(held, lower(tracer, key, memo, True), x)


@room
def strip_exception(
    tracer: Tracer, error: BaseException, memo: dict[int, Any] | None = None
) -> None:
    """Take boxes out of an exception that reaches the outside, and out of all that is shown with it."""
    memo = {} if memo is None else memo
    for one in tracebacks.shown(error):
        if id(one) not in memo:
            lower_object(tracer, one, memo, True)
