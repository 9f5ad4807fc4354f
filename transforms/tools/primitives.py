"""What is recorded as one operation instead of being looked into: ``primitives=`` of `trace`, `grad` and `pullback`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...tracer.box import BOXES
from ...tracer.errors import TraceError
from ...tracer.kinds import is_one_of

Predicate = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]


def chosen(primitives: Any) -> Predicate | None:
    """What decides: of a collection of callables, whether one is in it; a function is asked.

    It is called with the callee, and with the tuple of its arguments if it takes two: plain values of the run.
    """
    if primitives is None:
        return None
    if not callable(primitives):
        try:
            members = list(primitives)
        except TypeError:
            raise TraceError(
                f"primitives must be a collection of callables or a predicate, not {primitives!r}\n"
                "primitives={np.dot}, or primitives=lambda fn: fn is np.dot"
            ) from None
        return lambda fn, args, kwargs: any(fn is x or fn == x for x in members)
    if takes_arguments(primitives):
        return lambda fn, args, kwargs: bool(
            primitives(fn, (*plain(args), *plain(kwargs).values()))
        )
    return lambda fn, args, kwargs: bool(primitives(fn))


def takes_arguments(predicate: Callable[..., Any]) -> bool:
    """Whether a predicate looks at the arguments beside the callee."""
    try:
        inspect.signature(predicate).bind(None, ())
    except TypeError:
        return False
    except ValueError:  # written in C
        return False
    return True


def plain(x: Any) -> Any:
    """Arguments with values in the place of boxes."""
    kind = type(x)
    if is_one_of(kind, BOXES):
        return x.value
    if is_one_of(kind, (list, tuple)):
        return kind([plain(y) for y in x])
    if kind is dict:
        return {key: plain(y) for key, y in x.items()}
    return x
