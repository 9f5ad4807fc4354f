"""What users of other libraries ask of a number, an array or the package, and what gives it here.

Words
-----
habit   an attribute that numbers and arrays have elsewhere (``loss.backward()``, ``x.grad``, ``x.at[i].set(y)``), or a
        name that such a library has (``vmap``, ``Tensor``).
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import FrameType
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

FUNCTION = "wengert.grad(f) is the function that gives the gradient, and wengert.value_and_grad(f) gives the value too"
BACK = "value, back = wengert.pullback(f, x), and then back(1.0), give the value and the gradients"
FORWARD = "wengert.jvp(f, (x,), (tangent,)) gives the value and its tangent"
RULE = "wengert.rrule(fn) and wengert.frule(fn) give a function its derivative, @wengert.custom_rule one of yours"
OWN = "random numbers, optimizers and layers are the user's: NumPy, SciPy, and functions and classes of Python"
NAMES = {
    "vmap": "write f for arrays of any shape, as NumPy has it, or call it in a loop: np.stack([f(x) for x in xs])",
    "elementwise_grad": "wengert.pullback(f, x)[1](np.ones_like(x))[0] is that",
    "numpy": f"import numpy as np: {PLAIN}",
    "scipy": f"import scipy: {PLAIN}",
    "tensor": f"np.array(x) is one: {PLAIN}",
    "no_grad": "call f itself: outside of a call of Wengert nothing is recorded",
    "stop_gradients": CONSTANT,
    "detach": CONSTANT,
    "gradient": FUNCTION,
    "value_and_gradient": FUNCTION,
    "backward": BACK,
    "vector_jacobian_product": BACK,
    "jacobian_vector_product": FORWARD,
    "hessian_vector_product": "wengert.hvp(f, (x,), (v,)) is that",
    "custom_vjp": RULE,
    "primitive": RULE,
    "remat": "wengert.checkpoint(f) is that",
    "make_jaxpr": "print(wengert.trace(f, x)) shows what a call computes",
    "disable_jit": "with wengert.jit(False): is that",
    "gradcheck": "wengert.check_grads(f, (x,)) compares with differences",
    "tree_map": "lists, tuples, dicts, dataclasses and objects are arguments, and gradients have their structure",
    "lax": "for, while and if are differentiated as they stand",
    "nn": OWN,
}  # fmt: skip
ALSO = {
    "pmap": "vmap", "vectorize": "vmap", "egrad": "elementwise_grad", "np": "numpy", "jnp": "numpy",
    "Tensor": "tensor", "Variable": "tensor", "Parameter": "tensor", "array": "tensor", "Dual": "tensor",
    "from_numpy": "tensor", "enable_grad": "no_grad", "inference_mode": "no_grad", "set_grad_enabled": "no_grad",
    "stopgrad": "detach", "grads": "gradient", "gradients": "gradient", "autograd": "gradient",
    "derivative": "gradient", "deriv": "gradient", "diff": "gradient", "grad_and_value": "value_and_gradient",
    "value_and_gradients": "value_and_gradient", "value_grad": "value_and_gradient", "GradientTape": "backward",
    "record": "backward", "make_vjp": "vector_jacobian_product", "make_jvp": "jacobian_vector_product",
    "make_hvp": "hessian_vector_product", "hessian_vector": "hessian_vector_product", "custom_jvp": "custom_vjp",
    "custom_gradient": "custom_vjp", "custom_grad": "custom_vjp", "Function": "custom_vjp", "defvjp": "primitive",
    "defjvp": "primitive", "defgrad": "primitive", "make_ir": "make_jaxpr", "check_grad": "gradcheck",
    "tree_util": "tree_map", "tree": "tree_map", "cond": "lax", "scan": "lax", "fori_loop": "lax",
    "while_loop": "lax", "optim": "nn", "random": "nn", "optimizers": "nn", "Module": "nn",
}  # fmt: skip


def absent(module: str, name: str, known: Iterable[str], frame: FrameType) -> Exception:
    """The error where the package is asked for a name that it does not have; an import has one of its own."""
    import difflib

    imported = frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
    close = difflib.get_close_matches(name, known, 1, 0.7)
    advice = NAMES.get(ALSO.get(name, name))
    text = f"module {module!r} has no attribute {name!r}"
    if imported:
        text = f"cannot import name {name!r} from {module!r}"
    if advice is not None:
        text += f"\n{advice} (docs/errors.md#other-libraries)"
    elif close:
        text += f"\ndo you mean {module}.{close[0]}?"
    return ImportError(text, name=module) if imported else AttributeError(text, name=name)


def advise(error: BaseException) -> None:
    """Add to an AttributeError of a habit what gives that here."""
    if type(error) is AttributeError and error.name in ATTRIBUTES:
        owner: Any = error.obj
        advice = f"({ATTRIBUTES[error.name]}; docs/errors.md#other-libraries)"
        if isinstance(owner, VALUES) and advice not in getattr(error, "__notes__", ()):
            error.add_note(advice)
