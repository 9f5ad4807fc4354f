"""What users of other libraries ask of a number or an array, and what gives it here.

Words
-----
habit   an attribute that numbers and arrays have elsewhere: ``loss.backward()``, ``x.grad``, ``x.at[i].set(y)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kinds import isinstance

GRADIENT = (
    "numbers and arrays keep no gradient: wengert.grad(f)(x) gives it, or value, back = wengert.pullback(f, x) and "
    "back(1.0)"
)
PLAIN = "what f is given are plain numbers and arrays of NumPy"
CONSTANT = "wengert.stop_gradient(x) is x as a constant"
ATTRIBUTES = {
    "backward": GRADIENT,
    "grad": GRADIENT,
    "requires_grad": f"nothing has to be marked; {GRADIENT}",
    "requires_grad_": f"nothing has to be marked; {GRADIENT}",
    "zero_grad": GRADIENT,
    "detach": CONSTANT,
    "numpy": PLAIN,
    "cpu": PLAIN,
    "to": PLAIN,
    "block_until_ready": PLAIN,
    "at": "arrays are written in place: x[i] = y, x[i] += y",
}
VALUES = (float, int, complex, np.ndarray, np.generic)


def advise(error: BaseException) -> None:
    """Add to an AttributeError of a habit what gives that here."""
    if type(error) is AttributeError and error.name in ATTRIBUTES:
        owner: Any = error.obj
        advice = f"({ATTRIBUTES[error.name]}; docs/errors.md#other-libraries)"
        if isinstance(owner, VALUES) and advice not in getattr(error, "__notes__", ()):
            error.add_note(advice)
