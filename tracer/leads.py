"""Whether code that runs as it is may come upon Python code of the user's, which then runs behind the tracer's back.

A file in C writes to what it was made for, a reader asks an iterator for lines, a key of ``functools.cmp_to_key``
compares by a function: what these do may be Python code, which changes what the run has seen already. No list of names
can tell. It is told by what a callable holds, and what it is given.
"""

from __future__ import annotations

import gc
import io
import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from .box import BOXES
from .detours import code_of, made_inside
from .frames import STREAMS
from .kinds import HEAP_TYPE, IMMUTABLE, attribute, dict_of, flags_of, is_one_of, mro_of, static
from .places import is_library
from .text import PRIVATE

# Of what sort the methods of NumPy's generators are, which call nothing.
DRAW, DRAW_MODULE = type(np.random.Generator.normal), np.random.Generator.__module__
QUIET = (
    frozenset((int, float, complex, bool, str, bytes, bytearray, type(None), range, slice))
    | frozenset((np.dtype, np.ufunc, types.ModuleType, types.CodeType, type(Ellipsis)))
    | frozenset((types.MethodDescriptorType, types.WrapperDescriptorType, types.FrameType))
    | frozenset(t for t in vars(np).values() if type(t) is type and issubclass(t, np.generic))
    | frozenset((io.StringIO, io.BytesIO))
    | STREAMS
    | BOXES
    | PRIVATE
)
SIZED = frozenset((tuple, list, dict, set, frozenset, deque))
MOST = 200  # things to look at, and items in one: more are data, most likely


def leads_to_users(fn: Any, given: Iterable[Any]) -> bool:
    """Whether a callable that is given these may run Python code of the user's of which the run sees nothing."""
    todo = [x for x in given if not is_quiet(x)]
    if not is_quiet(fn):
        todo.append(fn)
    return bool(todo) and reaches(todo)


def is_quiet(x: Any) -> bool:
    """Whether it is seen at once that something leads nowhere."""
    kind = type(x)
    if kind is DRAW:
        return attribute(x, "__module__") == DRAW_MODULE
    if kind is types.BuiltinFunctionType:
        kind = type(x.__self__)
        return kind is types.ModuleType or is_one_of(kind, QUIET)
    if kind is np.ndarray:
        return x.dtype.kind != "O" and x.base is None
    return is_one_of(kind, QUIET) or (is_one_of(kind, SIZED) and not x)


def is_open(x: Any) -> bool:
    """Whether something is a container of Python's own, or an object with methods of the user's."""
    kind = type(x)
    return is_one_of(kind, SIZED) or (not is_quiet(x) and has_users_code(kind))


def reaches(start: list[Any]) -> bool:
    """Whether code of the user's can be reached from these: what is near is looked at first."""
    seen: set[int] = set()
    todo = deque(start)
    while todo and len(seen) < MOST:
        x = todo.popleft()
        kind = type(x)
        if id(x) in seen or is_quiet(x) or is_ours(kind):
            continue
        seen.add(id(x))
        if kind is types.FunctionType:
            if is_unseen(x):
                return True
            todo += [*(x.__closure__ or ()), *(x.__defaults__ or ())]
        elif kind is types.GeneratorType:
            if not is_library(x.gi_code.co_filename):
                return True
        elif issubclass(kind, type):
            if has_users_code(x):
                return True
        elif has_users_code(kind):
            return True
        elif kind is types.MethodType:
            todo += [x.__func__, x.__self__]
        elif kind is np.ndarray:
            todo += x.ravel().tolist() if x.dtype.kind == "O" and x.size < MOST else [x.base]
        elif not (is_one_of(kind, SIZED) and len(x) > MOST):
            todo += [y for y in gc.get_referents(x) if not issubclass(type(y), type)]
    return False


def is_ours(kind: type) -> bool:
    """Whether a class is one of Wengert's, whose objects run what they hold as twins."""
    return str(static(kind, "__module__")).startswith("wengert.")


def is_unseen(fn: types.FunctionType) -> bool:
    """Whether a function is the user's, and runs as it is."""
    return not (made_inside(fn) or is_library(code_of(fn).co_filename))


def has_users_code(kind: type) -> bool:
    """Whether a class has methods of the user's."""
    for base in mro_of(kind) or ():
        flags = flags_of(base)
        if not flags & HEAP_TYPE or flags & IMMUTABLE or id(base) in LIBRARY_CLASSES:
            continue
        for x in [*dict_of(base).values()]:
            fn = x.fget if type(x) is property else attribute(x, "__func__", x)
            if type(fn) is types.FunctionType and is_unseen(fn):
                return True
        name = str(static(base, "__module__"))
        file = getattr(sys.modules.get(name), "__file__", None)
        if is_library(file) if type(file) is str else name in sys.stdlib_module_names:
            LIBRARY_CLASSES[id(base)] = base
    return False


LIBRARY_CLASSES: dict[int, type] = {}  # which have been looked through
