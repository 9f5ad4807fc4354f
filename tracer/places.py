"""Places in a program: which line of the user's is to blame, and what to tell about it.

Words
-----
site      the place that an instruction of a twin comes from.
library   code of the standard library or of an installed package: the user's own line is further out.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NoReturn, TypeVar

from ..rules.registry import (
    OURS as OURS,
)  # where our own code lies: its frames are never the user's
from .kinds import attribute, own_dict
from .tape import NOWHERE, Site

F = TypeVar("F", bound=Callable[..., Any])

# Programs, and other code of ours that lies in no file.
GENERATED = (*OURS, "<wengert")


def blame(site: Site) -> str:
    """A place in a program, and the line of the user's own that led there through somebody's library."""
    caller = called_from(site)
    if not site.filename and caller is not None:  # of a call by Wengert itself
        return in_words(caller)
    return in_words(site) + (f" (called from {in_words(caller)})" if caller is not None else "")


def in_words(site: Site) -> str:
    return f"{site.place}, in {site.function}"


def quoted(site: Site) -> str:
    """A line of a message with the text of a place's line, or nothing where the source is not at hand."""
    return f"    {site.text}\n" if site.text else ""


def called_from(site: Site) -> Site | None:
    """The line of the user's own that led to a place in a library, or in a rule, as long as that is running."""
    frame = sys._getframe(1) if is_others(site.filename) else None
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name) and not name.startswith(GENERATED):
            return Site(name, frame.f_lineno or 0, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def raise_at(site: Site, error: BaseException) -> NoReturn:
    """Raise an error at a line of the user's that has run before: the traceback ends there, with the line's text."""
    error.__suppress_context__ = True
    if not site.filename or is_others(site.filename):
        raise error
    tree = ast.parse("raise error.pop()")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = site.lineno
            node.col_offset = node.end_col_offset = -1  # nothing in the line is to be underlined
    code = compile(tree, site.filename, "exec")
    exec(code.replace(co_name=site.function, co_qualname=site.function), {"error": [error]})
    raise AssertionError


def advice() -> str:
    """What to do where a library's compiled code has been reached, by the name of what the user has called."""
    frame, called = sys._getframe(1), None
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(GENERATED):
            if not is_library(name):
                break
            called = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    what = "what is called there" if called is None else f"{called}()"
    return (
        f"put the call of {what} into a function of numbers and arrays, and let finite differences stand in with "
        f"@wengert.numeric_rule above it; or {WITH_A_RULE}"
    )


WITH_A_RULE = (
    "write @wengert.nondiff above it, and call it in a @wengert.custom_rule with its derivative"
)


LIBRARY = tuple(
    {
        os.path.dirname(os.__file__) + os.sep,
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *OURS,  # also where it is not installed, but lies in a checkout
    }
)


TYPED = ("<ipython-input-", "<python-input-", "<stdin>", "<console>")  # what is typed at a prompt


def is_library(filename: str) -> bool:
    """Whether a file belongs to the standard library or to an installed package, or code lies in no file."""
    if filename.startswith("<"):
        return not filename.startswith(TYPED)
    return filename.startswith(LIBRARY) or filename == ""


def is_others(filename: str) -> bool:
    """Whether a file is not the user's: a library's, or one of ours, in which rules lie that are traced."""
    return is_library(filename) or filename.startswith(OURS)


def module_of(fn: Any) -> str:
    """The module that a callable comes from.

    A function may bear any name, and that of a module as well: ``functools.wraps`` gives it both. But it has the
    globals of the module that it was written in.
    """
    name = attribute(fn, "__module__")
    if type(name) is not str:
        return ""
    if type(fn) is FunctionType:
        module = sys.modules.get(name)
        own = module.__dict__ if type(module) is ModuleType else own_dict(module)
        if own is not fn.__globals__:
            return ""
        standard = name.partition(".")[0] in sys.stdlib_module_names
        if standard and not is_library(fn.__code__.co_filename):  # the user has one of that name
            return ""
    return name


def user_site() -> Site:
    """The innermost line of the program that is not Wengert's own."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(GENERATED):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return NOWHERE
    return Site(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)


def user_frame() -> Any:
    """The frame of the traced function that is calling."""
    return outer(sys._getframe())


def is_ours(frame: Any, ours: tuple[str, ...] = GENERATED) -> bool:
    """Whether a frame is Wengert's own."""
    return frame.f_code.co_filename.startswith(ours)


def outer(frame: Any) -> Any:
    """The frame that called a frame, as it would be in plain Python; None where there is none."""
    frame = frame.f_back
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


# A part of the filenames of frames that ``warnings`` and ``logging`` take for those of the import system.
IMPORTING = "<as importlib._bootstrap>"


def passed_over(f: F) -> F:
    """Let a function of ours not count where a line is named by counting frames outwards (``stacklevel=2``).

    So a function that is called as it is names its caller's line.
    """
    code = f.__code__  # type: ignore[attr-defined]
    f.__code__ = code.replace(co_filename=f"{code.co_filename} {IMPORTING}")  # type: ignore[attr-defined]
    return f


# Their own business, with no numbers in it: their Python functions are run as they are.
UNTRACED = frozenset(
    "importlib logging warnings typing inspect enum abc threading re ast tokenize linecache traceback types "
    "_py_warnings annotationlib io codecs locale encodings pickle copyreg _weakrefset pprint unittest "
    "pytest _pytest subprocess socket tabulate tqdm matplotlib pdb bdb cmd".split()
)


def root_of(fn: Any) -> str:
    """The package that a function comes from."""
    return module_of(fn).partition(".")[0]
