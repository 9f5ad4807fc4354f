"""Lifetimes: what the engine holds goes when it is no longer needed, by its count of references.

Whoever has switched the cyclic garbage collector off, or has arrays of a gigabyte, does not wait for it.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any


def unlink(function: Any) -> None:
    """End a local function that calls itself: the cell by which it does would keep alive what it has seen."""
    assert isinstance(function, FunctionType)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    del dict(cells)[function.__name__].cell_contents
