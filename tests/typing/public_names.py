"""A program with every public name, which type checkers are run on; see ``test_typing.py``."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_type

import numpy as np
from numpy.typing import NDArray

import wengert
from wengert import (
    CotangentError,
    EscapeError,
    GradientError,
    GuardError,
    NonFiniteError,
    NoRuleError,
    NumericRuleWarning,
    Op,
    Site,
    TangentError,
    Tape,
    TraceError,
    WengertError,
    bytecode,
    check_grads,
    checkpoint,
    clear_cache,
    custom_rule,
    explain,
    forward,
    frule,
    grad,
    hessian,
    hvp,
    interpret,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    mutates,
    nondiff,
    numeric_rule,
    profile,
    pullback,
    query,
    reverse,
    rrule,
    save,
    settings,
    stages,
    stop_gradient,
    trace,
    value_and_grad,
    vjp,
    why,
)

Floats = NDArray[np.float64]
x: Floats = np.array([1.0, 2.0])


def f(a: float, b: float, scale: float = 1.0) -> float:
    return a * b * scale


def energy(v: Floats, k: float) -> float:
    return k * float(v @ v)


def with_aux(v: Floats) -> tuple[float, str]:
    return float(v @ v), "aux"


def loss(params: dict[str, Floats], v: Floats) -> float:
    return float(params["w"] @ v)


def squares(v: Floats) -> Floats:
    return v * v


@dataclass
class Params:
    w: Floats
    b: float


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    def loss(self, v: Floats) -> float:
        return self.k * float(v @ v)


def of_params(params: Params, v: Floats) -> float:
    return float(params.w @ v) + params.b


# Gradients are of the types of the arguments.
assert_type(grad(f)(1.0, 2.0), float)
assert_type(grad(f, 1)(1.0, 2.0, scale=3.0), float)
assert_type(grad(energy)(x, 2.0), Floats)
assert_type(grad(energy, 1)(x, 2.0), float)
assert_type(grad(energy, argnums=(0, 1))(x, 2.0), tuple[Floats, float])
assert_type(grad(loss)({"w": x}, x), dict[str, Floats])
assert_type(grad(of_params)(Params(x, 1.0), x), Params)
assert_type(value_and_grad(of_params)(Params(x, 1.0), x), tuple[float, Params])
assert_type(grad(Model.loss, argnums=1)(Model(2.0), x), Floats)
assert_type(grad(Model(2.0).loss)(x), Floats)
assert_type(grad(with_aux, has_aux=True)(x), tuple[Floats, str])
assert_type(value_and_grad(energy)(x, 2.0), tuple[float, Floats])
assert_type(value_and_grad(energy, (0, 1))(x, 2.0), tuple[float, tuple[Floats, float]])
assert_type(value_and_grad(with_aux, has_aux=True)(x), tuple[tuple[float, str], Floats])
assert_type(grad(grad(f))(1.0, 2.0), float)


def three(a: float, v: Floats, params: dict[str, Floats]) -> float:
    return a * float(v @ params["w"])


W = {"w": x}
assert_type(grad(three, 2)(1.0, x, W), dict[str, Floats])
assert_type(grad(three, (0,))(1.0, x, W), tuple[float])
assert_type(grad(three, (0, 1, 2))(1.0, x, W), tuple[float, Floats, dict[str, Floats]])
assert_type(value_and_grad(three, 2)(1.0, x, W), tuple[float, dict[str, Floats]])
assert_type(
    value_and_grad(three, (0, 1, 2))(1.0, x, W),
    tuple[float, tuple[float, Floats, dict[str, Floats]]],
)
assert_type(jacobian(f)(1.0, 2.0), float)
assert_type(jacfwd(f, 1)(1.0, 2.0), float)
assert_type(jacrev(energy, 1)(x, 2.0), float)
assert_type(jacobian(three, 1)(1.0, x, W), Floats)
assert_type(hessian(f)(1.0, 2.0), float)
assert_type(hessian(energy, 1)(x, 2.0), float)
assert_type(pullback(f, 1.0, 2.0, primitives=[math.sin])[0], float)
assert_type(vjp(f, 1.0, 2.0, debug=True)[0], float)

value, back = pullback(f, 1.0, 2.0, scale=3.0)
assert_type(value, float)
name: str = back.source()
tape: Tape = back.tape
if TYPE_CHECKING:  # what is not there is told of, and not Any
    back.nothing  # type: ignore[attr-defined]
    tape.nothing  # type: ignore[attr-defined]
value, back = vjp(f, 1.0, 2.0)
assert_type(pullback(with_aux, x, has_aux=True)[2], str)

assert_type(jvp(squares, (x,), (x,)), tuple[Floats, Floats])
assert_type(jvp(with_aux, (x,), (x,), has_aux=True), tuple[float, float, str])
assert_type(jacobian(squares)(x), Floats)
assert_type(jacfwd(squares)(x), Floats)
assert_type(jacrev(with_aux, has_aux=True)(x), tuple[Floats, str])
assert_type(hessian(energy)(x, 2.0), Floats)
assert_type(hessian(with_aux, has_aux=True)(x), tuple[Floats, str])
assert_type(hvp(energy, (x, 2.0), (x, 0.0)), tuple[Floats, float])
assert_type(hvp(with_aux, (x,), (x,), has_aux=True), tuple[Floats, str])
at, push = linearize(squares, x)
assert_type(at, Floats)
assert_type(push(x), Floats)
assert_type(linearize(f, 1.0, 2.0)[1](1.0, 0.0), float)
assert_type(linearize(with_aux, x, has_aux=True)[2], str)


@jit
def root(a: float) -> float:
    return math.sqrt(a)


assert_type(root(2.0), float)
with jit(False):
    assert_type(grad(root)(2.0), float)


@checkpoint
def layer(v: Floats) -> Floats:
    return np.tanh(v)


assert_type(layer(x), Floats)
assert_type(stop_gradient(x), Floats)


@custom_rule
def half(a: float) -> tuple[float, Callable[[float], tuple[float]]]:
    return a / 2, lambda dy: (dy / 2,)


@custom_rule(pure=True)
def third(a: float) -> tuple[float, Callable[[float], tuple[float]]]:
    return a / 3, lambda dy: (dy / 3,)


assert_type(half(1.0), float)
assert_type(third(1.0), float)


def opaque(a: float) -> float:
    return a


@rrule(opaque, pure=True)
def opaque_rule(a: float) -> tuple[float, Callable[[float], tuple[float]]]:
    return a, lambda dy: (dy,)


@frule(opaque)
def opaque_push(primals: tuple[float], tangents: tuple[float]) -> tuple[float, float]:
    return primals[0], tangents[0]


@nondiff
def level(a: float) -> int:
    return int(a)


@query
def size(v: Floats) -> int:
    return len(v)


@numeric_rule
def measured(a: float) -> float:
    return a


def double_in_place(v: Floats) -> None:
    v *= 2


@mutates(double_in_place)
def doubled(v: Floats) -> Floats:
    return v * 2


recorded: Tape = trace(f, 1.0, 2.0)
with_own: Tape = trace(f, 1.0, 2.0, wrt_self=True)
assert_type(recorded[0], Op)
assert_type(recorded["a"], Op)
assert_type(recorded[1:], list[Op])
assert_type(reverse(recorded).source(), str)
assert_type(settings.programs, int)
swept: Tape = reverse(recorded)
pushed: Tape = forward(recorded, wrt="a")
ops: list[Op] = list(recorded)
site: Site = recorded.site
assert_type(grad(f, debug=True)(1.0, 2.0), float)
told: str = explain(grad(f), 1.0, 2.0)
reasons: str = why(f, 1.0, 2.0)
shown: list[str] = [str(x) for x in (bytecode(f), profile(f, 1.0, 2.0), stages(f, 1.0, 2.0))]
save(grad(f), os.devnull, 1.0, 2.0)


def step(
    fn: Callable[..., float], args: tuple[float, ...], kwargs: dict[str, float], site: Site
) -> float:
    return fn(*args, **kwargs)


again: float = interpret(f, 1.0, 2.0, call=step)
check_grads(f, (1.0, 2.0))
clear_cache()
settings.programs = 64
version: str = wengert.__version__
errors: list[type[WengertError]] = [
    CotangentError,
    EscapeError,
    GradientError,
    GuardError,
    NonFiniteError,
    NoRuleError,
    TangentError,
    TraceError,
]
warning: type[UserWarning] = NumericRuleWarning
