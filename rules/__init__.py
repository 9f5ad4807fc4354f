"""Rules: how each primitive is differentiated. Importing this package registers all of them."""

from . import broadcasting, elementwise, math, mutation, operators  # noqa: F401
from .registry import lookup, mutates, nondiff, query, rrule

__all__ = ["lookup", "mutates", "nondiff", "query", "rrule"]
