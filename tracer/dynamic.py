"""Code that comes to life while the function runs: ``exec``, ``eval``, ``compile`` and functions made of code objects.

Words
-----
source      text or a code object.
variables   those of the code that calls ``exec`` or ``eval``, which its twin hands over.

The code is instrumented like that of any function and run by the very builtin that was called, on the globals and
variables that plain Python would give it (see ``scopes``). What it says is known at the call, and does not come from
a traced number; so a kept program needs no guard of its own for it.
"""

from __future__ import annotations
import __future__

import functools
import inspect
import operator
from types import CellType, CodeType, FunctionType
from typing import Any

from ..rules.words import with_article
from . import attributes, meaning, places, protocols, rewrite
from .border import remember
from .box import BOXES
from .closed import reached
from .errors import TraceError
from .escape import watched
from .handlers import handles
from .kinds import has, is_one_of, isinstance
from .marks import found, refuse
from .protocols import plain_of
from .scopes import Execution, Variables, scope_of, seen_globals
from .session import Tracer
from .tape import Site
from .text import bare
from .unboxing import lower

FUTURE = functools.reduce(
    operator.or_,
    [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names],
)
CO_OPTIMIZED = inspect.CO_OPTIMIZED
MODES = {exec: "exec", eval: "eval"}
SIGNATURES = {fn: inspect.signature(fn) for fn in (exec, eval, compile)}


def execute(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """``exec`` or ``eval``."""
    given = handed(tracer, site)
    bound = bind(fn, args, kwargs)
    if bound is None:
        return fn(*args, **kwargs)  # raises what plain Python raises
    arguments = bound.arguments
    source, own, variables, closure = [
        arguments.get(name) for name in ("source", "globals", "locals", "closure")
    ]
    if own is None and variables is None and given is None:
        raise under_another_name(site, f"{fn.__name__}()")
    if not isinstance(own, dict | None) or not is_mapping(plain_of(variables)):
        fn("0", plain_of(own), plain_of(variables))  # raises what plain Python raises
    code = code_of(tracer, site, fn, source)
    if code is None:
        return fn(plain_of(source))  # raises what plain Python raises
    if (closure is not None or code.co_freevars) and not (
        fn is exec and fits(source, code, closure)
    ):
        return fn(source, {}, None, **({} if closure is None else {"closure": closure}))
    if own is None:
        scope = places.user_frame().f_globals
    else:
        must_be_plain(site, own)
        scope = scope_of(tracer, own)
        add_builtins(tracer, site, own, scope)
    if variables is not None:
        names = scope if variables is own else local_variables(tracer, variables)
    else:
        names = given if own is None else scope
    twin = instrumented(code)
    tracer.executing.append(Execution(scope, names))
    try:
        return fn(twin, scope, names, **({} if closure is None else {"closure": closure}))
    finally:
        tracer.executing.pop()
        for x in (own, variables):
            if isinstance(x, attributes.Namespace):
                x.refresh()


for _fn in (exec, eval):

    def _handler(tracer: Tracer, site: Site, args: Any, kwargs: Any, fn: Any = _fn) -> Any:
        return execute(tracer, site, fn, args, kwargs)

    handles(_fn)(_handler)


def bind(fn: Any, args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The arguments of a builtin by their names, or None if it does not take them."""
    try:
        return SIGNATURES[fn].bind(*args, **kwargs)
    except TypeError:
        return None


def handed(tracer: Tracer, site: Site) -> Any:
    """The variables of the code that makes this call, if its twin knew that they might be asked for."""
    given, tracer.variables = tracer.variables, None
    return given[1] if given is not None and given[0] == site else None


def of_caller(tracer: Tracer, site: Site, what: str) -> Any:
    """The variables of the code that calls ``locals``, ``vars`` or ``dir``, as it sees them."""
    variables = handed(tracer, site)
    if variables is None:
        raise under_another_name(site, what)
    if type(variables) is Variables:
        return variables.seen
    if tracer.executing and variables is tracer.executing[-1].globals:
        return seen_globals(tracer, site, variables, what)
    return variables


def keys_of(tracer: Tracer, site: Site, variables: Any) -> Any:
    """The names of variables: of a mapping that is no dict, what its ``keys`` gives."""
    if type(variables) is dict or isinstance(variables, attributes.Namespace):
        return variables
    method = attributes.load(tracer, site, variables, "keys")
    keys = meaning.calls.call(tracer, site, method, (), {})
    if not has(type(keys), "__iter__"):
        kind = type(variables)
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        methods = {"keys": lambda _: keys, "__getitem__": lambda _, name: {}[name]}
        stand_in = type(kind.__name__, (), {**names, **methods})()
        words = ""
        try:
            eval("dir()", {}, stand_in)
        except TypeError as error:
            words = str(error)
        raise TypeError(words)  # as this version says it
    return protocols.iterate_object(tracer, site, keys)


def is_mapping(variables: Any) -> bool:
    """Whether something may hold the variables of code; None stands for those of the caller."""
    return variables is None or has(type(variables), "__getitem__")


def under_another_name(site: Site, what: str) -> TraceError:
    """The error for a builtin that looks at its caller's variables, and was not called by its own name."""
    return TraceError(
        f"{places.blame(site)}: {what} looks at the variables of the function that calls it\ncall it by this name there"
    )


def code_of(tracer: Tracer, site: Site, fn: Any, source: Any) -> CodeType | None:
    """The code object of a source, or None if it is neither that nor text."""
    if isinstance(source, CodeType):
        return rewrite.original(source)
    if not isinstance(source, (str, bytes, bytearray, memoryview)):
        return None
    text: Any = bare(source)
    if fn is eval and isinstance(text, (str, bytes)):
        blanks: Any = " \t" if isinstance(text, str) else b" \t"
        text = text.lstrip(blanks)
    code = compile(text, "<string>", MODES[fn], inherited(), dont_inherit=True)
    must_not_be_drawn(tracer, site, fn, source, code)
    return code


def must_not_be_drawn(tracer: Tracer, site: Site, fn: Any, source: Any, code: Any) -> None:
    """Refuse code made of text that was drawn from a traced value: the numbers in it would lose their derivative."""
    if (origin := found(tracer, source)) is not None:
        refuse(tracer, site, fn, code, origin)


def inherited() -> int:
    """The ``from __future__`` imports of the code that is calling."""
    return places.user_frame().f_code.co_flags & FUTURE


@functools.lru_cache(maxsize=256)
def known(code: CodeType, filename: str) -> CodeType:
    """The first of equal code objects: text that is run again and again is instrumented once."""
    return code


def instrumented(code: CodeType) -> CodeType:
    """The twin of code that ``exec`` or ``eval`` runs."""
    try:
        return rewrite.instrument(known(code, code.co_filename), meaning.hooks, executed=True)
    except rewrite.UnsupportedCode as error:
        raise TraceError(f"{Site.of_code(code).place}: {error}") from None


def fits(source: Any, code: CodeType, closure: Any) -> bool:
    """Whether ``exec`` takes these cells."""
    return (
        isinstance(source, CodeType)
        and type(closure) is tuple
        and 0 < len(closure) == len(code.co_freevars)
        and all(type(cell) is CellType for cell in closure)
    )


def must_be_plain(site: Site, own: dict[str, Any]) -> None:
    """Refuse globals whose class has methods of its own, which CPython would call behind our back."""
    names = ("__getitem__", "__missing__", "__setitem__", "__delitem__", "__contains__")
    if isinstance(own, attributes.Namespace) or not any(
        protocols.method_of(own, name) for name in names
    ):
        return
    raise TraceError(
        f"{places.blame(site)}: the globals of this code are {with_article(type(own).__name__)}, whose methods "
        "cannot be followed there\ngive a dict for them, and this one for the local variables"
    )


def add_builtins(tracer: Tracer, site: Site, own: dict[str, Any], scope: dict[str, Any]) -> None:
    """``__builtins__``, which plain Python adds to the globals if it is not there: those of the caller."""
    if "__builtins__" in scope:
        return
    space = places.user_frame().f_builtins
    if own is scope:
        scope["__builtins__"] = space
    else:
        remember(tracer, space, space, "builtins")  # which nobody copies
        protocols.set_item(tracer, site, own, "__builtins__", space)


def local_variables(tracer: Tracer, variables: Any) -> Any:
    """What stands for the local variables of code, given the mapping that the traced function means."""
    if type(variables) is dict and id(variables) not in tracer.originals:
        return variables
    return Variables(tracer, variables)


def body_variables(tracer: Tracer, variables: Any) -> Any:
    """The same for a class body; CPython itself refuses what is no mapping."""
    return local_variables(tracer, variables) if has(type(variables), "__getitem__") else variables


def must_hold_no_traced(tracer: Tracer, site: Site, source: Any) -> None:
    """Raise where a syntax tree holds a traced number, which would be a constant of the code."""
    for path, x in reached(tracer, [(type(source).__name__, source)]):
        if is_one_of(type(x), BOXES) and tracer.dependence.has(x.op):
            raise TraceError(
                f"{places.blame(site)}: {path} is a traced number, which compile makes a constant, and its gradient "
                "would be lost\nlet the tree have a name there, and give eval the number as a variable"
            )


@handles(compile)
def _compile(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    asked = bind(compile, args, kwargs)
    args, kwargs = (
        [lower(tracer, x) for x in args],
        {k: lower(tracer, x) for k, x in kwargs.items()},
    )
    given = bind(compile, args, kwargs)
    if asked is None or given is None:
        return compile(*args, **kwargs)  # raises what plain Python raises
    source, options = given.arguments["source"], given.arguments
    if tracer.reads is not None and not isinstance(source, (str, bytes, bytearray, memoryview)):
        tracer.reads.problem(f"{with_article(type(source).__name__)} is compiled", site)
    must_hold_no_traced(tracer, site, source)
    if not options.get("dont_inherit", False):
        options["flags"] = operator.index(options.get("flags", 0)) | inherited()
        options["dont_inherit"] = True
    code = watched(compile, given.args, given.kwargs, site)
    must_not_be_drawn(tracer, site, compile, asked.arguments["source"], code)
    return code


@handles(FunctionType)
def _function(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    """A function made of a code object: it is one of the run's own."""
    given = dict(zip(("code", "globals"), args, strict=False)) | kwargs
    code, own = given.get("code"), given.get("globals")
    if type(code) is not CodeType or not isinstance(own, dict):
        return FunctionType(*map(plain_of, args), **kwargs)  # raises what plain Python raises
    must_be_plain(site, own)
    scope = scope_of(tracer, own)
    try:
        twin = rewrite.instrument(rewrite.original(code), meaning.hooks)
    except rewrite.UnsupportedCode:
        twin = code  # an async function; it is refused when it is called
    kwargs = {k: x for k, x in kwargs.items() if k not in ("code", "globals")}
    return FunctionType(twin, scope, *args[2:], **kwargs)
