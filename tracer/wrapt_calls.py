"""Calls of what the package wrapt makes of functions: where its wrappers are in C, the same is done in Python.

The package has each of its classes twice, under one name, and falls back to those in Python.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .reads import static

NAMES = frozenset(("_FunctionWrapperBase", "BoundFunctionWrapper", "CallableObjectProxy"))


def in_python(kind: type) -> Any:
    """The function in Python that does what a class of wrapt's in C does when it is called; else None."""
    return written(static(kind, "__call__")) if "wrapt._wrappers" in sys.modules else None


def written(call: Any) -> Any:
    """The same for what such a class has for ``__call__``."""
    if type(call) is not types.WrapperDescriptorType or call.__name__ != "__call__":
        return None
    compiled, source = map(sys.modules.get, ("wrapt._wrappers", "wrapt.wrappers"))
    name = call.__objclass__.__name__
    if compiled is None or name not in NAMES or vars(compiled).get(name) is not call.__objclass__:
        return None
    found = static(vars(source).get(name, object), "__call__")
    return found if type(found) is types.FunctionType else None
