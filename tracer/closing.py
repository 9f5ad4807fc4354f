"""Functions that C code calls back: what they have captured is made explicit, so that it has derivatives.

Words
-----
caller    a function that is given functions and calls them: a root finder, a quadrature.
capture   a traced value that such a function finds in its closure, its bound arguments, or its object.
closed    the function with its captures as further arguments: ``closed(*xs, *captures)``.
hole      stands for a capture in the function that was taken apart.
live      a function as C code is given it: it is traced in the run that goes on.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..rules import equivalents, registry
from ..rules.mutation import setitem
from ..rules.words import with_article
from . import calls
from .active import active, untraced
from .arrays import kept_copy
from .border import leads_to_box
from .box import BOXES, Box
from .boxing import enter
from .detours import code_of
from .errors import NoRuleError, TraceError
from .frames import MAPPINGS, MUTABLE, NATIVE, items_of, made, option_of
from .handlers import handlers
from .held import Held
from .intrinsic import intrinsic
from .kinds import attribute, is_one_of, isinstance, own_dict
from .places import LIBRARY, OURS, blame
from .plain_calls import as_caller
from .record import record, stored
from .remembered import Read, filled, names_in, own_code
from .run import run
from .seals import Unfollowed, tied_to
from .session import Tracer
from .tape import NOWHERE, External, Input, Op, Site, fn_name, ops_in, primal
from .unboxing import lower

FunctionType = types.FunctionType


class Hole:
    """The place of a capture, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


LEAVES = BOXES | {Hole}


class Mapping:
    """Gives values with ``leaf(x)`` in the place of each box or hole that they hold.

    Containers, arrays and the user's functions are copied: the copies keep what there is now. An object that holds no
    box is left as it is, for it may be known by its identity, unless it is a copy itself, one of ``own``; ``met`` has
    those, and the classes and modules, that were met, ``codes`` the code of the functions.
    """

    def __init__(self, leaf: Callable[[Any], Any], own: Iterable[Any] | None = None) -> None:
        self.leaf = leaf
        self.again = own is not None  # of a copy: what is in its arrays is kept already
        self.own = {id(x) for x in own or ()}
        self.copies: list[Any] = []
        self.memo: dict[int, tuple[Any, Any]] = {}  # id of a value: it, and what it has become
        self.met: list[Any] = []
        self.codes: list[types.CodeType] = []

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if is_one_of(kind, LEAVES):
            return self.leaf(value)
        if id(value) in self.memo:
            return self.memo[id(value)][1]
        if kind is FunctionType:
            return self.function(value)
        self.memo[id(value)] = (value, value)
        new = value
        if is_one_of(kind, NATIVE):
            parts = {key: self(x) for key, x in items_of(value, kind)}
            if self.differ(
                parts.values(), value if not is_one_of(kind, MAPPINGS) else value.values(), kind
            ):
                new = made(kind, parts, option_of(value))
        elif kind is np.ndarray and not self.again:
            new = kept_copy(value)
        elif kind is functools.partial:
            whole = (value.func, value.args, value.keywords)
            func, args, keywords = (self(x) for x in whole)
            if self.differ((func, args, keywords), whole, tuple):
                new = functools.partial(func, *args, **keywords)
        elif kind is types.MethodType:
            owner = self(value.__self__)
            self.met.append(value.__func__)  # which may be that of a class, and stays
            new = value if owner is value.__self__ else types.MethodType(value.__func__, owner)
        elif type(own_dict(value)) is dict and not callable_only(value):
            if holds(value) or id(value) in self.own:
                new = copy.copy(value)
                self.copies.append(new)
                own_dict(new).update({name: self(x) for name, x in dict(own_dict(value)).items()})
            else:
                self.met.append(value)
        elif own_dict(value) is None or callable_only(value):
            self.met.append(value)
        self.memo[id(value)] = (value, new)
        return new

    def differ(self, parts: Any, others: Any, kind: type) -> bool:
        """Whether a value is to be made anew of its parts."""
        changed = any(a is not b for a, b in zip(parts, others, strict=True))
        return changed or is_one_of(kind, MUTABLE)

    def function(self, fn: FunctionType) -> FunctionType:
        """A function with other cells, defaults and globals, of which these hold what they hold now.

        One of a library is left as it is, unless it holds what is to be replaced.
        """
        self.memo[id(fn)] = (fn, fn)  # what it calls itself by may stay, if it holds nothing
        if registry.lookup(fn) is not None:  # it is known by its identity
            return fn
        users = not fn.__code__.co_filename.startswith((*LIBRARY, *OURS))
        if not users and not holds(fn):
            return fn
        code = own_code(fn)
        self.codes.append(code)
        cells = fn.__closure__ and tuple(types.CellType() for _ in fn.__closure__)
        scope: dict[str, Any] = {} if users else fn.__globals__
        new = FunctionType(code_of(fn), scope, fn.__name__, None, cells)
        new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
        vars(new).update(vars(fn))
        self.memo[id(fn)] = (fn, new)
        for name in names_in(code) if users else ():
            if name in fn.__globals__:
                value = fn.__globals__[name]
                scope[name] = value if name == "__builtins__" or holds(value) else self(value)
        for cell, old in zip(cells or (), fn.__closure__ or (), strict=True):
            if filled(old):
                cell.cell_contents = self(old.cell_contents)
        if fn.__defaults__:
            new.__defaults__ = tuple([self(x) for x in fn.__defaults__])
        if fn.__kwdefaults__:
            new.__kwdefaults__ = {k: self(x) for k, x in fn.__kwdefaults__.items()}
        return new


def callable_only(value: Any) -> bool:
    return isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType))


def held(value: Any, seen: set[int]) -> Any:
    """The boxes and holes that a value holds."""
    kind = type(value)
    if is_one_of(kind, LEAVES):
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: Any = ()
    if is_one_of(kind, NATIVE):
        inner = [x for _, x in items_of(value, kind)]
    elif kind is functools.partial:
        inner = (value.func, value.args, value.keywords)
    elif kind is types.MethodType:
        inner = (value.__self__,)
    elif kind is FunctionType:
        cells = [c.cell_contents for c in value.__closure__ or () if filled(c)]
        inner = (*cells, value.__defaults__, value.__kwdefaults__)
    elif type(own_dict(value)) is dict and not callable_only(value):
        inner = own_dict(value).values()
    for x in inner:
        yield from held(x, seen)


def holds(value: Any) -> bool:
    """Whether a value holds a box or a hole."""
    return any(True for _ in held(value, set()))


class Closed:
    """A function with its captures as further arguments; ``args`` follow the first ones at each call."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(
        self, f: Any, args: tuple[Any, ...], count: int, site: Site, copies: Any, read: Read
    ) -> None:
        self.f, self.args, self.count, self.site = f, args, count, site
        self.copies, self.read = copies, read
        self.__name__ = attribute(f, "__name__", type(f).__name__)

    def __call__(self, *given: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return run(self, given, {}, rehearsal=True).value
        if (changed := self.read.changed()) is not None:
            raise TraceError(
                f"{blame(self.site)}: the derivative asks for {self.__name__} once more, but {changed}, which may be "
                "read there, was set meanwhile\npass what it reads in args="
            )
        for obj in self.read.objects():
            enter(tracer, obj, type(obj).__name__)
        xs = given[: len(given) - self.count]
        captures = given[len(xs) :]
        f, args = Mapping(lambda hole: captures[hole.number], self.copies)((self.f, self.args))
        return calls.call(tracer, NOWHERE, f, (*xs, *args), {})

    def value(self, *given: Any) -> Any:
        """The same on plain values, outside of every trace."""
        return value(self, *given)


@intrinsic
def value(f: Any, *given: Any) -> Any:
    """What a function returns for plain values, outside of every trace."""
    with untraced():
        return f(*given)


intrinsic(Closed.__call__)
equivalents.value = value


def is_function(value: Any) -> bool:
    return callable(value) and not is_one_of(type(value), BOXES) and not isinstance(value, type)


def where(effect: Op) -> Any:
    """Where an effect writes to."""
    target, name = (*effect.args, None)[:2]
    return id(target.value) if type(target) is External else (id(target), name)


class Engine:
    """What the rule of a caller works with."""

    def __init__(self, tracer: Tracer, site: Site, name: str) -> None:
        self.tracer, self.site, self.name = tracer, site, name
        self.known: set[Op] = set()  # what functions that are called back may use
        self.made: set[Op] = set()  # what they have computed
        self.used: set[Op] = set()  # what they have used
        self.written: set[Any] = set()  # where they write: see `where`

    def close(self, f: Any, args: Any = ()) -> tuple[Closed, list[Any]]:
        """The closed form of ``f(*xs, *args)``, and the captures."""
        captures: list[Any] = []
        numbers: dict[int, Hole] = {}

        def leaf(box: Box) -> Any:
            if box.op in self.made or (box.op in self.tracer.live and box.op not in self.used):
                return lower(self.tracer, box)  # a record of earlier calls, which it does not read
            if id(box) not in numbers:
                numbers[id(box)] = Hole(len(captures))
                captures.append(box)
            return numbers[id(box)]

        args = args if isinstance(args, tuple) else (args,)
        mapping = Mapping(leaf)
        template, rest = mapping((f, args))
        read = Read(mapping.met, mapping.codes, self.written)
        return Closed(template, rest, len(captures), self.site, mapping.copies, read), captures

    def live(self, f: Any, args: Any, sources: list[Op]) -> Callable[..., Any]:
        """``f(*xs, *args)`` for C code to call back in this run.

        What it does outside happens, and as often as C code calls it. The numbers that it is given have come of the
        ``sources``; a derivative by them is an error, for the rule of the caller has it by other ways.
        """
        tracer, site = self.tracer, self.site
        args = args if isinstance(args, tuple) else (args,)
        self.known.update(sources)

        def call_back(*xs: Any) -> Any:
            ops = tracer.tape.ops
            start = len(ops)
            given = tuple(
                [tied_to(tracer, site, Held(self.name, lambda: sources, x), x) for x in xs]
            )
            value = calls.call(tracer, site, f, (*given, *args), {})
            self.note_memory(ops[start:], value)
            self.known.update(ops[start:])
            self.written.update(where(op) for op in ops[start:] if op.kind == "effect")
            self.check(ops[start:])
            return lower(tracer, value)

        return call_back

    def call(self, solver: Any, f: Any, args: Any, given: Any, options: dict[str, Any]) -> Any:
        """What ``solver(f, *given, **options)`` gives in plain Python, where ``f`` is called with ``args`` as well."""
        captures = [*held((f, args), set())]
        sources = [x for x in stored([*captures, *given], []) if isinstance(x, Op)]

        def plain(value: Any) -> Any:
            return (
                self.live(value, (), sources) if is_function(value) else lower(self.tracer, value)
            )

        values = [plain(x) for x in given]
        plain_options = {k: plain(x) for k, x in options.items()}
        return as_caller(solver, (self.live(f, args, sources), *values), plain_options)

    def plain(self, value: Any) -> Any:
        """The value without boxes; functions among the options work on plain values."""
        if is_function(value):
            closed, captures = self.close(value)
            values = [lower(self.tracer, x) for x in captures]
            return lambda *xs: closed.value(*xs, *values)
        return lower(self.tracer, value)

    def attribute(self, obj: Any, name: str) -> Any:
        """An attribute as the traced function sees it."""
        return handlers[getattr](self.tracer, self.site, (obj, name), {})

    def constant(self, value: Any, what: str) -> Any:
        """The plain value of an option; an error, where a derivative may be asked in it."""
        if is_one_of(type(value), BOXES) and isinstance(value.value, float):
            given = isinstance(value.op, Input) and value.op.role == "outside"
            if not given and abs(value.value) != float("inf"):
                raise TraceError(
                    f"{blame(self.site)}: {self.name} has no formula for its derivative in {what}\ngive a constant"
                )
        return lower(self.tracer, value)

    def must_be_plain(self, obj: Any) -> None:
        """Raise where an object holds traced values, for which there is no formula."""
        if leads_to_box(self.tracer, obj):
            raise TraceError(
                f"{blame(self.site)}: {self.name} has no formula for its derivative by what "
                f"{with_article(type(obj).__name__)} holds\nmake a matrix of another format of it"
            )

    def record(self, primitive: Any, *operands: Any) -> Any:
        """Put the call of a primitive on the tape."""
        if self.tracer.reads is not None:
            self.tracer.reads.problem(
                f"{self.name} depends on more than numbers and arrays", self.site
            )
        return record(self.tracer, self.site, primitive, operands, {})

    def note_memory(self, ops: list[Op], value: Any) -> None:
        """Raise where a function that is called back computes with what an earlier call of it has computed."""
        own = {op for op in ops if type(op.fn) is not Unfollowed}
        todo: list[tuple[Op, Any]] = [(op, None) for op in ops_in(stored([value], []))]
        seen = {op for op, _ in todo}
        while todo:
            op, written = todo.pop()
            if op in self.made:
                raise TraceError(
                    f"{blame(self.site)}: the function given to {self.name} uses what it has computed when it was "
                    "called before, so that it is not the same function at every place\nleave out the memory"
                )
            if op not in own:
                continue
            operands = op.operands()
            if op.fn is setitem and isinstance(op.args[0], Op):
                written = np.zeros(np.shape(op.value), bool) if written is None else written.copy()
                written[primal(op.args[1])] = True
                todo += [(op.args[0], written)] if not written.all() else []
                operands = [x for x in operands if x is not op.args[0]]
            todo += [(x, None) for x in operands if x not in seen]
            seen.update(operands)
        self.made.update(op for op in ops if op.kind == "call")
        self.tracer.live.update(self.made)
        self.used.update(seen, *[op.operands() for op in own])

    def check(self, ops: list[Op]) -> None:
        """Make sure that what a function has computed depends on nothing traced but what is known."""
        for op in ops:
            for x in op.operands():
                if x not in self.known and not (isinstance(x, Input) and x.role == "outside"):
                    raise TraceError(
                        f"{blame(self.site)}: the function given to {self.name} uses a traced "
                        f"{type(primal(x)).__name__} that is neither an argument of it nor in its closure "
                        "(an attribute of an object, say)\npass it in args="
                    )


def called_back(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> Any:
    """Call a caller: its rule makes what it does explicit."""
    assert rule.function is not None
    try:
        result = rule.function(Engine(tracer, site, fn_name(fn)), *args, **kwargs)
    except NotImplementedError as error:
        raise NoRuleError(f"{blame(site)}: {error}") from error
    if result is NotImplemented:  # for such options: it is followed as the code that it is
        return calls.call_function(tracer, site, fn, args, kwargs)
    return result
