"""What Python code runs when a class is made."""

from __future__ import annotations

import types
import weakref
from typing import Any

from .detours import code_of
from .kinds import isinstance, mro_of, static
from .places import LIBRARY
from .session import Tracer
from .tape import Site


def note_making(tracer: Tracer, site: Site, made: Any, bases: Any = ()) -> None:
    """Note that the run has made a class; where code of the user's has run for that, no program runs it again."""
    if isinstance(made, type):
        tracer.classes[id(made)] = weakref.ref(made)
    reads = tracer.reads
    if reads is None:
        return
    if runs_code(made) or not all(isinstance(x, type) for x in bases):
        reads.problem(f"making the class {getattr(made, '__name__', made)} calls Python code", site)


def runs_code(made: Any) -> bool:
    """Whether what makes a class is the user's: its metaclass, its bases, or what stands in its body."""
    if not isinstance(made, type):
        return True
    found = [static(type(made), x) for x in ("__new__", "__init__", "__call__", "__prepare__")]
    found += [vars(x).get("__init_subclass__") for x in mro_of(made)[1:]]
    found += [static(type(x), "__set_name__") for x in vars(made).values()]
    methods = (getattr(x, "__func__", x) for x in found)
    return any(
        type(x) is types.FunctionType and not code_of(x).co_filename.startswith(LIBRARY)
        for x in methods
    )
