"""Calls that may destroy their arguments (``overwrite_a=True``): the result is computed of what they are, and then they
are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules.permissions import FLAGS, overwritten, signature, subject
from .arrays import write_all
from .box import ArrayBox
from .errors import TraceError
from .kinds import is_one_of, isinstance
from .record import operand
from .session import Tracer
from .slots import plain_of
from .tape import Site, append, primal


def destructive(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, told: dict[str, Any], compute: Any
) -> Any:
    """A call with the permissions that are ``told``; ``compute`` makes it without them."""
    found = signature(fn)
    assert found is not None
    given = found.bind(*args, **kwargs)
    for x, value in told.items():
        if not is_one_of(type(value), FLAGS):
            raise TraceError(f"{site}: {x}= is computed\nwrite True or False, or leave it away")
        del given.arguments[x]
    granted = tuple(
        [x for x, value in told.items() if value and subject(found, x) in given.arguments]
    )
    args, kwargs = given.args, given.kwargs
    order = list(found.parameters)
    names = [subject(found, x) for x in granted]
    places = tuple([x if x in kwargs else order.index(x) for x in names])
    written = []
    for name, place in zip(names, places, strict=True):
        box = given.arguments[name]
        if isinstance(plain_of(box), np.ndarray):
            if type(box) is not ArrayBox:
                raise TraceError(
                    f"{site}: {fn.__name__} may overwrite {name}, which is not followed here\n"
                    "leave the permission away"
                )
            written.append((place, box))
    operands, options = operand(args, []), operand(kwargs, [])
    try:
        return compute(args, kwargs)
    finally:
        contents = []
        for place, box in written:
            call = fn, place, granted, places
            plain = overwritten(*call, *primal(operands), **primal(options))
            op = append(tracer.tape, overwritten, (*call, *operands), options, plain, site)
            contents.append((box, op))
        for box, op in contents:
            if box.value.flags.writeable:
                write_all(box, op, site)
