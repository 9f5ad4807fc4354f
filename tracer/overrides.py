"""NumPy's own protocols: who takes charge of an operator or a function that has arrays among its operands.

Words
-----
override   an operand's own ``__array_ufunc__`` or ``__array_function__``, in the order in which NumPy asks them.
defer      what an array does where it declines an operator, in favour of the other operand.
item       the number in a NumPy scalar, which is what an array of objects would hold of it.
"""

from __future__ import annotations

import array
import dis
import functools
import importlib
import itertools
import operator
import types
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import meaning, operators, protocols, slots
from .box import BOXES, ArrayBox
from .errors import TraceError, WengertError
from .kinds import attribute, flags_of, has, is_one_of, isinstance
from .places import blame, is_library, user_site
from .reads import HEAP_TYPE, MISSING
from .session import Tracer
from .slots import (
    invoke,
    is_native,
    is_object,
    is_python,
    is_subtype,
    kind_of,
    native_base,
    plain_of,
    python_special,
    special,
)
from .tape import Site
from .text import PRIVATE

UFUNCS: dict[Any, Any] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply, operator.truediv: np.true_divide,
    operator.floordiv: np.floor_divide, operator.mod: np.remainder, operator.pow: np.power, pow: np.power,
    divmod: np.divmod, operator.matmul: np.matmul, operator.and_: np.bitwise_and, operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor, operator.lshift: np.left_shift, operator.rshift: np.right_shift,
    operator.lt: np.less, operator.le: np.less_equal, operator.eq: np.equal, operator.ne: np.not_equal,
    operator.gt: np.greater, operator.ge: np.greater_equal,
}  # fmt: skip
OPERATORS = {ufunc: op for op, ufunc in UFUNCS.items() if op is not pow}
COMPARE = frozenset((np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal))
LOWEST = -1_000_000.0  # the priority of what has none


def priority(tracer: Tracer, site: Site, value: Any) -> float:
    if type(value) is ArrayBox:
        return 0.0
    if not is_object(value):
        return LOWEST
    try:
        found = meaning.attributes.load(tracer, site, value, "__array_priority__")
    except AttributeError:
        return LOWEST
    return float(plain_of(found))


def defers(tracer: Tracer, site: Site, value: Any, other: Any, in_place: bool = False) -> bool:
    """Whether an array or a NumPy scalar leaves an operator to the other operand."""
    if not is_object(other):
        return False
    own = special(other, "__array_ufunc__")
    if own is not MISSING:
        return own is None and not in_place
    if not in_place and is_subtype(type(other), kind_of(value)):
        return False
    return priority(tracer, site, value) < priority(tracer, site, other)


def by_numpy(tracer: Tracer, site: Site, op: Any, left: Any, right: Any, reflected: bool) -> Any:
    """What an array or a NumPy scalar makes of an operator with an object; NotImplemented where it defers."""
    value, other = (right, left) if reflected else (left, right)
    if not reflected and defers(tracer, site, value, other):
        return NotImplemented
    if op is operator.mul and not isinstance(plain_of(value), np.ndarray):
        if operators.sequence_of(kind_of(other)) is not None:
            return NotImplemented  # a scalar repeats a sequence, or Python says that it cannot
    if is_one_of(type(other), BUFFERS):
        inner = meaning.calls.call(tracer, site, np.array, (other,), {})
    else:
        inner = bare(tracer, site, other)
    if not is_object(inner):
        pair = (inner, value) if reflected else (value, inner)
        return operators.native(tracer, site, op, pair, {})
    ufunc = UFUNCS[op]
    if ufunc in COMPARE and is_bare(tracer, value) and is_element(tracer, other):
        return operators.compare(tracer, site, op, item(tracer, site, value), other)
    return meaning.calls.call(tracer, site, ufunc, (left, right), {})


BUFFERS = frozenset(
    (array.array, bytearray, memoryview)
)  # of whose own memory NumPy makes an array


def update(tracer: Tracer, site: Site, op: Any, target: ArrayBox, other: Any) -> Any:
    """``target += other``, where the other operand is an object."""
    if defers(tracer, site, target, other, in_place=True):
        return NotImplemented
    ufunc = UFUNCS[operators.INPLACE[op]]
    inner = other
    if special(other, "__array_ufunc__") is MISSING:
        inner = as_operand(tracer, site, other)
    if inner is not other:
        return operators.update(tracer, site, op, target, inner)
    if is_element(tracer, other) and special(other, "__array_ufunc__") is MISSING:
        ufunc(target.value.copy(), object(), out=target.value.copy())  # raises what NumPy raises
    options: dict[str, Any] = {"out": (target,)}
    if op is operator.imatmul:  # NumPy says so, lest a vector becomes a matrix
        own = (-1,) if target.value.ndim == 1 else (-2, -1)
        options = {"axes": [own, (-2, -1), own], **options}
    return meaning.calls.call(tracer, site, ufunc, (target, other), options)


# Unlike Python's own numbers, those of derived classes have a precision.
WIDE = {float: np.float64, int: np.int64, complex: np.complex128}
LARGEST = 1 << 63


def bare(tracer: Tracer, site: Site, value: Any) -> Any:
    """What NumPy sees in an object whose class derives from a number's or a sequence's; any other value itself."""
    if not is_object(value) or special(value, "__array_ufunc__") is not MISSING:
        return value
    base = native_base(type(value))
    if base in operators.EXACT:
        number = value if base is complex else protocols.number(tracer, site, base, value)
        if number is value:
            number = operators.number(tracer, site, value)
        if base is int and not -LARGEST <= plain_of(number) < LARGEST:
            return number
        return meaning.calls.call(tracer, site, WIDE[base], (number,), {})
    if base in (list, tuple):
        ways = ("__array__", *meaning.attributes.WAYS)
        if any(python_special(value, x) is not MISSING for x in ways):
            return value
        return elements(tracer, site, value) if has_length(tracer, site, value) else value
    if base is deque:
        return [*iter(protocols.iterate_object(tracer, site, value))]
    if base is str and python_special(value, "__str__") is MISSING:  # which NumPy asks otherwise
        return base.__str__(value)
    return value


# -------------------------------------------------------------------------------------------- overrides


def overrides(values: Any, name: str) -> list[Any]:
    """Those of some values whose classes have an override, one of each class, in the order in which they are asked."""
    found: list[Any] = []
    for x in values:
        if (
            is_one_of(type(x), BOXES)
            or not has(type(x), name)
            or any(type(x) is type(y) for y in found)
        ):
            continue
        if special(x, name) is getattr(np.ndarray, name):
            continue
        place = next((i for i, y in enumerate(found) if is_subtype(type(x), type(y))), len(found))
        found.insert(place, x)
    return found


def has_python_override(values: Any, name: str) -> bool:
    return any(is_object(x) and is_python_or_none(special(x, name)) for x in values)


def is_python_or_none(found: Any) -> bool:
    return found is None or is_python(found)


def given(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """What a function is given, with the items of lists and tuples in their place."""
    return [
        y
        for x in (*args, *kwargs.values())
        for y in (x if is_one_of(type(x), (list, tuple)) else (x,))
    ]


NO_OBJECTS = PRIVATE | {type(np._NoValue)}


def has_object(values: Any) -> bool:
    """Whether there is an object among some arguments, or in a list or tuple among them."""
    for x in values:
        kind = type(x)
        if kind is list or kind is tuple:
            if any(flags_of(y) & HEAP_TYPE and not is_one_of(y, NO_OBJECTS) for y in map(type, x)):
                return True
        elif flags_of(kind) & HEAP_TYPE and not (type(kind) is type and kind in NO_OBJECTS):
            return True
    return False


def of_call(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """What the overrides among its arguments make of one of NumPy's functions, or MISSING."""
    kind = type(fn)
    if kind is np.ufunc:
        return of_ufunc(tracer, site, fn, "__call__", args, kwargs)
    if kind is BuiltinFunctionType and type(fn.__self__) is np.ufunc:
        return of_ufunc(tracer, site, fn.__self__, fn.__name__, args, kwargs)
    if attribute(fn, "_implementation") is not None:
        return of_function(tracer, site, fn, args, kwargs)
    return MISSING


# The operands of the methods of ufuncs by their names, and what else they take by position.
METHODS = {
    "reduce": (("array",), ("axis", "dtype", "out", "keepdims", "initial", "where")),
    "accumulate": (("array",), ("axis", "dtype", "out")),
    "reduceat": (("array", "indices"), ("axis", "dtype", "out")),
}


def told(ufunc: Any, method: str, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any], Any]:
    """The operands and the options of a call as NumPy tells them to an override; and the arrays to write to."""
    kwargs = dict(kwargs)
    if method == "__call__":
        if len(args) > ufunc.nin:
            args, kwargs["out"] = args[: ufunc.nin], tuple(args[ufunc.nin :])
    elif method in METHODS:
        operands, options = METHODS[method]
        count = len(operands)
        kwargs |= dict(zip(options, args[count:], strict=False))
        args = (*args[:count], *[kwargs[x] for x in operands[len(args) :] if x in kwargs])
    out = kwargs.pop("out", None)
    outs = () if out is None else out if type(out) is tuple else (out,)
    if any(x is not None for x in outs):
        kwargs["out"] = outs
    return args, kwargs, outs


def of_ufunc(
    tracer: Tracer, site: Site, ufunc: Any, method: str, args: Any, kwargs: dict[str, Any]
) -> Any:
    """What the overrides among its operands make of a ufunc, or of one of its methods; MISSING without one."""
    if not has_python_override(given(args, kwargs), "__array_ufunc__"):
        return MISSING
    args, kwargs, outs = told(ufunc, method, args, kwargs)
    asked = overrides((*args, *outs, kwargs.get("where")), "__array_ufunc__")
    for x in asked:
        found = special(x, "__array_ufunc__")
        if found is None:
            raise TypeError(
                f"operand '{type(x).__name__}' does not support ufuncs (__array_ufunc__=None)"
            )
    for x in asked:
        found = special(x, "__array_ufunc__")
        result = run(tracer, site, found, x, (ufunc, method, *args), kwargs)
        if result is not NotImplemented:
            return result
    if not asked:  # it stands where NumPy asks nobody
        return MISSING
    plain, options = [plain_of(x) for x in args], {k: plain_of(x) for k, x in kwargs.items()}
    if "out" in options:
        options["out"] = tuple([plain_of(x) for x in outs])
    raise TypeError(_internal.array_ufunc_errmsg_formatter(None, ufunc, method, *plain, **options))


def run(tracer: Tracer, site: Site, found: Any, value: Any, args: Any, kwargs: Any) -> Any:
    """Call an override, with keywords."""
    method = slots.bound(tracer, site, found, value)
    return meaning.calls.call(tracer, site, method, args, kwargs)


def of_function(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """What the overrides among its arguments make of one of NumPy's functions; MISSING without one."""
    values = given(args, kwargs)
    if not has_python_override(values, "__array_function__"):
        return MISSING
    asked = overrides(values, "__array_function__")
    kinds = [type(x) for x in asked]
    if any(type(x) is ArrayBox for x in values):
        first = next(i for i, x in enumerate(values) if type(x) is ArrayBox)
        kinds.insert(sum(any(x is y for y in asked) for x in values[:first]), np.ndarray)
    for x in asked:
        found = special(x, "__array_function__")
        result = run(tracer, site, found, x, (fn, tuple(kinds), args, kwargs), {})
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for 'numpy.{fn.__name__}' on types that implement __array_function__: {kinds}"
    )


def asks(body: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the Python code of one of NumPy's functions asks an object that it is given for a method of its own."""
    code = body.__code__
    module = str(body.__globals__.get("__name__"))
    if not module.startswith("numpy.") or not is_library(code.co_filename):
        return False
    named = dict(zip(code.co_varnames[: code.co_argcount], args, strict=False)) | kwargs
    return any(is_object(named.get(x)) for x in asked(code))


@functools.cache
def asked(code: types.CodeType) -> frozenset[str]:
    """The parameters of which a function reads attributes as they are given, before it makes an array of them."""
    found: set[str] = set()
    made: set[str] = set()
    last: Any = None
    handed = False
    for x in dis.get_instructions(code):
        if x.opname.startswith("LOAD_GLOBAL"):
            handed = x.argval in ASKING
        elif x.opname.startswith("LOAD_FAST"):
            last = x.argval
            if handed:
                found |= {last} - made
            handed = False
        elif x.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            found |= {last} - made
        elif x.opname.startswith("STORE_FAST"):
            made |= {x.argval} if type(x.argval) is str else set(x.argval)
        if not x.opname.startswith("LOAD_FAST"):
            last = None
    return frozenset(found.intersection(code.co_varnames[: code.co_argcount]))


# What looks for the attribute of a name in its first argument.
ASKING = frozenset(("_wrapfunc", "_wrapreduction", "_wrapreduction_any_all", "hasattr"))


# ------------------------------------------------------------------------------------- objects as arrays


def takes_arrays(fn: Any) -> bool:
    """Whether a function makes arrays of its operands."""
    if type(fn) is types.FunctionType and not is_library(fn.__code__.co_filename):
        return False  # the user's own, whatever it is called
    if type(fn) is np.ufunc or type(attribute(fn, "__self__")) is np.ufunc:
        return True
    return (attribute(fn, "__module__") or "").startswith(("numpy", "scipy"))


def as_operand(tracer: Tracer, site: Site, value: Any) -> Any:
    """An object as NumPy takes it where it wants an array, if it has a way to become one; else itself."""
    if is_object(value) and native_base(type(value)) not in BUILT_IN:
        result = made_by_itself(tracer, site, value)
        if result is not MISSING:
            if type(result) is not ArrayBox and not isinstance(result, np.ndarray):
                raise ValueError("object __array__ method not producing an array")
            return result
    inner = bare(tracer, site, value)
    if inner is not value:
        return inner
    if is_sequence(value) and id(value) not in tracer.single and has_length(tracer, site, value):
        items = elements(tracer, site, value)
        return items if items is value else meaning.calls.call(tracer, site, np.array, (items,), {})
    return value


def made_by_itself(tracer: Tracer, site: Site, value: Any) -> Any:
    """The array that an object makes of itself, or MISSING; NumPy asks the object for a way, not its class alone."""
    is_class = isinstance(value, type)
    if not is_class:
        if is_buffer(value):
            return MISSING
        for name in meaning.attributes.WAYS:
            found = lent(tracer, site, value, name)
            if found is not MISSING:
                return of_memory(tracer, site, value, name, found)
    found = python_special(value, "__array__")
    if found is not MISSING:
        return invoke(tracer, site, found, value)
    if has(type(value), "__array__") or is_class:
        return MISSING
    try:
        way = meaning.attributes.load(tracer, site, value, "__array__")
    except AttributeError:
        return MISSING
    return meaning.calls.call(tracer, site, way, (), {})


def lent(tracer: Tracer, site: Site, value: Any, name: str) -> Any:
    """What an object says of memory that it lends to NumPy, or MISSING."""
    before, tracer.lending = tracer.lending, True
    try:
        return meaning.attributes.load(tracer, site, value, name)
    except AttributeError:
        return MISSING
    finally:
        tracer.lending = before


def of_memory(tracer: Tracer, site: Site, value: Any, name: str, found: Any) -> Any:
    """The array that NumPy makes of what an object says of memory."""
    if type(found) is meaning.attributes.Lent:
        return protocols.get_item(tracer, site, found.box, ...)
    if tracer.reads is not None:
        tracer.reads.problem(
            f"{with_article(type(value).__name__)} shows where in memory its numbers are, which C code looks into",
            site,
        )
    lender = slots.double(type(value), {})
    setattr(lender, name, found)
    array = meaning.opaque.opaque(tracer, site, np.asarray, (lender,), {})
    lender.owner = value  # whose memory it is
    return array


BUILT_IN = operators.EXACT | {str, bytes}  # what derives from these NumPy takes for one of them


def elements(tracer: Tracer, site: Site, value: Any) -> Any:
    """A list of the elements of a sequence as NumPy takes them, by iteration; a single object as it is."""
    try:
        iterator = protocols.iterator_of(tracer, site, value)
        return [
            *protocols.iterate_object(tracer, site, iterator)
        ]  # which asks the iterator for one
    except KeyError:  # it is more like a dict
        tracer.single[id(value)] = value
        return value


MOST_NESTED = 64  # lists in one another; NumPy has no more dimensions than that


def as_array_or_several(tracer: Tracer, site: Site, value: Any) -> Any:
    """The same for a list or tuple of numbers, or of such operands, as well."""
    if is_one_of(type(value), (list, tuple)) and discovered(value) is not None:
        return as_element(tracer, site, value, None)
    return as_operands(tracer, site, value)


def as_operands(tracer: Tracer, site: Site, value: Any) -> Any:
    """The same for a list or tuple of such operands as well."""
    if is_one_of(type(value), (list, tuple)):
        return type(value)([as_operand(tracer, site, x) for x in value])
    return as_operand(tracer, site, value)


# Python's own class of the numbers that go into an array, by the kind of its type.
NUMBER = {"f": float, "c": complex, "i": int, "u": int}


def as_element(
    tracer: Tracer, site: Site, value: Any, dtype: Any, depth: int = 0, single: bool = False
) -> Any:
    """What is to be put into an array of a type, with numbers and arrays in the place of objects.

    Where it is to be a ``single`` element, NumPy asks for nothing but a number.
    """
    kind = type(value)
    if kind is list or kind is tuple:
        if dtype is None and not depth:
            dtype = discovered(value)
        if depth < MOST_NESTED and may_hold_object(value):
            return kind([as_element(tracer, site, x, dtype, depth + 1) for x in value])
        return value
    if not is_object(value):
        return value
    if dtype is not None and dtype.kind == "f" and isinstance(value, (int, complex)):
        value = protocols.number(tracer, site, float, value)  # not what the class derives from
    elif dtype is not None and dtype.kind == "c" and isinstance(value, int):
        value = protocols.number(tracer, site, complex, value)
    inner = (bare if single else as_operand)(tracer, site, value)
    if depth and isinstance(plain_of(inner), np.ndarray) and plain_of(inner).ndim == 0:
        inner = value
    if not is_object(inner) or dtype is None or dtype.kind not in NUMBER:
        return inner
    return protocols.number(tracer, site, NUMBER[dtype.kind], inner)


def kept_ragged(values: Any, found: Any) -> Any:
    """The items of an array of objects that is ragged: those that agree on no shape are kept as they are.

    ``found`` are the values with arrays in the place of objects, of which NumPy has seen that.
    """
    shape = np.array(blanked(found), object).shape
    pairs = [*items_at(values, found, len(shape))]
    asked = any(x is not y or (is_object(x) and has(type(x), "__array__")) for x, y in pairs)
    if not asked or any(is_one_of(type(x), BOXES) for x, _ in pairs):
        return found
    kept = np.empty(len(pairs), object)
    for i, (x, _) in enumerate(pairs):
        kept[i] = x
    return kept.reshape(shape)


def blanked(values: Any, depth: int = 0) -> Any:
    """Nested lists without what NumPy would ask for an array."""
    if is_one_of(type(values), (list, tuple)) and depth < MOST_NESTED:
        return [blanked(x, depth + 1) for x in values]
    return None if is_object(values) else plain_of(values)


def items_at(values: Any, found: Any, depth: int) -> Iterator[tuple[Any, Any]]:
    """What stands at a depth in nested lists, before and after objects have given way to arrays."""
    if not depth:
        yield values, found
    elif is_one_of(type(values), (list, tuple)):
        for x, y in zip(values, found, strict=True):
            yield from items_at(x, y, depth - 1)
    else:
        for x in plain_of(found).astype(object):
            yield from items_at(x, x, depth - 1)


def discovered(values: Any) -> Any:
    """The type of an array of nested lists with integers of the user's, which NumPy asks for a number of that type.

    None where that is an integer, or where there are other objects.
    """
    samples: list[Any] = []
    own = False
    for x in leaves(values):
        if is_object(x):
            base = native_base(type(x))
            if base not in WIDE:
                return None
            own = own or base is int
            samples.append(WIDE[base](0))
        else:
            plain = plain_of(x)
            samples.append(plain.dtype.type(0) if isinstance(plain, np.ndarray) else plain)
    found = np.array(samples).dtype if own else None
    return found if found is not None and found.kind in "fc" else None


def leaves(values: Any, depth: int = 0) -> Iterator[Any]:
    """What stands in nested lists and tuples."""
    for x in values:
        if type(x) is not list and type(x) is not tuple:
            yield x
        elif depth < MOST_NESTED:
            yield from leaves(x, depth + 1)


def may_hold_object(values: Any) -> bool:
    return has_object((values,)) or any(type(x) is list or type(x) is tuple for x in values)


# These make arrays of what they are given, nested lists included, of the type that they are given next.
MAKERS = frozenset((np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray))


def must_not_wrap(values: Any) -> None:
    """Refuse objects that ask NumPy for its result, to make something else of it."""
    for x in values:
        if is_object(x) and type(special(x, "__array_wrap__")) is types.FunctionType:
            named = with_article(type(x).__name__)
            raise TraceError(
                f"{blame(user_site())}: NumPy gives its result to the method __array_wrap__ of {named}, which is not "
                "followed\ncall it with np.asarray(…) of the object, and make of the result what it is to be"
            )


def as_arguments(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """What NumPy takes the arguments for of one of its functions, where objects are among them."""
    if fn in MAKERS and args:
        given = args[1] if len(args) > 1 else kwargs.get("dtype")
        dtype = None if given is None or is_object(given) else np.dtype(given)
        found = as_element(tracer, site, args[0], dtype)
        if dtype is not None and dtype.kind == "O" and is_one_of(type(found), (list, tuple)):
            found = kept_ragged(args[0], found)
        return (found, *args[1:])
    if isinstance(fn, type) and issubclass(fn, np.generic):
        return tuple([as_element(tracer, site, x, np.dtype(fn)) for x in args])
    if fn in OF_TYPES:
        return tuple([as_type(tracer, site, x) for x in args])
    if type(fn) is np.ufunc or type(attribute(fn, "__self__")) is np.ufunc:
        must_not_wrap(args)
    if type(fn) is np.ufunc:  # of a list it makes an array
        return tuple([as_element(tracer, site, x, None) for x in args])
    how: Any = as_operands if fn in OF_SEVERAL else as_array_or_several
    if not attribute(fn, "_implementation"):
        how = as_operand
    place = JOINING.get(fn)
    if place is not None and len(args) > place and is_object(args[place]):
        args = (*args[:place], joined(tracer, site, fn, args[place]), *args[place + 1 :])
    if fn in TWICE:
        [how(tracer, site, x) for x in args]
    return tuple([how(tracer, site, x) for x in args])


# These take an object for a type, never for an array.
OF_TYPES = frozenset((np.result_type, np.can_cast, np.promote_types))


def as_type(tracer: Tracer, site: Site, value: Any) -> Any:
    """The type that an object names; the object itself where it names none, which NumPy refuses."""
    if not is_object(value):
        return value
    try:
        return meaning.attributes.load(tracer, site, value, "dtype")
    except AttributeError:
        return value


TWICE = frozenset((np.dot, np.inner, np.vdot, np.correlate, np.ptp))  # these ask for a type first

# Where the functions that are given a sequence of arrays have it; and how the arrays are taken out of it.
JOINING = {np.stack: 0, np.vstack: 0, np.hstack: 0, np.concatenate: 0, np.choose: 1}
OF_SEVERAL = frozenset((*JOINING, np.dstack, np.column_stack, np.block))
BY_NUMBER = frozenset((np.concatenate, np.choose))


def joined(tracer: Tracer, site: Site, fn: Any, value: Any) -> list[Any]:
    """The arrays in an object that stands for a sequence of them, which is asked for those with overrides first."""
    if fn not in BY_NUMBER and special(value, "__getitem__") is MISSING:
        fn(slots.blank(value))  # raises what NumPy raises
    if fn is np.choose:
        deque(protocols.iterate_object(tracer, site, value), 0)
    else:
        tuple(protocols.iterable(tracer, site, value))
    if fn in BY_NUMBER:
        numbers = range(protocols.length(tracer, site, value))
        return [protocols.get_item(tracer, site, value, i) for i in numbers]
    if fn is np.stack:  # a loop, which does not ask how many there will be
        return list(deque(protocols.iterate_object(tracer, site, value)))
    return [*tuple(protocols.iterable(tracer, site, value))]


def has_length(tracer: Tracer, site: Site, value: Any) -> bool:
    """Whether what looks like a sequence can tell its length; else NumPy takes it for a single object."""
    if python_special(value, "__len__") is MISSING:
        return True
    try:
        len(protocols.iterable(tracer, site, value))
    except (RecursionError, MemoryError, WengertError):
        raise
    except Exception:  # as NumPy, which goes on without a word
        tracer.single[id(value)] = value
        return False
    return True


NO_SEQUENCES = (dict, str, bytes, np.ndarray, np.generic)


def is_sequence(value: Any) -> bool:
    """Whether NumPy looks into an object for elements, by methods in Python."""
    kind = type(value)
    if not is_object(value) or is_native(kind) or issubclass(native_base(kind), NO_SEQUENCES):
        return False
    return not is_buffer(value) and all(
        special(value, x) not in (MISSING, None) for x in ("__len__", "__getitem__")
    )


def is_buffer(value: Any) -> bool:
    """Whether NumPy makes an array of an object's own memory."""
    try:
        memoryview(value).release()
    except (TypeError, BufferError):
        return False
    return True


def is_bare(tracer: Tracer, value: Any) -> bool:
    """Whether NumPy takes a value for a single one: a number, or an object that is no array and cannot become one."""
    plain = plain_of(value)
    if isinstance(plain, np.ndarray):
        return plain.ndim == 0
    return (
        is_one_of(type(plain), SCALARS)
        or isinstance(plain, np.generic)
        or is_element(tracer, value)
    )


SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))


def is_element(tracer: Tracer, value: Any) -> bool:
    """Whether NumPy takes an object for a single element of an array of objects."""
    if not is_object(value) or has(type(value), "__array__"):
        return False
    base = native_base(type(value))
    if id(value) in tracer.single:
        return True
    return not is_sequence(value) and base not in operators.EXACT and base not in (str, bytes)


def item(tracer: Tracer, site: Site, value: Any) -> Any:
    """A number as an array of objects holds it: one of Python's own."""
    plain = plain_of(value)
    if isinstance(plain, (np.generic, np.ndarray)):
        return meaning.calls.call(tracer, site, type(plain).item, (value,), {})
    return value


def by_element(tracer: Tracer, site: Site, ufunc: Any, args: tuple[Any, ...]) -> Any:
    """A ufunc on objects, which NumPy carries out by the operators and methods that Python has for it."""
    if ufunc.signature is not None or not any("O" in x.partition("->")[0] for x in ufunc.types):
        ufunc(
            *[object() if is_object(x) else plain_of(x) for x in args]
        )  # raises what NumPy raises
    if all(is_bare(tracer, x) for x in args):
        return of_items(tracer, site, ufunc, [item(tracer, site, x) for x in args])
    args = tuple([x if is_bare(tracer, x) else operators.as_array(tracer, site, x) for x in args])
    shape = np.broadcast_shapes(*[np.shape(plain_of(x)) for x in args if not is_object(x)])
    found = [
        of_items(tracer, site, ufunc, [element(tracer, site, x, shape, i) for x in args])
        for i in itertools.product(*map(range, shape))
    ]
    if ufunc in COMPARE:
        return meaning.calls.call(
            tracer, site, np.array, (np.array(found, bool).reshape(shape),), {}
        )
    if all(is_one_of(type(x), SCALARS) for x in found):
        objects = np.empty(len(found), object)
        objects[:] = found
        return objects.reshape(shape)
    kind = next((type(x).__name__ for x in args if is_object(x)), "object")
    raise TraceError(
        f"{blame(site)}: {ufunc.__name__} makes an array of objects out of an array of numbers and "
        f"{with_article(kind)}, through "
        f"which no gradient can be followed\ngive {kind} an __array_ufunc__, or write the loop in Python"
    )


def element(tracer: Tracer, site: Site, value: Any, shape: Any, index: Any) -> Any:
    if is_object(value):
        return value
    whole = meaning.calls.call(tracer, site, np.broadcast_to, (value, shape), {})
    return item(tracer, site, protocols.get_item(tracer, site, whole, index))


def of_items(tracer: Tracer, site: Site, ufunc: Any, items: list[Any]) -> Any:
    op = OPERATORS.get(ufunc)
    if op is not None:
        result = operators.operate(tracer, site, op, *items)
        return np.bool_(protocols.truth(tracer, site, result)) if ufunc in COMPARE else result
    if len(items) == 1 and hasattr(items[0], ufunc.__name__):
        method = meaning.attributes.load(tracer, site, items[0], ufunc.__name__)
        return meaning.calls.call(tracer, site, method, (), {})
    return meaning.opaque.opaque(tracer, site, ufunc, tuple(items), {})


CORE = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
_internal: Any = importlib.import_module(f"{CORE}._internal")
