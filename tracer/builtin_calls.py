"""Builtins that need a word of their own, because they look at types, at frames, or behind attributes."""

from __future__ import annotations

import _thread
import abc
import builtins
import collections
import copy
import functools
import gc
import importlib
import itertools
import math
import mmap
import operator
import string
import sys
import types
import weakref
from _abc import _get_dump  # type: ignore[import-not-found]
from builtins import sum  # whatever the user puts there later
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.words import with_article
from . import (
    attributes,
    calls,
    dynamic,
    escape,
    frames,
    operators,
    overrides,
    places,
    protocols,
    scopes,
    seals,
    sights,
    slots,
    stand_ins,
)
from .arrays import is_traced_array, move_out, window
from .border import STAND_INS, is_constant, is_iterator, reflected
from .box import BOXES, ArrayBox
from .calls import call
from .depth import depth, recursion_limit
from .detours import code_of
from .effects import may_fail
from .errors import TraceError, WengertError
from .foreign import callback, structural
from .handlers import handlers, handles
from .holders import held, hold_all, may_hold
from .intrinsic import intrinsic
from .kinds import attribute, is_one_of, isinstance, member, own_dict, static
from .loops import Items
from .making import Metaclass, note_making
from .marks import behind, failed, follow, found, made
from .opaque import opaque
from .plain_calls import plainly
from .reads import MISSING, stream_kind
from .record import NUMBERS, has_box, operand, record
from .session import Tracer
from .slots import invoke, is_object, plain_of, python_special
from .structure import is_container
from .tape import Site
from .text import TEXTS, bare
from .unboxing import is_made, lower


@handles(builtins.isinstance)
def _isinstance(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    if kwargs or len(args) != 2:
        return builtins.isinstance(*args, **kwargs)
    return is_instance(tracer, site, *args)


def is_instance(tracer: Tracer, site: Site, value: Any, classes: Any) -> bool:
    """``isinstance(value, classes)``."""
    if (several := several_in(classes)) is not None:
        return any(is_instance(tracer, site, value, cls) for cls in several)
    plain = plain_of(value).flat if id(value) in tracer.flats else slots.shown(value)
    if type(plain) is not classes:
        check = python_special(classes, "__instancecheck__")
        if type(check) is types.FunctionType and not calls.is_untraced(check):
            return protocols.truth(tracer, site, invoke(tracer, site, check, classes, value))
    asks = is_object(plain) and pretends(type(plain))
    if asks and type(classes) is type:
        result = issubclass(type(plain), classes) or claims(tracer, site, plain, classes)
    else:
        if asks:
            named = with_article(type(plain).__name__)
            unrepeatable(tracer, site, f"isinstance, which asks {named} for its class,")
        result = asked_in_c(tracer, site, builtins.isinstance, plain, classes)
    if tracer.reads is not None and type(plain) is not classes:  # of which it asks nobody
        note_subclass(tracer, site, type(plain), (classes,))
    return result


def several_in(classes: Any) -> tuple[Any, ...] | None:
    """The classes of which any will do; of a union all must be some, which CPython says a word about."""
    if type(classes) is tuple:
        return classes
    if type(classes) is types.UnionType and all(
        issubclass(type(x), type) for x in classes.__args__
    ):
        return classes.__args__
    return None


def asked_in_c(tracer: Tracer, site: Site, fn: Any, value: Any, cls: Any) -> bool:
    """``isinstance`` or ``issubclass`` of a class that C code asks: it may ask the value, and hooks, in its turn."""
    hook = hook_of(cls)
    asks = is_object(value) and not isinstance(value, type) and pretends(type(value))
    if hook is None and not asks:
        return fn(value, cls)  # type: ignore[no-any-return]
    before = tracer.called_back
    result: bool = escape.watched(fn, (value, cls), {}, site, members=[hook] if hook else ())
    if tracer.called_back != before and tracer.reads is not None:  # the cache will answer next time
        tracer.reads.problem(f"isinstance asks the class of {cls.__name__}", site)
    return result


def hook_of(cls: Any) -> types.FunctionType | None:
    """The user's hook that an abstract class asks about others."""
    if not issubclass(type(cls), abc.ABCMeta):
        return None
    hook = attribute(static(cls, "__subclasshook__"), "__func__")
    if type(hook) is not types.FunctionType or places.is_others(code_of(hook).co_filename):
        return None
    return hook


def pretends(kind: type) -> bool:
    """Whether the instances of a class may name another as theirs."""
    asks = type(member(kind, "__getattribute__")) is types.FunctionType
    return asks or static(kind, "__class__") is not vars(object)["__class__"]


def claims(tracer: Tracer, site: Site, value: Any, cls: type) -> bool:
    """Whether an object says that its class is another one, which derives from ``cls``."""
    try:
        named = attributes.load(tracer, site, value, "__class__")
    except AttributeError:
        return False
    return isinstance(named, type) and slots.is_subtype(named, cls)


@handles(issubclass, takes=(2, 2))
def _issubclass(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    return is_subclass(tracer, site, *args)


def is_subclass(tracer: Tracer, site: Site, kind: Any, classes: Any) -> bool:
    """``issubclass(kind, classes)``."""
    if (several := several_in(classes)) is not None:
        return any(is_subclass(tracer, site, kind, cls) for cls in several)
    check = python_special(classes, "__subclasscheck__")
    if type(check) is types.FunctionType and not calls.is_untraced(check):
        return protocols.truth(tracer, site, invoke(tracer, site, check, classes, kind))
    result = asked_in_c(tracer, site, issubclass, kind, classes)
    if tracer.reads is not None and isinstance(kind, type):
        note_subclass(tracer, site, kind, (classes,))
    return result


def note_subclass(tracer: Tracer, site: Site, kind: type, classes: Any) -> None:
    """Note what was asked of classes whose own class answers: abstract ones, for which others may be registered.

    These are asked once more, and answer out of their caches.
    """
    reads = tracer.reads
    assert reads is not None
    reads.derives(kind)
    for cls in classes:
        if isinstance(cls, tuple):
            note_subclass(tracer, site, kind, cls)
        elif type(cls) is abc.ABCMeta and not runs_hook(tracer, kind, cls):
            reads.note(reads.constant(kind), "subclass", cls, issubclass(kind, cls))
        elif isinstance(cls, type) and type(cls) is not type:
            reads.problem(f"isinstance asks the class of {cls.__name__}", site)


def runs_hook(tracer: Tracer, kind: type, cls: type) -> bool:
    """Whether an abstract class asks a ``__subclasshook__`` of the user's about a class each time.

    It does for one that is registered, whose answer it does not keep, and for one that each run makes anew.
    """
    if hook_of(cls) is None:
        return False
    return is_made(tracer, kind) or any(known() is kind for known in registered(cls))


def registered(cls: type) -> Iterable[Any]:
    """Weak references to the classes that are registered with an abstract one."""
    return _get_dump(cls)[0]  # type: ignore[no-any-return]


@handles(np.broadcast_arrays)
def _broadcast_arrays(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """Array by array: the derivative of one has nothing to do with the others."""
    if not has_box(args) or kwargs:
        rule = registry.rules[np.broadcast_arrays]
        return calls.primitive(tracer, site, np.broadcast_arrays, rule, args, kwargs)
    arrays = [call(tracer, site, np.asarray, (x,), {}) for x in args]
    shape = np.broadcast_shapes(*[np.shape(plain_of(x)) for x in arrays])
    return type(np.broadcast_arrays(0, 0))([spread(tracer, site, x, shape) for x in arrays])


def spread(tracer: Tracer, site: Site, array: Any, shape: tuple[int, ...]) -> Any:
    """One of several broadcast arrays: recorded as `np.broadcast_to`, but may be written to, with a warning."""
    plain = plain_of(array)
    if plain.shape == shape:
        return array
    plain = np.broadcast_arrays(plain, np.broadcast_to(0, shape))[0]
    found = call(tracer, site, np.broadcast_to, (array, shape), {})
    if not is_one_of(type(found), BOXES):
        return plain
    found.value = found.op.value = plain
    return found


@handles(operator.call)
def call_of(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if not args:
        operator.call(*args, **kwargs)  # raises what plain Python raises
    return call(tracer, site, args[0], args[1:], kwargs)


@handles(callable, takes=(1, 1))
def _callable(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    slots.special(args[0], "__call__")  # which is looked at
    return callable(plain_of(args[0]))


@handles(type)
def _type(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs:
        value = slots.shown(args[0])
        kind = type(value)
        other = STAND_INS[kind] if is_one_of(kind, STAND_INS) else None
        return type(value if other is None else other(value))
    if len(args) != 3:
        return type(*map(plain_of, args), **kwargs)  # raises what plain Python raises
    cls = escape.watched(type, (plain_of(bare(args[0])), *args[1:]), kwargs, site)
    if not dict.__contains__(args[2], "__module__"):
        cls.__module__ = places.user_frame().f_globals.get("__name__", cls.__module__)
    note_making(tracer, site, cls)
    return cls


def unrepeatable(tracer: Tracer, site: Site, what: str) -> None:
    """Note that what the program does here depends on more than values."""
    if tracer.reads is not None:
        tracer.reads.problem(f"{what} is used", site)


@handles(id, takes=(1, 1))
def _id(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> int:
    unrepeatable(tracer, site, "id()")
    return id(plain_of(args[0]))


def _of_object(fn: Any, how: Any) -> None:
    """Say how a builtin is carried out on an object: ``how(tracer, site, *args)``."""

    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if not args or kwargs or not is_object(args[0]):
            return structural(tracer, site, fn, args, kwargs)
        fn(*map(plain_of, args)) if len(args) > most else None  # raises what plain Python raises
        return how(tracer, site, *args)

    most = 2 if fn is format else 1
    handles(fn)(handler)


def _ascii(tracer: Tracer, site: Site, value: Any) -> str:
    text = protocols.representation(tracer, site, value)
    shown = ascii(slots.double(type(value), {"__repr__": lambda _: bare(text)}))
    return (
        follow(tracer, site, ascii, shown, text.origin) if is_one_of(type(text), TEXTS) else shown
    )


for _fn, _how in (
    (len, protocols.length),
    (hash, protocols.hash_of),
    (repr, protocols.representation),
    (ascii, _ascii),
    (format, protocols.formatted),
):
    _of_object(_fn, _how)


@handles(reversed)
def _reversed(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if kwargs or len(args) != 1:
        return reversed(*args, **kwargs)
    return protocols.reverse(tracer, site, *args)


@handles(str)
def _str(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if kwargs or len(args) != 1 or not is_object(args[0]):
        return structural(tracer, site, str, args, kwargs)
    return protocols.text(tracer, site, args[0])


@handles(operator.truth, takes=(1, 1))
@handles(bool, takes=(0, 1))
def _bool(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    return protocols.truth(tracer, site, args[0]) if args else False


@handles(operator.not_, takes=(1, 1))
def _not(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    return not protocols.truth(tracer, site, args[0])


def must_round(tracer: Tracer, site: Site, value: Any) -> None:
    """Refuse ``int`` of a float so large that all are integers: this rounds nothing, and its derivative is not zero."""
    plain: Any = plain_of(value)
    if not isinstance(plain, (float, np.floating)) or not 2**52 <= math.fabs(plain) < math.inf:
        return
    if not is_constant(tracer, operand(value, [])):
        raise TraceError(
            f"{places.blame(site)}: int takes a traced number apart, which is so large that all floats are integers "
            "there, and its gradient would be lost\nif it is meant to be a constant, give int the wengert.stop_gradient"
        )


def is_array_class(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, np.ndarray)


def _view(fn: Any) -> Any:
    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        """The bits of a number, once they are integers, may go anywhere."""
        plain: Any = plain_of(args[0]) if args else None
        asked = kwargs.get("dtype", args[1] if len(args) > 1 else None)
        of_numbers = has_box(args[:1]) and isinstance(plain, (np.ndarray, np.generic))
        user = of_numbers and not tracer.expanding  # a rule knows what it does
        if user and asked is not None and not is_array_class(asked):
            have, seen = plain.dtype, np.dtype(plain_of(asked))
            bits = have.kind in "fc" and seen.kind not in "fcO"
            if bits and not is_constant(tracer, operand(args[0], [])):
                raise TraceError(
                    f"{places.blame(site)}: view takes a traced array of {have} apart as {seen}, and its gradient "
                    "would be lost\ngive it the wengert.stop_gradient of the array, if that is meant to be a constant"
                )
        rule = registry.lookup(fn)
        assert rule is not None
        return calls.primitive(tracer, site, fn, rule, args, kwargs)

    return handler


for _seen in (np.ndarray.view, np.generic.view):
    handlers[_seen] = _view(_seen)


def _number(cls: type) -> Any:
    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if args and is_object(args[0]) and not kwargs:
            real = cls is complex and len(args) == 2  # and the imaginary part
            real = real and slots.special(args[0], "__complex__") is MISSING
            number = protocols.number(tracer, site, float if real else cls, args[0])
            if len(args) == 1 and number is not args[0]:
                return number
            args = (number, *args[1:])
        if len(args) == 2 and cls is complex and is_object(args[1]):
            if not isinstance(args[1], complex):  # which is taken as it is
                args = (args[0], protocols.number(tracer, site, float, args[1]))
        if tracer.texts.drawn and found(tracer, args, kwargs) is not None:
            return opaque(tracer, site, cls, args, kwargs)
        if has_box(args) or has_box(kwargs):
            if cls is int:
                must_round(tracer, site, args[0])
            return record(tracer, site, cls, args, kwargs)
        if tracer.reads is not None:
            for x in args:
                tracer.reads.looked_into(x, site)
                protocols.note_digits(tracer, site, x)
        return escape.watched(cls, args, kwargs, site)

    return handler


for _cls in (float, int, complex):
    handlers[_cls] = _number(_cls)


@handles(iter)
def _iter(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if len(args) != 1:
        return structural(tracer, site, iter, args, kwargs)
    return protocols.iterator_of(tracer, site, args[0])


@handles(next)
def _next(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if kwargs or not 0 < len(args) < 3:
        return next(*args, **kwargs)
    try:
        return protocols.next_of(tracer, site, args[0])
    except StopIteration:
        if len(args) == 2:
            return args[1]
        raise


@handles(collections.deque.rotate)
def _rotate(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if len(args) == 2 and is_object(args[1]):
        args = (args[0], protocols.position(tracer, site, args[1]))
    return structural(tracer, site, collections.deque.rotate, args, kwargs)


@handles(types.GeneratorType.throw)
def _throw(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """A class of the user's is called here, for C code would do so unseen."""
    if len(args) > 1 and type(args[0]) is types.GeneratorType and reaches_generator(args[0]):
        args = (args[0], *thrown(tracer, site, *args[1:]))
    return structural(tracer, site, types.GeneratorType.throw, args, kwargs)


def reaches_generator(generator: Any) -> bool:
    """Whether what is thrown into a generator comes to one, and not to a ``throw`` of another object's."""
    while type(generator) is types.GeneratorType:
        inner = generator.gi_yieldfrom
        if inner is None:
            return True
        generator = inner.shown if type(inner) is Items else inner
    return is_iterator(generator) or is_one_of(type(generator), (list, tuple))  # since 3.15


def thrown(tracer: Tracer, site: Site, error: Any, *rest: Any) -> tuple[Any, ...]:
    """What is thrown for a class; what follows is its instance or the arguments for one, and a traceback."""
    value = rest[0] if rest else None
    if not slots.is_users_exception(error) or slots.is_subtype(type(value), error):
        return (error, *rest)
    given = () if value is None else value if isinstance(value, tuple) else (value,)
    try:
        made = calls.make_exception(tracer, site, error, given)
    except WengertError:
        raise
    except Exception as failed:  # which is thrown instead
        made = failed
    return (made, None, *rest[1:]) if rest else (made,)


@handles(sum)
def _sum(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if not 0 < len(args) + len(kwargs) < 3 or not args or kwargs.keys() - {"start"}:
        return sum(*map(plain_of, args), **kwargs)  # raises what plain Python raises
    start = args[1:] or tuple(kwargs.values())
    is_fixed = is_addend if not protocols.is_lazy(args[0]) else protocols.is_scalar
    rest = iter(protocols.iterate_object(tracer, site, args[0]))
    sum((), *map(plain_of, start))  # raises what plain Python raises
    numbers: list[Any] = []
    if all(map(is_fixed, start)):
        numbers, rest = protocols.beginning(rest, is_fixed)
    total = start[0] if start else 0
    if numbers:
        boxed = has_box(numbers) or has_box(start)
        if not boxed and tracer.reads is not None:
            tracer.reads.computes(sum, (numbers, *start), site)
        add = functools.partial(record, tracer, site, sum) if boxed else lambda args, _: sum(*args)
        total = add((numbers, *start), {})
    for item in rest:
        total = operators.operate(tracer, site, operator.add, total, item)
    return total


def is_addend(value: Any) -> bool:
    return isinstance(plain_of(value), (NUMBERS, bool, np.ndarray)) and not is_object(value)


class Nobody:
    """Has no attributes of its own."""


def name_in(fn: Any, name: Any, *rest: Any) -> Any:
    """The name of an attribute; CPython refuses one that is no string."""
    plain = plain_of(bare(name))
    if not isinstance(plain, str):
        fn(Nobody if attribute(fn, "__objclass__") is type else Nobody(), plain, *rest)
    if type(plain) is not str and any(
        python_special(plain, name) is not MISSING for name in ("__hash__", "__eq__")
    ):
        raise TraceError(
            f"{places.blame(places.user_site())}: an attribute is named by a string of the class "
            f"{type(plain).__name__}, which has a way of its own to be hashed or compared\n"
            "name it by the plain string: str.__str__(name)"
        )
    return plain


@handles(getattr, takes=(2, 3))
def _getattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    try:
        return attributes.load(tracer, site, args[0], name_in(getattr, args[1]))
    except AttributeError as error:
        if len(args) == 3:
            return args[2]
        failed(tracer, site, getattr, args[1:], error)
        raise


@handles(object.__getattribute__, takes=(2, 2))
def _object_getattribute(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    obj, name = args[0], name_in(object.__getattribute__, args[1])
    if is_object(obj) and type(name) is str and not isinstance(obj, (type, types.ModuleType)):
        if name == "__dict__" and id(obj) in tracer.outside and own_dict(obj) is not None:
            return attributes.namespace(tracer, obj)
    if is_one_of(type(obj), BOXES):
        return attributes.load(tracer, site, obj, name)
    try:
        return attributes.find(tracer, site, obj, name)
    except AttributeError as error:
        attributes.noted(tracer, obj, name, MISSING, "absent")
        failed(tracer, site, getattr, args[1:], error)
        raise


@handles(type.__getattribute__, takes=(2, 2))
def _type_getattribute(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    cls, name = args[0], name_in(type.__getattribute__, args[1])
    if not isinstance(cls, type) or type(name) is not str:
        return type.__getattribute__(plain_of(cls), name)  # raises what plain Python raises
    if name == "__dict__":
        return attributes.namespace(tracer, cls)
    return attributes.find_in_class(tracer, site, cls, type(cls), name)


@handles(hasattr, takes=(2, 2))
def _hasattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    try:
        attributes.load(tracer, site, args[0], name_in(hasattr, args[1]))
    except AttributeError:
        return False
    return True


@handles(setattr, takes=(3, 3))
def _setattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    obj, name, value = args
    attributes.store(tracer, site, obj, name_in(setattr, name, None), value)


@handles(object.__setattr__, takes=(3, 3))
def _object_setattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    obj, name, value = args[0], name_in(object.__setattr__, args[1], None), args[2]
    if is_one_of(type(obj), BOXES) or isinstance(obj, type):
        object.__setattr__(plain_of(obj), name, None)  # raises what plain Python raises
    attributes.assign(tracer, site, obj, name, value)


@handles(type.__setattr__, takes=(3, 3))
def _type_setattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    cls, name, value = args[0], name_in(type.__setattr__, args[1], None), args[2]
    if not isinstance(cls, type):
        type.__setattr__(plain_of(cls), name, None)  # raises what plain Python raises
    attributes.assign(tracer, site, cls, name, value)


@handles(object.__delattr__, takes=(2, 2))
def _object_delattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    obj, name = args[0], name_in(object.__delattr__, args[1])
    if is_one_of(type(obj), BOXES) or isinstance(obj, type):
        object.__delattr__(plain_of(obj), name)  # raises what plain Python raises
    attributes.discard(tracer, site, obj, name)


@handles(type.__delattr__, takes=(2, 2))
def _type_delattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    cls, name = args[0], name_in(type.__delattr__, args[1])
    if not isinstance(cls, type):
        type.__delattr__(plain_of(cls), name)  # raises what plain Python raises
    attributes.discard(tracer, site, cls, name)


@handles(delattr, takes=(2, 2))
def _delattr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    attributes.delete(tracer, site, bare(args[0]), name_in(delattr, args[1]))


@handles(vars, takes=(0, 1))
def _vars(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if not args:
        return dynamic.of_caller(tracer, site, "vars()")
    tracer.variables = None
    try:
        return attributes.load(tracer, site, args[0], "__dict__")
    except AttributeError:
        raise TypeError("vars() argument must have __dict__ attribute") from None


@handles(locals, takes=(0, 0))
def _locals(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return dynamic.of_caller(tracer, site, "locals()")


@handles(globals, takes=(0, 0))
def _globals(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return scopes.seen_globals(tracer, site, places.user_frame().f_globals, "globals()")


@handles(dir, takes=(0, 1))
def _dir(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    unrepeatable(tracer, site, "dir()")
    if not args:
        return sorted(dynamic.keys_of(tracer, site, dynamic.of_caller(tracer, site, "dir()")))
    tracer.variables = None
    found = python_special(args[0], "__dir__")
    if found is not MISSING:
        names = invoke(tracer, site, found, args[0])
    elif isinstance(args[0], types.ModuleType) and "__dir__" in own_dict(args[0]):
        names = call(tracer, site, attributes.load(tracer, site, args[0], "__dir__"), (), {})
    else:
        return escape.watched(dir, (plain_of(args[0]),), {}, site)
    return sorted(protocols.iterate_object(tracer, site, names))


@handles(super)
def _super(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if has_box(args[1:]) and isinstance(args[0], type):
        raise TraceError(
            f"{places.blame(site)}: super() of a traced number cannot be followed\ncall the method of the class that "
            "you mean, such as float.__mul__(x, y)"
        )
    if args or kwargs:
        return super(*map(plain_of, args), **kwargs)  # type: ignore[misc]
    raise TraceError(
        f"{places.blame(site)}: super without arguments, and not written as super(), cannot be followed\nwrite "
        "super(), or give it the class and the object"
    )


for _name in ("start_joinable_thread", "start_new_thread"):

    def _start(
        tracer: Tracer, site: Site, args: Any, kwargs: Any, name: str = f"_thread.{_name}"
    ) -> Any:
        raise calls.elsewhere(site, name)

    if hasattr(_thread, _name):
        handles(getattr(_thread, _name))(_start)


for _all in (gc.get_objects, gc.get_referrers):

    def _everything(tracer: Tracer, site: Site, args: Any, kwargs: Any, fn: Any = _all) -> Any:
        raise TraceError(
            f"{places.blame(site)}: gc.{fn.__name__} gives objects of the tracer's own among those of the program\n"
            "ask before the call, or after it"
        )

    handles(_all)(_everything)


@handles(sys.getrecursionlimit)
def _getrecursionlimit(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if args or kwargs:
        return sys.getrecursionlimit(*args, **kwargs)  # raises what plain Python raises
    return opaque(tracer, site, recursion_limit, (), {})


@handles(sys.setrecursionlimit)
def _setrecursionlimit(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    unrepeatable(tracer, site, "sys.setrecursionlimit()")
    if len(args) != 1 or kwargs:
        sys.setrecursionlimit(*args, **kwargs)  # raises what plain Python raises
    depth.set(protocols.plain_key(args[0]))


@handles(chr)
def _chr(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    character = structural(tracer, site, chr, args, kwargs)
    origin = behind(tracer, site, args)
    return character if origin is None else follow(tracer, site, chr, character, origin)


def shows_alike(values: Iterable[Any]) -> bool:
    """Whether what stands on the tape for values is shown like these: of a deque of traced values it is a list."""
    todo, seen = list(values), set()
    while todo:
        value = todo.pop()
        if is_one_of(type(value), (list, tuple, dict)):
            if id(value) not in seen:  # it may hold itself
                seen.add(id(value))
                todo += value.values() if type(value) is dict else value
        elif not is_one_of(type(value), BOXES) and has_box(value):
            return False
    return True


@handles(print)
def _print(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    if kwargs.get("file") is None:
        kind = stream_kind()
        if tracer.reads is not None and (attributes.slot(sys), "stdout") not in tracer.overlay:
            place = tracer.reads.constant(sys)
            tracer.reads.note(place, "stream", None, kind).check = "is"
        # Without a stream to print to, no object is asked for its text.
        if kind is type(None) and any(map(is_object, args)):
            return print(
                **{k: plain_of(x) for k, x in kwargs.items()}
            )  # raises what plain Python raises
    sep, end = kwargs.get("sep"), kwargs.get("end")
    if not all(x is None or isinstance(x, str) for x in (sep, end)):
        return print(sep=sep, end=end)  # type: ignore[call-overload]  # raises
    file = kwargs.get("file")
    file = getattr(sys, "stdout", None) if file is None else file
    if is_object(file) and calls.is_users(file) and PRINTING.issuperset(kwargs):
        return print_to(tracer, site, file, args, **{"flush": False, **kwargs})
    if len(args) > 1:
        sep = " " if sep is None else sep
        before = {**kwargs, "end": sep, "flush": False}
        start = 0
        for i, x in enumerate(
            args
        ):  # when an object is asked for its text, what precedes it is out
            if i > start and is_object(x):
                _print(tracer, site, args[start:i], before)
                start = i
        args = args[start:]
    args = tuple([call(tracer, site, str, (x,), {}) if is_object(x) else x for x in args])
    for x in args:
        protocols.note_digits(tracer, site, x) if type(x) is int else None
    if tracer.tape.undo is not None:
        return None
    plain, how = [lower(tracer, x) for x in args], {k: lower(tracer, x) for k, x in kwargs.items()}
    sights.unseen(tracer, site, print, (file,), lambda: print(*plain, **how))
    if tracer.reads is not None and not shows_alike(args):
        tracer.reads.problem(
            "a container of traced values that is no list, tuple or dict is printed", site
        )
    may_fail(tracer, site, print, args, kwargs)
    origin = behind(tracer, site, args)
    if origin is not None:
        if may_hold(file):
            hold_all(tracer.texts, file, origin)


PRINTING = frozenset(("sep", "end", "file", "flush"))


def print_to(
    tracer: Tracer,
    site: Site,
    stream: Any,
    args: Any,
    flush: Any,
    sep: str | None = None,
    end: str | None = None,
    file: Any = None,
) -> None:
    """Print to an object of the user's, whose methods are called like any others."""

    def write(text: Any) -> None:
        call(tracer, site, handlers[getattr](tracer, site, (stream, "write"), {}), (text,), {})

    for i, x in enumerate(args):
        if i:
            write(" " if sep is None else sep)
        write(call(tracer, site, str, (x,), {}))
    write("\n" if end is None else end)
    if protocols.truth(tracer, site, flush):
        call(tracer, site, handlers[getattr](tracer, site, (stream, "flush"), {}), (), {})


@handles(builtins.__build_class__)
def _build_class(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    def run(fn: Any, given: Any, options: Any) -> Any:
        return call(tracer, site, fn, given, options)

    given = plain_of(kwargs["metaclass"]) if "metaclass" in kwargs else MISSING
    for base in args[2:]:  # which may be asked for others at the next call
        if not isinstance(base, type):
            attributes.note_member(tracer, type(base), "__mro_entries__")
    variables = functools.partial(dynamic.body_variables, tracer)
    kwargs = {**kwargs, "metaclass": Metaclass(given, run, variables)}
    made = builtins.__build_class__(*map(plain_of, args), **kwargs)
    note_making(tracer, site, made, args[2:])
    return made


@handles(str.format)
def _str_format(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """Attributes and items that a format asks for are those that the program would read."""
    if args and type(args[0]) is str and ("." in args[0] or "[" in args[0]):
        found = Fields(tracer, site, args[1:], dict(kwargs))
        try:
            simple = found.simple(args[0])
        except (ValueError, IndexError, KeyError):
            if found.read:  # by what was asked for
                raise
        else:
            if found.read:
                args, kwargs = (simple, *args[1:]), found.named
    return structural(tracer, site, str.format, args, kwargs)


field_name_split: Any = vars(string)["_string"].formatter_field_name_split


class Fields:
    """The fields of a format: what they ``read`` of the arguments goes among the arguments that have names."""

    def __init__(self, tracer: Tracer, site: Site, args: Any, named: dict[str, Any]) -> None:
        self.tracer, self.site, self.args, self.named = tracer, site, args, named
        self.count = self.read = 0
        self.counts: set[bool] = set()  # whether fields are counted, or say their numbers

    def simple(self, text: str) -> str:
        """The same format with fields that are names or numbers."""
        parts = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            parts.append(literal.replace("{", "{{").replace("}", "}}"))
            if field is not None:
                name = self.name(field)
                how = f"!{conversion}" if conversion else ""
                then = f":{self.simple(spec)}" if spec else ""
                parts.append(f"{{{name}{how}{then}}}")
        return "".join(parts)

    def name(self, field: str) -> Any:
        first, rest = field_name_split(field)
        if type(first) is int or first == "":
            self.counts.add(first == "")
            if len(self.counts) > 1:
                ways = ["manual field specification", "automatic field numbering"]
                raise ValueError(
                    "cannot switch from {} to {}".format(*ways[:: 1 if first == "" else -1])
                )
        if first == "":
            first, self.count = self.count, self.count + 1
        steps = list(rest)
        if not steps:
            return first
        value = self.args[first] if type(first) is int else self.named[first]
        self.read += 1
        for is_attribute, key in steps:
            load = attributes.load if is_attribute else protocols.get_item
            value = load(self.tracer, self.site, value, key)
        name = f"{self.read} {field.partition('.')[0].partition('[')[0]}"
        self.named[name] = value
        return name


@handles(np.ndarray.__array__)
def _array(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if not 1 <= len(args) <= 2 or kwargs.keys() - {"copy"}:
        # It raises what plain Python raises, or takes the type by its name.
        np.ndarray.__array__(*map(plain_of, args), **kwargs)
        kwargs = dict(kwargs)
        args = (*args, kwargs.pop("dtype"))
    if kwargs.get("copy") is None:
        return call(tracer, site, np.asarray, args, {})
    return call(tracer, site, np.array, args, kwargs)


@handles(np.ndarray.tolist)
def _tolist(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    array = args[0]
    if not is_one_of(type(array), BOXES):
        before = len(tracer.texts.drawn)
        items = reflected(tracer, array.tolist())
        return made(tracer, site, np.ndarray.tolist, args, kwargs, items, before)
    if not isinstance(array.value, np.ndarray) or array.value.ndim == 0:
        return call(tracer, site, type(array.value).item, (array,), {})
    return [
        _tolist(tracer, site, (protocols.get_item(tracer, site, array, i),), {})
        for i in range(len(array.value))
    ]


FLOATING = (float, np.half, np.single, np.double, np.longdouble)


@handles(*[kind.as_integer_ratio for kind in FLOATING])
def _as_integer_ratio(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    value = args[0]
    if is_one_of(type(value), BOXES) and is_constant(tracer, operand(value, [])):
        value = protocols.plain_key(value)
    if not is_one_of(type(value), BOXES):
        return type(value).as_integer_ratio(value, *args[1:], **kwargs)
    raise TraceError(
        f"{places.blame(site)}: as_integer_ratio takes a traced number apart into integers, and its gradient would be "
        "lost\nconvert to Fraction or Decimal outside the traced function (docs/errors.md#no-derivative)"
    )


@handles(np.fromiter)
def _fromiter(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("iter", "dtype", "count"), args, strict=False)) | kwargs
    if given.keys() - {"iter", "dtype", "count"} or not given.keys() >= {"iter", "dtype"}:
        return np.fromiter(*map(plain_of, args), **kwargs)  # raises what plain Python raises
    dtype, count = np.dtype(plain_of(given["dtype"])), given.get("count", -1)
    empty = np.fromiter((), dtype)
    if count < 0:  # then it asks how many there will be, as a list does
        source = protocols.iterable(tracer, site, given["iter"])
        iterator = iter(source)
        operator.length_hint(source)
    else:
        iterator = itertools.islice(protocols.iterate_object(tracer, site, given["iter"]), count)
    items = [put_in(tracer, site, x, dtype) for x in iterator]
    if len(items) < count:
        return np.fromiter(
            iter(np.zeros(len(items), dtype)), dtype, count
        )  # raises what plain Python raises
    return call(tracer, site, np.array, (items,), {"dtype": dtype.base}) if items else empty


def put_in(tracer: Tracer, site: Site, value: Any, dtype: np.dtype[Any]) -> Any:
    """An item as ``np.fromiter`` takes it, before it asks for the next: what is none ends it."""
    if dtype.hasobject or dtype.names:
        return value
    if is_object(value) and dtype.kind in "fciu":
        cls: type = {"f": float, "c": complex}.get(dtype.kind, int)
        value = protocols.number(tracer, site, cls, value)
    if dtype.shape and isinstance(value, (list, tuple)):
        value = call(tracer, site, np.array, (value,), {})
    if not is_object(value) and not protocols.is_scalar(value):
        plain = [0] if isinstance(value, (list, tuple)) else plain_of(value)
        np.fromiter((plain,), dtype)  # raises what plain Python raises
    if dtype.shape:
        value = call(tracer, site, np.broadcast_to, (value, dtype.shape), {})
    if isinstance(plain_of(value), np.ndarray):  # which may be written to before the end
        return call(tracer, site, np.array, (value,), {})
    return value


@handles(
    getattr(
        getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_array_converter", Tracer
    )
)
def _array_converter(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return Converter(tracer, site, args)


class Converter:
    """Stands for NumPy's own helper of that job, which is written in C: arguments as arrays, and results as they."""

    @intrinsic
    def __init__(self, tracer: Tracer, site: Site, args: Any) -> None:
        self.args = args
        self.arrays = tuple([call(tracer, site, np.asarray, (x,), {}) for x in args])
        self.scalar_input = tuple(
            [
                not isinstance(plain_of(x), np.ndarray) and np.ndim(plain_of(array)) == 0
                for x, array in zip(args, self.arrays, strict=True)
            ]
        )

    @intrinsic
    def __getitem__(self, i: int) -> Any:
        return self.arrays[i]

    @intrinsic
    def __len__(self) -> int:
        return len(self.arrays)

    @intrinsic
    def as_arrays(self, subok: bool = True, pyscalars: str = "convert_if_no_array") -> Any:
        return self.arrays

    @intrinsic
    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        types = [plain_of(x).dtype for x in self.arrays] + (
            [] if extra_dtype is None else [extra_dtype]
        )
        return np.result_type(*types, *([1.0] if ensure_inexact else []))

    @intrinsic
    def wrap(self, array: Any, to_scalar: bool | None = None) -> Any:
        overrides.must_not_wrap(self.args)
        return array


METHODS: Any = importlib.import_module(f"{overrides.CORE}._methods")


def without_method(fn: Any, body: Any) -> None:
    """Say what one of NumPy's functions does with an object that has no such method: what it does with its array."""

    @handles(body)
    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if not args or not is_object(args[0]):
            return calls.call_function(tracer, site, body, args, kwargs)
        array = call(tracer, site, np.asanyarray, args[:1], {})
        return call(tracer, site, fn, (array, *args[1:]), kwargs)


without_method(np.mean, METHODS._mean)
without_method(np.std, METHODS._std)
without_method(np.var, METHODS._var)


@handles(np.lib.stride_tricks.as_strided)
def _as_strided(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    array = args[0]
    if type(array) is not ArrayBox:
        return calls.call_function(tracer, site, np.lib.stride_tricks.as_strided, args, kwargs)
    options = [lower(tracer, x) for x in args[1:]]
    named = {k: lower(tracer, x) for k, x in kwargs.items()}
    value = np.lib.stride_tricks.as_strided(array.value, *options, **named)
    unrepeatable(tracer, site, "as_strided")
    found = window(array, value, site)
    if found is None:
        raise TraceError(
            f"{places.blame(site)}: as_strided shows memory that lies outside of the traced array\nmake the view of "
            "the whole array"
        )
    return found


_methods: tuple[Any, ...] = (mmap.mmap.close, memoryview.release)
for _method in _methods:

    def _close(tracer: Tracer, site: Site, args: Any, kwargs: Any, method: Any = _method) -> Any:
        """The memory goes, in which arrays of the run may lie: what they held is kept elsewhere."""
        try:
            move_out(tracer.tape, args[0].obj if isinstance(args[0], memoryview) else args[0])
        except ValueError:  # of one that was released before
            pass
        unrepeatable(tracer, site, "shared memory")
        return method(*args, **kwargs)

    handles(_method)(_close)


for _method in (np.ndarray.resize, np.ndarray.setfield, np.ndarray.byteswap):

    def _move_bytes(
        tracer: Tracer, site: Site, args: Any, kwargs: Any, method: Any = _method
    ) -> Any:
        if type(args[0]) is not ArrayBox:
            return opaque(tracer, site, method, args, kwargs)
        raise TraceError(
            f"{places.blame(site)}: {method.__name__} moves the bytes of an array that is being traced\nmake another "
            "array of it, by np.resize or reshape"
        )

    handles(_method)(_move_bytes)


@handles(np.ndarray.setflags)
def _setflags(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    unrepeatable(tracer, site, "setflags")
    plain_of(args[0]).setflags(*args[1:], **kwargs)


@handles(np.nan_to_num)
def _nan_to_num(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """With ``copy=False`` it writes to the array itself."""
    given = dict(zip(("x", "copy", "nan", "posinf", "neginf"), args, strict=False)) | kwargs
    in_place = not plain_of(given.pop("copy", True)) and type(given["x"]) is ArrayBox
    rule = registry.rules[np.nan_to_num]
    x = given.pop("x")
    result = calls.primitive(tracer, site, np.nan_to_num, rule, (x,), given)
    if in_place:
        protocols.set_item(tracer, site, x, Ellipsis, result)
    return x if in_place else result


@handles(np.ndenumerate)
def _ndenumerate(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    array = call(tracer, site, np.asarray, args, {})
    return (
        (index, protocols.get_item(tracer, site, array, index)) for index in np.ndindex(array.shape)
    )


vectorize: Any = np.vectorize


@handles(vectorize._vectorize_call)
def _vectorize_call(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """``np.vectorize`` of a Python function: of numbers, a loop over the elements."""
    given: Any = dict(zip(("self", "func", "args"), args)) | kwargs
    self, func = given["self"], given["func"]
    if self.signature is not None:  # where NumPy has a loop of its own
        loop = vectorize._vectorize_call_with_signature
        return call(tracer, site, loop, (self, func, given["args"]), {})
    if not given["args"]:
        return call(tracer, site, func, (), {})
    items, kinds, drawn = given["args"], self.otypes, []
    if kinds is None:  # which the results for the first elements say
        arrays = [call(tracer, site, np.asarray, (x,), {}) for x in items]
        if any(np.size(plain_of(x)) == 0 for x in arrays):
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        first = [protocols.get_item(tracer, site, x, (0,) * np.ndim(plain_of(x))) for x in arrays]
        result = call(tracer, site, func, tuple(first), {})
        drawn = [result] if self.cache else []
        several = result if isinstance(result, tuple) else (result,)
        kinds = [plain_of(call(tracer, site, np.asarray, (x,), {})).dtype.char for x in several]
    order, axes, shape = steps_over([lower(tracer, x) for x in items])
    results = {}
    for i in order:
        given = tuple([element(tracer, site, x, i) for x in items]) if not drawn else ()
        results[i] = drawn.pop() if drawn else call(tracer, site, func, given, {})
    lying = sorted(order, key=lambda i: [i[axis] for axis in axes])  # as the result lies in memory
    outputs = []
    for k, kind in enumerate(kinds):
        column = [results[i] if len(kinds) == 1 else results[i][k] for i in lying]
        if kind == "O" or any(map(is_container, column)):
            flat = np.empty(len(column), object)
            for i, x in enumerate(column):
                protocols.set_item(tracer, site, flat, i, x)
            flat = flat if kind == "O" else flat.astype(kind)  # raises what plain Python raises
        else:
            flat = call(tracer, site, np.array, (column,), {"dtype": kind})
        output = call(tracer, site, np.reshape, (flat, tuple([shape[i] for i in axes])), {})
        back = tuple([axes.index(i) for i in range(len(axes))])
        if back != tuple(range(len(axes))):
            output = call(tracer, site, np.transpose, (output, back), {})
        outputs.append(output)
    return tuple(outputs) if len(kinds) > 1 else outputs[0]


def steps_over(values: list[Any]) -> tuple[list[Any], list[int], tuple[int, ...]]:
    """How a ufunc goes through arrays of objects: the indices in turn, and the axes and the shape of what it makes."""
    arrays = [np.asanyarray(x, dtype=object) for x in values]
    flags = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    modes = ["multi_index", "refs_ok", "zerosize_ok"]
    walk: Any = np.nditer
    steps = walk([*arrays, None], modes, flags, [object] * len(flags))
    made = steps.operands[-1]
    axes = sorted(range(made.ndim), key=lambda i: -abs(made.strides[i]))
    return [steps.multi_index for _ in steps], axes, made.shape


def element(tracer: Tracer, site: Site, value: Any, index: tuple[int, ...]) -> Any:
    """What stands at an index of a value that is broadcast, as an array of objects would hold it."""
    shape = np.shape(plain_of(value) if is_one_of(type(value), BOXES) else lower(tracer, value))
    own = [i if n > 1 else 0 for i, n in zip(index[len(index) - len(shape) :], shape, strict=True)]
    if isinstance(plain_of(value), np.ndarray) and plain_of(value).dtype != object:
        return call(tracer, site, np.ndarray.item, (value, *own), {})
    for i in own:
        value = protocols.get_item(tracer, site, value, i)
    return value


@handles(np.memmap.flush)
def _flush(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    """What was written to the array so far is written to its file."""
    unrepeatable(tracer, site, "flush()")
    plain_of(args[0]).flush()


@handles(np.ndarray.__array_wrap__)
def _array_wrap(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return args[1]


@handles(np.generic.__copy__, np.generic.__deepcopy__)
def _number_copy(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return args[0]


@handles(np.ndarray.__copy__)
def _array_copy(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return call(tracer, site, np.ndarray.copy, (args[0], "K"), {})


@handles(np.ndarray.__deepcopy__)
def _array_deepcopy(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    array = args[0]
    kind = plain_of(array).dtype
    made = call(tracer, site, np.ndarray.copy, (array, "K"), {})
    if not kind.hasobject:
        return made
    if kind.names is not None:
        raise TraceError(
            f"{places.blame(site)}: an array of records with objects in them is copied with all that they hold\n"
            "copy the objects one by one (copy.deepcopy), or keep them in a list"
        )
    memo = args[1] if len(args) > 1 else {}
    for index in np.ndindex(plain_of(array).shape):
        item = protocols.get_item(tracer, site, array, index)
        copied = call(tracer, site, copy.deepcopy, (item, memo), {})
        protocols.set_item(tracer, site, made, index, copied)
    return made


def is_followed(array: Any) -> bool:
    """Whether an array travels in a box; one of another class has items of its own, by its own methods."""
    return is_one_of(type(array), BOXES) or is_traced_array(array)


@handles(np.ndarray.__setitem__)
def _ndarray_setitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    array = args[0]
    if id(array) in tracer.readable:
        array = seals.as_array(tracer, array, tracer.readable[id(array)]) or array
    if is_followed(array):
        protocols.set_item(tracer, site, array, *args[1:])
    else:
        opaque(tracer, site, np.ndarray.__setitem__, args, kwargs)


@handles(np.ndarray.__getitem__)
def _ndarray_getitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if is_followed(args[0]):
        return protocols.get_item(tracer, site, *args)
    array, key = args[0], protocols.plain_key(args[1])
    return protocols.item_of(tracer, site, array, key, np.ndarray.__getitem__(array, key))


@handles(operator.getitem, takes=(2, 2))
def _operator_getitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return protocols.get_item(tracer, site, *args)


def _of_base(base: Any) -> Any:
    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if len(args) == 2 and python_special(args[0], "__getitem__") is MISSING:
            return protocols.get_item(tracer, site, *args)
        result = structural(tracer, site, base.__getitem__, args, kwargs)
        seal = tracer.readable.get(id(args[0])) if tracer.readable else None
        return result if seal is None else seals.behind(tracer, result, "an item", seal)

    return handler


for _base in (list, dict):
    handles(_base.__getitem__)(_of_base(_base))


@handles(operator.setitem, takes=(3, 3))
def _operator_setitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    protocols.set_item(tracer, site, *args)


@handles(operator.delitem)
def _operator_delitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    protocols.delete_item(tracer, site, *args)


@handles(collections.defaultdict.__missing__)
def _missing(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return protocols.make_missing(tracer, site, *args)


def _operator(op: Any) -> Any:
    def handler(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if kwargs or len(args) != 2:
            return op(*args, **kwargs)  # raises what plain Python raises
        return operators.operate(tracer, site, op, *args)

    return handler


for _op in [*operators.BINARY, *operators.COMPARE, *operators.INPLACE]:
    if _op not in registry.rules or _op in operators.INPLACE:
        handles(_op)(_operator(_op))


@handles(operator.contains, takes=(2, 2))
def _contains(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> bool:
    return protocols.contains(tracer, site, *args)


@handles(operator.delitem, takes=(2, 2))
def _delitem(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    protocols.delete_item(tracer, site, *args)


@handles(object.__ne__, takes=(2, 2))
def _object_ne(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return operators.differs(tracer, site, *args)


@handles(object.__str__, takes=(1, 1))
def _object_str(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return protocols.representation(tracer, site, *args)


@handles(object.__format__, takes=(2, 2))
def _object_format(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    value, spec = args[0], plain_of(bare(args[1]))
    if isinstance(spec, str) and not spec:
        return protocols.text(tracer, site, value)
    return object.__format__(slots.blank(value), spec)


@handles(functools.cmp_to_key)
def _cmp_to_key(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    named = {name: callback(tracer, site, x) for name, x in kwargs.items()}
    return functools.cmp_to_key(*[callback(tracer, site, x) for x in args], **named)


@handles(object.__reduce_ex__, takes=(2, 2))
def _reduce_ex(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """What ``copy`` asks of an object: the state of an outside object must be what the traced function sees."""
    obj = args[0]
    if is_one_of(type(obj), TEXTS):
        return structural(tracer, site, object.__reduce_ex__, (bare(obj), *args[1:]), kwargs)
    if is_one_of(type(obj), BOXES):
        raise TraceError(
            f"{places.blame(site)}: __reduce_ex__ takes a traced number apart, and its gradient would be lost\n"
            "copy the number by copy.copy, or take it apart outside the traced function"
        )
    result = stand_ins.own(escape.watched(object.__reduce_ex__, args, {}, site))
    if (origin := held(tracer, obj)) is not None:
        result = follow(tracer, site, len, result, origin)  # the numbers in it are none of the text
    if id(obj) not in tracer.outside or not isinstance(result, tuple) or len(result) < 3:
        return result
    state = result[2]
    own = dict(own_dict(obj) or {})
    attributes.noted(tracer, obj, None, tuple(frames.attributes(obj)), "names")

    def seen(held: Any, step: str) -> Any:
        """What the run sees of attributes where they stand: no method of the user's is asked for them."""
        if not isinstance(held, dict):
            return held
        found = {}
        for key, value in list(held.items()):  # of one moment: another thread may write to it
            place = attributes.noted(tracer, obj, key, value, step)
            found[key] = attributes.leaf(tracer, obj, key, value, True, place)
        return found

    if isinstance(state, dict) and all(own.get(k, MISSING) is x for k, x in list(state.items())):
        state = seen(state, "in dict")
    elif isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        state = (seen(state[0], "in dict"), seen(state[1], "attribute"))
    return (*result[:2], state, *result[3:])


@handles(weakref.getweakrefs, takes=(1, 1))
def _getweakrefs(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """The weak references to an object, without those by which the run knows it."""
    ours = [known.get(id(args[0])) for known in (tracer.inside, tracer.outside)]
    found = opaque(tracer, site, weakref.getweakrefs, args, kwargs)
    return [x for x in found if not any(x is y for y in ours)]


@handles(weakref.getweakrefcount, takes=(1, 1))
def _getweakrefcount(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return len(_getweakrefs(tracer, site, args, kwargs))


@handles(type.__call__)
def _type_call(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    if not args or not isinstance(args[0], type):
        given = tuple(map(plain_of, args))
        return plainly(type.__call__, given, {})  # raises what plain Python raises
    return calls.instantiate(tracer, site, args[0], args[1:], kwargs)
