"""Callables written in C that have no rule.

Words
-----
structural   moves references about without looking at numbers (``list.append``, ``zip``): run on boxes as it is.
callback     a function that C code will call: its twin is handed over in its place.
opaque       anything else: run on plain values and recorded without a rule.
"""

from __future__ import annotations

import functools
import itertools
import operator
import random
import signal
import sys
import time
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..rules import registry
from ..rules.numpy_random import served
from ..rules.words import with_article
from . import attributes, frames, meaning, memos, operators, rewrite, stand_ins
from .arrays import is_traced_array, window
from .border import STAND_INS, is_constant, is_held, is_iterator, reflected
from .box import BOXES, ArrayBox, Box
from .boxing import enter
from .detours import finalized
from .effects import effect
from .errors import NoRuleError, TraceError
from .escape import callbacks_in, watched
from .frames import MUTABLE
from .handed import PICKLERS, Handed, home_of
from .handlers import handlers
from .holders import gives_nothing, has_files, is_known, is_naming, on_the_system, started
from .kinds import attribute, flags_of, has_dict, has_special, is_one_of, isinstance
from .making import note_making
from .marks import (
    Reading,
    behind,
    failed,
    follow,
    found,
    in_files,
    is_bearer,
    is_text,
    keep,
    made,
    passed,
    refuse,
    run,
    traced,
)
from .missing import IN_A_FUNCTION, no_rule
from .operators import is_integer
from .origins import Origin, joined
from .out import call_with_out, has_out
from .places import blame, module_of
from .protocols import (
    can_be_iterated,
    compared,
    drawn,
    hashable,
    is_array_of_objects,
    is_asked,
    is_number,
    iterable,
    iterate_object,
    note_digits,
    plain_key,
    truth,
)
from .reads import HEAP_TYPE, MISSING, Reads, static
from .record import append, born, finish, has_box, operand, performed, raised, record, see_inside
from .rehearsal import must_be_certain
from .session import Tracer
from .shown import enters, holders, shows
from .slots import is_object, kind_of, plain_of
from .structure import is_container
from .tape import Guard, Op, Site, fn_name, ops_in
from .text import PRIVATE, STRINGS, by_users_codec
from .through import contents, read_cells, write_cells
from .unboxing import lower, refuse_carrier
from .write_back import draw_all
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
    if source is not None and (is_iterator(result) or is_generator(result)):
        tracer.resuming[id(result)] = result  # such as a zip of it
    return result


def moved(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a C callable on boxes; functions that it calls back are traced, and so are user's iterators."""
    known = hashable(fn)
    if isinstance(fn, type) and issubclass(fn, LIMITED):
        args = (*args[:1], *map(limit_of, args[1:]))
        kwargs = {name: limit_of(x) for name, x in kwargs.items()}
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
    if (known and fn in CONSUMERS) or name in TAKERS:
        merging = isinstance(fn, type) and issubclass(fn, dict)
        merging = merging or (name == "update" and isinstance(owner, dict))
        own = owner is None and hasattr(fn, "__objclass__")  # the first is what it works on
        if own and args and issubclass(kind_of(args[0]), dict):
            merging = name == "update"
        leading = LEADING.get(fn, len(args)) if known else len(args)
        last = own + (1 if name == "fromkeys" else leading)
        given = [taken(tracer, site, x, merging) for x in args[own:last]]
        args = (*args[:own], *given, *args[last:])
        if known and fn is itertools.compress:
            args, kwargs = selected(site, args, kwargs)
        if (
            (fn is sorted or fn is set or fn is frozenset or name == "join")
            and args
            and can_be_iterated(args[-1])
            and not (isinstance(args[-1], HASHED) and fn is not sorted and name != "join")
        ):  # whose items are to be seen before they are compared
            given = args[-1]
            args = (*args[:-1], list(given) if fn is sorted or name == "join" else [*iter(given)])
    if name in ("__getitem__", "__delitem__") and args and is_no_index(args[-1]):
        if not isinstance(args[0] if owner is None else owner, dict):
            args = (
                *args[:-1],
                args[-1].value,
            )  # C says what it is, in the place of what it cannot do
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


CREATING = frozenset(("type", "__new__", "__call__"))  # classes, whose module is their maker's
REDUCING = frozenset(("__reduce__", "__reduce_ex__"))
HASHED = (set, frozenset, dict)  # of whose elements C code does not ask the hashes again
TAKERS = frozenset(
    "extend extendleft update join fromkeys __init__ __iadd__ union intersection difference symmetric_difference "
    "intersection_update difference_update symmetric_difference_update".split()
)


def taken(tracer: Tracer, site: Site, value: Any, merging: bool) -> Any:
    """An argument that C code will iterate over, or whose items it will take."""
    if merging and is_object(value) and stand_ins.has_keys(tracer, site, value):
        return stand_ins.mapping(tracer, site, value)
    return iterable(tracer, site, value)


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


def opaque(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run an unknown callable on plain values, and record it: a gradient that flows back to it is an error."""
    given = args
    if keeps_callback(fn):
        see_inside(tracer, args)
        for x in (*args, *kwargs.values()):
            finalized(tracer, attribute(x, "__func__", x))
            finalized(tracer, static(type(x), "__call__"))
    encodes = type(fn).__module__ == "_json"  # the encoder, which makes strings of numbers
    if encodes:
        drawn(tracer, args)
    if tracer.reads is not None:
        seen = (*args, *kwargs.values())
        if is_pure(fn):
            tracer.reads.look_into(seen, site)
            if type(fn) is types.BuiltinFunctionType and (
                fn in operators.BINARY or fn in operators.UNARY
            ):
                tracer.reads.rounded(seen, site)
        elif may_change(fn) and any(map(holds_mutable, seen)):
            tracer.reads.problem(f"{fn_name(fn)} may change a container", site)
    if type(fn) is np.ufunc and fn.signature is None and has_out(fn, args, kwargs):
        return call_with_out(tracer, site, fn, args, kwargs)
    asked = (fn, given, kwargs)
    texts = len(tracer.texts.drawn)
    origin = found(tracer, asked) if texts else None
    if has_files(tracer.texts) and (fn is np.fromfile or type(fn) is types.FunctionType):
        origin = in_files(tracer, args) or origin
    passing: list[Origin] = []  # of text that the function is, or will be, given one by one
    if type(fn) is not types.FunctionType and any(map(is_generator, args)):
        args = tuple([passed(x, passing) if is_generator(x) else x for x in args])
        stream = Origin(None, "", passing)
        origin = stream if origin is None else joined([origin, stream])
    if encodes or not (has_box(args) or has_box(kwargs)):
        if origin is not None:
            args = tuple([told(tracer, site, fn, x, origin) for x in args])
        memo: dict[int, Any] = instead(tracer, fn, args)
        plain_args = [handed_over(tracer, x, memo) for x in args]
        options = {k: handed_over(tracer, x, memo) for k, x in kwargs.items()}
        pure = is_pure(fn)
        start = len(tracer.tape.ops)
        if tracer.cells_known:
            write_cells(tracer)
        began = time.time_ns()
        with Handed(tracer, site, fn, args, kwargs, []) as handed:
            value = again(tracer, site, fn, plain_args, options, pure, asked)
            handed.written((), {})
        refresh(tracer, args, lambda x: enter(tracer, x, "made") if is_traced_array(x) else x)
        if not looks_only(fn):
            renew(tracer)
        result = born(tracer, site, fn, tuple(plain_args), options, value, pure)
        said = len(tracer.tape.ops) > start or (value is None and tracer.reads is not None)
        if tracer.reads is not None and not pure:
            unknown(tracer, site, fn, plain_args, options, value, start)
        if not said and is_random(fn):
            tracer.tape.no_more = (
                f"{untold_draw(fn, value)} ({site}), and no line of the tape says so",
                "draw the numbers outside, and pass them as an argument",
            )
        meanwhile = tracer.texts.drawn[texts:]
        if meanwhile or origin is not None:
            keep(
                tracer,
                fn,
                given,
                kwargs,
                value,
                joined([*meanwhile, *([origin] if origin else ())]),
            )
        if type(value) is memoryview:  # of an object that has arrays of its own
            enters(tracer, value)
        result = handed.tied(result)
        if texts and is_naming(fn):
            read = on_the_system(tracer.texts, fn, given, behind(tracer, site, *given), began)
            return result if read is None else follow(tracer, site, Reading(fn), result, read)
        if texts and type(fn) is types.FunctionType and module_of(fn) == "subprocess":
            started(tracer.texts, behind(tracer, site, *given), began)
        if origin is not None:
            result = follow(tracer, site, fn, result, origin)
        return made(tracer, site, fn, given, kwargs, result, texts)
    arrays: list[ArrayBox] = []
    operands, options = operand(args, arrays), operand(kwargs, arrays)
    if tracer.cells_known:
        write_cells(tracer)
    with Handed(tracer, site, fn, args, kwargs, arrays) as handed:
        before = [] if origin is None else [box.value.tobytes() for box in arrays]
        memo = {}
        plain = {k: handed_over(tracer, x, memo) for k, x in kwargs.items()}
        start = len(tracer.tape.ops)
        plain_args = [handed_over(tracer, x, memo) for x in args]
        sources = [*ops_in((operands, options))]
        held = holders(arrays)
        value = again(tracer, site, fn, plain_args, plain, is_pure(fn), asked, sources)
        kept = held != holders(arrays)
        targets = [plain_of(x) for x in (value, kwargs.get("out"))]
        shown = None if value is None else shown_in(arrays, value, site)
        if shown is not None:
            if handed.writes:
                handed.written(operands, options)
                shown = shown_in(arrays, value, site)
            if tracer.reads is not None:
                tracer.reads.problem(f"{fn_name(fn)} makes a view of an array", site)
            return shown
        for box, was in zip(arrays, before, strict=False):
            if origin is not None and box.value.tobytes() != was:  # by what stands in the text
                refuse(tracer, site, fn, box, origin)
        handed.written(operands, options, targets)
        handed.keep(operands, options, (attribute(fn, "__self__"), *args, *kwargs.values()))

    def changed(x: Any) -> Any:
        return record_opaque(tracer, site, fn, operands, options, x, []) if followed(x) else x

    refresh(tracer, args, changed)
    if not looks_only(fn):
        renew(tracer, changed)
    value = traced(tracer, site, fn, value, origin, texts)
    boxes = [x for x in (*args, *kwargs.values()) if has_box(x)]
    seeding = origin is None and is_seeding(fn, args) and all(map(is_integer, boxes))
    if gives_nothing(fn, value) and not seeding:
        source = behind(tracer, site, *asked)
        if source is not None:
            keep(tracer, fn, given, kwargs, value, source)
    if value is None:
        keeper = attribute(fn, "__self__") if not hasattr(fn, "__objclass__") else args[0]
        if type(fn) is not types.FunctionType and not isinstance(keeper, types.ModuleType | None):
            if all(map(is_integer, boxes)) or is_constant(tracer, operands, options):  # a seed
                draw_all(tracer, boxes)
                if tracer.reads is not None:
                    tracer.reads.problem(f"{fn_name(fn)} changes an object", site)
                return None
            to_file = is_one_of(type(keeper), BOXES) and fn.__name__ in ("tofile", "dump")
            if not to_file and type(keeper).__module__ not in ("_io", "io"):
                raise TraceError(
                    f"{blame(site)}: {type(keeper).__name__}.{fn.__name__} keeps a traced value where the tracer "
                    "cannot follow it\nkeep it in a list or an object"
                )
        if is_naming(fn) or fn is sys.setswitchinterval:
            if not (all(map(is_integer, boxes)) or is_constant(tracer, operands, options)):
                raise TraceError(
                    f"{blame(site)}: {fn_name(fn)} leaves a traced value with the operating system, where the tracer "
                    "cannot follow it\ngive it wengert.stop_gradient of the value"
                )
        effect(tracer, site, fn, args, kwargs)
        return None
    if type(value) is int and is_known(fn):  # a count
        draw_all(tracer, boxes)
        if tracer.reads is not None:
            tracer.reads.problem(f"{fn_name(fn)} counts what it makes of traced values", site)
        return value
    if is_text(value):
        simple = [x for x in boxes if type(x) is Box]
        draw_all(tracer, simple)
        if tracer.reads is not None and not (is_pure(fn) and len(simple) == len(boxes)):
            tracer.reads.problem(f"{fn_name(fn)} makes a string of traced values", site)
        return made(tracer, site, fn, given, kwargs, value, texts)
    if followed(value):
        result = record_opaque(tracer, site, fn, operands, options, value, arrays)
        if tracer.reads is not None and not is_pure(fn):
            for op in tracer.tape.ops[start : start + 1]:
                tracer.reads.impure[op] = None
            if is_object(value):  # whose class may have special methods later
                tracer.reads.problem(
                    f"{fn_name(fn)} makes {with_article(type(value).__name__)} of traced values",
                    site,
                )
        return handed.tied(result)
    if tracer.reads is not None:
        tracer.reads.problem(
            f"{fn_name(fn)} makes {with_article(type(value).__name__)} of traced values", site
        )
    if all(map(is_integer, boxes)) or is_constant(tracer, operands, options):
        draw_all(tracer, boxes)  # a seed, a size: drawn like any other integer
        return shows(tracer, value, arrays) if kept else value
    if isinstance(value, NUMBERLESS):
        return value
    if is_one_of(type(value), BOXES):
        what = "returns what a function has computed that it calls, by ways that cannot be followed"
        raise NoRuleError(no_rule(fn, site, args, kwargs, what))
    made_of = with_article(type(value).__name__)
    raise NoRuleError(
        f"{blame(site)}: {fn_name(fn)} returns {made_of}, into which no gradient can be followed\n{IN_A_FUNCTION}"
    )


NUMBERLESS = (np.dtype, types.ModuleType)  # which keep no number that they were found by


def is_seeding(fn: Any, args: Any) -> bool:
    """Whether a C function seeds a generator of random numbers, which have no derivative by that."""
    keeper = args[0] if hasattr(fn, "__objclass__") and args else attribute(fn, "__self__")
    return isinstance(keeper, GENERATORS)


GENERATORS = (random.Random.__mro__[1], np.random.RandomState, np.random.BitGenerator)


def keeps_callback(fn: Any) -> bool:
    """Whether C code keeps a function that it is given, to call it at any moment."""
    if isinstance(fn, type):
        return issubclass(fn, weakref.ref)
    owner = attribute(fn, "__self__")
    if isinstance(owner, type) and issubclass(owner, weakref.ref):
        return True
    return fn is weakref.proxy or fn is signal_of


signal_of: Any = vars(signal)["_signal"].signal


def told(tracer: Tracer, site: Site, fn: Any, value: Any, origin: Origin) -> Any:
    """An argument for C code that has text: a function is to know that what it is called with is made of it."""
    if not is_one_of(type(value), (types.FunctionType, types.MethodType)) or isinstance(fn, type):
        return value

    def call_back(*args: Any, **kwargs: Any) -> Any:
        args = tuple([follow(tracer, site, fn, x, origin) for x in args])
        return meaning.calls.call(tracer, site, value, args, kwargs)

    return call_back


def handed_over(tracer: Tracer, value: Any, memo: dict[int, Any]) -> Any:
    """An argument for C code; ``memo`` is that of all arguments of the call, among which one may stand twice."""
    if id(value) in memo:
        return memo[id(value)][1]
    if is_container(value) or is_one_of(type(value), PRIVATE) or is_one_of(type(value), STAND_INS):
        return lower(tracer, value, memo)
    return lower(tracer, value, memo) if tracer.texts.drawn and is_bearer(tracer, value) else value


def instead(tracer: Tracer, fn: Any, args: Any) -> dict[int, Any]:
    """What a pickler gets in the place of functions of the run, and of iterators over containers.

    The latter are iterators over what it gets in the place of those.

    A weak reference is made to a container of the run itself.
    """
    memo: dict[int, Any] = {}
    if keeps_callback(fn):
        return {id(x): (x, x) for x in args if is_container(x) and id(x) in tracer.inside}
    if home_of(fn) not in PICKLERS:
        return memo
    todo, seen = [args], set()
    while todo:
        x = todo.pop()
        if is_container(x) and id(x) not in seen:
            seen.add(id(x))
            todo += frames.parts_of(x).values()
        elif is_twin(x):
            as_written(x, memo)
        elif is_one_of(type(x), OVER_CONTAINERS) and id(x) not in memo:
            refuse_carrier(tracer, x)
            make, (held, *rest), *state = x.__reduce__()
            memo[id(x)] = x, make(lower(tracer, held, memo), *rest)
            if state and is_container(held):
                memo[id(x)][1].__setstate__(*state)
    return memo


def as_written(fn: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """What a pickler gets in the place of a function of the run: one with the code that was written."""
    if id(fn) in memo:
        return cast(types.FunctionType, memo[id(fn)][1])
    cells = fn.__closure__ and tuple([types.CellType() for _ in fn.__closure__])
    code = rewrite.original(fn.__code__)
    plain = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, cells)
    memo[id(fn)] = fn, plain
    functools.update_wrapper(plain, fn)
    del plain.__dict__["__wrapped__"]
    plain.__dict__.update(fn.__dict__)
    plain.__kwdefaults__ = fn.__kwdefaults__
    for cell, own in zip(cells or (), fn.__closure__ or (), strict=True):
        held = contents(own)
        if held is not MISSING:
            cell.cell_contents = as_written(held, memo) if is_twin(held) else held
    return plain


def is_twin(value: Any) -> bool:
    return type(value) is types.FunctionType and rewrite.is_twin(value.__code__)


# Iterators that are pickled with the very container that they go over.
OVER_CONTAINERS: frozenset[type] = frozenset(
    (
        type(iter([])),
        type(reversed([])),
        type(iter(())),
        type(iter(deque())),
        type(reversed(deque())),
    )
)


def is_generator(value: Any) -> bool:
    return type(value) is types.GeneratorType


# Functions in C that leave containers as they are, by the first part of their module's name.
LOOKING = frozenset("_json _pickle _struct _io time random _random numpy logging".split())


def may_change(fn: Any) -> bool:
    """Whether a callable may change a container that it is given: one in C of which nothing is known."""
    return not (type(fn) is types.FunctionType or isinstance(fn, type) or looks_only(fn))


def looks_only(fn: Any) -> bool:
    """Whether a callable is known to change no container, nor to call what might."""
    if is_pure(fn):
        return True
    owner = getattr(fn, "__self__", None)
    module = module_of(fn) or type(owner if owner is not None else fn).__module__
    return str(module).partition(".")[0] in LOOKING and attribute(fn, "__name__") != "shuffle"


def holds_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(holds_mutable, value))
    return is_container(value) and type(value) is not frozenset


def shown_in(arrays: list[ArrayBox], value: Any, site: Site) -> ArrayBox | None:
    """The box of an array that lies in the memory of one of those that were given: it shows what these hold."""
    if not is_traced_array(value) or value.base is None:
        return None
    for box in arrays:
        if value is not box.value and np.may_share_memory(value, box.value):
            found = window(box, value, site)
            if found is not None:
                return found
    return None


PURE_MODULES = frozenset(("math", "cmath", "_operator", "re", "copyreg", "fractions"))
PURE_TYPES = (
    frozenset((str, bytes, int, float, complex, bool, tuple, frozenset, range, slice, type(None)))
    | frozenset((np.dtype, np.finfo, np.iinfo, object, type))
    | frozenset(t for t in vars(np).values() if isinstance(t, type) and issubclass(t, np.generic))
)
NUMPY_CORE = tuple(vars(m) for m in (np, np.linalg, np.fft))
# NumPy's functions that look at files, memory or settings, or change something.
NUMPY_IMPURE = frozenset(
    (
        "array2string array_repr array_str copyto fill_diagonal frombuffer fromfile from_dlpack geterr "
        "get_printoptions info load loadtxt may_share_memory place put put_along_axis putmask save savetxt savez "
        "savez_compressed shares_memory show_config show_runtime"
    ).split()
)


def is_pure(fn: Any) -> bool:
    """Whether an unknown callable is known at least to give equal results for equal arguments."""
    if isinstance(fn, np.ufunc) or module_of(fn) in PURE_MODULES:
        return True
    if isinstance(fn, type):
        return is_one_of(fn, PURE_TYPES)
    owner = attribute(fn, "__self__")
    if owner is not None and not isinstance(owner, types.ModuleType):
        if isinstance(owner, type):
            return is_one_of(owner, PURE_TYPES)
        return is_one_of(type(owner), PURE_TYPES)  # whose own hash may run what is the user's
    if attribute(fn, "__objclass__") in PURE_TYPES:
        return True
    name = attribute(fn, "__name__", "")
    return name not in NUMPY_IMPURE and any(space.get(name) is fn for space in NUMPY_CORE)


def is_draw(fn: Any) -> bool:
    """Whether an impure function looks at nothing but a clock or the state of a random generator."""
    owner = attribute(fn, "__self__")
    module = str(module_of(fn) or type(owner).__module__)
    return module.partition(".")[0] in ("time", "random", "_random") or module.startswith(
        "numpy.random"
    )


def is_random(fn: Any) -> bool:
    """Whether a function asks a random generator, or makes one."""
    return is_draw(fn) and home_of(fn) != "time"


def again(
    tracer: Tracer,
    site: Site,
    fn: Any,
    args: Any,
    kwargs: Any,
    pure: bool,
    asked: Any,
    sources: list[Op] | None = None,
) -> Any:
    """Call an unknown callable; a run that is repeated from its start takes what the call gave before."""
    if not pure and tracer.drawn and (known := served(tracer.drawn[0], fn, None)):
        tracer.drawn.pop(0)
        return known[0]
    if tracer.tape.undo is not None and is_draw(fn):
        must_be_certain(tracer, site, fn_name(fn))
    called_back = tracer.called_back
    own = () if type(fn) is types.FunctionType else (fn,)
    handed = (*args, *kwargs.values()) if home_of(fn) not in PICKLERS else ()  # to be called
    callbacks, kept = callbacks_in((*own, *handed))
    how = {"seen": True, "callbacks": callbacks, "kept": kept, "sources": sources}
    try:
        if tracer.reads is not None and isinstance(attribute(fn, "__self__"), np.number):
            tracer.reads.computes(fn, args, site)
        value = performed(tracer, site, fn, args, kwargs, True, **how)
        if (callbacks or kept) and type(fn) is not np.ufunc:
            refuse_gathered(fn, site, value)
        if tracer.shadows and any(map(is_array_of_objects, (attribute(fn, "__self__"), *args))):
            value = reflected(tracer, value)
        return value
    except Exception as error:
        raised(tracer, site, error)
        failed(tracer, site, fn, asked, error)
        raise
    finally:
        if tracer.called_back != called_back and tracer.reads is not None:
            tracer.reads.problem(f"{fn_name(fn)} calls back", site)


def refuse_gathered(fn: Any, site: Site, value: Any) -> None:
    """Raise an error for an array of objects in which C code has gathered traced values that functions gave it.

    It may have looked at their types, and would have made an array of numbers of what plain Python gives it. A ufunc
    always makes an array of objects.
    """
    if is_array_of_objects(value) and any(is_one_of(type(x), BOXES) for x in value.flat):
        raise TraceError(
            f"{blame(site)}: {fn_name(fn)} has put traced values, which a function gave it that it called back, into "
            "an array of objects, where plain Python may give it an array of numbers\n"
            "call the function one by one, and make the array of a list of what it gives"
        )


def unknown(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, start: int
) -> None:
    """Note a call of which nothing is known: it is made again at each call, and a plain result must be the same."""
    reads = tracer.reads
    assert reads is not None
    ops = tracer.tape.ops
    if len(ops) > start and ops[start].fn is fn:
        reads.impure[ops[start]] = None
        return
    if is_plain_value(value):
        if reads.problems:  # no program will repeat it, and its operands need not live on
            return
        made = next((x for x in (*args, *kwargs.values()) if is_own(reads, x)), None)
        if made is not None:  # which must not be kept alive either
            reads.problem(
                f"{fn_name(fn)} is given {with_article(type(made).__name__)} made by the run", site
            )
            return
        try:
            given, options = operand(tuple(args), []), operand(kwargs, [])
        except RecursionError:
            reads.problem(f"{fn_name(fn)} is given what holds itself", site)
            return
        op = append(tracer.tape, fn, given, options, value, site)
        reads.impure[op] = None
        ops.append(Guard(operator.eq, (op,), value, site, tracer.tape))
        return
    reads.problem(f"{fn_name(fn)} makes {with_article(type(value).__name__)}", site)


def is_own(reads: Reads, value: Any) -> bool:
    """Whether a value is an object of the run's own."""
    kind = type(value)
    return (
        bool(flags_of(kind) & HEAP_TYPE)
        and has_dict(value)
        and reads.of(value) is None
        and not callable(value)
    )


def is_plain_value(value: Any) -> bool:
    """Whether a value is immutable and equal only to what it is exchangeable with."""
    if isinstance(value, tuple):
        return all(map(is_plain_value, value))
    return value is None or is_one_of(type(value), (int, bool, str, bytes, float, complex))


def untold_draw(fn: Any, value: Any) -> str:
    """What a function has done to random numbers of which the tape has no op."""
    name = fn_name(fn)
    if is_one_of(type(value), (int, bool)) or isinstance(value, np.integer):
        return f"{name} gives the whole number {value}"
    if value is None:
        return f"{name} sets the state of a generator, or changes something by chance"
    return f"{name} gives {with_article(type(value).__name__)}"


def record_opaque(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, arrays: list[ArrayBox]
) -> Any:
    """Put a value on the tape that an unknown callable made; an error will say where it was called."""
    start = len(tracer.tape.ops)
    result = finish(tracer, site, fn, args, kwargs, value, arrays)
    for op in tracer.tape.ops[start : start + 1]:
        tracer.tape.callers[op] = blame(site)
    return result


def followed(value: Any) -> bool:
    """Whether a result of an unknown callable is made of numbers and arrays.

    A number of a class of the user's with special methods is an object: its operators are methods in Python.
    """
    if hasattr(type(value), "n_sequence_fields"):  # has fields that are no items, as struct_time
        return False
    if isinstance(value, (tuple, list)):
        return all(map(followed, value))
    return (
        value is None
        or (
            isinstance(value, (bool, int, float, complex, np.generic))
            and not has_special(type(value))
        )
        or is_traced_array(value)
    )


def refresh(
    tracer: Tracer, args: Any, made: Callable[[Any], Any], seen: dict[int, Any] | None = None
) -> None:
    """Bring shadows up to date with containers that a C function may have changed.

    ``made(x)`` is what the traced function sees of a value that the C function put there.
    """
    seen = {} if seen is None else seen
    for shadow in args:
        if not is_container(shadow) or id(shadow) in seen:
            continue
        seen[id(shadow)] = shadow
        known = tracer.originals.get(id(shadow))
        elements = list(shadow.values() if isinstance(shadow, dict) else shadow)
        if known is not None and is_one_of(
            type(shadow), (list, dict, deque, defaultdict, OrderedDict)
        ):
            original = known[1].copy()  # as of one moment, whatever other threads do to it
            traced = {id(plain_element(tracer, x)): x for x in elements}
            tuples = [x for x in elements if isinstance(x, (tuple, frozenset))]

            def seen_of(x: Any, here: Any, traced: Any = traced, tuples: Any = tuples) -> Any:
                if stands_for(tracer, here, x):  # first, for others may be the very same
                    return here
                if id(x) in traced:
                    return traced[id(x)]
                moved = next((y for y in tuples if stands_for(tracer, y, x)), None)
                return made(x) if moved is None else moved

            if isinstance(shadow, dict):
                now = {k: seen_of(x, shadow.get(k)) for k, x in original.items()}
                if list(now) != list(shadow) or any(now[k] is not shadow[k] for k in now):
                    shadow.clear()
                    shadow.update(now)
                    changed(tracer, shadow, dict(original))
            else:
                places = itertools.zip_longest(original, elements[: len(original)])
                new = [seen_of(x, here) for x, here in places]
                if len(new) != len(shadow) or any(
                    x is not y for x, y in zip(new, shadow, strict=True)
                ):
                    shadow.clear()
                    shadow.extend(new)
                    changed(tracer, shadow, list(original))
        refresh(tracer, elements, made, seen)


def renew(tracer: Tracer, made: Callable[[Any], Any] | None = None) -> None:
    """Bring shadows up to date with containers that code behind the tracer's back has changed.

    ``made(x)`` is what the traced function sees of a value that was put there; else it comes in from outside.
    """
    made = (lambda x: enter(tracer, x, "made")) if made is None else made
    for shadow, original in list(tracer.originals.values()):
        before = tracer.before.get(id(shadow))
        if before is None or original is shadow or id(original) in tracer.behind:
            continue
        if is_one_of(type(shadow), MUTABLE) and not is_held(original, before):
            if type(shadow) is set:
                shadow.clear()
                shadow.update(original)
                changed(tracer, shadow, set(original))
            else:
                refresh(tracer, [shadow], made)
    for owner, _ in list(tracer.namespaces.values()):
        attributes.namespace(tracer, owner)
    if tracer.cells_known:
        read_cells(tracer)


def changed(tracer: Tracer, shadow: Any, now: Any) -> None:
    """A C function has changed the container behind a shadow."""
    tracer.before[id(shadow)] = now
    tracer.mirrors.pop(id(tracer.originals[id(shadow)][1]), None)
    if tracer.reads is not None:
        tracer.reads.problem(f"C code changes {with_article(type(shadow).__name__)}")


def plain_element(tracer: Tracer, value: Any) -> Any:
    """What the plain copy of a container holds in the place of an element."""
    if is_one_of(type(value), BOXES):
        return value.value
    if is_one_of(type(value), STAND_INS):
        return STAND_INS[type(value)](value)
    known = tracer.originals.get(id(value))
    return value if known is None else known[1]


def stands_for(tracer: Tracer, value: Any, plain: Any) -> bool:
    """Whether a value of the run is, or as a tuple holds, what was lowered to a plain one."""
    if isinstance(value, (tuple, frozenset)) and type(value) is type(plain):
        parts = zip(value, plain, strict=False)
        return len(value) == len(plain) and all(stands_for(tracer, x, y) for x, y in parts)
    return plain_element(tracer, value) is plain
