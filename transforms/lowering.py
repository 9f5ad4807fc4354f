"""Lowering: a rule of ours is run once on boxes, whose operators record, and lands on a tape without any bytecode.

Words
-----
lowered   the same code with other globals, closures and defaults, in which names mean what they must for boxes.
callee    a function as a lowered rule calls it: its calls go through the tracer.
kind      a class of numbers or arrays as a lowered rule names it; boxes belong to the kind of their values.

The operators and methods of a box record by themselves. What Python and NumPy would ask of a bare number or array
(``math.cos(x)``, ``isinstance(x, float)``, ``type(x)``, ``np.asarray(x)``) is looked up by its name among the globals.
"""

from __future__ import annotations

import builtins
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules import elementwise, registry
from ..tracer import calls
from ..tracer.active import active
from ..tracer.box import BOXES
from ..tracer.record import has_box
from ..tracer.tape import NOWHERE

HOME = registry.__name__.rpartition(".")[0] + "."  # of the modules whose functions are lowered


class Callee:
    """A function whose calls go through the tracer where they are given boxes."""

    def __init__(self, fn: Any, given: bool = False) -> None:
        self.fn = fn
        self.given = given  # as an operand: it is called once

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(bare, args))
        kwargs = {name: bare(x) for name, x in kwargs.items()}
        tracer = active.tracer
        if tracer is None:
            return named(self.fn(*args, **kwargs))
        if not (has_box(args) or (kwargs and has_box(kwargs))):
            value = self.fn(*args, **kwargs)
            # A new array is an operation: each run makes its own.
            if self.given or type(value) is not np.ndarray:
                return named(value)
        return named(calls.call(tracer, NOWHERE, self.fn, args, kwargs))

    def __getattr__(self, name: str) -> Any:
        value = made(getattr(self.fn, name))
        setattr(self, name, value)
        return value

    def __eq__(self, other: object) -> bool:
        return bool(self.fn == bare(other))

    def __hash__(self) -> int:
        return hash(self.fn)


class Module:
    """A module as it was when the rules were made, whatever is put there later; its functions are callees."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._members = module, remember(module)

    def __getattr__(self, name: str) -> Any:
        members = self._members
        value = lowered(members[name] if name in members else getattr(self._module, name))
        setattr(self, name, value)
        return value


def remember(module: types.ModuleType) -> dict[str, Any]:
    """What a module and the public ones within it hold by now."""
    if id(module) not in remembered:
        own = remembered[id(module)] = dict(vars(module))
        for name, x in own.items():
            within = isinstance(x, types.ModuleType) and x.__name__ == f"{module.__name__}.{name}"
            if within and not name.startswith("_"):
                remember(x)
    return remembered[id(module)]


class Names(dict[str, Any]):
    """The globals of lowered functions, lowered when they are first asked for."""

    def __init__(self, plain: dict[str, Any]) -> None:
        super().__init__(__builtins__=BUILTINS, __name__=plain["__name__"])
        self.plain = plain

    def __missing__(self, name: str) -> Any:
        value = self[name] = lowered(self.plain[name])
        return value


KINDS: dict[type, Callee] = {
    kind: Callee(kind)
    for kind in (float, int, complex, np.ndarray, np.dtype, np.generic, *np.sctypeDict.values())
}
remembered: dict[int, dict[str, Any]] = {}  # by the id of a module
known: dict[int, tuple[Any, Any]] = {}  # by the id of a value: it, and what it is lowered to
scopes: dict[int, Names] = {}  # by the id of the globals


def lowered(value: Any) -> Any:
    """What stands for a value of a rule's module in a lowered rule: always the same."""
    found = known.get(id(value))
    if found is None:
        found = known.setdefault(id(value), (value, made(value)))
    return found[1]


def made(value: Any) -> Any:
    kind = type(value)
    if value is registry.lookup:
        return rule_of
    if kind is types.FunctionType and value.__module__.startswith(HOME):
        return Callee(value) if registry.lookup(value) is not None else function(value)
    if kind is types.ModuleType:
        return Module(value)
    if kind is tuple:
        parts = tuple(map(lowered, value))
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if kind is dict:
        items = {key: lowered(x) for key, x in value.items()}
        return value if all(items[key] is x for key, x in value.items()) else items
    if kind is elementwise.over:
        return elementwise.over(lowered(value.reciprocal), lowered(value.factor))
    if isinstance(value, type):
        return KINDS.get(value, value)
    if callable(value) and not kind.__module__.startswith(HOME):
        return Callee(value)
    return value


def function(fn: types.FunctionType) -> types.FunctionType:
    """A function of ours, lowered."""
    scope = scopes.get(id(fn.__globals__))
    if scope is None:
        scope = scopes.setdefault(id(fn.__globals__), Names(fn.__globals__))
    cells = tuple([types.CellType(lowered(cell.cell_contents)) for cell in fn.__closure__ or ()])
    new = types.FunctionType(fn.__code__, scope, fn.__name__, lowered(fn.__defaults__), cells)
    new.__kwdefaults__ = lowered(fn.__kwdefaults__)
    return new


def run(fn: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """What a function of a rule returns for boxes."""
    given = tuple(map(called, args))
    return lowered(fn)(*given, **{name: called(x) for name, x in kwargs.items()})


def called(value: Any) -> Any:
    """An operand as a lowered rule may call it: a function that was given, an object with methods."""
    kind = type(value)
    if kind in BOXES or kind in ATOMS:
        return value
    return Callee(value, True) if callable(value) and not isinstance(value, type) else value


ATOMS = frozenset((float, int, bool, str, type(None), tuple, list, slice, dict))


def rule_of(fn: Any) -> Any:
    """`lookup` for lowered rules, which run those of others."""
    rule = registry.lookup(bare(fn))
    return rule and types.SimpleNamespace(function=lowered(rule.function))


def bare(value: Any) -> Any:
    """What a callee or a kind stands for, in tuples as well."""
    kind = type(value)
    if kind is Callee:
        return value.fn
    if kind is types.FunctionType and type(value.__globals__) is Names:
        assert active.tracer is not None
        active.tracer.twins[id(value)] = weakref.ref(value), value  # called as it is
    return tuple(map(bare, value)) if kind is tuple else value


def named(value: Any) -> Any:
    """A class as lowered rules name it; anything else as it is."""
    return KINDS.get(value, value) if isinstance(value, type) else value


def plain(x: Any) -> Any:
    return x.value if type(x) in BOXES else x


BUILTINS = {
    **vars(builtins),
    **{fn.__name__: Callee(fn) for fn in (abs, divmod, max, min, pow, round, sum)},
    "isinstance": lambda x, kinds: isinstance(plain(x), bare(kinds)),
    "issubclass": lambda a, b: issubclass(bare(a), bare(b)),
    "type": lambda x: named(type(plain(x))),
    "float": KINDS[float],
    "int": KINDS[int],
    "complex": KINDS[complex],
}


for home in [module for name, module in list(sys.modules.items()) if name.startswith(HOME)]:
    for imported in list(vars(home).values()):
        if isinstance(imported, types.ModuleType) and not imported.__name__.startswith(HOME):
            remember(imported)
