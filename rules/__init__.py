"""Rules: how each primitive is differentiated. Importing this package registers all of them."""

from . import (  # noqa: F401
    elementwise,
    mutation,
    numpy_ufuncs,
    operators,
    python_builtins,
    python_math,
)
from .registry import lookup, mutates, nondiff, query, rrule

__all__ = ["lookup", "mutates", "nondiff", "query", "rrule"]
