"""Functions that C code calls back: what they have captured is made explicit, so that it has derivatives.

Words
-----
caller    a function that is given functions and calls them: a root finder, a quadrature.
capture   a traced value that such a function finds in its closure, its bound arguments, or its object.
closed    the function with its captures as further arguments: ``closed(*xs, *captures)``.
hole      stands for a capture in the function that was taken apart.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any

from ..rules import equivalents, registry
from .border import boxes_behind, lower
from .box import BOXES, Box
from .errors import TraceError
from .intrinsic import intrinsic
from .kinds import attribute, isinstance, own_dict
from .places import blame
from .record import operand, record
from .run import run
from .session import Tracer, active, untraced
from .tape import NOWHERE, Input, Op, Site, fn_name, primal

FunctionType = types.FunctionType


class Hole:
    """The place of a capture, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


LEAVES = BOXES | {Hole}


def mapped(value: Any, leaf: Callable[[Any], Any], memo: dict[int, Any] | None = None) -> Any:
    """``value`` with ``leaf(x)`` in the place of each box or hole that it holds; itself, where it holds none."""
    kind = type(value)
    if kind in LEAVES:
        return leaf(value)
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)][1]
    if kind is FunctionType:
        return mapped_function(value, leaf, memo)
    memo[id(value)] = (value, value)
    new = value
    if kind in (list, tuple):
        parts = [mapped(x, leaf, memo) for x in value]
        new = value if same(parts, value) else kind(parts)
    elif kind is dict:
        parts = [mapped(x, leaf, memo) for x in value.values()]
        new = value if same(parts, value.values()) else dict(zip(value, parts, strict=True))
    elif kind is functools.partial:
        whole = (value.func, value.args, value.keywords)
        func, args, keywords = (mapped(x, leaf, memo) for x in whole)
        new = (
            value
            if same((func, args, keywords), whole)
            else functools.partial(func, *args, **keywords)
        )
    elif kind is types.MethodType:
        owner = mapped(value.__self__, leaf, memo)
        new = value if owner is value.__self__ else types.MethodType(value.__func__, owner)
    elif type(own_dict(value)) is dict and not callable_only(value):
        own = own_dict(value)
        attributes = mapped(own, leaf, memo)
        if attributes is not own:
            new = copy.copy(value)
            own_dict(new).update(attributes)
    memo[id(value)] = (value, new)
    return new


def callable_only(value: Any) -> bool:
    return isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType))


def same(parts: Any, others: Any) -> bool:
    return all(a is b for a, b in zip(parts, others, strict=True))


def mapped_function(fn: FunctionType, leaf: Callable[[Any], Any], memo: dict[int, Any]) -> Any:
    """A function with other cells and defaults, where these hold what is to be replaced."""
    memo[id(fn)] = (fn, fn)  # what it calls itself by may stay, if it holds nothing
    if not any(True for _ in held(fn, set())):
        return fn
    cells = fn.__closure__ and tuple(types.CellType() for _ in fn.__closure__)
    new = FunctionType(fn.__code__, fn.__globals__, fn.__name__, None, cells)
    new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
    memo[id(fn)] = (fn, new)
    for cell, old in zip(cells or (), fn.__closure__ or (), strict=True):
        try:
            content = old.cell_contents
        except ValueError:
            continue
        cell.cell_contents = mapped(content, leaf, memo)
    if fn.__defaults__:
        new.__defaults__ = tuple(mapped(x, leaf, memo) for x in fn.__defaults__)
    if fn.__kwdefaults__:
        new.__kwdefaults__ = {k: mapped(x, leaf, memo) for k, x in fn.__kwdefaults__.items()}
    return new


def held(value: Any, seen: set[int]) -> Any:
    """The boxes and holes that a value holds."""
    kind = type(value)
    if kind in LEAVES:
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: Any = ()
    if kind in (list, tuple):
        inner = value
    elif kind is dict:
        inner = value.values()
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


def filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class Closed:
    """A function with its captures as further arguments; ``args`` follow the first ones at each call."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, f: Any, args: tuple[Any, ...], count: int) -> None:
        self.f, self.args, self.count = f, args, count
        self.__name__ = attribute(f, "__name__", type(f).__name__)

    def __call__(self, *given: Any) -> Any:
        xs = given[: len(given) - self.count]
        captures = given[len(xs) :]
        f, args = mapped((self.f, self.args), lambda hole: captures[hole.number])
        if active.tracer is None:
            return run(f, (*xs, *args), {}).value
        return calls.call(active.tracer, NOWHERE, f, (*xs, *args), {})

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


class Engine:
    """What the rule of a caller works with."""

    def __init__(self, tracer: Tracer, site: Site, name: str) -> None:
        self.tracer, self.site, self.name = tracer, site, name

    def close(self, f: Any, args: Any = ()) -> tuple[Closed, list[Any]]:
        """The closed form of ``f(*xs, *args)``, and the captures."""
        captures: list[Any] = []
        numbers: dict[int, Hole] = {}

        def leaf(box: Box) -> Hole:
            if id(box) not in numbers:
                numbers[id(box)] = Hole(len(captures))
                captures.append(box)
            return numbers[id(box)]

        args = args if isinstance(args, tuple) else (args,)
        template, rest = mapped((f, args), leaf)
        return Closed(template, rest, len(captures)), captures

    def plain(self, value: Any) -> Any:
        """The value without boxes; functions among the options work on plain values."""
        if callable(value) and type(value) not in BOXES and not isinstance(value, type):
            closed, captures = self.close(value)
            values = [lower(self.tracer, x) for x in captures]
            return lambda *xs: closed.value(*xs, *values)
        return lower(self.tracer, value)

    def attribute(self, obj: Any, name: str) -> Any:
        """An attribute as the traced function sees it."""
        return calls.special[getattr](self.tracer, self.site, (obj, name), {})

    def constant(self, value: Any, what: str) -> Any:
        """The plain value of an option; an error, where a derivative may be asked in it."""
        if type(value) in BOXES and isinstance(value.value, float):
            given = isinstance(value.op, Input) and value.op.role == "outside"
            if not given and abs(value.value) != float("inf"):
                raise TraceError(
                    f"{blame(self.site)}: {self.name} has no formula for its derivative in {what}; give a constant"
                )
        return lower(self.tracer, value)

    def must_be_plain(self, obj: Any) -> None:
        """Raise where an object holds traced values, for which there is no formula."""
        if any(True for _ in boxes_behind(self.tracer, obj, set())):
            raise TraceError(
                f"{blame(self.site)}: {self.name} has no formula for its derivative by what a {type(obj).__name__} "
                "holds; make a matrix of another format of it"
            )

    def record(self, primitive: Any, *operands: Any) -> Any:
        """Put the call of a primitive on the tape."""
        if self.tracer.reads is not None:
            self.tracer.reads.problem(
                f"{self.name} depends on more than numbers and arrays", self.site
            )
        return record(self.tracer, self.site, primitive, operands, {})

    def check(self, f: Any, xs: tuple[Any, ...], args: Any, captures: list[Any]) -> None:
        """Make sure that ``f`` depends on nothing traced but its arguments and its captures."""
        ops = self.tracer.tape.ops
        start = len(ops)
        args = args if isinstance(args, tuple) else (args,)
        calls.call(self.tracer, self.site, f, (*xs, *args), {})
        own: set[Op] = set(ops[start:])
        known = own.union(*[{x} for x in operand(list(captures), []) if isinstance(x, Op)])
        for op in ops[start:]:
            for x in op.operands():
                if x not in known and not (isinstance(x, Input) and x.role == "outside"):
                    raise TraceError(
                        f"{blame(self.site)}: the function given to {self.name} uses a traced "
                        f"{type(primal(x)).__name__} that is neither an argument of it nor in its closure "
                        "(an attribute of an object, say); pass it in args="
                    )


def called_back(
    tracer: Tracer, site: Site, fn: Any, rule: registry.Rule, args: Any, kwargs: Any
) -> Any:
    """Call a caller: its rule makes what it does explicit."""
    assert rule.function is not None
    return rule.function(Engine(tracer, site, fn_name(fn)), *args, **kwargs)


from . import calls  # noqa: E402  (calls and this module need each other)
