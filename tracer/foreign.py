"""Callables written in C that have no rule, and only move references about.

Words
-----
structural   moves references about without looking at numbers (``list.append``, ``zip``): run on boxes as it is.
callback     a function that C code will call: its twin is handed over in its place.

Whatever else has no rule is opaque (see ``opaque``).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

from ..rules import registry
from . import meaning, memos, operators, stand_ins
from .border import is_iterator
from .box import BOXES, ArrayBox, Box
from .escape import met, watched
from .handlers import handlers
from .kinds import attribute, is_one_of, isinstance
from .making import note_making
from .marks import (
    run,
)
from .opaque import is_generator, opaque
from .places import module_of
from .protocols import (
    can_be_iterated,
    compared,
    hashable,
    is_asked,
    is_number,
    iterable,
    iterate_object,
    iterator_of,
    note_digits,
    plain_key,
    truth,
)
from .reads import MISSING
from .record import has_box, record
from .session import Tracer
from .slots import is_object, kind_of, plain_of, python_special
from .tape import Site, fn_name
from .text import STRINGS, by_users_codec
from .writers import is_home, is_shared, write_container, writes_to

STRUCTURAL_TYPES = (
    (
        list,
        tuple,
        dict,
        set,
        frozenset,
        zip,
        map,
        filter,
        enumerate,
        reversed,
        range,
        slice,
        object,
        type,
        super,
    )
    + (
        deque,
        defaultdict,
        OrderedDict,
        functools.partial,
        types.SimpleNamespace,
        types.MethodType,
        types.CellType,
    )
    + (
        property,
        staticmethod,
        classmethod,
        functools.cached_property,
        types.GeneratorType,
        types.MappingProxyType,
    )
    + (operator.itemgetter, operator.attrgetter, operator.methodcaller, str, bytes)
    + tuple(x for x in vars(itertools).values() if isinstance(x, type))
)

STRUCTURAL_FUNCTIONS = frozenset(
    (
        min,
        max,
        sorted,
        any,
        all,
        len,
        iter,
        next,
        callable,
        repr,
        ascii,
        id,
        functools.reduce,
        chr,
        ord,
        hash,
        format,
    )
    + (operator.length_hint, issubclass, functools.cmp_to_key, operator.concat, operator.iconcat)
    + (operator.countOf, operator.indexOf, operator.delitem)
)

STRUCTURAL_OWNERS = frozenset(("_heapq", "_bisect", "_collections", "itertools", "_functools"))

CALLBACKS: dict[Any, int] = {  # where the function to call back stands
    map: 0, filter: 0, functools.reduce: 0, iter: 0, defaultdict: 0, functools.cmp_to_key: 0,
    itertools.starmap: 0, itertools.takewhile: 0, itertools.dropwhile: 0, itertools.filterfalse: 0,
    itertools.accumulate: 1, itertools.groupby: 1,
}  # fmt: skip


LIMITED = (deque, itertools.permutations)  # whose second argument C code looks at by its class


def limit_of(x: Any) -> Any:
    """An integer of the run as C code takes it."""
    return operator.index(x) if type(x) is Box and type(x.value) is int else x


def is_structural(fn: Any) -> bool:
    """Whether a C callable only moves references about."""
    if isinstance(fn, type):
        return is_one_of(fn, STRUCTURAL_TYPES) or issubclass(
            fn, (*STRUCTURAL_TYPES[:5], deque, BaseException)
        )
    owner = attribute(fn, "__self__")
    if owner is not None and not isinstance(owner, types.ModuleType):
        cls = owner if isinstance(owner, type) else type(owner)
        if type(fn) is types.MethodWrapperType and is_one_of(fn.__objclass__, STRUCTURAL_TYPES):
            return True
        return (
            issubclass(cls, (*STRUCTURAL_TYPES[:5], BaseException))
            or is_one_of(cls, STRUCTURAL_TYPES)
            or is_iterator(owner)
        )
    home = attribute(fn, "__objclass__")
    if home is type and fn.__name__ == "__subclasses__":  # of which there may be more
        return False
    if home is not None:
        return is_one_of(home, STRUCTURAL_TYPES) or issubclass(home, BaseException)
    if is_one_of(type(fn), (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return True
    if not hashable(fn):
        return type(fn).__module__ in STRUCTURAL_OWNERS or type(fn).__module__ == "functools"
    return fn in STRUCTURAL_FUNCTIONS or module_of(fn) in STRUCTURAL_OWNERS


# What compares the items of a container with one another, or with an argument; or hashes them.
COMPARING = frozenset(
    "index count remove discard add get setdefault __contains__ __eq__ __ne__ __getitem__ union intersection "
    "difference symmetric_difference issubset issuperset isdisjoint intersection_update difference_update fromkeys "
    "symmetric_difference_update indexOf countOf eq ne contains pop _count_elements".split()
)
HASHING = frozenset((set, frozenset, dict))
LOOKUPS = frozenset(("get", "pop", "__contains__"))  # of which a key is compared, and not kept


def structural(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a C callable that only moves references about, and may resume an iterator that runs code outside."""
    if not tracer.resuming:
        return moved(tracer, site, fn, args, kwargs)
    given = (attribute(fn, "__self__"), *args, *kwargs.values())
    source = next((x for x in given if id(x) in tracer.resuming), None)
    result = meaning.sights.resumed(tracer, source, lambda: moved(tracer, site, fn, args, kwargs))
    for x in result if fn is itertools.tee else (result,):
        if source is not None and (is_iterator(x) or is_generator(x)):
            tracer.resuming[id(x)] = x  # such as a zip of it
    return result


def moved(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a C callable on boxes; functions that it calls back are traced, and so are user's iterators."""
    known = hashable(fn)

    def hashed_next(x: Any) -> Any:
        compared(tracer, x)
        return met(x)

    if isinstance(fn, type) and issubclass(fn, LIMITED):
        args = (*args[:1], *map(limit_of, args[1:]))
        kwargs = {name: limit_of(x) for name, x in kwargs.items()}
    if known and fn in INSERTING and (found := of_insertion(*args, **kwargs)) is not None:
        return insert(tracer, site, INSERTING[fn], *found)
    call_back = kept_callback if fn is iter or isinstance(fn, type) else callback
    if (fn is bytes or fn is bytearray) and args and type(args[0]) is ArrayBox:
        return opaque(tracer, site, fn, args, kwargs)
    if known and fn is itertools.accumulate:
        functions = (*args[1:], *(x for name, x in kwargs.items() if name == "func"))
        if (
            all(x is None for x in functions) and len(functions) < 2
        ):  # then it would add in C, boxes as well
            args, kwargs = args[:1], {**kwargs, "func": operator.add}
    place = CALLBACKS.get(fn) if known else None
    if place is not None and len(args) > place and not (fn is iter and len(args) == 1):
        if args[place] is None and fn in (filter, itertools.filterfalse):
            args = (stand_ins.truth_of(site), *args[1:])
        args = (*args[:place], call_back(tracer, site, args[place]), *args[place + 1 :])
    if len(args) == 1 and known and fn in (min, max) and comes_one_by_one(args[0]):
        if kwargs.keys() <= {"key", "default"}:
            return extreme(tracer, site, fn, args[0], **kwargs)
    for name in ("key", "func", "predicate"):
        if name in kwargs:
            kwargs = {**kwargs, name: call_back(tracer, site, kwargs[name])}
    if args and known and fn in (min, max):
        items = args if len(args) > 1 else [*iter(iterate_object(tracer, site, args[0]))]
        if "key" not in kwargs and has_box(items) and all(map(is_number, items)):
            if not any(map(is_object, items)):
                return record(tracer, site, fn, (list(items),) if len(args) == 1 else args, {})
        args = args if len(args) > 1 else (items,)
    if known and fn is functools.reduce and len(args) > 1:
        args = (args[0], iterable(tracer, site, args[1]), *args[2:])
    name = attribute(fn, "__name__", "")
    owner = attribute(fn, "__self__")
    own = owner is None and hasattr(fn, "__objclass__")  # the first is what it works on
    merging = isinstance(fn, type) and issubclass(fn, dict)
    if name in MERGING:
        merging = issubclass(kind_of(args[0] if own and args else owner), dict)
    if (known and fn in CONSUMERS) or name in TAKERS or is_filled(fn) or merging:
        leading = LEADING.get(fn, len(args)) if known else len(args)
        last = own + (1 if name == "fromkeys" else leading)
        ordered = merging and issubclass(kept_in(fn, owner, args), OrderedDict)
        # The function, which stands at its place, is not iterated over.
        given = args[own:last]
        if (known and fn is itertools.tee and args[1:2] != (0,)) or name == "join":
            given = tuple([begun(tracer, site, x, name == "join") for x in given])
        given = [
            x if i == place else taken(tracer, site, x, merging, ordered)
            for i, x in enumerate(given)
        ]
        args = (*args[:own], *given, *args[last:])
        if known and fn is itertools.compress:
            args, kwargs = selected(site, args, kwargs)
        if (
            (fn is sorted or fn is set or fn is frozenset or name == "join")
            and args
            and can_be_iterated(args[-1])
            and not (isinstance(args[-1], HASHED) and fn is not sorted and name != "join")
        ):  # whose items are to be seen before they are compared
            values: Any = args[-1]
            if name == "join":  # which asks only the iterator how many they will be
                values = joinable(fn, args)
            elif fn is not sorted and not is_one_of(type(values), (list, tuple)):
                # Each is hashed before the next is asked for.
                return watched(fn, (*args[:-1], map(hashed_next, values)), kwargs, site)
            args = (*args[:-1], list(values))
    if (name in INDEXING or name in SEARCHING) and any(map(is_no_index, args)):
        args = with_plain_indices(name, owner, args)
    if known and fn in OF_COLLECTIONS:  # which C would take a box for: a number makes it raise
        args = tuple([x.value if type(x) is Box else x for x in args])
    if name == "__setitem__" and len(args) > 1 and type(args[-2]) is slice:
        args = (*args[:-1], iterable(tracer, site, args[-1]))
    if name == "from_iterable" and owner is itertools.chain and args:
        args = (chained(tracer, site, args[0]), *args[1:])
    if name == "__setstate__" and type(owner) is itertools.chain:
        args = tuple([with_chained(tracer, site, x) for x in args])
    if tracer.reads is not None:
        tracer.reads.looked_into(owner, site)
        if args and hasattr(fn, "__objclass__"):
            tracer.reads.looked_into(args[0], site)
        if known and (fn in CONSUMERS or fn in LOOKERS):
            for x in args:
                tracer.reads.looked_into(x, site)
                if type(x) is int and fn is not hash:
                    note_digits(tracer, site, x)
        if known and (name in COMPARING or (hashable(fn) and fn in HASHING)):
            if isinstance(owner, dict) and name in LOOKUPS:  # whose values are not
                compared(tracer, *dict.keys(owner), *args)
            else:
                compared(tracer, *([] if owner is None else [owner]), *args)
    asked = args
    if args and isinstance(owner, dict) and is_one_of(type(args[0]), BOXES) and name in LOOKUPS:
        args = (plain_key(args[0]), *args[1:])
    if known and (owner is None or is_home(owner) or is_shared(tracer, owner)):
        target = writes_to(fn, args, kwargs)
        if target is not None and is_shared(tracer, target[1]):
            return write_container(tracer, site, *target)
    if makes_text(fn):
        if tracer.reads is not None and by_users_codec(name, owner is None, args, kwargs):
            tracer.reads.problem(f"{fn_name(fn)} asks a codec of the user's", site)
        return run(tracer, site, fn, args, kwargs)
    result = watched(fn, args, kwargs, site, seen=name in CREATING)
    if name in memos.LOOKUPS:
        result = memos.asked(tracer, site, owner, asked, result)
    if name in CREATING and isinstance(result, type):
        note_making(tracer, site, result)
    if fn is types.MappingProxyType:  # it shows what the run has, wherever it is put
        tracer.views[id(result)] = (result, result)
    return stand_ins.own(result) if name in REDUCING else result


def is_no_index(value: Any) -> bool:
    return type(value) is Box and isinstance(value.value, (float, complex))


def with_plain_indices(name: str, owner: Any, args: Any) -> Any:
    """The arguments of a method, where C code says of what is no index what it is, not what it cannot do."""
    keeper, *given = args if owner is None else (owner, *args)
    if isinstance(keeper, dict):
        return args
    first = name in SEARCHING and not isinstance(keeper, (str, bytes, bytearray))
    last = len(given) - (name == "__setitem__")
    given = [x.value if first <= i < last and is_no_index(x) else x for i, x in enumerate(given)]
    return (keeper, *given) if owner is None else tuple(given)


INDEXING = frozenset(("__getitem__", "__delitem__", "__setitem__"))
SEARCHING = frozenset("find rfind index rindex count startswith endswith".split())  # from, and to


def comes_one_by_one(value: Any) -> bool:
    """Whether what is iterated over may do something between its values, which others are then compared with."""
    return is_iterator(value) or is_generator(value) or is_asked(value)


def extreme(
    tracer: Tracer, site: Site, fn: Any, values: Any, key: Any = None, default: Any = MISSING
) -> Any:
    """``min(values)`` or ``max(values)``, in which all happens in the order in which C code does it.

    Numbers are compared without effects, so that they may all be drawn before.
    """
    given = iter(iterate_object(tracer, site, values))
    found: list[Any] = []
    if key is None:
        for x in given:
            found.append(x)
            if not is_number(x) or is_object(x) or isinstance(plain_of(x), complex):
                break
        else:
            if has_box(found):
                return record(tracer, site, fn, (found,), {})
            return fn(found) if default is MISSING else fn(found, default=default)
    before = operator.lt if fn is min else operator.gt
    best = most = MISSING
    for x in itertools.chain(found, given):
        this = x if key is None else meaning.calls.call(tracer, site, key, (x,), {})
        if best is MISSING or truth(
            tracer, site, operators.operate(tracer, site, before, this, most)
        ):
            best, most = x, this
    if best is MISSING:
        return (
            default if default is not MISSING else fn(())
        )  # which raises what plain Python raises
    return best


def makes_text(fn: Any) -> bool:
    """Whether a structural callable makes text, or reads it: others hand on what they are given."""
    if hashable(fn) and fn in TEXTUAL:
        return True
    owner = attribute(fn, "__self__")
    cls = owner if isinstance(owner, type) else attribute(fn, "__objclass__", type(owner))
    return is_one_of(cls, STRINGS) or attribute(fn, "__name__", "") in (
        "__str__",
        "__repr__",
        "__format__",
    )


TEXTUAL = frozenset((str, bytes, repr, ascii, format, chr, ord, operator.concat, operator.iconcat))


OF_COLLECTIONS = frozenset((operator.concat, operator.iconcat, types.MappingProxyType))
CREATING = frozenset(("type", "__new__", "__call__"))  # classes, whose module is their maker's
REDUCING = frozenset(("__reduce__", "__reduce_ex__"))
HASHED = (set, frozenset, dict)  # of whose elements C code does not ask the hashes again
TAKERS = frozenset(
    "extend extendleft update join fromkeys __init__ __iadd__ union intersection difference symmetric_difference "
    "intersection_update difference_update symmetric_difference_update".split()
)
MERGING = frozenset(("update", "__init__", "__ior__"))  # of a dict: these take mappings


def kept_in(fn: Any, owner: Any, args: Any) -> type:
    """The class of the dict that a call makes or fills."""
    if isinstance(fn, type):
        return fn
    return kind_of(args[0] if owner is None and args else owner)


def taken(tracer: Tracer, site: Site, value: Any, merging: bool, ordered: bool = False) -> Any:
    """An argument that C code will iterate over, or whose items it will take: an ``OrderedDict`` calls for them."""
    if merging and stand_ins.is_mapping(tracer, site, value):
        return stand_ins.mapping(tracer, site, value)
    if ordered and is_object(value) and stand_ins.has_method(tracer, site, value, "items"):
        method = meaning.attributes.load(tracer, site, value, "items")
        value = meaning.calls.call(tracer, site, method, (), {})
    return iterable(tracer, site, value)


def begun(tracer: Tracer, site: Site, value: Any, joins: bool) -> Any:
    """The iterator of an object, where C code asks that for one in its turn."""
    if not is_object(value) or python_special(value, "__iter__") is MISSING:
        return value
    try:
        return iterator_of(tracer, site, value)
    except TypeError:
        if not joins:
            raise
        return 0  # of which `join` says in its own words that it cannot be iterated over


INSERTING = {bisect.insort_left: bisect.bisect_left, bisect.insort_right: bisect.bisect_right}


def of_insertion(*args: Any, **kwargs: Any) -> Any:
    """The container, the item, the bounds and the key of an insertion into what has an ``insert`` in Python."""

    def bound(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
        return (a, x, lo, hi, key) if python_special(a, "insert") is not MISSING else None

    try:
        return bound(*args, **kwargs)
    except TypeError:  # CPython says its own word
        return None


def insert(tracer: Tracer, site: Site, place_of: Any, a: Any, x: Any, *bounds: Any) -> None:
    """``bisect.insort`` into what has an ``insert`` of its own, which it calls."""
    lo, hi, key = bounds
    call = meaning.calls.call
    wanted = x if key is None else call(tracer, site, key, (x,), {})
    options = {} if key is None else {"key": key}
    place = call(tracer, site, place_of, (a, wanted, lo, hi), options)
    call(tracer, site, meaning.attributes.load(tracer, site, a, "insert"), (place, x), {})


def is_filled(fn: Any) -> bool:
    """Whether it is a class whose objects are filled with the items of what it is called with."""
    return isinstance(fn, type) and issubclass(fn, FILLED)


FILLED = (list, tuple, dict, set, frozenset, deque)


def chained(tracer: Tracer, site: Site, iterables: Any) -> Any:
    """The iterables that a ``chain`` will draw one by one, each as C code is to iterate over it."""
    if not can_be_iterated(iterables):
        return iterables
    return map(functools.partial(iterable, tracer, site), iterable(tracer, site, iterables))


def with_chained(tracer: Tracer, site: Site, state: Any) -> Any:
    """The state of a ``chain``: the iterator that it draws iterables from, and the one that it is in."""
    if type(state) is not tuple or not state:
        return state
    rest = [iterable(tracer, site, x) if is_iterator(x) else x for x in state[1:]]
    return (chained(tracer, site, state[0]), *rest)


def joinable(join: Any, args: Any) -> Any:
    """An iterator over what ``join`` is given; whatever type it is that this wants, CPython says its own word."""
    try:
        return iter(args[-1])
    except TypeError:
        pass
    return join(*map(plain_of, args[:-1]), 0)


LOOKERS = frozenset(
    (str, repr, ascii, format, hash, len, next, iter, min, max, sorted, bytes, slice)
)


CONSUMERS = frozenset(
    (
        sorted,
        any,
        all,
        list,
        tuple,
        set,
        frozenset,
        zip,
        enumerate,
        dict,
        deque,
        OrderedDict,
        map,
        filter,
    )
    + (
        functools.reduce,
        itertools.tee,
        *[x for x in vars(itertools).values() if isinstance(x, type)],
    )
)


# Of those that iterate over their first arguments only: how many these are.
LEADING = {
    enumerate: 1, deque: 1, itertools.islice: 1, itertools.accumulate: 1, itertools.groupby: 1, itertools.tee: 1,
    itertools.cycle: 1, itertools.combinations: 1, itertools.combinations_with_replacement: 1,
    itertools.permutations: 1, itertools.repeat: 0, itertools.count: 0, functools.reduce: 2,
}  # fmt: skip
if sys.version_info >= (3, 12):
    LEADING[itertools.batched] = 1


def selected(site: Site, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of ``compress``, which asks for the truth of its selectors as it comes to them."""
    asked = stand_ins.truth_of(site)
    if len(args) > 1 and can_be_iterated(args[1]):
        args = (args[0], map(asked, args[1]), *args[2:])
    elif can_be_iterated(kwargs.get("selectors")):
        kwargs = {**kwargs, "selectors": map(asked, kwargs["selectors"])}
    return args, kwargs


def callback(tracer: Tracer, site: Site, fn: Any) -> Any:
    """A stand-in for a function that C code will call back."""
    if type(fn) is types.FunctionType and registry.lookup(fn) is None and fn not in handlers:
        return meaning.calls.twin_of(tracer, fn)
    if callable(fn) and not is_one_of(type(fn), BOXES):
        return lambda *args, **kwargs: meaning.calls.call(tracer, site, fn, args, kwargs)
    return plain_of(fn)


def kept_callback(tracer: Tracer, site: Site, fn: Any) -> Any:
    """A stand-in for a function that an iterator or a defaultdict keeps, and shows to whoever asks for it."""
    if is_one_of(type(fn), BOXES):  # a number, which C code will refuse
        return plain_of(fn)
    twin = callback(tracer, site, fn) if type(fn) is types.FunctionType else None
    return stand_ins.kept(site, fn, twin if type(twin) is types.FunctionType else None)
