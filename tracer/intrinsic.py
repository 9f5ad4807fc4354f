"""What is Wengert's own and deals with boxes itself: the tracer calls it as it is."""

from __future__ import annotations

from typing import Any, TypeVar

F = TypeVar("F")

intrinsics: set[Any] = set()


def intrinsic(fn: F) -> F:
    """Mark a function of Wengert's own that deals with boxes itself."""
    intrinsics.add(fn)
    return fn


class Intrinsic:
    """An object whose bound methods deal with boxes themselves; it stands for a function ``f`` with ``options``."""

    __slots__ = ()
    f: Any
    options: tuple[Any, ...]

    def program_key(self) -> Any:
        """What stands for it where programs are kept."""
        raise NotImplementedError
