"""Stand-ins: what CPython is handed in the place of an object, so that it runs the twins of its special methods.

CPython goes through its own protocol on a stand-in: what it asks, in which order, and what it does not take for an
answer. A stand-in has those special methods that the object's class has in Python.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from . import meaning, seals, slots
from .active import active
from .border import STAND_INS
from .box import BOXES, apart
from .depth import room
from .intrinsic import intrinsic
from .kinds import has, is_one_of, isinstance
from .loops import Items
from .plain_calls import WRAPPERS, plain_call
from .reads import MISSING
from .session import Tracer
from .slots import invoke, is_python, kind_of, plain_of, python_special, special
from .tape import Site


class StandIn:
    """Stands for ``value``, an object that the user's program has at ``site``."""

    __slots__ = ("site", "tracer", "value")

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:  # any other has the name of the class that it stands for
            apart(cls)
        WRAPPERS.add(cls)

    def __init__(self, tracer: Tracer, site: Site, value: Any) -> None:
        self.tracer, self.site, self.value = tracer, site, value

    def ask(self, name: str, *args: Any) -> Any:
        """Call a special method of the object."""
        found = special(self.value, name)
        if active.tracer is not self.tracer:  # it has outlived the run
            return found(self.value, *args)
        return invoke(self.tracer, self.site, found, self.value, *args)

    def size(self, name: str) -> Any:
        """A length, or a guess of it: a number that C code looks at, as no length is negative."""
        size = self.ask(name)
        if active.tracer is not self.tracer:
            return plain_of(size)
        return meaning.protocols.plain_key(size)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return operator.getitem, ([self.value], 0)


class ObjectIterator(StandIn):
    """An iterator of a Python class."""

    __slots__ = ()

    @intrinsic
    def __iter__(self) -> ObjectIterator:
        return self

    @intrinsic
    def __next__(self) -> Any:
        if special(self.value, "__next__") is MISSING:  # it was there when the iteration began
            raise TypeError(f"'{kind_of(self.value).__name__}' object is not iterable")
        return self.ask("__next__")

    def __getattr__(self, name: str) -> Any:
        """``yield from`` calls what an iterator has of ``send``, ``throw`` and ``close``."""
        if name not in DELEGATED:
            raise AttributeError(name)
        method = meaning.attributes.load(self.tracer, self.site, self.value, name)
        return lambda *args: meaning.calls.call(self.tracer, self.site, method, args, {})


DELEGATED = frozenset(("send", "throw", "close"))


class Resumed(StandIn):
    """An iterator that runs code outside as it is: what that changes, the run sees changed."""

    __slots__ = ("items",)

    def __init__(self, tracer: Tracer, site: Site, value: Any, items: Any) -> None:
        super().__init__(tracer, site, value)
        self.items = iter(items)

    @intrinsic
    def __iter__(self) -> Resumed:
        return self

    @intrinsic
    def __next__(self) -> Any:
        return self.resume(lambda: next(self.items))

    def __getattr__(self, name: str) -> Any:
        if name not in DELEGATED:
            raise AttributeError(name)
        method = getattr(self.value if name == "close" else self.items, name)
        return lambda *args: self.resume(lambda: method(*args))

    def resume(self, step: Any) -> Any:
        if active.tracer is not self.tracer:  # it has outlived the run
            return step()
        return meaning.sights.resumed(self.tracer, self.value, step)


class MeasuredIterator(ObjectIterator):
    """One that tells how many items are left."""

    __slots__ = ()

    @intrinsic
    def __length_hint__(self) -> Any:
        return self.size("__length_hint__")


class TakenApart(ObjectIterator):
    """One of ``a, *b = iterator``: CPython iterates over it to find ``a``, and then over what is left of it."""

    __slots__ = ("begun",)

    @intrinsic
    def __iter__(self) -> Any:
        if not hasattr(self, "begun"):
            self.begun = True
            return self
        rest = meaning.protocols.iterator_of(self.tracer, self.site, self.value)
        return iterator(self.tracer, self.site, rest)


class MeasuredTakenApart(TakenApart):
    """One that tells how many items are left: it is asked before the list of them is made."""

    __slots__ = ()

    @intrinsic
    def __length_hint__(self) -> Any:
        return self.size("__length_hint__")


def iterator(tracer: Tracer, site: Site, value: Any) -> Any:
    """An iterator that runs twins, in the place of an iterator."""
    if not is_python(special(value, "__next__")):
        return value
    kind = ObjectIterator
    if python_special(value, "__length_hint__") is not MISSING:
        kind = MeasuredIterator
    return kind(tracer, site, value)


class Comparing(StandIn):
    """An iterator in C that compares, between its elements, what may have special methods in Python."""

    __slots__ = ()

    @intrinsic
    def __iter__(self) -> Comparing:
        return self

    @intrinsic
    def __next__(self) -> Any:
        if active.tracer is not self.tracer:
            return next(self.value)
        return meaning.escape.watched(next, (self.value,), {}, self.site)


class Iterable(StandIn):
    """What can be iterated over."""

    __slots__ = ()

    @intrinsic
    def __iter__(self) -> Any:
        return iter(meaning.protocols.iterate_object(self.tracer, self.site, self.value))


class Sized(Iterable):
    """What can be iterated over and has a length."""

    __slots__ = ()

    @intrinsic
    def __len__(self) -> Any:
        return self.size("__len__")


class Measured(Iterable):
    """What can be iterated over and guesses its length."""

    __slots__ = ()

    @intrinsic
    def __length_hint__(self) -> Any:
        return self.size("__length_hint__")


def iterable(tracer: Tracer, site: Site, value: Any) -> Any:
    if python_special(value, "__len__") is not MISSING:
        return Sized(tracer, site, value)
    kind = Iterable if python_special(value, "__length_hint__") is MISSING else Measured
    return kind(tracer, site, value)


class Sequence(StandIn):
    """What has items by number."""

    __slots__ = ()

    @intrinsic
    def __getitem__(self, index: int) -> Any:
        return self.ask("__getitem__", index)


class SizedSequence(Sequence):
    """What has items by number, and a length."""

    __slots__ = ()

    @intrinsic
    def __len__(self) -> Any:
        return self.size("__len__")


def sequence(tracer: Tracer, site: Site, value: Any) -> Any:
    """What ``iter`` and ``reversed`` go through, item by item."""
    kind = Sequence if special(value, "__len__") is MISSING else SizedSequence
    return kind(tracer, site, value)


class Mapping(StandIn):
    """What ``dict`` and ``**`` take the items of."""

    __slots__ = ()

    @property
    def keys(self) -> Any:
        """The method, where the object has one: CPython asks whether it has."""
        method = meaning.attributes.load(self.tracer, self.site, self.value, "keys")
        return lambda: self.asked(method)

    def asked(self, method: Any) -> Any:
        keys = meaning.calls.call(self.tracer, self.site, method, (), {})
        return meaning.protocols.iterate_object(self.tracer, self.site, keys)

    @intrinsic
    def __getitem__(self, key: Any) -> Any:
        return meaning.protocols.get_item(self.tracer, self.site, self.value, key)


def is_asked(tracer: Tracer, value: Any) -> bool:
    """Whether what a value has is to be asked for here: by methods in Python, or since it is text, or sealed."""
    if slots.is_object(value):
        return True
    marked = id(value) in tracer.readable or id(value) in tracer.texts.holders
    return marked and has(type(value), "keys")


def is_mapping(tracer: Tracer, site: Site, value: Any) -> bool:
    """Whether ``dict`` takes a value for a mapping, not for an iterable of pairs, and it is to be asked here."""
    return is_asked(tracer, value) and has_method(tracer, site, value, "keys")


def has_method(tracer: Tracer, site: Site, value: Any, name: str) -> bool:
    """Whether a value has a method such as ``keys``, by which ``dict`` tells a mapping from an iterable of pairs."""
    try:
        meaning.attributes.load(tracer, site, value, name)
    except AttributeError:
        return False
    return True


def mapping(tracer: Tracer, site: Site, value: Any) -> Any:
    """What to take the items of in the place of a value."""
    if not is_asked(tracer, value):
        return plain_of(value)
    if isinstance(value, dict) and not is_python(special(value, "__iter__")):
        seal = tracer.readable.get(id(value)) if tracer.readable else None
        if seal is None:  # CPython looks into the dict
            if tracer.reads is not None:
                tracer.reads.looked_into(value, site)
            return value
        return {k: seals.behind(tracer, x, "an item", seal) for k, x in dict.items(value)}
    kind = kind_of(value)
    names = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (Mapping,), names)(tracer, site, value)


class Formatted(StandIn):
    """A value in an f-string: its text is made as a call in traced code makes it; ``show`` is ``repr`` or ``ascii``."""

    __slots__ = ("show",)

    def __init__(self, tracer: Tracer, site: Site, value: Any, show: Any) -> None:
        super().__init__(tracer, site, value)
        self.show = show

    def text(self, fn: Any, *args: Any) -> Any:
        return meaning.calls.call(self.tracer, self.site, fn, (self.value, *args), {})

    @intrinsic
    def __format__(self, spec: str) -> Any:
        return self.text(format, spec)

    @intrinsic
    def __str__(self) -> Any:
        return self.text(str)

    @intrinsic
    def __repr__(self) -> Any:
        return self.text(self.show)


class Context(StandIn):
    """A context manager."""

    __slots__ = ()

    @intrinsic
    def __enter__(self) -> Any:
        return self.ask("__enter__")

    @intrinsic
    def __exit__(self, *error: Any) -> Any:
        return meaning.protocols.plain_key(self.ask("__exit__", *error))


class Callback(functools.partial):  # type: ignore[type-arg]
    """A function that C code keeps, to call it back. Whoever asks for it gets the user's own, ``value``."""

    value: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        return operator.getitem, ([self.value], 0)

    def __repr__(self) -> str:
        return repr(self.value)


@intrinsic
def call_back(site: Site, fn: Any, *args: Any, **kwargs: Any) -> Any:
    if active.tracer is None:  # it has outlived the run
        return plain_call(fn, args, kwargs)
    return meaning.calls.call(active.tracer, site, fn, args, kwargs)


def kept(site: Site, fn: Any, twin: Any) -> Any:
    """What C code keeps in the place of a function, which has a twin if it is one of Python."""
    if not callable(fn) or is_one_of(type(fn), BOXES) or type(fn) is Callback:
        return fn
    made = Callback(call_back, site, fn) if twin is None else Callback(twin)
    made.value = fn
    return made


@intrinsic
def put_back(site: Site, method: Any, *args: Any, **kwargs: Any) -> Any:
    tracer = active.tracer
    if tracer is None:
        return plain_call(method, args, kwargs)
    args = tuple([meaning.escape.known_as(tracer, x) for x in args])
    result = meaning.calls.call(tracer, site, method, args, kwargs)
    return meaning.escape.back_to_c(tracer, method, result, False)


def kept_method(site: Site, method: Any) -> Callback:
    """What unknown C code is given in the place of a container's method: what it puts there is seen."""
    made = Callback(put_back, site, method)
    made.value = method
    return made


def called_back(fn: Any) -> Any:
    """What such a function calls, where it is called by what is recorded."""
    if type(fn) is not Callback:
        return fn
    return fn.args[1] if fn.func is call_back or fn.func is put_back else fn.value


def truth_of(site: Site) -> Callback:
    """What stands for None where C code keeps that to ask for the truth of values."""
    made = Callback(call_back, site, bool)
    made.value = None
    return made


def own(value: Any) -> Any:
    """A value as the user's program has it: with its own functions, in tuples as well."""
    if type(value) is tuple:
        with room:
            parts = tuple([own(x) for x in value])
        return value if all(map(operator.is_, parts, value)) else parts
    kind = type(value)
    return STAND_INS[kind](value) if type(kind) is type and kind in STAND_INS else value


STAND_INS |= dict.fromkeys(
    (
        Comparing,
        ObjectIterator,
        MeasuredIterator,
        TakenApart,
        MeasuredTakenApart,
        Iterable,
        Sized,
        Measured,
        Sequence,
        SizedSequence,
        Context,
        Callback,
    ),
    operator.attrgetter("value"),
)
STAND_INS[Items] = operator.attrgetter("shown")
