"""What can go wrong, each with the user's function, file and line and what to do about it."""

from __future__ import annotations


class WengertError(Exception):
    """The base of every error that Wengert itself raises."""


class TraceError(WengertError):
    """The function does something that the tracer cannot follow."""


class EscapeError(TraceError):
    """Python code ran behind the tracer's back, or a traced value reached code that cannot record it."""


class NoRuleError(WengertError):
    """A derivative was asked of a callable that has no rule."""


class CotangentError(WengertError):
    """The argument of a pullback does not fit the value it belongs to."""


class TangentError(WengertError):
    """A tangent does not fit the argument it belongs to."""
