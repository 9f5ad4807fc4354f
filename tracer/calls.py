"""Calls: what becomes of a call that the traced function makes.

Words
-----
primitive    a callable with a rule: recorded.
twin         the instrumented copy of a Python function: run in its place.
structural   moves references about without looking at numbers (``list.append``, ``zip``): run on boxes as it is.
opaque       anything else: run on plain values and recorded without a rule.
protocol     a Python-level special method, which CPython would run behind our back: run as a twin instead.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import importlib
import inspect
import math
import operator
import sys
import types
import typing
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.permissions import permissions
from ..rules.python_builtins import modular_power
from ..rules.signatures import by_position, has_out
from . import (
    cached,
    debugger,
    filters,
    meaning,
    natives,
    overrides,
    pairs,
    protocols,
    reading,
    rewrite,
    slots,
    through,
    unannounced,
    wrapt_calls,
)
from .active import untraced
from .arrays import ONE_BY_ONE, must_be_apart, must_not_run_into, phantom, write_all
from .arrays import write_item as write_array_item
from .attributes import slot
from .border import is_iterator, leads_to_box, remember
from .box import ArrayBox, Box
from .boxing import enter, enter_from, note_captured
from .closed import must_be_closed
from .detours import code_of, finalized, made_inside, without_detour
from .errors import TraceError
from .escape import classes_in
from .foreign import is_structural, structural
from .handlers import handlers
from .holders import hold, may_hold
from .intrinsic import intrinsics, is_made, is_state
from .kinds import (
    are_quiet,
    attribute,
    flags_of,
    hashes_natively,
    imported,
    is_one_of,
    isinstance,
    keyword_defaults,
    mro_of,
)
from .marks import follow, found, reachable
from .opaque import holds_mutable, opaque, unknown
from .operators import BINARY, COMPARE, INPLACE, UNARY, apply, operate
from .origins import dependent
from .out import call_with_out
from .outline import Outline
from .passing import is_bar, passed_on
from .permissions import destructive
from .places import (
    LIBRARY,
    OURS,
    UNTRACED,
    blame,
    is_library,
    module_of,
    quoted,
    root_of,
    user_frame,
)
from .plain_calls import as_caller, plain_call, plain_name, plainly
from .protocols import get_item, hashable, is_numeric, plain_key
from .reads import HEAP_TYPE, MISSING, Place, Reads, static
from .record import (
    as_known,
    born,
    failed_by_value,
    has_box,
    met,
    operand,
    performed,
    raised,
    record,
    see_inside,
)
from .renewal import declared
from .session import Tracer
from .slots import is_object, is_python, special
from .structure import attributes
from .tails import Tail, is_blind, tail_of
from .tape import Site, primal
from .text import PRIVATE, bare_all, bare_names
from .through import write_cells
from .unboxing import lower

FunctionType = types.FunctionType

ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


ABOUT_STRUCTURE = frozenset(
    "importlib warnings _py_warnings typing inspect enum abc types annotationlib _weakrefset".split()
)

GET = property.__get__
OF_WARNINGS = frozenset(("warnings", "_py_warnings"))
KEEPERS = frozenset(("weakref", "_weakrefset"))  # containers, whose items are those of the run

# What makes classes, or adds to them.
CREATORS: frozenset[Any] = frozenset(
    (
        collections.namedtuple,
        dataclasses.dataclass,
        dataclasses._process_class,  # type: ignore[attr-defined]
        dataclasses.make_dataclass,
        functools.total_ordering,
    )
)

# What has functions run in another thread or process, where no tracer follows them.
ELSEWHERE = frozenset(
    {("threading", "Thread.start"), ("multiprocessing.process", "BaseProcess.start")}
    | {("concurrent.futures.thread", "ThreadPoolExecutor.submit")}
    | {("concurrent.futures.process", "ProcessPoolExecutor.submit")}
    | {
        ("multiprocessing.pool", f"Pool.{x}")
        for x in "apply_async _map_async imap imap_unordered".split()
    }
)

LOGGING = ("logging", "Logger._log")  # which may log by itself
# What makes functions out of text, for an object of its own: run as it is.
AS_IS = frozenset({("scipy.stats._distn_infrastructure", "rv_generic._attach_argparser_methods")})

DISPATCHER: Any = type(np.sum)  # what NumPy's functions of arrays are

IN_PYTHON = (FunctionType, DISPATCHER)

C_STACK = sys.version_info < (3, 12)


def call(tracer: Tracer, site: Site, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask what ``fn`` is, in the order of the design: primitive, Python, class, structural, opaque."""
    if tracer.readable and (found := reading.read_by(tracer, fn, args, kwargs)):
        return reading.call(tracer, site, fn, args, kwargs, found)
    handler = rule = None
    kind = type(fn)
    if kind is FunctionType or hashes_natively(
        kind
    ):  # any other is the user's own, and not ours to run
        try:
            handler = handlers.get(fn)
            rule = registry.rules.get(fn) if handler is not None else registry.lookup(fn)
            if rule is None and handler is None:
                handler = handlers.get(fn)  # that may have come with the rules of its package
            if rule is not None or handler is not None:
                args = meaning.sights.asked(tracer, site, fn, args)
        except (TypeError, ValueError):  # not hashable, so neither has it
            pass
    if tracer.loops is not None:
        args = tracer.loops.call(fn, rule, args)
    if tracer.primitives is not None and tracer.primitives(fn, args, kwargs):
        return record(tracer, site, fn, args, kwargs)
    if handler is not None:
        return handler(tracer, site, args, kwargs)
    if rule is not None and tracer.primitives is None and fn is not max and fn is not min:
        return primitive(tracer, site, fn, rule, args, kwargs)
    if kind is FunctionType:
        return call_function(tracer, site, fn, args, kwargs)
    if type(kind) is type and kind in PRIVATE:
        fn.value(*args)  # raises what plain Python raises
    if is_made(fn):
        return fn.__self__(*args, **kwargs)
    if is_state(fn):
        return fn(*args, **kwargs)
    if kind is types.MethodType:
        return call(tracer, site, fn.__func__, (fn.__self__, *args), kwargs)
    if issubclass(kind, type):
        return construct(tracer, site, fn, args, kwargs)
    if kind is functools.partial:
        return call_partial(tracer, site, fn, args, kwargs)
    if kind is staticmethod:
        return call(tracer, site, fn.__func__, args, kwargs)
    if kind is functools._lru_cache_wrapper:
        return cached.call_cached(tracer, site, fn, args, kwargs)
    body = fn._implementation if kind is DISPATCHER else None
    if type(body) is FunctionType:
        if has_box(args) or has_box(kwargs):
            result = overrides.of_function(tracer, site, fn, args, kwargs)
            if result is not MISSING:
                return result
            return call_function(tracer, site, body, args, kwargs)
        return opaque(tracer, site, fn, args, kwargs)
    if kind is typing.NewType:
        return args[0] if len(args) == 1 and not kwargs else fn(*args, **kwargs)
    if (meant := meaning.sights.behind_proxy(tracer, site, fn)) is not fn:
        return call(tracer, site, meant, args, kwargs)
    if is_object(fn):
        found = special(fn, "__call__")
        if is_python(found):
            if type(found) is FunctionType:
                return call(tracer, site, found, (fn, *args), kwargs)
            return call(tracer, site, slots.bound(tracer, site, found, fn), args, kwargs)
    if flags_of(kind) & HEAP_TYPE and (found := wrapt_calls.in_python(kind)) is not None:
        return call(tracer, site, found, (fn, *args), kwargs)
    if kind is types.WrapperDescriptorType or kind is types.MethodDescriptorType:
        if args and not kwargs and natives.is_followed(fn, args):
            return natives.call(tracer, site, fn, args)
    if kind is types.MethodWrapperType:
        if type(fn.__self__) in (np.ufunc, FunctionType) and fn.__name__ == "__call__":
            return call(tracer, site, fn.__self__, args, kwargs)
        if (
            type(fn.__self__) is types.MemberDescriptorType
            and args
            and fn.__name__ in ("__get__", "__set__")
            and static(type(args[0]), fn.__self__.__name__) is fn.__self__
        ):
            how = handlers[getattr if fn.__name__ == "__get__" else setattr]
            return how(
                tracer,
                site,
                (args[0], fn.__self__.__name__, *args[1:][: fn.__name__ == "__set__"]),
                {},
            )
        plain = getattr(fn.__objclass__, fn.__name__)
        given = (fn.__self__, *args)
        if (found := wrapt_calls.written(plain)) is not None:
            return call(tracer, site, found, given, kwargs)
        if plain is GET and args and args[0] is not None and callable(fn.__self__.fget):
            return call(tracer, site, fn.__self__.fget, args[:1], kwargs)
        if plain in handlers:
            return handlers[plain](tracer, site, given, kwargs)
        if not kwargs and natives.is_followed(plain, given):
            return natives.call(tracer, site, plain, given)
    if kind is types.BuiltinFunctionType and not isinstance(fn.__self__, types.ModuleType | type):
        plain = getattr(type(fn.__self__), fn.__name__, None)
        # Libraries in C have functions of such names that are bound to what is theirs: those are no methods of it.
        of_its_class = type(plain) is not types.WrapperDescriptorType
        if plain is not None and of_its_class and hashable(plain) and plain in handlers:
            return handlers[plain](tracer, site, (fn.__self__, *args), kwargs)
    if kind is operator.methodcaller:
        return call_method(tracer, site, fn, *args)
    if kind is operator.attrgetter:
        return get_attributes(tracer, site, fn, *args)
    if kind is operator.itemgetter:
        keys = fn.__reduce__()[1]
        items = tuple([get_item(tracer, site, args[0], key) for key in keys])
        return items if len(keys) > 1 else items[0]
    if is_structural(fn):
        return structural(tracer, site, fn, args, kwargs)
    return opaque(tracer, site, fn, args, kwargs)


def is_drawn_from(value: Any) -> bool:
    """Whether a value gives its items once: an iterator of Python itself, or a generator."""
    return type(value) is types.GeneratorType or is_iterator(value)


def primitive(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> Any:
    """Record a callable that the registry knows."""
    if tracer.arrays:
        args = as_known(tracer, args)
    is_recorded = not (rule.pure and rule.pure_forward) and pairs.is_recorded(tracer, rule)
    if (
        type(fn) is FunctionType
        and args
        and is_drawn_from(args[0])
        and registry.is_ours(rule.function)
    ):
        # A function that takes an iterator goes through it; its rule is given what that gives.
        args = (call(tracer, site, list, args[:1], {}), *args[1:])
    looks = rule.kind in (registry.CALLER, registry.QUERY)  # at functions, at types and shapes
    if type(fn) is FunctionType and not looks and not is_recorded:
        must_be_closed(tracer, site, fn, args, kwargs)
    in_python = type(fn) in IN_PYTHON or type(fn).__module__ == "uarray"  # as those of scipy.fft
    told = permissions(fn, args, kwargs) if in_python else None
    if told and takes_its_own(fn) and has_box((args, kwargs)):
        # A gradient may ask for what the call has the leave to destroy.
        again = functools.partial(primitive, tracer, site, fn, rule)
        return destructive(tracer, site, fn, args, kwargs, told, again)
    if fn is pow:
        args, kwargs = of_pow(args, kwargs)
    objects = overrides.has_object(args) or (kwargs and overrides.has_object(kwargs.values()))
    if objects:
        result = overrides.of_call(tracer, site, fn, args, kwargs)
        if result is not MISSING:
            return result
        body = fn._implementation if type(fn) is DISPATCHER else fn
        if type(body) is FunctionType and (
            rule.kind == registry.QUERY or overrides.asks(body, args, kwargs)
        ):
            return call_function(tracer, site, body, args, kwargs)
    if fn is pow and len(args) == 3:
        method = protocols.method_of(args[0], "__pow__")
        if method is None or (result := call(tracer, site, method, args, {})) is NotImplemented:
            return call(tracer, site, modular_power, args, kwargs)
        return result
    if has_out(fn, args, kwargs):
        return call_with_out(tracer, site, fn, args, kwargs)
    args, kwargs = by_position(fn, args, kwargs)
    if (fn in BINARY or fn in COMPARE or fn in INPLACE or fn in UNARY) and not all(
        map(is_numeric, args)
    ):
        return apply(tracer, site, fn, args, kwargs)
    if fn in COMPARE:
        protocols.compared(tracer, *args)
    if tracer.texts.drawn and (origin := found(tracer, args, kwargs)) is not None:
        if reads_text(fn, rule.kind) and dependent(tracer.texts, origin) is not None:
            return opaque(tracer, site, fn, args, kwargs)
        args, kwargs = tuple(map(bare_all, args)), bare_all(kwargs)
    if fn in protocols.ROUNDING and args and is_object(args[0]) and not kwargs:
        result = protocols.rounded(tracer, site, fn, *args)
        if result is not MISSING:
            return result
    if fn is round and len(args) == 2:
        args = (args[0], protocols.position(tracer, site, args[1]))
    if type(fn) is types.BuiltinFunctionType and fn.__module__ == "math":
        known = len(args) == (1 if fn is math.prod else 2) and not kwargs.keys() - {"start"}
        if known and fn in protocols.MULTIPLYING and any(map(protocols.is_lazy, args)):
            return multiplied(tracer, site, fn, args, kwargs)
        args = tuple([protocols.of_math(tracer, site, fn, x) for x in args])
        if fn is math.prod and any(map(is_object, args[0])):
            start = kwargs.get("start", 1)
            return functools.reduce(
                lambda a, b: operate(tracer, site, operator.mul, a, b), args[0], start
            )
    elif type(fn) is types.BuiltinFunctionType and fn.__module__ == "cmath":
        args = tuple([protocols.of_cmath(tracer, site, fn, x) for x in args])
    elif objects or (fn in overrides.MAKERS and args and has_parts(args[0])):
        if rule.kind not in (registry.CALLER, registry.MUTATOR) and overrides.takes_arrays(fn):
            args = overrides.as_arguments(tracer, site, fn, args, kwargs)
        if type(fn) is np.ufunc and any(overrides.is_element(tracer, x) for x in args):
            return overrides.by_element(tracer, site, fn, args)
    if rule.kind == registry.CALLER:
        return meaning.closing.called_back(tracer, site, fn, rule, args, kwargs)
    if rule.kind == registry.MUTATOR:
        return mutate(tracer, site, fn, rule, args, kwargs)
    if is_recorded:
        result = pairs.call(tracer, site, fn, rule, args, kwargs)
        if result is not NotImplemented:
            return result
    users = type(fn) is FunctionType and may_do_anything(fn, rule)
    if users and rule.kind == registry.NONDIFF:
        if tracer.reads is not None:
            note_users(tracer.reads, fn, site)
        if any(map(holds_mutable, (*args, *kwargs.values()))):  # which it may write to
            return opaque(tracer, site, fn, args, kwargs)
        if tracer.cells_known:
            write_cells(tracer)
        try:
            with unannounced.Unseen(tracer, site, fn, args, kwargs, declared=True) as unseen:
                return unseen.given(computed(tracer, site, fn, rule, args, kwargs, objects, users))
        finally:
            declared(tracer)
    if not (rule.pure and rule.pure_forward) or hasattr(rule.function, "numeric"):
        with unannounced.Unseen(tracer, site, fn, args, kwargs) as unseen:
            return unseen.given(computed(tracer, site, fn, rule, args, kwargs, objects, users))
    return computed(tracer, site, fn, rule, args, kwargs, objects, users)


def multiplied(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """``math.prod`` and ``math.sumprod`` of what is made while they ask for it: item by item."""
    sides = [protocols.iterate_object(tracer, site, x) for x in args]
    if fn is math.prod:
        total = kwargs.get("start", 1)
        numbers: list[Any] = []
        rest = iter(sides[0])
        if protocols.is_scalar(total):
            numbers, rest = protocols.beginning(rest, protocols.is_scalar)
        if numbers:
            total = call(tracer, site, fn, (numbers,), kwargs)
        return functools.reduce(lambda a, b: operate(tracer, site, operator.mul, a, b), rest, total)
    both, rest = protocols.beginning(
        protocols.in_pairs(*sides), lambda x: all(map(protocols.is_scalar, x))
    )
    total = call(tracer, site, fn, tuple(map(list, zip(*both, strict=True))), {}) if both else 0
    for a, b in rest:
        product = operate(tracer, site, operator.mul, a, b)
        total = operate(tracer, site, operator.add, total, product)
    return total


def computed(
    tracer: Tracer,
    site: Site,
    fn: Any,
    rule: registry.Rule,
    args: Any,
    kwargs: Any,
    objects: bool,
    users: bool,
) -> Any:
    """Carry out a primitive, and record it if it is given traced values."""
    if not (has_box(args) or (kwargs and has_box(kwargs))):
        if objects or any(map(is_foreign, args)):
            return opaque(tracer, site, fn, args, kwargs)
        if tracer.reads is not None and (fn in BINARY or fn in UNARY or fn in OF_NUMBERS):
            tracer.reads.computes(fn, args, site)
        try:
            value = performed(tracer, site, fn, args, kwargs)
        except Exception as error:
            raised(tracer, site, error)
            raise
        start = len(tracer.tape.ops)
        result = born(tracer, site, fn, args, kwargs, value, pure=not users)
        if users and tracer.reads is not None:
            unknown(tracer, site, fn, args, kwargs, value, start)
        return result
    if rule.kind == registry.QUERY:
        note_looks(tracer, fn)
        return fn(*map(as_it_lies, args), **{k: as_it_lies(x) for k, x in kwargs.items()})
    start = len(tracer.tape.ops)
    result = record(tracer, site, fn, args, kwargs, watched=bool(objects) and not users)
    if users and tracer.reads is not None:
        note_users(tracer.reads, fn, site)
    if len(tracer.tape.ops) == start and type(result) is ArrayBox and rule.function is not None:
        # The identity, with a derivative that is another's, or by something else as well.
        others = [x for x in (*args, *kwargs.values()) if type(x) is Box and type(x.value) is float]
        if others or not registry.is_ours(rule.function):
            return pairs.returned(tracer, site, fn, args, kwargs, result)
    if rule.gaps and len(tracer.tape.ops) > start:
        # An error may have to say it later.
        tracer.tape.callers[tracer.tape.ops[start]] = blame(site)
    return result


# What computes with NumPy's numbers besides the operators.
OF_NUMBERS: frozenset[Any] = frozenset((divmod, pow, round))
OF_NUMBERS |= {x for x in vars(np).values() if isinstance(x, type) and issubclass(x, np.number)}


def takes_its_own(fn: Any) -> bool:
    """Whether a function's keyword arguments mean what they do in NumPy and SciPy."""
    if type(fn) is FunctionType and not is_library(code_of(fn).co_filename):
        return False
    return registry.package_of(fn).partition(".")[0] in ("scipy", "numpy", "uarray")


def has_parts(value: Any) -> bool:
    """Whether lists or objects are the items of a list."""
    return is_one_of(type(value), (list, tuple)) and overrides.may_hold_object(value)


def may_do_anything(fn: FunctionType, rule: registry.Rule) -> bool:
    """Whether a function that is not looked into is the user's, and nobody has declared that it only computes."""
    without = rule.kind == registry.NONDIFF and not rule.computes
    undeclared = without or hasattr(rule.function, "numeric")
    return undeclared and not code_of(fn).co_filename.startswith((*LIBRARY, *OURS))


def note_users(reads: Reads, fn: Any, site: Site) -> None:
    """Note that such a function is called: what is read after it may be what it has made of that."""
    reads.problem(f"{fn.__name__}, which is not looked into, may do or read anything", site)


def note_looks(tracer: Tracer, fn: Any) -> None:
    """Note what a query looks at besides types and shapes."""
    if fn is np.isfortran:
        tracer.tape.layout = True
    elif fn is np.shares_memory or fn is np.may_share_memory:
        tracer.tape.identity = tracer.tape.layout = True
        if tracer.reads is not None:
            tracer.reads.problem("the function asks whether arrays share memory")


def as_it_lies(value: Any) -> Any:
    """What a query is given: of arrays these themselves, for it may ask how they lie in memory."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map(as_it_lies, value))
    return value.value if kind is Box or kind is ArrayBox else primal(operand(value, []))


def reads_text(fn: Any, kind: str) -> bool:
    """Whether a primitive may make numbers of text; of a user's own function its rule says what they depend on."""
    if kind in (registry.QUERY, registry.CALLER):
        return False
    return type(fn) is not FunctionType or is_library(code_of(fn).co_filename)


def of_pow(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of ``pow``, the one primitive of Python's own whose operands may be named, by their positions."""

    def given(base: Any, exp: Any, mod: Any = None) -> tuple[Any, ...]:
        return (base, exp) if mod is None else (base, exp, mod)

    try:
        return given(*args, **kwargs), {}
    except TypeError:  # which pow itself will raise
        return args, kwargs


def is_foreign(value: Any) -> bool:
    """Whether a primitive would have to look into an object of the user's own class."""
    kind = type(value)
    if is_one_of(kind, (list, tuple)) or (kind is np.ndarray and value.dtype.kind == "O"):
        parts = value.flat if kind is np.ndarray else value  # an array may have no dimension
        return any(not slots.is_native(x) for x in classes_in(parts, 2))
    return kind.__module__ not in ("builtins", "numpy", "collections")


def mutate(tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any) -> Any:
    """A function that writes into its first argument, by its functional equivalent."""
    target = args[0] if args else kwargs.get(first_name(rule.function))
    if type(target) is not ArrayBox:
        return opaque(tracer, site, fn, args, kwargs)
    if len(args) > 1 and (type(fn) is not FunctionType or overrides.takes_arrays(fn)):
        *others, value = args[1:]
        if fn is not np.copyto:  # which takes nothing of another type
            value = overrides.as_element(tracer, site, value, target.value.dtype)
        others = [overrides.as_operand(tracer, site, x) for x in (*others, value)]
        args = (target, *others)
    judge(tracer, fn, target, args, kwargs, site)
    named = {k: x for k, x in kwargs.items() if k != first_name(rule.function)}
    must_read_first(fn, target, args[1:], named, site)
    failed = None
    try:
        new = call(tracer, site, rule.function, args, kwargs)
    except (TypeError, ValueError, IndexError) as error:
        if type(attribute(fn, "__self__")) is np.ufunc:
            raise
        failed = error
    if failed is not None:  # of what NumPy allows
        raise TraceError(
            f"{blame(site)}: {fn.__name__} of such arguments is not followed: {failed}\n"
            "write it as an expression that makes a new array"
        )
    if type(new) is ArrayBox:
        write_all(target, new.op, site)
    else:
        write_array_item(target, Ellipsis, operand(new, []), site)
    return None


def must_read_first(fn: Any, target: ArrayBox, args: Any, kwargs: Any, site: Site) -> None:
    """Refuse a write that comes before reads of what it changes: the equivalent reads all that it needs first."""
    if fn in ONE_BY_ONE:
        must_be_apart(target.value, primal(operand([*args, *kwargs.values()], [])), site)
    elif fn is np.copyto:
        given = args[0] if args else kwargs.get("src")
        must_not_run_into(target.value, ..., primal(operand(given, [])), site)


@functools.cache
def first_name(fn: Any) -> str:
    """The name of the first parameter of a function."""
    return next(iter(inspect.signature(fn).parameters))


def judge(tracer: Tracer, fn: Any, target: ArrayBox, args: Any, kwargs: Any, site: Site) -> None:
    """Raise what NumPy raises about a write, which is made to nothing. A mutator's equivalent may allow more."""
    if type(attribute(fn, "__self__")) is np.ufunc and target.value.flags.writeable:
        return  # add.at and its like, which are as strict and stand in loops

    def given(x: Any) -> Any:
        return phantom(target.value) if x is target else primal(operand(x, []))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the write itself will warn
        try:
            plainly(fn, [given(x) for x in args], {k: given(x) for k, x in kwargs.items()})
        except Exception as error:  # nothing on the tape says that it has failed
            failed_by_value(tracer, site, fn, error)
            raise


def call_function(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run the twin of a Python function."""
    if fn in intrinsics:
        return fn(*args, **kwargs)
    if (
        args and is_state(args[0]) and args[0].function is fn
    ):  # a partial taken apart: `g.func(*g.args, x)`
        return args[0](*args[1:], **kwargs)
    known = tracer.twins.get(id(fn))
    if known is not None and known[0]() is fn:
        twin = known[1]
    elif rewrite.is_twin(fn.__code__):
        twin = fn
    elif (named := (module_of(fn), fn.__qualname__)) in ELSEWHERE:
        raise elsewhere(site, fn.__qualname__)
    elif named in AS_IS:
        return fn(*args, **kwargs)
    elif is_untraced(fn) or (
        named == LOGGING
        and fn is imported("logging", "Logger")._log
        and logs_alone(tracer, site, fn, args)
    ):
        return call_untraced(tracer, site, fn, args, kwargs)
    else:
        twin = twin_of(tracer, fn, args[0] if args else None)
    if tracer.reads is not None:
        tracer.reads.calls += 1
        if tracer.expanding and rewrite.catches(twin.__code__):
            tracer.reads.problem("what fails may be caught", site)
    try:
        if tracer.outline is not None and tracer.outline.calls:
            result = call_outlined(tracer.outline, site, twin, args, kwargs)
        elif C_STACK and not kwargs and 0 < len(args) < 4:
            result = call_directly(twin, args)
        else:
            result = twin(*args, **kwargs)
    except TypeError as error:
        if not has_begun(error, twin):
            raised(tracer, site, error)  # by the signature, of which nothing else is known
        raise
    if type(result) is types.GeneratorType:
        tracer.generators[id(result)] = weakref.ref(result)
    return result


def call_outlined(outline: Outline, site: Site, twin: Any, args: Any, kwargs: Any) -> Any:
    """Call a function whose lines are to be known on the tape."""
    outline.mark((twin.__name__, site))
    try:
        return twin(*args, **kwargs)
    finally:
        outline.mark(None)


def has_begun(error: BaseException, twin: Any) -> bool:
    """Whether a function was running when an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not twin.__code__:
        trace = trace.tb_next
    return trace is not None


def is_untraced(fn: Any) -> bool:
    """Whether a function is run as it is: but what members of an Enum are asked for is read from them."""
    root = root_of(fn)
    if root == "enum":
        owner, _, name = fn.__qualname__.partition(".")
        if owner in ("property", "Enum", "Flag") or (owner == "EnumType" and name in MEMBERS):
            return False
    if root == "copyreg" and fn.__name__ in MAKERS:
        return False
    if root == "logging":  # whose handlers, filters, formatters and streams may be the user's
        return False
    if root in UNTRACED:
        return f"{root}.{fn.__qualname__}" not in RUNNING
    return fn in CREATORS


def logs_alone(tracer: Tracer, site: Site, fn: Any, args: Any) -> bool:
    """Whether a record is logged without any code of the user's; the record itself tells of the line."""
    if tracer.reads is not None:
        tracer.reads.problem("a record is logged", site)
    return not any(map(is_users, reachable(tracer, fn, args[:1])))


def is_users(value: Any) -> bool:
    """Whether a value is a function of the user's, or has methods that are."""
    if type(value) is not FunctionType:
        members = [y for base in mro_of(type(value)) for y in list(vars(base).values())]
        return any(type(y) is FunctionType and is_users(y) for y in members)
    return not code_of(value).co_filename.startswith((*LIBRARY, *OURS, "<string>", "<frozen "))


# What calls in this thread, of the packages whose functions run as they are, what it was given before.
RUNNING = frozenset(
    f"threading.{kind}.{name}" for kind in ("Thread", "Timer") for name in ("__init__", "run")
) | frozenset(
    f"unittest.TestCase.{name}" for name in ("addCleanup", "doCleanups", "_callCleanup", "__init__")
)
MAKERS = frozenset(("__newobj__", "__newobj_ex__", "_reconstructor"))  # of copies, from parts

# What gives the members of an Enum.
MEMBERS = frozenset(
    f"__{name}__" for name in ("getitem", "iter", "reversed", "members", "len", "contains")
)


def call_untraced(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a Python function as it is."""
    if (
        fn in (collections.namedtuple, dataclasses.make_dataclass)
        and "module" in inspect.signature(fn).parameters
    ):
        kwargs = {"module": user_frame().f_globals.get("__name__"), **kwargs}
    if (module_of(fn), fn.__qualname__) in debugger.ENTRIES:
        return debugger.stop(tracer, site, fn, args, kwargs)
    if root_of(fn) in KEEPERS:
        if tracer.reads is not None:
            for x in args:
                tracer.reads.looked_into(x, site)
        see_inside(tracer, (*args, *kwargs.values()))
        return met(tracer, as_caller(fn, args, kwargs))
    if root_of(fn) in ABOUT_STRUCTURE or fn in CREATORS:
        given = (*args, *kwargs.values())
        names = fn in CREATORS or root_of(fn) == "enum"
        plain = bare_names if names else bare_all
        args = tuple(map(plain, args))
        kwargs = {k: x if k in VALUES else plain(x) for k, x in kwargs.items()}
        if root_of(fn) == "enum" and args and isinstance(args[0], type):
            if static(args[0], "_missing_") in OWN_MISSING:  # which asks of what type a value is
                args = (args[0], *map(plain_key, args[1:]))
        must_be_seen(tracer, site, fn, args)
        tracer.unseen += 1

        def go() -> Any:
            if tracer.reads is None:
                return as_caller(fn, args, kwargs)
            return note_untraced(tracer, site, fn, args, kwargs)

        try:
            if runs_what_it_is_given(fn):
                result = meaning.sights.unseen(tracer, site, fn, given, go)
            else:
                result = go()
        finally:
            tracer.unseen -= 1
            if root_of(fn) in OF_WARNINGS:
                filters.put_first()
        if tracer.originals:
            meaning.renewal.renew(tracer)
        result = met(tracer, read_again(tracer, args[:1], result))
        origin = None if names else found(tracer, *given)
        if origin is None or isinstance(result, types.ModuleType):
            return result
        made = args[0] if fn.__name__ == "__init__" and args else result
        if may_hold(made):
            hold(tracer.texts, made, origin)
        return follow(tracer, site, fn, result, origin)
    for x in args:
        if is_object(x) and isinstance(x, imported("logging", "LogRecord")):
            lower(tracer, x)  # a record, of whose numbers this makes text
    if is_bar(root_of(fn), fn.__name__):
        args = tuple([passed_on(tracer, x) for x in args])
        kwargs = {k: passed_on(tracer, x) for k, x in kwargs.items()}
    return opaque(tracer, site, fn, args, kwargs)


def read_again(tracer: Tracer, owners: Any, value: Any) -> Any:
    """What a method has read off its object, where the run has something else for that: its box, or its shadow."""
    for owner in owners:
        for name, x in attributes(owner).items() if is_object(owner) else ():
            entry = tracer.overlay.get((slot(owner), name))
            if x is value and entry is not None and entry[1] is value:
                return entry[2]
    return value


# What Enums themselves do with a value that no member has.
OWN_MISSING = tuple(vars(cls)["_missing_"] for cls in (enum.Enum, enum.Flag))
VALUES = frozenset(("defaults", "namespace"))  # which makers of classes are given, and are no names

# What looks at nothing, of the packages whose other functions look at more than their arguments, or change something.
BLIND = frozenset(("cast", "overload", "assert_never", "assert_type", "final"))


def runs_what_it_is_given(fn: Any) -> bool:
    """Whether a function about modules, classes or functions is one that calls some, and not of an Enum or the like."""
    root = root_of(fn)
    if root == "inspect":
        return not sees_signatures(fn)
    return root == "types" or (root in ("importlib", "typing") and fn.__qualname__ not in BLIND)


def note_untraced(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a function about modules, classes or functions; what it looks at is noted as far as it is known."""
    reads, root = tracer.reads, root_of(fn)
    assert reads is not None
    if fn is importlib.import_module and len(args) == 1 and not kwargs:
        reads.importing += 1
        module = fn(*args)
        reads.importing -= 1
        reads.note(reads.constant(sys.modules), "global", args[0], module)
        return module
    if root == "inspect":
        if not sees_signatures(fn):
            reads.problem(f"{root}.{fn.__qualname__} is called", site)
        for x in (*args, *kwargs.values()):
            for part in parts_of_signature(x):
                note_signature(tracer, site, part)
    elif root == "enum" and args and isinstance(args[0], type):
        missing = static(args[0], "_missing_")
        if missing is not vars(enum.Enum)["_missing_"]:
            reads.problem(f"{args[0].__name__}._missing_ is the user's", site)
        reads.note(reads.constant(args[0]), "static", "_missing_", missing)
        note_member_by_value(reads, args)
    elif root in ("importlib", "warnings", "_py_warnings", "typing", "annotationlib"):
        if fn.__qualname__ not in BLIND:
            reads.problem(f"{root}.{fn.__qualname__} is called", site)
    result = as_caller(fn, args, kwargs)
    if root == "enum" and isinstance(result, enum.Enum) and reads.of(result) is None:
        place = reads.places[id(result)] = reads.constant(result)  # a member stands for itself
        place.check = "is"
    return result


def note_member_by_value(reads: Reads, args: Any) -> None:
    """Note which member an Enum has for a value: its table may be written to."""
    table = static(args[0], "_value2member_map_")
    if len(args) == 2 and type(table) is dict and are_quiet(args[1:]) and args[1] in table:
        place = reads.note(reads.constant(args[0]), "static", "_value2member_map_", table)
        reads.note(place, "item", args[1], table[args[1]]).check = "is"


SIGNATURES = frozenset(("signature", "getfullargspec", "getcallargs", "unwrap"))


def sees_signatures(fn: Any) -> bool:
    """Whether a function of ``inspect`` looks at no more than signatures, and of what class something is."""
    name: str = fn.__qualname__
    return "." in name or name in SIGNATURES or (name.startswith("is") and name != "isabstract")


def parts_of_signature(value: Any) -> Iterator[Any]:
    """What the signature of a function or a class is made of: the functions that it wraps, or that make its objects."""
    todo, seen = [value], set()
    while todo:
        x = todo.pop()
        x = x.__func__ if isinstance(x, (types.MethodType, classmethod, staticmethod)) else x
        if id(x) in seen:
            continue
        seen.add(id(x))
        yield x
        if type(x) is FunctionType:
            todo += [v for k, v in list(vars(x).items()) if k == "__wrapped__"]
        elif isinstance(x, type):
            todo += [static(type(x), "__call__"), static(x, "__new__"), static(x, "__init__")]


def note_signature(tracer: Tracer, site: Site, fn: Any) -> None:
    """Note all that a signature is made of, as far as it lies in this function or class."""
    reads = tracer.reads
    assert reads is not None
    if isinstance(fn, type):
        reads.note(reads.constant(type(fn)), "static", "__call__", static(type(fn), "__call__"))
        for name in ("__new__", "__init__", "__signature__"):
            reads.note(reads.constant(fn), "static", name, static(fn, name))
    elif type(fn) is not FunctionType:
        reads.looked_into(fn, site)
    elif not made_inside(fn):
        place = function_place(tracer, fn)
        assert place is not None
        own = dict(vars(fn))  # at one moment: another thread may write to it
        reads.note(place, "names", None, tuple(own))
        for name, x in own.items():
            reads.note(place, "attribute", name, x).pinned = True
        reads.note(place, "defaults", None, len(fn.__defaults__ or ()))
        for i, x in enumerate(fn.__defaults__ or ()):
            reads.note(place, "default", i, x).pinned = True
        given = keyword_defaults(fn)
        reads.note(place, "kwdefaults", None, tuple(given))
        for name, x in given.items():
            reads.note(place, "kwdefault", name, x).pinned = True
        noted = reads.note(place, "attribute", "__annotations__", fn.__annotations__)
        for name, x in fn.__annotations__.items():
            reads.note(noted, "item", name, x).pinned = True


def must_be_seen(tracer: Tracer, site: Site, fn: Any, values: tuple[Any, ...]) -> None:
    """An error, if ``inspect`` would see plain values where the run has set traced ones: defaults, attributes."""
    if root_of(fn) != "inspect" or fn is inspect.getattr_static or not tracer.overlay:
        return
    if "." in fn.__qualname__:  # of its own objects
        return
    parts = {slot(x) for value in values for x in parts_of_signature(value)}
    for (owner, name), entry in [*tracer.overlay.items()]:
        if owner in parts and leads_to_box(tracer, entry[2]):
            raise TraceError(
                f"{blame(site)}: inspect.{fn.__name__} would take for a constant what {name} was set to, a traced "
                "value\nread the attribute itself"
            )


def elsewhere(site: Site, name: str) -> TraceError:
    """The error for work that is done where no tracer follows it."""
    return TraceError(
        f"{blame(site)}: {name} has work done in another thread or process, where it cannot be traced\n"
        "call the functions themselves, one after the other (docs/errors.md#other-threads)"
    )


def call_directly(twin: Any, args: tuple[Any, ...]) -> Any:
    """Call a function without unpacking its arguments, for which CPython 3.11 would need a piece of the C stack."""
    match args:
        case (x,):
            return twin(x)
        case (x, y):
            return twin(x, y)
        case (x, y, z):
            return twin(x, y, z)


def twin_of(tracer: Tracer, fn: Any, owner: Any = None) -> Any:
    """The instrumented copy of a Python function, made once in a run."""
    known = tracer.twins.get(id(fn))
    if known is not None and known[0]() is fn:
        return known[1]
    code = code_of(fn)
    if code.co_flags & ASYNC:
        site = Site.of_code(code)
        raise TraceError(
            f"{site.place}: {fn.__name__} is an async function, which cannot be differentiated\n"
            f"{quoted(site)}call the synchronous part of it"
        )
    if rewrite.is_twin(code):  # which is kept nowhere, so that it dies as in plain Python
        return fn if fn.__code__ is code else without_detour(fn)
    try:
        with untraced():  # it may use a class whose special methods make a detour at the moment
            twin_code = rewrite.instrument(code, meaning.hooks)
    except rewrite.UnsupportedCode as error:
        raise TraceError(f"{Site.of_code(code).place}: {error}") from None
    place = function_place(tracer, fn, owner)
    if tracer.reads is not None and id(fn.__globals__) not in tracer.scopes:
        meaning.hooks.note_missing(tracer.reads, fn.__globals__, rewrite.global_names(twin_code))
    cells = fn.__closure__ and tuple(
        shadow_cell(tracer, c, n, i, place, fn)
        for i, (c, n) in enumerate(zip(fn.__closure__, code.co_freevars, strict=True))
    )
    twin = FunctionType(twin_code, fn.__globals__, fn.__name__, None, cells)
    twin.__qualname__ = fn.__qualname__
    twin.__module__ = fn.__module__
    set_by_run = [tracer.overlay.get((id(fn), x)) for x in ("__defaults__", "__kwdefaults__")]
    if set_by_run[0] is not None and set_by_run[0][1] is fn.__defaults__:
        twin.__defaults__ = set_by_run[0][2]
    elif fn.__defaults__:
        read(tracer, place, "defaults", None, len(fn.__defaults__))
        names = code.co_varnames[code.co_argcount - len(fn.__defaults__) :]
        twin.__defaults__ = tuple(
            enter_from(tracer, fn, name, x, name, read(tracer, place, "default", i, x))
            for i, (name, x) in enumerate(zip(names, fn.__defaults__, strict=False))
        )
    if set_by_run[1] is not None and set_by_run[1][1] is fn.__kwdefaults__:
        twin.__kwdefaults__ = set_by_run[1][2]
    elif given := keyword_defaults(fn):
        read(tracer, place, "kwdefaults", None, tuple(given))
        twin.__kwdefaults__ = kwdefaults(tracer, fn, place)
    key, twins = id(fn), tracer.twins
    twins[key] = weakref.ref(fn, lambda _: twins.pop(key, None)), twin
    return twin


def kwdefaults(tracer: Tracer, fn: FunctionType, place: Place | None) -> dict[str, Any]:
    """The defaults of a twin's keywords: the shadow of those of the function, which may be written to as a dict."""
    own: dict[str, Any] = fn.__kwdefaults__ or {}
    known = tracer.shadows.get(id(own))
    if known is not None:
        return known[1]
    shadow = {
        k: enter_from(tracer, fn, k, x, k, read(tracer, place, "kwdefault", k, x))
        for k, x in keyword_defaults(fn).items()
    }
    return remember(
        tracer, own, shadow, f"{fn.__name__}.__kwdefaults__", "outside", keyword_defaults(fn)
    )


def function_place(tracer: Tracer, fn: Any, owner: Any = None) -> Place | None:
    """Where a function was found; one that came by a way of its own stands for itself."""
    if tracer.reads is None:
        return None
    place = tracer.reads.of(fn)
    if place is None:
        note_inherited(tracer.reads, fn, owner)
        place = tracer.reads.constant(fn)
        place.check, place.code = "function", code_of(fn)
        tracer.reads.places[id(fn)] = place
    return place


def note_inherited(reads: Reads, fn: Any, owner: Any) -> None:
    """Note where in the classes of its first argument a method comes from that was found by ``super()``."""
    name: str = fn.__name__
    kind = owner if isinstance(owner, type) else type(owner)
    for cls in mro_of(kind):
        found: Any = vars(cls).get(name)
        if found is fn or attribute(found, "__func__") is fn:
            reads.note(reads.constant(cls), "static", name, found)
            reads.note(reads.constant(kind), "attribute", "__mro__", mro_of(kind)).check = "is"
            return
        if found is None:
            reads.note(reads.constant(cls), "own", name, MISSING)


def read(tracer: Tracer, place: Place | None, step: str, key: Any, value: Any) -> Place | None:
    """Note what is read from a place, if somebody wants to know."""
    if tracer.reads is None or place is None:
        return None
    return tracer.reads.note(place, step, key, value)


def shadow_cell(
    tracer: Tracer, cell: Any, name: str, index: int, owner: Place | None, fn: Any
) -> Any:
    """The cell that a twin of ``fn`` has in the place of a cell of the outside, the ``index``-th of the function's."""
    known = tracer.cells.get(id(cell))
    code = code_of(fn)
    if known is not None:
        read(tracer, owner, "closure", index, cell)  # shared, as it must be at the next call
        if tracer.tails and not is_blind(code, name):
            look_at(tracer, *known, name)
        note_captured(tracer, fn, name, known[1])
        return known[1]
    shadow = types.CellType()
    tracer.cells[id(cell)] = (cell, shadow)
    place = read(tracer, owner, "closure", index, cell)
    try:
        value = cell.cell_contents
    except ValueError:  # an empty cell stays empty
        if place is not None:
            place.check = "empty"
        return shadow
    inner = read(tracer, place, "cell", name, value)
    tail = tail_of(tracer, name, value) if is_blind(code, name) else None
    held = enter_from(tracer, fn, name, value, name, inner) if tail is None else tail
    shadow.cell_contents = tracer.cells_held[id(cell)] = held
    tracer.cells_known[id(cell)] = value
    return shadow


def lone_cell(tracer: Tracer, cell: Any) -> Any:
    """The shadow of a cell outside that is used by itself."""
    if tracer.reads is not None:
        tracer.reads.problem("the cell of a variable is used by itself")
    known = tracer.cells.get(id(cell))
    if known is not None:
        look_at(tracer, *known, "cell_contents")
        return known[1]
    shadow = types.CellType()
    tracer.cells[id(cell)] = (cell, shadow)
    if (value := through.contents(cell)) is not MISSING:
        held = enter(tracer, value, "cell_contents")
        shadow.cell_contents = tracer.cells_held[id(cell)] = held
        tracer.cells_known[id(cell)] = value
    return shadow


def look_at(tracer: Tracer, cell: Any, shadow: Any, name: str) -> None:
    """A cell is shared with a function that does more with its list than to append to it."""
    try:
        tail = shadow.cell_contents
    except ValueError:
        return
    if type(tail) is Tail:
        place = None if tracer.reads is None else tracer.reads.of(tail.original)
        shadow.cell_contents = enter(tracer, tail.original, name, place)
        tracer.cells_held[id(cell)] = shadow.cell_contents


def call_partial(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    return call(tracer, site, *opened(tracer, site, fn, args, kwargs))


def opened(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function that a partial calls, with its arguments."""
    placeholder = getattr(functools, "Placeholder", None)
    rest = iter(args)
    inner, first, keywords = fn.func, fn.args, fn.keywords
    if id(fn) in tracer.outside or tracer.holder_of(fn) is not None:
        inner, first, keywords = entered_parts(tracer, site, fn)
    first = [
        next(rest) if placeholder is not None and x is placeholder else y
        for x, y in zip(fn.args, first, strict=True)
    ]
    return inner, (*first, *rest), {**keywords, **kwargs}


def entered_parts(tracer: Tracer, site: Site, fn: Any) -> tuple[Any, Any, Any]:
    """The function, the arguments and the keywords of a partial that lies outside."""
    reads = tracer.reads
    place = None if reads is None else reads.of(fn)
    changed = tracer.shadows.get(id(fn.keywords))  # by this run, or it has looked at them
    own = None
    if reads is not None and place is not None:
        own = reads.note(place, "attribute", "func", fn.func)
        if changed is None:
            reads.note(place, "keywords", None, tuple(fn.keywords))
        reads.note(place, "arguments", None, len(fn.args))
        own = reads.of(fn.func) or own
    first = [
        enter_from(tracer, fn, i, x, f"args[{i}]", read(tracer, place, "partial argument", i, x))
        for i, x in enumerate(fn.args)
    ]
    if changed is None:
        keywords = {
            k: enter_from(tracer, fn, k, x, k, read(tracer, place, "partial keyword", k, x))
            for k, x in fn.keywords.items()
        }
    else:
        protocols.looked_at(tracer, site, changed[1])
        keywords = changed[1]
    return enter_from(tracer, fn, "func", fn.func, "func", own), first, keywords


def call_method(tracer: Tracer, site: Site, fn: Any, obj: Any) -> Any:
    """``operator.methodcaller``."""
    maker, parts = fn.__reduce__()
    keywords = maker.keywords if isinstance(maker, functools.partial) else {}
    name, *args = (*maker.args, *parts) if keywords else parts
    return call(
        tracer, site, handlers[getattr](tracer, site, (obj, name), {}), tuple(args), keywords
    )


def get_attributes(tracer: Tracer, site: Site, fn: Any, obj: Any) -> Any:
    """``operator.attrgetter``."""
    found = []
    for path in fn.__reduce__()[1]:
        value = obj
        for name in path.split("."):
            value = handlers[getattr](tracer, site, (value, name), {})
        found.append(value)
    return tuple(found) if len(found) > 1 else found[0]


def construct(tracer: Tracer, site: Site, cls: Any, args: Any, kwargs: Any) -> Any:
    """Make an object of a class by the protocol, with the Python parts as twins."""
    meta_call = None if type(cls) is type else static(type(cls), "__call__")
    if tracer.reads is not None:
        if type(cls) is not type:
            reads = tracer.reads
            reads.note(
                reads.constant(type(cls)), "static", "__call__", static(type(cls), "__call__")
            )
    finalizer = static(cls, "__del__")
    if finalizer is not MISSING:
        if tracer.reads is not None:
            tracer.reads.problem(f"{cls.__name__} has a method __del__", site)
        finalized(tracer, finalizer)
    if type(meta_call) is FunctionType:
        return call(tracer, site, meta_call, (cls, *args), kwargs)
    return instantiate(tracer, site, cls, args, kwargs)


def make_exception(tracer: Tracer, site: Site, cls: Any, args: Any) -> BaseException:
    """The instance of a class that is raised or thrown."""
    made = call(tracer, site, cls, args, {})
    if isinstance(made, BaseException):
        return made
    raise TypeError(
        f"calling {cls!r} should have returned an instance of BaseException, not {slots.kind_of(made)!r}"
    )


def made_in_c(cls: type) -> bool:
    """Whether a metaclass in C makes the objects of a class in a way of its own."""
    if type(cls) is type:
        return False
    meta_call = static(type(cls), "__call__")
    return type(meta_call) is types.WrapperDescriptorType and meta_call is not TYPE_CALL


def calls_in_python(cls: type) -> bool:
    """Whether the metaclass of a class has a ``__call__`` in Python, which has been running where this is asked."""
    return type(cls) is not type and type(static(type(cls), "__call__")) is FunctionType


TYPE_CALL = static(type, "__call__")


def instantiate(tracer: Tracer, site: Site, cls: Any, args: Any, kwargs: Any) -> Any:
    """What ``type.__call__`` does: ``__new__``, then ``__init__``."""
    new, init = cls.__new__, cls.__init__
    if tracer.reads is not None and flags_of(cls) & HEAP_TYPE:
        for name in ("__new__", "__init__", "__del__"):
            tracer.reads.note(tracer.reads.constant(cls), "static", name, static(cls, name))
        abstract = static(cls, "__abstractmethods__")
        if abstract is not MISSING:  # of a class that has some no object can be made
            own = tracer.reads.constant(cls)
            tracer.reads.note(own, "static", "__abstractmethods__", abstract).check = "is"
    in_c = type(new) is not FunctionType and type(init) is not FunctionType
    if in_c and new is not object.__new__ and calls_in_python(cls):  # a call would be its once more
        if not issubclass(cls, BaseException) and not is_structural(cls):
            return opaque(tracer, site, type.__call__, (cls, *args), kwargs)
    elif in_c:
        if issubclass(cls, BaseException) or is_structural(cls):
            return structural(tracer, site, cls, args, kwargs)
        boxed = init is not object.__init__ and (has_box(args) or has_box(kwargs))
        if new is object.__new__ and not made_in_c(cls) and not boxed:
            if init is object.__init__:
                return type.__call__(cls, *args, **kwargs)
            made = meaning.sights.unseen(
                *(tracer, site, cls, (*args, *kwargs.values())),
                lambda: type.__call__(cls, *args, **kwargs),
            )
            meaning.sights.note_code(tracer, made)
            return made
        if cls.__module__ == "typing":
            return as_caller(cls, args, kwargs)
        if issubclass(cls, np.generic) and len(args) == 1 and is_object(args[0]):
            if cls in np.sctypeDict.values():
                args = (overrides.as_element(tracer, site, args[0], np.dtype(cls)),)
        if issubclass(cls, np.generic) and has_box(args):
            return record(tracer, site, cls, args, kwargs)
        return opaque(tracer, site, cls, args, kwargs)
    if type(new) is FunctionType:
        instance = call(tracer, site, new, (cls, *args), kwargs)
    elif new is object.__new__:
        instance = new(cls, *args, **kwargs)  # which takes none if there ever was another
    else:
        instance = plain_call(new, (cls, *args), kwargs)
    kind = slots.kind_of(instance)  # of a number of a class of its own as well, which is boxed
    if slots.is_subtype(kind, cls):
        begin = init if kind is cls else static(kind, "__init__")
        if type(begin) is FunctionType:
            result = call(tracer, site, begin, (instance, *args), kwargs)
            if result is not None:
                given = plain_name(slots.kind_of(result))
                raise TypeError(f"__init__() should return None, not '{given}'")
        elif begin is not object.__init__:
            plain_call(begin, (instance, *args), kwargs)
    return instance
