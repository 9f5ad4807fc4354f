"""Values: which numbers are in one, whether they are finite, how large they are, and how to tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer.kinds import is_one_of, isinstance
from ...tracer.tape import type_name
from ..columns import Column
from ..reverse import Parts


def numbers_in(value: Any) -> Iterator[Any]:
    """The floating-point and complex numbers and arrays in a value, a cotangent, or a nested argument."""
    if isinstance(value, Parts):
        yield from numbers_in([value.whole, *value.parts])
    elif isinstance(value, (list, tuple, Column)):
        for x in value:
            yield from numbers_in(x)
    elif isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "fc":
            yield value
    elif is_one_of(type(value), (float, complex)):
        yield value


def is_finite(value: Any) -> bool:
    """Whether no NaN and no infinity is in a value."""
    return all(np.isfinite(x).all() for x in numbers_in(value))


def size_of(value: Any) -> float:
    """The largest absolute value of the finite numbers in a value; 0 where there are none."""
    return max(
        (float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) for x in numbers_in(value)),
        default=0.0,
    )


def summary(value: Any) -> str:
    """A value in a few words: a number as it is, of an array its type, and what is remarkable in it."""
    if isinstance(value, Parts):
        return "(" + ", ".join("0" if x is None else summary(x) for x in value.parts) + ")"
    if isinstance(value, np.ndarray) and value.size > 6:
        if value.dtype.kind not in "fc":
            return type_name(value)
        counts = {
            "NaN": np.isnan(value),
            "infinite": np.isinf(value),
            "zero": value == 0,
        }
        told = [f"{int(x.sum())} {name}" for name, x in counts.items() if x.any()]
        plain = value[np.isfinite(value)]
        if plain.size and value.dtype.kind == "f":
            told.insert(0, f"{plain.min():.4g} to {plain.max():.4g}")
        return f"{type_name(value)} ({', '.join(told)})"
    if isinstance(value, np.ndarray):
        return f"{type_name(value)} {np.array2string(value, precision=4)}".replace("\n", "")
    if isinstance(value, (list, tuple)) and len(value) > 6:
        return f"{with_article(type(value).__name__)} of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(summary, value))})"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, (int, complex, str, np.generic, bool, type(None))):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)
