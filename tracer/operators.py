"""Operators, by the order in which CPython asks the special methods of their operands.

Words
-----
slot       what CPython holds of a class for one operator: the C function of a native class, or one that looks for
           the two special methods (``__add__``, ``__radd__``) of which at least one is written in Python.
forward    the special method of the left operand's class; ``reflected`` the one of the right operand's.
decline    to return NotImplemented, so that the other operand is asked.
sequence   a native class whose ``+`` and ``*`` are no arithmetic: they are tried when everybody else has declined.
"""

from __future__ import annotations

import array
import operator
import sys
import types
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from ..rules.operators import power_in_place
from ..rules.words import with_article
from . import escape, marks, meaning, protocols, seals
from .arrays import is_traced_array, refusing, write_all
from .border import COLLECTIONS
from .box import BOXES, ArrayBox, Box
from .errors import TraceError
from .frames import MUTABLE
from .kinds import has, is_one_of, isinstance
from .protocols import SEQUENCES
from .reads import HEAP_TYPE, MISSING
from .record import as_known, record
from .session import Tracer
from .slots import (
    FunctionType,
    blank,
    bound,
    flags_of,
    invoke,
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
from .text import PRIVATE, STRINGS

INPLACE = {
    getattr(operator, f"i{name}"): getattr(operator, plain)
    for name, plain in (
        [(x, x) for x in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()]
        + [("and", "and_"), ("or", "or_")]
    )
}
INPLACE_NAMES = {op: f"__{op.__name__}__" for op in INPLACE}
SLOTS = {
    op: (f"__{name}__", f"__r{name}__")
    for op, name in [(op, op.__name__.strip("_")) for op in INPLACE.values()]
    + [(divmod, "divmod"), (pow, "pow")]
}
BINARY = frozenset(SLOTS)
SWAPPED = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}
SWAPPED |= {"__eq__": "__eq__", "__ne__": "__ne__"}
COMPARE = {getattr(operator, name): name for name in SWAPPED}
UNARY = {
    operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__", operator.abs: "__abs__",
    abs: "__abs__",
}  # fmt: skip

EXACT = frozenset((int, float, complex, bool))


def apply(
    tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An operator on operands of which at least one is a box, an object, or sealed."""
    if len(args) == 1:
        args = (meaning.sights.behind_proxy(tracer, site, args[0]),)
    if tracer.readable and (found := seals.seals_of(tracer, filter(seals.is_one_number, args))):
        return seals.through(tracer, site, found, apply, site, op, args, kwargs)
    if is_object(args[0]) or (len(args) > 1 and is_object(args[1])):
        if op in COMPARE:
            return compare(tracer, site, op, *args)
        if op in INPLACE:
            return in_place(tracer, site, op, *args)
        if op in BINARY and len(args) == 2:
            return binary(tracer, site, op, *args)
        return power(tracer, site, *args) if len(args) == 3 else unary(tracer, site, op, *args)
    return native(tracer, site, op, args, kwargs)


def operate(tracer: Tracer, site: Site, op: Any, left: Any, right: Any) -> Any:
    """An operator on any two values."""
    left, right = [meaning.sights.behind_proxy(tracer, site, x) for x in (left, right)]
    in_place = op in INPLACE and is_one_of(type(left), MUTABLE) and not is_object(right)
    if in_place and not is_for_array(op, left, right):
        right = count(right) if is_integer(right) else right
        if op is operator.iadd and id(right) in tracer.resuming:
            right = protocols.item_by_item(tracer, site, right)
        if op is operator.ior and isinstance(left, dict):
            right = meaning.foreign.taken(tracer, site, right, True)
        if not is_one_of(type(right), BOXES):
            return meaning.writers.write_container(tracer, site, op, left, (right,), {})
    return apply(tracer, site, op, (left, right), {})


def is_for_array(op: Any, left: Any, right: Any) -> bool:
    """Whether ``list += right`` is not for the list to do: NumPy is asked first, and makes a new array."""
    if type(left) is not list and type(left) is not deque:
        return False
    value = plain_of(right)
    return isinstance(value, np.ndarray) or (op is operator.iadd and isinstance(value, np.generic))


# ------------------------------------------------------------------------------------------ arithmetic


def binary(tracer: Tracer, site: Site, op: Any, left: Any, right: Any, shown: Any = None) -> Any:
    """``left + right``; ``shown`` is the operator that an error names, if it is another."""
    result = binary_slots(tracer, site, op, left, right)
    if result is NotImplemented:
        result = by_sequence(tracer, site, op, shown or op, left, right)
    if result is not NotImplemented:
        return result
    return unsupported(shown or op, left, right)


def unsupported(op: Any, *operands: Any) -> Any:
    """Raise what CPython raises where every operand has declined."""
    op(*map(blank, operands))
    raise TypeError(f"unsupported operand types for {op.__name__}")


def in_place(tracer: Tracer, site: Site, op: Any, left: Any, right: Any) -> Any:
    """``left += right``."""
    found = special(left, INPLACE_NAMES[op])
    if is_python(found):
        result = invoke(tracer, site, found, left, right)
    elif found is not MISSING and sequence_of(kind_of(left)) is None:
        result = native_slot(tracer, site, found, left, right)
    elif (
        op is operator.iadd
        and found is not MISSING
        and kind_of(left) is not native_base(kind_of(left))
    ):
        return extended(
            tracer, site, found, left, right
        )  # a derived class is asked before the other operand
    else:
        result = NotImplemented
    if result is not NotImplemented:
        return result
    return binary(tracer, site, INPLACE[op], left, right, op)


def extended(tracer: Tracer, site: Site, method: Any, sequence: Any, values: Any) -> Any:
    """What the native ``__iadd__`` of a sequence makes of it."""
    protocols.looked_at(tracer, site, sequence, values)
    items = protocols.item_by_item(tracer, site, values)
    return meaning.writers.write_container(tracer, site, method, sequence, (items,), {})


def has_python_slot(value: Any, names: tuple[str, str]) -> bool:
    """Whether CPython would look for special methods in Python to operate on a value."""
    kind = type(value)
    if not flags_of(kind) & HEAP_TYPE or is_one_of(kind, PRIVATE):
        return False
    return is_python(special(value, names[0])) or is_python(special(value, names[1]))


def native_method(value: Any, name: str) -> Any:
    """The slot of a native class, as the special method that calls it; MISSING for one of sequences."""
    kind = kind_of(value)
    found = special(value, name)
    if found is MISSING or is_python(found):
        return MISSING
    return MISSING if name in OF_SEQUENCES and sequence_of(kind) is not None else found


OF_SEQUENCES = frozenset(("__add__", "__mul__", "__rmul__", "__iadd__", "__imul__"))


def sequence_of(kind: type) -> Any:
    """The native class of sequences that a class derives from, or None."""
    base = native_base(kind)
    members = vars(base)
    return base if "__add__" in members and "__radd__" not in members else None


def binary_slots(tracer: Tracer, site: Site, op: Any, left: Any, right: Any) -> Any:
    """What the slots of two operands make of them: CPython's ``binary_op1``."""
    names = forward, reflected = SLOTS[op]
    a, b = kind_of(left), kind_of(right)
    of_left = has_python_slot(left, names)
    of_right = a is not b and has_python_slot(right, names)
    if of_left:
        result = looked_up(tracer, site, names, left, right, of_right)
        if result is NotImplemented and not of_right and a is not b:
            found = native_method(right, reflected)
            if found is not MISSING:
                result = native_slot(tracer, site, found, right, left)
        return result
    first = native_method(left, forward)
    if not of_right:
        return native_slots(tracer, site, op, left, right, first)
    found = special(right, reflected)
    asked = found is MISSING
    if first is not MISSING and not asked and is_subtype(b, a):
        asked = True
        result = invoke(tracer, site, found, right, left)
        if result is not NotImplemented:
            return result
    if first is not MISSING:
        result = native_slot(tracer, site, first, left, right)
        if result is not NotImplemented:
            return result
    return NotImplemented if asked else invoke(tracer, site, found, right, left)


def looked_up(
    tracer: Tracer, site: Site, names: tuple[str, str], left: Any, right: Any, other: bool
) -> Any:
    """What a class with special methods in Python makes of its object on the left: CPython's ``slot_nb_add``."""
    found, reflected = special(left, names[0]), MISSING
    if other:
        reflected = special(right, names[1])
        overloaded = reflected is not MISSING and reflected is not special(left, names[1])
        if overloaded and is_subtype(type(right), type(left)):
            result = invoke(tracer, site, reflected, right, left)
            if result is not NotImplemented:
                return result
            reflected = MISSING
    if found is not MISSING:
        result = invoke(tracer, site, found, left, right)
        if result is not NotImplemented:
            return result
    return NotImplemented if reflected is MISSING else invoke(tracer, site, reflected, right, left)


def native_slots(tracer: Tracer, site: Site, op: Any, left: Any, right: Any, first: Any) -> Any:
    """Two operands without special methods in Python, of which one is an object of a class of its own."""
    second = native_method(right, SLOTS[op][1])
    order = [(first, left, right), (second, right, left)]
    if is_subtype(kind_of(right), kind_of(left)) and kind_of(right) is not kind_of(left):
        order.reverse()
    for found, one, other in order:
        if found is not MISSING:
            result = native_slot(tracer, site, found, one, other)
            if result is not NotImplemented:
                return result
    return NotImplemented


OPERATORS = {name: op for op, names in SLOTS.items() if op is not pow for name in names}
OPERATORS |= {name: op for op, name in COMPARE.items()}
OPERATORS |= {name: op for op, name in INPLACE_NAMES.items()}


def native_slot(tracer: Tracer, site: Site, found: Any, value: Any, other: Any) -> Any:
    """What a native class makes of its ``value`` and an ``other``: a result, or NotImplemented.

    ``found`` is its special method, forward or reflected.
    """
    op = OPERATORS[found.__name__]
    reflected = op in BINARY and found.__name__ == SLOTS[op][1]
    left, right = (other, value) if reflected else (value, other)
    if tracer.readable and (behind := seals.seals_of(tracer, (value, other))):
        return seals.through(tracer, site, behind, native_slot, site, found, value, other)
    if op in INPLACE and type(value) is ArrayBox:
        how = meaning.overrides.update if is_object(other) else update
        return how(tracer, site, op, value, other)
    if issubclass(found.__objclass__, (np.ndarray, np.generic)) and not is_object(value):
        return meaning.overrides.by_numpy(tracer, site, op, left, right, reflected)
    protocols.looked_at(tracer, site, value, other)
    if op in COMPARE:
        protocols.compared(tracer, value, other)
    if not is_one_of(type(value), BOXES) and not is_one_of(type(other), BOXES):
        if op in INPLACE and isinstance(value, COLLECTIONS):
            if op is operator.ior and isinstance(value, dict):
                ordered = isinstance(value, OrderedDict)
                other = meaning.foreign.taken(tracer, site, other, True, ordered)
            return meaning.writers.write_container(tracer, site, found, value, (other,), {})
        return marks.operate(tracer, site, found, (value, other))
    if issubclass(found.__objclass__, np.ndarray):
        return meaning.opaque.opaque(tracer, site, op, (left, right), {})
    result = escape.watched(found, (plain_of(value), plain_of(other)), {}, site)
    if result is NotImplemented:
        return result
    if found.__objclass__ in EXACT:
        return record(
            tracer, site, op, (number(tracer, site, left), number(tracer, site, right)), {}
        )
    return meaning.opaque.opaque(tracer, site, op, (left, right), {})


def own_slot(tracer: Tracer, site: Site, box: Box, name: str, other: Any) -> Any:
    """A special method of a box, which C code has called: whom to ask next is for C code to say.

    But a class that derives from the number's is asked first, and CPython does not know that it does.
    """
    op = OPERATORS[name]
    if op is operator.eq and type(box) is Box and box.value != box.value:
        if (
            tracer.reads is not None
        ):  # containers look at which objects they are, before they compare
            tracer.reads.problem("a NaN is looked for", site)
        if plain_of(other) is box.value:
            return True
    elif op is operator.eq:
        protocols.note_no_nan(tracer, site, box, other)
    reflected = op in BINARY and name == SLOTS[op][1]
    left, right = (other, box) if reflected else (box, other)
    if op in INPLACE:
        return apply(tracer, site, op, (left, right), {})
    names = (COMPARE[op], SWAPPED[COMPARE[op]]) if op in COMPARE else SLOTS[op]
    if is_one_of(type(other), BOXES) or is_one_of(type(other), EXACT):
        return native(tracer, site, op, (left, right), {})
    own = isinstance(other, np.generic) or has_python_slot(other, names)
    if not reflected and own and is_subtype(type(other), kind_of(box)):
        return apply(tracer, site, op, (left, right), {})
    if op in COMPARE:
        return compare_slot(tracer, site, name, box, other)
    found = native_method(box, name)
    return NotImplemented if found is MISSING else native_slot(tracer, site, found, box, other)


def number(tracer: Tracer, site: Site, value: Any) -> Any:
    """A number as Python's own arithmetic takes it: of a class that derives from one of Python's, the bare number."""
    plain = plain_of(value)
    base = next(x for x in (bool, int, float, complex) if isinstance(plain, x))
    if type(plain) is base:
        return value
    if type(value) is Box:
        return record(tracer, site, base, (value,), {})
    return base.__pos__(value) if base is not complex else complex.__add__(value, 0)


def by_sequence(tracer: Tracer, site: Site, op: Any, shown: Any, left: Any, right: Any) -> Any:
    """``+`` and ``*`` of a list and the like, where no operand's arithmetic has taken charge."""
    if tracer.readable and (behind := seals.seals_of(tracer, (left, right))):
        return seals.through(tracer, site, behind, by_sequence, site, op, shown, left, right)
    if op is operator.add:
        base = sequence_of(kind_of(left))
        if base is None or is_python(special(left, "__add__")):
            return NotImplemented
        if shown is operator.iadd and "__iadd__" in vars(base):
            return extended(tracer, site, base.__iadd__, left, right)
        protocols.looked_at(tracer, site, left, right)
        return marks.operate(tracer, site, base.__add__, (left, right), (left, plain_of(right)))
    if op is not operator.mul:
        return NotImplemented
    protocols.looked_at(tracer, site, left, right)
    for sequence, count in ((left, right), (right, left)):
        base = sequence_of(kind_of(sequence))
        names = ("__mul__", "__rmul__")
        if base is not None and not any(is_python(special(sequence, name)) for name in names):
            if shown is operator.imul and sequence is right and has_parts(left):
                return NotImplemented
            if special(count, "__index__") is MISSING:
                empty = array.array("d") if base is array.array else base.__new__(base)
                return shown(empty, blank(count))  # raises what plain Python raises
            count = plain_of(protocols.position(tracer, site, count))
            if shown is operator.imul and sequence is left and "__imul__" in vars(base):
                return meaning.writers.write_container(
                    tracer, site, base.__imul__, left, (count,), {}
                )
            return marks.operate(tracer, site, base.__mul__, (sequence, count))
    return NotImplemented


def has_parts(value: Any) -> bool:
    """Whether CPython could take a value for a sequence of some kind."""
    return is_object(value) or has(kind_of(value), "__contains__")


def power(tracer: Tracer, site: Site, base: Any, exponent: Any, modulus: Any) -> Any:
    """``pow(base, exponent, modulus)``."""
    found = special(base, "__pow__")
    if found is MISSING and sys.version_info < (3, 14) and has_python_slot(base, SLOTS[pow]):
        raise AttributeError("__pow__")
    if is_python(found):
        result = invoke(tracer, site, found, base, exponent, modulus)
        if result is not NotImplemented:
            return result
    elif found is not MISSING:
        declines = has_python_slot(exponent, SLOTS[pow])
        given = blank(exponent) if declines else plain_of(exponent)
        return marks.operate(tracer, site, pow, tuple(map(plain_of, (base, given, modulus))))
    found = python_special(exponent, "__rpow__")
    if found is not MISSING and sys.version_info >= (3, 14):
        result = invoke(tracer, site, found, exponent, base, modulus)
        if result is not NotImplemented:
            return result
    return unsupported(pow, base, exponent, modulus)


# ------------------------------------------------------------------------------- comparisons and signs


def compare(tracer: Tracer, site: Site, op: Any, left: Any, right: Any) -> Any:
    """``left < right``: CPython's ``do_richcompare``."""
    left, right = [meaning.sights.behind_proxy(tracer, site, x) for x in (left, right)]
    name = COMPARE[op]
    a, b = kind_of(left), kind_of(right)
    first = a is not b and is_subtype(b, a)
    if first:
        result = compare_slot(tracer, site, SWAPPED[name], right, left)
        if result is not NotImplemented:
            return result
    result = compare_slot(tracer, site, name, left, right)
    if result is NotImplemented and not first:
        result = compare_slot(tracer, site, SWAPPED[name], right, left)
    if result is not NotImplemented:
        return result
    if name in ("__eq__", "__ne__"):
        return is_same(tracer, left, right) is (name == "__eq__")
    return unsupported(op, left, right)


def is_same(tracer: Tracer, left: Any, right: Any) -> bool:
    """Whether two values are one object, which is looked at."""
    protocols.compared(tracer, left, right)
    return plain_of(left) is plain_of(right)


def compare_slot(tracer: Tracer, site: Site, name: str, value: Any, other: Any) -> Any:
    """What the class of a value makes of a comparison with another: a result, or NotImplemented."""
    found = special(value, name)
    if is_python(found):
        if type(found) is FunctionType:
            return invoke(tracer, site, found, value, other)
        try:
            method = bound(tracer, site, found, value)
        except Exception:  # which CPython takes for a method that is not there
            return NotImplemented
        return meaning.calls.call(tracer, site, method, (other,), {})
    if found.__objclass__ is not object:
        return native_slot(tracer, site, found, value, other)
    if name == "__eq__":
        return True if is_same(tracer, value, other) else NotImplemented
    return differs(tracer, site, value, other) if name == "__ne__" else NotImplemented


def differs(tracer: Tracer, site: Site, value: Any, other: Any) -> Any:
    """``object.__ne__``: the contrary of the class's ``__eq__``, unless that declines."""
    result = compare_slot(tracer, site, "__eq__", value, other)
    return result if result is NotImplemented else not protocols.truth(tracer, site, result)


def unary(tracer: Tracer, site: Site, op: Any, value: Any) -> Any:
    """``-value``."""
    found = special(value, UNARY[op])
    if is_python(found):
        return invoke(tracer, site, found, value)
    if found is MISSING:
        return op(blank(value))  # raises what plain Python raises
    if tracer.readable and (behind := seals.seals_of(tracer, (value,))):
        return seals.through(tracer, site, behind, unary, site, op, value)
    protocols.looked_at(tracer, site, value)
    return marks.operate(tracer, site, op, (value,))


# ---------------------------------------------------------------------------------- numbers and arrays


def native(
    tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An operator on numbers, arrays and built-in containers."""
    if tracer.arrays:
        args = as_known(tracer, args)
    left = args[0]
    if op in COMPARE:
        protocols.compared(tracer, *args)
        if (
            is_one_of(type(left), BOUND)
            and type(left) is type(args[1])
            and op in (operator.eq, operator.ne)
        ):
            return is_same_method(tracer, left, args[1]) is (op is operator.eq)
    if op in INPLACE and is_traced_array(left):
        left = meaning.boxing.enter(tracer, left, "array")
    if op in INPLACE and type(left) is ArrayBox:
        return update(tracer, site, op, left, args[1])
    if tracer.readable and (found := seals.seals_of(tracer, args)):
        return seals.through(tracer, site, found, native, site, op, args, kwargs)
    if is_one_of(type(left), STRINGS):
        rest = [protocols.drawn(tracer, x) for x in args[1:]]
        return marks.operate(tracer, site, op, args, (left, *rest))
    if op in INPLACE:
        if is_one_of(type(left), BOXES) or special(left, INPLACE_NAMES[op]) is MISSING:
            return immutable(tracer, site, op, args)
        if is_for_array(op, left, args[1]):
            return native(tracer, site, INPLACE[op], args, kwargs)
        if isinstance(left, COLLECTIONS):
            right = count(args[1]) if op is operator.imul and type(args[1]) is Box else args[1]
            return meaning.writers.write_container(tracer, site, op, left, (right,), {})
        if tracer.reads is not None:
            tracer.reads.problem(f"{with_article(type(left).__name__)} is changed in place", site)
    if op not in NOT_OF_SCALARS and any(isinstance(plain_of(x), np.generic) for x in args):
        # NumPy's scalars make arrays of lists and tuples.
        args = tuple([as_array(tracer, site, x) for x in args])
    if (
        len(args) == 2
        and (is_one_of(type(left), SEQUENCES) or is_one_of(type(args[1]), SEQUENCES))
        and not any(type(x) is ArrayBox for x in args)
    ):
        operands = tuple([count(x) for x in args])
        return marks.operate(tracer, site, op, args, operands)
    if not any(type(x) is Box or type(x) is ArrayBox for x in args):
        if tracer.reads is not None:
            for x in args:
                tracer.reads.looked_into(x, site)
            tracer.reads.computes(op, args, site)
        return marks.operate(tracer, site, op, args)
    if any(type(x) is list or type(x) is tuple for x in args) and (op in BINARY or op in COMPARE):
        if op in COMPARE and type(left) in (list, tuple):  # which leaves it to the array
            op, args = OPERATORS[SWAPPED[COMPARE[op]]], args[::-1]
        args = tuple([as_array(tracer, site, x) for x in args])
    return record(tracer, site, op, args, kwargs)


BOUND = frozenset((types.BuiltinFunctionType, types.MethodWrapperType))


def is_same_method(tracer: Tracer, left: Any, right: Any) -> bool:
    """Whether two bound methods written in C are equal: those of a container outside and of its shadow are."""
    owners = [tracer.originals.get(id(x), (None, x))[1] for x in (left.__self__, right.__self__)]
    return left.__name__ == right.__name__ and owners[0] is owners[1]


def immutable(tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...]) -> Any:
    """``x += y`` of what cannot be changed."""
    try:
        return native(tracer, site, INPLACE[op], args, {})
    except TypeError as error:
        failed = error
    op(*map(plain_of, args))  # which names the operator as it stands in the program
    raise failed


def is_integer(value: Any) -> bool:
    return type(value) is Box and isinstance(value.value, (int, np.integer))


def count(value: Any) -> Any:
    """How often a sequence is repeated: what is no integer is left for Python to refuse."""
    return protocols.draw(value, operator.index) if is_integer(value) else plain_of(value)


# ``*`` is Python's repetition, and NumPy's scalars have no ``@``.
NOT_OF_SCALARS = frozenset((operator.mul, operator.matmul))


def as_array(tracer: Tracer, site: Site, value: Any) -> Any:
    """A list or tuple as NumPy takes it for an operand; anything else as it is."""
    return (
        meaning.calls.call(tracer, site, np.array, (value,), {})
        if is_one_of(type(value), (list, tuple))
        else value
    )


def update(tracer: Tracer, site: Site, op: Any, target: ArrayBox, value: Any) -> ArrayBox:
    """``a += v``: the array is written to, and stays the same array."""
    asks_first = op is operator.imatmul and np.ndim(meaning.unboxing.lower(tracer, value)) < 2
    if asks_first or not target.value.flags.writeable:
        op(
            refusing(target.value), meaning.unboxing.lower(tracer, value)
        )  # raises what plain Python raises, before anything is computed
    new: Any = None
    failed: Exception | None = None
    functional = INPLACE[op]
    if op is operator.ipow and target.value.dtype.kind == "c":
        functional = power_in_place
    try:
        new = meaning.calls.call(tracer, site, functional, (target, value), {})
    except Exception as error:
        failed = error
    if is_one_of(type(new), BOXES) and (
        new.value.shape == target.value.shape or np.ndim(target.value) >= np.ndim(new.value)
    ):
        try:
            write_all(target, new.op, site)
            return target
        except (TypeError, ValueError):
            pass
    op(
        refusing(target.value), meaning.unboxing.lower(tracer, value)
    )  # raises what plain Python raises
    if failed is not None:
        raise failed
    raise TraceError(
        f"{site}: the in-place operation {op.__name__} could not be followed\nwrite x = x + y for x += y"
    )
