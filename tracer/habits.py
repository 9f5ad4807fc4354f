"""What users of other libraries ask of a number, an array or the package, and what gives it here.

Words
-----
habit   an attribute that numbers and arrays have elsewhere (``loss.backward()``, ``x.grad``, ``x.at[i].set(y)``), or a
        name that such a library has (``vmap``, ``Tensor``).
"""

from __future__ import annotations

import dis
import re
from collections.abc import Container, Iterable
from types import FrameType

import numpy as np

from .kinds import isinstance

GRADIENT = (
    "numbers and arrays keep no gradient: wengert.grad(f)(x) gives it, or value, back = wengert.pullback(f, x) and "
    "back(1.0)"
)
PLAIN = "what f is given are plain numbers and arrays of NumPy"
CONSTANT = "wengert.stop_gradient(x) is x as a constant"
FUNCTIONS = "NumPy has as functions what tensors have as methods: np.exp(x), np.linalg.norm(x), x.T, x[:, None]"
IN_PLACE = "arrays are written in place: x[i] = y, x += y, x[:] = 0.0"
FORMULAS = (
    "what f is given are numbers, and wengert.grad(f)(x) is the derivative at x; formulas come of "
    "wengert.trace(f, x).compile(math=sympy)"
)
ATTRIBUTES = {
    "backward": GRADIENT,
    "grad": GRADIENT,
    "requires_grad": f"nothing has to be marked; {GRADIENT}",
    "requires_grad_": f"nothing has to be marked; {GRADIENT}",
    "zero_grad": GRADIENT,
    "retain_grad": GRADIENT,
    "grad_fn": f"wengert.trace(f, x) shows what was computed; {GRADIENT}",
    "is_leaf": GRADIENT,
    "detach": CONSTANT,
    "numpy": PLAIN,
    "cpu": PLAIN,
    "to": PLAIN,
    "block_until_ready": PLAIN,
    "at": IN_PLACE,
    "clone": "x.copy() is a copy, and the gradient goes through it",
    **dict.fromkeys(
        "abs acos asin atan bmm cat ceil cos cosh erf exp expand expm1 floor gather gelu index_select log log10 log1p "
        "log2 log_softmax logsumexp masked_fill matmul mm mv norm permute pow relu rsqrt scatter sigmoid sign sin sinh "
        "softmax sqrt square t tan tanh tile unbind unsqueeze where".split(),
        FUNCTIONS,
    ),
    **dict.fromkeys(
        "add_ clamp_ copy_ div_ fill_ index_add_ mul_ scatter_ sub_ zero_".split(), IN_PLACE
    ),
    **dict.fromkeys("cuda aval primal tangent val value _value".split(), PLAIN),
    **dict.fromkeys("double float half long".split(), "x.astype(float) has other numbers in it"),
    **dict.fromkeys("diff evalf lambdify simplify subs".split(), FORMULAS),
}
MADE = "this is a function: called with the arguments, wengert.grad(f)(x), it returns the gradient itself"
TAPE = "tape(x) runs it; wengert.reverse(tape)(x) gives value and gradient, tape.cotangents(x) those of all lines"
OF_TAPES = ("gradient", "jacobian", "watch", "jaxpr", "eqns")
OF_FUNCTIONS = ("gradient", "lower", "clear_cache", "eval_shape", "py_func")
# Keyword arguments that functions of NumPy, or the user's own, do not have.
KEYWORDS = {
    "dim": "NumPy says axis=",
    "keepdim": "NumPy says keepdims=",
    "argnum": "back(dy) of wengert.pullback has the gradients by all arguments; wengert.grad takes argnums",
    "argnums": "back(dy) of wengert.pullback has the gradients by all arguments; wengert.grad takes argnums",
    "create_graph": "derivatives nest without being told; leave it out",
    "retain_graph": "back can be called as often as you like; leave it out",
}
UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
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
    "symbols": FORMULAS,
    "holomorphic_grad": "wengert.jacobian(f, holomorphic=True) is that",
    "grad_named": "wengert.grad(f, argnums='name') is that, and argnums=('a', 'b') has several",
    "eval_shape": "wengert.trace(f, x) shows the types and shapes of all that is computed",
    "value_and_jacobian": "wengert.jacobian(f, has_aux=True), where f returns (y, y), gives both",
    "hessian_diag": "np.diag(wengert.hessian(f)(x)) is that",
    "laplacian": "np.trace(wengert.hessian(f)(x)) is that",
    "divergence": "np.trace(wengert.jacobian(f)(x)) is that",
    "jacobian_reverse": "wengert.jacrev(f) is that",
    "jacobian_forward": "wengert.jacfwd(f) is that",
    "compile": "programs are kept by themselves; @wengert.jit keeps that of a function's value",
    "detect_anomaly": "wengert.grad(f, debug=True) raises where a NaN or an infinity is born, and wengert.why(f, x) "
    "says why",
    "minimize": "scipy.optimize.minimize(f, x, jac=wengert.grad(f)) is that",
    "custom_root": "scipy.optimize.root and root_scalar have rules: they are differentiated as they stand",
    "func": "all that is public lies in wengert itself: wengert.grad, wengert.jacobian, wengert.jvp, wengert.vjp",
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
    "while_loop": "lax", "switch": "lax", "ravel_pytree": "tree_map", "flatten": "tree_map", "Symbol": "symbols",
    "lambdify": "symbols", "simplify": "symbols", "sympify": "symbols", "SX": "symbols", "MX": "symbols",
    "multigrad_dict": "grad_named", "linear_transpose": "vector_jacobian_product", "device_put": "numpy",
    "device_get": "numpy", "zeros_like": "numpy", "nograd": "no_grad", "vhp": "hessian_vector_product",
    "register_rule": "primitive", "def_rule": "primitive", "grad_check": "gradcheck", "Graph": "make_jaxpr",
    "laplace": "laplacian", "div": "divergence", "stop_grad": "detach", "optim": "nn",
    "random": "nn", "optimizers": "nn", "Module": "nn",
    "set_detect_anomaly": "detect_anomaly", "debug_nans": "detect_anomaly", "check_numerics": "detect_anomaly",
    "is_grad_enabled": "no_grad", "filter_grad": "gradient", "filter_value_and_grad": "value_and_gradient",
    "filter_jit": "compile", "function": "compile", "constant": "tensor", "watch": "backward",
    "batch_jacobian": "vmap", "optimize": "minimize", "functional": "func", "experimental": "func",
    "jax": "func", "torch": "func", "jaxpr": "make_jaxpr", "pure_callback": "primitive",
    "multigrad": "grad_named", "closure_convert": "custom_vjp",
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


def lacking(x: object, name: str, others: Container[str], advice: str) -> AttributeError:
    """The error where an object of ours is asked for an attribute: with advice if tensors or ``others`` have it."""
    text = f"{type(x).__name__!r} object has no attribute {name!r}"
    if name in ATTRIBUTES or name in others:
        text += f"\n{advice} (docs/errors.md#other-libraries)"
    return AttributeError(text, name=name, obj=x)


def advise(error: BaseException) -> None:
    """Add to an error of a habit what gives here what was wanted."""
    text = None
    if type(error) is AttributeError and isinstance(error.obj, VALUES):
        text = ATTRIBUTES.get(error.name or "")
    elif type(error) is TypeError and error.args and type(error.args[0]) is str:
        found = UNEXPECTED.search(error.args[0])
        text = KEYWORDS.get(found[1]) if found else None
    advice = f"({text}; docs/errors.md#other-libraries)"
    if text is not None and advice not in getattr(error, "__notes__", ()):
        error.add_note(advice)
