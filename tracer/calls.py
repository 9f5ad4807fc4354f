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

import functools
import inspect
import itertools
import math
import operator
import os
import sys
import sysconfig
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..rules import registry
from . import rewrite
from .arrays import commit, is_traced_array, prepare_write, save, write_all, write_item as write_array_item
from .border import ATOMS, External, draw_all, enter, is_iterator, lower
from .box import BOXES, ArrayBox, Box
from .errors import NoRuleError, TraceError
from .escape import OURS, watched
from .record import append, born, decide, effect, finish, has_box, operand, record
from .session import Tracer, active
from .structure import is_container
from .tape import NOWHERE, Site, primal

FunctionType = types.FunctionType
ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE

# Their own business, with no numbers in it: their Python functions are run as they are.
UNTRACED = frozenset(
    "importlib logging warnings typing inspect enum abc threading re ast tokenize linecache traceback types "
    "weakref annotationlib io codecs locale encodings pickle copyreg _weakrefset pprint unittest pytest _pytest "
    "subprocess socket tqdm matplotlib".split()
)
ABOUT_STRUCTURE = frozenset("importlib warnings typing inspect enum abc types weakref annotationlib _weakrefset".split())
CREATORS = frozenset(("namedtuple", "dataclass", "_process_class", "total_ordering", "make_dataclass"))

special: dict[Any, Callable[..., Any]] = {}
intrinsics: set[Any] = set()


def handles(*fns: Any) -> Callable[[Any], Any]:
    """Say how a call of each of these functions is traced: ``handler(tracer, site, args, kwargs)``."""

    def register(handler: Any) -> Any:
        for fn in fns:
            special[fn] = handler
        return handler

    return register


def intrinsic(fn: Any) -> Any:
    """Mark a function of Wengert's own that deals with boxes itself."""
    intrinsics.add(fn)
    return fn


# ------------------------------------------------------------------------------------------- the question


def call(tracer: Tracer, site: Site, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask what ``fn`` is, in the order of the design: primitive, Python, class, structural, opaque."""
    try:
        handler = special.get(fn)
        rule = registry.rules.get(fn)
    except TypeError:  # not hashable, so neither has it
        handler = rule = None
    if tracer.primitives is not None and tracer.primitives(fn):
        return record(tracer, site, fn, args, kwargs)
    if handler is not None:
        return handler(tracer, site, args, kwargs)
    if rule is not None and tracer.primitives is None and fn is not max and fn is not min:
        return primitive(tracer, site, fn, rule, args, kwargs)
    kind = type(fn)
    if kind is FunctionType:
        return call_function(tracer, site, fn, args, kwargs)
    if kind is types.MethodType:
        return call(tracer, site, fn.__func__, (fn.__self__, *args), kwargs)
    if isinstance(fn, type):
        return construct(tracer, site, fn, args, kwargs)
    if kind is functools.partial:
        return call_partial(tracer, site, fn, args, kwargs)
    if kind is functools._lru_cache_wrapper:
        return call_cached(tracer, site, fn, args, kwargs)
    body = getattr(fn, "_implementation", None)
    if type(body) is FunctionType and kind.__module__.startswith("numpy"):
        if has_box(args) or has_box(kwargs):
            return call_function(tracer, site, body, args, kwargs)
        return opaque(tracer, site, fn, args, kwargs)
    method = getattr(kind, "__call__", None)
    if type(method) is FunctionType:
        return call(tracer, site, method, (fn, *args), kwargs)
    if kind is types.MethodWrapperType:
        if type(fn.__self__) is types.MemberDescriptorType and args and fn.__name__ in ("__get__", "__set__"):
            how = special[getattr if fn.__name__ == "__get__" else setattr]
            return how(tracer, site, (args[0], fn.__self__.__name__, *args[1:][: fn.__name__ == "__set__"]), {})
        plain = getattr(fn.__objclass__, fn.__name__)
        if plain in special:
            return special[plain](tracer, site, (fn.__self__, *args), kwargs)
    if kind is operator.methodcaller:
        return call_method(tracer, site, fn, *args)
    if kind is operator.attrgetter:
        return get_attributes(tracer, site, fn, *args)
    if kind is operator.itemgetter:
        keys = fn.__reduce__()[1]
        found = tuple([get_item(tracer, site, args[0], key) for key in keys])
        return found if len(keys) > 1 else found[0]
    if is_structural(fn):
        return structural(tracer, site, fn, args, kwargs)
    return opaque(tracer, site, fn, args, kwargs)


# --------------------------------------------------------------------------------------------- primitives


def primitive(tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any) -> Any:
    """Record a callable that the registry knows."""
    if has_out(fn, args, kwargs):
        return call_with_out(tracer, site, fn, args, kwargs)
    if (fn in BINARY or fn in COMPARE or fn in INPLACE or fn in UNARY) and not all(map(is_numeric, args)):
        return apply(tracer, site, fn, args, kwargs)
    if fn.__class__ is types.BuiltinFunctionType and fn.__module__ == "math":
        args = tuple([list(iterate_object(tracer, site, x)) if is_iterable(x) else x for x in args])
    if rule.kind == registry.MUTATOR:
        return mutate(tracer, site, fn, rule, args, kwargs)
    if not (has_box(args) or (kwargs and has_box(kwargs))):
        if any(map(is_foreign, args)):
            return opaque(tracer, site, fn, args, kwargs)
        return born(tracer, site, fn, args, kwargs, fn(*args, **kwargs), pure=True)
    if rule.kind == registry.QUERY:
        arrays: list[ArrayBox] = []
        return fn(*primal(operand(args, arrays)), **primal(operand(kwargs, arrays)))
    return record(tracer, site, fn, args, kwargs)


def is_iterable(value: Any) -> bool:
    """Whether a value is an iterator, or an object whose class makes it iterable."""
    return type(value) is types.GeneratorType or is_iterator(value) or method_of(value, "__iter__") is not None


def is_numeric(value: Any) -> bool:
    """Whether an operator on a value is NumPy's or Python's arithmetic of numbers."""
    return not (type(value) in SEQUENCES or type(value) in (dict, set, frozenset) or is_object(value))


def is_foreign(value: Any) -> bool:
    """Whether a primitive would have to look into an object of the user's own class."""
    return type(value).__module__ not in ("builtins", "numpy", "collections")


def has_out(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call of a NumPy function says where to write its result."""
    return kwargs.get("out") is not None or (type(fn) is np.ufunc and len(args) > fn.nin)


def call_with_out(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """A function with ``out=``: compute the value, then write it where it belongs."""
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    if type(fn) is np.ufunc and len(args) > fn.nin:
        args, out = args[: fn.nin], args[fn.nin :]
    if out is Ellipsis:
        return call(tracer, site, np.asarray, (call(tracer, site, fn, args, kwargs),), {})
    targets = out if isinstance(out, tuple) else (out,)
    mask = kwargs.pop("where", True) if type(fn) is np.ufunc else True
    if not (has_box(args) or has_box(kwargs) or has_box(targets)):
        return fn(*args, **kwargs, out=out, **({} if mask is True else {"where": mask}))
    if mask is not True:  # elsewhere the array keeps what it held
        with np.errstate(all="ignore"):
            results = call(tracer, site, fn, args, kwargs)
        results = call(tracer, site, np.where, (mask, results, targets[0]), {})
    else:
        results = call(tracer, site, fn, args, kwargs)
    for target, result in zip(targets, results if isinstance(results, tuple) else (results,), strict=True):
        if target is not None:
            arrays: list[ArrayBox] = []
            value = operand(result, arrays)
            if type(target) is not ArrayBox:
                raise TraceError(f"{site}: out= must be an array")
            if isinstance(value, (int, float, complex)) or type(value).__name__ == "bool":
                write_array_item(target, Ellipsis, value, site)
            else:
                write_all(target, append(tracer.tape, np.positive, (value,), {}, +value.value, site), site)
    return out if len(targets) > 1 else targets[0]


def mutate(tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any) -> Any:
    """A function that writes into its first argument, by its functional equivalent."""
    target = args[0]
    if type(target) is not ArrayBox:
        return opaque(tracer, site, fn, args, kwargs)
    new = call(tracer, site, rule.function, args, kwargs)
    if type(new) is ArrayBox:
        write_all(target, new.op, site)
    else:
        write_array_item(target, Ellipsis, operand(new, []), site)
    return None


# --------------------------------------------------------------------------------------- Python functions


def call_function(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run the twin of a Python function."""
    if fn in intrinsics:
        return fn(*args, **kwargs)
    known = tracer.twins.get(id(fn))
    if known is not None:
        return known[1](*args, **kwargs)
    root = (fn.__module__ or "").partition(".")[0]
    if root in UNTRACED or fn.__name__ in CREATORS:
        if fn.__name__ in ("namedtuple", "make_dataclass") and "module" in inspect.signature(fn).parameters:
            kwargs = {"module": user_frame().f_globals.get("__name__"), **kwargs}
        if root in ABOUT_STRUCTURE or fn.__name__ in CREATORS:
            return fn(*args, **kwargs)
        return opaque(tracer, site, fn, args, kwargs)
    return twin_of(tracer, fn)(*args, **kwargs)


def twin_of(tracer: Tracer, fn: Any) -> Any:
    """The instrumented copy of a Python function, made once in a run."""
    known = tracer.twins.get(id(fn))
    if known is not None:
        return known[1]
    code = fn.__code__
    if code.co_flags & ASYNC:
        raise TraceError(
            f"{code.co_filename}:{code.co_firstlineno}: {fn.__name__} is an async function, which cannot be "
            "differentiated; call the synchronous part of it"
        )
    if rewrite.is_twin(code):
        twin = fn
    else:
        try:
            twin_code = rewrite.instrument(code, hooks)
        except rewrite.UnsupportedCode as error:
            raise TraceError(f"{code.co_filename}:{code.co_firstlineno}: {error}") from None
        cells = tuple(shadow_cell(tracer, c, n) for c, n in zip(fn.__closure__ or (), code.co_freevars, strict=True))
        twin = FunctionType(twin_code, fn.__globals__, fn.__name__, None, cells)
        twin.__qualname__ = fn.__qualname__
        twin.__module__ = fn.__module__
        if fn.__defaults__:
            twin.__defaults__ = tuple(enter(tracer, x, f"{fn.__name__} default") for x in fn.__defaults__)
        if fn.__kwdefaults__:
            twin.__kwdefaults__ = {k: enter(tracer, x, k) for k, x in fn.__kwdefaults__.items()}
    tracer.twins[id(fn)] = (fn, twin)
    return twin


def shadow_cell(tracer: Tracer, cell: Any, name: str) -> Any:
    """The cell that a twin has in the place of a cell of the outside."""
    known = tracer.cells.get(id(cell))
    if known is not None:
        return known[1]
    shadow = types.CellType()
    tracer.cells[id(cell)] = (cell, shadow)
    try:
        shadow.cell_contents = enter(tracer, cell.cell_contents, name)
    except ValueError:  # an empty cell stays empty
        pass
    return shadow


def call_partial(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    placeholder = getattr(functools, "Placeholder", None)
    rest = iter(args)
    first = [next(rest) if placeholder is not None and x is placeholder else x for x in fn.args]
    first = [enter(tracer, x, "partial") for x in first]
    keywords = {k: enter(tracer, x, k) for k, x in fn.keywords.items()}
    return call(tracer, site, fn.func, (*first, *rest), {**keywords, **kwargs})


def call_method(tracer: Tracer, site: Site, fn: Any, obj: Any) -> Any:
    """``operator.methodcaller``."""
    maker, parts = fn.__reduce__()
    keywords = maker.keywords if isinstance(maker, functools.partial) else {}
    name, *args = (*maker.args, *parts) if keywords else parts
    return call(tracer, site, special[getattr](tracer, site, (obj, name), {}), tuple(args), keywords)


def get_attributes(tracer: Tracer, site: Site, fn: Any, obj: Any) -> Any:
    """``operator.attrgetter``."""
    found = []
    for path in fn.__reduce__()[1]:
        value = obj
        for name in path.split("."):
            value = special[getattr](tracer, site, (value, name), {})
        found.append(value)
    return tuple(found) if len(found) > 1 else found[0]


def call_cached(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """A function under ``lru_cache``: its cache must not hold boxes, so the run has a cache of its own."""
    if not (has_box(args) or has_box(kwargs)):
        if rewrite.is_twin(getattr(fn.__wrapped__, "__code__", None)):
            return fn(*args, **kwargs)
        key: Any = (fn, args, tuple(kwargs.items()))
    else:
        key = (fn, tuple(map(cache_key, args)), tuple((k, cache_key(v)) for k, v in kwargs.items()))
    if key not in tracer.calls:
        tracer.calls[key] = call(tracer, site, fn.__wrapped__, args, kwargs)
    return tracer.calls[key]


def cache_key(value: Any) -> Any:
    if type(value) is Box:
        return draw(value, operator.index) if isinstance(value.value, int) else value.op
    if isinstance(value, tuple):
        return tuple(map(cache_key, value))
    return value


# ------------------------------------------------------------------------------------------------ classes


def construct(tracer: Tracer, site: Site, cls: Any, args: Any, kwargs: Any) -> Any:
    """Make an object of a class by the protocol, with the Python parts as twins."""
    meta_call = type(cls).__call__
    if type(meta_call) is FunctionType:
        return call(tracer, site, meta_call, (cls, *args), kwargs)
    return instantiate(tracer, site, cls, args, kwargs)


def instantiate(tracer: Tracer, site: Site, cls: Any, args: Any, kwargs: Any) -> Any:
    """What ``type.__call__`` does: ``__new__``, then ``__init__``."""
    new, init = cls.__new__, cls.__init__
    if type(new) is not FunctionType and type(init) is not FunctionType:
        if issubclass(cls, BaseException) or is_structural(cls):
            return structural(tracer, site, cls, args, kwargs)
        if new is object.__new__:
            return cls(*args, **kwargs)
        if issubclass(cls, np.generic) and has_box(args):
            return record(tracer, site, cls, args, kwargs)
        return opaque(tracer, site, cls, args, kwargs)
    if type(new) is FunctionType:
        instance = call(tracer, site, new, (cls, *args), kwargs)
    elif new is object.__new__:
        instance = new(cls)
    else:
        instance = new(cls, *args, **kwargs)
    if isinstance(instance, cls):
        init = type(instance).__init__
        if type(init) is FunctionType:
            call(tracer, site, init, (instance, *args), kwargs)
        elif init is not object.__init__:
            init(instance, *args, **kwargs)
    return instance


# --------------------------------------------------------------------------------- structural and opaque

STRUCTURAL_TYPES = (
    (list, tuple, dict, set, frozenset, zip, map, filter, enumerate, reversed, range, slice, object, type, super)
    + (deque, defaultdict, OrderedDict, functools.partial, types.SimpleNamespace, types.MethodType, types.CellType)
    + (property, staticmethod, classmethod, functools.cached_property, types.GeneratorType, types.MappingProxyType)
    + (operator.itemgetter, operator.attrgetter, operator.methodcaller, str, bytes)
    + tuple(x for x in vars(itertools).values() if isinstance(x, type))
)
STRUCTURAL_FUNCTIONS = frozenset(
    (min, max, sorted, any, all, len, iter, next, callable, repr, ascii, id, functools.reduce, chr, ord, hash, format)
    + (operator.length_hint, issubclass, functools.cmp_to_key, operator.concat, operator.iconcat)
    + (operator.countOf, operator.indexOf, operator.delitem)
)
STRUCTURAL_OWNERS = frozenset(("_heapq", "_bisect", "_collections", "itertools", "_functools"))
CALLBACKS: dict[Any, int] = {  # where the function to call back stands
    map: 0, filter: 0, functools.reduce: 0, iter: 0, defaultdict: 0, functools.cmp_to_key: 0,
    itertools.starmap: 0, itertools.takewhile: 0, itertools.dropwhile: 0, itertools.filterfalse: 0,
    itertools.accumulate: 1, itertools.groupby: 1,
}  # fmt: skip


def is_structural(fn: Any) -> bool:
    """Whether a C callable only moves references about."""
    if isinstance(fn, type):
        return fn in STRUCTURAL_TYPES or issubclass(fn, (*STRUCTURAL_TYPES[:5], deque, BaseException))
    owner = getattr(fn, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        cls = owner if isinstance(owner, type) else type(owner)
        if type(fn) is types.MethodWrapperType and fn.__objclass__ in STRUCTURAL_TYPES:
            return True
        return issubclass(cls, (*STRUCTURAL_TYPES[:5], BaseException)) or cls in STRUCTURAL_TYPES or is_iterator(owner)
    home = getattr(fn, "__objclass__", None)
    if home is not None:
        return home in STRUCTURAL_TYPES or issubclass(home, BaseException)
    if type(fn) in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
        return True
    if not hashable(fn):
        return type(fn).__module__ in STRUCTURAL_OWNERS or type(fn).__module__ == "functools"
    return fn in STRUCTURAL_FUNCTIONS or getattr(fn, "__module__", None) in STRUCTURAL_OWNERS


def structural(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run a C callable on boxes; functions that it calls back are traced, and so are user's iterators."""
    known = hashable(fn)
    place = CALLBACKS.get(fn) if known else None
    if place is not None and len(args) > place and not (fn is iter and len(args) == 1):
        args = (*args[:place], callback(tracer, site, args[place]), *args[place + 1 :])
    for name in ("key", "func", "predicate"):
        if name in kwargs:
            kwargs = {**kwargs, name: callback(tracer, site, kwargs[name])}
    if (fn is sorted or getattr(fn, "__name__", "") == "sort") and compares_in_python(fn, args):
        kwargs = {**kwargs, "key": ordered_key(tracer, site, kwargs.get("key"))}
    if fn in (min, max) if known else False:
        items = args if len(args) > 1 else list(iterate_object(tracer, site, args[0]))
        if "key" not in kwargs and has_box(items) and all(map(is_number, items)):
            return record(tracer, site, fn, (list(items),) if len(args) == 1 else args, {})
        if any(map(is_object, items)):
            kwargs = {**kwargs, "key": ordered_key(tracer, site, kwargs.get("key"))}
        args = args if len(args) > 1 else (items,)
    if known and fn in CONSUMERS and not (fn in (min, max) and len(args) > 1):
        args = tuple([iterate_object(tracer, site, x) for x in args])
    elif getattr(fn, "__name__", "") in ("extend", "update", "join", "fromkeys"):
        args = tuple([iterate_object(tracer, site, x) for x in args])
    owner = getattr(fn, "__self__", None)
    if args and isinstance(owner, (dict, set)) and type(args[0]) in BOXES:
        args = (plain_key(args[0]), *args[1:])
    if id(owner) in tracer.originals and fn.__name__ in WRITERS:
        outside_effect(tracer, site, getattr(type(owner), fn.__name__), owner, args)
    return watched(fn, args, kwargs, site)


def is_number(value: Any) -> bool:
    """Whether a value is a number, traced or not."""
    return isinstance(plain_of(value), (int, float, np.number))


WRITERS = frozenset(
    "append appendleft extend extendleft insert pop popleft popitem remove clear sort reverse update setdefault add "
    "discard rotate move_to_end difference_update intersection_update symmetric_difference_update".split()
)


def outside_effect(tracer: Tracer, site: Site, fn: Any, shadow: Any, args: tuple[Any, ...]) -> None:
    """Note what is done to a container outside."""
    external = External(tracer.names.get(id(shadow), ""), tracer.originals[id(shadow)][1])
    effect(tracer, site, fn, (external, *args), {})


CONSUMERS = frozenset(
    (sorted, any, all, list, tuple, set, frozenset, zip, enumerate, dict, deque, OrderedDict, map, filter)
    + (functools.reduce, *[x for x in vars(itertools).values() if isinstance(x, type)])
)


class Ordered:
    """A value in a sort: it is compared by the special methods of its class, run as twins."""

    __slots__ = ("compare", "value")

    def __init__(self, compare: Callable[[Any, Any, Any], bool], value: Any) -> None:
        self.compare = compare
        self.value = value

    @intrinsic
    def __lt__(self, other: Ordered) -> bool:
        return self.compare(operator.lt, self.value, other.value)

    @intrinsic
    def __gt__(self, other: Ordered) -> bool:
        return self.compare(operator.gt, self.value, other.value)


def ordered_key(tracer: Tracer, site: Site, key: Any) -> Any:
    """A key function for C code that compares objects of Python classes."""

    def compare(op: Any, x: Any, y: Any) -> bool:
        return truth(tracer, site, operate_objects(tracer, site, op, (x, y)))

    return lambda x: Ordered(compare, x if key is None else key(x))


def compares_in_python(fn: Any, args: Any) -> bool:
    """Whether a sort would call Python methods to compare."""
    items = args[0] if fn is sorted else getattr(fn, "__self__", args[0] if args else ())
    return isinstance(items, (list, tuple)) and any(map(is_object, items))


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def plain_key(key: Any) -> Any:
    """The key of a dict or set must be a plain value."""
    return draw(key, lambda value: value) if type(key) in BOXES else key


def callback(tracer: Tracer, site: Site, fn: Any) -> Any:
    """A stand-in for a function that C code will call back."""
    if type(fn) is FunctionType and fn not in registry.rules and fn not in special:
        return twin_of(tracer, fn)
    if callable(fn) and type(fn) not in BOXES:
        return lambda *args, **kwargs: call(tracer, site, fn, args, kwargs)
    return fn


def opaque(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run an unknown callable on plain values, and record it: a gradient that flows back to it is an error."""
    if type(fn) is np.ufunc and has_out(fn, args, kwargs):
        return call_with_out(tracer, site, fn, args, kwargs)
    if not (has_box(args) or has_box(kwargs)):
        plain_args = [lower(tracer, x) if is_container(x) else x for x in args]
        pure = isinstance(fn, np.ufunc) or getattr(fn, "__module__", None) in ("math", "cmath", "_operator")
        value = watched(fn, plain_args, kwargs, site)
        refresh(tracer, args)
        return born(tracer, site, fn, tuple(plain_args), kwargs, value, pure)
    arrays: list[ArrayBox] = []
    operands, options = operand(args, arrays), operand(kwargs, arrays)
    writable = [box for box in arrays if box.value.flags.writeable]
    for box in writable:
        prepare_write(box)
    before = [box.value.tobytes() for box in writable]
    value = watched(fn, [lower(tracer, x) for x in args], {k: lower(tracer, x) for k, x in kwargs.items()}, site)
    refresh(tracer, args)
    targets = [plain_of(x) for x in (value, kwargs.get("out"))]
    for box, bytes_before in zip(writable, before, strict=True):
        if any(box.value is x for x in targets) or box.value.tobytes() != bytes_before:
            commit(box, append(tracer.tape, fn, operands, options, box.value, site))
    if value is None:
        keeper = getattr(fn, "__self__", None) if not hasattr(fn, "__objclass__") else args[0]
        if type(fn) is not FunctionType and not isinstance(keeper, types.ModuleType | None):
            if type(keeper).__module__ not in ("_io", "io"):
                raise TraceError(
                    f"{blame(site)}: {type(keeper).__name__}.{fn.__name__} keeps a traced value where the tracer "
                    "cannot follow it; keep it in a list or an object"
                )
        effect(tracer, site, fn, args, kwargs)
        return None
    if isinstance(value, str):
        draw_all(tracer, [x for x in (*args, *kwargs.values()) if type(x) is Box])
        return value
    if followed(value):
        start = len(tracer.tape.ops)
        result = finish(tracer, site, fn, operands, options, value, arrays)
        for op in tracer.tape.ops[start : start + 1]:
            tracer.tape.callers[op] = blame(site)
        return result
    boxes = [x for x in (*args, *kwargs.values()) if has_box(x)]
    if all(map(is_integer, boxes)):  # a seed, a size: drawn like any other integer
        draw_all(tracer, boxes)
        return value
    raise NoRuleError(no_rule(fn, site, f"returns a {type(value).__name__}, into which no gradient can be followed"))


def followed(value: Any) -> bool:
    """Whether a result of an unknown callable is made of numbers and arrays."""
    if isinstance(value, (tuple, list)):
        return all(map(followed, value))
    return value is None or isinstance(value, (bool, int, float, complex, np.generic)) or is_traced_array(value)


def blame(site: Site) -> str:
    """A place in a program, and the line of the user's own that led there through somebody's library."""
    text = f"{site.filename}:{site.lineno}, in {site.function}"
    if not is_library(site.filename):
        return text
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name) and not name.startswith(OURS):
            return f"{text} (called from {name}:{frame.f_lineno}, in {frame.f_code.co_name})"
        frame = frame.f_back  # type: ignore[assignment]
    return text


LIBRARY = tuple({os.path.dirname(os.__file__) + os.sep, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def is_library(filename: str) -> bool:
    """Whether a file belongs to the standard library or to an installed package."""
    return filename.startswith((*LIBRARY, "<")) or filename == ""


def no_rule(fn: Any, site: Site, why: str = "has no rule", place: str | None = None) -> str:
    """What to tell a user about a callable that cannot be differentiated."""
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", repr(fn))
    full = f"{module}.{name}" if module and module != "builtins" else name
    return (
        f"{place or blame(site)}: {full} {why}. Write one:\n"
        f"    @wengert.rrule({full})\n"
        f"    def rule(*args):\n"
        f"        def pullback(dy): ...  # one cotangent for each argument\n"
        f"        return {full}(*args), pullback"
    )


def refresh(tracer: Tracer, args: Any) -> None:
    """Bring shadows up to date with lists that a C function may have changed."""
    for arg in args:
        known = tracer.originals.get(id(arg))
        if known is not None and type(arg) is list:
            original = known[1]
            boxes = {id(x.value): x for x in arg if type(x) in BOXES}
            if len(original) != len(arg) or any(
                (a.value if type(a) in BOXES else a) is not b and id(a) not in tracer.originals
                for a, b in zip(arg, original, strict=True)
            ):
                arg[:] = [boxes.get(id(x), x) for x in original]


# --------------------------------------------------------------------------------------- operators, dunders


def operate(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """An operation that reached a box through C code or through Python code without hooks."""
    tracer = active.tracer
    site = user_site()
    if tracer is None:
        raise TraceError(f"{site}: a traced value is used after its run has ended")
    return apply(tracer, site, op, args, kwargs or {})


SEQUENCES = frozenset((list, tuple, deque, str, bytes))


def plain_of(value: Any) -> Any:
    """The value in a box, or the value itself."""
    return value.value if type(value) in BOXES else value


def is_integer(value: Any) -> bool:
    return type(value) is Box and isinstance(value.value, (int, np.integer))


def drawn(tracer: Tracer, value: Any) -> Any:
    """The plain value of a nested argument that becomes part of a string, with guards on all of it."""
    if type(value) in BOXES:
        return draw(value, lambda plain: plain)
    if type(value) in (tuple, list):
        return type(value)([drawn(tracer, x) for x in value])
    if type(value) is dict:
        return {k: drawn(tracer, x) for k, x in value.items()}
    return value


def operate_index(box: Box, index: int) -> Any:
    """``box[index]``."""
    return operate(operator.getitem, (box, index))


def apply(tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator on operands of which at least one is a box or an object of a Python class."""
    if op in INPLACE and type(args[0]) is ArrayBox:
        return update(tracer, site, op, args[0], args[1])
    if type(args[0]) in (str, bytes):
        return op(args[0], *[drawn(tracer, x) for x in args[1:]])
    if len(args) == 2 and any(type(x) in SEQUENCES for x in args) and not any(type(x) is ArrayBox for x in args):
        return op(*[draw(x, operator.index) if is_integer(x) else plain_of(x) for x in args])
    op = INPLACE.get(op, op) if type(args[0]) is Box else op
    if any(type(x) in BOXES for x in args) and not any(map(is_object, args)):
        return record(tracer, site, op, args, kwargs)
    return operate_objects(tracer, site, op, args)


def update(tracer: Tracer, site: Site, op: Any, target: ArrayBox, value: Any) -> ArrayBox:
    """``a += v``: the array is written to, and stays the same array."""
    new = call(tracer, site, INPLACE[op], (target, value), {})
    if type(new) in BOXES and (new.value.shape == target.value.shape or np.ndim(target.value) >= np.ndim(new.value)):
        try:
            write_all(target, new.op, site)
            return target
        except (TypeError, ValueError):
            pass
    op(target.value.copy(), lower(tracer, value))  # raises what plain Python raises
    raise TraceError(f"{site}: the in-place operation {op.__name__} could not be followed")


def is_object(value: Any) -> bool:
    """Whether operators on a value may run Python methods of its class."""
    kind = type(value)
    return not (kind in BOXES or kind in ATOMS or kind in NATIVE or kind.__module__ in ("builtins", "numpy"))


NATIVE = frozenset((float, complex, list, tuple, dict, set, frozenset, np.ndarray))
INPLACE = {
    getattr(operator, f"i{name}"): getattr(operator, plain)
    for name, plain in (
        [(x, x) for x in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()]
        + [("and", "and_"), ("or", "or_")]
    )
}
BINARY = {fn: fn.__name__.strip("_") for fn in INPLACE.values()} | {divmod: "divmod"}
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
COMPARE = {getattr(operator, name): name for name in REFLECTED}
UNARY = {
    operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__", operator.abs: "__abs__",
    math.floor: "__floor__", math.ceil: "__ceil__", math.trunc: "__trunc__",
    abs: "__abs__", round: "__round__", operator.index: "__index__",
}  # fmt: skip


def method_of(value: Any, name: str) -> Any:
    """The Python-level special method of an object's class, or None."""
    kind = type(value)
    if kind in BOXES:
        return None
    method = getattr(kind, name, None)
    return method if type(method) is FunctionType else None


def operate_objects(tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...]) -> Any:
    """An operator by the protocol of special methods, with Python methods run as twins."""
    if op in INPLACE:
        method = method_of(args[0], f"__{op.__name__.rstrip('_')}__")
        if method is not None:
            result = call(tracer, site, method, args, {})
            if result is not NotImplemented:
                return result
        op = INPLACE[op]
    if op in BINARY:
        name = BINARY[op]
        tries = attempts(args[0], args[1], f"__{name}__", f"__r{name}__")
    elif op in COMPARE:
        name = COMPARE[op]
        tries = attempts(args[0], args[1], f"__{name}__", f"__{REFLECTED[name]}__")
        if not tries and name == "ne" and (inner := method_of(args[0], "__eq__")) is not None:
            result = call(tracer, site, inner, args, {})
            return result if result is NotImplemented else not truth(tracer, site, result)
    else:
        name = UNARY.get(op) or f"__{op.__name__.strip('_')}__"
        method = method_of(args[0], name)
        tries = [(method, args)] if method is not None else []
    for method, operands in tries:
        result = call(tracer, site, method, operands, {})
        if result is not NotImplemented:
            return result
    return op(*[plain_of(x) for x in args])


def attempts(left: Any, right: Any, name: str, reflected: str) -> list[Any]:
    """The Python-level methods that a binary operator tries, in CPython's order."""
    first = [(m, (left, right))] if (m := method_of(left, name)) is not None else []
    second = [(m, (right, left))] if (m := method_of(right, reflected)) is not None else []
    if type(left) is type(right) and reflected.startswith("__r"):
        second = []
    elif issubclass(type(right), type(left)) and type(right) is not type(left):
        if method_of(right, reflected) is not method_of(left, reflected):
            return second + first
    return first + second


def truth(tracer: Tracer, site: Site, value: Any) -> bool:
    """The truth of a value."""
    kind = type(value)
    if kind in BOXES:
        return draw(value, bool)
    for name in ("__bool__", "__len__"):
        method = method_of(value, name)
        if method is not None:
            result = call(tracer, site, method, (value,), {})
            return bool(plain_key(result))
    return bool(value)


def draw(box: Box, how: Callable[[Any], Any]) -> Any:
    """Take a plain value out of a box, and note what the program saw."""
    value = how(box.value)
    tracer = active.tracer
    if tracer is not None:
        op = operand(box, [])
        if isinstance(box.value, np.ndarray) and how is not bool:
            return value
        decide(tracer, op, box.value if how is not bool else value)
    return value


def iterate(box: Box) -> Iterator[Any]:
    """The elements of a traced array along its first axis."""
    if not isinstance(box.value, np.ndarray) or box.value.ndim == 0:
        iter(box.value)  # raises what plain Python raises
    return (operate(operator.getitem, (box, i)) for i in range(len(box.value)))


class ObjectIterator:
    """An iterator of a Python class, whose ``__next__`` runs as a twin."""

    def __init__(self, tracer: Tracer, site: Site, iterator: Any) -> None:
        self.step = lambda: call(tracer, site, type(iterator).__next__, (iterator,), {})

    @intrinsic
    def __iter__(self) -> ObjectIterator:
        return self

    @intrinsic
    def __next__(self) -> Any:
        return self.step()


def iterate_object(tracer: Tracer, site: Site, value: Any) -> Any:
    """What to iterate over in the place of a value: an iterator that runs Python methods as twins."""
    method = method_of(value, "__iter__")
    if method is None:
        if type(value) in BOXES or hasattr(type(value), "__iter__") or method_of(value, "__getitem__") is None:
            return value
        return sequence_iterator(tracer, site, value)
    iterator = call(tracer, site, method, (value,), {})
    if method_of(iterator, "__next__") is not None:
        return ObjectIterator(tracer, site, iterator)
    return iterator


def sequence_iterator(tracer: Tracer, site: Site, value: Any) -> Iterator[Any]:
    """Iteration over an object that has ``__getitem__`` only."""
    method = method_of(value, "__getitem__")
    for i in itertools.count():
        try:
            item = call(tracer, site, method, (value, i), {})
        except IndexError:
            return
        yield item


def get_item(tracer: Tracer, site: Site, container: Any, key: Any) -> Any:
    """``container[key]``."""
    if type(container) is ArrayBox or (type(container) is Box and isinstance(container.value, np.generic)):
        return record(tracer, site, operator.getitem, (container, key), {})
    if is_traced_array(container):
        return get_item(tracer, site, enter(tracer, container, "array"), key)
    method = method_of(container, "__getitem__")
    if method is not None:
        return call(tracer, site, method, (container, key), {})
    if isinstance(container, dict):
        missing = method_of(container, "__missing__")
        if missing is not None and (key := plain_key(key)) not in container:
            return call(tracer, site, missing, (container, key), {})
    return container[key]


def set_item(tracer: Tracer, site: Site, container: Any, key: Any, value: Any) -> None:
    """``container[key] = value``."""
    if type(container) is ArrayBox:
        arrays: list[ArrayBox] = []
        index = operand(key, arrays)
        save(arrays)
        write_array_item(container, index, operand(value, []), site)
        return
    if is_traced_array(container):
        set_item(tracer, site, enter(tracer, container, "array"), key, value)
        return
    method = method_of(container, "__setitem__")
    if method is not None:
        call(tracer, site, method, (container, key, value), {})
        return
    if type(container) is Box:
        container.value[key] = value  # raises what plain Python raises
    if has_box(value) and not isinstance(container, (dict, list, deque, types.MappingProxyType)):
        raise TraceError(
            f"{blame(site)}: a {type(container).__name__} cannot hold a traced value, so its gradient would be lost; "
            "keep it in a list, a dict or an array of numbers"
        )
    if isinstance(container, (dict, list, deque)):
        if id(container) in tracer.originals:
            outside_effect(tracer, site, operator.setitem, container, (key, value))
        container[plain_key(key)] = value
    else:
        container[lower(tracer, key)] = lower(tracer, value)


def write_item(box: Box, key: Any, value: Any) -> None:
    """``box[key] = value`` in code without hooks."""
    tracer = active.tracer
    if tracer is None:
        raise TraceError("a traced value is used after its run has ended")
    set_item(tracer, user_site(), box, key, value)


def box_attribute(box: Box, name: str) -> Any:
    """An attribute of a box in code without hooks."""
    from .attributes import load_box

    tracer = active.tracer
    if tracer is None or name.startswith("__array_"):
        raise AttributeError(name)
    return load_box(tracer, user_site(), box, name)


def user_site() -> Site:
    """The innermost line of the program that is not Wengert's own."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return NOWHERE
    return Site(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)


def user_frame() -> Any:
    """The frame of the traced function that is calling."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(OURS) and not rewrite.is_twin(frame.f_code):
        frame = frame.f_back
    return frame


HERE = os.path.dirname(os.path.abspath(__file__))
from . import builtin_calls as _builtin_calls  # noqa: E402, F401  (fills `special`)
from . import hooks  # noqa: E402
