"""``interpret``: passes other than differentiation, on the same tracer.

Words
-----
primitive   a callable that the tracer does not look into: what has a rule, Python's operators, and functions in C.
pass        the user's function, which is called in the place of each primitive and returns the value to go on with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...rules.words import with_article
from ...tracer.active import active, untraced
from ...tracer.entrances import entrance
from ...tracer.errors import TraceError
from ...tracer.intrinsic import intrinsic
from ...tracer.run import run
from ...tracer.tape import Site


@intrinsic
@entrance
def interpret(
    f: Callable[..., Any],
    /,
    *args: Any,
    call: Callable[[Any, tuple[Any, ...], dict[str, Any], Site], Any],
    **kwargs: Any,
) -> Any:
    """Run ``f(*args, **kwargs)`` with ``call`` in the place of each primitive call, and return what ``f`` returns.

    ``call(fn, args, kwargs, site)`` gets the callable (``operator.mul``, ``np.exp``, ``math.sin`` …), its arguments as
    plain values, and the user's place: ``site.filename``, ``site.lineno``, ``site.function``. What it returns is the
    value that ``f`` goes on with: ``fn(*args, **kwargs)`` to let things run as they would, anything else to change
    them. Control flow follows the values that it returns. A number may be of a class of its own that derives from
    float and carries more than its value (bounds, units, a count): later calls get that very object.

    What is seen is what is computed from the arguments, or from floats and arrays that lie outside of ``f``, in ``f``
    and in all Python functions that it calls; arithmetic on loop counters is not, nor is what ``fn`` does inside. An
    in-place operation is the operation and a write, and the write is not seen. An array that is given back may not be
    one of the arguments of the call. Of a gradient that is taken in ``f`` the forward run is seen, and not the sweep:
    that is seen in ``interpret(reverse(trace(f, x)), x, call=…)``.

    Raises `TraceError` for what cannot be traced, and inside a function that is being traced; and whatever ``f`` and
    ``call`` raise.

    >>> import operator
    >>> from wengert import interpret
    >>> def count(fn, args, kwargs, site):
    ...     seen.append(fn.__name__)
    ...     return fn(*args, **kwargs)
    >>> seen = []
    >>> interpret(lambda x: x * x + 1.0, 3.0, call=count), seen
    (10.0, ['mul', 'add'])
    >>> interpret(lambda x: x * x + 1.0, 3.0, call=lambda fn, args, kwargs, site: max(args))
    3.0
    """
    if not callable(call):
        raise TraceError(
            f"interpret takes call=, a function of (fn, args, kwargs, site), not {with_article(type(call).__name__)}\n"
            "one that changes nothing is: lambda fn, args, kwargs, site: fn(*args, **kwargs)"
        )
    if active.tracer is not None:
        raise TraceError(
            "interpret cannot be used inside a function that is being traced\n"
            "call it outside, of the function itself"
        )

    def perform(fn: Any, given: Any, named: Any, site: Site, go: Any) -> Any:
        with untraced():
            return call(fn, given, named, site)

    return run(f, args, kwargs, perform=perform).value
