"""Whoever computes value and gradient of a program: the hand-written code, Wengert, and its peers.

A contender is prepared for a program once. What preparing takes (a conversion of the arguments, a
compilation) is measured apart; what is timed is the repeated call.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import math
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wengert

from .program import Program, Skipped, leaves, mapped


@dataclass
class Contender:
    """``call(*arguments)`` is what is timed.

    plain       makes of its result the value and the gradients in NumPy's terms
    around      makes the context in which it is called
    warming     so many calls come before each sample and are not timed
    before      runs before each call and is not timed
    extra       seconds of what is counted apart: ``converting`` the arguments, ``compiling``
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    plain: Callable[[Any], tuple[Any, Any]] = lambda result: result
    around: Callable[[], Any] = contextlib.nullcontext
    warming: int = 1
    before: Callable[[], Any] | None = None
    extra: dict[str, float] = field(default_factory=dict)


HAND = "hand"
CACHED, TRACED, FIRST = "wengert", "wengert, traced", "wengert, first call"


def hand(program: Program, arguments: tuple[Any, ...]) -> Contender:
    return Contender(HAND, program.hand, arguments)


def ours(program: Program, arguments: tuple[Any, ...]) -> list[Contender]:
    """Wengert three times: from its cache, traced at each call, and with the cache empty."""
    function = wengert.value_and_grad(program.function, argnums=program.argnums)
    return [
        # The others leave the cache empty: trace, assemble, and settle.
        Contender(CACHED, function, arguments, warming=4),
        Contender(TRACED, function, arguments, around=lambda: wengert.jit(False)),
        Contender(FIRST, function, arguments, before=wengert.clear_cache),
    ]


# ---------------------------------------------------------------------------------------------- peers


def autograd(program: Program, arguments: tuple[Any, ...]) -> Contender:
    """HIPS autograd."""
    library = importlib.import_module("autograd")
    numpy = importlib.import_module("autograd.numpy")
    function = program.written_for("autograd", np=numpy, math=math_of(numpy))
    return Contender("autograd", library.value_and_grad(function, program.argnums), arguments)


def tangent(program: Program, arguments: tuple[Any, ...]) -> Contender:
    """Tangent, as `tangent-ad` on PyPI carries it on; it knows the functions of NumPy, not those of `math`."""
    library = importlib.import_module("tangent")
    function = program.written_for("tangent", math=np)
    wrt = program.argnums if isinstance(program.argnums, tuple) else (program.argnums,)
    start = time.perf_counter()
    gradient = library.grad(function, wrt=wrt, preserve_result=True)
    seconds = time.perf_counter() - start

    def plain(result):
        *gradients, value = result
        return value, tuple(gradients)

    return Contender("tangent", gradient, arguments, plain, extra={"compiling": seconds})


def jax(program: Program, arguments: tuple[Any, ...], name: str = "jax") -> Contender:
    """JAX, operation by operation; in double precision, as everybody else."""
    library = importlib.import_module("jax")
    numpy = importlib.import_module("jax.numpy")
    library.config.update("jax_enable_x64", True)
    names = {"np": numpy, "math": math_of(numpy)}
    if name == "jax.jit" and name not in program.variants:
        function = program.written_for("jax", **names)
    else:
        function = program.written_for(name, **names)
    both = library.value_and_grad(function, program.argnums)
    if name == "jax.jit":
        static = [k for k, tree in enumerate(arguments) if not any(map(is_data, leaves(tree)))]
        both = library.jit(both, static_argnums=static)
    converted, seconds = conversion(
        lambda leaf: numpy.asarray(leaf) if is_data(leaf) else leaf,
        arguments,
        library.block_until_ready,
    )

    def call(*converted):
        return library.block_until_ready(both(*converted))

    return Contender(
        name, call, converted, lambda r: mapped(np.asarray, r), extra={"converting": seconds}
    )


def jax_jit(program: Program, arguments: tuple[Any, ...]) -> Contender:
    """JAX, compiled by XLA."""
    contender = jax(program, arguments, "jax.jit")
    start = time.perf_counter()
    contender.call(*contender.arguments)
    contender.extra["compiling"] = time.perf_counter() - start
    return contender


def torch(program: Program, arguments: tuple[Any, ...]) -> Contender:
    """PyTorch, eager."""
    library = importlib.import_module("torch")
    library.set_num_threads(1)
    library.set_default_dtype(library.float64)
    numpy = torch_as_numpy(library)
    function = program.written_for("torch", np=numpy, math=math_of(numpy))
    single = isinstance(program.argnums, int)
    wrt = (program.argnums,) if single else program.argnums

    def convert(leaf):
        return library.asarray(leaf, dtype=library.float64, copy=True) if is_data(leaf) else leaf

    converted, seconds = conversion(convert, arguments, lambda tree: None)
    inputs = [leaf.requires_grad_() for k in wrt for leaf in leaves(converted[k])]

    def call(*converted):
        value = function(*converted)
        return value, library.autograd.grad(value, inputs)

    def plain(result):
        value, gradients = result
        return value.item(), [gradient.numpy() for gradient in gradients]

    return Contender("torch", call, converted, plain, extra={"converting": seconds})


def math_of(numpy: Any) -> types.SimpleNamespace:
    """The names of `math`: Python's own for plain floats, constants of the program, and `numpy`'s otherwise."""

    def either(plain, other):
        return lambda x: plain(x) if type(x) is float else other(x)

    shared = {name for name, f in vars(math).items() if callable(f) and hasattr(numpy, name)}
    functions = {name: either(getattr(math, name), getattr(numpy, name)) for name in shared}
    return types.SimpleNamespace(**functions, pi=math.pi, e=math.e)


def torch_as_numpy(library: Any) -> types.SimpleNamespace:
    """PyTorch under NumPy's names; most are the same already."""

    def reduction(function):
        return lambda x, axis=(), keepdims=False: function(x, dim=axis, keepdim=keepdims)

    renamed = {
        "maximum": lambda x, least: library.clamp(x, min=least),
        "max": reduction(library.amax),
        "min": reduction(library.amin),
    }
    return types.SimpleNamespace(**{**vars(library), **renamed})


# By name: the package that must be installed, and what prepares it.
PEERS: dict[str, tuple[str, Callable[[Program, tuple[Any, ...]], Contender]]] = {
    "autograd": ("autograd", autograd),
    "tangent": ("tangent-ad", tangent),
    "jax": ("jax", jax),
    "jax.jit": ("jax", jax_jit),
    "torch": ("torch", torch),
}


def is_data(leaf: Any) -> bool:
    """Is it what a peer wants converted? Counters and indices stay Python's."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind == "f"
    return isinstance(leaf, float)


def conversion(
    convert: Callable[[Any], Any], tree: Any, wait: Callable[[Any], Any]
) -> tuple[Any, float]:
    """The converted arguments, and the least of three times that it took."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        converted = mapped(convert, tree)
        wait(converted)
        times.append(time.perf_counter() - start)
    return converted, min(times)


def installed(package: str) -> str | None:
    """The version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def prepared(name: str, program: Program, arguments: tuple[Any, ...]) -> Contender:
    """A peer, ready to be called; raises `Skipped`, with the reason, where it cannot."""
    package, prepare = PEERS[name]
    if installed(package) is None:
        raise Skipped(f"{package} is not installed")
    return prepare(program, arguments)
