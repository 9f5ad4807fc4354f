"""What can go wrong, each with the user's function, file and line and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Is told of each refusal when it is made: a run must end in its first one, whatever the program catches.
listeners: list[Callable[[WengertError], None]] = []


class WengertError(Exception):
    """The base of every error that Wengert itself raises."""


class Refusal(WengertError):
    """The base of what a run cannot go on from: a value whose derivative would be lost, or a step not followed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for listener in listeners:
            listener(self)


class TraceError(Refusal):
    """The function does something that the tracer cannot follow."""


class EscapeError(TraceError):
    """Python code ran behind the tracer's back, or a traced value reached code that cannot record it."""


class NoRuleError(Refusal):
    """A derivative was asked of a callable that has no rule."""


class GuardError(WengertError, ValueError):
    """A tape is run for arguments for which the function decides otherwise than in the traced run."""


class CotangentError(WengertError):
    """The argument of a pullback does not fit the value it belongs to."""


class TangentError(WengertError):
    """A tangent does not fit the argument it belongs to."""
