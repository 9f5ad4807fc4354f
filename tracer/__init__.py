"""The tracer: bytecode in, tape out."""

from . import calls as _calls  # noqa: F401  (the first of those that need each other)
