"""Rules: how each primitive is differentiated. Importing this package registers all but those of SciPy and
of `statistics`, which follow these modules."""

from . import (  # noqa: F401
    elementwise,
    linear,
    mutation,
    numpy_creation,
    numpy_fft,
    numpy_indexing,
    numpy_linalg,
    numpy_products,
    numpy_random,
    numpy_reductions,
    numpy_shapes,
    numpy_ufunc_methods,
    numpy_ufuncs,
    operators,
    python_builtins,
    python_cmath,
    python_math,
    queries,
    tangents,
    tangents_linalg,
)
from .registry import awaited, frule, lookup, mutates, nondiff, query, rrule

SCIPY = "integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
for _name in SCIPY.split():
    awaited[f"scipy.{_name}"] = f"{__name__}.scipy_{_name}"
awaited["statistics"] = f"{__name__}.python_statistics"
awaited["uarray"] = f"{__name__}.scipy_fft"  # of which the functions of scipy.fft are made

__all__ = ["frule", "lookup", "mutates", "nondiff", "query", "rrule"]
