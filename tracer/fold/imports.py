"""Imports inside of functions: of modules that are there, each is a read under the guards of any other.

What an import does otherwise, it does once in a process: a recording that is refused after it leaves nothing behind
that the traced run would not.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from ..attributes import asks_users
from ..hooks import imports_quietly, space_of
from ..places import is_library
from .basics import now, refuse


def begin(scope: dict[str, Any], name: str, names: Any, level: int) -> None:
    """A module is about to be imported: if that raises, the recording ends."""
    if not imports_quietly(scope, name, names, level):
        refuse(f"the import of {name} may run code of the user's")
    now().importing = True


def source(module: Any, name: str) -> Any:
    """A name of a module is about to be imported."""
    if asks_users(module, name):
        refuse(f"{name} is imported, which a module makes when it is asked")
    now().importing = True
    return module


def module(name: str, found: Any, last: list[Any], scope: dict[str, Any]) -> Any:
    """A module has been imported: it must be found again under its names."""
    recorder = now()
    recorder.importing = False
    outside, space = recorder.outside, space_of(scope)
    reads = outside.reads
    outside.note(reads.constant(space), "global", "__import__", space["__import__"])
    known = dict.fromkeys((name, name.partition(".")[0]))
    if type(found) is not types.ModuleType or not all(
        type(sys.modules.get(key)) is types.ModuleType for key in known
    ):
        refuse(f"the module {name} is imported in a way of its own")
    if type(space["__import__"]) is not types.BuiltinFunctionType:
        refuse(f"the module {name} is imported by a function of the user's")
    if not any(sys.modules[key] is found for key in known):
        refuse(f"the module {name} is imported in a way of its own")
    getter = vars(found).get("__getattr__")
    if type(getter) is types.FunctionType and not is_library(getter.__code__.co_filename):
        refuse(f"the module {name} has a __getattr__")  # which may do anything, and is asked once
    for key in known:
        outside.note(reads.constant(sys.modules), "global", key, sys.modules[key])
    last[:] = [found]
    return found


def name(wanted: str, found: Any, last: list[Any]) -> Any:
    """A name has been imported from the module imported last or, of ``import a.b.c as d``, from what that has given."""
    recorder = now()
    recorder.importing = False
    for owner in reversed(last):
        if vars(owner).get(wanted) is found:
            if type(found) is types.ModuleType:
                last[1:] = [found]
            return recorder.outside.of_module(owner, wanted)
    return refuse(f"{wanted} is imported, which a module makes when it is asked")
