"""Which arguments a derivative is taken by, and what else the functions that people call accept.

Words
-----
argnums   what the user names arguments by: numbers of positional ones, or names of parameters.
chosen    the same for one call: the position of each, or its name where it was given by keyword.
aux       what a function returns beside the value that is differentiated.
habit     a form of another library's, which is refused with the form that Wengert has.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from types import CodeType, MethodType
from typing import Any, TypeVar

from ..tracer.errors import TraceError
from ..tracer.kinds import attribute, isinstance
from ..tracer.protocols import plain_key
from ..tracer.run import Run, in_full, parameter_names
from ..tracer.structure import Branch, Tree
from ..tracer.tracebacks import fold

Argnums = int | str | Collection[int | str]
Checked = int | str | tuple[int | str, ...]
F = TypeVar("F", bound=Callable[..., Any])


def checked_argnums(argnums: Argnums) -> Checked:
    """``argnums`` as an int, a name, or a tuple of them; raises TraceError for anything else.

    A traced function may choose them by a variable, which is decided then.
    """
    argnums = plain_key(argnums)
    if type(argnums) is int or type(argnums) is str:
        return argnums
    if isinstance(argnums, Collection):
        keys = tuple(map(plain_key, argnums))
        if all(type(i) in (int, str) for i in keys):
            return keys
    raise TraceError(
        f"argnums must be the number or the name of a parameter, or several of them, not {shortened(argnums)}\n"
        f"{FUNCTION_FIRST}"
    )


def checked_aux(has_aux: bool) -> bool:
    """``has_aux``; raises TraceError where an argument of the function stands in its place."""
    has_aux = plain_key(has_aux)
    if type(has_aux) is not bool:
        raise TraceError(f"has_aux is True or False, not {shortened(has_aux)}\n{FUNCTION_FIRST}")
    return has_aux


FUNCTION_FIRST = (
    "a transform takes the function first, and the function that it gives takes the arguments: "
    "grad(f, argnums=(0, 1))(x, y)"
)


def shortened(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else f"{text[:56]} …"


def several(argnums: Checked) -> tuple[int | str, ...]:
    """``argnums`` as a tuple."""
    return argnums if type(argnums) is tuple else (argnums,)  # type: ignore[return-value]


def chosen(f: Any, argnums: Checked, count: int, named: Collection[str]) -> list[int | str]:
    """The arguments of a call with ``count`` positional ones and those ``named``; raises TraceError."""
    return [one_chosen(f, key, count, named) for key in several(argnums)]


def one_chosen(f: Any, key: int | str, count: int, named: Collection[str]) -> int | str:
    if type(key) is int and -count <= key < count:
        return key % count
    if key in named:
        return key
    names, rest = parameter_names(f)
    if type(key) is int and 0 <= key < len(names) and names[key] in named:
        return names[key]
    if key in names and names.index(key) < count:  # type: ignore[arg-type]
        return names.index(key)  # type: ignore[arg-type]
    given = f"{count} positional argument" + ("s were" if count != 1 else " was") + " given"
    by_name = f", and by name {', '.join(named)}" if named else ""
    name = names[key] if type(key) is int and 0 <= key < len(names) else key
    if name in names or name in by_name_alone(f):
        raise TraceError(
            f"argnums is {key!r}, but {given} to {in_full(f)}{by_name}\n"
            f"a derivative is taken by what the call gives, not by a default: add {name}=..."
        )
    known = f"; its parameters are {', '.join(names)}" if names and rest is None else ""
    raise TraceError(
        f"argnums is {key!r}, but {given} to {in_full(f)}{by_name}{known}\n"
        "argnums counts from 0, or names a parameter: argnums=0, argnums=(0, 1), argnums='x'"
    )


def by_position(f: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The arguments of a call in the order of the parameters; None where they are not the first ones of these."""
    if not named:
        return args
    names = own_names(f)
    given = names[len(args) : len(args) + len(named)]
    if len(args) < f.__code__.co_posonlyargcount or {*given} != {*named}:
        return None
    return (*args, *[named[name] for name in given])


def own_names(f: Any) -> tuple[str, ...]:
    """The parameters by which arguments may be given, of a function itself and none that it wraps."""
    code: CodeType = f.__code__
    return code.co_varnames[type(f) is MethodType : code.co_argcount]


def indices(f: Any, keys: Iterable[int | str]) -> list[int]:
    """What was chosen, by the numbers of the parameters."""
    names = own_names(f)
    return [names.index(key) if isinstance(key, str) else key for key in keys]


def by_name_alone(f: Any) -> list[str]:
    """The parameters of a Python function that are given by name alone."""
    code = attribute(f, "__code__")
    if code is None:
        return []
    return list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])


def options_text(argnums: Checked = 0, **options: Any) -> str:
    """Options that are not the usual ones, as a person would write them behind the function."""
    shown = f", argnums={argnums!r}" if argnums != 0 else ""
    return shown + "".join(f", {name}={value!r}" for name, value in options.items() if value)


# ------------------------------------------------------------------------------------------------- aux


def main_tree(f: Any, tree: Tree) -> Tree:
    """The tree of the value that is differentiated, in the result ``(value, aux)`` of ``f``."""
    if not isinstance(tree, Branch) or tree.kind is not tuple or len(tree.parts) != 2:
        raise TraceError(
            f"{in_full(f)} must return the pair (value, aux) with has_aux=True, and it did not\n"
            "return the value first and everything else in one object behind it, or leave has_aux out"
        )
    return tree.parts[0]  # type: ignore[no-any-return]


def leave_aux(f: Any, done: Run) -> Run:
    """Take the aux out of what a run of ``f`` has returned, as far as derivatives are concerned."""
    done.result = main_tree(f, done.result)
    if type(done.tape.result) is tuple:  # inside of another run the tape is that one's
        done.tape.result = done.tape.result[0]
    return done


# ---------------------------------------------------------------------------------------------- habits

RIGHT = {
    "argnum": "the arguments are chosen by argnums: grad(f, argnums=1), or by a parameter's name: "
    "grad(f, argnums='x')",
    "wrt": "the arguments are chosen by argnums: grad(f, argnums='x')",
    "wrt_self": "the gradient of what f holds itself (a closure, an object) is the first that "
    "pullback(f, x, wrt_self=True)[1](1.0) gives; or make f an argument: grad(lambda f, x: f(x))(f, x)",
    "static_argnums": "nothing has to be declared static: what is no float or array is guarded by its value; leave "
    "static_argnums out",
    "static_argnames": "nothing has to be declared static: what is no float or array is guarded by its value; leave "
    "static_argnames out",
    "donate_argnums": "arrays are not given away; leave donate_argnums out",
    "holomorphic": "derivatives of complex functions by complex numbers: jacobian(f, holomorphic=True)",
    "allow_int": "a number that is an int has a derivative, and an array of ints has none: convert it with "
    ".astype(float)",
    "create_graph": "derivatives nest without being told: grad(grad(f)); leave create_graph out",
    "retain_graph": "back may be called any number of times; leave retain_graph out",
    **dict.fromkeys(
        ("inputs", "outputs", "grad_outputs", "args"),
        "the function comes first, and the function that it gives takes the arguments: grad(f)(x)",
    ),
    "argnames": "argnums takes names as well: grad(f, argnums='x')",
    **dict.fromkeys(
        ("vectorize", "chunk_size", "unroll"), "all columns are one sweep over arrays; leave it out"
    ),
    "strategy": "the mode is chosen by what is shorter; jacobian(f, mode='forward'), jacfwd and jacrev choose it",
    **dict.fromkeys(
        (
            "nopython",
            "backend",
            "device",
            "inline",
            "fullgraph",
            "dynamic",
            "input_signature",
            "jit_compile",
        ),
        "a program is Python and NumPy, and there is nothing to choose; leave it out",
    ),
    **dict.fromkeys(
        ("policy", "prevent_cse", "use_reentrant"),
        "all that the function computes is computed again; leave it out",
    ),
}  # what other libraries call their options, and what to write


def refusing(fn: F) -> F:
    """An `entrance` that tells, of options that other libraries have, what to write here."""

    own = inspect.signature(fn).parameters
    most = sum(x.kind is not x.KEYWORD_ONLY for x in own.values())

    @functools.wraps(fn)
    def enter(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > most:
                raise TypeError(
                    f"{fn.__name__} takes {most} positional argument{'s' if most > 1 else ''}, and "
                    f"{len(args)} were given\n"
                    f"the function that it gives takes the arguments: {fn.__name__}(f)(x)"
                )
            if kwargs:
                for name in kwargs:
                    if name in RIGHT and name not in own:
                        raise TypeError(f"{fn.__name__} has no option {name}\n{RIGHT[name]}")
            return fn(*args, **kwargs)
        except BaseException as error:
            fold(error)
            raise

    return enter  # type: ignore[return-value]
