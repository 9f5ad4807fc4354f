"""The registry: which callables are primitives, and how each is differentiated.

Words
-----
rule         what the registry knows about one callable: its kind and, if it is differentiable, its rules.
rrule        a function called as the primitive is called; returns ``(value, pullback)``.
pullback     maps the cotangent of the value to a tuple of cotangents, one for each argument.
cotangent    the derivative of the final result with respect to a value; ``None`` is a zero.
frule        a function of the operands and their tangents; returns ``(value, tangent)``. Where there is none, the
             forward mode transposes the pullback, so that an rrule alone is enough for both modes.
pure         a rule that depends on nothing but its arguments and does nothing but compute: it may be run as often as
             one likes, and is run once for all calls with arguments of the same types. Ours are, by declaration.
recorded     any other rule: its body is run once a call and traced like user code, and its pullback once a sweep.
tangent      the derivative of a value along a direction in the space of the inputs; ``None`` is a zero.
operand      a parameter without default: a number, an array, or a list or tuple of them.
option       a parameter with a default (``axis=None``): a plain Python value that a rule may look at; a
             parameter that has a default and is an operand all the same says so: ``a_min: Operand = None``.
query        a function of types and shapes alone (``np.shape``): answered at once, never recorded.
mutator      a function that writes into its first argument; known by its functional equivalent.
caller       a function that calls functions it is given; known by a function that makes these explicit.
awaited      rules for a package that nobody need have: loaded when a callable of that package is met.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar, overload

import numpy as np

from .words import with_article

F = TypeVar("F", bound=Callable[..., Any])
Operand = Any

RRULE, NONDIFF, QUERY, MUTATOR, CALLER = "rrule", "nondiff", "query", "mutator", "caller"


class Missing:
    """A part of a tangent that does not exist; it is an error to ask for it."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """What the registry knows about one callable.

    ``kind`` is one of ``RRULE``, ``NONDIFF``, ``QUERY``, ``MUTATOR`` and ``CALLER``; ``function`` is the rrule (kind
    ``RRULE``), the functional equivalent (kind ``MUTATOR``) or ``None``. ``partials`` are the partial
    derivatives of an elementwise function (see `elementwise`), ``forward`` is the frule, and ``gaps`` says whether
    some partials are unknown. ``pure`` and ``pure_forward`` say whether the rrule and the frule are pure; ``custom``
    says that the callable is nothing but its rule (see `custom_rule`).
    """

    kind: str
    function: Callable[..., Any] | None = None
    partials: tuple[Any, ...] | None = None
    forward: Callable[..., Any] | None = None
    gaps: bool = False
    pure: bool = True
    pure_forward: bool = True
    custom: bool = False
    computes: bool = False

    @property
    def recorded(self) -> bool:
        """Whether the rule that the reverse mode goes by is not pure."""
        if self.function is None:
            return self.forward is not None and not self.pure_forward
        return not self.pure


class Rules(dict[Hashable, Rule]):
    """Rules by callable; ``changes`` counts how often one was added or taken away, and ``listeners`` are told."""

    changes = 0

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Callable[[], None]] = []
        self.loading: int | None = None  # the thread that is loading awaited rules
        self.before: frozenset[Hashable] = frozenset()  # what had rules when it began to

    def __setitem__(self, primitive: Hashable, rule: Rule) -> None:
        if self.loading == threading.get_ident():
            # Nobody has asked for these before, so nothing that was made is out of date; and a user's own rule stays.
            if primitive not in self.before:
                super().__setitem__(primitive, rule)
            return
        super().__setitem__(primitive, rule)
        self.changed()

    def __delitem__(self, primitive: Hashable) -> None:
        super().__delitem__(primitive)
        self.changed()

    def changed(self) -> None:
        self.changes += 1
        for listener in self.listeners:
            listener()


rules = Rules()
awaited: dict[
    str, str
] = {}  # by package: the module that holds its rules, as long as it is not loaded
loaded: set[str] = set()  # the packages of which it is
lock = threading.RLock()


def must_be_callable(primitive: Any) -> None:
    if not callable(primitive):
        raise TypeError(
            f"a rule is that of a function or another callable, not of {with_article(type(primitive).__name__)}\n"
            "name the callable: @rrule(math.cbrt) above the rule, or nondiff(fn)"
        )


def register(primitives: Iterable[Callable[..., Any]], rule: Rule) -> None:
    """Enter ``rule`` under each of ``primitives``, and under the C function that NumPy has wrapped up in one."""
    for primitive in primitives:
        must_be_callable(primitive)
        rules[primitive] = rule
        inner = getattr(primitive, "_implementation", None)
        if isinstance(inner, BuiltinFunctionType):
            rules[inner] = rule


def lookup(fn: Any) -> Rule | None:
    """The rule of ``fn``, or ``None`` where there is none (also for unhashable callables)."""
    try:
        rule = rules.get(fn)
    except TypeError:
        return None
    if rule is None and load(package_of(fn)):
        rule = rules.get(fn)
    return rule


def package_of(fn: Any) -> str:
    """The package, with one dot at most, in which a callable was defined; no code of the user's own is run."""
    kind = type(fn)
    if kind is np.ufunc:  # which does not know where it comes from
        return "scipy.special" if "scipy.special" in sys.modules else ""
    if issubclass(kind, type):  # ``isinstance`` would ask for its ``__class__``
        module = type.__getattribute__(fn, "__module__")
    elif (
        kind is FunctionType or kind is BuiltinFunctionType or kind.__module__.startswith("_cython")
    ):
        module = fn.__module__
    else:
        module = kind.__module__
    return front_of(module) if type(module) is str else ""


@functools.lru_cache(maxsize=1024)
def front_of(module: str) -> str:
    return ".".join(module.split(".", 2)[:2])


def load(package: str) -> bool:
    """Load the rules that are awaited for a package. Says whether it has any, which may have come just now."""
    if package not in awaited:
        return package in loaded
    with lock:
        if package not in awaited:  # another thread has loaded them meanwhile
            return True
        before, rules.loading = rules.loading, threading.get_ident()
        if before is None:
            rules.before = frozenset(rules)
        try:
            importlib.import_module(awaited[package])
        finally:
            rules.loading = before
        if before is None:  # or a module that is half loaded has asked
            loaded.add(package)
            del awaited[package]
    return True


HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = tuple(os.path.join(HOME, part) for part in ("tracer", "transforms", "rules"))


def is_ours(function: Any) -> bool:
    """Whether a rule is one of the package."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code.co_filename.startswith(OURS)


def is_users(fn: Any) -> bool:
    """Whether a callable has a rule that is not one of the package."""
    try:
        rule = rules.get(fn)
    except TypeError:  # not hashable
        return False
    if rule is None:
        return False
    return any(x is not None and not is_ours(x) for x in (rule.function, rule.forward))


def rrule(*primitives: Callable[..., Any], pure: bool = False) -> Callable[[F], F]:
    """Make each of ``primitives`` differentiable by the decorated rule.

    The rule is called with the arguments of the primitive and returns its value and a pullback, which maps
    the cotangent of the value to a tuple with one cotangent for each parameter, in order; ``None`` stands
    for zero. Those at the end may be left out (of options, say): a gradient by them is an error then, and no
    zero. An operand that is a list or a tuple gets its cotangents in a list or tuple of the same structure.

    Value and pullback are a pair. Where a traced argument is given, the rule is called in the primitive's place, once a
    call, and its pullback once in each reverse sweep that comes there, in reverse order; both may draw random numbers,
    read a clock, print, append or count. A rule that does nothing of that kind, and depends on nothing but its
    arguments, is ``pure``: with ``pure=True`` it is not run at each call but once for arguments of the same types,
    which is faster by far.

    >>> import math
    >>> @rrule(math.cbrt)
    ... def cbrt(x):
    ...     y = math.cbrt(x)
    ...     def pullback(dy):
    ...         return (dy / (3 * y * y),)
    ...     return y, pullback
    """

    def decorate(rule: F) -> F:
        register(primitives, Rule(RRULE, rule, pure=pure or is_ours(rule)))
        return rule

    return decorate


# What gives values of another type, dtype or shape for other values of the same operands.
by_value: set[Callable[..., Any]] = set()


def varies(*functions: F) -> None:
    """Declare that the type, dtype or shape of what each function gives goes by the values of its operands."""
    by_value.update(functions)


# The packages whose functions give values of one type for operands of one type, but for those `by_value`.
KNOWN_PACKAGES = frozenset(
    ("builtins", "math", "operator", "_operator", "statistics", "numpy", "scipy", "wengert")
)


def is_typed_by_operands(fn: Any) -> bool:
    """Whether the type of what a function gives follows from those of its operands: of a user's own, nobody knows."""
    return package_of(fn).partition(".")[0] in KNOWN_PACKAGES and fn not in by_value


# By what solves a system with the factors of a matrix: what factors it, and the same solver with the matrix before its
# operands. That one's derivative has no need of those of the factors, which are its second operand.
factored: dict[Callable[..., Any], tuple[Callable[..., Any], Callable[..., Any]]] = {}


def by_matrix(fn: Any) -> bool:
    """Whether a function solves with factors and knows the matrix that they were made of."""
    if type(fn) is not FunctionType:
        return False
    return any(fn is solver for _, solver in [*factored.values()])  # another thread may load more


def frule(*primitives: Callable[..., Any], pure: bool = False) -> Callable[[F], F]:
    """Give each of ``primitives`` the decorated rule for the forward mode.

    The rule is called as ``rule(primals, tangents, **options)``: a tuple of the operands, a tuple with the tangent
    of each of them (``None`` is a zero, and of an operand that is a list or a tuple there is a list or a tuple of
    tangents), and the options as keywords. It returns ``(value, tangent)``, the tangent with the structure, the
    shapes and the kind of the value (``None`` is a zero). It may return ``NotImplemented`` for options that it does
    not know.

    One rule is enough for both modes: where there is no frule the forward mode transposes the pullback (which must be
    linear in the cotangent: one that clips it or decides by it is refused there), and where there is no rrule the
    reverse mode transposes this rule. A second one pays where that would compute something twice. An rrule that is
    registered after an frule takes the place of both.

    The rule is called in the primitive's place, once a call, and its value and its tangent are a pair. What it computes
    from the tangents is the derivative for whatever tangents there are, so it must be linear in them; where they are
    not known yet (in all but `jvp`) it is given ones. A rule that does nothing but compute from its arguments is
    ``pure``: with ``pure=True`` it is not run at each call but once for arguments of the same types. Where both modes
    have a rule, the one that is asked for is run.

    >>> import math
    >>> @frule(math.cbrt)
    ... def cbrt(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     y = math.cbrt(x)
    ...     return y, dx / (3 * y * y)
    """

    def decorate(rule: F) -> F:
        for primitive in primitives:
            known = lookup(primitive)
            if known is None or known.kind != RRULE:
                known = Rule(RRULE)
            own = pure or is_ours(rule)
            register((primitive,), replace(known, forward=rule, pure_forward=own))
        return rule

    return decorate


@overload
def nondiff(*, pure: bool) -> Callable[[F], F]: ...
@overload
def nondiff(*primitives: F, pure: bool = False) -> F: ...
def nondiff(*primitives: Any, pure: bool = False) -> Any:
    """Declare that the value of each primitive carries no derivative: ``floor``, ``argmax``, ``x < y``.

    Returns the first of them, so that it serves as a decorator as well. A function of yours may do anything, so that a
    run that calls it is traced each time; ``@nondiff(pure=True)`` says that it only computes, and that kept programs
    may call it.

    >>> @nondiff(pure=True)
    ... def bucket(x):
    ...     return int(x // 10)
    """
    if not primitives:
        return functools.partial(nondiff, pure=pure)
    register(primitives, Rule(NONDIFF, computes=pure))
    return primitives[0]


def query(*functions: F) -> F:
    """Declare that each function looks at types and shapes only; its result is a plain value."""
    register(functions, Rule(QUERY))
    return functions[0]


def mutates(*primitives: Callable[..., Any]) -> Callable[[F], F]:
    """Describe mutators of their first argument by a function that returns the array they would leave behind.

    >>> import numpy as np
    >>> @mutates(np.ndarray.fill)
    ... def fill(a, value):
    ...     return np.full_like(a, value)
    """

    def decorate(functional: F) -> F:
        register(primitives, Rule(MUTATOR, functional))
        return functional

    return decorate


def caller(*primitives: Callable[..., Any]) -> Callable[[F], F]:
    """Say what a function that is given functions comes down to.

    The decorated function is called with the engine (`wengert.tracer.closing.Engine`) and the arguments, boxes
    among them. It makes functions with ``engine.close``, records primitives that have ordinary rules with
    ``engine.record``, and returns the result; or ``NotImplemented``, for options of which it knows nothing.
    """

    def decorate(function: F) -> F:
        register(primitives, Rule(CALLER, function))
        return function

    return decorate
