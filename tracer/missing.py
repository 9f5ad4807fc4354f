"""What a missing rule says: where it is missing, and the rule to write, ready to be pasted.

Words
-----
stub       the source of a rule in which only the cotangents are missing, in five lines: an error has six at most.
hole       where a cotangent is to be filled in: one for each parameter up to the last that needs one.
address    a name by which another module gets hold of a callable: ``scipy.special.gammainc``.
"""

from __future__ import annotations

import ast
import inspect
import operator
import sys
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..rules.elementwise import unknown
from .box import BOXES
from .errors import NoRuleError
from .kinds import HEAP_TYPE, attribute, flags_of, is_one_of, isinstance
from .places import WITH_A_RULE, blame, in_words, is_others
from .tape import Op, Site, caller_of, fn_name, primal

# Where to look for a callable before the module that it names, which may be a private one.
HOMES = (
    *("numpy", "numpy.linalg", "numpy.fft", "numpy.random"),
    *("scipy.special", "scipy.linalg.blas", "scipy.linalg.lapack"),
)


def place_of_op(op: Op) -> str:
    """The place of an op of a run that is over: who calls now has not led there."""
    known = caller_of(op)
    if known is not None or not op.site.filename:
        return known or blame(op.site)
    if op.tape is None or not is_others(op.site.filename):
        return in_words(op.site)
    return f"{in_words(op.site)} (called inside {op.tape.name}, {op.tape.site.place})"


def no_rule(
    fn: Any,
    site: Site,
    args: Any,
    kwargs: Any,
    why: str = "has no rule",
    place: str | None = None,
    value: Any = 0.0,
) -> str:
    """What to tell a user about a callable that cannot be differentiated: it gave ``value`` for these arguments."""
    module, name = address(fn)
    if flags_of(type(fn)) & HEAP_TYPE and is_one_of(type(attribute(fn, "__wrapped__")), IN_PYTHON):
        return f"{place or blame(site)}: {full_name(fn)} {why}: it is called by a wrapper in C\n{UNWRAPPED}"
    if module is None and is_others(site.filename):  # nobody can call something else there
        short = name.rpartition(".")[2]
        return f"{place or blame(site)}: {short} {why}\n{IN_A_FUNCTION}"
    full = full_name(fn)
    stub = "\n".join("    " + line for line in lines(fn, module, name, args, kwargs))
    todo = "paste one, and call it instead"
    if module is not None:
        above = f"wengert.numeric_rule({full})"
        if not isinstance(value, (float, np.ndarray, np.generic)):
            above = "@wengert.numeric_rule above a function that calls it and returns one array"
        todo = f"{above} lets finite differences stand in for one, or paste one"
    return f"{place or blame(site)}: {full} {why}: {todo}\n{stub}"


def full_name(fn: Any) -> str:
    """How a person would call it: with its module, where there is one."""
    module, name = address(fn)
    return f"{module}.{name}" if module not in (None, "builtins") else name


IN_A_FUNCTION = (
    "put all that is done with it into a function from numbers and arrays to numbers and arrays, and let finite "
    f"differences stand in with @wengert.numeric_rule above it; or {WITH_A_RULE} (docs/errors.md#compiled-code)"
)


IN_PYTHON = (FunctionType, MethodType)
UNWRAPPED = (
    "call what it wraps, __wrapped__, or write the decorator in Python; those of wrapt are in Python with "
    "WRAPT_DISABLE_EXTENSIONS=1 in the environment"
)


def address(fn: Any) -> tuple[str | None, str]:
    """The module and the name in it where a callable is found; without a module if nobody else finds it."""
    owner = attribute(fn, "__objclass__")
    name = attribute(fn, "__qualname__") or attribute(fn, "__name__")
    if type(fn).__name__ == "fortran":  # a function of BLAS or LAPACK
        name = fn.__name__.rpartition(" ")[2]
    if not isinstance(name, str):
        return None, type(fn).__name__
    for module in (*HOMES, getattr(owner or fn, "__module__", None)):
        try:
            if operator.attrgetter(name)(sys.modules[module]) is fn:  # type: ignore[index]
                return module, name
        except (AttributeError, KeyError):
            pass
    return None, name


def lines(fn: Any, module: str | None, name: str, args: Any, kwargs: Any) -> list[str]:
    """The stub of a rule, line by line."""
    parameters, given = parameters_of(fn, args, kwargs)
    wanted = [p.default is p.empty or has_number(given.get(p.name), OPERANDS) for p in parameters]
    count = max([i + 1 for i, one in enumerate(wanted) if one], default=0)
    names = [p.name for p in parameters[:count]]
    holes = ["..." if has_number(given.get(x), NUMBERS) else "None" for x in names]
    taken = {p.name for p in parameters} | {name.partition(".")[0]}
    value, dy = [x + "_" * (x in taken) for x in ("value", "dy")]
    short = name.rpartition(".")[2]
    passed = ", ".join(handed_on(p) for p in parameters)
    imports = "import wengert"
    if module is None:
        decorator, own, called = "custom_rule", short, f"...  # {name}({passed})"
    else:
        full = f"{module}.{name}" if module != "builtins" else name
        decorator, own, called = f"rrule({full})", f"{short}_rule", f"{full}({passed})"
        imports += f", {module}" if module != "builtins" else ""
    plain = [
        p.replace(kind=max(p.kind, p.POSITIONAL_OR_KEYWORD), annotation=p.empty) for p in parameters
    ]
    return [
        imports,
        f"@wengert.{decorator}",
        f"def {own if own.isidentifier() else 'function'}{inspect.Signature(plain)}:",
        f"    {value} = {called}",
        f"    return {value}, lambda {dy}: ({', '.join(holes)}{',' * (count == 1)})"
        f"  # the cotangents of {', '.join(names)}; None is a zero",
    ]


def handed_on(p: inspect.Parameter) -> str:
    """How a stub hands a parameter on."""
    positional = p.default is p.empty and p.kind is not p.KEYWORD_ONLY
    return p.name if positional or p.kind is p.POSITIONAL_ONLY else f"{p.name}={p.name}"


OPERANDS = (Op, *BOXES)
NUMBERS = (*OPERANDS, float, complex, np.inexact)


def has_number(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an argument holds something of these kinds."""
    if isinstance(value, (tuple, list)):
        return any(has_number(x, kinds) for x in value)
    return isinstance(value, kinds)


def parameters_of(
    fn: Any, args: Any, kwargs: Any
) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """The parameters of a stub, and what was given for them: by the callable's signature, or as it was called."""
    kinds = inspect.Parameter
    found: list[inspect.Parameter] = []
    given: dict[str, Any] = dict(kwargs)

    def take(names: list[str], values: Any) -> None:
        found.extend(kinds(x, kinds.POSITIONAL_ONLY) for x in names)
        given.update(zip(names, values, strict=True))

    try:
        if isinstance(fn, np.ufunc):  # whose options a rule need not have
            raise ValueError
        signature = inspect.signature(fn)
        bound = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        take([f"x{i + 1}" for i in range(len(args))] if len(args) > 1 else ["x"][: len(args)], args)
        return found + [option(key, x) for key, x in kwargs.items()], given
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            rest = bound.get(name, ())
            take([f"{name}{i + 1}" for i in range(len(rest))], rest)
        elif p.kind is p.VAR_KEYWORD:
            found += [option(key, x) for key, x in bound.get(name, {}).items()]
        elif p.default is p.empty or is_literal(p.default) or name in bound:
            fixed = p.default is p.empty or is_literal(p.default)
            found.append(p if fixed else p.replace(default=None))
            if name in bound:
                given[name] = bound[name]
    return found, given


def option(name: str, value: Any) -> inspect.Parameter:
    """A keyword argument of which no more is known than what it was."""
    default = value if is_literal(value) else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def is_literal(value: Any) -> bool:
    """Whether a default can be written down as it is."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def known_of(op: Op, x: Any, d: Any) -> Any:
    """The cotangent of an operand; an error where one is asked of which the rule says nothing."""
    if type(d) is not unknown:
        return d
    dtype = getattr(primal(x), "dtype", None)
    if isinstance(primal(x), int) or (dtype is not None and dtype.kind in "iub"):
        return None  # of a count, there is none
    raise NoRuleError(
        f"{place_of_op(op)}: {fn_name(op.fn)} has no formula for its derivative in {d.name}\n"
        f"keep {d.name} constant, or give a rule with @wengert.rrule"
    )
