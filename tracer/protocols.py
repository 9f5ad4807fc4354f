"""Truth, length, iteration, items and conversions, by CPython's own protocols.

Words
-----
protocol   which special methods CPython asks, in which order, and what it takes for an answer.
object     a value whose class may have special methods in Python: their twins are called.
stand-in   what C code is handed in the place of an object, so that it calls the twins (see ``stand_ins``).
draw       take a plain bool, int or string out of a box, and note it as a guard.
"""

from __future__ import annotations

import array
import cmath
import gc
import itertools
import math
import operator
import sys
import types
import warnings
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.mutation import reused as as_many
from ..rules.python_builtins import pick
from ..rules.words import with_article
from . import marks, meaning, memos, seals, stand_ins
from .active import active
from .arrays import is_traced_array, must_be_apart, owner_of, phantom, save
from .arrays import write_item as write_array_item
from .border import COLLECTIONS, is_constant, is_iterator, reflected
from .box import BOXES, ArrayBox, Box, lost
from .errors import TraceError, WengertError
from .frames import items_of, native
from .held import Held, lent_by
from .kinds import classes_of, hashes_natively, is_one_of, isinstance
from .loops import is_fixed
from .places import blame, user_site
from .reads import BY_VALUE, MISSING, static
from .record import decide, failed_by_value, has_box, operand, record, stored
from .session import Tracer
from .shown import C_DATA
from .slots import (
    blank,
    double,
    invoke,
    is_native,
    is_object,
    is_python,
    kind_of,
    plain_of,
    python_special,
    special,
    verdict,
)
from .structure import is_container
from .tape import Op, Site, primal
from .text import STRINGS, bare
from .text import drawn as drawn_text
from .ties import note_identity


def method_of(value: Any, name: str) -> Any:
    """The special method of an object's class, if it is a Python function; else None."""
    found = python_special(value, name)
    return found if type(found) is types.FunctionType else None


def is_iterable(value: Any) -> bool:
    """Whether a value is an iterator, or an object whose class makes it iterable."""
    return (
        type(value) is types.GeneratorType
        or is_iterator(value)
        or method_of(value, "__iter__") is not None
    )


def is_numeric(value: Any) -> bool:
    """Whether an operator on a value is NumPy's or Python's arithmetic of numbers."""
    return not (
        is_one_of(type(value), SEQUENCES) or is_one_of(type(value), UNORDERED) or is_object(value)
    )


UNORDERED = frozenset((dict, set, frozenset))


def is_number(value: Any) -> bool:
    """Whether a value is a number, traced or not."""
    return isinstance(plain_of(value), (int, float, np.number))


DIGITS = 640  # of a number that may be made text, or of text one, whatever ``sys.set_int_max_str_digits`` says


def note_digits(tracer: Tracer, site: Site, value: Any) -> None:
    """Note that a number is turned into text, or text into a number: how long it may be is a setting."""
    if tracer.reads is None:
        return
    if (type(value) is int and value.bit_length() > 3 * DIGITS) or (
        is_one_of(type(value), (str, bytes)) and len(value) > DIGITS
    ):
        tracer.reads.problem("how many digits a number may have as text is a setting", site)


def hashable(value: Any) -> bool:
    if not hashes_natively(type(value)):
        return False  # the user's own, and not ours to run
    try:
        hash(value)
    except (TypeError, ValueError):  # which a memoryview raises
        return False
    return True


# ------------------------------------------------------------------------------------------- operators


def operate(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """An operation that reached a box through C code or through Python code without hooks."""
    tracer, site = tracer_and_site()
    if any(map(is_object, args)):
        return meaning.calls.call(tracer, site, op, args, kwargs or {})
    return meaning.operators.native(tracer, site, op, args, kwargs or {})


AFTER = "use it in the function that is differentiated, or let that return it (docs/errors.md#other-threads)"


def tracer_and_site() -> tuple[Tracer, Site]:
    """The tracer of this thread, and the line where the user's program is."""
    tracer = active.tracer
    site = user_site()
    if tracer is None:
        raise TraceError(
            f"{site}: a traced value is used after its run has ended, or in another thread\n{AFTER}"
        )
    return tracer, site


def operate_slot(box: Box, name: str, other: Any) -> Any:
    """A special method of a box, which C code calls: what the class of the number makes of it, or NotImplemented."""
    tracer, site = tracer_and_site()
    result = meaning.operators.own_slot(tracer, site, box, name, other)
    if result is NotImplemented:
        tracer.declined = type(box.value)
    return result


def operate_index(box: Box, index: int) -> Any:
    """``box[index]``."""
    return operate(operator.getitem, (box, index))


# --------------------------------------------------------------------------------------- plain values


def draw(box: Box, how: Callable[[Any], Any]) -> Any:
    """Take a plain value out of a box, and note what the program saw. A string is marked."""
    tracer = active.tracer
    if tracer is not None and how is not bool:
        note_digits(tracer, box.op.site, box.value)
    value = how(box.value)
    if tracer is not None:
        op = operand(box, [])
        if isinstance(box.value, np.ndarray) and how is not bool:
            if tracer.reads is not None:
                tracer.reads.problem("the elements of an array become a string", op.site)
        else:
            decide(tracer, op, box.value if how is not bool else value)
        if type(value) is str:
            if tracer.reads is not None and isinstance(box.value, np.generic):
                tracer.reads.shown([box.value], op.site)
            return drawn_text(tracer, op, value, user_site())
    return value


def given(box: Box, where: str) -> Any:
    """The plain value of a box for code that records nothing; an error, where that has a derivative."""
    tracer = active.tracer
    op = operand(box, [])
    if tracer is None or tracer.dependence.has(op):
        raise lost(box, where)
    return seen(tracer, box, op)


def seen(tracer: Tracer, box: Box, op: Op) -> Any:
    """The plain value of a box, of which the program has seen all."""
    if isinstance(box.value, np.ndarray):
        if tracer.reads is not None:
            tracer.reads.problem("an array is read by code that records nothing", op.site)
    else:
        decide(tracer, op, box.value)
    return box.value


def plain_key(key: Any) -> Any:
    """A plain value: what stands in a box is noted as seen."""
    return draw(key, lambda value: value) if is_one_of(type(key), BOXES) else key


def shown(box: Box) -> Any:
    """The plain number of a box that becomes part of a string."""
    draw(box, str)  # which notes where the string comes from
    return box.value


def drawn(tracer: Tracer, value: Any, made: dict[int, Any] | None = None) -> Any:
    """The plain value of a nested argument that becomes part of a string, with guards on all of it.

    ``made`` has what was made of lists and dicts already: one may contain itself.
    """
    made = {} if made is None else made
    if is_one_of(type(value), BOXES):
        return draw(value, lambda plain: plain)
    if type(value) is tuple:
        return tuple([drawn(tracer, x, made) for x in value])
    if id(value) in made:
        return made[id(value)]
    if type(value) is list:
        made[id(value)] = plain = []
        plain += [drawn(tracer, x, made) for x in value]
        return plain
    if isinstance(value, dict):
        made[id(value)] = table = {}
        # Whoever makes the string asks a method of the user's: here it would be asked twice.
        items = dict.items if is_python(static(type(value), "items")) else type(value).items
        table.update({plain_key(k): drawn(tracer, x, made) for k, x in items(value)})
        return table
    return value


def looked_at(tracer: Tracer, site: Site, *values: Any) -> None:
    """Note that methods written in C look at values: at numbers of derived classes, at collections."""
    reads = tracer.reads
    if reads is not None:
        for x in values:
            reads.pin(x)
            if is_native(type(x)) or isinstance(x, COLLECTIONS):
                reads.looked_into(x, site)


def answer(
    tracer: Tracer,
    site: Site,
    value: Any,
    found: Any,
    name: str,
    wanted: type,
    how: Callable[[Any], Any],
    *args: Any,
) -> Any:
    """What a special method answers, where CPython takes nothing but a plain ``wanted``: that, or CPython's error."""
    if found is None:
        return how(double(kind_of(value), {name: None}))  # raises what plain Python raises
    result = plain_key(invoke(tracer, site, found, value, *args))
    return result if kind_of(result) is wanted else verdict(value, name, result, how)


def truth(tracer: Tracer, site: Site, value: Any) -> bool:
    """The truth of a value."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    kind = type(value)
    if is_one_of(kind, BOXES):
        return draw(value, bool)
    if not is_object(value):
        return bool(value)
    found = special(value, "__bool__")
    if found is not MISSING:
        if is_python(found):
            return answer(tracer, site, value, found, "__bool__", bool, bool)
        looked_at(tracer, site, value)
        return bool(value)
    if python_special(value, "__len__") is MISSING:
        looked_at(tracer, site, value)
        return bool(value)
    return length(tracer, site, value) != 0


def length(tracer: Tracer, site: Site, value: Any) -> Any:
    """``len(value)``."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    found = python_special(value, "__len__")
    if found is MISSING:
        looked_at(tracer, site, value)
        return len(value)
    result = answer(tracer, site, value, found, "__len__", int, len)
    return result if 0 <= result <= sys.maxsize else verdict(value, "__len__", result, len)


def index_method(value: Any) -> Any:
    """The ``__index__`` in Python that CPython asks: not that of an integer, which is one already."""
    return MISSING if issubclass(type(value), int) else python_special(value, "__index__")


def index(tracer: Tracer, site: Site, value: Any) -> Any:
    """The integer that an object stands for, in a box if it is traced; any other value as it is."""
    found = index_method(value)
    if found is MISSING:
        if is_object(value):
            looked_at(tracer, site, value)
        return value
    result = invoke(tracer, site, found, value)
    plain = plain_of(result)
    return result if type(plain) is int else verdict(value, "__index__", plain, operator.index)


def position(tracer: Tracer, site: Site, value: Any) -> Any:
    """The same of an index: what is no position at all is left for C code to refuse."""
    found = index_method(value)
    if found is MISSING:
        return index(tracer, site, value)
    result = invoke(tracer, site, found, value)
    plain = plain_of(result)
    if type(plain) is int and abs(plain) <= sys.maxsize:
        return result
    return double(kind_of(value), {"__index__": lambda _: plain})


def indices(tracer: Tracer, site: Site, key: Any) -> Any:
    """What stands between the brackets of a list or an array, with integers in the place of objects."""
    if type(key) is slice:
        step = position(tracer, site, key.step)  # which CPython asks first
        return slice(position(tracer, site, key.start), position(tracer, site, key.stop), step)
    if type(key) is tuple:
        return tuple([indices(tracer, site, x) for x in key])
    return position(tracer, site, key)


def hash_of(tracer: Tracer, site: Site, value: Any) -> int:
    """``hash(value)``."""
    found = python_special(value, "__hash__")
    if found is MISSING:
        looked_at(tracer, site, value)
        return hash(value)
    if found is None:
        kind = kind_of(value)
        return hash(plain_of(value) if is_native(kind) else double(kind, {"__hash__": None}))
    result = plain_key(invoke(tracer, site, found, value))
    return verdict(value, "__hash__", result, hash)


def number(tracer: Tracer, site: Site, cls: type, value: Any) -> Any:
    """The number of one of Python's classes that an object's methods in Python make of it; else the object itself."""
    name = f"__{cls.__name__}__"
    found = python_special(value, name)
    if found is not MISSING:
        result = invoke(tracer, site, found, value)
        plain = plain_of(result)
        if type(plain) is cls:
            return result
        plain = verdict(value, name, plain, cls)
        return plain if result is plain_of(result) else record(tracer, site, cls, (result,), {})
    if special(value, name) is not MISSING:
        looked_at(tracer, site, value)
        return value
    if cls is complex and special(value, "__float__") is not MISSING:
        inner = number(tracer, site, float, value)
    else:
        inner = index(tracer, site, value)
    return value if inner is value else meaning.calls.call(tracer, site, cls, (inner,), {})


def taken_as(tracer: Tracer, site: Site, cls: type, value: Any) -> Any:
    """The same for C code that wants such a number: of what is one already no method is asked."""
    return value if issubclass(type(value), cls) else number(tracer, site, cls, value)


ROUNDING = {
    round: "__round__",
    math.floor: "__floor__",
    math.ceil: "__ceil__",
    math.trunc: "__trunc__",
}


def rounded(tracer: Tracer, site: Site, fn: Any, value: Any, *digits: Any) -> Any:
    """``round(value, digits)``, ``math.floor(value)`` … of an object; MISSING where it is to become a float first."""
    found = special(value, ROUNDING[fn])
    if is_python(found):
        return invoke(tracer, site, found, value, *[x for x in digits if x is not None])
    if found is not MISSING:
        looked_at(tracer, site, value)
        if tracer.reads is not None and digits:
            tracer.reads.rounded([value], site)
        return meaning.escape.watched(fn, (value, *digits), {}, site)
    return MISSING if fn in (math.floor, math.ceil) else fn(blank(value), *digits)


INTEGRAL = frozenset((math.gcd, math.lcm, math.comb, math.perm, math.factorial, math.isqrt))


MULTIPLYING = frozenset((math.prod, getattr(math, "sumprod", None)))  # by the operator
OF_ITEMS = frozenset((math.fsum, math.dist)) | MULTIPLYING


def of_math(tracer: Tracer, site: Site, fn: Any, value: Any) -> Any:
    """An argument of a function of the module ``math``, with the numbers that objects stand for."""
    derived = is_object(value) and isinstance(value, (list, tuple))
    if fn in OF_ITEMS and (derived or is_iterable(value) or holds_objects(value)):
        if fn is math.fsum:
            return [summand(tracer, site, x) for x in iter(iterate_object(tracer, site, value))]
        if fn is not math.dist:
            return [*iter(iterate_object(tracer, site, value))]
        if isinstance(value, tuple):  # which it reads by itself
            items = [*tuple.__iter__(value)]
        else:
            items = [*tuple(item_by_item(tracer, site, value))]  # which asks what C code does
        return [of_math(tracer, site, fn, x) for x in items]
    if not is_object(value) or (fn is math.ldexp and issubclass(type(value), int)):
        return value
    return index(tracer, site, value) if fn in INTEGRAL else taken_as(tracer, site, float, value)


def summand(tracer: Tracer, site: Site, value: Any) -> Any:
    """What ``math.fsum`` adds: it is made a float before the next is asked for, and what is none ends it."""
    if is_object(value):
        value = taken_as(tracer, site, float, value)
    plain = plain_of(value)
    if isinstance(plain, np.ndarray):  # which may be written to before the end
        return meaning.calls.call(tracer, site, float, (value,), {})
    if not isinstance(plain, (int, float)):
        math.fsum((plain,))  # raises what plain Python raises
    return value


def is_scalar(value: Any) -> bool:
    """Whether a value is a number, which nobody can write to."""
    return isinstance(plain_of(value), (int, float, complex, np.number)) and not is_object(value)


def is_lazy(value: Any) -> bool:
    """Whether code of the user's may run between the items of a value, and write to those that it gave before."""
    return is_iterable(value) or is_asked(value)


def beginning(items: Iterable[Any], is_fixed: Callable[[Any], bool]) -> tuple[list[Any], Any]:
    """The items up to the first that may change, and the rest, which is not asked for yet."""
    iterator = iter(items)
    found: list[Any] = []
    for item in iterator:
        if not is_fixed(item):
            return found, itertools.chain([item], iterator)
        found.append(item)
    return found, ()


def in_pairs(left: Iterable[Any], right: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """The items of both, as ``math.sumprod`` asks for them."""
    left, right = iter(left), iter(right)
    for a in left:
        b = next(right, MISSING)
        if b is MISSING:
            break
        yield a, b
    else:
        if next(right, MISSING) is MISSING:
            return
    raise ValueError("Inputs are not the same length")


def holds_objects(value: Any) -> bool:
    """Whether there are objects among the items of a container that C code iterates over by itself."""
    kinds: Any = (*COLLECTIONS, tuple, frozenset, *VIEWS)
    return issubclass(type(value), kinds) and any(map(is_object, value))


VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()))


def of_cmath(tracer: Tracer, site: Site, fn: Any, value: Any) -> Any:
    """The same of the module ``cmath``."""
    cls = float if fn is cmath.rect else complex
    return taken_as(tracer, site, cls, value) if is_object(value) else value


# --------------------------------------------------------------------------------------------- strings


def representation(tracer: Tracer, site: Site, value: Any, how: Callable[[Any], Any] = repr) -> Any:
    """``repr(value)``, or ``str(value)`` where that is the same; ``how`` says which."""
    found = python_special(value, "__repr__")
    if found is MISSING:
        looked_at(tracer, site, value)
        return marks.run(tracer, site, how, (value,), {})
    return answer(tracer, site, value, found, "__repr__", str, how)


def text(tracer: Tracer, site: Site, value: Any) -> Any:
    """``str(value)``."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    if is_object(value):
        found = special(value, "__str__")
        if is_python(found):
            return answer(tracer, site, value, found, "__str__", str, str)
        if found is object.__str__:
            return representation(tracer, site, value, str)
    looked_at(tracer, site, value)
    return marks.run(tracer, site, str, (value,), {})


def formatted(tracer: Tracer, site: Site, value: Any, spec: str = "") -> Any:
    """``format(value, spec)``."""
    if not isinstance(spec, str):
        format("", plain_of(spec))  # raises what plain Python raises
    if is_object(value):
        found = special(value, "__format__")
        if is_python(found):
            return answer(tracer, site, value, found, "__format__", str, format, spec)
        if found is object.__format__:
            return format(blank(value), spec) if spec else text(tracer, site, value)
    looked_at(tracer, site, value)
    return marks.run(tracer, site, format, (value, spec), {})


# ------------------------------------------------------------------------------------------- iteration


def iterator_of(tracer: Tracer, site: Site, value: Any) -> Any:
    """``iter(value)``: the very iterator that an object gives."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    if is_read(tracer, value):
        return seals.drawn(tracer, value, "an element", tracer.readable[id(value)])
    if is_array_of_objects(value):
        return elements(tracer, marks.iterator(tracer, value))
    if not is_object(value):
        return marks.iterator(tracer, value)
    found = special(value, "__iter__")
    if found is MISSING:
        if python_special(value, "__getitem__") is not MISSING and not isinstance(value, dict):
            return iter(stand_ins.sequence(tracer, site, value))
        return iter(value)
    if not is_python(found):
        return marks.iterator(tracer, value)
    if found is None:
        return iter(double(kind_of(value), {"__iter__": None}))
    iterator = invoke(tracer, site, found, value)
    if special(iterator, "__next__") is MISSING:
        verdict(value, "__iter__", plain_of(iterator), iter)  # raises what plain Python raises
    return iterator


def iterate_object(tracer: Tracer, site: Site, value: Any) -> Any:
    """What to iterate over in the place of a value: for an object, an iterator that runs Python methods as twins."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    items = what_gives_items(tracer, site, value)
    if id(value) not in tracer.resuming:
        return items
    return stand_ins.Resumed(tracer, site, value, items)


def what_gives_items(tracer: Tracer, site: Site, value: Any) -> Any:
    if is_asked(value):
        return stand_ins.iterator(tracer, site, iterator_of(tracer, site, value))
    if compares(value):
        return stand_ins.Comparing(tracer, site, value)
    if is_read(tracer, value):
        return seals.drawn(tracer, value, "an element", tracer.readable[id(value)])
    if tracer.reads is not None:
        tracer.reads.looked_into(value, site)
    if is_array_of_objects(value):
        return elements(tracer, marks.iterated(tracer, site, value))
    return marks.iterated(tracer, site, value) if tracer.texts.holders else value


def is_array_of_objects(value: Any) -> bool:
    """Whether C code draws items from a value which may be the plain ones of containers that the run has."""
    return type(value) is np.ndarray and value.dtype.hasobject


def elements(tracer: Tracer, values: Any) -> Iterator[Any]:
    """The elements of an array of objects, as the run has them."""
    return (
        meaning.boxing.enter(tracer, x, "an element of an array of objects")
        if is_traced_array(x)
        else reflected(tracer, x)
        for x in values
    )


def is_read(tracer: Tracer, value: Any) -> bool:
    """Whether what is iterated over lies behind a seal, and gives its elements by itself."""
    return bool(tracer.readable) and id(value) in tracer.readable and not is_asked(value)


def can_be_iterated(value: Any) -> bool:
    return any(special(value, name) is not MISSING for name in ("__iter__", "__getitem__"))


def is_asked(value: Any) -> bool:
    """Whether iterating over a value runs special methods in Python."""
    if not is_object(value):
        return False
    found = special(value, "__iter__")
    if found is MISSING:
        return python_special(value, "__getitem__") is not MISSING
    return is_python(found)


def iterable(tracer: Tracer, site: Site, value: Any) -> Any:
    """The same for C code that asks how many items there will be, as ``list`` does."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    if is_iterator(value) and is_read(tracer, value):
        return iterate_object(tracer, site, value)
    if is_read(tracer, value) or (is_array_of_objects(value) and tracer.shadows):
        return [*iterate_object(tracer, site, value)]
    if is_asked(value) or is_counted(value):
        return stand_ins.iterable(tracer, site, value)
    if compares(value):
        return stand_ins.Comparing(tracer, site, value)
    if tracer.reads is not None:
        tracer.reads.looked_into(value, site)
    return marks.iterated(tracer, site, value) if tracer.texts.holders else value


def item_by_item(tracer: Tracer, site: Site, value: Any) -> Any:
    """The same, where the items of an iterator that runs code outside are asked for behind the tracer's back."""
    items = iterable(tracer, site, value)
    return (
        items if id(value) not in tracer.resuming else stand_ins.Resumed(tracer, site, value, items)
    )


def grouper() -> Any:
    _, group = next(itertools.groupby((1,)))
    return group


GROUPS = frozenset((itertools.groupby, type(grouper())))
CALLING = type(iter(int, 0))


def compares(value: Any) -> bool:
    """Whether a value is an iterator in C that compares: keys with one another, or what it is given with a sentinel."""
    kind = type(value)
    if kind is CALLING:  # as that of `re.finditer` is as well, which compares matches
        return any(type(x) is stand_ins.Callback for x in gc.get_referents(value))
    return is_one_of(kind, GROUPS)


def is_counted(value: Any) -> bool:
    """Whether a container has a length in Python: it is asked for that, even where C code iterates over it."""
    return python_special(value, "__len__") is not MISSING and not isinstance(value, SETS)


SETS = (set, frozenset)  # whose elements C code takes without a question


def next_of(tracer: Tracer, site: Site, iterator: Any) -> Any:
    """``next(iterator)``."""
    iterator = meaning.sights.behind_proxy(tracer, site, iterator)
    if id(iterator) in tracer.flats:
        return next(iterate(iterator))
    found = python_special(iterator, "__next__")
    if compares(iterator):
        iterator = stand_ins.Comparing(tracer, site, iterator)
        return next(iterator)
    if found is MISSING:
        value = meaning.sights.resumed(tracer, iterator, lambda: next(plain_of(iterator)))
        return marks.read(tracer, site, next, iterator, value)
    return invoke(tracer, site, found, iterator)


def reverse(tracer: Tracer, site: Site, value: Any) -> Any:
    """``reversed(value)``."""
    value = meaning.sights.behind_proxy(tracer, site, value)
    if type(value) is Box:
        return reversed(value.value)
    found = python_special(value, "__reversed__")
    if found is None:
        return reversed(double(kind_of(value), {"__reversed__": None}))
    if found is not MISSING:
        return invoke(tracer, site, found, value)
    if is_read(tracer, value):
        reversed(value)  # raises what plain Python raises
        return reversed(iterable(tracer, site, value))
    if special(value, "__reversed__") is not MISSING or special(value, "__getitem__") is MISSING:
        return reversed(value)
    if all(python_special(value, name) is MISSING for name in ("__getitem__", "__len__")):
        return reversed(value)
    if special(value, "__len__") is MISSING:
        return reversed(double(kind_of(value), {"__getitem__": None}))
    return reversed(stand_ins.sequence(tracer, site, value))


def iterate(box: Box) -> Iterator[Any]:
    """The elements of a traced array along its first axis."""
    if not isinstance(box.value, np.ndarray) or box.value.ndim == 0:
        iter(box.value)  # raises what plain Python raises
    places = iter(range(len(box.value)))
    elements = (operate(operator.getitem, (box, i)) for i in places)
    tracer = active.tracer
    if tracer is None or id(box) not in tracer.flats:
        return elements
    flat = tracer.flats[id(box)]
    if flat[1] is None:  # ``array.flat`` is an iterator itself, and goes on where it was
        flat[1:3] = elements, places
    return flat[1]  # type: ignore[no-any-return]


BY_ELEMENT = (float, complex, np.ndarray, np.generic)  # what is compared as numbers are


def compared(tracer: Tracer, *values: Any) -> None:
    """Note that it matters which objects these are, and those in them: C code compares them, or hashes them."""
    reads = tracer.reads
    todo = list(values)
    seen: set[int] = set()
    while todo:
        x = todo.pop()
        kind = type(x)
        if is_one_of(kind, BOXES) or is_one_of(kind, BY_VALUE) or issubclass(kind, BY_ELEMENT):
            continue
        if (base := native(kind)) is None:
            if is_python(own := static(kind, "__eq__")):
                continue  # which is asked, and traced
            plain = tracer.originals.get(id(x), (None, x))[1]
            note_identity(tracer.tape, plain)
            if reads is not None:
                reads.pin(plain)
            if kind is types.MethodType:
                todo += [x.__self__, x.__func__]
            elif reads is None:
                continue
            elif issubclass(kind, weakref.ref):  # whose referent is compared, as long as it lives
                reads.problem("weak references are compared")
            elif own is not object.__eq__:
                reads.looked_into(plain)
        elif id(x) not in seen:
            seen.add(id(x))
            items = list(items_of(x, base))
            todo += [item for _, item in items]
            todo += [key for key, _ in items] if issubclass(base, dict) else []


def contains(tracer: Tracer, site: Site, container: Any, item: Any) -> bool:
    """``item in container``."""
    container = meaning.sights.behind_proxy(tracer, site, container)
    if type(container) is ArrayBox:
        equal = meaning.operators.operate(tracer, site, operator.eq, container, item)
        return truth(tracer, site, meaning.calls.call(tracer, site, np.any, (equal,), {}))
    if type(container) is Box:
        return item in container.value  # raises what plain Python raises
    found = special(container, "__contains__")
    if found is None:
        return item in double(kind_of(container), {"__contains__": None})
    if is_python(found):
        return truth(tracer, site, invoke(tracer, site, found, container, item))
    if found is MISSING and (is_asked(container) or id(container) in tracer.resuming):
        return found_among(tracer, site, container, item)
    if isinstance(container, (str, bytes, bytearray)):
        item = plain_key(item)
    if tracer.reads is not None:
        tracer.reads.looked_into(container, site)
        compared(tracer, *asked_for(container, item), item)
    return meaning.escape.watched(operator.contains, (container, item), {}, site)


def asked_for(container: Any, item: Any) -> Iterable[Any]:
    """What C code may compare with an item that is looked for: of a table's keys those that are no plain values."""
    if not is_one_of(type(container), TABLES) or not is_one_of(type(plain_of(item)), BY_VALUE):
        return (container,)
    odd = [kind for kind in classes_of(container) if not is_one_of(kind, BY_VALUE)]
    return [key for key in container if any(type(key) is kind for kind in odd)] if odd else ()


TABLES = (dict, set, frozenset)
NUMBERS = (float, complex, np.inexact)


def found_among(tracer: Tracer, site: Site, container: Any, item: Any) -> bool:
    """Whether an item is among those that a container gives one by one."""
    plain = plain_of(item)
    if tracer.reads is not None and isinstance(plain, NUMBERS) and plain != plain:
        tracer.reads.problem("a NaN is looked for", site)  # which is only equal if it is the same
    try:
        items = iterate_object(tracer, site, container)
    except TypeError:
        items = None
    if items is None:
        return item in double(kind_of(container), {})  # raises what plain Python raises
    for x in items:
        if plain_of(x) is plain_of(item):
            note_same(tracer, site, x, item)
            return True
        if truth(tracer, site, meaning.operators.operate(tracer, site, operator.eq, x, item)):
            return True
        note_no_nan(tracer, site, x, item)
    return False


def note_no_nan(tracer: Tracer, site: Site, left: Any, right: Any) -> None:
    """Note, in a program, that a number which is not found among others is no NaN: that might be the very same."""
    x, other = (left, right) if type(left) is Box else (right, left)
    if tracer.reads is None or type(x) is not Box or not isinstance(x.value, NUMBERS):
        return
    value = plain_of(other)
    if type(other) is Box or (isinstance(value, NUMBERS) and value != value):
        truth(tracer, site, meaning.operators.operate(tracer, site, operator.ne, x, x))


def note_same(tracer: Tracer, site: Site, left: Any, right: Any) -> None:
    """Note that two values are one and the same: traced ones, that they are equal, as two others would be."""
    if type(left) is Box or type(right) is Box:
        truth(tracer, site, meaning.operators.operate(tracer, site, operator.eq, left, right))
    else:
        compared(tracer, left, right)


# ----------------------------------------------------------------------------------------------- items


def get_item(tracer: Tracer, site: Site, container: Any, key: Any) -> Any:
    """``container[key]``."""
    container = meaning.sights.behind_proxy(tracer, site, container)
    if type(container) is ArrayBox or (
        type(container) is Box and isinstance(container.value, np.generic)
    ):
        item = record(tracer, site, operator.getitem, (container, indices(tracer, site, key)), {})
        if not tracer.flats or id(container) not in tracer.flats:
            return item
        tracer.flats[id(container)][1] = None  # the iterator begins anew
        return record(tracer, site, np.array, (item,), {}) if type(item) is ArrayBox else item
    if type(container) is Box:
        return container.value[plain_of(key)]  # raises what plain Python raises
    if is_traced_array(container):
        return get_item(tracer, site, meaning.boxing.enter(tracer, container, "array"), key)
    found = special(container, "__getitem__")
    if is_python(found):
        return invoke(tracer, site, found, container, key)
    if found is MISSING and isinstance(container, type):
        return of_class(tracer, site, container, key)
    if tracer.reads is not None:
        tracer.reads.looked_into(container, site)
        compared(tracer, key)
    if isinstance(container, dict):
        item = look_up(tracer, site, container, key)
    else:
        if isinstance(container, INDEXED):
            key = drawn_slice(indices(tracer, site, key))
        elif type(container) is np.ndarray:
            key = plain_indices(tracer, site, key)
        item = meaning.escape.watched(operator.getitem, (container, bare(key)), {}, site)
    return item_of(tracer, site, container, key, item)


def plain_indices(tracer: Tracer, site: Site, key: Any) -> Any:
    """What stands between the brackets of an array of objects, of text or of dates: indices, which have no derivative.

    Which elements they choose is a decision of the program, also where they are arrays.
    """
    if type(key) is tuple:
        return tuple([plain_indices(tracer, site, x) for x in key])
    if type(key) is not ArrayBox:
        return plain_key(key)
    if tracer.reads is not None:
        tracer.reads.problem("an array is read by code that records nothing", site)
    truth(tracer, site, record(tracer, site, np.array_equal, (key, key.value.copy()), {}))
    return key.value


def item_of(tracer: Tracer, site: Site, container: Any, key: Any, item: Any) -> Any:
    """What the traced function sees of an item that C code has read from a container."""
    if not isinstance(container, dict):
        item = marks.read(tracer, site, operator.getitem, container, item)
    seal = tracer.readable.get(id(container))
    if is_traced_array(item) and shows_fields(container, seal):
        return lent_by(tracer, meaning.boxing.enter(tracer, item, f"[{key!r}]"))
    if seal is not None:
        return seals.behind(tracer, item, "an item", seal)
    if isinstance(container, COLLECTIONS) and id(container) in tracer.outside:
        return (
            item
            if is_one_of(type(item), BOXES)
            else meaning.boxing.enter(tracer, item, type(container).__name__)
        )
    if isinstance(container, np.ndarray) and is_traced_array(item):
        return meaning.boxing.enter(tracer, item, "an element of an array of objects")
    if isinstance(container, np.ndarray) and id(container) in tracer.outside and is_container(item):
        return meaning.boxing.enter(tracer, item, "an element of an array of objects")
    return item if isinstance(container, (*COLLECTIONS, tuple)) else reflected(tracer, item)


def shows_fields(container: Any, seal: Any) -> bool:
    """Whether a container is an array of records, of whose fields arrays of numbers show the memory."""
    if not isinstance(container, np.ndarray) or container.dtype.names is None:
        return False
    return seal is None or (type(seal) is Held and seal.thing is owner_of(container))


INDEXED = (list, tuple, str, bytes, bytearray, range, deque, memoryview, array.array)


def of_class(tracer: Tracer, site: Site, cls: type, key: Any) -> Any:
    """``cls[key]``."""
    found = meaning.attributes.note_member(tracer, cls, "__class_getitem__")
    if found is MISSING or not is_python(found):
        return cls[key]  # type: ignore[index]  # which only keeps it
    return meaning.calls.call(tracer, site, cls.__class_getitem__, (key,), {})  # type: ignore[attr-defined]


def look_up(tracer: Tracer, site: Site, mapping: Any, key: Any) -> Any:
    """The item of a dict, or of an object of a class that derives from it."""
    missing = python_special(mapping, "__missing__")
    if missing is MISSING and not isinstance(mapping, defaultdict):
        found = meaning.escape.watched(operator.getitem, (mapping, key), {}, site)
        return memos.looked_up(tracer, site, key, found)
    found = meaning.escape.watched(
        dict.get, (mapping, key, MISSING), {}, site
    )  # which hashes the key once
    if found is not MISSING:
        return memos.looked_up(tracer, site, key, found)
    if missing is MISSING:
        return make_missing(tracer, site, mapping, key)
    return invoke(tracer, site, missing, mapping, key)


def make_missing(tracer: Tracer, site: Site, container: Any, key: Any) -> Any:
    """What a defaultdict does where a key is missing."""
    if container.default_factory is None:
        raise KeyError(key)
    factory = stand_ins.called_back(container.default_factory)
    value = meaning.calls.call(tracer, site, factory, (), {})
    meaning.writers.write_container(tracer, site, operator.setitem, container, (key, value), {})
    return value


def pick_item(tracer: Tracer, site: Site, items: Any, key: Box) -> Any:
    """An item of a list or tuple: with a guard on the index, unless it has changed too often for that."""
    if tracer.loops is not None and is_fixed(key.op):
        return tracer.loops.pick(items, key)
    reads = tracer.reads
    if reads is None or ("decision", site) not in reads.dynamic or not uniform(items):
        return items[plain_key(key)]
    return record(tracer, site, pick, (list(items), key), {})


def uniform(items: Any) -> bool:
    """Whether the items are traced values of one type and shape."""
    if not items or not all(is_one_of(type(x), BOXES) for x in items):
        return False
    values = [x.value for x in items]
    kinds = {(type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for v in values}
    return len(kinds) == 1


def judge_flat(box: ArrayBox, index: Any, value: Any, site: Site) -> None:
    """Raise what NumPy raises about ``array.flat[index] = value``: it is other than what it raises for an array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the write itself will warn
        phantom(box.value).flat[primal(index)] = primal(value)
    must_be_apart(box.value, primal(value), site)


def set_in_array(
    tracer: Tracer, site: Site, container: ArrayBox, key: Any, value: Any, origin: Any
) -> None:
    """``container[key] = value``, where text that was drawn from traced values may be written."""
    arrays: list[ArrayBox] = []
    index = operand(indices(tracer, site, key), arrays)
    if origin is not None:  # NumPy makes numbers of it, where it takes such a value at all
        phantom(container.value)[primal(index)] = plain_of(value)
        value = meaning.calls.call(tracer, site, np.asarray, (value, container.value.dtype), {})
    if is_object(value) or is_one_of(type(value), (list, tuple)):
        dtype, single = container.value.dtype, is_single(primal(index), container.value.ndim)
        value = meaning.overrides.as_element(tracer, site, value, dtype, single=single)
    save(arrays)
    given = operand(value, [])
    if tracer.flats and id(container) in tracer.flats:
        judge_flat(container, index, given, site)
        tracer.flats[id(container)][1] = None  # the iterator begins anew
        if np.ndim(primal(given)) and not is_single(primal(index), 1):
            if np.size(primal(given)) == 0:  # of which NumPy takes as many as there are
                return
            place = get_item(tracer, site, container, key)
            many = meaning.calls.call(tracer, site, as_many, (value, place), {})
            if np.size(plain_of(many)) > 1:
                many = meaning.calls.call(
                    tracer, site, np.reshape, (many, plain_of(place).shape), {}
                )
            given = operand(many, [])
    write_array_item(container, index, given, site)


def set_item(tracer: Tracer, site: Site, container: Any, key: Any, value: Any) -> None:
    """``container[key] = value``."""
    container = meaning.sights.behind_proxy(tracer, site, container)
    origin = marks.found(tracer, value) if tracer.texts.drawn else None
    if type(container) is ArrayBox:
        try:
            set_in_array(tracer, site, container, key, value, origin)
        except Exception as error:  # nothing on the tape says that it has failed
            if not isinstance(error, WengertError):
                failed_by_value(tracer, site, operator.setitem, error)
            raise
        return
    if is_traced_array(container):
        set_item(tracer, site, meaning.boxing.enter(tracer, container, "array"), key, value)
        return
    found = special(container, "__setitem__")
    if is_python(found):
        invoke(tracer, site, found, container, key, value)
        return
    if found is MISSING:
        without(container, "__delitem__")[plain_of(key)] = plain_of(value)  # raises
    if id(container) in tracer.readable and isinstance(container, np.ndarray):
        array = seals.as_array(tracer, container, tracer.readable[id(container)])
        if array is not None:
            set_item(tracer, site, array, key, value)
            return
    if tracer.reads is not None:
        compared(tracer, key)
        if not is_container(container) or id(container) in tracer.outside:
            tracer.reads.problem(
                f"an item of {with_article(type(container).__name__)} is set", site
            )
    if type(key) is str and shows_fields(container, tracer.readable.get(id(container))):
        if is_traced_array(container[key]):
            set_item(tracer, site, get_item(tracer, site, container, key), Ellipsis, value)
            return
    native = isinstance(container, (dict, list, deque))
    traced = not native and not is_constant(tracer, stored(value, []))
    if not native and tracer.readable:
        traced = traced or seals.holds_traced(tracer, value)
    if traced:
        raise TraceError(
            f"{blame(site)}: {with_article(type(container).__name__)} cannot hold a traced value, so its "
            "gradient would be lost\n"
            "keep it in a list, a dict or an array of numbers"
        )
    if isinstance(container, dict):
        meaning.writers.write_container(tracer, site, operator.setitem, container, (key, value), {})
    elif isinstance(container, (list, deque)):
        key = drawn_slice(indices(tracer, site, key))
        if type(key) is slice:
            value = item_by_item(tracer, site, value)
        meaning.writers.write_container(tracer, site, operator.setitem, container, (key, value), {})
    else:
        memory = memory_behind(tracer, container)
        if memory is not None:
            raise TraceError(
                f"{blame(site)}: an item of {with_article(type(container).__name__)} is set, in whose memory "
                "arrays lie that are being traced\nwrite to these arrays"
            )
        if isinstance(container, C_DATA):  # which may point anywhere
            meaning.unannounced.may_write(tracer, site, container, None)
        container[meaning.unboxing.lower(tracer, key)] = meaning.unboxing.lower(tracer, value)
        if tracer.reads is not None and has_box(value):
            tracer.reads.problem(f"{with_article(type(container).__name__)} keeps a number", site)
        if origin is not None:
            marks.hold_all(tracer.texts, container, origin)


def is_single(index: Any, ndim: int) -> bool:
    """Whether an index is that of an element of an array."""
    parts = index if type(index) is tuple else (index,)
    return len(parts) == ndim and all(isinstance(x, (int, np.integer)) for x in parts)


def memory_behind(tracer: Tracer, container: Any) -> Any:
    """What is known of the memory of something that is no array of numbers, where arrays lie in it; else None."""
    if isinstance(container, memoryview):
        container = container.obj
    owner = owner_of(container) if isinstance(container, np.ndarray) else container
    return tracer.tape.memories.get(id(owner))


def drawn_slice(key: Any) -> Any:
    """A plain index or slice."""
    if type(key) is slice:
        return slice(plain_key(key.start), plain_key(key.stop), plain_key(key.step))
    return plain_key(key)


def without(value: Any, name: str) -> Any:
    """A stand-in without special methods but for the one of this name, which the class of a value has or has not."""
    if not is_object(value):
        return plain_of(value)
    found = special(value, name)
    return double(kind_of(value), {} if found is MISSING else {name: found})


def delete_item(tracer: Tracer, site: Site, container: Any, key: Any) -> None:
    """``del container[key]``."""
    container = meaning.sights.behind_proxy(tracer, site, container)
    if is_one_of(type(container), BOXES):
        del container.value[plain_of(key)]  # raises what plain Python raises
    found = special(container, "__delitem__")
    if is_python(found):
        invoke(tracer, site, found, container, key)
        return
    if found is MISSING:
        del without(container, "__setitem__")[plain_of(key)]  # raises what plain Python raises
    if not isinstance(container, dict):
        key = drawn_slice(indices(tracer, site, key))
    meaning.writers.write_container(tracer, site, operator.delitem, container, (key,), {})


def write_item(box: Box, key: Any, value: Any) -> None:
    """``box[key] = value`` in code without hooks."""
    tracer = active.tracer
    if tracer is None:
        raise TraceError(
            f"a traced value is used after its run has ended, or in another thread\n{AFTER}"
        )
    set_item(tracer, user_site(), box, key, value)


def box_attribute(box: Box, name: str) -> Any:
    """An attribute of a box in code without hooks."""
    tracer = active.tracer
    if tracer is None or name.startswith("__array_"):
        raise AttributeError(name)
    found = meaning.attributes.load_box(tracer, user_site(), box, name)
    if type(found) is types.MethodType:  # which takes no box by itself
        return lambda *args, **kwargs: meaning.calls.call(tracer, user_site(), found, args, kwargs)
    return found


SEQUENCES = frozenset((list, tuple, deque)) | STRINGS
