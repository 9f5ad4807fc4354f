"""What is said where a gradient cannot be had: what it is, where it is, and what to write instead.

Words
-----
number   what a function with a gradient returns: a float, or an array of the shape ``()``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules.words import with_article
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.places import quoted
from ..tracer.protocols import plain_of
from ..tracer.run import describe, in_full
from ..tracer.structure import Leaf, Sealed, Tree
from ..tracer.tape import type_name
from .argnums import shortened

PAGE = "docs/errors.md"

# What arrays of other libraries are converted by; ``x`` stands for the argument.
CONVERSIONS = {
    "torch": "x.detach().numpy()",
    "tensorflow": "x.numpy()",
    "pandas": "x.to_numpy(dtype=float)",
    "jax": "np.asarray(x)",
    "jaxlib": "np.asarray(x)",
    "cupy": "x.get()",
    "autograd": "x._value",
    "polars": "x.to_numpy()",
    "xarray": "x.values",
}


def where(f: Any) -> str:
    """A line with the text of the line on which a function begins, or nothing."""
    return quoted(describe(f)[1])


def not_a_number(f: Any, tree: Tree, value: Any) -> str:
    """Why the result of ``f`` has no gradient, and what to return."""
    plain = plain_of(value) if not isinstance(tree, Leaf) else tree.value
    kind = type(plain)
    page = "not-a-number"
    if kind in NUMBERLESS:
        what, cure = numberless(plain)
    elif isinstance(plain, (np.ndarray, np.generic)) and np.shape(plain):
        what = f"an array of shape {np.shape(plain)}"
        cure = (
            "return one number of it, `y.sum()` or `y[0]` say; for all of them there is jacobian(f)"
        )
        if np.size(plain) == 1:
            cure = "return its one number, `y.sum()` or `y.item()`, or take jacobian(f)"
    elif isinstance(tree, Leaf) and np.iscomplexobj(plain):
        what, cure = "a complex number", "return a real one, `y.real` or `abs(y) ** 2` say"
        page = "complex"
    elif isinstance(plain, (np.ndarray, np.generic)):
        what, cure = with_article(f"{type_name(plain)} number"), "compute with floats"
    elif is_one_of(kind, (tuple, list)):
        what = with_article(f"{kind.__name__} of {len(plain)}")
        cure = "return the number first, `return value, rest`, and say grad(f, has_aux=True)"
    elif callable(plain):
        what, cure = with_article(kind.__name__), "call it, and return the number that it gives"
    else:
        what = with_article(kind.__name__)
        cure = "return one number of it, and the rest behind it: grad(f, has_aux=True)"
    return (
        f"{in_full(f)} must return a real number to have a gradient, but its value is {what}\n{where(f)}{cure}\n"
        f"(for a value of any kind: value, back = pullback(f, x), and give back a cotangent; {PAGE}#{page})"
    )


def no_jacobian(f: Any, value: Any) -> str:
    """Why the result of ``f``, in which there is no number at all, has no Jacobian, and what to return."""
    plain = plain_of(value)
    what, cure = with_article(f"{type_name(plain)}"), "compute with floats"
    if type(plain) in NUMBERLESS:
        what, cure = numberless(plain)
    return (
        f"{in_full(f)} must return numbers or arrays of floats to have a Jacobian, but its value is {what}\n{where(f)}"
        f"{cure} ({PAGE}#not-a-number)"
    )


def numberless(value: Any) -> tuple[str, str]:
    """What a result is in which there is no number, and what to return."""
    if value is None:
        return "None", "is a `return` missing?"
    if isinstance(value, (bool, np.bool_)):
        return f"the bool {value}", "a decision has no derivative; return the number it is about"
    return (
        f"the {type(value).__name__} {shortened(value)}",
        "return the number itself, not its text",
    )


NUMBERLESS = (type(None), bool, np.bool_, str, bytes)


def no_derivative(f: Any, key: int | str, tree: Tree, value: Any) -> str:
    """Why there is no gradient by an argument of ``f``, and what to pass."""
    plain = plain_of(value)
    kind = type(plain)
    what, page = with_article(kind.__name__), "no-derivative"
    if kind is np.ndarray:
        what = with_article(f"array of {plain.dtype}")
    cure = "pass a float or an array of floats"
    if isinstance(plain, np.ma.MaskedArray):
        cure = "pass data and mask on their own, and compute with np.where(mask, 0.0, data)"
        page = "masked-arrays"
    elif kind is np.ndarray and plain.dtype.kind in "iub":
        cure, page = "convert it to floats: x.astype(float)", "integer-arrays"
    elif isinstance(tree, Sealed):
        cure = tree.advice
    elif package_of(kind) in CONVERSIONS:
        cure, page = f"convert it: {CONVERSIONS[package_of(kind)]}", "other-libraries"
    elif isinstance(plain, np.ndarray) and kind is not np.ndarray:
        cure = "convert it with np.array(x)"
    elif isinstance(plain, (np.generic, bool)):
        cure = "convert it with float(x)"
    elif (whole := whole_numbers(plain)) is not None:
        what += f" with {whole}"
        cure, page = "convert what is in it to floats: x.astype(float)", "integer-arrays"
    return (
        f"argument {key} of {in_full(f)} is {what} without a derivative\n{where(f)}"
        f"{cure}, or choose other arguments with argnums ({PAGE}#{page})"
    )


def whole_numbers(value: Any) -> str | None:
    """What an array of integers or bools in a list, tuple or dict is, the first one there."""
    value = plain_of(value)
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return next((x for x in map(whole_numbers, value) if x is not None), None)
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        return with_article(f"array of {value.dtype}")
    return None


def package_of(kind: type) -> str:
    module = type.__getattribute__(kind, "__module__")
    return module.partition(".")[0] if type(module) is str else ""
