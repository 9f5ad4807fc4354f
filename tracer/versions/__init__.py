"""What differs between CPython versions: one small module a version, ``current`` the running one.

Each module holds

HANDLED      opcode name -> what the rewriter does with it: the name of a method of
             ``rewrite.Rewriter``, or a function here that takes the rewriter and the instruction.
HARMLESS     opcodes that are copied: they move values about, or no value of the user meets them.
REFUSED      opcodes of asynchronous code, and those that never occur in a code object.
NULL_BELOW   True where PUSH_NULL comes before the callable, False where it comes after it.
IMPORT_SHIFT by so many bits the index of a name is shifted in the argument of IMPORT_NAME.
CALL         the instructions that make a call, each with the number of arguments.
attribute    a function that tells what an attribute load loads.

and imports from an earlier version what has stayed the same. Every opcode in ``dis.opmap`` is in
exactly one of the three tables.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))


def load(version: tuple[int, int]) -> ModuleType:
    """The module that describes the bytecode of CPython ``version``."""
    if version not in SUPPORTED or sys.implementation.name != "cpython":
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        raise ImportError(
            f"Wengert rewrites the bytecode of CPython {known}; "
            f"this is {sys.implementation.name} {version[0]}.{version[1]}"
        )
    return importlib.import_module(f"{__name__}.py{version[0]}{version[1]}")


current = load(sys.version_info[:2])
