"""Noticing Python code that runs behind the tracer's back.

Words
-----
special method   a Python function such as ``__lt__`` or ``__str__`` of a class, which C code may call.
callback         a Python function that C code is handed, or finds in what it is handed, and may call as well.
detour           code that stands in the place of such a function's own meanwhile, and runs its twin.
visit            a call of a cache, whose function makes a detour as well (see ``tracer.cached``).
reach            the arguments of a C function whose special methods it may call.

A C function that is handed an object may call Python methods of its class (``sorted`` calls ``__lt__``, ``str``
calls ``__str__``). Such a call does not pass through a hook, so while the C function runs the special methods make
a detour to their twins, and every other Python frame that starts is looked at; one that holds a box is an escape.
"""

from __future__ import annotations

import abc
import functools
import gc
import inspect
import itertools
import operator
import re
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from . import rewrite, watchers
from .active import active
from .box import BOXES, Box
from .errors import EscapeError
from .kinds import (
    IMMUTABLE,
    are_one_of,
    attribute,
    classes_of,
    distinct,
    has_dict,
    is_one_of,
    isinstance,
    own_dict,
)
from .places import LIBRARY, OURS, blame
from .reads import HEAP_TYPE, static
from .session import Tracer
from .structure import is_container
from .tape import Site
from .text import PRIVATE, TEXTS

HARMLESS = (
    frozenset(
        (
            int,
            float,
            complex,
            bool,
            str,
            bytes,
            type(None),
            slice,
            range,
            type(Ellipsis),
            np.ndarray,
            np.dtype,
            np.ufunc,
            type,
        )
        + (types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType)
        + (types.GeneratorType,)
    )
    | PRIVATE
)
ITERATED: tuple[Any, ...] = ((), [], {}, {}.values(), {}.items(), set(), deque(), reversed([]))
BY_REFERENCE: frozenset[type] = frozenset(  # slices, and iterators, which are not to be moved on
    [slice, map, filter, zip, enumerate, reversed]
    + [type(iter(x)) for x in ITERATED]
    + [x for x in vars(itertools).values() if isinstance(x, type)]
)
KNOWN = frozenset((tuple, list, set, frozenset, dict))
OPENED = KNOWN | BY_REFERENCE | {np.ndarray}
CLOSED = HARMLESS - OPENED

KEEPERS = frozenset((list, deque, dict, set, OrderedDict, defaultdict))
QUIET = frozenset("append appendleft popleft clear copy reverse rotate keys values items".split())
BY_KEY = frozenset(  # these look at their arguments, and at an element only if it equals one
    "insert pop extend extendleft get setdefault popitem move_to_end add discard getitem setitem delitem".split()
)


ABSTRACT = abc.ABCMeta.__instancecheck__.__code__.co_filename  # asks for classes alone


def watched(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    site: Site,
    seen: bool = False,
    callbacks: Iterable[types.FunctionType] = (),
    sources: list[Any] | None = None,
) -> Any:
    """Call a C function while the special methods of its arguments' classes make a detour to their twins.

    So do the ``callbacks``, which are called with what was made of the ops in ``sources``. Whatever Python code it runs
    all the same, and with a box, is an error.
    """
    tracer = active.tracer
    given = reach(fn, args, kwargs)
    classes = [] if are_one_of(given, CLOSED) else classes_in(given, 3)
    if not (classes or callbacks) or tracer is None:
        return plainly(fn, args, kwargs, seen)
    watch = Watch(tracer, fn, site, sources or [])
    tracer.watches.append(watch)
    taken: list[Detour] = []
    try:
        detours.take(special_methods(tracer, classes), taken)
        detours.take(map(Callback, callbacks), taken)
        if carries(tracer, (*given, *classes)):
            watch.begin()
        result = plainly(fn, args, kwargs, seen)
    finally:
        watch.end()
        detours.leave(taken)
        tracer.watches.pop()
    watch.check()
    return result


class Watch:
    """The call of a C function. From when it can get hold of a box, the Python functions that it calls are looked at.

    That is from its beginning, where a box can be reached from what it is given; or from when a detour gives it one.
    """

    __slots__ = ("escaped", "fn", "site", "sources", "suspended", "tied", "tracer")

    def __init__(
        self, tracer: Tracer, fn: Callable[..., Any], site: Site, sources: list[Any]
    ) -> None:
        self.tracer, self.fn, self.site, self.sources = tracer, fn, site, sources
        self.tied: set[Any] = (
            set()
        )  # ops of what callbacks were given, which depends on the sources
        self.escaped: types.CodeType | None = None
        self.suspended: watchers.Suspended | None = None

    def begin(self) -> None:
        if self.suspended is None:
            self.suspended = watchers.Suspended(self.look)
            self.suspended.begin()

    def end(self) -> None:
        if self.suspended is not None:
            self.suspended.end()
            self.suspended = (
                None  # which refers to this watch: a cycle would keep alive what was called
            )

    def look(self, frame: Any, event: str, arg: Any) -> None:
        if is_one_of(type(arg), TEXTS):  # the C function is given it
            self.tracer.texts.drawn.append(arg.origin)
        if event != "call" or self.escaped is not None:
            return
        code = frame.f_code
        if rewrite.is_twin(code) or code.co_filename.startswith((*OURS, ABSTRACT)):
            return
        for x in arguments_of(frame):
            if holds_box(x) and not made_plain(self.tracer, x):
                self.escaped = code

    def knows(self, op: Any) -> bool:
        """Whether an op depends on nothing but what the call was given, as its result does."""
        todo, seen = [op], set(self.tied)
        while todo:
            x = todo.pop()
            if x not in seen and self.tracer.dependence.has(x):
                if x.kind == "input":
                    return False
                seen.add(x)
                todo += x.operands()
        return True

    def check(self) -> None:
        """Raise where a box has come to a Python function that is not traced."""
        code = self.escaped
        if code is not None:
            raise EscapeError(
                f"{blame(self.site)}: {getattr(self.fn, '__name__', self.fn)} called the Python "
                f"function {code.co_name} ({code.co_filename}:{code.co_firstlineno}), which could not be traced, with "
                "a traced value. Call it directly, or write the loop in Python."
            )


def made_plain(tracer: Tracer, value: Any) -> bool:
    """Take the boxes out of an object that Python code is about to see, where none of them has a derivative."""
    from .border import boxes_behind, is_constant, is_structure, lower
    from .record import operand

    if is_one_of(type(value), BOXES) or is_container(value) or not is_structure(value):
        return False
    boxes = list(boxes_behind(tracer, value, set()))
    if not is_constant(tracer, operand(boxes, [])):
        return False
    lower(tracer, value)
    return True


MOST = 1000  # things to look at before a function is watched all the same
INERT = HARMLESS - PRIVATE - {np.ndarray, type, types.GeneratorType, types.BuiltinFunctionType}


def carries(tracer: Tracer, values: Iterable[Any]) -> bool:
    """Whether a box, or text, can be reached from values; what lies outside holds plain values."""
    todo = [*values]
    seen: set[int] = set()
    while todo:
        x = todo.pop()
        kind = type(x)
        if is_one_of(kind, PRIVATE):
            return True
        if is_one_of(kind, INERT) or id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > MOST or kind is types.GeneratorType:
            return True
        if issubclass(kind, (list, tuple, dict, set, frozenset, deque)):
            # Not by iterating: C code keeps tuples that are not filled yet (``itertools.product``).
            todo += [y for y in gc.get_referents(x) if not is_one_of(type(y), INERT)]
        if id(x) in tracer.outside or is_one_of(kind, KNOWN):
            continue
        if kind is np.ndarray:
            todo += x.flat if x.dtype.kind == "O" else ()
        elif issubclass(kind, type):
            if x.__flags__ & HEAP_TYPE:
                todo += [y for y in vars(x).values() if is_one_of(type(y), PRIVATE)]
        elif kind is not types.FunctionType or rewrite.is_twin(x.__code__):
            todo += [y for y in gc.get_referents(x) if not issubclass(type(y), type)]
    return False


def plainly(fn: Callable[..., Any], args: Any, kwargs: Any, seen: bool = False) -> Any:
    """Call a C function; what it does not take for its argument it names as it is in plain Python.

    Where its caller is ``seen``, that is the traced function.
    """
    try:
        return calls.as_caller(fn, args, kwargs) if seen else fn(*args, **kwargs)
    except TypeError as error:
        show_plain_names(error, (args, kwargs))
        raise


def show_plain_names(error: TypeError, given: Any) -> None:
    """Let a C function that complains of the type of a box complain of that of the value in it."""
    message = error.args[0] if error.args else None
    if isinstance(message, str) and "Box" in message:
        for box in boxes_in(given):
            kind = type(box.value)
            name = kind.__name__ if kind.__flags__ & HEAP_TYPE else type_name(kind)
            message = re.sub(rf"\b{type(box).__name__}\b", name, message)
        error.args = (message, *error.args[1:])


def boxes_in(value: Any) -> Iterator[Box]:
    """The boxes in nested arguments, which may be cyclic; no class of the user's is asked for items."""
    todo, seen = [value], set()
    while todo:
        x = todo.pop()
        if is_one_of(type(x), BOXES):
            yield x
        base = next((kind for kind in NESTED if isinstance(x, kind)), None)
        if base is not None and id(x) not in seen:
            seen.add(id(x))
            todo += reversed([*(dict.values(x) if base is dict else base.__iter__(x))])


NESTED: tuple[Any, ...] = (tuple, list, dict, set, frozenset)


def type_name(kind: type) -> str:
    """How CPython calls a class written in C."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


# --------------------------------------------------------------------------------- what may be called


def reach(fn: Callable[..., Any], args: Any, kwargs: Any) -> Collection[Any]:
    """What a C function may call special methods of: a container that only keeps its elements is not looked into."""
    owner = attribute(fn, "__self__")
    rest = args
    if args and (owner is None or isinstance(owner, types.ModuleType)):
        owner, rest = args[0], args[1:]
    if is_one_of(type(owner), KEEPERS):
        name = attribute(fn, "__name__", "")
        if name in QUIET:
            return ()
        if name in BY_KEY or (
            name in ("contains", "remove") and not is_one_of(type(owner), (list, deque))
        ):
            return rest
    return (owner, *rest, *kwargs.values())


def classes_in(values: Iterable[Any], depth: int) -> list[type]:
    """The classes of values and of what they contain that may bring Python code with them."""
    values = list(values)
    kinds = classes_of(values)
    opened = {kind for kind in kinds if is_one_of(kind, OPENED)} if depth else set()
    found = [
        kind
        for kind in kinds
        if not (
            is_one_of(kind, opened) or is_one_of(kind, HARMLESS) or issubclass(kind, np.generic)
        )
    ]
    for x in values if opened else ():
        kind = type(x)
        if is_one_of(kind, BY_REFERENCE):
            tuples = [y for y in gc.get_referents(x) if type(y) is tuple]
            behind = [y for y in gc.get_referents(x, *tuples) if type(y) is not tuple]
            found += classes_in(behind, depth - 1)  # for a tuple may not be filled yet
        elif kind is np.ndarray:
            found += classes_in(x.flat, depth - 1) if x.dtype.kind == "O" else []
        elif is_one_of(kind, opened):
            found += classes_in(x, depth - 1)
            if kind is dict:
                found += classes_in(x.values(), depth - 1)
    return distinct(found)


MOST_CALLBACKS = 200  # things to look at for functions


def callbacks_in(values: Iterable[Any]) -> list[types.FunctionType]:
    """The user's functions that C code may find in what it is handed."""
    todo = [(x, 3) for x in values]
    seen: set[int] = set()
    found: list[types.FunctionType] = []
    while todo and len(seen) < MOST_CALLBACKS:
        x, depth = todo.pop()
        kind = type(x)
        if (is_one_of(kind, HARMLESS) and not is_one_of(kind, HOLDING)) or id(x) in seen:
            continue
        seen.add(id(x))
        if kind is types.FunctionType:
            if not code_of(x).co_filename.startswith(LIBRARY):
                found.append(x)
                continue
            inner = [*(cell_contents(x)), *(x.__defaults__ or ())]
        elif kind is types.MethodType:
            inner = [x.__func__]
        elif kind is np.ndarray:
            inner = [*x.flat] if x.dtype.kind == "O" and x.size < MOST_CALLBACKS else []
        elif issubclass(kind, (type, types.ModuleType)):
            continue
        elif is_one_of(kind, SIZED) and len(x) > MOST_CALLBACKS:  # of data, most likely
            continue
        elif kind.__flags__ & HEAP_TYPE and kind is not functools.partial and has_dict(x):
            inner = [y for y in own_dict(x).values() if is_one_of(type(y), CALLABLE)]
        else:
            inner = gc.get_referents(x)
        if depth:
            todo += [(y, depth - 1) for y in inner]
    return found


SIZED = KNOWN | {deque, OrderedDict, defaultdict}
HOLDING = frozenset((np.ndarray, np.ufunc, slice))
CALLABLE = (types.FunctionType, types.MethodType, functools.partial)


def cell_contents(fn: types.FunctionType) -> Iterator[Any]:
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue


ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


def special_methods(tracer: Tracer, classes: Iterable[type]) -> list[Detour]:
    """The special methods of classes. A run remembers them as long as the class is what it was."""
    found: list[Detour] = []
    for cls in distinct(base for kind in classes for base in kind.__mro__):
        known = tracer.specials.get(id(cls))
        if known is None or not (known[0].__flags__ & IMMUTABLE or same_members(cls, known[1])):
            members = dict(vars(cls))
            if is_own(members):
                continue
            detours = [
                Detour(x)
                for name, x in members.items()
                if type(x) is types.FunctionType and name.startswith("__") and name.endswith("__")
                if calls.root_of(x) != "typing"  # which looks at who calls it
            ]
            known = tracer.specials[id(cls)] = (cls, members, detours)
            if tracer.reads is not None:
                note_specials(tracer, cls, members)
        found += known[2]
    return found


def is_own(members: dict[str, Any]) -> bool:
    """Whether a class was made by the run: its methods are twins, and it must not be kept alive."""
    methods = [x for x in members.values() if type(x) is types.FunctionType]
    return bool(methods) and all(rewrite.is_twin(x.__code__) for x in methods)


# What C code may ask the class of an object for.
SPECIAL = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __len__ __iter__ __next__ __getitem__ __contains__ "
    "__index__ __int__ __float__ __complex__ __str__ __repr__ __format__ __bytes__ __call__ __length_hint__ "
    "__reversed__ __reduce__ __reduce_ex__ __getstate__ __getnewargs__ __copy__ __deepcopy__ __array__ __buffer__"
).split()


def note_specials(tracer: Tracer, cls: type, members: dict[str, Any]) -> None:
    """Note what C code may find in a class, and what it may miss."""
    reads = tracer.reads
    assert reads is not None
    for name, x in members.items():
        if type(x) is types.FunctionType:
            reads.note(reads.constant(cls), "static", name, x)
    if cls.__flags__ & HEAP_TYPE:
        for name in SPECIAL:
            if name not in members:
                reads.note(reads.constant(cls), "static", name, static(cls, name))


def same_members(cls: type, members: dict[str, Any]) -> bool:
    """Whether a class has these attributes still, in the same order. Nobody's ``__eq__`` is asked."""
    now = vars(cls)
    same = len(now) == len(members) and all(map(operator.is_, now, members))
    return same and all(map(operator.is_, now.values(), members.values()))


def arguments_of(frame: Any) -> list[Any]:
    """What a function that begins was given.

    Its variables are asked for one by one: CPython 3.13.0 crashes where they are listed within a comprehension.
    """
    code, variables = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [variables.get(name) for name in code.co_varnames[:count]]


def holds_box(value: Any) -> bool:
    """Whether a local variable is a box, or a container or object that holds one."""
    kind = type(value)
    if is_one_of(kind, BOXES):
        return True
    if is_one_of(kind, (tuple, list)):
        return any(is_one_of(type(x), BOXES) for x in value)
    if kind is dict:
        return any(is_one_of(type(x), BOXES) for x in value.values())
    own = own_dict(value) if not isinstance(value, (type, types.ModuleType)) else None
    return type(own) is dict and any(is_one_of(type(x), BOXES) for x in own.values())


def may_give(value: Any) -> bool:
    """Whether code that has a value can take a box, or text, right out of it."""
    return is_one_of(type(value), GIVING) or holds_box(value)


GIVING = PRIVATE | {types.GeneratorType}


# -------------------------------------------------------------------------------------------- detours


class Detour:
    """A special method and, while it makes a detour, its ``own`` code and how many calls of C functions want it."""

    __slots__ = ("code", "made_for", "method", "own", "users")

    def __init__(self, method: types.FunctionType) -> None:
        self.method = method
        self.own = method.__code__
        self.users = 0
        self.made_for: types.CodeType | None = None

    def put_up(self) -> None:
        if self.made_for is not self.own:
            handed = isinstance(self, Callback)
            self.made_for, self.code = self.own, detour_code(self.method, self.own, handed)
        self.method.__code__ = self.code


class Callback(Detour):
    """The detour of a function that C code is handed: what it gives back is plain."""

    __slots__ = ()


def finalized(tracer: Tracer, method: Any) -> None:
    """Let what CPython may call anywhere, such as ``__del__``, run its twin until the run ends."""
    known = tracer.finalizers
    if type(method) is types.FunctionType and not any(x.method is method for x in known):
        detours.take([Detour(method)], known)


class Detours:
    """The detours of all threads: whoever comes first puts one up, whoever leaves last takes it down."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finalizer may call a C function at any moment
        self.open: dict[int, Detour] = {}

    def take(self, wanted: Iterable[Detour], taken: list[Detour]) -> None:
        """Put the detours up; those that the caller has to leave again are added to ``taken``."""
        with self.lock:
            for detour in wanted:
                method = detour.method
                known = self.open.get(id(method))
                if known is None:
                    own = method.__code__
                    if own.co_flags & ASYNC or own.co_filename.startswith(OURS):
                        continue
                    if rewrite.is_twin(own):
                        continue
                    known, detour.own = detour, own
                    self.open[id(method)] = detour
                known.users += 1
                taken.append(known)
                if known.users == 1:
                    known.put_up()

    def leave(self, taken: list[Detour]) -> None:
        with self.lock:
            for detour in taken:
                detour.users -= 1
                if detour.users == 0:
                    if (
                        detour.method.__code__.co_filename == __file__
                    ):  # nobody has changed it meanwhile
                        detour.method.__code__ = detour.own
                    del self.open[id(detour.method)]

    def code_of(self, fn: types.FunctionType) -> types.CodeType:
        with self.lock:
            known = self.open.get(id(fn))
            return fn.__code__ if known is None else known.own


detours = Detours()


def code_of(fn: types.FunctionType) -> types.CodeType:
    """The code of a Python function, also while some thread has it make a detour."""
    return detours.code_of(fn)


def detour_code(method: types.FunctionType, own: types.CodeType, handed: bool) -> types.CodeType:
    """Code that runs the twin of a method, with the cells and defaults that twins have, or the method as it is.

    ``handed`` says that C code was handed the function itself.
    """
    from .calls import twin_of

    users = not own.co_filename.startswith((*LIBRARY, "<string>"))  # which dataclasses write

    def run(*args: Any, **kwargs: Any) -> Any:
        tracer = active.tracer
        if tracer is not None:
            tracer.called_back += users
            twin = twin_of(tracer, method)
            visits = tracer.visits.get(id(method))
            if visits and not visits[-1].ran:
                return visits[-1].run(twin)
            if handed:
                return back_to_c(
                    tracer, method, twin(*[known_as(tracer, x) for x in args], **kwargs)
                )
            result = twin(*args, **kwargs)
            if tracer.watches and any(map(may_give, (result, *args[:1]))):
                tracer.watches[-1].begin()
            return (
                drawn(result, method.__name__, args) if is_one_of(type(result), BOXES) else result
            )
        # a thread that traces nothing has met the detour of another
        plain = types.FunctionType(
            own, method.__globals__, method.__name__, method.__defaults__, method.__closure__
        )
        plain.__kwdefaults__ = method.__kwdefaults__
        return plain(*args, **kwargs)

    template = template_of(len(own.co_freevars), bool(own.co_flags & inspect.CO_GENERATOR))
    consts = tuple([run if x == "run" else x for x in template.co_consts])
    return template.replace(co_consts=consts)


def known_as(tracer: Tracer, value: Any) -> Any:
    """What the traced function knows by something that C code gives to a callback."""
    from . import seals

    if shadows := tracer.shadows_of.get(id(value)):
        return shadows[-1]
    if id(value) in tracer.arrays:
        return tracer.arrays[id(value)]
    watch = tracer.watches[-1] if tracer.watches else None
    if watch is None or not watch.sources or not isinstance(value, (float, complex, np.ndarray)):
        return value
    name = getattr(watch.fn, "__name__", "a callback")
    ops = watch.sources
    found = seals.tied_to(tracer, watch.site, seals.Held(name, lambda: ops, value), value)
    if is_one_of(type(found), BOXES):
        watch.tied.add(found.op)
    return found


def back_to_c(tracer: Tracer, method: types.FunctionType, result: Any) -> Any:
    """What C code is given of the traced result of a callback: nothing that has a derivative."""
    from .border import boxes_behind, lower
    from .protocols import given

    kind = type(result)
    if is_one_of(kind, TEXTS):
        tracer.texts.drawn.append(result.origin)
        return result.value
    for box in boxes_behind(tracer, result, set()):
        if not (tracer.watches and tracer.watches[-1].knows(box.op)):
            given(box, f"{method.__name__}()")
    return lower(tracer, result) if is_one_of(kind, PRIVATE) or is_container(result) else result


# Special methods of which CPython takes nothing but a plain answer.
ANSWERS = frozenset(
    f"__{name}__"
    for name in "bool len index hash str repr format int length_hint contains bytes sizeof".split()
)


def drawn(box: Any, name: str, args: tuple[Any, ...]) -> Any:
    """What C code is given of the traced result of a special method."""
    from .protocols import given, plain_key, shown

    if name in ("__float__", "__complex__") and of_text(active.tracer):
        return shown(box)
    if name in ("__float__", "__complex__", "__array__"):
        return given(box, f"{name}()")
    if name in ("__getattribute__", "__getattr__") and args[1].startswith("__array_"):
        return box.value  # NumPy asks for an attribute of its own protocols
    return plain_key(box) if name in ANSWERS else box


# Of strings: these convert what is to be shown by a format.
FORMATTING = frozenset(("mod", "imod", "__mod__", "__rmod__"))


def of_text(tracer: Tracer | None) -> bool:
    """Whether the C function that is being watched makes text."""
    if tracer is None or not tracer.watches:
        return False
    return getattr(tracer.watches[-1].fn, "__name__", "") in FORMATTING


@functools.cache
def template_of(cells: int, generator: bool) -> types.CodeType:
    """The code of a function that calls the constant ``"run"``; CPython wants as many cells as the method has."""
    names = [f"cell{i}" for i in range(cells)]
    declared = f"nonlocal {', '.join(names)}" if names else "pass"
    source = f"""
def around({", ".join(names)}):
    def detour(*args, **kwargs):
        {declared}
        run = "run"
        return {"(yield from run(*args, **kwargs))" if generator else "run(*args, **kwargs)"}
    return detour
"""
    scope: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), scope)
    return scope["around"](*[None] * cells).__code__


from . import calls  # noqa: E402  (calls and this module need each other)
