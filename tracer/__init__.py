"""The tracer: bytecode in, tape out."""

from . import protocols as _protocols  # noqa: F401  (the first of those that need each other)
